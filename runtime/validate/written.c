/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes somebody has written: runs of bits.
 */
#include "validate/written.h"

#include <glib.h>

#define GRANULE UINT64_C(8)

static uint64_t granules(uint64_t bytes)
{
	return (bytes + GRANULE - 1) / GRANULE;
}

static void change(uint64_t *bits, uint64_t first, uint64_t end, bool set)
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

void written_set(uint64_t *bits, uint64_t begin, uint64_t end)
{
	change(bits, begin / GRANULE, granules(end), true);
}

void written_clear(uint64_t *bits, uint64_t begin, uint64_t end)
{
	change(bits, granules(begin), end / GRANULE, false);
}

/* The first granule in [first, end) that is written, or is not; `end`: there is none. */
static uint64_t find(const uint64_t *bits, uint64_t first, uint64_t end, bool set)
{
	for (uint64_t i = first; i < end; i += 64 - i % 64) {
		uint64_t word = __atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED);

		word = (set ? word : ~word) >> i % 64;
		if (word != 0)
			return MIN(i + (uint64_t)__builtin_ctzll(word), end);
	}
	return end;
}

bool written_gap(const uint64_t *bits, uint64_t begin, uint64_t end, uint64_t *out_begin,
		 uint64_t *out_end)
{
	uint64_t stop = granules(end), gap = find(bits, begin / GRANULE, stop, false);

	if (begin >= end || gap >= stop)
		return false;
	*out_begin = MAX(begin, gap * GRANULE);
	*out_end = MIN(end, find(bits, gap, stop, true) * GRANULE);
	return true;
}

void written_copy(uint64_t *dst, uint64_t to, const uint64_t *src, uint64_t from, uint64_t bytes)
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
