/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages the addresses of the window: places it, hands out 1 GiB heaps, and keeps the slots that
 * say which mapping a page belongs to. Implements reservations, with the checks in their order:
 * halMemAddressReserve and halMemAddressFree.
 */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the window in 32nds of it, from the driver's layout of 8 TiB: 2 TiB of DVPP, 256 GiB
 * read-only, 512 GiB read-only to devices, the rest for everything else. */
#define LAYOUT_PARTS            32
#define LAYOUT_READ_ONLY        8
#define LAYOUT_DEVICE_READ_ONLY 9
#define LAYOUT_NORMAL           11

#define CALL           "halMemAddressReserve"
#define PAGE_TYPE_BITS UINT64_C(0xff)

/* ---- the window ---- */

/* All of it but the DVPP part, which nobody is given. */
static bool try_window(struct window *w, uint64_t base, uint64_t bytes)
{
	uint64_t part = bytes / LAYOUT_PARTS, read_only = base + LAYOUT_READ_ONLY * part;

	errno = EINVAL;
	if (base % WINDOW_GIB != 0 || base == 0 || bytes > WINDOW_HOST_END ||
	    base > WINDOW_HOST_END - bytes ||
	    !window_host_take(read_only, base + bytes - read_only))
		return false;
	w->base = base;
	w->bytes = bytes;
	w->end = base + bytes;
	w->read_only_base = read_only;
	w->device_read_only_base = base + LAYOUT_DEVICE_READ_ONLY * part;
	w->normal_base = w->lowest_free = base + LAYOUT_NORMAL * part;
	return true;
}

static bool try_sizes(struct window *w, uint64_t base, uint64_t most)
{
	/* sizes are powers of two */
	for (uint64_t bytes = UINT64_C(1) << (g_bit_storage(most) - 1); bytes >= WINDOW_SMALLEST;
	     bytes /= 2)
		if (try_window(w, base, bytes))
			return true;
	return false;
}

/* What the window of this process reserves, or the last one has left reserved. */
static struct {
	uint64_t base, bytes;
} kept;

bool window_traps(uint64_t va)
{
	return va - kept.base < kept.bytes;
}

/* The driver's place, whole, and others where that cannot be had, the best first. Below 512 GiB
 * lies what ThreadSanitizer leaves to programs. */
static const struct {
	uint64_t base, bytes;
} places[] = {
	{ WINDOW_DEFAULT_BASE, WINDOW_DEFAULT_BYTES },
	{ UINT64_C(96) << 40, WINDOW_DEFAULT_BYTES },
	{ UINT64_C(64) << 30, UINT64_C(256) << 30 },
	{ UINT64_C(0x560000000000), UINT64_C(512) << 30 },
};

static bool place_window(struct window *w, char **error)
{
	const char *text = npu_var_get(NPU_VAR_WINDOW, NULL);
	uint64_t base = WINDOW_DEFAULT_BASE, bytes = WINDOW_DEFAULT_BYTES;
	bool given = strcmp(text, "auto") != 0;

	if (kept.bytes != 0)
		window_host_give(kept.base, kept.bytes);
	kept.bytes = 0;
	if (given && npu_parse_window(text, &base, &bytes) && try_sizes(w, base, bytes))
		return true;
	for (size_t i = 0; !given && i < G_N_ELEMENTS(places); i++) {
		if (i == 0 ? !try_window(w, base, bytes)
			   : !try_sizes(w, places[i].base, places[i].bytes))
			continue;
		if (w->base != base || w->bytes != bytes)
			npu_log(NPU_LOG_INFO,
				"device addresses: the driver's 0x%" PRIx64
				" cannot be had; 0x%" PRIx64 ", %s instead",
				base, w->base, npu_size_text(w->bytes));
		return true;
	}
	npu_text_add(error,
		     "NPUSIM_WINDOW=%s: no room for device addresses at 0x%" PRIx64
		     " (%s): it must be a multiple of 1 GiB with 32 GiB "
		     "or more of free addresses behind it, below 0x%" PRIx64
		     "; a limit on address space (ulimit -v) must allow for it",
		     text, base, strerror(errno), WINDOW_HOST_END);
	return false;
}

bool window_open(struct bsim *bs, char **error)
{
	struct window *w = g_new0(struct window, 1);

	if (bs->cuda == NULL) {
		if (!place_window(w, error)) {
			g_free(w);
			return false;
		}
		kept.base = w->read_only_base;
		kept.bytes = w->end - w->read_only_base;
		for (w->leaves = 1; w->leaves < w->bytes / WINDOW_GIB;)
			w->leaves *= 2;
		w->room[0] = g_new0(uint16_t, 4 * w->leaves);
		w->room[1] = w->room[0] + 2 * w->leaves;
	}
	w->granules = g_new0(struct granule, WINDOW_GRANULES);
	bs->window = w;
	return true;
}

void window_close(struct bsim *bs)
{
	struct window *w = bs->window;
	struct range *r;
	struct mapping *m;

	if (w == NULL)
		return;
	__atomic_store_n(&bs->window, NULL, __ATOMIC_RELEASE); /* the fault handler reads it */
	for (uint64_t i = 0; i < WINDOW_GRANULES; i++) {
		g_free(w->granules[i].slots);
		if (w->granules[i].range != NULL && w->granules[i].range->kind == RANGE_SLAB)
			g_free(w->granules[i].range);
	}
	if (bs->cuda == NULL)
		window_close_to_cpu(kept.base, kept.bytes);
	while ((r = LIST_FIRST(&w->reservations)) != NULL) {
		if (r->kind == RANGE_NOUC)
			window_host_give(r->va, r->bytes);
		LIST_REMOVE(r, link);
		g_free(r);
	}
	for (unsigned i = 0; i < SIM_NODE_MAX; i++)
		while ((m = LIST_FIRST(&w->mappings[i])) != NULL) {
			LIST_REMOVE(m, link);
			g_free(m);
		}
	while ((m = w->unused) != NULL) {
		w->unused = LIST_NEXT(m, link);
		g_free(m);
	}
	g_free(w->granules);
	g_free(w->room[0]);
	g_free(w);
}

/* ---- slots ---- */

void window_set_mapping(struct window *w, uint64_t va, uint64_t bytes, struct mapping *m)
{
	for (uint64_t slot = va >> 21; slot < (va + bytes) >> 21; slot++) {
		struct granule *g = &w->granules[slot >> 9];

		if (g->slots == NULL)
			g->slots = g_new0(struct mapping *, WINDOW_SLOTS);
		g->slots[slot & (WINDOW_SLOTS - 1)] = m;
	}
}

struct mapping *window_first_mapping(const struct window *w, uint64_t va, uint64_t bytes,
				     bool leaving)
{
	uint64_t slot = va >> 21, end = (va + bytes) >> 21;
	struct mapping *m;

	for (; slot < end; slot++) {
		struct mapping **slots = w->granules[slot >> 9].slots;

		if (slots == NULL) /* nothing was ever mapped in this GiB */
			slot |= WINDOW_SLOTS - 1;
		else if ((m = slots[slot & (WINDOW_SLOTS - 1)]) != NULL && (leaving || !m->leaving))
			return m;
	}
	return NULL;
}

/* ---- heaps ---- */

void window_set_granules(struct window *w, uint64_t va, uint64_t bytes, struct range *r)
{
	for (uint64_t g = va >> 30; g < (va + bytes) >> 30; g++) {
		if (r == NULL) {
			g_free(w->granules[g].slots);
			w->granules[g].slots = NULL;
		}
		w->granules[g].range = r;
	}
}

static bool granules_free(const struct window *w, uint64_t va, uint64_t bytes, uint64_t *out_taken)
{
	for (uint64_t g = va >> 30; g < (va + bytes) >> 30; g++) {
		if (w->granules[g].range != NULL) {
			*out_taken = g << 30;
			return false;
		}
	}
	return true;
}

/* First fit of `count` heaps in [from, end); 0 for none. *lowest is moved past heaps that are
 * taken. */
static uint64_t find_granules(struct window *w, uint64_t *lowest, uint64_t end, uint64_t count)
{
	uint64_t run = 0;
	bool seen_free = false;

	for (uint64_t va = *lowest; va < end; va += WINDOW_GIB) {
		if (w->granules[va >> 30].range != NULL) {
			run = 0;
			continue;
		}
		if (!seen_free) {
			seen_free = true;
			*lowest = va;
		}
		if (++run == count)
			return va - (count - 1) * WINDOW_GIB;
	}
	if (!seen_free)
		*lowest = end;
	return 0;
}

static uint64_t find_heaps(struct window *w, enum window_area area, uint64_t count)
{
	uint64_t from = area == WINDOW_READ_ONLY ? w->read_only_base : w->device_read_only_base;

	if (area == WINDOW_NORMAL)
		return find_granules(w, &w->lowest_free, w->end, count);
	return find_granules(w, &from,
			     area == WINDOW_READ_ONLY ? w->device_read_only_base : w->normal_base,
			     count);
}

struct range *range_new(enum range_kind kind, uint64_t va, uint64_t bytes)
{
	size_t slots = kind == RANGE_SLAB ? WINDOW_SLOTS : 0;
	struct range *r = g_malloc0(sizeof(*r) + slots * sizeof(r->cut[0]));

	r->kind = kind;
	r->va = va;
	r->bytes = r->asked = bytes;
	r->bound = -1;
	r->page_lg2 = 21;
	return r;
}

struct range *window_add(struct bsim *bs, enum range_kind kind, uint64_t va, uint64_t bytes)
{
	struct window *w = bs->window;
	struct range *r = range_new(kind, va, bytes);

	r->made = bsim_made_locked(bs);
	if (range_is_reservation(r))
		LIST_INSERT_HEAD(&w->reservations, r, link);
	if (bytes >= WINDOW_GIB)
		window_set_granules(w, va, bytes, r);
	return r;
}

static drvError_t no_room(const struct window *w, const char *call, uint64_t bytes)
{
	return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
			 "%s: no %s of device addresses in a row are free; %s of %s in all are in "
			 "the window's %s",
			 call, npu_size_text(bytes),
			 npu_counted(w->reservation_count, "reservation"),
			 npu_size_text(w->reserved_bytes), npu_size_text(w->bytes));
}

struct range *window_take(struct bsim *bs, const char *call, enum window_area area,
			  enum range_kind kind, uint64_t count)
{
	uint64_t va = bs->cuda != NULL ? window_host_find(count * WINDOW_GIB, WINDOW_GIB)
				       : find_heaps(bs->window, area, count);

	if (va != 0)
		return window_add(bs, kind, va, count * WINDOW_GIB);
	no_room(bs->window, call, count * WINDOW_GIB);
	return NULL;
}

/* ---- slabs: heaps that smaller reservations are cut from ---- */

/* Notes the longest free run of a slab, for reservations that may lie anywhere. */
static void note_room(struct window *w, const struct range *slab)
{
	uint16_t *room = w->room[slab->page_lg2 == 21];
	uint64_t at = w->leaves + ((slab->va - w->base) >> 30);
	unsigned longest = 0;

	if (!slab->hinted && slab->used_slots > 0)
		bits_run(slab->used, 0, WINDOW_SLOTS, UINT_MAX, &longest);
	for (room[at] = (uint16_t)longest; at > 1;) {
		at /= 2;
		room[at] = room[2 * at] > room[2 * at + 1] ? room[2 * at] : room[2 * at + 1];
	}
}

/* The lowest slab that has a run of as many free slots; NULL: none. */
static struct range *find_slab(const struct window *w, bool huge, unsigned count)
{
	const uint16_t *room = w->room[huge];
	uint64_t at = 1;

	if (room[at] < count)
		return NULL;
	while (at < w->leaves)
		at = 2 * at + (room[2 * at] < count);
	return w->granules[(w->base >> 30) + at - w->leaves].range;
}

static void mark_slots(struct window *w, struct range *slab, const struct range *part,
		       struct range *r)
{
	for (unsigned s = part->va >> 21 & (WINDOW_SLOTS - 1), n = part->bytes >> 21; n > 0;
	     s++, n--) {
		slab->cut[s] = r;
		slab->used[s / 64] ^= UINT64_C(1) << (s % 64);
		slab->used_slots += r != NULL ? 1 : -1u;
	}
	note_room(w, slab);
}

static struct range *add_slab(struct bsim *bs, uint64_t va, bool huge, bool hinted)
{
	struct range *slab = window_add(bs, RANGE_SLAB, va, WINDOW_GIB);

	slab->page_lg2 = huge ? 21 : 12;
	slab->hinted = hinted;
	return slab;
}

static struct range *cut(struct bsim *bs, struct range *slab, unsigned first, uint64_t bytes)
{
	struct range *r = window_add(bs, RANGE_RESERVATION, slab->va + first * WINDOW_SLOT, bytes);

	r->page_lg2 = slab->page_lg2;
	mark_slots(bs->window, slab, r, r);
	return r;
}

static struct range *cut_anywhere(struct bsim *bs, uint64_t bytes, bool huge)
{
	unsigned count = (unsigned)(bytes >> 21), longest;
	struct range *slab = find_slab(bs->window, huge, count);
	uint64_t va;

	if (slab != NULL)
		return cut(bs, slab, bits_run(slab->used, 0, WINDOW_SLOTS, count, &longest), bytes);
	va = find_heaps(bs->window, WINDOW_NORMAL, 1);
	return va == 0 ? NULL : cut(bs, add_slab(bs, va, huge, false), 0, bytes);
}

static struct range *cut_at(struct bsim *bs, uint64_t va, uint64_t bytes, bool huge)
{
	struct range *slab = bs->window->granules[va >> 30].range;
	unsigned first = va >> 21 & (WINDOW_SLOTS - 1), end = first + (unsigned)(bytes >> 21);

	if (end > WINDOW_SLOTS ||
	    (slab != NULL && (slab->kind != RANGE_SLAB || (slab->page_lg2 == 21) != huge ||
			      bits_next(slab->used, first, end, 0) != end)))
		return NULL;
	return cut(bs, slab ?: add_slab(bs, va & ~(WINDOW_GIB - 1), huge, true), first, bytes);
}

static void give_back_heaps(struct window *w, const struct range *r)
{
	window_set_granules(w, r->va, r->bytes, NULL);
	if (r->va >= w->normal_base && r->va < w->lowest_free)
		w->lowest_free = r->va;
}

void window_drop(struct bsim *bs, struct range *range)
{
	struct window *w = bs->window;
	struct range *heap = w->granules[range->va >> 30].range;

	if (range_is_reservation(range))
		LIST_REMOVE(range, link);
	if (bs->cuda != NULL && range_is_reservation(range)) {
		bs->cuda->drop(w, range);
	} else if (heap != range) {
		mark_slots(w, heap, range, NULL);
		if (heap->used_slots == 0) {
			give_back_heaps(w, heap);
			g_free(heap);
		}
	} else {
		give_back_heaps(w, range);
		if (bs->cuda != NULL || range->kind == RANGE_NOUC)
			window_host_give(range->va, range->bytes);
	}
	g_free(range);
}

static const char *occupant(const struct window *w, uint64_t va)
{
	const struct range *r = window_peek(w, va);

	if (r != NULL && range_is_reservation(r))
		return npu_text("the reservation at 0x%" PRIx64 ", %s, by %s", r->va,
				npu_size_text(r->bytes), bsim_made_text(&r->made, true));
	if (r != NULL)
		return npu_text("a heap of classic allocations at 0x%" PRIx64, r->va);
	if (w->granules[va >> 30].range != NULL)
		return npu_text("the heap at 0x%" PRIx64 ", which smaller reservations share",
				va & ~(WINDOW_GIB - 1));
	if (va < w->normal_base)
		return npu_text("the driver's own part of the window, [0x%" PRIx64 ", 0x%" PRIx64
				")",
				w->base, w->normal_base);
	return "nothing";
}

/* ---- reservations ---- */

static drvError_t check_arguments(void **ptr, size_t size, size_t alignment, uint64_t flag)
{
	if (ptr == NULL || size == 0)
		return bsim_invalid(CALL
				    ": %s; a place for the address and a size above 0 are needed",
				    ptr == NULL ? "ptr is NULL" : "size is 0");
	if (alignment != 0)
		return bsim_invalid(CALL ": alignment is %zu; it is reserved and must be 0",
				    alignment);
	if ((flag & PAGE_TYPE_BITS) >= MEM_MAX_PAGE_TYPE)
		return bsim_invalid(CALL ": flag 0x%" PRIx64 " asks for page type %" PRIu64
					 "; known are 0 (normal), 1 (huge) and 2 (giant)",
				    flag, flag & PAGE_TYPE_BITS);
	return DRV_ERROR_NONE;
}

/* The alignment of an address that the caller chose. */
static drvError_t check_hint(struct bsim *bs, uint64_t hint, uint64_t size)
{
	uint64_t need = size > WINDOW_LARGE  ? WINDOW_GIB
			: size > WINDOW_SLOT ? UINT64_C(1) << g_bit_storage(size - 1)
					     : WINDOW_SLOT;

	if (hint % need != 0)
		return bsim_invalid(CALL
				    ": addr 0x%" PRIx64
				    " is not a multiple of %s, which %s need; documented is 1 GiB",
				    hint, npu_size_text(need), npu_size_text(size));
	if (hint % WINDOW_GIB != 0 && contract_docs_apply(bs, CONTRACT_HINT_NOT_1G_ALIGNED, CALL))
		return bsim_fail(contract_code(bs, CONTRACT_HINT_NOT_1G_ALIGNED, CALL),
				 CALL ": addr 0x%" PRIx64 " is not a multiple of 1 GiB", hint);
	return DRV_ERROR_NONE;
}

static drvError_t reserve_at(struct bsim *bs, uint64_t hint, uint64_t bytes, bool huge,
			     struct range **out)
{
	struct window *w = bs->window;
	uint64_t taken = hint;

	if (hint < w->base || hint >= w->end || bytes > w->end - hint)
		return bsim_fail(contract_code(bs, CONTRACT_HINT_OUT_OF_WINDOW, CALL),
				 CALL ": %s is not inside the device addresses [0x%" PRIx64
				      ", 0x%" PRIx64 "); pass NULL to get an address that is",
				 range_text(hint, bytes), w->normal_base, w->end);
	if (hint < w->normal_base)
		*out = NULL;
	else if (bytes <= WINDOW_LARGE)
		*out = cut_at(bs, hint, bytes, huge);
	else if (granules_free(w, hint, bytes, &taken))
		*out = window_add(bs, RANGE_RESERVATION, hint, bytes);
	if (*out != NULL)
		return DRV_ERROR_NONE;
	return bsim_fail(contract_code(bs, CONTRACT_HINT_TAKEN, CALL),
			 CALL ": %s is not free: at 0x%" PRIx64 " lies %s", range_text(hint, bytes),
			 taken, occupant(w, taken));
}

static drvError_t reserve_in_window(struct bsim *bs, uint64_t size, uint64_t hint,
				    struct range **out)
{
	bool huge = size >= WINDOW_SLOT;
	uint64_t bytes = bsim_round_up(size, size > WINDOW_LARGE ? WINDOW_GIB : WINDOW_SLOT);
	drvError_t result = hint == 0 ? DRV_ERROR_NONE : check_hint(bs, hint, size);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bytes > WINDOW_RESERVE_MAX || bytes < size)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 CALL ": size is %s; one reservation can have %s at most",
				 npu_size_text(size), npu_size_text(WINDOW_RESERVE_MAX));
	if (hint != 0)
		return reserve_at(bs, hint, bytes, huge, out);
	if (bytes <= WINDOW_LARGE) {
		*out = cut_anywhere(bs, bytes, huge);
	} else {
		uint64_t va = find_heaps(bs->window, WINDOW_NORMAL, bytes / WINDOW_GIB);

		*out = va == 0 ? NULL : window_add(bs, RANGE_RESERVATION, va, bytes);
	}
	return *out != NULL ? DRV_ERROR_NONE : no_room(bs->window, CALL, bytes);
}

static drvError_t reserve_nouc(struct bsim *bs, uint64_t size, uint64_t va, struct range **out)
{
	if (!bs->profile.is_910c && contract_docs_apply(bs, CONTRACT_NOUC_NEEDS_910C, CALL))
		return bsim_fail(
			contract_code(bs, CONTRACT_NOUC_NEEDS_910C, CALL),
			CALL ": ranges outside the window (NoUC) are for the 910C; this is a %s",
			bs->profile.soc_name);
	if (va == 0)
		return bsim_unsupported(CALL ": a range outside the window (NoUC) needs an "
					     "address; documented are 40 TiB to 224 TiB");
	if (size % WINDOW_GIB != 0 || va % WINDOW_GIB != 0)
		return bsim_invalid(CALL ": a range outside the window (NoUC) must be of whole "
					 "GiB: %s is 0x%" PRIx64,
				    size % WINDOW_GIB != 0 ? "size" : "addr",
				    size % WINDOW_GIB != 0 ? size : va);
	if (va < WINDOW_NOUC_BASE || va >= WINDOW_HOST_END || size > WINDOW_HOST_END - va)
		return bsim_fail(
			DRV_ERROR_OUT_OF_MEMORY,
			CALL ": %s is not inside [0x%" PRIx64 ", 0x%" PRIx64
			     "): below lies the window, above ends the address space of this host",
			range_text(va, size), WINDOW_NOUC_BASE, WINDOW_HOST_END);
	if (!window_host_take(va, size))
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 CALL ": %s cannot be had in this process's address space (%s): %s",
				 range_text(va, size), host_map_problem(errno),
				 window_host_occupant(va, size));
	*out = window_add(bs, RANGE_NOUC, va, size);
	return DRV_ERROR_NONE;
}

static drvError_t reserve_locked(struct bsim *bs, void **ptr, uint64_t size, uint64_t hint,
				 uint64_t flag)
{
	struct range *r = NULL;
	drvError_t result;

	if (flag & MEM_RSV_TYPE_REMOTE_MAP) {
		result = reserve_nouc(bs, size, hint, &r);
	} else if (flag & MEM_RSV_TYPE_DEVICE_SHARE && hint == 0) {
		result = bsim_unsupported(CALL
					  ": flag 0x%" PRIx64
					  " (the same address on every device) needs an address",
					  flag);
	} else {
		result = reserve_in_window(bs, size, hint, &r);
	}
	if (result != DRV_ERROR_NONE)
		return result;
	r->asked = size;
	bs->window->reserved_bytes += r->bytes;
	bs->window->reservation_count++;
	*ptr = (void *)(uintptr_t)r->va;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemAddressReserve, SIM_CALL_RESERVE, (void **, ptr), (size_t, size),
	  (size_t, alignment), (void *, addr), (uint64_t, flag))
{
	const struct dialect *cuda = c->bs->cuda;
	uint64_t hint = (uintptr_t)addr;
	drvError_t result =
		cuda == NULL ? check_arguments(ptr, size, alignment, flag) : DRV_ERROR_NONE;

	c->pages = (size + WINDOW_SLOT - 1) / WINDOW_SLOT;
	result = result ?: bsim_require_open_locked(c->bs, CALL);
	if (result != DRV_ERROR_NONE)
		return result;
	return cuda != NULL ? cuda->reserve(c->bs, ptr, size, alignment, hint)
			    : reserve_locked(c->bs, ptr, size, hint, flag);
}

BSIM_CALL(halMemAddressFree, SIM_CALL_ADDRESS_FREE, (void *, ptr))
{
	struct bsim *bs = c->bs;
	uint64_t va = (uintptr_t)ptr;
	const struct mapping *below;
	struct range *r;
	drvError_t result = BSIM_GIVEN(c->name, ptr) ?: bsim_require_open_locked(bs, c->name);

	if (result != DRV_ERROR_NONE)
		return result;
	r = window_reservation(bs->window, va);
	if (r == NULL)
		return bsim_invalid("%s: ptr 0x%" PRIx64 " is not the start of a reservation: %s",
				    c->name, va, place_text_locked(bs, va));
	if (r->va != va)
		return bsim_invalid("%s: ptr 0x%" PRIx64
				    " lies %s into the reservation at 0x%" PRIx64 ", %s; free that",
				    c->name, va, npu_size_text(va - r->va), r->va,
				    npu_size_text(r->bytes));
	if (r->own + r->imported > 0)
		return bsim_fail(DRV_ERROR_BUSY,
				 "%s: the reservation at 0x%" PRIx64
				 ", %s, still has mappings (%u); unmap them first. It stays",
				 c->name, va, npu_size_text(r->bytes), r->own + r->imported);
	below = window_first_mapping(bs->window, va, /* leaving; CUDA's may span two */
				     bs->leaving == NULL ? WINDOW_SLOT : r->bytes, true);
	if (below != NULL && below->leaving)
		return DRV_ERROR_TRY_AGAIN;
	if (below != NULL)
		return bsim_fail(DRV_ERROR_BUSY,
				 "%s: into the reservation at 0x%" PRIx64
				 " reaches the mapping at 0x%" PRIx64 ", %s; unmap it first",
				 c->name, va, below->va, npu_size_text(mapping_bytes(below)));
	c->pages = r->bytes / WINDOW_SLOT;
	bs->window->reserved_bytes -= r->bytes;
	bs->window->reservation_count--;
	gone_note_locked(bs, false, va, r->bytes,
			 bs->cuda ? "cuMemAddressFree" : "aclrtReleaseMemAddress");
	window_drop(bs, r);
	return DRV_ERROR_NONE;
}
