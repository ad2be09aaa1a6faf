/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies inside backend-sim: which engine of which device moves bytes between two addresses, and
 * the message if none may (copy.c); what the host's memory is good for (host.c). Shared by the
 * synchronous calls and the queues (sqe.c). It moves nothing itself.
 */
#ifndef NPUSIM_BSIM_COPY_H
#define NPUSIM_BSIM_COPY_H

#include "process/process.h"

struct copy_end {
	struct sim_ref ref;
	enum npu_place_kind kind; /* of the first byte */
	unsigned memory; /* a device, or SIM_NODE_HOST: handles' host memory, pinned and pageable */
};

struct copy_plan {
	struct copy_end dst, src;
	enum sim_engine engine;
	unsigned device; /* whose engine */
};

/* How the bytes at [va, va + bytes), bytes > 0, are reached: SIM_RAW for the program's own and
 * pinned memory, else a space. All of them must be one kind of place (they may span mappings);
 * IOCRL_FAIL and a message that names the first byte that is not mapped. `sent`: host memory that
 * was freed after this driver call is there; ALLOCATION_NOW: none is. */
drvError_t copy_end_locked(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			   uint64_t bytes, uint64_t sent, struct copy_end *out);
/* IOCRL_FAIL and a message if an engine of `device` may not reach this memory. */
drvError_t copy_access_locked(struct bsim *bs, const char *call, unsigned device,
			      const struct copy_end *end);

#define COPY_SYNC (-1) /* issuer: a synchronous call, not a device's queue */

/* Counts a job on the links that it crosses, and on those to `servers` (bit k: server k); adds the
 * latency of NPUSIM_FAULT to its start_ps. IOCRL_FAIL and a message: one of them is lost. */
drvError_t copy_cross_locked(struct bsim *bs, const char *call, struct sim_job *job,
			     uint64_t servers);

/* Plans a copy of `bytes` > 0 bytes, from the addresses alone. `issuer` is the device whose queue
 * has the copy, or COPY_SYNC: then the device is the memory's own. With nothing but host memory on
 * both sides and COPY_SYNC, the device is the first that is open; none need be where both sides are
 * the program's own (engine is SIM_ENGINE_COUNT then: the CPU copies). IOCRL_FAIL and a message: a
 * byte is not mapped, pageable memory is not the program's to read or write (COPY_SYNC alone), P2P
 * between the two devices is not enabled, or the contract refuses. COPY_SYNC may let go of the lock
 * before it plans: the caller has said what it uses (queue_use_locked()). */
drvError_t copy_plan_locked(struct bsim *bs, const char *call, int issuer, uint64_t sent,
			    uint64_t dst, uint64_t src, uint64_t bytes, struct copy_plan *out);

static inline struct sim_job copy_job(const struct bsim *bs, const struct copy_plan *plan,
				      uint64_t bytes)
{
	return (struct sim_job){ .kind = SIM_JOB_COPY,
				 .engine = plan->engine,
				 .device = plan->device,
				 .dst = plan->dst.ref,
				 .src = plan->src.ref,
				 .bytes = bytes,
				 .contents_stay = !bs->contents };
}

/* ---- host.c ---- */

/* The program's own, pageable and registered: not the driver's to keep. */
static inline bool copy_end_may_go(const struct copy_end *end)
{
	return end->kind == NPU_PLACE_PAGEABLE || end->kind == NPU_PLACE_REGISTERED;
}

/* IOCRL_FAIL and a message if the end, or one of both, is memory of the program that cannot be read
 * or written now. Of a call, the lock is let go of while many pages are looked at. */
drvError_t host_check_own(struct bsim *bs, const char *call, const char *argument,
			  const struct copy_end *end, uint64_t bytes, bool write);
static inline drvError_t host_check_end(struct bsim *bs, const char *call, const char *argument,
					const struct copy_end *end, uint64_t bytes, bool write)
{
	return copy_end_may_go(end) ? host_check_own(bs, call, argument, end, bytes, write)
				    : DRV_ERROR_NONE;
}
static inline drvError_t host_check_locked(struct bsim *bs, const char *call,
					   const struct copy_plan *plan, uint64_t bytes)
{
	return host_check_end(bs, call, "src", &plan->src, bytes, false)
		       ?: host_check_end(bs, call, "dst", &plan->dst, bytes, true);
}
/* The end will be used at a later time: where it may be gone by then, the kernel is to move its
 * bytes. False: it does not (said once, at info), and what can be checked is to be checked before.
 */
bool host_loosen_locked(const struct bsim *bs, struct copy_end *end);
/* Reads or writes a value in memory that is the program's. False: it is gone, and a message. */
bool host_move_value_locked(struct bsim *bs, const char *call, struct copy_end *end, void *value,
			    unsigned bytes, bool write);

/* OUT_OF_MEMORY and a message if writing [end, end + bytes) would need more memory than the host of
 * the simulation has. */
drvError_t copy_room_locked(struct bsim *bs, const char *call, int issuer,
			    const struct copy_end *end, uint64_t bytes);

/* Where the byte at ref lies in this process, and how many follow it in one piece. NULL: it does
 * not translate (or may not be written, where `write`). Takes no time. */
unsigned char *copy_at_locked(struct bsim *bs, const struct sim_ref *ref, bool write,
			      uint64_t *out_run);

/* The code and the message of what stopped `job`. */
drvError_t copy_fault_locked(struct bsim *bs, const char *call, const struct sim_job *job);

#endif
