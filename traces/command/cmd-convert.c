/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim convert: reads a trace or a result and writes it as another kind of file.
 */
#include "npusim.h"

#include "read/readers.h"
#include "show/show.h"

enum target { TO_TRACE, TO_CHROME, TO_CSV, TO_COUNT };

static const struct {
	const char *ending, *what;
	const struct convert_format *format;
} targets[TO_COUNT] = {
	[TO_TRACE] = { ".npt", "a trace of npusim", &convert_to_trace },
	[TO_CHROME] = { ".json", "the JSON of Chrome's trace viewer and Perfetto",
			&convert_to_chrome },
	[TO_CSV] = { ".csv", "comma-separated values", &convert_to_csv },
};

static guint to = TO_COUNT;
static gint64 device = -1;
static gboolean series;

static const char *const kinds[] = { "trace", "chrome", "csv", NULL };
static const struct option options[] = {
	OPTION_WORDS("to", &to, kinds, "KIND",
		     "trace, chrome or csv, whatever B's ending (.npt, .json, .csv)"),
	OPTION_RANGE("device", NUMBER, &device, 0, TRACE_DEVICE_LAST, "N",
		     "only what is of device N"),
	OPTION("series", FLAG, &series, NULL, "of a result, its series instead of its figures"),
	{ 0 },
};

static gboolean convert_trace(const char *source, const char *target, GError **error)
{
	struct trace *trace = trace_open(source, error);

	if (trace == NULL)
		return FALSE;
	g_autoptr(GString) known = g_string_new(NULL);
	for (guint i = 0; i < trace->devices->len; i++)
		g_string_append_printf(known, "%s%u", i ? ", " : "",
				       ((struct trace_device *)trace->devices->pdata[i])->device);
	gboolean ok = device < 0 || trace_device_index(trace, (int)device) != G_MAXUINT ||
		      refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			     "%s has nothing of device %" G_GINT64_FORMAT "; it has: %s", source,
			     device, known->str);
	ok = ok && convert_run(trace, targets[to].format, target, (int)device, error);
	trace_free(trace);
	return ok;
}

static int run(char **words, GError **error)
{
	const char *source = words[0], *target = words[1];
	g_autofree char *plain = g_str_has_suffix(target, ".gz")
					 ? g_strndup(target, strlen(target) - 3)
					 : g_strdup(target);
	gboolean json;

	if (to == TO_COUNT) /* without --to, by the ending */
		for (to = 0; to < TO_COUNT && !g_str_has_suffix(plain, targets[to].ending);)
			to++;
	if (to == TO_COUNT)
		return refuse_option(
			error,
			"%s: the ending says what it becomes: .npt (a trace), .json (for Chrome "
			"and Perfetto) or .csv, each also with .gz; or say it with --to trace, "
			"chrome or csv",
			target);
	if (!out_file_check(target, error) || !readers_file_is_result(source, &json, error))
		return NPUSIM_EXIT_FAILED;
	if (!json && series)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s: --series is for results of npusim replay --json; the rows of a "
			      "trace have its memory in them",
			      source);
	if (!json)
		return convert_trace(source, target, error) ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
	if (to != TO_CSV)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s is JSON, as results of npusim replay are; a result has figures "
			      "and no events, and can become CSV, not %s",
			      source, targets[to].what);
	g_autoptr(GPtrArray) results =
		g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
	JsonNode *result = result_file_read(source, error);
	if (result == NULL)
		return NPUSIM_EXIT_FAILED;
	g_ptr_array_add(results, result);
	if (device >= 0 && result_device(result, device) == NULL)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s has nothing of device %" G_GINT64_FORMAT, source, device);
	return csv_write(target, series, results, words, (int)device, error) ? NPUSIM_EXIT_OK
									     : NPUSIM_EXIT_FAILED;
}

VERB(convert, "make a trace, a Chrome trace or CSV of a trace or a result", "A B",
     "Makes of A, a trace of any kind that npusim replay reads or a result of npusim replay "
     "--json,\nanother kind of file, B. A file that is there is replaced.",
     2, 2, WITH_READER, options, run);
