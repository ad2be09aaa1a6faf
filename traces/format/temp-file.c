/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and writes temporary files for data that does not fit into memory, and words the errors.
 */
#include "temp-file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const char *temp_file_folder(void)
{
	const char *said = g_getenv("TMPDIR");

	if (said && *said)
		return said;
	return g_file_test("/var/tmp", G_FILE_TEST_IS_DIR) ? "/var/tmp" : g_get_tmp_dir();
}

/* Sets the error from errno; `what`: "read". Always FALSE. */
static gboolean fail(const char *what, GError **error)
{
	int code = errno;

	return refuse_file(error, code,
			   "%s: a temporary file for what does not fit into memory, or comes only "
			   "once, cannot be %s: %s; TMPDIR names another folder",
			   temp_file_folder(), what, g_strerror(code));
}

int temp_file_open(GError **error)
{
	int fd = open(temp_file_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* a file system without O_TMPFILE */
	g_autofree char *name = g_build_filename(temp_file_folder(), "npusim-XXXXXX", NULL);
	fd = g_mkstemp_full(name, O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fail("made", error);
	else
		unlink(name);
	return fd;
}

gboolean temp_file_write(int fd, const guint8 *bytes, gsize count, goffset at, GError **error)
{
	while (count > 0) {
		ssize_t n = pwrite(fd, bytes, count, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("written", error);
		bytes += n;
		count -= (gsize)n;
		at += n;
	}
	return TRUE;
}
