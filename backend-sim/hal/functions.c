/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements libascend_hal.so: the functions of the seam under their own names, each of which
 * calls the top driver's member of that name, and the few beyond the seam that have an answer.
 */
#include "hal.h"

#include <string.h>

#include "base/base.h"

#define DEVICE_WORKS 1

/* A driver of a 910B has no name to give: CANN's runtimes take it from the version word, and those
 * of CANN 9 look for a file beside them where a name is given. A 910C's name stands nowhere else.
 * Asked of the model itself: no layer hears of it. */
static bool has_no_name(struct npu_driver *drv)
{
	static const char no_name[] = "Ascend910B";
	char name[64];

	while (drv->lower != NULL)
		drv = drv->lower;
	return drv->halGetSocVersion(drv, 0, name, sizeof(name)) == DRV_ERROR_NONE &&
	       strncmp(name, no_name, strlen(no_name)) == 0;
}

#define NPU_OP(result, missing, op, ...)                                      \
	HAL_EXPORT result op NPU_PLAIN(__VA_ARGS__);                          \
	result op NPU_PLAIN(__VA_ARGS__)                                      \
	{                                                                     \
		struct npu_driver *drv = hal_driver();                        \
                                                                              \
		if (drv == NULL)                                              \
			return HAL_NO_MODEL(missing);                         \
		if (strcmp(#op, "halGetSocVersion") == 0 && has_no_name(drv)) \
			return missing;                                       \
		return drv->op NPU_TO(drv, ##__VA_ARGS__);                    \
	}
#include "npusim/driver-ops.h"

/* ---- beyond the seam ---- */

drvError_t drvDeviceStatus(uint32_t dev, int *status)
{
	struct npu_driver *drv = hal_driver();
	uint32_t devices;
	drvError_t result;

	if (drv == NULL)
		return DRV_ERROR_NO_DEVICE;
	if (status == NULL) {
		npu_message_set("drvDeviceStatus: status is NULL");
		return DRV_ERROR_INVALID_VALUE;
	}
	result = drv->drvGetDevNum(drv, &devices);
	if (result != DRV_ERROR_NONE)
		return result;
	if (dev >= devices) {
		npu_message_set("drvDeviceStatus: device is %u; this server has devices 0 to %u",
				dev, devices - 1);
		return DRV_ERROR_INVALID_DEVICE;
	}
	*status = DEVICE_WORKS;
	return DRV_ERROR_NONE;
}

/* The addresses say where the bytes are; the direction is a promise of the caller's. */
drvError_t halMemcpy(void *dst, size_t dst_size, void *src, size_t count, struct memcpy_info *info)
{
	struct npu_driver *drv = hal_driver();

	if (drv == NULL)
		return DRV_ERROR_NO_DEVICE;
	if (info == NULL) {
		npu_message_set("halMemcpy: info is NULL");
		return DRV_ERROR_INVALID_VALUE;
	}
	if ((int)info->dir < DRV_MEMCPY_HOST_TO_HOST || info->dir > DRV_MEMCPY_DEVICE_TO_DEVICE) {
		npu_message_set("halMemcpy: info->dir is %d; it must be from 0 to 3",
				(int)info->dir);
		return DRV_ERROR_INVALID_VALUE;
	}
	return drv->drvMemcpy(drv, (DVdeviceptr)(uintptr_t)dst, dst_size,
			      (DVdeviceptr)(uintptr_t)src, count);
}

/* Nothing to show, and no cache of the host that a device does not see. */
void drvDfxShowReport(uint32_t dev)
{
	(void)dev;
}

void drvFlushCache(uint64_t base, uint32_t length)
{
	(void)base;
	(void)length;
}

int g_devmm_mem_dev = -1; /* a file descriptor: none */
