/* SPDX-License-Identifier: Apache-2.0
 *
 * The doors of the ACL: every exported function that answers a code. Each calls its namesake
 * inside, and notes for the log where the program called it if that fails.
 */
#include <string.h>

#include "acl-doors.h"
#include "acl/acl.h"
#include "base/base.h"
#include "core/core.h"
#include "npusim/npusim.h"
#include "runtime/rt.h"

__attribute__((cold, noinline)) static void note_failure(const char *call, aclError code,
							 const void *site)
{
	static const struct {
		int code;
		const char *name;
	} codes[] = {
#define ROW(code, name) { code, name },
		ACL_CODES(ROW)
	};
	const char *name = NULL;

	/* aclrtProcessReport's answer to a poll, and what the thread asked for. */
	if (code == ACL_ERROR_RT_REPORT_TIMEOUT ||
	    (code >= ACL_ERROR_RT_PARAM_INVALID && strstr(call, "LastError") != NULL))
		return;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			name = codes[i].name;
	npu_failure_note(&(struct npu_failure){
		.call = call,
		.code = code,
		.name = name,
		.site = site,
		.expected = code == ACL_ERROR_RT_MEMORY_ALLOCATION ||
			    code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
	});
}

#define DOOR(call, params, args)                                                \
	extern __typeof__(call) inside_##call __asm__("inside." #call);         \
	__attribute__((visibility("default"))) aclError call params             \
	{                                                                       \
		CORE_CALLED(#call);                                             \
		aclError code = inside_##call args;                             \
                                                                                \
		if (__builtin_expect(code != ACL_SUCCESS, 0))                   \
			note_failure(#call, code, __builtin_return_address(0)); \
		return code;                                                    \
	}
ACL_DOORS(DOOR)
