/* SPDX-License-Identifier: Apache-2.0
 *
 * Refuses calls for all of the core: the code, the message that begins with the call's name, and
 * the thread's last error.
 */
#include "core/object/error.h"
#include "driver/code.h"

#include <stdio.h>

static __thread int last_error;

int core_last_error_note(int code)
{
	if (code >= CORE_PARAM_INVALID)
		last_error = code;
	return code;
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
	const char *text, *name;

	if (code == DRV_ERROR_NONE)
		return CORE_OK;
	drv = core_driver();
	if (drv == NULL)
		return CORE_API_INTERNAL;
	text = npu_call(drv, npusimLastMessage);
	name = driver_code_name(code);
	if (text != NULL && text[0] != '\0')
		npu_message_set("%s: %s", call, text);
	else
		npu_message_set("%s: the driver answers %d (%s)", call, code,
				name != NULL ? name : "a code without a name");
	return core_last_error_note(driver_code_acl(code));
}

int core_fail(int code, const char *call, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	npu_message_set("%s: %s", call, text);
	return core_last_error_note(code);
}
