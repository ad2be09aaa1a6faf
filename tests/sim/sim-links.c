/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between devices and host as programs see them: who waits for whom, and who shares.
 */
#include "harness/test.h"
#include "machine.h"

#include <string.h>

#define PIECES 16 /* of 2 MiB, of each copy */

static struct sim_job jobs[8];

SETUP(links)
{
	machine_setup();
}

TEARDOWN(links)
{
	machine_close();
}

static void map_nodes_of(const char *soc, bool refresh)
{
	char *error = NULL;

	ASSERT_TRUE(sim_profile_load(soc, &machine.profile, &error));
	machine.profile.hbm_refresh = refresh;
	machine_open(true);
	for (int node = 0; node < MACHINE_DEVICES; node++)
		machine_map(node, MACHINE_VA, SIM_PA(node, 0), 21, 2 * PIECES, PT_WRITE);
	machine_map(SIM_NODE_HOST, MACHINE_VA, SIM_PA(SIM_NODE_HOST, 0), 21, 2 * PIECES, PT_WRITE);
}

static void map_nodes(const char *soc)
{
	map_nodes_of(soc, true);
}

/* A request that is translated at once does not wait for the link because one that was issued
 * before it will need the link later, after its walk. */
TEST(links, late_request_does_not_block_an_early_one)
{
	uint64_t alone;

	map_nodes("Ascend910B1");
	for (unsigned i = 0; i < 3; i++) {
		jobs[i] = (struct sim_job){ .kind = SIM_JOB_READ,
					    .engine = SIM_ENGINE_CORE,
					    .core = i,
					    .src = machine_ref(SIM_NODE_HOST, MACHINE_VA),
					    .bytes = 512 };
	}
	jobs[0].src.va += HUGE; /* core 0: a page that nobody has used */
	jobs[2].core = 1;       /* core 1 brings its page into its TLB */
	ASSERT_EQ(sim_execute(machine.sim, &jobs[2]), SIM_OK);
	ASSERT_EQ(sim_execute(machine.sim, &jobs[2]), SIM_OK);
	alone = jobs[2].finish_ps - jobs[2].begin_ps;
	sim_submit(machine.sim, &jobs[0]);
	sim_submit(machine.sim, &jobs[1]);
	sim_drain(machine.sim);
	EXPECT_GT(jobs[0].finish_ps - jobs[0].begin_ps, alone);
	EXPECT_EQ(jobs[1].finish_ps - jobs[1].begin_ps, alone);
}

/* Two copies at once: through one link each gets half of it, and neither is first; the two
 * directions of a link do not wait for one another. */
struct pair {
	const char *title, *soc;
	struct {
		enum sim_engine engine;
		unsigned device;
		int dst, src;
	} job[2];
	double gb_s; /* of both */
};

#define HOST SIM_NODE_HOST

static const struct pair pairs[] = {
	{ "to_device",
	  "Ascend910B1",
	  { { SIM_ENGINE_H2D, 0, 0, HOST }, { SIM_ENGINE_SDMA, 0, 0, HOST } },
	  25 },
	{ "to_host",
	  "Ascend910B1",
	  { { SIM_ENGINE_D2H, 0, HOST, 0 }, { SIM_ENGINE_SDMA, 0, HOST, 0 } },
	  25 },
	{ "from_peer",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  23.4 }, /* one reads at 27.3, one writes at 20.5, each half of the time */
	{ "from_other_die",
	  "Ascend910_9391",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  270 },
	{ "host_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_H2D, 0, 0, HOST }, { SIM_ENGINE_D2H, 0, HOST, 0 } },
	  2 * 25 },
	{ "peer_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 0, 1 }, { SIM_ENGINE_SDMA, 1, 1, 0 } },
	  2 * 27.3 },
	{ "peer_written_both_ways",
	  "Ascend910B1",
	  { { SIM_ENGINE_SDMA, 0, 1, 0 }, { SIM_ENGINE_SDMA, 1, 0, 1 } },
	  2 * 20.5 },
	{ "other_chip_written_both_ways",
	  "Ascend910_9391",
	  { { SIM_ENGINE_SDMA, 0, 2, 0 }, { SIM_ENGINE_SDMA, 2, 0, 2 } },
	  2 * 138 },
};

TEST_EACH(links, two_copies_at_once, pairs, title)
{
	const struct pair *pair = param;
	double us[2];

	map_nodes(pair->soc);
	for (unsigned i = 0; i < 2; i++) {
		jobs[i] =
			machine_copy(pair->job[i].engine, machine_ref(pair->job[i].dst, MACHINE_VA),
				     machine_ref(pair->job[i].src, MACHINE_VA), PIECES * HUGE);
		jobs[i].device = pair->job[i].device;
		sim_submit(machine.sim, &jobs[i]);
	}
	sim_drain(machine.sim);
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(jobs[i].status, SIM_OK);
		us[i] = (double)(jobs[i].finish_ps - jobs[i].begin_ps) / SIM_PS_PER_US;
	}
	EXPECT_NEAR(us[0], us[1], 0.05 * us[0]);
	EXPECT_NEAR(2.0 * PIECES * HUGE / us[0] / 1000, pair->gb_s, 0.05 * pair->gb_s);
}

/* A device's own copy does not wait in its memory for bytes that a link is yet to bring or take. */
static const struct pair flows[] = {
	{ "peer_writes", "Ascend910B1", { { SIM_ENGINE_SDMA, 0, 1, 0 } }, 0 },
	{ "other_die_writes", "Ascend910_9391", { { SIM_ENGINE_SDMA, 0, 1, 0 } }, 0 },
	{ "peer_reads", "Ascend910B1", { { SIM_ENGINE_SDMA, 0, 0, 1 } }, 0 },
	{ "from_host", "Ascend910B1", { { SIM_ENGINE_H2D, 1, 1, HOST } }, 0 },
	{ "to_host", "Ascend910B1", { { SIM_ENGINE_D2H, 1, HOST, 1 } }, 0 },
};

/* Of the device's pages [first, first + PIECES / 2), to those behind; takes so long. */
static uint64_t own_copy(unsigned first)
{
	uint64_t at = MACHINE_VA + first * HUGE;

	jobs[0] = machine_copy(SIM_ENGINE_SDMA, machine_ref(1, at + PIECES / 2 * HUGE),
			       machine_ref(1, at), PIECES / 2 * HUGE);
	jobs[0].device = 1;
	EXPECT_EQ(sim_execute(machine.sim, &jobs[0]), SIM_OK);
	return jobs[0].finish_ps - jobs[0].begin_ps;
}

TEST_EACH(links, own_copy_beside_one_over_a_link, flows, title)
{
	const struct pair *flow = param;
	uint64_t alone, beside;

	map_nodes(flow->soc);
	alone = own_copy(0);
	jobs[1] = machine_copy(flow->job[0].engine, machine_ref(flow->job[0].dst, MACHINE_VA),
			       machine_ref(flow->job[0].src, MACHINE_VA), PIECES * HUGE);
	jobs[1].device = flow->job[0].device;
	sim_submit(machine.sim, &jobs[1]);
	beside = own_copy(PIECES);
	sim_drain(machine.sim);
	EXPECT_GT(jobs[1].finish_ps, jobs[0].finish_ps);
	EXPECT_LT(beside, alone + alone / 2);
}

/* Small copies to and from another device, one behind the other: the engine begins the next one
 * while the last bytes of the one before are on the way. */
#define SMALL (UINT64_C(16) << 10)
#define QUEUE 32

static struct sim_job queue[QUEUE];
static const struct sim_job *completed[QUEUE];
static unsigned completed_count;

static void note_completion(struct sim_job *job)
{
	completed[completed_count++] = job;
}

/* Copy `i` of a queue; its pages are in the TLBs. */
static void make_small(unsigned i, int dst, int src)
{
	queue[i] = machine_copy(SIM_ENGINE_SDMA, machine_ref(dst, MACHINE_VA + i * SMALL),
				machine_ref(src, MACHINE_VA + i * SMALL), SMALL);
	queue[i].done = note_completion;
}

/* Device 0's copies of 16 KiB: the way's rate, and what was measured of such a queue (HIXL's
 * benchmark tables). */
static const struct small {
	const char *title, *soc;
	int dst, src;
	double gb_s, measured_gb_s;
} smalls[] = {
	{ "written_by_910b", "Ascend910B1", 1, 0, 20.5, 8.9 },
	{ "read_by_910b", "Ascend910B1", 0, 1, 27.3, 10.3 },
	{ "written_by_910c", "Ascend910_9391", 2, 0, 138, 18.0 },
	{ "read_by_910c", "Ascend910_9391", 0, 2, 166.5, 17.2 },
};

static void submit_all(const struct small *small)
{
	completed_count = 0;
	for (unsigned i = 0; i < QUEUE; i++) {
		make_small(i, small->dst, small->src);
		sim_submit(machine.sim, &queue[i]);
	}
	sim_drain(machine.sim);
}

/* What one takes, when TLBs and L2 have all that the queue uses, and the memory has no refresh. */
static uint64_t lone_ps(const struct small *small)
{
	map_nodes_of(small->soc, false);
	submit_all(small);
	completed_count = 0;
	make_small(0, small->dst, small->src);
	EXPECT_EQ(sim_execute(machine.sim, &queue[0]), SIM_OK);
	completed_count = 0;
	return queue[0].finish_ps - queue[0].begin_ps;
}

static uint64_t flight_ps(const struct small *small)
{
	return machine.profile.peer_ps + (small->dst != 0 ? machine.profile.l2_hit_ps : 0);
}

TEST_EACH(links, small_copies_in_a_queue, smalls, title)
{
	const struct small *small = param;
	uint64_t lone, apart;

	lone = lone_ps(small);
	submit_all(small);
	apart = (queue[QUEUE - 1].finish_ps - queue[0].finish_ps) / (QUEUE - 1);
	EXPECT_NEAR(apart, lone - flight_ps(small), 20000);
	EXPECT_GE(apart, machine.profile.sdma_start_ps + (uint64_t)(SMALL * 1000 / small->gb_s));
	EXPECT_NEAR(SMALL * 1000.0 / (double)apart, small->measured_gb_s,
		    0.1 * small->measured_gb_s);
	EXPECT_NEAR(queue[0].finish_ps - queue[0].begin_ps, lone, lone / 50);
	ASSERT_EQ(completed_count, QUEUE);
	for (unsigned i = 0; i < QUEUE; i++)
		EXPECT_EQ(completed[i], &queue[i]);
}

/* What is handed over when the copy before ends is begun as if it were alone, unless its queue has
 * had it before; what comes between ends before the next begins. */
TEST_EACH(links, when_a_small_copy_was_sent, smalls, title)
{
	const struct small *small = param;
	struct sim_job pause = { .kind = SIM_JOB_DELAY,
				 .engine = SIM_ENGINE_SDMA,
				 .delay_ps = 10 * SIM_PS_PER_US };
	uint64_t lone, took[4];

	lone = lone_ps(small);
	for (unsigned i = 0; i < 4; i++) {
		make_small(0, small->dst, small->src);
		EXPECT_EQ(sim_execute(machine.sim, &queue[0]), SIM_OK);
		make_small(1, small->dst, small->src);
		/* at the end of the other one, then sooner and sooner */
		queue[1].sent_ps = i == 0 ? 0 : queue[0].finish_ps - (i - 1) * flight_ps(small) / 2;
		EXPECT_EQ(sim_execute(machine.sim, &queue[1]), SIM_OK);
		EXPECT_EQ(queue[1].begin_ps, queue[0].finish_ps);
		took[i] = queue[1].finish_ps - queue[1].begin_ps;
	}
	EXPECT_NEAR(took[0], lone, 20000);
	EXPECT_EQ(took[1], took[0]);
	EXPECT_NEAR(took[2], lone - flight_ps(small) / 2, 20000);
	EXPECT_NEAR(took[3], lone - flight_ps(small), 20000);
	make_small(0, small->dst, small->src);
	make_small(1, small->dst, small->src);
	sim_submit(machine.sim, &queue[0]);
	sim_submit(machine.sim, &pause);
	sim_submit(machine.sim, &queue[1]);
	sim_drain(machine.sim);
	EXPECT_EQ(pause.finish_ps, queue[0].finish_ps + pause.delay_ps);
	EXPECT_NEAR(queue[1].finish_ps - pause.finish_ps, lone, 20000);
}

/* Behind a small copy each other one begins when that has ended, and one by the same way never ends
 * sooner than a start behind it. */
static const struct behind {
	const char *title;
	int dst, src;
} behinds[] = {
	{ "back", 1, 0 },  { "back_of_another_device", 2, 0 }, { "to_another_device", 0, 2 },
	{ "local", 0, 0 }, { "within_the_other", 1, 1 },
};

TEST_EACH(links, behind_a_small_copy_by_another_way, behinds, title)
{
	const struct behind *behind = param;
	uint64_t since = 0, took[2];

	(void)lone_ps(&smalls[1]); /* read by a 910B */
	for (int i = 0; i < 4; i++) {
		make_small(0, 0, 1);
		make_small(1, behind->dst, behind->src);
		if (i % 2)
			sim_submit(machine.sim, &queue[0]);
		sim_submit(machine.sim, &queue[1]);
		sim_drain(machine.sim);
		since = queue[1].begin_ps;
		if (i % 2)
			EXPECT_EQ(since, queue[0].finish_ps);
		took[i % 2] = queue[1].finish_ps - since;
	}
	EXPECT_NEAR(took[1], took[0], 20000);
	make_small(0, 0, 1);
	make_small(1, 0, 1);
	queue[1].bytes = 64;
	sim_submit(machine.sim, &queue[0]);
	sim_submit(machine.sim, &queue[1]);
	sim_drain(machine.sim);
	EXPECT_GE(queue[1].finish_ps, queue[0].finish_ps + machine.profile.sdma_start_ps);
}

/* Each copies on what the one before has brought, but for one that faults: bytes move in order. */
TEST_EACH(links, small_copies_that_need_each_other, smalls, title)
{
	const struct small *small = param;
	unsigned char want[SMALL];

	(void)lone_ps(small);
	memset(want, 42, sizeof(want));
	memset(machine_at((unsigned)small->src, 0), 42, SMALL);
	for (unsigned i = 0; i < QUEUE; i++) {
		make_small(i, i % 2 ? small->src : small->dst, i % 2 ? small->dst : small->src);
		queue[i].dst.va += SMALL;
		if (i == QUEUE / 2) /* not mapped; the next one copies what was there before */
			queue[i].dst.va = MACHINE_VA - HUGE;
		sim_submit(machine.sim, &queue[i]);
	}
	sim_drain(machine.sim);
	ASSERT_EQ(completed_count, QUEUE);
	for (unsigned i = 0; i < QUEUE; i++) {
		unsigned node = (unsigned)(i % 2 ? small->src : small->dst);

		EXPECT_EQ(completed[i], &queue[i]);
		EXPECT_EQ(queue[i].status, i == QUEUE / 2 ? SIM_FAULT_TRANSLATION : SIM_OK);
		EXPECT_EQ(queue[i].moved_bytes, i == QUEUE / 2 ? 0u : SMALL);
		EXPECT_EQ(memcmp(machine_at(node, (i + 1) * SMALL), want, SMALL) == 0,
			  i < QUEUE / 2);
		if (i > 0)
			EXPECT_GE(queue[i].finish_ps, queue[i - 1].finish_ps);
	}
}
