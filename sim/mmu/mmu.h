// SPDX-License-Identifier: Apache-2.0
//
// The MMU as a module: requests by virtual address come in from the engines; requests by physical
// address go out, to the device's own memory or to the interconnect, split at pages. State and
// policy are mmu-state's. A foreign initiator's addresses belong to the MMU's own device, and it
// has a lane of its own, unless its payload has an access extension that says otherwise.
#ifndef NPUSIM_SIM_MMU_MMU_H
#define NPUSIM_SIM_MMU_MMU_H

#include "sim/mmu/mmu-state.h"
#include "sim/transport/socket.h"

namespace npusim
{

class mmu : public sc_core::sc_module, public target
{
public:
	target_socket in;
	request_socket local;  // to the device's own memory
	request_socket remote; // to that of others

	mmu(sc_core::sc_module_name name, unsigned device);
	~mmu() override;
	// lanes: of the device's engines. counters: of the device.
	void reset(const sim_config *config, unsigned lanes, mmu_shared *shared,
		   sim_counters *counters);

	mmu_state *state() const
	{
		return m_state;
	}
	void serve(access &request) override;
	unsigned serve_rows(access &request, sim_row *rows, unsigned count) override;

protected:
	uint64_t locate(access &request) const override;

private:
	bool forward_page(access &request, uint64_t va, uint64_t left, uint64_t &issue_ps,
			  uint64_t &end_ps);
	// is_own: whether pa is in the device's own memory.
	uint64_t forward(access &request, bool is_own, uint64_t pa, uint64_t bytes, uint64_t at_ps);
	void expect_rows(int space, const sim_row *rows, unsigned count) const;
	static uint64_t read_descriptor(void *ctx, uint64_t pa, uint64_t at_ps);

	const unsigned m_device;
	unsigned m_foreign_lane = 0;
	const sim_profile *m_profile = nullptr;
	mmu_shared *m_shared = nullptr;
	sim_counters *m_counters = nullptr;
	mmu_state *m_state = nullptr; // had at the first request: an idle device costs nothing
	access m_walk;
};

} // namespace npusim

#endif
