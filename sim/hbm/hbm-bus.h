/* SPDX-License-Identifier: Apache-2.0
 *
 * The data bus of one pseudo channel as a ring of bits: which slots a bank group cannot take,
 * because a burst is there or one of the same group is too near. Slots are of tCCD_S; a word of
 * every group lies side by side, so that a search or a booking touches one or two cache lines.
 */
#ifndef NPUSIM_SIM_HBM_HBM_BUS_H
#define NPUSIM_SIM_HBM_HBM_BUS_H

#include <stdint.h>

#define BUS_WORDS 32u               /* a power of two */
#define BUS_SLOTS (BUS_WORDS * 64u) /* remembered: half of them lie behind the last booking */

struct hbm_bus {
	/* ring of words: number of the word + 1, then 64 slots' bits for each bank group; a word of
	 * another number has no booking */
	uint64_t *word;
	uint64_t base;    /* no slot up to here is free */
	uint64_t horizon; /* none is taken from here on */
};

static inline uint64_t *hbm_bus_word(const struct hbm_bus *bus, unsigned groups, uint64_t number)
{
	return &bus->word[number % BUS_WORDS * (groups + 1)];
}

/* Bit i: slot s + i is not for the group. */
static inline uint64_t hbm_bus_taken(const struct hbm_bus *bus, unsigned groups, unsigned group,
				     uint64_t s)
{
	uint64_t number = s / 64;
	unsigned shift = s % 64;
	const uint64_t *word = hbm_bus_word(bus, groups, number);
	uint64_t taken = word[0] == number + 1 ? word[1 + group] >> shift : 0;

	if (!shift)
		return taken;
	word = hbm_bus_word(bus, groups, number + 1);
	return word[0] == number + 2 ? taken | word[1 + group] << (64 - shift) : taken;
}

/* The first slot from `from` on where `bursts` bursts of the group, `step` slots apart, are free.
 */
static inline uint64_t hbm_bus_find(const struct hbm_bus *bus, unsigned groups, unsigned group,
				    uint64_t step, unsigned bursts, uint64_t from)
{
	uint64_t s = from > bus->base ? from : bus->base + 1;

	while (s < bus->horizon + step) {
		uint64_t taken = hbm_bus_taken(bus, groups, group, s);

		for (unsigned i = 1; i < bursts; i++)
			taken |= hbm_bus_taken(bus, groups, group, s + i * step);
		if (~taken)
			return s + (uint64_t)__builtin_ctzll(~taken);
		s += 64;
	}
	return s;
}

/* The word of slot s, to book in. */
static inline uint64_t *hbm_bus_open(struct hbm_bus *bus, unsigned groups, uint64_t s)
{
	uint64_t *word = hbm_bus_word(bus, groups, s / 64);

	if (word[0] != s / 64 + 1) {
		word[0] = s / 64 + 1;
		for (unsigned g = 1; g <= groups; g++)
			word[g] = 0;
	}
	return word;
}

static inline void hbm_bus_or(struct hbm_bus *bus, unsigned groups, unsigned group, uint64_t s,
			      uint64_t all, uint64_t own)
{
	uint64_t *word = hbm_bus_open(bus, groups, s);
	unsigned shift = s % 64;

	for (unsigned g = 1; g <= groups; g++)
		word[g] |= all << shift;
	word[1 + group] |= own << shift;
	if (!shift || !(own >> (64 - shift)))
		return;
	word = hbm_bus_open(bus, groups, s + 64);
	for (unsigned g = 1; g <= groups; g++)
		word[g] |= all >> (64 - shift);
	word[1 + group] |= own >> (64 - shift);
}

/* Books what hbm_bus_find() found: the bursts' slots for all, and for the own group those nearer
 * than `step` to them. step is 32 at most. */
static void hbm_bus_take(struct hbm_bus *bus, unsigned groups, unsigned group, uint64_t step,
			 unsigned bursts, uint64_t s)
{
	uint64_t last = s + (bursts - 1) * step, near = step - 1;
	uint64_t own = (UINT64_C(1) << (2 * near + 1)) - 1;

	if (bus->base + BUS_SLOTS / 2 < last)
		bus->base = last - BUS_SLOTS / 2;
	if (bus->horizon <= last)
		bus->horizon = last + 1;
	if (s < near) { /* the first slots of all */
		own >>= near - s;
		hbm_bus_or(bus, groups, group, 0, UINT64_C(1) << s, own);
	} else if (bursts * step + step <= 64) {
		uint64_t all = 0;

		for (unsigned i = 0; i < bursts; i++)
			all |= UINT64_C(1) << (near + i * step);
		own = (UINT64_C(2) << (last - s + 2 * near)) - 1;
		hbm_bus_or(bus, groups, group, s - near, all, own);
		return;
	} else {
		hbm_bus_or(bus, groups, group, s - near, UINT64_C(1) << near, own);
	}
	if (bursts > 1)
		hbm_bus_take(bus, groups, group, step, bursts - 1, s + step);
}

#endif
