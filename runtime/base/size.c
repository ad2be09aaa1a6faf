/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and formats human-readable sizes. Owns no state except a few buffers per thread.
 */
#include "base/base.h"

#include <ctype.h>
#include <stdio.h>

static const struct {
	const char *name;
	char suffix;
	unsigned lg2;
} units[] = { { "TiB", 'T', 40 }, { "GiB", 'G', 30 }, { "MiB", 'M', 20 }, { "KiB", 'K', 10 } };

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))
#define SIZE_ROOM  64

static bool parse_unit(const char *text, unsigned *out_lg2)
{
	*out_lg2 = 0;
	if (*text == '\0')
		return true;
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		if (toupper((unsigned char)*text) != units[i].suffix)
			continue;
		*out_lg2 = units[i].lg2;
		text++;
		return *text == '\0' || ((text[0] == 'i' || text[0] == 'I') &&
					 (text[1] == 'B' || text[1] == 'b') && text[2] == '\0');
	}
	return false;
}

bool npu_parse_size(const char *text, uint64_t *out_bytes)
{
	uint64_t value = 0;
	unsigned lg2;

	if (text == NULL || !isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	if (!parse_unit(text, &lg2) || value > UINT64_MAX >> lg2)
		return false;
	*out_bytes = value << lg2;
	return true;
}

static char *next_buffer(void)
{
	static __thread char buffers[16][SIZE_ROOM];
	static __thread unsigned next;

	return buffers[next++ % 16];
}

const char *npu_size_text(uint64_t bytes)
{
	char *out = next_buffer();

	for (size_t i = 0; i < UNIT_COUNT; i++) {
		uint64_t unit = UINT64_C(1) << units[i].lg2;

		if (bytes < unit)
			continue;
		if (bytes % unit == 0)
			snprintf(out, SIZE_ROOM, "%llu (%llu %s)", (unsigned long long)bytes,
				 (unsigned long long)(bytes / unit), units[i].name);
		else
			snprintf(out, SIZE_ROOM, "%llu (about %.2f %s)", (unsigned long long)bytes,
				 (double)bytes / (double)unit, units[i].name);
		return out;
	}
	snprintf(out, SIZE_ROOM, "%llu", (unsigned long long)bytes);
	return out;
}

const char *npu_size_words(int64_t bytes)
{
	char *out = next_buffer();

	for (size_t i = 0; i < UNIT_COUNT; i++) {
		double count = (double)bytes / (double)(UINT64_C(1) << units[i].lg2);

		if (count < 1 && count > -1)
			continue;
		snprintf(out, SIZE_ROOM, "%.2f %s", count, units[i].name);
		return out;
	}
	snprintf(out, SIZE_ROOM, "%lld B", (long long)bytes);
	return out;
}
