/* SPDX-License-Identifier: Apache-2.0
 *
 * Named ranges of blocks: what the driver's legacy shared memory needs. A name is 64 hexadecimal
 * digits: its index and how often that has been used, then chance. It lives until its maker
 * destroys it or ends.
 */
#include "node-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ALLOW_BATCH 256u

static bool is_exporter(const struct node *node, const struct name_record *record)
{
	return record->exporter == node->slot && record->exporter_generation == node->generation;
}

static bool name_is_live(const struct node *node, const struct name_record *record)
{
	return record->state && member_is_live(node, record->exporter, record->exporter_generation);
}

static void name_end(struct node *node, struct name_record *record)
{
	PUT(record->state, 0); /* here it ends; what follows is derived */
	allow_give_back(node, record->allow);
}

void names_reap(struct node *node, const uint64_t dead[NODE_HOLDER_WORDS])
{
	for (uint32_t i = 0; i < node->control->name_limit; i++) {
		struct name_record *record = &node->names[i];

		if (record->state && (dead[record->exporter / 64] & holder_bit(record->exporter)))
			name_end(node, record);
	}
}

/* Enters the node, and finds the name; the lock is held only on success. */
static drvError_t enter_name(struct node *node, const char *name, struct name_record **out)
{
	drvError_t error = node_enter(node);
	struct name_record *record;
	unsigned index;

	if (error != DRV_ERROR_NONE)
		return error;
	if (sscanf(name, "%8x", &index) == 1 && index < node->control->name_limit) {
		record = &node->names[index];
		if (name_is_live(node, record) && !strcmp(record->text, name)) {
			*out = record;
			return DRV_ERROR_NONE;
		}
	}
	node_unlock(node);
	npu_message_set("node %s has no name \"%.64s\": it was never made here, or its maker "
			"destroyed it or has ended",
			node->name, name);
	return DRV_ERROR_PARA_ERROR;
}

static drvError_t enter_own_name(struct node *node, const char *name, struct name_record **out)
{
	drvError_t error = enter_name(node, name, out);

	if (error != DRV_ERROR_NONE || is_exporter(node, *out))
		return error;
	npu_message_set(
		"the name \"%.64s\" belongs to process %d, and only that may change or destroy it",
		name, (*out)->exporter_pid);
	node_unlock(node);
	return DRV_ERROR_IOCRL_FAIL;
}

static uint32_t take_index(struct node *node)
{
	struct control *control = node->control;

	for (uint32_t tries = 0; tries < NODE_NAMES; tries++) {
		uint32_t index = control->name_next % NODE_NAMES;

		PUT(control->name_next, index + 1);
		if (index >= control->name_limit)
			PUT(control->name_limit, index + 1);
		if (!node->names[index].state)
			return index;
	}
	return NODE_NONE;
}

static void write_text(struct name_record *record, uint32_t index)
{
	unsigned char chance[24];
	size_t at;

	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
		memset(chance, 0, sizeof(chance)); /* index and generation alone are unique */
	node_step();
	at = (size_t)snprintf(record->text, sizeof(record->text), "%08x%08x", index,
			      record->generation);
	for (unsigned i = 0; i < sizeof(chance); i++)
		at += (size_t)snprintf(record->text + at, sizeof(record->text) - at, "%02x",
				       chance[i]);
}

/* Enters the node, and finds room for a name of the block; the lock is held only on success. */
static drvError_t enter_new_name(struct node *node, const struct node_block *block,
				 uint32_t *out_index)
{
	drvError_t error = node_enter(node);
	struct block_place place;

	if (error != DRV_ERROR_NONE)
		return error;
	if (!block_find(node, block->id, block->generation, &place)) {
		node_unlock(node);
		npu_message_set("node %s: block %u is no block any more", node->name, block->id);
		return DRV_ERROR_INVALID_HANDLE;
	}
	*out_index = take_index(node);
	if (*out_index == NODE_NONE) {
		node_unlock(node);
		npu_message_set("node %s: %u names exist, which is the limit; destroy some",
				node->name, NODE_NAMES);
		return DRV_ERROR_NO_RESOURCES;
	}
	PUT(place.record->named, 1);
	return DRV_ERROR_NONE;
}

drvError_t node_name_create(struct node *node, const struct node_block *block, uint64_t offset,
			    uint64_t bytes, unsigned device, char name[65])
{
	uint32_t index;
	drvError_t error = enter_new_name(node, block, &index);
	struct name_record *record;

	if (error != DRV_ERROR_NONE)
		return error;
	record = &node->names[index];
	PUT(record->generation, record->generation + 1);
	PUT(record->block, block->id);
	PUT(record->block_generation, block->generation);
	PUT(record->exporter, node->slot);
	PUT(record->exporter_generation, node->generation);
	PUT(record->exporter_pid, node->pid);
	PUT(record->device, device);
	PUT(record->open, 0);
	PUT(record->allow, 0);
	PUT(record->offset, offset);
	PUT(record->bytes, bytes);
	write_text(record, index);
	PUT(record->state, 1);
	memcpy(name, record->text, 65);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_name_destroy(struct node *node, const char *name)
{
	struct name_record *record;
	drvError_t error = enter_own_name(node, name, &record);

	if (error != DRV_ERROR_NONE)
		return error;
	name_end(node, record);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

static drvError_t allow_batch(struct node *node, const char *name, const int *pids,
			      const uint64_t *start_times, uint32_t count)
{
	struct name_record *record;
	drvError_t error = enter_own_name(node, name, &record);

	if (error != DRV_ERROR_NONE)
		return error;
	if (record->open) {
		npu_message_set(
			"the name \"%.64s\": its whitelist is disabled, so no process can be added",
			name);
		error = DRV_ERROR_OPER_NOT_PERMITTED;
	} else {
		error = allow_add(node, &record->allow, pids, start_times, count);
	}
	node_unlock(node);
	return error;
}

drvError_t node_name_allow(struct node *node, const char *name, const int *pids, uint32_t count)
{
	drvError_t error = DRV_ERROR_NONE;
	uint64_t *start_times = allow_start_times(pids, count, &error);

	for (uint32_t i = 0; start_times && error == DRV_ERROR_NONE && i < count; i += ALLOW_BATCH)
		error = allow_batch(node, name, pids + i, start_times + i,
				    count - i < ALLOW_BATCH ? count - i : ALLOW_BATCH);
	free(start_times);
	return error;
}

drvError_t node_name_set_open(struct node *node, const char *name)
{
	struct name_record *record;
	drvError_t error = enter_own_name(node, name, &record);

	if (error != DRV_ERROR_NONE)
		return error;
	if (record->allow) {
		npu_message_set("the name \"%.64s\": processes have been whitelisted, so the "
				"whitelist cannot be disabled any more",
				name);
		error = DRV_ERROR_OPER_NOT_PERMITTED;
	} else {
		PUT(record->open, 1);
	}
	node_unlock(node);
	return error;
}

static void copy_info(const struct node *node, const struct name_record *record,
		      struct node_name_info *out)
{
	*out = (struct node_name_info){
		.offset = record->offset,
		.bytes = record->bytes,
		.device = record->device,
		.exporter_pid = record->exporter_pid,
		.exporter_is_me = is_exporter(node, record),
	};
}

drvError_t node_name_info(struct node *node, const char *name, struct node_name_info *out)
{
	struct name_record *record;
	drvError_t error = enter_name(node, name, &record);

	if (error != DRV_ERROR_NONE)
		return error;
	copy_info(node, record, out);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_name_import(struct node *node, const char *name, struct node_name_info *out_info,
			    struct node_block **out)
{
	struct name_record *record;
	struct block_place place;
	drvError_t error = enter_name(node, name, &record);
	enum allow_answer answer;

	if (error != DRV_ERROR_NONE)
		return error;
	answer = record->open || is_exporter(node, record) ? ALLOW_YES
							   : allow_check(node, record->allow);
	if (answer != ALLOW_YES) {
		error = allow_refuse(node, answer, "a named range of memory", record->exporter_pid);
	} else if (!block_find(node, record->block, record->block_generation, &place) ||
		   place.record->closing || !block_is_held_by(place.record, record->exporter)) {
		npu_message_set("the memory of the name \"%.64s\" has been freed by process %d",
				name, record->exporter_pid);
		error = DRV_ERROR_BUSY;
	} else {
		copy_info(node, record, out_info);
		*out = block_view(node, record->block, true);
	}
	node_unlock(node);
	return error;
}
