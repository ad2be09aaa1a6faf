/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two results by walking both trees at once along the table of figures: the table says
 * how a number is read, and what is not compared. A member that the table does not have is a count
 * or a string.
 */
#include "diff.h"

#include <math.h>
#include <string.h>

#include "figures.h"
#include "result-file.h"

struct walk {
	struct differences *differences;
	const char *group;
	guint limit;
};

/* `m`: the row of the nodes, or NULL; `name`: the path to them. One of the nodes may be NULL. */
static void walk_nodes(struct walk *w, const struct member *m, const char *name, JsonNode *a,
		       JsonNode *b);

/* ---- values ---- */

static gboolean is_of_type(JsonNode *node, GType type)
{
	return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

static gboolean is_number(JsonNode *node)
{
	return is_of_type(node, G_TYPE_INT64) || is_of_type(node, G_TYPE_DOUBLE);
}

/* What is no number, as text; free it. NULL: it is not there. */
static char *text_of(JsonNode *node)
{
	if (node == NULL || JSON_NODE_HOLDS_NULL(node))
		return NULL;
	return is_of_type(node, G_TYPE_STRING) ? g_strdup(json_node_get_string(node))
					       : json_to_string(node, FALSE);
}

static enum member_kind kind_of(const struct member *m)
{
	return m ? m->kind : MEMBER_COUNT;
}

static void values(struct walk *w, const struct member *m, const char *name, JsonNode *a,
		   JsonNode *b)
{
	JsonNode *alone = a && b ? NULL : a ? a : b;

	if (is_of_type(a, G_TYPE_INT64) && is_of_type(b, G_TYPE_INT64)) {
		differences_add_whole(w->differences, w->group, name, kind_of(m),
				      json_node_get_int(a), json_node_get_int(b));
	} else if (is_number(alone) || (is_number(a) && is_number(b))) {
		const double numbers[] = { a ? json_node_get_double(a) : 0,
					   b ? json_node_get_double(b) : 0 };
		differences_add_real(w->differences, w->group, name,
				     is_of_type(alone, G_TYPE_INT64) ? kind_of(m) : MEMBER_REAL,
				     numbers, alone ? alone == b : -1);
	} else {
		g_autofree char *x = text_of(a), *y = text_of(b);
		differences_add_text(w->differences, w->group, name, x, y);
	}
}

/* ---- series ---- */

static gboolean is_column(JsonNode *node)
{
	if (node == NULL || !JSON_NODE_HOLDS_ARRAY(node))
		return FALSE;
	JsonArray *array = json_node_get_array(node);
	return json_array_get_length(array) > 0 && is_number(json_array_get_element(array, 0));
}

/* Of an object of columns, the one that says where each row is; NULL: it is none. */
static const char *axis_of(const struct member *m, JsonObject *object)
{
	for (const struct member *row = m ? m->members : NULL; row && row->kind; row++) {
		if (row->array == ARRAY_COLUMN && row->kind == MEMBER_PLACE && object &&
		    is_column(json_object_get_member(object, row->name)))
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
	JsonNode *values = json_object_get_member(object, name);
	struct column c = { .axis = json_object_get_array_member(object, axis) };

	if (is_column(values)) {
		c.values = json_node_get_array(values);
		c.length = MIN(json_array_get_length(c.axis), json_array_get_length(c.values));
	}
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
	double best = -1, at = 0, values[2] = { 0, 0 };

	if (a.length == 0 || b.length == 0)
		return;
	for (double place = number_at(a.axis, 0);;) {
		double x = number_at(a.values, a.at), y = number_at(b.values, b.at);
		if (fabs(x - y) > best) {
			best = fabs(x - y);
			at = place;
			values[0] = x;
			values[1] = y;
		}
		double of_a = next_place(&a), of_b = next_place(&b);
		if (isinf(of_a) && isinf(of_b))
			break;
		place = MIN(of_a, of_b);
		a.at += of_a <= place;
		b.at += of_b <= place;
	}
	g_autofree char *text = g_strconcat(name, ", furthest apart", NULL);
	struct difference *f =
		differences_add_real(w->differences, w->group, text, kind, values, -1);
	if (f) {
		f->axis = g_strdup(axis);
		f->at = at;
	}
}

/* ---- objects and lists ---- */

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

static void objects(struct walk *w, const struct member *m, const char *name, JsonObject *a,
		    JsonObject *b)
{
	members(w, m, name, a, b, a, NULL);
	members(w, m, name, a, b, b, a);
}

/* What names a thing in a list: its first member that is a text; else its place. */
static char *name_in_list(JsonNode *node, guint index)
{
	JsonObject *object = object_of(node);
	g_autoptr(GList) list = object ? json_object_get_members(object) : NULL;

	for (GList *l = list; l; l = l->next) {
		JsonNode *value = json_object_get_member(object, l->data);
		if (is_of_type(value, G_TYPE_STRING))
			return g_strdup(json_node_get_string(value));
	}
	return g_strdup_printf("%u", index);
}

/* Name -> node; of one name the first. */
static GHashTable *by_name(JsonArray *array)
{
	GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (guint i = 0; array && i < json_array_get_length(array); i++) {
		JsonNode *node = json_array_get_element(array, i);
		char *name = name_in_list(node, i);
		if (g_hash_table_contains(table, name))
			g_free(name);
		else
			g_hash_table_insert(table, name, node);
	}
	return table;
}

/* The things of one of two lists, but for those whose names are in the other. */
static void things(struct walk *w, const struct member *m, const char *list, JsonArray *array,
		   GHashTable *const named[2], int side, guint *differ)
{
	for (guint i = 0; array && i < json_array_get_length(array); i++) {
		g_autofree char *key = name_in_list(json_array_get_element(array, i), i);
		g_autofree char *path = g_strdup_printf("%s[%s]", list, key);
		JsonNode *a = g_hash_table_lookup(named[0], key);
		JsonNode *b = g_hash_table_lookup(named[1], key);
		guint before = w->differences->list->len;
		if ((side ? b : a) != json_array_get_element(array, i) || (side && a))
			continue;
		walk_nodes(w, m && m->kind == MEMBER_LIST ? m : NULL, path, a, b);
		if (w->differences->list->len > before && ++*differ > w->limit)
			g_ptr_array_set_size(w->differences->list, (gint)before);
	}
}

static void arrays(struct walk *w, const struct member *m, const char *name, JsonArray *a,
		   JsonArray *b)
{
	g_autoptr(GHashTable) of_a = by_name(a), of_b = by_name(b);
	GHashTable *const named[] = { of_a, of_b };
	guint differ = 0;

	things(w, m, name, a, named, 0, &differ);
	things(w, m, name, b, named, 1, &differ);
	if (differ <= w->limit)
		return;
	g_autofree char *more = g_strdup_printf("%s, further that differ", name);
	differences_add_whole(w->differences, w->group, more, MEMBER_PLACE, differ - w->limit, 0);
}

static void walk_nodes(struct walk *w, const struct member *m, const char *name, JsonNode *a,
		       JsonNode *b)
{
	if ((a == NULL || object_of(a)) && (b == NULL || object_of(b)))
		objects(w, m, name, object_of(a), object_of(b));
	else if ((a == NULL || array_of(a)) && (b == NULL || array_of(b)))
		arrays(w, m, name, array_of(a), array_of(b));
	else
		values(w, m, name, a, b);
}

/* ---- devices ---- */

static void devices(struct walk *w, JsonNode *a, JsonNode *b, int side)
{
	static const struct member device = { "", MEMBER_OBJECT, .members = figures_device };
	JsonArray *list = result_array(json_node_get_object(side ? b : a), "devices");

	for (guint i = 0; i < json_array_get_length(list); i++) {
		gint64 number = result_int(json_array_get_object_element(list, i), "device", -1);
		JsonNode *x = result_device(a, number), *y = result_device(b, number);
		g_autofree char *group = g_strdup_printf("device %" G_GINT64_FORMAT, number);
		if (side && x)
			continue;
		w->group = group;
		if (x && y)
			walk_nodes(w, &device, "", x, y);
		else
			differences_add_text(w->differences, group, "device", x ? "there" : NULL,
					     y ? "there" : NULL);
	}
}

void diff_results(JsonNode *a, JsonNode *b, guint limit, struct differences *differences)
{
	static const struct member whole = { "", MEMBER_OBJECT, .members = figures_result };
	struct walk w = { .differences = differences, .group = "", .limit = limit };

	walk_nodes(&w, &whole, "", a, b);
	devices(&w, a, b, 0);
	devices(&w, a, b, 1);
}
