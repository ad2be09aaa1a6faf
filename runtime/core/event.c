/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements events for both faces. An event refers to two records: the last that was made, to
 * which queries and times refer, and the next, for which waits that come before it already wait.
 * Each record is an object of its own, with a fresh id in the driver: a wait for a record waits for
 * that one, however often its event is recorded again in the meantime.
 */
#include "base/lock.h"
#include "core/end.h"
#include "core/object/stream.h"
#include "core/object/process.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- records ---- */

struct relay {
	SLIST_ENTRY(relay) link;
	uint32_t device, id;
};

struct record {
	atomic_uint users;          /* the event, the entry that records, each entry that waits */
	uint32_t device, id;        /* the driver's */
	_Atomic(void *) stream;     /* handle; NULL before it is to be sent */
	_Atomic uint64_t timestamp; /* ns */
	atomic_bool done;
	atomic_bool aborted;  /* it will not happen: its stream was aborted */
	pthread_mutex_t lock; /* of relays */
	SLIST_HEAD(, relay) relays;
	struct record *instead_of; /* on another device, waited for before this one was made; kept
				      until this one goes */
};

/* One user, the caller. NULL: *error is an aclError, message set. */
static struct record *record_make(uint32_t device, int *error)
{
	struct record *record = calloc(1, sizeof(*record));

	*error = record == NULL ? core_no_memory("no memory for an event")
				: core_event_id_take(device, &record->id);
	if (*error != CORE_OK) {
		free(record);
		return NULL;
	}
	record->device = device;
	atomic_store(&record->users, 1);
	pthread_mutex_init(&record->lock, NULL);
	return record;
}

/* One user more, one less. NULL is allowed. */
static struct record *record_use(struct record *record)
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

static void record_unuse(struct record *record)
{
	if (record == NULL || atomic_fetch_sub(&record->users, 1) > 1)
		return;
	record_unuse(record->instead_of);
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

/* A core_done_fn of the entry that records, under the lock of its stream; takes over a user. */
static void record_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct record *record = arg;
	const struct core_stream *stream =
		cqe == NULL ? core_pool_find(&core_streams, atomic_load(&record->stream)) : NULL;

	if (stream != NULL && stream->aborting) { /* who waits for it waits on, as with CANN */
		atomic_store(&record->aborted, true);
		record_unuse(record);
		return;
	}
	if (cqe != NULL)
		atomic_store(&record->timestamp, cqe->timestamp);
	else /* dropped with its stream: others wait for it all the same */
		core_event_id_record(record->device, record->id);
	happen(record);
	if (record->instead_of != NULL)
		happen(record->instead_of);
	record_unuse(record);
}

/* A stream of another device waits: that device has an id of its own, which the host records when
 * the record happens, or now if it has. */
static int record_add_relay(struct record *record, uint32_t device, uint32_t id)
{
	struct relay *relay = malloc(sizeof(*relay));

	if (relay == NULL)
		return core_no_memory("no memory for an event");
	core_order(device, NPU_ORDER_RELAY, id, (uint64_t)record->device << 32 | record->id);
	*relay = (struct relay){ .device = device, .id = id };
	LOCKED(&record->lock);
	SLIST_INSERT_HEAD(&record->relays, relay, link);
	if (atomic_load(&record->done))
		end_relays_locked(record, true);
	return CORE_OK;
}

/* Takes a relay back that nobody will wait for, and gives its id back. */
static void record_drop_relay(struct record *record, uint32_t device, uint32_t id)
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

static bool record_has_relays(struct record *record)
{
	LOCKED(&record->lock);

	return !SLIST_EMPTY(&record->relays);
}

/* ---- events ---- */

struct event {
	struct core_slot slot;
	pthread_mutex_t lock;
	enum core_event_kind kind;
	uint32_t flags, device;
	struct record *last, *coming;
	/* The waits for it that are not over, behind the generation of its slot: they may outlive
	 * it, and then count for nobody. */
	_Atomic uint64_t waits;
};

static void prepare_event(void *object)
{
	pthread_mutex_init(&((struct event *)object)->lock, NULL);
}

static struct core_pool events =
	CORE_POOL(3, "event", "aclrtCreateEvent", struct event, prepare_event);

unsigned core_event_live(uint32_t device)
{
	return core_owned_live(&events, device);
}

static void give_event(struct event *event)
{
	pthread_mutex_lock(&event->lock);
	record_unuse(event->last);
	record_unuse(event->coming);
	event->last = event->coming = NULL;
	pthread_mutex_unlock(&event->lock);
	core_pool_give(&events, event);
}

static void end_event(struct event *event)
{
	core_owned_unlink(&events, event);
	give_event(event);
}

void core_event_end_all(const struct context *context)
{
	struct event *event;

	while ((event = core_owned_take(&context->events, context)) != NULL)
		end_event(event);
}

/* Whether streams can wait for it; else it only marks a time or a place. */
static bool can_be_waited_for(const struct event *event)
{
	return event->kind == CORE_EVENT_PLAIN || (event->flags & (CORE_EVENT_SYNC | 0x4u)) != 0;
}

int core_event_create(enum core_event_kind kind, uint32_t flags, void **out_event)
{
	void *owner, *handle = NULL;
	struct context *context = core_context_look(&owner);
	struct event *event;
	int code = CORE_OK;

	if (context == NULL)
		return core_context_none();
	if (core_event_live(context->face.device) >= CORE_EVENT_MAX)
		return core_fail(ACL_ERROR_RT_NO_EVENT_RESOURCE,
				 "device %d has %u events, all that there are",
				 context->face.user_device, CORE_EVENT_MAX);
	event = core_pool_take(&events);
	if (event == NULL)
		return core_no_memory("no memory for an event");
	pthread_mutex_lock(&event->lock);
	event->slot.context = context;
	event->device = context->face.device;
	event->kind = kind;
	event->flags = flags;
	event->last = NULL;
	event->coming = NULL;
	atomic_store(&event->waits, (uint64_t)event->slot.generation << 32);
	if (kind == CORE_EVENT_FLAGS && can_be_waited_for(event))
		event->coming = record_make(event->device, &code);
	pthread_mutex_unlock(&event->lock);
	if (code == CORE_OK)
		handle = core_owned_link(&events, &context->events, event, owner, NULL);
	if (code == CORE_OK && handle == NULL)
		code = core_fail(ACL_ERROR_RT_CONTEXT_NULL,
				 "the current context ended while an event of it was made");
	if (code == CORE_OK)
		*out_event = handle;
	else
		give_event(event);
	return code ?: core_spend(NPU_WORK_EVENT);
}

static int find_event(void *handle, struct event **out)
{
	*out = core_pool_find(&events, handle);
	return *out != NULL ? CORE_OK
			    : core_pool_missing(&events, handle, ACL_ERROR_RT_PARAM_INVALID);
}

/* Takes the event's lock for one that may have been destroyed since it was found. */
static int lock_event(struct event *event, const void *handle)
{
	pthread_mutex_lock(&event->lock);
	if (core_slot_handle(event) == handle)
		return CORE_OK;
	pthread_mutex_unlock(&event->lock);
	return core_pool_missing(&events, handle, ACL_ERROR_RT_PARAM_INVALID);
}

int core_event_destroy(void *handle)
{
	struct event *event;
	int code = find_event(handle, &event);

	if (code != CORE_OK)
		return code;
	if (!core_pool_hide(event, handle))
		return core_invalid("event=%p is being destroyed by another thread", handle);
	core_spend(NPU_WORK_EVENT_DESTROY);
	end_event(event);
	return CORE_OK;
}

/* ---- recorded and waited for ---- */

struct wait {
	void *handle; /* the event's, for people */
	struct event *event;
	uint32_t generation; /* of its slot then */
	struct record *record;
	uint32_t device, id; /* where it waits, and the event there: the record's, or a relay */
	bool relayed;
};

static void end_wait(const struct wait *wait)
{
	uint64_t waits = atomic_load(&wait->event->waits);

	while (waits >> 32 == wait->generation &&
	       !atomic_compare_exchange_weak(&wait->event->waits, &waits, waits - 1)) {
	}
	if (wait->relayed)
		record_drop_relay(wait->record, wait->device, wait->id);
	record_unuse(wait->record);
}

static void wait_done(void *arg, const struct stars_logic_cqe *cqe)
{
	(void)cqe;
	end_wait(arg);
	free(arg);
}

static void describe_wait(void *arg, struct core_stall *out)
{
	const struct wait *wait = arg;
	const struct record *record = wait->record;
	void *handle = atomic_load(&record->stream);
	const struct core_stream *stream = core_pool_find(&core_streams, handle);

	if (handle == NULL)
		snprintf(out->text, sizeof(out->text),
			 "waits for event %p, which nobody has recorded: aclrtRecordEvent on "
			 "another stream ends the wait",
			 wait->handle);
	else if (stream == NULL || atomic_load(&record->done))
		snprintf(out->text, sizeof(out->text),
			 "waits for event %p, which has happened: the word of it is on its way",
			 wait->handle);
	else
		snprintf(out->text, sizeof(out->text),
			 "waits for event %p, which is recorded on stream %d of device %u and has "
			 "not happened",
			 wait->handle, stream->id, stream->device);
	out->next = stream == NULL || atomic_load(&record->done) ? NULL : handle;
}

/* The id that the waiting stream's device knows. Of another device's record: one that the host
 * records when it happens. */
static int find_id(struct wait *wait)
{
	int code;

	if (wait->record->device == wait->device)
		return CORE_GIVE(&wait->id, wait->record->id);
	code = core_event_id_take(wait->device, &wait->id);
	if (code != CORE_OK)
		return code;
	wait->relayed = true;
	return record_add_relay(wait->record, wait->device, wait->id);
}

/* Somebody must see the other stream's completion, or the relay is never run: its own thread, if
 * nobody else does. */
static void watch_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct core_stream *stream = arg;

	(void)cqe;
	stream->attention--;
}

static int watch_record(struct record *record)
{
	struct core_stream *stream = core_pool_find(&core_streams, atomic_load(&record->stream));
	struct stars_event_sqe sqe = { .header.type = STARS_SQE_PLACE_HOLDER };
	struct core_done done = { .fn = watch_done, .arg = stream };
	int code = CORE_OK;

	if (stream == NULL || !record_has_relays(record))
		return CORE_OK;
	pthread_mutex_lock(&stream->lock);
	if (stream->alive)
		code = core_attention_send_locked(stream, &sqe, 1, &done);
	pthread_mutex_unlock(&stream->lock);
	return code;
}

/* The record that this call makes happen; the event's lock is held. */
static struct record *next_record_locked(struct event *event, uint32_t device, int *error)
{
	struct record *coming = event->coming, *record;

	if (coming != NULL && coming->device == device) {
		event->coming = NULL;
		return coming;
	}
	record = record_make(device, error);
	if (record == NULL || coming == NULL)
		return record;
	/* Streams wait for the id of the event's own device already. */
	*error = record_add_relay(record, coming->device, coming->id);
	if (*error != CORE_OK) {
		record_unuse(record);
		return NULL;
	}
	record->instead_of = coming;
	event->coming = NULL;
	return record;
}

/* The record that was to happen cannot be sent: who waits for it already does not wait for ever. */
static void take_back(struct event *event, struct record *record, struct record *before)
{
	pthread_mutex_lock(&event->lock);
	if (event->last == record) {
		event->last = record_use(before);
		record_unuse(record);
	}
	pthread_mutex_unlock(&event->lock);
	record_done(record, NULL);
}

/* The event's lock is not held while an entry is sent, which may have to wait for room. */
int core_event_record(void *handle, void *stream_handle)
{
	struct event *event;
	struct core_stream *stream;
	struct stars_event_sqe sqe = { .header.type = STARS_SQE_EVENT_RECORD };
	struct core_done done = { .fn = record_done };
	struct record *record, *before = NULL;
	int code = find_event(handle, &event) ?: core_stream_find(stream_handle, &stream);

	code = code ?: lock_event(event, handle);
	if (code != CORE_OK)
		return code;
	core_spend(NPU_WORK_EVENT_RECORD);
	record = next_record_locked(event, stream->device, &code);
	if (record != NULL) {
		atomic_store(&record->stream, core_slot_handle(stream));
		if (record->instead_of != NULL)
			atomic_store(&record->instead_of->stream, core_slot_handle(stream));
		before = event->last;
		event->last = record_use(record);
	}
	pthread_mutex_unlock(&event->lock);
	if (record == NULL)
		return code;
	sqe.event_id = (uint16_t)record->id;
	done.arg = record_use(record);
	code = core_stream_send_each(stream, &sqe, 1, &done);
	if (code == CORE_OK)
		code = watch_record(record);
	else
		take_back(event, record, before);
	record_unuse(before);
	record_unuse(record);
	return code;
}

/* Takes over the caller's use of `record`, and the wait, which is counted. */
static int send_wait(const struct wait *made, struct core_stream *stream, uint32_t timeout_s)
{
	struct wait *wait = malloc(sizeof(*wait));
	struct core_done done = { .fn = wait_done, .arg = wait, .describe = describe_wait };
	struct stars_event_sqe sqe = { .header.type = STARS_SQE_EVENT_WAIT, .timeout = timeout_s };
	int code;

	if (wait == NULL) {
		end_wait(made);
		return core_no_memory("no memory to wait for an event");
	}
	*wait = *made;
	code = find_id(wait);
	if (code == CORE_OK && wait->relayed)
		code = watch_record(wait->record);
	if (code == CORE_OK) {
		sqe.event_id = (uint16_t)wait->id;
		code = core_stream_send_each(stream, &sqe, 1, &done);
	}
	if (code != CORE_OK)
		wait_done(wait, NULL);
	return code;
}

/* What a wait for the event waits for, for the caller to record_unuse(); NULL: nothing. */
static struct record *awaited_locked(struct event *event, const struct core_stream *stream)
{
	struct record *record = event->coming != NULL ? event->coming : event->last;

	if (record == NULL || atomic_load(&record->done) ||
	    atomic_load(&record->stream) == core_slot_handle(stream))
		return NULL;
	return record_use(record);
}

int core_event_wait(void *handle, void *stream_handle, uint32_t timeout_s)
{
	struct event *event;
	int code = find_event(handle, &event);
	struct core_stream *stream;
	struct wait wait = { .handle = handle };

	if (code != CORE_OK)
		return code;
	if (!can_be_waited_for(event))
		return core_unsupported("event=%p was made without ACL_EVENT_SYNC (flag %#x): no "
					"stream can wait for it",
					handle, event->flags);
	code = core_stream_find(stream_handle, &stream) ?: lock_event(event, handle);
	if (code != CORE_OK)
		return code;
	if (event->kind == CORE_EVENT_PLAIN && event->coming == NULL && event->last == NULL)
		code = core_invalid(
			"event=%p was never recorded; call aclrtRecordEvent first, or make it with "
			"aclrtCreateEventExWithFlag, for which that is no wait",
			handle);
	else if ((code = core_spend(NPU_WORK_EVENT_WAIT)) == CORE_OK)
		wait.record = awaited_locked(event, stream);
	if (wait.record != NULL) {
		wait.event = event;
		wait.device = stream->device;
		wait.generation = (uint32_t)(atomic_fetch_add(&event->waits, 1) >> 32);
	}
	pthread_mutex_unlock(&event->lock);
	return wait.record == NULL ? code : send_wait(&wait, stream, timeout_s);
}

int core_event_reset(void *handle, void *stream_handle)
{
	struct event *event;
	struct core_stream *stream;
	int code = find_event(handle, &event);

	if (code != CORE_OK)
		return code;
	if (event->kind == CORE_EVENT_AGAIN)
		return core_unsupported("event=%p is one of aclrtCreateEventExWithFlag, which is "
					"recorded again without a reset",
					handle);
	if (!can_be_waited_for(event))
		return core_unsupported(
			"event=%p was made without ACL_EVENT_SYNC: there is nothing to reset",
			handle);
	code = core_stream_find(stream_handle, &stream) ?: lock_event(event, handle);
	if (code != CORE_OK)
		return code;
	code = core_context_stopped(stream->slot.context);
	if (code == CORE_OK && event->coming == NULL)
		event->coming = record_make(event->device, &code);
	pthread_mutex_unlock(&event->lock);
	return code;
}

/* ---- asked ---- */

/* The last record, for the caller to record_unuse(); completions that have come are taken first. */
static struct record *look(struct event *event)
{
	struct core_stream *stream;
	struct record *record;

	pthread_mutex_lock(&event->lock);
	record = record_use(event->last);
	pthread_mutex_unlock(&event->lock);
	if (record == NULL || atomic_load(&record->done))
		return record;
	stream = core_pool_find(&core_streams, atomic_load(&record->stream));
	if (stream != NULL)
		core_stream_reap(stream);
	return record;
}

/* Whether it has happened; the program knows it from now on. */
static bool is_seen(struct record *record)
{
	bool done = record != NULL && atomic_load(&record->done);

	if (done)
		core_order(record->device, NPU_ORDER_EVENT, record->id, 0);
	return done;
}

int core_event_query(void *handle, bool deprecated, bool *out_done)
{
	struct event *event;
	int code = find_event(handle, &event);
	struct record *record;

	if (code != CORE_OK)
		return code;
	if (deprecated && event->kind == CORE_EVENT_AGAIN)
		return core_unsupported("event=%p is one of aclrtCreateEventExWithFlag; ask with "
					"aclrtQueryEventStatus",
					handle);
	core_spend(NPU_WORK_EVENT);
	record = look(event);
	if (record == NULL)
		*out_done = deprecated || event->kind == CORE_EVENT_AGAIN;
	else
		*out_done = is_seen(record);
	record_unuse(record);
	return core_context_stopped(event->slot.context);
}

int core_event_query_waits(void *handle, bool *out_done)
{
	struct event *event;
	int code = find_event(handle, &event);
	struct core_context *context = core_context_peek();

	if (code != CORE_OK)
		return code;
	if (event->kind == CORE_EVENT_AGAIN)
		return core_unsupported("event=%p is one of aclrtCreateEventExWithFlag, whose "
					"waits are not counted",
					handle);
	core_spend(NPU_WORK_EVENT);
	if ((uint32_t)atomic_load(&event->waits) > 0 && context != NULL)
		core_stream_reap_device(context->device);
	*out_done = (uint32_t)atomic_load(&event->waits) == 0;
	return core_context_stopped(event->slot.context);
}

int core_event_synchronize(void *handle, int32_t timeout_ms)
{
	struct event *event;
	int code = find_event(handle, &event);
	uint64_t deadline = core_deadline_ns(timeout_ms), since;
	struct core_stream *stream;
	struct core_wait wait;
	struct record *record;

	if (code != CORE_OK)
		return code;
	core_spend(NPU_WORK_EVENT_SYNC);
	since = core_now_ns();
	record = look(event);
	code = core_context_stopped(event->slot.context);
	stream =
		record == NULL ? NULL : core_pool_find(&core_streams, atomic_load(&record->stream));
	if (stream != NULL && core_is_pump_of(stream)) {
		code = core_invalid(
			"the event's stream waits for the callback that makes this call");
	} else if (stream != NULL) {
		pthread_mutex_lock(&stream->lock);
		wait = core_wait_begin(stream, deadline);
		while (code == CORE_OK && core_wait_holds(stream, &wait) &&
		       !atomic_load(&record->done) && !atomic_load(&record->aborted))
			code = core_stream_progress_locked(stream, &wait);
		if (core_wait_is_aborted(stream, &wait) || atomic_load(&record->aborted))
			code = core_stream_aborted(stream);
		pthread_mutex_unlock(&stream->lock);
		if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
			code = core_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
					 "event=%p has not happened within %d ms", handle,
					 timeout_ms);
	}
	if (is_seen(record) && atomic_load(&record->timestamp) > since)
		core_spend(NPU_WORK_HOST_WAKE);
	record_unuse(record);
	return code ?: core_context_stopped(event->slot.context);
}

/* When the event's last record happened. 107006 with a message if that is not known. */
static int happened(void *handle, const char *argument, uint64_t *out_ns)
{
	struct event *event;
	int code = find_event(handle, &event);
	struct record *record;

	if (code != CORE_OK)
		return code;
	record = look(event);
	if (record == NULL)
		code = core_fail(ACL_ERROR_RT_INTERNAL_ERROR,
				 "%s=%p was never recorded; call aclrtRecordEvent first", argument,
				 handle);
	else if (!atomic_load(&record->done))
		code = core_fail(
			ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
			"%s=%p has not happened yet; synchronize its stream or the event first",
			argument, handle);
	else if (event->kind != CORE_EVENT_PLAIN && (event->flags & CORE_EVENT_TIME_LINE) == 0)
		code = core_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
				 "%s=%p was made without ACL_EVENT_TIME_LINE (flag %#x): it has no "
				 "time stamp",
				 argument, handle, event->flags);
	else
		*out_ns = atomic_load(&record->timestamp);
	record_unuse(record);
	return code;
}

int core_event_elapsed(void *start, void *end, float *out_ms)
{
	uint64_t start_ns = 0, end_ns = 0;

	return happened(start, "startEvent", &start_ns) ?: happened(end, "endEvent", &end_ns)
		?: CORE_GIVE(out_ms, (float)(((double)end_ns - (double)start_ns) * 1e-6));
}

int core_event_timestamp(void *handle, uint64_t *out_us)
{
	uint64_t ns = 0;

	return happened(handle, "event", &ns) ?: CORE_GIVE(out_us, ns / 1000);
}

int core_event_id(void *handle, uint32_t *out_id)
{
	struct event *event;

	return find_event(handle, &event) ?: CORE_GIVE(out_id, event->slot.index);
}
