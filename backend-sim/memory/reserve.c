/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements reservations: halMemAddressReserve and halMemAddressFree. Owns the checks and their
 * order; window.c chooses the addresses.
 */
#include "memory/dialect.h"
#include "memory/place.h"
#include "memory/memory.h"
#include "process/ops.h"
#include "process/contract.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define CALL "halMemAddressReserve"

#define PAGE_TYPE_BITS UINT64_C(0xff)

static uint64_t next_power_of_two(uint64_t value)
{
	return value <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(value - 1));
}

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
			: size > WINDOW_SLOT ? next_power_of_two(size)
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

	if (!window_has(w, hint) || bytes > w->end - hint)
		return bsim_fail(contract_code(bs, CONTRACT_HINT_OUT_OF_WINDOW, CALL),
				 CALL ": %s is not inside the device addresses [0x%" PRIx64
				      ", 0x%" PRIx64 "); pass NULL to get an address that is",
				 range_text(hint, bytes), w->normal_base, w->end);
	if (hint < w->normal_base)
		*out = NULL;
	else if (bytes <= WINDOW_LARGE)
		*out = window_cut_at(bs, hint, bytes, huge);
	else if (window_granules_free(w, hint, bytes, &taken))
		*out = window_add(bs, RANGE_RESERVATION, hint, bytes);
	if (*out != NULL)
		return DRV_ERROR_NONE;
	return bsim_fail(contract_code(bs, CONTRACT_HINT_TAKEN, CALL),
			 CALL ": %s is not free: at 0x%" PRIx64 " lies %s", range_text(hint, bytes),
			 taken, window_occupant(w, taken));
}

static drvError_t reserve_in_window(struct bsim *bs, uint64_t size, uint64_t hint,
				    struct range **out)
{
	bool huge = size >= WINDOW_SLOT;
	uint64_t bytes = bsim_round_up(size, size > WINDOW_LARGE ? WINDOW_GIB : WINDOW_SLOT);
	drvError_t result;

	*out = NULL;
	result = hint == 0 ? DRV_ERROR_NONE : check_hint(bs, hint, size);
	if (result != DRV_ERROR_NONE)
		return result;
	if (bytes > WINDOW_RESERVE_MAX || bytes < size)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 CALL ": size is %s; one reservation can have %s at most",
				 npu_size_text(size), npu_size_text(WINDOW_RESERVE_MAX));
	if (hint != 0)
		return reserve_at(bs, hint, bytes, huge, out);
	if (bytes <= WINDOW_LARGE) {
		*out = window_cut(bs, bytes, huge);
	} else {
		uint64_t va = window_find_heaps(bs->window, WINDOW_NORMAL, bytes / WINDOW_GIB);

		*out = va == 0 ? NULL : window_add(bs, RANGE_RESERVATION, va, bytes);
	}
	if (*out != NULL)
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
			 CALL ": no %s of device addresses in a row are free; %" PRIu64
			      " reservations have %s of the window's %s",
			 npu_size_text(bytes), bs->window->reservation_count,
			 npu_size_text(bs->window->reserved_bytes),
			 npu_size_text(bs->window->bytes));
}

static drvError_t check_nouc(struct bsim *bs, uint64_t size, uint64_t va)
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
	if (size > WINDOW_NOUC_MAX)
		return bsim_fail(
			DRV_ERROR_OUT_OF_MEMORY,
			CALL ": size is %s; a range outside the window (NoUC) can have %s at most",
			npu_size_text(size), npu_size_text(WINDOW_NOUC_MAX));
	return DRV_ERROR_NONE;
}

static drvError_t reserve_nouc(struct bsim *bs, uint64_t size, uint64_t va, struct range **out)
{
	drvError_t result = check_nouc(bs, size, va);

	if (result != DRV_ERROR_NONE)
		return result;
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
	drvError_t result;

	if (va == 0)
		return bsim_null(c->name, "ptr");
	result = bsim_require_open_locked(bs, c->name);
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
				 ", %s, still has %u mappings; unmap them first. It stays as it is",
				 c->name, va, npu_size_text(r->bytes), r->own + r->imported);
	below = window_first_mapping(bs->window, va, WINDOW_SLOT); /* CUDA's may span two */
	if (below != NULL)
		return bsim_fail(DRV_ERROR_BUSY,
				 "%s: into the reservation at 0x%" PRIx64
				 " reaches the mapping at 0x%" PRIx64 ", %s; unmap it first",
				 c->name, va, below->va, npu_size_text(mapping_bytes(below)));
	c->pages = r->bytes / WINDOW_SLOT;
	bs->window->reserved_bytes -= r->bytes;
	bs->window->reservation_count--;
	window_drop(bs, r);
	return DRV_ERROR_NONE;
}
