/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of npusim/trace.h as npusim itself uses it: over an input, with GError.
 */
#ifndef NPUSIM_TRACES_TRACE_READER_H
#define NPUSIM_TRACES_TRACE_READER_H

#include "input.h"
#include "npusim/trace.h"

#define FORMAT_MAGIC "npusim-trace"

/* Takes the input over, on failure too. Errors name the line, those of the input the file. */
struct npu_trace_reader *trace_reader_new(struct input *input, GError **error);
/* As npu_trace_reader_next(). */
int trace_reader_take(struct npu_trace_reader *reader, struct npu_trace_record *out,
		      GError **error);
gboolean trace_reader_rewind(struct npu_trace_reader *reader, GError **error);
/* From the next rewind on, each whole line that is read is added to a text as well, as it is in the
 * file, with its end: also those that are no records. */
void trace_reader_copy(struct npu_trace_reader *reader, GString *text);

#endif
