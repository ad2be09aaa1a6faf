/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of Python pickles, protocols 2 to 5, that accepts plain data only: None, bool, int,
 * float, str, bytes, list, tuple, dict. Anything that would make Python import or call something
 * is refused, with its position: no class is ever loaded. It runs no code, never recurses, and
 * uses memory in proportion to the file.
 */
#ifndef NPUSIM_TRACES_PICKLE_H
#define NPUSIM_TRACES_PICKLE_H

#include "format/input.h"

enum pickle_type {
	PICKLE_EMPTY, /* no value */
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_WIDE, /* an integer of more than 64 bits, signed; its value is not kept */
	PICKLE_FLOAT,
	PICKLE_STR,  /* also bytes */
	PICKLE_LIST, /* also tuple */
	PICKLE_DICT
};

struct pickle_list {
	gsize count, room; /* of a dict: keys and values in turn, so twice its entries */
	struct pickle_value *items;
};
struct pickle_value {
	enum pickle_type type;
	guint32 length; /* of text */
	union {
		gint64 integer; /* BOOL, INT */
		double real;
		const char *text;         /* STR; not terminated */
		struct pickle_list *list; /* LIST, DICT */
	};
};

struct pickle; /* the value and the memory that it lies in */

/* Reads one pickle; `bytes` is borrowed and must outlive the result. NULL and error otherwise,
 * with the byte offset: damaged (truncated, no pickle, an opcode out of place), or refused (a
 * class, a call, a set). */
struct pickle *pickle_read(const guint8 *bytes, gsize count, GError **error);
/* The same of a whole file, which may have the values as JSON instead; *out_bytes, if it is wanted:
 * its size. */
struct pickle *pickle_read_input(struct input *input, gsize *out_bytes, GError **error);
void pickle_free(struct pickle *pickle);
const struct pickle_value *pickle_root(const struct pickle *pickle);

/* The value under a string key of a dict, or NULL. */
const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key);
/* The integer under a key; False if it is absent or no integer. */
gboolean pickle_get_int(const struct pickle_value *dict, const char *key, gint64 *out);
/* The number under a key, or the one that a string there is, in thousandths. */
gboolean pickle_get_thousandths(const struct pickle_value *dict, const char *key, gint64 *out);
/* True if v is the string `text`. */
gboolean pickle_is(const struct pickle_value *v, const char *text);

#endif
