/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements halMemMap and halMemUnmap, and access rights to mappings: halMemSetAccess and
 * halMemGetAccess. The checks and their order are those of the driver.
 */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#define MAP "halMemMap"
#define SET "halMemSetAccess"
#define GET "halMemGetAccess"

/* ---- map: the checks ---- */

static drvError_t check_address(struct bsim *bs, uint64_t va, uint64_t size, struct range **out)
{
	struct range *r = window_reservation(bs->window, va), *next = r;
	uint64_t end;

	if (r == NULL)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": ptr 0x%" PRIx64 " is not reserved: %s", va,
				 place_text_locked(bs, va));
	if (va % WINDOW_SLOT != 0)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": ptr 0x%" PRIx64 " is not a multiple of 2 MiB", va);
	if (size % WINDOW_SLOT != 0)
		return bsim_fail(contract_code(bs, CONTRACT_MAP_UNALIGNED_SIZE, MAP),
				 MAP ": size %s is not a multiple of 2 MiB, the granularity",
				 npu_size_text(size));
	end = r->va + r->bytes;
	if (bs->cuda != NULL) /* reservations that adjoin are one to CUDA */
		while (size > end - va && (next = window_reservation(bs->window, end)) != NULL)
			end = next->va + next->bytes;
	if (size > end - va)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": %s ends %s behind the reservation at 0x%" PRIx64 ", %s",
				 range_text(va, size), npu_size_text(size - (end - va)), r->va,
				 npu_size_text(r->bytes));
	*out = r;
	return DRV_ERROR_NONE;
}

static drvError_t check_free(struct bsim *bs, uint64_t va, uint64_t size, const struct range *r,
			     const struct drv_mem_handle *h)
{
	const struct mapping *in_the_way;

	if (r->kind == RANGE_RESERVATION && r->bound >= 0 && (unsigned)r->bound != h->space)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": handle %p is of %s, but the reservation at 0x%" PRIx64
				     " was bound to %s by its first mapping, until it is freed; "
				     "reserve another range for %s",
				 (const void *)h, bsim_memory_text(h->space), r->va,
				 bsim_memory_text((unsigned)r->bound), bsim_memory_text(h->space));
	in_the_way = window_first_mapping(bs->window, va, size, true);
	if (in_the_way == NULL)
		return DRV_ERROR_NONE;
	if (in_the_way->leaving)
		return DRV_ERROR_TRY_AGAIN;
	return bsim_fail(DRV_ERROR_IOCRL_FAIL,
			 MAP ": %s is mapped already: at 0x%" PRIx64
			     " lie %s, mapped by %s; unmap that first",
			 range_text(va, size), in_the_way->va,
			 npu_size_text(mapping_bytes(in_the_way)),
			 bsim_made_text(&in_the_way->made, true));
}

static drvError_t check_handle(struct bsim *bs, uint64_t va, uint64_t size, const struct range *r,
			       const struct drv_mem_handle *h)
{
	if (size > h->bytes)
		return bsim_fail(contract_code(bs, CONTRACT_MAP_LARGER, MAP),
				 MAP ": size %s is more than handle %p has, %s",
				 npu_size_text(size), (const void *)h, npu_size_text(h->bytes));
	if (size < h->bytes && contract_docs_apply(bs, CONTRACT_MAP_SMALLER, MAP))
		return bsim_fail(
			contract_code(bs, CONTRACT_MAP_SMALLER, MAP),
			MAP ": size %s is less than handle %p has, %s; a handle is mapped whole",
			npu_size_text(size), (const void *)h, npu_size_text(h->bytes));
	if (r->page_lg2 != 21)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": the reservation at 0x%" PRIx64
				     " was made for %s: below 2 MiB its pages are of 4 KiB, and "
				     "handle %p's are of 2 MiB; reserve 2 MiB or more",
				 r->va, npu_size_text(r->asked), (const void *)h);
	if (h->block->giant && (va % WINDOW_GIB != 0 || size % WINDOW_GIB != 0))
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 MAP ": handle %p has 1 GiB pages: ptr and size must be multiples "
				     "of 1 GiB, %s is 0x%" PRIx64,
				 (const void *)h, va % WINDOW_GIB != 0 ? "ptr" : "size",
				 va % WINDOW_GIB != 0 ? va : size);
	if (r->kind == RANGE_RESERVATION && (h->imported ? r->own : r->imported) > 0 &&
	    contract_docs_apply(bs, CONTRACT_MAP_MIXED_IMPORT, MAP))
		return bsim_fail(contract_code(bs, CONTRACT_MAP_MIXED_IMPORT, MAP),
				 MAP ": handle %p %s, and the reservation at 0x%" PRIx64
				     " has mappings of handles that %s; reserve another range",
				 (const void *)h, h->imported ? "was imported" : "was made here",
				 r->va, h->imported ? "were made here" : "were imported");
	return DRV_ERROR_NONE;
}

/* ---- map: the deed ---- */

drvError_t mapping_open_to_cpu(struct bsim *bs, const char *call, struct mapping *m)
{
	const struct node_block *block = m->handle->block;
	uint64_t bytes = mapping_bytes(m), done = 0, part, offset = 0;
	int fd = node_memory_fd(bs->node, block->memory, &offset);
	drvError_t result;

	node_block_touch(bs->node, block);
	m->cpu = host_maps_left(block->extent_count);
	for (unsigned i = 0; m->cpu && i < block->extent_count && done < bytes; i++, done += part) {
		void *p = (void *)(uintptr_t)(m->va + done);

		part = MIN(block->extents[i].count << NODE_FRAME_LG2, bytes - done);
		m->cpu = mmap(p, part, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
			      (off_t)(offset + (block->extents[i].frame << NODE_FRAME_LG2))) == p;
		if (!m->cpu)
			break;
		madvise(p, part, MADV_DONTDUMP);
		madvise(p, part, MADV_DONTFORK);
	}
	if (m->cpu)
		return DRV_ERROR_NONE;
	result =
		bsim_fail(DRV_ERROR_OUT_OF_MEMORY, "%s: this process cannot map %s for the CPU: %s",
			  call, npu_size_text(bytes), host_map_problem(errno));
	window_close_to_cpu(m->va, bytes);
	return result;
}

static drvError_t map_new(struct bsim *bs, uint64_t va, uint64_t size, struct range *r,
			  struct drv_mem_handle *h, bool access)
{
	struct mapping new = { .va = va, .slots = (uint32_t)(size >> 21), .handle = h }, *m;
	drvError_t result = access ? tables_map(bs, MAP, h->space, va, size, h->block, PT_WRITE)
				   : DRV_ERROR_NONE;

	if (result != DRV_ERROR_NONE)
		return result;
	new.made = bsim_made_locked(bs);
	new.tables = access ? UINT32_C(1) << h->space : 0;
	if (access && h->block->memory == SIM_NODE_HOST)
		result = mapping_open_to_cpu(bs, MAP, &new);
	if (result != DRV_ERROR_NONE) {
		tables_unmap(bs, h->space, va, size, handle_page_lg2(h));
		return result;
	}
	m = bs->window->unused ?: g_new0(struct mapping, 1);
	bs->window->unused = LIST_NEXT(m, link);
	*m = new;
	window_set_mapping(bs->window, va, size, m);
	LIST_INSERT_HEAD(&bs->window->mappings[h->space], m, link);
	if (r->bound < 0)
		r->bound = (int)h->space;
	*(h->imported ? &r->imported : &r->own) += 1;
	h->ref++;
	h->map_ref++;
	tables_space(h->space)->mapped_bytes += size;
	block_mapped_locked(bs, h->block);
	fault_install();
	return DRV_ERROR_NONE;
}

static drvError_t map_locked(struct bsim *bs, uint64_t va, uint64_t size, drv_mem_handle_t *handle,
			     bool access)
{
	struct range *r = NULL;
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, MAP, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bs->cuda != NULL && size != h->bytes)
		return bsim_unsupported(
			MAP ": size is %s and handle %p has %s; a handle is mapped whole",
			npu_size_text(size), (const void *)h, npu_size_text(h->bytes));
	return check_address(bs, va, size, &r) ?: check_free(bs, va, size, r, h)
	       ?: check_handle(bs, va, size, r, h) ?: map_new(bs, va, size, r, h, access);
}

static drvError_t check_map_arguments(const void *ptr, size_t size, size_t offset,
				      const drv_mem_handle_t *handle, uint64_t flag)
{
	if (ptr == NULL || size == 0 || handle == NULL)
		return bsim_invalid(MAP ": %s", ptr == NULL ? "ptr is NULL"
						: size == 0 ? "size is 0"
							    : "handle is NULL");
	if (offset != 0)
		return bsim_invalid(
			MAP ": offset is %s; it must be 0: a handle is mapped from its start",
			npu_size_text(offset));
	if (flag != 0)
		return bsim_invalid(MAP ": flag is 0x%" PRIx64 "; it must be 0", flag);
	return DRV_ERROR_NONE;
}

static drvError_t map(struct bsim_call *c, void *ptr, size_t size, size_t offset,
		      drv_mem_handle_t *handle, uint64_t flag, bool access)
{
	drvError_t result = check_map_arguments(ptr, size, offset, handle, flag)
				    ?: map_locked(c->bs, (uintptr_t)ptr, size, handle, access);

	if (result == DRV_ERROR_NONE)
		c->page_lg2 = handle_page_lg2(handle);
	c->pages = size >> c->page_lg2;
	return result;
}

BSIM_CALL(halMemMap, SIM_CALL_MAP, (void *, ptr), (size_t, size), (size_t, offset),
	  (drv_mem_handle_t *, handle), (uint64_t, flag))
{
	return map(c, ptr, size, offset, handle, flag, true);
}

/* The driver of the 910B and 910C has no such function: a mapping has its owner's access. */
BSIM_CALL(halMemMapNoAccess, SIM_CALL_MAP, (void *, ptr), (size_t, size), (size_t, offset),
	  (drv_mem_handle_t *, handle), (uint64_t, flag))
{
	return c->bs->cuda != NULL
		       ? map(c, ptr, size, offset, handle, flag, false)
		       : bsim_unsupported("%s: this driver has no such function; halMemMap gives "
					  "access to the owner alone",
					  c->name);
}

/* ---- unmap ---- */

void mapping_finish(struct window *w, struct mapping *m)
{
	window_set_mapping(w, m->va, mapping_bytes(m), NULL);
	LIST_NEXT(m, link) = w->unused;
	w->unused = m;
}

/* Its leaves everywhere, the owner's last; its handle's reference; its addresses, if the CPU does
 * not reach them: gone_locked(). */
static void end_mapping(struct bsim *bs, struct mapping *m)
{
	struct range *r = window_reservation(bs->window, m->va);
	struct drv_mem_handle *h = m->handle;

	for (uint32_t left = m->tables & ~(UINT32_C(1) << h->space); left != 0; left &= left - 1)
		tables_unmap(bs, (unsigned)__builtin_ctz(left), m->va, mapping_bytes(m),
			     handle_page_lg2(h));
	if (m->tables >> h->space & 1)
		tables_unmap(bs, h->space, m->va, mapping_bytes(m), handle_page_lg2(h));
	tables_space(h->space)->mapped_bytes -= mapping_bytes(m);
	*(h->imported ? &r->imported : &r->own) -= 1;
	LIST_REMOVE(m, link);
	m->leaving = m->cpu;
	m->left = h->block;
	m->left->leaving += m->leaving;
	if (m->leaving)
		LIST_INSERT_HEAD(&bs->allocs->gone_mappings, m, link);
	else
		mapping_finish(bs->window, m);
	handle_unmapped(bs, h);
}

unsigned mapping_end_device(struct bsim *bs, unsigned device)
{
	struct mapping *m;
	unsigned ended = 0;

	for (; (m = LIST_FIRST(&bs->window->mappings[device])) != NULL; ended++)
		end_mapping(bs, m);
	return ended;
}

BSIM_OPEN_CALL(halMemUnmap, SIM_CALL_UNMAP, (void *, ptr))
{
	struct bsim *bs = c->bs;
	uint64_t va = (uintptr_t)ptr;
	struct mapping *m = window_mapping(bs->window, va);

	if (m == NULL)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: nothing is mapped at ptr 0x%" PRIx64 ": %s", c->name, va,
				 place_text_locked(bs, va));
	if (m->va != va)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: ptr 0x%" PRIx64 " lies %s into the mapping at 0x%" PRIx64
				 ", %s; a mapping is removed whole, by its start",
				 c->name, va, npu_size_text(va - m->va), m->va,
				 npu_size_text(mapping_bytes(m)));
	c->page_lg2 = handle_page_lg2(m->handle);
	c->pages = mapping_bytes(m) >> c->page_lg2;
	gone_note_locked(bs, false, va, mapping_bytes(m),
			 bs->cuda ? "cuMemUnmap" : "aclrtUnmapMem");
	end_mapping(bs, m);
	gone_locked(bs); /* before another thread does: its addresses are free when this returns */
	return DRV_ERROR_NONE;
}

/* ---- the handle of a mapping ---- */

BSIM_CALL(halMemRetainAllocationHandle, SIM_CALL_QUERY, (drv_mem_handle_t **, handle),
	  (void *, ptr))
{
	struct bsim *bs = c->bs;
	uint64_t va = (uintptr_t)ptr;
	struct range *r;
	struct mapping *m;
	drvError_t result = BSIM_GIVEN(c->name, handle) ?: BSIM_GIVEN(c->name, ptr)
			    ?: bsim_require_open_locked(bs, c->name);

	if (result != DRV_ERROR_NONE)
		return result;
	r = window_reservation(bs->window, va);
	if (r == NULL || r->bound < 0)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE, "%s: ptr 0x%" PRIx64 ": %s", c->name, va,
				 r == NULL
					 ? place_text_locked(bs, va)
					 : "nothing has ever been mapped in the reservation there");
	m = window_mapping(bs->window, va);
	if (m == NULL || m->va != va)
		return bsim_fail(DRV_ERROR_NOT_EXIST,
				 "%s: ptr must be the start of a live mapping: 0x%" PRIx64 " is %s",
				 c->name, va, place_text_locked(bs, va));
	m->handle->ref++;
	*handle = m->handle;
	return DRV_ERROR_NONE;
}

/* ---- access ---- */

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
		return bsim_invalid(SET ": %s", ptr == NULL ? "ptr is NULL"
						: desc == NULL
							? "desc is NULL"
							: "count is 0; it must be at least 1");
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
	return mapping_open_to_cpu(bs, SET, m);
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
	result = check_peer(bs, m, device)
			 ?: tables_map(bs, SET, device, m->va, mapping_bytes(m), m->handle->block,
				       PT_WRITE);
	if (result == DRV_ERROR_NONE)
		m->tables |= UINT32_C(1) << device;
	return result;
}

static drvError_t grant(struct bsim *bs, struct mapping *m, const struct drv_mem_access_desc *desc)
{
	return desc->location.side == MEM_HOST_SIDE ? grant_cpu(bs, m)
						    : grant_device(bs, m, desc->location.id);
}

/* Grants that were made stay when a later one fails, as in the driver. */
static drvError_t set_access_locked(struct bsim *bs, uint64_t va, uint64_t size,
				    const struct drv_mem_access_desc *desc, size_t count)
{
	struct mapping *m = window_mapping(bs->window, va);
	drvError_t result = DRV_ERROR_NONE;

	if (m == NULL || m->va != va || mapping_bytes(m) != size)
		return bsim_fail(bs->cuda != NULL ? DRV_ERROR_INVALID_VALUE : DRV_ERROR_PARA_ERROR,
				 SET ": %s is not exactly one mapping: at ptr, %s",
				 range_text(va, size), place_text_locked(bs, va));
	for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
		result = (bs->cuda != NULL ? bs->cuda->set_access : grant)(bs, m, &desc[i]);
	return result;
}

BSIM_CALL(halMemSetAccess, SIM_CALL_ACCESS, (void *, ptr), (size_t, size),
	  (struct drv_mem_access_desc *, desc), (size_t, count))
{
	drvError_t result =
		c->bs->cuda == NULL ? check_descriptors(ptr, desc, count) : DRV_ERROR_NONE;

	c->pages = size >> 21;
	return result ?: bsim_require_open_locked(c->bs, SET)
		       ?: set_access_locked(c->bs, (uintptr_t)ptr, size, desc, count);
}

BSIM_CALL(halMemGetAccess, SIM_CALL_QUERY, (void *, ptr), (struct drv_mem_location *, location),
	  (uint64_t *, flags))
{
	uint64_t va = (uintptr_t)ptr;
	struct npu_place p;
	bool reached;
	drvError_t result = BSIM_GIVEN(GET, ptr) ?: BSIM_GIVEN(GET, location)
			    ?: BSIM_GIVEN(GET, flags) ?: check_location(GET, location, false)
			    ?: bsim_require_open_locked(c->bs, GET);

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
