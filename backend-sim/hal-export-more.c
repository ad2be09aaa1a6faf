/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions beyond the seam that callers take if they are there, and that have an answer.
 */
#include "hal-export.h"

#include "base/base.h"

#define DEVICE_WORKS 1

HAL_EXPORT drvError_t drvDeviceStatus(uint32_t dev, int *status);
HAL_EXPORT drvError_t halMemcpy(void *dst, size_t dst_size, void *src, size_t count,
				struct memcpy_info *info);

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
