/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the ACL that link and answer "not supported", made of the list that the build
 * derives from include/acl/rt/other.h. Nothing here touches a device, an argument or any state but
 * the thread's message.
 */
#include "acl-internal.h"

/* The list names the parameters for its readers; no function here looks at one. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ERROR(name, parameters)                    \
	aclError name parameters                   \
	{                                          \
		return acl_fail_unmodelled(#name); \
	}

#define POINTER(type, name, parameters)           \
	ACL_EXPORT type name parameters           \
	{                                         \
		(void)acl_fail_unmodelled(#name); \
		return NULL;                      \
	}

#define UINT32(name, parameters)                  \
	ACL_EXPORT uint32_t name parameters       \
	{                                         \
		(void)acl_fail_unmodelled(#name); \
		return UINT32_MAX;                \
	}

#include "acl-unmodelled-list.h"
