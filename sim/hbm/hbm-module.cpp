// SPDX-License-Identifier: Apache-2.0
//
// Serves requests to the HBM module with the timing of hbm.c.
#include "hbm-module.h"

namespace npusim
{

hbm_module::hbm_module(sc_core::sc_module_name name, unsigned device)
    : sc_module(name), in("in"), m_device(device)
{
	in.bind(*this);
}

hbm_module::~hbm_module()
{
	hbm_free(m_hbm);
}

void hbm_module::reset(const sim_config *config, uint64_t origin_ps)
{
	hbm_free(m_hbm);
	m_hbm = nullptr;
	m_profile = config->profile;
	m_origin_ps = origin_ps;
	set_memory(config->memory, m_device);
}

void hbm_module::get_counters(sim_counters *out) const
{
	if (m_hbm)
		hbm_get_counters(m_hbm, out);
}

void hbm_module::serve(access &request)
{
	if (!m_hbm)
		m_hbm = hbm_new(m_profile);
	// Of the HBM's own time: the origin is never after what is asked for.
	request.done_ps = m_origin_ps + hbm_access(m_hbm, SIM_PA_OFFSET(request.address),
						   request.length, request.write,
						   request.at_ps - m_origin_ps, &request.first_ps);
	request.first_ps += m_origin_ps;
}

} // namespace npusim
