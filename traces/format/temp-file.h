/* SPDX-License-Identifier: Apache-2.0
 *
 * An unnamed file for data that does not fit into memory or can be read only once. It lies in
 * $TMPDIR, or in /var/tmp, since /tmp is often in memory.
 */
#ifndef NPUSIM_TRACES_TEMP_FILE_H
#define NPUSIM_TRACES_TEMP_FILE_H

#include "failure.h"

/* Where such files lie. */
const char *temp_file_folder(void);
/* -1 and error, which names the folder. */
int temp_file_open(GError **error);
/* Adds bytes at an offset; FALSE and error, as above. */
gboolean temp_file_write(int fd, const guint8 *bytes, gsize count, goffset at, GError **error);

#endif
