/* SPDX-License-Identifier: Apache-2.0
 *
 * Death at every point: a process does one thing and kills itself at its first store into the
 * node's records, then another one does the same and dies at its second, and so on until the thing
 * is done. After each death a witness counts everything. Built with NODE_STEPS. What it cannot
 * visit, deaths between stores, leaves the same records as the stores around it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/test.h"
#include "node-actors.h"

static struct order node;
static struct actor witness;
static struct reply baseline[2];
static uint32_t open_share;
static char open_name[65];

static void set_steps(const struct order *order, struct reply *reply)
{
	(void)reply;
	steps_set(order->value);
}

static void get_steps(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = (int64_t)steps_done();
}

/* ---- what the victim does before, and what it dies of ---- */

static void must(struct reply *reply, order_fn fn, struct order order)
{
	fn(&order, reply);
	if (reply->value != 0)
		abort();
}

#define MUST(fn, ...) must(reply, (fn), (struct order){ .none = 0, ##__VA_ARGS__ })

static void prepare_nothing(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
}

/* The giant that is never whole is full, but for ten single frames. */
static void prepare_pieces(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_usage); /* frame caches are empty */
	for (unsigned i = 0; i < 20; i++)
		MUST(do_create, .frames = 1, .block = i);
	MUST(do_create, .frames = 228, .block = 20);
	for (unsigned i = 0; i < 20; i += 2)
		MUST(do_drop, .block = i);
}

static void prepare_block(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 4);
}

static void prepare_cache(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 4);
	MUST(do_create, .frames = 5, .block = 1);
	MUST(do_drop);
	MUST(do_drop, .block = 1);
}

static void prepare_touched(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 4);
	MUST(do_write, .value = 5);
}

static uint32_t own_share;
static char own_name[65];

static void prepare_share(const struct order *order, struct reply *reply)
{
	prepare_touched(order, reply);
	MUST(do_export);
	own_share = (uint32_t)reply->usage.total_frames;
	MUST(do_allow, .share = own_share, .pid = 1);
	MUST(do_allow, .share = own_share, .pid = 2);
}

static void prepare_name(const struct order *order, struct reply *reply)
{
	struct order allow = { .pid = 3 };

	prepare_share(order, reply);
	MUST(do_name, .frames = 1);
	memcpy(own_name, reply->text, sizeof(own_name));
	memcpy(allow.name, own_name, sizeof(own_name));
	must(reply, do_name_allow, allow);
}

static void prepare_import(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_import, .share = open_share);
}

static void prepare_all(const struct order *order, struct reply *reply)
{
	prepare_name(order, reply);
	MUST(do_import, .share = open_share, .block = 1);
	MUST(do_create, .frames = 512, .giant = true, .block = 2);
	MUST(do_create, .frames = 7, .memory = 1, .block = 3);
	MUST(do_write, .block = 3, .value = 9);
	MUST(do_table, .block = 4);
}

static void act_call(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_usage);
}

static void prepare_fd(const struct order *order, struct reply *reply)
{
	prepare_touched(order, reply);
	MUST(do_fd_export);
}

static void prepare_kept(const struct order *order, struct reply *reply)
{
	prepare_fd(order, reply);
	MUST(do_drop);
}

static void prepare_closed(const struct order *order, struct reply *reply)
{
	prepare_kept(order, reply);
	MUST(do_fd_close);
}

static void act_fd(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_fd_export);
	MUST(do_fd_import, .block = 1);
}

static void act_fd_import(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_fd_import);
}

static void act_create(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 16, .block = 30);
}

static void act_pieces(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 10, .block = 30);
	if (actor_self.blocks[30]->extent_count != 10)
		abort();
}

static void act_giant(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 1024, .giant = true, .block = 30);
}

static void act_table(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_table, .block = 30);
}

static void act_drop(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_drop);
}

static void act_export(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_export);
}

static void act_allow(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_allow, .share = own_share, .pid = 3);
	MUST(do_allow, .share = own_share, .pid = 1);
}

static void act_create_again(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_create, .frames = 5);
	MUST(do_drop);
	MUST(do_create, .frames = 5);
}

static void act_import(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_import, .share = open_share);
}

static void act_name(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_name, .frames = 1);
}

static void act_name_destroy(const struct order *order, struct reply *reply)
{
	struct order destroy = { .none = 0 };

	(void)order;
	memcpy(destroy.name, own_name, sizeof(own_name));
	must(reply, do_name_destroy, destroy);
}

static void act_name_import(const struct order *order, struct reply *reply)
{
	struct order import = { .none = 0 };

	(void)order;
	memcpy(import.name, open_name, sizeof(open_name));
	must(reply, do_name_import, import);
}

static void act_leave(const struct order *order, struct reply *reply)
{
	(void)order;
	MUST(do_leave);
}

static void act_join(const struct order *order, struct reply *reply)
{
	(void)order;
	must(reply, do_join, node);
}

static void act_leave_and_join(const struct order *order, struct reply *reply)
{
	act_leave(order, reply);
	act_join(order, reply);
}

/* ---- the witness ---- */

static void begin(const char *test)
{
	struct reply reply;
	struct order order = { .frames = 1, .block = 1 };

	node = small_node(test, 2560);
	witness = actor_start();
	ASSERT_STREQ(actor_do(&witness, do_join, node).text, "");
	ASSERT_EQ(ACT(&witness, do_create, .frames = 2).value, 0);
	ASSERT_EQ(ACT(&witness, do_create, .frames = 2, .block = 1).value, 0);
	ASSERT_EQ(ACT(&witness, do_write, .value = 42).value, 0);
	reply = ACT(&witness, do_export);
	open_share = (uint32_t)reply.usage.total_frames;
	ASSERT_EQ(ACT(&witness, do_open, .share = open_share).value, 0);
	reply = actor_do(&witness, do_name, order);
	memcpy(open_name, reply.text, sizeof(open_name));
	memcpy(order.name, reply.text, sizeof(order.name));
	ASSERT_EQ(actor_do(&witness, do_name_open, order).value, 0);
	for (unsigned m = 0; m < 2; m++)
		baseline[m] = ACT(&witness, do_usage, .memory = m);
}

/* All that the dead one had is back, and the node works. */
static void look(void)
{
	struct reply reply = ACT(&witness, do_usage, .memory = 0);

	EXPECT_EQ(reply.usage.free_frames, baseline[0].usage.free_frames);
	EXPECT_EQ(reply.usage.free_giants, baseline[0].usage.free_giants);
	reply = ACT(&witness, do_usage, .memory = 1);
	EXPECT_EQ(reply.usage.free_frames, baseline[1].usage.free_frames);
	reply = ACT(&witness, do_audit);
	EXPECT_STREQ(reply.text, "");
	EXPECT_EQ(ACT(&witness, do_create, .frames = 1000, .block = 9).value, 0);
	EXPECT_EQ(ACT(&witness, do_read, .block = 9).value, 0);
	EXPECT_EQ(ACT(&witness, do_drop, .block = 9).value, 0);
	EXPECT_EQ(ACT(&witness, do_read).value, 42);
	EXPECT_EQ(ACT(&witness, do_create, .frames = 3, .block = 9).value, 0);
	EXPECT_EQ(ACT(&witness, do_drop, .block = 9).value, 0); /* now in its frame cache */
}

static struct actor start_victim(bool joined)
{
	struct actor victim = actor_start();

	if (joined)
		EXPECT_STREQ(actor_do(&victim, do_join, node).text, "");
	return victim;
}

/* The victim acts, and dies at its n-th store. True: it did not come to that. */
static bool die(struct actor *victim, order_fn act, uint64_t n)
{
	actor_do(victim, set_steps, (struct order){ .value = n });
	if (actor_do(victim, act, node).value != ACTOR_DIED) {
		EXPECT_LT(ACT(victim, get_steps).value, (int64_t)n);
		return true;
	}
	EXPECT_EQ(WTERMSIG(actor_wait(victim)), SIGKILL);
	return false;
}

/* True: somebody on this machine listed all nodes, and did here what the victim was to do. */
static bool again(bool *done, uint64_t *n, uint64_t least, unsigned *disturbed)
{
	if (!*done || *n >= least || (*disturbed)++ >= 20)
		return false;
	*done = false;
	--*n;
	return true;
}

struct death {
	const char *label;
	order_fn prepare, act;
	unsigned least; /* stores that must have been visited, or the test is not what it seems */
};
static const struct death deaths[] = {
	{ "create", prepare_nothing, act_create, 14 },
	{ "create of pieces", prepare_pieces, act_pieces, 60 },
	{ "create of giants", prepare_nothing, act_giant, 30 },
	{ "table frame", prepare_nothing, act_table, 10 },
	{ "drop into the frame cache", prepare_block, act_drop, 4 },
	{ "create from the frame cache", prepare_cache, act_create_again, 9 },
	{ "create beside the frame cache", prepare_cache, act_giant, 40 },
	{ "emptying frame caches", prepare_cache, act_call, 20 },
	{ "drop of touched", prepare_touched, act_drop, 7 },
	{ "drop of shared", prepare_share, act_drop, 7 },
	{ "drop of imported", prepare_import, act_drop, 2 },
	{ "export", prepare_touched, act_export, 9 },
	{ "allow", prepare_share, act_allow, 8 },
	{ "import", prepare_nothing, act_import, 2 },
	{ "name", prepare_touched, act_name, 12 },
	{ "name destroy", prepare_name, act_name_destroy, 4 },
	{ "name import", prepare_nothing, act_name_import, 2 },
	{ "fd", prepare_touched, act_fd, 6 },
	{ "fd import", prepare_kept, act_fd_import, 3 },
	{ "drop of fd", prepare_fd, act_drop, 3 },
	{ "sweep of fd", prepare_closed, act_call, 9 },
	{ "leave", prepare_all, act_leave, 25 },
	{ "leave and join", prepare_all, act_leave_and_join, 60 },
};

TEST_EACH(node_death, in_the_middle_of, deaths, label)
{
	const struct death *death = param;
	unsigned disturbed = 0;
	bool done = false;
	uint64_t n;

	ASSERT_NO_FATAL(begin("steps"));
	for (n = 1; !done && n < 5000 && !harness_has_failed(); n++) {
		NOTE("store %llu", (unsigned long long)n);
		struct actor victim = start_victim(true);

		EXPECT_NE(ACT(&victim, death->prepare).value, ACTOR_DIED);
		done = die(&victim, death->act, n);
		if (done)
			EXPECT_TRUE(actor_end(&victim));
		if (again(&done, &n, death->least, &disturbed))
			continue;
		look();
	}
	EXPECT_TRUE(done);
	EXPECT_GE(n, (uint64_t)death->least);
	EXPECT_TRUE(actor_end(&witness));
}

TEST(node_death, in_the_middle_of_joining)
{
	bool done = false;

	ASSERT_NO_FATAL(begin("steps-join"));
	for (uint64_t n = 1; !done && n < 1000 && !harness_has_failed(); n++) {
		NOTE("store %llu", (unsigned long long)n);
		struct actor victim = start_victim(false);

		done = die(&victim, act_join, n);
		if (done)
			EXPECT_TRUE(actor_end(&victim));
		look();
	}
	EXPECT_TRUE(done);
	EXPECT_TRUE(actor_end(&witness));
}

TEST(node_death, in_the_middle_of_making_the_node)
{
	bool done = false;
	uint64_t n;

	node = small_node("steps-make", 64);
	for (n = 1; !done && n < 1000 && !harness_has_failed(); n++) {
		NOTE("store %llu", (unsigned long long)n);
		struct actor victim = start_victim(false), next = actor_start();

		done = die(&victim, act_join, n);
		EXPECT_STREQ(actor_do(&next, do_join, node).text, "");
		EXPECT_EQ(ACT(&next, do_create, .frames = 28).value, 0);
		EXPECT_EQ(ACT(&next, do_audit).value, 0);
		EXPECT_TRUE(actor_end(&next));
		if (done)
			EXPECT_TRUE(actor_end(&victim));
	}
	EXPECT_TRUE(done);
	EXPECT_GT(n, 12u);
}

/* The first victim dies holding much; the second one dies while it gives that back. */
static void die_in_recovery(order_fn prepare, order_fn first_act, uint64_t first_n, unsigned least)
{
	unsigned disturbed = 0;
	bool done = false;
	uint64_t n;

	for (n = 1; !done && n < 20000 && !harness_has_failed(); n++) {
		NOTE("store %llu", (unsigned long long)n);
		struct actor first = start_victim(true), second = start_victim(true);

		EXPECT_NE(ACT(&first, prepare).value, ACTOR_DIED);
		EXPECT_NE(ACT(&second, prepare).value, ACTOR_DIED);
		if (first_act)
			EXPECT_FALSE(die(&first, first_act, first_n));
		else
			actor_kill(&first);
		done = die(&second, act_call, n);
		if (again(&done, &n, least, &disturbed))
			actor_kill(&second);
		if (done)
			EXPECT_TRUE(actor_end(&second));
		look();
	}
	EXPECT_TRUE(done);
	EXPECT_GE(n, (uint64_t)least);
}

TEST(node_death, in_the_middle_of_recovery)
{
	ASSERT_NO_FATAL(begin("steps-recovery"));
	die_in_recovery(prepare_all, NULL, 0, 40);
	EXPECT_TRUE(actor_end(&witness));
}

TEST(node_death, in_the_middle_of_recovery_with_the_lock_taken_over)
{
	ASSERT_NO_FATAL(begin("steps-takeover"));
	die_in_recovery(prepare_all, act_create, 8, 80);
	EXPECT_TRUE(actor_end(&witness));
}

TEST(node_death, exporter_and_importer_die_together)
{
	struct actor a, b;
	siginfo_t info;
	uint32_t share;

	ASSERT_NO_FATAL(begin("both"));
	for (unsigned i = 0; i < 12; i++) {
		a = start_victim(true);
		b = start_victim(true);
		ASSERT_EQ(ACT(&a, do_create, .frames = 9).value, 0);
		ASSERT_EQ(ACT(&a, do_write, .value = i).value, 0);
		share = (uint32_t)ACT(&a, do_export).usage.total_frames;
		ASSERT_EQ(ACT(&a, do_open, .share = share).value, 0);
		ASSERT_EQ(ACT(&b, do_import, .share = share).value, 0);
		kill(a.pid, SIGKILL);
		kill(b.pid, SIGKILL);
		waitid(P_PID, (id_t)a.pid, &info, WEXITED | WNOWAIT); /* dead, and not buried */
		waitid(P_PID, (id_t)b.pid, &info, WEXITED | WNOWAIT);
		if (i % 2)
			actor_wait(&a);
		look();
		if (i % 2 == 0)
			actor_wait(&a);
		actor_wait(&b);
	}
	EXPECT_TRUE(actor_end(&witness));
}
