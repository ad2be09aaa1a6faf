// SPDX-License-Identifier: Apache-2.0
//
// Requests through the L2.
#include "l2.h"

#include <algorithm>
#include <iterator>

namespace npusim
{

using sc_core::sc_time;

l2::l2(sc_core::sc_module_name name) : sc_module(name), in("in"), memory("memory")
{
	in.register_b_transport(this, &l2::b_transport);
	m_payload.set_extension(&m_access);
}

l2::~l2()
{
	m_payload.clear_extension(&m_access);
	l2_cache_free(m_cache);
}

void l2::reset(const sim_config *config)
{
	const sim_profile *p = config->profile;

	l2_cache_free(m_cache);
	m_profile = p;
	m_cache = l2_cache_new(p->l2_bytes, p->l2_block_bytes, p->l2_line_bytes, p->l2_ways);
	m_counters = {};
	m_booked_lines = m_booked_ps = 0;
	std::fill(std::begin(m_slice), std::end(m_slice), slice());
	m_line_bytes = p->l2_line_bytes;
}

void l2::flush(run &current, fetch &times)
{
	sc_time delay = ps(times.at_ps - times.now_ps);

	if (!current.bytes)
		return;
	m_payload.set_command(current.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
	m_payload.set_address(current.pa);
	m_payload.set_data_length(static_cast<unsigned>(current.bytes));
	m_access.now_ps = times.now_ps;
	memory->b_transport(m_payload, delay);
	if (!current.write) {
		times.first_ps = std::min(times.first_ps, m_access.first_ps);
		times.last_ps = std::max(times.last_ps, times.now_ps + to_ps(delay));
	}
	current.bytes = 0;
}

void l2::extend(run &current, const l2_stretch &stretch, fetch &times)
{
	if (!stretch.bytes)
		return;
	if (current.bytes && current.pa + current.bytes != stretch.pa)
		flush(current, times);
	if (!current.bytes)
		current.pa = stretch.pa;
	current.bytes += stretch.bytes;
}

// Takes bandwidth for so many lines. Returns since when; *out_end_ps: until when.
uint64_t l2::book(uint64_t lines, uint64_t from_ps, uint64_t *out_end_ps)
{
	constexpr uint64_t slice_ps = UINT64_C(1) << slice_lg2;
	uint64_t start = SIM_NEVER, at = from_ps, left;

	if (lines != m_booked_lines) {
		m_booked_lines = lines;
		m_booked_ps = transfer_ps(lines * m_line_bytes, m_profile->l2_bytes_per_us);
	}
	*out_end_ps = from_ps;
	for (left = m_booked_ps; left;) {
		uint64_t number = at >> slice_lg2, stop = (number + 1) << slice_lg2;
		slice &it = m_slice[number % slice_count];

		if (it.number < number)
			it = { number, 0 };
		at = std::max(at, stop - slice_ps + it.taken_ps);
		if (at < stop) {
			uint64_t taken = std::min(left, stop - at);

			start = std::min(start, at);
			it.taken_ps += taken;
			left -= taken;
			*out_end_ps = at + taken;
		}
		at = stop;
	}
	return std::min(start, *out_end_ps);
}

void l2::b_transport(int, tlm::tlm_generic_payload &payload, sc_time &delay)
{
	auto *request = payload.get_extension<access>();
	uint64_t now = request->now_ps, at = now + to_ps(delay), hit_ps = m_profile->l2_hit_ps;
	uint64_t pa = payload.get_address(), end = pa + payload.get_data_length();
	uint64_t block = m_profile->l2_block_bytes, lines = 0, hits = 0, start;
	bool write = payload.get_command() == tlm::TLM_WRITE_COMMAND;
	run fill = { false }, clean = { true };
	fetch times = { now, at + hit_ps };

	times.last_ps = times.at_ps;
	if (request->partial) {
		fill.pa = pa;
		fill.bytes = end - pa;
		lines = fill.bytes / m_line_bytes;
		pa = end;
	}
	while (pa < end) {
		uint64_t stop = std::min(end, (pa | (block - 1)) + 1);
		l2_answer answer;

		l2_cache_access(m_cache, pa, stop - pa, write, &answer);
		lines += answer.lines;
		hits += answer.hits;
		extend(clean, answer.clean, times);
		extend(fill, answer.fill, times);
		pa = stop;
	}
	flush(fill, times);
	flush(clean, times);
	start = book(lines, at, &end);
	if (hits || write)
		times.first_ps = start + hit_ps;
	times.last_ps = std::max(times.last_ps, end + hit_ps);
	(write ? m_counters.writes : m_counters.reads) += lines;
	(write ? m_counters.write_hits : m_counters.read_hits) += hits;
	request->first_ps = std::min(times.first_ps, times.last_ps);
	payload.set_response_status(tlm::TLM_OK_RESPONSE);
	delay = ps(times.last_ps - now);
}

} // namespace npusim
