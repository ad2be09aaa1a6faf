/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that goes away under queued work: freed, unregistered, unmapped, protected, or cut
 * off with its file, before an entry's turn or while an engine has it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory.h"
#include "queue-rig.h"
#include "queue/queue.h"

#define BYTES (8 * MIB)
#define HALF  (BYTES / 2)

static struct rig_stream stream;
static uint64_t device;

/* Time stands still between calls. */
static void never_idle(void)
{
	struct bsim *bs = bsim_of(rig);

	bsim_lock(bs);
	bs->queues->idle_ns = UINT64_C(3600000000000);
	bsim_unlock(bs);
}

static unsigned char *map_some(int fd)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		ADD_FAILURE("no memory");
	else
		memset(at, 7, BYTES);
	return at;
}

static void device_fill(int byte)
{
	EXPECT_EQ(npu_call(rig, drvMemsetD8, device, BYTES, (uint8_t)byte, BYTES), DRV_ERROR_NONE);
}

static int device_byte(uint64_t offset)
{
	unsigned char byte = 0;

	EXPECT_EQ(npu_call(rig, drvMemcpy, (uintptr_t)&byte, 1, device + offset, 1),
		  DRV_ERROR_NONE);
	return byte;
}

/* ---- where the kernel does not help ---- */

static void filter(struct sock_filter *rules, size_t count)
{
	struct sock_fprog program = { (unsigned short)count, rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(77);
}

static void forbid_moves(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter(rules, sizeof(rules) / sizeof(rules[0]));
}

/* As qemu-user: MADV_POPULATE_READ and _WRITE (22 and 23) answer 0, and nothing is done. */
static void let_populate_lie(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter(rules, sizeof(rules) / sizeof(rules[0]));
}

static void copy_without_the_kernel(void *arg)
{
	unsigned char *at;

	(void)arg;
	setenv("NPUSIM_LOG", "info", 1);
	setenv("NPUSIM_NODE", "queue-gone-child", 1);
	forbid_moves();
	rig_open();
	never_idle();
	rig_stream_open(&stream, 0, 8, 8);
	device = rig_alloc(0, BYTES);
	at = map_some(-1);
	rig_copy(&stream, device, (uintptr_t)at, BYTES, QUIET);
	rig_copy(&stream, device, (uintptr_t)at, BYTES, QUIET);
	rig_finish(&stream);
	EXPECT_EQ(device_byte(HALF), 7);
	munmap(at, BYTES);
	rig_copy(&stream, device, (uintptr_t)at, BYTES, REPORT); /* gone before its turn */
	EXPECT_EQ(rig_next(&stream).error_code, TS_ERROR_HOST_MEMORY);
}

/* The first of all, while no driver is open. */
TEST_CHILD(queue_alone, kernel_that_says_of_any_page_that_all_is_well)
{
	unsigned char *at;

	setenv("NPUSIM_NODE", "queue-gone-child", 1);
	let_populate_lie();
	rig_open();
	device = rig_alloc(0, BYTES);
	at = map_some(-1);
	EXPECT_EQ(npu_call(rig, drvMemcpy, device, BYTES, (uintptr_t)at, BYTES), DRV_ERROR_NONE);
	munmap(at, BYTES);
	EXPECT_EQ(npu_call(rig, drvMemcpy, device, BYTES, (uintptr_t)at, BYTES),
		  DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "unmapped by the program");
}

TEST(queue_alone, calls_that_are_filtered)
{
	const char *line;

	EXPECT_EXIT(0, copy_without_the_kernel, NULL);
	line = strstr(harness_last_stderr(), "process_vm_readv");
	ASSERT_NOT_NULL(line);
	EXPECT_NULL(strstr(line + 1, "process_vm_readv")); /* once */
}

/* ---- what the others need ---- */

SETUP(queue_gone)
{
	rig_open();
	never_idle();
	rig_stream_open(&stream, 0, 64, 64);
	device = rig_alloc(0, BYTES);
}

TEARDOWN(queue_gone)
{
	rig_close();
}

/* ---- the program's own memory ---- */

enum way { UNMAP, PROTECT, TRUNCATE };

static const struct gone_case {
	const char *title;
	bool to_host, queued;
	enum way way;
} gone_cases[] = {
	{ "from unmapped, under way", false, false, UNMAP },
	{ "from unmapped, before its turn", false, true, UNMAP },
	{ "to unmapped, under way", true, false, UNMAP },
	{ "to unmapped, before its turn", true, true, UNMAP },
	{ "from protected", false, true, PROTECT },
	{ "to protected, under way", true, false, PROTECT },
	{ "from a truncated file, under way", false, false, TRUNCATE },
	{ "from a truncated file, before its turn", false, true, TRUNCATE },
	{ "to a truncated file", true, false, TRUNCATE },
};

static void take_half(unsigned char *at, int fd, const struct gone_case *c)
{
	int rc = c->way == UNMAP     ? munmap(at + HALF, HALF)
		 : c->way == PROTECT ? mprotect(at + HALF, HALF, c->to_host ? PROT_READ : PROT_NONE)
				     : ftruncate(fd, HALF);

	EXPECT_EQ(rc, 0);
}

/* The upper half goes: the lower one is copied, and the report says where it ended. */
TEST_EACH(queue_gone, own_memory, gone_cases, title)
{
	const struct gone_case *c = param;
	int fd = c->way == TRUNCATE ? memfd_create("gone", 0) : -1;
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	struct stars_logic_cqe cqe;
	unsigned char *at;
	char where[32];

	if (fd >= 0)
		ASSERT_EQ(ftruncate(fd, BYTES), 0);
	at = map_some(fd);
	RETURN_IF_FATAL();
	device_fill(3);
	if (c->queued)
		rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	if (c->to_host)
		rig_copy(&stream, (uintptr_t)at, device, BYTES, REPORT);
	else
		rig_copy(&stream, device, (uintptr_t)at, BYTES, REPORT);
	take_half(at, fd, c);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	cqe = rig_next(&stream);
	EXPECT_EQ(cqe.error_type, STARS_ERROR_EXCEPTION);
	EXPECT_EQ(cqe.error_code, TS_ERROR_HOST_MEMORY);
	snprintf(where, sizeof(where), "0x%llx", (unsigned long long)(uintptr_t)(at + HALF));
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), where);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage),
			c->way == UNMAP ? "memory of this process: unmapped by the program"
					: "memory of this process: its protection");
	if (c->to_host)
		EXPECT_EQ(at[HALF - 1], 3);
	else
		EXPECT_EQ(device_byte(HALF - 1), 7);
	if (!c->to_host)
		EXPECT_EQ(device_byte(HALF), 3);
	rig_copy(&stream, device, device + HALF, 4096, QUIET); /* the queue goes on */
	rig_finish(&stream);
	munmap(at, c->way == UNMAP ? HALF : BYTES);
	if (fd >= 0)
		close(fd);
}

/* What is there is copied as it is, whatever the program has done with it. */
TEST(queue_gone, changed_memory_is_copied_as_it_is)
{
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	unsigned char *at = map_some(-1);

	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	rig_copy(&stream, device, (uintptr_t)at, BYTES, QUIET);
	munmap(at, BYTES);
	ASSERT_EQ(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0),
		  at);
	at[HALF] = 9;
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_finish(&stream);
	EXPECT_EQ(device_byte(HALF), 9);
	EXPECT_EQ(device_byte(0), 0);
	munmap(at, BYTES);
}

/* ---- the driver's: it stays ---- */

static void *pinned(uint64_t bytes)
{
	void *va = NULL;

	EXPECT_EQ(npu_call(rig, halMemAlloc, &va, bytes, MEM_HOST_VAL << MEM_VIRT_BIT),
		  DRV_ERROR_NONE);
	return va;
}

static uint64_t pinned_held(void)
{
	uint64_t count = 0;

	for (const struct allocation *a = LIST_FIRST(&bsim_of(rig)->allocs->held); a != NULL;
	     a = LIST_NEXT(a, link))
		count++;
	return count;
}

static const struct pinned_case {
	const char *title;
	uint64_t bytes;
	bool to_host, queued, destroyed;
} pinned_cases[] = {
	{ "from small, under way", 4096, false, false, false },
	{ "from small, before its turn", 4096, false, true, false },
	{ "from large, under way", BYTES, false, false, false },
	{ "from large, before its turn", BYTES, false, true, false },
	{ "to large, under way", BYTES, true, false, false },
	{ "to large, before its turn", BYTES, true, true, false },
	{ "its queue freed, under way", BYTES, false, false, true },
	{ "its queue freed, before its turn", BYTES, true, true, true },
};

TEST_EACH(queue_gone, pinned_memory, pinned_cases, title)
{
	const struct pinned_case *c = param;
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	struct bsim *bs = bsim_of(rig);
	unsigned char *at = pinned(c->bytes), *next;

	device_fill(3);
	memset(at, 7, c->bytes);
	if (c->queued)
		rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	if (c->to_host)
		rig_copy(&stream, (uintptr_t)at, device, c->bytes, QUIET);
	else
		rig_copy(&stream, device, (uintptr_t)at, c->bytes, QUIET);
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_NONE);
	if (c->queued) /* else the copy was done while the call took its time */
		EXPECT_EQ(pinned_held(), 1u);
	EXPECT_EQ(bs->allocs->count[NPU_PLACE_PINNED], 0u);
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "given back by aclrtFreeHost");
	next = pinned(c->bytes);
	if (c->queued)
		EXPECT_NE(next, at); /* taken as long as the copy is not done */
	if (c->destroyed) {
		rig_stream_close(&stream);
		rig_stream_open(&stream, 0, 64, 64);
	}
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_copy(&stream, device + HALF, (uintptr_t)next, 4096, QUIET);
	rig_finish(&stream);
	if (!c->to_host && !c->destroyed)
		EXPECT_EQ(device_byte(c->bytes - 1), 7);
	EXPECT_EQ(pinned_held(), 0u);
	EXPECT_EQ(npu_call(rig, halMemFree, next), DRV_ERROR_NONE);
}

/* Who comes after the free gets its code, also while the memory is there for others. */
TEST(queue_gone, sent_after_the_free)
{
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	unsigned char *at = pinned(4096);
	struct rig_stream late;

	rig_stream_open(&late, 0, 8, 8);
	memset(at, 7, 4096);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	rig_copy(&stream, device, (uintptr_t)at, 4096, QUIET);
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_NONE);
	rig_copy(&late, device + HALF, (uintptr_t)at, 4096, REPORT);
	EXPECT_EQ(rig_next(&late).error_code, TS_ERROR_SDMA_ERROR);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "given back by aclrtFreeHost");
	EXPECT_EQ(pinned_held(), 1u);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_finish(&stream);
	EXPECT_EQ(device_byte(0), 7);
	EXPECT_EQ(pinned_held(), 0u);
}

/* ---- a device's: it stays until the copy ends that has translated addresses to it ---- */

static void *device_memory(uint64_t bytes)
{
	void *at = NULL;

	EXPECT_EQ(npu_call(rig, halMemAlloc, &at, bytes,
			   (uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE |
				   (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT),
		  DRV_ERROR_NONE);
	return at;
}

TEST(queue_gone, device_memory_that_a_copy_reads)
{
	unsigned char *at = pinned(8 * BYTES);
	void *source = device_memory(8 * BYTES), *some[4];

	EXPECT_EQ(npu_call(rig, drvMemsetD8, (uintptr_t)source, 8 * BYTES, 7, 8 * BYTES),
		  DRV_ERROR_NONE);
	memset(at, 0, 8 * BYTES);
	rig_copy(&stream, (uintptr_t)at, (uintptr_t)source, 8 * BYTES, QUIET);
	for (unsigned i = 0; i < 4; i++) /* time passes, and the copy begins */
		some[i] = device_memory(BYTES);
	EXPECT_EQ(npu_call(rig, halMemFree, source), DRV_ERROR_NONE);
	rig_finish(&stream);
	EXPECT_EQ(at[0], 7);
	EXPECT_EQ(at[8 * BYTES - 1], 7);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQ(npu_call(rig, halMemFree, some[i]), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_NONE);
}

/* A row that waits for the engine behind another stream's copy, when its descriptors go. */
static const struct row_case {
	const char *title;
	bool destroyed, freed, closed;
} row_cases[] = {
	{ "descriptors destroyed", true, false, false },
	{ "queue freed, descriptors destroyed", true, true, false },
	{ "device closed", false, false, true },
};

TEST_EACH(queue_gone, row_that_an_engine_has, row_cases, title)
{
	const struct row_case *c = param;
	unsigned char *at = pinned(4096), *large = pinned(BYTES);
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	struct MEMCPY2D copy = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };
	struct stars_pcie_dma_sqe sqe = { .header.type = STARS_SQE_PCIE_DMA, .convert = 1 };
	struct rig_stream rows;

	memset(at, 7, 4096);
	memset(large, 3, BYTES);
	copy.copy2dAsync.dmaAddr = &dma;
	copy.copy2dAsync.copy2dInfo = (struct drvMem2D){ .dst = (void *)device,
							 .dpitch = 1024,
							 .src = (void *)at,
							 .spitch = 1024,
							 .width = 1024,
							 .height = 4,
							 .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	ASSERT_EQ(npu_call(rig, halMemcpy2D, &copy), DRV_ERROR_NONE);
	sqe.sq_addr_low = (uint32_t)(uintptr_t)dma.phyAddr.src;
	sqe.sq_tail_ptr = (uint16_t)dma.phyAddr.len;
	rig_stream_open(&rows, 0, 8, 8);
	for (int i = 0; i < 16; i++)
		rig_copy(&stream, device, (uintptr_t)large, BYTES, QUIET);
	ASSERT_EQ(rig_send(&rows, &sqe, QUIET, 0), DRV_ERROR_NONE);
	if (c->freed)
		rig_stream_close(&rows);
	copy.type = DEVMM_MEMCPY2D_ASYNC_DESTROY;
	if (c->destroyed)
		EXPECT_EQ(npu_call(rig, halMemcpy2D, &copy), DRV_ERROR_NONE);
	if (c->closed)
		rig_close();
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_NONE);
	EXPECT_EQ(pinned_held(), c->closed ? 2u : 1u); /* with the device's, where the rows go */
	if (c->closed)
		rig_open();
	else
		rig_finish(&stream);
	rig_stream_open(&rows, 0, 8, 8);
	device = rig_alloc(0, BYTES);
	rig_copy(&rows, device, (uintptr_t)large, BYTES, QUIET); /* after all that went before */
	rig_finish(&rows);
	EXPECT_EQ(pinned_held(), 0u);
	EXPECT_EQ(npu_call(rig, halMemFree, large), DRV_ERROR_NONE);
}

TEST(queue_gone, value_written_to_freed_memory)
{
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	uint64_t *at = pinned(4096);

	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	rig_write(&stream, (uintptr_t)at, 5, 3, QUIET);
	EXPECT_EQ(npu_call(rig, halMemFree, at), DRV_ERROR_NONE);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	rig_finish(&stream);
	EXPECT_EQ(pinned_held(), 0u);
}

/* ---- registered ---- */

static uint64_t registered(void *at)
{
	void *va = NULL;

	EXPECT_EQ(npu_call(rig, halHostRegister, at, BYTES, HOST_MEM_MAP_DEV, 0, &va),
		  DRV_ERROR_NONE);
	return (uintptr_t)va;
}

static const struct registered_case {
	const char *title;
	bool unmapped;
} registered_cases[] = { { "still there", false }, { "unmapped", true } };

TEST_EACH(queue_gone, unregistered_memory, registered_cases, title)
{
	const struct registered_case *c = param;
	uint32_t gate = rig_id(0, DRV_EVENT_ID);
	unsigned char *at = map_some(-1);
	uint64_t va = registered(at);

	device_fill(3);
	rig_event(&stream, STARS_SQE_EVENT_WAIT, 0, gate, 0, QUIET);
	rig_copy(&stream, device, va, BYTES, REPORT);
	EXPECT_EQ(npu_call(rig, halHostUnregister, at, 0), DRV_ERROR_NONE);
	if (c->unmapped)
		munmap(at, BYTES);
	EXPECT_EQ(rig_id_config(0, DRV_EVENT_ID, gate, DRV_ID_RECORD, 0), DRV_ERROR_NONE);
	EXPECT_EQ(rig_next(&stream).error_code, c->unmapped ? TS_ERROR_HOST_MEMORY : 0u);
	if (c->unmapped)
		EXPECT_CONTAINS(npu_call(rig, npusimLastMessage),
				"given back by aclrtHostUnregister");
	EXPECT_EQ(device_byte(HALF), c->unmapped ? 3 : 7);
	EXPECT_EQ(pinned_held(), 0u);
	if (!c->unmapped)
		munmap(at, BYTES);
}

TEST(queue_gone, values_in_registered_memory)
{
	uint64_t *at = (uint64_t *)(void *)map_some(-1);
	uint64_t va = registered(at);

	rig_write(&stream, va + 8, 5, 3, QUIET);
	rig_wait_value(&stream, va + 8, 1, 5, QUIET);
	rig_finish(&stream);
	EXPECT_EQ(at[1], 5u);
	munmap(at, BYTES);
	rig_write(&stream, va + 8, 5, 3, REPORT);
	EXPECT_EQ(rig_next(&stream).error_code, TS_ERROR_HOST_MEMORY);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "unmapped by the program");
	rig_wait_value(&stream, va, 1, 6, REPORT);
	EXPECT_EQ(rig_next(&stream).error_code, TS_ERROR_HOST_MEMORY);
	EXPECT_EQ(npu_call(rig, halHostUnregister, at, 0), DRV_ERROR_NONE);
}
