/* SPDX-License-Identifier: Apache-2.0
 *
 * Exported blocks. A share lives exactly as long as its block points back at it, so its end needs
 * no bookkeeping; an id is an index in the table and, above it, how often that index has been used.
 */
#include "node-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MASK (NODE_SHARES - 1)
#define GENERATIONS \
	((1u << (32 - NODE_SHARE_LG2)) - 1) /* 0 is none: small made-up ids are never valid */
#define SHARE_LIMIT_LEAST 4096u
#define ALLOW_BATCH       256u /* pids added while the lock is held once */

static bool share_is_live(const struct node *node, uint32_t index, struct block_place *out)
{
	const struct share_record *share = &node->shares[index];

	return block_find(node, share->block, share->block_generation, out) &&
	       out->record->share == index + 1;
}

bool share_chain(const struct node *node, uint32_t index, uint32_t *out_chain)
{
	struct block_place place;

	if (!share_is_live(node, index, &place))
		return false;
	*out_chain = node->shares[index].allow;
	return true;
}

uint32_t share_end(struct node *node, const struct block_record *record)
{
	return record->share ? node->shares[record->share - 1].allow : 0;
}

static bool is_exporter(const struct node *node, const struct share_record *share)
{
	return share->exporter == node->slot && share->exporter_generation == node->generation;
}

void share_exporter_gone(struct node *node, const struct block_record *record)
{
	if (record->share && is_exporter(node, &node->shares[record->share - 1]))
		PUT(node->shares[record->share - 1].exporter_gone, 1);
}

/* Lock held. */
static drvError_t find_share(const struct node *node, uint32_t share_id, struct share_record **out,
			     struct block_place *out_place)
{
	uint32_t index = share_id & INDEX_MASK;

	if (index < node->control->share_limit &&
	    node->shares[index].generation == share_id >> NODE_SHARE_LG2 &&
	    share_is_live(node, index, out_place)) {
		*out = &node->shares[index];
		return DRV_ERROR_NONE;
	}
	npu_message_set(
		"node %s has no share %u: it was never exported here, or its memory is freed",
		node->name, share_id);
	return DRV_ERROR_INVALID_HANDLE;
}

/* Enters the node, and finds the share; the lock is held only on success. */
static drvError_t enter_share(struct node *node, uint32_t share_id, struct share_record **out,
			      struct block_place *out_place)
{
	drvError_t error = node_enter(node);

	if (error != DRV_ERROR_NONE)
		return error;
	error = find_share(node, share_id, out, out_place);
	if (error != DRV_ERROR_NONE)
		node_unlock(node);
	return error;
}

/* A free index; indexes go round, in a table that stays at most half full, so that an id does not
 * come back soon. */
static uint32_t take_index(struct node *node)
{
	struct control *control = node->control;
	struct block_place place;
	uint32_t index;

	if (control->share_limit == 0)
		PUT(control->share_limit, SHARE_LIMIT_LEAST);
	while (control->share_limit < NODE_SHARES &&
	       2 * control->share_count >= control->share_limit)
		PUT(control->share_limit, 2 * control->share_limit);
	if (control->share_count >= NODE_SHARES)
		return NODE_NONE;
	index = control->share_next;
	do {
		index = index + 1 < control->share_limit ? index + 1 : 0;
	} while (share_is_live(node, index, &place));
	PUT(control->share_next, index);
	return index;
}

static void write_share(struct node *node, uint32_t index, const struct node_block *block,
			unsigned device)
{
	struct share_record *share = &node->shares[index];

	PUT(share->generation, share->generation % GENERATIONS + 1);
	PUT(share->block, block->id);
	PUT(share->block_generation, block->generation);
	PUT(share->exporter, node->slot);
	PUT(share->exporter_generation, node->generation);
	PUT(share->exporter_pid, node->pid);
	PUT(share->exporter_gone, 0);
	PUT(share->device, device);
	PUT(share->open, 0);
	PUT(share->allow, 0);
}

drvError_t node_share_export(struct node *node, const struct node_block *block, unsigned device,
			     uint32_t *out_share_id)
{
	struct block_place place;
	drvError_t error = node_enter(node);
	uint32_t index;

	if (error != DRV_ERROR_NONE)
		return error;
	if (!block_find(node, block->id, block->generation, &place)) {
		npu_message_set("node %s: block %u is no block any more", node->name, block->id);
		error = DRV_ERROR_INVALID_HANDLE;
	} else if (place.record->share) {
		npu_message_set("this memory is exported already, by process %d, as share %u of "
				"node %s; a block can be exported "
				"once: pass the first shareable handle on, or free the memory and "
				"allocate it anew",
				node->shares[place.record->share - 1].exporter_pid,
				node->shares[place.record->share - 1].generation << NODE_SHARE_LG2 |
					(place.record->share - 1),
				node->name);
		error = DRV_ERROR_PARA_ERROR;
	} else if ((index = take_index(node)) == NODE_NONE) {
		npu_message_set("node %s: %u blocks are exported, which is the limit", node->name,
				NODE_SHARES);
		error = DRV_ERROR_NO_RESOURCES;
	} else {
		write_share(node, index, block, device);
		PUT(node->control->share_count, node->control->share_count + 1);
		PUT(place.record->share, index + 1); /* from here on it is shared */
		*out_share_id = node->shares[index].generation << NODE_SHARE_LG2 | index;
	}
	node_unlock(node);
	return error;
}

/* enter_share() for a change of who imports it: by the exporter, and not after the other kind. */
static drvError_t enter_own_share(struct node *node, uint32_t share_id, bool to_open,
				  struct share_record **out)
{
	struct block_place place;
	drvError_t error = enter_share(node, share_id, out, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	if (!is_exporter(node, *out)) {
		npu_message_set("share %u of node %s: only process %d, which exported it, may "
				"change who imports it",
				share_id, node->name, (*out)->exporter_pid);
		error = DRV_ERROR_IOCRL_FAIL;
	} else if (to_open ? (*out)->allow != 0 : (*out)->open) {
		npu_message_set("share %u of node %s: %s", share_id, node->name,
				to_open ? "processes have been whitelisted, so the whitelist "
					  "cannot be disabled any more"
					: "it was exported with the whitelist disabled, so no "
					  "process can be added");
		error = DRV_ERROR_OPER_NOT_PERMITTED;
	}
	if (error != DRV_ERROR_NONE)
		node_unlock(node);
	return error;
}

static drvError_t allow_batch(struct node *node, uint32_t share_id, const int *pids,
			      const uint64_t *start_times, uint32_t count)
{
	struct share_record *share;
	drvError_t error = enter_own_share(node, share_id, false, &share);

	if (error != DRV_ERROR_NONE)
		return error;
	error = allow_add(node, &share->allow, pids, start_times, count);
	node_unlock(node);
	return error;
}

drvError_t node_share_allow(struct node *node, uint32_t share_id, const int *pids, uint32_t count)
{
	drvError_t error = DRV_ERROR_NONE;
	uint64_t *start_times = allow_start_times(pids, count, &error);

	for (uint32_t i = 0; start_times && error == DRV_ERROR_NONE && i < count; i += ALLOW_BATCH)
		error = allow_batch(node, share_id, pids + i, start_times + i,
				    count - i < ALLOW_BATCH ? count - i : ALLOW_BATCH);
	free(start_times);
	return error;
}

drvError_t node_share_set_open(struct node *node, uint32_t share_id)
{
	struct share_record *share;
	drvError_t error = enter_own_share(node, share_id, true, &share);

	if (error != DRV_ERROR_NONE)
		return error;
	PUT(share->open, 1);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_share_get_open(struct node *node, uint32_t share_id, bool *out_open)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	*out_open = share->open;
	node_unlock(node);
	return DRV_ERROR_NONE;
}

/* The exporter holds the block through a view of its own. */
static bool exporter_holds(const struct node *node, const struct share_record *share,
			   const struct block_record *record)
{
	return !record->closing && !share->exporter_gone &&
	       member_is_live(node, share->exporter, share->exporter_generation) &&
	       block_is_held_by(record, share->exporter);
}

drvError_t node_share_info(struct node *node, uint32_t share_id, struct node_share_info *out)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	*out = (struct node_share_info){
		.memory = place.memory->index,
		.device = share->device,
		.frames = place.record->frames,
		.giant = place.record->giant,
		.exporter_pid = share->exporter_pid,
		.exporter_is_me = is_exporter(node, share),
		.exporter_alive = member_is_live(node, share->exporter, share->exporter_generation),
	};
	node_unlock(node);
	return DRV_ERROR_NONE;
}

static drvError_t check_import(const struct node *node, uint32_t share_id,
			       const struct share_record *share, const struct block_record *record)
{
	enum allow_answer answer = share->open ? ALLOW_YES : allow_check(node, share->allow);
	char what[64];

	if (answer != ALLOW_YES && !is_exporter(node, share)) {
		snprintf(what, sizeof(what), "share %u of node %.20s", share_id, node->name);
		return allow_refuse(node, answer, what, share->exporter_pid);
	}
	if (exporter_holds(node, share, record))
		return DRV_ERROR_NONE;
	npu_message_set("import of share %u of node %s: process %d, which exported it, has freed "
			"the memory or has ended",
			share_id, node->name, share->exporter_pid);
	return DRV_ERROR_BUSY;
}

drvError_t node_share_import(struct node *node, uint32_t share_id, struct node_block **out)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	error = check_import(node, share_id, share, place.record);
	if (error == DRV_ERROR_NONE)
		*out = block_view(node, share->block, true);
	node_unlock(node);
	return error;
}
