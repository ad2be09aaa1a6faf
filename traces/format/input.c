/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files for all readers of traces, through zlib if they are gzip. zlib's own gzread()
 * silently ignores bytes after the last member: a damaged header would hide the rest of a file.
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "memory-limit.h"
#include "temp-file.h"

#define CHUNK_BYTES (256u << 10)
#define WHOLE_MAX   (G_MAXUINT32 - CHUNK_BYTES)

struct input {
	char *name;
	int fd; /* -1: the bytes are in memory */
	const guint8 *bytes;
	gsize count, at;
	GByteArray *own; /* memory of `bytes`, if it is this object's */
	gboolean gzip;
	z_stream z;
	gboolean z_open, member_done, ended;
	gboolean raw_end; /* zlib was given all that the file has */
	guint64 raw_at;   /* bytes of the file that zlib was given */
	guint64 taken;    /* bytes that readers got since the first */
	guint8 *chunk;    /* what zlib reads next */
};

static gboolean fail(struct input *in, GError **error, const char *what)
{
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_IO,
		      "%s: gzip damaged at byte %" G_GUINT64_FORMAT ": %s", in->name,
		      in->raw_at - in->z.avail_in, what);
}

static gboolean fail_errno(struct input *in, GError **error, const char *what)
{
	int code = errno;
	return refuse_file(error, code, "%s: %s: %s", in->name, what, g_strerror(code));
}

/* ---- bytes of the file itself ---- */

static gssize raw_take(struct input *in, guint8 *into, gsize room, GError **error)
{
	gsize got = 0;
	if (in->fd < 0) {
		got = MIN(room, in->count - in->at);
		if (got > 0)
			memcpy(into, in->bytes + in->at, got);
		in->at += got;
		return (gssize)got;
	}
	while (got < room) {
		ssize_t n = read(in->fd, into + got, room - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(in, error, "it cannot be read") ? 0 : -1;
		if (n == 0)
			break;
		got += (gsize)n;
	}
	return (gssize)got;
}

static gboolean raw_rewind(struct input *in, GError **error)
{
	in->at = 0;
	return in->fd < 0 || lseek(in->fd, 0, SEEK_SET) == 0 ||
	       fail_errno(in, error, "it cannot be read twice");
}

/* ---- gzip ---- */

static gboolean feed(struct input *in, GError **error)
{
	gssize got = raw_take(in, in->chunk, CHUNK_BYTES, error);
	if (got < 0)
		return FALSE;
	in->z.next_in = in->chunk;
	in->z.avail_in = (uInt)got;
	in->raw_at += (guint64)got;
	in->raw_end = got < (gssize)CHUNK_BYTES;
	return TRUE;
}

/* One step of inflate() into z.next_out; sets `ended` after the last member. */
static gboolean inflate_step(struct input *in, GError **error)
{
	if (in->z.avail_in == 0 && !in->raw_end && !feed(in, error))
		return FALSE;
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

static gssize gzip_take(struct input *in, guint8 *into, gsize room, GError **error)
{
	in->z.next_out = into;
	in->z.avail_out = (uInt)MIN(room, (gsize)G_MAXINT32);
	gsize wanted = in->z.avail_out;
	while (in->z.avail_out > 0 && !in->ended) {
		if (!inflate_step(in, error))
			return -1;
	}
	return (gssize)(wanted - in->z.avail_out);
}

/* ---- the object ---- */

static gboolean begin(struct input *in, GError **error)
{
	guint8 head[2];
	gssize got = raw_take(in, head, sizeof head, error);
	if (got < 0 || !raw_rewind(in, error))
		return FALSE;
	in->gzip = got == 2 && head[0] == 0x1f && head[1] == 0x8b;
	if (!in->gzip)
		return TRUE;
	in->chunk = g_malloc(CHUNK_BYTES);
	in->z_open = inflateInit2(&in->z, 15 + 16) == Z_OK;
	return in->z_open || fail(in, error, "zlib does not start");
}

static struct input *checked(struct input *in, gboolean ok)
{
	if (ok)
		return in;
	input_close(in);
	return NULL;
}

/* All that `take` gives, added to `all`; FALSE and error also where it is more than 4 GiB. */
static gboolean take_all(struct input *in, GByteArray *all, const char *too_large,
			 gssize (*take)(struct input *, guint8 *, gsize, GError **), GError **error)
{
	gssize got = 1;

	while (got > 0) {
		guint at = all->len;
		if (at > WHOLE_MAX)
			return refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOMEM, "%s: %s", in->name,
				      too_large);
		if (!memory_limit_ask(CHUNK_BYTES, error, "the whole file, at byte %u", at))
			return FALSE;
		g_byte_array_set_size(all, at + CHUNK_BYTES);
		got = take(in, all->data + at, CHUNK_BYTES, error);
		g_byte_array_set_size(all, at + (guint)MAX(got, 0));
	}
	return got == 0;
}

/* A pipe: its bytes are kept, so that they can be read twice. */
static gboolean slurp(struct input *in, GError **error)
{
	in->own = g_byte_array_new();
	if (!take_all(in, in->own, "more than 4 GiB come from it", raw_take, error)) {
		if (error && g_error_matches(*error, TRACE_ERROR, TRACE_ERROR_MEMORY))
			g_prefix_error(error, "%s: ", in->name);
		return FALSE;
	}
	close(in->fd);
	in->fd = -1;
	in->bytes = in->own->data;
	in->count = in->own->len;
	return TRUE;
}

/* Whatever `in->fd` is. */
static struct input *opened(struct input *in, GError **error)
{
	struct stat status;

	if (in->fd < 0 || fstat(in->fd, &status) != 0)
		return checked(in, fail_errno(in, error, "it cannot be opened"));
	if (S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		return checked(in, fail_errno(in, error, "it cannot be read"));
	}
	gboolean twice = lseek(in->fd, 0, SEEK_SET) == 0;
	return checked(in, (twice || slurp(in, error)) && begin(in, error));
}

static GHashTable *kept; /* path -> where to find its file; NULL: none was */

static gboolean keep(int from, const char *path, GError **error)
{
	g_autofree guint8 *piece = g_malloc(CHUNK_BYTES);
	struct input in = { .name = (char *)path, .fd = from };
	int fd = temp_file_open(error);
	goffset at = 0;
	gboolean ok = fd >= 0;
	gssize got = CHUNK_BYTES;

	while (ok && got == CHUNK_BYTES) {
		got = raw_take(&in, piece, CHUNK_BYTES, error);
		ok = got >= 0 && temp_file_write(fd, piece, (gsize)got, at, error);
		at += got;
	}
	if (!ok && fd >= 0)
		close(fd);
	if (!ok)
		return FALSE;
	if (kept == NULL)
		kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_hash_table_replace(kept, g_strdup(path), g_strdup_printf("/proc/self/fd/%d", fd));
	return TRUE;
}

gboolean input_keep(const char *path, GError **error)
{
	gboolean standard = strcmp(path, "-") == 0;
	struct stat status;

	if (kept && g_hash_table_contains(kept, path))
		return TRUE;
	/* what is not there, whoever opens it tells */
	if (!standard &&
	    (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
		return TRUE;
	int from = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return !standard ||
		       refuse(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "standard input is closed");
	/* a device that can be sought, as /dev/zero, need not end */
	gboolean twice = !standard && lseek(from, 0, SEEK_SET) == 0;
	gboolean ok = twice || keep(from, path, error);
	close(from);
	return ok;
}

struct input *input_open(const char *path, GError **error)
{
	struct input *in = g_new0(struct input, 1);
	const char *where = kept ? g_hash_table_lookup(kept, path) : NULL;

	in->name = g_filename_display_name(path);
	in->fd = open(where ? where : path, O_RDONLY | O_CLOEXEC);
	return opened(in, error);
}

struct input *input_open_fd(int fd, const char *name, GError **error)
{
	struct input *in = g_new0(struct input, 1);

	in->name = g_strdup(name);
	in->fd = fd;
	errno = EBADF; /* what fd < 0 means */
	return opened(in, error);
}

struct input *input_open_bytes(const guint8 *bytes, gsize count, const char *name, GError **error)
{
	struct input *in = g_new0(struct input, 1);
	in->name = g_strdup(name);
	in->fd = -1;
	in->bytes = bytes;
	in->count = count;
	return checked(in, begin(in, error));
}

void input_close(struct input *in)
{
	if (in == NULL)
		return;
	if (in->fd >= 0)
		close(in->fd);
	if (in->z_open)
		inflateEnd(&in->z);
	if (in->own)
		g_byte_array_unref(in->own);
	g_free(in->chunk);
	g_free(in->name);
	g_free(in);
}

gssize input_take(struct input *in, guint8 *into, gsize room, GError **error)
{
	/* whatever the reader keeps of these bytes: the next call looks at it */
	if (!memory_limit_ask(room, error, "byte %" G_GUINT64_FORMAT "%s", in->taken,
			      in->gzip ? " of what it unpacks to" : ""))
		return -1;
	gssize got = in->gzip ? gzip_take(in, into, room, error) : raw_take(in, into, room, error);
	in->taken += (guint64)MAX(got, 0);
	return got;
}

gboolean input_rewind(struct input *in, GError **error)
{
	in->taken = 0;
	if (in->gzip) {
		inflateReset(&in->z);
		in->z.avail_in = 0;
		in->member_done = in->ended = in->raw_end = FALSE;
		in->raw_at = 0;
	}
	return raw_rewind(in, error);
}

const char *input_name(const struct input *in)
{
	return in->name;
}

GBytes *input_whole(struct input *in, GError **error)
{
	GByteArray *all = g_byte_array_new();

	if (input_rewind(in, error) &&
	    take_all(in, all, "it holds more than this reader takes at once (4 GiB)", input_take,
		     error))
		return g_byte_array_free_to_bytes(all);
	g_byte_array_unref(all);
	return NULL;
}
