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

#define BUS_ROWS   32u                     /* of the ring, 64 slots each */
#define BUS_BEHIND (BUS_ROWS * 32u)        /* slots before the last booking that are remembered */
#define BUS_GROUPS 16u                     /* at most */
#define BUS_BURSTS 4u                      /* of one booking, at most */
#define BUS_STEP   (64 / (BUS_BURSTS + 1)) /* at most: they fit into a word */

/* What is the same for all pseudo channels. */
struct hbm_bus_shape {
	uint64_t step; /* slots between two bursts of a bank group */
	uint64_t from; /* a step is kept free of what lies before time begins */
	unsigned groups;
	/* of so many bursts: their slots, and those nearer than `step` to them; bit 0 is the first
	 * of the latter, step - 1 before the first burst */
	uint64_t all[BUS_BURSTS + 1], own[BUS_BURSTS + 1];
	uint64_t room[BUS_BURSTS + 1]; /* up to which bit of a word they may begin to end in it */
};

/* Of 64 slots, those of this number: which are taken, and which are not for a group. What else the
 * row was for is forgotten. */
struct hbm_bus_row {
	uint64_t number, all, own[BUS_GROUPS];
} __attribute__((aligned(64)));

struct hbm_bus {
	uint64_t horizon;        /* none is taken from here on */
	uint64_t from;           /* none is looked for before */
	struct hbm_bus_row *row; /* a ring of BUS_ROWS */
};

static inline void hbm_bus_shape_init(struct hbm_bus_shape *shape, unsigned groups, uint64_t step)
{
	*shape = (struct hbm_bus_shape){ .step = step, .from = step + 1, .groups = groups };
	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		shape->all[n] = shape->all[n - 1] | UINT64_C(1) << (n * step - 1);
		shape->own[n] = (UINT64_C(2) << ((n + 1) * step - 2)) - 1;
		shape->room[n] = 65 - (n + 1) * step;
	}
}

/* Bit i: slot number * 64 + i is not for the group. */
static inline uint64_t hbm_bus_taken(const struct hbm_bus *bus, unsigned group, uint64_t number)
{
	const struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	return row->number == number ? row->all | row->own[group] : 0;
}

/* hbm_bus_find() where it may take more than a look at one row. */
static __attribute__((noinline)) uint64_t hbm_bus_search(const struct hbm_bus *bus, uint64_t step,
							 unsigned group, unsigned bursts,
							 uint64_t s)
{
	unsigned last = (bursts - 1) * (unsigned)step;
	uint64_t taken;

	for (;; s += 64 - last) {
		taken = hbm_bus_taken(bus, group, s / 64) >> s % 64 |
			hbm_bus_taken(bus, group, s / 64 + 1) << 1 << (63 - s % 64);
		for (uint64_t i = step; i <= last; i *= 2)
			taken |= taken >> i;
		taken |= ~(UINT64_MAX >> last); /* of those, not all bursts are in sight */
		if (~taken)
			return s + (uint64_t)__builtin_ctzll(~taken);
	}
}

/* The first slot from s on where `bursts` bursts (1, 2 or 4) of the group are free: mostly s
 * itself. */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				    unsigned group, unsigned bursts, uint64_t s)
{
	uint64_t from;

	if (G_UNLIKELY(s < bus->from))
		s = bus->from;
	from = s + 1 - shape->step;
	if (G_LIKELY(from % 64 <= shape->room[bursts] &&
		     !(hbm_bus_taken(bus, group, from / 64) & shape->all[bursts] << from % 64)))
		return s;
	return hbm_bus_search(bus, shape->step, group, bursts, s);
}

static inline void hbm_bus_mark(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				unsigned group, uint64_t number, uint64_t all, uint64_t own)
{
	struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	if (row->number != number) {
		row->number = number;
		row->all = 0;
		for (unsigned g = 0; g < shape->groups; g += 4)
			memset(&row->own[g], 0, 4 * sizeof(uint64_t));
	}
	row->all |= all;
	row->own[group] |= own;
}

/* Books what hbm_bus_find() found: the bursts' slots for all, and for the own group those nearer
 * than the step to them. */
static inline void hbm_bus_take(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				unsigned group, unsigned bursts, uint64_t s)
{
	uint64_t all = shape->all[bursts], own = shape->own[bursts], from = s + 1 - shape->step;
	uint64_t end = s + (bursts - 1) * shape->step + 1;

	if (bus->horizon < end) {
		bus->horizon = end;
		if (end > bus->from + BUS_BEHIND)
			bus->from = end - BUS_BEHIND;
	}
	hbm_bus_mark(bus, shape, group, from / 64, all << from % 64, own << from % 64);
	if (G_UNLIKELY(from % 64 > shape->room[bursts]))
		hbm_bus_mark(bus, shape, group, from / 64 + 1, all >> 1 >> (63 - from % 64),
			     own >> 1 >> (63 - from % 64));
}

#endif
