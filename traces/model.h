/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory calls of a replay: the ACL functions that libascendcl.so has, each counted with the
 * simulated time that it took. It keeps no record of what is allocated.
 */
#ifndef NPUSIM_TRACES_MODEL_H
#define NPUSIM_TRACES_MODEL_H

#include <glib.h>

#include "acl/acl.h"
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
	guint64 ps[MODEL_CALL_COUNT]; /* simulated */
};

/* The cause of the last failure; never NULL. */
const char *model_message(void);

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
/* The device's statistics now; FALSE where the backend has none. */
gboolean model_stats(guint device, struct npu_stats *out);

#endif
