/* SPDX-License-Identifier: Apache-2.0
 *
 * The page that npusim report writes, and the history of a file as it has it: events, blocks,
 * segments, calls and call stacks, in columns of numbers. It replays nothing; what a replay
 * measures is in its result.
 */
#ifndef NPUSIM_TRACES_PAGE_H
#define NPUSIM_TRACES_PAGE_H

#include <glib.h>

/* Before and after the place of its data: embed.py assembles it when npusim is built. */
extern const unsigned char report_page_before[], report_page_after[];
extern const unsigned long report_page_before_bytes, report_page_after_bytes;

/* The file as base64 of a zlib stream; to be freed. NULL and error where it cannot be read.
 *
 * The stream is the length of its head (4 bytes, little-endian), the head, and the columns. The
 * head is JSON: `time` ("host", "simulated" or "none"), `recorded` (blocks are what calls got, not
 * an allocator's), `copies` (there are some, or fills), `devices` (numbers), `verbs` (names by
 * number), `texts`, and `columns`: [name, values, bytes of a value]. A column has the lowest bytes
 * of all its values first, then the next higher ones, and so on. A name is "site.depth", or, of the
 * first device, "0.block.size":
 *
 * site.label, site.depth, site.frame   numbers of texts; frames of one stack after another's,
 *                                      innermost first
 * event.verb, event.number*, event.time* of each event: the number in the file (in the device's
 *                                      part of it where it has no calls), and nanoseconds
 * block.event*     event that made it, counted from 1; 0: it was there at the start
 * block.life       events until it was freed, counted from its own; 0: it never was
 * block.wait       events from the request to free it until then; 0: it was not asked for
 * block.address    0: not known
 * block.size, block.site, block.stream
 * block.used       events until a copy or a fill last touched it, plus 1; 0: none did
 * block.ended      site of what freed it ^ block.site, plus 1; 0: not known
 * row.event*       an event that is no block's, or that changes physical memory
 * row.address, row.size, row.site, row.stream
 * row.text         number + 1 of what a note or a call says, or 0
 * row.free         of an out of memory: bytes that were free
 * row.took         ns of a call as recorded, plus 1; 0: not known
 * row.physical*    physical memory after it
 *
 * Of columns with a *, what is packed is the difference d to the value before: 2 d where it grows,
 * -2 d - 1 where it shrinks. */
char *history_data(const char *path, GError **error);

#endif
