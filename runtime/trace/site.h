/* SPDX-License-Identifier: Apache-2.0
 *
 * The value of site=: who obtained memory.
 */
#ifndef NPUSIM_TRACE_SITE_H
#define NPUSIM_TRACE_SITE_H

#include "base/stack.h"

/* A frame a line, innermost first: "step (train.c:41)"; it stays valid. NULL: the stack has none.
 * Any thread. */
const char *trace_site(npu_stack stack);

#endif
