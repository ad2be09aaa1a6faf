/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim traces: what FORMAT.md says, line by line.
 */
#include <string.h>

#include "harness/test.h"
#include "read/readers.h"
#include "read/trace.h"

static struct trace *read_text(const char *text, gsize count, GError **error)
{
	struct input *input = input_open_bytes(text, count, "text", error);
	return input ? readers_read(npusim_read, "text", input, error) : NULL;
}

static struct trace *summary(const char *text)
{
	GError *error = NULL;
	struct trace *t = read_text(text, strlen(text), &error);
	if (t == NULL)
		ADD_FAILURE("%s", error->message);
	g_clear_error(&error);
	return t;
}

static int next(struct trace *t, struct record_item *out)
{
	return trace_next(t, out, NULL);
}

/* Records of a text that is right, at most `room`; their number. Their texts are gone. */
static int read_all(const char *text, struct record_item *out, int room)
{
	struct trace *t = summary(text);
	int count = 0;

	while (t && count < room && next(t, &out[count]) > 0)
		count++;
	trace_free(t);
	return t ? count : -1;
}

/* What is wrong with a text, or NULL. */
static char *complaint(const char *text, gsize count)
{
	GError *error = NULL;
	struct trace *t = read_text(text, count, &error);
	char *message = error ? g_strdup(error->message) : NULL;

	g_clear_error(&error);
	trace_free(t);
	return message;
}

TEST(format, reads_calls)
{
	struct record_item c[4];
	ASSERT_EQ(read_all("npusim-trace 1\n"
			   "info soc=Ascend910B3 devices=8\n"
			   "# a comment\n"
			   "\n"
			   "@1250 ~15000000 :1.2 reserve r1 size=0x4000000 flags=1 "
			   "va=0x12c1c0000000 => 0\n"
			   "create h1 size=2097152 device=3 page=1g\n"
			   "map r1+2097152 size=2097152 handle=h1 => 107000\r\n",
			   c, 4),
		  3);
	EXPECT_EQ((int)c[0].record.verb, (int)NPU_TRACE_RESERVE);
	EXPECT_EQ(c[0].record.host_ns, 1250u);
	EXPECT_EQ(c[0].record.process, 1u);
	EXPECT_EQ(c[0].record.thread, 2u);
	EXPECT_EQ(c[0].record.size, 0x4000000u);
	EXPECT_EQ(c[0].record.flags, 1u);
	EXPECT_EQ(c[0].record.line, 5u);
	EXPECT_EQ(c[1].record.device, 3);
	EXPECT_EQ((int)c[1].record.page_lg2, 30);
	EXPECT_EQ(c[2].record.name.kind, 'r');
	EXPECT_EQ(c[2].record.name.offset, 2097152u);
	EXPECT_EQ(c[2].record.handle.kind, 'h');
	EXPECT_EQ(c[2].record.handle.number, 1u);
	EXPECT_EQ(c[2].record.code, 107000);
}

TEST(format, keeps_places_of_one_line_apart)
{
	struct record_item c[2];
	ASSERT_EQ(read_all("npusim-trace 1\n"
			   "copy size=4 dst=r1+8 src=a2+16\n"
			   "retain h1 at=r5 handle=h9\n",
			   c, 2),
		  2);
	EXPECT_EQ(c[0].record.at.kind, 'r');
	EXPECT_EQ(c[0].record.at.offset, 8u);
	EXPECT_EQ(c[0].record.from.kind, 'a');
	EXPECT_EQ(c[0].record.from.number, 2u);
	EXPECT_EQ(c[1].record.at.number, 5u);
	EXPECT_EQ(c[1].record.handle.number, 9u);
}

TEST(format, a_failed_call_may_name_what_is_not_there)
{
	struct record_item c[3];
	ASSERT_EQ(read_all("npusim-trace 1\n"
			   "map host size=2097152 handle=h0 => 107000\n"
			   "create h1 size=1 device=4294967295 page=2m => 107001\n",
			   c, 3),
		  2);
	EXPECT_EQ(c[0].record.name.kind, '-');
	EXPECT_EQ(c[1].record.device, (gint64)G_MAXUINT32);
	EXPECT_EQ(c[1].device, G_MAXUINT);
}

TEST(format, an_allocators_events_have_one_address_for_each_name)
{
	struct record_item c[8];
	ASSERT_EQ(read_all("npusim-trace 1\n"
			   "segment_alloc a1 size=2097152 device=1\n"
			   "alloc b1 size=512 device=1 at=a1+0\n"
			   "free b1 device=1 op=requested\n"
			   "free b1 device=1\n"
			   "segment_map r7+4194304 size=2097152 device=1\n"
			   ":2.1 segment_map r7+4194304 size=2097152 device=1\n"
			   "segment_unmap r7+4194304 size=2097152 device=1\n"
			   "oom size=7 device=1 free=5\n",
			   c, 8),
		  8);
	EXPECT_EQ((int)c[0].record.verb, (int)NPU_TRACE_SEGMENT_ALLOC);
	EXPECT_EQ((int)c[1].record.verb, (int)NPU_TRACE_ALLOC);
	EXPECT_EQ((int)c[2].record.verb, (int)NPU_TRACE_FREE_REQUESTED);
	EXPECT_EQ((int)c[3].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ(c[1].address, c[3].address);
	EXPECT_NE(c[4].address, c[5].address);
	EXPECT_EQ(c[4].address, c[6].address);
	EXPECT_EQ(c[4].address % (1u << 30), 4194304u);
	EXPECT_EQ(c[7].address, 5u);
	EXPECT_EQ(c[7].size, 7u);
}

TEST(format, summary_counts_what_is_in_the_file)
{
	struct trace *t = summary("npusim-trace 1\n"
				  "info soc=Ascend%20910 x=y\n"
				  "frobnicate x=1\n"
				  "create h1 size=2097152 device=2 colour=red\n"
				  "create h2 size=2097152 device=12 => 107001\n"
				  "alloc b1 size=512 device=1\n"
				  "release h");
	ASSERT_NOT_NULL(t);
	EXPECT_STREQ(t->soc, "Ascend 910");
	EXPECT_EQ(t->skipped, 1u);
	EXPECT_TRUE(t->truncated);
	EXPECT_EQ(t->events, 3u);
	EXPECT_EQ(t->calls, 2u);
	EXPECT_EQ(t->memory_calls, 2u);
	/* a device that a failed call asked for is none that the trace uses */
	ASSERT_EQ(t->devices->len, 2u);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 1u);
	EXPECT_EQ(d->counts[NPU_TRACE_ALLOC], 1u);
	struct record_item first;
	EXPECT_EQ(next(t, &first), 1);
	EXPECT_EQ((int)first.record.verb, (int)NPU_TRACE_CREATE);
	trace_free(t);
}

TEST(format, call_sites_are_those_of_the_trace)
{
	struct trace *t = summary("npusim-trace 1\n"
				  "alloc b1 size=512 device=1 site=train.py:3%20(f)\n"
				  "alloc b2 size=512 device=1\n"
				  "alloc b3 size=512 device=1 site=train.py:3%20(f)\n");
	struct record_item first, second, third;

	ASSERT_NOT_NULL(t);
	ASSERT_NOT_NULL(t->sites);
	EXPECT_EQ(next(t, &first), 1);
	EXPECT_EQ(next(t, &second), 1);
	EXPECT_EQ(next(t, &third), 1);
	EXPECT_EQ(first.site, third.site);
	EXPECT_EQ(second.site, (guint32)SITE_NONE);
	EXPECT_STREQ(sites_label_text(t->sites, sites_label(t->sites, first.site)),
		     "train.py:3 (f)");
	trace_free(t);
}

TEST(format, a_header_alone_is_an_empty_trace)
{
	struct trace *t = summary("npusim-trace 1\n");
	ASSERT_NOT_NULL(t);
	EXPECT_EQ(t->events, 0u);
	EXPECT_FALSE(t->truncated);
	trace_free(t);
}

/* Lines that end anywhere in the reader's buffer. */
TEST(format, reads_files_larger_than_its_buffer)
{
	g_autoptr(GString) text = g_string_new("npusim-trace 1\n");
	struct record_item line;
	guint64 count = 0;

	for (guint i = 1; i <= 100000; i++)
		g_string_append_printf(text, "%*salloc b%u size=%u device=0\n", (int)(i % 61), "",
				       i, i);
	struct trace *t = summary(text->str);
	ASSERT_NOT_NULL(t);
	for (int pass = 0; pass < 2; pass++) {
		for (count = 0; next(t, &line) > 0; count++) {
			ASSERT_EQ(line.record.size, count + 1);
			ASSERT_EQ(line.record.line, count + 2);
		}
		EXPECT_EQ(count, 100000u);
		ASSERT_TRUE(trace_rewind(t, NULL));
	}
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
	{ "number", "npusim-trace 1\nreserve r1 size=12x\n", "size is '12x', which is no number" },
	{ "overflow", "npusim-trace 1\nreserve r1 size=18446744073709551616\n",
	  "no number from 0 to 18446744073709551615" },
	{ "device_range", "npusim-trace 1\ncreate h1 size=1 device=4096\n", "device is 4096" },
	{ "device_width", "npusim-trace 1\ncreate h1 size=1 device=4294967296\n",
	  "device is '4294967296'" },
	{ "host_named", "npusim-trace 1\nrelease host\n", "needs a name hN" },
	{ "event_on_host", "npusim-trace 1\nalloc b1 size=1 device=host\n", "about a device" },
	{ "event_without_name", "npusim-trace 1\nfree device=0\n", "free needs a name bN" },
	{ "offset", "npusim-trace 1\nsegment_map r1+0x80000000000 size=1 device=0\n", "8 TiB" },
	{ "magic", "npusim-traces 1\n", "line 1: it is not 'npusim-trace 1'" },
	{ "nothing", "", "there is none" },
	{ "page", "npusim-trace 1\ncreate h1 size=1 device=0 page=3m\n", "page is '3m'" },
	{ "code", "npusim-trace 1\nrelease h1 =>\n", "no code" },
	{ "two_names", "npusim-trace 1\nrelease h1 h2\n", "neither" },
	{ "stamp", "npusim-trace 1\n:7 release h1\n", "process.thread" },
	{ "only_stamps", "npusim-trace 1\n@1\n", "no verb" },
};

TEST_EACH(format, refuses, bad_lines, name)
{
	const struct bad_line *b = param;
	g_autofree char *text = complaint(b->text, strlen(b->text));
	ASSERT_NOT_NULL(text);
	EXPECT_CONTAINS(text, b->says);
}

TEST(format, refuses_a_nul_byte)
{
	static const char text[] = "npusim-trace 1\nrelease\0h1\n";
	g_autofree char *says = complaint(text, sizeof text - 1);
	ASSERT_NOT_NULL(says);
	EXPECT_CONTAINS(says, "NUL");
}

TEST(format, refuses_a_line_without_end)
{
	g_autoptr(GString) text = g_string_new("npusim-trace 1\n# ");
	for (guint i = 0; i < 2u << 20; i++)
		g_string_append_c(text, 'x');
	g_string_append_c(text, '\n');
	g_autofree char *says = complaint(text->str, text->len);
	ASSERT_NOT_NULL(says);
	EXPECT_CONTAINS(says, "line 2: it is longer than 64 KiB");
}

TEST(format, messages_are_printable)
{
	static const char text[] = "npusim-trace 1\nreserve r1 size=\x1b[31m\xff\n";
	g_autofree char *says = complaint(text, sizeof text - 1);
	ASSERT_NOT_NULL(says);
	EXPECT_CONTAINS(says, "'?[31m\xef\xbf\xbd'");
}
