/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the node share: the layout of the control segment that members share, and the
 * state that each process keeps in addition; what /proc says of processes; the records of the
 * segment and the operations on them (frames, blocks with their holders, shares, the frame
 * caches); the members, the lock, and views of blocks; and how processes find and join a node. The
 * caller holds the node's lock unless stated otherwise; nothing between the first and the members
 * takes or releases it.
 *
 * Dependencies, lowest first: layout.c; process.c (one process), frames.c, blocks.c (the records,
 * for whoever has the lock), member.c (who is alive, the lock, what dead members left); notify.c;
 * share.c and watch.c; socket.c, join.c; list.c.
 *
 * Truth and derived state. A member may die between any two instructions while it holds the lock.
 * So the truth is small, and each change of it takes effect by one store:
 *   - a block lives where the bit of its first frame is set in `live`; its records are complete
 *     before the bit is set;
 *   - a living block has at least one holder, or a descriptor; a member holds it where its bit is
 *     set among the holders;
 *   - a share lives while its block does and the block points back at it; one that has a name,
 *     until `named` is cleared;
 *   - a whitelist is all entries that have the number of a living share;
 *   - a notify's id is used where a living member stands among its users.
 * Which frames are used, how many are free, how many shares live: derived, and built anew from the
 * truth by whoever finds the lock in the hands of a dead member. Everything that is not in the
 * truth is thereby undone.
 */
#ifndef NPUSIM_NODE_RECORDS_H
#define NPUSIM_NODE_RECORDS_H

#include <glib.h>
#include <linux/futex.h>
#include <semaphore.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/lock.h"
#include "node.h"

#define NODE_MAGIC    UINT64_C(0x31306d697375706e)
#define NODE_VERSION  11u
#define NODE_NAME_MAX 63u
#define NODE_FILE     "npusim-node:" /* and the node's name: its memfd's */
#ifndef NODE_MEMBERS                 /* tests have fewer */
#define NODE_MEMBERS 1024u
#endif
#define NODE_HOLDER_WORDS (NODE_MEMBERS / 64)
#define NODE_SHARE_LG2    18 /* share id: generation above, index in the table below */
#define NODE_SHARES       (1u << NODE_SHARE_LG2)
#define NODE_ALLOWS       (1u << 20)
#define NODE_NOTIFIES     8192u  /* of a device: 13 bits in an entry of a queue */
#define NODE_NOTIFY_USERS 16u    /* processes: the driver's limit */
#define NODE_CACHED       8u     /* blocks of a frame cache */
#define NODE_WRITES       32u    /* on their way, of a member: a mark is below 64 */
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
/* PUT() in place of `from`: false where that is not there. */
#define SWAP(place, from, to) (node_step(), __sync_bool_compare_and_swap(&(place), (from), (to)))

/* Sets the thread's message, and is the code. */
#define node_fail(code, ...) (npu_message_set(__VA_ARGS__), (code))
/* Sets *error, and is false. */
#define node_refuse(error, ...) (*(error) = g_strdup_printf(__VA_ARGS__), false)

/* ---- the control segment ---- */

/* LOST: its server was stopped, and nobody hears of its end: what it had of other servers is held
 * in its name until their scans (node_scan()). */
enum member_state { MEMBER_FREE, MEMBER_LIVE, MEMBER_LOST };

/* A write of a member to memory that others have, on its way. */
struct write_record {
	uint32_t block, generation; /* id + 1; 0: none */
	int32_t met;                /* the process that began one there meanwhile */
	uint64_t begin, end;        /* in the block */
	int64_t since_ns;           /* CLOCK_MONOTONIC */
};

/* A process. Only a newcomer, under the start-up lock, takes a free entry; only the holder of the
 * node's lock frees it. */
struct member {
	uint32_t state;
	uint32_t generation;
	uint32_t left;      /* the process makes no more calls: it need not be dead to be gone */
	uint32_t visitor;   /* only looks: not listed */
	uint32_t unvouched; /* the kernel will not say when it ends */
	int32_t pid;
	uint32_t service; /* the thread that vouches for it */
	int32_t fd;       /* of the node's file */
	uint32_t server;
	uint64_t start_time;
	char command[64];
	struct robust_list_head robust; /* pointers of that process, for the kernel */
	struct robust_list robust_entry;
	uint64_t frame_cache[NODE_CACHED] __attribute__((aligned(64))); /* frames.c */
	struct write_record writes[NODE_WRITES];                        /* watch.c */
};

struct extent_record { /* valid at the first frame of an extent */
	uint32_t count;
	uint32_t next; /* first frame of the next extent, NODE_NONE at the end */
};

enum { BLOCK_MAPPED = 1, BLOCK_WRITTEN };
struct block_record {                        /* valid at the first frame of a block */
	uint64_t holders[NODE_HOLDER_WORDS]; /* a bit for each member */
	uint32_t generation;
	uint32_t frames;
	uint32_t extent_count;
	uint32_t share; /* index + 1 */
	uint8_t giant;
	uint8_t touched; /* bits: it had addresses; it may have been written */
	uint8_t closing; /* its holder is cleaning it, then it goes: no more imports */
	uint8_t fd;      /* was exported as a descriptor */
	uint8_t named;   /* a name was made for a part of it */
	uint8_t unseen;  /* somebody may write it who does not tell */
};

/* What a process has given others: a block by a number; a range of a block, a notify by a name. */
struct share_record {
	uint32_t named;
	uint32_t exporter_gone; /* it dropped its own views, and holds imports of it at most */
	uint32_t block, block_generation;       /* NODE_NONE: a notify's */
	uint32_t exporter, exporter_generation; /* member */
	int32_t exporter_pid;
	uint32_t device;
	uint32_t open; /* to all: the whitelist is switched off */
	uint32_t imported;
	uint32_t allowed;       /* entries of its whitelist, at least */
	uint32_t generation;    /* of this entry of the table */
	uint64_t number;        /* which of all shares that were ever made, from 1 */
	uint64_t offset, bytes; /* of what is named; a notify's id, and 0 */
	char name[72];
};

/* A process that may import. Those of a share begin at a place of its own in the table, and go on
 * where entries are free: never used, or of a share that has ended. */
struct allow_record {
	uint64_t share; /* its number; 0: never used */
	uint32_t index; /* the share's */
	int32_t pid;
	uint32_t server;     /* of it */
	uint64_t start_time; /* of the process that had the pid then; 0: there was none */
};

struct notify_user {
	uint64_t who; /* generation << 32 | member + 1; of a dead one: nobody */
	uint32_t count;
};
struct notify_record {
	uint32_t recorded; /* changed without the lock */
	struct notify_user users[NODE_NOTIFY_USERS];
};

struct memory_state {
	uint32_t used; /* what follows, and the memory's tables, are valid: a supernode has
			  hundreds of memories, and most of them never hold anything */
	/* derived */
	uint64_t free_frames;    /* usable ones */
	uint64_t closing_frames; /* usable ones of closing blocks */
	uint32_t free_giants;
	uint32_t hint; /* a giant that is partly used, or NODE_NONE */
};

struct control {
	struct node_header {
		uint64_t magic;
		uint32_t version;
		uint64_t file_bytes;
		uint64_t device, inode;   /* of the node's memfd */
		struct node_config shape; /* name: nothing */
	} head;

	uint64_t lost;                              /* bit k: server k was stopped */
	uint32_t lock __attribute__((aligned(64))); /* see member.c */
	uint32_t lock_owner;                        /* slot + 1 */
	uint32_t frames_wanted; /* a futex: 1 while somebody waits for frames being cleaned */
	uint32_t member_limit;  /* no member at or above */
	uint32_t share_limit, share_next, share_count; /* the last derived */
	uint64_t shares_made;                          /* ever */
	uint32_t fd_kept;   /* derived: blocks that descriptors alone keep */
	uint32_t unvouched; /* there has been such a member */
	uint32_t told;      /* members have told of what they write */

	/* The thread that lives as long as the member's process; FUTEX_OWNER_DIED, set by the
	 * kernel, when it ended. */
	uint32_t alive[NODE_MEMBERS] __attribute__((aligned(64)));
	struct member members[NODE_MEMBERS];
};

/* ---- the node's memfd, with its descriptor and mappings in this process ---- */

/* A descriptor of ours. Programs close what is not theirs, and open others of the same number. */
struct own_file {
	int fd;
	uint64_t device, inode;
};

struct own_file own_file(int fd);
bool own_file_is(const struct own_file *file, uint64_t device, uint64_t inode);
bool own_file_is_open(const struct own_file *file);
/* Closes it, if it is open; what the program has under the number stays. */
void own_file_close(struct own_file *file);
/* A sealed memfd of that size. -1 and *error. */
int file_make(const char *name, uint64_t bytes, char **error);
/* Maps a part of it, not for children. NULL and *error. */
void *file_map(const char *name, int fd, uint64_t offset, uint64_t bytes, char **error);

/* ---- this process's side ---- */

struct memory {
	unsigned index;          /* node.h's: the process's own server has the low ones */
	unsigned server, number; /* of it: a device, or SIM_NODE_HOST */
	uint32_t frames, usable;
	uint32_t id_base; /* block id = id_base + first frame */
	struct memory_state *state;
	uint64_t *used, *live;
	uint16_t *giant_used; /* used frames of each 512, usable ones */
	struct extent_record *extents;
	struct block_record *blocks;
	unsigned char *base; /* behind its bytes: which of them are written */
	uint64_t bytes;
	uint64_t file_offset;
	uint64_t own_frames, own_peak_frames;
};

/* Which bytes somebody has written, of so many: watch.c. */
static inline uint64_t written_bytes(uint64_t bytes)
{
	return bytes / 64;
}
/* Of a memory in the node's file. */
static inline uint64_t file_bytes(const struct memory *m)
{
	return m->bytes + written_bytes(m->bytes);
}

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
	uint64_t control_bytes, file_bytes;
	struct own_file file, socket_file;

	unsigned slot;
	uint32_t generation,
		service; /* the thread's id: it owns the lock on the process's behalf */
	pthread_t service_thread;
	sem_t service_started;
	char *(*answer)(void *arg); /* node_on_question() */
	void *answer_arg;
	bool tells;                    /* of what it writes */
	int cancel_state;              /* of the thread that has the lock */
	int64_t looked_ms;             /* when unvouched members were last looked at */
	uint32_t waited[NODE_MEMBERS]; /* words of `alive` whose deaths have been waited for */

	struct memory *memory[SIM_MEMORY_MAX]; /* by index; NULL where there is none */
	struct memory *memories;               /* by server * SIM_NODE_MAX + number */
	uint64_t lost_seen;                    /* servers whose memory is not reached any more */
	struct sim_memory sim_memory;
	struct share_record *shares;
	struct allow_record *allows;
	struct notify_record *notifies;         /* by device and id */
	struct view_count *views;               /* by block id, under the node's lock */
	struct node_block *cached[NODE_CACHED]; /* what lies in the frame cache */
	uint64_t cached_keys[NODE_CACHED];
	unsigned cleaning; /* blocks that threads of this process are to clean */
	uint32_t id_count;
};

/* Corrects usable_frames. False and *error: there can be no such node. */
bool config_check(struct node_config *config, char **error);
/* Lays the file out for node->shape: the control segment, then the memories. With the segment
 * mapped, sets the pointers. */
void layout_set(struct node *node);

/* ---- process.c: what /proc and the kernel say about a process: whether a member has ended */

struct process_stat {
	char state;
	uint32_t flags, threads;
	uint64_t start_time;
};
/* tid 0: the process itself. False and errno: ENOENT or ESRCH, there is none; else it is hidden. */
bool process_stat(pid_t pid, pid_t tid, struct process_stat *out);
bool process_is_stopped(pid_t pid);
uid_t process_user(pid_t pid); /* the effective one; -1 and errno */
/* False: that process has ended for certain. */
bool process_is_same(pid_t pid, uint64_t start_time);
uint64_t process_start_time(pid_t pid); /* 0: none */
void process_command(pid_t pid, char *out, size_t size);
/* True when no thread of the member's process can run the program's code any more: none is left, it
 * is on its way out, or another program runs in it, which does not have the node's file. */
bool process_is_gone(const struct node *node, const struct member *member);
/* The descriptor `fd` of the process, opened again; -1 and errno: ENOENT or ESRCH, it is not there.
 * Opens nothing but a memfd of that node's name that is ours. */
int process_open(pid_t pid, int fd, const char *node);
/* Sleeps until the process has ended, `ms` at most; all of them where the kernel has no pidfd. */
void process_wait(pid_t pid, int ms);
/* Milliseconds of the clock that only goes on. */
static inline int64_t clock_ms(void)
{
	return (int64_t)(clock_now_ns() / 1000000);
}

/* ---- frames.c: which frames of a memory are used */

/* Frames taken for one block, as m->extents has them. */
struct extent_chain {
	uint32_t first, last; /* first frames of the first and the last extent */
	uint32_t count;       /* of extents */
};
/* Takes frames of the usable part; there must be enough of them. */
struct extent_chain frames_take(struct memory *m, uint32_t count, bool giant);
/* One frame of the reserved part; count 0: there is none. */
struct extent_chain frames_take_reserved(struct memory *m);
void frames_mark(struct memory *m, uint32_t first, uint32_t count, bool used);
void frames_reset(struct memory *m);
/* Before the memory is first used. */
static inline void frames_ready(struct memory *m)
{
	if (GET(m->state->used))
		return;
	frames_reset(m);
	PUT(m->state->used, 1);
}

/* ---- blocks.c: blocks, shares */

struct block_place {
	struct memory *memory;
	uint32_t frame;
	struct block_record *record;
};
/* False: no such block lives. */
bool block_find(const struct node *node, uint32_t id, uint32_t generation, struct block_place *out);
struct block_place block_at(const struct node *node, uint32_t id);
/* The living block behind that of *id, in the order of ids; the first behind NODE_NONE. False:
 * there is none. The one that was found last may have ended. */
bool block_next(const struct node *node, uint32_t *id, struct block_place *out);
/* The block ends: its frames are clean. */
void block_release(struct node *node, uint32_t id);
/* The block ends, if it is clean. True: it is closing, and is to be ended. */
bool block_close(struct node *node, uint32_t id);
/* join.c: maps the memory of another server, if it is not. False and a message. Lock not needed. */
bool memory_open(struct node *node, struct memory *m);
/* Makes the frames of a closing block read as zeros; it ends then. Lock not held. */
void block_end(struct node *node, uint32_t id);

void holders_set(const struct block_place *place, unsigned slot, bool held);
/* Nobody but that member holds it; NODE_NONE: nobody at all. */
bool holders_are_none_but(const struct block_place *place, unsigned slot);
static inline uint64_t holder_bit(unsigned slot)
{
	return UINT64_C(1) << (slot % 64);
}
static inline bool block_is_held_by(const struct block_place *place, unsigned slot)
{
	return place->record->holders[slot / 64] & holder_bit(slot);
}

/* The lock on the node's file that a descriptor of the block has, for fcntl(). */
#define NODE_FD_BASE (INT64_C(1) << 60) /* beyond every byte of it */
struct flock block_fd_lock(uint32_t id, short type);
/* True if a process has, or a socket carries, a descriptor of the block. */
bool block_fd_is_open(const struct node *node, uint32_t id);

/* The block leaves its process, or comes: whoever does not tell of its writes may write it. */
static inline void block_unseen(const struct node *node, const struct block_place *place)
{
	if (!node->tells && !place->record->unseen)
		PUT(place->record->unseen, 1);
}

/* The share of that index lives: *out is the block of one that has no name. */
bool share_is_live(const struct node *node, uint32_t index, struct block_place *out);
/* share.c: who exported it, by a number or a name, holds it still, through a view of its own. */
bool block_has_exporter(const struct node *node, uint32_t id, const struct block_record *record);
bool share_is_mine(const struct node *node, const struct share_record *share);
/* Its name ends, or its block has. */
void share_end(struct node *node, struct share_record *share);

/* Builds all that is derived from the truth. */
void node_rebuild(struct node *node);

/* To what this process holds of a memory, usable frames; any thread, lock not needed. */
void own_frames_add(struct memory *m, int64_t frames);

/* ---- notify.c */

/* One use more, or the first, by this process. */
drvError_t notify_open_locked(struct node *node, unsigned device, uint32_t id);

/* ---- frames.c: the frame cache */

/* A block of that kind from this process's cache; NULL: there is none. Lock not needed. */
struct node_block *frame_cache_take(struct node *node, unsigned memory, uint64_t frames,
				    bool giant);
/* Keeps the block in the cache; false: it is none for it, or that is full. Lock not needed. */
bool frame_cache_put(struct node *node, struct node_block *block);
void frame_cache_end(struct node *node);
/* What lies in the cache of one member, or of all, is free. */
void frame_cache_empty(struct node *node, unsigned slot);
void frame_caches_empty(struct node *node);
/* The last part of node_rebuild(). */
void frame_caches_rebuild(struct node *node);

/* ---- member.c: who is alive, the lock, and the entry through which every
 * function passes ---- */

/* Takes an entry of the member table for this process, alive from then on. Start-up lock held. */
bool member_add(struct node *node, bool visitor, char **error);
/* Ends the membership: nothing may be held. */
void member_remove(struct node *node);
/* Finds out that its process is gone where the kernel has not said so. */
void member_check(struct node *node, unsigned slot);
void member_check_all(struct node *node);
/* It was stopped. A visitor is of none. */
static inline bool server_is_lost(const struct node *node, unsigned server)
{
	return server < SIM_SERVERS && (node->control->lost >> server & 1);
}
bool member_is_dead(const struct node *node, unsigned slot);
bool member_is_live(const struct node *node, unsigned slot, uint32_t generation);
/* That process is a live member of the server; pid 0: any is. */
bool server_has(const struct node *node, unsigned server, pid_t pid);

void node_lock(struct node *node);
void node_unlock(struct node *node);

/* The entry of every function: the lock is held, what dead members left is back. Else PROCESS_EXIT
 * and a message. */
drvError_t node_enter(struct node *node);
static inline void node_let(struct node *const *entered)
{
	if (*entered)
		node_unlock(*entered);
}
/* Declares `error`, and enters the node until the block ends; then `error` is what follows. */
#define ENTERED(node, error, ...)                                               \
	drvError_t error = node_enter(node);                                    \
	__attribute__((cleanup(node_let), unused)) struct node *const entered = \
		error ? NULL : (node);                                          \
	error = error ?: (__VA_ARGS__)

/* True if this process may go on without entering: it is a member, and nobody is dead. */
bool node_is_quiet(struct node *node);
/* Blocks that only descriptors kept, and whose descriptors are closed, go. Lock held at entry and
 * return; let go while frames are cleaned. */
void node_sweep(struct node *node);

/* ---- blocks.c: the views that this process has of blocks ---- */

/* "node a", "server 3 of supernode a" (npu_text()). */
const char *server_text(const struct node *node, unsigned server);
/* Its block. Else INVALID_HANDLE and a message. */
drvError_t block_of_view(const struct node *node, const struct node_block *block,
			 struct block_place *out);
/* One more view for this process. Lock held. */
struct node_block *block_view(struct node *node, uint32_t id, bool imported);
/* This process's hold ends, however many views it has. True: nobody else holds the block, which is
 * closing, and is to be ended. Lock held. */
bool block_leave(struct node *node, uint32_t id);

/* ---- socket.c */

/* The socket by which others find the member, and ask it; `asks`: one from which its answer is to
 * be heard. -1 and errno: ECONNREFUSED, it is gone. */
int node_socket(const char *name, pid_t pid, int control_fd, bool asks);
/* Waits until somebody asks this member what it holds, and answers. A cancellation point. */
void node_answer(struct node *node);
/* Its answer, until that moment of clock_ms(); NULL: none. g_free(). Closes the socket. */
char *node_hear(int socket, int64_t until);
/* One newcomer at a time: waits while others join, in order. False and *error. */
bool node_startup_lock(const char *name, char **error);
void node_startup_unlock(void);

struct candidate {
	char name[NODE_NAME_MAX + 1];
	pid_t pid;
	int fd;
	uint64_t start_time; /* list.c */
};
/* Members of the node (of all of this user's with NULL) by what the kernel lists; none of them need
 * live. Of struct candidate. NULL and errno: it cannot be looked at. */
GArray *node_discover(const char *name);

/* ---- join.c */

/* Joins a node that runs, to look at it. NULL: there is none any more, or it cannot be (*error). */
struct node *node_attach(const char *name, char **error);

#endif
