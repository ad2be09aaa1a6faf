/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that calls the driver's functions itself, linked with libascend_hal.so alone; with
 * WITH_ACL it makes a reservation and an allocation by the ACL beside, in the same process. It
 * prints what each call answers, and why.
 */
#include <stdio.h>

#include "npusim/driver.h"

#define NPU_OP(result, missing, op, ...) result op NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"

/* A vendor's library has none. */
#pragma weak npusimLastMessage

#ifdef WITH_ACL
#include "acl/acl.h"
#endif

#define BYTES (UINT64_C(2) << 20)

static int failed;

static int tell(const char *call, drvError_t code)
{
	const char *why = NULL;

	if (code != DRV_ERROR_NONE && npusimLastMessage != NULL)
		why = npusimLastMessage();
	failed |= code != DRV_ERROR_NONE;
	printf("%s %d%s%s\n", call, code, why != NULL ? " " : "", why != NULL ? why : "");
	return code;
}
#define TELL(op, ...) tell(#op, op(__VA_ARGS__))

static void use_driver(void)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE };
	drv_mem_handle_t *handle = NULL;
	void *va = NULL;

	if (TELL(halMemAddressReserve, &va, BYTES, 0, NULL, 1) != DRV_ERROR_NONE)
		return;
	if (TELL(halMemCreate, &handle, BYTES, &prop, 0) == DRV_ERROR_NONE) {
		TELL(halMemMap, va, BYTES, 0, handle, 0);
		TELL(drvMemsetD8, (uintptr_t)va, BYTES, 7, BYTES);
		TELL(halMemUnmap, va);
		TELL(halMemRelease, handle);
	}
	TELL(halMemAddressFree, va);
}

#ifdef WITH_ACL
static void use_acl(void)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle = NULL;
	int code = aclrtSetDevice(0);

	if (code == 0)
		code = aclrtMallocPhysical(&handle, BYTES, &prop, 0);
	failed |= code != 0;
	printf("aclrtMallocPhysical %d\n", code);
	if (code == 0)
		printf("aclrtFreePhysical %d\n", aclrtFreePhysical(handle));
}
#endif

int main(void)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

#ifdef WITH_ACL
	use_acl();
#else
	TELL(halDeviceOpen, 0, &in, &out);
#endif
	use_driver();
	(void)in, (void)out;
	return failed;
}
