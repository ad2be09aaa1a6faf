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
		return bsim_invalid(CALL ": %s", at == NULL   ? "at is NULL"
						 : count == 0 ? "count is 0"
							      : "bytes is 0");
	if (count > UINT64_MAX / bytes)
		return bsim_invalid(CALL ": %zu times %zu bytes is more than 2^64", count, bytes);
	if (!bsim_require_device_locked(bs, CALL, dev))
		return DRV_ERROR_PARA_ERROR;
	if (core >= cores)
		return bsim_invalid(CALL ": core is %u; the device has cores 0 to %u", core,
				    cores - 1);
	return DRV_ERROR_NONE;
}

/* Where a read begins, seen from the first; below it, round the end of 64 bits. */
static uint64_t offset_of(const struct sim_job *job, uint64_t row)
{
	const uint64_t *at = job->arg;

	return at[row] - at[0];
}

BSIM_OPEN_CALL(npusimTouch, SIM_CALL_QUERY, (uint32_t, dev), (const uint64_t *, at),
	       (size_t, count), (size_t, bytes), (uint32_t, core))
{
	drvError_t result = check_touch(c->bs, dev, at, count, bytes, core);
	struct sim_job job = {
		.kind = SIM_JOB_READ,
		.engine = SIM_ENGINE_CORE,
		.device = dev,
		.core = core,
		.src = { .space = (int)dev },
		.bytes = count * bytes,
		.row_bytes = bytes,
		.row_offset = offset_of,
		.arg = (void *)at,
	};
	enum sim_status status;

	if (result != DRV_ERROR_NONE)
		return result;
	job.src.va = at[0];
	status = sim_execute(c->bs->sim, &job);
	queue_catch_up_locked(c->bs);
	return status == SIM_OK ? DRV_ERROR_NONE : copy_fault_locked(c->bs, CALL, &job);
}
