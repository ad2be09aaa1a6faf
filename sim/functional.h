// SPDX-License-Identifier: Apache-2.0
//
// Jobs without time: the same page tables and the same bytes, but no TLBs and no kernel. For
// simulations without timing, and for debug transport.
#ifndef NPUSIM_SIM_FUNCTIONAL_H
#define NPUSIM_SIM_FUNCTIONAL_H

#include "sim/mmu/mmu-state.h"
#include "sim/transport/bytes.h"

namespace npusim
{

// Notes where [va, va + bytes) lies by the tables under root_pa, up to a fault. Returns how many
// bytes can be reached; *out_status: why no more, or SIM_OK.
uint64_t find_mapped(const sim_memory *memory, uint64_t root_pa, uint64_t va, uint64_t bytes,
		     bool write, span_list &spans, sim_status *out_status);

// Does the job at once; everything but its times is set. Thread-safe where the caller's lock is
// held.
void run_functionally(sim_job *job, const sim_memory *memory, const mmu_root *roots);

} // namespace npusim

#endif
