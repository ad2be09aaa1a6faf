/* SPDX-License-Identifier: Apache-2.0
 *
 * Two results of npusim replay --json, member by member: devices by their number, lists of things
 * by the name that each has, series at the place where they are furthest apart. It knows no member
 * but those which tell how a figure is to be read.
 */
#ifndef NPUSIM_TRACES_DIFF_RESULT_H
#define NPUSIM_TRACES_DIFF_RESULT_H

#include "diff-figures.h"

/* What is no figure (the file's name, the time that the replay took here) is left out. Of a list of
 * things at most `limit` that differ are told one by one. */
void diff_results(JsonNode *a, JsonNode *b, guint limit, struct figures *figures);

#endif
