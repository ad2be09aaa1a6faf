/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the layers of a process that NPUSIM_FAULT, NPUSIM_VALIDATE and NPUSIM_TRACE ask for, and
 * ends them.
 */

#include "base/base.h"
#include "driver/layer.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- faults: calls that NPUSIM_FAULT makes fail never reach the driver below ---- */

#define RULES_MAX 32
static const char form[] =
	"CALL:WHEN:HOW, such as halMemCreate:3:oom, mem_map:every:10:busy or *:100+:invalid";

enum when { WHEN_ONCE, WHEN_FROM, WHEN_EVERY };

struct fault_rule {
	enum driver_op op; /* DRIVER_OP_COUNT: any */
	enum when when;
	uint64_t number;
	drvError_t code;
	_Atomic uint64_t calls;
};

struct fault_layer {
	struct layer layer;
	unsigned count;
	struct fault_rule rule[RULES_MAX];
};

static const struct {
	const char *name;
	drvError_t code;
} kinds[] = {
	{ "oom", DRV_ERROR_OUT_OF_MEMORY },
	{ "busy", DRV_ERROR_BUSY },
	{ "invalid", DRV_ERROR_INVALID_VALUE },
	{ "notsupport", DRV_ERROR_NOT_SUPPORT },
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* The thread's message of the fault that it met last, until the next call that goes through. */
static __thread char fault_text[160];

static bool rule_hits(struct fault_rule *rule, enum driver_op op, uint64_t *out_call)
{
	uint64_t call;

	if (rule->op != op && rule->op != DRIVER_OP_COUNT)
		return false;
	call = atomic_fetch_add_explicit(&rule->calls, 1, memory_order_relaxed) + 1;
	*out_call = call;
	return rule->when == WHEN_ONCE   ? call == rule->number
	       : rule->when == WHEN_FROM ? call >= rule->number
					 : call % rule->number == 0;
}

/* Every rule counts the call, though another may have made it fail. */
static bool fault_before(struct layer *layer, struct layer_call *call)
{
	struct fault_layer *fault = (struct fault_layer *)layer;
	bool hit = false;

	fault_text[0] = '\0';
	for (unsigned i = 0; i < fault->count; i++) {
		uint64_t number;

		if (!rule_hits(&fault->rule[i], call->op, &number) || hit)
			continue;
		hit = true;
		call->code = fault->rule[i].code;
		snprintf(fault_text, sizeof(fault_text),
			 "NPUSIM_FAULT: call %llu of %s was made to fail with %d",
			 (unsigned long long)number, driver_op_name(call->op), call->code);
		npu_log(NPU_LOG_INFO, "%s", fault_text);
	}
	return hit;
}

static const char *fault_last_message(struct npu_driver *self)
{
	const struct layer *layer = (const struct layer *)self;

	return fault_text[0] != '\0' ? fault_text : layer->below.npusimLastMessage(self->lower);
}

static bool bad(char **error, const char *rule, const char *what, const char *meant)
{
	npu_text_add(error, "NPUSIM_FAULT: in '%s' %s%s%s%s; the form is %s", rule, what,
		     meant != NULL ? "; is " : "", meant ?: "", meant != NULL ? " meant?" : "",
		     form);
	return false;
}

/* A number up to `end`, above 0. */
static bool parse_number(const char *text, const char *end, uint64_t *out)
{
	char *stop;

	*out = strtoull(text, &stop, 0);
	return isdigit((unsigned char)*text) && stop == end && *out > 0;
}

static bool parse_how(const char *how, drvError_t *out)
{
	uint64_t code;

	for (unsigned i = 0; i < KIND_COUNT; i++)
		if (strcasecmp(how, kinds[i].name) == 0) {
			*out = kinds[i].code;
			return true;
		}
	*out = parse_number(how, how + strlen(how), &code) && code <= 0xffff ? (drvError_t)code
									     : DRV_ERROR_NONE;
	return *out != DRV_ERROR_NONE;
}

/* "3", "3+" or "every:3". */
static bool parse_when(const char *text, struct fault_rule *rule)
{
	const char *end = text + strlen(text);
	bool every = strncasecmp(text, "every:", 6) == 0, from = !every && end[-1] == '+';

	rule->when = every ? WHEN_EVERY : from ? WHEN_FROM : WHEN_ONCE;
	return parse_number(every ? text + 6 : text, from ? end - 1 : end, &rule->number);
}

static bool parse_rule(char *text, struct fault_rule *rule, char **error)
{
	char whole[128];
	char *when = strchr(text, ':');
	char *how = strrchr(text, ':');
	const char *nearest = NULL;

	snprintf(whole, sizeof(whole), "%s", text);
	if (when == NULL || how == when)
		return bad(error, whole, "a part is missing", NULL);
	*when++ = '\0';
	*how++ = '\0';
	rule->op = strcmp(text, "*") == 0 ? DRIVER_OP_COUNT : driver_op_by_name(text, &nearest);
	if (rule->op == DRIVER_OP_COUNT && strcmp(text, "*") != 0)
		return bad(error, whole, "there is no such call of the driver", nearest);
	if (rule->op != DRIVER_OP_COUNT && !driver_op_is_call(rule->op))
		return bad(error, whole, "the call answers no code and cannot fail", NULL);
	if (!parse_when(when, rule))
		return bad(error, whole,
			   "the middle is not the number of a call from 1, N+ or every:N", NULL);
	if (!parse_how(how, &rule->code))
		return bad(error, whole,
			   "the end is not oom, busy, invalid, notsupport or a code of the driver",
			   NULL);
	return true;
}

static struct fault_layer *parse(const char *spec, char **error)
{
	struct fault_layer *fault = calloc(1, sizeof(*fault));
	char *text = strdup(spec), *place = NULL;
	bool fine = fault != NULL && text != NULL;

	*error = NULL;
	for (char *rule = fine ? strtok_r(text, ",", &place) : NULL; fine && rule != NULL;
	     rule = strtok_r(NULL, ",", &place)) {
		if (fault->count == RULES_MAX)
			fine = bad(error, rule, "there are more than 32 rules", NULL);
		else
			fine = parse_rule(rule, &fault->rule[fault->count++], error);
	}
	free(text);
	if (fine && fault->count == 0)
		fine = bad(error, spec, "there is no rule", NULL);
	if (!fine)
		free(fault);
	return fine ? fault : NULL;
}

static bool fault_layer_check(const char *spec, char **error)
{
	struct fault_layer *fault = parse(spec, error);

	free(fault);
	return fault != NULL;
}

struct npu_driver *fault_layer_open(struct npu_driver *lower, const char *spec, char **error)
{
	static const struct layer_hooks hooks = { .before = fault_before, .end = layer_free };
	struct fault_layer *fault = parse(spec, error);

	if (fault == NULL)
		return NULL;
	layer_init(&fault->layer, "fault", lower, &hooks);
	fault->layer.driver.npusimLastMessage = fault_last_message;
	return &fault->layer.driver;
}

/* ---- the layers of a process ---- */

/* A module of its own: a process that does not validate does not load it. NULL: it is not loaded,
 * dlerror() says why. */
static const struct validate_module *load_validation(int flags)
{
	char path[MODULE_PATH_MAX] = "npusim-validate.so";
	void *module;

	driver_module_find("runtime/validate", "npusim-validate.so", path);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
	return module == NULL ? NULL : dlsym(module, VALIDATE_SYMBOL);
}

/* Of a mode that is not "off". */
static const struct validate_module *validation(const char *mode, char **error)
{
	const struct validate_module *module = load_validation(0);

	if (module == NULL)
		npu_text_add(error, "NPUSIM_VALIDATE=%s: %s", mode, dlerror());
	return module;
}

static struct npu_driver *open_validation(struct npu_driver *lower, const char *mode, char **error)
{
	const struct validate_module *module;

	if (strcmp(mode, "off") == 0)
		return lower;
	module = validation(mode, error);
	return module != NULL ? module->open(lower, mode, error) : NULL;
}

static bool check_validation(const char *mode, char **error)
{
	const struct validate_module *module;

	if (strcmp(mode, "off") == 0)
		return true;
	module = validation(mode, error);
	return module != NULL && module->check(error);
}

void driver_stack_exit(int status)
{
	const struct validate_module *module = load_validation(RTLD_NOLOAD);

	if (module != NULL)
		module->exit(status);
	/* glibc goes on with what is left of the end, and keeps this status */
	exit(status);
}

static const struct {
	enum npu_var var;
	struct npu_driver *(*open)(struct npu_driver *lower, const char *text, char **error);
	bool (*check)(const char *text, char **error);
} layers[] = { { NPU_VAR_FAULT, fault_layer_open, fault_layer_check },
	       { NPU_VAR_VALIDATE, open_validation, check_validation },
	       { NPU_VAR_TRACE, trace_layer_open, trace_layer_check } };
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

bool driver_stack_check(char **error)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		bool wanted;
		const char *text = npu_var_get(layers[i].var, &wanted);

		if (wanted && !layers[i].check(text, error))
			return false;
	}
	return true;
}

struct npu_driver *driver_stack_open(struct npu_driver *bottom, char **error)
{
	struct npu_driver *top = bottom;

	*error = NULL;
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		bool wanted;
		const char *text = npu_var_get(layers[i].var, &wanted);
		struct npu_driver *upper = wanted ? layers[i].open(top, text, error) : top;

		if (upper == NULL) {
			driver_stack_end(top);
			return NULL;
		}
		top = upper;
	}
	return top;
}

void driver_stack_share(struct npu_driver *top)
{
	for (; top->lower != NULL; top = top->lower)
		top->close = NULL;
}

void driver_stack_end(struct npu_driver *top)
{
	while (top->lower != NULL) {
		struct layer *layer = (struct layer *)top;

		top = top->lower;
		layer->hooks->end(layer);
	}
}

void npu_driver_close(struct npu_driver *drv)
{
	while (drv != NULL) {
		struct npu_driver *lower = drv->lower;

		if (drv->close != NULL)
			drv->close(drv);
		drv = lower;
	}
}
