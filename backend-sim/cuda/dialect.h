/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA dialect (NPU_DIALECT_CUDA) as the rooms above see it: who may access a range of
 * mappings. Everything else goes through the table of memory/memory.h. Called with bsim.lock
 * held.
 */
#ifndef NPUSIM_BSIM_CUDA_DIALECT_H
#define NPUSIM_BSIM_CUDA_DIALECT_H

#include "process/process.h"

struct cuda_reach {
	uint32_t readers, writers; /* bit d: device d may read, may write all of the range */
	bool cpu;                  /* the CPU may reach all of it */
};

/* Who may reach all of [va, va + bytes), which begins in a reservation; all of it must be mapped.
 * IOCRL_FAIL, and a message that names the first byte that is not, or that nobody may read (write,
 * where `write`). */
drvError_t cuda_reach_locked(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			     uint64_t bytes, bool write, struct cuda_reach *out);

#endif
