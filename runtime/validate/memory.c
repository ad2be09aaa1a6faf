/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is made and given back: what is still in use when it goes, what is given back twice
 * or by the wrong call, what is used afterwards, and what is left at the end.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>

static uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* ---- what a call gives back ---- */

struct ending {
	enum object_kind kind;
	uint64_t key;
};

/* The object that a call ends; false: it ends none. */
static bool ends(const struct layer_call *call, struct ending *out)
{
	const union layer_arguments *with = &call->with;

	switch (call->op) {
	case DRIVER_OP_halMemAddressFree:
		*out = (struct ending){ OBJECT_RESERVATION, key_of(with->halMemAddressFree.ptr) };
		return true;
	case DRIVER_OP_halMemUnmap:
		*out = (struct ending){ OBJECT_MAPPING, key_of(with->halMemUnmap.ptr) };
		return true;
	case DRIVER_OP_halMemFree:
		*out = (struct ending){ OBJECT_ALLOCATION, key_of(with->halMemFree.pp) };
		return true;
	case DRIVER_OP_halHostUnregister:
		*out = (struct ending){ OBJECT_REGISTERED, key_of(with->halHostUnregister.src) };
		return true;
	case DRIVER_OP_halHostUnregisterEx:
		*out = (struct ending){ OBJECT_REGISTERED, key_of(with->halHostUnregisterEx.src) };
		return true;
	case DRIVER_OP_halShmemCloseHandle:
		*out = (struct ending){ OBJECT_OPENED, with->halShmemCloseHandle.va };
		return true;
	case DRIVER_OP_halMemRelease:
		*out = (struct ending){ OBJECT_HANDLE, key_of(with->halMemRelease.handle) };
		return true;
	default:
		return false;
	}
}

/* halMemFree takes memory of devices and page-locked memory. */
static struct object *find_ending(struct validate *v, struct ending *ending)
{
	struct object *object = objects_find(v->objects, ending->kind, ending->key);

	if (object == NULL && ending->kind == OBJECT_ALLOCATION) {
		object = objects_find(v->objects, OBJECT_PINNED, ending->key);
		if (object != NULL)
			ending->kind = OBJECT_PINNED;
	}
	return object;
}

/* The driver has one call for memory of devices and of the host; the runtime has two. */
static void tell_wrong_call(const struct object *object, npu_stack stack)
{
	const char *call = npu_stack_call(stack);
	struct report report = { .rule = VALIDATE_WRONG_FREE, .now = stack, .made = object->made };

	if (call == NULL ||
	    strcmp(call, object->kind == OBJECT_PINNED ? "aclrtFree" : "aclrtFreeHost") != 0)
		return;
	report_make(&report, "%s gives %#llx back, which is the %s: %s is its call", call,
		    (unsigned long long)object->key, object_name(object->kind),
		    object_ender(object->kind));
}

bool validate_memory_before(struct validate *v, struct layer_call *call, npu_stack stack)
{
	struct ending ending;
	const struct object *object = ends(call, &ending) ? find_ending(v, &ending) : NULL;
	bool unmaps = ending.kind == OBJECT_MAPPING || ending.kind == OBJECT_REGISTERED;
	bool pending;

	if (object != NULL && (object->kind == OBJECT_ALLOCATION || object->kind == OBJECT_PINNED))
		tell_wrong_call(object, stack);
	if (object != NULL && object->kind == OBJECT_PINNED)
		accesses_unhash(v->accesses, object->key, object->key + object->bytes);
	if (object == NULL || object->own || ending.kind == OBJECT_HANDLE ||
	    ending.kind == OBJECT_RESERVATION)
		return false;
	pending = validate_pending(v, unmaps ? VALIDATE_PENDING_UNMAP : VALIDATE_PENDING_FREE,
				   stack, object, object->key, object->key + object->bytes);
	if (ending.kind == OBJECT_REGISTERED && object->inside != object->key)
		pending |= validate_pending(v, VALIDATE_PENDING_UNMAP, stack, object,
					    object->inside, object->inside + object->bytes);
	if (!v->strict || !pending || ending.kind != OBJECT_MAPPING)
		return false;
	call->code = DRV_ERROR_BUSY;
	return true;
}

/* ---- failed calls, and why ---- */

static const char *call_name(npu_stack stack, const struct layer_call *call)
{
	const char *name = npu_stack_call(stack);

	return name != NULL ? name : driver_op_name(call->op);
}

static void tell_ended(const struct layer_call *call, npu_stack stack, enum validate_rule rule,
		       const struct object *old, uint64_t key)
{
	struct report report = { .rule = rule,
				 .now = stack,
				 .then = "it was given back by",
				 .before = old->ended,
				 .made = old->made };

	report_make(&report, "%s is called with %#llx, %s the %s at %#llx, %s, that was given back",
		    call_name(stack, call), (unsigned long long)key,
		    key == old->key ? "which was" : "which lay in", object_name(old->kind),
		    (unsigned long long)old->key, npu_size_text(old->bytes));
}

static void explain_ending(struct validate *v, const struct layer_call *call,
			   const struct ending *ending, npu_stack stack)
{
	bool handle = ending->kind == OBJECT_HANDLE;
	const struct object *old = objects_ended(v->objects, handle, ending->key, true);
	struct report report = { .rule = VALIDATE_WRONG_FREE, .now = stack };
	struct ending live_ending = *ending;

	if (find_ending(v, &live_ending) != NULL)
		return; /* it is there, and its time has not come: a reservation with mappings */
	if (old != NULL && old->kind == ending->kind) {
		tell_ended(call, stack, VALIDATE_DOUBLE_FREE, old, ending->key);
		return;
	}
	for (unsigned kind = 0; kind < OBJECT_BLOCK; kind++) {
		const struct object *live = objects_find(v->objects, kind, ending->key);

		if (live == NULL || kind == ending->kind)
			continue;
		report.made = live->made;
		report_make(&report, "%s is called with %#llx, which is the %s: %s gives it back",
			    call_name(stack, call), (unsigned long long)ending->key,
			    object_name(kind), object_ender(kind));
		return;
	}
	if (old != NULL)
		tell_ended(call, stack, VALIDATE_DOUBLE_FREE, old, ending->key);
}

/* An address or a handle that a failed call was given. */
static void explain_use(struct validate *v, const struct layer_call *call, bool handle,
			uint64_t key, npu_stack stack)
{
	const struct object *old = objects_ended(v->objects, handle, key, false);

	if (handle ? objects_find(v->objects, OBJECT_HANDLE, key) != NULL
		   : objects_around(v->objects, key) != NULL)
		return;
	if (old != NULL)
		tell_ended(call, stack, handle ? VALIDATE_STALE_HANDLE : VALIDATE_STALE_ADDRESS,
			   old, key);
}

static void explain(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	const union layer_arguments *with = &call->with;
	struct ending ending;

	if (ends(call, &ending)) {
		explain_ending(v, call, &ending, stack);
		return;
	}
	switch (call->op) {
	case DRIVER_OP_halMemMap:
		explain_use(v, call, true, key_of(with->halMemMap.handle), stack);
		break;
	case DRIVER_OP_halMemExportToShareableHandle:
		explain_use(v, call, true, key_of(with->halMemExportToShareableHandle.handle),
			    stack);
		break;
	case DRIVER_OP_halMemExportToShareableHandleV2:
		explain_use(v, call, true, key_of(with->halMemExportToShareableHandleV2.handle),
			    stack);
		break;
	case DRIVER_OP_drvMemcpy:
		explain_use(v, call, false, with->drvMemcpy.dst, stack);
		explain_use(v, call, false, with->drvMemcpy.src, stack);
		break;
	case DRIVER_OP_drvMemsetD8:
		explain_use(v, call, false, with->drvMemsetD8.dst, stack);
		break;
	case DRIVER_OP_halMemSetAccess:
		explain_use(v, call, false, key_of(with->halMemSetAccess.ptr), stack);
		break;
	default:
		break;
	}
}

/* ---- calls that succeeded ---- */

static void end_object(struct validate *v, struct ending *ending, npu_stack stack)
{
	struct object *object = find_ending(v, ending);

	if (object == NULL ||
	    (object->kind == OBJECT_HANDLE && objects_release(v->objects, object)))
		return;
	if (ending->kind != OBJECT_HANDLE)
		validate_bytes_forget(v, object->key, object->key + object->bytes, stack);
	objects_end(v->objects, ending->kind, ending->key, stack);
}

static struct object *add(struct validate *v, enum object_kind kind, uint64_t key, uint64_t bytes,
			  uint32_t dev, uint64_t inside, npu_stack stack)
{
	struct object object = { .kind = kind,
				 .key = key,
				 .bytes = bytes,
				 .dev = dev,
				 .inside = inside,
				 .references = 1,
				 .made = stack };

	return objects_add(v->objects, &object);
}

static void add_handle(struct validate *v, const drv_mem_handle_t *handle, uint64_t bytes,
		       uint32_t dev, npu_stack stack)
{
	struct object *object = objects_find(v->objects, OBJECT_HANDLE, key_of(handle));

	if (object != NULL)
		objects_retain(v->objects, object);
	else
		object = add(v, OBJECT_HANDLE, key_of(handle), bytes, dev, 0, stack);
	/* What was made elsewhere may be written there. */
	if (object->references == 1 && bytes > 0 && dev != OBJECT_NO_DEVICE)
		object->written = written_new(bytes);
}

static void add_mapping(struct validate *v, const void *ptr, uint64_t bytes, uint64_t offset,
			const drv_mem_handle_t *handle, npu_stack stack)
{
	const struct object *of = objects_find(v->objects, OBJECT_HANDLE, key_of(handle));
	struct object *object = add(v, OBJECT_MAPPING, key_of(ptr), bytes,
				    of != NULL ? of->dev : OBJECT_NO_DEVICE, key_of(handle), stack);

	object->written = of != NULL ? written_ref(of->written) : NULL;
	object->offset = offset;
}

static void add_allocation(struct validate *v, uint64_t va, uint64_t bytes, uint64_t flag,
			   npu_stack stack)
{
	uint64_t where = flag >> MEM_VIRT_BIT & 0xf;
	struct object *object = add(v, where == MEM_HOST_VAL ? OBJECT_PINNED : OBJECT_ALLOCATION,
				    va, bytes, (uint32_t)(flag & MEM_DEVID_MASK), 0, stack);

	/* The program's own loads and stores, and the scheduler's, are not seen. */
	if (where == MEM_DEV_VAL && (flag & (MEM_READONLY | MEM_ADVISE_TS)) == 0)
		object->written = written_new(bytes);
}

/* The handle's memory leaves the process. */
static void export(struct validate *v, const drv_mem_handle_t *handle)
{
	const struct object *object = objects_find(v->objects, OBJECT_HANDLE, key_of(handle));

	if (object != NULL && object->written != NULL)
		written_give_up(object->written);
}

static void open_to_host(struct validate *v, uint64_t va, uint64_t bytes,
			 const struct drv_mem_access_desc *desc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (desc[i].location.side != MEM_DEV_SIDE)
			validate_bytes_give_up(v, va, va + bytes);
}

static void add_opened(struct validate *v, DVdeviceptr va, uint32_t dev, npu_stack stack)
{
	size_t bytes = 0;

	v->layer.below.halMemGetAddressRange(v->layer.driver.lower, va, NULL, &bytes);
	add(v, OBJECT_OPENED, va, bytes, dev, 0, stack);
}

void validate_memory_after(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	const union layer_arguments *with = &call->with;
	struct ending ending;

	if (call->code != DRV_ERROR_NONE) {
		explain(v, call, stack);
		return;
	}
	if (ends(call, &ending)) {
		end_object(v, &ending, stack);
		return;
	}
	switch (call->op) {
	case DRIVER_OP_halMemAddressReserve:
		add(v, OBJECT_RESERVATION, key_of(*with->halMemAddressReserve.ptr),
		    with->halMemAddressReserve.size, OBJECT_NO_DEVICE, 0, stack);
		break;
	case DRIVER_OP_halMemCreate:
		add_handle(v, *with->halMemCreate.handle, with->halMemCreate.size,
			   with->halMemCreate.prop->side == MEM_DEV_SIDE
				   ? with->halMemCreate.prop->devid
				   : OBJECT_NO_DEVICE,
			   stack);
		break;
	case DRIVER_OP_halMemImportFromShareableHandle:
		add_handle(v, *with->halMemImportFromShareableHandle.handle, 0,
			   with->halMemImportFromShareableHandle.dev, stack);
		break;
	case DRIVER_OP_halMemImportFromShareableHandleV2:
		add_handle(v, *with->halMemImportFromShareableHandleV2.handle, 0,
			   with->halMemImportFromShareableHandleV2.dev, stack);
		break;
	case DRIVER_OP_halMemRetainAllocationHandle:
		add_handle(v, *with->halMemRetainAllocationHandle.handle, 0, OBJECT_NO_DEVICE,
			   stack);
		break;
	case DRIVER_OP_halMemMap:
		add_mapping(v, with->halMemMap.ptr, with->halMemMap.size, with->halMemMap.offset,
			    with->halMemMap.handle, stack);
		break;
	case DRIVER_OP_halMemMapNoAccess:
		add_mapping(v, with->halMemMapNoAccess.ptr, with->halMemMapNoAccess.size,
			    with->halMemMapNoAccess.offset, with->halMemMapNoAccess.handle, stack);
		break;
	case DRIVER_OP_halMemAlloc:
		add_allocation(v, key_of(*with->halMemAlloc.pp), with->halMemAlloc.size,
			       with->halMemAlloc.flag, stack);
		break;
	case DRIVER_OP_halMemSetAccess:
		open_to_host(v, key_of(with->halMemSetAccess.ptr), with->halMemSetAccess.size,
			     with->halMemSetAccess.desc, with->halMemSetAccess.count);
		break;
	case DRIVER_OP_halMemExportToShareableHandle:
		export(v, with->halMemExportToShareableHandle.handle);
		break;
	case DRIVER_OP_halMemExportToShareableHandleV2:
		export(v, with->halMemExportToShareableHandleV2.handle);
		break;
	case DRIVER_OP_halShmemCreateHandle:
		validate_bytes_give_up(v, with->halShmemCreateHandle.va,
				       with->halShmemCreateHandle.va + 1);
		break;
	case DRIVER_OP_halHostRegister:
		add(v, OBJECT_REGISTERED, key_of(with->halHostRegister.src),
		    with->halHostRegister.size, with->halHostRegister.dev,
		    with->halHostRegister.dst != NULL ? key_of(*with->halHostRegister.dst) : 0,
		    stack);
		break;
	case DRIVER_OP_halShmemOpenHandle:
		add_opened(v, *with->halShmemOpenHandle.va, OBJECT_NO_DEVICE, stack);
		break;
	case DRIVER_OP_halShmemOpenHandleByDevId:
		add_opened(v, *with->halShmemOpenHandleByDevId.va,
			   with->halShmemOpenHandleByDevId.dev, stack);
		break;
	case DRIVER_OP_halDeviceClose:
		objects_end_of(v->objects, with->halDeviceClose.dev, stack);
		break;
	default:
		break;
	}
}

/* ---- the end ---- */

struct left {
	struct object object; /* the first of them */
	uint64_t bytes, count;
};

static void sum_left(void *arg, const struct object *object)
{
	GHashTable *sums = arg;
	guint64 key = (guint64)object->kind << 32 | object->made;
	struct left *left;

	if (object->own || object->kind >= OBJECT_BLOCK)
		return;
	left = g_hash_table_lookup(sums, &key);
	if (left == NULL) {
		left = g_new0(struct left, 1);
		left->object = *object;
		g_hash_table_insert(sums, g_memdup2(&key, sizeof(key)), left);
	}
	left->bytes += object->bytes;
	left->count++;
}

static gint larger_first(gconstpointer a, gconstpointer b)
{
	const struct left *left = a, *right = b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

void validate_memory_left(struct validate *v)
{
	GHashTable *sums = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	GList *sorted;

	objects_each(v->objects, sum_left, sums);
	sorted = g_list_sort(g_hash_table_get_values(sums), larger_first);
	for (const GList *at = sorted; at != NULL; at = at->next) {
		const struct left *left = at->data;
		struct report report = { .rule = VALIDATE_LEAK, .made = left->object.made };

		report_make(&report,
			    "%llu %s%s of %s in all %s left at the end of the process: %s gives "
			    "such memory back",
			    (unsigned long long)left->count, object_name(left->object.kind),
			    left->count == 1 ? "" : "s", npu_size_text(left->bytes),
			    left->count == 1 ? "is" : "are", object_ender(left->object.kind));
	}
	g_list_free(sorted);
	g_hash_table_unref(sums);
}
