// SPDX-License-Identifier: Apache-2.0
//
// What lies between the devices and the host of a server: one host link a device, one link between
// any two devices, and SIO between the two dies of a 910C. Remote requests come from the MMUs;
// those to a device go on to its HBM.
#ifndef NPUSIM_SIM_LINK_INTERCONNECT_H
#define NPUSIM_SIM_LINK_INTERCONNECT_H

#include <systemc>
#include <tlm>
#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include "sim/engine/access.h"
#include "sim/engine/bandwidth.h"

namespace npusim
{

struct link_counters {
	uint64_t h2d_bytes, d2h_bytes, peer_bytes;
};

class interconnect : public sc_core::sc_module
{
public:
	tlm_utils::multi_passthrough_target_socket<interconnect> in;
	tlm_utils::multi_passthrough_initiator_socket<interconnect> out; // to the HBM of device i

	interconnect(sc_core::sc_module_name name, unsigned devices);
	~interconnect() override;
	// origin_ps: the kernel's time where this simulation begins.
	void reset(const sim_config *config, uint64_t origin_ps);

	const link_counters &counters(unsigned device) const
	{
		return m_counters[device];
	}

private:
	void b_transport(int id, tlm::tlm_generic_payload &payload, sc_core::sc_time &delay);
	void to_host(tlm::tlm_generic_payload &payload, access &request, sc_core::sc_time &delay);
	void clear();
	void to_peer(tlm::tlm_generic_payload &payload, access &request, sc_core::sc_time &delay);

	const unsigned m_devices;
	const sim_profile *m_profile = nullptr;
	std::vector<bandwidth> m_host; // of each device, towards it and from it
	std::vector<bandwidth> m_peer; // from device to device
	std::vector<link_counters> m_counters;
};

} // namespace npusim

#endif
