/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of files share.
 */
#include "readers.h"

#include <string.h>

gboolean readers_is_json(const guint8 *bytes, gsize count)
{
	gsize i = 0;

	while (i < count && g_ascii_isspace(bytes[i]))
		i++;
	return i < count && (bytes[i] == '{' || bytes[i] == '[');
}

gboolean readers_begin_with(const guint8 *bytes, gsize count, const char *text)
{
	gsize length = strlen(text);

	return count >= length && memcmp(bytes, text, length) == 0;
}

gboolean readers_bad(guint64 line, GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %" G_GUINT64_FORMAT ": %s", line,
		    valid);
	return FALSE;
}

gboolean readers_file_is_json(const char *path, gboolean *out, GError **error)
{
	struct input *input = input_open(path, error);
	guint8 head[64];
	gssize got = input ? input_take(input, head, sizeof head, error) : -1;

	input_close(input);
	*out = got > 0 && readers_is_json(head, (gsize)got);
	return got >= 0;
}
