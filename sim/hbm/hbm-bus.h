/* SPDX-License-Identifier: Apache-2.0
 *
 * The data bus of one pseudo channel as a ring of bits, for the HBM to find room for bursts: which
 * slots a bank group cannot use, because a burst occupies them or one of the same group is too
 * near. Slots are tCCD_S long.
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

/* So many bursts of one row, one after the other. */
struct hbm_bursts {
	uint64_t bursts, slots; /* from the first one's to the last one's */
	uint64_t clocks;        /* from the first one to the last one */
	/* clocks from the first one to the time of a refresh, at least, by whether they write: it
	 * closes the row tRTP later */
	uint64_t before_refresh[2];
	/* those slots, and those nearer than a step to them; bit 0 is the first of the latter */
	uint64_t all, own;
	uint64_t blind;           /* the bits of a word in which they cannot begin to end in it */
	unsigned step, two_steps; /* of them; 0: there are not so many */
	uint64_t booked;          /* how often */
};

/* What is the same for all pseudo channels. */
struct hbm_bus_shape {
	uint64_t step; /* slots between two bursts of a bank group */
	unsigned groups;
	struct hbm_bursts of[BUS_BURSTS + 1];
};

/* Of 64 slots, those of this number: which are taken, and which are not for a group. What else the
 * row was for is forgotten. */
struct hbm_bus_row {
	uint64_t number, all, own[BUS_GROUPS];
} __attribute__((aligned(64)));

struct hbm_bus {
	uint64_t horizon;        /* none is taken from here on */
	struct hbm_bus_row *row; /* a ring of BUS_ROWS */
};

static inline void hbm_bus_shape_init(struct hbm_bus_shape *shape, unsigned groups, uint64_t ccd_s,
				      uint64_t step)
{
	*shape = (struct hbm_bus_shape){ .step = step, .groups = groups };
	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		struct hbm_bursts *of = &shape->of[n];

		of->bursts = n;
		of->slots = (n - 1) * step + 1;
		of->clocks = (n - 1) * step * ccd_s;
		of->all = of[-1].all | UINT64_C(1) << (n * step - 1);
		of->own = (UINT64_C(2) << ((n + 1) * step - 2)) - 1;
		of->blind = ~(UINT64_MAX >> (of->slots - 1));
		of->step = n > 1 ? (unsigned)step : 0;
		of->two_steps = n > 2 ? 2 * (unsigned)step : 0;
	}
}

/* Bit i: slot number * 64 + i is not for the group. */
static inline uint64_t bus_taken(const struct hbm_bus *bus, unsigned group, uint64_t number)
{
	const struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	return row->number == number ? row->all | row->own[group] : 0;
}

/* Where hbm_bus_find() goes on. */
static uint64_t hbm_bus_search(const struct hbm_bus *bus, unsigned group,
			       const struct hbm_bursts *of, uint64_t s);

/* The first slot from s on where the bursts (1, 2 or 4) of the group are free. */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, unsigned group,
				    const struct hbm_bursts *of, uint64_t s)
{
	uint64_t taken;

	s = (uint64_t)MAX((int64_t)s, (int64_t)(bus->horizon - BUS_BEHIND));
	taken = bus_taken(bus, group, s / 64) >> s % 64 | bus_taken(bus, group, s / 64 + 1)
								  << 1 << (63 - s % 64);
	taken |= taken >> of->step;
	taken |= taken >> of->two_steps;
	taken |= of->blind;
	if (G_LIKELY(~taken))
		return s + (uint64_t)__builtin_ctzll(~taken);
	return hbm_bus_search(bus, group, of, s + 65 - of->slots);
}

static __attribute__((noinline)) uint64_t hbm_bus_search(const struct hbm_bus *bus, unsigned group,
							 const struct hbm_bursts *of, uint64_t s)
{
	return hbm_bus_find(bus, group, of, s);
}

static inline void bus_mark(struct hbm_bus *bus, const struct hbm_bus_shape *shape, unsigned group,
			    uint64_t number, uint64_t all, uint64_t own)
{
	struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	if (G_UNLIKELY(row->number != number)) {
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
				unsigned group, struct hbm_bursts *of, uint64_t s)
{
	uint64_t from = s + 1 - shape->step, own = of->own >> 1 >> (63 - from % 64);

	of->booked++;
	bus->horizon = MAX(bus->horizon, s + of->slots);
	bus_mark(bus, shape, group, from / 64, of->all << from % 64, of->own << from % 64);
	if (G_UNLIKELY(own))
		bus_mark(bus, shape, group, from / 64 + 1, of->all >> 1 >> (63 - from % 64), own);
}

#endif
