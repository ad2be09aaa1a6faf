/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the lines of a history that diff-align.c is comparing: an array with a gap at its front,
 * which is closed now and then.
 */
#include "diff.h"

#include <string.h>

#define GRAM      3u
#define KEEP      3u
#define CLOSE_AT  8192u
#define AFTER_END G_GUINT64_CONSTANT(0x9ddfea08eb382d69)

struct window {
	struct record_reader *reader;
	struct tracker *tracker;
	GArray *lines; /* struct window_line */
	guint next;    /* in it */
	guint64 taken;
	gboolean ended;
	GHashTable *streams;   /* stream -> order of appearance */
	GStringChunk *strings; /* names of calls */
};

struct window *window_new(struct record_reader *reader, struct tracker *tracker)
{
	struct window *w = g_new0(struct window, 1);

	w->reader = reader;
	w->tracker = tracker;
	w->lines = g_array_new(FALSE, FALSE, sizeof(struct window_line));
	w->streams = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	w->strings = g_string_chunk_new(256);
	return w;
}

void window_free(struct window *w)
{
	g_array_unref(w->lines);
	g_hash_table_unref(w->streams);
	g_string_chunk_free(w->strings);
	g_free(w);
}

static guint64 mix(guint64 h, guint64 value)
{
	h = (h ^ value) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static guint stream_of(struct window *w, const struct npu_trace_record *r)
{
	guint64 stream = r->stream;
	guint n = GPOINTER_TO_UINT(g_hash_table_lookup(w->streams, &stream));

	if (n == 0) {
		n = g_hash_table_size(w->streams) + 1;
		g_hash_table_insert(w->streams, g_memdup2(&stream, sizeof stream),
				    GUINT_TO_POINTER(n));
	}
	return n;
}

static gboolean is_free(guint32 verb)
{
	return verb == NPU_TRACE_FREE || verb == NPU_TRACE_FREE_REQUESTED ||
	       verb == NPU_TRACE_SEGMENT_FREE;
}

static void look(struct window *w, struct window_line *l)
{
	const struct npu_trace_record *r = &l->line.item.record;
	gboolean streams = r->verb == NPU_TRACE_ALLOC || r->verb == NPU_TRACE_SEGMENT_ALLOC ||
			   r->verb == NPU_TRACE_SEGMENT_MAP;
	guint64 h = mix(AFTER_END, r->verb);

	h = mix(h, (guint64)l->line.device);
	h = mix(h, (guint64)(guint32)r->code);
	h = mix(h, is_free(r->verb) ? 0 : r->size);
	h = mix(h, (guint64)l->line.offset);
	h = mix(h, r->flags);
	h = mix(h, r->align << 8 | r->page_lg2);
	h = mix(h, r->free_bytes);
	h = mix(h, r->at.offset);
	h = mix(h, r->from.offset);
	h = mix(h, l->line.item.number == 0);
	h = mix(h, streams ? stream_of(w, r) : 0);
	if (r->op)
		h = mix(h, g_str_hash(r->op));
	l->looks_free = h;
	l->looks = mix(h, l->line.had ? l->line.had : is_free(r->verb) ? r->size : 0);
}

static void close_hole(struct window *w)
{
	if (w->next > CLOSE_AT)
		g_array_remove_range(w->lines, 0, w->next - KEEP);
	if (w->next > CLOSE_AT)
		w->next = KEEP;
}

gboolean window_fill(struct window *w, guint lines, GError **error)
{
	struct record_item item;
	int more = 1;

	close_hole(w);
	while (!w->ended && w->lines->len - w->next < lines &&
	       (more = record_reader_next(w->reader, &item, error)) > 0) {
		if (item.record.op)
			item.record.op = g_string_chunk_insert_const(w->strings, item.record.op);
		item.record.site = NULL;
		guint at = w->lines->len;
		g_array_set_size(w->lines, at + 1);
		struct window_line *l = &g_array_index(w->lines, struct window_line, at);
		tracker_step(w->tracker, &item, &l->line);
		look(w, l);
	}
	w->ended = w->ended || more == 0;
	return more >= 0;
}

guint window_length(const struct window *w)
{
	return w->lines->len - w->next;
}

const struct window_line *window_at(const struct window *w, guint index)
{
	return index < window_length(w)
		       ? &g_array_index(w->lines, struct window_line, w->next + index)
		       : NULL;
}

void window_take(struct window *w, guint lines)
{
	w->next += lines;
	w->taken += lines;
}

guint64 window_taken(const struct window *w)
{
	return w->taken;
}

guint window_past(const struct window *w)
{
	return w->next;
}

const struct window_line *window_before(const struct window *w, guint back)
{
	return back <= w->next && back > 0
		       ? &g_array_index(w->lines, struct window_line, w->next - back)
		       : NULL;
}

guint window_grams(const struct window *w)
{
	guint length = window_length(w);

	return w->ended ? length + 1 : length - MIN(length, GRAM - 1);
}

guint64 window_gram(const struct window *w, guint index)
{
	guint64 h = 0;

	for (guint i = 0; i < GRAM; i++) {
		const struct window_line *l = window_at(w, index + i);
		h = mix(h, l ? l->looks : AFTER_END);
	}
	return h;
}
