/* SPDX-License-Identifier: Apache-2.0
 *
 * libc_sec.so. The codes, and what is left of a target, are those of libboundscheck 1.1.16, with
 * which 80,000 random calls were compared; it tells an overlap before a missing end, as no program
 * can want.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "securec.h"

#define NONE     SIZE_MAX /* a place: NULL */
#define TOO_MUCH ((size_t)INT32_MAX + 1)

static char text[24];

static char *at(size_t place)
{
	return place == NONE ? NULL : text + place;
}

/* ---- memory ---- */

static const struct memory_case {
	const char *label;
	size_t to, room, from, count;
	int moved, copied; /* the codes of memmove_s and memcpy_s */
} memory_cases[] = {
	{ "fits", 0, 4, 8, 4, EOK, EOK },
	{ "nothing", 0, 4, 8, 0, EOK, EOK },
	{ "onto_itself", 2, 4, 2, 4, EOK, EOK },
	{ "touches", 0, 4, 4, 4, EOK, EOK },
	{ "overlaps_above", 0, 4, 3, 4, EOK, EOVERLAP_AND_RESET },
	{ "overlaps_below", 3, 4, 0, 4, EOK, EOVERLAP_AND_RESET },
	{ "too_large", 0, 4, 8, 5, ERANGE_AND_RESET, ERANGE_AND_RESET },
	{ "no_source", 0, 4, NONE, 1, EINVAL_AND_RESET, EINVAL_AND_RESET },
	{ "no_target", NONE, 4, 8, 1, EINVAL, EINVAL },
	{ "neither", NONE, 4, NONE, 1, EINVAL, EINVAL },
	{ "no_room", 0, 0, 8, 0, ERANGE, ERANGE },
	{ "too_much_room", 0, TOO_MUCH, 8, 1, ERANGE, ERANGE },
	{ "no_room_and_no_target", NONE, 0, NONE, 0, ERANGE, ERANGE },
};

static void expect_memory(const struct memory_case *c,
			  errno_t call(void *, size_t, const void *, size_t), int wanted)
{
	static const char letters[] = "abcdefghijklmnopqrstuvw";
	char want[sizeof(letters)];

	memcpy(want, letters, sizeof(letters));
	if (wanted == EOK)
		memmove(want + c->to, letters + c->from, c->count);
	else if (wanted & 128)
		memset(want + c->to, 0, c->room);
	memcpy(text, letters, sizeof(letters));
	EXPECT_EQ(call(at(c->to), c->room, at(c->from), c->count), wanted);
	EXPECT_EQ(memcmp(text, want, sizeof(want)), 0);
}

TEST_EACH(memory, is_copied_or_zeroed, memory_cases, label)
{
	const struct memory_case *c = param;

	expect_memory(c, memmove_s, c->moved);
	expect_memory(c, memcpy_s, c->copied);
}

TEST(memory, is_filled_as_far_as_it_goes)
{
	strcpy(text, "abcdef");
	EXPECT_EQ(memset_s(text, 4, 'x', 2), EOK);
	EXPECT_STREQ(text, "xxcdef");
	EXPECT_EQ(memset_s(text, 4, 'y', 5), ERANGE_AND_RESET);
	EXPECT_STREQ(text, "yyyyef");
	EXPECT_EQ(memset_s(NULL, 4, 'z', 1), EINVAL);
	EXPECT_EQ(memset_s(text, 0, 'z', 1), ERANGE);
	EXPECT_EQ(memset_s(text, TOO_MUCH, 'z', 1), ERANGE);
	EXPECT_STREQ(text, "yyyyef");
}

/* ---- strings: "abc" at 0, "de" at 12 ---- */

static const struct string_case {
	const char *label;
	size_t to, room, from, count; /* count NONE: the functions without one */
	int copied, joined;
	const char *copy, *joint; /* what is at `to` then */
} string_cases[] = {
	{ "fits", 0, 6, 12, NONE, EOK, EOK, "de", "abcde" },
	{ "fits_to_a_byte", 0, 3, 12, NONE, EOK, EINVAL_AND_RESET, "de", "" },
	{ "too_long", 0, 5, 12, NONE, EOK, ERANGE_AND_RESET, "de", "" },
	{ "much_too_long", 0, 2, 12, NONE, ERANGE_AND_RESET, EINVAL_AND_RESET, "", "" },
	{ "a_part", 0, 6, 12, 1, EOK, EOK, "d", "abcd" },
	{ "a_part_that_fits", 0, 5, 12, 1, EOK, EOK, "d", "abcd" },
	{ "no_part", 0, 4, 12, 0, EOK, EOK, "", "abc" },
	{ "more_than_there_is", 0, 6, 12, 9, EOK, EOK, "de", "abcde" },
	{ "more_than_there_can_be", 0, 6, 12, TOO_MUCH, ERANGE_AND_RESET, ERANGE_AND_RESET, "",
	  "" },
	{ "onto_itself", 0, 8, 0, NONE, EOK, ERANGE_AND_RESET, "abc", "" },
	{ "overlaps_above", 0, 8, 1, NONE, EOVERLAP_AND_RESET, EOVERLAP_AND_RESET, "", "" },
	{ "overlaps_below", 1, 8, 0, NONE, EOVERLAP_AND_RESET, EOVERLAP_AND_RESET, "", "" },
	{ "no_source", 0, 8, NONE, NONE, EINVAL_AND_RESET, EINVAL_AND_RESET, "", "" },
	{ "no_target", NONE, 8, 12, NONE, EINVAL, EINVAL, "", "" },
	{ "no_room", 0, 0, 12, NONE, ERANGE, ERANGE, "abc", "abc" },
	{ "too_much_room", 0, TOO_MUCH, 12, NONE, ERANGE, ERANGE, "abc", "abc" },
};

static void expect_string(const struct string_case *c, bool join, int wanted, const char *left)
{
	errno_t (*counted)(char *, size_t, const char *, size_t) = join ? strncat_s : strncpy_s;
	errno_t (*whole)(char *, size_t, const char *) = join ? strcat_s : strcpy_s;

	memcpy(text, "abc\0########de\0########", sizeof(text));
	EXPECT_EQ(c->count == NONE ? whole(at(c->to), c->room, at(c->from))
				   : counted(at(c->to), c->room, at(c->from), c->count),
		  wanted);
	if (c->to != NONE)
		EXPECT_STREQ(at(c->to), left);
	EXPECT_EQ(memcmp(text + 8, "####", 4), 0);
}

TEST_EACH(string, is_whole_or_empty, string_cases, label)
{
	const struct string_case *c = param;

	expect_string(c, false, c->copied, c->copy);
	expect_string(c, true, c->joined, c->joint);
}

TEST(string, is_parted)
{
	char *rest = NULL;

	strcpy(text, "::one:two");
	EXPECT_STREQ(strtok_s(text, ":", &rest), "one");
	EXPECT_STREQ(strtok_s(NULL, ":", &rest), "two");
	EXPECT_NULL(strtok_s(NULL, ":", &rest));
	EXPECT_NULL(strtok_s(NULL, ":", &rest));
	rest = NULL;
	EXPECT_NULL(strtok_s(NULL, ":", &rest));
	EXPECT_NULL(strtok_s(text, NULL, &rest));
	EXPECT_NULL(strtok_s(text, ":", NULL));
}

TEST(text, is_printed_or_empty)
{
	int (*print)(char *, size_t, const char *, ...) = sprintf_s;

	EXPECT_EQ(sprintf_s(text, 5, "%d", 1234), 4);
	EXPECT_STREQ(text, "1234");
	EXPECT_EQ(sprintf_s(text, 4, "%d", 5678), -1);
	EXPECT_STREQ(text, "");
	EXPECT_EQ(sprintf_s(NULL, 4, "%d", 1), -1);
	strcpy(text, "abc");
	EXPECT_EQ(sprintf_s(text, 0, "%d", 1), -1);
	EXPECT_EQ(sprintf_s(text, TOO_MUCH, "%d", 1), -1);
	EXPECT_STREQ(text, "abc");
	EXPECT_EQ(print(text, 4, NULL), -1);
	EXPECT_STREQ(text, "");
}

TEST(text, is_printed_as_far_as_was_asked)
{
	EXPECT_EQ(snprintf_s(text, 5, 4, "%d", 1234), 4);
	EXPECT_STREQ(text, "1234");
	EXPECT_EQ(snprintf_s(text, 5, 2, "%d", 5678), -1);
	EXPECT_STREQ(text, "56");
	EXPECT_EQ(snprintf_s(text, 4, 4, "%d", 9999), -1);
	EXPECT_STREQ(text, "");
	EXPECT_EQ(snprintf_s(text, 4, 9, "%d", 12), 2);
	EXPECT_STREQ(text, "12");
	EXPECT_EQ(snprintf_s(text, 4, SIZE_MAX, "%d", 1), -1);
	EXPECT_STREQ(text, "");
}
