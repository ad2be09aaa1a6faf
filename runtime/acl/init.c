/* SPDX-License-Identifier: Apache-2.0
 *
 * Start-up and shutdown as the ACL counts them, the callbacks around them, and versions. The
 * runtime itself starts when it is first needed, and ends with the process: this count frees
 * nothing.
 */
#include "acl-internal.h"

#include "base/cancel.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

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

static struct hook *find_hook(aclRegisterCallbackType type, aclInitCallbackFunc init,
			      aclFinalizeCallbackFunc finalize, bool any)
{
	struct hook *hook;

	TAILQ_FOREACH(hook, &hooks, link)
	if (hook->type == type && (hook->init != NULL) == (init != NULL) &&
	    (any || (hook->init == init && hook->finalize == finalize)))
		return hook;
	return NULL;
}

static aclError add_hook_locked(const char *call, struct hook added)
{
	struct hook *hook;

	if (added.type != ACL_REG_TYPE_OTHER &&
	    find_hook(added.type, added.init, added.finalize, true) != NULL)
		return acl_fail(ACL_ERROR_INTERNAL_ERROR, call,
				"type=%d has a callback already; only ACL_REG_TYPE_OTHER (%d) can "
				"have several",
				(int)added.type, (int)ACL_REG_TYPE_OTHER);
	hook = malloc(sizeof(*hook));
	if (hook == NULL)
		return acl_fail(ACL_ERROR_BAD_ALLOC, call, "no memory for a callback");
	*hook = added;
	TAILQ_INSERT_TAIL(&hooks, hook, link);
	return ACL_SUCCESS;
}

/* One that comes after aclInit is called at once. */
static aclError add_hook(const char *call, struct hook added)
{
	UNCANCELLED;
	LOCKED(&init_lock);
	const char *text = init_config != NULL ? init_config : "";
	aclError code = add_hook_locked(call, added);

	if (code == ACL_SUCCESS && added.init != NULL && init_count > 0)
		code = added.init(text, strlen(text), added.user_data);
	return code;
}

static aclError remove_hook(const char *call, aclRegisterCallbackType type,
			    aclInitCallbackFunc init, aclFinalizeCallbackFunc finalize)
{
	LOCKED(&init_lock);
	struct hook *hook = find_hook(type, init, finalize, false);

	if (hook == NULL)
		return acl_fail(ACL_ERROR_INTERNAL_ERROR, call,
				"cbFunc is not registered under type=%d", (int)type);
	TAILQ_REMOVE(&hooks, hook, link);
	free(hook);
	return ACL_SUCCESS;
}

static aclError run_hooks(bool init)
{
	const char *text = init_config != NULL ? init_config : "";
	aclError code = ACL_SUCCESS;
	struct hook *hook;

	TAILQ_FOREACH(hook, &hooks, link)
	if (code == ACL_SUCCESS && init && hook->init != NULL)
		code = hook->init(text, strlen(text), hook->user_data);
	else if (code == ACL_SUCCESS && !init && hook->finalize != NULL)
		code = hook->finalize(hook->user_data);
	return code;
}

ACL_EXPORT aclError aclInitCallbackRegister(aclRegisterCallbackType type,
					    aclInitCallbackFunc cbFunc, void *userData)
{
	return ACL_IS_NULL(cbFunc)
		       ?: add_hook(__func__, (struct hook){ .type = type,
							    .init = cbFunc,
							    .user_data = userData });
}

ACL_EXPORT aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
					      aclInitCallbackFunc cbFunc)
	ACL_ANSWERS(ACL_IS_NULL(cbFunc) ?: remove_hook(__func__, type, cbFunc, NULL));

ACL_EXPORT aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
						aclFinalizeCallbackFunc cbFunc, void *userData)
{
	return ACL_IS_NULL(cbFunc)
		       ?: add_hook(__func__, (struct hook){ .type = type,
							    .finalize = cbFunc,
							    .user_data = userData });
}

ACL_EXPORT aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
						  aclFinalizeCallbackFunc cbFunc)
	ACL_ANSWERS(ACL_IS_NULL(cbFunc) ?: remove_hook(__func__, type, NULL, cbFunc));

/* ---- start and stop ---- */

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

static aclError read_config(const char *call, const char *path)
{
	char wrong[128];

	free(init_config);
	init_config = NULL;
	if (path == NULL || path[0] == '\0')
		return ACL_SUCCESS;
	init_config = read_file(path);
	if (init_config == NULL)
		return acl_fail(ACL_ERROR_INVALID_FILE, call, "configPath=%s cannot be read: %s",
				path, strerror(errno));
	if (!config_is_json(init_config, wrong, sizeof(wrong)))
		return acl_fail(ACL_ERROR_PARSE_FILE, call, "configPath=%s is not JSON: %s", path,
				wrong);
	npu_log(NPU_LOG_INFO,
		"%s: the settings of %s are for dumps, profiling and operators, which are not "
		"modelled",
		call, path);
	return ACL_SUCCESS;
}

static aclError start_locked(const char *call, const char *path)
{
	aclError code = read_config(call, path) ?: acl_check_driver(call) ?: run_hooks(true);

	if (code == ACL_SUCCESS) {
		init_count = 1;
		finalized = false;
	}
	return code;
}

ACL_EXPORT aclError aclInit(const char *configPath)
{
	UNCANCELLED;
	LOCKED(&init_lock);

	if (init_count == 0)
		return start_locked(__func__, configPath);
	return acl_fail(ACL_ERROR_REPEAT_INITIALIZE, __func__,
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

ACL_EXPORT aclError aclFinalize(void)
{
	UNCANCELLED;
	LOCKED(&init_lock);

	return finalized ? acl_fail(ACL_ERROR_REPEAT_FINALIZE, __func__,
				    "the runtime is finalised already")
			 : stop_locked();
}

ACL_EXPORT aclError aclFinalizeReference(uint64_t *refCount)
{
	UNCANCELLED;
	LOCKED(&init_lock);
	aclError code = ACL_SUCCESS;

	if (init_count == 0)
		code = acl_fail(ACL_ERROR_REPEAT_FINALIZE, __func__,
				"no aclInit is left to take back");
	else if (init_count == 1)
		code = stop_locked();
	else
		init_count--;
	if (refCount != NULL)
		*refCount = init_count;
	return code;
}

/* ---- versions ---- */

ACL_EXPORT aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
				    int32_t *patchVersion)
	ACL_ANSWERS(ACL_IS_NULL(majorVersion) ?: ACL_IS_NULL(minorVersion)
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

static aclError find_package(const char *call, const char *name, const struct package **out)
{
	for (unsigned i = 0; i < PACKAGE_COUNT; i++) {
		*out = &packages[i];
		if (same_name(packages[i].name, name))
			return ACL_SUCCESS;
	}
	return acl_fail(ACL_ERROR_INVALID_FILE, call,
			"there is no package '%s'; known are runtime, bisheng-compiler, hccl, "
			"oam-tools, ops-legacy and driver",
			name);
}

ACL_EXPORT aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
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
		return acl_invalid(__func__, "name is %d; it must be an ACL_PKG_NAME_* (0 to %d)",
				   (int)name, (int)ACL_PKG_NAME_DRIVER);
	find_package(__func__, names[name], &package);
	*version = package->version;
	return ACL_SUCCESS;
}

ACL_EXPORT aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
	const struct package *package;
	aclError code = ACL_IS_NULL(versionStr) ?: ACL_IS_NULL(pkgName)
			?: find_package(__func__, pkgName, &package);

	if (code == ACL_SUCCESS)
		snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%s", package->version.version);
	return code;
}

ACL_EXPORT aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
	const struct package *package;

	return ACL_IS_NULL(versionNum) ?: ACL_IS_NULL(pkgName)
			?: find_package(__func__, pkgName, &package)
			?: ACL_GIVE(versionNum, package->number);
}
