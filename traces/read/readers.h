/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of files, one per format, and what they share. Each fills in a trace, and names the
 * line of any damage. What a reader leaves out is counted by its name among the events of its
 * device.
 */
#ifndef NPUSIM_TRACES_READERS_H
#define NPUSIM_TRACES_READERS_H

#include <json-glib/json-glib.h>

#include "trace.h"

/* Into an empty trace, from the first byte on. FALSE and error. */
typedef gboolean reader_fn(struct trace *trace, struct input *input, GError **error);

reader_fn snapshot_read;    /* memory snapshots of PyTorch and torch_npu */
reader_fn npusim_read;      /* traces/FORMAT.md; takes the input over, on failure too */
reader_fn memscope_read;    /* msMemScope (msLeaks), CSV */
reader_fn memscope_db_read; /* the same as a SQLite database */
reader_fn mindspore_read;   /* MindSpore's memory_block.csv, whatever columns its version has */
reader_fn stalloc_read;     /* STAlloc's mem_log_dev*.txt */
reader_fn timeline_read;    /* [memory] events of PyTorch's profiler, in JSON for Chrome */
reader_fn profiler_read;    /* operator_memory.csv and memory_record.csv of Ascend's profilers */

/* The trace that a reader makes of an input, which is taken over, on failure too; `kind`: for
 * people. NULL and error. */
struct trace *readers_read(reader_fn *read, const char *kind, struct input *input, GError **error);

#define READERS_ADDRESS_LAST ((G_GUINT64_CONSTANT(1) << 56) - 1) /* those behind it are damage */

/* Whether a file begins as JSON does. */
gboolean readers_is_json(const guint8 *bytes, gsize count);
/* Whether a file is JSON and no trace, as results of npusim are. FALSE and error: not readable. */
gboolean readers_file_is_result(const char *path, gboolean *out, GError **error);

/* ---- rows in any order, of files with addresses: they are sorted by time, and each free gets the
 * size of what it frees. What is freed without having been allocated was live at the start. Memory
 * use depends on what is live at one time, not on the length of the history. ---- */

#define EVENT_SORTER_ANY_DEVICE G_MAXUINT16 /* of a SEGMENT_FREE: as its SEGMENT_ALLOC */

/* What a reader adds to trace.unsorted: ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, and what is
 * passed on as it is: SEGMENT_MAP, SEGMENT_UNMAP, NOTE. `order` is the time, whatever its unit;
 * `text` of a SEGMENT_FREE of any device what it is noted as if there is none. */

/* Adds a NOTE of that name, at the row's time and on its device. */
gboolean event_sorter_add_note(struct trace *trace, struct trace_row *row, const char *name,
			       GError **error);

/* Adds a block from row->order to `end`; for ever, if that is before it. One that goes makes room
 * for those that come then, unless it came then itself. Where rows have times, their order is in
 * ns. */
gboolean event_sorter_add_block(struct trace *trace, struct trace_row *row, gint64 end,
				GError **error);

/* Puts the history of trace.unsorted into the trace. `doubled`: the file has segments alone, each
 * of which is a block as well. FALSE and error where a file of rows cannot be used. */
gboolean event_sorter_finish(struct trace *trace, gboolean doubled, GError **error);

/* ---- JSON ---- */

#define JSON_DEPTH_MAX 128

/* Each is told by the names of its members. */
enum json_kind {
	JSON_OTHER,
	JSON_SNAPSHOT, /* of PyTorch's or torch_npu's _snapshot() or memory_snapshot() */
	JSON_TIMELINE, /* of Kineto, or another one for Chrome */
};

/* A whole text as json-glib, which recurses, builds it. NULL and error, with the line and the
 * column: it is no valid JSON, is nested more than JSON_DEPTH_MAX deep, has comments, or needs more
 * than the limit on memory (input.h); or `result`, and it is a trace: TRACE_ERROR_UNKNOWN. */
JsonNode *json_load(const guint8 *bytes, gsize count, gboolean result, GError **error);

/* ---- rows of a text file, split into fields: comma-separated with a header and quotes that may
 * contain commas and line ends, or separated by spaces ---- */

/* What the rows are read for. */
struct row_column {
	const char *name, *other; /* in the header: either of them; other may be NULL */
	gboolean optional;        /* no row needs it */
	guint64 unit;             /* what its numbers are multiplied by: number_scaled() */
};
struct rows {
	GError **error; /* that what follows sets */
	guint64 line;   /* that the row begins in */
	const struct row_column *columns;
	guint *at;         /* where each is among the fields; G_MAXUINT: there is none */
	GPtrArray *fields; /* of the row */
	/* below: rows.c alone */
	struct input *input;
	char separator;
	guint needed;          /* fields that a row needs at least */
	const char *needed_by; /* column */
	GString *text;         /* of the row: the fields lie in it */
};

/* Takes each row that is not empty. separator: ',' with quotes and a header, in which the columns
 * are found; ' ' any number of blanks, no quotes, and the columns in their order. FALSE and error:
 * the header lacks a column, a row breaks off in front of one, or what `take` says. */
gboolean rows_read(struct input *input, char separator, const struct row_column *columns,
		   guint count, gboolean (*take)(struct rows *rows, gpointer data), gpointer data,
		   GError **error);
/* "" where it is not there. */
const char *rows_field(const struct rows *rows, guint column);
/* Sets the error, with the line. Always FALSE. */
#define rows_bad(rows, ...) line_bad((rows)->line, (rows)->error, __VA_ARGS__)
/* The field as an address or a size; FALSE and error. */
gboolean rows_number(const struct rows *rows, guint column, guint64 *out);

/* A decimal number, with a sign or none. */
#define number_signed(text, out) \
	g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, out, NULL)
/* A number that may have digits behind a point: times `unit`, rounded. */
gboolean number_scaled(const char *text, guint64 unit, gint64 *out);

/* ---- pickle.c: a reader of Python pickles, protocols 2 to 5, that accepts plain data only: None,
 * bool, int, float, str, bytes, list, tuple, dict. Anything that would make Python import or call
 * something is refused, with its position: no class is ever loaded. It runs no code, never
 * recurses, and uses memory in proportion to the file. ---- */

enum pickle_type {
	PICKLE_EMPTY, /* no value */
	PICKLE_NONE,  /* also an integer of more than 64 bits */
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_FLOAT,
	PICKLE_STR,  /* also bytes */
	PICKLE_LIST, /* also tuple */
	PICKLE_DICT
};

/* Of struct pickle_value; of a dict keys and values in turn. */
struct pickle_list {
	struct pickle_value *items;
	guint len, room; /* room: pickle.c alone */
};
struct pickle_value {
	enum pickle_type type;
	guint32 length; /* of text */
	union {
		gint64 integer; /* BOOL, INT */
		double real;
		const char *text;         /* STR; not terminated */
		struct pickle_list *list; /* LIST, DICT */
	};
};
#define pickle_item(v, index) (&(v)->list->items[index])

struct pickle; /* the value and the memory that it lies in */

/* Reads one pickle, or a file that has the values as JSON instead; *out_bytes, if it is wanted: its
 * size. NULL and error otherwise, of a pickle with the byte offset: damaged (truncated, an opcode
 * out of place), or refused (a class, a call, a set). */
struct pickle *pickle_read_input(struct input *input, gsize *out_bytes, GError **error);
void pickle_free(struct pickle *pickle);
const struct pickle_value *pickle_root(const struct pickle *pickle);

/* The value under a string key of a dict, or NULL. */
const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);
/* The integer under a key; False if it is absent or no integer. */
gboolean pickle_get_int(const struct pickle_value *dict, const char *key, gint64 *out);
/* The number under a key, or the one that a string there is, in thousandths. */
gboolean pickle_get_thousandths(const struct pickle_value *dict, const char *key, gint64 *out);
/* True if v is the string `text`. */
gboolean pickle_is(const struct pickle_value *v, const char *text);

#endif
