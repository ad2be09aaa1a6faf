/* SPDX-License-Identifier: Apache-2.0
 *
 * NPUSIM_VALIDATE_FILE: reports for programs to read. JSON: a line each. SARIF: one document, which
 * is whole after each report. GitHub: a workflow command each, which puts the sentence beside the
 * line of the source. Several processes may add to one file.
 */
#include "validate/report.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SARIF_TAIL   "]}]}\n"
#define SARIF_SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

struct form {
	const char *name;
	bool (*add)(const struct report_words *words);
};
static const struct form *form;
static char *path; /* with %p; NULL: stderr */
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the file, among threads */

/* ---- pieces ---- */

/* As who starts the program sees it: below its folder, relative. */
static const char *near_path(const char *name)
{
	static char *folder;
	size_t length;

	if (folder == NULL)
		folder = g_get_current_dir();
	length = strlen(folder);
	return strncmp(name, folder, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

static void put(JsonBuilder *builder, const char *name, const char *text)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_string_value(builder, text);
}

static char *text_of(JsonBuilder *builder)
{
	JsonGenerator *generator = json_generator_new();
	JsonNode *root = json_builder_get_root(builder);
	char *text;

	json_generator_set_root(generator, root);
	text = json_generator_to_data(generator, NULL);
	json_node_unref(root);
	g_object_unref(generator);
	g_object_unref(builder);
	return text;
}

static bool write_all(const char *text)
{
	size_t length = strlen(text);

	return write(file, text, length) == (ssize_t)length;
}

/* ---- JSON ---- */

static void put_stack(JsonBuilder *builder, const char *name, npu_stack stack)
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

static bool add_json(const struct report_words *words)
{
	const struct report *report = words->report;
	const struct validate_rule_words *rule = &validate_rules[report->rule];
	JsonBuilder *builder = json_builder_new();
	char *text, *line;
	bool good;

	json_builder_begin_object(builder);
	put(builder, "rule", rule->id);
	json_builder_set_member_name(builder, "pid");
	json_builder_add_int_value(builder, getpid());
	put(builder, "text", words->sentence);
	put_stack(builder, "stack", report->now);
	if (report->then != NULL) {
		put(builder, "other", report->then);
		put_stack(builder, "other_stack", report->before);
	}
	put_stack(builder, "made_stack", report->made);
	put(builder, "right", rule->right);
	json_builder_end_object(builder);
	text = text_of(builder);
	line = g_strconcat(text, "\n", NULL);
	good = write_all(line);
	g_free(text);
	g_free(line);
	return good;
}

/* ---- SARIF 2.1.0 (OASIS) ---- */

static void put_text(JsonBuilder *builder, const char *name, const char *text)
{
	json_builder_set_member_name(builder, name);
	json_builder_begin_object(builder);
	put(builder, "text", text);
	json_builder_end_object(builder);
}

/* The members of a `location`. */
static void put_place(JsonBuilder *builder, const struct npu_frame *frame)
{
	const char *name = near_path(frame->file);
	char *uri = g_path_is_absolute(name) ? g_filename_to_uri(name, NULL, NULL)
					     : g_uri_escape_string(name, "/", TRUE);

	json_builder_set_member_name(builder, "physicalLocation");
	json_builder_begin_object(builder);
	json_builder_set_member_name(builder, "artifactLocation");
	json_builder_begin_object(builder);
	put(builder, "uri", uri != NULL ? uri : name);
	json_builder_end_object(builder);
	json_builder_set_member_name(builder, "region");
	json_builder_begin_object(builder);
	json_builder_set_member_name(builder, "startLine");
	json_builder_add_int_value(builder, frame->line > 0 ? frame->line : 1);
	json_builder_end_object(builder);
	json_builder_end_object(builder);
	g_free(uri);
}

static void put_sarif_stack(JsonBuilder *builder, const char *title, npu_stack stack)
{
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);

	if (frame_count == 0)
		return;
	json_builder_begin_object(builder);
	put_text(builder, "message", title);
	json_builder_set_member_name(builder, "frames");
	json_builder_begin_array(builder);
	for (unsigned i = 0; i < frame_count; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);

		json_builder_begin_object(builder);
		json_builder_set_member_name(builder, "location");
		json_builder_begin_object(builder);
		put_text(builder, "message", frame.function != NULL ? frame.function : "?");
		if (frame.file != NULL)
			put_place(builder, &frame);
		json_builder_end_object(builder);
		json_builder_end_object(builder);
	}
	json_builder_end_array(builder);
	json_builder_end_object(builder);
}

static char *sarif_result(const struct report_words *words)
{
	const struct report *report = words->report;
	JsonBuilder *builder = json_builder_new();

	json_builder_begin_object(builder);
	put(builder, "ruleId", validate_rules[report->rule].id);
	put(builder, "level", "error");
	put_text(builder, "message", words->sentence);
	json_builder_set_member_name(builder, "locations");
	json_builder_begin_array(builder);
	if (words->place.file != NULL) {
		json_builder_begin_object(builder);
		put_place(builder, &words->place);
		json_builder_end_object(builder);
	}
	json_builder_end_array(builder);
	json_builder_set_member_name(builder, "stacks");
	json_builder_begin_array(builder);
	put_sarif_stack(builder, "this call", report->now);
	put_sarif_stack(builder, report->then != NULL ? report->then : "", report->before);
	put_sarif_stack(builder, "the memory was made by", report->made);
	json_builder_end_array(builder);
	json_builder_end_object(builder);
	return text_of(builder);
}

/* All up to the first result; free with g_free(). */
static char *sarif_head(void)
{
	JsonBuilder *builder = json_builder_new();
	char *rules, *head;

	json_builder_begin_array(builder);
	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++) {
		json_builder_begin_object(builder);
		put(builder, "id", validate_rules[i].id);
		put_text(builder, "shortDescription", validate_rules[i].finds);
		put_text(builder, "fullDescription", validate_rules[i].why);
		put_text(builder, "help", validate_rules[i].right);
		json_builder_end_object(builder);
	}
	json_builder_end_array(builder);
	rules = text_of(builder);
	head = g_strdup_printf("{\"$schema\":\"" SARIF_SCHEMA "\",\"version\":\"2.1.0\",\"runs\":["
			       "{\"tool\":{\"driver\":{\"name\":\"npusim\",\"rules\":%s}},"
			       "\"results\":[",
			       rules);
	g_free(rules);
	return head;
}

/* Where the next result goes: before the tail; 0: the file is empty, -1: it is another's. */
static off_t sarif_end(void)
{
	char tail[sizeof(SARIF_TAIL)] = "";
	struct stat st;
	off_t end;

	if (fstat(file, &st) != 0 || st.st_size == 0)
		return 0;
	end = st.st_size - (off_t)strlen(SARIF_TAIL);
	return end > 0 && pread(file, tail, strlen(SARIF_TAIL), end) > 0 &&
			       strcmp(tail, SARIF_TAIL) == 0
		       ? end
		       : -1;
}

/* `result` NULL: a document without results, if there is none yet. */
static bool add_sarif_text(const char *result)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	off_t end;
	char *head = NULL, *text, before = '\0';
	bool good = false;

	if (fcntl(file, F_SETLKW, &all) != 0)
		return false;
	end = sarif_end();
	if (end == 0)
		head = sarif_head();
	if (end > 0 && pread(file, &before, 1, end - 1) == 1 && result == NULL)
		good = true;
	else if (end >= 0) {
		text = g_strconcat(head != NULL ? head : "", before == '}' ? "," : "",
				   result != NULL ? result : "", SARIF_TAIL, NULL);
		good = pwrite(file, text, strlen(text), end) == (ssize_t)strlen(text);
		g_free(text);
	} else {
		errno = EEXIST;
	}
	all.l_type = F_UNLCK;
	fcntl(file, F_SETLK, &all);
	g_free(head);
	return good;
}

static bool add_sarif(const struct report_words *words)
{
	char *result = sarif_result(words);
	bool good = add_sarif_text(result);

	g_free(result);
	return good;
}

/* ---- GitHub's workflow commands ---- */

static void add_escaped(GString *line, const char *text, bool property)
{
	for (; *text != '\0'; text++) {
		bool special =
			strchr("%\r\n", *text) != NULL || (property && strchr(":,", *text) != NULL);

		g_string_append_printf(line, special ? "%%%02X" : "%c", *text);
	}
}

static bool add_github(const struct report_words *words)
{
	const struct validate_rule_words *rule = &validate_rules[words->report->rule];
	char *stacks = report_stacks(words->report);
	GString *line = g_string_new("::error ");
	bool good;

	if (words->place.file != NULL) {
		g_string_append(line, "file=");
		add_escaped(line, near_path(words->place.file), true);
		g_string_append_printf(line, ",line=%d,", words->place.line);
	}
	g_string_append_printf(line, "title=npusim %s::", rule->id);
	add_escaped(line, words->sentence, false);
	add_escaped(line, "\n", false);
	add_escaped(line, stacks != NULL ? stacks : "", false);
	add_escaped(line, "right would be: ", false);
	add_escaped(line, rule->right, false);
	g_string_append_c(line, '\n');
	good = write_all(line->str);
	g_string_free(line, TRUE);
	free(stacks);
	return good;
}

/* ---- the file ---- */

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

static bool is_sarif(void)
{
	return form->add == add_sarif;
}

static bool open_file(bool check, char **error)
{
	char **parts = g_strsplit(path, "%p", -1);
	char *pid = g_strdup_printf("%d", (int)getpid()), *name = g_strjoinv(pid, parts);
	bool is_new = access(name, F_OK) != 0, good;

	file = open(name, (is_sarif() ? O_RDWR : O_WRONLY | O_APPEND) | O_CREAT | O_CLOEXEC, 0666);
	good = file >= 0 && (!is_sarif() || check || add_sarif_text(NULL));
	if (good && check && is_sarif() && sarif_end() < 0) {
		errno = EEXIST;
		good = false;
	}
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
	g_strfreev(parts);
	g_free(pid);
	g_free(name);
	return good;
}

bool form_open(bool check, char **error)
{
	bool set, chosen;
	const char *name = npu_var_get(NPU_VAR_VALIDATE_FILE, &set);

	npu_var_get(NPU_VAR_VALIDATE_FORMAT, &chosen);
	if (!set && !chosen)
		return true;
	form = choose(name);
	if (!set && is_sarif()) {
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

bool form_is_open(void)
{
	return file >= 0;
}

void form_add(const struct report_words *words)
{
	if (file < 0)
		return;
	pthread_mutex_lock(&lock);
	if (!form->add(words))
		npu_log(NPU_LOG_WARN, "validate: a report could not be added to the file: %s",
			strerror(errno));
	pthread_mutex_unlock(&lock);
}

void form_after_fork(void)
{
	char *error = NULL;

	pthread_mutex_init(&lock, NULL);
	if (file < 0 || path == NULL || strstr(path, "%p") == NULL)
		return;
	close(file);
	if (!open_file(false, &error))
		npu_log(NPU_LOG_WARN, "validate: %s", error != NULL ? error : "no file");
	free(error);
}
