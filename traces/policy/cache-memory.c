/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the cache's memory comes from and goes to: expandable segments, which are address ranges
 * that are mapped step by step, at the lowest address with enough room, and unmapped where whole
 * steps are unused; and what is given back, and when: everything unused, what is old, and what is
 * too large to be split.
 */
#include "cache-private.h"

/* ---- expandable segments ---- */

static enum cache_answer new_stretch(struct cache *cache, const struct cache_want *want,
				     struct cache_block **out)
{
	struct cache_stretch stretch = { .step = want->pool->small ? CACHE_SMALL_BYTES
						 : cache->options->page_1g
							 ? GIB
							 : cache->options->large_segment };
	guint64 total = cache->memory.total + cache->memory.total / 8;

	stretch.size = (total / stretch.step + (total % stretch.step != 0)) * stretch.step;
	enum cache_answer answer =
		cache->memory.reserve(cache->memory.data, stretch.size, &stretch.address);
	if (answer != CACHE_OK)
		return answer;
	struct cache_stretch *kept = g_memdup2(&stretch, sizeof stretch);
	g_ptr_array_add(cache->stretches, kept);
	struct cache_block like = { .stream = want->stream, .pool = want->pool, .stretch = kept };
	*out = cache_block_new(cache, &like, kept->address, kept->size);
	(*out)->mapped = FALSE;
	cache_pool_insert(*out);
	return CACHE_OK;
}

/* Whether the blocks from `b` on, free or unmapped, have `size` bytes together. */
static gboolean has_room(const struct cache_block *b, guint64 size)
{
	guint64 bytes = 0;

	for (; b && !b->taken && bytes < size; b = b->next)
		bytes += b->size;
	return bytes >= size;
}

static enum cache_answer find_place(struct cache *cache, const struct cache_want *want,
				    struct cache_block **out)
{
	struct cache_block key = { .stream = want->stream };
	GTreeNode *node = g_tree_lower_bound(want->pool->unmapped, &key);

	for (; node; node = g_tree_node_next(node)) {
		struct cache_block *b = g_tree_node_value(node);
		if (b->stream != want->stream)
			break;
		if (b->prev && !b->prev->taken)
			b = b->prev;
		if (has_room(b, want->size)) {
			*out = b;
			return CACHE_OK;
		}
	}
	return new_stretch(cache, want, out);
}

/* Maps the first `size` bytes of an unmapped block, in whole steps: they become a free block, one
 * with what is free beside it. */
static enum cache_answer map_block(struct cache *cache, struct cache_block *b, guint64 size)
{
	guint64 step = b->stretch->step, bytes = (size / step + (size % step != 0)) * step;
	enum cache_answer answer = cache->memory.map(cache->memory.data, b->address, bytes, step);

	if (answer != CACHE_OK)
		return answer;
	cache->held += bytes;
	cache_pool_remove(b);
	if (bytes < b->size)
		cache_pool_insert(cache_cut(cache, b, bytes));
	b->mapped = TRUE;
	cache_put_back(cache, b);
	return CACHE_OK;
}

enum cache_answer cache_expand(struct cache *cache, const struct cache_want *want,
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
	cache_pool_remove(b);
	*out = b;
	return CACHE_OK;
}

static enum cache_answer end_stretch(struct cache *cache, struct cache_block *b)
{
	struct cache_stretch *stretch = b->stretch;
	enum cache_answer answer = cache->memory.unreserve(cache->memory.data, stretch->address);

	cache_pool_remove(b);
	cache_block_drop(cache, b);
	g_ptr_array_remove_fast(cache->stretches, stretch);
	return answer;
}

/* Unmaps the pages that lie in the free block as a whole, and ends its stretch if nothing is left.
 */
static enum cache_answer shrink(struct cache *cache, struct cache_block *b)
{
	const struct cache_stretch *s = b->stretch;
	guint64 offset = b->address - s->address, end = (offset + b->size) / s->step * s->step;
	guint64 start = (offset / s->step + (offset % s->step != 0)) * s->step;

	if (start >= end)
		return CACHE_OK;
	enum cache_answer answer =
		cache->memory.unmap(cache->memory.data, s->address + start, end - start, s->step);
	if (answer != CACHE_OK)
		return answer;
	cache->held -= end - start;
	cache_pool_remove(b);
	/* what of the block lies beside its whole steps stays free */
	if (start > offset) {
		struct cache_block *before = b;
		b = cache_cut(cache, before, start - offset);
		cache_pool_insert(before);
	}
	if (b->size > end - start)
		cache_pool_insert(cache_cut(cache, b, end - start));
	b->mapped = FALSE;
	cache_put_back(cache, b);
	return cache_is_split(b) ? CACHE_OK : end_stretch(cache, b);
}

/* ---- giving back ---- */

static enum cache_answer give_segment(struct cache *cache, struct cache_block *b)
{
	enum cache_answer answer = cache->memory.give(cache->memory.data, b->address, b->size);

	cache->held -= b->size;
	cache_pool_remove(b);
	cache_block_drop(cache, b);
	return answer;
}

static enum cache_answer empty_pool(struct cache *cache, struct cache_pool *pool)
{
	g_autoptr(GPtrArray) blocks = g_ptr_array_new();
	enum cache_answer answer = CACHE_OK;

	for (GTreeNode *n = g_tree_node_first(pool->free); n; n = g_tree_node_next(n)) {
		struct cache_block *b = g_tree_node_value(n);
		if (b->stretch || !cache_is_split(b))
			g_ptr_array_add(blocks, b);
	}
	for (guint i = 0; i < blocks->len && answer == CACHE_OK; i++) {
		struct cache_block *b = g_ptr_array_index(blocks, i);
		answer = b->stretch ? shrink(cache, b) : give_segment(cache, b);
	}
	return answer;
}

enum cache_answer cache_empty(struct cache *cache)
{
	enum cache_answer answer = empty_pool(cache, &cache->large);

	return answer == CACHE_OK ? empty_pool(cache, &cache->small) : answer;
}

/* ---- by age ---- */

struct ages {
	GPtrArray *blocks; /* whole segments of the large pool */
	double sum;
};

static double age_of(const struct cache_block *b)
{
	return (double)(b->pool->searches - b->born);
}

static void note_ages(struct cache *cache, struct ages *ages)
{
	for (GTreeNode *n = g_tree_node_first(cache->large.free); n; n = g_tree_node_next(n)) {
		struct cache_block *b = g_tree_node_value(n);
		if (b->stretch || cache_is_split(b))
			continue;
		g_ptr_array_add(ages->blocks, b);
		ages->sum += age_of(b);
	}
}

/* One round: those that are at least as old as the average. Returns the bytes given back. */
static guint64 give_old(struct cache *cache, struct ages *ages, enum cache_answer *answer)
{
	double average = ages->sum / ages->blocks->len;
	guint64 bytes = 0;

	for (guint i = 0; i < ages->blocks->len && *answer == CACHE_OK;) {
		struct cache_block *b = g_ptr_array_index(ages->blocks, i);
		if (age_of(b) < average) {
			i++;
			continue;
		}
		bytes += b->size;
		ages->sum -= age_of(b);
		g_ptr_array_remove_index(ages->blocks, i);
		*answer = give_segment(cache, b);
	}
	return bytes;
}

enum cache_answer cache_collect(struct cache *cache)
{
	double threshold = cache->options->gc_threshold;
	guint64 limit = (guint64)(threshold * (double)cache->allowed);
	enum cache_answer answer = CACHE_OK;

	if (threshold <= 0 || cache->held <= limit)
		return CACHE_OK;
	guint64 target = cache->held - limit, done = 0, bytes = 1;
	struct ages ages = { .blocks = g_ptr_array_new() };
	note_ages(cache, &ages);
	while (answer == CACHE_OK && done < target && bytes > 0 && ages.blocks->len > 0) {
		bytes = give_old(cache, &ages, &answer);
		done += bytes;
	}
	g_ptr_array_unref(ages.blocks);
	return answer;
}

/* ---- too large to be split ---- */

/* The last free block of the stream that is below the node; NULL node: the last of all. */
static struct cache_block *block_before(struct cache_pool *pool, GTreeNode *node, gint64 stream)
{
	node = node ? g_tree_node_previous(node) : g_tree_node_last(pool->free);
	struct cache_block *b = node ? g_tree_node_value(node) : NULL;
	return b && b->stream == stream ? b : NULL;
}

enum cache_answer cache_give_oversize(struct cache *cache, const struct cache_want *want)
{
	guint64 limit = cache->options->max_split, done = 0;
	struct cache_block key = { .size = MAX(want->size, limit), .stream = want->stream }, *b;
	enum cache_answer answer = CACHE_OK;

	if (limit == G_MAXUINT64)
		return CACHE_NO_MEMORY;
	GTreeNode *node = g_tree_lower_bound(want->pool->free, &key);
	b = node ? g_tree_node_value(node) : NULL;
	if (b && b->stream == want->stream)
		return cache_is_split(b) ? CACHE_NO_MEMORY : give_segment(cache, b);
	while (answer == CACHE_OK && done < key.size) {
		node = g_tree_lower_bound(want->pool->free, &key);
		b = block_before(want->pool, node, want->stream);
		if (b == NULL || b->size < limit || cache_is_split(b))
			return CACHE_NO_MEMORY;
		done += b->size;
		answer = give_segment(cache, b);
	}
	return answer;
}
