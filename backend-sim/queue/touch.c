/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements npusimTouch: reads by a core of a device, for their effect on time, TLBs and the
 * memory's rows only. No bytes are moved.
 */
#include "process/ops.h"
#include "queue/copy.h"
#include "queue/queue.h"

#define CALL "npusimTouch"

static drvError_t check_touch(struct bsim *bs, uint32_t dev, const uint64_t *at, size_t count,
			      size_t bytes, uint32_t core)
{
	unsigned cores = bs->profile.cube_cores + bs->profile.vector_cores;

	if (at == NULL || count == 0 || bytes == 0)
		return bsim_fail(DRV_ERROR_INVALID_VALUE, CALL ": %s",
				 at == NULL   ? "at is NULL"
				 : count == 0 ? "count is 0"
					      : "bytes is 0");
	if (count > UINT64_MAX / bytes)
		return bsim_fail(DRV_ERROR_INVALID_VALUE,
				 CALL ": %zu times %zu bytes is more than 2^64", count, bytes);
	if (!bsim_require_device_locked(bs, CALL, dev))
		return DRV_ERROR_PARA_ERROR;
	if (core >= cores)
		return bsim_fail(DRV_ERROR_INVALID_VALUE,
				 CALL ": core is %u; the device has cores 0 to %u", core,
				 cores - 1);
	return DRV_ERROR_NONE;
}

/* Where a read begins, seen from the first; below it, round the end of 64 bits. */
static uint64_t offset_of(const struct sim_job *job, uint64_t row)
{
	const uint64_t *at = job->arg;

	return at[row] - at[0];
}

static drvError_t touch_locked(struct bsim *bs, uint32_t dev, const uint64_t *at, size_t count,
			       size_t bytes, uint32_t core)
{
	struct sim_job job = {
		.kind = SIM_JOB_READ,
		.engine = SIM_ENGINE_CORE,
		.device = dev,
		.core = core,
		.src = { .space = (int)dev, .va = at[0] },
		.bytes = count * bytes,
		.row_bytes = bytes,
		.row_offset = offset_of,
		.arg = (void *)at,
	};
	enum sim_status status = sim_execute(bs->sim, &job);

	queue_catch_up_locked(bs);
	return status == SIM_OK ? DRV_ERROR_NONE : copy_fault_locked(bs, CALL, &job);
}

drvError_t bsim_npusimTouch(struct npu_driver *self, uint32_t dev, const uint64_t *at, size_t count,
			    size_t bytes, uint32_t core)
{
	struct bsim_call c = bsim_begin_open(self, SIM_CALL_QUERY, CALL);

	if (c.result == DRV_ERROR_NONE)
		c.result = check_touch(c.bs, dev, at, count, bytes, core);
	if (c.result == DRV_ERROR_NONE)
		c.result = touch_locked(c.bs, dev, at, count, bytes, core);
	return bsim_end(&c);
}
