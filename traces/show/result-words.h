/* SPDX-License-Identifier: Apache-2.0
 *
 * A moment of a replay in words: what was live, what was lost to whom, and why memory was lacking.
 * Says only what the figures do.
 */
#ifndef NPUSIM_TRACES_RESULT_WORDS_H
#define NPUSIM_TRACES_RESULT_WORDS_H

#include "track/holders.h"
#include "track/maps.h"
#include "play/replay.h"

struct moment_view {
	const struct replay *replay;
	const struct replay_device *device;
	const struct moment *moment;
	const struct sites *sites; /* or NULL */
	struct address_map *addresses;
	struct frame_map *frames; /* or NULL */
	GArray *holders;          /* struct holder */
	guint64 blocks;           /* live ones */
	gboolean placed;          /* some lie in the memory that the addresses show */
};
void moment_view_init(struct moment_view *view, const struct replay *replay,
		      const struct replay_device *device, const struct moment *moment);
void moment_view_clear(struct moment_view *view);

/* "peak", "oom", "end", "event" */
const char *moment_name(const struct moment *moment);
/* Whole sentences, to be freed. */
char *moment_words(const struct moment_view *view);
/* "1.50 GiB"; valid until the sixteenth call from now on, in this thread. */
const char *words_bytes(guint64 bytes);

#endif
