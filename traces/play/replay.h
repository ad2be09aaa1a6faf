/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay: makes the driver calls of a trace, or those that a policy derives from its events, on
 * the model, and keeps the results.
 */
#ifndef NPUSIM_TRACES_REPLAY_H
#define NPUSIM_TRACES_REPLAY_H

#include "read/record-reader.h"
#include "replay-device.h"

struct replay_options {
	/* Called now and then with the events done; returns FALSE to stop: what is done until then
	 * is the result. May be NULL. */
	gboolean (*progress)(guint64 done, guint64 total, gpointer data);
	gpointer data;
	const struct policy_options *policy; /* NULL: as recorded */
	struct access_options access;
	gboolean no_copies; /* recorded copies and fills are left out */
	struct replay_moment moments[MOMENTS_MAX - 2];
	guint moment_count;
};

/* Runs the trace, from its first record on, on the model that the environment describes. NULL and
 * error if it cannot start, or at an event that makes no sense (which one, and why). The reader
 * must outlive the result. */
struct replay *replay_run(struct record_reader *reader, const struct replay_options *options,
			  GError **error);
void replay_free(struct replay *replay);

#endif
