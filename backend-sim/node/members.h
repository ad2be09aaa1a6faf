/* SPDX-License-Identifier: Apache-2.0
 *
 * The member table, the node's lock, and the entry to the node through which every function
 * passes: who is alive, who may proceed, and that the memory of dead members has been reclaimed.
 */
#ifndef NPUSIM_NODE_MEMBERS_H
#define NPUSIM_NODE_MEMBERS_H

#include "records.h"

/* ---- member.c */

/* Takes an entry of the member table for this process, alive from then on. Start-up lock held. */
bool member_add(struct node *node, bool visitor, char **error);
/* Ends the membership: nothing may be held. */
void member_remove(struct node *node);
/* Finds out that its process is gone where the kernel has not said so. */
void member_check(struct node *node, unsigned slot);
void member_check_all(struct node *node);
bool member_is_dead(const struct node *node, unsigned slot);
bool member_is_live(const struct node *node, unsigned slot, uint32_t generation);
/* The kernel says that a member in the table has ended. */
bool member_has_died(const struct node *node, unsigned slot);
bool member_anyone_died(struct node *node);
/* Dead, and none of its threads runs any more. */
bool member_is_gone(const struct node *node, unsigned slot);
/* Waits for that, `ms` at most; also ends, with true, when the entry is another's. */
bool member_wait_gone(const struct node *node, unsigned slot, int ms);
/* Lock held, and nothing held by that member. */
void member_free(struct node *node, unsigned slot);

/* ---- lock.c */

void node_lock(struct node *node);
void node_unlock(struct node *node);

/* ---- enter.c */

/* The entry of every function: the lock is held, what dead members left is back. Else PROCESS_EXIT
 * and a message. */
drvError_t node_enter(struct node *node);
/* True if this process may go on without entering: it is a member, and nobody is dead. */
bool node_is_quiet(struct node *node);
/* Blocks that only descriptors kept, and whose descriptors are closed, go. Lock held at entry and
 * return; let go while frames are cleaned. */
void node_sweep(struct node *node);

#endif
