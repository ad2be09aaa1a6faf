/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers what would have happened if another allocator had served a program: the policies and
 * their options, named as in PYTORCH_NPU_ALLOC_CONF. It is independent of the model.
 */
#ifndef NPUSIM_TRACES_POLICY_H
#define NPUSIM_TRACES_POLICY_H

#include <glib.h>

enum policy_kind {
	POLICY_AS_RECORDED, /* the file's own segments */
	POLICY_NATIVE,      /* each block is one aclrtMalloc */
	POLICY_CACHING,     /* torch_npu's caching allocator */
	POLICY_EXPANDABLE   /* the same with expandable segments */
};
const char *policy_name(enum policy_kind kind);
/* FALSE and error, with the names that are known, for another. */
gboolean policy_parse(const char *name, enum policy_kind *out, GError **error);

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
	guint64 align;         /* of blocks from 2 MiB on in expandable segments; 0: none */
	gboolean align_given;
	gboolean cuda;          /* PyTorch's own rules: no padding, and none of torch_npu's
				   refusals */
	guint64 pad;            /* bytes that are added to each request */
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

/* Whether another allocator than the file's serves the blocks; NULL: as recorded. */
static inline gboolean policy_is_own(const struct policy_options *options)
{
	return options && options->kind != POLICY_AS_RECORDED;
}

#endif
