/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies what a pipe delivers to a temporary file, so that the verbs of the command can open it
 * again.
 */
#include "in-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"
#include "temp-file.h"

#define PIECE (256u << 10)

static gboolean copy_all(int from, int to, const char *path, GError **error)
{
	g_autofree guint8 *piece = g_malloc(PIECE);
	goffset at = 0;
	ssize_t n;

	while ((n = read(from, piece, PIECE)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno),
				    "%s: it cannot be read: %s", path, g_strerror(errno));
			return FALSE;
		}
		if (!temp_file_write(to, piece, (gsize)n, at, error))
			return FALSE;
		at += n;
	}
	return TRUE;
}

static gboolean keep(int from, const char *path, GError **error)
{
	int fd = temp_file_open(error);

	if (fd < 0)
		return FALSE;
	if (copy_all(from, fd, path, error)) {
		input_redirect(path, fd);
		return TRUE;
	}
	close(fd);
	return FALSE;
}

gboolean in_file_keep(const char *path, GError **error)
{
	gboolean standard = strcmp(path, "-") == 0;
	struct stat status;

	if (input_is_redirected(path))
		return TRUE;
	/* what is not there, whoever opens it tells */
	if (!standard &&
	    (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
		return TRUE;
	int from = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 && standard)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "standard input is closed");
	if (from < 0)
		return !standard;
	/* a device that can be sought, as /dev/zero, need not end */
	gboolean twice = !standard && lseek(from, 0, SEEK_SET) == 0;
	gboolean ok = twice || keep(from, path, error);
	close(from);
	return ok;
}
