/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the figures that differ between two files, and shows them as columns or as JSON; and
 * compares two results by walking both trees at once along the table of figures, which says how a
 * number is read, and what is not compared. What it does not have is a count or a string.
 */
#include "show.h"

#include <math.h>

#include "base/base.h"

enum cell { CELL_GROUP, CELL_NAME, CELL_A, CELL_B, CELL_CHANGE, CELL_PERCENT, CELL_PLACE, CELLS };

void differences_init(struct differences *differences, guint limit)
{
	*differences = (struct differences){
		.rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev),
		.json = json_from_string("[]", NULL),
		.group = "",
		.limit = limit,
	};
}

void differences_clear(struct differences *differences)
{
	g_ptr_array_unref(differences->rows);
	json_node_unref(differences->json);
}

static gboolean is_real(JsonNode *node)
{
	return node && json_node_get_value_type(node) == G_TYPE_DOUBLE;
}

static gboolean is_number(JsonNode *node)
{
	return is_real(node) || (node && json_node_get_value_type(node) == G_TYPE_INT64);
}

/* The node, which it takes over, as a text; NULL: it is null, or not there. */
static JsonNode *as_text(JsonNode *node)
{
	g_autoptr(JsonNode) taken = node;

	if (node == NULL || JSON_NODE_HOLDS_NULL(node))
		return NULL;
	if (json_node_get_value_type(node) == G_TYPE_STRING)
		return g_steal_pointer(&taken);
	g_autofree char *text = json_to_string(node, FALSE);
	return json_node_init_string(json_node_alloc(), text);
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

/* A node, which is taken over; null in place of none, and of what JSON has no number for. */
static void set_member(JsonObject *object, const char *name, JsonNode *node)
{
	if (is_real(node) && !isfinite(json_node_get_double(node)))
		g_clear_pointer(&node, json_node_unref);
	json_object_set_member(object, name, node ?: json_node_new(JSON_NODE_NULL));
}

void differences_add(struct differences *differences, const char *name, enum member_kind kind,
		     JsonNode *of_a, JsonNode *of_b, const char *axis, double at)
{
	gboolean is_text =
		kind == MEMBER_TEXT || (of_a && !is_number(of_a)) || (of_b && !is_number(of_b));
	g_autoptr(JsonNode) a = is_text ? as_text(of_a) : of_a;
	g_autoptr(JsonNode) b = is_text ? as_text(of_b) : of_b;

	if (a && b ? json_node_equal(a, b) : a == b) {
		differences->equal++;
		return;
	}
	if (is_text || is_real(a) || is_real(b))
		kind = is_text ? MEMBER_TEXT : MEMBER_REAL;
	JsonObject *f = json_object_new();
	char **cells = g_new0(char *, CELLS + 1);
	cells[CELL_GROUP] = g_strdup(differences->group);
	cells[CELL_NAME] = g_strdup(name);
	cells[CELL_A] = value_text(kind, a);
	cells[CELL_B] = value_text(kind, b);
	json_object_set_string_member(f, "group", differences->group);
	json_object_set_string_member(f, "name", name);
	set_member(f, "a", a ? json_node_ref(a) : NULL);
	set_member(f, "b", b ? json_node_ref(b) : NULL);
	if (a && b && kind != MEMBER_TEXT && kind != MEMBER_PLACE) {
		double from = json_node_get_double(a), more = json_node_get_double(b) - from;
		guint64 whole = (guint64)json_node_get_int(b) - (guint64)json_node_get_int(a);
		JsonNode *change = kind == MEMBER_REAL
					   ? json_node_init_double(json_node_alloc(), more)
					   : json_node_init_int(json_node_alloc(), (gint64)whole);
		g_autofree char *text = value_text(kind, change);
		more = json_node_get_double(change);
		cells[CELL_CHANGE] = g_strconcat(more > 0 ? "+" : "", text, NULL);
		set_member(f, "change", change);
		if (from != 0) {
			double percent = 100 * more / fabs(from);
			cells[CELL_PERCENT] = g_strdup_printf("%+.2f %%", percent);
			set_member(f, "percent", json_node_init_double(json_node_alloc(), percent));
		}
	}
	if (axis) {
		cells[CELL_PLACE] = g_strdup_printf("  at %s %.15g", axis, at);
		json_object_set_string_member(f, "axis", axis);
		json_object_set_double_member(f, "at", at);
	}
	for (int c = 0; c < CELLS; c++)
		cells[c] = cells[c] ? cells[c] : g_strdup("");
	g_ptr_array_add(differences->rows, cells);
	json_array_add_object_element(json_node_get_array(differences->json), f);
}

#define COLUMNS(text) ((int)g_utf8_strlen(text, -1))

static void print_cell(FILE *out, const char *text, int width)
{
	fprintf(out, "  %*s%s", MAX(width - COLUMNS(text), 0), "", text);
}

void differences_print(const struct differences *differences, FILE *out)
{
	static const char *const heads[CELL_PERCENT] = {
		[CELL_A] = "A", [CELL_B] = "B", [CELL_CHANGE] = "change"
	};
	static const int most[CELL_PLACE] = { 0, G_MAXINT, 28, 28, 18, 12 };
	int widths[CELL_PLACE] = { 0, 12, 6, 6, 6, 6 };
	const GPtrArray *rows = differences->rows;
	const char *group = NULL;

	for (guint i = 0; i < rows->len; i++) {
		char **cells = g_ptr_array_index(rows, i);
		for (int c = CELL_NAME; c < CELL_PLACE; c++)
			widths[c] = MAX(widths[c], MIN(COLUMNS(cells[c]), most[c]));
	}
	for (guint i = 0; i < rows->len; i++) {
		char **cells = g_ptr_array_index(rows, i);
		if (g_strcmp0(group, cells[CELL_GROUP]) != 0) {
			group = cells[CELL_GROUP];
			fprintf(out, "\n%-*s", widths[CELL_NAME] + 2,
				*group ? group : "whole file");
			for (int c = CELL_A; c < CELL_PERCENT; c++)
				print_cell(out, heads[c], widths[c]);
			fputc('\n', out);
		}
		fprintf(out, "  %s%*s", cells[CELL_NAME],
			widths[CELL_NAME] - COLUMNS(cells[CELL_NAME]), "");
		for (int c = CELL_A; c < CELL_PLACE; c++) {
			if (*cells[c] || c < CELL_CHANGE)
				print_cell(out, cells[c], widths[c]);
		}
		fprintf(out, "%s\n", cells[CELL_PLACE]);
	}
}

/* NULL: it is no list of numbers. */
static JsonArray *numbers_in(JsonObject *object, const char *name)
{
	JsonArray *array = result_array(object, name);

	return array && json_array_get_length(array) > 0 &&
			       is_number(json_array_get_element(array, 0))
		       ? array
		       : NULL;
}

/* Of an object of columns, the one that says where each row is; NULL: it is none. */
static const char *axis_of(const struct member *table, JsonObject *object)
{
	for (const struct member *row = table; row && row->kind; row++) {
		if (row->array == ARRAY_COLUMN && row->kind == MEMBER_PLACE &&
		    numbers_in(object, row->name))
			return row->name;
	}
	return NULL;
}

/* Finite, so that behind all rows there is HUGE_VAL alone: 1e999 is the largest. */
static double number_of(JsonNode *node)
{
	double number = is_number(node) ? json_node_get_double(node) : 0;

	return CLAMP(number, -G_MAXDOUBLE, G_MAXDOUBLE);
}

static double number_at(JsonArray *array, guint index)
{
	return number_of(json_array_get_element(array, index));
}

/* Of a column that both objects have, where the two are furthest apart: a value holds until the
 * next row. Before A's first row there is nothing to compare. */
static void series(struct differences *differences, enum member_kind kind, const char *path,
		   const char *axis, const char *name, JsonObject *const objects[2])
{
	JsonArray *axes[2], *values[2];
	JsonNode *best[2] = { NULL, NULL };
	guint row[2] = { 0, 0 }, rows[2];
	double most = -1, furthest = 0, next;

	for (int side = 0; side < 2; side++) {
		axes[side] = numbers_in(objects[side], axis);
		values[side] = numbers_in(objects[side], name);
		if (values[side] == NULL)
			return;
		rows[side] =
			MIN(json_array_get_length(axes[side]), json_array_get_length(values[side]));
	}
	for (double place = number_at(axes[0], 0); place < HUGE_VAL; place = next) {
		JsonNode *now[2];
		next = HUGE_VAL;
		for (int side = 0; side < 2; side++) {
			while (row[side] + 1 < rows[side] &&
			       number_at(axes[side], row[side] + 1) <= place)
				row[side]++;
			now[side] = json_array_get_element(values[side], row[side]);
			if (row[side] + 1 < rows[side])
				next = MIN(next, number_at(axes[side], row[side] + 1));
		}
		double apart = fabs(number_of(now[0]) - number_of(now[1]));
		if (apart <= most)
			continue;
		most = apart;
		furthest = place;
		memcpy(best, now, sizeof best);
	}
	g_autofree char *text = g_strconcat(path, ", furthest apart", NULL);
	differences_add(differences, text, kind, json_node_ref(best[0]), json_node_ref(best[1]),
			axis, furthest);
}

/* The members of an object; the things of a list by name, of one name the first. What names a thing
 * is its first member that is a text; else its place. */
static JsonObject *members_of(JsonNode *node)
{
	JsonObject *members;

	if (node && JSON_NODE_HOLDS_OBJECT(node))
		return json_object_ref(json_node_get_object(node));
	members = json_object_new();
	for (guint i = 0; node && i < json_array_get_length(json_node_get_array(node)); i++) {
		JsonNode *thing = json_array_get_element(json_node_get_array(node), i);
		JsonObject *object =
			JSON_NODE_HOLDS_OBJECT(thing) ? json_node_get_object(thing) : NULL;
		g_autoptr(GList) list = object ? json_object_get_members(object) : NULL;
		g_autofree char *place = g_strdup_printf("%u", i);
		const char *name = NULL;
		for (GList *l = list; l && name == NULL; l = l->next)
			name = result_text(object, l->data, NULL);
		if (!json_object_has_member(members, name ?: place))
			json_object_set_member(members, name ?: place, json_node_ref(thing));
	}
	return members;
}

/* `kind`, `table`: of the nodes, as their row has them; `name`: their path. A node may be NULL. */
static void walk_nodes(struct differences *differences, enum member_kind kind,
		       const struct member *table, const char *name, JsonNode *a, JsonNode *b)
{
	JsonNode *there = a ? a : b;
	gboolean list = JSON_NODE_HOLDS_ARRAY(there);
	GPtrArray *found = differences->rows;
	JsonArray *told = json_node_get_array(differences->json);
	guint differ = 0;

	if ((!list && !JSON_NODE_HOLDS_OBJECT(there)) ||
	    (b && json_node_get_node_type(b) != json_node_get_node_type(there))) {
		differences_add(differences, name, kind, a ? json_node_ref(a) : NULL,
				b ? json_node_ref(b) : NULL, NULL, 0);
		return;
	}
	g_autoptr(JsonObject) x = members_of(a), y = members_of(b);
	JsonObject *const both[] = { x, y };
	const char *axis = list ? NULL : axis_of(table, x);
	if (g_strcmp0(axis, axis_of(table, y)) != 0)
		axis = NULL;
	for (int side = 0; side < 2; side++) {
		g_autoptr(GList) keys = json_object_get_members(both[side]);
		for (GList *k = keys; k; k = k->next) {
			const char *key = k->data;
			/* of a list and a map, the table is that of each thing */
			gboolean things = list || kind == MEMBER_MAP;
			const struct member *row = things ? NULL : members_find(table, key);
			enum member_kind of = row ? row->kind : MEMBER_COUNT;
			g_autofree char *path =
				list ? g_strdup_printf("%s[%s]", name, key)
				     : g_strconcat(name, *name ? "." : "", key, NULL);
			guint before = found->len;
			if ((row && row->no_figure) || (side && json_object_has_member(x, key)))
				continue;
			if (axis == NULL)
				walk_nodes(differences, of,
					   things ? table
					   : row  ? row->members
						  : NULL,
					   path, json_object_get_member(x, key),
					   json_object_get_member(y, key));
			else if (side == 0 && strcmp(key, axis) != 0)
				series(differences, of, path, axis, key, both);
			if (!list || found->len == before || ++differ <= differences->limit)
				continue;
			g_ptr_array_set_size(found, (gint)before);
			while (json_array_get_length(told) > before)
				json_array_remove_element(told, json_array_get_length(told) - 1);
		}
	}
	if (differ <= differences->limit)
		return;
	g_autofree char *more = g_strdup_printf("%s, further that differ", name);
	differences_add(differences, more, MEMBER_PLACE,
			json_node_init_int(json_node_alloc(), differ - differences->limit),
			json_node_init_int(json_node_alloc(), 0), NULL, 0);
}

void diff_results(JsonNode *const results[2], struct differences *differences)
{
	walk_nodes(differences, MEMBER_OBJECT, figures_result, "", results[0], results[1]);
	for (int side = 0; side < 2; side++) {
		JsonObject *result = json_node_get_object(results[side]);
		JsonArray *list = result_array(result, "devices");
		differences->kinds[side] = result_text(result, "kind", "a result");
		differences->events[side] = (guint64)result_int(result, "events", 0);
		for (guint i = 0; i < json_array_get_length(list); i++) {
			gint64 number =
				result_int(json_array_get_object_element(list, i), "device", -1);
			JsonNode *a = result_device(results[0], number);
			JsonNode *b = result_device(results[1], number);
			differences->group =
				g_intern_string(npu_text("device %" G_GINT64_FORMAT, number));
			if (json_array_get_element(list, i) != (side ? b : a))
				continue; /* the first of a number counts */
			if (a && b && side == 0)
				walk_nodes(differences, MEMBER_OBJECT, figures_device, "", a, b);
			else if (a == NULL || b == NULL)
				differences_add(differences, "device", MEMBER_TEXT,
						json_from_string(a ? "\"there\"" : "null", NULL),
						json_from_string(b ? "\"there\"" : "null", NULL),
						NULL, 0);
		}
	}
}
