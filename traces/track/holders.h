/* SPDX-License-Identifier: Apache-2.0
 *
 * The holders of the live blocks at a moment, or, where a file has none, of the memory that is
 * mapped or allocated: bytes and blocks by the line of the program that requested them.
 */
#ifndef NPUSIM_TRACES_HOLDERS_H
#define NPUSIM_TRACES_HOLDERS_H

#include "memory.h"
#include "read/sites.h"

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
