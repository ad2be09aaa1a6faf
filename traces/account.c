/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes, counted.
 */
#include "account.h"

#include "sites.h"

#define SMALL_MAX  (G_GUINT64_CONSTANT(1) << 20)
#define SMALL_PAGE (G_GUINT64_CONSTANT(1) << 12)
#define HUGE_PAGE  (G_GUINT64_CONSTANT(1) << 21)

/* A file can say anything: sums end at what an int64 holds. */
static guint64 sum(guint64 a, guint64 b)
{
	return a + b < a || a + b > G_MAXINT64 ? G_MAXINT64 : a + b;
}

guint64 account_round(guint64 size, guint64 to)
{
	return size / to * to + (size % to ? to : 0);
}

guint64 account_pages(guint64 size)
{
	return account_round(size, size > SMALL_MAX ? HUGE_PAGE : SMALL_PAGE);
}

/* ---- blocks ---- */

static void block_remove(struct account *a, guint64 key)
{
	const struct ledger_item *known = ledger_find(&a->ledger, LEDGER_BLOCK, key);
	if (known == NULL) {
		a->unmatched++;
		return;
	}
	a->live -= MIN(a->live, known->asked);
	a->taken -= MIN(a->taken, known->size);
	ledger_remove(&a->ledger, LEDGER_BLOCK, key);
}

static void block_add(struct account *a, const struct ledger_item *block)
{
	if (ledger_find(&a->ledger, LEDGER_BLOCK, block->key)) {
		a->unmatched++;
		block_remove(a, block->key);
	}
	ledger_add(&a->ledger, LEDGER_BLOCK, block);
	a->live = sum(a->live, block->asked);
	a->taken = sum(a->taken, block->size);
	a->peak_live = MAX(a->peak_live, a->live);
}

void account_block(struct account *a, const struct trace_event *e, guint64 address, guint64 taken)
{
	const struct ledger_item block = { .key = e->address,
					   .address = address,
					   .size = taken,
					   .asked = e->size,
					   .site = e->site };

	block_add(a, &block);
	if (a->physical == a->peak_physical)
		a->live_at_peak_physical = MAX(a->live_at_peak_physical, a->live);
}

void account_place(struct account *a, guint64 key, guint64 address, guint64 taken)
{
	const struct ledger_item *known = ledger_find(&a->ledger, LEDGER_BLOCK, key);

	if (known == NULL)
		return;
	struct ledger_item block = *known;
	a->taken = sum(a->taken - MIN(a->taken, block.size), taken);
	block.address = address;
	block.size = taken;
	ledger_add(&a->ledger, LEDGER_BLOCK, &block);
}

/* ---- physical memory ---- */

void account_obtain(struct account *a, guint64 size, guint64 pages)
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

void account_return(struct account *a, guint64 size, guint64 pages)
{
	a->physical -= MIN(a->physical, pages);
	a->rounding -= MIN(a->rounding, pages - size);
}

/* ---- a history ---- */

void account_init(struct account *a, const struct trace_device *device)
{
	*a = (struct account){ .unit = MAX(device->block_unit, 1) };
	ledger_init(&a->ledger);
	for (guint i = 0; i < device->ranges->len; i++) {
		const struct trace_range *r = &g_array_index(device->ranges, struct trace_range, i);
		account_obtain(a, r->size, account_pages(r->size));
	}
	for (guint i = 0; i < device->blocks->len; i++) {
		const struct trace_block *b = &g_array_index(device->blocks, struct trace_block, i);
		const struct ledger_item block = { .key = b->address,
						   .address = b->address,
						   .size = account_round(b->size, a->unit),
						   .asked = b->size,
						   .site = b->site ? b->site : SITE_BEFORE };
		block_add(a, &block);
	}
	a->obtained = 0;
	a->start_physical = a->peak_physical = a->physical;
	a->start_live = a->live_at_peak_physical = a->live;
}

void account_step(struct account *a, const struct trace_event *e)
{
	switch (e->action) {
	case TRACE_ALLOC:
		account_block(a, e, e->address, account_round(e->size, a->unit));
		break;
	case TRACE_FREE_COMPLETED:
		block_remove(a, e->address);
		break;
	case TRACE_SEGMENT_ALLOC:
	case TRACE_SEGMENT_MAP:
		account_obtain(a, e->size, account_pages(e->size));
		break;
	case TRACE_SEGMENT_FREE:
	case TRACE_SEGMENT_UNMAP:
		account_return(a, e->size, account_pages(e->size));
		break;
	default:
		break;
	}
}

void account_sums(const struct account *a, struct ledger_sums *out)
{
	guint64 used = sum(a->taken, a->rounding);

	*out = (struct ledger_sums){ .live = a->live,
				     .physical = a->physical,
				     .reserved = a->ledger.reserved,
				     .internal = a->taken - MIN(a->taken, a->live),
				     .rounding = a->rounding,
				     .external = (gint64)a->physical - (gint64)used };
}

void account_clear(struct account *a)
{
	ledger_clear(&a->ledger);
}
