/* SPDX-License-Identifier: Apache-2.0
 *
 * One moment of a replay: gathers what is shown of it, words its figures as sentences, and has the
 * table of its figures (its sums, its holders of memory, its maps), which show/manual.py reads,
 * too.
 */
#include "show.h"

#include "base/base.h"

void moment_view_init(struct moment_view *v, const struct replay_device *device,
		      const struct moment *moment)
{
	const struct memory *memory = &device->memory;
	const struct sites *sites = device->replay->trace->sites;
	g_autoptr(GPtrArray) blocks = memory_at(memory, moment, ALLOCATION_BLOCK);

	*v = (struct moment_view){
		.device = device,
		.moment = moment,
		.sites = sites,
		.holders = holders_of(memory, moment, sites),
		.blocks = blocks->len,
	};
	address_map_init(&v->map, memory, moment);
	frame_map_init(&v->frames, memory, moment, device->stats.usable_bytes);
	for (guint i = HOLDERS_SHOWN; i < v->holders->len; i++) {
		v->others.sites++;
		v->others.bytes += g_array_index(v->holders, struct holder, i).bytes;
		v->others.blocks += g_array_index(v->holders, struct holder, i).blocks;
	}
	g_array_set_size(v->holders, MIN(v->holders->len, HOLDERS_SHOWN));
	v->placed = v->map.live > 0 || moment->sums.live == 0;
}

void moment_view_clear(struct moment_view *v)
{
	g_array_unref(v->map.ranges);
	g_clear_pointer(&v->frames.ranges, g_array_unref);
	g_array_unref(v->holders);
}

#define SAY(...) g_string_append_printf(out, __VA_ARGS__)

static void say_moment(GString *out, const struct moment_view *v)
{
	const struct moment *m = v->moment;
	const struct memory_sums *s = &m->sums;
	g_autofree char *place = history_place(0, m->event);
	const struct {
		guint64 bytes;
		const char *what;
	} lost[] = { { (guint64)MAX(s->external, 0), "free between and beside blocks" },
		     { s->internal, "lost inside blocks" },
		     { s->rounding, "in pages that are larger than what was asked for" } };
	const char *before = " The rest: ";

	if (m->what == MOMENT_PEAK)
		SAY("Physical memory was at its most, %s, %s%s.", npu_size_words(s->physical),
		    m->event ? "after " : "at ", place);
	else
		SAY("%s %s there were %s of physical memory.", m->event ? "After" : "At", place,
		    npu_size_words(s->physical));
	if (s->physical == 0)
		return;
	if (!replay_tells_live(v->device)) {
		SAY(" The file does not tell what of it was in use.");
		return;
	}
	SAY(" %s of it %s live, in %s.", npu_size_words(s->live), s->live == 1 ? "was" : "were",
	    npu_counted(v->blocks, "block"));
	if (s->external < 0 && v->device->failed_size)
		SAY(" Some blocks have no memory: the device had no more.");
	else if (!replay_tells_fragmentation(v->device))
		SAY(" Some blocks lie in memory that the file does not tell of.");
	else
		for (guint i = 0; i < G_N_ELEMENTS(lost); i++) {
			if (lost[i].bytes == 0)
				continue;
			SAY("%s%s %s", before, npu_size_words(lost[i].bytes), lost[i].what);
			if (i == 0 && v->placed)
				SAY(" (the largest free range %s)",
				    npu_size_words(v->map.largest_free));
			before = ", ";
		}
	if (*before == ',')
		SAY(".");
}

/* What the device had; and why it did not do, by what was live and free: what would have fitted. */
static void say_failure(GString *out, const struct moment_view *v)
{
	const struct replay_device *d = v->device;
	const struct npu_stats *has = &d->failed_stats;
	const struct memory_sums *s = &v->moment->sums;
	guint64 unused = has->usable_bytes - MIN(has->used_bytes, has->usable_bytes);
	guint64 others = has->used_bytes - has->own_bytes;
	guint64 room = has->usable_bytes - MIN(others, has->usable_bytes);
	guint64 asked = d->failed_size, largest = v->map.largest_free;
	guint64 external = (guint64)MAX(s->external, 0), needed = s->live + s->internal + asked;
	g_autofree char *place = history_place(d->failed_line, d->failed_at);

	SAY("At %s the device had no room for %s more", place, npu_size_words(asked));
	if (site_text(v->sites, d->failed_site))
		SAY(", which %s asked for", site_text(v->sites, d->failed_site));
	SAY(".");
	if (has->size == 0)
		return;
	SAY(" The device had %s free of %s", npu_size_words(unused),
	    npu_size_words(has->usable_bytes));
	if (has->used_bytes > has->own_bytes)
		SAY(", with %s held by other processes", npu_size_words(others));
	SAY(".");
	if (asked >= GIB && has->free_giants == 0 && unused >= GIB)
		SAY(" No page of 1 GiB was whole.");
	if (!replay_tells_fragmentation(d))
		return;
	SAY(" The allocator held %s, of which %s were live", npu_size_words(s->physical),
	    npu_size_words(s->live));
	if (external > 0)
		SAY(" and %s free", npu_size_words(external));
	if (external > 0 && v->placed)
		SAY(", the largest free range %s", npu_size_words(largest));
	SAY(".");
	if (v->placed && external >= asked && largest < asked)
		SAY(" That is enough in sum, and no piece of it is large enough: fragmentation.");
	if (v->placed && largest >= asked && policy_is_own(d->replay->options.policy))
		SAY(" A range that large was free, and not for this request: of another stream or "
		    "pool, or not to be split.");
	SAY(" What was live and this request come to %s", npu_size_words(needed));
	if (needed > room)
		SAY(", more than the %s that there are: no allocator has room for it.",
		    npu_size_words(room));
	else
		SAY(" of %s: it would fit if all that is free lay together. Expandable segments "
		    "join what is free in whole steps of 20 MiB: --policy expandable shows whether "
		    "that is enough.",
		    npu_size_words(room));
}

/* What was free, in which pieces, and whose memory would have had room. */
static void say_recorded(GString *out, const struct moment_view *v)
{
	const struct recorded_oom *oom = &v->device->memory.file.oom;
	g_autofree char *place = history_place(0, v->moment->event);
	guint64 pieces = 0, pages = 0, room = v->moment->sums.physical + oom->free_bytes;

	SAY("At %s, where %s were asked for,", place, npu_size_words(oom->asked));
	if (!replay_tells_fragmentation(v->device)) {
		SAY(" the file does not tell what was free.");
		return;
	}
	for (guint i = 0; i < v->map.ranges->len; i++) {
		const struct map_range *r = &g_array_index(v->map.ranges, struct map_range, i);
		guint64 end = (r->start + r->length) / (2 * MIB) * 2 * MIB;
		if (r->used == 0 || r->live > 0)
			continue;
		pieces++;
		pages += end - MIN(end, round_up(r->start, 2 * MIB));
	}
	SAY(" %s of what the allocator held were free, in %s, the largest %s.",
	    npu_size_words((guint64)MAX(v->moment->sums.external, 0)), npu_counted(pieces, "piece"),
	    npu_size_words(v->map.largest_free));
	if (v->map.largest_free >= oom->asked)
		SAY(" One of them was large enough, and not for this request: of another stream or "
		    "pool, or not to be split.");
	else if (pages + oom->free_bytes >= oom->asked)
		SAY(" With expandable segments it could have been served: %s of them are whole "
		    "pages of 2 MiB, which can be mapped together with what the device has; "
		    "--policy expandable shows it.",
		    npu_size_words(pages));
	else if (v->moment->sums.live + oom->asked <= room)
		SAY(" Only without segments, as --policy native has none, could it have been "
		    "served: the pieces have too few whole pages.");
	else
		SAY(" No policy could have served it: what was live and this request come to more "
		    "than the %s that there were.",
		    npu_size_words(room));
}

char *recorded_oom_words(const struct recorded_oom *o)
{
	g_autofree char *place = history_place(0, o->event);
	guint64 unused = o->physical - MIN(o->live, o->physical);
	GString *out;

	if (o->event == 0)
		return NULL;
	out = g_string_new(NULL);
	SAY("At %s the allocator ran out of memory when this was recorded: it asked the device for "
	    "%s",
	    place, npu_size_words(o->asked));
	SAY(", which had %s free", npu_size_words(o->free_bytes));
	if (o->physical > 0)
		SAY(". The allocator held %s, of which blocks used %s", npu_size_words(o->physical),
		    npu_size_words(o->live));
	if (o->free_bytes >= o->asked)
		SAY(". The device had enough: a limit of the process "
		    "(set_per_process_memory_fraction), or memory in pieces, stood in the way.");
	else if (unused + o->free_bytes >= o->asked)
		SAY(". With what the allocator held and did not use it would have been enough: "
		    "fragmentation. --policy expandable shows whether expandable segments help.");
	else
		SAY(". With all that the allocator did not use it would not have been enough: it "
		    "is too much at a time, or another process held the rest.");
	return g_string_free(out, FALSE);
}

char *moment_words(const struct moment_view *v)
{
	gboolean failed = v->moment->what == MOMENT_OOM && v->device->failed_size > 0;
	gboolean recorded = v->moment->what == MOMENT_OOM && !failed;
	GString *out = g_string_new(NULL);

	(recorded ? say_recorded : failed ? say_failure : say_moment)(out, v);
	if (v->holders->len > 0 && (!recorded || replay_tells_fragmentation(v->device))) {
		const struct holder *h = &g_array_index(v->holders, struct holder, 0);
		SAY(" The largest holder: %s, %s in %s.", sites_label_text(h->sites, h->label),
		    npu_size_words(h->bytes), npu_counted(h->blocks, "block"));
	}
	return g_string_free(out, FALSE);
}

READ(char *, site_of_holder, holder, h, g_strdup(sites_label_text(h->sites, h->label)))

static void build_frames(JsonBuilder *b, gconstpointer at)
{
	const struct holder *h = at;

	for (guint f = 0; f < sites_depth(h->sites, h->site); f++)
		json_builder_add_string_value(b, sites_frame(h->sites, h->site, f));
}

static const struct member holders[] = {
	{ "site", MEMBER_TEXT, .text = site_of_holder,
	  .manual =
		  "The line of the program that requested the memory, as \"function (file:line)\". "
		  "It is the innermost frame that is the program's own Python; else Python of an "
		  "installed package other than torch; else C or C++ outside torch, CPython, libc "
		  "and the allocator; else the innermost frame of torch's Python, or with a file. "
		  "\"(before the file begins)\" stands for blocks that were live when the window "
		  "began, \"(no call site in the file)\" for those without frames." },
	{ "bytes", MEMBER_BYTES, AT(holder, bytes), "The requested sizes of its live blocks." },
	{ "blocks", MEMBER_COUNT, AT(holder, blocks), "The number of live blocks." },
	{ "frames", MEMBER_LIST, .build = build_frames,
	  .manual = "The list of frames, innermost first, of the stack with the largest part of "
		    "these bytes." },
	{ 0 },
};

static const struct member other_holders[] = {
	{ "sites", MEMBER_COUNT, AT(moment_view, others.sites) },
	{ "bytes", MEMBER_BYTES, AT(moment_view, others.bytes) },
	{ "blocks", MEMBER_COUNT, AT(moment_view, others.blocks),
	  "The number of call sites, and their bytes and blocks as above." },
	{ 0 },
};

READ(gboolean, is_placed, moment_view, v, v->placed)

#define OF_RANGE(part) COLUMN(moment_view, map.ranges, map_range, part)

static const struct member address_map[] = {
	{ "ranges", MEMBER_COUNT, AT(moment_view, map.count),
	  "The number of ranges. If there are more than 2000, adjacent ranges of together no more "
	  "than `merged_bytes` are merged." },
	{ "merged_bytes", MEMBER_BYTES, AT(moment_view, map.merged),
	  "As above; 0 means that none are merged." },
	{ "address", MEMBER_COUNT, OF_RANGE(start) },
	{ "bytes", MEMBER_BYTES, OF_RANGE(length),
	  "Lists of equal length, as are all that follow, with one entry per range. A range "
	  "without physical memory is reserved; adjacent ranges of the same kind are one range. As "
	  "recorded, addresses are those of the file; otherwise they are the model's." },
	{ "physical_bytes", MEMBER_BYTES, OF_RANGE(used),
	  "The bytes of the range that are backed by physical memory." },
	{ "live_bytes", MEMBER_BYTES, .has = is_placed, OF_RANGE(live),
	  "The bytes of the range that are live, including the allocator's rounding; left out if "
	  "no block lies in the memory shown: the blocks of a trace with calls have no "
	  "addresses." },
	{ 0 },
};

#define OF_RUN(part) COLUMN(moment_view, frames.ranges, map_range, part)

READ(gint64, frame_bytes, moment_view, v, (gint64)MAPS_FRAME_BYTES)

static const struct member frame_map[] = {
	{ "frame_bytes", MEMBER_BYTES, .whole = frame_bytes,
	  .manual = "The size of a frame, 2 MiB." },
	{ "runs", MEMBER_COUNT, AT(moment_view, frames.count) },
	{ "merged_frames", MEMBER_COUNT, AT(moment_view, frames.merged),
	  "As `ranges` and `merged_bytes` above, in frames." },
	{ "frame", MEMBER_COUNT, OF_RUN(start) },
	{ "count", MEMBER_COUNT, OF_RUN(length),
	  "Lists of equal length, as are all that follow, with one entry per run of frames: the "
	  "number of the first frame, and the number of frames." },
	{ "used_bytes", MEMBER_BYTES, OF_RUN(used), "The bytes in use in these frames." },
	{ "owner", MEMBER_COUNT, OF_RUN(owner),
	  "The owner of the frames, as the start address of the memory that lies there, in the "
	  "same addresses as `address_map`; 0: none of the replay's memory lies there; 1: several "
	  "allocations do." },
	{ 0 },
};

/* By enum moment_what. */
static const char *const names[] = { "peak", "oom", "end", "event", "time" };

READ(char *, moment_name, moment_view, v, g_strdup(names[v->moment->what]))
READ(char *, words, moment_view, v, moment_words(v))
READ(gboolean, has_live, moment_view, v, replay_tells_live(v->device))
READ(gboolean, has_losses, moment_view, v, replay_tells_fragmentation(v->device))
READ(gboolean, has_largest_free, moment_view, v, has_losses(v) && v->placed)
READ(gboolean, has_sites, moment_view, v, v->sites != NULL)
READ(gboolean, has_frames, moment_view, v, v->frames.ranges != NULL)

#define OF_SUMS(part) VIA(moment_view, moment, moment, sums.part)

const struct member figures_moment[] = {
	{ "moment", MEMBER_TEXT, .text = moment_name,
	  .manual = "\"peak\", the first event after which physical memory was at its maximum, "
		    "with as much of it live as at any such event; \"oom\", just before the "
		    "request that failed for lack of memory; \"end\", \"event\" or \"time\"." },
	{ "event", MEMBER_PLACE, VIA(moment_view, moment, moment, event),
	  "The number of the event just before this point, as in `series`." },
	{ "words", MEMBER_TEXT, .text = words, .no_figure = TRUE,
	  .manual = "A description of the point for human readers." },
	{ "physical_bytes", MEMBER_BYTES, OF_SUMS(physical) },
	{ "reserved_bytes", MEMBER_BYTES, OF_SUMS(reserved), "As defined under MEMORY below." },
	{ "live_bytes", MEMBER_BYTES, .has = has_live, OF_SUMS(live),
	  "Likewise; this and all following members are left out if the file does not record what "
	  "was live." },
	{ "blocks", MEMBER_COUNT, .has = has_live, AT(moment_view, blocks),
	  "The number of live blocks." },
	{ "internal_bytes", MEMBER_BYTES, OF_SUMS(internal), .has = has_losses },
	{ "external_bytes", MEMBER_BYTES, OF_SUMS(external), .has = has_losses, .is_signed = TRUE },
	{ "page_rounding_bytes", MEMBER_BYTES, .has = has_losses, OF_SUMS(rounding),
	  "As defined under MEMORY below; left out under the same conditions as in `series`." },
	{ "largest_free_bytes", MEMBER_BYTES, .has = has_largest_free,
	  AT(moment_view, map.largest_free),
	  "The longest stretch of physical memory without a live block, inside one classic "
	  "allocation or across consecutive mappings; left out if the address map has no "
	  "`live_bytes`." },
	{ "holders", MEMBER_LIST, .has = has_sites, .array = ARRAY_STRUCTS, .members = holders,
	  AT(moment_view, holders),
	  "A list of the call sites with the most live bytes, or where the file has no blocks, "
	  "with the most memory, at most 20, largest first; left out if the file has no call "
	  "sites." },
	{ "other_holders", MEMBER_OBJECT, .has = has_sites, .members = other_holders,
	  .manual = "The call sites that are not in the list: an object." },
	{ "address_map", MEMBER_OBJECT, .members = address_map, .no_figure = TRUE,
	  .manual = "What lies at each address: an object." },
	{ "frame_map", MEMBER_OBJECT, .has = has_frames, .members = frame_map, .no_figure = TRUE,
	  .manual = "The device's memory, in frames: an object; left out if the model does not "
		    "provide it." },
	{ 0 },
};
