/* SPDX-License-Identifier: Apache-2.0
 *
 * What the harness prints and answers when tests fail, skip, crash or are badly registered: runs
 * failing.c and bad-registration.c as programs and reads their output.
 */
#include "harness/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static char output[1 << 17];

/* Runs a program through the shell into `output`; returns its exit status, 128 + N for signal N. */
static int run(const char *program, const char *arguments)
{
	char command[2048];
	size_t length = 0, got;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "exec '%s' --gtest_color=no %s 2>&1", program,
		 arguments);
	pipe = popen(command, "r");
	if (pipe == NULL)
		return -1;
	while ((got = fread(output + length, 1, sizeof(output) - 1 - length, pipe)) > 0)
		length += got;
	output[length] = '\0';
	status = pclose(pipe);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_test(const char *filter)
{
	char arguments[256];

	snprintf(arguments, sizeof(arguments), "--gtest_filter='%s'", filter);
	return run(HARNESS_FAILING, arguments);
}

static bool has(const char *part)
{
	return strstr(output, part) != NULL;
}

static int count(const char *part)
{
	int found = 0;

	for (const char *at = output; (at = strstr(at, part)) != NULL; at += strlen(part))
		found++;
	return found;
}

struct output_case {
	const char *title;
	const char *filter;
	int status;
	const char *wanted[8];
	const char *unwanted[3];
};

static const struct output_case output_cases[] = {
	{ "signed",
	  "failing.eq_signed",
	  1,
	  { "failing.c:26: Failure\n", "Expected: left == 7\n", "left:  -5 (0xfffffffb)\n",
	    "right: 7 (0x7)\n", "[  FAILED  ] failing.eq_signed" },
	  { 0 } },
	{ "unsigned",
	  "failing.eq_unsigned",
	  1,
	  { "left:  20615843020800 (0x12c000000000)\n",
	    "right: 18446744073709551615 (0xffffffffffffffff)\n" },
	  { 0 } },
	{ "char_and_bool",
	  "failing.lt_char_and_bool",
	  1,
	  { "Expected: letter < (bool)", "left:  120 (0x78, 'x')\n", "right: true\n" },
	  { 0 } },
	{ "floating",
	  "failing.eq_floating",
	  1,
	  { "left:  0.5 (0x8p-4)\n", "right: 0.25 (0x8p-5)\n" },
	  { 0 } },
	{ "pointer",
	  "failing.eq_pointer",
	  1,
	  { "Expected: place == NULL\n", "left:  0x1000\n", "right: NULL\n" },
	  { 0 } },
	{ "truth",
	  "failing.truth",
	  1,
	  { "Expected: code is false\n  it is: 507899 (0x7bffb)\n",
	    "Expected: code == 0 is true\n  it is: 0 (0x0)\n" },
	  { 0 } },
	{ "null",
	  "failing.null",
	  1,
	  { "is NULL\n  it is: 0x2000\n", "is not NULL\n  it is: NULL\n" },
	  { 0 } },
	{ "strings",
	  "failing.strings",
	  1,
	  { "left:  \"one\\ntwo\"\n", "right: \"one\\nthree\"\n", "they part at character 5\n",
	    "Expected: strings \"same\" != \"same\"\n", "left:  NULL\n  right: \"NULL\"\n",
	    "contains \"needle\"\n" },
	  { 0 } },
	{ "memory",
	  "failing.memory",
	  1,
	  { "2 bytes differ, the first at offset 20 (0x14); from 0x10 on\n",
	    "left:  00 00 00 00 00 00", "right: 00 00 00 00 ab 00" },
	  { 0 } },
	{ "near",
	  "failing.near",
	  1,
	  { "1.0 is within 0.5 of 2.0\n", "they are 1 apart\n" },
	  { 0 } },
	{ "assert_returns",
	  "failing.assert_returns",
	  1,
	  { "Expected: 1 >= 2\n" },
	  { "the test went on" } },
	{ "helper_unasked",
	  "failing.fatal_in_helper_goes_on_unasked",
	  1,
	  { "Expected: 1 == 2\n", "reached the end" },
	  { "the helper went on" } },
	{ "helper_seen",
	  "failing.fatal_in_helper_seen",
	  1,
	  { "Expected: 1 == 2\n" },
	  { "reached the end", "the helper went on" } },
	{ "statement_seen",
	  "failing.fatal_in_statement_seen",
	  1,
	  { "Expected: 1 == 2\n" },
	  { "reached the end", "the helper went on" } },
	{ "fail",
	  "failing.fail_with_message",
	  1,
	  { "size 12 is over the limit of ten\n" },
	  { "the test went on" } },
	{ "notes",
	  "failing.notes",
	  1,
	  { "Google Test trace:\n", ": round 1\n", "Expected: 5 == 6\n" },
	  { "round 0" } },
	{ "skip",
	  "skipping.here",
	  0,
	  { "failing.c:130: Skipped\nneeds hardware\n", "[  SKIPPED ] skipping.here",
	    "[  SKIPPED ] 1 test" },
	  { "the test went on" } },
	{ "skip_in_helper",
	  "skipping.in_helper",
	  0,
	  { "no device 7 here\n", "[  SKIPPED ] skipping.in_helper" },
	  { "reached the end" } },
	{ "setup_fails",
	  "bad_setup.*",
	  1,
	  { "Expected: torn_down is true\n", "teardown ran" },
	  { "the body ran" } },
	{ "table",
	  "table.*",
	  1,
	  { "[       OK ] table.limit/low", "[  FAILED  ] table.limit/far_too_high",
	    "left:  11 (0xb)\n" },
	  { 0 } },
	{ "no_signal",
	  "children.no_signal",
	  1,
	  { "do_nothing(), in a process of its own, dies of SIGSEGV (11)\n",
	    "it exits with status 0\n" },
	  { 0 } },
	{ "other_signal",
	  "children.other_signal",
	  1,
	  { "it dies of SIGABRT (6)\n", "in the child" },
	  { 0 } },
	{ "child_check_fails",
	  "children.check_fails_inside",
	  1,
	  { "Expected: 1 == 2\n", "it exits with status 70\n" },
	  { 0 } },
	{ "crash", "crash.*", 128 + 9, { "[ RUN      ] crash.by_signal" }, { "[  FAILED  ]" } },
};

TEST_EACH(output, of, output_cases, title)
{
	const struct output_case *c = param;

	EXPECT_EQ(run_test(c->filter), c->status);
	NOTE("the output was:\n%s", output);
	for (size_t i = 0; i < 8 && c->wanted[i] != NULL; i++) {
		NOTE("wanted: %s", c->wanted[i]);
		EXPECT_TRUE(has(c->wanted[i]));
	}
	for (size_t i = 0; i < 3 && c->unwanted[i] != NULL; i++) {
		NOTE("not wanted: %s", c->unwanted[i]);
		EXPECT_FALSE(has(c->unwanted[i]));
	}
}

TEST(output, note_belongs_to_its_block)
{
	EXPECT_EQ(run_test("failing.notes"), 1);
	EXPECT_EQ(count("Google Test trace:"), 1);
}

TEST(runner, lists_in_order_of_sources)
{
	ASSERT_EQ(run(HARNESS_FAILING, "--gtest_list_tests --gtest_filter='failing.*'"), 0);
	NOTE("the output was:\n%s", output);
	ASSERT_TRUE(has("failing.\n  eq_signed\n  eq_unsigned\n  lt_char_and_bool\n"));
}

TEST(runner, filters)
{
	EXPECT_EQ(run(HARNESS_FAILING, "--gtest_filter='failing.*:-failing.e*:failing.f*'"), 1);
	EXPECT_TRUE(has("[ RUN      ] failing.truth"));
	EXPECT_FALSE(has("[ RUN      ] failing.eq_signed"));
}

TEST(runner, shuffles_and_repeats)
{
	EXPECT_EQ(run(HARNESS_FAILING, "--gtest_shuffle --gtest_repeat=2 --gtest_random_seed=7 "
				       "--gtest_filter='failing.*'"),
		  1);
	EXPECT_TRUE(has("Randomizing tests' orders with a seed of 7"));
	EXPECT_EQ(count("[ RUN      ] failing.truth"), 2);
}

TEST(runner, helps)
{
	EXPECT_EQ(run(HARNESS_FAILING, "--help"), 0);
	EXPECT_TRUE(has("--gtest_filter="));
	EXPECT_FALSE(has("[ RUN"));
}

TEST(runner, refuses_unknown_arguments)
{
	EXPECT_EQ(run(HARNESS_FAILING, "--gtest_filter='table.*' --colour"), 2);
	EXPECT_TRUE(has("unknown argument --colour"));
}

TEST(runner, refuses_bad_registration)
{
	EXPECT_EQ(run(HARNESS_BAD_REGISTRATION, ""), 2);
	NOTE("the output was:\n%s", output);
	EXPECT_TRUE(has("a second test named twice.each/a_b"));
	EXPECT_TRUE(has("suite twice has two SETUP functions"));
	EXPECT_TRUE(has("SETUP or TEARDOWN of suite nothing, which has no tests"));
	EXPECT_FALSE(has("[ RUN"));
}

TEST(runner, refuses_to_run_nothing)
{
	EXPECT_EQ(run(HARNESS_EMPTY, ""), 2);
	EXPECT_TRUE(has("no tests are linked"));
}
