/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the CUDA face share: memory that is reserved, made, mapped and given to a
 * device in one call.
 */
#ifndef NPUSIM_TESTS_CUDA_RIG_H
#define NPUSIM_TESTS_CUDA_RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/cuda.h"
#include "harness/as-written.h"
#include "harness/test.h"

#define MIB               (UINT64_C(1) << 20)
#define GRANULE           (2 * MIB)
#define TRY(call)         EXPECT_EQ(CUDA_SUCCESS, call)
#define FAILS(code, call) EXPECT_EQ(CUDA_ERROR_##code, call)

struct piece {
	CUdeviceptr va;
	size_t bytes;
	CUmemGenericAllocationHandle handle;
};

/* cuInit, and the primary context of device 0 current. */
void rig_begin(void);
CUmemAllocationProp rig_prop(int device);
CUmemAccessDesc rig_grant(int device, CUmemAccess_flags flags);
CUmemGenericAllocationHandle rig_create(int device, size_t bytes);
CUdeviceptr rig_reserve(size_t bytes);
/* On the device, with its access. */
struct piece rig_make(int device, size_t bytes);
void rig_end(struct piece piece);
/* True if all bytes are of that value. */
bool rig_is_filled(CUdeviceptr va, size_t bytes, unsigned char value);
size_t rig_free_bytes(void);
/* A host function that holds its stream back until *gate, an atomic_bool, is true. */
void rig_hold(void *gate);
/* Gives memory back in another thread, where the call must wait for the device: returns once it
 * does, which is when the memory is no longer the program's. */
struct rig_giving_back {
	pthread_t thread;
	CUcontext context;
	CUresult (*call)(CUdeviceptr ptr);
	CUdeviceptr ptr;
};
void rig_give_back(struct rig_giving_back *out, CUresult (*call)(CUdeviceptr), CUdeviceptr ptr);
/* A file descriptor over a socket; -1: none came. */
bool rig_send_fd(int socket, int fd);
int rig_receive_fd(int socket);

#endif
