/* SPDX-License-Identifier: Apache-2.0
 *
 * The harness where everything holds: each check on values that satisfy it, hooks, tables,
 * children. What it prints when something does not hold is harness-meta-test.c's.
 */
#include "harness/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum colour { RED, GREEN };

static int evaluations;

static int count_evaluation(void)
{
	return ++evaluations;
}

TEST(checks, integers_of_every_type_compare)
{
	char c = 'a';
	signed char sc = -1;
	unsigned char uc = 255;
	short s = -300;
	unsigned short us = 65535;
	long l = -1L;
	unsigned long ul = 1UL << 63;
	unsigned long long ull = UINT64_MAX;
	enum colour colour = GREEN;

	EXPECT_EQ(c, 'a');
	EXPECT_EQ(sc, -1);
	EXPECT_EQ(uc, 255);
	EXPECT_LT(s, uc);
	EXPECT_GT(us, s);
	EXPECT_LE(l, sc);
	EXPECT_GE(ul, 1);
	EXPECT_EQ(ull, UINT64_MAX);
	EXPECT_EQ(colour, GREEN);
	EXPECT_EQ(true, true);
	EXPECT_EQ(true, 1);
	EXPECT_NE(RED, colour);
}

TEST(checks, signs_are_mathematical)
{
	EXPECT_NE(-1, UINT64_MAX);
	EXPECT_NE(-1, 0xffffffffu);
	EXPECT_LT(-1, 0u);
	EXPECT_GT(UINT64_MAX, -1);
	EXPECT_GT(UINT64_MAX, INT64_MAX);
	EXPECT_LT(INT64_MIN, INT64_MIN + 1);
	EXPECT_LT(INT64_MIN, INT64_MAX);
	EXPECT_GE(-3, -3L);
}

TEST(checks, floating_values_compare)
{
	EXPECT_EQ(0.5f, 0.5);
	EXPECT_LT(0.1, 1);
	EXPECT_NE((double)NAN, (double)NAN);
	EXPECT_GT(1e300L, 1e299);
	EXPECT_NE((double)UINT64_MAX, UINT64_MAX);
	EXPECT_NEAR(1.0, 1.05, 0.1);
	EXPECT_NEAR((double)INFINITY, (double)INFINITY, 0.0);
	ASSERT_NEAR(-1.0, -1.0, 0.0);
}

TEST(checks, pointers_compare)
{
	int values[2] = { 0, 0 };
	volatile int *watched = values;
	const void *nothing = NULL;
	void (*function)(void) = NULL;

	EXPECT_EQ(values, watched);
	EXPECT_LT(&values[0], &values[1]);
	EXPECT_EQ(nothing, NULL);
	EXPECT_EQ(function, NULL);
	EXPECT_NE(values, NULL);
	EXPECT_NULL(nothing);
	EXPECT_NOT_NULL(values);
	ASSERT_NULL(nothing);
	ASSERT_NOT_NULL(values);
	EXPECT_TRUE(values);
	EXPECT_FALSE(nothing);
}

TEST(checks, strings_compare_by_content)
{
	char text[] = "hbm";
	const char *none = NULL;

	EXPECT_STREQ(text, "hbm");
	EXPECT_STREQ(none, NULL);
	EXPECT_STRNE(text, "hbm ");
	EXPECT_STRNE(text, none);
	EXPECT_CONTAINS("no such page", "such");
	ASSERT_STREQ(text, "hbm");
	ASSERT_STRNE(text, "");
	ASSERT_CONTAINS(text, "");
}

TEST(checks, memory_compares)
{
	unsigned char a[100] = { 0 }, b[100] = { 0 };

	EXPECT_MEMEQ(a, b, sizeof(a));
	b[99] = 1;
	EXPECT_MEMEQ(a, b, 99);
	ASSERT_MEMEQ(NULL, b, 0);
}

TEST(checks, each_side_is_evaluated_once)
{
	evaluations = 0;
	EXPECT_EQ(count_evaluation(), 1);
	ASSERT_EQ(2, count_evaluation());
	EXPECT_TRUE(count_evaluation());
	EXPECT_EQ(evaluations, 3);
}

TEST(checks, expect_is_a_bool)
{
	int branches = 0;

	if (EXPECT_EQ(1, 1))
		branches++;
	if (!EXPECT_TRUE(true))
		branches = 100;
	EXPECT_EQ(branches, 1);
}

static void *check_in_thread(void *arg)
{
	NOTE("in thread %d", *(int *)arg);
	for (int i = 0; i < 1000; i++)
		EXPECT_GE(i, 0);
	return NULL;
}

TEST(checks, threads_may_check)
{
	pthread_t threads[4];
	int numbers[4] = { 0, 1, 2, 3 };

	for (int i = 0; i < 4; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, check_in_thread, &numbers[i]), 0);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
}

static void helper_that_holds(void)
{
	ASSERT_TRUE(true);
}

TEST(flow, no_fatal_failure_goes_on)
{
	bool reached = false;

	NOTE("one note");
	NOTE("another note in the same block, %s", "with a value");
	helper_that_holds();
	RETURN_IF_FATAL();
	ASSERT_NO_FATAL(helper_that_holds());
	EXPECT_FALSE(harness_is_over());
	EXPECT_FALSE(harness_has_failed());
	reached = true;
	EXPECT_TRUE(reached);
}

/* --- hooks --- */

static int set_up, torn_down;

SETUP(hooks)
{
	set_up++;
}

TEARDOWN(hooks)
{
	torn_down++;
}

TEST(hooks, setup_ran_once_before)
{
	EXPECT_EQ(set_up, torn_down + 1);
}

TEST(hooks, and_again_before_the_next)
{
	EXPECT_EQ(set_up, torn_down + 1);
}

/* --- tables --- */

struct sum_case {
	const char *title;
	int a, b, sum;
};

static const struct sum_case sum_cases[] = {
	{ "zero", 0, 0, 0 },
	{ "small numbers", 1, 2, 3 },
	{ "below_zero", -1, -2, -3 },
};

TEST_EACH(tables, sums, sum_cases, title)
{
	const struct sum_case *c = param;

	NOTE("%d + %d", c->a, c->b);
	EXPECT_EQ(c->a + c->b, c->sum);
}

struct named_in_place {
	char name[8];
};

static const struct named_in_place named_in_place[] = { { "first" }, { "second" } };

TEST_EACH(tables, labels_may_be_arrays, named_in_place, name)
{
	EXPECT_TRUE(param == &named_in_place[0] || param == &named_in_place[1]);
}

/* --- children --- */

static void store_to(void *arg)
{
	volatile int *place = arg;

	fprintf(stderr, "about to store\n");
	*place = 1;
}

static void raise_it(void *arg)
{
	raise(*(int *)arg);
}

static void leave_with(void *arg)
{
	_exit(*(int *)arg);
}

static void write_much(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200 * 1000; i++)
		fputs("0123456789", stderr);
}

TEST(children, signal_and_stderr_are_seen)
{
	void *guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(guarded, MAP_FAILED);
	ASSERT_SIGNAL(SIGSEGV, store_to, guarded);
	EXPECT_STREQ(harness_last_stderr(), "about to store\n");
	EXPECT_EQ(munmap(guarded, 4096), 0);
}

TEST(children, each_signal_is_told_apart)
{
	int numbers[] = { SIGABRT, SIGBUS, SIGKILL, SIGTERM, SIGUSR1 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		EXPECT_SIGNAL(numbers[i], raise_it, &numbers[i]);
}

TEST(children, exit_status_is_seen)
{
	int status = 0;

	EXPECT_EXIT(0, leave_with, &status);
	status = 42;
	EXPECT_EXIT(42, leave_with, &status);
	EXPECT_STREQ(harness_last_stderr(), "");
}

TEST(children, return_is_status_0)
{
	ASSERT_EXIT(0, write_much, NULL);
	EXPECT_EQ(strlen(harness_last_stderr()), 1 << 20);
}

static void have_child_without_pidfd(void *status)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	EXPECT_TRUE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		    (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 || errno == EINVAL));
	EXPECT_EXIT(*(int *)status, leave_with, status);
}

TEST(children, are_waited_for_on_a_kernel_without_pidfd)
{
	int status = 42;

	EXPECT_EXIT(0, have_child_without_pidfd, &status);
}

TEST(node, has_a_name_of_its_own)
{
	EXPECT_NOT_NULL(getenv("NPUSIM_NODE"));
}
