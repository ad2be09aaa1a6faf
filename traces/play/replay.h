/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay: makes the driver calls of a trace, or those that a policy derives from its events, on
 * the model, and keeps what it measures on each device: its memory over the events, its calls, and
 * its moments.
 */
#ifndef NPUSIM_TRACES_REPLAY_H
#define NPUSIM_TRACES_REPLAY_H

#include "acl/acl.h"
#include "npusim/driver.h"
#include "npusim/npusim.h"
#include "policy/policy.h"
#include "track/memory.h"

/* ---- model.c: the memory calls of a replay, ACL functions of libascendcl.so, each counted
 * together with the simulated time that it took ---- */

#define MODEL_MEMORY_CALLS(X)                       \
	X(RESERVE, "aclrtReserveMemAddress")        \
	X(UNRESERVE, "aclrtReleaseMemAddress")      \
	X(CREATE, "aclrtMallocPhysical")            \
	X(RELEASE, "aclrtFreePhysical")             \
	X(RETAIN, "aclrtMemRetainAllocationHandle") \
	X(MAP, "aclrtMapMem")                       \
	X(UNMAP, "aclrtUnmapMem")                   \
	X(ACCESS, "aclrtMemSetAccess")              \
	X(MALLOC, "aclrtMallocAlign32")             \
	X(FREE, "aclrtFree")
/* Where bytes are moved; copies in the order of aclrtMemcpyKind. */
#define MODEL_MOVE_CALLS(X)                     \
	X(HOST_TO_HOST, "host_to_host")         \
	X(HOST_TO_DEVICE, "host_to_device")     \
	X(DEVICE_TO_HOST, "device_to_host")     \
	X(DEVICE_TO_DEVICE, "device_to_device") \
	X(FILL, "fill")
#define MODEL_CALLS(X)           MODEL_MEMORY_CALLS(X) MODEL_MOVE_CALLS(X)
#define MODEL_NUMBER(call, name) MODEL_##call,
#define MODEL_NAME(call, name)   name,
enum model_call { MODEL_CALLS(MODEL_NUMBER) MODEL_CALL_COUNT, MODEL_MOVES = MODEL_HOST_TO_HOST };
/* The call's name in the ACL, "aclrtMapMem" ...; "host_to_device" ... */
extern const char *const model_call_names[MODEL_CALL_COUNT];
/* That of the last that was made. */
const char *model_last_call(void);

/* A histogram of the latencies of calls: 64 bins for each doubling, so that quantiles are within
 * 1.6 percent; the minimum and the maximum are exact. */
#define LATENCY_BINS (64 * 59)

struct latency {
	guint64 calls, min_ps, max_ps;
	guint64 bins[LATENCY_BINS];
};

void latency_add(struct latency *latency, guint64 ps);
/* The time that a share of the calls, 0 to 1, does not exceed. */
guint64 latency_quantile_ps(const struct latency *latency, double share);
/* The longest time that is counted in a bin. */
guint64 latency_bin_end_ps(guint bin);

struct call_figures {
	guint64 calls, refused, ps; /* simulated */
	guint64 bytes;              /* that were moved */
	struct latency latency;     /* of none: of moves */
};
struct model_once {
	guint64 event; /* that the call was made for */
	guint64 call;  /* enum model_call */
	guint64 ns;    /* simulated */
};
#define MODEL_EACH_MAX 20000
struct model_device {
	struct call_figures calls[MODEL_CALL_COUNT];
	struct call_figures all, moves; /* sums of those before MODEL_MOVES, and from there on */
	/* struct model_once; of many, the longer one of two. NULL: they are not kept. */
	GArray *each;
	const guint64 *event; /* what it is now */
};

/* The cause of the last failure; never NULL. */
const char *model_message(void);

#define MODEL_ERROR (model_error_quark())
enum model_error {
	MODEL_ERROR_START,   /* it does not start as the environment describes it */
	MODEL_ERROR_DEVICES, /* it has fewer devices */
	MODEL_ERROR_CALL     /* it refused a call */
};
GQuark model_error_quark(void);

/* aclInit, aclrtSetDevice for each: FALSE and error with the call, its code and its message. */
gboolean model_open(guint devices, GError **error);
void model_close(guint devices);

/* Makes a memory call, and counts it with the simulated time that it takes. `d` may be NULL. */
#define MODEL_CALL(d, call, answer) (model_begin(), model_counted((d), (call), (answer)))
void model_begin(void);
aclError model_counted(struct model_device *d, enum model_call call, aclError code);
/* One end of a copy. */
struct model_end {
	void *p;       /* NULL: any memory that the program had by itself */
	gint32 device; /* whose memory it is; -1: the host's */
};
/* A copy, or a fill where `src` is NULL. Between two devices by a stream, which is waited for. */
aclError model_move(struct model_device *d, struct model_end dst, const struct model_end *src,
		    guint64 size);
/* FALSE where the backend has none. */
gboolean model_stats(guint device, struct npu_stats *out);

/* ---- access.c: memory accesses during a replay: with each block that is handed out, or in phases,
 * a core of the model reads, and the TLBs and the HBM account for the cost ---- */

enum access_pattern {
	ACCESS_NONE,
	ACCESS_SEQ,    /* the new block from its start on; in phases, all that is live */
	ACCESS_RANDOM, /* places all over what is live */
	ACCESS_HOT     /* the same, but most of them in a part of it */
};
#define ACCESS_READS       64 /* places, by default */
#define ACCESS_READS_MAX   (G_GUINT64_CONSTANT(1) << 20)
#define ACCESS_EVERY_MAX   (G_GUINT64_CONSTANT(1) << 40)
#define ACCESS_READ_BYTES  512u
#define ACCESS_HOT_TOUCHES 90 /* per cent, by default */
#define ACCESS_HOT_BYTES   10

struct access_options {
	enum access_pattern pattern;
	guint hot_touches, hot_bytes; /* HOT: per cent of the reads, per cent of what is live */
	guint64 reads;                /* RANDOM, HOT: places each time; 0: ACCESS_READS */
	guint64 every;                /* events of a phase; 0: with each block */
};
/* "none", "seq", "random", "hot", "hot:90/10". FALSE and error, with what is right, for another. */
gboolean access_parse(const char *text, struct access_options *out, GError **error);
/* As access_parse() takes it. */
char *access_text(const struct access_options *options);

struct access_figures {
	guint64 reads, bytes, ps;
	guint64 tlb_requests, tlb_hits, tlb_misses, walks, walk_ps;
	guint64 hbm_bytes, row_hits, row_misses;
};

struct access;
struct replay_device;
/* Of a device that has its filter; borrowed. NULL: nothing is to be read. */
struct access *access_new(struct replay_device *device);
void access_free(struct access *access);
/* A block that lives from now on, without a read. */
void access_note(struct access *access, guint64 address, guint64 size);
/* A block that comes, and one that goes. FALSE and error: the model refused a read. */
gboolean access_come(struct access *access, guint64 address, guint64 size, GError **error);
void access_go(struct access *access, guint64 address);
/* An event is over: phases are counted in them. */
gboolean access_tick(struct access *access, GError **error);

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

#define REPLAY_RUNS_MAX 20000
/* Physical memory [pa, pa + bytes) that lay at an address from an event on, and before another. */
struct replay_run {
	guint64 since, until, address, pa, bytes;
};

struct replay_device {
	guint device;
	struct trace_device *trace; /* borrowed */
	struct memory memory;
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
	guint64 lost_blocks;                         /* blocks that it had no memory for */
	struct series series;
	GArray *runs;         /* struct replay_run, of options.each; else NULL */
	struct access *reads; /* inside; NULL: none are wanted */
	struct access_figures access;
	guint64 first_us; /* time of the first event that has one */
	struct replay *replay;
	GArray *start;         /* struct record_item: what was there; memory before blocks */
	struct filter *filter; /* makes the device's calls; NULL: they are recorded */
	guint64 line;          /* 0: the file has none */
	gboolean outside;      /* blocks lay in memory that the file does not tell of */
	gboolean peers_opened; /* it may reach the others by now */
};
/* Recorded calls of a kind that tell what they took, and what the model took for the same. */
struct replay_match {
	struct latency recorded; /* in ns, not ps, since a file may claim any */
	struct latency predicted;
	double logs; /* the sum of |ln(recorded / predicted)| */
};
#define REPLAY_MATCHES (NPU_TRACE_MFREE + 1)
struct replay_options {
	/* Called now and then with the events done; returns FALSE to stop: what is done until then
	 * is the result. May be NULL. */
	gboolean (*progress)(guint64 done, gpointer data);
	gpointer data;
	const struct policy_options *policy; /* borrowed */
	struct access_options access;
	gboolean no_copies; /* recorded copies and fills are left out */
	gboolean frames;    /* of moments: where their memory lay on the device */
	gboolean each;      /* each call is kept, and where memory lay on the device */
	/* To be looked at beside the peak and the first lack of memory: END, EVENT, TIME. */
	struct moment moments[MOMENTS_MAX - 2];
	guint moment_count;
	struct replay_match *matches; /* REPLAY_MATCHES, by verb, to which is added; or NULL */
};

struct replay {
	struct replay_options options;
	struct trace *trace; /* borrowed */
	gboolean recorded;   /* its own calls are made */
	GPtrArray *devices;  /* struct replay_device *, in the order of the trace's */
	char *soc;
	guint64 done; /* events that were replayed */
	gint64 wall_us;
	guint64 simulated_ps;
	guint64 stall_ps; /* of those in stalls of creations */
	gboolean interrupted;

	/* Of its player. */
	struct tracker *tracker; /* told of calls that the model has answered with success */
	guint32 site;            /* of the call */
	guint64 got;             /* address of the last reservation or allocation */
	guint32 unnamed;         /* things so far that have no name in the file */
	GError *refused;         /* the first read that the model refused */
};

/* Whether the file tells what was live, and whether all of it lay in memory that it tells of. */
gboolean replay_tells_live(const struct replay_device *device);
gboolean replay_tells_fragmentation(const struct replay_device *device);

/* Runs the trace, from its first record on, on the model that the environment describes. NULL and
 * error if it cannot start, or at an event that makes no sense (which one, and why). The trace
 * and the policy must outlive the result. */
struct replay *replay_run(struct trace *trace, const struct replay_options *options,
			  GError **error);
void replay_free(struct replay *replay);

/* ---- inside ---- */

/* NULL if the trace has nothing on the device. */
struct replay_device *replay_find(const struct replay *replay, gint64 device);
/* To be called before memory goes, and at the end: notes the model's statistics if there is more
 * than when they were noted. */
void replay_note_peak(struct replay_device *device);
/* The first call that finds no memory, `size` bytes, at an event or a line of the file (0: it has
 * none): to be called before the sums have it. Later ones are left alone. */
void replay_note_failure(struct replay_device *device, guint64 event, guint64 line, guint64 size,
			 guint32 site);

/* ---- inside: player.c makes the driver calls that records name on the model, and maps their names
 * to the model's objects ---- */

/* Makes a policy's call, of which a RESERVE or MALLOC sets `got`, and an MFREE has its va. It is
 * not counted where it has NPU_TRACE_HAS_START, and what it gets is at its va in maps, where it has
 * one. The model's answer, or -1: what it names is not there. */
gint32 player_call(struct replay *replay, const struct npu_trace_record *call);
/* Makes a recorded call, and compares the answers. FALSE and error: an access to memory that the
 * model refused. Recorded calls say what physical memory there is, they move bytes, and what they
 * get may be read (device->reads). Of others the events beside them say all of that. */
gboolean player_step(struct replay *replay, const struct record_item *call, GError **error);
/* Gives back what is left, uncounted. */
void player_close(struct replay *replay);

#endif
