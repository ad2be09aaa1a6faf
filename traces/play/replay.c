/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds records to the model. Recorded calls that allocate memory are made again; if a trace has
 * none, or under a policy, a filter for each device determines the calls behind its events.
 */
#include "replay.h"

#include "npusim/npusim.h"
#include "player.h"
#include "policy/filter.h"

struct run {
	struct trace *trace;
	struct record_reader *reader;
	struct replay *replay;
	const struct replay_options *options;
	struct player *player;
	gboolean recorded; /* its own calls are made */
	GPtrArray *parts;  /* struct part *, of each device of the replay; none beside those */
	GPtrArray *starts; /* GArray of struct record_item: what was there, of each device */
};
/* A device whose calls a filter makes. */
struct part {
	struct run *run;
	struct replay_device *device;
	struct filter *filter;
	guint64 event; /* of this device, counted from 1; 0: what was there at the start */
	guint64 line;  /* 0: the file has none */
};

#define ITEM(items, i) (&g_array_index(items, struct record_item, i))

static gboolean is_segment(guint32 verb)
{
	return verb == NPU_TRACE_SEGMENT_ALLOC || verb == NPU_TRACE_SEGMENT_FREE ||
	       verb == NPU_TRACE_SEGMENT_MAP || verb == NPU_TRACE_SEGMENT_UNMAP;
}

/* ---- what a filter says ---- */

/* An area of the file's addresses must be there; any other call may find no memory. */
static enum cache_answer on_call(gpointer data, const struct npu_trace_record *c, guint64 *out_va,
				 GError **error)
{
	const struct part *part = data;
	gboolean area = c->verb == NPU_TRACE_RESERVE && !policy_is_own(part->run->options->policy);
	gint32 code = player_call(part->run->player, c, out_va);

	if (code == ACL_SUCCESS)
		return CACHE_OK;
	if (code == ACL_ERROR_RT_MEMORY_ALLOCATION && !area)
		return CACHE_NO_MEMORY;
	g_autofree char *size =
		area ? g_strdup_printf(" of %" G_GUINT64_FORMAT " bytes", c->size) : g_strdup("");
	g_set_error(error, MODEL_ERROR, MODEL_ERROR_CALL, "%s%s answered %d: %s",
		    player_call_name(c->verb), size, code, model_message());
	return CACHE_FAILED;
}

static void on_event(gpointer data, const struct record_item *item)
{
	struct replay_device *device = ((struct part *)data)->device;

	memory_usage_step(&device->usage, item);
	if (is_segment(item->record.verb) && !(item->record.has & NPU_TRACE_HAS_START))
		device->policy_counts[item->record.verb]++;
}

static void on_started(gpointer data)
{
	memory_usage_started(&((struct part *)data)->device->usage);
}

static void on_lost(gpointer data, guint64 size, guint32 site)
{
	struct part *part = data;

	part->device->lost_blocks++;
	replay_note_failure(part->device, part->event, part->line, size, site);
}

/* ---- a device ---- */

/* Says where in the file the error is. */
static gboolean located(const struct part *part, gboolean ok, GError **error)
{
	if (ok)
		return TRUE;
	if (policy_is_own(part->run->options->policy) || (part->line == 0 && part->event > 0))
		g_prefix_error(error, "device %u, event %" G_GUINT64_FORMAT ": ",
			       part->device->device, part->event);
	else if (part->line)
		g_prefix_error(error, "line %" G_GUINT64_FORMAT ": ", part->line);
	else
		g_prefix_error(error,
			       "device %u, what was live at the start: ", part->device->device);
	return FALSE;
}

static guint64 find(gconstpointer data, guint64 address)
{
	const struct filter *filter = ((const struct part *)data)->filter;

	return filter->find(filter, address);
}

static guint64 at_itself(gconstpointer data, guint64 address)
{
	(void)data;
	return address;
}

static struct access *reads_of(const struct run *run, struct replay_device *device,
			       access_find finder, gconstpointer data)
{
	const struct access_options *wanted = &run->options->access;

	return wanted->pattern == ACCESS_NONE
		       ? NULL
		       : access_new(wanted, device->device, finder, data, &device->access);
}

static struct part *part_new(struct run *run, struct replay_device *device)
{
	const struct replay_options *options = run->options;
	struct part *part = g_new0(struct part, 1);
	struct filter_output out = { on_call, on_event, on_started, on_lost, part, 0 };
	struct npu_stats stats;

	*part = (struct part){ .run = run, .device = device };
	if (model_stats(device->device, &stats))
		out.total = stats.usable_bytes;
	part->filter = policy_is_own(options->policy)
			       ? filter_allocator(options->policy, device->trace, &out)
			       : filter_recorded(device->trace, &out);
	device->reads = reads_of(run, device, find, part);
	return part;
}

static void part_free(gpointer data)
{
	struct part *part = data;

	part->device->emptied = part->filter->emptied;
	part->filter->close(part->filter);
	g_free(part);
}

static gboolean part_step(struct part *part, const struct record_item *item, GError **error)
{
	struct replay_device *device = part->device;
	guint32 verb = item->record.verb;

	part->event++;
	part->line = item->record.line;
	history_step(&device->history, item, part->event);
	if (!policy_is_own(part->run->options->policy) &&
	    (verb == NPU_TRACE_SEGMENT_FREE || verb == NPU_TRACE_SEGMENT_UNMAP))
		replay_note_peak(device);
	gboolean ok = located(part, part->filter->step(part->filter, item, error), error);
	replay_sample(device, part->event, (guint64)MAX(item->time_us, 0));
	if (verb == NPU_TRACE_OOM)
		replay_note_recorded_failure(device, part->event);
	if (device->reads == NULL || !ok)
		return ok;
	if (verb == NPU_TRACE_FREE)
		access_go(device->reads, item->address);
	if (verb == NPU_TRACE_ALLOC &&
	    !access_come(device->reads, item->address, item->size, error))
		return FALSE;
	return access_tick(device->reads, error);
}

/* ---- records ---- */

/* Calls name no device: all are looked at. */
static gboolean step_recorded(struct run *run, const struct record_item *item, GError **error)
{
	struct replay_device *device = replay_find(run->replay, item->record.device);
	gboolean ok = TRUE;

	if (!trace_verbs[item->record.verb].event)
		ok = player_step(run->player, item, error);
	else if (item->record.code == 0 && device && !is_segment(item->record.verb))
		memory_usage_step(&device->usage, item);
	if (item->record.code == 0 && device)
		history_step(&device->history, item, run->replay->done + 1);
	for (guint i = 0; i < run->replay->devices->len; i++)
		replay_sample(g_ptr_array_index(run->replay->devices, i), run->replay->done + 1,
			      (guint64)item->time_us);
	return ok;
}

static gboolean step(struct run *run, struct record_item *item, GError **error)
{
	/* what an event takes is for its policy to say */
	if (trace_verbs[item->record.verb].event)
		item->record.has &= ~(guint32)NPU_TRACE_HAS_ROUNDED;
	item->record.device = MIN(item->record.device, G_MAXINT32);
	if (run->recorded)
		return step_recorded(run, item, error);
	if (item->device == G_MAXUINT || item->record.code != 0 ||
	    !trace_verbs[item->record.verb].event)
		return TRUE;
	return part_step(g_ptr_array_index(run->parts, item->device), item, error);
}

static gboolean start(struct run *run, GError **error)
{
	gboolean ok = TRUE;

	for (guint d = 0; ok && d < run->replay->devices->len; d++) {
		struct replay_device *device = g_ptr_array_index(run->replay->devices, d);
		const GArray *items = g_ptr_array_index(run->starts, d);
		/* the sums of memory are those of the segments that a filter got, from none on */
		for (guint i = 0; i < items->len; i++) {
			const struct record_item *item = ITEM(items, i);
			history_step(&device->history, item, 0);
			if (run->recorded || item->record.verb == NPU_TRACE_ALLOC)
				memory_usage_step(&device->usage, item);
		}
		if (run->recorded) {
			memory_usage_started(&device->usage);
			device->reads = reads_of(run, device, at_itself, NULL);
			continue;
		}
		struct part *part = part_new(run, device);
		g_ptr_array_add(run->parts, part);
		ok = located(part, part->filter->start(part->filter, items, error), error);
		for (guint i = 0; ok && device->reads && i < items->len; i++) {
			if (ITEM(items, i)->record.verb == NPU_TRACE_ALLOC)
				access_note(device->reads, ITEM(items, i)->address,
					    ITEM(items, i)->size);
		}
		replay_sample(device, 0, 0);
	}
	return ok;
}

static gboolean run_all(struct run *run, GError **error)
{
	struct replay *replay = run->replay;
	struct record_item item;
	int more = 1;

	run->player = player_open(run->replay, run->recorded, !run->options->no_copies);
	run->parts = g_ptr_array_new_with_free_func(part_free);
	gboolean ok = start(run, error);
	while (ok && !replay->interrupted &&
	       (more = record_reader_next(run->reader, &item, error)) > 0) {
		if (record_is_of_start(&item.record))
			continue;
		ok = step(run, &item, error);
		replay->done++;
		replay->interrupted = run->options->progress &&
				      !run->options->progress(replay->done, run->trace->events,
							      run->options->data);
	}
	for (guint d = 0; d < replay->devices->len; d++) {
		struct replay_device *device = g_ptr_array_index(replay->devices, d);
		replay_note_end(device);
		g_clear_pointer(&device->reads, access_free);
	}
	g_ptr_array_unref(run->parts);
	player_close(run->player);
	return ok && more >= 0;
}

/* ---- all of it ---- */

/* Memory before blocks, each by address. */
static gint by_place(gconstpointer a, gconstpointer b)
{
	const struct record_item *x = a, *y = b;
	gboolean x_block = x->record.verb == NPU_TRACE_ALLOC;
	gboolean y_block = y->record.verb == NPU_TRACE_ALLOC;

	if (x_block != y_block)
		return x_block ? 1 : -1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* A trace of npusim may say anywhere what was there; others begin with it. */
static gboolean read_starts(struct run *run, GError **error)
{
	struct record_item item;
	int more;

	while ((more = record_reader_next(run->reader, &item, error)) > 0) {
		gboolean of_start = record_is_of_start(&item.record);
		if (!of_start && run->trace->format == NULL)
			break;
		/* texts go with the line */
		item.record.op = item.record.site = NULL;
		if (of_start && item.record.code == 0 && item.device != G_MAXUINT)
			g_array_append_val((GArray *)g_ptr_array_index(run->starts, item.device),
					   item);
	}
	for (guint d = 0; d < run->starts->len; d++)
		g_array_sort(g_ptr_array_index(run->starts, d), by_place);
	return more >= 0 && record_reader_rewind(run->reader, error);
}

/* A policy hands out blocks: there must be some. */
static gboolean has_blocks(const struct run *run, GError **error)
{
	for (guint d = 0; d < run->trace->devices->len; d++) {
		const struct trace_device *device = g_ptr_array_index(run->trace->devices, d);
		const GArray *items = g_ptr_array_index(run->starts, d);
		if (device->counts[NPU_TRACE_ALLOC] > 0 ||
		    (items->len > 0 && ITEM(items, items->len - 1)->record.verb == NPU_TRACE_ALLOC))
			return TRUE;
	}
	return refuse(error, TRACE_ERROR, TRACE_ERROR_FORMAT,
		      "the file tells of no blocks that an allocator handed out, which a policy "
		      "needs: use --policy as-recorded");
}

/* A trace that is about no device is replayed on device 0. */
static void add_devices(struct run *run)
{
	const struct replay_options *options = run->options;
	struct replay *replay = run->replay;
	const GPtrArray *devices = run->trace->devices;

	if (devices->len == 0) {
		replay->empty = trace_new("");
		trace_device(replay->empty, 0);
		devices = replay->empty->devices;
	}
	for (guint d = 0; d < devices->len; d++) {
		g_ptr_array_add(replay->devices,
				replay_device_new(g_ptr_array_index(devices, d), options->moments,
						  options->moment_count));
		g_ptr_array_add(run->starts, g_array_new(FALSE, FALSE, sizeof(struct record_item)));
	}
}

static gboolean run_on_model(struct run *run, GError **error)
{
	struct replay *replay = run->replay;
	const struct replay_device *last =
		g_ptr_array_index(replay->devices, replay->devices->len - 1);
	guint devices = last->device + 1;

	if (!model_open(devices, error))
		return FALSE;
	replay->soc = g_strdup(aclrtGetSocName());
	gint64 wall = g_get_monotonic_time();
	guint64 simulated = npusim_now_ps();
	gboolean ok = run_all(run, error);
	replay->wall_us = g_get_monotonic_time() - wall;
	replay->simulated_ps = npusim_now_ps() - simulated;
	for (guint d = 0; d < replay->devices->len; d++)
		replay_finish(g_ptr_array_index(replay->devices, d));
	model_close(devices);
	return ok;
}

struct replay *replay_run(struct record_reader *reader, const struct replay_options *options,
			  GError **error)
{
	struct trace *trace = record_reader_trace(reader);
	gboolean own = policy_is_own(options->policy);
	struct replay *replay = g_new0(struct replay, 1);
	struct run run = { .trace = trace,
			   .reader = reader,
			   .replay = replay,
			   .options = options,
			   .recorded = trace->memory_calls > 0 && !own };

	replay->policy = options->policy;
	replay->sites = trace->sites;
	replay->access = options->access;
	replay->devices = g_ptr_array_new_with_free_func(replay_device_free);
	run.starts = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
	add_devices(&run);
	gboolean ok = read_starts(&run, error) && (!own || has_blocks(&run, error)) &&
		      run_on_model(&run, error);
	g_ptr_array_unref(run.starts);
	if (ok)
		return replay;
	replay_free(replay);
	return NULL;
}

void replay_free(struct replay *replay)
{
	if (replay == NULL)
		return;
	g_ptr_array_unref(replay->devices);
	trace_free(replay->empty);
	g_free(replay->soc);
	g_free(replay);
}
