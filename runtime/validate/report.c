/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: to the log as text, to NPUSIM_VALIDATE_FILE as a line of JSON each.
 */
#include "validate/report.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <json-glib/json-glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MAX 100 /* reports in full */

static const struct {
	const char *id, *finds, *right;
} rules[] = {
#define VALIDATE_RULE(rule, id, finds, why, right) { id, finds, right },
#include "validate/rules.h"
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool off[VALIDATE_RULE_COUNT];
static unsigned count[VALIDATE_RULE_COUNT]; /* with equal ones */
static unsigned shown;
static GHashTable *seen; /* text that equal reports share -> nothing */
static int file = -1;

/* Reports of the thread that are to be written. */
struct waiting {
	struct report report;
	char *sentence;
	bool first; /* of its rule */
};
static __thread GQueue waiting;

/* ---- settings ---- */

/* "+race,-leak", "race": the first word without '-' turns all others off. */
static bool read_rules(const char *text, char **error)
{
	char **words = g_strsplit_set(text, ", ", -1);
	bool good = true;

	for (unsigned i = 0; words[i] != NULL && good; i++) {
		const char *word = words[i];
		bool leave_out = word[0] == '-';
		unsigned rule = 0;

		if (word[0] == '\0')
			continue;
		if (word[0] == '-' || word[0] == '+')
			word++;
		else if (i == 0)
			memset(off, true, sizeof(off));
		while (rule < VALIDATE_RULE_COUNT && strcmp(rules[rule].id, word) != 0)
			rule++;
		good = rule < VALIDATE_RULE_COUNT;
		if (good)
			off[rule] = leave_out;
		else
			npu_text_add(error,
				     "NPUSIM_VALIDATE_RULES=%s: there is no rule '%s'; `npusim "
				     "explain` lists them",
				     text, word);
	}
	g_strfreev(words);
	return good;
}

static bool open_file(const char *path, char **error)
{
	char **parts = g_strsplit(path, "%p", -1);
	char *pid = g_strdup_printf("%d", (int)getpid()), *name = g_strjoinv(pid, parts);

	file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0)
		npu_text_add(error, "NPUSIM_VALIDATE_FILE=%s cannot be written: %s", name,
			     strerror(errno));
	g_strfreev(parts);
	g_free(pid);
	g_free(name);
	return file >= 0;
}

bool report_open(char **error)
{
	bool set;
	const char *path = npu_var_get(NPU_VAR_VALIDATE_FILE, &set);

	seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return read_rules(npu_var_get(NPU_VAR_VALIDATE_RULES, NULL), error) &&
	       (!set || open_file(path, error));
}

bool report_wanted(enum validate_rule rule)
{
	return !off[rule];
}

/* ---- written ---- */

static void add_stack(char **text, const char *title, npu_stack stack)
{
	if (stack == 0)
		return;
	npu_text_add(text, "\n  %s:\n", title);
	npu_stack_add(text, stack, "    ");
	(*text)[strlen(*text) - 1] = '\0';
}

static void write_text(const struct report *report, const char *sentence, bool first)
{
	char *text = NULL;

	npu_text_add(&text, "validate: %s: %s", rules[report->rule].id, sentence);
	add_stack(&text, "this call", report->now);
	if (report->then != NULL)
		add_stack(&text, report->then, report->before);
	add_stack(&text, "the memory was made by", report->made);
	if (first && text != NULL)
		npu_text_add(&text, "\n  right would be: %s", rules[report->rule].right);
	npu_log(NPU_LOG_ERROR, "%s", text != NULL ? text : sentence);
	free(text);
}

static void build_stack(JsonBuilder *builder, const char *name, npu_stack stack)
{
	const char *call = npu_stack_call(stack);
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);

	json_builder_set_member_name(builder, name);
	json_builder_begin_array(builder);
	if (call != NULL)
		json_builder_add_string_value(builder, call);
	for (unsigned i = 0; i < frame_count; i++) {
		char *frame = npu_stack_frame(frames[i]);

		json_builder_add_string_value(builder, frame != NULL ? frame : "?");
		free(frame);
	}
	json_builder_end_array(builder);
}

static void write_json(const struct report *report, const char *sentence)
{
	JsonBuilder *builder = json_builder_new();
	JsonGenerator *generator = json_generator_new();
	JsonNode *root;
	GString *line = g_string_new(NULL);

	json_builder_begin_object(builder);
	json_builder_set_member_name(builder, "rule");
	json_builder_add_string_value(builder, rules[report->rule].id);
	json_builder_set_member_name(builder, "pid");
	json_builder_add_int_value(builder, getpid());
	json_builder_set_member_name(builder, "text");
	json_builder_add_string_value(builder, sentence);
	build_stack(builder, "stack", report->now);
	if (report->then != NULL) {
		json_builder_set_member_name(builder, "other");
		json_builder_add_string_value(builder, report->then);
		build_stack(builder, "other_stack", report->before);
	}
	build_stack(builder, "made_stack", report->made);
	json_builder_set_member_name(builder, "right");
	json_builder_add_string_value(builder, rules[report->rule].right);
	json_builder_end_object(builder);
	root = json_builder_get_root(builder);
	json_generator_set_root(generator, root);
	json_generator_to_gstring(generator, line);
	g_string_append_c(line, '\n');
	if (write(file, line->str, line->len) != (ssize_t)line->len)
		npu_log(NPU_LOG_WARN, "validate: a report could not be added to the file: %s",
			strerror(errno));
	g_string_free(line, TRUE);
	json_node_unref(root);
	g_object_unref(generator);
	g_object_unref(builder);
}

void report_make(const struct report *report, const char *format, ...)
{
	va_list args;
	char *sentence, *key;
	bool first, fresh;

	if (off[report->rule])
		return;
	va_start(args, format);
	sentence = g_strdup_vprintf(format, args);
	va_end(args);
	key = report->now != 0
		      ? g_strdup_printf("%d %u %u", report->rule, report->now,
					report->before != 0 ? report->before : report->made)
		      : g_strdup_printf("%d %s", report->rule, sentence);
	pthread_mutex_lock(&lock);
	first = count[report->rule]++ == 0;
	fresh = g_hash_table_add(seen, key) && shown < SHOWN_MAX;
	if (fresh && ++shown == SHOWN_MAX)
		npu_log(NPU_LOG_WARN, "validate: %d reports are written; further ones are counted",
			SHOWN_MAX);
	pthread_mutex_unlock(&lock);
	if (fresh) {
		struct waiting *one = g_new(struct waiting, 1);

		*one = (struct waiting){ *report, sentence, first };
		g_queue_push_tail(&waiting, one);
	} else {
		g_free(sentence);
	}
}

void report_flush(void)
{
	struct waiting *one;

	while ((one = g_queue_pop_head(&waiting)) != NULL) {
		write_text(&one->report, one->sentence, one->first);
		if (file >= 0)
			write_json(&one->report, one->sentence);
		g_free(one->sentence);
		g_free(one);
	}
}

int report_end(void)
{
	char *text = NULL;
	unsigned total = 0;

	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++) {
		if (count[i] > 0)
			npu_text_add(&text, "%s%s %u", total > 0 ? ", " : "", rules[i].id,
				     count[i]);
		total += count[i];
	}
	if (total > 0)
		npu_log(NPU_LOG_ERROR,
			"validate: %u finding%s: %s; `npusim explain RULE` says more", total,
			total == 1 ? "" : "s", text);
	free(text);
	return total > 0 ? atoi(npu_var_get(NPU_VAR_VALIDATE_EXIT, NULL)) : 0;
}
