/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies at an address, for those who copy, for queries, and in words for messages. Owns
 * nothing.
 */
#include "alloc.h"
#include "mapping.h"

#include <inttypes.h>
#include <stdio.h>

static void place_of_reservation(struct bsim *bs, const struct range *r, uint64_t va,
				 struct bsim_place *out)
{
	const struct mapping *m = window_mapping(bs->window, va);

	if (m != NULL) {
		*out = (struct bsim_place){ .kind = PLACE_MAPPED,
					    .memory = m->handle->space,
					    .imported = m->handle->imported,
					    .base = m->va,
					    .bytes = m->bytes };
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
