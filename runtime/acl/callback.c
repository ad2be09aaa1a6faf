/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions that streams call: the ACL face of runtime/core/callback.c.
 */
#include "acl-internal.h"

ACL_EXPORT aclError aclrtLaunchCallback(aclrtCallback fn, void *userData,
					aclrtCallbackBlockType blockType, aclrtStream stream)
{
	if (blockType != ACL_CALLBACK_BLOCK && blockType != ACL_CALLBACK_NO_BLOCK)
		return acl_invalid(__func__,
				   "blockType is %d; it must be ACL_CALLBACK_NO_BLOCK (0) or "
				   "ACL_CALLBACK_BLOCK (1)",
				   (int)blockType);
	if (fn == NULL)
		return rt_invalid(__func__, "fn is NULL; it must be a function");
	return core_callback_launch(fn, userData, blockType == ACL_CALLBACK_BLOCK, stream,
				    __func__);
}

ACL_EXPORT aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
	if (fn == NULL)
		return rt_invalid(__func__, "fn is NULL; it must be a function");
	return core_callback_launch_host(fn, args, stream, __func__);
}

ACL_EXPORT aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
	ACL_ANSWERS(core_callback_subscribe(threadId, stream, __func__));
ACL_EXPORT aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
	ACL_ANSWERS(core_callback_unsubscribe(threadId, stream, __func__));

ACL_EXPORT aclError aclrtProcessReport(int32_t timeout)
{
	if (timeout < -1 || timeout == 0)
		return acl_invalid(
			__func__,
			"timeout is %d; it must be -1 (wait for ever) or at least 1, in ms",
			timeout);
	return core_callback_process(timeout, __func__);
}
