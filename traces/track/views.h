/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of a memory at a moment. Maps: the addresses, and the frames of the device behind them;
 * neighbours in either list are merged if it is too long. Holders of the live blocks, or, where a
 * file has none, of the memory that is mapped or allocated: bytes and blocks by the line of the
 * program that requested them.
 */
#ifndef NPUSIM_TRACES_VIEWS_H
#define NPUSIM_TRACES_VIEWS_H

#include "memory.h"
#include "format/units.h"
#include "read/sites.h"

#define MAPS_RANGES_MAX  2000
#define MAPS_FRAME_BYTES (2 * MIB)

/* Addresses [address, address + bytes): `physical` of them have memory, `live` of that is taken by
 * live blocks. A range is reserved (0, 0), free (bytes, 0), live (bytes, bytes), or put together
 * from several. */
struct map_range {
	guint64 address, bytes, physical, live;
};
struct address_map {
	GArray *ranges;       /* struct map_range, sorted, apart */
	guint64 count;        /* of ranges before they were put together */
	guint64 merged_bytes; /* ranges of up to so many bytes were; 0: none */
	guint64 largest_free; /* bytes */
	guint64 live;         /* bytes of all ranges */
};
/* map->ranges is the caller's, to be freed. */
void address_map_init(struct address_map *map, const struct memory *memory,
		      const struct moment *moment);

#define FRAME_NOBODY  0 /* none of the replay's memory lies there */
#define FRAME_SEVERAL 1
/* Frames [frame, frame + count): `used` bytes of them belong to the memory at the address `owner`,
 * or to FRAME_SEVERAL. */
struct frame_run {
	guint64 frame, count, used, owner;
};
struct frame_map {
	GArray *runs; /* struct frame_run: all frames of the device, in order; NULL: it is not known
			 where the memory lies */
	guint64 count;         /* of runs before they were put together */
	guint64 merged_frames; /* as above */
};
/* map->runs is the caller's, to be freed. */
void frame_map_init(struct frame_map *map, const struct memory *memory, const struct moment *moment,
		    guint64 device_bytes);

struct holder {
	guint32 label, site; /* of sites.h; the site of the label with the most bytes */
	guint64 bytes, blocks;
	guint64 site_bytes; /* inside: of that site */
};

struct site_sum {
	gint64 bytes, blocks;
};
/* struct site_sum of each of `count` sites. */
GArray *holders_by_site(const struct memory *memory, const struct moment *moment, guint count);
/* struct holder, the largest first. `sites` may be NULL: the list is empty then. */
GArray *holders_of(const struct memory *memory, const struct moment *moment,
		   const struct sites *sites);

#endif
