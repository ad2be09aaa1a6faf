/* SPDX-License-Identifier: Apache-2.0
 *
 * What a replay measures on a device: its memory over the events, its calls, and its moments.
 */
#ifndef NPUSIM_TRACES_REPLAY_DEVICE_H
#define NPUSIM_TRACES_REPLAY_DEVICE_H

#include "access.h"
#include "model.h"
#include "policy/policy.h"
#include "track/memory.h"

/* Memory over the events, thinned out as it grows: of adjacent events the one with the most
 * physical memory is kept, so that the peak always remains. */
#define SERIES_POINTS_MAX 2000
struct series_point {
	guint64 event; /* counted from 1; 0: the start */
	struct memory_sums sums;
};
struct series {
	GArray *points; /* struct series_point */
	guint64 stride; /* events that one point stands for */
	guint64 open;   /* of them in the last point */
	struct series_point last;
};

struct replay_device {
	guint device;
	struct trace_device *trace; /* borrowed */
	struct memory memory;
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
	guint64 policy_counts[NPU_TRACE_VERB_COUNT]; /* of its segments */
	guint64 emptied;                             /* times that its cache was emptied */
	guint64 lost_blocks;                         /* blocks that it had no memory for */
	struct series series;
	struct access *reads; /* inside; NULL: none are wanted */
	struct access_figures access;
	guint64 first_us; /* time of the first event that has one */
	gboolean outside; /* blocks lay in memory that the file does not tell of */
};
struct replay {
	GPtrArray *devices;  /* struct replay_device * */
	struct trace *empty; /* inside: of device 0, where the trace is about none */
	char *soc;
	guint64 done; /* events that were replayed */
	gint64 wall_us;
	guint64 simulated_ps;
	gboolean interrupted;
	const struct policy_options *policy; /* of the options, or NULL */
	struct access_options access;
	const struct sites *sites; /* of the trace, or NULL */
};
/* A moment to be looked at beside the peak and the first lack of memory. */
struct replay_moment {
	enum moment_what what; /* MOMENT_END, MOMENT_EVENT, MOMENT_TIME */
	guint64 wanted;        /* the event's number; microseconds since the first event */
};

/* Whether the file tells what was live; and whether all of it lay in memory that it tells of. */
gboolean replay_tells_live(const struct replay_device *device);
gboolean replay_tells_fragmentation(const struct replay_device *device);
/* What the calls of the window from `first` on, and before `end`, came to: calls and time. */
struct call_figures replay_calls(const struct replay_device *device, enum model_call first,
				 enum model_call end);

/* ---- inside ---- */

struct replay_device *replay_device_new(struct trace_device *trace,
					const struct replay_moment *moments, guint count);
void replay_device_free(gpointer device);
/* The device's part of the result; NULL if the trace has nothing on it. */
struct replay_device *replay_find(const struct replay *replay, gint64 device);

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
/* The last of all: its series ends. */
void replay_finish(struct replay_device *device);

#endif
