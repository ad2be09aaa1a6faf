/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables: one table of all, their defaults and their syntax. Whoever reads one
 * gives it its meaning; what only a reader can judge (a path, the name of a SoC, the calls of
 * NPUSIM_FAULT) is checked there.
 */
#include "base/base.h"
#include "base/clock.h"

#include <ctype.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>
#include <unistd.h>

#define PREFIX         "NPUSIM_"
#define PATIENCE_MAX_S 1e6

extern char **environ;

/* A valid value matches `pattern`, or `check` says so. Where there is neither, it is one of
 * info.values if `chosen`, a number from `least` to `most` if `wanted` says so, else any text. */
struct var_row {
	struct npu_var_info info;
	bool chosen;
	const char *pattern; /* POSIX extended */
	bool (*check)(const char *value);
	long least, most;
	const char *wanted; /* what is valid, in words */
};

static bool is_number(const char *value, long least, long most)
{
	char *end;
	long number = strtol(value, &end, 10);

	return isdigit((unsigned char)*value) && *end == '\0' && number >= least && number <= most;
}

static bool matches(const char *value, const char *pattern)
{
	regex_t regex;
	bool good;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return true; /* no memory */
	good = regexec(&regex, value, 0, NULL, 0) == 0;
	regfree(&regex);
	return good;
}

static bool is_size(const char *value)
{
	uint64_t bytes;

	return npu_parse_size(value, &bytes) && bytes > 0;
}

bool npu_parse_window(const char *text, uint64_t *base, uint64_t *bytes)
{
	char *end;

	*base = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) &&
	       (*end == '\0' || (*end == '+' && npu_parse_size(end + 1, bytes)));
}

static bool is_window(const char *value)
{
	uint64_t base, bytes = 0;

	return strcmp(value, "auto") == 0 || npu_parse_window(value, &base, &bytes);
}

static bool is_patience(const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	return strcmp(value, "off") == 0 || (isdigit((unsigned char)*value) && *end == '\0' &&
					     seconds > 0 && seconds <= PATIENCE_MAX_S);
}

static const char name_wanted[] = "1 to 63 letters, digits, '.', '_' or '-', not starting with '.'";

/* Without an expression: to compile one with a count costs most of a process's start. */
static bool is_name(const char *value)
{
	size_t length = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-");

	return value[0] != '.' && value[length] == '\0' && length >= 1 && length <= 63;
}

#define CHOSEN                    .chosen = true
#define CHECKED(f, words)         .check = f, .wanted = words
#define MATCHING(regex, words)    .pattern = regex, .wanted = words
#define NUMBER(first, last, word) .least = first, .most = last, .wanted = word
#define ANY                       .check = NULL
#define NAME                      CHECKED(is_name, name_wanted)
#define SIZE                      CHECKED(is_size, "a size above 0, such as 64G or 512M")
static const struct var_row vars[NPU_VAR_COUNT] = {
#define NPU_VAR(var, values, initial, reader, syntax, help) \
	{ { PREFIX #var, values, initial, reader, help }, syntax },
#include "base/var-list.h"
};

const struct npu_var_info *npu_var_info(enum npu_var var)
{
	return (unsigned)var < NPU_VAR_COUNT ? &vars[var].info : NULL;
}

const char *npu_var_get(enum npu_var var, bool *from_env)
{
	const char *value = secure_getenv(vars[var].info.name);
	bool found = value != NULL && value[0] != '\0';

	if (from_env != NULL)
		*from_env = found;
	return found ? value : vars[var].info.initial;
}

#define WORD_MAX 64

static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t length_a = strlen(a), length_b = strlen(b);

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= length_b; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= length_a; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= length_b; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
				    tolower((unsigned char)b[j - 1]);
			unsigned here = MIN(diagonal + !same, MIN(row[j], row[j - 1]) + 1);

			diagonal = row[j];
			row[j] = here;
		}
	}
	return row[length_b];
}

const char *npu_nearest(const char *word, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t length = strlen(word);
	unsigned best_distance = (unsigned)MIN(length / 3 + 1, WORD_MAX);

	for (size_t i = 0; i < count; i++) {
		const char *dot = strchr(word, '.') != NULL ? NULL : strchr(names[i], '.');
		const char *name = dot != NULL ? dot + 1 : names[i];
		unsigned distance = edit_distance(word, name);

		if (2 * length > strlen(name) && strncasecmp(name, word, length) == 0)
			distance = MIN(distance, MIN(length / 3, 3)); /* lacks the rest alone */
		if (distance < best_distance) {
			best = names[i];
			best_distance = distance;
		}
	}
	return best;
}

/* A profile's file, which may be given in place of its name, is no misspelling of it. */
const char *npu_meant(const char *word, const char *const *names, size_t count, const char *mark)
{
	const char *dot = strrchr(word, '.');
	bool is_file = strchr(word, '/') != NULL || (dot != NULL && strcmp(dot, ".ini") == 0);
	const char *nearest = is_file ? NULL : npu_nearest(word, names, count);

	return nearest != NULL ? npu_text("; is %s%s meant?", mark, nearest) : "";
}

#define CHOICES_MAX 4

/* The values of a row that is chosen from some, at the most CHOICES_MAX. */
static size_t split_choices(const struct var_row *row, char text[64], const char **out)
{
	size_t count = 0;
	char *place = NULL;

	snprintf(text, 64, "%s", row->chosen ? row->info.values : "");
	for (char *one = strtok_r(text, ", ", &place); one != NULL;
	     one = strtok_r(NULL, ", ", &place))
		out[count++] = one;
	return count;
}

static const char *what_is_wrong(const struct var_row *row, const char *value,
				 const char *const *choices, size_t count)
{
	if (row->pattern != NULL)
		return matches(value, row->pattern) ? NULL : row->wanted;
	if (row->check != NULL)
		return row->check(value) ? NULL : row->wanted;
	if (row->wanted != NULL)
		return is_number(value, row->least, row->most) ? NULL : row->wanted;
	for (size_t i = 0; i < count; i++)
		if (strcmp(choices[i], value) == 0)
			return NULL;
	return row->chosen ? row->info.values : NULL;
}

static void warn_unknown(const char *entry)
{
	const char *names[NPU_VAR_COUNT];
	char name[WORD_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
	for (int i = 0; i < NPU_VAR_COUNT; i++) {
		if (strcmp(name, vars[i].info.name) == 0)
			return;
		/* Without the prefix, which would make all of them near. */
		names[i] = vars[i].info.name + strlen(PREFIX);
	}
	npu_log(NPU_LOG_WARN,
		"environment: %s is no variable of npusim%s; `npusim info` lists them", name,
		npu_meant(name + strlen(PREFIX), names, NPU_VAR_COUNT, PREFIX));
}

/* What a process starts belongs to its run. When the library is loaded, which is mostly before
 * other threads can read the environment. */
__attribute__((constructor)) static void name_run(void)
{
	bool traced, named;
	char name[64];

	npu_var_get(NPU_VAR_TRACE, &traced);
	npu_var_get(NPU_VAR_RUN, &named);
	if (!traced || named)
		return;
	snprintf(name, sizeof(name), "%d-%llx", (int)getpid(), (unsigned long long)clock_now_ns());
	setenv(vars[NPU_VAR_RUN].info.name, name, 1);
}

bool npu_var_check_all(char **error)
{
	for (int i = 0; i < NPU_VAR_COUNT; i++) {
		bool from_env;
		const char *value = npu_var_get((enum npu_var)i, &from_env);
		const char *choices[CHOICES_MAX], *wanted;
		char text[64];
		size_t count = split_choices(&vars[i], text, choices);

		wanted = from_env ? what_is_wrong(&vars[i], value, choices, count) : NULL;
		if (wanted == NULL)
			continue;
		if (asprintf(error, "environment: %s=%s is not valid: it takes %s%s (default: %s)",
			     vars[i].info.name, value, wanted, npu_meant(value, choices, count, ""),
			     vars[i].info.initial[0] != '\0' ? vars[i].info.initial : "none") < 0)
			*error = NULL;
		return false;
	}
	return true;
}

void npu_var_warn_unknown(void)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&warned))
		return;
	if (secure_getenv("PATH") == NULL && getenv("PATH") != NULL)
		return; /* a set-uid program: nothing is read, nothing is said */
	for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
		if (strncmp(*entry, PREFIX, strlen(PREFIX)) == 0)
			warn_unknown(*entry);
}
