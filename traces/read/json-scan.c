/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over JSON byte by byte: nesting, values and the names of members near the root count,
 * whether the rest is valid is for the parser to say.
 */
#include "json-scan.h"

#include <string.h>

#include "format/input.h"
#include "format/memory-limit.h"

#define VALUE_BYTES 320 /* what json-glib keeps of a value with its name, at most */
#define LOOK_EVERY  4096

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
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT,
		      "line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT ": %s", s->line,
		      s->at - s->line_at + 1, what);
}

static void take_text(struct scan *s)
{
	s->text = ++s->at;
	while (s->at < s->count && s->bytes[s->at] != '"')
		s->at += s->bytes[s->at] == '\\' ? 2 : 1;
	s->text_end = s->at = MIN(s->at, s->count);
}

static gboolean take(struct scan *s, GError **error)
{
	switch (s->bytes[s->at]) {
	case '\n':
		s->line++;
		s->line_at = s->at + 1;
		return TRUE;
	case '"':
		take_text(s);
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
				"line %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT
				": the values up to here",
				s->line, s->at - s->line_at + 1);
}

gboolean json_scan(const guint8 *bytes, gsize count, enum json_kind *out, GError **error)
{
	struct scan s = { .bytes = bytes, .count = count, .line = 1 };
	gboolean ok = TRUE;

	for (; ok && s.at < count; s.at++)
		ok = take(&s, error);
	*out = s.kind;
	return ok && memory_limit_ask(s.values * VALUE_BYTES + 2 * count, error,
				      "the values of all %" G_GSIZE_FORMAT " bytes", count);
}

enum json_kind json_kind_of(const guint8 *bytes, gsize count)
{
	enum json_kind kind;

	json_scan(bytes, count, &kind, NULL);
	return kind;
}
