/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the functions of unmodelled.h: each logs once what is missing when it is called, and
 * refuses.
 */
#include "hal.h"

#include <stdatomic.h>

#include "base/base.h"

static void refuse(atomic_bool *said, const char *name, const char *what)
{
	npu_message_set("%s: %s is not modelled", name, what);
	if (!atomic_exchange(said, true))
		npu_log(NPU_LOG_DEBUG, "%s: %s is not modelled", name, what);
}

#define UNMODELLED(result, answer, name, what) \
	HAL_EXPORT result name(void);          \
	result name(void)                      \
	{                                      \
		static atomic_bool said;       \
                                               \
		refuse(&said, #name, what);    \
		return answer;                 \
	}
#include "unmodelled.h"
