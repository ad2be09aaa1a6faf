/* SPDX-License-Identifier: Apache-2.0
 *
 * Of a result, what policies, samples and accesses add to it.
 */
#ifndef NPUSIM_TRACES_RESULT_POLICY_H
#define NPUSIM_TRACES_RESULT_POLICY_H

#include <json-glib/json-glib.h>
#include <stdio.h>

#include "play/replay.h"

/* Rows of the table. */
void result_print_policy(FILE *out, const struct replay *replay, const struct replay_device *d);
/* Members of the result, and of a device. */
void result_build_policy(JsonBuilder *b, const struct replay *replay);
void result_build_policy_device(JsonBuilder *b, const struct replay *replay,
				const struct replay_device *d);

#endif
