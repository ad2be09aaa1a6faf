/* SPDX-License-Identifier: Apache-2.0
 *
 * Aligns two histories: in step while lines are the same; where they diverge, windows of growing
 * size are searched for the nearest place at which three lines in a row agree again. No window is
 * searched twice without progress, so the time is proportional to the length of the histories.
 */
#include "show.h"

#define CONTEXT    3
#define LOOK_FIRST 16u
#define LOOK_LAST  4096u
#define HUNK_LINES 80u /* that are shown; the rest is counted */
#define GRAM       3u
#define CLOSE_AT   8192u
#define AFTER_END  G_GUINT64_CONSTANT(0x9ddfea08eb382d69)

/* What a line looks like is a number: two lines that look the same do the same to things of the
 * same size. */
struct window_line {
	struct tracker_line line;
	guint64 looks;      /* with the size of what it frees */
	guint64 looks_free; /* without it */
};
/* One history: a window of its lines, those to come and a few that went before, in an array with a
 * gap at its front, which is closed now and then. */
struct side {
	struct trace *trace;
	struct tracker *tracker;
	GArray *lines; /* struct window_line */
	guint next;    /* in it */
	guint64 taken;
	gboolean ended;
	struct int_map *known; /* by tag: */
	guint streams;         /* in it */
};
enum { PAIR, STREAM }; /* object -> the other side's; stream -> order of appearance */
/* A place where they differ, as diff -u has it. */
struct hunk {
	guint64 start[2], count[2]; /* events of either, with those around */
	guint64 hidden[2];          /* of them, those that are not among the lines */
	JsonArray *lines;           /* "-alloc b1 size=512 device=0"; NULL: there are enough */
};
struct run {
	struct trace_diff *diff;
	struct side sides[2];
	guint after;      /* lines that belong to the last place still */
	struct hunk hunk; /* that place */
	GError **error;
};

static guint64 mix(guint64 h, guint64 value)
{
	h = (h ^ value) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static void look(struct side *w, struct window_line *l)
{
	const struct tracker_line *t = &l->line;
	const struct npu_trace_record *r = &t->item.record;
	gboolean frees = r->verb == NPU_TRACE_FREE || r->verb == NPU_TRACE_FREE_REQUESTED ||
			 r->verb == NPU_TRACE_SEGMENT_FREE;
	guint64 size = frees ? 0 : r->size, freed = frees ? r->size : 0, stream = 0, h = AFTER_END;
	guint64 device = (guint64)t->device, offset = (guint64)t->offset, code = (guint32)r->code;
	guint64 start = t->item.number == 0, op = r->op ? g_str_hash(r->op) : 0;

	if (r->verb == NPU_TRACE_ALLOC || segment_change(r->verb) > 0) {
		struct int_map_entry *e = int_map_add(w->known, r->stream, STREAM);
		stream = e->value = e->value ?: ++w->streams;
	}
	const guint64 what[] = { r->verb, device, code, size, offset, stream, op };
	const guint64 how[] = { r->flags,     r->align,       r->page_lg2, r->free_bytes,
				r->at.offset, r->from.offset, start };
	for (guint i = 0; i < G_N_ELEMENTS(what); i++)
		h = mix(mix(h, what[i]), how[i]);
	l->looks_free = h;
	l->looks = mix(h, t->had ? t->had : freed);
}

static guint length_of(const struct side *w)
{
	return w->lines->len - w->next;
}

/* A line to come, 0 the next, or below 0 one that went. NULL: there is none. */
static const struct window_line *line_at(const struct side *w, gint index)
{
	guint at = w->next + (guint)index;

	return at < w->lines->len ? &g_array_index(w->lines, struct window_line, at) : NULL;
}

/* Goes past lines. */
static void take(struct side *w, guint lines)
{
	w->next += lines;
	w->taken += lines;
}

static guint64 gram(const struct side *w, guint index)
{
	guint64 h = 0;

	for (guint i = 0; i < GRAM; i++) {
		const struct window_line *l = line_at(w, (gint)(index + i));
		h = mix(h, l ? l->looks : AFTER_END);
	}
	return h;
}

/* Equal for two things that came from the same lines, or may become one, both being new. */
static guint64 meaning(const struct side *w, guint64 thing)
{
	const struct int_map_entry *e = int_map_find(w->known, thing, PAIR);

	return e ? e->value : thing >> 56;
}

static void pair(struct run *run, guint64 a, guint64 b)
{
	if (a == 0 || b == 0 || int_map_find(run->sides[0].known, a, PAIR))
		return;
	int_map_put(run->sides[0].known, a, PAIR, b);
	int_map_put(run->sides[1].known, b, PAIR, b);
}

static void unpair(struct run *run, int side, const struct tracker_line *l)
{
	guint32 verb = l->item.record.verb;
	gboolean ends = verb == NPU_TRACE_FREE || verb == NPU_TRACE_MFREE ||
			verb == NPU_TRACE_SEGMENT_FREE || verb == NPU_TRACE_UNRESERVE;
	struct int_map_entry *e = int_map_find(run->sides[side].known, l->subject, PAIR);

	if (e && ends)
		int_map_remove(run->sides[side].known, e);
}

static gboolean same(const struct run *run, const struct window_line *x,
		     const struct window_line *y)
{
	const struct tracker_line *a = &x->line, *b = &y->line;

#define ALIKE(part) (meaning(&run->sides[0], a->part) == meaning(&run->sides[1], b->part))
	return x->looks_free == y->looks_free && a->made == b->made &&
	       (a->made || ALIKE(subject)) && ALIKE(handle) && ALIKE(place) && ALIKE(from);
#undef ALIKE
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

/* A mark of 0 is left out. */
static char *text_of(char mark, const struct record_item *item)
{
	const char prefix[] = { mark, '\0' };
	GString *text = g_string_new(prefix);

	if (mark && item->number == 0)
		g_string_append(text, "at the start: ");
	record_text(item, text);
	return g_string_free(text, FALSE);
}

/* A hunk that has gone on for long tells how long in the end. */
static void add_line(struct hunk *h, char mark, const struct window_line *l)
{
	gboolean shown = h->lines && json_array_get_length(h->lines) < HUNK_LINES;
	g_autofree char *text = shown ? text_of(mark, &l->line.item) : NULL;

	if (shown)
		json_array_add_string_element(h->lines, text);
	for (int side = 0; side < 2; side++) {
		if (mark == (side ? '-' : '+'))
			continue;
		h->count[side]++;
		h->hidden[side] += !shown;
	}
}

static void close_hunk(struct run *run)
{
	const struct hunk h = run->hunk;
	JsonObject *out;

	run->hunk = (struct hunk){ 0 };
	if (h.lines == NULL)
		return;
	out = json_object_new();
	for (int side = 0; side < 2; side++) {
		g_autofree char *more =
			g_strdup_printf("%c(" U64 " more)", side ? '+' : '-', h.hidden[side]);
		if (h.hidden[side])
			json_array_add_string_element(h.lines, more);
		json_object_set_int_member(out, side ? "b_start" : "a_start",
					   (gint64)h.start[side]);
		json_object_set_int_member(out, side ? "b_count" : "a_count",
					   (gint64)h.count[side]);
	}
	json_object_set_array_member(out, "lines", h.lines);
	json_array_add_object_element(json_node_get_array(run->diff->hunks), out);
}

/* A call that is not in one of the two has no number and no code there. */
static void note_refusal(struct run *run, const struct window_line *x, const struct window_line *y)
{
	const struct record_item *items[] = { x ? &x->line.item : NULL, y ? &y->line.item : NULL };
	gboolean of_a = x && items[0]->record.code != 0, of_b = y && items[1]->record.code != 0;

	if (of_a == of_b || run->diff->refused++ >= run->diff->figures.limit)
		return;
	JsonObject *refusal = json_object_new();
	g_autofree char *call = text_of('\0', items[of_b]);
	json_object_set_string_member(refusal, "call", call);
	for (int side = 0; side < 2; side++) {
		const struct record_item *item = items[side];
		if (item == NULL || item->number == 0)
			continue;
		json_object_set_int_member(refusal, side ? "b_event" : "a_event",
					   (gint64)item->number);
		json_object_set_int_member(refusal, side ? "b_code" : "a_code", item->record.code);
	}
	json_array_add_object_element(json_node_get_array(run->diff->refusals), refusal);
}

/* So many lines of either have no like in the other. */
static void differ(struct run *run, const guint count[2])
{
	guint before = MIN(CONTEXT, MIN(run->sides[0].next, run->sides[1].next));
	gboolean one_for_one = count[0] == count[1], opens = run->after == 0;

	if (opens)
		close_hunk(run);
	if (opens && run->diff->places++ < run->diff->figures.limit) {
		run->hunk.lines = json_array_new();
		for (int side = 0; side < 2; side++) {
			const struct window_line *l = line_at(&run->sides[side], -(gint)before);
			run->hunk.start[side] =
				l ? l->line.item.number : run->sides[side].taken + 1;
		}
		for (guint i = before; i > 0; i--)
			add_line(&run->hunk, ' ', line_at(&run->sides[0], -(gint)i));
	}
	for (gint i = 0; one_for_one && i < (gint)count[0]; i++)
		one_for_one = line_at(&run->sides[0], i)->line.item.record.verb ==
			      line_at(&run->sides[1], i)->line.item.record.verb;
	for (int side = 0; side < 2; side++) {
		for (gint i = 0; i < (gint)count[side]; i++) {
			const struct window_line *l = line_at(&run->sides[side], i);
			add_line(&run->hunk, side ? '+' : '-', l);
			if (one_for_one)
				continue;
			note_refusal(run, side ? NULL : l, side ? l : NULL);
			unpair(run, side, &l->line);
		}
	}
	for (gint i = 0; one_for_one && i < (gint)count[0]; i++) {
		const struct window_line *x = line_at(&run->sides[0], i),
					 *y = line_at(&run->sides[1], i);
		note_refusal(run, x, y);
		take_pair(run, x, y);
	}
	run->diff->changed += one_for_one ? count[0] : 0;
	run->diff->removed += one_for_one ? 0 : count[0];
	run->diff->added += one_for_one ? 0 : count[1];
	run->after = CONTEXT;
	for (int side = 0; side < 2; side++)
		take(&run->sides[side], count[side]);
}

/* The nearest two places, among the first `most` of each, from which on three lines agree. */
static gboolean look_for(const struct run *run, guint most, guint count[2])
{
	guint lengths[2], best = G_MAXUINT;
	struct int_map *places = int_map_new(sizeof(struct int_map_entry), NULL);

	/* of each place it is known what three lines from there on look like; behind the end of the
	 * history is a place, too */
	for (int side = 0; side < 2; side++) {
		guint length = length_of(&run->sides[side]);
		gboolean ended = run->sides[side].ended;
		lengths[side] = MIN(ended ? length + 1 : length - MIN(length, GRAM - 1), most);
	}
	/* the first two are what parted: one of them may be a place, not both */
	for (guint j = lengths[1]; j > 1; j--)
		int_map_put(places, gram(&run->sides[1], j - 1), 0, j - 1);
	for (guint i = 0; i < lengths[0] && i < best; i++) {
		const struct int_map_entry *e = int_map_find(places, gram(&run->sides[0], i), 0);
		if (e && i + e->value < best) {
			best = i + (guint)e->value;
			count[0] = i;
			count[1] = (guint)e->value;
		}
		if (i == 0 && lengths[1] > 0)
			int_map_put(places, gram(&run->sides[1], 0), 0, 0);
	}
	int_map_free(places);
	return best < G_MAXUINT;
}

/* Reads on until there are `lines` to come of either, or all. FALSE and error. */
static gboolean fill(struct run *run, guint lines)
{
	struct record_item item;

	for (int side = 0; side < 2; side++) {
		struct side *w = &run->sides[side];
		int more = 1;
		if (w->next > CLOSE_AT) {
			g_array_remove_range(w->lines, 0, w->next - CONTEXT);
			w->next = CONTEXT;
		}
		while (!w->ended && length_of(w) < lines &&
		       (more = trace_next(w->trace, &item, run->error)) > 0) {
			/* texts go with the line */
			item.record.op = g_intern_string(item.record.op);
			item.record.site = NULL;
			g_array_set_size(w->lines, w->lines->len + 1);
			struct window_line *l =
				&g_array_index(w->lines, struct window_line, w->lines->len - 1);
			tracker_step(w->tracker, &item, &l->line);
			look(w, l);
		}
		w->ended = w->ended || more == 0;
		if (more < 0)
			return FALSE;
	}
	return TRUE;
}

static gboolean part(struct run *run)
{
	guint count[2];

	for (guint look = LOOK_FIRST; look <= LOOK_LAST; look *= 4) {
		if (!fill(run, look))
			return FALSE;
		if (look_for(run, look == LOOK_FIRST ? look + 1 : G_MAXUINT, count)) {
			differ(run, count);
			return TRUE;
		}
	}
	/* nothing alike so far: half of what was looked at is no more */
	for (int side = 0; side < 2; side++)
		count[side] = MIN(length_of(&run->sides[side]), LOOK_LAST / 2);
	differ(run, count);
	return TRUE;
}

gboolean align_run(struct trace_diff *diff, struct tracker *const trackers[2], GError **error)
{
	struct run run = { .diff = diff, .error = error };
	struct side *sides = run.sides;
	struct progress bar;
	gboolean ok;

	diff->hunks = json_from_string("[]", NULL);
	diff->refusals = json_from_string("[]", NULL);
	for (int i = 0; i < 2; i++)
		sides[i] = (struct side){
			.trace = diff->traces[i],
			.tracker = trackers[i],
			.lines = g_array_new(FALSE, FALSE, sizeof(struct window_line)),
			.known = int_map_new(sizeof(struct int_map_entry), NULL),
		};
	progress_start(&bar, "events", diff->traces[0]->events + diff->traces[1]->events);
	while ((ok = fill(&run, 1))) {
		const struct window_line *x = line_at(&sides[0], 0), *y = line_at(&sides[1], 0);
		if (x == NULL && y == NULL)
			break;
		if (x && y && same(&run, x, y)) {
			take_pair(&run, x, y);
			diff->same++;
			if (run.after > 0) {
				add_line(&run.hunk, ' ', x);
				run.after--;
			}
			take(&sides[0], 1);
			take(&sides[1], 1);
		} else if (!(ok = part(&run))) {
			break;
		}
		progress_step(sides[0].taken + sides[1].taken, &bar);
	}
	progress_end(&bar);
	close_hunk(&run);
	for (int i = 0; i < 2; i++) {
		g_array_unref(sides[i].lines);
		int_map_free(sides[i].known);
	}
	return ok;
}
