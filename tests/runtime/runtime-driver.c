/* SPDX-License-Identifier: Apache-2.0
 *
 * Which driver is chosen, what stands where one lacks a function, and the layers over a driver: the
 * hooks, faults, trace.
 */
#include "harness/test.h"

#include "driver/layer.h"
#include "fake/count-layer.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

SETUP(driver)
{
	unsetenv("NPUSIM_FAULT");
	unsetenv("NPUSIM_TRACE");
	unsetenv("NPUSIM_BACKEND");
}

TEST(driver, unknown_backend_is_an_error)
{
	char *error = NULL;

	EXPECT_NULL(npu_driver_open("hardware", &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error, "there is no backend 'hardware'");
	EXPECT_CONTAINS(error, "hw");
	free(error);
}

TEST(driver, close_of_null_is_allowed)
{
	npu_driver_close(NULL);
}

TEST(driver, table_of_errors)
{
	static const int rows[][2] = {
		{ 0, 0 },       { 1, 207004 },      { 2, 107001 },     { 3, 107000 },
		{ 4, 107017 },  { 5, 107018 },      { 6, 207001 },     { 7, 507899 },
		{ 8, 507899 },  { 10, 207015 },     { 11, 507899 },    { 13, 507899 },
		{ 14, 207005 }, { 16, 507012 },     { 17, 507899 },    { 25, 507901 },
		{ 27, 507051 }, { 33, 507010 },     { 37, 207012 },    { 38, 507899 },
		{ 40, 207005 }, { 42, 507899 },     { 43, 507000 },    { 46, 207006 },
		{ 47, 207007 }, { 48, 207008 },     { 49, 207009 },    { 50, 207010 },
		{ 51, 507899 }, { 58, 107000 },     { 74, 507052 },    { 75, 207013 },
		{ 76, 207014 }, { 82, 507037 },     { 83, 107000 },    { 84, 207011 },
		{ 89, 207020 }, { 0xfffe, 207000 }, { 99999, 507899 }, { -1, 507899 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		NOTE("driver's code %d", rows[i][0]);
		EXPECT_EQ(driver_code_acl(rows[i][0]), rows[i][1]);
	}
}

TEST(driver, missing_functions_answer)
{
	struct npu_driver drv = { .abi = NPU_DRIVER_ABI, .size = sizeof(drv), .name = "empty" };
	uint64_t ps = 5;

	npu_driver_complete(&drv);
	EXPECT_EQ(npu_call(&drv, halMemMap, NULL, 0, 0, NULL, 0), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(npu_call(&drv, npusimNow, &ps), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(ps, 5);
	EXPECT_EQ(npu_call(&drv, drvDeviceGetBareTgid), -1);
	EXPECT_FALSE(npu_call(&drv, halSupportFeature, 0, 0));
	EXPECT_NULL(npu_call(&drv, npusimLastMessage));
}

static drvError_t seven(struct npu_driver *self, uint32_t *num)
{
	(void)self;
	*num = 7;
	return DRV_ERROR_NONE;
}

/* Memory of a size that the compiler does not see. */
__attribute__((noinline)) static struct npu_driver *old_driver(size_t size)
{
	return calloc(1, size);
}

/* A driver of an older list is shorter memory: nothing may be written or read behind it. */
TEST(driver, shorter_table_is_completed)
{
	size_t size = offsetof(struct npu_driver, drvGetDevNum) + sizeof(void *);
	struct npu_driver *old = old_driver(size), *drv;
	uint32_t num = 0;

	memcpy(old,
	       &(struct npu_driver){
		       .abi = NPU_DRIVER_ABI, .size = (uint32_t)size, .name = "old", .caps = 5 },
	       offsetof(struct npu_driver, drvGetPlatformInfo));
	old->drvGetDevNum = seven;
	drv = npu_driver_complete(old);
	ASSERT_NOT_NULL(drv);
	ASSERT_NE((uintptr_t)drv, (uintptr_t)old);
	EXPECT_STREQ(drv->name, "old");
	EXPECT_EQ(drv->caps, 5);
	EXPECT_EQ(npu_call(drv, drvGetDevNum, &num), DRV_ERROR_NONE);
	EXPECT_EQ(num, 7);
	EXPECT_EQ(npu_call(drv, drvGetPlatformInfo, &num), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(npu_call(drv, halMemUnmap, NULL), DRV_ERROR_NOT_SUPPORT);
	drv->lower = NULL;
	npu_driver_close(drv);
	free(old);
}

TEST(driver, names_of_calls)
{
	const char *nearest = "";

	EXPECT_EQ(driver_op_by_name("halMemCreate", &nearest), DRIVER_OP_halMemCreate);
	EXPECT_EQ(driver_op_by_name("mem_create", &nearest), DRIVER_OP_halMemCreate);
	EXPECT_EQ(driver_op_by_name("MemCreate", &nearest), DRIVER_OP_halMemCreate);
	EXPECT_EQ(driver_op_by_name("drv_memcpy", &nearest), DRIVER_OP_drvMemcpy);
	EXPECT_EQ(driver_op_by_name("zzzzzzzz", &nearest), DRIVER_OP_COUNT);
	EXPECT_NULL(nearest);
	EXPECT_EQ(driver_op_by_name("mem_craete", &nearest), DRIVER_OP_COUNT);
	EXPECT_STREQ(nearest, "halMemCreate");
	EXPECT_STREQ(driver_op_name(DRIVER_OP_halMemMap), "halMemMap");
}

TEST(layer, counts_what_it_forwards)
{
	struct npu_driver *fake = fake_driver_open(2), *drv = count_layer_open(fake);
	uint32_t num = 0;

	npu_driver_complete(fake);
	EXPECT_EQ(npu_call(drv, drvGetDevNum, &num), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(drv, drvGetDevNum, &num), DRV_ERROR_NONE);
	EXPECT_EQ(num, 2);
	EXPECT_EQ(count_layer_calls(drv, DRIVER_OP_drvGetDevNum), 2);
	EXPECT_EQ(count_layer_calls(drv, DRIVER_OP_halMemMap), 0);
	npu_driver_close(drv);
}

/* ---- faults ---- */

static struct npu_driver *faulty(const char *spec)
{
	struct npu_driver *fake = fake_driver_open(2), *drv;
	char *error = NULL;

	npu_driver_complete(fake);
	drv = fault_layer_open(fake, spec, &error);
	if (drv == NULL) {
		ADD_FAILURE("%s", error);
		free(error);
		npu_driver_close(fake);
	}
	return drv;
}

/* The codes of six calls of drvGetDevNum, as letters: '.' none. */
static const char *six_calls(struct npu_driver *drv)
{
	static char text[8];
	uint32_t num;

	for (int i = 0; i < 6; i++) {
		drvError_t code = npu_call(drv, drvGetDevNum, &num);

		text[i] = code == DRV_ERROR_NONE            ? '.'
			  : code == DRV_ERROR_OUT_OF_MEMORY ? 'o'
			  : code == DRV_ERROR_BUSY          ? 'b'
							    : '?';
	}
	text[6] = '\0';
	return text;
}

static const struct fault_case {
	const char *label, *spec, *calls;
} fault_cases[] = {
	{ "third", "drvGetDevNum:3:oom", "..o..." },
	{ "from_fourth", "get_dev_num:4+:busy", "...bbb" },
	{ "every_second", "GetDevNum:every:2:6", ".o.o.o" },
	{ "any_call", "*:2:busy", ".b...." },
	{ "each_call", "*::busy", "bbbbbb" },
	{ "first_rule_wins", "drvGetDevNum:2:oom,*:2+:busy", ".obbbb" },
	{ "other_call", "halMemMap:1+:busy", "......" },
};

TEST_EACH(fault, calls, fault_cases, label)
{
	const struct fault_case *c = param;
	struct npu_driver *drv = faulty(c->spec);

	ASSERT_NOT_NULL(drv);
	EXPECT_STREQ(six_calls(drv), c->calls);
	npu_driver_close(drv);
}

TEST(fault, says_what_it_did)
{
	struct npu_driver *drv = faulty("drvGetDevNum:1:oom");
	uint32_t num;

	ASSERT_NOT_NULL(drv);
	EXPECT_EQ(npu_call(drv, drvGetDevNum, &num), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_STREQ(npu_call(drv, npusimLastMessage),
		     "NPUSIM_FAULT: call 1 of drvGetDevNum was made to fail with 6");
	EXPECT_EQ(npu_call(drv, drvGetDevNum, &num), DRV_ERROR_NONE);
	EXPECT_NULL(npu_call(drv, npusimLastMessage));
	npu_driver_close(drv);
}

static const struct bad_spec {
	const char *label, *spec, *error;
} bad_specs[] = {
	{ "unknown_call", "mem_craete:1:oom", "is halMemCreate meant?" },
	{ "no_parts", "halMemCreate", "a part is missing" },
	{ "two_parts", "halMemCreate:oom", "a part is missing" },
	{ "when", "halMemCreate:x:oom", "the number of a call" },
	{ "when_zero", "halMemCreate:0:oom", "the number of a call" },
	{ "how", "halMemCreate:1:sometimes", "oom, busy, invalid, notsupport" },
	{ "how_zero", "halMemCreate:1:0", "oom, busy, invalid, notsupport" },
	{ "link_how", "link:1:oom", "lost or a time such as 20us" },
	{ "link_unit", "link3:1:20ms", "lost or a time such as 20us" },
	{ "link_zero", "link3:1:0us", "lost or a time such as 20us" },
	{ "link_long", "link3:1:1000000001us", "lost or a time such as 20us" },
	{ "link_when", "link3:0:lost", "the number of a call" },
	{ "link_server", "link48:1:lost", "servers are numbered 0 to 47" },
	{ "link_word", "linked:1:lost", "no such call" },
	{ "link_of_no_model", "link3:1:lost", "the model alone has links" },
	{ "no_code", "halSupportFeature:1:oom", "answers no code" },
	{ "own_call", "npusimNow:1:oom", "answers no code" },
	{ "empty", ",", "there is no rule" },
	{ "second_is_wrong", "halMemCreate:1:oom,halMemMap", "in 'halMemMap'" },
};

TEST_EACH(fault, refuses, bad_specs, label)
{
	const struct bad_spec *c = param;
	struct npu_driver drv = { .size = sizeof(drv) };
	char *error = NULL;

	EXPECT_NULL(fault_layer_open(&drv, c->spec, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error, "NPUSIM_FAULT: ");
	EXPECT_CONTAINS(error, c->error);
	if (strstr(error, "the model alone") == NULL)
		EXPECT_CONTAINS(error, "CALL:WHEN:HOW");
	free(error);
}

/* ---- the trace ---- */

static int next_handle = 0x1000;

static drvError_t t_reserve(struct npu_driver *self, void **ptr, size_t size, size_t alignment,
			    void *addr, uint64_t flag)
{
	(void)self;
	(void)alignment;
	(void)flag;
	if (size == 0)
		return DRV_ERROR_INVALID_VALUE;
	*ptr = addr != NULL ? addr : (void *)(uintptr_t)0x12c000000000;
	return DRV_ERROR_NONE;
}

static drvError_t t_one(struct npu_driver *self, void *ptr)
{
	(void)self;
	return ptr == NULL ? DRV_ERROR_INVALID_VALUE : DRV_ERROR_NONE;
}

static drvError_t t_create(struct npu_driver *self, drv_mem_handle_t **handle, size_t size,
			   const struct drv_mem_prop *prop, uint64_t flag)
{
	(void)self;
	(void)prop;
	(void)flag;
	if (size == 3)
		return DRV_ERROR_OUT_OF_MEMORY;
	*handle = (drv_mem_handle_t *)(uintptr_t)(next_handle += 0x10);
	return DRV_ERROR_NONE;
}

static drvError_t t_release(struct npu_driver *self, drv_mem_handle_t *handle)
{
	return t_one(self, handle);
}

static drvError_t t_retain(struct npu_driver *self, drv_mem_handle_t **handle, void *ptr)
{
	(void)self;
	(void)ptr;
	*handle = (drv_mem_handle_t *)(uintptr_t)next_handle;
	return DRV_ERROR_NONE;
}

static drvError_t t_map(struct npu_driver *self, void *ptr, size_t size, size_t offset,
			drv_mem_handle_t *handle, uint64_t flag)
{
	(void)self;
	(void)ptr;
	(void)size;
	(void)offset;
	(void)handle;
	(void)flag;
	return DRV_ERROR_NONE;
}

static drvError_t t_export(struct npu_driver *self, drv_mem_handle_t *handle,
			   drv_mem_handle_type type, uint64_t flags, uint64_t *share)
{
	(void)self;
	(void)handle;
	(void)type;
	(void)flags;
	*share = 42;
	return DRV_ERROR_NONE;
}

static drvError_t t_copy(struct npu_driver *self, DVdeviceptr dst, size_t dest_max, DVdeviceptr src,
			 size_t count)
{
	(void)self;
	(void)dst;
	(void)dest_max;
	(void)src;
	(void)count;
	return DRV_ERROR_NONE;
}

static drvError_t t_rows(struct npu_driver *self, struct MEMCPY2D *copy)
{
	(void)self;
	if (copy->type == DEVMM_MEMCPY2D_ASYNC_CONVERT)
		copy->copy2dAsync.dmaAddr->fixed_size = 64;
	return copy->type > DEVMM_MEMCPY2D_ASYNC_DESTROY ? DRV_ERROR_INVALID_VALUE : DRV_ERROR_NONE;
}

/* The last 4 of 6 rows, by descriptors. */
static void trace_rows(struct npu_driver *drv, char *va, char *host)
{
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };

	copy.copy2dAsync.dmaAddr = &dma;
	copy.copy2dAsync.copy2dInfo = (struct drvMem2D){ .dst = (void *)va,
							 .dpitch = 1024,
							 .src = (void *)host,
							 .spitch = 16,
							 .width = 16,
							 .height = 6,
							 .fixed_size = 32 };
	npu_call(drv, halMemcpy2D, &copy);
	copy.type = DEVMM_MEMCPY2D_ASYNC_DESTROY;
	npu_call(drv, halMemcpy2D, &copy);
	copy.type = DEVMM_MEMCPY2D_ASYNC_DESTROY + 1;
	npu_call(drv, halMemcpy2D, &copy);
	npu_call(drv, halCqReportIrqWait, 0, NULL, NULL);
	npu_call(drv, halCqReportGet, 0, NULL, NULL);
}

static void trace_some(struct npu_driver *drv)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .devid = 1,
				     .pg_type = MEM_GIANT_PAGE_TYPE };
	char *va = NULL, host[4];
	void *ptr;
	drv_mem_handle_t *handle, *again;
	uint64_t share;
	uint32_t num;

	npu_call(drv, halMemAddressReserve, &ptr, 0, 0, NULL, 1);
	npu_call(drv, halMemAddressReserve, &ptr, 1 << 22, 0, NULL, 1);
	va = ptr;
	npu_call(drv, halMemCreate, &handle, 2 << 20, &prop, 0);
	npu_call(drv, halMemCreate, &again, 3, &prop, 0);
	npu_call(drv, halMemMap, va + (2 << 20), 2 << 20, 0, handle, 0);
	npu_call(drv, halMemRetainAllocationHandle, &again, va + (2 << 20));
	npu_call(drv, halMemExportToShareableHandle, handle, MEM_HANDLE_TYPE_NONE, 0, &share);
	npu_call(drv, drvMemcpy, (DVdeviceptr)(uintptr_t)va + (2 << 20) + 5, 4,
		 (DVdeviceptr)(uintptr_t)host, 4);
	trace_rows(drv, va + (2 << 20), host);
	npu_call(drv, halMemUnmap, va + (2 << 20));
	npu_call(drv, halMemRelease, handle);
	npu_call(drv, halMemRelease, again);
	npu_call(drv, halMemRelease, again);
	npu_call(drv, halMemAddressFree, va);
	npu_call(drv, halMemAddressFree, va);
	npu_call(drv, drvGetDevNum, &num);
	npu_call(drv, halMemGetInfo, 0, 0, NULL);
}

/* The text of a trace without its first two lines and the stamps. */
static void read_lines(const char *path, char *out, size_t room)
{
	FILE *file = fopen(path, "r");
	char line[512];
	unsigned number = 0;

	out[0] = '\0';
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		char *text = line;

		if (number++ < 2) {
			if (number == 1)
				EXPECT_STREQ(line, "npusim-trace 1\n");
			else
				EXPECT_CONTAINS(line, "info program=");
			continue;
		}
		EXPECT_EQ(text[0], '@');
		EXPECT_CONTAINS(text, " :1.1 ");
		text = strstr(text, ":1.1 ") + 5;
		if (strlen(out) + strlen(text) < room)
			strcat(out, text);
	}
	fclose(file);
}

TEST(trace, names_and_codes)
{
	char path[] = "/tmp/npusim-trace-XXXXXX", text[4096], *error = NULL;
	struct npu_driver *fake = fake_driver_open(2), *drv;
	int fd = mkstemp(path);

	ASSERT_GE(fd, 0);
	close(fd);
	fake->halMemAddressReserve = t_reserve;
	fake->halMemAddressFree = t_one;
	fake->halMemCreate = t_create;
	fake->halMemRelease = t_release;
	fake->halMemRetainAllocationHandle = t_retain;
	fake->halMemMap = t_map;
	fake->halMemUnmap = t_one;
	fake->halMemExportToShareableHandle = t_export;
	fake->drvMemcpy = t_copy;
	fake->halMemcpy2D = t_rows;
	npu_driver_complete(fake);
	drv = trace_layer_open(fake, path, &error);
	ASSERT_NOT_NULL(drv);
	trace_some(drv);
	npu_driver_close(drv);
	read_lines(path, text, sizeof(text));
	EXPECT_STREQ(text, "reserve r1 size=0 flags=1 va=0x0 => 107000\n"
			   "reserve r2 size=4194304 flags=1 va=0x12c000000000\n"
			   "create h1 size=2097152 device=1 page=1g\n"
			   "create h2 size=3 device=1 page=1g => 207001\n"
			   "map r2+2097152 size=2097152 handle=h1\n"
			   "retain h1 at=r2+2097152\n"
			   "export s1 handle=h1 flags=0 key=0x2a\n"
			   "copy size=4 dst=r2+2097157 src=host\n"
			   "copy size=64 dst=r2+2099200 src=host\n"
			   "call op=halMemcpy2D\n"
			   "call op=halMemcpy2D => 107000\n"
			   "unmap r2+2097152\n"
			   "release h1\n"
			   "release h1\n"
			   "call op=halMemRelease\n"
			   "unreserve r2\n"
			   "call op=halMemAddressFree\n"
			   "call op=drvGetDevNum\n"
			   "call op=halMemGetInfo => 207000\n");
	unlink(path);
}

TEST(trace, a_file_that_cannot_be_is_an_error)
{
	struct npu_driver drv = { .size = sizeof(drv), .name = "none" };
	char *error = NULL;

	npu_driver_complete(&drv);
	EXPECT_NULL(trace_layer_open(&drv, "/nonexistent/file", &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error, "NPUSIM_TRACE=/nonexistent/file cannot be written");
	free(error);
}
