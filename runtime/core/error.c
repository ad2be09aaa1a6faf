/* SPDX-License-Identifier: Apache-2.0
 *
 * From a driver's code to an aclError, and the thread's last error. One table; a code that is not
 * in it is the driver's internal error, as CANN has it.
 */
#include "core-private.h"

#include <stdio.h>
#include <string.h>

static const struct {
	drvError_t driver;
	int acl;
	const char *name;
} table[] = {
	{ DRV_ERROR_NONE, CORE_OK, "no error" },
	{ DRV_ERROR_NO_DEVICE, CORE_NO_DEVICE, "no such device" },
	{ DRV_ERROR_INVALID_DEVICE, CORE_INVALID_DEVICE, "invalid device" },
	{ DRV_ERROR_INVALID_VALUE, CORE_PARAM_INVALID, "invalid value" },
	{ DRV_ERROR_INVALID_HANDLE, 107017, "invalid handle" },
	{ DRV_ERROR_INVALID_MALLOC_TYPE, 107018, "invalid kind of memory" },
	{ DRV_ERROR_OUT_OF_MEMORY, CORE_MEMORY_ALLOCATION, "out of memory" },
	{ DRV_ERROR_REPEATED_INIT, 207015, "initialised twice" },
	{ DRV_ERROR_NO_RESOURCES, 207005, "no resources" },
	{ DRV_ERROR_WAIT_TIMEOUT, CORE_REPORT_TIMEOUT, "time-out" },
	{ DRV_ERROR_IOCRL_FAIL, CORE_DRIVER_INTERNAL, "refused by the driver" },
	{ DRV_ERROR_SOCKET_CLOSE, 507901, "connection closed" },
	{ DRV_ERROR_SEND_MESG, 507051, "message not sent" },
	{ DRV_ERROR_BUS_DOWN, 507010, "lost heartbeat" },
	{ DRV_ERROR_OVER_LIMIT, 207012, "over the limit" },
	{ DRV_ERROR_MALLOC_FAIL, 207005, "no memory of the host" },
	{ DRV_ERROR_DEV_PROCESS_HANG, CORE_INTERNAL, "device process hangs" },
	{ DRV_ERROR_OPER_NOT_PERMITTED, 207006, "not permitted" },
	{ DRV_ERROR_NO_EVENT_RESOURCES, CORE_NO_EVENT, "no event left" },
	{ DRV_ERROR_NO_STREAM_RESOURCES, CORE_NO_STREAM, "no stream left" },
	{ DRV_ERROR_NO_NOTIFY_RESOURCES, 207009, "no notify left" },
	{ DRV_ERROR_NO_MODEL_RESOURCES, 207010, "no model left" },
	{ DRV_ERROR_MEMORY_OPT_FAIL, CORE_PARAM_INVALID, "memory operation failed" },
	{ DRV_ERROR_COPY_USER_FAIL, 507052, "copy from or to the program failed" },
	{ DRV_ERROR_QUEUE_EMPTY, 207013, "queue empty" },
	{ DRV_ERROR_QUEUE_FULL, 207014, "queue full" },
	{ DRV_ERROR_CDQ_ABNORMAL, 507037, "queue broken" },
	{ DRV_ERROR_CDQ_NOT_EXIST, CORE_PARAM_INVALID, "no such queue" },
	{ DRV_ERROR_NO_CDQ_RESOURCES, 207011, "no queue left" },
	{ DRV_ERROR_RESUME, 207020, "time-out of the driver" },
	{ DRV_ERROR_NOT_SUPPORT, CORE_NOT_SUPPORT, "not supported" },
	/* Known to the driver, but to CANN's runtime one and the same. */
	{ DRV_ERROR_INNER_ERR, CORE_DRIVER_INTERNAL, "internal error" },
	{ DRV_ERROR_PARA_ERROR, CORE_DRIVER_INTERNAL, "invalid for the driver" },
	{ DRV_ERROR_UNINIT, CORE_DRIVER_INTERNAL, "not initialised" },
	{ DRV_ERROR_NOT_EXIST, CORE_DRIVER_INTERNAL, "does not exist" },
	{ DRV_ERROR_BUSY, CORE_DRIVER_INTERNAL, "busy" },
	{ DRV_ERROR_FILE_OPS, CORE_DRIVER_INTERNAL, "file operation failed" },
	{ DRV_ERROR_PROCESS_EXIT, CORE_DRIVER_INTERNAL,
	  "not this process's: it was forked, or is ending" },
	{ DRV_ERROR_TRY_AGAIN, CORE_DRIVER_INTERNAL, "try again" },
};

static __thread int last_error;

static int find(drvError_t code)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].driver == code)
			return (int)i;
	return -1;
}

int core_error_of(drvError_t code)
{
	int row = find(code);

	return row >= 0 ? table[row].acl : CORE_DRIVER_INTERNAL;
}

void core_last_error_note(int code)
{
	if (code >= CORE_PARAM_INVALID)
		last_error = code;
}

int core_last_error_peek(void)
{
	return last_error;
}

int core_last_error_take(void)
{
	int code = last_error;

	last_error = CORE_OK;
	return code;
}

int core_result(const char *call, drvError_t code)
{
	struct npu_driver *drv;
	const char *text;
	int row;

	if (code == DRV_ERROR_NONE)
		return CORE_OK;
	drv = core_driver();
	text = drv != NULL ? npu_call(drv, npusimLastMessage) : npu_message();
	row = find(code);
	if (text != NULL && text[0] != '\0')
		npu_message_set("%s: %s", call, text);
	else
		npu_message_set("%s: the driver answers %d (%s)", call, code,
				row >= 0 ? table[row].name : "a code without a name");
	core_last_error_note(core_error_of(code));
	return core_error_of(code);
}

int core_fail_va(int code, const char *call, const char *format, va_list args)
{
	char text[2048];

	vsnprintf(text, sizeof(text), format, args);
	npu_message_set("%s: %s", call, text);
	core_last_error_note(code);
	return code;
}

int core_fail(int code, const char *call, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	code = core_fail_va(code, call, format, args);
	va_end(args);
	return code;
}
