/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens before what: the clocks and their edges; and accesses on their way, in an array
 * sorted by address: as many as queues have entries.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>

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

static void free_edge(gpointer data)
{
	g_free(((struct order_edge *)data)->clock.at);
	g_free(data);
}

/* ---- streams ---- */

static void free_stream(gpointer data)
{
	struct order_stream *stream = data;

	g_queue_clear_full(&stream->edges, free_edge);
	g_free(stream->clock.at);
	g_free(stream);
}

static void free_event(gpointer data)
{
	g_free(((struct order_event *)data)->clock.at);
	g_free(data);
}

void order_open(struct validate *v)
{
	v->streams = g_ptr_array_new_with_free_func(free_stream);
	v->events = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, free_event);
	v->sorted = g_array_sized_new(FALSE, FALSE, sizeof(struct access), ROOM_FIRST);
	v->host_version = 1;
}

void order_close(struct validate *v)
{
	g_hash_table_unref(v->events);
	g_ptr_array_unref(v->streams);
	g_array_unref(v->sorted);
	g_free(v->host.at);
}

struct order_stream *order_stream(struct validate *v, uint32_t dev, uint32_t id)
{
	struct order_stream *stream = NULL;

	for (unsigned i = 0; i < v->streams->len; i++) {
		struct order_stream *old = g_ptr_array_index(v->streams, i);

		if (old->live && old->dev == dev && old->id == id)
			return old;
		stream = old->live ? stream : old;
	}
	if (stream == NULL) {
		stream = g_new0(struct order_stream, 1);
		stream->index = v->streams->len;
		g_ptr_array_add(v->streams, stream);
	}
	stream->number = ++v->made;
	stream->dev = dev;
	stream->id = id;
	stream->base = stream->sent;
	stream->host_version = 0;
	stream->depth = 0;
	stream->told = false;
	stream->live = true;
	return stream;
}

const char *order_stream_text(const struct validate *v, unsigned index)
{
	const struct order_stream *stream = order_stream_at(v, index);

	return npu_text("queue %u of device %u", stream->id, stream->dev);
}

void order_stream_end(struct validate *v, struct order_stream *stream)
{
	order_seen(v, stream, stream->sent, false);
	stream->live = false;
	stream->clock.taint = 0;
}

/* ---- entries ---- */

uint64_t order_entry(struct validate *v, struct order_stream *stream, uint16_t task)
{
	if (stream->host_version != v->host_version) {
		join(&stream->clock, &v->host);
		stream->host_version = v->host_version;
	}
	stream->last_task = task;
	advance(&stream->clock, stream->index, ++stream->sent);
	return stream->sent;
}

static void add_edge(struct order_stream *stream, const struct clock *clock)
{
	struct order_edge *edge = g_new(struct order_edge, 1);

	join(&stream->clock, clock);
	*edge = (struct order_edge){ .number = stream->sent, .clock = copy_of(clock) };
	g_queue_push_tail(&stream->edges, edge);
}

void order_resolve(struct validate *v, const struct clock *clock)
{
	for (unsigned i = 0; v->taints > v->settled && i < v->streams->len; i++) {
		struct order_stream *stream = g_ptr_array_index(v->streams, i);

		if (stream->live && stream->clock.taint > v->settled)
			add_edge(stream, clock);
	}
}

void order_value_wait(struct validate *v, struct order_stream *stream)
{
	stream->clock.taint = ++v->taints;
}

struct order_event *order_event(struct validate *v, uint64_t name)
{
	struct order_event *event = g_hash_table_lookup(v->events, EVENT_KEY(name));

	if (event == NULL) {
		event = g_new0(struct order_event, 1);
		g_hash_table_insert(v->events, EVENT_KEY(name), event);
	}
	return event;
}

static struct order_event *source_of(struct validate *v, uint64_t name)
{
	uint64_t relay_of = order_event(v, name)->relay_of;

	return order_event(v, relay_of != 0 ? relay_of - 1 : name);
}

void order_record(struct validate *v, const struct clock *clock, uint64_t name)
{
	struct order_event *event = order_event(v, name);

	g_free(event->clock.at);
	*event = (struct order_event){ ++v->made, true, 0, copy_of(clock) };
	order_resolve(v, clock);
}

void order_wait(struct validate *v, struct order_stream *stream, uint64_t name)
{
	struct order_event *event = source_of(v, name);

	if (event->recorded)
		add_edge(stream, &event->clock);
	else
		order_value_wait(v, stream);
}

/* ---- what the host knows ---- */

void order_seen(struct validate *v, struct order_stream *stream, uint64_t number, bool of_queue)
{
	const struct order_edge *edge;

	number = MIN(number + (of_queue ? stream->base : 0), stream->sent);
	while ((edge = g_queue_peek_head(&stream->edges)) != NULL && edge->number <= number) {
		join(&v->host, &edge->clock);
		free_edge(g_queue_pop_head(&stream->edges));
	}
	advance(&v->host, stream->index, number);
	if (number == stream->sent)
		join(&v->host, &stream->clock);
	v->host_version++;
}

void order_seen_event(struct validate *v, uint64_t name)
{
	struct order_event *event = source_of(v, name);

	if (!event->recorded)
		return;
	join(&v->host, &event->clock);
	v->host_version++;
}

bool order_is_tainted(const struct validate *v, uint64_t taint)
{
	return taint > v->settled;
}

/* Whether the entry has happened before whatever comes next in the clock. */
static bool is_before(const struct validate *v, unsigned stream, uint64_t number,
		      const struct clock *clock)
{
	return order_is_tainted(v, clock->taint) ||
	       (stream < clock->count && clock->at[stream] >= number);
}

void order_quiet(struct validate *v)
{
	for (unsigned i = 0; i < v->streams->len; i++) {
		const struct order_stream *stream = g_ptr_array_index(v->streams, i);

		if (stream->live && stream->sent > (i < v->host.count ? v->host.at[i] : 0))
			return;
	}
	v->settled = v->taints;
}

/* ---- accesses ---- */

/* The first that begins at the address or behind it. */
static guint first_from(const struct validate *v, uint64_t begin)
{
	guint low = 0, high = v->sorted->len;

	while (low < high) {
		guint middle = (low + high) / 2;

		if (g_array_index(v->sorted, struct access, middle).begin < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void accesses_add(struct validate *v, const struct access *access)
{
	guint at = first_from(v, access->begin);

	for (guint i = at; i < v->sorted->len; i++) {
		struct access *old = &g_array_index(v->sorted, struct access, i);

		if (old->begin != access->begin)
			break;
		if (old->end == access->end && old->stream == access->stream &&
		    old->write <= access->write && !old->hashed && old->mark == 0 && !old->closed) {
			*old = *access;
			return;
		}
	}
	g_array_insert_val(v->sorted, at, *access);
	v->longest = MAX(v->longest, access->end - access->begin);
}

struct access *accesses_next(const struct validate *v, struct access_search *search)
{
	if (search->next == 0)
		search->next =
			first_from(v, search->begin > v->longest ? search->begin - v->longest : 0);
	while (search->next < v->sorted->len) {
		struct access *access = &g_array_index(v->sorted, struct access, search->next++);

		if (access->begin >= search->end)
			return NULL;
		if (access->end > search->begin && (access->write || !search->writes) &&
		    (search->after == NULL ||
		     !is_before(v, access->stream, access->number, search->after)) &&
		    !(search->surely && order_is_tainted(v, access->taint)))
			return access;
	}
	return NULL;
}

bool accesses_meet(const struct validate *v, uint64_t begin, uint64_t end, bool write)
{
	struct access_search search = { .begin = begin, .end = end, .writes = write };

	return accesses_next(v, &search) != NULL;
}

void accesses_unwatch(struct validate *v, uint64_t begin, uint64_t end, bool all)
{
	struct access_search search = { .begin = begin, .end = end };
	struct access *access;

	while ((access = accesses_next(v, &search)) != NULL) {
		access->hashed = 0;
		if (all)
			access->mark = access->closed = 0;
	}
}
