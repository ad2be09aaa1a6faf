// SPDX-License-Identifier: Apache-2.0
//
// Carries requests between the servers of a supernode.
#include "plane.h"

#include <algorithm>

namespace npusim
{

plane::plane(sc_core::sc_module_name name, unsigned devices)
    : sc_module(name), in("in", devices), m_ports(devices)
{
	for (unsigned i = 0; i < devices; i++) {
		m_ports[i].of = this;
		in[i].bind(m_ports[i]);
	}
}

plane::~plane()
{
	for (port &it : m_ports)
		for (bandwidth &link : it.link)
			bandwidth_clear(&link);
}

void plane::reset(const sim_config *config, uint64_t origin_ps)
{
	m_profile = config->profile;
	for (port &it : m_ports) {
		it.set_memory(config->memory);
		for (bandwidth &link : it.link) {
			bandwidth_clear(&link);
			bandwidth_init(&link, link_slice_lg2, link_slices_lg2, origin_ps);
		}
	}
}

void plane::port::serve(access &request)
{
	sim_remote kind = sim_remote_of(SIM_PA_NODE(request.address), request.write);
	const sim_remote_cost &cost = of->m_profile->remote[kind];
	uint64_t end, start;

	if (!cost.bytes_per_us) { // the device is in no supernode
		request.status = SIM_FAULT_ADDRESS;
		request.done_ps = request.first_ps = request.at_ps;
		return;
	}
	start = bandwidth_take(&link[kind], transfer_ps(request.length, cost.bytes_per_us),
			       request.at_ps, &end);
	// A stream's own rate begins with its first byte.
	if (cost.engine_bytes_per_us)
		end = std::max(end, start + transfer_ps(request.length, cost.engine_bytes_per_us));
	request.first_ps = start + cost.ps;
	request.done_ps = end + cost.ps;
}

} // namespace npusim
