/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a result, one line each.
 */
#ifndef NPUSIM_TRACES_RESULT_JSON_H
#define NPUSIM_TRACES_RESULT_JSON_H

#include <json-glib/json-glib.h>

static inline void member_int(JsonBuilder *b, const char *name, guint64 value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_int_value(b, (gint64)value);
}

static inline void member_real(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_double_value(b, value);
}

static inline void member_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_string_value(b, value);
}

/* A list of one guint64 of each entry of an array: that which lies at `offset` in it. */
static inline void member_column(JsonBuilder *b, const char *name, const GArray *array,
				 gsize offset)
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

#endif
