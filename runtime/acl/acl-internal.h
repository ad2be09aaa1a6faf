/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ACL face share: how a call is refused. The face checks arguments in CANN's
 * order and calls runtime/core; it holds no state of its own. No file here calls an exported acl
 * function, since programs interpose those.
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

/* Timeouts of synchronizing calls: -1 or from 1, else ACL_ERROR_RT_PARAM_INVALID. zero_is_fine: 0
 * is looked at later. */
aclError acl_check_timeout(const char *call, int32_t timeout, bool zero_is_fine);

/* Returns from the calling function if pointer `arg` is NULL. */
#define ACL_CHECK_NULL(arg)                                   \
	do {                                                  \
		if ((arg) == NULL)                            \
			return acl_fail_null(__func__, #arg); \
	} while (0)

/* The driver, or return ACL_ERROR_RT_DRV_INTERNAL_ERROR... from the calling function (message set
 * by core_driver()). */
#define ACL_DRIVER(var)                         \
	struct npu_driver *var = core_driver(); \
	if (var == NULL)                        \
	return ACL_ERROR_INTERNAL_ERROR

#endif
