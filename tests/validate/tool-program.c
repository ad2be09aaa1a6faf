/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs for tool-test.py: what a validated process does beside errors of memory. The case is
 * named by the first argument.
 */
#include <acl/acl.h>
#include <npusim/npusim.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

static char **words;

static void must(aclError code, const char *call)
{
	if (code != ACL_SUCCESS)
		printf("%s: %d %s\n", call, code, aclGetRecentErrMsg());
}
#define MUST(call) must(call, #call)

static void *take(size_t bytes)
{
	void *memory = NULL;

	MUST(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return memory;
}

static void clean(void)
{
	MUST(aclrtFree(take(MIB)));
}

static void lose(void)
{
	take(3 * MIB);
}

static void free_twice(void)
{
	void *memory = take(MIB);

	MUST(aclrtFree(memory));
	aclrtFree(memory);
}

static void find_two(void)
{
	free_twice();
	lose();
}

/* ---- growth ---- */

static void grow(void)
{
	for (int i = 0; i < 5; i++) {
		take(2 * MIB);
		clean();
		MUST(npusimMark("step"));
	}
}

static void warm_up(void)
{
	void *kept[2] = { NULL, NULL };

	for (int i = 0; i < 6; i++) {
		if (i < 2)
			kept[i] = take(2 * MIB);
		clean();
		MUST(npusimMark("step"));
	}
	MUST(aclrtFree(kept[0]));
	MUST(aclrtFree(kept[1]));
}

static void *take_physical(size_t bytes)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .id = 0,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle = NULL;

	MUST(aclrtMallocPhysical(&handle, bytes, &prop, 0));
	return handle;
}

static void retain(void)
{
	aclrtDrvMemHandle handle = take_physical(2 * MIB), again;
	void *va;

	MUST(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(va, 2 * MIB, 0, handle, 0));
	for (int i = 0; i < 4; i++) {
		MUST(aclrtMemRetainAllocationHandle(va, &again));
		if (i == 0)
			MUST(aclrtFreePhysical(again));
		MUST(npusimMark("retained"));
	}
}

/* ---- harnesses ---- */

static void on_report(void *arg, const struct npusim_report *report)
{
	const char *slash = report->file != NULL ? strrchr(report->file, '/') : NULL;
	int32_t device;

	MUST(aclrtGetDevice(&device));
	if (aclrtSetDevice(99) == 0 || aclrtUnmapMem((void *)MIB) == 0)
		printf("what is wrong works\n");
	printf("%s: %s at %s:%d, %d, right: %d, stacks: %d\n", (const char *)arg, report->rule,
	       slash != NULL ? slash + 1 : "?", report->line > 0, (int)(report->size / 8),
	       strlen(report->right) > 10, strstr(report->stacks, "aclrtFree") != NULL);
}

static void call_back(void)
{
	char name[] = "heard";
	int code = npusimSetReportCallback(on_report, name);
	void *gone;

	if (code != 0) {
		printf("callback %d\n", code);
		return;
	}
	free_twice();
	printf("%.68s\n", aclGetRecentErrMsg());
	gone = take(2 * MIB);
	MUST(aclrtFree(gone));
	if (aclrtMemcpy(gone, 4, name, 4, ACL_MEMCPY_HOST_TO_DEVICE) == 0)
		printf("a copy to what is gone works\n");
	printf("%.68s\n", aclGetRecentErrMsg());
	if (aclrtSetDevice(3) == 0)
		printf("a device of another number works\n");
	printf("%.59s %d\n", aclGetRecentErrMsg(), aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	MUST(npusimSetReportCallback(NULL, NULL));
	free_twice();
}

/* ---- processes ---- */

/* A child after a device was opened: it can make no call, and has made none that is to report. */
static void fork_late(void)
{
	void *memory = take(MIB);
	int status = -1;
	pid_t child;

	free_twice();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		npusimBlock(memory, 512); /* of its parent's */
		exit(0);
	}
	waitpid(child, &status, 0);
	MUST(aclrtFree(memory));
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* A child before: its own reports. */
static void fork_early(void)
{
	int status = -1;
	pid_t child;
	uint32_t count;

	MUST(aclrtGetDeviceCount(&count));
	fflush(stdout);
	child = fork();
	MUST(aclrtSetDevice(0));
	if (child == 0) {
		find_two();
		exit(0);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	clean();
}

static void exec_other(void)
{
	char name[] = "lose";
	char *argv[] = { words[0], name, NULL };

	free_twice();
	fflush(stdout);
	execv(words[0], argv);
}

/* ---- who holds it ---- */

static void hold_much(void)
{
	for (int i = 0; i < 3; i++)
		take(256 * MIB);
}

static void fill_up(void)
{
	void *memory;

	hold_much();
	printf("code %d\n", aclrtMalloc(&memory, 512 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	printf("message: %s\n", aclGetRecentErrMsg());
}

/* Pinned memory is no part of the server's pool, of which physical memory on the host is. */
static void fill_host(void)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_DDR_MEM_HUGE,
				      .location = { .type = ACL_MEM_LOCATION_TYPE_HOST } };
	aclrtDrvMemHandle handle;
	void *memory;

	MUST(aclrtMallocHost(&memory, 64 * MIB));
	printf("code %d\n", aclrtMallocPhysical(&handle, (size_t)MIB << 20, &prop, 0));
	printf("message: %s\n", aclGetRecentErrMsg());
}

static void release_twice(void)
{
	aclrtDrvMemHandle handle = take_physical(2 * MIB);

	MUST(aclrtFreePhysical(handle));
	MUST(aclrtFreePhysical(handle));
}

#define FOUR_NOW(name) name##_##name##_##name##_##name
#define FOUR(name)     FOUR_NOW(name)
#define LONG_NAME      FOUR(FOUR(unmap_it_from_here)) /* 303 characters */

static void LONG_NAME(void *memory)
{
	MUST(aclrtUnmapMem(memory));
}

/* Half of it is mapped, and the other half was. */
static void copy_too_much(void)
{
	void *memory = NULL, *from = malloc(4 * MIB);

	MUST(aclrtReserveMemAddress(&memory, 4 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(memory, 2 * MIB, 0, take_physical(2 * MIB), 0));
	MUST(aclrtMapMem((char *)memory + 2 * MIB, 2 * MIB, 0, take_physical(2 * MIB), 0));
	LONG_NAME((char *)memory + 2 * MIB);
	for (int i = 0; i < 8; i++) /* texts lie elsewhere in their ring each time */
		MUST(aclrtMemcpy(memory, 4 * MIB, from, 4 * MIB, ACL_MEMCPY_HOST_TO_DEVICE));
	free(from);
}

static void destroy_twice(void)
{
	aclrtEvent first, next;

	MUST(aclrtCreateEvent(&first));
	MUST(aclrtDestroyEvent(first));
	MUST(aclrtDestroyEvent(first));
	MUST(aclrtCreateEvent(&next)); /* in its place */
	MUST(aclrtDestroyEvent(first));
}

/* And stays until its input ends. */
static void hold_on(void)
{
	aclrtDrvMemHandle shared = take_physical(2 * MIB), mapped = take_physical(4 * MIB);
	uint64_t shareable;
	void *memory;

	take(4 * MIB);
	MUST(aclrtMemExportToShareableHandle(shared, ACL_MEM_HANDLE_TYPE_NONE, 0, &shareable));
	MUST(aclrtReserveMemAddress(&memory, 4 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(memory, 4 * MIB, 0, mapped, 0));
	puts("ready");
	fflush(stdout);
	getchar();
}

static const struct {
	const char *name;
	void (*run)(void);
	bool without_device;
} cases[] = {
	{ "clean", clean, false },
	{ "lose", lose, false },
	{ "free_twice", free_twice, false },
	{ "find_two", find_two, false },
	{ "grow", grow, false },
	{ "warm_up", warm_up, false },
	{ "retain", retain, false },
	{ "call_back", call_back, false },
	{ "fork_late", fork_late, false },
	{ "fork_early", fork_early, true },
	{ "exec_other", exec_other, false },
	{ "fill_up", fill_up, false },
	{ "fill_host", fill_host, false },
	{ "release_twice", release_twice, false },
	{ "copy_too_much", copy_too_much, false },
	{ "destroy_twice", destroy_twice, false },
	{ "hold_on", hold_on, false },
};

int main(int argc, char **argv)
{
	words = argv;
	for (unsigned i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		MUST(aclInit(NULL));
		if (!cases[i].without_device)
			MUST(aclrtSetDevice(0));
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "usage: tool-program CASE\n");
	return 2;
}
