/* SPDX-License-Identifier: Apache-2.0
 *
 * The data bus of one pseudo channel as two rings of bits, one of reads and one of writes, for the
 * HBM to find room for bursts: which slots a bank group cannot use, because a burst occupies them,
 * one of the same group is too near, or one of the other kind is, with the bus to be turned
 * between. Slots are tCCD_S long.
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
	/* clocks from the first one to the next activation of another row in the bank, at least,
	 * and to the time of a refresh, which closes the row tRTP later; by whether they write */
	uint64_t before_act[2], before_refresh[2];
	/* those slots, and those nearer than a step to them; bit 0 is the first of the latter */
	uint64_t all, own;
	uint64_t fits;            /* the last bit of a word where the latter can begin */
	unsigned step, two_steps; /* of them; 0: there are not so many */
	uint64_t booked;          /* how often */
};

/* What is the same for all pseudo channels. */
struct hbm_bus_shape {
	uint64_t step; /* slots between two bursts of a bank group */
	/* slots from a read to a write; from a write to a read, and to one of its group */
	uint64_t to_write, to_read, to_own_read;
	unsigned groups;
	struct hbm_bursts of[BUS_BURSTS + 1];
};

/* Of 64 slots, those of this number: which are taken, which are too near to a burst of the other
 * kind, and which are not for a group. What else the row was for is forgotten. */
struct hbm_bus_row {
	uint64_t number, all, turn, own[BUS_GROUPS];
} __attribute__((aligned(64)));

struct hbm_bus {
	uint64_t horizon;        /* no burst begins from here on */
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
		of->fits = 65 - (n + 1) * step;
		of->step = n > 1 ? (unsigned)step : 0;
		of->two_steps = n > 2 ? 2 * (unsigned)step : 0;
	}
}

/* Bit i: slot number * 64 + i is not for the group. */
static inline uint64_t bus_taken(const struct hbm_bus *bus, size_t group, uint64_t number)
{
	const struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	return row->number == number ? row->all | row->turn | row->own[group] : 0;
}

/* Bit i: the bursts can begin at the slot that bit i of `free` is. */
static inline uint64_t bus_room(const struct hbm_bursts *of, uint64_t free)
{
	free &= free >> of->step;
	return free & free >> of->two_steps;
}

/* Where they do not fit into the rest of a row. */
static __attribute__((noinline)) uint64_t bus_search(const struct hbm_bus *bus, size_t group,
						     const struct hbm_bursts *of, uint64_t s)
{
	for (;; s += 65 - of->slots) {
		uint64_t free = ~bus_taken(bus, group, s / 64) >> s % 64;
		uint64_t next = ~bus_taken(bus, group, s / 64 + 1);

		free = bus_room(of, free | next << 1 << (63 - s % 64));
		if (free)
			return s + (unsigned)__builtin_ctzll(free);
	}
}

/* The first slot from s on where the bursts (1, 2 or 4) of the group are free. */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, size_t group,
				    const struct hbm_bursts *of, uint64_t s)
{
	uint64_t room;

	if (G_UNLIKELY((int64_t)s < (int64_t)(bus->horizon - BUS_BEHIND)))
		s = bus->horizon - BUS_BEHIND;
	room = bus_room(of, ~bus_taken(bus, group, s / 64) >> s % 64);
	return G_LIKELY(room) ? s + (unsigned)__builtin_ctzll(room) : bus_search(bus, group, of, s);
}

static inline struct hbm_bus_row *bus_row(const struct hbm_bus *bus,
					  const struct hbm_bus_shape *shape, uint64_t number)
{
	struct hbm_bus_row *row = &bus->row[number % BUS_ROWS];

	if (G_UNLIKELY(row->number != number)) {
		row->number = number;
		row->all = row->turn = 0;
		for (unsigned g = 0; g < shape->groups; g += 4)
			memset(&row->own[g], 0, 4 * sizeof(uint64_t));
	}
	return row;
}

static inline void bus_mark(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
			    size_t group, uint64_t number, uint64_t all, uint64_t own)
{
	struct hbm_bus_row *row = bus_row(bus, shape, number);

	row->all |= all;
	row->own[group] |= own;
}

/* Books what hbm_bus_find() found: the bursts' slots for all, and for the own group those nearer
 * than the step to them. */
static inline void hbm_bus_take(struct hbm_bus *bus, const struct hbm_bus_shape *shape,
				size_t group, struct hbm_bursts *of, uint64_t s)
{
	uint64_t from = s + 1 - shape->step;

	of->booked++;
	bus->horizon = MAX(bus->horizon, s + of->slots);
	bus_mark(bus, shape, group, from / 64, of->all << from % 64, of->own << from % 64);
	if (G_UNLIKELY(from % 64 > of->fits))
		bus_mark(bus, shape, group, from / 64 + 1, of->all >> (64 - from % 64),
			 of->own >> (64 - from % 64));
}

/* Closes [from, to) to the group; BUS_GROUPS: to all, for a burst of the other kind. */
static inline void bus_close(const struct hbm_bus *bus, const struct hbm_bus_shape *shape,
			     size_t group, uint64_t from, uint64_t to)
{
	for (uint64_t next; from < to; from = next) {
		struct hbm_bus_row *row = bus_row(bus, shape, from / 64);

		next = MIN((from | 63) + 1, to);
		*(group < BUS_GROUPS ? &row->own[group] : &row->turn) |=
			UINT64_MAX >> (64 - (next - from)) << from % 64;
	}
}

/* Closes the slots that are less than so many before or behind a burst of the other kind. Those
 * before slot `from` need not be. */
static inline void hbm_bus_turn(struct hbm_bus *bus, const struct hbm_bus *other,
				const struct hbm_bus_shape *shape, uint64_t before, uint64_t behind,
				uint64_t from)
{
	uint64_t oldest = MAX(other->horizon, BUS_BEHIND) - BUS_BEHIND;
	uint64_t begin = 0, end = 0; /* of what is to be closed next */

	from = MAX(MAX(from, oldest), behind) - behind;
	for (uint64_t base = from & -64; base < other->horizon; base += 64) {
		const struct hbm_bus_row *row = &other->row[base / 64 % BUS_ROWS];
		uint64_t bursts = row->number == base / 64 ? row->all : 0, near;

		for (; bursts; bursts &= ~near) {
			uint64_t s = (unsigned)__builtin_ctzll(bursts);

			/* what is closed for these leaves no slot between */
			near = bursts & UINT64_MAX >> (63 - MIN(s + before + behind - 1, 63));
			if (base + s >= end + before) {
				bus_close(bus, shape, BUS_GROUPS, begin, end);
				begin = MAX(base + s + 1, oldest + before) - before;
			}
			end = base + 63 - (unsigned)__builtin_clzll(near) + behind;
		}
	}
	bus_close(bus, shape, BUS_GROUPS, begin, end);
	bus->horizon = MAX(bus->horizon, other->horizon);
}

#endif
