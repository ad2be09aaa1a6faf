// SPDX-License-Identifier: Apache-2.0
//
// Executes jobs on the engines of a device, piece by piece.
#include "engine.h"

#include <algorithm>

#include "sim/page-table.h"

namespace npusim
{

static constexpr uint64_t piece_max = 1u << 21; // what one request to the MMU asks for at most
static constexpr uint64_t request_bytes = 512;  // of one request at most

engine::engine(sc_core::sc_module_name name, sim_engine kind)
    : sc_module(name), out("out"), m_kind(kind)
{
}

void engine::reset(const sim_config *config, const uint64_t *root_pa, unsigned lanes,
		   unsigned first_lane, uint64_t *due_ps)
{
	m_profile = config->profile;
	m_memory = config->memory;
	m_root_pa = root_pa;
	m_lock = config->lock;
	m_first_lane = first_lane;
	m_lanes = std::vector<lane>(lanes);
	m_active.clear();
	m_active.reserve(lanes); // so that nothing below needs memory
	m_due.reserve(lanes);
	m_due_ps = due_ps;
	*m_due_ps = SIM_NEVER;
}

// `limit`, where it is not 0, is what the engine gets out of a link.
static uint64_t lower_of(uint64_t rate, uint64_t limit)
{
	return limit ? std::min(rate, limit) : rate;
}

// Of a lane; `limit`: what an SDMA engine gets of the links that the piece went over.
uint64_t engine::rate(unsigned index, uint64_t limit) const
{
	const sim_profile *p = m_profile;

	if (m_kind == SIM_ENGINE_SDMA)
		return std::min(p->sdma_bytes_per_us, limit);
	if (m_kind == SIM_ENGINE_H2D)
		return lower_of(p->h2d_bytes_per_us, p->h2d_engine_bytes_per_us);
	if (m_kind == SIM_ENGINE_D2H)
		return lower_of(p->d2h_bytes_per_us, p->d2h_engine_bytes_per_us);
	return index < p->cube_cores ? p->core_bytes_per_us : p->vector_core_bytes_per_us;
}

void engine::submit(sim_job *job, uint64_t not_before_ps)
{
	unsigned index = m_kind == SIM_ENGINE_CORE ? job->core : 0;
	lane &it = m_lanes[index];

	job->next = nullptr;
	job->start_ps = std::max(job->start_ps, not_before_ps);
	if (it.head)
		it.tail->next = job;
	else
		it.head = job;
	it.tail = job;
	if (it.now != state::idle)
		return;
	it.now = state::waiting;
	it.next_ps = std::max(job->start_ps, it.free_ps);
	it.due_ps = std::min(it.due_ps, it.next_ps);
	if (!it.listed)
		m_active.insert(std::lower_bound(m_active.begin(), m_active.end(), index), index);
	it.listed = true;
	*m_due_ps = std::min(*m_due_ps, it.due_ps);
}

inline void engine::step_lane(lane &it, unsigned index, uint64_t now)
{
	while (it.due_ps <= now) {
		retire(it, now);
		if (it.next_ps <= now)
			try {
				advance(it, index, now);
			} catch (const std::bad_alloc &) {
				give_up(it, now);
			}
		it.due_ps = it.in_flight.empty()
				    ? it.next_ps
				    : std::min(it.next_ps, it.in_flight.front().due_ps);
	}
	if (m_kind == SIM_ENGINE_CORE && it.now == state::idle && it.in_flight.empty()) {
		m_active.erase(std::find(m_active.begin(), m_active.end(), index));
		it.listed = false;
	}
}

void engine::step(uint64_t now)
{
	m_due.clear();
	for (unsigned index : m_active)
		if (m_lanes[index].due_ps <= now)
			m_due.push_back(index);
	for (unsigned index : m_due)
		step_lane(m_lanes[index], index, now);
	note_due();
}

void engine::step_only(const sim_job *job, const uint64_t &busy, uint64_t &now)
{
	const uint64_t only = busy;
	const unsigned index = m_active.front();
	lane &it = m_lanes[index];

	while (busy == only && is_only(it, job)) {
		now = std::max(now, it.due_ps);
		step_lane(it, index, now);
	}
	note_due();
}

void engine::note_due()
{
	*m_due_ps = SIM_NEVER;
	for (unsigned index : m_active)
		*m_due_ps = std::min(*m_due_ps, m_lanes[index].due_ps);
}

inline void engine::advance(lane &it, unsigned index, uint64_t now)
{
	switch (it.now) {
	case state::idle:
		it.next_ps = SIM_NEVER;
		break;
	case state::waiting:
		begin(it, now);
		break;
	case state::moving:
		if (is_pipelined(it.head))
			issue_pipelined(it, index, now);
		else
			issue(it, index, it.next_ps);
		break;
	case state::writing:
		write(it, index, it.next_ps);
		break;
	case state::finishing:
		finish(it, now);
		break;
	}
}

// By the tables alone: in whose memory a byte lies.
unsigned engine::node_of(const sim_ref &ref, uint64_t offset) const
{
	pt_leaf leaf;
	pt_step steps;

	if (ref.space == SIM_RAW ||
	    !pt_walk_from(0, m_root_pa[ref.space], m_memory, ref.va + offset, &leaf, &steps))
		return SIM_MEMORY_MAX;
	return SIM_PA_NODE(leaf.pa);
}

void engine::begin(lane &it, uint64_t now)
{
	sim_job *job = it.head;
	uint64_t since = job->sent_ps ? job->sent_ps : job->start_ps, flight = it.piece.flight;
	uint64_t start = m_kind == SIM_ENGINE_CORE ? 0 : m_profile->sdma_start_ps;
	bool delay = job->kind == SIM_JOB_DELAY;

	if (job->start_ps > now) {
		it.next_ps = job->start_ps;
		return;
	}
	if (!it.in_flight.empty() && !is_pipelined(job)) {
		it.next_ps = it.in_flight.back().due_ps;
		return;
	}
	job->begin_ps = now;
	job->status = SIM_OK;
	job->fault_va = 0;
	job->moved_bytes = 0;
	it.issued = 0;
	it.last_ps = now + start;
	it.before_ps = 0;
	it.latency_ps = SIM_NEVER;
	it.piece.flight = 0;
	it.now = job->bytes && !delay ? state::moving : state::finishing;
	it.next_ps = now + (delay ? job->delay_ps : start);
	// One by the same way may have been at hand when the last bytes before it were sent.
	if (flight && it.free_ps == now && it.now == state::moving &&
	    node_of(job->dst, 0) == it.dst_node && node_of(job->src, 0) == it.src_node)
		it.next_ps = std::max(since + flight, now) - flight + start;
}

// Pieces end where 2 MiB of the side that is in a device's memory ends, so that they are whole
// pages mostly.
uint64_t engine::piece_bytes(const lane &it) const
{
	const sim_job *job = it.head;
	bool by_src = job->kind == SIM_JOB_READ ||
		      (job->kind == SIM_JOB_COPY && job->dst.space == SIM_RAW);
	uint64_t va = (by_src ? job->src.va : job->dst.va) + it.issued;

	return std::min(job->bytes - it.issued, piece_max - (va & (piece_max - 1)));
}

// One request through the MMU. Returns when its last byte is there; m_access has the rest.
uint64_t engine::transport(const sim_ref &ref, bool write, unsigned index, span_list *spans,
			   uint64_t offset, uint64_t bytes, uint64_t at_ps)
{
	m_access.space = ref.space;
	m_access.lane = m_first_lane + index;
	m_access.spans = spans;
	m_access.write = write;
	m_access.address = ref.va + offset;
	m_access.length = bytes;
	m_access.at_ps = at_ps;
	m_access.flight_ps = 0;
	if (G_LIKELY(out.own()))
		out.send(m_access, nullptr);
	else
		transport_foreign(m_lanes[index], spans);
	return m_access.done_ps;
}

// A foreign target in place of the MMU has the bytes: they go with the request, and those that are
// read are the list's until the job is complete. A write in time only is TLM_IGNORE_COMMAND. A
// pointer of this process is no address of the target's: it is taken, or given, at once.
void engine::transport_foreign(lane &it, span_list *spans)
{
	sim_job *job = it.head;
	tlm::tlm_command command = tlm::TLM_READ_COMMAND;
	span_list piece;
	unsigned char *data;

	m_access.status = SIM_OK;
	if (m_access.space == SIM_RAW) {
		if (spans)
			spans->add(reinterpret_cast<unsigned char *>(m_access.address),
				   m_access.length);
		m_access.first_ps = m_access.done_ps = m_access.at_ps;
		m_access.bytes = m_access.length;
		return;
	}
	data = (spans && !m_access.write ? *spans : piece).add_own(m_access.length);
	if (m_access.write) {
		bool keeps = spans && !job->contents_stay;

		command = keeps ? tlm::TLM_WRITE_COMMAND : tlm::TLM_IGNORE_COMMAND;
		it.src.cut(m_access.length);
		move_bytes(nullptr, job, piece, it.src, it.issued);
		it.src.clear();
	}
	out.send_foreign(m_access, command, data);
	m_access.bytes = m_access.status == SIM_OK ? m_access.length : 0;
}

// A piece is read when it is issued, and written when its first byte is there: on links that is
// much later, and what others ask of the memory meanwhile goes first.
void engine::issue(lane &it, unsigned index, uint64_t now)
{
	sim_job *job = it.head;
	bool keeps = job->kind == SIM_JOB_COPY || job->kind == SIM_JOB_FILL;
	uint64_t asked = piece_bytes(it);

	it.piece = { asked, asked, now, now, now, SIM_NEVER, 0 };
	if (job->kind == SIM_JOB_COPY || job->kind == SIM_JOB_READ) {
		it.piece.done_ps = transport(job->src, false, index, keeps ? &it.src : nullptr,
					     it.issued, asked, now);
		it.piece.first_ps = m_access.first_ps;
		it.piece.limit = m_access.rate;
		it.piece.flight = m_access.flight_ps;
		it.piece.bytes = m_access.bytes;
		if (m_access.status != SIM_OK)
			note_fault(job, job->src.space);
	}
	it.now = state::writing;
	it.next_ps = it.piece.first_ps;
	if (job->kind == SIM_JOB_READ || !it.piece.bytes || it.next_ps <= now)
		write(it, index, now);
}

void engine::write(lane &it, unsigned index, uint64_t now)
{
	sim_job *job = it.head;
	bool keeps = job->kind == SIM_JOB_COPY || job->kind == SIM_JOB_FILL;
	uint64_t window = m_kind == SIM_ENGINE_CORE ? m_profile->core_outstanding_bytes
						    : m_profile->sdma_outstanding * request_bytes;
	uint64_t bytes = it.piece.bytes, done = it.piece.done_ps, first = it.piece.first_ps, pace;

	if (job->kind != SIM_JOB_READ && bytes) {
		done = std::max(done, transport(job->dst, true, index, keeps ? &it.dst : nullptr,
						it.issued, bytes, first));
		it.piece.limit = std::min(it.piece.limit, m_access.rate);
		it.piece.flight = std::max(it.piece.flight, m_access.flight_ps);
		if (m_access.status != SIM_OK) {
			note_fault(job, job->dst.space);
			bytes = m_access.bytes;
		}
	}
	it.issued += bytes;
	it.latency_ps = std::min(it.latency_ps, first - it.piece.begin_ps);
	/* The engine's own rate, or what it may have under way allows at this latency. */
	pace = std::max(transfer_ps(it.piece.asked, rate(index, it.piece.limit)),
			it.latency_ps * it.piece.asked / window);
	pace = std::max<uint64_t>(pace, 1);
	it.last_ps = std::max({ it.last_ps, done, it.piece.begin_ps + pace });
	if (job->status != SIM_OK || it.issued == job->bytes) {
		it.now = state::finishing;
		it.next_ps = it.last_ps;
		return;
	}
	/* Two pieces on the way at most: those who share a link take turns. */
	it.now = state::moving;
	it.next_ps = std::max({ it.piece.begin_ps + pace, it.before_ps, now });
	it.before_ps = done;
}

bool engine::uses(const unsigned char *at, uint64_t bytes) const
{
	return std::any_of(m_active.begin(), m_active.end(), [=](unsigned index) {
		const lane &it = m_lanes[index];

		return it.dst.touches(at, bytes) || it.src.touches(at, bytes);
	});
}

// Results of a job that is over.
void engine::complete(sim_job *job, uint64_t now)
{
	job->finish_ps = now;
	job->next = nullptr;
	job->model = nullptr;
	if (job->done)
		job->done(job);
}

// Takes the head, all issued that will be, off the queue; the one behind it may begin at next_ps.
void engine::next_job(lane &it, uint64_t next_ps)
{
	it.head->moved_bytes = it.issued;
	it.issued = 0;
	it.head = it.head->next;
	it.now = it.head ? state::waiting : state::idle;
	it.free_ps = next_ps;
	it.next_ps = it.head ? next_ps : SIM_NEVER;
}

// The host has no memory for what the job needs: it ends with what has been issued.
void engine::give_up(lane &it, uint64_t now)
{
	sim_job *job = it.head;

	job->status = SIM_NO_MEMORY;
	if (!is_pipelined(job)) {
		it.now = state::finishing;
		it.next_ps = now;
		return;
	}
	next_job(it, now);
	complete(job, now);
}

// Brings what has been issued to where it belongs. Meanwhile, without the lock, others may submit
// jobs and take pages away; the model stays here, and the lists as they are. Where the program's
// memory is gone, nothing behind it moves.
void engine::finish(lane &it, uint64_t now)
{
	sim_job *job = it.head;
	uint64_t moved;

	if (job->kind == SIM_JOB_COPY || job->kind == SIM_JOB_FILL) {
		if (job->kind == SIM_JOB_COPY)
			it.src.cut(it.issued);
		it.dst.cut(it.issued);
		moved = move_bytes(m_lock, job, it.dst, it.src, 0);
		if (job->status == SIM_FAULT_HOST)
			it.issued = moved;
		it.dst.clear();
		it.src.clear();
	}
	if (it.piece.flight && it.issued) {
		it.dst_node = node_of(job->dst, it.issued - 1);
		it.src_node = node_of(job->src, it.issued - 1);
	}
	next_job(it, now);
	complete(job, now);
}

// --- cores that read or write: the next job is issued while answers are under way ---

bool engine::is_pipelined(const sim_job *job) const
{
	return m_kind == SIM_ENGINE_CORE &&
	       (job->kind == SIM_JOB_READ || job->kind == SIM_JOB_WRITE);
}

void engine::note_fault(sim_job *job, int space)
{
	job->status = m_access.status;
	job->fault_space = space;
	job->fault_va = m_access.fault_va;
}

// Requests are of 512-byte blocks. One that is not whole lines at an end has the whole block there
// read from memory, past the L2; so a core's unaligned rows cost as much more as the asc-devkit
// data_copy sample shows.
uint64_t engine::read_unaligned(const sim_ref &ref, unsigned index, uint64_t offset, uint64_t bytes,
				uint64_t at_ps)
{
	uint64_t line = m_profile->l2_line_bytes - 1, block = request_bytes - 1;
	uint64_t va = ref.va + offset, end = va + bytes, done = at_ps;
	uint64_t first = va & ~block, last = end & ~block;
	uint64_t from = va & line ? first + request_bytes : va, to = end & line ? last : end;
	bool head = va & line, tail = (end & line) && !(head && first == last);
	const struct {
		bool partial;
		uint64_t va, bytes;
	} parts[] = { { true, first, head ? request_bytes : 0 },
		      { true, last, tail ? request_bytes : 0 },
		      { false, from, from < to ? to - from : 0 } };

	m_access.status = SIM_OK;
	for (const auto &part : parts) {
		if (!part.bytes || m_access.status != SIM_OK)
			continue;
		m_access.partial = part.partial;
		done = std::max(done, transport({ ref.space, part.va, 0 }, false, index, nullptr, 0,
						part.bytes, at_ps));
	}
	m_access.partial = false;
	if (m_access.status == SIM_OK)
		m_access.bytes = bytes;
	else
		m_access.bytes = m_access.fault_va > va ? m_access.fault_va - va : 0;
	return done;
}

// Asks for the rows. Returns how many were asked for: fewer at a fault. What is whole lines, or
// less than a request, is asked for as it is.
unsigned engine::ask_rows(const sim_ref &ref, bool write, unsigned index, sim_row *rows,
			  unsigned count)
{
	const uint64_t bytes = m_access.length, at_ps = m_access.at_ps;
	uint64_t line = m_profile->l2_line_bytes - 1, ends = m_access.address | bytes;
	bool splits = !write && bytes >= request_bytes && ref.space != SIM_RAW;
	unsigned asked = 0;

	if (G_LIKELY(!(splits && ends & line) && out.own())) {
		m_access.space = ref.space;
		m_access.lane = m_first_lane + index;
		m_access.spans = nullptr;
		m_access.write = write;
		return out.own()->serve_rows(m_access, rows, count);
	}
	do {
		sim_row &row = rows[asked++];
		uint64_t at = row.address - ref.va;

		if (splits && (row.address | (row.address + bytes)) & line)
			row.done_ps = read_unaligned(ref, index, at, bytes, at_ps);
		else
			row.done_ps = transport(ref, write, index, nullptr, at, bytes, at_ps);
	} while (asked < count && m_access.status == SIM_OK);
	return asked;
}

// The job's next rows from byte `from` on, before `stop`: whole ones, or part of one. Returns how
// many; m_access has how long each is, and their addresses ored.
unsigned engine::next_rows(const sim_job *job, uint64_t from, uint64_t stop, sim_row *rows)
{
	const sim_ref &ref = job->kind == SIM_JOB_WRITE ? job->dst : job->src;
	uint64_t row_bytes = job->row_bytes ? job->row_bytes : job->bytes;
	uint64_t row = from / row_bytes, into = from % row_bytes, left = stop - from;
	uint64_t bytes = std::min(row_bytes - into, left), va = ref.va + into, all = 0;
	const auto row_offset = job->row_offset;
	unsigned count = 1;

	if (bytes == row_bytes)
		count = static_cast<unsigned>(std::min<uint64_t>(left / bytes, SIM_ROWS_MAX));
	for (unsigned i = 0; i < count; i++, row++) {
		uint64_t at = row_offset ? row_offset(job, row) : row * job->pitch_bytes;

		rows[i].address = va + at;
		all |= va + at;
	}
	m_access.address = all;
	m_access.length = bytes;
	return count;
}

// When the last of the rows is there. Their latencies, to where they are counted, are from begin_ps
// until then, or `least`.
static uint64_t last_of(const sim_row *rows, unsigned count, sim_histogram *latency,
			uint64_t begin_ps, uint64_t least)
{
	uint64_t first = SIM_NEVER, last = 0, sum = 0;

	for (const sim_row *row = rows; row < rows + count; row++) {
		uint64_t ps = std::max(least, row->done_ps) - begin_ps;

		first = std::min(first, row->done_ps);
		last = std::max(last, row->done_ps);
		if (!latency)
			continue;
		latency->count[sim_histogram_bucket(ps)]++;
		sum += ps;
	}
	if (!latency)
		return last;
	first = std::max(least, first) - begin_ps;
	latency->min_ps = latency->total ? std::min(latency->min_ps, first) : first;
	latency->max_ps = std::max(latency->max_ps, std::max(least, last) - begin_ps);
	latency->sum_ps += sum;
	latency->total += count;
	return last;
}

// Issues `bytes` more of the job, row by row. Returns when the last of them is there.
uint64_t engine::issue_rows(lane &it, unsigned index, uint64_t bytes, uint64_t now,
			    uint64_t *out_rows)
{
	sim_job *job = it.head;
	bool write = job->kind == SIM_JOB_WRITE;
	const sim_ref &ref = write ? job->dst : job->src;
	uint64_t row_bytes = job->row_bytes ? job->row_bytes : job->bytes;
	uint64_t done = now, stop = it.issued + bytes, into = it.issued % row_bytes;
	sim_row rows[SIM_ROWS_MAX];

	m_access.status = SIM_OK;
	for (*out_rows = 0; it.issued < stop && m_access.status == SIM_OK; into = 0) {
		unsigned count = next_rows(job, it.issued, stop, rows);
		uint64_t n = m_access.length, begin = into ? it.row_begin_ps : now;
		uint64_t least = into ? it.row_end_ps : now;
		sim_histogram *latency = into + n == row_bytes ? job->latency : nullptr;

		m_access.at_ps = now;
		count = ask_rows(ref, write, index, rows, count);
		done = std::max(done, last_of(rows, count, latency, begin, least));
		it.row_begin_ps = begin;
		it.row_end_ps = std::max(least, rows[count - 1].done_ps);
		*out_rows += into ? 0 : count;
		it.issued += (count - 1) * n + std::min(m_access.bytes, n);
	}
	if (m_access.status != SIM_OK)
		note_fault(job, ref.space);
	return done;
}

// A quarter of what may be under way at a time, but no less than a request.
void engine::issue_pipelined(lane &it, unsigned index, uint64_t now)
{
	sim_job *job = it.head;
	uint64_t window = m_profile->core_outstanding_bytes, rows, done, pace;
	uint64_t request = job->row_bytes ? std::min(job->row_bytes, request_bytes) : request_bytes;
	uint64_t bytes = std::min(job->bytes - it.issued, std::max(window / 4, request));
	uint64_t row_ps = index < m_profile->cube_cores ? m_profile->core_row_ps
							: m_profile->vector_core_row_ps;
	bool begins = it.issued == 0, over;

	if (!it.in_flight.empty() && it.in_flight_bytes + bytes > window) {
		it.next_ps = it.in_flight.front().due_ps;
		return;
	}
	done = issue_rows(it, index, bytes, now, &rows);
	pace = std::max(transfer_ps(bytes, rate(index, SIM_NEVER)),
			job->row_bytes ? rows * row_ps : 0);
	pace = std::max<uint64_t>(pace, begins ? m_profile->core_issue_ps : 1);
	over = job->status != SIM_OK || it.issued == job->bytes;
	if (!it.in_flight.empty())
		done = std::max(done, it.in_flight.back().due_ps);
	it.in_flight.push_back({ std::max(done, now + pace), bytes, over ? job : nullptr });
	it.in_flight_bytes += bytes;
	it.next_ps = now + pace;
	if (over)
		next_job(it, now + pace);
}

void engine::retire(lane &it, uint64_t now)
{
	while (!it.in_flight.empty() && it.in_flight.front().due_ps <= now) {
		sim_job *job = it.in_flight.front().job;

		it.in_flight_bytes -= it.in_flight.front().bytes;
		it.in_flight.pop_front();
		if (job)
			complete(job, now);
	}
}

} // namespace npusim
