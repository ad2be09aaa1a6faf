/* SPDX-License-Identifier: Apache-2.0
 *
 * Why calls fail: what they name was given back, an earlier call failed that was to make it, or
 * nobody gave access to it. Owns the failures that others may follow from, and which device may
 * reach which.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>

#define FAILED_MAX 64u
/* ---- what was given back ---- */

void validate_why_ended(struct validate *v, enum validate_rule rule, const struct object *old,
			uint64_t key)
{
	struct report report = { .rule = rule,
				 .now = stack_of(v),
				 .then = "it was given back by",
				 .before = old->ended,
				 .made = old->made };

	report_make(&report, "%s is called with %#llx, %s the %s at %#llx, %s, that was given back",
		    caller(v), (unsigned long long)key,
		    key == old->key ? "which was" : "which lay in", object_words[old->kind].name,
		    (unsigned long long)old->key, npu_size_text(old->bytes));
}

void validate_why_wrong(struct validate *v, const struct object *object)
{
	report_make(REPORT(WRONG_FREE, stack_of(v), .made = object->made),
		    "%s is called with %#llx (%s): %s gives it back", caller(v),
		    (unsigned long long)object->key, object_words[object->kind].name,
		    object_words[object->kind].ender);
}

static void explain_ending(struct validate *v)
{
	const struct object *named = &v->named;
	const struct object *live = NULL,
			    *old = objects_ended(v, named->kind == OBJECT_HANDLE, named->key, true);

	if (objects_find_like(v, named) != NULL)
		return;
	for (unsigned kind = 0; kind < OBJECT_BLOCK && live == NULL; kind++)
		live = kind == named->kind ? NULL : objects_find(v, kind, named->key);
	if (live != NULL && (old == NULL || old->kind != named->kind))
		validate_why_wrong(v, live);
	else if (old != NULL)
		validate_why_ended(v, VALIDATE_DOUBLE_FREE, old, named->key);
}

/* A handle, or an address where nothing is reserved. */
static void explain_stale(struct validate *v, bool handle, uint64_t key)
{
	const struct object *old = objects_ended(v, handle, key, false);
	const struct object *live = handle ? objects_find(v, OBJECT_HANDLE, key)
					   : objects_meeting(v, OBJECT_RESERVATION, key, key + 1);

	if (old != NULL && live == NULL)
		validate_why_ended(v, handle ? VALIDATE_STALE_HANDLE : VALIDATE_STALE_ADDRESS, old,
				   key);
}

/* ---- what failed before ---- */

/* Bits, with HERE: of exactly that address. */
enum { FAILED_NONE, FAILED_MAP, FAILED_ACCESS, FAILED_UNMAP = 4, FAILED_PEER = 8, HERE = 16 };

/* Until the same is done with success, or the addresses are given back. */
struct failure {
	unsigned what;
	uint64_t begin, end; /* addresses; PEER: both devices, peer_key() */
	drvError_t code;
	npu_stack stack;
};

static uint64_t peer_key(uint32_t dev, uint32_t peer)
{
	return (uint64_t)dev << 32 | peer;
}

/* What a call that may fail, and others by it, is about. */
static struct failure subject_of(const struct validate *v)
{
	const __typeof__(v->call->with.halDeviceEnableP2P) *pair =
		&v->call->with.halDeviceEnableP2P;
	const struct object *object = &v->named;
	struct failure failure = { .begin = object->key, .end = object->key + object->bytes };

	if (v->call->op == DRIVER_OP_halDeviceEnableP2P) {
		failure = (struct failure){ .what = FAILED_PEER,
					    .begin = peer_key(pair->dev, pair->peer),
					    .end = peer_key(pair->dev, pair->peer) + 1 };
	} else if (object->kind == OBJECT_MAPPING) {
		failure.what = v->deed == DEED_MAKES   ? FAILED_MAP
			       : v->deed == DEED_OPENS ? FAILED_ACCESS
						       : FAILED_UNMAP;
		if (failure.what == FAILED_UNMAP)
			failure.end++;
	}
	if (failure.begin == 0 || failure.begin >= failure.end)
		failure.what = FAILED_NONE;
	return failure;
}

static bool is_one_of(const struct failure *failure, unsigned causes, uint64_t begin, uint64_t end)
{
	return (causes & failure->what) && failure->begin < end && begin < failure->end &&
	       (!(causes & HERE) || failure->begin == begin);
}

static void forget(struct validate *v, unsigned causes, uint64_t begin, uint64_t end)
{
	for (guint i = v->failed->len; i-- > 0;)
		if (is_one_of(g_ptr_array_index(v->failed, i), causes, begin, end))
			g_ptr_array_remove_index(v->failed, i);
}

/* Whether an earlier failure there, one of `causes`, explains that of a call with `key`; reports
 * that. */
static bool follows(struct validate *v, uint64_t key, unsigned causes, uint64_t begin, uint64_t end)
{
	const struct failure *first = NULL;
	char range[64] = "";

	for (guint i = v->failed->len; i-- > 0 && first == NULL;)
		if (is_one_of(g_ptr_array_index(v->failed, i), causes, begin, end))
			first = g_ptr_array_index(v->failed, i);
	if (first == NULL)
		return false;
	if (first->what != FAILED_PEER)
		g_snprintf(range, sizeof(range), " of %#llx", (unsigned long long)first->begin);
	report_make(REPORT(FOLLOWS_FROM, stack_of(v), .then = "the call that failed first",
			   .before = first->stack),
		    "%s is called with %#llx; %s%s failed (%d), and this call fails because of it",
		    caller(v), (unsigned long long)key, call_of(first->stack), range,
		    driver_code_acl(first->code));
	return true;
}

/* The same of peer access. */
static bool follows_peer(struct validate *v, uint64_t key, uint32_t dev, uint32_t peer)
{
	return follows(v, key, FAILED_PEER, peer_key(dev, peer), peer_key(dev, peer) + 1);
}

/* ---- copies and fills ---- */

/* One end of a copy that failed. */
struct use {
	uint64_t begin, end;
	uint32_t reacher; /* the device that is to reach it; OBJECT_NO_DEVICE: its own */
	bool write, queued;
};

static bool may_reach(const struct validate *v, uint32_t dev, uint32_t peer)
{
	return v->cuda || dev == peer || dev >= VALIDATE_DEVICES || peer >= VALIDATE_DEVICES ||
	       v->peers[dev][peer];
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
	struct report *report = REPORT(ACCESS, stack_of(v), .made = object->made);
	bool closed = mapping_is_closed(v, use, place);
	const char *why;

	if (!closed && (use->reacher == OBJECT_NO_DEVICE || place->owner == NPU_OWNER_HOST ||
			may_reach(v, use->reacher, place->owner) ||
			(!use->queued && may_reach(v, place->owner, use->reacher))))
		return false;
	if (closed ? follows(v, at, FAILED_ACCESS, at, at + 1)
		   : follows_peer(v, at, use->reacher, place->owner))
		return true;
	if (object->access != 0) {
		report->then = "access was last set by";
		report->before = object->access;
	}
	why = object->access != 0 ? "to which no device that could do it has access"
				  : "to which nobody was ever given access";
	if (!closed)
		why = npu_text("memory of device %u, by device %u, which may not reach it: "
			       "aclrtDeviceEnablePeerAccess(%u, 0) is to be called with device %u "
			       "current",
			       place->owner, use->reacher, place->owner, use->reacher);
	report_make(report, "%s %s %s, %s", caller(v), use->write ? "writes" : "reads",
		    validate_range(v, at, use->end), why);
	return true;
}

/* The first reason that is found. */
static bool explain_use(struct validate *v, const struct use *use)
{
	const struct object *object = NULL, *old;
	struct npu_place place;

	for (uint64_t at = use->begin; at < use->end; at = object->key + object->bytes) {
		object = objects_around(v, at);
		if (object == NULL)
			break;
		if (validate_place(v, at, &place) && npu_place_is_translated(&place) &&
		    explain_access(v, use, at, object, &place))
			return true;
		if (object->kind != OBJECT_MAPPING)
			return !use->queued &&
			       validate_bounds(v, caller(v), use->begin, use->end, use->write);
	}
	if (object != NULL)
		return false;
	if (follows(v, use->begin, FAILED_MAP, use->begin, use->end))
		return true;
	old = objects_ended(v, false, use->begin, false);
	if (old == NULL || use->queued || objects_around(v, use->begin) != NULL)
		return false;
	validate_why_ended(v, VALIDATE_STALE_ADDRESS, old, use->begin);
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

void validate_why_copy(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct use use = { dst, dst + bytes, OBJECT_NO_DEVICE, true, false };

	if (dst != 0 && explain_use(v, &use))
		return;
	use.begin = src;
	use.end = src + bytes;
	use.write = false;
	use.reacher = owner_of(v, dst);
	if (src != 0)
		explain_use(v, &use);
}

/* Of the entries up to `last` that are not explained. */
static bool explain_entries(struct validate *v, const struct order_stream *stream, uint64_t last)
{
	struct access_search all = { .end = UINT64_MAX };
	const struct access *access;
	bool found = false;

	while ((access = accesses_next(v, &all)) != NULL) {
		if (access->stream != stream->index || access->number <= stream->explained ||
		    access->number > last)
			continue;
		v->stack = access->stack;
		found |= explain_use(v, &(struct use){ access->begin, access->end, stream->dev,
						       access->write, true });
	}
	return found;
}

void validate_why_stream(struct validate *v, struct order_stream *stream, uint64_t entry)
{
	npu_stack stack = v->stack;

	/* an access of a later entry may have taken the place of its own */
	if (!explain_entries(v, stream, entry))
		explain_entries(v, stream, stream->sent);
	stream->explained = MAX(stream->explained, entry);
	v->stack = stack;
}

/* ---- other calls ---- */

/* The program knows devices by other numbers than the driver. */
static void explain_location(struct validate *v, uint32_t dev)
{
	const char *visible = g_getenv("ASCEND_RT_VISIBLE_DEVICES");
	g_auto(GStrv) ids = visible != NULL ? g_strsplit(visible, ",", -1) : NULL;

	if (ids != NULL && dev < g_strv_length(ids))
		report_make(REPORT(PLACEMENT, stack_of(v)),
			    "%s names device %u, which is not open here: it takes the driver's "
			    "numbers, and what this program calls %u is the driver's %s "
			    "(ASCEND_RT_VISIBLE_DEVICES=%s)",
			    caller(v), dev, dev, ids[dev], visible);
}

static void explain_set_access(struct validate *v)
{
	const __typeof__(v->call->with.halMemSetAccess) *a = &v->call->with.halMemSetAccess;
	uint64_t va = key_of(a->ptr);

	if (objects_find(v, OBJECT_MAPPING, va) == NULL) {
		explain_use(v, &(struct use){ va, va + a->size, OBJECT_NO_DEVICE, true, false });
		return;
	}
	for (size_t i = 0; a->desc != NULL && i < a->count; i++) {
		uint32_t dev = a->desc[i].location.id, owner = owner_of(v, va);

		if (a->desc[i].location.side != MEM_DEV_SIDE || dev >= VALIDATE_DEVICES)
			continue;
		if (!v->peers[dev][dev])
			explain_location(v, dev);
		else if (!may_reach(v, dev, owner))
			follows_peer(v, va, dev, owner);
	}
}

/* A call about a mapping or a reservation. */
static bool explain_by_failure(struct validate *v)
{
	bool retains = v->call->op == DRIVER_OP_halMemRetainAllocationHandle;
	uint64_t bytes = v->named.bytes, va = v->named.key;
	const struct object *object;

	if (retains || is_deed(v, DEED_ENDS, OBJECT_MAPPING)) {
		/* No map at another address would have made it a mapping's start. */
		va = retains ? key_of(v->call->with.halMemRetainAllocationHandle.ptr) : va;
		return objects_find(v, OBJECT_MAPPING, va) == NULL &&
		       follows(v, va, FAILED_MAP | HERE, va, va + 1);
	}
	if (is_deed(v, DEED_ENDS, OBJECT_RESERVATION)) {
		object = objects_find(v, OBJECT_RESERVATION, va);
		bytes = object != NULL ? object->bytes : 0;
	} else if (!is_deed(v, DEED_MAKES, OBJECT_MAPPING)) {
		return false;
	}
	return bytes > 0 && follows(v, va, FAILED_UNMAP, va, va + bytes);
}

static void explain(struct validate *v)
{
	if (explain_by_failure(v))
		return;
	if (v->deed == DEED_ENDS) {
		explain_ending(v);
	} else if (is_deed(v, DEED_MAKES, OBJECT_MAPPING)) {
		explain_stale(v, true, v->named.inside);
		explain_stale(v, false, v->named.key);
	} else if (is_deed(v, DEED_SHARES, OBJECT_HANDLE)) {
		explain_stale(v, true, v->named.key);
	} else if (v->deed == DEED_OPENS) {
		explain_set_access(v);
	} else if (v->call->op != DRIVER_OP_drvMemGetAttribute) {
		validate_each_copy(v, validate_why_copy);
	} else if (g_str_has_prefix(caller(v), "aclrtFreeHost")) {
		v->named.kind = OBJECT_PINNED;
		v->named.key = v->call->with.drvMemGetAttribute.va;
		explain_ending(v);
	} else if (g_str_has_prefix(caller(v), "aclrtMemcpy") ||
		   g_str_has_prefix(caller(v), "aclrtMemset")) {
		/* a program may ask of any address; a copy may not */
		validate_why_copy(v, v->call->with.drvMemGetAttribute.va, 0, 1);
	}
}

/* What a call that succeeded makes of what is kept here. */
static void note(struct validate *v)
{
	/* The arguments of the calls that enable and disable are the same; `dev` is the first of
	 * those that open and close, too. */
	const __typeof__(v->call->with.halDeviceEnableP2P) *pair =
		&v->call->with.halDeviceEnableP2P;
	enum driver_op op = v->call->op;
	uint32_t dev = pair->dev % VALIDATE_DEVICES;
	const struct object *object;

	if (is_deed(v, DEED_ENDS, OBJECT_MAPPING))
		forget(v, FAILED_ACCESS, v->named.key, v->named.key + 1);
	if (is_deed(v, DEED_ENDS, OBJECT_RESERVATION) &&
	    (object = objects_find(v, OBJECT_RESERVATION, v->named.key)) != NULL)
		forget(v, FAILED_MAP | FAILED_ACCESS | FAILED_UNMAP, object->key,
		       object->key + object->bytes);
	for (unsigned i = 0; op == DRIVER_OP_halDeviceClose && i < VALIDATE_DEVICES; i++)
		v->peers[dev][i] = v->peers[dev][i] > v->began ? v->peers[dev][i] : 0;
	if (op == DRIVER_OP_halDeviceClose)
		g_ptr_array_set_size(v->failed, 0);
	if (op == DRIVER_OP_halDeviceOpen)
		v->peers[dev][dev] = ++v->made;
	if (op == DRIVER_OP_halDeviceEnableP2P || op == DRIVER_OP_halDeviceDisableP2P)
		v->peers[dev][pair->peer % VALIDATE_DEVICES] =
			op == DRIVER_OP_halDeviceEnableP2P ? ++v->made : 0;
}

void validate_why(struct validate *v)
{
	bool good = v->call->code == DRV_ERROR_NONE;
	struct failure failure = subject_of(v);

	if (good)
		note(v);
	else
		explain(v);
	if (failure.what == FAILED_NONE)
		return;
	if (good) {
		forget(v, failure.what, failure.begin, failure.end);
	} else if (failure.what != FAILED_UNMAP ||
		   objects_find(v, OBJECT_MAPPING, failure.begin) != NULL) {
		failure.code = v->call->code;
		failure.stack = stack_of(v);
		if (v->failed->len == FAILED_MAX)
			g_ptr_array_remove_index(v->failed, 0);
		g_ptr_array_add(v->failed, g_memdup2(&failure, sizeof(failure)));
	}
}
