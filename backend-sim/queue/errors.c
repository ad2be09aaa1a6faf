/* SPDX-License-Identifier: Apache-2.0
 *
 * The error ring of a device, in which the task scheduler says why a task failed: CANN's runtime
 * gives it a piece of device memory (STARS_TASK_ERROR_RING), reads the elements when a completion
 * has an error, and does not go on until there is one for the task. An element that finds no room
 * is lost, as is one whose ring has been freed.
 */
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"
#include "queue/queue.h"

/* Ring bytes [offset, offset + bytes), which lie in the device's memory one after another. */
static void *ring_at(struct bsim *bs, unsigned device, uint64_t offset, uint64_t bytes)
{
	uint64_t room, pa = bs->queues->device[device].ring_pa + offset;
	void *at = sim_memory_at(node_memory(bs->node), pa, &room);

	return SIM_PA_NODE(pa) == device && bytes <= room ? at : NULL;
}

void queue_ring_set_locked(struct bsim *bs, unsigned device, const struct stars_error_ring_sqe *sqe)
{
	struct queue_device *to = &bs->queues->device[device];
	const struct stars_error_ring header = {
		.magic = STARS_ERROR_RING_MAGIC,
		.elements = sqe->elements,
		.pid = (uint64_t)getpid(),
		.element_bytes = STARS_ERROR_ELEMENT_BYTES,
	};
	uint64_t bytes = sizeof(header) + (uint64_t)sqe->elements * STARS_ERROR_ELEMENT_BYTES;
	void *at;

	to->ring_pa = sqe->address;
	at = sqe->end != 0 || sqe->elements == 0 ? NULL : ring_at(bs, device, 0, bytes);
	to->ring_elements = at == NULL ? 0 : sqe->elements;
	if (at == NULL)
		return;
	memory_written_locked(bs);
	memcpy(at, &header, sizeof(header));
}

static void fill_element(const struct queue_sq *sq, uint8_t error_type,
			 struct stars_error_element *out)
{
	const union stars_sqe *entry = &sq->ring[sq->head];
	uint16_t stream = entry->header.stream_id & (uint16_t)~STARS_SYNC_TASK_FLAG;
	uint16_t task = entry->header.task_id, *about = out->about;

	if (entry->header.type == STARS_SQE_SDMA) {
		out->kind = about[0] = STARS_RING_SDMA;
		about[1] = 1;
		about[8] = stream;
		about[9] = task;
		return;
	}
	about[3] = task;
	if ((error_type & STARS_ERROR_TIMEOUT) == 0) {
		out->kind = STARS_RING_SQE;
		about[0] = stream;
		about[1] = (uint16_t)sq->id;
		about[2] = (uint16_t)sq->head;
		memcpy(&about[8], entry, sizeof(*entry));
		return;
	}
	out->kind = STARS_RING_WAIT;
	about[0] = entry->header.type;
	about[1] = stream;
	about[2] = (uint16_t)sq->id;
	about[8] = entry->event.event_id;
	about[10] =
		(uint16_t)(entry->header.type == STARS_SQE_EVENT_WAIT ? entry->event.timeout
								      : entry->event.exe_result);
}

void queue_ring_tell_locked(struct bsim *bs, const struct queue_sq *sq, uint8_t error_type)
{
	struct queue_device *device = &bs->queues->device[sq->device];
	struct stars_error_element element = { .pid = (uint64_t)getpid(),
					       .bytes = sizeof(element),
					       .number = device->ring_errors };
	struct stars_error_ring *ring;
	uint32_t next;
	void *at;

	/* Of a copy with the host the runtime looks for no element. */
	if (device->ring_elements == 0 || sq->ring[sq->head].header.type == STARS_SQE_PCIE_DMA)
		return;
	fill_element(sq, error_type, &element);
	device->ring_errors++;
	ring = ring_at(bs, sq->device, 0, sizeof(*ring));
	if (ring == NULL || ring->magic != STARS_ERROR_RING_MAGIC)
		return; /* the server is stopped, or the program has written over it */
	next = (ring->tail + 1) % device->ring_elements;
	at = ring_at(bs, sq->device,
		     sizeof(*ring) + (uint64_t)(ring->tail % device->ring_elements) *
					     STARS_ERROR_ELEMENT_BYTES,
		     sizeof(element));
	if (next == ring->head || at == NULL)
		return;
	memcpy(at, &element, sizeof(element));
	__atomic_store_n(&ring->tail, next, __ATOMIC_RELEASE);
}
