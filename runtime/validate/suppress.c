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

#include <string.h>

#define RULE_PREFIX "npusim:"
#define PRINT       "print" /* the word among the files that asks for entries */
#define ENTRY                                                                \
	"\\s*\\{\\s*\\n[^\\n]*\\n\\s*" RULE_PREFIX                           \
	"(\\S+)\\s*\\n((?:\\s*(?:fun:|src:|obj:|\\.\\.\\.)[^\\n]*\\n)*)\\s*" \
	"\\}\\s*"

/* One for each entry, which matches report_text(); as long as the process. */
static GPtrArray *entries; /* of GRegex */
static bool prints;

/* ---- read ---- */

static void add_glob(GString *regex, const char *glob)
{
	g_autofree char *escaped = g_regex_escape_string(glob, -1);

	for (const char *at = escaped; *at != '\0'; at++) {
		bool wild = at[0] == '\\' && (at[1] == '*' || at[1] == '?');

		if (wild)
			g_string_append(regex, *++at == '*' ? "[^\t\n]*" : "[^\t\n]");
		else
			g_string_append_c(regex, *at);
	}
}

static GRegex *entry_new(const char *rule, const char *frames)
{
	g_autoptr(GString) regex = g_string_new("^");
	g_auto(GStrv) lines = g_strsplit(frames, "\n", -1);

	add_glob(regex, rule);
	g_string_append_c(regex, '\n');
	for (unsigned i = 0; lines[i] != NULL; i++) {
		const char *line = g_strstrip(lines[i]);

		if (g_str_has_prefix(line, "..."))
			g_string_append(regex, "(?:[^\n]*\n)*");
		if (line[0] == '\0' || line[0] == '.')
			continue;
		if (g_str_has_prefix(line, "src:")) /* or as much of its path as is given */
			g_string_append(regex, "[^\n]*\tsrc:(?:[^\t\n]*/)?");
		else
			g_string_append(regex, line[0] == 'f' ? "fun:" : "[^\n]*\tobj:");
		add_glob(regex, line + strlen("src:"));
		g_string_append(regex, "(?::[0-9]+)?(?:\t[^\n]*)?\n");
	}
	return g_regex_new(regex->str, G_REGEX_RAW | G_REGEX_OPTIMIZE, 0, NULL);
}

static bool read_entries(const char *path, const char *all, char **error)
{
	g_autoptr(GRegex) comment = g_regex_new("(?m)^[ \t]*#.*$", G_REGEX_RAW, 0, NULL);
	g_autoptr(GRegex) entry = g_regex_new(ENTRY, G_REGEX_RAW | G_REGEX_ANCHORED, 0, NULL);
	g_autofree char *text = g_regex_replace_literal(comment, all, -1, 0, "", 0, NULL);
	int at = 0, length = (int)strlen(g_strchomp(text));
	unsigned line = 1;

	while (at < length) {
		g_autoptr(GMatchInfo) match = NULL;

		if (!g_regex_match_full(entry, text, -1, at, 0, &match, NULL)) {
			for (int i = 0; i < at; i++)
				line += text[i] == '\n';
			npu_text_add(error,
				     "NPUSIM_VALIDATE_SUPPRESS=%s: the entry at line %u is not "
				     "right: an entry is {, a name, npusim:RULE, then lines "
				     "fun:NAME, src:FILE:LINE, obj:FILE or ..., }",
				     path, line);
			return false;
		}
		g_autofree char *rule = g_match_info_fetch(match, 1);
		g_autofree char *frames = g_match_info_fetch(match, 2);

		g_ptr_array_add(entries, entry_new(rule, frames));
		g_match_info_fetch_pos(match, 0, NULL, &at);
	}
	return true;
}

bool suppress_open(char **error)
{
	g_auto(GStrv) words = g_strsplit(npu_var_get(NPU_VAR_VALIDATE_SUPPRESS, NULL), ",", -1);
	bool good = true;

	entries = g_ptr_array_new();
	prints = false;
	for (unsigned i = 0; good && words[i] != NULL; i++) {
		g_autoptr(GError) why = NULL;
		g_autofree char *text = NULL;

		if (strcmp(words[i], PRINT) == 0)
			prints = true;
		else if (words[i][0] != '\0' && !g_file_get_contents(words[i], &text, NULL, &why))
			npu_text_add(error, "NPUSIM_VALIDATE_SUPPRESS: %s", why->message);
		good = why == NULL && (text == NULL || read_entries(words[i], text, error));
	}
	return good;
}

/* ---- compared ---- */

/* The rule, then a line a frame, the innermost first: fun:, src: and obj:, as far as they are
 * known. The call comes before the program's frames. */
static GString *report_text(const struct report *report)
{
	npu_stack stack = report->now != 0 ? report->now : report->made;
	GString *text = g_string_new(NULL);
	void *const *frames;
	unsigned count = npu_stack_frames(stack, &frames);

	g_string_printf(text, "%s\n", validate_rules[report->rule].id);
	if (npu_stack_call(stack) != NULL)
		g_string_append_printf(text, "fun:%s\n", npu_stack_call(stack));
	for (unsigned i = 0; i < count; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);

		if (frame.function != NULL)
			g_string_append_printf(text, "fun:%s", frame.function);
		if (frame.file != NULL)
			g_string_append_printf(text, "\tsrc:%s:%d", frame.file, frame.line);
		if (frame.object != NULL)
			g_string_append_printf(text, "\tobj:%s", frame.object);
		g_string_append_c(text, '\n');
	}
	return text;
}

bool suppress_has(const struct report *report)
{
	g_autoptr(GString) text = entries->len > 0 ? report_text(report) : NULL;

	for (unsigned i = 0; i < entries->len; i++)
		if (g_regex_match(g_ptr_array_index(entries, i), text->str, 0, NULL))
			return true;
	return false;
}

char *suppress_text(const struct report *report)
{
	g_autoptr(GString) text = prints ? report_text(report) : NULL;
	char *entry = NULL, *place = prints ? text->str : NULL, *line = strsep(&place, "\n");

	if (!prints)
		return NULL;
	npu_text_add(&entry, "{\n   name it here\n   " RULE_PREFIX "%s\n", line);
	while ((line = strsep(&place, "\n")) != NULL && line[0] != '\0') {
		char *object = strstr(line, "\tobj:");

		if (line[0] == 'f')
			line[strcspn(line, "\t")] = '\0';
		npu_text_add(&entry, "   %s\n",
			     line[0] == 'f'   ? line
			     : object != NULL ? object + 1
					      : "fun:*");
		if (strcmp(line, "fun:main") == 0)
			break;
	}
	npu_text_add(&entry, "}\n");
	return entry;
}
