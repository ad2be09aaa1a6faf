/* SPDX-License-Identifier: Apache-2.0
 *
 * Added at the end, sorted and merged whenever the list has doubled.
 */
#include "spans.h"

#include "by-address.h"

#define MERGE_FROM 1024

void spans_init(struct spans *s)
{
	*s = (struct spans){ .list = g_array_new(FALSE, FALSE, sizeof(struct span)) };
}

void spans_clear(struct spans *s)
{
	g_array_unref(s->list);
}

static void merge(struct spans *s, guint64 gap)
{
	struct span *span = (struct span *)(void *)s->list->data;
	guint kept = 0;

	g_array_sort(s->list, by_address);
	for (guint i = 0; i < s->list->len; i++) {
		if (kept > 0 && (span[i].start <= span[kept - 1].end ||
				 span[i].start - span[kept - 1].end <= gap))
			span[kept - 1].end = MAX(span[kept - 1].end, span[i].end);
		else
			span[kept++] = span[i];
	}
	g_array_set_size(s->list, kept);
	s->sorted = kept;
}

void spans_add(struct spans *s, guint64 start, guint64 end)
{
	struct span span = { .start = start, .end = end };
	if (s->list->len > 0) {
		struct span *last = &g_array_index(s->list, struct span, s->list->len - 1);
		if (start >= last->start && end <= last->end)
			return;
	}
	g_array_append_val(s->list, span);
	if (s->list->len >= MERGE_FROM && s->list->len / 2 >= s->sorted)
		merge(s, 0);
}

const GArray *spans_merged(struct spans *s, guint64 gap)
{
	merge(s, gap);
	return s->list;
}
