/* SPDX-License-Identifier: Apache-2.0
 *
 * NPU_DIALECT_CUDA: reservations anywhere in the process's address space, access to mappings
 * device by device, and shares that are file descriptors. Owns the rules of that dialect where
 * they differ from the window's; the records are those of memory/. Only the CUDA face sets the
 * dialect, and has checked its arguments: what is checked here are the records.
 *
 * Host address space is reserved for exactly the length of a reservation, so the kernel decides
 * what is free. Without a hint the lowest free addresses from 12 GiB up are chosen.
 */
#include "cuda/dialect.h"

#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define RESERVE "halMemAddressReserve"
#define SET     "halMemSetAccess"

#define FIRST_VA    UINT64_C(0x302000000)
#define ATTEMPTS    16u /* places of our own choice that belong to something else */
#define ALL_DEVICES ((1u << BSIM_DEVICE_MAX) - 1)

/* Gives all of [va, end), which had no owner, to the owner, or takes it back (NULL). */
static void set_owner(struct window *w, uint64_t va, uint64_t end, struct range *owner)
{
	for (uint64_t stop; va < end; va = stop) {
		struct granule *g = &w->granules[va >> 30];
		struct range *slab;

		stop = MIN((va | (WINDOW_GIB - 1)) + 1, end);
		if (stop - va == WINDOW_GIB) {
			window_set_granules(w, va, WINDOW_GIB, owner);
			continue;
		}
		if (g->range == NULL)
			g->range = range_new(RANGE_SLAB, va & ~(WINDOW_GIB - 1), WINDOW_GIB);
		slab = g->range;
		for (uint64_t at = va; at < stop; at += WINDOW_SLOT)
			slab->cut[at >> 21 & (WINDOW_SLOTS - 1)] = owner;
		slab->used_slots += (owner != NULL ? 1 : -1u) * (unsigned)((stop - va) >> 21);
		if (slab->used_slots == 0) {
			window_set_granules(w, slab->va, WINDOW_GIB, NULL);
			g_free(slab);
		}
	}
}

/* Where the first thing of ours that reaches into the range ends; 0: there is none. */
static uint64_t taken_until(const struct window *w, uint64_t va, uint64_t bytes)
{
	for (uint64_t at = va, end = va + bytes; at < end;) {
		const struct range *r = window_peek(w, at);

		if (r != NULL)
			return r->va + r->bytes;
		at = w->granules[at >> 30].range == NULL ? (at | (WINDOW_GIB - 1)) + 1
							 : at + WINDOW_SLOT;
	}
	return 0;
}

/* The hint, or the lowest free place as far as the process's driver and the kernel know. */
static uint64_t find_addresses(struct window *w, uint64_t bytes, uint64_t align, uint64_t hint)
{
	uint64_t va = bsim_round_up(w->cursor != 0 ? w->cursor : FIRST_VA, align), until;
	unsigned attempts = ATTEMPTS;

	if (hint != 0 && hint % align == 0 && taken_until(w, hint, bytes) == 0 &&
	    window_host_take(hint, bytes))
		return hint;
	while (attempts > 0 && va < WINDOW_HOST_END && bytes <= WINDOW_HOST_END - va) {
		until = taken_until(w, va, bytes);
		if (until == 0 && window_host_take(va, bytes)) {
			if (align <= WINDOW_SLOT)
				w->cursor = va + bytes;
			return va;
		}
		attempts -= until == 0;
		va = bsim_round_up(until != 0 ? until : va + MAX(bytes, WINDOW_GIB), align);
	}
	return window_host_find(bytes, align);
}

static drvError_t reserve_cuda(struct bsim *bs, void **ptr, uint64_t size, uint64_t alignment,
			       uint64_t hint)
{
	struct window *w = bs->window;
	uint64_t align = alignment > WINDOW_SLOT ? alignment : WINDOW_SLOT, va;
	struct range *r;

	if ((alignment & (alignment - 1)) != 0)
		return bsim_invalid(RESERVE ": alignment is 0x%" PRIx64
					    "; it must be a power of two, or 0",
				    alignment);
	va = size >= WINDOW_HOST_END || align >= WINDOW_HOST_END || hint > WINDOW_HOST_END - size
		     ? 0
		     : find_addresses(w, size, align, hint);
	if (va == 0)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 RESERVE ": no %s in a row%s are free in this process's address "
					 "space, which ends at 0x%" PRIx64,
				 npu_size_text(size),
				 hint >= WINDOW_HOST_END ? " at that address" : "",
				 WINDOW_HOST_END);
	r = window_add(bs, RANGE_NOUC, va, 0);
	r->bytes = r->asked = size;
	set_owner(w, va, va + size, r);
	w->reserved_bytes += size;
	w->reservation_count++;
	*ptr = (void *)(uintptr_t)va;
	return DRV_ERROR_NONE;
}

static void drop_reservation(struct window *w, const struct range *r)
{
	set_owner(w, r->va, r->va + r->bytes, NULL);
	window_host_give(r->va, r->bytes);
	if (w->cursor != 0 && r->va < w->cursor && r->va >= FIRST_VA)
		w->cursor = r->va;
}

static drv_mem_access_type access_of(const struct mapping *m, unsigned device)
{
	if (!(mapping_readers(m) >> device & 1))
		return MEM_ACCESS_TYPE_NONE;
	return m->read_only >> device & 1 ? MEM_ACCESS_TYPE_READ : MEM_ACCESS_TYPE_READWRITE;
}

static drvError_t set_device(struct bsim *bs, struct mapping *m, unsigned device,
			     drv_mem_access_type type)
{
	uint64_t bytes = mapping_bytes(m);
	uint32_t bit = UINT32_C(1) << device;
	drvError_t result;

	if (access_of(m, device) == type)
		return DRV_ERROR_NONE;
	if (access_of(m, device) != MEM_ACCESS_TYPE_NONE)
		tables_unmap(bs, device, m->va, bytes, handle_page_lg2(m->handle));
	m->tables &= ~bit;
	m->read_only &= (uint16_t)~bit;
	if (type == MEM_ACCESS_TYPE_NONE)
		return DRV_ERROR_NONE;
	result = tables_map(bs, SET, device, m->va, bytes, m->handle->block,
			    type == MEM_ACCESS_TYPE_READWRITE ? PT_WRITE : 0);
	if (result != DRV_ERROR_NONE)
		return result;
	m->tables |= bit;
	m->read_only |= (uint16_t)(type == MEM_ACCESS_TYPE_READ ? bit : 0);
	return DRV_ERROR_NONE;
}

static drvError_t set_cpu(struct bsim *bs, struct mapping *m, drv_mem_access_type type)
{
	drvError_t result;

	if (m->handle->space != SIM_NODE_HOST)
		return bsim_unsupported(SET
					": the mapping at 0x%" PRIx64
					" is memory of device %u, which the CPU cannot be given",
					m->va, m->handle->space);
	if (m->cpu)
		window_close_to_cpu(m->va, mapping_bytes(m));
	m->cpu = false;
	if (type == MEM_ACCESS_TYPE_NONE)
		return DRV_ERROR_NONE;
	result = mapping_open_to_cpu(bs, SET, m);
	if (result == DRV_ERROR_NONE && type == MEM_ACCESS_TYPE_READ)
		mprotect((void *)(uintptr_t)m->va, mapping_bytes(m), PROT_READ);
	return result;
}

static drvError_t set_access_cuda(struct bsim *bs, struct mapping *m,
				  const struct drv_mem_access_desc *desc)
{
	return desc->location.side == MEM_DEV_SIDE
		       ? set_device(bs, m, desc->location.id, desc->type)
		       : set_cpu(bs, m, desc->type);
}

drvError_t cuda_reach_locked(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			     uint64_t bytes, bool write, struct cuda_reach *out)
{
	struct cuda_reach all = { ALL_DEVICES, ALL_DEVICES, true };

	for (uint64_t at = va, end = va + bytes; at < end;) {
		struct npu_place p = place_at(bs, at);

		if (p.kind != NPU_PLACE_MAPPED)
			return bsim_fail(DRV_ERROR_IOCRL_FAIL,
					 "%s: %s: byte %" PRIu64 " of %s at 0x%" PRIx64
					 " is not mapped: %s; map memory there first (cuMemMap, "
					 "cuMemSetAccess)",
					 call, argument, at - va, npu_size_text(bytes), va,
					 place_text_locked(bs, at));
		all.readers &= p.readers;
		all.writers &= p.writers;
		all.cpu &= p.cpu;
		if ((write ? all.writers : all.readers) == 0 && !all.cpu)
			return bsim_fail(DRV_ERROR_IOCRL_FAIL,
					 "%s: %s: no device may %s 0x%" PRIx64
					 ", %s: give access to it first (cuMemSetAccess)",
					 call, argument, write ? "write" : "read", at,
					 place_text_locked(bs, at));
		at = p.base + p.bytes;
	}
	*out = all;
	return DRV_ERROR_NONE;
}

static drvError_t export_fd(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
			    int *out_fd)
{
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, call, handle, &h);

	return result ?: node_fd_export(bs->node, h->block, out_fd);
}

static drvError_t import_fd(struct bsim *bs, const char *call, int fd, struct drv_mem_handle **out)
{
	struct node_block *block;
	struct drv_mem_handle *h;
	drvError_t result =
		bsim_require_open_locked(bs, call) ?: node_fd_import(bs->node, fd, &block);

	if (result != DRV_ERROR_NONE)
		return result;
	h = handle_make(bs, block, block->memory);
	h->from_fd = true;
	handle_set_imported_prop(h, h->space);
	h->prop.pg_type = MEM_HUGE_PAGE_TYPE;
	*out = h;
	return DRV_ERROR_NONE;
}

static const struct dialect cuda_dialect = {
	.reserve = reserve_cuda,
	.drop = drop_reservation,
	.set_access = set_access_cuda,
	.export_fd = export_fd,
	.import_fd = import_fd,
};

BSIM_QUESTION(npusimSetDialect, (enum npu_dialect, dialect))
{
	const struct dialect *cuda = dialect == NPU_DIALECT_CUDA ? &cuda_dialect : NULL;

	if (dialect != NPU_DIALECT_WINDOW && dialect != NPU_DIALECT_CUDA)
		return bsim_invalid("npusimSetDialect: dialect is %d; known are 0 and 1",
				    (int)dialect);
	if (bs->any_open && bs->cuda != cuda)
		return bsim_fail(
			DRV_ERROR_BUSY,
			"npusimSetDialect: this process has opened a device under the other rules "
			"of virtual memory: a process uses one of libascendcl.so and libcuda.so.1");
	return settings_set_dialect_locked(bs, cuda);
}
