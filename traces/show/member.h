/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that say how the members of a JSON object are read from a struct in C. Everything that
 * shows a result (JSON, text, the comparison of two, the manual page) reads such a table; this
 * file does not know what the members mean.
 */
#ifndef NPUSIM_TRACES_MEMBER_H
#define NPUSIM_TRACES_MEMBER_H

#include <json-glib/json-glib.h>

enum member_kind {
	MEMBER_END, /* behind the last row of a table */
	MEMBER_COUNT,
	MEMBER_BYTES,
	MEMBER_TIME,  /* picoseconds in the struct, nanoseconds in JSON */
	MEMBER_PLACE, /* a number that says where: one place less another means nothing */
	MEMBER_REAL,
	MEMBER_FLAG,
	MEMBER_TEXT,
	MEMBER_NODE,   /* a JsonNode * */
	MEMBER_OBJECT, /* with `members` */
	MEMBER_LIST,   /* of objects with `members`, or built */
	MEMBER_MAP     /* an object whose names are data; `members`: of each value; NULL: of any */
};
/* How the values of an array are found: GArray * at `offset`, each at `field` of its element. */
enum member_array { ARRAY_NONE, ARRAY_COLUMN, ARRAY_STRUCTS, ARRAY_POINTERS };

struct member {
	const char *name;
	enum member_kind kind;
	gsize offset; /* AT(), COLUMN() */
	/* Of the manual page, as manual.py reads it. NULL: the next row's sentence is for both. */
	const char *manual;
	/* Reads the value of the struct `at`; none: it lies at `offset`, as guint64, double, const
	 * char *, or the struct of an object. */
	gint64 (*whole)(gconstpointer at);
	double (*real)(gconstpointer at);
	char *(*text)(gconstpointer at);   /* to be freed; NULL: not there */
	gboolean (*has)(gconstpointer at); /* none: it is always there */
	/* Adds what is in the value: a LIST, or an object. */
	void (*build)(JsonBuilder *builder, gconstpointer at);
	gsize via; /* not 0: the place + 1 of a pointer to the struct of the value, or NULL */
	gsize field;
	enum member_array array; /* COLUMN: a list of numbers of `kind`; others: a LIST */
	const struct member *members;
	gboolean unless_0;     /* it is there unless the guint64 at `offset` is 0 */
	gboolean in_text_only; /* no member of the JSON: text says it */
	gboolean no_figure;    /* two results are not compared by it */
	gboolean is_signed;    /* at `offset` */
};

/* Where a row's value lies, or the values of its column; VIA: behind a pointer. The
 * sentence follows the offset. */
#define AT(type, member) .offset = G_STRUCT_OFFSET(struct type, member)
#define VIA(type, pointer, to, member) \
	.via = G_STRUCT_OFFSET(struct type, pointer) + 1, AT(to, member)
#define COLUMN(type, member, element, part) \
	.array = ARRAY_COLUMN, .field = G_STRUCT_OFFSET(struct element, part), AT(type, member)

/* A function of a row: `value`, of the struct `s` that the row is of. */
#define READ(answer, name, type, s, value)   \
	static answer name(gconstpointer at) \
	{                                    \
		const struct type *s = at;   \
		(void)s;                     \
		return value;                \
	}
/* Adds the members of a table, in its order, to the object that is open. Counts that no int64 holds
 * are the largest. */
void members_build(JsonBuilder *builder, const struct member *table, gconstpointer at);
/* An object of its own with them. */
void members_build_object(JsonBuilder *builder, const struct member *table, gconstpointer at);
/* The row of a name; NULL: there is none. Both may be NULL. */
const struct member *members_find(const struct member *table, const char *name);

gboolean member_has(const struct member *member, gconstpointer at);
/* Of a number; times are picoseconds. */
double member_number(const struct member *member, gconstpointer at);
/* The value as it is, a count without a unit; to be freed. NULL: it is not there. */
char *member_text(const struct member *member, gconstpointer at);

/* Members of the object that is open, by hand; a list is open then. */
void json_text(JsonBuilder *builder, const char *name, const char *value);
void json_number(JsonBuilder *builder, const char *name, guint64 value);
void json_list(JsonBuilder *builder, const char *name);
/* What was built as a file of several lines; "-": standard output. FALSE, and error names it. */
gboolean json_write(const char *path, JsonBuilder *builder, GError **error);

#endif
