/* SPDX-License-Identifier: Apache-2.0
 *
 * What preload-test.py runs under libnpusim-record.so: a program that is linked with no ACL
 * library, and opens one by its path, as Python's ctypes does; or has none at all.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define CHUNK ((size_t)2 << 20)

extern __typeof__(aclrtMalloc) aclrtMalloc __attribute__((weak));

static void fail(const char *text)
{
	fprintf(stderr, "%s\n", text);
	exit(1);
}
#define EXPECT(condition)                 \
	do {                              \
		if (!(condition))         \
			fail(#condition); \
	} while (0)

/* Libraries that look behind themselves find what is behind them, not behind the recorder. */
static void look_around(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW), *self = dlopen(NULL, RTLD_NOW);
	char *(*next)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");

	EXPECT(libc != NULL && self != NULL);
	EXPECT(next != NULL && next == (char *(*)(const char *))dlsym(libc, "getenv"));
	EXPECT(dlsym(RTLD_DEFAULT, "getenv") == dlsym(libc, "getenv"));
	EXPECT(dlsym(RTLD_NEXT, "opened_marker") == NULL);
	EXPECT(dlsym(RTLD_DEFAULT, "opened_marker") != NULL);
	/* the recorder itself is behind the program, and not behind itself */
	EXPECT(dlsym(RTLD_NEXT, "npusim_record_preloaded") ==
	       dlsym(RTLD_DEFAULT, "npusim_record_preloaded"));
	EXPECT(dlsym(self, "no_such_function_anywhere") == NULL);
	EXPECT(dlerror() != NULL && dlerror() == NULL);
}

__attribute__((visibility("default"))) int opened_marker(void);
int opened_marker(void)
{
	return 1;
}

/* Every function whose name stands on standard input is ours, the one that does not is not. */
static void look_up(void *library, const char *wrapped_by)
{
	char name[128];
	Dl_info info;

	while (scanf("%127s", name) == 1) {
		void *function = dlsym(library, name);

		EXPECT(function != NULL && dladdr(function, &info) != 0);
		if ((strstr(info.dli_fname, "libnpusim-record.so") != NULL) != (*wrapped_by == '1'))
			fail(name);
	}
	EXPECT(dladdr(dlsym(library, "aclrtGetMemInfo"), &info) != 0);
	EXPECT(strstr(info.dli_fname, "libascendcl.so") != NULL);
	EXPECT(dlsym(library, "aclrtNoSuchFunction") == NULL);
}

#define GET(name) __typeof__(&name) name##_ = (__typeof__(&name))dlsym(library, #name)

static int opened(const char *path, const char *wrapped)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *va;
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle;

	if (library == NULL)
		fail(dlerror());
	GET(aclrtSetDevice);
	GET(aclrtReserveMemAddress);
	GET(aclrtMallocPhysical);
	GET(aclrtMapMem);
	GET(aclrtUnmapMem);
	GET(aclrtFreePhysical);
	GET(aclrtReleaseMemAddress);
	look_around();
	look_up(library, wrapped);
	EXPECT(aclrtSetDevice_(0) == ACL_SUCCESS);
	EXPECT(aclrtReserveMemAddress_(&va, CHUNK, 0, NULL, 1) == ACL_SUCCESS);
	EXPECT(aclrtMallocPhysical_(&handle, CHUNK, &prop, 0) == ACL_SUCCESS);
	EXPECT(aclrtMapMem_(va, CHUNK, 0, handle, 0) == ACL_SUCCESS);
	EXPECT(aclrtUnmapMem_(va) == ACL_SUCCESS);
	EXPECT(aclrtFreePhysical_(handle) == ACL_SUCCESS);
	EXPECT(aclrtReleaseMemAddress_(va) == ACL_SUCCESS);
	return 0;
}

static int alone(void)
{
	void *pointer;

	look_around();
	EXPECT(dlsym(RTLD_DEFAULT, "aclrtMapMem") == NULL);
	for (int i = 0; aclrtMalloc != NULL && i < 3; i++)
		EXPECT(aclrtMalloc(&pointer, 1, ACL_MEM_MALLOC_HUGE_FIRST) ==
		       ACL_ERROR_API_NOT_SUPPORT);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return opened(argv[1], argv[2]);
	return alone();
}
