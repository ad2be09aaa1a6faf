/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes somebody has written, in maps of a bit for 8 bytes: struct npu_written. 8 bytes that
 * are partly written count as written. Other processes change the same maps: a change of a part of
 * a word is atomic. [begin, end) are bytes.
 */
#ifndef NPUSIM_VALIDATE_WRITTEN_H
#define NPUSIM_VALIDATE_WRITTEN_H

#include <stdbool.h>
#include <stdint.h>

void written_set(uint64_t *bits, uint64_t begin, uint64_t end);
void written_clear(uint64_t *bits, uint64_t begin, uint64_t end);
/* The first bytes in [begin, end) that nobody wrote; false: there are none. */
bool written_gap(const uint64_t *bits, uint64_t begin, uint64_t end, uint64_t *out_begin,
		 uint64_t *out_end);
/* A copy: the target is written where the source is. */
void written_copy(uint64_t *dst, uint64_t to, const uint64_t *src, uint64_t from, uint64_t bytes);

#endif
