/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of two files that differ: gathered, and shown as a table or as JSON. What they are of, it
 * does not know.
 */
#ifndef NPUSIM_TRACES_DIFF_FIGURES_H
#define NPUSIM_TRACES_DIFF_FIGURES_H

#include <json-glib/json-glib.h>
#include <stdio.h>

enum figure_kind {
	FIGURE_COUNT,
	FIGURE_BYTES,
	FIGURE_NS,
	FIGURE_PLACE, /* a number that only says where: no change is shown */
	FIGURE_REAL,
	FIGURE_TEXT
};
struct figure {
	char *group; /* "device 0", or "" for the whole file */
	char *name;
	enum figure_kind kind;
	gboolean has[2];
	gint64 whole[2];
	double real[2]; /* of all numbers */
	char *text[2];
	char *axis; /* of a series: what `at` counts, or NULL */
	double at;  /* where it is furthest apart */
};
struct figures {
	GPtrArray *list; /* struct figure *, those that differ */
	guint64 equal;   /* how many do not */
};

void figures_init(struct figures *figures);
void figures_clear(struct figures *figures);
void figures_whole(struct figures *figures, const char *group, const char *name,
		   enum figure_kind kind, gint64 a, gint64 b);
void figures_real(struct figures *figures, const char *group, const char *name, double a, double b);
/* NULL: that file does not say. */
void figures_text(struct figures *figures, const char *group, const char *name, const char *a,
		  const char *b);
/* A series, at the place where it is furthest apart; `axis` says what `at` counts. */
void figures_series(struct figures *figures, const char *group, const char *name,
		    enum figure_kind kind, const double values[2], const char *axis, double at);
/* Of one file alone; side: 0 or 1. Takes nothing over. */
void figures_alone(struct figures *figures, const char *group, const char *name, int side,
		   gboolean is_real, double value, const char *text, enum figure_kind kind);

/* "512 bytes", "1.50 MiB"; free it. */
char *figures_bytes(gint64 bytes);
void figures_print(const struct figures *figures, FILE *out);
/* The member "figures". */
void figures_build(const struct figures *figures, JsonBuilder *builder);

#endif
