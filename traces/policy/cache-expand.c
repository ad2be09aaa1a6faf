/* SPDX-License-Identifier: Apache-2.0
 *
 * Expandable segments of the caching allocator: address ranges that are mapped step by step, at
 * the lowest address with enough room, and unmapped where whole steps are unused.
 */
#include "cache-private.h"

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

enum cache_answer cache_shrink(struct cache *cache, struct cache_block *b)
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
