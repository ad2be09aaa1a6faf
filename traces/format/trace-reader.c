/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim traces, for npusim and as a library for other programs: it splits lines in
 * place and turns them into records.
 */
#include "input.h"

#include <fcntl.h>

#include "trace/line.h"

#define INFOS_MAX (1u << 16) /* what is behind them is passed over */
#define BLANKS    " \t\r"

struct info {
	guint32 process;
	char *key, *value;
};
struct npu_trace_reader {
	struct input *input;
	guint64 skipped;
	gboolean truncated;
	GArray *infos;   /* struct info */
	char *op, *site; /* of the last record */
	char *error;     /* for npu_trace_reader_error() */
	GString *copy;   /* of lines, borrowed; or NULL */
};

/* A line that is being read. */
struct line {
	struct npu_trace_reader *reader;
	struct npu_trace_record *out;
	GError **error;
	gboolean has_verb;
};

#define bad(l, ...) line_bad((l)->out->line, (l)->error, __VA_ARGS__)
#define read_number(l, what, text, last, out_number) \
	line_number((l)->out->line, what, text, last, out_number, (l)->error)

static gboolean read_small(struct line *l, const char *what, const char *text, guint32 *out)
{
	guint64 number;

	if (!read_number(l, what, text, G_MAXUINT32, &number))
		return FALSE;
	*out = (guint32)number;
	return TRUE;
}

/* r1, h2+4096, host; `kinds` are the letters that are right here. */
static gboolean read_name(struct line *l, char *text, const char *kinds, struct npu_trace_name *out)
{
	char *plus = strchr(text, '+');

	*out = (struct npu_trace_name){ .kind = NPU_TRACE_NAME_HOST };
	if (strcmp(text, "host") == 0)
		return TRUE;
	if (text[0] == '\0' || strchr(kinds, text[0]) == NULL)
		return bad(l, "'%.40s' is no name of the kinds '%s', as %c1 is one", text, kinds,
			   kinds[0]);
	out->kind = text[0];
	if (plus)
		*plus++ = '\0';
	return (plus == NULL ||
		read_number(l, "the offset of a name", plus, G_MAXUINT64, &out->offset)) &&
	       read_small(l, "the number of a name", text + 1, &out->number);
}

static gboolean read_device(struct line *l, const char *text)
{
	guint32 id;

	l->out->device = NPU_TRACE_HOST;
	if (strcmp(text, "host") == 0)
		return TRUE;
	if (!read_small(l, "device", text, &id))
		return FALSE;
	l->out->device = id;
	return TRUE;
}

static gboolean read_page(struct line *l, const char *text)
{
	l->out->page_lg2 = strcmp(text, "4k") == 0   ? 12
			   : strcmp(text, "2m") == 0 ? 21
			   : strcmp(text, "1g") == 0 ? 30
						     : 0;
	return l->out->page_lg2 != 0 || bad(l, "page is '%.40s', not 4k, 2m or 1g", text);
}

/* %XX decoded; valid UTF-8 whatever was there. */
static char *decoded(char *text)
{
	char *to = text;

	for (const char *c = text; *c; c++, to++) {
		gboolean code = *c == '%' && g_ascii_isxdigit(c[1]) && g_ascii_isxdigit(c[2]);
		*to = code ? (char)(g_ascii_xdigit_value(c[1]) << 4 | g_ascii_xdigit_value(c[2]))
			   : *c;
		c += code ? 2 : 0;
	}
	return g_utf8_make_valid(text, to - text);
}

static gboolean read_text(char *text, char **keep, const char **out)
{
	g_free(*keep);
	*out = *keep = decoded(text);
	return TRUE;
}

static gboolean read_op(struct line *l, char *text)
{
	struct npu_trace_record *r = l->out;

	if (r->verb == NPU_TRACE_DEVICE_SET && strcmp(text, "reset") == 0)
		r->verb = NPU_TRACE_DEVICE_RESET;
	if (r->verb == NPU_TRACE_FREE && strcmp(text, "requested") == 0)
		r->verb = NPU_TRACE_FREE_REQUESTED;
	if (r->verb != NPU_TRACE_CALL && r->verb != NPU_TRACE_NOTE)
		return TRUE;
	r->has |= NPU_TRACE_HAS_OP;
	return read_text(text, &l->reader->op, &r->op);
}

/* Keys that are not known are passed over. */
static gboolean read_key(struct line *l, const char *key, char *text)
{
	struct npu_trace_record *r = l->out;
	const struct trace_key *k = trace_keys;

	while (k->word && strcmp(key, k->word) != 0)
		k++;
	if (k->word == NULL)
		return TRUE;
	void *field = (char *)r + k->field;
	if (k->kind == TRACE_KEY_HINT && !number_parse(text, G_MAXUINT64, field))
		return TRUE;
	if (k->kind == TRACE_KEY_FLAG ? strcmp(text, k->text) == 0 : k->kind != TRACE_KEY_OP)
		r->has |= k->bit;
	switch (k->kind) {
	case TRACE_KEY_NUMBER:
		return read_number(l, k->word, text, G_MAXUINT64, field);
	case TRACE_KEY_NAME:
		return read_name(l, text, k->text, field);
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

static gboolean read_stamp(struct line *l, char *text)
{
	struct npu_trace_record *r = l->out;
	char *dot = strchr(text, '.');

	switch (text[0]) {
	case '@':
		r->has |= NPU_TRACE_HAS_HOST_NS;
		return read_number(l, "the time behind @", text + 1, G_MAXUINT64, &r->host_ns);
	case '+':
		r->has |= NPU_TRACE_HAS_TOOK;
		return read_number(l, "the time behind +", text + 1, G_MAXUINT64, &r->took_ns);
	case '~':
		r->has |= NPU_TRACE_HAS_SIMULATED;
		return read_number(l, "the time behind ~", text + 1, G_MAXUINT64, &r->simulated_ps);
	default:
		if (dot == NULL)
			return bad(l, "the stamp '%.40s' is not :process.thread", text);
		*dot++ = '\0';
		r->has |= NPU_TRACE_HAS_THREAD;
		return read_small(l, "process", text + 1, &r->process) &&
		       read_small(l, "thread", dot, &r->thread);
	}
}

static gboolean read_word(struct line *l, char *text)
{
	char *equals;

	if (!l->has_verb && strchr("@+~:", text[0]))
		return read_stamp(l, text);
	if (!l->has_verb) {
		guint32 v = 0;

		while (v < NPU_TRACE_VERB_COUNT && strcmp(trace_verbs[v].word, text) != 0)
			v++;
		l->has_verb = TRUE;
		l->out->verb = v;
		return TRUE;
	}
	equals = strchr(text, '=');
	if (equals) {
		*equals = '\0';
		return read_key(l, text, equals + 1);
	}
	if (l->out->has & NPU_TRACE_HAS_NAME)
		return bad(l, "'%.40s' is neither key=value nor expected", text);
	l->out->has |= NPU_TRACE_HAS_NAME;
	return read_name(l, text, "rhsab", &l->out->name);
}

static void read_info(struct npu_trace_reader *reader, char **rest)
{
	guint first = reader->infos->len;
	guint64 process = 0;
	char *text;

	while ((text = strtok_r(NULL, BLANKS, rest)) != NULL) {
		char *equals = strchr(text, '=');
		struct info info;

		if (equals == NULL || reader->infos->len >= INFOS_MAX)
			continue;
		*equals++ = '\0';
		if (strcmp(text, "process") == 0 && number_parse(equals, G_MAXUINT64, &process))
			continue;
		info = (struct info){ .key = decoded(text), .value = decoded(equals) };
		g_array_append_val(reader->infos, info);
	}
	for (; first < reader->infos->len; first++)
		g_array_index(reader->infos, struct info, first).process = (guint32)process;
}

/* 1: a record; 0: nothing for the caller; -1. */
static int read_line(struct line *l, char *line)
{
	char *rest, *text = strtok_r(line, BLANKS, &rest), why[96];
	guint64 code;

	if (text == NULL || text[0] == '#')
		return 0;
	if (strcmp(text, "info") == 0) {
		read_info(l->reader, &rest);
		return 0;
	}
	for (; text && strcmp(text, "=>") != 0; text = strtok_r(NULL, BLANKS, &rest)) {
		if (!read_word(l, text))
			return -1;
		if (l->out->verb == NPU_TRACE_VERB_COUNT) {
			l->reader->skipped++;
			return 0;
		}
	}
	if (text) {
		text = strtok_r(NULL, BLANKS, &rest);
		if (text == NULL)
			return bad(l, "there is no code after '=>'") ? 0 : -1;
		if (!read_number(l, "the code", text, G_MAXINT32, &code))
			return -1;
		l->out->code = (gint32)code;
	}
	if (!l->has_verb)
		return bad(l, "there is no verb") ? 0 : -1;
	if (!trace_verb_check(l->out, why, sizeof why))
		return bad(l, "%s", why) ? 0 : -1;
	return 1;
}

/* The next whole line: 1, 0 at the end, -1. */
static int next_line(struct npu_trace_reader *r, struct input_line *out, GError **error)
{
	int more = input_line(r->input, NPU_TRACE_LINE_MAX, out, error);

	r->truncated = more > 0 && !out->whole;
	if (more > 0 && r->copy && out->whole) {
		g_string_append_len(r->copy, out->text, (gssize)out->length);
		g_string_append_c(r->copy, '\n');
	}
	return r->truncated ? 0 : more;
}

int trace_reader_take(struct npu_trace_reader *reader, struct npu_trace_record *out, GError **error)
{
	struct input_line line;
	int result = 0;

	while (result == 0) {
		struct line l = { .reader = reader, .out = out, .error = error };
		result = next_line(reader, &line, error);
		if (result <= 0)
			return result;
		memset(out, 0, sizeof *out);
		out->line = line.number;
		out->page_lg2 = 21;
		result = read_line(&l, line.text);
	}
	return result;
}

static void info_clear(gpointer data)
{
	struct info *info = data;

	g_free(info->key);
	g_free(info->value);
}

gboolean trace_reader_rewind(struct npu_trace_reader *reader, GError **error)
{
	struct input_line line;
	guint64 version;

	reader->skipped = 0;
	g_array_set_size(reader->infos, 0);
	input_rewind(reader->input);
	int result = next_line(reader, &line, error);
	if (result <= 0)
		return result == 0 && (reader->truncated || line_bad(1, error, "there is none"));
	char *rest, *magic = strtok_r(line.text, BLANKS, &rest);
	const char *number = strtok_r(NULL, BLANKS, &rest);
	if (g_strcmp0(magic, FORMAT_MAGIC) != 0 || number == NULL)
		return line_bad(1, error, "it is not '" FORMAT_MAGIC " %d'", NPU_TRACE_VERSION);
	if (!line_number(1, "the version", number, G_MAXUINT64, &version, error))
		return FALSE;
	return version == NPU_TRACE_VERSION ||
	       line_bad(1, error, "the format's version is " U64 ", this npusim reads version %d",
			version, NPU_TRACE_VERSION);
}

void trace_reader_copy(struct npu_trace_reader *reader, GString *text)
{
	reader->copy = text;
}

struct npu_trace_reader *trace_reader_new(struct input *input, GError **error)
{
	struct npu_trace_reader *r = g_new0(struct npu_trace_reader, 1);

	r->input = input;
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
	g_free(reader->op);
	g_free(reader->site);
	g_free(reader->error);
	g_free(reader);
}

/* ---- the face without GLib ---- */

/* Takes the error over. Those of the input name the file themselves. GLib's memory is malloc's. */
static char *text_of(GError *error, const char *name)
{
	char *text = error->domain == TRACE_ERROR ? g_strdup_printf("%s: %s", name, error->message)
						  : g_strdup(error->message);

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
	g_autofree char *name = g_filename_display_name(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return opened(input_open_fd(fd, name, &error), &error, out_error);
}

struct npu_trace_reader *npu_trace_reader_open_fd(int fd, const char *name, char **out_error)
{
	GError *error = NULL;

	errno = EBADF; /* what fd < 0 means */
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
	g_free(reader->error);
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
	const char *known, *value;
	uint32_t process;

	for (size_t i = 0; npu_trace_reader_info(reader, i, &process, &known, &value); i++)
		if (strcmp(known, key) == 0)
			return value;
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
