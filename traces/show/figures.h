/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a replay's figures, and what is shown of it beside them. Each figure has one row:
 * its name, its unit, how it is read, and a sentence for npusim-replay(1). JSON, text, the
 * comparison of two results and the manual page are generated from it; CSV has the same members as
 * JSON.
 */
#ifndef NPUSIM_TRACES_FIGURES_H
#define NPUSIM_TRACES_FIGURES_H

#include <stdio.h>

#include "member.h"
#include "play/replay.h"
#include "track/memory.h"

#define RESULT_PROGRAM        "npusim replay"
#define RESULT_SCHEMA_VERSION 2

/* The context of all these tables. */
struct result {
	const char *path; /* of the file, as it was given */
	const struct trace *trace;
	const struct replay *replay;
};
#define RESULT(context) ((const struct result *)(context))
/* The whole; of a struct result. */
extern const struct member figures_result[];
/* Of a struct replay_device; the second: where it ran out of memory. */
extern const struct member figures_device[], figures_failure[];
/* Of a struct access_figures, of a struct call_figures. */
extern const struct member figures_access[], figures_calls[];
/* Of a struct moment_view. */
extern const struct member figures_moment[];

/* The result as text for people: result.c. */
void result_print(FILE *out, const struct result *result);

/* ---- moment.c: one moment of a replay, also in words that say only what the figures do ---- */

#define HOLDERS_SHOWN 20

struct moment_view {
	const struct replay *replay;
	const struct replay_device *device;
	const struct moment *moment;
	struct memory_sums sums;   /* of it */
	const struct sites *sites; /* or NULL */
	struct address_map map;
	struct frame_map frames;
	GArray *holders; /* struct holder: the first HOLDERS_SHOWN */
	struct {
		guint64 sites, bytes, blocks;
	} others;        /* holders behind them */
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

/* ---- profile.c: what was live at a moment, or what grew between two, by call stack ---- */

/* By the ending: .folded, .speedscope.json or .pb.gz; FALSE and error: it has none of them. */
gboolean profile_check(const char *path, GError **error);
/* Of all devices, at the moment number `at` of each, less what was there at `since`; `since` below
 * 0: nothing. FALSE and error: the file has no call stacks, the replay did not get there, or `path`
 * cannot be written. */
gboolean profile_write(const char *path, const struct replay *replay, int at, int since,
		       GError **error);

#endif
