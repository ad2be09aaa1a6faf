/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim traces: lines are cut up where they lie, nothing is copied.
 */
#include "format.h"

#include <string.h>

#include "format-words.h"

#define VERSION      1
#define BUFFER_BYTES (1u << 20)
#define LINE_BYTES   (64u << 10)
#define OFFSET_BITS  43 /* of a reservation's offset in an event's address: 8 TiB */
#define RESERVATIONS (1u << (63 - OFFSET_BITS))

struct format_reader {
	struct input *input;
	char *buffer;
	gsize start, end; /* what of it is yet to be read */
	gboolean at_end;
	guint64 line, skipped;
	gboolean truncated;
	char *soc, *about;
	GHashTable *reservations; /* process << 32 | number -> index + 1, of those that segment_map
				     lines name */
};

/* A line that is being read. */
struct line {
	struct words w;
	struct trace_record *out;
	gboolean has_verb, has_name, has_size, has_device, has_at, has_handle, has_share;
	struct word verb;
	gint64 stream;
	guint64 free_bytes;
	gboolean requested; /* op= */
};

static int out_of(const struct word *name, const char *const *list, int count)
{
	for (int i = 0; i < count; i++) {
		if (word_is(name, list[i]))
			return i;
	}
	return count;
}

/* ---- keys ---- */

static gboolean read_device(struct line *l, struct word text)
{
	guint32 id;
	l->has_device = TRUE;
	if (word_is(&text, "host")) {
		l->out->device = -1;
		return TRUE;
	}
	if (!words_small(&l->w, "device", text, G_MAXUINT32, &id))
		return FALSE;
	l->out->device = (gint32)MIN(id, (guint32)G_MAXINT32);
	return TRUE;
}

static gboolean read_page(struct line *l, struct word text)
{
	static const char *const pages[] = { "4k", "2m", "1g" };
	static const guint8 lg2[] = { 12, 21, 30 };
	int i = out_of(&text, pages, G_N_ELEMENTS(pages));
	if (i == G_N_ELEMENTS(pages))
		return words_bad(&l->w, "page is '%s', not 4k, 2m or 1g", words_show(&l->w, text));
	l->out->page_lg2 = lg2[i];
	return TRUE;
}

static gboolean read_op(struct line *l, struct word text)
{
	l->out->reset = word_is(&text, "reset");
	l->requested = word_is(&text, "requested");
	return TRUE;
}

static gboolean read_stream(struct line *l, struct word text)
{
	guint64 v;
	if (!words_number(&l->w, text, &v))
		return FALSE;
	l->stream = (gint64)v;
	return TRUE;
}

static gboolean read_place(struct line *l, struct word text, const char *kinds, gboolean *has,
			   struct trace_name *out)
{
	*has = TRUE;
	return words_name(&l->w, text, kinds, out);
}

static gboolean read_key(struct line *l, struct word key, struct word text)
{
	struct trace_record *c = l->out;
	gboolean unused;
	if (word_is(&key, "size"))
		return l->has_size = TRUE, words_number(&l->w, text, &c->size);
	if (word_is(&key, "device") || word_is(&key, "id"))
		return read_device(l, text);
	if (word_is(&key, "page"))
		return read_page(l, text);
	if (word_is(&key, "handle"))
		return read_place(l, text, "h", &l->has_handle, &c->handle);
	if (word_is(&key, "share"))
		return read_place(l, text, "s", &l->has_share, &c->share);
	if (word_is(&key, "at") || word_is(&key, "dst"))
		return read_place(l, text, "ra", &l->has_at, &c->at);
	if (word_is(&key, "src"))
		return read_place(l, text, "ra", &unused, &c->from);
	if (word_is(&key, "align"))
		return words_number(&l->w, text, &c->align);
	if (word_is(&key, "hint"))
		return words_number(&l->w, text, &c->hint);
	if (word_is(&key, "flags"))
		return words_number(&l->w, text, &c->flags);
	if (word_is(&key, "rounded"))
		return words_number(&l->w, text, &c->rounded);
	if (word_is(&key, "op"))
		return read_op(l, text);
	if (word_is(&key, "stream"))
		return read_stream(l, text);
	if (word_is(&key, "free"))
		return words_number(&l->w, text, &l->free_bytes);
	return TRUE;
}

/* ---- verbs ---- */

/* What a verb's line must say. */
struct needs {
	const char *verb;
	char kind; /* of the name; 0: none is needed */
	guint8 size, device, at, handle, share;
};

static const struct needs calls[TRACE_CALL_COUNT] = {
	[TRACE_CALL_DEVICE] = { .verb = "device", .device = 1 },
	[TRACE_CALL_RESERVE] = { .verb = "reserve", .kind = 'r', .size = 1 },
	[TRACE_CALL_UNRESERVE] = { .verb = "unreserve", .kind = 'r' },
	[TRACE_CALL_CREATE] = { .verb = "create", .kind = 'h', .size = 1, .device = 1 },
	[TRACE_CALL_RELEASE] = { .verb = "release", .kind = 'h' },
	[TRACE_CALL_RETAIN] = { .verb = "retain", .kind = 'h', .at = 1 },
	[TRACE_CALL_MAP] = { .verb = "map", .kind = 'r', .size = 1, .handle = 1 },
	[TRACE_CALL_UNMAP] = { .verb = "unmap", .kind = 'r' },
	[TRACE_CALL_ACCESS] = { .verb = "access", .kind = 'r', .size = 1, .device = 1 },
	[TRACE_CALL_EXPORT] = { .verb = "export", .kind = 's', .handle = 1 },
	[TRACE_CALL_IMPORT] = { .verb = "import", .kind = 'h', .share = 1, .device = 1 },
	[TRACE_CALL_MALLOC] = { .verb = "malloc", .kind = 'a', .size = 1, .device = 1 },
	[TRACE_CALL_MFREE] = { .verb = "mfree", .kind = 'a' },
	[TRACE_CALL_COPY] = { .verb = "copy", .size = 1 },
	[TRACE_CALL_FILL] = { .verb = "fill", .size = 1 },
	[TRACE_CALL_OTHER] = { .verb = "call" },
};
static const struct needs events[TRACE_OTHER] = {
	[TRACE_ALLOC] = { .verb = "alloc", .kind = 'b', .size = 1, .device = 1 },
	[TRACE_FREE_COMPLETED] = { .verb = "free", .kind = 'b', .device = 1 },
	[TRACE_SEGMENT_ALLOC] = { .verb = "segment_alloc", .kind = 'a', .size = 1, .device = 1 },
	[TRACE_SEGMENT_FREE] = { .verb = "segment_free", .kind = 'a', .device = 1 },
	[TRACE_SEGMENT_MAP] = { .verb = "segment_map", .kind = 'r', .size = 1, .device = 1 },
	[TRACE_SEGMENT_UNMAP] = { .verb = "segment_unmap", .kind = 'r', .size = 1, .device = 1 },
	[TRACE_OOM] = { .verb = "oom", .size = 1, .device = 1 },
};

static gboolean check(struct line *l, const struct needs *n)
{
	const char *lacks = n->size && !l->has_size       ? "size="
			    : n->device && !l->has_device ? "device="
			    : n->at && !l->has_at         ? "at="
			    : n->handle && !l->has_handle ? "handle="
			    : n->share && !l->has_share   ? "share="
							  : NULL;
	/* a call that failed may name what is not there, "host", or any device */
	if (n->kind && l->out->name.kind != n->kind &&
	    (l->out->code == 0 || l->out->name.kind != '-'))
		return words_bad(&l->w, "%s needs a name %cN", n->verb, n->kind);
	if (lacks)
		return words_bad(&l->w, "%s needs %s", n->verb, lacks);
	if (l->out->device > TRACE_DEVICE_LAST && l->out->code == 0)
		return words_bad(&l->w, "device is %d, the last is %d", l->out->device,
				 TRACE_DEVICE_LAST);
	return TRUE;
}

static gboolean expandable_address(struct format_reader *r, struct line *l, guint64 *out)
{
	const struct trace_record *c = l->out;
	guint64 key = (guint64)c->process << 32 | c->name.number;
	guint index = GPOINTER_TO_UINT(g_hash_table_lookup(r->reservations, &key));
	if (index == 0) {
		index = g_hash_table_size(r->reservations) + 1;
		if (index >= RESERVATIONS)
			return words_bad(&l->w,
					 "it is the %uth reservation, more than a replay takes",
					 index);
		g_hash_table_insert(r->reservations, g_memdup2(&key, sizeof key),
				    GUINT_TO_POINTER(index));
	}
	if (c->name.offset >> OFFSET_BITS || c->size >> OFFSET_BITS ||
	    (c->name.offset + c->size) >> OFFSET_BITS)
		return words_bad(&l->w, "it ends more than 8 TiB into its reservation");
	*out = (guint64)index << OFFSET_BITS | c->name.offset;
	return TRUE;
}

static gboolean finish_event(struct format_reader *r, struct line *l, int action)
{
	struct trace_record *c = l->out;
	c->verb = TRACE_EVENT;
	c->event = (struct trace_event){ .action = (guint8)action,
					 .address = (guint64)c->process << 32 | c->name.number,
					 .size = c->size,
					 .stream = l->stream,
					 .time_us = (gint64)(c->host_ns / 1000) };
	if (!check(l, &events[action]))
		return FALSE;
	if (c->device < 0)
		return words_bad(&l->w, "%s is about a device", events[action].verb);
	if (action == TRACE_FREE_COMPLETED && l->requested)
		c->event.action = TRACE_FREE_REQUESTED;
	if (action == TRACE_OOM)
		c->event.address = l->free_bytes;
	if (action == TRACE_SEGMENT_MAP || action == TRACE_SEGMENT_UNMAP)
		return expandable_address(r, l, &c->event.address);
	return TRUE;
}

/* 1: a record; 0: a verb that is not known; -1. */
static int finish(struct format_reader *r, struct line *l)
{
	for (int v = 0; v < TRACE_CALL_COUNT; v++) {
		if (word_is(&l->verb, calls[v].verb)) {
			l->out->verb = (guint8)v;
			return check(l, &calls[v]) ? 1 : -1;
		}
	}
	for (int a = 0; a < TRACE_OTHER; a++) {
		if (events[a].verb && word_is(&l->verb, events[a].verb))
			return finish_event(r, l, a) ? 1 : -1;
	}
	r->skipped++;
	return 0;
}

/* ---- lines ---- */

static gboolean read_stamp(struct line *l, struct word text)
{
	struct word value = { text.at + 1, text.length - 1 };
	guint64 simulated;
	const char *dot;
	switch (text.at[0]) {
	case '@':
		return words_number(&l->w, value, &l->out->host_ns);
	case '~':
		return words_number(&l->w, value, &simulated);
	default:
		dot = memchr(text.at, '.', text.length);
		if (dot == NULL)
			return words_bad(&l->w, "the stamp '%s' is not :process.thread",
					 words_show(&l->w, text));
		value.length = (gsize)(dot - value.at);
		text.length -= (gsize)(dot + 1 - text.at);
		text.at = dot + 1;
		return words_small(&l->w, "process", value, G_MAXUINT32, &l->out->process) &&
		       words_small(&l->w, "thread", text, G_MAXUINT32, &l->out->thread);
	}
}

static gboolean read_code(struct line *l)
{
	struct word text;
	guint32 code;
	if (!words_next(&l->w, &text))
		return words_bad(&l->w, "there is no code after '=>'");
	if (!words_small(&l->w, "the code", text, G_MAXINT32, &code))
		return FALSE;
	l->out->code = (gint32)code;
	return TRUE;
}

static gboolean read_word(struct line *l, struct word text)
{
	const char *equals;
	if (!l->has_verb && strchr("@~:", text.at[0]))
		return read_stamp(l, text);
	if (!l->has_verb) {
		l->has_verb = TRUE;
		l->verb = text;
		return TRUE;
	}
	equals = memchr(text.at, '=', text.length);
	if (equals) {
		struct word key = { text.at, (gsize)(equals - text.at) };
		struct word value = { equals + 1, text.length - key.length - 1 };
		return read_key(l, key, value);
	}
	if (l->has_name)
		return words_bad(&l->w, "'%s' is neither key=value nor expected",
				 words_show(&l->w, text));
	l->has_name = TRUE;
	return words_name(&l->w, text, "rhsab", &l->out->name);
}

/* The first value of a key counts. */
static void take_info(struct word text, const char *key, char **out)
{
	gsize length = strlen(key);
	if (*out == NULL && text.length > length && memcmp(text.at, key, length) == 0)
		*out = words_decode((struct word){ text.at + length, text.length - length });
}

static void read_info(struct format_reader *r, struct line *l)
{
	struct word text;
	while (words_next(&l->w, &text)) {
		take_info(text, "soc=", &r->soc);
		take_info(text, "about=", &r->about);
	}
}

/* 1: a record; 0: nothing for the caller; -1. */
static int read_line(struct format_reader *r, struct line *l)
{
	struct word text;
	if (!words_next(&l->w, &text) || text.at[0] == '#')
		return 0;
	if (word_is(&text, "info")) {
		read_info(r, l);
		return 0;
	}
	do {
		if (word_is(&text, "=>")) {
			if (!read_code(l))
				return -1;
			break;
		}
		if (!read_word(l, text))
			return -1;
	} while (words_next(&l->w, &text));
	if (!l->has_verb)
		return words_bad(&l->w, "there is no verb") ? 0 : -1;
	return finish(r, l);
}

/* ---- the file ---- */

/* The next whole line: 1, 0 at the end, -1. */
static int next_line(struct format_reader *r, struct words *out, GError **error)
{
	gsize looked = 0;
	for (;;) {
		char *text = r->buffer + r->start;
		char *newline = memchr(text + looked, '\n', r->end - r->start - looked);
		*out = (struct words){ .at = text, .line = r->line + 1, .error = error };
		if (newline) {
			out->end = newline;
			r->start += (gsize)(newline - text) + 1;
			r->line++;
			return 1;
		}
		looked = r->end - r->start;
		if (r->at_end) {
			r->truncated = looked > 0;
			return 0;
		}
		if (looked > LINE_BYTES)
			return words_bad(out, "it is longer than %u KiB", LINE_BYTES / 1024) ? 0
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

int format_next(struct format_reader *r, struct trace_record *out, GError **error)
{
	struct line l;
	int result = 0;
	while (result == 0) {
		memset(&l, 0, sizeof l);
		result = next_line(r, &l.w, error);
		if (result <= 0)
			return result;
		memset(out, 0, sizeof *out);
		out->line = r->line;
		out->page_lg2 = 21;
		l.out = out;
		if (memchr(l.w.at, '\0', (gsize)(l.w.end - l.w.at)))
			return words_bad(&l.w, "there is a NUL byte") ? 0 : -1;
		result = read_line(r, &l);
	}
	return result;
}

static gboolean read_header(struct format_reader *r, GError **error)
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
		return words_bad(&w, "it is not '" FORMAT_MAGIC " %d'", VERSION);
	if (!words_number(&w, text, &version))
		return FALSE;
	return version == VERSION || words_bad(&w,
					       "the format's version is %" G_GUINT64_FORMAT
					       ", this npusim reads version %d",
					       version, VERSION);
}

gboolean format_recognise(const guint8 *bytes, gsize count)
{
	gsize length = strlen(FORMAT_MAGIC);
	return count > length && memcmp(bytes, FORMAT_MAGIC, length) == 0 && bytes[length] == ' ';
}

struct format_reader *format_open(struct input *input, GError **error)
{
	struct format_reader *r = g_new0(struct format_reader, 1);
	r->input = input;
	r->buffer = g_malloc(BUFFER_BYTES);
	r->reservations = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	if (format_rewind(r, error))
		return r;
	format_close(r);
	return NULL;
}

gboolean format_rewind(struct format_reader *r, GError **error)
{
	r->start = r->end = 0;
	r->at_end = r->truncated = FALSE;
	r->line = r->skipped = 0;
	g_hash_table_remove_all(r->reservations);
	return input_rewind(r->input, error) && read_header(r, error);
}

void format_close(struct format_reader *r)
{
	if (r == NULL)
		return;
	input_close(r->input);
	g_hash_table_unref(r->reservations);
	g_free(r->buffer);
	g_free(r->soc);
	g_free(r->about);
	g_free(r);
}

/* ---- the summary ---- */

static gboolean gets_memory(const struct trace_record *record)
{
	return record->verb == TRACE_CALL_CREATE || record->verb == TRACE_CALL_MALLOC;
}

static void summarise(struct trace *trace, const struct trace_record *record)
{
	if (record->device >= 0 && record->code == 0 &&
	    (record->verb == TRACE_EVENT || gets_memory(record))) {
		struct trace_device *device = trace_device(trace, (guint)record->device);
		if (record->verb == TRACE_EVENT)
			trace_device_add(device, &record->event, FALSE);
	}
	trace->events++;
	trace->calls += record->verb != TRACE_EVENT;
	trace->memory_calls += gets_memory(record);
}

struct trace *format_read(struct input *input, GError **error)
{
	struct format_reader *r = format_open(input, error);
	struct trace_record record;
	int result;

	if (r == NULL)
		return NULL;
	struct trace *trace = trace_new("npusim trace");
	trace->format = r;
	while ((result = format_next(r, &record, error)) > 0)
		summarise(trace, &record);
	trace->soc = g_strdup(r->soc);
	trace->about = g_strdup(r->about);
	trace->skipped = r->skipped;
	trace->truncated = r->truncated;
	if (result == 0 && format_rewind(r, error))
		return trace;
	trace_free(trace);
	return NULL;
}
