/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of a library of CANN that npusim does not model, made of stubs.txt: programs link
 * and load, and the log says which function is missing when the first call of it comes. The file
 * that includes this has defined LIBRARY.
 */
#ifndef NPUSIM_HOME_STUB_H
#define NPUSIM_HOME_STUB_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

__attribute__((noinline, unused)) static void stub_say(const char *library, const char *name,
						       long answer, bool *told)
{
	if (!__atomic_exchange_n(told, true, __ATOMIC_RELAXED))
		npu_log(NPU_LOG_WARN,
			"%s of %s was called, and npusim has nothing behind this name: it is there "
			"so that programs link, and answers %ld",
			name, library, answer);
}

#define STUB_(number, symbol, answer, shown, before)                                           \
	__attribute__((visibility("default"))) intptr_t stub_##number(void *) __asm__(symbol); \
	intptr_t stub_##number(void *self)                                                     \
	{                                                                                      \
		static bool told;                                                              \
                                                                                               \
		(void)self;                                                                    \
		before stub_say(LIBRARY, symbol, shown, &told);                                \
		return (intptr_t)(answer);                                                     \
	}
#define STUB(number, symbol, answer) STUB_(number, symbol, answer, answer, )
#define STUB_TEXT(number, symbol)    STUB_(number, symbol, "not supported", 0, )
#define STUB_OBJECT(number, symbol)  STUB_(number, symbol, self, 0, memset(self, 0, 16);)

#endif
