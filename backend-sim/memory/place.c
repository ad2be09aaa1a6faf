/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies at an address, for those who copy, for queries, and in words for messages. Owns
 * nothing.
 */
#include "memory/alloc.h"
#include "cuda/dialect.h"
#include "memory/mapping.h"
#include "ops.h"

#include <inttypes.h>
#include <stdio.h>

static void place_of_reservation(struct bsim *bs, const struct range *r, uint64_t va,
				 struct bsim_place *out)
{
	const struct mapping *m = window_mapping(bs->window, va);

	if (m != NULL) {
		*out = (struct bsim_place){ .kind = PLACE_MAPPED,
					    .memory = m->handle->space,
					    .imported = m->handle->imported || m->handle->from_fd,
					    .readers = mapping_readers(m),
					    .writers = mapping_writers(m),
					    .cpu = m->cpu,
					    .base = m->va,
					    .bytes = mapping_bytes(m) };
		return;
	}
	*out = (struct bsim_place){ .kind = PLACE_RESERVED,
				    .memory = r->bound < 0 ? SIM_NODE_MAX : (unsigned)r->bound,
				    .base = r->va,
				    .bytes = r->bytes };
}

static void place_of_allocation(const struct allocation *a, uint64_t va, struct bsim_place *out)
{
	static const enum bsim_place_kind kinds[] = {
		[ALLOCATION_DEVICE] = PLACE_CLASSIC,
		[ALLOCATION_OPENED] = PLACE_CLASSIC,
		[ALLOCATION_PINNED] = PLACE_PINNED,
		[ALLOCATION_REGISTERED] = PLACE_REGISTERED,
	};

	*out = (struct bsim_place){ .kind = kinds[a->kind],
				    .memory = a->memory,
				    .imported = a->kind == ALLOCATION_OPENED,
				    .base = a->va,
				    .bytes = a->bytes,
				    .host_va = a->kind == ALLOCATION_REGISTERED
						       ? a->host_va + (va - a->va)
						       : va };
}

void bsim_locate_locked(struct bsim *bs, uint64_t va, struct bsim_place *out)
{
	const struct window *w = bs->window;
	const struct range *r = w == NULL ? NULL : window_peek(w, va);
	const struct allocation *a;

	*out = (struct bsim_place){ .kind = PLACE_PAGEABLE, .memory = SIM_NODE_MAX, .host_va = va };
	if (r != NULL && r->kind <= RANGE_NOUC) {
		place_of_reservation(bs, r, va, out);
		return;
	}
	a = r == NULL ? NULL : allocation_at(r, va);
	if (a != NULL)
		place_of_allocation(a, va, out);
	else if (w != NULL && window_has(w, va))
		*out = (struct bsim_place){ .kind = PLACE_FREE, .memory = SIM_NODE_MAX };
}

static const char *of_memory(unsigned memory)
{
	static __thread char text[32];

	if (memory == SIM_NODE_HOST)
		return "memory of the host";
	snprintf(text, sizeof(text), "device %u", memory);
	return text;
}

const char *bsim_place_text_locked(struct bsim *bs, uint64_t va)
{
	static __thread char text[256];
	struct bsim_place p;
	int used;

	bsim_locate_locked(bs, va, &p);
	used = snprintf(text, sizeof(text), "0x%" PRIx64, va);
	if (p.base != 0 && va != p.base)
		used += snprintf(text + used, sizeof(text) - (size_t)used, ", %s into",
				 npu_size_text(va - p.base));
	else
		used += snprintf(text + used, sizeof(text) - (size_t)used, " is");
	switch (p.kind) {
	case PLACE_PAGEABLE:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " outside the device addresses (memory of the program itself, or none)");
		break;
	case PLACE_FREE:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " a device address that is not allocated");
		break;
	case PLACE_PINNED:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " the pinned host allocation at 0x%" PRIx64 ", %s", p.base,
			 npu_size_text(p.bytes));
		break;
	case PLACE_REGISTERED:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " registered host memory at 0x%" PRIx64 ", %s", p.base,
			 npu_size_text(p.bytes));
		break;
	case PLACE_CLASSIC:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " the %s at 0x%" PRIx64 ", %s, %s",
			 p.imported ? "memory opened by its name" : "allocation", p.base,
			 npu_size_text(p.bytes), of_memory(p.memory));
		break;
	case PLACE_MAPPED:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " the mapping at 0x%" PRIx64 ", %s, %s", p.base, npu_size_text(p.bytes),
			 of_memory(p.memory));
		break;
	case PLACE_RESERVED:
		snprintf(text + used, sizeof(text) - (size_t)used,
			 " the reservation at 0x%" PRIx64 ", %s, with nothing mapped here", p.base,
			 npu_size_text(p.bytes));
		break;
	}
	return text;
}

/* ---- for the runtime ---- */

static void fill_mapped(struct bsim *bs, uint64_t va, struct npu_place *out)
{
	const struct mapping *m = window_mapping(bs->window, va);

	out->handle_bytes = m->handle->bytes;
	out->handle_word = m->handle->word;
	out->number = m->made.number;
}

static void fill_allocation(struct bsim *bs, uint64_t va, struct npu_place *out)
{
	const struct allocation *a = allocation_at(window_peek(bs->window, va), va);

	out->asked_bytes = a->asked;
	out->number = a->made.number;
}

static void place_locked(struct bsim *bs, uint64_t va, struct npu_place *out)
{
	static const enum npu_place_kind kinds[] = {
		[PLACE_PAGEABLE] = NPU_PLACE_NONE,     [PLACE_FREE] = NPU_PLACE_NONE,
		[PLACE_PINNED] = NPU_PLACE_PINNED,     [PLACE_REGISTERED] = NPU_PLACE_REGISTERED,
		[PLACE_CLASSIC] = NPU_PLACE_DEVICE,    [PLACE_MAPPED] = NPU_PLACE_MAPPED,
		[PLACE_RESERVED] = NPU_PLACE_RESERVED,
	};
	const struct range *r = bs->window == NULL ? NULL : window_reservation(bs->window, va);
	struct bsim_place p;

	bsim_locate_locked(bs, va, &p);
	*out = (struct npu_place){ .kind = kinds[p.kind],
				   .base = p.base,
				   .bytes = p.bytes,
				   .owner = p.memory < BSIM_DEVICE_MAX ? p.memory : UINT32_MAX,
				   .readers = p.readers,
				   .writers = p.writers,
				   .cpu = p.cpu,
				   .imported = p.imported };
	if (r != NULL) {
		out->reserved_base = r->va;
		out->reserved_bytes = r->asked;
	}
	if (p.kind == PLACE_RESERVED) {
		uint64_t slot = va & ~(WINDOW_SLOT - 1);
		struct mapping *next = NULL;

		window_slots_clear(bs->window, slot, r->va + r->bytes - slot, &next);
		out->next_mapped = next != NULL ? next->va : r->va + r->bytes;
	}
	if (p.kind == PLACE_MAPPED)
		fill_mapped(bs, va, out);
	else if (p.kind == PLACE_CLASSIC || p.kind == PLACE_PINNED || p.kind == PLACE_REGISTERED)
		fill_allocation(bs, va, out);
}

drvError_t bsim_npusimPlace(struct npu_driver *self, uint64_t va, struct npu_place *out)
{
	struct bsim *bs = bsim_of(self);

	if (out == NULL) {
		npu_message_set("npusimPlace: out is NULL");
		return DRV_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&bs->lock);
	place_locked(bs, va, out);
	pthread_mutex_unlock(&bs->lock);
	return DRV_ERROR_NONE;
}
