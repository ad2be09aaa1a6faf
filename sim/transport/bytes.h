// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a job: where they lie in this process, and how they are moved. No time, no SystemC.
#ifndef NPUSIM_SIM_TRANSPORT_BYTES_H
#define NPUSIM_SIM_TRANSPORT_BYTES_H

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/job.h"

namespace npusim
{

struct span {
	unsigned char *at;
	uint64_t bytes;

	span(unsigned char *at_, uint64_t bytes_) : at(at_), bytes(bytes_)
	{
	}
};

// Stretches of memory in the order of a job's bytes; neighbours are one.
class span_list
{
public:
	void clear()
	{
		for (span &s : m_spans)
			s = span(nullptr, 0); // LeakSanitizer reads on behind
		m_spans.clear();
		m_own.clear();
		m_bytes = 0;
	}
	void add(unsigned char *at, uint64_t bytes)
	{
		if (!m_spans.empty() && m_spans.back().at + m_spans.back().bytes == at)
			m_spans.back().bytes += bytes;
		else
			m_spans.emplace_back(at, bytes);
		m_bytes += bytes; // last: where there is no memory, nothing has changed
	}
	// Adds memory of the list's own, all zeros, that is there until clear().
	unsigned char *add_own(uint64_t bytes);
	// Forgets all beyond the first `bytes`.
	void cut(uint64_t bytes);
	uint64_t bytes() const
	{
		return m_bytes;
	}
	const std::vector<span> &spans() const
	{
		return m_spans;
	}
	// True if any of [at, at + bytes) is in a stretch.
	bool touches(const unsigned char *at, uint64_t bytes) const;

private:
	std::vector<span> m_spans;
	std::vector<std::unique_ptr<unsigned char[]>> m_own;
	uint64_t m_bytes = 0;
};

// Notes where [va, va + bytes) lies by the tables under root_pa, up to a fault. Returns how many
// bytes can be reached; *out_status: why no more, or SIM_OK.
uint64_t find_mapped(const sim_memory *memory, uint64_t root_pa, uint64_t va, uint64_t bytes,
		     bool write, span_list &spans, sim_status *out_status);

// Copies src, which is as long at least, to dst.
void copy_bytes(const span_list &dst, const span_list &src);

// Copies src to dst, or fills dst, as the job says; the lists are as long as the job's bytes that
// could be reached. They begin at byte `begin` of the job. Where contents stay, nothing moves.
// Where there are more than a few bytes it lets go of the lock meanwhile, unless that is null.
// Returns how many bytes are done: fewer than dst has only where the job's own memory is gone,
// which its status says then.
uint64_t move_bytes(sim_lock *lock, sim_job *job, const span_list &dst, const span_list &src,
		    uint64_t begin);

} // namespace npusim

#endif
