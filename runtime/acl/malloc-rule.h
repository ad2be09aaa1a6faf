/* SPDX-License-Identifier: Apache-2.0
 *
 * What aclrtMalloc and its kin make of a size and a policy before they ask the driver: the
 * runtime's own calls go by it, and so does the recorder that stands in front of CANN's.
 */
#ifndef NPUSIM_MALLOC_RULE_H
#define NPUSIM_MALLOC_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl.h"

#define ALIGN_BYTES      UINT64_C(32)
#define PADDING_BYTES    UINT64_C(32)
#define HUGE_ABOVE_BYTES (UINT64_C(1) << 20)
#define POLICY_MASK      0xffu

enum page_choice { PAGES_HUGE_FIRST, PAGES_HUGE, PAGES_NORMAL, PAGES_GIANT };
struct malloc_policy {
	enum page_choice pages;
	bool p2p;
};

/* Of a policy without the bits that may be added to it; an unknown one counts as HUGE_FIRST. */
static inline struct malloc_policy malloc_policy_of(uint32_t policy)
{
	static const struct malloc_policy policies[POLICY_MASK + 1] = {
		[ACL_MEM_MALLOC_HUGE_ONLY] = { PAGES_HUGE, false },
		[ACL_MEM_MALLOC_NORMAL_ONLY] = { PAGES_NORMAL, false },
		[ACL_MEM_MALLOC_HUGE_FIRST_P2P] = { PAGES_HUGE_FIRST, true },
		[ACL_MEM_MALLOC_HUGE_ONLY_P2P] = { PAGES_HUGE, true },
		[ACL_MEM_MALLOC_NORMAL_ONLY_P2P] = { PAGES_NORMAL, true },
		[ACL_MEM_MALLOC_HUGE1G_ONLY] = { PAGES_GIANT, false },
		[ACL_MEM_MALLOC_HUGE1G_ONLY_P2P] = { PAGES_GIANT, true },
	};

	return policies[policy & POLICY_MASK];
}

/* Rounds up to 32 bytes, and adds 32 where the call pads; pages of 1 GiB are not padded. False, and
 * the size unchanged: it would not fit 64 bits. */
static inline bool malloc_round(enum page_choice pages, bool padded, uint64_t *size)
{
	uint64_t more = ALIGN_BYTES + (padded && pages != PAGES_GIANT ? PADDING_BYTES : 0);

	if (*size > UINT64_MAX - more)
		return false;
	*size = (*size + more - 1) / ALIGN_BYTES * ALIGN_BYTES;
	return true;
}

/* HUGE_FIRST takes normal pages for little. */
static inline enum page_choice malloc_pages_of(enum page_choice pages, uint64_t size)
{
	return pages != PAGES_HUGE_FIRST ? pages
	       : size > HUGE_ABOVE_BYTES ? PAGES_HUGE
					 : PAGES_NORMAL;
}

#endif
