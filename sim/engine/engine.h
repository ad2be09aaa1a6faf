// SPDX-License-Identifier: Apache-2.0
//
// The engines of one kind of one device: a lane for each port (one for SDMA, H2D, D2H; one a core),
// each with a queue of jobs that it does one at a time. A step advances the lanes that are due: it
// issues a job's pieces through the MMU, and moves the job's bytes when its last piece is complete.
#ifndef NPUSIM_SIM_ENGINE_ENGINE_H
#define NPUSIM_SIM_ENGINE_ENGINE_H

#include <deque>
#include <vector>

#include "sim/transport/socket.h"

namespace npusim
{

class engine : public sc_core::sc_module
{
public:
	request_socket out;

	engine(sc_core::sc_module_name name, sim_engine kind);
	// first_lane: of the MMU's lanes. due_ps: where it says when it has something to do next;
	// SIM_NEVER if nothing is there. root_pa: of the tables of each space.
	void reset(const sim_config *config, const uint64_t *root_pa, unsigned lanes,
		   unsigned first_lane, uint64_t *due_ps);

	// not_before_ps: now, or later.
	void submit(sim_job *job, uint64_t not_before_ps);
	// Does what is due.
	void step(uint64_t now);
	// Does this job, and `now` goes along, while no other is under way or waits here, and
	// `busy` stays what it is.
	void step_only(const sim_job *job, const uint64_t &busy, uint64_t &now);
	// True if a job under way has found that any of its bytes lie here.
	bool uses(const unsigned char *at, uint64_t bytes) const;

private:
	enum class state { idle, waiting, moving, writing, finishing };

	// A piece that was issued and is not complete.
	struct in_flight_piece {
		uint64_t due_ps, bytes;
		sim_job *job; // null but for a job's last piece
	};

	struct lane {
		state now = state::idle;
		bool listed = false;                      // in m_active
		sim_job *head = nullptr, *tail = nullptr; // the job under way is the head
		uint64_t due_ps = SIM_NEVER;              // whatever is to be done first
		uint64_t next_ps = SIM_NEVER;             // when the state changes next
		uint64_t free_ps = 0;                     // when the last job has been issued
		std::deque<in_flight_piece> in_flight;    // of a pipelined lane, in order of time
		uint64_t in_flight_bytes = 0;
		uint64_t row_begin_ps = 0, row_end_ps = 0; // of the row that is being issued
		uint64_t issued = 0;                       // bytes of the job
		uint64_t latency_ps = 0; // the shortest of its pieces: queues left out
		uint64_t last_ps = 0;    // the latest completion of its pieces
		uint64_t before_ps = 0;  // completion of the piece before the one under way
		struct {
			uint64_t asked, bytes, begin_ps, first_ps, done_ps;
			uint64_t limit;              // what the engine gets out of the link
			uint64_t flight;             // how long its bytes are on the link
		} piece = {};                        // read, or being read
		unsigned dst_node = 0, src_node = 0; // of the last byte that went over a link
		span_list dst, src;
	};

	// True if the job is not complete, and no other is under way or waits.
	bool is_only(const lane &it, const sim_job *job) const
	{
		return m_active.size() == 1 && it.head == job && !job->next && it.in_flight.empty();
	}
	void note_due();
	void step_lane(lane &it, unsigned index, uint64_t now);
	void advance(lane &it, unsigned index, uint64_t now);
	unsigned node_of(const sim_ref &ref, uint64_t offset) const;
	void begin(lane &it, uint64_t now);
	void issue(lane &it, unsigned index, uint64_t now);
	void write(lane &it, unsigned index, uint64_t now);
	void finish(lane &it, uint64_t now);
	void give_up(lane &it, uint64_t now);
	void issue_pipelined(lane &it, unsigned index, uint64_t now);
	void retire(lane &it, uint64_t now);
	void complete(sim_job *job, uint64_t now);
	void next_job(lane &it, uint64_t next_ps);
	bool is_pipelined(const sim_job *job) const;
	uint64_t issue_rows(lane &it, unsigned index, uint64_t bytes, uint64_t now,
			    uint64_t *out_rows);
	void note_fault(sim_job *job, int space);
	uint64_t piece_bytes(const lane &it) const;
	uint64_t transport(const sim_ref &ref, bool write, unsigned index, span_list *spans,
			   uint64_t offset, uint64_t bytes, uint64_t at_ps);
	void transport_foreign(lane &it, span_list *spans);
	unsigned next_rows(const sim_job *job, uint64_t from, uint64_t stop, sim_row *rows);
	unsigned ask_rows(const sim_ref &ref, bool write, unsigned index, sim_row *rows,
			  unsigned count);
	uint64_t read_unaligned(const sim_ref &ref, unsigned index, uint64_t offset, uint64_t bytes,
				uint64_t at_ps);
	uint64_t rate(unsigned index, uint64_t limit) const;

	const sim_engine m_kind;
	const sim_profile *m_profile = nullptr;
	const sim_memory *m_memory = nullptr;
	const uint64_t *m_root_pa = nullptr;
	sim_lock *m_lock = nullptr;
	unsigned m_first_lane = 0;
	std::vector<lane> m_lanes;
	std::vector<unsigned> m_active; // cores with something to do, in their order; or the lane
	std::vector<unsigned> m_due;    // those of a step
	uint64_t *m_due_ps = nullptr;
	access m_access;
};

} // namespace npusim

#endif
