/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which lines of a trace are written, for all conversions, and converts a trace to
 * comma-separated values, one row per event.
 */
#include "convert.h"

#include "result-file.h"

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

static void number(GString *out, gboolean has, guint64 value)
{
	g_string_append_c(out, ',');
	if (has)
		g_string_append_printf(out, "%" G_GUINT64_FORMAT, value);
}

static void name(GString *out, gboolean has, const struct npu_trace_name *n)
{
	g_string_append_c(out, ',');
	if (has)
		record_name_text(n, out);
}

static void device_of(GString *out, gint64 device)
{
	g_string_append_c(out, ',');
	if (device >= 0)
		g_string_append_printf(out, "%" G_GINT64_FORMAT, device);
	else if (device == NPU_TRACE_HOST)
		g_string_append(out, "host");
}

static void row(GString *out, const struct tracker_line *l, const struct tracker_device *d)
{
	const struct npu_trace_record *r = &l->item.record;

	g_string_append_printf(out, "%" G_GUINT64_FORMAT, l->item.number);
	csv_field(out, FALSE, record_verb_name(r->verb));
	name(out, (r->has & NPU_TRACE_HAS_NAME) != 0, &r->name);
	number(out, (r->has & NPU_TRACE_HAS_SIZE) != 0, r->size);
	device_of(out, l->device);
	number(out, (r->has & NPU_TRACE_HAS_STREAM) != 0, r->stream);
	number(out, (r->has & NPU_TRACE_HAS_THREAD) != 0, r->process);
	number(out, (r->has & NPU_TRACE_HAS_THREAD) != 0, r->thread);
	number(out, (r->has & NPU_TRACE_HAS_HOST_NS) != 0, r->host_ns);
	number(out, (r->has & NPU_TRACE_HAS_SIMULATED) != 0, r->simulated_ps);
	g_string_append_printf(out, ",%d", r->code);
	name(out, (r->has & NPU_TRACE_HAS_HANDLE) != 0, &r->handle);
	name(out, (r->has & NPU_TRACE_HAS_SHARE) != 0, &r->share);
	name(out, (r->has & NPU_TRACE_HAS_AT) != 0, &r->at);
	name(out, (r->has & NPU_TRACE_HAS_FROM) != 0, &r->from);
	number(out, (r->has & NPU_TRACE_HAS_FLAGS) != 0, r->flags);
	csv_field(out, FALSE, r->op ? r->op : "");
	number(out, d != NULL, d ? d->now[TRACKER_LIVE] : 0);
	number(out, d != NULL, d ? d->now[TRACKER_SEGMENTS] : 0);
	number(out, d != NULL, d ? d->now[TRACKER_PHYSICAL] : 0);
	g_string_append_c(out, '\n');
}

gboolean convert_to_csv(struct convert_job *job, GError **error)
{
	struct out_stream out;
	struct tracker_line l;
	int more;

	if (!out_stream_open(&out, job->target, error))
		return FALSE;
	g_string_append(out.text,
			"event,verb,name,size,device,stream,process,thread,host_ns,simulated_ps,"
			"code,handle,share,at,from,flags,op,live_bytes,segment_bytes,"
			"physical_bytes\n");
	while ((more = convert_next(job, &l, error)) > 0) {
		row(out.text, &l, l.device >= 0 ? tracker_find(job->tracker, l.device) : NULL);
		out_stream_flush(&out, FALSE);
	}
	return out_stream_close(&out, more == 0, error);
}
