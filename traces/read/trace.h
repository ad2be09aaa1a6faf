/* SPDX-License-Identifier: Apache-2.0
 *
 * The summary of a trace, whatever file it came from: its devices, the counts of each, and the
 * source of its records. Readers of files fill it in; replay, convert, diff and reports query it,
 * and read the records themselves through record-reader.h.
 */
#ifndef NPUSIM_TRACES_TRACE_H
#define NPUSIM_TRACES_TRACE_H

#include "by-address.h"
#include "format/trace-reader.h"
#include "npusim/trace.h"
#include "sites.h"
#include "trace/line.h"

/* An allocator's events with their names in files, in the order of reports. */
struct trace_action {
	guint32 verb;
	const char *name;
};
#define TRACE_ACTIONS 8
extern const struct trace_action trace_actions[TRACE_ACTIONS];

#define RECORD_NO_DEVICE (-2) /* record.device of a line that has none */

/* A record, and what a line of the file need not say of it. */
struct record_item {
	struct npu_trace_record record;
	guint64 number; /* of the event, counted from 1; 0: it was there at the start */
	guint32 site;   /* of the trace's sites; 0: the file has none */
	guint device;   /* index in trace.devices; G_MAXUINT: it is on none of them */

	/* Of an allocator's event. */
	guint64 address; /* equal for what belongs together, and for nothing else in the file: its
			    own, or one made for the name; of OOM: bytes that were free */
	guint64 size;    /* also where a line that frees a segment has none */
	gint64 time_us;  /* the file's clock; 0: it has none */
};

/* Whether it tells of memory or of a block that was there when the history began. */
gboolean record_is_of_start(const struct npu_trace_record *record);

/* A record of a file that has addresses and no names, as it waits to be read. */
struct trace_row {
	guint64 address; /* first: by-address.h */
	guint64 size;
	gint64 stream, time_us;
	guint32 text; /* NOTE: of trace_note(); else of trace.sites, 0: the file has none */
	guint16 device;
	guint8 verb;      /* enum npu_trace_verb: an allocator's */
	guint8 small : 1; /* from the small pool: 2 MiB handles */
	guint8 start : 1; /* it was there when the history began */
};

/* Rows in a private database of SQLite, which has them in a temporary file where they are many:
 * they come back sorted, as often as wanted. */
#define ROW_STORE_MEMORY_BYTES (4u << 20) /* rows beyond it wait in a file */
/* What stores made from now on have instead: for tests. */
void row_store_set_memory(gsize bytes);

struct row_store;
struct row_store *row_store_new(void);
void row_store_free(struct row_store *store);
/* To come behind those of a lower order, of one order those of a lower rank, then of a lower
 * serial, then those that were added before. FALSE and error, which names the folder, where there
 * is no room for it in a file. */
gboolean row_store_add(struct row_store *store, const struct trace_row *row, gint64 order,
		       guint8 rank, guint64 serial, GError **error);
/* Back to the first. FALSE and error. */
gboolean row_store_rewind(struct row_store *store, GError **error);
/* 1: a row; 0: the end; -1 and error. */
int row_store_next(struct row_store *store, struct trace_row *out, GError **error);

struct trace_device {
	guint device;
	guint block_unit;     /* the allocator's blocks are multiples of it; 0: not known */
	gboolean of_process;  /* segments are all that the process got, not one allocator's */
	struct spans maps;    /* addresses of expandable segments, in GiB */
	struct spans cuts;    /* where parts of them are unmapped: [address, address + 1) */
	struct texts others;  /* names of notes, and */
	GArray *other_counts; /* guint64: how many, which are else skipped */
	guint64 counts[NPU_TRACE_VERB_COUNT]; /* of events */
};
struct trace {
	GPtrArray *devices;  /* struct trace_device *, those with events, memory or calls, by id */
	char *kind;          /* "memory snapshot of ...", "npusim trace": for people */
	char *soc;           /* SoC that it was recorded on, or NULL */
	char *about;         /* what was recorded, in words, or NULL */
	guint64 events;      /* of all devices, calls too */
	struct sites *sites; /* where blocks were asked for, or NULL: the file does not tell */

	/* Of an npusim trace; else NULL and 0. */
	struct npu_trace_reader *format;
	guint64 calls;        /* lines that are calls */
	guint64 memory_calls; /* of them, those that get or give physical memory */
	guint64 skipped;      /* lines with verbs that this reader does not know */
	gboolean truncated;   /* the file broke off inside a line, which was left out */

	/* Where the records are. */
	const struct trace_source *source;
	gpointer data;      /* the source's */
	struct texts notes; /* names of NOTE rows */
};

/* Records, from the first on, as often as wanted: of a file without names first what was there at
 * the start, device after device, its memory before its blocks. They have no names, and no times of
 * the host, but where the file has both. */
struct trace_source {
	gboolean (*rewind)(struct trace *trace, GError **error);
	/* 1: a record; 0: the end; -1 and error. */
	int (*next)(struct trace *trace, struct record_item *out, GError **error);
	void (*close)(struct trace *trace);
};

/* Empty; what trace_add_row() puts in is its source. */
struct trace *trace_new(const char *kind);
void trace_free(struct trace *trace);
/* The device's summary, made if need be. */
struct trace_device *trace_device(struct trace *trace, guint device);
/* Its index in trace->devices; G_MAXUINT: it is not there. */
guint trace_device_index(const struct trace *trace, gint64 device);
/* The number of a note's name. */
guint32 trace_note(struct trace *trace, const char *name);
/* Where blocks were asked for, made if need be. */
struct sites *trace_sites(struct trace *trace);

/* Counts an allocator's event on its device, a note by its name, and notes the addresses that it
 * maps and unmaps. */
void trace_count(struct trace *trace, guint device, guint32 verb, guint64 address, guint64 size,
		 const char *note);
/* Counts a row, and adds it behind those of its device: a trace has one device after another. FALSE
 * and error, as row_store_add(). */
gboolean trace_add_row(struct trace *trace, const struct trace_row *row, GError **error);
/* Adds what was there at the start. FALSE and error. */
gboolean trace_add_start(struct trace *trace, const struct trace_row *row, GError **error);
/* Notes memory that was mapped at the start. */
void trace_device_note_map(struct trace_device *device, guint64 address, guint64 size);

/* Reads a file of any known kind, told by its content: the summary, and a source that was not read
 * yet. NULL and error, which names the file and the place, otherwise. */
struct trace *trace_open(const char *path, GError **error);

#endif
