/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the steps of a case in the process that runs it: evaluates words, keeps variables, and
 * calls the library through the table of the dialect. It also checks that a refusal leaves a
 * message that names the call.
 */
#include "case.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CALL_ARGUMENTS 10

static char last_message[sizeof(((struct case_answer *)NULL)->complaint)];
static uint64_t marked_free;
static GData *variables; /* struct case_variable, by name */

struct case_variable *case_variable(const char *name)
{
	struct case_variable *variable = g_datalist_get_data(&variables, name);

	if (variable == NULL) {
		variable = g_new0(struct case_variable, 1);
		g_strlcpy(variable->name, name, sizeof(variable->name));
		g_datalist_set_data(&variables, name, variable);
	}
	return variable;
}

gboolean case_number(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	gboolean known = TRUE, minus = FALSE;

	*out = 0;
	for (const char *at = text; *at != '\0'; at += *at != '\0') {
		size_t length = strcspn(at, "+-");
		g_autofree char *word = g_strndup(at, length);
		const struct case_variable *variable = g_datalist_get_data(&variables, word);
		uint64_t value = variable == NULL ? 0 : variable->number;

		if (g_ascii_isdigit(word[0])) {
			char *end;
			value = g_ascii_strtoull(word, &end, 0);
			const char *unit = *end == '\0' ? NULL : strchr(units, *end);
			if (unit != NULL)
				value <<= 10 * (unit - units + 1);
			known &= *end == '\0' || (unit != NULL && end[1] == '\0');
		} else {
			known &= variable != NULL || *word == '\0' || strcmp(word, "null") == 0;
		}
		*out += minus ? -value : value;
		at += length;
		minus = *at == '-';
	}
	return known;
}

uint64_t step_value(struct step *step, const char *text)
{
	uint64_t value;

	if (case_number(text, &value))
		return value;
	step->broken = TRUE;
	g_snprintf(step->answer->complaint, sizeof(step->answer->complaint),
		   "the step is wrong: '%s' has no value", text);
	return 0;
}

/* "0" beyond the last. */
static const char *step_word(struct step *step, int index)
{
	for (char **word = step->words + 1; *word != NULL; word++)
		if (strchr(*word, '=') == NULL && --index == 0)
			return *word;
	return "0";
}

uint64_t step_number(struct step *step, int index)
{
	return step_value(step, step_word(step, index));
}

const char *step_option(struct step *step, const char *name, const char *without)
{
	size_t length = strlen(name);

	for (char **word = step->words + 1; *word != NULL; word++)
		if (strncmp(*word, name, length) == 0 && (*word)[length] == '=')
			return *word + length + 1;
	return without;
}

uint64_t step_option_number(struct step *step, const char *name, uint64_t without)
{
	const char *text = step_option(step, name, NULL);

	return text == NULL ? without : step_value(step, text);
}

int step_choice(struct step *step, const char *text, const char *words, int without)
{
	g_auto(GStrv) list = g_strsplit(words, " ", -1);

	if (text == NULL)
		return without;
	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(list[i], text) == 0)
			return i;
	return (int)step_value(step, text);
}

const char *step_word_at(const char *words, unsigned place, const char *otherwise)
{
	static char word[32];
	g_auto(GStrv) list = g_strsplit(words, " ", -1);

	g_strlcpy(word, place < g_strv_length(list) ? list[place] : otherwise, sizeof(word));
	return word;
}

void step_set(struct step *step, int index, uint64_t value)
{
	case_variable(step_word(step, index))->number = value;
}

void step_publish(struct step *step)
{
	struct case_variable *variable = case_variable(step_word(step, 1));

	variable->number = step->out[0][0];
	memcpy(variable->blob, step->out[0], sizeof(variable->blob));
	step->answer->published = *variable;
}

void step_show(struct step *step, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_vsnprintf(step->answer->value, sizeof(step->answer->value), format, args);
	va_end(args);
}

const char *step_size_text(int64_t bytes)
{
	static const char units[] = "GMK";
	static char text[32];
	uint64_t size = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
	int i = 0, shift = 30;

	for (; i < 3 && (size == 0 || (size & ((UINT64_C(1) << shift) - 1)) != 0); i++)
		shift -= 10;
	g_snprintf(text, sizeof(text), "%s%" G_GUINT64_FORMAT "%.1s", bytes < 0 ? "-" : "",
		   size >> shift, &units[i]);
	return text;
}

void step_show_number(struct step *step)
{
	step_show(step, "%d", (int)step->out[0][0]);
}

void step_show_size(struct step *step)
{
	step_show(step, "%s", step_size_text((int64_t)step->out[0][0]));
}

void step_show_access(struct step *step)
{
	step_show(step, "%s",
		  step_word_at("none r unknown rw", (unsigned)MIN(step->out[0][0], 4), "unknown"));
}

void step_show_range(struct step *step)
{
	g_autofree char *offset =
		g_strdup(step_size_text((int64_t)(step_number(step, 1) - step->out[0][0])));

	step_show(step, "%s %s", offset, step_size_text((int64_t)step->out[1][0]));
}

void step_show_bytes(struct step *step)
{
	const uint8_t *host = step->host, last = host[step->size - 1];
	uint64_t i = memcmp(host, host + 1, step->size - 1) == 0 ? step->size : 1;

	while (i < step->size && (host[i] == host[0] || host[i] == last))
		i++;
	if (step->size == 1)
		step_show(step, "%u", host[0]);
	else
		step_show(step, "%u %u%s", host[0], last, i < step->size ? " mixed" : "");
}

void step_show_same(struct step *step)
{
	const char *name = step_option(step, "same-as", NULL);

	if (name != NULL)
		step_show(step,
			  step_value(step, name) == step->out[STEP_RESULT][0] ? "same" : "other");
}

void step_mark(struct step *step)
{
	marked_free = step->out[0][0];
}

void step_show_used(struct step *step)
{
	step_show(step, "%s", step_size_text((int64_t)(marked_free - step->out[0][0])));
}

static uint64_t argument(struct step *step, const char *word)
{
	const char *equals = strchr(word, '=');
	uint64_t value;

	if (equals != NULL) {
		g_autofree char *name = g_strndup(word, (gsize)(equals - word));
		const char *given = step_option(step, name, NULL);

		return given != NULL ? step_value(step, given) : argument(step, equals + 1);
	}
	if (word[0] == '>') {
		step->result = word[1] - '0';
		return (uintptr_t)step->out[STEP_RESULT];
	}
	if (word[0] == '&')
		return (uintptr_t)&case_variable(word + 1)->number;
	if (g_str_has_prefix(word, "out") && (word[3] == '\0' || g_ascii_isdigit(word[3])))
		return (uintptr_t)step->out[word[3] == '\0' ? 0 : (word[3] - '0') % STEP_OUTS];
	if (g_str_has_prefix(word, "blob"))
		return (uintptr_t)case_variable(step_word(step, word[4] - '0'))->blob;
	if (strcmp(word, "read") == 0) {
		step->size = MAX(step_number(step, 2), 1);
		step->host = g_malloc0(step->size);
		return (uintptr_t)step->host;
	}
	if (strcmp(word, "written") == 0) {
		step->size = step_number(step, 3);
		step->host = g_malloc(MAX(step->size, 1));
		return (uintptr_t)memset(step->host, (int)step_number(step, 2), step->size);
	}
	if (strcmp(word, "size") == 0)
		return step->size;
	if (strcmp(word, "bound") == 0)
		return (uint64_t)step_choice(step, step_word(step, 1), "minimum recommended", 0);
	if (step->dialect->argument(step, word, &value))
		return value;
	return word[0] == '$' ? step_number(step, word[1] - '0') : step_value(step, word);
}

static double now_ns(const struct step *step)
{
	struct timespec now;

	if (step->clock_ps != NULL)
		return (double)step->clock_ps() / 1e3;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int call(struct step *step, const char *name, const char *const *words)
{
	typedef int any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				 uint64_t, uint64_t, uint64_t, uint64_t);
	uint64_t a[CALL_ARGUMENTS] = { 0 };
	any_function *function;

	step->function = name;
	*(void **)&function = dlsym(step->library, name);
	for (int i = 0; i < CALL_ARGUMENTS && words[i] != NULL && *words[i] != ';'; i++)
		a[i] = argument(step, words[i]);
	if (function == NULL) {
		g_snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			   "the library has no %s", name);
		return step->answer->code = CASE_MISSING;
	}
	double start_ns = now_ns(step);
	step->answer->code = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
	step->answer->call_ns = now_ns(step) - start_ns;
	return step->answer->code;
}

int step_call(struct step *step, const char *function, const char *arguments)
{
	g_auto(GStrv) words = g_strsplit(arguments, " ", -1);

	memset(step->out, 0xee, sizeof(step->out)); /* what a call leaves as it was is seen */
	return call(step, function, (const char *const *)words);
}

/* "call NAME ARGUMENT...": any function. */
static void run_call(struct step *step)
{
	const char *words[CALL_ARGUMENTS];

	for (int i = 0; i < CALL_ARGUMENTS; i++)
		words[i] = step_word(step, i + 2);
	call(step, step_word(step, 1), words);
}

/* "all STEP ; STEP": in a row, until one fails, and timed as one call. */
static void run_all(struct step *step)
{
	double start_ns = now_ns(step);
	char **end, *semicolon;

	for (char **words = step->words + 1; *words != NULL && step->answer->code == 0;
	     words = end + (semicolon != NULL)) {
		for (end = words; *end != NULL && strcmp(*end, ";") != 0;)
			end++;
		semicolon = *end;
		*end = NULL;
		case_step_run(step->dialect, step->library, words, step->answer);
		*end = semicolon;
	}
	step->answer->call_ns = now_ns(step) - start_ns;
}

/* "let NAME NUMBER" */
static void run_let(struct step *step)
{
	step_set(step, 1, step_number(step, 2));
}

/* "says WORDS": the message of the last failure has these words in it. */
static void run_says(struct step *step)
{
	g_autofree char *wanted = g_strjoinv(" ", step->words + 1);

	if (strstr(last_message, wanted) == NULL) {
		step->answer->code = CASE_MISSING;
		g_snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			   "the last message was: %.400s", last_message);
	}
}

static const struct case_verb *find_verb(const struct case_dialect *dialect, const char *name)
{
	static const struct case_verb own[] = { { "all", NULL, NULL, run_all },
						{ "call", NULL, NULL, run_call },
						{ "let", NULL, "; $1 $2", run_let },
						{ "says", NULL, NULL, run_says },
						{ NULL, NULL, NULL, NULL } };
	const struct case_verb *const tables[] = { own, dialect->verbs };

	for (gsize i = 0; name != NULL && i < G_N_ELEMENTS(tables); i++)
		for (const struct case_verb *verb = tables[i]; verb->name != NULL; verb++)
			if (strcmp(verb->name, name) == 0)
				return verb;
	return NULL;
}

char *case_step_wrong(const struct case_dialect *dialect, char **words)
{
	const struct case_verb *verb = find_verb(dialect, words[0]);
	g_autoptr(GString) options = g_string_new(NULL); /* " at= flags=" */
	const char *surplus = NULL;
	int least = 0, most = 0, count = 0;

	if (verb == NULL)
		return g_strdup_printf("'%s' is no step", words[0] != NULL ? words[0] : "");
	if (verb->arguments == NULL)
		return NULL;
	g_auto(GStrv) list = g_strsplit(verb->arguments, " ", -1);
	for (char **word = list; *word != NULL; word++) {
		const char *equals = strchr(*word, '='), *of = equals != NULL ? equals + 1 : *word;
		int index = 0;

		sscanf(of, "%*[$>?blo]%d", &index); /* "$1", "blob1" */
		if (equals != NULL)
			g_string_append_printf(options, " %.*s", (int)(of - *word), *word);
		most = MAX(most, index);
		if (*of != '?')
			least = MAX(least, index);
	}
	for (char **word = words + 1; *word != NULL; word++) {
		int length = (int)strcspn(*word, "=");
		g_autofree char *option = g_strdup_printf(" %.*s=", length, *word);
		gboolean fits = (*word)[length] != '=' ? ++count <= most
						       : strstr(options->str, option) != NULL;

		if (strcmp(option, " count=") == 0) /* those there are */
			fits &= g_regex_match_simple("=[012]$", *word, 0, 0);
		if (!fits)
			surplus = *word;
	}
	if (surplus == NULL && count >= least)
		return NULL;
	return g_strdup_printf("'%s' is too %s: '%s' takes %d word%s%s%s", surplus ?: verb->name,
			       surplus ? "much" : "little", verb->name, most, most == 1 ? "" : "s",
			       *options->str ? ", and" : "", options->str);
}

void case_step_run(const struct case_dialect *dialect, void *library, char **words,
		   struct case_answer *answer)
{
	struct step step = {
		.dialect = dialect, .library = library, .words = words, .answer = answer
	};
	const struct case_verb *verb = find_verb(dialect, words[0]);

	if (dialect->clock != NULL)
		*(void **)&step.clock_ps = dlsym(library, dialect->clock);
	if (verb->function != NULL)
		step_call(&step, verb->function, verb->arguments);
	if (verb->then != NULL && answer->code == 0)
		verb->then(&step);
	if (step.result > 0 && answer->code == 0)
		step_set(&step, step.result, step.out[STEP_RESULT][0]);
	if (step.broken)
		answer->code = CASE_MISSING;
	g_free(step.host);
	if (step.broken || answer->code == 0 || answer->code == CASE_MISSING ||
	    dialect->message == NULL || step.function == NULL)
		return;
	/* a refusal explains itself: a message that names the call, and the driver's code */
	int (*cause)(void) =
		(int (*)(void))(dialect->cause != NULL ? dlsym(library, dialect->cause) : NULL);
	const char *(*recent)(void) = (const char *(*)(void))dlsym(library, dialect->message);
	if (cause != NULL)
		answer->cause = cause();
	const char *message = recent == NULL ? NULL : recent();
	g_strlcpy(last_message, message == NULL ? "" : message, sizeof(last_message));
	g_strlcpy(answer->complaint, last_message, sizeof(answer->complaint));
	answer->unexplained = strstr(last_message, step.function) == NULL;
	/* CANN's messages have codes, "Invalid_Argument(EE1003): ..." */
	const char *code = strstr(last_message, "(E");
	while (code != NULL && (code[2] == '\0' || !g_ascii_isdigit(code[3])))
		code = strstr(code + 1, "(E");
	if (code != NULL)
		g_strlcpy(answer->value, code + 1, MIN(strcspn(code, ")"), 16));
}
