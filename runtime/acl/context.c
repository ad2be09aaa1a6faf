/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: the ACL face of runtime/core/context.c.
 */
#include "acl-internal.h"

ACL_EXPORT aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
	ACL_ANSWERS(ACL_IS_NULL(context) ?: core_context_create(deviceId, context, __func__));
ACL_EXPORT aclError aclrtDestroyContext(aclrtContext context)
	ACL_ANSWERS(ACL_IS_NULL(context) ?: core_context_destroy(context, __func__));
ACL_EXPORT aclError aclrtSetCurrentContext(aclrtContext context)
	ACL_ANSWERS(ACL_IS_NULL(context) ?: core_context_select(context, __func__));

ACL_EXPORT aclError aclrtGetCurrentContext(aclrtContext *context)
{
	struct core_context *current;

	return ACL_IS_NULL(context) ?: acl_current(__func__, &current)
			?: ACL_GIVE(context, core_context_handle(current));
}

ACL_EXPORT aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
	bool is_active;
	aclError code;

	if (ACL_IS_NULL(active))
		return ACL_ERROR_INVALID_PARAM;
	if (flags != NULL)
		return acl_invalid(__func__, "flags is reserved; it must be NULL");
	code = core_device_primary_active(deviceId, &is_active, __func__);
	if (code == ACL_SUCCESS)
		*active = is_active ? 1 : 0;
	return code;
}

ACL_EXPORT aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
	ACL_ANSWERS(ACL_IS_NULL(stream) ?: core_stream_default(stream, __func__));
