/* SPDX-License-Identifier: Apache-2.0
 *
 * GoogleTest for C. Owns registration, checks, notes, skips and checks on how a child process ends;
 * the runner, its options (--gtest_filter, --gtest_list_tests, --gtest_shuffle, ...) and its
 *reports are GoogleTest's own. Knows nothing of npusim, but that main() gives each test program a
 *node of its own (NPUSIM_NODE=test-PID) where the environment names none.
 *
 *	#include "harness/test.h"
 *
 *	TEST(arena, reserve_rounds_up)
 *	{
 *		ASSERT_NOT_NULL(arena);
 *		EXPECT_EQ(arena_reserve(arena, 1), 0);
 *	}
 *
 * The suite is the area, the test's name says function and condition. Registration is by
 * constructor: a file that is linked is run. Link with `harness_dep`, which brings main() too.
 *
 * A check that holds costs no output. One that fails prints the file and line of the C source, the
 * text and the values of both sides. EXPECT_xx then goes on, and is a bool to branch on; ASSERT_xx
 * returns from the function that it stands in (which must return void). Checks may be made from any
 * thread that ends before the test does; a fatal one ends its own function only, wherever it is.
 *
 * C++ tests include <gtest/gtest.h> instead, and take main() from `harness_dep` all the same.
 */
#ifndef NPUSIM_TESTS_HARNESS_TEST_H
#define NPUSIM_TESTS_HARNESS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what the macros call; tests call none of it, but harness_register() and the last three --- */

enum harness_kind {
	HARNESS_SIGNED,
	HARNESS_UNSIGNED,
	HARNESS_CHARACTER,
	HARNESS_BOOLEAN,
	HARNESS_FLOATING,
	HARNESS_POINTER,
};

struct harness_value {
	enum harness_kind kind;
	unsigned size; /* bytes of the value's own type */
	union {
		int64_t as_signed;
		uint64_t as_unsigned;
		const volatile void *as_pointer;
	};
	long double as_floating; /* beside the union: compilers disagreed on passing it in one */
};

enum harness_op {
	HARNESS_EQ,
	HARNESS_NE,
	HARNESS_LT,
	HARNESS_LE,
	HARNESS_GT,
	HARNESS_GE,
};

struct harness_site {
	const char *file;
	int line;
	bool fatal;
};

enum harness_hook { HARNESS_SETUP, HARNESS_TEARDOWN };

struct harness_note;

/* How a child process ended. */
enum harness_ending { HARNESS_EXITS, HARNESS_DIES_BY_SIGNAL };

/* Adds a test before main() runs, or a case NAME/LABEL where `label` is not NULL (a character of it
 * that is no letter, digit or underscore becomes an underscore). `body` is called with `param`;
 * strings are copied. A test of the same suite and name twice ends the program with status 2. */
void harness_register(const char *suite, const char *name, const char *label, const char *file,
		      int line, void (*body)(const void *param), const void *param);
void harness_register_hook(const char *suite, enum harness_hook which, void (*hook)(void));

struct harness_value harness_signed(long long value, size_t size);
struct harness_value harness_unsigned(unsigned long long value, size_t size);
struct harness_value harness_character(char value, size_t size);
struct harness_value harness_boolean(bool value, size_t size);
struct harness_value harness_floating(long double value, size_t size);
struct harness_value harness_pointer(const volatile void *value, size_t size);

bool harness_compare(struct harness_site site, enum harness_op op, struct harness_value left,
		     struct harness_value right, const char *left_text, const char *right_text);
bool harness_check_truth(struct harness_site site, bool wanted, struct harness_value value,
			 const char *text);
bool harness_check_null(struct harness_site site, bool wanted, const volatile void *value,
			const char *text);
bool harness_check_string(struct harness_site site, bool equal, const char *left, const char *right,
			  const char *left_text, const char *right_text);
bool harness_check_contains(struct harness_site site, const char *text, const char *part,
			    const char *text_text, const char *part_text);
bool harness_check_memory(struct harness_site site, const void *left, const void *right,
			  size_t size, const char *left_text, const char *right_text);
bool harness_check_near(struct harness_site site, double left, double right, double tolerance,
			const char *left_text, const char *right_text);
bool harness_check_child(struct harness_site site, enum harness_ending ending, int number,
			 void (*function)(void *arg), void *arg, const char *text);

bool harness_fail(struct harness_site site, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void harness_skip(struct harness_site site, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
struct harness_note *harness_note_begin(struct harness_site site, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void harness_note_end(struct harness_note **note);

/* True once a fatal check of the running test has failed, or it was skipped, in any function. */
bool harness_is_over(void);

/* True once any check of the running test has failed. */
bool harness_has_failed(void);

/* What the last child of EXPECT_SIGNAL or EXPECT_EXIT wrote to its standard error (the first MiB);
 * never NULL. Valid until the next one. */
const char *harness_last_stderr(void);

#ifdef __cplusplus
}
#else

#define HARNESS_JOIN_(a, b)     HARNESS_JOIN_NOW_(a, b)
#define HARNESS_JOIN_NOW_(a, b) a##b
#define HARNESS_SITE_(is_fatal) \
	((struct harness_site){ .file = __FILE__, .line = __LINE__, .fatal = (is_fatal) })
#define HARNESS_OR_RETURN_(check) \
	do {                      \
		if (!(check))     \
			return;   \
	} while (0)

/* Enumerations go by their integer type. Cast a bit-field; a struct does not compile. */
/* clang-format off */
#define HARNESS_VALUE_(x) \
	_Generic((x), \
		_Bool: harness_boolean, \
		char: harness_character, \
		signed char: harness_signed, \
		short: harness_signed, \
		int: harness_signed, \
		long: harness_signed, \
		long long: harness_signed, \
		unsigned char: harness_unsigned, \
		unsigned short: harness_unsigned, \
		unsigned int: harness_unsigned, \
		unsigned long: harness_unsigned, \
		unsigned long long: harness_unsigned, \
		float: harness_floating, \
		double: harness_floating, \
		long double: harness_floating, \
		default: harness_pointer)((x), sizeof(x))
/* clang-format on */

/* --- tests --- */

/* A test: TEST(suite, name) { ... } */
#define TEST(suite, name)                                                             \
	static void harness_body_##suite##_##name(const void *);                      \
	__attribute__((constructor)) static void harness_enter_##suite##_##name(void) \
	{                                                                             \
		harness_register(#suite, #name, NULL, __FILE__, __LINE__,             \
				 harness_body_##suite##_##name, NULL);                \
	}                                                                             \
	static void harness_body_##suite##_##name(__attribute__((unused))             \
						  const void *harness_no_param_)

/* A test whose body runs in a forked child: EXPECT_EXIT(0, body, NULL). */
#define TEST_CHILD(suite, name)                                       \
	static void harness_child_##suite##_##name(void *);           \
	TEST(suite, name)                                             \
	{                                                             \
		EXPECT_EXIT(0, harness_child_##suite##_##name, NULL); \
	}                                                             \
	static void harness_child_##suite##_##name(__attribute__((unused)) void *harness_no_arg_)

/* One test for each element of the array `table`: suite.name/LABEL, where `label` names the string
 * member of an element that labels it. The body finds its element in `param`:
 *	TEST_EACH(page_table, maps, cases, title) { const struct map_case *c = param; ... } */
#define TEST_EACH(suite, name, table, label)                                                   \
	static void harness_body_##suite##_##name(const void *);                               \
	__attribute__((constructor)) static void harness_enter_##suite##_##name(void)          \
	{                                                                                      \
		for (size_t i_ = 0; i_ < sizeof(table) / sizeof((table)[0]); i_++)             \
			harness_register(#suite, #name, (table)[i_].label, __FILE__, __LINE__, \
					 harness_body_##suite##_##name, &(table)[i_]);         \
	}                                                                                      \
	static void harness_body_##suite##_##name(const void *param)

/* Run before and after each test of the suite, in whichever file that test is. After a fatal
 * failure or a skip in SETUP the test's body is left out; TEARDOWN always runs. One of each a
 * suite. */
#define SETUP(suite)    HARNESS_HOOK_(suite, setup, HARNESS_SETUP)
#define TEARDOWN(suite) HARNESS_HOOK_(suite, teardown, HARNESS_TEARDOWN)
#define HARNESS_HOOK_(suite, what, which)                                             \
	static void harness_##what##_##suite(void);                                   \
	__attribute__((constructor)) static void harness_enter_##what##_##suite(void) \
	{                                                                             \
		harness_register_hook(#suite, which, harness_##what##_##suite);       \
	}                                                                             \
	static void harness_##what##_##suite(void)

/* --- checks --- */

/* Integers, pointers, booleans and floating values, by their mathematical value: -1 is less than
 * 0u, and not equal to UINT64_MAX. Each side is evaluated once. */
#define EXPECT_EQ(a, b) HARNESS_COMPARE_(false, HARNESS_EQ, a, b, #a, #b)
#define EXPECT_NE(a, b) HARNESS_COMPARE_(false, HARNESS_NE, a, b, #a, #b)
#define EXPECT_LT(a, b) HARNESS_COMPARE_(false, HARNESS_LT, a, b, #a, #b)
#define EXPECT_LE(a, b) HARNESS_COMPARE_(false, HARNESS_LE, a, b, #a, #b)
#define EXPECT_GT(a, b) HARNESS_COMPARE_(false, HARNESS_GT, a, b, #a, #b)
#define EXPECT_GE(a, b) HARNESS_COMPARE_(false, HARNESS_GE, a, b, #a, #b)
#define ASSERT_EQ(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_EQ, a, b, #a, #b))
#define ASSERT_NE(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_NE, a, b, #a, #b))
#define ASSERT_LT(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_LT, a, b, #a, #b))
#define ASSERT_LE(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_LE, a, b, #a, #b))
#define ASSERT_GT(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_GT, a, b, #a, #b))
#define ASSERT_GE(a, b) HARNESS_OR_RETURN_(HARNESS_COMPARE_(true, HARNESS_GE, a, b, #a, #b))
#define HARNESS_COMPARE_(fatal, op, a, b, a_text, b_text)                                       \
	harness_compare(HARNESS_SITE_(fatal), op, HARNESS_VALUE_(a), HARNESS_VALUE_(b), a_text, \
			b_text)

#define EXPECT_TRUE(x)  HARNESS_TRUTH_(false, true, x, #x)
#define EXPECT_FALSE(x) HARNESS_TRUTH_(false, false, x, #x)
#define ASSERT_TRUE(x)  HARNESS_OR_RETURN_(HARNESS_TRUTH_(true, true, x, #x))
#define ASSERT_FALSE(x) HARNESS_OR_RETURN_(HARNESS_TRUTH_(true, false, x, #x))
#define HARNESS_TRUTH_(fatal, wanted, x, text) \
	harness_check_truth(HARNESS_SITE_(fatal), wanted, HARNESS_VALUE_(x), text)

#define EXPECT_NULL(p)     harness_check_null(HARNESS_SITE_(false), true, p, #p)
#define EXPECT_NOT_NULL(p) harness_check_null(HARNESS_SITE_(false), false, p, #p)
#define ASSERT_NULL(p)     HARNESS_OR_RETURN_(harness_check_null(HARNESS_SITE_(true), true, p, #p))
#define ASSERT_NOT_NULL(p) HARNESS_OR_RETURN_(harness_check_null(HARNESS_SITE_(true), false, p, #p))

/* Strings by content; NULL is equal to NULL only. */
#define EXPECT_STREQ(a, b) harness_check_string(HARNESS_SITE_(false), true, a, b, #a, #b)
#define EXPECT_STRNE(a, b) harness_check_string(HARNESS_SITE_(false), false, a, b, #a, #b)
#define ASSERT_STREQ(a, b) \
	HARNESS_OR_RETURN_(harness_check_string(HARNESS_SITE_(true), true, a, b, #a, #b))
#define ASSERT_STRNE(a, b) \
	HARNESS_OR_RETURN_(harness_check_string(HARNESS_SITE_(true), false, a, b, #a, #b))

/* The string `part` is somewhere in the string `text`. */
#define EXPECT_CONTAINS(text, part) \
	harness_check_contains(HARNESS_SITE_(false), text, part, #text, #part)
#define ASSERT_CONTAINS(text, part) \
	HARNESS_OR_RETURN_(harness_check_contains(HARNESS_SITE_(true), text, part, #text, #part))

/* `size` bytes at `a` and `b`; says where they part, and shows both there. */
#define EXPECT_MEMEQ(a, b, size) harness_check_memory(HARNESS_SITE_(false), a, b, size, #a, #b)
#define ASSERT_MEMEQ(a, b, size) \
	HARNESS_OR_RETURN_(harness_check_memory(HARNESS_SITE_(true), a, b, size, #a, #b))

/* |a - b| is at most `tolerance`; never with a NaN. */
#define EXPECT_NEAR(a, b, tolerance) \
	harness_check_near(HARNESS_SITE_(false), a, b, tolerance, #a, #b)
#define ASSERT_NEAR(a, b, tolerance) \
	HARNESS_OR_RETURN_(harness_check_near(HARNESS_SITE_(true), a, b, tolerance, #a, #b))

/* Runs fn(arg), of type void (*)(void *), in a forked child, and checks that it dies of the signal,
 * or exits with the status (0 where fn returns, 70 where a check in it failed). The child leaves no
 * core file, and is killed after a minute. See harness_last_stderr(). */
#define EXPECT_SIGNAL(signal, fn, arg) \
	harness_check_child(HARNESS_SITE_(false), HARNESS_DIES_BY_SIGNAL, signal, fn, arg, #fn)
#define EXPECT_EXIT(status, fn, arg) \
	harness_check_child(HARNESS_SITE_(false), HARNESS_EXITS, status, fn, arg, #fn)
#define ASSERT_SIGNAL(signal, fn, arg)                                                      \
	HARNESS_OR_RETURN_(harness_check_child(HARNESS_SITE_(true), HARNESS_DIES_BY_SIGNAL, \
					       signal, fn, arg, #fn))
#define ASSERT_EXIT(status, fn, arg) \
	HARNESS_OR_RETURN_(          \
		harness_check_child(HARNESS_SITE_(true), HARNESS_EXITS, status, fn, arg, #fn))

/* --- flow --- */

/* A failure with a message in printf's form; FAIL returns from the function, ADD_FAILURE goes on.
 */
#define FAIL(...)        HARNESS_OR_RETURN_(harness_fail(HARNESS_SITE_(true), __VA_ARGS__))
#define ADD_FAILURE(...) harness_fail(HARNESS_SITE_(false), __VA_ARGS__)

/* Ends the function, and marks the test as skipped for the reason given. */
#define SKIP(...)                                                \
	do {                                                     \
		harness_skip(HARNESS_SITE_(false), __VA_ARGS__); \
		return;                                          \
	} while (0)

/* A line of context in printf's form, shown with each failure until the end of the block that it
 * stands in (of this thread, in helpers called from the block too). A declaration: it needs a
 * block. */
#define NOTE(...)                                                                              \
	__attribute__((cleanup(harness_note_end), unused)) struct harness_note *HARNESS_JOIN_( \
		harness_note_, __COUNTER__) =                                                  \
		harness_note_begin(HARNESS_SITE_(false), __VA_ARGS__)

/* After a call to a helper that may fail fatally or skip: returns if it did (now or earlier). */
#define RETURN_IF_FATAL() HARNESS_OR_RETURN_(!harness_is_over())

/* The same around the call: ASSERT_NO_FATAL(fill(&table)); */
#define ASSERT_NO_FATAL(statement) \
	do {                       \
		statement;         \
		RETURN_IF_FATAL(); \
	} while (0)

#endif /* __cplusplus */

#endif
