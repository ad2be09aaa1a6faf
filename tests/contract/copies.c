/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills through libascendcl.so that a case cannot say: order in a stream, when bytes
 * move, rows, batches, patterns.
 */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define MIB (UINT64_C(1) << 20)
#define OK  ACL_SUCCESS

static aclrtStream stream;

SETUP(copies)
{
	ASSERT_EQ(aclrtSetDevice(0), OK);
	ASSERT_EQ(aclrtCreateStream(&stream), OK);
}

TEARDOWN(copies)
{
	EXPECT_EQ(aclrtDestroyStream(stream), OK);
	EXPECT_EQ(aclrtResetDevice(0), OK);
}

static uint8_t *device_bytes(size_t size)
{
	void *va = NULL;

	EXPECT_EQ(aclrtMalloc(&va, size, ACL_MEM_MALLOC_HUGE_FIRST), OK);
	EXPECT_EQ(aclrtMemset(va, size, 0, size), OK);
	return va;
}

static uint8_t *pinned_bytes(size_t size, int value)
{
	void *va = NULL;

	EXPECT_EQ(aclrtMallocHost(&va, size), OK);
	if (va != NULL)
		memset(va, value, size);
	return va;
}

/* True if all of [from, from + size) on the device is `value`. */
static bool device_is(const uint8_t *from, size_t size, uint8_t value)
{
	uint8_t *bytes = malloc(size);
	bool same = bytes != NULL &&
		    aclrtMemcpy(bytes, size, from, size, ACL_MEMCPY_DEVICE_TO_HOST) == OK;

	for (size_t i = 0; same && i < size; i++)
		same = bytes[i] == value;
	free(bytes);
	return same;
}

TEST(copies, queued_copy_arrives_when_it_is_done)
{
	const size_t size = 32 * MIB;
	uint8_t *from = device_bytes(size), *to = pinned_bytes(size, 1);
	bool early = false;

	/* The queue is also served when a program calls nothing for a while: a slow machine gets
	 * several tries. */
	for (int i = 0; i < 20 && !early; i++) {
		memset(to, 1, size);
		ASSERT_EQ(aclrtMemcpyAsync(to, size, from, size, ACL_MEMCPY_DEVICE_TO_HOST, stream),
			  OK);
		early = *(volatile uint8_t *)(to + size - 1) == 1;
		ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
		EXPECT_EQ(to[0], 0);
		EXPECT_EQ(to[size - 1], 0);
	}
	EXPECT_TRUE(early);
	EXPECT_EQ(aclrtFree(from), OK);
	EXPECT_EQ(aclrtFreeHost(to), OK);
}

TEST(copies, stream_keeps_the_order)
{
	const size_t size = 4 * MIB;
	uint8_t *a = device_bytes(size), *b = device_bytes(size), *c = pinned_bytes(size, 0);

	ASSERT_EQ(aclrtMemsetAsync(a, size, 1, size, stream), OK);
	ASSERT_EQ(aclrtMemcpyAsync(b, size, a, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), OK);
	ASSERT_EQ(aclrtMemsetAsync(a, size, 2, size, stream), OK);
	ASSERT_EQ(aclrtMemcpyAsync(c, size, b, size, ACL_MEMCPY_DEFAULT, stream), OK);
	ASSERT_EQ(aclrtMemcpyAsync(b, size, a, size, ACL_MEMCPY_DEFAULT, stream), OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_TRUE(device_is(a, size, 2));
	EXPECT_TRUE(device_is(b, size, 2));
	EXPECT_EQ(c[0], 1);
	EXPECT_EQ(c[size - 1], 1);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFree(b), OK);
	EXPECT_EQ(aclrtFreeHost(c), OK);
}

/* Pageable memory: the call returns when the copy is done, after what the stream had to do before.
 */
TEST(copies, pageable_memory_is_done_on_return)
{
	const size_t size = 2 * MIB;
	uint8_t *a = device_bytes(size), *plain = malloc(size);

	ASSERT_EQ(aclrtMemsetAsync(a, size, 7, size, stream), OK);
	ASSERT_EQ(aclrtMemcpyAsync(plain, size, a, size, ACL_MEMCPY_DEVICE_TO_HOST, stream), OK);
	EXPECT_EQ(plain[0], 7);
	EXPECT_EQ(plain[size - 1], 7);
	memset(plain, 8, size);
	ASSERT_EQ(aclrtMemcpyAsync(a, size, plain, size, ACL_MEMCPY_HOST_TO_DEVICE, stream), OK);
	free(plain);
	EXPECT_TRUE(device_is(a, size, 8));
	EXPECT_EQ(aclrtFree(a), OK);
}

TEST(copies, buffered_source_is_free_on_return)
{
	const size_t size = 3 * MIB;
	uint8_t *a = device_bytes(size), *plain = malloc(size), *pinned = pinned_bytes(size, 6);

	memset(plain, 5, size);
	ASSERT_EQ(aclrtMemcpyAsync(a, size, plain, size, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
		  OK);
	memset(plain, 9, size);
	free(plain);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_TRUE(device_is(a, size, 5));
	ASSERT_EQ(aclrtMemcpyAsync(a, size, pinned, size, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
		  OK);
	memset(pinned, 9, size);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_TRUE(device_is(a, size, 6));
	EXPECT_EQ(aclrtMemcpyAsync(pinned, size, a, size, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(pinned), OK);
}

TEST(copies, fills_end_where_they_are_told)
{
	static const size_t sizes[] = { 1, 3, 65536, 65537, 200000, 5 * MIB + 3 };
	const size_t size = 8 * MIB, start = 12345;
	uint8_t *a = device_bytes(size);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		NOTE("%zu bytes", sizes[i]);
		ASSERT_EQ(aclrtMemset(a, size, 1, size), OK);
		ASSERT_EQ(aclrtMemsetAsync(a + start, size - start, 0x102, sizes[i], stream), OK);
		ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
		EXPECT_TRUE(device_is(a, start, 1));
		EXPECT_TRUE(device_is(a + start, sizes[i], 2));
		EXPECT_TRUE(device_is(a + start + sizes[i], size - start - sizes[i], 1));
	}
	EXPECT_EQ(aclrtMemsetAsync(a, 4, 0, 5, stream), ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtMemsetAsync(a, 4, 0, 0, stream), OK);
	EXPECT_EQ(aclrtFree(a), OK);
}

TEST(copies, fills_host_memory_in_order)
{
	const size_t size = 100000;
	uint8_t *a = device_bytes(size), *p = pinned_bytes(size, 0);

	ASSERT_EQ(aclrtMemcpyAsync(p, size, a, size, ACL_MEMCPY_DEFAULT, stream), OK);
	ASSERT_EQ(aclrtMemsetAsync(p, size, 3, size, stream), OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_EQ(p[0], 3);
	EXPECT_EQ(p[size - 1], 3);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

TEST(copies, words_are_repeated)
{
	const size_t words = 700001;
	uint32_t *a = (uint32_t *)device_bytes(words * 4 + 8),
		 *p = (uint32_t *)pinned_bytes(words * 4, 0);
	uint32_t *seen = malloc(words * 4 + 8), plain = 0;

	ASSERT_EQ(aclrtMemsetD32(a + 1, words * 4, 0xdeadbeef, words), OK);
	ASSERT_EQ(aclrtMemcpy(seen, words * 4 + 8, a, words * 4 + 8, ACL_MEMCPY_DEFAULT), OK);
	EXPECT_EQ(seen[0], 0u);
	EXPECT_EQ(seen[1], 0xdeadbeefu);
	EXPECT_EQ(seen[words], 0xdeadbeefu);
	EXPECT_EQ(seen[words + 1], 0u);
	ASSERT_EQ(aclrtMemsetD32Async(a + 1, words * 4, 0x01020304, words, stream), OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	ASSERT_EQ(aclrtMemcpy(seen, words * 4 + 8, a, words * 4 + 8, ACL_MEMCPY_DEFAULT), OK);
	for (size_t i = 1; i <= words; i++)
		ASSERT_EQ(seen[i], 0x01020304u);
	EXPECT_EQ(seen[words + 1], 0u);
	ASSERT_EQ(aclrtMemsetD32(p, words * 4, 0x0a0b0c0d, words), OK);
	EXPECT_EQ(p[words - 1], 0x0a0b0c0du);
	EXPECT_EQ(aclrtMemsetD32((char *)a + 2, 4, 0, 1), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemsetD32(a, 7, 0, 2), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemsetD32(a, SIZE_MAX, 0, SIZE_MAX), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemsetD32(&plain, 4, 0, 1), ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemsetD32(a, 0, 0, 0), OK);
	free(seen);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

/* ---- rows ---- */

#define ROWS  100u
#define WIDTH 1000u
#define PITCH 1024u

static void check_rows(bool async, bool pageable)
{
	uint8_t *a = device_bytes(ROWS * PITCH),
		*p = pageable ? malloc(ROWS * WIDTH) : pinned_bytes(ROWS * WIDTH, 0);
	uint8_t *back = pageable ? malloc(ROWS * WIDTH) : pinned_bytes(ROWS * WIDTH, 0);

	for (unsigned i = 0; i < ROWS * WIDTH; i++)
		p[i] = (uint8_t)(i / WIDTH + 1);
	if (async) {
		ASSERT_EQ(aclrtMemcpy2dAsync(a, PITCH, p, WIDTH, WIDTH, ROWS,
					     ACL_MEMCPY_HOST_TO_DEVICE, stream),
			  OK);
		ASSERT_EQ(aclrtMemcpy2dAsync(back, WIDTH, a, PITCH, WIDTH, ROWS,
					     ACL_MEMCPY_DEVICE_TO_HOST, stream),
			  OK);
		ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	} else {
		ASSERT_EQ(aclrtMemcpy2d(a, PITCH, p, WIDTH, WIDTH, ROWS, ACL_MEMCPY_HOST_TO_DEVICE),
			  OK);
		ASSERT_EQ(aclrtMemcpy2d(back, WIDTH, a, PITCH, WIDTH, ROWS,
					ACL_MEMCPY_DEVICE_TO_HOST),
			  OK);
	}
	EXPECT_MEMEQ(back, p, ROWS * WIDTH);
	EXPECT_TRUE(device_is(a + 41 * PITCH, WIDTH, 42));
	EXPECT_TRUE(device_is(a + 41 * PITCH + WIDTH, PITCH - WIDTH, 0));
	EXPECT_EQ(aclrtFree(a), OK);
	if (pageable) {
		free(p);
		free(back);
	} else {
		EXPECT_EQ(aclrtFreeHost(p), OK);
		EXPECT_EQ(aclrtFreeHost(back), OK);
	}
}

TEST(copies, rows)
{
	check_rows(false, false);
}

TEST(copies, rows_of_pageable_memory)
{
	check_rows(false, true);
}

TEST(copies, rows_in_a_stream)
{
	check_rows(true, false);
}

TEST(copies, rows_of_pageable_memory_in_a_stream)
{
	check_rows(true, true);
}

TEST(copies, rows_between_devices_addresses)
{
	uint8_t *a = device_bytes(ROWS * PITCH), *b = device_bytes(ROWS * PITCH);

	ASSERT_EQ(aclrtMemset(a, ROWS * PITCH, 4, ROWS * PITCH), OK);
	ASSERT_EQ(aclrtMemcpy2dAsync(b, PITCH, a, PITCH, 10, ROWS, ACL_MEMCPY_DEVICE_TO_DEVICE,
				     stream),
		  OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_TRUE(device_is(b + (ROWS - 1) * PITCH, 10, 4));
	EXPECT_TRUE(device_is(b + (ROWS - 1) * PITCH + 10, PITCH - 10, 0));
	ASSERT_EQ(aclrtMemcpy2dAsync(b, PITCH, a, PITCH, PITCH, ROWS, ACL_MEMCPY_DEFAULT, stream),
		  OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_TRUE(device_is(b, ROWS * PITCH, 4));
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFree(b), OK);
}

TEST(copies, rows_are_checked)
{
	uint8_t *a = device_bytes(4096), plain[4096] = { 0 };

	EXPECT_EQ(aclrtMemcpy2d(NULL, 16, plain, 16, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpy2d(a, 4, plain, 16, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpy2d(a, 16, plain, 16, 8, 2, ACL_MEMCPY_HOST_TO_HOST),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpy2d(a, 16, plain, 16, 0, 2, ACL_MEMCPY_HOST_TO_DEVICE), OK);
	EXPECT_EQ(aclrtMemcpy2d(a, 16, plain, 16, 8, 0, ACL_MEMCPY_HOST_TO_DEVICE), OK);
	EXPECT_EQ(aclrtMemcpy2d(a, 16, a, 16, 8, 2, ACL_MEMCPY_DEVICE_TO_DEVICE),
		  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	EXPECT_EQ(aclrtMemcpy2d(a, 16, plain, 16, 8, 6000000, ACL_MEMCPY_HOST_TO_DEVICE),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(
		aclrtMemcpy2d(a, SIZE_MAX, plain, SIZE_MAX, 6000000, 1, ACL_MEMCPY_HOST_TO_DEVICE),
		ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtMemcpy2dAsync(plain, 16, plain, 16, 8, 2, ACL_MEMCPY_DEFAULT, stream),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtFree(a), OK);
}

/* ---- batches ---- */

static aclrtMemcpyBatchAttr to_device(void)
{
	aclrtMemcpyBatchAttr attr = { 0 };

	attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	attr.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
	return attr;
}

static aclrtMemcpyBatchAttr to_host(void)
{
	aclrtMemcpyBatchAttr attr = { 0 };

	attr.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
	return attr;
}

TEST(copies, batch_of_both_directions)
{
	const size_t size = 64 * 1024;
	uint8_t *a = device_bytes(size), *b = device_bytes(size), *p = pinned_bytes(size, 3),
		plain[100];
	void *dsts[] = { a, a + 1000, plain }, *srcs[] = { p, p, b };
	size_t sizes[] = { 500, 24, sizeof(plain) }, maxs[] = { 500, 1000, sizeof(plain) },
	       indexes[] = { 0, 2 }, fail = 7;
	aclrtMemcpyBatchAttr attrs[] = { to_device(), to_host() };

	memset(plain, 9, sizeof(plain));
	ASSERT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 3, attrs, indexes, 2, &fail), OK);
	EXPECT_EQ(fail, SIZE_MAX);
	EXPECT_TRUE(device_is(a, 500, 3));
	EXPECT_TRUE(device_is(a + 500, 500, 0));
	EXPECT_TRUE(device_is(a + 1000, 24, 3));
	EXPECT_EQ(plain[99], 0);
	memset(plain, 9, sizeof(plain));
	memset(p, 4, size);
	ASSERT_EQ(
		aclrtMemcpyBatchAsync(dsts, maxs, srcs, sizes, 3, attrs, indexes, 2, &fail, stream),
		OK);
	ASSERT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_EQ(fail, SIZE_MAX);
	EXPECT_TRUE(device_is(a, 500, 4));
	EXPECT_EQ(plain[99], 0);
	EXPECT_EQ(aclrtMemcpyBatchV2(dsts, maxs, srcs, sizes, 3, attrs, indexes, 2), OK);
	EXPECT_EQ(aclrtMemcpyBatchAsyncV2(dsts, maxs, srcs, sizes, 3, attrs, indexes, 2, stream),
		  OK);
	EXPECT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFree(b), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

TEST(copies, batch_says_which_copy_is_wrong)
{
	uint8_t *a = device_bytes(4096), *p = pinned_bytes(4096, 1);
	void *dsts[] = { a, p, a }, *srcs[] = { p, p, p };
	size_t sizes[] = { 8, 8, 8 }, maxs[] = { 8, 8, 8 }, indexes[] = { 0, 1 }, fail = 7;
	aclrtMemcpyBatchAttr attrs[] = { to_device(), to_device() };

	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 3, attrs, indexes, 1, &fail),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(fail, 1u);
	EXPECT_CONTAINS(aclGetRecentErrMsg(), "[1]");
	EXPECT_EQ(
		aclrtMemcpyBatchAsync(dsts, maxs, srcs, sizes, 3, attrs, indexes, 1, &fail, stream),
		ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(fail, 1u);
	dsts[1] = a;
	attrs[1].dstLoc.id = 1;
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 3, attrs, indexes, 2, &fail),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(fail, 1u);
	EXPECT_EQ(aclrtSynchronizeStream(stream), OK);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

TEST(copies, batch_is_checked)
{
	uint8_t *a = device_bytes(4096), *p = pinned_bytes(4096, 1);
	void *dsts[] = { a, a + 8 }, *srcs[] = { p, p };
	size_t sizes[] = { 8, 8 }, maxs[] = { 8, 8 }, none[] = { 0, 0 }, indexes[] = { 0, 1 },
	       fail = 7;
	size_t wrong[] = { 1, 1 }, small[] = { 8, 7 };
	aclrtMemcpyBatchAttr attrs[] = { to_device(), to_device() };

	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 2, attrs, indexes, 1, NULL),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, NULL, 2, attrs, indexes, 1, &fail),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 0, attrs, indexes, 1, &fail),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(fail, SIZE_MAX);
	EXPECT_EQ(aclrtMemcpyBatch(NULL, maxs, srcs, sizes, 2, attrs, indexes, 1, &fail),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpyBatch(NULL, NULL, NULL, none, 2, NULL, NULL, 0, &fail), OK);
	EXPECT_EQ(aclrtMemcpyBatch(dsts, small, srcs, sizes, 2, attrs, indexes, 1, &fail),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 2, attrs, indexes, 0, &fail),
		  ACL_ERROR_RT_PARAM_INVALID);
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 2, attrs, wrong, 1, &fail),
		  ACL_ERROR_RT_PARAM_INVALID);
	wrong[0] = 0;
	wrong[1] = 2;
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 2, attrs, wrong, 2, &fail),
		  ACL_ERROR_RT_PARAM_INVALID);
	attrs[0].rsv[15] = 1;
	EXPECT_EQ(aclrtMemcpyBatch(dsts, maxs, srcs, sizes, 2, attrs, indexes, 1, &fail),
		  ACL_ERROR_INVALID_PARAM);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

/* A length that a subtraction took below 0, or that is longer than any memory: no pieces of it are
 * queued. */
TEST(copies, length_beyond_all_addresses)
{
	const size_t lengths[] = { (size_t)0 - 4096, SIZE_MAX / 2, (size_t)1 << 48, (size_t)1 << 44,
				   ((size_t)1 << 43) + 4096 };
	uint8_t *a = device_bytes(MIB), *p = pinned_bytes(4096, 1);
	void *dsts[] = { a, a + 8 }, *srcs[] = { p, p };
	size_t first = 0, fail = 7;
	aclrtMemcpyBatchAttr attr = to_device();

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const size_t n = lengths[i] & ~(size_t)3;
		size_t sizes[] = { 8, n };

		NOTE("%zu bytes", n);
		EXPECT_EQ(aclrtMemcpyAsync(a, n, a + 4096, n, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
			  ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_TRUE(strstr(aclGetRecentErrMsg(), "end of the address space") != NULL);
		EXPECT_EQ(aclrtMemcpyAsync(a, n, p, n, ACL_MEMCPY_HOST_TO_DEVICE, stream),
			  ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_EQ(aclrtMemcpyAsync(p, n, a, n, ACL_MEMCPY_DEVICE_TO_HOST, stream),
			  ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_EQ(aclrtMemsetAsync(a, n, 1, n, stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_EQ(aclrtMemsetD32Async(a, n, 1, n / 4, stream),
			  ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_EQ(aclrtMemcpyBatchAsync(dsts, sizes, srcs, sizes, 2, &attr, &first, 1,
						&fail, stream),
			  ACL_ERROR_RT_DRV_INTERNAL_ERROR);
		EXPECT_EQ(fail, 1u);
		EXPECT_EQ(aclrtSynchronizeStream(stream), OK);
		EXPECT_TRUE(device_is(a, 8, 1)); /* the batch's first */
		ASSERT_EQ(aclrtMemset(a, MIB, 0, MIB), OK);
	}
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtFreeHost(p), OK);
}

/* ---- between devices ---- */

TEST(copies, asynchronous_between_devices)
{
	const size_t size = 2 * MIB;
	uint32_t devices = 0;
	uint8_t *a = device_bytes(size), *b;

	ASSERT_EQ(aclrtGetDeviceCount(&devices), OK);
	if (devices < 2) {
		EXPECT_EQ(aclrtFree(a), OK);
		SKIP("needs two devices");
	}
	ASSERT_EQ(aclrtMemset(a, size, 8, size), OK);
	ASSERT_EQ(aclrtSetDevice(1), OK);
	b = device_bytes(size);
	ASSERT_EQ(aclrtDeviceEnablePeerAccess(0, 0), OK);
	ASSERT_EQ(aclrtMemcpyAsync(b, size, a, size, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL), OK);
	ASSERT_EQ(aclrtSynchronizeStream(NULL), OK);
	EXPECT_TRUE(device_is(b, size, 8));
	EXPECT_EQ(aclrtFree(b), OK);
	EXPECT_EQ(aclrtResetDevice(1), OK);
	ASSERT_EQ(aclrtSetDevice(0), OK);
	EXPECT_EQ(aclrtFree(a), OK);
	EXPECT_EQ(aclrtResetDevice(0), OK); /* the second aclrtSetDevice of this test */
}
