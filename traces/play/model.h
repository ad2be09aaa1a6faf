/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory calls of a replay: the ACL functions of libascendcl.so, each counted together with
 * the simulated time that it took. It keeps no record of what is allocated.
 */
#ifndef NPUSIM_TRACES_MODEL_H
#define NPUSIM_TRACES_MODEL_H

#include <glib.h>

#include "acl/acl.h"
#include "npusim/driver.h"
#include "npusim/npusim.h"

/* Where bytes are moved comes last; copies in the order of aclrtMemcpyKind. */
#define MODEL_CALLS(X)                              \
	X(RESERVE, "aclrtReserveMemAddress")        \
	X(UNRESERVE, "aclrtReleaseMemAddress")      \
	X(CREATE, "aclrtMallocPhysical")            \
	X(RELEASE, "aclrtFreePhysical")             \
	X(RETAIN, "aclrtMemRetainAllocationHandle") \
	X(MAP, "aclrtMapMem")                       \
	X(UNMAP, "aclrtUnmapMem")                   \
	X(ACCESS, "aclrtMemSetAccess")              \
	X(MALLOC, "aclrtMallocAlign32")             \
	X(FREE, "aclrtFree")                        \
	X(HOST_TO_HOST, "host_to_host")             \
	X(HOST_TO_DEVICE, "host_to_device")         \
	X(DEVICE_TO_HOST, "device_to_host")         \
	X(DEVICE_TO_DEVICE, "device_to_device")     \
	X(FILL, "fill")
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

struct latency *latency_new(void);
void latency_add(struct latency *latency, guint64 ps);
/* The time that a share of the calls, 0 to 1, does not exceed. */
guint64 latency_quantile_ps(const struct latency *latency, double share);
/* The longest time that is counted in a bin. */
guint64 latency_bin_end_ps(guint bin);

/* What calls of a kind came to. */
struct call_figures {
	guint64 calls, refused, ps; /* simulated */
	guint64 bytes;              /* that were moved */
	struct latency *latency;    /* NULL: of moves */
};
struct model_device {
	struct call_figures calls[MODEL_CALL_COUNT];
	struct call_figures all,
		moves; /* the sums of those before MODEL_MOVES, and from there on */
};
void model_device_clear(struct model_device *device);

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
	void *p; /* NULL: memory that the program had by itself: one buffer is all of it, as its
		    contents do not matter */
	gint32 device; /* whose memory it is; -1: the host's */
};
/* A copy, or a fill where `src` is NULL. Between two devices by a stream, which is waited for. */
aclError model_move(struct model_device *d, struct model_end dst, const struct model_end *src,
		    guint64 size);
/* The device's statistics now; FALSE where the backend has none. */
gboolean model_stats(guint device, struct npu_stats *out);

#endif
