/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles of call stacks: what was live at a moment of a replay, or what grew between two, by
 * stack.
 */
#ifndef NPUSIM_TRACES_PROFILE_H
#define NPUSIM_TRACES_PROFILE_H

#include "play/replay.h"

/* By the ending: .folded, .speedscope.json or .pb.gz; FALSE and error: it has none of them. */
gboolean profile_check(const char *path, GError **error);
/* Of all devices, at the moment number `at` of each, less what was there at `since`; `since` below
 * 0: nothing. FALSE and error: the file has no call stacks, the replay did not get there, or `path`
 * cannot be written. */
gboolean profile_write(const char *path, const struct replay *replay, int at, int since,
		       GError **error);

#endif
