/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: made under the layer's lock, written after the call as text, to the file of reports, and
 * to the program's own callback.
 */
#include "validate/validate.h"

#include "base/base.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct validate_rule_words validate_rules[VALIDATE_RULE_COUNT] = {
#define VALIDATE_RULE(rule, id, finds, why, right) { id, finds, why, right },
#include "validate/rules.h"
};

/* Equal reports: the first of them, and how many. */
struct tally {
	struct report report;
	char *sentence; /* until it is written */
	unsigned count;
	bool suppressed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static bool off[VALIDATE_RULE_COUNT];
static bool told[VALIDATE_RULE_COUNT]; /* what would be right */
static bool in_cuda;
static unsigned shown, shown_max;
static GHashTable *seen; /* text that equal reports share -> struct tally */
static struct {
	npusim_report_fn fn;
	void *arg;
} listener;

static __thread GQueue waiting; /* of struct tally: the thread's, to be written */

/* ---- suppressions ---- */

/* Files as valgrind's: an entry is a name, a rule, and the innermost frames of the stack that a
 * report is about, each of which may be a pattern:
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
#define RULE_PREFIX "npusim:"
#define PRINT       "print" /* the word among the files that asks for entries */
#define ENTRY                                                                \
	"\\s*\\{\\s*\\n[^\\n]*\\n\\s*" RULE_PREFIX                           \
	"(\\S+)\\s*\\n((?:\\s*(?:fun:|src:|obj:|\\.\\.\\.)[^\\n]*\\n)*)\\s*" \
	"\\}\\s*"

/* One for each entry, which matches report_text(). */
static GPtrArray *entries; /* of GRegex */
static bool prints;

static void add_glob(GString *regex, const char *glob)
{
	g_autofree char *escaped = g_regex_escape_string(glob, -1);
	g_autoptr(GString) text = g_string_new(escaped);

	g_string_replace(text, "\\*", "[^\t\n]*", 0);
	g_string_replace(text, "\\?", "[^\t\n]", 0);
	g_string_append(regex, text->str);
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

		g_regex_match_full(entry, text, length, at, 0, &match, NULL);
		g_autofree char *rule = g_match_info_fetch(match, 1);
		g_autofree char *frames = g_match_info_fetch(match, 2);
		GRegex *regex = rule ? entry_new(rule, frames) : NULL;

		if (regex == NULL) {
			for (int i = 0; i < at; i++)
				line += text[i] == '\n';
			npu_text_add(error,
				     "NPUSIM_VALIDATE_SUPPRESS=%s: the entry at line %u is not "
				     "right, or too long: an entry is {, a name, npusim:RULE, then "
				     "lines fun:NAME, src:FILE:LINE, obj:FILE or ..., }",
				     path, line);
			return false;
		}
		g_ptr_array_add(entries, regex);
		g_match_info_fetch_pos(match, 0, NULL, &at);
	}
	return true;
}

static bool suppress_open(char **error)
{
	g_auto(GStrv) words = g_strsplit(npu_var_get(NPU_VAR_VALIDATE_SUPPRESS, NULL), ",", -1);
	bool good = true;

	if (entries == NULL)
		entries = g_ptr_array_new_with_free_func((GDestroyNotify)g_regex_unref);
	g_ptr_array_set_size(entries, 0); /* it is opened once more where settings were checked */
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

/* The entry for a report, where entries are asked for: of a frame its function, else its object. */
static void add_entry(char **text, const struct report *report)
{
	g_autoptr(GString) all = report_text(report);
	g_auto(GStrv) lines = g_strsplit(all->str, "\n", -1);

	npu_text_add(text, "{\n   name it here\n   " RULE_PREFIX "%s\n", lines[0]);
	for (unsigned i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
		g_auto(GStrv) words = g_strsplit(lines[i], "\t", -1);
		const char *last = words[g_strv_length(words) - 1];

		npu_text_add(text, "   %s\n", words[0][0] == 'f' ? words[0] : last);
		if (strcmp(words[0], "fun:main") == 0)
			break;
	}
	npu_text_add(text, "}\n");
}

void report_in_cuda(void)
{
	in_cuda = true;
}

/* "+race,-leak", "race": the first word without '-' turns all others off. */
static bool read_rules(const char *text, char **error)
{
	const char *ids[VALIDATE_RULE_COUNT];
	g_auto(GStrv) words = g_strsplit_set(text, ", ", -1);
	bool any = false;

	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++)
		ids[i] = validate_rules[i].id;
	for (unsigned i = 0; words[i] != NULL; i++) {
		const char *word = words[i] + strspn(words[i], "+-");
		unsigned rule = 0;

		if (word[0] == '\0')
			continue;
		if (word == words[i] && !any)
			memset(off, true, sizeof(off));
		any = true;
		while (rule < VALIDATE_RULE_COUNT && strcmp(ids[rule], word) != 0)
			rule++;
		if (rule < VALIDATE_RULE_COUNT) {
			off[rule] = words[i][0] == '-';
			continue;
		}
		npu_text_add(error,
			     "NPUSIM_VALIDATE_RULES=%s: there is no rule '%s'%s; "
			     "`npusim explain` lists them",
			     text, word, npu_meant(word, ids, VALIDATE_RULE_COUNT, ""));
		return false;
	}
	return true;
}

bool report_open(bool check, char **error)
{
	memset(off, false, sizeof(off));
	shown_max = (unsigned)atoi(npu_var_get(NPU_VAR_VALIDATE_LIMIT, NULL));
	if (seen == NULL)
		seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	return read_rules(npu_var_get(NPU_VAR_VALIDATE_RULES, NULL), error) &&
	       suppress_open(error) && form_open(check, error);
}

bool report_wanted(enum validate_rule rule)
{
	return !off[rule];
}

void report_listen(npusim_report_fn fn, void *arg)
{
	LOCKED(&lock);

	listener.fn = fn;
	listener.arg = arg;
}

/* ---- written ---- */

/* The text with the names of the program's API. */
static char *with_names(char *text)
{
	if (in_cuda)
		npu_words_replace(text, strlen(text) + 1, npu_cuda_words);
	return text;
}

static void add_stack(char **text, const char *title, npu_stack stack)
{
	if (stack == 0)
		return;
	npu_text_add(text, "  %s:\n", title);
	npu_stack_add(text, stack, "    ");
}

/* free(); NULL: there are none. */
static char *stacks_of(const struct report *report)
{
	char *text = NULL;

	add_stack(&text, "this call", report->now);
	if (report->then != NULL)
		add_stack(&text, report->then, report->before);
	add_stack(&text, "the memory was made by", report->made);
	return text;
}

/* Findings are no log lines: they go where what ends a program goes. */
void report_add_lines(const char *format, ...)
{
	g_autofree char *lines = NULL, *text = NULL;
	va_list args;

	va_start(args, format);
	lines = g_strdup_vprintf(format, args);
	va_end(args);
	npu_text_add(&text, "npusim[%d] error: validate: %s", (int)getpid(), lines);
	if (text != NULL)
		npu_report_write(text, strlen(text));
}

static void write_report(const struct tally *one, bool first)
{
	const struct report *report = &one->report;
	const struct validate_rule_words *rule = &validate_rules[report->rule];
	g_autofree char *stacks = stacks_of(report), *entry = NULL;
	g_autofree char *right = with_names(g_strdup(rule->right));
	struct npusim_report said = { .size = sizeof(said),
				      .rule = rule->id,
				      .text = one->sentence,
				      .stacks = stacks ?: "",
				      .right = right };
	struct npu_frame place;
	__typeof__(listener) call;

	if (prints)
		add_entry(&entry, report);
	report_add_lines("%s: %s\n%s%s%s%s%s", rule->id, one->sentence, said.stacks,
			 first ? "  right would be: " : "", first ? right : "", first ? "\n" : "",
			 entry ?: "");
	pthread_mutex_lock(&lock);
	call = listener;
	pthread_mutex_unlock(&lock);
	if (npu_stack_place(report->now, &place) || npu_stack_place(report->made, &place) ||
	    npu_stack_place(report->before, &place)) {
		said.file = place.file;
		said.line = place.line;
	}
	form_add(report, &said, said.file != NULL ? place.function : NULL);
	if (call.fn != NULL)
		call.fn(call.arg, &said);
}

void report_make(const struct report *report, const char *format, ...)
{
	g_autofree char *sentence = NULL, *key = NULL;
	struct tally *tally;
	va_list args;

	if (off[report->rule])
		return;
	va_start(args, format);
	sentence = with_names(g_strdup_vprintf(format, args));
	va_end(args);
	key = report->now != 0 || report->made != 0
		      ? g_strdup_printf("%d %u %u", report->rule, report->now,
					report->before != 0 ? report->before : report->made)
		      : g_strdup_printf("%d %s", report->rule, sentence);
	LOCKED(&lock);
	tally = g_hash_table_lookup(seen, key);
	if (tally == NULL) {
		tally = g_new(struct tally, 1);
		*tally = (struct tally){ *report, g_steal_pointer(&sentence), 0, false };
		g_hash_table_insert(seen, g_steal_pointer(&key), tally);
		g_queue_push_tail(&waiting, tally);
	}
	tally->count++;
}

/* Whether a report is still to be shown; *out_first: of its rule. */
static bool take_place(const struct report *report, bool *out_first)
{
	bool last, room;

	pthread_mutex_lock(&lock);
	room = shown < shown_max;
	last = room && ++shown == shown_max;
	*out_first = room && !told[report->rule];
	told[report->rule] |= room;
	pthread_mutex_unlock(&lock);
	if (last)
		npu_log(NPU_LOG_WARN,
			"validate: NPUSIM_VALIDATE_LIMIT=%u reports are written with this one; "
			"further ones are counted",
			shown_max);
	return room;
}

bool report_waits(void)
{
	return !g_queue_is_empty(&waiting);
}

void report_flush(void)
{
	struct tally *one;
	bool first;

	while ((one = g_queue_pop_head(&waiting)) != NULL) {
		one->suppressed = suppress_has(&one->report);
		if (!one->suppressed && take_place(&one->report, &first))
			write_report(one, first);
		g_clear_pointer(&one->sentence, g_free);
	}
}

int report_end(void)
{
	unsigned count[VALIDATE_RULE_COUNT] = { 0 }, total = 0, suppressed = 0;
	g_autofree char *text = NULL;
	GHashTableIter iter;
	gpointer value;

	if (seen == NULL)
		return 0;
	g_hash_table_iter_init(&iter, seen);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct tally *tally = value;

		*(tally->suppressed ? &suppressed : &count[tally->report.rule]) += tally->count;
	}
	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++) {
		if (count[i] > 0)
			npu_text_add(&text, "%s%s %u", total > 0 ? ", " : "", validate_rules[i].id,
				     count[i]);
		total += count[i];
	}
	if (suppressed > 0)
		npu_text_add(&text, "%s%u suppressed", total > 0 ? "; " : "", suppressed);
	if (total > 0)
		report_add_lines("%s: %s; `npusim explain RULE` says more\n",
				 npu_counted(total, "finding"), text);
	else if (suppressed > 0)
		npu_log(NPU_LOG_INFO, "validate: no finding: %s", text);
	return total > 0 ? atoi(npu_var_get(NPU_VAR_VALIDATE_EXIT, NULL)) : 0;
}

void report_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void report_after_fork(bool child)
{
	if (child && seen != NULL) {
		g_hash_table_remove_all(seen);
		memset(told, false, sizeof(told));
		shown = 0;
		form_after_fork();
	}
	pthread_mutex_unlock(&lock);
}
