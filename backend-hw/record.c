/* SPDX-License-Identifier: Apache-2.0
 *
 * libnpusim-record-hal.so, for LD_PRELOAD on a server: the functions of the driver's own library,
 * as CANN's runtime and others call them. Each goes on to the driver through the layers of
 * backend-hw, whose trace records it; a call that the driver makes to itself passes them by.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/base.h"
#include "driver/layer.h"

static struct npu_driver *top, *bottom;
static __thread unsigned depth; /* of calls in each other */

static void open_driver(void)
{
	char path[MODULE_PATH_MAX], *error = NULL;
	const struct npu_backend *backend = driver_module_load("hw", path, &error);

	top = backend != NULL ? backend->open(&error) : NULL;
	if (top == NULL)
		npu_log(NPU_LOG_ERROR, "libnpusim-record-hal.so: %s", error ?: path);
	free(error);
	bottom = driver_bottom(top);
}

/* NULL: there is none, or it calls while it is opened. */
static struct npu_driver *enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (depth++ > 0)
		return bottom;
	pthread_once(&once, open_driver);
	return top;
}

#define NPU_OP(result, missing, op, ...)                                                      \
	__attribute__((visibility("default"))) result op NPU_PLAIN(__VA_ARGS__);              \
	result op NPU_PLAIN(__VA_ARGS__)                                                      \
	{                                                                                     \
		struct npu_driver *drv = enter();                                             \
		result answer = drv == NULL ? (missing) : drv->op NPU_TO(drv, ##__VA_ARGS__); \
                                                                                              \
		depth--;                                                                      \
		return answer;                                                                \
	}
#include "npusim/driver-ops.h"
