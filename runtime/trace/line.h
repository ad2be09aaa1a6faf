/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the text of a trace in a buffer of the caller's: npu_trace_line() of npusim/trace.h, and
 * the parts of info lines.
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
