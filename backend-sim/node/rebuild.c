/* SPDX-License-Identifier: Apache-2.0
 *
 * Rebuilds all derived state from the truth, for a process that creates a node or takes over the
 * lock of a dead member. This process may die at any step too: the next one then starts over.
 */
#include "records.h"

#include <glib.h>

static void count_block(struct node *node, uint32_t id, void *arg)
{
	struct block_place place = block_at(node, id);
	struct memory *m = place.memory;

	(void)arg;
	for (uint32_t first = place.frame; first != NODE_NONE; first = m->extents[first].next)
		frames_mark(m, first, m->extents[first].count, true);
	if (place.record->closing && place.frame < m->usable)
		PUT(m->state->closing_frames, m->state->closing_frames + place.record->frames);
	if (holders_are_none_but(&place, NODE_NONE))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
}

/* Whitelist entries that no living share reaches are free. */
static void rebuild_shares(struct node *node)
{
	struct control *control = node->control;
	uint32_t top = control->allow_top, count = 0;
	g_autofree uint8_t *reached = g_malloc0(top + 1);
	struct block_place place;

	for (uint32_t i = 0; i < control->share_limit; i++) {
		if (!share_is_live(node, i, &place))
			continue;
		count++;
		for (uint32_t at = node->shares[i].allow; at; at = node->allows[at - 1].next)
			reached[at - 1] = 1;
	}
	PUT(control->share_count, count);
	while (top && !reached[top - 1])
		top--;
	PUT(control->allow_free, 0);
	for (uint32_t i = 0; i < top; i++)
		if (!reached[i]) {
			PUT(node->allows[i].next, control->allow_free);
			PUT(control->allow_free, i + 1);
		}
	PUT(control->allow_top, top);
}

void node_rebuild(struct node *node)
{
	PUT(node->control->fd_kept, 0);
	frame_caches_rebuild(node);
	for (unsigned i = 0; i < node->shape.servers * SIM_NODE_MAX; i++)
		if (node->memories[i].state && GET(node->memories[i].state->used))
			frames_reset(&node->memories[i]);
	block_for_each(node, count_block, NULL);
	rebuild_shares(node);
}
