/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the entries of submission queues. An entry is tried when it reaches the head of its
 * queue: it completes, or an engine takes it, or the queue is blocked until it is kicked, and the
 * entry is tried again.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "memory/memory.h"
#include "queue/copy.h"
#include "queue/queue.h"

#define PS_PER_S UINT64_C(1000000000000)
#define TOLD_MAX 8u /* failures of a queue, at warn */

/* ---- completions ---- */

/* Posts the completion that the queue holds, and goes on to the next entry. Without a completion
 * queue it is dropped. */
static void post_held(struct bsim *bs, struct queue_sq *sq)
{
	struct queue_cq *cq = queue_cq_of(sq);

	if (cq != NULL && !queue_cq_post(bs, cq, &sq->held, sq->held_text)) {
		queue_block_locked(bs, sq, SQ_CQ_FULL);
		return;
	}
	if (cq == NULL)
		g_free(sq->held_text);
	sq->held_text = NULL;
	sq->holding = false;
	sq->state = SQ_READY;
	sq->head = (sq->head + 1) % sq->depth;
	queue_changed_locked(bs);
}

static void complete(struct bsim *bs, struct queue_sq *sq, struct queue_error *error)
{
	const struct stars_sqe_header header = sq->ring[sq->head].header;

	sq->deadline_ps = sq->deadline_wall_ns = SIM_NEVER;
	sq->state = SQ_READY;
	sq->row = 0;
	queue_uses_end_locked(bs, sq, 0, 1);
	if (error->type != 0) {
		if (sq->failed.length < sq->depth)
			g_queue_push_tail(&sq->failed, GUINT_TO_POINTER(sq->head));
		/* Once a failure, when it happens: nobody may ever ask for it. */
		sq->told++;
		npu_log(sq->told <= TOLD_MAX ? NPU_LOG_WARN : NPU_LOG_INFO, "%s%s", error->text,
			sq->told == TOLD_MAX ? "; further failures on this stream are told at info"
					     : "");
		queue_ring_tell_locked(bs, sq, error->type);
	} else if (!header.wr_cqe) {
		sq->head = (sq->head + 1) % sq->depth;
		queue_changed_locked(bs);
		return;
	}
	sq->held = (struct stars_logic_cqe){
		.stream_id = header.stream_id & (uint16_t)~STARS_SYNC_TASK_FLAG,
		.task_id = header.task_id,
		.error_code = error->code,
		.error_type = error->type,
		.sqe_type = header.type,
		.sq_id = (uint16_t)sq->id,
		.sq_head = (uint16_t)sq->head,
		.flags = (header.stream_id & STARS_SYNC_TASK_FLAG) != 0 ? STARS_CQE_FLAG_MATCH : 0,
		.timestamp = bs->queues->now_ps / (PS_PER_S / STARS_CLOCK_HZ),
	};
	sq->held_text = g_steal_pointer(&error->text);
	sq->holding = true;
	post_held(bs, sq);
}

/* ---- errors ---- */

enum outcome { DONE, STARTED, BLOCKED };

/* The entry at the head of a queue, while it is tried. */
struct attempt {
	struct bsim *bs;
	struct queue_sq *sq;
	const union stars_sqe *entry;
	const char *what; /* it does, for messages */
	char name[96];    /* by name_of() */
	struct queue_error error;
};

static struct attempt attempt_of(struct bsim *bs, struct queue_sq *sq, const char *what)
{
	return (struct attempt){ .bs = bs, .sq = sq, .entry = &sq->ring[sq->head], .what = what };
}

/* For messages; a->name holds it from then on. */
static const char *name_of(struct attempt *a)
{
	snprintf(a->name, sizeof(a->name), "device %u, stream %u, task %u (%s)", a->sq->device,
		 a->entry->header.stream_id & (unsigned)~STARS_SYNC_TASK_FLAG,
		 a->entry->header.task_id, a->what);
	return a->name;
}

/* With what the thread's message says. */
static enum outcome fail_by_message(struct attempt *a, uint8_t type, uint32_t code)
{
	a->error = (struct queue_error){ type, code, g_strdup(npu_message()) };
	return DONE;
}

#define fail_entry(a, type, code, format, ...) \
	(npu_message_set("%s: " format, name_of(a), ##__VA_ARGS__), fail_by_message(a, type, code))

/* The entry itself is not right. */
#define fail_sqe(a, ...) fail_entry(a, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, __VA_ARGS__)

/* What a check says in the thread's message is about an entry, and not about the call that happens
 * to be under way, whose message stays. */
static char *message_keep(void)
{
	return npu_message()[0] == '\0' ? NULL : g_strdup(npu_message());
}

static void message_restore(char *kept)
{
	if (kept != NULL)
		npu_message_set("%s", kept);
	else
		npu_message_clear();
	g_free(kept);
}

/* ---- copies ---- */

/* Each is a job of its own. */
static uint64_t rows_of(const union stars_sqe *entry)
{
	return entry->header.type == STARS_SQE_PCIE_DMA &&
			       (entry->dma.convert & STARS_DMA_DESCRIPTORS) != 0
		       ? entry->dma.sq_tail_ptr
		       : 1;
}

static void job_done(struct sim_job *job)
{
	struct queue_sq *sq = job->arg;
	struct bsim *bs = sq->bs;
	struct attempt a;
	char *kept;

	g_clear_pointer(&sq->rows, queue_rows_release);
	if (sq->doomed) {
		LIST_REMOVE(sq, doomed_link);
		queue_uses_end_locked(bs, sq, 0, 1);
		if (bs->queues->running) /* below advance(), which looks at it */
			sq->state = SQ_DONE;
		else
			queue_sq_free(sq);
		return;
	}
	if (sq->stopped) {
		sq->state = SQ_READY;
		return;
	}
	if (!bs->queues->running)
		bs->queues->now_ps = job->finish_ps;
	a = attempt_of(bs, sq, "copy");
	kept = message_keep();
	if (job->status != SIM_OK) {
		copy_fault_locked(bs, name_of(&a), job);
		fail_by_message(&a, STARS_ERROR_EXCEPTION,
				job->status == SIM_FAULT_HOST ? TS_ERROR_HOST_MEMORY
							      : TS_ERROR_SDMA_ERROR);
	}
	message_restore(kept);
	if (job->status == SIM_OK && ++sq->row < rows_of(a.entry))
		sq->state = SQ_READY;
	else
		complete(bs, sq, &a.error);
	if (sq->state == SQ_READY)
		queue_kick_locked(bs, sq);
	queue_poll_locked(bs);
	queue_run_locked(bs, job->finish_ps);
}

static enum outcome start_copy(struct attempt *a, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct bsim *bs = a->bs;
	struct queue_sq *sq = a->sq;
	uint64_t sent = queue_sent_behind_copy(sq);
	struct copy_plan plan;
	bool loose;

	if (bytes == 0)
		return DONE;
	if (copy_plan_locked(bs, name_of(a), (int)sq->device, sq->sent[sq->head].call, dst, src,
			     bytes, &plan) != DRV_ERROR_NONE)
		return fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_SDMA_ERROR);
	loose = host_loosen_locked(bs, &plan.dst);
	loose = host_loosen_locked(bs, &plan.src) && loose;
	if ((!loose || !bs->contents) &&
	    host_check_locked(bs, a->name, &plan, bytes) != DRV_ERROR_NONE)
		return fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_HOST_MEMORY);
	sq->job = copy_job(bs, &plan, bytes);
	sq->job.start_ps = bs->queues->now_ps;
	sq->job.sent_ps = sent;
	if (copy_cross_locked(bs, name_of(a), &sq->job, 0) != DRV_ERROR_NONE)
		return fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_SDMA_ERROR);
	sq->job.done = job_done;
	sq->job.arg = sq;
	sq->state = SQ_BUSY;
	sim_submit(bs->sim, &sq->job);
	return STARTED;
}

#define SDMA_OPCODE_MASK 0xffu
#define SDMA_OFFSET_FLAG (1u << 28) /* the addresses are those of addresses */

static enum outcome sdma(struct attempt *a)
{
	const struct stars_sdma_sqe *sqe = &a->entry->sdma;
	unsigned opcode = sqe->control & SDMA_OPCODE_MASK, pointer = sqe->ptr_mode & 1u;
	bool offset = (sqe->control & SDMA_OFFSET_FLAG) != 0;

	a->what = "SDMA";
	if (opcode != 0 || pointer != 0 || offset)
		return fail_sqe(a,
				"opcode %u, pointer mode %u, offset mode %u: only plain copies "
				"(0, 0, 0) are modelled",
				opcode, pointer, offset);
	a->what = "SDMA copy";
	return start_copy(a, queue_word(sqe->dst_addr_low, sqe->dst_addr_high),
			  queue_word(sqe->src_addr_low, sqe->src_addr_high), sqe->length);
}

static enum outcome pcie_dma(struct attempt *a)
{
	const struct stars_pcie_dma_sqe *sqe = &a->entry->dma;
	uint64_t number = queue_word(sqe->sq_addr_low, sqe->sq_addr_high), row = a->sq->row;
	struct queue_rows *made;
	enum outcome outcome;

	a->what = "PCIe DMA";
	if ((sqe->convert & STARS_DMA_UPDATES) != 0)
		return fail_sqe(a,
				"mode %u: the entry changes entries of a queue; only copies of "
				"memory are modelled",
				sqe->convert & (STARS_DMA_DESCRIPTORS | STARS_DMA_UPDATES));
	a->what = "PCIe DMA copy";
	if ((sqe->convert & STARS_DMA_DESCRIPTORS) == 0)
		return start_copy(a, sqe->dst, sqe->src, sqe->length);
	made = queue_rows_find(&a->bs->queues->device[a->sq->device], (void *)number);
	if (made == NULL || sqe->sq_tail_ptr != made->rows.height)
		return fail_sqe(a,
				"descriptors at 0x%llx (%u): halMemcpy2D has not made them, or "
				"they are destroyed",
				(unsigned long long)number, sqe->sq_tail_ptr);
	a->sq->rows = g_rc_box_acquire(made); /* the lock is let go, and they may be destroyed */
	outcome = start_copy(a, (uint64_t)made->rows.dst + row * made->rows.dpitch,
			     (uint64_t)made->rows.src + row * made->rows.spitch, made->rows.width);
	if (outcome != STARTED)
		g_clear_pointer(&a->sq->rows, queue_rows_release);
	return outcome;
}

/* ---- events and notifies ---- */

/* Blocks the queue, or ends the entry where its time has passed. */
static enum outcome wait_longer(struct attempt *a, enum queue_sq_state state, uint32_t timeout_s)
{
	struct queue_set *set = a->bs->queues;
	struct queue_sq *sq = a->sq;

	if (sq->deadline_ps == SIM_NEVER && timeout_s != 0 && timeout_s != UINT32_MAX) {
		sq->deadline_ps = timeout_s < (SIM_NEVER - set->now_ps) / PS_PER_S
					  ? set->now_ps + timeout_s * PS_PER_S
					  : SIM_NEVER - 1;
		sq->deadline_wall_ns = clock_now_ns() + timeout_s * UINT64_C(1000000000);
	}
	if (sq->deadline_ps != SIM_NEVER && set->now_ps >= sq->deadline_ps)
		return fail_entry(a, STARS_ERROR_TIMEOUT, TS_ERROR_TASK_TIMEOUT,
				  "%u of device %u was not recorded within %u s", sq->wait_id,
				  sq->wait_device, timeout_s);
	queue_block_locked(a->bs, sq, state);
	return BLOCKED;
}

/* Which event or notify the entry means. False: there is none of that id. */
static bool find_target(struct attempt *a, int type, uint32_t id)
{
	const struct stars_write_value_sqe *write = &a->entry->write;
	uint32_t low = write->write_addr_low, high = write->write_addr_high;
	struct sim_job link = { .dst.space = SIM_RAW, .src.space = SIM_RAW };
	unsigned device = a->sq->device, server;

	if (write->header.type == STARS_SQE_WRITE_VALUE && write->sub_type == STARS_WRITE_NOTIFY)
		device = !STARS_IS_PEERS(low, high)
				 ? write->res3
				 : SIM_PA_NODE(queue_word(low, high & QUEUE_WRITE_HIGH_MASK));
	server = SIM_PEER_SERVER(device);
	a->sq->wait_device = device;
	a->sq->wait_id = type == DRV_EVENT_ID ? id : id % QUEUE_NOTIFIES;
	if (!queue_id_is_used(a->bs, device, type, a->sq->wait_id))
		fail_sqe(a,
			 "id %u of device %u%s is not in use: it was never taken, or given back "
			 "before this task's turn came",
			 a->sq->wait_id, device % SIM_NODE_MAX,
			 device < SIM_NODE_MAX ? "" : " of another server");
	else if (device >= SIM_NODE_MAX && (node_lost_servers(a->bs->node) >> server & 1))
		fail_sqe(a, "server %u of supernode %s does not answer: it was stopped", server,
			 a->bs->config.name);
	else if (device >= SIM_NODE_MAX &&
		 copy_cross_locked(a->bs, name_of(a), &link, UINT64_C(1) << server) !=
			 DRV_ERROR_NONE)
		fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION);
	return a->error.type == 0;
}

static enum outcome record(struct attempt *a, int type, uint32_t id, const char *what)
{
	a->what = what;
	if (find_target(a, type, id))
		queue_record_locked(a->bs, a->sq->wait_device, type, a->sq->wait_id);
	return DONE;
}

/* An event stays recorded; a notify's record is taken. */
static enum outcome wait_record(struct attempt *a, int type)
{
	const struct stars_event_sqe *sqe = &a->entry->event;
	bool event = type == DRV_EVENT_ID;

	a->what = event ? "wait for event" : "wait for notify";
	if (!find_target(a, type, sqe->event_id) ||
	    (event ? queue_is_recorded : queue_record_take)(a->bs, a->sq->wait_device, type,
							    a->sq->wait_id))
		return DONE;
	return wait_longer(a, event ? SQ_WAIT_EVENT : SQ_WAIT_NOTIFY,
			   event ? sqe->timeout : sqe->exe_result);
}

/* ---- values ---- */

/* Memory that the task scheduler itself reaches: a device's, and the host's where the driver
 * allocated it. CUDA's runtime vouches for what it sends. */
static bool scheduler_reaches(struct attempt *a, uint64_t va, unsigned bytes, uint64_t sent,
			      struct copy_end *out)
{
	const char *name = name_of(a);
	drvError_t result = copy_end_locked(a->bs, name, "address", va, bytes, sent, out);

	if (result == DRV_ERROR_NONE && out->kind == NPU_PLACE_PAGEABLE && a->bs->cuda == NULL)
		result = bsim_fail(DRV_ERROR_IOCRL_FAIL,
				   "%s: address: 0x%llx is the program's own memory, which the "
				   "task scheduler does not reach: use memory of aclrtMalloc or "
				   "aclrtMallocHost",
				   name, (unsigned long long)va);
	result = result ?: copy_access_locked(a->bs, name, a->sq->device, out);
	if (result != DRV_ERROR_NONE)
		fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION);
	return result == DRV_ERROR_NONE;
}

/* The same of memory that is the program's, where the scheduler reaches it. False: it is gone. */
static bool value_moves(struct attempt *a, struct copy_end *end, void *value, unsigned bytes,
			bool write)
{
	if (host_move_value_locked(a->bs, a->name, end, value, bytes, write))
		return true;
	fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_HOST_MEMORY);
	return false;
}

static bool is_aligned(struct attempt *a, uint64_t va, unsigned bytes)
{
	if (va % bytes != 0)
		fail_sqe(a, "0x%llx is not a multiple of the value's %u bytes",
			 (unsigned long long)va, bytes);
	return va % bytes == 0;
}

/* A host thread may be polling the value: it must see all of it or nothing. */
static void store(unsigned char *at, const uint32_t *value, unsigned bytes)
{
	uint64_t whole;

	memcpy(&whole, value, sizeof(whole));
	switch (bytes) {
#define WHOLE(type)                                                                  \
	case sizeof(type):                                                           \
		__atomic_store_n((type *)(void *)at, (type)whole, __ATOMIC_RELEASE); \
		break
		WHOLE(uint8_t);
		WHOLE(uint16_t);
		WHOLE(uint32_t);
		WHOLE(uint64_t);
#undef WHOLE
	default:
		memcpy(at, value, bytes);
	}
}

#define WRITE_VIRTUAL      (1u << 31)
#define WRITE_SIZE_LG2_MAX 5u

static enum outcome write_value(struct attempt *a)
{
	struct stars_write_value_sqe sqe = a->entry->write;
	unsigned lg2 = QUEUE_WRITE_SIZE(sqe.write_addr_high), bytes = 1u << lg2;
	uint64_t va = queue_word(sqe.write_addr_low, sqe.write_addr_high & QUEUE_WRITE_HIGH_MASK);
	struct sim_job link = { .src.space = SIM_RAW, .bytes = bytes };
	struct copy_end end;
	unsigned char *at;
	uint64_t run;

	if (sqe.sub_type == STARS_WRITE_EVENT_RESET) {
		a->what = "reset event";
		if (find_target(a, DRV_EVENT_ID, (uint16_t)sqe.res7))
			queue_record_take(a->bs, a->sq->wait_device, DRV_EVENT_ID, a->sq->wait_id);
		return DONE;
	}
	if (sqe.sub_type == STARS_WRITE_NOTIFY)
		return record(a, DRV_NOTIFY_ID, STARS_NOTIFY_OF(sqe.write_addr_low),
			      "record imported notify");
	a->what = "write value";
	if (sqe.sub_type != 0 || !(sqe.write_addr_high & WRITE_VIRTUAL) ||
	    lg2 > WRITE_SIZE_LG2_MAX || (sqe.res5 & 1) != 0)
		return fail_sqe(a,
				"sub type %u, %s address, 2^%u bytes, pointer mode %u: sub type "
				"0, a virtual address, 1 to 32 bytes and mode 0 are modelled",
				sqe.sub_type,
				sqe.write_addr_high & WRITE_VIRTUAL ? "virtual" : "physical", lg2,
				sqe.res5 & 1u);
	if (!is_aligned(a, va, bytes) ||
	    !scheduler_reaches(a, va, bytes, a->sq->sent[a->sq->head].call, &end))
		return DONE;
	link.dst = end.ref;
	if (copy_cross_locked(a->bs, name_of(a), &link, 0) != DRV_ERROR_NONE)
		return fail_by_message(a, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION);
	if (copy_end_may_go(&end)) {
		if (value_moves(a, &end, sqe.value, bytes, true))
			queue_poll_locked(a->bs);
		return DONE;
	}
	at = copy_at_locked(a->bs, &end.ref, true, &run);
	if (at == NULL)
		return fail_entry(a, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION,
				  "0x%llx is mapped read-only or not at all",
				  (unsigned long long)va);
	store(at, sqe.value, bytes);
	queue_poll_locked(a->bs);
	return DONE;
}

enum { COMPARE_GEQ, COMPARE_EQ, COMPARE_AND, COMPARE_NOR }; /* ACL_STREAM_WAIT_VALUE_* */

/* Of a narrow value only the lower half counts, which a shift makes the upper one. */
static bool compares(const struct stars_value_wait_sqe *sqe, uint64_t found)
{
	unsigned shift = sqe->narrow ? 32 : 0;
	uint64_t value = sqe->value << shift, all = UINT64_MAX << shift;

	found <<= shift;
	switch (sqe->compare) {
	case STARS_WAIT_CYCLIC:
		return (int64_t)(found - value) >= 0;
	case COMPARE_GEQ:
		return found >= value;
	case COMPARE_EQ:
		return found == value;
	case COMPARE_AND:
		return (found & value) != 0;
	default:
		return (~(found | value) & all) != 0;
	}
}

/* False, and the error says why: it cannot be read. */
static bool read_memory(void *arg, uint64_t va, void *to, unsigned bytes)
{
	struct attempt *a = arg;
	struct copy_end end;
	const unsigned char *at;
	uint64_t run;

	if (!scheduler_reaches(a, va, bytes, ALLOCATION_NOW, &end))
		return false;
	if (copy_end_may_go(&end))
		return value_moves(a, &end, to, bytes, false);
	for (uint64_t done = 0; done < bytes; done += run, end.ref.va += run) {
		at = copy_at_locked(a->bs, &end.ref, false, &run);
		if (at == NULL) {
			fail_entry(a, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION,
				   "0x%llx does not translate", (unsigned long long)end.ref.va);
			return false;
		}
		run = MIN(run, bytes - done);
		if (bytes == sizeof(uint64_t) && end.ref.va % bytes == 0)
			*(uint64_t *)to = __atomic_load_n((const uint64_t *)(const void *)at,
							  __ATOMIC_ACQUIRE);
		else
			memcpy((unsigned char *)to + done, at, run);
	}
	return true;
}

uint64_t queue_value_locked(struct bsim *bs, struct queue_sq *sq)
{
	struct attempt a = attempt_of(bs, sq, "wait for value");
	uint64_t found = 0;

	read_memory(&a, a.entry->wait.addr, &found, queue_value_bytes(&a.entry->wait));
	g_free(a.error.text);
	return found;
}

/* Code of a value wait reads the tail of its queue too. */
static bool read_for_condition(void *arg, uint64_t va, void *to, unsigned bytes)
{
	const struct attempt *a = arg;

	if (va != queue_tail_register(a->sq) || bytes != sizeof(uint64_t))
		return read_memory(arg, va, to, bytes);
	*(uint64_t *)to = a->sq->tail;
	return true;
}

/* A value wait of CANN's runtime: a write of its own flag, and code that goes back to it until the
 * value is there. To stay at the code is the same. */
static bool goes_back_to_wait(const struct queue_sq *sq, const struct condition *condition)
{
	uint32_t before = (sq->head + sq->depth - 1) % sq->depth;

	return condition->sq == (sq->id & 0x7ff) &&
	       (condition->head == sq->head ||
		(condition->head == before &&
		 sq->ring[before].header.type == STARS_SQE_WRITE_VALUE));
}

/* One of v9.1.0, when the value is there, goes on behind a place holder for the runtime's profiler
 * (src/runtime/core/src/task/task_info/memory/memory_task_v100.cc:574), which does nothing here. */
static bool goes_on(const struct queue_sq *sq, const struct condition *condition)
{
	uint32_t next = (sq->head + 1) % sq->depth;

	return condition->sq == (sq->id & 0x7ff) && next != sq->tail &&
	       condition->head == (next + 1) % sq->depth &&
	       sq->ring[next].header.type == STARS_SQE_PLACE_HOLDER;
}

/* True: the code has come to its end, or cannot be run, and then the error says why. */
static bool condition_settled(struct attempt *a)
{
	struct condition condition = { .read = read_for_condition, .arg = a };

	switch (condition_run(&condition, &a->entry->words[STARS_CONDITION_AT],
			      STARS_SQE_BYTES / 4 - STARS_CONDITION_AT)) {
	case CONDITION_DONE:
		return true;
	case CONDITION_GOTO:
		if (goes_back_to_wait(a->sq, &condition))
			return false;
		if (goes_on(a->sq, &condition))
			return true;
		fail_sqe(a,
			 "condition code goes to entry %u of queue %u: it may go back to its own "
			 "entry of queue %u, %u, or to a write of a value before it, or on behind "
			 "a place holder that is next",
			 condition.head, condition.sq, a->sq->id, a->sq->head);
		return true;
	default:
		if (a->error.type == 0)
			fail_sqe(a, "instruction 0x%08x of condition code is not modelled",
				 condition.word);
		return true;
	}
}

/* True: the wait is over, or cannot go on, and then the error says why. */
static bool settled(struct attempt *a)
{
	const struct stars_value_wait_sqe *sqe = &a->entry->wait;
	uint64_t found = 0;

	if (sqe->magic != STARS_VALUE_WAIT_MAGIC)
		return condition_settled(a);
	return !read_memory(a, sqe->addr, &found, queue_value_bytes(sqe)) || compares(sqe, found);
}

static enum outcome wait_value(struct attempt *a)
{
	const struct stars_value_wait_sqe *sqe = &a->entry->wait;
	bool own = sqe->magic == STARS_VALUE_WAIT_MAGIC;

	a->what = own ? "wait for value" : "condition";
	if (own && sqe->compare > STARS_WAIT_CYCLIC)
		return fail_sqe(a, "compare is %u: it must be from 0 to %d", sqe->compare,
				STARS_WAIT_CYCLIC);
	if ((own && !is_aligned(a, sqe->addr, queue_value_bytes(sqe))) || settled(a))
		return DONE;
	queue_block_locked(a->bs, a->sq, SQ_WAIT_VALUE);
	return BLOCKED;
}

/* ---- functions of the host ---- */

static enum outcome call_back(struct attempt *a)
{
	const struct stars_callback_sqe *sqe = &a->entry->callback;
	struct queue_device *device = &a->bs->queues->device[a->sq->device];
	struct queue_cq *cq = queue_table_find(&device->queues[DRV_CALLBACK_TYPE], sqe->cq_id);
	const struct stars_callback_cqe report = {
		.phase = (uint16_t)(sqe->cq_id << 4),
		.stream_id = sqe->stream_id,
		.task_id = sqe->task_id,
		.sq_id = (uint16_t)a->sq->id,
		.sq_head = (uint16_t)a->sq->head,
		.is_block = sqe->is_block != 0,
		.event_id = sqe->event_id,
		.function = sqe->function,
		.data = sqe->data,
	};

	a->what = "callback";
	if (STARS_TOPIC_OF(sqe->topic) != STARS_TOPIC_CALLBACK || cq == NULL)
		return fail_sqe(a,
				"topic %u, callback queue %u: topic %u and a queue of the device "
				"are modelled, and no kernels of the AI CPU",
				STARS_TOPIC_OF(sqe->topic), sqe->cq_id, STARS_TOPIC_CALLBACK);
	if (queue_cq_post(a->bs, cq, &report, NULL))
		return DONE;
	queue_block_locked(a->bs, a->sq, SQ_CQ_FULL);
	return BLOCKED;
}

/* ---- any entry ---- */

static enum outcome execute(struct attempt *a)
{
	switch (a->entry->header.type) {
	case STARS_SQE_PLACE_HOLDER:
		if (a->entry->header.sub_type == STARS_TASK_ERROR_RING)
			queue_ring_set_locked(a->bs, a->sq->device, &a->entry->ring);
		return DONE;
	case STARS_SQE_AICPU:
		return call_back(a);
	case STARS_SQE_EVENT_RECORD:
		return record(a, DRV_EVENT_ID, a->entry->event.event_id, "record event");
	case STARS_SQE_EVENT_WAIT:
		return wait_record(a, DRV_EVENT_ID);
	case STARS_SQE_NOTIFY_RECORD:
		return record(a, DRV_NOTIFY_ID, a->entry->event.event_id, "record notify");
	case STARS_SQE_NOTIFY_WAIT:
		return wait_record(a, DRV_NOTIFY_ID);
	case STARS_SQE_WRITE_VALUE:
		return write_value(a);
	case STARS_SQE_SDMA:
		return sdma(a);
	case STARS_SQE_PCIE_DMA:
		return pcie_dma(a);
	case STARS_SQE_COND:
		return wait_value(a);
	default:
		a->what = "unknown";
		return fail_sqe(a,
				"entries of type %u are not modelled: npusim runs memory, "
				"copies, events and values, no kernels",
				a->entry->header.type);
	}
}

static bool can_go_on(const struct queue_sq *sq)
{
	return sq->state == SQ_READY && !sq->stopped && sq->head != sq->tail;
}

bool queue_advance_locked(struct bsim *bs, struct queue_sq *sq)
{
	if (sq->holding)
		post_held(bs, sq);
	for (unsigned i = 0; i < 64 && can_go_on(sq); i++) {
		struct attempt a = attempt_of(bs, sq, NULL);
		char *kept = message_keep();
		enum outcome outcome = execute(&a);

		message_restore(kept);
		if (outcome == DONE)
			complete(bs, sq, &a.error);
	}
	return can_go_on(sq);
}

void queue_poll_locked(struct bsim *bs)
{
	struct queue_set *set = bs->queues;
	struct queue_sq *sq, *next;
	uint64_t now = sim_host_ps(bs->sim);
	char *kept;

	if (set->polled == 0 && set->deadlines == 0)
		return;
	kept = message_keep();
	for (sq = TAILQ_FIRST(&set->blocked); sq != NULL; sq = next) {
		struct attempt a = attempt_of(bs, sq, "wait for value");
		bool go = sq->deadline_ps != SIM_NEVER && now >= sq->deadline_ps;

		next = TAILQ_NEXT(sq, blocked_link);
		if (sq->state == SQ_WAIT_VALUE)
			go = settled(&a);
		else if (sq->state == SQ_WAIT_NOTIFY)
			go |= queue_is_recorded(bs, sq->wait_device, DRV_NOTIFY_ID, sq->wait_id);
		g_free(a.error.text); /* it is said again when the entry is tried */
		if (go)
			queue_kick_locked(bs, sq);
	}
	message_restore(kept);
}
