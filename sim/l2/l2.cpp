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

// Asks for what rows lack, in one request.
inline void l2::ask_fills(sim_row *from, const sim_row *to)
{
	m_access.write = false;
	if (from < to)
		out.own()->serve_rows(m_access, from, static_cast<unsigned>(to - from));
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

// Asks for what a look-up has found to be missing, or to have gone.
__attribute__((always_inline)) inline void l2::follow(const l2_answer &answer, fetch &times)
{
	times.lines = answer.lines;
	times.hits = answer.hits;
	if (answer.fill.bytes)
		ask(false, answer.fill, times);
	for (unsigned i = 0; i < answer.cleans; i++)
		ask(true, m_cache->clean[i], times);
}

__attribute__((always_inline)) inline void l2::look_up(uint64_t pa, uint64_t end, bool write,
						       fetch &times)
{
	if (G_UNLIKELY((pa ^ (end - 1)) >= m_profile->l2_block_bytes)) {
		times = look_up_blocks(pa, end, write, times);
		return;
	}
	const l2_place at = l2_cache_find(m_cache, pa, end - pa);

	// Each way goes on by itself: one answer of both would be handed over in memory.
	if (G_LIKELY(at.set))
		follow(l2_cache_access_at(m_cache, at, pa, end - pa, write), times);
	else
		follow(l2_cache_access_units(m_cache, pa, end - pa, write), times);
}

// What has been looked up is there when the L2 has the bandwidth for it, fractions of a picosecond
// carried over, and memory has answered. It takes more where it meets another request to the same
// 512 bytes.
__attribute__((always_inline)) inline void l2::settle(uint64_t pa, uint64_t at, bool write,
						      fetch &times, pace &of)
{
	const uint64_t hit_ps = m_hit_ps;
	uint64_t takes, start, end;
	uint32_t block = static_cast<uint32_t>(pa >> conflict_lg2);
	recent_request &last = recent_at(block);
	bool same = last.block == block, whole;

	if (G_UNLIKELY(times.lines != of.lines)) {
		uint64_t parts = times.lines * m_line_bytes * SIM_PS_PER_US;
		uint64_t per_ps = m_profile->l2_bytes_per_us;
		wide part = (static_cast<wide>(parts % per_ps) << 64) + per_ps - 1;

		// Rounded up: what adds up to a picosecond is one, for 2^37 requests.
		of = { times.lines, parts / per_ps, static_cast<uint64_t>(part / per_ps), of.rest };
	}
	whole = __builtin_add_overflow(of.rest, of.part, &of.rest);
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
	last = { start, block, static_cast<uint32_t>(std::max(start, times.first_ps) - start) };
}

void l2::serve(access &request)
{
	uint64_t at = request.at_ps, hit_ps = m_hit_ps;
	uint64_t pa = request.address, bytes = request.length;
	bool write = request.write;
	fetch times = { at + hit_ps, SIM_NEVER, at + hit_ps, 0, 0 };

	if (G_UNLIKELY(request.partial)) {
		times.lines = bytes / m_line_bytes;
		ask(false, { pa, bytes }, times);
	} else {
		look_up(pa, pa + bytes, write, times);
	}
	settle(pa, at, write, times, m_pace);
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
template <bool write, bool one> void l2::take_rows(sim_row *rows, unsigned count)
{
	uint64_t hit_ps = m_hit_ps, line = m_line_bytes, lines = 0, hits = 0;
	uint64_t was = ~rows[0].address, was_end = 0;
	struct {
		l2_place place;
		const sim_row *fill;
		unsigned hits;
	} step[SIM_ROWS_MAX];
	const sim_row none = { 0, 0, 0, SIM_NEVER, 0 };
	l2_place place = {};
	sim_row fill[SIM_ROWS_MAX], *next = fill, *asked = fill;
	l2_cache *cache = m_cache;
	pace of = m_pace;

	for (unsigned i = 0; i < count; i++) {
		uint64_t pa = rows[i].address, bytes = rows[i].bytes, end = pa + bytes - 1;

		if (one && G_UNLIKELY((pa ^ end) >= line)) {
			take_rows<write, false>(rows, count);
			return;
		}
		if (((pa ^ was) | (one ? 0 : end ^ was_end)) >= line)
			place = l2_cache_find(cache, pa, one ? 1 : bytes);
		step[i].place = place;
		was = pa;
		was_end = end;
	}
	for (unsigned i = 0; i < count; i++) {
		const sim_row &row = rows[i];

		if (G_UNLIKELY(!step[i].place.set)) { // others behind it may be parted, or joined
			step[i].place = l2_cache_find(cache, row.address, row.bytes);
			for (unsigned k = i + 1; !step[i].place.set && k < count; k++)
				step[k].place.set = nullptr;
		}
		if (one)
			step[i].place.lines = 1;
		l2_answer answer =
			G_LIKELY(step[i].place.set)
				? l2_cache_access_at(cache, step[i].place, row.address, row.bytes,
						     write)
				: l2_cache_access_units(cache, row.address, row.bytes, write);

		step[i].hits = answer.hits;
		step[i].fill = &none;
		lines += answer.lines;
		hits += answer.hits;
		if (answer.fill.bytes) {
			next->address = answer.fill.pa;
			next->bytes = answer.fill.bytes;
			next->at_ps = row.at_ps + hit_ps;
			step[i].fill = next++;
		}
		if (G_UNLIKELY(answer.cleans)) {
			ask_fills(asked, next);
			if (!answer.fill.bytes)
				*next++ = none;
			step[i].fill = &next[-1];
			fetch gone = { row.at_ps + hit_ps, 0, next[-1].done_ps, 0, 0 };
			for (unsigned n = 0; n < answer.cleans; n++)
				ask(true, cache->clean[n], gone);
			next[-1].done_ps = gone.last_ps;
			asked = next;
		}
	}
	ask_fills(asked, next);
	for (unsigned i = 0; i < count; i++) {
		sim_row &row = rows[i];
		fetch times = { 0, step[i].fill->first_ps, step[i].fill->done_ps,
				one ? 1 : step[i].place.lines, step[i].hits };

		settle(row.address, row.at_ps, write, times, of);
		row.first_ps = times.first_ps;
		row.done_ps = times.last_ps;
	}
	m_pace = of;
	(write ? m_counters->l2_writes : m_counters->l2_reads) += lines;
	(write ? m_counters->l2_write_hits : m_counters->l2_read_hits) += hits;
}

unsigned l2::serve_rows(access &request, sim_row *rows, unsigned count)
{
	bool one = rows->bytes <= m_line_bytes;

	if (request.write)
		one ? take_rows<true, true>(rows, count) : take_rows<true, false>(rows, count);
	else
		one ? take_rows<false, true>(rows, count) : take_rows<false, false>(rows, count);
	return count;
}

} // namespace npusim
