/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the node share: what /proc says of processes; the records of the control
 * segment and the operations on them (frames, blocks with their holders, shares, the
 * frame caches); the members, the lock, and views of blocks; and how processes find and join a
 * node. The caller holds the node's lock unless stated otherwise; nothing between the first and the
 * members takes or releases it.
 */
#ifndef NPUSIM_NODE_RECORDS_H
#define NPUSIM_NODE_RECORDS_H

#include <glib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "layout.h"

/* ---- process.c: what /proc and the kernel say about a process, for code that must know whether a
 * member has ended */

struct process_stat {
	char state;
	uint32_t flags, threads;
	uint64_t start_time;
};
/* tid 0: the process itself. False and errno: ENOENT or ESRCH, there is no such process; else it
 * cannot be seen. */
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
uint32_t frames_largest_run(const struct memory *m);

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
/* It is being cleaned, then it ends. */
void block_close(struct node *node, uint32_t id);
/* join.c: maps the memory of another server, if it is not. False and a message. Lock not needed. */
bool memory_open(struct node *node, struct memory *m);
/* Makes the frames of a closing block read as zeros. Lock not needed. */
void block_clean(struct node *node, uint32_t id);

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
/* share.c: its exporter holds the block still, through a view of its own. */
bool share_has_exporter(const struct node *node, const struct share_record *share,
			const struct block_place *place);
bool share_is_mine(const struct node *node, const struct share_record *share);
/* Its name ends, or its block has. */
void share_end(struct node *node, struct share_record *share);

/* Builds all that is derived from the truth. */
void node_rebuild(struct node *node);

/* What this process holds of a memory, usable frames; any thread, lock not needed. */
void own_frames_add(struct memory *m, uint64_t frames);
void own_frames_sub(struct memory *m, uint64_t frames);

/* ---- notify.c */

/* One use more, or the first, by this process. */
drvError_t notify_open_locked(struct node *node, unsigned device, uint32_t id);

/* ---- frames.c: the frame cache */

/* A block of that kind from this process's cache; NULL: there is none. Lock not needed. */
struct node_block *frame_cache_take(struct node *node, unsigned memory, uint64_t frames,
				    bool giant);
/* Keeps the block in the cache; false: it is not one for the cache, or that is full. Lock not
 * needed. */
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

void node_lock(struct node *node);
void node_unlock(struct node *node);

/* The entry of every function: the lock is held, what dead members left is back. Else PROCESS_EXIT
 * and a message. */
drvError_t node_enter(struct node *node);
/* True if this process may go on without entering: it is a member, and nobody is dead. */
bool node_is_quiet(struct node *node);
/* Blocks that only descriptors kept, and whose descriptors are closed, go. Lock held at entry and
 * return; let go while frames are cleaned. */
void node_sweep(struct node *node);

/* ---- blocks.c: the views that this process has of blocks ---- */

/* "node a", "server 3 of supernode a" (npu_text()). */
const char *server_text(const struct node *node, unsigned server);
/* Enters the node, and finds the block; the lock is held only on success. */
drvError_t block_enter(struct node *node, const struct node_block *block, struct block_place *out);
/* One more view for this process. Lock held. */
struct node_block *block_view(struct node *node, uint32_t id, bool imported);
/* This process's hold ends, however many views it has. Lock held at entry and return; let go while
 * frames are cleaned. */
void block_leave(struct node *node, uint32_t id);

/* ---- socket.c */

/* The socket by which others find the member, and ask it; -1 and errno. */
int node_announce(const char *name, pid_t pid, int control_fd);
/* Waits until somebody asks this member what it holds, and answers. A thread may be cancelled
 * there. */
void node_answer(struct node *node);
/* Asks a member: a socket from which the answer is to be heard; -1 and errno: ECONNREFUSED, it is
 * gone. */
int node_ask(const char *name, pid_t pid, int control_fd);
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
