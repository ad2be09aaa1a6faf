/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: the state at the start is the state at the end with the events undone, and the counts
 * that follow from it. The pickles are written here, opcode by opcode.
 */
#include <string.h>

#include "harness/test.h"
#include "traces/usage-of-trace.h"
#include "read/readers.h"

#define MIB (G_GUINT64_CONSTANT(1) << 20)

/* ---- a writer of pickles ---- */

static void put_text(GByteArray *out, const char *text)
{
	guint8 head[2] = { 0x8c, (guint8)strlen(text) };
	g_byte_array_append(out, head, 2);
	g_byte_array_append(out, (const guint8 *)text, head[1]);
}

static void put_op(GByteArray *out, char op)
{
	g_byte_array_append(out, (const guint8 *)&op, 1);
}

static void put_int(GByteArray *out, const char *key, guint64 value)
{
	guint8 bytes[10] = { 0x8a, 8 };
	put_text(out, key);
	for (int i = 0; i < 8; i++)
		bytes[2 + i] = (guint8)(value >> (8 * i));
	g_byte_array_append(out, bytes, sizeof bytes);
}

static void put_word(GByteArray *out, const char *key, const char *value)
{
	put_text(out, key);
	put_text(out, value);
}

static void put_event(GByteArray *out, const char *action, guint64 address, guint64 size)
{
	g_byte_array_append(out, (const guint8 *)"}(", 2);
	put_word(out, "action", action);
	put_int(out, "addr", address);
	put_int(out, "size", size);
	put_op(out, 'u');
}

static void put_block(GByteArray *out, guint64 address, guint64 size, guint64 requested,
		      const char *state)
{
	g_byte_array_append(out, (const guint8 *)"}(", 2);
	put_int(out, "address", address);
	put_int(out, "size", size);
	put_int(out, "requested_size", requested);
	put_word(out, "state", state);
	put_op(out, 'u');
}

static GByteArray *begin(void)
{
	GByteArray *out = g_byte_array_new();

	g_byte_array_append(out, (const guint8 *)"\x80\x04}(", 4);
	put_text(out, "segments");
	g_byte_array_append(out, (const guint8 *)"](", 2);
	return out;
}

static void begin_segment(GByteArray *out, guint64 address, guint64 size, gboolean expandable,
			  const char *type)
{
	g_byte_array_append(out, (const guint8 *)"}(", 2);
	put_int(out, "device", 0);
	put_int(out, "address", address);
	put_int(out, "total_size", size);
	put_text(out, "is_expandable");
	put_op(out, expandable ? (char)0x88 : (char)0x89);
	put_word(out, "segment_type", type);
	put_text(out, "blocks");
	g_byte_array_append(out, (const guint8 *)"](", 2);
}

static void end_segment(GByteArray *out)
{
	g_byte_array_append(out, (const guint8 *)"eu", 2);
}

static void begin_events(GByteArray *out)
{
	put_op(out, 'e');
	put_text(out, "device_traces");
	g_byte_array_append(out, (const guint8 *)"](](", 4);
}

static struct trace *read_bytes(const void *bytes, gsize count, GError **error)
{
	struct input *input = input_open_bytes(bytes, count, "snapshot", error);

	return input ? readers_read(snapshot_read, "snapshot", input, error) : NULL;
}

static struct trace *finish(GByteArray *out)
{
	g_byte_array_append(out, (const guint8 *)"eeu.", 4);
	struct trace *t = read_bytes(out->data, out->len, NULL);
	g_byte_array_unref(out);
	return t;
}

static void expect_refused(const void *bytes, gsize count, const char *says)
{
	GError *error = NULL;
	EXPECT_NULL(read_bytes(bytes, count, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, says);
	g_error_free(error);
}

static void finish_refused(GByteArray *out, const char *says)
{
	g_byte_array_append(out, (const guint8 *)"eeu.", 4);
	expect_refused(out->data, out->len, says);
	g_byte_array_unref(out);
}

/* ---- tests ---- */

TEST(snapshot, window_starts_with_what_was_live)
{
	/* at the end: [0, 4) mapped, of which the window mapped [2, 4); it unmapped [8, 10); block
	 * 1 is older than the window */
	guint64 base = 0x12c1c0000000;
	GByteArray *out = begin();
	begin_segment(out, base, 4 * MIB, TRUE, "small");
	put_block(out, base, 1024, 1000, "active_allocated");
	put_block(out, base + 1024, 4 * MIB - 1024, 0, "inactive");
	end_segment(out);
	begin_events(out);
	put_event(out, "segment_map", base + 2 * MIB, 2 * MIB);
	put_event(out, "alloc", base + 2 * MIB, 700);
	put_event(out, "free_requested", base + 2 * MIB, 700);
	put_event(out, "free_completed", base + 2 * MIB, 700);
	put_event(out, "free_completed", base + 8 * MIB, 300);
	put_event(out, "segment_unmap", base + 8 * MIB, 2 * MIB);
	struct trace *t = finish(out);
	ASSERT_NOT_NULL(t);
	struct record_item start[5];
	ASSERT_EQ(take_records(t, TRUE, start, 5), 4u);
	EXPECT_EQ((int)start[0].record.verb, (int)NPU_TRACE_SEGMENT_MAP);
	EXPECT_EQ(start[0].size, 2 * MIB);
	EXPECT_EQ((int)start[1].record.verb, (int)NPU_TRACE_SEGMENT_MAP);
	EXPECT_EQ(start[1].address, base + 8 * MIB);
	EXPECT_EQ((int)start[2].record.verb, (int)NPU_TRACE_ALLOC);
	EXPECT_EQ((int)start[3].record.verb, (int)NPU_TRACE_ALLOC);

	struct memory a;
	usage_begin(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, PHYSICAL).start, 4 * MIB);
	EXPECT_EQ(LEVEL_OF(a, LIVE).start, 1300u);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, PHYSICAL).peak.bytes, 6 * MIB);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 2000u);
	EXPECT_EQ(LEVEL_OF(a, PHYSICAL).got, 2 * MIB);
	EXPECT_EQ(LEVEL_OF(a, PHYSICAL).now, 4 * MIB);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 1000u);
	EXPECT_EQ(a.unmatched, 0u);
	memory_clear(&a);
	trace_free(t);
}

TEST(snapshot, block_lives_until_free_completed)
{
	GByteArray *out = begin();
	begin_events(out);
	put_event(out, "segment_alloc", 0x1000000, 2 * MIB);
	put_event(out, "alloc", 0x1000000, 100);
	put_event(out, "free_requested", 0x1000000, 100);
	put_event(out, "alloc", 0x1000200, 50);
	put_event(out, "free_completed", 0x1000000, 100);
	struct trace *t = finish(out);
	ASSERT_NOT_NULL(t);
	struct memory a;
	usage_begin(&a, t, 0);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 150u);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 50u);
	memory_clear(&a);
	trace_free(t);
}

TEST(snapshot, unknown_actions_are_counted_by_name)
{
	GByteArray *out = begin();
	begin_events(out);
	put_event(out, "workspace_snapshot", 0, 0);
	put_event(out, "workspace_snapshot", 0, 0);
	struct trace *t = finish(out);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	ASSERT_EQ(d->others.list->len, 1u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 2u);
	EXPECT_STREQ((const char *)g_ptr_array_index(d->others.list, 0), "workspace_snapshot");
	EXPECT_EQ(g_array_index(d->other_counts, guint64, 0), 2u);
	trace_free(t);
}

static const struct {
	const char *name, *action;
	guint64 address, size;
} no_ranges[] = {
	{ "negative_address", "alloc", (guint64)-5, 1 },
	{ "negative_size", "free_completed", 4096, (guint64)-1 },
	{ "address", "segment_alloc", G_MAXINT64, 1 },
	{ "size", "segment_map", 4096, G_MAXINT64 },
	{ "sum", "segment_unmap", G_GUINT64_CONSTANT(1) << 55, (G_GUINT64_CONSTANT(1) << 55) + 1 },
};

TEST_EACH(snapshot, refuses_ranges_outside_of_any_address_space, no_ranges, name)
{
	const __typeof__(no_ranges[0]) *c = param;
	GByteArray *out = begin();
	begin_events(out);
	put_event(out, c->action, c->address, c->size);
	finish_refused(out, "device_traces[0][0]");
}

/* One event, named many times through the memo: a small file must not become a large history. */
TEST(snapshot, refuses_more_events_than_its_bytes_allow)
{
	GByteArray *out = begin();
	put_op(out, 'e');
	put_text(out, "device_traces");
	g_byte_array_append(out, (const guint8 *)"](](", 4);
	put_event(out, "alloc", 4096, 1);
	g_byte_array_append(out, (const guint8 *)"q\x00", 2);
	for (int i = 0; i < 100; i++)
		g_byte_array_append(out, (const guint8 *)"h\x00", 2);
	g_byte_array_append(out, (const guint8 *)"eq\x01", 3);
	for (int i = 0; i < 100; i++)
		g_byte_array_append(out, (const guint8 *)"h\x01", 2);
	g_byte_array_append(out, (const guint8 *)"eu.", 3);
	expect_refused(out->data, out->len, "more than its size allows");
	g_byte_array_unref(out);
}

TEST(snapshot, refuses_an_event_with_a_thousand_keys)
{
	GByteArray *out = begin();
	begin_events(out);
	g_byte_array_append(out, (const guint8 *)"}(", 2);
	for (int i = 0; i < 1000; i++)
		put_int(out, "size", 1);
	put_op(out, 'u');
	finish_refused(out, "keys");
}

TEST(snapshot, blocks_without_addresses_follow_one_another)
{
	GByteArray *out = begin();
	begin_segment(out, 1 << 20, 2 * MIB, FALSE, "small");
	for (int i = 0; i < 3; i++) {
		g_byte_array_append(out, (const guint8 *)"}(", 2);
		put_int(out, "size", 512);
		put_word(out, "state", i == 1 ? "inactive" : "active_allocated");
		put_op(out, 'u');
	}
	end_segment(out);
	begin_events(out);
	put_event(out, "free_completed", (1 << 20) + 4096, 512);
	struct trace *t = finish(out);
	ASSERT_NOT_NULL(t);
	struct record_item start[5];
	ASSERT_EQ(take_records(t, TRUE, start, 5), 4u);
	EXPECT_EQ((int)start[0].record.verb, (int)NPU_TRACE_SEGMENT_ALLOC);
	EXPECT_EQ(start[1].address, 1u << 20);
	EXPECT_EQ(start[2].address, (1u << 20) + 1024);
	EXPECT_EQ(start[3].address, (1u << 20) + 4096);
	trace_free(t);
}

TEST(usage, a_block_handed_out_twice_is_counted_once)
{
	struct memory a;
	guint64 at[2];

	memory_init(&a, 0);
	memory_step(&a, &(struct record_item){
				.record.verb = NPU_TRACE_ALLOC, .address = 1, .size = 100 });
	memory_step(&a, &(struct record_item){
				.record.verb = NPU_TRACE_ALLOC, .address = 1, .size = 50 });
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 50u);
	EXPECT_EQ(a.unmatched, 1u);
	memory_soon(&a, (guint64[]){ 2, 1 }, 2, at);
	EXPECT_EQ(at[0], 0u);
	EXPECT_EQ(at[1], 1u);
	memory_step(&a, &(struct record_item){ .record.verb = NPU_TRACE_FREE, .address = 1 });
	memory_step(&a, &(struct record_item){ .record.verb = NPU_TRACE_FREE, .address = 1 });
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 0u);
	EXPECT_EQ(a.unmatched, 2u);
	memory_clear(&a);
}

TEST(usage, live_at_the_peak_is_the_most_that_the_peak_saw)
{
	struct memory a;
	memory_init(&a, 0);
	memory_step(&a,
		    &(struct record_item){ .record.verb = NPU_TRACE_SEGMENT_MAP, .size = 4 * MIB });
	memory_step(&a, &(struct record_item){
				.record.verb = NPU_TRACE_ALLOC, .address = 1, .size = 3 * MIB });
	memory_step(&a, &(struct record_item){ .record.verb = NPU_TRACE_SEGMENT_UNMAP,
					       .size = 2 * MIB });
	memory_step(&a, &(struct record_item){
				.record.verb = NPU_TRACE_ALLOC, .address = 2, .size = 3 * MIB });
	EXPECT_EQ(LEVEL_OF(a, PHYSICAL).peak.bytes, 4 * MIB);
	EXPECT_EQ(a.levels.live_at_peak, 3 * MIB);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 6 * MIB);
	memory_clear(&a);
}

static gint spans_in(guint64 gap, struct span *out_first)
{
	GTree *s = by_address_tree();

	for (guint i = 0; i < 5000; i++) {
		guint64 at = (guint64)(i * 7919u % 5000u) * 10;
		spans_add(s, at, at + 10, gap);
	}
	spans_add(s, 60000, 60010, gap);
	spans_add(s, 60020, 60030, gap);
	*out_first = *(const struct span *)g_tree_node_value(g_tree_node_first(s));
	gint count = g_tree_nnodes(s);
	g_tree_unref(s);
	return count;
}

TEST(spans, merge_whatever_the_order)
{
	struct span first;

	EXPECT_EQ(spans_in(10000, &first), 1);
	EXPECT_EQ(spans_in(10, &first), 2);
	EXPECT_EQ(spans_in(9, &first), 3);
	EXPECT_EQ(spans_in(0, &first), 3);
	EXPECT_EQ(first.start, 0u);
	EXPECT_EQ(first.end, 50000u);
}

struct not_a_snapshot {
	const char *name;
	const char *bytes;
	gsize count;
	const char *says;
};
#define PICKLE(text) text, sizeof(text) - 1
static const struct not_a_snapshot others[] = {
	{ "number", PICKLE("\x80\x04K\x01."), "it is no dict and no list" },
	{ "empty_dict", PICKLE("\x80\x04}."), "it has no list segments" },
	{ "no_segments",
	  PICKLE("\x80\x04}(\x8c\x0d"
		 "device_traces]u."),
	  "segments" },
	{ "traces_of_numbers",
	  PICKLE("\x80\x04}(\x8c\x0d"
		 "device_traces](K\x01"
		 "eu."),
	  "device_traces[0] is no list" },
};

TEST_EACH(snapshot, refuses, others, name)
{
	const struct not_a_snapshot *o = param;
	expect_refused(o->bytes, o->count, o->says);
}
