/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads results for report, diff and convert, and writes them as CSV: the columns are the members
 * that exist, in the order in which they first occur. Unknown members are ignored.
 */
#include "show.h"

#include "format/out-file.h"
#include "read/readers.h"

static gboolean check(JsonNode *root, const char *path, GError **error)
{
	JsonObject *object =
		root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;

	if (object == NULL || result_array(object, "devices") == NULL ||
	    strcmp(result_text(object, "program", ""), RESULT_PROGRAM) != 0)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s: it is JSON, but no result, which npusim replay --json RESULT "
			      "writes",
			      path);
	if (result_int(object, "schema", 0) != RESULT_SCHEMA_VERSION)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s: the result's schema is %" G_GINT64_FORMAT
			      ", this npusim reads schema %d",
			      path, result_int(object, "schema", 0), RESULT_SCHEMA_VERSION);
	for (guint i = 0; i < json_array_get_length(result_array(object, "devices")); i++) {
		JsonNode *device = json_array_get_element(result_array(object, "devices"), i);
		if (JSON_NODE_HOLDS_OBJECT(device) && i <= TRACE_DEVICE_LAST)
			continue;
		return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT,
			      "%s: devices[%u] is no object, or one too many", path, i);
	}
	return TRUE;
}

/* A trace is taken for a result easily: its first byte is looked at before a parser complains. */
JsonNode *result_file_read(const char *path, GError **error)
{
	struct input *input = input_open(path, error);
	g_autoptr(GBytes) bytes = input ? input_whole(input, error) : NULL;
	gsize size;

	if (input && bytes == NULL && error && (*error)->domain == TRACE_ERROR)
		g_prefix_error(error, "%s: ", path);
	input_close(input);
	if (bytes == NULL)
		return NULL;
	const guint8 *text = g_bytes_get_data(bytes, &size);
	if (!readers_is_json(text, size))
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "%s: %s: a result is wanted, which npusim replay --json RESULT "
			      "writes from a trace or a snapshot",
			      path, size == 0 ? "the file is empty" : "it is no JSON"),
		       NULL;
	g_autoptr(JsonNode) root = json_load(text, size, TRUE, error);
	if (root == NULL)
		g_prefix_error(error, "%s: ", path);
	return root && check(root, path, error) ? g_steal_pointer(&root) : NULL;
}

static GType type_of(JsonNode *node)
{
	return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_NONE;
}

gint64 result_int(JsonObject *object, const char *name, gint64 otherwise)
{
	JsonNode *node = json_object_get_member(object, name);
	GType type = type_of(node);

	return type == G_TYPE_NONE || type == G_TYPE_STRING ? otherwise : json_node_get_int(node);
}

const char *result_text(JsonObject *object, const char *name, const char *otherwise)
{
	JsonNode *node = json_object_get_member(object, name);

	return type_of(node) == G_TYPE_STRING ? json_node_get_string(node) : otherwise;
}

JsonArray *result_array(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

JsonNode *result_device(JsonNode *result, gint64 number)
{
	JsonArray *devices = result_array(json_node_get_object(result), "devices");

	for (guint i = 0; i < json_array_get_length(devices); i++) {
		JsonNode *node = json_array_get_element(devices, i);
		if (result_int(json_node_get_object(node), "device", -1) == number)
			return node;
	}
	return NULL;
}

void csv_field(GString *out, gboolean first, const char *text)
{
	if (!first)
		g_string_append_c(out, ',');
	if (strpbrk(text, ",\"\n\r") == NULL) {
		g_string_append(out, text);
		return;
	}
	g_auto(GStrv) parts = g_strsplit(text, "\"", -1);
	g_autofree char *doubled = g_strjoinv("\"\"", parts);
	g_string_append_printf(out, "\"%s\"", doubled);
}

/* Never the first of a line. */
static void field_of_node(GString *out, JsonNode *node)
{
	GType type = type_of(node);
	char number[G_ASCII_DTOSTR_BUF_SIZE] = "";

	if (type == G_TYPE_DOUBLE)
		g_ascii_dtostr(number, sizeof number, json_node_get_double(node));
	else if (type == G_TYPE_BOOLEAN)
		g_strlcpy(number, json_node_get_boolean(node) ? "1" : "0", sizeof number);
	else if (type == G_TYPE_INT64)
		g_snprintf(number, sizeof number, "%" G_GINT64_FORMAT, json_node_get_int(node));
	csv_field(out, FALSE, type == G_TYPE_STRING ? json_node_get_string(node) : number);
}

/* The members of a kind, to those that are there already. */
static void add_columns(JsonObject *columns, JsonObject *object, JsonNodeType type)
{
	g_autoptr(GList) members = json_object_get_members(object);

	for (GList *m = members; m; m = m->next) {
		if (json_node_get_node_type(json_object_get_member(object, m->data)) == type &&
		    !json_object_has_member(columns, m->data)) /* it would look for its place */
			json_object_set_null_member(columns, m->data);
	}
}

/* One line of its figures, or one a point of its series; a result without one has no line. */
static gboolean lines_of(GString *out, const char *name, JsonObject *result, JsonObject *device,
			 JsonObject *of, GList *columns, GError **error)
{
	gboolean series = of != device;
	JsonArray *events = series && of ? result_array(of, "event") : NULL;
	guint count = !series ? 1 : events ? json_array_get_length(events) : 0;
	guint width = g_list_length(columns);

	for (guint i = 0; i < count; i++) {
		if (!memory_limit_ask(width, error, "%s: its CSV", name))
			return FALSE;
		csv_field(out, TRUE, name);
		if (!series)
			csv_field(out, FALSE, result_text(result, "file", ""));
		csv_field(out, FALSE, result_text(result, "policy", ""));
		field_of_node(out, series ? json_object_get_member(device, "device")
					  : json_object_get_member(result, "soc"));
		for (GList *c = columns; c; c = c->next) {
			JsonArray *list = series ? result_array(of, c->data) : NULL;
			JsonNode *node = !series ? json_object_get_member(of, c->data)
					 : list && i < json_array_get_length(list)
						 ? json_array_get_element(list, i)
						 : NULL;
			field_of_node(out, node);
		}
		g_string_append_c(out, '\n');
	}
	return TRUE;
}

gboolean csv_write(const char *path, gboolean series, GPtrArray *results, char *const *names,
		   gint wanted, GError **error)
{
	g_autoptr(JsonObject) columns = json_object_new();
	g_autoptr(GString) out =
		g_string_new(series ? "result,policy,device" : "result,file,policy,soc");

	for (guint pass = 0; pass < 2; pass++) {
		g_autoptr(GList) heads = json_object_get_members(columns);
		for (GList *h = heads; h; h = h->next)
			csv_field(out, FALSE, h->data);
		if (pass == 1)
			g_string_append_c(out, '\n');
		for (guint i = 0; i < results->len; i++) {
			JsonObject *result = json_node_get_object(results->pdata[i]);
			JsonArray *devices = result_array(result, "devices");
			for (guint d = 0; d < json_array_get_length(devices); d++) {
				JsonObject *device = json_array_get_object_element(devices, d);
				JsonNode *points = json_object_get_member(device, "series");
				JsonObject *of = !series ? device
						 : points && JSON_NODE_HOLDS_OBJECT(points)
							 ? json_node_get_object(points)
							 : NULL;
				if (wanted >= 0 && result_int(device, "device", -1) != wanted)
					continue;
				if (pass == 0 && of)
					add_columns(columns, of,
						    series ? JSON_NODE_ARRAY : JSON_NODE_VALUE);
				if (pass == 1 &&
				    !lines_of(out, names[i], result, device, of, heads, error))
					return FALSE;
			}
		}
	}
	return out_file_write(path, out->str, out->len, error);
}
