/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer: its hooks, its settings, and the end of the process.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static struct validate *active; /* the process's one layer */

const char *validate_range(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object = objects_around(v->objects, begin);
	const char *size = npu_size_text(end - begin);

	if (object == NULL)
		return npu_text("%#llx, %s", (unsigned long long)begin, size);
	return npu_text("%#llx, %s (%s into the %s at %#llx, %s)", (unsigned long long)begin, size,
			npu_size_words((int64_t)(begin - object->key)),
			object_words[object->kind].name, (unsigned long long)object->key,
			npu_size_words((int64_t)object->bytes));
}

static struct validate *enter(void *self)
{
	struct validate *v = self;

	pthread_mutex_lock(&v->lock);
	return v;
}

static drvError_t leave(struct validate *v)
{
	pthread_mutex_unlock(&v->lock);
	report_flush();
	return DRV_ERROR_NONE;
}

/* ---- hooks ---- */

/* What the hook before a call leaves for the one after it. */
struct note {
	npu_stack stack;
	GArray *saved;    /* of validate_host_send() */
	uint8_t *entries; /* of validate_closed_send() */
};

/* Calls that change neither memory nor order. */
static bool is_idle(enum driver_op op)
{
	return op == DRIVER_OP_halMemGetInfo || op == DRIVER_OP_drvMemGetAttribute ||
	       op == DRIVER_OP_halSqCqQuery || op == DRIVER_OP_halGetDeviceInfo;
}

/* Calls about queues alone, which memory does not change with. */
static bool is_of_queue(enum driver_op op)
{
	return op == DRIVER_OP_halSqTaskSend || op == DRIVER_OP_halCqReportRecv ||
	       op == DRIVER_OP_halResourceConfig || op == DRIVER_OP_halResourceIdAlloc ||
	       op == DRIVER_OP_halResourceIdFree;
}

static bool validate_before(struct layer *layer, struct layer_call *call)
{
	struct validate *v = (struct validate *)layer;
	struct note *note = (struct note *)(void *)call->note;
	bool queue = is_of_queue(call->op), answered;

	if (is_idle(call->op))
		return false;
	/* A stack costs more than all the rest: it is taken where somebody may read it. */
	*note = (struct note){ 0 };
	if (!queue || call->op == DRIVER_OP_halSqTaskSend)
		note->stack = npu_stack_here();
	pthread_mutex_lock(&v->lock);
	answered = !queue && validate_memory_before(v, call, note->stack);
	if (call->op == DRIVER_OP_halSqTaskSend) {
		struct halTaskSendInfo *info = call->with.halSqTaskSend.info;

		note->saved = validate_host_send(v, call->with.halSqTaskSend.dev, info);
		note->entries = v->strict ? validate_closed_send(v, info) : NULL;
	} else if (v->strict) {
		validate_each_copy(v, call, 0, validate_closed_open);
	}
	pthread_mutex_unlock(&v->lock);
	return answered;
}

static void validate_after(struct layer *layer, struct layer_call *call)
{
	struct note *note = (struct note *)(void *)call->note;
	bool queue = is_of_queue(call->op);
	struct validate *v;

	if (is_idle(call->op)) {
		if (call->op != DRIVER_OP_drvMemGetAttribute || call->code == DRV_ERROR_NONE)
			return;
		*note = (struct note){ .stack = npu_stack_here() };
	}
	v = enter(layer);
	validate_memory_again(v, call);
	validate_host_sent(note->saved, call->code == DRV_ERROR_NONE);
	if (note->entries != NULL) {
		g_free(call->with.halSqTaskSend.info->sqe_addr);
		call->with.halSqTaskSend.info->sqe_addr = note->entries;
	}
	if (call->code == DRV_ERROR_NONE)
		validate_queue_call(v, call, note->stack);
	if (!queue)
		validate_why(v, call, note->stack);
	if (!queue && call->code == DRV_ERROR_NONE)
		validate_memory_after(v, call, note->stack);
	leave(v);
}

static drvError_t validate_order(struct npu_driver *self, uint32_t dev, enum npu_order what,
				 uint32_t id, uint64_t value)
{
	struct validate *v = enter(self);

	validate_told(v, dev, what, id, value);
	return leave(v);
}

static drvError_t validate_dialect(struct npu_driver *self, enum npu_dialect dialect)
{
	struct validate *v = (struct validate *)self;

	v->cuda = dialect == NPU_DIALECT_CUDA;
	if (v->cuda)
		report_in_cuda();
	return BELOW(v, npusimSetDialect, dialect);
}

static drvError_t validate_check(struct npu_driver *self, DVdeviceptr dst, DVdeviceptr src,
				 size_t bytes)
{
	struct validate *v = (struct validate *)self;
	drvError_t code = BELOW(v, npusimCheckCopy, dst, src, bytes);
	npu_stack stack;

	if (code == DRV_ERROR_NONE)
		return code;
	stack = npu_stack_here();
	validate_why_copy(enter(self), dst, src, bytes, stack);
	leave(v);
	return code;
}

static drvError_t validate_block(struct npu_driver *self, uint64_t va, uint64_t bytes)
{
	npu_stack stack = npu_stack_here();
	struct validate *v = enter(self);

	validate_bytes_block(v, va, bytes, stack);
	return leave(v);
}

/* What is held back is not the program's. */
static drvError_t validate_leaks(struct npu_driver *self, npu_line_fn line, void *arg, bool full)
{
	struct validate *v = enter(self);

	validate_memory_let_go(v);
	leave(v);
	return BELOW(v, npusimLeaks, line, arg, full);
}

static drvError_t validate_mark(struct npu_driver *self, const char *name)
{
	npu_stack stack = npu_stack_here();
	struct validate *v = enter(self);

	growth_mark(v->objects, name, stack);
	validate_kept_look(v);
	return leave(v);
}

static drvError_t validate_reports(struct npu_driver *self, npusim_report_fn fn, void *arg)
{
	(void)self;
	report_listen(fn, arg);
	return DRV_ERROR_NONE;
}

/* ---- the object ---- */

static void new_records(struct validate *v)
{
	v->objects = objects_new();
	v->failed = g_ptr_array_new_with_free_func(g_free);
	v->shares = g_ptr_array_new_with_free_func(g_free);
	v->held = g_ptr_array_new_with_free_func(g_free);
}

static void free_records(struct validate *v)
{
	objects_free(v->objects);
	g_ptr_array_unref(v->failed);
	g_ptr_array_unref(v->shares);
	g_ptr_array_unref(v->held);
}

/* What is still held, and what has grown; the lock is released. */
static void tell_last_locked(struct validate *v)
{
	validate_kept_look(v);
	growth_left(v->objects);
	leave(v);
	growth_tell(v->objects);
}

static void validate_end(struct layer *layer)
{
	struct validate *v = enter(layer);

	if (active == v)
		active = NULL;
	validate_memory_let_go(v);
	validate_closed_stop(v);
	tell_last_locked(v);
	order_free(v->order);
	free_records(v);
	pthread_mutex_destroy(&v->lock);
	g_free(v);
}

/* In the order in which they are taken elsewhere. */
static void lock_for_fork(void)
{
	if (active != NULL)
		pthread_mutex_lock(&active->lock);
	report_before_fork();
}

static void unlock_after_fork(void)
{
	report_after_fork(false);
	if (active != NULL)
		pthread_mutex_unlock(&active->lock);
}

/* A child has none of its parent's memory: what the parent holds is not its leak. It reports and
 * counts for itself. */
static void forget_in_child(void)
{
	report_after_fork(true);
	if (active == NULL)
		return;
	validate_closed_stop(active);
	free_records(active);
	new_records(active);
	active->shares_any = false;
	pthread_mutex_unlock(&active->lock);
}

static bool check_settings(char **error)
{
	return report_open(true, error);
}

static struct npu_driver *open_layer(struct npu_driver *lower, const char *mode, char **error)
{
	static const struct layer_hooks hooks = { validate_before, validate_after, validate_end };
	static bool forks;
	struct validate *v;

	npu_stack_use(NPU_STACK_SHORT);
	if (!report_open(false, error))
		return NULL;
	v = g_new0(struct validate, 1);
	layer_init(&v->layer, "validate", lower, &hooks);
	v->layer.driver.npusimOrder = validate_order;
	v->layer.driver.npusimSetDialect = validate_dialect;
	v->layer.driver.npusimCheckCopy = validate_check;
	v->layer.driver.npusimTellBlock = validate_block;
	v->layer.driver.npusimLeaks = validate_leaks;
	v->layer.driver.npusimMark = validate_mark;
	v->layer.driver.npusimReports = validate_reports;
	pthread_mutex_init(&v->lock, NULL);
	v->order = order_new();
	new_records(v);
	v->strict = strcmp(mode, "strict") == 0;
	active = v;
	if (!forks)
		pthread_atfork(lock_for_fork, unlock_after_fork, forget_in_child);
	forks = true;
	return &v->layer.driver;
}

static bool ended;
static int asked; /* the status that NPUSIM_LEAKS=fail wants; findings come first */

/* After the program's own destructors, which may give memory back. */
__attribute__((destructor)) static void end_of_process(void)
{
	int status;

	if (ended)
		return;
	ended = true;
	if (active != NULL && pthread_mutex_trylock(&active->lock) == 0)
		tell_last_locked(active);
	report_flush();
	status = report_end();
	if (status == 0)
		status = asked;
	if (status != 0)
		exit(status); /* glibc goes on with what is left of the end, and keeps this status
			       */
}

static void end_with(int status)
{
	asked = status;
	end_of_process();
}

extern const struct validate_module npusim_validate_1 __attribute__((visibility("default")));
const struct validate_module npusim_validate_1 = { check_settings, open_layer, end_with };
