/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the driver calls of records on the model. A call that failed when it was recorded is made
 * only if everything that it names exists. A result other than the recorded one is counted and is
 * not an error.
 */
#include "replay.h"

#include "format/units.h"

#define NOT_MADE (-1) /* what the call names is not there */

/* What a name stands for: counted by the tables that hold it. */
struct object {
	void *p; /* address, or handle */
	guint64 size;
	guint64 bytes; /* of physical memory, in whole pages */
	gint32 device;
	guint references;       /* of a handle: that programs have */
	guint model_references; /* the same, that the model knows of: an import is none of them */
	guint maps;
	guint32 site; /* who asked for it */
};
struct player {
	struct replay *replay;
	guint32 site;           /* of the call */
	guint64 got;            /* address of the last reservation or allocation */
	GHashTable *names[128]; /* of a kind: process << 32 | number -> struct object */
	GTree *mapped;          /* the model's address -> struct object, a handle */
	GHashTable *set;        /* process << 32 | device -> how often it is set */
	GHashTable *peers;      /* devices that may reach the others by now */
	GError *refused;        /* the first read that the model refused */
};

static const char kinds[] = "hars"; /* in the order in which they are given back */

static struct object *find(const struct player *p, guint32 process,
			   const struct npu_trace_name *name)
{
	guint64 key = record_name_key(process, name);
	GHashTable *table = p->names[name->kind & 127];

	return table ? g_hash_table_lookup(table, &key) : NULL;
}

/* Takes a reference over. */
static void keep(struct player *p, const struct npu_trace_record *c, struct object *t)
{
	guint64 key = record_name_key(c->process, &c->name);

	g_hash_table_replace(p->names[c->name.kind & 127], g_memdup2(&key, sizeof key), t);
}

static void forget(struct player *p, const struct npu_trace_record *c)
{
	guint64 key = record_name_key(c->process, &c->name);

	g_hash_table_remove(p->names[c->name.kind & 127], &key);
}

/* The address that a name stands for, or NULL. */
static void *address(struct player *p, guint32 process, const struct npu_trace_name *name)
{
	struct object *t = find(p, process, name);

	return t && name->offset <= t->size ? (char *)t->p + name->offset : NULL;
}

/* ---- physical memory ---- */

/* The first counts what belongs to no device. */
static struct replay_device *device_of(struct player *p, gint32 id)
{
	struct replay_device *device = replay_find(p->replay, id);
	return device ? device : g_ptr_array_index(p->replay->devices, 0);
}

/* What the record's name stands for from now on. */
static struct object *add(struct player *p, const struct npu_trace_record *c, void *at,
			  guint64 bytes, gint32 device)
{
	struct object *t = g_rc_box_new(struct object);

	*t = (struct object){
		.p = at, .size = c->size, .bytes = bytes, .device = device, .site = p->site
	};
	keep(p, c, t);
	if (p->replay->recorded && bytes > 0 && device >= 0)
		memory_obtain(&device_of(p, device)->memory, c->size, bytes);
	return t;
}

/* After a reference or a mapping went: the memory goes with the last of both. */
static void maybe_returned(struct player *p, struct object *t)
{
	if (!p->replay->recorded || t->references > 0 || t->maps > 0 || t->device < 0)
		return;
	/* what of a handle's size is rounding is told once */
	memory_return(&device_of(p, t->device)->memory, MIN(t->size, t->bytes), t->bytes);
	t->bytes = 0;
}

/* Where a call is counted; NULL: it rebuilds what was live when the window began. */
static struct model_device *calls_of(struct player *p, gint32 id, const struct npu_trace_record *c)
{
	return c->has & NPU_TRACE_HAS_START ? NULL : &device_of(p, id)->window;
}

static void note_out_of_memory(struct player *p, gint32 device, const struct npu_trace_record *c,
			       gint32 code)
{
	if (p->replay->recorded && code == ACL_ERROR_RT_MEMORY_ALLOCATION && c->code != code)
		replay_note_failure(device_of(p, device), 0, c->line, c->size, p->site);
}

/* ---- what is at an address ---- */

static void note(struct player *p, const struct npu_trace_record *c, gint32 device,
		 enum allocation_kind kind, const void *va, guint64 size, guint32 site)
{
	struct allocation item = { .key = (guintptr)va, .size = size, .site = site };

	item.va = item.key;
	item.address = c->has & NPU_TRACE_HAS_VA ? c->va : item.key;
	item.mapped = c->verb == NPU_TRACE_MAP;
	memory_add(&device_of(p, device)->memory, kind, &item);
}

/* Memory comes, `pages` bytes for c->size, or may go with the next call. */
static void come(struct player *p, const struct npu_trace_record *c, gint32 device, const void *va,
		 guint64 pages, guint32 site)
{
	struct replay_device *d = replay_find(p->replay, device);

	if (device >= 0)
		note(p, c, device, ALLOCATION_MEMORY, va, pages, site);
	if (p->replay->recorded && d && d->reads && p->refused == NULL)
		access_come(d->reads, (guintptr)va, c->size, &p->refused);
}

static void go(struct player *p, gint32 device, const void *va)
{
	struct replay_device *d = device_of(p, device);

	replay_note_peak(d);
	memory_look(&d->memory, (guintptr)va);
	if (p->replay->recorded && (gint32)d->device == device && d->reads)
		access_go(d->reads, (guintptr)va);
}

static aclrtMemLocation location_of(gint32 device)
{
	return (aclrtMemLocation){ .id = device < 0 ? 0 : (uint32_t)device,
				   .type = device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
						      : ACL_MEM_LOCATION_TYPE_DEVICE };
}

static gint32 play_reserve(struct player *p, const struct npu_trace_record *c)
{
	void *va;
	/* an address that was asked for is one of the recorder's; it matters where the call was
	 * refused for it */
	void *hint = c->code != 0 ? GSIZE_TO_POINTER(c->hint) : NULL;
	/* addresses that a program reserves are of no device */
	gint32 owner = p->replay->recorded ? -1 : (gint32)c->device;
	struct model_device *calls = calls_of(p, owner, c);
	gint32 code = MODEL_CALL(calls, MODEL_RESERVE,
				 aclrtReserveMemAddress(&va, c->size, c->align, hint, c->flags));
	if (code == 0) {
		add(p, c, va, 0, owner);
		note(p, c, owner, ALLOCATION_RESERVED, va, c->size, p->site);
		p->got = (guintptr)va;
	}
	return code;
}

static gint32 play_unreserve(struct player *p, const struct npu_trace_record *c)
{
	struct object *t = find(p, c->process, &c->name);
	if (t == NULL)
		return NOT_MADE;
	gint32 code = MODEL_CALL(calls_of(p, t->device, c), MODEL_UNRESERVE,
				 aclrtReleaseMemAddress(t->p));
	if (code == 0) {
		memory_remove(&device_of(p, t->device)->memory, ALLOCATION_RESERVED,
			      (guintptr)t->p);
		forget(p, c);
	}
	return code;
}

static gint32 play_create(struct player *p, const struct npu_trace_record *c)
{
	guint64 page = G_GUINT64_CONSTANT(1) << MAX(c->page_lg2, 21);
	gint32 device = (gint32)c->device;
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = c->page_lg2 == 30 ? ACL_HBM_MEM_HUGE1G
								   : ACL_HBM_MEM_HUGE,
				      .location = location_of(device) };
	void *handle;
	gint32 code = MODEL_CALL(calls_of(p, device, c), MODEL_CREATE,
				 aclrtMallocPhysical(&handle, c->size, &prop, 0));
	note_out_of_memory(p, device, c, code);
	if (code != 0)
		return code;
	struct object *t = add(p, c, handle, MAX(round_up(c->size, page), c->rounded), device);
	t->references = t->model_references = 1;
	return code;
}

static gint32 play_release(struct player *p, const struct npu_trace_record *c)
{
	struct object *t = find(p, c->process, &c->name);
	gint32 code = 0;
	if (t == NULL || (t->references == 0 && c->code == 0))
		return NOT_MADE;
	/* the last of the importers' references is the model's first */
	if (t->references <= t->model_references) {
		/* a policy's handles that were not mapped are not in the sums: they make no peak */
		if (p->replay->recorded)
			replay_note_peak(device_of(p, t->device));
		code = MODEL_CALL(calls_of(p, t->device, c), MODEL_RELEASE,
				  aclrtFreePhysical(t->p));
		if (code != 0)
			return code;
		t->model_references--;
	}
	t->references--;
	maybe_returned(p, t);
	if (t->references == 0)
		forget(p, c);
	return code;
}

static gint32 play_retain(struct player *p, const struct npu_trace_record *c)
{
	void *va = address(p, c->process, &c->at), *handle;
	guint64 key = (guintptr)va;
	struct object *t = g_tree_lookup(p->mapped, &key);
	if (va == NULL)
		return NOT_MADE;
	struct model_device *calls = &device_of(p, t ? t->device : -1)->window;
	gint32 code = MODEL_CALL(calls, MODEL_RETAIN, aclrtMemRetainAllocationHandle(va, &handle));
	if (code != 0 || t == NULL)
		return code;
	t->references++;
	t->model_references++;
	if (find(p, c->process, &c->name) == NULL)
		keep(p, c, g_rc_box_acquire(t));
	return code;
}

static gint32 play_map(struct player *p, const struct npu_trace_record *c)
{
	struct object *t = find(p, c->process, &c->handle);
	void *va = address(p, c->process, &c->name);
	if (t == NULL || va == NULL || t->model_references == 0)
		return NOT_MADE;
	gint32 code = MODEL_CALL(calls_of(p, t->device, c), MODEL_MAP,
				 aclrtMapMem(va, c->size, 0, t->p, 0));
	if (code == 0) {
		guint64 key = (guint64)GPOINTER_TO_SIZE(va);
		t->maps++;
		g_tree_replace(p->mapped, g_memdup2(&key, sizeof key), g_rc_box_acquire(t));
		come(p, c, t->device, va, c->size, t->site);
	}
	return code;
}

static gint32 play_unmap(struct player *p, const struct npu_trace_record *c)
{
	void *va = address(p, c->process, &c->name);
	guint64 key = (guintptr)va;
	struct object *t = g_tree_lookup(p->mapped, &key);
	if (va == NULL)
		return NOT_MADE;
	if (t)
		go(p, t->device, va);
	gint32 code =
		MODEL_CALL(calls_of(p, t ? t->device : -1, c), MODEL_UNMAP, aclrtUnmapMem(va));
	if (code == 0 && t) {
		memory_remove(&device_of(p, t->device)->memory, ALLOCATION_MEMORY, key);
		t->maps--;
		maybe_returned(p, t);
		g_tree_remove(p->mapped, &key);
	}
	return code;
}

static gint32 play_access(struct player *p, const struct npu_trace_record *c)
{
	void *va = address(p, c->process, &c->name);
	if (va == NULL)
		return NOT_MADE;
	struct model_device *calls = &device_of(p, c->device)->window;
	aclrtMemAccessDesc desc = { .flags = c->flags ? (aclrtMemAccessFlags)c->flags
						      : ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				    .location = location_of((gint32)c->device) };
	return MODEL_CALL(calls, MODEL_ACCESS, aclrtMemSetAccess(va, c->size, &desc, 1));
}

static gint32 play_malloc(struct player *p, const struct npu_trace_record *c)
{
	gint32 device = (gint32)c->device;
	aclrtMemMallocPolicy policy = c->page_lg2 == 30   ? ACL_MEM_MALLOC_HUGE1G_ONLY
				      : c->page_lg2 == 12 ? ACL_MEM_MALLOC_NORMAL_ONLY
							  : ACL_MEM_MALLOC_HUGE_FIRST;
	gint32 set = device < 0 ? ACL_SUCCESS : aclrtSetDevice(device);
	void *at;
	gint32 code = MODEL_CALL(calls_of(p, device, c), MODEL_MALLOC,
				 set != ACL_SUCCESS ? set
				 : device < 0       ? aclrtMallocHost(&at, c->size)
						    : aclrtMallocAlign32(&at, c->size, policy));
	note_out_of_memory(p, device, c, code);
	if (code != 0)
		return code;
	guint64 pages = c->page_lg2 == 12   ? round_up(c->size, 4096)
			: c->page_lg2 == 30 ? round_up(c->size, GIB)
					    : malloc_pages(c->size);
	add(p, c, at, pages, device);
	come(p, c, device, at, pages, p->site);
	p->got = (guintptr)at;
	return code;
}

static gint32 play_mfree(struct player *p, const struct npu_trace_record *c)
{
	struct object *t = find(p, c->process, &c->name);
	if (t == NULL)
		return NOT_MADE;
	go(p, t->device, t->p);
	gint32 code = MODEL_CALL(calls_of(p, t->device, c), MODEL_FREE,
				 t->device < 0 ? aclrtFreeHost(t->p) : aclrtFree(t->p));
	if (code != 0)
		return code;
	memory_remove(&device_of(p, t->device)->memory, ALLOCATION_MEMORY, (guintptr)t->p);
	maybe_returned(p, t);
	forget(p, c);
	return code;
}

/* Shares cross processes; a replay is one process, so an import is one more name for the exported
 * handle. */
static gint32 play_share(struct player *p, const struct npu_trace_record *c)
{
	gboolean imports = c->verb == NPU_TRACE_IMPORT;
	struct object *t = find(p, c->process, imports ? &c->share : &c->handle);
	if (t == NULL || c->code != 0 || (imports && t->references == 0))
		return NOT_MADE;
	t->references += imports;
	keep(p, c, g_rc_box_acquire(t));
	return 0;
}

/* ---- devices ---- */

/* Plays a verb for each thing of a kind that a process has on a device, of reservations all. */
static void play_all(struct player *p, const struct npu_trace_record *reset, char kind,
		     gint32 (*verb)(struct player *, const struct npu_trace_record *))
{
	g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(guint32));
	struct npu_trace_record c = { .process = reset->process, .device = reset->device };
	GHashTableIter iter;
	gpointer key, value;

	g_hash_table_iter_init(&iter, p->names[kind & 127]);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		guint64 name = *(const guint64 *)key;
		guint32 number = (guint32)name;
		if (name >> 32 == c.process &&
		    (kind == 'r' || ((const struct object *)value)->device == c.device))
			g_array_append_val(numbers, number);
	}
	for (guint i = 0; i < numbers->len; i++) {
		c.name = (struct npu_trace_name){ .kind = kind,
						  .number = g_array_index(numbers, guint32, i) };
		verb(p, &c);
	}
}

/* Unmaps what of a device is mapped in a reservation. */
static gint32 clear_reservation(struct player *p, const struct npu_trace_record *c)
{
	struct object *r = find(p, c->process, &c->name);
	guint64 start = (guint64)GPOINTER_TO_SIZE(r->p), at = start;

	for (GTreeNode *n; (n = g_tree_lower_bound(p->mapped, &at)) != NULL;) {
		const struct object *t = g_tree_node_value(n);
		struct npu_trace_record unmap = *c;
		at = *(guint64 *)g_tree_node_key(n);
		if (at - start >= r->size)
			break;
		unmap.name.offset = at++ - start;
		if (t->device == c->device)
			play_unmap(p, &unmap);
	}
	return 0;
}

/* The driver takes back what a process still has of a device that it closes. */
static gint32 play_device(struct player *p, const struct npu_trace_record *c)
{
	guint64 key = (guint64)c->process << 32 | (guint32)c->device;
	gboolean reset = c->verb == NPU_TRACE_DEVICE_RESET;
	const struct int_map_entry *e = int_map_find(p->set, key, 0);
	guint64 set = e ? e->value : 0;

	if (c->code != 0)
		return NOT_MADE;
	set = reset ? MAX(set, 1) - 1 : set + 1;
	int_map_put(p->set, key, 0, set);
	if (!reset)
		return replay_find(p->replay, c->device) ? aclrtSetDevice((int)c->device) : 0;
	if (set > 0)
		return 0;
	play_all(p, c, 'a', play_mfree);
	play_all(p, c, 'r', clear_reservation);
	play_all(p, c, 'h', play_release);
	return 0;
}

/* ---- copies ---- */

/* FALSE: what the name stands for is not there. */
static gboolean end_of(struct player *p, guint32 process, const struct npu_trace_name *name,
		       struct model_end *out)
{
	void *va = address(p, process, name);
	const struct object *t = find(p, process, name);
	GTreeNode *node = by_address_node(p->mapped, (guintptr)va);

	*out = (struct model_end){ .p = va, .device = -1 };
	if (name->kind != 'r' && name->kind != 'a')
		return TRUE;
	if (name->kind == 'r')
		t = node ? g_tree_node_value(node) : NULL;
	if (t && name->kind == 'r' && (guintptr)va - *(guint64 *)g_tree_node_key(node) >= t->size)
		t = NULL;
	out->device = t ? t->device : -1;
	return t != NULL;
}

/* A program of several devices had seen to it. */
static void open_peers(struct player *p, gint32 a, gint32 b)
{
	const gint32 pair[] = { a, b };
	const GPtrArray *devices = p->replay->devices;

	if (int_map_find(p->peers, (guint64)a, 0) && int_map_find(p->peers, (guint64)b, 0))
		return;
	for (guint i = 0; i < G_N_ELEMENTS(pair); i++) {
		int_map_put(p->peers, (guint64)pair[i], 0, TRUE);
		aclrtSetDevice(pair[i]);
		for (guint k = 0; k < devices->len; k++) {
			const struct replay_device *peer = devices->pdata[k];
			if ((gint32)peer->device != pair[i])
				aclrtDeviceEnablePeerAccess((int32_t)peer->device, 0);
		}
	}
}

static gint32 play_copy(struct player *p, const struct npu_trace_record *c)
{
	gboolean fill = c->verb == NPU_TRACE_FILL;
	struct model_end dst, src;

	if (c->code != 0 || !end_of(p, c->process, &c->at, &dst) ||
	    (!fill && !end_of(p, c->process, &c->from, &src)))
		return NOT_MADE;
	if (p->replay->options.no_copies)
		return 0;
	if (!fill && dst.device >= 0 && src.device >= 0 && dst.device != src.device)
		open_peers(p, dst.device, src.device);
	gint32 owner = fill || dst.device >= 0 ? dst.device : src.device;
	return model_move(&device_of(p, owner)->window, dst, fill ? NULL : &src, c->size);
}

/* One row a verb; others are for the record. */
static gint32 (*const verbs[NPU_TRACE_VERB_COUNT])(struct player *,
						   const struct npu_trace_record *) = {
	[NPU_TRACE_RESERVE] = play_reserve,   [NPU_TRACE_UNRESERVE] = play_unreserve,
	[NPU_TRACE_CREATE] = play_create,     [NPU_TRACE_RELEASE] = play_release,
	[NPU_TRACE_RETAIN] = play_retain,     [NPU_TRACE_MAP] = play_map,
	[NPU_TRACE_UNMAP] = play_unmap,       [NPU_TRACE_ACCESS] = play_access,
	[NPU_TRACE_EXPORT] = play_share,      [NPU_TRACE_IMPORT] = play_share,
	[NPU_TRACE_MALLOC] = play_malloc,     [NPU_TRACE_MFREE] = play_mfree,
	[NPU_TRACE_COPY] = play_copy,         [NPU_TRACE_FILL] = play_copy,
	[NPU_TRACE_DEVICE_SET] = play_device, [NPU_TRACE_DEVICE_RESET] = play_device,
};

static gint32 play(struct player *p, const struct npu_trace_record *c)
{
	return verbs[c->verb] ? verbs[c->verb](p, c) : c->code;
}

struct player *player_open(struct replay *replay)
{
	struct player *p = g_new0(struct player, 1);

	for (const char *kind = kinds; *kind; kind++)
		p->names[*kind & 127] = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
							      g_rc_box_release);
	p->mapped = by_address_tree(g_free, g_rc_box_release);
	p->set = int_map_new();
	p->peers = int_map_new();
	p->replay = replay;
	return p;
}

gint32 player_call(struct player *p, const struct npu_trace_record *c, guint64 *out_va)
{
	gint32 code = play(p, c);

	if (code == ACL_SUCCESS)
		*out_va = p->got;
	return code;
}

gboolean player_step(struct player *p, const struct record_item *call, GError **error)
{
	struct replay_device *device = device_of(p, (gint32)call->record.device);
	struct npu_trace_record c = call->record;

	/* they are for people */
	c.has &= ~(guint32)(NPU_TRACE_HAS_VA | NPU_TRACE_HAS_START);
	p->site = call->site;
	gint32 code = play(p, &c);
	device->left_out += code == NOT_MADE && c.code == 0;
	device->differing += code != NOT_MADE && code != c.code;
	for (guint i = 0; p->refused == NULL && i < p->replay->devices->len; i++) {
		device = g_ptr_array_index(p->replay->devices, i);
		if (device->reads)
			access_tick(device->reads, &p->refused);
	}
	if (p->refused == NULL)
		return TRUE;
	g_propagate_error(error, g_steal_pointer(&p->refused));
	return FALSE;
}

void player_close(struct player *p)
{
	for (GTreeNode *n = g_tree_node_first(p->mapped); n; n = g_tree_node_next(n))
		aclrtUnmapMem(GSIZE_TO_POINTER(*(guint64 *)g_tree_node_key(n)));
	for (const char *kind = kinds; *kind; kind++) {
		GHashTableIter iter;
		gpointer value;
		g_hash_table_iter_init(&iter, p->names[*kind & 127]);
		while (g_hash_table_iter_next(&iter, NULL, &value)) {
			struct object *t = value;
			if (*kind == 'a')
				(t->device < 0 ? aclrtFreeHost : aclrtFree)(t->p);
			if (*kind == 'r')
				aclrtReleaseMemAddress(t->p);
			for (; t->model_references > 0; t->model_references--)
				aclrtFreePhysical(t->p);
		}
		g_hash_table_unref(p->names[*kind & 127]);
	}
	g_tree_unref(p->mapped);
	g_clear_pointer(&p->set, g_hash_table_unref);
	g_clear_pointer(&p->peers, g_hash_table_unref);
	g_clear_error(&p->refused);
	g_free(p);
}
