/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the ACL that link and answer "not supported", made of the list that the build
 * derives from include/acl/rt/unmodelled.h. Nothing here touches a device, an argument or any state
 * but the thread's message.
 */
#include "acl-internal.h"

/* The list names the parameters for its readers; no function here looks at one. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define UNMODELLED(type, name, parameters, answer) \
	type name parameters                       \
	{                                          \
		CORE_CALLED(#name);                \
		(void)acl_fail_unmodelled();       \
		return answer;                     \
	}
#define ERROR(name, parameters)               \
	aclError name parameters              \
	{                                     \
		return acl_fail_unmodelled(); \
	}
#define POINTER(type, name, parameters) UNMODELLED(type, name, parameters, NULL)
#define UINT32(name, parameters)        UNMODELLED(uint32_t, name, parameters, UINT32_MAX)
#include "acl-unmodelled-list.h"
