/* SPDX-License-Identifier: Apache-2.0
 *
 * Of a result, the moments of each device and the latency of calls.
 */
#ifndef NPUSIM_TRACES_RESULT_MOMENT_H
#define NPUSIM_TRACES_RESULT_MOMENT_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "play/replay.h"

#define RESULT_HOLDERS_MAX 20

/* The table: moments in words, and the largest holders at the peak. */
void result_print_moments(FILE *out, const struct replay *replay, const struct replay_device *d);
/* The member "moments" of a device. */
void result_build_moments(JsonBuilder *b, const struct replay *replay,
			  const struct replay_device *d);
/* Members of a kind of call. */
void result_build_latency(JsonBuilder *b, const struct latency *latency);
/* The member "out_of_memory" of a device; none where there was room for all. */
void result_build_failure(JsonBuilder *b, const struct replay *replay,
			  const struct replay_device *d);

#endif
