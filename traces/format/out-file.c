/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the files of the command next to their destination and renames them at the end,
 * compresses them if wanted, and words the errors of a full disk.
 */
#include "out-file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "input.h"

#define FLUSH_AT (64u << 10)

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
static struct sigaction before[G_N_ELEMENTS(signals)];
static char removed_at_signal[4096]; /* "": none */

/* The file's name is whole before a handler is there, and the handler gone before it changes. */
static void on_signal(int number)
{
	if (removed_at_signal[0])
		unlink(removed_at_signal);
	signal(number, SIG_DFL);
	raise(number);
}

/* Who ignores a signal goes on ignoring it. */
static void handle_signals(const char *temp)
{
	struct sigaction action = { .sa_handler = on_signal };

	if (strlen(temp) >= sizeof removed_at_signal || removed_at_signal[0])
		return;
	strcpy(removed_at_signal, temp);
	for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
		sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

static void leave_signals(const char *temp)
{
	if (strcmp(temp, removed_at_signal) != 0)
		return;
	for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	removed_at_signal[0] = '\0';
}

void out_file_begin(struct out_file *f, const char *path)
{
	gboolean standard = strcmp(path, "-") == 0;

	*f = (struct out_file){ .path = g_strdup(path) };
	f->gzip = g_str_has_suffix(path, ".gz");
	f->renames = !standard && (!g_file_test(path, G_FILE_TEST_EXISTS) ||
				   g_file_test(path, G_FILE_TEST_IS_REGULAR));
	if (!f->renames) {
		f->temp = g_strdup(standard ? "/dev/stdout" : path);
		return;
	}
	/* a link stays one: what it leads to is replaced */
	char *real = realpath(path, NULL);
	if (real) {
		g_free(f->path);
		f->path = g_strdup(real);
	}
	free(real);
	f->temp = g_strdup_printf("%s.%08x.part%s", f->path, g_random_int(), f->gzip ? ".gz" : "");
	handle_signals(f->temp);
}

gboolean out_file_check(const char *path, GError **error)
{
	g_autofree char *folder = g_path_get_dirname(path);
	int why = strcmp(path, "-") == 0                  ? 0
		  : g_file_test(path, G_FILE_TEST_IS_DIR) ? EISDIR
		  : access(folder, F_OK) != 0             ? errno
							  : 0;

	return why == 0 ||
	       refuse_file(error, why, "%s cannot be written: %s", path, g_strerror(why));
}

gboolean out_file_end(struct out_file *f, gboolean ok, GError **error)
{
	if (f->renames && ok && rename(f->temp, f->path) != 0)
		ok = refuse_file(error, errno, "%s cannot become %s: %s", f->temp, f->path,
				 g_strerror(errno));
	if (f->renames && !ok)
		unlink(f->temp);
	if (f->renames)
		leave_signals(f->temp);
	g_free(f->path);
	g_free(f->temp);
	return ok;
}

/* ---- bytes ---- */

gboolean out_stream_open(struct out_stream *out, const char *path, GError **error)
{
	*out = (struct out_stream){ 0 };
	out_file_begin(&out->file, path);
	gboolean standard = strcmp(path, "-") == 0;
	if (standard)
		fflush(stdout);
	int fd = standard ? dup(STDOUT_FILENO)
			  : open(out->file.temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int why = errno;
	out->gzip = fd < 0 ? NULL : gzdopen(fd, out->file.gzip ? "wb6" : "wbT");
	out->text = g_string_sized_new(2 * FLUSH_AT);
	if (out->gzip)
		return TRUE;
	if (fd >= 0)
		close(fd);
	g_string_free(out->text, TRUE);
	out_file_end(&out->file, FALSE, NULL);
	return refuse_file(error, why, "%s cannot be written: %s", path, g_strerror(why));
}

void out_stream_flush(struct out_stream *out, gboolean all)
{
	if (out->text->len == 0 || (!all && out->text->len < FLUSH_AT))
		return;
	errno = 0;
	if (out->failed == 0 &&
	    gzwrite(out->gzip, out->text->str, (unsigned)out->text->len) != (int)out->text->len)
		out->failed = errno ? errno : EIO;
	g_string_truncate(out->text, 0);
}

gboolean out_stream_close(struct out_stream *out, gboolean ok, GError **error)
{
	out_stream_flush(out, TRUE);
	errno = 0;
	if (gzclose(out->gzip) != Z_OK && out->failed == 0)
		out->failed = errno ? errno : EIO;
	if (ok && out->failed)
		ok = refuse_file(error, out->failed, "%s cannot be written: %s", out->file.path,
				 g_strerror(out->failed));
	g_string_free(out->text, TRUE);
	return out_file_end(&out->file, ok, error);
}

gboolean out_file_write(const char *path, const char *text, gsize length, GError **error)
{
	struct out_stream out;

	if (!out_stream_open(&out, path, error))
		return FALSE;
	g_string_append_len(out.text, text, (gssize)length);
	return out_stream_close(&out, TRUE, error);
}

void out_json_text(GString *out, const char *text)
{
	g_string_append_c(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			g_string_append_printf(out, "\\%c", *text);
		else if ((guint8)*text < 0x20)
			g_string_append_printf(out, "\\u%04x", (guint8)*text);
		else
			g_string_append_c(out, *text);
	}
	g_string_append_c(out, '"');
}
