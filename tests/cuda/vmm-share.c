/* SPDX-License-Identifier: Apache-2.0
 *
 * One allocation in several processes. Each test is a family of processes that share a descriptor;
 * the test program itself uses no device, so that its children may.
 */
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (4 * GRANULE)
#define MUST(call)                                                              \
	do {                                                                    \
		int code_ = (int)(call);                                        \
		if (code_ != 0) {                                               \
			fprintf(stderr, "%s:%d: %d\n", #call, __LINE__, code_); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

static void say(int socket)
{
	MUST(write(socket, "x", 1) != 1);
}

static void hear(int socket)
{
	char byte;

	MUST(read(socket, &byte, 1) != 1);
}

static void begin(void)
{
	CUcontext context;

	alarm(60);
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
}

static CUdeviceptr place(CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr va;

	MUST(cuMemAddressReserve(&va, BYTES, 0, 0, 0));
	MUST(cuMemMap(va, BYTES, 0, handle, 0));
	MUST(cuMemSetAccess(va, BYTES, &grant, 1));
	return va;
}

static CUmemGenericAllocationHandle create_shared(int *out_fd)
{
	CUmemAllocationProp prop = rig_prop(0);
	CUmemGenericAllocationHandle handle;

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	MUST(cuMemCreate(&handle, BYTES, &prop, 0));
	MUST(cuMemExportToShareableHandle(out_fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					  0));
	return handle;
}

static CUmemGenericAllocationHandle import_fd(int fd)
{
	CUmemGenericAllocationHandle handle;

	MUST(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	return handle;
}

static void end_child(pid_t child)
{
	int status = -1;

	MUST(waitpid(child, &status, 0) != child);
	MUST(status);
}

/* ---- a parent and its child ---- */

static void child_uses(int socket)
{
	int fd;
	CUdeviceptr va;

	begin();
	fd = rig_receive_fd(socket);
	va = place(import_fd(fd));
	MUST(close(fd)); /* the handle keeps the memory */
	MUST(!rig_is_filled(va, BYTES, 44));
	MUST(cuMemsetD8_v2(va, 55, BYTES));
	say(socket);
	hear(socket);
	MUST(!rig_is_filled(va, BYTES, 55)); /* the parent gave all of its own back */
	_exit(0);
}

TEST_CHILD(cuda_share, parent_and_child_use_one_allocation)
{
	int sockets[2], fd;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0)
		child_uses(sockets[1]);
	begin();
	handle = create_shared(&fd);
	va = place(handle);
	MUST(cuMemsetD8_v2(va, 44, BYTES));
	MUST(!rig_send_fd(sockets[0], fd));
	MUST(close(fd));
	hear(sockets[0]);
	MUST(!rig_is_filled(va, BYTES, 55));
	MUST(cuMemUnmap(va, BYTES));
	MUST(cuMemRelease(handle));
	say(sockets[0]);
	end_child(child);
	_exit(0);
}

/* ---- a grandchild, by inheritance of the number ---- */

TEST_CHILD(cuda_share, grandchild_gets_the_descriptor)
{
	int sockets[2], through[2], fd;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0) { /* passes it on without a device of its own */
		pid_t last;

		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, through));
		last = fork();
		if (last == 0)
			child_uses(through[1]);
		fd = rig_receive_fd(sockets[1]);
		MUST(!rig_send_fd(through[0], fd));
		MUST(close(fd));
		hear(through[0]);
		say(sockets[1]);
		hear(sockets[1]);
		say(through[0]);
		end_child(last);
		_exit(0);
	}
	begin();
	create_shared(&fd);
	MUST(cuMemsetD8_v2(place(import_fd(fd)), 44, BYTES));
	MUST(!rig_send_fd(sockets[0], fd));
	hear(sockets[0]);
	say(sockets[0]);
	end_child(child);
	_exit(0);
}

/* ---- what a descriptor keeps ---- */

TEST_CHILD(cuda_share, last_descriptor_keeps_the_memory)
{
	int fd, copy;
	size_t before;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;

	begin();
	before = rig_free_bytes();
	handle = create_shared(&fd);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	va = place(handle);
	MUST(cuMemsetD8_v2(va, 7, BYTES));
	MUST(cuMemUnmap(va, BYTES));
	MUST(cuMemRelease(handle));
	MUST(before - rig_free_bytes() != BYTES); /* the descriptors alone */
	MUST(close(fd));
	MUST(before - rig_free_bytes() != BYTES);
	handle = import_fd(copy);
	MUST(close(copy));
	va = place(handle);
	MUST(!rig_is_filled(va, BYTES, 7));
	MUST(cuMemUnmap(va, BYTES));
	MUST(before - rig_free_bytes() != BYTES);
	MUST(cuMemRelease(handle));
	MUST(before != rig_free_bytes());
	_exit(0);
}

/* The exporter ends, by SIGKILL: with the descriptor in a socket's queue, or with all that there
 * is.
 */
static void exporter_ends(void *in_flight)
{
	int sockets[2], fd;
	size_t before;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (child == 0) {
		begin();
		hear(sockets[1]);
		MUST(cuMemsetD8_v2(place(create_shared(&fd)), 33, BYTES));
		if (in_flight != NULL)
			MUST(!rig_send_fd(sockets[1], fd));
		raise(SIGKILL);
	}
	begin();
	before = rig_free_bytes();
	say(sockets[0]);
	waitpid(child, NULL, 0);
	MUST(before - rig_free_bytes() != (in_flight != NULL ? BYTES : 0));
	if (in_flight != NULL) {
		fd = rig_receive_fd(sockets[0]);
		MUST(!rig_is_filled(place(import_fd(fd)), BYTES, 33));
	}
	_exit(0);
}

TEST(cuda_share, descriptor_outlives_its_maker)
{
	static char in_flight;

	EXPECT_EXIT(0, exporter_ends, &in_flight);
}

TEST(cuda_share, memory_goes_with_a_maker_that_passed_nothing_on)
{
	EXPECT_EXIT(0, exporter_ends, NULL);
}

/* ---- processes with their own memory ---- */

TEST_CHILD(cuda_share, processes_with_their_own_memory)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0) {
			struct piece p;

			begin();
			p = rig_make(i % 2, BYTES);
			MUST(cuMemsetD8_v2(p.va, (unsigned char)i, BYTES));
			MUST(!rig_is_filled(p.va, BYTES, (unsigned char)i));
			rig_end(p);
			_exit(0);
		}
		end_child(child);
	}
	_exit(0);
}

/* ---- a call that fails half-way ---- */

/* Of two mappings the second cannot be given access: the first has none then, either. */
TEST_CHILD(cuda_share, access_that_fails_half_way_is_taken_back)
{
	CUmemAllocationProp prop = rig_prop(0);
	CUmemAccessDesc grant = rig_grant(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemGenericAllocationHandle handle;
	unsigned long long flags = 9;
	CUdeviceptr va;

	setenv("NPUSIM_FAULT", "halMemSetAccess:2:oom", 1);
	begin();
	MUST(cuMemCreate(&handle, GRANULE, &prop, 0));
	MUST(cuMemAddressReserve(&va, 2 * GRANULE, 0, 0, 0));
	MUST(cuMemMap(va, GRANULE, 0, handle, 0));
	MUST(cuMemMap(va + GRANULE, GRANULE, 0, handle, 0));
	MUST(cuMemSetAccess(va, 2 * GRANULE, &grant, 1) != CUDA_ERROR_OUT_OF_MEMORY);
	MUST(cuMemGetAccess(&flags, &grant.location, va));
	MUST(flags);
	MUST(cuMemSetAccess(va, 2 * GRANULE, &grant, 1));
	MUST(cuMemGetAccess(&flags, &grant.location, va + GRANULE));
	MUST(flags != 3);
	_exit(0);
}

/* A descriptor stands for memory of its server alone. */
static void takes_another_servers(void *unused)
{
	CUmemGenericAllocationHandle handle;
	int sockets[2], fd;
	char name[32];
	pid_t child;

	(void)unused;
	snprintf(name, sizeof(name), "vmm-share-%d", (int)getpid());
	setenv("NPUSIM_SUPERNODE", name, 1);
	setenv("NPUSIM_SOC", "Ascend910_9391", 1);
	setenv("NPUSIM_HBM", "1G", 1);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	setenv("NPUSIM_SERVER", child == 0 ? "1" : "0", 1);
	begin();
	if (child == 0) {
		create_shared(&fd);
		MUST(!rig_send_fd(sockets[1], fd));
		hear(sockets[1]);
		_exit(0);
	}
	fd = rig_receive_fd(sockets[0]);
	MUST(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) !=
	     CUDA_ERROR_UNKNOWN);
	say(sockets[0]);
	end_child(child);
	_exit(0);
}

TEST(cuda_share, descriptor_is_of_its_server)
{
	EXPECT_EXIT(0, takes_another_servers, NULL);
}
