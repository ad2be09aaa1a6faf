/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes, counted.
 */
#include "account.h"

/* A file can say anything: sums end at what an int64 holds. */
static guint64 sum(guint64 a, guint64 b)
{
	return a + b < a || a + b > G_MAXINT64 ? G_MAXINT64 : a + b;
}

static void block_remove(struct account *a, guint64 address)
{
	const guint64 *known = g_hash_table_lookup(a->blocks, &address);
	if (known == NULL) {
		a->unmatched++;
		return;
	}
	a->live -= MIN(a->live, known[1]);
	g_hash_table_remove(a->blocks, &address);
}

static void block_add(struct account *a, guint64 address, guint64 size)
{
	guint64 *key = g_new(guint64, 2);
	if (g_hash_table_contains(a->blocks, &address)) {
		a->unmatched++;
		block_remove(a, address);
	}
	key[0] = address;
	key[1] = size;
	g_hash_table_insert(a->blocks, key, key);
	a->live = sum(a->live, size);
	a->peak_live = MAX(a->peak_live, a->live);
}

static void grow(struct account *a, guint64 bytes)
{
	a->physical = sum(a->physical, bytes);
	a->obtained = sum(a->obtained, bytes);
	if (a->physical > a->peak_physical) {
		a->peak_physical = a->physical;
		a->live_at_peak_physical = a->live;
	} else if (a->physical == a->peak_physical) {
		a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
	}
}

void account_init(struct account *a, const struct trace_device *device)
{
	*a = (struct account){ .blocks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
							       NULL) };
	for (guint i = 0; i < device->ranges->len; i++)
		a->physical =
			sum(a->physical, g_array_index(device->ranges, struct trace_range, i).size);
	for (guint i = 0; i < device->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(device->blocks, struct trace_block, i);
		block_add(a, b->address, b->size);
	}
	a->start_physical = a->peak_physical = a->physical;
	a->start_live = a->live_at_peak_physical = a->live;
}

void account_step(struct account *a, const struct trace_event *e)
{
	switch (e->action) {
	case TRACE_ALLOC:
		block_add(a, e->address, e->size);
		if (a->physical == a->peak_physical)
			a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
		break;
	case TRACE_FREE_COMPLETED:
		block_remove(a, e->address);
		break;
	case TRACE_SEGMENT_ALLOC:
	case TRACE_SEGMENT_MAP:
		grow(a, e->size);
		break;
	case TRACE_SEGMENT_FREE:
	case TRACE_SEGMENT_UNMAP:
		a->physical -= MIN(a->physical, e->size);
		break;
	default:
		break;
	}
}

void account_clear(struct account *a)
{
	g_hash_table_unref(a->blocks);
}
