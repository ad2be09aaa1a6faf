// SPDX-License-Identifier: Apache-2.0
//
// The L2 as a module between the MMU and the HBM of one device. Tags are l2-cache's; here are hit time, bandwidth, and the
// requests to memory that misses and evictions bring about.
#ifndef NPUSIM_SIM_L2_L2_H
#define NPUSIM_SIM_L2_L2_H

#include <systemc>
#include <tlm>
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>

#include "sim/engine/access.h"
#include "sim/l2/l2-cache.h"

namespace npusim
{

struct l2_counters {
	uint64_t reads, read_hits, writes, write_hits;
};

class l2 : public sc_core::sc_module
{
public:
	tlm_utils::multi_passthrough_target_socket<l2> in;
	tlm_utils::simple_initiator_socket<l2> memory;

	explicit l2(sc_core::sc_module_name name);
	~l2() override;
	void reset(const sim_config *config);

	const l2_counters &counters() const
	{
		return m_counters;
	}

private:
	// Stretches that follow one another go to memory as one.
	struct run {
		bool write;
		uint64_t pa = 0, bytes = 0;
	};

	void b_transport(int id, tlm::tlm_generic_payload &payload, sc_core::sc_time &delay);
	void extend(run &current, const l2_stretch &stretch, const sc_core::sc_time &at,
		    sc_core::sc_time &first, sc_core::sc_time &last);
	void flush(run &current, const sc_core::sc_time &at, sc_core::sc_time &first,
		   sc_core::sc_time &last);

	const sim_profile *m_profile = nullptr;
	l2_cache *m_cache = nullptr;
	l2_counters m_counters = {};
	uint64_t m_free_ps = 0; // its bandwidth is taken until then
	tlm::tlm_generic_payload m_payload;
	access m_access;
};

} // namespace npusim

#endif
