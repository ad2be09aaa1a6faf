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

static void write_exact(char *out, size_t room, uint64_t bytes)
{
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		uint64_t unit = UINT64_C(1) << units[i].lg2;

		if (bytes < unit)
			continue;
		if (bytes % unit == 0)
			snprintf(out, room, "%llu (%llu %s)", (unsigned long long)bytes,
				 (unsigned long long)(bytes / unit), units[i].name);
		else
			snprintf(out, room, "%llu (about %.2f %s)", (unsigned long long)bytes,
				 (double)bytes / (double)unit, units[i].name);
		return;
	}
	snprintf(out, room, "%llu", (unsigned long long)bytes);
}

static void write_unit(char *out, size_t room, uint64_t bytes)
{
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		double unit = (double)(UINT64_C(1) << units[i].lg2);

		if ((double)bytes < unit)
			continue;
		snprintf(out, room, "%.2f %s", (double)bytes / unit, units[i].name);
		return;
	}
	snprintf(out, room, "%llu B", (unsigned long long)bytes);
}

static void write_mib(char *out, size_t room, int64_t bytes)
{
	bool is_small = bytes < 1 << 20 && bytes > -(1 << 20);

	if (bytes == 0)
		snprintf(out, room, "0");
	else if (is_small && bytes % 1024 != 0)
		snprintf(out, room, "%lld bytes", (long long)bytes);
	else if (is_small)
		snprintf(out, room, "%lld KiB", (long long)bytes / 1024);
	else
		snprintf(out, room, "%.2f MiB", (double)bytes / 1048576.0);
}

const char *npu_size_words(uint64_t bytes, enum npu_size_form form)
{
	static __thread char buffers[16][64];
	static __thread unsigned next;
	char *out = buffers[next++ % 16];

	if (form == NPU_SIZE_EXACT)
		write_exact(out, sizeof(buffers[0]), bytes);
	else if (form == NPU_SIZE_UNIT)
		write_unit(out, sizeof(buffers[0]), bytes);
	else
		write_mib(out, sizeof(buffers[0]), (int64_t)bytes);
	return out;
}
