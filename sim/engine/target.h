// SPDX-License-Identifier: Apache-2.0
//
// What every block that takes requests has: a TLM-2.0 target socket for any number of initiators,
// bound to the block itself. The convenience sockets would go through a callback object at each
// request. Non-blocking transport is the blocking one, done at once; there is no direct memory.
#ifndef NPUSIM_SIM_ENGINE_TARGET_H
#define NPUSIM_SIM_ENGINE_TARGET_H

#include <systemc>
#include <tlm>

namespace npusim
{

using target_socket =
	tlm::tlm_target_socket<32, tlm::tlm_base_protocol_types, 0, sc_core::SC_ONE_OR_MORE_BOUND>;

class target : public tlm::tlm_fw_transport_if<>
{
public:
	// The address will be asked for soon. Nothing comes of it but speed: what is looked up for
	// it is brought near.
	virtual void expect(uint64_t)
	{
	}
	tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &,
					   sc_core::sc_time &delay) override
	{
		b_transport(payload, delay);
		return tlm::TLM_COMPLETED;
	}
	bool get_direct_mem_ptr(tlm::tlm_generic_payload &, tlm::tlm_dmi &) override
	{
		return false;
	}
	unsigned transport_dbg(tlm::tlm_generic_payload &) override
	{
		return 0;
	}
};

} // namespace npusim

#endif
