// SPDX-License-Identifier: Apache-2.0
//
// The L2 as a module between the MMU and the HBM of one device. Tags are l2-cache's; here are hit
// time, bandwidth, and the requests to memory that misses and evictions bring about.
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
	// When what was asked of memory is there, in the kernel's time.
	struct fetch {
		uint64_t now_ps, at_ps;
		uint64_t first_ps = SIM_NEVER, last_ps = 0;
	};

	void extend(run &current, const l2_stretch &stretch, fetch &times);
	void flush(run &current, fetch &times);
	uint64_t book(uint64_t lines, uint64_t from_ps, uint64_t *out_end_ps);

	const sim_profile *m_profile = nullptr;
	l2_cache *m_cache = nullptr;
	l2_counters m_counters = {};
	// Bandwidth, in slices of time: how much of each is taken. Requests come with times that
	// differ by what translation took, so that later ones may fit before earlier ones.
	static constexpr unsigned slice_lg2 = 16, slice_count = 1024;
	struct slice {
		uint64_t number, taken_ps;
	};
	slice m_slice[slice_count] = {};
	uint64_t m_line_bytes = 0; // the profile's
	// what was booked last: mostly the same again
	uint64_t m_booked_lines = 0, m_booked_ps = 0;
	tlm::tlm_generic_payload m_payload;
	access m_access;
};

} // namespace npusim

#endif
