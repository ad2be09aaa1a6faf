/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is made and given back: what is still in use when it goes.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>

/* ---- what a call gives back ---- */

bool validate_memory_ends(const struct layer_call *call, struct ending *out)
{
	static const uint8_t kinds[DRIVER_OP_COUNT] = {
		/* + 1 */
		[DRIVER_OP_halMemAddressFree] = OBJECT_RESERVATION + 1,
		[DRIVER_OP_halMemUnmap] = OBJECT_MAPPING + 1,
		[DRIVER_OP_halMemFree] = OBJECT_ALLOCATION + 1,
		[DRIVER_OP_halHostUnregister] = OBJECT_REGISTERED + 1,
		[DRIVER_OP_halHostUnregisterEx] = OBJECT_REGISTERED + 1,
		[DRIVER_OP_halShmemCloseHandle] = OBJECT_OPENED + 1,
		[DRIVER_OP_halMemRelease] = OBJECT_HANDLE + 1,
	};

	if (kinds[call->op] == 0)
		return false;
	out->kind = kinds[call->op] - 1;
	memcpy(&out->key, &call->with, sizeof(out->key)); /* the first argument of each */
	return true;
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
static bool is_wrong_call(const struct object *object, npu_stack stack)
{
	bool pinned = object->kind == OBJECT_PINNED;

	return (pinned || object->kind == OBJECT_ALLOCATION) &&
	       g_strcmp0(npu_stack_call(stack), pinned ? "aclrtFree" : "aclrtFreeHost") == 0;
}

bool validate_memory_before(struct validate *v, struct layer_call *call, npu_stack stack)
{
	struct ending ending;
	const struct object *object =
		validate_memory_ends(call, &ending) ? find_ending(v, &ending) : NULL;
	bool unmaps = ending.kind == OBJECT_MAPPING || ending.kind == OBJECT_REGISTERED;
	bool pending;

	if (call->op == DRIVER_OP_halDeviceClose)
		validate_kept_look(v);
	if (object != NULL && is_wrong_call(object, stack))
		validate_why_wrong(stack, object);
	if (object != NULL && object->kind == OBJECT_PINNED)
		accesses_unwatch(v->accesses, object->key, object->key + object->bytes, true);
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

/* ---- calls that succeeded ---- */

static void end_object(struct validate *v, struct ending *ending, npu_stack stack)
{
	struct object *object = find_ending(v, ending);

	if (object == NULL ||
	    (object->kind == OBJECT_HANDLE && objects_release(v->objects, object)))
		return;
	if (ending->kind != OBJECT_HANDLE)
		validate_bytes_forget(v, object->key, object->key + object->bytes, stack);
	validate_kept_end(v, object, stack);
	if (object->kind == OBJECT_PINNED)
		validate_closed_end(v, object);
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
		add(v, OBJECT_HANDLE, key_of(handle), bytes, dev, 0, stack);
}

static void add_mapping(struct validate *v, const void *ptr, uint64_t bytes,
			const drv_mem_handle_t *handle, npu_stack stack)
{
	const struct object *of = objects_find(v->objects, OBJECT_HANDLE, key_of(handle));

	validate_bytes_new(v, add(v, OBJECT_MAPPING, key_of(ptr), bytes,
				  of != NULL ? of->dev : OBJECT_NO_DEVICE, key_of(handle), stack));
}

static void add_allocation(struct validate *v, uint64_t va, uint64_t bytes, uint64_t flag,
			   npu_stack stack)
{
	uint64_t where = flag >> MEM_VIRT_BIT & 0xf;
	struct object *object = add(v, where == MEM_HOST_VAL ? OBJECT_PINNED : OBJECT_ALLOCATION,
				    va, bytes, (uint32_t)(flag & MEM_DEVID_MASK), 0, stack);

	validate_bytes_new(v, object);
	if (v->strict && object->kind == OBJECT_PINNED)
		validate_closed_new(v, object);
	/* The program's own loads and stores, and the scheduler's, are not seen. */
	if (where != MEM_DEV_VAL || (flag & (MEM_READONLY | MEM_ADVISE_TS)) != 0)
		validate_bytes_give_up(v, va, va + bytes);
}

/* The handle's memory leaves the process. */
static void export(struct validate *v, const drv_mem_handle_t *handle, uint64_t shareable)
{
	const struct object *object = objects_find(v->objects, OBJECT_HANDLE, key_of(handle));

	v->shares_any = true;
	if (object != NULL && shareable != 0)
		validate_kept_share(v, object, shareable, NULL);
}

static void export_v2(struct validate *v, const drv_mem_handle_t *handle, drv_mem_handle_type type,
		      struct MemShareHandle *share)
{
	uint64_t shareable = 0; /* another kind, such as a descriptor */
	uint32_t server;

	if (v->layer.below.halMemTransShareableHandle(v->layer.driver.lower, type, share, &server,
						      &shareable) != DRV_ERROR_NONE)
		shareable = 0;
	export(v, handle, shareable);
}

static void name_allocation(struct validate *v, uint64_t va, const char *name)
{
	const struct object *object = objects_meeting(v->objects, OBJECT_ALLOCATION, va, va + 1);

	v->shares_any = true;
	if (object != NULL)
		validate_kept_share(v, object, 0, name);
}

static void set_access(struct validate *v, uint64_t va, uint64_t bytes,
		       const struct drv_mem_access_desc *desc, size_t count, npu_stack stack)
{
	struct object *mapping = objects_find(v->objects, OBJECT_MAPPING, va);

	if (mapping != NULL)
		mapping->access = stack;
	for (size_t i = 0; i < count; i++)
		if (desc[i].location.side != MEM_DEV_SIDE)
			validate_bytes_give_up(v, va, va + bytes);
}

static void add_opened(struct validate *v, DVdeviceptr va, uint32_t dev, npu_stack stack)
{
	size_t bytes = 0;

	v->layer.below.halMemGetAddressRange(v->layer.driver.lower, va, NULL, &bytes);
	v->shares_any = true;
	validate_bytes_new(v, add(v, OBJECT_OPENED, va, bytes, dev, 0, stack));
}

void validate_memory_after(struct validate *v, const struct layer_call *call, npu_stack stack)
{
	const union layer_arguments *with = &call->with;
	struct ending ending;

	if (validate_memory_ends(call, &ending)) {
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
		v->shares_any = true;
		add_handle(v, *with->halMemImportFromShareableHandle.handle, 0,
			   with->halMemImportFromShareableHandle.dev, stack);
		break;
	case DRIVER_OP_halMemImportFromShareableHandleV2:
		v->shares_any = true;
		add_handle(v, *with->halMemImportFromShareableHandleV2.handle, 0,
			   with->halMemImportFromShareableHandleV2.dev, stack);
		break;
	case DRIVER_OP_halMemRetainAllocationHandle:
		add_handle(v, *with->halMemRetainAllocationHandle.handle, 0, OBJECT_NO_DEVICE,
			   stack);
		break;
	case DRIVER_OP_halMemMap:
	case DRIVER_OP_halMemMapNoAccess: /* with the same arguments */
		add_mapping(v, with->halMemMap.ptr, with->halMemMap.size, with->halMemMap.handle,
			    stack);
		break;
	case DRIVER_OP_halMemAlloc:
		add_allocation(v, key_of(*with->halMemAlloc.pp), with->halMemAlloc.size,
			       with->halMemAlloc.flag, stack);
		break;
	case DRIVER_OP_halMemSetAccess:
		set_access(v, key_of(with->halMemSetAccess.ptr), with->halMemSetAccess.size,
			   with->halMemSetAccess.desc, with->halMemSetAccess.count, stack);
		break;
	case DRIVER_OP_halMemExportToShareableHandle:
		export(v, with->halMemExportToShareableHandle.handle,
		       *with->halMemExportToShareableHandle.shareable);
		break;
	case DRIVER_OP_halMemExportToShareableHandleV2:
		export_v2(v, with->halMemExportToShareableHandleV2.handle,
			  with->halMemExportToShareableHandleV2.type,
			  with->halMemExportToShareableHandleV2.shareable);
		break;
	case DRIVER_OP_halShmemCreateHandle:
		name_allocation(v, with->halShmemCreateHandle.va, with->halShmemCreateHandle.name);
		break;
	case DRIVER_OP_halShmemDestroyHandle:
		validate_kept_name_end(v, with->halShmemDestroyHandle.name);
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
	case DRIVER_OP_halDeviceOpen:
		validate_bytes_open(v);
		break;
	case DRIVER_OP_halDeviceClose:
		objects_end_of(v->objects, with->halDeviceClose.dev, stack);
		break;
	default:
		break;
	}
}
