/* SPDX-License-Identifier: Apache-2.0
 *
 * Members and files, over json-glib.
 */
#include "json-out.h"

#include "format/out-file.h"

void member_int(JsonBuilder *b, const char *name, gint64 value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_int_value(b, value);
}

void member_count(JsonBuilder *b, const char *name, guint64 value)
{
	member_int(b, name, (gint64)MIN(value, (guint64)G_MAXINT64));
}

void member_real(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_double_value(b, value);
}

void member_bool(JsonBuilder *b, const char *name, gboolean value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_boolean_value(b, value);
}

void member_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_string_value(b, value);
}

void member_column(JsonBuilder *b, const char *name, const GArray *array, gsize offset)
{
	gsize size = g_array_get_element_size((GArray *)array);

	json_builder_set_member_name(b, name);
	json_builder_begin_array(b);
	for (guint i = 0; i < array->len; i++) {
		const guint64 *at =
			(const guint64 *)(const void *)(array->data + i * size + offset);
		json_builder_add_int_value(b, (gint64)*at);
	}
	json_builder_end_array(b);
}

gboolean json_out_write(JsonNode *root, const char *path, GError **error)
{
	g_autoptr(JsonGenerator) generator = json_generator_new();
	g_autoptr(GString) text = g_string_new(NULL);

	json_generator_set_pretty(generator, TRUE);
	json_generator_set_root(generator, root);
	json_generator_to_gstring(generator, text);
	g_string_append_c(text, '\n');
	return out_file_write(path, text->str, text->len, error);
}
