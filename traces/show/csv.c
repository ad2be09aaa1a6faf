/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes results as CSV: the columns are the members that exist, in the order in which they first
 * occur.
 */
#include "csv.h"

#include <string.h>

#include "format/out-file.h"
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

/* Never the first of a line. */
static void field_of_node(GString *out, JsonNode *node)
{
	GType type =
		node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_NONE;
	char number[G_ASCII_DTOSTR_BUF_SIZE] = "";

	if (type == G_TYPE_DOUBLE)
		g_ascii_dtostr(number, sizeof number, json_node_get_double(node));
	else if (type == G_TYPE_BOOLEAN)
		g_strlcpy(number, json_node_get_boolean(node) ? "1" : "0", sizeof number);
	else if (type == G_TYPE_INT64)
		g_snprintf(number, sizeof number, "%" G_GINT64_FORMAT, json_node_get_int(node));
	csv_field(out, FALSE, type == G_TYPE_STRING ? json_node_get_string(node) : number);
}

/* The members of a kind that are not there yet. */
static void add_columns(GPtrArray *columns, JsonObject *object, JsonNodeType type)
{
	g_autoptr(GList) members = json_object_get_members(object);

	for (GList *m = members; m; m = m->next) {
		if (json_node_get_node_type(json_object_get_member(object, m->data)) == type &&
		    !g_ptr_array_find_with_equal_func(columns, m->data, g_str_equal, NULL))
			g_ptr_array_add(columns, g_strdup(m->data));
	}
}

/* A device of a result. */
struct subject {
	const char *name; /* of the result's file */
	JsonObject *result, *device;
};

static GArray *subjects_of(GPtrArray *results, char *const *names, gint wanted)
{
	GArray *subjects = g_array_new(FALSE, FALSE, sizeof(struct subject));

	for (guint i = 0; i < results->len; i++) {
		JsonObject *result = json_node_get_object(results->pdata[i]);
		JsonArray *devices = result_array(result, "devices");
		for (guint d = 0; d < json_array_get_length(devices); d++) {
			JsonObject *device = json_array_get_object_element(devices, d);
			struct subject s = { names[i], result, device };
			if (wanted < 0 || result_int(device, "device", -1) == wanted)
				g_array_append_val(subjects, s);
		}
	}
	return subjects;
}

static void figures(GString *out, const struct subject *s, GPtrArray *columns)
{
	csv_field(out, TRUE, s->name);
	csv_field(out, FALSE, result_text(s->result, "file", ""));
	csv_field(out, FALSE, result_text(s->result, "policy", ""));
	csv_field(out, FALSE, result_text(s->result, "soc", ""));
	for (guint c = 0; c < columns->len; c++)
		field_of_node(out, json_object_get_member(s->device, columns->pdata[c]));
	g_string_append_c(out, '\n');
}

/* A result without a series has no line. */
static void points(GString *out, const struct subject *s, GPtrArray *columns)
{
	JsonObject *series = result_object(s->device, "series");
	JsonArray *events = series ? result_array(series, "event") : NULL;

	for (guint i = 0; events && i < json_array_get_length(events); i++) {
		csv_field(out, TRUE, s->name);
		csv_field(out, FALSE, result_text(s->result, "policy", ""));
		field_of_node(out, json_object_get_member(s->device, "device"));
		for (guint c = 0; c < columns->len; c++) {
			JsonArray *list = result_array(series, columns->pdata[c]);
			field_of_node(out, list && i < json_array_get_length(list)
						   ? json_array_get_element(list, i)
						   : NULL);
		}
		g_string_append_c(out, '\n');
	}
}

gboolean csv_write(const char *path, gboolean series, GPtrArray *results, char *const *names,
		   gint device, GError **error)
{
	g_autoptr(GPtrArray) columns = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GArray) subjects = subjects_of(results, names, device);
	g_autoptr(GString) out =
		g_string_new(series ? "result,policy,device" : "result,file,policy,soc");

	for (guint i = 0; i < subjects->len; i++) {
		JsonObject *of = g_array_index(subjects, struct subject, i).device;
		of = series ? result_object(of, "series") : of;
		if (of)
			add_columns(columns, of, series ? JSON_NODE_ARRAY : JSON_NODE_VALUE);
	}
	for (guint c = 0; c < columns->len; c++)
		csv_field(out, FALSE, columns->pdata[c]);
	g_string_append_c(out, '\n');
	for (guint i = 0; i < subjects->len; i++)
		(series ? points : figures)(out, &g_array_index(subjects, struct subject, i),
					    columns);
	return out_file_write(path, out->str, out->len, error);
}
