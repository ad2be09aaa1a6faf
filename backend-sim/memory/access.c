/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may reach a mapping: halMemSetAccess and halMemGetAccess; and what an address is: range and
 * attributes.
 */
#include "memory/alloc.h"
#include "cuda/dialect.h"
#include "memory/mapping.h"
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SET "halMemSetAccess"
#define GET "halMemGetAccess"

#define DEVICE_ID_LIMIT 64u

/* ---- grants ---- */

static drvError_t check_location(const char *call, const struct drv_mem_location *location,
				 bool host_id_counts)
{
	if (location->side == MEM_HOST_SIDE && (location->id == 0 || !host_id_counts))
		return DRV_ERROR_NONE;
	if (location->side == MEM_DEV_SIDE && location->id < DEVICE_ID_LIMIT)
		return DRV_ERROR_NONE;
	npu_message_set("%s: location (side %d, id %u): the host is side 0 with id 0, a device "
			"side 1 with an id below %u",
			call, (int)location->side, location->id, DEVICE_ID_LIMIT);
	return DRV_ERROR_INVALID_VALUE;
}

static drvError_t check_descriptors(const void *ptr, const struct drv_mem_access_desc *desc,
				    size_t count)
{
	if (ptr == NULL || desc == NULL || count == 0) {
		npu_message_set(SET ": %s", ptr == NULL    ? "ptr is NULL"
					    : desc == NULL ? "desc is NULL"
							   : "count is 0");
		return DRV_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count; i++) {
		int type = (int)desc[i].type;
		drvError_t result;

		if (type != MEM_ACCESS_TYPE_NONE && type != MEM_ACCESS_TYPE_READ &&
		    type != MEM_ACCESS_TYPE_READWRITE) {
			npu_message_set(SET ": desc[%zu].type is %d; known are 0 (none), 1 (read) "
					    "and 3 (read and write)",
					i, type);
			return DRV_ERROR_INVALID_VALUE;
		}
		result = check_location(SET, &desc[i].location, true);
		if (result != DRV_ERROR_NONE)
			return result;
		if (type != MEM_ACCESS_TYPE_READWRITE) {
			npu_message_set(SET ": desc[%zu].type is %d (%s); only 3 (read and write) "
					    "can be granted, and only unmapping "
					    "takes it away",
					i, type, type == MEM_ACCESS_TYPE_NONE ? "none" : "read");
			return DRV_ERROR_NOT_SUPPORT;
		}
	}
	return DRV_ERROR_NONE;
}

static drvError_t grant_cpu(struct bsim *bs, struct mapping *m)
{
	if (m->cpu)
		return DRV_ERROR_NONE;
	if (!tables_open_to_cpu(bs, m->va, mapping_bytes(m), m->handle->block)) {
		npu_message_set(SET ": this process cannot map %s for the CPU: %s",
				npu_size_text(mapping_bytes(m)), strerror(errno));
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	m->cpu = true;
	return DRV_ERROR_NONE;
}

static drvError_t check_peer(struct bsim *bs, const struct mapping *m, unsigned device)
{
	unsigned owner = m->handle->block->memory;

	if (!bsim_require_device_locked(bs, SET, device))
		return DRV_ERROR_PARA_ERROR;
	if (owner == SIM_NODE_HOST) {
		if (bs->profile.host_link_hccs)
			return DRV_ERROR_NONE;
		npu_message_set(SET ": devices of this server reach the host through PCIe, which "
				    "cannot map the host's memory for them");
		return DRV_ERROR_NOT_SUPPORT;
	}
	if (owner == device || bs->device[device].peers >> owner & 1)
		return DRV_ERROR_NONE;
	npu_message_set(
		SET ": device %u may not reach device %u, whose memory the mapping at 0x%" PRIx64
		    " is: enable it first (aclrtSetDevice(%u), aclrtDeviceEnablePeerAccess(%u, 0))",
		device, owner, m->va, device, owner);
	return DRV_ERROR_IOCRL_FAIL;
}

static drvError_t grant_device(struct bsim *bs, struct mapping *m, unsigned device)
{
	drvError_t result;

	if (m->handle->space == device || (device < BSIM_DEVICE_MAX && m->peers >> device & 1))
		return DRV_ERROR_NONE;
	result = check_peer(bs, m, device);
	if (result != DRV_ERROR_NONE)
		return result;
	if (!tables_map(bs, device, m->va, mapping_bytes(m), m->handle->block)) {
		npu_message_set(SET ": no memory for page tables on device %u", device);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	m->peers |= (uint16_t)(1u << device);
	return DRV_ERROR_NONE;
}

/* Grants that were made stay when a later one fails, as in the driver. */
static drvError_t set_access_locked(struct bsim *bs, uint64_t va, uint64_t size,
				    const struct drv_mem_access_desc *desc, size_t count)
{
	struct mapping *m;
	drvError_t result = bsim_require_open_locked(bs, SET);

	if (result != DRV_ERROR_NONE)
		return result;
	m = window_mapping(bs->window, va);
	if (m == NULL || m->va != va || mapping_bytes(m) != size) {
		npu_message_set(SET ": [0x%" PRIx64 ", +%s) is not exactly one mapping: at ptr, %s",
				va, npu_size_text(size), bsim_place_text_locked(bs, va));
		return DRV_ERROR_PARA_ERROR;
	}
	for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
		result = desc[i].location.side == MEM_HOST_SIDE
				 ? grant_cpu(bs, m)
				 : grant_device(bs, m, desc[i].location.id);
	return result;
}

drvError_t bsim_halMemSetAccess(struct npu_driver *self, void *ptr, size_t size,
				struct drv_mem_access_desc *desc, size_t count)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bsim_anywhere(bs)) {
		result = bsim_require_open_locked(bs, SET);
		if (result == DRV_ERROR_NONE)
			result = anywhere_set_access_locked(bs, (uintptr_t)ptr, size, desc, count);
		return bsim_leave(bs, SIM_CALL_ACCESS, size >> 21, 21, result);
	}
	result = check_descriptors(ptr, desc, count);
	if (result == DRV_ERROR_NONE)
		result = set_access_locked(bs, (uintptr_t)ptr, size, desc, count);
	return bsim_leave(bs, SIM_CALL_ACCESS, size >> 21, 21, result);
}

static bool may_reach(const struct mapping *m, const struct drv_mem_location *location)
{
	if (location->side == MEM_HOST_SIDE)
		return m->cpu;
	return m->handle->space == location->id ||
	       (location->id < BSIM_DEVICE_MAX && m->peers >> location->id & 1);
}

static drvError_t get_access_locked(struct bsim *bs, uint64_t va,
				    const struct drv_mem_location *location, uint64_t *flags)
{
	struct mapping *m;
	drvError_t result = bsim_require_open_locked(bs, GET);

	if (result != DRV_ERROR_NONE)
		return result;
	m = window_mapping(bs->window, va);
	if (m == NULL) {
		npu_message_set(GET ": nothing is mapped at ptr 0x%" PRIx64 ": %s", va,
				bsim_place_text_locked(bs, va));
		return DRV_ERROR_PARA_ERROR;
	}
	*flags = may_reach(m, location) ? MEM_ACCESS_TYPE_READWRITE : MEM_ACCESS_TYPE_NONE;
	return DRV_ERROR_NONE;
}

drvError_t bsim_halMemGetAccess(struct npu_driver *self, void *ptr,
				struct drv_mem_location *location, uint64_t *flags)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if (ptr == NULL || location == NULL || flags == NULL) {
		npu_message_set(GET ": %s is NULL", ptr == NULL        ? "ptr"
						    : location == NULL ? "location"
								       : "flags");
		result = DRV_ERROR_INVALID_VALUE;
	} else {
		result = check_location(GET, location, false);
	}
	if (result == DRV_ERROR_NONE)
		result = get_access_locked(bs, (uintptr_t)ptr, location, flags);
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}

/* ---- what an address is ---- */

drvError_t bsim_halMemGetAddressRange(struct npu_driver *self, DVdeviceptr ptr, DVdeviceptr *base,
				      size_t *size)
{
	const char *call = "halMemGetAddressRange";
	struct bsim *bs = bsim_of(self);
	struct bsim_place p;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	result = bsim_require_open_locked(bs, call);
	if (result == DRV_ERROR_NONE && base == NULL && size == NULL) {
		npu_message_set("%s: base and size are both NULL", call);
		result = DRV_ERROR_INVALID_VALUE;
	}
	if (result == DRV_ERROR_NONE) {
		bsim_locate_locked(bs, ptr, &p);
		if (p.kind != PLACE_MAPPED && p.kind != PLACE_CLASSIC) {
			npu_message_set("%s: no memory of a device or mapping at %s", call,
					bsim_place_text_locked(bs, ptr));
			result = DRV_ERROR_INVALID_VALUE;
		}
	}
	if (result == DRV_ERROR_NONE && base != NULL)
		*base = p.base;
	if (result == DRV_ERROR_NONE && size != NULL)
		*size = p.bytes;
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}

static drvError_t attribute_of_reservation(struct bsim *bs, uint64_t va, const struct bsim_place *p,
					   struct DVattribute *attr)
{
	if (p->memory == SIM_NODE_MAX) {
		npu_message_set(
			"drvMemGetAttribute: nothing has ever been mapped in this reservation: %s",
			bsim_place_text_locked(bs, va));
		return DRV_ERROR_INVALID_HANDLE;
	}
	/* Side and device are those of the first mapping, also when it is gone. */
	attr->memType = p->memory == SIM_NODE_HOST ? DV_MEM_LOCK_HOST : DV_MEM_LOCK_DEV;
	attr->devId = p->memory == SIM_NODE_HOST ? 0 : p->memory;
	attr->pageSize = p->memory == SIM_NODE_HOST ? 1u << 12 : 1u << 21;
	return DRV_ERROR_NONE;
}

static drvError_t attribute_locked(struct bsim *bs, uint64_t va, struct DVattribute *attr)
{
	struct bsim_place p;

	bsim_locate_locked(bs, va, &p);
	memset(attr, 0, sizeof(*attr));
	switch (p.kind) {
	case PLACE_PAGEABLE:
		attr->memType = DV_MEM_USER_MALLOC;
		attr->pageSize = 1u << 12;
		return DRV_ERROR_NONE;
	case PLACE_PINNED:
		attr->memType = DV_MEM_LOCK_HOST;
		attr->pageSize = 1u << 12;
		return DRV_ERROR_NONE;
	case PLACE_REGISTERED:
		attr->memType = DV_MEM_USER_REGISTER;
		attr->pageSize = 1u << 12;
		return DRV_ERROR_NONE;
	case PLACE_CLASSIC:
		attr->memType = DV_MEM_LOCK_DEV;
		attr->devId = p.memory;
		attr->pageSize = 1u << allocation_at(window_peek(bs->window, va), va)->page_lg2;
		return DRV_ERROR_NONE;
	case PLACE_MAPPED:
	case PLACE_RESERVED:
		return attribute_of_reservation(bs, va, &p, attr);
	case PLACE_FREE:
		break;
	}
	npu_message_set("drvMemGetAttribute: %s", bsim_place_text_locked(bs, va));
	return DRV_ERROR_NOT_EXIST;
}

drvError_t bsim_drvMemGetAttribute(struct npu_driver *self, DVdeviceptr va,
				   struct DVattribute *attr)
{
	struct bsim *bs = bsim_of(self);
	struct DVattribute found;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if (attr == NULL) {
		npu_message_set("drvMemGetAttribute: attr is NULL");
		result = DRV_ERROR_INVALID_VALUE;
	} else {
		result = attribute_locked(bs, va, &found);
	}
	if (result == DRV_ERROR_NONE)
		*attr = found;
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}
