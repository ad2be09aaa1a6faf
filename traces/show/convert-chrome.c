/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts to the JSON of Chrome's trace viewer, which Perfetto also opens: calls become slices of
 * their threads, and flows lead from the call that makes an object to those that use and end it;
 * blocks and segments become slices of their device, parts of expandable segments and refusals
 * instants, memory a counter of each device. One call per thread is held back until the next line
 * of that thread.
 */
#include "show.h"

#include "base/base.h"
#include "format/out-file.h"

#define DEVICE_PID 1000000 /* device N has the tracks of the process of this number and N */
#define SHORT_NS   1000    /* of a call whose end nothing tells */
#define NO_TIME    G_MAXUINT64

#define COUNT(n) ((gint64)MIN(n, (guint64)G_MAXINT64))
#define HEX(n)   npu_text("%" G_GINT64_MODIFIER "x", n)

/* A call that is not written yet: its end is not known. */
struct open_call {
	guint64 key; /* first, as int_map_entry has them: process << 32 | thread */
	guint32 tag, next;
	guint64 at_ns;
	struct npu_trace_record record;
	JsonObject *event; /* but for its length; NULL: it is written */
};

/* An event; `name` and `category` may be NULL. */
static JsonObject *event_new(const char *phase, const char *name, const char *category, guint64 pid,
			     guint64 tid, guint64 at_ns)
{
	JsonObject *event = json_object_new();

	json_object_set_string_member(event, "ph", phase);
	if (name)
		json_object_set_string_member(event, "name", name);
	if (category)
		json_object_set_string_member(event, "cat", category);
	json_object_set_int_member(event, "pid", (gint64)pid);
	json_object_set_int_member(event, "tid", (gint64)tid);
	if (at_ns != NO_TIME)
		json_object_set_double_member(event, "ts", (double)at_ns / 1000);
	return event;
}

static JsonObject *inside(JsonObject *to, const char *name)
{
	JsonObject *object = json_object_new();

	json_object_set_object_member(to, name, object);
	return object;
}

/* On a line of its own. */
static void put(struct convert *c, JsonObject *event)
{
	JsonNode *node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, event);
	out_json_next(c->out);
	out_json(c->out, node, FALSE);
}

static void put_name(struct convert *c, const char *what, guint64 pid, guint64 tid,
		     const char *name)
{
	JsonObject *event = event_new("M", npu_text("%s_name", what), NULL, pid, tid, NO_TIME);

	json_object_set_string_member(inside(event, "args"), "name", name);
	put(c, event);
}

static void add_args(const struct convert *c, JsonObject *event, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	const struct sites *sites = c->trace->sites;
	const char *site = site_text(sites, l->item.site);
	JsonObject *args = inside(event, "args");
	g_autoptr(GString) text = g_string_new(NULL);

	json_object_set_int_member(args, "event", (gint64)l->item.number);
	json_object_set_int_member(args, "code", r->code);
	if (r->has & NPU_TRACE_HAS_SIZE)
		json_object_set_int_member(args, "size", COUNT(r->size));
	if (l->device >= 0)
		json_object_set_int_member(args, "device", l->device);
	if (r->has & NPU_TRACE_HAS_SIMULATED)
		json_object_set_int_member(args, "simulated_ps", COUNT(r->simulated_ps));
	record_text(&l->item, text);
	json_object_set_string_member(args, "line", text->str);
	if (site == NULL)
		return;
	JsonArray *stack = json_array_new();
	for (guint i = 0; i < sites_depth(sites, l->item.site); i++)
		json_array_add_string_element(stack, sites_frame(sites, l->item.site, i));
	json_object_set_string_member(args, "site", site);
	json_object_set_array_member(args, "stack", stack);
}

static const char *title(const struct npu_trace_record *r)
{
	return r->op ? r->op : record_verb_name(r->verb);
}

static void put_instant(struct convert *c, const struct tracker_line *l, const char *category,
			guint64 pid, guint64 tid, guint64 at_ns, const char *suffix)
{
	g_autofree char *name = g_strconcat(title(&l->item.record), suffix, NULL);
	JsonObject *event = event_new("i", name, category, pid, tid, at_ns);

	json_object_set_string_member(event, "s", l->item.record.verb == NPU_TRACE_OOM ? "g" : "t");
	add_args(c, event, l);
	put(c, event);
}

/* What is now, if that is not what is shown. */
static void put_counter(struct convert *c, struct tracker_device *d, enum level_kind level,
			guint64 pid)
{
	guint64 now = d->levels->of[level].now;

	if (now == d->shown[level])
		return;
	JsonObject *event = event_new("C", level_names[level], NULL, pid, 0, d->shown_ns);
	json_object_set_int_member(inside(event, "args"), "bytes", COUNT(now));
	put(c, event);
	d->shown[level] = now;
}

/* A step of the life of an object: it begins ("s"), is used ("t") or ends ("f") in a call. */
static void put_flow(struct convert *c, const struct npu_trace_record *r, guint64 subject,
		     const char *phase, guint64 at_ns)
{
	JsonObject *event = event_new(phase, "object", "object", r->process, r->thread, at_ns);

	json_object_set_string_member(event, "id", HEX(subject));
	if (*phase == 'f')
		json_object_set_string_member(event, "bp", "e");
	put(c, event);
}

static void end_call(struct convert *c, struct open_call *call, guint64 length_ns)
{
	if (call->event == NULL)
		return;
	json_object_set_double_member(call->event, "dur", (double)length_ns / 1000);
	put(c, g_steal_pointer(&call->event));
}

/* A trace tells when a call began, and some what it took. Else it took as long as simulated time
 * went on, and was over when the next of its thread began. What it took is of the host's clock. */
static guint64 length_of(const struct convert *c, const struct open_call *call,
			 const struct npu_trace_record *next)
{
	guint64 gap = c->now_ns > call->at_ns ? c->now_ns - call->at_ns : 0;

	/* lines of one call begin at the same time */
	if (c->clock == NPU_TRACE_HAS_HOST_NS && (call->record.has & NPU_TRACE_HAS_TOOK))
		return next != NULL && gap > 0 ? MIN(gap, call->record.took_ns)
					       : call->record.took_ns;
	if (next == NULL)
		return SHORT_NS;
	gboolean both = (call->record.has & next->has & NPU_TRACE_HAS_SIMULATED) &&
			next->simulated_ps >= call->record.simulated_ps;
	return MIN(gap, both ? (next->simulated_ps - call->record.simulated_ps) / 1000 : SHORT_NS);
}

static void on_call(struct convert *c, const struct tracker_line *l)
{
	const struct npu_trace_record *r = &l->item.record;
	guint32 threads = c->threads->count;
	struct open_call *call = int_map_add(c->threads, (guint64)r->process << 32 | r->thread, 0);

	if (c->threads->count > threads) {
		if (int_map_find(c->known, r->process, 0) == NULL)
			put_name(c, "process", r->process, 0, npu_text("process %u", r->process));
		int_map_put(c->known, r->process, 0, 1);
		put_name(c, "thread", r->process, r->thread, npu_text("thread %u", r->thread));
	}
	end_call(c, call, length_of(c, call, r));
	call->at_ns = MAX(c->now_ns, call->at_ns);
	call->event = event_new("X", title(r), "call", r->process, r->thread, call->at_ns);
	add_args(c, call->event, l);
	call->record = *r;
	if (r->code) {
		put_instant(c, l, "refused", r->process, r->thread, call->at_ns, " refused");
		return;
	}
	gboolean ends = r->verb == NPU_TRACE_UNRESERVE || r->verb == NPU_TRACE_MFREE ||
			(r->verb == NPU_TRACE_RELEASE && l->had > 0);
	if (l->subject)
		put_flow(c, r, l->subject, l->made ? "s" : ends ? "f" : "t", call->at_ns);
	if (l->handle)
		put_flow(c, r, l->handle, "t", call->at_ns);
}

static void on_device(struct convert *c, const struct tracker_line *l)
{
	guint32 verb = l->item.record.verb;
	guint64 pid = DEVICE_PID + (guint64)l->device;
	struct tracker_device *d = tracker_device(c->tracker, l->device);
	gboolean begins = verb == NPU_TRACE_ALLOC || verb == NPU_TRACE_SEGMENT_ALLOC;
	const char *category =
		verb == NPU_TRACE_ALLOC || verb == NPU_TRACE_FREE ? "block" : "segment";
	const char *name = begins ? site_text(c->trace->sites, l->item.site) ?: category : NULL;

	if (!d->named) {
		put_name(c, "process", pid, 0, npu_text("device %d", (int)l->device));
		put_name(c, "thread", pid, 0, "allocator");
		d->named = TRUE;
	}
	/* lines of several threads may come a little out of order */
	d->shown_ns = MAX(d->shown_ns, c->now_ns);
	/* a block or a segment is a slice of its own, told by its address */
	if (begins || verb == NPU_TRACE_FREE || verb == NPU_TRACE_SEGMENT_FREE) {
		JsonObject *event =
			event_new(begins ? "b" : "e", name, category, pid, 0, d->shown_ns);
		json_object_set_string_member(inside(event, "id2"), "local", HEX(l->item.address));
		add_args(c, event, l);
		put(c, event);
	} else if (verb == NPU_TRACE_SEGMENT_MAP || verb == NPU_TRACE_SEGMENT_UNMAP)
		put_instant(c, l, "segment", pid, 0, d->shown_ns, "");
	else if (verb == NPU_TRACE_OOM)
		put_instant(c, l, "refused", pid, 0, d->shown_ns, ": out of memory");
	for (int level = 0; l->item.number > 0 && level < LEVEL_RESERVED; level++)
		put_counter(c, d, level, pid);
}

static gboolean put_line(struct convert *c, struct tracker_line *l, GError **error)
{
	const struct npu_trace_record *r = &l->item.record;
	struct tracker_device *none = &c->tracker->none;
	gboolean counts = l->item.number > 0;

	(void)error;
	/* what was there at the start, and a line without its stamp, is of the time before */
	if (counts && c->clock == 0)
		c->now_ns = l->item.number * 1000;
	else if (counts && (r->has & c->clock))
		c->now_ns = c->clock == NPU_TRACE_HAS_HOST_NS ? r->host_ns : r->simulated_ps / 1000;
	if (!trace_verbs[l->item.record.verb].event)
		on_call(c, l);
	if (l->device >= 0)
		on_device(c, l);
	/* address space is of no device */
	none->shown_ns = MAX(none->shown_ns, c->now_ns);
	put_counter(c, none, LEVEL_RESERVED, DEVICE_PID - 1);
	return TRUE;
}

static void begin_chrome(struct convert *c)
{
	c->clock = c->trace->stamps & NPU_TRACE_HAS_HOST_NS ?: c->trace->stamps;
	c->threads = int_map_new(sizeof(struct open_call), NULL);
	g_string_append(c->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	put_name(c, "process", DEVICE_PID - 1, 0, "address space");
}

static void end_chrome(struct convert *c)
{
	const char *clock = c->clock == 0                       ? "a microsecond an event"
			    : c->clock == NPU_TRACE_HAS_HOST_NS ? "host"
								: "simulated";

	for (struct open_call *call = NULL; (call = int_map_next(c->threads, call));)
		end_call(c, call, length_of(c, call, NULL));
	g_string_append(c->out, "\n],\"otherData\":");
	out_json_variant(c->out,
			 g_variant_new_parsed("{'time':%s,'kind':%s}", clock, c->trace->kind));
	g_string_append(c->out, "}\n");
	int_map_free(c->threads);
}

const struct convert_format convert_to_chrome = { begin_chrome, put_line, end_chrome };
