/* SPDX-License-Identifier: Apache-2.0
 *
 * Live mappings of handles: which pages of which handle lie where, and who may reach them. What a
 * mapping says, its leaves in the page tables (tables.h) say too, always: a mapping is made,
 * granted and ended together with them. Reservations are window.h's, handles handle.h's. Called
 * with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_MAPPING_H
#define NPUSIM_BSIM_MAPPING_H

#include "memory/memory.h"

bool mapping_open(struct bsim *bs);
/* Ends all of a device's: mappings of its memory, and others' in its page table. Returns how many
 * mappings ended. */
unsigned mapping_end_device(struct bsim *bs, unsigned device);
void mapping_close(struct bsim *bs);

#endif
