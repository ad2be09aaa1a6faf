/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows the objects that the records of a trace name, from their creation to their end: which
 * device and which object a line refers to, and how much is live, in segments, mapped by calls and
 * reserved after it. For convert, diff and the page; a replay's player finds the model's objects by
 * it (its sums are those of memory.h). It is independent of the model and keeps no records: it
 * needs memory only for what is live at one time, and for sizes that differ.
 */
#ifndef NPUSIM_TRACES_OBJECT_TRACKER_H
#define NPUSIM_TRACES_OBJECT_TRACKER_H

#include "read/trace.h"

enum tracker_level {
	TRACKER_LIVE,     /* requested sizes of blocks that are handed out */
	TRACKER_SEGMENTS, /* of an allocator above */
	TRACKER_PHYSICAL, /* that calls got; of a trace without such calls, its segments */
	TRACKER_RESERVED, /* address space: of no device */
	TRACKER_LEVEL_COUNT
};
extern const char *const tracker_level_names[TRACKER_LEVEL_COUNT];

struct tracker_peak {
	guint64 bytes;
	guint64 number;  /* of the event that reached it first; 0: the start */
	guint64 host_ns; /* its time; 0: it has none */
};
struct tracker_device {
	gint64 device; /* first: the key; -1: the host; RECORD_NO_DEVICE: calls that are of no
			  device */
	guint64 now[TRACKER_LEVEL_COUNT];
	struct tracker_peak peak[TRACKER_LEVEL_COUNT];
	guint64 start[TRACKER_LEVEL_COUNT];
	guint64 count[NPU_TRACE_VERB_COUNT];  /* of the window */
	guint64 failed[NPU_TRACE_VERB_COUNT]; /* of them, calls that were refused */
	guint64 bytes[NPU_TRACE_VERB_COUNT];  /* that those which were not refused name */
	GHashTable *others;                   /* name -> how many: NPU_TRACE_NOTE and calls */
};
/* How often each of two traces asked for a size: of what gets memory. */
struct tracker_size {
	gint64 device; /* first three: the key */
	guint64 size;
	guint32 verb;
	guint64 count[2];
};
/* By their keys: a GCompareDataFunc. */
gint tracker_size_order(gconstpointer a, gconstpointer b, gpointer unused);

/* What a name stands for. */
struct object {
	guint64 id, size;
	guint64 bytes; /* of physical memory */
	gint64 device;
	gint64 first;    /* offset of what was mapped first */
	guint32 process; /* whose memory it is */
	guint32 references, maps;
	gboolean has_first;

	/* Of a replay's player alone. */
	void *p;                /* address, or handle */
	guint model_references; /* that the model knows of: an import is none of them */
	guint32 site;           /* who asked for it */
};
/* What is mapped into a reservation; it holds both. */
struct mapping {
	guint64 place, offset; /* first: the key; the reservation's id, and where in it */
	struct object *in, *object;
};

/* A line, and what it is about: equal for lines that are about one object. */
struct tracker_line {
	struct record_item item;
	gint64 device;   /* that it is about; RECORD_NO_DEVICE */
	guint64 subject; /* of its name; 0: none, or not known */
	guint64 handle;  /* of handle= and share= */
	guint64 place;   /* of at=, and of what a name without an own object lies in */
	guint64 from;    /* of src= */
	guint64 had;     /* bytes of what goes with it */
	gint64 offset;   /* into what the name means, from the first that was mapped there */
	gboolean made;   /* its subject is there from now on */
};
struct tracker {
	GTree *devices; /* of struct tracker_device, by number; RECORD_NO_DEVICE first */
	struct tracker_device none; /* what is of no device: address space that is reserved */
	GTree *sizes; /* of struct tracker_size, by key, which it owns: what lines ask for;
		       * borrowed, NULL at first */
	int side;     /* in its counts */
	GArray *gone; /* guint64: blocks that ended with the last line, and subjects whose physical
		       * memory went back */

	GHashTable *names; /* process << 32 | number, letter -> struct object * */
	GTree *maps;       /* of struct mapping */

	/* inside */
	gboolean calls;
	GHashTable *sets;  /* process << 32 | device -> how often it is set */
	guint64 last[128]; /* ids given out, by letter */
};

/* `calls`: the trace has calls that get memory. */
struct tracker *tracker_new(gboolean calls);
void tracker_free(struct tracker *tracker);
/* Adds one, and says what it is about. */
void tracker_step(struct tracker *tracker, const struct record_item *item,
		  struct tracker_line *out);
/* What a name stands for, or NULL; and what is mapped exactly there. */
struct object *tracker_object(const struct tracker *tracker, guint32 process,
			      const struct npu_trace_name *name);
struct mapping *tracker_mapping(const struct tracker *tracker, guint32 process,
				const struct npu_trace_name *place);
/* Of a table of names. */
struct object *object_of(const struct int_map_entry *entry);
/* Counts a DEVICE_SET or DEVICE_RESET: how often the process has set the device now. */
guint64 tracker_count_set(struct tracker *tracker, const struct npu_trace_record *record);
/* A device that lines were about; NULL: there is none of this number. */
struct tracker_device *tracker_find(const struct tracker *tracker, gint64 device);
/* The same, made if need be. */
struct tracker_device *tracker_device(struct tracker *tracker, gint64 device);
/* How many of a name there were: `others`. */
gsize tracker_count(const struct tracker_device *device, const char *name);

#endif
