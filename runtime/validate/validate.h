/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer: a driver over a lower driver that finds errors of the program which the
 * device answers with silence. npusim-validate.so, which is loaded where NPUSIM_VALIDATE asks for
 * it. Answers stay the lower driver's, but where `strict` refuses a call.
 */
#ifndef NPUSIM_VALIDATE_VALIDATE_H
#define NPUSIM_VALIDATE_VALIDATE_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"
#include "driver/layer.h"
#include "npusim/npusim.h"

/* ---- report.c: any thread ---- */

enum validate_rule {
#define VALIDATE_RULE(rule, id, finds, why, right) VALIDATE_##rule,
#include "validate/rules.h"
	VALIDATE_RULE_COUNT
};

/* The rules in words: rules.h. */
struct validate_rule_words {
	const char *id, *finds, *why, *right;
};
extern const struct validate_rule_words validate_rules[VALIDATE_RULE_COUNT];

struct report {
	enum validate_rule rule;
	npu_stack now;    /* of the call that the report is about */
	const char *then; /* what the other stack is: "the copy was queued by"; NULL: none */
	npu_stack before; /* the other stack */
	npu_stack made;   /* where the object was made; 0: not said */
};

/* What report_make() takes: REPORT(LEAK, stack of the call, .made = ...). */
#define REPORT(name, stack, ...) \
	(&(struct report){ .rule = VALIDATE_##name, .now = (stack), ##__VA_ARGS__ })

/* Reads the settings; `check`: looks at them only, and opens and keeps nothing. False and *error
 * (free()): a rule that does not exist, a file that cannot be read or written. */
bool report_open(bool check, char **error);
bool report_wanted(enum validate_rule rule);
/* The program is one of CUDA: reports name cu* functions where aclrt* ones would be right. */
void report_in_cuda(void);
/* One report: a sentence, then the stacks, to be written by the thread's next report_flush(). Equal
 * ones (rule and stacks; without stacks the sentence) are counted, and written once. */
void report_make(const struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes the calling thread's reports; no lock is held, and the call that they are about is over:
 * how long that takes changes none of its answers. */
void report_flush(void);
/* Whether it has any to write. */
bool report_waits(void);
/* Whole lines beside the reports: a table. */
void report_add_lines(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Who is called with each report that is written; NULL: nobody. */
void report_listen(npusim_report_fn fn, void *arg);
/* The sums, at the end of the process; the exit status that NPUSIM_VALIDATE_EXIT asks for, or 0. */
int report_end(void);
/* Around a fork(); a child has no reports yet. */
void report_before_fork(void);
void report_after_fork(bool child);

/* ---- form.c: the file of reports ---- */

bool form_open(bool check, char **error);
/* `function`: of said->file and line. */
void form_add(const struct report *report, const struct npusim_report *said, const char *function);
/* A file whose name has the process id is the child's own. */
void form_after_fork(void);

/* A suppression leaves it out. */
bool suppress_has(const struct report *report);

/* ---- objects.c: under the lock ---- */

struct validate;

enum object_kind {
	OBJECT_RESERVATION,
	OBJECT_MAPPING,
	OBJECT_ALLOCATION, /* of a device: aclrtMalloc */
	OBJECT_PINNED,     /* aclrtMallocHost */
	OBJECT_REGISTERED, /* the program's own memory: by its address */
	OBJECT_OPENED,     /* another process's, by its name */
	OBJECT_HANDLE,     /* physical memory: key is the handle */
	OBJECT_BLOCK,      /* what the program says it has carved out of one of these */
	OBJECT_OLD_BLOCK,  /* and given back, where no other block is */
	OBJECT_KIND_COUNT
};

#define OBJECT_NO_DEVICE UINT32_MAX

struct object {
	uint64_t number;     /* v->made's, when it was made */
	uint64_t key;        /* its address, or the handle */
	uint64_t bytes;      /* as the program asked for them, where that is known */
	uint64_t inside;     /* MAPPING: its handle; HANDLE: the mapping that gave it, or 0;
				REGISTERED: the device's address; PINNED: a second mapping, or 0 */
	uint64_t nodes;      /* NUMA nodes of the host that the program put it on; 0: any */
	uint32_t references; /* HANDLE */
	uint32_t dev;        /* OBJECT_NO_DEVICE: of none */
	uint8_t kind;
	bool own;        /* the runtime's, not the program's */
	uint32_t ending; /* calls that give it back, and are not over */
	npu_stack made, ended;
	npu_stack access; /* MAPPING: somebody was given access */
};

/* In words: "allocation", and the call that gives one back. */
struct object_words {
	const char *name, *ender;
};
extern const struct object_words object_words[OBJECT_KIND_COUNT];

/* What one stack made of one kind; references count as objects do. */
struct counters {
	uint64_t made, retained, ended;
	uint64_t bytes; /* that are live */
};

void objects_open(struct validate *v);
void objects_close(struct validate *v);
/* It is the runtime's own: to growth it has ended. */
void objects_own(struct validate *v, struct object *object);
/* There is none with the same key, of REGISTERED for its device; returns the one that is kept. */
struct object *objects_add(struct validate *v, const struct object *object);
/* Borrowed until the next change; NULL: there is none. */
struct object *objects_find(struct validate *v, enum object_kind kind, uint64_t key);
struct object *objects_find_like(struct validate *v, const struct object *object);
/* One of the kind, the first, that has a byte of [begin, end); NULL: there is none. */
struct object *objects_meeting(struct validate *v, enum object_kind kind, uint64_t begin,
			       uint64_t end);
/* The one that an address lies in, of any kind with addresses but RESERVATION; the innermost. */
struct object *objects_around(struct validate *v, uint64_t address);
/* Into the history. */
struct object *objects_end(struct validate *v, const struct object *object);
/* What has the number there; NULL: nothing, or not any more. */
struct object *objects_ended_as(struct validate *v, uint64_t number);
/* The last that was given back of what had the address (in it, or `exact`: as its start) or the
 * handle. NULL: none is known. */
const struct object *objects_ended(const struct validate *v, bool handle, uint64_t key, bool exact);
/* The device is closed, and what the process had there is gone. */
void objects_end_of(struct validate *v, uint32_t dev);

/* The counters of what made the object; borrowed until the next call. */
struct counters *growth_of(struct validate *v, const struct object *object);
/* Reports each stack of which more is held than at the last mark of the name, and more was held
 * there than at the one before: what grows once may be warming up. */
void growth_mark(struct validate *v, const char *name);
/* Reports what is still held, the largest first: a leak each. */
void growth_left(const struct validate *v);
/* Writes a table of what was reported, a mark's name each. */
void growth_tell(const struct validate *v);

/* ---- order.c: under the lock ---- */

/*
 * What happens before what: a vector clock a stream, and one for the host, whose threads count as
 * one that makes calls in the order in which they enter. Edges come from the queue's entries and
 * from what the runtime tells of the program's waits; simulated time plays no part.
 *
 * Where an edge cannot be known (a value that somebody may write, an event that is recorded later)
 * the clock is tainted: nothing that comes later in it is called unordered, with what came before
 * or comes after, until all queues have been empty. Errors may be missed so; none is invented.
 */

struct clock {
	uint64_t *at; /* by stream: the last entry that has happened before */
	unsigned count;
	uint64_t taint; /* number of the last wait whose edge is not known; 0: none */
};

struct order_stream {
	uint64_t number; /* v->made's, when it was made */
	uint32_t dev, id;
	unsigned index;
	uint64_t base;      /* entries of the streams that had this index before */
	uint64_t sent;      /* of all that had it */
	uint64_t explained; /* up to that entry, why they failed */
	uint16_t last_task;
	uint64_t host_version; /* of the host's clock, joined last */
	struct clock clock;
	GQueue edges;   /* of struct order_edge: what the waits brought, oldest first */
	uint32_t depth; /* of the queue; 0: not known */
	bool told;      /* a runtime tells of the program's waits: completions alone say nothing */
	bool live;
};

void order_open(struct validate *v);
void order_close(struct validate *v);

/* The live stream of that id; made where there is none. */
struct order_stream *order_stream(struct validate *v, uint32_t dev, uint32_t id);
/* The stream of an index in words; see npu_text(). */
const char *order_stream_text(const struct validate *v, unsigned index);
/* Its queue is gone, and all of its work with it. */
void order_stream_end(struct validate *v, struct order_stream *stream);

/* The stream's next entry: its number. Everything that the host knows happened before it. */
uint64_t order_entry(struct validate *v, struct order_stream *stream, uint16_t task);
/* What has the clock, that entry's or the host's, records an event. */
void order_record(struct validate *v, const struct clock *clock, uint64_t event);
/* That entry waits for an event, waits for a value. */
void order_wait(struct validate *v, struct order_stream *stream, uint64_t event);
void order_value_wait(struct validate *v, struct order_stream *stream);
/* What has the clock may be what was waited for by anybody whose edge is not known. */
void order_resolve(struct validate *v, const struct clock *clock);

/* Events are named by device and id, and so are notifies, which are none of the events. */
#define EVENT_KEY(name) ((gpointer)(uintptr_t)((name) + 1))
static inline uint64_t order_event_name(uint32_t dev, uint32_t id, bool notify)
{
	return (uint64_t)dev << 32 | (uint64_t)notify << 31 | id;
}
/* What is known of one; made where nothing is. */
struct order_event {
	uint64_t number; /* v->made's, when it was recorded or made a relay */
	bool recorded;
	uint64_t relay_of; /* the host records it when that has happened: name + 1; 0: none */
	struct clock clock;
};
struct order_event *order_event(struct validate *v, uint64_t name);

/* The host knows that entries of a stream up to the number are done: counted as order_entry() does,
 * or since the stream's queue was made (of_queue). */
void order_seen(struct validate *v, struct order_stream *stream, uint64_t number, bool of_queue);
void order_seen_event(struct validate *v, uint64_t event);

/* Whether a clock's taint still matters. */
bool order_is_tainted(const struct validate *v, uint64_t taint);
/* If the host knows all entries to be done, what was not known does not matter any more. */
void order_quiet(struct validate *v);

/* ---- accesses of queued work that the host does not know to be done ---- */

struct access {
	uint64_t begin, end;  /* addresses, [begin, end) */
	uint64_t number;      /* of the entry in its stream */
	uint64_t taint;       /* of its clock: what it waits for may be anybody */
	uint64_t hash;        /* of its bytes, as they were queued, where it is `hashed` */
	npu_stack stack;      /* where it was queued */
	uint32_t stream : 23; /* its index */
	uint32_t mark : 6;    /* a write of memory that others have: struct npu_write; 0: none */
	uint32_t write : 1;
	uint32_t hashed : 1; /* a read of memory of the host, which the program is to leave alone */
	uint32_t closed : 1; /* its pages are, to the program */
};

/* Takes the place of an earlier access of its stream to the same range that is no more than it, but
 * of none with a hash or a mark, or that is closed. */
void accesses_add(struct validate *v, const struct access *access);
/* Which accesses a search finds, in the order of their addresses. */
struct access_search {
	uint64_t begin, end;       /* a byte in [begin, end) */
	bool writes;               /* these alone */
	const struct clock *after; /* what has not happened before it; NULL: all */
	bool surely;               /* ... nor may come after it */
	guint next;                /* 0 at first */
};
/* The next; NULL: there is none. */
struct access *accesses_next(const struct validate *v, struct access_search *search);
/* Whether any, or a write, has a byte in [begin, end). */
bool accesses_meet(const struct validate *v, uint64_t begin, uint64_t end, bool write);
/* Takes the hashes of those that have a byte in [begin, end): others than the program may change
 * what they read. all: their marks, too, and they are not closed any more: the program may know
 * that they are done. */
void accesses_unwatch(struct validate *v, uint64_t begin, uint64_t end, bool all);

/* ---- the layer ---- */

#define VALIDATE_DEVICES 64u

/* What a call does to the object that it names. */
enum deed {
	DEED_NONE,
	DEED_MAKES,
	DEED_TAKES,  /* makes it of what another process shares */
	DEED_ENDS,   /* by its kind and key alone */
	DEED_SHARES, /* ... others may take it */
	DEED_OPENS   /* gives access to it */
};

struct validate {
	struct layer layer;
	pthread_mutex_t lock; /* of all that follows */
	/* The call that the lock is held for, */
	npu_stack stack;         /* 0: not taken yet: stack_of() */
	struct layer_call *call; /* and, in the hooks, validate_call() */
	struct object named;     /* what it is about; its outputs, if it has succeeded */
	enum deed deed;
	/* How many things were made here, so far and when the call began. It ends none that was
	 * made since: the driver may have given out anew what the call gave back. */
	uint64_t made, began;
	uint64_t ends; /* number of the object that it gives back; 0: of none */
	/* order.c */
	GPtrArray *streams; /* of struct order_stream, by index; an index is used again */
	GHashTable *events; /* by EVENT_KEY() of their names */
	struct clock host;
	uint64_t host_version;    /* counts changes of what the host knows */
	uint64_t taints, settled; /* numbers of waits; up to which nothing matters any more */
	GArray *sorted;           /* of struct access, on their way, by begin */
	uint64_t longest;         /* bytes of one of them; never too small */
	uint64_t swept;           /* the host's version by which those that are done are gone */
	/* objects.c */
	GTree *live[OBJECT_KIND_COUNT]; /* key -> struct object */
	struct object *history;         /* a ring of those that were given back */
	unsigned ended;                 /* since the start */
	bool placed;                    /* some have nodes */
	/* Growth: what is made, retained and given back is counted by the stack that made it; a
	 * mark (npusimMark) compares with the mark of the same name before. */
	GHashTable *index; /* kind and stack -> index of the row + 1 */
	GArray *rows;      /* of counters */
	GHashTable *marks; /* by name */
	/* others */
	bool strict;
	bool kernels;      /* queues have had entries that may write anywhere */
	bool shares_any;   /* others have memory of this process, or this one of others */
	bool cuda;         /* whose memory it is does not matter: access is by mapping */
	GPtrArray *failed; /* calls, of why.c */
	GPtrArray *shares; /* of memory.c */
	GPtrArray *held;   /* reservations, of memory.c */
	/* By device: those that it may reach, itself where it is open: v->made's since when. */
	uint64_t peers[VALIDATE_DEVICES][VALIDATE_DEVICES];
};

/* Calls the driver below: BELOW(v, halMemAddressFree, ptr). */
#define BELOW(v, op, ...) (v)->layer.below.op((v)->layer.driver.lower, __VA_ARGS__)

/* What the model knows of an address; false: it is no model. */
static inline bool validate_place(const struct validate *v, uint64_t va, struct npu_place *out)
{
	return BELOW(v, npusimPlace, va, out) == DRV_ERROR_NONE;
}

static inline uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* The call's stack, which is taken where somebody wants it: it costs more than all the rest. */
static inline npu_stack stack_of(struct validate *v)
{
	if (v->stack == 0)
		v->stack = npu_stack_here();
	return v->stack;
}

/* The API's name of the call of a stack, and of the call that the lock is held for. */
static inline const char *call_of(npu_stack stack)
{
	return npu_stack_call(stack) ?: "a call";
}
static inline const char *caller(struct validate *v)
{
	return call_of(stack_of(v));
}

static inline bool is_deed(const struct validate *v, enum deed deed, enum object_kind kind)
{
	return v->deed == deed && v->named.kind == kind;
}

/* The last stream that had an index. */
static inline const struct order_stream *order_stream_at(const struct validate *v, unsigned index)
{
	return g_ptr_array_index(v->streams, index);
}

/* Around what is under the lock; reports are written after it. */
struct validate *validate_enter(void *self);
drvError_t validate_leave(struct validate *v);
/* "0x1000, 2 MiB (4 KiB into the allocation at 0x0, 16 MiB)"; sixteen texts a thread in turn. */
const char *validate_range(struct validate *v, uint64_t begin, uint64_t end);

/* ---- queue.c: after the call, which succeeded, under the lock ---- */

void validate_queue_call(struct validate *v);
/* Calls fn for each copy or fill (src 0) that the call asks for at once. */
typedef void (*validate_copy_fn)(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
void validate_each_copy(struct validate *v, validate_copy_fn fn);
/* npusimOrder, of the layer. */
drvError_t validate_told(struct npu_driver *self, uint32_t dev, enum npu_order what, uint32_t id,
			 uint64_t value);
/* Reports queued work that uses the object, which is at `begin`, if the host does not know that it
 * is done. Whether there is such work. */
bool validate_pending(struct validate *v, const struct object *object, uint64_t begin);
/* Reports an access, `who` makes it, that reaches beyond what the program asked for. Whether it
 * does. */
bool validate_bounds(struct validate *v, const char *who, uint64_t begin, uint64_t end, bool write);

/* npusimTellBlock, of the layer; bytes 0: the block is given back. */
drvError_t validate_block(struct npu_driver *self, uint64_t va, uint64_t bytes);
/* Memory goes, and the blocks in it do. */
void validate_bytes_forget(struct validate *v, uint64_t begin, uint64_t end);
/* Whoever may write the memory at the addresses is not seen. */
void validate_bytes_give_up(struct validate *v, uint64_t begin, uint64_t end);
/* Memory is there: nobody has written it. */
void validate_bytes_new(struct validate *v, const struct object *object);

/* ---- host.c: under the lock ---- */

/* A queued read or write, which is not yet added: completes *access, if it is of the host's memory;
 * under strict the memory is closed. */
void validate_host_access(struct validate *v, struct access *access);
/* The entries of v->call are about to be sent: fills what they will write; under strict it gives
 * the call other entries, which use second mappings. And when they are sent, or were not taken. */
struct validate_sent {
	GArray *saved;    /* what was there, to be put back */
	uint8_t *entries; /* the program's; NULL: these were sent */
};
struct validate_sent validate_host_send(struct validate *v);
void validate_host_sent(struct validate *v, const struct validate_sent *sent);
/* The host knows that the access, which has a hash, is done. */
void validate_host_done(struct validate *v, const struct access *access);

/* Under strict alone. */
/* Page-locked memory is made: object->inside is where the model has it, 0: there alone. */
void validate_closed_new(struct validate *v, struct object *object);
void validate_closed_end(struct validate *v, const struct object *object);
/* Opens all, and closes what is still used. */
void validate_closed_renew(struct validate *v);
/* Opens what a call is about to copy at once; a validate_copy_fn. */
void validate_closed_open(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
/* Opens all, and watches no more. */
void validate_closed_stop(struct validate *v);

/* ---- memory.c: under the lock ---- */

/* Sets v->call, v->deed and v->named. `done`: it has succeeded, and its outputs are there. */
void validate_call(struct validate *v, struct layer_call *call, bool done);
/* True: the call is answered with call->code. */
bool validate_memory_before(struct validate *v);
/* The call is over. */
void validate_memory_after(struct validate *v);
/* Tries a reservation that failed again, without the addresses that are held back. */
void validate_memory_again(struct validate *v, struct layer_call *call);
/* Gives all of those back; whether there was any. */
bool validate_memory_let_go(struct validate *v);
/* Reports what this process shared and gave back, and others hold. */
void validate_kept_look(struct validate *v);

/* ---- why.c: under the lock ---- */

/* After a call: why it failed; what follows from earlier failures no more, where it succeeded. */
void validate_why(struct validate *v);
/* A copy or fill (src 0) was refused before it was made. */
void validate_why_copy(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
/* An entry of the stream failed: which of its accesses are not possible. */
void validate_why_stream(struct validate *v, struct order_stream *stream, uint64_t entry);
/* The call gives back what another is to give back. */
void validate_why_wrong(struct validate *v, const struct object *object);
/* The call is given `key`, an address or handle of what was given back. */
void validate_why_ended(struct validate *v, enum validate_rule rule, const struct object *old,
			uint64_t key);

#endif
