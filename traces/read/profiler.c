/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the tables of Ascend's profilers: operator_memory.csv has a row for each block, without its
 * address; memory_record.csv has sums alone, of each component of the process. Columns are found
 * by name: msprof, torch_npu and MindSpore have different ones.
 */
#include <string.h>

#include "event-sorter.h"
#include "format/units.h"
#include "readers.h"
#include "rows.h"
#include "sites.h"

#define SIZE_END   (G_GINT64_CONSTANT(1) << 46)
#define BLOCK_UNIT 512
#define POOL_BYTES (G_GUINT64_CONSTANT(1) << 47) /* addresses of a component, which are made up */
#define POOLS_MAX  255

/* The columns, each by either of its names, and what its numbers are multiplied by. */
enum { NAME, SIZE, START, END, LENGTH, RESERVED, ALLOCATED, DEVICE, COLUMN_COUNT };
static const struct {
	const char *name, *other;
	guint64 unit;
} columns[COLUMN_COUNT] = {
	[NAME] = { "Name", "Component", 0 },
	[SIZE] = { "Size(KB)", "", KIB },
	[START] = { "Allocation Time(us)", "Timestamp(us)", 1000 },
	[END] = { "Active Release Time(us)", "Release Time(us)", 1000 },
	[LENGTH] = { "Duration(us)", "", 1000 },
	[RESERVED] = { "Total Reserved(MB)", "", MIB },
	[ALLOCATED] = { "Total Allocated(MB)", "", MIB },
	[DEVICE] = { "Device Type", "Device", 0 },
};

struct table {
	struct event_sorter *sorter;
	struct rows *rows;
	guint at[COLUMN_COUNT];        /* G_MAXUINT: it has no such column */
	guint64 next;                  /* address of the next block */
	struct texts pools;            /* components of devices */
	guint64 had[POOLS_MAX + 1][2]; /* their sums: reserved, allocated */
	GError **error;
};

gboolean profiler_recognise(const guint8 *bytes, gsize count)
{
	return readers_begin_with(bytes, count, "Name,Size(KB),Allocation Time(us)") ||
	       readers_begin_with(bytes, count, "Device_id,Name,Size(KB),Allocation Time(us)") ||
	       readers_begin_with(bytes, count, "Component,Timestamp(us),Total Allocated(MB)");
}

/* 1: the row has it; 0: it is empty or N/A, as is what the profiler has not seen; -1 and error. */
static int take(const struct table *t, int column, gint64 *out)
{
	g_autofree char *text = g_strstrip(g_strdup(rows_field(t->rows, t->at[column])));

	if (*text == '\0' || strcmp(text, "N/A") == 0)
		return 0;
	if (rows_scaled(text, columns[column].unit, out) &&
	    (columns[column].unit == 1000 || ABS(*out) < SIZE_END))
		return 1;
	readers_bad(rows_line(t->rows), t->error, "%s is \"%.40s\", no number that can be right",
		    columns[column].name, text);
	return -1;
}

static gboolean add(struct table *t, struct event_row *row, guint32 verb, guint8 rank,
		    guint64 address, guint64 size)
{
	row->row.verb = (guint8)verb;
	row->row.address = address;
	row->row.size = size;
	row->rank = rank;
	return event_sorter_add(t->sorter, row, t->error);
}

/* Of operator_memory.csv. What has a size below zero is the release of a block that was there
 * before. */
static gboolean add_block(struct table *t, struct event_row *row)
{
	const char *name = rows_field(t->rows, t->at[NAME]);
	const struct site_frame frame = { .name = name, .name_length = strlen(name) };
	gint64 size = 0, end = row->order;
	int sized = take(t, SIZE, &size), ends;
	guint64 bytes = (guint64)ABS(size), address = t->next;

	t->next += round_up(bytes + 1, BLOCK_UNIT);
	if (sized <= 0 || t->next >= READERS_ADDRESS_END)
		return sized == 0 || (sized > 0 && readers_bad(row->serial, t->error,
							       "the blocks up to here have more "
							       "than 2^56 bytes"));
	if (size < 0)
		return add(t, row, NPU_TRACE_FREE, 0, address, bytes);
	row->row.text = sites_add(event_sorter_sites(t->sorter), &frame, 1);
	row->row.address = address;
	row->row.size = bytes;
	ends = take(t, END, &end);
	if (ends == 0 && (ends = take(t, LENGTH, &end)) > 0)
		end += row->order;
	return ends >= 0 &&
	       event_sorter_add_block(t->sorter, row, ends > 0 ? end : G_MININT64, t->error);
}

/* Of memory_record.csv: a component's memory grows and shrinks at its end, and one block in it is
 * all that it has allocated. Sums of components, and the whole process's, have their memory too. */
static gboolean add_sums(struct table *t, struct event_row *row)
{
	const char *name = rows_field(t->rows, t->at[NAME]);
	gint64 reserved, allocated;

	if (strchr(name, '+') || strcmp(name, "APP") == 0) {
		row->row.text = event_sorter_note(t->sorter, name);
		return add(t, row, NPU_TRACE_NOTE, 0, 0, 0);
	}
	guint pool = texts_add(&t->pools, g_strdup_printf("%u %s", row->row.device, name));
	if (pool == POOLS_MAX)
		return readers_bad(row->serial, t->error, "more than %d components", POOLS_MAX);
	guint64 *had = t->had[pool], base = (pool + 1) * POOL_BYTES;
	int told = take(t, RESERVED, &reserved);
	told = told > 0 ? take(t, ALLOCATED, &allocated) : told;
	if (told <= 0 || reserved < 0 || allocated < 0)
		return told >= 0;
	const guint64 has[] = { round_up((guint64)reserved, 2 * MIB), (guint64)allocated };
	guint64 low = MIN(had[0], has[0]), high = MAX(had[0], has[0]);
	gboolean ok =
		(has[1] == had[1] || had[1] == 0 || add(t, row, NPU_TRACE_FREE, 0, base, had[1])) &&
		(low == high ||
		 add(t, row, has[0] > had[0] ? NPU_TRACE_SEGMENT_MAP : NPU_TRACE_SEGMENT_UNMAP, 1,
		     base + low, high - low)) &&
		(has[1] == had[1] || has[1] == 0 || add(t, row, NPU_TRACE_ALLOC, 2, base, has[1]));
	memcpy(had, has, sizeof has);
	return ok;
}

static gboolean read_table(struct table *t)
{
	int more = rows_next(t->rows, t->error);

	for (int c = 0; more > 0 && c < COLUMN_COUNT; c++) {
		t->at[c] = rows_column(t->rows, columns[c].name);
		if (t->at[c] == G_MAXUINT)
			t->at[c] = rows_column(t->rows, columns[c].other);
	}
	while (more > 0 && (more = rows_next(t->rows, t->error)) > 0) {
		struct event_row row = { .serial = rows_line(t->rows) };
		/* "NPU:3" */
		const char *device = strchr(rows_field(t->rows, t->at[DEVICE]), ':');
		int timed = take(t, START, &row.order);
		if (timed <= 0)
			return timed == 0 &&
			       readers_bad(row.serial, t->error, "it has no %s: the row breaks off",
					   columns[START].name);
		guint64 id = device ? g_ascii_strtoull(device + 1, NULL, 10) : 0;
		row.row.device = id <= TRACE_DEVICE_LAST ? (guint16)id : 0;
		row.row.time_us = row.order / 1000;
		if (!(t->at[SIZE] == G_MAXUINT ? add_sums : add_block)(t, &row))
			return FALSE;
	}
	return more == 0;
}

struct trace *profiler_read(struct input *input, GError **error)
{
	struct table t = { .sorter = event_sorter_new("table of Ascend's profiler"),
			   .rows = rows_open(input, ','),
			   .next = BLOCK_UNIT,
			   .error = error };

	texts_init(&t.pools);
	gboolean ok = read_table(&t);
	texts_clear(&t.pools);
	rows_close(t.rows);
	input_close(input);
	return event_sorter_finish(t.sorter, ok, FALSE, error);
}
