/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracker: what was live, held, mapped and reserved over a history. The same levels count it as
 * the file tells it and as it is replayed. Two indexes answer two kinds of question. By name
 * (struct tracker): which object does this record mean? Calls name what they are about; its address
 * differs between two recordings, and between a recording and its replay. By address (struct
 * memory), for one device: what lies here, now or at a marked moment, what does it overlap, and
 * which frames are behind it? Names have no extent, and most kinds of file have none. Convert, diff
 * and the page go by name. A replay needs both: its player finds the model's objects by name, and
 * their physical memory counts in the levels of its device's memory. Neither knows the model.
 */
#ifndef NPUSIM_TRACES_MEMORY_H
#define NPUSIM_TRACES_MEMORY_H

#include "format/input.h"
#include "read/trace.h"

/* ---- levels.c: bytes of each kind, now, at the start of the window, and at their peak ---- */

enum level_kind {
	LEVEL_LIVE,     /* requested sizes of blocks that are handed out */
	LEVEL_SEGMENTS, /* of an allocator above */
	LEVEL_PHYSICAL, /* that calls got; in a tracker of a history without them, segments */
	LEVEL_RESERVED, /* address space; to the tracker, of no device */
	LEVEL_TAKEN,    /* by live blocks, with the rounding of who gave them */
	LEVEL_ROUNDING, /* of PHYSICAL: what pages are larger than what was asked for */
	LEVEL_COUNT
};
extern const char *const level_names[LEVEL_RESERVED + 1];

struct level_peak {
	guint64 bytes;
	guint64 number;  /* of the event that reached it first; 0: the start */
	guint64 host_ns; /* its time; 0: it has none */
};
struct level {
	guint64 now, start, got; /* `start`: when the window began; `got`: all that came since */
	struct level_peak peak;
};
struct levels {
	struct level of[LEVEL_COUNT];
	guint64 live_at_peak;   /* the most of LIVE while PHYSICAL was at its peak */
	guint64 event, host_ns; /* what happens now; 0 where peaks need none */
};
/* Bytes of the kind come or go: at most to what an int64 holds, and to 0. */
void levels_change(struct levels *levels, enum level_kind kind, gboolean more, guint64 bytes);
/* What there is was there at the start. */
void levels_start(struct levels *levels);
/* PHYSICAL: memory for `size` bytes comes or goes, in whole pages `pages` bytes. */
void levels_pages(struct levels *levels, gboolean more, guint64 size, guint64 pages);
/* LIVE or SEGMENTS: an allocator's event. `physical`: segments are all the physical memory. */
void levels_step(struct levels *levels, guint32 verb, guint64 bytes, gboolean physical);

/* Of an event: 1: a segment, or a part of one, comes; -1: it goes; 0: it is about none. */
static inline int segment_change(guint32 verb)
{
	const guint32 come = 1u << NPU_TRACE_SEGMENT_ALLOC | 1u << NPU_TRACE_SEGMENT_MAP;
	const guint32 go = 1u << NPU_TRACE_SEGMENT_FREE | 1u << NPU_TRACE_SEGMENT_UNMAP;

	return (int)(come >> verb & 1) - (int)(go >> verb & 1);
}

/* ---- memory.c: the index by address. Steps cost the same, however often moments are marked ----
 */

enum allocation_kind {
	ALLOCATION_RESERVED, /* addresses without memory of their own */
	ALLOCATION_MEMORY,   /* physical memory at an address: a classic allocation, or a mapping */
	ALLOCATION_BLOCK,    /* what a program was given */
	ALLOCATION_KIND_COUNT
};
struct allocation {
	guint64 key;           /* BLOCK: the address that the file has; else that in the model */
	guint32 tag, next;     /* inside: of an int_map */
	guint64 address, size; /* where it lies, with the rounding of who gave it */
	union {
		guint64 asked; /* BLOCK: bytes that were asked for */
		guint64 since; /* MEMORY: event at which it came */
	};
	guint64 born;    /* serial number */
	GArray *runs;    /* MEMORY: struct physical_run, once they were looked up */
	guint32 site;    /* BLOCK, MEMORY */
	gboolean mapped; /* MEMORY: into a reservation */
};
/* Physical memory behind an item: consecutive bytes of the device. */
struct physical_run {
	guint64 pa, bytes;
};

enum moment_what { MOMENT_PEAK, MOMENT_OOM, MOMENT_END, MOMENT_EVENT, MOMENT_TIME };
/* Sums, all in bytes. */
struct memory_sums {
	guint64 live, physical, reserved, internal, rounding;
	gint64 external; /* below 0: blocks lie in memory that the file does not tell of */
};
struct moment {
	guint8 what;      /* enum moment_what */
	gboolean reached; /* it was marked */
	guint64 wanted;   /* EVENT: its number; TIME: microseconds since the first event */
	guint64 event;    /* when it was marked */
	guint64 serial;   /* inside */
	struct memory_sums sums;
	GArray *gone[ALLOCATION_KIND_COUNT]; /* inside: was there at the moment, is not now */
};
#define MOMENTS_MAX 8

struct memory {
	/* Of events; PHYSICAL of recorded calls is counted by their player's tracker. */
	struct levels levels;
	guint64 unmatched;   /* frees of unknown blocks, and blocks handed out twice */
	guint unit;          /* blocks are multiples of it, as far as the file tells */
	gboolean has_blocks; /* a BLOCK was added, at any time */

	struct int_map *items[ALLOCATION_KIND_COUNT]; /* of struct allocation */
	struct moment moments[MOMENTS_MAX];
	guint moment_count;
	guint64 serial;
	gboolean look_all; /* at each item before it goes, not at those of moments alone */
	/* Fills item->runs in while the memory is still there; may be NULL. */
	void (*look)(struct allocation *item, gpointer data);
	gpointer data;

	/* What the file itself says, whatever serves the blocks: of memory_step_file(). The levels
	 * are a tracker's unless the file contradicts itself: by address, a block ends the last of
	 * those that it is allocated over, by name the one that had its name. */
	struct {
		struct levels levels;
		GArray *chunks; /* inside: of blocks that are live, by address; each of at most */
#define MEMORY_CHUNK_MAX 64
		guint64 contradictions;
		char *first; /* the first of them in words, with its place; NULL: none */
		struct recorded_oom {
			guint64 event; /* from 1; 0: there is none */
			guint64 asked, free_bytes, physical, live;
		} oom; /* the first */
	} file;
};

/* `unit`: of the allocator's blocks; 0: not known. */
void memory_init(struct memory *memory, guint unit);
void memory_clear(struct memory *memory);

/* Adds an allocator's event. Where it has `rounded`, that is what it takes, and a block lies at
 * `va`: a block of the start that is known already is placed anew. */
void memory_step(struct memory *memory, const struct record_item *item);
/* What there was at the start has been added: the window begins. */
void memory_started(struct memory *memory);
struct memory_sums memory_sums(const struct memory *memory);

/* Events at these addresses of the file come soon: has the processor fetch what they look at, for
 * all at once. Where the blocks lie that are there; 0: none is. */
void memory_soon(const struct memory *memory, const guint64 *addresses, guint count, guint64 *out);

/* Notes what the file says. It changes `file` alone. */
void memory_step_file(struct memory *memory, const struct record_item *item);
/* "line 3"; where that is 0, "event 17"; "the start". */
char *history_place(guint64 line, guint64 event);

/* A copy of `item` is kept; what has its key goes: TRUE. */
gboolean memory_add(struct memory *memory, enum allocation_kind kind,
		    const struct allocation *item);
/* Looks up what moments need of an item whose memory may go. */
void memory_look(struct memory *memory, guint64 key);
/* To be called after memory_look(). FALSE: it is not there. */
gboolean memory_remove(struct memory *memory, enum allocation_kind kind, guint64 key);
/* The same of all that is still there: before the model closes. */
void memory_look_all(struct memory *memory);

/* Adds one of at most MOMENTS_MAX to be marked. `wanted`: number of MOMENT_EVENT, or microseconds
 * of MOMENT_TIME. */
void memory_add_moment(struct memory *memory, enum moment_what what, guint64 wanted);
/* What is there now is what was there at the moment. */
void memory_mark(struct memory *memory, struct moment *moment, guint64 event);
/* struct allocation * of the kind at the moment, sorted by address; borrowed. */
GPtrArray *memory_at(const struct memory *memory, const struct moment *moment,
		     enum allocation_kind kind);

/* ---- views.c: views of a memory at a moment. Maps: the addresses, and the frames of the device
 * behind them; neighbours in either list are merged if it is too long. Holders of the live blocks,
 * or, where a file has none, of the memory that is mapped or allocated: bytes and blocks by the
 * line of the program that requested them. ---- */

#define MAPS_RANGES_MAX  2000
#define MAPS_FRAME_BYTES (2 * MIB)

#define FRAME_NOBODY  0 /* none of the replay's memory lies there */
#define FRAME_SEVERAL 1
/* [start, start + length), in bytes or frames: `used` bytes of it have memory. Of addresses, live
 * blocks take `live` of that: a range is reserved (0, 0), free (bytes, 0), live (bytes, bytes), or
 * merged from several. Of frames, `owner` is the address of the memory, or FRAME_... */
struct map_range {
	guint64 start, length, used, live, owner;
};
struct memory_map {
	GArray *ranges; /* struct map_range, sorted, apart; of frames NULL: they are not known */
	guint64 count;  /* of ranges before they were merged */
	guint64 merged; /* ranges of up to so many bytes, or frames, were; 0: none */
	guint64 largest_free; /* of addresses: bytes */
	guint64 live;         /* the same: bytes of all ranges */
};
/* map->ranges is the caller's, to be freed. */
void address_map_init(struct memory_map *map, const struct memory *memory,
		      const struct moment *moment);
void frame_map_init(struct memory_map *map, const struct memory *memory,
		    const struct moment *moment, guint64 device_bytes);

struct holder {
	const struct sites *sites;
	guint32 label, site; /* of these; the site of the label with the most bytes */
	guint64 bytes, blocks;
	guint64 site_bytes; /* inside: of that site */
};

struct site_sum {
	gint64 bytes, blocks;
};
/* Adds to the struct site_sum of each site, or where `sign` is -1 takes away. */
void holders_add(GArray *sums, const struct memory *memory, const struct moment *moment, int sign);
/* struct holder, the largest first. `sites` may be NULL: the list is empty then. */
GArray *holders_of(const struct memory *memory, const struct moment *moment,
		   const struct sites *sites);

/* ---- object-tracker.c: the index by name: which device and which object a line refers to, and
 * the levels after it. It keeps no records. ---- */

struct tracker_device {
	gint64 device;              /* first: the key; -1: the host; RECORD_NO_DEVICE: of none */
	struct levels *levels, own; /* `own`, unless its owner has others */
	guint64 count[NPU_TRACE_VERB_COUNT];  /* of the window */
	guint64 failed[NPU_TRACE_VERB_COUNT]; /* of them, calls that were refused */
	guint64 bytes[NPU_TRACE_VERB_COUNT];  /* that those which were not refused name */

	/* Of a conversion alone: the counters that it wrote last, and the time that it is at. */
	guint64 shown[LEVEL_COUNT], shown_ns;
	gboolean named;
};
/* How often each of two traces asked for a size, of what gets memory; or had a note or a call of a
 * name, whatever else is in it. */
struct tracker_size {
	gint64 device;  /* this and the next three: the key */
	const char *op; /* interned; NULL: it is a size */
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
	GTree *sizes; /* of struct tracker_size, which are its keys; borrowed, NULL at first */
	int side;     /* in its counts */
	GArray *gone; /* guint64: what ended, or lost its physical memory, with the last line */

	struct int_map *names; /* process << 32 | number, letter -> struct object * */
	GTree *maps;           /* of struct mapping */
	gboolean calls;        /* the trace has calls that get memory */
	/* inside */
	struct tracker_device *about; /* the device of the last line */
	struct int_map *sets;         /* process << 32 | device -> how often it is set */
	guint64 last[128];            /* ids given out, by letter */
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
/* A device that lines are about, made if need be. */
struct tracker_device *tracker_device(struct tracker *tracker, gint64 device);

#endif
