/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACL headers in a C program, which is strict C11: values, layouts, and how such programs use
 * the names. That it compiles is the test; it also looks at what only shows at run time.
 */
#include "headers-abi.h"

#include <stdio.h>
#include <string.h>

/* As in CANN the runtime's codes are macros, which programs ask for. */
#ifndef ACL_ERROR_RT_MEMORY_ALLOCATION
#error "ACL_ERROR_RT_MEMORY_ALLOCATION is no macro"
#endif

/* The version macros can be compared by the preprocessor. */
#if ACL_MAJOR_VERSION * 1000 + ACL_MINOR_VERSION < 1016
#error "older than CANN 8.5"
#endif

static const struct {
	aclError code;
	const char *text;
} table[] = {
	{ ACL_SUCCESS, "done" },
	{ ACL_ERROR_INVALID_PARAM, "argument" },
	{ ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory" },
};

/* Codes of both kinds are constants: `case` takes them. */
static const char *text_of(aclError code)
{
	switch (code) {
	case ACL_SUCCESS:
		return table[0].text;
	case ACL_ERROR_INVALID_PARAM:
		return table[1].text;
	case ACL_ERROR_RT_MEMORY_ALLOCATION:
		return table[2].text;
	default:
		return "other";
	}
}

int main(void)
{
	aclrtPhysicalMemProp prop = { 0 };
	int wrong = 0;

	prop.memAttr = ACL_HBM_MEM_HUGE;
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	if (prop.handleType != ACL_MEM_HANDLE_TYPE_NONE ||
	    prop.allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
		fprintf(stderr, "a zeroed aclrtPhysicalMemProp has no handle type or no pages\n");
		wrong++;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(text_of(table[i].code), table[i].text) != 0) {
			fprintf(stderr, "code %d is not told from the others\n", table[i].code);
			wrong++;
		}
	}
	return wrong != 0;
}
