// SPDX-License-Identifier: Apache-2.0
//
// The model in a kernel that is not its alone: a module of the program sees simulated time pass,
// and what it has to do is done at its time.
#include <gtest/gtest.h>
#include <systemc>
#include <vector>

extern "C" {
#include "machine.h"
}

namespace
{

struct ticker : sc_core::sc_module {
	static constexpr uint64_t period_ps = 100000;
	std::vector<uint64_t> ticks;

	SC_HAS_PROCESS(ticker);
	explicit ticker(sc_core::sc_module_name name) : sc_module(name)
	{
		SC_METHOD(tick);
	}
	void tick()
	{
		ticks.push_back(sc_core::sc_time_stamp().value());
		next_trigger(sc_core::sc_time::from_value(period_ps));
	}
};

TEST(kernel, module_of_the_program_sees_time_pass)
{
	static ticker the_ticker("ticker");
	std::vector<char> from(HUGE);
	sim_job job;

	machine_setup();
	machine_open(true);
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 1, PT_WRITE);
	job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA), machine_raw(from.data()),
			   HUGE);
	job.done = [](sim_job *done) {
		EXPECT_EQ(sc_core::sc_time_stamp().value(), done->finish_ps);
	};
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_EQ(sc_core::sc_time_stamp().value(), job.finish_ps);
	EXPECT_EQ(sim_host_ps(machine.sim), job.finish_ps);
	ASSERT_EQ(the_ticker.ticks.size(), job.finish_ps / ticker::period_ps + 1);
	for (uint64_t i = 0; i < the_ticker.ticks.size(); i++)
		EXPECT_EQ(the_ticker.ticks[i], i * ticker::period_ps);
	machine_close();
}

} // namespace
