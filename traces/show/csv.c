/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns are the members that are there, in the order in which they are first seen.
 */
#include "csv.h"

#include <string.h>

#include "result-file.h"

void csv_field(GString *out, gboolean first, const char *text)
{
	if (!first)
		g_string_append_c(out, ',');
	if (strpbrk(text, ",\"\n\r") == NULL) {
		g_string_append(out, text);
		return;
	}
	g_string_append_c(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			g_string_append_c(out, '"');
		g_string_append_c(out, *text);
	}
	g_string_append_c(out, '"');
}

static void field_of_node(GString *out, gboolean first, JsonNode *node)
{
	char number[G_ASCII_DTOSTR_BUF_SIZE];

	if (node == NULL || !JSON_NODE_HOLDS_VALUE(node)) {
		csv_field(out, first, "");
	} else if (json_node_get_value_type(node) == G_TYPE_STRING) {
		csv_field(out, first, json_node_get_string(node));
	} else if (json_node_get_value_type(node) == G_TYPE_DOUBLE) {
		csv_field(out, first,
			  g_ascii_dtostr(number, sizeof number, json_node_get_double(node)));
	} else if (json_node_get_value_type(node) == G_TYPE_BOOLEAN) {
		csv_field(out, first, json_node_get_boolean(node) ? "1" : "0");
	} else {
		g_snprintf(number, sizeof number, "%" G_GINT64_FORMAT, json_node_get_int(node));
		csv_field(out, first, number);
	}
}

static void add_once(GPtrArray *columns, const char *name)
{
	if (!g_ptr_array_find_with_equal_func(columns, name, g_str_equal, NULL))
		g_ptr_array_add(columns, g_strdup(name));
}

static void add_columns(GPtrArray *columns, JsonObject *object)
{
	g_autoptr(GList) members = json_object_get_members(object);

	for (GList *m = members; m; m = m->next) {
		JsonNode *node = json_object_get_member(object, m->data);
		if (JSON_NODE_HOLDS_VALUE(node))
			add_once(columns, m->data);
	}
}

static void head(GString *out, const char *const *fixed, GPtrArray *columns)
{
	for (guint i = 0; fixed[i]; i++)
		csv_field(out, i == 0, fixed[i]);
	for (guint c = 0; c < columns->len; c++)
		csv_field(out, FALSE, g_ptr_array_index(columns, c));
	g_string_append_c(out, '\n');
}

static JsonObject *device_of(JsonNode *result, guint d)
{
	JsonArray *devices = result_array(json_node_get_object(result), "devices");

	return d < json_array_get_length(devices) ? json_array_get_object_element(devices, d)
						  : NULL;
}

static void figures_line(GString *out, const char *name, JsonNode *result, JsonObject *device,
			 GPtrArray *columns)
{
	JsonObject *whole = json_node_get_object(result);

	csv_field(out, TRUE, name);
	csv_field(out, FALSE, result_text(whole, "file", ""));
	csv_field(out, FALSE, result_text(whole, "policy", ""));
	csv_field(out, FALSE, result_text(whole, "soc", ""));
	for (guint c = 0; c < columns->len; c++)
		field_of_node(out, FALSE,
			      json_object_get_member(device, g_ptr_array_index(columns, c)));
	g_string_append_c(out, '\n');
}

char *csv_of_figures(GPtrArray *results, char *const *names)
{
	static const char *const fixed[] = { "result", "file", "policy", "soc", NULL };
	g_autoptr(GPtrArray) columns = g_ptr_array_new_with_free_func(g_free);
	GString *out = g_string_new(NULL);
	JsonObject *device;

	for (guint i = 0; i < results->len; i++) {
		for (guint d = 0; (device = device_of(results->pdata[i], d)); d++)
			add_columns(columns, device);
	}
	head(out, fixed, columns);
	for (guint i = 0; i < results->len; i++) {
		for (guint d = 0; (device = device_of(results->pdata[i], d)); d++)
			figures_line(out, names[i], results->pdata[i], device, columns);
	}
	return g_string_free(out, FALSE);
}

/* ---- series ---- */

static void add_lists(GPtrArray *columns, JsonObject *series)
{
	g_autoptr(GList) members = json_object_get_members(series);

	for (GList *m = members; m; m = m->next) {
		if (result_array(series, m->data))
			add_once(columns, m->data);
	}
}

static void series_line(GString *out, JsonObject *series, GPtrArray *columns, guint at)
{
	for (guint c = 0; c < columns->len; c++) {
		JsonArray *list = result_array(series, g_ptr_array_index(columns, c));
		field_of_node(out, FALSE,
			      list && at < json_array_get_length(list)
				      ? json_array_get_element(list, at)
				      : NULL);
	}
	g_string_append_c(out, '\n');
}

static void series_lines(GString *out, const char *name, JsonNode *result, JsonObject *device,
			 GPtrArray *columns)
{
	JsonObject *series = result_object(device, "series");
	JsonArray *events = series ? result_array(series, "event") : NULL;

	for (guint i = 0; events && i < json_array_get_length(events); i++) {
		csv_field(out, TRUE, name);
		csv_field(out, FALSE, result_text(json_node_get_object(result), "policy", ""));
		field_of_node(out, FALSE, json_object_get_member(device, "device"));
		series_line(out, series, columns, i);
	}
}

char *csv_of_series(GPtrArray *results, char *const *names)
{
	static const char *const fixed[] = { "result", "policy", "device", NULL };
	g_autoptr(GPtrArray) columns = g_ptr_array_new_with_free_func(g_free);
	GString *out = g_string_new(NULL);
	JsonObject *device;

	for (guint i = 0; i < results->len; i++) {
		for (guint d = 0; (device = device_of(results->pdata[i], d)); d++) {
			if (result_object(device, "series"))
				add_lists(columns, result_object(device, "series"));
		}
	}
	head(out, fixed, columns);
	for (guint i = 0; i < results->len; i++) {
		for (guint d = 0; (device = device_of(results->pdata[i], d)); d++)
			series_lines(out, names[i], results->pdata[i], device, columns);
	}
	return g_string_free(out, FALSE);
}
