/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator alone, over memory that only writes down what it is asked for: sizes,
 * places, splits, merges and what is given back, each worked out by hand.
 */

#include "policy/policy.h"
#include "harness/test.h"
#include "read/trace.h"

#define KIB  (G_GUINT64_CONSTANT(1) << 10)
#define MIB  (G_GUINT64_CONSTANT(1) << 20)
#define GIB  (G_GUINT64_CONSTANT(1) << 30)
#define BASE (16 * GIB)
#define STEP GIB /* segments begin this far apart */
#define PAD  32  /* what torch_npu adds to each request */

struct bank {
	guint64 next;
	guint gets, gives, giants, reserves, unreserves;
	guint64 got[32], given[32]; /* sizes, in order */
	guint64 given_at[32];
	guint64 address_of[32], size_of[32]; /* of segments, by number */
	guint64 mapped, step, held;
	guint64 told; /* what events come to */
	guint handles;
};

static enum cache_answer call(gpointer data, const struct npu_trace_record *c, guint64 *out_va,
			      GError **error)
{
	struct bank *bank = data;
	guint number = c->verb == NPU_TRACE_MFREE ? (guint)((c->va - BASE) / STEP) : bank->next;

	(void)error;
	switch (c->verb) {
	case NPU_TRACE_MALLOC:
		*out_va = BASE + STEP * bank->next++;
		bank->address_of[number % 32] = *out_va;
		bank->size_of[number % 32] = c->size;
		bank->got[bank->gets++ % 32] = c->size;
		bank->giants += c->page_lg2 == 30;
		bank->held += c->size;
		break;
	case NPU_TRACE_MFREE:
		bank->given_at[bank->gives % 32] = bank->address_of[number % 32];
		bank->given[bank->gives++ % 32] = bank->size_of[number % 32];
		bank->held -= bank->size_of[number % 32];
		break;
	case NPU_TRACE_RESERVE:
		*out_va = BASE + 64 * GIB * ++bank->reserves;
		break;
	case NPU_TRACE_UNRESERVE:
		bank->unreserves++;
		break;
	case NPU_TRACE_CREATE:
		bank->handles++;
		bank->step = c->size;
		break;
	case NPU_TRACE_RELEASE:
		bank->handles--;
		break;
	case NPU_TRACE_MAP:
		EXPECT_EQ(c->name.offset % c->size, 0u);
		bank->mapped += c->size;
		bank->held += c->size;
		break;
	default:
		EXPECT_EQ(c->verb, (guint32)NPU_TRACE_UNMAP);
		bank->mapped -= c->size;
		bank->held -= c->size;
	}
	return CACHE_OK;
}

static void event(gpointer data, const struct record_item *item)
{
	guint32 verb = item->record.verb;
	gboolean comes = verb == NPU_TRACE_SEGMENT_ALLOC || verb == NPU_TRACE_SEGMENT_MAP;

	EXPECT_EQ(item->record.rounded, item->size);
	((struct bank *)data)->told += comes ? item->size : -item->size;
}

static struct trace_device first_device;

struct rig {
	struct policy_options options;
	struct bank bank;
	struct filter memory;
	struct cache *cache;
};

static struct rig *rig_open(enum policy_kind kind, guint64 total, const char *const *settings)
{
	struct rig *r = g_new0(struct rig, 1);

	r->memory = (struct filter){
		.trace = &first_device,
		.out = { .call = call, .event = event, .data = &r->bank, .total = total },
	};
	policy_options_init(&r->options);
	r->options.kind = kind;
	for (; settings && *settings; settings++) {
		if (!policy_options_set(&r->options, *settings, NULL))
			g_error("%s is refused", *settings);
	}
	r->cache = cache_new(&r->options, &r->memory);
	return r;
}

static void rig_close(struct rig *r)
{
	EXPECT_EQ(r->bank.told, r->bank.held);
	EXPECT_EQ(r->bank.handles == 0, r->bank.mapped == 0);
	cache_free(r->cache);
	policy_options_clear(&r->options);
	g_free(r);
}

/* `size`: what is taken, padding and all. */
static struct cache_block *take(struct rig *r, guint64 size)
{
	struct cache_block *b = NULL;

	if (cache_alloc(r->cache, size - (r->options.cuda ? 0 : PAD), 0, &b) != CACHE_OK)
		return NULL;
	return b;
}

static guint64 at(const struct cache_block *b)
{
	return b->address;
}

TEST(cache, small_blocks_share_a_segment_and_merge_again)
{
	struct rig *r = rig_open(POLICY_CACHING, GIB, NULL);
	struct cache_block *a = take(r, 1032), *b = take(r, 1032);

	EXPECT_EQ(a->size, 1536u); /* 1000 + 32, in steps of 512 */
	EXPECT_EQ(at(a), BASE);
	EXPECT_EQ(at(b), BASE + 1536);
	EXPECT_EQ(r->bank.got[0], 2 * MIB);
	cache_release(r->cache, a);
	cache_release(r->cache, b);
	EXPECT_EQ(at(take(r, MIB)), BASE);
	EXPECT_EQ(r->bank.gets, 1u);
	EXPECT_EQ(r->bank.held, 2 * MIB);
	rig_close(r);
}

TEST(cache, the_smallest_block_that_fits_is_taken)
{
	struct rig *r = rig_open(POLICY_CACHING, GIB, NULL);
	static const guint sizes[] = { 6, 2, 4, 3, 5 };
	struct cache_block *b[5];

	for (int i = 0; i < 5; i++)
		b[i] = take(r, sizes[i] * MIB);
	EXPECT_EQ(r->bank.gets, 1u); /* 20 MiB in all */
	cache_release(r->cache, b[0]);
	cache_release(r->cache, b[2]);
	cache_release(r->cache, b[4]);
	EXPECT_EQ(at(take(r, 4 * MIB)), BASE + 8 * MIB);
	/* 512 KiB left over are too few to be a block of the large pool */
	struct cache_block *last = take(r, 4 * MIB + 512 * KIB);
	EXPECT_EQ(at(last), BASE + 15 * MIB);
	EXPECT_EQ(last->size, 5 * MIB);
	EXPECT_EQ(at(take(r, 6 * MIB)), BASE);
	EXPECT_EQ(r->bank.gets, 1u);
	rig_close(r);
}

TEST(cache, of_two_blocks_of_one_size_the_lower_is_taken)
{
	struct rig *r = rig_open(POLICY_CACHING, GIB, NULL);
	struct cache_block *low = take(r, 12 * MIB), *high = take(r, 12 * MIB);

	cache_release(r->cache, high);
	cache_release(r->cache, low);
	EXPECT_EQ(at(take(r, 11 * MIB)), BASE);
	rig_close(r);
}

TEST(cache, streams_share_nothing)
{
	struct rig *r = rig_open(POLICY_CACHING, GIB, NULL);
	struct cache_block *other = NULL;

	cache_release(r->cache, take(r, 12 * MIB));
	ASSERT_EQ(cache_alloc(r->cache, 12 * MIB - PAD, 7, &other), CACHE_OK);
	EXPECT_EQ(at(other), BASE + STEP);
	rig_close(r);
}

TEST(cache, emptying_gives_back_whole_segments_alone)
{
	struct rig *r = rig_open(POLICY_CACHING, GIB, NULL);
	struct cache_block *half = take(r, 5 * MIB), *whole = take(r, 30 * MIB);

	cache_release(r->cache, take(r, 5 * MIB));
	cache_release(r->cache, whole);
	EXPECT_EQ(cache_empty(r->cache), CACHE_OK);
	EXPECT_EQ(r->bank.gives, 1u);
	EXPECT_EQ(r->bank.given[0], 30 * MIB);
	cache_release(r->cache, half);
	EXPECT_EQ(cache_empty(r->cache), CACHE_OK);
	EXPECT_EQ(r->bank.held, 0u);
	rig_close(r);
}

TEST(cache, what_does_not_fit_empties_the_cache_first)
{
	struct rig *r = rig_open(POLICY_CACHING, 100 * MIB, NULL);

	cache_release(r->cache, take(r, 60 * MIB));
	EXPECT_NOT_NULL(take(r, 80 * MIB));
	EXPECT_EQ(r->bank.given[0], 60 * MIB);
	EXPECT_NULL(take(r, 30 * MIB));
	EXPECT_EQ(r->bank.held, 80 * MIB);
	rig_close(r);
}

/* More than half of 100 MiB is held when the fourth segment is wanted. The first was free for two
 * searches, the second for one: only the first is as old as the average, and it is enough. */
TEST(cache, old_segments_go_beyond_the_threshold)
{
	static const char *const settings[] = { "garbage_collection_threshold=0.5", NULL };
	struct rig *r = rig_open(POLICY_CACHING, 100 * MIB, settings);
	struct cache_block *first = take(r, 20 * MIB), *second = take(r, 20 * MIB);
	struct cache_block *third = take(r, 12 * MIB);

	EXPECT_EQ(r->bank.gives, 0u);
	cache_release(r->cache, first);
	cache_release(r->cache, third);
	take(r, 12 * MIB); /* the third again */
	cache_release(r->cache, second);
	EXPECT_NOT_NULL(take(r, 30 * MIB));
	EXPECT_EQ(r->bank.gives, 1u);
	EXPECT_EQ(r->bank.given_at[0], BASE);
	EXPECT_EQ(r->bank.held, (20 + 12 + 30) * MIB);
	rig_close(r);
}

TEST(cache, nothing_goes_below_the_threshold)
{
	static const char *const settings[] = { "garbage_collection_threshold=0.6", NULL };
	struct rig *r = rig_open(POLICY_CACHING, 100 * MIB, settings);

	cache_release(r->cache, take(r, 30 * MIB));
	cache_release(r->cache, take(r, 60 * MIB)); /* 30 held: not above 60 */
	EXPECT_EQ(r->bank.gives, 0u);
	EXPECT_EQ(r->bank.held, 90 * MIB);
	rig_close(r);
}

TEST(cache, blocks_above_the_limit_are_not_split)
{
	static const char *const settings[] = { "max_split_size_mb=40", NULL };
	struct rig *r = rig_open(POLICY_CACHING, 200 * MIB, settings);

	cache_release(r->cache, take(r, 100 * MIB));
	struct cache_block *small = take(r, 30 * MIB); /* may not have it */
	EXPECT_EQ(at(small), BASE + STEP);
	struct cache_block *large = take(r, 60 * MIB); /* would waste 40 of it: more than 20 */
	EXPECT_EQ(at(large), BASE + 2 * STEP);
	cache_release(r->cache, large);
	EXPECT_EQ(take(r, 90 * MIB)->size, 100 * MIB);
	EXPECT_EQ(r->bank.gets, 3u);
	rig_close(r);
}

TEST(cache, blocks_above_the_limit_go_first_where_memory_is_short)
{
	static const char *const settings[] = { "max_split_size_mb=40", NULL };
	struct rig *r = rig_open(POLICY_CACHING, 200 * MIB, settings);

	cache_release(r->cache, take(r, 100 * MIB));
	cache_release(r->cache, take(r, 30 * MIB));
	EXPECT_NOT_NULL(take(r, 76 * MIB)); /* 24 of the 100 would be wasted */
	EXPECT_EQ(r->bank.gives, 1u);
	EXPECT_EQ(r->bank.given[0], 100 * MIB);
	EXPECT_EQ(r->bank.held, (30 + 76) * MIB);
	rig_close(r);
}

TEST(cache, a_larger_rounding_lets_large_blocks_be_used)
{
	static const char *const settings[] = { "max_split_size_mb=40",
						"max_non_split_rounding_mb=50", NULL };
	struct rig *r = rig_open(POLICY_CACHING, GIB, settings);

	cache_release(r->cache, take(r, 100 * MIB));
	EXPECT_EQ(take(r, 60 * MIB)->size, 100 * MIB);
	rig_close(r);
}

/* Of the space between two powers of two, the next of n equal parts. */
static const struct {
	const char *name, *setting;
	guint64 size, taken;
} divisions[] = {
	{ "quarters", "roundup_power2_divisions=4", 1200 * KIB, 1280 * KIB },
	{ "eighths", "roundup_power2_divisions=8", 1200 * KIB, 1280 * KIB },
	{ "sixteenths", "roundup_power2_divisions=16", 1200 * KIB, 1216 * KIB },
	{ "a_power_stays", "roundup_power2_divisions=4", 2 * MIB, 2 * MIB },
	{ "too_small", "roundup_power2_divisions=4", 2000, 2048 },
	{ "one", "roundup_power2_divisions=1", 1200 * KIB, 1200 * KIB },
	{ "list_below", "roundup_power2_divisions=[256:1,512:2,>:4]", 300 * MIB, 300 * MIB },
	{ "list_at", "roundup_power2_divisions=[256:1,512:2,>:4]", 600 * MIB, 768 * MIB },
	{ "list_beyond", "roundup_power2_divisions=[256:1,512:2,>:4]", 1100 * MIB, 1280 * MIB },
};

TEST_EACH(cache, sizes_are_rounded_to_divisions, divisions, name)
{
	const __typeof__(divisions[0]) *c = param;
	const char *const settings[] = { "dialect=cuda", c->setting, NULL };
	struct rig *r = rig_open(POLICY_CACHING, 64 * GIB, settings);
	struct cache_block *b = take(r, c->size);

	ASSERT_NOT_NULL(b);
	EXPECT_EQ(b->size, c->taken);
	rig_close(r);
}

static const struct {
	const char *name, *setting;
	guint64 size, segment;
	guint giants;
} segments[] = {
	{ "small", NULL, MIB, 2 * MIB, 0 },
	{ "large", NULL, MIB + 512, 20 * MIB, 0 },
	{ "alone", NULL, 10 * MIB, 10 * MIB, 0 },
	{ "odd", NULL, 11 * MIB + 512, 12 * MIB, 0 },
	{ "segment_40", "large_segment_size_mb=40", 5 * MIB, 40 * MIB, 0 },
	{ "segment_40_small", "large_segment_size_mb=40", 4 * KIB, 2 * MIB, 0 },
	{ "segment_40_alone", "large_segment_size_mb=40", 12 * MIB, 12 * MIB, 0 },
	{ "giant", "page_size=1g", 5 * MIB, GIB, 1 },
	{ "two_giants", "page_size=1g", GIB + 512, 2 * GIB, 1 },
	{ "giant_small", "page_size=1g", 4 * KIB, 2 * MIB, 0 },
};

TEST_EACH(cache, a_segment_is_as_large_as_its_first_block_says, segments, name)
{
	const __typeof__(segments[0]) *c = param;
	const char *const settings[] = { c->setting, NULL };
	struct rig *r = rig_open(POLICY_CACHING, 64 * GIB, settings);

	ASSERT_NOT_NULL(take(r, c->size));
	EXPECT_EQ(r->bank.got[0], c->segment);
	EXPECT_EQ(r->bank.giants, c->giants);
	rig_close(r);
}

TEST(cache, expandable_segments_grow_and_shrink_by_steps)
{
	struct rig *r = rig_open(POLICY_EXPANDABLE, GIB, NULL);
	struct cache_block *a = take(r, 3 * MIB), *b = take(r, 18 * MIB);

	EXPECT_EQ(r->bank.mapped, 40 * MIB); /* the second begins in what the first left */
	EXPECT_EQ(r->bank.step, 20 * MIB);
	EXPECT_EQ(at(b) - at(a), 3 * MIB);
	cache_release(r->cache, b);
	EXPECT_EQ(cache_empty(r->cache), CACHE_OK);
	EXPECT_EQ(r->bank.mapped, 20 * MIB);
	cache_release(r->cache, a);
	EXPECT_EQ(cache_empty(r->cache), CACHE_OK);
	EXPECT_EQ(r->bank.mapped, 0u);
	EXPECT_EQ(r->bank.reserves, 1u);
	EXPECT_EQ(r->bank.unreserves, 1u);
	rig_close(r);
}

TEST(cache, giant_steps_of_expandable_segments)
{
	static const char *const settings[] = { "page_size=1g", NULL };
	struct rig *r = rig_open(POLICY_EXPANDABLE, 64 * GIB, settings);

	take(r, 3 * MIB);
	EXPECT_EQ(r->bank.mapped, GIB);
	EXPECT_EQ(r->bank.step, GIB);
	take(r, 512);
	EXPECT_EQ(r->bank.mapped, GIB + 2 * MIB);
	rig_close(r);
}

/* ---- a real history ---- */

/* Segments lie where the card's driver put them. */
struct card {
	struct trace *records;
	guint gets, others; /* segments; of them, of another size than the card's */
};

static enum cache_answer call_as_recorded(gpointer data, const struct npu_trace_record *c,
					  guint64 *out_va, GError **error)
{
	struct card *card = data;
	struct record_item item;

	(void)error;
	if (c->verb != NPU_TRACE_MALLOC)
		return CACHE_OK;
	card->gets++;
	do {
		if (trace_next(card->records, &item, NULL) <= 0)
			return CACHE_NO_MEMORY;
	} while (item.record.verb != NPU_TRACE_SEGMENT_ALLOC || item.number == 0);
	card->others += item.record.size != c->size;
	*out_va = item.record.va;
	return CACHE_OK;
}

static void forget_event(gpointer data, const struct record_item *item)
{
	(void)data;
	(void)item;
}

static void step(struct cache *cache, GHashTable *blocks, const struct npu_trace_record *e)
{
	gpointer key = GSIZE_TO_POINTER(e->va);
	struct cache_block *b = NULL;

	if (e->verb == NPU_TRACE_ALLOC &&
	    cache_alloc(cache, e->size, (gint64)e->stream, &b) == CACHE_OK)
		g_hash_table_insert(blocks, key, b);
	if (e->verb == NPU_TRACE_FREE && (b = g_hash_table_lookup(blocks, key)) != NULL) {
		g_hash_table_remove(blocks, key);
		cache_release(cache, b);
	}
}

/* Of free blocks of one size the lowest is taken: where segments lie decides what is left over.
 * With the card's addresses the segments of this file are the card's, one after another; with
 * others there may be one more. */
TEST(cache, with_the_addresses_of_the_card_its_segments_follow)
{
	const char *folder = g_getenv("NPUSIM_TEST_DATA");
	g_autofree char *path =
		g_build_filename(folder ? folder : "", "torch_h100/train-default.pkl.gz", NULL);

	if (!g_file_test(path, G_FILE_TEST_EXISTS))
		SKIP("no %s", path);
	struct trace *reader = trace_open(path, NULL);
	ASSERT_NOT_NULL(reader);
	struct rig *r =
		rig_open(POLICY_CACHING, 80 * GIB, (const char *const[]){ "dialect=cuda", NULL });
	const struct trace_device *device = g_ptr_array_index(reader->devices, 0);
	struct record_item item;
	struct card card = { .records = trace_open(path, NULL) };
	struct filter memory = {
		.trace = &first_device,
		.out = { .call = call_as_recorded,
			 .event = forget_event,
			 .data = &card,
			 .total = 80 * GIB },
	};
	struct cache *cache = cache_new(&r->options, &memory);
	g_autoptr(GHashTable) blocks = g_hash_table_new(NULL, NULL);

	while (trace_next(reader, &item, NULL) > 0) {
		if (item.number > 0)
			step(cache, blocks, &item.record);
	}
	EXPECT_EQ(card.others, 0u);
	EXPECT_EQ(card.gets, device->counts[NPU_TRACE_SEGMENT_ALLOC]);
	cache_free(cache);
	rig_close(r);
	trace_free(card.records);
	trace_free(reader);
}

/* ---- what is said of a wrong value ---- */

static const struct {
	const char *name, *setting, *says;
} wrong[] = {
	{ "split_low", "max_split_size_mb=20", "max_split_size_mb=20: a whole number from 21 to" },
	{ "split_text", "max_split_size_mb=big", "max_split_size_mb=big: a whole number" },
	{ "threshold_one", "garbage_collection_threshold=1",
	  "garbage_collection_threshold=1: a number above 0 and below 1" },
	{ "threshold_zero", "garbage_collection_threshold=0",
	  "garbage_collection_threshold=0: a number above 0 and below 1" },
	{ "fraction", "per_process_memory_fraction=1.5", "1.5: a number above 0 and up to 1" },
	{ "divisions", "roundup_power2_divisions=3", "=3: a power of two" },
	{ "divisions_list", "roundup_power2_divisions=[512:2,256:1]", "rising powers of two" },
	{ "segment_low", "large_segment_size_mb=18", "=18: a whole number from 20 to 512" },
	{ "segment_odd", "large_segment_size_mb=21", "=21: a multiple of the page, 2 MiB" },
	{ "rounding", "max_non_split_rounding_mb=19", "=19: a whole number from 20 to" },
	{ "page", "page_size=4k", "page_size=4k: known are 2m and 1g" },
	{ "align", "base_addr_aligned_kb=17", "=17: a whole number from 0 to 16" },
	{ "key", "max_split=1", "there is no key max_split; known are base_addr_aligned_kb" },
	{ "shape", "max_split_size_mb", "KEY=VALUE is wanted" },
};

TEST_EACH(cache, wrong_values_are_named_with_their_limits, wrong, name)
{
	const __typeof__(wrong[0]) *c = param;
	struct policy_options options;
	GError *error = NULL;

	policy_options_init(&options);
	EXPECT_FALSE(policy_options_set(&options, c->setting, &error));
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, c->says);
	EXPECT_CONTAINS(error->message, "--set ");
	g_clear_error(&error);
	policy_options_clear(&options);
}
