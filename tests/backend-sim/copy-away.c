/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to memory while a copy moves its bytes with the lock released: at that very place
 * memory is unmapped and freed, streams and devices are closed, other threads call, processes die.
 * Every frame and every page that the copy has found must outlive it. Run with and without timing.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/process.h"
#include "queue/copy.h"
#include "queue-rig.h"
#include "queue/queue.h"

#define BYTES (4 * MIB)

/* ---- the place: the first large memmove() after it is armed; what is to happen there does so in
 * another thread ---- */

static void (*fault)(void);

void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	if (bytes > SIM_FEW_BYTES)
		rig_run_armed(&fault);
	return __real_memmove(to, from, bytes);
}

/* Likewise, while a check of a large copy asks for the host's room. */
static void (*fault_of_check)(void);

uint64_t __real_node_host_room_bytes(unsigned age_ms);
uint64_t __wrap_node_host_room_bytes(unsigned age_ms);

uint64_t __wrap_node_host_room_bytes(unsigned age_ms)
{
	rig_run_armed(&fault_of_check);
	return __real_node_host_room_bytes(age_ms);
}

/* Likewise, where a call of this thread has offered the lock; others may be in line, too. */
static _Thread_local void (*fault_of_offer)(void);

void __real_bsim_lock_in_line(struct bsim *bs);
void __wrap_bsim_lock_in_line(struct bsim *bs);

void __wrap_bsim_lock_in_line(struct bsim *bs)
{
	rig_run_armed(&fault_of_offer);
	__real_bsim_lock_in_line(bs);
}

/* ---- memory ---- */

static unsigned char *plain;
static void *va;
static drv_mem_handle_t *handle;

static drv_mem_handle_t *create(void)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };
	drv_mem_handle_t *made = NULL;

	CALL(halMemCreate, &made, BYTES, &prop, 0);
	return made;
}

static void *map(drv_mem_handle_t *what)
{
	void *at = NULL;

	CALL(halMemAddressReserve, &at, BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	CALL(halMemMap, at, BYTES, 0, what, 0);
	return at;
}

static drvError_t copy(void *dst, const void *src)
{
	return npu_call(rig, drvMemcpy, (DVdeviceptr)dst, BYTES, (DVdeviceptr)src, BYTES);
}

static int byte_at(void *device, size_t offset)
{
	unsigned char byte = 0;

	CALL(drvMemcpy, (DVdeviceptr)&byte, 1, (DVdeviceptr)device + offset, 1);
	return byte;
}

static void begin(void)
{
	rig_open();
	plain = malloc(BYTES);
	memset(plain, 0x33, BYTES);
	handle = create();
	va = map(handle);
}

static void end(void)
{
	EXPECT_NULL(fault); /* it happened */
	free(plain);
	rig_close();
	rig_end(); /* so that the next test may fork */
}

/* ---- frames ---- */

static uint64_t free_before, free_meanwhile;
static void *other;

static void unmap_and_free(void)
{
	CALL(halMemUnmap, va);
	CALL(halMemRelease, handle);
	free_meanwhile = rig_free_bytes();
	other = map(create());
}

TEST(copy_away, frames_outlive_unmap_and_free)
{
	begin();
	free_before = rig_free_bytes();
	fault = unmap_and_free;
	EXPECT_EQ(copy(va, plain), DRV_ERROR_NONE);
	EXPECT_EQ(free_meanwhile, free_before);
	EXPECT_EQ(rig_free_bytes(), free_before); /* one is gone, one is new */
	EXPECT_EQ(byte_at(other, 0), 0);
	EXPECT_EQ(byte_at(other, BYTES - 1), 0);
	end();
}

static void *classic;

static void free_classic(void)
{
	CALL(halMemFree, classic);
	free_meanwhile = rig_free_bytes();
}

TEST(copy_away, frames_outlive_the_free_of_an_allocation)
{
	begin();
	classic = (void *)rig_alloc(0, BYTES);
	free_before = rig_free_bytes();
	fault = free_classic;
	EXPECT_EQ(copy(plain, classic), DRV_ERROR_NONE);
	EXPECT_EQ(plain[BYTES - 1], 0);
	EXPECT_EQ(free_meanwhile, free_before);
	EXPECT_EQ(rig_free_bytes(), free_before + BYTES);
	end();
}

static void free_pages(void)
{
	CALL(halMemFree, classic);
	CALL(halMemAlloc, &other, BYTES / 4,
	     (uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM |
		     (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
}

/* Pages of 4 KiB, which are parts of frames, are nobody else's before. */
TEST(copy_away, pages_outlive_the_free_of_an_allocation)
{
	begin();
	CALL(halMemAlloc, &classic, BYTES / 4,
	     (uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM |
		     (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
	fault = free_pages;
	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)classic, BYTES / 4, (DVdeviceptr)plain,
			   BYTES / 4),
		  DRV_ERROR_NONE);
	EXPECT_NE(other, classic);
	EXPECT_EQ(byte_at(other, 0), 0);
	CALL(halMemFree, other);
	CALL(halMemAlloc, &other, BYTES / 4,
	     (uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM |
		     (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
	EXPECT_EQ(other, classic); /* now it is */
	end();
}

static void *pinned;

static void free_pinned(void)
{
	unsigned char state;

	CALL(halMemFree, pinned);
	EXPECT_EQ(mincore(pinned, 1, &state), 0);
}

TEST(copy_away, pinned_pages_outlive_their_free)
{
	begin();
	pinned = rig_pinned(BYTES);
	memset(pinned, 0x77, BYTES);
	fault = free_pinned;
	EXPECT_EQ(copy(va, pinned), DRV_ERROR_NONE);
	EXPECT_EQ(byte_at(va, BYTES - 1), 0x77);
	EXPECT_NE(copy(va, pinned), DRV_ERROR_NONE);
	end();
}

static void close_device(void)
{
	rig_device_close(0);
	free_meanwhile = rig_free_bytes();
}

TEST(copy_away, frames_outlive_their_device)
{
	begin();
	free_before = rig_free_bytes();
	fault = close_device;
	EXPECT_EQ(copy(va, plain), DRV_ERROR_NONE);
	EXPECT_EQ(free_meanwhile, free_before);
	EXPECT_EQ(rig_free_bytes(), free_before + BYTES);
	rig_device_open(0);
	end();
}

static void free_and_close_device(void)
{
	CALL(halMemFree, classic);
	close_device();
}

static const struct reset_case {
	const char *title;
	void (*fault)(void);
	uint64_t page_flag;
} reset_cases[] = {
	{ "freed before", free_and_close_device, MEM_PAGE_HUGE },
	{ "pages freed before", free_and_close_device, 0 },
	{ "freed by it", close_device, MEM_PAGE_HUGE },
};

/* What a copy keeps is in none of the page tables that a device has after a reset. */
TEST_EACH(copy_away, reset_while_an_allocation_is_kept, reset_cases, title)
{
	const struct reset_case *c = param;
	struct npu_stats stats = { .size = sizeof(stats) };

	begin();
	CALL(halMemAlloc, &classic, BYTES,
	     (uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | c->page_flag |
		     (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT);
	fault = c->fault;
	EXPECT_EQ(copy(classic, plain), DRV_ERROR_NONE);
	rig_device_open(0);
	CALL(npusimGetStats, 0, &stats);
	EXPECT_EQ(stats.leaves_4k, 0);
	EXPECT_EQ(stats.leaves_2m, 0);
	EXPECT_NE(copy(plain, classic), DRV_ERROR_NONE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage),
			c->fault == close_device ? "not allocated; a device was reset"
						 : "given back by aclrtFree");
	end();
}

/* ---- queues ---- */

static struct rig_stream stream;

static pthread_t closer;

static void *close_elsewhere(void *arg)
{
	rig_stream_close(&stream);
	return arg;
}

/* With timing it waits for the model, which stands still: a while, and then behind the copy. */
static void close_stream(void)
{
	ASSERT_EQ(pthread_create(&closer, NULL, close_elsewhere, NULL), 0);
	for (bool there = false; !there; sched_yield()) {
		struct bsim *bs = bsim_of(rig);

		bsim_lock(bs);
		there = bs->timing
				? bs->queues->waiters >= 2
				: queue_table_find(&bs->queues->device[0].queues[DRV_NORMAL_TYPE],
						   stream.sq) == NULL;
		bsim_unlock(bs);
	}
}

TEST(copy_away, stream_is_closed)
{
	begin();
	pinned = rig_pinned(BYTES);
	memset(pinned, 0x55, BYTES);
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, 8, 8));
	fault = close_stream;
	rig_copy(&stream, (uint64_t)va, (uint64_t)pinned, BYTES, QUIET);
	for (int i = 0; i < 1000 && fault != NULL; i++)
		EXPECT_EQ(byte_at(va, 0), 0); /* time passes */
	pthread_join(closer, NULL);
	EXPECT_EQ(byte_at(va, BYTES - 1), 0x55);
	end();
}

/* ---- other threads ---- */

static void *map_elsewhere(void *arg)
{
	void *at = map(handle);

	CALL(halMemUnmap, at);
	return arg;
}

static void *copy_elsewhere(void *arg)
{
	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)arg, 8, (DVdeviceptr)plain, 8),
		  DRV_ERROR_NONE);
	return arg;
}

static pthread_t copier;

static void call_elsewhere(void)
{
	pthread_t mapper;

	ASSERT_EQ(pthread_create(&mapper, NULL, map_elsewhere, NULL), 0);
	ASSERT_EQ(pthread_create(&copier, NULL, copy_elsewhere, classic), 0);
	pthread_join(mapper, NULL);
}

TEST(copy_away, others_map_meanwhile_and_copy_after)
{
	begin();
	classic = (void *)rig_alloc(0, BYTES);
	fault = call_elsewhere;
	EXPECT_EQ(copy(va, plain), DRV_ERROR_NONE);
	pthread_join(copier, NULL);
	EXPECT_EQ(byte_at(classic, 7), 0x33);
	EXPECT_EQ(byte_at(classic, 8), 0);
	EXPECT_EQ(byte_at(va, BYTES - 1), 0x33);
	end();
}

static void *hold_often(void *arg)
{
	struct bsim *bs = bsim_of(rig);

	while (!__atomic_load_n((int *)arg, __ATOMIC_RELAXED)) {
		bsim_lock(bs);
		bsim_unlock(bs);
	}
	return arg;
}

/* Whoever waits gets the lock, however often another takes it. */
TEST(copy_away, nobody_is_kept_from_the_lock)
{
	struct bsim *bs;
	pthread_t greedy;
	int stop = 0;

	begin();
	bs = bsim_of(rig);
	ASSERT_EQ(pthread_create(&greedy, NULL, hold_often, &stop), 0);
	for (int i = 0; i < 1000; i++) {
		bsim_lock_in_line(bs);
		EXPECT_LE(bs->lock.passed, BSIM_LOCK_PASSES);
		bsim_unlock(bs);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(greedy, NULL);
	end();
}

/* How often a call that is alone would have let another thread in. */
static uint64_t offers_in(drvError_t (*call)(void))
{
	struct bsim *bs = bsim_of(rig);
	uint64_t before = bs->calls;

	__atomic_add_fetch(&bs->lock.waiting, 1, __ATOMIC_RELAXED);
	EXPECT_EQ(call(), DRV_ERROR_NONE);
	__atomic_sub_fetch(&bs->lock.waiting, 1, __ATOMIC_RELAXED);
	return bs->calls - before;
}

#define PARTS 1000u

static drvError_t copy_parts(void)
{
	static uint64_t dst[PARTS], src[PARTS];
	static size_t size[PARTS];

	for (unsigned i = 0; i < PARTS; i++) {
		dst[i] = (uint64_t)va + i * 8;
		src[i] = (uint64_t)plain + i * 8;
		size[i] = 8;
	}
	return npu_call(rig, halMemcpyBatch, dst, src, size, PARTS);
}

static drvError_t copy_rows(void)
{
	struct MEMCPY2D rows = { .type = DEVMM_MEMCPY2D_SYNC,
				 .copy2d = { .dst = (void *)va,
					     .dpitch = 16,
					     .src = (void *)plain,
					     .spitch = 16,
					     .width = 8,
					     .height = PARTS,
					     .direction = DRV_MEMCPY_HOST_TO_DEVICE } };

	return npu_call(rig, halMemcpy2D, &rows);
}

static uint64_t wide; /* PARTS mappings of 2 MiB */

static drvError_t look_at_all(void)
{
	return npu_call(rig, drvMemPrefetchToDevice, wide, PARTS * 2 * MIB, 0);
}

static drvError_t send_nothing(void)
{
	static struct {
		struct stars_sqe_header header;
		uint8_t rest[STARS_SQE_BYTES - sizeof(struct stars_sqe_header)];
	} entries[PARTS];
	struct halTaskSendInfo send = { .type = DRV_NORMAL_TYPE,
					.sqId = stream.sq,
					.sqe_addr = (uint8_t *)entries,
					.sqe_num = PARTS };

	for (unsigned i = 0; i < PARTS; i++) {
		entries[i].header.type = STARS_SQE_PLACE_HOLDER;
		entries[i].header.stream_id = (uint16_t)stream.id;
	}
	return npu_call(rig, halSqTaskSend, 0, &send);
}

/* Who waits need not wait for all of what a call has many of. */
TEST(copy_away, long_calls_offer_the_lock)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE, .pg_type = MEM_HUGE_PAGE_TYPE };
	drv_mem_handle_t *page = NULL;
	void *at = NULL;

	begin();
	EXPECT_GE(offers_in(copy_parts), 2u * PARTS); /* looked at, and copied */
	EXPECT_GE(offers_in(copy_rows), 2u * PARTS);
	CALL(halMemAddressReserve, &at, PARTS * 2 * MIB, 0, NULL, MEM_HUGE_PAGE_TYPE);
	CALL(halMemCreate, &page, 2 * MIB, &prop, 0);
	wide = (uint64_t)at;
	for (uint64_t i = 0; i < PARTS; i++)
		CALL(halMemMap, (void *)(wide + i * 2 * MIB), 2 * MIB, 0, page, 0);
	EXPECT_GE(offers_in(look_at_all), PARTS / 256u);
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, PARTS + 1, 8));
	EXPECT_GE(offers_in(send_nothing), PARTS / 64u);
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), PARTS);
	rig_stream_close(&stream);
	end();
}

static struct rig_stream copies;
static struct stars_logic_cqe copied;

static void receive_copy(void)
{
	copied = rig_next(&copies);
}

/* Another thread runs the model at an offer: what ends there does so at its own time. */
TEST(copy_away, a_copy_ends_while_entries_are_done)
{
	uint64_t sent;

	begin();
	ASSERT_NO_FATAL(rig_stream_open(&stream, 0, PARTS + 1, 8));
	ASSERT_NO_FATAL(rig_stream_open(&copies, 0, 16, 16));
	sent = rig_now();
	rig_copy(&copies, (uint64_t)va, (uint64_t)plain, BYTES, REPORT);
	fault_of_offer = receive_copy;
	EXPECT_GE(offers_in(send_nothing), 1u);
	EXPECT_EQ(fault_of_offer, NULL);
	EXPECT_EQ(byte_at(va, BYTES - 1), 0x33);
	if (bsim_of(rig)->timing)
		EXPECT_GE(copied.timestamp, sent / 1000 + BYTES / 26); /* ns, at 26 GB/s */
	EXPECT_EQ(rig_query(&stream, DRV_SQCQ_PROP_SQ_HEAD), PARTS);
	rig_stream_close(&copies);
	rig_stream_close(&stream);
	end();
}

static void close_all(void)
{
	halDevCloseIn in = { { 0 } };

	for (unsigned d = 0; d < 2; d++)
		(void)npu_call(rig, halDeviceClose, d, &in);
}

static drvError_t fill_host(void)
{
	return npu_call(rig, drvMemsetD8, wide, PARTS * 2 * MIB, 1, PARTS * 2 * MIB);
}

/* Mapped memory of the host outlives the devices, whose engines would move it. */
TEST(copy_away, devices_are_closed_while_host_memory_is_checked)
{
	struct drv_mem_prop prop = { .side = MEM_HOST_SIDE,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_DDR_TYPE };
	drv_mem_handle_t *page = NULL;
	struct bsim *bs;
	void *at = NULL;

	rig_open();
	bs = bsim_of(rig);
	CALL(halMemAddressReserve, &at, PARTS * 2 * MIB, 0, NULL, MEM_HUGE_PAGE_TYPE);
	CALL(halMemCreate, &page, 2 * MIB, &prop, 0);
	wide = (uint64_t)at;
	for (uint64_t i = 0; i < PARTS; i++)
		CALL(halMemMap, (void *)(wide + i * 2 * MIB), 2 * MIB, 0, page, 0);
	fault_of_offer = close_all;
	__atomic_add_fetch(&bs->lock.waiting, 1, __ATOMIC_RELAXED);
	EXPECT_EQ(fill_host(), DRV_ERROR_INVALID_HANDLE);
	__atomic_sub_fetch(&bs->lock.waiting, 1, __ATOMIC_RELAXED);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "no device is open");
	EXPECT_EQ(npu_call(rig, drvMemcpy, wide, MIB, wide + 2 * MIB, MIB),
		  DRV_ERROR_INVALID_HANDLE);
	rig_end();
}

#define SMALL_FLAG \
	(MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT)

static drvError_t close_first(void)
{
	halDevCloseIn in = { { 0 } };

	return npu_call(rig, halDeviceClose, 0, &in);
}

static void close_meanwhile(void)
{
	EXPECT_EQ(close_first(), DRV_ERROR_NONE);
}

static void allocate_meanwhile(void)
{
	CALL(halMemAlloc, &other, 65536, SMALL_FLAG);
}

static drvError_t read_other(void)
{
	return npu_call(rig, drvMemcpy, (DVdeviceptr)plain, 1, (DVdeviceptr)other, 1);
}

static void open_first(void)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	CALL(halDeviceOpen, 0, &in, &out);
}

/* Its pages are cleared without the lock: a reset ends it, its frames stay until then. */
TEST(copy_away, device_is_closed_while_pages_are_cleared)
{
	void *neighbour = NULL;

	begin();
	CALL(halMemAlloc, &neighbour, 4096, SMALL_FLAG);
	allocate_meanwhile();
	CALL(drvMemsetD8, (DVdeviceptr)other, 65536, 1, 65536);
	CALL(halMemFree, other);
	fault_of_offer = close_meanwhile;
	allocate_meanwhile();
	EXPECT_EQ(fault_of_offer, NULL);
	EXPECT_EQ(read_other(), DRV_ERROR_IOCRL_FAIL);
	open_first();
	allocate_meanwhile();
	EXPECT_EQ(read_other(), DRV_ERROR_NONE);
	EXPECT_EQ(plain[0], 0);
	end();
}

static uint64_t alloc_ps(void)
{
	struct npu_stats s = { .size = sizeof(s) };

	CALL(npusimGetStats, 0, &s);
	return s.call_ps[SIM_CALL_ALLOC];
}

static void *whole;

static void allocate_frame(void)
{
	CALL(halMemAlloc, &whole, 2 * MIB, SMALL_FLAG);
}

/* What another thread takes while pages are cleared is that one's to pay. */
TEST(copy_away, each_pays_for_its_own_frames)
{
	void *neighbour = NULL;
	uint64_t start, one_by_one;

	begin();
	CALL(halMemAlloc, &neighbour, 4096, SMALL_FLAG);
	start = alloc_ps();
	allocate_meanwhile();
	allocate_frame();
	one_by_one = alloc_ps() - start;
	CALL(halMemFree, other);
	CALL(halMemFree, whole);
	start = alloc_ps();
	fault_of_offer = allocate_frame;
	allocate_meanwhile();
	EXPECT_EQ(fault_of_offer, NULL);
	EXPECT_EQ(alloc_ps() - start, one_by_one);
	end();
}

/* ---- other processes ---- */

static void die(void)
{
	raise(SIGKILL);
}

static pid_t fork_copier(int go)
{
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	alarm(60);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	begin();
	fault = die;
	copy(va, plain);
	_exit(1);
}

TEST(copy_away, killed_in_the_middle)
{
	int go[2], status;
	pid_t pid;

	ASSERT_EQ(pipe(go), 0);
	pid = fork_copier(go[0]);
	begin();
	EXPECT_EQ(copy(va, plain), DRV_ERROR_NONE);
	free_before = rig_free_bytes();
	ASSERT_EQ(write(go[1], "g", 1), 1);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	other = map(create()); /* a call that notices */
	EXPECT_EQ(rig_free_bytes(), free_before - BYTES);
	EXPECT_EQ(byte_at(other, BYTES - 1), 0);
	EXPECT_EQ(byte_at(va, BYTES - 1), 0x33);
	end();
}

static pid_t exporter;

static pid_t fork_exporter(int out)
{
	struct ShareHandleAttr open_to_all = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE };
	pid_t pid = fork();
	uint64_t share = 0;

	if (pid != 0)
		return pid;
	alarm(60);
	begin();
	CALL(halMemExportToShareableHandle, handle, MEM_HANDLE_TYPE_NONE, 0, &share);
	CALL(halMemShareHandleSetAttribute, share, SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, open_to_all);
	if (write(out, &share, sizeof(share)) != sizeof(share))
		_exit(1);
	pause();
	_exit(0);
}

static void kill_exporter(void)
{
	kill(exporter, SIGKILL);
	waitpid(exporter, NULL, 0);
	CALL(halMemUnmap, va);
	CALL(halMemRelease, handle);
	free_meanwhile = rig_free_bytes();
	other = map(create());
}

TEST(copy_away, imported_frames_outlive_their_exporter)
{
	uint64_t share = 0;
	int out[2];

	ASSERT_EQ(pipe(out), 0);
	exporter = fork_exporter(out[1]);
	ASSERT_EQ(read(out[0], &share, sizeof(share)), (ssize_t)sizeof(share));
	rig_open();
	plain = malloc(BYTES);
	memset(plain, 0x33, BYTES);
	CALL(halMemImportFromShareableHandle, share, 0, &handle);
	va = map(handle);
	free_before = rig_free_bytes();
	fault = kill_exporter;
	EXPECT_EQ(copy(va, plain), DRV_ERROR_NONE);
	EXPECT_EQ(free_meanwhile, free_before);
	EXPECT_EQ(rig_free_bytes(), free_before);
	EXPECT_EQ(byte_at(other, 0), 0);
	EXPECT_EQ(byte_at(other, BYTES - 1), 0);
	end();
}

/* ---- descriptors ---- */

/* The memory is another device's, so it is still there. */
TEST(copy_away, rows_for_a_device_that_is_closed_meanwhile)
{
	uint64_t bytes = COPY_ROOM_BYTES, device;
	struct DMA_ADDR dma = { .offsetAddr.devid = 0 };
	struct MEMCPY2D rows = { .type = DEVMM_MEMCPY2D_ASYNC_CONVERT };

	begin();
	device = rig_alloc(1, bytes);
	rows.copy2dAsync.dmaAddr = &dma;
	rows.copy2dAsync.copy2dInfo = (struct drvMem2D){ .dst = (void *)device,
							 .dpitch = bytes,
							 .src = rig_pinned(bytes),
							 .spitch = bytes,
							 .width = bytes,
							 .height = 1,
							 .direction = DRV_MEMCPY_HOST_TO_DEVICE };
	fault_of_check = close_device;
	EXPECT_EQ(npu_call(rig, halMemcpy2D, &rows), DRV_ERROR_INVALID_HANDLE);
	EXPECT_NULL(fault_of_check);
	EXPECT_NULL(bsim_of(rig)->queues->device[0].rows);
	rig_device_open(0);
	end();
}
