/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of CUDA's runtime API without kernels: a process shares memory of a device with its
 * child, which changes it. Ends with 0 if all is as it says.
 */
#include "runtime/cuda/cudart.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)6 << 20)
#define CHECK(call)                                                                       \
	do {                                                                              \
		cudaError_t code = (call);                                                \
                                                                                          \
		if (code != 0) {                                                          \
			fprintf(stderr, "%s: %s (%s)\n", #call, cudaGetErrorString(code), \
				cudaGetErrorName(code));                                  \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "not so: %s\n", what);
		exit(1);
	}
}

static int is_filled(const void *ptr, unsigned char value)
{
	unsigned char *host = NULL;
	size_t i = 0;

	CHECK(cudaMallocHost((void **)&host, BYTES));
	CHECK(cudaMemcpy(host, ptr, BYTES, 2));
	while (i < BYTES && host[i] == value)
		i++;
	CHECK(cudaFreeHost(host));
	return i == BYTES;
}

static int child(int socket)
{
	CUipcMemHandle handle;
	void *ptr = NULL;

	expect(read(socket, &handle, sizeof(handle)) == sizeof(handle), "a handle comes");
	CHECK(cudaSetDevice(1));
	expect(cudaIpcOpenMemHandle(&ptr, handle, 0) == 1, "flags 0 are refused");
	CHECK(cudaIpcOpenMemHandle(&ptr, handle, 1));
	expect(is_filled(ptr, 11), "the child sees what the parent wrote");
	CHECK(cudaMemset(ptr, 22, BYTES));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaIpcCloseMemHandle(ptr));
	expect(cudaIpcCloseMemHandle(ptr) == 1, "it is closed once");
	return 0;
}

int main(void)
{
	CUipcMemHandle handle;
	void *ptr = NULL;
	int sockets[2], status = -1;
	pid_t process;

	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "there are sockets");
	process = fork(); /* before either uses a device */
	if (process == 0)
		return child(sockets[1]);
	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&ptr, BYTES));
	CHECK(cudaMemset(ptr, 11, BYTES));
	CHECK(cudaIpcGetMemHandle(&handle, ptr));
	expect(cudaIpcGetMemHandle(NULL, ptr) == 1, "a handle has a place");
	expect(write(sockets[0], &handle, sizeof(handle)) == sizeof(handle), "the handle goes");
	expect(waitpid(process, &status, 0) == process && status == 0, "the child ends well");
	expect(is_filled(ptr, 22), "the parent sees what the child wrote");
	CHECK(cudaFree(ptr));
	puts("ipc: passed");
	return 0;
}
