/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the files of the command next to their destination and renames them at the end,
 * compresses them if wanted, and words the errors of a full disk.
 */
#include "out-file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "input.h"

#define FLUSH_AT  (64u << 10)
#define LINKS_MAX 40

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

static gboolean unwritable(const char *path, int why, GError **error)
{
	return refuse_file(error, why, "%s cannot be written: %s", path, g_strerror(why));
}

/* Of a link in a folder: FALSE, anybody could have put it there. */
static gboolean is_trusted(const char *folder, const struct stat *link)
{
	struct stat in;

	return link->st_uid == geteuid() || stat(folder, &in) != 0 ||
	       (in.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
	       link->st_uid == in.st_uid;
}

/* The path with what they lead to in place of all links; unless it `is_there`, whatever its names
 * say, only the last of them may be new. */
static char *follow(const char *path, gboolean is_there, GError **error)
{
	g_autofree char *all = g_strdup(path);
	guint links = 0;

	for (gsize end = *all == '/';; end++) {
		struct stat status;
		end += strcspn(all + end, "/");
		g_autofree char *at = g_strndup(all, end);
		gboolean known = lstat(at, &status) == 0;
		if (!known && !is_there && (errno != ENOENT || all[end] != '\0'))
			return refuse_file(error, errno, "%s cannot be written: %s: %s", path, at,
					   g_strerror(errno)),
			       NULL;
		if (!known || !S_ISLNK(status.st_mode)) {
			if (all[end] == '\0')
				return g_steal_pointer(&all);
			continue;
		}
		g_autofree char *folder = g_path_get_dirname(at);
		if (!is_trusted(folder, &status))
			return refuse_file(error, EACCES,
					   "%s cannot be written: %s is a symbolic link of user "
					   "%u in a folder that anybody may write to: remove it, "
					   "or write elsewhere",
					   path, at, (unsigned)status.st_uid),
			       NULL;
		if (++links > LINKS_MAX)
			return unwritable(path, ELOOP, error), NULL;
		g_autofree char *target = g_file_read_link(at, error);
		if (target == NULL)
			return NULL;
		gboolean absolute = g_path_is_absolute(target);
		char *next = g_strconcat(absolute ? "" : folder, absolute ? "" : "/", target,
					 all + end, NULL);
		g_free(all);
		all = next;
		end = *all == '/' ? 0 : (gsize)-1; /* from the first name on */
	}
}

/* The path of the file behind all links; what is no regular file, as what /dev/stdout leads to, has
 * none that could be opened: the path itself. */
static char *resolve(const char *path, gboolean *out_regular, GError **error)
{
	struct stat status;
	gboolean is_there = stat(path, &status) == 0;
	char *at = *path ? follow(path, is_there, error) : (unwritable(path, ENOENT, error), NULL);

	*out_regular = !is_there || S_ISREG(status.st_mode);
	if (at == NULL || !is_there || access(at, F_OK) == 0)
		return at;
	/* the kernel goes ways that have no names: /proc/self/fd */
	g_free(at);
	return g_strdup(path);
}

gboolean out_file_check(const char *path, GError **error)
{
	gboolean regular, standard = strcmp(path, "-") == 0;
	g_autofree char *file = standard ? NULL : resolve(path, &regular, error);

	if (file == NULL)
		return standard;
	g_autofree char *folder = g_path_get_dirname(file);
	int why = g_file_test(file, G_FILE_TEST_IS_DIR) ? EISDIR
		  : access(regular ? folder : path, W_OK) != 0 ? errno
							       : 0;

	return why == 0 || unwritable(path, why, error);
}

/* What is written takes its name if `ok`, else nothing is left of it. */
static gboolean end(struct out_stream *out, gboolean ok, GError **error)
{
	if (out->temp && ok && rename(out->temp, out->file) != 0)
		ok = unwritable(out->path, errno, error);
	if (out->temp && !ok)
		unlink(out->temp);
	if (out->temp && strcmp(out->temp, removed_at_signal) == 0) {
		for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
			sigaction(signals[i], &before[i], NULL);
		removed_at_signal[0] = '\0';
	}
	g_string_free(out->text, TRUE);
	g_free(out->path);
	g_free(out->file);
	g_free(out->temp);
	return ok;
}

gboolean out_stream_open(struct out_stream *out, const char *path, GError **error)
{
	gboolean standard = strcmp(path, "-") == 0, regular = FALSE;
	gboolean gzip = g_str_has_suffix(path, ".gz");

	*out = (struct out_stream){ 0 };
	out->file = standard ? NULL : resolve(path, &regular, error);
	if (!standard && out->file == NULL)
		return FALSE;
	out->path = g_strdup(path);
	out->text = g_string_sized_new(2 * FLUSH_AT);
	out->temp = regular ? g_strdup_printf("%s.%08x.part%s", out->file, g_random_int(),
					      gzip ? ".gz" : "")
			    : NULL;
	if (regular)
		handle_signals(out->temp);
	if (standard)
		fflush(stdout);
	int fd = standard ? dup(STDOUT_FILENO)
			  : open(out->temp ?: path,
				 O_WRONLY | O_CLOEXEC |
					 (regular ? O_CREAT | O_EXCL | O_NOFOLLOW : O_TRUNC),
				 0666);
	int why = errno;
	out->gzip = fd < 0 ? NULL : gzdopen(fd, gzip ? "wb6" : "wbT");
	if (out->gzip)
		return TRUE;
	if (fd >= 0)
		close(fd);
	end(out, FALSE, NULL);
	return unwritable(path, why, error);
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
		ok = unwritable(out->path, out->failed, error);
	return end(out, ok, error);
}

gboolean out_file_write(const char *path, const char *text, gsize length, GError **error)
{
	struct out_stream out;

	if (!out_stream_open(&out, path, error))
		return FALSE;
	g_string_append_len(out.text, text, (gssize)length);
	return out_stream_close(&out, TRUE, error);
}

/* json-glib writes 1e+18 as 1e+18.0, and what is not finite as inf.0 or nan.0. */
static void mend_numbers(char *text)
{
	gboolean quoted = FALSE;

	for (char *c = text; *c; c++) {
		if (*c == '"') {
			quoted = !quoted;
		} else if (quoted) {
			c += *c == '\\';
		} else if (*c == 'e') {
			c += strspn(c, "e+-0123456789") - 1;
			if (strncmp(c + 1, ".0", 2) == 0)
				memset(c + 1, ' ', 2);
		} else if ((*c == 'i' || *c == 'n') &&
			   (strncmp(c, "inf.0", 5) == 0 || strncmp(c, "nan.0", 5) == 0)) {
			memcpy(c - (c[-1] == '-'), "null  ", 5 + (c[-1] == '-'));
		}
	}
}

void out_json(GString *out, JsonNode *value, gboolean pretty)
{
	g_autofree char *text = json_to_string(value, pretty);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	gsize at = out->len;

	/* it leaves this control character and what is no UTF-8 as they are, too */
	mend_numbers(valid);
	g_string_append(out, valid);
	if (strchr(out->str + at, '\x1f'))
		g_string_replace(out, "\x1f", "\\u001f", 0);
	json_node_unref(value);
}

void out_json_variant(GString *out, GVariant *value)
{
	g_autoptr(GVariant) taken = g_variant_ref_sink(value);

	out_json(out, json_gvariant_serialize(taken), FALSE);
}

void out_json_next(GString *out)
{
	g_string_append(out, out->len > 0 && out->str[out->len - 1] == '[' ? "\n" : ",\n");
}

gboolean out_trace_line(GString *out, const struct npu_trace_record *record, GError **error)
{
	gsize at = out->len;
	g_autofree char *why = NULL;

	g_string_set_size(out, at + NPU_TRACE_LINE_MAX);
	int length = npu_trace_line(record, out->str + at, NPU_TRACE_LINE_MAX, &why);
	g_string_truncate(out, at + (gsize)MAX(length, 0));
	return length > 0 || refuse_file(error, -length, "%s", why);
}
