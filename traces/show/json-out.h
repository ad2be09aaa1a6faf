/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command writes as JSON: members of an object, one line each, and the file. It knows no
 * schema.
 */
#ifndef NPUSIM_TRACES_JSON_OUT_H
#define NPUSIM_TRACES_JSON_OUT_H

#include <json-glib/json-glib.h>

void member_int(JsonBuilder *b, const char *name, gint64 value);
/* Counts and sizes: what no int64 holds is the largest. */
void member_count(JsonBuilder *b, const char *name, guint64 value);
void member_real(JsonBuilder *b, const char *name, double value);
void member_bool(JsonBuilder *b, const char *name, gboolean value);
void member_text(JsonBuilder *b, const char *name, const char *value);
/* A list of one guint64 of each entry of an array: that which lies at `offset` in it. */
void member_column(JsonBuilder *b, const char *name, const GArray *array, gsize offset);

/* The tree as text on several lines; "-": to standard output. FALSE and error, which names the
 * file. */
gboolean json_out_write(JsonNode *root, const char *path, GError **error);

#endif
