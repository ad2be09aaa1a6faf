/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns as wide as what is in them.
 */
#include "diff-figures.h"

#include <math.h>

#include "json-out.h"

#define MIB 1048576.0

static void figure_free(gpointer data)
{
	struct figure *f = data;

	g_free(f->group);
	g_free(f->name);
	g_free(f->text[0]);
	g_free(f->text[1]);
	g_free(f->axis);
	g_free(f);
}

void figures_init(struct figures *figures)
{
	*figures = (struct figures){ .list = g_ptr_array_new_with_free_func(figure_free) };
}

void figures_clear(struct figures *figures)
{
	g_ptr_array_unref(figures->list);
}

static struct figure *add(struct figures *figures, const char *group, const char *name,
			  enum figure_kind kind)
{
	struct figure *f = g_new0(struct figure, 1);

	f->group = g_strdup(group);
	f->name = g_strdup(name);
	f->kind = kind;
	f->has[0] = f->has[1] = TRUE;
	g_ptr_array_add(figures->list, f);
	return f;
}

void figures_whole(struct figures *figures, const char *group, const char *name,
		   enum figure_kind kind, gint64 a, gint64 b)
{
	figures->equal += a == b;
	if (a == b)
		return;
	struct figure *f = add(figures, group, name, kind);
	f->whole[0] = a;
	f->whole[1] = b;
	f->real[0] = (double)a;
	f->real[1] = (double)b;
}

void figures_real(struct figures *figures, const char *group, const char *name, double a, double b)
{
	gboolean equal = a == b || (isnan(a) && isnan(b));

	figures->equal += equal;
	if (equal)
		return;
	struct figure *f = add(figures, group, name, FIGURE_REAL);
	f->real[0] = a;
	f->real[1] = b;
}

void figures_text(struct figures *figures, const char *group, const char *name, const char *a,
		  const char *b)
{
	gboolean equal = g_strcmp0(a, b) == 0;

	figures->equal += equal;
	if (equal)
		return;
	struct figure *f = add(figures, group, name, FIGURE_TEXT);
	f->has[0] = a != NULL;
	f->has[1] = b != NULL;
	f->text[0] = g_strdup(a);
	f->text[1] = g_strdup(b);
}

void figures_series(struct figures *figures, const char *group, const char *name,
		    enum figure_kind kind, const double values[2], const char *axis, double at)
{
	figures->equal += values[0] == values[1];
	if (values[0] == values[1])
		return;
	struct figure *f = add(figures, group, name, kind);
	for (int side = 0; side < 2; side++) {
		f->real[side] = values[side];
		f->whole[side] = (gint64)values[side];
	}
	f->axis = g_strdup(axis);
	f->at = at;
}

void figures_alone(struct figures *figures, const char *group, const char *name, int side,
		   gboolean is_real, double value, const char *text, enum figure_kind kind)
{
	struct figure *f = add(figures, group, name,
			       text      ? FIGURE_TEXT
			       : is_real ? FIGURE_REAL
					 : kind);

	f->has[1 - side] = FALSE;
	f->whole[side] = is_real || text ? 0 : (gint64)value;
	f->real[side] = value;
	f->text[side] = g_strdup(text);
}

/* ---- the table ---- */

char *figures_bytes(gint64 bytes)
{
	if (bytes == 0)
		return g_strdup("0");
	if (ABS(bytes) < 1 << 20 && bytes % 1024 != 0)
		return g_strdup_printf("%" G_GINT64_FORMAT " bytes", bytes);
	if (ABS(bytes) < 1 << 20)
		return g_strdup_printf("%" G_GINT64_FORMAT " KiB", bytes / 1024);
	return g_strdup_printf("%.2f MiB", bytes / MIB);
}

static char *number_text(enum figure_kind kind, gint64 whole, double real)
{
	if (kind == FIGURE_BYTES)
		return figures_bytes(whole);
	if (kind == FIGURE_NS)
		return g_strdup_printf("%.3f us", real / 1e3);
	if (kind == FIGURE_REAL)
		return g_strdup_printf("%.6g", real);
	return g_strdup_printf("%" G_GINT64_FORMAT, whole);
}

static char *value_text(const struct figure *f, int side)
{
	if (!f->has[side])
		return g_strdup("-");
	if (f->kind == FIGURE_TEXT)
		return g_strdup(f->text[side]);
	return number_text(f->kind, f->whole[side], f->real[side]);
}

static gboolean has_change(const struct figure *f)
{
	return f->has[0] && f->has[1] && f->kind != FIGURE_TEXT && f->kind != FIGURE_PLACE;
}

static char *change_text(const struct figure *f)
{
	if (!has_change(f))
		return g_strdup("");
	gint64 whole = (gint64)((guint64)f->whole[1] - (guint64)f->whole[0]);
	double real = f->real[1] - f->real[0];
	g_autofree char *number = number_text(f->kind, whole, real);
	return g_strconcat(real > 0 ? "+" : "", number, NULL);
}

static double percent(const struct figure *f)
{
	return 100 * (f->real[1] - f->real[0]) / fabs(f->real[0]);
}

static char *percent_text(const struct figure *f)
{
	if (!has_change(f) || f->real[0] == 0)
		return g_strdup("");
	return g_strdup_printf("%+.2f %%", percent(f));
}

enum column { COLUMN_A, COLUMN_B, COLUMN_CHANGE, COLUMN_PERCENT, COLUMN_COUNT };

static char *cell(const struct figure *f, enum column column)
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

static void measure(const struct figures *figures, int *name_width, int widths[COLUMN_COUNT])
{
	static const int most[COLUMN_COUNT] = { 28, 28, 18, 12 };

	*name_width = 12;
	for (int c = 0; c < COLUMN_COUNT; c++)
		widths[c] = 6;
	for (guint i = 0; i < figures->list->len; i++) {
		const struct figure *f = g_ptr_array_index(figures->list, i);
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

void figures_print(const struct figures *figures, FILE *out)
{
	static const char *const heads[COLUMN_COUNT] = { "A", "B", "change", "" };
	const char *group = NULL;
	int name_width, widths[COLUMN_COUNT];

	measure(figures, &name_width, widths);
	for (guint i = 0; i < figures->list->len; i++) {
		const struct figure *f = g_ptr_array_index(figures->list, i);
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

static void build_value(const struct figure *f, int side, JsonBuilder *b)
{
	json_builder_set_member_name(b, side ? "b" : "a");
	if (!f->has[side])
		json_builder_add_null_value(b);
	else if (f->kind == FIGURE_TEXT)
		json_builder_add_string_value(b, f->text[side]);
	else if (f->kind == FIGURE_REAL)
		json_builder_add_double_value(b, f->real[side]);
	else
		json_builder_add_int_value(b, f->whole[side]);
}

void figures_build(const struct figures *figures, JsonBuilder *b)
{
	json_builder_set_member_name(b, "figures");
	json_builder_begin_array(b);
	for (guint i = 0; i < figures->list->len; i++) {
		const struct figure *f = g_ptr_array_index(figures->list, i);
		json_builder_begin_object(b);
		member_text(b, "group", f->group);
		member_text(b, "name", f->name);
		build_value(f, 0, b);
		build_value(f, 1, b);
		if (has_change(f) && f->kind == FIGURE_REAL)
			member_real(b, "change", f->real[1] - f->real[0]);
		else if (has_change(f))
			member_int(b, "change", f->whole[1] - f->whole[0]);
		if (has_change(f) && f->real[0] != 0)
			member_real(b, "percent", percent(f));
		if (f->axis) {
			member_text(b, "axis", f->axis);
			member_real(b, "at", f->at);
		}
		json_builder_end_object(b);
	}
	json_builder_end_array(b);
}
