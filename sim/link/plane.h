// SPDX-License-Identifier: Apache-2.0
//
// The plane between the servers of a supernode, as one server's devices use it: requests for memory
// of other servers come from the interconnect. Each device has its own way into the plane for each
// direction and kind of memory; what other servers' devices ask for meanwhile is in their own
// processes' time, and is not seen here. The far side is in the latency.
#ifndef NPUSIM_SIM_LINK_PLANE_H
#define NPUSIM_SIM_LINK_PLANE_H

#include <vector>

#include "sim/transport/bandwidth.h"
#include "sim/transport/socket.h"

namespace npusim
{

// Slices of 0.26 us, 1.1 ms of them: a piece of 2 MiB takes 12 to 80 us, an engine has two on the
// way, and 72 cores 64 KiB each.
constexpr unsigned link_slice_lg2 = 18, link_slices_lg2 = 12;

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
		bandwidth link[SIM_REMOTE_COUNT] = {};

		void serve(access &request) override;
		void set_memory(const sim_memory *memory)
		{
			target::set_memory(memory, any_node);
		}
	};

	std::vector<port> m_ports;
	const sim_profile *m_profile = nullptr;
};

} // namespace npusim

#endif
