/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte units that are powers of two, and rounding to them.
 */
#ifndef NPUSIM_TRACES_UNITS_H
#define NPUSIM_TRACES_UNITS_H

#include <glib.h>

#define KIB (G_GUINT64_CONSTANT(1) << 10)
#define MIB (G_GUINT64_CONSTANT(1) << 20)
#define GIB (G_GUINT64_CONSTANT(1) << 30)

/* Up to a multiple. */
static inline guint64 round_up(guint64 size, guint64 to)
{
	return size / to * to + (size % to ? to : 0);
}

/* Bytes of the pages that an aclrtMalloc of `size` bytes takes: of 4 KiB up to 1 MiB, of 2 MiB
 * above. */
static inline guint64 malloc_pages(guint64 size)
{
	return round_up(size, size > MIB ? 2 * MIB : 4 * KIB);
}

#endif
