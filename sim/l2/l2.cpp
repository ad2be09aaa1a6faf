// SPDX-License-Identifier: Apache-2.0
//
// Serves requests through the L2: hits, misses and evictions.
#include "l2.h"

#include <algorithm>
#include <iterator>

namespace npusim
{

__extension__ typedef unsigned __int128 wide;

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

// Where the request is remembered; out_same: the last one there was to the same block.
inline l2::recent_request &l2::recent_at(uint64_t pa, bool &out_same)
{
	uint32_t block = static_cast<uint32_t>(pa >> conflict_lg2);
	recent_request &last = m_recent[block * UINT32_C(0x9e3779b1) >> (32 - recent_lg2)];

	out_same = last.block == block;
	last.block = block;
	return last;
}

void l2::reset(const sim_config *config, uint64_t origin_ps, sim_counters *counters)
{
	const sim_profile *p = config->profile;

	l2_cache_free(m_cache);
	set_memory(config->memory, m_device);
	m_profile = p;
	m_cache = l2_cache_new(p->l2_bytes, p->l2_block_bytes, p->l2_line_bytes, p->l2_ways);
	m_counters = counters;
	bandwidth_clear(&m_bandwidth);
	bandwidth_init(&m_bandwidth, slice_lg2, slices_lg2, origin_ps);
	std::fill(std::begin(m_recent), std::end(m_recent), recent_request{ 0, UINT32_MAX, 0 });
	m_line_bytes = p->l2_line_bytes;
	m_hit_ps = p->l2_hit_ps;
	m_pace = {};
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

// Asks for what rows lack, in one request; goes on behind them.
inline void l2::ask_fills(sim_row *&from, sim_row *to, uint64_t bytes)
{
	m_access.write = false;
	m_access.length = bytes;
	if (from < to && bytes)
		out.own()->serve_rows(m_access, from, static_cast<unsigned>(to - from));
	from = to;
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
		answer = l2_cache_access(m_cache, pa, stop - pa, write);
		times.lines += answer.lines;
		times.hits += answer.hits;
		for (unsigned i = 0; i < answer.cleans; i++)
			extend(true, clean, m_cache->clean[i], times);
		extend(false, fill, answer.fill, times);
		pa = stop;
	}
	if (fill.bytes)
		ask(false, fill, times);
	if (clean.bytes)
		ask(true, clean, times);
	return times;
}

// Asks for what is missing, or has gone.
__attribute__((always_inline)) inline void l2::look_up(uint64_t pa, uint64_t end, bool write,
						       fetch &times)
{
	if (G_UNLIKELY((pa ^ (end - 1)) >= m_profile->l2_block_bytes)) {
		times = look_up_blocks(pa, end, write, times);
		return;
	}
	const l2_answer answer = l2_cache_access(m_cache, pa, end - pa, write);

	times.lines = answer.lines;
	times.hits = answer.hits;
	if (answer.fill.bytes)
		ask(false, answer.fill, times);
	for (unsigned i = 0; i < answer.cleans; i++)
		ask(true, m_cache->clean[i], times);
}

__attribute__((always_inline)) inline void l2::set_pace(pace &of, uint64_t lines) const
{
	uint64_t parts, per_ps = m_profile->l2_bytes_per_us;
	wide part;

	if (G_LIKELY(lines == of.lines))
		return;
	parts = lines * m_line_bytes * SIM_PS_PER_US;
	part = (static_cast<wide>(parts % per_ps) << 64) + per_ps - 1;
	// Rounded up: what adds up to a picosecond is one, for 2^37 requests.
	of = { lines, parts / per_ps, static_cast<uint64_t>(part / per_ps), of.rest };
}

// What has been looked up is there when the L2 has the bandwidth for it, fractions of a picosecond
// carried over, and memory has answered. It takes more where it meets another request to the same
// 512 bytes, `last`, which is the request itself then.
__attribute__((always_inline)) inline void l2::settle(uint64_t at, bool write, bool same,
						      recent_request &last, fetch &times, pace &of)
{
	const uint64_t hit_ps = m_hit_ps;
	uint64_t takes, start, end;
	bool whole = __builtin_add_overflow(of.rest, of.part, &of.rest);

	takes = of.ps + whole;
	if (same && at < last.start_ps + hit_ps) {
		takes = std::max(takes, m_profile->l2_conflict_ps);
		m_counters->l2_conflicts++;
	}
	start = bandwidth_take(&m_bandwidth, takes, at, &end);
	if (times.hits || write)
		times.first_ps = start + hit_ps;
	if (times.hits && same) // what is on its way from memory is not there yet
		times.first_ps = std::max(times.first_ps, last.start_ps + last.wait_ps);
	if (times.hits)
		times.last_ps = std::max(times.last_ps, times.first_ps);
	times.last_ps = std::max(times.last_ps, end + hit_ps);
	last.start_ps = start;
	last.wait_ps = static_cast<uint32_t>(std::max(start, times.first_ps) - start);
}

void l2::serve(access &request)
{
	uint64_t at = request.at_ps, hit_ps = m_hit_ps;
	uint64_t pa = request.address, bytes = request.length;
	bool write = request.write, same;
	recent_request &last = recent_at(pa, same);
	fetch times = { at + hit_ps, SIM_NEVER, at + hit_ps, 0, 0 };

	if (G_UNLIKELY(request.partial)) {
		times.lines = bytes / m_line_bytes;
		ask(false, { pa, bytes }, times);
	} else {
		look_up(pa, pa + bytes, write, times);
	}
	set_pace(m_pace, times.lines);
	settle(at, write, same, last, times, m_pace);
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
// tags nor the memory behind depend on when the L2 has bandwidth. Of rows of the same lines and
// 512 bytes, one behind the other, the first is looked up: the others hit.
template <bool write, bool one> void l2::take_rows(sim_row *rows, unsigned count, uint64_t bytes)
{
	const uint64_t hit_ps = m_hit_ps, line = m_line_bytes, size = one ? 1 : bytes;
	const uint64_t near = std::min(line, UINT64_C(1) << conflict_lg2);
	uint64_t was = ~rows->address, was_end = 0, fill_bytes = line;
	uint64_t lines = one ? count : 0, missed = 0;
	struct {
		l2_place place;
		sim_row *row; // the first
		uint64_t hits;
	} visit[SIM_ROWS_MAX + 1], *end = visit;
	// What each asks of memory that does not hit all lines; of writes some ask nothing.
	sim_row fill[SIM_ROWS_MAX], *next = fill, *asked = fill;
	l2_cache *cache = m_cache;
	pace of = m_pace;

	for (sim_row *row = rows; row < rows + count; row++) {
		uint64_t pa = row->address, last = pa + size - 1;

		if ((pa ^ was) < near && (one || (last ^ was_end) < line))
			continue;
		end->place = l2_cache_find(cache, pa, size);
		end->row = row;
		end++;
		was = pa;
		was_end = last;
	}
	end->row = rows + count;
	for (auto *it = visit; it < end; it++) {
		const sim_row &row = *it->row;
		l2_place place = it->place;

		if (G_UNLIKELY(!place.set)) { // others behind it may be parted, or joined
			place = l2_cache_find(cache, row.address, size);
			for (auto *k = it + 1; !place.set && k < end; k++)
				k->place.set = nullptr;
		}
		if (one)
			place.lines = 1;
		l2_answer answer =
			G_LIKELY(place.set)
				? l2_cache_access_at(cache, place, row.address, bytes, write)
				: l2_cache_access_units(cache, row.address, bytes, write);

		it->hits = answer.hits;
		if (answer.hits == (one ? 1 : place.lines))
			continue;
		missed += place.lines - answer.hits;
		if ((write || !one) && answer.fill.bytes != fill_bytes) {
			ask_fills(asked, next, fill_bytes);
			fill_bytes = answer.fill.bytes;
		}
		*next++ = { answer.fill.pa, row.at_ps + hit_ps, SIM_NEVER, 0 };
		if (G_UNLIKELY(answer.cleans)) {
			ask_fills(asked, next, fill_bytes);
			fetch gone = { row.at_ps + hit_ps, 0, next[-1].done_ps, 0, 0 };
			for (unsigned n = 0; n < answer.cleans; n++)
				ask(true, cache->clean[n], gone);
			next[-1].done_ps = gone.last_ps;
		}
	}
	ask_fills(asked, next, fill_bytes);
	next = fill;
	if (one)
		set_pace(of, 1);
	for (auto *it = visit; it < end; it++) {
		uint64_t all = one ? 1 : it->place.lines;
		fetch times = { 0, SIM_NEVER, 0, all, it->hits };
		bool same;
		recent_request &last = recent_at(it->row->address, same);

		if (it->hits != all) {
			times.first_ps = next->first_ps;
			times.last_ps = next++->done_ps;
		}
		if (!one) {
			set_pace(of, all);
			lines += static_cast<uint64_t>(it[1].row - it->row) * all;
		}
		settle(it->row->at_ps, write, same, last, times, of);
		it->row->done_ps = times.last_ps;
		for (sim_row *row = it->row + 1; row < it[1].row; row++) {
			times = { 0, 0, 0, all, 1 };
			settle(row->at_ps, write, true, last, times, of);
			row->done_ps = times.last_ps;
		}
	}
	m_pace = of;
	(write ? m_counters->l2_writes : m_counters->l2_reads) += lines;
	(write ? m_counters->l2_write_hits : m_counters->l2_read_hits) += lines - missed;
}

unsigned l2::serve_rows(access &request, sim_row *rows, unsigned count)
{
	const uint64_t bytes = request.length;

	if ((request.address & (m_line_bytes - 1)) + bytes <= m_line_bytes)
		request.write ? take_rows<true, true>(rows, count, bytes)
			      : take_rows<false, true>(rows, count, bytes);
	else
		request.write ? take_rows<true, false>(rows, count, bytes)
			      : take_rows<false, false>(rows, count, bytes);
	return count;
}

} // namespace npusim
