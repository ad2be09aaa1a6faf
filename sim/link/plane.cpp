// SPDX-License-Identifier: Apache-2.0
//
// Carries requests between the servers of a supernode.
#include "plane.h"

#include <algorithm>

#include "sim/link/slices.h"

namespace npusim
{

plane::plane(sc_core::sc_module_name name, unsigned devices)
    : sc_module(name), in("in", devices), m_port(devices)
{
	for (unsigned i = 0; i < devices; i++) {
		m_port[i].of = this;
		m_port[i].device = i;
		in[i].bind(m_port[i]);
	}
}

plane::~plane()
{
	clear();
}

void plane::clear()
{
	for (auto &link : m_links)
		bandwidth_clear(&link.second);
	m_links.clear();
}

void plane::reset(const sim_config *config, uint64_t origin_ps)
{
	clear();
	m_profile = config->profile;
	m_extra_ps = config->peer_extra_ps;
	m_origin_ps = origin_ps;
	for (port &it : m_port)
		it.set_memory(config->memory);
}

bandwidth &plane::link(unsigned device, sim_remote kind)
{
	auto found = m_links.find({ device, kind });

	if (found == m_links.end()) {
		found = m_links.emplace(std::make_pair(device, kind), bandwidth()).first;
		bandwidth_init(&found->second, link_slice_lg2, link_slices_lg2, m_origin_ps);
	}
	return found->second;
}

void plane::port::serve(access &request)
{
	unsigned node = SIM_PA_NODE(request.address);
	sim_remote kind = sim_remote_of(node, request.write);
	const sim_remote_cost &cost = of->m_profile->remote[kind];
	uint64_t latency = cost.ps, end, start;

	if (!cost.bytes_per_us) {
		request.status = SIM_FAULT_ADDRESS;
		request.done_ps = request.first_ps = request.at_ps;
		return;
	}
	if (of->m_extra_ps)
		latency += of->m_extra_ps[SIM_PEER_SERVER(node)];
	start = bandwidth_take(&of->link(device, kind),
			       transfer_ps(request.length, cost.bytes_per_us), request.at_ps, &end);
	request.first_ps = start + latency;
	/* A stream's own rate begins with its first byte. */
	if (cost.engine_bytes_per_us)
		end = std::max(end, start + transfer_ps(request.length, cost.engine_bytes_per_us));
	request.done_ps = end + latency;
}

} // namespace npusim
