/* SPDX-License-Identifier: Apache-2.0
 *
 * What copies and fills are asked to do with bytes: whether they stay within what the program asked
 * for, whether their ends overlap and lie where their kind says, and whether somebody wrote what
 * they read. Owns the blocks that programs tell of.
 */
#include "validate/validate.h"

#include "base/base.h"
#include "validate/written.h"

/* aclrtMemcpyKind, which the driver below does not hear of. */
enum { KIND_H2H, KIND_H2D, KIND_D2H, KIND_D2D, KIND_COUNT };

static __thread struct {
	uint32_t kind;
	uint64_t dst;
} said;

void validate_bytes_kind(uint32_t kind, uint64_t dst)
{
	said.kind = kind;
	said.dst = dst;
}

static const char *mover(const struct bytes_move *move)
{
	return npu_stack_call(move->stack) ?: (move->src != 0 ? "a copy" : "a fill");
}

/* ---- kind ---- */

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_UNKNOWN };

static enum side side_of(struct validate *v, uint64_t va)
{
	struct npu_place place;
	const struct object *object;

	if (validate_place(v, va, &place)) {
		if (npu_place_is_translated(&place))
			return place.owner == NPU_OWNER_HOST ? SIDE_HOST : SIDE_DEVICE;
		return place.kind == NPU_PLACE_PAGEABLE || place.kind == NPU_PLACE_PINNED
			       ? SIDE_HOST
			       : SIDE_UNKNOWN;
	}
	object = objects_around(v->objects, va);
	if (object == NULL || object->kind == OBJECT_MAPPING || object->kind == OBJECT_BLOCK)
		return SIDE_UNKNOWN;
	return object->kind == OBJECT_ALLOCATION || object->kind == OBJECT_OPENED ? SIDE_DEVICE
										  : SIDE_HOST;
}

static void check_kind(struct validate *v, const struct bytes_move *move)
{
	static const char *const names[KIND_COUNT] = { "ACL_MEMCPY_HOST_TO_HOST",
						       "ACL_MEMCPY_HOST_TO_DEVICE",
						       "ACL_MEMCPY_DEVICE_TO_HOST",
						       "ACL_MEMCPY_DEVICE_TO_DEVICE" };
	static const char *const sides[] = { "host", "device", "some" }; /* by enum side */
	uint32_t kind = said.kind;
	enum side from, to;
	bool known;

	if (said.dst != move->dst)
		return;
	said.dst = 0;
	if (kind >= KIND_COUNT || !report_wanted(VALIDATE_KIND))
		return;
	from = side_of(v, move->src);
	to = side_of(v, move->dst);
	known = from != SIDE_UNKNOWN && to != SIDE_UNKNOWN;
	if ((from != SIDE_UNKNOWN && (from == SIDE_DEVICE) != (kind >= KIND_D2H)) ||
	    (to != SIDE_UNKNOWN && (to == SIDE_DEVICE) != (kind == KIND_H2D || kind == KIND_D2D)))
		report_make(REPORT(KIND, move->stack),
			    "%s says %s, but copies %s memory to %s memory: %s would be right",
			    mover(move), names[kind], sides[from], sides[to],
			    known ? names[(from == SIDE_DEVICE) * KIND_D2H + (to == SIDE_DEVICE)]
				  : "ACL_MEMCPY_DEFAULT");
}

/* ---- overlap ---- */

static void check_overlap(struct validate *v, const struct bytes_move *move)
{
	uint64_t low = MIN(move->dst, move->src), high = MAX(move->dst, move->src);

	if (high - low >= move->bytes)
		return;
	report_make(REPORT(OVERLAP, move->stack),
		    "%s copies %s from %s: %s are both read and written", mover(move),
		    npu_size_text(move->bytes),
		    validate_range(v, move->src, move->src + move->bytes),
		    validate_range(v, high, low + move->bytes));
}

/* ---- bounds ---- */

/* What an address lies in, or behind but on its last page, which is nobody else's. */
static const struct object *asked_for(struct validate *v, uint64_t va)
{
	const struct object *object = objects_around(v->objects, va);
	struct npu_place place;

	if (object != NULL)
		return object;
	object = objects_before(v->objects, OBJECT_ALLOCATION, va);
	if (object == NULL || va - object->key >= object->bytes + (UINT64_C(1) << 30) ||
	    !validate_place(v, va, &place) || place.kind != NPU_PLACE_DEVICE ||
	    place.base != object->key)
		return NULL;
	return object;
}

static void check_bounds(struct validate *v, const struct bytes_move *move, uint64_t begin,
			 bool write)
{
	const struct object *object = asked_for(v, begin), *old;
	uint64_t end = begin + move->bytes;

	if (object == NULL)
		return;
	old = object->kind == OBJECT_BLOCK
		      ? NULL
		      : objects_meeting(v->objects, OBJECT_OLD_BLOCK, begin, begin + 1);
	if (old != NULL)
		validate_why_ended(move->stack, VALIDATE_STALE_ADDRESS, old, begin);
	if ((object->kind != OBJECT_BLOCK && object->kind != OBJECT_ALLOCATION &&
	     object->kind != OBJECT_PINNED) ||
	    object->own || end <= object->key + object->bytes)
		return;
	report_make(REPORT(BOUNDS, move->stack, .made = object->made),
		    "%s %s %s, which ends %s behind the %s: %s were asked for", mover(move),
		    write ? "writes" : "reads", validate_range(v, begin, end),
		    npu_size_words((int64_t)(end - object->key - object->bytes)),
		    object_words[object->kind].name, npu_size_text(object->bytes));
}

/* ---- what nobody wrote ---- */

#define FRAME_BYTES (2u << 20) /* the model cleans whole ones, and their maps, when they go */

/* What is known of memory from an address on, for `bytes` at most. */
static struct npu_written written_at(struct validate *v, uint64_t va, uint64_t bytes)
{
	struct npu_written map;

	if (v->layer.below.npusimWritten(v->layer.driver.lower, va, &map) != DRV_ERROR_NONE)
		return (struct npu_written){ .bytes = bytes };
	map.bytes = MIN(map.bytes, bytes);
	return map;
}

static void tell_uninitialised(struct validate *v, const struct bytes_move *move, uint64_t begin,
			       uint64_t end)
{
	const struct object *object = objects_around(v->objects, begin);

	report_make(REPORT(UNINITIALISED, move->stack, .made = object != NULL ? object->made : 0),
		    "%s reads %s, of which nobody wrote %s since the memory was made", mover(move),
		    validate_range(v, move->src, move->src + move->bytes),
		    validate_range(v, begin, end));
}

static void check_written(struct validate *v, const struct bytes_move *move)
{
	uint64_t gap, gap_end, step;
	bool said_so = !move->known;

	for (uint64_t done = 0; done < move->bytes; done += step) {
		struct npu_written to = written_at(v, move->dst + done, move->bytes - done);
		struct npu_written from = { .bytes = to.bytes };

		if (move->src != 0)
			from = written_at(v, move->src + done, to.bytes);
		step = from.bytes;
		if (!said_so && from.bits != NULL &&
		    written_gap(from.bits, from.at, from.at + step, &gap, &gap_end)) {
			uint64_t base = move->src + done - from.at;

			tell_uninitialised(v, move, base + gap, base + gap_end);
			said_so = true;
		}
		if (to.bits == NULL)
			continue;
		if (from.bits != NULL && move->known)
			written_copy(to.bits, to.at, from.bits, from.at, step);
		else
			written_set(to.bits, to.at, to.at + step);
	}
}

void validate_bytes(struct validate *v, const struct bytes_move *move)
{
	if (move->src != 0) {
		check_kind(v, move);
		check_overlap(v, move);
		check_bounds(v, move, move->src, false);
	}
	check_bounds(v, move, move->dst, true);
	if (report_wanted(VALIDATE_UNINITIALISED))
		check_written(v, move);
}

void validate_bytes_open(struct validate *v)
{
	if (report_wanted(VALIDATE_UNINITIALISED))
		written_at(v, 0, 1);
}

void validate_bytes_give_up(struct validate *v, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at += written_at(v, at, end - at).bytes)
		v->layer.below.npusimWritten(v->layer.driver.lower, at, NULL);
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

void validate_bytes_kernels(struct validate *v)
{
	for (unsigned i = 0; i < OBJECT_KIND_COUNT && !v->kernels; i++)
		g_tree_foreach(v->objects->live[i], give_up_object, v);
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

void validate_bytes_forget(struct validate *v, uint64_t begin, uint64_t end, npu_stack stack)
{
	const struct object *object;

	while ((object = objects_meeting(v->objects, OBJECT_BLOCK, begin, end)) != NULL ||
	       (object = objects_meeting(v->objects, OBJECT_OLD_BLOCK, begin, end)) != NULL)
		objects_end(v->objects, object->kind, object->key, stack);
}

void validate_bytes_block(struct validate *v, uint64_t va, uint64_t bytes, npu_stack stack)
{
	const struct object *live = objects_find(v->objects, OBJECT_BLOCK, va);
	const struct object *old = objects_find(v->objects, OBJECT_OLD_BLOCK, va);
	struct object block = { .kind = OBJECT_BLOCK,
				.key = va,
				.bytes = bytes,
				.dev = OBJECT_NO_DEVICE,
				.made = stack };

	if (bytes > 0) {
		validate_bytes_forget(v, va, va + bytes, stack);
		objects_add(v->objects, &block);
		if (report_wanted(VALIDATE_UNINITIALISED))
			clear(v, va, bytes);
	} else if (live != NULL) {
		block = *live;
		block.kind = OBJECT_OLD_BLOCK;
		block.ended = stack;
		objects_end(v->objects, OBJECT_BLOCK, va, stack);
		objects_add(v->objects, &block);
	} else if (old != NULL) {
		validate_why_ended(stack, VALIDATE_DOUBLE_FREE, old, va);
	}
}
