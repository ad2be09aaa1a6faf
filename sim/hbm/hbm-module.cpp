// SPDX-License-Identifier: Apache-2.0
//
// Requests to the HBM.
#include "hbm-module.h"

namespace npusim
{

hbm_module::hbm_module(sc_core::sc_module_name name) : sc_module(name), in("in")
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
}

void hbm_module::expect(uint64_t pa)
{
	if (m_hbm)
		hbm_expect(m_hbm, SIM_PA_OFFSET(pa));
}

void hbm_module::get_counters(hbm_counters *out) const
{
	*out = hbm_counters();
	if (m_hbm)
		hbm_get_counters(m_hbm, out);
}

void hbm_module::b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &delay)
{
	access &request = access_of(payload);
	// Of the HBM's own time: the origin is never after what is asked for.
	uint64_t now = request.now_ps - m_origin_ps, first;

	if (!m_hbm)
		m_hbm = hbm_new(m_profile);
	delay = ps(hbm_access(m_hbm, SIM_PA_OFFSET(payload.get_address()),
			      payload.get_data_length(),
			      payload.get_command() == tlm::TLM_WRITE_COMMAND, now + to_ps(delay),
			      &first) -
		   now);
	request.first_ps = first + m_origin_ps;
	payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

} // namespace npusim
