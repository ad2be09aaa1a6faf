/* SPDX-License-Identifier: Apache-2.0
 *
 * One device's history on its way through the model: as it was recorded or under a policy, with
 * samples of its memory, and with accesses if they are wanted.
 */
#ifndef NPUSIM_TRACES_REPLAY_ENGINE_H
#define NPUSIM_TRACES_REPLAY_ENGINE_H

#include "replay.h"

struct replay_engine;

/* One for each device of the replay, in its order, with what was live at the start rebuilt. The
 * array owns them. NULL and error. */
GPtrArray *replay_engines_open(const struct replay_run *run, GError **error);
/* One event; `line` of the file for messages, 0: it has none. */
gboolean replay_engine_step(struct replay_engine *engine, const struct trace_event *event,
			    guint64 line, GError **error);

#endif
