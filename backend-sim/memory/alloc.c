/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements halMemAlloc, halMemFree and memory information. Owns the meaning of an allocation's
 * flags, and the pages of allocations that have their own; allocations from heaps are in slab.c.
 */
#include "memory/memory.h"
#include "memory/place.h"
#include "memory/tables.h"
#include "process/ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALLOC "halMemAlloc"
#define FREE  "halMemFree"

#define SIDE_MASK           UINT64_C(0xf)
#define LARGEST             (UINT64_C(1) << 43)
#define CHECKED_ADDRESS_MAX 1024u

struct alloc_request {
	struct pool_kind kind;
	bool giant;
};

static unsigned mem_type_of(uint64_t flag)
{
	bool hbm = flag & MEM_TYPE_HBM, p2p = flag & MEM_ADVISE_P2P;

	if (flag & MEM_ADVISE_TS)
		return MEM_TS_DDR_TYPE;
	return hbm ? (p2p ? MEM_P2P_HBM_TYPE : MEM_HBM_TYPE)
		   : (p2p ? MEM_P2P_DDR_TYPE : MEM_DDR_TYPE);
}

static drvError_t decode_device(struct bsim *bs, uint64_t flag, struct alloc_request *out)
{
	unsigned device = flag & MEM_DEVID_MASK;

	if (!bsim_require_device_locked(bs, ALLOC, device))
		return DRV_ERROR_INVALID_DEVICE;
	out->giant = flag & MEM_PAGE_GIANT;
	if (out->giant && !bs->profile.giant_pages)
		return bsim_unsupported(ALLOC ": flag 0x%" PRIx64
					      " asks for 1 GiB pages, which a %s does not have",
					flag, bs->profile.soc_name);
	out->kind = (struct pool_kind){
		.use = NPU_PLACE_DEVICE,
		.area = flag & MEM_READONLY         ? WINDOW_READ_ONLY
			: flag & MEM_HOST_RW_DEV_RO ? WINDOW_DEVICE_READ_ONLY
						    : WINDOW_NORMAL,
		.memory = device,
		.page_lg2 = flag & (MEM_PAGE_HUGE | MEM_PAGE_GIANT) ? 21 : 12,
		.mem_type = mem_type_of(flag),
	};
	return DRV_ERROR_NONE;
}

static drvError_t decode(struct bsim *bs, uint64_t flag, struct alloc_request *out)
{
	uint64_t side = flag >> MEM_VIRT_BIT & SIDE_MASK;

	*out = (struct alloc_request){ 0 };
	switch (side) {
	case MEM_DEV_VAL:
	case MEM_DVPP_VAL:
		return decode_device(bs, flag, out);
	case MEM_HOST_VAL:
		out->kind = (struct pool_kind){ .use = NPU_PLACE_PINNED,
						.area = WINDOW_NORMAL,
						.memory = SIM_NODE_HOST,
						.page_lg2 = 12,
						.mem_type = MEM_DDR_TYPE };
		return DRV_ERROR_NONE;
	default:
		return bsim_unsupported(ALLOC ": flag 0x%" PRIx64 " asks for side %" PRIu64
					      "; 1 (device), 2 (host) and 3 (DVPP) are modelled, "
					      "shared virtual memory is not",
					flag, side);
	}
}

void block_poison(struct bsim *bs, const struct node_block *block)
{
	uint64_t bytes = block->frames << NODE_FRAME_LG2;

	if (bs->poison == 0 || !bs->contents || block->memory == SIM_NODE_HOST)
		return;
	if (bytes > node_host_room_bytes()) {
		npu_log(NPU_LOG_WARN,
			"NPUSIM_POISON: %s of device %u stay zeros: this machine's memory has no "
			"room for them",
			npu_size_text(bytes), block->memory);
		return;
	}
	node_block_touch(bs->node, block);
	for (unsigned i = 0; i < block->extent_count; i++)
		memset(node_memory(bs->node)->base[block->memory] +
			       ((uint64_t)block->extents[i].frame << NODE_FRAME_LG2),
		       bs->poison, (uint64_t)block->extents[i].count << NODE_FRAME_LG2);
}

/* Pages of the allocation's own: device memory in 2 MiB and 1 GiB pages. */
static drvError_t back_alone(struct bsim *bs, struct allocation *a, bool giant)
{
	drvError_t result =
		bsim_pass("halMemAlloc", memory_take(bs, a->memory, a->bytes >> NODE_FRAME_LG2,
						     giant, "allocation", &a->block));

	if (result != DRV_ERROR_NONE)
		return result;
	a->page_lg2 = giant ? 30 : 21;
	if (!tables_map(bs, a->memory, a->va, a->bytes, a->block, PT_WRITE)) {
		npu_message_set(ALLOC ": no memory for page tables on device %u", a->memory);
		node_block_drop(bs->node, a->block);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	node_block_touch(bs->node, a->block);
	block_poison(bs, a->block);
	return DRV_ERROR_NONE;
}

static drvError_t back_pinned(struct allocation *a)
{
	void *p = (void *)(uintptr_t)a->va;

	if (host_maps_left(1) &&
	    mmap(p, a->bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		return DRV_ERROR_NONE;
	npu_message_set(ALLOC ": this host has no %s for pinned memory: %s",
			npu_size_text(a->bytes), host_map_problem(errno));
	window_close_to_cpu(a->va, a->bytes);
	return DRV_ERROR_OUT_OF_MEMORY;
}

BSIM_CALL(halMemAlloc, SIM_CALL_ALLOC, (void **, pp), (unsigned long long, size),
	  (unsigned long long, flag))
{
	struct bsim *bs = c->bs;
	struct alloc_request want;
	struct allocation *a;
	uint64_t page;
	drvError_t result;

	if (pp == NULL || size == 0)
		return bsim_invalid(ALLOC ": %s", pp == NULL ? "pp is NULL" : "size is 0");
	result = bsim_require_open_locked(bs, ALLOC) ?: decode(bs, flag, &want);
	if (result != DRV_ERROR_NONE)
		return result;
	if (size > LARGEST)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 ALLOC ": size %s is more than any memory of this server",
				 npu_size_text(size));
	if (size > WINDOW_LARGE && want.kind.use == NPU_PLACE_DEVICE)
		want.kind.page_lg2 = 21; /* heaps of its own take whole frames */
	page = want.giant ? WINDOW_GIB : UINT64_C(1) << want.kind.page_lg2;
	a = allocation_new(bs, ALLOC, &want.kind, (size + page - 1) / page * page, &result);
	if (a == NULL)
		return result;
	a->asked = size;
	if (a->kind == NPU_PLACE_PINNED)
		result = back_pinned(a);
	else if (want.kind.page_lg2 == 21)
		result = back_alone(bs, a, want.giant);
	if (result != DRV_ERROR_NONE) {
		allocation_drop(bs, a);
		return result;
	}
	c->page_lg2 = a->page_lg2;
	c->pages = a->bytes >> a->page_lg2;
	*pp = (void *)(uintptr_t)a->va;
	return DRV_ERROR_NONE;
}

/* ---- free ---- */

void allocation_end(struct bsim *bs, struct allocation *a)
{
	if (!gone_hold_locked(bs, a))
		allocation_finish(bs, a);
}

void allocation_finish(struct bsim *bs, struct allocation *a)
{
	if (a->kind == NPU_PLACE_PINNED)
		window_close_to_cpu(a->va, a->bytes);
	if (a->block != NULL) {
		tables_unmap(bs, a->memory, a->va, a->bytes, a->page_lg2);
		node_block_drop(bs->node, a->block);
	}
	allocation_drop(bs, a);
}

unsigned alloc_end_device(struct bsim *bs, unsigned device)
{
	struct allocation *next;
	unsigned ended = 0;

	for (struct allocation *a = LIST_FIRST(&bs->allocs->all); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->kind == NPU_PLACE_REGISTERED ? a->device != device : a->memory != device)
			continue;
		allocation_end(bs, a);
		ended++;
	}
	pool_end_empty(bs, device);
	return ended;
}

static drvError_t find_to_free(struct bsim *bs, uint64_t va, struct allocation **out)
{
	struct npu_place p = place_at(bs, va);

	*out = allocation_at(bs->window, va);
	if (place_is_reserved(&p))
		return bsim_invalid(FREE ": %s, which this call does not free: unmap it, free the "
					 "handle, and free the reservation (aclrtUnmapMem, "
					 "aclrtFreePhysical, aclrtReleaseMemAddress)",
				    place_text_locked(bs, va));
	if (*out == NULL)
		return bsim_invalid(
			FREE ": pp %s%s", place_text_locked(bs, va),
			bs->handles->resets > 0
				? "; a device was reset in this process, which ends its allocations"
				: "");
	if (p.base != va || (p.kind != NPU_PLACE_DEVICE && p.kind != NPU_PLACE_PINNED))
		return bsim_invalid(FREE
				    ": pp %s; this call takes the start of what halMemAlloc gave",
				    place_text_locked(bs, va));
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemFree, SIM_CALL_FREE, (void *, pp))
{
	struct allocation *a;
	drvError_t result;

	if (pp == NULL)
		return bsim_null(FREE, "pp");
	result = bsim_require_open_locked(c->bs, FREE) ?: find_to_free(c->bs, (uintptr_t)pp, &a);
	if (result != DRV_ERROR_NONE)
		return result;
	c->page_lg2 = a->page_lg2;
	c->pages = a->bytes >> a->page_lg2;
	allocation_end(c->bs, a);
	return DRV_ERROR_NONE;
}

/* ---- information ---- */

static void fill_pool(struct bsim *bs, unsigned memory, struct MemPhyInfo *out)
{
	struct node_usage usage;

	node_usage(bs->node, memory, &usage);
	*out = (struct MemPhyInfo){
		.huge_total = usage.total_frames << NODE_FRAME_LG2,
		.huge_free = usage.free_frames << NODE_FRAME_LG2,
		.giant_total =
			bs->profile.giant_pages ? usage.total_frames / NODE_GIANT_FRAMES << 30 : 0,
		.giant_free = bs->profile.giant_pages ? usage.free_giants << 30 : 0,
	};
}

/* Bits of mem_type: 1 << MEM_DEV_VAL, 1 << MEM_DVPP_VAL, and 1 << 4 for reserved addresses. */
static drvError_t check_addresses(struct bsim *bs, struct MemAddrInfo *info)
{
	if (info->addr == NULL || info->cnt == 0 || info->cnt > CHECKED_ADDRESS_MAX)
		return bsim_invalid("halMemGetInfo: addr_info has %u addresses at %p; 1 to %u can "
				    "be checked at once",
				    info->cnt, (void *)info->addr, CHECKED_ADDRESS_MAX);
	info->flag = 1;
	for (unsigned i = 0; i < info->cnt; i++) {
		struct npu_place p = place_at(bs, (uintptr_t)info->addr[i]);
		bool reserved = place_is_reserved(&p);
		bool device = !reserved && npu_place_is_translated(&p);

		if (!(device && info->mem_type & 1u << MEM_DEV_VAL) &&
		    !(reserved && info->mem_type & 1u << 4))
			info->flag = 0;
	}
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemGetInfo, SIM_CALL_QUERY, (DVdevice, dev), (unsigned int, type),
	  (struct MemInfo *, info))
{
	struct bsim *bs = c->bs;
	drvError_t result =
		info == NULL ? bsim_null(c->name, "info") : bsim_require_open_locked(bs, c->name);

	if (result != DRV_ERROR_NONE)
		return result;
	if (dev >= bs->devices)
		return bsim_no_device(bs, c->name, "device", dev);
	switch (type) {
	case MEM_INFO_TYPE_HBM_SIZE:
	case MEM_INFO_TYPE_HBM_P2P_SIZE: /* the same memory: what peers may reach is no pool of its
					    own */
		fill_pool(bs, dev, &info->phy_info);
		return DRV_ERROR_NONE;
	case MEM_INFO_TYPE_DDR_SIZE:
	case MEM_INFO_TYPE_DDR_P2P_SIZE: /* the 910B and 910C have HBM alone */
		memset(&info->phy_info, 0, sizeof(info->phy_info));
		return DRV_ERROR_NONE;
	case MEM_INFO_TYPE_ADDR_CHECK:
		return check_addresses(bs, &info->addr_info);
	default:
		npu_message_set("%s: type is %u; modelled are 1 to 5 (sizes of DDR and HBM, P2P "
				"too, and address check)",
				c->name, type);
		return type < MEM_INFO_TYPE_MAX ? DRV_ERROR_NOT_SUPPORT : DRV_ERROR_INVALID_VALUE;
	}
}
