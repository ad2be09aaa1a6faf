/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of a piece of memory somebody has written since it was made: a bit for 8 bytes, and
 * none where all or nothing of 64 KiB is written. 8 bytes that are partly written count as written.
 * It belongs to the memory, not to an address: mappings of one handle share it. Under the caller's
 * lock.
 */
#ifndef NPUSIM_VALIDATE_WRITTEN_H
#define NPUSIM_VALIDATE_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

struct written;

struct written *written_new(uint64_t bytes);
struct written *written_ref(struct written *written);
void written_unref(struct written *written); /* accepts NULL */

/* From now on all counts as written: somebody who is not seen may write. */
void written_give_up(struct written *written);
void written_set(struct written *written, uint64_t begin, uint64_t end);
void written_clear(struct written *written, uint64_t begin, uint64_t end);
/* The first bytes in [begin, end) that nobody wrote; false: there are none. */
bool written_gap(const struct written *written, uint64_t begin, uint64_t end, uint64_t *out_begin,
		 uint64_t *out_end);
/* A copy: the target is written where the source is. */
void written_copy(struct written *dst, uint64_t to, const struct written *src, uint64_t from,
		  uint64_t bytes);

#endif
