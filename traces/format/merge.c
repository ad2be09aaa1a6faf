/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges the traces of several processes by host time, for npusim record. The lines of a part stay
 * in order whatever their stamps say: they were written when the calls returned.
 */
#include "merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out-file.h"
#include "trace/line.h"

struct part {
	const char *path;
	FILE *file;
	char *line; /* the next event, without its newline */
	size_t room;
	guint index;
	guint64 start; /* the host's clock at @0; 0: not told */
	guint64 time;  /* of `line`: since the earliest part began */
	gboolean at_end, broken;
	GPtrArray *infos; /* char *, of the head */
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

	if (p->file)
		fclose(p->file);
	free(p->line);
	g_ptr_array_unref(p->infos);
	g_free(p);
}

/* The next whole line; FALSE at the end. */
static gboolean next_line(struct part *p)
{
	ssize_t length = getline(&p->line, &p->room, p->file);

	if (length > 0 && p->line[length - 1] == '\n') {
		p->line[length - 1] = '\0';
		return TRUE;
	}
	p->broken = length > 0;
	p->at_end = TRUE;
	return FALSE;
}

/* What a line's stamp says, since the earliest part began. */
static guint64 time_of(const struct merge *m, const struct part *p, const char *stamp)
{
	return g_ascii_strtoull(stamp + 1, NULL, 0) + (p->start ? p->start - m->start : 0);
}

/* Goes on to the next event. */
static void advance(struct merge *m, struct part *p)
{
	while (next_line(p)) {
		if (p->line[0] == '\0' || p->line[0] == '#')
			continue;
		if (p->line[0] == '@')
			p->time = MAX(p->time, time_of(m, p, p->line));
		return;
	}
}

/* Head of a part: its version and its info lines. The first event is left in `line`. */
static gboolean read_head(struct part *p)
{
	if (!next_line(p) || strncmp(p->line, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE) - 1) != 0)
		return FALSE;
	while (next_line(p)) {
		if (!g_str_has_prefix(p->line, "info ")) {
			if (p->line[0] != '#' && p->line[0] != '\0')
				break;
			continue;
		}
		const char *start = strstr(p->line, " start=");
		if (start)
			p->start = g_ascii_strtoull(start + strlen(" start="), NULL, 0);
		g_ptr_array_add(p->infos, g_strdup(p->line + strlen("info ")));
	}
	return TRUE;
}

/* ---- names ---- */

static guint number_in(GHashTable *table, char *key)
{
	guint number = GPOINTER_TO_UINT(g_hash_table_lookup(table, key));

	if (number) {
		g_free(key);
		return number;
	}
	number = g_hash_table_size(table) + 1;
	g_hash_table_insert(table, key, GUINT_TO_POINTER(number));
	return number;
}

static guint process_number(struct merge *m, const struct part *p, guint64 process)
{
	return number_in(m->processes, g_strdup_printf("%u.%" G_GUINT64_FORMAT, p->index, process));
}

static void put_word(struct merge *m, const struct part *p, char **words, guint i, GString *out)
{
	const char *word = words[i], *key = NULL, *share = NULL;

	if (word[0] == ':' && i < 3) {
		char *dot;
		guint64 process = g_ascii_strtoull(word + 1, &dot, 0);
		g_string_append_printf(out, ":%u%s", process_number(m, p, process), dot);
		return;
	}
	if (g_str_has_prefix(word, "share=s"))
		share = word + strlen("share=s");
	else if (word[0] == 's' && g_ascii_isdigit(word[1]))
		share = word + 1;
	for (guint k = 0; share && words[k]; k++) {
		if (g_str_has_prefix(words[k], "key="))
			key = words[k];
	}
	/* a share has the same key in all processes */
	if (share)
		g_string_append_printf(
			out, "%.*s%u", (int)(share - word), word,
			number_in(m->shares,
				  key ? g_strdup(key) : g_strdup_printf("%u.%s", p->index, share)));
	else
		g_string_append(out, word);
}

/* ---- the file ---- */

static void put_event(struct merge *m, struct part *p)
{
	g_auto(GStrv) words = g_strsplit(p->line, " ", -1);
	GString *out = m->out.text;

	for (guint i = 0; words[i]; i++) {
		if (i > 0)
			g_string_append_c(out, ' ');
		if (i == 0 && words[i][0] == '@')
			g_string_append_printf(out, "@%" G_GUINT64_FORMAT, time_of(m, p, words[i]));
		else
			put_word(m, p, words, i, out);
	}
	g_string_append_c(out, '\n');
	m->result->events++;
}

static void put_info(struct merge *m, const struct part *p, const char *text)
{
	g_string_append_printf(m->out.text, "info process=%u %s\n", process_number(m, p, 1), text);
}

static struct part *earliest(struct merge *m)
{
	struct part *first = NULL;

	for (guint i = 0; i < m->parts->len; i++) {
		struct part *p = g_ptr_array_index(m->parts, i);
		if (!p->at_end && (first == NULL || p->time < first->time))
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
		for (guint k = 0; k < p->infos->len; k++)
			put_info(m, p, g_ptr_array_index(p->infos, k));
	}
	while ((p = earliest(m))) {
		if (g_str_has_prefix(p->line, "info "))
			put_info(m, p, p->line + strlen("info ")); /* said while it ran */
		else
			put_event(m, p);
		out_stream_flush(&m->out, FALSE);
		advance(m, p);
	}
	for (guint i = 0; i < m->parts->len; i++)
		m->result->broken += ((struct part *)g_ptr_array_index(m->parts, i))->broken;
}

static gint by_start(gconstpointer a, gconstpointer b)
{
	const struct part *p = *(struct part *const *)a, *q = *(struct part *const *)b;

	return p->start != q->start ? (p->start > q->start ? 1 : -1) : strcmp(p->path, q->path);
}

/* Opens the parts; one that is no trace is left out. */
static void open_parts(struct merge *m, GPtrArray *paths)
{
	for (guint i = 0; i < paths->len; i++) {
		struct part *p = g_new0(struct part, 1);
		p->path = g_ptr_array_index(paths, i);
		p->infos = g_ptr_array_new_with_free_func(g_free);
		p->file = fopen(p->path, "re");
		if (p->file && read_head(p))
			g_ptr_array_add(m->parts, p);
		else
			part_free(p);
	}
	g_ptr_array_sort(m->parts, by_start);
	m->start = 0;
	for (guint i = 0; i < m->parts->len; i++) {
		struct part *p = g_ptr_array_index(m->parts, i);
		p->index = i;
		if (p->start && (m->start == 0 || p->start < m->start))
			m->start = p->start;
	}
	for (guint i = 0; i < m->parts->len; i++) {
		struct part *p = g_ptr_array_index(m->parts, i);
		if (!p->at_end && p->line[0] == '@')
			p->time = time_of(m, p, p->line);
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
			    "none of the %u files there is a trace", paths->len);
	g_ptr_array_unref(m.parts);
	g_hash_table_unref(m.processes);
	g_hash_table_unref(m.shares);
	return out_stream_close(&m.out, ok, error);
}

GPtrArray *merge_find(const char *folder, GError **error)
{
	g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
	GPtrArray *parts;
	const char *name;

	if (dir == NULL)
		return NULL;
	parts = g_ptr_array_new_with_free_func(g_free);
	while ((name = g_dir_read_name(dir)))
		g_ptr_array_add(parts, g_build_filename(folder, name, NULL));
	return parts;
}
