/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands out the thread's error message and its last code through the ACL. Owns the wording common
 * to refusals of all calls.
 */
#include "acl-internal.h"

#include <stdio.h>

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

ACL_EXPORT const char *aclGetRecentErrMsg(void)
{
	static __thread char handed_out[4096];

	if (npu_message()[0] == '\0')
		return NULL;
	snprintf(handed_out, sizeof(handed_out), "%s", npu_message());
	npu_message_clear();
	return handed_out;
}

static aclError check_level(const char *call, aclrtLastErrLevel level)
{
	return ACL_WANT(call, level == ACL_RT_THREAD_LEVEL,
			"level is %d; it must be ACL_RT_THREAD_LEVEL (0)", (int)level);
}

ACL_EXPORT aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
	ACL_ANSWERS(check_level(__func__, level) ?: core_last_error_peek());
ACL_EXPORT aclError aclrtGetLastError(aclrtLastErrLevel level)
	ACL_ANSWERS(check_level(__func__, level) ?: core_last_error_take());
