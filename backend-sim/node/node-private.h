/* SPDX-License-Identifier: Apache-2.0
 *
 * The node inside: what lies in the control segment, and what its parts offer each other.
 *
 *   node.c           joining and leaving, the mappings
 *   node-discover.c  finding members: socket names, opening their descriptors, the start-up lock
 *   node-process.c   what /proc says about a process
 *   node-member.c    the member table, who is alive, the node's lock
 *   node-recover.c   what dead members left
 *   node-frames.c    free and used frames
 *   node-block.c     blocks
 *   node-share.c     exported blocks;  node-name.c  named ranges;  node-allow.c  whitelists
 *   node-list.c      reports on nodes, and ending one
 *   node-host.c      room in the host's memory
 *   node-fd.c        exports that are file descriptors
 *   node-file.c      memfds, their descriptors and mappings
 *   node-pocket.c    freed blocks that a process keeps for the next ones
 *
 * The truth and what is derived. A member may die between any two instructions, the lock held. So
 * the truth is little, and each change of it takes effect by one store:
 *   - a block lives where the bit of its first frame is set in `live`; its records are complete
 * before the bit is set;
 *   - a living block has at least one holder, or a descriptor; a member holds it where its bit is
 * set in `holders`;
 *   - a share lives while its block does and the block points back at it; a name while its state
 * says so;
 *   - a whitelist is the chain that a living share or name points at.
 * Which frames are used, how many are free, which whitelist entries are free: derived, and built
 * anew from the truth by whoever finds the lock in the hands of a dead member. Everything that is
 * not in the truth is thereby undone.
 */
#ifndef NPUSIM_NODE_PRIVATE_H
#define NPUSIM_NODE_PRIVATE_H

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/base.h"
#include "node.h"

#define NODE_MAGIC        UINT64_C(0x31306d697375706e)
#define NODE_VERSION      3u
#define NODE_NAME_MAX     63u
#define NODE_FILE_NAME    128 /* of a memfd */
#define NODE_MEMBERS      256u
#define NODE_HOLDER_WORDS (NODE_MEMBERS / 64)
#define NODE_SHARE_LG2    18 /* share id: generation above, index in the table below */
#define NODE_SHARES       (1u << NODE_SHARE_LG2)
#define NODE_NAMES        16384u
#define NODE_ALLOWS       (1u << 20)
#define NODE_POCKET       8u
#define NODE_ALLOW_MAX    65535u /* of one share: the driver's limit */
#define NODE_NONE         UINT32_MAX

/* Every store into the control segment that another member relies on. Kept in program order; tests
 * die between any two. */
#ifdef NODE_STEPS
void node_step(void);
#else
static inline void node_step(void)
{
}
#endif
#define PUT(place, value)                                              \
	do {                                                           \
		node_step();                                           \
		__atomic_store_n(&(place), (value), __ATOMIC_RELEASE); \
	} while (0)
#define GET(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)

/* ---- the control segment ---- */

enum member_state { MEMBER_FREE, MEMBER_LIVE };

/* A process. Only a newcomer, under the start-up lock, takes a free entry; only the holder of the
 * node's lock frees it. */
struct member {
	uint32_t state;
	uint32_t generation;
	uint32_t left;    /* the process makes no more calls: it need not be dead to be gone */
	uint32_t visitor; /* only looks: not listed */
	int32_t pid;
	int32_t control_fd;
	int32_t memory_fd[SIM_NODE_MAX];
	uint64_t start_time;
	char command[64];
	struct robust_list_head robust; /* pointers of that process, for the kernel */
	struct robust_list robust_entry;
	uint64_t pocket[NODE_POCKET] __attribute__((aligned(64))); /* node-pocket.c */
};

struct extent_record { /* valid at the first frame of an extent */
	uint32_t count;
	uint32_t next; /* first frame of the next extent, NODE_NONE at the end */
};

struct block_record { /* valid at the first frame of a block */
	uint64_t holders[NODE_HOLDER_WORDS];
	uint32_t generation;
	uint32_t frames;
	uint32_t extent_count;
	uint32_t share; /* index + 1 */
	uint8_t giant;
	uint8_t touched;
	uint8_t closing; /* its holder is cleaning it, then it goes: no more imports */
	uint8_t fd;      /* was exported as a descriptor */
	uint8_t named;   /* a name was made for a part of it */
	char tag[35];
};

struct share_record {
	uint32_t generation;
	uint32_t block, block_generation;
	uint32_t exporter, exporter_generation; /* member */
	int32_t exporter_pid;
	uint32_t exporter_gone; /* it dropped its own views, and holds imports of the block at most
				 */
	uint32_t device;
	uint32_t open;
	uint32_t allow; /* index + 1 */
};

struct name_record {
	uint32_t state; /* 0 or 1 */
	uint32_t generation;
	uint32_t block, block_generation;
	uint32_t exporter, exporter_generation;
	int32_t exporter_pid;
	uint32_t device;
	uint32_t open;
	uint32_t allow; /* index + 1 */
	uint64_t offset, bytes;
	char text[72];
};

struct allow_record { /* a process that may import */
	int32_t pid;
	uint32_t next;       /* index + 1 */
	uint64_t start_time; /* of the process that had the pid then; 0: there was none */
};

struct memory_state {
	uint64_t device, inode; /* of the memfd: what a newcomer opened is what was meant */
	/* derived */
	uint64_t free_frames;    /* usable ones */
	uint64_t closing_frames; /* usable ones of closing blocks */
	uint32_t free_giants;
	uint32_t hint; /* a giant that is partly used, or NODE_NONE */
};

struct control {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t segment_bytes;
	uint64_t device, inode; /* of this segment's memfd */
	char name[NODE_NAME_MAX + 1];
	char soc_name[32];
	uint32_t devices;
	uint64_t hbm_bytes, usable_frames, host_bytes;

	uint32_t lock __attribute__((aligned(64))); /* owner, see node-member.c */
	uint32_t member_limit;                      /* no member at or above */
	uint32_t share_limit, share_next, share_count;
	uint32_t name_limit, name_next;
	uint32_t allow_top,
		allow_free; /* derived: first never used; chain of free ones, index + 1 */
	uint32_t fd_kept;   /* derived: blocks that descriptors alone keep */

	/* The thread that lives as long as the member's process; FUTEX_OWNER_DIED, set by the
	 * kernel, when it ended. */
	uint32_t alive[NODE_MEMBERS] __attribute__((aligned(64)));
	struct member members[NODE_MEMBERS];
	struct memory_state memories[SIM_NODE_MAX];
};

/* ---- this process's side ---- */

/* A descriptor of ours. Programs close descriptors that are not theirs, and open others under the
 * same number. */
struct own_file {
	int fd;
	uint64_t device, inode;
};

struct memory {
	unsigned index;
	uint32_t frames, usable;
	uint32_t id_base; /* block id = id_base + first frame */
	struct memory_state *state;
	uint64_t *used, *live;
	uint16_t *giant_used; /* used frames of each 512, usable ones */
	struct extent_record *extents;
	struct block_record *blocks;
	unsigned char *base;
	uint64_t bytes;
	uint64_t own_frames, own_peak_frames;
	struct own_file file;
};

struct view_count {
	uint32_t views;
	uint32_t own; /* of them, not made by an import */
};

struct node {
	struct node_config shape;
	char name[NODE_NAME_MAX + 1];
	pid_t pid;
	uint64_t start_time;
	uint32_t *fork_mark; /* reads 0 in a forked child; NULL: compare pids */

	struct control *control;
	uint64_t control_bytes;
	struct own_file control_file, socket_file;

	unsigned slot;
	uint32_t generation, lock_id;
	pthread_t service;
	sem_t service_stop;
	bool serving;
	int cancel_state;              /* of the thread that has the lock */
	uint32_t waited[NODE_MEMBERS]; /* words of `alive` whose deaths have been waited for */

	struct memory *memory[SIM_NODE_MAX]; /* NULL where there is none */
	struct memory memories[SIM_NODE_MAX];
	struct sim_memory sim_memory;
	struct share_record *shares;
	struct name_record *names;
	struct allow_record *allows;
	struct view_count *views; /* by block id, under the node's lock */
	struct node_block *pocket_views[NODE_POCKET];
	uint64_t pocket_keys[NODE_POCKET];
	uint32_t id_count;
};

struct layout {
	uint64_t used, live, giant_used, extents, blocks; /* of one memory, relative to its start */
	uint64_t bytes;
};

/* ---- node.c */

/* The name of the control segment's memfd. */
void node_control_name(const char *name, char out[NODE_FILE_NAME]);
/* Joins a node that runs, to look at it. NULL and *error where there is none any more (*gone) or it
 * cannot be. */
struct node *node_attach(const char *name, bool *gone, char **error);
void *node_alloc(size_t bytes); /* zeros; never NULL */
char *node_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- node-file.c */

struct own_file own_file(int fd);
bool own_file_is(const struct own_file *file, uint64_t device, uint64_t inode);
bool own_file_is_open(const struct own_file *file);
/* Closes it, if it is open; what the program has under the number stays. */
void own_file_close(struct own_file *file);
/* A sealed memfd of that size. -1 and *error. */
int file_make(const char *name, uint64_t bytes, char **error);
/* Maps it, not for children; at NULL: anywhere. NULL and *error. */
void *file_map(const char *name, int fd, uint64_t bytes, void *at, char **error);
/* Where an earlier membership had a memory of that size; NULL: nowhere. */
void *range_take(uint64_t bytes);
void range_give(void *base, uint64_t bytes);
/* In a child: what its parent had is not there, and may be something else. */
void ranges_forget(void);

/* ---- node-process.c */

struct process_stat {
	char state;
	uint32_t flags, threads;
	uint64_t start_time;
};
/* tid 0: the process itself. False and errno: ENOENT or ESRCH, there is no such process; else it
 * cannot be seen. */
bool process_stat(pid_t pid, pid_t tid, struct process_stat *out);
/* It is on its way out, from where it does not return to its program, or is no more. */
bool thread_has_ended(pid_t pid, pid_t tid);
/* False: that process has ended for certain. */
bool process_is_same(pid_t pid, uint64_t start_time);
uint64_t process_start_time(pid_t pid); /* 0: none */
void process_command(pid_t pid, char *out, size_t size);
/* True when no thread of the process of that start time can run the program's code any more: none
 * is left, it is on its way out, or another program runs in it, whose descriptor `fd` is not the
 * file (device, inode). */
bool process_is_gone(pid_t pid, uint64_t start_time, int fd, uint64_t device, uint64_t inode);

/* ---- node-discover.c */

struct candidate {
	char name[NODE_NAME_MAX + 1];
	pid_t pid;
	int fd;
};
bool node_name_is_valid(const char *name);
/* Members of the node (of all of this user's with NULL) by what the kernel lists; none of them need
 * live. free(). False and errno: it cannot be looked at. */
bool node_discover(const char *name, struct candidate **out, unsigned *out_count);
/* The descriptor `fd` of the process, opened again; -1 and errno: ENOENT or ESRCH, it is not there.
 * Opens nothing but a memfd of that name that is ours. */
int node_open_descriptor(pid_t pid, int fd, const char *file);
/* The socket by which others find the member; -1 and errno. */
int node_announce(const char *name, pid_t pid, int control_fd);
/* One newcomer at a time. False and *error. */
bool node_startup_lock(const char *name, char **error);
void node_startup_unlock(void);

/* ---- node-member.c */

/* Takes an entry of the member table for this process, alive from then on. Start-up lock held. */
bool member_add(struct node *node, bool visitor, char **error);
/* Ends the membership: nothing may be held. */
void member_remove(struct node *node);
/* Finds those whose processes are gone though the kernel has not said so. */
void member_check_all(struct node *node);
bool member_is_dead(const struct node *node, unsigned slot);
/* Dead, and none of its threads runs any more. */
bool member_is_gone(const struct node *node, unsigned slot);
/* Lock held, and nothing held by that member. */
void member_free(struct node *node, unsigned slot);
bool member_is_live(const struct node *node, unsigned slot, uint32_t generation);

void node_lock(struct node *node);
void node_unlock(struct node *node);
/* The entry of every function: the lock is held, what dead members left is back. Else PROCESS_EXIT
 * and a message. */
drvError_t node_enter(struct node *node);
/* True if this process may go on without entering: it is a member, and nobody is dead. */
bool node_is_quiet(const struct node *node);

/* ---- node-recover.c */

/* Builds all that is derived from the truth. Lock held. */
void node_rebuild(struct node *node);
/* Lock held at entry and return; let go while frames are cleaned. */
void node_recover(struct node *node);
/* Makes the frames of a closing block read as zeros. Lock not needed. */
void node_clean(struct node *node, uint32_t id);

/* ---- node-pocket.c */

/* A block of that kind from this process's pocket, without the node's lock; NULL: there is none. */
struct node_block *pocket_take(struct node *node, unsigned memory, uint64_t frames, bool giant,
			       const char *tag);
/* Keeps the block in the pocket, without the node's lock; false: it is not one for the pocket, or
 * that is full. */
bool pocket_put(struct node *node, struct node_block *block);
void pocket_end(struct node *node);
/* Lock held: what lies in the pocket of one member, or of all, is free. */
void pocket_empty(struct node *node, unsigned slot);
void pockets_empty(struct node *node);
/* The part of node_rebuild(). */
void pockets_rebuild(struct node *node);

/* ---- node-fd.c: lock held */

/* True if a process has, or a socket carries, a descriptor of the block. */
bool fd_is_open(const struct node *node, uint32_t id);
bool block_has_no_holder(const struct block_record *record);
/* node-recover.c: blocks that only descriptors kept, and whose descriptors are closed, go. The lock
 * is let go while frames are cleaned. */
void node_sweep(struct node *node);

/* ---- node-frames.c: lock held */

struct extent_list {
	struct node_extent *extents;
	unsigned count, capacity;
	struct node_extent first[8];
};
void extent_list_init(struct extent_list *list);
void extent_list_end(struct extent_list *list);
/* Takes frames of the usable part; there must be enough of them. */
void frames_take(struct memory *m, uint32_t count, bool giant, struct extent_list *out);
/* One frame of the reserved part, or NODE_NONE. */
uint32_t frames_take_reserved(struct memory *m);
void frames_mark(struct memory *m, uint32_t first, uint32_t count, bool used);
void frames_reset(struct memory *m);
uint32_t frames_largest_run(const struct memory *m);

/* ---- node-block.c: lock held */

struct block_place {
	struct memory *memory;
	uint32_t frame;
	struct block_record *record;
};
/* False: no such block lives. */
bool block_find(const struct node *node, uint32_t id, uint32_t generation, struct block_place *out);
struct block_place block_at(const struct node *node, uint32_t id);
/* The block ends: its frames are clean. */
void block_release(struct node *node, uint32_t id);
void block_close(struct node *node, uint32_t id);
/* This process's hold ends, however many views it has. The lock may be let go while frames are
 * cleaned. */
void block_leave(struct node *node, uint32_t id);
/* One more view for this process. */
struct node_block *block_view(struct node *node, uint32_t id, bool imported);
/* Calls each(arg, id) for each living block of a memory; each() may end the block that it is called
 * for. */
void block_for_each(struct node *node, struct memory *m,
		    void (*each)(struct node *node, uint32_t id, void *arg), void *arg);
/* What this process holds of a memory, usable frames; any thread. */
void own_frames_add(struct memory *m, uint64_t frames);
void own_frames_sub(struct memory *m, uint64_t frames);

static inline uint64_t holder_bit(unsigned slot)
{
	return UINT64_C(1) << (slot % 64);
}
static inline bool block_is_held_by(const struct block_record *record, unsigned slot)
{
	return record->holders[slot / 64] & holder_bit(slot);
}

/* ---- node-allow.c: lock held */

enum allow_answer { ALLOW_YES, ALLOW_STALE, ALLOW_NO };
/* Adds processes to the chain; start_times[i] belongs to pids[i]; pids of 0 are left out. */
drvError_t allow_add(struct node *node, uint32_t *chain, const int *pids,
		     const uint64_t *start_times, uint32_t count);
enum allow_answer allow_check(const struct node *node, uint32_t chain);
/* The chain's owner is gone: its entries may be used again. */
void allow_give_back(struct node *node, uint32_t chain);
void allow_rebuild(struct node *node);
/* Any thread, lock not held. NULL, and the code and message, if the arguments are wrong. free(). */
uint64_t *allow_start_times(const int *pids, uint32_t count, drvError_t *out_error);
/* The code and message of an import that is not allowed. */
drvError_t allow_refuse(const struct node *node, enum allow_answer answer, const char *what,
			pid_t exporter);

/* ---- node-share.c, node-name.c: lock held */

/* The share's chain, or 0, if the share of that index lives. */
bool share_chain(const struct node *node, uint32_t index, uint32_t *out_chain);
/* The block is about to end: returns the chain of its share, to be given back when it has. */
uint32_t share_end(struct node *node, const struct block_record *record);
/* This process dropped its last view that was not imported. */
void share_exporter_gone(struct node *node, const struct block_record *record);
/* Names of members for which dead[] has a bit set go. */
void names_reap(struct node *node, const uint64_t dead[NODE_HOLDER_WORDS]);

#endif
