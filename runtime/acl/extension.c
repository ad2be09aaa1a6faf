/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim's own functions in addition to the ACL's: include/npusim/npusim.h.
 */
#include "acl-internal.h"

#include <string.h>

int npusim_get_stats(int device, struct npu_stats *out)
{
	uint32_t logic;

	return ACL_IS_NULL(out)
		       ?: ACL_WANT(__func__, out->size != 0,
				   "out->size is 0; it must be sizeof(struct npu_stats), %zu",
				   sizeof(*out))
		       ?: core_device_logic(device, "device", __func__, &logic)
		       ?: core_result(__func__, core_call(npusimGetStats, logic, out));
}

int npusim_touch(int device, const uint64_t *at, size_t count, size_t bytes, unsigned core)
{
	uint32_t logic;

	return ACL_IS_NULL(at) ?: core_device_logic(device, "device", __func__, &logic)
		       ?: core_result(__func__,
				      core_call(npusimTouch, logic, at, count, bytes, core));
}

int npusim_physical(int device, uint64_t va, uint64_t *pa, uint64_t *bytes)
{
	uint32_t logic;

	return ACL_IS_NULL(pa) ?: ACL_IS_NULL(bytes)
		       ?: core_device_logic(device, "device", __func__, &logic)
		       ?: core_result(__func__, core_call(npusimPhysical, logic, va, pa, bytes));
}

/* What only layers hear: NOT_SUPPORT, nobody does. */
static int told(drvError_t code)
{
	return code == DRV_ERROR_PROCESS_EXIT ? ACL_ERROR_INTERNAL_ERROR : ACL_SUCCESS;
}

int npusimBlock(const void *ptr, size_t size)
{
	return ACL_IS_NULL(ptr) ?: ACL_IS_ZERO(size)
			?: told(core_call(npusimTellBlock, (uintptr_t)ptr, size));
}

int npusimBlockFree(const void *ptr)
{
	return ACL_IS_NULL(ptr) ?: told(core_call(npusimTellBlock, (uintptr_t)ptr, 0));
}

int npusimMark(const char *name)
{
	return ACL_IS_NULL(name) ?: told(core_call(npusimMark, name));
}

int npusimHeld(npusim_line_fn fn, void *arg)
{
	struct npu_driver *drv = core_driver_peek();

	if (ACL_IS_NULL(fn))
		return ACL_ERROR_INVALID_PARAM;
	return drv == NULL ? ACL_SUCCESS
			   : core_result(__func__, npu_call(drv, npusimLeaks, fn, arg, true));
}

int npusimSetReportCallback(npusim_report_fn fn, void *arg)
{
	drvError_t code = core_call(npusimReports, fn, arg);

	if (code == DRV_ERROR_NONE || code == DRV_ERROR_PROCESS_EXIT)
		return told(code);
	return acl_unsupported(
		__func__, "nothing reports: the validation is off; NPUSIM_VALIDATE=on, or `npusim "
			  "run --validate`, turns it on");
}

uint64_t npusim_now_ps(void)
{
	return core_now_ps();
}

char *npusim_backend_text(void)
{
	struct npu_driver *drv = core_driver();

	return drv == NULL ? NULL : npu_driver_text(drv);
}

char *npusim_settings_check(void)
{
	char *error = NULL;

	if (npu_settings_check(&error))
		return NULL;
	return error != NULL ? error : strdup("a setting is not valid");
}
