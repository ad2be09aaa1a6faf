/* SPDX-License-Identifier: Apache-2.0
 *
 * What interposed-test.py runs: memory of both kinds, and with an argument the drivers' names.
 */
#include <stdio.h>

#include "acl/acl.h"

int main(void)
{
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
				      .location.type = ACL_MEM_LOCATION_TYPE_DEVICE };
	aclrtDrvMemHandle handle;
	void *memory;
	int codes[3];

	codes[0] = aclrtSetDevice(0);
	codes[1] = aclrtMallocPhysical(&handle, 2u << 20, &prop, 0);
	codes[2] = aclrtMalloc(&memory, 1u << 20, ACL_MEM_MALLOC_HUGE_FIRST);
	printf("%d %d %d\n", codes[0], codes[1], codes[2]);
	return aclrtFree(memory) != 0 || aclrtFreePhysical(handle) != 0 || aclrtResetDevice(0) != 0;
}
