/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the live blocks of a moment for the list of holders, first by call site, then by label.
 */
#include "holders.h"

GArray *holders_by_site(const struct memory *memory, const struct moment *moment, guint count)
{
	GArray *sums = g_array_new(FALSE, TRUE, sizeof(struct site_sum));
	g_autoptr(GPtrArray) blocks = memory_at(
		memory, moment, memory->has_blocks ? ALLOCATION_BLOCK : ALLOCATION_MEMORY);

	g_array_set_size(sums, count);
	for (guint i = 0; i < blocks->len; i++) {
		const struct allocation *b = g_ptr_array_index(blocks, i);
		struct site_sum *sum = &g_array_index(sums, struct site_sum,
						      b->site < count ? b->site : SITE_NONE);
		sum->bytes += (gint64)(b->asked ? b->asked : b->size);
		sum->blocks++;
	}
	return sums;
}

/* Where sums are equal, by the number: the order of the file. */
static gint by_bytes(gconstpointer a, gconstpointer b)
{
	const struct holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->label < y->label ? -1 : x->label > y->label;
}

GArray *holders_of(const struct memory *memory, const struct moment *moment,
		   const struct sites *sites)
{
	GArray *out = g_array_new(FALSE, TRUE, sizeof(struct holder));

	if (sites == NULL)
		return out;
	g_autoptr(GArray) sums = holders_by_site(memory, moment, sites_count(sites));
	g_array_set_size(out, sites_labels(sites));
	for (guint32 s = 0; s < sums->len; s++) {
		const struct site_sum *sum = &g_array_index(sums, struct site_sum, s);
		guint32 label = sites_label(sites, s);
		struct holder *h = &g_array_index(out, struct holder, label);
		h->label = label;
		if (sum->blocks > 0 && (h->blocks == 0 || (guint64)sum->bytes > h->site_bytes)) {
			h->site = s;
			h->site_bytes = (guint64)sum->bytes;
		}
		h->bytes += (guint64)sum->bytes;
		h->blocks += (guint64)sum->blocks;
	}
	g_array_sort(out, by_bytes);
	guint count = 0;
	for (guint i = 0; i < out->len; i++) {
		if (g_array_index(out, struct holder, i).blocks > 0)
			g_array_index(out, struct holder, count++) =
				g_array_index(out, struct holder, i);
	}
	g_array_set_size(out, count);
	return out;
}
