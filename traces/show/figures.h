/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a replay's figures. Each has one row: its name, its unit, how it is read, and a
 * sentence for npusim-replay(1). JSON, text, the comparison of two results and the manual page are
 * generated from it; CSV has the same members as JSON.
 */
#ifndef NPUSIM_TRACES_FIGURES_H
#define NPUSIM_TRACES_FIGURES_H

#include <stdio.h>

#include "member.h"
#include "moment.h"
#include "play/replay.h"

#define RESULT_PROGRAM        "npusim replay"
#define RESULT_SCHEMA_VERSION 2

/* The context of all these tables. */
struct result {
	const char *path; /* of the file, as it was given */
	const struct trace *trace;
	const struct replay *replay;
};
#define RESULT(context) ((const struct result *)(context))
/* The whole; of a struct result. */
extern const struct member figures_result[];
/* Of a struct replay_device; the second: where it ran out of memory. */
extern const struct member figures_device[], figures_failure[];
/* Of a struct access_figures, of a struct call_figures. */
extern const struct member figures_access[], figures_moves[];
/* Of a struct moment_view. */
extern const struct member figures_moment[];

/* The result as text for people: result.c. */
void result_print(FILE *out, const struct result *result);

#endif
