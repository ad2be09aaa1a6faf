/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of a device lie behind an address: npusimPhysical. It asks the page table and owns
 * nothing.
 */
#include "memory/mapping.h"
#include "ops.h"

#include <inttypes.h>

#define CALL "npusimPhysical"

static drvError_t check(struct bsim *bs, uint32_t dev, const uint64_t *pa, const uint64_t *bytes)
{
	if (pa == NULL || bytes == NULL) {
		npu_message_set(CALL ": %s is NULL", pa == NULL ? "pa" : "bytes");
		return DRV_ERROR_INVALID_VALUE;
	}
	if (*bytes == 0) {
		npu_message_set(CALL ": *bytes is 0; it must say how many are of interest");
		return DRV_ERROR_INVALID_VALUE;
	}
	if (!bsim_require_device_locked(bs, CALL, dev))
		return DRV_ERROR_PARA_ERROR;
	return DRV_ERROR_NONE;
}

/* A leaf of the device's own memory. */
static bool walk(struct bsim *bs, uint32_t dev, uint64_t va, struct pt_leaf *out)
{
	return pt_walk(&bsim_space(bs, dev)->pt, va, out) && SIM_PA_NODE(out->pa) == dev;
}

static uint64_t rest_of_leaf(const struct pt_leaf *leaf)
{
	uint64_t page = UINT64_C(1) << leaf->page_lg2;

	return page - (leaf->pa & (page - 1));
}

static drvError_t find_locked(struct bsim *bs, uint32_t dev, uint64_t va, uint64_t *pa,
			      uint64_t *bytes)
{
	struct pt_leaf leaf, next;
	uint64_t run;

	if (!walk(bs, dev, va, &leaf)) {
		npu_message_set(CALL ": no memory of device %u is mapped at 0x%" PRIx64, dev, va);
		return DRV_ERROR_IOCRL_FAIL;
	}
	run = rest_of_leaf(&leaf);
	while (run < *bytes && walk(bs, dev, va + run, &next) && next.pa == leaf.pa + run)
		run += rest_of_leaf(&next);
	*pa = SIM_PA_OFFSET(leaf.pa);
	*bytes = run < *bytes ? run : *bytes;
	return DRV_ERROR_NONE;
}

drvError_t bsim_npusimPhysical(struct npu_driver *self, uint32_t dev, uint64_t va, uint64_t *pa,
			       uint64_t *bytes)
{
	struct bsim *bs = bsim_of(self);
	drvError_t result;

	pthread_mutex_lock(&bs->lock);
	result = check(bs, dev, pa, bytes);
	if (result == DRV_ERROR_NONE)
		result = find_locked(bs, dev, va, pa, bytes);
	pthread_mutex_unlock(&bs->lock);
	return result;
}
