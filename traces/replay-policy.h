/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's replay of one device: the blocks of the history are handed out by another allocator,
 * whose memory the model gives. The history's own segments say only where its cache was emptied.
 */
#ifndef NPUSIM_TRACES_REPLAY_POLICY_H
#define NPUSIM_TRACES_REPLAY_POLICY_H

#include "policy.h"
#include "replay.h"

struct policy_lane;

struct policy_lane *policy_lane_open(struct replay_device *device,
				     const struct policy_options *options);
/* Hands out what was live at the start, by address. */
gboolean policy_lane_start(struct policy_lane *lane, GError **error);
/* One event; `line` of the file for messages, 0: it has none. */
gboolean policy_lane_step(struct policy_lane *lane, const struct trace_event *event, guint64 line,
			  GError **error);
/* Gives back what is left, uncounted. */
void policy_lane_close(struct policy_lane *lane);
/* Where the block at the file's address lies now; 0: nowhere. */
guint64 policy_lane_find(const struct policy_lane *lane, guint64 address);

#endif
