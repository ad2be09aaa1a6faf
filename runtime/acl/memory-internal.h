/* SPDX-License-Identifier: Apache-2.0
 *
 * What the memory files of the ACL face share: the current context, device ids, where an address
 * lies, names of values in messages. No state.
 */
#ifndef NPUSIM_ACL_MEMORY_INTERNAL_H
#define NPUSIM_ACL_MEMORY_INTERNAL_H

#include "acl-internal.h"

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

/* Peer access, both ways, between a device and the one whose memory it imports. share.c */
aclError acl_enable_peer(const char *call, uint32_t device, uint32_t peer_phy);

/* ---- registered host memory (host.c) ---- */

/* True if the address lies in memory that aclrtHostRegister or aclrtHostRegisterV2 registered. */
bool acl_host_is_registered(const void *ptr);

#endif
