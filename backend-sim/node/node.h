/* SPDX-License-Identifier: Apache-2.0
 *
 * The node: the simulated server, or the servers of one supernode, that processes share, for the
 * driver model above it and for `npusim node`. Owns what on hardware lies in the devices and in the
 * driver's kernel part: the memories (HBM of every device, memory of the host), their frames, the
 * blocks that hold frames, the registry of shared blocks, and the list of member processes. It
 * knows nothing of virtual addresses, and calls nobody but the C library, GLib and runtime/base.
 * How its own files build upon each other stands in records.h.
 *
 * No daemon: all state lies in one memfd that the members map; a newcomer finds a live member and
 * opens it through /proc. A member that dies at any instruction, the node's lock held or not, is
 * noticed by the next call of any other, which gives back all that it held. Every function but
 * node_join() may be called from any thread of the process.
 */
#ifndef NPUSIM_NODE_H
#define NPUSIM_NODE_H

#include "npusim/driver.h"
#include "sim.h"

struct node;

#define NODE_FRAME_LG2    21
#define NODE_FRAME_BYTES  (UINT64_C(1) << NODE_FRAME_LG2)
#define NODE_GIANT_FRAMES 512u

/* The SDID of a device of a supernode: server, chip, die and number in one. */
static inline uint32_t node_sdid(uint32_t server, uint32_t device)
{
	return server << 22 | (device >> 1) << 18 | (device & 1) << 16 | device;
}

/* The first bit from `from` on that is set (flip 0), or clear (flip ~0); `end` for none. */
static inline unsigned bits_next(const uint64_t *bits, unsigned from, unsigned end, uint64_t flip)
{
	while (from < end) {
		uint64_t word = (bits[from / 64] ^ flip) >> (from % 64);

		if (word != 0) {
			from += (unsigned)__builtin_ctzll(word);
			return from < end ? from : end;
		}
		from += 64 - from % 64;
	}
	return end;
}

/* Where the clear bits begin that end at `end`, none of them before `from`. */
static inline unsigned bits_back(const uint64_t *bits, unsigned from, unsigned end)
{
	while (end > from) {
		unsigned last = end - 1;
		uint64_t word = bits[last / 64] << (63 - last % 64);

		if (word != 0) {
			end -= (unsigned)__builtin_clzll(word);
			return end > from ? end : from;
		}
		end = last / 64 * 64;
	}
	return from;
}

/* Where the first run of `count` bits that are clear begins in [from, end); `end`: there is none,
 * and *longest is the longest. */
static inline unsigned bits_run(const uint64_t *bits, unsigned from, unsigned end, unsigned count,
				unsigned *longest)
{
	unsigned stop;

	*longest = 0;
	for (from = bits_next(bits, from, end, UINT64_MAX); from < end;
	     from = bits_next(bits, stop, end, UINT64_MAX)) {
		stop = bits_next(bits, from, end, 0);
		if (stop - from >= count)
			return from;
		*longest = stop - from > *longest ? stop - from : *longest;
	}
	return end;
}

/* The bits of [*from, end) that lie in one word of 64; *from is moved behind them. */
static inline uint64_t bits_of_word(unsigned *from, unsigned end)
{
	unsigned bit = *from % 64, n = end - *from < 64 - bit ? end - *from : 64 - bit;

	*from += n;
	return UINT64_MAX >> (64 - n) << bit;
}

struct node_config {
	const char *name; /* NPUSIM_NODE */
	char soc_name[32];
	unsigned devices;   /* of a server: 1 .. 16 */
	unsigned servers;   /* of the supernode; 1: the node is one server */
	unsigned server;    /* this process's: 0 .. servers - 1 */
	uint64_t hbm_bytes; /* of a device */
	uint64_t usable_frames;
	uint64_t host_bytes;
	bool explicit_shape; /* the user named SoC, devices, HBM or servers: they must agree with a
				node that runs already */
};
/* Joins the node of that name and this user, or makes it. On success config holds the node's real
 * shape (of its first member). False and *error (free()): names the node, its shape, who runs it,
 * what was asked for, what to do. */
bool node_join(struct node_config *config, struct node **out, char **error);
/* The shape of the node of that name, without joining it. False: nobody runs it, or it cannot be
 * looked at. */
bool node_find_shape(const char *name, struct node_config *out);
/* Gives back all that this process holds, and leaves: the memories are not mapped any more. NULL is
 * allowed. */
void node_leave(struct node *node);
/* Before the caller registers a handler that takes, at a fork, a lock under which it joins nodes:
 * the one registered first is called last. */
void node_watch_forks(void);
/* True in a child that was forked after node_join(): nothing of the node may be used there. */
bool node_is_forked(const struct node *node);

/* Where the memories lie in this process. Memories are numbered as in sim/job.h. Those of its own
 * server are mapped at join, untouched pages cost nothing; others at the first import from them. */
const struct sim_memory *node_memory(const struct node *node);
/* The node's memfd, in which a memory (device or SIM_NODE_HOST) begins at *out_offset, for mmap()
 * of parts of it at other addresses. -1 and a message: the program has closed it, and no other
 * process has it. */
int node_memory_fd(struct node *node, unsigned memory, uint64_t *out_offset);

/* ---- blocks: physical allocations ---- */

struct node_extent {
	uint64_t frame; /* first frame: offset in the memory >> NODE_FRAME_LG2 */
	uint64_t count;
};
/* This process's view of a block. Immutable after it was made; owned by the caller, freed by
 * node_block_drop(). */
struct node_block {
	uint32_t id; /* index in the node's table */
	uint32_t generation;
	unsigned memory; /* device, SIM_NODE_HOST, or SIM_PEER() of another server's */
	uint64_t frames;
	bool giant; /* made of 1 GiB pages: every extent is of 512 frames, or more, aligned to that
		     */
	bool imported;    /* the view was made by an import */
	unsigned leaving; /* the holder's: how many still reach the frames that do not count */
	unsigned extent_count;
	struct node_extent extents[];
};
/* Takes frames; they read as zeros. DRV_ERROR_OUT_OF_MEMORY: too few free frames (giant: too few
 * free, aligned runs of 512), message with what is free, what is asked for, and the largest holders
 * (pid, bytes). Waits for frames that other processes clean; the caller, for its own threads. */
drvError_t node_block_create(struct node *node, unsigned memory, uint64_t frames, bool giant,
			     struct node_block **out);
/* The same for page tables: one frame of the memory's reserved part, not counted as used. */
drvError_t node_table_frame(struct node *node, unsigned memory, struct node_block **out);
/* Ends this process's hold through this view. The frames go (and read as zeros from then on) when
 * no process holds the block. */
void node_block_drop(struct node *node, struct node_block *block);
/* The same in two steps. True: node_block_clean() is to follow, which takes as long as the kernel
 * takes to free pages that were touched. Frames between the two count as free, and who needs them
 * waits for the second step. */
bool node_block_leave(struct node *node, struct node_block *block);
void node_block_clean(struct node *node, struct node_block *block);
/* The block has addresses, or has had. Cheap; once per map. */
void node_block_map(struct node *node, const struct node_block *block);
/* It has been or may be written, too, from now on: its frames must be cleaned when they go. */
void node_block_touch(struct node *node, const struct node_block *block);

struct node_usage {
	uint64_t total_frames, free_frames; /* usable by programs */
	uint64_t own_frames;                /* held by this process */
	uint64_t own_peak_frames;           /* the most that own_frames has been */
	uint64_t free_giants;               /* 1 GiB pages that could be had now */
	uint64_t largest_free_run;          /* frames */
};
void node_usage(struct node *node, unsigned memory, struct node_usage *out);
/* Its own_peak_frames alone; takes no lock. */
uint64_t node_own_peak(struct node *node, unsigned memory);

/* ---- sharing: blocks by a number, ranges of legacy IPC memory (halShmem*) and notifies
 * (halShrId*) by a name ---- */

/* The 64-bit shareable value of acl_api: device id in bits 39-32, share id in bits 31-0, unique in
 * the node and not used again soon. */

/* Exports a block. DRV_ERROR_PARA_ERROR: exported already ("exporting twice"). device: the
 * exporter's device id. */
drvError_t node_share_export(struct node *node, const struct node_block *block, unsigned device,
			     uint32_t *out_share_id);
/* Makes a name (up to 64 characters + NUL into name[65]) for a range of a block; block NULL: for
 * the notify `offset` of the device, `bytes` 0. */
drvError_t node_name_create(struct node *node, const struct node_block *block, uint64_t offset,
			    uint64_t bytes, unsigned device, char name[65]);
drvError_t node_name_destroy(struct node *node, const char *name);

/* The next functions are about a share of this server, or about the name where that is not NULL.
 * Unknown: INVALID_HANDLE, a name PARA_ERROR. */

/* Adds processes of a server to the whitelist, with their start times. Not the exporter:
 * IOCRL_FAIL; whitelist switched off: OPER_NOT_PERMITTED; all pids 0: PARA_ERROR; no process of
 * that server is there: INVALID_HANDLE. */
drvError_t node_share_allow(struct node *node, uint32_t share_id, const char *name, unsigned server,
			    const int *pids, uint32_t count);
/* Switches the whitelist off. After node_share_allow(): OPER_NOT_PERMITTED. */
drvError_t node_share_set_open(struct node *node, uint32_t share_id, const char *name);
struct node_share_info {
	unsigned memory; /* where the pages are */
	unsigned device; /* exporter's device; of an opened notify as node_notify_take() has it */
	uint64_t offset, bytes; /* of a named range in the block; a notify's id, and 0 */
	pid_t exporter_pid;
	bool exporter_is_me;
	bool open; /* the whitelist is switched off */
};
drvError_t node_share_info(struct node *node, uint32_t share_id, const char *name,
			   struct node_share_info *out);
/* The processes that hold what it stands for: the first of them in pids[*count]; *count: how many
 * there are. NOT_EXIST: a share that is gone, and that nobody has imported. */
drvError_t node_share_holders(struct node *node, uint32_t share_id, const char *name, int *pids,
			      uint32_t *count);

/* A view of a shared block of that server for this process: one more hold. Unknown:
 * INVALID_HANDLE. In this server: not whitelisted, or whitelisted before this process started:
 * IOCRL_FAIL; no process holds the exporter's side any more: BUSY; the rules about importing in the
 * exporting process are the caller's. Of another server's, anybody who holds the block will do, and
 * whitelists are not looked at. */
drvError_t node_share_import(struct node *node, uint32_t share_id, unsigned server,
			     struct node_block **out);
/* The same by name. out NULL: of a notify, which this process uses once more. */
drvError_t node_name_import(struct node *node, const char *name, struct node_share_info *out_info,
			    struct node_block **out);
/* Which notify a name stands for, or stood for before its maker ended it. */
bool node_name_of_notify(const struct node *node, const char *name, unsigned *out_device,
			 uint32_t *out_id);

/* ---- blocks as file descriptors ---- */

/* A descriptor that stands for the block, as many times as asked for: it passes over sockets, is
 * inherited, and keeps the block alive, in whatever process it is, until the last copy of it is
 * closed. Closed by the caller. */
drvError_t node_fd_export(struct node *node, const struct node_block *block, int *out_fd);
/* A view of the block for this process: one more hold. FILE_OPS: it is no descriptor of this node.
 * The descriptor stays the caller's. */
drvError_t node_fd_import(struct node *node, int fd, struct node_block **out);

/* ---- notifies: ids of a device that processes share, and whether each is recorded. `device` is
 * one of this server, or SIM_PEER() of one of another ---- */

/* The next free id from `first` on, not recorded. NO_NOTIFY_RESOURCES: there is none. */
drvError_t node_notify_take(struct node *node, unsigned device, uint32_t first, uint32_t *out_id);
/* This process uses the id. Takes no lock. */
bool node_notify_is_used(struct node *node, unsigned device, uint32_t id);
/* One use of this process less; true: it uses the id still. */
bool node_notify_close(struct node *node, unsigned device, uint32_t id);
/* 1: recorded. Changed by any process at any time, without a lock. */
uint32_t *node_notify_register(struct node *node, unsigned device, uint32_t id);

/* ---- room in the host's memory ---- */

/* How many bytes this process could write to pages not yet touched before the host or its control
 * group runs out: for a clear message instead of a kill. An estimate, less than age_ms old, for
 * which files may be read; UINT64_MAX where nothing is known. Any thread. */
uint64_t node_host_room_bytes(unsigned age_ms);
#define NODE_ROOM_MS 50 /* is recent enough */
/* How much this process may have at most: the machine's memory, or less where a control group (v1
 * or v2) allows less. `root`: "", or the folder where a test has its own /proc and /sys. */
uint64_t node_host_limit_bytes(const char *root);

/* ---- for layers that watch (watch.c) ---- */

/* A bit for each 8 bytes of the device's memory that has the block: somebody wrote there since the
 * block was made. Shared by all processes that tell; the first call, with or without a block, says
 * that this one does. NULL: somebody has, or had, the block who does not; no device's. */
uint64_t *node_written(struct node *node, const struct node_block *block);
/* From now on somebody may write it who does not tell. */
void node_written_give_up(struct node *node, const struct node_block *block);
/* This process begins to write [begin, end) of the block; *out: how to say that it is done, and who
 * else writes there. A mark of 0: nobody else has the block, or too much is on its way. */
drvError_t node_write_begin(struct node *node, const struct node_block *block, uint64_t begin,
			    uint64_t end, struct npu_write *out);
/* What has the mark is done, mark 0: all; write->pid: who began to write there meanwhile, or 0. */
drvError_t node_write_end(struct node *node, struct npu_write *write);

/* Who lists the node asks each process what it holds, and a thread of the node's calls `answer`:
 * g_free(), a line for each kind, memory and call stack: kind, memory, how many, bytes and who made
 * them, separated by tabs. NULL: it cannot tell now. */
#define NODE_HOLDS_WORDS 5
void node_on_question(struct node *node, char *(*answer)(void *arg), void *arg);
/* node_leave() waits for the end of that thread. */
bool node_is_leaving(const struct node *node);

/* ---- for `npusim node`: works without joining ---- */

struct node_member_info {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot, as in /proc/PID/stat */
	char command[64];
	unsigned server;
	uint64_t frames[SIM_NODE_MAX]; /* held, by memory of its server */
	uint64_t remote_frames;        /* of other servers' memories */
	uint32_t blocks, exported, imported;
	uint64_t kept_frames; /* of imported ones whose exporter has freed them, or is gone */
	pid_t kept_pid;       /* the exporter; 0: several */
	char *holds;          /* its answer to what it holds: node_on_question(); NULL: none yet */
	bool gone;            /* it has ended meanwhile */
};
struct node_info {
	char name[64];
	struct node_config shape; /* devices 0: it cannot be joined, only its processes are known */
	char refused[512];        /* then: why */
	uint64_t lost;            /* bit k: server k was stopped */
	struct node_usage (*usage)[SIM_NODE_MAX]; /* by server */
	unsigned member_count;
	struct node_member_info *members;
};
/* Lists this user's nodes, or (not NULL) the one of that name, whose processes are not asked what
 * they hold; recovers what dead members left. False and *error (free()) otherwise. */
bool node_list(const char *only, struct node_info **out, unsigned *out_count, char **error);
void node_list_free(struct node_info *list, unsigned count);
/* Ends a node: its members get SIGTERM, then SIGKILL after 2 s. */
bool node_reset(const char *name, char **error);
/* The same for one server: its memory is lost, also to those who hold it, and it does not come back
 * while the supernode runs. */
bool node_stop_server(const char *name, unsigned server, char **error);

/* ---- other servers ---- */

/* Looks for servers that were stopped: their memory is not reached any more. Returns them, bit k:
 * server k; cheap. */
uint64_t node_lost_servers(struct node *node);
/* What processes of such servers had imported from this one, and the exporter has freed, is theirs
 * no more: the driver looks every 60 s. */
void node_scan(struct node *node);

#endif
