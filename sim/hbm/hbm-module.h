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

	hbm_module(sc_core::sc_module_name name, unsigned device)
	    : sc_module(name), in("in"), m_device(device)
	{
		in.bind(*this);
	}
	~hbm_module() override
	{
		hbm_free(m_hbm);
	}
	// origin_ps: in the model's time; clocks and refreshes count from there, so that a
	// simulation's times do not hang on when it was opened.
	void reset(const sim_config *config, uint64_t origin_ps)
	{
		g_clear_pointer(&m_hbm, hbm_free);
		m_profile = config->profile;
		m_lock = config->lock;
		m_origin_ps = origin_ps;
		set_memory(config->memory, m_device);
	}
	void get_counters(sim_counters *out) const
	{
		if (m_hbm)
			hbm_get_counters(m_hbm, out);
	}
	void serve(access &request) override
	{
		// The HBM has a clock and addresses of its own. Both count from 0.
		request.done_ps =
			m_origin_ps + hbm_access(state(), SIM_PA_OFFSET(request.address),
						 request.length, request.write,
						 request.at_ps - m_origin_ps, &request.first_ps);
		request.first_ps += m_origin_ps;
	}
	unsigned serve_rows(access &request, sim_row *rows, unsigned count) override
	{
		hbm_access_rows(state(), rows, count, request.length, request.write, m_origin_ps);
		return count;
	}
	bool takes_rows() const override
	{
		return true;
	}

private:
	hbm *state()
	{
		if (!m_hbm)
			m_hbm = hbm_new(m_profile, m_lock);
		return m_hbm;
	}

	const unsigned m_device;
	const sim_profile *m_profile = nullptr;
	sim_lock *m_lock = nullptr;
	uint64_t m_origin_ps = 0;
	hbm *m_hbm = nullptr; // had at the first access: a device that nobody uses costs nothing
};

} // namespace npusim

#endif
