/* SPDX-License-Identifier: Apache-2.0
 *
 * What synchronous (copy.c) and asynchronous copies and fills (copy-async.c) share: checks, the
 * actual direction of a copy, and the synchronous work itself, which asynchronous calls on
 * pageable memory also use. No state.
 */
#ifndef NPUSIM_ACL_COPY_INTERNAL_H
#define NPUSIM_ACL_COPY_INTERNAL_H

#include "memory-internal.h"

struct acl_rows {
	void *dst;
	size_t dpitch;
	const void *src;
	size_t spitch;
	size_t width, height;
};
struct acl_batch {
	void **dsts;
	const size_t *dest_maxs;
	void **srcs;
	const size_t *sizes;
	size_t count;
	const aclrtMemcpyBatchAttr *attrs;
	const size_t *indexes;
	size_t attr_count;
};

/* Pointers, kind and size, in CANN's order. */
aclError acl_check_copy(const char *call, const void *dst, size_t dst_max, const void *src,
			size_t count, aclrtMemcpyKind kind);
aclError acl_check_copy_2d(const char *call, const struct acl_rows *rows, aclrtMemcpyKind kind);
/* The context too. */
aclError acl_check_fill(const char *call, const void *ptr, size_t max, size_t count);
aclError acl_check_fill_d32(const char *call, const void *ptr, size_t mem_size, size_t words,
			    struct npu_place *out_place);

/* Where both ends lie, and the kind that follows: the addresses decide, *kind is heard where a
 * pageable end leaves a choice. 107000 where it is heard and impossible; the driver's code where an
 * address is nowhere. copy-async.c */
aclError acl_real_kind(const char *call, const void *dst, const void *src, aclrtMemcpyKind *kind,
		       struct npu_place *to, struct npu_place *from);

/* The work, done when they return. */
aclError acl_copy_now(const char *call, void *dst, size_t dst_max, const void *src, size_t count);
aclError acl_copy_2d_now(const char *call, const struct acl_rows *rows, aclrtMemcpyKind kind);
aclError acl_fill_now(const char *call, void *ptr, size_t max, uint8_t value, size_t count);
aclError acl_fill_d32_now(const char *call, void *ptr, uint32_t value, size_t words);

/* Batches: all sizes 0; arrays and indices; one copy against its locations; the attributes of copy
 * i (*k: 0 at first, then what the last call left). */
/* The batch as a whole; *out_empty: nothing is to be copied. */
aclError acl_check_batch(const char *call, const struct acl_batch *batch, bool *out_empty);
aclError acl_check_batch_copy(const char *call, const struct acl_batch *batch, size_t i,
			      const aclrtMemcpyBatchAttr *attr, struct npu_place *to,
			      struct npu_place *from);
const aclrtMemcpyBatchAttr *acl_batch_attr(const struct acl_batch *batch, size_t i, size_t *k);

#endif
