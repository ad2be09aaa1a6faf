/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps the rows, and sorts them by merging runs that are in order, from one map into another: it
 * goes through a file from one end to the other, and files that are nearly sorted take few passes.
 */
#include "trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define LET_GO_EVERY (1u << 15) /* looks: with all that they had to be read for, 2 MiB */

static gsize memory_bytes = ROW_LIST_MEMORY_BYTES;

void row_list_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

/* What is there stays: a file grows, and takes over what was in memory. */
static gboolean make_room(struct row_list *list, guint64 room, GError **error)
{
	gsize bytes = room * sizeof *list->rows;
	gboolean in_memory = list->file == 0, in_file = bytes > memory_bytes;

	if (in_file && in_memory)
		list->file = temp_file_open(error) + 1;
	if (in_file && list->file == 0)
		return FALSE;
	/* a write to a map has no other way to tell of a full disk than a signal */
	errno = in_file ? posix_fallocate(list->file - 1, 0, (off_t)bytes) : 0;
	void *rows =
		errno ? MAP_FAILED
		      : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     in_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, list->file - 1, 0);
	if (rows == MAP_FAILED)
		return temp_file_failed("written", error);
	if (in_memory && list->rows)
		memcpy(rows, list->rows, list->count * sizeof *list->rows);
	if (list->rows)
		munmap(list->rows, list->room * sizeof *list->rows);
	list->rows = rows;
	list->room = room;
	return TRUE;
}

void row_list_clear(struct row_list *list)
{
	if (list->rows)
		munmap(list->rows, list->room * sizeof *list->rows);
	if (list->file)
		close(list->file - 1);
	*list = (struct row_list){ 0 };
}

gboolean row_list_add(struct row_list *list, const struct trace_row *row, GError **error)
{
	if (list->count == list->room &&
	    !make_room(list, MAX(2 * list->room, memory_bytes / sizeof *row), error))
		return FALSE;
	*row_list_at(list, list->count++) = *row;
	return TRUE;
}

struct trace_row *row_list_at(struct row_list *list, guint64 index)
{
	if (list->file && ++list->looks % LET_GO_EVERY == 0)
		madvise(list->rows, list->room * sizeof *list->rows, MADV_DONTNEED);
	return &list->rows[index];
}

static gboolean is_before(const struct row_list *list, const struct trace_row *a,
			  const struct trace_row *b)
{
	gint by_device =
		list->by_device ? COMPARE(b->start, a->start) ?: COMPARE(a->device, b->device) : 0;

	return (by_device ?: COMPARE(a->order, b->order) ?: COMPARE(a->rank, b->rank)
		?: COMPARE(a->serial, b->serial)) < 0;
}

/* Where the rows from `at` on are in order no more. */
static guint64 run_end(struct row_list *list, guint64 at)
{
	do
		at++;
	while (at < list->count && !is_before(list, row_list_at(list, at), &list->rows[at - 1]));
	return MIN(at, list->count);
}

/* Every two runs become one. */
static void merge_runs(struct row_list *from, struct row_list *to)
{
	for (guint64 at = 0; at < from->count;) {
		guint64 a = at, middle = run_end(from, at), b = middle, end = run_end(from, middle);
		for (; at < end; at++) {
			gboolean first = b == end || (a < middle && !is_before(from, &from->rows[b],
									       &from->rows[a]));
			*row_list_at(to, at) = *row_list_at(from, first ? a++ : b++);
		}
	}
}

gboolean row_list_sort(struct row_list *list, gboolean by_device, GError **error)
{
	struct row_list other = { .count = list->count, .by_device = by_device };

	list->by_device = by_device;
	gboolean sorted = run_end(list, 0) == list->count;
	gboolean ok = sorted || make_room(&other, list->room, error);

	for (; ok && !sorted; sorted = run_end(list, 0) == list->count) {
		merge_runs(list, &other);
		const struct row_list merged = other;
		other = *list;
		*list = merged;
	}
	row_list_clear(&other);
	return ok;
}
