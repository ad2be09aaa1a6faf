/* SPDX-License-Identifier: Apache-2.0
 *
 * Things by their names, and sums.
 */
#include "books.h"

#include <string.h>

#include "live.h"

#define HUGE_LG2 21

/* What a name stands for. */
struct thing {
	guint64 id, size;
	guint64 bytes; /* of physical memory */
	gint64 device;
	gint64 first;    /* offset of what was mapped first */
	guint32 process; /* whose memory it is */
	guint32 users, references, maps;
	gboolean has_first;
};
struct books {
	gboolean calls;
	GPtrArray *devices; /* struct books_device *, by number */
	struct live *names; /* process << 32 | number, letter -> index of a thing */
	struct live *maps;  /* offset, low half of a reservation's id -> index of a handle */
	struct live *uses;  /* process << 32 | device -> sets (tag 's'), things with memory ('t') */
	GArray *things;     /* struct thing; the first is no one's */
	GArray *free_slots; /* guint */
	guint64 last[128];  /* ids given out, by letter */
	guint64 reserved;
	struct books_peak reserved_peak;
};

static const char *const level_names[BOOKS_LEVEL_COUNT] = {
	[BOOKS_LIVE] = "live",
	[BOOKS_SEGMENTS] = "segments",
	[BOOKS_PHYSICAL] = "physical",
	[BOOKS_RESERVED] = "reserved",
};

const char *books_level_name(enum books_level level)
{
	return level_names[level];
}

gboolean books_gets(guint32 verb)
{
	return verb == NPU_TRACE_ALLOC || verb == NPU_TRACE_SEGMENT_ALLOC ||
	       verb == NPU_TRACE_SEGMENT_MAP || verb == NPU_TRACE_CREATE ||
	       verb == NPU_TRACE_MALLOC || verb == NPU_TRACE_RESERVE || verb == NPU_TRACE_OOM;
}

/* ---- devices ---- */

static guint size_hash(gconstpointer key)
{
	const struct books_size *s = key;

	return g_int64_hash(&s->size) * 31 + s->verb;
}

static gboolean size_equal(gconstpointer a, gconstpointer b)
{
	const struct books_size *x = a, *y = b;

	return x->size == y->size && x->verb == y->verb;
}

static void device_free(gpointer data)
{
	struct books_device *d = data;

	g_hash_table_unref(d->others);
	g_hash_table_unref(d->sizes);
	g_free(d);
}

static struct books_device *device_of(struct books *b, gint64 device)
{
	guint at = 0;

	for (; at < b->devices->len; at++) {
		struct books_device *known = g_ptr_array_index(b->devices, at);
		if (known->device == device)
			return known;
		if (known->device > device)
			break;
	}
	struct books_device *d = g_new0(struct books_device, 1);
	d->device = device;
	d->others = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	d->sizes = g_hash_table_new_full(size_hash, size_equal, g_free, NULL);
	g_ptr_array_insert(b->devices, (gint)at, d);
	return d;
}

guint books_count(const struct books *b)
{
	return b->devices->len;
}

const struct books_device *books_at(const struct books *b, guint index)
{
	return g_ptr_array_index(b->devices, index);
}

const struct books_device *books_find(const struct books *b, gint64 device)
{
	for (guint i = 0; i < b->devices->len; i++) {
		const struct books_device *d = g_ptr_array_index(b->devices, i);
		if (d->device == device)
			return d;
	}
	return NULL;
}

guint64 books_reserved(const struct books *b)
{
	return b->reserved;
}

const struct books_peak *books_reserved_peak(const struct books *b)
{
	return &b->reserved_peak;
}

/* ---- things ---- */

struct books *books_new(gboolean calls)
{
	struct books *b = g_new0(struct books, 1);

	b->calls = calls;
	b->devices = g_ptr_array_new_with_free_func(device_free);
	b->names = live_new();
	b->maps = live_new();
	b->uses = live_new();
	b->things = g_array_new(FALSE, TRUE, sizeof(struct thing));
	b->free_slots = g_array_new(FALSE, FALSE, sizeof(guint));
	g_array_set_size(b->things, 1);
	return b;
}

void books_free(struct books *b)
{
	if (b == NULL)
		return;
	g_ptr_array_unref(b->devices);
	live_free(b->names);
	live_free(b->maps);
	live_free(b->uses);
	g_array_unref(b->things);
	g_array_unref(b->free_slots);
	g_free(b);
}

static struct thing *thing_at(const struct books *b, guint index)
{
	return &g_array_index(b->things, struct thing, index);
}

/* Shares are numbered once in a file, the rest once in a process. */
static guint64 key_of(guint32 process, const struct npu_trace_name *name)
{
	return (guint64)(name->kind == 's' ? 0 : process) << 32 | name->number;
}

/* 0: there is none. */
static guint find(const struct books *b, guint32 process, const struct npu_trace_name *name)
{
	const struct live_entry *e =
		name->kind > 0 ? live_find(b->names, key_of(process, name), (guint32)name->kind)
			       : NULL;

	return e ? (guint)e->value : 0;
}

static void drop(struct books *b, guint index)
{
	if (--thing_at(b, index)->users == 0)
		g_array_append_val(b->free_slots, index);
}

static void call_it(struct books *b, guint32 process, const struct npu_trace_name *name,
		    guint index)
{
	guint old = find(b, process, name);

	thing_at(b, index)->users++;
	if (old)
		drop(b, old);
	live_put(b->names, key_of(process, name), (guint32)name->kind, index);
}

static void forget(struct books *b, guint32 process, const struct npu_trace_name *name)
{
	struct live_entry *e = live_find(b->names, key_of(process, name), (guint32)name->kind);

	if (e == NULL)
		return;
	guint index = (guint)e->value;
	live_remove(b->names, e);
	drop(b, index);
}

static guint thing_new(struct books *b, const struct npu_trace_record *r, guint64 bytes,
		       gint64 device)
{
	guint index = b->things->len;

	if (b->free_slots->len > 0) {
		index = g_array_index(b->free_slots, guint, b->free_slots->len - 1);
		g_array_set_size(b->free_slots, b->free_slots->len - 1);
	} else {
		g_array_set_size(b->things, index + 1);
	}
	guint8 letter = (guint8)r->name.kind & 127;
	*thing_at(b, index) = (struct thing){ .id = (guint64)letter << 56 | ++b->last[letter],
					      .size = r->size,
					      .bytes = bytes,
					      .device = device,
					      .process = r->process,
					      .references = 1 };
	call_it(b, r->process, &r->name, index);
	return index;
}

/* ---- sums ---- */

static void grow(struct books *b, gint64 device, enum books_level level, guint64 bytes)
{
	struct books_device *d = device_of(b, device);

	d->now[level] = MIN(d->now[level] + MIN(bytes, G_MAXINT64), (guint64)G_MAXINT64);
	if (level == BOOKS_SEGMENTS && !b->calls)
		grow(b, device, BOOKS_PHYSICAL, bytes);
}

static void shrink(struct books *b, gint64 device, enum books_level level, guint64 bytes)
{
	struct books_device *d = device_of(b, device);

	d->now[level] -= MIN(d->now[level], bytes);
	if (level == BOOKS_SEGMENTS && !b->calls)
		shrink(b, device, BOOKS_PHYSICAL, bytes);
}

static void note(struct books_peak *peak, guint64 bytes, const struct feed_item *item)
{
	if (bytes > peak->bytes)
		*peak = (struct books_peak){ bytes, item->number, item->record.host_ns };
}

static void count_other(struct books_device *d, const char *name)
{
	guint64 *known = g_hash_table_lookup(d->others, name);

	if (known == NULL) {
		known = g_new0(guint64, 1);
		g_hash_table_insert(d->others, g_strdup(name), known);
	}
	++*known;
}

static void count_size(struct books_device *d, guint32 verb, guint64 size)
{
	struct books_size key = { .size = size, .verb = verb };
	struct books_size *known = g_hash_table_lookup(d->sizes, &key);

	if (known == NULL) {
		known = g_memdup2(&key, sizeof key);
		g_hash_table_add(d->sizes, known);
	}
	known->count++;
}

static void count(struct books *b, const struct books_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	struct books_device *d = device_of(b, l->device);

	if (l->item.number > 0) {
		d->count[r->verb]++;
		d->failed[r->verb] += r->code != 0;
		if (r->op)
			count_other(d, r->op);
		if (r->code == 0)
			d->bytes[r->verb] += l->had ? l->had : r->size;
		if (r->code == 0 && books_gets(r->verb))
			count_size(d, r->verb, r->size);
	}
	for (int level = 0; level < BOOKS_LEVEL_COUNT; level++) {
		if (l->item.number == 0)
			d->start[level] = d->now[level];
		note(&d->peak[level], d->now[level], &l->item);
	}
	note(&b->reserved_peak, b->reserved, &l->item);
}

/* ---- verbs ---- */

/* Adds to a count of a process and its device; what it is then. */
static gint64 use(struct books *b, guint32 process, gint64 device, char what, gint64 change)
{
	guint64 key = (guint64)process << 32 | (guint32)device;
	struct live_entry *e = live_find(b->uses, key, (guint32)what);
	gint64 count = (e ? (gint64)e->value : 0) + change;

	if (count > 0)
		live_put(b->uses, key, (guint32)what, (guint64)count);
	else if (e)
		live_remove(b->uses, e);
	return MAX(count, 0);
}

static void give_back(struct books *b, struct thing *t)
{
	if (t->bytes == 0)
		return;
	shrink(b, t->device, BOOKS_PHYSICAL, t->bytes);
	t->bytes = 0;
	use(b, t->process, t->device, 't', -1);
}

/* The memory goes with the last reference and the last mapping. */
static void maybe_returned(struct books *b, guint index)
{
	struct thing *t = thing_at(b, index);

	if (t->references == 0 && t->maps == 0)
		give_back(b, t);
}

/* A device that a process resets as often as it has set it takes all back. */
static void on_device(struct books *b, const struct npu_trace_record *r)
{
	if (r->verb == NPU_TRACE_DEVICE_SET) {
		use(b, r->process, r->device, 's', 1);
		return;
	}
	if (use(b, r->process, r->device, 's', -1) > 0 ||
	    use(b, r->process, r->device, 't', 0) == 0)
		return;
	for (guint i = 1; i < b->things->len; i++) {
		struct thing *t = thing_at(b, i);
		if (t->users > 0 && t->process == r->process && t->device == r->device)
			give_back(b, t);
	}
}

static guint make(struct books *b, struct books_line *l, guint64 bytes)
{
	guint index = thing_new(b, &l->item.record, bytes, l->device);

	l->made = TRUE;
	l->subject = thing_at(b, index)->id;
	return index;
}

static void on_create(struct books *b, struct books_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint64 page = G_GUINT64_CONSTANT(1) << CLAMP(r->page_lg2, HUGE_LG2, 30);
	guint64 bytes = r->size > G_MAXINT64 ? r->size : (r->size + page - 1) / page * page;

	if (r->verb == NPU_TRACE_CREATE)
		bytes = MAX(bytes, r->rounded);
	else
		bytes = r->size;
	make(b, l, bytes);
	if (bytes > 0)
		use(b, r->process, l->device, 't', 1);
	grow(b, l->device, BOOKS_PHYSICAL, bytes);
}

static void on_release(struct books *b, struct books_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	struct thing *t = thing_at(b, index);

	if (index == 0)
		return;
	t->references -= t->references > 0;
	l->had = t->references == 0 ? t->size : 0;
	maybe_returned(b, index);
	if (t->references == 0)
		forget(b, r->process, &r->name);
}

static struct live_entry *mapping(const struct books *b, guint32 process,
				  const struct npu_trace_name *place)
{
	guint index = find(b, process, place);

	return index ? live_find(b->maps, place->offset, (guint32)thing_at(b, index)->id) : NULL;
}

static void on_map(struct books *b, const struct books_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint place = find(b, r->process, &r->name), handle = find(b, r->process, &r->handle);

	if (place == 0 || handle == 0)
		return;
	struct live_entry *old = mapping(b, r->process, &r->name);
	if (old)
		drop(b, (guint)old->value);
	thing_at(b, handle)->maps++;
	thing_at(b, handle)->users++;
	live_put(b->maps, r->name.offset, (guint32)thing_at(b, place)->id, handle);
}

static void on_unmap(struct books *b, struct books_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	struct live_entry *e = mapping(b, r->process, &r->name);

	if (e == NULL)
		return;
	guint handle = (guint)e->value;
	live_remove(b->maps, e);
	struct thing *t = thing_at(b, handle);
	t->maps -= t->maps > 0;
	l->had = t->size;
	maybe_returned(b, handle);
	drop(b, handle);
}

/* A name more for what is mapped, or shared. */
static void on_more(struct books *b, struct books_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;

	if (index == 0)
		return;
	thing_at(b, index)->references++;
	l->made = find(b, r->process, &r->name) == 0;
	if (l->made)
		call_it(b, r->process, &r->name, index);
	l->subject = thing_at(b, index)->id;
}

static void on_mfree(struct books *b, struct books_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	gboolean call = r->verb == NPU_TRACE_MFREE;

	l->had = index ? thing_at(b, index)->size : r->size;
	if (call && index)
		give_back(b, thing_at(b, index));
	else if (!call && (index || r->verb == NPU_TRACE_SEGMENT_FREE))
		shrink(b, l->device, r->verb == NPU_TRACE_FREE ? BOOKS_LIVE : BOOKS_SEGMENTS,
		       l->had);
	forget(b, r->process, &r->name);
}

static void on_alloc(struct books *b, struct books_line *l, guint index)
{
	enum books_level level =
		l->item.record.verb == NPU_TRACE_ALLOC ? BOOKS_LIVE : BOOKS_SEGMENTS;

	if (index && level == BOOKS_LIVE)
		shrink(b, l->device, level, thing_at(b, index)->size);
	make(b, l, 0);
	grow(b, l->device, level, l->item.record.size);
}

static void on_reserve(struct books *b, struct books_line *l, guint index)
{
	if (l->item.record.verb == NPU_TRACE_RESERVE) {
		index = make(b, l, 0);
		thing_at(b, index)->has_first = TRUE;
		b->reserved += MIN(l->item.record.size, G_MAXINT64 - b->reserved);
		return;
	}
	l->had = thing_at(b, index)->size;
	b->reserved -= MIN(b->reserved, l->had);
	forget(b, l->item.record.process, &l->item.record.name);
}

/* Segments of an area that nobody reserved: it is there from now on. */
static void on_segment_map(struct books *b, struct books_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;

	if (index == 0) {
		index = make(b, l, 0);
		l->made = FALSE;
	}
	struct thing *t = thing_at(b, index);
	if (!t->has_first)
		t->first = (gint64)r->name.offset;
	t->has_first = TRUE;
	l->place = t->id;
	l->subject = 0;
	l->offset = (gint64)r->name.offset - t->first;
	if (r->verb == NPU_TRACE_SEGMENT_MAP)
		grow(b, l->device, BOOKS_SEGMENTS, r->size);
	else
		shrink(b, l->device, BOOKS_SEGMENTS, r->size);
}

static void act(struct books *b, struct books_line *l, guint index)
{
	const struct npu_trace_record *r = &l->item.record;
	struct live_entry *e;

	switch (r->verb) {
	case NPU_TRACE_DEVICE_SET:
	case NPU_TRACE_DEVICE_RESET:
		on_device(b, r);
		break;
	case NPU_TRACE_RESERVE:
	case NPU_TRACE_UNRESERVE:
		on_reserve(b, l, index);
		break;
	case NPU_TRACE_CREATE:
	case NPU_TRACE_MALLOC:
		on_create(b, l);
		break;
	case NPU_TRACE_RELEASE:
		on_release(b, l, index);
		break;
	case NPU_TRACE_RETAIN:
		e = mapping(b, r->process, &r->at);
		on_more(b, l, e ? (guint)e->value : 0);
		break;
	case NPU_TRACE_MAP:
		on_map(b, l);
		break;
	case NPU_TRACE_UNMAP:
		on_unmap(b, l);
		break;
	case NPU_TRACE_EXPORT:
		if (find(b, r->process, &r->handle))
			call_it(b, 0, &r->name, find(b, r->process, &r->handle));
		break;
	case NPU_TRACE_IMPORT:
		on_more(b, l, find(b, 0, &r->share));
		break;
	case NPU_TRACE_ALLOC:
	case NPU_TRACE_SEGMENT_ALLOC:
		on_alloc(b, l, index);
		break;
	case NPU_TRACE_MFREE:
	case NPU_TRACE_FREE:
	case NPU_TRACE_SEGMENT_FREE:
		on_mfree(b, l, index);
		break;
	case NPU_TRACE_SEGMENT_MAP:
	case NPU_TRACE_SEGMENT_UNMAP:
		on_segment_map(b, l, index);
		break;
	default:
		break;
	}
}

/* A call that names no device is about that of what it names. */
static gint64 device_of_line(const struct books *b, const struct books_line *l, guint subject)
{
	const struct npu_trace_record *r = &l->item.record;
	const struct live_entry *mapped =
		r->verb == NPU_TRACE_UNMAP ? mapping(b, r->process, &r->name) : NULL;
	guint handle = r->verb == NPU_TRACE_MAP || r->verb == NPU_TRACE_EXPORT
			       ? find(b, r->process, &r->handle)
			       : 0;
	guint about = handle ? handle : mapped ? (guint)mapped->value : subject;

	if (r->has & NPU_TRACE_HAS_DEVICE)
		return r->device > TRACE_DEVICE_LAST ? FEED_NO_DEVICE : r->device;
	if (about == 0 || r->name.kind == 's')
		return handle ? thing_at(b, handle)->device : FEED_NO_DEVICE;
	return thing_at(b, about)->device;
}

static guint64 id_of(const struct books *b, guint32 process, const struct npu_trace_name *name)
{
	return thing_at(b, find(b, process, name))->id;
}

void books_step(struct books *b, const struct feed_item *item, struct books_line *l)
{
	const struct npu_trace_record *r = &item->record;
	guint subject = find(b, r->process, &r->name);

	*l = (struct books_line){ .item = *item };
	l->device = device_of_line(b, l, subject);
	l->subject = thing_at(b, subject)->id;
	l->offset = (gint64)r->name.offset;
	l->handle = id_of(b, r->process, r->handle.kind ? &r->handle : &r->share);
	l->place = id_of(b, r->process, &r->at);
	l->from = id_of(b, r->process, &r->from);
	if (r->code == 0)
		act(b, l, subject);
	count(b, l);
}
