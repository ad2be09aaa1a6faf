/* SPDX-License-Identifier: Apache-2.0
 *
 * The one C++ file of the harness: hands registered C tests to GoogleTest, words failures, main().
 * Does not run children (child.c).
 */
#include "harness-private.h"
#include "test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

namespace
{

struct c_test {
	std::string suite;
	std::string name;
	const char *file;
	int line;
	void (*body)(const void *param);
	const void *param;
};

struct hooks {
	void (*setup)() = nullptr;
	void (*teardown)() = nullptr;
};

/* Reached from constructors of C files, in any order, and never destroyed. */
struct registry {
	std::vector<c_test> tests;
	std::map<std::string, hooks> hooks_of;
	std::vector<std::string> errors;
};

registry &all()
{
	static registry *const it = new registry;
	return *it;
}

/* GoogleTest wants one fixture class for all tests of a suite: this one, for every suite. */
class fixture : public testing::Test
{
public:
	explicit fixture(const c_test &test) : m_test(test), m_hooks(all().hooks_of[test.suite])
	{
	}

protected:
	void SetUp() override
	{
		if (m_hooks.setup != nullptr)
			m_hooks.setup();
	}
	void TestBody() override
	{
		m_test.body(m_test.param);
	}
	void TearDown() override
	{
		if (m_hooks.teardown != nullptr)
			m_hooks.teardown();
	}

private:
	const c_test &m_test;
	const hooks m_hooks;
};

__attribute__((format(printf, 1, 0))) std::string format(const char *pattern, va_list args)
{
	va_list again;
	va_copy(again, args);
	const int length = vsnprintf(nullptr, 0, pattern, again);
	va_end(again);
	if (length < 0)
		return pattern;
	std::string text(static_cast<size_t>(length) + 1, '\0');
	vsnprintf(&text[0], text.size(), pattern, args);
	text.pop_back();
	return text;
}

__attribute__((format(printf, 1, 2))) std::string print(const char *pattern, ...)
{
	va_list args;
	va_start(args, pattern);
	std::string text = format(pattern, args);
	va_end(args);
	return text;
}

/* GoogleTest's own FAIL, ADD_FAILURE_AT and SKIP differ in the kind alone, and SKIP takes no place.
 */
void report(harness_site site, testing::TestPartResult::Type kind, const std::string &text)
{
	GTEST_MESSAGE_AT_(site.file, site.line, text.c_str(), kind);
}

bool fail(harness_site site, const std::string &text)
{
	report(site,
	       site.fatal ? testing::TestPartResult::kFatalFailure
			  : testing::TestPartResult::kNonFatalFailure,
	       text);
	return false;
}

/* --- values --- */

uint64_t bits_of(harness_value value)
{
	if (value.size >= sizeof(uint64_t))
		return value.as_unsigned;
	return value.as_unsigned & ((uint64_t{ 1 } << (8 * value.size)) - 1);
}

std::string show(harness_value value)
{
	const auto bits = static_cast<unsigned long long>(bits_of(value));

	switch (value.kind) {
	case HARNESS_SIGNED:
		return print("%lld (0x%llx)", static_cast<long long>(value.as_signed), bits);
	case HARNESS_UNSIGNED:
		return print("%llu (0x%llx)", bits, bits);
	case HARNESS_CHARACTER:
		if (bits >= ' ' && bits <= '~')
			return print("%lld (0x%llx, '%c')", static_cast<long long>(value.as_signed),
				     bits, static_cast<int>(bits));
		return print("%lld (0x%llx)", static_cast<long long>(value.as_signed), bits);
	case HARNESS_BOOLEAN:
		return value.as_unsigned != 0 ? "true" : "false";
	case HARNESS_FLOATING:
		return print("%.*Lg (%La)",
			     value.size > 8   ? 21
			     : value.size > 4 ? 17
					      : 9,
			     value.as_floating, value.as_floating);
	case HARNESS_POINTER:
		break;
	}
	if (value.as_pointer == nullptr)
		return "NULL";
	return print("%p", const_cast<const void *>(value.as_pointer));
}

std::string show(const char *text)
{
	if (text == nullptr)
		return "NULL";
	std::string out = "\"";
	for (; *text != '\0'; text++) {
		const auto c = static_cast<unsigned char>(*text);
		if (c == '\n')
			out += "\\n";
		else if (c == '"' || c == '\\')
			out += print("\\%c", c);
		else if (c < ' ' || c == 0x7f)
			out += print("\\x%02x", c);
		else
			out += static_cast<char>(c);
	}
	return out + "\"";
}

std::string show(const unsigned char *bytes, size_t start, size_t end)
{
	std::string out;
	for (size_t i = start; i < end; i++)
		out += print(" %02x", bytes[i]);
	return out;
}

bool is_negative(harness_value value)
{
	return (value.kind == HARNESS_SIGNED || value.kind == HARNESS_CHARACTER) &&
	       value.as_signed < 0;
}

long double to_floating(harness_value value)
{
	if (value.kind == HARNESS_FLOATING)
		return value.as_floating;
	if (is_negative(value))
		return static_cast<long double>(value.as_signed);
	return static_cast<long double>(value.as_unsigned);
}

template <typename T> bool holds(harness_op op, T left, T right)
{
	switch (op) {
	case HARNESS_EQ:
		return left == right;
	case HARNESS_NE:
		return left != right;
	case HARNESS_LT:
		return left < right;
	case HARNESS_LE:
		return left <= right;
	case HARNESS_GT:
		return left > right;
	case HARNESS_GE:
		return left >= right;
	}
	return false;
}

bool holds(harness_op op, harness_value left, harness_value right)
{
	if (left.kind == HARNESS_FLOATING || right.kind == HARNESS_FLOATING)
		return holds(op, to_floating(left), to_floating(right));
	if (is_negative(left) != is_negative(right))
		return holds(op, is_negative(left) ? -1 : 0, is_negative(right) ? -1 : 0);
	/* Of one sign, two's complement is in the order of its bits. */
	return holds(op, left.as_unsigned, right.as_unsigned);
}

const char *symbol(harness_op op)
{
	static const char *const symbols[] = { "==", "!=", "<", "<=", ">", ">=" };
	return symbols[op];
}

/* --- registration --- */

std::string clean_label(const char *label)
{
	std::string text = label;
	for (char &c : text)
		if (isalnum(static_cast<unsigned char>(c)) == 0)
			c = '_';
	return text;
}

/* In the order of the sources: files as they were linked, tests by line, cases as in their table.
 */
void sort_tests(std::vector<c_test> &tests)
{
	std::map<std::string, size_t> file_order;
	for (const c_test &test : tests)
		file_order.emplace(test.file, file_order.size());
	std::stable_sort(tests.begin(), tests.end(), [&](const c_test &a, const c_test &b) {
		const size_t file_a = file_order[a.file], file_b = file_order[b.file];
		return file_a != file_b ? file_a < file_b : a.line < b.line;
	});
}

void check_names(registry &registered)
{
	std::set<std::string> seen;
	std::set<std::string> suites;
	for (const c_test &test : registered.tests) {
		suites.insert(test.suite);
		if (!seen.insert(test.suite + "." + test.name).second)
			registered.errors.push_back(print("%s:%d: a second test named %s.%s",
							  test.file, test.line, test.suite.c_str(),
							  test.name.c_str()));
	}
	for (const auto &entry : registered.hooks_of)
		if (suites.count(entry.first) == 0)
			registered.errors.push_back("SETUP or TEARDOWN of suite " + entry.first +
						    ", which has no tests");
}

int register_all()
{
	registry &registered = all();

	sort_tests(registered.tests);
	check_names(registered);
	for (const std::string &error : registered.errors)
		fprintf(stderr, "harness: %s\n", error.c_str());
	if (!registered.errors.empty())
		return 2;
	for (const c_test &test : registered.tests)
		testing::RegisterTest(test.suite.c_str(), test.name.c_str(), nullptr, nullptr,
				      test.file, test.line,
				      [&test]() -> fixture * { return new fixture(test); });
	if (testing::UnitTest::GetInstance()->total_test_count() == 0) {
		fprintf(stderr, "harness: no tests are linked into this program\n");
		return 2;
	}
	return 0;
}

} // namespace

void harness_register(const char *suite, const char *name, const char *label, const char *file,
		      int line, void (*body)(const void *param), const void *param)
{
	std::string full_name = name;
	if (label != nullptr)
		full_name += "/" + clean_label(label);
	all().tests.push_back({ suite, full_name, file, line, body, param });
}

void harness_register_hook(const char *suite, harness_hook which, void (*hook)())
{
	hooks &of_suite = all().hooks_of[suite];
	auto &place = which == HARNESS_SETUP ? of_suite.setup : of_suite.teardown;
	if (place != nullptr)
		all().errors.push_back(print("suite %s has two %s functions", suite,
					     which == HARNESS_SETUP ? "SETUP" : "TEARDOWN"));
	place = hook;
}

harness_value harness_signed(long long value, size_t size)
{
	harness_value out = { HARNESS_SIGNED, static_cast<unsigned>(size), {}, 0 };
	out.as_signed = value;
	return out;
}

harness_value harness_unsigned(unsigned long long value, size_t size)
{
	harness_value out = { HARNESS_UNSIGNED, static_cast<unsigned>(size), {}, 0 };
	out.as_unsigned = value;
	return out;
}

harness_value harness_character(char value, size_t size)
{
	harness_value out = { HARNESS_CHARACTER, static_cast<unsigned>(size), {}, 0 };
	out.as_signed = value;
	return out;
}

harness_value harness_boolean(bool value, size_t size)
{
	harness_value out = { HARNESS_BOOLEAN, static_cast<unsigned>(size), {}, 0 };
	out.as_unsigned = value ? 1 : 0;
	return out;
}

harness_value harness_floating(long double value, size_t size)
{
	harness_value out = { HARNESS_FLOATING, static_cast<unsigned>(size), {}, 0 };
	out.as_floating = value;
	return out;
}

harness_value harness_pointer(const volatile void *value, size_t)
{
	harness_value out = { HARNESS_POINTER, sizeof(void *), {}, 0 };
	out.as_unsigned = 0;
	out.as_pointer = value;
	return out;
}

/* --- checks --- */

bool harness_compare(harness_site site, harness_op op, harness_value left, harness_value right,
		     const char *left_text, const char *right_text)
{
	if (holds(op, left, right))
		return true;
	return fail(site, print("Expected: %s %s %s\n  left:  %s\n  right: %s", left_text,
				symbol(op), right_text, show(left).c_str(), show(right).c_str()));
}

bool harness_check_truth(harness_site site, bool wanted, harness_value value, const char *text)
{
	const bool found = value.kind == HARNESS_FLOATING
				   ? std::fpclassify(value.as_floating) != FP_ZERO
				   : value.as_unsigned != 0;
	if (found == wanted)
		return true;
	return fail(site, print("Expected: %s is %s\n  it is: %s", text, wanted ? "true" : "false",
				show(value).c_str()));
}

bool harness_check_null(harness_site site, bool wanted, const volatile void *value,
			const char *text)
{
	if ((value == nullptr) == wanted)
		return true;
	return fail(site,
		    print("Expected: %s is %s\n  it is: %s", text, wanted ? "NULL" : "not NULL",
			  show(harness_pointer(value, 0)).c_str()));
}

bool harness_check_string(harness_site site, bool equal, const char *left, const char *right,
			  const char *left_text, const char *right_text)
{
	const bool same =
		left == nullptr || right == nullptr ? left == right : strcmp(left, right) == 0;
	if (same == equal)
		return true;
	std::string text =
		print("Expected: strings %s %s %s\n  left:  %s\n  right: %s", left_text,
		      equal ? "==" : "!=", right_text, show(left).c_str(), show(right).c_str());
	if (left != nullptr && right != nullptr && equal) {
		size_t at = 0;
		while (left[at] == right[at])
			at++;
		text += print("\n  they part at character %zu", at);
	}
	return fail(site, text);
}

bool harness_check_contains(harness_site site, const char *text, const char *part,
			    const char *text_text, const char *part_text)
{
	if (text != nullptr && part != nullptr && strstr(text, part) != nullptr)
		return true;
	return fail(site, print("Expected: string %s contains %s\n  text: %s\n  part: %s",
				text_text, part_text, show(text).c_str(), show(part).c_str()));
}

bool harness_check_memory(harness_site site, const void *left, const void *right, size_t size,
			  const char *left_text, const char *right_text)
{
	if (size == 0)
		return true;
	if (left == nullptr || right == nullptr)
		return fail(site, print("Expected: %zu bytes at %s == those at %s\n  left:  %p\n"
					"  right: %p",
					size, left_text, right_text, left, right));
	if (memcmp(left, right, size) == 0)
		return true;

	const auto *a = static_cast<const unsigned char *>(left);
	const auto *b = static_cast<const unsigned char *>(right);
	size_t at = 0, differing = 0;
	for (size_t i = size; i-- > 0;)
		if (a[i] != b[i]) {
			at = i;
			differing++;
		}
	const size_t start = at - at % 16, end = std::min(size, start + 16);
	return fail(site,
		    print("Expected: %zu bytes at %s == those at %s\n"
			  "  %zu bytes differ, the first at offset %zu (0x%zx); from 0x%zx on\n"
			  "  left: %s\n  right:%s",
			  size, left_text, right_text, differing, at, at, start,
			  show(a, start, end).c_str(), show(b, start, end).c_str()));
}

bool harness_check_near(harness_site site, double left, double right, double tolerance,
			const char *left_text, const char *right_text)
{
	const double distance = std::fabs(left - right);
	if (distance <= tolerance || (left <= right && right <= left))
		return true;
	return fail(site, print("Expected: %s is within %g of %s\n  left:  %.17g\n  right: %.17g\n"
				"  they are %g apart",
				left_text, tolerance, right_text, left, right, distance));
}

bool harness_check_child(harness_site site, harness_ending ending, int number,
			 void (*function)(void *arg), void *arg, const char *text)
{
	char got[HARNESS_ENDING_LENGTH], wanted[HARNESS_ENDING_LENGTH];
	harness_describe_ending(ending, number, wanted);
	if (harness_run_child(function, arg, ending, number, got))
		return true;
	return fail(site, print("Expected: %s(), in a process of its own, %s\n  it %s\n"
				"  its standard error: %s",
				text, wanted, got, show(harness_last_stderr()).c_str()));
}

/* --- flow --- */

bool harness_fail(harness_site site, const char *pattern, ...)
{
	va_list args;
	va_start(args, pattern);
	const std::string text = format(pattern, args);
	va_end(args);
	return fail(site, text);
}

void harness_skip(harness_site site, const char *pattern, ...)
{
	va_list args;
	va_start(args, pattern);
	const std::string text = format(pattern, args);
	va_end(args);
	report(site, testing::TestPartResult::kSkip, text);
}

struct harness_note {
	testing::ScopedTrace trace;
};

harness_note *harness_note_begin(harness_site site, const char *pattern, ...)
{
	va_list args;
	va_start(args, pattern);
	const std::string text = format(pattern, args);
	va_end(args);
	return new harness_note{ testing::ScopedTrace(site.file, site.line, text) };
}

void harness_note_end(harness_note **note)
{
	delete *note;
}

bool harness_is_over(void)
{
	return testing::Test::HasFatalFailure() || testing::Test::IsSkipped();
}

bool harness_has_failed(void)
{
	return testing::Test::HasFailure();
}

static const char help[] =
	"Runs the tests that are linked into this program; all of them, in the order of their\n"
	"sources, unless an option says otherwise.\n"
	"\n"
	"  --gtest_list_tests        name them, and run none\n"
	"  --gtest_filter=A:B:-C     run SUITE.NAME that fits A or B, and not C; * and ? stand\n"
	"                            for anything\n"
	"  --gtest_repeat=N          run them N times\n"
	"  --gtest_shuffle           in another order, of --gtest_random_seed=N\n"
	"  --gtest_break_on_failure  stop in the debugger at the first failure\n"
	"\n"
	"Exit status: 0 all passed or were skipped, 1 some failed, 2 wrong usage.\n";

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return 0;
		}
	setenv("NPUSIM_NODE", print("test-%d", static_cast<int>(getpid())).c_str(), 0);
	testing::InitGoogleTest(&argc, argv);
	if (argc > 1) {
		fprintf(stderr, "harness: unknown argument %s; --help names the usual ones\n",
			argv[1]);
		return 2;
	}
	const int status = register_all();
	return status != 0 ? status : RUN_ALL_TESTS();
}
