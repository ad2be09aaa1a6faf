/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that fail, skip and crash on purpose, each in one way. Run by harness-meta-test.c, which
 * checks what is printed; never by itself.
 * harness-meta-test.c knows the numbers of its lines.
 */
#include "harness/test.h"

#include <signal.h>
#include <stdlib.h>

static void helper_fails_fatally(void)
{
	ASSERT_EQ(1, 2);
	ADD_FAILURE("the helper went on");
}

static void helper_skips(void)
{
	SKIP("no device %d here", 7);
}

TEST(failing, eq_signed)
{
	int left = -5;
	EXPECT_EQ(left, 7);
}

TEST(failing, eq_unsigned)
{
	uint64_t left = 0x12c000000000;
	EXPECT_EQ(left, UINT64_MAX);
}

TEST(failing, lt_char_and_bool)
{
	char letter = 'x';
	EXPECT_LT(letter, (bool)true);
}

TEST(failing, eq_floating)
{
	double half = 0.5;
	EXPECT_EQ(half, 0.25f);
}

TEST(failing, eq_pointer)
{
	int *place = (int *)0x1000;
	EXPECT_EQ(place, NULL);
}

TEST(failing, truth)
{
	int code = 507899;
	EXPECT_FALSE(code);
	EXPECT_TRUE(code == 0);
}

TEST(failing, null)
{
	EXPECT_NULL((void *)0x2000);
	EXPECT_NOT_NULL((void *)NULL);
}

TEST(failing, strings)
{
	EXPECT_STREQ("one\ntwo", "one\nthree");
	EXPECT_STRNE("same", "same");
	EXPECT_STREQ(NULL, "NULL");
	EXPECT_CONTAINS("haystack", "needle");
}

TEST(failing, memory)
{
	unsigned char left[64] = { 0 }, right[64] = { 0 };
	right[20] = 0xab;
	right[63] = 1;
	EXPECT_MEMEQ(left, right, sizeof(left));
}

TEST(failing, near)
{
	EXPECT_NEAR(1.0, 2.0, 0.5);
}

TEST(failing, assert_returns)
{
	ASSERT_GE(1, 2);
	ADD_FAILURE("the test went on");
}

TEST(failing, fatal_in_helper_goes_on_unasked)
{
	helper_fails_fatally();
	ADD_FAILURE("reached the end");
}

TEST(failing, fatal_in_helper_seen)
{
	helper_fails_fatally();
	RETURN_IF_FATAL();
	ADD_FAILURE("reached the end");
}

TEST(failing, fatal_in_statement_seen)
{
	ASSERT_NO_FATAL(helper_fails_fatally());
	ADD_FAILURE("reached the end");
}

TEST(failing, fail_with_message)
{
	FAIL("size %d is over the limit of %s", 12, "ten");
	ADD_FAILURE("the test went on");
}

TEST(failing, notes)
{
	for (int i = 0; i < 2; i++) {
		NOTE("round %d", i);
		if (i == 1)
			EXPECT_EQ(i, 0);
	}
	EXPECT_EQ(5, 6);
}

TEST(skipping, here)
{
	SKIP("needs %s", "hardware"); /* line 130 */
	ADD_FAILURE("the test went on");
}

TEST(skipping, in_helper)
{
	helper_skips();
	RETURN_IF_FATAL();
	ADD_FAILURE("reached the end");
}

static bool torn_down;

SETUP(bad_setup)
{
	ASSERT_TRUE(torn_down);
}

TEARDOWN(bad_setup)
{
	torn_down = true;
	ADD_FAILURE("teardown ran");
}

TEST(bad_setup, body)
{
	ADD_FAILURE("the body ran");
}

struct limit_case {
	const char *name;
	int value;
};

static const struct limit_case limits[] = { { "low", 1 }, { "far-too high", 11 } };

TEST_EACH(table, limit, limits, name)
{
	const struct limit_case *c = param;
	EXPECT_LE(c->value, 10);
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static void complain_and_abort(void *arg)
{
	(void)arg;
	ADD_FAILURE("in the child");
	abort();
}

static void fail_in_child(void *arg)
{
	(void)arg;
	EXPECT_EQ(1, 2);
}

TEST(children, no_signal)
{
	EXPECT_SIGNAL(SIGSEGV, do_nothing, NULL);
}

TEST(children, other_signal)
{
	EXPECT_SIGNAL(SIGSEGV, complain_and_abort, NULL);
}

TEST(children, check_fails_inside)
{
	EXPECT_EXIT(0, fail_in_child, NULL);
}

TEST(crash, by_signal)
{
	raise(SIGKILL);
}
