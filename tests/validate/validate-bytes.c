/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of validate-program about bytes: directions, bounds, overlaps, what nobody wrote, what the
 * program does to memory under a copy, and blocks that it carves itself.
 */
#include "validate-program.h"

#include <npusim/npusim.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- kinds ---- */

static void kind_wrong(void)
{
	printf("copy %d\n", aclrtMemcpy(device, 64, pinned, 64, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void kind_wrong_queued(void)
{
	printf("copy %d\n",
	       aclrtMemcpyAsync(device, 64, pinned, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
}

static void kinds_right(void)
{
	char stack[64] = "";

	MUST(aclrtMemcpy(device, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtMemcpy(stack, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtMemcpy(pinned, 64, stack, 64, ACL_MEMCPY_HOST_TO_HOST));
	MUST(aclrtMemcpy(device + 64, 64, device, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
	MUST(aclrtMemcpy(device, 64, stack, 64, ACL_MEMCPY_DEFAULT));
	MUST(aclrtMemcpyAsync(device, 64, pinned, 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, one));
	MUST(aclrtMemcpyAsync(device, 64, stack, 64, ACL_MEMCPY_HOST_TO_DEVICE, one));
}

/* ---- overlaps ---- */

static void overlaps(void)
{
	MUST(aclrtMemcpy(device + PART / 2, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

static void overlaps_queued(void)
{
	MUST(aclrtMemcpyAsync(device, PART, device + 1, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
}

static void overlaps_not(void)
{
	MUST(aclrtMemcpy(device + PART, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE));
	MUST(aclrtMemcpy(device, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE));
	MUST(aclrtMemsetAsync(device, 4 * PART, 1, 4 * PART, one));
}

/* ---- bounds ---- */

static char *small(size_t bytes)
{
	void *made = NULL;

	MUST(aclrtMalloc(&made, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	return made;
}

static void copies_past_end(void)
{
	char *memory = small(1000);

	printf("copy %d\n", aclrtMemcpy(memory, 1008, pinned, 1008, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtFree(memory));
}

/* Past the pages, too. */
static void copies_far_past_end(void)
{
	char *memory = small(1000);

	printf("copy %d\n",
	       aclrtMemcpy(pinned, 8 << 20, memory, 8 << 20, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtFree(memory));
}

static void fills_past_end(void)
{
	char *memory = small(1000);

	printf("fill %d\n", aclrtMemset(memory + 992, 16, 0, 16));
	MUST(aclrtFree(memory));
}

static void reads_past_host_end(void)
{
	void *host;

	MUST(aclrtMallocHost(&host, 1000));
	memset(host, 0, 1000);
	printf("copy %d\n", aclrtMemcpy(device, 1001, host, 1001, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtFreeHost(host));
}

static void fills_behind_end(void)
{
	char *memory = small(1000);

	printf("fill %d\n", aclrtMemset(memory + 2048, 16, 0, 16));
	MUST(aclrtFree(memory));
}

static void copies_to_end(void)
{
	char *memory = small(1000);

	MUST(aclrtMemcpy(memory, 1000, pinned, 1000, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtMemcpyAsync(pinned, 1000, memory, 1000, ACL_MEMCPY_DEVICE_TO_HOST, one));
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtFree(memory));
}

/* ---- the host's memory under a copy ---- */

static void rewrites_source(void)
{
	copy_in(one);
	pinned[PART / 2] = 9;
	MUST(aclrtSynchronizeStream(one));
}

/* Seen under strict alone. */
static void reads_target(void)
{
	copy_out(one);
	printf("read %d\n", *(volatile char *)(pinned + PART / 2) == 1);
	MUST(aclrtSynchronizeStream(one));
}

/* System calls do not trap. */
static void gives_target_to_kernel(void)
{
	ssize_t got;
	int ends[2];

	if (pipe(ends) != 0 || write(ends[1], "bytes", 5) != 5)
		return;
	copy_out(one);
	got = read(ends[0], pinned + PART / 2, 5);
	printf("read %d %d\n", (int)got, got < 0 && errno == EFAULT);
	MUST(aclrtSynchronizeStream(one));
	printf("then %d\n", got < 0 ? (int)read(ends[0], pinned + PART / 2, 5) : (int)got);
}

/* The pages at both ends are not the copy's alone, and stay open. */
static void writes_beside_copy(void)
{
	MUST(aclrtMemcpyAsync(device, PART - 64, pinned + 32, PART - 64, ACL_MEMCPY_HOST_TO_DEVICE,
			      one));
	pinned[0] = pinned[PART - 1] = 3;
	MUST(aclrtSynchronizeStream(one));
}

static void rewrites_source_in_turn(void)
{
	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtMemcpyAsync(device + PART, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(aclrtRecordEvent(other_event, one));
	MUST(aclrtSynchronizeEvent(event));
	memset(pinned, 9, PART);
	MUST(aclrtSynchronizeEvent(other_event));
}

static void rewrites_when_done(void)
{
	aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;

	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
	memset(pinned, 2, PART);
	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
		MUST(aclrtQueryEventStatus(event, &status));
	memset(pinned, 3, PART);
	copy_in(one);
	MUST(aclrtSynchronizeDevice());
	memset(pinned, 4, PART);
}

static void rewrite(void *arg)
{
	memset(arg, 5, PART);
}

static void rewrites_in_host_function(void)
{
	MUST(aclrtSynchronizeStream(one)); /* from here on waits are told */
	copy_in(one);
	MUST(aclrtLaunchHostFunc(one, rewrite, pinned));
	MUST(aclrtSynchronizeStream(one));
}

static void host_function_fills_source(void)
{
	MUST(aclrtLaunchHostFunc(one, rewrite, pinned));
	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
}

static void engine_rewrites_source(void)
{
	copy_in(one);
	MUST(aclrtMemsetAsync(device, PART, 6, PART, one));
	copy_out(one);
	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
}

/* The program knows by a flag that what came before it is done, and calls nothing. */
static void polls_for_flag(void)
{
	char *flag;
	void *made;

	MUST(aclrtMallocHost(&made, 64));
	flag = made;
	memset(flag, 7, 64);
	copy_in(one);
	MUST(aclrtMemcpyAsync(flag, 4, device + PART, 4, ACL_MEMCPY_DEVICE_TO_HOST, one));
	while (*(volatile char *)flag != 0)
		;
	memset(pinned, 8, PART);
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtFreeHost(made));
}

/* What the target holds before its copy: a host that is too busy to look in time looks again. */
static int looks_too_early(size_t bytes, size_t at)
{
	volatile unsigned char *early = (unsigned char *)pinned;
	int before = 7;

	for (int i = 0; before == 7 && i < 1000; i++) {
		memset(pinned, 1, bytes);
		MUST(aclrtMemcpyAsync(pinned, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST,
				      one));
		before = early[at];
		MUST(aclrtSynchronizeStream(one));
	}
	return before;
}

static void reads_too_early(void)
{
	int before;

	MUST(aclrtMemset(device, PART, 7, PART));
	before = looks_too_early(PART, PART / 2);
	printf("early %d, then %d\n", before, pinned[PART / 2]);
	before = looks_too_early(8, 0);
	printf("flag %d, then %d\n", before, pinned[0]);
}

/* ---- what nobody wrote ---- */

static void reads_unwritten(void)
{
	char *memory = small(PART);

	MUST(aclrtMemcpy(pinned, PART, memory, PART, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtFree(memory));
}

static void reads_unwritten_mapping(void)
{
	struct mapping mapping = map();

	MUST(aclrtMemcpyAsync(mapping.va, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(aclrtMemcpyAsync(pinned, PART, mapping.va + PART, PART, ACL_MEMCPY_DEVICE_TO_HOST,
			      one));
	MUST(aclrtSynchronizeStream(one));
	unmap(mapping);
}

static void reads_partly_written(void)
{
	char *memory = small(PART);

	MUST(aclrtMemset(memory, PART, 1, PART / 2));
	MUST(aclrtMemset(memory + PART / 2 + 8, PART / 2 - 8, 1, PART / 2 - 8));
	MUST(aclrtMemcpy(pinned, PART, memory, PART, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtFree(memory));
}

static void copies_unwritten_on(void)
{
	char *memory = small(PART);

	MUST(aclrtMemcpy(device + 3, PART, memory, PART, ACL_MEMCPY_DEVICE_TO_DEVICE));
	MUST(aclrtMemcpy(pinned, 64, device + 64, 64, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtFree(memory));
}

static void written_by_other_mapping(void)
{
	struct mapping mapping = map();
	void *again;

	MUST(aclrtMemset(mapping.va, 2 * MIB, 1, 2 * MIB));
	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtReserveMemAddress(&again, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(again, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtMemcpy(pinned, PART, (char *)again + PART, PART, ACL_MEMCPY_DEVICE_TO_HOST));
	MUST(aclrtReleaseMemAddress(mapping.va));
	mapping.va = again;
	unmap(mapping);
}

static void written_by_host(void)
{
	struct mapping mapping = map();
	aclrtMemAccessDesc host = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				    .location = { 0, ACL_MEM_LOCATION_TYPE_HOST } };

	MUST(aclrtMemSetAccess(mapping.va, 2 * MIB, &host, 1));
	memset(mapping.va, 1, PART);
	MUST(aclrtMemcpy(pinned, PART, mapping.va, PART, ACL_MEMCPY_DEVICE_TO_HOST));
	unmap(mapping);
}

/* The wait is queued before the record: who writes is not known yet. */
static void written_in_other_stream(void)
{
	char *memory = small(PART);
	aclrtEvent later;

	MUST(aclrtCreateEventWithFlag(&later, ACL_EVENT_SYNC));
	MUST(aclrtStreamWaitEvent(two, later));
	MUST(aclrtMemcpyAsync(pinned, PART, memory, PART, ACL_MEMCPY_DEVICE_TO_HOST, two));
	MUST(aclrtMemsetAsync(memory, PART, 1, PART, one));
	MUST(aclrtRecordEvent(later, one));
	MUST(aclrtSynchronizeStream(two));
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtDestroyEvent(later));
	MUST(aclrtFree(memory));
}

/* What new memory holds: little, much and mapped; twice, since the second may have been the
 * first's.
 */
static void new_memory(void)
{
	for (int i = 0; i < 2; i++) {
		struct mapping mapping = map();
		char *made[] = { small(4096), small(3 * PART), mapping.va };

		for (int k = 0; k < 3; k++) {
			unsigned char last = 1;

			MUST(aclrtMemcpy(&last, 1, made[k] + 4095, 1, ACL_MEMCPY_DEVICE_TO_HOST));
			printf(" %d", last);
			MUST(aclrtMemset(made[k], 4096, 7, 4096));
		}
		MUST(aclrtFree(made[0]));
		MUST(aclrtFree(made[1]));
		unmap(mapping);
	}
}

/* ---- blocks ---- */

static void block_past_end(void)
{
	MUST(npusimBlock(device + 512, 512));
	MUST(npusimBlock(device + 1024, 512));
	MUST(aclrtMemset(device + 512, 513, 0, 513));
}

static void block_unwritten(void)
{
	MUST(npusimBlock(device, 512));
	MUST(aclrtMemset(device, 256, 0, 256));
	MUST(aclrtMemcpy(pinned, 512, device, 512, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void block_given_back(void)
{
	MUST(npusimBlock(device, 512));
	MUST(npusimBlockFree(device));
	MUST(aclrtMemset(device + 256, 256, 0, 256));
}

static void block_given_back_twice(void)
{
	MUST(npusimBlock(device, 512));
	MUST(npusimBlockFree(device));
	MUST(npusimBlockFree(device));
}

/* As an allocator that hands blocks on in the order of a stream. */
static void blocks_in_turn(void)
{
	MUST(npusimBlock(device, 512));
	MUST(aclrtMemcpyAsync(device, 512, pinned, 512, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(npusimBlockFree(device));
	MUST(npusimBlock(device, 1024));
	MUST(aclrtMemcpyAsync(device, 1024, pinned, 1024, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(aclrtMemcpyAsync(pinned + 1024, 1024, device, 1024, ACL_MEMCPY_DEVICE_TO_HOST, one));
	MUST(aclrtSynchronizeStream(one));
	MUST(npusimBlockFree(device));
	MUST(npusimBlockFree(device + 1)); /* no block: of no interest */
	if (npusimBlock(NULL, 1) != 100000 || npusimBlock(device, 0) != 100000)
		printf("npusimBlock: no error\n");
}

const struct validate_case bytes_cases[] = {
	CASE(kind_wrong),
	CASE(kind_wrong_queued),
	CASE(kinds_right),
	CASE(overlaps),
	CASE(overlaps_queued),
	CASE(overlaps_not),
	CASE(copies_past_end),
	CASE(copies_far_past_end),
	CASE(fills_past_end),
	CASE(reads_past_host_end),
	CASE(fills_behind_end),
	CASE(copies_to_end),
	CASE(rewrites_source),
	CASE(reads_target),
	CASE(gives_target_to_kernel),
	CASE(writes_beside_copy),
	CASE(rewrites_source_in_turn),
	CASE(rewrites_when_done),
	CASE(rewrites_in_host_function),
	CASE(host_function_fills_source),
	CASE(engine_rewrites_source),
	CASE(polls_for_flag),
	CASE(reads_too_early),
	CASE(reads_unwritten),
	CASE(reads_unwritten_mapping),
	CASE(reads_partly_written),
	CASE(copies_unwritten_on),
	CASE(written_by_other_mapping),
	CASE(written_by_host),
	CASE(written_in_other_stream),
	CASE(new_memory),
	CASE(block_past_end),
	CASE(block_unwritten),
	CASE(block_given_back),
	CASE(block_given_back_twice),
	CASE(blocks_in_turn),
	{ NULL, NULL },
};
