/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program that is wrong before its first test: two tests of one name, two SETUPs, hooks of
 * nothing. Run by harness-meta-test.c, which checks that it says so; never by itself.
 */
#include "harness/test.h"

static const struct {
	const char *name;
} same[] = { { "a b" }, { "a_b" } };

TEST_EACH(twice, each, same, name)
{
	EXPECT_NOT_NULL(param);
}

static void set_up_again(void)
{
}

SETUP(twice)
{
}

TEARDOWN(nothing)
{
}

__attribute__((constructor)) static void enter_second_setup(void)
{
	harness_register_hook("twice", HARNESS_SETUP, set_up_again);
}
