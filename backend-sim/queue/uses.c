/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory the entries of submission queues copy from and write to, from the time they are sent
 * until they are done: host memory that is freed meanwhile stays as long.
 *
 * An entry that waits for a value does not count: nobody could change it any more.
 */
#include "memory/memory.h"
#include "queue/queue.h"

struct use {
	uint64_t va, bytes; /* 0: none */
};

static void find_uses(const union queue_entry *sqe, struct use out[2])
{
	out[0] = out[1] = (struct use){ 0, 0 };
	if (sqe->header.type == STARS_SQE_SDMA) {
		out[0].va = queue_word(sqe->sdma.dst_addr_low, sqe->sdma.dst_addr_high);
		out[1].va = queue_word(sqe->sdma.src_addr_low, sqe->sdma.src_addr_high);
		out[0].bytes = out[1].bytes = sqe->sdma.length;
	} else if (sqe->header.type == STARS_SQE_PCIE_DMA) {
		out[0] = (struct use){ sqe->dma.dst, sqe->dma.length };
		out[1] = (struct use){ sqe->dma.src, sqe->dma.length };
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

/* The first `count` entries; the first is done already where its completion waits for room. */
static unsigned uses_of(const struct queue_sq *sq, uint32_t count, uint64_t va, uint64_t bytes)
{
	unsigned uses = 0;

	for (uint32_t i = sq->holding; i < count; i++) {
		struct use use[2];

		find_uses(&sq->ring[(sq->head + i) % sq->depth], use);
		for (unsigned end = 0; end < 2; end++)
			uses += use[end].va < va + bytes && va < use[end].va + use[end].bytes;
	}
	return uses;
}

unsigned queue_uses_locked(struct bsim *bs, uint64_t va, uint64_t bytes)
{
	const struct queue_sq *sq;
	unsigned uses = 0;

	for (unsigned d = 0; d < bs->devices; d++) {
		const struct queue_device *device = &bs->queues->device[d];

		for (uint32_t i = 0; i < device->sq_slots; i++)
			if (device->sqs[i] != NULL)
				uses += uses_of(device->sqs[i], queue_undone(device->sqs[i]), va,
						bytes);
	}
	LIST_FOREACH(sq, &bs->queues->doomed, doomed_link)
	uses += uses_of(sq, 1, va, bytes);
	return uses;
}

void queue_uses_end_locked(struct bsim *bs, const struct queue_sq *sq, uint32_t first,
			   uint32_t count)
{
	for (uint32_t i = first; i < count && !LIST_EMPTY(&bs->allocs->held); i++) {
		uint32_t at = (sq->head + i) % sq->depth;
		struct use use[2];

		find_uses(&sq->ring[at], use);
		for (unsigned end = 0; end < 2; end++)
			gone_release_locked(bs, use[end].va, use[end].bytes, sq->sent[at]);
	}
}
