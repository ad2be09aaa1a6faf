/* SPDX-License-Identifier: Apache-2.0
 *
 * Events. Each record of an event is an object of its own, with a fresh id in the driver: whoever
 * waits for a record waits for that one, however often the event is recorded again meanwhile. An
 * event names two of them: the last that was made, which queries and times are about, and the next,
 * which waits that come before it already wait for.
 */
#include "core-private.h"

#include <stdlib.h>
#include <string.h>

struct record {
	atomic_uint users;          /* the event, the entry that records, each entry that waits */
	uint32_t device, id;        /* the driver's */
	_Atomic(void *) stream;     /* handle; NULL before it is to be sent */
	_Atomic uint64_t timestamp; /* ns */
	atomic_bool done;
	pthread_mutex_t lock; /* of relays */
	struct relay *relays;
	struct record *instead_of; /* on another device, waited for before this one was made; kept
				      until this one goes */
};

/* A stream of another device waits for the record: that device has an id of its own, which the host
 * records. */
struct relay {
	struct relay *next;
	uint32_t device, id;
};

/* Waits for an event that are not over; they may outlive the event. */
struct waits {
	atomic_uint users, count;
};

struct event {
	struct core_slot slot;
	pthread_mutex_t lock;
	struct context *context;
	struct event *next; /* of the context; core_lists_lock */
	struct event **link;
	enum core_event_kind kind;
	uint32_t flags, device;
	struct record *last, *coming;
	struct waits *waits;
};

static void prepare_event(void *object)
{
	pthread_mutex_init(&((struct event *)object)->lock, NULL);
}

static struct core_pool events = CORE_POOL(3, struct event, prepare_event);
static atomic_uint live[CORE_DEVICE_MAX];

unsigned core_event_live(uint32_t device)
{
	return device < CORE_DEVICE_MAX ? atomic_load(&live[device]) : 0;
}

/* ---- ids in the driver ---- */

static drvError_t take_id(uint32_t device, uint32_t *out_id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID };
	struct halResourceIdOutputInfo out = { 0 };
	drvError_t code = drv == NULL ? DRV_ERROR_PROCESS_EXIT
				      : npu_call(drv, halResourceIdAlloc, device, &in, &out);

	*out_id = out.resourceId;
	return code;
}

static void give_id(uint32_t device, uint32_t id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };

	if (drv != NULL)
		npu_call(drv, halResourceIdFree, device, &in);
}

static void record_by_host(uint32_t device, uint32_t id)
{
	struct npu_driver *drv = core_driver();
	struct halResourceIdInputInfo in = { .type = DRV_EVENT_ID, .resourceId = id };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RECORD };

	if (drv != NULL)
		npu_call(drv, halResourceConfig, device, &in, &config);
}

/* ---- records ---- */

static struct record *make_record(uint32_t device, const char *call, int *error)
{
	struct record *record = calloc(1, sizeof(*record));
	drvError_t code;

	if (record == NULL) {
		*error = core_fail(CORE_MEMORY_ALLOCATION, call, "no memory for an event");
		return NULL;
	}
	record->device = device;
	atomic_store(&record->users, 1);
	pthread_mutex_init(&record->lock, NULL);
	code = take_id(device, &record->id);
	if (code == DRV_ERROR_NONE)
		return record;
	*error = core_result(call, code);
	free(record);
	return NULL;
}

static struct record *use(struct record *record)
{
	if (record != NULL)
		atomic_fetch_add(&record->users, 1);
	return record;
}

static void unuse(struct record *record)
{
	if (record == NULL || atomic_fetch_sub(&record->users, 1) > 1)
		return;
	unuse(record->instead_of);
	give_id(record->device, record->id);
	while (record->relays != NULL) {
		struct relay *next = record->relays->next;

		free(record->relays);
		record->relays = next;
	}
	pthread_mutex_destroy(&record->lock);
	free(record);
}

/* Under the lock of the stream that recorded. */
static void record_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct record *record = arg;
	struct relay *relay;

	if (cqe != NULL)
		atomic_store(&record->timestamp, cqe->timestamp);
	else /* dropped with its stream: others wait for it all the same */
		record_by_host(record->device, record->id);
	pthread_mutex_lock(&record->lock);
	atomic_store(&record->done, true);
	relay = record->relays;
	record->relays = NULL;
	pthread_mutex_unlock(&record->lock);
	while (relay != NULL) {
		struct relay *next = relay->next;

		record_by_host(relay->device, relay->id);
		free(relay);
		relay = next;
	}
	unuse(record);
}

static void unuse_waits(struct waits *waits)
{
	if (waits != NULL && atomic_fetch_sub(&waits->users, 1) == 1)
		free(waits);
}

/* ---- made, found, ended ---- */

static void link_event(struct event *event)
{
	struct event **first = &event->context->events;

	pthread_mutex_lock(&core_lists_lock);
	event->next = *first;
	event->link = first;
	if (event->next != NULL)
		event->next->link = &event->next;
	*first = event;
	pthread_mutex_unlock(&core_lists_lock);
}

static void end_event(struct event *event)
{
	pthread_mutex_lock(&core_lists_lock);
	*event->link = event->next;
	if (event->next != NULL)
		event->next->link = event->link;
	pthread_mutex_unlock(&core_lists_lock);
	pthread_mutex_lock(&event->lock);
	unuse(event->last);
	unuse(event->coming);
	event->last = event->coming = NULL;
	unuse_waits(event->waits);
	event->waits = NULL;
	pthread_mutex_unlock(&event->lock);
	atomic_fetch_sub(&live[event->device], 1);
	core_pool_give(&events, event);
}

/* An event that is ours to end, or NULL. False: none is left, not even one that another thread is
 * ending. */
static bool take_event(struct context *context, struct event **out)
{
	struct event *event;
	bool left;

	pthread_mutex_lock(&core_lists_lock);
	event = context->events;
	left = event != NULL;
	while (event != NULL && !core_pool_hide(&events, event))
		event = event->next;
	pthread_mutex_unlock(&core_lists_lock);
	*out = event;
	return left;
}

void core_event_end_all(struct context *context)
{
	struct event *event;

	while (take_event(context, &event))
		if (event != NULL)
			end_event(event);
}

/* Whether streams can wait for it; else it only marks a time or a place. */
static bool can_be_waited_for(const struct event *event)
{
	return event->kind == CORE_EVENT_PLAIN || (event->flags & (CORE_EVENT_SYNC | 0x4u)) != 0;
}

int core_event_create(enum core_event_kind kind, uint32_t flags, void **out_event, const char *call)
{
	struct core_context *face = core_context_peek();
	struct event *event;
	int code = CORE_OK;

	if (face == NULL)
		return core_context_none(call);
	if (core_event_live(face->device) >= CORE_EVENT_MAX)
		return core_fail(CORE_NO_EVENT, call, "device %d has %u events, all that there are",
				 face->user_device, CORE_EVENT_MAX);
	event = core_pool_take(&events);
	if (event == NULL)
		return core_fail(CORE_MEMORY_ALLOCATION, call, "no memory for an event");
	pthread_mutex_lock(&event->lock);
	event->context = core_context_of(face);
	event->device = face->device;
	event->kind = kind;
	event->flags = flags;
	event->last = NULL;
	event->coming = NULL;
	event->waits = calloc(1, sizeof(*event->waits));
	if (event->waits == NULL)
		code = core_fail(CORE_MEMORY_ALLOCATION, call, "no memory for an event");
	else
		atomic_store(&event->waits->users, 1);
	if (code == CORE_OK && kind == CORE_EVENT_FLAGS && can_be_waited_for(event))
		event->coming = make_record(event->device, call, &code);
	pthread_mutex_unlock(&event->lock);
	if (code != CORE_OK) {
		unuse_waits(event->waits);
		core_pool_give(&events, event);
		return code;
	}
	atomic_fetch_add(&live[event->device], 1);
	link_event(event);
	*out_event = core_pool_publish(&events, event);
	return CORE_OK;
}

static struct event *find_event(void *handle, const char *call, int *error)
{
	struct event *event = core_is_forked() ? NULL : core_pool_find(&events, handle);

	*error = CORE_OK;
	if (event != NULL)
		return event;
	*error = core_is_forked() ? core_context_none(call)
				  : core_fail(CORE_PARAM_INVALID, call,
					      "event=%p is no event of this process: it was "
					      "destroyed, its device was reset, or "
					      "it was not made by aclrtCreateEvent",
					      handle);
	return NULL;
}

int core_event_destroy(void *handle, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);

	if (event == NULL)
		return code;
	if (!core_pool_hide(&events, event))
		return core_fail(CORE_PARAM_INVALID, call,
				 "event=%p is being destroyed by another thread", handle);
	end_event(event);
	return CORE_OK;
}

/* ---- recorded and waited for ---- */

static void fill_entry(struct stars_event_sqe *sqe, uint8_t type, uint32_t id, uint32_t timeout_s)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->header.type = type;
	sqe->event_id = (uint16_t)id;
	sqe->timeout = timeout_s;
}

struct wait {
	struct record *record;
	struct waits *waits;
	uint32_t relay_device, relay_id;
	bool relayed;
};

static void wait_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct wait *wait = arg;

	(void)cqe;
	atomic_fetch_sub(&wait->waits->count, 1);
	unuse_waits(wait->waits);
	if (wait->relayed)
		give_id(wait->relay_device, wait->relay_id);
	unuse(wait->record);
	free(wait);
}

/* When the record happens, or now if it has, the host records that id of another device. */
static int add_relay(struct record *record, uint32_t device, uint32_t id, const char *call)
{
	struct relay *relay = malloc(sizeof(*relay));
	bool done;

	if (relay == NULL)
		return core_fail(CORE_MEMORY_ALLOCATION, call, "no memory for an event");
	pthread_mutex_lock(&record->lock);
	done = atomic_load(&record->done);
	if (!done) {
		*relay = (struct relay){ .next = record->relays, .device = device, .id = id };
		record->relays = relay;
	}
	pthread_mutex_unlock(&record->lock);
	if (done) {
		record_by_host(device, id);
		free(relay);
	}
	return CORE_OK;
}

/* The id that the waiting stream's device knows. Of another device's record: one that the host
 * records when it happens. */
static int local_id(struct wait *wait, uint32_t device, uint32_t *out_id, const char *call)
{
	struct record *record = wait->record;
	drvError_t code;

	*out_id = record->id;
	if (record->device == device)
		return CORE_OK;
	code = take_id(device, out_id);
	if (code != DRV_ERROR_NONE)
		return core_result(call, code);
	wait->relayed = true;
	wait->relay_device = device;
	wait->relay_id = *out_id;
	return add_relay(record, device, *out_id, call);
}

/* Takes a relay back that nobody will wait for. */
static void drop_relay(struct wait *wait)
{
	struct record *record = wait->record;

	if (!wait->relayed)
		return;
	pthread_mutex_lock(&record->lock);
	for (struct relay **place = &record->relays; *place != NULL; place = &(*place)->next) {
		struct relay *relay = *place;

		if (relay->device != wait->relay_device || relay->id != wait->relay_id)
			continue;
		*place = relay->next;
		free(relay);
		break;
	}
	pthread_mutex_unlock(&record->lock);
	give_id(wait->relay_device, wait->relay_id);
}

/* Somebody must see the other stream's completion, or the relay is never run: its own thread, if
 * nobody else does. */
static void watch_done(void *arg, const struct stars_logic_cqe *cqe)
{
	struct core_stream *stream = arg;

	(void)cqe;
	core_attention_end_locked(stream);
}

static int watch_record(struct record *record, const char *call)
{
	struct core_stream *stream = core_pool_find(&core_streams, atomic_load(&record->stream));
	struct stars_event_sqe sqe;
	struct core_done done = { .fn = watch_done, .arg = stream };
	int code = CORE_OK;
	bool relays;

	pthread_mutex_lock(&record->lock);
	relays = record->relays != NULL;
	pthread_mutex_unlock(&record->lock);
	if (stream == NULL || !relays)
		return CORE_OK;
	fill_entry(&sqe, STARS_SQE_PLACE_HOLDER, 0, 0);
	pthread_mutex_lock(&stream->lock);
	if (stream->alive)
		code = core_attention_begin_locked(stream, call);
	if (stream->alive && code == CORE_OK) {
		code = core_stream_send_locked(stream, &sqe, 1, &done, call);
		if (code != CORE_OK)
			core_attention_end_locked(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	return code;
}

/* The record that this call makes happen; the event's lock is held. */
static struct record *next_record_locked(struct event *event, uint32_t device, const char *call,
					 int *error)
{
	struct record *coming = event->coming, *record;

	if (coming != NULL && coming->device == device) {
		event->coming = NULL;
		return coming;
	}
	record = make_record(device, call, error);
	if (record == NULL || coming == NULL)
		return record;
	/* Streams wait for the id of the event's own device already. */
	*error = add_relay(record, coming->device, coming->id, call);
	if (*error != CORE_OK) {
		unuse(record);
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
		event->last = use(before);
		unuse(record);
	}
	pthread_mutex_unlock(&event->lock);
	record_done(record, NULL);
}

/* The event's lock is not held while an entry is sent, which may have to wait for room. */
int core_event_record(void *handle, void *stream_handle, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	struct core_stream *stream;
	struct stars_event_sqe sqe;
	struct core_done done = { .fn = record_done };
	struct record *record, *before = NULL;

	if (event == NULL)
		return code;
	stream = core_stream_find(stream_handle, call, &code);
	if (stream == NULL)
		return code;
	pthread_mutex_lock(&event->lock);
	record = next_record_locked(event, stream->device, call, &code);
	if (record != NULL) {
		atomic_store(&record->stream, core_slot_handle(stream));
		before = event->last;
		event->last = use(record);
	}
	pthread_mutex_unlock(&event->lock);
	if (record == NULL)
		return code;
	fill_entry(&sqe, STARS_SQE_EVENT_RECORD, record->id, 0);
	done.arg = use(record);
	code = core_stream_send_each(stream, &sqe, 1, &done, call);
	if (code == CORE_OK)
		code = watch_record(record, call);
	else
		take_back(event, record, before);
	unuse(before);
	unuse(record);
	return code;
}

/* Takes over the caller's use of `waits` and `record`. */
static int send_wait(struct waits *waits, struct record *record, struct core_stream *stream,
		     uint32_t timeout_s, const char *call)
{
	struct wait *wait = calloc(1, sizeof(*wait));
	struct core_done done = { .fn = wait_done, .arg = wait };
	struct stars_event_sqe sqe;
	uint32_t id;
	int code = CORE_OK;

	atomic_fetch_add(&waits->count, 1);
	if (wait == NULL)
		code = core_fail(CORE_MEMORY_ALLOCATION, call, "no memory to wait for an event");
	if (code == CORE_OK) {
		*wait = (struct wait){ .record = record, .waits = waits };
		code = local_id(wait, stream->device, &id, call);
	}
	if (code == CORE_OK && wait->relayed)
		code = watch_record(record, call);
	if (code == CORE_OK) {
		fill_entry(&sqe, STARS_SQE_EVENT_WAIT, id, timeout_s);
		code = core_stream_send_each(stream, &sqe, 1, &done, call);
	}
	if (code != CORE_OK) {
		if (wait != NULL)
			drop_relay(wait);
		atomic_fetch_sub(&waits->count, 1);
		unuse_waits(waits);
		unuse(record);
		free(wait);
	}
	return code;
}

/* What a wait for the event waits for, for the caller to unuse(); NULL: nothing. */
static struct record *awaited_locked(struct event *event, const struct core_stream *stream)
{
	struct record *record = event->coming != NULL ? event->coming : event->last;

	if (record == NULL || atomic_load(&record->done) ||
	    atomic_load(&record->stream) == core_slot_handle(stream))
		return NULL;
	return use(record);
}

int core_event_wait(void *handle, void *stream_handle, uint32_t timeout_s, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	struct core_stream *stream;
	struct record *record = NULL;
	struct waits *waits = NULL;

	if (event == NULL)
		return code;
	if (!can_be_waited_for(event))
		return core_fail(CORE_NOT_SUPPORT, call,
				 "event=%p was made without ACL_EVENT_SYNC (flag %#x): no stream "
				 "can wait for it",
				 handle, event->flags);
	stream = core_stream_find(stream_handle, call, &code);
	if (stream == NULL)
		return code;
	pthread_mutex_lock(&event->lock);
	if (event->kind == CORE_EVENT_PLAIN && event->coming == NULL && event->last == NULL)
		code = core_fail(
			CORE_PARAM_INVALID, call,
			"event=%p was never recorded; call aclrtRecordEvent first, or make it with "
			"aclrtCreateEventExWithFlag, for which that is no wait",
			handle);
	else
		record = awaited_locked(event, stream);
	if (record != NULL) {
		waits = event->waits;
		atomic_fetch_add(&waits->users, 1);
	}
	pthread_mutex_unlock(&event->lock);
	return record == NULL ? code : send_wait(waits, record, stream, timeout_s, call);
}

int core_event_reset(void *handle, void *stream_handle, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);

	if (event == NULL)
		return code;
	if (event->kind == CORE_EVENT_AGAIN)
		return core_fail(CORE_NOT_SUPPORT, call,
				 "event=%p is one of aclrtCreateEventExWithFlag, which is recorded "
				 "again without a reset",
				 handle);
	if (!can_be_waited_for(event))
		return core_fail(
			CORE_NOT_SUPPORT, call,
			"event=%p was made without ACL_EVENT_SYNC: there is nothing to reset",
			handle);
	if (core_stream_find(stream_handle, call, &code) == NULL)
		return code;
	pthread_mutex_lock(&event->lock);
	if (event->coming == NULL)
		event->coming = make_record(event->device, call, &code);
	pthread_mutex_unlock(&event->lock);
	return code;
}

/* ---- asked ---- */

/* The last record, for the caller to unuse(); completions that have come are taken first. */
static struct record *look(struct event *event)
{
	struct core_stream *stream;
	struct record *record;

	pthread_mutex_lock(&event->lock);
	record = use(event->last);
	pthread_mutex_unlock(&event->lock);
	if (record == NULL || atomic_load(&record->done))
		return record;
	stream = core_pool_find(&core_streams, atomic_load(&record->stream));
	if (stream != NULL) {
		pthread_mutex_lock(&stream->lock);
		core_stream_reap_locked(stream);
		pthread_mutex_unlock(&stream->lock);
	}
	return record;
}

int core_event_query(void *handle, bool deprecated, bool *out_done, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	struct record *record;

	if (event == NULL)
		return code;
	if (deprecated && event->kind == CORE_EVENT_AGAIN)
		return core_fail(CORE_NOT_SUPPORT, call,
				 "event=%p is one of aclrtCreateEventExWithFlag; ask with "
				 "aclrtQueryEventStatus",
				 handle);
	record = look(event);
	if (record == NULL)
		*out_done = deprecated || event->kind == CORE_EVENT_AGAIN;
	else
		*out_done = atomic_load(&record->done);
	unuse(record);
	return CORE_OK;
}

int core_event_query_waits(void *handle, bool *out_done, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	struct core_context *context = core_context_peek();
	struct waits *waits;

	if (event == NULL)
		return code;
	if (event->kind == CORE_EVENT_AGAIN)
		return core_fail(CORE_NOT_SUPPORT, call,
				 "event=%p is one of aclrtCreateEventExWithFlag, whose waits are "
				 "not counted",
				 handle);
	pthread_mutex_lock(&event->lock);
	waits = event->waits;
	if (waits != NULL)
		atomic_fetch_add(&waits->users, 1);
	pthread_mutex_unlock(&event->lock);
	if (waits != NULL && atomic_load(&waits->count) > 0 && context != NULL)
		core_stream_reap_device(context->device);
	*out_done = waits == NULL || atomic_load(&waits->count) == 0;
	unuse_waits(waits);
	return CORE_OK;
}

int core_event_synchronize(void *handle, int32_t timeout_ms, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	uint64_t deadline = core_deadline_ns(timeout_ms);
	struct core_stream *stream;
	struct record *record;

	if (event == NULL)
		return code;
	record = look(event);
	stream =
		record == NULL ? NULL : core_pool_find(&core_streams, atomic_load(&record->stream));
	if (stream != NULL && core_is_pump_of(stream)) {
		code = core_fail(CORE_PARAM_INVALID, call,
				 "the event's stream waits for the callback that makes this call");
	} else if (stream != NULL) {
		pthread_mutex_lock(&stream->lock);
		while (code == CORE_OK && stream->alive && !atomic_load(&record->done))
			code = core_stream_progress_locked(stream, deadline, call);
		pthread_mutex_unlock(&stream->lock);
		if (code == CORE_STREAM_SYNC_TIMEOUT)
			code = core_fail(CORE_EVENT_SYNC_TIMEOUT, call,
					 "event=%p has not happened within %d ms", handle,
					 timeout_ms);
	}
	unuse(record);
	return code;
}

/* When the event's last record happened. 107006 with a message if that is not known. */
static int happened(void *handle, const char *argument, uint64_t *out_ns, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);
	struct record *record;

	if (event == NULL)
		return code;
	record = look(event);
	if (record == NULL)
		code = core_fail(CORE_INTERNAL, call,
				 "%s=%p was never recorded; call aclrtRecordEvent first", argument,
				 handle);
	else if (!atomic_load(&record->done))
		code = core_fail(
			CORE_EVENT_TIMESTAMP_INVALID, call,
			"%s=%p has not happened yet; synchronize its stream or the event first",
			argument, handle);
	else if (event->kind != CORE_EVENT_PLAIN && (event->flags & CORE_EVENT_TIME_LINE) == 0)
		code = core_fail(CORE_EVENT_TIMESTAMP_INVALID, call,
				 "%s=%p was made without ACL_EVENT_TIME_LINE (flag %#x): it has no "
				 "time stamp",
				 argument, handle, event->flags);
	else
		*out_ns = atomic_load(&record->timestamp);
	unuse(record);
	return code;
}

int core_event_elapsed(void *start, void *end, float *out_ms, const char *call)
{
	uint64_t start_ns, end_ns;
	int code = happened(start, "startEvent", &start_ns, call);

	if (code == CORE_OK)
		code = happened(end, "endEvent", &end_ns, call);
	if (code == CORE_OK)
		*out_ms = (float)(((double)end_ns - (double)start_ns) * 1e-6);
	return code;
}

int core_event_timestamp(void *handle, uint64_t *out_us, const char *call)
{
	uint64_t ns;
	int code = happened(handle, "event", &ns, call);

	if (code == CORE_OK)
		*out_us = ns / 1000;
	return code;
}

int core_event_id(void *handle, uint32_t *out_id, const char *call)
{
	int code;
	struct event *event = find_event(handle, call, &code);

	if (event != NULL)
		*out_id = event->slot.index;
	return code;
}
