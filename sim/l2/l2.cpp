// SPDX-License-Identifier: Apache-2.0
//
// Serves requests through the L2: hits, misses and evictions.
#include "l2.h"

#include <algorithm>
#include <iterator>

namespace npusim
{

l2::l2(sc_core::sc_module_name name, unsigned device)
    : sc_module(name), in("in"), out("out"), m_device(device)
{
	in.bind(*this);
}

l2::~l2()
{
	l2_cache_free(m_cache);
	bandwidth_clear(&m_bandwidth);
}

inline l2::recent_request &l2::recent_at(uint32_t block)
{
	return m_recent[block * UINT32_C(0x9e3779b1) >> (32 - recent_lg2)];
}

void l2::reset(const sim_config *config, uint64_t origin_ps, sim_counters *counters)
{
	const sim_profile *p = config->profile;

	l2_cache_free(m_cache);
	set_memory(config->memory, m_device);
	m_profile = p;
	m_cache = l2_cache_new(p->l2_bytes, p->l2_block_bytes, p->l2_line_bytes, p->l2_ways);
	m_counters = counters;
	m_rest = 0;
	bandwidth_clear(&m_bandwidth);
	bandwidth_init(&m_bandwidth, slice_lg2, slices_lg2, origin_ps);
	std::fill(std::begin(m_recent), std::end(m_recent), recent_request{ 0, UINT32_MAX, 0 });
	m_line_bytes = p->l2_line_bytes;
	m_lock = config->lock;
}

// One request to memory. A victim has gone when memory has taken it: what took its place is there
// no sooner, or writes would run ahead of the memory without end.
inline void l2::ask(bool write, const l2_stretch &what, fetch &times)
{
	m_access.write = write;
	m_access.address = what.pa;
	m_access.length = what.bytes;
	m_access.at_ps = times.at_ps;
	out.send(m_access, memory());
	times.last_ps = std::max(times.last_ps, m_access.done_ps);
	if (!write)
		times.first_ps = std::min(times.first_ps, m_access.first_ps);
}

// What missed, in one request for all of it.
inline void l2::ask_fills(fills &asked, fetch *times)
{
	m_access.write = false;
	if (asked.count)
		out.own()->serve_rows(m_access, asked.row, asked.count);
	for (unsigned i = 0; i < asked.count; i++) {
		fetch &it = times[asked.of[i]];

		it.last_ps = std::max(it.last_ps, asked.row[i].done_ps);
		it.first_ps = std::min(it.first_ps, asked.row[i].first_ps);
	}
	asked.count = 0;
}

// Adds to a run that is asked for at once; what does not follow it begins another.
inline void l2::extend(bool write, l2_stretch &run, const l2_stretch &next, fetch &times)
{
	if (run.bytes && next.bytes && run.pa + run.bytes != next.pa) {
		ask(write, run, times);
		run.bytes = 0;
	}
	if (!run.bytes)
		run.pa = next.pa;
	run.bytes += next.bytes;
}

// Several blocks.
l2::fetch l2::look_up_blocks(uint64_t pa, uint64_t end, bool write, fetch times)
{
	uint64_t block = m_profile->l2_block_bytes;
	l2_stretch fill = {}, clean = {};

	while (pa < end) {
		uint64_t stop = std::min(end, (pa | (block - 1)) + 1);
		l2_answer answer;

		if (++m_looked_up % offer_blocks == 0)
			sim_lock_offer(m_lock);
		l2_cache_access(m_cache, pa, stop - pa, write, &answer);
		times.lines += answer.lines;
		times.hits += answer.hits;
		for (unsigned i = 0; i < answer.cleans; i++)
			extend(true, clean, answer.clean[i], times);
		extend(false, fill, answer.fill, times);
		pa = stop;
	}
	if (fill.bytes)
		ask(false, fill, times);
	if (clean.bytes)
		ask(true, clean, times);
	return times;
}

__attribute__((always_inline)) inline void l2::look_up(uint64_t pa, uint64_t end, bool write,
						       fetch &times)
{
	l2_answer answer;

	if (G_UNLIKELY((pa ^ (end - 1)) >= m_profile->l2_block_bytes)) {
		times = look_up_blocks(pa, end, write, times);
		return;
	}
	l2_cache_access(m_cache, pa, end - pa, write, &answer);
	times.lines = answer.lines;
	times.hits = answer.hits;
	if (answer.fill.bytes)
		ask(false, answer.fill, times);
	for (unsigned i = 0; i < answer.cleans; i++)
		ask(true, answer.clean[i], times);
}

// Takes bandwidth for so many lines, fractions of a picosecond carried over; more where it meets
// another request to the same 512 bytes. Returns since when; *out_end_ps: until when.
__attribute__((always_inline)) inline uint64_t l2::book(uint64_t lines, bool conflict,
							uint64_t from_ps, uint64_t *out_end_ps)
{
	uint64_t bytes = lines * m_line_bytes, rate = m_profile->l2_bytes_per_us;
	uint64_t takes = transfer_ps(bytes, rate);

	m_rest += bytes * SIM_PS_PER_US % rate;
	takes += m_rest >= rate;
	m_rest -= m_rest >= rate ? rate : 0;
	if (G_UNLIKELY(conflict))
		takes = std::max(takes, m_profile->l2_conflict_ps);
	m_counters->l2_conflicts += conflict;
	return bandwidth_take(&m_bandwidth, takes, from_ps, out_end_ps);
}

// What has been looked up is there when the L2 has the bandwidth for it, and memory has answered.
__attribute__((always_inline)) inline void l2::settle(uint64_t pa, uint64_t at, bool write,
						      fetch &times)
{
	uint64_t hit_ps = m_profile->l2_hit_ps, start, end;
	uint32_t block = static_cast<uint32_t>(pa >> conflict_lg2);
	recent_request &last = recent_at(block);
	bool same = last.block == block;

	start = book(times.lines, same && at < last.start_ps + hit_ps, at, &end);
	if (times.hits || write)
		times.first_ps = start + hit_ps;
	if (times.hits && same) // what is on its way from memory is not there yet
		times.first_ps = std::max(times.first_ps, last.start_ps + last.wait_ps);
	if (times.hits)
		times.last_ps = std::max(times.last_ps, times.first_ps);
	times.last_ps = std::max(times.last_ps, end + hit_ps);
	times.first_ps = std::min(times.first_ps, times.last_ps);
	last = { start, block, static_cast<uint32_t>(std::max(start, times.first_ps) - start) };
}

void l2::serve(access &request)
{
	uint64_t at = request.at_ps, hit_ps = m_profile->l2_hit_ps;
	uint64_t pa = request.address, bytes = request.length;
	bool write = request.write;
	fetch times = { at + hit_ps, SIM_NEVER, at + hit_ps, 0, 0 };

	if (G_UNLIKELY(request.partial)) {
		times.lines = bytes / m_line_bytes;
		ask(false, { pa, bytes }, times);
	} else {
		look_up(pa, pa + bytes, write, times);
	}
	settle(pa, at, write, times);
	if (G_UNLIKELY(request.walk)) {
		m_counters->l2_walk_reads += times.lines;
		m_counters->l2_walk_hits += times.hits;
	} else {
		(write ? m_counters->l2_writes : m_counters->l2_reads) += times.lines;
		(write ? m_counters->l2_write_hits : m_counters->l2_read_hits) += times.hits;
	}
	request.first_ps = times.first_ps;
	request.done_ps = times.last_ps;
	if (G_UNLIKELY(m_access.status != SIM_OK)) { // from a foreign memory
		request.status = m_access.status;
		m_access.status = SIM_OK;
	}
}

// Step by step for all of them, so that the host waits for the memory of many at once: neither the
// tags nor the memory behind depend on when the L2 has bandwidth.
unsigned l2::serve_rows(access &request, sim_row *rows, unsigned count)
{
	uint64_t hit_ps = m_profile->l2_hit_ps, block = m_profile->l2_block_bytes;
	uint64_t lines = 0, hits = 0;
	bool write = request.write;
	uint32_t group[SIM_ROWS_MAX];
	fetch times[SIM_ROWS_MAX];
	fills asked;

	group[0] = l2_cache_find(m_cache, rows[0].address);
	for (unsigned i = 1; i < count; i++)
		group[i] = (rows[i].address ^ rows[i - 1].address) < block
				   ? group[i - 1]
				   : l2_cache_find(m_cache, rows[i].address);
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = rows[i].at_ps + hit_ps;
		l2_answer answer;

		l2_cache_access_in(m_cache, group[i], rows[i].address, rows[i].bytes, write,
				   &answer);
		times[i] = { at, SIM_NEVER, at, answer.lines, answer.hits };
		if (answer.fill.bytes)
			asked.add(i, answer.fill, at);
		if (G_UNLIKELY(answer.cleans))
			ask_fills(asked, times);
		for (unsigned n = 0; n < answer.cleans; n++)
			ask(true, answer.clean[n], times[i]);
	}
	ask_fills(asked, times);
	for (unsigned i = 0; i < count; i++) {
		settle(rows[i].address, rows[i].at_ps, write, times[i]);
		lines += times[i].lines;
		hits += times[i].hits;
		rows[i].first_ps = times[i].first_ps;
		rows[i].done_ps = times[i].last_ps;
	}
	(write ? m_counters->l2_writes : m_counters->l2_reads) += lines;
	(write ? m_counters->l2_write_hits : m_counters->l2_read_hits) += hits;
	return count;
}

} // namespace npusim
