/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of queues, copies and fills: each is put into the order, and its ranges are compared with
 * those that are on their way. What copies and fills are asked to do with bytes: whether they stay
 * within what the program asked for, whether their ends overlap and lie where their kind says, and
 * whether somebody wrote what they read. Owns the blocks that programs tell of.
 */
#include "validate/validate.h"

#include "base/base.h"
#include "validate/written.h"

#include <string.h>

/* Of aclrtMemcpyKind, which the driver below does not hear of: twice whether the source is of a
 * device, and whether the target is. */
#define KIND_COUNT 4u

#define TASK_IDS 0x8000u

/* What the calling thread's next copy, to `dst`, has. */
static __thread struct {
	uint32_t kind;
	uint64_t dst;
} said;

/* A copy or fill (src 0), and who makes it: a stream's entry, or a call of the host (stream NULL).
 */
struct move {
	const struct order_stream *stream;
	const struct clock *clock; /* what has happened before */
	uint64_t number;           /* of the entry */
	uint64_t dst, src, bytes;
};

static const char *mover(struct validate *v, const struct move *move)
{
	return npu_stack_call(stack_of(v)) ?: (move->src != 0 ? "a copy" : "a fill");
}

/* ---- what a copy or fill is asked to do ---- */

/* Whether the address is memory of a device; -1: that is not known. */
static int is_of_device(struct validate *v, uint64_t va)
{
	const struct object *object;
	struct npu_place place;

	if (validate_place(v, va, &place)) {
		if (npu_place_is_translated(&place))
			return place.owner != NPU_OWNER_HOST;
		return place.kind == NPU_PLACE_PAGEABLE || place.kind == NPU_PLACE_PINNED ? 0 : -1;
	}
	object = objects_around(v, va);
	if (object == NULL || object->kind == OBJECT_MAPPING || object->kind == OBJECT_BLOCK)
		return -1;
	return object->kind == OBJECT_ALLOCATION || object->kind == OBJECT_OPENED;
}

static void check_kind(struct validate *v, const struct move *move)
{
	static const char *const names[KIND_COUNT] = { "ACL_MEMCPY_HOST_TO_HOST",
						       "ACL_MEMCPY_HOST_TO_DEVICE",
						       "ACL_MEMCPY_DEVICE_TO_HOST",
						       "ACL_MEMCPY_DEVICE_TO_DEVICE" };
	static const char *const sides[] = { "some", "host", "device" }; /* by is_of_device() + 1 */
	int kind = (int)said.kind, from, to;

	if (said.dst != move->dst)
		return;
	said.dst = 0;
	if (said.kind >= KIND_COUNT || !report_wanted(VALIDATE_KIND))
		return;
	from = is_of_device(v, move->src);
	to = is_of_device(v, move->dst);
	if ((from >= 0 && from != kind / 2) || (to >= 0 && to != kind % 2))
		report_make(REPORT(KIND, stack_of(v)),
			    "%s says %s, but copies %s memory to %s memory: %s would be right",
			    mover(v, move), names[kind], sides[from + 1], sides[to + 1],
			    from >= 0 && to >= 0 ? names[2 * from + to] : "ACL_MEMCPY_DEFAULT");
}

static void check_overlap(struct validate *v, const struct move *move)
{
	uint64_t low = MIN(move->dst, move->src), high = MAX(move->dst, move->src);

	if (high - low >= move->bytes)
		return;
	report_make(REPORT(OVERLAP, stack_of(v)),
		    "%s copies %s from %s: %s are both read and written", mover(v, move),
		    npu_size_text(move->bytes),
		    validate_range(v, move->src, move->src + move->bytes),
		    validate_range(v, high, low + move->bytes));
}

/* What an address lies in, or behind but on its last page, which is nobody else's. */
static const struct object *asked_for(struct validate *v, uint64_t va)
{
	const struct object *object = objects_around(v, va);
	struct npu_place place;

	return object == NULL && validate_place(v, va, &place) && place.kind == NPU_PLACE_DEVICE
		       ? objects_find(v, OBJECT_ALLOCATION, place.base)
		       : object;
}

bool validate_bounds(struct validate *v, const char *who, uint64_t begin, uint64_t end, bool write)
{
	const struct object *object = asked_for(v, begin), *old;

	if (object == NULL)
		return false;
	old = object->kind == OBJECT_BLOCK ? NULL
					   : objects_meeting(v, OBJECT_OLD_BLOCK, begin, begin + 1);
	if (old != NULL)
		validate_why_ended(v, VALIDATE_STALE_ADDRESS, old, begin);
	if ((object->kind != OBJECT_BLOCK && object->kind != OBJECT_ALLOCATION &&
	     object->kind != OBJECT_PINNED) ||
	    object->own || end <= object->key + object->bytes)
		return false;
	report_make(REPORT(BOUNDS, stack_of(v), .made = object->made),
		    "%s %s %s, which ends %s behind the %s: %s were asked for", who,
		    write ? "writes" : "reads", validate_range(v, begin, end),
		    npu_size_words(end - object->key - object->bytes),
		    object_words[object->kind].name, npu_size_text(object->bytes));
	return true;
}

/* ---- what nobody wrote ---- */

#define FRAME_BYTES (2u << 20) /* the model cleans whole ones, and their maps, when they go */

/* What is known of memory from an address on, for `bytes` at most. */
static struct npu_written written_at(struct validate *v, uint64_t va, uint64_t bytes)
{
	struct npu_written map;

	if (BELOW(v, npusimWritten, va, &map) != DRV_ERROR_NONE)
		return (struct npu_written){ .bytes = bytes };
	map.bytes = MIN(map.bytes, bytes);
	return map;
}

static void check_written(struct validate *v, const struct move *move)
{
	uint64_t gap, gap_end, step, base;
	bool known = !order_is_tainted(v, move->clock->taint), said_so = !known;
	const struct object *object;

	for (uint64_t done = 0; done < move->bytes; done += step) {
		struct npu_written to = written_at(v, move->dst + done, move->bytes - done);
		struct npu_written from = { .bytes = to.bytes };

		if (move->src != 0)
			from = written_at(v, move->src + done, to.bytes);
		step = from.bytes;
		if (!said_so && from.bits != NULL &&
		    written_gap(from.bits, from.at, from.at + step, &gap, &gap_end)) {
			base = move->src + done - from.at;
			object = objects_around(v, base + gap);
			report_make(
				REPORT(UNINITIALISED, stack_of(v),
				       .made = object != NULL ? object->made : 0),
				"%s reads %s, of which nobody wrote %s since the memory was made",
				mover(v, move),
				validate_range(v, move->src, move->src + move->bytes),
				validate_range(v, base + gap, base + gap_end));
			said_so = true;
		}
		if (to.bits == NULL)
			continue;
		if (from.bits != NULL && known)
			written_copy(to.bits, to.at, from.bits, from.at, step);
		else
			written_set(to.bits, to.at, to.at + step);
	}
}

/* `host` is on nodes of the host; `other` is where its bytes come from or go to. */
static void check_nodes(struct validate *v, const struct move *move, const struct object *host,
			const struct object *other)
{
	uint64_t nodes = host != NULL ? host->nodes : 0;
	int64_t near;

	if (nodes == 0 || other == NULL || other->dev == OBJECT_NO_DEVICE ||
	    BELOW(v, halGetDeviceInfo, other->dev, MODULE_TYPE_SYSTEM, INFO_TYPE_NEAR_NODE,
		  &near) != DRV_ERROR_NONE ||
	    near < 0 || nodes >> near & 1)
		return;
	report_make(REPORT(PLACEMENT, stack_of(v), .made = host->made),
		    "%s copies between memory of device %u, which is near NUMA node %d of the "
		    "host, and the %s at %#llx, %s, which the program put on node %d%s",
		    mover(v, move), other->dev, (int)near, object_words[host->kind].name,
		    (unsigned long long)host->key, npu_size_text(host->bytes),
		    __builtin_ctzll(nodes), nodes & (nodes - 1) ? " and others" : "");
}

void validate_bytes_give_up(struct validate *v, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at += written_at(v, at, end - at).bytes)
		BELOW(v, npusimWritten, at, NULL);
}

static gboolean give_up_object(gpointer key, gpointer value, gpointer v)
{
	const struct object *object = value;

	(void)key;
	if (object->kind == OBJECT_MAPPING || object->kind == OBJECT_ALLOCATION ||
	    object->kind == OBJECT_OPENED)
		validate_bytes_give_up(v, object->key, object->key + object->bytes);
	return FALSE;
}

/* They may write all memory, and are not seen. */
static void give_up_all(struct validate *v)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT && !v->kernels; i++)
		g_tree_foreach(v->live[i], give_up_object, v);
	v->kernels = true;
}

static void clear(struct validate *v, uint64_t va, uint64_t bytes)
{
	struct npu_written map;

	for (uint64_t done = 0; done < bytes; done += map.bytes) {
		map = written_at(v, va + done, bytes - done);
		if (map.bits != NULL)
			written_clear(map.bits, map.at, map.at + map.bytes);
	}
}

void validate_bytes_new(struct validate *v, const struct object *object)
{
	struct npu_place place;

	if (!report_wanted(VALIDATE_UNINITIALISED))
		return;
	if (v->kernels)
		give_up_object(NULL, (gpointer)object, v);
	else if (object->kind == OBJECT_ALLOCATION && validate_place(v, object->key, &place) &&
		 place.page_bytes < FRAME_BYTES)
		clear(v, object->key, object->bytes);
}

/* ---- blocks ---- */

void validate_bytes_forget(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object;

	while ((object = objects_meeting(v, OBJECT_BLOCK, begin, end)) != NULL ||
	       (object = objects_meeting(v, OBJECT_OLD_BLOCK, begin, end)) != NULL)
		objects_end(v, object);
}

drvError_t validate_block(struct npu_driver *self, uint64_t va, uint64_t bytes)
{
	struct validate *v = validate_enter(self);
	const struct object *live = objects_find(v, OBJECT_BLOCK, va);
	const struct object *old = objects_find(v, OBJECT_OLD_BLOCK, va), *memory;
	struct object block = { .dev = OBJECT_NO_DEVICE };

	if (bytes > 0) {
		validate_bytes_forget(v, va, va + bytes);
		memory = objects_around(v, va);
		if (memory != NULL)
			block = *memory;
		block.kind = OBJECT_BLOCK;
		block.key = va;
		block.bytes = bytes;
		block.own = false;
		block.made = stack_of(v);
		objects_add(v, &block);
		if (report_wanted(VALIDATE_UNINITIALISED))
			clear(v, va, bytes);
	} else if (live != NULL) {
		block = *live;
		block.kind = OBJECT_OLD_BLOCK;
		block.ended = stack_of(v);
		objects_end(v, live);
		objects_add(v, &block);
	} else if (old != NULL) {
		validate_why_ended(v, VALIDATE_DOUBLE_FREE, old, va);
	}
	return validate_leave(v);
}

/* ---- what meets ---- */

static void tell_races(struct validate *v, const struct move *move, uint64_t begin, uint64_t end,
		       bool write)
{
	struct access_search search = { begin, end, .writes = !write, .after = move->clock,
					.surely = true };
	const struct access *other;

	while ((other = accesses_next(v, &search)) != NULL)
		if (move->stream != order_stream_at(v, other->stream))
			report_make(
				REPORT(RACE, stack_of(v), .then = "the other access was queued by",
				       .before = other->stack),
				"%s %s %s, which %s %s, and nothing orders the two",
				move->stream != NULL ? order_stream_text(v, move->stream->index)
						     : "the host",
				write ? "writes" : "reads",
				validate_range(v, MAX(begin, other->begin), MIN(end, other->end)),
				order_stream_text(v, other->stream),
				other->write ? "writes" : "reads");
}

/* Other processes hear of a write to memory that they have, unless its order may hang on them.
 * Returns its mark, which is the host's to end. */
static uint32_t tell_others(struct validate *v, const struct move *move)
{
	struct npu_write write;

	if (!v->shares_any || !report_wanted(VALIDATE_SHARED_WRITE) ||
	    order_is_tainted(v, move->clock->taint) ||
	    BELOW(v, npusimWrites, move->dst, move->bytes, &write) != DRV_ERROR_NONE)
		return 0;
	if (write.pid != 0)
		report_make(REPORT(SHARED_WRITE, stack_of(v)),
			    "%s writes %s, which process %d has been writing for %.3f ms and has "
			    "not seen written",
			    caller(v), validate_range(v, move->dst, move->dst + move->bytes),
			    write.pid, (double)write.since_ns / 1e6);
	return write.mark;
}

static void end_shared(struct validate *v, const struct access *access)
{
	struct npu_write write = { .mark = access->mark };

	if (BELOW(v, npusimWrites, 0, 0, &write) == DRV_ERROR_NONE && write.pid != 0)
		report_make(REPORT(SHARED_WRITE, access->stack),
			    "%s writes %s, which process %d began to write before this process "
			    "had seen it written",
			    call_of(access->stack), validate_range(v, access->begin, access->end),
			    write.pid);
}

static void touch(struct validate *v, const struct move *move, uint64_t begin, bool write)
{
	struct access access = { .begin = begin,
				 .end = begin + move->bytes,
				 .number = move->number,
				 .taint = move->clock->taint,
				 .stack = stack_of(v),
				 .write = write };

	if (write)
		accesses_unwatch(v, begin, access.end, false);
	if (report_wanted(VALIDATE_RACE))
		tell_races(v, move, begin, access.end, write);
	access.mark = write ? tell_others(v, move) : 0;
	if (move->stream == NULL) {
		if (access.mark != 0)
			end_shared(v, &access);
		return;
	}
	access.stream = move->stream->index & 0x7fffff;
	validate_host_access(v, &access);
	accesses_add(v, &access);
}

/* A copy or a fill that the driver has taken. */
static void take(struct validate *v, const struct move *move)
{
	if (move->bytes == 0)
		return;
	if (move->src != 0) {
		check_kind(v, move);
		check_overlap(v, move);
		validate_bounds(v, mover(v, move), move->src, move->src + move->bytes, false);
	}
	validate_bounds(v, mover(v, move), move->dst, move->dst + move->bytes, true);
	if (v->placed) {
		const struct object *to = objects_around(v, move->dst);
		const struct object *from = objects_around(v, move->src);

		check_nodes(v, move, to, from);
		check_nodes(v, move, from, to);
	}
	if (report_wanted(VALIDATE_UNINITIALISED))
		check_written(v, move);
	if (move->src != 0)
		touch(v, move, move->src, false);
	touch(v, move, move->dst, true);
}

/* The program may know what is done without a call. */
static void unmark(struct validate *v)
{
	struct npu_write all = { 0 };

	accesses_unwatch(v, 0, UINT64_MAX, true);
	validate_closed_renew(v);
	if (v->shares_any)
		BELOW(v, npusimWrites, 0, 0, &all);
}

/* Forgets accesses that the host knows to be done. */
static void settle(struct validate *v)
{
	const struct clock *host = &v->host;
	GArray *sorted = v->sorted;
	bool reopen = false;
	guint left = 0;

	if (v->swept == v->host_version)
		return;
	v->swept = v->host_version;
	for (guint i = 0; i < sorted->len; i++) {
		const struct access *access = &g_array_index(sorted, struct access, i);

		if (access->stream >= host->count || host->at[access->stream] < access->number) {
			g_array_index(sorted, struct access, left++) = *access;
			continue;
		}
		reopen |= access->closed;
		if (access->mark != 0)
			end_shared(v, access);
		if (access->hashed)
			validate_host_done(v, access);
	}
	g_array_set_size(sorted, left);
	if (reopen)
		validate_closed_renew(v);
	if (left == 0) {
		v->longest = 0;
		order_quiet(v);
	}
}

bool validate_pending(struct validate *v, const struct object *object, uint64_t begin)
{
	bool unmaps = object->kind == OBJECT_MAPPING || object->kind == OBJECT_REGISTERED;
	uint64_t end = begin + object->bytes;
	struct access_search search = { begin, end, .after = &v->host };
	struct report report = { .rule = unmaps ? VALIDATE_PENDING_UNMAP : VALIDATE_PENDING_FREE,
				 .now = stack_of(v),
				 .then = "the work was queued by",
				 .made = object->made };
	const struct access *access;
	bool found = false;

	settle(v);
	while ((access = accesses_next(v, &search)) != NULL) {
		found = true;
		report.before = access->stack;
		report_make(&report,
			    "%s gives %s back, which work of %s still %s: nobody has waited for it",
			    npu_stack_call(stack_of(v)) ?: object_words[object->kind].ender,
			    validate_range(v, MAX(begin, access->begin), MIN(end, access->end)),
			    order_stream_text(v, access->stream),
			    access->write ? "writes" : "reads");
	}
	return found;
}

/* ---- entries ---- */

static void write_value(struct validate *v, struct order_stream *stream,
			const struct stars_write_value_sqe *sqe)
{
	if (sqe->sub_type == STARS_WRITE_EVENT_RESET)
		order_event(v, order_event_name(stream->dev, sqe->res7, false))->recorded = false;
	else if (sqe->sub_type == STARS_WRITE_NOTIFY &&
		 !STARS_IS_PEERS(sqe->write_addr_low, sqe->write_addr_high)) /* nobody waits here */
		order_record(
			v, &stream->clock,
			order_event_name(sqe->res3, STARS_NOTIFY_OF(sqe->write_addr_low), true));
	else
		order_resolve(v, &stream->clock);
	unmark(v);
}

/* Entries that write nothing, or what rows_made() has given up: calls of the host's functions, and
 * copies by descriptors. */
static bool writes_nothing_unknown(const union stars_sqe *entry)
{
	return entry->header.type == STARS_SQE_AICPU
		       ? STARS_TOPIC_OF(entry->callback.topic) == STARS_TOPIC_CALLBACK
		       : entry->header.type == STARS_SQE_PCIE_DMA &&
				 (entry->dma.convert &
				  (STARS_DMA_DESCRIPTORS | STARS_DMA_UPDATES)) ==
					 STARS_DMA_DESCRIPTORS;
}

/* Where a copy by descriptors writes is known now, and not when it is sent. */
static void rows_made(struct validate *v, const struct drvMem2D *rows)
{
	for (uint64_t i = 0; i < rows->height; i++)
		validate_bytes_give_up(v, (uintptr_t)rows->dst + i * rows->dpitch,
				       (uintptr_t)rows->dst + i * rows->dpitch + rows->width);
}

static void enter(struct validate *v, struct order_stream *stream, const union stars_sqe *entry)
{
	unsigned type = entry->header.type;
	bool notify = type == STARS_SQE_NOTIFY_RECORD || type == STARS_SQE_NOTIFY_WAIT;
	uint64_t event = order_event_name(stream->dev, entry->event.event_id, notify);
	struct move move = { .stream = stream, .clock = &stream->clock };

	move.number = order_entry(v, stream, entry->header.task_id);
	switch (type) {
	case STARS_SQE_EVENT_RECORD:
	case STARS_SQE_NOTIFY_RECORD:
		order_record(v, &stream->clock, event);
		break;
	case STARS_SQE_EVENT_WAIT:
		order_wait(v, stream, event);
		break;
	case STARS_SQE_NOTIFY_WAIT: /* it takes the record with it */
		order_wait(v, stream, event);
		order_event(v, event)->recorded = false;
		break;
	case STARS_SQE_WRITE_VALUE:
		write_value(v, stream, &entry->write);
		break;
	case STARS_SQE_COND:
		order_value_wait(v, stream);
		break;
	case STARS_SQE_PLACE_HOLDER:
		break;
	default:
		if (!driver_entry_copy(entry, &move.dst, &move.src, &move.bytes)) {
			if (!writes_nothing_unknown(entry))
				give_up_all(v);
			break;
		}
		take(v, &move);
		/* Somebody may wait for a value that the copy brings. */
		if (move.bytes <= sizeof(uint64_t)) {
			order_resolve(v, &stream->clock);
			unmark(v);
		}
	}
}

/* ---- copies and fills (src 0) that the host waits for ---- */

static void copy(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes)
{
	take(v, &(struct move){ .clock = &v->host, .dst = dst, .src = src, .bytes = bytes });
}

void validate_each_copy(struct validate *v, validate_copy_fn fn)
{
	const union layer_arguments *with = &v->call->with;
	const struct drvMem2D *rows;
	bool bad;

	switch (v->call->op) {
	case DRIVER_OP_drvMemcpy:
		fn(v, with->drvMemcpy.dst, with->drvMemcpy.src, with->drvMemcpy.count);
		break;
	case DRIVER_OP_halMemcpy2D:
		rows = with->halMemcpy2D.copy != NULL &&
				       with->halMemcpy2D.copy->type == DEVMM_MEMCPY2D_SYNC
			       ? &with->halMemcpy2D.copy->copy2d
			       : NULL;
		for (unsigned long long i = 0; rows != NULL && i < rows->height; i++)
			fn(v, (uintptr_t)rows->dst + i * rows->dpitch,
			   (uintptr_t)rows->src + i * rows->spitch, rows->width);
		break;
	case DRIVER_OP_halMemcpyBatch:
		bad = with->halMemcpyBatch.dst == NULL || with->halMemcpyBatch.src == NULL ||
		      with->halMemcpyBatch.size == NULL;
		for (size_t i = 0; !bad && i < with->halMemcpyBatch.count; i++)
			fn(v, with->halMemcpyBatch.dst[i], with->halMemcpyBatch.src[i],
			   with->halMemcpyBatch.size[i]);
		break;
	case DRIVER_OP_drvMemsetD8:
		fn(v, with->drvMemsetD8.dst, 0, with->drvMemsetD8.num);
		break;
	case DRIVER_OP_npusimFill:
		fn(v, with->npusimFill.dst, 0,
		   (uint64_t)with->npusimFill.count * with->npusimFill.pattern_bytes);
		break;
	default:
		break;
	}
}

/* ---- what is known to be done ---- */

static void received(struct validate *v, uint32_t dev, const struct halReportRecvInfo *info)
{
	const struct stars_logic_cqe *cqe = (const void *)info->cqe_addr;

	for (uint32_t i = 0; info->type == DRV_LOGIC_TYPE && i < info->report_cqe_num; i++) {
		struct order_stream *stream = order_stream(v, dev, cqe[i].sq_id);
		uint64_t behind;

		behind = (unsigned)(stream->last_task - cqe[i].task_id) & (TASK_IDS - 1);
		if (cqe[i].error_type & STARS_ERROR_EXCEPTION)
			validate_why_stream(v, stream, stream->sent - behind);
		if (!stream->told && behind < stream->sent - stream->base)
			order_seen(v, stream, stream->sent - behind, false);
	}
}

/* A program that sends entries itself reads its queue's head to learn that those before it are
 * done. */
static void asked(struct validate *v, uint32_t dev, const struct halSqCqQueryInfo *info)
{
	struct order_stream *stream;
	uint64_t sent;

	if (info->type != DRV_NORMAL_TYPE || info->prop != DRV_SQCQ_PROP_SQ_HEAD)
		return;
	stream = order_stream(v, dev, info->sqId);
	sent = stream->sent - stream->base;
	if (!stream->told && info->value[0] < stream->depth && info->value[0] <= sent)
		order_seen(v, stream, sent - (sent - info->value[0]) % stream->depth, true);
}

/* config NULL: it is given back. */
static void configure(struct validate *v, uint32_t dev, const struct halResourceIdInputInfo *id,
		      const struct halResourceConfigInfo *config)
{
	uint64_t name = order_event_name(dev, id->resourceId, id->type == DRV_NOTIFY_ID);

	if (id->type != DRV_EVENT_ID && id->type != DRV_NOTIFY_ID)
		return;
	if (config == NULL) {
		if (order_event(v, name)->number <= v->began)
			g_hash_table_remove(v->events, EVENT_KEY(name));
	} else if (config->prop == DRV_ID_RECORD && order_event(v, name)->relay_of == 0) {
		order_record(v, &v->host, name);
	} else if (config->prop == DRV_ID_RESET) {
		order_event(v, name)->recorded = false;
	}
}

drvError_t validate_told(struct npu_driver *self, uint32_t dev, enum npu_order what, uint32_t id,
			 uint64_t value)
{
	struct validate *v = validate_enter(self);
	struct object *object;

	switch (what) {
	case NPU_ORDER_STREAM:
		order_stream(v, dev, id)->told = true;
		order_seen(v, order_stream(v, dev, id), value, true);
		break;
	case NPU_ORDER_EVENT:
		order_seen_event(v, order_event_name(dev, id, false));
		break;
	case NPU_ORDER_RELAY:
		order_event(v, order_event_name(dev, id, false))->relay_of = value + 1;
		order_event(v, order_event_name(dev, id, false))->number = ++v->made;
		break;
	case NPU_ORDER_OWN:
		object = objects_find(v, OBJECT_PINNED, value);
		if (object != NULL)
			objects_own(v, object);
		break;
	case NPU_ORDER_ASKED:
		object = objects_find(v, OBJECT_ALLOCATION, value)
				 ?: objects_find(v, OBJECT_PINNED, value);
		if (object != NULL && id < object->bytes) {
			object->bytes -= id;
			growth_of(v, object)->bytes -= id;
		}
		break;
	case NPU_ORDER_KIND:
		said.kind = id;
		said.dst = value;
		break;
	case NPU_ORDER_OTHER_ID:
		report_make(REPORT(PLACEMENT, stack_of(v)),
			    "%s is called with device %u, which is the driver's number: by "
			    "ASCEND_RT_VISIBLE_DEVICES=%s this program calls that device %u",
			    caller(v), id, g_getenv("ASCEND_RT_VISIBLE_DEVICES") ?: "",
			    (unsigned)value);
		break;
	}
	settle(v); /* at once: from now on the program may do what the wait allows */
	return validate_leave(v);
}

void validate_queue_call(struct validate *v)
{
	const union layer_arguments *with = &v->call->with;
	const struct halTaskSendInfo *sent;
	struct order_stream *stream;
	union stars_sqe entry;

	settle(v);
	switch (v->call->op) {
	case DRIVER_OP_halSqTaskSend:
		sent = with->halSqTaskSend.info;
		stream = order_stream(v, with->halSqTaskSend.dev, sent->sqId);
		for (uint32_t i = 0; i < sent->sqe_num; i++) {
			entry = driver_entry(sent, i);
			enter(v, stream, &entry);
		}
		break;
	case DRIVER_OP_halSqCqAllocate:
		if (with->halSqCqAllocate.in->type != DRV_NORMAL_TYPE)
			break;
		stream =
			order_stream(v, with->halSqCqAllocate.dev, with->halSqCqAllocate.out->sqId);
		order_stream_end(v, stream); /* one that a device's close has ended */
		stream = order_stream(v, stream->dev, stream->id);
		stream->depth = with->halSqCqAllocate.in->sqeDepth;
		break;
	case DRIVER_OP_halSqCqQuery:
		asked(v, with->halSqCqQuery.dev, with->halSqCqQuery.info);
		break;
	case DRIVER_OP_halSqCqFree:
		if (with->halSqCqFree.info->type != DRV_NORMAL_TYPE)
			break;
		stream = order_stream(v, with->halSqCqFree.dev, with->halSqCqFree.info->sqId);
		if (stream->number <= v->began)
			order_stream_end(v, stream);
		break;
	case DRIVER_OP_halCqReportRecv:
		received(v, with->halCqReportRecv.dev, with->halCqReportRecv.info);
		break;
	case DRIVER_OP_halResourceConfig:
		configure(v, with->halResourceConfig.dev, with->halResourceConfig.in,
			  with->halResourceConfig.para);
		break;
	case DRIVER_OP_halResourceIdFree:
		configure(v, with->halResourceIdFree.dev, with->halResourceIdFree.in, NULL);
		break;
	case DRIVER_OP_halDeviceClose:
		unmark(v);
		break;
	case DRIVER_OP_halMemcpy2D:
		if (with->halMemcpy2D.copy->type == DEVMM_MEMCPY2D_ASYNC_CONVERT)
			rows_made(v, &with->halMemcpy2D.copy->copy2dAsync.copy2dInfo);
		__attribute__((fallthrough));
	default:
		validate_each_copy(v, copy);
		break;
	}
	settle(v);
}
