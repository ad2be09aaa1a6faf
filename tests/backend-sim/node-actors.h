/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes for the tests of the node: children that do what they are told, one order at a time,
 * and may be killed at any moment. The test program itself joins no node and starts no thread, so
 * that it can fork as often as it likes.
 */
#ifndef NPUSIM_TESTS_NODE_ACTORS_H
#define NPUSIM_TESTS_NODE_ACTORS_H

#include "backend-sim/node/node.h"

#define ACTOR_BLOCKS 64
#define ACTOR_DIED   INT64_MIN
#define ACTOR_SILENT (INT64_MIN + 1) /* a minute long */

struct actor {
	pid_t pid;
	int fd;
};

/* What an actor is told; each order reads what it needs. */
struct order {
	char none; /* so that an order may be empty */
	struct node_config config;
	char node[64];
	char name[65];  /* of a named range */
	unsigned block; /* index of the actor's blocks */
	unsigned memory, device;
	uint64_t frames, frame, value;
	bool giant;
	uint32_t share;
	int pid;
};

struct reply {
	int64_t value;   /* an error code, or what the order asks for; ACTOR_DIED */
	char text[2048]; /* the message of a failure, a name */
	struct node_usage usage;
	struct node_share_info info;
};

/* Runs in the actor. */
typedef void (*order_fn)(const struct order *order, struct reply *reply);

struct actor actor_start(void);
/* Ends it in good order; false if it died of something. */
bool actor_end(struct actor *actor);
void actor_kill(struct actor *actor);
/* Waits for a death that is due. Returns what waitpid() says. */
int actor_wait(struct actor *actor);

struct reply actor_do(struct actor *actor, order_fn order, struct order what);
/* The same in two parts, for several actors at once. */
void actor_tell(struct actor *actor, order_fn order, const struct order *what);
struct reply actor_hear(struct actor *actor);

/* ACT(&a, do_create, .memory = 1, .frames = 3) */
#define ACT(who, what, ...) actor_do((who), (what), (struct order){ .none = 0, ##__VA_ARGS__ })
/* The code that it answers; and free frames of memory 0, as an actor sees them. */
#define EXPECT_ACT(code, ...)                             \
	do {                                              \
		struct reply reply_ = ACT(__VA_ARGS__);   \
		NOTE("%s", reply_.text);                  \
		EXPECT_EQ(reply_.value, (int64_t)(code)); \
	} while (0)
#define EXPECT_FREE(frames, actor) \
	EXPECT_EQ(ACT(actor, do_usage).usage.free_frames, (uint64_t)(frames))

/* The orders. Codes are drvError_t, or 0 and 1. */
void do_join(const struct order *order,
	     struct reply *reply); /* config, node; then reply->usage of memory 0 */
void do_leave(const struct order *order, struct reply *reply);
void do_create(const struct order *order, struct reply *reply); /* block, memory, frames, giant */
void do_table(const struct order *order, struct reply *reply);  /* block, memory */
void do_drop(const struct order *order, struct reply *reply);   /* block */
void do_write(const struct order *order,
	      struct reply *reply); /* block, value: at both ends of each extent */
void do_read(const struct order *order,
	     struct reply *reply); /* block: the value if all are equal, else -1 */
void do_usage(const struct order *order, struct reply *reply); /* memory */
void do_pages(const struct order *order, struct reply *reply); /* how many memory 0 has in use */
void do_export(const struct order *order,
	       struct reply *reply); /* block, device: the id in usage.total_frames */
void do_allow(const struct order *order, struct reply *reply);  /* share, pid */
void do_open(const struct order *order, struct reply *reply);   /* share */
void do_info(const struct order *order, struct reply *reply);   /* share */
void do_import(const struct order *order, struct reply *reply); /* share, block */
void do_name(const struct order *order,
	     struct reply *reply); /* block, frame, frames, device: the name in text */
void do_name_destroy(const struct order *order, struct reply *reply);
void do_name_allow(const struct order *order, struct reply *reply);
void do_name_open(const struct order *order, struct reply *reply);
void do_name_info(const struct order *order, struct reply *reply);
void do_name_import(const struct order *order, struct reply *reply); /* name, block */
void do_fd_export(const struct order *order, struct reply *reply);   /* block: the actor's fd */
void do_fd_import(const struct order *order, struct reply *reply); /* block, from the actor's fd */
void do_fd_close(const struct order *order, struct reply *reply);
void do_audit(const struct order *order, struct reply *reply); /* 0, or 1 and what is wrong */

/* The actor's own state, for orders that a test brings. */
struct actor_state {
	struct node *node;
	struct node_config config;
	char name[64];
	struct node_block *blocks[ACTOR_BLOCKS];
	int fd;
};
extern struct actor_state actor_self;

/* A small node: two devices of that many MiB. Each test has its own. */
struct order small_node(const char *test, unsigned hbm_mib);

/* NULL, or what contradicts what in the node's records: all that is derived is counted anew.
 * free(). */
char *node_audit(struct node *node);

/* In programs built with NODE_STEPS: the process kills itself at the n-th store from now on (0:
 * never); how many were done; a nap at each n-th store, so that a kill from outside often meets a
 * store. */
void steps_set(uint64_t die_at);
uint64_t steps_done(void);
void steps_slow(unsigned one_in);

#endif
