/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares blocks with other processes, for the driver's calls on shareable handles and on legacy
 * shared memory: shares, which refer to whole blocks, and names, which refer to ranges of blocks.
 *
 * A share lives exactly as long as its block points back at it, so its end needs no bookkeeping;
 * its id is an index in the table and, in the upper bits, how often that index has been used. A
 * name is 64 hexadecimal digits: its index and how often that has been used, followed by random
 * digits. It lives until its creator destroys it or ends.
 */
#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define INDEX_MASK (NODE_SHARES - 1)
#define GENERATIONS \
	((1u << (32 - NODE_SHARE_LG2)) - 1) /* 0 is none: small made-up ids are never valid */
#define SHARE_LIMIT_LEAST 4096u
#define ALLOW_BATCH       256u /* pids added while the lock is held once */

/* ---- what shares and names have in common ---- */

/* For who finds nothing: whether others are there at all (npu_text()). */
static const char *company_of(const struct node *node)
{
	char pid[40] = "", net[40] = "";
	unsigned members = 0;

	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		members += !member_is_dead(node, slot) && !node->control->members[slot].visitor;
	if (readlink("/proc/self/ns/pid", pid, sizeof(pid) - 1) < 0 ||
	    readlink("/proc/self/ns/net", net, sizeof(net) - 1) < 0)
		strcpy(pid, "no /proc");
	return npu_text("; the node has %u member%s in this pid and network namespace (%s, %s): a "
			"process in another container or namespace is on another node of that "
			"name, see npusim-node(1)",
			members, members == 1 ? "" : "s", pid, net);
}

static void write_grant(struct node *node, struct grant *grant, const struct node_block *block,
			unsigned device)
{
	if (block) {
		struct block_place place = block_at(node, block->id);

		block_unseen(node, &place);
	}
	PUT(grant->imported, 0);
	PUT(grant->block, block ? block->id : NODE_NONE);
	PUT(grant->block_generation, block ? block->generation : 0);
	PUT(grant->exporter, node->slot);
	PUT(grant->exporter_generation, node->generation);
	PUT(grant->exporter_pid, node->pid);
	PUT(grant->device, device);
	PUT(grant->open, 0);
	PUT(grant->allow, 0);
}

/* What is said of an import of the grant, `what` in words, if that is not allowed. home: the
 * exporter's server, whose processes alone a list that is switched off lets in. */
static drvError_t check_allowed(const struct node *node, const struct grant *grant, unsigned home,
				const char *what)
{
	enum allow_answer answer =
		(grant->open && home == node->shape.server) || grant_is_mine(node, grant)
			? ALLOW_YES
			: allow_check(node, grant->allow);

	if (answer == ALLOW_YES)
		return DRV_ERROR_NONE;
	if (answer == ALLOW_STALE)
		return node_fail(DRV_ERROR_IOCRL_FAIL,
				 "import of %s: pid %d was whitelisted before this process "
				 "started, so another process was meant (the number has been used "
				 "again); process %d must whitelist it now",
				 what, node->pid, grant->exporter_pid);
	return node_fail(
		DRV_ERROR_IOCRL_FAIL,
		"import of %s: this process (pid %d) is not on the whitelist of process %d, which "
		"exported it; that process must add it (aclrtMemSetPidToShareableHandle, "
		"aclrtIpcMemSetImportPid, aclrtNotifySetImportPid) or export with the flag that "
		"disables the check",
		what, node->pid, grant->exporter_pid);
}

/* The view is of memory that this process has mapped, or it goes. */
static drvError_t reach(struct node *node, struct memory *m, struct node_block **block)
{
	if (m->base || memory_open(node, m))
		return DRV_ERROR_NONE;
	node_block_drop(node, *block);
	return DRV_ERROR_INVALID_HANDLE;
}

/* ---- shares ---- */

/* Enters the node, and finds the share of a server; the lock is held only on success. */
static drvError_t enter_share(struct node *node, uint32_t share_id, unsigned server,
			      struct share_record **out, struct block_place *out_place)
{
	uint32_t index = share_id & INDEX_MASK;
	drvError_t error = node_enter(node);

	if (error != DRV_ERROR_NONE)
		return error;
	if (index < node->control->share_limit &&
	    node->shares[index].generation == share_id >> NODE_SHARE_LG2 &&
	    share_is_live(node, index, out_place) && out_place->memory->server == server) {
		*out = &node->shares[index];
		return DRV_ERROR_NONE;
	}
	node_unlock(node);
	return node_fail(
		DRV_ERROR_INVALID_HANDLE,
		"%s has no share %u: it was never exported there, or its memory is freed%s",
		server_text(node, server), share_id, company_of(node));
}

/* A free index; indexes go round, in a table that stays at most half full, so that an id does not
 * come back soon. */
static uint32_t take_share(struct node *node)
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

drvError_t node_share_export(struct node *node, const struct node_block *block, unsigned device,
			     uint32_t *out_share_id)
{
	struct block_place place;
	drvError_t error = block_enter(node, block, &place);
	struct share_record *share;
	uint32_t index;

	if (error != DRV_ERROR_NONE)
		return error;
	if (place.record->share) {
		index = place.record->share - 1;
		npu_message_set("this memory is exported already, by process %d, as share %u of "
				"node %s; a block can be exported once: pass the first shareable "
				"handle on, or free the memory and allocate it anew",
				node->shares[index].grant.exporter_pid,
				node->shares[index].generation << NODE_SHARE_LG2 | index,
				node->name);
		error = DRV_ERROR_PARA_ERROR;
	} else if ((index = take_share(node)) == NODE_NONE) {
		npu_message_set("node %s: %u blocks are exported, which is the limit", node->name,
				NODE_SHARES);
		error = DRV_ERROR_NO_RESOURCES;
	} else {
		share = &node->shares[index];
		PUT(share->generation, share->generation % GENERATIONS + 1);
		PUT(share->exporter_gone, 0);
		write_grant(node, &share->grant, block, device);
		PUT(node->control->share_count, node->control->share_count + 1);
		PUT(place.record->share, index + 1); /* from here on it is shared */
		*out_share_id = share->generation << NODE_SHARE_LG2 | index;
	}
	node_unlock(node);
	return error;
}

drvError_t node_share_get_open(struct node *node, uint32_t share_id, bool *out_open)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, node->shape.server, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	*out_open = share->grant.open;
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_share_info(struct node *node, uint32_t share_id, struct node_share_info *out)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, node->shape.server, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	*out = (struct node_share_info){
		.memory = place.memory->index,
		.device = share->grant.device,
		.frames = place.record->frames,
		.giant = place.record->giant,
		.exporter_pid = share->grant.exporter_pid,
		.exporter_is_me = grant_is_mine(node, &share->grant),
		.exporter_alive = member_is_live(node, share->grant.exporter,
						 share->grant.exporter_generation),
	};
	node_unlock(node);
	return DRV_ERROR_NONE;
}

/* Within the server: the exporter lets this process in, and holds the block through a view of its
 * own. */
static drvError_t check_local(const struct node *node, uint32_t share_id,
			      const struct share_record *share, const struct block_place *place)
{
	const struct grant *grant = &share->grant;
	drvError_t error = check_allowed(node, grant, node->shape.server,
					 npu_text("share %u of node %.20s", share_id, node->name));

	if (error != DRV_ERROR_NONE ||
	    (!share->exporter_gone &&
	     member_is_live(node, grant->exporter, grant->exporter_generation) &&
	     block_is_held_by(place, grant->exporter)))
		return error;
	return node_fail(DRV_ERROR_BUSY,
			 "import of share %u of node %s: process %d, which exported it, has freed "
			 "the memory or has ended",
			 share_id, node->name, grant->exporter_pid);
}

drvError_t node_share_import(struct node *node, uint32_t share_id, unsigned server,
			     struct node_block **out)
{
	struct share_record *share;
	struct block_place place;
	drvError_t error = enter_share(node, share_id, server, &share, &place);

	if (error != DRV_ERROR_NONE)
		return error;
	if (place.record->closing)
		error = node_fail(server == node->shape.server ? DRV_ERROR_BUSY
							       : DRV_ERROR_INVALID_HANDLE,
				  "import of share %u of %s: its memory is being freed", share_id,
				  server_text(node, server));
	else if (server == node->shape.server)
		error = check_local(node, share_id, share, &place);
	if (error == DRV_ERROR_NONE) {
		*out = block_view(node, share->grant.block, true);
		PUT(share->grant.imported, 1);
	}
	node_unlock(node);
	return error ?: reach(node, place.memory, out);
}

/* ---- names ---- */

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
		if (record->state &&
		    member_is_live(node, record->grant.exporter,
				   record->grant.exporter_generation) &&
		    !strcmp(record->text, name)) {
			*out = record;
			return DRV_ERROR_NONE;
		}
	}
	node_unlock(node);
	return node_fail(DRV_ERROR_PARA_ERROR,
			 "node %s has no name \"%.64s\": it was never made here, or its maker "
			 "destroyed it or has ended%s",
			 node->name, name, company_of(node));
}

static drvError_t enter_own_name(struct node *node, const char *name, struct name_record **out)
{
	drvError_t error = enter_name(node, name, out);

	if (error != DRV_ERROR_NONE || grant_is_mine(node, &(*out)->grant))
		return error;
	error = node_fail(
		DRV_ERROR_IOCRL_FAIL,
		"the name \"%.64s\" belongs to process %d, and only that may change or destroy it",
		name, (*out)->grant.exporter_pid);
	node_unlock(node);
	return error;
}

static uint32_t take_name(struct node *node)
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

/* Of a notify the name says which, since who opened it closes it after its maker may have ended it.
 */
static void write_text(struct name_record *record, uint32_t index, unsigned server)
{
	unsigned char chance[24];
	size_t at;

	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
		memset(chance, 0, sizeof(chance)); /* index and generation alone are unique */
	node_step();
	at = (size_t)snprintf(record->text, sizeof(record->text), "%08x%08x", index,
			      record->generation);
	if (record->bytes == 0)
		at += (size_t)snprintf(record->text + at, sizeof(record->text) - at, "%08x%08x",
				       server << 8 | record->grant.device,
				       (unsigned)record->offset);
	for (unsigned i = record->bytes == 0 ? 8 : 0; i < sizeof(chance); i++)
		at += (size_t)snprintf(record->text + at, sizeof(record->text) - at, "%02x",
				       chance[i]);
}

drvError_t node_name_create(struct node *node, const struct node_block *block, uint64_t offset,
			    uint64_t bytes, unsigned device, char name[65])
{
	struct block_place place;
	drvError_t error = block ? block_enter(node, block, &place) : node_enter(node);
	struct name_record *record;
	uint32_t index;

	if (error != DRV_ERROR_NONE)
		return error;
	index = take_name(node);
	if (index == NODE_NONE) {
		node_unlock(node);
		return node_fail(DRV_ERROR_NO_RESOURCES,
				 "node %s: %u names exist, which is the limit; destroy some",
				 node->name, NODE_NAMES);
	}
	if (block)
		PUT(place.record->named, 1);
	record = &node->names[index];
	PUT(record->generation, record->generation + 1);
	write_grant(node, &record->grant, block, device);
	PUT(record->offset, offset);
	PUT(record->bytes, bytes);
	write_text(record, index, node->shape.server);
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

static void copy_info(const struct node *node, const struct name_record *record,
		      struct node_name_info *out)
{
	*out = (struct node_name_info){
		.offset = record->offset,
		.bytes = record->bytes,
		.device = record->grant.device,
		.exporter_pid = record->grant.exporter_pid,
		.exporter_is_me = grant_is_mine(node, &record->grant),
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
	const struct grant *grant;
	unsigned home;

	if (error != DRV_ERROR_NONE)
		return error;
	grant = &record->grant;
	if (record->bytes)
		place = block_at(node, grant->block);
	home = record->bytes ? place.memory->server
			     : node->control->members[grant->exporter].server;
	error = check_allowed(node, grant, home, out ? "a named range of memory" : "a notify");
	if (error == DRV_ERROR_NONE &&
	    ((out == NULL) != (record->bytes == 0) || (!out && home != node->shape.server))) {
		npu_message_set("the name \"%.64s\" is that of %s", name,
				record->bytes ? "a range of memory"
				: out         ? "a notify"
					      : "another server's notify");
		error = DRV_ERROR_PARA_ERROR;
	}
	if (error == DRV_ERROR_NONE && out &&
	    (!block_find(node, grant->block, grant->block_generation, &place) ||
	     place.record->closing || !block_is_held_by(&place, grant->exporter))) {
		npu_message_set("the memory of the name \"%.64s\" has been freed by process %d",
				name, grant->exporter_pid);
		error = DRV_ERROR_BUSY;
	}
	if (error == DRV_ERROR_NONE && out)
		*out = block_view(node, grant->block, true);
	else if (error == DRV_ERROR_NONE)
		error = notify_open_locked(node, grant->device, (uint32_t)record->offset);
	if (error == DRV_ERROR_NONE)
		copy_info(node, record, out_info);
	node_unlock(node);
	return error || !out ? error : reach(node, place.memory, out);
}

bool node_name_of_notify(const struct node *node, const char *name, unsigned *out_device,
			 uint32_t *out_id)
{
	if (sscanf(name, "%*16x%8x%8x", out_device, out_id) != 2 ||
	    *out_device >> 8 != node->shape.server || *out_id >= NODE_NOTIFIES)
		return false;
	*out_device &= 0xff;
	return true;
}

/* ---- who may import ---- */

/* Enters the node, and finds the grant of a share, or of a name where that is not NULL: one of this
 * process, which has not yet chosen the other way to say who may import. The lock is held only on
 * success. */
static drvError_t enter_own(struct node *node, uint32_t share_id, const char *name, bool to_open,
			    struct grant **out)
{
	struct share_record *share;
	struct name_record *record;
	struct block_place place;
	drvError_t error = name ? enter_own_name(node, name, &record)
				: enter_share(node, share_id, node->shape.server, &share, &place);
	const char *what = name ? npu_text("the name \"%.64s\"", name)
				: npu_text("share %u of node %s", share_id, node->name);

	if (error != DRV_ERROR_NONE)
		return error;
	*out = name ? &record->grant : &share->grant;
	if (!grant_is_mine(node, *out))
		error = node_fail(
			DRV_ERROR_IOCRL_FAIL,
			"%s: only process %d, which exported it, may change who imports it", what,
			(*out)->exporter_pid);
	else if (to_open && (*out)->allow)
		error = node_fail(DRV_ERROR_OPER_NOT_PERMITTED,
				  "%s: processes have been whitelisted, so the whitelist cannot be "
				  "disabled any more",
				  what);
	else if (!to_open && (*out)->open)
		error = node_fail(DRV_ERROR_OPER_NOT_PERMITTED,
				  "%s: its whitelist is disabled, so no process can be added",
				  what);
	if (error != DRV_ERROR_NONE)
		node_unlock(node);
	return error;
}

static drvError_t allow(struct node *node, uint32_t share_id, const char *name, unsigned server,
			const int *pids, uint32_t count)
{
	drvError_t error = DRV_ERROR_NONE;
	uint64_t *start_times = allow_start_times(pids, count, &error);

	for (uint32_t i = 0; start_times && error == DRV_ERROR_NONE && i < count;
	     i += ALLOW_BATCH) {
		uint32_t batch = count - i < ALLOW_BATCH ? count - i : ALLOW_BATCH;
		struct grant *grant;

		error = enter_own(node, share_id, name, false, &grant);
		if (error != DRV_ERROR_NONE)
			break;
		error = allow_add(node, &grant->allow, pids + i, start_times + i, batch, server);
		node_unlock(node);
	}
	free(start_times);
	return error;
}

drvError_t node_share_allow(struct node *node, uint32_t share_id, const int *pids, uint32_t count)
{
	return allow(node, share_id, NULL, node->shape.server, pids, count);
}

/* There is a live member of that server. */
static bool server_is_there(struct node *node, unsigned server)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		if (!member_is_dead(node, slot) && node->control->members[slot].server == server)
			return true;
	return false;
}

drvError_t node_name_allow(struct node *node, const char *name, unsigned server, const int *pids,
			   uint32_t count)
{
	if (server_is_there(node, server))
		return allow(node, 0, name, server, pids, count);
	return node_fail(DRV_ERROR_INVALID_HANDLE, "no process of %s is there",
			 server_text(node, server));
}

static drvError_t set_open(struct node *node, uint32_t share_id, const char *name)
{
	struct grant *grant;
	drvError_t error = enter_own(node, share_id, name, true, &grant);

	if (error != DRV_ERROR_NONE)
		return error;
	PUT(grant->open, 1);
	node_unlock(node);
	return DRV_ERROR_NONE;
}

drvError_t node_share_set_open(struct node *node, uint32_t share_id)
{
	return set_open(node, share_id, NULL);
}

drvError_t node_name_set_open(struct node *node, const char *name)
{
	return set_open(node, 0, name);
}

/* ---- who holds it ---- */

/* It is gone, but its record is no other. */
static bool nobody_imported(const struct node *node, uint32_t share_id)
{
	const struct share_record *share = &node->shares[share_id & INDEX_MASK];

	return share->generation == share_id >> NODE_SHARE_LG2 && !share->grant.imported;
}

drvError_t node_share_holders(struct node *node, uint32_t share_id, const char *name, int *pids,
			      uint32_t *count)
{
	struct block_place place;
	struct share_record *share;
	struct name_record *record;
	drvError_t error = name == NULL
				   ? enter_share(node, share_id, node->shape.server, &share, &place)
				   : enter_name(node, name, &record);
	uint32_t found = 0;

	if (error != DRV_ERROR_NONE)
		return error == DRV_ERROR_INVALID_HANDLE && nobody_imported(node, share_id)
			       ? DRV_ERROR_NOT_EXIST
			       : error;
	if (name != NULL &&
	    !block_find(node, record->grant.block, record->grant.block_generation, &place)) {
		node_unlock(node);
		return DRV_ERROR_INVALID_HANDLE;
	}
	for (unsigned slot = 0; slot < node->control->member_limit; slot++) {
		if (!block_is_held_by(&place, slot) || member_is_dead(node, slot))
			continue;
		if (found < *count)
			pids[found] = node->control->members[slot].pid;
		found++;
	}
	node_unlock(node);
	*count = found;
	return DRV_ERROR_NONE;
}
