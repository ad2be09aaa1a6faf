/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the summary of a trace for the readers of files, and serves rows in memory as one source
 * of its records.
 */
#include "trace.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "format/memory-limit.h"
#include "format/units.h"

const struct trace_action trace_actions[TRACE_ACTIONS] = {
	{ NPU_TRACE_ALLOC, "alloc" },
	{ NPU_TRACE_FREE_REQUESTED, "free_requested" },
	{ NPU_TRACE_FREE, "free_completed" },
	{ NPU_TRACE_SEGMENT_ALLOC, "segment_alloc" },
	{ NPU_TRACE_SEGMENT_FREE, "segment_free" },
	{ NPU_TRACE_SEGMENT_MAP, "segment_map" },
	{ NPU_TRACE_SEGMENT_UNMAP, "segment_unmap" },
	{ NPU_TRACE_OOM, "oom" },
};

static void make_item(const struct trace *trace, const struct trace_row *row,
		      struct record_item *out)
{
	struct npu_trace_record *r = &out->record;

	memset(out, 0, sizeof *out);
	r->verb = row->verb;
	r->has = NPU_TRACE_HAS_DEVICE | (row->small ? NPU_TRACE_HAS_SMALL : 0u);
	r->device = row->device;
	r->page_lg2 = 21;
	r->size = row->size;
	r->stream = (guint64)row->stream;
	r->has |= row->size || row->verb != NPU_TRACE_NOTE ? NPU_TRACE_HAS_SIZE : 0u;
	r->has |= row->stream ? NPU_TRACE_HAS_STREAM : 0u;
	r->has |= row->start ? NPU_TRACE_HAS_START : 0u;
	if (row->verb == NPU_TRACE_OOM) {
		r->has |= NPU_TRACE_HAS_FREE;
		r->free_bytes = row->address;
	} else {
		r->has |= NPU_TRACE_HAS_VA;
		r->va = row->address;
	}
	if (row->verb == NPU_TRACE_NOTE) {
		r->has |= NPU_TRACE_HAS_OP;
		r->op = g_ptr_array_index(trace->notes.list, row->text);
	} else {
		out->site = row->text;
	}
	out->device = trace_device_index(trace, row->device);
	out->address = row->address;
	out->size = row->size;
	out->time_us = row->time_us;
}

struct row_store {
	sqlite3 *db;
	sqlite3_stmt *insert, *sorted;
	guint64 count;
};

static gsize memory_bytes = ROW_STORE_MEMORY_BYTES;

void row_store_set_memory(gsize bytes)
{
	memory_bytes = bytes;
}

/* FALSE and error: what SQLite cannot do. */
static gboolean failed(struct row_store *s, GError **error)
{
	if (sqlite3_errcode(s->db) == SQLITE_NOMEM &&
	    !memory_limit_ask(G_MAXINT64, error, "its %" G_GUINT64_FORMAT " rows", s->count))
		return FALSE;
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
		      "%s: a temporary file for rows that do not fit into memory cannot be used: "
		      "%s; TMPDIR names another folder",
		      temp_file_folder(), sqlite3_errmsg(s->db));
}

/* An empty name: a file that nobody else sees, which is there once its pages fill the cache. What
 * fails here makes the first row fail. */
struct row_store *row_store_new(void)
{
	struct row_store *s = g_new0(struct row_store, 1);
	g_autofree char *set_up =
		g_strdup_printf("PRAGMA journal_mode = OFF;"
				"PRAGMA page_size = 16384;"
				"PRAGMA cache_size = -%" G_GSIZE_FORMAT ";"
				"CREATE TABLE rows(key PRIMARY KEY, row) WITHOUT ROWID;"
				"BEGIN",
				memory_bytes / 1024 + 1);

	if (sqlite3_open_v2("", &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) == SQLITE_OK)
		sqlite3_exec(s->db, set_up, NULL, NULL, NULL);
	sqlite3_prepare_v2(s->db, "INSERT INTO rows VALUES(?, ?)", -1, &s->insert, NULL);
	sqlite3_prepare_v2(s->db, "SELECT row FROM rows ORDER BY key", -1, &s->sorted, NULL);
	return s;
}

void row_store_free(struct row_store *s)
{
	if (s == NULL)
		return;
	sqlite3_finalize(s->insert);
	sqlite3_finalize(s->sorted);
	sqlite3_close(s->db);
	g_free(s);
}

gboolean row_store_add(struct row_store *s, const struct trace_row *row, gint64 order, guint8 rank,
		       guint64 serial, GError **error)
{
	/* bytes that compare as the numbers do, one after another: the fastest key of SQLite */
	guint64 key[] = { GUINT64_TO_BE((guint64)order ^ G_GUINT64_CONSTANT(1) << 63),
			  GUINT64_TO_BE(rank), GUINT64_TO_BE(serial), GUINT64_TO_BE(s->count) };

	if (s->count == memory_bytes / sizeof *row) {
		/* SQLite would take another folder silently */
		int fd = temp_file_open(error);
		if (fd < 0)
			return FALSE;
		close(fd);
	}
	s->count++;
	sqlite3_bind_blob(s->insert, 1, key, sizeof key, SQLITE_STATIC);
	sqlite3_bind_blob(s->insert, 2, row, sizeof *row, SQLITE_STATIC);
	sqlite3_step(s->insert);
	return sqlite3_reset(s->insert) == SQLITE_OK || failed(s, error);
}

gboolean row_store_rewind(struct row_store *s, GError **error)
{
	return sqlite3_reset(s->sorted) == SQLITE_OK || failed(s, error);
}

int row_store_next(struct row_store *s, struct trace_row *out, GError **error)
{
	int more = sqlite3_step(s->sorted);

	if (more == SQLITE_ROW)
		memcpy(out, sqlite3_column_blob(s->sorted, 0), sizeof *out);
	return more == SQLITE_ROW ? 1 : more == SQLITE_DONE || failed(s, error) ? 0 : -1;
}

static struct row_store *store(struct trace *trace)
{
	if (trace->data == NULL)
		trace->data = row_store_new();
	return trace->data;
}

static gboolean rows_rewind(struct trace *trace, GError **error)
{
	return trace->data == NULL || row_store_rewind(trace->data, error);
}

static int rows_next(struct trace *trace, struct record_item *out, GError **error)
{
	struct trace_row row;
	int more = trace->data ? row_store_next(trace->data, &row, error) : 0;

	if (more > 0)
		make_item(trace, &row, out);
	return more;
}

static void rows_close(struct trace *trace)
{
	row_store_free(trace->data);
}

static void device_free(gpointer data)
{
	struct trace_device *device = data;

	spans_clear(&device->maps);
	spans_clear(&device->cuts);
	texts_clear(&device->others);
	g_array_unref(device->other_counts);
	g_free(device);
}

struct trace *trace_new(const char *kind)
{
	static const struct trace_source source = { rows_rewind, rows_next, rows_close };
	struct trace *trace = g_new0(struct trace, 1);

	trace->source = &source;
	trace->devices = g_ptr_array_new_with_free_func(device_free);
	trace->kind = g_strdup(kind);
	texts_init(&trace->notes);
	return trace;
}

void trace_free(struct trace *trace)
{
	if (trace == NULL)
		return;
	trace->source->close(trace);
	g_ptr_array_unref(trace->devices);
	texts_clear(&trace->notes);
	sites_free(trace->sites);
	g_free(trace->kind);
	g_free(trace->soc);
	g_free(trace->about);
	g_free(trace);
}

guint trace_device_index(const struct trace *trace, gint64 id)
{
	for (guint at = 0; at < trace->devices->len; at++) {
		if (((struct trace_device *)g_ptr_array_index(trace->devices, at))->device == id)
			return at;
	}
	return G_MAXUINT;
}

static gint by_id(gconstpointer a, gconstpointer b)
{
	const struct trace_device *x = *(struct trace_device *const *)a,
				  *y = *(struct trace_device *const *)b;

	return x->device < y->device ? -1 : x->device > y->device;
}

struct trace_device *trace_device(struct trace *trace, guint id)
{
	guint at = trace_device_index(trace, id);

	if (at != G_MAXUINT)
		return g_ptr_array_index(trace->devices, at);
	struct trace_device *device = g_new0(struct trace_device, 1);
	device->device = id;
	spans_init(&device->maps);
	spans_init(&device->cuts);
	texts_init(&device->others);
	device->other_counts = g_array_new(FALSE, TRUE, sizeof(guint64));
	g_ptr_array_add(trace->devices, device);
	g_ptr_array_sort(trace->devices, by_id);
	return device;
}

guint32 trace_note(struct trace *trace, const char *name)
{
	return texts_add(&trace->notes, g_utf8_make_valid(name, -1));
}

struct sites *trace_sites(struct trace *trace)
{
	if (trace->sites == NULL)
		trace->sites = sites_new();
	return trace->sites;
}

void trace_device_note_map(struct trace_device *device, guint64 address, guint64 size)
{
	if (size > 0)
		spans_add(&device->maps, address / GIB * GIB, round_up(address + size, GIB));
}

void trace_count(struct trace *trace, guint id, guint32 verb, guint64 address, guint64 size,
		 const char *note)
{
	struct trace_device *device = trace_device(trace, id);

	device->counts[verb]++;
	if (verb == NPU_TRACE_SEGMENT_MAP)
		trace_device_note_map(device, address, size);
	if (verb == NPU_TRACE_SEGMENT_UNMAP) {
		spans_add(&device->cuts, address, address + 1);
		spans_add(&device->cuts, address + size, address + size + 1);
	}
	if (verb == NPU_TRACE_NOTE) {
		guint index = texts_add(&device->others, g_strdup(note));
		if (index == device->other_counts->len)
			g_array_set_size(device->other_counts, index + 1);
		g_array_index(device->other_counts, guint64, index)++;
	}
}

gboolean trace_add_row(struct trace *trace, const struct trace_row *row, GError **error)
{
	gboolean note = row->verb == NPU_TRACE_NOTE;

	trace_count(trace, row->device, row->verb, row->address, row->size,
		    note ? g_ptr_array_index(trace->notes.list, row->text) : NULL);
	trace->events++;
	return row_store_add(store(trace), row, row->device, 0, 0, error);
}

gboolean record_is_of_start(const struct npu_trace_record *record)
{
	return (record->has & NPU_TRACE_HAS_START) &&
	       (record->verb == NPU_TRACE_ALLOC || record->verb == NPU_TRACE_SEGMENT_ALLOC ||
		record->verb == NPU_TRACE_SEGMENT_MAP);
}

gboolean trace_add_start(struct trace *trace, const struct trace_row *row, GError **error)
{
	struct trace_device *device = trace_device(trace, row->device);
	struct trace_row start = *row;

	start.start = TRUE;
	if (row->verb == NPU_TRACE_SEGMENT_MAP)
		trace_device_note_map(device, row->address, row->size);
	/* in front of all events, in the order of addresses */
	return row_store_add(store(trace), &start, G_MININT32 + row->device,
			     row->verb == NPU_TRACE_ALLOC, row->address, error);
}
