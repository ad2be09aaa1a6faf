/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the tables of Ascend's profilers: operator_memory.csv has a row for each block, without its
 * address; memory_record.csv has sums alone, of each component of the process. Columns are found
 * by name: msprof, torch_npu and MindSpore have different ones.
 */
#include "readers.h"

#define SIZE_END   (G_GINT64_CONSTANT(1) << 46)
#define BLOCK_UNIT 512
#define POOL_BYTES (G_GUINT64_CONSTANT(1) << 47) /* addresses of a component, which are made up */
#define POOLS_MAX  255

enum { NAME, SIZE, START, END, LENGTH, RESERVED, ALLOCATED, DEVICE, COLUMN_COUNT };
static const struct row_column columns[COLUMN_COUNT] = {
	[NAME] = { "Name", "Component", TRUE, 0 },
	[SIZE] = { "Size(KB)", NULL, TRUE, KIB },
	[START] = { "Allocation Time(us)", "Timestamp(us)", TRUE, 1000 },
	[END] = { "Active Release Time(us)", "Release Time(us)", TRUE, 1000 },
	[LENGTH] = { "Duration(us)", NULL, TRUE, 1000 },
	[RESERVED] = { "Total Reserved(MB)", NULL, TRUE, MIB },
	[ALLOCATED] = { "Total Allocated(MB)", NULL, TRUE, MIB },
	[DEVICE] = { "Device Type", "Device", TRUE, 0 },
};

struct table {
	struct trace *trace;
	struct rows *rows;
	guint64 next;                  /* address of the next block */
	struct texts pools;            /* components of devices */
	guint64 had[POOLS_MAX + 1][2]; /* their sums: reserved, allocated */
};

/* 1: the row has it; 0: it is empty or N/A, as is what the profiler has not seen; -1 and error. */
static int take(const struct table *t, int column, gint64 *out)
{
	g_autofree char *text = g_strstrip(g_strdup(rows_field(t->rows, (guint)column)));

	if (*text == '\0' || strcmp(text, "N/A") == 0)
		return 0;
	if (number_scaled(text, columns[column].unit, out) &&
	    (columns[column].unit == 1000 || ABS(*out) < SIZE_END))
		return 1;
	rows_bad(t->rows, "%s is \"%.40s\", no number that can be right", columns[column].name,
		 text);
	return -1;
}

static gboolean add(struct table *t, struct trace_row *row, guint32 verb, guint8 rank,
		    guint64 address, guint64 size)
{
	row->verb = (guint8)verb;
	row->address = address;
	row->size = size;
	row->rank = rank;
	return row_list_add(&t->trace->unsorted, row, t->rows->error);
}

/* Of operator_memory.csv. A size below zero is the release of a block that was there before. */
static gboolean add_block(struct table *t, struct trace_row *row)
{
	const char *name = rows_field(t->rows, NAME);
	gint64 size = 0, end = row->order;
	int sized = take(t, SIZE, &size), ends;
	guint64 bytes = (guint64)ABS(size), address = t->next;

	t->next += round_up(bytes + 1, BLOCK_UNIT);
	if (sized <= 0)
		return sized == 0;
	if (t->next > READERS_ADDRESS_LAST)
		return rows_bad(t->rows, "the blocks up to here have more than 2^56 bytes");
	if (size < 0)
		return add(t, row, NPU_TRACE_FREE, 0, address, bytes);
	g_autoptr(GString) frame = g_string_new(NULL);
	site_frame_add(frame, name, strlen(name), NULL, 0, 0);
	row->text = sites_add(trace_sites(t->trace), frame->str);
	row->address = address;
	row->size = bytes;
	ends = take(t, END, &end);
	if (ends == 0 && (ends = take(t, LENGTH, &end)) > 0)
		end += row->order;
	return ends >= 0 &&
	       event_sorter_add_block(t->trace, row, ends > 0 ? end : G_MININT64, t->rows->error);
}

/* Of memory_record.csv: a component's memory grows and shrinks at its end, and one block in it is
 * all that it has allocated. Sums of components, and the whole process's, have their memory too. */
static gboolean add_sums(struct table *t, struct trace_row *row)
{
	const char *name = rows_field(t->rows, NAME);
	gint64 reserved, allocated;

	if (strchr(name, '+') || strcmp(name, "APP") == 0)
		return event_sorter_add_note(t->trace, row, name, t->rows->error);
	guint pool = texts_add(&t->pools, g_strdup_printf("%u %s", row->device, name));
	if (pool == POOLS_MAX)
		return rows_bad(t->rows, "more than %d components", POOLS_MAX);
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

static gboolean read_row(struct rows *rows, gpointer data)
{
	struct table *t = data;
	struct trace_row row = { .serial = rows->line };

	t->rows = rows;
	int timed = take(t, START, &row.order);
	if (timed <= 0)
		return timed == 0 &&
		       rows_bad(rows, "it has no %s: the row breaks off", columns[START].name);
	const char *device = strchr(rows_field(rows, DEVICE), ':'); /* "NPU:3" */
	guint64 id = device ? g_ascii_strtoull(device + 1, NULL, 10) : 0;
	row.device = id <= TRACE_DEVICE_LAST ? (guint16)id : 0;
	row.time_us = row.order / 1000;
	return (rows->at[SIZE] != G_MAXUINT ? add_block : add_sums)(t, &row);
}

gboolean profiler_read(struct trace *trace, struct input *input, GError **error)
{
	struct table t = { .trace = trace, .next = BLOCK_UNIT };

	texts_init(&t.pools);
	gboolean ok = rows_read(input, ',', columns, COLUMN_COUNT, read_row, &t, error);
	texts_clear(&t.pools);
	return ok && event_sorter_finish(trace, FALSE, error);
}
