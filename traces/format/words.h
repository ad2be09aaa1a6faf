/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in text, and the words of a trace line: numbers and names. It is independent of the
 * verbs.
 */
#ifndef NPUSIM_TRACES_WORDS_H
#define NPUSIM_TRACES_WORDS_H

#include <string.h>

#include <glib.h>

#include "npusim/trace.h"

/* Of 64 bits: decimal, or hexadecimal with 0x. FALSE where the text as a whole is none. */
gboolean number_parse(const char *text, gsize length, guint64 *out);

/* Part of a line; not terminated. */
struct word {
	const char *at;
	gsize length;
};
/* A line: what of it is yet to be read. */
struct words {
	const char *at, *end;
	guint64 line; /* for messages */
	GError **error;
	char shown[80];
};

static inline gboolean word_is(const struct word *word, const char *text)
{
	return strlen(text) == word->length && memcmp(word->at, text, word->length) == 0;
}
/* The next word; FALSE at the end of the line. */
gboolean words_next(struct words *w, struct word *out);
/* Sets the error, with the line in front. Always FALSE. */
gboolean words_bad(struct words *w, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A word the way messages show it: short, and printable. Valid until the next call. */
const char *words_show(struct words *w, struct word text);

/* FALSE and the error where it is none; `what` names it there. */
gboolean words_number(struct words *w, const char *what, struct word text, guint64 *out);
/* The same, at most `last`. */
gboolean words_small(struct words *w, const char *key, struct word text, guint64 last,
		     guint32 *out);
/* r1, h2+4096, host; `kinds` are the letters that are right here. */
gboolean words_name(struct words *w, struct word text, const char *kinds,
		    struct npu_trace_name *out);
/* %XX decoded; valid UTF-8 whatever was there. */
char *words_decode(struct word text);

#endif
