/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as npusim replay --json writes them, read back (figures.h has the table from which they
 * are written), and as CSV. It knows only the members that identify the file as a result.
 */
#ifndef NPUSIM_TRACES_RESULT_FILE_H
#define NPUSIM_TRACES_RESULT_FILE_H

#include <json-glib/json-glib.h>

/* The whole file. NULL and error, naming it, where it is no result or of a schema that is not
 * known. */
JsonNode *result_file_read(const char *path, GError **error);

/* A member's value, or what is said instead where there is none of that type. */
gint64 result_int(JsonObject *object, const char *name, gint64 otherwise);
const char *result_text(JsonObject *object, const char *name, const char *otherwise);
/* NULL: there is none. */
JsonArray *result_array(JsonObject *object, const char *name);
/* One of its devices, by number; NULL: there is none. */
JsonNode *result_device(JsonNode *result, gint64 number);

/* ---- comma-separated values, as in RFC 4180 except for line ends, which are those of Unix ---- */

/* A field, quoted where it must be; `first` of its line or not. */
void csv_field(GString *out, gboolean first, const char *text);
/* One line a device of each result: all its figures; or, `series`, one line a point of each
 * device's series: all its lists. `results` holds JsonNode *, `names` their files; `device`: that
 * one alone, -1: all. FALSE and error, which names the file. */
gboolean csv_write(const char *path, gboolean series, GPtrArray *results, char *const *names,
		   gint device, GError **error);

#endif
