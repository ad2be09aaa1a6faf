/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls through libcuda.so.1 take the simulated time that was measured on an H100 80GB HBM3,
 * driver 580: medians in microseconds, by size. The profile alone, at more sizes:
 * tests/sim/driver-cost.c.
 */
#include "rig.h"
#include "runtime/core/core.h"
#include "sim/profile.h"

#include <stdlib.h>

static const struct cost {
	const char *name;
	enum sim_call call;
	double median[3]; /* 2 MiB, 128 MiB, 1 GiB */
} costs[] = {
	{ "reserve", SIM_CALL_RESERVE, { 0.789, 6.171, 8.110 } },
	{ "create", SIM_CALL_CREATE, { 14.009, 21.557, 57.589 } },
	{ "map", SIM_CALL_MAP, { 1.116, 2.034, 2.628 } },
	{ "access", SIM_CALL_ACCESS, { 28.949, 56.269, 96.322 } },
	{ "unmap", SIM_CALL_UNMAP, { 19.457, 32.244, 45.993 } },
	{ "release", SIM_CALL_RELEASE, { 13.966, 92.187, 503.996 } },
	{ "address_free", SIM_CALL_ADDRESS_FREE, { 0.716, 5.809, 8.205 } },
};
static const uint64_t sizes[3] = { 2 * MIB, 128 * MIB, 1024 * MIB };

/* The simulated time that calls of each kind have taken so far. */
static void spent(struct npu_driver *drv, uint64_t out_ps[SIM_CALL_STALL])
{
	struct npu_stats stats = { .size = sizeof(stats) };

	EXPECT_EQ(DRV_ERROR_NONE, npu_call(drv, npusimGetStats, 0, &stats));
	for (unsigned i = 0; i < SIM_CALL_STALL; i++)
		out_ps[i] = stats.call_ps[i];
}

TEST(cuda_cost, calls_take_it)
{
	uint64_t before[SIM_CALL_STALL], after[SIM_CALL_STALL];
	char *error = NULL;
	/* The process's one model, which libcuda.so.1 uses, too. */
	struct npu_driver *drv = npu_driver_open("sim", &error);

	ASSERT_NOT_NULL(drv);
	rig_begin();
	rig_end(rig_make(0, GRANULE));
	for (unsigned i = 0; i < 3; i++) {
		spent(drv, before);
		rig_end(rig_make(0, sizes[i]));
		spent(drv, after);
		for (size_t c = 0; c < sizeof(costs) / sizeof(costs[0]); c++) {
			enum sim_call call = costs[c].call;

			EXPECT_NEAR((double)(after[call] - before[call]) / 1e6, costs[c].median[i],
				    costs[c].median[i] * 0.1);
		}
	}
	npu_driver_close(drv);
}
