// SPDX-License-Identifier: Apache-2.0
//
// What lies between the devices and the host of a server: one host link a device, one link between
// any two devices, and SIO between the two dies of a 910C. Remote requests come from the MMUs;
// those to a device go on to its HBM.
#ifndef NPUSIM_SIM_LINK_INTERCONNECT_H
#define NPUSIM_SIM_LINK_INTERCONNECT_H

#include <vector>

#include "sim/transport/bandwidth.h"
#include "sim/transport/socket.h"

namespace npusim
{

struct link_counters {
	uint64_t h2d_bytes, d2h_bytes, peer_bytes;
};

class interconnect : public sc_core::sc_module
{
public:
	sc_core::sc_vector<target_socket> in;   // from the MMU of each device
	sc_core::sc_vector<request_socket> out; // to the HBM of each device

	interconnect(sc_core::sc_module_name name, unsigned devices);
	~interconnect() override;
	// origin_ps: the kernel's time where this simulation begins.
	void reset(const sim_config *config, uint64_t origin_ps);

	const link_counters &counters(unsigned device) const
	{
		return m_counters[device];
	}

private:
	// What takes the requests of one device.
	struct gate : target {
		interconnect *of = nullptr;
		unsigned device = 0;

		void serve(access &request) override;
		void set_memory(const sim_memory *memory)
		{
			target::set_memory(memory, any_node);
		}
	};

	void to_host(unsigned device, access &request);
	void to_peer(unsigned device, access &request);
	void clear();

	std::vector<gate> m_gate;
	unsigned m_devices = 0; // of this simulation
	const sim_memory *m_memory = nullptr;
	const sim_profile *m_profile = nullptr;
	std::vector<bandwidth> m_host; // of each device, towards it and from it
	std::vector<bandwidth> m_peer; // from device to device
	std::vector<link_counters> m_counters;
};

} // namespace npusim

#endif
