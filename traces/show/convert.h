/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of a trace to other kinds of file: one writer for each kind, over out-file.h. All
 * read their input once, line by line. (Results are converted to CSV by result-file.h.)
 */
#ifndef NPUSIM_TRACES_CONVERT_H
#define NPUSIM_TRACES_CONVERT_H

#include "track/object-tracker.h"
#include "format/out-file.h"
#include "show/progress.h"

struct convert_job {
	struct trace *trace;
	struct tracker *tracker;
	const char *source, *target;
	gint device; /* -1: all */
	struct progress *progress;
};
/* The next line that is of the device that is wanted: 1, 0, -1 and error. */
int convert_next(struct convert_job *job, struct tracker_line *out, GError **error);

gboolean convert_to_trace(struct convert_job *job, GError **error);
gboolean convert_to_chrome(struct convert_job *job, GError **error);
gboolean convert_to_csv(struct convert_job *job, GError **error);

#endif
