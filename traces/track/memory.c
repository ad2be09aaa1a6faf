/* SPDX-License-Identifier: Apache-2.0
 *
 * The index by address. Keeps the items at each address with serial numbers; a moment is the serial
 * number at which it was marked. An item that goes away and is not younger than a moment is put on
 * that moment's list. Marking a moment anew empties its list.
 */
#include "memory.h"

#include <string.h>

/* Of a file's live ones. */
struct block {
	guint64 size;
	guint64 place; /* where it came: the line of a file that has lines, else the event */
};

struct chunk {
	guint64 head; /* where it begins: the first is searched whatever its head */
	struct chunk_blocks {
		guint64 addresses[MEMORY_CHUNK_MAX]; /* apart: a search looks at them alone */
		struct block blocks[MEMORY_CHUNK_MAX];
	} * of;
	guint count;
};

static struct chunk *chunk_at(const struct memory *m, guint i)
{
	return &g_array_index(m->file.chunks, struct chunk, i);
}

static void chunk_clear(gpointer chunk)
{
	g_free(((struct chunk *)chunk)->of);
}

static void item_clear(gpointer item)
{
	g_clear_pointer(&((struct allocation *)item)->runs, g_array_unref);
}

void memory_init(struct memory *m, guint unit)
{
	const struct chunk first = { 0, g_new0(struct chunk_blocks, 1), 0 };

	*m = (struct memory){ .unit = MAX(unit, 1),
			      .file.chunks = g_array_new(FALSE, FALSE, sizeof first) };
	g_array_set_clear_func(m->file.chunks, chunk_clear);
	g_array_append_val(m->file.chunks, first);
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++)
		m->items[k] = int_map_new(sizeof(struct allocation), item_clear);
}

void memory_clear(struct memory *m)
{
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++) {
		for (guint i = 0; i < m->moment_count; i++)
			g_array_unref(m->moments[i].gone[k]);
		int_map_free(m->items[k]);
	}
	g_array_unref(m->file.chunks);
	g_free(m->file.first);
}

static gboolean was_there(const struct moment *moment, const struct allocation *item)
{
	return moment->reached && item->born <= moment->serial;
}

/* Physical memory is counted where it is obtained, not where it lies. */
static void count_item(struct memory *m, enum allocation_kind kind, const struct allocation *item,
		       gboolean comes)
{
	if (kind == ALLOCATION_BLOCK) {
		levels_change(&m->levels, LEVEL_LIVE, comes, item->asked);
		levels_change(&m->levels, LEVEL_TAKEN, comes, item->size);
	} else if (kind == ALLOCATION_RESERVED || !item->mapped) {
		levels_change(&m->levels, LEVEL_RESERVED, comes, item->size);
	}
}

gboolean memory_add(struct memory *m, enum allocation_kind kind, const struct allocation *item)
{
	struct allocation *kept = int_map_add(m->items[kind], item->key, 0);
	gboolean known = kept->born != 0;

	if (known) {
		memory_remove(m, kind, item->key);
		kept = int_map_add(m->items[kind], item->key, 0);
	}
	*kept = *item;
	kept->born = ++m->serial;
	m->has_blocks |= kind == ALLOCATION_BLOCK;
	count_item(m, kind, kept, TRUE);
	return known;
}

static void look(const struct memory *m, struct allocation *item)
{
	for (guint i = 0; item->runs == NULL && i < m->moment_count; i++) {
		if (m->look_all || was_there(&m->moments[i], item))
			m->look(item, m->data);
	}
}

void memory_look(struct memory *m, guint64 key)
{
	struct allocation *item =
		m->look ? int_map_find(m->items[ALLOCATION_MEMORY], key, 0) : NULL;

	if (item)
		look(m, item);
}

gboolean memory_remove(struct memory *m, enum allocation_kind kind, guint64 key)
{
	struct allocation *item = int_map_find(m->items[kind], key, 0);

	if (item == NULL)
		return FALSE;
	count_item(m, kind, item, FALSE);
	for (guint i = 0; i < m->moment_count; i++) {
		if (!was_there(&m->moments[i], item))
			continue;
		if (item->runs)
			g_array_ref(item->runs);
		g_array_append_vals(m->moments[i].gone[kind], item, 1);
	}
	int_map_remove(m->items[kind], item);
	return TRUE;
}

void memory_look_all(struct memory *m)
{
	struct allocation *item = NULL;

	while (m->look && (item = int_map_next(m->items[ALLOCATION_MEMORY], item)))
		look(m, item);
}

void memory_add_moment(struct memory *m, enum moment_what what, guint64 wanted)
{
	struct moment *moment = &m->moments[m->moment_count++];

	*moment = (struct moment){ .what = (guint8)what, .wanted = wanted };
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++) {
		moment->gone[k] = g_array_new(FALSE, FALSE, sizeof(struct allocation));
		g_array_set_clear_func(moment->gone[k], item_clear);
	}
}

void memory_mark(struct memory *m, struct moment *moment, guint64 event)
{
	for (int k = 0; k < ALLOCATION_KIND_COUNT; k++)
		g_array_set_size(moment->gone[k], 0);
	moment->reached = TRUE;
	moment->serial = m->serial;
	moment->event = event;
	moment->sums = memory_sums(m);
}

static gint by_place(gconstpointer a, gconstpointer b)
{
	const struct allocation *x = *(struct allocation *const *)a;
	const struct allocation *y = *(struct allocation *const *)b;

	return COMPARE(x->address, y->address) ?: COMPARE(x->born, y->born);
}

GPtrArray *memory_at(const struct memory *m, const struct moment *moment, enum allocation_kind kind)
{
	const GArray *gone = moment->gone[kind];
	struct allocation *item = NULL;
	GPtrArray *out = g_ptr_array_new();

	for (guint i = 0; i < gone->len; i++)
		g_ptr_array_add(out, &g_array_index(gone, struct allocation, i));
	while ((item = int_map_next(m->items[kind], item))) {
		if (was_there(moment, item))
			g_ptr_array_add(out, item);
	}
	g_ptr_array_sort(out, by_place);
	return out;
}

static void on_alloc(struct memory *m, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	gboolean placed = (r->has & NPU_TRACE_HAS_ROUNDED) != 0;
	gboolean start = (r->has & NPU_TRACE_HAS_START) != 0;
	const struct allocation *known =
		start ? int_map_find(m->items[ALLOCATION_BLOCK], item->address, 0) : NULL;
	/* a block of the start may lie elsewhere than the file says */
	gboolean again = known && placed;
	const struct allocation block = {
		.key = item->address,
		.address = placed ? r->va : item->address,
		.size = placed ? r->rounded : round_up(item->size, m->unit),
		.asked = again ? known->asked : item->size,
		.site = again                              ? known->site
			: start && item->site == SITE_NONE ? SITE_BEFORE
							   : item->site,
	};

	m->unmatched += memory_add(m, ALLOCATION_BLOCK, &block) && !again;
}

void memory_started(struct memory *m)
{
	struct level *live = &m->levels.of[LEVEL_LIVE];

	levels_start(&m->levels);
	live->peak.bytes = m->levels.live_at_peak = live->now;
}

void memory_step(struct memory *m, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	guint64 pages = r->has & NPU_TRACE_HAS_ROUNDED ? r->rounded : malloc_pages(item->size);
	int change = segment_change(r->verb);

	if (r->verb == NPU_TRACE_ALLOC)
		on_alloc(m, item);
	else if (r->verb == NPU_TRACE_FREE)
		m->unmatched += !memory_remove(m, ALLOCATION_BLOCK, item->address);
	else if (change != 0)
		levels_pages(&m->levels, change > 0, item->size, pages);
}

struct memory_sums memory_sums(const struct memory *m)
{
	const struct level *of = m->levels.of;
	guint64 live = of[LEVEL_LIVE].now, physical = of[LEVEL_PHYSICAL].now;
	guint64 taken = of[LEVEL_TAKEN].now, rounding = of[LEVEL_ROUNDING].now;

	return (struct memory_sums){
		.live = live,
		.physical = physical,
		.reserved = of[LEVEL_RESERVED].now,
		.internal = taken - MIN(live, taken),
		.rounding = rounding,
		.external = (gint64)physical - (gint64)MIN(taken + rounding, G_MAXINT64),
	};
}

/* ---- the file's live blocks. There may be many: in chunks a search looks at few places in memory.
 * Two neighbours have half a chunk or more together, and none is empty but an only one. ---- */

/* How many of `count` that begin with an address, which rises, are not above this one. Nothing is
 * there to be guessed: each step takes half of them away. */
static inline guint count_up_to(gconstpointer first, guint count, gsize bytes, guint64 address)
{
#define ADDRESS(at) (*(const guint64 *)(gconstpointer)(at))
	const char *at = first;

	for (guint half; count > 1; count -= half) {
		half = count / 2;
		at += ADDRESS(at + (half - 1) * bytes) <= address ? half * bytes : 0;
	}
	at += count > 0 && ADDRESS(at) <= address ? bytes : 0;
	return (guint)((gsize)(at - (const char *)first) / bytes);
#undef ADDRESS
}

/* Where what begins at an address is or would be: behind `before` blocks of a chunk. */
struct spot {
	guint chunk, before;
};

static guint chunk_of(const struct memory *m, guint64 address)
{
	const struct chunk *first = chunk_at(m, 0);
	guint i = count_up_to(first + 1, m->file.chunks->len - 1, sizeof *first, address);

	/* the lines come at once, not one for each step of a search */
	for (guint k = 0; k < MEMORY_CHUNK_MAX; k += 64 / sizeof first->of->addresses[0])
		__builtin_prefetch(&first[i].of->addresses[k]);
	return i;
}

static struct spot spot_of(const struct memory *m, guint64 address)
{
	guint i = chunk_of(m, address);
	const struct chunk *chunk = chunk_at(m, i);

	return (struct spot){ i, count_up_to(chunk->of->addresses, chunk->count,
					     sizeof chunk->of->addresses[0], address) };
}

static void blocks_move(struct chunk_blocks *to, guint at, const struct chunk_blocks *from,
			guint first, guint count)
{
	memmove(&to->addresses[at], &from->addresses[first], count * sizeof to->addresses[0]);
	memmove(&to->blocks[at], &from->blocks[first], count * sizeof to->blocks[0]);
}

/* In place of what begins where it does. */
static void block_put(struct memory *m, struct spot spot, guint64 address,
		      const struct block *block)
{
	struct chunk *chunk = chunk_at(m, spot.chunk);
	struct chunk_blocks *of = chunk->of;

	if (spot.before > 0 && of->addresses[spot.before - 1] == address) {
		of->blocks[spot.before - 1] = *block;
		return;
	}
	blocks_move(of, spot.before + 1, of, spot.before, chunk->count++ - spot.before);
	of->addresses[spot.before] = address;
	of->blocks[spot.before] = *block;
	if (chunk->count < MEMORY_CHUNK_MAX)
		return;
	chunk->count = MEMORY_CHUNK_MAX / 2;
	struct chunk rest = { of->addresses[chunk->count], g_new0(struct chunk_blocks, 1),
			      chunk->count };
	blocks_move(rest.of, 0, of, chunk->count, chunk->count);
	g_array_insert_val(m->file.chunks, spot.chunk + 1, rest);
}

/* The block before the spot. */
static void block_drop(struct memory *m, struct spot spot)
{
	struct chunk *chunk = chunk_at(m, spot.chunk);

	blocks_move(chunk->of, spot.before - 1, chunk->of, spot.before,
		    chunk->count-- - spot.before);
	for (guint i = MIN(spot.chunk + 1, m->file.chunks->len - 1); i > 0 && i >= spot.chunk;
	     i--) {
		struct chunk *into = chunk_at(m, i - 1), *from = chunk_at(m, i);
		if (MIN(into->count, from->count) > 0 &&
		    into->count + from->count >= MEMORY_CHUNK_MAX / 2)
			continue;
		blocks_move(into->of, into->count, from->of, 0, from->count);
		into->count += from->count;
		g_array_remove_index(m->file.chunks, i);
	}
	chunk = chunk_at(m, MIN(spot.chunk, m->file.chunks->len - 1));
	chunk->head = chunk->of->addresses[0];
}

void memory_soon(const struct memory *m, const guint64 *addresses, guint count, guint64 *out)
{
	const struct int_map *blocks = m->items[ALLOCATION_BLOCK];

	for (guint i = 0; i < count; i++)
		chunk_of(m, addresses[i]);
	int_map_soon(blocks, addresses, count);
	for (guint i = 0; i < count; i++) {
		const struct allocation *block = int_map_find(blocks, addresses[i], 0);
		out[i] = block ? block->address : 0;
	}
	int_map_soon(m->items[ALLOCATION_MEMORY], out, count);
}

char *history_place(guint64 line, guint64 event)
{
	return line    ? g_strdup_printf("line " U64, line)
	       : event ? g_strdup_printf("event " U64, event)
		       : g_strdup("the start");
}

/* `there`: the block that it meets, at `begins`; NULL: none is where one should be. */
static void contradict(struct memory *m, const struct record_item *item, const struct block *there,
		       guint64 begins)
{
	gboolean has_va = (item->record.has & NPU_TRACE_HAS_VA) != 0;
	g_autoptr(GString) what = g_string_new(NULL), at = g_string_new(NULL);

	if (m->file.contradictions++ > 0)
		return;
	if (has_va)
		g_string_printf(what, "0x%" G_GINT64_MODIFIER "x", item->record.va);
	else
		record_name_text(&item->record.name, what);
	g_autofree char *place = history_place(item->record.line, m->levels.event);
	g_autofree char *since =
		there ? history_place(item->record.line ? there->place : 0, there->place) : NULL;
	if (there && has_va)
		g_string_printf(at, " at 0x%" G_GINT64_MODIFIER "x", begins);
	m->file.first =
		there ? g_strdup_printf("%s allocates " U64 " bytes, %s, over the block of " U64
					" bytes%s that is live since %s",
					place, item->size, what->str, there->size, at->str, since)
		      : g_strdup_printf("%s frees %s, where no block is live: it was freed before, "
					"or handed out before the file begins",
					place, what->str);
}

void memory_step_file(struct memory *m, const struct record_item *item)
{
	const struct npu_trace_record *r = &item->record;
	const struct block new = { item->size, r->line ?: m->levels.event };
	gboolean comes = r->verb == NPU_TRACE_ALLOC, goes = r->verb == NPU_TRACE_FREE;
	/* addresses that stand for names have no extent */
	gboolean placed = comes && (r->has & NPU_TRACE_HAS_VA) && r->va == item->address;
	guint64 last = item->address + (placed ? MAX(item->size, 1) - 1 : 0);
	struct spot spot = { 0 };
	const struct block *there = NULL;
	guint64 begins = 0;

	if (comes || goes)
		spot = spot_of(m, last);
	if (spot.before > 0) {
		const struct chunk_blocks *of = chunk_at(m, spot.chunk)->of;
		begins = of->addresses[spot.before - 1];
		if (begins == item->address ||
		    (placed && (begins > item->address ||
				item->address - begins < of->blocks[spot.before - 1].size)))
			there = &of->blocks[spot.before - 1];
	}
	if (comes ? there != NULL : goes && there == NULL)
		contradict(m, item, there, begins);
	if (there) {
		levels_step(&m->file.levels, NPU_TRACE_FREE, there->size, FALSE);
		block_drop(m, spot);
	}
	if (comes)
		block_put(m, there ? spot_of(m, item->address) : spot, item->address, &new);
	if (!goes)
		levels_step(&m->file.levels, r->verb, item->size, FALSE);
	if (r->verb == NPU_TRACE_OOM && m->file.oom.event == 0)
		m->file.oom = (struct recorded_oom){ m->levels.event, item->size, r->free_bytes,
						     m->file.levels.of[LEVEL_SEGMENTS].now,
						     m->file.levels.of[LEVEL_LIVE].now };
}
