/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the steps of a case in the process that runs it: evaluates words, keeps variables, and
 * calls the library through the table of the dialect. It also checks that a refusal leaves a
 * message that names the call.
 */
#include "case-step.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#define CALL_ARGUMENTS 10
#define VARIABLES_MAX  96

static struct case_variable variables[VARIABLES_MAX];
static int variable_count;
static char last_message[2048];

/* ---- words and variables ---- */

static struct case_variable *find_variable(const char *name)
{
	for (int i = 0; i < variable_count; i++)
		if (strcmp(variables[i].name, name) == 0)
			return &variables[i];
	return NULL;
}

struct case_variable *case_variable(const char *name)
{
	struct case_variable *variable = find_variable(name);

	if (variable != NULL)
		return variable;
	g_assert(variable_count < VARIABLES_MAX);
	variable = &variables[variable_count++];
	g_strlcpy(variable->name, name, sizeof(variable->name));
	return variable;
}

static gboolean term(const char *word, uint64_t *out)
{
	static const char units[] = "KMGT";
	const struct case_variable *variable = find_variable(word);
	char *end;
	const char *unit;

	if (g_ascii_isdigit(word[0])) {
		*out = g_ascii_strtoull(word, &end, 0);
		unit = *end == '\0' ? NULL : strchr(units, *end);
		if (unit != NULL)
			*out <<= 10 * (unit - units + 1);
		return *end == '\0' || (unit != NULL && end[1] == '\0');
	}
	*out = variable == NULL ? 0 : variable->number;
	return variable != NULL || strcmp(word, "null") == 0;
}

uint64_t step_value(struct step *step, const char *text)
{
	uint64_t sum = 0, value;
	gboolean minus = FALSE;

	for (const char *at = text; *at != '\0'; at += *at != '\0') {
		size_t length = strcspn(at, "+-");
		g_autofree char *word = g_strndup(at, length);

		if (length > 0 && !term(word, &value)) {
			step->broken = TRUE;
			g_snprintf(step->answer->complaint, sizeof(step->answer->complaint),
				   "the step is wrong: '%s' has no value", text);
			return 0;
		}
		if (length > 0)
			sum = minus ? sum - value : sum + value;
		at += length;
		minus = *at == '-';
	}
	return sum;
}

const char *step_word(struct step *step, int index)
{
	for (int i = 1; i < step->text->argc; i++)
		if (strchr(step->text->argv[i], '=') == NULL && --index == 0)
			return step->text->argv[i];
	return "0";
}

uint64_t step_number(struct step *step, int index)
{
	return step_value(step, step_word(step, index));
}

const char *step_option(struct step *step, const char *name, const char *without)
{
	size_t length = strlen(name);

	for (int i = 1; i < step->text->argc; i++)
		if (strncmp(step->text->argv[i], name, length) == 0 &&
		    step->text->argv[i][length] == '=')
			return step->text->argv[i] + length + 1;
	return without;
}

uint64_t step_option_number(struct step *step, const char *name, uint64_t without)
{
	const char *text = step_option(step, name, NULL);

	return text == NULL ? without : step_value(step, text);
}

int step_place(const char *words, const char *word)
{
	g_auto(GStrv) list = g_strsplit(words, " ", -1);

	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(list[i], word) == 0)
			return i;
	return -1;
}

const char *step_word_at(const char *words, unsigned place, const char *otherwise)
{
	static char word[32];
	g_auto(GStrv) list = g_strsplit(words, " ", -1);

	g_strlcpy(word, place < g_strv_length(list) ? list[place] : otherwise, sizeof(word));
	return word;
}

int step_choice(struct step *step, const char *name, const char *words, int without)
{
	const char *text = step_option(step, name, NULL);
	int place = text != NULL ? step_place(words, text) : -1;

	return text == NULL ? without : place >= 0 ? place : (int)step_value(step, text);
}

void step_set(struct step *step, int index, uint64_t value)
{
	case_variable(step_word(step, index))->number = value;
}

void step_publish(struct step *step, int index, uint64_t value, const void *bytes, size_t size)
{
	struct case_variable *variable = case_variable(step_word(step, index));

	variable->number = value;
	memset(variable->blob, 0, sizeof(variable->blob));
	if (size > 0)
		memcpy(variable->blob, bytes, MIN(size, sizeof(variable->blob)));
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

/* ---- calls ---- */

/* The memory of "out" and "outN"; NULL for another word. */
static void *out_of(struct step *step, const char *word)
{
	if (strncmp(word, "out", 3) != 0 || (word[3] != '\0' && !g_ascii_isdigit(word[3])))
		return NULL;
	return step->out[word[3] == '\0' ? 0 : (word[3] - '0') % STEP_OUTS];
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
	if (out_of(step, word) != NULL)
		return (uintptr_t)out_of(step, word);
	if (g_str_has_prefix(word, "blob"))
		return (uintptr_t)case_variable(step_word(step, word[4] - '0'))->blob;
	if (strcmp(word, "host") == 0)
		return (uintptr_t)step->host;
	if (strcmp(word, "size") == 0)
		return step->size;
	if (step->dialect->argument(step, word, &value))
		return value;
	return word[0] == '$' ? step_number(step, word[1] - '0') : step_value(step, word);
}

static int call(struct step *step, const char *name, char *const *words)
{
	typedef int any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				 uint64_t, uint64_t, uint64_t, uint64_t);
	uint64_t a[CALL_ARGUMENTS] = { 0 };
	any_function *function;

	step->function = name;
	*(void **)&function = dlsym(step->library, name);
	for (int i = 0; i < CALL_ARGUMENTS && words[i] != NULL; i++)
		a[i] = argument(step, words[i]);
	step->answer->code = function == NULL ? CASE_MISSING
					      : function(a[0], a[1], a[2], a[3], a[4], a[5], a[6],
							 a[7], a[8], a[9]);
	return step->answer->code;
}

int step_call(struct step *step, const char *function, const char *arguments)
{
	g_auto(GStrv) words = g_strsplit(arguments, " ", -1);

	memset(step->out, 0xee, sizeof(step->out)); /* what a call leaves as it was is seen */
	return call(step, function, words);
}

/* "call NAME ARGUMENT...": any function. */
static void run_call(struct step *step)
{
	char *words[CALL_ARGUMENTS + 1] = { NULL };
	int count = 0;

	for (int i = 2; i < step->text->argc && count < CALL_ARGUMENTS; i++)
		if (strchr(step->text->argv[i], '=') == NULL)
			words[count++] = step->text->argv[i];
	call(step, step_word(step, 1), words);
}

/* "let NAME NUMBER" */
static void run_let(struct step *step)
{
	step_set(step, 1, step_number(step, 2));
}

/* "says WORDS": the message of the last failure has these words in it. */
static void run_says(struct step *step)
{
	const char *words = strstr(step->text->text, "says ");
	g_autofree char *wanted = g_strdup(words == NULL ? "" : words + 5);

	wanted[strcspn(wanted, "|")] = '\0';
	if (strstr(last_message, g_strchomp(wanted)) == NULL) {
		step->answer->code = CASE_MISSING;
		g_snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			   "the last message was: %.400s", last_message);
	}
}

/* ---- a step ---- */

static const struct case_verb *find_verb(const struct case_dialect *dialect, const char *name)
{
	static const struct case_verb own[] = { { "call", NULL, NULL, run_call },
						{ "let", NULL, NULL, run_let },
						{ "says", NULL, NULL, run_says },
						{ NULL, NULL, NULL, NULL } };
	const struct case_verb *verb = own;

	while (verb->name != NULL && strcmp(verb->name, name) != 0)
		verb++;
	if (verb->name == NULL)
		for (verb = dialect->verbs; verb->name != NULL && strcmp(verb->name, name) != 0;)
			verb++;
	return verb->name != NULL ? verb : NULL;
}

gboolean case_verb_known(const struct case_dialect *dialect, const char *name)
{
	return find_verb(dialect, name) != NULL;
}

/* A refusal explains itself: a message that names the call. */
static void check_message(struct step *step)
{
	const char *(*recent)(void);
	const char *message;
	struct case_answer *answer = step->answer;

	if (step->dialect->message == NULL)
		return;
	*(void **)&recent = dlsym(step->library, step->dialect->message);
	message = recent == NULL ? NULL : recent();
	g_strlcpy(last_message, message == NULL ? "" : message, sizeof(last_message));
	if (step->function == NULL)
		return;
	answer->unexplained = strstr(last_message, step->function) == NULL;
	if (answer->unexplained && last_message[0] == '\0')
		g_snprintf(answer->complaint, sizeof(answer->complaint), "%s left no message",
			   step->function);
	else if (answer->unexplained)
		g_snprintf(answer->complaint, sizeof(answer->complaint),
			   "the message does not name %s: %.300s", step->function, last_message);
	else
		g_snprintf(answer->complaint, sizeof(answer->complaint), "%.500s", last_message);
}

void case_step_run(const struct case_dialect *dialect, void *library, const struct case_step *text,
		   struct case_answer *answer)
{
	struct step step = {
		.dialect = dialect, .library = library, .text = text, .answer = answer
	};
	const struct case_verb *verb = find_verb(dialect, text->argv[0]);

	if (verb->function != NULL)
		step_call(&step, verb->function, verb->arguments);
	if (verb->then != NULL && answer->code == 0)
		verb->then(&step);
	if (step.result > 0 && answer->code == 0)
		step_set(&step, step.result, step.out[STEP_RESULT][0]);
	if (step.broken)
		answer->code = CASE_MISSING;
	else if (answer->code != 0 && answer->code != CASE_MISSING)
		check_message(&step);
	g_free(step.host);
}
