/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim's own functions in addition to the ACL's: include/npusim/npusim.h.
 */
#include "acl-internal.h"

#include <string.h>

/* The driver, and the device's number there. */
static int find(int device, const char *call, struct npu_driver **out_drv, uint32_t *out_logic)
{
	*out_drv = core_driver();
	if (*out_drv == NULL)
		return ACL_ERROR_INTERNAL_ERROR;
	return core_device_logic(device, "device", call, out_logic);
}

int npusim_get_stats(int device, struct npu_stats *out)
{
	struct npu_driver *drv;
	uint32_t logic;

	return ACL_IS_NULL(out)
		       ?: ACL_WANT(__func__, out->size != 0,
				   "out->size is 0; it must be sizeof(struct npu_stats), %zu",
				   sizeof(*out))
		       ?: find(device, __func__, &drv, &logic)
		       ?: core_result(__func__, npu_call(drv, npusimGetStats, logic, out));
}

int npusim_touch(int device, const uint64_t *at, size_t count, size_t bytes, unsigned core)
{
	struct npu_driver *drv;
	uint32_t logic;

	return ACL_IS_NULL(at) ?: find(device, __func__, &drv, &logic)
		       ?: core_result(__func__,
				      npu_call(drv, npusimTouch, logic, at, count, bytes, core));
}

int npusim_physical(int device, uint64_t va, uint64_t *pa, uint64_t *bytes)
{
	struct npu_driver *drv;
	uint32_t logic;

	return ACL_IS_NULL(pa) ?: ACL_IS_NULL(bytes) ?: find(device, __func__, &drv, &logic)
		       ?: core_result(__func__,
				      npu_call(drv, npusimPhysical, logic, va, pa, bytes));
}

static int tell_block(const void *ptr, size_t size)
{
	struct npu_driver *drv = core_driver();

	if (drv == NULL)
		return ACL_ERROR_INTERNAL_ERROR;
	npu_call(drv, npusimTellBlock, (uintptr_t)ptr, size);
	return ACL_SUCCESS;
}

int npusimBlock(const void *ptr, size_t size)
	ACL_ANSWERS(ACL_IS_NULL(ptr) ?: ACL_IS_ZERO(size) ?: tell_block(ptr, size));
int npusimBlockFree(const void *ptr) ACL_ANSWERS(ACL_IS_NULL(ptr) ?: tell_block(ptr, 0));

int npusimMark(const char *name)
{
	struct npu_driver *drv;

	if (ACL_IS_NULL(name))
		return ACL_ERROR_INVALID_PARAM;
	drv = core_driver();
	if (drv == NULL)
		return ACL_ERROR_INTERNAL_ERROR;
	npu_call(drv, npusimMark, name); /* NOT_SUPPORT: nobody compares */
	return ACL_SUCCESS;
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
	struct npu_driver *drv = core_driver();

	if (drv == NULL)
		return ACL_ERROR_INTERNAL_ERROR;
	if (npu_call(drv, npusimReports, fn, arg) == DRV_ERROR_NONE)
		return ACL_SUCCESS;
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
