/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator of PyTorch and torch_npu, classic and with expandable segments: which
 * block is handed out, what is split and merged, and when memory is obtained and released. It
 * places and tracks blocks; the memory itself is provided by its owner.
 */
#ifndef NPUSIM_TRACES_CACHE_H
#define NPUSIM_TRACES_CACHE_H

#include "policy.h"

/* Joined by `?:`, answers are heard up to the first that is not CACHE_OK. */
enum cache_answer {
	CACHE_OK,        /* 0 */
	CACHE_NO_MEMORY, /* the device has none left: an answer */
	CACHE_FAILED     /* anything else: the end */
};

/* Where the cache gets its memory. `step`: bytes of one physical handle; a range is a multiple of
 * it. `map` maps all of a range or nothing. */
struct cache_memory {
	enum cache_answer (*get)(gpointer data, guint64 size, gboolean giant, guint64 *address);
	enum cache_answer (*give)(gpointer data, guint64 address, guint64 size);
	enum cache_answer (*reserve)(gpointer data, guint64 size, guint64 *address);
	enum cache_answer (*unreserve)(gpointer data, guint64 address);
	enum cache_answer (*map)(gpointer data, guint64 address, guint64 size, guint64 step);
	enum cache_answer (*unmap)(gpointer data, guint64 address, guint64 size, guint64 step);
	gpointer data;
	guint64 total; /* bytes of the device that programs can get */
};

struct cache;
struct cache_block;

/* `options` are borrowed, `memory` is copied. */
struct cache *cache_new(const struct policy_options *options, const struct cache_memory *memory);
/* Forgets everything; gives nothing back. */
void cache_free(struct cache *cache);

enum cache_answer cache_alloc(struct cache *cache, guint64 size, gint64 stream,
			      struct cache_block **out);
void cache_release(struct cache *cache, struct cache_block *block);
/* Gives back what no block needs: whole segments, and the unused pages of expandable ones. */
enum cache_answer cache_empty(struct cache *cache);

guint64 cache_block_address(const struct cache_block *block);
/* What it takes, rounding and all. */
guint64 cache_block_size(const struct cache_block *block);

#endif
