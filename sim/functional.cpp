// SPDX-License-Identifier: Apache-2.0
//
// Executes jobs without simulated time, by the same page tables.
#include "functional.h"

#include <algorithm>

#include <vector>

#include "sim/page-table.h"

namespace npusim
{

uint64_t find_mapped(const sim_memory *memory, uint64_t root_pa, uint64_t va, uint64_t bytes,
		     bool write, span_list &spans, sim_status *out_status)
{
	uint64_t done = 0, page, room;
	pt_leaf leaf;
	pt_step steps;

	*out_status = SIM_OK;
	for (; done < bytes; done += page) {
		unsigned char *at;

		if (!pt_walk_from(0, root_pa, memory, va + done, &leaf, &steps)) {
			*out_status = SIM_FAULT_TRANSLATION;
			break;
		}
		if (write && !(leaf.flags & PT_WRITE)) {
			*out_status = SIM_FAULT_PERMISSION;
			break;
		}
		at = sim_memory_at(memory, leaf.pa, &room);
		page = UINT64_C(1) << leaf.page_lg2;
		page = std::min(page - ((va + done) & (page - 1)), bytes - done);
		if (room < page) {
			*out_status = SIM_FAULT_ADDRESS;
			break;
		}
		spans.add(at, page);
	}
	return done;
}

// The same for a side of a job.
static uint64_t reach(sim_job *job, const sim_ref &ref, bool write, uint64_t bytes,
		      const sim_memory *memory, const uint64_t *roots, span_list &spans)
{
	uint64_t done;
	sim_status status;

	if (ref.space == SIM_RAW) {
		spans.add(reinterpret_cast<unsigned char *>(ref.va), bytes);
		return bytes;
	}
	done = find_mapped(memory, roots[ref.space], ref.va, bytes, write, spans, &status);
	if (status != SIM_OK) {
		job->status = status;
		job->fault_space = ref.space;
		job->fault_va = ref.va + done;
	}
	return done;
}

// Rows of a job that only reads or writes; or its one stretch.
static uint64_t reach_rows(sim_job *job, const sim_memory *memory, const uint64_t *roots,
			   span_list &spans)
{
	bool write = job->kind == SIM_JOB_WRITE;
	uint64_t done = 0, row_bytes = job->row_bytes ? job->row_bytes : job->bytes;

	while (done < job->bytes && job->status == SIM_OK) {
		sim_ref ref = write ? job->dst : job->src;
		uint64_t row = done / row_bytes;

		ref.va += job->row_offset ? job->row_offset(job, row) : row * job->pitch_bytes;
		done += reach(job, ref, write, std::min(row_bytes, job->bytes - done), memory,
			      roots, spans);
	}
	return done;
}

static std::vector<const span_list *> under_way; // of all threads

bool functional_uses(const unsigned char *at, uint64_t bytes)
{
	return std::any_of(under_way.begin(), under_way.end(),
			   [=](const span_list *list) { return list->touches(at, bytes); });
}

void run_functionally(sim_job *job, const sim_memory *memory, const uint64_t *roots, sim_lock *lock)
{
	static thread_local span_list dst, src;
	uint64_t bytes = job->kind == SIM_JOB_DELAY ? 0 : job->bytes;

	job->status = SIM_OK;
	job->fault_va = 0;
	dst.clear();
	src.clear();
	if (job->kind == SIM_JOB_READ || job->kind == SIM_JOB_WRITE) {
		job->moved_bytes = reach_rows(job, memory, roots, dst);
		return;
	}
	if (job->kind == SIM_JOB_COPY)
		bytes = reach(job, job->src, false, bytes, memory, roots, src);
	if (bytes)
		bytes = reach(job, job->dst, true, bytes, memory, roots, dst);
	src.cut(std::min(bytes, src.bytes()));
	dst.cut(std::min(bytes, dst.bytes()));
	job->moved_bytes = bytes;
	under_way.insert(under_way.end(), { &dst, &src });
	bytes = move_bytes_unlocked(lock, job, dst, src);
	for (const span_list *list : { &dst, &src })
		under_way.erase(std::find(under_way.begin(), under_way.end(), list));
	if (job->status == SIM_FAULT_HOST)
		job->moved_bytes = bytes;
}

} // namespace npusim
