/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash map whose entries lie one behind another, and stay where they are until it grows: a search
 * looks at the first of a list and, mostly, at one entry. The hash has a random factor, so that a
 * file cannot choose keys that collide.
 */
#include "base/int-map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define ROOM_MIN 8u
#define NO_TAG   UINT32_MAX /* of an entry that is free */

static uint32_t *list_of(const struct int_map *m, uint64_t key, uint32_t tag)
{
	uint64_t h = key * m->factor + tag;

	return &m->first[(h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> m->shift];
}

/* Where the number of the entry is, or would be. */
static uint32_t *link_of(const struct int_map *m, uint64_t key, uint32_t tag)
{
	uint32_t *link = list_of(m, key, tag);

	for (struct int_map_entry *e; *link; link = &e->next) {
		e = int_map_at(m, *link);
		if (e->key == key && e->tag == tag)
			break;
	}
	return link;
}

static void *had(void *memory)
{
	if (memory == NULL) {
		fputs("npusim: no memory for a table of what is known by number\n", stderr);
		abort();
	}
	return memory;
}

void *npu_pages_new(size_t bytes, bool huge)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (huge && pages != MAP_FAILED)
		madvise(pages, bytes, MADV_HUGEPAGE);
	return pages == MAP_FAILED ? NULL : pages;
}

/* Of the lists, and behind them the entries: whole lines of a cache, or whole huge pages. */
static size_t table_bytes(const struct int_map *m, size_t room)
{
	size_t bytes = room * (2 * sizeof(*m->first) + m->bytes);
	size_t unit = bytes < NPU_HUGE_PAGE / 2 ? 64 : NPU_HUGE_PAGE;

	return (bytes + unit - 1) / unit * unit;
}

static void table_free(struct int_map *m)
{
	if (table_bytes(m, m->room) < NPU_HUGE_PAGE)
		free(m->first);
	else
		munmap(m->first, table_bytes(m, m->room));
}

/* There are twice as many lists. */
static void grow(struct int_map *m, uint32_t room)
{
	size_t bytes = table_bytes(m, room), lists = 2 * room * sizeof(*m->first);
	uint32_t *first =
		had(bytes < NPU_HUGE_PAGE ? aligned_alloc(64, bytes) : npu_pages_new(bytes, true));
	char *entries = (char *)first + lists;

	memset(first, 0, lists);
	if (m->used > 0)
		memcpy(entries, m->entries, m->used * m->bytes);
	table_free(m);
	m->first = first;
	m->entries = entries;
	m->room = room;
	m->shift = (unsigned)__builtin_clzll(room);
	for (uint32_t i = 1; i <= m->used; i++) {
		struct int_map_entry *e = int_map_at(m, i);

		e->next = 0;
		*link_of(m, e->key, e->tag) = i;
	}
}

struct int_map *int_map_new(size_t bytes, void (*drop)(void *entry))
{
	struct int_map *m = had(calloc(1, sizeof(*m)));

	if (getrandom(&m->factor, sizeof(m->factor), 0) < 0)
		m->factor = (uintptr_t)m; /* forbidden, by a sandbox */
	m->factor |= 1;
	m->bytes = bytes;
	m->drop = drop;
	grow(m, ROOM_MIN);
	return m;
}

void int_map_free(struct int_map *m)
{
	if (m == NULL)
		return;
	for (void *e = NULL; m->drop && (e = int_map_next(m, e));)
		m->drop(e);
	table_free(m);
	free(m);
}

void *int_map_find(const struct int_map *m, uint64_t key, uint32_t tag)
{
	uint32_t number = *link_of(m, key, tag);

	return number ? int_map_at(m, number) : NULL;
}

void int_map_soon(const struct int_map *m, const uint64_t *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(list_of(m, keys[i], 0));
	for (size_t i = 0; i < count; i++)
		__builtin_prefetch(int_map_at(m, *list_of(m, keys[i], 0)));
}

void *int_map_add(struct int_map *m, uint64_t key, uint32_t tag)
{
	uint32_t *link = link_of(m, key, tag);
	struct int_map_entry *e;

	if (*link)
		return int_map_at(m, *link);
	if (m->count++ == m->room) {
		grow(m, 2 * m->room);
		link = link_of(m, key, tag);
	}
	*link = m->free ? m->free : ++m->used;
	e = int_map_at(m, *link);
	if (m->free)
		m->free = e->next;
	memset(e, 0, m->bytes);
	e->key = key;
	e->tag = tag;
	return e;
}

void int_map_put(struct int_map *m, uint64_t key, uint32_t tag, uint64_t value)
{
	struct int_map_entry *e = int_map_add(m, key, tag);

	e->value = value;
}

void int_map_remove(struct int_map *m, void *entry)
{
	struct int_map_entry *e = entry;
	uint32_t *link = link_of(m, e->key, e->tag), number = *link;

	if (m->drop)
		m->drop(e);
	*link = e->next;
	e->tag = NO_TAG;
	e->next = m->free;
	m->free = number;
	m->count--;
}

void *int_map_next(const struct int_map *m, const void *after)
{
	uint32_t number = after ? int_map_number(m, after) : 0;

	while (++number <= m->used) {
		struct int_map_entry *e = int_map_at(m, number);
		if (e->tag != NO_TAG)
			return e;
	}
	return NULL;
}
