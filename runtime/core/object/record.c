/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of events: their ids, their users, and the relays to other devices.
 */
#include "core/object/record.h"

#include "base/lock.h"
#include "core/object/error.h"
#include "core/object/process.h"
#include "core/object/stream.h"

#include <stdlib.h>

struct relay {
	SLIST_ENTRY(relay) link;
	uint32_t device, id;
};

drvError_t core_event_id_take(uint32_t device, uint32_t *out_id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out = { 0 };
	drvError_t code = core_call(halResourceIdAlloc, device, &in, &out);

	*out_id = out.resourceId;
	return code;
}

void core_event_id_give(uint32_t device, uint32_t id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };

	core_call(halResourceIdFree, device, &in);
}

void core_event_id_record(uint32_t device, uint32_t id)
{
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RECORD };

	core_call(halResourceConfig, device, &in, &config);
}

struct record *core_record_make(uint32_t device, const char *call, int *error)
{
	struct record *record = calloc(1, sizeof(*record));

	*error = record == NULL ? core_no_memory(call, "no memory for an event")
				: core_result(call, core_event_id_take(device, &record->id));
	if (*error != CORE_OK) {
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

/* Under the lock: who drops a relay knows afterwards that its id is not recorded any more. */
static void end_relays_locked(struct record *record, bool happened)
{
	while (!SLIST_EMPTY(&record->relays)) {
		struct relay *relay = SLIST_FIRST(&record->relays);

		SLIST_REMOVE_HEAD(&record->relays, link);
		if (happened)
			core_event_id_record(relay->device, relay->id);
		free(relay);
	}
}

void core_record_unuse(struct record *record)
{
	if (record == NULL || atomic_fetch_sub(&record->users, 1) > 1)
		return;
	core_record_unuse(record->instead_of);
	core_event_id_give(record->device, record->id);
	end_relays_locked(record, false);
	pthread_mutex_destroy(&record->lock);
	free(record);
}

static void happen(struct record *record)
{
	LOCKED(&record->lock);

	atomic_store(&record->done, true);
	end_relays_locked(record, true);
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

	if (relay == NULL)
		return core_no_memory(call, "no memory for an event");
	core_order(device, NPU_ORDER_RELAY, id, (uint64_t)record->device << 32 | record->id);
	*relay = (struct relay){ .device = device, .id = id };
	LOCKED(&record->lock);
	SLIST_INSERT_HEAD(&record->relays, relay, link);
	if (atomic_load(&record->done))
		end_relays_locked(record, true);
	return CORE_OK;
}

void core_record_drop_relay(struct record *record, uint32_t device, uint32_t id)
{
	struct relay *relay;

	pthread_mutex_lock(&record->lock);
	SLIST_FOREACH(relay, &record->relays, link)
	if (relay->device == device && relay->id == id)
		break;
	if (relay != NULL)
		SLIST_REMOVE(&record->relays, relay, relay, link);
	pthread_mutex_unlock(&record->lock);
	free(relay);
	core_event_id_give(device, id);
}

bool core_record_has_relays(struct record *record)
{
	LOCKED(&record->lock);

	return !SLIST_EMPTY(&record->relays);
}
