/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program holds: a tree a kind, by address or handle, and a ring of what it gave back. And
 * growth: counters by kind and stack, and copies of them at marks.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>

#define HISTORY_MAX 4096u
#define STREAK      2 /* marks in a row */

const struct object_words object_words[OBJECT_KIND_COUNT] = {
	[OBJECT_RESERVATION] = { "reservation", "aclrtReleaseMemAddress" },
	[OBJECT_MAPPING] = { "mapping", "aclrtUnmapMem" },
	[OBJECT_ALLOCATION] = { "allocation", "aclrtFree" },
	[OBJECT_PINNED] = { "page-locked host allocation", "aclrtFreeHost" },
	[OBJECT_REGISTERED] = { "registered host range", "aclrtHostUnregister" },
	[OBJECT_OPENED] = { "imported range", "aclrtIpcMemClose" },
	[OBJECT_HANDLE] = { "handle", "aclrtFreePhysical" },
	[OBJECT_BLOCK] = { "block", "npusimBlockFree" },
	[OBJECT_OLD_BLOCK] = { "block", "npusimBlock" },
};

/* ---- growth ---- */

struct row {
	enum object_kind kind;
	npu_stack made;
	struct counters now;
};

/* A row at the marks of one name. */
struct seen {
	struct counters first, last;
	unsigned streak;
	bool reported;
};

struct mark {
	char *name;
	npu_stack stack; /* of the last */
	unsigned number;
	GArray *rows; /* of struct seen, by the row's index */
};

static void mark_free(gpointer value)
{
	struct mark *mark = value;

	g_array_unref(mark->rows);
	g_free(mark);
}

struct counters *growth_of(struct validate *v, const struct object *object)
{
	gint64 key = (gint64)object->kind << 32 | object->made;
	guint at = GPOINTER_TO_UINT(g_hash_table_lookup(v->index, &key));
	struct row row = { .kind = object->kind, .made = object->made };

	if (at == 0) {
		g_array_append_val(v->rows, row);
		at = v->rows->len;
		g_hash_table_insert(v->index, g_memdup2(&key, sizeof(key)), GUINT_TO_POINTER(at));
	}
	return &g_array_index(v->rows, struct row, at - 1).now;
}

/* References that are held: of all kinds but handles one an object. */
static uint64_t held(const struct counters *counters)
{
	return counters->made + counters->retained - counters->ended;
}

static struct counters since(const struct counters *now, const struct counters *then)
{
	return (struct counters){ now->made - then->made, now->retained - then->retained,
				  now->ended - then->ended, now->bytes - then->bytes };
}

static void tell_row(const struct mark *mark, const struct row *row, const struct seen *seen)
{
	struct counters grown = since(&row->now, &seen->last);

	report_make(REPORT(GROWTH, mark->stack, .made = row->made),
		    "since mark '%s' %u of 1 to %u, %" PRIu64 " more of %s %s held: %" PRIu64
		    " made, %" PRIu64 " retained, %" PRIu64 " given back; in all %" PRIu64
		    ", %s: %s gives such memory back",
		    mark->name, mark->number - 1, mark->number, held(&grown),
		    object_words[row->kind].name, held(&grown) == 1 ? "is" : "are", grown.made,
		    grown.retained, grown.ended, held(&row->now), npu_size_text(row->now.bytes),
		    object_words[row->kind].ender);
}

void growth_mark(struct validate *v, const char *name)
{
	struct mark *mark = g_hash_table_lookup(v->marks, name);

	if (mark == NULL) {
		mark = g_new0(struct mark, 1);
		mark->name = g_strdup(name);
		mark->rows = g_array_new(FALSE, TRUE, sizeof(struct seen));
		g_hash_table_insert(v->marks, mark->name, mark);
	}
	mark->number++;
	mark->stack = stack_of(v);
	g_array_set_size(mark->rows, v->rows->len);
	for (guint i = 0; i < v->rows->len; i++) {
		const struct row *row = &g_array_index(v->rows, struct row, i);
		struct seen *seen = &g_array_index(mark->rows, struct seen, i);

		if (mark->number == 1)
			seen->first = seen->last = row->now;
		seen->streak = held(&row->now) > held(&seen->last) ? seen->streak + 1 : 0;
		if (seen->streak >= STREAK) {
			tell_row(mark, row, seen);
			seen->reported = true;
		}
		seen->last = row->now;
	}
}

static gint larger_first(gconstpointer a, gconstpointer b)
{
	const struct row *left = a, *right = b;

	return (left->now.bytes < right->now.bytes) - (left->now.bytes > right->now.bytes);
}

void growth_left(const struct validate *v)
{
	g_autoptr(GArray) rows = g_array_copy(v->rows);

	g_array_sort(rows, larger_first);
	for (guint i = 0; i < rows->len; i++) {
		const struct row *row = &g_array_index(rows, struct row, i);
		unsigned long long count = held(&row->now);

		if (count > 0 && row->kind < OBJECT_BLOCK)
			report_make(REPORT(LEAK, 0, .made = row->made),
				    "%s of %s in all %s left at the end of the process: %s gives "
				    "such memory back",
				    npu_counted(count, object_words[row->kind].name),
				    npu_size_text(row->now.bytes), count == 1 ? "is" : "are",
				    object_words[row->kind].ender);
	}
}

void growth_tell(const struct validate *v)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, v->marks);
	while (report_wanted(VALIDATE_GROWTH) && g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct mark *mark = value;
		g_autoptr(GString) rows = g_string_new(NULL);

		for (guint i = 0; i < mark->rows->len; i++) {
			const struct row *row = &g_array_index(v->rows, struct row, i);
			const struct seen *seen = &g_array_index(mark->rows, struct seen, i);
			struct counters grown = since(&seen->last, &seen->first);
			g_autofree char *by = NULL;

			if (!seen->reported || (int64_t)held(&grown) <= 0 ||
			    suppress_has(REPORT(GROWTH, mark->stack, .made = row->made)))
				continue;
			by = npu_stack_words(row->made);
			g_string_append_printf(rows,
					       "  %10s %8" PRIu64 " %8" PRIu64 " %8" PRIu64
					       " %8" PRIu64 "  %s%s%s\n",
					       npu_size_words((int64_t)grown.bytes), held(&grown),
					       grown.made, grown.retained, grown.ended,
					       object_words[row->kind].name, by != NULL ? ": " : "",
					       by ?: "");
		}
		if (rows->len > 0)
			report_add_lines("grown from mark '%s' 1 to %u:\n"
					 "  %10s %8s %8s %8s %8s  by\n%s",
					 mark->name, mark->number, "bytes", "held", "+create",
					 "+retain", "-free", rows->str);
	}
}

/* ---- objects ---- */

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
	const struct object *left = a, *right = b;
	gint by_key = (left->key > right->key) - (left->key < right->key);

	(void)unused;
	return by_key ?: (left->dev > right->dev) - (left->dev < right->dev);
}

void objects_open(struct validate *v)
{
	v->index = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	v->rows = g_array_new(FALSE, TRUE, sizeof(struct row));
	v->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, mark_free);
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		v->live[i] = g_tree_new_full(compare, NULL, NULL, g_free);
	v->history = g_new0(struct object, HISTORY_MAX);
	v->ended = 0;
}

void objects_close(struct validate *v)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++)
		g_tree_unref(v->live[i]);
	g_hash_table_unref(v->index);
	g_array_unref(v->rows);
	g_hash_table_unref(v->marks);
	g_free(v->history);
}

/* It is counted no more. */
static void uncount(struct validate *v, const struct object *object)
{
	struct counters *counters = growth_of(v, object);

	counters->ended++;
	counters->bytes -= object->bytes;
}

struct object *objects_add(struct validate *v, const struct object *object)
{
	struct object *kept = g_memdup2(object, sizeof(*object));
	struct counters *counters = growth_of(v, kept);

	kept->number = ++v->made;
	g_tree_replace(v->live[object->kind], kept, kept);
	counters->made++;
	counters->bytes += kept->bytes;
	return kept;
}

void objects_own(struct validate *v, struct object *object)
{
	if (!object->own)
		uncount(v, object);
	object->own = true;
}

struct object *objects_find(struct validate *v, enum object_kind kind, uint64_t key)
{
	GTreeNode *node = g_tree_lower_bound(v->live[kind], &(struct object){ .key = key });
	struct object *object = node != NULL ? g_tree_node_value(node) : NULL;

	return object != NULL && object->key == key ? object : NULL;
}

struct object *objects_find_like(struct validate *v, const struct object *object)
{
	return object->kind == OBJECT_REGISTERED ? g_tree_lookup(v->live[object->kind], object)
						 : objects_find(v, object->kind, object->key);
}

struct object *objects_meeting(struct validate *v, enum object_kind kind, uint64_t begin,
			       uint64_t end)
{
	const struct object at = { .key = begin, .dev = UINT32_MAX };
	GTreeNode *next = g_tree_upper_bound(v->live[kind], &at);
	GTreeNode *node =
		next != NULL ? g_tree_node_previous(next) : g_tree_node_last(v->live[kind]);
	struct object *object = node != NULL ? g_tree_node_value(node) : NULL;

	if (object != NULL && begin - object->key < object->bytes)
		return object;
	object = next != NULL ? g_tree_node_value(next) : NULL;
	return object != NULL && object->key < end ? object : NULL;
}

struct object *objects_around(struct validate *v, uint64_t address)
{
	static const enum object_kind with_memory[] = { OBJECT_BLOCK,  OBJECT_ALLOCATION,
							OBJECT_PINNED, OBJECT_REGISTERED,
							OBJECT_OPENED, OBJECT_MAPPING };
	struct object *object = NULL;

	for (unsigned i = 0; i < G_N_ELEMENTS(with_memory) && object == NULL; i++)
		object = objects_meeting(v, with_memory[i], address, address + 1);
	return object;
}

struct object *objects_end(struct validate *v, const struct object *object)
{
	struct object *place = &v->history[v->ended++ % HISTORY_MAX];

	*place = *object;
	place->ended = stack_of(v);
	growth_of(v, object)->ended += object->references > 1 ? object->references - 1 : 0;
	if (!object->own)
		uncount(v, object);
	g_tree_remove(v->live[object->kind], place);
	return place;
}

struct object *objects_ended_as(struct validate *v, uint64_t number)
{
	for (unsigned i = MIN(v->ended, HISTORY_MAX); i-- > 0;)
		if (v->history[i].number == number)
			return &v->history[i];
	return NULL;
}

void objects_end_of(struct validate *v, uint32_t dev)
{
	/* 0, or another thread has opened it again */
	uint64_t opened = v->peers[dev % VALIDATE_DEVICES][dev % VALIDATE_DEVICES];

	for (unsigned i = 0; i < OBJECT_KIND_COUNT; i++) {
		GTreeNode *node = g_tree_node_first(v->live[i]), *next;

		for (; node != NULL; node = next) {
			const struct object *object = g_tree_node_value(node);

			next = g_tree_node_next(node);
			if (object->dev == dev && (opened == 0 || object->number < opened))
				objects_end(v, object);
		}
	}
}

const struct object *objects_ended(const struct validate *v, bool handle, uint64_t key, bool exact)
{
	for (unsigned i = 0; i < MIN(v->ended, HISTORY_MAX); i++) {
		const struct object *object = &v->history[(v->ended - 1 - i) % HISTORY_MAX];

		if ((object->kind == OBJECT_HANDLE) != handle)
			continue;
		if (object->key == key || (!exact && !handle && key - object->key < object->bytes))
			return object;
	}
	return NULL;
}
