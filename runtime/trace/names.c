/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of names, ordered by key, balanced by random priorities (a treap): with tens of thousands
 * of them, a call costs well under a microsecond.
 */
#include "trace/names.h"

#include <stdlib.h>

struct trace_name_node {
	struct trace_name name;
	uint32_t left, right, weight; /* no child weighs more; left: the next free one too */
};

#define NODE(names, index) (&(names)->nodes[index])

/* The last that begins at or before `key`; 0: none. */
static uint32_t before(const struct trace_names *names, uint64_t key)
{
	uint32_t at = names->root, best = 0;

	while (at != 0) {
		if (NODE(names, at)->name.key <= key) {
			best = at;
			at = NODE(names, at)->right;
		} else {
			at = NODE(names, at)->left;
		}
	}
	return best;
}

/* The first that begins at or after `key`; 0: none. */
static uint32_t from(const struct trace_names *names, uint64_t key)
{
	uint32_t at = names->root, best = 0;

	while (at != 0) {
		if (NODE(names, at)->name.key >= key) {
			best = at;
			at = NODE(names, at)->left;
		} else {
			at = NODE(names, at)->right;
		}
	}
	return best;
}

struct trace_name *trace_name_find(const struct trace_names *names, uint64_t key)
{
	uint32_t at = before(names, key);

	if (at == 0 || key - NODE(names, at)->name.key >= NODE(names, at)->name.bytes)
		return NULL;
	return &NODE(names, at)->name;
}

struct trace_name *trace_name_from(const struct trace_names *names, uint64_t key)
{
	uint32_t at = from(names, key);

	return at == 0 ? NULL : &NODE(names, at)->name;
}

/* All of `a` lie before all of `b`. */
static uint32_t join(struct trace_names *names, uint32_t a, uint32_t b)
{
	uint32_t root = 0, *place = &root;

	while (a != 0 && b != 0) {
		if (NODE(names, a)->weight > NODE(names, b)->weight) {
			*place = a;
			place = &NODE(names, a)->right;
			a = *place;
		} else {
			*place = b;
			place = &NODE(names, b)->left;
			b = *place;
		}
	}
	*place = a != 0 ? a : b;
	return root;
}

static void split(struct trace_names *names, uint32_t root, uint64_t key, uint32_t *below,
		  uint32_t *rest)
{
	while (root != 0) {
		struct trace_name_node *node = NODE(names, root);

		if (node->name.key < key) {
			*below = root;
			below = &node->right;
			root = node->right;
		} else {
			*rest = root;
			rest = &node->left;
			root = node->left;
		}
	}
	*below = *rest = 0;
}

/* A node that is in use by nobody; 0: no memory. */
static uint32_t take_node(struct trace_names *names)
{
	uint32_t at = names->free;

	if (at != 0) {
		names->free = NODE(names, at)->left;
		return at;
	}
	if (names->count == names->room) {
		uint32_t room = names->room == 0 ? 64 : names->room * 2;
		struct trace_name_node *grown = realloc(names->nodes, room * sizeof(*grown));

		if (grown == NULL)
			return 0;
		names->nodes = grown;
		names->room = room;
		if (names->count == 0) {
			names->nodes[0] = (struct trace_name_node){ .weight = 0 };
			names->count = 1;
		}
	}
	return names->count++;
}

static void remove_overlaps(struct trace_names *names, const struct trace_name *name)
{
	uint32_t at = before(names, name->key);

	if (at != 0 && name->key - NODE(names, at)->name.key < NODE(names, at)->name.bytes)
		trace_name_take(names, NODE(names, at)->name.key, NULL);
	while ((at = from(names, name->key)) != 0 &&
	       NODE(names, at)->name.key - name->key < name->bytes)
		trace_name_take(names, NODE(names, at)->name.key, NULL);
}

bool trace_name_add(struct trace_names *names, struct trace_name name)
{
	uint32_t at = take_node(names), below, rest;

	if (at == 0)
		return false;
	if (name.bytes == 0)
		name.bytes = 1;
	remove_overlaps(names, &name);
	names->dice = names->dice * 1664525u + 1013904223u;
	*NODE(names, at) = (struct trace_name_node){ .name = name, .weight = names->dice };
	split(names, names->root, name.key, &below, &rest);
	names->root = join(names, join(names, below, at), rest);
	return true;
}

bool trace_name_take(struct trace_names *names, uint64_t key, struct trace_name *out)
{
	uint32_t *place = &names->root, at;

	while (*place != 0 && NODE(names, *place)->name.key != key)
		place = key < NODE(names, *place)->name.key ? &NODE(names, *place)->left
							    : &NODE(names, *place)->right;
	at = *place;
	if (at == 0)
		return false;
	if (out != NULL)
		*out = NODE(names, at)->name;
	*place = join(names, NODE(names, at)->left, NODE(names, at)->right);
	NODE(names, at)->left = names->free;
	names->free = at;
	return true;
}

void trace_names_free(struct trace_names *names)
{
	free(names->nodes);
	*names = (struct trace_names){ 0 };
}
