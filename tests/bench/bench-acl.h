/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks of the ACL share: an end at the first call that fails, and physical memory.
 */
#ifndef NPUSIM_TESTS_BENCH_BENCH_ACL_H
#define NPUSIM_TESTS_BENCH_BENCH_ACL_H

#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define HUGE_BYTES ((size_t)2 << 20)

static inline void check(aclError code, const char *call)
{
	if (code != ACL_SUCCESS) {
		fprintf(stderr, "%s: %d: %s\n", call, code, aclGetRecentErrMsg());
		exit(1);
	}
}

static inline aclrtDrvMemHandle create(uint32_t device, size_t bytes)
{
	const aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
					    .location = { .id = device,
							  .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle;

	check(aclrtMallocPhysical(&handle, bytes, &prop, 0), "aclrtMallocPhysical");
	return handle;
}

#endif
