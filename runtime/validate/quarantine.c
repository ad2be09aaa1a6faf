/* SPDX-License-Identifier: Apache-2.0
 *
 * strict: addresses that the program gave back stay reserved below for a while, so that a use finds
 * nobody else there. They go before a reservation fails for want of them.
 */
#include "validate/validate.h"

#define HELD_MAX 64u

struct range {
	uint64_t begin, bytes;
};

GArray *validate_quarantine_new(void)
{
	return g_array_new(FALSE, FALSE, sizeof(struct range));
}

static bool release(struct validate *v, guint index)
{
	void *ptr = (void *)(uintptr_t)g_array_index(v->held, struct range, index).begin;

	g_array_remove_index(v->held, index);
	return v->layer.below.halMemAddressFree(v->layer.driver.lower, ptr) == DRV_ERROR_NONE;
}

bool validate_quarantine_end(struct validate *v)
{
	bool any = false;

	while (v->held->len > 0)
		any |= release(v, 0);
	return any;
}

static bool has(const struct validate *v, const void *address)
{
	for (guint i = 0; i < v->held->len; i++) {
		const struct range *range = &g_array_index(v->held, struct range, i);

		if (key_of(address) - range->begin < range->bytes)
			return true;
	}
	return false;
}

/* What the driver below would free. */
static bool hold(struct validate *v, const void *ptr)
{
	const struct object *object = objects_find(v->objects, OBJECT_RESERVATION, key_of(ptr));
	struct range range;

	if (object == NULL || objects_meeting(v->objects, OBJECT_MAPPING, object->key,
					      object->key + object->bytes) != NULL)
		return false;
	range = (struct range){ object->key, object->bytes };
	if (v->held->len == HELD_MAX)
		release(v, 0);
	g_array_append_val(v->held, range);
	return true;
}

bool validate_quarantine_before(struct validate *v, struct layer_call *call)
{
	const union layer_arguments *with = &call->with;

	switch (call->op) {
	case DRIVER_OP_halMemAddressFree:
		if (!has(v, with->halMemAddressFree.ptr) && !hold(v, with->halMemAddressFree.ptr))
			return false;
		call->code = objects_find(v->objects, OBJECT_RESERVATION,
					  key_of(with->halMemAddressFree.ptr)) != NULL
				     ? DRV_ERROR_NONE
				     : DRV_ERROR_INVALID_VALUE;
		return true;
	case DRIVER_OP_halMemMap:
	case DRIVER_OP_halMemMapNoAccess: /* with the same arguments */
		call->code = DRV_ERROR_PARA_ERROR;
		return has(v, with->halMemMap.ptr);
	case DRIVER_OP_halMemAddressReserve:
		if (has(v, with->halMemAddressReserve.addr))
			validate_quarantine_end(v);
		return false;
	case DRIVER_OP_halDeviceClose:
		validate_quarantine_end(v);
		return false;
	default:
		return false;
	}
}

void validate_quarantine_after(struct validate *v, struct layer_call *call)
{
	if (call->op != DRIVER_OP_halMemAddressReserve || call->code == DRV_ERROR_NONE ||
	    !validate_quarantine_end(v))
		return;
	call->code = v->layer.below.halMemAddressReserve(
		v->layer.driver.lower, call->with.halMemAddressReserve.ptr,
		call->with.halMemAddressReserve.size, call->with.halMemAddressReserve.alignment,
		call->with.halMemAddressReserve.addr, call->with.halMemAddressReserve.flag);
}
