/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of this process, as its driver model keeps it: ranges of addresses in the window,
 * handles of physical memory, mappings of handles, classic allocations; the lookup of the record
 * at an address, the answer to what lies there, and the operations on all of these; and the page
 * tables.
 *
 * The records are for checks, queries and messages, before anything moves; the page tables alone
 * say where bytes go. The two never differ: a page is in the page table of exactly the spaces that
 * its record says, with its flags and its frames, and no page table has a leaf without a record.
 *
 * A lookup takes constant time: an array over all addresses below 128 TiB has an entry per GiB, and
 * in it an array of 2 MiB slots where one is needed. All are called with bsim.lock held, except the
 * lookups, which a signal handler may call.
 */
#ifndef NPUSIM_BSIM_MEMORY_H
#define NPUSIM_BSIM_MEMORY_H

#include <glib.h>
#include <sys/queue.h>

#include "page-table.h"
#include "process/process.h"

/* Records are in lists by memory, a device or SIM_NODE_HOST: by which of them they end. */
#define EACH_OF(queue, record, lists)                         \
	for (unsigned of = 0; of < G_N_ELEMENTS(lists); of++) \
	queue##_FOREACH(record, &(lists)[of], link)

/* ---- addresses ---- */

struct allocation;
struct pool;

#define WINDOW_DEFAULT_BASE  UINT64_C(0x100000000000)
#define WINDOW_DEFAULT_BYTES (UINT64_C(8) << 40)
#define WINDOW_SMALLEST      (UINT64_C(32) << 30)
#define WINDOW_HOST_END      (UINT64_C(1) << 47) /* of the host's addresses: x86-64, four levels */
#define WINDOW_GIB           (UINT64_C(1) << 30)
#define WINDOW_SLOT          (UINT64_C(1) << 21)
#define WINDOW_SLOTS         512u
#define WINDOW_GRANULES      (WINDOW_HOST_END >> 30)
#define WINDOW_LARGE         (UINT64_C(512) << 20) /* more than this takes whole heaps */
#define WINDOW_RESERVE_MAX   (UINT64_C(128) << 30)
#define WINDOW_NOUC_BASE     (UINT64_C(24) << 40)
#define DEVICE_ID_LIMIT      64u /* of the driver, whatever the server has */

enum window_area { WINDOW_NORMAL, WINDOW_READ_ONLY, WINDOW_DEVICE_READ_ONLY };

/* Who has addresses of the window: its own bookkeeping, which place.c turns into an answer. */
enum range_kind {
	RANGE_RESERVATION, /* made by halMemAddressReserve in the window */
	RANGE_NOUC,        /* the same, outside of it */
	RANGE_SLAB,        /* a 1 GiB heap that reservations of up to 512 MiB are cut from */
	RANGE_POOL,        /* a 1 GiB heap of classic allocations of one kind */
	RANGE_ALLOCATION   /* heaps that one classic allocation takes whole */
};

struct range {
	enum range_kind kind;
	unsigned page_lg2; /* 12: below 2 MiB, its page table pages are of 4 KiB */
	uint64_t va, bytes;
	uint64_t asked; /* bytes as the caller gave them */
	struct bsim_made made;
	LIST_ENTRY(range) link; /* of a reservation */
	/* RESERVATION, NOUC */
	int bound; /* whose memory was mapped first: a device, SIM_NODE_HOST; -1: none yet */
	unsigned own, imported; /* live mappings of handles made here, and of imported ones */
	/* SLAB */
	bool hinted; /* made for a caller's address: reservations without one stay away */
	unsigned used_slots;
	uint64_t used[WINDOW_SLOTS / 64];
	/* POOL, ALLOCATION */
	struct pool *pool;
	struct allocation *allocation;
	struct range *cut[]; /* SLAB: [512]: the reservation that has the slot */
};

struct granule {
	struct range *range;
	struct mapping **slots; /* [512], made at the first map in this GiB */
};

struct window {
	uint64_t base, bytes; /* of the window as it is laid out; 0, 0 in the CUDA dialect */
	uint64_t cursor;      /* CUDA dialect: no free address that was given before lies below */
	uint64_t read_only_base, device_read_only_base, normal_base, end;
	uint64_t lowest_free;            /* no free granule of the normal heaps lies below */
	struct granule *granules;        /* [WINDOW_GRANULES] */
	LIST_HEAD(, range) reservations; /* RESERVATION and NOUC */
	LIST_HEAD(, mapping) mappings[SIM_NODE_MAX]; /* by the space of their handles */
	struct mapping *unused; /* records to use again, linked forwards alone */
	/* The longest run of free slots of each slab, by page (0 small, 1 huge): a tree of maxima
	 * whose leaves are the window's granules. */
	uint16_t *room[2]; /* [2 * leaves] */
	uint64_t leaves;   /* a power of two */
	uint64_t reserved_bytes, reservation_count;
};

/* ---- physical handles ---- */

enum handle_state { HANDLE_LIVE, HANDLE_FREED, HANDLE_LOST_TO_RESET };

/* There may be hundreds of thousands. */
struct drv_mem_handle {
	uint8_t state; /* enum handle_state */
	uint8_t space; /* whose page table translates it: a device, or SIM_NODE_HOST */
	bool imported, exported;
	bool from_fd;             /* by a descriptor, in this process or another */
	uint32_t ref;             /* of the program and of mappings together */
	uint32_t map_ref;         /* of mappings alone: map_ref <= ref */
	uint32_t share_id;        /* imported or exported */
	uint64_t bytes;           /* rounded up */
	struct drv_mem_prop prop; /* as given at creation */
	struct node_block *block;
	struct bsim_made made, freed;
	TAILQ_ENTRY(drv_mem_handle) link; /* live ones; freed ones by age */
};

struct handle_table {
	GHashTable *records; /* live and freed ones, by address */
	TAILQ_HEAD(handle_list, drv_mem_handle) live[SIM_NODE_MAX]; /* by space, the newest first */
	struct handle_list freed;                                   /* the oldest first */
	uint64_t live_count, freed_count;
	GHashTable *imports; /* by share and space */
	uint64_t reset;      /* the last call that closed a device with something in it; 0: none */
};

static inline unsigned handle_page_lg2(const struct drv_mem_handle *h)
{
	return h->block->giant ? 30 : 21;
}

/* Imported from another server. */
static inline bool handle_is_remote(const struct drv_mem_handle *h)
{
	return h->block->memory >= SIM_NODE_MAX;
}

/* ---- mappings ---- */

struct mapping {
	uint64_t va;
	union {
		struct drv_mem_handle *handle;
		struct node_block *left; /* leaving */
	};
	LIST_ENTRY(mapping) link;
	struct bsim_made made;
	uint32_t slots;     /* of 2 MiB */
	uint32_t tables;    /* bit s: space s (a device, SIM_NODE_HOST) has it in its page table */
	uint16_t read_only; /* bit d: device d may only read */
	bool cpu;           /* the CPU may reach it */
	bool leaving;       /* it is none any more, but the CPU reaches it still */
};

static inline uint64_t mapping_bytes(const struct mapping *m)
{
	return (uint64_t)m->slots << 21;
}

/* Bit d: device d may read. */
static inline uint32_t mapping_readers(const struct mapping *m)
{
	return m->tables & ((UINT32_C(1) << BSIM_DEVICE_MAX) - 1);
}

/* ---- classic allocations ---- */

/* What kind of heap an allocation comes from: those of one kind share 1 GiB heaps. */
struct pool_kind {
	enum npu_place_kind use; /* DEVICE, PINNED, OPENED, REGISTERED */
	enum window_area area;
	unsigned memory;   /* device, or SIM_NODE_HOST */
	unsigned page_lg2; /* 12 or 21 */
	unsigned mem_type; /* of a device: MEM_TYPE_HBM, MEM_ADVISE_P2P, MEM_ADVISE_TS */
};

struct allocation {
	/* A free looks at what comes before `asked` alone: 64 bytes. */
	uint8_t kind; /* enum npu_place_kind: DEVICE, PINNED, OPENED, REGISTERED */
	uint8_t memory;
	uint8_t page_lg2;  /* of its leaves: 12, 21, 30 */
	bool unmapped : 1; /* by a reset of its device */
	bool filling : 1;  /* its pages are being written without the lock */
	/* Freed, and there for entries alone that were sent before driver call gone_number: how
	 * many of them are not done; of a device's memory 0, copies under way use it. */
	unsigned held;
	uint64_t gone_number;
	uint64_t va, bytes;
	struct range *range;
	struct node_block *block; /* of its own; NULL where its pages are its heap's */
	LIST_ENTRY(allocation) link;
	uint64_t asked;
	uint64_t host_va;       /* REGISTERED: of the first page */
	uint64_t opened_offset; /* OPENED, REGISTERED: what was handed out is va + this */
	struct bsim_made made;
} __attribute__((aligned(64)));

/* A frame that 4 KiB pages of a device are parts of. */
struct pool_frame {
	struct node_block *block;
	uint64_t pa;         /* of its first page */
	unsigned used;       /* pages */
	uint64_t written[8]; /* pages that were handed out since the frame came */
};

/* A 1 GiB heap. Its pages are the allocations' own blocks, or - of 4 KiB on a device - parts of
 * frames that it holds. */
struct pool {
	struct pool_kind kind;
	struct range *range; /* NULL: not yet */
	TAILQ_ENTRY(pool) link;
	unsigned pages, used, lowest_free; /* no free page lies below */
	unsigned leaves;                   /* a power of two; 0: no `room` */
	/* By page: of an allocation's first one, and of each multiple of 64 that it goes over. */
	struct allocation **owner;
	struct pool_frame *frame; /* [512], or NULL */
	/* A tree of maxima over leaves of 512 pages: how long a run of free pages each may have.
	 * Only for device memory, where no block of up to 512 pages crosses a leaf. */
	uint16_t room[2 * 512];
	uint64_t bits[];
};

#define ALLOC_GONE_MAX 64u

struct gone_range {
	uint64_t end, bytes; /* no pointer into it, for LeakSanitizer */
	struct bsim_made gone;
	const char *call; /* a literal */
};

#define ALLOC_REGISTERED(device) (SIM_NODE_MAX + (device))

struct alloc_table {
	/* By memory, and REGISTERED by device; the newest first. */
	LIST_HEAD(allocation_list, allocation) live[ALLOC_REGISTERED(BSIM_DEVICE_MAX)];
	struct allocation_list held; /* freed, in use; not counted */
	GPtrArray *gone_blocks;      /* the same of struct node_block */
	LIST_HEAD(, mapping) gone_mappings;
	GSList *gone_pools; /* without addresses: to be freed when the lock is let go of */
	struct gone_range gone[2][ALLOC_GONE_MAX]; /* of devices; of the host */
	uint64_t gone_count[2];                    /* ever */
	uint64_t frames_taken;                     /* ever, behind 4 KiB pages */
	struct allocation *free;                   /* records that none has; by `link` */
	GSList *records;                           /* the memory of all */
	size_t record_bytes;
	TAILQ_HEAD(, pool) pools; /* in the order of their making */
	uint64_t count[NPU_PLACE_KIND_COUNT], bytes[NPU_PLACE_KIND_COUNT];
};

/* ---- the record at an address ---- */

static inline bool range_is_reservation(const struct range *r)
{
	return r->kind <= RANGE_NOUC;
}

/* The reservation, heap or allocation at va; NULL for none. */
static inline struct range *window_peek(const struct window *w, uint64_t va)
{
	struct range *r;

	if (va >= WINDOW_HOST_END)
		return NULL;
	r = w->granules[va >> 30].range;
	if (r != NULL && r->kind == RANGE_SLAB)
		r = r->cut[va >> 21 & (WINDOW_SLOTS - 1)];
	return r;
}

/* The reservation at va; NULL if none is there. */
static inline struct range *window_reservation(const struct window *w, uint64_t va)
{
	struct range *r = window_peek(w, va);

	return r != NULL && range_is_reservation(r) ? r : NULL;
}

static inline struct mapping *window_mapping(const struct window *w, uint64_t va)
{
	struct mapping **slots = va < WINDOW_HOST_END ? w->granules[va >> 30].slots : NULL;
	struct mapping *m = slots == NULL ? NULL : slots[va >> 21 & (WINDOW_SLOTS - 1)];

	return m == NULL || m->leaving ? NULL : m;
}

#define ALLOCATION_NOW UINT64_MAX

/* The allocation at va in a heap or in a range of its own, for what was sent by driver call `sent`;
 * NULL for none. */
static inline struct allocation *allocation_sent_at(const struct window *w, uint64_t va,
						    uint64_t sent)
{
	const struct range *r = window_peek(w, va);
	struct allocation *a = r != NULL && r->kind == RANGE_ALLOCATION ? r->allocation : NULL;

	if (r != NULL && r->kind == RANGE_POOL)
		for (uint64_t page = (va - r->va) >> r->pool->kind.page_lg2;
		     (a = r->pool->owner[page]) == NULL && page % 64 != 0; page--)
			continue;
	if (a != NULL &&
	    (va - a->va >= a->bytes || (a->gone_number != 0 && a->gone_number <= sent)))
		return NULL;
	return a;
}

/* The same as of now. */
static inline struct allocation *allocation_at(const struct window *w, uint64_t va)
{
	return allocation_sent_at(w, va, ALLOCATION_NOW);
}

/* ---- another dialect ---- */

/* The table by which a dialect of virtual memory replaces the window's rules (NPU_DIALECT_CUDA;
 * npusim/driver.h says what programs see). The room above fills in the table, and bsim.cuda points
 * to it while the dialect is in use. */
struct dialect {
	drvError_t (*reserve)(struct bsim *bs, void **ptr, uint64_t size, uint64_t alignment,
			      uint64_t hint);
	/* Gives the addresses of a reservation back. */
	void (*drop)(struct window *w, const struct range *r);
	/* Of the whole mapping. */
	drvError_t (*set_access)(struct bsim *bs, struct mapping *m,
				 const struct drv_mem_access_desc *desc);
	/* Shares that are file descriptors. */
	drvError_t (*export_fd)(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
				int *out_fd);
	drvError_t (*import_fd)(struct bsim *bs, const char *call, int fd,
				struct drv_mem_handle **out);
};

/* ---- place.c: the one answer to "what lies at this address" (npusim/place.h), made from the
 * records of the window, the mappings and the allocations, and the same in words for messages ----
 */

/* All but next_mapped. Reads only: the report of a host access calls it without the lock, and may
 * then get a wrong answer. Everybody else has bsim.lock. */
struct npu_place place_at(const struct bsim *bs, uint64_t va);
/* The same for an entry that driver call `sent` sent: host memory that was freed since is there. */
struct npu_place place_sent_at(const struct bsim *bs, uint64_t va, uint64_t sent);
/* "[0x12c000000000, +2097152 (2 MiB))": as npu_text(). */
const char *range_text(uint64_t va, uint64_t bytes);
/* "0x12c000200000 (2 MiB into the mapping at 0x12c000000000, 4 MiB, device 0)": as npu_text(). */
const char *place_text_locked(struct bsim *bs, uint64_t va);
/* Bytes get into a device's memory or a handle's at va, even where copies and fills move none. */
void place_written_locked(struct bsim *bs, uint64_t va);

/* A reservation lies there, with something mapped at the address or not. */
static inline bool place_is_reserved(const struct npu_place *place)
{
	return place->kind == NPU_PLACE_RESERVED || place->kind == NPU_PLACE_MAPPED;
}

/* The owner as backend-sim counts memories. */
static inline unsigned place_memory(const struct npu_place *place)
{
	return place->owner == NPU_OWNER_HOST ? SIM_NODE_HOST : place->owner;
}

/* ---- tables.c: the page tables of this process: one for each device, one for host memory, in the
 * format of page-table.h, stored in the memory that they describe; copies and the model's MMUs walk
 * them ---- */

/* The page table of a device, or of the host's memory. */
struct space {
	struct page_table pt;
	struct bsim *bs;
	unsigned memory;         /* whose it is: a device, or SIM_NODE_HOST */
	GPtrArray *table_blocks; /* struct node_block: frames that the tables are cut from */
	uint64_t free_table_pa;  /* chain of free 4 KiB tables: each holds the next one's address */
	uint64_t fresh_table_pa, fresh_tables; /* tables of the newest block that were never used */
	uint64_t mapped_bytes;
	uint64_t table_peak;
	uint64_t leaves[3]; /* live, of 4 KiB, 2 MiB, 1 GiB */
};

struct space *tables_space(unsigned memory);
void tables_open(struct bsim *bs, unsigned memory);
/* Frees all its tables, and the frames that they were cut from; no mapping is in them any more. */
void tables_close(struct bsim *bs, unsigned memory);
/* Maps the first `bytes` of the block at va; flags of the leaves: PT_WRITE, or 0. OUT_OF_MEMORY,
 * and a message that starts with the call: no memory for tables; nothing is mapped then. */
drvError_t tables_map(struct bsim *bs, const char *call, unsigned space, uint64_t va,
		      uint64_t bytes, const struct node_block *block, unsigned flags);
/* Leaves of 2^page_lg2 bytes, from `pa` on. */
drvError_t tables_map_leaves(struct bsim *bs, const char *call, unsigned space, uint64_t va,
			     uint64_t pa, unsigned page_lg2, uint64_t pages, unsigned flags);
/* `bytes` of leaves of 2^page_lg2 bytes; 0 is allowed. */
void tables_unmap(struct bsim *bs, unsigned space, uint64_t va, uint64_t bytes, unsigned page_lg2);

/* ---- window.c: who has which addresses ---- */

/* Reserves the window's addresses, as NPUSIM_WINDOW says. False, and *error (free()). */
bool window_open(struct bsim *bs, char **error);
/* Gives the records back. The addresses stay reserved: a stale pointer still traps. */
void window_close(struct bsim *bs);
/* The address is in a window of this process, also in one that is closed. For signal handlers. */
bool window_traps(uint64_t va);

/* Makes [va, va + bytes) slots of m, or of nothing where m is NULL. The range is slot aligned and
 * reserved. */
void window_set_mapping(struct window *w, uint64_t va, uint64_t bytes, struct mapping *m);
/* The first mapping, with `leaving` also one that leaves, that has a slot of the range. */
struct mapping *window_first_mapping(const struct window *w, uint64_t va, uint64_t bytes,
				     bool leaving);

/* Gives whole GiB to the range, or takes them back (NULL). */
void window_set_granules(struct window *w, uint64_t va, uint64_t bytes, struct range *r);
/* A record that is nowhere yet; and one that has addresses which are known to be free. */
struct range *range_new(enum range_kind kind, uint64_t va, uint64_t bytes);
struct range *window_add(struct bsim *bs, enum range_kind kind, uint64_t va, uint64_t bytes);

/* `count` whole heaps for classic allocations, in the area that is asked for. NULL: no room
 * (message set). */
struct range *window_take(struct bsim *bs, const char *call, enum window_area area,
			  enum range_kind kind, uint64_t count);
/* Ends a heap of window_take(), or a reservation that nothing is mapped in. */
void window_drop(struct bsim *bs, struct range *range);

/* ---- tables.c: the address space of this process ---- */

/* Those addresses, if nothing has them (errno); any that are aligned, or 0; and back. */
bool window_host_take(uint64_t va, uint64_t bytes);
uint64_t window_host_find(uint64_t bytes, uint64_t align);
void window_host_give(uint64_t va, uint64_t bytes);
/* What was taken stays taken, and the CPU finds nothing there any more. */
void window_close_to_cpu(uint64_t va, uint64_t bytes);
/* What of this process lies there, in words (npu_text()). */
const char *window_host_occupant(uint64_t va, uint64_t bytes);
/* True if `pieces` more parts of the window may be mapped for the CPU. The kernel limits how many
 * maps a process has, and its C library needs some, too: the last eighth is left to the program. */
bool host_maps_left(uint64_t pieces);
/* Why memory could not be mapped for the CPU (npu_text()). */
const char *host_map_problem(int error);

/* ---- handle.c: physical handles. A handle is never believed: its address is looked up first, so
 * that a stale, foreign or made-up one gets its code. The record of a freed handle is kept until
 * thousands more have been freed, and says who freed it. ---- */

void handle_table_open(struct bsim *bs);
void handle_table_close(struct bsim *bs);

/* node_block_create(); where there is no room, the message says which stacks of this process hold
 * what, if stacks are kept. */
drvError_t memory_take(struct bsim *bs, unsigned memory, uint64_t frames, bool giant,
		       struct node_block **out);

/* The live handle at that address; INVALID_VALUE, then *out is one that was freed and is
 * remembered, or NULL; INVALID_HANDLE before any device is open; with a message that starts with
 * the call. */
drvError_t handle_find(struct bsim *bs, const char *call, const void *handle,
		       struct drv_mem_handle **out);
/* A live handle for the block, which that space translates, with one reference. */
struct drv_mem_handle *handle_make(struct bsim *bs, struct node_block *block, unsigned space);
/* Ends all whose pages lie on, or were imported to, the device. Returns how many. */
unsigned handle_end_device(struct bsim *bs, unsigned device);
/* Drops the reference of a mapping that is gone; ends the handle with its last one. */
void handle_unmapped(struct bsim *bs, struct drv_mem_handle *h);
/* The import of a share on a device that this process has already. */
struct drv_mem_handle *handle_find_import(struct bsim *bs, uint32_t share_id, unsigned space);
void handle_add_import(struct bsim *bs, struct drv_mem_handle *h);
/* The properties of a handle that was imported on a device, or from one of another server. */
void handle_set_imported_prop(struct drv_mem_handle *h, uint32_t dev);

/* ---- mapping.c: mappings of handles. What a mapping says, its leaves in the page tables say too,
 * always: it is made, granted and ended together with them. ---- */

/* Lets the CPU reach the mapping. OUT_OF_MEMORY and a message: this process cannot map it. */
drvError_t mapping_open_to_cpu(struct bsim *bs, const char *call, struct mapping *m);

/* Ends all mappings of a device's memory. Returns how many. */
unsigned mapping_end_device(struct bsim *bs, unsigned device);
/* Gives the addresses of a mapping that nobody reaches any more back. */
void mapping_finish(struct window *w, struct mapping *m);

/* ---- alloc.c: memory that has an address from the start ---- */

void alloc_table_open(struct bsim *bs);
void alloc_table_close(struct bsim *bs);
/* Ends everything that lies in or was registered for a device; returns how many. */
unsigned alloc_end_device(struct bsim *bs, unsigned device);

/* Addresses for `bytes`, in a heap of that kind or, above 512 MiB, in heaps of its own. No pages
 * yet, but where the kind is of 4 KiB device pages. NULL and a message: no room; RESUME: the lock
 * was let go of to make a heap. */
struct allocation *allocation_new(struct bsim *bs, const char *call, const struct pool_kind *kind,
				  uint64_t bytes, drvError_t *out_error);
/* Maps the block there, which becomes the allocation's own. */
drvError_t allocation_back(struct bsim *bs, const char *call, struct allocation *a,
			   struct node_block *block);
/* Gives the addresses back, and what pages the heap had for them. Leaves, blocks and the CPU's maps
 * are the caller's. */
void allocation_drop(struct bsim *bs, struct allocation *a);
/* Ends an allocation with all that belongs to it, once nobody uses it; and one that nobody does,
 * whose pages, if it is pinned, are the kernel's again. */
void allocation_end(struct bsim *bs, struct allocation *a);
void allocation_finish(struct bsim *bs, struct allocation *a);
void pool_free(struct pool *p);
/* Whether a copy uses pages of a heap that the allocation has. */
bool pool_pages_used(struct bsim *bs, const struct allocation *a);

/* A block gets addresses: it counts as written, but where copies and fills move no bytes. Then it
 * costs the kernel nothing when it goes, unless bytes get there in another way. */
static inline void block_mapped_locked(struct bsim *bs, const struct node_block *block)
{
	(bs->writes ? node_block_touch : node_block_map)(bs->node, block);
}
/* They do where they cannot be told apart, from now on: all blocks that have addresses count. */
void memory_written_locked(struct bsim *bs);
/* NPUSIM_POISON: fills a device's new frames, as far as the host has room for them. */
void block_poison(struct bsim *bs, const struct node_block *block);
/* The block that has the page at va. */
const struct node_block *allocation_frame(const struct allocation *a, uint64_t va);

/* ---- gone.c: memory that was given back ---- */

/* An allocation is: false if nobody uses it; else it is held until nobody does. */
bool gone_hold_locked(struct bsim *bs, struct allocation *a);
/* Driver call `sent`, or an entry that it sent, does not use [va, va + bytes) any more. */
void gone_release_locked(struct bsim *bs, uint64_t va, uint64_t bytes, uint64_t sent);
/* Notes that `call`, a literal, gives [va, va + bytes) back, memory of the host or not. */
void gone_note_locked(struct bsim *bs, bool host, uint64_t va, uint64_t bytes, const char *call);
/* Which call after driver call `since` gave memory at va back, as far as it is remembered
 * (npu_text()), and whether a device was reset since. NULL: none. */
const char *gone_text_locked(const struct bsim *bs, uint64_t va, uint64_t since);
/* What this process holds, by the stacks that made it: node_on_question(). Takes the lock. */
char *place_holdings(void *bsim);
/* node_block_drop() of a handle's or an allocation's block, at the end of the call, or of the
 * copies under way that use it. */
static inline void gone_block_locked(struct bsim *bs, struct node_block *block)
{
	g_ptr_array_add(bs->allocs->gone_blocks, block);
}
void gone_close_locked(struct bsim *bs);
/* Ends what nobody uses; the kernel has its pages while the lock is let go of. */
void gone_end_locked(struct bsim *bs);
/* The same of heaps without addresses. */
void gone_end_pools_locked(struct bsim *bs);
static inline void gone_locked(struct bsim *bs)
{
	const struct alloc_table *t = bs->allocs;

	if (t->gone_blocks->len != 0 || !LIST_EMPTY(&t->held) || !LIST_EMPTY(&t->gone_mappings))
		gone_end_locked(bs);
	if (t->gone_pools != NULL)
		gone_end_pools_locked(bs);
}

/* ---- fault.c ---- */

/* Reports a host access to device memory before the program gets its SIGSEGV: installs the handler
 * over the program's, and again where SIG_DFL or that one was put over ours. For each call that
 * makes device addresses; bsim.lock held. */
void fault_install(void);

#endif
