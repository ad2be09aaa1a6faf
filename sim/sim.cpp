// SPDX-License-Identifier: Apache-2.0
//
// Implements sim.h: builds the modules of all devices and wires them, and runs one simulation over
// the one SystemC kernel of the process, with its two clocks: host time (that of the calling
// program) and the model's, which follows it. No exception leaves this file.
#include "sim.h"

#include <algorithm>
#include <cstring>
#include <glib.h>
#include <memory>
#include <new>
#include <string>
#include <systemc>
#include <thread>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/hbm/hbm-module.h"
#include "sim/l2/l2.h"
#include "sim/link/interconnect.h"
#include "sim/mmu/mmu.h"

namespace
{

// One device's modules, wired.
struct device : public sc_core::sc_module {
	sim_counters counters = {};
	npusim::mmu mmu;
	npusim::l2 l2;
	npusim::hbm_module hbm;
	npusim::engine sdma, h2d, d2h, core;
	npusim::engine *const engines[SIM_ENGINE_COUNT] = { &sdma, &h2d, &d2h, &core };

	device(sc_core::sc_module_name name, unsigned index)
	    : sc_module(name), mmu("mmu", index), l2("l2", index), hbm("hbm", index),
	      sdma("sdma", SIM_ENGINE_SDMA), h2d("h2d", SIM_ENGINE_H2D), d2h("d2h", SIM_ENGINE_D2H),
	      core("core", SIM_ENGINE_CORE)
	{
		for (npusim::engine *it : engines)
			it->out.bind(mmu.in);
		mmu.local.bind(l2.in);
		l2.out.bind(hbm.in);
	}
};

// The elaborated model: the modules of all devices. There is one in a process, since SystemC
// elaborates once; it is reset for another simulation. It does what is due in the order of time, of
// one time in that of devices and engines. Where it is alone in the kernel it is temporally
// decoupled: the kernel's clock follows when a wait ends, else before each event, and what is due
// there goes first.
class model
{
public:
	explicit model(unsigned devices)
	    : m_alone(sc_core::sc_get_top_level_objects().empty()),
	      m_interconnect(new npusim::interconnect("interconnect", devices)),
	      m_due_ps(devices * SIM_ENGINE_COUNT, SIM_NEVER)
	{
		for (unsigned i = 0; i < devices; i++) {
			std::string name = "device" + std::to_string(i);

			m_devices.emplace_back(new device(name.c_str(), i));
			at(i).mmu.remote.bind(m_interconnect->in[i]);
			m_interconnect->out[i].bind(at(i).hbm.in);
		}
	}
	unsigned size() const
	{
		return static_cast<unsigned>(m_devices.size());
	}
	device &at(unsigned index) const
	{
		return *m_devices[index];
	}
	// The job goes to its engine. Returns the earliest time at which anything is to be done.
	uint64_t submit(sim_job *job, uint64_t not_before_ps);
	uint64_t now_ps() const
	{
		return m_now_ps;
	}
	// Goes on to `due`, and does what is due. Returns when more is.
	uint64_t run(uint64_t due);
	// Does this job, of a few bytes, while there is no other: nothing comes between its steps.
	// The kernel's clock follows.
	uint64_t run_alone(const sim_job *job);
	// Takes the kernel's clock along to now_ps().
	void sync();
	// For a simulation of as many devices or fewer, which begins at origin_ps.
	void reset(const sim_config *config, mmu_shared *shared, uint64_t origin_ps);
	// True if a job under way has translated addresses to any of these bytes.
	bool uses(const unsigned char *at, uint64_t bytes) const;

private:
	// Also forgets engines with nothing to do.
	uint64_t due_ps();

	const bool m_alone; // in the kernel
	std::unique_ptr<npusim::interconnect> m_interconnect;
	std::vector<std::unique_ptr<device>> m_devices;
	std::vector<uint64_t> m_due_ps; // of all engines
	uint64_t m_busy = 0; // a bit of each engine that may have something to do: 16 devices of 4
	uint64_t m_now_ps = 0;
};

void model::reset(const sim_config *config, mmu_shared *shared, uint64_t origin_ps)
{
	unsigned cores = config->profile->cube_cores + config->profile->vector_cores;
	uint64_t *due = m_due_ps.data();

	for (const auto &d : m_devices) {
		sim_counters *counters = &d->counters;

		*counters = {};
		d->mmu.reset(config, SIM_ENGINE_CORE + cores, shared, counters);
		d->l2.reset(config, origin_ps, counters);
		d->hbm.reset(config, origin_ps);
		for (unsigned kind = 0; kind < SIM_ENGINE_COUNT; kind++)
			d->engines[kind]->reset(config, shared->root_pa,
						kind == SIM_ENGINE_CORE ? cores : 1, kind, due++);
	}
	m_interconnect->reset(config, origin_ps);
}

void model::sync()
{
	uint64_t kernel = npusim::now_ps();

	if (kernel < m_now_ps)
		sc_core::sc_start(sc_core::sc_time::from_value(m_now_ps - kernel));
}

uint64_t model::due_ps()
{
	uint64_t due = SIM_NEVER;

	for (uint64_t left = m_busy; left; left &= left - 1) {
		uint64_t at = m_due_ps[static_cast<unsigned>(__builtin_ctzll(left))];

		due = std::min(due, at);
		m_busy ^= at == SIM_NEVER ? left & -left : 0;
	}
	return due;
}

uint64_t model::submit(sim_job *job, uint64_t not_before_ps)
{
	at(job->device).engines[job->engine]->submit(job, not_before_ps);
	m_busy |= UINT64_C(1) << (job->device * SIM_ENGINE_COUNT + job->engine);
	return due_ps();
}

// An engine that gets work from one before it has its turn in the same round.
uint64_t model::run(uint64_t due)
{
	m_now_ps = std::max(m_now_ps, due);
	if (!m_alone)
		sync();
	do {
		uint64_t behind = SIM_NEVER;

		for (uint64_t left; (left = m_busy & behind); behind = -(left & -left) << 1) {
			unsigned i = static_cast<unsigned>(__builtin_ctzll(left));

			if (m_due_ps[i] <= m_now_ps)
				at(i / SIM_ENGINE_COUNT)
					.engines[i % SIM_ENGINE_COUNT]
					->step(m_now_ps);
		}
		due = due_ps();
	} while (due <= m_now_ps);
	return due;
}

uint64_t model::run_alone(const sim_job *job)
{
	const unsigned i = job->device * SIM_ENGINE_COUNT + job->engine;

	if (m_alone && m_busy == UINT64_C(1) << i)
		at(job->device).engines[job->engine]->step_only(job, m_busy, m_now_ps);
	sync();
	return due_ps();
}

bool model::uses(const unsigned char *at, uint64_t bytes) const
{
	for (const auto &d : m_devices)
		for (const npusim::engine *e : d->engines)
			if (e->uses(at, bytes))
				return true;
	return false;
}

} // namespace

struct sim {
	sim_config config;
	model *built = nullptr; // null without timing, and until the first job
	uint64_t host_ps = 0;
	uint64_t due_ps = SIM_NEVER; // the model's next event
	bool running = false;        // inside the model:
	std::thread::id runner;      // who
};

namespace
{

struct {
	model *built = nullptr; // outlives simulations
	mmu_shared shared = {}; // of this simulation
	uint64_t last_ps = 0;   // of the simulation before
	bool taken = false;
} the_kernel;

// Nothing is printed. That nothing is to be done yet when elaboration ends is no mistake.
void on_report(const sc_core::sc_report &report, const sc_core::sc_actions &)
{
	if (report.get_severity() != sc_core::SC_INFO &&
	    std::strcmp(report.get_msg_type(), sc_core::SC_ID_NO_SC_START_ACTIVITY_) != 0)
		throw report;
}

// At the first job: many a process opens a device and never copies.
void build(sim *s)
{
	if (!the_kernel.built) {
		sc_core::sc_report_handler::set_handler(on_report);
		the_kernel.built = new model(s->config.devices);
		sc_core::sc_start(sc_core::SC_ZERO_TIME);
	}
	the_kernel.built->reset(&s->config, &the_kernel.shared, the_kernel.last_ps);
	s->built = the_kernel.built;
}

void raise_host(sim *s, uint64_t to_ps)
{
	s->host_ps = std::max(s->host_ps, to_ps);
}

// Another thread is inside the model, and has let go of the lock there.
bool runs_elsewhere(const sim *s)
{
	return s->running && s->runner != std::this_thread::get_id() && s->config.lock &&
	       s->config.lock->away;
}

void wait_for_model(sim *s)
{
	while (runs_elsewhere(s))
		s->config.lock->wait(s->config.lock->arg);
}

// Does what is due next, which there is, or as much of a job as it can do alone, and lets in who
// waits for the lock; the host's time follows where it is to.
void run_one(sim *s, bool host_follows, const sim_job *alone = nullptr)
{
	s->running = true;
	s->runner = std::this_thread::get_id();
	try {
		s->due_ps = alone ? s->built->run_alone(alone) : s->built->run(s->due_ps);
	} catch (const std::exception &e) {
		g_error("SystemC: %s", e.what());
	}
	s->running = false;
	if (host_follows)
		raise_host(s, s->built->now_ps());
	sim_lock_offer(s->config.lock);
	wait_for_model(s);
}

// Jobs without time: the same page tables and the same bytes, but no TLBs. Where a side of one
// lies, up to a fault.
uint64_t reach(const sim *s, sim_job *job, const sim_ref &ref, bool write, uint64_t bytes,
	       npusim::span_list &spans)
{
	uint64_t done;
	sim_status status;

	if (ref.space == SIM_RAW) {
		spans.add(reinterpret_cast<unsigned char *>(ref.va), bytes);
		return bytes;
	}
	done = npusim::find_mapped(s->config.memory, the_kernel.shared.root_pa[ref.space], ref.va,
				   bytes, write, spans, &status);
	if (status != SIM_OK) {
		job->status = status;
		job->fault_space = ref.space;
		job->fault_va = ref.va + done;
	}
	return done;
}

// Rows of a job that only reads or writes; or its one stretch.
uint64_t reach_rows(const sim *s, sim_job *job, npusim::span_list &spans)
{
	bool write = job->kind == SIM_JOB_WRITE;
	uint64_t done = 0, row_bytes = job->row_bytes ? job->row_bytes : job->bytes;

	while (done < job->bytes && job->status == SIM_OK) {
		sim_ref ref = write ? job->dst : job->src;
		uint64_t row = done / row_bytes;

		ref.va += job->row_offset ? job->row_offset(job, row) : row * job->pitch_bytes;
		done += reach(s, job, ref, write, std::min(row_bytes, job->bytes - done), spans);
	}
	return done;
}

std::vector<const npusim::span_list *> under_way; // of all threads

// Does the job at once; everything but its times is set.
void run_functionally(const sim *s, sim_job *job)
{
	static thread_local npusim::span_list dst, src;
	uint64_t bytes = job->kind == SIM_JOB_DELAY ? 0 : job->bytes;

	job->status = SIM_OK;
	job->fault_va = 0;
	dst.clear();
	src.clear();
	if (job->kind == SIM_JOB_READ || job->kind == SIM_JOB_WRITE) {
		job->moved_bytes = reach_rows(s, job, dst);
		return;
	}
	if (job->kind == SIM_JOB_COPY)
		bytes = reach(s, job, job->src, false, bytes, src);
	if (bytes)
		bytes = reach(s, job, job->dst, true, bytes, dst);
	src.cut(std::min(bytes, src.bytes()));
	dst.cut(std::min(bytes, dst.bytes()));
	job->moved_bytes = bytes;
	under_way.insert(under_way.end(), { &dst, &src });
	bytes = npusim::move_bytes(s->config.lock, job, dst, src, 0);
	for (const npusim::span_list *list : { &dst, &src })
		under_way.erase(std::find(under_way.begin(), under_way.end(), list));
	if (job->status == SIM_FAULT_HOST)
		job->moved_bytes = bytes;
}

char *check_config(const sim_config *config)
{
	if (the_kernel.taken)
		return g_strdup("a simulation is open in this process already; close it first");
	if (!config->profile || !config->memory)
		return g_strdup("sim_open: a profile and a memory are needed");
	if (config->devices < 1 || config->devices > 16)
		return g_strdup_printf("sim_open: %u devices; must be 1 to 16", config->devices);
	if (config->timing && the_kernel.built && the_kernel.built->size() < config->devices)
		return g_strdup_printf("sim_open: %u devices; at most the %u of this process's "
				       "first simulation: SystemC builds a model once, so run this "
				       "in a process of its own",
				       config->devices, the_kernel.built->size());
	if (!config->timing || the_kernel.built)
		return nullptr;
	/* the program may have used the kernel in which the model is to be built */
	if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS))
		return g_strdup("sim_open: SystemC: the time resolution is not 1 ps");
	return sc_core::sc_get_status() == sc_core::SC_ELABORATION
		       ? nullptr
		       : g_strdup("sim_open: SystemC: the program has started the kernel already");
}

} // namespace

struct sim *sim_open(const struct sim_config *config, char **error)
{
	g_autofree char *problem = check_config(config);
	sim *s;

	if (problem) {
		if (error)
			*error = g_steal_pointer(&problem);
		return nullptr;
	}
	s = new (std::nothrow) sim;
	if (!s)
		g_error("no memory for a simulation");
	s->config = *config;
	if (the_kernel.built)
		the_kernel.last_ps = std::max(the_kernel.last_ps, the_kernel.built->now_ps());
	s->host_ps = the_kernel.last_ps;
	the_kernel.taken = true;
	return s;
}

void sim_close(struct sim *s)
{
	if (!s)
		return;
	try {
		if (s->built)
			s->built->reset(&s->config, &the_kernel.shared, the_kernel.last_ps);
	} catch (const std::bad_alloc &) {
		// The next sim_open() does it again.
	}
	the_kernel.last_ps = std::max(the_kernel.last_ps, s->host_ps);
	the_kernel.shared = {};
	the_kernel.taken = false;
	delete s;
}

uint64_t sim_host_ps(const struct sim *s)
{
	return s->host_ps;
}

uint64_t sim_spend(struct sim *s, uint64_t ps)
{
	s->host_ps += s->config.timing ? ps : 0;
	return s->host_ps;
}

// Without simulated time, or at the first job the model. False: the job is to be ended.
static bool prepare(sim *s, struct sim_job *job)
{
	try {
		if (s->built)
			return true;
		if (s->config.timing)
			build(s);
		else
			run_functionally(s, job);
	} catch (const std::bad_alloc &) {
		job->status = SIM_NO_MEMORY;
		job->moved_bytes = 0;
	} catch (const std::exception &e) {
		g_error("SystemC: %s", e.what());
	}
	return s->built;
}

void sim_submit(struct sim *s, struct sim_job *job)
{
	uint64_t host = sim_host_ps(s), now;

	g_assert(job->device < s->config.devices);
	g_assert(job->engine != SIM_ENGINE_CORE ||
		 job->core < s->config.profile->cube_cores + s->config.profile->vector_cores);
	if (!prepare(s, job)) {
		job->begin_ps = job->finish_ps = host;
		job->model = nullptr;
		if (job->done)
			job->done(job);
		return;
	}
	job->model = s;
	/* From a done call the time is the model's: the host may be ahead, and work that follows
	 * work does not wait for it. */
	now = s->built->now_ps();
	now = s->running && !runs_elsewhere(s) ? now : std::max(host, now);
	now = s->built->submit(job, now);
	if (!s->running)
		s->due_ps = now;
}

void sim_catch_up(struct sim *s)
{
	wait_for_model(s);
	if (!s->built || s->running || s->due_ps > sim_host_ps(s))
		return;
	do
		run_one(s, false);
	while (s->due_ps <= sim_host_ps(s));
	s->built->sync();
}

enum sim_wait_result sim_wait(struct sim *s, bool (*ready)(void *arg), void *arg,
			      uint64_t timeout_ps)
{
	uint64_t host = sim_host_ps(s);
	uint64_t limit = timeout_ps > SIM_NEVER - host ? SIM_NEVER : host + timeout_ps;
	enum sim_wait_result result = SIM_WAIT_READY;

	sim_catch_up(s);
	while (result == SIM_WAIT_READY && !ready(arg)) {
		if (!s->built || s->due_ps == SIM_NEVER) {
			result = SIM_WAIT_IDLE;
		} else if (s->due_ps > limit) {
			raise_host(s, limit);
			result = SIM_WAIT_TIMEOUT;
		} else {
			run_one(s, true);
		}
	}
	if (s->built && !s->running)
		s->built->sync();
	return result;
}

void sim_drain(struct sim *s)
{
	wait_for_model(s);
	while (s->built && s->due_ps != SIM_NEVER)
		run_one(s, true);
	if (s->built)
		s->built->sync();
}

bool sim_uses(const struct sim *s, const unsigned char *at, uint64_t bytes)
{
	if (s->built)
		return s->due_ps != SIM_NEVER && s->built->uses(at, bytes);
	return std::any_of(under_way.begin(), under_way.end(),
			   [=](const npusim::span_list *list) { return list->touches(at, bytes); });
}

bool sim_busy(const struct sim *s)
{
	return s->due_ps != SIM_NEVER;
}

static bool is_done(void *arg)
{
	return !static_cast<sim_job *>(arg)->model;
}

enum sim_status sim_execute(struct sim *s, struct sim_job *job)
{
	sim_submit(s, job);
	if (job->model && !s->running && job->bytes <= SIM_FEW_BYTES)
		run_one(s, true, job);
	if (job->model)
		(void)sim_wait(s, is_done, job, SIM_NEVER);
	return job->status;
}

void sim_invalidate(struct sim *s, int space, uint64_t va, uint64_t bytes)
{
	the_kernel.shared.changes++;
	for (uint32_t mask = the_kernel.shared.filter.devices[space]; mask; mask &= mask - 1)
		mmu_state_invalidate(
			s->built->at(static_cast<unsigned>(__builtin_ctz(mask))).mmu.state(),
			static_cast<unsigned>(space), va, bytes);
}

void sim_set_root(struct sim *s, int space, uint64_t root_pa)
{
	uint64_t *root = &the_kernel.shared.root_pa[space];

	if (*root != root_pa)
		sim_invalidate(s, space, 0, SIM_NEVER);
	*root = root_pa;
}

void sim_get_counters(const struct sim *s, unsigned device, struct sim_counters *out)
{
	*out = {};
	if (s->built) {
		const struct device &d = s->built->at(device);

		*out = d.counters;
		out->tlb_live_bytes = d.mmu.state() ? mmu_state_live_bytes(d.mmu.state()) : 0;
		d.hbm.get_counters(out);
	}
	out->tlb_l1_entries = s->config.profile->tlb_l1_entries;
	out->tlb_l2_entries = s->config.profile->tlb_l2_entries;
}
