/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer of npusim/trace.h: owns the file and decides when bytes are written to it. The text
 * of a line is made by line.c.
 */
#include "out-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "trace/line.h"

#define BUFFER_BYTES (256u << 10)

struct npu_trace_writer {
	pthread_mutex_t lock; /* of all below */
	gzFile out;           /* compressed, or as they are; NULL: not yet */
	bool buffered;        /* else each line is written at once */
	char *path;
	uint64_t start_ns;
	int failed; /* errno of the first failure, which the file did not get over */
};

/* -code, and what is wrong. GLib's memory is malloc()'s. */
#define fail(code, out_error, ...)                                   \
	({                                                           \
		if ((out_error) != NULL)                             \
			*(out_error) = g_strdup_printf(__VA_ARGS__); \
		-(code);                                             \
	})

static int fail_file(int code, char **out_error, const char *path)
{
	return fail(code, out_error, "%s cannot be written: %s", path, strerror(code));
}

static int add(struct npu_trace_writer *w, const char *line, size_t length, char **out_error)
{
	int code;

	pthread_mutex_lock(&w->lock);
	errno = 0;
	if (w->failed == 0 && gzwrite(w->out, line, (unsigned)length) != (int)length)
		w->failed = errno != 0 ? errno : EIO;
	while (!w->buffered && w->failed == 0 && gzflush(w->out, Z_SYNC_FLUSH) != Z_OK) {
		w->failed = errno != EINTR ? errno : 0;
		gzclearerr(w->out);
	}
	code = w->failed;
	pthread_mutex_unlock(&w->lock);
	return code == 0 ? 0 : fail_file(code, out_error, w->path);
}

int npu_trace_writer_put(struct npu_trace_writer *writer, const struct npu_trace_record *record,
			 char **out_error)
{
	g_autofree char *line = g_malloc(NPU_TRACE_LINE_MAX);
	int length = npu_trace_line(record, line, NPU_TRACE_LINE_MAX, out_error);

	return length < 0 ? length : add(writer, line, (size_t)length, out_error);
}

void out_trace_info(GString *out, guint32 process, const char *key, const char *value)
{
	g_string_append(out, "info ");
	if (process)
		g_string_append_printf(out, "process=%u ", process);
	g_string_append_printf(out, "%s=", key);
	gsize at = out->len;
	g_string_set_size(out, at + 3 * strlen(value));
	struct trace_text text = { .at = out->str + at, .end = out->str + out->len };
	trace_text_put_value(&text, value);
	g_string_truncate(out, (gsize)(text.at - out->str));
	g_string_append_c(out, '\n');
}

int npu_trace_writer_info(struct npu_trace_writer *writer, const char *key, const char *value,
			  char **out_error)
{
	static const char allowed[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-";
	g_autoptr(GString) line = g_string_new(NULL);

	if (key[0] == '\0' || key[strspn(key, allowed)] != '\0')
		return fail(EINVAL, out_error,
			    "'%s' is no key of an info line: letters, digits, '_' and '-'", key);
	out_trace_info(line, 0, key, value);
	return line->len > NPU_TRACE_LINE_MAX
		       ? fail(E2BIG, out_error, "info %s= is longer than 64 KiB", key)
		       : add(writer, line->str, line->len, out_error);
}

struct npu_trace_writer *npu_trace_writer_open(const char *path, unsigned flags, char **out_error)
{
	bool append = (flags & NPU_TRACE_WRITER_APPEND) != 0;
	bool gzip = g_str_has_suffix(path, ".gz");
	bool buffered = gzip || (flags & NPU_TRACE_WRITER_BUFFERED) != 0;

	if (append && buffered) {
		fail(EINVAL, out_error, "%s: a trace is added to only plain, and line by line",
		     path);
		return NULL;
	}
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (append ? 0 : O_CREAT | O_TRUNC),
		      0666);
	gzFile out = fd < 0 ? NULL : gzdopen(fd, gzip ? "wb6" : "wbT");
	if (out == NULL) {
		fail_file(fd < 0 ? errno : ENOMEM, out_error, path);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	struct npu_trace_writer *w = g_new0(struct npu_trace_writer, 1);
	pthread_mutex_init(&w->lock, NULL);
	w->out = out;
	w->buffered = buffered;
	w->path = g_strdup(path);
	w->start_ns = clock_now_ns();
	gzbuffer(out, BUFFER_BYTES);
	if (append || add(w, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE), out_error) == 0)
		return w;
	npu_trace_writer_close(w, NULL);
	return NULL;
}

uint64_t npu_trace_writer_now_ns(const struct npu_trace_writer *writer)
{
	return clock_now_ns() - writer->start_ns;
}

int npu_trace_writer_close(struct npu_trace_writer *writer, char **out_error)
{
	int code, result = 0;

	if (writer == NULL)
		return 0;
	code = writer->failed;
	errno = 0;
	if (gzclose(writer->out) != Z_OK && code == 0)
		code = errno != 0 ? errno : EIO;
	if (code != 0)
		result = fail_file(code, out_error, writer->path);
	pthread_mutex_destroy(&writer->lock);
	g_free(writer->path);
	g_free(writer);
	return result;
}
