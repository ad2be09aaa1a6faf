/* SPDX-License-Identifier: Apache-2.0
 *
 * The data bus of one pseudo channel as a ring of bits: which slots a bank group cannot use,
 * because a burst occupies them or one of the same group is too near. Slots are tCCD_S long.
 */
#ifndef NPUSIM_SIM_HBM_HBM_BUS_H
#define NPUSIM_SIM_HBM_HBM_BUS_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

#define BUS_WORDS  32u               /* a bit of `used` each */
#define BUS_SLOTS  (BUS_WORDS * 64u) /* remembered: half of them lie behind the last booking */
#define BUS_AHEAD  4u                /* words that a search may look at behind the horizon's */
#define BUS_GROUPS 16u               /* at most */
#define BUS_BURSTS 4u                /* of one booking, at most */
#define BUS_STEP   (64 / (BUS_BURSTS + 1)) /* at most: they fit into a word */

/* What is the same for all pseudo channels. */
struct hbm_bus_shape {
	uint64_t step;     /* slots between two bursts of a bank group */
	unsigned word_lg2; /* of the count of uint64_t from word to word of a group's ring */
	/* of so many bursts, the first at bit 0: their slots, and those nearer than `step` to them,
	 * which begin step - 1 before */
	uint64_t all[BUS_BURSTS + 1], own[BUS_BURSTS + 1];
};

struct hbm_bus {
	/* A ring of words of the slots that are taken; behind it one with a word for each group,
	 * side by side, of those that are not for the group. Words from BUS_AHEAD behind the
	 * horizon's on have been cleared. */
	uint64_t *word;
	uint64_t horizon; /* none is taken from here on */
	uint64_t cleared; /* the first word that has not been */
	uint32_t used;    /* bit of each word of the ring that may have any */
};

static inline void hbm_bus_shape_init(struct hbm_bus_shape *shape, unsigned groups, uint64_t step)
{
	*shape = (struct hbm_bus_shape){ .step = step, .word_lg2 = 2 };
	while (1u << shape->word_lg2 < groups)
		shape->word_lg2++;
	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		shape->all[n] = shape->all[n - 1] | UINT64_C(1) << (n - 1) * step;
		shape->own[n] = (UINT64_C(2) << ((n + 1) * step - 2)) - 1;
	}
}

static inline uint64_t *hbm_bus_group(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				      uint64_t number)
{
	return &bus->word[BUS_WORDS + (number % BUS_WORDS << shape->word_lg2)];
}

/* Bit i: slot s + i is not for the group. */
static inline uint64_t hbm_bus_taken(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				     unsigned group, uint64_t s)
{
	uint64_t n = s / 64;
	uint64_t low = bus->word[n % BUS_WORDS] | hbm_bus_group(bus, shape, n)[group];
	uint64_t high = bus->word[(n + 1) % BUS_WORDS] | hbm_bus_group(bus, shape, n + 1)[group];

	return low >> s % 64 | high << 1 << (63 - s % 64);
}

/* The first slot from s on where `bursts` bursts (1, 2 or 4) of the group are free: mostly s
 * itself. */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				    unsigned group, unsigned bursts, uint64_t s)
{
	unsigned step = (unsigned)shape->step, last = (bursts - 1) * step;
	uint64_t taken;

	s = MAX(s, step + 1); /* a step is kept free of what lies before time begins */
	if (G_UNLIKELY(s + BUS_SLOTS / 2 < bus->horizon))
		s = bus->horizon - BUS_SLOTS / 2;
	for (; s < bus->horizon + step; s += 64 - last) {
		taken = hbm_bus_taken(bus, shape, group, s);
		if (G_LIKELY(!(taken & shape->all[bursts])))
			return s;
		for (unsigned i = step; i <= last; i *= 2)
			taken |= taken >> i;
		taken |= ~(UINT64_MAX >> last); /* of those, not all bursts are in sight */
		if (~taken)
			return s + (uint64_t)__builtin_ctzll(~taken);
	}
	return s;
}

/* The horizon has moved: words near it are used again, of which few have anything. */
static inline void hbm_bus_clear(struct hbm_bus *bus, const struct hbm_bus_shape *shape)
{
	uint64_t stop = bus->horizon / 64 + BUS_AHEAD, count = stop - bus->cleared;
	uint32_t many = count < BUS_WORDS ? (1u << count) - 1 : UINT32_MAX;
	uint32_t first = bus->cleared % BUS_WORDS, used;

	used = bus->used & (many << first | many >> 1 >> (BUS_WORDS - 1 - first));
	bus->used ^= used;
	bus->cleared = stop;
	for (; used; used &= used - 1) {
		unsigned n = (unsigned)__builtin_ctz(used);

		bus->word[n] = 0;
		memset(hbm_bus_group(bus, shape, n), 0, sizeof(uint64_t) << shape->word_lg2);
	}
}

static inline void hbm_bus_mark(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				unsigned group, uint64_t number, uint64_t all, uint64_t own)
{
	bus->word[number % BUS_WORDS] |= all;
	hbm_bus_group(bus, shape, number)[group] |= own;
	bus->used |= 1u << number % BUS_WORDS;
}

/* Books what hbm_bus_find() found: the bursts' slots for all, and for the own group those nearer
 * than the step to them. */
__attribute__((always_inline)) static inline void hbm_bus_take(struct hbm_bus *bus,
							       const struct hbm_bus_shape *shape,
							       unsigned group, unsigned bursts,
							       uint64_t s)
{
	uint64_t last = s + (bursts - 1) * shape->step, from = s + 1 - shape->step;
	uint64_t all = shape->all[bursts] << (shape->step - 1), own = shape->own[bursts];

	if (bus->horizon <= last) {
		bus->horizon = last + 1;
		if (G_UNLIKELY(bus->cleared < bus->horizon / 64 + BUS_AHEAD))
			hbm_bus_clear(bus, shape);
	}
	hbm_bus_mark(bus, shape, group, from / 64, all << from % 64, own << from % 64);
	if (G_UNLIKELY(own >> 1 >> (63 - from % 64)))
		hbm_bus_mark(bus, shape, group, from / 64 + 1, all >> 1 >> (63 - from % 64),
			     own >> 1 >> (63 - from % 64));
}

#endif
