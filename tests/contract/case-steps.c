/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries steps out: finds the verb, and owns what all verbs use. Also the check that a refusal
 * leaves a message that names the call.
 */
#include "case-steps.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char last_message[2048];

/* ---- words ---- */

const char *step_word(struct step *step, int index)
{
	for (int i = 1; i < step->text->argc; i++)
		if (strchr(step->text->argv[i], '=') == NULL && index-- == 0)
			return step->text->argv[i];
	return "0";
}

static uint64_t number_of(struct step *step, const char *text)
{
	uint64_t value;

	if (!case_number(text, &value)) {
		step->broken = true;
		snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			 "the step is wrong: '%s' has no value", text);
	}
	return value;
}

uint64_t step_number(struct step *step, int index)
{
	return number_of(step, step_word(step, index));
}

void *step_pointer(struct step *step, int index)
{
	return (void *)(uintptr_t)step_number(step, index);
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

	return text == NULL ? without : number_of(step, text);
}

void step_set(struct step *step, int index, uint64_t value)
{
	struct case_variable *variable = case_variable(step_word(step, index));

	if (variable != NULL)
		variable->number = value;
}

void step_publish(struct step *step, int index, uint64_t value, const void *bytes, size_t size)
{
	struct case_variable *variable = case_variable(step_word(step, index));

	if (variable == NULL)
		return;
	variable->number = value;
	memset(variable->blob, 0, sizeof(variable->blob));
	if (size > 0)
		memcpy(variable->blob, bytes,
		       size < sizeof(variable->blob) ? size : sizeof(variable->blob));
	step->answer->published = *variable;
}

void step_show(struct step *step, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(step->answer->value, sizeof(step->answer->value), format, args);
	va_end(args);
}

void step_show_same(struct step *step, uint64_t value)
{
	const char *name = step_option(step, "same-as", NULL);

	if (name != NULL)
		step_show(step, number_of(step, name) == value ? "same" : "other");
}

/* ---- values with names ---- */

static const char *const attr_names[] = {
	"ddr",          "hbm",
	"ddr-huge",     "ddr-normal",
	"hbm-huge",     "hbm-normal",
	"ddr-p2p-huge", "ddr-p2p-normal",
	"hbm-p2p-huge", "hbm-p2p-normal",
	"hbm-huge1g",   "hbm-p2p-huge1g",
	"mem-normal",   "mem-huge",
	"mem-huge1g",   "mem-p2p-normal",
	"mem-p2p-huge", "mem-p2p-huge1g",
};
static const char *const location_names[] = { "host", "device", "unregistered", "managed", "numa" };

const char *step_attr_name(int attr)
{
	return attr >= 0 && attr < 18 ? attr_names[attr] : "none";
}

const char *step_location_name(int type)
{
	return type >= 0 && type < 5 ? location_names[type] : "none";
}

int step_attr_of(const char *name)
{
	for (int i = 0; i < 18; i++)
		if (strcmp(name, attr_names[i]) == 0)
			return i;
	return atoi(name);
}

aclrtMemLocation step_location(struct step *step, const char *option)
{
	const char *text = step_option(step, option, "device:0"), *colon = strchr(text, ':');
	size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
	aclrtMemLocation location = { .id = colon == NULL ? 0
							  : (uint32_t)number_of(step, colon + 1) };

	for (int i = 0; i < 5; i++)
		if (strncmp(text, location_names[i], length) == 0 &&
		    location_names[i][length] == '\0') {
			location.type = (aclrtMemLocationType)i;
			return location;
		}
	location.type = (aclrtMemLocationType)atoi(text + strlen("type-"));
	return location;
}

aclrtPhysicalMemProp step_prop(struct step *step)
{
	return (aclrtPhysicalMemProp){
		.handleType = (aclrtMemHandleType)step_option_number(step, "handle-type", 0),
		.allocationType = (aclrtMemAllocationType)step_option_number(step, "allocation", 0),
		.memAttr = (aclrtMemAttr)step_attr_of(step_option(step, "as", "hbm-huge")),
		.location = step_location(step, "on"),
		.reserve = step_option_number(step, "reserve", 0),
	};
}

aclrtMemAccessDesc step_access(struct step *step)
{
	const char *access = step_option(step, "access", "rw");

	return (aclrtMemAccessDesc){
		.flags = strcmp(access, "rw") == 0  ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE
			 : strcmp(access, "r") == 0 ? ACL_RT_MEM_ACCESS_FLAGS_READ
						    : ACL_RT_MEM_ACCESS_FLAGS_NONE,
		.location = step_location(step, "to"),
	};
}

/* ---- calls ---- */

void *step_function(struct step *step, const char *name)
{
	step->function = name;
	return dlsym(step->library, name);
}

/* Any function with up to ten integers and pointers: "call NAME ARGUMENT...". */
static void run_call(struct step *step)
{
	static uint64_t out[8][64];
	static uint8_t buffer[65536];
	typedef aclError (*any_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
					 uint64_t, uint64_t, uint64_t, uint64_t);
	aclrtPhysicalMemProp prop = step_prop(step);
	aclrtMemAccessDesc desc = step_access(step);
	aclrtMemLocation location = desc.location;
	uint64_t a[10] = { 0 };
	any_function function = (any_function)step_function(step, step_word(step, 0));

	memset(out, 0, sizeof(out));
	for (int i = 0; i < 10 && step_word(step, i + 1)[0] != '\0'; i++) {
		const char *word = step_word(step, i + 1);

		if (word[0] == '&')
			a[i] = (uint64_t)(uintptr_t)&case_variable(word + 1)->number;
		else if (strncmp(word, "out", 3) == 0 &&
			 (word[3] == '\0' || isdigit((unsigned char)word[3])))
			a[i] = (uint64_t)(uintptr_t)out[word[3] == '\0' ? 0 : (word[3] - '0') % 8];
		else if (strcmp(word, "buffer") == 0)
			a[i] = (uint64_t)(uintptr_t)buffer;
		else if (strcmp(word, "prop") == 0)
			a[i] = (uint64_t)(uintptr_t)&prop;
		else if (strcmp(word, "desc") == 0)
			a[i] = (uint64_t)(uintptr_t)&desc;
		else if (strcmp(word, "location") == 0)
			a[i] = (uint64_t)(uintptr_t)&location;
		else
			a[i] = number_of(step, word);
	}
	step->answer->code = function == NULL ? CASE_MISSING
					      : function(a[0], a[1], a[2], a[3], a[4], a[5], a[6],
							 a[7], a[8], a[9]);
}

/* "let NAME NUMBER" */
static void run_let(struct step *step)
{
	step_set(step, 0, step_number(step, 1));
}

/* "says WORDS": the message of the last failure has these words in it. */
static void run_says(struct step *step)
{
	const char *words = strstr(step->text->text, "says ");
	char wanted[CASE_TEXT_MAX];

	snprintf(wanted, sizeof(wanted), "%s", words == NULL ? "" : words + 5);
	wanted[strcspn(wanted, "|")] = '\0';
	for (size_t n = strlen(wanted); n > 0 && wanted[n - 1] == ' '; n--)
		wanted[n - 1] = '\0';
	if (strstr(last_message, wanted) == NULL) {
		step->answer->code = CASE_MISSING;
		snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			 "the last message was: %.400s", last_message);
	}
}

static const struct verb own_verbs[] = {
	{ "call", run_call }, { "let", run_let }, { "says", run_says }, { NULL, NULL }
};

/* ---- one step ---- */

static const struct verb *find_verb(const char *name)
{
	static const struct verb *const tables[] = { own_verbs, memory_verbs, transfer_verbs };

	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct verb *verb = tables[t]; verb->name != NULL; verb++)
			if (strcmp(verb->name, name) == 0)
				return verb;
	return NULL;
}

bool case_verb_known(const char *verb)
{
	return find_verb(verb) != NULL;
}

/* A refusal explains itself: a message that names the call. */
static void check_message(struct step *step)
{
	const char *(*recent)(void) =
		(const char *(*)(void))dlsym(step->library, "aclGetRecentErrMsg");
	const char *message = recent == NULL ? NULL : recent();

	snprintf(last_message, sizeof(last_message), "%s", message == NULL ? "" : message);
	if (step->broken || step->function == NULL)
		return;
	step->answer->unexplained = strstr(last_message, step->function) == NULL;
	if (step->answer->unexplained)
		snprintf(step->answer->complaint, sizeof(step->answer->complaint),
			 last_message[0] == '\0' ? "%s left no message%s"
						 : "the message does not name %s: %.300s",
			 step->function, last_message);
	else
		snprintf(step->answer->complaint, sizeof(step->answer->complaint), "%.500s",
			 last_message);
}

void case_step_run(void *library, const struct case_step *text, struct case_answer *answer)
{
	struct step step = { .library = library, .text = text, .answer = answer };

	find_verb(text->argv[0])->run(&step);
	if (step.broken)
		answer->code = CASE_MISSING;
	else if (answer->code != 0 && answer->code != CASE_MISSING)
		check_message(&step);
}
