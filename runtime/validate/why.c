/* SPDX-License-Identifier: Apache-2.0
 *
 * Why calls fail: what they name was given back, an earlier call failed that was to make it, or
 * nobody gave access to it. Owns the failures that others may follow from, and which device may
 * reach which.
 */
#include "validate/validate.h"

#include "base/base.h"
#include "driver/code.h"

#include <string.h>

#define FAILED_MAX 64u
#define DEVICES    64u

static uint64_t device_bit(uint32_t dev)
{
	return UINT64_C(1) << dev % DEVICES;
}

/* ---- what was given back ---- */

void validate_why_ended(npu_stack stack, enum validate_rule rule, const struct object *old,
			uint64_t key)
{
	struct report report = { .rule = rule,
				 .now = stack,
				 .then = "it was given back by",
				 .before = old->ended,
				 .made = old->made };

	report_make(&report, "%s is called with %#llx, %s the %s at %#llx, %s, that was given back",
		    call_of(stack), (unsigned long long)key,
		    key == old->key ? "which was" : "which lay in", object_name(old->kind),
		    (unsigned long long)old->key, npu_size_text(old->bytes));
}

void validate_why_wrong(npu_stack stack, const struct object *object)
{
	struct report report = { .rule = VALIDATE_WRONG_FREE, .now = stack, .made = object->made };

	report_make(&report, "%s is called with %#llx (%s): %s gives it back", call_of(stack),
		    (unsigned long long)object->key, object_name(object->kind),
		    object_ender(object->kind));
}

static void explain_ending(struct validate *v, const struct ending *ending, npu_stack stack)
{
	const struct object *old =
		objects_ended(v->objects, ending->kind == OBJECT_HANDLE, ending->key, true);
	const struct object *live = NULL;

	if (objects_find(v->objects, ending->kind, ending->key) != NULL)
		return;
	for (unsigned kind = 0; kind < OBJECT_BLOCK && live == NULL; kind++)
		live = objects_find(v->objects, kind, ending->key);
	if (live != NULL && (old == NULL || old->kind != ending->kind))
		validate_why_wrong(stack, live);
	else if (old != NULL)
		validate_why_ended(stack, VALIDATE_DOUBLE_FREE, old, ending->key);
}

static void explain_handle(struct validate *v, const void *handle, npu_stack stack)
{
	const struct object *old = objects_ended(v->objects, true, key_of(handle), false);

	if (old != NULL && objects_find(v->objects, OBJECT_HANDLE, key_of(handle)) == NULL)
		validate_why_ended(stack, VALIDATE_STALE_HANDLE, old, old->key);
}

/* Where nothing is reserved. */
static void explain_address(struct validate *v, uint64_t va, npu_stack stack)
{
	const struct object *old = objects_ended(v->objects, false, va, false);

	if (old != NULL && objects_meeting(v->objects, OBJECT_RESERVATION, va, va + 1) == NULL)
		validate_why_ended(stack, VALIDATE_STALE_ADDRESS, old, va);
}

/* ---- what failed before ---- */

enum failed { FAILED_MAP, FAILED_ACCESS, FAILED_UNMAP, FAILED_PEER };
#define CAUSE(what) (1u << FAILED_##what)
#define CAUSE_HERE  (1u << 31) /* beside others: of exactly that address */

/* Until the same is done with success, or the addresses are given back. */
struct failure {
	enum failed what;
	uint64_t begin, end; /* addresses; PEER: both devices, peer_key() */
	drvError_t code;
	npu_stack stack;
};

static uint64_t peer_key(uint32_t dev, uint32_t peer)
{
	return (uint64_t)dev << 32 | peer;
}

/* What a call that may fail, and others by it, is about. */
static bool subject_of(const struct layer_call *call, struct failure *out)
{
	const union layer_arguments *with = &call->with;
	uint64_t bytes = 1;

	/* The first arguments of each but the last are an address and a size. */
	*out = (struct failure){ .code = call->code, .begin = key_of(with->halMemMap.ptr) };
	switch (call->op) {
	case DRIVER_OP_halMemMap:
	case DRIVER_OP_halMemMapNoAccess:
		out->what = FAILED_MAP;
		bytes = with->halMemMap.size;
		break;
	case DRIVER_OP_halMemSetAccess:
		out->what = FAILED_ACCESS;
		bytes = with->halMemSetAccess.size;
		break;
	case DRIVER_OP_halMemUnmap:
		out->what = FAILED_UNMAP;
		break;
	case DRIVER_OP_halDeviceEnableP2P:
		out->what = FAILED_PEER;
		out->begin = peer_key(with->halDeviceEnableP2P.dev, with->halDeviceEnableP2P.peer);
		break;
	default:
		return false;
	}
	out->end = out->begin + bytes;
	return out->begin != 0 && out->end > out->begin;
}

static bool meets(const struct failure *failure, uint64_t begin, uint64_t end)
{
	return failure->begin < end && begin < failure->end;
}

static void forget(struct validate *v, unsigned causes, uint64_t begin, uint64_t end)
{
	for (guint i = v->failed->len; i-- > 0;) {
		const struct failure *failure = &g_array_index(v->failed, struct failure, i);

		if ((causes >> failure->what & 1) && meets(failure, begin, end))
			g_array_remove_index(v->failed, i);
	}
}

static void remember(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	struct failure failure;

	if (!subject_of(call, &failure) ||
	    (failure.what == FAILED_UNMAP &&
	     objects_find(v->objects, OBJECT_MAPPING, failure.begin) == NULL))
		return;
	failure.stack = stack;
	if (v->failed->len == FAILED_MAX)
		g_array_remove_index(v->failed, 0);
	g_array_append_val(v->failed, failure);
}

/* Whether an earlier failure there, one of `causes`, explains that of a call with `key`; reports
 * that. */
static bool follows(struct validate *v, npu_stack stack, uint64_t key, unsigned causes,
		    uint64_t begin, uint64_t end)
{
	struct report report = { .rule = VALIDATE_FOLLOWS_FROM,
				 .now = stack,
				 .then = "the call that failed first" };
	const struct failure *first = NULL;
	char range[64] = "";

	for (guint i = v->failed->len; i-- > 0 && first == NULL;) {
		first = &g_array_index(v->failed, struct failure, i);
		if (!(causes >> first->what & 1) || !meets(first, begin, end) ||
		    ((causes & CAUSE_HERE) && first->begin != begin))
			first = NULL;
	}
	if (first == NULL)
		return false;
	report.before = first->stack;
	if (first->what != FAILED_PEER)
		g_snprintf(range, sizeof(range), " of %#llx", (unsigned long long)first->begin);
	report_make(&report,
		    "%s is called with %#llx; %s%s failed (%d), and this call fails "
		    "because of it",
		    call_of(stack), (unsigned long long)key, call_of(first->stack), range,
		    driver_code_acl(first->code));
	return true;
}

/* The same of peer access. */
static bool follows_peer(struct validate *v, npu_stack stack, uint64_t key, uint32_t dev,
			 uint32_t peer)
{
	return follows(v, stack, key, CAUSE(PEER), peer_key(dev, peer), peer_key(dev, peer) + 1);
}

/* ---- copies and fills ---- */

/* One end of a copy that failed. */
struct use {
	npu_stack stack;
	uint64_t begin, end;
	uint32_t reacher; /* the device that is to reach it; OBJECT_NO_DEVICE: its own */
	bool write, queued;
};

static bool may_reach(const struct validate *v, uint32_t dev, uint32_t peer)
{
	return v->cuda || dev == peer || dev >= DEVICES || peer >= DEVICES ||
	       (v->peers[dev] & device_bit(peer)) != 0;
}

static bool mapping_is_closed(const struct validate *v, const struct use *use,
			      const struct npu_place *place)
{
	uint32_t mask = use->write ? place->writers : place->readers;

	if (place->kind != NPU_PLACE_MAPPED)
		return false;
	if (v->cuda || place->owner >= 32)
		return mask == 0 && !place->cpu;
	return !(mask >> place->owner & 1);
}

static bool explain_access(struct validate *v, const struct use *use, uint64_t at,
			   const struct object *object, const struct npu_place *place)
{
	struct report report = { .rule = VALIDATE_ACCESS, .now = use->stack, .made = object->made };
	bool closed = mapping_is_closed(v, use, place);
	const char *does = use->write ? "writes" : "reads";

	if (!closed && (use->reacher == OBJECT_NO_DEVICE || place->owner == NPU_OWNER_HOST ||
			may_reach(v, use->reacher, place->owner) ||
			(!use->queued && may_reach(v, place->owner, use->reacher))))
		return false;
	if (closed ? follows(v, use->stack, at, CAUSE(ACCESS), at, at + 1)
		   : follows_peer(v, use->stack, at, use->reacher, place->owner))
		return true;
	if (object->access != 0) {
		report.then = "access was last set by";
		report.before = object->access;
	}
	if (closed)
		report_make(&report, "%s %s %s, to which %s", call_of(use->stack), does,
			    validate_range(v, at, use->end),
			    object->access != 0 ? "no device that could do it has access"
						: "nobody was ever given access");
	else
		report_make(&report,
			    "%s %s %s, memory of device %u, by device %u, which may not reach it: "
			    "aclrtDeviceEnablePeerAccess(%u, 0) is to be called with device %u "
			    "current",
			    call_of(use->stack), does, validate_range(v, at, use->end),
			    place->owner, use->reacher, place->owner, use->reacher);
	return true;
}

/* The first reason that is found. */
static bool explain_use(struct validate *v, const struct use *use)
{
	const struct object *object = NULL, *old;
	struct npu_place place;

	for (uint64_t at = use->begin; at < use->end; at = object->key + object->bytes) {
		object = objects_around(v->objects, at);
		if (object == NULL)
			break;
		if (validate_place(v, at, &place) && npu_place_is_translated(&place) &&
		    explain_access(v, use, at, object, &place))
			return true;
		if (object->kind != OBJECT_MAPPING)
			return false;
	}
	if (object != NULL)
		return false;
	if (follows(v, use->stack, use->begin, CAUSE(MAP), use->begin, use->end))
		return true;
	old = objects_ended(v->objects, false, use->begin, false);
	if (old == NULL || use->queued || objects_around(v->objects, use->begin) != NULL)
		return false;
	validate_why_ended(use->stack, VALIDATE_STALE_ADDRESS, old, use->begin);
	return true;
}

static uint32_t owner_of(struct validate *v, uint64_t va)
{
	struct npu_place place;

	return validate_place(v, va, &place) && npu_place_is_translated(&place) &&
			       place.owner != NPU_OWNER_HOST
		       ? place.owner
		       : OBJECT_NO_DEVICE;
}

void validate_why_copy(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes,
		       npu_stack stack)
{
	struct use use = { stack, dst, dst + bytes, OBJECT_NO_DEVICE, true, false };

	if (dst != 0 && explain_use(v, &use))
		return;
	use.begin = src;
	use.end = src + bytes;
	use.write = false;
	use.reacher = owner_of(v, dst);
	if (src != 0)
		explain_use(v, &use);
}

static void explain_access_of(void *arg, const struct access *access)
{
	struct validate *v = arg;
	struct use use = { access->stack, access->begin,
			   access->end,   order_stream_at(v->order, access->stream)->dev,
			   access->write, true };

	explain_use(v, &use);
}

void validate_why_stream(struct validate *v, const struct order_stream *stream)
{
	accesses_of(v->accesses, stream->index, explain_access_of, v);
}

/* ---- other calls ---- */

/* The program knows devices by other numbers than the driver. */
static void explain_location(uint32_t dev, npu_stack stack)
{
	const char *visible = g_getenv("ASCEND_RT_VISIBLE_DEVICES");
	struct report report = { .rule = VALIDATE_PLACEMENT, .now = stack };
	char **ids = visible != NULL ? g_strsplit(visible, ",", -1) : NULL;

	if (ids != NULL && dev < g_strv_length(ids))
		report_make(&report,
			    "%s names device %u, which is not open here: it takes the driver's "
			    "numbers, and what this program calls %u is the driver's %s "
			    "(ASCEND_RT_VISIBLE_DEVICES=%s)",
			    call_of(stack), dev, dev, ids[dev], visible);
	g_strfreev(ids);
}

static void explain_set_access(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	uint64_t va = key_of(call->with.halMemSetAccess.ptr);
	uint64_t bytes = call->with.halMemSetAccess.size;
	const struct drv_mem_access_desc *desc = call->with.halMemSetAccess.desc;
	struct use use = { stack, va, va + bytes, OBJECT_NO_DEVICE, true, true };

	if (objects_find(v->objects, OBJECT_MAPPING, va) == NULL) {
		use.queued = false;
		explain_use(v, &use);
		return;
	}
	for (size_t i = 0; desc != NULL && i < call->with.halMemSetAccess.count; i++) {
		uint32_t dev = desc[i].location.id, owner = owner_of(v, va);

		if (desc[i].location.side != MEM_DEV_SIDE || dev >= DEVICES)
			continue;
		if (!(v->open & device_bit(dev)))
			explain_location(dev, stack);
		else if (!may_reach(v, dev, owner))
			follows_peer(v, stack, va, dev, owner);
	}
}

/* A call about a mapping or a reservation. */
static bool explain_by_failure(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	uint64_t va = key_of(call->with.halMemMap.ptr), bytes = 0;
	const struct object *object;

	switch (call->op) {
	case DRIVER_OP_halMemMap:
	case DRIVER_OP_halMemMapNoAccess:
		bytes = call->with.halMemMap.size;
		break;
	case DRIVER_OP_halMemAddressFree:
		object = objects_find(v->objects, OBJECT_RESERVATION, va);
		bytes = object != NULL ? object->bytes : 0;
		break;
	case DRIVER_OP_halMemRetainAllocationHandle:
		va = key_of(call->with.halMemRetainAllocationHandle.ptr);
		__attribute__((fallthrough));
	case DRIVER_OP_halMemUnmap:
		/* No map at another address would have made it a mapping's start. */
		return objects_find(v->objects, OBJECT_MAPPING, va) == NULL &&
		       follows(v, stack, va, CAUSE(MAP) | CAUSE_HERE, va, va + 1);
	default:
		break;
	}
	return bytes > 0 && follows(v, stack, va, CAUSE(UNMAP), va, va + bytes);
}

static void explain(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	const union layer_arguments *with = &call->with;
	struct ending ending;

	if (explain_by_failure(v, call, stack))
		return;
	if (validate_memory_ends(call, &ending)) {
		explain_ending(v, &ending, stack);
		return;
	}
	switch (call->op) {
	case DRIVER_OP_halMemMap:
	case DRIVER_OP_halMemMapNoAccess: /* with the same arguments */
		explain_handle(v, with->halMemMap.handle, stack);
		explain_address(v, key_of(with->halMemMap.ptr), stack);
		break;
	case DRIVER_OP_halMemExportToShareableHandle:
		explain_handle(v, with->halMemExportToShareableHandle.handle, stack);
		break;
	case DRIVER_OP_halMemExportToShareableHandleV2:
		explain_handle(v, with->halMemExportToShareableHandleV2.handle, stack);
		break;
	case DRIVER_OP_halMemSetAccess:
		explain_set_access(v, call, stack);
		break;
	case DRIVER_OP_drvMemGetAttribute: /* a program may ask of any address; a copy may not */
		if (g_str_has_prefix(call_of(stack), "aclrtMemcpy") ||
		    g_str_has_prefix(call_of(stack), "aclrtMemset"))
			validate_why_copy(v, with->drvMemGetAttribute.va, 0, 1, stack);
		break;
	default:
		validate_each_copy(v, call, stack, validate_why_copy);
		break;
	}
}

/* What a call that succeeded makes of what is kept here. */
static void note(struct validate *v, const struct layer_call *call)
{
	const union layer_arguments *with = &call->with;
	const struct object *object;
	struct failure done;

	if (subject_of(call, &done))
		forget(v, 1u << done.what, done.begin, done.end);
	switch (call->op) {
	case DRIVER_OP_halMemAddressFree:
		object = objects_find(v->objects, OBJECT_RESERVATION,
				      key_of(with->halMemAddressFree.ptr));
		if (object != NULL)
			forget(v, CAUSE(MAP) | CAUSE(ACCESS) | CAUSE(UNMAP), object->key,
			       object->key + object->bytes);
		break;
	case DRIVER_OP_halMemUnmap:
		forget(v, CAUSE(ACCESS), done.begin, done.end);
		break;
	case DRIVER_OP_halDeviceOpen:
		v->open |= device_bit(with->halDeviceOpen.dev);
		break;
	case DRIVER_OP_halDeviceClose:
		v->open &= ~device_bit(with->halDeviceClose.dev);
		v->peers[with->halDeviceClose.dev % DEVICES] = 0;
		g_array_set_size(v->failed, 0);
		break;
	case DRIVER_OP_halDeviceEnableP2P:
		v->peers[with->halDeviceEnableP2P.dev % DEVICES] |=
			device_bit(with->halDeviceEnableP2P.peer);
		break;
	case DRIVER_OP_halDeviceDisableP2P:
		v->peers[with->halDeviceDisableP2P.dev % DEVICES] &=
			~device_bit(with->halDeviceDisableP2P.peer);
		break;
	default:
		break;
	}
}

GArray *validate_why_new(void)
{
	return g_array_new(FALSE, FALSE, sizeof(struct failure));
}

void validate_why(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	if (call->code == DRV_ERROR_NONE) {
		note(v, call);
		return;
	}
	explain(v, call, stack);
	remember(v, call, stack);
}
