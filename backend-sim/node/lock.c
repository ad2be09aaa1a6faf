/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's lock: a robust futex (Documentation/locking/robust-futex-ABI.rst) that any thread of a
 * member takes in the name of the member's service thread, on whose robust list it always is. When
 * a member ends with the lock in its hands, the kernel sets FUTEX_OWNER_DIED and wakes one that
 * waits: it waits until no thread of the dead one runs any more, takes the lock over, and builds
 * anew what the dead one may have left half done.
 *
 * The kernel takes the owner's name off the word, so control->lock_owner has it too, from just
 * after the lock is taken until just before it is let go: who dies between has nothing half done.
 */
#include "records.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

#define LOCK_SPINS     400
#define LOCK_LOOK_MS   20   /* so long a waiter relies on the kernel's word alone */
#define LOCK_WARN_LOOK 150u /* looks until a stopped owner is named */

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
		    lock_swap(node, 0, node->service))
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
	for (unsigned slot = 0; slot < GET(node->control->member_limit); slot++) {
		if (GET(node->control->members[slot].service) != (word & FUTEX_TID_MASK))
			continue;
		member_check(node, slot);
		if (member_is_gone(node, slot))
			lock_swap(node, word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
	}
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
			if (!lock_swap(node, word, mine))
				continue;
			PUT(node->control->lock_owner, node->slot + 1);
			node_rebuild(node);
			return;
		}
		if ((word & FUTEX_TID_MASK) == 0) {
			if (lock_swap(node, word, mine))
				return;
		} else if (word == wait || lock_swap(node, word, wait)) {
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
	if (!lock_swap(node, 0, node->service) && !lock_spin(node))
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
