/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's codes: one table of their names and of the aclErrors to which CANN's runtime
 * translates them. A code that is not in it is treated as the driver's internal error, as in CANN.
 */
#include "driver/code.h"

#include <stddef.h>

#define INTERNAL 507899 /* ACL_ERROR_RT_DRV_INTERNAL_ERROR */

static const struct {
	drvError_t driver;
	int acl;
	const char *name;
} table[] = {
	{ DRV_ERROR_NONE, 0, "no error" },
	{ DRV_ERROR_NO_DEVICE, 207004, "no such device" },
	{ DRV_ERROR_INVALID_DEVICE, 107001, "invalid device" },
	{ DRV_ERROR_INVALID_VALUE, 107000, "invalid value" },
	{ DRV_ERROR_INVALID_HANDLE, 107017, "invalid handle" },
	{ DRV_ERROR_INVALID_MALLOC_TYPE, 107018, "invalid kind of memory" },
	{ DRV_ERROR_OUT_OF_MEMORY, 207001, "out of memory" },
	{ DRV_ERROR_REPEATED_INIT, 207015, "initialised twice" },
	{ DRV_ERROR_NO_RESOURCES, 207005, "no resources" },
	{ DRV_ERROR_WAIT_TIMEOUT, 507012, "time-out" },
	{ DRV_ERROR_IOCRL_FAIL, INTERNAL, "refused by the driver" },
	{ DRV_ERROR_SOCKET_CLOSE, 507901, "connection closed" },
	{ DRV_ERROR_SEND_MESG, 507051, "message not sent" },
	{ DRV_ERROR_BUS_DOWN, 507010, "lost heartbeat" },
	{ DRV_ERROR_OVER_LIMIT, 207012, "over the limit" },
	{ DRV_ERROR_MALLOC_FAIL, 207005, "no memory of the host" },
	{ DRV_ERROR_DEV_PROCESS_HANG, 507000, "device process hangs" },
	{ DRV_ERROR_OPER_NOT_PERMITTED, 207006, "not permitted" },
	{ DRV_ERROR_NO_EVENT_RESOURCES, 207007, "no event left" },
	{ DRV_ERROR_NO_STREAM_RESOURCES, 207008, "no stream left" },
	{ DRV_ERROR_NO_NOTIFY_RESOURCES, 207009, "no notify left" },
	{ DRV_ERROR_NO_MODEL_RESOURCES, 207010, "no model left" },
	{ DRV_ERROR_MEMORY_OPT_FAIL, 107000, "memory operation failed" },
	{ DRV_ERROR_COPY_USER_FAIL, 507052, "copy from or to the program failed" },
	{ DRV_ERROR_QUEUE_EMPTY, 207013, "queue empty" },
	{ DRV_ERROR_QUEUE_FULL, 207014, "queue full" },
	{ DRV_ERROR_CDQ_ABNORMAL, 507037, "queue broken" },
	{ DRV_ERROR_CDQ_NOT_EXIST, 107000, "no such queue" },
	{ DRV_ERROR_NO_CDQ_RESOURCES, 207011, "no queue left" },
	{ DRV_ERROR_RESUME, 207020, "time-out of the driver" },
	{ DRV_ERROR_NOT_SUPPORT, 207000, "not supported" },
	/* Known to the driver, but to CANN's runtime one and the same. */
	{ DRV_ERROR_INNER_ERR, INTERNAL, "internal error" },
	{ DRV_ERROR_PARA_ERROR, INTERNAL, "invalid for the driver" },
	{ DRV_ERROR_UNINIT, INTERNAL, "not initialised" },
	{ DRV_ERROR_NOT_EXIST, INTERNAL, "does not exist" },
	{ DRV_ERROR_BUSY, INTERNAL, "busy" },
	{ DRV_ERROR_FILE_OPS, INTERNAL, "file operation failed" },
	{ DRV_ERROR_PROCESS_EXIT, INTERNAL, "not this process's: it was forked, or is ending" },
	{ DRV_ERROR_TRY_AGAIN, INTERNAL, "try again" },
};

int driver_code_acl(drvError_t code)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].driver == code)
			return table[i].acl;
	return INTERNAL;
}

const char *driver_code_name(drvError_t code)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].driver == code)
			return table[i].name;
	return NULL;
}
