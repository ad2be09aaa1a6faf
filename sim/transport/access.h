// SPDX-License-Identifier: Apache-2.0
//
// What travels through the model: an access says what is requested, by whom, and when it arrives,
// and collects the results. Between two blocks of the model it is passed as it is, with time as a
// number of picoseconds; on a generic payload it is an extension, by which a foreign initiator may
// say more than the base protocol can.
#ifndef NPUSIM_SIM_TRANSPORT_ACCESS_H
#define NPUSIM_SIM_TRANSPORT_ACCESS_H

#include <cstdint>
#include <systemc>
#include <tlm>

#include "sim/job.h"
#include "sim/transport/bytes.h"

namespace npusim
{

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
	uint64_t at_ps = 0;         // when it is there, in the kernel's time
	span_list *spans = nullptr; // where to note the stretches of memory; may be null
	// the answer
	uint64_t done_ps = 0, first_ps = 0; // when the last byte is there, and when the first
	sim_status status = SIM_OK;
	uint64_t fault_va = 0;
	uint64_t bytes = 0; // before the fault; of a request to an MMU

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

} // namespace npusim

#endif
