/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program holds: a tree a kind, by address or handle, and a ring of what it gave back.
 */
#include "validate/objects.h"

#define HISTORY_MAX 4096u

const struct object_words object_words[OBJECT_KIND_COUNT] = {
	[OBJECT_RESERVATION] = { "reservation", "aclrtReleaseMemAddress" },
	[OBJECT_MAPPING] = { "mapping", "aclrtUnmapMem" },
	[OBJECT_ALLOCATION] = { "allocation", "aclrtFree" },
	[OBJECT_PINNED] = { "page-locked host memory", "aclrtFreeHost" },
	[OBJECT_REGISTERED] = { "registered host memory", "aclrtHostUnregister" },
	[OBJECT_OPENED] = { "memory of another process", "aclrtIpcMemClose" },
	[OBJECT_HANDLE] = { "handle", "aclrtFreePhysical" },
	[OBJECT_BLOCK] = { "block", "npusimBlockFree" },
	[OBJECT_OLD_BLOCK] = { "block", "npusimBlock" },
};

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
	const uint64_t *left = a, *right = b;

	(void)unused;
	return (*left > *right) - (*left < *right);
}

struct objects *objects_new(void)
{
	struct objects *objects = g_new0(struct objects, 1);

	objects->growth = growth_new();
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		objects->live[i] = g_tree_new_full(compare, NULL, NULL, g_free);
	objects->history = g_new0(struct object, HISTORY_MAX);
	return objects;
}

void objects_free(struct objects *objects)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		g_tree_unref(objects->live[i]);
	growth_free(objects->growth);
	g_free(objects->history);
	g_free(objects);
}

/* It is counted no more. */
static void uncount(struct objects *objects, const struct object *object)
{
	struct counters *counters = growth_of(objects->growth, object);

	counters->ended++;
	counters->bytes -= object->bytes;
}

struct object *objects_add(struct objects *objects, const struct object *object)
{
	struct object *kept = g_memdup2(object, sizeof(*object));
	const struct object *old = objects_find(objects, object->kind, object->key);
	struct counters *counters;

	if (old != NULL && !old->own)
		uncount(objects, old);
	g_tree_replace(objects->live[object->kind], &kept->key, kept);
	counters = growth_of(objects->growth, kept);
	counters->made++;
	counters->bytes += kept->bytes;
	return kept;
}

void objects_retain(struct objects *objects, struct object *object)
{
	object->references++;
	growth_of(objects->growth, object)->retained++;
}

void objects_own(struct objects *objects, struct object *object)
{
	if (!object->own)
		uncount(objects, object);
	object->own = true;
}

bool objects_release(struct objects *objects, struct object *object)
{
	if (object->references <= 1)
		return false;
	object->references--;
	growth_of(objects->growth, object)->ended++;
	return true;
}

struct object *objects_find(struct objects *objects, enum object_kind kind, uint64_t key)
{
	return g_tree_lookup(objects->live[kind], &key);
}

struct object *objects_before(struct objects *objects, enum object_kind kind, uint64_t address)
{
	GTreeNode *node = g_tree_upper_bound(objects->live[kind], &address);

	node = node != NULL ? g_tree_node_previous(node) : g_tree_node_last(objects->live[kind]);
	return node != NULL ? g_tree_node_value(node) : NULL;
}

struct object *objects_meeting(struct objects *objects, enum object_kind kind, uint64_t begin,
			       uint64_t end)
{
	struct object *object = objects_before(objects, kind, begin);
	GTreeNode *node;

	if (object != NULL && begin - object->key < object->bytes)
		return object;
	node = g_tree_upper_bound(objects->live[kind], &begin);
	object = node != NULL ? g_tree_node_value(node) : NULL;
	return object != NULL && object->key < end ? object : NULL;
}

struct object *objects_around(struct objects *objects, uint64_t address)
{
	static const enum object_kind with_memory[] = { OBJECT_BLOCK,  OBJECT_ALLOCATION,
							OBJECT_PINNED, OBJECT_REGISTERED,
							OBJECT_OPENED, OBJECT_MAPPING };
	struct object *object = NULL;

	for (unsigned i = 0; i < G_N_ELEMENTS(with_memory) && object == NULL; i++)
		object = objects_meeting(objects, with_memory[i], address, address + 1);
	return object;
}

void objects_end(struct objects *objects, enum object_kind kind, uint64_t key, npu_stack stack)
{
	const struct object *object = objects_find(objects, kind, key);
	struct object *place;

	if (object == NULL)
		return;
	place = &objects->history[objects->ended++ % HISTORY_MAX];
	*place = *object;
	place->ended = stack;
	growth_of(objects->growth, object)->ended +=
		object->references > 1 ? object->references - 1 : 0;
	if (!object->own)
		uncount(objects, object);
	g_tree_remove(objects->live[kind], &key);
}

void objects_end_of(struct objects *objects, uint32_t dev, npu_stack stack)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		GTreeNode *node = g_tree_node_first(objects->live[i]), *next;

		for (; node != NULL; node = next) {
			const struct object *object = g_tree_node_value(node);

			next = g_tree_node_next(node);
			if (object->dev == dev)
				objects_end(objects, object->kind, object->key, stack);
		}
	}
}

const struct object *objects_ended(const struct objects *objects, bool handle, uint64_t key,
				   bool exact)
{
	for (unsigned i = 0; i < MIN(objects->ended, HISTORY_MAX); i++) {
		const struct object *object =
			&objects->history[(objects->ended - 1 - i) % HISTORY_MAX];

		if ((object->kind == OBJECT_HANDLE) != handle)
			continue;
		if (object->key == key || (!exact && !handle && key - object->key < object->bytes))
			return object;
	}
	return NULL;
}
