/* SPDX-License-Identifier: Apache-2.0
 *
 * halMemMap, halMemUnmap, and who may reach a mapping. What is checked, and in which order, is the
 * driver's.
 */
#include "cuda/dialect.h"
#include "memory/mapping.h"
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP              "halMemMap"
#define MAPPINGS_AT_ONCE 256u /* records taken from the C library at a time */

/* ---- records ---- */

/* Blocks of records are never given back one by one: their first record only links them. */
static bool more_records(struct bsim *bs)
{
	struct mapping *block = calloc(MAPPINGS_AT_ONCE, sizeof(*block));

	if (block == NULL)
		return false;
	block->next = bs->mapping_blocks;
	bs->mapping_blocks = block;
	for (unsigned i = 1; i < MAPPINGS_AT_ONCE; i++) {
		block[i].next = bs->unused_mappings;
		bs->unused_mappings = &block[i];
	}
	return true;
}

static struct mapping *new_mapping(struct bsim *bs)
{
	struct mapping *m;

	if (bs->unused_mappings == NULL && !more_records(bs))
		return NULL;
	m = bs->unused_mappings;
	bs->unused_mappings = m->next;
	return m;
}

static void retire_mapping(struct bsim *bs, struct mapping *m)
{
	m->next = bs->unused_mappings;
	bs->unused_mappings = m;
}

void mapping_close(struct bsim *bs)
{
	while (bs->mapping_blocks != NULL) {
		struct mapping *block = bs->mapping_blocks;

		bs->mapping_blocks = block->next;
		free(block);
	}
	bs->mappings = bs->unused_mappings = NULL;
}

/* ---- map: the checks ---- */

static drvError_t check_address(struct bsim *bs, uint64_t va, uint64_t size, struct range **out)
{
	struct range *r = window_reservation(bs->window, va);

	if (r == NULL) {
		npu_message_set(MAP ": ptr 0x%" PRIx64 " is not reserved: %s", va,
				bsim_place_text_locked(bs, va));
		return DRV_ERROR_PARA_ERROR;
	}
	if (va % WINDOW_SLOT != 0) {
		npu_message_set(MAP ": ptr 0x%" PRIx64 " is not a multiple of 2 MiB", va);
		return DRV_ERROR_PARA_ERROR;
	}
	if (size % WINDOW_SLOT != 0) {
		npu_message_set(MAP ": size %s is not a multiple of 2 MiB, the granularity",
				npu_size_text(size));
		return contract_code(bs, CONTRACT_MAP_UNALIGNED_SIZE, MAP);
	}
	if (size > r->va + r->bytes - va) {
		npu_message_set(MAP ": [0x%" PRIx64
				    ", +%s) ends %s behind the reservation at 0x%" PRIx64 ", %s",
				va, npu_size_text(size),
				npu_size_text(size - (r->va + r->bytes - va)), r->va,
				npu_size_text(r->bytes));
		return DRV_ERROR_PARA_ERROR;
	}
	*out = r;
	return DRV_ERROR_NONE;
}

static const char *side_text(unsigned space)
{
	static __thread char text[2][24];
	static __thread unsigned turn;
	char *out = text[turn++ % 2];

	if (space == SIM_NODE_HOST)
		return "the host";
	snprintf(out, sizeof(text[0]), "device %u", space);
	return out;
}

static drvError_t check_free(struct bsim *bs, uint64_t va, uint64_t size, const struct range *r,
			     const struct drv_mem_handle *h)
{
	struct mapping *in_the_way;

	if (r->kind == RANGE_RESERVATION && r->bound >= 0 && (unsigned)r->bound != h->space) {
		npu_message_set(MAP ": handle %p is of %s, but the reservation at 0x%" PRIx64
				    " was bound to %s by its first mapping, "
				    "until it is freed; reserve another range for %s",
				(const void *)h, side_text(h->space), r->va,
				side_text((unsigned)r->bound), side_text(h->space));
		return DRV_ERROR_PARA_ERROR;
	}
	if (window_slots_clear(bs->window, va, size, &in_the_way))
		return DRV_ERROR_NONE;
	npu_message_set(MAP ": [0x%" PRIx64 ", +%s) is mapped already: at 0x%" PRIx64
			    " lie %s, mapped by driver call %" PRIu64 "; unmap that first",
			va, npu_size_text(size), in_the_way->va,
			npu_size_text(mapping_bytes(in_the_way)), in_the_way->made.number);
	return DRV_ERROR_IOCRL_FAIL;
}

static drvError_t check_size(struct bsim *bs, uint64_t size, const struct drv_mem_handle *h)
{
	if (size > h->bytes) {
		npu_message_set(MAP ": size %s is more than handle %p has, %s", npu_size_text(size),
				(const void *)h, npu_size_text(h->bytes));
		return contract_code(bs, CONTRACT_MAP_LARGER, MAP);
	}
	if (size < h->bytes && contract_docs_apply(bs, CONTRACT_MAP_SMALLER, MAP)) {
		npu_message_set(
			MAP ": size %s is less than handle %p has, %s; a handle is mapped whole",
			npu_size_text(size), (const void *)h, npu_size_text(h->bytes));
		return contract_code(bs, CONTRACT_MAP_SMALLER, MAP);
	}
	return DRV_ERROR_NONE;
}

static drvError_t check_pages(struct bsim *bs, uint64_t va, uint64_t size, const struct range *r,
			      const struct drv_mem_handle *h)
{
	if (r->page_lg2 != 21) {
		npu_message_set(
			MAP ": the reservation at 0x%" PRIx64
			    " was made for %s: below 2 MiB its pages are of 4 KiB, and handle %p's "
			    "are of 2 MiB; reserve 2 MiB or more",
			r->va, npu_size_text(r->asked), (const void *)h);
		return DRV_ERROR_PARA_ERROR;
	}
	if (handle_is_giant(h) && (va % WINDOW_GIB != 0 || size % WINDOW_GIB != 0)) {
		npu_message_set(MAP ": handle %p has 1 GiB pages: ptr and size must be multiples "
				    "of 1 GiB, %s is 0x%" PRIx64,
				(const void *)h, va % WINDOW_GIB != 0 ? "ptr" : "size",
				va % WINDOW_GIB != 0 ? va : size);
		return DRV_ERROR_PARA_ERROR;
	}
	if (r->kind == RANGE_RESERVATION && (h->imported ? r->own : r->imported) > 0 &&
	    contract_docs_apply(bs, CONTRACT_MAP_MIXED_IMPORT, MAP)) {
		npu_message_set(MAP ": handle %p %s, and the reservation at 0x%" PRIx64
				    " has mappings of handles that %s; reserve another range",
				(const void *)h, h->imported ? "was imported" : "was made here",
				r->va, h->imported ? "were made here" : "were imported");
		return contract_code(bs, CONTRACT_MAP_MIXED_IMPORT, MAP);
	}
	return DRV_ERROR_NONE;
}

/* ---- map: the deed ---- */

static bool reach(struct bsim *bs, const struct mapping *m)
{
	struct drv_mem_handle *h = m->handle;

	if (m->home && !tables_map(bs, h->space, m->va, mapping_bytes(m), h->block)) {
		npu_message_set(MAP ": no memory for page tables on %s", side_text(h->space));
		return false;
	}
	if (m->cpu && !tables_open_to_cpu(bs, m->va, mapping_bytes(m), h->block)) {
		npu_message_set(MAP ": this process cannot map %s of the host's memory: %s",
				npu_size_text(mapping_bytes(m)), strerror(errno));
		if (m->home)
			tables_unmap(bs, h->space, m->va, mapping_bytes(m), handle_is_giant(h));
		return false;
	}
	return true;
}

static drvError_t map_new(struct bsim *bs, uint64_t va, uint64_t size, struct range *r,
			  struct drv_mem_handle *h, bool access)
{
	struct mapping *m = new_mapping(bs);

	if (m == NULL) {
		npu_message_set(MAP ": no memory for one more mapping");
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	*m = (struct mapping){ .va = va,
			       .slots = (uint32_t)(size >> 21),
			       .handle = h,
			       .home = access,
			       .cpu = access && h->space == SIM_NODE_HOST };
	m->made.number = bs->call_number;
	m->made.ps = bsim_now_locked(bs);
	if (!window_set_mapping(bs->window, va, size, m) || !reach(bs, m)) {
		if (bs->window->granules[(va + size - 1) >> 30].slots != NULL)
			window_set_mapping(bs->window, va, size, NULL);
		retire_mapping(bs, m);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	m->next = bs->mappings;
	m->link = &bs->mappings;
	if (m->next != NULL)
		m->next->link = &m->next;
	bs->mappings = m;
	if (r->bound < 0)
		r->bound = (int)h->space;
	if (h->imported)
		r->imported++;
	else
		r->own++;
	h->ref++;
	h->map_ref++;
	bsim_space(bs, h->space)->mapped_bytes += size;
	node_block_touch(bs->node, h->block);
	return DRV_ERROR_NONE;
}

/* Documented (rule R7): the flags of a reservation agree with the page type of what is mapped
 * there. The driver does not look, and programs in the field do not care: told once, never refused.
 */
static void note_page_type(const struct range *r, const struct drv_mem_handle *h)
{
	static bool told;
	unsigned fits =
		h->pg_type == MEM_NORMAL_PAGE_TYPE ? MEM_NORMAL_PAGE_TYPE : MEM_HUGE_PAGE_TYPE;

	if (told || r->asked_page == fits || !npu_log_enabled(NPU_LOG_INFO))
		return;
	told = true;
	npu_log(NPU_LOG_INFO,
		MAP ": the reservation at 0x%" PRIx64
		    " was made with flags %u, and handle %p has page type %u: "
		    "documented is that they agree (rule R7); no driver looks",
		r->va, r->asked_page, (const void *)h, h->pg_type);
}

static drvError_t map_locked(struct bsim *bs, uint64_t va, uint64_t size, drv_mem_handle_t *handle,
			     bool access)
{
	struct range *r = NULL;
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, MAP, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bsim_anywhere(bs) && size != h->bytes) {
		npu_message_set(MAP ": size is %s and handle %p has %s; a handle is mapped whole",
				npu_size_text(size), (const void *)h, npu_size_text(h->bytes));
		return DRV_ERROR_NOT_SUPPORT;
	}
	result = check_address(bs, va, size, &r);
	if (result == DRV_ERROR_NONE)
		result = check_free(bs, va, size, r, h);
	if (result == DRV_ERROR_NONE)
		result = check_size(bs, size, h);
	if (result == DRV_ERROR_NONE)
		result = check_pages(bs, va, size, r, h);
	if (result != DRV_ERROR_NONE)
		return result;
	note_page_type(r, h);
	return map_new(bs, va, size, r, h, access);
}

static drvError_t check_map_arguments(const void *ptr, size_t size, size_t offset,
				      const drv_mem_handle_t *handle, uint64_t flag)
{
	if (ptr == NULL || size == 0 || handle == NULL)
		npu_message_set(MAP ": %s", ptr == NULL ? "ptr is NULL"
					    : size == 0 ? "size is 0"
							: "handle is NULL");
	else if (offset != 0)
		npu_message_set(MAP
				": offset is %s; it must be 0: a handle is mapped from its start",
				npu_size_text(offset));
	else if (flag != 0)
		npu_message_set(MAP ": flag is 0x%" PRIx64 "; it must be 0", flag);
	else
		return DRV_ERROR_NONE;
	return DRV_ERROR_INVALID_VALUE;
}

static drvError_t map(struct bsim *bs, void *ptr, size_t size, size_t offset,
		      drv_mem_handle_t *handle, uint64_t flag, bool access)
{
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	result = check_map_arguments(ptr, size, offset, handle, flag);
	if (result == DRV_ERROR_NONE)
		result = map_locked(bs, (uintptr_t)ptr, size, handle, access);
	if (result == DRV_ERROR_NONE && handle_is_giant(handle))
		return bsim_leave(bs, SIM_CALL_MAP, size >> 30, 30, result);
	return bsim_leave(bs, SIM_CALL_MAP, size >> 21, 21, result);
}

drvError_t bsim_halMemMap(struct npu_driver *self, void *ptr, size_t size, size_t offset,
			  drv_mem_handle_t *handle, uint64_t flag)
{
	return map(bsim_of(self), ptr, size, offset, handle, flag, true);
}

/* The driver of the 910B and 910C has no such function: a mapping is made with its owner's access.
 */
drvError_t bsim_halMemMapNoAccess(struct npu_driver *self, void *ptr, size_t size, size_t offset,
				  drv_mem_handle_t *handle, uint64_t flag)
{
	if (bsim_anywhere(bsim_of(self)))
		return map(bsim_of(self), ptr, size, offset, handle, flag, false);
	npu_message_set("halMemMapNoAccess: this driver has no such function; halMemMap gives "
			"access to the owner alone");
	return DRV_ERROR_NOT_SUPPORT;
}

/* ---- unmap ---- */

/* Its leaves everywhere, the CPU's access, its handle's reference. */
static void end_mapping(struct bsim *bs, struct mapping *m)
{
	struct range *r = window_reservation(bs->window, m->va);
	struct drv_mem_handle *h = m->handle;
	bool giant = handle_is_giant(h);

	for (unsigned d = 0; m->peers >> d != 0; d++)
		if (m->peers >> d & 1)
			tables_unmap(bs, d, m->va, mapping_bytes(m), giant);
	if (m->cpu)
		window_close_to_cpu(m->va, mapping_bytes(m));
	if (m->home)
		tables_unmap(bs, h->space, m->va, mapping_bytes(m), giant);
	window_set_mapping(bs->window, m->va, mapping_bytes(m), NULL);
	*m->link = m->next;
	if (m->next != NULL)
		m->next->link = m->link;
	bsim_space(bs, h->space)->mapped_bytes -= mapping_bytes(m);
	if (h->imported)
		r->imported--;
	else
		r->own--;
	retire_mapping(bs, m);
	handle_unmapped(bs, h);
}

unsigned mapping_end_device(struct bsim *bs, unsigned device)
{
	struct mapping *next;
	unsigned ended = 0;

	for (struct mapping *m = bs->mappings; m != NULL; m = next) {
		next = m->next;
		if (m->handle->space == device) {
			end_mapping(bs, m);
			ended++;
		} else if (m->peers >> device & 1) {
			tables_unmap(bs, device, m->va, mapping_bytes(m),
				     handle_is_giant(m->handle));
			m->peers &= (uint16_t) ~(1u << device);
		}
	}
	return ended;
}

static drvError_t unmap_locked(struct bsim *bs, uint64_t va, uint64_t *out_pages,
			       unsigned *out_page_lg2)
{
	const char *call = "halMemUnmap";
	struct mapping *m;
	drvError_t result = bsim_require_open_locked(bs, call);

	if (result != DRV_ERROR_NONE)
		return result;
	m = window_mapping(bs->window, va);
	if (m == NULL) {
		npu_message_set(
			"%s: nothing is mapped at ptr 0x%" PRIx64 ": %s%s", call, va,
			bsim_place_text_locked(bs, va),
			bs->handles->resets > 0
				? "; a device was reset in this process, which ends its mappings"
				: "");
		return DRV_ERROR_PARA_ERROR;
	}
	if (m->va != va) {
		npu_message_set("%s: ptr 0x%" PRIx64 " lies %s into the mapping at 0x%" PRIx64
				", %s; a mapping is removed whole, by its start",
				call, va, npu_size_text(va - m->va), m->va,
				npu_size_text(mapping_bytes(m)));
		return DRV_ERROR_PARA_ERROR;
	}
	*out_page_lg2 = handle_is_giant(m->handle) ? 30 : 21;
	*out_pages = mapping_bytes(m) >> *out_page_lg2;
	end_mapping(bs, m);
	return DRV_ERROR_NONE;
}

drvError_t bsim_halMemUnmap(struct npu_driver *self, void *ptr)
{
	struct bsim *bs = bsim_of(self);
	uint64_t pages = 1;
	unsigned page_lg2 = 21;
	drvError_t result = bsim_enter(bs);

	if (result != DRV_ERROR_NONE)
		return result;
	result = unmap_locked(bs, (uintptr_t)ptr, &pages, &page_lg2);
	return bsim_leave(bs, SIM_CALL_UNMAP, pages, page_lg2, result);
}
