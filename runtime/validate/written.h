/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes somebody has written, in maps of a bit for 8 bytes: struct npu_written. 8 bytes that
 * are partly written count as written. Other processes change the same maps: a change of a part of
 * a word is atomic. [begin, end) are bytes.
 */
#ifndef NPUSIM_VALIDATE_WRITTEN_H
#define NPUSIM_VALIDATE_WRITTEN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define GRANULE UINT64_C(8)

static inline uint64_t granules(uint64_t bytes)
{
	return (bytes + GRANULE - 1) / GRANULE;
}

static inline void written_change(uint64_t *bits, uint64_t first, uint64_t end, bool set)
{
	for (uint64_t i = first; i < end;) {
		uint64_t count = MIN(64 - i % 64, end - i), *word = &bits[i / 64];
		uint64_t mask = (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << i % 64;

		if (count == 64)
			__atomic_store_n(word, set ? mask : 0, __ATOMIC_RELAXED);
		else if (set)
			__atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
		else
			__atomic_fetch_and(word, ~mask, __ATOMIC_RELAXED);
		i += count;
	}
}

static inline void written_set(uint64_t *bits, uint64_t begin, uint64_t end)
{
	written_change(bits, begin / GRANULE, granules(end), true);
}

static inline void written_clear(uint64_t *bits, uint64_t begin, uint64_t end)
{
	written_change(bits, granules(begin), end / GRANULE, false);
}

/* The first granule in [first, end) that is written, or is not; `end`: there is none. */
static inline uint64_t find_granule(const uint64_t *bits, uint64_t first, uint64_t end, bool set)
{
	for (uint64_t i = first; i < end; i += 64 - i % 64) {
		uint64_t word = __atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED);

		word = (set ? word : ~word) >> i % 64;
		if (word != 0)
			return MIN(i + (uint64_t)__builtin_ctzll(word), end);
	}
	return end;
}

/* The first bytes in [begin, end) that nobody wrote; false: there are none. */
static inline bool written_gap(const uint64_t *bits, uint64_t begin, uint64_t end,
			       uint64_t *out_begin, uint64_t *out_end)
{
	uint64_t stop = granules(end), gap = find_granule(bits, begin / GRANULE, stop, false);

	if (begin >= end || gap >= stop)
		return false;
	*out_begin = MAX(begin, gap * GRANULE);
	*out_end = MIN(end, find_granule(bits, gap, stop, true) * GRANULE);
	return true;
}

/* A copy: the target is written where the source is. */
static inline void written_copy(uint64_t *dst, uint64_t to, const uint64_t *src, uint64_t from,
				uint64_t bytes)
{
	uint64_t at = from, end = from + bytes, gap, gap_end;

	if (dst == src && MAX(to, from) - MIN(to, from) < bytes) {
		written_set(dst, to, to + bytes);
		return;
	}
	written_clear(dst, to, to + bytes);
	while (written_gap(src, at, end, &gap, &gap_end)) {
		if (gap > at)
			written_set(dst, to + (at - from), to + (gap - from));
		at = gap_end;
	}
	if (at < end)
		written_set(dst, to + (at - from), to + bytes);
}

#endif
