/* SPDX-License-Identifier: Apache-2.0
 *
 * The lane that the options ask for, and what is noted beside it.
 */
#include "replay-track.h"

#include "replay-policy.h"

struct track {
	struct replay_device *device;
	struct lane *lane; /* as recorded, or */
	struct policy_lane *policy;
	struct access *access; /* NULL: none */
	guint64 event;
};

gboolean track_is_policy(const struct replay_options *options)
{
	return options->policy && options->policy->kind != POLICY_AS_RECORDED;
}

static guint64 find(gconstpointer data, guint64 address)
{
	const struct track *track = data;

	return track->policy ? policy_lane_find(track->policy, address)
			     : lane_find(track->lane, address);
}

struct track *track_open(struct replay_device *device, const struct replay_options *options)
{
	struct track *track = g_new0(struct track, 1);

	track->device = device;
	if (track_is_policy(options))
		track->policy = policy_lane_open(device, options->policy);
	else
		track->lane = lane_open(device);
	if (options->access.pattern != ACCESS_NONE)
		track->access =
			access_new(&options->access, device->device, find, track, &device->access);
	return track;
}

gboolean track_start(struct track *track, GError **error)
{
	gboolean ok = track->policy ? policy_lane_start(track->policy, error)
				    : lane_start(track->lane, error);

	const GArray *blocks = track->device->trace->blocks;
	for (guint i = 0; ok && track->access && i < blocks->len; i++) {
		const struct trace_block *b = &g_array_index(blocks, struct trace_block, i);
		access_note(track->access, b->address, b->size);
	}
	replay_sample(track->device, 0, 0);
	return ok;
}

gboolean track_step(struct track *track, const struct trace_event *event, guint64 line,
		    GError **error)
{
	gboolean ok = track->policy ? policy_lane_step(track->policy, event, line, error)
				    : lane_step(track->lane, event, line, error);

	replay_sample(track->device, ++track->event, (guint64)MAX(event->time_us, 0));
	return ok && (track->access == NULL || access_step(track->access, event, error));
}

void track_close(struct track *track)
{
	if (track->policy)
		policy_lane_close(track->policy);
	else
		lane_close(track->lane);
	access_free(track->access);
	g_free(track);
}
