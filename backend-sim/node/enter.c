/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a caller into the node, and first reclaims what dead members left behind: their holds,
 * their names, their slots in the table. This process may die at any step too: the next to enter
 * then starts over.
 */
#include "records.h"

#include <glib.h>

#define GONE_WAIT_MS 20

/* ---- what dead members left ---- */

struct reaping {
	uint64_t dead[NODE_HOLDER_WORDS];
	GArray *orphans; /* ids of blocks to clean: closing, and held by this process meanwhile */
};

/* Nobody is left that holds the block. True: it is to be cleaned first. */
static bool end_block(struct node *node, uint32_t id, struct reaping *reaping)
{
	struct block_place place = block_at(node, id);

	if (!GET(place.record->touched)) {
		block_release(node, id);
		return false;
	}
	block_close(node, id);
	holders_set(&place, node->slot, true);
	if (!reaping->orphans)
		reaping->orphans = g_array_new(FALSE, FALSE, sizeof(id));
	g_array_append_val(reaping->orphans, id);
	return true;
}

static void reap_block(struct node *node, uint32_t id, void *arg)
{
	struct block_place place = block_at(node, id);
	struct block_record *record = place.record;
	struct reaping *reaping = arg;
	uint64_t lost = 0, left = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++) {
		lost |= record->holders[w] & reaping->dead[w];
		left |= record->holders[w] & ~reaping->dead[w];
	}
	if (!lost)
		return;
	if (!left && record->fd && !record->closing && block_fd_is_open(node, id))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
	else if (!left && !end_block(node, id, reaping))
		return;
	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		if (record->holders[w] & reaping->dead[w])
			PUT(record->holders[w], record->holders[w] & ~reaping->dead[w]);
}

/* Lock held at entry and return. */
static void end_orphans(struct node *node, struct reaping *reaping)
{
	if (!reaping->orphans)
		return;
	node_unlock(node);
	for (unsigned i = 0; i < reaping->orphans->len; i++)
		block_clean(node, g_array_index(reaping->orphans, uint32_t, i));
	node_lock(node);
	for (unsigned i = 0; i < reaping->orphans->len; i++)
		block_release(node, g_array_index(reaping->orphans, uint32_t, i));
	g_array_unref(reaping->orphans);
}

/* Lock held at entry and return; let go while frames are cleaned. */
static void recover(struct node *node)
{
	uint32_t limit = GET(node->control->member_limit);
	struct reaping reaping = { .orphans = NULL };
	bool any = false;

	for (unsigned slot = 0; slot < limit; slot++)
		if (slot != node->slot && member_is_gone(node, slot)) {
			reaping.dead[slot / 64] |= holder_bit(slot);
			any = true;
		}
	if (!any)
		return;
	block_for_each(node, reap_block, &reaping);
	for (uint32_t i = 0; i < node->control->share_limit; i++) {
		uint32_t exporter = node->shares[i].exporter;

		if (node->shares[i].named && (reaping.dead[exporter / 64] & holder_bit(exporter)))
			share_end(node, &node->shares[i]);
	}
	for (unsigned slot = 0; slot < limit; slot++)
		if (reaping.dead[slot / 64] & holder_bit(slot))
			member_free(node, slot);
	end_orphans(node, &reaping);
}

static void sweep_block(struct node *node, uint32_t id, void *arg)
{
	struct block_place place = block_at(node, id);

	if (!holders_are_none_but(&place, NODE_NONE) || block_fd_is_open(node, id))
		return;
	if (node->control->fd_kept)
		PUT(node->control->fd_kept, node->control->fd_kept - 1);
	end_block(node, id, arg);
}

void node_sweep(struct node *node)
{
	struct reaping reaping = { .orphans = NULL };

	block_for_each(node, sweep_block, &reaping);
	end_orphans(node, &reaping);
}

/* ---- entry ---- */

bool node_is_forked(const struct node *node)
{
	if (node->fork_mark)
		return __atomic_load_n(node->fork_mark, __ATOMIC_RELAXED) == 0;
	return getpid() != node->pid;
}

/* Waits, not long, and once for each of the dead, until no thread of it runs any more. Lock not
 * held. */
static void wait_until_gone(struct node *node)
{
	uint32_t limit = GET(node->control->member_limit);

	for (unsigned slot = 0; slot < limit; slot++) {
		uint32_t generation = GET(node->control->members[slot].generation);

		if (member_has_died(node, slot) &&
		    __atomic_exchange_n(&node->waited[slot], generation, __ATOMIC_RELAXED) !=
			    generation)
			member_wait_gone(node, slot, GONE_WAIT_MS);
	}
}

bool node_is_quiet(struct node *node)
{
	return !node_is_forked(node) && !member_anyone_died(node) &&
	       member_is_live(node, node->slot, node->generation);
}

drvError_t node_enter(struct node *node)
{
	if (node_is_forked(node))
		return node_fail(DRV_ERROR_PROCESS_EXIT,
				 "node %s: this process was forked from process %d after that had "
				 "opened the devices, and devices do not survive a fork; fork "
				 "before the first call, or start a new program (exec, or "
				 "multiprocessing with the spawn method)",
				 node->name, node->pid);
	node_lock(node);
	if (__builtin_expect(member_anyone_died(node), false)) {
		node_unlock(node);
		wait_until_gone(node);
		node_lock(node);
		recover(node);
	}
	if (__builtin_expect(member_is_live(node, node->slot, node->generation), true))
		return DRV_ERROR_NONE;
	node_unlock(node);
	return node_fail(DRV_ERROR_PROCESS_EXIT, "node %s: this process is no member any more",
			 node->name);
}
