/* SPDX-License-Identifier: Apache-2.0
 *
 * What others see while the kernel clears the memory of a new heap, or of further records, with the
 * lock released: at that very place they need one, too, and a device and the driver are closed; and
 * there is no memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "memory/memory.h"
#include "queue-rig.h"
#include "queue/queue.h"

#define BYTES (4 * MIB)

static void (*fault)(void);
static bool no_heap;

void *__real_npu_pages_new(size_t bytes, bool huge);
void *__wrap_npu_pages_new(size_t bytes, bool huge);

void *__wrap_npu_pages_new(size_t bytes, bool huge)
{
	rig_run_armed(&fault);
	errno = ENOMEM;
	return no_heap ? NULL : __real_npu_pages_new(bytes, huge);
}

static void (*records_fault)(void);
static bool no_records;

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	rig_run_armed(&records_fault);
	return no_records ? NULL : __real_aligned_alloc(alignment, bytes);
}

static void *other;

static void *alloc(uint64_t bytes, uint64_t flag)
{
	void *at = NULL;

	CALL(halMemAlloc, &at, bytes, flag);
	return at;
}

static void end(void)
{
	EXPECT_NULL(fault); /* it happened */
	rig_close();
	rig_end();
}

static const struct heap_case {
	const char *title;
	uint64_t flag;
} heaps[] = { { "pinned", RIG_HOST_FLAG },
	      { "device_4k", RIG_DEVICE_FLAG },
	      { "device_2m", RIG_DEVICE_FLAG | MEM_PAGE_HUGE } };
static uint64_t heap_flag;

static unsigned count_heaps(bool used)
{
	const struct pool *p;
	unsigned count = 0;

	TAILQ_FOREACH(p, &bsim_of(rig)->allocs->pools, link)
	count += !used || p->used > 0;
	return count;
}

static uint64_t heap_of(const void *at)
{
	return (uintptr_t)at >> 30;
}

/* The driver call that made it. */
static uint64_t made_by(const void *at)
{
	return allocation_at(bsim_of(rig)->window, (uintptr_t)at)->made.number;
}

static void allocate_one(void)
{
	other = alloc(BYTES, heap_flag);
}

TEST_EACH(new_heap, two_that_need_one_share_it, heaps, title)
{
	const struct heap_case *heap = param;
	void *first;

	rig_open();
	heap_flag = heap->flag;
	fault = allocate_one;
	first = alloc(BYTES, heap_flag);
	EXPECT_NE(first, other);
	EXPECT_EQ(heap_of(first), heap_of(other));
	EXPECT_EQ(made_by(first), made_by(other) + 1);
	EXPECT_EQ(made_by(alloc(BYTES, heap_flag)), made_by(first) + 1);
	EXPECT_EQ(count_heaps(true), 1u);
	EXPECT_EQ(count_heaps(false), 2u); /* the next need not be made */
	fault = allocate_one;
	alloc(WINDOW_GIB / 2, heap_flag);
	alloc(WINDOW_GIB / 2, heap_flag);
	EXPECT_NOT_NULL(fault);
	EXPECT_EQ(count_heaps(false), 2u);
	fault = NULL;
	end();
}

/* Three that need one have made a third, which goes. */
static void allocate_two(void)
{
	fault = allocate_one;
	alloc(BYTES, heap_flag);
}

TEST_EACH(new_heap, one_alone_is_kept, heaps, title)
{
	const struct heap_case *heap = param;

	rig_open();
	heap_flag = heap->flag;
	fault = allocate_two;
	alloc(BYTES, heap_flag);
	EXPECT_EQ(count_heaps(true), 1u);
	EXPECT_EQ(count_heaps(false), 2u);
	end();
}

static void want_memory(bool *none, uint64_t flag, const char *message)
{
	uint64_t before;

	rig_open();
	before = rig_free_bytes();
	*none = true;
	EXPECT_EQ(npu_call(rig, halMemAlloc, &other, BYTES, flag), DRV_ERROR_OUT_OF_MEMORY);
	*none = false;
	EXPECT_STREQ(npu_call(rig, npusimLastMessage), message);
	EXPECT_EQ(rig_free_bytes(), before);
	EXPECT_EQ(count_heaps(false), 0u);
	EXPECT_NOT_NULL(alloc(BYTES, flag));
	end();
}

TEST_EACH(new_heap, the_host_has_no_memory, heaps, title)
{
	want_memory(&no_heap, ((const struct heap_case *)param)->flag,
		    "halMemAlloc: this host has no memory for a heap: Cannot allocate memory");
}

/* Registered ranges leave nothing else behind. */
TEST(new_heap, goes_when_what_it_had_goes)
{
	const uint64_t bytes = 512 * MIB;
	unsigned char *at = mmap(NULL, 4 * bytes, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *out;

	rig_open();
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQ(npu_call(rig, halHostRegister, at + i * bytes, bytes, HOST_MEM_MAP_DEV, 0,
				   &out),
			  DRV_ERROR_NONE);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQ(npu_call(rig, halHostUnregister, at + i * bytes, 0), DRV_ERROR_NONE);
	EXPECT_EQ(count_heaps(false), 1u);
	EXPECT_TRUE(bsim_of(rig)->allocs->gone_pools == NULL);
	munmap(at, 4 * bytes);
	end();
}

static unsigned count_records(void)
{
	return g_slist_length(bsim_of(rig)->allocs->records);
}

TEST(new_records, two_that_need_them)
{
	void *first;

	rig_open();
	heap_flag = RIG_DEVICE_FLAG;
	records_fault = allocate_one;
	first = alloc(BYTES, heap_flag);
	EXPECT_NULL(records_fault);
	EXPECT_EQ(count_records(), 2u);
	EXPECT_NE(first, other);
	EXPECT_EQ(made_by(first), made_by(other) + 1);
	CALL(halMemFree, first);
	CALL(halMemFree, other);
	end();
}

TEST(new_records, the_host_has_no_memory)
{
	want_memory(&no_records, RIG_DEVICE_FLAG,
		    "halMemAlloc: this host has no memory for records of allocations");
}

/* And are used again. */
TEST(new_records, follow_the_most_at_a_time)
{
	enum { COUNT = 300 };
	void *at[COUNT];

	rig_open();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < COUNT; i++)
			at[i] = alloc(4096, RIG_DEVICE_FLAG);
		EXPECT_EQ(count_records(), 4u); /* 64, 64, 128, 256 */
		for (unsigned i = 0; i < COUNT; i++)
			CALL(halMemFree, at[i]);
	}
	end();
}

static void close_device(void)
{
	rig_device_close(0);
}

TEST(new_heap, device_is_closed_meanwhile)
{
	rig_open();
	fault = close_device;
	EXPECT_EQ(npu_call(rig, halMemAlloc, &other, BYTES, RIG_DEVICE_FLAG),
		  DRV_ERROR_INVALID_DEVICE);
	rig_device_open(0);
	EXPECT_NOT_NULL(alloc(BYTES, RIG_DEVICE_FLAG));
	end();
}

static unsigned char plain[4096];

static void register_it(void)
{
	CALL(halHostRegister, plain, sizeof(plain), HOST_MEM_MAP_DEV, 0, &other);
}

TEST(new_heap, registered_meanwhile)
{
	void *dev = NULL;

	rig_open();
	fault = register_it;
	EXPECT_EQ(npu_call(rig, halHostRegister, plain, sizeof(plain), HOST_MEM_MAP_DEV, 0, &dev),
		  DRV_ERROR_BUSY);
	CALL(halHostUnregister, plain, 0);
	end();
}

static pthread_t closer;

static void *close_driver(void *arg)
{
	rig_end();
	return arg;
}

/* It waits for the call. */
static void begin_to_close(void)
{
	struct bsim *bs = bsim_of(rig);

	ASSERT_EQ(pthread_create(&closer, NULL, close_driver, NULL), 0);
	for (bool closes = false; !closes; sched_yield()) {
		bsim_lock(bs);
		closes = bs->queues->closing;
		bsim_unlock(bs);
	}
	EXPECT_NOT_NULL(__atomic_load_n(&rig, __ATOMIC_RELAXED));
}

TEST(new_heap, driver_is_closed_meanwhile)
{
	rig_open();
	fault = begin_to_close;
	EXPECT_EQ(npu_call(rig, halMemAlloc, &other, BYTES, RIG_DEVICE_FLAG), DRV_ERROR_NONE);
	pthread_join(closer, NULL);
	EXPECT_NULL(rig);
	rig_open();
	end();
}
