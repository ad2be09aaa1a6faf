/* SPDX-License-Identifier: Apache-2.0
 *
 * The member table, who in it is alive, and the node's lock. Does not know what members hold.
 *
 * The kernel vouches for a member: a thread that does nothing lives as long as the process, its id
 * stands in control->alive[slot], and that word is on the thread's robust list
 * (Documentation/locking/robust-futex-ABI.rst). When the thread ends, for whatever reason, the
 * kernel sets FUTEX_OWNER_DIED there: to ask whether eight members live is to read eight words. The
 * list's head lies in the segment too, where the reaper of the out-of-memory killer does not come.
 * The thread may end some microseconds before its siblings notice that they are dead: see
 * process_is_gone().
 *
 * The lock is a word: who holds it (slot + 1 in bits 0-8, the low bits of its generation in bits
 * 9-30), and whether others wait. Who finds it in the hands of a dead member takes it over, and
 * builds anew what the dead one may have left half done. The generation keeps a member that came
 * later into the same slot from being taken for the dead one.
 */
#include "node-private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAITERS     (1u << 31)
#define LOCK_SLOT_MASK   0x1ffu
#define LOCK_GENERATIONS 0x3fffffu
#define LOCK_SPINS       400
#define LOCK_SLEEP_NS    1000000
#define LOCK_DEEP_ROUNDS 20 /* so many sleeps, then the kernel's word is not waited for */
#define LOCK_WARN_ROUNDS 3000

#define GONE_WAIT_ROUNDS 200 /* of 100 us */

/* ---- who is alive ---- */

static inline bool has_died(const struct control *control, unsigned slot)
{
	return __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}

bool member_is_dead(const struct node *node, unsigned slot)
{
	return GET(node->control->members[slot].state) != MEMBER_LIVE ||
	       has_died(node->control, slot);
}

bool member_is_live(const struct node *node, unsigned slot, uint32_t generation)
{
	const struct member *member = &node->control->members[slot];

	return GET(member->state) == MEMBER_LIVE && member->generation == generation &&
	       !has_died(node->control, slot);
}

static bool anyone_died(const struct control *control)
{
	uint32_t limit = __atomic_load_n(&control->member_limit, __ATOMIC_ACQUIRE), words = 0;

	for (unsigned slot = 0; slot < limit; slot++)
		words |= __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);
	return words & FUTEX_OWNER_DIED;
}

static bool is_gone(const struct node *node, unsigned slot)
{
	const struct control *control = node->control;
	const struct member *member = &control->members[slot];

	return GET(member->left) ||
	       process_is_gone(member->pid, member->start_time, member->control_fd, control->device,
			       control->inode);
}

bool member_is_gone(const struct node *node, unsigned slot)
{
	return has_died(node->control, slot) &&
	       (GET(node->control->members[slot].state) != MEMBER_LIVE || is_gone(node, slot));
}

/* A newcomer may take the entry as soon as it is free, and set the word: only the dead one's word
 * is cleared. */
void member_free(struct node *node, unsigned slot)
{
	struct control *control = node->control;
	uint32_t word = __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);

	if (!(word & FUTEX_OWNER_DIED))
		return;
	if (GET(control->members[slot].state) == MEMBER_LIVE)
		PUT(control->members[slot].state, MEMBER_FREE);
	node_step();
	__atomic_compare_exchange_n(&control->alive[slot], &word, 0, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

void member_check_all(struct node *node)
{
	struct control *control = node->control;
	uint32_t limit = GET(control->member_limit);

	for (unsigned slot = 0; slot < limit; slot++) {
		struct member *member = &control->members[slot];
		uint32_t word = __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);

		if (GET(member->state) == MEMBER_LIVE && !(word & FUTEX_OWNER_DIED) &&
		    !process_is_same(member->pid, member->start_time))
			__atomic_compare_exchange_n(&control->alive[slot], &word,
						    word | FUTEX_OWNER_DIED, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	}
}

/* ---- joining and leaving the table ---- */

struct service {
	struct node *node;
	sem_t started;
	long error;
};

static void *serve(void *arg)
{
	struct service *service = arg;
	struct node *node = service->node;
	struct member *member = &node->control->members[node->slot];
	uint32_t *word = &node->control->alive[node->slot];

	member->robust_entry.next = &member->robust.list;
	member->robust.list.next = &member->robust_entry;
	member->robust.futex_offset = (long)((char *)word - (char *)&member->robust_entry);
	member->robust.list_op_pending = NULL;
	PUT(*word, (uint32_t)syscall(SYS_gettid));
	service->error =
		syscall(SYS_set_robust_list, &member->robust, sizeof(member->robust)) ? errno : 0;
	sem_post(&service->started);
	while (sem_wait(&node->service_stop) != 0)
		continue;
	return NULL;
}

static bool start_service(struct node *node, char **error)
{
	struct service service = { .node = node };
	sigset_t all, before;
	int failed;

	sem_init(&service.started, 0, 0);
	sem_init(&node->service_stop, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&node->service, NULL, serve, &service);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed) {
		pthread_setname_np(node->service, "npusim-node");
		while (sem_wait(&service.started) != 0)
			continue;
		node->serving = true;
		failed = (int)service.error;
	}
	sem_destroy(&service.started);
	if (!failed)
		return true;
	*error = node_text("node %s: cannot start the thread that vouches for this process: %s",
			   node->name, strerror(failed));
	return false;
}

static void stop_service(struct node *node)
{
	if (!node->serving)
		return;
	sem_post(&node->service_stop);
	pthread_join(node->service, NULL);
	node->serving = false;
	sem_destroy(&node->service_stop);
}

/* The last entry is for a newcomer that finds dead ones in the others, and will bury them. */
static bool find_slot(struct node *node, char **error)
{
	struct control *control = node->control;
	unsigned limit = anyone_died(control) ? NODE_MEMBERS : NODE_MEMBERS - 1;

	for (unsigned slot = 0; slot < limit; slot++)
		if (GET(control->members[slot].state) == MEMBER_FREE) {
			node->slot = slot;
			return true;
		}
	*error = node_text("node %s: %u processes use it already, which is the limit; end some of "
			   "them, or choose another NPUSIM_NODE",
			   node->name, NODE_MEMBERS - 1);
	return false;
}

/* A program that was a member, and called exec(): to all others the process lives, and may have the
 * same file under the same number again. Here the new program runs, so the old one is gone. */
static void end_former_programs(struct node *node)
{
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		struct member *member = &node->control->members[slot];

		if (GET(member->state) == MEMBER_LIVE && has_died(node->control, slot) &&
		    member->pid == node->pid && member->start_time == node->start_time)
			PUT(member->left, 1);
	}
}

bool member_add(struct node *node, bool visitor, char **error)
{
	struct control *control = node->control;
	struct member *member;

	end_former_programs(node);
	if (!find_slot(node, error))
		return false;
	member = &control->members[node->slot];
	PUT(member->generation, member->generation + 1);
	node->generation = member->generation;
	node->lock_id = (node->generation & LOCK_GENERATIONS) << 9 | (node->slot + 1);
	for (unsigned i = 0; i < NODE_POCKET; i++)
		PUT(member->pocket[i], 0);
	PUT(member->left, 0);
	PUT(member->visitor, visitor);
	PUT(member->pid, node->pid);
	PUT(member->start_time, node->start_time);
	process_command(node->pid, member->command, sizeof(member->command));
	PUT(member->control_fd, node->control_file.fd);
	for (unsigned m = 0; m < SIM_NODE_MAX; m++)
		PUT(member->memory_fd[m], node->memory[m] ? node->memory[m]->file.fd : -1);
	if (!start_service(node, error)) {
		stop_service(node);
		return false;
	}
	if (node->slot >= control->member_limit)
		PUT(control->member_limit, node->slot + 1);
	PUT(member->state, MEMBER_LIVE);
	return true;
}

/* The end of the thread is the end of the member, as at the death of the process; the next caller
 * frees the entry. */
void member_remove(struct node *node)
{
	PUT(node->control->members[node->slot].left, 1);
	stop_service(node);
}

/* ---- the lock ---- */

static inline bool lock_swap(struct node *node, uint32_t from, uint32_t to)
{
	node_step();
	return __atomic_compare_exchange_n(&node->control->lock, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

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
		    lock_swap(node, 0, node->lock_id))
			return true;
		relax();
	}
	return false;
}

static void warn_if_stopped(const struct node *node, const struct member *member)
{
	struct process_stat stat;

	if (process_stat(member->pid, 0, &stat) && (stat.state == 'T' || stat.state == 't'))
		npu_log(NPU_LOG_WARN,
			"node %s: process %d (%s) is stopped, and holds the node's lock: all "
			"processes of the "
			"node wait for it; continue it or end it",
			node->name, member->pid, member->command);
}

/* An owner's entry cannot be freed: that takes the lock. So the entry is still the owner's. */
static bool owner_is_dead(struct node *node, uint32_t word, unsigned round)
{
	unsigned slot = (word & LOCK_SLOT_MASK) - 1;
	struct member *member = &node->control->members[slot];

	if (word == 0 || slot >= NODE_MEMBERS ||
	    (member->generation & LOCK_GENERATIONS) != (word >> 9 & LOCK_GENERATIONS))
		return false;
	if (round % LOCK_DEEP_ROUNDS == LOCK_DEEP_ROUNDS - 1)
		member_check_all(node);
	if (round % LOCK_WARN_ROUNDS == LOCK_WARN_ROUNDS - 1)
		warn_if_stopped(node, member);
	return has_died(node->control, slot) && is_gone(node, slot);
}

static void lock_slow(struct node *node)
{
	const struct timespec sleep = { .tv_nsec = LOCK_SLEEP_NS };
	uint32_t *lock = &node->control->lock;

	for (unsigned round = 0;; round++) {
		uint32_t word = __atomic_load_n(lock, __ATOMIC_ACQUIRE);

		if (word == 0) {
			if (lock_swap(node, 0, node->lock_id | LOCK_WAITERS))
				return;
			continue;
		}
		if (owner_is_dead(node, word & ~LOCK_WAITERS, round)) {
			if (!lock_swap(node, word, node->lock_id | LOCK_WAITERS))
				continue;
			node_rebuild(node);
			return;
		}
		if ((word & LOCK_WAITERS) || lock_swap(node, word, word | LOCK_WAITERS))
			syscall(SYS_futex, lock, FUTEX_WAIT, word | LOCK_WAITERS, &sleep, NULL, 0);
	}
}

/* A thread that were cancelled with the lock in its hands would stop all processes of the node. */
void node_lock(struct node *node)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (!lock_swap(node, 0, node->lock_id) && !lock_spin(node))
		lock_slow(node);
	node->cancel_state = cancel_state;
}

void node_unlock(struct node *node)
{
	int cancel_state = node->cancel_state;
	uint32_t word;

	node_step();
	word = __atomic_exchange_n(&node->control->lock, 0, __ATOMIC_ACQ_REL);
	if (word & LOCK_WAITERS)
		syscall(SYS_futex, &node->control->lock, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_setcancelstate(cancel_state, NULL);
}

/* ---- entry ---- */

/* Waits, not long, and once for each of the dead, until no thread of it runs any more. Lock not
 * held. */
static void wait_until_gone(struct node *node)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	uint32_t limit = GET(node->control->member_limit);

	for (unsigned slot = 0; slot < limit; slot++) {
		uint32_t word = GET(node->control->alive[slot]);

		if (!(word & FUTEX_OWNER_DIED) ||
		    __atomic_exchange_n(&node->waited[slot], word, __ATOMIC_RELAXED) == word)
			continue;
		for (unsigned round = 0; round < GONE_WAIT_ROUNDS; round++) {
			if (GET(node->control->members[slot].state) != MEMBER_LIVE ||
			    !has_died(node->control, slot) || is_gone(node, slot))
				break;
			nanosleep(&pause, NULL);
		}
	}
}

bool node_is_quiet(const struct node *node)
{
	return !node_is_forked(node) && !anyone_died(node->control) &&
	       member_is_live(node, node->slot, node->generation);
}

drvError_t node_enter(struct node *node)
{
	if (node_is_forked(node)) {
		npu_message_set("node %s: this process was forked from process %d after that had "
				"opened the devices, and "
				"devices do not survive a fork; fork before the first call, or "
				"start a new program (exec, "
				"or multiprocessing with the spawn method)",
				node->name, node->pid);
		return DRV_ERROR_PROCESS_EXIT;
	}
	node_lock(node);
	if (__builtin_expect(anyone_died(node->control), false)) {
		node_unlock(node);
		wait_until_gone(node);
		node_lock(node);
		node_recover(node);
	}
	if (__builtin_expect(member_is_live(node, node->slot, node->generation), true))
		return DRV_ERROR_NONE;
	node_unlock(node);
	npu_message_set("node %s: this process is no member any more", node->name);
	return DRV_ERROR_PROCESS_EXIT;
}
