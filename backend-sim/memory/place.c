/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers what lies at an address, for copies, queries, checks, the runtime above (npusimPlace,
 * npusimPhysical, halMemGetAddressRange, drvMemGetAttribute), for layers, and messages, or has the
 * processor fetch the answer; and lists what this process still holds, for the report at exit and
 * for who is refused memory. Owns nothing but the wording.
 */
#include "memory/memory.h"

#include <inttypes.h>

#include "base/clock.h"

static uint32_t place_owner(unsigned memory)
{
	return memory == SIM_NODE_HOST ? NPU_OWNER_HOST : memory;
}

static struct npu_place place_in_reservation(const struct bsim *bs, const struct range *r,
					     uint64_t va)
{
	const struct mapping *m = window_mapping(bs->window, va);
	struct npu_place place = {
		.kind = NPU_PLACE_RESERVED,
		.owner = r->bound < 0 ? NPU_OWNER_NONE : place_owner((unsigned)r->bound),
		.base = r->va,
		.bytes = r->bytes,
		.reserved_base = r->va,
		.reserved_bytes = r->asked,
		.number = r->made.number,
	};

	if (m != NULL) {
		place.kind = NPU_PLACE_MAPPED;
		place.owner = place_owner(m->handle->space);
		place.base = m->va;
		place.bytes = mapping_bytes(m);
		place.readers = mapping_readers(m);
		place.writers = mapping_readers(m) & ~(uint32_t)m->read_only;
		place.cpu = m->cpu;
		place.imported = m->handle->imported || m->handle->from_fd;
		place.handle_bytes = m->handle->bytes;
		place.handle_word = m->handle->prop.reserve;
		place.number = m->made.number;
	}
	place.page_bytes = place.owner == NPU_OWNER_NONE   ? 0
			   : place.owner == NPU_OWNER_HOST ? 1u << 12
							   : 1u << 21;
	return place;
}

static struct npu_place place_in_allocation(const struct allocation *a, uint64_t va)
{
	bool registered = a->kind == NPU_PLACE_REGISTERED;

	return (struct npu_place){ .kind = a->kind,
				   .owner = place_owner(a->memory),
				   .page_bytes = 1u << a->page_lg2,
				   .imported = a->kind == NPU_PLACE_OPENED,
				   .base = a->va,
				   .bytes = a->bytes,
				   .host_va = registered ? a->host_va + (va - a->va) : va,
				   .asked_bytes = a->asked,
				   .number = a->made.number };
}

struct npu_place place_at(const struct bsim *bs, uint64_t va)
{
	return place_sent_at(bs, va, ALLOCATION_NOW);
}

struct npu_place place_sent_at(const struct bsim *bs, uint64_t va, uint64_t sent)
{
	const struct window *w = bs->window;
	const struct range *r = w == NULL ? NULL : window_peek(w, va);
	const struct allocation *a;

	if (r != NULL && range_is_reservation(r))
		return place_in_reservation(bs, r, va);
	a = w == NULL ? NULL : allocation_sent_at(w, va, sent);
	if (a != NULL)
		return place_in_allocation(a, va);
	if (w != NULL && va >= w->read_only_base && va < w->end) /* given out or not */
		return (struct npu_place){ .kind = NPU_PLACE_FREE, .owner = NPU_OWNER_NONE };
	return (struct npu_place){ .kind = NPU_PLACE_PAGEABLE,
				   .owner = NPU_OWNER_NONE,
				   .page_bytes = 1u << 12,
				   .host_va = va };
}

const char *range_text(uint64_t va, uint64_t bytes)
{
	return npu_text("[0x%" PRIx64 ", +%s)", va, npu_size_text(bytes));
}

const char *place_text_locked(struct bsim *bs, uint64_t va)
{
	static const char *const names[NPU_PLACE_KIND_COUNT] = {
		[NPU_PLACE_PAGEABLE] =
			"outside the device addresses (memory of the program itself, or none)",
		[NPU_PLACE_FREE] = "a device address that is not allocated",
		[NPU_PLACE_RESERVED] = "the reservation",
		[NPU_PLACE_MAPPED] = "the mapping",
		[NPU_PLACE_DEVICE] = "the allocation",
		[NPU_PLACE_PINNED] = "the pinned host allocation",
		[NPU_PLACE_OPENED] = "the memory opened by its name",
		[NPU_PLACE_REGISTERED] = "registered host memory",
	};
	struct npu_place p = place_at(bs, va);
	bool empty = p.kind == NPU_PLACE_FREE || p.kind == NPU_PLACE_RESERVED;
	const char *gone = empty ? gone_text_locked(bs, va, p.number) : NULL;
	bool reset = empty && gone == NULL && bs->handles && bs->handles->reset > p.number;
	const char *into = " is", *where = "", *of = "";

	if (p.base != 0 && va != p.base)
		into = npu_text(", %s into", npu_size_text(va - p.base));
	if (p.base != 0)
		where = npu_text(" at 0x%" PRIx64 ", %s", p.base, npu_size_text(p.bytes));
	if (p.kind == NPU_PLACE_RESERVED)
		of = ", with nothing mapped here";
	else if (npu_place_is_translated(&p))
		of = npu_text(", %s%s", p.owner == NPU_OWNER_HOST ? "memory of " : "",
			      bsim_memory_text(place_memory(&p)));
	return npu_text("0x%" PRIx64 "%s %s%s%s%s%s", va, into, names[p.kind], where, of,
			gone != NULL ? ": " : "",
			reset ? "; a device was reset in this process, which ends what it has"
			      : gone ?: "");
}

/* ---- for the runtime ---- */

BSIM_QUESTION(npusimPlace, (uint64_t, va), (struct npu_place *, out))
{
	if (out == NULL)
		return bsim_null(call, "out");
	*out = place_at(bs, va);
	if (out->kind == NPU_PLACE_RESERVED) {
		uint64_t slot = va & ~(WINDOW_SLOT - 1), end = out->base + out->bytes;
		const struct mapping *next =
			window_first_mapping(bs->window, slot, end - slot, false);

		out->next_mapped = next != NULL ? next->va : end;
	}
	return DRV_ERROR_NONE;
}

/* Each step fetches what the one before has found. */
static void fetch(const struct bsim *bs, uint64_t va, unsigned step)
{
	const struct range *r = window_peek(bs->window, va);
	struct allocation **owner;

	if (r == NULL || r->kind != RANGE_POOL)
		return;
	owner = &r->pool->owner[(va - r->va) >> r->pool->kind.page_lg2];
	if (step == 0) {
		__builtin_prefetch(owner);
		pt_soon(&tables_space(r->pool->kind.memory)->pt, va);
	} else if (step == 1) {
		__builtin_prefetch(*owner);
	} else if (*owner != NULL) {
		__builtin_prefetch(LIST_NEXT(*owner, link)); /* both neighbours change */
		__builtin_prefetch((*owner)->link.le_prev);
	}
}

BSIM_QUESTION(npusimFreedSoon, (const uint64_t *, va), (size_t, count))
{
	for (unsigned step = 0; bs->any_open && step < 3; step++)
		for (size_t i = 0; i < (va ? MIN(count, 64) : 0); i++)
			fetch(bs, va[i], step);
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halMemGetAddressRange, SIM_CALL_QUERY, (DVdeviceptr, ptr), (DVdeviceptr *, base),
	       (size_t *, size))
{
	struct npu_place p = place_at(c->bs, ptr);

	if (base == NULL && size == NULL)
		return bsim_invalid("%s: base and size are both NULL", c->name);
	if (!npu_place_is_translated(&p))
		return bsim_invalid("%s: no memory of a device or mapping at %s", c->name,
				    place_text_locked(c->bs, ptr));
	if (base != NULL)
		*base = p.base;
	if (size != NULL)
		*size = p.bytes;
	return DRV_ERROR_NONE;
}

/* Side and device of a reservation are those of the first mapping, also when it is gone. */
BSIM_CALL(drvMemGetAttribute, SIM_CALL_QUERY, (DVdeviceptr, va), (struct DVattribute *, attr))
{
	static const uint32_t types[NPU_PLACE_KIND_COUNT] = {
		[NPU_PLACE_PAGEABLE] = DV_MEM_USER_MALLOC,
		[NPU_PLACE_REGISTERED] = DV_MEM_USER_REGISTER,
	};
	struct npu_place p = place_at(c->bs, va);
	bool device = p.owner < BSIM_DEVICE_MAX;

	if (attr == NULL)
		return bsim_null("drvMemGetAttribute", "attr");
	if (p.kind == NPU_PLACE_FREE)
		return bsim_fail(DRV_ERROR_NOT_EXIST, "drvMemGetAttribute: %s",
				 place_text_locked(c->bs, va));
	if (p.kind == NPU_PLACE_RESERVED && p.owner == NPU_OWNER_NONE)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 "drvMemGetAttribute: nothing has ever been mapped in this "
				 "reservation: %s",
				 place_text_locked(c->bs, va));
	*attr = (struct DVattribute){ .memType = types[p.kind] != 0 ? types[p.kind]
						 : device           ? DV_MEM_LOCK_DEV
								    : DV_MEM_LOCK_HOST,
				      .devId = device ? p.owner : 0,
				      .pageSize = p.page_bytes };
	return DRV_ERROR_NONE;
}

/* ---- where the bytes are, by the page table ---- */

/* A leaf of the device's own memory, and how many bytes from va on lie one behind the other in its
 * table: `most` are of interest. */
static bool walk(uint32_t dev, uint64_t va, uint64_t most, struct pt_leaf *out, uint64_t *run)
{
	const struct page_table *pt = &tables_space(dev)->pt;
	const uint64_t *table;
	struct pt_step steps;
	uint64_t page, room;
	unsigned left;

	if (!pt_walk_from(0, pt->root_pa, pt->host.memory, va, out, &steps) ||
	    SIM_PA_NODE(out->pa) != dev)
		return false;
	page = UINT64_C(1) << out->page_lg2;
	*run = page - (out->pa & (page - 1));
	if (out->page_lg2 != PT_PAGE_LG2)
		return true;
	table = (const uint64_t *)(void *)sim_memory_at(pt->host.memory,
							steps.descriptor_pa[PT_LEVEL_LEAF], &room);
	left = PT_ENTRIES - pt_index_of(va, PT_LEVEL_LEAF);
	for (unsigned i = 1; i < left && *run < most && table[i] == table[0] + i * page; i++)
		*run += page;
	return true;
}

BSIM_QUESTION(npusimPhysical, (uint32_t, dev), (uint64_t, va), (uint64_t *, pa),
	      (uint64_t *, bytes))
{
	struct pt_leaf leaf, next;
	uint64_t run, more;
	drvError_t result = BSIM_GIVEN(call, pa) ?: BSIM_GIVEN(call, bytes);

	if (result != DRV_ERROR_NONE)
		return result;
	if (*bytes == 0)
		return bsim_invalid("%s: *bytes is 0; it must say how many are of interest", call);
	if (!bsim_require_device_locked(bs, call, dev))
		return DRV_ERROR_PARA_ERROR;
	if (!walk(dev, va, *bytes, &leaf, &run))
		return bsim_fail(DRV_ERROR_IOCRL_FAIL,
				 "%s: no memory of device %u is mapped at 0x%" PRIx64, call, dev,
				 va);
	while (run < *bytes && walk(dev, va + run, *bytes - run, &next, &more) &&
	       next.pa == leaf.pa + run)
		run += more;
	*pa = SIM_PA_OFFSET(leaf.pa);
	*bytes = run < *bytes ? run : *bytes;
	return DRV_ERROR_NONE;
}

/* ---- what layers watch ---- */

/* The block that an address lies in, where in it, and how many bytes from there on are one's. */
static const struct node_block *block_of(const struct bsim *bs, uint64_t va, uint64_t *offset,
					 uint64_t *bytes)
{
	const struct window *w = bs->window;
	const struct mapping *m = w != NULL ? window_mapping(w, va) : NULL;
	const struct allocation *a = w != NULL && m == NULL ? allocation_at(w, va) : NULL;

	if (m != NULL) {
		*offset = va - m->va;
		*bytes = mapping_bytes(m) - *offset;
		return m->handle->block;
	}
	if (a == NULL || (a->kind != NPU_PLACE_DEVICE && a->kind != NPU_PLACE_OPENED))
		return NULL;
	*offset = va - a->va;
	*bytes = a->bytes - *offset;
	if (a->block == NULL) {
		*offset = va % NODE_FRAME_BYTES;
		*bytes = MIN(*bytes, NODE_FRAME_BYTES - *offset);
	}
	return allocation_frame(a, va);
}

void place_written_locked(struct bsim *bs, uint64_t va)
{
	uint64_t offset, bytes = UINT64_MAX;
	const struct node_block *block = bs->writes ? NULL : block_of(bs, va, &offset, &bytes);

	if (block != NULL)
		node_block_touch(bs->node, block);
}

BSIM_QUESTION(npusimWritten, (uint64_t, va), (struct npu_written *, out))
{
	bool here = bs->node != NULL && !bsim_is_forked(bs);
	uint64_t offset, bytes = UINT64_MAX;
	const struct node_block *block = here ? block_of(bs, va, &offset, &bytes) : NULL;
	const struct node_extent *extent;

	if (block != NULL)
		node_block_touch(bs->node, block); /* with what is told of it */
	if (out == NULL && block != NULL)
		node_written_give_up(bs->node, block);
	if (out == NULL)
		return DRV_ERROR_NONE;
	*out = (struct npu_written){ .bits = here ? node_written(bs->node, block) : NULL,
				     .bytes = bytes };
	if (out->bits == NULL)
		return DRV_ERROR_NONE;
	for (extent = block->extents; offset >= extent->count << NODE_FRAME_LG2; extent++)
		offset -= extent->count << NODE_FRAME_LG2;
	out->at = (extent->frame << NODE_FRAME_LG2) + offset;
	out->bytes = MIN(bytes, (extent->count << NODE_FRAME_LG2) - offset);
	return DRV_ERROR_NONE;
}

BSIM_QUESTION(npusimWrites, (uint64_t, va), (uint64_t, bytes), (struct npu_write *, write))
{
	uint64_t offset, rest;
	const struct node_block *block;
	drvError_t result = BSIM_GIVEN(call, write) ?: bsim_require_open_locked(bs, call);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bytes == 0)
		return node_write_end(bs->node, write);
	*write = (struct npu_write){ 0 };
	block = block_of(bs, va, &offset, &rest);
	return block == NULL ? DRV_ERROR_NONE
			     : node_write_begin(bs->node, block, offset, offset + MIN(bytes, rest),
						write);
}

struct report {
	npu_line_fn line;
	void *arg;
	bool full;
	uint64_t now_ps;
};

/* A thing that is left, if each is wanted. */
static void say_each(const struct report *r, const struct bsim_made *made, const char *thing)
{
	if (r->full)
		r->line(r->arg, npu_text("  %s, by %s, %.3f ms of simulated time ago", thing,
					 bsim_made_text(made, false),
					 (double)(r->now_ps - made->ps) / (double)SIM_PS_PER_MS));
}

static void say_sum(const struct report *r, uint64_t count, const char *what, uint64_t bytes,
		    const char *rest)
{
	if (count > 0)
		r->line(r->arg, npu_text("%s: %s %s", npu_counted(count, what),
					 npu_size_text(bytes), rest));
}

static void say_mappings(const struct report *r, const struct bsim *bs)
{
	uint64_t count = 0, bytes = 0;
	const struct mapping *m;

	EACH_OF(LIST, m, bs->window->mappings)
	{
		count++;
		bytes += mapping_bytes(m);
		say_each(r, &m->made,
			 npu_text("mapping 0x%" PRIx64 ", %s, %s, of handle %p", m->va,
				  npu_size_text(mapping_bytes(m)),
				  bsim_memory_text(m->handle->space), (void *)m->handle));
	}
	say_sum(r, count, "mapping", bytes, "still mapped");
}

static void say_handles(const struct report *r, const struct bsim *bs)
{
	uint64_t bytes = 0, held = 0;
	const struct drv_mem_handle *h;

	EACH_OF(TAILQ, h, bs->handles->live)
	{
		bytes += h->bytes;
		held += h->ref > h->map_ref;
		say_each(r, &h->made,
			 npu_text("handle %p, %s, %s%s, %s of the program and %u of mappings",
				  (const void *)h, npu_size_text(h->bytes),
				  bsim_memory_text(h->space),
				  h->imported   ? ", imported"
				  : h->exported ? ", exported"
						: "",
				  npu_counted(h->ref - h->map_ref, "reference"), h->map_ref));
	}
	say_sum(r, bs->handles->live_count, "handle", bytes,
		npu_text("of physical memory still held, %" PRIu64
			 " of them not freed by the program",
			 held));
}

static void say_reservations(const struct report *r, const struct bsim *bs)
{
	const struct range *v;

	LIST_FOREACH(v, &bs->window->reservations, link)
	say_each(r, &v->made,
		 npu_text("reservation 0x%" PRIx64 ", %s, %s in it", v->va, npu_size_text(v->bytes),
			  npu_counted(v->own + v->imported, "mapping")));
	say_sum(r, bs->window->reservation_count, "reservation", bs->window->reserved_bytes,
		"of addresses still reserved");
}

enum { HELD_HANDLE = NPU_PLACE_KIND_COUNT, HELD_EXPORTED, HELD_IMPORTED, HELD_COUNT };

static const char *const names[HELD_COUNT] = {
	[HELD_HANDLE] = "handle",
	[HELD_EXPORTED] = "exported handle",
	[HELD_IMPORTED] = "imported handle",
	[NPU_PLACE_MAPPED] = "mapping",
	[NPU_PLACE_DEVICE] = "device allocation",
	[NPU_PLACE_PINNED] = "pinned host allocation",
	[NPU_PLACE_OPENED] = "range opened by its key",
	[NPU_PLACE_REGISTERED] = "registered host range",
};

static void say_allocations(const struct report *r, const struct bsim *bs)
{
	const struct allocation *a;

	EACH_OF(LIST, a, bs->allocs->live)
	say_each(r, &a->made,
		 npu_text("%s 0x%" PRIx64 ", %s, %s", names[a->kind], a->va,
			  npu_size_text(a->asked), bsim_memory_text(a->memory)));
	for (unsigned kind = NPU_PLACE_DEVICE; kind <= NPU_PLACE_REGISTERED; kind++)
		say_sum(r, bs->allocs->count[kind], names[kind], bs->allocs->bytes[kind],
			"not freed");
}

BSIM_QUESTION(npusimLeaks, (npu_line_fn, line), (void *, arg), (bool, full))
{
	struct report r = { line, arg, full, bsim_now_locked(bs) };

	if (bsim_is_forked(bs))
		return bsim_forked();
	if (line == NULL)
		return bsim_null(call, "line");
	if (bs->any_open) {
		say_mappings(&r, bs);
		say_handles(&r, bs);
		say_reservations(&r, bs);
		say_allocations(&r, bs);
	}
	return DRV_ERROR_NONE;
}

/* ---- who holds memory: a memory that is full, and for other processes that ask ---- */

#define HOLDERS_SAID   3
#define ANSWER_WAIT_MS 1000
#define ANSWER_STEP_MS 2

/* What this process has of a kind in a memory by one stack. */
struct holding {
	gint64 key; /* of all three */
	uint64_t bytes, count;
	unsigned kind, memory;
	npu_stack stack;
};

static gint more_first(gconstpointer a, gconstpointer b)
{
	const struct holding *left = a, *right = b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

static void add_holding(GHashTable *held, unsigned kind, unsigned memory, npu_stack stack,
			uint64_t bytes)
{
	gint64 key = (gint64)stack << 32 | memory << 8 | kind;
	struct holding *sum = g_hash_table_lookup(held, &key);

	if (stack == 0)
		return;
	if (sum == NULL) {
		sum = g_new(struct holding, 1);
		*sum = (struct holding){ key, 0, 0, kind, memory, stack };
		g_hash_table_add(held, sum);
	}
	sum->bytes += bytes;
	sum->count++;
}

/* It has frames of its memory; a device allocation without them is the one that is refused. */
static bool takes_memory(const struct allocation *a)
{
	return a->kind == NPU_PLACE_DEVICE && (a->block != NULL || a->page_lg2 == 12);
}

/* Of struct holding, those with most first; `all`: also what takes no memory itself. */
static GList *holdings_locked(const struct bsim *bs, bool all)
{
	g_autoptr(GHashTable) held = g_hash_table_new(g_int64_hash, g_int64_equal);
	const struct drv_mem_handle *h;
	const struct allocation *a;
	const struct mapping *m;

	EACH_OF(TAILQ, h, bs->handles->live)
	add_holding(held,
		    h->imported   ? HELD_IMPORTED
		    : h->exported ? HELD_EXPORTED
				  : HELD_HANDLE,
		    h->space, h->made.stack, h->bytes);
	EACH_OF(LIST, a, bs->allocs->live)
	if (takes_memory(a) || (all && a->kind != NPU_PLACE_DEVICE))
		add_holding(held, a->kind, a->memory, a->made.stack, a->bytes);
	EACH_OF(LIST, m, bs->window->mappings)
	if (all)
		add_holding(held, NPU_PLACE_MAPPED, m->handle->space, m->made.stack,
			    mapping_bytes(m));
	return g_list_sort(g_hash_table_get_keys(held), more_first);
}

/* What this process has of a memory, by the stacks that made it: behind the thread's message. */
static void say_who_holds(const struct bsim *bs, unsigned memory)
{
	GList *all = holdings_locked(bs, false);
	g_autoptr(GString) text = g_string_new(npu_message());
	unsigned said = 0;

	for (const GList *at = all; at != NULL && said < HOLDERS_SAID; at = at->next) {
		const struct holding *one = at->data;
		g_autofree char *by = NULL;

		if (one->memory != memory)
			continue;
		by = npu_stack_words(one->stack);
		g_string_append_printf(text, "%s%s by %s",
				       said++ > 0 ? "; " : "; of this process: ",
				       npu_size_words(one->bytes), by ?: "?");
	}
	g_list_free_full(all, g_free);
	npu_message_set("%s", text->str);
}

char *place_holdings(void *bsim)
{
	struct bsim *bs = bsim;
	GString *text;
	GList *all;

	/* Who leaves the node has the lock, and waits for this thread. */
	for (unsigned ms = 0; !clock_lock_ms(&bs->lock.mutex, ANSWER_STEP_MS); ms += ANSWER_STEP_MS)
		if (ms >= ANSWER_WAIT_MS || node_is_leaving(bs->node))
			return NULL;
	all = holdings_locked(bs, true);
	bsim_unlock(bs);
	text = g_string_new(NULL);
	for (const GList *at = all; at != NULL; at = at->next) { /* frames are named unlocked */
		const struct holding *one = at->data;
		g_autofree char *by = npu_stack_words(one->stack);

		for (char *c = by; c != NULL && *c != '\0'; c++)
			if (g_ascii_iscntrl(*c)) /* of a file's name; a tab separates words */
				*c = ' ';
		g_string_append_printf(text, "%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s\n",
				       names[one->kind], bsim_memory_text(one->memory), one->count,
				       one->bytes, by ?: "?");
	}
	g_list_free_full(all, g_free);
	return g_string_free(text, FALSE);
}

drvError_t memory_take(struct bsim *bs, unsigned memory, uint64_t frames, bool giant,
		       struct node_block **out)
{
	drvError_t result = node_block_create(bs->node, memory, frames, giant, out);

	if (result == DRV_ERROR_OUT_OF_MEMORY)
		say_who_holds(bs, memory);
	return result;
}
