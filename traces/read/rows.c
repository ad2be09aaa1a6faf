/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits text into rows for readers of tables; a row is kept as its fields, each terminated by a
 * zero.
 */
#include "readers.h"

#include "base/base.h"

#define ROW_MAX    (16u << 20)
#define FIELDS_MAX (64u << 10)

/* A row is a line, or more where a quote goes over their ends. */
static int take_text(struct rows *r)
{
	struct input_line line = { 0 };
	int more = input_line(r->input, ROW_MAX, &line, r->error);
	gboolean quoted = FALSE;

	g_string_truncate(r->text, 0);
	r->line = line.number;
	for (; more > 0; more = input_line(r->input, ROW_MAX, &line, r->error)) {
		g_string_append_len(r->text, line.text, (gssize)line.length);
		for (const char *c = line.text; r->separator == ',' && (c = strchr(c, '"')); c++)
			quoted = !quoted;
		if (!quoted)
			break;
		if (r->text->len > ROW_MAX)
			return rows_bad(r, "a row of more than 16 MiB"), -1;
		g_string_append_c(r->text, '\n');
	}
	return more == 0 && quoted && !rows_bad(r, "a quote begins and does not end") ? -1 : more;
}

/* An empty row has no fields; where blanks separate, no field is empty. */
static void split(struct rows *r)
{
	gboolean blanks = r->separator == ' ', quoted = FALSE, more;

	if (g_str_has_suffix(r->text->str, "\r"))
		g_string_truncate(r->text, r->text->len - 1);
	char *to = r->text->str, *field = to;
	more = *to != '\0';
	for (const char *from = to; more && r->fields->len <= FIELDS_MAX; from++) {
		more = *from != '\0';
		if (*from == '"' && !blanks) {
			quoted = !quoted;
		} else if (more && (blanks ? !strchr(" \t\r", *from) : *from != ',' || quoted)) {
			*to++ = *from;
		} else {
			*to++ = '\0';
			if (!blanks || *field)
				g_ptr_array_add(r->fields, field);
			field = to;
		}
	}
}

/* 1: a row; 0: the end; -1 and error. */
static int next(struct rows *r)
{
	int more;

	do {
		more = take_text(r);
		g_ptr_array_set_size(r->fields, 0);
		if (more > 0)
			split(r);
	} while (more > 0 && r->fields->len == 0);
	if (r->fields->len > FIELDS_MAX)
		return rows_bad(r, "a row of more than %u fields", FIELDS_MAX), -1;
	if (more > 0 && r->fields->len < r->needed)
		return rows_bad(r, "%s, and %s is the %uth: the row breaks off",
				npu_counted(r->fields->len, "field"), r->needed_by, r->needed),
		       -1;
	return more;
}

static gboolean find_column(const struct rows *r, const char *name, guint *out)
{
	return name && g_ptr_array_find_with_equal_func(r->fields, name, g_str_equal, out);
}

static gboolean find_columns(struct rows *r, guint count)
{
	for (guint c = 0; c < count; c++) {
		const struct row_column *column = &r->columns[c];
		guint at = c;
		if (r->separator != ' ' && !find_column(r, column->name, &at) &&
		    !find_column(r, column->other, &at))
			at = G_MAXUINT;
		r->at[c] = at;
		if (column->optional)
			continue;
		if (at == G_MAXUINT)
			return rows_bad(r, "the header has no column \"%s\"", column->name);
		if (at >= r->needed) {
			r->needed = at + 1;
			r->needed_by = column->name;
		}
	}
	return TRUE;
}

gboolean rows_read(struct input *input, char separator, const struct row_column *columns,
		   guint count, gboolean (*take)(struct rows *rows, gpointer data), gpointer data,
		   GError **error)
{
	struct rows r = { .input = input,
			  .error = error,
			  .separator = separator,
			  .columns = columns,
			  .at = g_new0(guint, count),
			  .text = g_string_new(NULL),
			  .fields = g_ptr_array_new() };
	int more = separator == ' ' || next(&r) >= 0 ? 1 : -1;

	if (more > 0 && !find_columns(&r, count))
		more = -1;
	while (more > 0 && (more = next(&r)) > 0) {
		if (!take(&r, data))
			more = -1;
	}
	g_free(r.at);
	g_string_free(r.text, TRUE);
	g_ptr_array_unref(r.fields);
	return more == 0;
}

const char *rows_field(const struct rows *r, guint column)
{
	return r->at[column] < r->fields->len ? r->fields->pdata[r->at[column]] : "";
}

gboolean rows_number(const struct rows *r, guint column, guint64 *out)
{
	return line_number(r->line, r->columns[column].name, rows_field(r, column),
			   READERS_ADDRESS_LAST, out, r->error);
}

gboolean number_scaled(const char *text, guint64 unit, gint64 *out)
{
	g_autofree char *whole = g_strndup(text, strcspn(text, "."));
	const char *point = text + strlen(whole);
	char *end = (char *)point;
	double part = *point ? g_ascii_strtod(point, &end) * (double)unit + 0.5 : 0;
	/* differences of two fit into 64 bits as well */
	gint64 most = G_MAXINT64 / 2 / (gint64)unit - 1, number;

	if (*end != '\0' || !(part >= 0 && part <= (double)unit + 0.5) ||
	    !number_signed(whole, &number) || number > most || number < -most)
		return FALSE;
	*out = number * (gint64)unit + (text[0] == '-' ? -(gint64)part : (gint64)part);
	return TRUE;
}
