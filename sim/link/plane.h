// SPDX-License-Identifier: Apache-2.0
//
// The plane between the servers of a supernode, as one server's devices use it: requests for memory
// of other servers come from the interconnect. Each device has its own way into the plane for each
// direction and kind of memory; what other servers' devices ask for meanwhile is in their own
// processes' time, and is not seen here. The far side is in the latency.
#ifndef NPUSIM_SIM_LINK_PLANE_H
#define NPUSIM_SIM_LINK_PLANE_H

#include <map>
#include <vector>

#include "sim/transport/bandwidth.h"
#include "sim/transport/socket.h"

namespace npusim
{

class plane : public sc_core::sc_module
{
public:
	sc_core::sc_vector<target_socket> in; // from the interconnect, by device

	plane(sc_core::sc_module_name name, unsigned devices);
	~plane() override;
	void reset(const sim_config *config, uint64_t origin_ps);

private:
	struct port : target {
		plane *of = nullptr;
		unsigned device = 0;

		void serve(access &request) override;
		void set_memory(const sim_memory *memory)
		{
			target::set_memory(memory, any_node);
		}
	};

	bandwidth &link(unsigned device, sim_remote kind);
	void clear();

	std::vector<port> m_port;
	const sim_profile *m_profile = nullptr;
	const uint64_t *m_extra_ps = nullptr; // by server, or null
	uint64_t m_origin_ps = 0;
	// Of each device, by kind: made at the first request.
	std::map<std::pair<unsigned, sim_remote>, bandwidth> m_links;
};

} // namespace npusim

#endif
