/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the command shows of results and traces. The table of a replay's figures: each has
 * one row, with its name, its unit, how it is read, and a sentence for npusim-replay(1); JSON,
 * text, the comparison of two results and the manual page are generated from it, and CSV has the
 * same members as JSON.
 */
#ifndef NPUSIM_TRACES_SHOW_H
#define NPUSIM_TRACES_SHOW_H

#include <stdio.h>

#include "member.h"
#include "play/replay.h"

#define RESULT_PROGRAM        "npusim replay"
#define RESULT_SCHEMA_VERSION 2

struct result {
	const char *path; /* of the file, as it was given */
	const struct trace *trace;
	const struct replay *replay;
};
/* The whole; of a struct result. */
extern const struct member figures_result[];
/* Of a struct replay_device; the second: where it ran out of memory. */
extern const struct member figures_device[], figures_failure[];
/* Of a struct access_figures, a struct call_figures, a struct replay_match. */
extern const struct member figures_access[], figures_calls[], figures_call_times[];
/* Of a struct moment_view. */
extern const struct member figures_moment[];

/* The line of the program that stands for a site; NULL: it is not known, or there are no sites. */
static inline const char *site_text(const struct sites *sites, guint32 site)
{
	return sites && site != SITE_NONE ? sites_label_text(sites, sites_label(sites, site))
					  : NULL;
}

/* The result as text for people: result.c. */
void result_print(FILE *out, const struct result *result);
/* Of that, how far what calls took on a server is from what its profile predicts: a line each. */
void result_times_text(GString *out, const struct replay_match *matches);

/* ---- moment.c: one moment of a replay, also in words that say only what the figures do ---- */

#define HOLDERS_SHOWN 20

struct moment_view {
	const struct replay_device *device;
	const struct moment *moment;
	const struct sites *sites; /* or NULL */
	struct memory_map map, frames;
	GArray *holders; /* struct holder: the first HOLDERS_SHOWN */
	struct {
		guint64 sites, bytes, blocks;
	} others;        /* holders behind them */
	guint64 blocks;  /* live ones */
	gboolean placed; /* some lie in the memory that the addresses show */
};
void moment_view_init(struct moment_view *view, const struct replay_device *device,
		      const struct moment *moment);
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

/* ---- result-file.c: results as npusim replay --json writes them, read back, and as CSV (RFC 4180
 * with the line ends of Unix). It knows only the members that tell that a file is a result. ---- */

/* The whole file. NULL and error, naming it: it is no result, or its schema is not known. */
JsonNode *result_file_read(const char *path, GError **error);

/* A member's value, or what is said instead where there is none of that type. */
gint64 result_int(JsonObject *object, const char *name, gint64 otherwise);
const char *result_text(JsonObject *object, const char *name, const char *otherwise);
/* NULL: there is none. */
JsonArray *result_array(JsonObject *object, const char *name);
/* One of its devices, by number; NULL: there is none. */
JsonNode *result_device(JsonNode *result, gint64 number);

/* A field of CSV, quoted where it must be; `first` of its line or not. */
void csv_field(GString *out, gboolean first, const char *text);
/* One line a device of each result: all its figures; or, `series`, one line a point of each
 * device's series: all its lists. `results` holds JsonNode *, `names` their files; `device`: that
 * one alone, -1: all. FALSE and error, which names the file. */
gboolean csv_write(const char *path, gboolean series, GPtrArray *results, char *const *names,
		   gint device, GError **error);

/* ---- diff-result.c: figures that differ ---- */

struct differences {
	const char *kinds[2]; /* of the files; borrowed, as the group */
	guint64 events[2];    /* that they have */
	GPtrArray *rows;      /* inside: their cells as text */
	JsonNode *json;       /* a list of objects, as npusim-diff(1) has it */
	guint64 equal;        /* how many do not differ */
	const char *group;    /* of what is added: "device 0"; "": of the whole file */
	guint limit;          /* of each list so many are told one by one */
};
void differences_init(struct differences *differences, guint limit);
void differences_clear(struct differences *differences);
/* Values of any types, which are taken over, NULL: it is not there; what is no number is compared
 * as text. `kind`: of whole numbers. `axis`: of a series, what `at` counts, where it is furthest
 * apart; else NULL. */
void differences_add(struct differences *differences, const char *name, enum member_kind kind,
		     JsonNode *a, JsonNode *b, const char *axis, double at);
void differences_print(const struct differences *differences, FILE *out);

/* Member by member: devices by their number, lists of things by the name that each has, series at
 * the place where they are furthest apart. What is no figure is left out. */
void diff_results(JsonNode *const results[2], struct differences *differences);

/* ---- diff-trace.c: two traces ---- */

struct trace_diff {
	struct trace *traces[2]; /* borrowed */
	struct differences figures;
	GArray *sizes;      /* struct tracker_size that differ, first what does by most bytes */
	guint64 same;       /* lines in both */
	guint64 changed;    /* one line for another that does the same to another size or thing */
	guint64 removed;    /* lines of the first alone */
	guint64 added;      /* of the second alone */
	guint64 places;     /* at which they differ */
	guint64 refused;    /* calls refused in one alone */
	JsonNode *hunks;    /* a list of objects, as npusim-diff(1) has it, of the first places */
	JsonNode *refusals; /* the same of the first such calls */
};
/* The traces must outlive the result. NULL and error where one cannot be read. */
struct trace_diff *trace_diff_run(struct trace *const traces[2], guint limit, GError **error);
void trace_diff_free(struct trace_diff *diff);
void trace_diff_print(const struct trace_diff *diff, FILE *out);
/* "sizes", "refusals", "alignment", "hunks". */
extern const struct member trace_diff_members[];

/* ---- diff-align.c: two histories laid side by side in their order ---- */

/* Reads both to their ends, and holds two windows of them. Things are compared by what they are to
 * each history, never by address or number: two lines are the same if they do the same to things
 * that came from the same lines. FALSE and error where one cannot be read. */
gboolean align_run(struct trace_diff *diff, struct tracker *const trackers[2], GError **error);

/* ---- convert.c: conversions of a trace to other kinds of file, which all read their input once,
 * line by line ---- */

struct convert {
	struct trace *trace;
	struct tracker *tracker;
	GString *out;
	/* Of the format: what was written, by number; of Chrome's: calls by thread, a clock. */
	struct int_map *known, *threads;
	guint32 clock; /* the stamp that tells the time; 0: none does */
	guint64 now_ns;
};
struct convert_format {
	/* Writes what is before the lines. */
	void (*begin)(struct convert *convert);
	/* Writes one that is wanted. FALSE and error. */
	gboolean (*line)(struct convert *convert, struct tracker_line *line, GError **error);
	/* Writes what is behind them; may be NULL. */
	void (*end)(struct convert *convert);
};
/* The lines of a trace of npusim are copied unchanged; others are written with the addresses that
 * they have, so that a replay gives the same results as for the original file. */
extern const struct convert_format convert_to_trace;
extern const struct convert_format convert_to_chrome, convert_to_csv;

/* `device`: what is of it alone; -1: all. FALSE and error. */
gboolean convert_run(struct trace *trace, const struct convert_format *format, const char *target,
		     gint device, GError **error);

/* ---- progress.c: a progress bar on a terminal for long operations. Nothing is shown for short
 * ones, or if the output is not a terminal. ---- */

struct progress {
	gint64 start_us, last_us;
	const char *what;
	guint64 total;
	gboolean terminal;
};

/* `what`: of what there are so many; borrowed. */
void progress_start(struct progress *progress, const char *what, guint64 total);
/* `done` of the total, of a struct progress; may be called as often as liked. */
void progress_step(guint64 done, gpointer progress);
void progress_end(struct progress *progress);

#endif
