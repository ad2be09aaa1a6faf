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
	const struct object *object = objects_around(v, begin);
	const char *size = npu_size_text(end - begin);

	if (object == NULL)
		return npu_text("%#llx, %s", (unsigned long long)begin, size);
	return npu_text("%#llx, %s (%s into the %s at %#llx, %s)", (unsigned long long)begin, size,
			npu_size_words(begin - object->key), object_words[object->kind].name,
			(unsigned long long)object->key, npu_size_words(object->bytes));
}

struct validate *validate_enter(void *self)
{
	struct validate *v = self;

	pthread_mutex_lock(&v->lock);
	v->stack = 0;
	return v;
}

/* Why the thread's last call failed, where the program's function that hears of reports has had the
 * driver make another message since: `later`. */
static __thread struct said {
	char why[4096], later[4096];
} said;

static const char *message_of(struct validate *v)
{
	return v->layer.below.npusimLastMessage(v->layer.driver.lower) ?: "";
}

static const char *validate_last_message(struct npu_driver *self)
{
	const char *text = message_of((struct validate *)self);
	bool replaced = said.later[0] != '\0' && strcmp(text, said.later) == 0;

	said.later[0] = '\0'; /* later ones are of calls that this does not see */
	return replaced ? said.why : text;
}

drvError_t validate_leave(struct validate *v)
{
	g_autofree char *why = report_waits() ? g_strdup(message_of(v)) : NULL;

	pthread_mutex_unlock(&v->lock);
	if (why == NULL)
		return DRV_ERROR_NONE;
	report_flush();
	g_strlcpy(said.why, why, sizeof(said.why));
	g_strlcpy(said.later, message_of(v), sizeof(said.later));
	return DRV_ERROR_NONE;
}

/* What the hook before a call leaves for the one after it. */
struct note {
	npu_stack stack;
	uint64_t began, ends;
	struct validate_sent sent;
};

/* Calls that change neither memory nor order; why one failed that asks of an address is of
 * interest. */
static bool is_idle(const struct layer_call *call, bool done)
{
	return call->op == DRIVER_OP_halMemGetInfo || call->op == DRIVER_OP_halGetDeviceInfo ||
	       (call->op == DRIVER_OP_drvMemGetAttribute &&
		(!done || call->code == DRV_ERROR_NONE));
}

static bool validate_before(struct layer *layer, struct layer_call *call)
{
	struct note *note = (struct note *)(void *)call->note;
	struct validate *v;
	bool answered;

	*note = (struct note){ 0 };
	said.later[0] = '\0';
	if (is_idle(call, false))
		return false;
	v = validate_enter(layer);
	validate_call(v, call, false);
	if (call->op == DRIVER_OP_halSqTaskSend)
		note->sent = validate_host_send(v);
	answered = validate_memory_before(v);
	if (v->strict)
		validate_each_copy(v, validate_closed_open);
	note->stack = v->stack;
	note->began = v->made;
	note->ends = v->ends;
	pthread_mutex_unlock(&v->lock);
	return answered;
}

static void validate_after(struct layer *layer, struct layer_call *call)
{
	struct note *note = (struct note *)(void *)call->note;
	struct validate *v;

	if (is_idle(call, true))
		return;
	v = validate_enter(layer);
	v->stack = note->stack;
	v->began = note->began;
	v->ends = note->ends;
	validate_memory_again(v, call);
	validate_call(v, call, call->code == DRV_ERROR_NONE);
	validate_host_sent(v, &note->sent);
	if (call->code == DRV_ERROR_NONE)
		validate_queue_call(v);
	validate_why(v);
	validate_memory_after(v);
	validate_leave(v);
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

	if (code == DRV_ERROR_NONE)
		return code;
	validate_why_copy(validate_enter(self), dst, src, bytes);
	validate_leave(v);
	return code;
}

/* What is held back is not the program's. */
static drvError_t validate_leaks(struct npu_driver *self, npu_line_fn line, void *arg, bool full)
{
	struct validate *v = validate_enter(self);

	validate_memory_let_go(v);
	validate_leave(v);
	return BELOW(v, npusimLeaks, line, arg, full);
}

static drvError_t validate_mark(struct npu_driver *self, const char *name)
{
	struct validate *v = validate_enter(self);

	growth_mark(v, name);
	validate_kept_look(v);
	return validate_leave(v);
}

static drvError_t validate_reports(struct npu_driver *self, npusim_report_fn fn, void *arg)
{
	(void)self;
	report_listen(fn, arg);
	return DRV_ERROR_NONE;
}

static void new_records(struct validate *v)
{
	objects_open(v);
	v->failed = g_ptr_array_new_with_free_func(g_free);
	v->shares = g_ptr_array_new_with_free_func(g_free);
	v->held = g_ptr_array_new_with_free_func(g_free);
}

static void free_records(struct validate *v)
{
	objects_close(v);
	g_ptr_array_unref(v->failed);
	g_ptr_array_unref(v->shares);
	g_ptr_array_unref(v->held);
}

/* What is still held, and what has grown; the lock is released. */
static void tell_last_locked(struct validate *v)
{
	validate_kept_look(v);
	growth_left(v);
	validate_leave(v);
	growth_tell(v);
}

static void validate_end(struct layer *layer)
{
	struct validate *v = validate_enter(layer);

	if (active == v)
		active = NULL;
	validate_memory_let_go(v);
	validate_closed_stop(v);
	tell_last_locked(v);
	order_close(v);
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
	v->layer.driver.npusimOrder = validate_told;
	v->layer.driver.npusimSetDialect = validate_dialect;
	v->layer.driver.npusimCheckCopy = validate_check;
	v->layer.driver.npusimTellBlock = validate_block;
	v->layer.driver.npusimLeaks = validate_leaks;
	v->layer.driver.npusimMark = validate_mark;
	v->layer.driver.npusimReports = validate_reports;
	v->layer.driver.npusimLastMessage = validate_last_message;
	pthread_mutex_init(&v->lock, NULL);
	order_open(v);
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
