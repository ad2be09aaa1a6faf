/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures of a moment: its sums, its holders of memory, and its maps. show/manual.py
 * reads it, too.
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
	  "The line of the program that requested the memory, as \"function (file:line)\". It is "
	  "the innermost frame that is the program's own Python; else Python of an installed "
	  "package other than torch; else C or C++ outside torch, CPython, libc and the allocator; "
	  "else the innermost frame of torch's Python, or with a file. \"(before the file "
	  "begins)\" stands for blocks that were live when the window began, \"(no call site in "
	  "the file)\" for those without frames.",
	  .text = site_of_holder },
	{ "bytes", MEMBER_BYTES, AT(holder, bytes), "The requested sizes of its live blocks." },
	{ "blocks", MEMBER_COUNT, AT(holder, blocks), "The number of live blocks." },
	{ "frames", MEMBER_LIST, 0,
	  "The list of frames, innermost first, of the stack with the largest part of these bytes.",
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
	  "The number of call sites, and their bytes and blocks as above." },
	{ 0 },
};

READ(gboolean, is_placed, moment_view, v, v->placed)

#define OF_RANGE(part) THROUGH(moment_view, map), COLUMN(address_map, ranges, map_range, part)

static const struct member address_map[] = {
	{ "ranges", MEMBER_COUNT, VIA(moment_view, map, address_map, count),
	  "The number of ranges. If there are more than 2000, adjacent ranges of together no more "
	  "than `merged_bytes` are merged." },
	{ "merged_bytes", MEMBER_BYTES, VIA(moment_view, map, address_map, merged_bytes),
	  "As above; 0 means that none are merged." },
	{ "address", MEMBER_COUNT, OF_RANGE(address) },
	{ "bytes", MEMBER_BYTES, OF_RANGE(bytes),
	  "Lists of equal length, as are all that follow, with one entry per range. A range "
	  "without physical memory is reserved; adjacent ranges of the same kind are one range. As "
	  "recorded, addresses are those of the file; otherwise they are the model's." },
	{ "physical_bytes", MEMBER_BYTES, OF_RANGE(physical),
	  "The bytes of the range that are backed by physical memory." },
	{ "live_bytes", MEMBER_BYTES, OF_RANGE(live),
	  "The bytes of the range that are live, including the allocator's rounding; left out if "
	  "no block lies in the memory shown: the blocks of a trace with calls have no addresses.",
	  .has = is_placed },
	{ 0 },
};

READ(gint64, frame_bytes, frame_map, f, (gint64)MAPS_FRAME_BYTES)

static const struct member frame_map[] = {
	{ "frame_bytes", MEMBER_BYTES, 0, "The size of a frame, 2 MiB.", .whole = frame_bytes },
	{ "runs", MEMBER_COUNT, AT(frame_map, count) },
	{ "merged_frames", MEMBER_COUNT, AT(frame_map, merged_frames),
	  "As `ranges` and `merged_bytes` above, in frames." },
	{ "frame", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, frame) },
	{ "count", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, count),
	  "Lists of equal length, as are all that follow, with one entry per run of frames: the "
	  "number of the first frame, and the number of frames." },
	{ "used_bytes", MEMBER_BYTES, COLUMN(frame_map, runs, frame_run, used),
	  "The bytes in use in these frames." },
	{ "owner", MEMBER_COUNT, COLUMN(frame_map, runs, frame_run, owner),
	  "The owner of the frames, as the start address of the memory that lies there, in the "
	  "same addresses as `address_map`; 0: none of the replay's memory lies there; 1: several "
	  "allocations do." },
	{ 0 },
};

static const char *const names[] = { [MOMENT_PEAK] = "peak",
				     [MOMENT_OOM] = "oom",
				     [MOMENT_END] = "end",
				     [MOMENT_EVENT] = "event",
				     [MOMENT_TIME] = "time" };

READ(char *, moment_name, moment_view, v, g_strdup(names[v->moment->what]))
READ(char *, words, moment_view, v, moment_words(v))
READ(gboolean, has_live, moment_view, v, replay_tells_live(v->device))
READ(gboolean, has_losses, moment_view, v,
     replay_tells_live(v->device) && replay_tells_fragmentation(v->device))
READ(gboolean, has_largest_free, moment_view, v, has_losses(v, context) && v->placed)
READ(gboolean, has_sites, moment_view, v, v->sites != NULL)

const struct member figures_moment[] = {
	{ "moment", MEMBER_TEXT, 0,
	  "\"peak\", the first event after which physical memory was at its maximum, with as much "
	  "of it live as at any such event; \"oom\", just before the request that failed for lack "
	  "of memory; \"end\", \"event\" or \"time\".",
	  .text = moment_name },
	{ "event", MEMBER_PLACE, VIA(moment_view, moment, moment, event),
	  "The number of the event just before this point, as in `series`." },
	{ "words", MEMBER_TEXT, 0, "A description of the point for human readers.", .text = words,
	  .no_figure = TRUE },
	{ "physical_bytes", MEMBER_BYTES, AT(moment_view, sums.physical) },
	{ "reserved_bytes", MEMBER_BYTES, AT(moment_view, sums.reserved),
	  "As defined under MEMORY below." },
	{ "live_bytes", MEMBER_BYTES, AT(moment_view, sums.live),
	  "Likewise; this and all following members are left out if the file does not record what "
	  "was live.",
	  .has = has_live },
	{ "blocks", MEMBER_COUNT, AT(moment_view, blocks), "The number of live blocks.",
	  .has = has_live },
	{ "internal_bytes", MEMBER_BYTES, AT(moment_view, sums.internal), .has = has_losses },
	{ "external_bytes", MEMBER_BYTES, AT(moment_view, sums.external), .has = has_losses,
	  .is_signed = TRUE },
	{ "page_rounding_bytes", MEMBER_BYTES, AT(moment_view, sums.rounding),
	  "As defined under MEMORY below; left out under the same conditions as in `series`.",
	  .has = has_losses },
	{ "largest_free_bytes", MEMBER_BYTES, VIA(moment_view, map, address_map, largest_free),
	  "The longest stretch of physical memory without a live block, inside one classic "
	  "allocation or across consecutive mappings; left out if the address map has no "
	  "`live_bytes`.",
	  .has = has_largest_free },
	{ "holders", MEMBER_LIST, 0,
	  "A list of the call sites with the most live bytes, or where the file has no blocks, "
	  "with the most memory, at most 20, largest first; left out if the file has no call "
	  "sites.",
	  .has = has_sites, .build = build_holders, .members = holders },
	{ "other_holders", MEMBER_OBJECT, 0, "The call sites that are not in the list: an object.",
	  .has = has_sites, .members = other_holders },
	{ "address_map", MEMBER_OBJECT, 0, "What lies at each address: an object.",
	  .members = address_map, .no_figure = TRUE },
	{ "frame_map", MEMBER_OBJECT, THROUGH(moment_view, frames),
	  .manual = "The device's memory, in frames: an object; left out if the model does not "
		    "provide it.",
	  .members = frame_map, .no_figure = TRUE },
	{ 0 },
};
