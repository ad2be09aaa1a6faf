/* SPDX-License-Identifier: Apache-2.0
 *
 * Touches memory that the CPU may not reach: "device", of a device; else a page of its own, with no
 * driver. As a program, and as a library for languages with a foreign function interface.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "acl/acl.h"

void *touch_target(const char *what);
void touch_write(void *target);

void *touch_target(const char *what)
{
	void *p = NULL;

	if (strcmp(what, "device") != 0)
		return mmap(NULL, 1u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (aclrtSetDevice(0) != ACL_SUCCESS ||
	    aclrtMalloc(&p, 1u << 20, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS)
		fprintf(stderr, "no device memory: %s\n", aclGetRecentErrMsg());
	return p;
}

void touch_write(void *target)
{
	((volatile char *)target)[100] = 1;
}

int main(int argc, char **argv)
{
	void *target = touch_target(argc > 1 ? argv[1] : "");

	puts("before");
	fflush(stdout);
	touch_write(target);
	puts("after");
	return 0;
}
