// SPDX-License-Identifier: Apache-2.0
//
// The sockets of the model's blocks, which follow the TLM-2.0 base protocol, loosely timed. A
// block of the model that finds another one bound to its socket at the end of elaboration passes
// it the access itself. All others receive, and may send, generic payloads: data moves between the
// payload's data pointer and the memory of the simulated server, byte enables and streaming are
// refused, a fault is TLM_ADDRESS_ERROR_RESPONSE. A foreign target annotates its delay and must
// not wait(): requests come from no process of the kernel. There is no direct memory interface.
#ifndef NPUSIM_SIM_TRANSPORT_SOCKET_H
#define NPUSIM_SIM_TRANSPORT_SOCKET_H

#include <glib.h>
#include <systemc>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>
#include <vector>

#include "sim/job.h"
#include "sim/transport/bytes.h"

namespace npusim
{

// What travels through the model: says what is requested, by whom, and when it arrives, and
// collects the results. Between two blocks of the model it is passed as it is, with time as a
// number of picoseconds; on a generic payload it is an extension, by which a foreign initiator may
// say more than the base protocol can.
struct access : tlm::tlm_extension<access> {
	static constexpr int own_space = -2;     // of the device that the MMU is of
	static constexpr unsigned no_lane = ~0u; // the one that foreign initiators share

	// set by a foreign initiator, or left alone
	int space = own_space;   // whose tables translate: a device, SIM_NODE_HOST; or SIM_RAW
	unsigned lane = no_lane; // of the device's MMU
	bool partial = false;    // goes past the L2 and leaves nothing there
	bool walk = false;       // of a descriptor
	// set by whoever hands it over; on a payload, from the payload
	bool write = false;
	uint64_t address = 0, length = 0;
	uint64_t at_ps = 0;         // when it is there, in the model's time
	span_list *spans = nullptr; // where to note the stretches of memory; may be null
	// the answer
	uint64_t done_ps = 0, first_ps = 0; // when the last byte is there, and when the first
	sim_status status = SIM_OK;
	uint64_t fault_va = 0;
	uint64_t bytes = 0; // before the fault; of a request to an MMU
	uint64_t rate =
		SIM_NEVER;      // bytes a microsecond that one engine gets of the link it went over
	uint64_t flight_ps = 0; // of that link, where it leads to another device of the server

	tlm::tlm_extension_base *clone() const override
	{
		return new access(*this);
	}
	void copy_from(const tlm::tlm_extension_base &other) override
	{
		*this = static_cast<const access &>(other);
	}
};

// The kernel's time. sim_open() sees to it that the unit of SystemC's times is 1 ps.
inline uint64_t now_ps()
{
	return sc_core::sc_time_stamp().value();
}

// Time that `bytes` take at a rate in bytes a microsecond.
inline uint64_t transfer_ps(uint64_t bytes, uint64_t bytes_per_us)
{
	return bytes * SIM_PS_PER_US / bytes_per_us;
}

// For any number of initiators; bound to the block itself.
using target_socket =
	tlm::tlm_target_socket<32, tlm::tlm_base_protocol_types, 0, sc_core::SC_ONE_OR_MORE_BOUND>;

// What every block that takes requests is.
class target : public tlm::tlm_fw_transport_if<>
{
public:
	// From another block of the model. The answer is in the access on return; its address and
	// length may have changed. Returns at once: time is in the access.
	virtual void serve(access &request) = 0;
	// Several requests of one kind and length, which the access describes but for what is in
	// the rows: as serve() of one after the other. Its address: theirs ored, of which the bits
	// below SIM_ROW_BYTES count. All come to an MMU at its time. Returns how many were served:
	// fewer, the last of them the one that failed, where the access's status says so.
	virtual unsigned serve_rows(access &request, sim_row *rows, unsigned count);
	// Whether no row can fail here, so that others may be on their way before it is answered.
	virtual bool takes_rows() const
	{
		return false;
	}
	// What lies here is to be asked for soon: has what that needs in the host's caches.
	virtual void expect(uint64_t) const
	{
	}
	// From anybody: with an access as extension, or with none.
	void b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &delay) override;
	// The same, done at once.
	tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
					   sc_core::sc_time &delay) override;
	bool get_direct_mem_ptr(tlm::tlm_generic_payload &, tlm::tlm_dmi &) override
	{
		return false;
	}
	unsigned transport_dbg(tlm::tlm_generic_payload &payload) override;

protected:
	static constexpr unsigned any_node = SIM_MEMORY_MAX;

	// node: the one whose memory lies behind the block.
	void set_memory(const sim_memory *memory, unsigned node = any_node)
	{
		m_memory = memory;
		m_node = node;
	}
	const sim_memory *memory() const
	{
		return m_memory;
	}
	// Notes in request.spans where the bytes lie that are asked for; returns how many do. By
	// physical address, unless a block has another notion.
	virtual uint64_t locate(access &request) const;

private:
	uint64_t locate(const tlm::tlm_generic_payload &payload, access &request,
			span_list &place) const;

	const sim_memory *m_memory = nullptr;
	unsigned m_node = any_node;
};

// Where a block's own requests go out.
class request_socket : public tlm_utils::simple_initiator_socket<request_socket>
{
public:
	explicit request_socket(const char *name) : simple_initiator_socket(name)
	{
	}
	// The block of the model that is bound; null: a foreign one.
	target *own() const
	{
		return m_own;
	}
	// By physical address, the answer in the access. A foreign target sees the bytes that are
	// in memory as they are written; what it reads is dropped: memory has its own.
	void send(access &request, const sim_memory *memory)
	{
		if (G_LIKELY(m_own))
			m_own->serve(request);
		else
			send_memory(request, memory);
	}
	// To a foreign target, with request.length bytes of data. request.bytes is left alone.
	void send_foreign(access &request, tlm::tlm_command command, unsigned char *data);

private:
	void send_memory(access &request, const sim_memory *memory);
	void end_of_elaboration() override;

	target *m_own = nullptr;
	std::vector<unsigned char> m_dropped;
};

} // namespace npusim

#endif
