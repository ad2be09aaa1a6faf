/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of one moment of a replay: its sums, its maps, its holders of memory, and a description
 * in words that says only what the figures do.
 */
#ifndef NPUSIM_TRACES_MOMENT_H
#define NPUSIM_TRACES_MOMENT_H

#include "play/replay.h"
#include "track/holders.h"
#include "track/maps.h"

#define HOLDERS_SHOWN 20

struct moment_view {
	const struct replay *replay;
	const struct replay_device *device;
	const struct moment *moment;
	struct memory_sums sums;   /* of it */
	const struct sites *sites; /* or NULL */
	struct address_map *map;
	struct frame_map *frames; /* or NULL */
	GArray *holders;          /* struct holder */
	struct {
		guint64 sites, bytes, blocks;
	} others;        /* holders behind the first HOLDERS_SHOWN */
	guint64 blocks;  /* live ones */
	gboolean placed; /* some lie in the memory that the addresses show */
};
void moment_view_init(struct moment_view *view, const struct replay *replay,
		      const struct replay_device *device, const struct moment *moment);
void moment_view_clear(struct moment_view *view);

/* Whole sentences, to be freed. */
char *moment_words(const struct moment_view *view);
/* The same of what the file records; NULL: nothing. */
char *recorded_oom_words(const struct recorded_oom *oom);

#endif
