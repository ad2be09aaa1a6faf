/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CUDA face share: entry checks, codes, contexts and streams as CUDA defines
 * them. Everything below is runtime/core and the driver, in the dialect of NPU_DIALECT_CUDA.
 */
#ifndef NPUSIM_CUDA_INTERNAL_H
#define NPUSIM_CUDA_INTERNAL_H

#include "core/core.h"
#include "cuda-doors.h"
#include "cuda/cuda.h"
#include "cudart.h"
#include "trace/names.h"

/* Programs call through door.c, which has the exported names: what is defined here by such a name
 * is another symbol. */
#define CUDA_INSIDE(call, params, args) extern __typeof__(call) call __asm__("inside." #call);
CUDA_DOORS(CUDA_INSIDE)

#define CUDA_EXPORT __attribute__((visibility("default")))
/* The same, and calls inside the library go straight to it. */
#define CUDA_OWN           __attribute__((visibility("protected")))
#define CUDA_GRANULE_BYTES (UINT64_C(2) << 20)
/* The end of a chain of checks: *out = value. */
#define CUDA_GIVE(out, value)     \
	({                        \
		*(out) = (value); \
		CUDA_SUCCESS;     \
	})

static inline void *cuda_pointer(uint64_t va)
{
	return (void *)(uintptr_t)va;
}

static inline drv_mem_handle_t *cuda_handle(CUmemGenericAllocationHandle handle)
{
	return (drv_mem_handle_t *)(uintptr_t)handle;
}

/* ---- init.c ---- */

#define CUDA_GIVE_IF(out, value) ((out) != NULL ? CUDA_GIVE(out, value) : CUDA_SUCCESS)

/* All that answers a CUresult is joined by `?:`, and heard in order up to the first failure. */

/* NOT_INITIALIZED before cuInit, and in a child that was forked afterwards. The doors ask for all
 * functions but those that need no cuInit. */
CUresult cuda_initialised(void);
/* ILLEGAL_ADDRESS once a copy has met one, in every context, until the process ends. The doors ask,
 * but for what is about devices, contexts and names, or only tells what something is. */
CUresult cuda_unharmed(void);
/* The current context (out may be NULL); INVALID_CONTEXT without one. */
CUresult cuda_current(struct core_context **out);
/* INVALID_VALUE for a NULL pointer, or handle. */
CUresult cuda_null(const char *argument, const void *value);
/* INVALID_VALUE for all but 0. */
CUresult cuda_no_flags(unsigned long long flags);
/* Calls the driver, once there is one: CUDA_CALL(halMemUnmap, va). */
#define CUDA_CALL(op, ...) cuda_of_driver(npu_call(core_driver(), op __VA_OPT__(, ) __VA_ARGS__))

/* Each sets the thread's message, which the log has when the call returns, and returns the code. */
CUresult cuda_fail(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cuda_invalid(...) cuda_fail(CUDA_ERROR_INVALID_VALUE, __VA_ARGS__)
/* A check in a chain of such: INVALID_VALUE where it is not fine. */
#define CUDA_WANT(fine, ...) ((fine) ? CUDA_SUCCESS : cuda_invalid(__VA_ARGS__))
CUresult cuda_of_driver(drvError_t code);
CUresult cuda_of_core(int code);

struct cuda_error cuda_find_error(CUresult code); /* NULLs: there is no such code */

/* ---- context.c ---- */

/* `dead`: the code of one that is not live. */
CUresult cuda_check_context(void *handle, CUresult dead);

/* ---- device.c ---- */

/* True for a CUdevice that is there; *logic is the driver's number of it. */
bool cuda_device(CUdevice device, uint32_t *logic);
/* The same; INVALID_DEVICE. The doors ask of what is not a location of memory. */
CUresult cuda_check_device(CUdevice device, uint32_t *logic);
/* The driver's number of one that is there. */
uint32_t cuda_logic(CUdevice device);
/* The CUdevice of a driver's device; -1: it is hidden. */
int cuda_ordinal(uint32_t logic);
/* The device stays open until the process ends: memory of cuMemCreate needs no context, but an open
 * device, for which 0 serves. */
CUresult cuda_keep(uint32_t logic);

/* ---- memory.c ---- */

#define CUDA_HUGE_ABOVE_BYTES (UINT64_C(1) << 20)
#define CUDA_POOLED           NPU_PLACE_KIND_COUNT
#define CUDA_IMPORTED         (NPU_PLACE_KIND_COUNT + 1)
/* halMemAlloc's flags for memory of a device. */
uint64_t cuda_device_flags(size_t size);
/* What lies at an address: the letter is its kind (NPU_PLACE_DEVICE of cuMemAlloc, _MANAGED,
 * _PINNED of cuMemAllocHost, _REGISTERED, _OPENED, CUDA_POOLED, CUDA_IMPORTED of another
 * process's pool), the number its context, or pool.
 * No bytes: nothing that this face has made. */
struct trace_name cuda_memory_find(uint64_t va);
/* False: no memory. */
bool cuda_memory_add(uint64_t va, uint64_t bytes, const void *owner, int kind);
/* Takes what begins at va, if it is of one of the kinds, one bit each; of what was added more than
 * once, one reference, of those in *out. */
bool cuda_memory_take(uint64_t va, unsigned kinds, struct trace_name *out);
/* One reference more. False: there is no memory there any more. */
bool cuda_memory_again(uint64_t va);
/* The same, and gives it back. Work that still uses it ends first, as in CUDA's driver. */
CUresult cuda_memory_release(uint64_t va, unsigned kinds);
/* The context ends: what was allocated in it goes. */
void cuda_memory_end_context(void *context);

/* ---- pool.c, ipc.c ---- */

/* Of CUDA_POOLED memory; stream NULL: at once, when all of its device is done. */
CUresult cuda_pool_free(uint64_t va, const CUstream *stream);
/* The program waited: pools give back what is above their thresholds. */
CUresult cuda_pools_settle(CUresult code);
/* The memory goes, and its name with it. */
void cuda_ipc_forget(uint64_t va);
/* The handle by which other processes open memory, the same each time. */
CUresult cuda_ipc_name(const struct trace_name *memory, CUipcMemHandle *out);
/* On the device that has the memory, the same address each time until it is closed as often. The
 * kind is NPU_PLACE_OPENED or CUDA_IMPORTED. */
CUresult cuda_ipc_open(const CUipcMemHandle *handle, int kind, CUdeviceptr *ptr);

/* What an event between processes stands for, as long as the process runs. */
struct cuda_slot;
CUresult cuda_ipc_make(CUevent event);
void cuda_ipc_end(CUevent event);
struct cuda_slot *cuda_ipc_slot(CUevent event); /* NULL: it is a plain one, or none */
CUresult cuda_ipc_record(struct cuda_slot *slot, CUstream stream);
CUresult cuda_ipc_wait(const struct cuda_slot *slot, struct core_stream *stream);
CUresult cuda_ipc_query(const struct cuda_slot *slot, bool wait); /* or NOT_READY */

/* ---- managed.c ---- */

/* The memory goes, and what was said of it. */
void cuda_managed_forget(uint64_t va);

/* ---- vmm.c ---- */

/* What lies at an address, at no cost. */
struct npu_place cuda_place(uint64_t va);
/* A device, whose number the driver's is then, the host, or a NUMA node of it. */
CUresult cuda_check_location(const CUmemLocation *where, uint32_t *logic);
/* INVALID_VALUE for all but file descriptors. */
CUresult cuda_share_type(CUmemAllocationHandleType type);
/* Memory that the program may take away: pageable, and not registered. */
bool cuda_is_loose(uint64_t va); /* copy.c */

/* ---- stream.c ---- */

/* What the core calls the stream. */
void *cuda_core_stream(CUstream stream);
/* A live stream, or the default one of a current context; the doors ask. */
CUresult cuda_check_stream(CUstream handle);
/* The same as the core has it, once that is known. */
CUresult cuda_stream(CUstream handle, struct core_stream **out);
/* What a call on that stream must wait for, as the default stream and the blocking ones do for one
 * another. */
CUresult cuda_stream_order(CUstream stream);
/* The same for a synchronous call, which also begins when the default stream has nothing left. */
CUresult cuda_stream_before_sync(void);

#endif
