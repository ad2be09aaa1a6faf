/* SPDX-License-Identifier: Apache-2.0
 *
 * Physical handles: halMemCreate, halMemRelease, halMemRetainAllocationHandle, their properties and
 * granularity.
 */
#include "cuda/dialect.h"
#include "memory/handle.h"
#include "memory/mapping.h"
#include "ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HANDLE_STRIDE   sizeof(struct drv_mem_handle)
#define HANDLE_MOST     (UINT64_C(1) << 22)
#define HANDLE_GROW     4096u
#define HANDLE_KEPT     4096u /* freed records that are kept before one is used again */
#define DEVICE_ID_LIMIT 64u   /* of the driver, whatever the server has */
#define ANY_NUMA        UINT32_MAX

_Static_assert(HANDLE_GROW *HANDLE_STRIDE % 4096 == 0, "the arena grows by whole pages");

/* The only pointers to blocks lie in the arena, where a sanitizer's leak checker does not look by
 * itself. Not there otherwise. */
extern void __lsan_register_root_region(const void *start, size_t bytes) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *start, size_t bytes) __attribute__((weak));

/* ---- the table ---- */

bool handle_table_open(struct bsim *bs)
{
	struct handle_table *t = calloc(1, sizeof(*t));
	void *arena = mmap(NULL, HANDLE_MOST * HANDLE_STRIDE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (t == NULL || arena == MAP_FAILED) {
		if (arena != MAP_FAILED)
			munmap(arena, HANDLE_MOST * HANDLE_STRIDE);
		free(t);
		return false;
	}
	t->arena = arena;
	bs->handles = t;
	if (__lsan_register_root_region != NULL)
		__lsan_register_root_region(arena, HANDLE_MOST * HANDLE_STRIDE);
	return true;
}

void handle_table_close(struct bsim *bs)
{
	struct handle_table *t = bs->handles;

	if (t == NULL)
		return;
	for (struct drv_mem_handle *h = t->live; h != NULL; h = h->next)
		node_block_drop(bs->node, h->block);
	if (__lsan_unregister_root_region != NULL)
		__lsan_unregister_root_region(t->arena, HANDLE_MOST * HANDLE_STRIDE);
	munmap(t->arena, HANDLE_MOST * HANDLE_STRIDE);
	bs->handles = NULL;
	free(t);
}

static struct drv_mem_handle *record_at(const struct handle_table *t, uint64_t index)
{
	return (struct drv_mem_handle *)(void *)(t->arena + index * HANDLE_STRIDE);
}

static struct drv_mem_handle *new_record(struct handle_table *t)
{
	struct drv_mem_handle *h = t->oldest_freed;

	if (t->freed_count > HANDLE_KEPT || (t->used == HANDLE_MOST && h != NULL)) {
		t->oldest_freed = h->next;
		if (h->next == NULL)
			t->newest_freed = NULL;
		t->freed_count--;
		return h;
	}
	if (t->used == t->usable) {
		if (t->usable == HANDLE_MOST ||
		    mprotect(record_at(t, t->usable), HANDLE_GROW * HANDLE_STRIDE,
			     PROT_READ | PROT_WRITE) != 0)
			return NULL;
		t->usable += HANDLE_GROW;
	}
	return record_at(t, t->used++);
}

static struct drv_mem_handle *find_live(struct bsim *bs, const char *call, const void *pointer)
{
	struct handle_table *t = bs->handles;
	uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)t->arena);
	struct drv_mem_handle *h;

	if (pointer == NULL) {
		npu_message_set("%s: handle is NULL", call);
		return NULL;
	}
	if (offset >= t->used * HANDLE_STRIDE || offset % HANDLE_STRIDE != 0) {
		npu_message_set("%s: handle %p was never given out in this process (its %" PRIu64
				" live handles come from creating and from importing memory)",
				call, pointer, t->live_count);
		return NULL;
	}
	h = record_at(t, offset / HANDLE_STRIDE);
	if (h->state == HANDLE_LIVE)
		return h;
	if (h->state == HANDLE_LOST_TO_RESET)
		npu_message_set("%s: handle %p, %s on device %u, made by driver call %" PRIu64
				", was destroyed when device %u was reset by driver call %" PRIu64,
				call, pointer, npu_size_text(h->bytes), h->devid, h->made.number,
				h->space, h->freed_number);
	else
		npu_message_set(
			"%s: handle %p, %s, made by driver call %" PRIu64
			", was freed by driver call %" PRIu64 " (its last reference went there)",
			call, pointer, npu_size_text(h->bytes), h->made.number, h->freed_number);
	return NULL;
}

drvError_t handle_find(struct bsim *bs, const char *call, const void *pointer,
		       struct drv_mem_handle **out)
{
	drvError_t result = bsim_require_open_locked(bs, call);

	if (result != DRV_ERROR_NONE)
		return result;
	*out = find_live(bs, call, pointer);
	return *out != NULL ? DRV_ERROR_NONE : DRV_ERROR_INVALID_VALUE;
}

/* The record at that address, live or freed, as long as it is remembered; else NULL, no message. */
static const struct drv_mem_handle *remembered(struct bsim *bs, const void *pointer)
{
	struct handle_table *t = bs->handles;
	uint64_t offset = (uint64_t)((uintptr_t)pointer - (uintptr_t)t->arena);

	if (pointer == NULL || offset >= t->used * HANDLE_STRIDE || offset % HANDLE_STRIDE != 0)
		return NULL;
	return record_at(t, offset / HANDLE_STRIDE);
}

struct drv_mem_handle *handle_make(struct bsim *bs, const char *call, struct node_block *block)
{
	struct handle_table *t = bs->handles;
	struct drv_mem_handle *h = new_record(t);

	if (h == NULL) {
		npu_message_set("%s: no memory for one more handle; %" PRIu64 " are live", call,
				t->live_count);
		return NULL;
	}
	memset(h, 0, sizeof(*h));
	h->state = HANDLE_LIVE;
	h->ref = 1;
	h->space = (uint8_t)block->memory;
	h->block = block;
	h->bytes = block->frames << NODE_FRAME_LG2;
	h->made.number = bs->call_number;
	h->made.ps = bsim_now_locked(bs);
	h->next = t->live;
	if (h->next != NULL)
		h->next->prev = h;
	t->live = h;
	t->live_count++;
	return h;
}

static struct drv_mem_handle **import_bucket(struct handle_table *t, uint32_t share_id)
{
	return &t->imports[share_id % HANDLE_IMPORT_BUCKETS];
}

struct drv_mem_handle *handle_find_import(struct bsim *bs, uint32_t share_id, unsigned space)
{
	struct drv_mem_handle *h = *import_bucket(bs->handles, share_id);

	while (h != NULL && (h->share_id != share_id || h->space != space))
		h = h->next_import;
	return h;
}

void handle_add_import(struct bsim *bs, struct drv_mem_handle *h)
{
	struct drv_mem_handle **bucket = import_bucket(bs->handles, h->share_id);

	h->next_import = *bucket;
	*bucket = h;
}

static void remove_import(struct handle_table *t, struct drv_mem_handle *h)
{
	struct drv_mem_handle **at = import_bucket(t, h->share_id);

	while (*at != h)
		at = &(*at)->next_import;
	*at = h->next_import;
}

void handle_end(struct bsim *bs, struct drv_mem_handle *h, enum handle_state state)
{
	struct handle_table *t = bs->handles;

	if (h->imported)
		remove_import(t, h);
	node_block_drop(bs->node, h->block);
	h->block = NULL;
	if (h->prev != NULL)
		h->prev->next = h->next;
	else
		t->live = h->next;
	if (h->next != NULL)
		h->next->prev = h->prev;
	t->live_count--;
	h->state = (uint8_t)state;
	h->ref = h->map_ref = 0;
	h->freed_number = bs->call_number;
	h->next = h->prev = NULL;
	if (t->newest_freed != NULL)
		t->newest_freed->next = h;
	else
		t->oldest_freed = h;
	t->newest_freed = h;
	t->freed_count++;
}

void handle_unmapped(struct bsim *bs, struct drv_mem_handle *h)
{
	h->map_ref--;
	if (--h->ref == 0)
		handle_end(bs, h, HANDLE_FREED);
}

/* ---- create ---- */

static drvError_t check_prop(struct bsim *bs, const char *call, const struct drv_mem_prop *prop)
{
	const char *what = NULL;
	uint64_t value = 0, limit = 0;

	if (prop == NULL) {
		npu_message_set("%s: prop is NULL", call);
		return DRV_ERROR_INVALID_VALUE;
	}
	if (prop->side >= MEM_MAX_SIDE) {
		what = "side", value = prop->side, limit = MEM_MAX_SIDE;
		if (prop->side == MEM_MAX_SIDE) /* managed: see the row */
			(void)contract_code(bs, CONTRACT_CREATE_MANAGED, call);
	} else if (prop->side != MEM_HOST_NUMA_SIDE && prop->devid >= DEVICE_ID_LIMIT) {
		what = "devid", value = prop->devid, limit = DEVICE_ID_LIMIT;
	} else if (prop->pg_type >= MEM_MAX_PAGE_TYPE) {
		what = "pg_type", value = prop->pg_type, limit = MEM_MAX_PAGE_TYPE;
	} else if (prop->mem_type >= MEM_MAX_TYPE) {
		what = "mem_type", value = prop->mem_type, limit = MEM_MAX_TYPE;
	} else if (prop->reserve != 0 && !bsim_anywhere(bs)) {
		what = "reserve", value = prop->reserve, limit = 1;
	}
	if (what == NULL)
		return DRV_ERROR_NONE;
	npu_message_set("%s: prop.%s is %" PRIu64 "; it must be below %" PRIu64, call, what, value,
			limit);
	return DRV_ERROR_INVALID_VALUE;
}

static drvError_t check_place(struct bsim *bs, const char *call, const struct drv_mem_prop *prop)
{
	if (prop->side == MEM_HOST_SIDE && prop->devid != 0) {
		npu_message_set("%s: prop.devid is %u; memory of the host has id 0", call,
				prop->devid);
		return DRV_ERROR_NOT_SUPPORT;
	}
	if (prop->side == MEM_DEV_SIDE && prop->devid >= bs->devices) {
		npu_message_set("%s: prop.devid is %u; this server has devices 0 to %u", call,
				prop->devid, bs->devices - 1);
		return DRV_ERROR_INVALID_DEVICE;
	}
	if (prop->side == MEM_HOST_NUMA_SIDE && prop->devid != ANY_NUMA &&
	    prop->devid >= bs->profile.host_numa_nodes) {
		npu_message_set("%s: prop.devid is %d; this server's host has NUMA nodes 0 to %u, "
				"and -1 stands for any",
				call, (int)prop->devid, bs->profile.host_numa_nodes - 1);
		return DRV_ERROR_PARA_ERROR;
	}
	if (prop->pg_type != MEM_GIANT_PAGE_TYPE)
		return DRV_ERROR_NONE;
	if (!bs->profile.giant_pages || prop->mem_type == MEM_TS_DDR_TYPE ||
	    (prop->side != MEM_DEV_SIDE && prop->mem_type != MEM_P2P_DDR_TYPE)) {
		npu_message_set("%s: no 1 GiB pages for prop.mem_type %u on %s: %s", call,
				prop->mem_type,
				prop->side == MEM_DEV_SIDE ? "the device" : "the host",
				!bs->profile.giant_pages ? "this device has none"
				: prop->side != MEM_DEV_SIDE
					? "the host has them as P2P memory only"
					: "the task scheduler's memory has 2 MiB pages");
		return DRV_ERROR_NOT_SUPPORT;
	}
	return DRV_ERROR_NONE;
}

/* The size in frames: of 1 GiB for giant pages, else of 2 MiB. */
static drvError_t frames_of(struct bsim *bs, const char *call, uint64_t size, bool giant,
			    uint64_t *out_frames)
{
	uint64_t unit = giant ? WINDOW_GIB : NODE_FRAME_BYTES;

	if (!giant && size % unit != 0 &&
	    !contract_docs_apply(bs, CONTRACT_CREATE_UNALIGNED, call)) {
		npu_message_set("%s: size %s is not a multiple of 2 MiB, the granularity", call,
				npu_size_text(size));
		return contract_code(bs, CONTRACT_CREATE_UNALIGNED, call);
	}
	*out_frames = (size / unit + (size % unit != 0)) * (unit >> NODE_FRAME_LG2);
	return DRV_ERROR_NONE;
}

static drvError_t create_locked(struct bsim *bs, drv_mem_handle_t **out, uint64_t size,
				const struct drv_mem_prop *prop, uint64_t *out_frames)
{
	const char *call = "halMemCreate";
	bool giant = prop->pg_type == MEM_GIANT_PAGE_TYPE;
	unsigned memory = prop->side == MEM_DEV_SIDE ? prop->devid : SIM_NODE_HOST;
	struct node_block *block;
	struct drv_mem_handle *h;
	drvError_t result = bsim_require_open_locked(bs, call);

	if (result == DRV_ERROR_NONE)
		result = check_place(bs, call, prop);
	if (result == DRV_ERROR_NONE)
		result = frames_of(bs, call, size, giant, out_frames);
	if (result != DRV_ERROR_NONE)
		return result;
	result = node_block_create(bs->node, memory, *out_frames, giant, "physical", &block);
	if (result != DRV_ERROR_NONE) {
		npu_message_prefix("%s: ", call);
		return result;
	}
	h = handle_make(bs, call, block);
	if (h == NULL) {
		node_block_drop(bs->node, block);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	h->side = (uint8_t)prop->side;
	h->devid = prop->devid;
	h->module_id = prop->module_id;
	h->pg_type = (uint8_t)prop->pg_type;
	h->mem_type = (uint8_t)prop->mem_type;
	h->word = prop->reserve;
	*out = h;
	return DRV_ERROR_NONE;
}

drvError_t bsim_halMemCreate(struct npu_driver *self, drv_mem_handle_t **handle, size_t size,
			     const struct drv_mem_prop *prop, uint64_t flag)
{
	struct bsim *bs = bsim_of(self);
	uint64_t frames = 1;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if (handle == NULL || size == 0 || flag != 0) {
		npu_message_set("halMemCreate: %s", handle == NULL ? "handle is NULL"
						    : size == 0    ? "size is 0"
								   : "flag must be 0");
		result = DRV_ERROR_INVALID_VALUE;
	} else {
		result = check_prop(bs, "halMemCreate", prop);
	}
	if (result == DRV_ERROR_NONE)
		result = create_locked(bs, handle, size, prop, &frames);
	if (result == DRV_ERROR_NONE && prop->pg_type == MEM_GIANT_PAGE_TYPE)
		return bsim_leave(bs, SIM_CALL_CREATE, frames / NODE_GIANT_FRAMES, 30, result);
	return bsim_leave(bs, SIM_CALL_CREATE, frames, 21, result);
}

/* ---- references ---- */

static drvError_t release_locked(struct bsim *bs, drv_mem_handle_t *handle, uint64_t *out_frames)
{
	const char *call = "halMemRelease";
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, call, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	*out_frames = h->block->frames;
	if (h->map_ref != 0 && h->ref <= h->map_ref) {
		npu_message_set("%s: handle %p was released too often: all of its references are "
				"those of its %u mappings; the memory "
				"goes with the last of them",
				call, (void *)handle, h->map_ref);
		return DRV_ERROR_INVALID_VALUE;
	}
	if (h->ref == 1)
		handle_end(bs, h, HANDLE_FREED);
	else
		h->ref--;
	return DRV_ERROR_NONE;
}

drvError_t bsim_halMemRelease(struct npu_driver *self, drv_mem_handle_t *handle)
{
	struct bsim *bs = bsim_of(self);
	uint64_t frames = 1;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	result = release_locked(bs, handle, &frames);
	return bsim_leave(bs, SIM_CALL_RELEASE, frames, 21, result);
}

static drvError_t retain_locked(struct bsim *bs, drv_mem_handle_t **out, uint64_t va)
{
	const char *call = "halMemRetainAllocationHandle";
	struct range *r;
	struct mapping *m;
	drvError_t result = bsim_require_open_locked(bs, call);

	if (result != DRV_ERROR_NONE)
		return result;
	r = window_reservation(bs->window, va);
	if (r == NULL || r->bound < 0) {
		npu_message_set("%s: ptr 0x%" PRIx64 ": %s", call, va,
				r == NULL
					? bsim_place_text_locked(bs, va)
					: "nothing has ever been mapped in the reservation there");
		return DRV_ERROR_INVALID_HANDLE;
	}
	m = window_mapping(bs->window, va);
	if (m == NULL || m->va != va) {
		npu_message_set("%s: ptr must be the start of a live mapping: 0x%" PRIx64 " is %s",
				call, va, bsim_place_text_locked(bs, va));
		return DRV_ERROR_NOT_EXIST;
	}
	m->handle->ref++;
	*out = m->handle;
	return DRV_ERROR_NONE;
}

drvError_t bsim_halMemRetainAllocationHandle(struct npu_driver *self, drv_mem_handle_t **handle,
					     void *ptr)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if (handle == NULL || ptr == NULL) {
		npu_message_set("halMemRetainAllocationHandle: %s is NULL",
				handle == NULL ? "handle" : "ptr");
		result = DRV_ERROR_INVALID_VALUE;
	} else {
		result = retain_locked(bs, handle, (uintptr_t)ptr);
	}
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}

/* ---- queries ---- */

drvError_t bsim_halMemGetAllocationGranularity(struct npu_driver *self,
					       const struct drv_mem_prop *prop,
					       drv_mem_granularity_options option,
					       size_t *granularity)
{
	const char *call = "halMemGetAllocationGranularity";
	struct bsim *bs = bsim_of(self);
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	if ((unsigned)option >= MEM_ALLOC_GRANULARITY_INVALID) {
		npu_message_set("%s: option is %d; known are 0 (minimum) and 1 (recommended)", call,
				(int)option);
		result = DRV_ERROR_NOT_SUPPORT;
	} else if (granularity == NULL) {
		npu_message_set("%s: granularity is NULL", call);
		result = DRV_ERROR_INVALID_VALUE;
	} else {
		result = check_prop(bs, call, prop);
	}
	if (result == DRV_ERROR_NONE)
		*granularity = prop->pg_type == MEM_GIANT_PAGE_TYPE ? WINDOW_GIB : NODE_FRAME_BYTES;
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}

drvError_t bsim_halMemGetAllocationPropertiesFromHandle(struct npu_driver *self,
							struct drv_mem_prop *prop,
							drv_mem_handle_t *handle)
{
	const char *call = "halMemGetAllocationPropertiesFromHandle";
	struct bsim *bs = bsim_of(self);
	const struct drv_mem_handle *h = NULL;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	result = bsim_require_open_locked(bs, call);
	if (result == DRV_ERROR_NONE) {
		h = bsim_anywhere(bs) ? remembered(bs, handle) : NULL;
		if (h == NULL)
			h = find_live(bs, call, handle);
		if (h == NULL || prop == NULL)
			result = DRV_ERROR_INVALID_VALUE;
		if (h != NULL && prop == NULL)
			npu_message_set("%s: prop is NULL", call);
	}
	if (result == DRV_ERROR_NONE)
		*prop = (struct drv_mem_prop){ h->side,    h->devid,    h->module_id,
					       h->pg_type, h->mem_type, h->word };
	return bsim_leave(bs, SIM_CALL_QUERY, 1, 21, result);
}
