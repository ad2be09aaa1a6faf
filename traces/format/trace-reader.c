/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim traces, for npusim and as a library for other programs: it splits lines in
 * place and turns them into records.
 */
#include "trace-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/verbs.h"
#include "words.h"

#define BUFFER_BYTES (1u << 20)
#define INFOS_MAX    (1u << 16) /* what is behind them is passed over */

struct info {
	guint32 process;
	char *key, *value;
};
struct npu_trace_reader {
	struct input *input;
	char *buffer;
	gsize start, end; /* what of it is yet to be read */
	gboolean at_end;
	guint64 line, skipped;
	gboolean truncated;
	GArray *infos;   /* struct info */
	char *op, *site; /* of the last record */
	char *error;     /* for npu_trace_reader_error() */
	GString *copy;   /* of lines, borrowed; or NULL */
};

/* A line that is being read. */
struct line {
	struct words w;
	struct npu_trace_reader *reader;
	struct npu_trace_record *out;
	gboolean has_verb, is_known;
};

/* ---- keys ---- */

static gboolean read_device(struct line *l, struct word text)
{
	guint32 id;

	l->out->device = NPU_TRACE_HOST;
	if (word_is(&text, "host"))
		return TRUE;
	if (!words_small(&l->w, "device", text, G_MAXUINT32, &id))
		return FALSE;
	l->out->device = id;
	return TRUE;
}

static gboolean read_page(struct line *l, struct word text)
{
	l->out->page_lg2 = word_is(&text, "4k")   ? 12
			   : word_is(&text, "2m") ? 21
			   : word_is(&text, "1g") ? 30
						  : 0;
	return l->out->page_lg2 != 0 ||
	       words_bad(&l->w, "page is '%s', not 4k, 2m or 1g", words_show(&l->w, text));
}

static gboolean read_text(struct word text, char **keep, const char **out)
{
	g_free(*keep);
	*keep = words_decode(text);
	*out = *keep;
	return TRUE;
}

static gboolean read_op(struct line *l, struct word text)
{
	struct npu_trace_record *r = l->out;

	if (r->verb == NPU_TRACE_DEVICE_SET && word_is(&text, "reset"))
		r->verb = NPU_TRACE_DEVICE_RESET;
	if (r->verb == NPU_TRACE_FREE && word_is(&text, "requested"))
		r->verb = NPU_TRACE_FREE_REQUESTED;
	if (r->verb != NPU_TRACE_CALL && r->verb != NPU_TRACE_NOTE)
		return TRUE;
	r->has |= NPU_TRACE_HAS_OP;
	return read_text(text, &l->reader->op, &r->op);
}

/* Keys that are not known are passed over. */
static gboolean read_key(struct line *l, struct word key, struct word text)
{
	struct npu_trace_record *r = l->out;
	const struct trace_key *k = trace_keys;

	while (k->word && !word_is(&key, k->word))
		k++;
	if (k->word == NULL)
		return TRUE;
	void *field = (char *)r + k->field;
	if (k->kind == TRACE_KEY_HINT && !number_parse(text.at, text.length, field))
		return TRUE;
	if (k->kind == TRACE_KEY_FLAG ? word_is(&text, k->text) : k->kind != TRACE_KEY_OP)
		r->has |= k->bit;
	switch (k->kind) {
	case TRACE_KEY_NUMBER:
		return words_number(&l->w, k->word, text, field);
	case TRACE_KEY_NAME:
		return words_name(&l->w, text, k->text, field);
	case TRACE_KEY_DEVICE:
		return read_device(l, text);
	case TRACE_KEY_PAGE:
		return read_page(l, text);
	case TRACE_KEY_OP:
		return read_op(l, text);
	case TRACE_KEY_SITE:
		return read_text(text, &l->reader->site, &r->site);
	case TRACE_KEY_HINT:
	case TRACE_KEY_FLAG:
		break;
	}
	return TRUE;
}

/* ---- lines ---- */

static gboolean read_stamp(struct line *l, struct word text)
{
	struct word value = { text.at + 1, text.length - 1 };
	struct npu_trace_record *r = l->out;
	const char *dot;

	switch (text.at[0]) {
	case '@':
		r->has |= NPU_TRACE_HAS_HOST_NS;
		return words_number(&l->w, "the time behind @", value, &r->host_ns);
	case '~':
		r->has |= NPU_TRACE_HAS_SIMULATED;
		return words_number(&l->w, "the time behind ~", value, &r->simulated_ps);
	default:
		dot = memchr(text.at, '.', text.length);
		if (dot == NULL)
			return words_bad(&l->w, "the stamp '%s' is not :process.thread",
					 words_show(&l->w, text));
		r->has |= NPU_TRACE_HAS_THREAD;
		value.length = (gsize)(dot - value.at);
		text.length -= (gsize)(dot + 1 - text.at);
		text.at = dot + 1;
		return words_small(&l->w, "process", value, G_MAXUINT32, &r->process) &&
		       words_small(&l->w, "thread", text, G_MAXUINT32, &r->thread);
	}
}

static gboolean read_word(struct line *l, struct word text)
{
	const char *equals;

	if (!l->has_verb && strchr("@~:", text.at[0]))
		return read_stamp(l, text);
	if (!l->has_verb) {
		guint32 v = 0;

		while (v < NPU_TRACE_VERB_COUNT &&
		       (trace_verbs[v].length != text.length ||
			memcmp(trace_verbs[v].word, text.at, text.length) != 0))
			v++;
		l->has_verb = TRUE;
		l->is_known = v < NPU_TRACE_VERB_COUNT;
		l->out->verb = v;
		return TRUE;
	}
	equals = memchr(text.at, '=', text.length);
	if (equals) {
		struct word key = { text.at, (gsize)(equals - text.at) };
		struct word value = { equals + 1, text.length - key.length - 1 };

		return read_key(l, key, value);
	}
	if (l->out->has & NPU_TRACE_HAS_NAME)
		return words_bad(&l->w, "'%s' is neither key=value nor expected",
				 words_show(&l->w, text));
	l->out->has |= NPU_TRACE_HAS_NAME;
	return words_name(&l->w, text, "rhsab", &l->out->name);
}

static void read_info(struct npu_trace_reader *reader, struct line *l)
{
	guint first = reader->infos->len;
	guint64 process = 0;
	struct word text;

	while (words_next(&l->w, &text)) {
		const char *equals = memchr(text.at, '=', text.length);
		gsize length = equals ? (gsize)(equals - text.at) : 0;
		struct word key = { text.at, length }, value;
		struct info info;

		if (equals == NULL || reader->infos->len >= INFOS_MAX)
			continue;
		value = (struct word){ equals + 1, text.length - length - 1 };
		if (word_is(&key, "process") && number_parse(value.at, value.length, &process))
			continue;
		info = (struct info){ .key = words_decode(key), .value = words_decode(value) };
		g_array_append_val(reader->infos, info);
	}
	for (; first < reader->infos->len; first++)
		g_array_index(reader->infos, struct info, first).process = (guint32)process;
}

/* 1: a record; 0: nothing for the caller; -1. */
static int read_line(struct npu_trace_reader *reader, struct line *l)
{
	struct word text;
	guint32 code;
	char why[96];

	if (!words_next(&l->w, &text) || text.at[0] == '#')
		return 0;
	if (word_is(&text, "info")) {
		read_info(reader, l);
		return 0;
	}
	do {
		if (word_is(&text, "=>")) {
			if (!words_next(&l->w, &text))
				return words_bad(&l->w, "there is no code after '=>'") ? 0 : -1;
			if (!words_small(&l->w, "the code", text, G_MAXINT32, &code))
				return -1;
			l->out->code = (gint32)code;
			break;
		}
		if (!read_word(l, text))
			return -1;
		if (l->has_verb && !l->is_known) {
			reader->skipped++;
			return 0;
		}
	} while (words_next(&l->w, &text));
	if (!l->has_verb)
		return words_bad(&l->w, "there is no verb") ? 0 : -1;
	if (!trace_verb_check(l->out, why, sizeof why))
		return words_bad(&l->w, "%s", why) ? 0 : -1;
	return 1;
}

/* ---- the file ---- */

/* The next whole line: 1, 0 at the end, -1. */
static int next_line(struct npu_trace_reader *r, struct words *out, GError **error)
{
	gsize looked = 0;

	for (;;) {
		char *text = r->buffer + r->start;
		char *newline = memchr(text + looked, '\n', r->end - r->start - looked);

		*out = (struct words){ .at = text, .line = r->line + 1, .error = error };
		if (newline) {
			out->end = newline;
			gsize length = (gsize)(newline - text) + 1;
			if (r->copy)
				g_string_append_len(r->copy, text, (gssize)length);
			r->start += length;
			r->line++;
			return 1;
		}
		looked = r->end - r->start;
		if (r->at_end) {
			r->truncated = looked > 0;
			return 0;
		}
		if (looked > NPU_TRACE_LINE_MAX)
			return words_bad(out, "it is longer than %u KiB", NPU_TRACE_LINE_MAX / 1024)
				       ? 0
				       : -1;
		memmove(r->buffer, text, looked);
		gssize got = input_take(r->input, (guint8 *)r->buffer + looked,
					BUFFER_BYTES - looked, error);
		if (got < 0)
			return -1;
		r->start = 0;
		r->end = looked + (gsize)got;
		r->at_end = r->end < BUFFER_BYTES;
	}
}

int trace_reader_take(struct npu_trace_reader *reader, struct npu_trace_record *out, GError **error)
{
	struct line l;
	int result = 0;

	while (result == 0) {
		memset(&l, 0, sizeof l);
		result = next_line(reader, &l.w, error);
		if (result <= 0)
			return result;
		memset(out, 0, sizeof *out);
		out->line = reader->line;
		out->page_lg2 = 21;
		l.out = out;
		l.reader = reader;
		if (memchr(l.w.at, '\0', (gsize)(l.w.end - l.w.at)))
			return words_bad(&l.w, "there is a NUL byte") ? 0 : -1;
		result = read_line(reader, &l);
	}
	return result;
}

static gboolean read_header(struct npu_trace_reader *r, GError **error)
{
	struct words w;
	struct word text;
	guint64 version;
	int result = next_line(r, &w, error);

	if (result < 0)
		return FALSE;
	if (result == 0)
		return r->truncated || words_bad(&w, "there is none");
	if (!words_next(&w, &text) || !word_is(&text, FORMAT_MAGIC) || !words_next(&w, &text))
		return words_bad(&w, "it is not '" FORMAT_MAGIC " %d'", NPU_TRACE_VERSION);
	if (!words_number(&w, "the version", text, &version))
		return FALSE;
	return version == NPU_TRACE_VERSION ||
	       words_bad(&w,
			 "the format's version is %" G_GUINT64_FORMAT
			 ", this npusim reads version %d",
			 version, NPU_TRACE_VERSION);
}

static void info_clear(gpointer data)
{
	struct info *info = data;

	g_free(info->key);
	g_free(info->value);
}

gboolean trace_reader_rewind(struct npu_trace_reader *reader, GError **error)
{
	reader->start = reader->end = 0;
	reader->at_end = reader->truncated = FALSE;
	reader->line = reader->skipped = 0;
	g_array_set_size(reader->infos, 0);
	return input_rewind(reader->input, error) && read_header(reader, error);
}

void trace_reader_copy(struct npu_trace_reader *reader, GString *text)
{
	reader->copy = text;
}

struct npu_trace_reader *trace_reader_new(struct input *input, GError **error)
{
	struct npu_trace_reader *r = g_new0(struct npu_trace_reader, 1);

	r->input = input;
	r->buffer = g_malloc(BUFFER_BYTES);
	r->infos = g_array_new(FALSE, FALSE, sizeof(struct info));
	g_array_set_clear_func(r->infos, info_clear);
	if (trace_reader_rewind(r, error))
		return r;
	npu_trace_reader_close(r);
	return NULL;
}

void npu_trace_reader_close(struct npu_trace_reader *reader)
{
	if (reader == NULL)
		return;
	input_close(reader->input);
	g_array_unref(reader->infos);
	g_free(reader->buffer);
	g_free(reader->op);
	g_free(reader->site);
	free(reader->error);
	g_free(reader);
}

/* ---- the face without GLib ---- */

/* Takes the error over. Those of the input name the file themselves. */
static char *text_of(GError *error, const char *name)
{
	gboolean whole = error->domain != TRACE_ERROR;
	char *text = NULL;

	if (asprintf(&text, "%s%s%s", whole ? "" : name, whole ? "" : ": ", error->message) < 0)
		text = NULL;
	g_error_free(error);
	return text;
}

static struct npu_trace_reader *opened(struct input *input, GError **error, char **out_error)
{
	g_autofree char *name = input ? g_strdup(input_name(input)) : NULL;
	struct npu_trace_reader *reader = input ? trace_reader_new(input, error) : NULL;

	if (*error && out_error)
		*out_error = text_of(*error, name ? name : "");
	else
		g_clear_error(error);
	return reader;
}

struct npu_trace_reader *npu_trace_reader_open(const char *path, char **out_error)
{
	GError *error = NULL;

	return opened(input_open(path, &error), &error, out_error);
}

struct npu_trace_reader *npu_trace_reader_open_fd(int fd, const char *name, char **out_error)
{
	GError *error = NULL;

	return opened(input_open_fd(fd, name, &error), &error, out_error);
}

struct npu_trace_reader *npu_trace_reader_open_bytes(const void *bytes, size_t count,
						     const char *name, char **out_error)
{
	GError *error = NULL;

	return opened(input_open_bytes(bytes, count, name, &error), &error, out_error);
}

/* Keeps the error for npu_trace_reader_error(); -1. */
static int failed(struct npu_trace_reader *reader, GError *error)
{
	free(reader->error);
	reader->error = text_of(error, input_name(reader->input));
	return -1;
}

int npu_trace_reader_next(struct npu_trace_reader *reader, struct npu_trace_record *out)
{
	GError *error = NULL;
	int result = trace_reader_take(reader, out, &error);

	return result < 0 ? failed(reader, error) : result;
}

const char *npu_trace_reader_error(const struct npu_trace_reader *reader)
{
	return reader->error ? reader->error : "";
}

int npu_trace_reader_rewind(struct npu_trace_reader *reader)
{
	GError *error = NULL;

	return trace_reader_rewind(reader, &error) ? 0 : failed(reader, error);
}

bool npu_trace_reader_info(const struct npu_trace_reader *reader, size_t index, uint32_t *process,
			   const char **key, const char **value)
{
	const struct info *info;

	if (index >= reader->infos->len)
		return false;
	info = &g_array_index(reader->infos, struct info, index);
	*process = info->process;
	*key = info->key;
	*value = info->value;
	return true;
}

const char *npu_trace_reader_info_of(const struct npu_trace_reader *reader, const char *key)
{
	for (guint i = 0; i < reader->infos->len; i++) {
		const struct info *info = &g_array_index(reader->infos, struct info, i);

		if (strcmp(info->key, key) == 0)
			return info->value;
	}
	return NULL;
}

uint64_t npu_trace_reader_skipped(const struct npu_trace_reader *reader)
{
	return reader->skipped;
}

bool npu_trace_reader_truncated(const struct npu_trace_reader *reader)
{
	return reader->truncated;
}
