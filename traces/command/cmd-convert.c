/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim convert: reads a trace or a result and writes it as another kind of file.
 */
#include "npusim.h"

#include <string.h>

#include "format/out-file.h"
#include "read/readers.h"
#include "show/convert.h"
#include "show/result-file.h"

enum target { TO_TRACE, TO_CHROME, TO_CSV, TO_COUNT };

static const struct {
	const char *name, *ending, *what;
	gboolean (*convert)(struct convert_job *job, GError **error);
} targets[TO_COUNT] = {
	[TO_TRACE] = { "trace", ".npt", "a trace of npusim", convert_to_trace },
	[TO_CHROME] = { "chrome", ".json", "the JSON of Chrome's trace viewer and Perfetto",
			convert_to_chrome },
	[TO_CSV] = { "csv", ".csv", "comma-separated values", convert_to_csv },
};

struct options {
	const char *source, *target;
	enum target to;
	int device;
	gboolean series;
};

/* By --to, or by the ending. FALSE and a message that names what there is. */
static gboolean choose(const char *path, const char *to, enum target *out, char **message)
{
	g_autofree char *plain =
		g_str_has_suffix(path, ".gz") ? g_strndup(path, strlen(path) - 3) : g_strdup(path);

	for (*out = 0; *out < TO_COUNT; ++*out) {
		if (to ? strcmp(to, targets[*out].name) == 0
		       : g_str_has_suffix(plain, targets[*out].ending))
			return TRUE;
	}
	*message = to ? g_strdup_printf("--to %s: known are trace, chrome and csv", to)
		      : g_strdup_printf("%s: the ending says what it becomes: .npt (a trace), "
					".json (for Chrome and Perfetto) or .csv, each also with "
					".gz; or say it with --to trace, chrome or csv",
					path);
	return FALSE;
}

static char *devices_of(const struct trace *trace)
{
	GString *text = g_string_new(NULL);

	for (guint i = 0; i < trace->devices->len; i++)
		g_string_append_printf(
			text, "%s%u", i ? ", " : "",
			((struct trace_device *)g_ptr_array_index(trace->devices, i))->device);
	return g_string_free(text, FALSE);
}

static gboolean convert_trace(const struct options *o, GError **error)
{
	struct record_reader *reader = record_reader_open(o->source, error);
	struct progress bar;

	if (reader == NULL)
		return FALSE;
	const struct trace *trace = record_reader_trace(reader);
	g_autofree char *known = devices_of(trace);
	gboolean ok =
		o->device < 0 || trace_device_index(trace, o->device) != G_MAXUINT ||
		refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		       "%s has nothing of device %d; it has: %s", o->source, o->device, known);
	struct convert_job job = { .reader = reader,
				   .tracker = tracker_new(trace->memory_calls > 0),
				   .source = o->source,
				   .target = o->target,
				   .device = o->device,
				   .progress = &bar };
	progress_start(&bar, "events", trace->events);
	ok = ok && targets[o->to].convert(&job, error);
	progress_end(&bar);
	tracker_free(job.tracker);
	record_reader_close(reader);
	return ok;
}

static gboolean convert_result(const struct options *o, GError **error)
{
	g_autoptr(GPtrArray) results =
		g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
	JsonNode *result = result_file_read(o->source, error);
	char *names[] = { (char *)o->source, NULL };

	if (result == NULL)
		return FALSE;
	g_ptr_array_add(results, result);
	if (o->device >= 0 && result_device(result, o->device) == NULL)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s has nothing of device %d", o->source, o->device);
	return csv_write(o->target, o->series, results, names, o->device, error);
}

static gboolean convert(const struct options *o, GError **error)
{
	gboolean json;

	if (!out_file_check(o->target, error) || !input_keep(o->source, error) ||
	    !readers_file_is_result(o->source, &json, error))
		return FALSE;
	if (!json && o->series)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s: --series is for results of npusim replay --json; the rows of a "
			      "trace have its memory in them",
			      o->source);
	if (!json)
		return convert_trace(o, error);
	if (o->to == TO_CSV)
		return convert_result(o, error);
	return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		      "%s is JSON, as results of npusim replay are; a result has figures and no "
		      "events, and can become CSV, not %s",
		      o->source, targets[o->to].what);
}

#define SUMMARY                                                                                  \
	"Makes of A, a trace of any kind that npusim replay reads or a result of npusim replay " \
	"--json,\nanother kind of file, B. A file that is there is replaced."

int cmd_convert(int argc, char **argv)
{
	g_autofree char *to = NULL, *message = NULL;
	struct options o = { .device = -1 };
	const GOptionEntry entries[] = {
		{ "to", 0, 0, G_OPTION_ARG_STRING, &to,
		  "trace, chrome or csv, whatever B's ending (.npt, .json, .csv)", "KIND" },
		{ "device", 0, 0, G_OPTION_ARG_INT, &o.device, "only what is of device N", "N" },
		{ "series", 0, 0, G_OPTION_ARG_NONE, &o.series,
		  "of a result, its series instead of its figures", NULL },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("A B", SUMMARY, entries, OPTIONS_OF_READER, &argc, &argv, &status))
		return status;
	if (argc != 3)
		return usage_error("convert", "%s",
				   argc < 3 ? "from which file to which?" : "one file to one file");
	if (o.device < -1 || o.device > TRACE_DEVICE_LAST)
		return usage_error("convert", "--device %d: devices are 0 to %d", o.device,
				   TRACE_DEVICE_LAST);
	if (!choose(argv[2], to, &o.to, &message))
		return usage_error("convert", "%s", message);
	o.source = argv[1];
	o.target = argv[2];
	return convert(&o, &error) ? NPUSIM_EXIT_OK : failure_of("convert", error);
}
