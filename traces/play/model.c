/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the memory calls of a replay, and wraps those whose arguments depend on the device.
 */
#include "model.h"

#include <string.h>

#include "format/input.h"

static const char *const call_names[MODEL_CALL_COUNT] = {
	[MODEL_RESERVE] = "aclrtReserveMemAddress",
	[MODEL_UNRESERVE] = "aclrtReleaseMemAddress",
	[MODEL_CREATE] = "aclrtMallocPhysical",
	[MODEL_RELEASE] = "aclrtFreePhysical",
	[MODEL_RETAIN] = "aclrtMemRetainAllocationHandle",
	[MODEL_MAP] = "aclrtMapMem",
	[MODEL_UNMAP] = "aclrtUnmapMem",
	[MODEL_ACCESS] = "aclrtMemSetAccess",
	[MODEL_MALLOC] = "aclrtMallocAlign32",
	[MODEL_FREE] = "aclrtFree",
	[MODEL_HOST_TO_HOST] = "host_to_host",
	[MODEL_HOST_TO_DEVICE] = "host_to_device",
	[MODEL_DEVICE_TO_HOST] = "device_to_host",
	[MODEL_DEVICE_TO_DEVICE] = "device_to_device",
	[MODEL_FILL] = "fill",
};

const char *model_call_name(enum model_call call)
{
	return call_names[call];
}

const char *model_message(void)
{
	const char *text = aclGetRecentErrMsg();
	gsize name = text ? strcspn(text, ": ") : 0;

	/* who shows it has named the call already */
	if (name > 0 && g_str_has_prefix(text, "acl") && g_str_has_prefix(text + name, ": "))
		text += name + 2;
	return text && *text ? text : "no message";
}

aclError model_counted(struct model_device *d, enum model_call call, aclError code)
{
	struct call_figures *f = &d->calls[call];
	guint64 ps = npusim_now_ps() - d->before_ps;

	f->calls++;
	f->refused += code != ACL_SUCCESS;
	f->ps += ps;
	if (!d->timed || call >= MODEL_MOVES)
		return code;
	if (f->latency == NULL)
		f->latency = latency_new();
	latency_add(f->latency, ps);
	return code;
}

void model_device_clear(struct model_device *d)
{
	for (int c = 0; c < MODEL_CALL_COUNT; c++)
		g_clear_pointer(&d->calls[c].latency, g_free);
}

GQuark model_error_quark(void)
{
	return g_quark_from_static_string("npusim-model");
}

static gboolean opened(const char *call, aclError code, GError **error)
{
	if (code == ACL_SUCCESS || code == ACL_ERROR_REPEAT_INITIALIZE)
		return TRUE;
	return refuse(error, MODEL_ERROR, MODEL_ERROR_START, "%s answered %d: %s", call, code,
		      model_message());
}

gboolean model_open(guint devices, GError **error)
{
	uint32_t count = 0;
	if (!opened("aclInit", aclInit(NULL), error) ||
	    !opened("aclrtGetDeviceCount", aclrtGetDeviceCount(&count), error))
		return FALSE;
	if (devices > count)
		return refuse(
			error, MODEL_ERROR, MODEL_ERROR_DEVICES,
			"the trace uses device %u, the model has devices 0 to %u: use --devices %u",
			devices - 1, count - 1, devices);
	for (guint i = devices; i > 0; i--) {
		if (!opened("aclrtSetDevice", aclrtSetDevice((int32_t)i - 1), error))
			return FALSE;
	}
	return TRUE;
}

void model_close(guint devices)
{
	for (guint i = 0; i < devices; i++)
		aclrtResetDeviceForce((int32_t)i);
	aclFinalize();
}

aclrtMemLocation model_location(int device)
{
	return (aclrtMemLocation){ .id = device < 0 ? 0 : (uint32_t)device,
				   .type = device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
						      : ACL_MEM_LOCATION_TYPE_DEVICE };
}

aclError model_create(struct model_device *d, aclrtDrvMemHandle *out, guint64 size, int device,
		      unsigned page_lg2)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = page_lg2 == 30 ? ACL_HBM_MEM_HUGE1G
								: ACL_HBM_MEM_HUGE,
				      .location = model_location(device) };

	return MODEL_CALL(d, MODEL_CREATE, aclrtMallocPhysical(out, size, &prop, 0));
}

aclError model_malloc(struct model_device *d, void **out, guint64 size, int device,
		      unsigned page_lg2)
{
	aclrtMemMallocPolicy policy = page_lg2 == 30   ? ACL_MEM_MALLOC_HUGE1G_ONLY
				      : page_lg2 == 12 ? ACL_MEM_MALLOC_NORMAL_ONLY
						       : ACL_MEM_MALLOC_HUGE_FIRST;

	d->before_ps = npusim_now_ps();
	aclError code = device < 0 ? ACL_SUCCESS : aclrtSetDevice(device);
	if (code != ACL_SUCCESS)
		return model_counted(d, MODEL_MALLOC, code);
	return MODEL_CALL(d, MODEL_MALLOC,
			  device < 0 ? aclrtMallocHost(out, size)
				     : aclrtMallocAlign32(out, size, policy));
}

static aclError copy_between(void *dst, int dst_device, const void *src, guint64 size)
{
	aclError code = aclrtSetDevice(dst_device);

	if (code == ACL_SUCCESS)
		code = aclrtMemcpyAsync(dst, size, src, size, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL);
	return code == ACL_SUCCESS ? aclrtSynchronizeStream(NULL) : code;
}

aclError model_copy(struct model_device *d, void *dst, int dst_device, const void *src,
		    int src_device, guint64 size)
{
	static const aclrtMemcpyKind kinds[] = {
		[MODEL_HOST_TO_HOST] = ACL_MEMCPY_HOST_TO_HOST,
		[MODEL_HOST_TO_DEVICE] = ACL_MEMCPY_HOST_TO_DEVICE,
		[MODEL_DEVICE_TO_HOST] = ACL_MEMCPY_DEVICE_TO_HOST,
		[MODEL_DEVICE_TO_DEVICE] = ACL_MEMCPY_DEVICE_TO_DEVICE,
	};
	enum model_call move =
		src_device >= 0   ? dst_device >= 0 ? MODEL_DEVICE_TO_DEVICE : MODEL_DEVICE_TO_HOST
		: dst_device >= 0 ? MODEL_HOST_TO_DEVICE
				  : MODEL_HOST_TO_HOST;
	aclError code = MODEL_CALL(d, move,
				   move == MODEL_DEVICE_TO_DEVICE && dst_device != src_device
					   ? copy_between(dst, dst_device, src, size)
					   : aclrtMemcpy(dst, size, src, size, kinds[move]));

	d->calls[move].bytes += code == ACL_SUCCESS ? size : 0;
	return code;
}

aclError model_fill(struct model_device *d, void *dst, guint64 size)
{
	aclError code = MODEL_CALL(d, MODEL_FILL, aclrtMemset(dst, size, 0, size));

	d->calls[MODEL_FILL].bytes += code == ACL_SUCCESS ? size : 0;
	return code;
}

gboolean model_physical(guint device, guint64 va, guint64 *pa, guint64 *bytes)
{
	return npusim_physical((int)device, va, pa, bytes) == 0;
}

gboolean model_stats(guint device, struct npu_stats *out)
{
	*out = (struct npu_stats){ .size = sizeof *out };
	return npusim_get_stats((int)device, out) == 0;
}
