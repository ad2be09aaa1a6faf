/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map from a 64-bit key and a tag, as a device or a kind, to a struct that begins with both,
 * for millions of insertions and removals: its size follows the largest number of entries at one
 * time. Without memory for it the process ends.
 */
#ifndef NPUSIM_BASE_INT_MAP_H
#define NPUSIM_BASE_INT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What else an entry has may be in place of `value`. */
struct int_map_entry {
	uint64_t key;
	uint32_t tag;  /* not UINT32_MAX */
	uint32_t next; /* inside */
	uint64_t value;
} __attribute__((may_alias));
/* Inside but for `count`. */
struct int_map {
	size_t bytes; /* of an entry */
	void (*drop)(void *entry);
	uint64_t factor;
	char *entries;              /* numbered from 1 */
	uint32_t *first;            /* of each list of `next`; 0: it is empty */
	uint32_t count, used, room; /* entries: there, there at one time, allocated */
	uint32_t free;              /* the first of those that are not there any more */
	unsigned shift;
};

#define NPU_HUGE_PAGE ((size_t)2 << 20)
/* Zeros for a table, which nothing has touched; `huge`: in huge pages as far as the kernel has any,
 * where a look anywhere costs no miss of the TLB. munmap() gives them back. NULL, errno: none. */
void *npu_pages_new(size_t bytes, bool huge);

/* Of entries of so many bytes, which go by `drop`, or NULL. */
struct int_map *int_map_new(size_t bytes, void (*drop)(void *entry));
void int_map_free(struct int_map *map);
/* NULL: it is not there. Valid until an entry is added. */
void *int_map_find(const struct int_map *map, uint64_t key, uint32_t tag);
/* Searches for these, without a tag, come soon: has the processor fetch the lists that they are in,
 * and the first entries of those, for all at once. */
void int_map_soon(const struct int_map *map, const uint64_t *keys, size_t count);
/* The same, or a new one, all 0. */
void *int_map_add(struct int_map *map, uint64_t key, uint32_t tag);
void int_map_remove(struct int_map *map, void *entry);
/* Of struct int_map_entry: what it has from now on. */
void int_map_put(struct int_map *map, uint64_t key, uint32_t tag, uint64_t value);
/* The next one, in an order that insertions and removals alone make; `after` NULL: the first. */
void *int_map_next(const struct int_map *map, const void *after);

/* An entry by its number, from 1. */
static inline void *int_map_at(const struct int_map *map, size_t number)
{
	return map->entries + (number - 1) * map->bytes;
}

static inline uint32_t int_map_number(const struct int_map *map, const void *entry)
{
	return (uint32_t)((size_t)((const char *)entry - map->entries) / map->bytes) + 1;
}

#endif
