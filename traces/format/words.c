/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits the lines of traces into words for their reader, and parses numbers and names for all
 * readers of files.
 */
#include "words.h"

#include "input.h"

gboolean number_parse(const char *text, gsize length, guint64 *out)
{
	gboolean hex = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	guint64 v = 0, base = hex ? 16 : 10;

	for (gsize i = hex ? 2 : 0; i < length; i++) {
		int digit = hex ? g_ascii_xdigit_value(text[i]) : g_ascii_digit_value(text[i]);
		if (digit < 0 || !g_uint64_checked_mul(&v, v, base) ||
		    !g_uint64_checked_add(&v, v, (guint64)digit))
			return FALSE;
	}
	if (length == 0)
		return FALSE;
	*out = v;
	return TRUE;
}

gboolean words_next(struct words *w, struct word *out)
{
	const char *p = w->at;
	while (p < w->end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	out->at = p;
	while (p < w->end && *p != ' ' && *p != '\t' && *p != '\r')
		p++;
	out->length = (gsize)(p - out->at);
	w->at = p;
	return out->length > 0;
}

gboolean words_bad(struct words *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	g_autofree char *text = g_strdup_vprintf(format, args);
	va_end(args);
	return refuse(w->error, TRACE_ERROR, TRACE_ERROR_FORMAT, "line %" G_GUINT64_FORMAT ": %s",
		      w->line, text);
}

const char *words_show(struct words *w, struct word text)
{
	gsize room = sizeof w->shown - 4, n = MIN(text.length, room);
	for (gsize i = 0; i < n; i++)
		w->shown[i] = g_ascii_isprint(text.at[i]) ? text.at[i] : '?';
	memcpy(w->shown + n, n < text.length ? "..." : "", n < text.length ? 4 : 1);
	return w->shown;
}

gboolean words_number(struct words *w, const char *what, struct word text, guint64 *out)
{
	return number_parse(text.at, text.length, out) ||
	       words_bad(w, "%s is '%s', which is no number of 64 bits", what, words_show(w, text));
}

gboolean words_small(struct words *w, const char *key, struct word text, guint64 last, guint32 *out)
{
	guint64 v = 0;
	if (!words_number(w, key, text, &v))
		return FALSE;
	if (v > last)
		return words_bad(w, "%s is %" G_GUINT64_FORMAT ", the last is %" G_GUINT64_FORMAT,
				 key, v, last);
	*out = (guint32)v;
	return TRUE;
}

gboolean words_name(struct words *w, struct word text, const char *kinds,
		    struct npu_trace_name *out)
{
	struct npu_trace_name n = { 0 };
	const char *plus = memchr(text.at, '+', text.length);

	if (word_is(&text, "host")) {
		*out = (struct npu_trace_name){ .kind = NPU_TRACE_NAME_HOST };
		return TRUE;
	}
	if (text.length == 0 || strchr(kinds, text.at[0]) == NULL)
		return words_bad(w, "'%s' is no name of the kinds '%s', as %c1 is one",
				 words_show(w, text), kinds, kinds[0]);
	n.kind = text.at[0];
	struct word number = { text.at + 1, text.length - 1 };
	if (plus) {
		struct word offset = { plus + 1, text.length - (gsize)(plus + 1 - text.at) };
		number.length = (gsize)(plus - number.at);
		if (!words_number(w, "the offset of a name", offset, &n.offset))
			return FALSE;
	}
	if (!words_small(w, "the number of a name", number, G_MAXUINT32, &n.number))
		return FALSE;
	*out = n;
	return TRUE;
}

char *words_decode(struct word text)
{
	g_autofree char *decoded = g_malloc(text.length + 1);
	gsize n = 0;
	for (gsize i = 0; i < text.length; i++) {
		const char *c = text.at + i;
		if (*c == '%' && i + 2 < text.length && g_ascii_isxdigit(c[1]) &&
		    g_ascii_isxdigit(c[2])) {
			decoded[n++] = (char)(g_ascii_xdigit_value(c[1]) << 4 |
					      g_ascii_xdigit_value(c[2]));
			i += 2;
		} else {
			decoded[n++] = *c;
		}
	}
	return g_utf8_make_valid(decoded, (gssize)n);
}
