/* SPDX-License-Identifier: Apache-2.0
 *
 * Aligns two histories: in step while lines are the same; where they diverge, windows of growing
 * size are searched for the nearest place at which three lines in a row agree again. No window is
 * searched twice without progress, so the time is proportional to the length of the histories.
 */
#include "diff.h"

#include <string.h>

#include "read/int-map.h"

#define CONTEXT    3
#define LOOK_FIRST 16u
#define LOOK_LAST  4096u
#define HUNK_LINES 80u /* that are shown; the rest is counted */

struct run {
	struct align *align;
	struct window *windows[2];
	struct int_map *pairs[2]; /* object of either -> the other's */
	guint limit, after;       /* lines that belong to the last place still */
	gboolean kept;            /* that place has a hunk */
	struct progress *progress;
	GError **error;
};

/* ---- pairs of objects ---- */

static gboolean are_pair(const struct run *run, guint64 a, guint64 b)
{
	const struct int_map_entry *of_a = int_map_find(run->pairs[0], a, 0),
				   *of_b = int_map_find(run->pairs[1], b, 0);

	if (a == 0 || b == 0)
		return a == b;
	/* both are new here: they may become one */
	if (of_a == NULL && of_b == NULL)
		return a >> 56 == b >> 56;
	return of_a && of_b && of_a->value == b;
}

static void pair(struct run *run, guint64 a, guint64 b)
{
	if (a == 0 || b == 0 || int_map_find(run->pairs[0], a, 0))
		return;
	int_map_put(run->pairs[0], a, 0, b);
	int_map_put(run->pairs[1], b, 0, a);
}

static gboolean ends(guint32 verb)
{
	return verb == NPU_TRACE_FREE || verb == NPU_TRACE_MFREE ||
	       verb == NPU_TRACE_SEGMENT_FREE || verb == NPU_TRACE_UNRESERVE;
}

static void unpair(struct run *run, int side, const struct tracker_line *l)
{
	struct int_map_entry *e =
		ends(l->item.record.verb) ? int_map_find(run->pairs[side], l->subject, 0) : NULL;
	if (e)
		int_map_remove(run->pairs[side], e);
}

static gboolean same(const struct run *run, const struct window_line *x,
		     const struct window_line *y)
{
	const struct tracker_line *a = &x->line, *b = &y->line;

	if (x->looks_free != y->looks_free)
		return FALSE;
	return (a->made == b->made) && (a->made || are_pair(run, a->subject, b->subject)) &&
	       are_pair(run, a->handle, b->handle) && are_pair(run, a->place, b->place) &&
	       are_pair(run, a->from, b->from);
}

/* One line of each, the same or one for the other. */
static void take_pair(struct run *run, const struct window_line *x, const struct window_line *y)
{
	const struct tracker_line *a = &x->line, *b = &y->line;

	if (a->made == b->made)
		pair(run, a->subject, b->subject);
	pair(run, a->handle, b->handle);
	pair(run, a->place, b->place);
	unpair(run, 0, a);
	unpair(run, 1, b);
}

/* ---- hunks ---- */

static void hunk_free(gpointer data)
{
	struct align_hunk *h = data;

	g_ptr_array_unref(h->lines);
	g_free(h);
}

static void refusal_free(gpointer data)
{
	struct align_refusal *r = data;

	g_free(r->text);
	g_free(r);
}

static char *text_of(char mark, const struct window_line *l)
{
	GString *text = g_string_new(NULL);

	g_string_append_c(text, mark);
	if (l->line.item.number == 0)
		g_string_append(text, "at the start: ");
	record_text(&l->line.item, text);
	return g_string_free(text, FALSE);
}

static struct align_hunk *last_hunk(const struct run *run)
{
	return g_ptr_array_index(run->align->hunks, run->align->hunks->len - 1);
}

/* A hunk that has gone on for long tells how long in the end. */
static void add_line(struct align_hunk *h, char mark, const struct window_line *l)
{
	gboolean shown = h->lines->len < HUNK_LINES;

	if (shown)
		g_ptr_array_add(h->lines, text_of(mark, l));
	for (int side = 0; side < 2; side++) {
		if (mark == (side ? '-' : '+'))
			continue;
		h->count[side]++;
		h->hidden[side] += !shown;
	}
}

static guint64 number_at(const struct window *w)
{
	const struct window_line *l = window_at(w, 0);

	return l ? l->line.item.number : window_taken(w) + 1;
}

/* NULL: there are enough. */
static struct align_hunk *open_hunk(struct run *run)
{
	if (run->after > 0)
		return run->kept ? last_hunk(run) : NULL;
	run->align->places++;
	run->kept = run->align->hunks->len < run->limit;
	if (!run->kept)
		return NULL;
	struct align_hunk *h = g_new0(struct align_hunk, 1);
	guint before =
		MIN(CONTEXT, MIN(window_past(run->windows[0]), window_past(run->windows[1])));
	h->lines = g_ptr_array_new_with_free_func(g_free);
	for (int side = 0; side < 2; side++) {
		const struct window_line *l = window_before(run->windows[side], before);
		h->start[side] = before ? l->line.item.number : number_at(run->windows[side]);
	}
	for (guint i = before; i > 0; i--)
		add_line(h, ' ', window_before(run->windows[0], i));
	g_ptr_array_add(run->align->hunks, h);
	return h;
}

static void add_lines(struct align_hunk *h, const struct window *w, int side, guint count)
{
	for (guint i = 0; i < count; i++)
		add_line(h, side ? '+' : '-', window_at(w, i));
}

static void end_hunks(const struct align *align)
{
	for (guint i = 0; i < align->hunks->len; i++) {
		struct align_hunk *h = g_ptr_array_index(align->hunks, i);
		for (int side = 0; side < 2; side++) {
			if (h->hidden[side])
				g_ptr_array_add(h->lines,
						g_strdup_printf("%c(%" G_GUINT64_FORMAT " more)",
								side ? '+' : '-', h->hidden[side]));
		}
	}
}

static void note_refusal(struct run *run, const struct window_line *x, const struct window_line *y)
{
	const struct window_line *lines[] = { x, y };
	gint64 codes[2] = { 0, 0 };
	guint64 numbers[2] = { 0, 0 };

	for (int side = 0; side < 2; side++) {
		if (lines[side] == NULL)
			continue;
		codes[side] = lines[side]->line.item.record.code;
		numbers[side] = lines[side]->line.item.number;
	}
	if ((codes[0] == 0) == (codes[1] == 0))
		return;
	if (run->align->refused++ >= run->limit)
		return;
	struct align_refusal *r = g_new0(struct align_refusal, 1);
	memcpy(r->number, numbers, sizeof numbers);
	memcpy(r->code, codes, sizeof codes);
	GString *text = g_string_new(NULL);
	record_text(&lines[codes[0] ? 0 : 1]->line.item, text);
	r->text = g_string_free(text, FALSE);
	g_ptr_array_add(run->align->refusals, r);
}

/* ---- getting on ---- */

static gboolean is_one_for_one(const struct run *run, guint count[2])
{
	if (count[0] != count[1])
		return FALSE;
	for (guint i = 0; i < count[0]; i++) {
		if (window_at(run->windows[0], i)->line.item.record.verb !=
		    window_at(run->windows[1], i)->line.item.record.verb)
			return FALSE;
	}
	return TRUE;
}

/* So many lines of either have no like in the other. */
static void differ(struct run *run, guint count[2])
{
	struct align *align = run->align;
	struct align_hunk *h = open_hunk(run);
	gboolean one_for_one = is_one_for_one(run, count);

	for (int side = 0; h && side < 2; side++)
		add_lines(h, run->windows[side], side, count[side]);
	if (one_for_one) {
		align->changed += count[0];
		for (guint i = 0; i < count[0]; i++) {
			const struct window_line *x = window_at(run->windows[0], i),
						 *y = window_at(run->windows[1], i);
			note_refusal(run, x, y);
			take_pair(run, x, y);
		}
	} else {
		align->removed += count[0];
		align->added += count[1];
		for (guint i = 0; i < count[0]; i++) {
			note_refusal(run, window_at(run->windows[0], i), NULL);
			unpair(run, 0, &window_at(run->windows[0], i)->line);
		}
		for (guint i = 0; i < count[1]; i++) {
			note_refusal(run, NULL, window_at(run->windows[1], i));
			unpair(run, 1, &window_at(run->windows[1], i)->line);
		}
	}
	run->after = CONTEXT;
	for (int side = 0; side < 2; side++)
		window_take(run->windows[side], count[side]);
}

static void go_on(struct run *run)
{
	take_pair(run, window_at(run->windows[0], 0), window_at(run->windows[1], 0));
	run->align->same++;
	if (run->after > 0 && run->kept)
		add_line(last_hunk(run), ' ', window_at(run->windows[0], 0));
	run->after -= run->after > 0;
	window_take(run->windows[0], 1);
	window_take(run->windows[1], 1);
}

/* Few lines: all pairs of places, the nearest first. */
static gboolean look_near(const struct run *run, guint count[2])
{
	guint64 grams[2][LOOK_FIRST + 1];
	guint lengths[2];

	for (int side = 0; side < 2; side++) {
		lengths[side] = MIN(window_grams(run->windows[side]), LOOK_FIRST + 1);
		for (guint i = 0; i < lengths[side]; i++)
			grams[side][i] = window_gram(run->windows[side], i);
	}
	for (guint far = 1; far + 1 < lengths[0] + lengths[1]; far++) {
		for (guint i = 0; i <= far && i < lengths[0]; i++) {
			if (far - i >= lengths[1] || grams[0][i] != grams[1][far - i])
				continue;
			count[0] = i;
			count[1] = far - i;
			return TRUE;
		}
	}
	return FALSE;
}

static gboolean look_far(const struct run *run, guint count[2])
{
	guint lengths[2] = { window_grams(run->windows[0]), window_grams(run->windows[1]) };
	guint best = G_MAXUINT;
	struct int_map *places = int_map_new();

	for (guint j = lengths[1]; j > 0; j--)
		int_map_put(places, window_gram(run->windows[1], j - 1), 0, j - 1);
	for (guint i = 0; i < lengths[0] && i < best; i++) {
		const struct int_map_entry *e =
			int_map_find(places, window_gram(run->windows[0], i), 0);
		if (e == NULL || i + e->value == 0 || i + e->value >= best)
			continue;
		best = i + (guint)e->value;
		count[0] = i;
		count[1] = (guint)e->value;
	}
	int_map_free(places);
	return best < G_MAXUINT;
}

static gboolean fill(struct run *run, guint lines)
{
	return window_fill(run->windows[0], lines, run->error) &&
	       window_fill(run->windows[1], lines, run->error);
}

static gboolean part(struct run *run)
{
	guint count[2];

	for (guint look = LOOK_FIRST; look <= LOOK_LAST; look *= 4) {
		if (!fill(run, look))
			return FALSE;
		if (look == LOOK_FIRST ? look_near(run, count) : look_far(run, count)) {
			differ(run, count);
			return TRUE;
		}
	}
	/* nothing alike so far: half of what was looked at is no more */
	for (int side = 0; side < 2; side++)
		count[side] = MIN(window_length(run->windows[side]), LOOK_LAST / 2);
	differ(run, count);
	return TRUE;
}

static gboolean run_all(struct run *run)
{
	for (;;) {
		if (!fill(run, 1))
			return FALSE;
		const struct window_line *x = window_at(run->windows[0], 0),
					 *y = window_at(run->windows[1], 0);
		if (x == NULL && y == NULL)
			return TRUE;
		if (x && y && same(run, x, y))
			go_on(run);
		else if (!part(run))
			return FALSE;
		progress_step(run->progress,
			      window_taken(run->windows[0]) + window_taken(run->windows[1]));
	}
}

struct align *align_run(const struct align_side sides[2], guint limit, struct progress *progress,
			GError **error)
{
	struct align *align = g_new0(struct align, 1);
	struct run run = { .align = align, .limit = limit, .progress = progress, .error = error };

	align->hunks = g_ptr_array_new_with_free_func(hunk_free);
	align->refusals = g_ptr_array_new_with_free_func(refusal_free);
	for (int side = 0; side < 2; side++) {
		run.windows[side] = window_new(sides[side].reader, sides[side].tracker);
		run.pairs[side] = int_map_new();
	}
	gboolean ok = run_all(&run);
	end_hunks(align);
	for (int side = 0; side < 2; side++) {
		window_free(run.windows[side]);
		int_map_free(run.pairs[side]);
	}
	if (ok)
		return align;
	align_free(align);
	return NULL;
}

void align_free(struct align *align)
{
	if (align == NULL)
		return;
	g_ptr_array_unref(align->hunks);
	g_ptr_array_unref(align->refusals);
	g_free(align);
}
