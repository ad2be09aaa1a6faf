/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator's history in memory, whatever file it came from: for each device what was live when
 * it began, and the events since then. Readers fill it in; replay, policies and reports read it. An
 * npusim trace stays in its file: what is in memory is a summary, and its lines are read once more
 * when they are wanted (format.h).
 */
#ifndef NPUSIM_TRACES_TRACE_H
#define NPUSIM_TRACES_TRACE_H

#include <glib.h>

#include "spans.h"
#include "trace/verbs.h"

enum trace_action {
	TRACE_ALLOC,          /* a block handed out; size: as requested */
	TRACE_FREE_REQUESTED, /* given back by the program; lives on */
	TRACE_FREE_COMPLETED, /* gone */
	TRACE_SEGMENT_ALLOC,  /* a segment obtained by the classic call */
	TRACE_SEGMENT_FREE,
	TRACE_SEGMENT_MAP, /* physical memory mapped into an expandable segment */
	TRACE_SEGMENT_UNMAP,
	TRACE_OOM,   /* address: bytes that were free */
	TRACE_OTHER, /* snapshot, workspace_snapshot, ...: counted by its name */
	TRACE_ACTION_COUNT
};
/* As the files write them: "alloc", "free_requested", ...; NULL for TRACE_OTHER. */
const char *trace_action_name(enum trace_action action);

struct trace_event {
	guint64 address; /* what it is about: equal for what belongs together */
	guint64 size;
	gint64 stream;
	gint64 time_us; /* 0: the file has none */
	union {
		guint32 other; /* TRACE_OTHER: index in trace_device.other_names */
		guint32 site;  /* else: of trace.sites; 0: the file has none */
	};
	guint8 action; /* enum trace_action */
};
/* Physical memory that was there when the window began: a segment, or a mapped part of an
 * expandable one. */
struct trace_range {
	guint64 address, size;
	gint64 stream;
	gboolean expandable;
	gboolean small; /* from the small pool: 2 MiB handles */
};
struct trace_block {
	guint64 address;
	guint64 size; /* requested */
	guint32 site; /* of trace.sites; 0: the file has none */
};
struct trace_device {
	guint device;
	guint block_unit;       /* the allocator's blocks are multiples of it; 0: not known */
	GArray *ranges;         /* struct trace_range, sorted by address: live at the start */
	GArray *blocks;         /* struct trace_block, sorted by address: live at the start */
	GArray *events;         /* struct trace_event, in order; none where they stay in a file:
				   trace_next() has them in any case */
	struct spans maps;      /* addresses of expandable segments, in GiB */
	struct spans cuts;      /* where parts of them are unmapped: [address, address + 1) */
	GPtrArray *other_names; /* char *, and */
	GArray *other_counts;   /* guint64: actions that are counted and else skipped */
	GHashTable *other_index;
	guint64 counts[TRACE_ACTION_COUNT];
	gboolean of_process; /* segments are all that the process got, not one allocator's */
};
struct format_reader;
struct event_sorter;
struct sites;
struct trace {
	GPtrArray *devices; /* struct trace_device *, those with events, memory or calls, by id */
	char *kind;         /* "memory snapshot of ...", "npusim trace": for people */
	char *soc;          /* SoC that it was recorded on, or NULL */
	char *about;        /* what was recorded, in words, or NULL */
	guint64 events;     /* of all devices, calls too */

	/* Of an npusim trace; else NULL and 0. */
	struct format_reader *format; /* at its first line */
	guint64 calls;                /* lines that are calls */
	guint64 memory_calls;         /* of them, those that get or give physical memory */
	guint64 skipped;              /* lines with verbs that this reader does not know */
	gboolean truncated;           /* the file broke off inside a line, which was left out */

	struct sites *sites; /* where blocks were asked for, or NULL: the file does not tell */
	struct event_sorter
		*sorter; /* events of other files that are too many for memory, or NULL */

	/* where trace_next() is in memory */
	guint next_device, next_event;
};

#define TRACE_ERROR (trace_error_quark())
enum trace_error {
	TRACE_ERROR_FORMAT, /* damaged, or not of the kind that it says */
	TRACE_ERROR_UNKNOWN /* no reader knows it */
};
GQuark trace_error_quark(void);

struct trace *trace_new(const char *kind);
/* The device's history, made if need be. */
struct trace_device *trace_device(struct trace *trace, guint device);
/* Counts an event, and notes the addresses that it maps and unmaps; `keep`: itself too. */
void trace_device_add(struct trace_device *device, const struct trace_event *event, gboolean keep);
/* Counts an action that has no meaning for npusim, by its name; `keep`: the event, too. */
void trace_device_add_other(struct trace_device *device, const struct trace_event *event,
			    const char *name, gsize length, gboolean keep);
/* Notes memory that was mapped at the start. */
void trace_device_note_map(struct trace_device *device, guint64 address, guint64 size);
void trace_free(struct trace *trace);

/* The events from the first on, wherever they are: those in memory device after device, those of a
 * file in its order; of an npusim trace those of the allocator above, without the calls. A trace is
 * read at one place at a time. */
gboolean trace_rewind(struct trace *trace, GError **error);
/* 1: an event, and the index of its device in trace->devices; 0: the end; -1 and error. */
int trace_next(struct trace *trace, guint *out_device, struct trace_event *out, GError **error);

/* Reads a file of any known kind, told by its content. NULL and error, which names the file and the
 * place, otherwise. */
struct trace *trace_read(const char *path, GError **error);

/* Snapshots. `bytes` is the whole file. */
gboolean snapshot_recognise(const guint8 *bytes, gsize count);
struct trace *snapshot_read(const guint8 *bytes, gsize count, GError **error);

#endif
