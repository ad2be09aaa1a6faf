/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what the cache gives back, and when: everything unused, what is old, and what is too
 * large to be split.
 */
#include "cache-private.h"

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
		answer = b->stretch ? cache_shrink(cache, b) : give_segment(cache, b);
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
