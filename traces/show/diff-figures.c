/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the figures that differ between two files, and shows them as columns as wide as their
 * contents, or as JSON. It does not know what the figures describe.
 */
#include "diff.h"

#include <math.h>

#include "base/base.h"

static void difference_free(gpointer data)
{
	struct difference *f = data;

	g_free(f->group);
	g_free(f->name);
	g_free(f->text[0]);
	g_free(f->text[1]);
	g_free(f->axis);
	g_free(f);
}

void differences_init(struct differences *differences)
{
	*differences =
		(struct differences){ .list = g_ptr_array_new_with_free_func(difference_free) };
}

void differences_clear(struct differences *differences)
{
	g_ptr_array_unref(differences->list);
}

static struct difference *add(struct differences *differences, const char *group, const char *name,
			      enum member_kind kind)
{
	struct difference *f = g_new0(struct difference, 1);

	f->group = g_strdup(group);
	f->name = g_strdup(name);
	f->kind = kind;
	f->has[0] = f->has[1] = TRUE;
	g_ptr_array_add(differences->list, f);
	return f;
}

void differences_add_whole(struct differences *differences, const char *group, const char *name,
			   enum member_kind kind, gint64 a, gint64 b)
{
	differences->equal += a == b;
	if (a == b)
		return;
	struct difference *f = add(differences, group, name, kind);
	f->whole[0] = a;
	f->whole[1] = b;
	f->real[0] = (double)a;
	f->real[1] = (double)b;
}

void differences_add_text(struct differences *differences, const char *group, const char *name,
			  const char *a, const char *b)
{
	gboolean equal = g_strcmp0(a, b) == 0;

	differences->equal += equal;
	if (equal)
		return;
	struct difference *f = add(differences, group, name, MEMBER_TEXT);
	f->has[0] = a != NULL;
	f->has[1] = b != NULL;
	f->text[0] = g_strdup(a);
	f->text[1] = g_strdup(b);
}

struct difference *differences_add_real(struct differences *differences, const char *group,
					const char *name, enum member_kind kind,
					const double values[2], int alone)
{
	gboolean equal =
		alone < 0 && (values[0] == values[1] || (isnan(values[0]) && isnan(values[1])));

	differences->equal += equal;
	if (equal)
		return NULL;
	struct difference *f = add(differences, group, name, kind);
	for (int side = 0; side < 2; side++) {
		f->has[side] = alone < 0 || alone == side;
		f->real[side] = values[side];
		f->whole[side] = kind == MEMBER_REAL ? 0 : (gint64)values[side];
	}
	return f;
}

/* ---- the table ---- */

static char *number_text(enum member_kind kind, gint64 whole, double real)
{
	if (kind == MEMBER_BYTES)
		return g_strdup(npu_size_words(whole));
	if (kind == MEMBER_TIME)
		return g_strdup_printf("%.3f us", real / 1e3);
	if (kind == MEMBER_REAL)
		return g_strdup_printf("%.6g", real);
	return g_strdup_printf("%" G_GINT64_FORMAT, whole);
}

static char *value_text(const struct difference *f, int side)
{
	if (!f->has[side])
		return g_strdup("-");
	if (f->kind == MEMBER_TEXT)
		return g_strdup(f->text[side]);
	return number_text(f->kind, f->whole[side], f->real[side]);
}

static gboolean has_change(const struct difference *f)
{
	return f->has[0] && f->has[1] && f->kind != MEMBER_TEXT && f->kind != MEMBER_PLACE;
}

static char *change_text(const struct difference *f)
{
	if (!has_change(f))
		return g_strdup("");
	gint64 whole = (gint64)((guint64)f->whole[1] - (guint64)f->whole[0]);
	double real = f->real[1] - f->real[0];
	g_autofree char *number = number_text(f->kind, whole, real);
	return g_strconcat(real > 0 ? "+" : "", number, NULL);
}

static double percent(const struct difference *f)
{
	return 100 * (f->real[1] - f->real[0]) / fabs(f->real[0]);
}

static char *percent_text(const struct difference *f)
{
	if (!has_change(f) || f->real[0] == 0)
		return g_strdup("");
	return g_strdup_printf("%+.2f %%", percent(f));
}

enum column { COLUMN_A, COLUMN_B, COLUMN_CHANGE, COLUMN_PERCENT, COLUMN_COUNT };

static char *cell(const struct difference *f, enum column column)
{
	return column == COLUMN_A        ? value_text(f, 0)
	       : column == COLUMN_B      ? value_text(f, 1)
	       : column == COLUMN_CHANGE ? change_text(f)
					 : percent_text(f);
}

static int columns_of(const char *text)
{
	return (int)g_utf8_strlen(text, -1);
}

static void measure(const struct differences *differences, int *name_width,
		    int widths[COLUMN_COUNT])
{
	static const int most[COLUMN_COUNT] = { 28, 28, 18, 12 };

	*name_width = 12;
	for (int c = 0; c < COLUMN_COUNT; c++)
		widths[c] = 6;
	for (guint i = 0; i < differences->list->len; i++) {
		const struct difference *f = g_ptr_array_index(differences->list, i);
		*name_width = MAX(*name_width, columns_of(f->name));
		for (int c = 0; c < COLUMN_COUNT; c++) {
			g_autofree char *text = cell(f, c);
			widths[c] = MAX(widths[c], MIN(columns_of(text), most[c]));
		}
	}
}

static void print_cell(FILE *out, const char *text, int width)
{
	fprintf(out, "  %*s%s", MAX(width - columns_of(text), 0), "", text);
}

void differences_print(const struct differences *differences, FILE *out)
{
	static const char *const heads[COLUMN_COUNT] = { "A", "B", "change", "" };
	const char *group = NULL;
	int name_width, widths[COLUMN_COUNT];

	measure(differences, &name_width, widths);
	for (guint i = 0; i < differences->list->len; i++) {
		const struct difference *f = g_ptr_array_index(differences->list, i);
		if (g_strcmp0(group, f->group) != 0) {
			group = f->group;
			fprintf(out, "\n%-*s", name_width + 2, *group ? group : "whole file");
			for (int c = 0; c < COLUMN_PERCENT; c++)
				print_cell(out, heads[c], widths[c]);
			fputc('\n', out);
		}
		fprintf(out, "  %s%*s", f->name, name_width - columns_of(f->name), "");
		for (int c = 0; c < COLUMN_COUNT; c++) {
			g_autofree char *text = cell(f, c);
			if (*text || c < COLUMN_CHANGE)
				print_cell(out, text, widths[c]);
		}
		if (f->axis)
			fprintf(out, "  at %s %.15g", f->axis, f->at);
		fputc('\n', out);
	}
}

/* ---- JSON ---- */

static void add_number(JsonBuilder *b, const struct difference *f, gint64 whole, double real)
{
	if (f->kind == MEMBER_REAL)
		json_builder_add_double_value(b, real);
	else
		json_builder_add_int_value(b, whole);
}

static void build_value(JsonBuilder *b, const struct difference *f, int side)
{
	if (!f->has[side])
		json_builder_add_null_value(b);
	else if (f->kind == MEMBER_TEXT)
		json_builder_add_string_value(b, f->text[side]);
	else
		add_number(b, f, f->whole[side], f->real[side]);
}

static void build_a(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	(void)context;
	build_value(b, at, 0);
}

static void build_b(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	(void)context;
	build_value(b, at, 1);
}

static void build_change(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct difference *f = at;

	(void)context;
	add_number(b, f, f->whole[1] - f->whole[0], f->real[1] - f->real[0]);
}

READ(gboolean, tells_change, difference, f, has_change(f))
READ(gboolean, tells_percent, difference, f, has_change(f) && f->real[0] != 0)
READ(double, percent_of, difference, f, percent(f))
READ(gboolean, has_axis, difference, f, f->axis != NULL)
READ(double, place_on_axis, difference, f, f->at)

const struct member difference_members[] = {
	{ "group", MEMBER_TEXT, AT(difference, group) },
	{ "name", MEMBER_TEXT, AT(difference, name) },
	{ "a", MEMBER_TEXT, .build = build_a },
	{ "b", MEMBER_TEXT, .build = build_b },
	{ "change", MEMBER_REAL, .has = tells_change, .build = build_change },
	{ "percent", MEMBER_REAL, .has = tells_percent, .real = percent_of },
	{ "axis", MEMBER_TEXT, AT(difference, axis) },
	{ "at", MEMBER_REAL, .has = has_axis, .real = place_on_axis },
	{ 0 },
};
