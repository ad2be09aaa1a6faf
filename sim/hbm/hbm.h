/* SPDX-License-Identifier: Apache-2.0
 *
 * The HBM of one device: banks, open rows, the buses of the pseudo channels, refresh. Plain code:
 * it computes when the bytes of a request will have arrived, and updates the state that the next
 * request sees. It holds no data and is independent of the kernel. See TIMING.md for the rules and
 * what they leave out.
 */
#ifndef NPUSIM_SIM_HBM_HBM_H
#define NPUSIM_SIM_HBM_HBM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hbm-map.h"
#include "sim/job.h"

G_BEGIN_DECLS

struct hbm;

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

/* `profile` is only read during the call. `lock` (NULL: nobody else calls) is borrowed, and offered
 * within long accesses. */
struct hbm *hbm_new(const struct sim_profile *profile, struct sim_lock *lock);
void hbm_free(struct hbm *hbm);

/* The bytes [offset, offset + bytes) are asked for at at_ps; they lie within the device. Returns
 * when the last of them has been read, or taken (writes are posted: they are in the row later).
 * *out_first_ps (may be NULL): when the first has. Requests come in the order of at_ps but for
 * small inversions, which only blur the order of service. Cost: one step for each row piece, and
 * one for each whole stripe (every bank's row of that number). */
uint64_t hbm_access(struct hbm *hbm, uint64_t offset, uint64_t bytes, bool write, uint64_t at_ps,
		    uint64_t *out_first_ps);

/* hbm_access() of SIM_ROWS_MAX rows of as many bytes at most, one after the other, by physical
 * address (of the server's own devices) and in the model's time, in which the HBM's own begins at
 * origin_ps. */
void hbm_access_rows(struct hbm *hbm, struct sim_row *rows, unsigned count, uint64_t bytes,
		     bool write, uint64_t origin_ps);

/* Sets the hbm_ counters, up to the time of the latest access. */
void hbm_get_counters(const struct hbm *hbm, struct sim_counters *out);

G_END_DECLS

#endif
