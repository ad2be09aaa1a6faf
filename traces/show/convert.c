/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which lines of a trace are written, for all conversions, and converts a trace to
 * comma-separated values, one row per event, and to a trace of npusim. The lines of a file that
 * already is one are copied unchanged; others are written with the addresses that they have, so
 * that a replay gives the same results as for the original file.
 */
#include "convert.h"

#include "result-file.h"

/* What belongs to no device by itself is kept: what is left of the trace may need it. */
static gboolean wants(const struct convert_job *job, const struct tracker_line *l)
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

	while ((more = trace_next(job->trace, &item, error)) > 0) {
		tracker_step(job->tracker, &item, out);
		progress_step(job->progress, item.number);
		if (wants(job, out))
			break;
	}
	return more;
}

static void number(GString *out, gboolean has, guint64 value)
{
	g_string_append_c(out, ',');
	if (has)
		g_string_append_printf(out, U64, value);
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

	g_string_append_printf(out, U64, l->item.number);
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

static void drop_last_line(GString *text)
{
	gsize at = text->len - 1; /* its end */

	while (at > 0 && text->str[at - 1] != '\n')
		at--;
	g_string_truncate(text, at);
}

/* All lines but those of events that are not wanted: each is the last that was read. */
static gboolean copy_lines(struct convert_job *job, GError **error)
{
	struct out_stream out;
	struct tracker_line event;
	struct record_item item;

	if (!out_stream_open(&out, job->target, error))
		return FALSE;
	int more = trace_copy(job->trace, out.text, error) ? 1 : -1;
	while (more > 0 && (more = trace_next(job->trace, &item, error)) > 0) {
		tracker_step(job->tracker, &item, &event);
		if (!wants(job, &event))
			drop_last_line(out.text);
		out_stream_flush(&out, FALSE);
		progress_step(job->progress, item.number);
	}
	return out_stream_close(&out, more == 0, error);
}

struct writing {
	struct out_stream out;
	const struct sites *sites;
	GArray *numbers; /* guint: of each site in the trace; 0: it has none yet */
	guint count;     /* of those that have */
	GString *text;   /* of the last */
};

static void info(struct writing *w, const char *key, const char *value)
{
	if (value && *value)
		out_trace_info(w->out.text, 0, key, value);
}

static void put_head(struct writing *w, const struct trace *t)
{
	g_autoptr(GString) of_process = g_string_new(NULL);
	g_autofree char *about = g_strdup_printf("%s%sconverted from: %s", t->about ? t->about : "",
						 t->about ? "; " : "", t->kind);
	g_autofree char *unit = NULL;

	for (guint i = 0; i < t->devices->len; i++) {
		const struct trace_device *d = g_ptr_array_index(t->devices, i);
		if (d->of_process)
			g_string_append_printf(of_process, "%s%u", of_process->len ? "," : "",
					       d->device);
		if (d->block_unit && unit == NULL)
			unit = g_strdup_printf("%u", d->block_unit);
	}
	g_string_append(w->out.text, TRACE_FIRST_LINE);
	info(w, "addresses", "va");
	info(w, "soc", t->soc);
	info(w, "about", about);
	info(w, "block_unit", unit);
	info(w, "of_process", of_process->str);
}

/* The frames where the site is new, innermost first, else its number. NULL: there is none. */
static const char *site_of(struct writing *w, guint32 site)
{
	if (w->sites == NULL || site <= SITE_BEFORE)
		return NULL;
	if (site >= w->numbers->len)
		g_array_set_size(w->numbers, site + 1);
	guint *number = &g_array_index(w->numbers, guint, site);
	g_string_truncate(w->text, 0);
	for (guint i = 0; *number == 0 && i < sites_depth(w->sites, site); i++)
		g_string_append_printf(w->text, "%s%s", i ? "\n" : "",
				       sites_frame(w->sites, site, i));
	if (*number)
		g_string_printf(w->text, "%u", *number);
	else
		*number = ++w->count;
	return w->text->str;
}

static gboolean put_all(struct convert_job *job, struct writing *w, GError **error)
{
	struct tracker_line l;
	int more;

	while ((more = convert_next(job, &l, error)) > 0) {
		struct npu_trace_record *r = &l.item.record;
		r->site = r->verb == NPU_TRACE_ALLOC ? site_of(w, l.item.site) : NULL;
		r->has |= r->site ? NPU_TRACE_HAS_SITE : 0u;
		if (!out_trace_line(w->out.text, r, error))
			return FALSE;
		out_stream_flush(&w->out, FALSE);
	}
	return more == 0;
}

static gboolean write_records(struct convert_job *job, GError **error)
{
	struct writing w = { .sites = job->trace->sites };

	if (!out_stream_open(&w.out, job->target, error))
		return FALSE;
	w.numbers = g_array_new(FALSE, TRUE, sizeof(guint));
	w.text = g_string_new(NULL);
	put_head(&w, job->trace);
	gboolean ok = put_all(job, &w, error);
	g_array_unref(w.numbers);
	g_string_free(w.text, TRUE);
	return out_stream_close(&w.out, ok, error);
}

gboolean convert_to_trace(struct convert_job *job, GError **error)
{
	return job->trace->format ? copy_lines(job, error) : write_records(job, error);
}
