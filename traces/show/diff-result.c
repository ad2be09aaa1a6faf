/* SPDX-License-Identifier: Apache-2.0
 *
 * A walk through two trees at once.
 */
#include "diff-result.h"

#include <math.h>
#include <string.h>

struct walk {
	struct figures *figures;
	const char *group;
	guint limit;
};

static void walk_nodes(struct walk *w, const char *name, JsonNode *a, JsonNode *b);

/* ---- values ---- */

static enum figure_kind kind_of(const char *name)
{
	return g_str_has_suffix(name, "bytes") || strstr(name, "_bytes_")          ? FIGURE_BYTES
	       : g_str_has_suffix(name, "_ns")                                     ? FIGURE_NS
	       : g_str_has_suffix(name, "line") || g_str_has_suffix(name, "event") ? FIGURE_PLACE
										   : FIGURE_COUNT;
}

static gboolean is_number(JsonNode *node)
{
	GType type =
		node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_NONE;

	return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE;
}

static gboolean is_whole(JsonNode *node)
{
	return is_number(node) && json_node_get_value_type(node) == G_TYPE_INT64;
}

/* What is no number, as text; free it. NULL: it is not there. */
static char *text_of(JsonNode *node)
{
	if (node == NULL || JSON_NODE_HOLDS_NULL(node))
		return NULL;
	if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
		return g_strdup(json_node_get_string(node));
	return json_to_string(node, FALSE);
}

static void one_value(struct walk *w, const char *name, int side, JsonNode *node)
{
	g_autofree char *text = is_number(node) ? NULL : text_of(node);

	figures_alone(w->figures, w->group, name, side, is_number(node) && !is_whole(node),
		      is_number(node) ? json_node_get_double(node) : 0, text, kind_of(name));
}

static void values(struct walk *w, const char *name, JsonNode *a, JsonNode *b)
{
	if (is_whole(a) && is_whole(b)) {
		figures_whole(w->figures, w->group, name, kind_of(name), json_node_get_int(a),
			      json_node_get_int(b));
	} else if (is_number(a) && is_number(b)) {
		figures_real(w->figures, w->group, name, json_node_get_double(a),
			     json_node_get_double(b));
	} else {
		g_autofree char *x = text_of(a), *y = text_of(b);
		figures_text(w->figures, w->group, name, x, y);
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

/* An object of columns of one length, the first of which says where each row is. */
static const char *axis_of(JsonObject *object)
{
	static const char *const known[] = { "event", "line", "time_ns", "number" };

	for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
		if (is_column(json_object_get_member(object, known[i])))
			return known[i];
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

	if (is_column(values))
		c.values = json_node_get_array(values);
	c.length =
		c.values ? MIN(json_array_get_length(c.axis), json_array_get_length(c.values)) : 0;
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
static void series(struct walk *w, const char *name, const char *axis, struct column a,
		   struct column b)
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
	figures_series(w->figures, w->group, text, kind_of(name), values, axis, at);
}

static void all_series(struct walk *w, const char *name, JsonObject *a, JsonObject *b,
		       const char *axis)
{
	g_autoptr(GList) members = json_object_get_members(a);

	for (GList *m = members; m; m = m->next) {
		g_autofree char *path = g_strconcat(name, ".", m->data, NULL);
		if (strcmp(m->data, axis) != 0)
			series(w, path, axis, column_of(a, axis, m->data),
			       column_of(b, axis, m->data));
	}
}

/* ---- objects and lists ---- */

static char *path_to(const char *name, const char *member)
{
	return *name ? g_strconcat(name, ".", member, NULL) : g_strdup(member);
}

static JsonNode *member(JsonObject *object, const char *name)
{
	return object ? json_object_get_member(object, name) : NULL;
}

/* What is no figure: where the result is from, and pictures of what its figures say. */
static gboolean is_left_out(const char *path, const char *name)
{
	static const char *const whole[] = { "file",    "kind",    "about", "wall_us",
					     "program", "devices", NULL };
	static const char *const anywhere[] = { "address_map", "frame_map", "histogram", "words",
						NULL };

	return g_strv_contains(whole, path) || g_strv_contains(anywhere, name);
}

static void members(struct walk *w, const char *name, JsonObject *a, JsonObject *b, int pass)
{
	g_autoptr(GList) list = json_object_get_members(pass ? b : a);

	for (GList *m = list; m; m = m->next) {
		g_autofree char *path = path_to(name, m->data);
		if (is_left_out(path, m->data) || (pass && member(a, m->data)))
			continue;
		walk_nodes(w, path, member(a, m->data), member(b, m->data));
	}
}

static void objects(struct walk *w, const char *name, JsonObject *a, JsonObject *b)
{
	const char *of_a = a ? axis_of(a) : NULL, *of_b = b ? axis_of(b) : NULL;

	if (of_a && of_b && strcmp(of_a, of_b) == 0) {
		all_series(w, name, a, b, of_a);
		return;
	}
	if (a)
		members(w, name, a, b, 0);
	if (b)
		members(w, name, a, b, 1);
}

/* What names a thing in a list: its first member that is a text; else its place. */
static char *name_in_list(JsonNode *node, guint index)
{
	if (!JSON_NODE_HOLDS_OBJECT(node))
		return g_strdup_printf("%u", index);
	JsonObject *object = json_node_get_object(node);
	g_autoptr(GList) list = json_object_get_members(object);
	for (GList *m = list; m; m = m->next) {
		JsonNode *value = json_object_get_member(object, m->data);
		if (JSON_NODE_HOLDS_VALUE(value) &&
		    json_node_get_value_type(value) == G_TYPE_STRING)
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

static void thing(struct walk *w, const char *list, const char *name, JsonNode *x, JsonNode *y,
		  guint *differ)
{
	g_autofree char *path = g_strdup_printf("%s[%s]", list, name);
	guint before = w->figures->list->len;

	walk_nodes(w, path, x, y);
	if (w->figures->list->len == before)
		return;
	if (++*differ > w->limit)
		g_ptr_array_set_size(w->figures->list, (gint)before);
}

static void arrays(struct walk *w, const char *name, JsonArray *a, JsonArray *b)
{
	g_autoptr(GHashTable) of_a = by_name(a), of_b = by_name(b);
	guint differ = 0;

	for (guint i = 0; a && i < json_array_get_length(a); i++) {
		JsonNode *node = json_array_get_element(a, i);
		g_autofree char *key = name_in_list(node, i);
		if (g_hash_table_lookup(of_a, key) == node)
			thing(w, name, key, node, g_hash_table_lookup(of_b, key), &differ);
	}
	for (guint i = 0; b && i < json_array_get_length(b); i++) {
		JsonNode *node = json_array_get_element(b, i);
		g_autofree char *key = name_in_list(node, i);
		if (g_hash_table_lookup(of_b, key) == node && !g_hash_table_contains(of_a, key))
			thing(w, name, key, NULL, node, &differ);
	}
	if (differ <= w->limit)
		return;
	g_autofree char *more = g_strdup_printf("%s, further that differ", name);
	figures_whole(w->figures, w->group, more, FIGURE_PLACE, differ - w->limit, 0);
}

static JsonObject *object_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static JsonArray *array_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static void walk_nodes(struct walk *w, const char *name, JsonNode *a, JsonNode *b)
{
	if ((a == NULL || object_of(a)) && (b == NULL || object_of(b)))
		objects(w, name, object_of(a), object_of(b));
	else if ((a == NULL || array_of(a)) && (b == NULL || array_of(b)))
		arrays(w, name, array_of(a), array_of(b));
	else if (a && b)
		values(w, name, a, b);
	else
		one_value(w, name, b ? 1 : 0, a ? a : b);
}

/* ---- devices ---- */

static JsonNode *device_of(JsonNode *result, gint64 number)
{
	JsonArray *devices = json_object_get_array_member(json_node_get_object(result), "devices");

	for (guint i = 0; i < json_array_get_length(devices); i++) {
		JsonNode *node = json_array_get_element(devices, i);
		if (json_object_get_int_member_with_default(json_node_get_object(node), "device",
							    -1) == number)
			return node;
	}
	return NULL;
}

static void devices(struct walk *w, JsonNode *a, JsonNode *b, int pass)
{
	JsonArray *list =
		json_object_get_array_member(json_node_get_object(pass ? b : a), "devices");

	for (guint i = 0; i < json_array_get_length(list); i++) {
		JsonObject *object = json_array_get_object_element(list, i);
		gint64 number = json_object_get_int_member_with_default(object, "device", -1);
		JsonNode *x = device_of(a, number), *y = device_of(b, number);
		g_autofree char *group = g_strdup_printf("device %" G_GINT64_FORMAT, number);
		if (pass && x)
			continue;
		w->group = group;
		if (x && y)
			walk_nodes(w, "", x, y);
		else
			figures_text(w->figures, group, "device", x ? "there" : NULL,
				     y ? "there" : NULL);
	}
}

void diff_results(JsonNode *a, JsonNode *b, guint limit, struct figures *figures)
{
	struct walk w = { .figures = figures, .group = "", .limit = limit };

	objects(&w, "", json_node_get_object(a), json_node_get_object(b));
	devices(&w, a, b, 0);
	devices(&w, a, b, 1);
}
