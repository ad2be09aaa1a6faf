/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the table of members, and who in it is alive. Does not know what members hold.
 *
 * The kernel vouches for a member: a service thread that does nothing lives as long as the process,
 * its id stands in control->alive[slot], and that word is on the thread's robust list
 * (Documentation/locking/robust-futex-ABI.rst), as is the node's lock. When the thread ends, for
 * whatever reason, the kernel sets FUTEX_OWNER_DIED there: to ask whether eight members live is to
 * read eight words. The list's head lies in the segment too, where the reaper of the out-of-memory
 * killer does not come. The thread may end some microseconds before its siblings notice that they
 * are dead: see process_is_gone().
 *
 * Where the kernel has no robust lists (a filter of system calls, qemu-user), others look in /proc
 * for such a member, every few milliseconds.
 */
#include "records.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

#define LOOK_MS 5 /* for members that the kernel does not vouch for */

/* ---- who is alive ---- */

bool member_has_died(const struct node *node, unsigned slot)
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
	return !member_is_dead(node, slot) && node->control->members[slot].generation == generation;
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

bool member_anyone_died(struct node *node)
{
	const struct control *control = node->control;
	uint32_t limit = GET(control->member_limit), words = 0;

	if (__builtin_expect(GET(control->unvouched), false))
		look_at_unvouched(node);
	for (unsigned slot = 0; slot < limit; slot++)
		words |= __atomic_load_n(&control->alive[slot], __ATOMIC_ACQUIRE);
	return words & FUTEX_OWNER_DIED;
}

static bool process_of_is_gone(const struct node *node, const struct member *member)
{
	return process_is_gone(member->pid, member->start_time, member->fd, node->control->device,
			       node->control->inode);
}

bool member_is_gone(const struct node *node, unsigned slot)
{
	const struct member *member = &node->control->members[slot];

	return member_has_died(node, slot) &&
	       (GET(member->state) != MEMBER_LIVE || GET(member->left) ||
		process_of_is_gone(node, member));
}

bool member_wait_gone(const struct node *node, unsigned slot, int ms)
{
	const int64_t end = clock_ms() + ms;

	while (member_has_died(node, slot) && !member_is_gone(node, slot)) {
		if (clock_ms() >= end)
			return false;
		process_wait(node->control->members[slot].pid, 1); /* an exec ends no process */
	}
	return true;
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

void member_check(struct node *node, unsigned slot)
{
	struct member *member = &node->control->members[slot];
	uint32_t *alive = &node->control->alive[slot], word = GET(*alive);

	if (GET(member->state) == MEMBER_LIVE && !(word & FUTEX_OWNER_DIED) &&
	    (GET(member->unvouched) ? process_of_is_gone(node, member)
				    : !process_is_same(member->pid, member->start_time)))
		__atomic_compare_exchange_n(alive, &word, word | FUTEX_OWNER_DIED, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void member_check_all(struct node *node)
{
	uint32_t limit = GET(node->control->member_limit);

	for (unsigned slot = 0; slot < limit; slot++)
		member_check(node, slot);
}

/* ---- joining and leaving the table ---- */

static void *serve(void *arg)
{
	struct node *node = arg;
	struct member *member = &node->control->members[node->slot];
	uint32_t *word = &node->control->alive[node->slot];

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
	while (sem_wait(&node->service_stop) != 0)
		continue;
	return NULL;
}

static bool start_service(struct node *node, char **error)
{
	sigset_t all, before;
	int failed;

	sem_init(&node->service_started, 0, 0);
	sem_init(&node->service_stop, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&node->service_thread, NULL, serve, node);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		*error = g_strdup_printf(
			"node %s: cannot start the thread that vouches for this process: %s",
			node->name, strerror(failed));
		return false;
	}
	pthread_setname_np(node->service_thread, "npusim-node");
	while (sem_wait(&node->service_started) != 0)
		continue;
	return true;
}

static bool find_slot(struct node *node)
{
	/* The last entry is for a newcomer that finds dead ones in the others, and will bury them.
	 */
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
		if (!find_slot(node)) {
			*error = g_strdup_printf("node %s: %u processes use it already, which is "
						 "the limit; end some of them, or choose another "
						 "NPUSIM_NODE",
						 node->name, NODE_MEMBERS - 1);
			return false;
		}
	}
	member = &control->members[node->slot];
	PUT(member->generation, member->generation + 1);
	node->generation = member->generation;
	for (unsigned i = 0; i < NODE_CACHED; i++)
		PUT(member->frame_cache[i], 0);
	for (unsigned i = 0; i < NODE_WRITES; i++)
		PUT(member->writes[i].block, 0);
	PUT(member->left, 0);
	PUT(member->visitor, visitor);
	PUT(member->unvouched, 0);
	PUT(member->pid, node->pid);
	PUT(member->start_time, node->start_time);
	process_command(node->pid, member->command, sizeof(member->command));
	PUT(member->fd, node->file.fd);
	PUT(member->server, node->shape.server);
	if (!start_service(node, error))
		return false;
	if (node->slot >= control->member_limit)
		PUT(control->member_limit, node->slot + 1);
	PUT(member->state, MEMBER_LIVE);
	return true;
}

/* The end of the thread is the end of the member, as at the death of the process; the next caller
 * frees the entry. */
void member_remove(struct node *node)
{
	struct member *member = &node->control->members[node->slot];

	PUT(member->left, 1);
	sem_post(&node->service_stop);
	pthread_join(node->service_thread, NULL);
	if (member->unvouched)
		__atomic_fetch_or(&node->control->alive[node->slot], FUTEX_OWNER_DIED,
				  __ATOMIC_ACQ_REL);
}
