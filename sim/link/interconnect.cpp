// SPDX-License-Identifier: Apache-2.0
//
// Requests over links.
#include "interconnect.h"

#include <algorithm>

namespace npusim
{

using sc_core::sc_time;

// Slices of 0.26 us, 1.1 ms of them: a piece of 2 MiB takes 12 to 80 us, an engine has two on the
// way, and 72 cores 64 KiB each.
static constexpr unsigned slice_lg2 = 18, slices_lg2 = 12;

interconnect::interconnect(sc_core::sc_module_name name, unsigned devices)
    : sc_module(name), in("in"), out("out"), m_devices(devices)
{
	in.register_b_transport(this, &interconnect::b_transport);
}

interconnect::~interconnect()
{
	clear();
}

void interconnect::clear()
{
	for (auto *links : { &m_host, &m_peer })
		for (bandwidth &link : *links)
			bandwidth_clear(&link);
}

void interconnect::reset(const sim_config *config, uint64_t origin_ps)
{
	bandwidth idle;

	clear();
	bandwidth_init(&idle, slice_lg2, slices_lg2, origin_ps);
	m_profile = config->profile;
	m_host.assign(2 * m_devices, idle);
	m_peer.assign(m_devices * m_devices, idle);
	m_counters.assign(m_devices, link_counters());
}

// The host's memory is faster than the link: only the link takes time.
void interconnect::to_host(tlm::tlm_generic_payload &payload, access &request, sc_time &delay)
{
	uint64_t now = request.now_ps;
	bool d2h = payload.get_command() == tlm::TLM_WRITE_COMMAND;
	uint64_t rate = d2h ? m_profile->d2h_bytes_per_us : m_profile->h2d_bytes_per_us;
	uint64_t bytes = payload.get_data_length();
	uint64_t end, start = bandwidth_take(&m_host[2 * request.device + d2h],
					     transfer_ps(bytes, rate), now + to_ps(delay), &end);

	request.first_ps = start + m_profile->host_link_ps;
	delay = ps(end + m_profile->host_link_ps - now);
	(d2h ? m_counters[request.device].d2h_bytes : m_counters[request.device].h2d_bytes) +=
		bytes;
}

void interconnect::to_peer(tlm::tlm_generic_payload &payload, access &request, sc_time &delay)
{
	uint64_t now = request.now_ps;
	bool write = payload.get_command() == tlm::TLM_WRITE_COMMAND;
	unsigned peer = SIM_PA_NODE(payload.get_address()), me = request.device;
	bool sio = m_profile->is_910c && peer / 2 == me / 2;
	uint64_t latency = sio ? m_profile->sio_ps : m_profile->peer_ps;
	uint64_t rate = sio     ? m_profile->sio_bytes_per_us
			: write ? m_profile->peer_write_bytes_per_us
				: m_profile->peer_read_bytes_per_us;
	uint64_t bytes = payload.get_data_length(), takes = transfer_ps(bytes, rate), start, end;
	bandwidth *link = &m_peer[write ? me * m_devices + peer : peer * m_devices + me];
	sc_time at_peer = delay + ps(latency / 2);

	m_counters[me].peer_bytes += bytes;
	if (write) {
		start = bandwidth_take(link, takes, now + to_ps(delay), &end);
		at_peer = ps(start + latency - now);
		out[peer]->b_transport(payload, at_peer);
		request.first_ps = start + latency;
		delay = std::max(at_peer, ps(end + latency - now));
		return;
	}
	out[peer]->b_transport(payload, at_peer);
	start = bandwidth_take(link, takes, request.first_ps, &end);
	request.first_ps = start + latency / 2;
	delay = std::max(at_peer, ps(end - now)) + ps(latency / 2);
}

void interconnect::b_transport(int, tlm::tlm_generic_payload &payload, sc_time &delay)
{
	access &request = access_of(payload);

	if (SIM_PA_NODE(payload.get_address()) < m_devices)
		to_peer(payload, request, delay);
	else
		to_host(payload, request, delay);
	payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

} // namespace npusim
