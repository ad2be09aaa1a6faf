/* SPDX-License-Identifier: Apache-2.0
 *
 * Start-up and shutdown, versions, errors. What holds for every function: acl_rt.h.
 * Include acl/acl.h, not this.
 */
#ifndef NPUSIM_ACL_RT_SYSTEM_H
#define NPUSIM_ACL_RT_SYSTEM_H

#include "types.h"

NPUSIM_ACL_BEGIN

/**
 * aclInit:
 * @configPath: a JSON file, or null for none. It is read but no setting of it concerns memory.
 *
 * Starts the runtime; counts how often. A program that never calls it works all the same: the
 * first call that needs the runtime starts it.
 *
 * Returns: 0; 100002: it runs already, which is harmless (the count went up); 100003: @configPath
 *   cannot be read; 100006: it is not JSON; 500000: no backend can be used.
 * Since: all releases; in acl_rt.h since 8.5.
 */
aclError aclInit(const char *configPath);

/**
 * aclFinalize:
 *
 * Stops the runtime however often aclInit was called, and frees what the process still holds.
 *
 * Returns: 0; 100037: it does not run, or was stopped already.
 * Since: all releases; in acl_rt.h since 8.5.
 */
aclError aclFinalize(void);

/**
 * aclFinalizeReference:
 * @refCount: out, or null: how many aclInit calls are left after this one.
 *
 * Takes back one aclInit; the last one stops the runtime as aclFinalize does.
 *
 * Returns: 0; 100037: the count is 0 already.
 * Since: 8.5.
 */
aclError aclFinalizeReference(uint64_t *refCount);

/**
 * aclInitCallbackRegister:
 * @type: who registers. One callback each, but any number of ACL_REG_TYPE_OTHER.
 * @cbFunc: called by aclInit with the configuration's text, its length and @userData; what it
 *   returns, if not 0, ends aclInit with that code. If the runtime runs already it is called now.
 * @userData: passed on; may be null.
 *
 * Returns: 0; 100000: @cbFunc is null; 500000: @type has a callback; else what @cbFunc returned.
 * Since: 8.5.
 */
aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
				 void *userData);

/**
 * aclInitCallbackUnRegister:
 * @type: as registered.
 * @cbFunc: as registered.
 *
 * Returns: 0; 100000: @cbFunc is null; 500000: it is not registered under @type.
 * Since: 8.5.
 */
aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc);

/**
 * aclFinalizeCallbackRegister:
 * @type: who registers, as in aclInitCallbackRegister.
 * @cbFunc: called with @userData when the runtime stops, before anything is freed.
 * @userData: passed on; may be null.
 *
 * Returns: 0; 100000: @cbFunc is null; 500000: @type has a callback.
 * Since: 8.5.
 */
aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
				     void *userData);

/**
 * aclFinalizeCallbackUnRegister:
 * As aclInitCallbackUnRegister.
 *
 * Since: 8.5.
 */
aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
				       aclFinalizeCallbackFunc cbFunc);

/**
 * aclrtGetVersion:
 * @majorVersion: out: 1.
 * @minorVersion: out: 17, as CANN 9.0 and later; 8.5 has 16.
 * @patchVersion: out: 0.
 *
 * The version of this API, not of CANN. CANN calls it deprecated from 9.1 on.
 *
 * Since: 8.5.
 */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);

/**
 * aclrtGetSocName:
 *
 * Returns: the name of the SoC, as "Ascend910B1" or "Ascend910_9391"; the string lives as long as
 *   the process. Null if no backend can be used.
 * Since: all releases.
 */
const char *aclrtGetSocName(void);

/**
 * aclGetRecentErrMsg:
 *
 * What went wrong in the calling thread since it last asked: the call, the argument, its value,
 * the limit, and what would be right.
 *
 * Returns: the text, or null if nothing went wrong. It lives until the thread's next call of this
 *   function; free it not.
 * Since: all releases; in acl_rt.h since 8.5.
 */
const char *aclGetRecentErrMsg(void);

/**
 * aclrtPeekAtLastError:
 * @level: ACL_RT_THREAD_LEVEL.
 *
 * Returns: the calling thread's latest runtime code that was not 0, or 0; it stays. 100000: @level
 *   is another value.
 */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/**
 * aclrtGetLastError:
 * As aclrtPeekAtLastError, and forgets it: the next answer is 0 unless more went wrong.
 */
aclError aclrtGetLastError(aclrtLastErrLevel level);

/**
 * aclsysGetCANNVersion:
 * @name: a package.
 * @version: out: its version as text, whole and in parts.
 *
 * CANN calls it deprecated in favour of the next two.
 *
 * Returns: 0; 100000: no such @name; 100003: this package is not there.
 * Since: 8.5.
 */
aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version);

/**
 * aclsysGetVersionStr:
 * @pkgName: a package, as "runtime" or "driver". It is read only, though not const.
 * @versionStr: out: an array of ACL_PKG_VERSION_MAX_SIZE bytes; the version, zero-terminated.
 *
 * Returns: 0; 100003: this package is not there.
 * Since: 8.5.
 */
aclError aclsysGetVersionStr(char *pkgName, char *versionStr);

/**
 * aclsysGetVersionNum:
 * @versionNum: out: a number that grows with the version, beta before release.
 *
 * As aclsysGetVersionStr.
 *
 * Since: 8.5.
 */
aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);

NPUSIM_ACL_END

#endif
