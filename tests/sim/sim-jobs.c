/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs on the model: bytes, times, order, what a reader sees when, faults, stale translations,
 * determinism.
 */
#include "harness/test.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "sim/sim.h"

SETUP(jobs)
{
	machine_setup();
	machine_open(true);
}

TEARDOWN(jobs)
{
	machine_close();
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool is_set(void *arg)
{
	return *(bool *)arg;
}

static void fill_random(unsigned char *at, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

TEST(jobs, copy_goes_where_the_tables_say)
{
	uint64_t bytes = 3 * HUGE + 12345;
	unsigned char *in = malloc(bytes), *out = calloc(1, bytes);
	struct sim_job job;

	fill_random(in, bytes, 7);
	/* Pages in reverse order. */
	for (unsigned i = 0; i < 4; i++)
		machine_map(0, MACHINE_VA + i * HUGE, SIM_PA(0, (3 - i) * HUGE), 21, 1, PT_WRITE);
	job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA + 11), machine_raw(in), bytes);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(job.moved_bytes, bytes);
	EXPECT_MEMEQ(machine_at(0, 3 * HUGE + 11), in, HUGE - 11);
	EXPECT_MEMEQ(machine_at(0, 2 * HUGE), in + HUGE - 11, HUGE);
	job = machine_copy(SIM_ENGINE_D2H, machine_raw(out), machine_ref(0, MACHINE_VA + 11),
			   bytes);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_MEMEQ(out, in, bytes);
	EXPECT_EQ(sim_host_ps(machine.sim), job.finish_ps);
	free(in);
	free(out);
}

TEST(jobs, fill_repeats_its_pattern_across_pages)
{
	static const unsigned sizes[] = { 1, 2, 4 };

	machine_map(1, MACHINE_VA, SIM_PA(1, 4 * HUGE), 21, 1, PT_WRITE);
	machine_map(1, MACHINE_VA + HUGE, SIM_PA(1, HUGE), 21, 1, PT_WRITE);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t va = MACHINE_VA + HUGE - 8, bytes = 40;
		const unsigned char pattern[4] = { 0xd1, 0xc2, 0xb3, 0xa4 };
		struct sim_job job = { .kind = SIM_JOB_FILL,
				       .device = 1,
				       .dst = { 1, va },
				       .bytes = bytes,
				       .pattern = 0xa4b3c2d1,
				       .pattern_bytes = sizes[i] };

		EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
		for (unsigned b = 0; b < bytes; b++) {
			const unsigned char *at = b < 8 ? machine_at(1, 5 * HUGE - 8 + b)
							: machine_at(1, HUGE + b - 8);

			ASSERT_EQ(*at, pattern[b % sizes[i]]);
		}
	}
}

TEST(jobs, copy_between_devices)
{
	struct sim_job job;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 4, PT_WRITE);
	machine_map(2, MACHINE_VA, SIM_PA(2, 0), 21, 4, PT_WRITE);
	fill_random(machine_at(0, 0), 4 * HUGE, 3);
	job = machine_copy(SIM_ENGINE_SDMA, machine_ref(2, MACHINE_VA), machine_ref(0, MACHINE_VA),
			   4 * HUGE);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_MEMEQ(machine_at(2, 0), machine_at(0, 0), 4 * HUGE);
	/* One HCCS link: its rate, and no more than the latencies beside it. */
	EXPECT_GE(job.finish_ps - job.begin_ps,
		  4 * HUGE * SIM_PS_PER_US / machine.profile.peer_write_bytes_per_us);
	EXPECT_LE(job.finish_ps - job.begin_ps,
		  4 * HUGE * SIM_PS_PER_US / machine.profile.peer_write_bytes_per_us +
			  100 * SIM_PS_PER_US);
}

static unsigned order[4], ordered;

static void note_order(struct sim_job *job)
{
	order[ordered++] = (unsigned)(uintptr_t)job->arg;
}

TEST(jobs, one_engine_keeps_order_others_overlap)
{
	struct sim_job a = { .kind = SIM_JOB_DELAY, .delay_ps = 300, .done = note_order };
	struct sim_job b = { .kind = SIM_JOB_DELAY, .delay_ps = 100, .done = note_order };
	struct sim_job c = { .kind = SIM_JOB_DELAY, .delay_ps = 350, .done = note_order };
	uint64_t start = sim_host_ps(machine.sim);

	ordered = 0;
	a.arg = (void *)1;
	b.arg = (void *)2;
	c.arg = (void *)3;
	c.engine = SIM_ENGINE_H2D;
	sim_submit(machine.sim, &a);
	sim_submit(machine.sim, &b);
	sim_submit(machine.sim, &c);
	EXPECT_TRUE(sim_busy(machine.sim));
	sim_drain(machine.sim);
	EXPECT_FALSE(sim_busy(machine.sim));
	ASSERT_EQ(ordered, 3u);
	EXPECT_EQ(order[0], 1u);
	EXPECT_EQ(order[1], 3u);
	EXPECT_EQ(order[2], 2u);
	EXPECT_EQ(a.finish_ps, start + 300);
	EXPECT_EQ(c.finish_ps, start + 350);
	EXPECT_EQ(b.begin_ps, start + 300);
	EXPECT_EQ(b.finish_ps, start + 400);
	EXPECT_EQ(sim_host_ps(machine.sim), start + 400);
}

TEST(jobs, reader_sees_old_bytes_until_completion)
{
	char in[] = "new", *device;
	struct sim_job job;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	device = (char *)machine_at(0, 0);
	strcpy(device, "old");
	job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA), machine_raw(in), 4);
	job.done = NULL;
	sim_submit(machine.sim, &job);
	sim_catch_up(machine.sim);
	EXPECT_STREQ(device, "old");
	sim_spend(machine.sim, SIM_PS_PER_NS);
	sim_catch_up(machine.sim);
	EXPECT_STREQ(device, "old");
	sim_spend(machine.sim, SIM_PS_PER_MS);
	EXPECT_STREQ(device, "old");
	sim_catch_up(machine.sim);
	EXPECT_STREQ(device, "new");
	EXPECT_LT(job.finish_ps, sim_host_ps(machine.sim));
}

/* What is complete exactly now has taken effect. */
TEST(jobs, catch_up_includes_the_present)
{
	struct sim_job job = { .kind = SIM_JOB_DELAY, .delay_ps = 5000, .done = note_order };

	ordered = 0;
	sim_submit(machine.sim, &job);
	sim_spend(machine.sim, 4999);
	sim_catch_up(machine.sim);
	EXPECT_EQ(ordered, 0u);
	sim_spend(machine.sim, 1);
	sim_catch_up(machine.sim);
	EXPECT_EQ(ordered, 1u);
}

TEST(jobs, start_time_is_waited_for)
{
	uint64_t start = sim_host_ps(machine.sim) + 7777;
	struct sim_job job = { .kind = SIM_JOB_DELAY, .delay_ps = 10, .start_ps = start };

	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(job.begin_ps, start);
	EXPECT_EQ(job.finish_ps, start + 10);
}

TEST(jobs, wait_ends_ready_at_timeout_or_idle)
{
	struct sim_job job = { .kind = SIM_JOB_DELAY, .delay_ps = 1000 };
	uint64_t start = sim_host_ps(machine.sim);
	bool flag = true;

	EXPECT_EQ(sim_wait(machine.sim, is_set, &flag, 0), SIM_WAIT_READY);
	EXPECT_EQ(sim_wait(machine.sim, never, NULL, SIM_NEVER), SIM_WAIT_IDLE);
	EXPECT_EQ(sim_host_ps(machine.sim), start);
	sim_submit(machine.sim, &job);
	EXPECT_EQ(sim_wait(machine.sim, never, NULL, 400), SIM_WAIT_TIMEOUT);
	EXPECT_EQ(sim_host_ps(machine.sim), start + 400);
	EXPECT_EQ(sim_wait(machine.sim, never, NULL, SIM_NEVER), SIM_WAIT_IDLE);
	EXPECT_EQ(sim_host_ps(machine.sim), start + 1000);
}

static struct sim_job chained;

static void submit_next(struct sim_job *job)
{
	if (++ordered < 3)
		sim_submit(machine.sim, job == &chained ? &chained : job->arg);
}

TEST(jobs, done_may_submit_the_same_and_other_jobs)
{
	struct sim_job first = { .kind = SIM_JOB_DELAY, .delay_ps = 10, .done = submit_next };
	uint64_t start = sim_host_ps(machine.sim);

	ordered = 0;
	chained = (struct sim_job){
		.kind = SIM_JOB_DELAY, .engine = SIM_ENGINE_D2H, .delay_ps = 5, .done = submit_next
	};
	first.arg = &chained;
	sim_submit(machine.sim, &first);
	sim_drain(machine.sim);
	EXPECT_EQ(ordered, 3u);
	EXPECT_EQ(chained.finish_ps, start + 20);
}

struct fault_case {
	const char *title;
	enum sim_status status;
	bool by_src;
};

static const struct fault_case faults[] = {
	{ "src_translation", SIM_FAULT_TRANSLATION, true },
	{ "dst_translation", SIM_FAULT_TRANSLATION, false },
	{ "dst_permission", SIM_FAULT_PERMISSION, false },
	{ "src_address", SIM_FAULT_ADDRESS, true },
	{ "dst_address", SIM_FAULT_ADDRESS, false },
};

/* Two good pages of 4 KiB, then the bad one. */
static void run_fault(const struct fault_case *c)
{
	int bad_space = c->by_src ? 1 : 0;
	uint64_t bad_va = MACHINE_VA + 8192;
	struct sim_job job;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 12, c->by_src ? 4 : 2, PT_WRITE);
	machine_map(1, MACHINE_VA, SIM_PA(1, 0), 12, c->by_src ? 2 : 4, PT_WRITE);
	if (c->status == SIM_FAULT_PERMISSION)
		machine_map(bad_space, bad_va, SIM_PA(0, 8192), 12, 1, 0);
	if (c->status == SIM_FAULT_ADDRESS)
		machine_map(bad_space, bad_va, SIM_PA(7, 0), 12, 1, PT_WRITE);
	fill_random(machine_at(1, 0), 16384, 5);
	job = machine_copy(SIM_ENGINE_SDMA, machine_ref(0, MACHINE_VA + 100),
			   machine_ref(1, MACHINE_VA + 100), 10000);
	EXPECT_EQ(sim_execute(machine.sim, &job), c->status);
	EXPECT_EQ(job.fault_va, bad_va);
	EXPECT_EQ(job.fault_space, bad_space);
	EXPECT_EQ(job.moved_bytes, 8192u - 100u);
	EXPECT_MEMEQ(machine_at(0, 100), machine_at(1, 100), 8192 - 100);
	EXPECT_EQ(*machine_at(0, 8192), 0);
}

TEST_EACH(jobs, fault_ends_a_job, faults, title)
{
	run_fault(param);
}

TEST_EACH(functional, fault_ends_a_job, faults, title)
{
	machine_setup();
	machine_open(false);
	run_fault(param);
	machine_close();
}

TEST(functional, jobs_are_done_on_return_and_take_no_time)
{
	char in[] = "bytes";
	struct sim_job job;

	machine_setup();
	machine_open(false);
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA), machine_raw(in), 6);
	job.done = note_order;
	ordered = 0;
	sim_submit(machine.sim, &job);
	EXPECT_EQ(ordered, 1u);
	EXPECT_STREQ((char *)machine_at(0, 0), "bytes");
	EXPECT_EQ(sim_spend(machine.sim, 1000), sim_host_ps(machine.sim));
	EXPECT_EQ(job.finish_ps, sim_host_ps(machine.sim));
	machine_unmap(0, MACHINE_VA, HUGE);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_FAULT_TRANSLATION);
	EXPECT_EQ(sim_wait(machine.sim, never, NULL, SIM_NEVER), SIM_WAIT_IDLE);
	machine_close();
}

/* Maps a page, uses it, maps another frame in its place. Returns the byte that a read finds then.
 */
static int remapped_byte(unsigned lg2, bool lose)
{
	uint64_t page = UINT64_C(1) << lg2;
	unsigned char out = 0;
	struct sim_job job =
		machine_copy(SIM_ENGINE_D2H, machine_raw(&out), machine_ref(0, MACHINE_VA + 3), 1);

	machine_map(0, MACHINE_VA, SIM_PA(0, page), lg2, 1, PT_WRITE);
	*machine_at(0, page + 3) = 'a';
	*machine_at(0, 2 * page + 3) = 'b';
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(out, 'a');
	if (lose)
		pt_unmap(&machine.table[0], MACHINE_VA, page);
	else
		machine_unmap(0, MACHINE_VA, page);
	machine_map(0, MACHINE_VA, SIM_PA(0, 2 * page), lg2, 1, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	return out;
}

struct page_case {
	const char *title;
	unsigned lg2;
};

static const struct page_case pages[] = { { "4K", 12 }, { "2M", 21 }, { "1G", 30 } };

TEST_EACH(jobs, unmapped_page_is_not_used_again, pages, title)
{
	EXPECT_EQ(remapped_byte(((const struct page_case *)param)->lg2, false), 'b');
}

/* The test above sees it when an invalidation is lost: the TLBs do hold translations. */
TEST_EACH(jobs, lost_invalidation_is_noticed, pages, title)
{
	EXPECT_EQ(remapped_byte(((const struct page_case *)param)->lg2, true), 'a');
}

TEST(jobs, unmap_reaches_every_engine_and_other_devices)
{
	uint64_t va = MACHINE_VA;
	struct sim_job read = { .kind = SIM_JOB_READ, .src = { 0, va }, .bytes = 64 };

	machine_map(0, va, SIM_PA(0, 0), 21, 2, PT_WRITE);
	for (unsigned device = 0; device < MACHINE_DEVICES; device++) {
		for (unsigned core = 0; core < 72; core++) {
			read.engine = SIM_ENGINE_CORE;
			read.device = device;
			read.core = core;
			ASSERT_EQ(sim_execute(machine.sim, &read), SIM_OK);
		}
	}
	machine_unmap(0, va, HUGE);
	for (unsigned device = 0; device < MACHINE_DEVICES; device++) {
		for (unsigned core = 0; core < 72; core++) {
			read.device = device;
			read.core = core;
			read.src.va = va;
			ASSERT_EQ(sim_execute(machine.sim, &read), SIM_FAULT_TRANSLATION);
			read.src.va = va + HUGE;
			ASSERT_EQ(sim_execute(machine.sim, &read), SIM_OK);
		}
	}
}

TEST(jobs, tables_freed_and_made_anew_are_not_walked_stale)
{
	unsigned char out = 0;
	struct sim_job job = machine_copy(SIM_ENGINE_D2H, machine_raw(&out),
					  machine_ref(0, MACHINE_VA + HUGE), 1);

	/* The walk cache has the way to the level 2 table; the table goes, and another comes. */
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 2, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	machine_unmap(0, MACHINE_VA, 2 * HUGE);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_FAULT_TRANSLATION);
	machine_map(0, MACHINE_VA + HUGE, SIM_PA(0, 5 * HUGE), 21, 1, PT_WRITE);
	*machine_at(0, 5 * HUGE) = 'x';
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(out, 'x');
}

/* Pages go while a job uses them: what was issued before arrives at the job's end, and nothing
 * later; until then the frames are in use. */
TEST(jobs, unmap_during_a_job_ends_it)
{
	uint64_t bytes = 64 * HUGE;
	unsigned char *in = malloc(bytes);
	struct sim_job job;

	memset(in, 0xee, bytes);
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 64, PT_WRITE);
	job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA), machine_raw(in), bytes);
	sim_submit(machine.sim, &job);
	EXPECT_EQ(sim_wait(machine.sim, never, NULL, 500 * SIM_PS_PER_US), SIM_WAIT_TIMEOUT);
	EXPECT_EQ(*machine_at(0, 0), 0);
	machine_unmap(0, MACHINE_VA, bytes);
	EXPECT_TRUE(sim_uses(machine.sim, machine_at(0, 0), 1));
	EXPECT_TRUE(sim_uses(machine.sim, in, 1));
	EXPECT_FALSE(sim_uses(machine.sim, machine_at(0, bytes - 1), 1));
	EXPECT_EQ(*machine_at(0, 0), 0);
	sim_drain(machine.sim);
	EXPECT_FALSE(sim_uses(machine.sim, machine_at(0, 0), bytes));
	EXPECT_EQ(job.status, SIM_FAULT_TRANSLATION);
	EXPECT_GT(job.moved_bytes, 0u);
	EXPECT_LT(job.moved_bytes, bytes);
	EXPECT_EQ(job.fault_va, MACHINE_VA + job.moved_bytes);
	for (uint64_t at = 0; at < bytes; at += 4096)
		ASSERT_EQ(*machine_at(0, at), at < job.moved_bytes ? 0xee : 0);
	free(in);
}

TEST(jobs, other_tables_of_a_device_are_used_at_once)
{
	struct page_table other;
	unsigned char out = 0;
	struct sim_job job =
		machine_copy(SIM_ENGINE_D2H, machine_raw(&out), machine_ref(0, MACHINE_VA), 1);

	pt_init(&other, &machine.table[0].host);
	*machine_at(0, 0) = 'a';
	*machine_at(0, HUGE) = 'b';
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	ASSERT_TRUE(pt_map(&other, MACHINE_VA, SIM_PA(0, HUGE), 21, 1, PT_WRITE));
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(out, 'a');
	sim_set_root(machine.sim, 0, other.root_pa);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(out, 'b');
	sim_set_root(machine.sim, 0, machine.table[0].root_pa);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(out, 'a');
	sim_set_root(machine.sim, 0, 0);
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_FAULT_TRANSLATION);
	pt_destroy(&other);
}

/* A mix of everything; its times are the result. */
static uint64_t run_mix(void)
{
	static char raw[100000];
	struct sim_job jobs[40];
	uint64_t sum = 0, start = sim_host_ps(machine.sim);

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 32, PT_WRITE);
	machine_map(1, MACHINE_VA, SIM_PA(1, 0), 12, 8192, PT_WRITE);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t va = MACHINE_VA + (i * UINT64_C(7919) << 9) % (16 * HUGE);
		enum sim_engine engine = (enum sim_engine)(i % SIM_ENGINE_COUNT);

		jobs[i] =
			machine_copy(engine, machine_ref(0, va), machine_raw(raw), 90000 - i * 512);
		jobs[i].device = i % 3;
		if (i % 4 == 1)
			jobs[i].src = machine_ref(1, va);
		if (i % 4 == 3)
			jobs[i].core = i;
		sim_submit(machine.sim, &jobs[i]);
		sim_spend(machine.sim, 100 * SIM_PS_PER_NS);
		if (i % 5 == 0)
			sim_catch_up(machine.sim);
	}
	sim_drain(machine.sim);
	for (unsigned i = 0; i < 40; i++)
		sum = sum * 31 + (jobs[i].begin_ps - start) + 7 * (jobs[i].finish_ps - start);
	return sum;
}

TEST(jobs, same_calls_take_the_same_time)
{
	uint64_t first = run_mix(), second;

	machine_close();
	machine_setup();
	machine_open(true);
	second = run_mix();
	EXPECT_EQ(first, second);
}

static void set_done(struct sim_job *job)
{
	*(bool *)job->arg = true;
}

/* Small jobs of all engines, some over two pages, some with faults; some behind another job of the
 * engine or beside one of another. By sim_execute(), or by a wait, which goes from event to event.
 */
static uint64_t run_small(bool execute)
{
	static char raw[8192];
	static const uint64_t sizes[] = { 1, 8, 200, 4096 };
	uint64_t sum = 0, start = sim_host_ps(machine.sim);

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 3, PT_WRITE);
	machine_map(1, MACHINE_VA, SIM_PA(1, 0), 21, 3, PT_WRITE);
	for (unsigned i = 0; i < 96; i++) {
		enum sim_engine engine = (enum sim_engine)(i % SIM_ENGINE_COUNT);
		struct sim_ref near = machine_ref(0, MACHINE_VA + (i / 4 % 4) * HUGE - (i > 48));
		struct sim_ref far = engine == SIM_ENGINE_SDMA || engine == SIM_ENGINE_CORE
					     ? machine_ref(i / 8 % 2, MACHINE_VA + HUGE + i)
					     : machine_raw(raw);
		struct sim_job other, job;
		bool done = false;

		other = machine_copy(i % 3 ? SIM_ENGINE_H2D : SIM_ENGINE_SDMA,
				     machine_ref(0, MACHINE_VA), machine_ref(1, MACHINE_VA), 30000);
		if (i % 16 > 10)
			sim_submit(machine.sim, &other);
		job = machine_copy(engine, near, far, sizes[i / 4 % 4]);
		if (engine == SIM_ENGINE_D2H)
			job = machine_copy(engine, far, near, job.bytes);
		job.done = set_done;
		job.arg = &done;
		job.start_ps = sim_host_ps(machine.sim) + (i % 7 == 0 ? 12345 : 0);
		if (execute) {
			(void)sim_execute(machine.sim, &job);
		} else {
			sim_submit(machine.sim, &job);
			EXPECT_EQ(sim_wait(machine.sim, is_set, &done, SIM_NEVER), SIM_WAIT_READY);
		}
		EXPECT_TRUE(done);
		sum = sum * 31 + (job.begin_ps - start) + 7 * (job.finish_ps - start) +
		      11 * (sim_host_ps(machine.sim) - start) + 13 * job.moved_bytes + job.status;
		sim_drain(machine.sim);
	}
	return sum;
}

TEST(jobs, small_job_takes_as_long_as_from_event_to_event)
{
	uint64_t executed = run_small(true), waited_for;

	machine_close();
	machine_setup();
	machine_open(true);
	waited_for = run_small(false);
	EXPECT_EQ(executed, waited_for);
}

TEST(jobs, one_simulation_is_open_at_a_time)
{
	struct sim_config config = { &machine.profile, &machine.memory, 2, true, NULL };
	char *error = NULL;

	EXPECT_NULL(sim_open(&config, &error));
	EXPECT_CONTAINS(error, "open in this process already");
	g_free(error);
}

TEST(jobs, close_drops_what_is_pending)
{
	struct sim_job job = { .kind = SIM_JOB_DELAY, .delay_ps = 1000, .done = note_order };

	ordered = 0;
	sim_submit(machine.sim, &job);
	sim_close(machine.sim);
	machine_open(true);
	EXPECT_FALSE(sim_busy(machine.sim));
	sim_drain(machine.sim);
	EXPECT_EQ(ordered, 0u);
}

TEST(jobs, counters_add_up)
{
	struct sim_counters c;
	struct sim_job read = { .kind = SIM_JOB_READ, .src = { 0, MACHINE_VA }, .bytes = 8 * HUGE };

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 8, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &read), SIM_OK);
	EXPECT_EQ(sim_execute(machine.sim, &read), SIM_OK);
	sim_get_counters(machine.sim, 0, &c);
	EXPECT_EQ(c.tlb_requests, 16u);
	EXPECT_EQ(c.tlb_l1_hits, 8u);
	EXPECT_EQ(c.tlb_misses, 8u);
	EXPECT_EQ(c.walks, 8u);
	EXPECT_EQ(c.walk_cache_hits, 7u);
	EXPECT_EQ(c.walk_levels, 3u + 7u);
	EXPECT_EQ(c.tlb_live_bytes, 8 * HUGE);
	EXPECT_EQ(c.l2_reads, 2 * 8 * HUGE / 128);
	EXPECT_EQ(c.l2_read_hits, 8 * HUGE / 128); /* all of the second read */
	EXPECT_EQ(c.l2_walk_reads, c.walk_levels);
	EXPECT_EQ(c.l2_walk_hits, 7u); /* eight descriptors share a line */
	EXPECT_EQ(c.hbm_read_bytes, 8 * HUGE + 3 * 128);
	sim_get_counters(machine.sim, 1, &c);
	EXPECT_EQ(c.tlb_requests, 0u);
	EXPECT_EQ(c.hbm_read_bytes, 0u);
}

/* A piece has been read and not yet written: if its source goes, it arrives all the same; if its
 * destination goes, the write faults. */
static struct sim_job copy_until_written(unsigned char *out)
{
	struct sim_job job =
		machine_copy(SIM_ENGINE_D2H, machine_raw(out), machine_ref(0, MACHINE_VA), HUGE);

	machine_map(0, MACHINE_VA, SIM_PA(0, HUGE), 21, 1, PT_WRITE);
	machine_map(0, MACHINE_VA + HUGE, SIM_PA(0, 2 * HUGE), 21, 1, PT_WRITE);
	fill_random(machine_at(0, HUGE), HUGE, 3);
	return job;
}

TEST(jobs, source_goes_between_read_and_write_of_a_piece)
{
	unsigned char *out = calloc(1, HUGE);
	struct sim_job job = copy_until_written(out);

	sim_submit(machine.sim, &job);
	sim_spend(machine.sim, machine.profile.sdma_start_ps + machine.profile.l2_hit_ps);
	sim_catch_up(machine.sim);
	machine_unmap(0, MACHINE_VA, HUGE);
	EXPECT_TRUE(sim_uses(machine.sim, machine_at(0, HUGE), HUGE));
	sim_drain(machine.sim);
	EXPECT_MEMEQ(out, machine_at(0, HUGE), HUGE);
	EXPECT_EQ(job.status, SIM_OK);
	EXPECT_EQ(job.moved_bytes, HUGE);
	free(out);
}

TEST(jobs, destination_goes_between_read_and_write_of_a_piece)
{
	unsigned char *out = calloc(1, HUGE);
	struct sim_job job = copy_until_written(out);

	job.dst = machine_ref(0, MACHINE_VA + HUGE);
	sim_submit(machine.sim, &job);
	sim_spend(machine.sim, machine.profile.sdma_start_ps + machine.profile.l2_hit_ps);
	sim_catch_up(machine.sim);
	machine_unmap(0, MACHINE_VA + HUGE, HUGE);
	sim_drain(machine.sim);
	EXPECT_EQ(job.status, SIM_FAULT_TRANSLATION);
	EXPECT_EQ(job.fault_va, MACHINE_VA + HUGE);
	EXPECT_EQ(job.moved_bytes, 0u);
	EXPECT_MEMEQ(machine_at(0, 2 * HUGE), out, HUGE);
	free(out);
}

static struct sim_job core_read(unsigned core, uint64_t place, uint64_t rows, uint64_t row_bytes)
{
	return (struct sim_job){ .kind = SIM_JOB_READ,
				 .engine = SIM_ENGINE_CORE,
				 .core = core,
				 .src = machine_ref(0, MACHINE_VA + place),
				 .bytes = rows * row_bytes,
				 .row_bytes = row_bytes,
				 .pitch_bytes = row_bytes };
}

static uint64_t rows_asked;

static uint64_t scattered_offset(const struct sim_job *job, uint64_t row)
{
	(void)job;
	rows_asked = MAX(rows_asked, row + 1);
	return row * 7 % 40 * 8192;
}

/* Places of rows are looked up ahead, across what is issued at a time: of the job's rows alone. */
TEST(jobs, place_of_no_row_behind_the_last_is_asked_for)
{
	struct sim_job job;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	for (uint64_t rows = 1; rows <= 40; rows += 13) {
		rows_asked = 0;
		job = core_read(0, 0, rows, 3000);
		job.row_offset = scattered_offset;
		EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
		EXPECT_EQ(job.moved_bytes, rows * 3000);
		EXPECT_EQ(rows_asked, rows);
	}
}

/* Two cores read the same line at once: the second finds it in the L2's tags, but its bytes come
 * when the first one's do, but for the burst. */
TEST(jobs, hit_on_a_line_that_is_on_its_way_waits_for_it)
{
	struct sim_job warm[2], first, second, later;
	struct sim_counters c;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	for (unsigned core = 0; core < 2; core++) {
		warm[core] = core_read(core, 0, 1, 128); /* translations */
		EXPECT_EQ(sim_execute(machine.sim, &warm[core]), SIM_OK);
	}
	first = core_read(0, 4096, 1, 128);
	second = core_read(1, 4096, 1, 128);
	sim_submit(machine.sim, &first);
	sim_submit(machine.sim, &second);
	sim_drain(machine.sim);
	EXPECT_NEAR(second.finish_ps, first.finish_ps, 10 * SIM_PS_PER_NS);
	later = core_read(1, 4096, 1, 128);
	EXPECT_EQ(sim_execute(machine.sim, &later), SIM_OK);
	EXPECT_LT(later.finish_ps - later.begin_ps + 20 * SIM_PS_PER_NS,
		  second.finish_ps - second.begin_ps);
	sim_get_counters(machine.sim, 0, &c);
	EXPECT_EQ(c.l2_conflicts, 1u);
}

/* A core that has nothing queued is still at the rows of its last copy: the next begins behind
 * them, though it comes when an earlier one is complete. */
static struct sim_job resubmitted;

static void submit_another(struct sim_job *job)
{
	(void)job;
	sim_submit(machine.sim, &resubmitted);
}

TEST(jobs, core_issues_one_copy_after_the_other)
{
	uint64_t copy_ps = 64 * machine.profile.core_row_ps;
	struct sim_job job[2] = { core_read(0, 0, 64, 128), core_read(0, 8192, 64, 128) };

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	resubmitted = core_read(0, 16384, 64, 128);
	job[0].done = submit_another;
	sim_submit(machine.sim, &job[0]);
	sim_submit(machine.sim, &job[1]);
	sim_drain(machine.sim);
	EXPECT_EQ(job[1].begin_ps, job[0].begin_ps + copy_ps);
	EXPECT_GE(resubmitted.begin_ps, job[1].begin_ps + copy_ps);
}

/* The eleventh row goes on into a page that is not there; the ten before it hit the TLB. */
static uint64_t offset_around_a_hole(const struct sim_job *job, uint64_t row)
{
	(void)job;
	return row < 10 ? row * 4096 : row == 10 ? 11 * 4096 - 256 : (row + 2) * 4096;
}

TEST(jobs, fault_in_the_middle_of_rows_that_go_together)
{
	struct sim_job warm = core_read(0, 0, 10, 512), job = core_read(0, 0, 20, 512);

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 12, 11, PT_WRITE);
	machine_map(0, MACHINE_VA + 12 * 4096, SIM_PA(0, 12 * 4096), 12, 10, PT_WRITE);
	warm.pitch_bytes = 4096;
	EXPECT_EQ(sim_execute(machine.sim, &warm), SIM_OK);
	job.row_offset = offset_around_a_hole;
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_FAULT_TRANSLATION);
	EXPECT_EQ(job.moved_bytes, 10 * 512 + 256u);
	EXPECT_EQ(job.fault_va, MACHINE_VA + 11 * 4096);
}

TEST(jobs, rows_that_go_together_all_count)
{
	struct sim_counters c;
	struct sim_job job;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	for (uint64_t row_bytes = 32; row_bytes <= 128; row_bytes *= 2) {
		for (unsigned time = 0; time < 2; time++) {
			job = core_read(0, 0, 64, row_bytes);
			EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
			EXPECT_EQ(job.moved_bytes, 64 * row_bytes);
			EXPECT_GE(job.finish_ps - job.begin_ps, 64 * machine.profile.core_row_ps);
		}
	}
	sim_get_counters(machine.sim, 0, &c);
	EXPECT_EQ(c.tlb_requests, 3 * 2 * 64u);
}

/* The second row parts a block that the first and the third know in pairs of lines: the third,
 * which goes with it, leaves both of its lines there nevertheless. */
static uint64_t offset_across_pairs(const struct sim_job *job, uint64_t row)
{
	(void)job;
	return row == 2 ? 512 : row * 128;
}

TEST(jobs, row_behind_one_that_parts_a_block_brings_all_its_lines)
{
	struct sim_job pairs = core_read(0, 0, 2, 256), job = core_read(0, 0, 3, 256);
	struct sim_job second_line = core_read(0, 640, 1, 128);
	struct sim_counters before, c;

	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	EXPECT_EQ(sim_execute(machine.sim, &pairs), SIM_OK);
	job.row_offset = offset_across_pairs;
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	sim_get_counters(machine.sim, 0, &before);
	EXPECT_EQ(sim_execute(machine.sim, &second_line), SIM_OK);
	sim_get_counters(machine.sim, 0, &c);
	EXPECT_EQ(c.l2_read_hits, before.l2_read_hits + 1);
}
