/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading results. Members that are not known are left alone.
 */
#include "result-file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "result.h"
#include "trace.h"

static gboolean check(JsonNode *root, const char *path, GError **error)
{
	JsonObject *object =
		root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;

	if (object == NULL || result_array(object, "devices") == NULL ||
	    strcmp(result_text(object, "program", ""), "npusim replay") != 0) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			    "%s: it is JSON, but no result of npusim replay --json", path);
		return FALSE;
	}
	if (result_int(object, "schema", 0) != RESULT_SCHEMA_VERSION) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			    "%s: the result's schema is %" G_GINT64_FORMAT
			    ", this npusim reads schema %d",
			    path, result_int(object, "schema", 0), RESULT_SCHEMA_VERSION);
		return FALSE;
	}
	for (guint i = 0; i < json_array_get_length(result_array(object, "devices")); i++) {
		JsonNode *device = json_array_get_element(result_array(object, "devices"), i);
		if (JSON_NODE_HOLDS_OBJECT(device))
			continue;
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "%s: devices[%u] is no object",
			    path, i);
		return FALSE;
	}
	return TRUE;
}

JsonNode *result_file_read(const char *path, GError **error)
{
	g_autoptr(JsonParser) parser = json_parser_new_immutable();
	g_autoptr(GError) cause = NULL;
	JsonNode *root;

	if (!json_parser_load_from_file(parser, path, &cause)) {
		gboolean named = cause->domain == G_FILE_ERROR || strstr(cause->message, path);
		g_set_error(error, cause->domain, cause->code, "%s%s%s", named ? "" : path,
			    named ? "" : ": ", cause->message);
		return NULL;
	}
	root = json_parser_steal_root(parser);
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

gboolean result_file_write(const char *path, const char *text, gsize length, GError **error)
{
	gboolean standard = strcmp(path, "-") == 0;

	if (!standard &&
	    (!g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_REGULAR)))
		return g_file_set_contents(path, text, (gssize)length, error);
	FILE *out = standard ? stdout : fopen(path, "we");
	gboolean ok = out && fwrite(text, 1, length, out) == length && fflush(out) == 0;
	int why = errno;
	if (!standard && out)
		ok = (fclose(out) == 0) && ok;
	if (!ok)
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(why), "%s: %s", path,
			    g_strerror(why));
	return ok;
}
