/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers what would have happened if another allocator had served a program: the policies and
 * their options, named as in PYTORCH_NPU_ALLOC_CONF, the filters that turn a history into theirs,
 * and the caching allocator itself. It is independent of the model.
 */
#ifndef NPUSIM_TRACES_POLICY_H
#define NPUSIM_TRACES_POLICY_H

#include "read/trace.h"

enum policy_kind {
	POLICY_AS_RECORDED, /* the file's own segments */
	POLICY_NATIVE,      /* each block is one aclrtMalloc */
	POLICY_CACHING,     /* torch_npu's caching allocator */
	POLICY_EXPANDABLE   /* the same with expandable segments */
};
extern const char *const policy_names[]; /* ends with NULL */

/* When the cache is given back beside an allocation that finds no memory. */
enum policy_empty_cache {
	POLICY_EMPTY_RECORDED, /* where the file shows a burst of segments given back */
	POLICY_EMPTY_NEVER,
	POLICY_EMPTY_AT /* where `empty_at` says */
};

#define POLICY_DIVISIONS 16 /* for sizes from 1 MiB on, each twice the one before */

struct policy_options {
	enum policy_kind kind;
	gboolean page_1g;
	guint64 max_split; /* bytes; G_MAXUINT64: any block may be split */
	guint64 non_split_rounding;
	guint64 large_segment; /* bytes of a segment for blocks below 10 MiB */
	guint64 align;         /* of blocks from 2 MiB on in expandable segments; 0: none; or */
#define POLICY_ALIGN_DEFAULT G_MAXUINT64 /* as the dialect has it */
	gboolean cuda;          /* PyTorch's own rules: no padding, no alignment, and none of
				   torch_npu's refusals */
	gboolean expandable;    /* it was asked for as a setting */
	double gc_threshold;    /* 0: none */
	double memory_fraction; /* of the device, 0 to 1 */
	guint64 divisions[POLICY_DIVISIONS];
	enum policy_empty_cache empty;
	GArray *empty_at; /* guint64, rising: blocks handed out and gone before the cache is
			     emptied */
	GPtrArray *given; /* char *: "key=value" as it was said, for the result */
};

void policy_options_init(struct policy_options *options);
void policy_options_clear(struct policy_options *options);
/* "key=value". FALSE and error, which says what would be right. */
gboolean policy_options_set(struct policy_options *options, const char *setting, GError **error);
/* Whether the settings fit together and mean something to the policy. */
gboolean policy_options_check(const struct policy_options *options, GError **error);

/* Whether another allocator than the file's serves the blocks. */
static inline gboolean policy_is_own(const struct policy_options *options)
{
	return options->kind != POLICY_AS_RECORDED;
}

/* Joined by `?:`, answers are heard up to the first that is not CACHE_OK. */
enum cache_answer {
	CACHE_OK,        /* 0 */
	CACHE_NO_MEMORY, /* the device has none left: an answer */
	CACHE_FAILED     /* anything else: the end */
};

/* ---- A policy's filter for the history of one device: it takes the allocator's events, and emits
 * driver calls and the events of the policy's own segments and blocks. The consumer reports whether
 * a call found memory; if not, a policy may release some and ask again. ---- */

/* What goes out has NPU_TRACE_HAS_START while the start is rebuilt. */
struct filter_output {
	/* A driver call, whose names are the policy's: process is the device + 1. *out_va, for a
	 * RESERVE or MALLOC: the address that it got. Its va, where it has one, is the address that
	 * the file has for what it gets. What a MALLOC got has no name: an MFREE's va is where it
	 * lies. CACHE_FAILED, and error: anything but a lack of memory. */
	enum cache_answer (*call)(gpointer data, const struct npu_trace_record *call,
				  guint64 *out_va, GError **error);
	/* An event that is true from now on. Of another allocator than the file's, `rounded` is
	 * what it takes of memory, and an ALLOC lies at va. */
	void (*event)(gpointer data, const struct record_item *event);
	/* What was there at the start is rebuilt: what follows is of the window. */
	void (*started)(gpointer data);
	/* The device has no memory for `size` bytes, which a site of the trace asked for. */
	void (*lost)(gpointer data, guint64 size, guint32 site);
	gpointer data;
	guint64 total; /* bytes of the device that programs can get */
};
struct filter {
	/* Rebuilds what was there at the start: memory, then blocks, each by address. */
	enum cache_answer (*start)(struct filter *filter, const GArray *items);
	/* Any event of an allocator. */
	enum cache_answer (*step)(struct filter *filter, const struct record_item *item);
	/* Where the memory at the file's address lies now; 0: nowhere. */
	guint64 (*find)(const struct filter *filter, guint64 address);
	/* Forgets everything; gives nothing back. */
	void (*close)(struct filter *filter);
	struct trace_device *trace; /* of its device */
	struct filter_output out;
	guint64 emptied; /* times that a cache was emptied */
	/* below: policies alone */
	guint32 start_bit;      /* NPU_TRACE_HAS_START while it is rebuilt */
	guint32 handles;        /* numbers given out */
	struct int_map *blocks; /* by the file's address */
	GError *cause;          /* of CACHE_FAILED: the first; whoever reports it takes it */
};
/* A driver call, and a name in it. */
#define POLICY_CALL(verb_, ...) \
	(&(struct npu_trace_record){ .verb = NPU_TRACE_##verb_, __VA_ARGS__ })
#define POLICY_NAME(letter, number_, ...) \
	((struct npu_trace_name){ .kind = letter, .number = number_, __VA_ARGS__ })
/* The call on the filter's device; `va` may be NULL. */
enum cache_answer filter_call(struct filter *filter, struct npu_trace_record *call, guint64 *va);
/* Gives a handle back. */
enum cache_answer filter_release(struct filter *filter, guint32 handle);
/* Says that `size` bytes of segments came or went, in `pages` bytes of pages. */
void filter_segments(struct filter *filter, enum npu_trace_verb verb, guint64 size, guint64 pages);

/* ---- cache.c: the caching allocator of PyTorch and torch_npu, classic and with expandable
 * segments. It places and tracks blocks; the memory itself is that of a filter. ---- */

struct cache;
/* Blocks of a segment or stretch follow one another without a gap. */
struct cache_block {
	guint64 address, size; /* what it takes, rounding and all; below: cache.c alone */
	gint64 stream;
	struct pool *pool;
	struct stretch *stretch; /* NULL: of a classic segment */
	struct cache_block *prev, *next;
	guint64 born; /* pool->searches when it became free */
	gboolean taken, mapped;
};

/* Both are borrowed. */
struct cache *cache_new(const struct policy_options *options, struct filter *memory);
/* Forgets everything; gives nothing back. */
void cache_free(struct cache *cache);

enum cache_answer cache_alloc(struct cache *cache, guint64 size, gint64 stream,
			      struct cache_block **out);
void cache_release(struct cache *cache, struct cache_block *block);
/* Gives back what no block needs: whole segments, and the unused pages of expandable ones. */
enum cache_answer cache_empty(struct cache *cache);

/* The file's own segments: recorded.c. `trace` is borrowed, `out` is copied. */
struct filter *filter_recorded(struct trace_device *trace, const struct filter_output *out);
/* The blocks served by another allocator: allocator.c. `options` are borrowed, too. */
struct filter *filter_allocator(const struct policy_options *options, struct trace_device *trace,
				const struct filter_output *out);

#endif
