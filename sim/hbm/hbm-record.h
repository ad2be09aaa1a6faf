/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of the commands that an HBM issues, for tests and for export. Where nobody asks for
 * one it costs a comparison, and plain reads nothing.
 */
#ifndef NPUSIM_SIM_HBM_HBM_RECORD_H
#define NPUSIM_SIM_HBM_HBM_RECORD_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hbm-map.h"

G_BEGIN_DECLS

enum hbm_command { HBM_ACTIVATE, HBM_PRECHARGE, HBM_READ, HBM_WRITE, HBM_REFRESH };

/* A record of the commands that an HBM issues, but for refreshes and the precharges before them,
 * which follow from the profile (TIMING.md): in the order in which they are scheduled, not that of
 * their clocks. Nothing is said of runs that are booked in one step. */
struct hbm_record {
	/* NULL: nobody asks. The column is that of reads and writes. */
	void (*call)(enum hbm_command command, const struct hbm_place *place, uint64_t clock);
	struct hbm_place place; /* of what is served */
};

/* Of the HBMs that are made from now on. */
extern struct hbm_record hbm_record_next;

static inline void hbm_record_row(const struct hbm_record *record, enum hbm_command command,
				  uint32_t row, uint64_t clock)
{
	struct hbm_place place;

	if (G_LIKELY(!record->call))
		return;
	place = record->place;
	place.row = row;
	record->call(command, &place, clock);
}

static inline void hbm_record_bursts(const struct hbm_record *record, bool write, unsigned bursts,
				     uint64_t clock, uint64_t step)
{
	struct hbm_place place;

	if (G_LIKELY(!record->call))
		return;
	place = record->place;
	for (; bursts > 0; bursts--, place.column++, clock += step)
		record->call(write ? HBM_WRITE : HBM_READ, &place, clock);
}

G_END_DECLS

#endif
