/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits text into rows for readers of tables, in one pass over the bytes; a row is kept as its
 * fields, each terminated by a zero.
 */
#include "rows.h"

#include <string.h>

#include "format/words.h"
#include "readers.h"

#define CHUNK_BYTES (256u << 10)
#define ROW_MAX     (16u << 20)
#define FIELDS_MAX  (64u << 10)

/* What a byte is for the splitting. */
enum kind { PLAIN, SEPARATOR, QUOTE, NEWLINE, RETURN, ZERO };

struct rows {
	struct input *input;
	char separator;
	guint8 kinds[256]; /* enum kind of each byte */
	guint8 *chunk;
	gsize count, at;
	GString *text;  /* fields, each with its zero */
	GArray *starts; /* guint32: where they begin in text */
	guint64 line;   /* of the next byte */
	guint64 first;  /* of the row */
	gboolean quoted, ended;
};

struct rows *rows_open(struct input *input, char separator)
{
	struct rows *r = g_new0(struct rows, 1);

	r->input = input;
	r->separator = separator;
	r->kinds[(guint8)separator] = SEPARATOR;
	r->kinds['\t'] = separator == ' ' ? SEPARATOR : PLAIN;
	r->kinds['"'] = separator == ',' ? QUOTE : PLAIN;
	r->kinds['\n'] = NEWLINE;
	r->kinds['\r'] = RETURN;
	r->kinds['\0'] = ZERO;
	r->chunk = g_malloc(CHUNK_BYTES);
	r->text = g_string_new(NULL);
	r->starts = g_array_new(FALSE, FALSE, sizeof(guint32));
	r->line = 1;
	return r;
}

void rows_close(struct rows *r)
{
	if (r == NULL)
		return;
	g_free(r->chunk);
	g_string_free(r->text, TRUE);
	g_array_unref(r->starts);
	g_free(r);
}

static int bad(const struct rows *r, const char *what, GError **error)
{
	readers_bad(r->first, error, "%s", what);
	return -1;
}

/* 1: there are bytes; 0: the end; -1: error. */
static int fill(struct rows *r, GError **error)
{
	if (r->at < r->count)
		return 1;
	gssize got = input_take(r->input, r->chunk, CHUNK_BYTES, error);
	if (got <= 0)
		return (int)got;
	r->count = (gsize)got;
	r->at = 0;
	return 1;
}

static void begin_field(struct rows *r)
{
	guint32 start = (guint32)r->text->len;

	g_array_append_val(r->starts, start);
}

static void end_field(struct rows *r)
{
	guint32 start = g_array_index(r->starts, guint32, r->starts->len - 1);

	if (r->separator == ' ' && start == r->text->len)
		return; /* blanks follow one another */
	g_string_append_c(r->text, '\0');
	begin_field(r);
}

/* A byte that may mean something. TRUE: the row ends here. */
static gboolean put(struct rows *r, char c, enum kind kind)
{
	r->line += kind == NEWLINE;
	if (kind == QUOTE)
		r->quoted = !r->quoted;
	else if (r->quoted)
		g_string_append_c(r->text, c);
	else if (kind == NEWLINE)
		return TRUE;
	else if (kind == SEPARATOR)
		end_field(r);
	return FALSE;
}

/* Blanks at the end of a row begin no field. */
static void end_row(struct rows *r)
{
	guint n = r->starts->len;

	if (r->separator == ' ' && n > 1 &&
	    g_array_index(r->starts, guint32, n - 1) == r->text->len)
		g_array_set_size(r->starts, n - 1);
}

static int take_row(struct rows *r, GError **error)
{
	int more;

	g_string_truncate(r->text, 0);
	g_array_set_size(r->starts, 0);
	begin_field(r);
	r->first = r->line;
	r->quoted = FALSE;
	while ((more = fill(r, error)) > 0) {
		/* the bytes up to the next one that means something, as they are */
		gsize from = r->at;
		while (r->at < r->count && r->kinds[r->chunk[r->at]] == PLAIN)
			r->at++;
		g_string_append_len(r->text, (const char *)r->chunk + from, (gssize)(r->at - from));
		if (r->text->len > ROW_MAX || r->starts->len > FIELDS_MAX)
			return bad(r, "a row of more than 16 MiB, or of more than 65536 fields",
				   error);
		if (r->at == r->count)
			continue;
		char c = (char)r->chunk[r->at++];
		enum kind kind = r->kinds[(guint8)c];
		if (kind == ZERO)
			return bad(r, "a zero byte: this is no text", error);
		if (put(r, c, kind)) {
			end_row(r);
			return 1;
		}
	}
	if (more == 0 && r->quoted)
		return bad(r, "a quote begins and does not end", error);
	r->ended = TRUE;
	end_row(r);
	return more < 0 ? -1 : r->text->len > 0;
}

int rows_next(struct rows *r, GError **error)
{
	int got = 0;

	do
		got = r->ended ? 0 : take_row(r, error);
	while (got > 0 && r->text->len == 0);
	return got;
}

guint rows_count(const struct rows *r)
{
	return r->starts->len;
}

const char *rows_field(const struct rows *r, guint index)
{
	return index < r->starts->len ? r->text->str + g_array_index(r->starts, guint32, index)
				      : "";
}

guint rows_column(const struct rows *r, const char *name)
{
	for (guint at = 0; at < rows_count(r); at++) {
		if (strcmp(rows_field(r, at), name) == 0)
			return at;
	}
	return G_MAXUINT;
}

gboolean rows_columns(const struct rows *r, const char *const *names, guint count, guint *out,
		      GError **error)
{
	for (guint i = 0; i < count; i++) {
		out[i] = rows_column(r, names[i]);
		if (out[i] == G_MAXUINT)
			return readers_bad(rows_line(r), error, "the header has no column \"%s\"",
					   names[i]);
	}
	return TRUE;
}

guint64 rows_line(const struct rows *r)
{
	return r->first;
}

gboolean rows_unsigned(const char *text, guint64 *out)
{
	return number_parse(text, strlen(text), out);
}

gboolean rows_signed(const char *text, gint64 *out)
{
	gboolean minus = text[0] == '-';
	guint64 v;

	if (!number_parse(text + minus, strlen(text + minus), &v) ||
	    v > (guint64)G_MAXINT64 + minus)
		return FALSE;
	*out = (gint64)(minus ? -v : v);
	return TRUE;
}

gboolean rows_scaled(const char *text, guint64 unit, gint64 *out)
{
	g_autofree char *whole = g_strndup(text, strcspn(text, "."));
	const char *point = text + strlen(whole);
	char *end = (char *)point;
	double part = *point ? g_ascii_strtod(point, &end) * (double)unit + 0.5 : 0;

	if (*end != '\0' || !(part >= 0 && part <= (double)unit + 0.5) ||
	    !rows_signed(whole, out) || ABS(*out) > G_MAXINT64 / (gint64)unit - 1)
		return FALSE;
	*out = *out * (gint64)unit + (text[0] == '-' ? -(gint64)part : (gint64)part);
	return TRUE;
}
