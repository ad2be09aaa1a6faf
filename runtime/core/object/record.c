/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of events: their ids, their users, and the relays to other devices.
 */
#include "core/object/record.h"

#include "base/lock.h"
#include "core/object/error.h"
#include "core/object/stream.h"

#include <stdlib.h>

struct relay {
	struct relay *next;
	uint32_t device, id;
};

drvError_t core_event_id_take(uint32_t device, uint32_t *out_id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out = { 0 };
	drvError_t code = drv == NULL ? DRV_ERROR_PROCESS_EXIT
				      : npu_call(drv, halResourceIdAlloc, device, &in, &out);

	*out_id = out.resourceId;
	return code;
}

void core_event_id_give(uint32_t device, uint32_t id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };

	if (drv != NULL)
		npu_call(drv, halResourceIdFree, device, &in);
}

void core_event_id_record(uint32_t device, uint32_t id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RECORD };

	if (drv != NULL)
		npu_call(drv, halResourceConfig, device, &in, &config);
}

struct record *core_record_make(uint32_t device, const char *call, int *error)
{
	struct record *record = calloc(1, sizeof(*record));
	drvError_t code;

	if (record == NULL) {
		*error = core_no_memory(call, "no memory for an event");
		return NULL;
	}
	code = core_event_id_take(device, &record->id);
	if (code != DRV_ERROR_NONE) {
		*error = core_result(call, code);
		free(record);
		return NULL;
	}
	record->device = device;
	atomic_store(&record->users, 1);
	pthread_mutex_init(&record->lock, NULL);
	return record;
}

struct record *core_record_use(struct record *record)
{
	if (record != NULL)
		atomic_fetch_add(&record->users, 1);
	return record;
}

static void free_relays(struct relay *relay, bool happened)
{
	while (relay != NULL) {
		struct relay *next = relay->next;

		if (happened)
			core_event_id_record(relay->device, relay->id);
		free(relay);
		relay = next;
	}
}

void core_record_unuse(struct record *record)
{
	if (record == NULL || atomic_fetch_sub(&record->users, 1) > 1)
		return;
	core_record_unuse(record->instead_of);
	core_event_id_give(record->device, record->id);
	free_relays(record->relays, false);
	pthread_mutex_destroy(&record->lock);
	free(record);
}

/* Under the lock: who drops a relay knows afterwards that its id is not recorded any more. */
static void happen(struct record *record)
{
	LOCKED(&record->lock);

	atomic_store(&record->done, true);
	free_relays(record->relays, true);
	record->relays = NULL;
}

/* Under the lock of the stream that recorded. */
void core_record_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct record *record = arg;
	const struct core_stream *stream =
		cqe == NULL ? core_pool_find(&core_streams, atomic_load(&record->stream)) : NULL;

	if (stream != NULL && stream->aborting) { /* who waits for it waits on, as with CANN */
		atomic_store(&record->aborted, true);
		core_record_unuse(record);
		return;
	}
	if (cqe != NULL)
		atomic_store(&record->timestamp, cqe->timestamp);
	else /* dropped with its stream: others wait for it all the same */
		core_event_id_record(record->device, record->id);
	happen(record);
	if (record->instead_of != NULL)
		happen(record->instead_of);
	core_record_unuse(record);
}

int core_record_add_relay(struct record *record, uint32_t device, uint32_t id, const char *call)
{
	struct relay *relay = malloc(sizeof(*relay));
	bool done;

	if (relay == NULL)
		return core_no_memory(call, "no memory for an event");
	core_order(device, NPU_ORDER_RELAY, id, (uint64_t)record->device << 32 | record->id);
	*relay = (struct relay){ .device = device, .id = id };
	pthread_mutex_lock(&record->lock);
	done = atomic_load(&record->done);
	if (!done) {
		relay->next = record->relays;
		record->relays = relay;
	}
	pthread_mutex_unlock(&record->lock);
	if (done)
		free_relays(relay, true);
	return CORE_OK;
}

void core_record_drop_relay(struct record *record, uint32_t device, uint32_t id)
{
	pthread_mutex_lock(&record->lock);
	for (struct relay **place = &record->relays; *place != NULL; place = &(*place)->next) {
		struct relay *relay = *place;

		if (relay->device != device || relay->id != id)
			continue;
		*place = relay->next;
		free(relay);
		break;
	}
	pthread_mutex_unlock(&record->lock);
	core_event_id_give(device, id);
}

bool core_record_has_relays(struct record *record)
{
	LOCKED(&record->lock);

	return record->relays != NULL;
}
