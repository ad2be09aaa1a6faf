/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that a trace gives to addresses, handles and shares (traces/FORMAT.md): for example,
 * the range that begins at 0x12c000000000 is r1. Not thread-safe: the recorder has one lock.
 */
#ifndef NPUSIM_TRACE_NAMES_H
#define NPUSIM_TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_name {
	uint64_t key;   /* first address, handle, or share */
	uint64_t bytes; /* of an address range; 1 for the others */
	uint64_t number;
	uint32_t references; /* the name ends with the last */
	char letter;
};
/* NULL is empty. */
struct trace_names {
	void *tree;
};

/* The entry whose range holds `key`, or NULL. Valid until the next change. */
struct trace_name *trace_name_find(const struct trace_names *names, uint64_t key);
/* The keys of all, in order, free(): as many as there is memory for. */
size_t trace_names_list(const struct trace_names *names, uint64_t **out_keys);
/* Puts one in; what overlaps it is gone. False: no memory, and it has no name. */
bool trace_name_add(struct trace_names *names, struct trace_name name);
/* Takes the entry that begins at `key` out, into *out (may be NULL). */
bool trace_name_take(struct trace_names *names, uint64_t key, struct trace_name *out);
void trace_names_free(struct trace_names *names);

#endif
