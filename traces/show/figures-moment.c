/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures, of a moment: its sums, who held memory, and the maps. show/manual.py reads
 * it, too.
 */
#include "figures.h"

READ(char *, site_of_holder, holder, h,
     g_strdup(sites_label_text(RESULT(context)->replay->sites, h->label)))

static void build_frames(JsonBuilder *b, gconstpointer at, gconstpointer context)
{
	const struct sites *sites = RESULT(context)->replay->sites;
	const struct holder *h = at;

	json_builder_begin_array(b);
	for (guint f = 0; f < sites_depth(sites, h->site); f++)
		json_builder_add_string_value(b, sites_frame(sites, h->site, f));
	json_builder_end_array(b);
}

static const struct member holders[] = {
	{ "site", MEMBER_TEXT, 0,
	  "The line of the program that asked, as\n"
	  ".Qq function (file:line) .\n"
	  "It is the innermost frame that lies in no installed package (site-packages, "
	  "dist-packages), in no C++ name space of the frameworks, and not in Python "
	  "itself; where all do, the innermost one with a file.\n"
	  ".Qq (before the file begins)\n"
	  "stands for blocks that were there when the window began,\n"
	  ".Qq (no call site in the file)\n"
	  "for those without frames.",
	  .text = site_of_holder },
	{ "bytes", MEMBER_BYTES, AT(holder, bytes),
	  "Requested sizes of the live blocks that it asked for." },
	{ "blocks", MEMBER_COUNT, AT(holder, blocks), "How many." },
	{ "frames", MEMBER_LIST, 0,
	  "A list of up to eight frames, the innermost first, of the stack with the most "
	  "of these bytes.",
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
	{ "sites", MEMBER_COUNT, AT(moment_view, others.sites) },
	{ "bytes", MEMBER_BYTES, AT(moment_view, others.bytes) },
	{ "blocks", MEMBER_COUNT, AT(moment_view, others.blocks),
	  "As above, and how many call sites." },
	{ 0 },
};

READ(gboolean, is_placed, moment_view, v, v->placed)

static const struct member address_map[] = {
	{ "ranges", MEMBER_COUNT, AT(moment_view, addresses.count),
	  "How many ranges there are.\n"
	  "Where that is more than 2000, neighbours that come to no more than\n"
	  ".Ic merged_bytes\n"
	  "together are put together." },
	{ "merged_bytes", MEMBER_BYTES, AT(moment_view, addresses.merged_bytes),
	  "As above; 0: none are." },
	{ "address", MEMBER_COUNT, COLUMN(moment_view, addresses.ranges, map_range, address) },
	{ "bytes", MEMBER_BYTES, COLUMN(moment_view, addresses.ranges, map_range, bytes),
	  "Lists of one length, as all that follow: an entry a range.\n"
	  "A range without physical memory is reserved; neighbours of one kind are one "
	  "range.\n"
	  "Addresses are those of the file as recorded, and else the model's." },
	{ "physical_bytes", MEMBER_BYTES,
	  COLUMN(moment_view, addresses.ranges, map_range, physical),
	  "How many of these bytes have physical memory." },
	{ "live_bytes", MEMBER_BYTES, COLUMN(moment_view, addresses.ranges, map_range, live),
	  "How many of them are live, with the rounding of the allocator; left out where "
	  "none of the blocks lies in the memory that is shown: those of a trace with "
	  "calls have no addresses.",
	  .has = is_placed },
	{ 0 },
};

READ(gint64, frame_bytes, frame_map, f, (gint64)MAPS_FRAME_BYTES)

static const struct member frame_map[] = {
	{ "frame_bytes", MEMBER_BYTES, 0, "The size of a frame, 2 MiB.", .whole = frame_bytes },
	{ "runs", MEMBER_COUNT, AT(frame_map, count) },
	{ "merged_frames", MEMBER_COUNT, AT(frame_map, merged_frames),
	  "As\n"
	  ".Ic ranges\n"
	  "and\n"
	  ".Ic merged_bytes\n"
	  "above." },
	{ "frame", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, frame) },
	{ "count", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, count),
	  "Lists of one length, as all that follow, an entry a run of frames: the number "
	  "of the first, and how many." },
	{ "used_bytes", MEMBER_BYTES, COLUMN(frame_map, runs, frame_run, used),
	  "How many bytes of them are taken." },
	{ "owner", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, owner),
	  "Whose they are: the address at which it begins in the model's or the file's "
	  "addresses, as in\n"
	  ".Ic address_map ;\n"
	  "0: none of the replay's memory lies there; 1: several things do." },
	{ 0 },
};

static const char *const names[] = { [MOMENT_PEAK] = "peak",
				     [MOMENT_OOM] = "oom",
				     [MOMENT_END] = "end",
				     [MOMENT_EVENT] = "event",
				     [MOMENT_TIME] = "time" };

READ(char *, moment_name, moment_view, v, g_strdup(names[v->moment->what]))
READ(gint64, moment_event, moment_view, v, (gint64)v->moment->event)
READ(char *, words, moment_view, v, moment_words(v))
READ(gboolean, has_live, moment_view, v, replay_tells_live(v->device))
READ(gboolean, has_losses, moment_view, v,
     replay_tells_live(v->device) && replay_tells_fragmentation(v->device))
READ(gboolean, has_largest_free, moment_view, v, has_losses(v, context) && v->placed)
READ(gboolean, has_sites, moment_view, v, v->sites != NULL)
READ(gboolean, has_frames, moment_view, v, v->frames != NULL)
BUILD(build_frame_map, moment_view, v, frame_map, v->frames)

const struct member figures_moment[] = {
	{ "moment", MEMBER_TEXT, 0,
	  ".Qq peak ,\n"
	  "the first event after which physical memory was at its most and as much as "
	  "possible of it live;\n"
	  ".Qq oom ,\n"
	  "before the request that found no memory is counted;\n"
	  ".Qq end ,\n"
	  ".Qq event\n"
	  "or\n"
	  ".Qq time .",
	  .text = moment_name },
	{ "event", MEMBER_PLACE, 0,
	  "The number of the event that it comes after, as in\n"
	  ".Ic series .",
	  .whole = moment_event },
	{ "words", MEMBER_TEXT, 0, "The moment in words, for people.", .text = words,
	  .no_figure = TRUE },
	{ "physical_bytes", MEMBER_BYTES, AT(moment_view, sums.physical) },
	{ "reserved_bytes", MEMBER_BYTES, AT(moment_view, sums.reserved),
	  "As MEMORY below has them." },
	{ "live_bytes", MEMBER_BYTES, AT(moment_view, sums.live),
	  "The same; this and all that follow are left out where the file does not tell what was "
	  "live.",
	  .has = has_live },
	{ "blocks", MEMBER_COUNT, AT(moment_view, blocks), "How many blocks were live.",
	  .has = has_live },
	{ "internal_bytes", MEMBER_BYTES, AT(moment_view, sums.internal), .has = has_losses },
	{ "external_bytes", MEMBER_BYTES, AT(moment_view, sums.external), .has = has_losses,
	  .is_signed = TRUE },
	{ "page_rounding_bytes", MEMBER_BYTES, AT(moment_view, sums.rounding),
	  "As MEMORY below has them; left out as in\n"
	  ".Ic series .",
	  .has = has_losses },
	{ "largest_free_bytes", MEMBER_BYTES, AT(moment_view, addresses.largest_free),
	  "The longest stretch of physical memory without a live block: inside one classic "
	  "allocation, or in mappings that follow one another; left out where the address map has "
	  "no\n"
	  ".Ic live_bytes .",
	  .has = has_largest_free },
	{ "holders", MEMBER_LIST, 0,
	  "A list of the call sites with the most live bytes, at most 20, the largest "
	  "first; left out where the file has no call sites at all.",
	  .has = has_sites, .build = build_holders, .members = holders },
	{ "other_holders", MEMBER_OBJECT, 0, "What is not in the list: an object.",
	  .has = has_sites, .members = other_holders },
	{ "address_map", MEMBER_OBJECT, 0, "What lies at which address: an object.",
	  .members = address_map, .no_figure = TRUE },
	{ "frame_map", MEMBER_OBJECT, 0,
	  "The device's memory in frames: an object; left out where the model does not "
	  "tell.",
	  .has = has_frames, .build = build_frame_map, .members = frame_map, .no_figure = TRUE },
	{ 0 },
};
