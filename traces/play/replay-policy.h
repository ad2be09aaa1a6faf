/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's replay of one device: the blocks of the history are handed out by another allocator,
 * whose memory the model gives. The history's own segments say only where its cache was emptied.
 */
#ifndef NPUSIM_TRACES_REPLAY_POLICY_H
#define NPUSIM_TRACES_REPLAY_POLICY_H

#include "policy/policy.h"
#include "replay.h"

struct policy_replay;

struct policy_replay *policy_replay_open(struct replay_device *device,
					 const struct policy_options *options);
/* Hands out what was live at the start, by address. */
gboolean policy_replay_start(struct policy_replay *replay, GError **error);
/* One event; `line` of the file for messages, 0: it has none. */
gboolean policy_replay_step(struct policy_replay *replay, const struct trace_event *event,
			    guint64 line, GError **error);
/* Gives back what is left, uncounted. */
void policy_replay_close(struct policy_replay *replay);
/* Where the block at the file's address lies now; 0: nowhere. */
guint64 policy_replay_find(const struct policy_replay *replay, guint64 address);

#endif
