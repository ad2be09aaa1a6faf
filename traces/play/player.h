/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the driver calls that records name on the model, and maps their names to the model's
 * objects. It serves replays, which take the records from a trace or from a policy's filter.
 */
#ifndef NPUSIM_TRACES_PLAYER_H
#define NPUSIM_TRACES_PLAYER_H

#include "npusim/trace.h"
#include "replay-device.h"

struct player;

/* `recorded`: the calls are those of a trace. They say what physical memory there is, they move
 * bytes if `copies` is set, and what they get may be read (device->reads). Of others the events
 * beside them say all of that. */
struct player *player_open(struct replay *replay, gboolean recorded, gboolean copies);
/* Makes a policy's call; *out_va is the address that a RESERVE or MALLOC got. It is counted with
 * what rebuilds the start where it has NPU_TRACE_HAS_START, and what it gets is at its va in maps,
 * where it has one. The model's answer, or -1: what it names is not there. */
gint32 player_call(struct player *player, const struct npu_trace_record *call, guint64 *out_va);
/* Makes a recorded call, and compares the answers. FALSE and error: an
 * access to memory that the model refused. */
gboolean player_step(struct player *player, const struct record_item *call, GError **error);
/* The ACL's name of what a policy can call. */
const char *player_call_name(guint32 verb);
/* Gives back what is left, uncounted. */
void player_close(struct player *player);

#endif
