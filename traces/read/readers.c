/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the reader of a file by its first bytes; and reads JSON, which is looked at before a
 * parser builds it.
 */
#include "readers.h"

#include <stdio.h>

#define HEAD_BYTES  (256u << 10) /* what tells whose file it is */
#define VALUE_BYTES 320          /* what json-glib keeps of a value with its name, at most */
#define LOOK_EVERY  4096

gboolean readers_is_json(const guint8 *bytes, gsize count)
{
	gsize i = 0;

	while (i < count && g_ascii_isspace(bytes[i]))
		i++;
	return i < count && (bytes[i] == '{' || bytes[i] == '[');
}

/* ---- JSON, byte by byte: nesting, values and the names of members near the root count ---- */

static const struct {
	const char *name;
	guint depth; /* of the member's object: 2 is that in a list */
	enum json_kind kind;
} members[] = {
	{ "device_traces", 1, JSON_SNAPSHOT },
	{ "segments", 1, JSON_SNAPSHOT },
	{ "segment_type", 2, JSON_SNAPSHOT },
	{ "blocks", 2, JSON_SNAPSHOT },
	{ "traceEvents", 1, JSON_TIMELINE },
	{ "deviceProperties", 1, JSON_TIMELINE },
	{ "ph", 2, JSON_TIMELINE },
};

struct scan {
	const guint8 *bytes;
	gsize count, at;
	gsize line, line_at; /* of `at`; where that line begins */
	guint depth;
	gboolean in_list;     /* the root is a list */
	gsize text, text_end; /* the last string, without its quotes */
	guint64 values;
	enum json_kind kind;
};

static gboolean bad(const struct scan *s, GError **error, const char *what)
{
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %zu, column %zu: %s", s->line,
		      s->at - s->line_at + 1, what);
}

/* Of a surrogate pair: an escape of U+D800 and on, of which the second digit is one of these. */
static gboolean is_half(const struct scan *s, gsize at, const char *digits)
{
	return at + 3 < s->count && s->bytes[at] == '\\' && s->bytes[at + 1] == 'u' &&
	       g_ascii_tolower((char)s->bytes[at + 2]) == 'd' &&
	       memchr(digits, s->bytes[at + 3], strlen(digits));
}

static gboolean take(struct scan *s, GError **error)
{
	switch (s->bytes[s->at]) {
	case '\n':
		s->line++;
		s->line_at = s->at + 1;
		return TRUE;
	case '"':
		s->text = ++s->at;
		while (s->at < s->count && s->bytes[s->at] != '"') {
			/* json-glib makes no UTF-8 of one alone, or leaks the text before it */
			if (is_half(s, s->at, "89abAB") && is_half(s, s->at + 6, "cdefCDEF"))
				s->at += 8;
			else if (is_half(s, s->at, "89abcdefABCDEF"))
				return bad(s, error, "half of a surrogate pair");
			s->at += s->bytes[s->at] == '\\' ? 2 : 1;
		}
		s->text_end = s->at = MIN(s->at, s->count);
		return TRUE;
	case ':':
		for (guint i = 0; s->kind == JSON_OTHER && i < G_N_ELEMENTS(members); i++)
			if (s->depth == members[i].depth && s->in_list == (s->depth == 2) &&
			    s->text_end - s->text == strlen(members[i].name) &&
			    memcmp(s->bytes + s->text, members[i].name, s->text_end - s->text) == 0)
				s->kind = members[i].kind;
		return TRUE;
	case '/':
	case '#':
		return bad(s, error, "a comment: JSON has none");
	case ']':
	case '}':
		s->depth -= s->depth > 0;
		return TRUE;
	case '[':
	case '{':
		if (s->depth == 0 && s->values > 0) /* json-glib leaks the first */
			return bad(s, error, "one more document begins");
		if (s->depth == 0)
			s->in_list = s->bytes[s->at] == '[';
		if (++s->depth > JSON_DEPTH_MAX)
			return bad(s, error,
				   "lists and objects are nested more than " G_STRINGIFY(
					   JSON_DEPTH_MAX) " deep, which no result of npusim "
							   "is");
		break;
	case ',':
		break;
	default:
		return TRUE;
	}
	/* the tree, and the text that may be written of it */
	return ++s->values % LOOK_EVERY != 0 ||
	       memory_limit_ask(s->values * VALUE_BYTES + 2 * s->at, error,
				"line %zu, column %zu: the values up to here", s->line,
				s->at - s->line_at + 1);
}

static gboolean json_scan(const guint8 *bytes, gsize count, enum json_kind *out, GError **error)
{
	struct scan s = { .bytes = bytes, .count = count, .line = 1 };
	gboolean ok = TRUE;

	for (; ok && s.at < count; s.at++)
		ok = take(&s, error);
	*out = s.kind;
	return ok && memory_limit_ask(s.values * VALUE_BYTES + 2 * count, error,
				      "the values of all %zu bytes", count);
}

JsonNode *json_load(const guint8 *bytes, gsize count, gboolean result, GError **error)
{
	g_autoptr(JsonParser) parser = json_parser_new_immutable();
	g_autoptr(GError) cause = NULL;
	enum json_kind kind;
	unsigned line, column;
	int at = 0;

	if (!json_scan(bytes, count, &kind, error))
		return NULL;
	if (result && kind != JSON_OTHER)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN, "it is a trace, no result"),
		       NULL;
	if (json_parser_load_from_data(parser, (const char *)bytes, (gssize)count, &cause))
		return json_parser_steal_root(parser);
	sscanf(cause->message, "<data>:%u:%u: Parse error: %n", &line, &column, &at);
	g_autofree char *place =
		at > 0 ? g_strdup_printf("line %u, column %u: ", line, column) : g_strdup("");
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%sit is no valid JSON: %s", place,
		      cause->message + at),
	       NULL;
}

gboolean readers_file_is_result(const char *path, gboolean *out, GError **error)
{
	struct input *input = input_open(path, error);
	g_autofree guint8 *head = g_malloc(HEAD_BYTES);
	gssize got = input ? input_take(input, head, HEAD_BYTES, error) : -1;
	gboolean json = got > 0 && readers_is_json(head, (gsize)got);
	enum json_kind kind = JSON_OTHER;

	input_close(input);
	if (json)
		json_scan(head, (gsize)got, &kind, NULL);
	*out = json && kind == JSON_OTHER;
	return got >= 0;
}

#define SNAPSHOT_KIND "memory snapshot of PyTorch or torch_npu"

static const struct reader {
	const char *begins; /* how its files do: a regular expression; NULL: they are JSON of */
	enum json_kind json;
	reader_fn *read;
	const char *kind;
} readers[] = {
	{ "^" FORMAT_MAGIC " ", 0, npusim_read, "npusim trace" },
	{ "^ID,Event,Event Type,", 0, memscope_read, "msMemScope dump (CSV)" },
	{ "^SQLite format 3", 0, memscope_db_read, "msMemScope dump (SQLite)" },
	{ "^start_time_stamp,end_time_stamp,", 0, mindspore_read, "MindSpore memory_block.csv" },
	/* a mark of an iteration, or numbers alone */
	{ "^(Iteration Index|[01] [[:xdigit:]xX \\-\\r]*(\\n|\\z))", 0, stalloc_read,
	  "STAlloc log" },
	{ "^\\x80[\\x02-\\x05]", 0, snapshot_read, SNAPSHOT_KIND },
	{ NULL, JSON_SNAPSHOT, snapshot_read, SNAPSHOT_KIND },
	{ NULL, JSON_TIMELINE, timeline_read, "trace of PyTorch's profiler" },
	{ "^((Device_id,)?Name,Size\\(KB\\),Allocation Time\\(us\\)|"
	  "Component,Timestamp\\(us\\),Total Allocated\\(MB\\))",
	  0, profiler_read, "table of Ascend's profiler" },
};

struct trace *readers_read(reader_fn *read, const char *kind, struct input *input, GError **error)
{
	struct trace *trace = trace_new(kind);

	if (!read(trace, input, error) || !trace_rewind(trace, error))
		g_clear_pointer(&trace, trace_free);
	if (read != npusim_read)
		input_close(input);
	return trace;
}

struct trace *trace_open(const char *path, GError **error)
{
	struct input *input = input_open(path, error);
	if (input == NULL)
		return NULL;
	/* what a file begins with says what it is */
	g_autofree guint8 *head = g_malloc0(HEAD_BYTES + 1);
	GError *cause = NULL;
	gssize got = input_take(input, head, HEAD_BYTES, &cause);
	gboolean is_json = got > 0 && readers_is_json(head, (gsize)got);
	enum json_kind json = JSON_OTHER;
	const struct reader *r = readers, *end = readers + G_N_ELEMENTS(readers);
	struct trace *trace = NULL;

	if (is_json)
		json_scan(head, (gsize)got, &json, NULL);
	while (r < end &&
	       (r->begins ? !g_regex_match_simple(r->begins, (const char *)head, G_REGEX_RAW, 0)
			  : r->json != json))
		r++;
	input_rewind(input);
	if (got > 0 && r < end)
		trace = readers_read(r->read, r->kind, input, &cause);
	else
		input_close(input);
	if (trace)
		return trace;
	if (is_json && r == end)
		g_set_error(
			&cause, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			"it is JSON, as a result of npusim replay --json is: npusim report, diff "
			"and convert read those, a replay wants the trace or snapshot itself");
	else if (cause == NULL)
		g_set_error(&cause, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			    "%s: npusim reads memory snapshots of PyTorch and torch_npu (pickle, "
			    "JSON), memory events and tables of their profilers, npusim traces, "
			    "dumps of msMemScope (CSV, SQLite), memory_block.csv of MindSpore and "
			    "logs of STAlloc, each plain or .gz",
			    got == 0 ? "the file is empty" : "not a kind of file that is known");
	/* errors of the file itself name it already */
	if (cause->domain != G_FILE_ERROR) {
		g_autofree char *name = g_filename_display_name(path);
		g_prefix_error(&cause, "%s: ", name);
	}
	g_propagate_error(error, cause);
	return NULL;
}
