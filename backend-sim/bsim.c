/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver model as a backend of the runtime: its object, closing it with everything that its
 * rooms hold, the table of functions, statistics, and the description for `npusim info`.
 */
#include "driver/layer.h"
#include "memory/memory.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <string.h>

#include "config.h"

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;           /* open() less close(); users_lock */
static struct npu_driver *stack; /* the top, of all users; users_lock */

static void fill_memory(struct bsim *bs, unsigned dev, struct npu_stats *s)
{
	const struct space *space = tables_space(dev);
	struct node_usage usage;

	node_usage(bs->node, dev, &usage);
	s->usable_bytes = usage.total_frames << NODE_FRAME_LG2;
	s->used_bytes = (usage.total_frames - usage.free_frames) << NODE_FRAME_LG2;
	s->own_bytes = usage.own_frames << NODE_FRAME_LG2;
	s->own_peak_bytes = usage.own_peak_frames << NODE_FRAME_LG2;
	s->largest_free_bytes = usage.largest_free_run << NODE_FRAME_LG2;
	s->free_giants = usage.free_giants;
	s->page_table_bytes = space->pt.tables << PT_PAGE_LG2;
	s->page_table_peak_bytes = space->table_peak;
	s->mapped_bytes = space->mapped_bytes;
	s->leaves_4k = space->leaves[0];
	s->leaves_2m = space->leaves[1];
	s->leaves_1g = space->leaves[2];
}

static void fill_counters(struct bsim *bs, unsigned dev, struct npu_stats *s)
{
	struct sim_counters c;

	sim_get_counters(bs->sim, dev, &c);
	s->tlb_l1_entries = c.tlb_l1_entries;
	s->tlb_l2_entries = c.tlb_l2_entries;
	s->tlb_requests = c.tlb_requests;
	s->tlb_hits = c.tlb_l1_hits + c.tlb_l2_hits;
	s->tlb_misses = c.tlb_misses;
	s->walks = c.walks;
	s->walk_ps = c.walk_ps;
	s->hbm_read_bytes = c.hbm_read_bytes;
	s->hbm_write_bytes = c.hbm_write_bytes;
	s->row_hits = c.hbm_row_hits;
	s->row_misses = c.hbm_row_misses;
}

BSIM_QUESTION(npusimGetStats, (uint32_t, dev), (struct npu_stats *, out))
{
	struct npu_stats s = { .device = dev, .hbm_bytes = bs->config.hbm_bytes };

	if (bsim_is_forked(bs))
		return bsim_forked();
	if (out == NULL || out->size < sizeof(uint32_t))
		return bsim_invalid("npusimGetStats: out is %s",
				    out == NULL ? "NULL" : "without its size");
	if (dev >= bs->devices)
		return bsim_no_device(bs, "npusimGetStats", "device", dev);
	s.now_ps = bsim_now_locked(bs);
	s.usable_bytes = bs->config.usable_frames << NODE_FRAME_LG2;
	if (bs->any_open) {
		fill_memory(bs, dev, &s);
		fill_counters(bs, dev, &s);
	}
	for (unsigned i = 0; i < G_N_ELEMENTS(s.call_count); i++) { /* the first of them */
		s.call_count[i] = bs->call_count[i];
		s.call_ps[i] = bs->call_ps[i];
	}
	s.size = out->size < sizeof(s) ? out->size : (uint32_t)sizeof(s);
	memcpy(out, &s, s.size);
	return DRV_ERROR_NONE;
}

/* Without the lock: programs measure by it, and ask before and after each call. */
drvError_t bsim_npusimNow NPU_WITH_SELF((uint64_t *, ps))
{
	if (ps == NULL)
		return bsim_null("npusimNow", "ps");
	*ps = __atomic_load_n(&bsim_of(self)->now_ps, __ATOMIC_RELAXED);
	return DRV_ERROR_NONE;
}

BSIM_CALL(npusimSpend, SIM_CALL_QUERY, (enum npu_work, work))
{
	c->bs->call_number--; /* it is none of the program's */
	if ((unsigned)work > NPU_WORK_HOST_WAKE)
		return bsim_invalid("%s: work is %d: there is none such", c->name, work);
	c->cost = SIM_CALL_EVENT + work;
	return DRV_ERROR_NONE;
}

const char *bsim_npusimLastMessage(struct npu_driver *self)
{
	(void)self;
	return npu_message();
}

static void end_server(struct bsim *bs)
{
	struct queue_set *queues = queue_close(bs);

	bsim_lock(bs);
	handle_table_close(bs);
	alloc_table_close(bs);
	for (unsigned d = 0; bs->sim != NULL && d < bs->devices; d++) {
		node_block_drop(bs->node, bs->device[d].runtime);
		tables_close(bs, d);
	}
	if (bs->sim != NULL)
		tables_close(bs, SIM_NODE_HOST);
	window_close(bs);
	sim_close(g_steal_pointer(&bs->sim));
	queue_free(queues);
	node_leave(bs->node);
	bsim_unlock(bs);
}

/* Everything but the table of functions and the lock: a call of another thread that comes too late
 * finds a server with no device open, and gets its code. */
static void clear_locked(struct bsim *bs)
{
	size_t kept = offsetof(struct bsim, lock) + sizeof(bs->lock);

	__atomic_store_n(&bs->node, NULL, __ATOMIC_RELEASE);
	memset((char *)bs + kept, 0, sizeof(*bs) - kept);
}

static void close_backend(struct npu_driver *self)
{
	struct bsim *bs = bsim_of(self);
	bool used;

	pthread_mutex_lock(&users_lock);
	used = --users > 0;
	if (!used) {
		bsim_process = NULL;
		driver_stack_end(stack);
	}
	pthread_mutex_unlock(&users_lock);
	if (used)
		return;
	if (bs->node != NULL && !bsim_is_forked(bs))
		end_server(bs);
	bsim_lock(bs);
	clear_locked(bs);
	bs->shape_known = true;
	bsim_unlock(bs);
}

static struct bsim server = {
	.driver = {
		.abi = NPU_DRIVER_ABI,
		.size = sizeof(server.driver),
		.name = "sim",
		.caps = NPU_CAP_MODEL | NPU_CAP_VALUE_WAIT,
		.close = close_backend,
#define NPU_OP(result, missing, op, ...) .op = bsim_##op,
#include "npusim/driver-ops.h"
	},
	.lock = { .mutex = PTHREAD_MUTEX_INITIALIZER, .line = PTHREAD_MUTEX_INITIALIZER },
};

/* A child that is forked while another thread is in a call finds the lock free; what it says then
 * is bsim_begin()'s. */
static void before_fork(void)
{
	pthread_mutex_lock(&server.lock.line);
	pthread_mutex_lock(&server.lock.mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&server.lock.mutex);
	pthread_mutex_unlock(&server.lock.line);
}

static void after_fork_in_child(void)
{
	server.lock.waiting = server.lock.asleep = server.lock.passed = 0; /* they are not here */
	after_fork();
}

/* For layers: the model knows its order, and has no use for blocks. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define OF_LAYERS(op, ...)                              \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__) \
	{                                               \
		return DRV_ERROR_NOT_SUPPORT;           \
	}
OF_LAYERS(npusimTellBlock, (uint64_t, va), (uint64_t, bytes))
OF_LAYERS(npusimOrder, (uint32_t, dev), (enum npu_order, what), (uint32_t, id), (uint64_t, value))
OF_LAYERS(npusimMark, (const char *, name))
OF_LAYERS(npusimReports, (npusim_report_fn, fn), (void *, arg))
#pragma GCC diagnostic pop

static struct npu_driver *open_once(char **error)
{
	static bool fork_handled;
	bool readable;

	npu_var_warn_unknown();
	npu_stack_use(0);
	bsim_lock(&server);
	clear_locked(&server);
	readable = settings_read(&server, error);
	bsim_unlock(&server);
	if (!readable)
		return NULL;
	if (!fork_handled) {
		fork_handled = true;
		node_watch_forks();
		pthread_atfork(before_fork, after_fork, after_fork_in_child);
	}
	stack = driver_stack_open(&server.driver, error);
	if (stack == NULL)
		return NULL;
	server.link_faults = driver_link_faults();
	driver_stack_share(stack);
	bsim_process = &server;
	return stack;
}

/* libascendcl.so and libascend_hal.so of one process are users of one model. */
static struct npu_driver *open_backend(char **error)
{
	LOCKED(&users_lock);
	struct npu_driver *driver = bsim_process != NULL ? stack : open_once(error);

	users += driver != NULL;
	return driver;
}

static char *describe_backend(void)
{
	g_autofree struct bsim *own = g_new0(struct bsim, 1);
	struct bsim *bs = bsim_process == NULL ? own : bsim_process;
	g_autofree char *error = NULL;
	GString *text = g_string_new("backend=sim\nversion=" NPUSIM_VERSION "\n");

	if (bs == own && !settings_read(bs, &error)) {
		g_string_append_printf(text, "error=%s\n", error != NULL ? error : "no memory");
		return g_string_free(text, FALSE);
	}
	g_string_append_printf(text,
			       "soc=%s\ndevices=%u\nhbm_bytes=%" PRIu64 "\nusable_bytes=%" PRIu64
			       "\nnode=%s\ntiming=%s\ncontents=%s\ncontract=%s\n",
			       bs->profile.soc_name, bs->devices, bs->config.hbm_bytes,
			       bs->config.usable_frames << NODE_FRAME_LG2, bs->config.name,
			       bs->timing ? "on" : "off", bs->contents ? "on" : "off",
			       bs->contract == BSIM_DOCS ? "docs" : "driver");
	for (const struct contract_rule *r = contract_rules;
	     r < contract_rules + CONTRACT_ROW_COUNT; r++)
		g_string_append_printf(text, "difference=%s: %s: docs %s, driver %s\n", r->rule,
				       r->what, r->docs_text, r->driver_text);
	return g_string_free(text, FALSE);
}

__attribute__((visibility("default"))) extern const struct npu_backend npusim_backend_1;
const struct npu_backend npusim_backend_1 = {
	.abi = NPU_DRIVER_ABI,
	.size = sizeof(struct npu_backend),
	.name = "sim",
	.open = open_backend,
	.describe = describe_backend,
};
