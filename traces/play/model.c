/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps each memory call for a replay, and reads the simulated time before and after it.
 */
#include "model.h"

#include <string.h>

#include "npusim/npusim.h"

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
};

const char *model_call_name(enum model_call call)
{
	return call_names[call];
}

static const char *const move_names[MODEL_MOVE_COUNT] = {
	[MODEL_HOST_TO_HOST] = "host_to_host",
	[MODEL_HOST_TO_DEVICE] = "host_to_device",
	[MODEL_DEVICE_TO_HOST] = "device_to_host",
	[MODEL_DEVICE_TO_DEVICE] = "device_to_device",
	[MODEL_FILL] = "fill",
};

const char *model_move_name(enum model_move move)
{
	return move_names[move];
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

static aclError counted(struct model_device *d, enum model_call call, guint64 before, aclError code)
{
	guint64 ps = npusim_now_ps() - before;

	d->count[call]++;
	d->failed[call] += code != ACL_SUCCESS;
	d->ps[call] += ps;
	if (!d->timed)
		return code;
	if (d->latency[call] == NULL)
		d->latency[call] = latency_new();
	latency_add(d->latency[call], ps);
	return code;
}

void model_device_clear(struct model_device *d)
{
	for (int c = 0; c < MODEL_CALL_COUNT; c++)
		g_clear_pointer(&d->latency[c], g_free);
}

GQuark model_error_quark(void)
{
	return g_quark_from_static_string("npusim-model");
}

static gboolean opened(const char *call, aclError code, GError **error)
{
	if (code == ACL_SUCCESS || code == ACL_ERROR_REPEAT_INITIALIZE)
		return TRUE;
	g_set_error(error, MODEL_ERROR, MODEL_ERROR_START, "%s answered %d: %s", call, code,
		    model_message());
	return FALSE;
}

gboolean model_open(guint devices, GError **error)
{
	uint32_t count = 0;
	if (!opened("aclInit", aclInit(NULL), error) ||
	    !opened("aclrtGetDeviceCount", aclrtGetDeviceCount(&count), error))
		return FALSE;
	if (devices > count) {
		g_set_error(
			error, MODEL_ERROR, MODEL_ERROR_DEVICES,
			"the trace uses device %u, the model has devices 0 to %u: use --devices %u",
			devices - 1, count - 1, devices);
		return FALSE;
	}
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

aclError model_reserve(struct model_device *d, void **out, guint64 size, guint64 align, void *hint,
		       guint64 flags)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_RESERVE, before,
		       aclrtReserveMemAddress(out, size, align, hint, flags));
}

aclError model_unreserve(struct model_device *d, void *va)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_UNRESERVE, before, aclrtReleaseMemAddress(va));
}

aclError model_create(struct model_device *d, aclrtDrvMemHandle *out, guint64 size, int device,
		      unsigned page_lg2)
{
	aclrtPhysicalMemProp prop = {
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = page_lg2 == 30 ? ACL_HBM_MEM_HUGE1G : ACL_HBM_MEM_HUGE,
		.location = { .id = device < 0 ? 0 : (uint32_t)device,
			      .type = device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
						 : ACL_MEM_LOCATION_TYPE_DEVICE }
	};
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_CREATE, before, aclrtMallocPhysical(out, size, &prop, 0));
}

aclError model_release(struct model_device *d, aclrtDrvMemHandle handle)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_RELEASE, before, aclrtFreePhysical(handle));
}

aclError model_retain(struct model_device *d, void *va, aclrtDrvMemHandle *out)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_RETAIN, before, aclrtMemRetainAllocationHandle(va, out));
}

aclError model_map(struct model_device *d, void *va, guint64 size, aclrtDrvMemHandle handle)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_MAP, before, aclrtMapMem(va, size, 0, handle, 0));
}

aclError model_unmap(struct model_device *d, void *va)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_UNMAP, before, aclrtUnmapMem(va));
}

aclError model_access(struct model_device *d, void *va, guint64 size, int device, int flags)
{
	aclrtMemAccessDesc desc = { .flags = (aclrtMemAccessFlags)flags,
				    .location = {
					    .id = device < 0 ? 0 : (uint32_t)device,
					    .type = device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
							       : ACL_MEM_LOCATION_TYPE_DEVICE } };
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_ACCESS, before, aclrtMemSetAccess(va, size, &desc, 1));
}

aclError model_malloc(struct model_device *d, void **out, guint64 size, int device,
		      unsigned page_lg2)
{
	guint64 before = npusim_now_ps();
	if (device < 0)
		return counted(d, MODEL_MALLOC, before, aclrtMallocHost(out, size));
	aclError code = aclrtSetDevice(device);
	if (code != ACL_SUCCESS)
		return counted(d, MODEL_MALLOC, before, code);
	aclrtMemMallocPolicy policy = page_lg2 == 30   ? ACL_MEM_MALLOC_HUGE1G_ONLY
				      : page_lg2 == 12 ? ACL_MEM_MALLOC_NORMAL_ONLY
						       : ACL_MEM_MALLOC_HUGE_FIRST;
	before = npusim_now_ps();
	return counted(d, MODEL_MALLOC, before, aclrtMallocAlign32(out, size, policy));
}

aclError model_free(struct model_device *d, void *p, gboolean host)
{
	guint64 before = npusim_now_ps();
	return counted(d, MODEL_FREE, before, host ? aclrtFreeHost(p) : aclrtFree(p));
}

static aclError moved(struct model_moves *m, enum model_move move, guint64 bytes, guint64 before,
		      aclError code)
{
	m->count[move]++;
	m->failed[move] += code != ACL_SUCCESS;
	m->bytes[move] += code == ACL_SUCCESS ? bytes : 0;
	m->ps[move] += npusim_now_ps() - before;
	return code;
}

static aclError copy_between(void *dst, int dst_device, const void *src, guint64 size)
{
	aclError code = aclrtSetDevice(dst_device);

	if (code == ACL_SUCCESS)
		code = aclrtMemcpyAsync(dst, size, src, size, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL);
	return code == ACL_SUCCESS ? aclrtSynchronizeStream(NULL) : code;
}

aclError model_copy(struct model_moves *m, void *dst, int dst_device, const void *src,
		    int src_device, guint64 size)
{
	static const aclrtMemcpyKind kinds[] = {
		[MODEL_HOST_TO_HOST] = ACL_MEMCPY_HOST_TO_HOST,
		[MODEL_HOST_TO_DEVICE] = ACL_MEMCPY_HOST_TO_DEVICE,
		[MODEL_DEVICE_TO_HOST] = ACL_MEMCPY_DEVICE_TO_HOST,
		[MODEL_DEVICE_TO_DEVICE] = ACL_MEMCPY_DEVICE_TO_DEVICE,
	};
	enum model_move move =
		src_device >= 0   ? dst_device >= 0 ? MODEL_DEVICE_TO_DEVICE : MODEL_DEVICE_TO_HOST
		: dst_device >= 0 ? MODEL_HOST_TO_DEVICE
				  : MODEL_HOST_TO_HOST;
	guint64 before = npusim_now_ps();
	aclError code = move == MODEL_DEVICE_TO_DEVICE && dst_device != src_device
				? copy_between(dst, dst_device, src, size)
				: aclrtMemcpy(dst, size, src, size, kinds[move]);

	return moved(m, move, size, before, code);
}

aclError model_fill(struct model_moves *m, void *dst, guint64 size)
{
	guint64 before = npusim_now_ps();

	return moved(m, MODEL_FILL, size, before, aclrtMemset(dst, size, 0, size));
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
