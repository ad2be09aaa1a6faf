// SPDX-License-Identifier: Apache-2.0
//
// The MMU as a module: requests by virtual address come in from the engines, requests by physical
// address go out, to the device's own memory or to the interconnect, split at pages. State and
// policy are mmu-state's.
#ifndef NPUSIM_SIM_MMU_MMU_H
#define NPUSIM_SIM_MMU_MMU_H

#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include "sim/engine/access.h"
#include "sim/engine/target.h"
#include "sim/mmu/mmu-state.h"

namespace npusim
{

class mmu : public sc_core::sc_module, public target
{
public:
	target_socket in;
	tlm_utils::simple_initiator_socket<mmu> local;
	tlm_utils::simple_initiator_socket<mmu> remote;

	mmu(sc_core::sc_module_name name, unsigned device);
	~mmu() override;
	void reset(const sim_config *config, unsigned lanes, mmu_presence *presence);

	mmu_state *state() const
	{
		return m_state;
	}
	void b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &delay) override;
	void end_of_elaboration() override;

private:
	bool forward_page(tlm::tlm_generic_payload &payload, access &request, uint64_t va,
			  uint64_t left, uint64_t &issue_ps, uint64_t &end_ps);
	uint64_t forward(tlm::tlm_generic_payload &payload, access &request, uint64_t pa,
			 uint64_t bytes, uint64_t at_ps);
	static uint64_t read_descriptor(void *ctx, uint64_t pa, uint64_t at_ps);
	static void *descriptor_at(void *ctx, uint64_t pa);
	static void expect_page(void *ctx, uint64_t pa);

	const unsigned m_device;
	target *m_local = nullptr; // behind the socket
	const sim_memory *m_memory = nullptr;
	mmu_state *m_state = nullptr;
	uint64_t m_now_ps = 0; // of the request under way
	access_payload m_walk;
};

} // namespace npusim

#endif
