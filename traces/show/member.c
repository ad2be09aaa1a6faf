/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads values by the rows of member tables, and hands them to json-glib.
 */
#include "member.h"

#include <string.h>

#include "format/out-file.h"

static gconstpointer place(const struct member *m, gconstpointer at)
{
	if (m->via)
		at = *(gconstpointer const *)((const char *)at + m->via - 1);
	return (const char *)at + m->offset;
}

static gint64 whole(const struct member *m, gconstpointer at)
{
	if (m->whole)
		return m->whole(at);
	guint64 value = *(const guint64 *)place(m, at);
	return m->is_signed ? (gint64)value : (gint64)MIN(value, (guint64)G_MAXINT64);
}

gboolean member_has(const struct member *m, gconstpointer at)
{
	if (m->via && *(gconstpointer const *)((const char *)at + m->via - 1) == NULL)
		return FALSE;
	if (m->unless_0 && *(const guint64 *)place(m, at) == 0)
		return FALSE;
	return m->has == NULL || m->has(at);
}

double member_number(const struct member *m, gconstpointer at)
{
	if (m->kind != MEMBER_REAL)
		return (double)whole(m, at);
	return m->real ? m->real(at) : *(const double *)place(m, at);
}

char *member_text(const struct member *m, gconstpointer at)
{
	if (m->kind != MEMBER_TEXT)
		return g_strdup_printf("%" G_GINT64_FORMAT, whole(m, at));
	return m->text ? m->text(at) : g_strdup(*(char *const *)place(m, at));
}

const struct member *members_find(const struct member *table, const char *name)
{
	for (const struct member *m = table; m && name && m->kind != MEMBER_END; m++) {
		if (strcmp(m->name, name) == 0)
			return m;
	}
	return NULL;
}

void json_text(JsonBuilder *json, const char *name, const char *value)
{
	json_builder_set_member_name(json, name);
	json_builder_add_string_value(json, value);
}

void json_number(JsonBuilder *json, const char *name, guint64 value)
{
	json_builder_set_member_name(json, name);
	json_builder_add_int_value(json, (gint64)value);
}

void json_list(JsonBuilder *json, const char *name)
{
	json_builder_set_member_name(json, name);
	json_builder_begin_array(json);
}

static void build_list(JsonBuilder *b, const struct member *m, gconstpointer at)
{
	/* both kinds of array begin with their data and its length */
	const GArray *structs = *(GArray *const *)place(m, at);
	gboolean by_pointer = m->array == ARRAY_POINTERS;
	gsize size = by_pointer ? sizeof(gpointer) : g_array_get_element_size((GArray *)structs);

	json_builder_begin_array(b);
	for (guint i = 0; i < structs->len; i++) {
		gconstpointer element = structs->data + i * size + m->field;
		if (by_pointer)
			element = *(gconstpointer const *)element;
		if (m->array == ARRAY_COLUMN)
			json_builder_add_int_value(b, *(const gint64 *)element);
		else
			members_build_object(b, m->members, element);
	}
	json_builder_end_array(b);
}

static void build_value(JsonBuilder *b, const struct member *m, gconstpointer at)
{
	if (m->build) {
		gboolean list = m->kind == MEMBER_LIST;
		(list ? json_builder_begin_array : json_builder_begin_object)(b);
		m->build(b, at);
		(list ? json_builder_end_array : json_builder_end_object)(b);
	} else if (m->array != ARRAY_NONE)
		build_list(b, m, at);
	else if (m->kind == MEMBER_OBJECT)
		members_build_object(b, m->members, place(m, at));
	else if (m->kind == MEMBER_NODE)
		json_builder_add_value(b, json_node_copy(*(JsonNode *const *)place(m, at)));
	else if (m->kind == MEMBER_REAL)
		json_builder_add_double_value(b, member_number(m, at));
	else if (m->kind == MEMBER_FLAG)
		json_builder_add_boolean_value(b, whole(m, at) != 0);
	else
		json_builder_add_int_value(b, whole(m, at) / (m->kind == MEMBER_TIME ? 1000 : 1));
}

void members_build(JsonBuilder *b, const struct member *table, gconstpointer at)
{
	for (const struct member *m = table; m->kind != MEMBER_END; m++) {
		if (m->in_text_only || !member_has(m, at))
			continue;
		g_autofree char *text = m->kind == MEMBER_TEXT ? member_text(m, at) : NULL;
		if (m->kind == MEMBER_TEXT && text == NULL)
			continue;
		json_builder_set_member_name(b, m->name);
		if (text)
			json_builder_add_string_value(b, text);
		else
			build_value(b, m, at);
	}
}

void members_build_object(JsonBuilder *b, const struct member *table, gconstpointer at)
{
	json_builder_begin_object(b);
	members_build(b, table, at);
	json_builder_end_object(b);
}

gboolean json_write(const char *path, JsonBuilder *builder, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);

	out_json(text, json_builder_get_root(builder), TRUE);
	g_string_append_c(text, '\n');
	return out_file_write(path, text->str, text->len, error);
}
