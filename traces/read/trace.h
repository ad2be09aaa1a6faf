/* SPDX-License-Identifier: Apache-2.0
 *
 * The summary of a trace, whatever file it came from: its devices, the counts of each, and the
 * records themselves: first the state when its window began, then its events. Readers of files fill
 * it in; replay, convert, diff and reports query it. A trace of npusim has names; objects known by
 * address get names in the order in which they appear. It computes no sums.
 */
#ifndef NPUSIM_TRACES_TRACE_H
#define NPUSIM_TRACES_TRACE_H

#include "base/int-map.h"
#include "format/input.h"
#include "trace/line.h"

/* ---- by-address.c: order and search of structs whose first member is their address, a guint64,
 * and sets of address ranges ---- */

/* Of two numbers, as a GCompareFunc answers. */
#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))
/* A GCompareFunc; what it compares may be anything that begins with its address. */
gint by_address(gconstpointer a, gconstpointer b);
/* An empty tree in that order, which g_free()s its values. */
GTree *by_address_tree(void);
/* Keeps a copy, by g_free(), in place of what has its address. */
void by_address_put(GTree *tree, gconstpointer item, gsize bytes);
/* The last node whose address is not above, or NULL. */
GTreeNode *by_address_node(GTree *tree, guint64 address);

/* A set of address ranges is such a tree of these. */
struct span {
	guint64 start, end; /* half-open */
	guint32 number;     /* for its owner; 0 at first */
};
/* Adds [start, end), one with those from which it is apart by no more than `gap`. */
void spans_add(GTree *spans, guint64 start, guint64 end, guint64 gap);

/* ---- sites.c: call sites, the places in a program that requested memory, as stacks of frames.
 * Texts and stacks are stored once, however often a file names them. ---- */

#define SITE_NONE        0 /* the file has no call site for it */
#define SITE_BEFORE      1 /* it was there before the first event, and no one says from where */
#define SITES_MAX        (1u << 18) /* further ones are SITE_NONE, and those behind */
#define SITES_FRAMES_MAX (1u << 24) /* frames of all */
#define SITE_FRAMES_READ 1024       /* of a stack, from the innermost on */
#define SITE_TEXT_MAX    200 /* bytes that are kept of a name or a path: the last ones of a path */
#define SITE_FRAME_MAX   512 /* and of a frame, which has at most 1.5 KiB in a line of a trace */
#define SITE_BYTES_MAX   (60u << 10) /* of a stack in such a line */

/* Texts, each with a number, from 0 in the order in which they come. */
struct texts {
	GPtrArray *list; /* char * */
	GTree *index;    /* a file can choose texts that a hash of GLib has in one place */
};
void texts_init(struct texts *texts);
void texts_clear(struct texts *texts);
/* The number of a text, which is taken over. */
guint32 texts_add(struct texts *texts, char *text);

struct sites;
struct sites *sites_new(void);
void sites_free(struct sites *sites);
/* The site of a stack, innermost frame first, of which each line of a text has one: "name
 * (file:line)", "file(line): name"; SITE_NONE: no frames. Lines without a letter are left out. */
guint32 sites_add(struct sites *sites, const char *text);
/* Adds such a line to a text. Name and file need no zero behind them, and may be NULL where their
 * length is 0; `number`: of a line, 0: not known. */
void site_frame_add(GString *text, const char *name, gsize name_length, const char *file,
		    gsize file_length, gint64 number);
/* Sites so far, SITE_NONE and SITE_BEFORE among them. */
guint sites_count(const struct sites *sites);

/* From now on the innermost frame in which the regular expression `pattern`, if not NULL, is found
 * stands for a stack, before the rule below. FALSE and error: it is no such expression. */
gboolean sites_set_rule(const char *pattern, GError **error);
/* The line that stands for the site, "function (file:line)": the innermost frame that is the
 * program's own Python; else Python of a package other than torch; else C or C++ outside torch,
 * CPython, libc, libstdc++ and the allocator; else torch's Python; else the innermost that has a
 * file. Sites of one line have one label: labels are numbered. */
guint32 sites_label(const struct sites *sites, guint32 site);
const char *sites_label_text(const struct sites *sites, guint32 label);
guint sites_labels(const struct sites *sites);
/* Frames of the site as text, innermost first. */
guint sites_depth(const struct sites *sites, guint32 site);
const char *sites_frame(const struct sites *sites, guint32 site, guint index);
/* A frame's text as a label is numbered; of a site without frames its label. */
guint32 sites_frame_number(const struct sites *sites, guint32 site, guint index);

/* ---- records ---- */

/* An allocator's events with their names in files, in the order of reports. */
struct trace_action {
	guint32 verb;
	const char *name;
};
#define TRACE_ACTIONS 8
extern const struct trace_action trace_actions[TRACE_ACTIONS];

#define RECORD_NO_DEVICE (-2) /* record.device of a line that has none */

/* A record, and what a line of the file need not say of it. */
struct record_item {
	struct npu_trace_record record;
	guint64 number;          /* of the event, counted from 1; 0: it was there at the start */
	guint32 site;            /* of the trace's sites; 0: the file has none */
	guint device;            /* index in trace.devices; G_MAXUINT: it is on none of them */
	const char *more, *pool; /* what else the file says, a segment's private pool; or NULL */
	guint32 over;            /* bytes that a block takes beyond its size; 0: not known */

	/* Of an allocator's event. */
	guint64 address; /* equal for what belongs together, and for nothing else in the file: its
			    own, or one made for the name; of OOM: bytes that were free */
	guint64 size;    /* also where a line that frees a segment has none */
	gint64 time_us;  /* the file's clock; 0: it has none */
};

/* ---- row-list.c: rows of files that have addresses and no names, kept one behind another, in
 * memory or, where they are many, in a temporary file, and sorted ---- */

struct trace_row {
	guint64 address; /* first: by_address() */
	guint64 size;
	gint64 stream, time_us;
	/* What it is sorted by, one after another; of equal ones, those that were added before.
	 * By device: what has `start`, and the device, come first. */
	gint64 order;
	guint64 serial; /* after `rank` */
	guint32 text;   /* NOTE: of trace_note(); else of trace.sites, 0: the file has none */
	guint32 more;   /* as record_item.more: trace_note() + 1, 0: nothing */
	guint32 over; /* of a block as record_item.over, of a segment as .pool: trace_note() + 1 */
	guint16 device;
	guint8 verb; /* enum npu_trace_verb: an allocator's */
	guint8 rank : 2;
	guint8 small : 1; /* from the small pool: 2 MiB handles */
	guint8 start : 1; /* it was there when the history began */
};

/* All 0: empty. */
struct row_list {
	struct trace_row *rows;
	guint64 count, room;
	int file;    /* its descriptor + 1, where the rows are in one */
	guint looks; /* at rows of a file */
	gboolean by_device;
};

#define ROW_LIST_MEMORY_BYTES (4u << 20) /* rows beyond it wait in a file */

/* What lists made from now on have instead: for tests. */
void row_list_set_memory(gsize bytes);
void row_list_clear(struct row_list *list);
/* FALSE and error, which names the folder, where there is no room for it in a file. */
gboolean row_list_add(struct row_list *list, const struct trace_row *row, GError **error);
/* Valid until the next is added. Those of a file are let go of now and then. */
struct trace_row *row_list_at(struct row_list *list, guint64 index);
/* FALSE and error, as row_list_add(). Rows that are in order already take one look at each. */
gboolean row_list_sort(struct row_list *list, gboolean by_device, GError **error);

struct trace_device {
	guint device;
	gboolean of_process; /* segments are all that the process got, not one allocator's */
	GTree *maps;         /* struct span: addresses of expandable segments, in GiB, and their
				reservations' numbers */
	GTree *cuts; /* the same: where parts of them are unmapped: [address, address + 1) */
	struct texts others;                  /* names of notes, and */
	GArray *other_counts;                 /* guint64: how many, which are else skipped */
	guint64 counts[NPU_TRACE_VERB_COUNT]; /* of events */
	guint64 start_block_bytes;            /* of blocks that were there at the start */
};
struct trace {
	GPtrArray *devices;  /* struct trace_device *, those with events, memory or calls, by id */
	const char *kind;    /* "memory snapshot of ...", "npusim trace": for people; borrowed */
	char *soc;           /* SoC that it was recorded on, or NULL */
	char *about;         /* what was recorded, in words, or NULL */
	char *settings;      /* of the allocator, "name: value" a line, or NULL */
	guint block_unit;    /* the allocator's blocks are multiples of it; 0: not known */
	guint64 events;      /* of all devices, calls too */
	guint64 starts;      /* records of what was there at the start */
	guint32 stamps;      /* NPU_TRACE_HAS_HOST_NS, _SIMULATED: what tells the time of some */
	struct sites *sites; /* where blocks were asked for, or NULL: the file does not tell */

	/* Of an npusim trace; else NULL and 0. */
	struct npu_trace_reader *format;
	guint64 calls;        /* lines that are calls */
	guint64 memory_calls; /* of them, those that get or give physical memory */
	guint64 skipped;      /* lines with verbs that this reader does not know */
	gboolean truncated;   /* the file broke off inside a line, which was left out */

	gpointer data; /* npusim.c's */

	struct texts notes; /* names of NOTE rows, and what else rows say */
	guint64 taken;      /* records, those of the start too */
	/* Of a file that has addresses and no names. */
	struct row_list unsorted; /* in any order: event_sorter_finish() makes these of them: */
	struct row_list rows;     /* its records, once it is rewound */
	guint64 next;             /* in them */
	struct int_map *names;    /* address and letter of a device -> number */
	gboolean nameless;        /* for a while nobody needs the numbers */
	guint32 last[128];        /* number given out, by letter */
	guint64 base_us;          /* time of the first event, less 1 */
	gboolean has_base;
};

/* Empty, for trace_add_row() and event_sorter_finish(). */
struct trace *trace_new(const char *kind);
void trace_free(struct trace *trace);

/* Back to the first record; to be called before it is read. Of a file without names first comes
 * what was there at the start, device after device, its memory before its blocks. */
gboolean trace_rewind(struct trace *trace, GError **error);
/* The next: 1; 0 at the end; -1 and error. */
int trace_next(struct trace *trace, struct record_item *out, GError **error);
/* The row that comes so many after the next, or NULL. */
const struct trace_row *trace_ahead(const struct trace *trace, guint64 rows);
/* What the file's head says of a key, or NULL. */
const char *trace_info(const struct trace *trace, const char *key);

/* The device's summary, made if need be. */
struct trace_device *trace_device(struct trace *trace, guint device);
/* Its index in trace->devices; G_MAXUINT: it is not there. */
guint trace_device_index(const struct trace *trace, gint64 device);
/* The number of a note's name, or of another text of a row. */
guint32 trace_note(struct trace *trace, const char *name);
/* Where blocks were asked for, made if need be. */
struct sites *trace_sites(struct trace *trace);

/* Counts an allocator's event on its device, a note by its name, and notes the addresses that it
 * maps and unmaps; of what was there at the start those that are mapped. */
void trace_count(struct trace *trace, const struct trace_row *row);
/* Counts a row, and adds it behind those of its device that are as late; or what was there at the
 * start, in any order. FALSE and error, as row_list_add(). */
gboolean trace_add_row(struct trace *trace, const struct trace_row *row, GError **error);

/* Reads a file of any known kind, told by its content: the summary, at its first record. NULL and
 * error, which names the file and the place, otherwise. */
struct trace *trace_open(const char *path, GError **error);

/* The same of a trace of npusim: npusim.c. */
gboolean npusim_rewind(struct trace *trace, GError **error);
int npusim_next(struct trace *trace, struct record_item *out, GError **error);
void npusim_close(struct trace *trace);

/* "create", "segment_map", "free_requested", .... */
const char *record_verb_name(guint32 verb);
/* In tables beside a name's letter: shares are numbered once in a file, others in a process. */
static inline guint64 record_name_key(guint32 process, const struct npu_trace_name *name)
{
	return (guint64)(name->kind == 's' ? 0 : process) << 32 | name->number;
}
/* "r1+2097152", "host". */
void record_name_text(const struct npu_trace_name *name, GString *out);
/* The item as a line of a trace, but stamps, addresses and site: "alloc b12 size=512 device=0". */
void record_text(const struct record_item *item, GString *out);

#endif
