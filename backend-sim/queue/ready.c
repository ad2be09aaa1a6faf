/* SPDX-License-Identifier: Apache-2.0
 *
 * Which submission queues are ready, and which are blocked. Kicked queues are kept in one list and
 * run in its order: what happens at one point of simulated time happens in the same order every
 * time. What they run, sqe.c knows.
 */
#include "queue/queue.h"

static bool is_blocked(const struct queue_sq *sq)
{
	return sq->state != SQ_READY && sq->state != SQ_BUSY;
}

/* Another process may end the wait, without a word. */
static bool is_polled(const struct queue_sq *sq)
{
	return sq->state == SQ_WAIT_VALUE || sq->state == SQ_WAIT_NOTIFY;
}

void queue_block_locked(struct bsim *bs, struct queue_sq *sq, enum queue_sq_state state)
{
	sq->state = state;
	if (state == SQ_CQ_FULL) {
		sq->wait_device = sq->device;
		sq->wait_id = 0;
	}
	TAILQ_INSERT_TAIL(&bs->queues->blocked, sq, blocked_link);
	bs->queues->polled += is_polled(sq);
	bs->queues->deadlines += sq->deadline_ps != SIM_NEVER;
}

static void unblock(struct queue_set *set, struct queue_sq *sq)
{
	if (!is_blocked(sq))
		return;
	TAILQ_REMOVE(&set->blocked, sq, blocked_link);
	set->polled -= is_polled(sq);
	set->deadlines -= sq->deadline_ps != SIM_NEVER;
	sq->state = SQ_READY;
}

void queue_kick_locked(struct bsim *bs, struct queue_sq *sq)
{
	unblock(bs->queues, sq);
	if (!sq->listed)
		TAILQ_INSERT_TAIL(&bs->queues->ready, sq, ready_link);
	sq->listed = true;
}

void queue_wake_locked(struct bsim *bs, enum queue_sq_state state, unsigned device, uint32_t id)
{
	struct queue_sq *sq, *next;

	for (sq = TAILQ_FIRST(&bs->queues->blocked); sq != NULL; sq = next) {
		next = TAILQ_NEXT(sq, blocked_link);
		if (sq->state != state || sq->wait_device != device || sq->wait_id != id)
			continue;
		queue_kick_locked(bs, sq);
		if (state == SQ_WAIT_NOTIFY)
			return; /* one record, one waiter */
	}
}

static void unlist(struct queue_set *set, struct queue_sq *sq)
{
	if (sq->listed)
		TAILQ_REMOVE(&set->ready, sq, ready_link);
	sq->listed = false;
}

void queue_run_locked(struct bsim *bs, uint64_t now_ps)
{
	struct queue_set *set = bs->queues;
	bool more;

	if (set->running)
		return;
	set->now_ps = now_ps;
	for (struct queue_sq *sq; !set->running && (sq = TAILQ_FIRST(&set->ready)) != NULL;) {
		set->running = true;
		more = queue_advance_locked(bs, sq); /* then it stays the first */
		if (!more)
			unlist(set, sq);
		if (sq->state == SQ_DONE)
			queue_sq_free(sq);
		set->running = false;
		if (!TAILQ_EMPTY(&set->ready))
			sim_lock_offer(&bs->sim_lock); /* others may run queues, and go on */
		set->now_ps = MAX(set->now_ps, now_ps);
	}
}

void queue_sq_drop_locked(struct bsim *bs, struct queue_sq *sq)
{
	unblock(bs->queues, sq);
	unlist(bs->queues, sq);
	queue_uses_end_locked(bs, sq, sq->holding || sq->state == SQ_BUSY, queue_undone(sq));
	if (sq->state == SQ_BUSY) {
		sq->doomed = true;
		LIST_INSERT_HEAD(&bs->queues->doomed, sq, doomed_link);
	} else {
		queue_sq_free(sq);
	}
}
