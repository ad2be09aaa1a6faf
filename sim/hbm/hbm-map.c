/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the HBM address interleave, and decodes addresses with it. No state, no time.
 */
#include "hbm-map.h"

#include <glib.h>
#include <string.h>

static const char letters[] = "ocshpgbr";

static char *bad(const char *text, const char *why)
{
	return g_strdup_printf("HBM.map=%s: %s", text, why);
}

static char *parse(struct hbm_map *map, const char *text)
{
	g_auto(GStrv) words = g_strsplit_set(text, " -", -1);
	unsigned shift = 0, row_bit = 0;

	for (size_t i = 0; words[i]; i++) {
		const char *letter = words[i][0] ? strchr(letters, words[i][0]) : NULL;
		struct hbm_piece *piece = &map->piece[map->pieces];
		char *end;
		guint64 bits;

		if (!words[i][0])
			continue;
		if (!letter || !g_ascii_isdigit(words[i][1]))
			return bad(text,
				   "fields are a letter of o c s h p g b r and a count of bits");
		if (map->pieces == HBM_MAP_PIECES)
			return bad(text, "at most 16 fields");
		bits = g_ascii_strtoull(words[i] + 1, &end, 10);
		if (bits > 32 || (*end && strcmp(end, "x")))
			return bad(text, "a field has at most 32 bits, and x is the only mark");
		piece->field = (uint8_t)(letter - letters);
		piece->shift = (uint8_t)shift;
		piece->bits = (uint8_t)bits;
		piece->to = (uint8_t)map->bits[piece->field];
		piece->hashed = *end == 'x';
		piece->row_bit = (uint8_t)row_bit;
		if (piece->hashed && (piece->field < HBM_STACK || piece->field == HBM_ROW))
			return bad(text, "x goes with s, h, p, g and b only");
		row_bit += piece->hashed ? (unsigned)bits : 0;
		map->bits[piece->field] += (unsigned)bits;
		shift += (unsigned)bits;
		map->pieces++;
	}
	return shift > 63 ? bad(text, "more than 63 bits") : NULL;
}

/* The whole place of an offset, packed, field by field: what the tables are made of. */
static uint64_t pack_place(const struct hbm_map *map, uint64_t offset)
{
	uint32_t field[HBM_FIELDS] = { 0 };

	for (unsigned i = 0; i < map->pieces; i++) {
		const struct hbm_piece *piece = &map->piece[i];
		uint64_t mask = (UINT64_C(1) << piece->bits) - 1;

		field[piece->field] |= (uint32_t)(offset >> piece->shift & mask) << piece->to;
	}
	for (unsigned i = 0; i < map->pieces; i++) {
		const struct hbm_piece *piece = &map->piece[i];
		uint32_t mask = (UINT32_C(1) << (piece->bits & 31)) - 1;

		if (piece->hashed)
			field[piece->field] ^= (field[HBM_ROW] >> piece->row_bit & mask)
					       << piece->to;
	}
	return (((uint64_t)field[HBM_STACK] << map->bits[HBM_CHANNEL] | field[HBM_CHANNEL])
			<< map->bits[HBM_PSEUDO] |
		field[HBM_PSEUDO])
		       << HBM_MAP_PSEUDO_AT |
	       (uint64_t)field[HBM_COLUMN] << HBM_MAP_COLUMN_AT |
	       ((uint64_t)field[HBM_GROUP] << map->bits[HBM_BANK] | field[HBM_BANK])
		       << HBM_MAP_BANK_AT |
	       field[HBM_ROW];
}

/* Every bit of a place is a sum, modulo 2, of bits of the offset. */
static void make_tables(struct hbm_map *map)
{
	unsigned total = 0;

	for (unsigned i = 0; i < HBM_FIELDS; i++)
		total += map->bits[i];
	map->skip = map->piece[0].field == HBM_OFFSET ? map->piece[0].bits : 0;
	map->bytes = (total - map->skip + 7) / 8;
	for (unsigned i = 0; i < map->bytes; i++)
		for (uint64_t value = 0; value < 256; value++)
			map->part[i][value] = pack_place(map, value << (8 * i + map->skip));
}

bool hbm_map_init(struct hbm_map *map, const char *text, const unsigned *bits, char **problem)
{
	unsigned run = 0;

	memset(map, 0, sizeof(*map));
	*problem = parse(map, text);
	for (unsigned f = 0; !*problem && bits && f < HBM_FIELDS; f++)
		if (map->bits[f] != bits[f])
			*problem = g_strdup_printf(
				"HBM.map=%s: %u bits of '%c', where the geometry has %u", text,
				map->bits[f], letters[f], bits[f]);
	if (*problem)
		return false;
	for (unsigned i = 0; i < map->pieces && map->piece[i].field <= HBM_COLUMN; i++)
		run += map->piece[i].bits;
	map->run_bytes = UINT64_C(1) << run;
	make_tables(map);
	return true;
}
