/* SPDX-License-Identifier: Apache-2.0
 *
 * What backend-hw takes from libascend_hal.so. The functions of the seam come from
 * npusim/driver-ops.h; this file adds the few that the seam does not show, and says which of all
 * must be there.
 */
#ifndef NPUSIM_HW_SYMBOLS_H
#define NPUSIM_HW_SYMBOLS_H

#include "npusim/driver.h"

/* X(result type, name, (parameters)): how drivers from before halDeviceOpen open a device. */
#define HW_OLD_SYMBOLS(X)                                         \
	X(int, drvMemDeviceOpen, (uint32_t dev, int fd))          \
	X(int, drvMemDeviceClose, (uint32_t dev))                 \
	X(drvError_t, drvDeviceOpen, (void **info, uint32_t dev)) \
	X(drvError_t, drvDeviceClose, (uint32_t dev))

/* Without one of these nothing useful runs. CANN's runtime links the most of them strongly, and
 * crashes without the other queue functions; the virtual memory functions are what npusim is for.
 * All the rest is weak there: a call answers "not supported". */
#define HW_ESSENTIAL(X)                   \
	X(drvGetDevNum)                   \
	X(halGetDeviceInfo)               \
	X(halMemAddressReserve)           \
	X(halMemAddressFree)              \
	X(halMemCreate)                   \
	X(halMemRelease)                  \
	X(halMemMap)                      \
	X(halMemUnmap)                    \
	X(halMemGetAllocationGranularity) \
	X(halMemAlloc)                    \
	X(halMemFree)                     \
	X(halMemGetInfo)                  \
	X(drvMemGetAttribute)             \
	X(drvMemcpy)                      \
	X(drvMemsetD8)                    \
	X(halResourceIdAlloc)             \
	X(halResourceIdFree)              \
	X(halResourceConfig)              \
	X(halSqCqAllocate)                \
	X(halSqCqFree)                    \
	X(halSqCqQuery)                   \
	X(halSqTaskSend)                  \
	X(halCqReportRecv)

struct hw_symbols {
#define NPU_OP(result, missing, op, ...) result(*op) NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"
#define HW_POINTER(result, op, params) result(*op) params;
	HW_OLD_SYMBOLS(HW_POINTER)
#undef HW_POINTER
};

#endif
