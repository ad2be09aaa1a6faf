/* SPDX-License-Identifier: Apache-2.0
 *
 * The page that npusim report writes, and the history of a file as it has it: events, blocks,
 * segments, calls and call stacks, in columns of numbers. It replays nothing.
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
 * an allocator's), `uses` (what is known of blocks beside their lives, if anything: "copied or
 * filled", "read or written", "used"), `settings` (of the allocator, "name: value" a line),
 * `devices`
 * ([number, bytes that blocks are multiples of, 0: not known]), `verbs` (names by number), `texts`,
 * and `columns`: [name, values, bytes of a value]. A column has the lowest bytes of all its values
 * first, then the next higher ones, and so on. A name is "site.depth", or, of the first device,
 * "0.block.size": history-data.c lists them. */
char *history_data(const char *path, GError **error);

#endif
