/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ACL face share: how a call is refused, how the driver is called, memory
 * and copies. The face checks arguments in CANN's order and calls runtime/core; it holds no state
 * of its own. No file here calls an exported acl function, since programs interpose those.
 */
#ifndef NPUSIM_ACL_INTERNAL_H
#define NPUSIM_ACL_INTERNAL_H

#include "acl/acl.h"
#include "acl-doors.h"
#include "core/core.h"
#include "npusim/npusim.h"
#include "runtime/rt.h"

/* Functions that answer a code are called through door.c, which exports their names: what is
 * defined here by that name is another symbol, a hidden one. */
#define ACL_INSIDE(call, params, args) extern __typeof__(call) call __asm__("inside." #call);
ACL_DOORS(ACL_INSIDE)

/* Defines a function that is one answer, of the parameters that its header names:
 * ACL_ANSWERS(aclrtFree, ACL_IS_NULL(devPtr) ?: ...); and one that needs variables for it, one
 * declaration or several with ; between them: ACL_ANSWERS_WITH(aclrtGetDevice, struct core_context
 * *context, ...). The end of such a chain of checks: *out = value, of ACL_GIVE_IF() where out is
 * not NULL. */
#define ACL_ANSWERS(call, ...)              \
	aclError call ACL_PARAMETERS_##call \
	{                                   \
		return __VA_ARGS__;         \
	}
#define ACL_ANSWERS_WITH(call, variables, ...) \
	aclError call ACL_PARAMETERS_##call    \
	{                                      \
		variables;                     \
		return __VA_ARGS__;            \
	}
#define ACL_GIVE                CORE_GIVE
#define ACL_GIVE_IF(out, value) ((out) != NULL ? ACL_GIVE(out, value) : ACL_SUCCESS)

/* The codes of most refusals: the ACL's own (100000), the runtime's (107000), 207000. The text
 * names the argument, its value, the limit, and what would be right. */
#define acl_invalid(...)     core_fail(ACL_ERROR_INVALID_PARAM, __VA_ARGS__)
#define rt_invalid(...)      core_fail(ACL_ERROR_RT_PARAM_INVALID, __VA_ARGS__)
#define acl_unsupported(...) core_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __VA_ARGS__)
/* A check in a chain of such: 0 where it is fine, else the refusal. */
#define ACL_WANT(fine, ...) ((fine) ? ACL_SUCCESS : acl_invalid(__VA_ARGS__))
#define RT_WANT(fine, ...)  ((fine) ? ACL_SUCCESS : rt_invalid(__VA_ARGS__))
/* The answer of a function that npusim does not model (207000). */
aclError acl_fail_unmodelled(void);

/* Waits for all streams of the current device. device.c */
aclError acl_synchronize(int32_t timeout);

/* Timeouts of synchronizing calls: -1 or from 1, else ACL_ERROR_RT_PARAM_INVALID. zero_is_fine: 0
 * is looked at later. */
aclError acl_check_timeout(int32_t timeout, bool zero_is_fine);

/* The checks and calls below answer 0, or the code of a refusal whose message is set; joined by
 * `?:` they are heard in order, up to the first refusal. */

/* ACL_ERROR_INVALID_PARAM for a NULL pointer, a 0, and a reserved argument that is not 0. */
static inline aclError acl_null(const char *argument, const void *value)
{
	return ACL_WANT(value != NULL, "%s is NULL; it must point to something", argument);
}
static inline aclError acl_zero(const char *argument, uint64_t value)
{
	return ACL_WANT(value != 0, "%s is 0; it must be at least 1", argument);
}
static inline aclError acl_set(const char *argument, uint64_t value)
{
	return ACL_WANT(value == 0, "%s is %#llx; it must be 0", argument,
			(unsigned long long)value);
}
#define ACL_IS_NULL(arg) acl_null(#arg, arg)
#define ACL_IS_ZERO(arg) acl_zero(#arg, arg)
#define ACL_IS_SET(arg)  acl_set(#arg, arg)

/* The current context; 107002 without one. */
static inline aclError acl_current(struct core_context **out)
{
	*out = core_context_peek();
	return *out != NULL ? ACL_SUCCESS : core_context_none();
}
static inline aclError acl_check_context(void)
{
	return core_context_peek() != NULL ? ACL_SUCCESS : core_context_none();
}
/* User id to logic id, for calls of which the driver, which is asked first, says that a wrong one
 * is a parameter (107000). */
static inline aclError acl_asked_device(uint32_t device, uint32_t *out)
{
	if (core_device_logic((int32_t)device, "deviceId", out) == ACL_SUCCESS)
		return ACL_SUCCESS;
	return core_last_error_note(ACL_ERROR_RT_PARAM_INVALID);
}
/* The driver's code as an aclError: ACL_CALL(halMemUnmap, va). */
#define ACL_CALL(op, ...) core_result(core_call(op __VA_OPT__(, ) __VA_ARGS__))

/* ---- memory (vmm.c): names of values, where an address lies ---- */

/* The names of enum values; "unknown" beyond them. */
const char *acl_location_name(int type);
const char *acl_memcpy_kind_name(int kind);

/* Page-locked: aclrtMallocHost, registered, or a mapped host handle. */
static inline bool acl_place_is_host(const struct npu_place *place)
{
	return place->kind == NPU_PLACE_PINNED || place->kind == NPU_PLACE_REGISTERED;
}

/* Its logic id; 0 where the memory is the host's. */
static inline uint32_t acl_place_device(const struct npu_place *place)
{
	return place->owner == NPU_OWNER_HOST ? 0 : place->owner;
}

/* What drvMemGetAttribute says of an address: kind (DEVICE, PINNED, REGISTERED, PAGEABLE, MANAGED;
 * a mapped handle is one of the first two), owner (a logic id) and page_bytes. The driver's codes:
 * memory that is reserved and was never mapped, not allocated. */
aclError acl_place_of(const char *argument, const void *ptr, struct npu_place *out);

/* Peer access, both ways, between a device and the one whose memory it imports. share.c */
aclError acl_enable_peer(uint32_t device, uint32_t peer_phy);

/* True if the address lies in memory that aclrtHostRegister or aclrtHostRegisterV2 registered.
 * memory.c */
bool acl_host_is_registered(const void *ptr);

#endif
