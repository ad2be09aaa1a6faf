/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the reader of a file by its first bytes, and words the errors about damaged files for
 * the readers.
 */
#include "readers.h"

#include <string.h>

#include "format/words.h"
#include "json-scan.h"

#define HEAD_BYTES (256u << 10) /* what tells whose file it is */

gboolean readers_is_json(const guint8 *bytes, gsize count)
{
	gsize i = 0;

	while (i < count && g_ascii_isspace(bytes[i]))
		i++;
	return i < count && (bytes[i] == '{' || bytes[i] == '[');
}

gboolean readers_begin_with(const guint8 *bytes, gsize count, const char *text)
{
	gsize length = strlen(text);

	return count >= length && memcmp(bytes, text, length) == 0;
}

gboolean readers_bad(guint64 line, GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %" G_GUINT64_FORMAT ": %s",
		      line, valid);
}

gboolean readers_number(guint64 line, const char *name, const char *text, gsize length,
			guint64 *out, GError **error)
{
	return (number_parse(text, length, out) && *out < READERS_ADDRESS_END) ||
	       readers_bad(line, error, "%s is \"%.*s\", no number below 2^56", name,
			   (int)MIN(length, 40), text);
}

gboolean readers_file_is_result(const char *path, gboolean *out, GError **error)
{
	struct input *input = input_open(path, error);
	g_autofree guint8 *head = g_malloc(HEAD_BYTES);
	gssize got = input ? input_take(input, head, HEAD_BYTES, error) : -1;

	input_close(input);
	*out = got > 0 && readers_is_json(head, (gsize)got) &&
	       json_kind_of(head, (gsize)got) == JSON_OTHER;
	return got >= 0;
}

/* ---- the choice ---- */

static const struct {
	gboolean (*recognise)(const guint8 *bytes, gsize count);
	struct trace *(*read)(struct input *input, GError **error);
} readers[] = {
	{ npusim_recognise, npusim_read },           { memscope_recognise, memscope_read },
	{ memscope_db_recognise, memscope_db_read }, { mindspore_recognise, mindspore_read },
	{ stalloc_recognise, stalloc_read },         { snapshot_recognise, snapshot_read },
	{ timeline_recognise, timeline_read },       { profiler_recognise, profiler_read },
};

/* What a file begins with says what it is. */
static struct trace *read_input(struct input *input, GError **error)
{
	g_autofree guint8 *head = g_malloc(HEAD_BYTES);
	gssize got = input_take(input, head, HEAD_BYTES, error);
	if (got >= 0 && !input_rewind(input, error))
		got = -1;
	for (guint i = 0; got > 0 && i < G_N_ELEMENTS(readers); i++) {
		if (readers[i].recognise(head, (gsize)got))
			return readers[i].read(input, error);
	}
	input_close(input);
	if (got > 0 && readers_is_json(head, (gsize)got))
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			"it is JSON, as a result of npusim replay --json is: npusim report, diff "
			"and convert read those, a replay wants the trace or snapshot itself");
	else if (got >= 0)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			    "%s: npusim reads memory snapshots of PyTorch and torch_npu (pickle, "
			    "JSON), memory events and tables of their profilers, npusim traces, "
			    "dumps of msMemScope (CSV, SQLite), memory_block.csv of MindSpore and "
			    "logs of STAlloc, each plain or .gz",
			    got == 0 ? "the file is empty" : "not a kind of file that is known");
	return NULL;
}

struct trace *trace_open(const char *path, GError **error)
{
	struct input *input = input_open(path, error);
	if (input == NULL)
		return NULL;
	GError *cause = NULL;
	struct trace *trace = read_input(input, &cause);
	if (trace)
		return trace;
	/* errors of the file itself name it already */
	if (cause->domain != G_FILE_ERROR) {
		g_autofree char *name = g_filename_display_name(path);
		g_prefix_error(&cause, "%s: ", name);
	}
	g_propagate_error(error, cause);
	return NULL;
}
