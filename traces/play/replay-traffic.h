/* SPDX-License-Identifier: Apache-2.0
 *
 * What recorded calls move and touch: copies and fills, made again for the time that they take, and
 * accesses to the memory that calls got. It knows no names of a trace.
 */
#ifndef NPUSIM_TRACES_REPLAY_TRAFFIC_H
#define NPUSIM_TRACES_REPLAY_TRAFFIC_H

#include "replay.h"

struct traffic;
/* One end of a copy. */
struct traffic_end {
	void *p;       /* NULL: memory that the program had by itself */
	gint32 device; /* whose memory it is; -1: the host's */
};

struct traffic *traffic_open(struct replay *replay, const struct replay_options *options);
void traffic_close(struct traffic *traffic);

/* The model's answer, counted with the device that has an end of it. */
gint32 traffic_copy(struct traffic *traffic, const struct traffic_end *dst,
		    const struct traffic_end *src, guint64 size);
gint32 traffic_fill(struct traffic *traffic, const struct traffic_end *dst, guint64 size);

/* Memory of a device that can be touched now, and from now on no more. */
void traffic_come(struct traffic *traffic, gint32 device, void *va, guint64 size);
void traffic_go(struct traffic *traffic, gint32 device, void *va);
/* After each line: FALSE and error where the model refused an access. */
gboolean traffic_tick(struct traffic *traffic, GError **error);

#endif
