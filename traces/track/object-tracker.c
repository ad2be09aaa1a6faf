/* SPDX-License-Identifier: Apache-2.0
 *
 * The index by name. Follows objects by the names of their records, counts what they are on the
 * levels of their devices, and how often things were asked for, for convert, diff, the page and a
 * replay's player.
 */
#include "memory.h"

gint tracker_size_order(gconstpointer a, gconstpointer b, gpointer unused)
{
	const struct tracker_size *x = a, *y = b;

	(void)unused;
	return COMPARE(x->device, y->device) ?: g_strcmp0(x->op, y->op)
	       ?: COMPARE(x->verb, y->verb) ?: COMPARE(x->size, y->size);
}

static gint by_number(gconstpointer a, gconstpointer b, gpointer unused)
{
	(void)unused;
	return COMPARE(*(const gint64 *)a, *(const gint64 *)b);
}

struct tracker_device *tracker_device(struct tracker *t, gint64 device)
{
	struct tracker_device *d = g_tree_lookup(t->devices, &device);

	if (d)
		return d;
	d = g_new0(struct tracker_device, 1);
	d->device = device;
	d->levels = &d->own;
	g_tree_insert(t->devices, &d->device, d);
	return d;
}

struct object *object_of(const struct int_map_entry *e)
{
	return e ? (struct object *)(guintptr)e->value : NULL;
}

static void drop(gpointer entry)
{
	g_rc_box_release(object_of(entry));
}

static gint by_place(gconstpointer a, gconstpointer b, gpointer unused)
{
	const struct mapping *x = a, *y = b;

	(void)unused;
	return COMPARE(x->place, y->place) ?: by_address(&x->offset, &y->offset);
}

static void mapping_free(gpointer data)
{
	struct mapping *m = data;

	g_rc_box_release(m->in);
	g_rc_box_release(m->object);
	g_free(m);
}

struct tracker *tracker_new(gboolean calls)
{
	struct tracker *t = g_new0(struct tracker, 1);

	t->calls = calls;
	t->none.levels = &t->none.own;
	t->devices = g_tree_new_full(by_number, NULL, NULL, g_free);
	t->names = int_map_new(sizeof(struct int_map_entry), drop);
	t->maps = g_tree_new_full(by_place, NULL, NULL, mapping_free);
	t->sets = int_map_new(sizeof(struct int_map_entry), NULL);
	t->gone = g_array_new(FALSE, FALSE, sizeof(guint64));
	return t;
}

void tracker_free(struct tracker *t)
{
	g_tree_unref(t->devices);
	int_map_free(t->names);
	g_tree_unref(t->maps);
	int_map_free(t->sets);
	g_array_unref(t->gone);
	g_free(t);
}

struct object *tracker_object(const struct tracker *t, guint32 process,
			      const struct npu_trace_name *name)
{
	return name->kind > 0 ? object_of(int_map_find(t->names, record_name_key(process, name),
						       (guint32)name->kind))
			      : NULL;
}

static guint64 id_of(const struct object *o)
{
	return o ? o->id : 0;
}

/* From now on the name stands for the object, in place of what it stood for. */
static void bind_name(struct tracker *t, guint32 process, const struct npu_trace_name *name,
		      struct object *o)
{
	struct int_map_entry *e =
		int_map_add(t->names, record_name_key(process, name), (guint32)name->kind);
	struct object *before = object_of(e);

	e->value = (guintptr)g_rc_box_acquire(o);
	if (before)
		g_rc_box_release(before);
}

static void unbind_name(struct tracker *t, const struct npu_trace_record *r)
{
	struct int_map_entry *e = int_map_find(t->names, record_name_key(r->process, &r->name),
					       (guint32)r->name.kind);

	if (e)
		int_map_remove(t->names, e);
}

static void count_like(struct tracker *t, struct tracker_size key)
{
	struct tracker_size *known = g_tree_lookup(t->sizes, &key);

	if (known == NULL) {
		known = g_memdup2(&key, sizeof key);
		g_tree_insert(t->sizes, known, known);
	}
	known->count[t->side]++;
}

static void count(struct tracker *t, const struct tracker_line *l)
{
	/* what gets memory, or address space */
	static const guint32 gets = 1u << NPU_TRACE_ALLOC | 1u << NPU_TRACE_SEGMENT_ALLOC |
				    1u << NPU_TRACE_SEGMENT_MAP | 1u << NPU_TRACE_CREATE |
				    1u << NPU_TRACE_MALLOC | 1u << NPU_TRACE_RESERVE |
				    1u << NPU_TRACE_OOM;
	const struct npu_trace_record *r = &l->item.record;
	struct tracker_device *d = t->about;

	if (l->item.number > 0) {
		d->count[r->verb]++;
		d->failed[r->verb] += r->code != 0;
		if (t->sizes && r->op)
			count_like(t, (struct tracker_size){ .device = l->device,
							     .op = g_intern_string(r->op) });
		if (t->sizes && r->code == 0 && (gets >> r->verb & 1))
			count_like(t, (struct tracker_size){ .device = l->device,
							     .size = r->size,
							     .verb = r->verb });
		if (r->code == 0)
			d->bytes[r->verb] += l->had ? l->had : r->size;
	}
	if (l->item.number == 0)
		levels_start(d->levels);
}

static void give_back(struct tracker *t, struct object *o)
{
	if (o->bytes == 0)
		return;
	levels_pages(tracker_device(t, o->device)->levels, FALSE, o->size, o->bytes);
	g_array_append_val(t->gone, o->id);
	o->bytes = 0;
}

/* The memory goes with the last reference and the last mapping. */
static void maybe_returned(struct tracker *t, struct object *o)
{
	if (o->references == 0 && o->maps == 0)
		give_back(t, o);
}

guint64 tracker_count_set(struct tracker *t, const struct npu_trace_record *r)
{
	guint64 key = (guint64)r->process << 32 | (guint32)r->device;
	struct int_map_entry *e = int_map_add(t->sets, key, 0);

	e->value = r->verb == NPU_TRACE_DEVICE_RESET ? MAX(e->value, 1) - 1 : e->value + 1;
	return e->value;
}

static void take_back(struct tracker *t, struct object *o, const struct npu_trace_record *r)
{
	if (o->process == r->process && o->device == r->device)
		give_back(t, o);
}

/* A device that a process resets as often as it has set it takes all back. */
static void on_device(struct tracker *t, const struct npu_trace_record *r)
{
	const struct int_map_entry *e = NULL;

	if (tracker_count_set(t, r) > 0)
		return;
	while ((e = int_map_next(t->names, e)))
		take_back(t, object_of(e), r);
	for (GTreeNode *n = g_tree_node_first(t->maps); n; n = g_tree_node_next(n))
		take_back(t, ((struct mapping *)g_tree_node_value(n))->object, r);
}

static struct object *make(struct tracker *t, struct tracker_line *l, guint64 bytes)
{
	const struct npu_trace_record *r = &l->item.record;
	guint8 letter = (guint8)r->name.kind & 127;
	struct object *o = g_rc_box_new0(struct object);

	*o = (struct object){ .id = (guint64)letter << 56 | ++t->last[letter],
			      .size = r->size,
			      .bytes = bytes,
			      .device = l->device,
			      .process = r->process,
			      .references = 1 };
	bind_name(t, r->process, &r->name, o);
	g_rc_box_release(o);
	l->made = TRUE;
	l->subject = o->id;
	return o;
}

static void on_create(struct tracker *t, struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint64 page = G_GUINT64_CONSTANT(1) << CLAMP(r->page_lg2, 21, 30);
	guint64 bytes = r->size + l->item.over;

	if (r->verb == NPU_TRACE_CREATE)
		bytes = MAX(bytes > G_MAXINT64 ? bytes : round_up(bytes, page), r->rounded);
	make(t, l, bytes);
	levels_pages(t->about->levels, TRUE, r->size, bytes);
}

static void on_release(struct tracker *t, struct tracker_line *l, struct object *o)
{
	if (o == NULL)
		return;
	o->references -= o->references > 0;
	l->had = o->references == 0 ? o->size : 0;
	maybe_returned(t, o);
	if (o->references == 0)
		unbind_name(t, &l->item.record);
}

struct mapping *tracker_mapping(const struct tracker *t, guint32 process,
				const struct npu_trace_name *place)
{
	const struct object *o = tracker_object(t, process, place);
	const struct mapping key = { .place = id_of(o), .offset = place->offset };

	return o ? g_tree_lookup(t->maps, &key) : NULL;
}

static struct object *mapped(const struct tracker *t, guint32 process,
			     const struct npu_trace_name *place)
{
	const struct mapping *m = tracker_mapping(t, process, place);

	return m ? m->object : NULL;
}

static void on_map(struct tracker *t, const struct npu_trace_record *r, struct object *handle)
{
	struct object *place = tracker_object(t, r->process, &r->name);

	if (place == NULL || handle == NULL)
		return;
	const struct mapping m = { place->id, r->name.offset, g_rc_box_acquire(place),
				   g_rc_box_acquire(handle) };
	struct mapping *kept = g_memdup2(&m, sizeof m);
	handle->maps++;
	g_tree_replace(t->maps, kept, kept);
}

static void on_unmap(struct tracker *t, struct tracker_line *l)
{
	struct mapping *m = tracker_mapping(t, l->item.record.process, &l->item.record.name);

	if (m == NULL)
		return;
	m->object->maps -= m->object->maps > 0;
	l->had = m->object->size;
	maybe_returned(t, m->object);
	g_tree_remove(t->maps, m);
}

/* A name more for what is mapped, or shared. */
static void on_more(struct tracker *t, struct tracker_line *l, struct object *o)
{
	const struct npu_trace_record *r = &l->item.record;

	if (o == NULL)
		return;
	o->references++;
	l->made = tracker_object(t, r->process, &r->name) == NULL;
	if (l->made)
		bind_name(t, r->process, &r->name, o);
	l->subject = o->id;
}

static void count_event(struct tracker *t, guint32 verb, guint64 bytes)
{
	levels_step(t->about->levels, verb, bytes, !t->calls);
}

static void end_block(struct tracker *t, const struct object *block)
{
	count_event(t, NPU_TRACE_FREE, block->size);
	g_array_append_val(t->gone, block->id);
}

static void on_mfree(struct tracker *t, struct tracker_line *l, struct object *o)
{
	const struct npu_trace_record *r = &l->item.record;

	l->had = o ? o->size : r->size;
	if (r->verb == NPU_TRACE_MFREE && o)
		give_back(t, o);
	if (r->verb == NPU_TRACE_FREE && o)
		end_block(t, o);
	if (r->verb == NPU_TRACE_SEGMENT_FREE)
		count_event(t, r->verb, l->had);
	unbind_name(t, r);
}

static void on_alloc(struct tracker *t, struct tracker_line *l, const struct object *before)
{
	const struct npu_trace_record *r = &l->item.record;

	if (before && r->verb == NPU_TRACE_ALLOC)
		end_block(t, before);
	make(t, l, 0);
	count_event(t, r->verb, r->size);
}

static void on_reserve(struct tracker *t, struct tracker_line *l, const struct object *o)
{
	gboolean comes = l->item.record.verb == NPU_TRACE_RESERVE;

	if (comes) {
		make(t, l, 0)->has_first = TRUE;
	} else {
		l->had = o ? o->size : 0;
		unbind_name(t, &l->item.record);
	}
	levels_change(t->none.levels, LEVEL_RESERVED, comes, comes ? l->item.record.size : l->had);
}

/* Segments of an area that nobody reserved: it is there from now on. */
static void on_segment_map(struct tracker *t, struct tracker_line *l, struct object *o)
{
	const struct npu_trace_record *r = &l->item.record;

	if (o == NULL) {
		o = make(t, l, 0);
		l->made = FALSE;
	}
	if (!o->has_first)
		o->first = (gint64)r->name.offset;
	o->has_first = TRUE;
	l->place = o->id;
	l->subject = 0;
	l->offset = (gint64)r->name.offset - o->first;
	count_event(t, r->verb, r->size);
}

static void act(struct tracker *t, struct tracker_line *l, struct object *o)
{
	const struct npu_trace_record *r = &l->item.record;
	struct object *handle = tracker_object(t, r->process, &r->handle);

#define ON(name, call)           \
	case NPU_TRACE_##name: { \
		call;            \
		break;           \
	}
	switch (r->verb) {
		ON(DEVICE_SET, on_device(t, r))
		ON(DEVICE_RESET, on_device(t, r))
		ON(RESERVE, on_reserve(t, l, o))
		ON(UNRESERVE, on_reserve(t, l, o))
		ON(CREATE, on_create(t, l))
		ON(MALLOC, on_create(t, l))
		ON(RELEASE, on_release(t, l, o))
		ON(RETAIN, on_more(t, l, mapped(t, r->process, &r->at)))
		ON(MAP, on_map(t, r, handle))
		ON(UNMAP, on_unmap(t, l))
		ON(EXPORT, if (handle) bind_name(t, 0, &r->name, handle))
		ON(IMPORT, on_more(t, l, tracker_object(t, 0, &r->share)))
		ON(ALLOC, on_alloc(t, l, o))
		ON(SEGMENT_ALLOC, on_alloc(t, l, o))
		ON(MFREE, on_mfree(t, l, o))
		ON(FREE, on_mfree(t, l, o))
		ON(SEGMENT_FREE, on_mfree(t, l, o))
		ON(SEGMENT_MAP, on_segment_map(t, l, o))
		ON(SEGMENT_UNMAP, on_segment_map(t, l, o))
	}
#undef ON
}

/* A call that names no device is about that of what it names. */
static gint64 device_of_line(const struct tracker *t, const struct npu_trace_record *r,
			     const struct object *subject)
{
	const struct object *about = NULL;

	if (r->has & NPU_TRACE_HAS_DEVICE)
		return r->device > TRACE_DEVICE_LAST ? RECORD_NO_DEVICE : r->device;
	if (r->verb == NPU_TRACE_MAP || r->verb == NPU_TRACE_EXPORT)
		about = tracker_object(t, r->process, &r->handle);
	if (r->verb == NPU_TRACE_UNMAP && r->name.kind != 's')
		about = mapped(t, r->process, &r->name);
	if (about == NULL && r->name.kind != 's')
		about = subject;
	return about ? about->device : RECORD_NO_DEVICE;
}

void tracker_step(struct tracker *t, const struct record_item *item, struct tracker_line *l)
{
	const struct npu_trace_record *r = &item->record;
	struct object *subject = tracker_object(t, r->process, &r->name);

	*l = (struct tracker_line){ .item = *item };
	g_array_set_size(t->gone, 0);
	l->device = device_of_line(t, r, subject);
	l->subject = id_of(subject);
	l->offset = (gint64)r->name.offset;
	l->handle = id_of(tracker_object(t, r->process, r->handle.kind ? &r->handle : &r->share));
	l->place = id_of(tracker_object(t, r->process, &r->at));
	l->from = id_of(tracker_object(t, r->process, &r->from));
	t->about = tracker_device(t, l->device);
	t->about->levels->event = t->none.levels->event = item->number;
	t->about->levels->host_ns = t->none.levels->host_ns = r->host_ns;
	if (r->code == 0)
		act(t, l, subject);
	count(t, l);
}
