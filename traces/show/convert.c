/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which lines of a trace are written, for all conversions, and converts a trace to
 * comma-separated values, one row per event, and to a trace of npusim.
 */
#include "show.h"

#include "base/base.h"
#include "format/out-file.h"

gboolean convert_run(struct trace *trace, const struct convert_format *format, const char *target,
		     gint device, GError **error)
{
	/* what belongs to no device by itself, but these, is kept: the rest may need it */
	static const guint32 of_device = 1u << NPU_TRACE_COPY | 1u << NPU_TRACE_FILL |
					 1u << NPU_TRACE_RETAIN | 1u << NPU_TRACE_ACCESS |
					 1u << NPU_TRACE_MAP | 1u << NPU_TRACE_UNMAP;
	struct convert convert = { .trace = trace };
	struct out_stream out;
	struct progress bar;
	struct tracker_line l;
	struct record_item item;
	int more = 1;

	if (!out_stream_open(&out, target, error))
		return FALSE;
	convert.out = out.text;
	convert.tracker = tracker_new(trace->memory_calls > 0);
	convert.known = int_map_new(sizeof(struct int_map_entry), NULL);
	progress_start(&bar, "events", trace->events);
	/* a trace's lines get there by being read */
	gboolean copies = format == &convert_to_trace && trace->format;
	if (copies)
		trace_reader_copy(trace->format, out.text);
	else
		format->begin(&convert);
	gboolean ok = !copies || trace_rewind(trace, error);
	while (ok && (more = trace_next(trace, &item, error)) > 0) {
		tracker_step(convert.tracker, &item, &l);
		progress_step(item.number, &bar);
		gboolean wanted = device < 0 || l.device == device ||
				  (l.device < 0 && !(of_device >> item.record.verb & 1));
		const char *before = memrchr(out.text->str, '\n', MAX(out.text->len, 1) - 1);
		/* the line that was read is the last */
		if (copies && !wanted)
			g_string_truncate(out.text, before ? before + 1 - out.text->str : 0);
		else if (!copies && wanted)
			ok = format->line(&convert, &l, error);
		out_stream_flush(&out, FALSE);
	}
	if (!copies && format->end)
		format->end(&convert);
	progress_end(&bar);
	tracker_free(convert.tracker);
	int_map_free(convert.known);
	return out_stream_close(&out, ok && more == 0, error);
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

static gboolean csv_row(struct convert *to, struct tracker_line *l, GError **error)
{
	const struct npu_trace_record *r = &l->item.record;
	const struct tracker_device *d = tracker_device(to->tracker, l->device);
	GString *out = to->out;

	(void)error;
	g_string_append_printf(out, U64, l->item.number);
	csv_field(out, FALSE, record_verb_name(r->verb));
	name(out, (r->has & NPU_TRACE_HAS_NAME) != 0, &r->name);
	number(out, (r->has & NPU_TRACE_HAS_SIZE) != 0, r->size);
	if (l->device == NPU_TRACE_HOST)
		g_string_append(out, ",host");
	else
		number(out, l->device >= 0, (guint64)l->device);
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
	for (int level = 0; level < LEVEL_RESERVED; level++)
		number(out, l->device >= 0, d->levels->of[level].now);
	g_string_append_c(out, '\n');
	return TRUE;
}

static void begin_csv(struct convert *to)
{
	g_string_append(to->out, "event,verb,name,size,device,stream,process,thread,host_ns,"
				 "simulated_ps,code,handle,share,at,from,flags,op,live_bytes,"
				 "segment_bytes,physical_bytes\n");
}

const struct convert_format convert_to_csv = { begin_csv, csv_row, NULL };

static void info(struct convert *to, const char *key, const char *value)
{
	if (value && *value)
		out_trace_info(to->out, 0, key, value);
}

static void begin_trace(struct convert *to)
{
	const struct trace *t = to->trace;
	g_autoptr(GString) of_process = g_string_new(NULL);
	g_autofree char *about = g_strdup_printf("%s%sconverted from: %s", t->about ? t->about : "",
						 t->about ? "; " : "", t->kind);

	for (guint i = 0; i < t->devices->len; i++) {
		const struct trace_device *d = g_ptr_array_index(t->devices, i);
		if (d->of_process)
			g_string_append_printf(of_process, "%s%u", of_process->len ? "," : "",
					       d->device);
	}
	g_string_append(to->out, TRACE_FIRST_LINE);
	info(to, "addresses", "va");
	info(to, "soc", t->soc);
	info(to, "about", about);
	info(to, "settings", t->settings);
	info(to, "block_unit", t->block_unit ? npu_text("%u", t->block_unit) : NULL);
	info(to, "of_process", of_process->str);
}

/* A site that is new has its frames, innermost first, else its number. */
static gboolean put_record(struct convert *to, struct tracker_line *l, GError **error)
{
	struct npu_trace_record *r = &l->item.record;
	const struct sites *sites = to->trace->sites;
	guint32 site = sites ? l->item.site : SITE_NONE;
	g_autoptr(GString) text = NULL;

	r->site = NULL;
	if (site > SITE_BEFORE) {
		const struct int_map_entry *known = int_map_find(to->known, site, 0);

		text = g_string_new(NULL);
		if (known)
			g_string_printf(text, "%" G_GUINT64_FORMAT, known->value);
		else
			int_map_put(to->known, site, 0, to->known->count + 1);
		for (guint i = 0; !known && i < sites_depth(sites, site); i++)
			g_string_append_printf(text, "%s%s", i ? "\n" : "",
					       sites_frame(sites, site, i));
		r->site = text->len ? text->str : NULL;
	}
	r->has |= r->site ? NPU_TRACE_HAS_SITE : 0u;
	return out_trace_line(to->out, r, error);
}

const struct convert_format convert_to_trace = { begin_trace, put_record, NULL };
