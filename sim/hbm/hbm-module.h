// SPDX-License-Identifier: Apache-2.0
//
// The HBM of one device as a module: a target by physical address. State and timing are hbm's.
#ifndef NPUSIM_SIM_HBM_HBM_MODULE_H
#define NPUSIM_SIM_HBM_HBM_MODULE_H

#include "sim/hbm/hbm.h"
#include "sim/transport/socket.h"

namespace npusim
{

class hbm_module : public sc_core::sc_module, public target
{
public:
	target_socket in;

	hbm_module(sc_core::sc_module_name name, unsigned device);
	~hbm_module() override;
	// origin_ps: in the kernel's time; clocks and refreshes count from there, so that a
	// simulation's times do not hang on when it was opened.
	void reset(const sim_config *config, uint64_t origin_ps);
	void get_counters(sim_counters *out) const;
	void serve(access &request) override;

private:
	const unsigned m_device;
	const sim_profile *m_profile = nullptr;
	uint64_t m_origin_ps = 0;
	hbm *m_hbm = nullptr; // had at the first access: a device that nobody uses costs nothing
};

} // namespace npusim

#endif
