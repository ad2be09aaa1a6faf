// SPDX-License-Identifier: Apache-2.0
//
// Moves the bytes of jobs, in pieces over which both sides are contiguous.
#include "bytes.h"

#include <algorithm>
#include <cstring>

#include "sim/page-table.h"
#include "sim/transport/loose.h"

namespace npusim
{

unsigned char *span_list::add_own(uint64_t bytes)
{
	m_own.emplace_back(new unsigned char[bytes]());
	add(m_own.back().get(), bytes);
	return m_own.back().get();
}

void span_list::cut(uint64_t bytes)
{
	while (m_bytes > bytes) {
		uint64_t off = std::min(m_bytes - bytes, m_spans.back().bytes);

		m_spans.back().bytes -= off;
		m_bytes -= off;
		if (!m_spans.back().bytes)
			m_spans.pop_back();
	}
}

bool span_list::touches(const unsigned char *at, uint64_t bytes) const
{
	return std::any_of(m_spans.begin(), m_spans.end(),
			   [=](const span &s) { return s.at < at + bytes && at < s.at + s.bytes; });
}

uint64_t find_mapped(const sim_memory *memory, uint64_t root_pa, uint64_t va, uint64_t bytes,
		     bool write, span_list &spans, sim_status *out_status)
{
	uint64_t done = 0, page, room;
	pt_leaf leaf;
	pt_step steps;

	*out_status = SIM_OK;
	while (done < bytes && *out_status == SIM_OK) {
		unsigned char *at;

		if (!pt_walk_from(0, root_pa, memory, va + done, &leaf, &steps)) {
			*out_status = SIM_FAULT_TRANSLATION;
			break;
		}
		at = sim_memory_at(memory, leaf.pa, &room);
		page = UINT64_C(1) << leaf.page_lg2;
		page = std::min(page - ((va + done) & (page - 1)), bytes - done);
		if (write && !(leaf.flags & PT_WRITE)) {
			*out_status = SIM_FAULT_PERMISSION;
		} else if (room < page) {
			*out_status = SIM_FAULT_ADDRESS;
		} else {
			spans.add(at, page);
			done += page;
		}
	}
	return done;
}

// Moves piece by piece, until one comes short. Returns how many bytes are moved; *at_src: whose
// next byte was in the way.
static uint64_t move_pieces(const span_list &dst, int dst_pid, const span_list &src, int src_pid,
			    bool *at_src)
{
	auto s = src.spans().begin();
	uint64_t into = 0, sum = 0;

	for (const span &d : dst.spans()) {
		for (uint64_t done = 0; done < d.bytes;) {
			uint64_t n = std::min(d.bytes - done, s->bytes - into);
			uint64_t moved =
				loose_move(d.at + done, dst_pid, s->at + into, src_pid, n, at_src);

			sum += moved;
			if (moved < n)
				return sum;
			done += n;
			into += n;
			if (into == s->bytes) {
				++s;
				into = 0;
			}
		}
	}
	return sum;
}

void copy_bytes(const span_list &dst, const span_list &src)
{
	bool at_src;

	move_pieces(dst, 0, src, 0, &at_src);
}

static uint64_t copy_job(sim_job *job, const span_list &dst, const span_list &src, uint64_t begin)
{
	bool at_src = false;
	uint64_t moved = move_pieces(dst, job->dst.pid, src, job->src.pid, &at_src);

	if (moved < dst.bytes()) {
		job->status = SIM_FAULT_HOST;
		job->fault_space = SIM_RAW;
		job->fault_va = (at_src ? job->src.va : job->dst.va) + begin + moved;
	}
	return moved;
}

// Bytes of the pattern, laid out from byte `phase` of it on, doubling what is there already.
static void fill(unsigned char *at, uint64_t bytes, const unsigned char *pattern, unsigned size,
		 uint64_t phase)
{
	constexpr uint64_t chunk = 1u << 16;
	uint64_t done = std::min<uint64_t>(bytes, size);

	for (uint64_t i = 0; i < done; i++)
		at[i] = pattern[(phase + i) % size];
	while (done < bytes) {
		uint64_t n = std::min({ done, bytes - done, chunk });

		std::memcpy(at + done, at, n);
		done += n;
	}
}

static uint64_t move(sim_job *job, const span_list &dst, const span_list &src, uint64_t begin)
{
	if (job->kind == SIM_JOB_COPY)
		return copy_job(job, dst, src, begin);

	unsigned size = job->pattern_bytes ? job->pattern_bytes : 1;
	uint64_t phase = begin % size;
	const uint32_t word = GUINT32_TO_LE(job->pattern);
	const auto *pattern = reinterpret_cast<const unsigned char *>(&word);

	for (const span &d : dst.spans()) {
		if (size == 1)
			std::memset(d.at, pattern[0], d.bytes);
		else
			fill(d.at, d.bytes, pattern, size, phase);
		phase = (phase + d.bytes) % size;
	}
	return dst.bytes();
}

uint64_t move_bytes(sim_lock *lock, sim_job *job, const span_list &dst, const span_list &src,
		    uint64_t begin)
{
	uint64_t moved;

	if (job->contents_stay || (job->kind != SIM_JOB_COPY && job->kind != SIM_JOB_FILL))
		return dst.bytes();
	if (!lock || dst.bytes() <= SIM_FEW_BYTES)
		return move(job, dst, src, begin);
	lock->away++;
	lock->release(lock->arg);
	moved = move(job, dst, src, begin);
	lock->take(lock->arg);
	lock->away--;
	return moved;
}

} // namespace npusim
