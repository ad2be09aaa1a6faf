/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks objects by their names, and their sums, for convert and diff.
 */
#include "object-tracker.h"

#include "read/int-map.h"
#include "format/units.h"

#define HUGE_LG2 21

/* What a name stands for. */
struct object {
	guint64 id, size;
	guint64 bytes; /* of physical memory */
	gint64 device;
	gint64 first;    /* offset of what was mapped first */
	guint32 process; /* whose memory it is */
	guint32 users, references, maps;
	gboolean has_first;
};
struct tracker {
	gboolean calls;
	GPtrArray *devices;    /* struct tracker_device *, by number */
	struct int_map *names; /* process << 32 | number, letter -> index of an object */
	struct int_map *maps;  /* offset, low half of a reservation's id -> index of a handle */
	/* process << 32 | device -> sets (tag 's'), objects with memory ('t') */
	struct int_map *uses;
	GArray *objects;    /* struct object; the first is no one's */
	GArray *free_slots; /* guint */
	guint64 last[128];  /* ids given out, by letter */
	guint64 reserved;
	struct tracker_peak reserved_peak;
};

const char *tracker_level_name(enum tracker_level level)
{
	static const char *const names[] = { "live", "segments", "physical", "reserved" };

	G_STATIC_ASSERT(G_N_ELEMENTS(names) == TRACKER_LEVEL_COUNT);
	return names[level];
}

/* Whether a verb gets memory, or address space: its sizes are counted. */
static gboolean gets_memory(guint32 verb)
{
	return verb == NPU_TRACE_ALLOC || verb == NPU_TRACE_SEGMENT_ALLOC ||
	       verb == NPU_TRACE_SEGMENT_MAP || verb == NPU_TRACE_CREATE ||
	       verb == NPU_TRACE_MALLOC || verb == NPU_TRACE_RESERVE || verb == NPU_TRACE_OOM;
}

/* ---- devices ---- */

static guint size_hash(gconstpointer key)
{
	const struct tracker_size *s = key;

	return g_int64_hash(&s->size) * 31 + s->verb;
}

static gboolean size_equal(gconstpointer a, gconstpointer b)
{
	const struct tracker_size *x = a, *y = b;

	return x->size == y->size && x->verb == y->verb;
}

static void device_free(gpointer data)
{
	struct tracker_device *d = data;

	g_hash_table_unref(d->others);
	g_hash_table_unref(d->sizes);
	g_free(d);
}

static struct tracker_device *device_of(struct tracker *t, gint64 device)
{
	guint at = 0;

	for (; at < t->devices->len; at++) {
		struct tracker_device *known = g_ptr_array_index(t->devices, at);
		if (known->device == device)
			return known;
		if (known->device > device)
			break;
	}
	struct tracker_device *d = g_new0(struct tracker_device, 1);
	d->device = device;
	d->others = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	d->sizes = g_hash_table_new_full(size_hash, size_equal, g_free, NULL);
	g_ptr_array_insert(t->devices, (gint)at, d);
	return d;
}

guint tracker_count(const struct tracker *t)
{
	return t->devices->len;
}

const struct tracker_device *tracker_at(const struct tracker *t, guint index)
{
	return g_ptr_array_index(t->devices, index);
}

const struct tracker_device *tracker_find(const struct tracker *t, gint64 device)
{
	for (guint i = 0; i < t->devices->len; i++) {
		const struct tracker_device *d = g_ptr_array_index(t->devices, i);
		if (d->device == device)
			return d;
	}
	return NULL;
}

guint64 tracker_reserved(const struct tracker *t)
{
	return t->reserved;
}

const struct tracker_peak *tracker_reserved_peak(const struct tracker *t)
{
	return &t->reserved_peak;
}

/* ---- objects ---- */

struct tracker *tracker_new(gboolean calls)
{
	struct tracker *t = g_new0(struct tracker, 1);

	t->calls = calls;
	t->devices = g_ptr_array_new_with_free_func(device_free);
	t->names = int_map_new();
	t->maps = int_map_new();
	t->uses = int_map_new();
	t->objects = g_array_new(FALSE, TRUE, sizeof(struct object));
	t->free_slots = g_array_new(FALSE, FALSE, sizeof(guint));
	g_array_set_size(t->objects, 1);
	return t;
}

void tracker_free(struct tracker *t)
{
	if (t == NULL)
		return;
	g_ptr_array_unref(t->devices);
	int_map_free(t->names);
	int_map_free(t->maps);
	int_map_free(t->uses);
	g_array_unref(t->objects);
	g_array_unref(t->free_slots);
	g_free(t);
}

static struct object *object_at(const struct tracker *t, guint index)
{
	return &g_array_index(t->objects, struct object, index);
}

/* Shares are numbered once in a file, the rest once in a process. */
static guint64 key_of(guint32 process, const struct npu_trace_name *name)
{
	return (guint64)(name->kind == 's' ? 0 : process) << 32 | name->number;
}

/* 0: there is none. */
static guint find(const struct tracker *t, guint32 process, const struct npu_trace_name *name)
{
	const struct int_map_entry *e =
		name->kind > 0 ? int_map_find(t->names, key_of(process, name), (guint32)name->kind)
			       : NULL;

	return e ? (guint)e->value : 0;
}

static void drop(struct tracker *t, guint index)
{
	if (--object_at(t, index)->users == 0)
		g_array_append_val(t->free_slots, index);
}

static void bind_name(struct tracker *t, guint32 process, const struct npu_trace_name *name,
		      guint index)
{
	guint old = find(t, process, name);

	object_at(t, index)->users++;
	if (old)
		drop(t, old);
	int_map_put(t->names, key_of(process, name), (guint32)name->kind, index);
}

static void unbind_name(struct tracker *t, guint32 process, const struct npu_trace_name *name)
{
	struct int_map_entry *e =
		int_map_find(t->names, key_of(process, name), (guint32)name->kind);

	if (e == NULL)
		return;
	guint index = (guint)e->value;
	int_map_remove(t->names, e);
	drop(t, index);
}

static guint object_new(struct tracker *t, const struct npu_trace_record *r, guint64 bytes,
			gint64 device)
{
	guint index = t->objects->len;

	if (t->free_slots->len > 0) {
		index = g_array_index(t->free_slots, guint, t->free_slots->len - 1);
		g_array_set_size(t->free_slots, t->free_slots->len - 1);
	} else {
		g_array_set_size(t->objects, index + 1);
	}
	guint8 letter = (guint8)r->name.kind & 127;
	*object_at(t, index) = (struct object){ .id = (guint64)letter << 56 | ++t->last[letter],
						.size = r->size,
						.bytes = bytes,
						.device = device,
						.process = r->process,
						.references = 1 };
	bind_name(t, r->process, &r->name, index);
	return index;
}

/* ---- sums ---- */

static void grow(struct tracker *t, gint64 device, enum tracker_level level, guint64 bytes)
{
	struct tracker_device *d = device_of(t, device);

	d->now[level] = MIN(d->now[level] + MIN(bytes, G_MAXINT64), (guint64)G_MAXINT64);
	if (level == TRACKER_SEGMENTS && !t->calls)
		grow(t, device, TRACKER_PHYSICAL, bytes);
}

static void shrink(struct tracker *t, gint64 device, enum tracker_level level, guint64 bytes)
{
	struct tracker_device *d = device_of(t, device);

	d->now[level] -= MIN(d->now[level], bytes);
	if (level == TRACKER_SEGMENTS && !t->calls)
		shrink(t, device, TRACKER_PHYSICAL, bytes);
}

static void note(struct tracker_peak *peak, guint64 bytes, const struct record_item *item)
{
	if (bytes > peak->bytes)
		*peak = (struct tracker_peak){ bytes, item->number, item->record.host_ns };
}

static void count_other(struct tracker_device *d, const char *name)
{
	guint64 *known = g_hash_table_lookup(d->others, name);

	if (known == NULL) {
		known = g_new0(guint64, 1);
		g_hash_table_insert(d->others, g_strdup(name), known);
	}
	++*known;
}

static void count_size(struct tracker_device *d, guint32 verb, guint64 size)
{
	struct tracker_size key = { .size = size, .verb = verb };
	struct tracker_size *known = g_hash_table_lookup(d->sizes, &key);

	if (known == NULL) {
		known = g_memdup2(&key, sizeof key);
		g_hash_table_add(d->sizes, known);
	}
	known->count++;
}

static void count(struct tracker *t, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	struct tracker_device *d = device_of(t, l->device);

	if (l->item.number > 0) {
		d->count[r->verb]++;
		d->failed[r->verb] += r->code != 0;
		if (r->op)
			count_other(d, r->op);
		if (r->code == 0)
			d->bytes[r->verb] += l->had ? l->had : r->size;
		if (r->code == 0 && gets_memory(r->verb))
			count_size(d, r->verb, r->size);
	}
	for (int level = 0; level < TRACKER_LEVEL_COUNT; level++) {
		if (l->item.number == 0)
			d->start[level] = d->now[level];
		note(&d->peak[level], d->now[level], &l->item);
	}
	note(&t->reserved_peak, t->reserved, &l->item);
}

/* ---- verbs ---- */

/* Adds to a count of a process and its device; what it is then. */
static gint64 use(struct tracker *t, guint32 process, gint64 device, char what, gint64 change)
{
	guint64 key = (guint64)process << 32 | (guint32)device;
	struct int_map_entry *e = int_map_find(t->uses, key, (guint32)what);
	gint64 count = (e ? (gint64)e->value : 0) + change;

	if (count > 0)
		int_map_put(t->uses, key, (guint32)what, (guint64)count);
	else if (e)
		int_map_remove(t->uses, e);
	return MAX(count, 0);
}

static void give_back(struct tracker *t, struct object *o)
{
	if (o->bytes == 0)
		return;
	shrink(t, o->device, TRACKER_PHYSICAL, o->bytes);
	o->bytes = 0;
	use(t, o->process, o->device, 't', -1);
}

/* The memory goes with the last reference and the last mapping. */
static void maybe_returned(struct tracker *t, guint index)
{
	struct object *o = object_at(t, index);

	if (o->references == 0 && o->maps == 0)
		give_back(t, o);
}

/* A device that a process resets as often as it has set it takes all back. */
static void on_device(struct tracker *t, const struct npu_trace_record *r)
{
	if (r->verb == NPU_TRACE_DEVICE_SET) {
		use(t, r->process, r->device, 's', 1);
		return;
	}
	if (use(t, r->process, r->device, 's', -1) > 0 ||
	    use(t, r->process, r->device, 't', 0) == 0)
		return;
	for (guint i = 1; i < t->objects->len; i++) {
		struct object *o = object_at(t, i);
		if (o->users > 0 && o->process == r->process && o->device == r->device)
			give_back(t, o);
	}
}

static guint make(struct tracker *t, struct tracker_line *l, guint64 bytes)
{
	guint index = object_new(t, &l->item.record, bytes, l->device);

	l->made = TRUE;
	l->subject = object_at(t, index)->id;
	return index;
}

static void on_create(struct tracker *t, struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint64 page = G_GUINT64_CONSTANT(1) << CLAMP(r->page_lg2, HUGE_LG2, 30);
	guint64 bytes = r->size > G_MAXINT64 ? r->size : round_up(r->size, page);

	if (r->verb == NPU_TRACE_CREATE)
		bytes = MAX(bytes, r->rounded);
	else
		bytes = r->size;
	make(t, l, bytes);
	if (bytes > 0)
		use(t, r->process, l->device, 't', 1);
	grow(t, l->device, TRACKER_PHYSICAL, bytes);
}

static void on_release(struct tracker *t, struct tracker_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	struct object *o = object_at(t, index);

	if (index == 0)
		return;
	o->references -= o->references > 0;
	l->had = o->references == 0 ? o->size : 0;
	maybe_returned(t, index);
	if (o->references == 0)
		unbind_name(t, r->process, &r->name);
}

static struct int_map_entry *mapping(const struct tracker *t, guint32 process,
				     const struct npu_trace_name *place)
{
	guint index = find(t, process, place);

	return index ? int_map_find(t->maps, place->offset, (guint32)object_at(t, index)->id)
		     : NULL;
}

static void on_map(struct tracker *t, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint place = find(t, r->process, &r->name), handle = find(t, r->process, &r->handle);

	if (place == 0 || handle == 0)
		return;
	struct int_map_entry *old = mapping(t, r->process, &r->name);
	if (old)
		drop(t, (guint)old->value);
	object_at(t, handle)->maps++;
	object_at(t, handle)->users++;
	int_map_put(t->maps, r->name.offset, (guint32)object_at(t, place)->id, handle);
}

static void on_unmap(struct tracker *t, struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	struct int_map_entry *e = mapping(t, r->process, &r->name);

	if (e == NULL)
		return;
	guint handle = (guint)e->value;
	int_map_remove(t->maps, e);
	struct object *o = object_at(t, handle);
	o->maps -= o->maps > 0;
	l->had = o->size;
	maybe_returned(t, handle);
	drop(t, handle);
}

/* A name more for what is mapped, or shared. */
static void on_more(struct tracker *t, struct tracker_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;

	if (index == 0)
		return;
	object_at(t, index)->references++;
	l->made = find(t, r->process, &r->name) == 0;
	if (l->made)
		bind_name(t, r->process, &r->name, index);
	l->subject = object_at(t, index)->id;
}

static void on_mfree(struct tracker *t, struct tracker_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	gboolean call = r->verb == NPU_TRACE_MFREE;

	l->had = index ? object_at(t, index)->size : r->size;
	if (call && index)
		give_back(t, object_at(t, index));
	else if (!call && (index || r->verb == NPU_TRACE_SEGMENT_FREE))
		shrink(t, l->device, r->verb == NPU_TRACE_FREE ? TRACKER_LIVE : TRACKER_SEGMENTS,
		       l->had);
	unbind_name(t, r->process, &r->name);
}

static void on_alloc(struct tracker *t, struct tracker_line *l, guint index)
{
	enum tracker_level level =
		l->item.record.verb == NPU_TRACE_ALLOC ? TRACKER_LIVE : TRACKER_SEGMENTS;

	if (index && level == TRACKER_LIVE)
		shrink(t, l->device, level, object_at(t, index)->size);
	make(t, l, 0);
	grow(t, l->device, level, l->item.record.size);
}

static void on_reserve(struct tracker *t, struct tracker_line *l, guint index)
{
	if (l->item.record.verb == NPU_TRACE_RESERVE) {
		index = make(t, l, 0);
		object_at(t, index)->has_first = TRUE;
		t->reserved += MIN(l->item.record.size, G_MAXINT64 - t->reserved);
		return;
	}
	l->had = object_at(t, index)->size;
	t->reserved -= MIN(t->reserved, l->had);
	unbind_name(t, l->item.record.process, &l->item.record.name);
}

/* Segments of an area that nobody reserved: it is there from now on. */
static void on_segment_map(struct tracker *t, struct tracker_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;

	if (index == 0) {
		index = make(t, l, 0);
		l->made = FALSE;
	}
	struct object *o = object_at(t, index);
	if (!o->has_first)
		o->first = (gint64)r->name.offset;
	o->has_first = TRUE;
	l->place = o->id;
	l->subject = 0;
	l->offset = (gint64)r->name.offset - o->first;
	if (r->verb == NPU_TRACE_SEGMENT_MAP)
		grow(t, l->device, TRACKER_SEGMENTS, r->size);
	else
		shrink(t, l->device, TRACKER_SEGMENTS, r->size);
}

static void act(struct tracker *t, struct tracker_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	struct int_map_entry *e;

	switch (r->verb) {
	case NPU_TRACE_DEVICE_SET:
	case NPU_TRACE_DEVICE_RESET:
		on_device(t, r);
		break;
	case NPU_TRACE_RESERVE:
	case NPU_TRACE_UNRESERVE:
		on_reserve(t, l, index);
		break;
	case NPU_TRACE_CREATE:
	case NPU_TRACE_MALLOC:
		on_create(t, l);
		break;
	case NPU_TRACE_RELEASE:
		on_release(t, l, index);
		break;
	case NPU_TRACE_RETAIN:
		e = mapping(t, r->process, &r->at);
		on_more(t, l, e ? (guint)e->value : 0);
		break;
	case NPU_TRACE_MAP:
		on_map(t, l);
		break;
	case NPU_TRACE_UNMAP:
		on_unmap(t, l);
		break;
	case NPU_TRACE_EXPORT:
		if (find(t, r->process, &r->handle))
			bind_name(t, 0, &r->name, find(t, r->process, &r->handle));
		break;
	case NPU_TRACE_IMPORT:
		on_more(t, l, find(t, 0, &r->share));
		break;
	case NPU_TRACE_ALLOC:
	case NPU_TRACE_SEGMENT_ALLOC:
		on_alloc(t, l, index);
		break;
	case NPU_TRACE_MFREE:
	case NPU_TRACE_FREE:
	case NPU_TRACE_SEGMENT_FREE:
		on_mfree(t, l, index);
		break;
	case NPU_TRACE_SEGMENT_MAP:
	case NPU_TRACE_SEGMENT_UNMAP:
		on_segment_map(t, l, index);
		break;
	default:
		break;
	}
}

/* A call that names no device is about that of what it names. */
static gint64 device_of_line(const struct tracker *t, const struct tracker_line *l, guint subject)
{
	const struct npu_trace_record *r = &l->item.record;
	const struct int_map_entry *mapped =
		r->verb == NPU_TRACE_UNMAP ? mapping(t, r->process, &r->name) : NULL;
	guint handle = r->verb == NPU_TRACE_MAP || r->verb == NPU_TRACE_EXPORT
			       ? find(t, r->process, &r->handle)
			       : 0;
	guint about = handle ? handle : mapped ? (guint)mapped->value : subject;

	if (r->has & NPU_TRACE_HAS_DEVICE)
		return r->device > TRACE_DEVICE_LAST ? RECORD_NO_DEVICE : r->device;
	if (about == 0 || r->name.kind == 's')
		return handle ? object_at(t, handle)->device : RECORD_NO_DEVICE;
	return object_at(t, about)->device;
}

static guint64 id_of(const struct tracker *t, guint32 process, const struct npu_trace_name *name)
{
	return object_at(t, find(t, process, name))->id;
}

void tracker_step(struct tracker *t, const struct record_item *item, struct tracker_line *l)
{
	const struct npu_trace_record *r = &item->record;
	guint subject = find(t, r->process, &r->name);

	*l = (struct tracker_line){ .item = *item };
	l->device = device_of_line(t, l, subject);
	l->subject = object_at(t, subject)->id;
	l->offset = (gint64)r->name.offset;
	l->handle = id_of(t, r->process, r->handle.kind ? &r->handle : &r->share);
	l->place = id_of(t, r->process, &r->at);
	l->from = id_of(t, r->process, &r->from);
	if (r->code == 0)
		act(t, l, subject);
	count(t, l);
}
