/* SPDX-License-Identifier: Apache-2.0
 *
 * Page-locked memory of the host that queued copies read and write, against the program's own
 * loads and stores, which nobody sees: a source is hashed when its copy is queued and when the host
 * knows that it is done; a target is filled with a pattern when its copy is queued, so that a read
 * before the bytes are there finds no plausible ones.
 */
#include "validate/validate.h"

#include <string.h>

/* What a copy of 1 MiB costs bounds what may be looked at: of longer memory than the first a word
 * of each 128 bytes is hashed, and 64 bytes of each 512 are filled; of longer than the second half
 * of it at either end. */
#define WHOLE_BYTES (UINT64_C(64) << 10)
#define ENDS_BYTES  (UINT64_C(1) << 20)
#define HASH_STEP   128u
#define LINE        64u
#define FILL_STEP   512u

#define PATTERN    0xff /* not a number, as a float */
#define FLAG_BYTES 64u  /* what is not longer may be a flag that the program polls */

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
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t lanes[4] = { 1, 2, 3, 4 }, part = 0, bytes = 0, word;
	uint64_t step = end - begin <= WHOLE_BYTES ? sizeof(word) : HASH_STEP;

	while (next_part(begin, end, &part, &bytes)) {
		const unsigned char *at = (const unsigned char *)(uintptr_t)part;
		uint64_t i = 0;

		for (; i + 4 * step <= bytes; i += 4 * step)
			for (unsigned lane = 0; lane < 4; lane++) {
				memcpy(&word, at + i + lane * step, sizeof(word));
				lanes[lane] = (lanes[lane] ^ word) * factor;
			}
		for (; i < bytes; i += sizeof(word)) {
			word = 0;
			memcpy(&word, at + i, MIN(bytes - i, sizeof(word)));
			lanes[0] = (lanes[0] ^ word) * factor;
		}
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

void validate_host_done(struct validate *v, const struct access *access)
{
	struct report report = { .rule = VALIDATE_HOST_READ,
				 .then = "the copy was queued by",
				 .before = access->stack };

	if (hash_of(access->begin, access->end) == access->hash)
		return;
	report.now = npu_stack_here();
	report_make(&report,
		    "the program rewrote %s while a copy in %s was to read it, before it knew that "
		    "the copy was done",
		    validate_range(v, access->begin, access->end),
		    order_stream_text(order_stream_at(v->order, access->stream)));
}

/* ---- targets ---- */

struct saved {
	uint64_t begin, end;
	unsigned char *old;
};

static void clear_saved(gpointer data)
{
	g_free(((struct saved *)data)->old);
}

/* Keeps what is there and fills it, or puts it back. */
static void swap(struct saved *saved, bool back)
{
	uint64_t length = saved->end - saved->begin, part = 0, bytes = 0, run;
	uint64_t step = length <= WHOLE_BYTES ? LINE : FILL_STEP;
	unsigned char *kept;

	if (!back)
		saved->old = g_malloc(MIN(length, ENDS_BYTES) / step * LINE + 2 * FILL_STEP);
	kept = saved->old;
	while (next_part(saved->begin, saved->end, &part, &bytes))
		for (uint64_t i = 0; i < bytes; i += step, kept += run) {
			void *at = (void *)(uintptr_t)(part + i);

			run = MIN(bytes - i, LINE);
			memcpy(back ? at : kept, back ? kept : at, run);
			if (!back)
				memset(at, PATTERN, run);
		}
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

static bool waits(const uint8_t *entry)
{
	unsigned type = ((const struct stars_sqe_header *)(const void *)entry)->type;

	return type == STARS_SQE_EVENT_WAIT || type == STARS_SQE_NOTIFY_WAIT ||
	       type == STARS_SQE_COND;
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
		struct saved old;

		if (waits(entry))
			break; /* maybe for the program */
		if (!driver_entry_copy(entry, &dst, &src, &bytes) || bytes <= FLAG_BYTES ||
		    !is_pinned(v, dst, dst + bytes) || !is_free(v, info, i, dst, dst + bytes) ||
		    (src < dst + bytes && dst < src + bytes))
			continue;
		if (saved == NULL) {
			saved = g_array_new(FALSE, FALSE, sizeof(struct saved));
			g_array_set_clear_func(saved, clear_saved);
		}
		old = (struct saved){ .begin = dst, .end = dst + bytes };
		swap(&old, false);
		g_array_append_val(saved, old);
	}
	return saved;
}

void validate_host_sent(GArray *saved, bool taken)
{
	if (saved == NULL)
		return;
	for (guint i = 0; i < saved->len && !taken; i++)
		swap(&g_array_index(saved, struct saved, i), true);
	g_array_unref(saved);
}
