/* SPDX-License-Identifier: Apache-2.0
 *
 * The pickle machine, for the reader of snapshots: a stack, a memo, and a table of opcode
 * handlers. Lists are shared, never copied, so a pickle that refers to one object many times stores
 * it once.
 */
#include "readers.h"

#define CHUNK_BYTES  (16u << 10) /* or what a longer list needs */
#define PROTOCOL_MIN 2
#define PROTOCOL_MAX 5

/* What an opcode does. */
enum deed {
	UNKNOWN,
	REFUSED, /* text: why */
	/* with: the width of a number that follows */
	PUSH_INT,  /* it; four bytes have a sign */
	PUSH_LONG, /* its length */
	PUSH_STR,  /* the same */
	PUSH_FLOAT,
	MEMO_GET, /* the index */
	MEMO_PUT, /* the same; 0: the next */
	SKIP,
	LAST_WITH_NUMBER = SKIP,
	PUSH_BOOL,
	PUSH_NONE,
	PUSH_EMPTY, /* with: type */
	TAKE_TUPLE,
	TAKE_MARKED, /* with: type of what the values above the mark become */
	ADD_ONE,     /* with: type of what an item joins */
	ADD_MARKED,  /* with: type of what the values above the mark join */
	MARK,
	POP,
	POP_MARK,
	DUP,
	STOP
};
static const struct {
	const char *codes; /* opcodes that do so */
	guint8 deed, with;
	const char *why;
} rows[] = {
	{ "", .deed = UNKNOWN },
	{ "(", .deed = MARK },
	{ ".", .deed = STOP },
	{ "0", .deed = POP },
	{ "1", .deed = POP_MARK },
	{ "2", .deed = DUP },
	{ "G", .deed = PUSH_FLOAT, .with = 8 },
	{ "K", .deed = PUSH_INT, .with = 1 },
	{ "M", .deed = PUSH_INT, .with = 2 },
	{ "J", .deed = PUSH_INT, .with = 4 },
	{ "\x8a", .deed = PUSH_LONG, .with = 1 },
	{ "\x8b", .deed = PUSH_LONG, .with = 4 },
	{ "N", .deed = PUSH_NONE },
	{ "\x88\x89", .deed = PUSH_BOOL },
	{ "UC\x8c", .deed = PUSH_STR, .with = 1 },
	{ "TBX", .deed = PUSH_STR, .with = 4 },
	{ "\x8d\x8e\x96", .deed = PUSH_STR, .with = 8 },
	{ "}", .deed = PUSH_EMPTY, .with = PICKLE_DICT },
	{ "])", .deed = PUSH_EMPTY, .with = PICKLE_LIST },
	{ "\x85\x86\x87", .deed = TAKE_TUPLE },
	{ "d", .deed = TAKE_MARKED, .with = PICKLE_DICT },
	{ "lt", .deed = TAKE_MARKED, .with = PICKLE_LIST },
	{ "a", .deed = ADD_ONE, .with = PICKLE_LIST },
	{ "s", .deed = ADD_ONE, .with = PICKLE_DICT },
	{ "e", .deed = ADD_MARKED, .with = PICKLE_LIST },
	{ "u", .deed = ADD_MARKED, .with = PICKLE_DICT },
	{ "h", .deed = MEMO_GET, .with = 1 },
	{ "j", .deed = MEMO_GET, .with = 4 },
	{ "q", .deed = MEMO_PUT, .with = 1 },
	{ "r", .deed = MEMO_PUT, .with = 4 },
	{ "\x94", .deed = MEMO_PUT, .with = 0 },
	{ "\x95", .deed = SKIP, .with = 8 },
	{ "c\x93", .deed = REFUSED, .why = "it names a class or function (GLOBAL)" },
	{ "R", .deed = REFUSED, .why = "it calls something (REDUCE)" },
	{ "b", .deed = REFUSED, .why = "it sets an object's state (BUILD)" },
	{ "io\x81\x92", .deed = REFUSED, .why = "it makes an object of a class (NEWOBJ)" },
	{ "PQ", .deed = REFUSED, .why = "it refers to a persistent object (PERSID)" },
	{ "\x82\x83\x84", .deed = REFUSED, .why = "it refers to a registered extension (EXT)" },
	{ "\x97\x98", .deed = REFUSED,
	  .why = "it refers to a buffer outside the file (NEXT_BUFFER)" },
	{ "\x8f\x90\x91", .deed = REFUSED, .why = "it holds a set" },
};

struct pickle {
	GPtrArray *chunks; /* that lists and their values lie in */
	gsize left;        /* bytes of the last that are free: its first */
	struct pickle_value root;
	/* What texts lie in, one of the two. */
	GBytes *bytes;
	JsonNode *json;

	/* While it is read. */
	const guint8 *data;
	gsize count, at;
	gsize op_at; /* where the present opcode stands */
	struct pickle_list stack, memo;
	struct pickle_list marks; /* integers: depths of the stack */
	guint8 row_of[256];
	GError **error;
};

static gboolean damaged(struct pickle *m, const char *what)
{
	return refuse(m->error, TRACE_ERROR, TRACE_ERROR_FORMAT, "pickle damaged at byte %zu: %s",
		      m->op_at, what);
}

static gboolean take(struct pickle *m, gsize n, const guint8 **out)
{
	if (n > m->count - m->at)
		return damaged(m, "the file ends inside a value");
	*out = m->data + m->at;
	m->at += n;
	return TRUE;
}

/* A little-endian number of n bytes. */
static gboolean take_number(struct pickle *m, unsigned n, guint64 *out)
{
	const guint8 *b;
	if (!take(m, n, &b))
		return FALSE;
	*out = 0;
	for (unsigned i = 0; i < n; i++)
		*out |= (guint64)b[i] << (8 * i);
	return TRUE;
}

/* NULL: there may not be so much memory. */
static gpointer keep(struct pickle *m, gsize bytes)
{
	gsize chunk = MAX(bytes, CHUNK_BYTES);

	if (m->left < bytes) {
		if (!memory_limit_ask(chunk, m->error, "pickle at byte %zu", m->op_at))
			return NULL;
		g_ptr_array_add(m->chunks, g_malloc(chunk));
		m->left = chunk;
	}
	m->left -= bytes;
	return (char *)m->chunks->pdata[m->chunks->len - 1] + m->left;
}

static inline gboolean add(struct pickle *m, struct pickle_list *l, struct pickle_value *v, gsize n)
{
	if (n > l->room - l->len) {
		gsize room = MAX(2 * (gsize)l->room, l->len + n);
		struct pickle_value *items = keep(m, room * sizeof *items);
		if (items == NULL)
			return FALSE;
		if (l->len > 0)
			memcpy(items, l->items, l->len * sizeof *items);
		l->items = items;
		l->room = (guint)room;
	}
	if (n > 0)
		memcpy(l->items + l->len, v, n * sizeof *v);
	l->len += (guint)n;
	return TRUE;
}

static gboolean push(struct pickle *m, struct pickle_value v)
{
	return add(m, &m->stack, &v, 1);
}

static gboolean push_int(struct pickle *m, enum pickle_type type, gint64 i)
{
	return push(m, (struct pickle_value){ .type = type, .integer = i });
}

/* The depth below which nothing may be taken: the innermost mark. */
static gsize floor_of(const struct pickle *m)
{
	return m->marks.len ? (gsize)m->marks.items[m->marks.len - 1].integer : 0;
}

static struct pickle_value *top(struct pickle *m, gsize depth)
{
	if (m->stack.len < floor_of(m) + depth + 1) {
		damaged(m, "an opcode finds too few values");
		return NULL;
	}
	return &m->stack.items[m->stack.len - 1 - depth];
}

/* The values of the stack from `from` on join a list or dict. */
static gboolean list_add(struct pickle *m, enum pickle_type type, struct pickle_list *l, gsize from)
{
	guint count = m->stack.len - (guint)from;

	if (type == PICKLE_DICT && count % 2 != 0)
		return damaged(m, "a key of a dict has no value");
	m->stack.len = (guint)from;
	return add(m, l, m->stack.items + from, count);
}

static gboolean push_list(struct pickle *m, enum pickle_type type, gsize from)
{
	struct pickle_list *list = keep(m, sizeof *list);

	if (list)
		*list = (struct pickle_list){ .items = NULL };
	return list && list_add(m, type, list, from) &&
	       push(m, (struct pickle_value){ .type = type, .list = list });
}

/* The values above the mark join the list or dict below it. */
static gboolean op_extend(struct pickle *m, enum pickle_type type, gsize from)
{
	if (from < floor_of(m) + 1)
		return damaged(m, "there is no container below the mark");
	const struct pickle_value *into = &m->stack.items[from - 1];
	return into->type == type
		       ? list_add(m, type, into->list, from)
		       : damaged(m, "items are added to something that is no such container");
}

/* Python writes no byte more than needed, but for a sign: nine bytes are wide. */
static gboolean op_long(struct pickle *m, guint64 n)
{
	guint64 value = 0;
	const guint8 *digits;

	if (n > 8)
		return take(m, (gsize)n, &digits) && push_int(m, PICKLE_NONE, 0);
	if (!take_number(m, (unsigned)n, &value))
		return FALSE;
	if (n > 0 && n < 8 && (value >> (8 * n - 1) & 1))
		value |= G_MAXUINT64 << (8 * n);
	return push_int(m, PICKLE_INT, (gint64)value);
}

static gboolean memo_put(struct pickle *m, guint64 index)
{
	struct pickle_value *v = top(m, 0), empty = { .type = PICKLE_EMPTY };
	if (v == NULL)
		return FALSE;
	/* each entry takes at least one opcode, so a larger index is made up */
	if (index > m->count)
		return damaged(m, "a memo index is out of range");
	while (index >= m->memo.len) {
		if (!add(m, &m->memo, &empty, 1))
			return FALSE;
	}
	m->memo.items[index] = *v;
	return TRUE;
}

static gboolean step(struct pickle *m, guint8 op)
{
	unsigned with = rows[m->row_of[op]].with;
	enum deed deed = rows[m->row_of[op]].deed;
	gsize depth = m->stack.len;
	struct pickle_value string = { .type = PICKLE_STR }, real = { .type = PICKLE_FLOAT };
	const struct pickle_value *v;
	guint64 n = m->memo.len; /* the number that follows, if there is one */

	if (deed >= PUSH_INT && deed <= LAST_WITH_NUMBER && with && !take_number(m, with, &n))
		return FALSE;
	if ((deed == PUSH_LONG || deed == PUSH_STR) && n > m->count - m->at)
		return damaged(m, "a string or a number is longer than the file");
	if (deed == POP_MARK || deed == TAKE_MARKED || deed == ADD_MARKED) {
		if (m->marks.len == 0)
			return damaged(m, "an opcode finds no mark");
		depth = floor_of(m);
		m->marks.len--;
	}
	switch (deed) {
	case UNKNOWN:
		return damaged(m, "there is no such opcode");
	case REFUSED:
		return refuse(m->error, TRACE_ERROR, TRACE_ERROR_FORMAT,
			      "pickle refused at byte %zu: %s; only plain data is read", m->op_at,
			      rows[m->row_of[op]].why);
	case PUSH_INT:
		return push_int(m, PICKLE_INT, with == 4 ? (gint32)n : (gint64)n);
	case PUSH_LONG:
		return op_long(m, n);
	case PUSH_STR:
		string.length = (guint32)n;
		return take(m, (gsize)n, (const guint8 **)&string.text) && push(m, string);
	case PUSH_BOOL:
		return push_int(m, PICKLE_BOOL, op == 0x88);
	case PUSH_NONE:
		return push_int(m, PICKLE_NONE, 0);
	case PUSH_FLOAT:
		n = GUINT64_SWAP_LE_BE(n);
		memcpy(&real.real, &n, sizeof n);
		return push(m, real);
	case PUSH_EMPTY:
	case TAKE_MARKED:
		return push_list(m, with, depth);
	case TAKE_TUPLE:
		with = op - 0x84u; /* TUPLE1 to TUPLE3 */
		return top(m, with - 1) && push_list(m, PICKLE_LIST, depth - with);
	case ADD_ONE:
		depth -= with == PICKLE_DICT ? 2 : 1;
		return top(m, m->stack.len - depth) && op_extend(m, with, depth);
	case ADD_MARKED:
		return op_extend(m, with, depth);
	case MARK:
		return add(m, &m->marks, &(struct pickle_value){ .integer = (gint64)depth }, 1);
	case POP:
	case POP_MARK:
		if (deed == POP && top(m, 0) == NULL)
			return FALSE;
		m->stack.len = (guint)(deed == POP ? depth - 1 : depth);
		return TRUE;
	case DUP:
		v = top(m, 0);
		return v && push(m, (struct pickle_value) * v);
	case MEMO_GET:
		if (n >= m->memo.len || m->memo.items[n].type == PICKLE_EMPTY)
			return damaged(m, "the memo has no such entry");
		return push(m, m->memo.items[n]);
	case MEMO_PUT:
		return memo_put(m, n);
	case SKIP:
	case STOP:
		return TRUE;
	}
	return FALSE;
}

static gboolean run(struct pickle *m)
{
	const guint8 *b;
	if (!take(m, 2, &b))
		return FALSE;
	for (guint row = 0; row < G_N_ELEMENTS(rows); row++)
		for (const char *code = rows[row].codes; *code; code++)
			m->row_of[(guint8)*code] = (guint8)row;
	if (b[1] < PROTOCOL_MIN || b[1] > PROTOCOL_MAX)
		return damaged(m, "the protocol is not one of 2 to 5");
	for (;;) {
		m->op_at = m->at;
		if (!take(m, 1, &b))
			return FALSE;
		if (rows[m->row_of[*b]].deed == STOP)
			break;
		if (!step(m, *b))
			return FALSE;
	}
	return (m->stack.len == 1 && m->marks.len == 0) ||
	       damaged(m, "it ends with other than one value");
}

/* ---- JSON, as the same values ---- */

static gboolean push_text(struct pickle *m, const char *text)
{
	return push(m, (struct pickle_value){
			       .type = PICKLE_STR, .length = (guint32)strlen(text), .text = text });
}

/* NOLINTNEXTLINE(misc-no-recursion): JSON_DEPTH_MAX */
static gboolean push_json(struct pickle *m, JsonNode *node)
{
	gboolean scalar = JSON_NODE_HOLDS_VALUE(node);
	GType type = scalar ? json_node_get_value_type(node) : G_TYPE_NONE;
	gsize from = m->stack.len;

	if (JSON_NODE_HOLDS_OBJECT(node)) {
		JsonObjectIter iter;
		const char *name;
		json_object_iter_init(&iter, json_node_get_object(node));
		while (json_object_iter_next(&iter, &name, &node)) {
			if (!push_text(m, name) || !push_json(m, node))
				return FALSE;
		}
		return push_list(m, PICKLE_DICT, from);
	}
	if (JSON_NODE_HOLDS_ARRAY(node)) {
		JsonArray *list = json_node_get_array(node);
		for (guint i = 0; i < json_array_get_length(list); i++) {
			if (!push_json(m, json_array_get_element(list, i)))
				return FALSE;
		}
		return push_list(m, PICKLE_LIST, from);
	}
	if (type == G_TYPE_STRING)
		return push_text(m, json_node_get_string(node));
	if (type == G_TYPE_DOUBLE)
		return push(m, (struct pickle_value){ .type = PICKLE_FLOAT,
						      .real = json_node_get_double(node) });
	if (type == G_TYPE_BOOLEAN)
		return push_int(m, PICKLE_BOOL, json_node_get_boolean(node));
	return scalar ? push_int(m, PICKLE_INT, json_node_get_int(node))
		      : push(m, (struct pickle_value){ .type = PICKLE_NONE });
}

static gboolean run_json(struct pickle *m)
{
	if (m->count > G_MAXUINT32 / 4)
		return refuse(m->error, TRACE_ERROR, TRACE_ERROR_FORMAT, "more than 1 GiB of JSON");
	m->json = json_load(m->data, m->count, FALSE, m->error);
	return m->json && push_json(m, m->json);
}

struct pickle *pickle_read_input(struct input *input, gsize *out_bytes, GError **error)
{
	GBytes *bytes = input_whole(input, error);

	if (bytes == NULL)
		return NULL;
	struct pickle *m = g_new0(struct pickle, 1);
	m->data = g_bytes_get_data(bytes, &m->count);
	m->bytes = bytes;
	m->chunks = g_ptr_array_new_with_free_func(g_free);
	m->error = error;
	gboolean json = m->count > 0 && m->data[0] != 0x80, ok = (json ? run_json : run)(m);
	if (ok)
		m->root = m->stack.items[0];
	if (json)
		g_clear_pointer(&m->bytes, g_bytes_unref);
	if (out_bytes)
		*out_bytes = m->count;
	if (!ok)
		g_clear_pointer(&m, pickle_free);
	return m;
}

void pickle_free(struct pickle *pickle)
{
	if (pickle == NULL)
		return;
	g_ptr_array_unref(pickle->chunks);
	g_bytes_unref(pickle->bytes);
	g_clear_pointer(&pickle->json, json_node_unref);
	g_free(pickle);
}

const struct pickle_value *pickle_root(const struct pickle *pickle)
{
	return &pickle->root;
}

gboolean pickle_is(const struct pickle_value *v, const char *text)
{
	return v != NULL && v->type == PICKLE_STR && v->length == strlen(text) &&
	       memcmp(v->text, text, v->length) == 0;
}

const struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key)
{
	if (dict == NULL || dict->type != PICKLE_DICT)
		return NULL;
	gsize length = strlen(key);
	/* the last entry of a key counts, as in Python */
	for (guint i = dict->list->len; i >= 2; i -= 2) {
		const struct pickle_value *v = pickle_item(dict, i - 2);
		if (v->type == PICKLE_STR && v->length == length && !memcmp(v->text, key, length))
			return v + 1;
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

gboolean pickle_get_thousandths(const struct pickle_value *dict, const char *key, gint64 *out)
{
	const struct pickle_value *v = pickle_get(dict, key);
	enum pickle_type type = v ? v->type : PICKLE_NONE;
	g_autofree char *text = type == PICKLE_STR ? g_strndup(v->text, v->length)
				: type == PICKLE_INT
					? g_strdup_printf("%" G_GINT64_FORMAT, v->integer)
				: type == PICKLE_FLOAT ? g_strdup_printf("%.3f", v->real)
						       : g_strdup("");

	return number_scaled(text, 1000, out);
}
