/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies at an address: the one answer that drivers give, and that copies, attributes, ranges,
 * access and messages are made from, on both sides of the seam. The model makes it in
 * backend-sim/memory/place.c; of a foreign driver the runtime knows what drvMemGetAttribute tells:
 * kind (a mapped handle is DEVICE or PINNED there), owner and page_bytes.
 */
#ifndef NPUSIM_PLACE_H
#define NPUSIM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum npu_place_kind {
	NPU_PLACE_PAGEABLE,   /* nothing that the driver knows: the program's own memory, or none */
	NPU_PLACE_FREE,       /* an address of the driver that is not allocated */
	NPU_PLACE_RESERVED,   /* a reservation, nothing mapped at the address */
	NPU_PLACE_MAPPED,     /* a live mapping of a handle */
	NPU_PLACE_DEVICE,     /* halMemAlloc'ed device memory */
	NPU_PLACE_PINNED,     /* halMemAlloc'ed host memory */
	NPU_PLACE_OPENED,     /* another process's device memory, opened by its name */
	NPU_PLACE_REGISTERED, /* the program's own memory, registered: a device's address of it */
	NPU_PLACE_MANAGED,    /* memory that moves between host and devices */
	NPU_PLACE_KIND_COUNT
};

#define NPU_OWNER_HOST UINT32_MAX
#define NPU_OWNER_NONE (UINT32_MAX - 1)

struct npu_place {
	enum npu_place_kind kind;
	uint32_t owner; /* the device that has the memory, or NPU_OWNER_HOST; of a reservation that
			   of its first mapping; NPU_OWNER_NONE: nobody (never mapped, PAGEABLE,
			   FREE) */
	uint32_t page_bytes;  /* 0: RESERVED and never mapped, FREE */
	uint64_t base, bytes; /* of the mapping, allocation or reservation */
	uint64_t host_va;     /* PAGEABLE, PINNED, REGISTERED: the CPU's address */
	uint64_t reserved_base, reserved_bytes; /* of the reservation, where there is one */
	uint64_t next_mapped; /* RESERVED: where the next mapping begins, or the reservation ends */
	uint32_t readers;     /* MAPPED: bit d: device d may read */
	uint32_t writers;     /* MAPPED: bit d: device d may write, too */
	bool cpu;             /* MAPPED: the CPU may reach it */
	bool imported;        /* MAPPED: the handle came from another process; OPENED */
	uint64_t asked_bytes; /* of an allocation, as the caller gave them */
	uint64_t handle_bytes; /* MAPPED */
	uint64_t handle_word;  /* MAPPED: struct drv_mem_prop.reserve of its handle */
	uint64_t number; /* of the driver call that made it: tells objects at one address apart */
};

/* Memory that a page table translates: a mapping, or an allocation on a device. */
static inline bool npu_place_is_translated(const struct npu_place *place)
{
	return place->kind == NPU_PLACE_MAPPED || place->kind == NPU_PLACE_DEVICE ||
	       place->kind == NPU_PLACE_OPENED;
}

#endif
