/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back from times to a profile: what samples of calls, copies and waits come to, and the
 * values of a profile that explain them. TIMING.md says what can be told, and how surely. It
 * measures nothing. Plain code, no kernel; not thread-safe for one array.
 */
#ifndef NPUSIM_SIM_FIT_H
#define NPUSIM_SIM_FIT_H

#include <glib.h>

G_BEGIN_DECLS

struct sim_sample {
	const char *what; /* "map", as the profile's keys begin; of what has none: "h2d", "rows" */
	guint64 bytes;
	unsigned page_lg2; /* 21 or 30 */
	gboolean cold;     /* the first of this size in its process */
	double ns;
};
/* What the samples of one size come to. */
struct sim_figure {
	struct sim_sample of; /* ns: the median */
	guint count;
	double min, p10, p99, max;
	double low, high; /* the median's 95 % interval, by the order of the samples */
	double error;     /* its standard deviation, by the same */
};
static inline const struct sim_figure *sim_figure_at(const GArray *figures, guint i)
{
	return &g_array_index(figures, struct sim_figure, i);
}

/* Orders samples by what, pages, cold or not, and size: 0 for those of one figure. */
gint sim_sample_order(gconstpointer a, gconstpointer b);
/* The figures of an array of struct sim_sample, which is sorted so. */
GArray *sim_figures(GArray *samples);

/* What the figures say of a profile: its text, which starts from the built-in one of `soc`, and a
 * report, a line each value, with the base's and the 95 % interval; `where` says what was measured.
 * FALSE and error for an unknown SoC. */
gboolean sim_fit(const char *soc, const char *where, const GArray *figures, GString *profile,
		 GString *report, GError **error);

G_END_DECLS

#endif
