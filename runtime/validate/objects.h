/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program holds, each with the stack of the call that made it, and what it held: the last
 * that were given back, with both stacks. Under the caller's lock.
 */
#ifndef NPUSIM_VALIDATE_OBJECTS_H
#define NPUSIM_VALIDATE_OBJECTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"

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
	uint64_t key;        /* its address, or the handle */
	uint64_t bytes;      /* as the program asked for them, where that is known */
	uint64_t inside;     /* MAPPING: the handle; REGISTERED: the device's address; PINNED: of
				a second mapping, or 0 */
	uint64_t nodes;      /* NUMA nodes of the host that the program put it on; 0: any */
	uint32_t references; /* HANDLE */
	uint32_t dev;        /* OBJECT_NO_DEVICE: of none */
	uint8_t kind;
	bool own; /* the runtime's, not the program's */
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

struct objects {
	GTree *live[OBJECT_KIND_COUNT]; /* key -> struct object */
	struct object *history;         /* a ring of those that were given back */
	unsigned ended;                 /* since the start */
	bool placed;                    /* some have nodes */
	/* Growth: what is made, retained and given back is counted by the stack that made it; a
	 * mark (npusimMark) compares with the mark of the same name before. */
	GHashTable *index; /* kind and stack -> index of the row + 1 */
	GArray *rows;      /* of counters */
	GHashTable *marks; /* by name */
};

struct objects *objects_new(void);
void objects_free(struct objects *objects);
/* One more or one less reference of a handle. False: it was the last one, which stays for
 * objects_end(). */
void objects_retain(struct objects *objects, struct object *object);
bool objects_release(struct objects *objects, struct object *object);
/* It is the runtime's own: to growth it has ended. */
void objects_own(struct objects *objects, struct object *object);
/* In the place of one with the same key; returns the one that is kept. */
struct object *objects_add(struct objects *objects, const struct object *object);
/* Borrowed until the next change; NULL: there is none. */
struct object *objects_find(struct objects *objects, enum object_kind kind, uint64_t key);
/* One of the kind, the first, that has a byte of [begin, end); NULL: there is none. */
struct object *objects_meeting(struct objects *objects, enum object_kind kind, uint64_t begin,
			       uint64_t end);
/* The one that an address lies in, of any kind with addresses but RESERVATION; the innermost. */
struct object *objects_around(struct objects *objects, uint64_t address);
/* Into the history. */
void objects_end(struct objects *objects, enum object_kind kind, uint64_t key, npu_stack stack);
/* The last that was given back of what had the address (in it, or `exact`: as its start) or the
 * handle. NULL: none is known. */
const struct object *objects_ended(const struct objects *objects, bool handle, uint64_t key,
				   bool exact);
/* The device is closed, and what the process had there is gone. */
void objects_end_of(struct objects *objects, uint32_t dev, npu_stack stack);

/* The counters of what made the object; borrowed until the next call. */
struct counters *growth_of(struct objects *objects, const struct object *object);
/* Reports each stack of which more is held than at the last mark of the name, and more was held
 * there than at the one before: what grows once may be warming up. */
void growth_mark(struct objects *objects, const char *name, npu_stack stack);
/* Reports what is still held, the largest first: a leak each. */
void growth_left(const struct objects *objects);
/* Writes a table of what was reported, a mark's name each. */
void growth_tell(const struct objects *objects);

#endif
