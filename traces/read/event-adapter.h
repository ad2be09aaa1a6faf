/* SPDX-License-Identifier: Apache-2.0
 *
 * Records as the events, ranges and blocks that replays take, each with its address alone: for
 * readers of a history who do not take records.
 */
#ifndef NPUSIM_TRACES_EVENT_ADAPTER_H
#define NPUSIM_TRACES_EVENT_ADAPTER_H

#include <glib.h>

#include "npusim/trace.h"

struct trace;

struct trace_event {
	guint64 address; /* what it is about: equal for what belongs together */
	guint64 size;
	gint64 stream;
	gint64 time_us; /* 0: the file has none */
	guint32 site;   /* of trace.sites; 0: the file has none */
	guint8 action;  /* enum trace_action */
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
/* A line of an npusim trace. */
struct format_line {
	struct npu_trace_record record; /* texts: valid until the next line */
	struct trace_event event;       /* where the verb is an allocator's */
};

/* Puts ranges and blocks of the start into each device. */
gboolean trace_adapt(struct trace *trace, GError **error);
/* trace_open(), adapted. */
struct trace *trace_read(const char *path, GError **error);
gboolean trace_rewind(struct trace *trace, GError **error);
/* 1: an allocator's event, and the index of its device in trace->devices; 0: the end; -1. */
int trace_next(struct trace *trace, guint *out_device, struct trace_event *out, GError **error);
/* The same of an npusim trace, with its calls. */
int trace_next_line(struct trace *trace, struct format_line *out, GError **error);

#endif
