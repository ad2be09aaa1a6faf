/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges the traces of several processes by host time, for npusim record. The lines of a part stay
 * in order whatever their stamps say: they were written when the calls returned.
 */
#include "out-file.h"

#include "input.h"
#include "trace/line.h"

struct part {
	const char *path;
	struct npu_trace_reader *reader;
	struct npu_trace_record event; /* the next */
	int more;                      /* 1: there is one; 0: it is at its end; -1: it is damaged */
	size_t infos;                  /* that are written */
	guint64 start;                 /* the host's clock at @0; 0: not told */
	guint64 shift;                 /* from the earliest part's */
	guint64 time;                  /* of the event: since the earliest part began */
};
struct merge {
	GPtrArray *parts; /* struct part * */
	guint64 start;    /* the earliest */
	struct out_stream out;
	GHashTable *processes; /* "part.process" -> number */
	GHashTable *shares;    /* key, or where there is none "part.number" -> number */
	struct merge_result *result;
};

static void part_free(gpointer data)
{
	struct part *p = data;

	npu_trace_reader_close(p->reader);
	g_free(p);
}

/* The key is taken over. */
static guint32 number_in(GHashTable *table, char *key)
{
	guint number = GPOINTER_TO_UINT(g_hash_table_lookup(table, key));

	number = number ? number : g_hash_table_size(table) + 1;
	g_hash_table_replace(table, key, GUINT_TO_POINTER(number));
	return number;
}

static guint32 process_number(struct merge *m, const struct part *p, guint32 process)
{
	return number_in(m->processes, g_strdup_printf("%p.%u", (const void *)p, process));
}

/* A share has the same key in all processes. */
static void rename_share(struct merge *m, const struct part *p, struct npu_trace_name *name)
{
	const struct npu_trace_record *r = &p->event;

	if (name->kind == 's')
		name->number = number_in(
			m->shares,
			r->has & NPU_TRACE_HAS_KEY
				? g_strdup_printf("%" G_GINT64_MODIFIER "x", r->key)
				: g_strdup_printf("%p.%u", (const void *)p, name->number));
}

/* Those that were read since the last time. */
static void put_infos(struct merge *m, struct part *p)
{
	const char *key, *value;
	guint32 process;

	for (; npu_trace_reader_info(p->reader, p->infos, &process, &key, &value); p->infos++)
		out_trace_info(m->out.text, process_number(m, p, 1), key, value);
}

static struct part *earliest(struct merge *m)
{
	struct part *first = NULL;

	for (guint i = 0; i < m->parts->len; i++) {
		struct part *p = g_ptr_array_index(m->parts, i);
		if (p->more > 0 && (first == NULL || p->time < first->time))
			first = p;
	}
	return first;
}

static void put_all(struct merge *m)
{
	struct part *p;

	g_string_append(m->out.text, TRACE_FIRST_LINE);
	for (guint i = 0; i < m->parts->len; i++) {
		p = g_ptr_array_index(m->parts, i);
		process_number(m, p, 1);
		put_infos(m, p);
	}
	while ((p = earliest(m))) {
		struct npu_trace_record *r = &p->event;
		rename_share(m, p, &r->name);
		rename_share(m, p, &r->share);
		r->process = process_number(m, p, r->process);
		if (r->has & NPU_TRACE_HAS_HOST_NS)
			r->host_ns += p->shift;
		m->result->events += out_trace_line(m->out.text, r, NULL);
		out_stream_flush(&m->out, FALSE);
		p->more = trace_reader_take(p->reader, r, NULL);
		/* the lines of a part stay in order */
		if (p->more > 0 && r->has & NPU_TRACE_HAS_HOST_NS)
			p->time = MAX(p->time, r->host_ns + p->shift);
		put_infos(m, p);
	}
	for (guint i = 0; i < m->parts->len; i++) {
		p = g_ptr_array_index(m->parts, i);
		m->result->broken += p->more < 0 || npu_trace_reader_truncated(p->reader);
	}
}

static gint by_start(gconstpointer a, gconstpointer b)
{
	const struct part *p = *(struct part *const *)a, *q = *(struct part *const *)b;

	return p->start != q->start ? (p->start > q->start ? 1 : -1) : strcmp(p->path, q->path);
}

/* Opens the parts, at their first events; one that is no trace is left out. */
static void open_parts(struct merge *m, GPtrArray *paths)
{
	for (guint i = 0; i < paths->len; i++) {
		struct input *input = input_open(g_ptr_array_index(paths, i), NULL);
		struct npu_trace_reader *reader = input ? trace_reader_new(input, NULL) : NULL;
		if (reader == NULL)
			continue;
		struct part *p = g_new0(struct part, 1);
		p->path = g_ptr_array_index(paths, i);
		p->reader = reader;
		p->more = trace_reader_take(reader, &p->event, NULL);
		const char *start = npu_trace_reader_info_of(reader, "start");
		p->start = start ? g_ascii_strtoull(start, NULL, 0) : 0;
		m->start = m->start && p->start ? MIN(m->start, p->start) : MAX(m->start, p->start);
		g_ptr_array_add(m->parts, p);
	}
	g_ptr_array_sort(m->parts, by_start);
	for (guint i = 0; i < m->parts->len; i++) {
		struct part *p = g_ptr_array_index(m->parts, i);
		p->shift = p->start ? p->start - m->start : 0;
		p->time = p->event.host_ns + p->shift;
	}
	m->result->parts = m->parts->len;
}

gboolean merge_write(GPtrArray *paths, const char *path, guint least, struct merge_result *result,
		     GError **error)
{
	struct merge m = { .result = result };

	*result = (struct merge_result){ 0 };
	if (!out_stream_open(&m.out, path, error))
		return FALSE;
	m.parts = g_ptr_array_new_with_free_func(part_free);
	m.processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	m.shares = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	open_parts(&m, paths);
	gboolean ok = m.parts->len >= least;
	if (ok)
		put_all(&m);
	else
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
			    "none of the files there (%u) is a trace", paths->len);
	g_ptr_array_unref(m.parts);
	g_hash_table_unref(m.processes);
	g_hash_table_unref(m.shares);
	return out_stream_close(&m.out, ok, error);
}
