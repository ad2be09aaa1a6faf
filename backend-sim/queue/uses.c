/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory copies read and write: entries of submission queues from the time they are sent
 * until they are done, calls until they end. Host memory that is freed meanwhile stays as long.
 *
 * An entry that waits for a value does not count: nobody could change it any more. Nor does a copy
 * by descriptors: these count themselves, from halMemcpy2D's call to their end, or the end of a row
 * that an engine has by then.
 */
#include "memory/memory.h"
#include "queue/copy.h"
#include "queue/queue.h"

static void find_uses(const union queue_entry *sqe, struct queue_use out[2])
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

unsigned queue_uses_locked(struct bsim *bs, uint64_t va, uint64_t bytes)
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
		end_uses(bs, use, sq->sent[at]);
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
	node_host_room_bytes();
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
