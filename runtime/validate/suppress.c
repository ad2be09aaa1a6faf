/* SPDX-License-Identifier: Apache-2.0
 *
 * Suppressions: reports that are known, in files as valgrind's. An entry is a name, a rule, and the
 * innermost frames of the stack that a report is about, each of which may be a pattern:
 *
 *   {
 *      the loader keeps its staging buffer
 *      npusim:leak
 *      fun:aclrtMallocHost
 *      src:loader.c:96
 *      obj:*_extension.so
 *      ...
 *   }
 */
#include "validate/report.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define RULE_PREFIX "npusim:"
#define PRINT       "print" /* the word among the files that asks for entries */

enum part { PART_FUNCTION, PART_SOURCE, PART_OBJECT, PART_ANY };
static const char *const part_names[] = { "fun:", "src:", "obj:", "..." };

struct pattern {
	enum part part;
	GPatternSpec *spec;
};
struct entry {
	GPatternSpec *rule;
	GArray *frames; /* of struct pattern */
};

static GPtrArray *entries; /* of struct entry; as long as the process */
static bool prints;

/* ---- read ---- */

static bool read_line(struct entry *entry, unsigned line, const char *text)
{
	enum part part = PART_FUNCTION;

	if (line == 0)
		return true; /* its name */
	if (line == 1) {
		if (!g_str_has_prefix(text, RULE_PREFIX))
			return false;
		entry->rule = g_pattern_spec_new(text + strlen(RULE_PREFIX));
		return true;
	}
	while (!g_str_has_prefix(text, part_names[part]))
		if (++part > PART_ANY)
			return false;
	g_array_append_vals(
		entry->frames,
		&(struct pattern){ part, g_pattern_spec_new(text + strlen(part_names[part])) }, 1);
	return true;
}

static bool read_entries(const char *path, char *text, char **error)
{
	struct entry *entry = NULL;
	unsigned number = 0, in_entry = 0;
	char *place = text, *line;
	bool good = true;

	while (good && (line = strsep(&place, "\n")) != NULL) {
		number++;
		g_strstrip(line);
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (entry == NULL) {
			good = strcmp(line, "{") == 0;
			entry = g_new0(struct entry, 1);
			entry->frames = g_array_new(FALSE, FALSE, sizeof(struct pattern));
			in_entry = 0;
		} else if (strcmp(line, "}") == 0) {
			good = entry->rule != NULL;
			g_ptr_array_add(entries, entry);
			entry = NULL;
		} else {
			good = read_line(entry, in_entry++, line);
		}
	}
	if (!good || entry != NULL)
		npu_text_add(error,
			     "NPUSIM_VALIDATE_SUPPRESS=%s: line %u is %s: an entry is {, a name, "
			     "npusim:RULE, then lines fun:NAME, src:FILE:LINE, obj:FILE or ..., }",
			     path, number, good ? "the last, inside of an entry" : "not right");
	return good && entry == NULL;
}

bool suppress_open(char **error)
{
	char **words = g_strsplit(npu_var_get(NPU_VAR_VALIDATE_SUPPRESS, NULL), ",", -1);
	bool good = true;

	entries = g_ptr_array_new();
	prints = false;
	for (unsigned i = 0; good && words[i] != NULL; i++) {
		GError *why = NULL;
		char *text;

		if (words[i][0] == '\0')
			continue;
		if (strcmp(words[i], PRINT) == 0) {
			prints = true;
			continue;
		}
		good = g_file_get_contents(words[i], &text, NULL, &why);
		if (!good) {
			npu_text_add(error, "NPUSIM_VALIDATE_SUPPRESS: %s", why->message);
			g_error_free(why);
			break;
		}
		good = read_entries(words[i], text, error);
		g_free(text);
	}
	g_strfreev(words);
	return good;
}

/* ---- compared ---- */

/* The call comes first, then the program's frames. */
struct stack_frames {
	const char *call;
	void *const *frames;
	unsigned count;
};

static struct stack_frames frames_of(const struct report *report)
{
	npu_stack stack = report->now != 0 ? report->now : report->made;
	struct stack_frames frames = { .call = npu_stack_call(stack) };

	frames.count = npu_stack_frames(stack, &frames.frames);
	return frames;
}

static bool fits(GPatternSpec *spec, const char *text)
{
	return text != NULL && g_pattern_spec_match_string(spec, text);
}

static bool frame_fits(const struct pattern *pattern, const struct npu_frame *frame)
{
	char *with_line;
	bool good;

	if (pattern->part != PART_SOURCE)
		return fits(pattern->spec,
			    pattern->part == PART_FUNCTION ? frame->function : frame->object);
	if (frame->file == NULL)
		return false;
	/* by the file's name, or as much of its path as is given; the line may be left out */
	with_line = g_strdup_printf("%s:%d", frame->file, frame->line);
	good = false;
	for (const char *at = with_line; at != NULL && !good; at = strchr(at, '/')) {
		at += *at == '/';
		good = fits(pattern->spec, at) ||
		       fits(pattern->spec, frame->file + (at - with_line));
	}
	g_free(with_line);
	return good;
}

/* From frame `at` on; the call is frame 0. */
static bool stack_fits(const struct entry *entry, unsigned line, const struct stack_frames *stack,
		       unsigned at)
{
	for (; line < entry->frames->len; line++, at++) {
		const struct pattern *pattern = &g_array_index(entry->frames, struct pattern, line);
		struct npu_frame frame = { .function = stack->call };

		if (pattern->part == PART_ANY) {
			for (; at <= stack->count + 1; at++)
				if (stack_fits(entry, line + 1, stack, at))
					return true;
			return false;
		}
		if (at > stack->count)
			return false;
		if (at > 0)
			frame = npu_stack_look(stack->frames[at - 1]);
		if (!frame_fits(pattern, &frame))
			return false;
	}
	return true;
}

bool suppress_has(const struct report *report)
{
	struct stack_frames stack = frames_of(report);

	for (unsigned i = 0; i < entries->len; i++) {
		const struct entry *entry = g_ptr_array_index(entries, i);

		if (g_pattern_spec_match_string(entry->rule, validate_rules[report->rule].id) &&
		    stack_fits(entry, 0, &stack, stack.call == NULL))
			return true;
	}
	return false;
}

char *suppress_text(const struct report *report)
{
	struct stack_frames stack = frames_of(report);
	char *text = NULL;

	if (!prints)
		return NULL;
	npu_text_add(&text, "{\n   name it here\n   " RULE_PREFIX "%s\n",
		     validate_rules[report->rule].id);
	if (stack.call != NULL)
		npu_text_add(&text, "   fun:%s\n", stack.call);
	for (unsigned i = 0; i < stack.count; i++) {
		struct npu_frame frame = npu_stack_look(stack.frames[i]);

		npu_text_add(&text, "   %s:%s\n",
			     frame.function == NULL && frame.object != NULL ? "obj" : "fun",
			     frame.function ?: frame.object ?: "*");
		if (frame.function != NULL && strcmp(frame.function, "main") == 0)
			break;
	}
	npu_text_add(&text, "}\n");
	return text;
}
