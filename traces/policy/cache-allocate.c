/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands blocks out of the cache: rounds sizes, finds the best fit, splits and merges. Where memory
 * comes from and goes to is in cache-memory.c.
 */
#include "cache-private.h"

/* ---- orders ---- */

static gint compare(guint64 a, guint64 b)
{
	return a < b ? -1 : a > b;
}

static gint by_address(gconstpointer a, gconstpointer b, gpointer unused)
{
	const struct cache_block *x = a, *y = b;

	(void)unused;
	if (x->stream != y->stream)
		return compare((guint64)x->stream, (guint64)y->stream);
	return compare(x->address, y->address);
}

static gint by_size(gconstpointer a, gconstpointer b, gpointer unused)
{
	const struct cache_block *x = a, *y = b;

	(void)unused;
	if (x->stream != y->stream)
		return compare((guint64)x->stream, (guint64)y->stream);
	return x->size != y->size ? compare(x->size, y->size) : compare(x->address, y->address);
}

/* ---- blocks ---- */

struct cache_block *cache_block_new(struct cache *cache, const struct cache_block *like,
				    guint64 address, guint64 size)
{
	struct cache_block *b = g_slice_new(struct cache_block);

	*b = (struct cache_block){ .address = address,
				   .size = size,
				   .stream = like->stream,
				   .pool = like->pool,
				   .stretch = like->stretch,
				   .mapped = TRUE };
	g_hash_table_add(cache->blocks, b);
	return b;
}

void cache_block_drop(struct cache *cache, struct cache_block *block)
{
	g_hash_table_remove(cache->blocks, block);
}

static void free_block(gpointer block)
{
	g_slice_free(struct cache_block, block);
}

struct cache_block *cache_cut(struct cache *cache, struct cache_block *b, guint64 size)
{
	struct cache_block *rest = cache_block_new(cache, b, b->address + size, b->size - size);

	rest->mapped = b->mapped;
	rest->prev = b;
	rest->next = b->next;
	if (rest->next)
		rest->next->prev = rest;
	b->next = rest;
	b->size = size;
	return rest;
}

void cache_pool_insert(struct cache_block *block)
{
	struct cache_pool *pool = block->pool;

	block->born = pool->searches;
	g_tree_insert(block->mapped ? pool->free : pool->unmapped, block, block);
}

void cache_pool_remove(struct cache_block *block)
{
	g_tree_remove(block->mapped ? block->pool->free : block->pool->unmapped, block);
}

/* Unites `block` with a free neighbour of its kind, which goes. */
static void merge(struct cache *cache, struct cache_block *block, struct cache_block *neighbour)
{
	if (neighbour == NULL || neighbour->taken || neighbour->mapped != block->mapped)
		return;
	cache_pool_remove(neighbour);
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
	cache_block_drop(cache, neighbour);
}

void cache_put_back(struct cache *cache, struct cache_block *block)
{
	merge(cache, block, block->prev);
	merge(cache, block, block->next);
	cache_pool_insert(block);
}

guint64 cache_block_address(const struct cache_block *block)
{
	return block->address;
}

guint64 cache_block_size(const struct cache_block *block)
{
	return block->size;
}

guint64 cache_held(const struct cache *cache)
{
	return cache->held;
}

/* ---- sizes ---- */

static guint64 divisions_of(const struct policy_options *options, guint64 size)
{
	guint at = 0;

	while (at + 1 < POLICY_DIVISIONS && size >> (21 + at) != 0)
		at++;
	return options->divisions[at];
}

/* Up to the next of `divisions` equal parts of the space between two powers of two. */
static guint64 round_to_division(guint64 size, guint64 divisions)
{
	guint64 power = G_GUINT64_CONSTANT(1) << (g_bit_storage(size) - 1);
	guint64 part = power >> (g_bit_storage(divisions) - 1);

	return part == 0 ? power << 1 : round_up(size, part);
}

static guint64 round_size(const struct policy_options *options, guint64 size)
{
	guint64 padded = size + options->pad;

	if (padded < CACHE_BLOCK_MIN)
		return CACHE_BLOCK_MIN;
	guint64 divisions = divisions_of(options, padded);
	if (divisions > 1 && padded > CACHE_BLOCK_MIN * divisions)
		return round_to_division(padded, divisions);
	return round_up(padded, CACHE_BLOCK_MIN);
}

static guint64 segment_size(const struct policy_options *options, guint64 size)
{
	if (size <= CACHE_SMALL_MAX)
		return CACHE_SMALL_BYTES;
	if (options->page_1g)
		return round_up(size, GIB);
	return size < CACHE_ALONE_MIN ? options->large_segment : round_up(size, CACHE_ROUND_BYTES);
}

/* ---- the best fit ---- */

/* What a block of a stretch could grow to. */
static guint64 growing_size(const struct cache_block *b)
{
	return b->size + (b->next && !b->next->mapped ? b->next->size : 0);
}

static struct cache_block *next_free(GTreeNode **node, gint64 stream)
{
	*node = g_tree_node_next(*node);
	struct cache_block *b = *node ? g_tree_node_value(*node) : NULL;
	return b && b->stream == stream ? b : NULL;
}

/* Takes the smallest free block that is large enough out of its pool. NULL: there is none. */
static struct cache_block *take_free(struct cache *cache, const struct cache_want *want)
{
	const struct policy_options *options = cache->options;
	struct cache_block key = { .size = want->size, .stream = want->stream }, *next;

	want->pool->searches++;
	GTreeNode *node = g_tree_lower_bound(want->pool->free, &key);
	struct cache_block *b = node ? g_tree_node_value(node) : NULL;
	if (b == NULL || b->stream != want->stream)
		return NULL;
	while (b->stretch && (next = next_free(&node, want->stream)) &&
	       growing_size(next) < growing_size(b))
		b = next;
	if (want->size < options->max_split ? b->size >= options->max_split
					    : b->size >= want->size + options->non_split_rounding)
		return NULL;
	cache_pool_remove(b);
	return b;
}

/* ---- allocation ---- */

static enum cache_answer get_segment(struct cache *cache, const struct cache_want *want,
				     struct cache_block **out)
{
	struct cache_block like = { .stream = want->stream, .pool = want->pool };
	gboolean giant = cache->options->page_1g && !want->pool->small;
	guint64 address = 0;

	enum cache_answer answer =
		cache->memory.get(cache->memory.data, want->bytes, giant, &address);
	if (answer != CACHE_OK)
		return answer;
	cache->held += want->bytes;
	*out = cache_block_new(cache, &like, address, want->bytes);
	return CACHE_OK;
}

static enum cache_answer get_block(struct cache *cache, const struct cache_want *want,
				   struct cache_block **out)
{
	if (cache->held + want->bytes > cache->allowed)
		return CACHE_NO_MEMORY;
	return cache->options->kind == POLICY_EXPANDABLE ? cache_expand(cache, want, out)
							 : get_segment(cache, want, out);
}

/* New memory, and where the device has none, first what is unused. */
static enum cache_answer get_or_release(struct cache *cache, const struct cache_want *want,
					struct cache_block **out)
{
	enum cache_answer answer = cache_collect(cache);

	if (answer == CACHE_OK)
		answer = get_block(cache, want, out);
	if (answer != CACHE_NO_MEMORY)
		return answer;
	answer = cache_give_oversize(cache, want);
	if (answer == CACHE_OK)
		answer = get_block(cache, want, out);
	if (answer != CACHE_NO_MEMORY)
		return answer;
	answer = cache_empty(cache);
	return answer == CACHE_OK ? get_block(cache, want, out) : answer;
}

/* In a stretch, large blocks begin at a multiple of options->align if they can: what lies before is
 * free. */
static struct cache_block *align_block(struct cache *cache, struct cache_block *b, guint64 size)
{
	guint64 align = cache->options->align;

	if (cache->options->kind != POLICY_EXPANDABLE || size < CACHE_ROUND_BYTES || align == 0 ||
	    b->address % align == 0)
		return b;
	guint64 before = align - b->address % align;
	if (before + size > b->size)
		return b;
	struct cache_block *rest = cache_cut(cache, b, before);
	cache_pool_insert(b);
	return rest;
}

static gboolean should_split(const struct cache *cache, const struct cache_block *b, guint64 size)
{
	guint64 rest = b->size - size;

	if (b->pool->small || cache->options->kind == POLICY_EXPANDABLE)
		return rest >= CACHE_BLOCK_MIN;
	return size < cache->options->max_split && rest > CACHE_SMALL_MAX;
}

enum cache_answer cache_alloc(struct cache *cache, guint64 size, gint64 stream,
			      struct cache_block **out)
{
	if (size > G_MAXINT64)
		return CACHE_NO_MEMORY;
	struct cache_want want = { .size = round_size(cache->options, size), .stream = stream };
	struct cache_block *b;

	want.pool = want.size <= CACHE_SMALL_MAX ? &cache->small : &cache->large;
	want.bytes = segment_size(cache->options, want.size);
	b = take_free(cache, &want);
	if (b == NULL) {
		enum cache_answer answer = get_or_release(cache, &want, &b);
		if (answer != CACHE_OK)
			return answer;
	}
	b = align_block(cache, b, want.size);
	if (should_split(cache, b, want.size))
		cache_pool_insert(cache_cut(cache, b, want.size));
	b->taken = TRUE;
	*out = b;
	return CACHE_OK;
}

void cache_release(struct cache *cache, struct cache_block *block)
{
	block->taken = FALSE;
	cache_put_back(cache, block);
}

/* ---- the cache ---- */

static void open_pool(struct cache_pool *pool, gboolean small)
{
	pool->small = small;
	pool->free = g_tree_new_full(by_size, NULL, NULL, NULL);
	pool->unmapped = g_tree_new_full(by_address, NULL, NULL, NULL);
}

struct cache *cache_new(const struct policy_options *options, const struct cache_memory *memory)
{
	struct cache *cache = g_new0(struct cache, 1);

	cache->options = options;
	cache->memory = *memory;
	cache->allowed = (guint64)(options->memory_fraction * (double)memory->total);
	cache->blocks = g_hash_table_new_full(NULL, NULL, free_block, NULL);
	cache->stretches = g_ptr_array_new_with_free_func(g_free);
	open_pool(&cache->small, TRUE);
	open_pool(&cache->large, FALSE);
	return cache;
}

void cache_free(struct cache *cache)
{
	g_tree_destroy(cache->small.free);
	g_tree_destroy(cache->small.unmapped);
	g_tree_destroy(cache->large.free);
	g_tree_destroy(cache->large.unmapped);
	g_hash_table_unref(cache->blocks);
	g_ptr_array_unref(cache->stretches);
	g_free(cache);
}
