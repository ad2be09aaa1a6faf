/* SPDX-License-Identifier: Apache-2.0
 *
 * The traffic of recorded calls: copies and fills, repeated for the time that they take. It is
 * independent of the names in a trace.
 */
#ifndef NPUSIM_TRACES_TRAFFIC_H
#define NPUSIM_TRACES_TRAFFIC_H

#include "replay-device.h"

struct traffic;
/* One end of a copy. */
struct traffic_end {
	void *p;       /* NULL: memory that the program had by itself */
	gint32 device; /* whose memory it is; -1: the host's */
};

/* `copies`: they are made; FALSE: each is answered with 0. */
struct traffic *traffic_open(struct replay *replay, gboolean copies);
void traffic_close(struct traffic *traffic);

/* A copy, or a fill where `src` is NULL. The model's answer, counted with the device that has an
 * end of it. */
gint32 traffic_move(struct traffic *traffic, const struct traffic_end *dst,
		    const struct traffic_end *src, guint64 size);

#endif
