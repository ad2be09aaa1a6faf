/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads results for report, diff and convert. Unknown members are ignored.
 */
#include "result-file.h"

#include <stdio.h>
#include <string.h>

#include "format/input.h"
#include "read/readers.h"
#include "figures.h"
#include "read/trace.h"

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
		if (JSON_NODE_HOLDS_OBJECT(device))
			continue;
		return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT,
			      "%s: devices[%u] is no object", path, i);
	}
	return TRUE;
}

/* A trace is taken for a result easily: what its first byte says, before a parser complains. */
static gboolean is_json(GBytes *bytes, const char *path, GError **error)
{
	gsize size;
	const guint8 *data = g_bytes_get_data(bytes, &size);

	if (readers_is_json(data, size)) {
		enum json_kind kind;
		if (!json_scan(data, size, &kind, error)) {
			g_prefix_error(error, "%s: ", path);
			return FALSE;
		}
		return kind == JSON_OTHER || refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
						    "%s: it is a trace, no result", path);
	}
	return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
		      "%s: %s: a result is wanted, which npusim replay --json RESULT writes from a "
		      "trace or a snapshot",
		      path, size == 0 ? "the file is empty" : "it is no JSON");
}

/* json-glib begins with "<data>:LINE:COLUMN: Parse error: ". */
static void set_parse_error(GError **error, const char *path, const char *message)
{
	unsigned line, column;
	int length = 0;
	g_autofree char *place = NULL;

	if (sscanf(message, "<data>:%u:%u: Parse error: %n", &line, &column, &length) == 2 &&
	    length > 0)
		place = g_strdup_printf("line %u, column %u: ", line, column);
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s: %sit is no valid JSON: %s", path,
		    place ? place : "", message + length);
}

JsonNode *result_file_read(const char *path, GError **error)
{
	g_autoptr(JsonParser) parser = json_parser_new_immutable();
	g_autoptr(GError) cause = NULL;
	struct input *input = input_open(path, error);
	g_autoptr(GBytes) bytes = input ? input_whole(input, error) : NULL;
	gsize size;

	if (input && bytes == NULL && error && (*error)->domain == TRACE_ERROR)
		g_prefix_error(error, "%s: ", path);
	input_close(input);
	if (bytes == NULL || !is_json(bytes, path, error))
		return NULL;
	const char *text = g_bytes_get_data(bytes, &size);
	if (!json_parser_load_from_data(parser, text, (gssize)size, &cause)) {
		set_parse_error(error, path, cause->message);
		return NULL;
	}
	JsonNode *root = json_parser_steal_root(parser);
	if (check(root, path, error))
		return root;
	if (root)
		json_node_unref(root);
	return NULL;
}

static JsonNode *value(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && JSON_NODE_HOLDS_VALUE(node) ? node : NULL;
}

gint64 result_int(JsonObject *object, const char *name, gint64 otherwise)
{
	JsonNode *node = value(object, name);

	return node && json_node_get_value_type(node) != G_TYPE_STRING ? json_node_get_int(node)
								       : otherwise;
}

const char *result_text(JsonObject *object, const char *name, const char *otherwise)
{
	JsonNode *node = value(object, name);

	return node && json_node_get_value_type(node) == G_TYPE_STRING ? json_node_get_string(node)
								       : otherwise;
}

JsonArray *result_array(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

JsonObject *result_object(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
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
