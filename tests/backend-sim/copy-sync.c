/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronous copies and fills: arguments, directions, what lies at addresses, what is said where
 * nothing does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "queue-rig.h"

#define COPY(dst, max, src, count) \
	npu_call(rig, drvMemcpy, (DVdeviceptr)(dst), max, (DVdeviceptr)(src), count)
#define FILL(dst, max, value, num) npu_call(rig, drvMemsetD8, (DVdeviceptr)(dst), max, value, num)

static unsigned char *plain;

SETUP(copy_sync)
{
	rig_open();
	plain = malloc(8 * MIB);
	memset(plain, 0x33, 8 * MIB);
}

TEARDOWN(copy_sync)
{
	free(plain);
	rig_close();
}

static const char *said(void)
{
	return npu_call(rig, npusimLastMessage);
}

TEST(copy_sync, there_and_back)
{
	uint64_t a = rig_map(0, 4 * MIB), b = rig_alloc(0, 4 * MIB);
	unsigned char *back = malloc(4 * MIB), *pinned = rig_pinned(4 * MIB);

	for (size_t i = 0; i < 4 * MIB; i++)
		plain[i] = (unsigned char)(i * 13 + i / 977);
	EXPECT_EQ(COPY(a, 4 * MIB, plain, 4 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(b, 4 * MIB, a, 4 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(pinned, 4 * MIB, b, 4 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(back, 4 * MIB, pinned, 4 * MIB), DRV_ERROR_NONE);
	EXPECT_MEMEQ(back, plain, 4 * MIB);
	/* an odd piece at odd places */
	EXPECT_EQ(COPY(b + 1, 12345, a + 2 * MIB - 77, 12345), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(back, 12347, b, 12347), DRV_ERROR_NONE);
	EXPECT_EQ(back[0], plain[0]);
	EXPECT_MEMEQ(back + 1, plain + 2 * MIB - 77, 12345);
	EXPECT_EQ(back[12346], plain[12346]);
	free(back);
}

TEST(copy_sync, fresh_memory_reads_as_zeros)
{
	uint64_t a = rig_map(1, 2 * MIB);
	static const unsigned char zeros[4096];

	EXPECT_EQ(COPY(plain, 4096, a + 2 * MIB - 4096, 4096), DRV_ERROR_NONE);
	EXPECT_MEMEQ(plain, zeros, 4096);
}

TEST(copy_sync, fills)
{
	uint64_t a = rig_map(0, 2 * MIB);

	EXPECT_EQ(FILL(a, 2 * MIB, 0x5a, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(FILL(a + 3, 100, 7, 5), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain, 16, a, 16), DRV_ERROR_NONE);
	EXPECT_MEMEQ(plain, "ZZZ\7\7\7\7\7ZZZZZZZZ", 16);
	EXPECT_EQ(FILL(plain, 8 * MIB, 9, 5), DRV_ERROR_NONE);
	EXPECT_EQ(plain[4], 9);
	EXPECT_EQ(plain[5], 7);
}

TEST(copy_sync, one_copy_over_many_mappings)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE };
	drv_mem_handle_t *handle;
	void *va = NULL;

	ASSERT_EQ(npu_call(rig, halMemAddressReserve, &va, 8 * MIB, 0, NULL, 1), DRV_ERROR_NONE);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bytes = i == 2 ? 4 * MIB : 2 * MIB;

		ASSERT_EQ(npu_call(rig, halMemCreate, &handle, bytes, &prop, 0), DRV_ERROR_NONE);
		ASSERT_EQ(npu_call(rig, halMemMap, (char *)va + i * 2 * MIB, bytes, 0, handle, 0),
			  DRV_ERROR_NONE);
	}
	EXPECT_EQ(COPY(va, 8 * MIB, plain, 8 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(FILL((char *)va + MIB, 7 * MIB, 7, 6 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain, 8 * MIB, va, 8 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(plain[MIB - 1], 0x33);
	EXPECT_EQ(plain[MIB], 7);
	EXPECT_EQ(plain[7 * MIB - 1], 7);
	EXPECT_EQ(plain[7 * MIB], 0x33);
}

TEST(copy_sync, host_memory_behind_a_handle)
{
	struct drv_mem_prop prop = { .side = MEM_HOST_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_DDR_TYPE };
	uint64_t device = rig_alloc(0, 2 * MIB);
	drv_mem_handle_t *handle;
	void *va = NULL, *other = NULL;

	ASSERT_EQ(npu_call(rig, halMemAddressReserve, &va, 2 * MIB, 0, NULL, 1), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemCreate, &handle, 2 * MIB, &prop, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemMap, va, 2 * MIB, 0, handle, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemAddressReserve, &other, 2 * MIB, 0, NULL, 1), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemCreate, &handle, 2 * MIB, &prop, 0), DRV_ERROR_NONE);
	ASSERT_EQ(npu_call(rig, halMemMap, other, 2 * MIB, 0, handle, 0), DRV_ERROR_NONE);
	EXPECT_EQ(FILL(va, 2 * MIB, 0x44, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(other, 2 * MIB, va, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(device, 2 * MIB, other, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain, 1, device + 2 * MIB - 1, 1), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 0x44);
	EXPECT_EQ(COPY(plain, 1, va, 1), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 0x44);
}

/* ---- arguments ---- */

TEST(copy_sync, arguments)
{
	uint64_t a = rig_alloc(0, 2 * MIB);

	EXPECT_EQ(COPY(a, MIB, plain, 2 * MIB), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(said(), "dest_max");
	EXPECT_EQ(COPY(0, MIB, plain, MIB), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(COPY(a, MIB, 0, MIB), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(COPY(a, 0, plain, 0), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(COPY(a, MIB, plain, 0), DRV_ERROR_NONE);
	EXPECT_EQ(FILL(a, 1, 0, 2), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(FILL(a, 1, 0, 0), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(FILL(0, 1, 0, 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(COPY(a, UINT64_MAX, plain, UINT64_MAX - 4096), DRV_ERROR_IOCRL_FAIL);
}

TEST(copy_sync, what_is_not_mapped)
{
	uint64_t a = rig_map_part(0, 4 * MIB, 2 * MIB);

	EXPECT_EQ(COPY(a + MIB, 2 * MIB, plain, 2 * MIB), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "dst: byte 1048576 of ");
	EXPECT_CONTAINS(said(), "nothing mapped here");
	EXPECT_EQ(COPY(a + MIB, MIB, plain, MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain, 1, a + 2 * MIB, 1), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 0 of ");
	EXPECT_EQ(FILL(a + 2 * MIB - 1, 2, 0, 2), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(npu_call(rig, halMemUnmap, (void *)a), DRV_ERROR_NONE);
	EXPECT_EQ(FILL(a, 16, 1, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(npu_call(rig, halMemAddressFree, (void *)a), DRV_ERROR_NONE);
	EXPECT_EQ(FILL(a, 16, 1, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "not allocated");
}

TEST(copy_sync, what_is_no_memory_of_the_program)
{
	uint64_t a = rig_alloc(0, 2 * MIB);
	unsigned char *two = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(two, MAP_FAILED);
	ASSERT_EQ(munmap(two + 2 * 4096, 4096), 0);
	EXPECT_EQ(COPY(a, 100, 0x10, 100), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 0");
	EXPECT_EQ(COPY(a, 8192, two, 8192), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(a, 8193, two, 8193), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 8192 of ");
	EXPECT_EQ(COPY(two, 100, a, 100), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "dst: byte 0");
	EXPECT_EQ(COPY(two, 100, plain, 100), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(FILL(two, 100, 1, 100), DRV_ERROR_IOCRL_FAIL);
	munmap(two, 8192);
}

TEST(copy_sync, protected_page_of_a_local_array)
{
	_Alignas(65536) unsigned char array[4 * 65536];
	uint64_t a = rig_alloc(0, 65536);

	ASSERT_EQ(mprotect(array + 2 * 65536, 65536, PROT_READ), 0);
	EXPECT_EQ(COPY(array + 2 * 65536, 100, a, 100), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "its protection is in the way");
	EXPECT_EQ(COPY(a, 100, array + 2 * 65536, 100), DRV_ERROR_NONE);
	ASSERT_EQ(mprotect(array + 2 * 65536, 65536, PROT_READ | PROT_WRITE), 0);
}

/* A sandbox that closes behind the first copies: of this thread alone. */
static void *copy_without_words(void *failed)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE_OP_PRIVATE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };
	uint64_t a = rig_alloc(0, 2 * MIB);
	drvError_t *result = failed;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return NULL;
	*result = COPY(plain, 8, a, 8);
	return result;
}

TEST(copy_sync, word_that_a_sandbox_refuses)
{
	drvError_t result = DRV_ERROR_NONE;
	uint64_t a = rig_alloc(0, 2 * MIB);
	pthread_t thread;
	void *ran;

	ASSERT_EQ(COPY(plain, 8, a, 8), DRV_ERROR_NONE);
	ASSERT_EQ(pthread_create(&thread, NULL, copy_without_words, &result), 0);
	ASSERT_EQ(pthread_join(thread, &ran), 0);
	if (!ran)
		SKIP("no seccomp here");
	EXPECT_EQ(result, DRV_ERROR_NONE);
}

/* Small memory is tried by a word, which changes none, large memory by its mappings. */
TEST(copy_sync, hole_anywhere_in_memory_of_the_program)
{
	static const size_t sizes[] = { 4, 8, 12, 4096, 8192, 4 * MIB };
	const size_t room = 4 * MIB + 131072;
	unsigned char *at =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t a = rig_alloc(0, 4 * MIB);

	ASSERT_NE(at, MAP_FAILED);
	memset(at, 0x44, room);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *from = at + 65536 + 3 - sizes[i] % 65536;
		unsigned char *hole = at + (sizes[i] > 65536 ? 2 * MIB : 65536);

		errno = 0;
		EXPECT_EQ(COPY(a, 4 * MIB, from, sizes[i]), DRV_ERROR_NONE);
		EXPECT_EQ(COPY(from, 4 * MIB, a, sizes[i]), DRV_ERROR_NONE);
		EXPECT_EQ(errno, 0);
		memset(at, 0x55, room);
		ASSERT_EQ(mprotect(hole, 65536, PROT_READ), 0);
		EXPECT_EQ(COPY(from, 4 * MIB, a, sizes[i]), DRV_ERROR_IOCRL_FAIL);
		EXPECT_CONTAINS(said(), "no writable memory");
		EXPECT_EQ(from[0], 0x55);
		EXPECT_EQ(COPY(a, 4 * MIB, from, sizes[i]), DRV_ERROR_NONE);
		ASSERT_EQ(mprotect(hole, 65536, PROT_NONE), 0);
		EXPECT_EQ(COPY(a, 4 * MIB, from, sizes[i]), DRV_ERROR_IOCRL_FAIL);
		EXPECT_CONTAINS(said(), "no readable memory");
		EXPECT_CONTAINS(said(), npu_text("src: byte %zu of", (size_t)(hole - from)));
		ASSERT_EQ(mprotect(hole, 65536, PROT_READ | PROT_WRITE), 0);
	}
	munmap(at, room);
}

/* The heap has holes where the program makes them: by its protection, or by a shrink. */
TEST(copy_sync, hole_in_the_heap)
{
	const size_t room = 4 * 65536;
	unsigned char *at = sbrk((intptr_t)room), *hole = (void *)(((uintptr_t)at | 65535) + 1);
	uint64_t a = rig_alloc(0, 2 * MIB);

	if (at == (void *)-1)
		SKIP("the heap does not grow by sbrk() here");
	EXPECT_EQ(COPY(a, 16, hole, 16), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(hole, 16, a, 16), DRV_ERROR_NONE);
	ASSERT_EQ(mprotect(hole, 65536, PROT_READ), 0);
	EXPECT_EQ(COPY(a, 16, hole - 8, 16), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(hole - 8, 16, a, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(COPY(hole - 9, 9, a, 9), DRV_ERROR_NONE);
	ASSERT_EQ(mprotect(hole, 65536, PROT_NONE), 0);
	EXPECT_EQ(COPY(a, 16, hole - 8, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 8 of");
	ASSERT_EQ(mprotect(hole, 65536, PROT_READ | PROT_WRITE), 0);
	if (sbrk(0) != at + room || sbrk(-(intptr_t)room) == (void *)-1)
		SKIP("something else has grown the heap");
	EXPECT_EQ(COPY(a, 16, hole, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(COPY(hole, 16, a, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "unmapped by the program");
}

TEST(copy_sync, pages_that_nothing_has_touched)
{
	unsigned char *at = mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t a = rig_alloc(0, 4 * MIB);

	EXPECT_EQ(COPY(a, 8, at + MIB, 8), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(a, 4 * MIB, at, 4 * MIB), DRV_ERROR_NONE);
	munmap(at, 4 * MIB);
}

TEST(copy_sync, mapped_file_that_ends)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	uint64_t a = rig_alloc(0, 4 * MIB);
	unsigned char *at;

	ASSERT_EQ(ftruncate(fd, 2 * MIB), 0);
	at = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(at, MAP_FAILED);
	EXPECT_EQ(COPY(a, 2 * MIB, at, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(a, 4 * MIB, at, 4 * MIB), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 2097152 of");
	EXPECT_EQ(COPY(a, 16, at + 2 * MIB - 8, 16), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 8 of");
	munmap(at, 4 * MIB);
	close(fd);
}

/* A guard page, which no mapping shows. Linux 6.13. */
TEST(copy_sync, guard_page)
{
	unsigned char *at =
		mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t a = rig_alloc(0, 4 * MIB);

	memset(at, 1, 4 * MIB);
	if (madvise(at + MIB, 65536, 102 /* MADV_GUARD_INSTALL */) != 0)
		SKIP("needs guard pages");
	EXPECT_EQ(COPY(a, 4 * MIB, at, 4 * MIB), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "src: byte 1048576 of");
	EXPECT_EQ(COPY(at, 4 * MIB, a, 4 * MIB), DRV_ERROR_IOCRL_FAIL);
	munmap(at, 4 * MIB);
}

/* ---- two devices ---- */

TEST(copy_sync, classic_memory_of_two_devices)
{
	uint64_t a = rig_alloc(0, 2 * MIB), b = rig_alloc(1, 2 * MIB);

	EXPECT_EQ(FILL(a, 2 * MIB, 5, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(b, 2 * MIB, a, 2 * MIB), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "aclrtDeviceEnablePeerAccess(0, 0) with device 1 current");
	rig_peer(0, 1); /* the source's engine writes */
	EXPECT_EQ(COPY(b, 2 * MIB, a, 2 * MIB), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain, 1, b, 1), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 5);
}

static bool always(void)
{
	return true;
}

TEST(copy_sync, mapped_memory_of_two_devices)
{
	uint64_t a = rig_map(0, 2 * MIB), b = rig_map(1, 2 * MIB), c = rig_alloc(1, 2 * MIB);

	rig_peer(1, 0);
	npu_call(rig, npusimDocumentedBy, always);
	EXPECT_EQ(COPY(b, 2 * MIB, a, 2 * MIB), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "aclrtMemcpyAsync");
	EXPECT_EQ(COPY(c, 2 * MIB, a, 2 * MIB), DRV_ERROR_IOCRL_FAIL);
	npu_call(rig, npusimDocumentedBy, NULL);
	EXPECT_EQ(COPY(b, 2 * MIB, a, 2 * MIB), DRV_ERROR_NONE);
}

/* ---- two dimensions, batches ---- */

TEST(copy_sync, two_dimensions)
{
	uint64_t a = rig_alloc(0, 2 * MIB);
	struct MEMCPY2D to = { .type = DEVMM_MEMCPY2D_SYNC };

	to.copy2d = (struct drvMem2D){ .dst = (void *)a,
				       .dpitch = 32,
				       .src = (void *)plain,
				       .spitch = 64,
				       .width = 16,
				       .height = 100,
				       .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	for (unsigned i = 0; i < 6400; i++)
		plain[i] = (unsigned char)(i / 64);
	ASSERT_EQ(FILL(a, 3200, 0xff, 3200), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_NONE);
	EXPECT_EQ(COPY(plain + MIB, 3200, a, 3200), DRV_ERROR_NONE);
	EXPECT_EQ(plain[MIB + 99 * 32 + 15], 99);
	EXPECT_EQ(plain[MIB + 99 * 32 + 16], 0xff);
	to.copy2d.direction = DRV_MEMCPY_DEVICE_TO_HOST;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_PARA_ERROR);
	to.copy2d.direction = DRV_MEMCPY_DEVICE_TO_DEVICE;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_NOT_SUPPORT);
	to.copy2d.direction = DRV_MEMCPY_HOST_TO_DEVICE;
	to.copy2d.width = 33;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_INVALID_VALUE);
	to.copy2d.width = to.copy2d.dpitch = to.copy2d.spitch = 4096;
	to.copy2d.height = 513; /* a page too far: and nothing moves */
	plain[0] = 0x77;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(COPY(plain, 1, a, 1), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 0);
	to.type = 3;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &to), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(npu_call(rig, halMemcpy2D, NULL), DRV_ERROR_INVALID_VALUE);
}

TEST(copy_sync, batches)
{
	uint64_t a = rig_map_part(0, 4 * MIB, 2 * MIB), b = rig_alloc(1, 2 * MIB);
	uint64_t dst[] = { a, b, (uint64_t)plain + MIB },
		 src[] = { (uint64_t)plain, (uint64_t)plain, a };
	size_t size[] = { 100, 200, 100 };

	memset(plain, 3, 200);
	EXPECT_EQ(npu_call(rig, halMemcpyBatch, dst, src, size, 3), DRV_ERROR_NONE);
	EXPECT_EQ(plain[MIB + 99], 3);
	memset(plain, 4, 200);
	dst[2] = a + 2 * MIB;
	src[2] = (uint64_t)plain;
	EXPECT_EQ(npu_call(rig, halMemcpyBatch, dst, src, size, 3), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(said(), "copy 2 of the batch");
	EXPECT_EQ(COPY(plain, 1, a, 1), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 3); /* nothing has moved */
	dst[2] = b;
	src[2] = b;
	EXPECT_EQ(npu_call(rig, halMemcpyBatch, dst, src, size, 3), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(npu_call(rig, halMemcpyBatch, dst, src, size, 4097), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(npu_call(rig, halMemcpyBatch, dst, src, size, 0), DRV_ERROR_PARA_ERROR);
}

TEST(copy_sync, prefetch)
{
	uint64_t a = rig_alloc(0, 2 * MIB);

	EXPECT_EQ(npu_call(rig, drvMemPrefetchToDevice, a, 2 * MIB, 1), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, drvMemPrefetchToDevice, a, 3 * MIB, 1), DRV_ERROR_IOCRL_FAIL);
	EXPECT_EQ(npu_call(rig, drvMemPrefetchToDevice, a, 2 * MIB, 2), DRV_ERROR_INVALID_DEVICE);
	EXPECT_EQ(npu_call(rig, drvMemPrefetchToDevice, (uint64_t)plain, 2 * MIB, 1),
		  DRV_ERROR_INVALID_VALUE);
}

/* ---- time ---- */

TEST(copy_sync, more_bytes_take_longer)
{
	uint64_t a = rig_alloc(0, 64 * MIB), b = rig_alloc(0, 64 * MIB), begin = rig_now(), small,
		 large;

	EXPECT_EQ(COPY(b, 4096, a, 4096), DRV_ERROR_NONE);
	small = rig_now() - begin;
	begin = rig_now();
	EXPECT_EQ(COPY(b, 64 * MIB, a, 64 * MIB), DRV_ERROR_NONE);
	large = rig_now() - begin;
	EXPECT_GT(small, 0u);
	EXPECT_GT(large, small * 2);
}
