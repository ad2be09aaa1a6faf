/* SPDX-License-Identifier: Apache-2.0
 *
 * What the records of a trace come to: which device a line is about, which thing, and how much was
 * live, in segments, mapped by calls, and reserved, after each: the sums of convert and diff, which
 * replay nothing (a replay has account.h). It asks no model, and keeps no record: memory is for
 * what lives at a time, and for the sizes that differ.
 */
#ifndef NPUSIM_TRACES_BOOKS_H
#define NPUSIM_TRACES_BOOKS_H

#include "feed.h"

enum books_level {
	BOOKS_LIVE,     /* requested sizes of blocks that are handed out */
	BOOKS_SEGMENTS, /* of an allocator above */
	BOOKS_PHYSICAL, /* that calls got; of a trace without such calls, its segments */
	BOOKS_RESERVED, /* address space: of no device */
	BOOKS_LEVEL_COUNT
};
const char *books_level_name(enum books_level level);

struct books_peak {
	guint64 bytes;
	guint64 number;  /* of the event that reached it first; 0: the start */
	guint64 host_ns; /* its time; 0: it has none */
};
struct books_device {
	gint64 device; /* -1: the host; FEED_NO_DEVICE: calls that are of no device */
	guint64 now[BOOKS_LEVEL_COUNT];
	struct books_peak peak[BOOKS_LEVEL_COUNT];
	guint64 start[BOOKS_LEVEL_COUNT];
	guint64 count[NPU_TRACE_VERB_COUNT];  /* of the window */
	guint64 failed[NPU_TRACE_VERB_COUNT]; /* of them, calls that were refused */
	guint64 bytes[NPU_TRACE_VERB_COUNT];  /* that those which were not refused name */
	GHashTable *others; /* name -> struct books_size: NPU_TRACE_NOTE and calls */
	GHashTable *sizes;  /* struct books_size, of what gets memory */
};
struct books_size {
	guint64 size; /* first two: the key */
	guint32 verb;
	guint64 count;
};

/* A line, and what it is about: equal for lines that are about one thing. */
struct books_line {
	struct feed_item item;
	gint64 device;   /* that it is about; FEED_NO_DEVICE */
	guint64 subject; /* of its name; 0: none, or not known */
	guint64 handle;  /* of handle= and share= */
	guint64 place;   /* of at=, and of what a name without an own thing lies in */
	guint64 from;    /* of src= */
	guint64 had;     /* bytes of what goes with it */
	gint64 offset;   /* into what the name means, from the first that was mapped there */
	guint32 stream;  /* in order of appearance, from 1 */
	gboolean made;   /* its subject is there from now on */
};
struct books;

/* `calls`: the trace has calls that get memory. */
struct books *books_new(gboolean calls);
void books_free(struct books *books);
/* Adds one, and says what it is about. */
void books_step(struct books *books, const struct feed_item *item, struct books_line *out);

/* The devices that lines were about, by number; FEED_NO_DEVICE first, where there are such. */
guint books_count(const struct books *books);
const struct books_device *books_at(const struct books *books, guint index);
const struct books_device *books_find(const struct books *books, gint64 device);
/* Address space that is reserved. */
guint64 books_reserved(const struct books *books);
const struct books_peak *books_reserved_peak(const struct books *books);

/* Whether a verb gets memory, or address space: its sizes are counted. */
gboolean books_gets(guint32 verb);

#endif
