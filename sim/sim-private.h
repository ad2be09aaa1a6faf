/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests may do to a simulation, beside sim.h. Nothing else includes it.
 */
#ifndef NPUSIM_SIM_SIM_PRIVATE_H
#define NPUSIM_SIM_SIM_PRIVATE_H

#include "sim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The next sim_invalidate() is lost: stale translations stay. */
void sim_drop_next_invalidation(struct sim *sim);

#ifdef __cplusplus
}
#endif

#endif
