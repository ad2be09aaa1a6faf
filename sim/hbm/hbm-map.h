/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an address of a device's HBM lies: stack, channel, pseudo channel, bank group, bank, row,
 * column, by the interleave of its profile (HBM.map). The text lists fields from the least
 * significant bit up, a letter and a count of bits each: o offset within a burst, c column, s
 * stack, h channel, p pseudo channel, g bank group, b bank, r row. A letter may come twice (its
 * first piece is the lower). `x` behind a field of s, h, p, g or b XORs it with bits of the row,
 * those from bit 0 on for the first such field, the next ones for the next: rows that would meet in
 * one bank are spread.
 */
#ifndef NPUSIM_SIM_HBM_HBM_MAP_H
#define NPUSIM_SIM_HBM_HBM_MAP_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

enum hbm_field {
	HBM_OFFSET,
	HBM_COLUMN,
	HBM_STACK,
	HBM_CHANNEL,
	HBM_PSEUDO,
	HBM_GROUP,
	HBM_BANK,
	HBM_ROW,
	HBM_FIELDS
};

/* A packed place, from bit 0 on: row, column, bank, pseudo channel. Wide enough for any profile. */
#define HBM_MAP_COLUMN_AT   32
#define HBM_MAP_COLUMN_BITS 10
#define HBM_MAP_BANK_AT     (HBM_MAP_COLUMN_AT + HBM_MAP_COLUMN_BITS) /* of the device */
#define HBM_MAP_PARTS       5u /* bytes of an offset: a device has 2 TiB at most */

struct hbm_map {
	unsigned total; /* bits of an address */
	/* of each bit of an address, from the lowest on: an enum hbm_field; and which bit of the
	 * row, counted from 1, is XORed to it, 0 for none */
	uint8_t field[64], hash[64];
	unsigned bits[HBM_FIELDS];
	unsigned pseudo_at; /* of a packed place */
	/* The packed place of each byte of an offset, above its lowest `skip` bits: the exclusive
	 * or of them is the offset's. */
	unsigned skip;
	uint64_t part[HBM_MAP_PARTS][256];
};

struct hbm_place {
	uint32_t pseudo; /* of the device: (stack x channels + channel) x pseudo channels + pseudo
			    channel */
	uint32_t bank;   /* of the pseudo channel: group x banks a group + bank */
	uint32_t row, column;
};

/* False if the text is no map, or its fields have not as many bits as `bits` says (NULL: any
 * count); then *problem is a message, to be g_free()d. */
bool hbm_map_init(struct hbm_map *map, const char *text, const unsigned *bits, char **problem);

/* The packed place. Bits of the offset beyond the device's memory are not looked at. */
static inline uint64_t hbm_map_find(const struct hbm_map *map, uint64_t offset)
{
	uint64_t rest = offset >> map->skip, place = 0;

#pragma GCC unroll 8
	for (unsigned i = 0; i < HBM_MAP_PARTS; i++)
		place ^= map->part[i][rest >> 8 * i & 255];
	return place;
}

static inline struct hbm_place hbm_map_place(const struct hbm_map *map, uint64_t packed)
{
	struct hbm_place place;

	place.pseudo = (uint32_t)(packed >> map->pseudo_at);
	place.bank = packed >> HBM_MAP_BANK_AT & ((1u << (map->pseudo_at - HBM_MAP_BANK_AT)) - 1);
	place.row = (uint32_t)packed;
	place.column = packed >> HBM_MAP_COLUMN_AT & ((1u << HBM_MAP_COLUMN_BITS) - 1);
	return place;
}

G_END_DECLS

#endif
