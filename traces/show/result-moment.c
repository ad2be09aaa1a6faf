/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments, holders, maps and latency, in the table and in JSON.
 */
#include "result-moment.h"

#include "json-out.h"
#include "result-words.h"

#define PRINTED_HOLDERS 5
#define LINE_COLUMNS    98
#define LINE_INDENT     4

/* ---- the table ---- */

/* Words on lines that are not too long. */
static void print_words(FILE *out, const char *text)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);
	gsize column = 0;

	for (guint i = 0; words[i]; i++) {
		gsize length = (gsize)g_utf8_strlen(words[i], -1);
		if (column > 0 && column + 1 + length > LINE_COLUMNS) {
			fputc('\n', out);
			column = 0;
		}
		if (column == 0)
			column = (gsize)fprintf(out, "%*s", i ? LINE_INDENT : 2, "");
		else
			column += (gsize)fprintf(out, " ");
		fputs(words[i], out);
		column += length;
	}
	fputc('\n', out);
}

static void print_holders(FILE *out, const struct moment_view *v)
{
	for (guint i = 0; i < v->holders->len && i < PRINTED_HOLDERS; i++) {
		const struct holder *h = &g_array_index(v->holders, struct holder, i);
		fprintf(out, "    %10s %8" G_GUINT64_FORMAT " block%s  %s\n", words_bytes(h->bytes),
			h->blocks, h->blocks == 1 ? " " : "s",
			sites_label_text(v->sites, h->label));
	}
}

static void print_missed(FILE *out, const struct moment *moment)
{
	if (moment->what == MOMENT_EVENT)
		fprintf(out, "  --at %" G_GUINT64_FORMAT ": the device has no such event\n",
			moment->wanted);
	if (moment->what == MOMENT_TIME)
		fprintf(out,
			"  --at %" G_GUINT64_FORMAT "us: no event of the device is so late, or "
			"the file has no times\n",
			moment->wanted);
}

void result_print_moments(FILE *out, const struct replay *replay, const struct replay_device *d)
{
	const struct allocation_table *table = &d->usage.table;
	struct moment_view v;

	for (guint m = 0; m < table->moment_count; m++) {
		const struct moment *moment = &table->moments[m];
		if (!moment->reached) {
			print_missed(out, moment);
			continue;
		}
		moment_view_init(&v, replay, d, moment);
		g_autofree char *words = moment_words(&v);
		print_words(out, words);
		print_holders(out, &v);
		moment_view_clear(&v);
	}
}

/* ---- JSON ---- */

static void build_sums(JsonBuilder *b, const struct moment_view *v)
{
	const struct memory_sums *s = &v->moment->sums;

	member_count(b, "physical_bytes", s->physical);
	member_count(b, "reserved_bytes", s->reserved);
	if (!replay_tells_live(v->device))
		return;
	member_count(b, "live_bytes", s->live);
	member_count(b, "blocks", v->blocks);
	if (!replay_tells_fragmentation(v->device))
		return;
	member_count(b, "internal_bytes", s->internal);
	member_int(b, "external_bytes", s->external);
	member_count(b, "page_rounding_bytes", s->rounding);
	if (v->placed)
		member_count(b, "largest_free_bytes", v->addresses->largest_free);
}

static void build_holder(JsonBuilder *b, const struct sites *sites, const struct holder *h)
{
	json_builder_begin_object(b);
	member_text(b, "site", sites_label_text(sites, h->label));
	member_count(b, "bytes", h->bytes);
	member_count(b, "blocks", h->blocks);
	json_builder_set_member_name(b, "frames");
	json_builder_begin_array(b);
	for (guint f = 0; f < sites_depth(sites, h->site); f++)
		json_builder_add_string_value(b, sites_frame(sites, h->site, f));
	json_builder_end_array(b);
	json_builder_end_object(b);
}

static void build_holders(JsonBuilder *b, const struct moment_view *v)
{
	guint64 bytes = 0, blocks = 0;
	guint shown = MIN(v->holders->len, RESULT_HOLDERS_MAX);

	if (v->sites == NULL)
		return;
	json_builder_set_member_name(b, "holders");
	json_builder_begin_array(b);
	for (guint i = 0; i < shown; i++)
		build_holder(b, v->sites, &g_array_index(v->holders, struct holder, i));
	json_builder_end_array(b);
	for (guint i = shown; i < v->holders->len; i++) {
		bytes += g_array_index(v->holders, struct holder, i).bytes;
		blocks += g_array_index(v->holders, struct holder, i).blocks;
	}
	json_builder_set_member_name(b, "other_holders");
	json_builder_begin_object(b);
	member_count(b, "sites", v->holders->len - shown);
	member_count(b, "bytes", bytes);
	member_count(b, "blocks", blocks);
	json_builder_end_object(b);
}

#define RANGE(member) G_STRUCT_OFFSET(struct map_range, member)
#define RUN(member)   G_STRUCT_OFFSET(struct frame_run, member)

static void build_maps(JsonBuilder *b, const struct moment_view *v)
{
	const struct address_map *a = v->addresses;
	const struct frame_map *f = v->frames;

	json_builder_set_member_name(b, "address_map");
	json_builder_begin_object(b);
	member_count(b, "ranges", a->count);
	member_count(b, "merged_bytes", a->merged_bytes);
	member_column(b, "address", a->ranges, RANGE(address));
	member_column(b, "bytes", a->ranges, RANGE(bytes));
	member_column(b, "physical_bytes", a->ranges, RANGE(physical));
	if (v->placed)
		member_column(b, "live_bytes", a->ranges, RANGE(live));
	json_builder_end_object(b);
	if (f == NULL)
		return;
	json_builder_set_member_name(b, "frame_map");
	json_builder_begin_object(b);
	member_count(b, "frame_bytes", MAPS_FRAME_BYTES);
	member_count(b, "runs", f->count);
	member_count(b, "merged_frames", f->merged_frames);
	member_column(b, "frame", f->runs, RUN(frame));
	member_column(b, "count", f->runs, RUN(count));
	member_column(b, "used_bytes", f->runs, RUN(used));
	member_column(b, "owner", f->runs, RUN(owner));
	json_builder_end_object(b);
}

void result_build_moments(JsonBuilder *b, const struct replay *replay,
			  const struct replay_device *d)
{
	const struct allocation_table *table = &d->usage.table;
	struct moment_view v;

	json_builder_set_member_name(b, "moments");
	json_builder_begin_array(b);
	for (guint m = 0; m < table->moment_count; m++) {
		if (!table->moments[m].reached)
			continue;
		moment_view_init(&v, replay, d, &table->moments[m]);
		g_autofree char *words = moment_words(&v);
		json_builder_begin_object(b);
		member_text(b, "moment", moment_name(v.moment));
		member_count(b, "event", v.moment->event);
		member_text(b, "words", words);
		build_sums(b, &v);
		build_holders(b, &v);
		build_maps(b, &v);
		json_builder_end_object(b);
		moment_view_clear(&v);
	}
	json_builder_end_array(b);
}

void result_build_failure(JsonBuilder *b, const struct replay *replay,
			  const struct replay_device *d)
{
	const struct npu_stats *s = &d->failed_stats;

	if (d->failed_size == 0)
		return;
	json_builder_set_member_name(b, "out_of_memory");
	json_builder_begin_object(b);
	member_count(b, d->failed_line ? "line" : "event",
		     d->failed_line ? d->failed_line : d->failed_at);
	member_count(b, "bytes", d->failed_size);
	if (replay->sites && d->failed_site != SITE_NONE)
		member_text(b, "site",
			    sites_label_text(replay->sites,
					     sites_label(replay->sites, d->failed_site)));
	if (s->size) {
		member_count(b, "device_free_bytes",
			     s->usable_bytes - MIN(s->used_bytes, s->usable_bytes));
		member_count(b, "largest_free_frames_bytes", s->largest_free_bytes);
		member_count(b, "free_1g_pages", s->free_giants);
	}
	json_builder_end_object(b);
}

/* ---- latency ---- */

/* Bins of a quarter of a doubling; those without calls are left out. */
#define FINE_BINS 16

static void build_histogram(JsonBuilder *b, const struct latency *l)
{
	g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(guint64));
	g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(guint64));

	for (guint bin = 0; bin < LATENCY_BINS; bin += FINE_BINS) {
		guint64 count = 0, end = latency_bin_end_ps(bin + FINE_BINS - 1) / 1000;
		for (guint i = 0; i < FINE_BINS; i++)
			count += l->bins[bin + i];
		if (count == 0)
			continue;
		g_array_append_val(ends, end);
		g_array_append_val(counts, count);
	}
	json_builder_set_member_name(b, "histogram");
	json_builder_begin_object(b);
	member_column(b, "up_to_ns", ends, 0);
	member_column(b, "calls", counts, 0);
	json_builder_end_object(b);
}

void result_build_latency(JsonBuilder *b, const struct latency *l)
{
	if (l == NULL)
		return;
	json_builder_set_member_name(b, "latency");
	json_builder_begin_object(b);
	member_count(b, "min_ns", l->min_ps / 1000);
	member_count(b, "p50_ns", latency_quantile_ps(l, 0.5) / 1000);
	member_count(b, "p90_ns", latency_quantile_ps(l, 0.9) / 1000);
	member_count(b, "p99_ns", latency_quantile_ps(l, 0.99) / 1000);
	member_count(b, "max_ns", l->max_ps / 1000);
	build_histogram(b, l);
	json_builder_end_object(b);
}
