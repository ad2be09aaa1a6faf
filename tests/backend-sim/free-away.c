/* SPDX-License-Identifier: Apache-2.0
 *
 * What others see while the kernel takes back memory that was freed, with the lock released: at
 * that very place the memory is freed again, its addresses and frames are asked for, devices and
 * the driver are closed, processes are forked and die.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/memory.h"
#include "queue-rig.h"
#include "queue/queue.h"

#define BYTES (4 * MIB)

/* ---- the places: frames are cleaned, pinned pages and a mapping's at the CPU go ---- */

static void (*fault)(void);

void __real_node_block_clean(struct node *node, struct node_block *block);
void __wrap_node_block_clean(struct node *node, struct node_block *block);

void __wrap_node_block_clean(struct node *node, struct node_block *block)
{
	rig_run_armed(&fault);
	__real_node_block_clean(node, block);
}

/* How often frames were asked for, or the model; which has no memory left behind its work. */
static unsigned tries, wanted;
static bool no_memory;

drvError_t __real_memory_take(struct bsim *bs, unsigned in, uint64_t frames, bool giant,
			      struct node_block **out);
drvError_t __wrap_memory_take(struct bsim *bs, unsigned in, uint64_t frames, bool giant,
			      struct node_block **out);

drvError_t __wrap_memory_take(struct bsim *bs, unsigned in, uint64_t frames, bool giant,
			      struct node_block **out)
{
	tries++; /* under the lock */
	return __real_memory_take(bs, in, frames, giant, out);
}

enum sim_status __real_sim_execute(struct sim *sim, struct sim_job *job);
enum sim_status __wrap_sim_execute(struct sim *sim, struct sim_job *job);

enum sim_status __wrap_sim_execute(struct sim *sim, struct sim_job *job)
{
	enum sim_status status = __real_sim_execute(sim, job);

	tries++;
	return no_memory ? job->status = SIM_NO_MEMORY : status;
}

static void *pinned; /* or mapped for the CPU */

void __real_window_close_to_cpu(uint64_t va, uint64_t bytes);
void __wrap_window_close_to_cpu(uint64_t va, uint64_t bytes);

void __wrap_window_close_to_cpu(uint64_t va, uint64_t bytes)
{
	if (va == (uintptr_t)pinned)
		rig_run_armed(&fault);
	__real_window_close_to_cpu(va, bytes);
}

/* ---- memory ---- */

static void *alloc(uint64_t bytes, uint64_t flag)
{
	void *at = NULL;

	CALL(halMemAlloc, &at, bytes, flag);
	return at;
}

static int byte_at(void *device)
{
	unsigned char byte = 1;

	CALL(drvMemcpy, (DVdeviceptr)&byte, 1, (DVdeviceptr)device, 1);
	return byte;
}

static void fill(void *device)
{
	CALL(drvMemsetD8, (DVdeviceptr)device, BYTES, 7, BYTES);
}

static uint64_t free_before, free_meanwhile;
static void *memory, *other;

static void *filled(void)
{
	void *at = (void *)rig_alloc(0, BYTES);

	fill(at);
	return at;
}

static void begin(void)
{
	rig_open();
	memory = filled();
	free_before = rig_free_bytes();
}

static void end(void)
{
	EXPECT_NULL(fault); /* it happened */
	rig_close();
	rig_end(); /* so that the next test may fork */
}

/* ---- frames ---- */

static void free_again(void)
{
	EXPECT_EQ(npu_call(rig, halMemFree, memory), DRV_ERROR_INVALID_VALUE);
	EXPECT_NE(npu_call(rig, drvMemsetD8, (DVdeviceptr)memory, BYTES, 7, BYTES), DRV_ERROR_NONE);
	free_meanwhile = rig_free_bytes();
	other = (void *)rig_alloc(0, BYTES);
	EXPECT_EQ(byte_at(other), 0);
	fill(other);
}

TEST(free_away, freed_again)
{
	begin();
	fault = free_again;
	CALL(halMemFree, memory);
	EXPECT_EQ(free_meanwhile, free_before + BYTES);
	EXPECT_EQ(rig_free_bytes(), free_before);
	EXPECT_EQ(byte_at(other), 7);
	memory = (void *)rig_alloc(0, BYTES);
	EXPECT_EQ(byte_at(memory), 0);
	end();
}

static bool done; /* what the taker does */

static bool waits_beside_us(const struct queue_set *set)
{
	return set->waiters >= 2 || __atomic_load_n(&done, __ATOMIC_RELAXED);
}

static void wait_until(bool (*there)(const struct queue_set *set))
{
	struct bsim *bs = bsim_of(rig);

	for (bool now = false; !now; sched_yield()) {
		bsim_lock(bs);
		now = there(bs->queues);
		bsim_unlock(bs);
	}
}

static pthread_t taker;
static void *(*take)(void *arg);

struct taking {
	const char *title;
	void *(*take)(void *arg);
};

static void *take_it(void *arg)
{
	arg = take(arg);
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	return arg;
}

static void start_taker(void)
{
	done = false;
	ASSERT_EQ(pthread_create(&taker, NULL, take_it, NULL), 0);
}

/* It cannot be done before what was given back is gone. */
static void begin_to_take(void)
{
	ASSERT_NO_FATAL(start_taker());
	wait_until(waits_beside_us); /* with the lock released */
	EXPECT_FALSE(__atomic_load_n(&done, __ATOMIC_RELAXED));
}

/* Frees; while the memory goes, `meanwhile` runs, which starts the taker. */
static void free_beside(void *(*taking)(void *arg), void (*meanwhile)(void), void *what)
{
	take = taking;
	fault = meanwhile;
	CALL(halMemFree, what);
	pthread_join(taker, NULL);
}

static uint64_t most;

static void *take_most(void *arg)
{
	other = alloc(most, RIG_DEVICE_FLAG | MEM_PAGE_HUGE);
	return arg;
}

TEST(free_away, frames_that_are_asked_for_are_waited_for)
{
	begin();
	other = NULL;
	most = free_before + BYTES;
	free_beside(take_most, begin_to_take, memory);
	EXPECT_NOT_NULL(other);
	EXPECT_EQ(rig_free_bytes(), 0u);
	end();
}

static void *small;

static bool has_tried(const struct queue_set *set)
{
	return waits_beside_us(set) && tries >= wanted;
}

/* A later free that is through before is none of those that are waited for. */
static void begin_to_take_and_free_another(void)
{
	begin_to_take();
	CALL(halMemFree, small);
	wanted = 2;
	wait_until(has_tried);
	EXPECT_FALSE(__atomic_load_n(&done, __ATOMIC_RELAXED));
}

TEST(free_away, frames_that_leave_longest_are_waited_for)
{
	begin();
	small = filled();
	other = NULL;
	tries = 0;
	most = free_before + BYTES;
	free_beside(take_most, begin_to_take_and_free_another, memory);
	EXPECT_NOT_NULL(other);
	EXPECT_EQ(rig_free_bytes(), 0u);
	end();
}

static void *take_pages(void *arg)
{
	other = alloc(2 * BYTES, RIG_DEVICE_FLAG);
	return arg;
}

/* What a call has taken and cannot use is there again before anybody else calls. */
TEST(free_away, pages_of_a_try_that_failed)
{
	uint64_t leaves;

	begin();
	alloc(free_before - BYTES, RIG_DEVICE_FLAG | MEM_PAGE_HUGE);
	leaves = bsim_of(rig)->leaves;
	EXPECT_EQ(npu_call(rig, halMemAlloc, &other, 4 * BYTES, RIG_DEVICE_FLAG),
		  DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_EQ(bsim_of(rig)->leaves, leaves);
	EXPECT_EQ(rig_free_bytes(), BYTES);
	free_beside(take_pages, begin_to_take, memory);
	EXPECT_EQ(byte_at(other), 0);
	EXPECT_EQ(rig_free_bytes(), 0u);
	end();
}

/* A copy that finds no memory of this process behind its beginning is not made again. */
static void *copy_without_memory(void *arg)
{
	static unsigned char plain[BYTES];

	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)other, BYTES, (DVdeviceptr)plain, BYTES),
		  DRV_ERROR_OUT_OF_MEMORY);
	return arg;
}

static void *touch_without_memory(void *arg)
{
	uint64_t at = (uintptr_t)other;

	EXPECT_EQ(npu_call(rig, npusimTouch, 0, &at, 1, BYTES, 0), DRV_ERROR_OUT_OF_MEMORY);
	return arg;
}

static const struct taking givings_up[] = { { "copy", copy_without_memory },
					    { "touch", touch_without_memory } };

static void take_while_it_leaves(void)
{
	ASSERT_NO_FATAL(start_taker());
	wanted = 1;
	wait_until(has_tried);
	EXPECT_TRUE(__atomic_load_n(&done, __ATOMIC_RELAXED));
}

TEST_EACH(free_away, what_the_model_has_begun_is_not_done_again, givings_up, title)
{
	const struct taking *giving_up = param;

	begin();
	other = filled();
	tries = 0;
	no_memory = true;
	free_beside(giving_up->take, take_while_it_leaves, memory);
	no_memory = false;
	EXPECT_EQ(tries, 1u);
	end();
}

static drv_mem_handle_t *handle;

static drv_mem_handle_t *create(void)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };

	CALL(halMemCreate, &handle, BYTES, &prop, 0);
	return handle;
}

static void *map(void)
{
	void *at = NULL;

	CALL(halMemAddressReserve, &at, BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	CALL(halMemMap, at, BYTES, 0, create(), 0);
	return at;
}

static void release_again(void)
{
	EXPECT_EQ(npu_call(rig, halMemRelease, handle), DRV_ERROR_INVALID_VALUE);
	CALL(halMemMap, memory, BYTES, 0, create(), 0);
	EXPECT_EQ(byte_at(memory), 0);
	free_meanwhile = rig_free_bytes();
}

TEST(free_away, handle_released_again)
{
	rig_open();
	memory = map();
	fill(memory);
	free_before = rig_free_bytes();
	CALL(halMemUnmap, memory);
	fault = release_again;
	CALL(halMemRelease, handle);
	EXPECT_EQ(free_meanwhile, free_before);
	EXPECT_EQ(rig_free_bytes(), free_before);
	end();
}

static void use_the_other_device(void)
{
	halDevCloseIn in = { { 0 } };

	other = (void *)rig_alloc(1, BYTES);
	fill(other);
	EXPECT_EQ(npu_call(rig, halDeviceClose, 0, &in), DRV_ERROR_INVALID_HANDLE);
	free_meanwhile = rig_free_bytes();
}

TEST(free_away, device_is_closed)
{
	begin();
	filled();
	fault = use_the_other_device;
	rig_device_close(0);
	EXPECT_GE(free_meanwhile, free_before + BYTES);
	EXPECT_EQ(byte_at(other), 7);
	rig_device_open(0);
	end();
}

static void close_device(void)
{
	rig_device_close(0);
	free_meanwhile = rig_free_bytes();
}

TEST(free_away, device_is_closed_meanwhile)
{
	begin();
	fault = close_device;
	CALL(halMemFree, memory);
	EXPECT_EQ(rig_free_bytes(), free_meanwhile);
	rig_device_open(0);
	end();
}

static bool closes(const struct queue_set *set)
{
	return set->closing;
}

static void *close_driver(void *arg)
{
	rig_end();
	return arg;
}

static void begin_to_close(void)
{
	ASSERT_EQ(pthread_create(&taker, NULL, close_driver, NULL), 0);
	wait_until(closes);
	EXPECT_NOT_NULL(__atomic_load_n(&rig, __ATOMIC_RELAXED)); /* it waits */
}

TEST(free_away, driver_is_closed_meanwhile)
{
	begin();
	fault = begin_to_close;
	EXPECT_EQ(npu_call(rig, halMemFree, memory), DRV_ERROR_NONE);
	pthread_join(taker, NULL);
	EXPECT_NULL(rig);
	rig_open();
	EXPECT_EQ(rig_free_bytes(), free_before + BYTES);
	end();
}

/* ---- processes ---- */

static void fork_one(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(npu_call(rig, halMemFree, memory) != DRV_ERROR_PROCESS_EXIT);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST(free_away, forked_meanwhile)
{
	begin();
	fault = fork_one;
	CALL(halMemFree, memory);
	EXPECT_EQ(rig_free_bytes(), free_before + BYTES);
	end();
}

static void die(void)
{
	raise(SIGKILL);
}

TEST(free_away, killed_meanwhile)
{
	int status, go[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		begin();
		fault = die;
		npu_call(rig, halMemFree, memory);
		_exit(1);
	}
	rig_open();
	free_before = rig_free_bytes();
	ASSERT_EQ(write(go[1], "g", 1), 1);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	most = free_before;
	take_most(NULL);
	EXPECT_EQ(byte_at(other), 0);
	EXPECT_EQ(rig_free_bytes(), 0u);
	end();
}

/* ---- pinned ---- */

static void free_pinned_again(void)
{
	EXPECT_EQ(npu_call(rig, halMemFree, pinned), DRV_ERROR_INVALID_VALUE);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "given back by aclrtFreeHost");
	EXPECT_NE(npu_call(rig, drvMemcpy, (DVdeviceptr)memory, BYTES, (DVdeviceptr)pinned, BYTES),
		  DRV_ERROR_NONE);
	other = rig_pinned(BYTES);
	EXPECT_NE(other, pinned); /* somebody's still */
	memset(other, 3, BYTES);
}

TEST(free_away, pinned_freed_again)
{
	unsigned char state;

	begin();
	pinned = alloc(BYTES, RIG_HOST_FLAG);
	memset(pinned, 7, BYTES);
	fault = free_pinned_again;
	CALL(halMemFree, pinned);
	EXPECT_EQ(mincore(pinned, 1, &state), 0); /* kept, without access */
	CALL(drvMemcpy, (DVdeviceptr)memory, BYTES, (DVdeviceptr)other, BYTES);
	EXPECT_EQ(byte_at(memory), 3);
	EXPECT_EQ(rig_pinned(BYTES), pinned);
	EXPECT_EQ(*(unsigned char *)pinned, 0);
	end();
}

static uint64_t large;

static void *take_pinned(void *arg)
{
	other = alloc(large, RIG_HOST_FLAG);
	return arg;
}

static void *take_reservation(void *arg)
{
	CALL(halMemAddressReserve, &other, large, 0, NULL, MEM_HUGE_PAGE_TYPE);
	return arg;
}

static const struct taking takings[] = { { "pinned", take_pinned },
					 { "reserved", take_reservation } };

/* The window has no room for both. */
TEST_EACH(free_away, addresses_that_are_asked_for_are_waited_for, takings, title)
{
	const struct taking *taking = param;
	const struct window *w;

	begin();
	w = bsim_of(rig)->window;
	large = 16 * WINDOW_GIB;
	pinned = alloc((w->end - w->normal_base) / WINDOW_GIB * WINDOW_GIB - large, RIG_HOST_FLAG);
	EXPECT_NE(npu_call(rig, halMemAlloc, &other, large, RIG_HOST_FLAG), DRV_ERROR_NONE);
	other = NULL;
	free_beside(taking->take, begin_to_take, pinned);
	EXPECT_EQ(other, pinned);
	if (taking->take == take_pinned) {
		CALL(halMemFree, other);
	} else {
		CALL(halMemAddressFree, other);
	}
	end();
}

/* ---- a mapping that the CPU reaches ---- */

static void open_to_cpu(void *at)
{
	struct drv_mem_access_desc host = { .location = { .side = MEM_HOST_SIDE },
					    .type = MEM_ACCESS_TYPE_READWRITE };

	CALL(halMemSetAccess, at, BYTES, &host, 1);
	pinned = at;
}

static void map_for_cpu(void (*meanwhile)(void))
{
	rig_open();
	memory = map();
	open_to_cpu(memory);
	memset(memory, 7, BYTES);
	free_before = rig_free_bytes();
	fault = meanwhile;
}

static void write_by_cpu(void)
{
	memset(memory, 9, BYTES);
}

/* What the program does beside an unmap is not lost. */
TEST(free_away, written_by_the_cpu_while_it_is_unmapped)
{
	map_for_cpu(write_by_cpu);
	CALL(halMemUnmap, memory);
	CALL(halMemMap, memory, BYTES, 0, handle, 0);
	EXPECT_EQ(byte_at(memory), 9);
	end();
}

/* There is no mapping any more. */
static void find_leaving(void)
{
	struct npu_place place;

	EXPECT_EQ(npu_call(rig, halMemUnmap, memory), DRV_ERROR_PARA_ERROR);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "nothing is mapped");
	EXPECT_NE(npu_call(rig, drvMemsetD8, (DVdeviceptr)memory, BYTES, 5, BYTES), DRV_ERROR_NONE);
	CALL(npusimPlace, (uintptr_t)memory, &place);
	EXPECT_EQ(place.kind, NPU_PLACE_RESERVED);
	EXPECT_EQ(place.next_mapped, (uintptr_t)memory + BYTES);
}

static void unmap_again(void)
{
	find_leaving();
	/* its frames are nobody else's */
	CALL(halMemRelease, handle);
	EXPECT_EQ(rig_free_bytes(), free_before);
}

TEST(free_away, unmapped_twice)
{
	map_for_cpu(unmap_again);
	CALL(halMemUnmap, memory);
	EXPECT_EQ(rig_free_bytes(), free_before + BYTES);
	CALL(halMemAddressFree, memory);
	EXPECT_EQ(rig_pinned(BYTES), memory);
	EXPECT_EQ(*(unsigned char *)memory, 0);
	end();
}

/* Its addresses are nobody else's before, and a map or a release there need not be made again. */
static void *map_again(void *arg)
{
	CALL(halMemMap, memory, BYTES, 0, handle, 0);
	return arg;
}

static void *release_addresses(void *arg)
{
	CALL(halMemAddressFree, memory);
	CALL(halMemAddressReserve, &other, BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	EXPECT_EQ(other, memory);
	CALL(halMemMap, other, BYTES, 0, handle, 0);
	return arg;
}

static const struct taking takings_of_a_mapping[] = { { "mapped", map_again },
						      { "released", release_addresses } };

TEST_EACH(free_away, addresses_of_a_mapping_are_waited_for, takings_of_a_mapping, title)
{
	const struct taking *taking = param;

	map_for_cpu(begin_to_take);
	take = taking->take;
	CALL(halMemUnmap, memory);
	pthread_join(taker, NULL);
	EXPECT_EQ(byte_at(memory), 7);
	fill(memory);
	end();
}

/* Another mapping of the reservation is in the way as ever. */
static void find_the_other(void)
{
	struct npu_place place;

	CALL(npusimPlace, (uintptr_t)memory, &place);
	EXPECT_EQ(place.next_mapped, (uintptr_t)other);
	EXPECT_EQ(npu_call(rig, halMemMap, other, BYTES, 0, handle, 0), DRV_ERROR_IOCRL_FAIL);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "is mapped already");
	EXPECT_EQ(npu_call(rig, halMemAddressFree, memory), DRV_ERROR_BUSY);
	EXPECT_CONTAINS(npu_call(rig, npusimLastMessage), "still has mappings (1)");
}

TEST(free_away, unmapped_beside_another)
{
	drv_mem_handle_t *first;

	map_for_cpu(NULL);
	first = handle;
	CALL(halMemUnmap, memory);
	CALL(halMemAddressFree, memory);
	CALL(halMemAddressReserve, &memory, 2 * BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	other = (char *)memory + BYTES;
	CALL(halMemMap, memory, BYTES, 0, first, 0);
	CALL(halMemMap, other, BYTES, 0, create(), 0);
	open_to_cpu(memory);
	fault = find_the_other;
	CALL(halMemUnmap, memory);
	end();
}

static void close_again(void)
{
	use_the_other_device();
	find_leaving();
	rig_device_close(1);
}

TEST(free_away, unmapped_by_a_reset)
{
	map_for_cpu(close_again);
	rig_device_close(0);
	CALL(halMemAddressFree, memory);
	rig_device_open(0);
	rig_device_open(1);
	EXPECT_EQ(map(), memory);
	EXPECT_EQ(byte_at(memory), 0);
	end();
}
