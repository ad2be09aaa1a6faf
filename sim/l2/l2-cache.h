/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of a device's L2: set-associative, least recently used goes first, write-back. A tag
 * covers a block of several lines, each with its own valid and dirty bit, so that a stream costs a
 * step a block. Plain code: no time, no data.
 */
#ifndef NPUSIM_SIM_L2_L2_CACHE_H
#define NPUSIM_SIM_L2_L2_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct l2_cache;

/* A stretch of memory that the access brings about. */
struct l2_stretch {
	uint64_t pa, bytes;
};

/* bytes / (block_bytes x ways) sets (at least one); a block has at most 32 lines, a set 64 ways.
 * Tags are had at the first access; all accesses are to one memory of 2^31 blocks. */
struct l2_cache *l2_cache_new(uint64_t bytes, uint64_t block_bytes, uint64_t line_bytes,
			      unsigned ways);
void l2_cache_free(struct l2_cache *cache);

struct l2_answer {
	uint64_t lines, hits;
	struct l2_stretch fill;  /* lines to read from memory: from the first to the last, hits
				    between left in */
	struct l2_stretch clean; /* dirty lines to write back */
};

/* Looks up the lines of [pa, pa + bytes), which lie in one block. What misses is there afterwards;
 * a write makes lines dirty, and fills no line that it covers entirely. */
void l2_cache_access(struct l2_cache *cache, uint64_t pa, uint64_t bytes, bool write,
		     struct l2_answer *out);

#ifdef __cplusplus
}
#endif

#endif
