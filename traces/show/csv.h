/* SPDX-License-Identifier: Apache-2.0
 *
 * Comma-separated values, as in RFC 4180 except for line ends, which are those of Unix: the
 * figures of results, and their series.
 */
#ifndef NPUSIM_TRACES_CSV_H
#define NPUSIM_TRACES_CSV_H

#include <json-glib/json-glib.h>

/* A field, quoted where it must be; `first` of its line or not. */
void csv_field(GString *out, gboolean first, const char *text);
/* One line a device of each result: all its figures; or, `series`, one line a point of each
 * device's series: all its lists. `results` holds JsonNode *, `names` their files; `device`: that
 * one alone, -1: all. FALSE and error, which names the file. */
gboolean csv_write(const char *path, gboolean series, GPtrArray *results, char *const *names,
		   gint device, GError **error);

#endif
