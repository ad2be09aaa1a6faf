/* SPDX-License-Identifier: Apache-2.0
 *
 * The internals of the cache, namely blocks, pools and their orders, which cache-allocate.c
 * and cache-memory.c share.
 */
#ifndef NPUSIM_TRACES_CACHE_PRIVATE_H
#define NPUSIM_TRACES_CACHE_PRIVATE_H

#include "cache.h"
#include "format/units.h"

#define CACHE_BLOCK_MIN   G_GUINT64_CONSTANT(512) /* sizes are multiples of it */
#define CACHE_SMALL_MAX   MIB                     /* the largest block of the small pool */
#define CACHE_SMALL_BYTES (2 * MIB)               /* a segment of the small pool */
#define CACHE_ALONE_MIN   (10 * MIB) /* from here on a block gets a segment of its size */
#define CACHE_ROUND_BYTES (2 * MIB)

/* A reservation that grows and shrinks by steps. */
struct cache_stretch {
	guint64 address, size, step;
};
struct cache_pool {
	GTree *free;     /* struct cache_block: by stream, size, address */
	GTree *unmapped; /* the same: by stream, address */
	gboolean small;
	guint64 searches; /* so far: a block's age is counted in them */
};
/* Blocks of a segment or stretch follow one another without a gap. */
struct cache_block {
	guint64 address, size;
	gint64 stream;
	struct cache_pool *pool;
	struct cache_stretch *stretch; /* NULL: of a classic segment */
	struct cache_block *prev, *next;
	guint64 born; /* pool->searches when it became free */
	gboolean taken, mapped;
};
struct cache {
	const struct policy_options *options;
	struct cache_memory memory;
	struct cache_pool small, large;
	GHashTable *blocks;   /* every struct cache_block, a set: it owns them */
	GPtrArray *stretches; /* of struct cache_stretch: it owns them */
	guint64 held, allowed;
};
/* One allocation that is under way. */
struct cache_want {
	struct cache_pool *pool;
	guint64 size;  /* rounded */
	guint64 bytes; /* of the segment that would be got for it */
	gint64 stream;
};

static inline gboolean cache_is_split(const struct cache_block *b)
{
	return b->prev != NULL || b->next != NULL;
}

struct cache_block *cache_block_new(struct cache *cache, const struct cache_block *like,
				    guint64 address, guint64 size);
void cache_block_drop(struct cache *cache, struct cache_block *block);
/* Cuts `block`, which is in no pool, after `size` bytes; what is behind them, in no pool either. */
struct cache_block *cache_cut(struct cache *cache, struct cache_block *block, guint64 size);
void cache_pool_insert(struct cache_block *block);
void cache_pool_remove(struct cache_block *block);
/* Makes `block`, which is in no pool, free, one with free neighbours of its kind. */
void cache_put_back(struct cache *cache, struct cache_block *block);

/* ---- cache-memory.c ---- */

/* A free block of want->size, mapped for it; out of its pool. */
enum cache_answer cache_expand(struct cache *cache, const struct cache_want *want,
			       struct cache_block **out);
/* Gives back old segments while more than a share of the device is held. */
enum cache_answer cache_collect(struct cache *cache);
/* Gives back as many blocks that may not be split as the allocation needs. NO_MEMORY: there are not
 * enough. */
enum cache_answer cache_give_oversize(struct cache *cache, const struct cache_want *want);

#endif
