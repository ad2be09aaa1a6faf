/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one device's MMU: an L1 TLB for each lane (the port of an engine or a core), an L2
 * TLB that holds every page that an L1 TLB holds, walkers, a walk cache. Plain code: it takes the
 * current time and returns when a translation will be available; descriptors are read through a
 * callback, which knows how long that takes.
 */
#ifndef NPUSIM_SIM_MMU_MMU_STATE_H
#define NPUSIM_SIM_MMU_MMU_STATE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/job.h"
#include "tlb.h"

G_BEGIN_DECLS

#define MMU_SPACES 32

/* What of a space any TLB of any device may have: to invalidate what nobody has is cheap. */
#define MMU_REGIONS 4096u
struct shootdown_filter {
	uint32_t devices[MMU_SPACES]; /* bit d: device d has entries of the space */
	uint32_t region[MMU_REGIONS]; /* L2 entries of up to 2 MiB by hash of space and region */
};

/* What all MMUs of the simulation have in common. */
struct mmu_shared {
	struct shootdown_filter filter;
	uint64_t root_pa[MMU_SPACES]; /* of the tables that translate */
	uint64_t changes;             /* of what they say, but for pages that come; so far */
};

struct mmu_memory {
	/* Reads a descriptor at at_ps; returns when it is there. Tables may change meanwhile. */
	uint64_t (*read)(void *ctx, uint64_t pa, uint64_t at_ps);
	void *ctx;
	const struct sim_memory *tables; /* that they are in */
};

struct mmu_state;

/* counters: of the device; the tlb_ and walk ones are counted there, but for what the TLBs have. */
struct mmu_state *mmu_state_new(const struct sim_profile *profile, unsigned device, unsigned lanes,
				struct mmu_shared *shared, const struct mmu_memory *memory,
				struct sim_counters *counters);
void mmu_state_free(struct mmu_state *mmu);

struct mmu_answer {
	uint64_t pa;
	unsigned page_lg2;
	bool is_own; /* all of the page is in the device's own memory; else look */
	uint64_t done_ps;
};

/* Translates va of `space` for a lane at at_ps. *out is always set; out->pa only with SIM_OK. */
enum sim_status mmu_translate(struct mmu_state *mmu, unsigned lane, unsigned space, uint64_t va,
			      bool write, uint64_t at_ps, struct mmu_answer *out);

/* The same for the first of the rows: those that hit the TLBs, lie in 4 KiB of the device's own
 * memory each, and may be accessed. They have physical addresses then, and the times when those are
 * known. bytes: of each; 0: none crosses 4 KiB. Returns how many; the one behind them was looked
 * up, which changes nothing. */
unsigned mmu_translate_rows(struct mmu_state *mmu, unsigned lane, unsigned space, bool write,
			    uint64_t at_ps, uint64_t bytes, struct sim_row *rows, unsigned count);

/* Drops what this MMU has of [va, va + bytes) of the space, walk cache included. */
void mmu_state_invalidate(struct mmu_state *mmu, unsigned space, uint64_t va, uint64_t bytes);

uint64_t mmu_state_live_bytes(const struct mmu_state *mmu);

G_END_DECLS

#endif
