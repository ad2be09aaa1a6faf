/* SPDX-License-Identifier: Apache-2.0
 *
 * Refuses calls of the ACL face: sets the thread's message and returns the code. Owns the wording
 * common to all calls; the call itself says what is wrong and what would be right.
 */
#include "acl-internal.h"

aclError acl_fail(aclError code, const char *call, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	code = core_fail_va(code, call, format, args);
	va_end(args);
	return code;
}

aclError acl_fail_null(const char *call, const char *argument)
{
	return acl_invalid(call, "%s is NULL; it must point to something", argument);
}

aclError acl_fail_unmodelled(const char *call)
{
	return acl_unsupported(
		call,
		"outside of what npusim models: it runs the runtime's memory, device, stream and "
		"event functions, and no operators; runtime/COVERAGE.md lists what works");
}
