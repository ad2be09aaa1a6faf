/* SPDX-License-Identifier: Apache-2.0
 *
 * NPUSIM_VALIDATE_FILE: reports for programs to read. JSON: a line each. SARIF: one document, which
 * is whole after each report. GitHub: a workflow command each, which puts the sentence beside the
 * line of the source. Several processes may add to one file. JSON is put together by hand, as the
 * program's own process must not load json-glib.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SARIF_TAIL   "]}]}\n"
#define SARIF_SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

struct form {
	const char *name;
	bool (*add)(const struct report *report, const struct npusim_report *said,
		    const char *function);
};
static const struct form *form;
static char *path;   /* with %p; NULL: stderr */
static char *folder; /* the current one at first, and a slash: the program may go elsewhere */
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the file, among threads */

/* As who starts the program sees it: below its folder, relative. */
static const char *near_path(const char *name)
{
	return g_str_has_prefix(name, folder) ? name + strlen(folder) : name;
}

static bool write_all(const char *text)
{
	size_t length = strlen(text);

	return write(file, text, length) == (ssize_t)length;
}

/* A program's texts may be in any encoding. */
static void put_text(GString *out, const char *any)
{
	g_autofree char *text = g_utf8_make_valid(any, -1);

	g_string_append_c(out, '"');
	for (const char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < ' ')
			g_string_append_printf(out, "\\u%04x", *at);
		else
			g_string_append_printf(out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "",
					       *at);
	g_string_append_c(out, '"');
}

/* JSON by a pattern: ' is a quotation mark, % stands for a text of the arguments, # for an int. */
static void put(GString *out, const char *pattern, ...)
{
	va_list args;

	va_start(args, pattern);
	for (; *pattern != '\0'; pattern++)
		if (*pattern == '%')
			put_text(out, va_arg(args, const char *));
		else if (*pattern == '#')
			g_string_append_printf(out, "%d", va_arg(args, int));
		else
			g_string_append_c(out, *pattern == '\'' ? '"' : *pattern);
	va_end(args);
}

static void put_comma(GString *out)
{
	if (strchr("[{", out->str[out->len - 1]) == NULL)
		g_string_append_c(out, ',');
}

static void put_calls(GString *out, npu_stack stack)
{
	const char *call = npu_stack_call(stack);
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);
	bool ends = false;

	put(out, call != NULL ? "[%" : "[", call);
	for (unsigned i = 0; i < frame_count && !ends; i++) {
		g_autofree char *frame = npu_stack_frame(frames[i], &ends);

		put_comma(out);
		put_text(out, frame ?: "?");
	}
	put(out, "]");
}

static bool add_json(const struct report *report, const struct npusim_report *said,
		     const char *function)
{
	g_autoptr(GString) out = g_string_new(NULL);

	(void)function;
	put(out, "{'rule':%,'pid':#,'text':%,'stack':", said->rule, getpid(), said->text);
	put_calls(out, report->now);
	if (report->then != NULL) {
		put(out, ",'other':%,'other_stack':", report->then);
		put_calls(out, report->before);
	}
	put(out, ",'made_stack':");
	put_calls(out, report->made);
	put(out, ",'right':%}\n", said->right);
	return write_all(out->str);
}

/* ---- SARIF 2.1.0 (OASIS) ---- */

static void put_location(GString *out, const struct npu_frame *frame)
{
	const char *name = near_path(frame->file ?: "");
	g_autofree char *uri = g_path_is_absolute(name) ? g_filename_to_uri(name, NULL, NULL)
							: g_uri_escape_string(name, "/", TRUE);

	put(out, "{'message':{'text':%}", frame->function ?: "?");
	if (frame->file != NULL)
		put(out,
		    ",'physicalLocation':{'artifactLocation':{'uri':%},'region':{'startLine':#}}",
		    uri ?: name, MAX(frame->line, 1));
	put(out, "}");
}

static void put_stack(GString *out, const char *title, npu_stack stack)
{
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);
	bool ends = false;

	if (frame_count == 0)
		return;
	put_comma(out);
	put(out, "{'message':{'text':%},'frames':[", title);
	for (unsigned i = 0; i < frame_count && !ends; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);

		put(out, i > 0 ? ",{'location':" : "{'location':");
		put_location(out, &frame);
		put(out, "}");
		ends = npu_stack_ends(&frame);
	}
	put(out, "]}");
}

/* All up to the first result. */
static void put_head(GString *out)
{
	put(out,
	    "{'$schema':%,'version':'2.1.0','runs':[{'tool':{'driver':{'name':'npusim','rules':[",
	    SARIF_SCHEMA);
	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++) {
		put_comma(out);
		put(out,
		    "{'id':%,'shortDescription':{'text':%},'fullDescription':{'text':%},"
		    "'help':{'text':%}}",
		    validate_rules[i].id, validate_rules[i].finds, validate_rules[i].why,
		    validate_rules[i].right);
	}
	put(out, "]}},'results':[");
}

/* `result` "": a document without results, if there is none yet. EEXIST: it is another's. */
static bool add_sarif_text(const char *result)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	g_autoptr(GString) out = g_string_new(NULL);
	char last[sizeof(SARIF_TAIL) + 1] =
		""; /* a byte, and the tail, which the result precedes */
	bool good = false;
	off_t end;

	if (lseek(file, 0, SEEK_END) < 0 || fcntl(file, F_SETLKW, &all) != 0)
		return false; /* a pipe has no end to add to */
	end = lseek(file, 0, SEEK_END);
	if (end == 0) {
		put_head(out);
	} else {
		end -= (off_t)strlen(SARIF_TAIL);
		if (pread(file, last, sizeof(last) - 1, end - 1) < 0 ||
		    strcmp(last + 1, SARIF_TAIL) != 0)
			end = -1;
		else if (last[0] == '}' && result[0] != '\0')
			g_string_append_c(out, ',');
	}
	g_string_append_printf(out, "%s" SARIF_TAIL, result);
	errno = EEXIST;
	good = end >= 0 && pwrite(file, out->str, out->len, end) == (ssize_t)out->len;
	all.l_type = F_UNLCK;
	fcntl(file, F_SETLK, &all);
	return good;
}

static bool add_sarif(const struct report *report, const struct npusim_report *said,
		      const char *function)
{
	g_autoptr(GString) out = g_string_new(NULL);

	put(out, "{'ruleId':%,'level':'error','message':{'text':%},'locations':[", said->rule,
	    said->text);
	if (said->file != NULL)
		put_location(out, &(struct npu_frame){ .function = function,
						       .file = said->file,
						       .line = said->line });
	put(out, "],'stacks':[");
	put_stack(out, "this call", report->now);
	put_stack(out, report->then ?: "", report->before);
	put_stack(out, "the memory was made by", report->made);
	put(out, "]}");
	return add_sarif_text(out->str);
}

static void add_escaped(GString *line, const char *text, bool property)
{
	for (; *text != '\0'; text++) {
		bool special =
			strchr("%\r\n", *text) != NULL || (property && strchr(":,", *text) != NULL);

		g_string_append_printf(line, special ? "%%%02X" : "%c", *text);
	}
}

static bool add_github(const struct report *report, const struct npusim_report *said,
		       const char *function)
{
	g_autofree char *text =
		g_strconcat(said->text, "\n", said->stacks, "right would be: ", said->right, NULL);
	g_autoptr(GString) line = g_string_new("::error ");

	(void)report;
	(void)function;
	if (said->file != NULL) {
		g_string_append(line, "file=");
		add_escaped(line, near_path(said->file), true);
		g_string_append_printf(line, ",line=%d,", said->line);
	}
	g_string_append_printf(line, "title=npusim %s::", said->rule);
	add_escaped(line, text, false);
	g_string_append_c(line, '\n');
	return write_all(line->str);
}

static const struct form forms[] = { { "json", add_json },
				     { "sarif", add_sarif },
				     { "github", add_github } };

/* By NPUSIM_VALIDATE_FORMAT, else by the end of the file's name, else JSON. */
static const struct form *choose(const char *name)
{
	bool set;
	const char *format = npu_var_get(NPU_VAR_VALIDATE_FORMAT, &set), *end = strrchr(name, '.');

	for (unsigned i = 0; i < G_N_ELEMENTS(forms); i++)
		if (strcmp(set ? format : end != NULL ? end + 1 : "", forms[i].name) == 0)
			return &forms[i];
	return &forms[0];
}

static bool open_file(bool check, char **error)
{
	g_auto(GStrv) parts = g_strsplit(path, "%p", -1);
	g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
	g_autofree char *name = g_strjoinv(pid, parts);
	bool is_new = access(name, F_OK) != 0, good;

	file = open(name,
		    (form->add == add_sarif ? O_RDWR : O_WRONLY | O_APPEND) | O_CREAT | O_CLOEXEC,
		    0666);
	good = file >= 0 && (form->add != add_sarif || add_sarif_text(""));
	if (!good)
		npu_text_add(error, "NPUSIM_VALIDATE_FILE=%s cannot be written: %s", name,
			     errno == EEXIST ? "it is there, and no SARIF file of npusim's"
					     : strerror(errno));
	if (file >= 0 && (check || !good)) {
		close(file);
		file = -1;
	}
	if (check && is_new)
		unlink(name);
	return good;
}

bool form_open(bool check, char **error)
{
	bool set, chosen;
	const char *name = npu_var_get(NPU_VAR_VALIDATE_FILE, &set);
	g_autofree char *here = NULL;

	npu_var_get(NPU_VAR_VALIDATE_FORMAT, &chosen);
	if (!set && !chosen)
		return true;
	if (folder == NULL) {
		here = g_get_current_dir();
		folder = g_strconcat(here, "/", NULL);
	}
	form = choose(name);
	if (!set && form->add == add_sarif) {
		npu_text_add(error, "NPUSIM_VALIDATE_FORMAT=sarif needs NPUSIM_VALIDATE_FILE");
		return false;
	}
	if (!set) {
		file = check ? -1 : STDERR_FILENO;
		return true;
	}
	g_free(path);
	path = g_strdup(name);
	return open_file(check, error);
}

void form_add(const struct report *report, const struct npusim_report *said, const char *function)
{
	if (file < 0)
		return;
	pthread_mutex_lock(&lock);
	if (!form->add(report, said, function))
		npu_log(NPU_LOG_WARN, "validate: a report could not be added to the file: %s",
			strerror(errno));
	pthread_mutex_unlock(&lock);
}

void form_after_fork(void)
{
	g_autofree char *error = NULL;

	pthread_mutex_init(&lock, NULL);
	if (file < 0 || path == NULL || strstr(path, "%p") == NULL)
		return;
	close(file);
	if (!open_file(false, &error))
		npu_log(NPU_LOG_WARN, "validate: %s", error ?: "no file");
}
