/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that create, write, share, import and free as fast as they can, and are killed at
 * moments that nobody chose. After each kill the survivors pause and say what they hold; a witness
 * counts, and finds that and nothing else. NODE_TEST_KILLS says how many are killed (default 150).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/records.h"
#include "harness/test.h"
#include "node-actors.h"

#define WORKERS 4
#define HELD    48
#define SHARES  64

struct held {
	struct node_block *block;
	uint64_t stamp; /* at both ends of each extent */
	uint32_t share;
	bool reserved;
};

/* Shared by all processes of the test. */
struct board {
	uint32_t pause;
	uint32_t shares[SHARES];
	char names[SHARES][72];
	int pids[WORKERS];
	struct {
		uint32_t count;
		uint32_t ids[HELD], frames[HELD];
		bool reserved[HELD];
		uint8_t memory[HELD];
	} workers[WORKERS];
};
static struct board *board;
static struct order node;

/* ---- a worker ---- */

static struct held held[HELD];
static unsigned self, seed;

static unsigned chance(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static uint64_t *end_of(const struct node_block *block, unsigned extent, bool last)
{
	const struct node_extent *e = &block->extents[extent];
	uint64_t at = e->frame * NODE_FRAME_BYTES + (last ? e->count * NODE_FRAME_BYTES - 8 : 0);

	return (uint64_t *)(node_memory(actor_self.node)->base[block->memory] + at);
}

static void stamp(struct held *h, uint64_t value)
{
	node_block_touch(actor_self.node, h->block);
	for (unsigned i = 0; i < h->block->extent_count; i++)
		for (unsigned last = 0; last < 2; last++)
			__atomic_store_n(end_of(h->block, i, last), value, __ATOMIC_RELAXED);
	h->stamp = value;
}

static bool check(const struct held *h, struct reply *reply, const char *what)
{
	for (unsigned i = 0; i < h->block->extent_count; i++)
		for (unsigned last = 0; last < 2; last++) {
			uint64_t is = __atomic_load_n(end_of(h->block, i, last), __ATOMIC_RELAXED);

			if (is == h->stamp)
				continue;
			reply->value = 1;
			snprintf(reply->text, sizeof(reply->text),
				 "%s: block %u of memory %u has %llx, not %llx", what, h->block->id,
				 h->block->memory, (unsigned long long)is,
				 (unsigned long long)h->stamp);
			return false;
		}
	return true;
}

static bool work_create(struct held *h, struct reply *reply)
{
	bool giant = chance(40) == 0, table = !giant && chance(20) == 0;
	uint64_t frames = giant ? NODE_GIANT_FRAMES : table ? 1 : 1 + chance(12);
	unsigned memory = chance(2);
	drvError_t error =
		table ? node_table_frame(actor_self.node, memory, &h->block)
		      : node_block_create(actor_self.node, memory, frames, giant, &h->block);

	if (error == DRV_ERROR_OUT_OF_MEMORY)
		return true;
	*h = (struct held){ .block = h->block, .reserved = table };
	if (error != DRV_ERROR_NONE) {
		h->block = NULL;
		reply->value = error;
		snprintf(reply->text, sizeof(reply->text), "create: %s", npu_message());
		return false;
	}
	if (!check(h, reply, "new"))
		return false;
	if (chance(3))
		stamp(h, (uint64_t)self << 32 | h->block->generation);
	return true;
}

static bool work_import(struct held *h, struct reply *reply)
{
	uint32_t share = __atomic_load_n(&board->shares[chance(SHARES)], __ATOMIC_ACQUIRE);

	if (node_share_import(actor_self.node, share, 0, &h->block) != DRV_ERROR_NONE)
		return true;
	*h = (struct held){ .block = h->block, .stamp = share };
	return check(h, reply, "import");
}

static void work_export(struct held *h)
{
	drvError_t error;

	if (h->reserved || h->block->imported ||
	    node_share_export(actor_self.node, h->block, 0, &h->share) != DRV_ERROR_NONE)
		return;
	stamp(h, h->share);
	if (chance(2))
		error = node_share_set_open(actor_self.node, h->share, NULL);
	else
		error = node_share_allow(actor_self.node, h->share, NULL, 0, board->pids, WORKERS);
	if (error == DRV_ERROR_NONE)
		__atomic_store_n(&board->shares[chance(SHARES)], h->share, __ATOMIC_RELEASE);
}

static void work_name(struct held *h)
{
	char name[65];

	if (h->reserved || node_name_create(actor_self.node, h->block, 0, NODE_FRAME_BYTES, 0,
					    name) != DRV_ERROR_NONE)
		return;
	node_share_allow(actor_self.node, 0, name, 0, board->pids, WORKERS);
	if (chance(4))
		node_name_destroy(actor_self.node, name);
}

static bool work(struct reply *reply)
{
	struct held *h = &held[chance(HELD)];
	struct node_usage usage;

	if (!h->block)
		return chance(3) ? work_create(h, reply) : work_import(h, reply);
	switch (chance(5)) {
	case 0:
		work_export(h);
		return true;
	case 1:
		work_name(h);
		return true;
	case 2:
		node_usage(actor_self.node, chance(2), &usage);
		return true;
	default:
		if (!check(h, reply, "held"))
			return false;
		node_block_drop(actor_self.node, h->block);
		h->block = NULL;
		return true;
	}
}

static void do_work(const struct order *order, struct reply *reply)
{
	self = order->block;
	seed = (unsigned)order->value;
	steps_slow(self % 2 ? 97 : 0);
	while (!__atomic_load_n(&board->pause, __ATOMIC_ACQUIRE))
		if (!work(reply))
			return;
}

static void do_tell(const struct order *order, struct reply *reply)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HELD; i++) {
		if (!held[i].block)
			continue;
		if (!check(&held[i], reply, "at the pause"))
			return;
		board->workers[order->block].ids[n] = held[i].block->id;
		board->workers[order->block].frames[n] = (uint32_t)held[i].block->frames;
		board->workers[order->block].memory[n] = (uint8_t)held[i].block->memory;
		board->workers[order->block].reserved[n++] = held[i].reserved;
	}
	board->workers[order->block].count = n;
}

/* How many blocks live, and are not just being cleaned. */
static void do_count(const struct order *order, struct reply *reply)
{
	struct block_place place;
	uint32_t id = NODE_NONE;

	(void)order;
	if (node_enter(actor_self.node) != DRV_ERROR_NONE)
		return;
	while (block_next(actor_self.node, &id, &place))
		reply->value += !place.record->closing;
	node_unlock(actor_self.node);
}

/* ---- the rounds ---- */

static struct actor workers[WORKERS], witness;

static void start_worker(unsigned i)
{
	workers[i] = actor_start();
	EXPECT_STREQ(actor_do(&workers[i], do_join, node).text, "");
	board->pids[i] = workers[i].pid;
	board->workers[i].count = 0;
}

/* What the survivors say they hold is what there is. */
static void compare(void)
{
	uint64_t frames[2] = { 0, 0 };
	static uint32_t seen[WORKERS * HELD];
	unsigned blocks = 0;
	struct reply reply;

	for (unsigned w = 0; w < WORKERS; w++)
		for (unsigned i = 0; i < board->workers[w].count; i++) {
			bool known = false;

			for (unsigned s = 0; s < blocks && !known; s++)
				known = seen[s] == board->workers[w].ids[i];
			if (known)
				continue;
			seen[blocks++] = board->workers[w].ids[i];
			if (!board->workers[w].reserved[i])
				frames[board->workers[w].memory[i]] += board->workers[w].frames[i];
		}
	for (unsigned m = 0; m < 2; m++) {
		reply = ACT(&witness, do_usage, .memory = m);
		ASSERT_EQ(reply.usage.free_frames, reply.usage.total_frames - frames[m]);
	}
	ASSERT_EQ(ACT(&witness, do_count).value, (int64_t)blocks);
	reply = ACT(&witness, do_audit);
	ASSERT_STREQ(reply.text, "");
}

static void one_round(unsigned round, unsigned *random)
{
	unsigned kills = 1 + (rand_r(random) % 8 == 0), first = (unsigned)rand_r(random) % WORKERS,
		 stopped = (unsigned)rand_r(random) % WORKERS;
	bool bury_late = rand_r(random) % 2;
	siginfo_t info;

	__atomic_store_n(&board->pause, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < WORKERS; i++)
		actor_tell(&workers[i], do_work,
			   &(struct order){ .block = i, .value = round * 10 + i });
	usleep((useconds_t)rand_r(random) % 3000);
	kill(workers[stopped].pid, SIGSTOP); /* perhaps with the lock, perhaps to be killed so */
	usleep((useconds_t)rand_r(random) % 1000);
	for (unsigned k = 0; k < kills; k++)
		kill(workers[(first + k) % WORKERS].pid, SIGKILL);
	usleep((useconds_t)rand_r(random) % 1000); /* the others meet what the dead left */
	for (unsigned k = 0; k < kills; k++)
		waitid(P_PID, (id_t)workers[(first + k) % WORKERS].pid, &info,
		       WEXITED | (bury_late ? WNOWAIT : 0));
	kill(workers[stopped].pid, SIGCONT);
	__atomic_store_n(&board->pause, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < WORKERS; i++) {
		struct reply reply;

		if ((i + WORKERS - first) % WORKERS < kills) {
			board->workers[i].count = 0;
			continue;
		}
		reply = actor_hear(&workers[i]);
		ASSERT_STREQ(reply.text, "");
		reply = ACT(&workers[i], do_tell, .block = i);
		ASSERT_STREQ(reply.text, "");
	}
	ASSERT_NO_FATAL(compare());
	for (unsigned k = 0; k < kills; k++) {
		actor_wait(&workers[(first + k) % WORKERS]);
		start_worker((first + k) % WORKERS);
	}
}

TEST(node_kills, nothing_is_lost_and_nobody_is_blocked)
{
	const char *asked = getenv("NODE_TEST_KILLS");
	unsigned rounds = asked ? (unsigned)atoi(asked) : 150, random = 4711;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_TRUE(board != MAP_FAILED);
	node = small_node("kills", 3072);
	node.config.usable_frames = 1500;
	witness = actor_start();
	EXPECT_STREQ(actor_do(&witness, do_join, node).text, "");
	for (unsigned i = 0; i < WORKERS; i++)
		start_worker(i);
	for (unsigned round = 0; round < rounds; round++) {
		NOTE("round %u", round);
		ASSERT_NO_FATAL(one_round(round, &random));
	}
	for (unsigned i = 0; i < WORKERS; i++)
		actor_kill(&workers[i]);
	EXPECT_EQ(ACT(&witness, do_usage, .memory = 0).usage.free_frames, 1500u);
	EXPECT_EQ(ACT(&witness, do_usage, .memory = 1).usage.free_frames, 1500u);
	EXPECT_EQ(ACT(&witness, do_count).value, 0);
	EXPECT_EQ(ACT(&witness, do_create, .frames = 1500).value, 0);
	EXPECT_EQ(ACT(&witness, do_read).value, 0);
	EXPECT_TRUE(actor_end(&witness));
}

/* ---- who owns a frame -------------------------------------------------------------------------
 */

#define CLAIMERS      3
#define CLAIM_THREADS 2
#define CLAIM_FRAMES  28
#define CLAIM_ROUNDS  30000

struct claims {
	int owner[CLAIM_FRAMES];
};
static struct claims *claims;

/* False: another process believes to own one of the frames. */
static bool claim(const struct node_block *block, int from, int to)
{
	for (unsigned i = 0; i < block->extent_count; i++)
		for (uint64_t f = 0; f < block->extents[i].count; f++) {
			int expected = from;

			if (!__atomic_compare_exchange_n(
				    &claims->owner[block->extents[i].frame + f], &expected, to,
				    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return false;
		}
	return true;
}

struct claimer {
	pthread_t thread;
	unsigned number, seed, asks_one_in;
	int wrong;
};

/* Creates and drops, mostly through the frame cache; others empty it meanwhile, by asking or by
 * needing it. */
static void *claim_and_drop(void *arg)
{
	struct claimer *claimer = arg;
	struct node_block *blocks[5] = { NULL };
	struct node_usage usage;
	int me = (int)claimer->number;

	for (unsigned round = 0; round < CLAIM_ROUNDS && !claimer->wrong; round++) {
		struct node_block **slot = &blocks[rand_r(&claimer->seed) % 5];

		if (*slot) {
			claimer->wrong += !claim(*slot, me, 0);
			node_block_drop(actor_self.node, *slot);
			*slot = NULL;
		} else if (node_block_create(actor_self.node, 0, 1 + rand_r(&claimer->seed) % 3,
					     false, slot) == DRV_ERROR_NONE) {
			claimer->wrong += !claim(*slot, 0, me);
		} else {
			*slot = NULL;
		}
		if (rand_r(&claimer->seed) % claimer->asks_one_in == 0)
			node_usage(actor_self.node, 0, &usage);
	}
	for (unsigned i = 0; i < 5; i++) {
		if (blocks[i])
			claimer->wrong += !claim(blocks[i], me, 0);
		node_block_drop(actor_self.node, blocks[i]);
	}
	return NULL;
}

static void do_claim(const struct order *order, struct reply *reply)
{
	struct claimer claimers[CLAIM_THREADS];

	for (unsigned i = 0; i < CLAIM_THREADS; i++) {
		unsigned number = order->block * CLAIM_THREADS + i + 1;

		claimers[i] = (struct claimer){ .number = number,
						.seed = number,
						.asks_one_in = order->block ? 20 : 2000 };
		if (pthread_create(&claimers[i].thread, NULL, claim_and_drop, &claimers[i]))
			abort();
	}
	for (unsigned i = 0; i < CLAIM_THREADS; i++) {
		pthread_join(claimers[i].thread, NULL);
		reply->value += claimers[i].wrong;
	}
}

TEST(node_kills, no_frame_has_two_owners)
{
	struct actor actors[CLAIMERS];
	struct order order = { .none = 0 };

	claims = mmap(NULL, sizeof(*claims), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ASSERT_TRUE(claims != MAP_FAILED);
	node = small_node("claims", 64);
	for (unsigned i = 0; i < CLAIMERS; i++) {
		actors[i] = actor_start();
		EXPECT_STREQ(actor_do(&actors[i], do_join, node).text, "");
	}
	for (order.block = 0; order.block < CLAIMERS; order.block++)
		actor_tell(&actors[order.block], do_claim, &order);
	for (unsigned i = 0; i < CLAIMERS; i++)
		EXPECT_EQ(actor_hear(&actors[i]).value, 0);
	EXPECT_EQ(ACT(&actors[0], do_usage).usage.free_frames, (uint64_t)CLAIM_FRAMES);
	EXPECT_STREQ(ACT(&actors[1], do_audit).text, "");
	for (unsigned i = 0; i < CLAIMERS; i++)
		EXPECT_TRUE(actor_end(&actors[i]));
	munmap(claims, sizeof(*claims));
}
