/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer: its hooks, its settings, and the end of the process.
 */
#include "validate/validate.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct validate *active; /* the process's one layer */

const char *validate_range(struct validate *v, uint64_t begin, uint64_t end)
{
	static __thread char texts[16][192];
	static __thread unsigned next;
	char *text = texts[next++ % 16];
	const struct object *object = objects_around(v->objects, begin);
	int length = snprintf(text, sizeof(texts[0]), "%#llx, %s", (unsigned long long)begin,
			      npu_size_text(end - begin));

	if (object != NULL && object->key == begin && object->bytes == end - begin)
		snprintf(text + length, sizeof(texts[0]) - (size_t)length, " (the whole %s)",
			 object_name(object->kind));
	else if (object != NULL)
		snprintf(text + length, sizeof(texts[0]) - (size_t)length,
			 " (%s into the %s at %#llx, %s)",
			 npu_size_words((int64_t)(begin - object->key)), object_name(object->kind),
			 (unsigned long long)object->key, npu_size_words((int64_t)(object->bytes)));
	return text;
}

/* ---- hooks ---- */

/* What the hook before a call leaves for the one after it. */
struct note {
	npu_stack stack;
	bool refused;
};

/* Calls that change neither memory nor order. */
static bool is_idle(enum driver_op op)
{
	switch (op) {
	case DRIVER_OP_halMemGetInfo:
	case DRIVER_OP_drvMemGetAttribute:
	case DRIVER_OP_halSqCqQuery:
	case DRIVER_OP_halGetDeviceInfo:
		return true;
	default:
		return false;
	}
}

/* The stack costs more than all the rest: it is taken for calls whose stack somebody may read. */
static npu_stack stack_of(const struct layer_call *call)
{
	return call->op == DRIVER_OP_halCqReportRecv || call->op == DRIVER_OP_halResourceConfig ||
			       call->op == DRIVER_OP_halResourceIdAlloc ||
			       call->op == DRIVER_OP_halResourceIdFree
		       ? 0
		       : npu_stack_here();
}

static bool validate_before(struct layer *layer, struct layer_call *call)
{
	struct validate *v = (struct validate *)layer;
	struct note *note = (struct note *)(void *)call->note;

	if (is_idle(call->op))
		return false;
	note->stack = stack_of(call);
	pthread_mutex_lock(&v->lock);
	note->refused = validate_memory_before(v, call, note->stack);
	pthread_mutex_unlock(&v->lock);
	return note->refused;
}

static void validate_after(struct layer *layer, struct layer_call *call)
{
	struct validate *v = (struct validate *)layer;
	struct note *note = (struct note *)(void *)call->note;
	npu_stack stack = note->stack;

	if (is_idle(call->op))
		return;
	pthread_mutex_lock(&v->lock);
	if (call->code == DRV_ERROR_NONE)
		validate_queue_call(v, call, stack);
	if (call->code == DRV_ERROR_NONE || !note->refused)
		validate_memory_after(v, call, stack);
	pthread_mutex_unlock(&v->lock);
	report_flush();
}

static drvError_t validate_order(struct npu_driver *self, uint32_t dev, enum npu_order what,
				 uint32_t id, uint64_t value)
{
	struct validate *v = (struct validate *)self;

	pthread_mutex_lock(&v->lock);
	validate_told(v, dev, what, id, value);
	pthread_mutex_unlock(&v->lock);
	return DRV_ERROR_NONE;
}

/* ---- the object ---- */

static void validate_end(struct layer *layer)
{
	struct validate *v = (struct validate *)layer;

	if (active == v)
		active = NULL;
	pthread_mutex_lock(&v->lock);
	validate_memory_left(v);
	pthread_mutex_unlock(&v->lock);
	report_flush();
	order_free(v->order);
	accesses_free(v->accesses);
	objects_free(v->objects);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static void lock_for_fork(void)
{
	if (active != NULL)
		pthread_mutex_lock(&active->lock);
}

static void unlock_after_fork(void)
{
	if (active != NULL)
		pthread_mutex_unlock(&active->lock);
}

/* A child has none of its parent's memory: what the parent holds is not its leak. */
static void forget_in_child(void)
{
	if (active == NULL)
		return;
	objects_free(active->objects);
	active->objects = objects_new();
	unlock_after_fork();
}

struct npu_driver *npusim_validate_1(struct npu_driver *lower, const char *mode, char **error)
	__attribute__((visibility("default")));
struct npu_driver *npusim_validate_1(struct npu_driver *lower, const char *mode, char **error)
{
	static const struct layer_hooks hooks = { validate_before, validate_after, validate_end };
	static bool forks;
	struct validate *v;

	npu_stack_use(NPU_STACK_SHORT);
	if (!report_open(error))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return NULL;
	layer_init(&v->layer, "validate", lower, &hooks);
	v->layer.driver.npusimOrder = validate_order;
	pthread_mutex_init(&v->lock, NULL);
	v->order = order_new();
	v->accesses = accesses_new();
	v->objects = objects_new();
	v->strict = strcmp(mode, "strict") == 0;
	active = v;
	if (!forks)
		pthread_atfork(lock_for_fork, unlock_after_fork, forget_in_child);
	forks = true;
	return &v->layer.driver;
}

/* After the program's own destructors, which may give memory back. */
__attribute__((destructor)) static void end_of_process(void)
{
	int status;

	if (active != NULL && pthread_mutex_trylock(&active->lock) == 0) {
		validate_memory_left(active);
		pthread_mutex_unlock(&active->lock);
	}
	report_flush();
	status = report_end();
	if (status == 0)
		return;
	fflush(NULL);
	_exit(status);
}
