/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ACL face share: how a call is refused. The face checks arguments in the
 * order of CANN's and calls runtime/core; it holds no state of its own. No file here calls an
 * exported acl function: programs interpose those.
 */
#ifndef NPUSIM_ACL_INTERNAL_H
#define NPUSIM_ACL_INTERNAL_H

#include "acl/acl.h"
#include "core/core.h"

#define ACL_EXPORT __attribute__((visibility("default")))

/* Sets the thread's message to "<call>: <text>" and returns code. The text names the argument, its
 * value, the limit, and what would be right. */
aclError acl_fail(aclError code, const char *call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "<call>: <argument> is NULL": ACL_ERROR_INVALID_PARAM. */
aclError acl_fail_null(const char *call, const char *argument);
/* The answer of a function that npusim does not model (207000). */
aclError acl_fail_unmodelled(const char *call);

/* Waits for all streams of the current device. device.c */
aclError acl_synchronize(const char *call, int32_t timeout);

/* Timeouts of synchronizing calls: -1 or from 1, else ACL_ERROR_RT_PARAM_INVALID. zero_is_fine: 0
 * is looked at later. */
aclError acl_check_timeout(const char *call, int32_t timeout, bool zero_is_fine);

/* The checks and calls below answer 0, or the code of a refusal whose message is set; joined by
 * `?:` they are heard in order, up to the first refusal. */

/* ACL_ERROR_INVALID_PARAM for a NULL pointer, a 0, and a reserved argument that is not 0. */
static inline aclError acl_null(const char *call, const char *argument, const void *value)
{
	return value != NULL ? ACL_SUCCESS : acl_fail_null(call, argument);
}
static inline aclError acl_zero(const char *call, const char *argument, uint64_t value)
{
	return value != 0 ? ACL_SUCCESS
			  : acl_fail(ACL_ERROR_INVALID_PARAM, call,
				     "%s is 0; it must be at least 1", argument);
}
static inline aclError acl_set(const char *call, const char *argument, uint64_t value)
{
	return value == 0 ? ACL_SUCCESS
			  : acl_fail(ACL_ERROR_INVALID_PARAM, call, "%s is %#llx; it must be 0",
				     argument, (unsigned long long)value);
}
#define ACL_IS_NULL(arg) acl_null(__func__, #arg, arg)
#define ACL_IS_ZERO(arg) acl_zero(__func__, #arg, arg)
#define ACL_IS_SET(arg)  acl_set(__func__, #arg, arg)

/* The current context; 107002 without one. */
static inline aclError acl_current(const char *call, struct core_context **out)
{
	*out = core_context_peek();
	return *out != NULL ? ACL_SUCCESS : core_context_none(call);
}
static inline aclError acl_check_context(const char *call)
{
	return core_context_peek() != NULL ? ACL_SUCCESS : core_context_none(call);
}
/* ACL_ERROR_INTERNAL_ERROR where no driver can be had; the message begins with the call's name. */
static inline aclError acl_check_driver(const char *call)
{
	if (core_driver() != NULL)
		return ACL_SUCCESS;
	npu_message_prefix("%s: ", call);
	return ACL_ERROR_INTERNAL_ERROR;
}
/* Calls the driver: ACL_CALL(call, halMemUnmap, va). ACL_ERROR_INTERNAL_ERROR where none can be
 * had, the message that of core_driver(). */
#define ACL_CALL(call, op, ...)                                                                  \
	({                                                                                       \
		struct npu_driver *drv_ = core_driver();                                         \
                                                                                                 \
		drv_ == NULL ? ACL_ERROR_INTERNAL_ERROR                                          \
			     : core_result(call, npu_call(drv_, op __VA_OPT__(, ) __VA_ARGS__)); \
	})

#endif
