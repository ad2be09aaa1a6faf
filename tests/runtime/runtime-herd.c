/* SPDX-License-Identifier: Apache-2.0
 *
 * Many processes that open the same device at once, as a launcher's do, some of them killed while
 * they start: each goes through the whole start-up of the ACL.
 */
#include <stdlib.h>

#define STAYING 200u
#define KILLED  60u
#include "harness/herd.h"

#include "acl/acl.h"

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void)
{
	size_t free_now = 0, total = 0;

	return aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total) == 0 ? free_now : 0;
}

/* Holds 2 MiB from then on. */
static const char *start(void)
{
	const char *why;
	void *memory;

	if (aclInit(NULL) == 0 && aclrtSetDevice(0) == 0 &&
	    aclrtMalloc(&memory, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY) == 0)
		return NULL;
	why = aclGetRecentErrMsg();
	return why != NULL ? why : "no message";
}

/* What is free while the herd lives, and when it has been killed. */
static void watch(void *arg)
{
	size_t with, wanted;

	(void)arg;
	if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0)
		_exit(2);
	with = free_bytes();
	wanted = with + STAYING * 2 * MIB;
	herd_kill();
	for (unsigned tries = 0; tries < 10000 && free_bytes() < wanted; tries++)
		usleep(1000);
	_exit(with > 0 && free_bytes() >= wanted ? 0 : 3);
}

TEST(herd, starts_while_some_are_killed)
{
	setenv("NPUSIM_HBM", "16G", 1); /* with room for the page tables of all */
	herd_run(start);
	EXPECT_EXIT(0, watch, NULL);
	herd_bury(herd, STAYING);
}
