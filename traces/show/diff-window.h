/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a history that are looked at: those to come, as many as were asked for, and a few
 * that went before. What a line looks like is a number: two lines that look the same do the same to
 * things of the same size.
 */
#ifndef NPUSIM_TRACES_DIFF_WINDOW_H
#define NPUSIM_TRACES_DIFF_WINDOW_H

#include "track/object-tracker.h"

struct window_line {
	struct tracker_line line;
	guint64 looks;      /* with the size of what it frees */
	guint64 looks_free; /* without it */
};
struct window;

/* Reads from the reader, and keeps its tracker. */
struct window *window_new(struct record_reader *reader, struct tracker *tracker);
void window_free(struct window *window);

/* Reads on until there are `lines` to come, or all. FALSE and error. */
gboolean window_fill(struct window *window, guint lines, GError **error);
guint window_length(const struct window *window);
/* The line to come, 0 the next; NULL: there is none. */
const struct window_line *window_at(const struct window *window, guint index);
/* Goes past lines. */
void window_take(struct window *window, guint lines);
guint64 window_taken(const struct window *window);
/* Lines that went before and are still there; 1 the last. */
guint window_past(const struct window *window);
const struct window_line *window_before(const struct window *window, guint back);

/* Places of which is known what three lines from there on look like; behind the end of the history
 * is a place, too. */
guint window_grams(const struct window *window);
guint64 window_gram(const struct window *window, guint index);

#endif
