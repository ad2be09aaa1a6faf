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
	uint8_t hashed = 0;

	for (char **word = words; *word; word++) {
		const char *letter = **word ? strchr(letters, **word) : NULL;
		unsigned field = letter ? (unsigned)(letter - letters) : 0;
		guint64 bits;
		char *end;

		if (!**word)
			continue;
		if (!letter || !g_ascii_isdigit((*word)[1]))
			return bad(text,
				   "fields are a letter of o c s h p g b r and a count of bits");
		bits = g_ascii_strtoull(*word + 1, &end, 10);
		if (bits > 32 || (*end && strcmp(end, "x") != 0))
			return bad(text, "a field has at most 32 bits, and x is the only mark");
		if (*end && (field < HBM_STACK || field == HBM_ROW))
			return bad(text, "x goes with s, h, p, g and b only");
		if (map->total + bits > 63)
			return bad(text, "more than 63 bits");
		map->bits[field] += (unsigned)bits;
		for (; bits; bits--, map->total++) {
			map->field[map->total] = (uint8_t)field;
			map->hash[map->total] = *end ? ++hashed : 0;
		}
	}
	return NULL;
}

/* Every bit of a place is a sum, modulo 2, of bits of the offset. */
static void make_tables(struct hbm_map *map)
{
	const unsigned *bits = map->bits;
	unsigned pseudo_at = HBM_MAP_BANK_AT + bits[HBM_BANK] + bits[HBM_GROUP];
	unsigned at[HBM_FIELDS] = {
		[HBM_COLUMN] = HBM_MAP_COLUMN_AT,
		[HBM_STACK] = pseudo_at + bits[HBM_PSEUDO] + bits[HBM_CHANNEL],
		[HBM_CHANNEL] = pseudo_at + bits[HBM_PSEUDO],
		[HBM_PSEUDO] = pseudo_at,
		[HBM_GROUP] = HBM_MAP_BANK_AT + bits[HBM_BANK],
		[HBM_BANK] = HBM_MAP_BANK_AT,
	};
	uint64_t place[64 + 8 * HBM_MAP_PARTS] = { 0 }; /* of each bit alone */

	for (unsigned b = 0; b < map->total; b++)
		if (map->field[b] != HBM_OFFSET)
			place[b] = UINT64_C(1) << at[map->field[b]]++;
	for (unsigned row = 0, b = 0; b < map->total; b++) {
		row += map->field[b] == HBM_ROW;
		for (unsigned h = 0; map->field[b] == HBM_ROW && h < map->total; h++)
			place[b] ^= map->hash[h] == row ? place[h] : 0;
	}
	map->pseudo_at = pseudo_at;
	while (map->skip < map->total && map->field[map->skip] == HBM_OFFSET)
		map->skip++;
	for (unsigned i = 0; i < HBM_MAP_PARTS; i++)
		for (unsigned value = 1; value < 256; value++)
			map->part[i][value] =
				map->part[i][value & (value - 1)] ^
				place[map->skip + 8 * i + (unsigned)__builtin_ctz(value)];
}

bool hbm_map_init(struct hbm_map *map, const char *text, const unsigned *bits, char **problem)
{
	memset(map, 0, sizeof(*map));
	*problem = parse(map, text);
	for (unsigned f = 0; !*problem && bits && f < HBM_FIELDS; f++)
		if (map->bits[f] != bits[f])
			*problem = g_strdup_printf(
				"HBM.map=%s: %u bits of '%c', where the geometry has %u", text,
				map->bits[f], letters[f], bits[f]);
	if (*problem)
		return false;
	make_tables(map);
	return true;
}
