/* SPDX-License-Identifier: Apache-2.0
 *
 * The SVM window: who has which part of the address space. Owns the reservation of the window
 * itself, its 1 GiB heaps, the reservations that programs make in it, and the NoUC ranges outside
 * of it. It knows that mappings and allocations lie in there, not what they are.
 *
 * Every lookup is one step: an array over all addresses below 128 TiB, an entry a GiB; in it an
 * array of 2 MiB slots where one is needed. All functions are called with bsim.lock held, but
 * window_peek(), which a signal handler may call.
 */
#ifndef NPUSIM_BSIM_WINDOW_H
#define NPUSIM_BSIM_WINDOW_H

#include "process/process.h"

#define WINDOW_DEFAULT_BASE  UINT64_C(0x100000000000)
#define WINDOW_DEFAULT_BYTES (UINT64_C(8) << 40)
#define WINDOW_SMALLEST      (UINT64_C(64) << 30)
#define WINDOW_HOST_END \
	(UINT64_C(1) << 47) /* where the host's address space ends (x86-64, four levels) */
#define WINDOW_GIB         (UINT64_C(1) << 30)
#define WINDOW_SLOT        (UINT64_C(1) << 21)
#define WINDOW_SLOTS       512u
#define WINDOW_GRANULES    (WINDOW_HOST_END >> 30)
#define WINDOW_LARGE       (UINT64_C(512) << 20) /* more than this takes whole heaps */
#define WINDOW_RESERVE_MAX (UINT64_C(128) << 30)
#define WINDOW_NOUC_BASE   (UINT64_C(24) << 40)
#define WINDOW_NOUC_MAX    (UINT64_C(128) << 40)

/* When and by which call a thing was made: for the report of what is left, and for messages. */
struct bsim_made {
	uint64_t number; /* of the driver call in this process */
	uint64_t ps;     /* simulated time */
};

enum range_kind {
	RANGE_RESERVATION, /* made by halMemAddressReserve in the window */
	RANGE_NOUC,        /* the same, outside of it */
	RANGE_CARVED,      /* a 1 GiB heap that reservations of up to 512 MiB are cut from */
	RANGE_POOL,        /* a 1 GiB heap of classic allocations of one kind */
	RANGE_ALLOCATION   /* heaps that one classic allocation takes whole */
};

struct mapping;
struct allocation;
struct pool;

struct range {
	enum range_kind kind;
	unsigned page_lg2; /* 12: below 2 MiB, its page table pages are of 4 KiB */
	uint64_t va, bytes;
	uint64_t asked;      /* bytes as the caller gave them */
	unsigned asked_page; /* enum drv_mem_pg_type as the caller gave it: for a note only */
	struct bsim_made made;
	struct range *next,
		**link; /* list of its kind, in the order of addresses only for RANGE_CARVED */
	/* RESERVATION, NOUC */
	int bound; /* memory side of the first map: a device, SIM_NODE_HOST, or -1; unmapping leaves
		      it */
	unsigned own, imported; /* live mappings of handles made here, and of imported ones */
	/* CARVED */
	bool hinted; /* made for a caller's address: reservations without one stay away */
	unsigned used_slots;
	uint64_t used[WINDOW_SLOTS / 64];
	struct range **carved; /* [512]: the reservation that has the slot */
	/* POOL, ALLOCATION */
	struct pool *pool;
	struct allocation *allocation;
};

struct granule {
	struct range *range;
	struct mapping **slots; /* [512], made at the first map in this GiB */
};

struct window {
	bool anywhere;        /* there is no window: base and bytes are 0 */
	uint64_t cursor;      /* anywhere: no free address that was given before lies below */
	uint64_t base, bytes; /* of the window as it is laid out */
	uint64_t mapped_base; /* what of it could be reserved: [mapped_base, base + bytes) */
	uint64_t read_only_base, device_read_only_base, normal_base, end;
	uint64_t lowest_free; /* no free granule of the normal heaps lies below */
	uint64_t lowest_free_read_only;
	struct granule *granules;   /* [WINDOW_GRANULES] */
	struct range *reservations; /* RESERVATION and NOUC */
	struct range *carved[2];    /* by page: 0 small, 1 huge; sorted */
	struct range *pools;        /* POOL and ALLOCATION */
	struct range *unused;       /* records to use again */
	uint64_t reserved_bytes, reservation_count, nouc_count;
};

/* Reserves the window's addresses, as NPUSIM_WINDOW says. False, and *error (free()). */
bool window_open(struct bsim *bs, char **error);
/* Gives the records back. The addresses stay reserved: a stale pointer still traps. */
void window_close(struct bsim *bs);

static inline bool window_has(const struct window *w, uint64_t va)
{
	return va - w->base < w->bytes;
}

/* The reservation, heap or allocation at va; NULL for none. */
static inline struct range *window_peek(const struct window *w, uint64_t va)
{
	struct range *r;

	if (va >= WINDOW_HOST_END)
		return NULL;
	r = w->granules[va >> 30].range;
	if (r != NULL && r->kind == RANGE_CARVED)
		r = r->carved[va >> 21 & (WINDOW_SLOTS - 1)];
	return r;
}

/* The reservation at va; NULL if none is there. */
static inline struct range *window_reservation(const struct window *w, uint64_t va)
{
	struct range *r = window_peek(w, va);

	return r != NULL && r->kind <= RANGE_NOUC ? r : NULL;
}

static inline struct mapping *window_mapping(const struct window *w, uint64_t va)
{
	struct mapping **slots = va < WINDOW_HOST_END ? w->granules[va >> 30].slots : NULL;

	return slots == NULL ? NULL : slots[va >> 21 & (WINDOW_SLOTS - 1)];
}

/* Makes [va, va + bytes) slots of m, or of nothing where m is NULL. The range is slot aligned and
 * reserved. False: host memory. */
bool window_set_mapping(struct window *w, uint64_t va, uint64_t bytes, struct mapping *m);
/* True if every slot of the range is free of mappings; else *out_first is the first mapping. */
bool window_slots_clear(const struct window *w, uint64_t va, uint64_t bytes,
			struct mapping **out_first);

/* Addresses for reservations. Each returns NULL where there is no room, without a message. `bytes`
 * is rounded already. */
enum window_area { WINDOW_NORMAL, WINDOW_READ_ONLY, WINDOW_DEVICE_READ_ONLY };
uint64_t window_find_heaps(struct window *w, enum window_area area, uint64_t count);
bool window_granules_free(const struct window *w, uint64_t va, uint64_t bytes, uint64_t *out_taken);
struct range *window_add(struct bsim *bs, enum range_kind kind, uint64_t va, uint64_t bytes);
struct range *window_carve(struct bsim *bs, uint64_t bytes, bool huge);
struct range *window_carve_at(struct bsim *bs, uint64_t va, uint64_t bytes, bool huge);
/* Takes the addresses from the host, too: errno says why it could not. */
struct range *window_add_nouc(struct bsim *bs, uint64_t va, uint64_t bytes);

/* `count` whole heaps for classic allocations, in the area that is asked for. NULL: no room
 * (message set). */
struct range *window_take(struct bsim *bs, const char *call, enum window_area area,
			  enum range_kind kind, uint64_t count);
/* Ends a heap of window_take(), or a reservation that nothing is mapped in. */
void window_drop(struct bsim *bs, struct range *range);

/* Addresses of the host: those, if nothing has them (errno); any that are aligned, or 0;
 * and back. */
bool window_host_take(uint64_t va, uint64_t bytes);
uint64_t window_host_find(uint64_t bytes, uint64_t align);
void window_host_give(uint64_t va, uint64_t bytes);
/* The record of a range that is in no granule any more. */
void window_retire(struct window *w, struct range *r);

/* Makes [va, va + bytes), all inside the window or a NoUC range, inaccessible again for the CPU. */
void window_close_to_cpu(uint64_t va, uint64_t bytes);

/* What lies in the way at va, in words, for a message; a static buffer a thread. */
const char *window_occupant(const struct window *w, uint64_t va);
/* The same for addresses of the host outside the window. */
const char *window_host_occupant(uint64_t va, uint64_t bytes);

#endif
