/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program holds: a table a kind, by address or handle, and a ring of what it gave back.
 */
#include "validate/objects.h"

#define HISTORY_MAX 4096u

struct objects {
	GHashTable *live[OBJECT_KIND_COUNT]; /* key -> struct object */
	struct object *history;              /* a ring of HISTORY_MAX */
	unsigned ended;                      /* since the start */
	object_watcher watcher;
	void *arg;
};

static const struct {
	const char *name, *ender;
} kinds[OBJECT_KIND_COUNT] = {
	[OBJECT_RESERVATION] = { "reservation", "aclrtReleaseMemAddress" },
	[OBJECT_MAPPING] = { "mapping", "aclrtUnmapMem" },
	[OBJECT_ALLOCATION] = { "allocation", "aclrtFree" },
	[OBJECT_PINNED] = { "page-locked host memory", "aclrtFreeHost" },
	[OBJECT_REGISTERED] = { "registered host memory", "aclrtHostUnregister" },
	[OBJECT_OPENED] = { "memory of another process", "aclrtIpcMemClose" },
	[OBJECT_HANDLE] = { "handle", "aclrtFreePhysical" },
};

const char *object_name(enum object_kind kind)
{
	return kinds[kind].name;
}

const char *object_ender(enum object_kind kind)
{
	return kinds[kind].ender;
}

struct objects *objects_new(object_watcher watcher, void *arg)
{
	struct objects *objects = g_new0(struct objects, 1);

	objects->watcher = watcher;
	objects->arg = arg;
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		objects->live[i] = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	objects->history = g_new0(struct object, HISTORY_MAX);
	return objects;
}

void objects_free(struct objects *objects)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		g_hash_table_unref(objects->live[i]);
	g_free(objects->history);
	g_free(objects);
}

void objects_add(struct objects *objects, const struct object *object)
{
	struct object *kept = g_memdup2(object, sizeof(*object));
	const struct object *old = objects_find(objects, object->kind, object->key);

	if (old != NULL)
		objects->watcher(objects->arg, old, OBJECT_ENDED);
	g_hash_table_replace(objects->live[object->kind], &kept->key, kept);
	objects->watcher(objects->arg, kept, OBJECT_MADE);
}

void objects_retain(struct objects *objects, struct object *object)
{
	object->references++;
	objects->watcher(objects->arg, object, OBJECT_RETAINED);
}

bool objects_release(struct objects *objects, struct object *object)
{
	if (object->references <= 1)
		return false;
	object->references--;
	objects->watcher(objects->arg, object, OBJECT_RELEASED);
	return true;
}

struct object *objects_find(struct objects *objects, enum object_kind kind, uint64_t key)
{
	return g_hash_table_lookup(objects->live[kind], &key);
}

struct object *objects_around(struct objects *objects, uint64_t address)
{
	static const enum object_kind with_memory[] = { OBJECT_ALLOCATION, OBJECT_PINNED,
							OBJECT_REGISTERED, OBJECT_OPENED,
							OBJECT_MAPPING };
	GHashTableIter iter;
	gpointer value;

	for (unsigned i = 0; i < G_N_ELEMENTS(with_memory); i++) {
		g_hash_table_iter_init(&iter, objects->live[with_memory[i]]);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			struct object *object = value;

			if (address - object->key < object->bytes)
				return object;
		}
	}
	return NULL;
}

static void remember(struct objects *objects, const struct object *object, npu_stack stack)
{
	struct object *place = &objects->history[objects->ended++ % HISTORY_MAX];

	*place = *object;
	place->ended = stack;
	for (uint32_t i = 1; i < object->references; i++)
		objects->watcher(objects->arg, object, OBJECT_RELEASED);
	objects->watcher(objects->arg, object, OBJECT_ENDED);
}

void objects_end(struct objects *objects, enum object_kind kind, uint64_t key, npu_stack stack)
{
	struct object *object = objects_find(objects, kind, key);

	if (object == NULL)
		return;
	remember(objects, object, stack);
	g_hash_table_remove(objects->live[kind], &key);
}

void objects_end_of(struct objects *objects, uint32_t dev, npu_stack stack)
{
	GHashTableIter iter;
	gpointer value;

	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		g_hash_table_iter_init(&iter, objects->live[i]);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			const struct object *object = value;

			if (dev != OBJECT_NO_DEVICE && object->dev != dev)
				continue;
			remember(objects, object, stack);
			g_hash_table_iter_remove(&iter);
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

void objects_each(struct objects *objects, void (*fn)(void *arg, const struct object *object),
		  void *arg)
{
	GHashTableIter iter;
	gpointer value;

	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		g_hash_table_iter_init(&iter, objects->live[i]);
		while (g_hash_table_iter_next(&iter, NULL, &value))
			fn(arg, value);
	}
}
