/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what is live, held and reserved, for both indexes and for what a file says of itself.
 */
#include "memory.h"

const char *const level_names[LEVEL_RESERVED + 1] = { "live", "segments", "physical", "reserved" };

/* A file can say anything. */
static guint64 sum(guint64 a, guint64 b)
{
	return MIN(a + MIN(b, G_MAXINT64), (guint64)G_MAXINT64);
}

void levels_change(struct levels *levels, enum level_kind kind, gboolean more, guint64 bytes)
{
	struct level *l = &levels->of[kind];
	const struct level *physical = &levels->of[LEVEL_PHYSICAL];

	if (!more) {
		l->now -= MIN(l->now, bytes);
		return;
	}
	l->now = sum(l->now, bytes);
	l->got = sum(l->got, bytes);
	if (l->now > l->peak.bytes) {
		l->peak = (struct level_peak){ l->now, levels->event, levels->host_ns };
		if (l == physical)
			levels->live_at_peak = 0;
	}
	if (physical->now == physical->peak.bytes)
		levels->live_at_peak = MAX(levels->live_at_peak, levels->of[LEVEL_LIVE].now);
}

void levels_start(struct levels *levels)
{
	for (int kind = 0; kind < LEVEL_COUNT; kind++) {
		levels->of[kind].start = levels->of[kind].now;
		levels->of[kind].got = 0;
	}
}

void levels_pages(struct levels *levels, gboolean more, guint64 size, guint64 pages)
{
	levels_change(levels, LEVEL_PHYSICAL, more, pages);
	levels_change(levels, LEVEL_ROUNDING, more, pages - MIN(size, pages));
}

void levels_step(struct levels *levels, guint32 verb, guint64 bytes, gboolean physical)
{
	int segments = segment_change(verb);

	if (segments != 0 && physical)
		levels_change(levels, LEVEL_PHYSICAL, segments > 0, bytes);
	if (segments != 0)
		levels_change(levels, LEVEL_SEGMENTS, segments > 0, bytes);
	else if (verb == NPU_TRACE_ALLOC || verb == NPU_TRACE_FREE)
		levels_change(levels, LEVEL_LIVE, verb == NPU_TRACE_ALLOC, bytes);
}
