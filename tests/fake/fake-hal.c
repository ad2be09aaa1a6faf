/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver of fake-hal.h: counting, the defect, devices, memory. Queues: fake-hal-queue.c.
 */
#include "fake-hal.h"

#include "fake-hal-private.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef FAKE_EMPTY

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 2
#endif
#ifndef FAKE_API
#define FAKE_API 0x072418
#endif
#ifndef FAKE_FAIL
#define FAKE_FAIL ""
#endif
#ifndef FAKE_CODE
#define FAKE_CODE 0
#endif
#ifndef FAKE_SLEEP_MS
#define FAKE_SLEEP_MS 0
#endif

#define HBM_BYTES (UINT64_C(64) << 30)
#define ALIGNMENT (UINT64_C(2) << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int live, calls; /* calls: of the function that fails */
static char story[1024];

/* ---- counting, and the defect ---- */

void fake_count(int change)
{
	pthread_mutex_lock(&lock);
	live += change;
	pthread_mutex_unlock(&lock);
}

int fake_hal_live(void)
{
	return live;
}

const char *fake_hal_story(void)
{
	return story;
}

static void tell(const char *what, unsigned dev)
{
	size_t length = strlen(story);

	snprintf(story + length, sizeof(story) - length, "%s%s(%u)", length > 0 ? " " : "", what,
		 dev);
}

static bool is_due(int call)
{
#ifdef FAKE_FROM
	return call >= FAKE_FROM;
#elif defined(FAKE_AT)
	return call == FAKE_AT;
#else
	return call >= 1;
#endif
}

drvError_t fake_enter(const char *name)
{
	bool due = false;

	if (strcmp(FAKE_FAIL, "*") == 0 || strcmp(FAKE_FAIL, name) == 0) {
		pthread_mutex_lock(&lock);
		due = is_due(++calls);
		pthread_mutex_unlock(&lock);
	}
	if (!due)
		return DRV_ERROR_NONE;
	usleep(FAKE_SLEEP_MS * 1000);
#ifdef FAKE_CRASH
	raise(SIGSEGV);
#endif
	return FAKE_CODE;
}

/* ---- devices ---- */

drvError_t drvGetDevNum(uint32_t *num_dev)
{
	FAKE_ENTER();
	*num_dev = FAKE_DEVICES;
	return DRV_ERROR_NONE;
}

drvError_t halGetDeviceInfo(uint32_t dev, int32_t module, int32_t info, int64_t *value)
{
	uint32_t devices = FAKE_DEVICES;

	FAKE_ENTER();
	if (dev >= devices)
		return DRV_ERROR_INVALID_DEVICE;
	if (module != MODULE_TYPE_SYSTEM ||
	    (info != INFO_TYPE_VERSION && info != INFO_TYPE_SERVER_ID))
		return DRV_ERROR_NOT_SUPPORT;
	*value = info == INFO_TYPE_VERSION ? 0x40501 : 0;
	return DRV_ERROR_NONE;
}

#ifndef FAKE_OLD
drvError_t halGetAPIVersion(int *version)
{
	FAKE_ENTER();
	*version = FAKE_API;
	return DRV_ERROR_NONE;
}

drvError_t halDeviceOpen(uint32_t dev, halDevOpenIn *in, halDevOpenOut *out)
{
	(void)in, (void)out;
	tell(__func__, dev);
#ifdef FAKE_DEVICE
	if (dev == FAKE_DEVICE)
#endif
		FAKE_ENTER();
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t halDeviceClose(uint32_t dev, halDevCloseIn *in)
{
	(void)in;
	tell(__func__, dev);
	FAKE_ENTER();
	fake_count(-1);
	return DRV_ERROR_NONE;
}
#else
int drvMemDeviceOpen(uint32_t dev, int fd)
{
	(void)fd;
	tell(__func__, dev);
	FAKE_ENTER();
	fake_count(1);
	return DRV_ERROR_NONE;
}

int drvMemDeviceClose(uint32_t dev)
{
	tell(__func__, dev);
	FAKE_ENTER();
	fake_count(-1);
	return DRV_ERROR_NONE;
}

drvError_t drvDeviceOpen(void **info, uint32_t dev)
{
	tell(__func__, dev);
	FAKE_ENTER();
	*(int *)info = 7;
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t drvDeviceClose(uint32_t dev)
{
	tell(__func__, dev);
	FAKE_ENTER();
	fake_count(-1);
	return DRV_ERROR_NONE;
}
#endif

/* ---- virtual memory: a handle's bytes are where it is mapped ---- */

struct drv_mem_handle {
	size_t bytes;
	struct drv_mem_prop prop;
};
struct range {
	void *start;
	size_t bytes;
};
static struct range ranges[64];

static struct range *find_range(const void *start)
{
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].start == start)
			return &ranges[i];
	return NULL;
}

static void *map_aligned(size_t bytes, int protection)
{
	uint8_t *start = mmap(NULL, bytes + ALIGNMENT, protection,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t lead;

	if (start == MAP_FAILED)
		return NULL;
	lead = (ALIGNMENT - (uintptr_t)start % ALIGNMENT) % ALIGNMENT;
	if (lead > 0)
		munmap(start, lead);
	munmap(start + lead + bytes, ALIGNMENT - lead);
	return start + lead;
}

drvError_t halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
				uint64_t flag)
{
	struct range *range;

	(void)alignment, (void)addr, (void)flag;
	FAKE_ENTER();
	range = find_range(NULL);
	if (range == NULL)
		return DRV_ERROR_OUT_OF_MEMORY;
	range->start = map_aligned(size, PROT_NONE);
	if (range->start == NULL)
		return DRV_ERROR_OUT_OF_MEMORY;
	range->bytes = size;
	*ptr = range->start;
	fake_count(1);
	return DRV_ERROR_NONE;
}

static drvError_t give_back(void *start)
{
	struct range *range = start == NULL ? NULL : find_range(start);

	if (range == NULL)
		return DRV_ERROR_INVALID_VALUE;
	munmap(range->start, range->bytes);
	range->start = NULL;
	fake_count(-1);
	return DRV_ERROR_NONE;
}

drvError_t halMemAddressFree(void *ptr)
{
	FAKE_ENTER();
	return give_back(ptr);
}

drvError_t halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop,
			uint64_t flag)
{
	(void)flag;
	FAKE_ENTER();
	*handle = malloc(sizeof(**handle));
	if (*handle == NULL)
		return DRV_ERROR_OUT_OF_MEMORY;
	**handle = (struct drv_mem_handle){ size, *prop };
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t halMemRelease(drv_mem_handle_t *handle)
{
	FAKE_ENTER();
	free(handle);
	fake_count(-1);
	return DRV_ERROR_NONE;
}

#ifndef FAKE_NO_MAP
drvError_t halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag)
{
	(void)offset, (void)handle, (void)flag;
	FAKE_ENTER();
	if (mprotect(ptr, size, PROT_READ | PROT_WRITE) != 0)
		return DRV_ERROR_INVALID_VALUE;
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t halMemUnmap(void *ptr)
{
	struct range *range;

	FAKE_ENTER();
	range = find_range(ptr);
	if (range == NULL)
		return DRV_ERROR_INVALID_VALUE;
	mprotect(ptr, range->bytes, PROT_NONE);
	fake_count(-1);
	return DRV_ERROR_NONE;
}
#endif

drvError_t halMemSetAccess(void *ptr, size_t size, struct drv_mem_access_desc *desc, size_t count)
{
	(void)ptr, (void)size, (void)desc, (void)count;
	FAKE_ENTER();
	return DRV_ERROR_NONE;
}

drvError_t halMemGetAllocationGranularity(const struct drv_mem_prop *prop,
					  drv_mem_granularity_options option, size_t *granularity)
{
	(void)prop, (void)option;
	FAKE_ENTER();
	*granularity = ALIGNMENT;
	return DRV_ERROR_NONE;
}

#ifndef FAKE_OLD
drvError_t halMemMapNoAccess(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle,
			     uint64_t flag)
{
	(void)ptr, (void)size, (void)offset, (void)handle, (void)flag;
	FAKE_ENTER();
	return DRV_ERROR_OUT_OF_MEMORY;
}

drvError_t halMemRetainAllocationHandle(drv_mem_handle_t **handle, void *ptr)
{
	(void)handle, (void)ptr;
	FAKE_ENTER();
	return DRV_ERROR_INVALID_HANDLE;
}

drvError_t halMemExportToShareableHandleV2(drv_mem_handle_t *handle, drv_mem_handle_type type,
					   uint64_t flags, struct MemShareHandle *shareable)
{
	(void)handle, (void)type, (void)flags;
	FAKE_ENTER();
	memset(shareable, 0x5a, sizeof(*shareable));
	return DRV_ERROR_NONE;
}

drvError_t halMemImportFromShareableHandleV2(drv_mem_handle_type type,
					     struct MemShareHandle *shareable, uint32_t dev,
					     drv_mem_handle_t **handle)
{
	(void)type, (void)shareable, (void)dev, (void)handle;
	FAKE_ENTER();
	return DRV_ERROR_INVALID_HANDLE;
}

drvError_t halMemTransShareableHandle(drv_mem_handle_type type, struct MemShareHandle *share,
				      uint32_t *server, uint64_t *shareable)
{
	(void)type, (void)share, (void)server, (void)shareable;
	FAKE_ENTER();
	return DRV_ERROR_INVALID_HANDLE;
}
#endif

/* ---- classic memory ---- */

drvError_t halMemAlloc(void **pp, unsigned long long size, unsigned long long flag)
{
	struct range *range;

	(void)flag;
	FAKE_ENTER();
	range = find_range(NULL);
	if (range == NULL)
		return DRV_ERROR_OUT_OF_MEMORY;
	range->start = map_aligned((size + 4095) / 4096 * 4096, PROT_READ | PROT_WRITE);
	range->bytes = (size + 4095) / 4096 * 4096;
	*pp = range->start;
	fake_count(1);
	return range->start == NULL ? DRV_ERROR_OUT_OF_MEMORY : DRV_ERROR_NONE;
}

drvError_t halMemFree(void *pp)
{
	FAKE_ENTER();
	return give_back(pp);
}

drvError_t halMemGetInfo(DVdevice dev, unsigned int type, struct MemInfo *info)
{
	(void)dev, (void)type;
	FAKE_ENTER();
	memset(info, 0,
	       sizeof(*info)); /* all of it: a caller with a shorter struct loses its stack */
	info->phy_info.huge_total = HBM_BYTES;
	info->phy_info.huge_free = HBM_BYTES;
#ifdef FAKE_BUSY /* others have half of device 1 */
	if (dev == 1)
		info->phy_info.huge_free /= 2;
#endif
	return DRV_ERROR_NONE;
}

drvError_t drvMemGetAttribute(DVdeviceptr va, struct DVattribute *attr)
{
	FAKE_ENTER();
	memset(attr, 0, sizeof(*attr));
	attr->memType = DV_MEM_USER_MALLOC;
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i].start != NULL && va - (uintptr_t)ranges[i].start < ranges[i].bytes)
			attr->memType = DV_MEM_LOCK_DEV;
	return DRV_ERROR_NONE;
}

drvError_t drvMemcpy(DVdeviceptr dst, size_t dest_max, DVdeviceptr src, size_t count)
{
	FAKE_ENTER();
	if (count > dest_max)
		return DRV_ERROR_INVALID_VALUE;
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, count);
	return DRV_ERROR_NONE;
}

drvError_t drvMemsetD8(DVdeviceptr dst, size_t dest_max, uint8_t value, size_t num)
{
	FAKE_ENTER();
	if (num > dest_max)
		return DRV_ERROR_INVALID_VALUE;
	memset((void *)(uintptr_t)dst, value, num);
	return DRV_ERROR_NONE;
}

#else

int fake_hal_live(void)
{
	return 0;
}

const char *fake_hal_story(void)
{
	return "";
}

#endif

#ifdef FAKE_IMPOSTOR
#include "npusim/driver.h"

extern const struct npusim_hal npusim_hal_is_ours;
const struct npusim_hal npusim_hal_is_ours = { .abi = NPUSIM_HAL_ABI + 1 };
#endif
