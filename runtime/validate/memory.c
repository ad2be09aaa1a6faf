/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is made and given back: what each call does to which object, what is still in use
 * when it goes, what was shared and is held elsewhere then, and, under strict, the addresses that
 * were given back: they stay reserved below for a while, so that a use finds nobody else there, and
 * go before a reservation fails for want of them.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELD_MAX 64u

/* ---- what calls do ---- */

/* A row of the table: what the call does, and the object by its arguments, `a`. */
#define DOES(name, does, kind_, key_, ...)                                                  \
	case DRIVER_OP_##name: {                                                            \
		const __typeof__(call->with.name) *a = &call->with.name;                    \
                                                                                            \
		v->deed = DEED_##does;                                                      \
		v->named = (struct object){                                                 \
			.kind = OBJECT_##kind_, .key = key_, .references = 1, ##__VA_ARGS__ \
		};                                                                          \
		break;                                                                      \
	}
#define ANSWER(pointer) (done ? (uint64_t)(uintptr_t)*a->pointer : 0)
#define NO_DEVICE       .dev = OBJECT_NO_DEVICE

void validate_call(struct validate *v, struct layer_call *call, bool done)
{
	v->call = call;
	switch (call->op) {
		DOES(halMemAddressReserve, MAKES, RESERVATION, ANSWER(ptr), .bytes = a->size,
		     NO_DEVICE)
		DOES(halMemAddressFree, ENDS, RESERVATION, key_of(a->ptr))
		DOES(halMemCreate, MAKES, HANDLE, ANSWER(handle), .bytes = a->size,
		     .dev = done && a->prop->side == MEM_DEV_SIDE ? a->prop->devid
								  : OBJECT_NO_DEVICE,
		     .nodes = done && a->prop->side == MEM_HOST_NUMA_SIDE && a->prop->devid < 64
				      ? UINT64_C(1) << a->prop->devid
				      : 0)
		DOES(halMemImportFromShareableHandle, TAKES, HANDLE, ANSWER(handle), .dev = a->dev)
		DOES(halMemImportFromShareableHandleV2, TAKES, HANDLE, ANSWER(handle),
		     .dev = a->dev)
		DOES(halMemRetainAllocationHandle, MAKES, HANDLE, ANSWER(handle),
		     .inside = key_of(a->ptr), NO_DEVICE)
		DOES(halMemRelease, ENDS, HANDLE, key_of(a->handle))
		DOES(halMemExportToShareableHandle, SHARES, HANDLE, key_of(a->handle))
		DOES(halMemExportToShareableHandleV2, SHARES, HANDLE, key_of(a->handle))
		DOES(halMemMap, MAKES, MAPPING, key_of(a->ptr), .bytes = a->size,
		     .inside = key_of(a->handle), NO_DEVICE)
		DOES(halMemMapNoAccess, MAKES, MAPPING, key_of(a->ptr), .bytes = a->size,
		     .inside = key_of(a->handle), NO_DEVICE)
		DOES(halMemSetAccess, OPENS, MAPPING, key_of(a->ptr), .bytes = a->size)
		DOES(halMemUnmap, ENDS, MAPPING, key_of(a->ptr))
		DOES(halMemAlloc, MAKES, ALLOCATION, ANSWER(pp), .bytes = a->size,
		     .dev = (uint32_t)(a->flag & MEM_DEVID_MASK))
		DOES(halMemFree, ENDS, ALLOCATION, key_of(a->pp))
		DOES(halShmemCreateHandle, SHARES, ALLOCATION, a->va)
		DOES(halShmemOpenHandle, TAKES, OPENED, ANSWER(va), NO_DEVICE)
		DOES(halShmemOpenHandleByDevId, TAKES, OPENED, ANSWER(va), .dev = a->dev)
		DOES(halShmemCloseHandle, ENDS, OPENED, a->va)
		DOES(halHostRegister, MAKES, REGISTERED, key_of(a->src), .bytes = a->size,
		     .dev = a->dev, .inside = a->dst != NULL ? ANSWER(dst) : 0)
		DOES(halHostUnregister, ENDS, REGISTERED, key_of(a->src), .dev = a->dev)
		DOES(halHostUnregisterEx, ENDS, REGISTERED, key_of(a->src), .dev = a->dev)
	default:
		v->named = (struct object){ .kind = OBJECT_KIND_COUNT };
		v->deed = DEED_NONE;
	}
}

/* ---- what other processes keep ---- */

#define HOLDERS_MAX 16u
#define LOOK_EVERY  1024u

/* A handle that was exported, or an allocation that was given a name. */
struct share {
	struct object object; /* as it was then */
	uint64_t shareable;
	char name[80]; /* "": a handle */
	bool gone;     /* the object is */
};

/* True: there is nothing more to say of it. */
static bool look(struct validate *v, const struct share *share)
{
	const struct report *report =
		REPORT(KEPT, 0, .then = "it was given back by", .before = share->object.ended,
		       .made = share->object.made);
	g_autoptr(GString) holders = g_string_new(NULL);
	int pids[HOLDERS_MAX];
	uint32_t count = HOLDERS_MAX;
	drvError_t code = BELOW(v, npusimHolders, share->shareable,
				share->name[0] != '\0' ? share->name : NULL, pids, &count);

	if (code == DRV_ERROR_NOT_EXIST)
		report_make(report,
			    "the handle %#llx, %s, was exported and given back, and nobody has "
			    "imported it",
			    (unsigned long long)share->object.key,
			    npu_size_text(share->object.bytes));
	if (code != DRV_ERROR_NONE || count == 0)
		return true;
	for (uint32_t i = 0; i < MIN(count, HOLDERS_MAX); i++) {
		if (pids[i] == getpid()) /* a mapping, or an import of its own */
			return false;
		g_string_append_printf(holders, "%s%d", i > 0 ? ", " : "", pids[i]);
	}
	report_make(report,
		    "%s at %#llx, %s, that this process shared and gave back, is still "
		    "held by process %s%s",
		    object_words[share->object.kind].name, (unsigned long long)share->object.key,
		    npu_size_text(share->object.bytes), holders->str,
		    count > HOLDERS_MAX ? " and others" : "");
	return true;
}

void validate_kept_look(struct validate *v)
{
	for (guint i = v->shares->len; i-- > 0;) {
		const struct share *share = g_ptr_array_index(v->shares, i);

		if (share->gone && look(v, share))
			g_ptr_array_remove_index(v->shares, i);
	}
}

static void end_shares(struct validate *v, const struct object *object)
{
	for (guint i = 0; i < v->shares->len; i++) {
		struct share *share = g_ptr_array_index(v->shares, i);

		if (share->gone || share->object.number != object->number)
			continue;
		share->gone = true;
		share->object.ended = stack_of(v);
		if (share->name[0] != '\0' && !v->cuda)
			report_make(REPORT(KEPT, stack_of(v), .made = object->made),
				    "%s gives %#llx, %s, back before its key %.16s... is closed, "
				    "by which others may still open it",
				    caller(v), (unsigned long long)object->key,
				    npu_size_text(object->bytes), share->name);
	}
}

static void end_name(struct validate *v, const char *name)
{
	for (guint i = v->shares->len; i-- > 0;) {
		const struct share *share = g_ptr_array_index(v->shares, i);

		if (strcmp(share->name, name) == 0)
			g_ptr_array_remove_index(v->shares, i);
	}
}

/* ---- addresses that are held back ---- */

static bool release_first(struct validate *v)
{
	const struct object *held = g_ptr_array_index(v->held, 0);
	void *ptr = (void *)(uintptr_t)held->key;

	g_ptr_array_remove_index(v->held, 0);
	return BELOW(v, halMemAddressFree, ptr) == DRV_ERROR_NONE;
}

bool validate_memory_let_go(struct validate *v)
{
	bool any = false;

	while (v->held->len > 0)
		any |= release_first(v);
	return any;
}

static bool is_held(const struct validate *v, uint64_t va)
{
	for (guint i = 0; i < v->held->len; i++) {
		const struct object *held = g_ptr_array_index(v->held, i);

		if (va - held->key < held->bytes)
			return true;
	}
	return false;
}

/* True: it is held now, where the driver below would free it. */
static bool hold(struct validate *v, const struct object *reservation)
{
	if (reservation == NULL || objects_meeting(v, OBJECT_MAPPING, reservation->key,
						   reservation->key + reservation->bytes) != NULL)
		return false;
	if (v->held->len == HELD_MAX)
		release_first(v);
	g_ptr_array_add(v->held, g_memdup2(reservation, sizeof(*reservation)));
	return true;
}

/* True: the call is answered. */
static bool answer_by_held(struct validate *v)
{
	struct layer_call *call = v->call;
	const struct object *live;

	if (call->op == DRIVER_OP_halDeviceClose ||
	    (call->op == DRIVER_OP_halMemAddressReserve &&
	     is_held(v, key_of(call->with.halMemAddressReserve.addr)))) {
		validate_memory_let_go(v);
	} else if (is_deed(v, DEED_MAKES, OBJECT_MAPPING)) {
		call->code = DRV_ERROR_PARA_ERROR;
		return is_held(v, v->named.key);
	} else if (is_deed(v, DEED_ENDS, OBJECT_RESERVATION)) {
		live = objects_find(v, OBJECT_RESERVATION, v->named.key);
		call->code = live != NULL ? DRV_ERROR_NONE : DRV_ERROR_INVALID_VALUE;
		return is_held(v, v->named.key) || hold(v, live);
	}
	return false;
}

void validate_memory_again(struct validate *v, struct layer_call *call)
{
	const __typeof__(call->with.halMemAddressReserve) *a = &call->with.halMemAddressReserve;

	if (call->op == DRIVER_OP_halMemAddressReserve && call->code != DRV_ERROR_NONE &&
	    validate_memory_let_go(v))
		call->code = BELOW(v, halMemAddressReserve, a->ptr, a->size, a->alignment, a->addr,
				   a->flag);
}

/* ---- what a call gives back ---- */

/* halMemFree takes memory of devices and page-locked memory. */
static struct object *find_ending(struct validate *v)
{
	struct object *object = objects_find_like(v, &v->named);

	return object == NULL && v->named.kind == OBJECT_ALLOCATION
		       ? objects_find(v, OBJECT_PINNED, v->named.key)
		       : object;
}

/* The driver has one call for memory of devices and of the host; the runtime has two. */
static bool is_wrong_call(struct validate *v, const struct object *object)
{
	bool pinned = object->kind == OBJECT_PINNED;

	return (pinned || object->kind == OBJECT_ALLOCATION) &&
	       strcmp(caller(v), pinned ? "aclrtFree" : "aclrtFreeHost") == 0;
}

/* Whether queued work still uses what the call gives back. */
static bool is_pending(struct validate *v, struct object *object)
{
	bool pending;

	object->ending++;
	if (is_wrong_call(v, object))
		validate_why_wrong(v, object);
	if (object->kind == OBJECT_PINNED)
		accesses_unwatch(v, object->key, object->key + object->bytes, true);
	if (object->own || object->kind == OBJECT_HANDLE || object->kind == OBJECT_RESERVATION)
		return false;
	pending = validate_pending(v, object, object->key);
	if (object->kind == OBJECT_REGISTERED && object->inside != object->key)
		pending |= validate_pending(v, object, object->inside);
	return pending;
}

bool validate_memory_before(struct validate *v)
{
	struct object *object = v->deed == DEED_ENDS ? find_ending(v) : NULL;

	v->ends = object != NULL ? object->number : 0;
	if (v->call->op == DRIVER_OP_halDeviceClose)
		validate_kept_look(v);
	if (object != NULL && is_pending(v, object) && v->strict &&
	    object->kind == OBJECT_MAPPING) {
		v->call->code = DRV_ERROR_BUSY;
		return true;
	}
	return v->strict && answer_by_held(v);
}

/* ---- calls that are over ---- */

static void forget_memory(struct validate *v, const struct object *object)
{
	if (object->kind != OBJECT_HANDLE)
		validate_bytes_forget(v, object->key, object->key + object->bytes);
	if (object->kind == OBJECT_PINNED)
		validate_closed_end(v, object);
}

static void end(struct validate *v)
{
	struct object *object = find_ending(v);
	bool good = v->call->code == DRV_ERROR_NONE;

	if (object == NULL || object->number != v->ends) { /* another has its key */
		object = good ? objects_ended_as(v, v->ends) : NULL;
		if (object == NULL)
			return;
		object->ended = stack_of(v);
		end_shares(v, object);
		return;
	}
	object->ending--;
	if (good && --object->references > 0) {
		growth_of(v, object)->ended++;
	} else if (good) {
		forget_memory(v, object);
		end_shares(v, object);
		objects_end(v, object);
	}
}

/* The NUMA nodes that the program bound memory to: the pages at the address (mbind), or, of pages
 * that were just made, the thread (numactl). 0: to none. */
static uint64_t bound_nodes(uint64_t va, bool is_new)
{
	uint64_t nodes[16] = { 0 }; /* no kernel has more */
	int mode;

	syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), va, MPOL_F_ADDR);
	if (nodes[0] == 0 && is_new)
		syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof(nodes), NULL, 0);
	return nodes[0];
}

static void make(struct validate *v)
{
	struct object *made = &v->named, *old = objects_find_like(v, made);
	const struct object *from; /* whose memory it is */
	size_t bytes = 0;

	/* What a retain names lives; what an import answers may be new, where all that was is
	 * going. */
	if (made->kind == OBJECT_HANDLE && old != NULL && v->call->op != DRIVER_OP_halMemCreate &&
	    (old->ending < old->references ||
	     v->call->op == DRIVER_OP_halMemRetainAllocationHandle)) {
		old->references++;
		growth_of(v, old)->retained++;
		return;
	}
	made->made = stack_of(v);
	if (old != NULL && old->ending > 0)
		forget_memory(v, old);
	if (old != NULL) /* by whom is known when that call is over */
		objects_end(v, old)->ended = 0;
	from = made->kind == OBJECT_MAPPING  ? objects_find(v, OBJECT_HANDLE, made->inside)
	       : made->kind == OBJECT_HANDLE ? objects_find(v, OBJECT_MAPPING, made->inside)
					     : NULL;
	if (from != NULL) {
		made->dev = from->dev;
		made->nodes = from->nodes;
		made->bytes = made->bytes ?: from->bytes;
	}
	if (made->kind == OBJECT_PINNED || made->kind == OBJECT_REGISTERED)
		made->nodes = bound_nodes(made->key, made->kind == OBJECT_PINNED);
	if (made->kind == OBJECT_OPENED) {
		BELOW(v, halMemGetAddressRange, made->key, NULL, &bytes);
		made->bytes = bytes;
	}
	v->placed |= made->nodes != 0;
	made = objects_add(v, made);
	validate_bytes_new(v, made);
	if (v->strict && made->kind == OBJECT_PINNED)
		validate_closed_new(v, made);
}

/* What was shared, as the program named it, from now on. */
static void share(struct validate *v)
{
	const union layer_arguments *with = &v->call->with;
	const struct object *object =
		v->named.kind == OBJECT_HANDLE
			? objects_find(v, OBJECT_HANDLE, v->named.key)
			: objects_meeting(v, OBJECT_ALLOCATION, v->named.key, v->named.key + 1);
	struct share share = { .object = object != NULL ? *object : v->named };
	uint32_t server;

	if (v->call->op == DRIVER_OP_halShmemCreateHandle)
		g_strlcpy(share.name, with->halShmemCreateHandle.name, sizeof(share.name));
	else if (v->call->op == DRIVER_OP_halMemExportToShareableHandle)
		share.shareable = *with->halMemExportToShareableHandle.shareable;
	else if (BELOW(v, halMemTransShareableHandle, with->halMemExportToShareableHandleV2.type,
		       with->halMemExportToShareableHandleV2.shareable, &server,
		       &share.shareable) != DRV_ERROR_NONE)
		return; /* of another kind, such as a descriptor */
	if (v->shares->len % LOOK_EVERY == LOOK_EVERY - 1)
		validate_kept_look(v); /* where nobody marks, those that are gone go here */
	if (object != NULL)
		g_ptr_array_add(v->shares, g_memdup2(&share, sizeof(share)));
}

void validate_memory_after(struct validate *v)
{
	const struct layer_call *call = v->call;
	const __typeof__(call->with.halMemSetAccess) *a = &call->with.halMemSetAccess;
	uint64_t flag = call->with.halMemAlloc.flag, side = flag >> MEM_VIRT_BIT & 0xf;
	bool unseen = false; /* the program's own loads and stores, and the scheduler's, may come */
	struct object *mapping;
	struct npu_written map;

	if (v->deed == DEED_ENDS)
		end(v);
	if (call->code != DRV_ERROR_NONE)
		return;
	if (call->op == DRIVER_OP_halMemAlloc) {
		if (side == MEM_HOST_VAL) { /* a device that is closed leaves it */
			v->named.kind = OBJECT_PINNED;
			v->named.dev = OBJECT_NO_DEVICE;
		}
		unseen = side != MEM_DEV_VAL || (flag & (MEM_READONLY | MEM_ADVISE_TS)) != 0;
	}
	for (size_t i = 0; call->op == DRIVER_OP_halMemSetAccess && i < a->count; i++)
		unseen |= a->desc[i].location.side != MEM_DEV_SIDE;
	v->shares_any |= v->deed == DEED_SHARES || v->deed == DEED_TAKES;
	if (v->deed == DEED_MAKES || v->deed == DEED_TAKES)
		make(v);
	else if (v->deed == DEED_SHARES)
		share(v);
	else if (v->deed == DEED_OPENS &&
		 (mapping = objects_find(v, OBJECT_MAPPING, v->named.key)) != NULL)
		mapping->access = stack_of(v);
	if (unseen)
		validate_bytes_give_up(v, v->named.key, v->named.key + v->named.bytes);
	if (call->op == DRIVER_OP_halShmemDestroyHandle)
		end_name(v, call->with.halShmemDestroyHandle.name);
	else if (call->op == DRIVER_OP_halDeviceOpen && report_wanted(VALIDATE_UNINITIALISED))
		/* Others hear that this process tells of its writes. */
		BELOW(v, npusimWritten, 0, &map);
	else if (call->op == DRIVER_OP_halDeviceClose)
		objects_end_of(v, call->with.halDeviceClose.dev);
}
