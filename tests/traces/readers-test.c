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

typedef struct trace *(*reader)(struct input *input, GError **error);

static struct trace *read_text(reader read, const char *text, GError **error)
{
	struct input *input =
		input_open_bytes((const guint8 *)text, strlen(text), "mem_log_dev3.txt", error);
	return input ? read(input, error) : NULL;
}

/* The trace's records behind those of the start, at most `room`; their number. */
static guint take_records(struct trace *t, struct record_item *out, guint room)
{
	guint count = 0;

	EXPECT_TRUE(t->source->rewind(t, NULL));
	while (count < room && t->source->next(t, &out[count], NULL) > 0)
		count++;
	return count;
}

static const struct trace_row *start_of(const struct trace *t, guint index)
{
	return &g_array_index(t->starts, struct trace_row, index);
}

TEST(readers, rows_out_of_order_are_sorted)
{
	GError *error = NULL;
	struct trace *t =
		read_text(memscope_read,
			  SCOPE "3,FREE,PTA,N/A,30,1,1,0,4096,\"{size:-512,addr:4096}\",,\n"
				"2,MALLOC,PTA,N/A,20,1,1,0,4096,\"{size:512}\",\"a\nb\",\n"
				"1,MALLOC,HAL,N/A,10,1,1,0,4096,\"{size:2097152}\",,\n"
				"4,FREE,HAL,N/A,40,1,1,N/A,4096,\"{size:0}\",,\n"
				"5,MALLOC,HAL,N/A,50,1,1,host,1,\"{size:7}\",,\n",
			  &error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	struct record_item e[8];
	ASSERT_EQ(take_records(t, e, 8), 5u);
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
	GError *error = NULL;
	struct trace *t = read_text(memscope_read,
				    SCOPE "1,MALLOC,HAL,N/A,10,1,1,0,4096,{size:2097152},,\n"
					  "1,MALLOC,HAL,N/A,11,2,2,0,4096,{size:4194304},,\n"
					  "2,FREE,HAL,N/A,12,2,2,N/A,4096,{size:0},,\n"
					  "2,FREE,HAL,N/A,13,1,1,N/A,4096,{size:0},,\n",
				    &error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_ALLOC], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_SEGMENT_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 0u);
	/* segments alone are blocks as well; the second to come is the first to go */
	struct record_item e[8];
	ASSERT_EQ(take_records(t, e, 8), 8u);
	EXPECT_EQ((int)e[4].record.verb, (int)NPU_TRACE_FREE);
	EXPECT_EQ((int)e[5].record.verb, (int)NPU_TRACE_SEGMENT_FREE);
	EXPECT_EQ(e[5].size, 4194304u);
	EXPECT_EQ(e[7].size, 2097152u);
	trace_free(t);
}

/* A free of what never was, and of what was there before: the first row of an address decides,
 * however far from its second it lies. */
TEST(readers, the_first_row_of_an_address_decides)
{
	GError *error = NULL;
	struct trace *t = read_text(memscope_read,
				    SCOPE "1,MALLOC,PTA,N/A,10,1,1,0,4096,{size:512},,\n"
					  "2,FREE,PTA,N/A,20,1,1,0,4096,{size:512},,\n"
					  "3,FREE,PTA,N/A,30,1,1,0,4096,{size:512},,\n"
					  "4,FREE,PTA,N/A,40,1,1,0,8192,{size:1024},,\n"
					  "5,FREE,PTA,N/A,50,1,1,0,8192,{size:1024},,\n"
					  "6,FREE,PTA,N/A,60,1,1,0,16384,{size:0},,\n",
				    &error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	ASSERT_EQ(t->starts->len, 1u);
	EXPECT_EQ((int)start_of(t, 0)->verb, (int)NPU_TRACE_ALLOC);
	EXPECT_EQ(start_of(t, 0)->address, 8192u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 3u);
	trace_free(t);
}

TEST(readers, quoted_attributes_are_read_and_what_is_freed_was_live)
{
	GError *error = NULL;
	struct trace *t = read_text(
		memscope_read,
		SCOPE "1,FREE,PTA,N/A,9,1,1,1,0x2000,\"{\"\"addr\"\":\"\"0x2000\"\",\"\"size\"\":"
		      "\"\"99\"\"}\",,\n",
		&error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 1u);
	ASSERT_EQ(t->starts->len, 1u);
	EXPECT_EQ(start_of(t, 0)->size, 99u);
	trace_free(t);
}

TEST(readers, blocks_live_from_tick_to_tick)
{
	GError *error = NULL;
	struct trace *t = read_text(mindspore_read,
				    BLOCKS "1,5,0x1000,0,ascend pool,100,a,\n"
					   "5,5,0x1000,0,ascend pool,64,a,\n"
					   "2,,0x2000,1,ascend pool,50,a,\n"
					   "3,4,0x1,0,CPU,5,a,\n-1,4,0x1,0,ascend,5,a,\n",
				    &error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->counts[NPU_TRACE_ALLOC], 3u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 2u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 2u);
	struct memory_usage a;
	usage_begin(&a, t, 0);
	usage_run(&a, t, 0);
	EXPECT_EQ(a.peak_live, 150u);
	EXPECT_EQ(a.live, 50u);
	EXPECT_EQ(a.unmatched, 0u);
	memory_usage_clear(&a);
	trace_free(t);
}

TEST(readers, logs_name_their_device)
{
	GError *error = NULL;
	struct trace *t = read_text(stalloc_read,
				    "1 0x1000 512 0\nIteration Index : 1\n0 4096 512 0\n", &error);
	ASSERT_NOT_NULL(t);
	const struct trace_device *d = g_ptr_array_index(t->devices, 0);
	EXPECT_EQ(d->device, 3u);
	EXPECT_EQ(d->counts[NPU_TRACE_FREE], 1u);
	EXPECT_EQ(d->counts[NPU_TRACE_NOTE], 1u);
	trace_free(t);
}

static const struct {
	const char *name;
	reader read;
	const char *text, *says;
} damaged[] = {
	{ "scope_column", memscope_read, "ID,Event,Event Type,\n", "line 1: the header has no" },
	{ "scope_row", memscope_read, SCOPE "1,MALLOC,PTA\n", "line 2: 3 fields" },
	{ "scope_size", memscope_read, SCOPE "1,MALLOC,PTA,x,1,1,1,0,1,{size:-5},,\n",
	  "line 2: size of Attr is \"-5\"" },
	{ "scope_quote", memscope_read, SCOPE "1,MALLOC,PTA,x,1,1,1,0,1,\"{size:5\n",
	  "line 2: a quote" },
	{ "blocks_address", mindspore_read, BLOCKS "1,2,zz,0,ascend,5,a,\n",
	  "line 2: device_addr is \"zz\"" },
	{ "blocks_row", mindspore_read, BLOCKS "1,2,0x1,0,ascend,5,a,\n1,2\n", "line 3: 2 fields" },
	{ "log_word", stalloc_read, "1 1 1 0\nx 1 1 0\n", "line 2: \"x\"" },
	{ "log_size", stalloc_read, "1 1 -1 0\n", "line 1: the size is \"-1\"" },
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
