/* SPDX-License-Identifier: Apache-2.0
 *
 * Start-up and shutdown as the ACL counts them, the callbacks around them, versions, and the
 * thread's message and last code; and npusim's own functions in addition to the ACL's
 * (include/npusim/npusim.h). The runtime itself starts when it is first needed, and ends with the
 * process: this count frees nothing.
 */
#include "acl-internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/lock.h"

aclError acl_fail_unmodelled(void)
{
	return acl_unsupported(
		"outside of what npusim models: it runs the runtime's memory, device, stream and "
		"event functions, and no operators; runtime/COVERAGE.md lists what works");
}

const char *aclGetRecentErrMsg(void)
{
	static __thread char handed_out[4096];

	if (npu_message()[0] == '\0')
		return NULL;
	snprintf(handed_out, sizeof(handed_out), "%s", npu_message());
	npu_message_clear();
	return handed_out;
}

static aclError check_level(aclrtLastErrLevel level)
{
	return ACL_WANT(level == ACL_RT_THREAD_LEVEL,
			"level is %d; it must be ACL_RT_THREAD_LEVEL (0)", (int)level);
}

ACL_ANSWERS(aclrtPeekAtLastError, check_level(level) ?: core_last_error(false));
ACL_ANSWERS(aclrtGetLastError, check_level(level) ?: core_last_error(true));

/* A callback may call aclInit or register another. */
static pthread_mutex_t init_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint64_t init_count; /* init_lock */
static bool finalized;      /* init_lock */
static char *init_config;   /* init_lock: the file's text */

/* ---- callbacks ---- */

struct hook {
	TAILQ_ENTRY(hook) link;
	aclRegisterCallbackType type;
	aclInitCallbackFunc init;
	aclFinalizeCallbackFunc finalize;
	void *user_data;
};
static TAILQ_HEAD(, hook) hooks = TAILQ_HEAD_INITIALIZER(hooks);

/* One of its type and kind, and unless `any` is right with its function. */
static struct hook *find_hook(const struct hook *like, bool any)
{
	struct hook *hook;

	TAILQ_FOREACH(hook, &hooks, link)
	if (hook->type == like->type && (hook->init != NULL) == (like->init != NULL) &&
	    (any || (hook->init == like->init && hook->finalize == like->finalize)))
		return hook;
	return NULL;
}

static aclError run_hook(const struct hook *hook, bool init)
{
	const char *text = init_config ?: "";

	if (init)
		return hook->init != NULL ? hook->init(text, strlen(text), hook->user_data)
					  : ACL_SUCCESS;
	return hook->finalize != NULL ? hook->finalize(hook->user_data) : ACL_SUCCESS;
}

/* One that comes after aclInit is called at once. */
static aclError add_hook(struct hook added)
{
	struct hook *hook;
	UNCANCELLED;
	LOCKED(&init_lock);

	if (added.type != ACL_REG_TYPE_OTHER && find_hook(&added, true) != NULL)
		return core_fail(ACL_ERROR_INTERNAL_ERROR,
				 "type=%d has a callback already; only ACL_REG_TYPE_OTHER (%d) can "
				 "have several",
				 (int)added.type, (int)ACL_REG_TYPE_OTHER);
	hook = malloc(sizeof(*hook));
	if (hook == NULL)
		return core_fail(ACL_ERROR_BAD_ALLOC, "no memory for a callback");
	*hook = added;
	TAILQ_INSERT_TAIL(&hooks, hook, link);
	return init_count > 0 ? run_hook(hook, true) : ACL_SUCCESS;
}

static aclError remove_hook(struct hook removed)
{
	LOCKED(&init_lock);
	struct hook *hook = find_hook(&removed, false);

	if (hook == NULL)
		return core_fail(ACL_ERROR_INTERNAL_ERROR, "cbFunc is not registered under type=%d",
				 (int)removed.type);
	TAILQ_REMOVE(&hooks, hook, link);
	free(hook);
	return ACL_SUCCESS;
}

static aclError run_hooks(bool init)
{
	aclError code = ACL_SUCCESS;
	struct hook *hook;

	TAILQ_FOREACH(hook, &hooks, link)
	code = code ?: run_hook(hook, init);
	return code;
}

#define HOOK(...) ((struct hook){ .type = type, __VA_ARGS__ })
ACL_ANSWERS(aclInitCallbackRegister,
	    ACL_IS_NULL(cbFunc) ?: add_hook(HOOK(.init = cbFunc, .user_data = userData)));
ACL_ANSWERS(aclInitCallbackUnRegister, ACL_IS_NULL(cbFunc) ?: remove_hook(HOOK(.init = cbFunc)));
ACL_ANSWERS(aclFinalizeCallbackRegister,
	    ACL_IS_NULL(cbFunc) ?: add_hook(HOOK(.finalize = cbFunc, .user_data = userData)));
ACL_ANSWERS(aclFinalizeCallbackUnRegister,
	    ACL_IS_NULL(cbFunc) ?: remove_hook(HOOK(.finalize = cbFunc)));

/* ---- start and stop ---- */

/* A parser of JSON (RFC 8259) that stores nothing: it finds where a text stops being JSON. */

#define NESTING_MAX 64

struct reader {
	const char *at;
	const char *wanted; /* what was not there */
	unsigned depth;
};

/* Goes on by so many bytes. False: there are none, where `what` is to be. */
static bool take(struct reader *r, size_t bytes, const char *what)
{
	r->at += bytes;
	if (bytes == 0)
		r->wanted = what;
	return bytes > 0;
}

/* The next character behind blanks. */
static char peek(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
	return *r->at;
}

static bool read_string(struct reader *r)
{
	bool good = take(r, peek(r) == '"', "a string");

	while (good && *r->at != '"')
		if (*r->at != '\\')
			good = take(r, (unsigned char)*r->at >= 0x20, "the end of a string");
		else if (*++r->at == 'u')
			good = take(r, strspn(r->at + 1, "0123456789abcdefABCDEF") < 4 ? 0 : 5,
				    "four hexadecimal digits");
		else
			good = take(r, *r->at != '\0' && strchr("\"\\/bfnrt", *r->at) != NULL,
				    "an escape");
	r->at += good;
	return good;
}

static bool read_digits(struct reader *r)
{
	return take(r, strspn(r->at, "0123456789"), "a digit");
}

static bool read_number(struct reader *r)
{
	r->at += *r->at == '-';
	if (*r->at == '0')
		r->at++;
	else if (!read_digits(r))
		return false;
	if (*r->at == '.' && (r->at++, !read_digits(r)))
		return false;
	if (*r->at != 'e' && *r->at != 'E')
		return true;
	r->at++;
	r->at += *r->at == '+' || *r->at == '-';
	return read_digits(r);
}

static bool read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };
	size_t bytes = 0;

	for (unsigned i = 0; i < 3; i++)
		if (strncmp(r->at, words[i], strlen(words[i])) == 0)
			bytes = strlen(words[i]);
	return take(r, bytes, "a value");
}

static bool read_value(struct reader *r)
{
	char first = peek(r);
	bool object = first == '{', more;

	if (first == '"')
		return read_string(r);
	if (first == '-' || isdigit((unsigned char)first))
		return read_number(r);
	if (!object && first != '[')
		return read_word(r);
	if (++r->depth > NESTING_MAX)
		return take(r, 0, "no deeper nesting than 64");
	r->at++;
	more = peek(r) != (object ? '}' : ']');
	while (more) {
		if ((object && (!read_string(r) || !take(r, peek(r) == ':', "':'"))) ||
		    !read_value(r))
			return false;
		more = peek(r) != (object ? '}' : ']');
		if (more && !take(r, *r->at == ',', object ? "',' or '}'" : "',' or ']'"))
			return false;
	}
	r->at++;
	r->depth--;
	return true;
}

/* False: `wrong` has line, column and what was expected there. A text of blanks only counts as
 * JSON. */
static bool is_json(const char *text, char *wrong, size_t wrong_bytes)
{
	struct reader r = { .at = text, .wanted = "the end" };
	unsigned line = 1;
	const char *start = text;

	if (peek(&r) == '\0' || (read_value(&r) && peek(&r) == '\0'))
		return true;
	for (const char *c = text; c < r.at; c++)
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	snprintf(wrong, wrong_bytes, "line %u, column %zu: %s is expected there", line,
		 (size_t)(r.at - start) + 1, r.wanted);
	return false;
}

/* The file up to a zero byte; free(). NULL: errno says why. */
static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (file == NULL)
		return NULL;
	if (getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = feof(file) ? strdup("") : NULL;
	}
	fclose(file);
	return text;
}

static aclError read_config(const char *path)
{
	char wrong[128];

	free(init_config);
	init_config = NULL;
	if (path == NULL || path[0] == '\0')
		return ACL_SUCCESS;
	init_config = read_file(path);
	if (init_config == NULL)
		return core_fail(ACL_ERROR_INVALID_FILE, "configPath=%s cannot be read: %s", path,
				 strerror(errno));
	if (!is_json(init_config, wrong, sizeof(wrong)))
		return core_fail(ACL_ERROR_PARSE_FILE, "configPath=%s is not JSON: %s", path,
				 wrong);
	npu_log(NPU_LOG_INFO,
		"%s: the settings of %s are for dumps, profiling and operators, which are not "
		"modelled",
		core_called, path);
	return ACL_SUCCESS;
}

static aclError start_locked(const char *path)
{
	aclError code = read_config(path) ?: core_check_driver() ?: run_hooks(true);

	if (code == ACL_SUCCESS) {
		init_count = 1;
		finalized = false;
	}
	return code;
}

aclError aclInit(const char *configPath)
{
	UNCANCELLED;
	LOCKED(&init_lock);

	if (init_count == 0)
		return start_locked(configPath);
	return core_fail(ACL_ERROR_REPEAT_INITIALIZE,
			 "the runtime is initialised already (%llu times now); this does no harm",
			 (unsigned long long)++init_count);
}

static aclError stop_locked(void)
{
	aclError code = run_hooks(false);

	if (code != ACL_SUCCESS)
		return code;
	finalized = true;
	init_count = 0;
	return ACL_SUCCESS;
}

aclError aclFinalize(void)
{
	UNCANCELLED;
	LOCKED(&init_lock);

	return finalized ? core_fail(ACL_ERROR_REPEAT_FINALIZE, "the runtime is finalised already")
			 : stop_locked();
}

aclError aclFinalizeReference(uint64_t *refCount)
{
	UNCANCELLED;
	LOCKED(&init_lock);
	aclError code = ACL_SUCCESS;

	if (init_count == 0)
		code = core_fail(ACL_ERROR_REPEAT_FINALIZE, "no aclInit is left to take back");
	else if (init_count == 1)
		code = stop_locked();
	else
		init_count--;
	if (refCount != NULL)
		*refCount = init_count;
	return code;
}

/* ---- versions ---- */

ACL_ANSWERS(aclrtGetVersion, ACL_IS_NULL(majorVersion) ?: ACL_IS_NULL(minorVersion)
			?: ACL_IS_NULL(patchVersion) ?: ACL_GIVE(majorVersion, ACL_MAJOR_VERSION)
			?: ACL_GIVE(minorVersion, ACL_MINOR_VERSION)
			?: ACL_GIVE(patchVersion, ACL_PATCH_VERSION));

/* The packages of CANN 9.0 and the driver that goes with it. `number` grows with the version, as
 * CANN computes it: major x 10000000 + minor x 100000 + patch x 1000. */
static const struct package {
	const char *name;
	aclCANNPackageVersion version;
	int32_t number;
} packages[] = {
	{ "runtime", { "9.0.0", "9", "0", "0", "0", "" }, 90000000 },
	{ "bisheng-compiler", { "9.0.0", "9", "0", "0", "0", "" }, 90000000 },
	{ "hccl", { "9.0.0", "9", "0", "0", "0", "" }, 90000000 },
	{ "oam-tools", { "9.0.0", "9", "0", "0", "0", "" }, 90000000 },
	{ "ops-legacy", { "9.0.0", "9", "0", "0", "0", "" }, 90000000 },
	{ "driver", { "26.0.0", "26", "0", "0", "0", "" }, 260000000 },
};
#define PACKAGE_COUNT (sizeof(packages) / sizeof(packages[0]))

/* '-' and '_' are the same in names of packages. */
static bool same_name(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++)
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
			return false;
	return *a == *b;
}

static aclError find_package(const char *name, const struct package **out)
{
	for (unsigned i = 0; i < PACKAGE_COUNT; i++) {
		*out = &packages[i];
		if (same_name(packages[i].name, name))
			return ACL_SUCCESS;
	}
	return core_fail(ACL_ERROR_INVALID_FILE,
			 "there is no package '%s'; known are runtime, bisheng-compiler, hccl, "
			 "oam-tools, ops-legacy and driver",
			 name);
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
	static const char *const names[] = {
		[ACL_PKG_NAME_CANN] = "runtime",
		[ACL_PKG_NAME_RUNTIME] = "runtime",
		[ACL_PKG_NAME_COMPILER] = "bisheng-compiler",
		[ACL_PKG_NAME_HCCL] = "hccl",
		[ACL_PKG_NAME_TOOLKIT] = "oam-tools",
		[ACL_PKG_NAME_OPP] = "ops-legacy",
		[ACL_PKG_NAME_OPP_KERNEL] = "ops-legacy",
		[ACL_PKG_NAME_DRIVER] = "driver",
	};
	const struct package *package;

	if (ACL_IS_NULL(version))
		return ACL_ERROR_INVALID_PARAM;
	if ((unsigned)name >= sizeof(names) / sizeof(names[0]))
		return acl_invalid("name is %d; it must be an ACL_PKG_NAME_* (0 to %d)", (int)name,
				   (int)ACL_PKG_NAME_DRIVER);
	find_package(names[name], &package);
	*version = package->version;
	return ACL_SUCCESS;
}

ACL_ANSWERS_WITH(aclsysGetVersionStr, const struct package *package,
	ACL_IS_NULL(versionStr) ?: ACL_IS_NULL(pkgName)
			?: find_package(pkgName, &package)
			?: (snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%s",
				     package->version.version),
			    ACL_SUCCESS));
ACL_ANSWERS_WITH(aclsysGetVersionNum, const struct package *package,
	ACL_IS_NULL(versionNum) ?: ACL_IS_NULL(pkgName)
			?: find_package(pkgName, &package)
			?: ACL_GIVE(versionNum, package->number));

/* ---- npusim's own functions ---- */

ACL_ANSWERS_WITH(npusim_get_stats, uint32_t logic,
	ACL_IS_NULL(out)
		       ?: ACL_WANT(out->size != 0,
				   "out->size is 0; it must be sizeof(struct npu_stats), %zu",
				   sizeof(*out))
		       ?: core_device_logic(device, "device", &logic)
		       ?: core_result(core_call(npusimGetStats, logic, out)));
ACL_ANSWERS_WITH(npusim_touch, uint32_t logic,
	ACL_IS_NULL(at) ?: core_device_logic(device, "device", &logic)
		       ?: core_result(core_call(npusimTouch, logic, at, count, bytes, core)));
ACL_ANSWERS_WITH(npusim_physical, uint32_t logic,
	ACL_IS_NULL(pa) ?: ACL_IS_NULL(bytes)
		       ?: core_device_logic(device, "device", &logic)
		       ?: core_result(core_call(npusimPhysical, logic, va, pa, bytes)));

/* What only layers hear: NOT_SUPPORT, nobody does. */
static int told(drvError_t code)
{
	return code == CORE_NO_DRIVER ? core_result(code) : ACL_SUCCESS;
}

int npusimBlock(const void *ptr, size_t size)
{
	CORE_CALLED(__func__);
	return ACL_IS_NULL(ptr) ?: ACL_IS_ZERO(size)
			?: told(core_call(npusimTellBlock, (uintptr_t)ptr, size));
}

int npusimBlockFree(const void *ptr)
{
	CORE_CALLED(__func__);
	return ACL_IS_NULL(ptr) ?: told(core_call(npusimTellBlock, (uintptr_t)ptr, 0));
}

int npusimMark(const char *name)
{
	CORE_CALLED(__func__);
	return ACL_IS_NULL(name) ?: told(core_call(npusimMark, name));
}

int npusimHeld(npusim_line_fn fn, void *arg)
{
	CORE_CALLED(__func__);
	struct npu_driver *drv = core_driver_peek();

	if (ACL_IS_NULL(fn))
		return ACL_ERROR_INVALID_PARAM;
	return drv == NULL ? ACL_SUCCESS : core_result(npu_call(drv, npusimLeaks, fn, arg, true));
}

int npusimSetReportCallback(npusim_report_fn fn, void *arg)
{
	CORE_CALLED(__func__);
	drvError_t code = core_call(npusimReports, fn, arg);

	if (code == DRV_ERROR_NONE || code == CORE_NO_DRIVER)
		return told(code);
	return acl_unsupported("nothing reports: the validation is off; NPUSIM_VALIDATE=on, or "
			       "`npusim run --validate`, turns it on");
}

uint64_t npusim_now_ps(void)
{
	return core_now_ps();
}

void npusim_freed_soon(const uint64_t *va, size_t count)
{
	core_call(npusimFreedSoon, va, count);
}

int npusim_driver_code(void)
{
	return core_driver_code();
}

char *npusim_backend_text(void)
{
	struct npu_driver *drv = core_driver();

	return drv == NULL ? NULL : npu_driver_text(drv);
}

char *npusim_settings_check(void)
{
	char *error = NULL;

	if (npu_settings_check(&error))
		return NULL;
	return error != NULL ? error : strdup("a setting is not valid");
}
