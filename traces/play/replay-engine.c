/* SPDX-License-Identifier: Apache-2.0
 *
 * The replay that the options ask for, and what is noted beside it.
 */
#include "replay-engine.h"

#include "replay-policy.h"

struct replay_engine {
	struct replay_device *device;
	struct segment_replay *segments; /* as recorded, or */
	struct policy_replay *policy;
	struct access *access; /* NULL: none */
	guint64 event;
};

static guint64 find(gconstpointer data, guint64 address)
{
	const struct replay_engine *engine = data;

	return engine->policy ? policy_replay_find(engine->policy, address)
			      : segment_replay_find(engine->segments, address);
}

static struct replay_engine *engine_open(struct replay_device *device,
					 const struct replay_options *options)
{
	struct replay_engine *engine = g_new0(struct replay_engine, 1);

	engine->device = device;
	if (policy_is_own(options->policy))
		engine->policy = policy_replay_open(device, options->policy);
	else
		engine->segments = segment_replay_open(device);
	if (options->access.pattern != ACCESS_NONE)
		engine->access =
			access_new(&options->access, device->device, find, engine, &device->access);
	return engine;
}

static gboolean engine_start(struct replay_engine *engine, GError **error)
{
	gboolean ok = engine->policy ? policy_replay_start(engine->policy, error)
				     : segment_replay_start(engine->segments, error);

	const GArray *blocks = engine->device->trace->blocks;
	for (guint i = 0; ok && engine->access && i < blocks->len; i++) {
		const struct trace_block *b = &g_array_index(blocks, struct trace_block, i);
		access_note(engine->access, b->address, b->size);
	}
	replay_sample(engine->device, 0, 0);
	return ok;
}

gboolean replay_engine_step(struct replay_engine *engine, const struct trace_event *event,
			    guint64 line, GError **error)
{
	gboolean ok = engine->policy ? policy_replay_step(engine->policy, event, line, error)
				     : segment_replay_step(engine->segments, event, line, error);

	replay_sample(engine->device, ++engine->event, (guint64)MAX(event->time_us, 0));
	return ok && (engine->access == NULL || access_step(engine->access, event, error));
}

static void engine_close(gpointer data)
{
	struct replay_engine *engine = data;

	if (engine->policy)
		policy_replay_close(engine->policy);
	else
		segment_replay_close(engine->segments);
	access_free(engine->access);
	g_free(engine);
}

GPtrArray *replay_engines_open(const struct replay_run *run, GError **error)
{
	GPtrArray *engines = g_ptr_array_new_with_free_func(engine_close);

	for (guint d = 0; d < run->replay->devices->len; d++) {
		struct replay_engine *engine =
			engine_open(g_ptr_array_index(run->replay->devices, d), run->options);
		g_ptr_array_add(engines, engine);
		if (engine_start(engine, error))
			continue;
		g_ptr_array_unref(engines);
		return NULL;
	}
	return engines;
}
