/* SPDX-License-Identifier: Apache-2.0
 *
 * backend-sim inside: one object, one lock, and who owns what.
 *
 *   bsim.c       this object: opening and ending it, the driver table, statistics
 *   device.c     devices: opening and closing them, their properties, peer access
 *   contract.c   the two contracts: one table of every difference, and the notes
 *   window.c     the SVM window: address space, 1 GiB heaps, NoUC ranges
 *   reserve.c    reservations
 *   anywhere.c   the other dialect: reservations anywhere, access by device, descriptors
 *   handle.c     physical handles: create, release, retain; their references
 *   share.c      export and import of handles between processes
 *   mapping.c    map, unmap
 *   access.c     who may reach a mapping; address range, attributes
 *   tables.c     page tables: where their memory comes from, extents to leaves
 *   place.c      what lies at an address
 *   pool.c       heaps of classic allocations
 *   alloc.c      classic allocations: device memory, pinned host memory, memory information
 *   ipc.c        IPC names of classic allocations; host memory registered for devices
 *   copy.c       synchronous copies and fills
 *   touch.c      accesses of a core, for time alone
 *   queue.c      submission and completion queues, events, the idle thread (queue.h has its files)
 *   fault.c      the report of a host access to device memory
 *   leaks.c      what is left at exit
 *   node*.c      the node that processes share (node.h)
 *
 * Lock order: bsim.lock (this process), then the node's (all processes). sim.h is called under
 * bsim.lock only. A function named *_locked is called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_H
#define NPUSIM_BSIM_H

#include <pthread.h>

#include "base/base.h"
#include "node.h"
#include "npusim/driver.h"
#include "page-table.h"
#include "sim.h"

#define BSIM_DEVICE_MAX   16
#define BSIM_HOST_ID      65     /* the driver's id of the host */
#define BSIM_SOC_ANYWHERE "H100" /* of NPU_DIALECT_ANYWHERE, where NPUSIM_SOC is not set */

enum bsim_contract { BSIM_DOCS, BSIM_DRIVER };

/* A device as this process has it: page table, engines' settings. Index SIM_NODE_HOST - the host -
 * is kept apart. */
struct bsim_space {
	struct page_table pt;
	struct node_block **table_blocks; /* frames that the page table's tables are cut from */
	unsigned table_block_count;
	uint64_t free_table_pa; /* chain of free 4 KiB tables: each holds the next one's address */
	uint64_t mapped_bytes;
	uint64_t table_peak;
	uint64_t leaves[3];                    /* live, of 4 KiB, 2 MiB, 1 GiB */
	uint64_t fresh_table_pa, fresh_tables; /* tables of the newest block that were never used */
};
struct bsim_device {
	bool open;
	struct bsim_space space;
	uint32_t peers; /* bit p: P2P enabled from this device to device p */
};

struct bsim {
	struct npu_driver driver; /* first: the driver's self is the bsim */
	pthread_mutex_t lock;
	enum bsim_contract contract;
	enum npu_dialect dialect; /* fixed once any_open */
	bool timing;
	bool contents; /* copies and fills move bytes */
	struct sim_profile profile;
	struct node *node; /* joined at the first device's opening */
	struct sim *sim;
	unsigned devices; /* known before joining: from the environment, else the running node's */
	bool shape_known; /* the running node, if any, has been looked at */
	bool any_open;    /* a device has been opened: the window exists */
	struct bsim_device device[BSIM_DEVICE_MAX];
	struct bsim_space host; /* page table of host memory that handles map */
	uint64_t calls; /* bsim_enter() counts with __atomic_add_fetch: the idle thread reads it
			   without the lock */
	uint64_t call_count[SIM_CALL_COUNT], call_ps[SIM_CALL_COUNT];
	uint64_t call_number; /* of the call that runs, counted from 1: the sum of call_count, and 1
			       */
	struct node_config config; /* what was asked for; the node's shape once joined */
	struct window *window;
	struct mapping *mappings, *unused_mappings, *mapping_blocks;
	struct handle_table *handles;
	struct alloc_table *allocs;
	struct queue_set *queues;
};

/* The one object of the process: fault.c and leaks.c need it outside of a call. NULL before and
 * after its life. */
extern struct bsim *bsim_process;

static inline struct bsim *bsim_of(struct npu_driver *self)
{
	return (struct bsim *)self;
}

/* No device is open. The SoC is the dialect's where none was named. */
drvError_t bsim_set_dialect_locked(struct bsim *bs, enum npu_dialect dialect);

/* Entry and exit of every driver function that touches state. bsim_enter() takes the lock; it fails
 * (message set) in a forked child with PROCESS_EXIT. bsim_leave() lets time pass for the call,
 * counts it, and unlocks. */
drvError_t bsim_enter(struct bsim *bs);
/* Ends a call that was `call` on `pages` pages of 2^page_lg2 bytes and is about to return `result`:
 * failed calls cost a query. Returns result. */
drvError_t bsim_leave(struct bsim *bs, enum sim_call call, uint64_t pages, unsigned page_lg2,
		      drvError_t result);
/* Simulated time of the calling program. */
uint64_t bsim_now_locked(struct bsim *bs);
/* Requires a device to be open: INVALID_HANDLE and a message "no device has been opened: call
 * aclrtSetDevice first". */
drvError_t bsim_require_open_locked(struct bsim *bs, const char *call);
/* Requires this device to be open. False, and a message: which code that is differs by call. */
bool bsim_require_device_locked(struct bsim *bs, const char *call, unsigned device);
/* The device's space, or the host's for SIM_NODE_HOST. */
struct bsim_space *bsim_space(struct bsim *bs, unsigned memory);

/* ---- mapping.c: what lies at an address ---- */

enum bsim_place_kind {
	PLACE_PAGEABLE,   /* outside the SVM window and the NoUC ranges: the program's own memory */
	PLACE_PINNED,     /* halMemAlloc'ed host memory: ordinary memory of this process inside the
			     window */
	PLACE_REGISTERED, /* a device's address of registered host memory: host_va is where the
			     bytes are */
	PLACE_CLASSIC,    /* halMemAlloc'ed device memory */
	PLACE_MAPPED,     /* a live mapping of a handle */
	PLACE_RESERVED,   /* a reservation, nothing mapped here */
	PLACE_FREE        /* in the window, not allocated */
};
struct bsim_place {
	enum bsim_place_kind kind;
	unsigned memory; /* CLASSIC, MAPPED: device whose page table translates, or SIM_NODE_HOST;
			    RESERVED: what it is bound to, or SIM_NODE_MAX */
	bool imported;   /* MAPPED: the handle came from another process */
	uint32_t readers, writers; /* MAPPED: bit d: device d may */
	bool cpu;                  /* MAPPED: the CPU may */
	uint64_t base, bytes; /* the mapping, allocation or reservation that va lies in; 0, 0 for
				 PAGEABLE and FREE */
	uint64_t host_va; /* PAGEABLE, PINNED: va; REGISTERED: where the CPU finds the byte at va */
};
void bsim_locate_locked(struct bsim *bs, uint64_t va, struct bsim_place *out);
/* "0x12c000200000 (2 MiB into the mapping at 0x12c000000000, 4 MiB, device 0)": for messages; a
 * static buffer a thread. */
const char *bsim_place_text_locked(struct bsim *bs, uint64_t va);

/* ---- copy.c ---- */

/* How the bytes at va are reached: SIM_RAW for the program's own and pinned memory, else the space.
 * All of [va, va + bytes) must be one kind of place (it may span mappings); IOCRL_FAIL and a
 * message that names the first byte that is not mapped. */
drvError_t copy_ref_locked(struct bsim *bs, const char *call, const char *argument, uint64_t va,
			   uint64_t bytes, struct sim_ref *out);

/* ---- queue.c ---- */

/* The idle thread, and what the queues need at opening and end. */
bool queue_open(struct bsim *bs, char **error);
/* Called without bsim.lock: ends the idle thread, sends home who waits (PROCESS_EXIT). Does nothing
 * in a forked child, nor where queue_open() was not called. */
void queue_close(struct bsim *bs);
/* What is due by the host's time takes effect: runs the model up to it, looks at value waits and
 * time-outs. bsim_leave() calls it after it has let time pass; cheap where nothing is due. */
void queue_catch_up_locked(struct bsim *bs);
/* halDeviceClose: the device's queues and ids go; what its engines have begun ends by itself. */
void queue_device_close_locked(struct bsim *bs, unsigned device);

/* ---- contract.c ---- */

/* One row for every case in which documentation and driver differ. contract.c has the codes, the
 * rule's id and the source. */
enum contract_row {
	CONTRACT_HINT_NOT_1G_ALIGNED, /* R5: 107000; driver: 2 MiB + power of two suffices up to 512
					 MiB */
	CONTRACT_HINT_TAKEN,          /* R6: 207001; driver BUSY 507899 */
	CONTRACT_HINT_OUT_OF_WINDOW,  /* R6: 207001; driver BUSY 507899 */
	CONTRACT_CREATE_UNALIGNED,    /* P3: rounded up; driver PARA_ERROR 507899 */
	CONTRACT_CREATE_MANAGED,      /* location type 3 */
	CONTRACT_MAP_SMALLER,         /* M2: 107000; driver accepts */
	CONTRACT_MAP_LARGER,          /* M2: 107000; driver OUT_OF_MEMORY 207001 */
	CONTRACT_MAP_UNALIGNED_SIZE,  /* M2: 107000; driver PARA_ERROR 507899 */
	CONTRACT_MAP_MIXED_IMPORT,    /* M6: 107000; driver accepts */
	CONTRACT_IMPORT_SAME_PROCESS, /* I5: 507899 on any device; driver: another device is allowed
				       */
	CONTRACT_SYNC_COPY_TWO_DEVICES, /* R8: 507899; driver copies */
	CONTRACT_NOUC_NEEDS_910C,       /* docs: 207000 on 910B; driver: any */
	CONTRACT_ROW_COUNT
};
/* Under the active contract: true if the row's documented answer applies. Leaves the note of what
 * the other contract would have answered (once a row and call name at level warn, then debug). */
bool contract_docs_apply(struct bsim *bs, enum contract_row row, const char *call);
/* The code of the active contract for a row in which both fail, with the note. */
drvError_t contract_code(struct bsim *bs, enum contract_row row, const char *call);

#endif
