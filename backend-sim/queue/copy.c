/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronous copies and fills: argument checks in the driver's order, the choice of the engine,
 * and the messages. The model's engines move the bytes through the page tables; the CPU moves them
 * only if both sides lie in the program's own memory.
 */
#include "queue/copy.h"

#include <glib.h>
#include <string.h>

#include "cuda/dialect.h"
#include "memory/memory.h"
#include "queue/queue.h"

#define COPY_BATCH_MAX 4096u
#define OFFER_PLACES   256u /* some 10 us */

static void offer_locked(struct bsim *bs)
{
	sim_lock_offer(bs->queues == NULL ? NULL : &bs->sim_lock);
}

/* ---- one end ---- */

static drvError_t not_mapped(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			     uint64_t bytes, uint64_t hole)
{
	struct npu_place place = place_at(bs, hole - 1);
	bool before = hole != va || npu_place_is_translated(&place);

	return bsim_fail(DRV_ERROR_IOCRL_FAIL,
			 "%s: %s: byte %llu of %s at 0x%llx is not mapped: %s%s%s; map memory "
			 "there first (aclrtMapMem), or give the size of what is mapped",
			 call, argument, (unsigned long long)(hole - va), npu_size_text(bytes),
			 (unsigned long long)va, place_text_locked(bs, hole),
			 before ? "; the byte before it is " : "",
			 before ? place_text_locked(bs, hole - 1) : "");
}

/* Registered memory lies where the program has it: what follows in device addresses does not follow
 * there. */
static bool place_continues(const struct npu_place *first, const struct npu_place *next)
{
	if (first->kind == NPU_PLACE_REGISTERED || next->kind == NPU_PLACE_REGISTERED)
		return false;
	if (!npu_place_is_translated(first))
		return !npu_place_is_translated(next);
	return npu_place_is_translated(next) && next->owner == first->owner;
}

/* Walks the places of [va, va + bytes) behind the first: all of them must be reached in the way of
 * the first. What changes behind it meanwhile, the engine finds. */
static drvError_t range_check(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			      uint64_t bytes, uint64_t sent, const struct npu_place *first)
{
	struct npu_place place = *first;
	unsigned places = 0;
	uint64_t at;

	do {
		at = place.base + place.bytes;
		if (++places % OFFER_PLACES == 0 && sent == ALLOCATION_NOW) /* of a call */
			offer_locked(bs);
		place = place_sent_at(bs, at, sent);
		if (place.kind <= NPU_PLACE_RESERVED)
			return not_mapped(bs, call, argument, va, bytes, at);
		if (!place_continues(first, &place))
			return bsim_fail(DRV_ERROR_IOCRL_FAIL,
					 "%s: %s: %s at 0x%llx runs at 0x%llx into other memory: "
					 "%s; one copy covers memory of one device or of the host",
					 call, argument, npu_size_text(bytes),
					 (unsigned long long)va, (unsigned long long)at,
					 place_text_locked(bs, at));
	} while (place.base + place.bytes < va + bytes);
	return DRV_ERROR_NONE;
}

/* In the CUDA dialect access is by device: one that may reach all of the range, one that may write
 * where there is one, the owner rather than another. */
static drvError_t end_by_access(struct bsim *bs, const char *call, const char *argument,
				uint64_t va, uint64_t bytes, const struct npu_place *place,
				struct copy_end *out)
{
	struct cuda_reach reach;
	drvError_t result = cuda_reach_locked(bs, call, argument, va, bytes, false, &reach);
	uint32_t mask;

	if (result != DRV_ERROR_NONE)
		return result;
	mask = reach.writers != 0 ? reach.writers : reach.readers;
	*out = (struct copy_end){ .kind = NPU_PLACE_MAPPED, .memory = SIM_NODE_HOST };
	out->ref = (struct sim_ref){ .space = SIM_RAW, .va = va };
	if (mask == 0) /* host memory that the CPU alone has */
		return DRV_ERROR_NONE;
	out->memory = place->owner < BSIM_DEVICE_MAX && mask >> place->owner & 1
			      ? place->owner
			      : (unsigned)__builtin_ctz(mask);
	out->ref.space = (int)out->memory;
	return DRV_ERROR_NONE;
}

drvError_t copy_end_locked(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			   uint64_t bytes, uint64_t sent, struct copy_end *out)
{
	struct npu_place place = place_sent_at(bs, va, sent);
	drvError_t result = DRV_ERROR_NONE;
	bool translated = npu_place_is_translated(&place);

	if (va + bytes < va)
		return bsim_fail(DRV_ERROR_IOCRL_FAIL,
				 "%s: %s: 0x%llx + %s runs over the end of the address space", call,
				 argument, (unsigned long long)va, npu_size_text(bytes));
	if (place.kind == NPU_PLACE_FREE || place.kind == NPU_PLACE_RESERVED)
		return not_mapped(bs, call, argument, va, bytes, va);
	if (place.kind == NPU_PLACE_MAPPED && bs->cuda != NULL)
		return end_by_access(bs, call, argument, va, bytes, &place, out);
	if (place.kind != NPU_PLACE_PAGEABLE && place.base + place.bytes < va + bytes)
		result = range_check(bs, call, argument, va, bytes, sent, &place);
	else if (place.kind == NPU_PLACE_PAGEABLE &&
		 va / 4096 != (va + bytes - 1) / 4096 && /* not within a page */
		 place_at(bs, va + bytes - 1).kind != NPU_PLACE_PAGEABLE)
		result = bsim_fail(
			DRV_ERROR_IOCRL_FAIL,
			"%s: %s: %s at 0x%llx starts in the program's own memory and ends in %s",
			call, argument, npu_size_text(bytes), (unsigned long long)va,
			place_text_locked(bs, va + bytes - 1));
	if (result != DRV_ERROR_NONE)
		return result;
	out->kind = place.kind;
	out->memory = translated ? place_memory(&place) : SIM_NODE_HOST;
	out->ref.space = translated ? (int)out->memory : SIM_RAW;
	out->ref.va = translated ? va : place.host_va;
	return DRV_ERROR_NONE;
}

unsigned char *copy_at_locked(struct bsim *bs, const struct sim_ref *ref, bool write,
			      uint64_t *out_run)
{
	struct pt_leaf leaf;
	uint64_t page, room;
	unsigned char *at;

	if (ref->space == SIM_RAW) {
		*out_run = UINT64_MAX - ref->va;
		return (unsigned char *)ref->va;
	}
	if (!pt_walk(&tables_space((unsigned)ref->space)->pt, ref->va, &leaf))
		return NULL;
	page = UINT64_C(1) << leaf.page_lg2;
	*out_run = page - (ref->va & (page - 1));
	at = sim_memory_at(node_memory(bs->node), leaf.pa, &room);
	if (write)
		place_written_locked(bs, ref->va);
	return (write && !(leaf.flags & PT_WRITE)) || *out_run > room ? NULL : at;
}

/* ---- the plan ---- */

static bool may_access(const struct bsim *bs, unsigned device, unsigned peer)
{
	return device == peer || (bs->device[device].peers & (1u << peer)) != 0;
}

static drvError_t peer_missing(struct bsim *bs, const char *call, unsigned device, unsigned peer)
{
	return bsim_fail(DRV_ERROR_IOCRL_FAIL,
			 "%s: device %u may not access memory of device %u%s: call "
			 "aclrtDeviceEnablePeerAccess(%u, 0) with device %u current first",
			 call, device, peer,
			 may_access(bs, peer, device)
				 ? " (peer access is enabled the other way round only)"
				 : "",
			 peer, device);
}

/* Synchronous, two devices: the documents refuse it for mapped handles; else whichever side may
 * reach the other. */
static drvError_t plan_two_devices(struct bsim *bs, const char *call, struct copy_plan *plan)
{
	unsigned dst = plan->dst.memory, src = plan->src.memory;

	/* The pages say who may reach them; all else is one address space. */
	if (bs->cuda != NULL) {
		plan->device = dst;
		return DRV_ERROR_NONE;
	}
	if ((plan->dst.kind == NPU_PLACE_MAPPED || plan->src.kind == NPU_PLACE_MAPPED) &&
	    contract_docs_apply(bs, CONTRACT_SYNC_COPY_TWO_DEVICES, call))
		return bsim_fail(DRV_ERROR_IOCRL_FAIL,
				 "%s: dst 0x%llx is on device %u and src 0x%llx on device %u: "
				 "within one process, memory of aclrtReserveMemAddress is copied "
				 "between two devices by aclrtMemcpyAsync only",
				 call, (unsigned long long)plan->dst.ref.va, dst,
				 (unsigned long long)plan->src.ref.va, src);
	if (may_access(bs, dst, src))
		plan->device = dst;
	else if (may_access(bs, src, dst))
		plan->device = src;
	else
		return peer_missing(bs, call, dst, src);
	return DRV_ERROR_NONE;
}

/* The engine of which moves what lies in the host's mapped memory. */
static drvError_t find_open_device(const struct bsim *bs, const char *call, unsigned *out)
{
	for (*out = 0; *out < bs->devices; ++*out)
		if (bs->device[*out].open)
			return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_INVALID_HANDLE,
			 "%s: no device is open in this process: call aclrtSetDevice first", call);
}

static drvError_t plan_sync_device(struct bsim *bs, const char *call, struct copy_plan *plan)
{
	unsigned dst = plan->dst.memory, src = plan->src.memory;

	if (dst != SIM_NODE_HOST && src != SIM_NODE_HOST && dst != src)
		return plan_two_devices(bs, call, plan);
	if (dst != SIM_NODE_HOST || src != SIM_NODE_HOST)
		plan->device = dst != SIM_NODE_HOST ? dst : src;
	else if (plan->dst.ref.space == SIM_RAW && plan->src.ref.space == SIM_RAW)
		plan->engine = SIM_ENGINE_COUNT;
	else
		return find_open_device(bs, call, &plan->device);
	return DRV_ERROR_NONE;
}

drvError_t copy_access_locked(struct bsim *bs, const char *call, unsigned device,
			      const struct copy_end *end)
{
	if (end->memory == SIM_NODE_HOST || bs->cuda != NULL || may_access(bs, device, end->memory))
		return DRV_ERROR_NONE;
	return peer_missing(bs, call, device, end->memory);
}

static drvError_t find_ends(struct bsim *bs, const char *call, uint64_t sent, uint64_t dst,
			    uint64_t src, uint64_t bytes, struct copy_plan *out)
{
	*out = (struct copy_plan){ .device = 0 };
	return copy_end_locked(bs, call, "dst", dst, bytes, sent, &out->dst)
		       ?: copy_end_locked(bs, call, "src", src, bytes, sent, &out->src);
}

drvError_t copy_plan_locked(struct bsim *bs, const char *call, int issuer, uint64_t sent,
			    uint64_t dst, uint64_t src, uint64_t bytes, struct copy_plan *out)
{
	drvError_t result = find_ends(bs, call, sent, dst, src, bytes, out);

	if (bs->node != NULL) /* a copy of the program's own memory needs none */
		(void)node_lost_servers(bs->node); /* whose memory faults from here on */
	if (result == DRV_ERROR_NONE && issuer == COPY_SYNC)
		result = host_check_locked(bs, call, out, bytes);
	if (result == DRV_ERROR_NONE && issuer == COPY_SYNC && bytes > SIM_FEW_BYTES &&
	    (copy_end_may_go(&out->dst) || copy_end_may_go(&out->src))) /* as it is now */
		result = find_ends(bs, call, sent, dst, src, bytes, out);
	if (result != DRV_ERROR_NONE)
		return result;
	if (out->src.memory == SIM_NODE_HOST)
		out->engine = SIM_ENGINE_H2D;
	else if (out->dst.memory == SIM_NODE_HOST)
		out->engine = SIM_ENGINE_D2H;
	else
		out->engine = SIM_ENGINE_SDMA;
	out->device = (unsigned)issuer;
	if (issuer == COPY_SYNC)
		result = plan_sync_device(bs, call, out);
	else
		result = copy_access_locked(bs, call, out->device, &out->dst)
				 ?: copy_access_locked(bs, call, out->device, &out->src);
	return result ?: copy_room_locked(bs, call, issuer, &out->dst, bytes);
}

/* ---- links to other servers ---- */

/* A fill has no source, and nothing is mapped where it would be. */
drvError_t copy_cross_locked(struct bsim *bs, const char *call, struct sim_job *job,
			     uint64_t servers)
{
	const struct sim_ref *ends[] = { &job->dst, &job->src };
	uint64_t delay_us = 0;
	struct pt_leaf leaf;

	if (bs->link_faults == NULL)
		return DRV_ERROR_NONE;
	for (unsigned i = 0; i < 2; i++)
		for (uint64_t at = ends[i]->va;
		     ends[i]->space != SIM_RAW && at < ends[i]->va + job->bytes &&
		     pt_walk(&tables_space((unsigned)ends[i]->space)->pt, at, &leaf);
		     at = ((at >> leaf.page_lg2) + 1) << leaf.page_lg2)
			if (SIM_PA_NODE(leaf.pa) >= SIM_NODE_MAX)
				servers |= UINT64_C(1) << SIM_PEER_SERVER(SIM_PA_NODE(leaf.pa));
	for (unsigned server = 0; servers >> server != 0; server++)
		if ((servers >> server & 1) && !bs->link_faults(server, &delay_us))
			return bsim_fail(DRV_ERROR_IOCRL_FAIL,
					 "%s: the link to server %u of supernode %s is lost, as "
					 "NPUSIM_FAULT has it",
					 call, server, bs->config.name);
	job->start_ps += bs->timing ? delay_us * SIM_PS_PER_US : 0;
	return DRV_ERROR_NONE;
}

/* ---- moving ---- */

/* What the CPU moves passes at the host link's rate: the profile has no figure of the host's own
 * memory. */
static void spend_cpu_locked(struct bsim *bs, uint64_t bytes)
{
	if (bs->sim != NULL && bs->timing && bs->profile.h2d_bytes_per_us != 0)
		sim_spend(bs->sim, bytes * SIM_PS_PER_US / bs->profile.h2d_bytes_per_us);
}

static drvError_t run_locked(struct bsim_call *c, struct sim_job *job)
{
	drvError_t result;
	enum sim_status status;

	c->begun = true;
	job->start_ps = sim_host_ps(c->bs->sim);
	result = copy_cross_locked(c->bs, c->name, job, 0);
	if (result != DRV_ERROR_NONE)
		return result;
	status = sim_execute(c->bs->sim, job);
	queue_catch_up_locked(c->bs);
	return status == SIM_OK ? DRV_ERROR_NONE : copy_fault_locked(c->bs, c->name, job);
}

static drvError_t move_locked(struct bsim_call *c, const struct copy_plan *plan, uint64_t bytes)
{
	struct sim_job job = copy_job(c->bs, plan, bytes);

	if (plan->engine != SIM_ENGINE_COUNT)
		return run_locked(c, &job);
	if (c->bs->contents) {
		queue_let_go_locked(c->bs);
		memmove((void *)plan->dst.ref.va, (const void *)plan->src.ref.va, bytes);
		queue_take_back(c->bs);
	}
	spend_cpu_locked(c->bs, bytes);
	return DRV_ERROR_NONE;
}

/* Plans a copy, and makes it if it is to `move`. */
static drvError_t copy_locked(struct bsim_call *c, uint64_t dst, uint64_t src, uint64_t bytes,
			      bool move, struct copy_plan *out)
{
	struct queue_user user;
	drvError_t result;

	queue_use_locked(c->bs, &user, dst, src, bytes);
	result = copy_plan_locked(c->bs, c->name, COPY_SYNC, ALLOCATION_NOW, dst, src, bytes, out);
	if (result == DRV_ERROR_NONE && move)
		result = move_locked(c, out, bytes);
	queue_use_end_locked(c->bs, &user);
	return result;
}

static drvError_t too_small(const char *call, size_t dest_max, size_t count, const char *name)
{
	return bsim_invalid("%s: dest_max is %s and %s is %s: it must not be larger", call,
			    npu_size_text(dest_max), name, npu_size_text(count));
}

BSIM_CALL(drvMemcpy, SIM_CALL_COPY, (DVdeviceptr, dst), (size_t, dest_max), (DVdeviceptr, src),
	  (size_t, count))
{
	struct copy_plan plan;

	if (dst == 0 || src == 0)
		return bsim_null(c->name, dst == 0 ? "dst" : "src");
	if (dest_max == 0)
		return bsim_invalid("%s: dest_max is 0: it must be the size of the memory at dst",
				    c->name);
	if (dest_max < count)
		return too_small(c->name, dest_max, count, "count");
	if (count == 0)
		return DRV_ERROR_NONE;
	return copy_locked(c, dst, src, count, true, &plan);
}

/* ---- fills ---- */

static void fill_by_cpu_locked(struct bsim *bs, unsigned char *at, uint32_t pattern,
			       unsigned pattern_bytes, size_t bytes)
{
	queue_let_go_locked(bs);
	for (size_t i = 0; pattern_bytes > 1 && i < bytes; i++)
		at[i] = (unsigned char)(pattern >> 8 * (i % pattern_bytes));
	if (pattern_bytes == 1)
		memset(at, (int)pattern, bytes);
	queue_take_back(bs);
}

static drvError_t fill_used_locked(struct bsim_call *c, DVdeviceptr dst, uint32_t pattern,
				   unsigned pattern_bytes, size_t bytes)
{
	struct copy_end end;
	unsigned device;
	drvError_t result = copy_end_locked(c->bs, c->name, "dst", dst, bytes, ALLOCATION_NOW, &end)
				    ?: host_check_end(c->bs, c->name, "dst", &end, bytes, true)
				    ?: copy_room_locked(c->bs, c->name, COPY_SYNC, &end, bytes);

	if (result != DRV_ERROR_NONE)
		return result;
	if (end.ref.space == SIM_RAW) {
		if (c->bs->contents)
			fill_by_cpu_locked(c->bs, (unsigned char *)end.ref.va, pattern,
					   pattern_bytes, bytes);
		spend_cpu_locked(c->bs, bytes);
		return DRV_ERROR_NONE;
	}
	device = end.memory;
	if (device == SIM_NODE_HOST &&
	    (result = find_open_device(c->bs, c->name, &device)) != DRV_ERROR_NONE)
		return result;
	struct sim_job job = {
		.kind = SIM_JOB_FILL,
		.engine = end.memory == SIM_NODE_HOST ? SIM_ENGINE_D2H : SIM_ENGINE_SDMA,
		.device = device,
		.dst = end.ref,
		.bytes = bytes,
		.pattern = pattern,
		.pattern_bytes = pattern_bytes,
		.contents_stay = !c->bs->contents,
	};
	return run_locked(c, &job);
}

static drvError_t fill_locked(struct bsim_call *c, DVdeviceptr dst, uint32_t pattern,
			      unsigned pattern_bytes, size_t bytes)
{
	struct queue_user user;
	drvError_t result;

	queue_use_locked(c->bs, &user, dst, 0, bytes);
	result = fill_used_locked(c, dst, pattern, pattern_bytes, bytes);
	queue_use_end_locked(c->bs, &user);
	return result;
}

BSIM_CALL(drvMemsetD8, SIM_CALL_COPY, (DVdeviceptr, dst), (size_t, dest_max), (uint8_t, value),
	  (size_t, num))
{
	if (dst == 0)
		return bsim_null(c->name, "dst");
	if (num == 0)
		return bsim_invalid("%s: num is 0: it must be the number of bytes to set", c->name);
	if (dest_max < num)
		return too_small(c->name, dest_max, num, "num");
	return fill_locked(c, dst, value, 1, num);
}

BSIM_CALL(npusimFill, SIM_CALL_COPY, (DVdeviceptr, dst), (uint32_t, pattern),
	  (unsigned, pattern_bytes), (size_t, count))
{
	if (dst == 0 || count == 0)
		return bsim_invalid("%s: %s is 0", c->name, dst == 0 ? "dst" : "count");
	if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4)
		return bsim_invalid("%s: pattern_bytes must be 1, 2 or 4", c->name);
	if (count > UINT64_MAX / pattern_bytes)
		return bsim_invalid("%s: count runs over the end of the address space", c->name);
	return fill_locked(c, dst, pattern, pattern_bytes, count * pattern_bytes);
}

/* ---- two dimensions, and many at once ---- */

/* Copies of these calls lie between a device and the host. */
static drvError_t one_end_check(const char *call, const struct copy_plan *plan)
{
	if ((plan->dst.memory == SIM_NODE_HOST) != (plan->src.memory == SIM_NODE_HOST))
		return DRV_ERROR_NONE;
	return bsim_unsupported("%s: one of dst and src must be memory of a device, and the other "
				"of the host",
				call);
}

static drvError_t memcpy_2d_check(const char *call, const struct drvMem2D *copy)
{
	if (copy->dst == NULL || copy->src == NULL)
		return bsim_null(call, copy->dst == NULL ? "dst" : "src");
	if (copy->width == 0 || copy->height == 0)
		return bsim_invalid("%s: %s is 0: it must be larger", call,
				    copy->width == 0 ? "width" : "height");
	if (copy->width > copy->dpitch || copy->width > copy->spitch)
		return bsim_invalid("%s: width is %llu, dpitch %llu and spitch %llu: a pitch must "
				    "not be smaller than the width",
				    call, copy->width, copy->dpitch, copy->spitch);
	if (copy->direction != DRV_MEMCPY_HOST_TO_DEVICE &&
	    copy->direction != DRV_MEMCPY_DEVICE_TO_HOST)
		return bsim_unsupported(
			"%s: direction is %u: it must be 1 (host to device) or 2 (device to host)",
			call, copy->direction);
	if ((copy->height - 1) > (UINT64_MAX - copy->width) / MAX(copy->dpitch, copy->spitch))
		return bsim_invalid(
			"%s: height times the pitch runs over the end of the address space", call);
	return DRV_ERROR_NONE;
}

static drvError_t memcpy_2d_direction(const char *call, const struct copy_plan *plan,
				      unsigned direction)
{
	bool to_device = plan->dst.memory != SIM_NODE_HOST,
	     says_to_device = direction == DRV_MEMCPY_HOST_TO_DEVICE;
	drvError_t result = one_end_check(call, plan);

	if (result != DRV_ERROR_NONE || to_device == says_to_device)
		return result;
	return bsim_fail(DRV_ERROR_PARA_ERROR,
			 "%s: direction says %s, but dst is memory of %s and src of %s", call,
			 says_to_device ? "host to device" : "device to host",
			 to_device ? "a device" : "the host", to_device ? "the host" : "a device");
}

static drvError_t memcpy_2d_rows_locked(struct bsim_call *c, const struct drvMem2D *copy, bool move)
{
	drvError_t result = DRV_ERROR_NONE;
	struct copy_plan plan;

	for (uint64_t row = 0; row < copy->height && result == DRV_ERROR_NONE; row++) {
		result = copy_locked(c, (uint64_t)copy->dst + row * copy->dpitch,
				     (uint64_t)copy->src + row * copy->spitch, copy->width, move,
				     &plan);
		if (result == DRV_ERROR_NONE && row == 0)
			result = memcpy_2d_direction(c->name, &plan, copy->direction);
		offer_locked(c->bs);
	}
	return result;
}

static drvError_t memcpy_2d_locked(struct bsim_call *c, struct drvMem2D copy)
{
	drvError_t result = memcpy_2d_check(c->name, &copy);

	if (result != DRV_ERROR_NONE)
		return result;
	if (copy.dpitch == copy.width && copy.spitch == copy.width) { /* one piece */
		copy.width *= copy.height;
		copy.height = 1;
	}
	return memcpy_2d_rows_locked(c, &copy, false) /* nothing moves until all is well */
		       ?: memcpy_2d_rows_locked(c, &copy, true);
}

/* ---- descriptors of rows: numbers, by which entries of the device's queues find them ---- */

#define DESCRIPTORS_MAX UINT16_MAX /* an entry counts them in 16 bits */

struct queue_rows *queue_rows_find(const struct queue_device *device, void *number)
{
	return device->rows == NULL ? NULL : g_hash_table_lookup(device->rows, number);
}

static void rows_end(void *made)
{
	struct queue_rows *rows = made;

	queue_use_end_locked(rows->bs, &rows->user);
}

void queue_rows_release(void *rows)
{
	g_rc_box_release_full(rows, rows_end);
}

/* The rows that are left behind fixed_size bytes, as many as one entry takes. */
static drvError_t rows_left(const char *call, struct drvMem2D *copy)
{
	uint64_t done = copy->fixed_size / copy->width;

	if (copy->fixed_size % copy->width != 0 || done >= copy->height || copy->width > UINT32_MAX)
		return bsim_invalid("%s: fixed_size is %llu and width %llu: these must be less "
				    "than all %llu rows, in whole rows, of less than 4 GiB each",
				    call, copy->fixed_size, copy->width, copy->height);
	copy->dst = (void *)((uint64_t)copy->dst + done * copy->dpitch);
	copy->src = (void *)((uint64_t)copy->src + done * copy->spitch);
	copy->height = MIN(copy->height - done, MIN(DESCRIPTORS_MAX, UINT32_MAX / copy->width));
	return DRV_ERROR_NONE;
}

static drvError_t convert_locked(struct bsim_call *c, struct drvMem2D rows, struct DMA_ADDR *out)
{
	uint32_t dev = out->offsetAddr.devid;
	struct queue_device *device;
	struct queue_rows *made;
	drvError_t result = queue_device_find_locked(c->bs, c->name, dev, 0, &device)
				    ?: memcpy_2d_check(c->name, &rows) ?: rows_left(c->name, &rows)
				    ?: memcpy_2d_rows_locked(c, &rows, false) /* lets go */
				    ?: queue_device_find_locked(c->bs, c->name, dev, 0, &device);

	if (result != DRV_ERROR_NONE)
		return result;
	made = g_rc_box_new0(struct queue_rows);
	made->bs = c->bs;
	made->rows = rows;
	queue_use_locked(c->bs, &made->user, (uint64_t)rows.dst, (uint64_t)rows.src, 1);
	made->user.use[0].bytes = (rows.height - 1) * rows.dpitch + rows.width;
	made->user.use[1].bytes = (rows.height - 1) * rows.spitch + rows.width;
	if (device->rows == NULL)
		device->rows = g_hash_table_new_full(NULL, NULL, NULL, queue_rows_release);
	*out = (struct DMA_ADDR){ .phyAddr = { .src = GSIZE_TO_POINTER(++device->rows_made),
					       .len = (unsigned)rows.height,
					       .flag = 1 },
				  .fixed_size = (unsigned)(rows.height * rows.width),
				  .virt_id = dev };
	g_hash_table_insert(device->rows, out->phyAddr.src, made);
	return DRV_ERROR_NONE;
}

static drvError_t destroy_locked(struct bsim *bs, const char *call, const struct DMA_ADDR *dma)
{
	struct queue_device *device;
	drvError_t result = queue_device_find_locked(bs, call, dma->virt_id, 0, &device);

	if (result != DRV_ERROR_NONE)
		return result;
	if (device->rows == NULL || !g_hash_table_remove(device->rows, dma->phyAddr.src))
		return bsim_invalid("%s: there are no descriptors at %p on device %u", call,
				    dma->phyAddr.src, dma->virt_id);
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemcpy2D, SIM_CALL_COPY, (struct MEMCPY2D *, copy))
{
	struct DMA_ADDR *dma;

	if (copy == NULL)
		return bsim_null(c->name, "copy");
	if (copy->type == DEVMM_MEMCPY2D_SYNC)
		return memcpy_2d_locked(c, copy->copy2d);
	if (copy->type > DEVMM_MEMCPY2D_ASYNC_DESTROY)
		return bsim_invalid("%s: type is %u: it must be 0, 1 or 2", c->name, copy->type);
	dma = copy->copy2dAsync.dmaAddr;
	if (dma == NULL)
		return bsim_null(c->name, "dmaAddr");
	return copy->type == DEVMM_MEMCPY2D_ASYNC_DESTROY
		       ? destroy_locked(c->bs, c->name, dma)
		       : convert_locked(c, copy->copy2dAsync.copy2dInfo, dma);
}

static drvError_t batch_one_locked(struct bsim_call *c, uint64_t dst, uint64_t src, size_t bytes,
				   size_t index, bool move)
{
	struct copy_plan plan;
	drvError_t result;

	if (bytes == 0)
		result = bsim_invalid("%s: size is 0: it must be larger", c->name);
	else if (dst == 0 || src == 0)
		result = bsim_null(c->name, dst == 0 ? "dst" : "src");
	else
		result = copy_locked(c, dst, src, bytes, move, &plan)
				 ?: one_end_check(c->name, &plan);
	if (result != DRV_ERROR_NONE)
		npu_message_prefix("copy %zu of the batch: ", index);
	offer_locked(c->bs);
	return result;
}

BSIM_CALL(halMemcpyBatch, SIM_CALL_COPY, (uint64_t *, dst), (uint64_t *, src), (size_t *, size),
	  (size_t, count))
{
	drvError_t result = DRV_ERROR_NONE;

	c->pages = MAX(1, count);
	if (dst == NULL || src == NULL || size == NULL || count == 0)
		return bsim_fail(DRV_ERROR_PARA_ERROR, "%s: %s", c->name,
				 count == 0 ? "count is 0" : "dst, src or size is NULL");
	if (count > COPY_BATCH_MAX)
		return bsim_unsupported("%s: count is %zu: one call takes at most %u copies",
					c->name, count, COPY_BATCH_MAX);
	/* Nothing moves until all is well. */
	for (int move = 0; move < 2; move++)
		for (size_t i = 0; i < count && result == DRV_ERROR_NONE; i++)
			result = batch_one_locked(c, dst[i], src[i], size[i], i, move != 0);
	return result;
}

/* ---- prefetch: checked, and nothing to do: all memory is where it was allocated ---- */

BSIM_CALL(drvMemPrefetchToDevice, SIM_CALL_QUERY, (DVdeviceptr, va), (size_t, len), (DVdevice, dev))
{
	struct copy_end end;
	drvError_t result;

	if (va == 0 || len == 0)
		return bsim_invalid("%s: %s is 0", c->name, va == 0 ? "dev_ptr" : "len");
	if (dev >= c->bs->devices)
		return bsim_no_device(c->bs, c->name, "device", dev);
	result = copy_end_locked(c->bs, c->name, "dev_ptr", va, len, ALLOCATION_NOW, &end);
	if (result == DRV_ERROR_NONE && end.ref.space == SIM_RAW)
		return bsim_invalid("%s: 0x%llx is no memory of a device", c->name,
				    (unsigned long long)va);
	return result;
}

/* ---- reads by a core, for their effect on time, TLBs and the memory's rows only ---- */

static drvError_t check_touch(struct bsim *bs, uint32_t dev, const uint64_t *at, size_t count,
			      size_t bytes, uint32_t core)
{
	unsigned cores = bs->profile.cube_cores + bs->profile.vector_cores;

	if (at == NULL || count == 0 || bytes == 0)
		return bsim_invalid("npusimTouch: at is %p, count %zu and bytes %zu: none may be 0",
				    (const void *)at, count, bytes);
	if (count > UINT64_MAX / bytes)
		return bsim_invalid("npusimTouch: %zu times %zu bytes is more than 2^64", count,
				    bytes);
	if (!bsim_require_device_locked(bs, "npusimTouch", dev))
		return DRV_ERROR_PARA_ERROR;
	if (core >= cores)
		return bsim_invalid("npusimTouch: core is %u; the device has cores 0 to %u", core,
				    cores - 1);
	return DRV_ERROR_NONE;
}

/* Where a read begins, seen from the first; below it, round the end of 64 bits. */
static uint64_t offset_of(const struct sim_job *job, uint64_t row)
{
	const uint64_t *at = job->arg;

	return at[row] - at[0];
}

BSIM_OPEN_CALL(npusimTouch, SIM_CALL_QUERY, (uint32_t, dev), (const uint64_t *, at),
	       (size_t, count), (size_t, bytes), (uint32_t, core))
{
	drvError_t result = check_touch(c->bs, dev, at, count, bytes, core);
	struct sim_job job = {
		.kind = SIM_JOB_READ,
		.engine = SIM_ENGINE_CORE,
		.device = dev,
		.core = core,
		.src = { .space = (int)dev },
		.bytes = count * bytes,
		.row_bytes = bytes,
		.row_offset = offset_of,
		.arg = (void *)at,
	};
	enum sim_status status;

	if (result != DRV_ERROR_NONE)
		return result;
	job.src.va = at[0];
	c->begun = true;
	status = sim_execute(c->bs->sim, &job);
	queue_catch_up_locked(c->bs);
	return status == SIM_OK ? DRV_ERROR_NONE : copy_fault_locked(c->bs, c->name, &job);
}

/* ---- whether a copy may be, before it is made ---- */

static drvError_t check_end(struct bsim *bs, const char *argument, uint64_t va, uint64_t bytes,
			    bool write)
{
	struct npu_place place = place_at(bs, va);
	struct cuda_reach reach;
	struct copy_end end;

	if (bytes == 0 || va == 0)
		return DRV_ERROR_NONE;
	if (place_is_reserved(&place) && va + bytes >= va)
		return cuda_reach_locked(bs, "copy", argument, va, bytes, write, &reach);
	return copy_end_locked(bs, "copy", argument, va, bytes, ALLOCATION_NOW, &end);
}

BSIM_QUESTION(npusimCheckCopy, (DVdeviceptr, dst), (DVdeviceptr, src), (size_t, count))
{
	return bsim_require_open_locked(bs, "npusimCheckCopy")
		       ?: check_end(bs, "dst", dst, count, true)
		       ?: check_end(bs, "src", src, count, false);
}
