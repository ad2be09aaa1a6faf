// SPDX-License-Identifier: Apache-2.0
//
// Builds the modules of all devices and wires them.
#include "model.h"

#include <algorithm>
#include <string>

namespace npusim
{

device::device(sc_core::sc_module_name name, unsigned index)
    : sc_module(name), mmu("mmu", index), l2("l2", index), hbm("hbm", index),
      sdma("sdma", SIM_ENGINE_SDMA), h2d("h2d", SIM_ENGINE_H2D), d2h("d2h", SIM_ENGINE_D2H),
      core("core", SIM_ENGINE_CORE)
{
	for (engine *it : engines)
		it->out.bind(mmu.in);
	mmu.local.bind(l2.in);
	l2.out.bind(hbm.in);
}

model::model(unsigned devices)
    : m_interconnect(new interconnect("interconnect", devices)),
      m_due_ps(devices * SIM_ENGINE_COUNT, SIM_NEVER)
{
	for (unsigned i = 0; i < devices; i++) {
		std::string name = "device" + std::to_string(i);

		m_devices.emplace_back(new device(name.c_str(), i));
		at(i).mmu.remote.bind(m_interconnect->in[i]);
		m_interconnect->count(i, &at(i).counters);
		m_interconnect->out[i].bind(at(i).hbm.in);
	}
}

void model::reset(const sim_config *config, uint64_t origin_ps)
{
	unsigned cores = config->profile->cube_cores + config->profile->vector_cores;
	uint64_t *due = m_due_ps.data();

	for (const auto &d : m_devices) {
		sim_counters *counters = &d->counters;

		*counters = {};
		d->mmu.reset(config, SIM_ENGINE_CORE + cores, &m_shared, counters);
		d->l2.reset(config, origin_ps, counters);
		d->hbm.reset(config, origin_ps);
		for (unsigned kind = 0; kind < SIM_ENGINE_COUNT; kind++)
			d->engines[kind]->reset(config, kind == SIM_ENGINE_CORE ? cores : 1, kind,
						counters, due++);
	}
	m_shared = {};
	m_interconnect->reset(config, origin_ps);
}

uint64_t model::due_ps() const
{
	return *std::min_element(m_due_ps.begin(), m_due_ps.end());
}

void model::catch_up()
{
	for (unsigned i = 0; i < m_due_ps.size(); i++)
		if (m_due_ps[i] <= now_ps())
			m_devices[i / SIM_ENGINE_COUNT]->engines[i % SIM_ENGINE_COUNT]->step();
}

void model::flush(unsigned space, unsigned asid)
{
	for (uint32_t mask = m_shared.filter.devices[space]; mask; mask &= mask - 1)
		mmu_state_flush(at(static_cast<unsigned>(__builtin_ctz(mask))).mmu.state(), space,
				asid);
}

void model::set_root(unsigned space, unsigned asid, uint64_t root_pa)
{
	mmu_root *seen = m_shared.seen[space];
	unsigned &count = m_shared.seen_count[space], i = 0;

	while (i < count && seen[i].asid != asid)
		i++;
	if (i < count && seen[i].root_pa != root_pa)
		flush(space, asid); // the address space's number is used again
	if (i == MMU_ASIDS) {
		i = 0;
		flush(space, seen[0].asid);
	}
	count = std::max(count, i + 1);
	seen[i] = m_shared.root[space] = { root_pa, asid };
}

void model::invalidate(unsigned space, uint64_t va, uint64_t bytes)
{
	for (uint32_t mask = m_shared.filter.devices[space]; mask; mask &= mask - 1)
		mmu_state_invalidate(at(static_cast<unsigned>(__builtin_ctz(mask))).mmu.state(),
				     space, va, bytes);
}

bool model::uses(const unsigned char *at, uint64_t bytes) const
{
	for (const auto &d : m_devices)
		for (const engine *e : d->engines)
			if (e->uses(at, bytes))
				return true;
	return false;
}

void model::get_counters(unsigned index, sim_counters *out) const
{
	const device &d = at(index);

	*out = d.counters;
	if (d.mmu.state())
		out->tlb_live_bytes = mmu_state_live_bytes(d.mmu.state());
	d.hbm.get_counters(out);
}

} // namespace npusim
