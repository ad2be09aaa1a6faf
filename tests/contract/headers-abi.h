/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the ACL headers against the values and layouts of CANN's, at compile time. Included by
 * headers-abi-c.c and headers-abi-cpp.cpp, so that both languages see the same.
 */
#include <stddef.h>

#include "acl/acl.h"

#ifdef __cplusplus
#define STATIC_ASSERT static_assert
#define ALIGN_OF(x)   alignof(x)
#else
#define STATIC_ASSERT _Static_assert
#define ALIGN_OF(x)   _Alignof(x)
#endif

#define VALUE(name, value) STATIC_ASSERT((name) == (value), #name " is not " #value);
#include "headers-values-list.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define TYPE(type, size, align)                                  \
	STATIC_ASSERT(sizeof(type) == (size), "size of " #type); \
	STATIC_ASSERT(ALIGN_OF(type) == (align), "alignment of " #type);
#define MEMBER(type, member, offset, size)                                                 \
	STATIC_ASSERT(offsetof(type, member) == (offset), "offset of " #type "." #member); \
	STATIC_ASSERT(sizeof(((type *)0)->member) == (size), "size of " #type "." #member);
#include "headers-layouts-list.h"
#endif
