/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts a node's records anew, in another way than node_rebuild() does, and says where they
 * contradict each other.
 */
#include "node-actors.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend-sim/node/records.h"

struct audit {
	struct node *node;
	char *wrong;
	unsigned char *owned; /* a byte a frame of the memory at hand */
	uint32_t shares, kept;
	uint32_t *allowed;            /* whitelist entries of each share */
	uint32_t alive[NODE_MEMBERS]; /* before: who dies meanwhile may be there */
};

#define WRONG(audit, ...)                                              \
	do {                                                           \
		if (!(audit)->wrong)                                   \
			(audit)->wrong = g_strdup_printf(__VA_ARGS__); \
	} while (0)

static void audit_block(struct audit *audit, struct memory *m, uint32_t first)
{
	const struct block_record *record = &m->blocks[first];
	const struct block_place place = { m, first, &m->blocks[first] };
	uint32_t frames = 0, extents = 0;
	bool held = false;

	for (uint32_t at = first; at != NODE_NONE; at = m->extents[at].next, extents++) {
		if (at >= m->frames || m->extents[at].count == 0 ||
		    m->extents[at].count > m->frames - at || extents > m->frames) {
			WRONG(audit, "memory %u, block %u: extent at %u is out of range", m->index,
			      first, at);
			return;
		}
		if ((at < m->usable) != (first < m->usable) ||
		    (record->giant &&
		     (at % NODE_GIANT_FRAMES || m->extents[at].count % NODE_GIANT_FRAMES)))
			WRONG(audit, "memory %u, block %u: extent at %u is in the wrong place",
			      m->index, first, at);
		for (uint32_t f = at; f < at + m->extents[at].count; f++)
			if (audit->owned[f]++)
				WRONG(audit, "memory %u: frame %u has two owners", m->index, f);
		frames += m->extents[at].count;
	}
	if (frames != record->frames || extents != record->extent_count)
		WRONG(audit,
		      "memory %u, block %u: %u frames in %u extents, and %u in %u are written down",
		      m->index, first, frames, extents, record->frames, record->extent_count);
	for (unsigned slot = 0; slot < NODE_MEMBERS; slot++)
		if (block_is_held_by(&place, slot)) {
			held = true;
			if (GET(audit->node->control->members[slot].state) != MEMBER_LIVE)
				WRONG(audit, "memory %u, block %u: held by member %u, who is none",
				      m->index, first, slot);
		}
	audit->kept += !held;
	if (!held && !record->fd)
		WRONG(audit, "memory %u, block %u: lives, and nobody holds it", m->index, first);
	if (record->share) {
		const struct share_record *share = &audit->node->shares[record->share - 1];

		audit->shares++;
		if (share->block != m->id_base + first ||
		    share->block_generation != record->generation)
			WRONG(audit, "memory %u, block %u: its share is another block's", m->index,
			      first);
	}
}

static void audit_memory(struct audit *audit, struct memory *m)
{
	uint64_t free_frames = 0, closing = 0;
	uint32_t giants = 0;

	audit->owned = calloc(m->frames, 1);
	for (uint32_t f = 0; f < m->frames; f++)
		if (m->live[f / 64] >> (f % 64) & 1) {
			audit_block(audit, m, f);
			closing += m->blocks[f].closing && f < m->usable ? m->blocks[f].frames : 0;
		}
	for (uint32_t f = 0; f < m->frames; f++) {
		if ((m->used[f / 64] >> (f % 64) & 1) != audit->owned[f])
			WRONG(audit, "memory %u: frame %u is %s, and %s", m->index, f,
			      audit->owned[f] ? "owned" : "unowned",
			      audit->owned[f] ? "counts as free" : "counts as used");
		free_frames += f < m->usable && !audit->owned[f];
	}
	for (uint32_t g = 0; g * NODE_GIANT_FRAMES < m->usable; g++) {
		uint32_t used = 0, end = (g + 1) * NODE_GIANT_FRAMES;

		for (uint32_t f = g * NODE_GIANT_FRAMES; f < end && f < m->usable; f++)
			used += audit->owned[f];
		giants += used == 0 && end <= m->usable;
		if (used != m->giant_used[g])
			WRONG(audit, "memory %u: giant %u has %u used frames, %u are counted",
			      m->index, g, used, m->giant_used[g]);
	}
	if (free_frames != m->state->free_frames || giants != m->state->free_giants ||
	    closing != m->state->closing_frames)
		WRONG(audit,
		      "memory %u: %llu frames and %u giants free, %llu closing; %llu, %u and %llu "
		      "are counted",
		      m->index, (unsigned long long)free_frames, giants,
		      (unsigned long long)closing, (unsigned long long)m->state->free_frames,
		      m->state->free_giants, (unsigned long long)m->state->closing_frames);
	free(audit->owned);
}

/* Each entry of a living share is counted, and nothing between its share's place and its own was
 * never used: a search would end there. */
static void audit_allowed(struct audit *audit)
{
	const struct node *node = audit->node;
	const uint32_t each = NODE_ALLOWS / NODE_SHARES;
	uint32_t used = 0; /* entries before the one at hand without one that was never used */

	for (uint32_t i = 0; i < node->control->share_limit * each || node->allows[i].share; i++) {
		const struct allow_record *record = &node->allows[i];
		const struct share_record *share = &node->shares[record->index];
		struct block_place place;

		if (record->share && share->number == record->share &&
		    share_is_live(node, record->index, &place) &&
		    (++audit->allowed[record->index] > share->allowed ||
		     i - record->index * each > used))
			WRONG(audit, "whitelist entry %u of share %u is %s", i, record->index,
			      audit->allowed[record->index] > share->allowed ? "not counted"
									     : "out of reach");
		used = record->share ? used + 1 : 0;
	}
}

static void audit_pool(struct audit *audit)
{
	const struct control *control = audit->node->control;

	for (uint32_t i = 0; i < control->share_limit; i++) {
		const struct share_record *name = &audit->node->shares[i];
		const struct member *member = &control->members[name->exporter];

		if (!name->named)
			continue;
		audit->shares++;
		if (GET(member->state) != MEMBER_LIVE ||
		    member->generation != name->exporter_generation)
			WRONG(audit, "name %u: it was made by member %u, who is none", i,
			      name->exporter);
	}
	for (unsigned slot = 0; slot < control->member_limit; slot++)
		if (audit->alive[slot] & FUTEX_OWNER_DIED &&
		    GET(control->alive[slot]) == audit->alive[slot])
			WRONG(audit, "member %u is dead, and still there", slot);
	if (audit->shares != control->share_count)
		WRONG(audit, "%u shares live, %u are counted", audit->shares, control->share_count);
}

char *node_audit(struct node *node)
{
	struct audit audit = { .node = node };

	for (unsigned slot = 0; slot < NODE_MEMBERS; slot++)
		audit.alive[slot] = GET(node->control->alive[slot]);
	if (node_enter(node) != DRV_ERROR_NONE)
		return g_strdup_printf("the node cannot be entered: %s", npu_message());
	audit.allowed = calloc(NODE_SHARES, sizeof(*audit.allowed));
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		if (node->memory[i] && node->memory[i]->state->used)
			audit_memory(&audit, node->memory[i]);
	audit_pool(&audit);
	audit_allowed(&audit);
	if (audit.kept != node->control->fd_kept)
		WRONG(&audit, "%u blocks are kept by descriptors alone, %u are counted", audit.kept,
		      node->control->fd_kept);
	node_unlock(node);
	free(audit.allowed);
	return audit.wrong;
}

#ifdef NODE_STEPS
static uint64_t steps, die_at_step;
static unsigned slow_one_in;

void steps_set(uint64_t die_at)
{
	die_at_step = die_at;
	__atomic_store_n(&steps, 0, __ATOMIC_RELEASE);
}

void steps_slow(unsigned one_in)
{
	slow_one_in = one_in;
}

uint64_t steps_done(void)
{
	return __atomic_load_n(&steps, __ATOMIC_RELAXED);
}

void node_step(void)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	uint64_t step = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);

	if (step == die_at_step)
		kill(getpid(), SIGKILL);
	if (slow_one_in && step % slow_one_in == 0)
		nanosleep(&pause, NULL);
}
#endif
