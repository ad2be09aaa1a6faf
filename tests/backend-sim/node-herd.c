/* SPDX-License-Identifier: Apache-2.0
 *
 * A herd: as many processes as a node can have, and half as many again that are killed while they
 * join, all released at once. Built with a small table of members; NODE_MEMBERS in the compiler's
 * arguments makes it as large as the product's.
 */
#include "backend-sim/node/records.h"
#include "node-actors.h"

#define PLACES  (NODE_MEMBERS - 1) /* the last one is for whoever buries the dead */
#define STAYING (PLACES - 2)       /* beside the two actors */
#define KILLED  (PLACES / 2)
#include "harness/herd.h"

static struct order node;

/* Until all victims are buried they may have the places of some who stay. */
static const char *join(void)
{
	static struct reply reply;
	bool last;

	do {
		last = herd_now(&board->buried);
		reply.value = 0;
		do_join(&node, &reply);
	} while (reply.value && !last);
	return reply.value ? reply.text : NULL;
}

static void create_and_drop(const struct order *order, struct reply *reply)
{
	for (unsigned i = 0; i < order->value && reply->value == 0; i++) {
		do_create(order, reply);
		do_drop(order, reply);
	}
}

TEST(node_herd, joins_while_some_are_killed_up_to_the_limit)
{
	struct actor a = actor_start(), b = actor_start(), late = actor_start(),
		     later = actor_start();
	struct reply reply;
	char limit[32];

	node = small_node("herd", 256);
	herd_run(join);

	EXPECT_STREQ(actor_do(&late, do_join, node).text, ""); /* and buries the last ones */
	EXPECT_ACT(0, &late, do_leave);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_ACT(0, &a, create_and_drop, .frames = 3, .value = 100);
	EXPECT_ACT(0, &b, do_create, .frames = 5); /* as one of many: beyond the first 64 */
	EXPECT_FREE(124 - 5, &a);
	reply = actor_do(&late, do_join, node);
	EXPECT_EQ(reply.value, 1);
	snprintf(limit, sizeof(limit), "%u processes use it", PLACES);
	EXPECT_CONTAINS(reply.text, limit);
	EXPECT_CONTAINS(reply.text, "which is the limit");

	actor_kill(&b); /* who is next buries it, and has its place */
	EXPECT_STREQ(actor_do(&late, do_join, node).text, "");
	reply = actor_do(&later, do_join, node);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, limit);

	herd_kill();
	herd_bury(herd, STAYING);
	EXPECT_STREQ(actor_do(&later, do_join, node).text, ""); /* nobody has called since */
	EXPECT_FREE(124, &later);
	EXPECT_ACT(0, &later, do_audit);
	EXPECT_TRUE(actor_end(&later));
	EXPECT_TRUE(actor_end(&late));
	EXPECT_TRUE(actor_end(&a));
}
