// SPDX-License-Identifier: Apache-2.0
//
// Jobs without time: the same tables, the same bytes, no TLBs and no kernel.
#ifndef NPUSIM_SIM_FUNCTIONAL_H
#define NPUSIM_SIM_FUNCTIONAL_H

#include "sim/mmu/mmu-state.h"
#include "sim/sim.h"

namespace npusim
{

// Does the job at once; everything but its times is set. Thread-safe where the caller's lock is
// held.
void run_functionally(sim_job *job, const sim_memory *memory, const mmu_root *roots);

} // namespace npusim

#endif
