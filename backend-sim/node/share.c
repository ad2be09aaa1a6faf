/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares blocks with other processes, for the driver's calls on shareable handles and on legacy
 * shared memory: whole blocks by a number, ranges of blocks (and notifies) by a name; and whole
 * blocks by a file descriptor, for calls that pass memory over sockets.
 *
 * A number lives exactly as long as its block points back at it, so its end needs no bookkeeping;
 * it is an index in the table and, in the upper bits, the last of how many shares were ever made. A
 * name is 64 hexadecimal digits: the same two, which notify it is of, and random digits. It lives
 * until its creator destroys it or ends.
 *
 * The kernel tracks the references of descriptors: each is a separate open file description of the
 * control segment's memfd, which holds a lock on the byte of its block. Such a lock ends when the
 * last copy of the descriptor is closed, in whatever process or socket that is; a process that
 * queries the byte's lock learns whether one is left. The file position identifies the block.
 * Limits: that the last copy was closed is noticed at the next query for free memory, or when
 * memory is short. A descriptor does not keep the node itself alive: once all members have ended it
 * is invalid. A process that moves the file position (lseek, read) also makes it invalid. A program
 * that closed the node's own descriptor cannot query the locks: its blocks then count as still
 * referenced.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define INDEX_MASK (NODE_SHARES - 1)
#define GENERATIONS \
	((1u << (32 - NODE_SHARE_LG2)) - 1) /* 0 is none: small made-up ids are never valid */
#define SHARE_LIMIT_LEAST 4096u

/* ---- whitelists ---- */

/* The processes that may import: by pid and start time, so that a reused pid is another process. */

static drvError_t check_pids(const int *pids, uint32_t count)
{
	uint32_t none = 0;

	if (!pids || count == 0 || count > NODE_ALLOW_MAX)
		return node_fail(DRV_ERROR_INVALID_VALUE,
				 "whitelist: %u pids at %p; 1 to %u are possible", count,
				 (const void *)pids, NODE_ALLOW_MAX);
	while (none < count && pids[none] == 0)
		none++;
	return none < count ? DRV_ERROR_NONE
			    : node_fail(DRV_ERROR_PARA_ERROR,
					"whitelist: the pids are 0 in all %u places", count);
}

static bool allow_is_live(const struct node *node, const struct allow_record *record)
{
	struct block_place place;

	return record->share && node->shares[record->index].number == record->share &&
	       share_is_live(node, record->index, &place);
}

/* The entry of that pid, or NULL; out_free, where not NULL: then one that can be had, or NULL. */
static struct allow_record *find_allowed(const struct node *node, const struct share_record *share,
					 int pid, struct allow_record **out_free)
{
	struct allow_record *free = NULL, *record;
	uint32_t at = (uint32_t)(share - node->shares) * (NODE_ALLOWS / NODE_SHARES), seen = 0;

	for (uint32_t i = 0; i < NODE_ALLOWS && (seen < share->allowed || (out_free && !free));
	     i++) {
		record = &node->allows[(at + i) % NODE_ALLOWS];
		if (record->share == share->number && record->pid == pid)
			return record;
		seen += record->share == share->number;
		if (out_free && !free && !allow_is_live(node, record))
			free = record;
		if (!record->share)
			break; /* none of its entries lies behind */
	}
	if (out_free)
		*out_free = free;
	return NULL;
}

static drvError_t allow_add(struct node *node, struct share_record *share, int pid,
			    uint64_t start_time, unsigned server)
{
	struct allow_record *free, *record = find_allowed(node, share, pid, &free);
	const bool is_new = record == NULL;

	if (is_new && (!free || share->allowed == NODE_ALLOW_MAX))
		return node_fail(DRV_ERROR_PARA_ERROR,
				 "whitelist: no room for process %d: %s is full", pid,
				 free ? "the list (65535 entries)" : "the node's pool of entries");
	if (is_new) {
		record = free;
		PUT(share->allowed, share->allowed + 1);
		PUT(record->index, (uint32_t)(share - node->shares));
		PUT(record->pid, pid);
	}
	PUT(record->server, server);
	PUT(record->start_time, start_time);
	PUT(record->share, share->number); /* from here on it counts */
	return DRV_ERROR_NONE;
}

/* ---- what numbers and names have in common ---- */

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
	return npu_text("; the node has %s in this pid and network namespace (%s, %s): a "
			"process in another container or namespace is on another node of that "
			"name, see npusim-node(1)",
			npu_counted(members, "member"), pid, net);
}

/* npu_text() */
static const char *share_text(const struct node *node, uint32_t share_id, const char *name)
{
	return name ? npu_text("the name \"%.64s\"", name)
		    : npu_text("share %u of node %.20s", share_id, node->name);
}

static void tell(const struct node *node, const struct share_record *share,
		 struct node_share_info *out)
{
	*out = (struct node_share_info){
		.memory = share->block == NODE_NONE ? NODE_NONE
						    : block_at(node, share->block).memory->index,
		.device = share->device,
		.offset = share->offset,
		.bytes = share->bytes,
		.exporter_pid = share->exporter_pid,
		.exporter_is_me = share_is_mine(node, share),
		.open = share->open,
	};
}

/* A free index, or NODE_NONE and a message. Indexes go round, in a table that stays at most half
 * full, so that an id does not come back soon. */
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
	if (control->share_count >= NODE_SHARES) {
		npu_message_set("node %s: %u blocks and notifies are exported, which is the limit",
				node->name, NODE_SHARES);
		return NODE_NONE;
	}
	index = control->share_next;
	do {
		index = index + 1 < control->share_limit ? index + 1 : 0;
	} while (share_is_live(node, index, &place));
	PUT(control->share_next, index);
	return index;
}

static uint32_t id_of(const struct node *node, const struct share_record *share)
{
	return (uint32_t)(share->generation % GENERATIONS + 1) << NODE_SHARE_LG2 |
	       (uint32_t)(share - node->shares);
}

/* It lives from where the block points at it, or `named` is set. NULL and a message. */
static struct share_record *new_share(struct node *node, const struct node_block *block,
				      uint64_t offset, uint64_t bytes, unsigned device)
{
	const uint32_t index = take_share(node);
	struct share_record *share = &node->shares[index];

	if (index == NODE_NONE)
		return NULL;
	if (block) {
		struct block_place place = block_at(node, block->id);

		block_unseen(node, &place);
	}
	PUT(node->control->shares_made, node->control->shares_made + 1);
	*share = (struct share_record){
		.generation = share->generation + 1,
		.number = node->control->shares_made,
		.block = block ? block->id : NODE_NONE,
		.block_generation = block ? block->generation : 0,
		.exporter = node->slot,
		.exporter_generation = node->generation,
		.exporter_pid = node->pid,
		.device = device,
		.offset = offset,
		.bytes = bytes,
	};
	PUT(node->control->share_count, node->control->share_count + 1);
	return share;
}

static struct share_record *find_share(struct node *node, uint32_t share_id, unsigned server,
				       struct block_place *out_place)
{
	uint32_t index = share_id & INDEX_MASK;
	struct share_record *share = &node->shares[index];

	return index < node->control->share_limit && !share->named &&
			       id_of(node, share) == share_id &&
			       share_is_live(node, index, out_place) &&
			       out_place->memory->server == server
		       ? share
		       : NULL;
}

/* out_place: of the block that it was made for, which need not live. */
static struct share_record *find_name(struct node *node, const char *name,
				      struct block_place *out_place)
{
	struct share_record *share;
	unsigned index;

	if (sscanf(name, "%8x", &index) != 1 || index >= node->control->share_limit)
		return NULL;
	share = &node->shares[index];
	if (!share->named || strcmp(share->name, name) != 0 ||
	    !member_is_live(node, share->exporter, share->exporter_generation))
		return NULL;
	if (share->bytes)
		*out_place = block_at(node, share->block);
	return share;
}

/* The share of that number and server, or of the name where that is not NULL. Else a message. */
static drvError_t look_up(struct node *node, uint32_t share_id, const char *name, unsigned server,
			  struct share_record **out, struct block_place *out_place)
{
	*out = name ? find_name(node, name, out_place)
		    : find_share(node, share_id, server, out_place);
	if (*out)
		return DRV_ERROR_NONE;
	if (name)
		return node_fail(
			DRV_ERROR_PARA_ERROR,
			"node %s has no name \"%.64s\": it was never made here, or its maker "
			"destroyed it or has ended%s",
			node->name, name, company_of(node));
	return node_fail(
		DRV_ERROR_INVALID_HANDLE,
		"%s has no share %u: it was never exported there, or its memory is freed%s",
		server_text(node, server), share_id, company_of(node));
}

/* The same of one of this process. */
static drvError_t look_up_own(struct node *node, uint32_t share_id, const char *name,
			      struct share_record **out)
{
	struct block_place place;
	drvError_t error = look_up(node, share_id, name, node->shape.server, out, &place);

	if (error != DRV_ERROR_NONE || share_is_mine(node, *out))
		return error;
	return node_fail(DRV_ERROR_IOCRL_FAIL,
			 "%s: only process %d, which exported it, may change who imports it, or "
			 "destroy it",
			 share_text(node, share_id, name), (*out)->exporter_pid);
}

/* What is said of an import, `what` in words, if that is not allowed. home: the exporter's server,
 * whose processes alone a list that is switched off lets in. */
static drvError_t check_allowed(const struct node *node, const struct share_record *share,
				unsigned home, const char *what)
{
	const struct allow_record *entry = find_allowed(node, share, node->pid, NULL);
	const bool listed = entry && entry->server == node->shape.server;

	if ((share->open && home == node->shape.server) || share_is_mine(node, share) ||
	    (listed && entry->start_time == node->start_time))
		return DRV_ERROR_NONE;
	if (listed)
		return node_fail(DRV_ERROR_IOCRL_FAIL,
				 "import of %s: pid %d was whitelisted before this process "
				 "started, so another process was meant (the number has been used "
				 "again); process %d must whitelist it now",
				 what, node->pid, share->exporter_pid);
	if (home != node->shape.server)
		return node_fail(
			DRV_ERROR_IOCRL_FAIL,
			"import of %s: process %d of server %u, which exported it, lets "
			"in a process of this server only by a list with an SDID "
			"(aclrtIpcMemImportPidInterServer, "
			"aclrtNotifySetImportPidInterServer: pid %d, SDID %u), which needs "
			"an export without the flag that disables the check",
			what, share->exporter_pid, home, node->pid,
			node_sdid(node->shape.server, 0));
	return node_fail(
		DRV_ERROR_IOCRL_FAIL,
		"import of %s: this process (pid %d) is not on the whitelist of process %d, which "
		"exported it; that process must add it (aclrtMemSetPidToShareableHandle, "
		"aclrtIpcMemSetImportPid, aclrtNotifySetImportPid) or export with the flag that "
		"disables the check",
		what, node->pid, share->exporter_pid);
}

/* The view is of memory that this process has mapped, or it goes. Lock not held. */
static drvError_t reach(struct node *node, struct node_block **block)
{
	struct memory *m = node->memory[(*block)->memory];

	if (m->base || memory_open(node, m))
		return DRV_ERROR_NONE;
	node_block_drop(node, *block);
	return DRV_ERROR_INVALID_HANDLE;
}

/* ---- numbers ---- */

drvError_t node_share_export(struct node *node, const struct node_block *block, unsigned device,
			     uint32_t *out_share_id)
{
	const struct share_record *share;
	struct block_place place;
	ENTERED(node, error, block_of_view(node, block, &place));

	if (error != DRV_ERROR_NONE)
		return error;
	if (place.record->share) {
		share = &node->shares[place.record->share - 1];
		return node_fail(DRV_ERROR_PARA_ERROR,
				 "this memory is exported already, by process %d, as share %u of "
				 "node %s; a block can be exported once: pass the first shareable "
				 "handle on, or free the memory and allocate it anew",
				 share->exporter_pid, id_of(node, share), node->name);
	}
	share = new_share(node, block, 0, 0, device);
	if (!share)
		return DRV_ERROR_NO_RESOURCES;
	*out_share_id = id_of(node, share);
	/* From here on it is shared. */
	PUT(place.record->share, (uint32_t)(share - node->shares) + 1);
	return DRV_ERROR_NONE;
}

static bool share_has_exporter(const struct node *node, const struct share_record *share,
			       const struct block_place *place)
{
	return !share->exporter_gone &&
	       member_is_live(node, share->exporter, share->exporter_generation) &&
	       block_is_held_by(place, share->exporter);
}

bool block_has_exporter(const struct node *node, uint32_t id, const struct block_record *record)
{
	/* Names may stand anywhere, the number is known. */
	uint32_t end = record->named ? node->control->share_limit : record->share;
	const struct share_record *share = node->shares;
	struct block_place place;

	if (!record->named && end > 0)
		share += end - 1;
	for (; share < node->shares + end; share++)
		if (share->block == id && block_find(node, id, share->block_generation, &place) &&
		    share_has_exporter(node, share, &place))
			return true;
	return false;
}

/* Within the server: the exporter lets this process in, and holds the block by its own view. */
static drvError_t check_local(const struct node *node, uint32_t share_id,
			      const struct share_record *share, const struct block_place *place)
{
	drvError_t error =
		check_allowed(node, share, node->shape.server, share_text(node, share_id, NULL));

	if (error != DRV_ERROR_NONE || share_has_exporter(node, share, place))
		return error;
	return node_fail(DRV_ERROR_BUSY,
			 "import of share %u of node %s: process %d, which exported it, has freed "
			 "the memory or has ended",
			 share_id, node->name, share->exporter_pid);
}

static drvError_t view_share(struct node *node, uint32_t share_id, unsigned server,
			     struct node_block **out)
{
	struct share_record *share;
	struct block_place place;
	ENTERED(node, error, look_up(node, share_id, NULL, server, &share, &place));

	if (error != DRV_ERROR_NONE)
		return error;
	if (place.record->closing)
		return node_fail(server == node->shape.server ? DRV_ERROR_BUSY
							      : DRV_ERROR_INVALID_HANDLE,
				 "import of share %u of %s: its memory is being freed", share_id,
				 server_text(node, server));
	if (server == node->shape.server)
		error = check_local(node, share_id, share, &place);
	if (error != DRV_ERROR_NONE)
		return error;
	*out = block_view(node, share->block, true);
	PUT(share->imported, 1);
	return DRV_ERROR_NONE;
}

drvError_t node_share_import(struct node *node, uint32_t share_id, unsigned server,
			     struct node_block **out)
{
	return view_share(node, share_id, server, out) ?: reach(node, out);
}

/* ---- names ---- */

/* It says which notify it is of: who opened that may close it after its maker has ended it. */
static void write_name(struct share_record *share, uint32_t index, unsigned server)
{
	uint64_t chance[2];
	unsigned device = share->bytes ? UINT32_MAX : server << 8 | share->device;

	if (getrandom(chance, sizeof(chance), 0) != sizeof(chance))
		memset(chance, 0, sizeof(chance)); /* index and number alone are unique */
	node_step();
	snprintf(share->name, sizeof(share->name), "%08x%08x%08x%08x%016" PRIx64 "%016" PRIx64,
		 index, (unsigned)share->number, device, (unsigned)share->offset, chance[0],
		 chance[1]);
}

drvError_t node_name_create(struct node *node, const struct node_block *block, uint64_t offset,
			    uint64_t bytes, unsigned device, char name[65])
{
	struct share_record *share;
	struct block_place place;
	ENTERED(node, error, block ? block_of_view(node, block, &place) : DRV_ERROR_NONE);

	if (error != DRV_ERROR_NONE)
		return error;
	share = new_share(node, block, offset, bytes, device);
	if (!share)
		return DRV_ERROR_NO_RESOURCES;
	write_name(share, (uint32_t)(share - node->shares), node->shape.server);
	if (block)
		PUT(place.record->named, 1);
	PUT(share->named, 1);
	memcpy(name, share->name, 65);
	return DRV_ERROR_NONE;
}

drvError_t node_name_destroy(struct node *node, const char *name)
{
	struct share_record *share;
	ENTERED(node, error, look_up_own(node, 0, name, &share));

	if (error == DRV_ERROR_NONE)
		share_end(node, share);
	return error;
}

static drvError_t use_name(struct node *node, const char *name, struct node_share_info *out_info,
			   struct node_block **out)
{
	struct share_record *share;
	struct block_place place;
	unsigned home, device;
	ENTERED(node, error, look_up(node, 0, name, 0, &share, &place));

	if (error != DRV_ERROR_NONE)
		return error;
	home = share->bytes ? place.memory->server : node->control->members[share->exporter].server;
	error = check_allowed(node, share, home, out ? "a named range of memory" : "a notify");
	if (error != DRV_ERROR_NONE)
		return error;
	if ((out == NULL) != (share->bytes == 0))
		return node_fail(DRV_ERROR_PARA_ERROR, "the name \"%.64s\" is that of %s", name,
				 share->bytes ? "a range of memory" : "a notify");
	if (out && (!block_find(node, share->block, share->block_generation, &place) ||
		    place.record->closing || !block_is_held_by(&place, share->exporter)))
		return node_fail(DRV_ERROR_BUSY,
				 "the memory of the name \"%.64s\" has been freed by process %d",
				 name, share->exporter_pid);
	device = home == node->shape.server ? share->device : SIM_PEER(home, share->device);
	if (!out)
		error = notify_open_locked(node, device, (uint32_t)share->offset);
	if (error != DRV_ERROR_NONE)
		return error;
	tell(node, share, out_info);
	if (out)
		*out = block_view(node, share->block, true);
	else
		out_info->device = device;
	return DRV_ERROR_NONE;
}

drvError_t node_name_import(struct node *node, const char *name, struct node_share_info *out_info,
			    struct node_block **out)
{
	return use_name(node, name, out_info, out) ?: out ? reach(node, out) : DRV_ERROR_NONE;
}

bool node_name_of_notify(const struct node *node, const char *name, unsigned *out_device,
			 uint32_t *out_id)
{
	unsigned device, server;

	if (sscanf(name, "%*16x%8x%8x", &device, out_id) != 2)
		return false;
	server = device >> 8;
	device &= 0xff;
	*out_device = server == node->shape.server ? device : SIM_PEER(server, device);
	return server < node->shape.servers && device < node->shape.devices &&
	       *out_id < NODE_NOTIFIES;
}

/* ---- who may import ---- */

/* look_up_own(), where the other way to say who may import has not been chosen. */
static drvError_t look_up_to_let_in(struct node *node, uint32_t share_id, const char *name,
				    bool to_open, struct share_record **out)
{
	drvError_t error = look_up_own(node, share_id, name, out);

	if (error != DRV_ERROR_NONE || !(to_open ? (*out)->allowed : (*out)->open))
		return error;
	return node_fail(DRV_ERROR_OPER_NOT_PERMITTED,
			 to_open ? "%s: processes have been whitelisted, so the whitelist cannot "
				   "be disabled any more"
				 : "%s: its whitelist is disabled, so no process can be added",
			 share_text(node, share_id, name));
}

drvError_t node_share_allow(struct node *node, uint32_t share_id, const char *name, unsigned server,
			    const int *pids, uint32_t count)
{
	drvError_t error = check_pids(pids, count);

	if (error == DRV_ERROR_NONE && !server_has(node, server, 0))
		error = node_fail(DRV_ERROR_INVALID_HANDLE, "no process of %s is there",
				  server_text(node, server));
	for (uint32_t i = 0; error == DRV_ERROR_NONE && i < count; i++) {
		struct process_stat stat = { .start_time = 0 }; /* of no process */
		struct share_record *share;

		if (pids[i] > 0 && !process_stat(pids[i], 0, &stat) && errno != ENOENT &&
		    errno != ESRCH)
			return node_fail(DRV_ERROR_NO_RESOURCES,
					 "whitelist: process %d cannot be looked at: %s", pids[i],
					 strerror(errno));
		ENTERED(node, failed, look_up_to_let_in(node, share_id, name, false, &share));
		if (failed == DRV_ERROR_NONE && pids[i] != 0)
			failed = allow_add(node, share, pids[i], stat.start_time, server);
		error = failed;
	}
	return error;
}

drvError_t node_share_set_open(struct node *node, uint32_t share_id, const char *name)
{
	struct share_record *share;
	ENTERED(node, error, look_up_to_let_in(node, share_id, name, true, &share));

	if (error == DRV_ERROR_NONE)
		PUT(share->open, 1);
	return error;
}

/* ---- what it is, and who holds it ---- */

drvError_t node_share_info(struct node *node, uint32_t share_id, const char *name,
			   struct node_share_info *out)
{
	struct share_record *share;
	struct block_place place;
	ENTERED(node, error, look_up(node, share_id, name, node->shape.server, &share, &place));

	if (error == DRV_ERROR_NONE)
		tell(node, share, out);
	return error;
}

/* It is gone, but its record is no other. */
static bool nobody_imported(const struct node *node, uint32_t share_id)
{
	const struct share_record *share = &node->shares[share_id & INDEX_MASK];

	return share->number && !share->named && id_of(node, share) == share_id && !share->imported;
}

drvError_t node_share_holders(struct node *node, uint32_t share_id, const char *name, int *pids,
			      uint32_t *count)
{
	struct share_record *share;
	struct block_place place;
	uint32_t found = 0;
	ENTERED(node, error, look_up(node, share_id, name, node->shape.server, &share, &place));

	if (error != DRV_ERROR_NONE)
		return error == DRV_ERROR_INVALID_HANDLE && nobody_imported(node, share_id)
			       ? DRV_ERROR_NOT_EXIST
			       : error;
	if (!block_find(node, share->block, share->block_generation, &place))
		return DRV_ERROR_INVALID_HANDLE;
	for (unsigned slot = 0; slot < node->control->member_limit; slot++) {
		if (!block_is_held_by(&place, slot) || member_is_dead(node, slot))
			continue;
		if (found < *count)
			pids[found] = node->control->members[slot].pid;
		found++;
	}
	*count = found;
	return DRV_ERROR_NONE;
}

static drvError_t open_marked(const struct node *node, uint32_t id, int *out)
{
	struct flock lock = block_fd_lock(id, F_RDLCK);
	char path[40];
	int fd;

	if (!own_file_is_open(&node->file))
		return node_fail(DRV_ERROR_FILE_OPS,
				 "node %s: no descriptor can be made of this memory: the program "
				 "has closed descriptor %d, which npusim had opened",
				 node->name, node->file.fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->file.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && lseek(fd, (off_t)(NODE_FD_BASE + id), SEEK_SET) >= 0 &&
	    fcntl(fd, F_OFD_SETLK, &lock) == 0) {
		*out = fd;
		return DRV_ERROR_NONE;
	}
	npu_message_set("node %s: no descriptor can be made of this memory: %s", node->name,
			strerror(errno));
	if (fd >= 0)
		close(fd);
	return DRV_ERROR_FILE_OPS;
}

drvError_t node_fd_export(struct node *node, const struct node_block *block, int *out_fd)
{
	struct block_place place;
	ENTERED(node, error,
		block_of_view(node, block, &place) ?: open_marked(node, block->id, out_fd));

	if (error == DRV_ERROR_NONE) {
		PUT(place.record->fd, 1);
		block_unseen(node, &place);
	}
	return error;
}

/* Lock held. */
static bool find_fd_block(const struct node *node, int fd, uint32_t id, struct block_place *out)
{
	const struct own_file file = own_file(fd);

	return own_file_is(&file, node->control->head.device, node->control->head.inode) &&
	       id < node->id_count &&
	       block_find(node, id, block_at(node, id).record->generation, out) &&
	       out->memory->server == node->shape.server && out->record->fd &&
	       !out->record->closing && block_fd_is_open(node, id);
}

drvError_t node_fd_import(struct node *node, int fd, struct node_block **out)
{
	const off_t at = lseek(fd, 0, SEEK_CUR) - (off_t)NODE_FD_BASE;
	const uint32_t id = at < 0 || at > UINT32_MAX ? NODE_NONE : (uint32_t)at;
	struct block_place place;
	ENTERED(node, error, DRV_ERROR_NONE);

	if (error != DRV_ERROR_NONE)
		return error;
	if (!find_fd_block(node, fd, id, &place))
		return node_fail(DRV_ERROR_FILE_OPS,
				 "file descriptor %d stands for no memory of node %s: it is "
				 "closed, something else, or of another node or server",
				 fd, node->name);
	if (holders_are_none_but(&place, NODE_NONE) && node->control->fd_kept)
		PUT(node->control->fd_kept, node->control->fd_kept - 1);
	*out = block_view(node, id, true);
	return DRV_ERROR_NONE;
}
