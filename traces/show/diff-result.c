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
			       node_is_number(json_array_get_element(array, 0))
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

	return node_is_number(node) ? json_node_get_double(node) : 0;
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
	struct difference *f = differences_add(w->differences, w->group, text, kind,
					       json_node_ref(x), json_node_ref(y));
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
		differences_add(w->differences, w->group, name, kind_of(m),
				a ? json_node_ref(a) : NULL, b ? json_node_ref(b) : NULL);
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
