/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands blocks out of the cache: rounds sizes, finds the best fit, splits and merges. Its memory is
 * classic segments, or expandable ones: address ranges that are mapped step by step, at the lowest
 * address with enough room, and unmapped where whole steps are unused. Given back is everything
 * unused, what is old, or what is too large to be split.
 */
#include "policy.h"

#define BLOCK_MIN   G_GUINT64_CONSTANT(512) /* sizes are multiples of it */
#define SMALL_MAX   MIB                     /* the largest block of the small pool */
#define SMALL_BYTES (2 * MIB)               /* a segment of the small pool */
#define ALONE_MIN   (10 * MIB)              /* from here on a block gets a segment of its size */
#define ROUND_BYTES (2 * MIB)
#define PAD_NPU     32 /* bytes that torch_npu adds to each request */
#define ALIGN_NPU   (16 * KIB)

/* A reservation that grows and shrinks by steps. */
struct stretch {
	guint64 address, size, step;
	guint32 number;
	guint32 handles; /* what is mapped has this number and the step's */
};
struct pool {
	GTree *free;     /* struct cache_block: by stream, size, address */
	GTree *unmapped; /* the same: by stream, address */
	gboolean small;
	guint64 searches; /* so far: a block's age is counted in them */
};
enum { SMALL, LARGE };
struct cache {
	const struct policy_options *options;
	struct filter *memory;
	struct pool pools[2]; /* SMALL, LARGE */
	GHashTable *blocks;   /* every struct cache_block, a set: it owns them */
	GPtrArray *stretches; /* of struct stretch: it owns them */
	guint64 held, allowed;
	guint32 areas; /* numbers given out */
};
static inline gboolean is_split(const struct cache_block *b)
{
	return b->prev != NULL || b->next != NULL;
}

static gint by_place(gconstpointer a, gconstpointer b)
{
	const struct cache_block *x = a, *y = b;

	return x->stream != y->stream ? by_address(&x->stream, &y->stream) : by_address(x, y);
}

static gint by_size(gconstpointer a, gconstpointer b)
{
	const struct cache_block *x = a, *y = b;

	return x->stream == y->stream && x->size != y->size ? by_address(&x->size, &y->size)
							    : by_place(a, b);
}

static struct cache_block *keep(struct cache *cache, const struct cache_block *block)
{
	struct cache_block *b = g_memdup2(block, sizeof *block);

	g_hash_table_add(cache->blocks, b);
	return b;
}

/* Cuts `b`, which is in no pool, after `size` bytes; what is behind them, in no pool either. */
static struct cache_block *cut(struct cache *cache, struct cache_block *b, guint64 size)
{
	struct cache_block *rest = keep(cache, b);

	rest->address += size;
	rest->size -= size;
	rest->prev = b;
	if (rest->next)
		rest->next->prev = rest;
	b->next = rest;
	b->size = size;
	return rest;
}

static void pool_insert(struct cache_block *block)
{
	struct pool *pool = block->pool;

	block->born = pool->searches;
	g_tree_insert(block->mapped ? pool->free : pool->unmapped, block, block);
}

static void pool_remove(struct cache_block *block)
{
	g_tree_remove(block->mapped ? block->pool->free : block->pool->unmapped, block);
}

/* Unites `block` with a free neighbour of its kind, which goes. */
static void merge(struct cache *cache, struct cache_block *block, struct cache_block *neighbour)
{
	if (neighbour == NULL || neighbour->taken || neighbour->mapped != block->mapped)
		return;
	pool_remove(neighbour);
	if (block->prev == neighbour) {
		block->address = neighbour->address;
		block->prev = neighbour->prev;
		if (block->prev)
			block->prev->next = block;
	} else {
		block->next = neighbour->next;
		if (block->next)
			block->next->prev = block;
	}
	block->size += neighbour->size;
	g_hash_table_remove(cache->blocks, neighbour);
}

/* Makes `block`, which is in no pool, free, one with free neighbours of its kind. */
static void put_back(struct cache *cache, struct cache_block *block)
{
	merge(cache, block, block->prev);
	merge(cache, block, block->next);
	pool_insert(block);
}

static guint64 round_size(const struct policy_options *options, guint64 size)
{
	guint64 padded = size + (options->cuda ? 0 : PAD_NPU);
	guint at = 0;

	if (padded < BLOCK_MIN)
		return BLOCK_MIN;
	while (at + 1 < POLICY_DIVISIONS && padded >> (21 + at) != 0)
		at++;
	guint64 divisions = options->divisions[at];
	if (divisions <= 1 || padded <= BLOCK_MIN * divisions)
		return round_up(padded, BLOCK_MIN);
	/* the space between two powers of two, in equal parts */
	guint64 power = G_GUINT64_CONSTANT(1) << (g_bit_storage(padded) - 1);
	guint64 part = power >> (g_bit_storage(divisions) - 1);
	return part == 0 ? power << 1 : round_up(padded, part);
}

static enum cache_answer new_stretch(struct cache *cache, const struct cache_block *want,
				     struct cache_block **out)
{
	struct stretch stretch = { .step = want->pool->small ? SMALL_BYTES
					   : cache->options->page_1g
						   ? GIB
						   : cache->options->large_segment,
				   .number = ++cache->areas };
	guint64 total = cache->memory->out.total + cache->memory->out.total / 8;
	stretch.size = round_up(total, stretch.step);
	enum cache_answer answer =
		filter_call(cache->memory,
			    POLICY_CALL(RESERVE, .name = POLICY_NAME('r', stretch.number),
					.size = stretch.size, .flags = 1),
			    &stretch.address);
	if (answer != CACHE_OK)
		return answer;
	stretch.handles = cache->memory->handles + 1;
	cache->memory->handles += (guint32)(stretch.size / stretch.step);
	struct stretch *kept = g_memdup2(&stretch, sizeof stretch);
	g_ptr_array_add(cache->stretches, kept);
	*out = keep(cache, &(struct cache_block){ .address = kept->address,
						  .size = kept->size,
						  .stream = want->stream,
						  .pool = want->pool,
						  .stretch = kept });
	pool_insert(*out);
	return CACHE_OK;
}

/* The first block from which on free and unmapped ones have room together. */
static enum cache_answer find_place(struct cache *cache, const struct cache_block *want,
				    struct cache_block **out)
{
	GTreeNode *node = g_tree_lower_bound(want->pool->unmapped, want);

	for (; node; node = g_tree_node_next(node)) {
		struct cache_block *b = g_tree_node_value(node);
		guint64 bytes = 0;
		if (b->stream != want->stream)
			break;
		*out = b->prev && !b->prev->taken ? b->prev : b;
		for (b = *out; b && !b->taken && bytes < want->size; b = b->next)
			bytes += b->size;
		if (bytes >= want->size)
			return CACHE_OK;
	}
	return new_stretch(cache, want, out);
}

/* Makes what backs `size` bytes of the stretch, and maps it: as torch_npu does, all handles are
 * made first. All of them or none. */
static enum cache_answer map_steps(struct filter *f, struct stretch *s, guint64 offset,
				   guint64 size)
{
	guint32 handles = s->handles + (guint32)(offset / s->step);
	guint32 n = (guint32)(size / s->step), made = 0;
	enum cache_answer answer = CACHE_OK;

	for (; made < n && answer == CACHE_OK; made += answer == CACHE_OK)
		answer = filter_call(f,
				     POLICY_CALL(CREATE, .name = POLICY_NAME('h', handles + made),
						 .size = s->step,
						 .page_lg2 = s->step >= GIB ? 30 : 21),
				     NULL);
	for (guint32 i = 0; answer != CACHE_OK && i < made; i++)
		filter_release(f, handles + i);
	for (guint32 i = 0; answer == CACHE_OK && i < n; i++, offset += s->step)
		answer = filter_call(
			f,
			POLICY_CALL(MAP, .handle = POLICY_NAME('h', handles + i),
				    .name = POLICY_NAME('r', s->number, .offset = offset),
				    .size = s->step),
			NULL);
	if (answer == CACHE_OK)
		filter_segments(f, NPU_TRACE_SEGMENT_MAP, size, size);
	return answer;
}

/* Maps the first `size` bytes of an unmapped block, in whole steps: they become a free block, one
 * with what is free beside it. */
static enum cache_answer map_block(struct cache *cache, struct cache_block *b, guint64 size)
{
	guint64 bytes = round_up(size, b->stretch->step);
	enum cache_answer answer =
		map_steps(cache->memory, b->stretch, b->address - b->stretch->address, bytes);

	if (answer != CACHE_OK)
		return answer;
	cache->held += bytes;
	pool_remove(b);
	if (bytes < b->size)
		pool_insert(cut(cache, b, bytes));
	b->mapped = TRUE;
	put_back(cache, b);
	return CACHE_OK;
}

/* A free block of want->size, mapped for it; out of its pool. */
static enum cache_answer expand(struct cache *cache, const struct cache_block *want,
				struct cache_block **out)
{
	struct cache_block *b = NULL;
	enum cache_answer answer = find_place(cache, want, &b);

	if (answer == CACHE_OK && !b->mapped)
		answer = map_block(cache, b, MIN(b->size, want->size));
	while (answer == CACHE_OK && b->size < want->size) {
		struct cache_block *next = b->next;
		answer = map_block(cache, next, MIN(want->size - b->size, next->size));
		b = next;
	}
	if (answer != CACHE_OK)
		return answer;
	pool_remove(b);
	*out = b;
	return CACHE_OK;
}

/* Unmaps the pages that lie in the free block as a whole; ends its stretch if nothing is left. */
static enum cache_answer shrink(struct cache *cache, struct cache_block *b)
{
	struct stretch *s = b->stretch;
	guint64 offset = b->address - s->address, end = (offset + b->size) / s->step * s->step;
	guint64 start = round_up(offset, s->step);
	enum cache_answer answer = CACHE_OK;

	if (start >= end)
		return CACHE_OK;
	for (guint64 at = start; at < end && answer == CACHE_OK; at += s->step) {
		struct npu_trace_name name = POLICY_NAME('r', s->number, .offset = at);
		answer = filter_call(cache->memory,
				     POLICY_CALL(UNMAP, .name = name, .size = s->step), NULL)
				 ?: filter_release(cache->memory,
						   s->handles + (guint32)(at / s->step));
	}
	filter_segments(cache->memory, NPU_TRACE_SEGMENT_UNMAP, end - start, end - start);
	if (answer != CACHE_OK)
		return answer;
	cache->held -= end - start;
	pool_remove(b);
	/* what of the block lies beside its whole steps stays free */
	if (start > offset) {
		struct cache_block *before = b;
		b = cut(cache, before, start - offset);
		pool_insert(before);
	}
	if (b->size > end - start)
		pool_insert(cut(cache, b, end - start));
	b->mapped = FALSE;
	put_back(cache, b);
	if (is_split(b))
		return CACHE_OK;
	answer = filter_call(cache->memory,
			     POLICY_CALL(UNRESERVE, .name = POLICY_NAME('r', s->number)), NULL);
	pool_remove(b);
	g_hash_table_remove(cache->blocks, b);
	g_ptr_array_remove_fast(cache->stretches, s);
	return answer;
}

static enum cache_answer give_segment(struct cache *cache, struct cache_block *b)
{
	enum cache_answer answer =
		filter_call(cache->memory, POLICY_CALL(MFREE, .va = b->address), NULL);

	filter_segments(cache->memory, NPU_TRACE_SEGMENT_FREE, b->size, b->size);
	cache->held -= b->size;
	pool_remove(b);
	g_hash_table_remove(cache->blocks, b);
	return answer;
}

/* Free blocks of a pool that could be given back: whole segments, or what lies in stretches too. */
static GPtrArray *unused(const struct pool *pool, gboolean of_stretches)
{
	GPtrArray *blocks = g_ptr_array_new();

	for (GTreeNode *n = g_tree_node_first(pool->free); n; n = g_tree_node_next(n)) {
		struct cache_block *b = g_tree_node_value(n);
		if (b->stretch ? of_stretches : !is_split(b))
			g_ptr_array_add(blocks, b);
	}
	return blocks;
}

static enum cache_answer empty_pool(struct cache *cache, const struct pool *pool)
{
	g_autoptr(GPtrArray) blocks = unused(pool, TRUE);
	enum cache_answer answer = CACHE_OK;

	for (guint i = 0; i < blocks->len && answer == CACHE_OK; i++) {
		struct cache_block *b = g_ptr_array_index(blocks, i);
		answer = b->stretch ? shrink(cache, b) : give_segment(cache, b);
	}
	return answer;
}

enum cache_answer cache_empty(struct cache *cache)
{
	return empty_pool(cache, &cache->pools[LARGE]) ?: empty_pool(cache, &cache->pools[SMALL]);
}

static double age_of(const struct cache_block *b)
{
	return (double)(b->pool->searches - b->born);
}

/* Gives back old segments of the large pool while more than a share of the device is held: in each
 * round those that are at least as old as the average. */
static enum cache_answer collect(struct cache *cache)
{
	double threshold = cache->options->gc_threshold, sum = 0;
	guint64 limit = (guint64)(threshold * (double)cache->allowed), before = 0;

	if (threshold <= 0 || cache->held <= limit)
		return CACHE_OK;
	g_autoptr(GPtrArray) whole = unused(&cache->pools[LARGE], FALSE);
	for (guint i = 0; i < whole->len; i++)
		sum += age_of(g_ptr_array_index(whole, i));
	while (cache->held > limit && cache->held != before && whole->len > 0) {
		double average = sum / whole->len;
		before = cache->held;
		for (guint i = 0; i < whole->len;) {
			struct cache_block *b = g_ptr_array_index(whole, i);
			if (age_of(b) < average) {
				i++;
				continue;
			}
			sum -= age_of(b);
			g_ptr_array_remove_index(whole, i);
			enum cache_answer answer = give_segment(cache, b);
			if (answer != CACHE_OK)
				return answer;
		}
	}
	return CACHE_OK;
}

/* Gives back as many blocks that may not be split as the allocation needs, the largest first.
 * NO_MEMORY: there are not enough. */
static enum cache_answer give_oversize(struct cache *cache, const struct cache_block *want)
{
	guint64 limit = cache->options->max_split, done = 0;
	struct cache_block key = { .size = MAX(want->size, limit), .stream = want->stream }, *b;
	enum cache_answer answer = CACHE_OK;

	if (limit == G_MAXUINT64)
		return CACHE_NO_MEMORY;
	GTreeNode *node = g_tree_lower_bound(want->pool->free, &key);
	b = node ? g_tree_node_value(node) : NULL;
	if (b && b->stream == want->stream)
		return is_split(b) ? CACHE_NO_MEMORY : give_segment(cache, b);
	while (answer == CACHE_OK && done < key.size) {
		node = g_tree_lower_bound(want->pool->free, &key);
		node = node ? g_tree_node_previous(node) : g_tree_node_last(want->pool->free);
		b = node ? g_tree_node_value(node) : NULL;
		if (b == NULL || b->stream != want->stream || b->size < limit || is_split(b))
			return CACHE_NO_MEMORY;
		done += b->size;
		answer = give_segment(cache, b);
	}
	return answer;
}

/* What a block of a stretch could grow to. */
static guint64 growing_size(const struct cache_block *b)
{
	return b->size + (b->next && !b->next->mapped ? b->next->size : 0);
}

/* Takes the smallest free block that is large enough out of its pool. NULL: there is none. */
static struct cache_block *take_free(struct cache *cache, const struct cache_block *want)
{
	const struct policy_options *options = cache->options;
	struct cache_block *next;

	want->pool->searches++;
	GTreeNode *node = g_tree_lower_bound(want->pool->free, want);
	struct cache_block *b = node ? g_tree_node_value(node) : NULL;
	if (b == NULL || b->stream != want->stream)
		return NULL;
	while (b->stretch && (node = g_tree_node_next(node))) {
		next = g_tree_node_value(node);
		if (next->stream != want->stream || growing_size(next) >= growing_size(b))
			break;
		b = next;
	}
	if (want->size < options->max_split ? b->size >= options->max_split
					    : b->size >= want->size + options->non_split_rounding)
		return NULL;
	pool_remove(b);
	return b;
}

static enum cache_answer get_block(struct cache *cache, const struct cache_block *want,
				   struct cache_block **out)
{
	const struct policy_options *options = cache->options;
	gboolean giant = options->page_1g && !want->pool->small;
	guint64 bytes = want->pool->small        ? SMALL_BYTES
			: giant                  ? round_up(want->size, GIB)
			: want->size < ALONE_MIN ? options->large_segment
						 : round_up(want->size, ROUND_BYTES);
	struct cache_block got = {
		.size = bytes, .stream = want->stream, .pool = want->pool, .mapped = TRUE
	};

	if (cache->held + bytes > cache->allowed)
		return CACHE_NO_MEMORY;
	if (options->kind == POLICY_EXPANDABLE)
		return expand(cache, want, out);
	enum cache_answer answer = filter_call(
		cache->memory, POLICY_CALL(MALLOC, .size = bytes, .page_lg2 = giant ? 30 : 21),
		&got.address);
	if (answer != CACHE_OK)
		return answer;
	filter_segments(cache->memory, NPU_TRACE_SEGMENT_ALLOC, bytes, bytes);
	cache->held += bytes;
	*out = keep(cache, &got);
	return CACHE_OK;
}

/* New memory, and where the device has none, first what is unused. */
static enum cache_answer get_or_release(struct cache *cache, const struct cache_block *want,
					struct cache_block **out)
{
	enum cache_answer answer = collect(cache) ?: get_block(cache, want, out);

	if (answer == CACHE_NO_MEMORY)
		answer = give_oversize(cache, want) ?: get_block(cache, want, out);
	return answer == CACHE_NO_MEMORY ? cache_empty(cache) ?: get_block(cache, want, out)
					 : answer;
}

/* In a stretch, large blocks begin at a multiple of options->align if they can: what lies before is
 * free. */
static struct cache_block *align_block(struct cache *cache, struct cache_block *b, guint64 size)
{
	const struct policy_options *o = cache->options;
	gboolean large = o->kind == POLICY_EXPANDABLE && size >= ROUND_BYTES;
	guint64 align = o->align != POLICY_ALIGN_DEFAULT ? o->align : o->cuda ? 0 : ALIGN_NPU;
	guint64 before = large ? round_up(b->address, MAX(align, 1)) - b->address : 0;

	if (before == 0 || before + size > b->size)
		return b;
	struct cache_block *rest = cut(cache, b, before);
	pool_insert(b);
	return rest;
}

static gboolean should_split(const struct cache *cache, const struct cache_block *b, guint64 size)
{
	guint64 rest = b->size - size;

	if (b->pool->small || cache->options->kind == POLICY_EXPANDABLE)
		return rest >= BLOCK_MIN;
	return size < cache->options->max_split && rest > SMALL_MAX;
}

enum cache_answer cache_alloc(struct cache *cache, guint64 size, gint64 stream,
			      struct cache_block **out)
{
	if (size > G_MAXINT64)
		return CACHE_NO_MEMORY;
	struct cache_block want = { .size = round_size(cache->options, size), .stream = stream };
	struct cache_block *b;

	want.pool = &cache->pools[want.size <= SMALL_MAX ? SMALL : LARGE];
	b = take_free(cache, &want);
	if (b == NULL) {
		enum cache_answer answer = get_or_release(cache, &want, &b);
		if (answer != CACHE_OK)
			return answer;
	}
	b = align_block(cache, b, want.size);
	if (should_split(cache, b, want.size))
		pool_insert(cut(cache, b, want.size));
	b->taken = TRUE;
	*out = b;
	return CACHE_OK;
}

void cache_release(struct cache *cache, struct cache_block *block)
{
	block->taken = FALSE;
	put_back(cache, block);
}

struct cache *cache_new(const struct policy_options *options, struct filter *memory)
{
	struct cache *cache = g_new0(struct cache, 1);

	cache->options = options;
	cache->memory = memory;
	cache->allowed = (guint64)(options->memory_fraction * (double)memory->out.total);
	cache->blocks = g_hash_table_new_full(NULL, NULL, g_free, NULL);
	cache->stretches = g_ptr_array_new_with_free_func(g_free);
	for (guint p = 0; p < G_N_ELEMENTS(cache->pools); p++)
		cache->pools[p] = (struct pool){ .small = p == SMALL,
						 .free = g_tree_new(by_size),
						 .unmapped = g_tree_new(by_place) };
	return cache;
}

void cache_free(struct cache *cache)
{
	for (guint p = 0; p < G_N_ELEMENTS(cache->pools); p++) {
		g_tree_destroy(cache->pools[p].free);
		g_tree_destroy(cache->pools[p].unmapped);
	}
	g_hash_table_unref(cache->blocks);
	g_ptr_array_unref(cache->stretches);
	g_free(cache);
}
