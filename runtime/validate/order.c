/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens before what: the clocks and their edges; and accesses on their way, in an array
 * sorted by address: as many as queues have entries.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>

#define TASK_IDS 0x8000u
/* Of accesses: pages that are not touched cost nothing; an array that grows from little is copied,
 * and its old places stay. */
#define ROOM_FIRST 65536u

struct order_edge {
	uint64_t number; /* of the entry that waits */
	struct clock clock;
};

/* ---- clocks ---- */

static void advance(struct clock *clock, unsigned stream, uint64_t number)
{
	if (stream >= clock->count) {
		clock->at = g_renew(uint64_t, clock->at, stream + 1);
		memset(clock->at + clock->count, 0,
		       (stream + 1 - clock->count) * sizeof(*clock->at));
		clock->count = stream + 1;
	}
	if (clock->at[stream] < number)
		clock->at[stream] = number;
}

static void join(struct clock *clock, const struct clock *other)
{
	for (unsigned i = other->count; i-- > 0;)
		if (other->at[i] > 0)
			advance(clock, i, other->at[i]);
	clock->taint = MAX(clock->taint, other->taint);
}

static struct clock copy_of(const struct clock *clock)
{
	struct clock copy = { .count = clock->count, .taint = clock->taint };

	copy.at = g_memdup2(clock->at, clock->count * sizeof(*clock->at));
	return copy;
}

static void clear_edge(gpointer data)
{
	g_free(((struct order_edge *)data)->clock.at);
}

/* ---- streams ---- */

static gpointer stream_key(uint32_t dev, uint32_t id)
{
	return (gpointer)(uintptr_t)((uint64_t)dev << 32 | id);
}

static void free_stream(gpointer data)
{
	struct order_stream *stream = data;

	g_array_unref(stream->edges);
	g_free(stream->clock.at);
	g_free(stream);
}

static void free_event(gpointer data)
{
	g_free(((struct order_event *)data)->clock.at);
	g_free(data);
}

struct order *order_new(void)
{
	struct order *order = g_new0(struct order, 1);

	order->streams = g_ptr_array_new_with_free_func(free_stream);
	order->by_id = g_hash_table_new(g_direct_hash, g_direct_equal);
	order->events = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, free_event);
	order->sorted = g_array_sized_new(FALSE, FALSE, sizeof(struct access), ROOM_FIRST);
	order->host_version = 1;
	return order;
}

void order_free(struct order *order)
{
	g_hash_table_unref(order->by_id);
	g_hash_table_unref(order->events);
	g_ptr_array_unref(order->streams);
	g_array_unref(order->sorted);
	g_free(order->host.at);
	g_free(order);
}

struct order_stream *order_stream(struct order *order, uint32_t dev, uint32_t id)
{
	struct order_stream *stream = g_hash_table_lookup(order->by_id, stream_key(dev, id));

	if (stream != NULL)
		return stream;
	for (unsigned i = 0; i < order->streams->len && stream == NULL; i++) {
		struct order_stream *old = g_ptr_array_index(order->streams, i);

		stream = old->live ? NULL : old;
	}
	if (stream == NULL) {
		stream = g_new0(struct order_stream, 1);
		stream->index = order->streams->len;
		stream->edges = g_array_new(FALSE, FALSE, sizeof(struct order_edge));
		g_array_set_clear_func(stream->edges, clear_edge);
		g_ptr_array_add(order->streams, stream);
	}
	stream->dev = dev;
	stream->id = id;
	stream->base = stream->sent;
	stream->host_version = 0;
	stream->live = true;
	g_hash_table_insert(order->by_id, stream_key(dev, id), stream);
	return stream;
}

const char *order_stream_text(const struct order *order, unsigned index)
{
	const struct order_stream *stream = order_stream_at(order, index);

	return npu_text("queue %u of device %u", stream->id, stream->dev);
}

void order_stream_end(struct order *order, uint32_t dev, uint32_t id)
{
	struct order_stream *stream = g_hash_table_lookup(order->by_id, stream_key(dev, id));

	if (stream == NULL)
		return;
	order_seen(order, stream, stream->sent, false);
	g_hash_table_remove(order->by_id, stream_key(dev, id));
	stream->live = false;
	stream->clock.taint = 0;
}

/* ---- entries ---- */

uint64_t order_entry(struct order *order, struct order_stream *stream, uint16_t task)
{
	if (stream->host_version != order->host_version) {
		join(&stream->clock, &order->host);
		stream->host_version = order->host_version;
	}
	stream->last_task = task;
	advance(&stream->clock, stream->index, ++stream->sent);
	return stream->sent;
}

static void add_edge(struct order_stream *stream, const struct clock *clock)
{
	struct order_edge edge;

	join(&stream->clock, clock);
	edge = (struct order_edge){ .number = stream->sent, .clock = copy_of(clock) };
	g_array_append_val(stream->edges, edge);
}

void order_resolve(struct order *order, const struct clock *clock)
{
	for (unsigned i = 0; order->taints > order->settled && i < order->streams->len; i++) {
		struct order_stream *stream = g_ptr_array_index(order->streams, i);

		if (stream->live && stream->clock.taint > order->settled)
			add_edge(stream, clock);
	}
}

void order_value_wait(struct order *order, struct order_stream *stream)
{
	stream->clock.taint = ++order->taints;
}

struct order_event *order_event(struct order *order, uint64_t name)
{
	gpointer key = (gpointer)(uintptr_t)(name + 1);
	struct order_event *event = g_hash_table_lookup(order->events, key);

	if (event == NULL) {
		event = g_new0(struct order_event, 1);
		g_hash_table_insert(order->events, key, event);
	}
	return event;
}

static struct order_event *source_of(struct order *order, uint64_t name)
{
	uint64_t relay_of = order_event(order, name)->relay_of;

	return order_event(order, relay_of != 0 ? relay_of - 1 : name);
}

static void set_recorded(struct order_event *event, const struct clock *clock)
{
	g_free(event->clock.at);
	event->clock = copy_of(clock);
	event->recorded = true;
}

void order_record(struct order *order, struct order_stream *stream, uint64_t name)
{
	set_recorded(order_event(order, name), &stream->clock);
	order_resolve(order, &stream->clock);
}

void order_wait(struct order *order, struct order_stream *stream, uint64_t name)
{
	struct order_event *event = source_of(order, name);

	if (event->recorded)
		add_edge(stream, &event->clock);
	else
		order_value_wait(order, stream);
}

/* ---- events by the host ---- */

void order_host_record(struct order *order, uint64_t name)
{
	struct order_event *event = order_event(order, name);

	if (event->relay_of != 0)
		return;
	set_recorded(event, &order->host);
	order_resolve(order, &order->host);
}

void order_event_end(struct order *order, uint64_t name)
{
	g_hash_table_remove(order->events, (gpointer)(uintptr_t)(name + 1));
}

/* ---- what the host knows ---- */

void order_seen(struct order *order, struct order_stream *stream, uint64_t number, bool of_queue)
{
	unsigned passed = 0;

	number = MIN(number + (of_queue ? stream->base : 0), stream->sent);
	while (passed < stream->edges->len) {
		const struct order_edge *edge =
			&g_array_index(stream->edges, struct order_edge, passed);

		if (edge->number > number)
			break;
		join(&order->host, &edge->clock);
		passed++;
	}
	if (passed > 0)
		g_array_remove_range(stream->edges, 0, passed);
	advance(&order->host, stream->index, number);
	if (number == stream->sent)
		join(&order->host, &stream->clock);
	order->host_version++;
}

void order_seen_event(struct order *order, uint64_t name)
{
	struct order_event *event = source_of(order, name);

	if (!event->recorded)
		return;
	join(&order->host, &event->clock);
	order->host_version++;
}

void order_seen_task(struct order *order, struct order_stream *stream, uint16_t task)
{
	uint64_t behind = (unsigned)(stream->last_task - task) & (TASK_IDS - 1);

	if (behind < stream->sent - stream->base)
		order_seen(order, stream, stream->sent - behind, false);
}

bool order_is_tainted(const struct order *order, uint64_t taint)
{
	return taint > order->settled;
}

bool order_is_before(const struct order *order, unsigned stream, uint64_t number,
		     const struct clock *clock)
{
	return order_is_tainted(order, clock->taint) ||
	       (stream < clock->count && clock->at[stream] >= number);
}

void order_quiet(struct order *order)
{
	for (unsigned i = 0; i < order->streams->len; i++) {
		const struct order_stream *stream = g_ptr_array_index(order->streams, i);

		if (stream->live && (i >= order->host.count || order->host.at[i] < stream->sent))
			return;
	}
	order->settled = order->taints;
}

/* ---- accesses ---- */

/* The first that begins at the address or behind it. */
static guint first_from(const struct order *order, uint64_t begin)
{
	guint low = 0, high = order->sorted->len;

	while (low < high) {
		guint middle = (low + high) / 2;

		if (g_array_index(order->sorted, struct access, middle).begin < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void accesses_add(struct order *order, const struct access *access)
{
	guint at = first_from(order, access->begin);

	for (guint i = at; i < order->sorted->len; i++) {
		struct access *old = &g_array_index(order->sorted, struct access, i);

		if (old->begin != access->begin)
			break;
		if (old->end == access->end && old->stream == access->stream &&
		    old->write <= access->write && !old->hashed && old->mark == 0 && !old->closed) {
			*old = *access;
			return;
		}
	}
	g_array_insert_val(order->sorted, at, *access);
	order->longest = MAX(order->longest, access->end - access->begin);
}

struct access *accesses_next(const struct order *order, struct access_search *search)
{
	if (search->next == 0)
		search->next = first_from(
			order, search->begin > order->longest ? search->begin - order->longest : 0);
	while (search->next < order->sorted->len) {
		struct access *access =
			&g_array_index(order->sorted, struct access, search->next++);

		if (access->begin >= search->end)
			return NULL;
		if (access->end > search->begin && (access->write || !search->writes) &&
		    (search->after == NULL ||
		     !order_is_before(order, access->stream, access->number, search->after)) &&
		    !(search->surely && order_is_tainted(order, access->taint)))
			return access;
	}
	return NULL;
}

bool accesses_meet(const struct order *order, uint64_t begin, uint64_t end, bool write)
{
	struct access_search search = { .begin = begin, .end = end, .writes = write };

	return accesses_next(order, &search) != NULL;
}

void accesses_unwatch(struct order *order, uint64_t begin, uint64_t end, bool all)
{
	struct access_search search = { .begin = begin, .end = end };
	struct access *access;

	while ((access = accesses_next(order, &search)) != NULL) {
		access->hashed = 0;
		if (all)
			access->mark = access->closed = 0;
	}
}
