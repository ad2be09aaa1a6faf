/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which lines of a trace are written, for all conversions of a trace.
 */
#include "convert.h"

/* What belongs to no device by itself is kept: what is left of the trace may need it. */
gboolean convert_wants(const struct convert_job *job, const struct tracker_line *l)
{
	guint32 verb = l->item.record.verb;

	if (job->device < 0 || l->device == job->device)
		return TRUE;
	return l->device < 0 && verb != NPU_TRACE_COPY && verb != NPU_TRACE_FILL &&
	       verb != NPU_TRACE_RETAIN && verb != NPU_TRACE_ACCESS && verb != NPU_TRACE_MAP &&
	       verb != NPU_TRACE_UNMAP;
}

int convert_next(struct convert_job *job, struct tracker_line *out, GError **error)
{
	struct record_item item;
	int more;

	while ((more = record_reader_next(job->reader, &item, error)) > 0) {
		tracker_step(job->tracker, &item, out);
		progress_step(job->progress, item.number);
		if (convert_wants(job, out))
			break;
	}
	return more;
}
