// SPDX-License-Identifier: Apache-2.0
//
// The model's sockets with what is not part of the model bound to them: plain TLM-2.0 initiators at
// the MMU, the L2, the HBM and the links, a plain target in place of the HBM, and one in place of
// the MMU. Bytes are written, read back and compared; what the base protocol's responses are for is
// refused; times are those of the plain classes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include "sim/engine/engine.h"
#include "sim/hbm/hbm-module.h"
#include "sim/l2/l2.h"
#include "sim/link/interconnect.h"
#include "sim/mmu/mmu.h"

extern "C" {
#include "machine.h"
}

using sc_core::sc_module_name;
using sc_core::sc_time;
using tlm::tlm_generic_payload;

namespace
{

constexpr uint64_t page = HUGE;
using bytes = std::vector<unsigned char>;

bytes pattern(size_t size, unsigned seed)
{
	bytes out(size);

	for (size_t i = 0; i < size; i++)
		out[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 13);
	return out;
}

// --- what is bound ---

struct initiator : sc_core::sc_module {
	tlm_utils::simple_initiator_socket<initiator> socket{ "socket" };
	tlm_generic_payload payload;
	sc_time delay;

	explicit initiator(sc_module_name name) : sc_module(name)
	{
	}
	void prepare(tlm::tlm_command command, uint64_t address, bytes &data)
	{
		payload.set_command(command);
		payload.set_address(address);
		payload.set_data_ptr(data.data());
		payload.set_data_length(static_cast<unsigned>(data.size()));
		payload.set_streaming_width(static_cast<unsigned>(data.size()));
		payload.set_byte_enable_ptr(nullptr);
		payload.set_dmi_allowed(false);
		payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
		delay = sc_core::SC_ZERO_TIME;
	}
	tlm::tlm_response_status send()
	{
		socket->b_transport(payload, delay);
		EXPECT_FALSE(payload.is_dmi_allowed());
		return payload.get_response_status();
	}
	tlm::tlm_response_status write(uint64_t address, bytes data)
	{
		prepare(tlm::TLM_WRITE_COMMAND, address, data);
		return send();
	}
	tlm::tlm_response_status read(uint64_t address, bytes &data)
	{
		prepare(tlm::TLM_READ_COMMAND, address, data);
		return send();
	}
	bytes read(uint64_t address, size_t size)
	{
		bytes data(size);

		EXPECT_EQ(read(address, data), tlm::TLM_OK_RESPONSE);
		return data;
	}
};

// Memory of its own, in which only the lower bits of an address count, and a fixed latency.
struct foreign : sc_core::sc_module {
	static constexpr uint64_t latency_ps = 70000;
	tlm_utils::simple_target_socket<foreign> socket{ "socket" };
	bytes memory = bytes(4 * page);
	unsigned reads = 0, writes = 0, ignored = 0;
	bool fails = false;

	explicit foreign(sc_module_name name) : sc_module(name)
	{
		socket.register_b_transport(this, &foreign::b_transport);
	}
	void b_transport(tlm_generic_payload &payload, sc_time &delay)
	{
		uint64_t at = payload.get_address() % memory.size();
		unsigned char *data = payload.get_data_ptr();
		unsigned length = payload.get_data_length();

		ASSERT_NE(data, nullptr);
		ASSERT_EQ(payload.get_streaming_width(), length);
		ASSERT_EQ(payload.get_byte_enable_ptr(), nullptr);
		ASSERT_EQ(payload.get_response_status(), tlm::TLM_INCOMPLETE_RESPONSE);
		ASSERT_LE(at + length, memory.size());
		if (payload.is_write() && ++writes)
			std::memcpy(&memory[at], data, length);
		else if (payload.is_read() && ++reads)
			std::memcpy(data, &memory[at], length);
		else
			ignored++;
		delay += sc_time::from_value(latency_ps);
		payload.set_response_status(fails ? tlm::TLM_GENERIC_ERROR_RESPONSE
						  : tlm::TLM_OK_RESPONSE);
	}
};

// Device 0 is the model's. Device 1 has a foreign memory in place of its HBM, for its own L2 and
// for its peer. An engine has a foreign target in place of its MMU.
struct server : sc_core::sc_module {
	npusim::mmu mmu0{ "mmu0", 0 }, mmu1{ "mmu1", 1 };
	npusim::l2 l20{ "l20", 0 }, l21{ "l21", 1 };
	npusim::hbm_module hbm{ "hbm", 0 };
	npusim::interconnect links{ "links", 2 };
	npusim::engine engine{ "engine", SIM_ENGINE_SDMA };
	foreign memory{ "memory" }, peer{ "peer" }, flat{ "flat" };
	initiator to_mmu0{ "to_mmu0" }, to_mmu1{ "to_mmu1" }, to_l2{ "to_l2" }, to_hbm{ "to_hbm" },
		to_links{ "to_links" };
	mmu_shared shared = {};
	sim_config config;
	uint64_t due_ps;
	sim_counters counters[2] = {};

	explicit server(sc_module_name name) : sc_module(name)
	{
		mmu0.local.bind(l20.in);
		mmu0.remote.bind(links.in[0]);
		l20.out.bind(hbm.in);
		links.out[0].bind(hbm.in);
		mmu1.local.bind(l21.in);
		mmu1.remote.bind(links.in[1]);
		l21.out.bind(memory.socket);
		links.out[1].bind(peer.socket);
		engine.out.bind(flat.socket);
		to_mmu0.socket.bind(mmu0.in);
		to_mmu1.socket.bind(mmu1.in);
		to_l2.socket.bind(l20.in);
		to_hbm.socket.bind(hbm.in);
		to_links.socket.bind(links.in[0]);
	}
	void reset()
	{
		uint64_t now = sc_core::sc_time_stamp().value();

		config = { &machine.profile, &machine.memory, 2, true, nullptr };
		mmu0.reset(&config, 4, &shared, &counters[0]);
		mmu1.reset(&config, 4, &shared, &counters[1]);
		l20.reset(&config, now, &counters[0]);
		l21.reset(&config, now, &counters[1]);
		hbm.reset(&config, now);
		links.reset(&config, now);
		engine.reset(&config, shared.root_pa, 1, SIM_ENGINE_SDMA, &due_ps);
		counters[0] = counters[1] = {};
		shared = {};
		for (foreign *it : { &memory, &peer, &flat }) {
			std::fill(it->memory.begin(), it->memory.end(), 0);
			it->reads = it->writes = it->ignored = 0;
			it->fails = false;
		}
	}
	void map(int space, uint64_t va, uint64_t pa, unsigned flags = PT_WRITE)
	{
		EXPECT_TRUE(pt_map(&machine.table[space], va, pa, 21, 1, flags));
		shared.root_pa[space] = machine.table[space].root_pa;
	}
};

class tlm_sockets : public testing::Test
{
protected:
	static server &s()
	{
		static server *the_one = [] {
			auto *made = new server("server");

			sc_core::sc_report_handler::set_actions(sc_core::SC_INFO,
								sc_core::SC_DO_NOTHING);
			sc_core::sc_report_handler::set_actions(
				sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
			sc_core::sc_start(sc_core::SC_ZERO_TIME);
			return made;
		}();

		return *the_one;
	}
	void SetUp() override
	{
		machine_setup();
		machine.profile.l2_bytes = 128 * 1024; // so that lines leave soon
		s().reset();
		// two pages that change places
		s().map(0, MACHINE_VA, SIM_PA(0, page));
		s().map(0, MACHINE_VA + page, SIM_PA(0, 0));
	}
	void TearDown() override
	{
		machine_close();
	}
};

// --- initiators ---

TEST_F(tlm_sockets, initiator_at_the_mmu_writes_and_reads_back)
{
	const bytes data = pattern(100000, 1);
	const uint64_t va = MACHINE_VA + page - 33333;

	ASSERT_EQ(s().to_mmu0.write(va, data), tlm::TLM_OK_RESPONSE);
	EXPECT_GT(s().to_mmu0.delay, sc_core::SC_ZERO_TIME);
	EXPECT_EQ(s().to_mmu0.payload.get_address(), va);
	EXPECT_EQ(std::memcmp(machine_at(0, 2 * page - 33333), data.data(), 33333), 0);
	EXPECT_EQ(std::memcmp(machine_at(0, 0), &data[33333], data.size() - 33333), 0);
	EXPECT_EQ(s().to_mmu0.read(va, data.size()), data);
}

TEST_F(tlm_sockets, initiator_at_the_hbm_writes_and_reads_back)
{
	const bytes data = pattern(5000, 2);

	ASSERT_EQ(s().to_hbm.write(SIM_PA(0, 12345), data), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(std::memcmp(machine_at(0, 12345), data.data(), data.size()), 0);
	EXPECT_EQ(s().to_hbm.read(SIM_PA(0, 12345), data.size()), data);
	// and the others see the same bytes
	EXPECT_EQ(s().to_mmu0.read(MACHINE_VA + page + 12345, data.size()), data);
	EXPECT_EQ(s().to_l2.read(SIM_PA(0, 12345), data.size()), data);
	EXPECT_EQ(s().to_links.read(SIM_PA(0, 12345), data.size()), data);
}

TEST_F(tlm_sockets, initiator_at_the_links_reaches_the_host)
{
	const bytes data = pattern(777, 3);

	ASSERT_EQ(s().to_links.write(SIM_PA(SIM_NODE_HOST, 99), data), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(std::memcmp(machine_at(SIM_NODE_HOST, 99), data.data(), data.size()), 0);
	EXPECT_EQ(s().to_links.read(SIM_PA(SIM_NODE_HOST, 99), data.size()), data);
}

// The same picoseconds as those of the plain class, after a delay that was there before.
TEST_F(tlm_sockets, delay_is_that_of_the_model)
{
	hbm *alone = hbm_new(&machine.profile, nullptr);
	initiator &it = s().to_hbm;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t offset = i * 7919 * 64 % page, at = i * 3000;
		bytes data(256);

		it.prepare(i % 3 ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND,
			   SIM_PA(0, offset), data);
		it.delay = sc_time::from_value(at);
		ASSERT_EQ(it.send(), tlm::TLM_OK_RESPONSE);
		ASSERT_EQ(it.delay.value(),
			  hbm_access(alone, offset, 256, i % 3 == 0, at, nullptr));
	}
	hbm_free(alone);
}

TEST_F(tlm_sockets, byte_enables_and_streaming_are_refused)
{
	for (initiator *it : { &s().to_mmu0, &s().to_l2, &s().to_hbm, &s().to_links }) {
		bytes data = pattern(64, 4), enables(64, 0xff);
		uint64_t address = it == &s().to_mmu0 ? MACHINE_VA : SIM_PA(0, page);

		it->prepare(tlm::TLM_WRITE_COMMAND, address, data);
		it->payload.set_byte_enable_ptr(enables.data());
		it->payload.set_byte_enable_length(64);
		EXPECT_EQ(it->send(), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
		it->prepare(tlm::TLM_WRITE_COMMAND, address, data);
		it->payload.set_streaming_width(63);
		EXPECT_EQ(it->send(), tlm::TLM_BURST_ERROR_RESPONSE);
		EXPECT_EQ(it->delay, sc_core::SC_ZERO_TIME);
		it->prepare(tlm::TLM_WRITE_COMMAND, address, data);
		it->payload.set_streaming_width(1000);
		it->payload.set_data_ptr(nullptr);
		EXPECT_EQ(it->send(), tlm::TLM_GENERIC_ERROR_RESPONSE);
		it->prepare(tlm::TLM_IGNORE_COMMAND, address, data);
		EXPECT_EQ(it->send(), tlm::TLM_OK_RESPONSE);
		EXPECT_EQ(*machine_at(0, page), 0);
	}
}

TEST_F(tlm_sockets, faults_are_address_errors)
{
	const uint64_t end = SIM_PA(0, MACHINE_BYTES);
	bytes data(64);

	s().map(0, MACHINE_VA + 4 * page, SIM_PA(0, 2 * page), 0);
	s().map(0, MACHINE_VA + 5 * page, SIM_PA(7, 0)); // no such memory
	EXPECT_EQ(s().to_mmu0.read(MACHINE_VA + 2 * page - 32, data),
		  tlm::TLM_ADDRESS_ERROR_RESPONSE);
	EXPECT_EQ(s().to_mmu0.read(MACHINE_VA + 4 * page, data), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(s().to_mmu0.write(MACHINE_VA + 4 * page, data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	EXPECT_EQ(s().to_mmu0.read(MACHINE_VA + 5 * page, data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	for (initiator *it : { &s().to_l2, &s().to_hbm, &s().to_links }) {
		EXPECT_EQ(it->read(end - 64, data), tlm::TLM_OK_RESPONSE);
		EXPECT_EQ(it->read(end - 63, data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
		EXPECT_EQ(it->read(SIM_PA(9, 0), data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	}
	// of another device's memory
	EXPECT_EQ(s().to_hbm.read(SIM_PA(1, 0), data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	EXPECT_EQ(s().to_l2.read(SIM_PA(1, 0), data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

TEST_F(tlm_sockets, debug_transport_moves_bytes_in_no_time)
{
	bytes data = pattern(100, 5), back(100);
	initiator &mmu = s().to_mmu0, &hbm = s().to_hbm;
	tlm::tlm_dmi dmi;

	mmu.prepare(tlm::TLM_WRITE_COMMAND, MACHINE_VA + 2 * page - 60, data);
	EXPECT_EQ(mmu.socket->transport_dbg(mmu.payload), 60u); // up to what is mapped
	hbm.prepare(tlm::TLM_READ_COMMAND, SIM_PA(0, page - 60), back);
	EXPECT_EQ(hbm.socket->transport_dbg(hbm.payload), 100u);
	EXPECT_TRUE(std::equal(data.begin(), data.begin() + 60, back.begin()));
	hbm.prepare(tlm::TLM_READ_COMMAND, SIM_PA(0, MACHINE_BYTES - 1), back);
	EXPECT_EQ(hbm.socket->transport_dbg(hbm.payload), 1u);
	EXPECT_FALSE(hbm.socket->get_direct_mem_ptr(hbm.payload, dmi));
	EXPECT_EQ(s().counters[0].tlb_requests, 0u);
}

TEST_F(tlm_sockets, non_blocking_transport_is_done_at_once)
{
	bytes data = pattern(64, 6);
	initiator &it = s().to_mmu0;
	tlm::tlm_phase phase = tlm::BEGIN_REQ;

	it.prepare(tlm::TLM_WRITE_COMMAND, MACHINE_VA, data);
	EXPECT_EQ(it.socket->nb_transport_fw(it.payload, phase, it.delay), tlm::TLM_COMPLETED);
	EXPECT_EQ(it.payload.get_response_status(), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(std::memcmp(machine_at(0, page), data.data(), data.size()), 0);
}

// An access as extension says whose tables translate; without one they are the device's own.
TEST_F(tlm_sockets, extension_is_looked_up_and_optional)
{
	npusim::access access, copy;
	bytes own = pattern(64, 7), other = pattern(64, 8), back(64);
	initiator &it = s().to_mmu0;

	s().map(SIM_NODE_HOST, MACHINE_VA, SIM_PA(SIM_NODE_HOST, 0));
	ASSERT_EQ(it.write(MACHINE_VA, own), tlm::TLM_OK_RESPONSE);
	access.space = SIM_NODE_HOST;
	it.payload.set_extension(&access);
	EXPECT_EQ(it.write(MACHINE_VA, other), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(it.read(MACHINE_VA, 64), other);
	EXPECT_EQ(it.read(MACHINE_VA + page, back), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	access.space = 1000;
	EXPECT_EQ(it.read(MACHINE_VA, back), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	it.payload.clear_extension(&access);
	EXPECT_EQ(it.read(MACHINE_VA, 64), own);
	EXPECT_EQ(std::memcmp(machine_at(SIM_NODE_HOST, 0), other.data(), 64), 0);
	copy.copy_from(access);
	EXPECT_EQ(copy.space, 1000);
}

// --- targets ---

TEST_F(tlm_sockets, foreign_memory_serves_in_place_of_the_hbm)
{
	const bytes data = pattern(page / 2, 9);

	// The table of device 1 is in device 0's memory: walks leave the foreign one alone.
	s().map(1, MACHINE_VA, SIM_PA(1, 0));
	ASSERT_EQ(s().to_mmu1.write(MACHINE_VA, data), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(s().to_mmu1.read(MACHINE_VA, data.size()), data);
	EXPECT_GT(s().memory.reads, 0u);
	EXPECT_GE(s().to_mmu1.delay.value(), foreign::latency_ps);
	// What the L2 wrote back is there; it has no room for more than 128 KiB.
	(void)s().to_mmu1.read(MACHINE_VA + page / 2, page / 2);
	EXPECT_GT(s().memory.writes, 0u);
	EXPECT_TRUE(std::equal(data.begin(), data.end(), s().memory.memory.begin()));
	EXPECT_EQ(s().to_mmu1.read(MACHINE_VA, data.size()), data);
}

TEST_F(tlm_sockets, foreign_memory_serves_a_peer)
{
	const bytes data = pattern(4096, 10);

	s().map(0, MACHINE_VA + 8 * page, SIM_PA(1, page));
	ASSERT_EQ(s().to_mmu0.write(MACHINE_VA + 8 * page, data), tlm::TLM_OK_RESPONSE);
	EXPECT_EQ(s().peer.writes, 1u);
	EXPECT_TRUE(std::equal(data.begin(), data.end(), &s().peer.memory[page]));
	EXPECT_EQ(s().to_mmu0.read(MACHINE_VA + 8 * page, data.size()), data);
	EXPECT_EQ(s().peer.reads, 1u);
	EXPECT_GE(s().to_mmu0.delay.value(), foreign::latency_ps + machine.profile.peer_ps);
}

TEST_F(tlm_sockets, error_of_a_foreign_memory_is_an_address_error)
{
	bytes data(64);

	s().map(1, MACHINE_VA, SIM_PA(1, 0));
	s().memory.fails = true;
	EXPECT_EQ(s().to_mmu1.read(MACHINE_VA, data), tlm::TLM_ADDRESS_ERROR_RESPONSE);
	s().memory.fails = false;
	EXPECT_EQ(s().to_mmu1.read(MACHINE_VA + 4096, data), tlm::TLM_OK_RESPONSE);
}

sim_status run(sim_job job)
{
	server &s = *static_cast<server *>(sc_core::sc_find_object("server"));

	s.engine.submit(&job, sc_core::sc_time_stamp().value());
	while (s.due_ps != SIM_NEVER) {
		sc_core::sc_start(sc_time::from_value(s.due_ps) - sc_core::sc_time_stamp());
		s.engine.step(s.due_ps);
	}
	return job.status;
}

TEST_F(tlm_sockets, foreign_target_serves_an_engine)
{
	bytes data = pattern(page + 4321, 11), back(data.size());
	const bytes &there = s().flat.memory;
	sim_job job = machine_copy(SIM_ENGINE_SDMA, machine_ref(0, 512), machine_raw(data.data()),
				   data.size());

	EXPECT_EQ(run(job), SIM_OK);
	EXPECT_TRUE(std::equal(data.begin(), data.end(), &there[512]));
	job.dst.va = 2 * page - 5000;
	job.src = machine_ref(0, 512);
	EXPECT_EQ(run(job), SIM_OK);
	EXPECT_TRUE(std::equal(data.begin(), data.end(), &there[job.dst.va]));
	job.src.va = job.dst.va;
	job.dst = machine_raw(back.data());
	EXPECT_EQ(run(job), SIM_OK);
	EXPECT_EQ(back, data);
	job.kind = SIM_JOB_FILL;
	job.dst = machine_ref(0, 100);
	job.bytes = 50;
	job.pattern = 0x2211;
	job.pattern_bytes = 2;
	EXPECT_EQ(run(job), SIM_OK);
	EXPECT_EQ(there[100], 0x11);
	EXPECT_EQ(there[149], 0x22);
	EXPECT_EQ(there[150], 0);
	// in time only
	job.kind = SIM_JOB_WRITE;
	job.bytes = 1000;
	EXPECT_EQ(run(job), SIM_OK);
	EXPECT_EQ(there[150], 0);
	EXPECT_EQ(s().flat.ignored, 1u);
	s().flat.fails = true;
	EXPECT_EQ(run(job), SIM_FAULT_ADDRESS);
}

} // namespace
