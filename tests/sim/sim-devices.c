/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulations of several numbers of devices: a process elaborates one model, for the number of its
 * first simulation, so each number has a process of its own here.
 */
#include "harness/test.h"

#include <glib.h>
#include <string.h>

#include "machine.h"

static struct sim *open_devices(unsigned devices, char **error)
{
	struct sim_config config = { &machine.profile, &machine.memory, devices, true, NULL };

	return sim_open(&config, error);
}

/* A job on the last device; time goes on from simulation to simulation. */
static void use_devices(unsigned devices, uint64_t *since_ps)
{
	struct sim_job job = { .kind = SIM_JOB_DELAY, .device = devices - 1, .delay_ps = 1234 };
	char *error = NULL;

	NOTE("%u devices", devices);
	machine.sim = open_devices(devices, &error);
	ASSERT_NOT_NULL(machine.sim);
	EXPECT_GE(sim_host_ps(machine.sim), *since_ps);
	sim_spend(machine.sim, 5 * SIM_PS_PER_MS);
	*since_ps = sim_host_ps(machine.sim) + 1234;
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(job.finish_ps, *since_ps);
	sim_close(machine.sim);
}

static void refuse_devices(unsigned devices, const char *words)
{
	char *error = NULL;

	NOTE("%u devices", devices);
	EXPECT_NULL(open_devices(devices, &error));
	EXPECT_CONTAINS(error, words);
	g_free(error);
}

static void as_many_or_fewer(void *first)
{
	unsigned most = *(const unsigned *)first;
	g_autofree char *words = g_strdup_printf(
		"sim_open: %u devices; at most the %u of this process", most + 1, most);
	uint64_t since = 0;

	machine_setup();
	for (unsigned devices = most; devices; devices /= 2)
		use_devices(devices, &since);
	use_devices(most, &since);
	if (most < 16)
		refuse_devices(most + 1, words);
	refuse_devices(17, "17 devices; must be 1 to 16");
	refuse_devices(0, "0 devices; must be 1 to 16");
	machine.sim = NULL;
	machine_close();
}

TEST(devices, first_simulation_says_how_many_there_can_be)
{
	for (unsigned most = 1; most <= 16; most *= 2)
		EXPECT_EXIT(0, as_many_or_fewer, &most);
}

/* Peers and the host are told apart in a simulation of fewer devices than the model was built for.
 */
TEST_CHILD(devices, later_simulation_may_have_fewer)
{
	uint64_t since = 0;
	struct sim_job read = { .kind = SIM_JOB_READ, .src = { 0, MACHINE_VA }, .bytes = HUGE };
	const struct sim_profile *p = &machine.profile;
	struct sim_counters c;

	machine_setup();
	use_devices(8, &since);
	machine_open(true);
	machine_map(0, MACHINE_VA, SIM_PA(SIM_NODE_HOST, 0), 21, 1, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &read), SIM_OK);
	EXPECT_GE(read.finish_ps - read.begin_ps, HUGE * SIM_PS_PER_US / p->h2d_bytes_per_us);
	sim_get_counters(machine.sim, 1, &c);
	EXPECT_EQ(c.hbm_read_bytes, 0u);
	machine_unmap(0, MACHINE_VA, HUGE);
	machine_map(0, MACHINE_VA, SIM_PA(1, 0), 21, 1, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &read), SIM_OK);
	sim_get_counters(machine.sim, 1, &c);
	EXPECT_EQ(c.hbm_read_bytes, HUGE);
	EXPECT_LT(read.finish_ps - read.begin_ps, HUGE * SIM_PS_PER_US / p->h2d_bytes_per_us);
	machine_close();
}

/* The model is built at the first job. */
TEST_CHILD(devices, simulation_without_a_job_says_nothing)
{
	uint64_t since = 0;

	machine_setup();
	machine.sim = open_devices(1, NULL);
	ASSERT_NOT_NULL(machine.sim);
	sim_spend(machine.sim, SIM_PS_PER_MS);
	sim_invalidate(machine.sim, 0, 0, UINT64_C(1) << 30);
	EXPECT_FALSE(sim_busy(machine.sim));
	since = sim_host_ps(machine.sim);
	sim_close(machine.sim);
	use_devices(16, &since);
	machine.sim = NULL;
	machine_close();
}

static uint64_t unaligned_read_ps(uint64_t at, uint64_t bytes)
{
	struct sim_job read = { .kind = SIM_JOB_READ,
				.engine = SIM_ENGINE_CORE,
				.core = 24,
				.device = 1,
				.src = { 1, MACHINE_VA + at },
				.bytes = bytes };

	EXPECT_EQ(sim_execute(machine.sim, &read), SIM_OK);
	return read.finish_ps - read.begin_ps;
}

/* Parts of lines go past the L2, whose bandwidth they do not take: nor that of another profile. */
static uint64_t after_a_slow_l2(bool slow)
{
	struct sim_profile *p = &machine.profile;
	uint64_t ps = 0;

	for (bool last = !slow;; last = true) {
		machine_setup();
		p->l2_bytes_per_us = last ? 5960000 : 1;
		if (last) {
			p->l2_line_bytes = 4096;
			p->l2_block_bytes = 65536;
			p->l2_bytes -= p->l2_bytes % (p->l2_block_bytes * p->l2_ways);
		}
		machine_open(true);
		machine_map(1, MACHINE_VA, SIM_PA(1, 0), 21, 1, PT_WRITE);
		for (unsigned i = 0; i < 3; i++)
			ps = unaligned_read_ps(i * 8192 + 100, last ? 600 : 128);
		machine_close();
		if (last)
			return ps;
	}
}

TEST_CHILD(devices, later_simulation_has_its_own_bandwidth)
{
	uint64_t alone = after_a_slow_l2(false);

	EXPECT_EQ(after_a_slow_l2(true), alone);
}
