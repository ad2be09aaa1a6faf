/* SPDX-License-Identifier: Apache-2.0
 *
 * The pickle machine: a stack, a memo, and one handler an opcode. Values lie in an arena and are
 * shared, never copied, so a pickle that refers to one object many times costs one object.
 */
#include "pickle.h"

#include <string.h>

#define ARENA_BLOCK  (256 * 1024)
#define PROTOCOL_MIN 2
#define PROTOCOL_MAX 5

enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_POP = '0',
	OP_POP_MARK = '1',
	OP_DUP = '2',
	OP_BINFLOAT = 'G',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_NONE = 'N',
	OP_BINSTRING = 'T',
	OP_SHORT_BINSTRING = 'U',
	OP_BINUNICODE = 'X',
	OP_BINBYTES = 'B',
	OP_SHORT_BINBYTES = 'C',
	OP_EMPTY_DICT = '}',
	OP_EMPTY_LIST = ']',
	OP_EMPTY_TUPLE = ')',
	OP_APPEND = 'a',
	OP_APPENDS = 'e',
	OP_SETITEM = 's',
	OP_SETITEMS = 'u',
	OP_DICT = 'd',
	OP_LIST = 'l',
	OP_TUPLE = 't',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_PROTO = 0x80,
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
	OP_LONG4 = 0x8b,
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE8 = 0x8d,
	OP_BINBYTES8 = 0x8e,
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
	OP_BYTEARRAY8 = 0x96,
};

struct pickle {
	GPtrArray *blocks; /* the arena */
	gsize used, room;  /* of its last block */
	struct pickle_value root;
};

struct machine {
	struct pickle *pickle;
	const guint8 *bytes;
	gsize count, at;
	gsize op_at;   /* where the present opcode stands */
	GArray *stack; /* struct pickle_value */
	GArray *marks; /* gsize: depths of the stack */
	GArray *memo;  /* struct pickle_value; type -1: empty */
	GError **error;
};

GQuark pickle_error_quark(void)
{
	return g_quark_from_static_string("npusim-pickle");
}

static gboolean damaged(struct machine *m, const char *what)
{
	g_set_error(m->error, PICKLE_ERROR, PICKLE_ERROR_DAMAGED,
		    "pickle damaged at byte %" G_GSIZE_FORMAT ": %s", m->op_at, what);
	return FALSE;
}

static gboolean refused(struct machine *m, const char *what)
{
	g_set_error(m->error, PICKLE_ERROR, PICKLE_ERROR_REFUSED,
		    "pickle refused at byte %" G_GSIZE_FORMAT ": %s; only plain data is read",
		    m->op_at, what);
	return FALSE;
}

static gpointer arena_get(struct pickle *p, gsize bytes)
{
	bytes = (bytes + 7) & ~(gsize)7;
	if (bytes > p->room - p->used) {
		p->room = MAX(bytes, (gsize)ARENA_BLOCK);
		p->used = 0;
		g_ptr_array_add(p->blocks, g_malloc(p->room));
	}
	guint8 *block = g_ptr_array_index(p->blocks, p->blocks->len - 1);
	gpointer at = block + p->used;
	p->used += bytes;
	return at;
}

/* ---- input ---- */

static gboolean take(struct machine *m, gsize n, const guint8 **out)
{
	if (n > m->count - m->at)
		return damaged(m, "the file ends inside a value");
	*out = m->bytes + m->at;
	m->at += n;
	return TRUE;
}

/* A little-endian number of n bytes. */
static gboolean take_number(struct machine *m, unsigned n, guint64 *out)
{
	const guint8 *b;
	if (!take(m, n, &b))
		return FALSE;
	*out = 0;
	for (unsigned i = 0; i < n; i++)
		*out |= (guint64)b[i] << (8 * i);
	return TRUE;
}

/* ---- stack ---- */

static gboolean push(struct machine *m, struct pickle_value v)
{
	g_array_append_val(m->stack, v);
	return TRUE;
}

static gboolean push_int(struct machine *m, enum pickle_type type, gint64 i)
{
	return push(m, (struct pickle_value){ .type = type, .integer = i });
}

/* The depth below which nothing may be taken: the innermost mark. */
static gsize floor_of(const struct machine *m)
{
	return m->marks->len ? g_array_index(m->marks, gsize, m->marks->len - 1) : 0;
}

static struct pickle_value *top(struct machine *m, gsize depth)
{
	if (m->stack->len < floor_of(m) + depth + 1) {
		damaged(m, "an opcode finds too few values");
		return NULL;
	}
	return &g_array_index(m->stack, struct pickle_value, m->stack->len - 1 - depth);
}

static gboolean pop_mark(struct machine *m, gsize *out)
{
	if (m->marks->len == 0)
		return damaged(m, "an opcode finds no mark");
	*out = floor_of(m);
	g_array_set_size(m->marks, m->marks->len - 1);
	return TRUE;
}

/* ---- values ---- */

static struct pickle_list *list_new(struct machine *m, const struct pickle_value *from, gsize count)
{
	struct pickle_list *list = arena_get(m->pickle, sizeof *list);
	*list = (struct pickle_list){ .count = count, .room = count };
	if (count > 0) {
		list->items = arena_get(m->pickle, count * sizeof *list->items);
		memcpy(list->items, from, count * sizeof *list->items);
	}
	return list;
}

static void list_add(struct machine *m, struct pickle_list *list, const struct pickle_value *from,
		     gsize count)
{
	if (count == 0)
		return;
	if (count > list->room - list->count) {
		gsize room = MAX(2 * list->room, list->count + count);
		struct pickle_value *items = arena_get(m->pickle, room * sizeof *items);
		if (list->count > 0)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
		list->room = room;
	}
	memcpy(list->items + list->count, from, count * sizeof *from);
	list->count += count;
}

static gboolean push_list(struct machine *m, enum pickle_type type, gsize from)
{
	gsize count = m->stack->len - from;
	if (type == PICKLE_DICT && count % 2 != 0)
		return damaged(m, "a key of a dict has no value");
	struct pickle_list *list = list_new(
		m, count ? &g_array_index(m->stack, struct pickle_value, from) : NULL, count);
	g_array_set_size(m->stack, from);
	return push(m, (struct pickle_value){ .type = type, .list = list });
}

static gboolean push_string(struct machine *m, guint64 length)
{
	const guint8 *text;
	if (length > m->count - m->at)
		return damaged(m, "a string is longer than the file");
	if (!take(m, (gsize)length, &text))
		return FALSE;
	struct pickle_string *s = arena_get(m->pickle, sizeof *s);
	*s = (struct pickle_string){ .length = (gsize)length, .text = (const char *)text };
	return push(m, (struct pickle_value){ .type = PICKLE_STR, .string = s });
}

static gboolean op_string(struct machine *m, unsigned width)
{
	guint64 length;
	return take_number(m, width, &length) && push_string(m, length);
}

/* The values above the mark join the list or dict below it. */
static gboolean op_extend(struct machine *m, enum pickle_type type, gsize from)
{
	gsize count = m->stack->len - from;
	if (from < floor_of(m) + 1)
		return damaged(m, "there is no container below the mark");
	struct pickle_value *into = &g_array_index(m->stack, struct pickle_value, from - 1);
	if (into->type != type)
		return damaged(m, "items are added to something that is no such container");
	if (type == PICKLE_DICT && count % 2 != 0)
		return damaged(m, "a key of a dict has no value");
	if (count > 0)
		list_add(m, into->list, into + 1, count);
	g_array_set_size(m->stack, from);
	return TRUE;
}

static gboolean op_long(struct machine *m, unsigned width)
{
	guint64 n, value = 0;
	const guint8 *b;
	if (!take_number(m, width, &n))
		return FALSE;
	if (n > m->count - m->at)
		return damaged(m, "a number is longer than the file");
	take(m, (gsize)n, &b);
	gboolean positive = n == 0 || !(b[n - 1] & 0x80);
	/* Python writes no byte more than needed, but for a sign: nine bytes are wide */
	if (n > 8)
		return push(m, (struct pickle_value){ .type = PICKLE_WIDE });
	for (unsigned i = 0; i < n; i++)
		value |= (guint64)b[i] << (8 * i);
	if (n > 0 && n < 8 && !positive)
		value |= G_MAXUINT64 << (8 * n);
	return push_int(m, PICKLE_INT, (gint64)value);
}

static gboolean op_float(struct machine *m)
{
	const guint8 *b;
	guint64 bits = 0;
	struct pickle_value v = { .type = PICKLE_FLOAT };
	if (!take(m, 8, &b))
		return FALSE;
	for (unsigned i = 0; i < 8; i++)
		bits = bits << 8 | b[i];
	memcpy(&v.real, &bits, sizeof bits);
	return push(m, v);
}

/* ---- memo ---- */

static gboolean memo_put(struct machine *m, guint64 index)
{
	const struct pickle_value *v = top(m, 0);
	if (v == NULL)
		return FALSE;
	/* each entry takes at least one opcode, so a larger index is made up */
	if (index > m->count)
		return damaged(m, "a memo index is out of range");
	if (index >= m->memo->len) {
		guint old = m->memo->len;
		g_array_set_size(m->memo, (guint)index + 1);
		for (guint i = old; i < m->memo->len; i++)
			g_array_index(m->memo, struct pickle_value, i).type =
				(enum pickle_type) - 1;
	}
	g_array_index(m->memo, struct pickle_value, index) = *v;
	return TRUE;
}

static gboolean memo_get(struct machine *m, guint64 index)
{
	if (index >= m->memo->len ||
	    (int)g_array_index(m->memo, struct pickle_value, index).type == -1)
		return damaged(m, "the memo has no such entry");
	return push(m, g_array_index(m->memo, struct pickle_value, index));
}

static gboolean op_memo(struct machine *m, unsigned width, gboolean put)
{
	guint64 index;
	return take_number(m, width, &index) && (put ? memo_put(m, index) : memo_get(m, index));
}

/* ---- the machine ---- */

static gboolean step_container(struct machine *m, guint8 op, gboolean *known)
{
	gsize from;
	switch (op) {
	case OP_EMPTY_DICT:
		return push_list(m, PICKLE_DICT, m->stack->len);
	case OP_EMPTY_LIST:
	case OP_EMPTY_TUPLE:
		return push_list(m, PICKLE_LIST, m->stack->len);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		from = (gsize)op - OP_TUPLE1 + 1;
		return top(m, from - 1) && push_list(m, PICKLE_LIST, m->stack->len - from);
	case OP_LIST:
	case OP_TUPLE:
		return pop_mark(m, &from) && push_list(m, PICKLE_LIST, from);
	case OP_DICT:
		return pop_mark(m, &from) && push_list(m, PICKLE_DICT, from);
	case OP_APPEND:
		return top(m, 1) && op_extend(m, PICKLE_LIST, m->stack->len - 1);
	case OP_SETITEM:
		return top(m, 2) && op_extend(m, PICKLE_DICT, m->stack->len - 2);
	case OP_APPENDS:
		return pop_mark(m, &from) && op_extend(m, PICKLE_LIST, from);
	case OP_SETITEMS:
		return pop_mark(m, &from) && op_extend(m, PICKLE_DICT, from);
	default:
		*known = FALSE;
		return TRUE;
	}
}

static gboolean step_scalar(struct machine *m, guint8 op, gboolean *known)
{
	guint64 n;
	switch (op) {
	case OP_NONE:
		return push(m, (struct pickle_value){ .type = PICKLE_NONE });
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		return push_int(m, PICKLE_BOOL, op == OP_NEWTRUE);
	case OP_BININT:
		return take_number(m, 4, &n) && push_int(m, PICKLE_INT, (gint32)n);
	case OP_BININT1:
		return take_number(m, 1, &n) && push_int(m, PICKLE_INT, (gint64)n);
	case OP_BININT2:
		return take_number(m, 2, &n) && push_int(m, PICKLE_INT, (gint64)n);
	case OP_LONG1:
		return op_long(m, 1);
	case OP_LONG4:
		return op_long(m, 4);
	case OP_BINFLOAT:
		return op_float(m);
	case OP_SHORT_BINUNICODE:
	case OP_SHORT_BINBYTES:
	case OP_SHORT_BINSTRING:
		return op_string(m, 1);
	case OP_BINUNICODE:
	case OP_BINBYTES:
	case OP_BINSTRING:
		return op_string(m, 4);
	case OP_BINUNICODE8:
	case OP_BINBYTES8:
	case OP_BYTEARRAY8:
		return op_string(m, 8);
	default:
		*known = FALSE;
		return TRUE;
	}
}

static gboolean step_stack(struct machine *m, guint8 op, gboolean *known)
{
	gsize depth = m->stack->len;
	const struct pickle_value *v;
	switch (op) {
	case OP_MARK:
		g_array_append_val(m->marks, depth);
		return TRUE;
	case OP_POP:
		if (top(m, 0) == NULL)
			return FALSE;
		g_array_set_size(m->stack, m->stack->len - 1);
		return TRUE;
	case OP_POP_MARK:
		if (!pop_mark(m, &depth))
			return FALSE;
		g_array_set_size(m->stack, (guint)depth);
		return TRUE;
	case OP_DUP:
		v = top(m, 0);
		return v && push(m, (struct pickle_value) * v);
	case OP_BINGET:
		return op_memo(m, 1, FALSE);
	case OP_LONG_BINGET:
		return op_memo(m, 4, FALSE);
	case OP_BINPUT:
		return op_memo(m, 1, TRUE);
	case OP_LONG_BINPUT:
		return op_memo(m, 4, TRUE);
	case OP_MEMOIZE:
		return memo_put(m, m->memo->len);
	case OP_FRAME:
		return take_number(m, 8, &(guint64){ 0 });
	default:
		*known = FALSE;
		return TRUE;
	}
}

static const char *class_opcode(guint8 op)
{
	switch (op) {
	case 'c':
	case 0x93:
		return "it names a class or function (GLOBAL)";
	case 'R':
		return "it calls something (REDUCE)";
	case 'b':
		return "it sets an object's state (BUILD)";
	case 'i':
	case 'o':
	case 0x81:
	case 0x92:
		return "it makes an object of a class (NEWOBJ)";
	case 'P':
	case 'Q':
		return "it refers to a persistent object (PERSID)";
	case 0x82:
	case 0x83:
	case 0x84:
		return "it refers to a registered extension (EXT)";
	case 0x97:
	case 0x98:
		return "it refers to a buffer outside the file (NEXT_BUFFER)";
	case 0x8f:
	case 0x90:
	case 0x91:
		return "it holds a set";
	default:
		return NULL;
	}
}

static gboolean step(struct machine *m, guint8 op)
{
	gboolean known = TRUE;
	gboolean ok = step_scalar(m, op, &known);
	if (!known) {
		known = TRUE;
		ok = step_container(m, op, &known);
	}
	if (!known) {
		known = TRUE;
		ok = step_stack(m, op, &known);
	}
	if (known)
		return ok;
	return class_opcode(op) ? refused(m, class_opcode(op))
				: damaged(m, "there is no such opcode");
}

static gboolean run(struct machine *m)
{
	const guint8 *b;
	if (!take(m, 2, &b) || b[0] != OP_PROTO)
		return *m->error ? FALSE : damaged(m, "this is no pickle of protocol 2 to 5");
	if (b[1] < PROTOCOL_MIN || b[1] > PROTOCOL_MAX)
		return damaged(m, "the protocol is not one of 2 to 5");
	for (;;) {
		m->op_at = m->at;
		if (!take(m, 1, &b))
			return FALSE;
		if (*b == OP_STOP)
			break;
		if (!step(m, *b))
			return FALSE;
	}
	if (m->stack->len != 1 || m->marks->len != 0)
		return damaged(m, "it ends with other than one value");
	m->pickle->root = g_array_index(m->stack, struct pickle_value, 0);
	return TRUE;
}

struct pickle *pickle_read(const guint8 *bytes, gsize count, GError **error)
{
	struct pickle *pickle = g_new0(struct pickle, 1);
	GError *cause = NULL;
	struct machine m = { .pickle = pickle,
			     .bytes = bytes,
			     .count = count,
			     .stack = g_array_new(FALSE, FALSE, sizeof(struct pickle_value)),
			     .marks = g_array_new(FALSE, FALSE, sizeof(gsize)),
			     .memo = g_array_new(FALSE, FALSE, sizeof(struct pickle_value)),
			     .error = &cause };
	pickle->blocks = g_ptr_array_new_with_free_func(g_free);
	gboolean ok = run(&m);
	g_array_free(m.stack, TRUE);
	g_array_free(m.marks, TRUE);
	g_array_free(m.memo, TRUE);
	if (ok)
		return pickle;
	g_propagate_error(error, g_steal_pointer(&cause));
	pickle_free(pickle);
	return NULL;
}

void pickle_free(struct pickle *pickle)
{
	if (pickle == NULL)
		return;
	g_ptr_array_free(pickle->blocks, TRUE);
	g_free(pickle);
}

const struct pickle_value *pickle_root(const struct pickle *pickle)
{
	return &pickle->root;
}

gboolean pickle_is(const struct pickle_value *v, const char *text)
{
	return v != NULL && v->type == PICKLE_STR && v->string->length == strlen(text) &&
	       memcmp(v->string->text, text, v->string->length) == 0;
}

const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key)
{
	if (dict == NULL || dict->type != PICKLE_DICT)
		return NULL;
	/* the last entry of a key counts, as in Python */
	for (gsize i = dict->list->count; i >= 2; i -= 2) {
		if (pickle_is(&dict->list->items[i - 2], key))
			return &dict->list->items[i - 1];
	}
	return NULL;
}

gboolean pickle_get_int(const struct pickle_value *dict, const char *key, gint64 *out)
{
	const struct pickle_value *v = pickle_get(dict, key);
	if (v == NULL || (v->type != PICKLE_INT && v->type != PICKLE_BOOL))
		return FALSE;
	*out = v->integer;
	return TRUE;
}
