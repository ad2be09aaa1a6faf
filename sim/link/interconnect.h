// SPDX-License-Identifier: Apache-2.0
//
// The interconnect between the devices and the host of a server: one host link per device, one
// link between any two devices, SIO between the two dies of a 910C; and the plane between the
// servers of a supernode, into which each device has its own way for each direction and kind of
// memory. What other servers' devices ask for meanwhile is in their own processes' time, and is not
// seen here. Remote requests come from the MMUs; those to a device go on to its HBM.
#ifndef NPUSIM_SIM_LINK_INTERCONNECT_H
#define NPUSIM_SIM_LINK_INTERCONNECT_H

#include <vector>

#include "sim/transport/bandwidth.h"
#include "sim/transport/socket.h"

namespace npusim
{

class interconnect : public sc_core::sc_module
{
public:
	sc_core::sc_vector<target_socket> in;   // from the MMU of each device
	sc_core::sc_vector<request_socket> out; // to the HBM of each device

	interconnect(sc_core::sc_module_name name, unsigned devices);
	~interconnect() override;
	// origin_ps: where this simulation begins.
	void reset(const sim_config *config, uint64_t origin_ps);

private:
	// Slices of 0.26 us, 1.1 ms of them: a piece of 2 MiB takes 12 to 80 us, an engine has two
	// on the way, and 72 cores 64 KiB each.
	static constexpr unsigned link_slice_lg2 = 18, link_slices_lg2 = 12;

	// What takes the requests of one device.
	struct gate : target {
		interconnect *of = nullptr;
		unsigned device = 0;

		void serve(access &request) override;
		using target::set_memory;
	};

	void cross(bandwidth *way, const sim_remote_cost &cost, access &request);
	void to_peer(unsigned me, unsigned peer, access &request);
	void clear();

	std::vector<gate> m_gate;
	unsigned m_devices = 0; // of this simulation
	const sim_memory *m_memory = nullptr;
	const sim_profile *m_profile = nullptr;
	// Of each device: towards it from the host and from it, its ways into the plane, by
	// sim_remote, and that to each device.
	static constexpr unsigned plane_at = 2, peers_at = plane_at + SIM_REMOTE_COUNT;
	std::vector<bandwidth> m_links;
	bandwidth *link(unsigned device, unsigned which)
	{
		return &m_links[device * (peers_at + m_devices) + which];
	}
};

} // namespace npusim

#endif
