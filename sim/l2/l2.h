// SPDX-License-Identifier: Apache-2.0
//
// The L2 as a module between the MMU and the HBM of one device. The tags are in l2-cache; this
// module adds hit time, bandwidth, and the memory requests that misses and evictions cause.
#ifndef NPUSIM_SIM_L2_L2_H
#define NPUSIM_SIM_L2_L2_H

#include "sim/l2/l2-cache.h"
#include "sim/transport/bandwidth.h"
#include "sim/transport/socket.h"

namespace npusim
{

class l2 : public sc_core::sc_module, public target
{
public:
	target_socket in;
	request_socket out; // to memory

	l2(sc_core::sc_module_name name, unsigned device);
	~l2() override;
	// origin_ps: where this simulation begins. counters: of the device.
	void reset(const sim_config *config, uint64_t origin_ps, sim_counters *counters);
	void serve(access &request) override;
	unsigned serve_rows(access &request, sim_row *rows, unsigned count) override;
	bool takes_rows() const override
	{
		return out.own() && m_profile->l2_block_bytes >= SIM_ROW_BYTES;
	}
	void expect(uint64_t pa) const override
	{
		if (m_cache->group)
			(void)l2_cache_find(m_cache, pa, 1);
	}

private:
	// When what is asked of memory is there, in the model's time; and what was looked up.
	struct fetch {
		uint64_t at_ps, first_ps, last_ps;
		uint64_t lines, hits;
	};

	void ask(bool write, const l2_stretch &what, fetch &times);
	void ask_fills(sim_row *&from, sim_row *to, uint64_t bytes);
	void extend(bool write, l2_stretch &run, const l2_stretch &next, fetch &times);
	void look_up(uint64_t pa, uint64_t end, bool write, fetch &times);
	fetch look_up_blocks(uint64_t pa, uint64_t end, bool write, fetch times);
	template <bool write, bool one>
	void take_rows(sim_row *rows, unsigned count, uint64_t bytes);
	// How long lines take of the bandwidth.
	struct pace {
		uint64_t lines, ps, part; // so many, and their time: its picoseconds, what is left
		uint64_t rest; // of a picosecond, of all that was booked; both in 2^-64 of one
	};
	// The last request to a block of 512 bytes, by that of its first byte.
	static constexpr unsigned conflict_lg2 = 9;
	struct recent_request {
		uint64_t start_ps; // when the L2 took it
		uint32_t block;    // lower bits of the number
		uint32_t wait_ps;  // from then until its first line was there
	};
	recent_request &recent_at(uint64_t pa, bool &out_same);
	void set_pace(pace &of, uint64_t lines) const;
	void settle(uint64_t at_ps, bool write, bool same, recent_request &last, fetch &times,
		    pace &of);

	const unsigned m_device;
	const sim_profile *m_profile = nullptr;
	l2_cache *m_cache = nullptr;
	sim_counters *m_counters = nullptr;
	static constexpr unsigned slice_lg2 = 16, slices_lg2 = 10; // of 65.5 ns, 67 us of them
	bandwidth m_bandwidth = {};
	static constexpr unsigned recent_lg2 = 11;
	recent_request m_recent[1 << recent_lg2] = {};
	uint64_t m_line_bytes = 0, m_hit_ps = 0; // the profile's
	sim_lock *m_lock = nullptr;
	static constexpr unsigned offer_blocks = 64; // a few microseconds
	unsigned m_looked_up = 0;                    // blocks, of requests that have several
	pace m_pace = {};                            // of what was booked last
	access m_access;                             // of memory
};

} // namespace npusim

#endif
