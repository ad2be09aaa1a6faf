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

// Does the job at once; everything but its times is set. Lets go of the lock, if there is one,
// while bytes move.
void run_functionally(sim_job *job, const sim_memory *memory, const uint64_t *roots,
		      sim_lock *lock);
// Whether a job whose bytes are on their way uses any of these; under the lock.
bool functional_uses(const unsigned char *at, uint64_t bytes);

} // namespace npusim

#endif
