/* SPDX-License-Identifier: Apache-2.0
 *
 * A progress bar on a terminal for long operations. Nothing is shown for short ones, or if the
 * output is not a terminal.
 */
#ifndef NPUSIM_TRACES_PROGRESS_H
#define NPUSIM_TRACES_PROGRESS_H

#include <glib.h>

struct progress {
	gint64 start_us, last_us;
	const char *what;
	guint64 total;
	gboolean terminal, shown;
};

/* `what`: of what there are so many; borrowed. */
void progress_start(struct progress *progress, const char *what, guint64 total);
/* `done` of the total; may be called as often as liked. */
void progress_step(struct progress *progress, guint64 done);
void progress_end(struct progress *progress);

#endif
