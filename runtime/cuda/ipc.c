/* SPDX-License-Identifier: Apache-2.0
 *
 * Legacy sharing: memory of cuMemAlloc, by handles of 64 bytes that any process of the node may
 * open. A handle is the name that the driver gives the memory. Owns which names there are of this
 * process's memory, and of what it has opened.
 */
#include "cuda-internal.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

#define OPEN "cuIpcOpenMemHandle"

struct name {
	struct name *next;
	uint64_t va;
	unsigned opens;                        /* 0: memory of this process */
	char text[sizeof(CUipcMemHandle) + 1]; /* digits, as many as a handle has bytes */
};
static struct name *names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Where the name of that memory hangs; text not NULL: that of an open name. */
static struct name **find_locked(uint64_t va, const char *text)
{
	struct name **at = &names;

	while (*at != NULL && (text == NULL ? (*at)->va != va
					    : (*at)->opens == 0 || strcmp((*at)->text, text) != 0))
		at = &(*at)->next;
	return at;
}

static bool add_locked(const struct name *made)
{
	struct name *name = malloc(sizeof(*name));

	if (name == NULL)
		return false;
	*name = *made;
	name->next = names;
	names = name;
	return true;
}

static void forget_locked(struct name **at)
{
	struct name *gone = *at;

	if (gone == NULL)
		return;
	*at = gone->next;
	if (gone->opens == 0)
		npu_call(core_driver(), halShmemDestroyHandle, gone->text);
	free(gone);
}

void cuda_ipc_forget(uint64_t va)
{
	LOCKED(&lock);

	forget_locked(find_locked(va, NULL));
}

/* The same handle each time. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct trace_name memory = cuda_memory_find(ptr);
	struct name made = { .va = memory.key }, *name;
	CUresult code = CUDA_IS_NULL(handle) ?: cuda_unharmed(__func__);
	LOCKED(&lock);

	if (code == CUDA_SUCCESS && memory.letter != NPU_PLACE_DEVICE)
		return cuda_invalid(__func__,
				    "0x%llx is no memory of cuMemAlloc; handles of cuMemCreate are "
				    "exported instead",
				    ptr);
	name = *find_locked(made.va, NULL);
	if (code == CUDA_SUCCESS && name == NULL) {
		name = &made;
		code = CUDA_CALL(__func__, halShmemCreateHandle, made.va, memory.bytes, made.text,
				 (uint32_t)sizeof(made.text));
		if (code != CUDA_SUCCESS)
			return code;
		code = CUDA_CALL(__func__, halShmemSetAttribute, made.text,
				 SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER, SHMEM_NO_WLIST_ENABLE);
		if (code != CUDA_SUCCESS || !add_locked(&made)) {
			npu_call(core_driver(), halShmemDestroyHandle, made.text);
			return code ?: CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (code == CUDA_SUCCESS)
		memcpy(handle, name->text, sizeof(*handle));
	return code;
}

/* On the device that has the memory; a handle that is open gives the same address again. */
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	struct name made = { .opens = 1 }, *name;
	struct ShmemGetInfo info = { 0 };
	struct core_context *context;
	uint32_t device = 0;
	CUresult code = cuda_null(OPEN, "ptr", ptr) ?: cuda_current(OPEN, &context);
	LOCKED(&lock);

	if (code == CUDA_SUCCESS && flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return cuda_invalid(OPEN, "flags is %u; it must be 1 (lazy peer access)", flags);
	memcpy(made.text, &handle, sizeof(handle));
	name = code == CUDA_SUCCESS ? *find_locked(0, made.text) : NULL;
	if (name != NULL) {
		name->opens++;
		return CUDA_GIVE(ptr, name->va);
	}
	code = code ?: CUDA_CALL(OPEN, halShmemInfoGet, made.text, &info)
		       ?: CUDA_CALL(OPEN, drvDeviceGetIndexByPhyId, info.phyDevid, &device)
		       ?: cuda_keep(device, OPEN)
		       ?: CUDA_CALL(OPEN, halShmemOpenHandleByDevId, device, made.text, &made.va);
	if (code != CUDA_SUCCESS)
		return code;
	if (add_locked(&made) && cuda_memory_add(made.va, cuda_place(made.va).asked_bytes,
						 core_context_handle(context), NPU_PLACE_OPENED))
		return CUDA_GIVE(ptr, made.va);
	forget_locked(find_locked(made.va, NULL));
	npu_call(core_driver(), halShmemCloseHandle, made.va);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct name **at;
	bool stays;

	pthread_mutex_lock(&lock);
	at = find_locked(ptr, NULL);
	stays = *at != NULL && (*at)->opens > 1;
	if (stays)
		(*at)->opens--;
	else if (*at != NULL && (*at)->opens == 1)
		forget_locked(at); /* who opens the handle from now on gets it anew */
	pthread_mutex_unlock(&lock);
	return stays ? cuda_unharmed(__func__)
		     : cuda_memory_release(__func__, ptr, 1u << NPU_PLACE_OPENED);
}
