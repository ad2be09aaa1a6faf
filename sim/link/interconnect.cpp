// SPDX-License-Identifier: Apache-2.0
//
// Carries requests over the links between devices and host.
#include "interconnect.h"

#include <algorithm>

namespace npusim
{

interconnect::interconnect(sc_core::sc_module_name name, unsigned devices)
    : sc_module(name), in("in", devices), out("out", devices), m_gate(devices)
{
	for (unsigned i = 0; i < devices; i++) {
		m_gate[i].of = this;
		m_gate[i].device = i;
		in[i].bind(m_gate[i]);
	}
}

interconnect::~interconnect()
{
	clear();
}

void interconnect::clear()
{
	for (bandwidth &link : m_links)
		bandwidth_clear(&link);
}

void interconnect::reset(const sim_config *config, uint64_t origin_ps)
{
	bandwidth idle;

	clear();
	bandwidth_init(&idle, link_slice_lg2, link_slices_lg2, origin_ps);
	m_profile = config->profile;
	m_memory = config->memory;
	m_devices = config->devices;
	for (gate &it : m_gate)
		it.set_memory(m_memory);
	m_links.assign(m_devices * (peers_at + m_devices), idle);
}

// Takes bandwidth of a way. Descriptors come in packets of their own, which a link sends between
// those of other transfers: they take their share and wait for none of the pieces that are booked.
static uint64_t take(bandwidth *way, uint64_t takes, const access &request, uint64_t from_ps,
		     uint64_t *out_end_ps)
{
	uint64_t start = bandwidth_take(way, takes, from_ps, out_end_ps);

	if (request.walk)
		*out_end_ps = from_ps + takes;
	return request.walk ? from_ps : start;
}

// Over a way whose far side takes no time of its own: memory is faster than the host's link, and
// what another server does is in the latency.
void interconnect::cross(bandwidth *way, const sim_remote_cost &cost, access &request)
{
	uint64_t takes = transfer_ps(request.length, cost.bytes_per_us), end;
	uint64_t start = take(way, takes, request, request.at_ps, &end);

	if (cost.engine_bytes_per_us) { // which begins with its first byte
		request.rate = cost.engine_bytes_per_us;
		end = std::max(end, start + transfer_ps(request.length, request.rate));
	}
	request.first_ps = start + cost.ps;
	request.done_ps = end + cost.ps;
}

void interconnect::to_peer(unsigned me, unsigned peer, access &request)
{
	bool write = request.write;
	bool sio = m_profile->is_910c && peer / 2 == me / 2;
	uint64_t latency = sio ? m_profile->sio_ps : m_profile->peer_ps;
	uint64_t rate = sio     ? m_profile->sio_bytes_per_us
			: write ? m_profile->peer_write_bytes_per_us
				: m_profile->peer_read_bytes_per_us;
	uint64_t takes = transfer_ps(request.length, rate), start, end;
	bandwidth *way = write ? link(me, peers_at + peer) : link(peer, peers_at + me);

	request.flight_ps = latency + (write ? m_profile->l2_hit_ps : 0); // its bytes were read
	if (sio && m_profile->sdma_sio_bytes_per_us)
		request.rate = m_profile->sdma_sio_bytes_per_us;
	if (write) {
		start = bandwidth_take(way, takes, request.at_ps, &end);
		request.at_ps += latency;
		out[peer].send(request, m_memory);
		request.first_ps = start + latency;
		request.done_ps = std::max(request.done_ps, end + latency);
		return;
	}
	request.at_ps += latency / 2;
	out[peer].send(request, m_memory);
	start = take(way, takes, request, request.first_ps, &end);
	request.first_ps = start + latency / 2;
	request.done_ps = std::max(request.done_ps, end) + latency / 2;
}

void interconnect::gate::serve(access &request)
{
	unsigned node = SIM_PA_NODE(request.address);
	const sim_profile *p = of->m_profile;
	sim_remote kind = sim_remote_of(node, request.write);

	if (node < SIM_NODE_MAX && node >= of->m_devices) {
		of->cross(of->link(device, request.write),
			  { request.write ? p->d2h_bytes_per_us : p->h2d_bytes_per_us, 0,
			    p->host_link_ps },
			  request);
		return;
	}
	if (node < SIM_NODE_MAX) {
		of->to_peer(device, node, request);
	} else if (p->remote[kind].bytes_per_us) {
		of->cross(of->link(device, plane_at + kind), p->remote[kind], request);
	} else { // the device is in no supernode
		request.status = SIM_FAULT_ADDRESS;
		request.done_ps = request.first_ps = request.at_ps;
	}
}

} // namespace npusim
