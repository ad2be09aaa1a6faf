/* SPDX-License-Identifier: Apache-2.0
 *
 * The rig's calls, each of which must succeed.
 */
#include "rig.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void rig_begin(void)
{
	CUcontext context = NULL;

	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&context, 0));
	TRY(cuCtxSetCurrent(context));
}

CUmemAllocationProp rig_prop(int device)
{
	return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
}

CUmemAccessDesc rig_grant(int device, CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
}

CUmemGenericAllocationHandle rig_create(int device, size_t bytes)
{
	CUmemAllocationProp prop = rig_prop(device);
	CUmemGenericAllocationHandle handle = 0;

	TRY(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

CUdeviceptr rig_reserve(size_t bytes)
{
	CUdeviceptr va = 0;

	TRY(cuMemAddressReserve(&va, bytes, 0, 0, 0));
	return va;
}

struct piece rig_make(int device, size_t bytes)
{
	CUmemAccessDesc grant = rig_grant(device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	struct piece piece = { rig_reserve(bytes), bytes, rig_create(device, bytes) };

	TRY(cuMemMap(piece.va, bytes, 0, piece.handle, 0));
	TRY(cuMemSetAccess(piece.va, bytes, &grant, 1));
	return piece;
}

void rig_end(struct piece piece)
{
	TRY(cuMemUnmap(piece.va, piece.bytes));
	TRY(cuMemRelease(piece.handle));
	TRY(cuMemAddressFree(piece.va, piece.bytes));
}

bool rig_is_filled(CUdeviceptr va, size_t bytes, unsigned char value)
{
	unsigned char *to = malloc(bytes);
	bool filled = to != NULL && cuMemcpyDtoH_v2(to, va, bytes) == CUDA_SUCCESS;

	for (size_t i = 0; filled && i < bytes; i++)
		filled = to[i] == value;
	free(to);
	return filled;
}

bool rig_send_fd(int socket, int fd)
{
	char byte = 1, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1;
}

int rig_receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { &byte, 1 };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

size_t rig_free_bytes(void)
{
	size_t now = 0, total;

	TRY(cuMemGetInfo_v2(&now, &total));
	return now;
}

void rig_hold(void *gate)
{
	while (!atomic_load((atomic_bool *)gate))
		sched_yield();
}

static void *give_back(void *arg)
{
	struct rig_giving_back *giving = arg;

	TRY(cuCtxSetCurrent(giving->context));
	TRY(giving->call(giving->ptr));
	return NULL;
}

void rig_give_back(struct rig_giving_back *out, CUresult (*call)(CUdeviceptr), CUdeviceptr ptr)
{
	CUdeviceptr at;

	out->call = call;
	out->ptr = ptr;
	TRY(cuCtxGetCurrent(&out->context));
	ASSERT_EQ(0, pthread_create(&out->thread, NULL, give_back, out));
	while (cuMemHostGetDevicePointer_v2(&at, (void *)(uintptr_t)ptr, 0) == CUDA_SUCCESS)
		sched_yield();
}
