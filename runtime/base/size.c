/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and formats human-readable sizes, and owns the ring, one a thread, of the texts that
 * messages are made of.
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

const char *npu_text(const char *format, ...)
{
	static __thread char ring[3 * NPU_TEXT_MAX];
	static __thread unsigned next;
	char *out;
	va_list args;
	int length;

	if (next + NPU_TEXT_MAX > sizeof(ring))
		next = 0;
	out = ring + next;
	va_start(args, format);
	length = vsnprintf(out, NPU_TEXT_MAX, format, args);
	va_end(args);
	next += length < 0 ? 1 : length < NPU_TEXT_MAX ? (unsigned)length + 1 : NPU_TEXT_MAX;
	return out;
}

const char *npu_size_text(uint64_t bytes)
{
	const unsigned long long count = bytes;

	for (size_t i = 0; i < UNIT_COUNT; i++) {
		uint64_t unit = UINT64_C(1) << units[i].lg2;

		if (bytes >= unit && bytes % unit == 0)
			return npu_text("%llu (%llu %s)", count, count / unit, units[i].name);
		if (bytes >= unit)
			return npu_text("%llu (about %.2f %s)", count, (double)bytes / (double)unit,
					units[i].name);
	}
	return npu_text("%llu", count);
}

const char *npu_size_words(int64_t bytes)
{
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		double count = (double)bytes / (double)(UINT64_C(1) << units[i].lg2);

		if (count >= 1 || count <= -1)
			return npu_text("%.2f %s", count, units[i].name);
	}
	return npu_text("%lld B", (long long)bytes);
}
