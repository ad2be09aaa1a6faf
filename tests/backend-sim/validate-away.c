/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer, where a driver gives the address or id that a call gave back to another
 * thread before the layer hears that the call is over: at that very place the other thread's call
 * is made, and what it was given is known as its own.
 */
#include <glib.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"
#include "queue-rig.h"
#include "queue/queue.h"

#define BYTES        (4 * MIB)
#define DEPTH        8u
#define HANDLES_KEPT 4096u /* a record is used again when more were freed */

static char file[] = "/tmp/validate-away-XXXXXX";

/* ---- the place: below the layer, the call of that name is over ---- */

static void (*fault)(void);
static const char *place;

static sem_t over;

static void *run(void *now)
{
	(*(void (**)(void))now)();
	sem_post(&over);
	while (pause() != 0)
		continue;
	return now;
}

/* In a thread that stays: at the end of one ThreadSanitizer is gone before the library that unwinds
 * stacks, which then takes a lock. */
static void run_armed(void)
{
	void (*now)(void) = fault;
	pthread_t thread;

	fault = NULL;
	sem_init(&over, 0, 0);
	ASSERT_EQ(pthread_create(&thread, NULL, run, &now), 0);
	pthread_detach(thread);
	while (sem_wait(&over) != 0)
		continue;
}

drvError_t __real_bsim_end(struct bsim_call *call);
drvError_t __wrap_bsim_end(struct bsim_call *call);

drvError_t __wrap_bsim_end(struct bsim_call *call)
{
	bool there = fault != NULL && call->name != NULL && strcmp(call->name, place) == 0;
	drvError_t result = __real_bsim_end(call);

	if (there)
		run_armed();
	return result;
}

static void arm(const char *at, void (*meanwhile)(void))
{
	place = at;
	fault = meanwhile;
}

/* How often the file of reports has the text. */
static unsigned reported(const char *text)
{
	g_autofree char *all = NULL;
	unsigned found = 0;

	EXPECT_TRUE(g_file_get_contents(file, &all, NULL, NULL));
	for (const char *at = all; (at = strstr(at, text)) != NULL; at++)
		found++;
	return found;
}

static void begin(void)
{
	strcpy(file + sizeof(file) - sizeof("XXXXXX"), "XXXXXX");
	close(mkstemp(file));
	setenv("NPUSIM_VALIDATE", "on", 1);
	setenv("NPUSIM_VALIDATE_FILE", file, 1);
	rig_open();
}

/* ---- memory ---- */

static drv_mem_handle_t *handle;
static void *reserved, *own;
static char name[65];

static uint64_t reserve(void)
{
	void *at = NULL;

	CALL(halMemAddressReserve, &at, BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	return (uint64_t)at;
}

static void release(uint64_t at)
{
	CALL(halMemAddressFree, (void *)at);
}

static uint64_t map(void)
{
	CALL(halMemMap, reserved, BYTES, 0, handle, 0);
	return (uint64_t)reserved;
}

static void unmap(uint64_t at)
{
	CALL(halMemUnmap, (void *)at);
}

static uint64_t alloc(void)
{
	void *at = NULL;

	CALL(halMemAlloc, &at, BYTES, RIG_DEVICE_FLAG | MEM_PAGE_HUGE);
	return (uint64_t)at;
}

static uint64_t alloc_pinned(void)
{
	void *at = NULL;

	CALL(halMemAlloc, &at, BYTES, RIG_HOST_FLAG);
	return (uint64_t)at;
}

static void free_it(uint64_t at)
{
	CALL(halMemFree, (void *)at);
}

static uint64_t enlist(void)
{
	void *at;

	CALL(halHostRegister, own, BYTES, HOST_MEM_MAP_DEV, 0, &at);
	return (uint64_t)own;
}

static void delist(uint64_t at)
{
	CALL(halHostUnregister, (void *)at, 0);
}

static uint64_t open_name(void)
{
	DVdeviceptr at = 0;

	CALL(halShmemOpenHandleByDevId, 0, name, &at);
	return at;
}

static void close_name(uint64_t at)
{
	CALL(halShmemCloseHandle, at);
}

static uint64_t alloc_there(void)
{
	void *at = NULL;

	CALL(halMemAlloc, &at, 2 * BYTES, RIG_DEVICE_FLAG | MEM_PAGE_HUGE | 1);
	return (uint64_t)at;
}

static void close_device(uint64_t at)
{
	(void)at;
	rig_device_close(1);
}

static const struct kind {
	const char *call, *left;
	uint64_t (*make)(void);
	void (*end)(uint64_t at);
} kinds[] = {
	{ "halMemAddressFree", "1 reservation of 4194304 (4 MiB)", reserve, release },
	{ "halMemUnmap", "1 mapping of 4194304 (4 MiB)", map, unmap },
	{ "halMemFree", "1 allocation of 4194304 (4 MiB)", alloc, free_it },
	{ "halMemFree", "1 page-locked host allocation of 4194304 (4 MiB)", alloc_pinned, free_it },
	{ "halHostUnregister", "1 registered host range of 4194304 (4 MiB)", enlist, delist },
	{ "halShmemCloseHandle", "1 imported range of 12582912 (12 MiB)", open_name, close_name },
	{ "halDeviceClose", "1 allocation of 8388608 (8 MiB)", alloc_there, close_device },
};
static const struct kind *kind;
static uint64_t again;

static void make_again(void)
{
	if (kind->end == close_device)
		rig_device_open(1);
	again = kind->make();
}

TEST_CHILD(validate_away, memory)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };
	uint64_t first;

	begin();
	CALL(halMemAddressReserve, &reserved, 2 * BYTES, 0, NULL, MEM_HUGE_PAGE_TYPE);
	CALL(halMemCreate, &handle, BYTES, &prop, 0);
	CALL(halShmemCreateHandle, rig_alloc(0, 3 * BYTES), BYTES, name, sizeof(name));
	own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
		kind = &kinds[i];
		first = kind->make();
		arm(kind->call, make_again);
		kind->end(first);
		EXPECT_NULL(fault);
		EXPECT_EQ(again, first);
	}
	rig_end();
	for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
		NOTE("%s", kinds[i].left);
		EXPECT_EQ(reported(kinds[i].left), 1u);
	}
	EXPECT_EQ(reported("\"rule\""), G_N_ELEMENTS(kinds) + 3); /* what lasted throughout */
	munmap(own, BYTES);
	unlink(file);
}

/* ---- imports ---- */

static uint64_t shares[2];

static uint64_t share_of(unsigned device)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .devid = device,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };
	uint64_t share = 0;

	CALL(halMemCreate, &handle, BYTES, &prop, 0);
	CALL(halMemExportToShareableHandle, handle, MEM_HANDLE_TYPE_NONE, 0, &share);
	return share;
}

static drv_mem_handle_t *import_on(unsigned device)
{
	drv_mem_handle_t *made = NULL;

	CALL(halMemImportFromShareableHandle, shares[1 - device], device, &made);
	return made;
}

static drv_mem_handle_t *imported;

/* The record that was given back last is the next that is used. */
static void import_again(void)
{
	struct handle_table *table = bsim_process->handles;
	struct drv_mem_handle *last;

	bsim_lock(bsim_process);
	last = TAILQ_LAST(&table->freed, handle_list);
	TAILQ_REMOVE(&table->freed, last, link);
	TAILQ_INSERT_HEAD(&table->freed, last, link);
	table->freed_count += HANDLES_KEPT;
	bsim_unlock(bsim_process);
	imported = import_on(0);
}

static void begin_imports(void)
{
	setenv("NPUSIM_CONTRACT", "driver", 1);
	begin();
	for (unsigned d = 0; d < 2; d++)
		shares[d] = share_of(d);
}

/* It is no reference of the one that was released, and does not go with that one's device. */
TEST_CHILD(validate_away, import)
{
	drv_mem_handle_t *first;

	begin_imports();
	first = import_on(1);
	arm("halMemRelease", import_again);
	CALL(halMemRelease, first);
	EXPECT_TRUE(imported == first);
	rig_device_close(1);
	rig_end();
	EXPECT_EQ(reported("1 handle of 0 in all"), 1u);
	unlink(file);
}

/* A release that fails leaves the handle as it was: the next import is a reference. */
TEST_CHILD(validate_away, import_after_a_release_that_failed)
{
	drv_mem_handle_t *first;

	setenv("NPUSIM_FAULT", "mem_release:1:invalid", 1);
	begin_imports();
	first = import_on(1);
	EXPECT_EQ(npu_call(rig, halMemRelease, first), DRV_ERROR_INVALID_VALUE);
	EXPECT_TRUE(import_on(1) == first);
	CALL(halMemRelease, first);
	rig_end();
	EXPECT_EQ(reported("1 handle of 0 in all"), 1u);
	unlink(file);
}

/* A free that failed has not given back what a reset ends; what has its address then has no key. */
TEST_CHILD(validate_away, reset_after_a_free_that_failed)
{
	uint64_t first;

	setenv("NPUSIM_FAULT", "mem_free:1:invalid", 1);
	begin();
	kind = &kinds[G_N_ELEMENTS(kinds) - 1];
	first = kind->make();
	CALL(halShmemCreateHandle, first, BYTES, name, sizeof(name));
	EXPECT_EQ(npu_call(rig, halMemFree, (void *)first), DRV_ERROR_INVALID_VALUE);
	arm(kind->call, make_again);
	kind->end(first);
	EXPECT_EQ(again, first);
	EXPECT_EQ(reported("gives"), 0u);
	CALL(halMemFree, (void *)first);
	rig_end();
	EXPECT_EQ(reported("before its key"), 0u);
	unlink(file);
}

/* ---- two calls that end one, of which one fails ---- */

static uint64_t victim;

__attribute__((noinline)) static void free_in_vain(void)
{
	EXPECT_NE(npu_call(rig, halMemFree, (void *)victim), DRV_ERROR_NONE);
}

__attribute__((noinline)) static void free_well(void)
{
	CALL(halMemFree, (void *)victim);
}

static void fail_and_make_again(void)
{
	void *at = NULL;

	free_in_vain();
	CALL(halMemAlloc, &at, BYTES / 2, RIG_DEVICE_FLAG | MEM_PAGE_HUGE);
	again = (uint64_t)at;
}

/* Whose call came first and whose is over first does not matter. */
TEST_CHILD(validate_away, ended_by_the_call_that_did)
{
	static char plain[64];

	begin();
	victim = alloc();
	CALL(halShmemCreateHandle, victim, BYTES, name, sizeof(name));
	arm("halMemFree", fail_and_make_again);
	free_well();
	EXPECT_NULL(fault);
	EXPECT_EQ(again, victim);
	EXPECT_EQ(reported("before its key"), 1u);
	EXPECT_EQ(npu_call(rig, npusimCheckCopy, victim + BYTES / 2, (DVdeviceptr)plain, 64) ==
			  DRV_ERROR_NONE,
		  false);
	EXPECT_EQ(reported("\"stale-address\""), 1u);
	CALL(halMemFree, (void *)again);
	rig_end();
	EXPECT_EQ(reported("free_well"), 2u);
	EXPECT_EQ(reported("free_in_vain"), 0u);
	EXPECT_EQ(reported("\"rule\""), 2u);
	unlink(file);
}

/* ---- a device's close that has begun ---- */

static sem_t began, goes_on;
static __thread bool stops;

void __real_bsim_lock_in_line(struct bsim *bs);
void __wrap_bsim_lock_in_line(struct bsim *bs);

void __wrap_bsim_lock_in_line(struct bsim *bs)
{
	bool here = stops;

	stops = false;
	if (here)
		sem_post(&began);
	while (here && sem_wait(&goes_on) != 0)
		continue;
	__real_bsim_lock_in_line(bs);
}

static pthread_t late;

/* In a thread, up to the lock, which it has not got yet. */
static void begin_late(void *(*call)(void *))
{
	sem_init(&began, 0, 0);
	sem_init(&goes_on, 0, 0);
	bsim_lock(bsim_process);
	ASSERT_EQ(pthread_create(&late, NULL, call, NULL), 0);
	while (sem_wait(&began) != 0)
		continue;
	bsim_unlock(bsim_process);
}

static void end_late(void)
{
	sem_post(&goes_on);
	pthread_join(late, NULL);
}

static void *close_late(void *arg)
{
	stops = true;
	rig_device_close(1);
	return arg;
}

/* What is made meanwhile goes with the device, and is no leak. */
TEST_CHILD(validate_away, made_while_its_device_is_closed)
{
	begin();
	ASSERT_NO_FATAL(begin_late(close_late));
	EXPECT_NE(alloc_there(), 0u);
	end_late();
	rig_end();
	EXPECT_EQ(reported("\"rule\""), 0u);
	unlink(file);
}

/* Also where none was left: it has the size and the device of the mapping. */
TEST_CHILD(validate_away, retained_again)
{
	drv_mem_handle_t *kept = NULL;

	begin();
	for (unsigned d = 0; d < 2; d++) {
		share_of(d);
		reserved = (void *)reserve();
		map();
		CALL(halMemRelease, handle);
		CALL(halMemRetainAllocationHandle, &kept, reserved);
		CALL(halMemUnmap, reserved);
		CALL(halMemAddressFree, reserved);
	}
	rig_device_close(1);
	rig_end();
	EXPECT_EQ(reported("1 handle of 4194304 (4 MiB) in all"), 1u);
	unlink(file);
}

static void *release_late(void *arg)
{
	stops = true;
	CALL(halMemRelease, handle);
	return arg;
}

/* What a thread retains while another's release has begun is the same handle. */
static void retain_while_released(bool closed)
{
	drv_mem_handle_t *kept = NULL;

	begin();
	share_of(1);
	reserved = (void *)reserve();
	map();
	ASSERT_NO_FATAL(begin_late(release_late));
	CALL(halMemRetainAllocationHandle, &kept, reserved);
	EXPECT_TRUE(kept == handle);
	end_late();
	CALL(halMemUnmap, reserved);
	CALL(halMemAddressFree, reserved);
	if (closed)
		rig_device_close(1);
	rig_end();
	EXPECT_EQ(reported("1 handle of 4194304 (4 MiB)"), closed ? 0u : 1u);
	EXPECT_EQ(reported("1 handle of 0"), 0u);
	unlink(file);
}

TEST_CHILD(validate_away, retained_while_it_is_released)
{
	retain_while_released(false);
}

TEST_CHILD(validate_away, retained_while_released_before_its_device_is_closed)
{
	retain_while_released(true);
}

/* ---- memory that is registered for two devices ---- */

TEST_CHILD(validate_away, registered_twice)
{
	struct rig_stream streams[2];
	void *at[2];

	begin();
	own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned d = 0; d < 2; d++) {
		CALL(halHostRegister, own, BYTES, HOST_MEM_MAP_DEV, d, &at[d]);
		rig_stream_open(&streams[d], d, DEPTH, DEPTH);
	}
	rig_sdma(&streams[0], (uint64_t)at[0], (uint64_t)at[0] + 4096, 64, QUIET);
	CALL(halHostUnregister, own, 1);
	EXPECT_EQ(reported("\"pending-unmap\""), 0u);
	EXPECT_NE(npu_call(rig, halHostUnregister, own, 1), DRV_ERROR_NONE);
	EXPECT_EQ(reported("\"double-free\""), 1u);
	CALL(halHostUnregister, own, 0);
	EXPECT_EQ(reported("\"pending-unmap\""), 1u);
	CALL(halHostRegister, own, BYTES, HOST_MEM_MAP_DEV, 0, &at[0]);
	CALL(halHostRegister, own, BYTES, HOST_MEM_MAP_DEV, 1, &at[1]);
	CALL(halHostUnregister, own, 0);
	rig_end();
	EXPECT_EQ(reported("1 registered host range of 4194304 (4 MiB)"), 1u);
	munmap(own, BYTES);
	unlink(file);
}

/* Of the old memory nothing stays, also where no stack is kept of who gives it back. */
TEST_CHILD(validate_away, block)
{
	static char plain[65536];
	uint64_t first;

	setenv("NPUSIM_STACKS", "off", 1);
	begin();
	kind = &kinds[2];
	first = kind->make();
	CALL(npusimTellBlock, first, 1024);
	arm(kind->call, make_again);
	kind->end(first);
	EXPECT_EQ(again, first);
	CALL(drvMemcpy, again, sizeof(plain), (DVdeviceptr)plain, sizeof(plain));
	CALL(halMemFree, (void *)again);
	rig_end();
	EXPECT_EQ(reported("\"rule\""), 0u);
	unlink(file);
}

/* ---- order ---- */

static struct rig_stream streams[2];
static uint64_t source, target;
static uint32_t event;

static void begin_streams(void)
{
	begin();
	source = rig_alloc(0, MIB);
	target = rig_alloc(0, MIB);
	EXPECT_EQ(npu_call(rig, drvMemsetD8, source, MIB, 3, MIB), DRV_ERROR_NONE);
	for (unsigned i = 0; i < 2; i++)
		ASSERT_NO_FATAL(rig_stream_open(&streams[i], 0, DEPTH, DEPTH));
}

static void end_streams(void)
{
	rig_close();
	rig_end();
	unlink(file);
}

/* The next id is the one that was given back last. */
static void hand_out(struct queue_table *table, uint32_t id)
{
	struct bsim *bs = bsim_process;

	bsim_lock(bs);
	table->next = id;
	bsim_unlock(bs);
}

static void open_stream(void)
{
	struct queue_device *device = &bsim_process->queues->device[0];

	hand_out(&device->queues[DRV_NORMAL_TYPE], streams[1].sq);
	rig_stream_open(&streams[1], 0, DEPTH, DEPTH);
}

/* A program that asks for the head of its queue has waited for what is before it. */
TEST_CHILD(validate_away, stream)
{
	struct rig_stream first;
	char read[64];

	begin_streams();
	first = streams[1];
	arm("halSqCqFree", open_stream);
	rig_stream_close(&first);
	EXPECT_EQ(streams[1].sq, first.sq);
	rig_sdma(&streams[1], target, source, sizeof(read), QUIET);
	while (rig_query(&streams[1], DRV_SQCQ_PROP_SQ_HEAD) != 1)
		usleep(100);
	EXPECT_EQ(npu_call(rig, drvMemcpy, (DVdeviceptr)read, sizeof(read), target, sizeof(read)),
		  DRV_ERROR_NONE);
	EXPECT_EQ(reported("\"race\""), 0u);
	end_streams();
}

/* An entry that was refused makes its queue no part of what is to end before the order is known
 * again. */
TEST_CHILD(validate_away, refused)
{
	struct rig_stream none = { .sq = 77 };
	char entry[STARS_SQE_BYTES] = { 0 };

	begin_streams();
	EXPECT_NE(rig_send(&none, entry, QUIET, 0), DRV_ERROR_NONE);
	rig_wait_value(&streams[0], source, 1, 0x0303030303030303, QUIET);
	while (rig_query(&streams[0], DRV_SQCQ_PROP_SQ_HEAD) !=
	       rig_query(&streams[0], DRV_SQCQ_PROP_SQ_TAIL))
		usleep(100);
	rig_sdma(&streams[0], target, source, 64, QUIET);
	rig_sdma(&streams[1], target, source, 64, QUIET);
	EXPECT_EQ(reported("\"race\""), 1u);
	end_streams();
}

static void record(void)
{
	struct queue_device *device = &bsim_process->queues->device[0];

	hand_out(&device->ids[DRV_EVENT_ID], event);
	event = rig_id(0, DRV_EVENT_ID);
	rig_sdma(&streams[0], target, source, 64, QUIET);
	rig_event(&streams[0], STARS_SQE_EVENT_RECORD, 0, event, 0, QUIET);
}

/* What is behind a record is not waited for; that is known where the record is. */
TEST_CHILD(validate_away, event)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };

	begin_streams();
	record();
	in.resourceId = event;
	arm("halResourceIdFree", record);
	CALL(halResourceIdFree, 0, &in);
	EXPECT_EQ(event, in.resourceId);
	rig_sdma(&streams[0], target + 4096, source, 64, QUIET);
	rig_event(&streams[1], STARS_SQE_EVENT_WAIT, 0, event, 0, QUIET);
	rig_sdma(&streams[1], target, source, 64, QUIET);
	EXPECT_EQ(reported("\"race\""), 0u);
	rig_sdma(&streams[1], target + 4096, source, 64, QUIET);
	EXPECT_EQ(reported("\"race\""), 1u);
	end_streams();
}
