/* SPDX-License-Identifier: Apache-2.0
 *
 * When the activations of one pseudo channel begin, for the HBM to find room for another one:
 * tRRD_S from any, tRRD_L from one of the bank group, no more than four within tFAW.
 */
#ifndef NPUSIM_SIM_HBM_HBM_ACTS_H
#define NPUSIM_SIM_HBM_HBM_ACTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ACTS       32u /* remembered */
#define ACTS_BACK  4u  /* of them that tRRD may keep another one from */
#define ACTS_AHEAD 3u
#define ACTS_BEGIN (UINT64_C(1) << 32) /* clock 0 of them: more than any distance behind none */
#define GROUP_BITS 4                   /* a profile has at most 16 bank groups */

/* What is the same for all pseudo channels, in clocks. */
struct hbm_acts_shape {
	uint64_t rrd_s, rrd_l, faw;
	bool has_faw; /* is not had anyway */
	bool one_rrd; /* is all that keeps activations apart */
};

struct hbm_acts {
	unsigned first;
	/* from `first` on the latest ACTS activations, in order of time: (ACTS_BEGIN + clock) <<
	 * GROUP_BITS | bank group; 0: none; then one that is never reached */
	uint64_t act[2 * ACTS + 1];
};

static inline void hbm_acts_shape_init(struct hbm_acts_shape *shape, uint64_t rrd_s, uint64_t rrd_l,
				       uint64_t faw)
{
	bool has_faw = faw > 4 * rrd_s;

	*shape = (struct hbm_acts_shape){ rrd_s, rrd_l, faw, has_faw, rrd_l == rrd_s && !has_faw };
}

static inline void hbm_acts_init(struct hbm_acts *it)
{
	it->act[ACTS] = UINT64_MAX;
}

static inline uint64_t act_distance(const struct hbm_acts_shape *shape, uint64_t act,
				    unsigned group)
{
	return act % (1u << GROUP_BITS) == group ? shape->rrd_l : shape->rrd_s;
}

/* The earliest clock for an activation behind acts[at - 1], as far as those before it go. */
static inline uint64_t after_acts(const struct hbm_acts_shape *shape, const uint64_t *acts,
				  unsigned at, unsigned group, uint64_t t)
{
	for (unsigned i = at; i > 0 && i + ACTS_BACK > at; i--) {
		uint64_t act = acts[i - 1], clock = act >> GROUP_BITS;

		if (clock + shape->rrd_l <= t)
			break;
		if (i == at || act % (1u << GROUP_BITS) == group)
			t = MAX(t, clock + act_distance(shape, act, group));
	}
	if (G_UNLIKELY(shape->has_faw) && at >= 4)
		t = MAX(t, (acts[at - 4] >> GROUP_BITS) + shape->faw);
	return t;
}

/* True if an activation at t, before acts[at], leaves those behind it their distance; five in a row
 * span tFAW. */
static inline bool before_acts(const struct hbm_acts_shape *shape, const uint64_t *acts,
			       unsigned at, unsigned group, uint64_t t)
{
	for (unsigned i = at; i < ACTS && i < at + ACTS_AHEAD; i++)
		if ((i == at || acts[i] % (1u << GROUP_BITS) == group) &&
		    t + act_distance(shape, acts[i], group) > acts[i] >> GROUP_BITS)
			return false;
	for (unsigned i = at; G_UNLIKELY(shape->has_faw) && i < ACTS && i < at + 4; i++) {
		/* i - at + 1 of them behind the new one, the others before it */
		unsigned back = 3 - (i - at);
		uint64_t from = back ? (at >= back ? acts[at - back] : 0) : t << GROUP_BITS;

		if ((acts[i] >> GROUP_BITS) - (from >> GROUP_BITS) < shape->faw)
			return false;
	}
	return true;
}

/* hbm_acts_find() from `at` on, whatever keeps activations apart. */
static __attribute__((noinline)) uint64_t find_by_rules(const struct hbm_acts_shape *shape,
							const uint64_t *acts, unsigned at,
							unsigned group, uint64_t t,
							unsigned *out_at)
{
	t = after_acts(shape, acts, at, group, t);
	while (at < ACTS && !before_acts(shape, acts, at, group, t)) {
		at++;
		t = after_acts(shape, acts, at, group, t);
	}
	*out_at = at;
	return t;
}

/* The earliest clock from t on where the pseudo channel has room for an activation. Banks'
 * timelines differ, so it may be before others that were placed earlier: *out_at of those
 * remembered are before it, the oldest always, since what was further back is not remembered. */
static inline uint64_t hbm_acts_find(const struct hbm_acts *it, const struct hbm_acts_shape *shape,
				     unsigned group, uint64_t t, unsigned *out_at)
{
	const uint64_t *acts = &it->act[it->first];
	uint64_t last = (ACTS_BEGIN + t + 1) << GROUP_BITS, rrd = shape->rrd_s;
	unsigned at = 1;

	t += ACTS_BEGIN;
#pragma GCC unroll 8
	for (unsigned step = ACTS / 2; step; step /= 2)
		at += (acts[at + step - 1] < last) * step;
	if (G_UNLIKELY(!shape->one_rrd))
		return find_by_rules(shape, acts, at, group, t, out_at) - ACTS_BEGIN;
	t = MAX(t, (acts[at - 1] >> GROUP_BITS) + rrd);
	for (; t + rrd > acts[at] >> GROUP_BITS; at++)
		t = (acts[at] >> GROUP_BITS) + rrd;
	*out_at = at;
	return t - ACTS_BEGIN;
}

/* The oldest one is forgotten. */
static inline void hbm_acts_take(struct hbm_acts *it, unsigned group, uint64_t t, unsigned at)
{
	uint64_t *acts;

	if (G_UNLIKELY(it->first == ACTS)) {
		memmove(it->act, &it->act[ACTS], (ACTS + 1) * sizeof(uint64_t));
		it->first = 0;
	}
	acts = &it->act[it->first++];
	for (unsigned i = ACTS + 1; i > at; i--)
		acts[i] = acts[i - 1];
	acts[at] = (ACTS_BEGIN + t) << GROUP_BITS | group;
}

#endif
