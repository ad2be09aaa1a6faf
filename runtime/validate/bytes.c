/* SPDX-License-Identifier: Apache-2.0
 *
 * What copies and fills are asked to do with bytes: whether they stay within what the program asked
 * for, whether their ends overlap and lie where their kind says, and whether somebody wrote what
 * they read. Owns the blocks that programs tell of.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <stdio.h>

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
	struct report report = { .rule = VALIDATE_KIND, .now = move->stack };
	uint32_t kind = said.kind;
	enum side from, to;
	char real[48] = "ACL_MEMCPY_DEFAULT";

	if (said.dst != move->dst)
		return;
	said.dst = 0;
	if (kind >= KIND_COUNT || !report_wanted(VALIDATE_KIND))
		return;
	from = side_of(v, move->src);
	to = side_of(v, move->dst);
	if ((from == SIDE_UNKNOWN || (from == SIDE_DEVICE) == (kind >= KIND_D2H)) &&
	    (to == SIDE_UNKNOWN || (to == SIDE_DEVICE) == (kind == KIND_H2D || kind == KIND_D2D)))
		return;
	if (from != SIDE_UNKNOWN && to != SIDE_UNKNOWN)
		snprintf(real, sizeof(real), "%s",
			 names[(from == SIDE_DEVICE) * KIND_D2H + (to == SIDE_DEVICE)]);
	report_make(&report, "%s says %s, but copies %s memory to %s memory: %s would be right",
		    mover(move), names[kind], sides[from], sides[to], real);
}

/* ---- overlap ---- */

static void check_overlap(struct validate *v, const struct bytes_move *move)
{
	struct report report = { .rule = VALIDATE_OVERLAP, .now = move->stack };
	uint64_t low = MIN(move->dst, move->src), high = MAX(move->dst, move->src);

	if (high - low >= move->bytes)
		return;
	report_make(&report, "%s copies %s from %s: %s are both read and written", mover(move),
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
	struct report report = { .rule = VALIDATE_BOUNDS, .now = move->stack };
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
	report.made = object->made;
	report_make(&report, "%s %s %s, which ends %s behind the %s: %s were asked for",
		    mover(move), write ? "writes" : "reads", validate_range(v, begin, end),
		    npu_size_words((int64_t)(end - object->key - object->bytes)),
		    object_name(object->kind), npu_size_text(object->bytes));
}

/* ---- what nobody wrote ---- */

/* A piece of memory from an address on: what is known of it, and where that ends. */
struct piece {
	struct written *written; /* NULL: all of it counts as written */
	uint64_t offset, bytes;
	npu_stack made;
};

static struct piece piece_at(struct validate *v, uint64_t va, uint64_t bytes)
{
	const struct object *object =
		objects_meeting(v->objects, OBJECT_ALLOCATION, va, va + 1)
			?: objects_meeting(v->objects, OBJECT_MAPPING, va, va + 1);
	struct piece piece = { .bytes = bytes };

	if (object == NULL)
		return piece;
	piece.written = object->written;
	piece.offset = va - object->key + object->offset;
	piece.bytes = MIN(bytes, object->key + object->bytes - va);
	piece.made = object->made;
	return piece;
}

static void tell_uninitialised(struct validate *v, const struct bytes_move *move, uint64_t begin,
			       uint64_t end, npu_stack made)
{
	struct report report = { .rule = VALIDATE_UNINITIALISED, .now = move->stack, .made = made };

	report_make(&report, "%s reads %s, of which nobody wrote %s since the memory was made",
		    mover(move), validate_range(v, move->src, move->src + move->bytes),
		    validate_range(v, begin, end));
}

static void check_written(struct validate *v, const struct bytes_move *move)
{
	uint64_t gap, gap_end, step;
	bool said_so = !move->known || v->kernels || move->src == 0;

	for (uint64_t done = 0; done < move->bytes; done += step) {
		struct piece to = piece_at(v, move->dst + done, move->bytes - done);
		struct piece from = { .bytes = to.bytes };

		if (move->src != 0)
			from = piece_at(v, move->src + done, to.bytes);
		step = MIN(from.bytes, to.bytes);
		if (!said_so && from.written != NULL &&
		    written_gap(from.written, from.offset, from.offset + step, &gap, &gap_end)) {
			uint64_t base = move->src + done - from.offset;

			tell_uninitialised(v, move, base + gap, base + gap_end, from.made);
			said_so = true;
		}
		if (to.written == NULL)
			continue;
		if (from.written != NULL && move->known && !v->kernels)
			written_copy(to.written, to.offset, from.written, from.offset, step);
		else
			written_set(to.written, to.offset, to.offset + step);
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

void validate_bytes_give_up(struct validate *v, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end;) {
		struct piece piece = piece_at(v, at, end - at);

		if (piece.written != NULL)
			written_give_up(piece.written);
		at += piece.bytes;
	}
}

/* ---- blocks ---- */

/* All of a kind that meet the range. */
static void end_blocks(struct validate *v, enum object_kind kind, uint64_t begin, uint64_t end,
		       npu_stack stack)
{
	const struct object *object;

	while ((object = objects_meeting(v->objects, kind, begin, end)) != NULL)
		objects_end(v->objects, kind, object->key, stack);
}

void validate_bytes_forget(struct validate *v, uint64_t begin, uint64_t end, npu_stack stack)
{
	end_blocks(v, OBJECT_BLOCK, begin, end, stack);
	end_blocks(v, OBJECT_OLD_BLOCK, begin, end, stack);
}

static void free_block(struct validate *v, uint64_t va, npu_stack stack)
{
	const struct object *object = objects_find(v->objects, OBJECT_BLOCK, va);
	const struct object *old = objects_find(v->objects, OBJECT_OLD_BLOCK, va);
	struct object block;

	if (object != NULL) {
		block = *object;
		block.kind = OBJECT_OLD_BLOCK;
		block.ended = stack;
		objects_end(v->objects, OBJECT_BLOCK, va, stack);
		objects_add(v->objects, &block);
	} else if (old != NULL) {
		validate_why_ended(stack, VALIDATE_DOUBLE_FREE, old, va);
	}
}

void validate_bytes_block(struct validate *v, uint64_t va, uint64_t bytes, npu_stack stack)
{
	struct object block = { .kind = OBJECT_BLOCK,
				.key = va,
				.bytes = bytes,
				.dev = OBJECT_NO_DEVICE,
				.made = stack };

	if (bytes == 0) {
		free_block(v, va, stack);
		return;
	}
	validate_bytes_forget(v, va, va + bytes, stack);
	objects_add(v->objects, &block);
	for (uint64_t done = 0; done < bytes;) {
		struct piece piece = piece_at(v, va + done, bytes - done);

		if (piece.written != NULL)
			written_clear(piece.written, piece.offset, piece.offset + piece.bytes);
		done += piece.bytes;
	}
}
