/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the figures that differ between two files, and shows them as columns as wide as their
 * contents, or as JSON; and compares two results by walking both trees at once along the table of
 * figures: the table says how a number is read, and what is not compared. A member that the table
 * does not have is a count or a string.
 */
#include "diff.h"

#include <math.h>

#include "base/base.h"
#include "figures.h"
#include "result-file.h"

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

static gboolean is_number(JsonNode *node)
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

/* Values of any types, which are taken over; what is no number is compared as text. `kind`: of
 * whole numbers. NULL: they do not differ. */
static struct difference *add(struct differences *differences, const char *group, const char *name,
			      enum member_kind kind, JsonNode *a, JsonNode *b)
{
	struct difference *f = g_new0(struct difference, 1);

	if ((a && !is_number(a)) || (b && !is_number(b)))
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
	add(differences, group, name, kind, whole_node(a), whole_node(b));
}

void differences_add_text(struct differences *differences, const char *group, const char *name,
			  const char *a, const char *b)
{
	add(differences, group, name, MEMBER_TEXT,
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

const struct member difference_members[] = {
	{ "group", MEMBER_TEXT, AT(difference, group) },
	{ "name", MEMBER_TEXT, AT(difference, name) },
	{ "a", MEMBER_NODE, AT(difference, values[0]) },
	{ "b", MEMBER_NODE, AT(difference, values[1]) },
	{ "change", MEMBER_NODE, AT(difference, change), .has = tells_change },
	{ "percent", MEMBER_REAL, .has = tells_percent, .real = percent_of },
	{ "axis", MEMBER_TEXT, AT(difference, axis) },
	{ "at", MEMBER_REAL, AT(difference, at), .has = has_axis },
	{ 0 },
};

/* ---- two results ---- */

struct walk {
	struct differences *differences;
	const char *group;
	guint limit;
};

/* `m`: the row of the nodes, or NULL; `name`: the path to them. One of the nodes may be NULL. */
static void walk_nodes(struct walk *w, const struct member *m, const char *name, JsonNode *a,
		       JsonNode *b);

static enum member_kind kind_of(const struct member *m)
{
	return m ? m->kind : MEMBER_COUNT;
}

static JsonObject *object_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static JsonArray *array_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static JsonNode *node_in(JsonObject *object, const char *name)
{
	return object ? json_object_get_member(object, name) : NULL;
}

/* NULL: it is no list of numbers. */
static JsonArray *numbers_in(JsonObject *object, const char *name)
{
	JsonArray *array = array_of(node_in(object, name));

	return array && json_array_get_length(array) > 0 &&
			       is_number(json_array_get_element(array, 0))
		       ? array
		       : NULL;
}

/* Of an object of columns, the one that says where each row is; NULL: it is none. */
static const char *axis_of(const struct member *m, JsonObject *object)
{
	for (const struct member *row = m ? m->members : NULL; row && row->kind; row++) {
		if (row->array == ARRAY_COLUMN && row->kind == MEMBER_PLACE &&
		    numbers_in(object, row->name))
			return row->name;
	}
	return NULL;
}

struct column {
	JsonArray *axis, *values;
	guint length, at; /* the row that holds now */
};

static struct column column_of(JsonObject *object, const char *axis, const char *name)
{
	struct column c = { numbers_in(object, axis), numbers_in(object, name), 0, 0 };

	if (c.values)
		c.length = MIN(json_array_get_length(c.axis), json_array_get_length(c.values));
	return c;
}

static double number_at(JsonArray *array, guint index)
{
	JsonNode *node = json_array_get_element(array, index);

	return is_number(node) ? json_node_get_double(node) : 0;
}

/* The place of the row behind the one that holds. */
static double next_place(const struct column *c)
{
	return c->at + 1 < c->length ? number_at(c->axis, c->at + 1) : INFINITY;
}

/* A value holds until the next row. */
static void series(struct walk *w, enum member_kind kind, const char *name, const char *axis,
		   struct column a, struct column b)
{
	double best = -1, at = 0;
	JsonNode *x, *y;

	if (a.length == 0 || b.length == 0)
		return;
	x = json_array_get_element(a.values, 0);
	y = json_array_get_element(b.values, 0);
	for (double place = number_at(a.axis, 0); !isinf(place);) {
		double apart = fabs(number_at(a.values, a.at) - number_at(b.values, b.at));
		if (apart > best) {
			best = apart;
			at = place;
			x = json_array_get_element(a.values, a.at);
			y = json_array_get_element(b.values, b.at);
		}
		double of_a = next_place(&a), of_b = next_place(&b);
		place = MIN(of_a, of_b);
		a.at += of_a <= place;
		b.at += of_b <= place;
	}
	g_autofree char *text = g_strconcat(name, ", furthest apart", NULL);
	struct difference *f =
		add(w->differences, w->group, text, kind, json_node_ref(x), json_node_ref(y));
	if (f) {
		f->axis = g_strdup(axis);
		f->at = at;
	}
}

/* The members of `of`, one of the two, but for those of `but`. */
static void members(struct walk *w, const struct member *m, const char *name, JsonObject *a,
		    JsonObject *b, JsonObject *of, JsonObject *but)
{
	const char *axis_a = axis_of(m, a), *axis_b = axis_of(m, b);
	const char *axis = g_strcmp0(axis_a, axis_b) == 0 ? axis_a : NULL;
	g_autoptr(GList) list = of ? json_object_get_members(of) : NULL;

	for (GList *l = list; l; l = l->next) {
		const char *key = l->data;
		/* of a map, one row is for all */
		const struct member *row = m == NULL               ? NULL
					   : m->kind == MEMBER_MAP ? m->members
								   : members_find(m->members, key);
		g_autofree char *path = g_strconcat(name, *name ? "." : "", key, NULL);
		if ((row && row->no_figure) || node_in(but, key))
			continue;
		if (axis == NULL)
			walk_nodes(w, row, path, node_in(a, key), node_in(b, key));
		else if (of == a && strcmp(key, axis) != 0)
			series(w, kind_of(row), path, axis, column_of(a, axis, key),
			       column_of(b, axis, key));
	}
}

/* What names a thing in a list: its first member that is a text; else its place. */
static char *name_in_list(JsonNode *node, guint index)
{
	JsonObject *object = object_of(node);
	g_autoptr(GList) list = object ? json_object_get_members(object) : NULL;

	for (GList *l = list; l; l = l->next) {
		const char *text = result_text(object, l->data, NULL);
		if (text)
			return g_strdup(text);
	}
	return g_strdup_printf("%u", index);
}

/* Name -> node; of one name the first. */
static GHashTable *by_name(JsonArray *array)
{
	GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (guint i = array ? json_array_get_length(array) : 0; i-- > 0;) {
		JsonNode *node = json_array_get_element(array, i);
		g_hash_table_replace(table, name_in_list(node, i), node);
	}
	return table;
}

static void arrays(struct walk *w, const struct member *m, const char *name,
		   JsonArray *const lists[2])
{
	g_autoptr(GHashTable) of_a = by_name(lists[0]), of_b = by_name(lists[1]);
	guint differ = 0;

	for (int side = 0; side < 2; side++) {
		guint length = lists[side] ? json_array_get_length(lists[side]) : 0;
		for (guint i = 0; i < length; i++) {
			JsonNode *thing = json_array_get_element(lists[side], i);
			g_autofree char *key = name_in_list(thing, i);
			g_autofree char *path = g_strdup_printf("%s[%s]", name, key);
			JsonNode *a = g_hash_table_lookup(of_a, key);
			JsonNode *b = g_hash_table_lookup(of_b, key);
			guint before = w->differences->list->len;
			if ((side ? b : a) != thing || (side && a))
				continue;
			walk_nodes(w, m && m->kind == MEMBER_LIST ? m : NULL, path, a, b);
			if (w->differences->list->len > before && ++differ > w->limit)
				g_ptr_array_set_size(w->differences->list, (gint)before);
		}
	}
	if (differ <= w->limit)
		return;
	g_autofree char *more = g_strdup_printf("%s, further that differ", name);
	differences_add_whole(w->differences, w->group, more, MEMBER_PLACE, differ - w->limit, 0);
}

static void walk_nodes(struct walk *w, const struct member *m, const char *name, JsonNode *a,
		       JsonNode *b)
{
	JsonObject *x = object_of(a), *y = object_of(b);
	JsonArray *const lists[] = { array_of(a), array_of(b) };

	if ((a == NULL || x) && (b == NULL || y)) {
		members(w, m, name, x, y, x, NULL);
		members(w, m, name, x, y, y, x);
	} else if ((a == NULL || lists[0]) && (b == NULL || lists[1])) {
		arrays(w, m, name, lists);
	} else {
		add(w->differences, w->group, name, kind_of(m), a ? json_node_ref(a) : NULL,
		    b ? json_node_ref(b) : NULL);
	}
}

static void walk_device(struct walk *w, gint64 number, JsonNode *a, JsonNode *b)
{
	static const struct member device = { "", MEMBER_OBJECT, .members = figures_device };
	g_autofree char *group = g_strdup_printf("device %" G_GINT64_FORMAT, number);

	w->group = group;
	if (a && b)
		walk_nodes(w, &device, "", a, b);
	else
		differences_add_text(w->differences, group, "device", a ? "there" : NULL,
				     b ? "there" : NULL);
}

void diff_results(JsonNode *const results[2], guint limit, struct differences *differences)
{
	static const struct member whole = { "", MEMBER_OBJECT, .members = figures_result };
	struct walk w = { .differences = differences, .group = "", .limit = limit };

	walk_nodes(&w, &whole, "", results[0], results[1]);
	for (int side = 0; side < 2; side++) {
		JsonArray *list = result_array(json_node_get_object(results[side]), "devices");
		for (guint i = 0; i < json_array_get_length(list); i++) {
			gint64 number =
				result_int(json_array_get_object_element(list, i), "device", -1);
			JsonNode *a = result_device(results[0], number);
			if (side == 0 || a == NULL)
				walk_device(&w, number, a, result_device(results[1], number));
		}
	}
}
