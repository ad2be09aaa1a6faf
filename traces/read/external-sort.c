/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts more records than fit into memory, for event-sorter.c: sorted runs in a file, merged
 * through a heap of their first records.
 */
#include "external-sort.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "format/temp-file.h"

#define READ_MIN (4u << 10)
#define READ_MAX (256u << 10)
#define HELD_MIN 1024 /* records */

/* Records that lie in order one after another in the file. */
struct run {
	goffset at; /* of the next byte to be read */
	guint64 unread;
	guint8 *buffer;
	gsize count, next; /* records in the buffer, and the first of them */
};
struct external_sort {
	gsize record_bytes;
	external_sort_compare compare;
	guint8 *records;
	gsize room, held, count; /* records of memory: at most, got, in use */
	gsize next;              /* where they are read */
	int fd;                  /* -1: none */
	goffset end;
	GArray *runs;     /* struct run: at and unread as after external_sort_put */
	struct run *open; /* the same, being read */
	guint *heap;      /* of open runs, the one with the least record first */
	guint heap_count;
	gsize read_records; /* of a run at once */
	gboolean started;   /* heap[0] has been handed out */
};

struct external_sort *external_sort_new(gsize record_bytes, gsize memory_bytes,
					external_sort_compare compare)
{
	struct external_sort *s = g_new0(struct external_sort, 1);

	s->record_bytes = record_bytes;
	s->compare = compare;
	s->room = MAX(memory_bytes / record_bytes, 1);
	s->fd = -1;
	s->runs = g_array_new(FALSE, FALSE, sizeof(struct run));
	return s;
}

static void close_runs(struct external_sort *s)
{
	for (guint i = 0; s->open && i < s->runs->len; i++)
		g_free(s->open[i].buffer);
	g_clear_pointer(&s->open, g_free);
	g_clear_pointer(&s->heap, g_free);
}

void external_sort_free(struct external_sort *s)
{
	if (s == NULL)
		return;
	close_runs(s);
	if (s->fd >= 0)
		close(s->fd);
	g_array_unref(s->runs);
	g_free(s->records);
	g_free(s);
}

gboolean external_sort_spilled(const struct external_sort *s)
{
	return s->fd >= 0;
}

/* ---- the file ---- */

static gboolean write_all(struct external_sort *s, const guint8 *bytes, gsize count, GError **error)
{
	if (s->fd < 0)
		s->fd = temp_file_open(error);
	if (s->fd < 0 || !temp_file_write(s->fd, bytes, count, s->end, error))
		return FALSE;
	s->end += (goffset)count;
	return TRUE;
}

/* ---- putting ---- */

static gint compare_with(gconstpointer a, gconstpointer b, gpointer data)
{
	const struct external_sort *s = data;

	return s->compare(a, b);
}

static gboolean is_sorted(const struct external_sort *s)
{
	const guint8 *at = s->records;

	for (gsize i = 1; i < s->count; i++, at += s->record_bytes) {
		if (s->compare(at, at + s->record_bytes) > 0)
			return FALSE;
	}
	return TRUE;
}

static void sort(struct external_sort *s)
{
	if (s->count > 1 && !is_sorted(s))
		g_qsort_with_data(s->records, (gint)s->count, s->record_bytes, compare_with, s);
}

static gboolean spill(struct external_sort *s, GError **error)
{
	struct run run = { .unread = s->count };

	sort(s);
	run.at = s->end;
	if (!write_all(s, s->records, s->count * s->record_bytes, error))
		return FALSE;
	g_array_append_val(s->runs, run);
	s->count = 0;
	return TRUE;
}

gboolean external_sort_put(struct external_sort *s, const void *record, GError **error)
{
	if (s->count == s->room && !spill(s, error))
		return FALSE;
	if (s->count == s->held) {
		s->held = MIN(s->room, MAX(2 * s->held, HELD_MIN));
		s->records = g_realloc_n(s->records, s->held, s->record_bytes);
	}
	memcpy(s->records + s->count * s->record_bytes, record, s->record_bytes);
	s->count++;
	return TRUE;
}

/* ---- reading ---- */

static gboolean fill(struct external_sort *s, struct run *run, GError **error)
{
	gsize count = (gsize)MIN(run->unread, s->read_records);
	gsize bytes = count * s->record_bytes, got = 0;

	while (got < bytes) {
		ssize_t n = pread(s->fd, run->buffer + got, bytes - got, run->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* somebody cut it */
		if (n <= 0)
			return temp_file_fail("read", error);
		got += (gsize)n;
		run->at += n;
	}
	run->unread -= count;
	run->count = count;
	run->next = 0;
	return TRUE;
}

static const void *first_of(const struct external_sort *s, guint run)
{
	return s->open[run].buffer + s->open[run].next * s->record_bytes;
}

static gboolean before(const struct external_sort *s, guint a, guint b)
{
	int order = s->compare(first_of(s, a), first_of(s, b));

	return order ? order < 0 : a < b;
}

static void sift_down(struct external_sort *s, guint at)
{
	for (guint child = 2 * at + 1; child < s->heap_count; child = 2 * at + 1) {
		child += child + 1 < s->heap_count && before(s, s->heap[child + 1], s->heap[child]);
		if (before(s, s->heap[at], s->heap[child]))
			return;
		guint swap = s->heap[at];
		s->heap[at] = s->heap[child];
		s->heap[child] = swap;
		at = child;
	}
}

static gboolean open_runs(struct external_sort *s, GError **error)
{
	gsize bytes = s->room * s->record_bytes / s->runs->len;

	s->read_records = MAX(CLAMP(bytes, READ_MIN, READ_MAX) / s->record_bytes, 1);
	s->open = g_memdup2(s->runs->data, s->runs->len * sizeof(struct run));
	s->heap = g_new(guint, s->runs->len);
	s->heap_count = 0;
	for (guint i = 0; i < s->runs->len; i++) {
		s->open[i].buffer = g_malloc_n(s->read_records, s->record_bytes);
		if (!fill(s, &s->open[i], error))
			return FALSE;
		s->heap[s->heap_count++] = i;
	}
	for (guint i = s->heap_count / 2; i > 0; i--)
		sift_down(s, i - 1);
	return TRUE;
}

gboolean external_sort_rewind(struct external_sort *s, GError **error)
{
	s->started = FALSE;
	s->next = 0;
	if (s->fd < 0) {
		sort(s);
		return TRUE;
	}
	if (s->count > 0 && !spill(s, error))
		return FALSE;
	g_clear_pointer(&s->records, g_free);
	close_runs(s);
	return open_runs(s, error);
}

/* What was handed out last goes. */
static gboolean step_over(struct external_sort *s, GError **error)
{
	struct run *run = &s->open[s->heap[0]];

	run->next++;
	if (run->next == run->count && run->unread > 0 && !fill(s, run, error))
		return FALSE;
	if (run->next == run->count)
		s->heap[0] = s->heap[--s->heap_count];
	sift_down(s, 0);
	return TRUE;
}

int external_sort_next(struct external_sort *s, const void **out, GError **error)
{
	if (s->fd < 0) {
		if (s->next == s->count)
			return 0;
		*out = s->records + s->next++ * s->record_bytes;
		return 1;
	}
	if (s->started && s->heap_count > 0 && !step_over(s, error))
		return -1;
	s->started = TRUE;
	if (s->heap_count == 0)
		return 0;
	*out = first_of(s, s->heap[0]);
	return 1;
}
