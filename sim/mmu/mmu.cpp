// SPDX-License-Identifier: Apache-2.0
//
// Translates requests in the MMU module and passes them on, split at pages.
#include "mmu.h"

#include <algorithm>

#include "sim/page-table.h"

namespace npusim
{

mmu::mmu(sc_core::sc_module_name name, unsigned device)
    : sc_module(name), in("in"), local("local"), remote("remote"), m_device(device)
{
	in.bind(*this);
	m_walk.walk = true;
}

mmu::~mmu()
{
	mmu_state_free(m_state);
}

void mmu::reset(const sim_config *config, unsigned lanes, mmu_shared *shared,
		sim_counters *counters)
{
	set_memory(config->memory);
	m_profile = config->profile;
	m_foreign_lane = lanes;
	m_shared = shared;
	m_counters = counters;
	mmu_state_free(m_state);
	m_state = nullptr;
}

// Walks go through the device's own L2 and HBM, or over the interconnect where a peer's table is
// read.
uint64_t mmu::read_descriptor(void *ctx, uint64_t pa, uint64_t at_ps)
{
	auto *self = static_cast<mmu *>(ctx);

	return self->forward(self->m_walk, SIM_PA_NODE(pa) == self->m_device, pa, 8, at_ps);
}

// To where the physical address lies, at a time of the model. Returns when the last byte is there.
inline uint64_t mmu::forward(access &request, bool is_own, uint64_t pa, uint64_t bytes,
			     uint64_t at_ps)
{
	request.address = pa;
	request.length = bytes;
	request.at_ps = at_ps;
	request.rate = SIM_NEVER;
	(is_own ? local : remote).send(request, memory());
	return request.done_ps;
}

// One page, or what is left of the request. False at a fault.
inline bool mmu::forward_page(access &request, uint64_t va, uint64_t left, uint64_t &issue_ps,
			      uint64_t &end_ps)
{
	uint64_t pa, bytes, room;
	unsigned char *place = nullptr;
	bool is_own = false;

	if (request.space == SIM_RAW) {
		place = reinterpret_cast<unsigned char *>(va);
		pa = SIM_PA(SIM_NODE_HOST, 0);
		bytes = left;
	} else {
		mmu_answer answer;

		request.status =
			mmu_translate(m_state, request.lane, static_cast<unsigned>(request.space),
				      va, request.write, issue_ps, &answer);
		issue_ps = answer.done_ps;
		if (request.status != SIM_OK)
			return false;
		pa = answer.pa;
		room = UINT64_C(1) << answer.page_lg2;
		bytes = std::min(room - (va & (room - 1)), left);
		is_own = answer.is_own;
		if (G_UNLIKELY(!is_own || request.spans)) {
			place = sim_memory_at(memory(), pa, &room);
			is_own = SIM_PA_NODE(pa) == m_device;
			if (room < bytes) {
				request.status = SIM_FAULT_ADDRESS;
				return false;
			}
		}
	}
	if (G_UNLIKELY(request.spans))
		request.spans->add(place, bytes);
	end_ps = std::max(end_ps, forward(request, is_own, pa, bytes, issue_ps));
	if (G_UNLIKELY(request.status != SIM_OK)) // of a foreign memory
		return false;
	request.bytes += bytes;
	return true;
}

void mmu::serve(access &request)
{
	uint64_t va = request.address, bytes = request.length, first = 0;
	uint64_t issue = request.at_ps, end = issue;

	if (G_UNLIKELY(!m_state)) {
		const mmu_memory descriptors = { read_descriptor, this, memory() };

		m_state = mmu_state_new(m_profile, m_device, m_foreign_lane + 1, m_shared,
					&descriptors, m_counters);
	}
	request.status = SIM_OK;
	request.bytes = 0;
	while (request.bytes < bytes) {
		bool begins = request.bytes == 0;

		if (!forward_page(request, va + request.bytes, bytes - request.bytes, issue, end)) {
			request.fault_va = va + request.bytes;
			end = std::max(end, issue);
			break;
		}
		if (begins)
			first = request.first_ps;
	}
	request.first_ps = request.bytes ? first : end;
	request.done_ps = end;
}

// Those behind the first, by the tables alone, which may say otherwise when a row comes.
void mmu::expect_rows(int space, const sim_row *rows, unsigned count) const
{
	pt_step steps;
	pt_leaf leaf;

	for (unsigned i = 1; i < count; i++)
		if ((rows[i].address ^ rows[i - 1].address) >= SIM_ROW_BYTES &&
		    pt_walk_from(0, m_shared->root_pa[space], memory(), rows[i].address, &leaf,
				 &steps) &&
		    SIM_PA_NODE(leaf.pa) == m_device)
			local.own()->expect(leaf.pa);
}

// The first of several rows that hit the TLBs go on together, all from a miss on one by one.
unsigned mmu::serve_rows(access &request, sim_row *rows, unsigned count)
{
	const uint64_t at = request.at_ps;
	unsigned hits = 0;

	if (m_state && count > 1 && request.space != SIM_RAW && local.own() &&
	    local.own()->takes_rows()) {
		uint64_t bytes = request.length, into = request.address % SIM_ROW_BYTES;

		hits = mmu_translate_rows(m_state, request.lane,
					  static_cast<unsigned>(request.space), request.write, at,
					  into + bytes > SIM_ROW_BYTES ? bytes : 0, rows, count);
		if (hits) {
			local.own()->serve_rows(request, rows, hits);
			request.bytes = request.length;
		}
		expect_rows(request.space, rows + hits, count - hits);
	}
	for (unsigned i = hits; i < count; i++)
		rows[i].at_ps = at;
	return hits + target::serve_rows(request, rows + hits, count - hits);
}

// Of a payload: by the tables alone.
uint64_t mmu::locate(access &request) const
{
	if (request.space == access::own_space)
		request.space = static_cast<int>(m_device);
	if (request.lane > m_foreign_lane)
		request.lane = m_foreign_lane;
	if (request.space < 0 || request.space >= MMU_SPACES)
		return 0;
	return find_mapped(memory(), m_shared->root_pa[request.space], request.address,
			   request.length, request.write, *request.spans, &request.status);
}

} // namespace npusim
