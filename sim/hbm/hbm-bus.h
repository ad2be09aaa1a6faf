/* SPDX-License-Identifier: Apache-2.0
 *
 * The data bus of one pseudo channel as a ring of bits: which slots a bank group cannot use,
 * because a burst occupies them or one of the same group is too near. Slots are tCCD_S long; the
 * words of all groups lie side by side, so that a search or a booking touches one or two cache
 * lines.
 */
#ifndef NPUSIM_SIM_HBM_HBM_BUS_H
#define NPUSIM_SIM_HBM_HBM_BUS_H

#include <glib.h>
#include <stdint.h>

#define BUS_WORDS  32u               /* a power of two */
#define BUS_SLOTS  (BUS_WORDS * 64u) /* remembered: half of them lie behind the last booking */
#define BUS_GROUPS 16u               /* at most */
#define BUS_BURSTS 4u                /* of one booking, at most */
#define BUS_STEP   (64 / (BUS_BURSTS + 1)) /* at most: they fit into a word */

/* What is the same for all pseudo channels. */
struct hbm_bus_shape {
	uint64_t step;     /* slots between two bursts of a bank group */
	unsigned word_lg2; /* of the count of uint64_t from word to word of the ring */
	/* of so many bursts, the first at bit 0: their slots, and those nearer than `step` to them,
	 * which begin step - 1 before */
	uint64_t all[BUS_BURSTS + 1], own[BUS_BURSTS + 1];
};

struct hbm_bus {
	/* ring of words: its number + 1 and the groups that have bits of their own there (one bit
	 * each), the slots with bursts, and those which the bursts of each group keep from it. A
	 * word of another number has no booking. */
	uint64_t *word;
	uint64_t base;    /* no slot up to here is free; from a step on */
	uint64_t horizon; /* none is taken from here on */
};

static inline void hbm_bus_shape_init(struct hbm_bus_shape *shape, unsigned groups, uint64_t step)
{
	*shape = (struct hbm_bus_shape){ .step = step };
	while (1u << shape->word_lg2 < groups + 2)
		shape->word_lg2++;
	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		shape->all[n] = shape->all[n - 1] | UINT64_C(1) << (n - 1) * step;
		shape->own[n] = (UINT64_C(2) << ((n + 1) * step - 2)) - 1;
	}
}

static inline uint64_t *hbm_bus_word(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				     uint64_t number)
{
	return &bus->word[number % BUS_WORDS << shape->word_lg2];
}

static inline uint64_t hbm_bus_bits(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				    unsigned group, uint64_t number)
{
	const uint64_t *word = hbm_bus_word(bus, shape, number);

	if (word[0] >> BUS_GROUPS != number + 1)
		return 0;
	return word[1] | (word[2 + group] & -(word[0] >> group & 1));
}

/* Bit i: slot s + i is not for the group. */
static inline uint64_t hbm_bus_taken(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				     unsigned group, uint64_t s)
{
	uint64_t taken = hbm_bus_bits(bus, shape, group, s / 64) >> s % 64;

	if (!(s % 64))
		return taken;
	return taken | hbm_bus_bits(bus, shape, group, s / 64 + 1) << (64 - s % 64);
}

/* The first slot from s on where `bursts` bursts of the group are free. */
static __attribute__((noinline)) uint64_t hbm_bus_search(const struct hbm_bus *bus,
							 const struct hbm_bus_shape *shape,
							 unsigned group, unsigned bursts,
							 uint64_t s)
{
	while (s < bus->horizon + shape->step) {
		uint64_t taken = hbm_bus_taken(bus, shape, group, s);

		for (unsigned i = 1; i < bursts; i++)
			taken |= hbm_bus_taken(bus, shape, group, s + i * shape->step);
		if (~taken)
			return s + (uint64_t)__builtin_ctzll(~taken);
		s += 64;
	}
	return s;
}

/* The same from `from` on; mostly that slot itself is free. */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				    unsigned group, unsigned bursts, uint64_t from)
{
	uint64_t s = from > bus->base ? from : bus->base + 1;

	if (s >= bus->horizon + shape->step)
		return s;
	if (G_LIKELY(!(hbm_bus_taken(bus, shape, group, s) & shape->all[bursts])))
		return s;
	return hbm_bus_search(bus, shape, group, bursts, s);
}

/* Marks slots of one word: those with bursts, and those kept from the group. */
static inline void hbm_bus_mark(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				unsigned group, uint64_t number, uint64_t all, uint64_t own)
{
	uint64_t *word = hbm_bus_word(bus, shape, number);
	/* all ones where what is there is of this number, and of the group; no branches, which
	 * nothing could foresee */
	uint64_t kept = -(uint64_t)(word[0] >> BUS_GROUPS == number + 1);
	uint64_t kept_own = kept & -(word[0] >> group & 1);

	word[0] = (number + 1) << BUS_GROUPS | (word[0] & kept & ((1u << BUS_GROUPS) - 1)) |
		  UINT64_C(1) << group;
	word[1] = (word[1] & kept) | all;
	word[2 + group] = (word[2 + group] & kept_own) | own;
}

/* Books what hbm_bus_find() found: the bursts' slots for all, and for the own group those nearer
 * than the step to them. */
static inline void hbm_bus_take(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				unsigned group, unsigned bursts, uint64_t s)
{
	uint64_t last = s + (bursts - 1) * shape->step, near = shape->step - 1, number;
	uint64_t all = shape->all[bursts] << near, own = shape->own[bursts];
	unsigned shift = (s - near) % 64;

	if (bus->base + BUS_SLOTS / 2 < last)
		bus->base = last - BUS_SLOTS / 2;
	if (bus->horizon <= last)
		bus->horizon = last + 1;
	number = (s - near) / 64;
	hbm_bus_mark(bus, shape, group, number, all << shift, own << shift);
	if (G_UNLIKELY(shift && own >> (64 - shift)))
		hbm_bus_mark(bus, shape, group, number + 1, all >> (64 - shift),
			     own >> (64 - shift));
}

#endif
