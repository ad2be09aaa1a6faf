/* SPDX-License-Identifier: Apache-2.0
 *
 * What the memory files of the ACL face share: the current context, device ids, the location of an
 * address, names of values in messages. No state.
 */
#ifndef NPUSIM_ACL_MEMORY_INTERNAL_H
#define NPUSIM_ACL_MEMORY_INTERNAL_H

#include "acl-internal.h"

/* Returns from the calling function if integer `arg` is 0. */
#define ACL_CHECK_POSITIVE(arg)                                                  \
	do {                                                                     \
		if ((arg) == 0)                                                  \
			return acl_fail(ACL_ERROR_INVALID_PARAM, __func__,       \
					"%s is 0; it must be at least 1", #arg); \
	} while (0)
/* Returns from the calling function if the reserved integer `arg` is not 0. */
#define ACL_CHECK_ZERO(arg)                                                \
	do {                                                               \
		if ((arg) != 0)                                            \
			return acl_fail(ACL_ERROR_INVALID_PARAM, __func__, \
					"%s is %#llx; it must be 0", #arg, \
					(unsigned long long)(arg));        \
	} while (0)
/* The current context, or return 107002 from the calling function. */
#define ACL_CONTEXT(var)                                   \
	struct core_context *var = core_context_current(); \
	if (var == NULL)                                   \
	return core_context_none(__func__)

/* The names of enum values; "unknown" beyond them. */
const char *acl_mem_attr_name(int attr);
const char *acl_location_name(int type);
const char *acl_memcpy_kind_name(int kind);

/* ---- where an address lies (info.c) ---- */

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
aclError acl_place_of(const char *call, const char *argument, const void *ptr,
		      struct npu_place *out);

/* ---- registered host memory (host.c) ---- */

/* True if the address lies in memory that aclrtHostRegister or aclrtHostRegisterV2 registered. */
bool acl_host_is_registered(const void *ptr);

#endif
