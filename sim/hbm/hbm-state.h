/* SPDX-License-Identifier: Apache-2.0
 *
 * What hbm.c remembers of an HBM: banks and their rows, pseudo channels with their activations,
 * queues and pending writes, and the clocks that all of them share.
 */
#ifndef NPUSIM_SIM_HBM_HBM_STATE_H
#define NPUSIM_SIM_HBM_HBM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hbm-bus.h"
#include "hbm-map.h"
#include "hbm-record.h"
#include "sim/job.h"

#define NO_ROW     UINT32_MAX
#define ACTS       32u /* activations remembered */
#define ACTS_BACK  4u  /* of them that tRRD may keep another one from */
#define ACTS_AHEAD 3u
#define ACTS_BEGIN (UINT64_C(1) << 32) /* clock 0 of them: more than any distance behind none */
#define GROUP_BITS 4                   /* a profile has at most 16 bank groups */
#define GROUPS_MAX BUS_GROUPS
#define OLD_ROWS   4u /* rows of a bank that are open until a precharge which is placed ahead */
#define WRITES_MAX 64
#define OFFER_WORK 128u /* between two offers of the lock: some 10 us */

struct bank {
	uint64_t act;    /* of the open row */
	uint64_t pre_ok; /* earliest precharge */
	uint64_t act_ok; /* earliest activation */
	uint64_t stripe; /* number of the stripe that last set it */
	uint32_t row;
	uint32_t epoch; /* refreshes before act */
	uint32_t old_row[OLD_ROWS];
	uint32_t old_next;
};

/* A row that was open before: from its activation to its precharge. */
struct old_row {
	uint64_t act, pre;
};

struct pending_write {
	struct hbm_place place;
	uint32_t bursts;
};

/* What every request touches comes first. */
struct pseudo {
	struct bank *bank;
	uint64_t *queue; /* ring: when the requests taken last will be done */
	unsigned queue_next, act_first;
	uint64_t stripe;
	uint64_t floor; /* no CAS before here */
	struct hbm_bus bus;
	uint64_t last_read, last_write; /* latest CAS of either kind */
	unsigned writes;
	struct old_row *old; /* OLD_ROWS of each bank */
	/* after a batch of writes: reads of a bank group that was written to wait longer */
	uint64_t group_floor[GROUPS_MAX];
	/* from act_first on the latest ACTS activations, in order of time: (ACTS_BEGIN + clock) <<
	 * GROUP_BITS | bank group; 0: none; then one that is never reached */
	uint64_t acts[2 * ACTS + 1];
	struct pending_write write[WRITES_MAX];
	uint64_t write_free[WRITES_MAX]; /* when the places are free again */
} __attribute__((aligned(64)));

struct hbm {
	struct hbm_map map;
	uint64_t tck_ps;
	unsigned pseudos, banks, bank_bits, queue_limit, write_limit, burst_bytes, burst_lg2;
	uint64_t piece_bytes; /* of the largest block that is one row's and less than BULK_BURSTS */
	struct sim_hbm_clocks t;
	uint64_t burst;
	bool faw;     /* is not had anyway */
	bool one_rrd; /* is all that keeps activations apart */
	struct hbm_bus_shape bus;
	bool refreshes;
	uint64_t refresh_period, refresh_length, refresh_step;
	/* of the clock asked for last: where it begins, and which part of it has no refresh */
	uint64_t epoch, epoch_begin, quiet_from, quiet_clocks;
	unsigned stripe_lg2;        /* bytes of one row of every bank */
	unsigned columns_below[64]; /* bits of the column below an address bit */
	uint64_t column_mask;       /* of an address */
	/* what a whole stripe leaves behind in all banks, not yet written into them */
	uint64_t stripe, stripe_end;
	uint32_t stripe_row;
	bool stripe_write;
	uint64_t latest;
	struct pseudo *pseudo;
	struct bank *bank; /* of all of them */
	uint64_t bytes[2]; /* read, written */
	uint64_t requests, bursts, row_misses;
	struct hbm_record record;
	struct sim_lock *lock;
	uint64_t offer_above; /* bytes of a block */
	unsigned work;        /* since the last offer: pieces of rows that had their times */
};

#endif
