// SPDX-License-Identifier: Apache-2.0
//
// The elaborated model: the modules of all devices and their wiring. There is one per process,
// which is reset for another simulation.
#ifndef NPUSIM_SIM_MODEL_H
#define NPUSIM_SIM_MODEL_H

#include <memory>
#include <systemc>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/hbm/hbm-module.h"
#include "sim/l2/l2.h"
#include "sim/link/interconnect.h"
#include "sim/mmu/mmu.h"

namespace npusim
{

struct device : public sc_core::sc_module {
	sim_counters counters = {};
	npusim::mmu mmu;
	npusim::l2 l2;
	hbm_module hbm;
	engine sdma, h2d, d2h, core;
	engine *const engines[SIM_ENGINE_COUNT] = { &sdma, &h2d, &d2h, &core }; // by sim_engine

	device(sc_core::sc_module_name name, unsigned index);
	engine &engine_of(sim_engine kind)
	{
		return *engines[kind];
	}
};

class model
{
public:
	explicit model(unsigned devices);
	// For a simulation of as many devices or fewer, which begins at origin_ps.
	void reset(const sim_config *config, uint64_t origin_ps);

	unsigned size() const
	{
		return static_cast<unsigned>(m_devices.size());
	}
	device &at(unsigned index) const
	{
		return *m_devices[index];
	}
	// Which tables translate for a space from now on.
	void set_root(unsigned space, unsigned asid, uint64_t root_pa);
	// Nobody translates by what was in [va, va + bytes) of the space any more.
	void invalidate(unsigned space, uint64_t va, uint64_t bytes);
	// True if a job under way has translated addresses to any of these bytes.
	bool uses(const unsigned char *at, uint64_t bytes) const;
	void get_counters(unsigned device, sim_counters *out) const;
	// Does what is due, and was not done for want of memory.
	void catch_up();
	// The earliest time at which anything is to be done.
	uint64_t due_ps() const;

private:
	void flush(unsigned space, unsigned asid);

	mmu_shared m_shared = {};
	std::unique_ptr<interconnect> m_interconnect;
	std::vector<std::unique_ptr<device>> m_devices;
	std::vector<uint64_t> m_due_ps; // of all engines, side by side: looked at in every call
};

} // namespace npusim

#endif
