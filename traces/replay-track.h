/* SPDX-License-Identifier: Apache-2.0
 *
 * One device's history on its way through the model: as it was recorded or under a policy, with
 * samples of its memory, and with accesses if they are wanted.
 */
#ifndef NPUSIM_TRACES_REPLAY_TRACK_H
#define NPUSIM_TRACES_REPLAY_TRACK_H

#include "replay.h"

struct track;

struct track *track_open(struct replay_device *device, const struct replay_options *options);
gboolean track_start(struct track *track, GError **error);
/* One event; `line` of the file for messages, 0: it has none. */
gboolean track_step(struct track *track, const struct trace_event *event, guint64 line,
		    GError **error);
void track_close(struct track *track);
/* Whether the options name a policy of their own. */
gboolean track_is_policy(const struct replay_options *options);

#endif
