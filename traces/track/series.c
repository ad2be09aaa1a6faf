/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the points of a series, and merges them in pairs when there are too many.
 */
#include "series.h"

void series_init(struct series *s)
{
	*s = (struct series){ .points = g_array_new(FALSE, FALSE, sizeof(struct series_point)),
			      .stride = 1 };
}

void series_clear(struct series *s)
{
	if (s->points)
		g_array_unref(s->points);
	s->points = NULL;
}

gboolean series_is_more(const struct memory_sums *a, const struct memory_sums *b)
{
	return b->physical != a->physical ? b->physical > a->physical : b->live > a->live;
}

/* The one that says more: of two alike, the first. */
static const struct series_point *more(const struct series_point *a, const struct series_point *b)
{
	return series_is_more(&a->sums, &b->sums) ? b : a;
}

static void halve(struct series *s)
{
	struct series_point *p = (struct series_point *)s->points->data;
	guint kept = 1; /* the start stays by itself */

	for (guint i = 1; i < s->points->len; i += 2)
		p[kept++] = i + 1 < s->points->len ? *more(&p[i], &p[i + 1]) : p[i];
	g_array_set_size(s->points, kept);
	s->stride *= 2;
}

void series_add(struct series *s, guint64 event, const struct memory_sums *sums)
{
	struct series_point point = { .event = event, .sums = *sums }, *at;

	s->last = point;
	if (s->points->len > 1 && s->open > 0 && s->open < s->stride) {
		at = &g_array_index(s->points, struct series_point, s->points->len - 1);
		*at = *more(at, &point);
		s->open++;
		return;
	}
	/* the end needs a point of its own */
	if (s->points->len >= SERIES_POINTS_MAX - 1)
		halve(s);
	g_array_append_val(s->points, point);
	s->open = 1;
}

void series_end(struct series *s)
{
	guint n = s->points->len;

	if (n > 0 && g_array_index(s->points, struct series_point, n - 1).event != s->last.event)
		g_array_append_val(s->points, s->last);
}
