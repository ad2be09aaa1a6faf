/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in text: decimal, or hexadecimal with 0x, of 64 bits.
 */
#ifndef NPUSIM_TRACES_NUMBER_H
#define NPUSIM_TRACES_NUMBER_H

#include <glib.h>

/* FALSE where the text as a whole is none, or too large. */
gboolean number_parse(const char *text, gsize length, guint64 *out);

#endif
