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

/* ---- faults: calls that NPUSIM_FAULT makes fail never reach the driver below, which asks for
 * those of the links between servers itself ---- */

#define RULES_MAX 32

/* What rules are about: calls of the driver, or copies over the link to a server. */
#define ANY_CALL     DRIVER_OP_COUNT
#define LINK(server) (ANY_CALL + 1u + (server))
#define ANY_LINK     LINK(48) /* servers are numbered below */
#define LINK_US_MAX  1000000000u
static const char form[] =
	"CALL:WHEN:HOW, such as halMemCreate:3:oom, mem_map:every:10:busy or *:100+:invalid, or of "
	"copies between servers link3:2+:lost or link::20us";

enum when { WHEN_ONCE, WHEN_FROM, WHEN_EVERY };

struct fault_rule {
	unsigned of;
	enum when when;
	uint64_t number;
	uint64_t how; /* the code; of a link, how many us it adds, 0: the copy is lost */
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
	{ "lost", DRV_ERROR_NONE }, /* of links */
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* The thread's message of the fault that it met last, until the next call that goes through. */
static __thread char fault_text[160];

static bool rule_hits(struct fault_rule *rule, unsigned of, uint64_t *out_call)
{
	uint64_t call;

	if (rule->of != of && rule->of != (of < ANY_CALL ? ANY_CALL : ANY_LINK))
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
		call->code = (drvError_t)fault->rule[i].how;
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

/* A kind or a code; of a link "lost" or "20us". */
static bool parse_how(const char *how, bool link, uint64_t *out)
{
	const char *unit = link ? "us" : "", *end = how + strcspn(how, unit);

	for (unsigned i = 0; i < KIND_COUNT; i++)
		if (strcasecmp(how, kinds[i].name) == 0 && (kinds[i].code == 0) == link) {
			*out = kinds[i].code;
			return true;
		}
	return parse_number(how, end, out) && strcmp(end, unit) == 0 &&
	       *out <= (link ? LINK_US_MAX : 0xffff);
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
	bool link;

	snprintf(whole, sizeof(whole), "%s", text);
	if (when == NULL || how == when)
		return bad(error, whole, "a part is missing", NULL);
	*when++ = '\0';
	*how++ = '\0';
	link = strncmp(text, "link", 4) == 0 && text[4 + strspn(text + 4, "0123456789")] == '\0';
	rule->of = strcmp(text, "*") == 0      ? ANY_CALL
		   : strcmp(text, "link") == 0 ? ANY_LINK
		   : link                      ? LINK((unsigned)strtoul(text + 4, NULL, 10))
					       : driver_op_by_name(text, &nearest);
	if (link && text[4] != '\0' && (strlen(text) > 6 || rule->of >= ANY_LINK))
		return bad(error, whole, "servers are numbered 0 to 47", NULL);
	if (rule->of == ANY_CALL && strcmp(text, "*") != 0)
		return bad(error, whole, "there is no such call of the driver", nearest);
	if (rule->of < ANY_CALL && !driver_op_is_call(rule->of))
		return bad(error, whole, "the call answers no code and cannot fail", NULL);
	if (!parse_when(*when != '\0' ? when : "1+", rule))
		return bad(error, whole,
			   "the middle is not the number of a call from 1, N+ or every:N", NULL);
	return parse_how(how, link, &rule->how) ||
	       bad(error, whole,
		   link ? "the end is not lost or a time such as 20us"
			: "the end is not oom, busy, invalid, notsupport or a code of the driver",
		   NULL);
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

/* The layer that has rules for links: of one model there is one. */
static struct fault_layer *links;

static bool link_crossed(unsigned server, uint64_t *delay_us)
{
	uint64_t number;
	bool lost = false;

	for (unsigned i = 0; i < links->count; i++)
		if (rule_hits(&links->rule[i], LINK(server), &number)) {
			*delay_us += links->rule[i].how;
			lost |= links->rule[i].how == 0;
		}
	return !lost;
}

driver_link_fn driver_link_faults(void)
{
	return links != NULL ? link_crossed : NULL;
}

static void fault_end(struct layer *layer)
{
	links = links == (struct fault_layer *)layer ? NULL : links;
	free(layer);
}

struct npu_driver *fault_layer_open(struct npu_driver *lower, const char *spec, char **error)
{
	static const struct layer_hooks hooks = { .before = fault_before, .end = fault_end };
	struct fault_layer *fault = parse(spec, error);

	if (fault == NULL)
		return NULL;
	layer_init(&fault->layer, "fault", lower, &hooks);
	fault->layer.driver.npusimLastMessage = fault_last_message;
	for (unsigned i = 0; i < fault->count; i++)
		if (fault->rule[i].of > ANY_CALL)
			links = fault;
	if (links != fault || (lower->caps & NPU_CAP_MODEL))
		return &fault->layer.driver;
	npu_text_add(error, "NPUSIM_FAULT: the model alone has links, and driver %s none",
		     lower->name);
	fault_end(&fault->layer);
	return NULL;
}

/* ---- the layers of a process ---- */

/* A module of its own: a process that does not validate does not load it. NULL: it is not loaded;
 * a `mode` (may be NULL) cannot be had then, as *error says. */
static const struct validate_module *validation(int flags, const char *mode, char **error)
{
	char path[MODULE_PATH_MAX] = "npusim-validate.so";
	void *module, *found;

	driver_module_find("runtime/validate", "npusim-validate.so", path);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
	found = module == NULL ? NULL : dlsym(module, VALIDATE_SYMBOL);
	if (found == NULL && mode != NULL)
		npu_text_add(error, "NPUSIM_VALIDATE=%s: %s", mode, dlerror());
	return found;
}

static struct npu_driver *open_validation(struct npu_driver *lower, const char *mode, char **error)
{
	bool off = strcmp(mode, "off") == 0;
	const struct validate_module *module = off ? NULL : validation(0, mode, error);

	return module != NULL ? module->open(lower, mode, error) : off ? lower : NULL;
}

static bool check_validation(const char *mode, char **error)
{
	const struct validate_module *module;

	return strcmp(mode, "off") == 0 ||
	       ((module = validation(0, mode, error)) != NULL && module->check(error));
}

void driver_stack_exit(int status)
{
	const struct validate_module *module = validation(RTLD_NOLOAD, NULL, NULL);

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
