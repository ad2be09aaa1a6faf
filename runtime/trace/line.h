/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of a trace that is put together in a buffer of the caller's: npu_trace_line() of
 * npusim/trace.h, and what info lines need.
 */
#ifndef NPUSIM_TRACE_LINE_H
#define NPUSIM_TRACE_LINE_H

#include "npusim/trace.h"

#define TRACE_FIRST_LINE "npusim-trace 1\n"

struct trace_text {
	char *at, *end;
	bool full; /* something did not go in, and was left out */
};

void trace_text_put(struct trace_text *text, const char *bytes, size_t count);
/* With each blank, '%' and control character as %XX. */
void trace_text_put_value(struct trace_text *text, const char *value);

#endif
