/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: reservations, handles, mappings, access, sharing. Owns the checks and
 * their order, as an H100's driver (580) answers.
 *
 * One lock makes each call one step: a call on a range looks at all of its mappings before it
 * changes one. The driver below takes one mapping at a time.
 */
#include "cuda-internal.h"

#include "base/lock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what lies where */

static bool is_granular(uint64_t value)
{
	return value % CUDA_GRANULE_BYTES == 0;
}

struct npu_place cuda_place(uint64_t va)
{
	struct npu_place place = { .kind = NPU_PLACE_PAGEABLE };

	struct trace_name own = cuda_memory_find(va);

	npu_call(core_driver(), npusimPlace, va, &place);
	if (own.bytes != 0 && place.kind != NPU_PLACE_PAGEABLE) {
		place.base = own.key;
		place.asked_bytes = own.bytes;
		if (own.letter == NPU_PLACE_MANAGED)
			place.kind = NPU_PLACE_MANAGED;
	}
	return place;
}

/* ---- reservations ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags)
{
	void *made = NULL;
	CUresult code = CUDA_WANT(flags == 0 && size != 0 && is_granular(size) && is_granular(addr),
				  "size %zu, addr 0x%llx, flags %llu: size and addr must be "
				  "multiples of 2 MiB, size not 0, and flags 0",
				  size, addr, flags)
				?: cuda_keep(0);

	if (code != CUDA_SUCCESS)
		return code;
	LOCKED(&lock);
	return CUDA_CALL(halMemAddressReserve, &made, size, alignment, cuda_pointer(addr), 0)
		       ?: CUDA_GIVE(ptr, (uintptr_t)made);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	LOCKED(&lock);
	struct npu_place place = cuda_place(ptr);

	if (place.reserved_bytes == 0 || place.reserved_base != ptr || place.reserved_bytes != size)
		return cuda_invalid("[0x%llx, +0x%zx) is not exactly one reservation: at ptr lies "
				    "%s, [0x%" PRIx64 ", +0x%" PRIx64 ")",
				    ptr, size, place.reserved_bytes == 0 ? "none" : "this one",
				    place.reserved_base, place.reserved_bytes);
	return CUDA_CALL(halMemAddressFree, cuda_pointer(ptr));
}

/* ---- handles ---- */

CUresult cuda_check_location(const CUmemLocation *where, uint32_t *logic)
{
	if (where->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return cuda_check_device(where->id, logic);
	if (where->type == CU_MEM_LOCATION_TYPE_HOST ||
	    (where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA && where->id >= 0))
		return CUDA_SUCCESS;
	return cuda_invalid("location is (%d, %d); memory is on a device (1), the host (2) or one "
			    "of its NUMA nodes (3), which are 0 or more",
			    (int)where->type, where->id);
}

static CUresult prop_of(const CUmemAllocationProp *prop, struct drv_mem_prop *out)
{
	CUresult code;
	static const uint32_t sides[] = { [CU_MEM_LOCATION_TYPE_DEVICE] = MEM_DEV_SIDE,
					  [CU_MEM_LOCATION_TYPE_HOST] = MEM_HOST_SIDE,
					  [CU_MEM_LOCATION_TYPE_HOST_NUMA] = MEM_HOST_NUMA_SIDE };
	unsigned types = (unsigned)prop->requestedHandleTypes;
	uint32_t flags; /* all of allocFlags that is not reserved */

	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return cuda_invalid("prop.type is %d; it must be 1 (pinned)", (int)prop->type);
	if ((code = cuda_check_location(&prop->location, &out->devid)) != CUDA_SUCCESS)
		return code;
	if (types & (CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT))
		return cuda_invalid(
			"prop.requestedHandleTypes is %u; Windows's handles are not here", types);
	if (types & CU_MEM_HANDLE_TYPE_FABRIC)
		return cuda_fail(CUDA_ERROR_NOT_PERMITTED,
				 "prop.requestedHandleTypes is %u; fabric handles need an IMEX "
				 "channel, and there is none",
				 types);
	memcpy(&flags, &prop->allocFlags, sizeof(flags));
	out->pg_type = MEM_HUGE_PAGE_TYPE;
	out->module_id = APP_MODULE_ID;
	out->side = sides[prop->location.type];
	out->mem_type = out->side == MEM_DEV_SIDE ? MEM_HBM_TYPE : MEM_DDR_TYPE;
	if (out->side == MEM_HOST_NUMA_SIDE)
		out->devid = (uint32_t)prop->location.id;
	out->reserve = types | (uint64_t)flags << 32;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct drv_mem_prop want = { 0 };
	drv_mem_handle_t *made = NULL;

	return CUDA_WANT(flags == 0 && size != 0 && is_granular(size),
			 "size is %zu, flags %llu: size must be a multiple of 2 MiB, "
			 "the granularity, and flags 0",
			 size, flags)
		       ?: prop_of(prop, &want)
		       ?: cuda_keep(want.side == MEM_DEV_SIDE ? want.devid : 0)
		       ?: CUDA_CALL(halMemCreate, &made, size, &want, 0)
		       ?: CUDA_GIVE(handle, (uintptr_t)made);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
	CUDA_ANSWERS(cuda_keep(0) ?: CUDA_CALL(halMemRelease, cuda_handle(handle)));

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	drv_mem_handle_t *got = NULL;
	LOCKED(&lock);
	struct npu_place place = cuda_place((uintptr_t)addr);

	return CUDA_WANT(place.kind == NPU_PLACE_MAPPED, "nothing is mapped at %p", addr)
		       ?: CUDA_CALL(halMemRetainAllocationHandle, &got, cuda_pointer(place.base))
		       ?: CUDA_GIVE(handle, (uintptr_t)got);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
	CUDA_ANSWERS((void)prop,
		     CUDA_WANT((unsigned)option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
			       "option is %d; known are 0 (minimum) and 1 (recommended)",
			       (int)option)
			     ?: CUDA_GIVE(granularity, CUDA_GRANULE_BYTES));

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
						CUmemGenericAllocationHandle handle)
{
	struct drv_mem_prop have = { 0 };
	uint32_t flags;
	CUresult code = cuda_keep(0)
				?: CUDA_CALL(halMemGetAllocationPropertiesFromHandle, &have,
					     cuda_handle(handle));

	if (code != CUDA_SUCCESS)
		return code;
	*prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = (CUmemAllocationHandleType)(uint32_t)have.reserve,
		.location = { have.side == MEM_DEV_SIDE    ? CU_MEM_LOCATION_TYPE_DEVICE
			      : have.side == MEM_HOST_SIDE ? CU_MEM_LOCATION_TYPE_HOST
							   : CU_MEM_LOCATION_TYPE_HOST_NUMA,
			      have.side == MEM_DEV_SIDE ? cuda_ordinal(have.devid)
							: (int)have.devid },
	};
	flags = (uint32_t)(have.reserve >> 32);
	memcpy(&prop->allocFlags, &flags, sizeof(flags));
	return CUDA_SUCCESS;
}

/* ---- shareable handles: POSIX file descriptors, real ones, which pass over sockets, keep memory
 * alive and are the program's to close. Fabric handles answer as without an IMEX channel. ---- */

CUresult cuda_share_type(CUmemAllocationHandleType type)
	CUDA_ANSWERS(CUDA_WANT(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			       "type is %d; memory is shared as a file descriptor (1)", (int)type));

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	struct MemShareHandle share;
	CUmemAllocationProp prop;

	return cuda_no_flags(flags) ?: cuda_share_type(type)
		?: cuMemGetAllocationPropertiesFromHandle(&prop, handle)
		?: CUDA_WANT(((unsigned)prop.requestedHandleTypes & (unsigned)type) != 0,
			     "handle 0x%llx was not made to be shared: "
			     "prop.requestedHandleTypes was %d, and %d is asked for",
			     handle, (int)prop.requestedHandleTypes, (int)type)
		?: CUDA_CALL(halMemExportToShareableHandleV2, cuda_handle(handle),
			     MEM_HANDLE_TYPE_POSIX, 0, &share)
		?: (memcpy(shareable, &share, sizeof(int)), CUDA_SUCCESS);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
					CUmemAllocationHandleType type)
{
	struct MemShareHandle share = { { 0 } };
	drv_mem_handle_t *made = NULL;
	int fd = (int)(intptr_t)shareable;

	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return cuda_fail(CUDA_ERROR_NOT_PERMITTED,
				 "fabric handles need an IMEX channel, and there is none");
	memcpy(&share, &fd, sizeof(fd));
	return cuda_share_type(type) ?: cuda_keep(0)
		?: CUDA_CALL(halMemImportFromShareableHandleV2, MEM_HANDLE_TYPE_POSIX, &share, 0,
			     &made)
		?: CUDA_GIVE(handle, (uintptr_t)made);
}

/* ---- mappings ---- */

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	CUresult code;

	if (ptr == 0 || size == 0 || flags != 0 || !is_granular(ptr))
		return cuda_invalid("ptr 0x%llx, size %zu, flags %llu: ptr must be a multiple of "
				    "2 MiB, neither of the first two 0, and flags 0",
				    ptr, size, flags);
	if (offset != 0)
		return cuda_fail(CUDA_ERROR_NOT_SUPPORTED, "offset is %zu; it must be 0", offset);
	if ((code = cuda_keep(0)) != CUDA_SUCCESS)
		return code;
	LOCKED(&lock);
	return CUDA_CALL(halMemMapNoAccess, cuda_pointer(ptr), size, 0, cuda_handle(handle), 0);
}

/* Every mapping that the range touches must lie in it; parts of it may be without one. Reservations
 * that adjoin are one to it. All is looked at, then all is unmapped. */
static CUresult unmap_locked(uint64_t start, uint64_t end, bool only_look)
{
	CUresult code = only_look ? CUDA_SUCCESS : unmap_locked(start, end, true);
	struct npu_place place;

	for (uint64_t at = start; code == CUDA_SUCCESS && at < end;
	     at = place.kind == NPU_PLACE_MAPPED ? place.base + place.bytes : place.next_mapped) {
		place = cuda_place(at);
		if (place.reserved_bytes == 0)
			return cuda_invalid("[0x%" PRIx64 ", 0x%" PRIx64
					    ") is not reserved from 0x%" PRIx64 " on",
					    start, end, at);
		if (place.kind != NPU_PLACE_MAPPED)
			continue;
		if (place.base < start || place.base + place.bytes > end)
			return cuda_invalid("[0x%" PRIx64 ", 0x%" PRIx64
					    ") cuts the mapping [0x%" PRIx64 ", +0x%" PRIx64
					    "); a mapping is removed whole",
					    start, end, place.base, place.bytes);
		if (!only_look)
			code = CUDA_CALL(halMemUnmap, cuda_pointer(at));
	}
	return code;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	if (ptr == 0 || size == 0 || !is_granular(ptr) || !is_granular(size) || ptr + size < ptr)
		return cuda_invalid(
			"ptr is 0x%llx and size %zu; both must be multiples of 2 MiB and not 0",
			ptr, size);
	LOCKED(&lock);
	return unmap_locked(ptr, ptr + size, false);
}

/* ---- access ---- */

static bool is_host(const CUmemLocation *location)
{
	return location->type >= CU_MEM_LOCATION_TYPE_HOST &&
	       location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult grant_of(const CUmemAccessDesc *desc, bool host_memory,
			 struct drv_mem_access_desc *out)
{
	const CUmemLocation *location = &desc->location;

	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return cuda_invalid(
			"desc.flags is %d; known are 0 (none), 1 (read) and 3 (read and write)",
			(int)desc->flags);
	out->type = (drv_mem_access_type)desc->flags;
	if (is_host(location)) {
		out->location.side = MEM_HOST_SIDE;
		return host_memory
			       ? CUDA_SUCCESS
			       : cuda_fail(CUDA_ERROR_NOT_SUPPORTED,
					   "the CPU cannot be given access to memory of a device");
	}
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !cuda_device(location->id, &out->location.id))
		return cuda_invalid("desc.location is (%d, %d); access is given to a device (1) "
				    "that is there, or to the host (2 to 4)",
				    (int)location->type, location->id);
	out->location.side = MEM_DEV_SIDE;
	return cuda_keep(out->location.id);
}

/* Of the same values as CUmemAccess_flags. */
static drv_mem_access_type access_of(const struct npu_place *place,
				     const struct drv_mem_location *location)
{
	bool host = location->side == MEM_HOST_SIDE;

	if (host ? place->cpu : place->writers >> location->id & 1)
		return MEM_ACCESS_TYPE_READWRITE;
	return !host && place->readers >> location->id & 1 ? MEM_ACCESS_TYPE_READ
							   : MEM_ACCESS_TYPE_NONE;
}

/* A change of access, and what was before it. */
struct change {
	uint64_t va, bytes;
	struct drv_mem_access_desc before;
};

/* The range must begin where a mapping does and end where one does; rights go to all from the first
 * on that follow one another without a gap. What was changed before a failure is taken back. */
static CUresult grant_locked(uint64_t start, uint64_t end, const CUmemAccessDesc *desc,
			     size_t count)
{
	struct npu_place place = cuda_place(start), last = cuda_place(end - 1);
	bool host = place.owner == NPU_OWNER_HOST;
	struct change *changes = NULL;
	CUresult code = CUDA_SUCCESS;
	size_t made = 0;

	if (place.kind != NPU_PLACE_MAPPED || place.base != start ||
	    last.kind != NPU_PLACE_MAPPED || last.base + last.bytes != end)
		return cuda_invalid("[0x%" PRIx64 ", 0x%" PRIx64
				    ") does not begin and end with whole mappings",
				    start, end);
	for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
		struct drv_mem_access_desc grant = { 0 };

		code = grant_of(&desc[i], host, &grant);
		for (uint64_t at = start; at < end && code == CUDA_SUCCESS; at += place.bytes) {
			struct change *more = reallocarray(changes, made + 1, sizeof(*more));

			place = cuda_place(at);
			changes = more ?: changes;
			if (place.kind != NPU_PLACE_MAPPED)
				break;
			code = more == NULL ? CUDA_ERROR_OUT_OF_MEMORY
					    : CUDA_CALL(halMemSetAccess, cuda_pointer(at),
							place.bytes, &grant, 1);
			if (code != CUDA_SUCCESS)
				break;
			changes[made] = (struct change){ at, place.bytes, grant };
			changes[made++].before.type = access_of(&place, &grant.location);
		}
	}
	while (code != CUDA_SUCCESS && made-- > 0)
		npu_call(core_driver(), halMemSetAccess, cuda_pointer(changes[made].va),
			 changes[made].bytes, &changes[made].before, 1);
	free(changes);
	return code;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	if (ptr == 0 || size == 0 || count == 0 || ptr + size < ptr)
		return cuda_invalid("ptr 0x%llx, size %zu, count %zu: none may be 0", ptr, size,
				    count);
	LOCKED(&lock);
	return grant_locked(ptr, ptr + size, desc, count);
}

/* The H100's driver asks a host location of device memory as if it were the device of that id. */
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct drv_mem_location asked;
	struct npu_place place;
	uint32_t logic = 0;
	bool host = is_host(location);

	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE && !host)
		return cuda_invalid("location.type is %d", (int)location->type);
	place = cuda_place(ptr);
	host = host && place.kind == NPU_PLACE_MAPPED && place.owner == NPU_OWNER_HOST;
	if (!host && !cuda_device(location->id, &logic))
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE,
				 "location.id is %d; there is no such device", location->id);
	if (place.kind != NPU_PLACE_MAPPED)
		return cuda_invalid("nothing is mapped at 0x%llx", ptr);
	asked = (struct drv_mem_location){ logic, host ? MEM_HOST_SIDE : MEM_DEV_SIDE };
	return CUDA_GIVE(flags, access_of(&place, &asked));
}
