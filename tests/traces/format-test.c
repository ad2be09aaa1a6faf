/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim traces: what FORMAT.md says, line by line.
 */
#include <string.h>

#include "harness/test.h"
#include "trace.h"

static struct trace *parse(const char *text, GError **error)
{
	return format_read((const guint8 *) text, strlen(text), error);
}

TEST(format, recognises_its_first_line)
{
	EXPECT_TRUE(format_recognise((const guint8 *) "npusim-trace 1\n", 15));
	EXPECT_FALSE(format_recognise((const guint8 *) "npusim-tra", 10));
	EXPECT_FALSE(format_recognise((const guint8 *) "\x80\x04N.", 4));
}

TEST(format, reads_calls)
{
	GError *error = NULL;
	struct trace *t = parse("npusim-trace 1\n"
				"info soc=Ascend910B3 devices=8\n"
				"# a comment\n"
				"\n"
				"@1250 ~15000000 :1.2 reserve r1 size=0x4000000 flags=1 va=0x12c1c0000000 => 0\n"
				"create h1 size=2097152 device=3 page=1g\n"
				"map r1+2097152 size=2097152 handle=h1 => 107000\n",
				&error);
	ASSERT_NOT_NULL(t);
	EXPECT_STREQ(t->soc, "Ascend910B3");
	ASSERT_EQ(t->calls->len, 3u);
	const struct trace_call *c = &g_array_index(t->calls, struct trace_call, 0);
	EXPECT_EQ((int) c->verb, (int) TRACE_CALL_RESERVE);
	EXPECT_EQ(c->host_ns, 1250u);
	EXPECT_EQ(c->process, 1u);
	EXPECT_EQ(c->thread, 2u);
	EXPECT_EQ(c->size, 0x4000000u);
	EXPECT_EQ(c->line, 5u);
	c++;
	EXPECT_EQ(c->device, 3);
	EXPECT_EQ((int) c->page_lg2, 30);
	c++;
	EXPECT_EQ(c->name.kind, 'r');
	EXPECT_EQ(c->name.offset, 2097152u);
	EXPECT_EQ(c->at.kind, 'h');
	EXPECT_EQ(c->code, 107000);
	trace_free(t);
}

TEST(format, reads_an_allocators_events)
{
	GError *error = NULL;
	struct trace *t = parse("npusim-trace 1\n"
				"segment_alloc a1 size=2097152 device=1\n"
				"alloc b1 size=512 device=1 at=a1+0\n"
				"free b1 device=1\n",
				&error);
	ASSERT_NOT_NULL(t);
	ASSERT_EQ(t->devices->len, 1u);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 1u);
	EXPECT_EQ(d->counts[TRACE_SEGMENT_ALLOC], 1u);
	EXPECT_EQ(d->counts[TRACE_ALLOC], 1u);
	EXPECT_EQ(d->counts[TRACE_FREE_COMPLETED], 1u);
	const struct trace_event *alloc = &g_array_index(d->events, struct trace_event, 1);
	const struct trace_event *gone = &g_array_index(d->events, struct trace_event, 2);
	EXPECT_EQ(alloc->address, gone->address);
	trace_free(t);
}

TEST(format, counts_unknown_verbs_and_ignores_unknown_keys)
{
	GError *error = NULL;
	struct trace *t = parse("npusim-trace 1\nfrobnicate x=1\nrelease h1 colour=red\n", &error);
	ASSERT_NOT_NULL(t);
	EXPECT_EQ(t->skipped, 1u);
	EXPECT_EQ(t->calls->len, 1u);
	trace_free(t);
}

TEST(format, leaves_a_broken_last_line_out)
{
	GError *error = NULL;
	struct trace *t = parse("npusim-trace 1\nrelease h1\nrelease h", &error);
	ASSERT_NOT_NULL(t);
	EXPECT_TRUE(t->truncated);
	EXPECT_EQ(t->calls->len, 1u);
	trace_free(t);
}

struct bad_line {
	const char *name, *text, *says;
};
static const struct bad_line bad_lines[] = {
	{ "version", "npusim-trace 9\n", "version is 9" },
	{ "no_name", "npusim-trace 1\nreserve size=4096\n", "line 2: reserve needs a name rN" },
	{ "wrong_kind", "npusim-trace 1\nrelease r1\n", "needs a name hN" },
	{ "no_size", "npusim-trace 1\n\nreserve r1\n", "line 3: reserve needs size=" },
	{ "no_device", "npusim-trace 1\ncreate h1 size=1\n", "needs device=" },
	{ "no_handle", "npusim-trace 1\nmap r1 size=1\n", "needs handle=" },
	{ "number", "npusim-trace 1\nreserve r1 size=12x\n", "'12x' is no number" },
	{ "overflow", "npusim-trace 1\nreserve r1 size=18446744073709551616\n", "no number of 64 bits" },
	{ "device_range", "npusim-trace 1\ncreate h1 size=1 device=4096\n", "device is 4096" },
	{ "page", "npusim-trace 1\ncreate h1 size=1 device=0 page=3m\n", "page is '3m'" },
	{ "code", "npusim-trace 1\nrelease h1 =>\n", "no code" },
	{ "two_names", "npusim-trace 1\nrelease h1 h2\n", "neither" },
	{ "stamp", "npusim-trace 1\n:7 release h1\n", "process.thread" },
	{ "only_stamps", "npusim-trace 1\n@1\n", "no verb" },
};

TEST_EACH(format, refuses, bad_lines, name)
{
	const struct bad_line *b = param;
	GError *error = NULL;
	EXPECT_NULL(parse(b->text, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, b->says);
	g_error_free(error);
}

TEST(format, refuses_a_nul_byte)
{
	static const char text[] = "npusim-trace 1\nrelease\0h1\n";
	GError *error = NULL;
	EXPECT_NULL(format_read((const guint8 *) text, sizeof text - 1, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, "NUL");
	g_error_free(error);
}
