// SPDX-License-Identifier: Apache-2.0
//
// Requests through the L2.
#include "l2.h"

#include <algorithm>

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
	m_free_ps = 0;
}

void l2::flush(run &current, const sc_time &at, sc_time &first, sc_time &last)
{
	sc_time delay = at;

	if (!current.bytes)
		return;
	m_payload.set_command(current.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
	m_payload.set_address(current.pa);
	m_payload.set_data_length(static_cast<unsigned>(current.bytes));
	memory->b_transport(m_payload, delay);
	if (!current.write) {
		first = std::min(first, m_access.first);
		last = std::max(last, delay);
	}
	current.bytes = 0;
}

void l2::extend(run &current, const l2_stretch &stretch, const sc_time &at, sc_time &first,
		sc_time &last)
{
	if (!stretch.bytes)
		return;
	if (current.bytes && current.pa + current.bytes != stretch.pa)
		flush(current, at, first, last);
	if (!current.bytes)
		current.pa = stretch.pa;
	current.bytes += stretch.bytes;
}

void l2::b_transport(int, tlm::tlm_generic_payload &payload, sc_time &delay)
{
	uint64_t now = now_ps();
	uint64_t pa = payload.get_address(), end = pa + payload.get_data_length();
	uint64_t block = m_profile->l2_block_bytes, lines = 0, hits = 0;
	bool write = payload.get_command() == tlm::TLM_WRITE_COMMAND;
	run fill = { false }, clean = { true };
	sc_time looked_up = delay + ps(m_profile->l2_hit_ps);
	sc_time first = sc_core::sc_max_time(), last = looked_up;
	uint64_t start;

	if (payload.get_extension<access>()->partial) {
		fill.pa = pa;
		fill.bytes = end - pa;
		lines = fill.bytes / m_profile->l2_line_bytes;
		pa = end;
	}
	while (pa < end) {
		uint64_t stop = std::min(end, (pa | (block - 1)) + 1);
		l2_answer answer;

		l2_cache_access(m_cache, pa, stop - pa, write, &answer);
		lines += answer.lines;
		hits += answer.hits;
		extend(clean, answer.clean, looked_up, first, last);
		extend(fill, answer.fill, looked_up, first, last);
		pa = stop;
	}
	flush(fill, looked_up, first, last);
	flush(clean, looked_up, first, last);
	start = std::max(now + to_ps(delay), m_free_ps);
	m_free_ps = start + transfer_ps(lines * m_profile->l2_line_bytes, m_profile->l2_bytes_per_us);
	if (hits || write)
		first = ps(start - now + m_profile->l2_hit_ps);
	last = std::max(last, ps(m_free_ps - now + m_profile->l2_hit_ps));
	(write ? m_counters.writes : m_counters.reads) += lines;
	(write ? m_counters.write_hits : m_counters.read_hits) += hits;
	payload.get_extension<access>()->first = std::min(first, last);
	payload.set_response_status(tlm::TLM_OK_RESPONSE);
	delay = last;
}

} // namespace npusim
