/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures: the objects of a result from the innermost on, and in front of each the
 * figures that follow from others. show/manual.py reads the rows' names and sentences for the
 * manual page.
 */
#include "figures.h"

#include <string.h>

/* A function of a row: `value`, of the struct `s` that the row is of, and the result `r`. */
#define READ(answer, name, type, s, value)                          \
	static answer name(gconstpointer at, gconstpointer context) \
	{                                                           \
		const struct type *s = at;                          \
		const struct result *r = context;                   \
		(void)s;                                            \
		(void)r;                                            \
		return value;                                       \
	}
/* The same of a row that builds an object: that of another struct, by its own table. */
#define BUILD(name, type, s, table, value)                                              \
	static void name(JsonBuilder *builder, gconstpointer at, gconstpointer context) \
	{                                                                               \
		const struct type *s = at;                                              \
		members_build_object(builder, table, value, context);                   \
	}

static double share(guint64 part, guint64 rest)
{
	return part + rest ? (double)part / (double)(part + rest) : 0;
}

/* ---- calls and copies ---- */

struct call_figures figures_of_calls(const struct replay_device *d, enum model_call call)
{
	return (struct call_figures){ .calls = d->window.count[call],
				      .refused = d->window.failed[call],
				      .ps = d->window.ps[call],
				      .latency = d->window.latency[call] };
}

struct call_figures figures_of_moves(const struct replay_device *d, enum model_move move)
{
	return (struct call_figures){ .calls = d->moves.count[move],
				      .refused = d->moves.failed[move],
				      .bytes = d->moves.bytes[move],
				      .ps = d->moves.ps[move] };
}

struct histogram {
	GArray *ends, *calls; /* guint64 */
};
static const struct member histogram[] = {
	{ "up_to_ns", MEMBER_COUNT, .array = ARRAY_COLUMN, MEMBER_AT(struct histogram, ends) },
	{ "calls", MEMBER_COUNT,
	  "Lists of one length: how many calls took longer than the entry before and at most as "
	  "long.\n"
	  "An entry ends where a time is a quarter, a half, three quarters or the whole of the way "
	  "to its double, counted in picoseconds from powers of two; entries without calls are "
	  "left out.",
	  .array = ARRAY_COLUMN, MEMBER_AT(struct histogram, calls) },
	{ 0 },
};

/* Bins of a quarter of a doubling; those without calls are left out. */
#define FINE_BINS 16

static void build_histogram(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct latency *l = at;
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
	const struct histogram h = { ends, counts };
	members_build_object(b, histogram, &h, context);
}

READ(gint64, quantile_50, latency, l, (gint64)latency_quantile_ps(l, 0.5))
READ(gint64, quantile_90, latency, l, (gint64)latency_quantile_ps(l, 0.9))
READ(gint64, quantile_99, latency, l, (gint64)latency_quantile_ps(l, 0.99))

static const struct member latency[] = {
	{ "min_ns", MEMBER_TIME, MEMBER_AT(struct latency, min_ps) },
	{ "p50_ns", MEMBER_TIME, .whole = quantile_50 },
	{ "p90_ns", MEMBER_TIME, .whole = quantile_90 },
	{ "p99_ns", MEMBER_TIME, .whole = quantile_99 },
	{ "max_ns", MEMBER_TIME,
	  "The shortest, what so many per cent of the calls did not exceed, and the longest.\n"
	  "The first and the last are exact, the others within 1.6 per cent, never too short.",
	  MEMBER_AT(struct latency, max_ps) },
	{ "histogram", MEMBER_OBJECT, "An object with the two members that follow.",
	  .build = build_histogram, .members = histogram, .no_figure = TRUE },
	{ 0 },
};

READ(gboolean, has_latency, call_figures, c, c->latency != NULL)
BUILD(build_latency, call_figures, c, latency, c->latency)

static const struct member calls[] = {
	{ "calls", MEMBER_COUNT, "How many.", MEMBER_AT(struct call_figures, calls) },
	{ "refused", MEMBER_COUNT, "How many of them the model answered with an error.",
	  MEMBER_AT(struct call_figures, refused) },
	{ "time_ns", MEMBER_TIME, "The time in them.", MEMBER_AT(struct call_figures, ps) },
	{ "latency", MEMBER_OBJECT,
	  "How long each of them took, refused or not: an object with the members that follow.",
	  .has = has_latency, .build = build_latency, .members = latency },
	{ 0 },
};
static const struct member any_calls[] = { { "", MEMBER_OBJECT, .members = calls }, { 0 } };

READ(double, bandwidth_of_moves, call_figures, c, c->ps ? c->bytes * 1e3 / c->ps : 0.0)

const struct member figures_moves[] = {
	{ "calls", MEMBER_COUNT, "How many.", MEMBER_AT(struct call_figures, calls) },
	{ "refused", MEMBER_COUNT, "How many of them the model answered with an error.",
	  MEMBER_AT(struct call_figures, refused) },
	{ "bytes", MEMBER_BYTES, "What they moved.", MEMBER_AT(struct call_figures, bytes) },
	{ "time_ns", MEMBER_TIME, "The time in them.", MEMBER_AT(struct call_figures, ps) },
	{ "bandwidth", MEMBER_REAL, .real = bandwidth_of_moves, .in_text_only = TRUE },
	{ 0 },
};
static const struct member any_moves[] = { { "", MEMBER_OBJECT, .members = figures_moves }, { 0 } };

/* ---- accesses ---- */

READ(double, bandwidth_of_reads, access_figures, a, a->ps ? a->bytes * 1e3 / a->ps : 0.0)
READ(double, tlb_hit_rate, access_figures, a, share(a->tlb_hits, a->tlb_misses))
READ(double, tlb_miss_rate, access_figures, a, share(a->tlb_misses, a->tlb_hits))
READ(double, row_hit_rate, access_figures, a, share(a->row_hits, a->row_misses))
READ(double, mean_walk_ns, access_figures, a, a->walks ? a->walk_ps / 1e3 / a->walks : 0.0)

const struct member figures_access[] = {
	{ "reads", MEMBER_COUNT, MEMBER_AT(struct access_figures, reads) },
	{ "bytes", MEMBER_BYTES, MEMBER_AT(struct access_figures, bytes) },
	{ "time_ns", MEMBER_TIME, "How often cores read, how much, and the time that it took.",
	  MEMBER_AT(struct access_figures, ps) },
	{ "tlb_requests", MEMBER_COUNT, MEMBER_AT(struct access_figures, tlb_requests) },
	{ "tlb_hits", MEMBER_COUNT, MEMBER_AT(struct access_figures, tlb_hits) },
	{ "tlb_misses", MEMBER_COUNT, "What the TLBs were asked for, what they had and had not.",
	  MEMBER_AT(struct access_figures, tlb_misses) },
	{ "walks", MEMBER_COUNT, MEMBER_AT(struct access_figures, walks) },
	{ "walk_ns", MEMBER_TIME, "Walks of the page table, and the time in them.",
	  MEMBER_AT(struct access_figures, walk_ps) },
	{ "hbm_bytes", MEMBER_BYTES, "What was read from HBM.",
	  MEMBER_AT(struct access_figures, hbm_bytes) },
	{ "row_hits", MEMBER_COUNT, MEMBER_AT(struct access_figures, row_hits) },
	{ "row_misses", MEMBER_COUNT, "Accesses to HBM whose row was open, and was not.",
	  MEMBER_AT(struct access_figures, row_misses) },
	{ "bandwidth", MEMBER_REAL, .real = bandwidth_of_reads, .in_text_only = TRUE },
	{ "tlb_hit_rate", MEMBER_REAL, .real = tlb_hit_rate, .in_text_only = TRUE },
	{ "tlb_miss_rate", MEMBER_REAL, .real = tlb_miss_rate, .in_text_only = TRUE },
	{ "row_hit_rate", MEMBER_REAL, .real = row_hit_rate, .in_text_only = TRUE },
	{ "mean_walk_ns", MEMBER_REAL, .real = mean_walk_ns, .in_text_only = TRUE },
	{ 0 },
};

/* ---- moments ---- */

READ(char *, site_of_holder, holder, h, g_strdup(sites_label_text(r->replay->sites, h->label)))

static void build_frames(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct sites *sites = ((const struct result *)context)->replay->sites;
	const struct holder *h = at;

	json_builder_begin_array(b);
	for (guint f = 0; f < sites_depth(sites, h->site); f++)
		json_builder_add_string_value(b, sites_frame(sites, h->site, f));
	json_builder_end_array(b);
}

static const struct member holders[] = {
	{ "site", MEMBER_TEXT,
	  "The line of the program that asked, as\n"
	  ".Qq function (file:line) .\n"
	  "It is the innermost frame that lies in no installed package (site-packages, "
	  "dist-packages), in no C++ name space of the frameworks, and not in Python itself; where "
	  "all do, the innermost one with a file.\n"
	  ".Qq (before the file begins)\n"
	  "stands for blocks that were there when the window began,\n"
	  ".Qq (no call site in the file)\n"
	  "for those without frames.",
	  .text = site_of_holder },
	{ "bytes", MEMBER_BYTES, "Requested sizes of the live blocks that it asked for.",
	  MEMBER_AT(struct holder, bytes) },
	{ "blocks", MEMBER_COUNT, "How many.", MEMBER_AT(struct holder, blocks) },
	{ "frames", MEMBER_LIST,
	  "A list of up to eight frames, the innermost first, of the stack with the most of these "
	  "bytes.",
	  .build = build_frames },
	{ 0 },
};

static void build_holders(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const GArray *all = ((const struct moment_view *)at)->holders;

	json_builder_begin_array(b);
	for (guint i = 0; i < MIN(all->len, HOLDERS_SHOWN); i++)
		members_build_object(b, holders, &g_array_index(all, struct holder, i), context);
	json_builder_end_array(b);
}

static const struct member other_holders[] = {
	{ "sites", MEMBER_COUNT, MEMBER_AT(struct moment_view, others.sites) },
	{ "bytes", MEMBER_BYTES, MEMBER_AT(struct moment_view, others.bytes) },
	{ "blocks", MEMBER_COUNT, "As above, and how many call sites.",
	  MEMBER_AT(struct moment_view, others.blocks) },
	{ 0 },
};

READ(gboolean, is_placed, moment_view, v, v->placed)

static const struct member address_map[] = {
	{ "ranges", MEMBER_COUNT,
	  "How many ranges there are.\n"
	  "Where that is more than 2000, neighbours that come to no more than\n"
	  ".Ic merged_bytes\n"
	  "together are put together.",
	  MEMBER_AT(struct moment_view, addresses.count) },
	{ "merged_bytes", MEMBER_BYTES, "As above; 0: none are.",
	  MEMBER_AT(struct moment_view, addresses.merged_bytes) },
	{ "address", MEMBER_COUNT,
	  MEMBER_COLUMN_OF(struct moment_view, addresses.ranges, struct map_range, address) },
	{ "bytes", MEMBER_BYTES,
	  "Lists of one length, as all that follow: an entry a range.\n"
	  "A range without physical memory is reserved; neighbours of one kind are one range.\n"
	  "Addresses are those of the file as recorded, and else the model's.",
	  MEMBER_COLUMN_OF(struct moment_view, addresses.ranges, struct map_range, bytes) },
	{ "physical_bytes", MEMBER_BYTES, "How many of these bytes have physical memory.",
	  MEMBER_COLUMN_OF(struct moment_view, addresses.ranges, struct map_range, physical) },
	{ "live_bytes", MEMBER_BYTES,
	  "How many of them are live, with the rounding of the allocator; left out where none of "
	  "the blocks lies in the memory that is shown: those of a trace with calls have no "
	  "addresses.",
	  .has = is_placed,
	  MEMBER_COLUMN_OF(struct moment_view, addresses.ranges, struct map_range, live) },
	{ 0 },
};

READ(gint64, frame_bytes, frame_map, f, (gint64)MAPS_FRAME_BYTES)

static const struct member frame_map[] = {
	{ "frame_bytes", MEMBER_BYTES, "The size of a frame, 2 MiB.", .whole = frame_bytes },
	{ "runs", MEMBER_COUNT, MEMBER_AT(struct frame_map, count) },
	{ "merged_frames", MEMBER_COUNT,
	  "As\n"
	  ".Ic ranges\n"
	  "and\n"
	  ".Ic merged_bytes\n"
	  "above.",
	  MEMBER_AT(struct frame_map, merged_frames) },
	{ "frame", MEMBER_COUNT,
	  MEMBER_COLUMN_OF(struct frame_map, runs, struct frame_run, frame) },
	{ "count", MEMBER_COUNT,
	  "Lists of one length, as all that follow, an entry a run of frames: the number of the "
	  "first, and how many.",
	  MEMBER_COLUMN_OF(struct frame_map, runs, struct frame_run, count) },
	{ "used_bytes", MEMBER_BYTES, "How many bytes of them are taken.",
	  MEMBER_COLUMN_OF(struct frame_map, runs, struct frame_run, used) },
	{ "owner", MEMBER_COUNT,
	  "Whose they are: the address at which it begins in the model's or the file's addresses, "
	  "as in\n"
	  ".Ic address_map ;\n"
	  "0: none of the replay's memory lies there; 1: several things do.",
	  MEMBER_COLUMN_OF(struct frame_map, runs, struct frame_run, owner) },
	{ 0 },
};

static char *moment_name(gconstpointer at, gconstpointer context)
{
	static const char *const names[] = { [MOMENT_PEAK] = "peak",
					     [MOMENT_OOM] = "oom",
					     [MOMENT_END] = "end",
					     [MOMENT_EVENT] = "event",
					     [MOMENT_TIME] = "time" };

	(void)context;
	return g_strdup(names[((const struct moment_view *)at)->moment->what]);
}

READ(gint64, moment_event, moment_view, v, (gint64)v->moment->event)
READ(char *, words, moment_view, v, moment_words(v))
READ(gboolean, has_live, moment_view, v, replay_tells_live(v->device))
READ(gboolean, has_losses, moment_view, v,
     replay_tells_live(v->device) && replay_tells_fragmentation(v->device))
READ(gboolean, has_largest_free, moment_view, v, has_losses(v, r) && v->placed)
READ(gboolean, has_sites, moment_view, v, v->sites != NULL)
READ(gboolean, has_frames, moment_view, v, v->frames != NULL)
BUILD(build_frame_map, moment_view, v, frame_map, v->frames)

static const struct member moments[] = {
	{ "moment", MEMBER_TEXT,
	  ".Qq peak ,\n"
	  "the first event after which physical memory was at its most and as much as possible of "
	  "it live;\n"
	  ".Qq oom ,\n"
	  "before the request that found no memory is counted;\n"
	  ".Qq end ,\n"
	  ".Qq event\n"
	  "or\n"
	  ".Qq time .",
	  .text = moment_name },
	{ "event", MEMBER_PLACE,
	  "The number of the event that it comes after, as in\n"
	  ".Ic series .",
	  .whole = moment_event },
	{ "words", MEMBER_TEXT, "The moment in words, for people.", .text = words,
	  .no_figure = TRUE },
	{ "physical_bytes", MEMBER_BYTES, MEMBER_AT(struct moment_view, sums.physical) },
	{ "reserved_bytes", MEMBER_BYTES, "As MEMORY below has them.",
	  MEMBER_AT(struct moment_view, sums.reserved) },
	{ "live_bytes", MEMBER_BYTES,
	  "The same; this and all that follow are left out where the file does not tell what was "
	  "live.",
	  .has = has_live, MEMBER_AT(struct moment_view, sums.live) },
	{ "blocks", MEMBER_COUNT, "How many blocks were live.", .has = has_live,
	  MEMBER_AT(struct moment_view, blocks) },
	{ "internal_bytes", MEMBER_BYTES, .has = has_losses,
	  MEMBER_AT(struct moment_view, sums.internal) },
	{ "external_bytes", MEMBER_BYTES, .has = has_losses, .is_signed = TRUE,
	  MEMBER_AT(struct moment_view, sums.external) },
	{ "page_rounding_bytes", MEMBER_BYTES,
	  "As MEMORY below has them; left out as in\n"
	  ".Ic series .",
	  .has = has_losses, MEMBER_AT(struct moment_view, sums.rounding) },
	{ "largest_free_bytes", MEMBER_BYTES,
	  "The longest stretch of physical memory without a live block: inside one classic "
	  "allocation, or in mappings that follow one another; left out where the address map has "
	  "no\n"
	  ".Ic live_bytes .",
	  .has = has_largest_free, MEMBER_AT(struct moment_view, addresses.largest_free) },
	{ "holders", MEMBER_LIST,
	  "A list of the call sites with the most live bytes, at most 20, the largest first; left "
	  "out where the file has no call sites at all.",
	  .has = has_sites, .build = build_holders, .members = holders },
	{ "other_holders", MEMBER_OBJECT, "What is not in the list: an object.", .has = has_sites,
	  .members = other_holders },
	{ "address_map", MEMBER_OBJECT, "What lies at which address: an object.",
	  .members = address_map, .no_figure = TRUE },
	{ "frame_map", MEMBER_OBJECT,
	  "The device's memory in frames: an object; left out where the model does not tell.",
	  .has = has_frames, .build = build_frame_map, .members = frame_map, .no_figure = TRUE },
	{ 0 },
};

static void build_moments(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct replay_device *d = at;
	const struct allocation_table *table = &d->usage.table;
	struct moment_view v;

	json_builder_begin_array(b);
	for (guint m = 0; m < table->moment_count; m++) {
		if (!table->moments[m].reached)
			continue;
		moment_view_init(&v, ((const struct result *)context)->replay, d,
				 &table->moments[m]);
		members_build_object(b, moments, &v, context);
		moment_view_clear(&v);
	}
	json_builder_end_array(b);
}

/* ---- a device ---- */

READ(gboolean, failed_at_line, replay_device, d, d->failed_line != 0)
READ(gboolean, failed_at_event, replay_device, d, d->failed_line == 0)
READ(gboolean, knows_device, replay_device, d, d->failed_stats.size != 0)
READ(gint64, device_free, replay_device, d,
     (gint64)(d->failed_stats.usable_bytes -
	      MIN(d->failed_stats.used_bytes, d->failed_stats.usable_bytes)))
READ(gint64, usable, replay_device, d, (gint64)d->stats.usable_bytes)
READ(char *, place_of_failure, replay_device, d,
     moment_place(d->failed_at, d->failed_line, "what was live at the start"))

static char *site_of_failure(gconstpointer at, gconstpointer context)
{
	const struct sites *sites = ((const struct result *)context)->replay->sites;
	guint32 site = ((const struct replay_device *)at)->failed_site;

	return sites && site != SITE_NONE
		       ? g_strdup(sites_label_text(sites, sites_label(sites, site)))
		       : NULL;
}

const struct member figures_failure[] = {
	{ "line", MEMBER_PLACE, "The line, of a trace that has calls.", .has = failed_at_line,
	  MEMBER_AT(struct replay_device, failed_line) },
	{ "event", MEMBER_PLACE,
	  "Else the number of the event in the device's history, counted from 1 (0: what was there "
	  "when "
	  "the window began).",
	  .has = failed_at_event, MEMBER_AT(struct replay_device, failed_at) },
	{ "bytes", MEMBER_BYTES, "What was asked for.",
	  MEMBER_AT(struct replay_device, failed_size) },
	{ "site", MEMBER_TEXT, "Who asked, where the file tells.", .text = site_of_failure },
	{ "device_free_bytes", MEMBER_BYTES, "Of the device at that time: what nobody held.",
	  .has = knows_device, .whole = device_free },
	{ "largest_free_frames_bytes", MEMBER_BYTES, "The longest run of frames that nobody held.",
	  .has = knows_device, MEMBER_AT(struct replay_device, failed_stats.largest_free_bytes) },
	{ "free_1g_pages", MEMBER_COUNT, "The pages of 1 GiB that could be had.",
	  .has = knows_device, MEMBER_AT(struct replay_device, failed_stats.free_giants) },
	{ "place", MEMBER_TEXT, .text = place_of_failure, .in_text_only = TRUE },
	{ "all_bytes", MEMBER_BYTES, .whole = usable, .in_text_only = TRUE },
	{ 0 },
};

/* Share of physical memory that no live block used when physical memory was at its peak. */
static double fragmentation(gconstpointer at, gconstpointer context)
{
	const struct memory_usage *u = &((const struct replay_device *)at)->usage;

	(void)context;
	return u->peak_physical ? 1.0 - (double)MIN(u->live_at_peak_physical, u->peak_physical) /
						  u->peak_physical
				: 0;
}

/* Bytes that the second-level TLB can cover with the pages that were in use at the peak. */
static guint64 tlb_reach_of(const struct npu_stats *s)
{
	guint64 page = s->leaves_1g > s->leaves_2m          ? 30
		       : s->leaves_2m >= s->leaves_4k / 512 ? 21
							    : 12;
	return s->tlb_l2_entries << page;
}

/* What the page table led to, by maps and by mallocs. */
static guint64 mapped_of(const struct npu_stats *s)
{
	return (s->leaves_4k << 12) + (s->leaves_2m << 21) + (s->leaves_1g << 30);
}

static gboolean has_moves(gconstpointer at, gconstpointer context)
{
	const struct model_moves *moves = &((const struct replay_device *)at)->moves;
	guint64 sum = 0;

	(void)context;
	for (int m = 0; m < MODEL_MOVE_COUNT; m++)
		sum += moves->count[m];
	return sum > 0;
}

READ(gint64, device_number, replay_device, d, d->device)
READ(gint64, vmm_calls, replay_device, d, (gint64)replay_calls(d))
READ(gint64, vmm_ps, replay_device, d, (gint64)replay_calls_ps(d))
READ(gint64, tlb_reach, replay_device, d, (gint64)tlb_reach_of(&d->stats))
READ(gint64, mapped, replay_device, d, (gint64)mapped_of(&d->stats))
READ(double, tlb_share, replay_device, d,
     mapped_of(&d->stats) ? MIN(100.0, 100.0 * tlb_reach_of(&d->stats) / mapped_of(&d->stats))
			  : 100.0)
READ(gint64, is_rounded, replay_device, d,
     d->failed_size == 0 && d->stats.own_peak_bytes != d->usage.peak_physical)
READ(gboolean, tells_live, replay_device, d, replay_tells_live(d))
READ(gint64, live_is_told, replay_device, d, replay_tells_live(d))
READ(gboolean, tells_losses, replay_device, d, replay_tells_fragmentation(d))
READ(gboolean, has_policy, replay_device, d, policy_is_own(r->replay->policy))
READ(gboolean, has_access, replay_device, d, r->replay->access.pattern != ACCESS_NONE)
READ(gboolean, has_failure, replay_device, d, d->failed_size != 0)

static void build_events(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct trace_device *t = ((const struct replay_device *)at)->trace;

	(void)context;
	json_builder_begin_object(b);
	for (int a = 0; a < TRACE_OTHER; a++) {
		if (t->counts[a] == 0)
			continue;
		json_builder_set_member_name(b, trace_action_name(a));
		json_builder_add_int_value(b, (gint64)t->counts[a]);
	}
	for (guint i = 0; i < t->other_names->len; i++) {
		json_builder_set_member_name(b, g_ptr_array_index(t->other_names, i));
		json_builder_add_int_value(b, (gint64)g_array_index(t->other_counts, guint64, i));
	}
	json_builder_end_object(b);
}

static void build_calls(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	json_builder_begin_object(b);
	for (int c = 0; c < MODEL_CALL_COUNT; c++) {
		const struct call_figures f = figures_of_calls(at, c);
		if (f.calls == 0)
			continue;
		json_builder_set_member_name(b, model_call_name(c));
		members_build_object(b, calls, &f, context);
	}
	json_builder_end_object(b);
}

static void build_moves(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	json_builder_begin_object(b);
	for (int m = 0; m < MODEL_MOVE_COUNT; m++) {
		const struct call_figures f = figures_of_moves(at, m);
		if (f.calls == 0)
			continue;
		json_builder_set_member_name(b, model_move_name(m));
		members_build_object(b, figures_moves, &f, context);
	}
	json_builder_end_object(b);
}

#define POLICY_EVENT(action) MEMBER_AT(struct replay_device, policy_counts[action])

static const struct member policy_events[] = {
	{ "segment_alloc", MEMBER_COUNT, POLICY_EVENT(TRACE_SEGMENT_ALLOC) },
	{ "segment_free", MEMBER_COUNT, POLICY_EVENT(TRACE_SEGMENT_FREE) },
	{ "segment_map", MEMBER_COUNT, POLICY_EVENT(TRACE_SEGMENT_MAP) },
	{ "segment_unmap", MEMBER_COUNT, "How often the allocator got and gave back memory.",
	  POLICY_EVENT(TRACE_SEGMENT_UNMAP) },
	{ "empty_cache", MEMBER_COUNT, "How often its cache was emptied.",
	  MEMBER_AT(struct replay_device, emptied) },
	{ 0 },
};

#define OF_POINT(part) \
	MEMBER_COLUMN_OF(struct replay_device, series.points, struct series_point, part)

static const struct member series[] = {
	{ "event", MEMBER_PLACE, "The number of the event, 0 for the start.", OF_POINT(event) },
	{ "live_bytes", MEMBER_BYTES, OF_POINT(sums.live) },
	{ "physical_bytes", MEMBER_BYTES, OF_POINT(sums.physical) },
	{ "reserved_bytes", MEMBER_BYTES, "As MEMORY below has them.", OF_POINT(sums.reserved) },
	{ "internal_bytes", MEMBER_BYTES, .has = tells_losses, OF_POINT(sums.internal) },
	{ "external_bytes", MEMBER_BYTES, .has = tells_losses, OF_POINT(sums.external) },
	{ "page_rounding_bytes", MEMBER_BYTES,
	  "The same, where the file tells what was live and all of it lay in memory that the file "
	  "tells of.",
	  .has = tells_losses, OF_POINT(sums.rounding) },
	{ 0 },
};

const struct member figures_device[] = {
	{ "device", MEMBER_COUNT, "Its number.", .whole = device_number },
	{ "events", MEMBER_MAP, "An object: the count of each action in the file, by its name.",
	  .build = build_events },
	{ "start_physical_bytes", MEMBER_BYTES, "Physical memory when the window began.",
	  MEMBER_AT(struct replay_device, usage.start_physical) },
	{ "start_live_bytes", MEMBER_BYTES,
	  "Requested sizes of the blocks that were live when the window began.",
	  MEMBER_AT(struct replay_device, usage.start_live) },
	{ "peak_physical_bytes", MEMBER_BYTES, "The most physical memory that was held.",
	  MEMBER_AT(struct replay_device, usage.peak_physical) },
	{ "peak_live_bytes", MEMBER_BYTES, "The most that was live.",
	  MEMBER_AT(struct replay_device, usage.peak_live) },
	{ "obtained_bytes", MEMBER_BYTES,
	  "Physical memory that was obtained since the window began, all in all.",
	  MEMBER_AT(struct replay_device, usage.obtained) },
	{ "live_at_physical_peak_bytes", MEMBER_BYTES,
	  "The most that was live while physical memory was at its peak.",
	  MEMBER_AT(struct replay_device, usage.live_at_peak_physical) },
	{ "fragmentation", MEMBER_REAL,
	  "The share of the physical peak that held no live block, 0 to 1; left out where the file "
	  "does not tell what was live.",
	  .has = tells_live, .real = fragmentation },
	{ "device_peak_bytes", MEMBER_BYTES,
	  "The most that the model's device gave to the replay, in whole pages.",
	  MEMBER_AT(struct replay_device, stats.own_peak_bytes) },
	{ "device_bytes", MEMBER_BYTES, "What programs can get of the model's device.",
	  MEMBER_AT(struct replay_device, stats.usable_bytes) },
	{ "vmm_calls", MEMBER_COUNT,
	  "How many calls that get, give and map memory were made since the window began.",
	  .whole = vmm_calls },
	{ "vmm_time_ns", MEMBER_TIME, "The time in them.", .whole = vmm_ps },
	{ "vmm_calls_by_kind", MEMBER_MAP,
	  "An object with a member for each function of the ACL that was called, such as "
	  "aclrtMapMem: an object.",
	  .build = build_calls, .members = any_calls },
	{ "page_table_bytes", MEMBER_BYTES, "The most that its page table took.",
	  MEMBER_AT(struct replay_device, stats.page_table_peak_bytes) },
	{ "tlb_reach_bytes", MEMBER_BYTES,
	  "How much the second-level TLB covers with pages of the size that was in use at the "
	  "peak.",
	  .whole = tlb_reach },
	{ "mapped_bytes_at_peak", MEMBER_BYTES,
	  "What the page table led to when physical memory was at its peak, by maps and by "
	  "mallocs.",
	  .whole = mapped },
	{ "unknown_frees", MEMBER_COUNT,
	  "Blocks that were given back without having been handed out, or handed out twice.",
	  MEMBER_AT(struct replay_device, usage.unmatched) },
	{ "differing_results", MEMBER_COUNT, "Recorded calls that the model answered otherwise.",
	  MEMBER_AT(struct replay_device, differing) },
	{ "calls_left_out", MEMBER_COUNT,
	  "Recorded calls that were not made, since what they name is not there.",
	  MEMBER_AT(struct replay_device, left_out) },
	{ "policy_events", MEMBER_OBJECT,
	  "Only under a policy: an object with what the allocator did since the window began.",
	  .has = has_policy, .members = policy_events },
	{ "blocks_without_memory", MEMBER_COUNT,
	  "Only under a policy: blocks that the device had no memory for.", .has = has_policy,
	  MEMBER_AT(struct replay_device, lost_blocks) },
	{ "access", MEMBER_OBJECT,
	  "Only where cores read\n"
	  ".Pq Fl -access :\n"
	  "an object with what the reads came to.",
	  .has = has_access, .members = figures_access, MEMBER_AT(struct replay_device, access) },
	{ "copies", MEMBER_MAP,
	  "Only where recorded copies or fills were made again: an object with the members\n"
	  ".Ic host_to_host , host_to_device , device_to_host , device_to_device\n"
	  "and\n"
	  ".Ic fill\n"
	  "that there were, each an object.\n"
	  "Copies between two devices are told of the one that they go to.",
	  .has = has_moves, .build = build_moves, .members = any_moves },
	{ "series", MEMBER_OBJECT,
	  "An object with lists of one length, at most 2000.\n"
	  "Of neighbouring events the one with the most physical memory is there, and of two alike "
	  "the one with the most that was live.",
	  .members = series },
	{ "out_of_memory", MEMBER_OBJECT,
	  "Only where the device ran out of memory: an object about the first time.",
	  .has = has_failure, .members = figures_failure },
	{ "moments", MEMBER_LIST,
	  "A list of objects, one for each moment: the peak, the first lack of memory if there was "
	  "one, and what\n"
	  ".Fl -at\n"
	  "says, as far as the device's history has it.",
	  .build = build_moments, .members = moments },
	{ "tells_live", MEMBER_FLAG, .whole = live_is_told, .in_text_only = TRUE },
	{ "is_rounded", MEMBER_FLAG, .whole = is_rounded, .in_text_only = TRUE },
	{ "tlb_entries", MEMBER_COUNT, MEMBER_AT(struct replay_device, stats.tlb_l2_entries),
	  .in_text_only = TRUE },
	{ "tlb_share", MEMBER_REAL, .real = tlb_share, .in_text_only = TRUE },
	{ 0 },
};

/* ---- the whole ---- */

READ(gint64, schema, result, w, RESULT_SCHEMA_VERSION)
READ(char *, program, result, w, g_strdup(RESULT_PROGRAM))
READ(char *, file, result, w, g_filename_display_name(w->path))
READ(char *, kind, result, w, g_strdup(w->trace->kind))
READ(char *, soc, result, w, g_strdup(w->replay->soc))
READ(char *, recorded_soc, result, w, g_strdup(w->trace->soc))
READ(char *, about, result, w, g_strdup(w->trace->about))
READ(gint64, events, result, w, (gint64)w->trace->events)
READ(gint64, events_done, result, w, (gint64)w->replay->done)
READ(char *, policy, result, w,
     g_strdup(policy_name(w->replay->policy ? w->replay->policy->kind : POLICY_AS_RECORDED)))
READ(char *, page, result, w,
     policy_is_own(w->replay->policy) ? g_strdup(w->replay->policy->page_1g ? "1g" : "2m") : NULL)
READ(char *, access_pattern, result, w, access_text(&w->replay->access))
READ(gint64, access_every, result, w, (gint64)w->replay->access.every)
READ(gboolean, in_phases, result, w, w->replay->access.every > 0)
READ(gint64, simulated, result, w, (gint64)w->replay->simulated_ps)
READ(gint64, wall, result, w, w->replay->wall_us)
READ(gint64, complete, result, w, !w->replay->interrupted)

/* A key that was set twice has its last value. */
static void build_options(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct policy_options *policy = ((const struct result *)at)->replay->policy;

	(void)context;
	json_builder_begin_object(b);
	for (guint i = 0; policy && i < policy->given->len; i++) {
		const char *setting = g_ptr_array_index(policy->given, i);
		const char *equals = strchr(setting, '=');
		g_autofree char *key = g_strndup(setting, (gsize)(equals - setting));
		json_builder_set_member_name(b, key);
		json_builder_add_string_value(b, equals + 1);
	}
	json_builder_end_object(b);
}

static void build_devices(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const GPtrArray *devices = ((const struct result *)at)->replay->devices;

	json_builder_begin_array(b);
	for (guint d = 0; d < devices->len; d++)
		members_build_object(b, figures_device, devices->pdata[d], context);
	json_builder_end_array(b);
}

const struct member figures_result[] = {
	{ "schema", MEMBER_COUNT, "The schema's version: 2.", .whole = schema },
	{ "program", MEMBER_TEXT, ".Qq npusim replay .", .text = program, .no_figure = TRUE },
	{ "file", MEMBER_TEXT, "The file's name as it was given.", .text = file,
	  .no_figure = TRUE },
	{ "kind", MEMBER_TEXT, "What the file is, in words.", .text = kind, .no_figure = TRUE },
	{ "soc", MEMBER_TEXT, "The SoC of the model.", .text = soc },
	{ "recorded_soc", MEMBER_TEXT, "The SoC that the file was recorded on, where it says so.",
	  .text = recorded_soc },
	{ "about", MEMBER_TEXT, "What was recorded, in words, where the file says so.",
	  .text = about, .no_figure = TRUE },
	{ "events", MEMBER_COUNT, "How many events the file has.", .whole = events },
	{ "events_done", MEMBER_COUNT, "How many of them were replayed.", .whole = events_done },
	{ "policy", MEMBER_TEXT,
	  "Whose memory served the blocks:\n"
	  ".Fl -policy .",
	  .text = policy },
	{ "page", MEMBER_TEXT,
	  "The pages of a policy,\n"
	  ".Qq 2m\n"
	  "or\n"
	  ".Qq 1g ;\n"
	  "left out as recorded.",
	  .text = page },
	{ "options", MEMBER_MAP,
	  "An object with each\n"
	  ".Fl -set ,\n"
	  "key and value as text.",
	  .build = build_options },
	{ "access", MEMBER_TEXT,
	  "The pattern of\n"
	  ".Fl -access .",
	  .text = access_pattern },
	{ "access_every", MEMBER_COUNT,
	  "The events of a phase,\n"
	  ".Fl -access-every ;\n"
	  "left out where reads come with blocks.",
	  .has = in_phases, .whole = access_every },
	{ "simulated_ns", MEMBER_TIME, "Simulated time from the first event to the last.",
	  .whole = simulated },
	{ "wall_us", MEMBER_COUNT, "Time that the replay took here, in microseconds.",
	  .whole = wall, .no_figure = TRUE },
	{ "complete", MEMBER_FLAG, "False if the replay was interrupted.", .whole = complete },
	{ "devices", MEMBER_LIST, "A list of objects, one for each device that the file uses.",
	  .build = build_devices, .members = figures_device, .no_figure = TRUE },
	{ 0 },
};
