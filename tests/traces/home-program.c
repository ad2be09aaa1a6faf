/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens libraries by the names that programs use, and says what they answer.
 * usage: home-program [LIBRARY FUNCTION]...
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *found = handle != NULL ? dlsym(handle, name) : NULL;

	if (found == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

int main(int argc, char **argv)
{
	uint32_t on_hal = 0, on_acl = 0;
	int (*init)(const char *), (*count)(uint32_t *);

	for (int i = 1; i + 1 < argc; i += 2) {
		intptr_t object[2] = { -1, -1 };
		intptr_t (*call)(void *);

		*(void **)&call = function(argv[i], argv[i + 1]);
		for (int times = 0; times < 2; times++)
			printf("%s %d\n", argv[i + 1], (int)call(object));
		printf("object %d %d\n", (int)object[0], (int)object[1]);
	}
	if (argc > 1)
		return 0;
	*(void **)&count = function("libascend_hal.so", "drvGetDevNum");
	if (count(&on_hal) != 0)
		return 1;
	*(void **)&init = function("libascendcl.so", "aclInit");
	*(void **)&count = function("libacl_rt.so", "aclrtGetDeviceCount");
	if (init(NULL) != 0 || count(&on_acl) != 0)
		return 1;
	printf("%u %u devices\n", on_hal, on_acl);
	return 0;
}
