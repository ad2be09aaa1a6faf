/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements physical handles: halMemCreate, halMemRelease, halMemRetainAllocationHandle, their
 * properties and granularity.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#define HANDLE_KEPT 4096u /* freed records that are kept before one is used again */
#define ANY_NUMA    UINT32_MAX

/* ---- the table ---- */

void handle_table_open(struct bsim *bs)
{
	struct handle_table *t = g_new0(struct handle_table, 1);

	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		TAILQ_INIT(&t->live[i]);
	TAILQ_INIT(&t->freed);
	t->records = g_hash_table_new_full(NULL, NULL, g_free, NULL);
	t->imports = g_hash_table_new(NULL, NULL);
	bs->handles = t;
}

void handle_table_close(struct bsim *bs)
{
	struct handle_table *t = bs->handles;
	struct drv_mem_handle *h;

	if (t == NULL)
		return;
	EACH_OF(TAILQ, h, t->live)
	node_block_drop(bs->node, h->block);
	g_hash_table_unref(t->records);
	g_hash_table_unref(t->imports);
	bs->handles = NULL;
	g_free(t);
}

static struct drv_mem_handle *new_record(struct handle_table *t)
{
	struct drv_mem_handle *h = TAILQ_FIRST(&t->freed);

	if (t->freed_count > HANDLE_KEPT) {
		TAILQ_REMOVE(&t->freed, h, link);
		t->freed_count--;
		return h;
	}
	h = g_new(struct drv_mem_handle, 1);
	g_hash_table_add(t->records, h);
	return h;
}

drvError_t handle_find(struct bsim *bs, const char *call, const void *handle,
		       struct drv_mem_handle **out)
{
	struct drv_mem_handle *h;
	drvError_t result = bsim_require_open_locked(bs, call) ?: BSIM_GIVEN(call, handle);

	if (result != DRV_ERROR_NONE)
		return result;
	h = *out = g_hash_table_lookup(bs->handles->records, handle);
	if (h == NULL)
		return bsim_invalid("%s: handle %p was never given out in this process (it "
				    "has %s, by creating and by importing memory)",
				    call, handle,
				    npu_counted(bs->handles->live_count, "live handle"));
	if (h->state == HANDLE_LIVE)
		return DRV_ERROR_NONE;
	if (h->state == HANDLE_LOST_TO_RESET)
		return bsim_invalid("%s: handle %p, %s on device %u, made by %s, was destroyed "
				    "when device %u was reset by %s",
				    call, handle, npu_size_text(h->bytes), h->prop.devid,
				    bsim_made_text(&h->made, false), h->space,
				    bsim_made_text(&h->freed, true));
	return bsim_invalid("%s: handle %p, %s, made by %s, was freed by %s: its last reference "
			    "went there",
			    call, handle, npu_size_text(h->bytes), bsim_made_text(&h->made, false),
			    bsim_made_text(&h->freed, true));
}

struct drv_mem_handle *handle_make(struct bsim *bs, struct node_block *block, unsigned space)
{
	struct handle_table *t = bs->handles;
	struct drv_mem_handle *h = new_record(t);

	memset(h, 0, sizeof(*h));
	h->state = HANDLE_LIVE;
	h->ref = 1;
	h->space = (uint8_t)space;
	h->block = block;
	h->bytes = block->frames << NODE_FRAME_LG2;
	h->made = bsim_made_locked(bs);
	TAILQ_INSERT_HEAD(&t->live[space], h, link);
	t->live_count++;
	return h;
}

static void *import_key(uint32_t share_id, unsigned space)
{
	return (void *)(uintptr_t)((uint64_t)share_id << 8 | space);
}

struct drv_mem_handle *handle_find_import(struct bsim *bs, uint32_t share_id, unsigned space)
{
	return g_hash_table_lookup(bs->handles->imports, import_key(share_id, space));
}

void handle_add_import(struct bsim *bs, struct drv_mem_handle *h)
{
	g_hash_table_insert(bs->handles->imports, import_key(h->share_id, h->space), h);
}

void handle_set_imported_prop(struct drv_mem_handle *h, uint32_t dev)
{
	bool host = h->block->memory % SIM_NODE_MAX == SIM_NODE_HOST;

	h->prop = (struct drv_mem_prop){
		.side = host ? MEM_HOST_SIDE : MEM_DEV_SIDE,
		.devid = host ? 0 : dev,
		.module_id = APP_MODULE_ID,
		.pg_type = h->block->giant ? MEM_GIANT_PAGE_TYPE : MEM_HUGE_PAGE_TYPE,
		.mem_type = host ? MEM_DDR_TYPE : MEM_HBM_TYPE,
	};
}

/* Whatever its references say: its pages go back. */
static void handle_end(struct bsim *bs, struct drv_mem_handle *h, enum handle_state state)
{
	struct handle_table *t = bs->handles;

	if (h->imported && handle_find_import(bs, h->share_id, h->space) == h)
		g_hash_table_remove(t->imports, import_key(h->share_id, h->space));
	gone_block_locked(bs, h->block);
	h->block = NULL;
	TAILQ_REMOVE(&t->live[h->space], h, link);
	t->live_count--;
	h->state = (uint8_t)state;
	h->ref = h->map_ref = 0;
	h->freed = bsim_made_locked(bs);
	TAILQ_INSERT_TAIL(&t->freed, h, link);
	t->freed_count++;
}

unsigned handle_end_device(struct bsim *bs, unsigned device)
{
	struct drv_mem_handle *h;
	unsigned ended = 0;

	for (; (h = TAILQ_FIRST(&bs->handles->live[device])) != NULL; ended++)
		handle_end(bs, h, HANDLE_LOST_TO_RESET);
	return ended;
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
	if (prop == NULL)
		return bsim_null(call, "prop");
	if (prop->side == MEM_MAX_SIDE) /* managed: see the row */
		(void)contract_code(bs, CONTRACT_CREATE_MANAGED, call);
	const struct {
		const char *name;
		uint64_t value, limit;
	} members[] = {
		{ "side", prop->side, MEM_MAX_SIDE },
		{ "devid", prop->side == MEM_HOST_NUMA_SIDE ? 0 : prop->devid, DEVICE_ID_LIMIT },
		{ "pg_type", prop->pg_type, MEM_MAX_PAGE_TYPE },
		{ "mem_type", prop->mem_type, MEM_MAX_TYPE },
		{ "reserve", bs->cuda == NULL ? prop->reserve : 0, 1 },
	};
	for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
		if (members[i].value >= members[i].limit)
			return bsim_invalid("%s: prop.%s is %" PRIu64 "; it must be below %" PRIu64,
					    call, members[i].name, members[i].value,
					    members[i].limit);
	return DRV_ERROR_NONE;
}

static drvError_t check_place(struct bsim *bs, const char *call, const struct drv_mem_prop *prop)
{
	if (prop->side == MEM_HOST_SIDE && prop->devid != 0)
		return bsim_unsupported("%s: prop.devid is %u; memory of the host has id 0", call,
					prop->devid);
	if (prop->side == MEM_DEV_SIDE && prop->devid >= bs->devices)
		return bsim_no_device(bs, call, "prop.devid", prop->devid);
	if (prop->side == MEM_DEV_SIDE && !bsim_require_device_locked(bs, call, prop->devid))
		return DRV_ERROR_PARA_ERROR;
	if (prop->side == MEM_HOST_NUMA_SIDE && prop->devid != ANY_NUMA &&
	    prop->devid >= bs->profile.host_numa_nodes)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: prop.devid is %d; this server's host has NUMA nodes 0 to %u, "
				 "and -1 stands for any",
				 call, (int)prop->devid, bs->profile.host_numa_nodes - 1);
	if (prop->pg_type != MEM_GIANT_PAGE_TYPE)
		return DRV_ERROR_NONE;
	if (!bs->profile.giant_pages || prop->mem_type == MEM_TS_DDR_TYPE ||
	    (prop->side != MEM_DEV_SIDE && prop->mem_type != MEM_P2P_DDR_TYPE))
		return bsim_unsupported("%s: no 1 GiB pages for prop.mem_type %u on %s: %s", call,
					prop->mem_type,
					prop->side == MEM_DEV_SIDE ? "the device" : "the host",
					!bs->profile.giant_pages ? "this device has none"
					: prop->side != MEM_DEV_SIDE
						? "the host has them as P2P memory only"
						: "the task scheduler's memory has 2 MiB pages");
	return DRV_ERROR_NONE;
}

/* The size in frames: of 1 GiB for giant pages, else of 2 MiB. */
static drvError_t frames_of(struct bsim *bs, const char *call, uint64_t size, bool giant,
			    uint64_t *out_frames)
{
	uint64_t unit = giant ? WINDOW_GIB : NODE_FRAME_BYTES;

	if (!giant && size % unit != 0 && !contract_docs_apply(bs, CONTRACT_CREATE_UNALIGNED, call))
		return bsim_fail(contract_code(bs, CONTRACT_CREATE_UNALIGNED, call),
				 "%s: size %s is not a multiple of 2 MiB, the granularity", call,
				 npu_size_text(size));
	*out_frames = (size / unit + (size % unit != 0)) * (unit >> NODE_FRAME_LG2);
	return DRV_ERROR_NONE;
}

/* Creating more than the process has ever held stalls once for so many frames. */
static void stall(struct bsim *bs, unsigned dev, uint64_t fresh)
{
	uint64_t *frames = &bs->device[dev].fresh_frames;
	uint64_t step = bs->profile.call[SIM_CALL_STALL].pages_per_message, stalls;

	*frames += fresh;
	stalls = step ? *frames / step - (*frames - fresh) / step : 0;
	if (stalls)
		bsim_pass_time_locked(bs, SIM_CALL_STALL, stalls * step, NODE_FRAME_LG2);
}

static drvError_t create_locked(struct bsim *bs, drv_mem_handle_t **out, uint64_t size,
				const struct drv_mem_prop *prop, uint64_t *out_frames)
{
	const char *call = "halMemCreate";
	bool giant = prop->pg_type == MEM_GIANT_PAGE_TYPE;
	unsigned memory = prop->side == MEM_DEV_SIDE ? prop->devid : SIM_NODE_HOST;
	uint64_t peak;
	struct node_block *block;
	struct drv_mem_handle *h;
	drvError_t result = bsim_require_open_locked(bs, call) ?: check_place(bs, call, prop)
			    ?: frames_of(bs, call, size, giant, out_frames);

	if (result != DRV_ERROR_NONE)
		return result;
	peak = node_own_peak(bs->node, memory);
	result = bsim_pass(call, memory_take(bs, memory, *out_frames, giant, &block));
	if (result != DRV_ERROR_NONE)
		return result;
	if (memory != SIM_NODE_HOST)
		stall(bs, memory, node_own_peak(bs->node, memory) - peak);
	h = handle_make(bs, block, memory);
	block_poison(bs, block);
	h->prop = *prop;
	*out = h;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemCreate, SIM_CALL_CREATE, (drv_mem_handle_t **, handle), (size_t, size),
	  (const struct drv_mem_prop *, prop), (uint64_t, flag))
{
	drvError_t result;

	if (handle == NULL || size == 0 || flag != 0)
		return bsim_invalid("%s: %s", c->name,
				    handle == NULL ? "handle is NULL"
				    : size == 0    ? "size is 0"
						   : "flag must be 0");
	result = check_prop(c->bs, c->name, prop)
			 ?: create_locked(c->bs, handle, size, prop, &c->pages);
	if (result == DRV_ERROR_NONE && prop->pg_type == MEM_GIANT_PAGE_TYPE) {
		c->pages /= NODE_GIANT_FRAMES;
		c->page_lg2 = 30;
	}
	return result;
}

/* ---- references ---- */

BSIM_CALL(halMemRelease, SIM_CALL_RELEASE, (drv_mem_handle_t *, handle))
{
	struct drv_mem_handle *h;
	drvError_t result = handle_find(c->bs, c->name, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	c->pages = h->block->frames;
	if (h->map_ref != 0 && h->ref <= h->map_ref)
		return bsim_invalid(
			"%s: handle %p was released too often: all of its references are those of "
			"its mappings (%u); the memory goes with the last of them",
			c->name, (void *)handle, h->map_ref);
	if (h->ref == 1 && handle_is_remote(h))
		result =
			bsim_check_server_locked(c->bs, c->name, SIM_PEER_SERVER(h->block->memory));
	if (result != DRV_ERROR_NONE)
		return result;
	if (h->ref == 1)
		handle_end(c->bs, h, HANDLE_FREED);
	else
		h->ref--;
	return DRV_ERROR_NONE;
}

/* ---- queries ---- */

BSIM_CALL(halMemGetAllocationGranularity, SIM_CALL_QUERY, (const struct drv_mem_prop *, prop),
	  (drv_mem_granularity_options, option), (size_t *, granularity))
{
	drvError_t result;

	if ((unsigned)option >= MEM_ALLOC_GRANULARITY_INVALID)
		return bsim_unsupported(
			"%s: option is %d; known are 0 (minimum) and 1 (recommended)", c->name,
			(int)option);
	result = BSIM_GIVEN(c->name, granularity) ?: check_prop(c->bs, c->name, prop);
	if (result == DRV_ERROR_NONE)
		*granularity = prop->pg_type == MEM_GIANT_PAGE_TYPE ? WINDOW_GIB : NODE_FRAME_BYTES;
	return result;
}

BSIM_OPEN_CALL(halMemGetAllocationPropertiesFromHandle, SIM_CALL_QUERY,
	       (struct drv_mem_prop *, prop), (drv_mem_handle_t *, handle))
{
	struct drv_mem_handle *h = NULL;
	drvError_t result = handle_find(c->bs, c->name, handle, &h);

	/* in the CUDA dialect of a released one, too */
	if (result != DRV_ERROR_NONE && (c->bs->cuda == NULL || h == NULL))
		return result;
	result = BSIM_GIVEN(c->name, prop);
	if (result == DRV_ERROR_NONE)
		*prop = h->prop;
	return result;
}
