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

/* A program's texts may be in any encoding. */
static GVariant *text_of(const char *text)
{
	return g_variant_new_take_string(g_utf8_make_valid(text, -1));
}

static void put(GVariantBuilder *object, const char *name, GVariant *value)
{
	g_variant_builder_add(object, "{sv}", name, value);
}

/* Ends the builder; g_free(). */
static char *json_of(GVariantBuilder *builder)
{
	g_autoptr(GVariant) value = g_variant_ref_sink(g_variant_builder_end(builder));

	return json_gvariant_serialize_data(value, NULL);
}

static bool write_all(const char *text)
{
	size_t length = strlen(text);

	return write(file, text, length) == (ssize_t)length;
}

/* ---- JSON ---- */

static GVariant *calls_of(npu_stack stack)
{
	const char *call = npu_stack_call(stack);
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);
	GVariantBuilder calls;

	g_variant_builder_init(&calls, G_VARIANT_TYPE_STRING_ARRAY);
	if (call != NULL)
		g_variant_builder_add_value(&calls, text_of(call));
	for (unsigned i = 0; i < frame_count; i++) {
		char *frame = npu_stack_frame(frames[i]);

		g_variant_builder_add_value(&calls, text_of(frame != NULL ? frame : "?"));
		free(frame);
	}
	return g_variant_builder_end(&calls);
}

static bool add_json(const struct report_words *words)
{
	const struct report *report = words->report;
	const struct validate_rule_words *rule = &validate_rules[report->rule];
	g_autofree char *text = NULL, *line = NULL;
	GVariantBuilder object;

	g_variant_builder_init(&object, G_VARIANT_TYPE_VARDICT);
	put(&object, "rule", text_of(rule->id));
	put(&object, "pid", g_variant_new_int32(getpid()));
	put(&object, "text", text_of(words->sentence));
	put(&object, "stack", calls_of(report->now));
	if (report->then != NULL) {
		put(&object, "other", text_of(report->then));
		put(&object, "other_stack", calls_of(report->before));
	}
	put(&object, "made_stack", calls_of(report->made));
	put(&object, "right", text_of(words->right));
	text = json_of(&object);
	line = g_strconcat(text, "\n", NULL);
	return write_all(line);
}

/* ---- SARIF 2.1.0 (OASIS) ---- */

static GVariant *message_of(const char *text)
{
	return g_variant_new_parsed("{'text': <%@s>}", text_of(text));
}

static GVariant *place_of(const struct npu_frame *frame)
{
	const char *name = near_path(frame->file);
	g_autofree char *uri = g_path_is_absolute(name) ? g_filename_to_uri(name, NULL, NULL)
							: g_uri_escape_string(name, "/", TRUE);

	return g_variant_new_parsed(
		"{'artifactLocation': <{'uri': <%@s>}>, 'region': <{'startLine': <%i>}>}",
		text_of(uri != NULL ? uri : name), frame->line > 0 ? frame->line : 1);
}

static GVariant *location_of(const struct npu_frame *frame)
{
	GVariantBuilder location;

	g_variant_builder_init(&location, G_VARIANT_TYPE_VARDICT);
	put(&location, "message", message_of(frame->function != NULL ? frame->function : "?"));
	if (frame->file != NULL)
		put(&location, "physicalLocation", place_of(frame));
	return g_variant_new_parsed("{'location': <%@a{sv}>}", g_variant_builder_end(&location));
}

static void add_stack(GVariantBuilder *stacks, const char *title, npu_stack stack)
{
	void *const *frames;
	unsigned frame_count = npu_stack_frames(stack, &frames);
	GVariantBuilder list;

	if (frame_count == 0)
		return;
	g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < frame_count; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);

		g_variant_builder_add_value(&list, location_of(&frame));
	}
	g_variant_builder_add_parsed(stacks, "{'message': <%@a{sv}>, 'frames': <%@aa{sv}>}",
				     message_of(title), g_variant_builder_end(&list));
}

static char *sarif_result(const struct report_words *words)
{
	const struct report *report = words->report;
	GVariantBuilder result, locations, stacks;

	g_variant_builder_init(&locations, G_VARIANT_TYPE("aa{sv}"));
	if (words->place.file != NULL)
		g_variant_builder_add_parsed(&locations, "{'physicalLocation': <%@a{sv}>}",
					     place_of(&words->place));
	g_variant_builder_init(&stacks, G_VARIANT_TYPE("aa{sv}"));
	add_stack(&stacks, "this call", report->now);
	add_stack(&stacks, report->then != NULL ? report->then : "", report->before);
	add_stack(&stacks, "the memory was made by", report->made);
	g_variant_builder_init(&result, G_VARIANT_TYPE_VARDICT);
	put(&result, "ruleId", text_of(validate_rules[report->rule].id));
	put(&result, "level", text_of("error"));
	put(&result, "message", message_of(words->sentence));
	put(&result, "locations", g_variant_builder_end(&locations));
	put(&result, "stacks", g_variant_builder_end(&stacks));
	return json_of(&result);
}

/* All up to the first result; free with g_free(). */
static char *sarif_head(void)
{
	g_autofree char *json = NULL;
	GVariantBuilder rules;

	g_variant_builder_init(&rules, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned i = 0; i < VALIDATE_RULE_COUNT; i++)
		g_variant_builder_add_parsed(
			&rules,
			"{'id': <%s>, 'shortDescription': <{'text': <%s>}>, "
			"'fullDescription': <{'text': <%s>}>, 'help': <{'text': <%s>}>}",
			validate_rules[i].id, validate_rules[i].finds, validate_rules[i].why,
			validate_rules[i].right);
	json = json_of(&rules);
	return g_strdup_printf("{\"$schema\":\"" SARIF_SCHEMA "\",\"version\":\"2.1.0\",\"runs\":["
			       "{\"tool\":{\"driver\":{\"name\":\"npusim\",\"rules\":%s}},"
			       "\"results\":[",
			       json);
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
	g_autofree char *head = NULL, *text = NULL;
	char before = '\0';
	bool good = false;
	off_t end;

	if (fcntl(file, F_SETLKW, &all) != 0)
		return false;
	end = sarif_end();
	head = end == 0 ? sarif_head() : g_strdup("");
	if (end > 0 && pread(file, &before, 1, end - 1) == 1 && result == NULL) {
		good = true;
	} else if (end >= 0) {
		text = g_strconcat(head, before == '}' ? "," : "", result != NULL ? result : "",
				   SARIF_TAIL, NULL);
		good = pwrite(file, text, strlen(text), end) == (ssize_t)strlen(text);
	} else {
		errno = EEXIST;
	}
	all.l_type = F_UNLCK;
	fcntl(file, F_SETLK, &all);
	return good;
}

static bool add_sarif(const struct report_words *words)
{
	g_autofree char *result = sarif_result(words);

	return add_sarif_text(result);
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
	g_autofree char *text = g_strconcat(words->sentence, "\n", stacks != NULL ? stacks : "",
					    "right would be: ", words->right, NULL);
	g_autoptr(GString) line = g_string_new("::error ");

	free(stacks);
	if (words->place.file != NULL) {
		g_string_append(line, "file=");
		add_escaped(line, near_path(words->place.file), true);
		g_string_append_printf(line, ",line=%d,", words->place.line);
	}
	g_string_append_printf(line, "title=npusim %s::", rule->id);
	add_escaped(line, text, false);
	g_string_append_c(line, '\n');
	return write_all(line->str);
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
	g_auto(GStrv) parts = g_strsplit(path, "%p", -1);
	g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
	g_autofree char *name = g_strjoinv(pid, parts);
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
