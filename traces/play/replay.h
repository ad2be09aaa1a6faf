/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay: the calls that a trace's events imply, made on the model, and what came of it.
 */
#ifndef NPUSIM_TRACES_REPLAY_H
#define NPUSIM_TRACES_REPLAY_H

#include "access.h"
#include "track/memory-usage.h"
#include "model.h"
#include "policy/policy.h"
#include "track/series.h"
#include "read/trace.h"

struct replay_device {
	guint device;
	struct trace_device *trace; /* borrowed */
	struct memory_usage usage;
	struct model_device setup;  /* calls that rebuild what was live when the window began */
	struct model_device window; /* calls of the window */
	struct npu_stats stats;     /* at the peak of physical memory; *_peak_bytes at the end */
	guint64 noted_physical;     /* physical memory when `stats` was taken */
	guint64 failed_at;   /* event whose call ran out of memory first, counted from 1; 0: none */
	guint64 failed_line; /* the same of an npusim trace: its line */
	guint64 failed_size; /* 0: no call ran out of memory */
	guint32 failed_site; /* who asked: of trace.sites */
	struct npu_stats failed_stats; /* the device then */
	guint64 differing;             /* calls whose result is not the recorded one */
	guint64 left_out;              /* calls not made, since what they name is not there */

	/* Under a policy: what the allocator did since the window began. */
	guint64 policy_counts[TRACE_ACTION_COUNT]; /* TRACE_SEGMENT_ALLOC to TRACE_SEGMENT_UNMAP */
	guint64 emptied;                           /* times that its cache was emptied */
	guint64 lost_blocks;                       /* blocks that it had no memory for */
	struct series series;
	struct access_figures access;
	struct model_moves moves; /* copies and fills of recorded calls */
	guint64 first_us;         /* time of the first event that has one */
	gboolean outside;         /* blocks lay in memory that the file does not tell of */
};
struct replay {
	GPtrArray *devices; /* struct replay_device * */
	char *soc;
	guint64 done; /* events that were replayed */
	gint64 wall_us;
	guint64 simulated_ps;
	gboolean interrupted;
	const struct policy_options *policy; /* of the options, or NULL */
	struct access_options access;
	const struct sites *sites; /* of the trace, or NULL */
};

struct replay_options {
	/* Called now and then with the events done; returns FALSE to stop: what is done until then
	 * is the result. May be NULL. */
	gboolean (*progress)(guint64 done, guint64 total, gpointer data);
	gpointer data;
	const struct policy_options *policy; /* NULL: as recorded */
	struct access_options access;
	gboolean no_copies; /* recorded copies and fills are left out */
	/* Moments to be looked at beside the peak and the first lack of memory. */
	struct replay_moment {
		enum moment_what what; /* MOMENT_END, MOMENT_EVENT, MOMENT_TIME */
		guint64 wanted;        /* the event's number; microseconds since the first event */
	} moments[MOMENTS_MAX - 2];
	guint moment_count;
};

/* Runs the trace on the model that the environment describes. NULL and error if it cannot start, or
 * at an event that makes no sense (which one, and why). The trace must outlive the result. */
struct replay *replay_run(struct trace *trace, const struct replay_options *options,
			  GError **error);
void replay_free(struct replay *replay);

/* Whether the file tells what was live; and whether all of it lay in memory that it tells of. */
gboolean replay_tells_live(const struct replay_device *device);
gboolean replay_tells_fragmentation(const struct replay_device *device);
/* Device memory calls of the window: how many, and the simulated time in them. */
guint64 replay_calls(const struct replay_device *device);
guint64 replay_calls_ps(const struct replay_device *device);

/* ---- inside: one file a kind of event ---- */

#define REPLAY_ERROR (replay_error_quark())
GQuark replay_error_quark(void);

struct replay_run {
	struct trace *trace;
	struct replay *replay;
	const struct replay_options *options;
};
/* Counts one event; FALSE if the user wants to stop. */
gboolean replay_tick(struct replay_run *run);
/* To be called before memory goes, and at the end: notes the model's statistics if there is more
 * than when they were noted. */
void replay_note_peak(struct replay_device *device);

/* Notes the device's memory after its event number `event`, at a time of the file (0: it has none).
 */
void replay_sample(struct replay_device *device, guint64 event, guint64 time_us);
/* The first call that finds no memory, `size` bytes, at an event or a line of the file (0: it has
 * none): to be called before the sums have it. Later ones are left alone. */
void replay_note_failure(struct replay_device *device, guint64 event, guint64 line, guint64 size,
			 guint32 site);
/* Before what is left goes: the end is a moment, and the peak may be now. */
void replay_note_end(struct replay_device *device);

/* replay-segments.c: the segments of one device */
struct segment_replay;
struct segment_replay *segment_replay_open(struct replay_device *device);
/* Reserves, and rebuilds what was live at the start. */
gboolean segment_replay_start(struct segment_replay *replay, GError **error);
/* One event; `line` of the file for messages, 0: it has none. */
gboolean segment_replay_step(struct segment_replay *replay, const struct trace_event *event,
			     guint64 line, GError **error);
/* Where the file's address lies in the model; 0: nowhere. */
guint64 segment_replay_find(const struct segment_replay *replay, guint64 address);
/* Gives back what is left, uncounted. */
void segment_replay_close(struct segment_replay *replay);

/* replay-lines.c, replay-calls.c: an npusim trace. Memory that calls get is touched, and what is
 * copied is copied, by replay-traffic.c. */
gboolean replay_lines(struct replay_run *run, GError **error);
struct call_replay;
struct call_replay *call_replay_open(struct replay_run *run);
/* FALSE and error: an access to memory that the model refused. */
gboolean call_replay_step(struct call_replay *calls, const struct npu_trace_record *call,
			  GError **error);
/* Gives back what is left, uncounted. */
void call_replay_close(struct call_replay *calls);

/* The device's part of the result; NULL if the trace has nothing on it. */
struct replay_device *replay_find(const struct replay *replay, gint64 device);

#endif
