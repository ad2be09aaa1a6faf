/* SPDX-License-Identifier: Apache-2.0
 *
 * When the activations of one pseudo channel may begin, for the HBM to find room for another one:
 * rings of bits, a clock each, that say when none can. Each activation rules out what is nearer to
 * it than tRRD_S, for its bank group tRRD_L; four of them a fifth within tFAW.
 */
#ifndef NPUSIM_SIM_HBM_HBM_ACTS_H
#define NPUSIM_SIM_HBM_HBM_ACTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define ACTS_NEVER (-(UINT64_C(1) << 30)) /* clock: more than any distance before time begins */
#define ACTS_WORDS 128u                   /* of a ring, at least */
#define ACTS_FAW   32u                    /* remembered where tFAW counts */

/* What is the same for all pseudo channels, in clocks. */
struct hbm_acts_shape {
	uint64_t rrd_s, rrd_l, faw;
	bool plain;     /* tRRD_S alone counts, and is short: a ring has ACTS_WORDS */
	bool by_group;  /* tRRD_L is longer */
	bool has_faw;   /* tFAW is not had anyway */
	uint64_t words; /* of a ring; a power of two */
	uint64_t reach; /* none begins longer before the latest one: that is forgotten */
	/* where it is plain: the bits that one takes, and the last bit of a word where they can
	 * begin to end in it */
	uint64_t around, fits;
};

/* Of 64 clocks, those of this number; what else it was for is forgotten. */
struct hbm_acts_word {
	uint64_t number, taken;
};

/* Clocks, some before time begins: differences count. */
struct hbm_acts {
	struct hbm_acts_word *word; /* the ring of all, then those of the bank groups */
	uint64_t from;              /* none begins before */
	uint64_t *latest;           /* ACTS_FAW, in order of time; where tFAW counts */
};

static inline uint64_t acts_later(uint64_t a, uint64_t b)
{
	return (int64_t)a > (int64_t)b ? a : b;
}

static inline void hbm_acts_shape_init(struct hbm_acts_shape *shape, uint64_t rrd_s, uint64_t rrd_l,
				       uint64_t faw)
{
	uint64_t widest = MAX(rrd_l, faw);

	*shape = (struct hbm_acts_shape){ rrd_s, rrd_l, faw, .words = ACTS_WORDS };
	shape->by_group = rrd_l > rrd_s;
	shape->has_faw = faw > 4 * rrd_s;
	while (shape->words * 64 < 8 * widest)
		shape->words *= 2;
	shape->reach = (shape->words - 1) * 64 - 2 * widest;
	shape->plain = !shape->by_group && !shape->has_faw && rrd_s && rrd_s <= 32;
	if (shape->plain) {
		shape->around = UINT64_MAX >> (65 - 2 * rrd_s);
		shape->fits = 65 - 2 * rrd_s;
	}
}

/* words: of a ring. */
static inline struct hbm_acts_word *acts_word(const struct hbm_acts *acts, uint64_t words,
					      size_t ring, uint64_t number)
{
	return &acts->word[ring * words + (number & (words - 1))];
}

static inline uint64_t acts_taken(const struct hbm_acts_word *word, uint64_t number)
{
	return word->number == number ? word->taken : 0;
}

static inline void acts_take(struct hbm_acts_word *word, uint64_t number, uint64_t mask)
{
	if (G_UNLIKELY(word->number != number))
		*word = (struct hbm_acts_word){ number, 0 };
	word->taken |= mask;
}

/* The earliest clock from t on where the pseudo channel has room for an activation. Banks'
 * timelines differ, so it may be before others that were placed earlier. */
static inline uint64_t hbm_acts_find(const struct hbm_acts *acts,
				     const struct hbm_acts_shape *shape, size_t group, uint64_t t,
				     bool plain)
{
	uint64_t taken, words = plain ? ACTS_WORDS : shape->words;

	for (t = acts_later(t, acts->from);; t = (t | 63) + 1) {
		taken = acts_taken(acts_word(acts, words, 0, t / 64), t / 64);
		if (!plain && shape->by_group)
			taken |= acts_taken(acts_word(acts, words, 1 + group, t / 64), t / 64);
		taken = ~taken >> t % 64;
		if (G_LIKELY(taken))
			return t + (unsigned)__builtin_ctzll(taken);
	}
}

/* From one clock up to and with another; none if that is before it. */
static inline void acts_mark(struct hbm_acts *acts, const struct hbm_acts_shape *shape, size_t ring,
			     uint64_t from, uint64_t to)
{
	for (; (int64_t)(to - from) >= 0; from = (from | 63) + 1) {
		uint64_t mask = UINT64_MAX << from % 64;

		if (from / 64 == to / 64)
			mask &= UINT64_MAX >> (63 - to % 64);
		acts_take(acts_word(acts, shape->words, ring, from / 64), from / 64, mask);
	}
}

/* tFAW: no fifth one that spans less with any four of which this is one. */
__attribute__((cold)) static void acts_mark_faw(struct hbm_acts *acts,
						const struct hbm_acts_shape *shape, uint64_t t)
{
	uint64_t *latest = acts->latest;
	unsigned at = 0;

	for (; at + 1 < ACTS_FAW && (int64_t)(latest[at + 1] - t) <= 0; at++)
		latest[at] = latest[at + 1];
	latest[at] = t;
	for (unsigned i = at < 3 ? 0 : at - 3; i <= at && i + 3 < ACTS_FAW; i++)
		if (latest[i + 3] - latest[i] < shape->faw)
			acts_mark(acts, shape, 0, latest[i + 3] + 1 - shape->faw,
				  latest[i] + shape->faw - 1);
	acts->from =
		acts_later(acts->from, latest[3]); /* so that any has the three before it here */
}

/* Books what hbm_acts_find() found. */
static inline void hbm_acts_take(struct hbm_acts *acts, const struct hbm_acts_shape *shape,
				 size_t group, uint64_t t, bool plain)
{
	uint64_t begin = t + 1 - shape->rrd_s, next = (begin + 64) / 64;

	acts->from = acts_later(acts->from, t - shape->reach);
	if (plain || shape->plain) {
		acts_take(acts_word(acts, ACTS_WORDS, 0, begin / 64), begin / 64,
			  shape->around << begin % 64);
		if (G_UNLIKELY(begin % 64 > shape->fits))
			acts_take(acts_word(acts, ACTS_WORDS, 0, next), next,
				  shape->around >> (64 - begin % 64));
		return;
	}
	acts_mark(acts, shape, 0, t + 1 - shape->rrd_s, t + shape->rrd_s - 1);
	if (shape->by_group)
		acts_mark(acts, shape, 1 + group, t + 1 - shape->rrd_l, t + shape->rrd_l - 1);
	if (shape->has_faw)
		acts_mark_faw(acts, shape, t);
}

#endif
