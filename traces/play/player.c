/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the driver calls of records on the model. A call that failed when it was recorded is made
 * only if everything that it names exists. A result other than the recorded one is counted and is
 * not an error.
 */
#include "replay.h"

#define NOT_MADE (-1) /* what the call names is not there */

static struct object *find(const struct replay *r, guint32 process,
			   const struct npu_trace_name *name)
{
	return tracker_object(r->tracker, process, name);
}

/* The address that a name stands for, or NULL. */
static void *address(struct replay *r, guint32 process, const struct npu_trace_name *name)
{
	struct object *t = find(r, process, name);

	return t && name->offset <= t->size ? (char *)t->p + name->offset : NULL;
}

/* ---- physical memory ---- */

/* The first counts what belongs to no device. */
static struct replay_device *device_of(struct replay *r, gint32 id)
{
	struct replay_device *device = replay_find(r, id);
	return device ? device : g_ptr_array_index(r->devices, 0);
}

/* The call was made. `over`: bytes that pages take beyond a MALLOC's size. */
static void done(struct replay *r, const struct npu_trace_record *c, guint32 over)
{
	struct record_item item = { .record = *c, .number = r->done + 1, .over = over };
	struct tracker_line line;

	item.record.code = 0;
	tracker_step(r->tracker, &item, &line);
}

/* The same: what its name stands for from now on. Recorded calls make the sums of memory. */
static struct object *add(struct replay *r, const struct npu_trace_record *c, void *at,
			  guint32 over, gint32 device)
{
	if (r->recorded && device >= 0)
		tracker_device(r->tracker, device)->levels = &device_of(r, device)->memory.levels;
	done(r, c, over);
	struct object *t = find(r, c->process, &c->name);

	t->p = at;
	t->device = device;
	t->site = r->site;
	return t;
}

/* Makes a call, and counts it, unless it rebuilds what was live when the window began. */
#define CALL(device, call, answer)                                                        \
	MODEL_CALL((NPU_TRACE_HAS_START & c->has) ? NULL : &device_of(r, device)->window, \
		   MODEL_##call, answer)

/* ---- what is at an address ---- */

static void note(struct replay *r, const struct npu_trace_record *c, gint32 device,
		 enum allocation_kind kind, const void *va, guint64 size, guint32 site)
{
	struct allocation item = { .key = (guintptr)va, .size = size, .site = site };

	item.address = c->has & NPU_TRACE_HAS_VA ? c->va : item.key;
	item.mapped = c->verb == NPU_TRACE_MAP;
	item.since = device_of(r, device)->memory.levels.event;
	memory_add(&device_of(r, device)->memory, kind, &item);
}

/* Memory comes, `pages` bytes for c->size, or may go with the next call. */
static void come(struct replay *r, const struct npu_trace_record *c, gint32 device, const void *va,
		 guint64 pages, guint32 site)
{
	struct replay_device *d = replay_find(r, device);

	if (device >= 0)
		note(r, c, device, ALLOCATION_MEMORY, va, pages, site);
	if (r->recorded && d && d->reads && r->refused == NULL)
		access_come(d->reads, (guintptr)va, c->size, &r->refused);
}

/* The call was made: what was there is not. What a policy allocates has no name. */
static void gone(struct replay *r, const struct npu_trace_record *c, gint32 device,
		 enum allocation_kind kind, const void *va)
{
	memory_remove(&device_of(r, device)->memory, kind, (guintptr)va);
	if (c->name.kind != 0)
		done(r, c, 0);
}

static void go(struct replay *r, gint32 device, const void *va)
{
	struct replay_device *d = device_of(r, device);

	replay_note_peak(d);
	memory_look(&d->memory, (guintptr)va);
	if (r->recorded && (gint32)d->device == device && d->reads)
		access_go(d->reads, (guintptr)va);
}

static aclrtMemLocation location_of(gint32 device)
{
	return (aclrtMemLocation){ .id = device < 0 ? 0 : (uint32_t)device,
				   .type = device < 0 ? ACL_MEM_LOCATION_TYPE_HOST
						      : ACL_MEM_LOCATION_TYPE_DEVICE };
}

static gint32 play_reserve(struct replay *r, const struct npu_trace_record *c)
{
	void *va;
	/* an address asked for is one of the recorder's; it matters where it was refused */
	void *hint = c->code != 0 ? GSIZE_TO_POINTER(c->hint) : NULL;
	/* addresses that a program reserves are of no device */
	gint32 owner = r->recorded ? -1 : (gint32)c->device;
	gint32 code = CALL(owner, RESERVE,
			   aclrtReserveMemAddress(&va, c->size, c->align, hint, c->flags));
	if (code == 0) {
		add(r, c, va, 0, owner);
		note(r, c, owner, ALLOCATION_RESERVED, va, c->size, r->site);
		r->got = (guintptr)va;
	}
	return code;
}

static gint32 play_unreserve(struct replay *r, const struct npu_trace_record *c)
{
	struct object *t = find(r, c->process, &c->name);
	if (t == NULL)
		return NOT_MADE;
	gint32 device = (gint32)t->device;
	gint32 code = CALL(device, UNRESERVE, aclrtReleaseMemAddress(t->p));
	if (code == 0)
		gone(r, c, device, ALLOCATION_RESERVED, t->p);
	return code;
}

static gint32 play_create(struct replay *r, const struct npu_trace_record *c)
{
	gint32 device = (gint32)c->device;
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = c->page_lg2 == 30 ? ACL_HBM_MEM_HUGE1G
								   : ACL_HBM_MEM_HUGE,
				      .location = location_of(device) };
	void *handle;
	gint32 code = CALL(device, CREATE, aclrtMallocPhysical(&handle, c->size, &prop, 0));
	if (code == 0)
		add(r, c, handle, 0, device)->model_references = 1;
	return code;
}

static gint32 play_release(struct replay *r, const struct npu_trace_record *c)
{
	struct object *t = find(r, c->process, &c->name);
	gint32 code = 0;
	if (t == NULL || (t->references == 0 && c->code == 0))
		return NOT_MADE;
	/* the last of the importers' references is the model's first */
	if (t->references <= t->model_references) {
		/* a policy's handles that were not mapped are not in the sums: they make no peak */
		if (r->recorded)
			replay_note_peak(device_of(r, (gint32)t->device));
		code = CALL((gint32)t->device, RELEASE, aclrtFreePhysical(t->p));
		if (code != 0)
			return code;
		t->model_references--;
	}
	done(r, c, 0);
	return code;
}

static gint32 play_retain(struct replay *r, const struct npu_trace_record *c)
{
	void *va = address(r, c->process, &c->at), *handle;
	const struct mapping *m = tracker_mapping(r->tracker, c->process, &c->at);
	if (va == NULL)
		return NOT_MADE;
	gint32 code = CALL(m ? (gint32)m->object->device : -1, RETAIN,
			   aclrtMemRetainAllocationHandle(va, &handle));
	if (code != 0 || m == NULL)
		return code;
	m->object->model_references++;
	done(r, c, 0);
	return code;
}

static gint32 play_map(struct replay *r, const struct npu_trace_record *c)
{
	struct object *t = find(r, c->process, &c->handle);
	void *va = address(r, c->process, &c->name);
	if (t == NULL || va == NULL || t->model_references == 0)
		return NOT_MADE;
	gint32 device = (gint32)t->device;
	gint32 code = CALL(device, MAP, aclrtMapMem(va, c->size, 0, t->p, 0));
	if (code == 0) {
		done(r, c, 0);
		come(r, c, device, va, c->size, t->site);
	}
	return code;
}

static gint32 play_unmap(struct replay *r, const struct npu_trace_record *c)
{
	void *va = address(r, c->process, &c->name);
	const struct mapping *m = tracker_mapping(r->tracker, c->process, &c->name);
	gint32 device = m ? (gint32)m->object->device : -1;
	if (va == NULL)
		return NOT_MADE;
	if (m)
		go(r, device, va);
	gint32 code = CALL(device, UNMAP, aclrtUnmapMem(va));
	if (code == 0 && m)
		gone(r, c, device, ALLOCATION_MEMORY, va);
	return code;
}

static gint32 play_access(struct replay *r, const struct npu_trace_record *c)
{
	void *va = address(r, c->process, &c->name);
	if (va == NULL)
		return NOT_MADE;
	aclrtMemAccessDesc desc = { .flags = c->flags ? (aclrtMemAccessFlags)c->flags
						      : ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				    .location = location_of((gint32)c->device) };
	return CALL((gint32)c->device, ACCESS, aclrtMemSetAccess(va, c->size, &desc, 1));
}

static gint32 play_malloc(struct replay *r, const struct npu_trace_record *c)
{
	gint32 device = (gint32)c->device;
	aclrtMemMallocPolicy policy = c->page_lg2 == 30   ? ACL_MEM_MALLOC_HUGE1G_ONLY
				      : c->page_lg2 == 12 ? ACL_MEM_MALLOC_NORMAL_ONLY
							  : ACL_MEM_MALLOC_HUGE_FIRST;
	gint32 set = ACL_SUCCESS, current;
	void *at;
	if (device >= 0 && (aclrtGetDevice(&current) != ACL_SUCCESS || current != device))
		set = aclrtSetDevice(device);
	gint32 code = CALL(device, MALLOC,
			   set != ACL_SUCCESS ? set
			   : device < 0       ? aclrtMallocHost(&at, c->size)
					      : aclrtMallocAlign32(&at, c->size, policy));
	if (code != 0)
		return code;
	guint64 pages = c->page_lg2 == 12   ? round_up(c->size, 4096)
			: c->page_lg2 == 30 ? round_up(c->size, GIB)
					    : malloc_pages(c->size);
	if (r->recorded)
		add(r, c, at, (guint32)(pages - c->size), device);
	come(r, c, device, at, pages, r->site);
	r->got = (guintptr)at;
	return code;
}

static gint32 play_mfree(struct replay *r, const struct npu_trace_record *c)
{
	struct object *t = find(r, c->process, &c->name);
	if (t == NULL && r->recorded)
		return NOT_MADE;
	gint32 device = (gint32)(t ? t->device : c->device);
	void *at = t ? t->p : GSIZE_TO_POINTER(c->va);
	go(r, device, at);
	gint32 code = CALL(device, FREE, device < 0 ? aclrtFreeHost(at) : aclrtFree(at));
	if (code == 0)
		gone(r, c, device, ALLOCATION_MEMORY, at);
	return code;
}

/* A replay is one process, so an import is one more name for the handle that was exported. */
static gint32 play_share(struct replay *r, const struct npu_trace_record *c)
{
	gboolean imports = c->verb == NPU_TRACE_IMPORT;
	const struct object *t = find(r, c->process, imports ? &c->share : &c->handle);
	if (t == NULL || c->code != 0 || (imports && t->references == 0))
		return NOT_MADE;
	done(r, c, 0);
	return 0;
}

/* ---- devices ---- */

/* Plays a verb for each thing of a kind that a process has on a device, of reservations all. */
static void play_all(struct replay *r, const struct npu_trace_record *reset, char kind,
		     enum npu_trace_verb verb,
		     gint32 (*act)(struct replay *, const struct npu_trace_record *))
{
	g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(guint32));
	struct npu_trace_record c = { .verb = verb,
				      .process = reset->process,
				      .device = reset->device };
	const struct int_map_entry *name = NULL;

	while ((name = int_map_next(r->tracker->names, name))) {
		guint32 number = (guint32)name->key;
		if (name->tag == (guint32)kind && name->key >> 32 == c.process &&
		    (kind == 'r' || object_of(name)->device == c.device))
			g_array_append_val(numbers, number);
	}
	for (guint i = 0; i < numbers->len; i++) {
		c.name = (struct npu_trace_name){ .kind = kind,
						  .number = g_array_index(numbers, guint32, i) };
		act(r, &c);
	}
}

/* Unmaps what of a device is mapped in a reservation. */
static gint32 clear_reservation(struct replay *r, const struct npu_trace_record *c)
{
	struct mapping at = { .place = find(r, c->process, &c->name)->id };

	for (GTreeNode *n; (n = g_tree_lower_bound(r->tracker->maps, &at)) != NULL; at.offset++) {
		const struct mapping *m = g_tree_node_value(n);
		struct npu_trace_record unmap = *c;
		if (m->place != at.place)
			break;
		unmap.name.offset = at.offset = m->offset;
		if (m->object->device == c->device)
			play_unmap(r, &unmap);
	}
	return 0;
}

/* The driver takes back what a process still has of a device that it closes. */
static gint32 play_device(struct replay *r, const struct npu_trace_record *c)
{
	if (c->code != 0)
		return NOT_MADE;
	guint64 set = tracker_count_set(r->tracker, c);
	if (c->verb == NPU_TRACE_DEVICE_SET)
		return replay_find(r, c->device) ? aclrtSetDevice((int)c->device) : 0;
	if (set > 0)
		return 0;
	play_all(r, c, 'a', NPU_TRACE_MFREE, play_mfree);
	play_all(r, c, 'r', NPU_TRACE_UNMAP, clear_reservation);
	play_all(r, c, 'h', NPU_TRACE_RELEASE, play_release);
	return 0;
}

/* ---- copies ---- */

/* FALSE: what the name stands for is not there. */
static gboolean end_of(struct replay *r, guint32 process, const struct npu_trace_name *name,
		       struct model_end *out)
{
	const struct object *t = find(r, process, name);
	const struct mapping at = { .place = t ? t->id : 0, .offset = name->offset };

	*out = (struct model_end){ .p = address(r, process, name), .device = -1 };
	if (name->kind != 'r' && name->kind != 'a')
		return TRUE;
	if (name->kind == 'r') {
		GTreeNode *above = g_tree_upper_bound(r->tracker->maps, &at);
		GTreeNode *node =
			above ? g_tree_node_previous(above) : g_tree_node_last(r->tracker->maps);
		const struct mapping *m = node ? g_tree_node_value(node) : NULL;
		t = m && m->place == at.place && at.offset - m->offset < m->object->size ? m->object
											 : NULL;
	}
	out->device = t ? (gint32)t->device : -1;
	return t != NULL;
}

/* A program of several devices had seen to it. */
static void open_peers(struct replay *r, gint32 a, gint32 b)
{
	struct replay_device *const pair[] = { device_of(r, a), device_of(r, b) };
	const GPtrArray *devices = r->devices;

	if (pair[0]->peers_opened && pair[1]->peers_opened)
		return;
	for (guint i = 0; i < G_N_ELEMENTS(pair); i++) {
		pair[i]->peers_opened = TRUE;
		aclrtSetDevice((int32_t)pair[i]->device);
		for (guint k = 0; k < devices->len; k++) {
			const struct replay_device *peer = devices->pdata[k];
			if (peer != pair[i])
				aclrtDeviceEnablePeerAccess((int32_t)peer->device, 0);
		}
	}
}

static gint32 play_copy(struct replay *r, const struct npu_trace_record *c)
{
	gboolean fill = c->verb == NPU_TRACE_FILL;
	struct model_end dst, src;

	if (c->code != 0 || !end_of(r, c->process, &c->at, &dst) ||
	    (!fill && !end_of(r, c->process, &c->from, &src)))
		return NOT_MADE;
	if (r->options.no_copies)
		return 0;
	if (!fill && dst.device >= 0 && src.device >= 0 && dst.device != src.device)
		open_peers(r, dst.device, src.device);
	gint32 owner = fill || dst.device >= 0 ? dst.device : src.device;
	return model_move(&device_of(r, owner)->window, dst, fill ? NULL : &src, c->size);
}

/* One row a verb; others are for the record. */
static gint32 (*const verbs[NPU_TRACE_VERB_COUNT])(struct replay *,
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

gint32 player_call(struct replay *r, const struct npu_trace_record *c)
{
	return verbs[c->verb] ? verbs[c->verb](r, c) : c->code;
}

gboolean player_step(struct replay *r, const struct record_item *call, GError **error)
{
	struct replay_device *device = device_of(r, (gint32)call->record.device);
	struct npu_trace_record c = call->record;

	/* they are for people */
	c.has &= ~(guint32)(NPU_TRACE_HAS_VA | NPU_TRACE_HAS_START);
	/* what a call gets that was refused when it was recorded goes back at the end, too */
	if (c.name.kind == NPU_TRACE_NAME_HOST && trace_verbs[c.verb].kind)
		c.name = (struct npu_trace_name){ .kind = trace_verbs[c.verb].kind,
						  .number = G_MAXUINT32 - r->unnamed++ };
	r->site = call->site;
	gint32 code = player_call(r, &c);
	if ((c.verb == NPU_TRACE_CREATE || c.verb == NPU_TRACE_MALLOC) && code != c.code &&
	    code == ACL_ERROR_RT_MEMORY_ALLOCATION)
		replay_note_failure(device, 0, c.line, c.size, r->site);
	device->left_out += code == NOT_MADE && c.code == 0;
	device->differing += code != NOT_MADE && code != c.code;
	for (guint i = 0; r->refused == NULL && i < r->devices->len; i++) {
		device = g_ptr_array_index(r->devices, i);
		if (device->reads)
			access_tick(device->reads, &r->refused);
	}
	if (r->refused == NULL)
		return TRUE;
	g_propagate_error(error, g_steal_pointer(&r->refused));
	return FALSE;
}

void player_close(struct replay *r)
{
	static const char kinds[] = "har"; /* in the order in which they are given back */
	const struct int_map_entry *name = NULL;

	for (GTreeNode *n = g_tree_node_first(r->tracker->maps); n; n = g_tree_node_next(n)) {
		const struct mapping *m = g_tree_node_value(n);
		aclrtUnmapMem((char *)m->in->p + m->offset);
	}
	for (const char *kind = kinds; *kind; kind++) {
		while ((name = int_map_next(r->tracker->names, name))) {
			struct object *t = object_of(name);
			if (name->tag != (guint32)*kind)
				continue;
			if (*kind == 'a')
				(t->device < 0 ? aclrtFreeHost : aclrtFree)(t->p);
			if (*kind == 'r')
				aclrtReleaseMemAddress(t->p);
			for (; t->model_references > 0; t->model_references--)
				aclrtFreePhysical(t->p);
		}
	}
	for (guint i = 0; !r->recorded && i < r->devices->len; i++) {
		const struct replay_device *device = r->devices->pdata[i];
		const struct allocation *item = NULL;
		while ((item = int_map_next(device->memory.items[ALLOCATION_MEMORY], item))) {
			if (!item->mapped) /* it has no name */
				aclrtFree(GSIZE_TO_POINTER(item->key));
		}
	}
	tracker_free(r->tracker);
	g_clear_error(&r->refused);
}
