/* SPDX-License-Identifier: Apache-2.0
 *
 * Legacy sharing: memory of cuMemAlloc, and events, by handles of 64 bytes that any process of the
 * node may open. Owns which names there are of this process's memory, what it has opened, and the
 * events that it shares.
 *
 * A handle of memory is the name that the driver gives it. Events between processes are slots of a
 * memfd of the process that made them, which others find in its /proc. Records on several streams
 * happen in any order, so the host counts them; streams wait for the count as for any value.
 */
#include "cuda-internal.h"

#include "base/lock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOTS       (UINT64_C(1) << 20) /* events that a process can make */
#define BOARD_BYTES ((off_t)(SLOTS * sizeof(struct cuda_slot)))

struct name {
	LIST_ENTRY(name) link;
	uint64_t va;
	bool opened;                           /* memory of another process */
	char text[sizeof(CUipcMemHandle) + 1]; /* digits, as many as a handle has bytes */
};
static LIST_HEAD(, name) names = LIST_HEAD_INITIALIZER(names);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The name of that memory; text not NULL: the open one of that text. NULL: there is none. */
static struct name *find_locked(uint64_t va, const char *text)
{
	struct name *name;

	LIST_FOREACH(name, &names, link)
	if (text == NULL ? name->va == va : name->opened && strcmp(name->text, text) == 0)
		break;
	return name;
}

static bool add_locked(const struct name *made)
{
	struct name *name = malloc(sizeof(*name));

	if (name == NULL)
		return false;
	*name = *made;
	LIST_INSERT_HEAD(&names, name, link);
	return true;
}

static void forget_locked(struct name *name)
{
	if (name == NULL)
		return;
	LIST_REMOVE(name, link);
	if (!name->opened)
		npu_call(core_driver(), halShmemDestroyHandle, name->text);
	free(name);
}

void cuda_ipc_forget(uint64_t va)
{
	LOCKED(&lock);

	forget_locked(find_locked(va, NULL));
}

CUresult cuda_ipc_name(const struct trace_name *memory, CUipcMemHandle *out)
{
	struct name made = { .va = memory->key }, *name;
	CUresult code;
	LOCKED(&lock);

	name = find_locked(made.va, NULL);
	if (name == NULL) {
		name = &made;
		code = CUDA_CALL(halShmemCreateHandle, made.va, memory->bytes, made.text,
				 (uint32_t)sizeof(made.text));
		if (code != CUDA_SUCCESS)
			return code;
		code = CUDA_CALL(halShmemSetAttribute, made.text,
				 SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER, SHMEM_NO_WLIST_ENABLE);
		if (code != CUDA_SUCCESS || !add_locked(&made)) {
			npu_call(core_driver(), halShmemDestroyHandle, made.text);
			return code ?: CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	memcpy(out, name->text, sizeof(*out));
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct trace_name memory = cuda_memory_find(ptr);

	return CUDA_WANT(memory.letter == NPU_PLACE_DEVICE,
			 "0x%llx is no memory of cuMemAlloc; handles of cuMemCreate, and pools, "
			 "are exported instead",
			 ptr)
		       ?: cuda_ipc_name(&memory, handle);
}

CUresult cuda_ipc_open(const CUipcMemHandle *handle, int kind, CUdeviceptr *ptr)
{
	struct name made = { .opened = true }, *name;
	struct ShmemGetInfo info = { 0 };
	struct core_context *context;
	uint32_t device = 0;
	CUresult code = cuda_current(&context);
	LOCKED(&lock);

	memcpy(made.text, handle, sizeof(*handle));
	name = code == CUDA_SUCCESS ? find_locked(0, made.text) : NULL;
	if (name != NULL && cuda_memory_again(name->va))
		return CUDA_GIVE(ptr, name->va);
	if (code == CUDA_SUCCESS && strspn(made.text, "0123456789abcdef") != sizeof(*handle))
		return cuda_invalid("the handle stands for no memory, or for that of another pool");
	code = code ?: CUDA_CALL(halShmemInfoGet, made.text, &info)
		       ?: CUDA_CALL(drvDeviceGetIndexByPhyId, info.phyDevid, &device)
		       ?: cuda_keep(device)
		       ?: CUDA_CALL(halShmemOpenHandleByDevId, device, made.text, &made.va);
	if (code != CUDA_SUCCESS)
		return code;
	if (add_locked(&made) && cuda_memory_add(made.va, cuda_place(made.va).asked_bytes,
						 core_context_handle(context), kind))
		return CUDA_GIVE(ptr, made.va);
	forget_locked(find_locked(made.va, NULL));
	npu_call(core_driver(), halShmemCloseHandle, made.va);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
	CUDA_ANSWERS(CUDA_WANT(flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS,
			       "flags is %u; it must be 1 (lazy peer access)", flags)
			     ?: cuda_ipc_open(&handle, NPU_PLACE_OPENED, ptr));

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
	CUDA_ANSWERS(cuda_memory_release(ptr, 1u << NPU_PLACE_OPENED));

/* ---- events ---- */

/* Records: how many were asked for, and the last that has happened. */
struct cuda_slot {
	_Atomic uint64_t asked, done;
};
/* What stands in an event's handle. */
struct ticket {
	pid_t pid;
	int fd;
	ino_t inode; /* the number may be another file's by now */
	uint64_t index;
};
static struct ticket own; /* of the next event; no slot is used twice, for waits outlive events */
static struct trace_names boards; /* where the slots of a process are mapped, by inode */
static struct trace_names events; /* the slots of events, by handle */

static bool note_locked(struct trace_names *names_of, uint64_t key, const void *what)
{
	return trace_name_add(
		names_of, (struct trace_name){ .key = key, .bytes = 1, .number = (uintptr_t)what });
}

/* The slots of the ticket's process, which stay mapped; NULL: they cannot be had. */
static struct cuda_slot *board_locked(const struct ticket *ticket)
{
	const struct trace_name *known = trace_name_find(&boards, ticket->inode);
	void *slots = MAP_FAILED;
	struct stat file;
	char path[64];
	int fd;

	if (known != NULL)
		return cuda_pointer(known->number);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)ticket->pid, ticket->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &file) == 0 && file.st_ino == ticket->inode &&
	    file.st_size == BOARD_BYTES)
		slots = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (slots == MAP_FAILED || !note_locked(&boards, ticket->inode, slots))
		return NULL;
	return slots;
}

static CUresult add_event_locked(CUevent event, const struct ticket *ticket)
{
	struct cuda_slot *board = board_locked(ticket);

	if (board == NULL || ticket->index >= SLOTS)
		return cuda_fail(CUDA_ERROR_INVALID_HANDLE,
				 "process %d has no such event: it was destroyed, or the process "
				 "ended, or its files cannot be seen from here",
				 (int)ticket->pid);
	return note_locked(&events, (uintptr_t)event, &board[ticket->index])
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuda_ipc_make(CUevent event)
{
	CUresult code;
	struct stat file;
	int fd;
	LOCKED(&lock);

	if (own.pid == 0) {
		fd = memfd_create("npusim-events", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, BOARD_BYTES) != 0 || fstat(fd, &file) != 0)
			return cuda_fail(CUDA_ERROR_OPERATING_SYSTEM, "memfd_create: %m");
		own = (struct ticket){ getpid(), fd, file.st_ino, 0 };
	}
	code = add_event_locked(event, &own);
	own.index += code == CUDA_SUCCESS;
	return code;
}

void cuda_ipc_end(CUevent event)
{
	LOCKED(&lock);

	trace_name_take(&events, (uintptr_t)event, NULL);
}

struct cuda_slot *cuda_ipc_slot(CUevent event)
{
	LOCKED(&lock);
	const struct trace_name *name = trace_name_find(&events, (uintptr_t)event);

	return name != NULL ? cuda_pointer(name->number) : NULL;
}

struct turn {
	struct cuda_slot *slot;
	uint64_t number;
};

static void record_now(void *arg)
{
	struct turn *turn = arg;
	uint64_t before = turn->slot->done;

	while (before < turn->number &&
	       !atomic_compare_exchange_weak(&turn->slot->done, &before, turn->number))
		;
	syscall(SYS_futex, &turn->slot->done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	free(turn);
}

CUresult cuda_ipc_record(struct cuda_slot *slot, CUstream stream)
{
	struct turn *turn = malloc(sizeof(*turn));
	CUresult code;

	if (turn == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*turn = (struct turn){ slot, ++slot->asked };
	code = cuda_of_core(core_callback_launch_host(record_now, turn, cuda_core_stream(stream)));
	if (code != CUDA_SUCCESS)
		record_now(turn); /* nobody is to wait for it */
	return code;
}

CUresult cuda_ipc_wait(const struct cuda_slot *slot, struct core_stream *stream)
{
	struct stars_value_wait_sqe sqe = { .header.type = STARS_SQE_COND,
					    .magic = STARS_VALUE_WAIT_MAGIC,
					    .addr = (uintptr_t)&slot->done,
					    .value = slot->asked };

	return cuda_of_core(core_stream_send(stream, &sqe, 1, NULL, NULL));
}

CUresult cuda_ipc_query(const struct cuda_slot *slot, bool wait)
{
	const struct timespec again = { .tv_nsec = 10000000 }; /* its recorder may be killed */
	uint64_t asked = slot->asked, done;

	while ((done = slot->done) < asked && wait)
		syscall(SYS_futex, &slot->done, FUTEX_WAIT, (uint32_t)done, &again, NULL, 0);
	return done < asked ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* Only the process that made an event gives its handle. */
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	uint64_t slot = (uintptr_t)cuda_ipc_slot(event), board;
	LOCKED(&lock);
	struct ticket ticket = own;

	board = own.pid != 0 ? (uintptr_t)board_locked(&own) : 0;
	if (slot == 0 || slot < board || slot - board >= BOARD_BYTES)
		return cuda_fail(CUDA_ERROR_INVALID_HANDLE,
				 "event %p was not made with CU_EVENT_INTERPROCESS", (void *)event);
	ticket.index = (slot - board) / sizeof(struct cuda_slot);
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct ticket ticket;
	CUevent made;
	CUresult code = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);

	if (code != CUDA_SUCCESS)
		return code;
	memcpy(&ticket, &handle, sizeof(ticket));
	pthread_mutex_lock(&lock);
	code = add_event_locked(made, &ticket);
	pthread_mutex_unlock(&lock);
	if (code != CUDA_SUCCESS)
		cuEventDestroy_v2(made);
	return code ?: CUDA_GIVE(event, made);
}
