/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted arrays of names: looked up by halving, changed by moving what lies behind.
 */
#include "trace-names.h"

#include <stdlib.h>
#include <string.h>

/* The number of entries that begin at or before `key`. */
static size_t place_of(const struct trace_names *names, uint64_t key)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->entries[middle].key <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct trace_name *trace_name_find(const struct trace_names *names, uint64_t key)
{
	size_t place = place_of(names, key);
	struct trace_name *name;

	if (place == 0)
		return NULL;
	name = &names->entries[place - 1];
	return key - name->key < name->bytes ? name : NULL;
}

static void remove_at(struct trace_names *names, size_t place)
{
	names->count--;
	memmove(&names->entries[place], &names->entries[place + 1],
		(names->count - place) * sizeof(names->entries[0]));
}

bool trace_name_add(struct trace_names *names, struct trace_name name)
{
	size_t place;

	if (names->count == names->room) {
		size_t room = names->room == 0 ? 64 : names->room * 2;
		struct trace_name *grown = realloc(names->entries, room * sizeof(*grown));

		if (grown == NULL)
			return false;
		names->entries = grown;
		names->room = room;
	}
	place = place_of(names, name.key);
	if (place > 0 && name.key - names->entries[place - 1].key < names->entries[place - 1].bytes)
		remove_at(names, --place);
	while (place < names->count && names->entries[place].key - name.key < name.bytes)
		remove_at(names, place);
	memmove(&names->entries[place + 1], &names->entries[place],
		(names->count - place) * sizeof(names->entries[0]));
	names->entries[place] = name;
	names->count++;
	return true;
}

bool trace_name_take(struct trace_names *names, uint64_t key, struct trace_name *out)
{
	size_t place = place_of(names, key);

	if (place == 0 || names->entries[place - 1].key != key)
		return false;
	if (out != NULL)
		*out = names->entries[place - 1];
	remove_at(names, place - 1);
	return true;
}

void trace_names_free(struct trace_names *names)
{
	free(names->entries);
	*names = (struct trace_names){ 0 };
}
