/* SPDX-License-Identifier: Apache-2.0
 *
 * See fake-driver.h. One lock; entries are executed by whatever call finds that they can be.
 */
#include "fake-driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDS    4096
#define QUEUES 256
#define DEPTH  4096

struct entry {
	uint8_t bytes[STARS_SQE_BYTES];
};
struct queue {
	bool used;
	uint32_t stream;
	struct entry *ring;
	unsigned head, count;
};
struct completions {
	bool used;
	struct stars_logic_cqe *ring;
	unsigned head, count;
};
struct device {
	atomic_bool open;
	unsigned opened;
	bool id_used[4][IDS];
	bool recorded[IDS];
	uint32_t stream_cq[IDS]; /* plus 1 */
	struct queue sq[QUEUES];
	struct completions cq[QUEUES];
};
struct fake {
	struct npu_driver driver;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned devices;
	struct device device[FAKE_DEVICES];
	bool hold;
	uint8_t fail_type, fail_error;
	uint32_t fail_code;
	drvError_t refuse_code;
	unsigned refuse_times;
	unsigned executed[64];
	unsigned live_ids, live_queues;
};

static struct fake *fake_of(struct npu_driver *drv)
{
	return (struct fake *)drv;
}

static struct device *device_of(struct fake *fake, uint32_t dev)
{
	return dev < FAKE_DEVICES && dev < fake->devices ? &fake->device[dev] : NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- execution ---- */

static void complete(struct fake *fake, struct device *device, struct queue *queue,
		     const struct stars_event_sqe *sqe)
{
	uint32_t cq = device->stream_cq[queue->stream % IDS];
	struct completions *out;
	struct stars_logic_cqe *cqe;

	fake->executed[sqe->header.type]++;
	if (cq == 0 || (!sqe->header.wr_cqe && fake->fail_type != sqe->header.type))
		return;
	out = &device->cq[cq - 1];
	if (out->count == DEPTH)
		abort();
	cqe = &out->ring[(out->head + out->count++) % DEPTH];
	*cqe = (struct stars_logic_cqe){
		.stream_id = sqe->header.stream_id,
		.task_id = sqe->header.task_id,
		.sqe_type = sqe->header.type,
		.timestamp = now_ns(),
	};
	if (fake->fail_error != 0 && fake->fail_type == sqe->header.type) {
		cqe->error_type = fake->fail_error;
		cqe->error_code = fake->fail_code;
		fake->fail_error = 0;
	}
}

static bool execute_one(struct fake *fake, struct device *device, struct queue *queue)
{
	struct stars_event_sqe sqe;

	if (!queue->used || queue->count == 0)
		return false;
	memcpy(&sqe, queue->ring[queue->head].bytes, sizeof(sqe));
	if (sqe.header.type == STARS_SQE_EVENT_WAIT && !device->recorded[sqe.event_id % IDS])
		return false;
	if (sqe.header.type == STARS_SQE_EVENT_RECORD)
		device->recorded[sqe.event_id % IDS] = true;
	queue->head = (queue->head + 1) % DEPTH;
	queue->count--;
	complete(fake, device, queue, &sqe);
	return true;
}

static void execute_locked(struct fake *fake)
{
	bool moved = !fake->hold;

	while (moved) {
		moved = false;
		for (unsigned d = 0; d < FAKE_DEVICES; d++)
			for (unsigned q = 0; q < QUEUES; q++)
				while (execute_one(fake, &fake->device[d], &fake->device[d].sq[q]))
					moved = true;
	}
	pthread_cond_broadcast(&fake->changed);
}

/* ---- devices ---- */

static drvError_t get_dev_num(struct npu_driver *self, uint32_t *num)
{
	*num = fake_of(self)->devices;
	return DRV_ERROR_NONE;
}

static drvError_t device_open(struct npu_driver *self, uint32_t dev, halDevOpenIn *in,
			      halDevOpenOut *out)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);

	(void)in;
	(void)out;
	if (device == NULL || device->open)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	device->open = true;
	device->opened++;
	pthread_mutex_unlock(&fake->lock);
	return DRV_ERROR_NONE;
}

static drvError_t device_close(struct npu_driver *self, uint32_t dev, halDevCloseIn *in)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);

	(void)in;
	if (device == NULL || !device->open)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	device->open = false;
	pthread_mutex_unlock(&fake->lock);
	return DRV_ERROR_NONE;
}

/* ---- ids ---- */

static drvError_t id_alloc(struct npu_driver *self, uint32_t dev, struct halResourceIdInputInfo *in,
			   struct halResourceIdOutputInfo *out)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);

	if (device == NULL || !device->open)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	for (uint32_t id = 1; id < IDS; id++) {
		if (device->id_used[in->type][id])
			continue;
		device->id_used[in->type][id] = true;
		fake->live_ids++;
		if (in->type == DRV_EVENT_ID)
			device->recorded[id] = false;
		out->resourceId = id;
		pthread_mutex_unlock(&fake->lock);
		return DRV_ERROR_NONE;
	}
	pthread_mutex_unlock(&fake->lock);
	return in->type == DRV_STREAM_ID ? DRV_ERROR_NO_STREAM_RESOURCES
					 : DRV_ERROR_NO_EVENT_RESOURCES;
}

static drvError_t id_free(struct npu_driver *self, uint32_t dev, struct halResourceIdInputInfo *in)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);
	drvError_t code = DRV_ERROR_INVALID_VALUE;

	if (device == NULL)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	if (in->resourceId < IDS && device->id_used[in->type][in->resourceId]) {
		device->id_used[in->type][in->resourceId] = false;
		fake->live_ids--;
		code = DRV_ERROR_NONE;
	}
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static drvError_t id_config(struct npu_driver *self, uint32_t dev,
			    struct halResourceIdInputInfo *in, struct halResourceConfigInfo *para)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);

	if (device == NULL || in->resourceId >= IDS)
		return DRV_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake->lock);
	if (para->prop == DRV_STREAM_BIND_LOGIC_CQ)
		device->stream_cq[in->resourceId] = para->value[0] + 1;
	else if (para->prop == DRV_STREAM_UNBIND_LOGIC_CQ)
		device->stream_cq[in->resourceId] = 0;
	else if (para->prop == DRV_ID_RECORD)
		device->recorded[in->resourceId] = true;
	else if (para->prop == DRV_ID_RESET)
		device->recorded[in->resourceId] = false;
	execute_locked(fake);
	pthread_mutex_unlock(&fake->lock);
	return DRV_ERROR_NONE;
}

/* ---- queues ---- */

static drvError_t queue_allocate(struct npu_driver *self, uint32_t dev, struct halSqCqInputInfo *in,
				 struct halSqCqOutputInfo *out)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);
	drvError_t code = DRV_ERROR_NO_RESOURCES;

	if (device == NULL || !device->open)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	for (unsigned i = 0; i < QUEUES && code != DRV_ERROR_NONE; i++) {
		if (in->type == DRV_NORMAL_TYPE && !device->sq[i].used) {
			device->sq[i] = (struct queue){ .used = true, .stream = in->info[0] };
			device->sq[i].ring = calloc(DEPTH, sizeof(struct entry));
			out->sqId = out->cqId = i;
			code = DRV_ERROR_NONE;
		} else if (in->type == DRV_LOGIC_TYPE && !device->cq[i].used) {
			device->cq[i] = (struct completions){ .used = true };
			device->cq[i].ring = calloc(DEPTH, sizeof(struct stars_logic_cqe));
			out->cqId = i;
			code = DRV_ERROR_NONE;
		}
	}
	if (code == DRV_ERROR_NONE)
		fake->live_queues++;
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static drvError_t queue_free(struct npu_driver *self, uint32_t dev, struct halSqCqFreeInfo *info)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);

	if (device == NULL || info->cqId >= QUEUES)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	if (info->type == DRV_NORMAL_TYPE) {
		free(device->sq[info->sqId].ring);
		device->sq[info->sqId] = (struct queue){ 0 };
	} else {
		free(device->cq[info->cqId].ring);
		device->cq[info->cqId] = (struct completions){ 0 };
	}
	fake->live_queues--;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	return DRV_ERROR_NONE;
}

static drvError_t task_send(struct npu_driver *self, uint32_t dev, struct halTaskSendInfo *info)
{
	struct fake *fake = fake_of(self);
	struct device *device = device_of(fake, dev);
	struct queue *queue;
	drvError_t code = DRV_ERROR_NONE;

	if (device == NULL || info->sqId >= QUEUES)
		return DRV_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake->lock);
	queue = &device->sq[info->sqId];
	if (fake->refuse_times > 0) {
		fake->refuse_times--;
		code = fake->refuse_code;
	} else if (!queue->used || queue->count + info->sqe_num > DEPTH) {
		code = DRV_ERROR_SQID_FULL;
	}
	for (uint32_t i = 0; code == DRV_ERROR_NONE && i < info->sqe_num; i++)
		memcpy(queue->ring[(queue->head + queue->count++) % DEPTH].bytes,
		       info->sqe_addr + i * STARS_SQE_BYTES, STARS_SQE_BYTES);
	execute_locked(fake);
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static drvError_t report_recv(struct npu_driver *self, uint32_t dev, struct halReportRecvInfo *info)
{
	struct fake *fake = fake_of(self);
	struct completions *cq = &fake->device[dev].cq[info->cqId];
	struct stars_logic_cqe *out = (void *)info->cqe_addr;
	struct timespec until;
	int waited = 0;

	info->report_cqe_num = 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += info->timeout / 1000;
	until.tv_nsec += info->timeout % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&fake->lock);
	while (cq->used && cq->count == 0 && info->timeout != 0 && waited != ETIMEDOUT)
		waited = info->timeout < 0
				 ? pthread_cond_wait(&fake->changed, &fake->lock)
				 : pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
	while (cq->used && cq->count > 0 && info->report_cqe_num < info->cqe_num) {
		out[info->report_cqe_num++] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % DEPTH;
		cq->count--;
	}
	pthread_mutex_unlock(&fake->lock);
	return info->report_cqe_num > 0 || info->timeout == 0 ? DRV_ERROR_NONE
							      : DRV_ERROR_WAIT_TIMEOUT;
}

/* ---- the test's side ---- */

static void fake_close(struct npu_driver *self)
{
	struct fake *fake = fake_of(self);

	for (unsigned d = 0; d < FAKE_DEVICES; d++) {
		for (unsigned q = 0; q < QUEUES; q++) {
			free(fake->device[d].sq[q].ring);
			free(fake->device[d].cq[q].ring);
		}
	}
	pthread_cond_destroy(&fake->changed);
	pthread_mutex_destroy(&fake->lock);
	free(fake);
}

struct npu_driver *fake_driver_open(unsigned devices)
{
	struct fake *fake = calloc(1, sizeof(*fake));
	pthread_condattr_t attr;

	fake->driver = (struct npu_driver){
		.abi = NPU_DRIVER_ABI,
		.size = sizeof(struct npu_driver),
		.name = "fake",
		.close = fake_close,
		.drvGetDevNum = get_dev_num,
		.halDeviceOpen = device_open,
		.halDeviceClose = device_close,
		.halResourceIdAlloc = id_alloc,
		.halResourceIdFree = id_free,
		.halResourceConfig = id_config,
		.halSqCqAllocate = queue_allocate,
		.halSqCqFree = queue_free,
		.halSqTaskSend = task_send,
		.halCqReportRecv = report_recv,
	};
	fake->devices = devices;
	pthread_mutex_init(&fake->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fake->changed, &attr);
	pthread_condattr_destroy(&attr);
	return &fake->driver;
}

void fake_hold(struct npu_driver *drv, bool hold)
{
	struct fake *fake = fake_of(drv);

	pthread_mutex_lock(&fake->lock);
	fake->hold = hold;
	execute_locked(fake);
	pthread_mutex_unlock(&fake->lock);
}

void fake_fail_next(struct npu_driver *drv, uint8_t sqe_type, uint8_t error_type,
		    uint32_t error_code)
{
	struct fake *fake = fake_of(drv);

	pthread_mutex_lock(&fake->lock);
	fake->fail_type = sqe_type;
	fake->fail_error = error_type;
	fake->fail_code = error_code;
	pthread_mutex_unlock(&fake->lock);
}

void fake_refuse_sends(struct npu_driver *drv, drvError_t code, unsigned times)
{
	struct fake *fake = fake_of(drv);

	pthread_mutex_lock(&fake->lock);
	fake->refuse_code = code;
	fake->refuse_times = times;
	pthread_mutex_unlock(&fake->lock);
}

bool fake_is_open(struct npu_driver *drv, unsigned dev)
{
	return fake_of(drv)->device[dev].open;
}

unsigned fake_opened(struct npu_driver *drv, unsigned dev)
{
	return fake_of(drv)->device[dev].opened;
}

unsigned fake_live_ids(struct npu_driver *drv)
{
	return fake_of(drv)->live_ids;
}

unsigned fake_live_queues(struct npu_driver *drv)
{
	return fake_of(drv)->live_queues;
}

unsigned fake_executed(struct npu_driver *drv, uint8_t sqe_type)
{
	return fake_of(drv)->executed[sqe_type];
}
