/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes tell each other of their writes, for layers that look for errors: which bytes of a
 * device somebody has written, and who writes what at this moment.
 */
#include "records.h"

static uint8_t *unseen_of(const struct node *node, const struct node_block *block)
{
	return &node->memory[block->memory]->blocks[block->extents[0].frame].unseen;
}

uint64_t *node_written(struct node *node, const struct node_block *block)
{
	if (!node->tells) {
		PUT(node->control->told, 1);
		node->tells = true;
	}
	if (!block || block->memory % SIM_NODE_MAX == SIM_NODE_HOST || GET(*unseen_of(node, block)))
		return NULL;
	return (uint64_t *)(node->memory[block->memory]->base + node->memory[block->memory]->bytes);
}

void node_written_give_up(struct node *node, const struct node_block *block)
{
	PUT(*unseen_of(node, block), 1);
}

/* Tells the other members of it, and *out of the first of them that writes there. */
static void meet(struct node *node, const struct write_record *write, struct npu_write *out)
{
	for (unsigned slot = 0; slot < node->control->member_limit; slot++) {
		struct member *member = &node->control->members[slot];

		if (slot == node->slot || member_is_dead(node, slot))
			continue;
		for (struct write_record *w = member->writes; w < member->writes + NODE_WRITES;
		     w++) {
			if (w->block != write->block || w->generation != write->generation ||
			    w->begin >= write->end || write->begin >= w->end)
				continue;
			PUT(w->met, node->pid);
			out->pid = member->pid;
			out->since_ns = write->since_ns - w->since_ns;
		}
	}
}

drvError_t node_write_begin(struct node *node, const struct node_block *block, uint64_t begin,
			    uint64_t end, struct npu_write *out)
{
	struct write_record *own = node->control->members[node->slot].writes;
	struct write_record write = { block->id + 1, block->generation, 0, begin, end, 0 };
	struct block_place place;
	unsigned free = 0;
	ENTERED(node, error, block_of_view(node, block, &place));

	if (error != DRV_ERROR_NONE)
		return error;
	*out = (struct npu_write){ 0 };
	write.since_ns = (int64_t)clock_now_ns();
	if (place.record->share || place.record->named || place.record->fd) {
		meet(node, &write, out);
		while (free < NODE_WRITES && own[free].block)
			free++;
	} else {
		free = NODE_WRITES;
	}
	if (free < NODE_WRITES) {
		own[free] = write;
		out->mark = free + 1;
	}
	return DRV_ERROR_NONE;
}

drvError_t node_write_end(struct node *node, struct npu_write *write)
{
	struct write_record *own = node->control->members[node->slot].writes;
	ENTERED(node, error, DRV_ERROR_NONE);

	for (unsigned i = 0; error == DRV_ERROR_NONE && i < NODE_WRITES; i++)
		if (write->mark == 0 || write->mark == i + 1) {
			write->pid = own[i].met;
			PUT(own[i].block, 0);
		}
	return error;
}
