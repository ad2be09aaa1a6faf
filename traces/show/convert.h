/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of a trace to other kinds of file, which all read their input once, line by line.
 * (Results are converted to CSV by result-file.h.)
 */
#ifndef NPUSIM_TRACES_CONVERT_H
#define NPUSIM_TRACES_CONVERT_H

#include "track/object-tracker.h"

/* One that goes on. */
struct convert {
	struct trace *trace;
	struct tracker *tracker;
	GString *out;
	gpointer state; /* the format's */
};
struct convert_format {
	/* Writes what is before the lines. */
	void (*begin)(struct convert *convert);
	/* Writes one that is wanted. FALSE and error. */
	gboolean (*line)(struct convert *convert, struct tracker_line *line, GError **error);
	/* Writes what is behind them, and frees the state; may be NULL. */
	void (*end)(struct convert *convert);
};
/* The lines of a trace of npusim are copied unchanged; others are written with the addresses that
 * they have, so that a replay gives the same results as for the original file. */
extern const struct convert_format convert_to_trace;
extern const struct convert_format convert_to_chrome, convert_to_csv;

/* `device`: what is of it alone; -1: all. FALSE and error. */
gboolean convert_run(struct trace *trace, const struct convert_format *format, const char *target,
		     gint device, GError **error);

#endif
