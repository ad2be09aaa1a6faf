/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of CUDA's runtime API without kernels: a process shares memory of a device, events and
 * a pool with its child, which changes the memory. Ends with 0 if all is as it says.
 */
#include "sample.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES    ((size_t)6 << 20)
#define POSIX_FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

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

/* What the child is told. The file descriptor is the parent's. */
struct shared {
	CUipcMemHandle memory;
	CUipcEventHandle filled, changed;
	CUmemPoolPtrExportData pooled;
	int fd;
};

static void use_pool(const struct shared *shared)
{
	CUmemPoolPtrExportData data = shared->pooled;
	CUmemoryPool pool = NULL;
	void *ptr = NULL;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), shared->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, POSIX_FD, 0));
	expect(cudaMemPoolImportFromShareableHandle(NULL, (void *)(intptr_t)fd, POSIX_FD, 0) == 1,
	       "a pool has a place");
	CHECK(cudaMemPoolImportPointer(&ptr, pool, &data));
	expect(cudaMemPoolImportPointer(NULL, pool, &data) == 1, "a pointer has a place");
	expect(is_filled(ptr, 33), "the child sees what the parent wrote into its pool");
	CHECK(cudaFree(ptr));
	CHECK(cudaMemPoolDestroy(pool));
	close(fd);
}

static int child(int socket)
{
	struct shared shared;
	CUevent filled = NULL, changed = NULL;
	void *ptr = NULL;

	expect(read(socket, &shared, sizeof(shared)) == sizeof(shared), "handles come");
	CHECK(cudaSetDevice(1));
	CHECK(cudaIpcOpenEventHandle(&filled, shared.filled));
	CHECK(cudaIpcOpenEventHandle(&changed, shared.changed));
	expect(cudaIpcOpenEventHandle(NULL, shared.filled) == 1, "an event has a place");
	expect(cudaIpcOpenMemHandle(&ptr, shared.memory, 0) == 1, "flags 0 are refused");
	CHECK(cudaIpcOpenMemHandle(&ptr, shared.memory, 1));
	CHECK(cudaStreamWaitEvent(NULL, filled, 0));
	CHECK(cudaStreamSynchronize(NULL));
	expect(is_filled(ptr, 11), "the child sees what the parent wrote");
	CHECK(cudaMemset(ptr, 22, BYTES));
	CHECK(cudaEventRecord(changed, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaIpcCloseMemHandle(ptr));
	expect(cudaIpcCloseMemHandle(ptr) == 1, "it is closed once");
	use_pool(&shared);
	CHECK(cudaEventDestroy(filled));
	CHECK(cudaEventDestroy(changed));
	return 0;
}

/* What the parent shares of a pool; the answer is its memory there. */
static void *share_pool(struct shared *shared)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .handleTypes = POSIX_FD,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool = NULL;
	void *ptr = NULL;

	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMallocFromPoolAsync(&ptr, BYTES, pool, NULL));
	CHECK(cudaMemset(ptr, 33, BYTES));
	CHECK(cudaMemPoolExportToShareableHandle(&shared->fd, pool, POSIX_FD, 0));
	expect(cudaMemPoolExportToShareableHandle(NULL, pool, POSIX_FD, 0) == 1,
	       "a file descriptor has a place");
	CHECK(cudaMemPoolExportPointer(&shared->pooled, ptr));
	expect(cudaMemPoolExportPointer(&shared->pooled, NULL) == 1, "only a pool's memory goes");
	return ptr;
}

int main(void)
{
	struct shared shared;
	CUevent filled = NULL, changed = NULL, plain = NULL;
	void *ptr = NULL, *pooled;
	int sockets[2], status = -1;
	pid_t process;

	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "there are sockets");
	process = fork(); /* before either uses a device */
	if (process == 0)
		return child(sockets[1]);
	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&ptr, BYTES));
	CHECK(cudaEventCreateWithFlags(&filled, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CHECK(cudaEventCreateWithFlags(&changed, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CHECK(cudaEventCreate(&plain));
	CHECK(cudaMemsetAsync(ptr, 11, BYTES, NULL));
	CHECK(cudaEventRecord(filled, NULL));
	CHECK(cudaIpcGetMemHandle(&shared.memory, ptr));
	expect(cudaIpcGetMemHandle(NULL, ptr) == 1, "a handle has a place");
	CHECK(cudaIpcGetEventHandle(&shared.filled, filled));
	CHECK(cudaIpcGetEventHandle(&shared.changed, changed));
	expect(cudaIpcGetEventHandle(&shared.filled, plain) == 400, "an event is made for it");
	pooled = share_pool(&shared);
	expect(write(sockets[0], &shared, sizeof(shared)) == sizeof(shared), "the handles go");
	expect(waitpid(process, &status, 0) == process && status == 0, "the child ends well");
	CHECK(cudaEventSynchronize(changed));
	expect(is_filled(ptr, 22), "the parent sees what the child wrote");
	CHECK(cudaFree(pooled));
	CHECK(cudaFree(ptr));
	puts("ipc: passed");
	return 0;
}
