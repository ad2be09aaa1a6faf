/* SPDX-License-Identifier: Apache-2.0
 *
 * Submission queues: creating and ending them, sending entries, querying their state; opening and
 * closing all queues; what memory they use; and waiting. The execution of entries is in sqe.c.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/memory.h"
#include "queue/queue.h"

#define IDLE_NS UINT64_C(1000000)

/* ---- letting go of the lock ---- */

static void stop_waiting_locked(struct queue_set *set)
{
	set->waiters--;
	if (set->closing)
		pthread_cond_broadcast(&set->work);
}

void queue_let_go_locked(void *bsim)
{
	struct bsim *bs = bsim;

	if (bs->queues == NULL) /* no device is open: nobody has anything to call for */
		return;
	bs->queues->waiters++;
	bs->queues->away++;
	bsim_unlock(bs);
}

void queue_take_back(void *bsim)
{
	struct bsim *bs = bsim;

	if (bs->queues == NULL)
		return;
	bsim_lock_in_line(bs);
	bs->queues->away--;
	bs->calls++; /* no idle time until here */
	queue_changed_locked(bs);
	stop_waiting_locked(bs->queues);
}

static void wait_for_other_locked(void *bsim)
{
	struct bsim *bs = bsim;

	bs->queues->waiters++;
	bsim_wait_locked(bs, &bs->queues->changed, NULL);
	stop_waiting_locked(bs->queues);
}

/* At the end of every call. Who has let go of the lock catches up by itself. */
static void catch_up_at_end_locked(struct bsim *bs)
{
	gone_locked(bs);
	if (bs->queues->away == 0)
		queue_catch_up_locked(bs);
}

/* ---- which memory copies read and write: entries from the time they are sent until they are done,
 * calls until they end. Host memory that is freed meanwhile stays as long. An entry that waits for
 * a value does not count: nobody could change it any more. Nor does a copy by descriptors: these
 * count themselves, from halMemcpy2D's call to their end, or the end of a row that an engine has by
 * then ---- */

static void find_uses(const union stars_sqe *sqe, struct queue_use out[2])
{
	out[0] = out[1] = (struct queue_use){ 0, 0 };
	if (sqe->header.type == STARS_SQE_SDMA) {
		out[0].va = queue_word(sqe->sdma.dst_addr_low, sqe->sdma.dst_addr_high);
		out[1].va = queue_word(sqe->sdma.src_addr_low, sqe->sdma.src_addr_high);
		out[0].bytes = out[1].bytes = sqe->sdma.length;
	} else if (sqe->header.type == STARS_SQE_PCIE_DMA &&
		   (sqe->dma.convert & STARS_DMA_DESCRIPTORS) == 0) {
		out[0] = (struct queue_use){ sqe->dma.dst, sqe->dma.length };
		out[1] = (struct queue_use){ sqe->dma.src, sqe->dma.length };
	} else if (sqe->header.type == STARS_SQE_WRITE_VALUE) {
		out[0].va = queue_word(sqe->write.write_addr_low,
				       sqe->write.write_addr_high & QUEUE_WRITE_HIGH_MASK);
		out[0].bytes = UINT64_C(1) << QUEUE_WRITE_SIZE(sqe->write.write_addr_high);
	}
}

uint32_t queue_undone(const struct queue_sq *sq)
{
	return sq->ring == NULL ? 0 : (sq->tail + sq->depth - sq->head) % sq->depth;
}

static unsigned uses_in(const struct queue_use use[2], uint64_t va, uint64_t bytes)
{
	unsigned uses = 0;

	for (unsigned end = 0; end < 2; end++)
		uses += use[end].va < va + bytes && va < use[end].va + use[end].bytes;
	return uses;
}

/* The first `count` entries; the first is done already where its completion waits for room. */
static unsigned uses_of(const struct queue_sq *sq, uint32_t count, uint64_t va, uint64_t bytes)
{
	unsigned uses = 0;

	for (uint32_t i = sq->holding; i < count; i++) {
		struct queue_use use[2];

		find_uses(&sq->ring[(sq->head + i) % sq->depth], use);
		uses += uses_in(use, va, bytes);
	}
	return uses;
}

/* How many calls, and entries that are not done, copy from or write to [va, va + bytes). */
static unsigned uses_locked(struct bsim *bs, uint64_t va, uint64_t bytes)
{
	const struct queue_user *user;
	const struct queue_sq *sq;
	unsigned uses = 0;

	for (unsigned d = 0; d < bs->devices; d++) {
		const struct queue_device *device = &bs->queues->device[d];

		for (uint32_t i = 0; i < device->queues[DRV_NORMAL_TYPE].slots; i++) {
			sq = device->queues[DRV_NORMAL_TYPE].at[i];
			uses += sq == NULL ? 0 : uses_of(sq, queue_undone(sq), va, bytes);
		}
	}
	LIST_FOREACH(sq, &bs->queues->doomed, doomed_link)
	uses += uses_of(sq, 1, va, bytes);
	LIST_FOREACH(user, &bs->queues->users, link)
	uses += uses_in(user->use, va, bytes);
	return uses;
}

static void end_uses(struct bsim *bs, const struct queue_use use[2], uint64_t sent)
{
	for (unsigned end = 0; end < 2; end++)
		gone_release_locked(bs, use[end].va, use[end].bytes, sent);
}

void queue_uses_end_locked(struct bsim *bs, const struct queue_sq *sq, uint32_t first,
			   uint32_t count)
{
	for (uint32_t i = first; i < count && !LIST_EMPTY(&bs->allocs->held); i++) {
		uint32_t at = (sq->head + i) % sq->depth;
		struct queue_use use[2];

		find_uses(&sq->ring[at], use);
		end_uses(bs, use, sq->sent[at].call);
	}
}

void queue_use_locked(struct bsim *bs, struct queue_user *user, uint64_t dst, uint64_t src,
		      uint64_t bytes)
{
	*user = (struct queue_user){ .use = { { dst, bytes }, { src, src == 0 ? 0 : bytes } },
				     .sent = bs->call_number };
	if (bs->queues != NULL)
		LIST_INSERT_HEAD(&bs->queues->users, user, link);
	if (bytes < COPY_ROOM_BYTES)
		return;
	queue_let_go_locked(bs); /* reads files, and is known for a while then */
	node_host_room_bytes(NODE_ROOM_MS);
	queue_take_back(bs);
}

void queue_use_end_locked(struct bsim *bs, struct queue_user *user)
{
	if (bs->queues == NULL)
		return;
	LIST_REMOVE(user, link);
	if (!LIST_EMPTY(&bs->allocs->held))
		end_uses(bs, user->use, user->sent);
}

/* ---- opening and end ---- */

void queue_open(struct bsim *bs)
{
	struct queue_set *set = g_new0(struct queue_set, 1);

	clock_cond_init(&set->changed);
	clock_cond_init(&set->work);
	TAILQ_INIT(&set->ready);
	TAILQ_INIT(&set->blocked);
	set->bs = bs;
	set->idle_ns = IDLE_NS;
	set->pid = getpid();
	bs->queues = set;
	bs->catch_up = catch_up_at_end_locked;
	bs->uses = uses_locked;
	bs->sim_lock = (struct sim_lock){
		.release = queue_let_go_locked,
		.take = queue_take_back,
		.is_awaited = bsim_lock_offer,
		.wait = wait_for_other_locked,
		.arg = bs,
	};
}

static void drop_locked(struct bsim *bs, struct queue_device *device, int type, uint32_t id)
{
	void *queue = queue_table_remove(&device->queues[type], id);

	if (type == DRV_NORMAL_TYPE)
		queue_sq_drop_locked(bs, queue);
	else
		queue_cq_drop_locked(bs, queue);
}

static void device_clear_locked(struct bsim *bs, unsigned index)
{
	struct queue_device *device = &bs->queues->device[index];
	for (int type = 0; type <= DRV_LOGIC_TYPE; type++) {
		struct queue_table *queues = &device->queues[type];

		for (uint32_t i = 0; i < queues->slots; i++)
			if (queues->at[i] != NULL)
				drop_locked(bs, device, type, i);
		g_free(queues->at);
	}
	queue_idents_clear_locked(bs, index);
	g_clear_pointer(&device->rows, g_hash_table_destroy);
	*device = (struct queue_device){ .closings = device->closings + 1 };
}

void queue_device_close_locked(struct bsim *bs, unsigned device)
{
	if (bs->queues == NULL)
		return;
	device_clear_locked(bs, device);
	queue_changed_locked(bs);
}

struct queue_set *queue_close(struct bsim *bs)
{
	struct queue_set *set = bs->queues;

	if (set == NULL || set->pid != getpid())
		return NULL;
	queue_idle_end(bs);
	bsim_lock(bs);
	set->closing = true;
	while (set->waiters != 0) {
		pthread_cond_broadcast(&set->changed);
		bsim_wait_locked(bs, &set->work, NULL);
	}
	for (unsigned d = 0; d < BSIM_DEVICE_MAX; d++)
		device_clear_locked(bs, d);
	bs->queues = NULL;
	bs->catch_up = NULL;
	bs->uses = NULL;
	bsim_unlock(bs);
	return set;
}

void queue_sq_free(struct queue_sq *sq)
{
	g_queue_clear(&sq->failed);
	g_clear_pointer(&sq->rows, queue_rows_release);
	g_free(sq->held_text);
	g_free(sq->ring);
	g_free(sq->sent);
	g_free(sq);
}

void queue_free(struct queue_set *set)
{
	struct queue_sq *sq;

	if (set == NULL)
		return;
	while ((sq = LIST_FIRST(&set->doomed)) != NULL) {
		LIST_REMOVE(sq, doomed_link);
		queue_sq_free(sq);
	}
	pthread_cond_destroy(&set->changed);
	pthread_cond_destroy(&set->work);
	g_free(set);
}

/* ---- what calls begin with ---- */

struct bsim_call queue_begin(struct npu_driver *self, enum sim_call cost)
{
	struct bsim_call c = bsim_begin(self, cost, NULL);

	if (c.result == DRV_ERROR_NONE)
		queue_catch_up_locked(c.bs);
	return c;
}

drvError_t queue_device_find_locked(struct bsim *bs, const char *call, uint32_t dev, uint32_t ts,
				    struct queue_device **out)
{
	drvError_t result = bsim_require_open_locked(bs, call);

	if (result != DRV_ERROR_NONE)
		return result;
	if (ts != 0)
		return bsim_invalid("%s: tsId is %u: there is one task scheduler, 0", call, ts);
	if (dev >= bs->devices)
		return bsim_fail(DRV_ERROR_INVALID_DEVICE,
				 "%s: device is %u: there are %u, from 0 on", call, dev,
				 bs->devices);
	if (!bs->device[dev].open)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 "%s: device %u is not open: call aclrtSetDevice(%u) first", call,
				 dev, dev);
	*out = &bs->queues->device[dev];
	return DRV_ERROR_NONE;
}

static const struct {
	const char *name;
	uint32_t capacity;
} types[] = {
	[DRV_NORMAL_TYPE] = { "submission", QUEUE_SQS },
	[DRV_CALLBACK_TYPE] = { "callback", QUEUE_CALLBACKS },
	[DRV_LOGIC_TYPE] = { "logic completion", QUEUE_LOGIC_CQS },
};

void *queue_find_locked(struct bsim_call *c, uint32_t dev, uint32_t ts, int type, int wanted,
			uint32_t id)
{
	struct queue_device *device = NULL;
	void *queue;

	c->result = queue_device_find_locked(c->bs, c->name, dev, ts, &device);
	if (c->result != DRV_ERROR_NONE)
		return NULL;
	queue = type == wanted ? queue_table_find(&device->queues[type], id) : NULL;
	if (queue == NULL)
		c->result = bsim_invalid("%s: type is %d and the id %u: device %u has no %s queue "
					 "(type %d) of that id",
					 c->name, type, id, dev, types[wanted].name, wanted);
	return queue;
}

/* ---- making and ending submission queues ---- */

static drvError_t sq_check(const char *call, const struct queue_device *device, uint32_t dev,
			   const struct halSqCqInputInfo *in)
{
	if ((in->flag & TSDRV_FLAG_ONLY_SQCQ_ID) != 0)
		return DRV_ERROR_NONE;
	if (in->sqeSize != STARS_SQE_BYTES)
		return bsim_invalid("%s: sqeSize is %u: entries have %u bytes", call, in->sqeSize,
				    STARS_SQE_BYTES);
	if (in->sqeDepth < 2 || in->sqeDepth > QUEUE_SQ_DEPTH)
		return bsim_invalid("%s: sqeDepth is %u: it must be from 2 to %u", call,
				    in->sqeDepth, QUEUE_SQ_DEPTH);
	if (queue_table_find(&device->ids[DRV_STREAM_ID], in->info[0]) == NULL)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: info[0] is %u: stream %u of device %u is not in use", call,
				 in->info[0], in->info[0], dev);
	return DRV_ERROR_NONE;
}

static drvError_t sq_make_locked(uint32_t dev, struct bsim *bs, struct queue_device *device,
				 const struct halSqCqInputInfo *in, uint32_t *out_id)
{
	drvError_t result = sq_check("halSqCqAllocate", device, dev, in);
	struct queue_sq *sq;

	if (result != DRV_ERROR_NONE)
		return result;
	sq = g_new0(struct queue_sq, 1);
	queue_table_add(&device->queues[DRV_NORMAL_TYPE], types[DRV_NORMAL_TYPE].capacity, sq,
			out_id);
	sq->bs = bs;
	sq->device = dev;
	sq->id = sq->cq_id = *out_id;
	sq->stream_id = in->info[0];
	sq->depth = in->sqeDepth;
	sq->only_id = (in->flag & TSDRV_FLAG_ONLY_SQCQ_ID) != 0;
	sq->deadline_ps = sq->deadline_wall_ns = SIM_NEVER;
	return DRV_ERROR_NONE;
}

static drvError_t type_check(const char *call, int type)
{
	return type >= DRV_NORMAL_TYPE && type <= DRV_LOGIC_TYPE
		       ? DRV_ERROR_NONE
		       : bsim_unsupported("%s: type is %d: submission queues (0), callback queues "
					  "(1) and logic completion queues (2) are modelled",
					  call, type);
}

BSIM_CALL(halSqCqAllocate,
	  in != NULL && in->type == DRV_NORMAL_TYPE ? SIM_CALL_STREAM : SIM_CALL_QUERY,
	  (uint32_t, dev), (struct halSqCqInputInfo *, in), (struct halSqCqOutputInfo *, out))
{
	struct bsim *bs = c->bs;
	struct queue_device *device = NULL;
	uint32_t id;
	drvError_t result = BSIM_GIVEN(c->name, in) ?: BSIM_GIVEN(c->name, out)
			    ?: type_check(c->name, in->type)
			    ?: queue_device_find_locked(bs, c->name, dev, in->tsId, &device);

	if (result != DRV_ERROR_NONE)
		return result;
	if (device->queues[in->type].live == types[in->type].capacity)
		return bsim_fail(DRV_ERROR_NO_RESOURCES,
				 "%s: all %u %s queues of device %u are in use", c->name,
				 types[in->type].capacity, types[in->type].name, dev);
	result = in->type == DRV_NORMAL_TYPE
			 ? sq_make_locked(dev, bs, device, in, &id)
			 : queue_cq_make_locked(bs, dev, device, in, types[in->type].capacity, &id);
	if (result == DRV_ERROR_NONE)
		*out = (struct halSqCqOutputInfo){ .sqId = id, .cqId = id, .flag = in->flag };
	return result;
}

QUEUE_CALL(halSqCqFree, SIM_CALL_QUERY, (uint32_t, dev), (struct halSqCqFreeInfo *, info))
{
	struct bsim *bs = c->bs;
	struct queue_device *device = NULL;
	uint32_t id;
	drvError_t result = BSIM_GIVEN(c->name, info) ?: type_check(c->name, info->type)
			    ?: queue_device_find_locked(bs, c->name, dev, info->tsId, &device);

	if (result != DRV_ERROR_NONE)
		return result;
	id = info->type == DRV_NORMAL_TYPE ? info->sqId : info->cqId;
	if (queue_table_find(&device->queues[info->type], id) == NULL)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: %s is %u: device %u has no %s queue of that id", c->name,
				 info->type == DRV_NORMAL_TYPE ? "sqId" : "cqId", id, dev,
				 types[info->type].name);
	drop_locked(bs, device, info->type, id);
	queue_changed_locked(bs);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}

/* ---- asking ---- */

/* Registers of a submission queue: nothing lies there. The runtime only hands the address on, and
 * condition code reads the tail (its offset: v9.1.0, src/runtime/core/inc/stars/
 * stars_base_cond_isa_define.hpp:16). */
#define REGISTERS_BASE  UINT64_C(0x400000000)
#define REGISTERS_BYTES 4096u
#define REGISTERS_TAIL  8u

static uint64_t registers_of(const struct queue_sq *sq)
{
	return REGISTERS_BASE + ((uint64_t)sq->device * QUEUE_SQS + sq->id) * REGISTERS_BYTES;
}

uint64_t queue_tail_register(const struct queue_sq *sq)
{
	return registers_of(sq) + REGISTERS_TAIL;
}

static drvError_t query_sq(const char *call, struct queue_sq *sq, struct halSqCqQueryInfo *info)
{
	const struct queue_cq *cq = queue_cq_of(sq);
	const GList *failed = sq->failed.head; /* done when the status has told of it */
	const uint32_t told[][3] = {
		/* an error has stopped it, and it has gone on: 0 is read once an error */
		[DRV_SQCQ_PROP_SQ_STATUS] = { failed == NULL },
		[DRV_SQCQ_PROP_SQ_HEAD] = { failed == NULL ? sq->head
							   : GPOINTER_TO_UINT(failed->data) },
		[DRV_SQCQ_PROP_SQ_TAIL] = { sq->tail },
		[DRV_SQCQ_PROP_SQ_DISABLE_TO_ENABLE] = { 1 },
		[DRV_SQCQ_PROP_SQ_CQE_STATUS] = { cq != NULL && cq->reports.length != 0 },
		[DRV_SQCQ_PROP_SQ_REG_BASE] = { (uint32_t)(registers_of(sq) >> 32),
						(uint32_t)registers_of(sq), REGISTERS_BYTES },
		[DRV_SQCQ_PROP_SQ_BASE] = { (uint32_t)(uint64_t)sq->ring,
					    (uint32_t)((uint64_t)sq->ring >> 32) },
		[DRV_SQCQ_PROP_SQ_DEPTH] = { sq->depth },
	};

	if ((unsigned)info->prop >= G_N_ELEMENTS(told))
		return bsim_invalid("%s: prop is %d: it must be from 0 to %d", call, info->prop,
				    DRV_SQCQ_PROP_SQ_DEPTH);
	memcpy(info->value, told[info->prop], sizeof(told[0]));
	if (info->prop == DRV_SQCQ_PROP_SQ_STATUS)
		g_queue_pop_head(&sq->failed);
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halSqCqQuery, SIM_CALL_QUERY, (uint32_t, dev), (struct halSqCqQueryInfo *, info))
{
	const struct queue_cq *cq;
	struct queue_sq *sq;

	if (info == NULL)
		return bsim_null(c->name, "info");
	if (info->type == DRV_LOGIC_TYPE && info->prop == DRV_SQCQ_PROP_SQ_CQE_STATUS) {
		cq = queue_find_locked(c, dev, info->tsId, info->type, info->type, info->cqId);
		if (cq != NULL)
			info->value[0] = cq->reports.length != 0;
		return c->result;
	}
	sq = queue_find_locked(c, dev, info->tsId, info->type, DRV_NORMAL_TYPE, info->sqId);
	return sq == NULL ? c->result : query_sq(c->name, sq, info);
}

QUEUE_CALL(npusimStop, SIM_CALL_QUERY, (uint32_t, dev), (uint32_t, id))
{
	struct queue_sq *sq = queue_find_locked(c, dev, 0, DRV_NORMAL_TYPE, DRV_NORMAL_TYPE, id);

	if (sq != NULL)
		sq->stopped = sq->job.contents_stay = true;
	return c->result;
}

/* ---- sending ---- */

struct send_wait {
	const struct queue_table *queues;
	struct queue_sq *sq;
	uint32_t id, need;
	bool gone;
};

static uint32_t room(const struct queue_sq *sq)
{
	return sq->depth - 1 - queue_undone(sq);
}

static bool send_ready(void *arg)
{
	struct send_wait *wait = arg;

	wait->gone = wait->gone || queue_table_find(wait->queues, wait->id) != wait->sq;
	return wait->gone || room(wait->sq) >= wait->need;
}

/* NULL: c->result says why. */
static struct queue_sq *send_check(struct bsim_call *c, uint32_t dev,
				   const struct halTaskSendInfo *info)
{
	struct queue_sq *sq =
		queue_find_locked(c, dev, info->tsId, info->type, DRV_NORMAL_TYPE, info->sqId);

	if (sq != NULL && sq->only_id)
		c->result = bsim_unsupported(
			"%s: submission queue %u of device %u is an id only (flag 0x%x)", c->name,
			info->sqId, dev, TSDRV_FLAG_ONLY_SQCQ_ID);
	else if (sq != NULL &&
		 (info->sqe_addr == NULL || info->sqe_num == 0 || info->sqe_num >= sq->depth))
		c->result =
			bsim_invalid("%s: sqe_addr is %p and sqe_num %u: send 1 to %u entries",
				     c->name, (void *)info->sqe_addr, info->sqe_num, sq->depth - 1);
	return c->result == DRV_ERROR_NONE ? sq : NULL;
}

static void put_entries(struct queue_sq *sq, const uint8_t *entries, uint32_t count)
{
	if (sq->ring == NULL) {
		sq->ring = g_new0(union stars_sqe, sq->depth);
		sq->sent = g_malloc_n(sq->depth, sizeof(sq->sent[0]));
	}
	for (uint32_t i = 0; i < count; i++) {
		sq->sent[sq->tail].call = sq->bs->call_number;
		sq->sent[sq->tail].ps = sim_host_ps(sq->bs->sim);
		memcpy(&sq->ring[sq->tail], entries + (size_t)i * STARS_SQE_BYTES, STARS_SQE_BYTES);
		sq->tail = (sq->tail + 1) % sq->depth;
	}
}

uint64_t queue_sent_behind_copy(const struct queue_sq *sq)
{
	const union stars_sqe *before = &sq->ring[(sq->head + sq->depth - 1) % sq->depth];
	bool ends = sq->job.finish_ps == sq->bs->queues->now_ps;

	return ends && before->header.type == STARS_SQE_SDMA ? sq->sent[sq->head].ps : 0;
}

QUEUE_CALL(halSqTaskSend, SIM_CALL_SUBMIT, (uint32_t, dev), (struct halTaskSendInfo *, info))
{
	struct bsim *bs = c->bs;
	struct queue_sq *sq = info == NULL ? NULL : send_check(c, dev, info);
	struct send_wait wait;
	drvError_t result = DRV_ERROR_NONE;

	if (sq == NULL)
		return info == NULL ? bsim_null(c->name, "info") : c->result;
	c->pages = info->sqe_num;
	wait = (struct send_wait){ .queues = &bs->queues->device[dev].queues[DRV_NORMAL_TYPE],
				   .sq = sq,
				   .id = info->sqId,
				   .need = info->sqe_num };
	if (!send_ready(&wait))
		result = queue_wait_locked(bs, send_ready, &wait, info->timeout, QUEUE_NO_LIMIT);
	if (result == DRV_ERROR_NONE && wait.gone)
		return bsim_invalid("%s: submission queue %u was freed by another thread", c->name,
				    info->sqId);
	if (result == DRV_ERROR_WAIT_TIMEOUT)
		return bsim_fail(
			DRV_ERROR_NO_RESOURCES,
			"%s: submission queue %u of device %u has %u of %u entries free, and %u "
			"are sent: nothing was completed within %d ms of simulated time",
			c->name, info->sqId, dev, room(sq), sq->depth - 1, info->sqe_num,
			info->timeout);
	if (result != DRV_ERROR_NONE)
		return result;
	info->pos = sq->tail;
	bsim_spend_locked(c); /* the doorbell is rung at the end */
	put_entries(sq, info->sqe_addr, info->sqe_num);
	if (sq->state == SQ_READY)
		queue_kick_locked(bs, sq);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	queue_changed_locked(bs);
	queue_idle_wake_locked(bs);
	return DRV_ERROR_NONE;
}

/* ---- time ---- */

/* A time-out of a task is one of simulated time. Where the model has nothing to do that time stands
 * still: as much wall time ends the wait, and simulated time, if it is counted, goes on to where
 * the first such time-out is. A model that works moves time by itself, however long that takes in
 * wall time. False: there is none. */
static bool pass_time_out_locked(struct bsim *bs)
{
	uint64_t now = sim_host_ps(bs->sim), wall = clock_now_ns();
	struct queue_sq *first = NULL, *sq;
	bool busy = sim_busy(bs->sim);

	TAILQ_FOREACH(sq, &bs->queues->blocked, blocked_link)
	{
		if (sq->deadline_ps == SIM_NEVER || wall < sq->deadline_wall_ns)
			continue;
		if (busy)
			sq->deadline_wall_ns =
				wall +
				(sq->deadline_ps - MIN(now, sq->deadline_ps)) / SIM_PS_PER_NS;
		else if (first == NULL || sq->deadline_ps < first->deadline_ps)
			first = sq;
	}
	if (first == NULL)
		return false;
	if (bs->timing)
		sim_spend(bs->sim, first->deadline_ps - MIN(now, first->deadline_ps));
	else
		first->deadline_ps = now;
	return true;
}

void queue_catch_up_locked(struct bsim *bs)
{
	if (bs->queues == NULL || bs->sim == NULL)
		return;
	sim_catch_up(bs->sim);
	gone_locked(bs);
	if (bs->queues->polled == 0 && bs->queues->deadlines == 0)
		return;
	do {
		queue_poll_locked(bs);
		queue_run_locked(bs, sim_host_ps(bs->sim));
	} while (bs->queues->deadlines != 0 && pass_time_out_locked(bs));
}

void queue_changed_locked(struct bsim *bs)
{
	if (bs->queues->waiters != 0)
		pthread_cond_broadcast(&bs->queues->changed);
}

struct limits {
	uint64_t ps, wall_ns; /* in simulated time, and what that is in wall time */
	uint64_t give_up_ns;  /* in wall time, whatever simulated time is left */
};

/* When something must be looked at: at the call's limits, or at a time-out of a blocked queue. */
static struct limits next_stop(const struct queue_set *set, const struct limits *of_call)
{
	struct limits next = *of_call;
	uint64_t wall, now = sim_host_ps(set->bs->sim);
	const struct queue_sq *sq;

	if (set->deadlines == 0)
		return next;
	wall = clock_now_ns();
	TAILQ_FOREACH(sq, &set->blocked, blocked_link)
	{
		if (sq->deadline_ps == SIM_NEVER)
			continue;
		next.ps = MIN(next.ps, sq->deadline_ps);
		next.wall_ns = MIN(next.wall_ns, sq->deadline_wall_ns);
		next.wall_ns =
			MIN(next.wall_ns,
			    wall + (sq->deadline_ps - MIN(now, sq->deadline_ps)) / SIM_PS_PER_NS);
	}
	return next;
}

/* The model has nothing to do: sleeps until another thread changes something, or so long in wall
 * time as simulated time is left; then that has passed too. */
static void sleep_locked(struct bsim *bs, struct limits *limits)
{
	struct queue_set *set = bs->queues;
	uint64_t now = sim_host_ps(bs->sim), until_ns;
	struct limits next;
	struct timespec until;
	int rc;

	if (limits->ps != SIM_NEVER)
		limits->wall_ns =
			MIN(limits->wall_ns, clock_now_ns() + (limits->ps - now) / SIM_PS_PER_NS);
	next = next_stop(set, limits);
	until_ns = MIN(next.wall_ns, limits->give_up_ns);
	set->waiters++;
	until = clock_at_ns(until_ns);
	rc = bsim_wait_locked(bs, &set->changed, until_ns == UINT64_MAX ? NULL : &until);
	stop_waiting_locked(set);
	now = sim_host_ps(bs->sim);
	if (rc == ETIMEDOUT && until_ns == next.wall_ns && next.ps != SIM_NEVER && next.ps > now)
		sim_spend(bs->sim, next.ps - now);
}

drvError_t queue_wait_locked(struct bsim *bs, bool (*ready)(void *arg), void *arg,
			     int32_t timeout_ms, uint32_t wall_ms)
{
	struct queue_set *set = bs->queues;
	struct limits limits = {
		.ps = timeout_ms < 0 ? SIM_NEVER
				     : sim_host_ps(bs->sim) + (uint64_t)timeout_ms * SIM_PS_PER_MS,
		.wall_ns = UINT64_MAX,
		.give_up_ns = wall_ms == QUEUE_NO_LIMIT
				      ? UINT64_MAX
				      : clock_now_ns() + wall_ms * UINT64_C(1000000),
	};

	for (;;) {
		uint64_t now, stop;

		queue_catch_up_locked(bs);
		if (ready(arg))
			return DRV_ERROR_NONE;
		if (set->closing)
			return bsim_fail(DRV_ERROR_PROCESS_EXIT,
					 "the driver was closed while this call waited");
		now = sim_host_ps(bs->sim);
		if (now >= limits.ps ||
		    (limits.wall_ns != UINT64_MAX && clock_now_ns() >= limits.wall_ns))
			return DRV_ERROR_WAIT_TIMEOUT;
		stop = next_stop(set, &limits).ps;
		if (sim_wait(bs->sim, ready, arg,
			     stop == SIM_NEVER ? SIM_NEVER : stop - MIN(stop, now)) !=
		    SIM_WAIT_IDLE)
			continue;
		queue_catch_up_locked(bs);
		if (ready(arg))
			continue;
		if (limits.give_up_ns != UINT64_MAX && clock_now_ns() >= limits.give_up_ns)
			return DRV_ERROR_WAIT_TIMEOUT;
		sleep_locked(bs, &limits);
	}
}
