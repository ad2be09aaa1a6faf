// SPDX-License-Identifier: Apache-2.0
//
// What travels through the model: a TLM-2.0 generic payload and, beside its address, length and
// command, an access: who asks, in which space, and what came of it. Blocks are timed only: bytes
// are moved by the engine, from the spans that are noted here.
#ifndef NPUSIM_SIM_ENGINE_ACCESS_H
#define NPUSIM_SIM_ENGINE_ACCESS_H

#include <cstdint>
#include <systemc>
#include <tlm>
#include <type_traits>

#include "sim/engine/bytes.h"
#include "sim/sim.h"

namespace npusim
{

struct access : tlm::tlm_extension<access> {
	int space = 0;              // a device, SIM_NODE_HOST or SIM_RAW
	unsigned lane = 0;          // of the device's MMU
	unsigned device = 0;        // that the request comes from
	uint64_t now_ps = 0;        // the kernel's time: who passes on need not ask
	bool partial = false;       // goes past the L2 and leaves nothing there
	span_list *spans = nullptr; // where to note the stretches of memory; may be null
	// set on the way
	uint64_t first_ps = 0; // when the first byte is there, in the kernel's time
	sim_status status = SIM_OK;
	uint64_t fault_va = 0;
	uint64_t bytes = 0; // before the fault

	tlm::tlm_extension_base *clone() const override
	{
		return new access(*this);
	}
	void copy_from(const tlm::tlm_extension_base &other) override
	{
		*this = static_cast<const access &>(other);
	}
};

// What every initiator of the model sends. The access is an extension as TLM-2.0 has it; the blocks
// of the model, which each ask for it at every request, have it at hand.
struct access_payload : tlm::tlm_generic_payload {
	access it;

	access_payload()
	{
		set_extension(&it);
	}
	~access_payload() override
	{
		clear_extension(&it);
	}
};

inline access &access_of(tlm::tlm_generic_payload &payload)
{
	return static_cast<access_payload &>(payload).it;
}

// sc_time::from_value() asks the kernel each time whether the resolution may still change: too slow
// for what every request does several times. The resolution is SystemC's own default, 1 ps.
inline sc_core::sc_time ps(uint64_t value)
{
	sc_core::sc_time time;

	// Its only member, which a pointer to it points at.
	static_assert(std::is_standard_layout<sc_core::sc_time>::value &&
		      sizeof(time) == sizeof(sc_core::sc_time::value_type));
	*reinterpret_cast<sc_core::sc_time::value_type *>(&time) = value;
	return time;
}

inline uint64_t to_ps(const sc_core::sc_time &time)
{
	return time.value();
}

// The kernel's time.
inline uint64_t now_ps()
{
	return to_ps(sc_core::sc_time_stamp());
}

// Time that `bytes` take at a rate in bytes a microsecond.
inline uint64_t transfer_ps(uint64_t bytes, uint64_t bytes_per_us)
{
	return bytes * SIM_PS_PER_US / bytes_per_us;
}

} // namespace npusim

#endif
