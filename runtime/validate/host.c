/* SPDX-License-Identifier: Apache-2.0
 *
 * Page-locked memory of the host that queued copies read and write, against the program's own
 * loads and stores, which nobody sees: a source is hashed when its copy is queued and when the host
 * knows that it is done; a target is filled with a pattern when its copy is queued, so that a read
 * before the bytes are there finds no plausible ones.
 */
#include "validate/validate.h"

#include <string.h>

#define ENDS_BYTES (UINT64_C(1) << 20) /* of longer memory half of this at either end counts */
#define PATTERN    0xff                /* not a number, as a float */
#define FLAG_BYTES 64u                 /* what is not longer may be a flag that the program polls */

/* Memory that the layer may read and write while it is held. */
static bool is_pinned(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object = objects_meeting(v->objects, OBJECT_PINNED, begin, end);

	return object != NULL && !object->own && begin >= object->key &&
	       end - object->key <= object->bytes;
}

/* The next of the parts of a range that count; the first is asked for with out_bytes 0. */
static bool next_part(uint64_t begin, uint64_t end, uint64_t *part, uint64_t *bytes)
{
	if (*bytes == 0) {
		*part = begin;
		*bytes = end - begin <= ENDS_BYTES ? end - begin : ENDS_BYTES / 2;
		return true;
	}
	if (*part != begin || *bytes == end - begin)
		return false;
	*part = end - *bytes;
	return true;
}

static uint64_t hash_of(uint64_t begin, uint64_t end)
{
	uint64_t lanes[4] = { 1, 2, 3, 4 }, part = 0, bytes = 0, word;

	while (next_part(begin, end, &part, &bytes)) {
		const unsigned char *at = (const unsigned char *)(uintptr_t)part;
		uint64_t i = 0;

		for (; i + 32 <= bytes; i += 32)
			for (unsigned lane = 0; lane < 4; lane++) {
				memcpy(&word, at + i + lane * 8, 8);
				lanes[lane] = (lanes[lane] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
				lanes[lane] ^= lanes[lane] >> 29;
			}
		for (; i < bytes; i++)
			lanes[i % 4] = (lanes[i % 4] ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

void validate_host_access(struct validate *v, struct access *access)
{
	access->hashed = !access->write && report_wanted(VALIDATE_HOST_READ) &&
			 !order_is_tainted(v->order, access->taint) &&
			 is_pinned(v, access->begin, access->end) &&
			 !accesses_meet(v->accesses, access->begin, access->end, true);
	if (access->hashed)
		access->hash = hash_of(access->begin, access->end);
}

void validate_host_done(void *arg, const struct access *access)
{
	struct validate *v = arg;
	const struct order_stream *stream = order_stream_at(v->order, access->stream);
	struct report report = { .rule = VALIDATE_HOST_READ,
				 .then = "the copy was queued by",
				 .before = access->stack };

	if (hash_of(access->begin, access->end) == access->hash)
		return;
	report.now = npu_stack_here();
	report_make(&report,
		    "the program rewrote %s while a copy in queue %u of device %u was to read it, "
		    "before it knew that the copy was done",
		    validate_range(v, access->begin, access->end), stream->id, stream->dev);
}

/* ---- targets ---- */

struct saved {
	uint64_t at, bytes;
	void *old;
};

static void clear_saved(gpointer data)
{
	g_free(((struct saved *)data)->old);
}

/* Nothing on its way, nor any earlier entry of the same call, uses the target: what is there is no
 * use to the program any more. */
static bool is_free(struct validate *v, const struct halTaskSendInfo *info, uint32_t index,
		    uint64_t begin, uint64_t end)
{
	uint64_t dst, src, bytes;

	for (uint32_t i = 0; i < index; i++)
		if (driver_entry_copy(info->sqe_addr + (size_t)i * STARS_SQE_BYTES, &dst, &src,
				      &bytes) &&
		    ((dst < end && begin < dst + bytes) || (src < end && begin < src + bytes)))
			return false;
	return !accesses_meet(v->accesses, begin, end, false);
}

GArray *validate_host_send(struct validate *v, uint32_t dev, const struct halTaskSendInfo *info)
{
	const struct order_stream *stream = order_stream(v->order, dev, info->sqId);
	GArray *saved = NULL;
	uint64_t dst, src, bytes;

	if (!report_wanted(VALIDATE_HOST_READ) ||
	    order_is_tainted(v->order, MAX(stream->clock.taint, order_host(v->order)->taint)))
		return NULL;
	for (uint32_t i = 0; i < info->sqe_num; i++) {
		const uint8_t *entry = info->sqe_addr + (size_t)i * STARS_SQE_BYTES;
		uint64_t part = 0, part_bytes = 0;

		if (((const struct stars_sqe_header *)(const void *)entry)->type ==
			    STARS_SQE_EVENT_WAIT ||
		    ((const struct stars_sqe_header *)(const void *)entry)->type ==
			    STARS_SQE_NOTIFY_WAIT ||
		    ((const struct stars_sqe_header *)(const void *)entry)->type == STARS_SQE_COND)
			break; /* the program may be waited for */
		if (!driver_entry_copy(entry, &dst, &src, &bytes) || bytes <= FLAG_BYTES ||
		    !is_pinned(v, dst, dst + bytes) || !is_free(v, info, i, dst, dst + bytes) ||
		    (src < dst + bytes && dst < src + bytes))
			continue;
		if (saved == NULL) {
			saved = g_array_new(FALSE, FALSE, sizeof(struct saved));
			g_array_set_clear_func(saved, clear_saved);
		}
		while (next_part(dst, dst + bytes, &part, &part_bytes)) {
			struct saved old = { part, part_bytes,
					     g_memdup2((void *)(uintptr_t)part, part_bytes) };

			g_array_append_val(saved, old);
			memset((void *)(uintptr_t)part, PATTERN, part_bytes);
		}
	}
	return saved;
}

void validate_host_sent(GArray *saved, bool taken)
{
	if (saved == NULL)
		return;
	for (guint i = 0; i < saved->len && !taken; i++) {
		const struct saved *old = &g_array_index(saved, struct saved, i);

		memcpy((void *)(uintptr_t)old->at, old->old, old->bytes);
	}
	g_array_unref(saved);
}
