/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets and queries access rights to mappings: halMemSetAccess and halMemGetAccess.
 */
#include "memory/dialect.h"
#include "memory/memory.h"
#include "memory/place.h"
#include "memory/tables.h"
#include "process/ops.h"

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
	return bsim_invalid("%s: location (side %d, id %u): the host is side 0 with id 0, a device "
			    "side 1 with an id below %u",
			    call, (int)location->side, location->id, DEVICE_ID_LIMIT);
}

static drvError_t check_descriptors(const void *ptr, const struct drv_mem_access_desc *desc,
				    size_t count)
{
	if (ptr == NULL || desc == NULL || count == 0)
		return bsim_invalid(SET ": %s", ptr == NULL    ? "ptr is NULL"
						: desc == NULL ? "desc is NULL"
							       : "count is 0");
	for (size_t i = 0; i < count; i++) {
		int type = (int)desc[i].type;
		drvError_t result;

		if (type != MEM_ACCESS_TYPE_NONE && type != MEM_ACCESS_TYPE_READ &&
		    type != MEM_ACCESS_TYPE_READWRITE)
			return bsim_invalid(SET ": desc[%zu].type is %d; known are 0 (none), 1 "
						"(read) and 3 (read and write)",
					    i, type);
		result = check_location(SET, &desc[i].location, true);
		if (result != DRV_ERROR_NONE)
			return result;
		if (type != MEM_ACCESS_TYPE_READWRITE)
			return bsim_unsupported(
				SET ": desc[%zu].type is %d (%s); only 3 (read and write) can be "
				    "granted, and only unmapping takes it away",
				i, type, type == MEM_ACCESS_TYPE_NONE ? "none" : "read");
	}
	return DRV_ERROR_NONE;
}

static drvError_t grant_cpu(struct bsim *bs, struct mapping *m)
{
	if (m->cpu)
		return DRV_ERROR_NONE;
	if (handle_is_remote(m->handle))
		return bsim_unsupported(SET ": the mapping at 0x%" PRIx64 " is of server %u, whose "
					    "memory devices reach, and no CPU",
					m->va, SIM_PEER_SERVER(m->handle->block->memory));
	if (!tables_open_to_cpu(bs, m->va, mapping_bytes(m), m->handle->block))
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 SET ": this process cannot map %s for the CPU: %s",
				 npu_size_text(mapping_bytes(m)), host_map_problem(errno));
	m->cpu = true;
	return DRV_ERROR_NONE;
}

static drvError_t check_peer(struct bsim *bs, const struct mapping *m, unsigned device)
{
	unsigned owner = m->handle->block->memory;

	if (!bsim_require_device_locked(bs, SET, device))
		return DRV_ERROR_PARA_ERROR;
	if (handle_is_remote(m->handle))
		return bsim_unsupported(SET ": device %u: the mapping at 0x%" PRIx64
					    " is of server %u, imported on device %u; import it "
					    "on each device that is to reach it",
					device, m->va, SIM_PEER_SERVER(owner), m->handle->space);
	if (owner == SIM_NODE_HOST) {
		if (bs->profile.host_link_hccs)
			return DRV_ERROR_NONE;
		return bsim_unsupported(SET ": devices of this server reach the host through PCIe, "
					    "which cannot map the host's memory for them");
	}
	if (owner == device || bs->device[device].peers >> owner & 1)
		return DRV_ERROR_NONE;
	return bsim_fail(
		DRV_ERROR_IOCRL_FAIL,
		SET ": device %u may not reach device %u, whose memory the mapping at 0x%" PRIx64
		    " is: enable it first (aclrtSetDevice(%u), aclrtDeviceEnablePeerAccess(%u, 0))",
		device, owner, m->va, device, owner);
}

static drvError_t grant_device(struct bsim *bs, struct mapping *m, unsigned device)
{
	drvError_t result;

	if (device < BSIM_DEVICE_MAX && m->tables >> device & 1)
		return DRV_ERROR_NONE;
	result = check_peer(bs, m, device);
	if (result != DRV_ERROR_NONE)
		return result;
	if (!tables_map(bs, device, m->va, mapping_bytes(m), m->handle->block, PT_WRITE))
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 SET ": no memory for page tables on device %u", device);
	m->tables |= UINT32_C(1) << device;
	return DRV_ERROR_NONE;
}

/* Grants that were made stay when a later one fails, as in the driver. */
static drvError_t set_access_locked(struct bsim *bs, uint64_t va, uint64_t size,
				    const struct drv_mem_access_desc *desc, size_t count)
{
	struct mapping *m = window_mapping(bs->window, va);
	drvError_t result = DRV_ERROR_NONE;

	if (m == NULL || m->va != va || mapping_bytes(m) != size)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 SET ": %s is not exactly one mapping: at ptr, %s",
				 range_text(va, size), place_text_locked(bs, va));
	for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
		result = desc[i].location.side == MEM_HOST_SIDE
				 ? grant_cpu(bs, m)
				 : grant_device(bs, m, desc[i].location.id);
	return result;
}

BSIM_CALL(halMemSetAccess, SIM_CALL_ACCESS, (void *, ptr), (size_t, size),
	  (struct drv_mem_access_desc *, desc), (size_t, count))
{
	const struct dialect *cuda = c->bs->cuda;
	drvError_t result = cuda == NULL ? check_descriptors(ptr, desc, count) : DRV_ERROR_NONE;

	c->pages = size >> 21;
	return result ?: bsim_require_open_locked(c->bs, SET)
		       ?: (cuda != NULL ? cuda->set_access : set_access_locked)(
				  c->bs, (uintptr_t)ptr, size, desc, count);
}

BSIM_CALL(halMemGetAccess, SIM_CALL_QUERY, (void *, ptr), (struct drv_mem_location *, location),
	  (uint64_t *, flags))
{
	uint64_t va = (uintptr_t)ptr;
	struct npu_place p;
	bool reached;
	drvError_t result;

	if (ptr == NULL || location == NULL || flags == NULL)
		return bsim_null(GET, ptr == NULL        ? "ptr"
				      : location == NULL ? "location"
							 : "flags");
	result = check_location(GET, location, false) ?: bsim_require_open_locked(c->bs, GET);
	if (result != DRV_ERROR_NONE)
		return result;
	p = place_at(c->bs, va);
	if (p.kind != NPU_PLACE_MAPPED)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 GET ": nothing is mapped at ptr 0x%" PRIx64 ": %s", va,
				 place_text_locked(c->bs, va));
	reached = location->side == MEM_HOST_SIDE
			  ? p.cpu
			  : location->id < BSIM_DEVICE_MAX && (p.readers >> location->id & 1);
	*flags = reached ? MEM_ACCESS_TYPE_READWRITE : MEM_ACCESS_TYPE_NONE;
	return DRV_ERROR_NONE;
}
