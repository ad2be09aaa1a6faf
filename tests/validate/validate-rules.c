/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of validate-program about calls that fail: access that nobody gave, what follows from an
 * earlier failure, numbers of devices.
 */
#include "validate-program.h"

#include <npusim/npusim.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const aclrtMemAccessDesc first_device = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
						 .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };

static aclrtDrvMemHandle memory_of(uint32_t dev, aclError *code)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .id = dev,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle = NULL;

	*code = aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0);
	return handle;
}

/* ---- access ---- */

static struct mapping map_far(uint32_t dev)
{
	struct mapping mapping;
	aclError code;
	void *va;

	MUST(aclrtSetDevice((int32_t)dev));
	mapping.handle = memory_of(dev, &code);
	MUST(code);
	MUST(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(va, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtSetDevice(0));
	mapping.va = va;
	return mapping;
}

static void peer_without_access(void)
{
	struct mapping mapping = map_far(1);

	MUST(aclrtMemcpyAsync(mapping.va, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	printf("copied %d\n", aclrtSynchronizeStream(one) != ACL_SUCCESS);
	unmap(mapping);
}

/* Each row fails, and each is explained once. */
static void rows_without_access(void)
{
	struct mapping mapping = map_far(1);

	MUST(aclrtMemcpy2dAsync(mapping.va, 4096, device, 64, 64, 200, ACL_MEMCPY_DEVICE_TO_DEVICE,
				one));
	printf("copied %d\n", aclrtSynchronizeStream(one) != ACL_SUCCESS);
	unmap(mapping);
}

/* The second copy was possible when the first one failed. */
static void access_lost_later(void)
{
	struct mapping never = map_far(2), lost = map_far(1);
	aclrtEvent first, second;

	MUST(aclrtDeviceEnablePeerAccess(1, 0));
	MUST(aclrtCreateEventWithFlag(&first, ACL_EVENT_SYNC));
	MUST(aclrtCreateEventWithFlag(&second, ACL_EVENT_SYNC));
	MUST(aclrtStreamWaitEvent(one, first));
	MUST(aclrtMemcpyAsync(never.va, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	MUST(aclrtStreamWaitEvent(one, second));
	MUST(aclrtMemcpyAsync(lost.va, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	MUST(aclrtRecordEvent(first, two));
	aclrtSynchronizeStreamWithTimeout(one, 20);
	MUST(aclrtDeviceDisablePeerAccess(1));
	MUST(aclrtRecordEvent(second, two));
	printf("copied %d\n", aclrtSynchronizeStream(one) != ACL_SUCCESS);
	MUST(aclrtDestroyEvent(first));
	MUST(aclrtDestroyEvent(second));
	unmap(never);
	unmap(lost);
}

static void peer_with_access(void)
{
	struct mapping mapping = map_far(1);

	MUST(aclrtDeviceEnablePeerAccess(1, 0));
	MUST(aclrtMemcpyAsync(mapping.va, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	MUST(aclrtSynchronizeStream(one));
	unmap(mapping);
}

/* ---- what follows ---- */

/* More is mapped than the handle has. */
static struct mapping map_too_much(void)
{
	struct mapping mapping;
	aclError code;
	void *va;

	mapping.handle = memory_of(0, &code);
	MUST(code);
	MUST(aclrtReserveMemAddress(&va, 4 * MIB, 0, NULL, 1));
	mapping.va = va;
	printf("map %d\n", aclrtMapMem(va, 4 * MIB, 0, mapping.handle, 0));
	return mapping;
}

static void copies_after_failed_map(void)
{
	struct mapping mapping = map_too_much();

	printf("copy %d\n",
	       aclrtMemcpy(mapping.va + PART, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE));
	printf("copy %d\n",
	       aclrtMemcpyAsync(mapping.va, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE, one));
	printf("unmap %d\n", aclrtUnmapMem(mapping.va));
	MUST(aclrtFreePhysical(mapping.handle));
	MUST(aclrtReleaseMemAddress(mapping.va));
}

/* The unmap fails, and nobody looks. */
static void releases_what_is_mapped(void)
{
	struct mapping mapping = map();

	printf("unmap %d\n", aclrtUnmapMem(mapping.va));
	printf("release %d\n", aclrtReleaseMemAddress(mapping.va));
	unmap(mapping);
}

/* Peer access fails, and nobody looks. */
static void copies_without_peer(void)
{
	struct mapping mapping = map_far(1);

	printf("peer %d\n", aclrtDeviceEnablePeerAccess(1, 0));
	MUST(aclrtMemcpyAsync(mapping.va, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	printf("copied %d\n", aclrtSynchronizeStream(one) != ACL_SUCCESS);
	unmap(mapping);
}

static void maps_again(void)
{
	struct mapping mapping = map_too_much();

	printf("unmap %d\n",
	       aclrtUnmapMem(mapping.va + 4096)); /* no map would have made it right */
	MUST(aclrtMapMem(mapping.va, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtMemcpy(mapping.va, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtUnmapMem(mapping.va));
	printf("unmap %d\n", aclrtUnmapMem(mapping.va + MIB)); /* a failure of its own */
	MUST(aclrtFreePhysical(mapping.handle));
	MUST(aclrtReleaseMemAddress(mapping.va));
}

/* ---- memory that another process has ---- */

/* As CASE_DO says. */
static void use_share(aclrtDrvMemHandle handle)
{
	const char *what = getenv("CASE_DO");
	void *va;

	MUST(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(va, 2 * MIB, 0, handle, 0));
	if (strcmp(what, "fill") == 0) {
		MUST(aclrtMemset(va, PART, 3, PART));
	} else if (strcmp(what, "read") == 0) {
		MUST(aclrtMemcpy(pinned, 64, va, 64, ACL_MEMCPY_DEVICE_TO_HOST));
	} else {
		MUST(aclrtMemcpyAsync(va, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
		MUST(aclrtSynchronizeStream(one));
	}
	MUST(aclrtUnmapMem(va));
	MUST(aclrtReleaseMemAddress(va));
}

/* Run by keeper_start(), in a process of its own: uses a share, and holds it, or what has a key,
 * until its stdin ends. */
static void holds_share(void)
{
	const char *shared = getenv("CASE_SHARE"), *key = getenv("CASE_KEY");
	aclrtDrvMemHandle handle;
	void *opened;
	char end;

	if (key != NULL)
		MUST(aclrtIpcMemImportByKey(&opened, key, 0));
	else
		MUST(aclrtMemImportFromShareableHandle(strtoull(shared, NULL, 0), 0, &handle));
	if (key == NULL && getenv("CASE_DO") != NULL)
		use_share(handle);
	if (write(STDOUT_FILENO, "held", 4) != 4 || read(STDIN_FILENO, &end, 1) != 0)
		exit(4);
	if (key != NULL)
		MUST(aclrtIpcMemClose(key));
	else
		MUST(aclrtFreePhysical(handle));
}

struct keeper {
	int in, out; /* of its stdin, of its stdout */
	pid_t pid;
};

static void share_handle(aclrtDrvMemHandle handle)
{
	char text[32];
	uint64_t share;

	MUST(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
					     ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
					     &share));
	snprintf(text, sizeof(text), "%#llx", (unsigned long long)share);
	setenv("CASE_SHARE", text, 1);
}

static struct keeper keeper_start(void)
{
	struct keeper keeper;
	int in[2], out[2];
	char held[4];

	if (pipe(in) != 0 || pipe(out) != 0)
		exit(4);
	keeper.pid = fork();
	if (keeper.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		execl("/proc/self/exe", "validate-program", "holds_share", NULL);
		_exit(4);
	}
	close(in[0]);
	close(out[1]);
	keeper.in = in[1];
	keeper.out = out[0];
	if (read(keeper.out, held, sizeof(held)) != sizeof(held))
		exit(4);
	return keeper;
}

static void keeper_end(struct keeper keeper)
{
	int status;

	close(keeper.in);
	if (waitpid(keeper.pid, &status, 0) != keeper.pid || status != 0)
		printf("keeper: %d\n", status);
	close(keeper.out);
}

static void frees_what_is_kept(void)
{
	struct mapping mapping = map();
	struct keeper keeper;

	share_handle(mapping.handle);
	keeper = keeper_start();
	unmap(mapping);
	MUST(npusimMark("shared"));
	keeper_end(keeper);
}

static void frees_after_importer(void)
{
	struct mapping mapping = map();
	struct keeper keeper;

	share_handle(mapping.handle);
	keeper = keeper_start();
	MUST(aclrtFreePhysical(mapping.handle)); /* it stays mapped, so it is no other's alone */
	MUST(npusimMark("shared"));
	keeper_end(keeper);
	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtReleaseMemAddress(mapping.va));
	MUST(npusimMark("shared"));
}

static void exports_for_nobody(void)
{
	struct mapping mapping = map();

	share_handle(mapping.handle);
	unmap(mapping);
}

static void frees_before_key(void)
{
	char key[65];

	MUST(aclrtIpcMemGetExportKey(device, 4 * PART, key, sizeof(key), 0));
	MUST(aclrtFree(device));
	device = NULL;
	MUST(aclrtIpcMemClose(key));
}

static void frees_after_key(void)
{
	char key[65];

	MUST(aclrtIpcMemGetExportKey(device, 4 * PART, key, sizeof(key), 0));
	MUST(aclrtIpcMemClose(key));
}

static void frees_what_has_key(void)
{
	struct keeper keeper;
	char key[65];

	MUST(aclrtIpcMemGetExportKey(device, 4 * PART, key, sizeof(key),
				     ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	setenv("CASE_KEY", key, 1);
	keeper = keeper_start();
	MUST(aclrtFree(device));
	device = NULL;
	MUST(npusimMark("shared"));
	keeper_end(keeper);
	MUST(aclrtIpcMemClose(key));
}

AS_WRITTEN static void leaves_imported(void)
{
	char key[65];
	void *opened;

	for (int i = 0; i < 2; i++) {
		void *own;

		MUST(aclrtMalloc(&own, PART, ACL_MEM_MALLOC_HUGE_FIRST));
		MUST(aclrtIpcMemGetExportKey(own, PART, key, sizeof(key), 0));
		MUST(aclrtIpcMemImportByKey(&opened, key, 0));
	}
}

/* ---- memory that another process uses ---- */

/* Another process does that with it, while this one has queued a copy there; then it is read. */
static void share_while(const char *what, size_t queued_at, bool waits, size_t read_at)
{
	struct mapping mapping = map();
	struct keeper keeper;

	share_handle(mapping.handle);
	setenv("CASE_DO", what, 1);
	if (queued_at < 2 * PART)
		MUST(aclrtMemcpyAsync(mapping.va + queued_at, PART, pinned, PART,
				      ACL_MEMCPY_HOST_TO_DEVICE, one));
	if (waits)
		MUST(aclrtSynchronizeStream(one));
	keeper = keeper_start();
	if (read_at < 2 * PART)
		MUST(aclrtMemcpy(device, 64, mapping.va + read_at, 64,
				 ACL_MEMCPY_DEVICE_TO_DEVICE));
	MUST(aclrtSynchronizeStream(one));
	keeper_end(keeper);
	unmap(mapping);
}

static void importer_reads_unwritten(void)
{
	share_while("read", PART, true, PART);
}

static void reads_what_importer_left(void)
{
	share_while("fill", SIZE_MAX, true, PART);
}

static void reads_what_importer_wrote(void)
{
	share_while("fill", PART, true, 0);
}

/* Nobody knows what it writes. */
static void importer_does_not_tell(void)
{
	setenv("NPUSIM_VALIDATE", "off", 1);
	share_while("fill", SIZE_MAX, true, PART);
}

static void writes_together(void)
{
	share_while("queue", 0, false, SIZE_MAX);
}

static void fills_while_other_writes(void)
{
	share_while("fill", 0, false, SIZE_MAX);
}

static void writes_apart(void)
{
	share_while("queue", PART, false, SIZE_MAX);
}

/* Ordered by the pipe. */
static void writes_in_turn(void)
{
	share_while("queue", 0, true, 0);
}

/* Ordered by a value that the other may have polled for. */
static void writes_behind_flag(void)
{
	struct mapping mapping = map();
	struct keeper keeper;

	share_handle(mapping.handle);
	setenv("CASE_DO", "queue", 1);
	MUST(aclrtMemcpyAsync(mapping.va, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(aclrtMemcpyAsync(mapping.va + PART, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, one));
	keeper = keeper_start();
	MUST(aclrtSynchronizeStream(one));
	keeper_end(keeper);
	unmap(mapping);
}

/* ---- strict ---- */

static void maps_where_it_was(void)
{
	struct mapping mapping = map();
	void *next;

	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtReleaseMemAddress(mapping.va));
	MUST(aclrtReserveMemAddress(&next, 2 * MIB, 0, NULL, 1));
	printf("elsewhere %d\n", next != mapping.va);
	if (next != mapping.va)
		printf("map %d\n", aclrtMapMem(mapping.va, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtFreePhysical(mapping.handle));
	MUST(aclrtReleaseMemAddress(next));
}

/* More than the window has, one after the other; then where the last was. */
static void reserves_in_turn(void)
{
	void *first, *next;

	for (int i = 0; i < 200; i++) {
		MUST(aclrtReserveMemAddress(&next, (size_t)100 << 30, 0, NULL, 1));
		MUST(aclrtReleaseMemAddress(next));
	}
	first = next;
	MUST(aclrtReserveMemAddress(&next, (size_t)1 << 30, 0, first, 1));
	printf("wanted %d\n", next == first);
	MUST(aclrtReleaseMemAddress(next));
}

/* ---- numbers, with ASCEND_RT_VISIBLE_DEVICES=1 ---- */

static void takes_driver_number(void)
{
	aclError code;

	memory_of(1, &code);
	printf("malloc %d\n", code);
}

static void takes_own_number(void)
{
	struct mapping mapping = map();
	aclrtMemAccessDesc desc = first_device;

	printf("access %d\n", aclrtMemSetAccess(mapping.va, 2 * MIB, &desc, 1));
	unmap(mapping);
}

static void takes_right_numbers(void)
{
	struct mapping mapping = map();
	aclrtMemAccessDesc desc = first_device;

	desc.location.id = 1;
	MUST(aclrtMemSetAccess(mapping.va, 2 * MIB, &desc, 1));
	unmap(mapping);
}

/* ---- nodes: devices 0 and 1 are near node 6, 4 and 5 near node 0 ---- */

static struct mapping map_on_node(uint32_t node)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_DDR_MEM_HUGE,
				      .location = { .id = node,
						    .type = ACL_MEM_LOCATION_TYPE_HOST_NUMA } };
	struct mapping mapping;
	void *va;

	MUST(aclrtMallocPhysical(&mapping.handle, 2 * MIB, &prop, 0));
	MUST(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(va, 2 * MIB, 0, mapping.handle, 0));
	mapping.va = va;
	return mapping;
}

static void far_node(void)
{
	struct mapping mapping = map_on_node(0);

	MUST(aclrtMemcpyAsync(mapping.va, PART, device, PART, ACL_MEMCPY_DEFAULT, one));
	MUST(aclrtSynchronizeStream(one));
	unmap(mapping);
}

static void near_nodes(void)
{
	struct mapping near = map_on_node(6), any = map_on_node(UINT32_MAX);

	MUST(aclrtMemcpyAsync(near.va, PART, device, PART, ACL_MEMCPY_DEFAULT, one));
	MUST(aclrtMemcpyAsync(any.va, PART, device, PART, ACL_MEMCPY_DEFAULT, one));
	MUST(aclrtMemcpyAsync(pinned, PART, device, PART, ACL_MEMCPY_DEFAULT, one));
	MUST(aclrtSynchronizeStream(one));
	unmap(near);
	unmap(any);
}

/* From now on memory is bound to a node, which each machine has; -1: to none. */
static void bind_to(int node)
{
	unsigned long nodes = 1ul << (node & 63);

	if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND,
		    node < 0 ? NULL : &nodes, 8 * sizeof(nodes)) != 0)
		exit(77); /* a container may refuse it */
}

static void *pinned_on_node_0(void)
{
	void *memory = NULL;

	bind_to(0);
	MUST(aclrtMallocHost(&memory, 65536));
	memset(memory, 1, 65536);
	bind_to(-1);
	return memory;
}

static void far_pinned(void)
{
	void *memory = pinned_on_node_0();

	MUST(aclrtMemcpy(device, 65536, memory, 65536, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtFreeHost(memory));
}

static void near_pinned(void)
{
	void *memory = pinned_on_node_0(), *other = NULL;

	MUST(aclrtSetDevice(4));
	MUST(aclrtMalloc(&other, PART, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtMemcpy(other, 65536, memory, 65536, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtFree(other));
	MUST(aclrtResetDevice(4));
	MUST(aclrtSetDevice(0));
	MUST(aclrtFreeHost(memory));
}

static void far_registered(void)
{
	char *memory = aligned_alloc(4096, 65536);
	unsigned long node_0 = 1;
	void *mapped;

	if (syscall(SYS_mbind, memory, 65536, MPOL_BIND, &node_0, 8 * sizeof(node_0), 0) != 0)
		exit(77);
	memset(memory, 1, 65536);
	MUST(aclrtHostRegister(memory, 65536, ACL_HOST_REGISTER_MAPPED, &mapped));
	MUST(aclrtMemcpy(device, 65536, memory, 65536, ACL_MEMCPY_HOST_TO_DEVICE));
	MUST(aclrtHostUnregister(memory));
	free(memory);
}

const struct validate_case rules_cases[] = {
	CASE(peer_without_access),
	CASE(rows_without_access),
	CASE(access_lost_later),
	CASE(peer_with_access),
	CASE(copies_after_failed_map),
	CASE(releases_what_is_mapped),
	CASE(copies_without_peer),
	CASE(maps_again),
	CASE(holds_share),
	CASE(frees_what_is_kept),
	CASE(frees_after_importer),
	CASE(frees_what_has_key),
	CASE(leaves_imported),
	CASE(exports_for_nobody),
	CASE(frees_before_key),
	CASE(frees_after_key),
	CASE(importer_reads_unwritten),
	CASE(reads_what_importer_left),
	CASE(reads_what_importer_wrote),
	CASE(importer_does_not_tell),
	CASE(writes_together),
	CASE(fills_while_other_writes),
	CASE(writes_apart),
	CASE(writes_in_turn),
	CASE(writes_behind_flag),
	CASE(maps_where_it_was),
	CASE(reserves_in_turn),
	CASE(takes_driver_number),
	CASE(takes_own_number),
	CASE(takes_right_numbers),
	CASE(far_node),
	CASE(near_nodes),
	CASE(far_pinned),
	CASE(near_pinned),
	CASE(far_registered),
	{ NULL, NULL },
};
