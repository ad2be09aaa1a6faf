// SPDX-License-Identifier: Apache-2.0
//
// What happens where the host has no memory for the model: each allocation that a simulation makes
// fails once. The call answers that, nothing is thrown, and the next one works.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <systemc>
#include <vector>

extern "C" {
#include "machine.h"
}

namespace
{

bool counting;
unsigned until_failure; // 0: none

} // namespace

[[gnu::noinline]] void *operator new(std::size_t size)
{
	void *p = counting && until_failure && --until_failure == 0 ? nullptr : std::malloc(size);

	if (!p)
		throw std::bad_alloc();
	return p;
}

// As the library's does, which a sanitizer replaces too.
[[gnu::noinline]] void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
	try {
		return operator new(size);
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
}

[[gnu::noinline]] void operator delete(void *p) noexcept
{
	std::free(p);
}

[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept
{
	std::free(p);
}

namespace
{

constexpr unsigned pages = 6;
constexpr uint64_t page = 1 << 12;
constexpr uint64_t bytes = pages * page;

// Every other page, so that no two are one piece.
uint64_t frame_of(unsigned index)
{
	return page * (2 * index + 1);
}

struct memory : testing::TestWithParam<bool> {
	std::vector<unsigned char> from = std::vector<unsigned char>(bytes);

	void SetUp() override
	{
		machine_setup();
		machine_open(GetParam());
		for (unsigned i = 0; i < pages; i++)
			machine_map(0, MACHINE_VA + i * page, frame_of(i), 12, 1, PT_WRITE);
		for (uint64_t i = 0; i < bytes; i += 512)
			from[i] = static_cast<unsigned char>(i >> 9);
	}
	void TearDown() override
	{
		machine_close();
	}
	bool arrived()
	{
		for (unsigned i = 0; i < pages; i++)
			if (std::memcmp(machine_at(0, frame_of(i)), &from[i * page], page))
				return false;
		return true;
	}
	sim_status copy(unsigned fail)
	{
		sim_job job = machine_copy(SIM_ENGINE_H2D, machine_ref(0, MACHINE_VA),
					   machine_raw(from.data()), bytes);
		sim_status status;

		until_failure = fail;
		counting = true;
		status = sim_execute(machine.sim, &job);
		counting = false;
		EXPECT_LE(job.moved_bytes, bytes);
		// Alone in the kernel, the model takes its clock along when a wait ends.
		if (GetParam()) {
			EXPECT_EQ(sc_core::sc_time_stamp().value(), job.finish_ps);
		}
		return status;
	}
};

TEST_P(memory, each_allocation_that_fails_is_answered)
{
	unsigned failed = 0;

	for (unsigned n = 1;; n++) {
		sim_status status = copy(n);
		bool over = until_failure != 0; // it made fewer allocations

		failed += status == SIM_NO_MEMORY;
		ASSERT_TRUE(status == SIM_OK || status == SIM_NO_MEMORY);
		ASSERT_EQ(copy(0), SIM_OK);
		ASSERT_TRUE(arrived());
		if (over)
			break;
		TearDown(); // what the engine has once, it keeps
		SetUp();
	}
	EXPECT_GT(failed, 0u);
}

INSTANTIATE_TEST_SUITE_P(all, memory, testing::Bool());

} // namespace
