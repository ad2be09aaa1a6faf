/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that install-tree.py builds against an installed npusim: reserve, create, map, and
 * back.
 */
#include <acl/acl.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                                                              \
	do {                                                                                     \
		aclError code = (call);                                                          \
		if (code != ACL_SUCCESS) {                                                       \
			fprintf(stderr, "%s: %d: %s\n", #call, (int)code, aclGetRecentErrMsg()); \
			return 1;                                                                \
		}                                                                                \
	} while (0)

int main(void)
{
	const size_t size = 2u << 20;
	aclrtPhysicalMemProp prop;
	aclrtDrvMemHandle handle;
	void *va = NULL;

	memset(&prop, 0, sizeof(prop));
	prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
	prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
	prop.memAttr = ACL_HBM_MEM_HUGE;
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice(0));
	CHECK(aclrtReserveMemAddress(&va, size, 0, NULL, 1));
	CHECK(aclrtMallocPhysical(&handle, size, &prop, 0));
	CHECK(aclrtMapMem(va, size, 0, handle, 0));
	CHECK(aclrtUnmapMem(va));
	CHECK(aclrtFreePhysical(handle));
	CHECK(aclrtReleaseMemAddress(va));
	printf("mapped 2 MiB at %p\n", va);
	return 0;
}
