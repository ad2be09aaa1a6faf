/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures to sentences.
 */
#include "result-words.h"

#include "format/units.h"

void moment_view_init(struct moment_view *v, const struct replay *replay,
		      const struct replay_device *device, const struct moment *moment)
{
	const struct allocation_table *table = &device->usage.table;
	g_autoptr(GPtrArray) blocks = allocation_table_at(table, moment, ALLOCATION_BLOCK);

	*v = (struct moment_view){
		.replay = replay,
		.device = device,
		.moment = moment,
		.sites = replay->sites,
		.addresses = address_map_new(table, moment),
		.frames = frame_map_new(table, moment, device->stats.hbm_bytes),
		.holders = holders_of(table, moment, replay->sites),
		.blocks = blocks->len,
	};
	v->placed = v->addresses->live > 0 || moment->sums.live == 0;
}

void moment_view_clear(struct moment_view *v)
{
	address_map_free(v->addresses);
	frame_map_free(v->frames);
	g_array_unref(v->holders);
}

const char *moment_name(const struct moment *moment)
{
	static const char *const names[] = { [MOMENT_PEAK] = "peak",
					     [MOMENT_OOM] = "oom",
					     [MOMENT_END] = "end",
					     [MOMENT_EVENT] = "event",
					     [MOMENT_TIME] = "time" };

	return names[moment->what];
}

const char *words_bytes(guint64 bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	static __thread char texts[16][32];
	static __thread guint next;
	char *text = texts[next++ % G_N_ELEMENTS(texts)];
	double value = (double)bytes;
	guint unit = 0;

	while (value >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
		value /= 1024;
		unit++;
	}
	g_snprintf(text, sizeof texts[0], unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
	return text;
}

/* "event 17", "line 3", "the start" */
static char *words_place(guint64 event, guint64 line)
{
	if (line)
		return g_strdup_printf("line %" G_GUINT64_FORMAT, line);
	if (event)
		return g_strdup_printf("event %" G_GUINT64_FORMAT, event);
	return g_strdup("the start");
}

/* ---- what there was ---- */

/* A part of a list: commas before all but the first. */
static void say_part(GString *out, gboolean *begun, guint64 bytes, const char *what)
{
	if (bytes == 0)
		return;
	g_string_append_printf(out, "%s%s %s", *begun ? ", " : "", words_bytes(bytes), what);
	*begun = TRUE;
}

static void say_lost(GString *out, const struct moment_view *v)
{
	const struct memory_sums *s = &v->moment->sums;
	guint64 external = (guint64)MAX(s->external, 0);
	gboolean begun = FALSE;

	if (external + s->internal + s->rounding == 0)
		return;
	g_string_append(out, " The rest: ");
	say_part(out, &begun, external, "free between and beside blocks");
	if (external && v->placed)
		g_string_append_printf(out, " (the largest free range %s)",
				       words_bytes(v->addresses->largest_free));
	say_part(out, &begun, s->internal, "lost inside blocks");
	say_part(out, &begun, s->rounding, "in pages that are larger than what was asked for");
	g_string_append_c(out, '.');
}

static void say_live(GString *out, const struct moment_view *v)
{
	const struct memory_sums *s = &v->moment->sums;

	if (!replay_tells_live(v->device)) {
		g_string_append(out, " The file does not tell what of it was in use.");
		return;
	}
	g_string_append_printf(out, " %s of it %s live, in %" G_GUINT64_FORMAT " block%s.",
			       words_bytes(s->live), s->live == 1 ? "was" : "were", v->blocks,
			       v->blocks == 1 ? "" : "s");
	if (replay_tells_fragmentation(v->device))
		say_lost(out, v);
	else
		g_string_append(out, " Some blocks lie in memory that the file does not tell of.");
}

static void say_holder(GString *out, const struct moment_view *v)
{
	if (v->holders->len == 0)
		return;
	const struct holder *h = &g_array_index(v->holders, struct holder, 0);
	g_string_append_printf(out, " The largest holder: %s, %s in %" G_GUINT64_FORMAT " block%s.",
			       sites_label_text(v->sites, h->label), words_bytes(h->bytes),
			       h->blocks, h->blocks == 1 ? "" : "s");
}

static void say_moment(GString *out, const struct moment_view *v)
{
	const struct moment *m = v->moment;
	g_autofree char *place = words_place(m->event, 0);

	if (m->what == MOMENT_PEAK)
		g_string_append_printf(out, "Physical memory was at its most, %s, %s%s.",
				       words_bytes(m->sums.physical), m->event ? "after " : "at ",
				       place);
	else
		g_string_append_printf(out, "%s %s there were %s of physical memory.",
				       m->event ? "After" : "At", place,
				       words_bytes(m->sums.physical));
	if (m->sums.physical > 0)
		say_live(out, v);
	say_holder(out, v);
}

/* ---- a lack of memory ---- */

static void say_device(GString *out, const struct npu_stats *s)
{
	guint64 used = MIN(s->used_bytes, s->usable_bytes);

	if (s->size == 0)
		return;
	g_string_append_printf(out, " The device had %s free of %s",
			       words_bytes(s->usable_bytes - used), words_bytes(s->usable_bytes));
	if (s->used_bytes > s->own_bytes)
		g_string_append_printf(out, ", with %s held by other processes",
				       words_bytes(s->used_bytes - s->own_bytes));
	g_string_append_c(out, '.');
}

/* Why, and what would have had room: from what was live, what was free, and what the device has. */
static void say_cause(GString *out, const struct moment_view *v)
{
	const struct replay_device *d = v->device;
	const struct memory_sums *s = &v->moment->sums;
	guint64 asked = d->failed_size, largest = v->addresses->largest_free;
	guint64 external = (guint64)MAX(s->external, 0), needed = s->live + s->internal + asked;
	guint64 others = d->failed_stats.used_bytes - d->failed_stats.own_bytes;
	guint64 room = d->failed_stats.usable_bytes - MIN(others, d->failed_stats.usable_bytes);

	if (d->failed_stats.size == 0 || !replay_tells_fragmentation(d))
		return;
	g_string_append_printf(out, " The allocator held %s, of which %s were live",
			       words_bytes(s->physical), words_bytes(s->live));
	if (external > 0)
		g_string_append_printf(out, " and %s free", words_bytes(external));
	if (external > 0 && v->placed)
		g_string_append_printf(out, ", the largest free range %s", words_bytes(largest));
	g_string_append_c(out, '.');
	if (v->placed && external >= asked && largest < asked)
		g_string_append(out, " That is enough in sum, and no piece of it is large enough: "
				     "fragmentation.");
	if (v->placed && largest >= asked && policy_is_own(v->replay->policy))
		g_string_append(out, " A range that large was free, and not for this request: of "
				     "another stream or pool, or not to be split.");
	if (needed > room)
		g_string_append_printf(out,
				       " What was live and this request come to %s, more than "
				       "the %s that there are: no allocator has room for it.",
				       words_bytes(needed), words_bytes(room));
	else
		g_string_append_printf(out,
				       " What was live and this request come to %s of %s: it "
				       "would fit if all that is free lay together. Expandable "
				       "segments join what is free in whole steps of 20 MiB: "
				       "--policy expandable shows whether that is enough.",
				       words_bytes(needed), words_bytes(room));
}

static void say_giants(GString *out, const struct npu_stats *s, guint64 asked)
{
	if (s->size == 0 || asked < GIB || s->free_giants > 0 ||
	    s->usable_bytes - MIN(s->used_bytes, s->usable_bytes) < GIB)
		return;
	g_string_append(out, " No page of 1 GiB was whole.");
}

static void say_failure(GString *out, const struct moment_view *v)
{
	const struct replay_device *d = v->device;
	g_autofree char *place = words_place(d->failed_at, d->failed_line);

	g_string_append_printf(out, "At %s the device had no room for %s more", place,
			       words_bytes(d->failed_size));
	if (v->sites && d->failed_site != SITE_NONE)
		g_string_append_printf(
			out, ", which %s asked for",
			sites_label_text(v->sites, sites_label(v->sites, d->failed_site)));
	g_string_append_c(out, '.');
	say_device(out, &d->failed_stats);
	say_giants(out, &d->failed_stats, d->failed_size);
	say_cause(out, v);
	say_holder(out, v);
}

char *moment_words(const struct moment_view *v)
{
	GString *out = g_string_new(NULL);

	if (v->moment->what == MOMENT_OOM)
		say_failure(out, v);
	else
		say_moment(out, v);
	return g_string_free(out, FALSE);
}
