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
	uint32_t references; /* HANDLE */
	uint32_t dev;        /* OBJECT_NO_DEVICE: of none */
	uint8_t kind;
	bool own; /* the runtime's, not the program's */
	npu_stack made, ended;
	npu_stack access; /* MAPPING: somebody was given access */
};

/* In words: "allocation", and the call that gives one back. */
const char *object_name(enum object_kind kind);
const char *object_ender(enum object_kind kind);

struct objects;

/* RETAINED, RELEASED: a reference of a handle that has others. */
enum object_change {
	OBJECT_MADE,
	OBJECT_RETAINED,
	OBJECT_RELEASED,
	OBJECT_ENDED,
	OBJECT_CHANGE_COUNT
};
typedef void (*object_watcher)(void *arg, const struct object *object, enum object_change change);

/* `watcher` is told of each change. */
struct objects *objects_new(object_watcher watcher, void *arg);
void objects_free(struct objects *objects);
/* One more or one less reference of a handle. False: it was the last one, which stays for
 * objects_end(). */
void objects_retain(struct objects *objects, struct object *object);
bool objects_release(struct objects *objects, struct object *object);
/* It is the runtime's own: to the watcher it has ended. */
void objects_own(struct objects *objects, struct object *object);
/* In the place of one with the same key; returns the one that is kept. */
struct object *objects_add(struct objects *objects, const struct object *object);
/* Borrowed until the next change; NULL: there is none. */
struct object *objects_find(struct objects *objects, enum object_kind kind, uint64_t key);
/* One of the kind, the first, that has a byte of [begin, end); NULL: there is none. */
struct object *objects_meeting(struct objects *objects, enum object_kind kind, uint64_t begin,
			       uint64_t end);
/* The last of the kind that begins at the address or before it. */
struct object *objects_before(struct objects *objects, enum object_kind kind, uint64_t address);
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
void objects_each(struct objects *objects, void (*fn)(void *arg, const struct object *object),
		  void *arg);

#endif
