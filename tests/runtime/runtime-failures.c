/* SPDX-License-Identifier: Apache-2.0
 *
 * What the log has of calls that fail, and of a start-up that does: how often, in which words, and
 * what it does not have.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "harness/as-written.h"
#include "harness/test.h"
#include "npusim/npusim.h"

#define MIB (UINT64_C(1) << 20)

/* In a child: what is wanted must hold, or the child ends with another status. */
#define WANT(condition)                  \
	do {                             \
		if (!(condition))        \
			_exit(__LINE__); \
	} while (0)

/* How many lines of the last child have the text. */
static unsigned lines_with(const char *text)
{
	unsigned count = 0;

	for (const char *line = harness_last_stderr(), *end; *line != '\0'; line = end) {
		const char *found = strstr(line, text);

		end = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : line + strlen(line);
		count += found != NULL && found < end;
	}
	return count;
}

static aclrtPhysicalMemProp device_memory(void)
{
	return (aclrtPhysicalMemProp){ .memAttr = ACL_HBM_MEM_HUGE,
				       .location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
}

#define PROFILE "./runtime-failures.ini"

static void write_profile(void)
{
	FILE *file = fopen(PROFILE, "w");

	fputs("[Profile]\nbase=Ascend910B1\n[HBM]\nhbm_wings=2\n", file);
	fclose(file);
}

SETUP(failures)
{
	setenv("NPUSIM_LEAKS", "off", 1);
	setenv("NPUSIM_HBM", "256M", 1);
	write_profile();
}

TEARDOWN(failures)
{
	unlink(PROFILE);
}

/* ---- one line for each site and code ---- */

static void *reserved(void)
{
	void *va = NULL;

	WANT(aclInit(NULL) == 0 && aclrtSetDevice(0) == 0);
	WANT(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1) == 0);
	return va;
}

AS_WRITTEN static void prints_only_codes(void *arg)
{
	void *va = reserved();

	for (int i = 0; i < 5; i++)
		WANT(aclrtUnmapMem(va) == 507899);
	WANT(aclrtUnmapMem(va) == 507899);
	WANT(aclrtMapMem(va, 0, 0, NULL, 0) == 100000);
	WANT(aclrtReleaseMemAddress(va) == 0);
	exit(arg != NULL ? 1 : 0);
}

TEST(failures, each_site_and_code_is_told_once_and_counted_at_exit)
{
	EXPECT_EXIT(0, prints_only_codes, NULL);
	EXPECT_EQ(lines_with(" warn: aclrtUnmapMem: halMemUnmap: nothing is mapped at"), 2);
	EXPECT_EQ(lines_with(" (507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR, at runtime-failures+0x"),
		  3);
	EXPECT_EQ(lines_with(" warn: aclrtMapMem: handle is NULL"), 1);
	EXPECT_EQ(lines_with(" (100000 ACL_ERROR_INVALID_PARAM, at runtime-failures+0x"), 1);
	EXPECT_EQ(lines_with(" warn: 7 failures of 3 kinds; the first: aclrtUnmapMem: "), 1);
	EXPECT_EQ(lines_with(" warn: "), 4);
}

TEST(failures, each_is_told_at_info)
{
	setenv("NPUSIM_LOG", "info", 1);
	EXPECT_EXIT(0, prints_only_codes, NULL);
	unsetenv("NPUSIM_LOG");
	EXPECT_EQ(lines_with(" warn: "), 4);
	EXPECT_EQ(lines_with(" info: aclrtUnmapMem: halMemUnmap: nothing is mapped at"), 4);
}

static void frees_twice(void *arg)
{
	void *host;

	(void)arg;
	WANT(aclrtSetDevice(0) == 0 && aclrtMallocHost(&host, MIB) == 0);
	WANT(aclrtFreeHost(host) == 0);
	WANT(aclrtFreeHost(host) == 107000);
	WANT(npusim_driver_code() != 0);
	WANT(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 107000);
	WANT(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 107000);
	exit(0);
}

TEST(failures, a_call_is_named_first_and_once)
{
	EXPECT_EXIT(0, frees_twice, NULL);
	EXPECT_EQ(lines_with(" warn: aclrtFreeHost: hostPtr is 0x"), 1);
	EXPECT_EQ(lines_with(": drvMemGetAttribute: 0x"), 2); /* again at exit */
	EXPECT_EQ(lines_with(" aclrtFreeHost: drvMemGetAttribute"), 0);
	EXPECT_EQ(lines_with("LastError"), 0);
}

static void all_is_well(void *arg)
{
	void *va = reserved();
	aclrtEvent event;
	aclrtEventRecordedStatus status;
	aclrtStream stream;
	int32_t device = 0;

	(void)arg;
	WANT(aclrtCreateStream(&stream) == 0 && aclrtCreateEvent(&event) == 0);
	WANT(aclrtQueryEventStatus(event, &status) == 0);
	WANT(aclrtGetDevice(&device) == 0 && aclrtProcessReport(1) != 0);
	WANT(aclrtSubscribeReport((uint64_t)pthread_self(), stream) == 0);
	WANT(aclrtProcessReport(1) == 507012); /* there is nothing to report */
	WANT(aclrtReleaseMemAddress(va) == 0);
	exit(0);
}

/* aclrtProcessReport without a subscription is the caller's mistake, and the only line. */
TEST(failures, answers_to_questions_are_none)
{
	EXPECT_EXIT(0, all_is_well, NULL);
	EXPECT_EQ(lines_with("aclrtProcessReport"), 2);
	EXPECT_EQ(lines_with(" warn: "), 2);
}

static void fails_at_many_sites(void *arg)
{
	char path[] = "0";

	(void)arg;
	/* One site, a thousand codes' worth of work: the table of kinds does not grow. */
	for (int i = 0; i < 100000; i++)
		WANT(aclInit("/nonexistent") != 0 && aclrtFreePhysical(NULL) == 100000);
	WANT(aclInit(path) != 0);
	exit(0);
}

TEST(failures, many_are_counted)
{
	EXPECT_EXIT(0, fails_at_many_sites, NULL);
	EXPECT_EQ(lines_with(" warn: 200001 failures of 3 kinds; the first: aclInit: "), 1);
	EXPECT_EQ(lines_with(" warn: "), 4);
}

/* ---- what allocators try ---- */

/* As the expandable segments of torch_npu do: a segment grows until the device is full, then gives
 * back what it has cached, and tries again; before that, whether there are 1 GiB pages. */
AS_WRITTEN static void allocator(void *arg)
{
	aclrtPhysicalMemProp prop = device_memory(), giant = device_memory();
	aclrtDrvMemHandle handles[256], handle;
	unsigned count = 0;

	(void)arg;
	WANT(aclrtSetDevice(0) == 0);
	giant.memAttr = ACL_HBM_MEM_HUGE1G;
	for (int round = 0; round < 3; round++) {
		WANT(aclrtMallocPhysical(&handle, 1024 * MIB, &giant, 0) != 0);
		while (aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0) == 0) {
			WANT(count < 256);
			handles[count++] = handle;
		}
		WANT(aclrtMallocPhysical(&handle, 20 * MIB, &prop, 0) == 207001);
		while (count > 8)
			WANT(aclrtFreePhysical(handles[--count]) == 0);
	}
	while (count > 0)
		WANT(aclrtFreePhysical(handles[--count]) == 0);
	exit(0);
}

TEST(failures, an_allocator_that_tries_prints_one_line)
{
	EXPECT_EXIT(0, allocator, NULL);
	EXPECT_EQ(lines_with("npusim["), 1);
	EXPECT_EQ(lines_with(" warn: 9 failures of 3 kinds, 9 of them such as programs try; "
			     "the first: aclrtMallocPhysical: "),
		  1);
}

/* ---- processes ---- */

AS_WRITTEN static void forks(void *arg)
{
	int status = -1;
	pid_t child;

	WANT(aclrtFreePhysical(NULL) == 100000 && aclrtUnmapMem(NULL) == 100000);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			WANT(aclrtUnmapMem(NULL) == 100000);
		exit(0);
	}
	WANT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	exit(arg != NULL ? 1 : 0);
}

TEST(failures, a_child_of_fork_counts_anew)
{
	EXPECT_EXIT(0, forks, NULL);
	EXPECT_EQ(lines_with(" warn: 3 failures of 1 kind; the first: aclrtUnmapMem: "), 1);
	EXPECT_EQ(lines_with(" warn: 2 failures of 2 kinds; the first: aclrtFreePhysical: "), 1);
}

/* ---- a start-up that fails ---- */

static const struct start_case {
	const char *label, *name, *value;
	const char *error; /* of it the log has, once */
} starts[] = {
	{ "soc", "NPUSIM_SOC", "Ascend910B9",
	  "NPUSIM_SOC=Ascend910B9: there is no SoC Ascend910B9; known are" },
	{ "soc_case", "NPUSIM_SOC", "ascend910b1", "Ascend910_9392, H100; is Ascend910B1 meant?" },
	{ "fault_call", "NPUSIM_FAULT", "halMemCraete:2:oom", "is halMemCreate meant?" },
	{ "fault_kind", "NPUSIM_FAULT", "halMemMap:2:ooom",
	  "in 'halMemMap:2:ooom' the end is not oom, busy, invalid, notsupport" },
	{ "trace_folder", "NPUSIM_TRACE", "/nonexistent/calls.npt",
	  "NPUSIM_TRACE=/nonexistent/calls.npt cannot be written: its folder does not exist" },
	{ "trace_is_folder", "NPUSIM_TRACE", "/tmp",
	  "NPUSIM_TRACE=/tmp cannot be written: it is a folder" },
	{ "hbm", "NPUSIM_HBM", "3M", "NPUSIM_HBM=3M: HBM of a device is a multiple of 2 MiB" },
	{ "devices", "NPUSIM_DEVICES", "17", "NPUSIM_DEVICES=17 is not valid: it takes" },
	{ "profile", "NPUSIM_SOC", "/nonexistent/p.ini", "NPUSIM_SOC=/nonexistent/p.ini" },
	{ "profile_key", "NPUSIM_SOC", PROFILE,
	  "NPUSIM_SOC=" PROFILE ": unknown key \"hbm_wings\" in group [HBM]; known are" },
	{ "backend", "NPUSIM_BACKEND", "simulator", "NPUSIM_BACKEND=simulator is not valid" },
};

static void cannot_start(void *arg)
{
	const struct start_case *c = arg;
	size_t bytes;

	setenv(c->name, c->value, 1);
	for (int i = 0; i < 3; i++) {
		WANT(aclInit(NULL) == 500000);
		WANT(aclrtSetDevice(0) == 500000);
		WANT(aclrtGetMemInfo(ACL_HBM_MEM, &bytes, &bytes) != 0);
		WANT(aclrtFreeHost(&bytes) == 500000);
		WANT(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 500000);
	}
	exit(0);
}

TEST_EACH(failures, start_is_told_once, starts, label)
{
	const struct start_case *c = param;

	EXPECT_EXIT(0, cannot_start, (void *)c);
	EXPECT_EQ(lines_with(" error: "), 1);
	EXPECT_EQ(lines_with(c->error), 2); /* the last line is the count's */
	EXPECT_EQ(lines_with(" warn: 12 failures of "), 1);
}

TEST_EACH(failures, start_is_checked_without_one, starts, label)
{
	const struct start_case *c = param;
	char *old = getenv(c->name) != NULL ? strdup(getenv(c->name)) : NULL;
	char *error;

	error = npusim_settings_check();
	EXPECT_NULL(error);
	setenv(c->name, c->value, 1);
	error = npusim_settings_check();
	if (old != NULL)
		setenv(c->name, old, 1);
	else
		unsetenv(c->name);
	if (EXPECT_NOT_NULL(error))
		EXPECT_CONTAINS(error, c->error);
	free(error);
	free(old);
}

/* ---- names of variables ---- */

static void unknown_variable(void *arg)
{
	pid_t child;
	int status;

	(void)arg;
	setenv("NPUSIM_SOCC", "x", 1);
	for (int i = 0; i < 2; i++) {
		uint32_t count;

		WANT(aclrtGetDeviceCount(&count) == 0);
		child = fork();
		if (child == 0) {
			WANT(aclrtSetDevice(0) == 0);
			exit(0);
		}
		WANT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}
	WANT(aclrtSetDevice(0) == 0);
	exit(0);
}

TEST(failures, an_unknown_variable_is_warned_of_once)
{
	EXPECT_EXIT(0, unknown_variable, NULL);
	EXPECT_EQ(lines_with("NPUSIM_SOCC is no variable of npusim; is NPUSIM_SOC meant?"), 1);
	EXPECT_EQ(lines_with("npusim["), 1);
}
