/* SPDX-License-Identifier: Apache-2.0
 *
 * NPU_DIALECT_ANYWHERE: reservations anywhere in the process's address space, access to mappings
 * device by device, and shares that are file descriptors. Owns the rules of that dialect where they
 * differ from the window's; the records are window.h's, mapping.h's and handle.h's.
 *
 * Host addresses are taken exactly as far as a reservation reaches, so the kernel has the last word
 * on what is free. Without a hint the lowest free addresses from 12 GiB up are given.
 */
#include "cuda/dialect.h"
#include "memory/mapping.h"
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RESERVE "halMemAddressReserve"
#define SET     "halMemSetAccess"

#define FIRST_VA    UINT64_C(0x302000000)
#define ATTEMPTS    16u /* places of our own choice that belong to something else */
#define NO_MEMORY   SIM_NODE_MAX
#define ALL_DEVICES ((1u << BSIM_DEVICE_MAX) - 1)

drvError_t bsim_npusimSetDialect(struct npu_driver *self, enum npu_dialect dialect)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result = DRV_ERROR_NONE;

	if (dialect != NPU_DIALECT_WINDOW && dialect != NPU_DIALECT_ANYWHERE) {
		npu_message_set("npusimSetDialect: dialect is %d; known are 0 and 1", (int)dialect);
		return DRV_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&bs->lock);
	if (bs->any_open && bs->dialect != dialect) {
		npu_message_set(
			"npusimSetDialect: this process has opened a device under the other "
			"rules of virtual memory: a process uses one of libascendcl.so and "
			"libcuda.so.1");
		result = DRV_ERROR_BUSY;
	} else {
		result = bsim_set_dialect_locked(bs, dialect);
	}
	pthread_mutex_unlock(&bs->lock);
	return result;
}

/* ---- where reservations lie ---- */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* A record that says whose the slots of one GiB are. */
static struct range *edge_heap(struct window *w, uint64_t va)
{
	struct granule *g = &w->granules[va >> 30];
	struct range *heap;

	if (g->range != NULL)
		return g->range;
	heap = calloc(1, sizeof(*heap));
	if (heap == NULL)
		return NULL;
	heap->carved = calloc(WINDOW_SLOTS, sizeof(*heap->carved));
	if (heap->carved == NULL) {
		free(heap);
		return NULL;
	}
	heap->kind = RANGE_CARVED;
	heap->page_lg2 = 21;
	heap->va = va & ~(WINDOW_GIB - 1);
	heap->bytes = WINDOW_GIB;
	g->range = heap;
	return heap;
}

static void clear_granule(struct granule *g)
{
	free(g->slots);
	g->slots = NULL;
	g->range = NULL;
}

static void unmark(struct window *w, uint64_t va, uint64_t end)
{
	while (va < end) {
		struct granule *g = &w->granules[va >> 30];
		uint64_t stop = (va | (WINDOW_GIB - 1)) + 1;

		stop = stop < end ? stop : end;
		if (stop - va == WINDOW_GIB) {
			clear_granule(g);
		} else {
			struct range *heap = g->range;

			for (uint64_t at = va; at < stop; at += WINDOW_SLOT, heap->used_slots--)
				heap->carved[at >> 21 & (WINDOW_SLOTS - 1)] = NULL;
			if (heap->used_slots == 0) {
				clear_granule(g);
				free(heap->carved);
				free(heap);
			}
		}
		va = stop;
	}
}

static bool mark(struct window *w, struct range *r)
{
	uint64_t va = r->va, end = r->va + r->bytes;

	while (va < end) {
		uint64_t stop = (va | (WINDOW_GIB - 1)) + 1;

		stop = stop < end ? stop : end;
		if (stop - va == WINDOW_GIB) {
			w->granules[va >> 30].range = r;
		} else {
			struct range *heap = edge_heap(w, va);

			if (heap == NULL) {
				unmark(w, r->va, va);
				return false;
			}
			for (uint64_t at = va; at < stop; at += WINDOW_SLOT, heap->used_slots++)
				heap->carved[at >> 21 & (WINDOW_SLOTS - 1)] = r;
		}
		va = stop;
	}
	return true;
}

/* Where the first thing of ours that reaches into the range ends; 0: there is none. */
static uint64_t taken_until(const struct window *w, uint64_t va, uint64_t bytes)
{
	for (uint64_t at = va, end = va + bytes; at < end;) {
		const struct range *r = w->granules[at >> 30].range;

		if (r == NULL) {
			at = (at | (WINDOW_GIB - 1)) + 1;
			continue;
		}
		if (r->kind == RANGE_CARVED)
			r = r->carved[at >> 21 & (WINDOW_SLOTS - 1)];
		if (r != NULL)
			return r->va + r->bytes;
		at += WINDOW_SLOT;
	}
	return 0;
}

/* The lowest place from `va` on that is free as far as this process's driver knows; 0: none. */
static uint64_t next_free(const struct window *w, uint64_t va, uint64_t bytes, uint64_t align)
{
	while (va < WINDOW_HOST_END) {
		uint64_t until;

		va = round_up(va, align);
		if (va >= WINDOW_HOST_END || bytes > WINDOW_HOST_END - va)
			break;
		until = taken_until(w, va, bytes);
		if (until == 0)
			return va;
		va = until;
	}
	return 0;
}

static uint64_t choose(struct window *w, uint64_t bytes, uint64_t align)
{
	uint64_t va = w->cursor != 0 ? w->cursor : FIRST_VA;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		va = next_free(w, va, bytes, align);
		if (va == 0)
			break;
		if (window_host_take(va, bytes)) {
			if (align <= WINDOW_SLOT)
				w->cursor = va + bytes;
			return va;
		}
		va += bytes > WINDOW_GIB ? bytes : WINDOW_GIB;
	}
	return window_host_find(bytes, align);
}

static uint64_t place(struct window *w, uint64_t bytes, uint64_t align, uint64_t hint)
{
	if (hint != 0 && hint % align == 0 && taken_until(w, hint, bytes) == 0 &&
	    window_host_take(hint, bytes))
		return hint;
	return choose(w, bytes, align);
}

static drvError_t check_request(void **ptr, uint64_t size, uint64_t alignment, uint64_t hint)
{
	if (ptr == NULL || size == 0 || size % WINDOW_SLOT != 0)
		npu_message_set(RESERVE ": %s", ptr == NULL ? "ptr is NULL"
						: size == 0 ? "size is 0"
							    : "size must be a multiple of 2 MiB");
	else if ((alignment & (alignment - 1)) != 0)
		npu_message_set(RESERVE ": alignment is 0x%" PRIx64
					"; it must be a power of two, or 0",
				alignment);
	else if (hint % WINDOW_SLOT != 0)
		npu_message_set(RESERVE ": addr 0x%" PRIx64 " is not a multiple of 2 MiB", hint);
	else
		return DRV_ERROR_NONE;
	return DRV_ERROR_INVALID_VALUE;
}

drvError_t anywhere_reserve_locked(struct bsim *bs, void **ptr, uint64_t size, uint64_t alignment,
				   uint64_t hint)
{
	struct window *w = bs->window;
	uint64_t align = alignment > WINDOW_SLOT ? alignment : WINDOW_SLOT, va;
	struct range *r;
	drvError_t result = check_request(ptr, size, alignment, hint);

	if (result != DRV_ERROR_NONE)
		return result;
	va = size >= WINDOW_HOST_END || align >= WINDOW_HOST_END || hint > WINDOW_HOST_END - size
		     ? 0
		     : place(w, size, align, hint);
	if (va == 0) {
		npu_message_set(RESERVE
				": no %s in a row%s are free in this process's address space, "
				"which ends at 0x%" PRIx64,
				npu_size_text(size),
				hint >= WINDOW_HOST_END ? " at that address" : "", WINDOW_HOST_END);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	r = window_add(bs, RANGE_NOUC, va, 0);
	if (r != NULL) {
		r->va = va;
		r->bytes = r->asked = size;
		r->asked_page = MEM_HUGE_PAGE_TYPE;
	}
	if (r == NULL || !mark(w, r)) {
		window_host_give(va, size);
		if (r != NULL)
			window_retire(w, r);
		npu_message_set(RESERVE ": no memory for one more reservation");
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	w->reserved_bytes += size;
	w->reservation_count++;
	w->nouc_count++;
	*ptr = (void *)(uintptr_t)va;
	return DRV_ERROR_NONE;
}

void anywhere_drop(struct window *w, struct range *r)
{
	unmark(w, r->va, r->va + r->bytes);
	window_host_give(r->va, r->bytes);
	if (w->cursor != 0 && r->va < w->cursor && r->va >= FIRST_VA)
		w->cursor = r->va;
	window_retire(w, r);
}

void anywhere_close(struct window *w)
{
	for (uint64_t i = 0; i < WINDOW_GRANULES; i++) {
		struct range *r = w->granules[i].range;

		if (r == NULL)
			continue;
		if (r->kind == RANGE_CARVED) {
			free(r->carved);
			free(r);
			w->granules[i].range = NULL;
			free(w->granules[i].slots);
			w->granules[i].slots = NULL;
		} else if (r->kind > RANGE_NOUC && r->va == i << 30) {
			window_host_give(r->va, r->bytes);
		}
	}
}

/* ---- who may reach a mapping ---- */

uint32_t mapping_readers(const struct mapping *m)
{
	uint32_t readers = m->peers;

	if (m->home && m->handle->space < BSIM_DEVICE_MAX)
		readers |= 1u << m->handle->space;
	return readers;
}

uint32_t mapping_writers(const struct mapping *m)
{
	return mapping_readers(m) & ~(uint32_t)m->read_only;
}

static drv_mem_access_type access_of(const struct mapping *m, unsigned device)
{
	if (!(mapping_readers(m) >> device & 1))
		return MEM_ACCESS_TYPE_NONE;
	return m->read_only >> device & 1 ? MEM_ACCESS_TYPE_READ : MEM_ACCESS_TYPE_READWRITE;
}

static void note_access(struct mapping *m, unsigned device, drv_mem_access_type type)
{
	uint16_t bit = (uint16_t)(1u << device);

	if (m->handle->space == device)
		m->home = type != MEM_ACCESS_TYPE_NONE;
	else if (type != MEM_ACCESS_TYPE_NONE)
		m->peers |= bit;
	else
		m->peers &= (uint16_t)~bit;
	if (type == MEM_ACCESS_TYPE_READ)
		m->read_only |= bit;
	else
		m->read_only &= (uint16_t)~bit;
}

static drvError_t set_device(struct bsim *bs, struct mapping *m, unsigned device,
			     drv_mem_access_type type)
{
	uint64_t bytes = mapping_bytes(m);

	if (access_of(m, device) == type)
		return DRV_ERROR_NONE;
	if (access_of(m, device) != MEM_ACCESS_TYPE_NONE)
		tables_unmap(bs, device, m->va, bytes, handle_is_giant(m->handle));
	note_access(m, device, MEM_ACCESS_TYPE_NONE);
	if (type == MEM_ACCESS_TYPE_NONE)
		return DRV_ERROR_NONE;
	if (!tables_map_as(bs, device, m->va, bytes, m->handle->block,
			   type == MEM_ACCESS_TYPE_READWRITE ? PT_WRITE : 0)) {
		npu_message_set(SET ": no memory for page tables on device %u", device);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	note_access(m, device, type);
	return DRV_ERROR_NONE;
}

static drvError_t set_cpu(struct bsim *bs, struct mapping *m, drv_mem_access_type type)
{
	void *p = (void *)(uintptr_t)m->va;

	if (m->handle->space != SIM_NODE_HOST) {
		npu_message_set(SET ": the mapping at 0x%" PRIx64
				    " is memory of device %u, which the "
				    "CPU cannot be given",
				m->va, m->handle->space);
		return DRV_ERROR_NOT_SUPPORT;
	}
	if (m->cpu)
		window_close_to_cpu(m->va, mapping_bytes(m));
	m->cpu = false;
	if (type == MEM_ACCESS_TYPE_NONE)
		return DRV_ERROR_NONE;
	if (!tables_open_to_cpu(bs, m->va, mapping_bytes(m), m->handle->block)) {
		npu_message_set(SET ": this process cannot map %s for the CPU: %s",
				npu_size_text(mapping_bytes(m)), strerror(errno));
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	if (type == MEM_ACCESS_TYPE_READ)
		mprotect(p, mapping_bytes(m), PROT_READ);
	m->cpu = true;
	return DRV_ERROR_NONE;
}

static drvError_t check_grant(struct bsim *bs, const struct drv_mem_access_desc *desc, size_t i)
{
	int type = (int)desc->type;
	bool device = desc->location.side == MEM_DEV_SIDE;

	if (type != MEM_ACCESS_TYPE_NONE && type != MEM_ACCESS_TYPE_READ &&
	    type != MEM_ACCESS_TYPE_READWRITE)
		npu_message_set(SET
				": desc[%zu].type is %d; known are 0 (none), 1 (read) and 3 (read "
				"and write)",
				i, type);
	else if (device ? desc->location.id >= bs->devices : desc->location.side >= MEM_MAX_SIDE)
		npu_message_set(SET
				": desc[%zu].location (side %d, id %u): this server has devices 0 "
				"to %u",
				i, (int)desc->location.side, desc->location.id, bs->devices - 1);
	else
		return DRV_ERROR_NONE;
	return DRV_ERROR_INVALID_VALUE;
}

drvError_t anywhere_set_access_locked(struct bsim *bs, uint64_t va, uint64_t size,
				      const struct drv_mem_access_desc *desc, size_t count)
{
	struct mapping *m = window_mapping(bs->window, va);
	drvError_t result = DRV_ERROR_NONE;

	if (desc == NULL || count == 0) {
		npu_message_set(SET ": %s", desc == NULL ? "desc is NULL" : "count is 0");
		return DRV_ERROR_INVALID_VALUE;
	}
	if (m == NULL || m->va != va || mapping_bytes(m) != size) {
		npu_message_set(SET ": [0x%" PRIx64 ", +%s) is not exactly one mapping: at ptr, %s",
				va, npu_size_text(size), bsim_place_text_locked(bs, va));
		return DRV_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
		result = check_grant(bs, &desc[i], i);
	for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
		result = desc[i].location.side == MEM_DEV_SIDE
				 ? set_device(bs, m, desc[i].location.id, desc[i].type)
				 : set_cpu(bs, m, desc[i].type);
	return result;
}

/* ---- copies ---- */

static drvError_t no_reach(struct bsim *bs, const char *call, const char *argument, uint64_t at,
			   bool write)
{
	npu_message_set("%s: %s: no device may %s 0x%" PRIx64 ", %s: give access to it first "
			"(cuMemSetAccess)",
			call, argument, write ? "write" : "read", at,
			bsim_place_text_locked(bs, at));
	return DRV_ERROR_IOCRL_FAIL;
}

/* Who may reach all of a range that begins in a mapping; the whole must be mappings. */
static drvError_t reach_of(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			   uint64_t bytes, bool write, uint32_t *out_readers, uint32_t *out_writers,
			   bool *out_cpu)
{
	uint32_t readers = ALL_DEVICES, writers = ALL_DEVICES;
	bool cpu = true;

	for (uint64_t at = va, end = va + bytes; at < end;) {
		const struct mapping *m = window_mapping(bs->window, at);

		if (m == NULL) {
			npu_message_set("%s: %s: byte %" PRIu64 " of %s at 0x%" PRIx64
					" is not mapped: "
					"%s; map memory there first (cuMemMap, cuMemSetAccess)",
					call, argument, at - va, npu_size_text(bytes), va,
					bsim_place_text_locked(bs, at));
			return DRV_ERROR_IOCRL_FAIL;
		}
		readers &= mapping_readers(m);
		writers &= mapping_writers(m);
		cpu &= m->cpu;
		if ((write ? writers : readers) == 0 && !cpu)
			return no_reach(bs, call, argument, at, write);
		at = m->va + mapping_bytes(m);
	}
	*out_readers = readers;
	*out_writers = writers;
	*out_cpu = cpu;
	return DRV_ERROR_NONE;
}

drvError_t anywhere_copy_end_locked(struct bsim *bs, const char *call, const char *argument,
				    uint64_t va, uint64_t bytes, struct copy_end *out)
{
	const struct mapping *m = window_mapping(bs->window, va);
	uint32_t readers, writers, mask;
	bool cpu;
	drvError_t result =
		reach_of(bs, call, argument, va, bytes, false, &readers, &writers, &cpu);

	if (result != DRV_ERROR_NONE)
		return result;
	mask = writers != 0 ? writers : readers;
	*out = (struct copy_end){ .kind = PLACE_MAPPED, .memory = SIM_NODE_HOST };
	out->ref.va = va;
	if (mask == 0) { /* host memory that the CPU alone has */
		out->ref.space = SIM_RAW;
		return DRV_ERROR_NONE;
	}
	out->memory = m->handle->space < BSIM_DEVICE_MAX && mask >> m->handle->space & 1
			      ? m->handle->space
			      : (unsigned)__builtin_ctz(mask);
	out->ref.space = (int)out->memory;
	return DRV_ERROR_NONE;
}

static drvError_t check_end(struct bsim *bs, const char *argument, uint64_t va, uint64_t bytes,
			    bool write)
{
	const struct range *r = window_reservation(bs->window, va);
	uint32_t readers, writers;
	struct copy_end end;
	bool cpu;

	if (bytes == 0 || va == 0)
		return DRV_ERROR_NONE;
	if (r != NULL && va + bytes >= va)
		return reach_of(bs, "copy", argument, va, bytes, write, &readers, &writers, &cpu);
	return copy_end_locked(bs, "copy", argument, va, bytes, &end);
}

drvError_t bsim_npusimCheckCopy(struct npu_driver *self, DVdeviceptr dst, DVdeviceptr src,
				size_t count)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result;

	pthread_mutex_lock(&bs->lock);
	result = bsim_require_open_locked(bs, "npusimCheckCopy");
	if (result == DRV_ERROR_NONE)
		result = check_end(bs, "dst", dst, count, true);
	if (result == DRV_ERROR_NONE)
		result = check_end(bs, "src", src, count, false);
	pthread_mutex_unlock(&bs->lock);
	return result;
}

/* ---- shares that are file descriptors ---- */

drvError_t anywhere_export_locked(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
				  int *out_fd)
{
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, call, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	return node_fd_export(bs->node, h->block, out_fd);
}

drvError_t anywhere_import_locked(struct bsim *bs, const char *call, int fd, uint32_t dev,
				  struct drv_mem_handle **out)
{
	struct node_block *block;
	struct drv_mem_handle *h;
	bool host;
	drvError_t result = bsim_require_open_locked(bs, call);

	(void)dev; /* the memory says where it is */
	if (result == DRV_ERROR_NONE)
		result = node_fd_import(bs->node, fd, &block);
	if (result != DRV_ERROR_NONE)
		return result;
	h = handle_make(bs, call, block);
	if (h == NULL) {
		node_block_drop(bs->node, block);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	host = h->space == SIM_NODE_HOST;
	h->from_fd = true;
	h->side = host ? MEM_HOST_SIDE : MEM_DEV_SIDE;
	h->devid = host ? 0 : h->space;
	h->module_id = APP_MODULE_ID;
	h->pg_type = MEM_HUGE_PAGE_TYPE;
	h->mem_type = host ? MEM_DDR_TYPE : MEM_HBM_TYPE;
	*out = h;
	return DRV_ERROR_NONE;
}
