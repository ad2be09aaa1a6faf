/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's queues: entries are executed as they are sent, and completions wait in one list
 * for whoever asks. Copies are made by address; events and the rest only complete.
 */
#include "fake-hal-private.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#ifndef FAKE_EMPTY

#define COMPLETIONS 4096
#define STREAMS     1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_id, next_queue;
static struct stars_logic_cqe completions[COMPLETIONS];
static uint32_t completion_cq[COMPLETIONS];
static unsigned completion_count;
static uint32_t stream_cq[STREAMS];

drvError_t halResourceIdAlloc(uint32_t dev, struct halResourceIdInputInfo *in,
			      struct halResourceIdOutputInfo *out)
{
	(void)dev, (void)in;
	FAKE_ENTER();
	out->resourceId = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED) % STREAMS;
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t halResourceIdFree(uint32_t dev, struct halResourceIdInputInfo *in)
{
	(void)dev, (void)in;
	FAKE_ENTER();
	fake_count(-1);
	return DRV_ERROR_NONE;
}

drvError_t halResourceConfig(uint32_t dev, struct halResourceIdInputInfo *in,
			     struct halResourceConfigInfo *para)
{
	(void)dev;
	FAKE_ENTER();
	if (para->prop == DRV_STREAM_BIND_LOGIC_CQ)
		stream_cq[in->resourceId % STREAMS] = para->value[0];
	return DRV_ERROR_NONE;
}

drvError_t halSqCqAllocate(uint32_t dev, struct halSqCqInputInfo *in, struct halSqCqOutputInfo *out)
{
	(void)dev, (void)in;
	FAKE_ENTER();
	memset(out, 0, sizeof(*out));
	out->sqId = out->cqId = __atomic_add_fetch(&next_queue, 1, __ATOMIC_RELAXED);
	fake_count(1);
	return DRV_ERROR_NONE;
}

drvError_t halSqCqFree(uint32_t dev, struct halSqCqFreeInfo *info)
{
	(void)dev, (void)info;
	FAKE_ENTER();
	fake_count(-1);
	return DRV_ERROR_NONE;
}

drvError_t halSqCqQuery(uint32_t dev, struct halSqCqQueryInfo *info)
{
	(void)dev;
	FAKE_ENTER();
	memset(info->value, 0, sizeof(info->value));
	return DRV_ERROR_NONE;
}

#ifndef FAKE_STUCK
static void copy(uint64_t dst, uint64_t src, uint64_t length)
{
	memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, length);
}

static void execute(const uint8_t *entry)
{
	struct stars_sqe_header header;
	struct stars_sdma_sqe sdma;
	struct stars_pcie_dma_sqe dma;

	memcpy(&header, entry, sizeof(header));
	if (header.type == STARS_SQE_SDMA) {
		memcpy(&sdma, entry, sizeof(sdma));
		copy((uint64_t)sdma.dst_addr_high << 32 | sdma.dst_addr_low,
		     (uint64_t)sdma.src_addr_high << 32 | sdma.src_addr_low, sdma.length);
	} else if (header.type == STARS_SQE_PCIE_DMA) {
		memcpy(&dma, entry, sizeof(dma));
		copy(dma.dst, dma.src, dma.length);
	}
	if (!header.wr_cqe || completion_count == COMPLETIONS)
		return;
	completion_cq[completion_count] = stream_cq[header.stream_id % STREAMS];
	completions[completion_count++] = (struct stars_logic_cqe){
		.stream_id = header.stream_id,
		.task_id = header.task_id,
		.sqe_type = header.type,
	};
}
#endif

drvError_t halSqTaskSend(uint32_t dev, struct halTaskSendInfo *info)
{
	(void)dev, (void)info;
	FAKE_ENTER();
#ifndef FAKE_STUCK
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < info->sqe_num; i++)
		execute(info->sqe_addr + (size_t)i * STARS_SQE_BYTES);
	pthread_mutex_unlock(&lock);
#endif
	return DRV_ERROR_NONE;
}

static uint32_t take(uint32_t cq, uint8_t *out, uint32_t room)
{
	unsigned kept = 0;
	uint32_t taken = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < completion_count; i++) {
		if (completion_cq[i] == cq && taken < room) {
			memcpy(out + (size_t)taken++ * sizeof(completions[i]), &completions[i],
			       sizeof(completions[i]));
			continue;
		}
		completion_cq[kept] = completion_cq[i];
		completions[kept++] = completions[i];
	}
	completion_count = kept;
	pthread_mutex_unlock(&lock);
	return taken;
}

drvError_t halCqReportRecv(uint32_t dev, struct halReportRecvInfo *info)
{
	(void)dev;
	FAKE_ENTER();
	info->report_cqe_num = take(info->cqId, info->cqe_addr, info->cqe_num);
	if (info->report_cqe_num > 0 || info->timeout == 0)
		return DRV_ERROR_NONE;
	usleep(info->timeout < 0 || info->timeout > 10 ? 10000 : (unsigned)info->timeout * 1000);
	return DRV_ERROR_WAIT_TIMEOUT;
}

#endif
