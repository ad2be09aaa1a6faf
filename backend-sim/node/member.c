/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells who is a member, and has the node's lock and the entry through which every function passes.
 *
 * The kernel vouches for a member: a service thread, which answers those who ask what the process
 * holds, lives as long as the process, its id stands in control->alive[slot], and that word is on
 * the thread's robust list (Documentation/locking/robust-futex-ABI.rst), as is the node's lock.
 * When the thread ends, for whatever reason, the kernel sets FUTEX_OWNER_DIED there: to ask whether
 * eight members live is to read eight words. The list's head lies in the segment too, where the
 * reaper of the out-of-memory killer does not come. The thread may end some microseconds before its
 * siblings notice that they are dead: see process_is_gone(). Where the kernel has no robust lists
 * (a filter of system calls, qemu-user), others look in /proc for such a member, every few
 * milliseconds.
 *
 * The lock is a robust futex that any thread of a member takes in the name of the member's service
 * thread. When a member ends with the lock in its hands, the kernel wakes one that waits: it waits
 * until no thread of the dead one runs any more, takes the lock over, and builds anew what the dead
 * one may have left half done. The kernel takes the owner's name off the word, so
 * control->lock_owner has it too, from just after the lock is taken until just before it is let go:
 * who dies between has nothing half done.
 *
 * Who enters first reclaims what dead members left behind: their holds, their names, their slots in
 * the table. This process may die at any step too: the next to enter then starts over.
 */
#include "records.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_MS 5 /* for members that the kernel does not vouch for */

/* ---- who is alive ---- */

/* The kernel says that a member in the table has ended. */
static bool member_has_died(const struct node *node, unsigned slot)
{
	return GET(node->control->alive[slot]) & FUTEX_OWNER_DIED;
}

bool member_is_dead(const struct node *node, unsigned slot)
{
	return GET(node->control->members[slot].state) != MEMBER_LIVE ||
	       member_has_died(node, slot);
}

bool member_is_live(const struct node *node, unsigned slot, uint32_t generation)
{
	return slot < NODE_MEMBERS && !member_is_dead(node, slot) &&
	       node->control->members[slot].generation == generation;
}

bool server_has(const struct node *node, unsigned server, pid_t pid)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		const struct member *member = &node->control->members[slot];

		if (!member_is_dead(node, slot) && member->server == server &&
		    (pid == 0 || member->pid == pid))
			return true;
	}
	return false;
}

static void look_at_unvouched(struct node *node)
{
	const int64_t now = clock_ms();

	if (now - __atomic_load_n(&node->looked_ms, __ATOMIC_RELAXED) < LOOK_MS)
		return;
	__atomic_store_n(&node->looked_ms, now, __ATOMIC_RELAXED);
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		if (slot != node->slot && GET(node->control->members[slot].unvouched))
			member_check(node, slot);
}

static bool member_anyone_died(struct node *node)
{
	const struct control *control = node->control;
	uint32_t limit = GET(control->member_limit), words = 0;

	if (__builtin_expect(GET(control->unvouched), false))
		look_at_unvouched(node);
	for (unsigned slot = 0; slot < limit; slot++)
		words |= __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);
	return words & FUTEX_OWNER_DIED;
}

/* Dead, and none of its threads runs any more. */
static bool member_is_gone(const struct node *node, unsigned slot)
{
	const struct member *member = &node->control->members[slot];

	return member_has_died(node, slot) && (GET(member->state) != MEMBER_LIVE ||
					       GET(member->left) || process_is_gone(node, member));
}

/* Waits for that, `ms` at most; also ends, with true, when the entry is another's. */
static bool member_wait_gone(const struct node *node, unsigned slot, int ms)
{
	const int64_t end = clock_ms() + ms;

	while (member_has_died(node, slot) && !member_is_gone(node, slot)) {
		if (clock_ms() >= end)
			return false;
		process_wait(node->control->members[slot].pid, 1); /* an exec ends no process */
	}
	return true;
}

/* Lock held, and nothing held by that member. A newcomer may take the entry as soon as it is free,
 * and set the word: only the dead one's word is cleared. */
static void member_free(struct node *node, unsigned slot)
{
	struct control *control = node->control;
	uint32_t word = __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);

	if (!(word & FUTEX_OWNER_DIED))
		return;
	if (GET(control->members[slot].state) == MEMBER_LIVE)
		PUT(control->members[slot].state,
		    server_is_lost(node, control->members[slot].server) ? MEMBER_LOST
									: MEMBER_FREE);
	SWAP(control->alive[slot], word, 0);
}

void member_check(struct node *node, unsigned slot)
{
	struct member *member = &node->control->members[slot];
	uint32_t *alive = &node->control->alive[slot], word = GET(*alive);

	if (GET(member->state) == MEMBER_LIVE && !(word & FUTEX_OWNER_DIED) &&
	    (GET(member->unvouched) ? process_is_gone(node, member)
				    : !process_is_same(member->pid, member->start_time)))
		__atomic_compare_exchange_n(alive, &word, word | FUTEX_OWNER_DIED, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void member_check_all(struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		member_check(node, slot);
}

/* ---- joining and leaving the table ---- */

static void *serve(void *arg)
{
	struct node *node = arg;
	struct member *member = &node->control->members[node->slot];
	uint32_t *word = &node->control->alive[node->slot];

	/* by the thread itself: done by another, it opens a file of /proc, which slows wait() */
	pthread_setname_np(pthread_self(), "npusim-node");
	member->robust_entry.next = &member->robust.list;
	member->robust.list.next = &member->robust_entry;
	member->robust.futex_offset = (long)((char *)word - (char *)&member->robust_entry);
	/* The kernel looks at the lock last, at whatever moment the process ends. */
	member->robust.list_op_pending =
		(struct robust_list *)((char *)&node->control->lock - member->robust.futex_offset);
	node->service = (uint32_t)syscall(SYS_gettid);
	PUT(member->service, node->service);
	PUT(*word, node->service);
	if (syscall(SYS_set_robust_list, &member->robust, sizeof(member->robust)) != 0) {
		PUT(member->unvouched, 1);
		PUT(node->control->unvouched, 1);
		npu_log(NPU_LOG_INFO,
			"node %s: the kernel does not tell others when this process ends "
			"(set_robust_list: %s); they look for it every %d ms",
			node->name, strerror(errno), LOOK_MS);
	}
	sem_post(&node->service_started);
	while (!GET(member->left))
		node_answer(node);
	return NULL;
}

static bool start_service(struct node *node, char **error)
{
	sigset_t all, before;
	int failed;

	sem_init(&node->service_started, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&node->service_thread, NULL, serve, node);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return node_refuse(
			error, "node %s: cannot start the thread that vouches for this process: %s",
			node->name, strerror(failed));
	while (sem_wait(&node->service_started) != 0)
		continue;
	return true;
}

static bool find_slot(struct node *node)
{
	/* The last entry is for a newcomer that finds dead ones in the others, and buries them. */
	unsigned limit = member_anyone_died(node) ? NODE_MEMBERS : NODE_MEMBERS - 1;

	for (node->slot = 0; node->slot < limit; node->slot++)
		if (GET(node->control->members[node->slot].state) == MEMBER_FREE)
			return true;
	return false;
}

/* A program that was a member, and called exec(): to all others the process lives, and may have the
 * same file under the same number again. Here the new program runs, so the old one is gone. */
static void end_former_programs(struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		struct member *member = &node->control->members[slot];

		if (GET(member->state) == MEMBER_LIVE && member_has_died(node, slot) &&
		    member->pid == node->pid && member->start_time == node->start_time)
			PUT(member->left, 1);
	}
}

bool member_add(struct node *node, bool visitor, char **error)
{
	struct control *control = node->control;
	struct member *member;

	end_former_programs(node);
	if (!find_slot(node)) {
		member_check_all(node);
		if (!find_slot(node))
			return node_refuse(
				error,
				"node %s: %u processes use it already, which is the limit; "
				"end some of them, or choose another NPUSIM_NODE",
				node->name, NODE_MEMBERS - 1);
	}
	member = &control->members[node->slot];
	node_step();
	*member = (struct member){
		.generation = member->generation + 1,
		.visitor = visitor,
		.pid = node->pid,
		.fd = node->file.fd,
		.server = node->shape.server,
		.start_time = node->start_time,
	};
	node->generation = member->generation;
	process_command(node->pid, member->command, sizeof(member->command));
	if (!start_service(node, error))
		return false;
	if (node->slot >= control->member_limit)
		PUT(control->member_limit, node->slot + 1);
	PUT(member->state, MEMBER_LIVE);
	return true;
}

/* The thread's end is the member's, as at the death of the process; the next caller frees it. */
void member_remove(struct node *node)
{
	struct member *member = &node->control->members[node->slot];

	PUT(member->left, 1);
	pthread_cancel(node->service_thread);
	pthread_join(node->service_thread, NULL);
	if (member->unvouched)
		__atomic_fetch_or(&node->control->alive[node->slot], FUTEX_OWNER_DIED,
				  __ATOMIC_ACQ_REL);
}

#define LOCK_SPINS     400
#define LOCK_LOOK_MS   20   /* so long a waiter relies on the kernel's word alone */
#define LOCK_WARN_LOOK 150u /* looks until a stopped owner is named */

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

static bool lock_spin(struct node *node)
{
	for (unsigned spin = 0; spin < LOCK_SPINS; spin++) {
		if (__atomic_load_n(&node->control->lock, __ATOMIC_RELAXED) == 0 &&
		    SWAP(node->control->lock, 0, node->service))
			return true;
		relax();
	}
	return false;
}

static void warn_if_stopped(const struct node *node)
{
	unsigned slot = GET(node->control->lock_owner) - 1;
	const struct member *member = &node->control->members[slot];

	if (slot < NODE_MEMBERS && process_is_stopped(member->pid))
		npu_log(NPU_LOG_WARN,
			"node %s: process %d (%s) is stopped, and holds the node's lock: all "
			"processes of the node wait for it; continue it or end it",
			node->name, member->pid, member->command);
}

/* The lock has been held for long. An owner that is dead without the kernel's word is found here;
 * its entry cannot be freed meanwhile: that takes the lock. */
static void look_at_owner(struct node *node, uint32_t word, unsigned look)
{
	bool gone = true; /* or nobody wrote this word */

	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		const struct member *member = &node->control->members[slot];

		if (GET(member->state) == MEMBER_LIVE &&
		    GET(member->service) == (word & FUTEX_TID_MASK)) {
			member_check(node, slot);
			gone &= member_is_gone(node, slot);
		}
	}
	if (gone)
		SWAP(node->control->lock, word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
	if (look % LOCK_WARN_LOOK == 0)
		warn_if_stopped(node);
}

/* The dead owner's threads may run some microseconds longer than its service thread. For one that
 * died before it could write its name, all who are dead are waited for, not as long. */
static void wait_for_dead_owner(const struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++)
		while (member_has_died(node, slot) && !member_wait_gone(node, slot, LOCK_LOOK_MS) &&
		       GET(node->control->lock_owner) == slot + 1 &&
		       GET(node->control->lock) & FUTEX_OWNER_DIED)
			continue;
}

static void lock_slow(struct node *node)
{
	const struct timespec timeout = { .tv_nsec = LOCK_LOOK_MS * 1000000 };
	const uint32_t mine = node->service | FUTEX_WAITERS;
	uint32_t *lock = &node->control->lock;

	for (unsigned look = 0;;) {
		uint32_t word = GET(*lock), wait = word | FUTEX_WAITERS;

		if (word & FUTEX_OWNER_DIED) {
			wait_for_dead_owner(node);
			if (!SWAP(node->control->lock, word, mine))
				continue;
			PUT(node->control->lock_owner, node->slot + 1);
			node_rebuild(node);
			return;
		}
		if ((word & FUTEX_TID_MASK) == 0) {
			if (SWAP(node->control->lock, word, mine))
				return;
		} else if (word == wait || SWAP(node->control->lock, word, wait)) {
			if (syscall(SYS_futex, lock, FUTEX_WAIT, wait, &timeout, NULL, 0) != 0 &&
			    errno == ETIMEDOUT)
				look_at_owner(node, wait, ++look);
		}
	}
}

/* A thread that were cancelled with the lock in its hands would stop all processes of the node. */
void node_lock(struct node *node)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (!SWAP(node->control->lock, 0, node->service) && !lock_spin(node))
		lock_slow(node);
	PUT(node->control->lock_owner, node->slot + 1);
	node->cancel_state = cancel_state;
}

void node_unlock(struct node *node)
{
	int cancel_state = node->cancel_state;
	uint32_t word;

	PUT(node->control->lock_owner, 0);
	node_step();
	word = __atomic_exchange_n(&node->control->lock, 0, __ATOMIC_ACQ_REL);
	if (word & FUTEX_WAITERS)
		syscall(SYS_futex, &node->control->lock, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_setcancelstate(cancel_state, NULL);
}

#define GONE_WAIT_MS 20

/* ---- entry, and what dead members left ---- */

struct reaping {
	uint64_t dead[NODE_HOLDER_WORDS];
	bool scan;       /* what an exporter holds stays as it is */
	GArray *orphans; /* ids of blocks to clean: closing, and held by this process meanwhile */
};

/* Nobody is left that holds the block. True: it is to be cleaned first. */
static bool end_block(struct node *node, uint32_t id, struct reaping *reaping)
{
	struct block_place place = block_at(node, id);

	if (!block_close(node, id))
		return false;
	holders_set(&place, node->slot, true);
	if (!reaping->orphans)
		reaping->orphans = g_array_new(FALSE, FALSE, sizeof(id));
	g_array_append_val(reaping->orphans, id);
	return true;
}

static void reap_block(struct node *node, uint32_t id, struct block_record *record,
		       struct reaping *reaping)
{
	uint64_t lost = 0, left = 0;

	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++) {
		lost |= record->holders[w] & reaping->dead[w];
		left |= record->holders[w] & ~reaping->dead[w];
	}
	if (!lost || (reaping->scan && block_has_exporter(node, id, record)))
		return;
	if (!left && record->fd && !record->closing && block_fd_is_open(node, id))
		PUT(node->control->fd_kept, node->control->fd_kept + 1);
	else if (!left && !end_block(node, id, reaping))
		return;
	for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
		if (record->holders[w] & reaping->dead[w])
			PUT(record->holders[w], record->holders[w] & ~reaping->dead[w]);
}

/* Lock held at entry and return. */
static void end_orphans(struct node *node, struct reaping *reaping)
{
	if (!reaping->orphans)
		return;
	node_unlock(node);
	for (unsigned i = 0; i < reaping->orphans->len; i++)
		block_end(node, g_array_index(reaping->orphans, uint32_t, i));
	node_lock(node);
	g_array_unref(reaping->orphans);
}

/* Lock held at entry and return; let go while frames are cleaned. */
static void recover(struct node *node)
{
	uint32_t limit = GET(node->control->member_limit);
	struct reaping reaping = { .orphans = NULL };
	uint64_t gone[NODE_HOLDER_WORDS] = { 0 };
	uint32_t id = NODE_NONE;
	struct block_place place;
	bool any = false;

	for (unsigned slot = 0; slot < limit; slot++)
		if (slot != node->slot && member_is_gone(node, slot)) {
			gone[slot / 64] |= holder_bit(slot);
			if (!server_is_lost(node, node->control->members[slot].server))
				reaping.dead[slot / 64] |= holder_bit(slot);
			any = true;
		}
	if (!any)
		return;
	while (block_next(node, &id, &place))
		reap_block(node, id, place.record, &reaping);
	for (uint32_t i = 0; i < node->control->share_limit; i++) {
		uint32_t exporter = node->shares[i].exporter;

		if (node->shares[i].named && exporter < limit &&
		    (gone[exporter / 64] & holder_bit(exporter)))
			share_end(node, &node->shares[i]);
	}
	for (unsigned slot = 0; slot < limit; slot++)
		if (gone[slot / 64] & holder_bit(slot))
			member_free(node, slot);
	end_orphans(node, &reaping);
}

void node_sweep(struct node *node)
{
	struct reaping reaping = { .orphans = NULL };
	struct block_place place;
	uint32_t id = NODE_NONE;

	while (block_next(node, &id, &place)) {
		if (!holders_are_none_but(&place, NODE_NONE) || block_fd_is_open(node, id))
			continue;
		if (node->control->fd_kept)
			PUT(node->control->fd_kept, node->control->fd_kept - 1);
		end_block(node, id, &reaping);
	}
	end_orphans(node, &reaping);
}

void node_scan(struct node *node)
{
	struct reaping reaping = { .scan = true };
	struct block_place place;
	uint32_t id = NODE_NONE;

	if (node_enter(node) != DRV_ERROR_NONE)
		return;
	for (unsigned slot = 0; slot < node->control->member_limit; slot++)
		if (node->control->members[slot].state == MEMBER_LOST)
			reaping.dead[slot / 64] |= holder_bit(slot);
	while (block_next(node, &id, &place))
		if (place.memory->server == node->shape.server ||
		    server_is_lost(node, place.memory->server))
			reap_block(node, id, place.record, &reaping);
	id = NODE_NONE;
	while (block_next(node, &id, &place)) /* left: those that no block names */
		for (unsigned w = 0; w < NODE_HOLDER_WORDS; w++)
			reaping.dead[w] &= ~place.record->holders[w];
	for (unsigned slot = 0; slot < node->control->member_limit; slot++)
		if (reaping.dead[slot / 64] & holder_bit(slot))
			PUT(node->control->members[slot].state, MEMBER_FREE);
	end_orphans(node, &reaping);
	node_unlock(node);
}

bool node_is_leaving(const struct node *node)
{
	return GET(node->control->members[node->slot].left);
}

bool node_is_forked(const struct node *node)
{
	if (node->fork_mark)
		return __atomic_load_n(node->fork_mark, __ATOMIC_RELAXED) == 0;
	return getpid() != node->pid;
}

/* Waits, not long, and once for each of the dead, until no thread of it runs. Lock not held. */
static void wait_until_gone(struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		uint32_t generation = GET(node->control->members[slot].generation);

		if (member_has_died(node, slot) &&
		    __atomic_exchange_n(&node->waited[slot], generation, __ATOMIC_RELAXED) !=
			    generation)
			member_wait_gone(node, slot, GONE_WAIT_MS);
	}
}

bool node_is_quiet(struct node *node)
{
	return !node_is_forked(node) && !member_anyone_died(node) &&
	       member_is_live(node, node->slot, node->generation);
}

drvError_t node_enter(struct node *node)
{
	if (node_is_forked(node))
		return node_fail(DRV_ERROR_PROCESS_EXIT,
				 "node %s: this process was forked from process %d after that had "
				 "opened the devices, and devices do not survive a fork; fork "
				 "before the first call, or start a new program (exec, or "
				 "multiprocessing with the spawn method)",
				 node->name, node->pid);
	node_lock(node);
	if (__builtin_expect(member_anyone_died(node), false)) {
		node_unlock(node);
		wait_until_gone(node);
		node_lock(node);
		recover(node);
	}
	if (__builtin_expect(member_is_live(node, node->slot, node->generation), true))
		return DRV_ERROR_NONE;
	node_unlock(node);
	return node_fail(DRV_ERROR_PROCESS_EXIT, "node %s: this process is no member any more",
			 node->name);
}
