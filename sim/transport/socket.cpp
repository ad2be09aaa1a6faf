// SPDX-License-Identifier: Apache-2.0
//
// Converts generic payloads at the model's sockets, for foreign initiators and targets.
#include "socket.h"

#include <algorithm>

namespace npusim
{

using sc_core::sc_time;
using tlm::tlm_generic_payload;

static tlm::tlm_response_status check(const tlm_generic_payload &payload)
{
	if (payload.get_byte_enable_ptr())
		return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
	if (payload.get_streaming_width() < payload.get_data_length())
		return tlm::TLM_BURST_ERROR_RESPONSE;
	if (!payload.get_data_ptr() || !payload.get_data_length())
		return tlm::TLM_GENERIC_ERROR_RESPONSE;
	return tlm::TLM_OK_RESPONSE;
}

static void move_data(const tlm_generic_payload &payload, const span_list &place, uint64_t bytes)
{
	span_list data;

	data.add(payload.get_data_ptr(), bytes);
	if (payload.is_write())
		copy_bytes(place, data);
	else
		copy_bytes(data, place);
}

uint64_t target::locate(access &request) const
{
	uint64_t room;
	unsigned char *at = sim_memory_at(m_memory, request.address, &room);

	if (m_node != any_node && SIM_PA_NODE(request.address) != m_node)
		room = 0;
	room = std::min(room, request.length);
	request.spans->add(at, room);
	return room;
}

uint64_t target::locate(const tlm_generic_payload &payload, access &request, span_list &place) const
{
	uint64_t found;

	request.address = payload.get_address();
	request.length = payload.get_data_length();
	request.write = payload.is_write();
	request.status = SIM_OK;
	request.spans = &place;
	found = locate(request);
	request.spans = nullptr;
	return found;
}

unsigned target::serve_rows(access &request, sim_row *rows, unsigned count)
{
	const uint64_t bytes = request.length;
	unsigned served = 0;

	request.status = SIM_OK;
	for (; served < count && request.status == SIM_OK; served++) {
		request.address = rows[served].address;
		request.length = bytes;
		request.at_ps = rows[served].at_ps;
		serve(request);
		rows[served].first_ps = request.first_ps;
		rows[served].done_ps = request.done_ps;
	}
	return served;
}

void target::b_transport(tlm_generic_payload &payload, sc_time &delay)
{
	access plain, *given = payload.get_extension<access>();
	access &request = given ? *given : plain;
	span_list place;
	uint64_t now = now_ps();

	payload.set_dmi_allowed(false);
	payload.set_response_status(check(payload));
	if (payload.is_response_error() || payload.get_command() == tlm::TLM_IGNORE_COMMAND)
		return;
	if (locate(payload, request, place) < payload.get_data_length()) {
		payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
		return;
	}
	// What is written is in memory before a foreign target behind the block looks there.
	move_data(payload, place, payload.get_data_length());
	request.at_ps = now + delay.value();
	serve(request);
	if (request.status != SIM_OK)
		payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
	delay = sc_time::from_value(request.done_ps - now);
}

tlm::tlm_sync_enum target::nb_transport_fw(tlm_generic_payload &payload, tlm::tlm_phase &phase,
					   sc_time &delay)
{
	if (phase == tlm::BEGIN_REQ)
		b_transport(payload, delay);
	return tlm::TLM_COMPLETED;
}

unsigned target::transport_dbg(tlm_generic_payload &payload)
{
	access plain, *given = payload.get_extension<access>();
	span_list place;
	uint64_t found;

	payload.set_response_status(check(payload));
	if (payload.is_response_error() || payload.get_command() == tlm::TLM_IGNORE_COMMAND)
		return 0;
	found = locate(payload, given ? *given : plain, place);
	move_data(payload, place, found);
	return static_cast<unsigned>(found);
}

void request_socket::end_of_elaboration()
{
	m_own = dynamic_cast<target *>(get_interface());
}

void request_socket::send_foreign(access &request, tlm::tlm_command command, unsigned char *data)
{
	tlm_generic_payload payload;
	uint64_t now = now_ps();
	sc_time delay = sc_time::from_value(request.at_ps - now);
	unsigned bytes = static_cast<unsigned>(request.length);

	payload.set_command(command);
	payload.set_address(request.address);
	payload.set_data_ptr(data);
	payload.set_data_length(bytes);
	payload.set_streaming_width(bytes);
	(*this)->b_transport(payload, delay);
	request.done_ps = request.first_ps = now + delay.value();
	if (!payload.is_response_ok()) {
		request.status = SIM_FAULT_ADDRESS;
		request.fault_va = request.address;
	}
}

void request_socket::send_memory(access &request, const sim_memory *memory)
{
	uint64_t room = 0;
	unsigned char *data = nullptr;

	if (request.write)
		data = sim_memory_at(memory, request.address, &room);
	if (room < request.length) {
		m_dropped.resize(std::max(m_dropped.size(), request.length));
		data = m_dropped.data();
	}
	send_foreign(request, request.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND, data);
}

} // namespace npusim
