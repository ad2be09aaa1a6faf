/* SPDX-License-Identifier: Apache-2.0
 *
 * What driver calls cost, by size: the H100 profile against what was measured on an H100 80GB HBM3,
 * driver 580 (medians of 200 calls, of 40 from 1 GiB on; microseconds), and the Ascend profiles,
 * by the mechanism of the open driver (published measurements: tests/traces/bench-test.py).
 */
#include "harness/test.h"

#include <glib.h>

#include "sim/profile.h"

#define MIB  UINT64_C(1)
#define GIB  UINT64_C(1024)
#define HUGE 2u /* MiB of a page */

static const uint64_t sizes_mib[] = { 2 * MIB, 16 * MIB, 128 * MIB, 1 * GIB, 4 * GIB, 16 * GIB };
#define SIZES G_N_ELEMENTS(sizes_mib)

static const struct cost {
	const char *name;
	enum sim_call call;
	double median[SIZES];
} costs[] = {
	{ "reserve", SIM_CALL_RESERVE, { 0.789, 1.021, 6.171, 8.110, 12.962, 24.453 } },
	{ "create", SIM_CALL_CREATE, { 14.009, 13.545, 21.557, 57.589, 414.643, 7355.895 } },
	{ "map", SIM_CALL_MAP, { 1.116, 1.130, 2.034, 2.628, 4.743, 16.213 } },
	{ "access", SIM_CALL_ACCESS, { 28.949, 30.340, 56.269, 96.322, 229.600, 762.562 } },
	{ "unmap", SIM_CALL_UNMAP, { 19.457, 20.115, 32.244, 45.993, 84.068, 215.394 } },
	{ "release", SIM_CALL_RELEASE, { 13.966, 26.623, 92.187, 503.996, 1847.758, 12517.457 } },
	{ "address_free", SIM_CALL_ADDRESS_FREE, { 0.716, 0.871, 5.809, 8.205, 14.592, 31.308 } },
};

/* From 4 GiB on creating is no matter of pages: medians leave the line that the smaller sizes are
 * on, and the slowest of 40 calls takes 66 and 10 times the median. The model stays on the line,
 * between these, the fastest and the slowest. */
#define LINE_OF_CREATE 4 /* sizes from this one on are not on it */
static const double create_fastest[] = { 49.180, 219.464 };
static const double create_slowest[] = { 27374.155, 77036.861 };

static void load(const char *name, struct sim_profile *out)
{
	char *error = NULL;

	if (!sim_profile_load(name, out, &error))
		FAIL("%s", error);
}

static double microseconds(const struct sim_profile *profile, enum sim_call call, uint64_t mib)
{
	return (double)sim_call_ps(profile, call, mib / HUGE, 21) / 1e6;
}

/* The profile is fitted to 2 MiB, 128 MiB and 1 GiB: a tenth there, and a factor of 1.65 at the
 * sizes that nothing is fitted to. */
TEST_EACH(driver_cost, h100_at_every_size, costs, name)
{
	const struct cost *cost = param;
	struct sim_profile profile;

	load("H100", &profile);
	for (unsigned i = 0; i < SIZES; i++) {
		double us = microseconds(&profile, cost->call, sizes_mib[i]);
		bool fitted = i == 0 || i == 2 || i == 3;

		NOTE("%llu MiB", (unsigned long long)sizes_mib[i]);
		if (cost->call == SIM_CALL_CREATE && i >= LINE_OF_CREATE) {
			EXPECT_GE(us, create_fastest[i - LINE_OF_CREATE]);
			EXPECT_LE(us, create_slowest[i - LINE_OF_CREATE]);
		} else {
			EXPECT_LE(us, cost->median[i] * (fitted ? 1.1 : 1.65));
			EXPECT_GE(us, cost->median[i] / (fitted ? 1 / 0.9 : 1.65));
		}
	}
}

/* The shape: a floor below 16 MiB, steeper to 128 MiB, and a line from there on. */
TEST_EACH(driver_cost, h100_grows_as_measured, costs, name)
{
	const struct cost *cost = param;
	struct sim_profile profile;
	double before = 0, line;

	load("H100", &profile);
	for (unsigned i = 0; i < SIZES; i++) {
		double us = microseconds(&profile, cost->call, sizes_mib[i]);

		EXPECT_GT(us, before);
		before = us;
	}
	EXPECT_LT(microseconds(&profile, cost->call, 16 * MIB),
		  2 * microseconds(&profile, cost->call, 2 * MIB));
	line = microseconds(&profile, cost->call, 2 * GIB) -
	       microseconds(&profile, cost->call, 1 * GIB);
	EXPECT_NEAR(microseconds(&profile, cost->call, 16 * GIB) -
			    microseconds(&profile, cost->call, 4 * GIB),
		    12 * line, 1e-6);
	EXPECT_NEAR(microseconds(&profile, cost->call, 1 * GIB) -
			    microseconds(&profile, cost->call, 128 * MIB),
		    0.875 * line, 1e-6);
	/* as measured between 128 MiB and 1 GiB, to a third */
	EXPECT_NEAR(0.875 * line, cost->median[3] - cost->median[2],
		    (cost->median[3] - cost->median[2]) / 3);
}

/* --- Ascend --- */

struct soc {
	const char *name;
};
static const struct soc socs[] = {
	{ "Ascend910B1" },    { "Ascend910B2" },    { "Ascend910B2C" },   { "Ascend910B3" },
	{ "Ascend910B4" },    { "Ascend910B4-1" },  { "Ascend910_9362" }, { "Ascend910_9372" },
	{ "Ascend910_9381" }, { "Ascend910_9382" }, { "Ascend910_9391" }, { "Ascend910_9392" },
};

/* One 1 GiB page is one page to map, and as much memory to create as 512. */
TEST_EACH(driver_cost, giant_pages_are_cheaper_to_map, socs, name)
{
	static const enum sim_call cheaper[] = { SIM_CALL_MAP, SIM_CALL_UNMAP };
	static const enum sim_call as_much[] = { SIM_CALL_CREATE, SIM_CALL_RELEASE };
	struct sim_profile profile;

	load(((const struct soc *)param)->name, &profile);
	EXPECT_TRUE(profile.giant_pages);
	for (unsigned i = 0; i < G_N_ELEMENTS(cheaper); i++) {
		EXPECT_LT(sim_call_ps(&profile, cheaper[i], 1, 30) * 2,
			  sim_call_ps(&profile, cheaper[i], 512, 21));
		EXPECT_EQ(sim_call_ps(&profile, cheaper[i], 1, 30),
			  sim_call_ps(&profile, cheaper[i], 1, 21));
		EXPECT_EQ(sim_call_ps(&profile, as_much[i], 1, 30),
			  sim_call_ps(&profile, as_much[i], 512, 21));
	}
}

/* A message more for each 512 pages to map and each 3072 to create. */
TEST(driver_cost, messages_are_of_so_many_pages)
{
	struct sim_profile profile;

	load("Ascend910B1", &profile);
	for (unsigned i = 0; i < 2; i++) {
		enum sim_call call = i ? SIM_CALL_CREATE : SIM_CALL_MAP;
		uint64_t pages = i ? 3072 : 512, page, step;

		page = sim_call_ps(&profile, call, 2, 21) - sim_call_ps(&profile, call, 1, 21);
		step = sim_call_ps(&profile, call, pages + 1, 21) -
		       sim_call_ps(&profile, call, pages, 21);
		EXPECT_EQ(sim_call_ps(&profile, call, pages, 21),
			  sim_call_ps(&profile, call, 1, 21) + (pages - 1) * page);
		EXPECT_EQ(step, page + profile.call[call].message_ns * 1000);
		EXPECT_GT(profile.call[call].message_ns, 0u);
	}
}
