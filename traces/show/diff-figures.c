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
	g_free(f->axis);
	g_clear_pointer(&f->values[0], json_node_unref);
	g_clear_pointer(&f->values[1], json_node_unref);
	g_clear_pointer(&f->change, json_node_unref);
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

gboolean node_is_number(JsonNode *node)
{
	GType type = node ? json_node_get_value_type(node) : G_TYPE_NONE;

	return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE;
}

static gboolean is_real(JsonNode *node)
{
	return node && json_node_get_value_type(node) == G_TYPE_DOUBLE;
}

static JsonNode *whole_node(gint64 value)
{
	return json_node_init_int(json_node_alloc(), value);
}

static JsonNode *real_node(double value)
{
	return json_node_init_double(json_node_alloc(), value);
}

/* The node, which it takes over, as a value of the kind. */
static JsonNode *as_kind(JsonNode *node, enum member_kind kind)
{
	JsonNode *out;

	if (node == NULL || (kind == MEMBER_REAL ? is_real(node) : kind != MEMBER_TEXT) ||
	    json_node_get_value_type(node) == G_TYPE_STRING)
		return node;
	g_autofree char *text = json_to_string(node, FALSE);
	if (kind == MEMBER_REAL)
		out = real_node(json_node_get_double(node));
	else
		out = JSON_NODE_HOLDS_NULL(node) ? NULL
						 : json_node_init_string(json_node_alloc(), text);
	json_node_unref(node);
	return out;
}

static JsonNode *change_of(const struct difference *f)
{
	JsonNode *a = f->values[0], *b = f->values[1];

	if (a == NULL || b == NULL || f->kind == MEMBER_TEXT || f->kind == MEMBER_PLACE)
		return NULL;
	return f->kind == MEMBER_REAL ? real_node(json_node_get_double(b) - json_node_get_double(a))
				      : whole_node((gint64)((guint64)json_node_get_int(b) -
							    (guint64)json_node_get_int(a)));
}

struct difference *differences_add(struct differences *differences, const char *group,
				   const char *name, enum member_kind kind, JsonNode *a,
				   JsonNode *b)
{
	struct difference *f = g_new0(struct difference, 1);

	if ((a && !node_is_number(a)) || (b && !node_is_number(b)))
		kind = MEMBER_TEXT;
	else if (is_real(a) || is_real(b))
		kind = MEMBER_REAL;
	*f = (struct difference){ .group = g_strdup(group),
				  .name = g_strdup(name),
				  .kind = kind,
				  .values = { as_kind(a, kind), as_kind(b, kind) } };
	a = f->values[0];
	b = f->values[1];
	if (a && b ? json_node_equal(a, b) : a == b) {
		differences->equal++;
		difference_free(f);
		return NULL;
	}
	f->change = change_of(f);
	g_ptr_array_add(differences->list, f);
	return f;
}

void differences_add_whole(struct differences *differences, const char *group, const char *name,
			   enum member_kind kind, gint64 a, gint64 b)
{
	differences_add(differences, group, name, kind, whole_node(a), whole_node(b));
}

void differences_add_text(struct differences *differences, const char *group, const char *name,
			  const char *a, const char *b)
{
	differences_add(differences, group, name, MEMBER_TEXT,
			a ? json_node_init_string(json_node_alloc(), a) : NULL,
			b ? json_node_init_string(json_node_alloc(), b) : NULL);
}

static char *value_text(enum member_kind kind, JsonNode *node)
{
	if (node == NULL)
		return g_strdup("-");
	if (kind == MEMBER_TEXT)
		return json_node_dup_string(node);
	if (kind == MEMBER_BYTES)
		return g_strdup(npu_size_words(json_node_get_int(node)));
	if (kind == MEMBER_TIME)
		return g_strdup_printf("%.3f us", json_node_get_double(node) / 1e3);
	if (kind == MEMBER_REAL)
		return g_strdup_printf("%.6g", json_node_get_double(node));
	return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node));
}

static double percent(const struct difference *f)
{
	return 100 * json_node_get_double(f->change) / fabs(json_node_get_double(f->values[0]));
}

static gboolean has_percent(const struct difference *f)
{
	return f->change && json_node_get_double(f->values[0]) != 0;
}

enum cell { CELL_NAME, CELL_A, CELL_B, CELL_CHANGE, CELL_PERCENT, CELL_COUNT };

static char **cells_of(const struct difference *f)
{
	char **cells = g_new0(char *, CELL_COUNT + 1);

	cells[CELL_NAME] = g_strdup(f->name);
	cells[CELL_A] = value_text(f->kind, f->values[0]);
	cells[CELL_B] = value_text(f->kind, f->values[1]);
	g_autofree char *change = f->change ? value_text(f->kind, f->change) : g_strdup("");
	gboolean more = f->change && json_node_get_double(f->change) > 0;
	cells[CELL_CHANGE] = g_strconcat(more ? "+" : "", change, NULL);
	cells[CELL_PERCENT] =
		has_percent(f) ? g_strdup_printf("%+.2f %%", percent(f)) : g_strdup("");
	return cells;
}

static int columns_of(const char *text)
{
	return (int)g_utf8_strlen(text, -1);
}

static void print_cell(FILE *out, const char *text, int width)
{
	fprintf(out, "  %*s%s", MAX(width - columns_of(text), 0), "", text);
}

void differences_print(const struct differences *differences, FILE *out)
{
	static const char *const heads[CELL_PERCENT] = { "", "A", "B", "change" };
	static const int most[CELL_COUNT] = { G_MAXINT, 28, 28, 18, 12 };
	g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
	int widths[CELL_COUNT] = { 12, 6, 6, 6, 6 };
	const char *group = NULL;

	for (guint i = 0; i < differences->list->len; i++) {
		char **cells = cells_of(g_ptr_array_index(differences->list, i));
		g_ptr_array_add(rows, cells);
		for (int c = 0; c < CELL_COUNT; c++)
			widths[c] = MAX(widths[c], MIN(columns_of(cells[c]), most[c]));
	}
	for (guint i = 0; i < rows->len; i++) {
		const struct difference *f = g_ptr_array_index(differences->list, i);
		char **cells = g_ptr_array_index(rows, i);
		if (g_strcmp0(group, f->group) != 0) {
			group = f->group;
			fprintf(out, "\n%-*s", widths[CELL_NAME] + 2,
				*group ? group : "whole file");
			for (int c = CELL_A; c < CELL_PERCENT; c++)
				print_cell(out, heads[c], widths[c]);
			fputc('\n', out);
		}
		fprintf(out, "  %s%*s", f->name, widths[CELL_NAME] - columns_of(f->name), "");
		for (int c = CELL_A; c < CELL_COUNT; c++) {
			if (*cells[c] || c < CELL_CHANGE)
				print_cell(out, cells[c], widths[c]);
		}
		if (f->axis)
			fprintf(out, "  at %s %.15g", f->axis, f->at);
		fputc('\n', out);
	}
}

READ(gboolean, tells_change, difference, f, f->change != NULL)
READ(gboolean, tells_percent, difference, f, has_percent(f))
READ(double, percent_of, difference, f, percent(f))
READ(gboolean, has_axis, difference, f, f->axis != NULL)
READ(double, place_on_axis, difference, f, f->at)

const struct member difference_members[] = {
	{ "group", MEMBER_TEXT, AT(difference, group) },
	{ "name", MEMBER_TEXT, AT(difference, name) },
	{ "a", MEMBER_NODE, AT(difference, values[0]) },
	{ "b", MEMBER_NODE, AT(difference, values[1]) },
	{ "change", MEMBER_NODE, AT(difference, change), .has = tells_change },
	{ "percent", MEMBER_REAL, .has = tells_percent, .real = percent_of },
	{ "axis", MEMBER_TEXT, AT(difference, axis) },
	{ "at", MEMBER_REAL, .has = has_axis, .real = place_on_axis },
	{ 0 },
};
