/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of other programs' files: what small files of each dialect tell, and what is said of
 * damaged ones, with the line.
 */
#include <string.h>

#include "harness/test.h"
#include "traces/usage-of-trace.h"
#include "read/readers.h"

#define SCOPE                                                                                  \
	"ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,Call " \
	"Stack(Python),Call Stack(C)\n"
#define BLOCKS "start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,file_name,\n"

#define EVENT(time, address, bytes, type, sum)                                               \
	"{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":" time ",\"pid\":1,\"tid\":2,\"args\":{" \
	"\"Addr\":" address ",\"Bytes\":" bytes ",\"Device Id\":0,\"Device Type\":" type     \
	",\"Total Allocated\":" sum "}},\n"
#define MIB (G_GUINT64_CONSTANT(1) << 20)

static struct trace *read_text(reader_fn *read, const char *text, GError **error)
{
	struct input *input = input_open_bytes(text, strlen(text), "mem_log_dev3.txt", error);
	return input ? readers_read(read, "test", input, error) : NULL;
}

static struct trace *read_good(reader_fn *read, const char *text)
{
	g_autoptr(GError) error = NULL;
	struct trace *t = read_text(read, text, &error);

	if (error)
		ADD_FAILURE("%s", error->message);
	return t;
}

TEST(readers, rows_out_of_order_are_sorted)
{
	struct trace *t = read_good(memscope_read, SCOPE
				    "3,FREE,PTA,N/A,30,1,1,0,4096,\"{size:-512,addr:4096}\",,\n"
				    "2,MALLOC,PTA,N/A,20,1,1,0,4096,\"{size:512}\",\"a\nb\",\n"
				    "1,MALLOC,HAL,N/A,10,1,1,0,4096,\"{size:2097152}\",,\n"
				    "4,FREE,HAL,N/A,40,1,1,N/A,4096,\"{size:0}\",,\n"
				    "5,MALLOC,HAL,N/A,50,1,1,host,1,\"{size:7}\",,\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	struct record_item e[8];
	ASSERT_EQ(take_records(t, FALSE, e, 8), 5u);
	EXPECT_EQ((int)e[0].record.verb, (int)NPU_TRACE_SEGMENT_ALLOC);
	EXPECT_EQ((int)e[1].record.verb, (int)NPU_TRACE_ALLOC);
	EXPECT_EQ((int)e[2].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ(e[2].size, 512u);
	EXPECT_EQ((int)e[3].record.verb, (int)NPU_TRACE_SEGMENT_FREE);
	EXPECT_EQ(e[3].size, 2097152u);
	EXPECT_EQ((int)e[4].record.verb, (int)NPU_TRACE_NOTE);
	EXPECT_STREQ(e[4].record.op, "MALLOC HAL (host)");
	EXPECT_STREQ((const char *)g_ptr_array_index(d->others.list, 0), "MALLOC HAL (host)");
	trace_free(t);
}

/* Two processes have addresses of their own, and one of them frees what the other did not get. */
TEST(readers, processes_do_not_share_addresses)
{
	struct trace *t =
		read_good(memscope_read, SCOPE "1,MALLOC,HAL,N/A,10,1,1,0,4096,{size:2097152},,\n"
					       "1,MALLOC,HAL,N/A,11,2,2,0,4096,{size:4194304},,\n"
					       "2,FREE,HAL,N/A,12,2,2,N/A,4096,{size:0},,\n"
					       "2,FREE,HAL,N/A,13,1,1,N/A,4096,{size:0},,\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_ALLOC], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 0u);
	/* segments alone are blocks as well; the second to come is the first to go */
	struct record_item e[8];
	ASSERT_EQ(take_records(t, FALSE, e, 8), 8u);
	EXPECT_EQ((int)e[4].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ((int)e[5].record.verb, (int)NPU_TRACE_SEGMENT_FREE);
	EXPECT_EQ(e[5].size, 4194304u);
	EXPECT_EQ(e[7].size, 2097152u);
	trace_free(t);
}

/* Memory of a 257th process cannot be told apart from the first one's; what it reads and writes is
 * not needed to know what is live. */
TEST(readers, the_257th_process_may_only_access)
{
	for (int allocates = 0; allocates < 2; allocates++) {
		g_autoptr(GString) text = g_string_new(SCOPE);
		g_autoptr(GError) error = NULL;

		for (int p = 1; p <= 257; p++)
			g_string_append_printf(text, "%d,%s,%d,%d,0,4096,{size:2097152},,\n", p,
					       p < 257 || allocates ? "MALLOC,HAL,N/A,10"
								    : "ACCESS,READ,N/A,11",
					       p, p);
		struct trace *t = read_text(memscope_read, text->str, &error);
		if (allocates) {
			ASSERT_NULL(t);
			EXPECT_CONTAINS(error->message, "line 258: the rows are of more than 256");
			continue;
		}
		ASSERT_NOT_NULL(t);
		const struct trace_device *d = g_ptr_array_index(t->devices, 0);
		EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_ALLOC], 256u);
		EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 1u);
		trace_free(t);
	}
}

/* A free of what never was, and of what was there before: the first row of an address decides,
 * however far from its second it lies. */
TEST(readers, the_first_row_of_an_address_decides)
{
	struct trace *t =
		read_good(memscope_read, SCOPE "1,MALLOC,PTA,N/A,10,1,1,0,4096,{size:512},,\n"
					       "2,FREE,PTA,N/A,20,1,1,0,4096,{size:512},,\n"
					       "3,FREE,PTA,N/A,30,1,1,0,4096,{size:512},,\n"
					       "4,FREE,PTA,N/A,40,1,1,0,8192,{size:1024},,\n"
					       "5,FREE,PTA,N/A,50,1,1,0,8192,{size:1024},,\n"
					       "6,FREE,PTA,N/A,60,1,1,0,16384,{size:0},,\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	struct record_item start[2];
	ASSERT_EQ(take_records(t, TRUE, start, 2), 1u);
	EXPECT_EQ((int)start[0].record.verb, (int)NPU_TRACE_ALLOC);
	EXPECT_EQ(start[0].address, 8192u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 3u);
	trace_free(t);
}

/* The first of these frees does not name its device, the second does. */
TEST(readers, a_free_without_a_device_ends_a_segment_that_a_later_row_tells)
{
	struct trace *t =
		read_good(memscope_read, SCOPE "1,FREE,HAL,N/A,10,1,1,N/A,4096,{size:0},,\n"
					       "2,FREE,HAL,N/A,20,1,1,1,4096,{size:2097152},,\n"
					       "3,FREE,HAL,N/A,30,1,1,N/A,8192,{size:0},,\n"
					       "4,MALLOC,HAL,N/A,40,1,1,1,8192,{size:2097152},,\n"
					       "5,FREE,HAL,N/A,50,1,1,1,8192,{size:2097152},,\n"
					       "6,FREE,HAL,N/A,60,1,1,1,8192,{size:2097152},,\n");
	ASSERT_NOT_NULL(t);
	struct record_item e[12];
	ASSERT_EQ(take_records(t, TRUE, e, 12), 2u); /* the segment, and its block */
	EXPECT_EQ((int)e[0].record.verb, (int)NPU_TRACE_SEGMENT_ALLOC);
	EXPECT_EQ(e[0].size, 2 * MIB);
	ASSERT_EQ(take_records(t, FALSE, e, 12), 9u);
	EXPECT_EQ((int)e[0].record.verb, (int)NPU_TRACE_NOTE); /* row 3, of no device */
	EXPECT_EQ((int)e[1].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ((int)e[2].record.verb, (int)NPU_TRACE_SEGMENT_FREE);
	EXPECT_EQ(e[2].size, 2 * MIB);
	EXPECT_EQ((int)e[3].record.verb, (int)NPU_TRACE_NOTE);
	EXPECT_EQ((int)e[4].record.verb, (int)NPU_TRACE_SEGMENT_ALLOC);
	trace_free(t);
}

/* The head counts that is there at the first record with an address. */
TEST(readers, lines_before_the_first_address_are_of_the_head)
{
	struct trace *t =
		read_good(npusim_read, FORMAT_MAGIC " 1\n@1 note op=x device=0\n"
						    "info addresses=va\n"
						    "@2 alloc b1 size=512 device=0 va=0x200000\n"
						    "@3 alloc b1 size=512 device=0 va=0x400000\n");
	ASSERT_NOT_NULL(t);
	struct record_item e[4];
	ASSERT_EQ(take_records(t, FALSE, e, 4), 3u);
	EXPECT_EQ(e[1].address, 0x200000u);
	EXPECT_EQ(e[2].address, 0x400000u);
	trace_free(t);
}

TEST(readers, quoted_attributes_are_read_and_what_is_freed_was_live)
{
	struct trace *t = read_good(
		memscope_read,
		SCOPE "1,FREE,PTA,N/A,9,1,1,1,0x2000,\"{\"\"addr\"\":\"\"0x2000\"\",\"\"size\"\":"
		      "\"\"99\"\"}\",,\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 1u);
	struct record_item start[2];
	ASSERT_EQ(take_records(t, TRUE, start, 2), 1u);
	EXPECT_EQ(start[0].size, 99u);
	trace_free(t);
}

TEST(readers, blocks_live_from_tick_to_tick)
{
	struct trace *t =
		read_good(mindspore_read, BLOCKS "1,5,0x1000,0,ascend pool,100,a,\n"
						 "5,5,0x1000,0,ascend pool,64,a,\n"
						 "2,,0x2000,1,ascend pool,50,a,\n"
						 "3,4,0x1,0,CPU,5,a,\n-1,4,0x1,0,ascend,5,a,\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->counts[NPU_TRACE_ALLOC], 3u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 2u);
	struct memory a;
	usage_begin(&a, t, 0);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 150u);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 50u);
	EXPECT_EQ(a.unmatched, 0u);
	memory_clear(&a);
	trace_free(t);
}

TEST(readers, logs_name_their_device)
{
	struct trace *t =
		read_good(stalloc_read, "1 0x1000 512 0\nIteration Index : 1\n0 4096 512 0\n");
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 3u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 1u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 1u);
	trace_free(t);
}

/* Slices of a thread that an event lies in are its stack; what the first sum has, and no event, was
 * live before; memory of the host, and slices beside, do not matter. */
TEST(readers, memory_events_of_a_profiler_are_blocks)
{
	static const char timeline[] =
		"{\"deviceProperties\": [], \"traceEvents\": [\n"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train.py(7): "
		"step\",\"ts\":1,\"dur\":50,\"pid\":1,\"tid\":2},\n"
		"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"other.py(1): "
		"f\",\"ts\":1,\"dur\":50,\"pid\":1,\"tid\":3},\n"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"ts\":2,"
		"\"dur\":8.5,\"pid\":1,\"tid\":2},\n" EVENT("9.5", "4096", "512", "1", "3612")
			EVENT("10", "8192", "-100", "1", "3512") EVENT("11", "1", "7", "0", "1")
				EVENT("60.25", "4096", "-512", "1",
				      "3000") "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"late\","
					      "\"ts\":70,\"dur\":3}]}";
	struct trace *t = read_good(timeline_read, timeline);
	struct record_item e[8];
	struct memory a;

	ASSERT_NOT_NULL(t);
	ASSERT_EQ(take_records(t, FALSE, e, 8), 3u);
	EXPECT_EQ((int)e[0].record.verb, (int)NPU_TRACE_ALLOC);
	EXPECT_STREQ(sites_label_text(t->sites, sites_label(t->sites, e[0].site)),
		     "train.py(7): step");
	EXPECT_EQ(sites_depth(t->sites, e[0].site), 2u);
	EXPECT_EQ(e[0].time_us, 9);
	EXPECT_EQ(e[2].size, 512u);
	usage_begin(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).start, 3100u);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 3000u);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 3612u);
	EXPECT_EQ(a.unmatched, 0u);
	memory_clear(&a);
	trace_free(t);
}

#define OPERATORS                                                                             \
	"Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration" \
	"(us),Device Type\n"

TEST(readers, operators_hold_memory_from_their_row_on)
{
	struct trace *t = read_good(profiler_read,
				    OPERATORS "aten::add,0.5,1718344343123.125\t,1718344343124\t,"
					      "1718344343125.5\t,1,NPU:2\n"
					      "aten::mul,2,1718344343124.5,,,1.25,NPU:2\n"
					      "aten::sum,1,1718344343124.75,N/A,,,NPU:2\n"
					      "aten::old,-4,1718344343130,,,,NPU:2\n");
	struct record_item e[8];
	struct memory a;

	ASSERT_NOT_NULL(t);
	EXPECT_EQ(((struct trace_device *)g_ptr_array_index(t->devices, 0))->device, 2u);
	ASSERT_EQ(take_records(t, FALSE, e, 8), 6u);
	/* a block is there until its memory is back in the pool */
	EXPECT_EQ((int)e[3].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ(e[3].size, 512u);
	EXPECT_EQ(e[3].time_us, 1718344343125);
	EXPECT_EQ(e[4].size, 2048u);
	usage_begin(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).start, 4096u);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 4096u + 512 + 2048 + 1024);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 1024u);
	memory_clear(&a);
	trace_free(t);
}

#define SUMS "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n"

TEST(readers, sums_of_components_are_followed)
{
	struct trace *t =
		read_good(profiler_read, SUMS "PTA,1.5,1.0,2.0,NPU:0\nGE,1.6,0.0,4.0,NPU:0\n"
					      "PTA+GE,1.6,1,6,NPU:0\nAPP,2,,10,NPU:0\n"
					      "PTA,3,20.5,42,NPU:0\nPTA,4,20.5,41,NPU:0\n"
					      "PTA,5,0,20,NPU:0\n");
	struct memory a;

	ASSERT_NOT_NULL(t);
	usage_begin(&a, t, 0);
	usage_run(&a, t, 0);
	EXPECT_EQ(LEVEL_OF(a, LIVE).peak.bytes, 41u * MIB / 2);
	EXPECT_EQ(LEVEL_OF(a, LIVE).now, 0u);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_MAP], 3u);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_UNMAP], 1u);
	EXPECT_EQ(d->counts[NPU_TRACE_ALLOC], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 2u);
	memory_clear(&a);
	trace_free(t);
}

static const struct {
	const char *name;
	reader_fn *read;
	const char *text, *says;
} damaged[] = {
	{ "scope_column", memscope_read, "ID,Event,Event Type,\n", "line 1: the header has no" },
	{ "scope_row", memscope_read, SCOPE "1,MALLOC,PTA\n", "line 2: 3 fields" },
	{ "scope_size", memscope_read, SCOPE "1,MALLOC,PTA,x,1,1,1,0,1,{size:-5},,\n",
	  "line 2: size of Attr is '-5'" },
	{ "scope_quote", memscope_read, SCOPE "1,MALLOC,PTA,x,1,1,1,0,1,\"{size:5\n",
	  "line 2: a quote" },
	{ "blocks_address", mindspore_read, BLOCKS "1,2,zz,0,ascend,5,a,\n",
	  "line 2: device_addr is 'zz'" },
	{ "blocks_row", mindspore_read, BLOCKS "1,2,0x1,0,ascend,5,a,\n1,2\n", "line 3: 2 fields" },
	{ "log_word", stalloc_read, "1 1 1 0\nx 1 1 0\n", "line 2: \"x\"" },
	{ "log_size", stalloc_read, "1 1 -1 0\n", "line 1: the size is '-1'" },
	{ "profiler_time", profiler_read, OPERATORS "a,1,soon,,,,NPU:0\n",
	  "line 2: Allocation Time(us) is \"soon\"" },
	{ "profiler_first_time", profiler_read, OPERATORS "a,1,-9223372036854775808,,,,NPU:0\n",
	  "line 2: Allocation Time(us) is \"-9223372036854775808\"" },
	{ "profiler_row", profiler_read, OPERATORS "a,1\n",
	  "line 2: it has no Allocation Time(us)" },
	{ "profiler_size", profiler_read, OPERATORS "a,99999999999999,5,,,,NPU:0\n",
	  "line 2: Size(KB) is \"99999999999999\"" },
	{ "profiler_sum", profiler_read, SUMS "PTA,1,1.x,2,NPU:0\n", "Total Allocated(MB) is" },
	{ "timeline_cut", timeline_read, "{\"traceEvents\":[{\"name\":\"[memory]\",",
	  "it is no valid JSON" },
	{ "timeline_without", timeline_read, "{\"traceEvents\":[]}", "profile_memory=True" },
	{ "timeline_of_the_host", timeline_read, "[" EVENT("1", "4096", "512", "0", "512") "{}]",
	  "profile_memory=True" },
	{ "timeline_of_a_sum_without_end", timeline_read,
	  "[" EVENT("1", "4096", "512", "1", "-9223372036854775808") "{}]", "profile_memory=True" },
	{ "timeline_of_the_last_process", timeline_read,
	  "[{\"name\":\"f\",\"ts\":1,\"pid\":9223372036854775807}]", "profile_memory=True" },
	{ "timeline_of_numbers", timeline_read, "{\"traceEvents\":[1,{\"name\":2,\"ts\":[]}]}",
	  "profile_memory=True" },
	{ "no_database", memscope_db_read, "SQLite format 3", "not a usable database" },
};

TEST_EACH(readers, damage_is_named_with_its_line, damaged, name)
{
	const __typeof__(damaged[0]) *c = param;
	GError *error = NULL;
	struct trace *t = read_text(c->read, c->text, &error);

	ASSERT_TRUE(t == NULL && error != NULL);
	EXPECT_CONTAINS(error->message, c->says);
	g_clear_error(&error);
}
