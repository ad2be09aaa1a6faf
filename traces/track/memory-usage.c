/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes, counted.
 */
#include "memory-usage.h"

#include "read/sites.h"
#include "format/units.h"

#define SMALL_MAX  MIB
#define SMALL_PAGE (4 * KIB)
#define HUGE_PAGE  (2 * MIB)

/* A file can say anything: sums end at what an int64 holds. */
static guint64 sum(guint64 a, guint64 b)
{
	return a + b < a || a + b > G_MAXINT64 ? G_MAXINT64 : a + b;
}

guint64 memory_usage_pages(guint64 size)
{
	return round_up(size, size > SMALL_MAX ? HUGE_PAGE : SMALL_PAGE);
}

/* ---- blocks ---- */

static void block_remove(struct memory_usage *a, guint64 key)
{
	const struct allocation *known = allocation_table_find(&a->table, ALLOCATION_BLOCK, key);
	if (known == NULL) {
		a->unmatched++;
		return;
	}
	a->live -= MIN(a->live, known->asked);
	a->taken -= MIN(a->taken, known->size);
	allocation_table_remove(&a->table, ALLOCATION_BLOCK, key);
}

static void block_add(struct memory_usage *a, const struct allocation *block)
{
	if (allocation_table_find(&a->table, ALLOCATION_BLOCK, block->key)) {
		a->unmatched++;
		block_remove(a, block->key);
	}
	allocation_table_add(&a->table, ALLOCATION_BLOCK, block);
	a->live = sum(a->live, block->asked);
	a->taken = sum(a->taken, block->size);
	a->peak_live = MAX(a->peak_live, a->live);
}

void memory_usage_block(struct memory_usage *a, const struct trace_event *e, guint64 address,
			guint64 taken)
{
	const struct allocation block = { .key = e->address,
					  .address = address,
					  .size = taken,
					  .asked = e->size,
					  .site = e->site };

	block_add(a, &block);
	if (a->physical == a->peak_physical)
		a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
}

void memory_usage_place(struct memory_usage *a, guint64 key, guint64 address, guint64 taken)
{
	const struct allocation *known = allocation_table_find(&a->table, ALLOCATION_BLOCK, key);

	if (known == NULL)
		return;
	struct allocation block = *known;
	a->taken = sum(a->taken - MIN(a->taken, block.size), taken);
	block.address = address;
	block.size = taken;
	allocation_table_add(&a->table, ALLOCATION_BLOCK, &block);
}

/* ---- physical memory ---- */

void memory_usage_obtain(struct memory_usage *a, guint64 size, guint64 pages)
{
	a->physical = sum(a->physical, pages);
	a->obtained = sum(a->obtained, pages);
	a->rounding = sum(a->rounding, pages - size);
	if (a->physical > a->peak_physical) {
		a->peak_physical = a->physical;
		a->live_at_peak_physical = a->live;
	} else if (a->physical == a->peak_physical) {
		a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
	}
}

void memory_usage_return(struct memory_usage *a, guint64 size, guint64 pages)
{
	a->physical -= MIN(a->physical, pages);
	a->rounding -= MIN(a->rounding, pages - size);
}

/* ---- a history ---- */

void memory_usage_init(struct memory_usage *a, const struct trace_device *device)
{
	*a = (struct memory_usage){ .unit = MAX(device->block_unit, 1) };
	allocation_table_init(&a->table);
	for (guint i = 0; i < device->ranges->len; i++) {
		const struct trace_range *r = &g_array_index(device->ranges, struct trace_range, i);
		memory_usage_obtain(a, r->size, memory_usage_pages(r->size));
	}
	for (guint i = 0; i < device->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(device->blocks, struct trace_block, i);
		const struct allocation block = { .key = b->address,
						  .address = b->address,
						  .size = round_up(b->size, a->unit),
						  .asked = b->size,
						  .site = b->site ? b->site : SITE_BEFORE };
		block_add(a, &block);
	}
	a->obtained = 0;
	a->start_physical = a->peak_physical = a->physical;
	a->start_live = a->live_at_peak_physical = a->live;
}

void memory_usage_step(struct memory_usage *a, const struct trace_event *e)
{
	switch (e->action) {
	case TRACE_ALLOC:
		memory_usage_block(a, e, e->address, round_up(e->size, a->unit));
		break;
	case TRACE_FREE_COMPLETED:
		block_remove(a, e->address);
		break;
	case TRACE_SEGMENT_ALLOC:
	case TRACE_SEGMENT_MAP:
		memory_usage_obtain(a, e->size, memory_usage_pages(e->size));
		break;
	case TRACE_SEGMENT_FREE:
	case TRACE_SEGMENT_UNMAP:
		memory_usage_return(a, e->size, memory_usage_pages(e->size));
		break;
	default:
		break;
	}
}

void memory_usage_sums(const struct memory_usage *a, struct memory_sums *out)
{
	guint64 used = sum(a->taken, a->rounding);

	*out = (struct memory_sums){ .live = a->live,
				     .physical = a->physical,
				     .reserved = a->table.reserved,
				     .internal = a->taken - MIN(a->taken, a->live),
				     .rounding = a->rounding,
				     .external = (gint64)a->physical - (gint64)used };
}

void memory_usage_clear(struct memory_usage *a)
{
	allocation_table_clear(&a->table);
}
