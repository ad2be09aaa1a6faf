/* SPDX-License-Identifier: Apache-2.0
 *
 * The pickle reader: every opcode that it takes, every one that it must refuse, and files that are
 * damaged anywhere.
 */
#include <string.h>

#include "harness/test.h"
#include "read/readers.h"

#define BYTES(text) ((const guint8 *)(text)), (sizeof(text) - 1)

static struct pickle *pickle_read(const guint8 *bytes, gsize count, GError **error)
{
	struct input *input = input_open_bytes(bytes, count, "bytes", error);
	struct pickle *p = input ? pickle_read_input(input, NULL, error) : NULL;
	input_close(input);
	return p;
}

static struct pickle *parse(const guint8 *bytes, gsize count)
{
	GError *error = NULL;
	struct pickle *p = pickle_read(bytes, count, &error);
	if (p == NULL) {
		ADD_FAILURE("%s", error->message);
		g_error_free(error);
	}
	return p;
}

struct scalar {
	const char *name;
	const guint8 *bytes;
	gsize count;
	enum pickle_type type;
	gint64 value;
};
static const struct scalar scalars[] = {
	{ "none", BYTES("\x80\x02N."), PICKLE_NONE, 0 },
	{ "true", BYTES("\x80\x02\x88."), PICKLE_BOOL, 1 },
	{ "false", BYTES("\x80\x02\x89."), PICKLE_BOOL, 0 },
	{ "binint1", BYTES("\x80\x02K\xff."), PICKLE_INT, 255 },
	{ "binint2", BYTES("\x80\x02M\x01\x02."), PICKLE_INT, 513 },
	{ "binint_negative", BYTES("\x80\x02J\xfe\xff\xff\xff."), PICKLE_INT, -2 },
	{ "long1_empty", BYTES("\x80\x02\x8a\x00."), PICKLE_INT, 0 },
	{ "long1_negative", BYTES("\x80\x02\x8a\x01\xff."), PICKLE_INT, -1 },
	{ "long1_address", BYTES("\x80\x02\x8a\x06\x00\x00\x00\x00\xc0\x12."), PICKLE_INT,
	  0x12c000000000 },
	{ "long1_eight_bytes", BYTES("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."),
	  PICKLE_INT, G_MAXINT64 },
	{ "wide", BYTES("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."), PICKLE_NONE, 0 },
	{ "wider", BYTES("\x80\x02\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01."), PICKLE_NONE,
	  0 },
	{ "long1_lowest", BYTES("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), PICKLE_INT,
	  G_MININT64 },
	{ "long4", BYTES("\x80\x02\x8b\x02\x00\x00\x00\x00\x01."), PICKLE_INT, 256 },
	{ "framed", BYTES("\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00K\x07."), PICKLE_INT, 7 },
};

TEST_EACH(pickle, reads, scalars, name)
{
	const struct scalar *s = param;
	struct pickle *p = parse(s->bytes, s->count);
	ASSERT_NOT_NULL(p);
	EXPECT_EQ((int)pickle_root(p)->type, (int)s->type);
	if (s->type != PICKLE_NONE)
		EXPECT_EQ(pickle_root(p)->integer, s->value);
	pickle_free(p);
}

TEST(pickle, reads_containers_and_memo)
{
	/* {"a": [1, 2, 3], "b": (the same list, "a")} */
	static const char bytes[] = "\x80\x04}\x94(\x8c\x01"
				    "a\x94]\x94(K\x01K\x02K\x03"
				    "e\x8c\x01"
				    "bh\x02h\x01\x86u.";
	struct pickle *p = parse(BYTES(bytes));
	ASSERT_NOT_NULL(p);
	const struct pickle_value *a = pickle_get(pickle_root(p), "a"),
				  *b = pickle_get(pickle_root(p), "b");
	ASSERT_NOT_NULL(a);
	ASSERT_NOT_NULL(b);
	ASSERT_EQ((int)a->type, (int)PICKLE_LIST);
	ASSERT_EQ(a->list->len, 3u);
	EXPECT_EQ(pickle_item(a, 2)->integer, 3);
	ASSERT_EQ(b->list->len, 2u);
	EXPECT_TRUE(pickle_item(b, 0)->list == a->list);
	EXPECT_TRUE(pickle_is(pickle_item(b, 1), "a"));
	EXPECT_NULL(pickle_get(pickle_root(p), "c"));
	pickle_free(p);
}

TEST(pickle, reads_a_list_that_holds_itself)
{
	struct pickle *p = parse(BYTES("\x80\x02]q\x00h\x00"
				       "a."));
	ASSERT_NOT_NULL(p);
	ASSERT_EQ(pickle_root(p)->list->len, 1u);
	EXPECT_TRUE(pickle_item(pickle_root(p), 0)->list == pickle_root(p)->list);
	pickle_free(p);
}

TEST(pickle, depth_needs_no_stack)
{
	enum { DEPTH = 1000000 };
	g_autofree guint8 *bytes = g_malloc(2 + DEPTH + DEPTH + 1);
	memcpy(bytes, "\x80\x02", 2);
	memset(bytes + 2, ']', DEPTH);
	memset(bytes + 2 + DEPTH, 'a', DEPTH - 1);
	bytes[2 + DEPTH + DEPTH - 1] = '.';
	struct pickle *p = parse(bytes, 2 + DEPTH + DEPTH);
	ASSERT_NOT_NULL(p);
	pickle_free(p);
}

struct refusal {
	const char *name;
	const guint8 *bytes;
	gsize count;
	const char *how; /* damaged, refused */
	const char *says;
};
static const struct refusal refusals[] = {
	{ "global",
	  BYTES("\x80\x02"
		"cos\nsystem\n."),
	  "pickle refused at byte ", "byte 2" },
	{ "stack_global", BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), "pickle refused at byte ",
	  "GLOBAL" },
	{ "reduce", BYTES("\x80\x02N)R."), "pickle refused at byte ", "REDUCE" },
	{ "build", BYTES("\x80\x02N}b."), "pickle refused at byte ", "BUILD" },
	{ "newobj", BYTES("\x80\x02N)\x81."), "pickle refused at byte ", "NEWOBJ" },
	{ "newobj_ex", BYTES("\x80\x04N)}\x92."), "pickle refused at byte ", "NEWOBJ" },
	{ "inst", BYTES("\x80\x02(ios\nsystem\n."), "pickle refused at byte ", "NEWOBJ" },
	{ "persid", BYTES("\x80\x02NQ."), "pickle refused at byte ", "PERSID" },
	{ "extension", BYTES("\x80\x02\x82\x01."), "pickle refused at byte ", "EXT" },
	{ "buffer", BYTES("\x80\x05\x97."), "pickle refused at byte ", "NEXT_BUFFER" },
	{ "set", BYTES("\x80\x04\x8f."), "pickle refused at byte ", "set" },
	{ "empty", BYTES(""), "pickle damaged at byte ", "ends inside" },
	{ "protocol_1", BYTES("\x80\x01]."), "pickle damaged at byte ", "protocol" },
	{ "protocol_0", BYTES("]."), "line 1, column 1: it is no valid JSON: ", "JSON" },
	{ "protocol_6", BYTES("\x80\x06N."), "pickle damaged at byte ", "2 to 5" },
	{ "nothing_left", BYTES("\x80\x02."), "pickle damaged at byte ", "one value" },
	{ "two_left", BYTES("\x80\x02NN."), "pickle damaged at byte ", "one value" },
	{ "open_mark", BYTES("\x80\x02(N."), "pickle damaged at byte ", "one value" },
	{ "pop_of_nothing",
	  BYTES("\x80\x02"
		"0."),
	  "pickle damaged at byte ", "too few" },
	{ "append_to_int",
	  BYTES("\x80\x02K\x01K\x02"
		"a."),
	  "pickle damaged at byte ", "no such container" },
	{ "append_below_mark",
	  BYTES("\x80\x02](K\x01"
		"a."),
	  "pickle damaged at byte ", "too few" },
	{ "appends_without_mark", BYTES("\x80\x02]e."), "pickle damaged at byte ", "no mark" },
	{ "appends_without_list",
	  BYTES("\x80\x02(K\x01"
		"e."),
	  "pickle damaged at byte ", "container" },
	{ "odd_dict", BYTES("\x80\x02}(K\x01u."), "pickle damaged at byte ", "no value" },
	{ "memo_unknown", BYTES("\x80\x02h\x05."), "pickle damaged at byte ", "memo" },
	{ "memo_gap", BYTES("\x80\x02Nq\x03h\x01."), "pickle damaged at byte ", "memo" },
	{ "memo_huge", BYTES("\x80\x02Nr\xff\xff\xff\xff."), "pickle damaged at byte ", "memo" },
	{ "string_too_long", BYTES("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."),
	  "pickle damaged at byte ", "longer" },
	{ "long_too_long", BYTES("\x80\x02\x8b\xff\xff\xff\xff."), "pickle damaged at byte ",
	  "longer" },
	{ "unknown_opcode", BYTES("\x80\x02\xff."), "pickle damaged at byte ", "no such opcode" },
};

TEST_EACH(pickle, refuses, refusals, name)
{
	const struct refusal *r = param;
	GError *error = NULL;
	struct pickle *p = pickle_read(r->bytes, r->count, &error);
	EXPECT_NULL(p);
	ASSERT_NOT_NULL(error);
	EXPECT_TRUE(g_str_has_prefix(error->message, r->how));
	EXPECT_CONTAINS(error->message, r->says);
	g_error_free(error);
}

static const char whole[] =
	"\x80\x04\x95\x2b\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94\x8c\x01x\x94G?"
	"\xf0"
	"\x00\x00\x00\x00\x00\x00\x8c\x01y\x94\x8a\x06\x00\x00\x00\x00\xc0\x12u.";

TEST(pickle, every_truncation_is_damaged)
{
	for (gsize n = 0; n < sizeof whole - 1; n++) {
		GError *error = NULL;
		EXPECT_NULL(pickle_read((const guint8 *)whole, n, &error));
		ASSERT_NOT_NULL(error);
		EXPECT_TRUE(g_str_has_prefix(error->message, "pickle damaged at byte "));
		g_error_free(error);
	}
}

TEST(pickle, every_single_byte_may_be_anything)
{
	/* no crash, no leak, and an error exactly where there is no result */
	for (gsize at = 0; at < sizeof whole - 1; at++) {
		for (unsigned value = 0; value < 256; value++) {
			char bytes[sizeof whole];
			GError *error = NULL;
			memcpy(bytes, whole, sizeof whole);
			bytes[at] = (char)value;
			struct pickle *p =
				pickle_read((const guint8 *)bytes, sizeof whole - 1, &error);
			ASSERT_TRUE((p == NULL) == (error != NULL));
			pickle_free(p);
			g_clear_error(&error);
		}
	}
}
