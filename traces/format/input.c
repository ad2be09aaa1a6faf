/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files for all readers of traces, by zlib's inflate() if they are gzip, since its gzread()
 * silently ignores what begins as no member does: a damaged header would hide the rest of a file.
 */
#include "input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK_BYTES (256u << 10)
#define WHOLE_MAX   (G_MAXUINT32 - CHUNK_BYTES)
#define LINE_ROOM   (64u << 10) /* of the buffer for lines, at first */

struct input {
	char *name;
	int fd;
	gboolean gzip;
	z_stream z;
	gboolean member_done, ended;
	gboolean raw_end; /* zlib was given all that the file has */
	guint64 raw_at;   /* bytes of the file that were read */
	guint64 taken;    /* bytes that readers got since the first */
	guint8 *chunk;    /* what zlib reads next */

	char *lines;            /* the bytes of those that come next, and a place for a zero */
	gsize room, start, end; /* what of it is yet to be read */
	gboolean at_end;        /* it has the last ones */
	guint64 line;
};

G_DEFINE_QUARK(npusim - trace, trace_error)

static gboolean fail(struct input *in, GError **error, const char *what)
{
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_IO, "%s: gzip damaged at byte " U64 ": %s",
		      in->name, in->raw_at - in->z.avail_in, what);
}

static gboolean fail_errno(const char *name, GError **error, const char *what)
{
	int code = errno;
	return refuse_file(error, code, "%s: %s: %s", name, what, g_strerror(code));
}

/* ---- temporary files ---- */

static const char *temp_file_folder(void)
{
	const char *said = g_getenv("TMPDIR");

	if (said && *said)
		return said;
	return g_file_test("/var/tmp", G_FILE_TEST_IS_DIR) ? "/var/tmp" : g_get_tmp_dir();
}

gboolean temp_file_failed(const char *what, GError **error)
{
	int code = errno;

	return refuse_file(error, code,
			   "%s: a temporary file for what does not fit into memory, or comes only "
			   "once, cannot be %s: %s; TMPDIR names another folder",
			   temp_file_folder(), what, g_strerror(code));
}

int temp_file_open(GError **error)
{
	g_autofree char *name = g_build_filename(temp_file_folder(), "npusim-XXXXXX", NULL);
	int fd = g_mkstemp_full(name, O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		temp_file_failed("made", error);
	else
		unlink(name);
	return fd;
}

static gboolean write_all(int fd, const guint8 *bytes, gsize count, GError **error)
{
	while (count > 0) {
		ssize_t done = TEMP_FAILURE_RETRY(write(fd, bytes, count));
		if (done < 0)
			return temp_file_failed("written", error);
		bytes += done;
		count -= (gsize)done;
	}
	return TRUE;
}

/* What `from` gives, to its end. */
static gboolean write_from(int fd, int from, const char *name, GError **error)
{
	g_autofree guint8 *piece = g_malloc(CHUNK_BYTES);
	ssize_t got;

	while ((got = TEMP_FAILURE_RETRY(read(from, piece, CHUNK_BYTES))) > 0) {
		if (!write_all(fd, piece, (gsize)got, error))
			return FALSE;
	}
	return got == 0 || fail_errno(name, error, "it cannot be read");
}

static gssize raw_take(struct input *in, guint8 *into, gsize room, GError **error)
{
	gsize got = 0;
	while (got < room) {
		ssize_t n = TEMP_FAILURE_RETRY(
			pread(in->fd, into + got, room - got, (off_t)in->raw_at));
		if (n < 0)
			return fail_errno(in->name, error, "it cannot be read"), -1;
		if (n == 0)
			break;
		got += (gsize)n;
		in->raw_at += (guint64)n;
	}
	return (gssize)got;
}

/* One step of inflate() into z.next_out; sets `ended` after the last member. */
static gboolean inflate_step(struct input *in, GError **error)
{
	if (in->z.avail_in == 0 && !in->raw_end) {
		gssize got = raw_take(in, in->chunk, CHUNK_BYTES, error);
		if (got < 0)
			return FALSE;
		in->z.next_in = in->chunk;
		in->z.avail_in = (uInt)got;
		in->raw_end = got < (gssize)CHUNK_BYTES;
	}
	if (in->member_done) {
		/* zeros that fill a block up are no member */
		for (; in->z.avail_in > 0 && *in->z.next_in == 0; in->z.avail_in--)
			in->z.next_in++;
		if (in->z.avail_in == 0) {
			in->ended = in->raw_end;
			return TRUE;
		}
		inflateReset(&in->z);
		in->member_done = FALSE;
	}
	int code = inflate(&in->z, Z_NO_FLUSH);
	if (code == Z_BUF_ERROR && in->z.avail_in == 0 && in->raw_end)
		return fail(in, error, "the file ends early");
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return fail(in, error, in->z.msg ? in->z.msg : "the stream is not valid");
	in->member_done = code == Z_STREAM_END;
	return TRUE;
}

struct input *input_open_fd(int fd, const char *name, GError **error)
{
	struct input *in = g_new0(struct input, 1);
	gboolean ok = fd >= 0 || fail_errno(name, error, "it cannot be opened");
	guint8 head[2];

	in->name = g_strdup(name);
	in->fd = fd;
	if (ok && lseek(fd, 0, SEEK_SET) != 0) {
		/* a pipe, whose bytes are kept, so that they can be read twice */
		in->fd = memfd_create("npusim-input", MFD_CLOEXEC);
		ok = in->fd < 0 ? temp_file_failed("made", error)
				: write_from(in->fd, fd, name, error);
		close(fd);
	}
	gssize got = ok ? raw_take(in, head, sizeof head, error) : -1;
	in->raw_at = 0;
	in->gzip = got == 2 && head[0] == 0x1f && head[1] == 0x8b;
	if (in->gzip)
		in->chunk = g_malloc(CHUNK_BYTES);
	if (got >= 0 && (!in->gzip || inflateInit2(&in->z, 15 + 16) == Z_OK ||
			 fail(in, error, "zlib does not start")))
		return in;
	input_close(in);
	return NULL;
}

static GHashTable *kept; /* path -> where to find what came from it; NULL: nothing did */

struct input *input_open(const char *path, GError **error)
{
	const char *where = kept ? g_hash_table_lookup(kept, path) : NULL;
	gboolean standard = where == NULL && strcmp(path, "-") == 0;
	g_autofree char *name = g_filename_display_name(path); /* first: it loses errno */
	int fd = standard ? dup(STDIN_FILENO) : open(where ?: path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && standard)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "standard input is closed"),
		       NULL;
	/* a device that can be sought, as /dev/zero, need not end */
	if (fd < 0 || (!standard && lseek(fd, 0, SEEK_SET) == 0))
		return input_open_fd(fd, name, error);
	int copy = temp_file_open(error);
	gboolean ok = copy >= 0 && write_from(copy, fd, path, error);
	close(fd);
	if (copy >= 0 && !ok)
		close(copy);
	if (!ok)
		return NULL;
	if (kept == NULL)
		kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_hash_table_insert(kept, g_strdup(path), g_strdup_printf("/proc/self/fd/%d", copy));
	return input_open_fd(fcntl(copy, F_DUPFD_CLOEXEC, 0), name, error);
}

struct input *input_open_bytes(const void *bytes, gsize count, const char *name, GError **error)
{
	int fd = memfd_create("npusim-input", MFD_CLOEXEC);

	if (fd >= 0 && !write_all(fd, bytes, count, error)) {
		close(fd);
		return NULL;
	}
	return input_open_fd(fd, name, error);
}

void input_close(struct input *in)
{
	if (in == NULL)
		return;
	if (in->fd >= 0)
		close(in->fd);
	inflateEnd(&in->z); /* does nothing where it did not begin */
	g_free(in->chunk);
	g_free(in->lines);
	g_free(in->name);
	g_free(in);
}

gssize input_take(struct input *in, guint8 *into, gsize room, GError **error)
{
	/* whatever the reader keeps of these bytes: the next call looks at it */
	if (!memory_limit_ask(room, error, "byte " U64 "%s", in->taken,
			      in->gzip ? " of what it unpacks to" : ""))
		return -1;
	gsize wanted = MIN(room, (gsize)G_MAXINT32);
	gssize got = in->gzip ? 0 : raw_take(in, into, room, error);
	in->z.next_out = into;
	in->z.avail_out = (uInt)wanted;
	while (in->gzip && in->z.avail_out > 0 && !in->ended) {
		if (!inflate_step(in, error))
			return -1;
		got = (gssize)(wanted - in->z.avail_out);
	}
	in->taken += (guint64)MAX(got, 0);
	return got;
}

void input_rewind(struct input *in)
{
	in->taken = in->line = in->raw_at = 0;
	in->start = in->end = 0;
	in->at_end = in->member_done = in->ended = in->raw_end = FALSE;
	inflateReset(&in->z);
	in->z.avail_in = 0;
}

const char *input_name(const struct input *in)
{
	return in->name;
}

GBytes *input_whole(struct input *in, GError **error)
{
	g_autoptr(GByteArray) all = g_byte_array_new();
	gssize got = 1;

	input_rewind(in);
	while (got > 0) {
		guint at = all->len;
		if (at > WHOLE_MAX) {
			refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOMEM,
			       "%s: it holds more than this reader takes at once (4 GiB)",
			       in->name);
			return NULL;
		}
		g_byte_array_set_size(all, at + CHUNK_BYTES);
		got = input_take(in, all->data + at, CHUNK_BYTES, error);
		g_byte_array_set_size(all, at + (guint)MAX(got, 0));
	}
	return got < 0 ? NULL : g_byte_array_free_to_bytes(g_steal_pointer(&all));
}

int input_line(struct input *in, gsize most, struct input_line *out, GError **error)
{
	gsize looked = 0;
	char *end = NULL;

	for (;;) {
		gsize waiting = in->end - in->start;
		if (waiting > looked)
			end = memchr(in->lines + in->start + looked, '\n', waiting - looked);
		if (end || in->at_end || waiting > most)
			break;
		looked = waiting;
		if (waiting > 0)
			memmove(in->lines, in->lines + in->start, waiting);
		in->start = 0;
		if (2 * waiting >= in->room) {
			in->room = MAX(2 * in->room, LINE_ROOM);
			in->lines = g_realloc(in->lines, in->room + 1);
		}
		gssize got =
			input_take(in, (guint8 *)in->lines + waiting, in->room - waiting, error);
		if (got < 0)
			return -1;
		in->end = waiting + (gsize)got;
		in->at_end = in->end < in->room;
	}
	*out = (struct input_line){ .text = in->lines + in->start,
				    .number = in->line + 1,
				    .whole = end != NULL };
	out->length = (gsize)((end ? end : in->lines + in->end) - out->text);
	if (out->length == 0 && end == NULL)
		return 0;
	if (out->length > most)
		return line_bad(out->number, error, "it is longer than %zu KiB", most / 1024), -1;
	if (memchr(out->text, '\0', out->length))
		return line_bad(out->number, error, "there is a NUL byte: this is no text"), -1;
	out->text[out->length] = '\0';
	in->start += out->length + out->whole;
	in->line++;
	return 1;
}

gboolean line_bad(guint64 line, GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	for (char *c = valid; *c; c++)
		*c = g_ascii_iscntrl(*c) ? '?' : *c;
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line " U64 ": %s", line, valid);
}

gboolean number_parse(const char *text, guint64 last, guint64 *out)
{
	gboolean hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	return g_ascii_string_to_unsigned(text + (hexadecimal ? 2 : 0), hexadecimal ? 16 : 10, 0,
					  last, out, NULL);
}

gboolean line_number(guint64 line, const char *what, const char *text, guint64 last, guint64 *out,
		     GError **error)
{
	return number_parse(text, last, out) ||
	       line_bad(line, error, "%s is '%.40s', which is no number from 0 to " U64, what, text,
			last);
}
