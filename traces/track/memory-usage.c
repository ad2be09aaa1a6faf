/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the sums of a replay from its events: physical and live memory, and what is lost to
 * rounding and fragmentation.
 */
#include "memory-usage.h"

#include "read/sites.h"
#include "format/units.h"

/* A file can say anything: sums end at what an int64 holds. */
static guint64 sum(guint64 a, guint64 b)
{
	return a + b < a || a + b > G_MAXINT64 ? G_MAXINT64 : a + b;
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

static void on_alloc(struct memory_usage *a, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	gboolean placed = (r->has & NPU_TRACE_HAS_ROUNDED) != 0;
	gboolean start = (r->has & NPU_TRACE_HAS_START) != 0;
	const struct allocation *known =
		allocation_table_find(&a->table, ALLOCATION_BLOCK, item->address);
	const struct allocation block = {
		.key = item->address,
		.address = placed ? r->va : item->address,
		.size = placed ? r->rounded : round_up(item->size, a->unit),
		.asked = item->size,
		.site = start && item->site == SITE_NONE ? SITE_BEFORE : item->site
	};

	if (start && placed && known) {
		/* a block of the start that lies elsewhere than the file says */
		struct allocation moved = *known;
		a->taken = sum(a->taken - MIN(a->taken, moved.size), block.size);
		moved.address = block.address;
		moved.size = block.size;
		allocation_table_add(&a->table, ALLOCATION_BLOCK, &moved);
		return;
	}
	block_add(a, &block);
	if (a->physical == a->peak_physical)
		a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
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

void memory_usage_init(struct memory_usage *a, guint unit)
{
	*a = (struct memory_usage){ .unit = MAX(unit, 1) };
	allocation_table_init(&a->table);
}

void memory_usage_started(struct memory_usage *a)
{
	a->obtained = 0;
	a->start_physical = a->physical;
	a->start_live = a->peak_live = a->live_at_peak_physical = a->live;
}

void memory_usage_step(struct memory_usage *a, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	guint64 pages = r->has & NPU_TRACE_HAS_ROUNDED ? r->rounded : malloc_pages(item->size);

	switch (r->verb) {
	case NPU_TRACE_ALLOC:
		on_alloc(a, item);
		break;
	case NPU_TRACE_FREE:
		block_remove(a, item->address);
		break;
	case NPU_TRACE_SEGMENT_ALLOC:
	case NPU_TRACE_SEGMENT_MAP:
		memory_usage_obtain(a, item->size, pages);
		break;
	case NPU_TRACE_SEGMENT_FREE:
	case NPU_TRACE_SEGMENT_UNMAP:
		memory_usage_return(a, item->size, pages);
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
