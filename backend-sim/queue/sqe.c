/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the entries of submission queues. An entry is tried when it reaches the head of its
 * queue: it completes, or an engine takes it, or the queue is blocked until it is kicked, and the
 * entry is tried again. Kicked queues are kept in one list and run in its order: what happens at
 * one point of simulated time happens in the same order every time.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "queue/copy.h"
#include "queue/queue.h"

#define PS_PER_S UINT64_C(1000000000000)
#define TOLD_MAX 8u /* failures of a queue, at warn */

/* ---- lists ---- */

static bool is_blocked(const struct queue_sq *sq)
{
	return sq->state != SQ_READY && sq->state != SQ_BUSY;
}

static void block(struct queue_set *set, struct queue_sq *sq, enum queue_sq_state state)
{
	sq->state = state;
	TAILQ_INSERT_TAIL(&set->blocked, sq, blocked_link);
	set->value_waits += state == SQ_WAIT_VALUE;
	set->deadlines += sq->deadline_ps != SIM_NEVER;
}

static void unblock(struct queue_set *set, struct queue_sq *sq)
{
	TAILQ_REMOVE(&set->blocked, sq, blocked_link);
	set->value_waits -= sq->state == SQ_WAIT_VALUE;
	set->deadlines -= sq->deadline_ps != SIM_NEVER;
}

void queue_kick_locked(struct bsim *bs, struct queue_sq *sq)
{
	if (is_blocked(sq)) {
		unblock(bs->queues, sq);
		sq->state = SQ_READY;
	}
	if (!sq->listed)
		TAILQ_INSERT_TAIL(&bs->queues->ready, sq, ready_link);
	sq->listed = true;
}

/* ---- completions ---- */

static struct queue_cq *cq_of(struct bsim *bs, const struct queue_sq *sq)
{
	struct queue_device *device = &bs->queues->device[sq->device];
	uint32_t id = device->stream_cq == NULL ? QUEUE_NO_CQ : device->stream_cq[sq->stream_id];

	return id == QUEUE_NO_CQ ? NULL : queue_cq_find(device, id);
}

/* Posts the completion that the queue holds, and goes on to the next entry. Without a completion
 * queue it is dropped. */
static void post_held(struct bsim *bs, struct queue_sq *sq)
{
	struct queue_cq *cq = cq_of(bs, sq);

	if (cq != NULL && !queue_cq_post(cq, &sq->held, sq->held_text)) {
		block(bs->queues, sq, SQ_CQ_FULL);
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

/* Once a failure, when it happens: nobody may ever ask for it. */
static void tell(struct queue_sq *sq, const char *text)
{
	bool last = ++sq->told == TOLD_MAX;

	npu_log(sq->told <= TOLD_MAX ? NPU_LOG_WARN : NPU_LOG_INFO, "%s%s", text,
		last ? "; further failures on this stream are told at info" : "");
}

static void complete(struct bsim *bs, struct queue_sq *sq, struct queue_error *error)
{
	struct stars_sqe_header header;

	memcpy(&header, sq->ring[sq->head], sizeof(header));
	sq->deadline_ps = sq->deadline_wall_ns = SIM_NEVER;
	sq->state = SQ_READY;
	queue_uses_end_locked(bs, sq, 0, 1);
	if (error->type != 0) {
		sq->fresh_errors++;
		tell(sq, error->text);
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

static void name_entry(const struct queue_sq *sq, const char *what, char *out, size_t size)
{
	struct stars_sqe_header header;

	memcpy(&header, sq->ring[sq->head], sizeof(header));
	snprintf(out, size, "device %u, stream %u, task %u (%s)", sq->device,
		 header.stream_id & (unsigned)~STARS_SYNC_TASK_FLAG, header.task_id, what);
}

__attribute__((format(printf, 6, 7))) static enum outcome
fail_entry(const struct queue_sq *sq, struct queue_error *error, uint8_t type, uint32_t code,
	   const char *what, const char *format, ...)
{
	char name[96];
	va_list args;
	g_autofree char *text = NULL;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	name_entry(sq, what, name, sizeof(name));
	*error = (struct queue_error){ .type = type,
				       .code = code,
				       .text = g_strdup_printf("%s: %s", name, text) };
	return DONE;
}

/* What a check says in the thread's message is about an entry, and not about the call that happens
 * to be under way, whose message stays. */
static char *message_keep(void)
{
	return npu_message()[0] == '\0' ? NULL : g_strdup(npu_message());
}

/* An entry's error from the thread's message, which becomes what was kept. */
static struct queue_error error_of_message(uint32_t code, char *kept)
{
	struct queue_error error = { STARS_ERROR_EXCEPTION, code, g_strdup(npu_message()) };

	if (kept != NULL)
		npu_message_set("%s", kept);
	else
		npu_message_clear();
	g_free(kept);
	return error;
}

/* ---- copies ---- */

static void job_done(struct sim_job *job)
{
	struct queue_sq *sq = job->arg;
	struct bsim *bs = sq->bs;
	struct queue_error error = { 0 };
	char name[96];

	if (sq->doomed) {
		LIST_REMOVE(sq, doomed_link);
		queue_uses_end_locked(bs, sq, 0, 1);
		queue_sq_free(sq);
		return;
	}
	if (!bs->queues->running)
		bs->queues->now_ps = job->finish_ps;
	if (job->status != SIM_OK) {
		char *kept = message_keep();

		name_entry(sq, "copy", name, sizeof(name));
		copy_fault_locked(bs, name, job);
		error = error_of_message(job->status == SIM_FAULT_HOST ? TS_ERROR_HOST_MEMORY
								       : TS_ERROR_SDMA_ERROR,
					 kept);
	}
	complete(bs, sq, &error);
	if (sq->state == SQ_READY)
		queue_kick_locked(bs, sq);
	queue_poll_locked(bs);
	queue_run_locked(bs, job->finish_ps);
}

static enum outcome start_copy(struct bsim *bs, struct queue_sq *sq, const char *what, uint64_t dst,
			       uint64_t src, uint64_t bytes, struct queue_error *error)
{
	struct copy_plan plan;
	char name[96], *kept;
	bool loose;

	if (bytes == 0)
		return DONE;
	kept = message_keep();
	name_entry(sq, what, name, sizeof(name));
	if (copy_plan_locked(bs, name, (int)sq->device, sq->sent[sq->head], dst, src, bytes,
			     &plan) != DRV_ERROR_NONE) {
		*error = error_of_message(TS_ERROR_SDMA_ERROR, kept);
		return DONE;
	}
	loose = host_loosen_locked(bs, &plan.dst);
	loose = host_loosen_locked(bs, &plan.src) && loose;
	if ((!loose || !bs->contents) &&
	    host_check_locked(bs, name, &plan, bytes) != DRV_ERROR_NONE) {
		*error = error_of_message(TS_ERROR_HOST_MEMORY, kept);
		return DONE;
	}
	g_free(kept);
	sq->job = (struct sim_job){
		.kind = SIM_JOB_COPY,
		.engine = plan.engine,
		.device = plan.device,
		.dst = plan.dst.ref,
		.src = plan.src.ref,
		.bytes = bytes,
		.contents_stay = !bs->contents,
		.start_ps = bs->queues->now_ps,
		.done = job_done,
		.arg = sq,
	};
	sq->state = SQ_BUSY;
	sim_submit(bs->sim, &sq->job);
	return STARTED;
}

#define SDMA_OPCODE_MASK     0xffu
#define SDMA_OFFSET_FLAG     (1u << 28) /* the addresses are those of addresses */
#define PCIE_DESCRIPTOR_MASK 0x7u

static enum outcome sdma(struct bsim *bs, struct queue_sq *sq, const void *entry,
			 struct queue_error *error)
{
	struct stars_sdma_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if ((sqe.control & SDMA_OPCODE_MASK) != 0 || (sqe.ptr_mode & 1) != 0 ||
	    (sqe.control & SDMA_OFFSET_FLAG) != 0)
		return fail_entry(
			sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, "SDMA",
			"opcode %u, pointer mode %u, offset mode %u: only plain copies (0, 0, "
			"0) are "
			"modelled",
			sqe.control & SDMA_OPCODE_MASK, sqe.ptr_mode & 1u,
			(sqe.control & SDMA_OFFSET_FLAG) != 0);
	return start_copy(bs, sq, "SDMA copy", queue_word(sqe.dst_addr_low, sqe.dst_addr_high),
			  queue_word(sqe.src_addr_low, sqe.src_addr_high), sqe.length, error);
}

static enum outcome pcie_dma(struct bsim *bs, struct queue_sq *sq, const void *entry,
			     struct queue_error *error)
{
	struct stars_pcie_dma_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if ((sqe.convert & PCIE_DESCRIPTOR_MASK) != 0)
		return fail_entry(
			sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, "PCIe DMA",
			"the entry carries DMA descriptors (mode %u): give virtual addresses "
			"and mode "
			"0",
			sqe.convert & PCIE_DESCRIPTOR_MASK);
	return start_copy(bs, sq, "PCIe DMA copy", sqe.dst, sqe.src, sqe.length, error);
}

/* ---- events and notifies ---- */

/* Blocks the queue, or ends the entry where its time has passed. */
static enum outcome wait_longer(struct bsim *bs, struct queue_sq *sq, enum queue_sq_state state,
				const char *what, uint32_t timeout_s, struct queue_error *error)
{
	struct queue_set *set = bs->queues;

	if (sq->deadline_ps == SIM_NEVER && timeout_s != 0 && timeout_s != UINT32_MAX) {
		sq->deadline_ps = timeout_s < (SIM_NEVER - set->now_ps) / PS_PER_S
					  ? set->now_ps + timeout_s * PS_PER_S
					  : SIM_NEVER - 1;
		sq->deadline_wall_ns = queue_wall_ns() + timeout_s * UINT64_C(1000000000);
	}
	if (sq->deadline_ps != SIM_NEVER && set->now_ps >= sq->deadline_ps)
		return fail_entry(sq, error, STARS_ERROR_TIMEOUT, TS_ERROR_TASK_TIMEOUT, what,
				  "%u of device %u was not recorded within %u s", sq->wait_id,
				  sq->wait_device, timeout_s);
	block(set, sq, state);
	return BLOCKED;
}

/* Which event or notify the entry means. False: there is none of that id. */
static bool find_target(struct bsim *bs, struct queue_sq *sq, const struct stars_event_sqe *sqe,
			int type, const char *what, struct queue_error *error)
{
	unsigned device = sqe->res2 == 0 ? sq->device : sqe->res2 - 1u;
	uint32_t id = type == DRV_EVENT_ID ? sqe->event_id : sqe->event_id % QUEUE_NOTIFIES;

	if (device >= bs->devices || !queue_id_is_live(&bs->queues->device[device].ids[type], id)) {
		fail_entry(sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, what,
			   "id %u of device %u is not in use: it was never taken, or given back "
			   "before "
			   "this task's turn came",
			   id, device);
		return false;
	}
	sq->wait_device = device;
	sq->wait_id = id;
	return true;
}

static enum outcome record(struct bsim *bs, struct queue_sq *sq, const void *entry, int type,
			   struct queue_error *error)
{
	struct stars_event_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if (find_target(bs, sq, &sqe, type, type == DRV_EVENT_ID ? "record event" : "record notify",
			error))
		queue_record_locked(bs, sq->wait_device, type, sq->wait_id);
	return DONE;
}

static enum outcome wait_event(struct bsim *bs, struct queue_sq *sq, const void *entry,
			       struct queue_error *error)
{
	struct stars_event_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if (!find_target(bs, sq, &sqe, DRV_EVENT_ID, "wait for event", error))
		return DONE;
	if (queue_is_recorded(bs, sq->wait_device, DRV_EVENT_ID, sq->wait_id))
		return DONE;
	return wait_longer(bs, sq, SQ_WAIT_EVENT, "wait for event", sqe.timeout, error);
}

static enum outcome wait_notify(struct bsim *bs, struct queue_sq *sq, const void *entry,
				struct queue_error *error)
{
	struct stars_event_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if (!find_target(bs, sq, &sqe, DRV_NOTIFY_ID, "wait for notify", error))
		return DONE;
	if (queue_is_recorded(bs, sq->wait_device, DRV_NOTIFY_ID, sq->wait_id)) {
		queue_reset_locked(bs, sq->wait_device, DRV_NOTIFY_ID, sq->wait_id);
		return DONE;
	}
	return wait_longer(bs, sq, SQ_WAIT_NOTIFY, "wait for notify", sqe.exe_result, error);
}

/* ---- values ---- */

/* Memory that the task scheduler itself reaches: a device's, and the host's where the driver
 * allocated it. */
static bool scheduler_reaches(struct bsim *bs, struct queue_sq *sq, const char *what, uint64_t va,
			      unsigned bytes, uint64_t sent, struct copy_end *out,
			      struct queue_error *error)
{
	char name[96], *kept = message_keep();
	drvError_t result;

	name_entry(sq, what, name, sizeof(name));
	result = copy_end_locked(bs, name, "address", va, bytes, sent, out);
	if (result == DRV_ERROR_NONE && out->kind == NPU_PLACE_PAGEABLE)
		result = bsim_fail(DRV_ERROR_IOCRL_FAIL,
				   "%s: address: 0x%llx is the program's own memory, which the "
				   "task scheduler does not reach: "
				   "use memory of aclrtMalloc or aclrtMallocHost",
				   name, (unsigned long long)va);
	if (result == DRV_ERROR_NONE)
		result = copy_access_locked(bs, name, sq->device, out);
	if (result == DRV_ERROR_NONE) {
		g_free(kept);
		return true;
	}
	*error = error_of_message(TS_ERROR_TASK_EXCEPTION, kept);
	return false;
}

/* The same of registered memory, which is the program's. False: it is gone. */
static bool value_moves(struct bsim *bs, struct queue_sq *sq, const char *what,
			struct copy_end *end, void *value, unsigned bytes, bool write,
			struct queue_error *error)
{
	char name[96], *kept;

	if (host_move_value(bs, end, value, bytes, write))
		return true;
	kept = message_keep();
	name_entry(sq, what, name, sizeof(name));
	host_gone_message_locked(bs, name, end->ref.va, write);
	*error = error_of_message(TS_ERROR_HOST_MEMORY, kept);
	return false;
}

static bool is_aligned(struct queue_sq *sq, const char *what, uint64_t va, unsigned bytes,
		       struct queue_error *error)
{
	if (va % bytes == 0)
		return true;
	fail_entry(sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, what,
		   "0x%llx is not a multiple of the value's %u bytes", (unsigned long long)va,
		   bytes);
	return false;
}

/* A host thread may be polling the value: it must see all of it or nothing. */
static void store(unsigned char *at, const uint32_t *value, unsigned bytes)
{
	uint64_t whole;

	memcpy(&whole, value, sizeof(whole));
	switch (bytes) {
	case 1:
		__atomic_store_n(at, (uint8_t)whole, __ATOMIC_RELEASE);
		break;
	case 2:
		__atomic_store_n((uint16_t *)at, (uint16_t)whole, __ATOMIC_RELEASE);
		break;
	case 4:
		__atomic_store_n((uint32_t *)at, (uint32_t)whole, __ATOMIC_RELEASE);
		break;
	case 8:
		__atomic_store_n((uint64_t *)at, whole, __ATOMIC_RELEASE);
		break;
	default:
		memcpy(at, value, bytes);
		break;
	}
}

#define WRITE_VIRTUAL      (1u << 31)
#define WRITE_EVENT_RESET  1u
#define WRITE_SIZE_LG2_MAX 5u

static enum outcome reset_event(struct bsim *bs, struct queue_sq *sq, uint32_t id,
				struct queue_error *error)
{
	struct stars_event_sqe sqe = { .event_id = (uint16_t)id };

	if (find_target(bs, sq, &sqe, DRV_EVENT_ID, "reset event", error))
		queue_reset_locked(bs, sq->wait_device, DRV_EVENT_ID, sq->wait_id);
	return DONE;
}

static enum outcome write_value(struct bsim *bs, struct queue_sq *sq, const void *entry,
				struct queue_error *error)
{
	static const char what[] = "write value";
	struct stars_write_value_sqe sqe;
	struct copy_end end;
	unsigned char *at;
	unsigned bytes;
	uint64_t va, run;

	memcpy(&sqe, entry, sizeof(sqe));
	if (sqe.sub_type == WRITE_EVENT_RESET)
		return reset_event(bs, sq, sqe.res7, error);
	if (sqe.sub_type != 0 || !(sqe.write_addr_high & WRITE_VIRTUAL) ||
	    QUEUE_WRITE_SIZE(sqe.write_addr_high) > WRITE_SIZE_LG2_MAX || (sqe.res5 & 1) != 0)
		return fail_entry(
			sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, what,
			"sub type %u, %s address, 2^%u bytes, pointer mode %u: sub type 0, a "
			"virtual "
			"address, 1 to 32 bytes and "
			"mode 0 are modelled",
			sqe.sub_type, sqe.write_addr_high & WRITE_VIRTUAL ? "virtual" : "physical",
			QUEUE_WRITE_SIZE(sqe.write_addr_high), sqe.res5 & 1u);
	va = queue_word(sqe.write_addr_low, sqe.write_addr_high & QUEUE_WRITE_HIGH_MASK);
	bytes = 1u << QUEUE_WRITE_SIZE(sqe.write_addr_high);
	if (!is_aligned(sq, what, va, bytes, error) ||
	    !scheduler_reaches(bs, sq, what, va, bytes, sq->sent[sq->head], &end, error))
		return DONE;
	if (end.kind == NPU_PLACE_REGISTERED) {
		if (value_moves(bs, sq, what, &end, sqe.value, bytes, true, error))
			queue_poll_locked(bs);
		return DONE;
	}
	at = copy_at_locked(bs, &end.ref, true, &run);
	if (at == NULL)
		return fail_entry(sq, error, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION, what,
				  "0x%llx is mapped read-only or not at all",
				  (unsigned long long)va);
	store(at, sqe.value, bytes);
	queue_poll_locked(bs);
	return DONE;
}

enum { COMPARE_GEQ, COMPARE_EQ, COMPARE_AND, COMPARE_NOR }; /* ACL_STREAM_WAIT_VALUE_* */

static bool compares(uint32_t how, uint64_t found, uint64_t value)
{
	switch (how) {
	case COMPARE_GEQ:
		return found >= value;
	case COMPARE_EQ:
		return found == value;
	case COMPARE_AND:
		return (found & value) != 0;
	default:
		return ~(found | value) != 0;
	}
}

/* Looks at the value. True: it is as wished, or cannot be read, and then error says why. */
static bool value_settled(struct bsim *bs, struct queue_sq *sq,
			  const struct stars_value_wait_sqe *sqe, struct queue_error *error)
{
	static const char what[] = "wait for value";
	struct copy_end end;
	unsigned char *at;
	uint64_t run, found;

	if (!scheduler_reaches(bs, sq, what, sqe->addr, sizeof(uint64_t), ALLOCATION_NOW, &end,
			       error))
		return true;
	if (end.kind == NPU_PLACE_REGISTERED)
		return !value_moves(bs, sq, what, &end, &found, sizeof(found), false, error) ||
		       compares(sqe->compare, found, sqe->value);
	at = copy_at_locked(bs, &end.ref, false, &run);
	if (at == NULL) {
		fail_entry(sq, error, STARS_ERROR_EXCEPTION, TS_ERROR_TASK_EXCEPTION, what,
			   "0x%llx does not translate", (unsigned long long)sqe->addr);
		return true;
	}
	return compares(sqe->compare, __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE),
			sqe->value);
}

static enum outcome wait_value(struct bsim *bs, struct queue_sq *sq, const void *entry,
			       struct queue_error *error)
{
	static const char what[] = "wait for value";
	struct stars_value_wait_sqe sqe;

	memcpy(&sqe, entry, sizeof(sqe));
	if (sqe.magic != STARS_VALUE_WAIT_MAGIC || sqe.compare > COMPARE_NOR)
		return fail_entry(
			sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, what,
			"conditional entries are modelled as struct stars_value_wait_sqe with "
			"compare "
			"0 to 3 only");
	if (!is_aligned(sq, what, sqe.addr, sizeof(uint64_t), error) ||
	    value_settled(bs, sq, &sqe, error))
		return DONE;
	block(bs->queues, sq, SQ_WAIT_VALUE);
	return BLOCKED;
}

/* ---- the loop ---- */

static enum outcome execute(struct bsim *bs, struct queue_sq *sq, const void *entry,
			    struct queue_error *error)
{
	struct stars_sqe_header header;

	memcpy(&header, entry, sizeof(header));
	switch (header.type) {
	case STARS_SQE_PLACE_HOLDER:
		return DONE;
	case STARS_SQE_EVENT_RECORD:
		return record(bs, sq, entry, DRV_EVENT_ID, error);
	case STARS_SQE_EVENT_WAIT:
		return wait_event(bs, sq, entry, error);
	case STARS_SQE_NOTIFY_RECORD:
		return record(bs, sq, entry, DRV_NOTIFY_ID, error);
	case STARS_SQE_NOTIFY_WAIT:
		return wait_notify(bs, sq, entry, error);
	case STARS_SQE_WRITE_VALUE:
		return write_value(bs, sq, entry, error);
	case STARS_SQE_SDMA:
		return sdma(bs, sq, entry, error);
	case STARS_SQE_PCIE_DMA:
		return pcie_dma(bs, sq, entry, error);
	case STARS_SQE_COND:
		return wait_value(bs, sq, entry, error);
	default:
		return fail_entry(
			sq, error, STARS_ERROR_SQE, TS_ERROR_TASK_SQE_ERROR, "unknown",
			"entries of type %u are not modelled: npusim runs memory, copies, "
			"events and "
			"values, no kernels",
			header.type);
	}
}

static void advance(struct bsim *bs, struct queue_sq *sq)
{
	if (sq->holding)
		post_held(bs, sq);
	while (sq->state == SQ_READY && sq->head != sq->tail) {
		struct queue_error error = { 0 };

		if (execute(bs, sq, sq->ring[sq->head], &error) == DONE)
			complete(bs, sq, &error);
	}
}

void queue_run_locked(struct bsim *bs, uint64_t now_ps)
{
	struct queue_set *set = bs->queues;
	struct queue_sq *sq;

	if (set->running)
		return;
	set->running = true;
	set->now_ps = now_ps;
	while ((sq = TAILQ_FIRST(&set->ready)) != NULL) {
		TAILQ_REMOVE(&set->ready, sq, ready_link);
		sq->listed = false;
		advance(bs, sq);
	}
	set->running = false;
}

void queue_poll_locked(struct bsim *bs)
{
	struct queue_set *set = bs->queues;
	struct queue_sq *sq, *next;
	uint64_t now = sim_host_ps(bs->sim);

	if (set->value_waits == 0 && set->deadlines == 0)
		return;
	for (sq = TAILQ_FIRST(&set->blocked); sq != NULL; sq = next) {
		struct stars_value_wait_sqe sqe;
		struct queue_error error = { 0 };
		bool go = sq->deadline_ps != SIM_NEVER && now >= sq->deadline_ps;

		next = TAILQ_NEXT(sq, blocked_link);
		memcpy(&sqe, sq->ring[sq->head], sizeof(sqe));
		if (sq->state == SQ_WAIT_VALUE)
			go = value_settled(bs, sq, &sqe, &error);
		g_free(error.text); /* it is said again when the entry is tried */
		if (go)
			queue_kick_locked(bs, sq);
	}
}

/* ---- ends ---- */

void queue_sq_free(struct queue_sq *sq)
{
	g_free(sq->held_text);
	g_free(sq->ring);
	g_free(sq->sent);
	g_free(sq);
}

void queue_sq_drop_locked(struct bsim *bs, struct queue_sq *sq)
{
	struct queue_set *set = bs->queues;

	if (is_blocked(sq))
		unblock(set, sq);
	if (sq->listed)
		TAILQ_REMOVE(&set->ready, sq, ready_link);
	queue_uses_end_locked(bs, sq, sq->holding || sq->state == SQ_BUSY, queue_undone(sq));
	if (sq->state == SQ_BUSY) {
		sq->doomed = true;
		LIST_INSERT_HEAD(&set->doomed, sq, doomed_link);
	} else {
		queue_sq_free(sq);
	}
}
