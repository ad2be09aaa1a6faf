/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory calls of a replay: the ACL functions of libascendcl.so, each counted together with
 * the simulated time that it took. It keeps no record of what is allocated.
 */
#ifndef NPUSIM_TRACES_MODEL_H
#define NPUSIM_TRACES_MODEL_H

#include <glib.h>

#include "acl/acl.h"
#include "latency.h"
#include "npusim/driver.h"

enum model_call {
	MODEL_RESERVE,
	MODEL_UNRESERVE,
	MODEL_CREATE,
	MODEL_RELEASE,
	MODEL_RETAIN,
	MODEL_MAP,
	MODEL_UNMAP,
	MODEL_ACCESS,
	MODEL_MALLOC,
	MODEL_FREE,
	MODEL_CALL_COUNT
};
/* The call's name in the ACL, "aclrtMapMem" ... */
const char *model_call_name(enum model_call call);

struct model_device {
	guint64 count[MODEL_CALL_COUNT], failed[MODEL_CALL_COUNT];
	guint64 ps[MODEL_CALL_COUNT];              /* simulated */
	gboolean timed;                            /* how long each call took is kept: */
	struct latency *latency[MODEL_CALL_COUNT]; /* NULL: there was none */
};
void model_device_clear(struct model_device *device);

/* Where bytes are moved; each has counts of its own. */
enum model_move {
	MODEL_HOST_TO_HOST,
	MODEL_HOST_TO_DEVICE,
	MODEL_DEVICE_TO_HOST,
	MODEL_DEVICE_TO_DEVICE,
	MODEL_FILL,
	MODEL_MOVE_COUNT
};
/* "host_to_device" ... */
const char *model_move_name(enum model_move move);
struct model_moves {
	guint64 count[MODEL_MOVE_COUNT], failed[MODEL_MOVE_COUNT], bytes[MODEL_MOVE_COUNT];
	guint64 ps[MODEL_MOVE_COUNT]; /* simulated */
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

aclError model_reserve(struct model_device *d, void **out, guint64 size, guint64 align, void *hint,
		       guint64 flags);
aclError model_unreserve(struct model_device *d, void *va);
/* device < 0: memory of the host. */
aclError model_create(struct model_device *d, aclrtDrvMemHandle *out, guint64 size, int device,
		      unsigned page_lg2);
aclError model_release(struct model_device *d, aclrtDrvMemHandle handle);
aclError model_map(struct model_device *d, void *va, guint64 size, aclrtDrvMemHandle handle);
aclError model_unmap(struct model_device *d, void *va);
aclError model_access(struct model_device *d, void *va, guint64 size, int device, int flags);
aclError model_malloc(struct model_device *d, void **out, guint64 size, int device,
		      unsigned page_lg2);
aclError model_free(struct model_device *d, void *p, gboolean host);
aclError model_retain(struct model_device *d, void *va, aclrtDrvMemHandle *out);
/* A device < 0: memory of the host. Between two devices by a stream, which is waited for. */
aclError model_copy(struct model_moves *moves, void *dst, int dst_device, const void *src,
		    int src_device, guint64 size);
aclError model_fill(struct model_moves *moves, void *dst, guint64 size);
/* Where the device's memory behind an address lies; *bytes is in and out. FALSE where it is not
 * known. */
gboolean model_physical(guint device, guint64 va, guint64 *pa, guint64 *bytes);
/* The device's statistics now; FALSE where the backend has none. */
gboolean model_stats(guint device, struct npu_stats *out);

#endif
