/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that are wrong in one way, and their right twins, for validate-test.py: the case is
 * named by the first argument. Each prints the codes of the calls that are looked at.
 */
#include "validate-program.h"

#include <npusim/npusim.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

aclrtStream one, two;
aclrtEvent event, other_event;
char *device, *pinned;

void must(aclError code, const char *call)
{
	if (code != ACL_SUCCESS)
		printf("%s: %d\n", call, code);
}

void copy_in(aclrtStream stream)
{
	MUST(aclrtMemcpyAsync(device, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, stream));
}

void copy_out(aclrtStream stream)
{
	MUST(aclrtMemcpyAsync(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST, stream));
}

/* ---- order ---- */

static void streams_race(void)
{
	copy_in(one);
	copy_out(two);
}

static void streams_apart(void)
{
	copy_in(one);
	MUST(aclrtMemcpyAsync(device + 2 * PART, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE,
			      two));
}

static void streams_read_one(void)
{
	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtMemcpyAsync(device + PART, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE, one));
	MUST(aclrtMemcpyAsync(device + 2 * PART, PART, device, PART, ACL_MEMCPY_DEVICE_TO_DEVICE,
			      two));
}

static void streams_event(void)
{
	for (int i = 0; i < 3; i++) {
		copy_in(one);
		MUST(aclrtRecordEvent(event, one));
		MUST(aclrtStreamWaitEvent(two, event));
		copy_out(two);
		MUST(aclrtRecordEvent(other_event, two));
		MUST(aclrtStreamWaitEvent(one, other_event));
	}
}

/* A notify orders as an event does, until it is reset. */
static void streams_notify(void)
{
	aclrtNotify notify, back;

	MUST(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
	MUST(aclrtCreateNotify(&back, ACL_NOTIFY_DEFAULT));
	for (int i = 0; i < 2; i++) {
		copy_in(one);
		MUST(aclrtRecordNotify(notify, one));
		MUST(aclrtWaitAndResetNotify(notify, two, 0));
		copy_out(two);
		MUST(aclrtRecordNotify(back, two));
		MUST(aclrtWaitAndResetNotify(back, one, 0));
	}
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtDestroyNotify(notify));
	MUST(aclrtDestroyNotify(back));
}

static void notify_too_early(void)
{
	aclrtNotify notify;

	MUST(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
	MUST(aclrtRecordNotify(notify, one));
	copy_in(one);
	MUST(aclrtWaitAndResetNotify(notify, two, 0));
	copy_out(two);
	MUST(aclrtSynchronizeDevice());
	MUST(aclrtDestroyNotify(notify));
}

static void event_too_early(void)
{
	MUST(aclrtRecordEvent(event, one));
	copy_in(one);
	MUST(aclrtStreamWaitEvent(two, event));
	copy_out(two);
}

static void through_a_third(void)
{
	aclrtStream three;

	MUST(aclrtCreateStream(&three));
	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtStreamWaitEvent(three, event));
	MUST(aclrtRecordEvent(other_event, three));
	MUST(aclrtStreamWaitEvent(two, other_event));
	copy_out(two);
	MUST(aclrtSynchronizeStream(two));
	MUST(aclrtDestroyStream(three));
}

static void wait_before_record(void)
{
	aclrtEvent first;

	MUST(aclrtCreateEventWithFlag(&first, ACL_EVENT_SYNC)); /* a wait for it waits */
	MUST(aclrtStreamWaitEvent(two, first));
	copy_in(one);
	MUST(aclrtRecordEvent(first, one));
	copy_out(two);
	MUST(aclrtSynchronizeStream(two));
	MUST(aclrtDestroyEvent(first));
}

static void host_race(void)
{
	copy_in(one);
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void host_synchronized(void)
{
	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void host_event(void)
{
	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtSynchronizeEvent(event));
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void host_query(void)
{
	aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;

	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
		MUST(aclrtQueryEventStatus(event, &status));
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void host_device(void)
{
	copy_in(one);
	MUST(aclrtSynchronizeDevice());
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

/* The transitive edge: the host waits for `two`, which has waited for `one`. */
static void host_transitive(void)
{
	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtStreamWaitEvent(two, event));
	MUST(aclrtSynchronizeStream(two));
	MUST(aclrtMemcpy(pinned, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void on_host(void *arg)
{
	MUST(aclrtSetDevice(0));
	MUST(aclrtMemcpy(arg, PART, device, PART, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void host_function(void)
{
	copy_in(one);
	MUST(aclrtLaunchHostFunc(one, on_host, pinned));
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtStreamWaitEvent(two, event));
	copy_in(two);
}

static void fills(void)
{
	MUST(aclrtMemsetAsync(device, PART, 1, PART, one));
	MUST(aclrtMemsetAsync(device, PART, 2, PART, one));
	copy_out(one);
}

static void devices_event(void)
{
	void *remote;
	aclrtStream far;

	copy_in(one);
	MUST(aclrtRecordEvent(event, one));
	MUST(aclrtSetDevice(1));
	MUST(aclrtCreateStream(&far));
	MUST(aclrtMalloc(&remote, PART, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtStreamWaitEvent(far, event));
	MUST(aclrtMemcpyAsync(remote, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, far));
	MUST(aclrtMemcpyAsync(pinned, PART, remote, PART, ACL_MEMCPY_DEVICE_TO_HOST, far));
	MUST(aclrtSynchronizeStream(far));
	MUST(aclrtFree(remote));
	MUST(aclrtDestroyStream(far));
	MUST(aclrtResetDevice(1));
	MUST(aclrtSetDevice(0));
}

/* ---- memory that goes ---- */

struct mapping map(void)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .id = 0,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	struct mapping mapping;
	void *va;

	MUST(aclrtReserveMemAddress(&va, 2 * MIB, 0, NULL, 1));
	MUST(aclrtMallocPhysical(&mapping.handle, 2 * MIB, &prop, 0));
	MUST(aclrtMapMem(va, 2 * MIB, 0, mapping.handle, 0));
	mapping.va = va;
	return mapping;
}

void unmap(struct mapping mapping)
{
	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtFreePhysical(mapping.handle));
	MUST(aclrtReleaseMemAddress(mapping.va));
}

static void unmap_pending(void)
{
	struct mapping mapping = map();
	aclError code;

	MUST(aclrtMemcpyAsync(mapping.va, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
	code = aclrtUnmapMem(mapping.va);
	printf("unmap %d\n", code);
	aclrtSynchronizeStream(one); /* 507001 where the copy had not begun */
	if (code != ACL_SUCCESS)
		MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtFreePhysical(mapping.handle));
	MUST(aclrtReleaseMemAddress(mapping.va));
}

static void unmap_synchronized(void)
{
	struct mapping mapping = map();

	MUST(aclrtMemcpyAsync(mapping.va, PART, pinned, PART, ACL_MEMCPY_HOST_TO_DEVICE, one));
	MUST(aclrtSynchronizeStream(one));
	unmap(mapping);
}

static char own_memory[4096] __attribute__((aligned(4096)));

static void unregister(bool waits)
{
	void *registered;

	MUST(aclrtHostRegister(own_memory, sizeof(own_memory), ACL_HOST_REGISTER_MAPPED,
			       &registered));
	MUST(aclrtMemcpyAsync(device, sizeof(own_memory), own_memory, sizeof(own_memory),
			      ACL_MEMCPY_HOST_TO_DEVICE, one));
	if (waits)
		MUST(aclrtSynchronizeStream(one));
	printf("unregister %d\n", aclrtHostUnregister(own_memory));
}

static void unregister_pending(void)
{
	unregister(false);
}

static void unregister_synchronized(void)
{
	unregister(true);
}

/* The code says it: nothing is given back twice, nor by the wrong call. */
static void release_under_mappings(void)
{
	struct mapping mapping = map();
	char *va;

	MUST(aclrtReleaseMemAddress(mapping.va) != ACL_SUCCESS ? ACL_SUCCESS : ACL_ERROR_FAILURE);
	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtReleaseMemAddress(mapping.va));
	MUST(aclrtReserveMemAddress((void **)&va, 4 * MIB, 0, NULL, 1));
	MUST(aclrtMapMem(va, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtUnmapMem(va));
	MUST(aclrtMapMem(va + 2 * MIB, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtReleaseMemAddress(va) != ACL_SUCCESS ? ACL_SUCCESS : ACL_ERROR_FAILURE);
	MUST(aclrtUnmapMem(va + 2 * MIB));
	MUST(aclrtReleaseMemAddress(va));
	MUST(aclrtFreePhysical(mapping.handle));
}

static void free_device(void)
{
	printf("free %d\n", aclrtFree(device));
	device = NULL;
}

/* What stream one is sent waits until the gate is opened, so that it has not begun before. */
static aclrtEvent gate;

static void close_gate(void)
{
	MUST(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC));
	MUST(aclrtStreamWaitEvent(one, gate));
}

static void open_gate(void)
{
	MUST(aclrtRecordEvent(gate, two));
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtDestroyEvent(gate));
}

static void free_pending(void)
{
	close_gate();
	copy_in(one);
	free_device();
	open_gate();
}

static void free_synchronized(void)
{
	copy_in(one);
	MUST(aclrtSynchronizeStream(one));
	free_device();
}

static void free_with_sync(void)
{
	copy_in(one);
	MUST(aclrtFreeWithDevSync(device));
	device = NULL;
}

static void free_host_pending(void)
{
	close_gate();
	copy_out(one);
	printf("free %d\n", aclrtFreeHost(pinned));
	pinned = NULL;
	open_gate();
}

static void free_twice(void)
{
	void *device_again = device;

	free_device();
	printf("again %d\n", aclrtFree(device_again));
}

static void free_host_twice(void)
{
	void *again = pinned;

	MUST(aclrtFreeHost(pinned));
	pinned = NULL;
	printf("again %d\n", aclrtFreeHost(again));
}

static void free_as_host(void)
{
	printf("free %d\n", aclrtFree(pinned));
	pinned = NULL;
}

static void use_after_free(void)
{
	void *old = device;

	free_device();
	printf("copy %d\n", aclrtMemcpy(pinned, 64, old, 64, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void use_handle_after_release(void)
{
	struct mapping mapping = map();

	MUST(aclrtUnmapMem(mapping.va));
	MUST(aclrtFreePhysical(mapping.handle));
	printf("map %d\n", aclrtMapMem(mapping.va, 2 * MIB, 0, mapping.handle, 0));
	MUST(aclrtReleaseMemAddress(mapping.va));
}

static void leak(void)
{
	void *lost;

	MUST(aclrtMalloc(&lost, 3 * PART, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtMalloc(&lost, 3 * PART, ACL_MEM_MALLOC_HUGE_FIRST));
}

static void begin(void);
static void end(void);

/* Page-locked memory is of no device, and stays when one is closed. */
AS_WRITTEN static void lose_pinned_over_reset(void)
{
	void *lost;

	MUST(aclrtMallocHost(&lost, PART));
	end();
	MUST(aclrtResetDevice(0));
	begin();
}

AS_WRITTEN static void grows(void)
{
	void *kept[3];

	for (int i = 0; i < 3; i++) {
		MUST(aclrtMalloc(&kept[i], PART, ACL_MEM_MALLOC_HUGE_FIRST));
		MUST(npusimMark("step"));
	}
	for (int i = 0; i < 3; i++)
		MUST(aclrtFree(kept[i]));
}

static const struct validate_case order_cases[] = {
	CASE(streams_race),
	CASE(streams_apart),
	CASE(streams_read_one),
	CASE(streams_event),
	CASE(event_too_early),
	CASE(streams_notify),
	CASE(notify_too_early),
	CASE(through_a_third),
	CASE(wait_before_record),
	CASE(host_race),
	CASE(host_synchronized),
	CASE(host_event),
	CASE(host_query),
	CASE(host_device),
	CASE(host_transitive),
	CASE(host_function),
	CASE(fills),
	CASE(devices_event),
	CASE(unmap_pending),
	CASE(release_under_mappings),
	CASE(unregister_pending),
	CASE(unregister_synchronized),
	CASE(unmap_synchronized),
	CASE(free_pending),
	CASE(free_synchronized),
	CASE(free_with_sync),
	CASE(free_host_pending),
	CASE(free_twice),
	CASE(free_host_twice),
	CASE(free_as_host),
	CASE(use_after_free),
	CASE(use_handle_after_release),
	CASE(leak),
	CASE(lose_pinned_over_reset),
	CASE(grows),
	{ NULL, NULL },
};

static void begin(void)
{
	void *memory;

	MUST(aclrtSetDevice(0));
	MUST(aclrtCreateStream(&one));
	MUST(aclrtCreateStream(&two));
	MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
	MUST(aclrtCreateEventExWithFlag(&other_event, ACL_EVENT_SYNC));
	MUST(aclrtMalloc(&memory, 4 * PART, ACL_MEM_MALLOC_HUGE_FIRST));
	device = memory;
	MUST(aclrtMemset(device, 4 * PART, 0, 4 * PART));
	MUST(aclrtMallocHost(&memory, PART));
	pinned = memory;
	memset(pinned, 1, PART);
}

static void end(void)
{
	MUST(aclrtSynchronizeStream(one));
	MUST(aclrtSynchronizeStream(two));
	if (device != NULL)
		MUST(aclrtFree(device));
	if (pinned != NULL)
		MUST(aclrtFreeHost(pinned));
	MUST(aclrtDestroyEvent(event));
	MUST(aclrtDestroyEvent(other_event));
	MUST(aclrtDestroyStream(one));
	MUST(aclrtDestroyStream(two));
}

static bool run(const char *name)
{
	const struct validate_case *const tables[] = { order_cases, bytes_cases, rules_cases };

	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct validate_case *at = tables[i]; at->name != NULL; at++) {
			if (strcmp(name, at->name) != 0)
				continue;
			begin();
			at->run();
			end();
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	if (aclInit(NULL) != ACL_SUCCESS)
		return 3;
	for (int i = 1; i < argc; i++)
		if (!run(argv[i]))
			return 2; /* no such case */
	return 0;
}
