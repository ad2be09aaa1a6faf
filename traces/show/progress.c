/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the progress bar on stderr.
 */
#include "show.h"

#include <unistd.h>

#define SHOW_AFTER_US 500000
#define SHOW_EVERY_US 100000
#define BAR_WIDTH     40

void progress_start(struct progress *p, const char *what, guint64 total)
{
	*p = (struct progress){ .start_us = g_get_monotonic_time(),
				.what = what,
				.total = total,
				.terminal = isatty(STDERR_FILENO) };
}

void progress_step(guint64 done, gpointer progress)
{
	struct progress *p = progress;
	gint64 now = p->terminal ? g_get_monotonic_time() : p->start_us;

	if (now - p->start_us < SHOW_AFTER_US || now - p->last_us < SHOW_EVERY_US)
		return;
	double share = p->total ? MIN(1.0, (double)done / (double)p->total) : 0;
	int filled = (int)(share * BAR_WIDTH);
	g_printerr("\r[%.*s%*s] %3.0f %%, %" G_GUINT64_FORMAT " %s", filled,
		   "########################################", BAR_WIDTH - filled, "",
		   100.0 * share, done, p->what);
	if (share > 0)
		g_printerr(", %.0f s left  ",
			   (double)(now - p->start_us) / 1e6 * (1 - share) / share);
	p->last_us = now;
}

void progress_end(struct progress *p)
{
	if (p->last_us)
		g_printerr("\r%*s\r", BAR_WIDTH + 40, "");
	p->last_us = 0;
}
