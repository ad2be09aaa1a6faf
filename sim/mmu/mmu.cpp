// SPDX-License-Identifier: Apache-2.0
//
// Requests through the MMU.
#include "mmu.h"

#include <algorithm>

namespace npusim
{

using sc_core::sc_time;

mmu::mmu(sc_core::sc_module_name name, unsigned device)
    : sc_module(name), in("in"), local("local"), remote("remote"), m_device(device)
{
	in.bind(*this);
	m_walk.set_command(tlm::TLM_READ_COMMAND);
	m_walk.set_data_length(8);
	m_walk.set_streaming_width(8);
	m_walk.it.device = device;
}

mmu::~mmu()
{
	mmu_state_free(m_state);
}

void mmu::end_of_elaboration()
{
	m_local = dynamic_cast<target *>(local.get_interface());
}

void mmu::reset(const sim_config *config, unsigned lanes, mmu_presence *presence)
{
	const mmu_memory memory = { read_descriptor, descriptor_at, this, expect_page };

	m_memory = config->memory;
	mmu_state_free(m_state);
	m_state = mmu_state_new(config->profile, m_device, lanes, presence, &memory);
}

// Walks go through the device's own L2 and HBM, or over the interconnect where a peer's table is
// read.
uint64_t mmu::read_descriptor(void *ctx, uint64_t pa, uint64_t at_ps)
{
	auto *self = static_cast<mmu *>(ctx);

	self->m_walk.it.now_ps = self->m_now_ps;
	return self->forward(self->m_walk, self->m_walk.it, pa, 8, at_ps);
}

void *mmu::descriptor_at(void *ctx, uint64_t pa)
{
	uint64_t bytes;

	return memory_at(static_cast<mmu *>(ctx)->m_memory, pa, &bytes);
}

void mmu::expect_page(void *ctx, uint64_t pa)
{
	auto *self = static_cast<mmu *>(ctx);

	if (self->m_local && SIM_PA_NODE(pa) == self->m_device)
		self->m_local->expect(pa);
}

// To where the physical address lies, at a time of the kernel. Returns when the last byte is there.
uint64_t mmu::forward(tlm::tlm_generic_payload &payload, access &request, uint64_t pa,
		      uint64_t bytes, uint64_t at_ps)
{
	sc_time delay = ps(at_ps - request.now_ps);

	payload.set_address(pa);
	payload.set_data_length(static_cast<unsigned>(bytes));
	request.first_ps = at_ps;
	if (SIM_PA_NODE(pa) == m_device)
		local->b_transport(payload, delay);
	else
		remote->b_transport(payload, delay);
	return request.now_ps + to_ps(delay);
}

// One page, or what is left of the request. False at a fault.
bool mmu::forward_page(tlm::tlm_generic_payload &payload, access &request, uint64_t va,
		       uint64_t left, uint64_t &issue_ps, uint64_t &end_ps)
{
	uint64_t pa, bytes, room;
	unsigned char *place;

	if (request.space == SIM_RAW) {
		place = reinterpret_cast<unsigned char *>(va);
		pa = SIM_PA(SIM_NODE_HOST, 0);
		bytes = left;
	} else {
		mmu_answer answer;
		bool write = payload.get_command() == tlm::TLM_WRITE_COMMAND;

		request.status =
			mmu_translate(m_state, request.lane, static_cast<unsigned>(request.space),
				      va, write, issue_ps, &answer);
		issue_ps = answer.done_ps;
		if (request.status != SIM_OK)
			return false;
		pa = answer.pa;
		room = UINT64_C(1) << answer.page_lg2;
		bytes = std::min(room - (va & (room - 1)), left);
		place = memory_at(m_memory, pa, &room);
		if (room < bytes) {
			request.status = SIM_FAULT_ADDRESS;
			return false;
		}
	}
	if (request.spans)
		request.spans->add(place, bytes);
	end_ps = std::max(end_ps, forward(payload, request, pa, bytes, issue_ps));
	request.bytes += bytes;
	return true;
}

void mmu::b_transport(tlm::tlm_generic_payload &payload, sc_time &delay)
{
	access &request = access_of(payload);
	uint64_t va = payload.get_address(), bytes = payload.get_data_length();
	uint64_t issue = request.now_ps + to_ps(delay), end = issue, first = 0;

	m_now_ps = request.now_ps;
	request.status = SIM_OK;
	request.bytes = 0;
	while (request.bytes < bytes) {
		bool begins = request.bytes == 0;

		if (!forward_page(payload, request, va + request.bytes, bytes - request.bytes,
				  issue, end)) {
			request.fault_va = va + request.bytes;
			end = std::max(end, issue);
			break;
		}
		if (begins)
			first = request.first_ps;
	}
	request.first_ps = request.bytes ? first : end;
	payload.set_response_status(request.status == SIM_OK ? tlm::TLM_OK_RESPONSE
							     : tlm::TLM_ADDRESS_ERROR_RESPONSE);
	delay = ps(end - request.now_ps);
}

} // namespace npusim
