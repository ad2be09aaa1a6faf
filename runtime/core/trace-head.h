/* SPDX-License-Identifier: Apache-2.0
 *
 * The first lines of a trace (traces/FORMAT.md), and the name of its file.
 */
#ifndef NPUSIM_TRACE_HEAD_H
#define NPUSIM_TRACE_HEAD_H

#include <stdio.h>

#include "npusim/driver.h"

/* Version, program, process, and what the driver says of its devices. */
void trace_write_head(FILE *file, struct npu_driver *lower, uint64_t start_ns);
/* %p in the path stands for the process id: several processes can share one setting. free(). */
char *trace_file_name(const char *path);
/* Empty, and for appending: a program may add lines of its own between those of its calls. NULL:
 * errno says why. */
FILE *trace_file_open(const char *name);

#endif
