/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that npusim does not model, each once, by what it returns: what unmodelled.c is
 * made of. No include guard: who includes it defines ERROR, POINTER and UINT32. The prototypes
 * repeat include/acl/rt/other.h, and the compiler compares the two.
 */
/* clang-format off */

/* memory */
ERROR(aclrtMemManagedGetAttr, (aclrtMemManagedRangeAttribute attribute, const void *ptr,
	size_t size, void *data, size_t dataSize))
ERROR(aclrtMemManagedGetAttrs, (aclrtMemManagedRangeAttribute *attributes, size_t numAttributes,
	const void *ptr, size_t size, void **data, size_t *dataSizes))
ERROR(aclrtMemAllocManaged, (void **ptr, uint64_t size, uint32_t flag))
ERROR(aclrtGetSymbolAddress, (const void *symbol, void **devPtr))
ERROR(aclrtGetSymbolSize, (const void *symbol, size_t *size))
ERROR(aclrtMemcpyFromSymbol, (void *dst, size_t dstMax, const void *symbol, size_t count,
	size_t offset, aclrtMemcpyKind kind))
ERROR(aclrtMemcpyFromSymbolAsync, (void *dst, size_t dstMax, const void *symbol, size_t count,
	size_t offset, aclrtMemcpyKind kind, aclrtStream stream))
ERROR(aclrtMemcpyToSymbol, (const void *symbol, const void *src, size_t count, size_t offset,
	aclrtMemcpyKind kind))
ERROR(aclrtMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t count, size_t offset,
	aclrtMemcpyKind kind, aclrtStream stream))
ERROR(aclrtMemManagedAdvise, (const void *const ptr, uint64_t size,
	aclrtMemManagedAdviseType advise, aclrtMemManagedLocation location))
ERROR(aclrtGetMemcpyDescSize, (aclrtMemcpyKind kind, size_t *descSize))
ERROR(aclrtSetMemcpyDesc, (void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr,
	size_t count, void *config))
ERROR(aclrtMemcpyAsyncWithOffset, (void **dst, size_t destMax, size_t dstDataOffset,
	const void **src, size_t count, size_t srcDataOffset, aclrtMemcpyKind kind,
	aclrtStream stream))
ERROR(aclrtMemcpyAsyncWithDesc, (void *desc, aclrtMemcpyKind kind, aclrtStream stream))
ERROR(aclrtReduceAsync, (void *dst, const void *src, uint64_t count, aclrtReduceKind kind,
	aclDataType type, aclrtStream stream, void *reserve))
ERROR(aclrtCmoAsyncWithBarrier, (void *src, size_t size, aclrtCmoType cmoType, uint32_t barrierId,
	aclrtStream stream))
ERROR(aclrtCmoWaitBarrier, (aclrtBarrierTaskInfo *taskInfo, aclrtStream stream, uint32_t flag))
ERROR(aclrtIpcMemImportPidInterServer, (const char *key, aclrtServerPid *serverPids, size_t num))
ERROR(aclrtCmoGetDescSize, (size_t *size))
ERROR(aclrtCmoSetDesc, (void *cmoDesc, void *src, size_t size))
ERROR(aclrtCmoAsyncWithDesc, (void *cmoDesc, aclrtCmoType cmoType, aclrtStream stream,
	const void *reserve))
ERROR(aclrtMemManagedPrefetchAsync, (const void *ptr, size_t size,
	aclrtMemManagedLocation location, uint32_t flags, aclrtStream stream))
ERROR(aclrtMemManagedPrefetchBatchAsync, (const void **ptrs, size_t *sizes, size_t count,
	aclrtMemManagedLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	uint64_t flags, aclrtStream stream))
ERROR(aclrtMemMapSelectedLink, (void *virPtrDst, size_t size, void *virPtrSrc, uint32_t linkIdx))
ERROR(aclrtDeviceL2CacheFlush, (void *rsv))
ERROR(aclrtMemMapSetLink, (aclrtDrvMemHandle handle, aclrtMemLinkType adviceLink))

/* notifies */
ERROR(aclrtCreateNotify, (aclrtNotify *notify, uint64_t flag))
ERROR(aclrtDestroyNotify, (aclrtNotify notify))
ERROR(aclrtCntNotifyCreate, (aclrtCntNotify *cntNotify, uint64_t flag))
ERROR(aclrtCntNotifyDestroy, (aclrtCntNotify cntNotify))
ERROR(aclrtRecordNotify, (aclrtNotify notify, aclrtStream stream))
ERROR(aclrtWaitAndResetNotify, (aclrtNotify notify, aclrtStream stream, uint32_t timeout))
ERROR(aclrtGetNotifyId, (aclrtNotify notify, uint32_t *notifyId))
ERROR(aclrtNotifyBatchReset, (aclrtNotify *notifies, size_t num))
ERROR(aclrtNotifyGetExportKey, (aclrtNotify notify, char *key, size_t len, uint64_t flags))
ERROR(aclrtNotifyImportByKey, (aclrtNotify *notify, const char *key, uint64_t flags))
ERROR(aclrtNotifySetImportPid, (aclrtNotify notify, int32_t *pid, size_t num))
ERROR(aclrtNotifySetImportPidInterServer, (aclrtNotify notify, aclrtServerPid *serverPids,
	size_t num))
ERROR(aclrtCntNotifyRecord, (aclrtCntNotify cntNotify, aclrtStream stream,
	aclrtCntNotifyRecordInfo *info))
ERROR(aclrtCntNotifyWaitWithTimeout, (aclrtCntNotify cntNotify, aclrtStream stream,
	aclrtCntNotifyWaitInfo *info))
ERROR(aclrtCntNotifyReset, (aclrtCntNotify cntNotify, aclrtStream stream))
ERROR(aclrtCntNotifyGetId, (aclrtCntNotify cntNotify, uint32_t *notifyId))

/* labels and branches */
ERROR(aclrtCreateLabel, (aclrtLabel *label))
ERROR(aclrtSetLabel, (aclrtLabel label, aclrtStream stream))
ERROR(aclrtDestroyLabel, (aclrtLabel label))
ERROR(aclrtCreateLabelList, (aclrtLabel *labels, size_t num, aclrtLabelList *labelList))
ERROR(aclrtDestroyLabelList, (aclrtLabelList labelList))
ERROR(aclrtSwitchLabelByIndex, (void *ptr, uint32_t maxValue, aclrtLabelList labelList,
	aclrtStream stream))
ERROR(aclrtActiveStream, (aclrtStream activeStream, aclrtStream stream))
ERROR(aclrtSwitchStream, (void *leftValue, aclrtCondition cond, void *rightValue,
	aclrtCompareDataType dataType, aclrtStream trueStream, aclrtStream falseStream,
	aclrtStream stream))

/* streams and events of other kinds */
POINTER(aclrtStreamConfigHandle *, aclrtCreateStreamConfigHandle, (void))
ERROR(aclrtDestroyStreamConfigHandle, (aclrtStreamConfigHandle *handle))
ERROR(aclrtSetStreamConfigOpt, (aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr,
	const void *attrValue, size_t valueSize))
ERROR(aclrtCreateStreamV2, (aclrtStream *stream, const aclrtStreamConfigHandle *handle))
ERROR(aclrtSubscribeHostFunc, (uint64_t hostFuncThreadId, aclrtStream exeStream))
ERROR(aclrtProcessHostFunc, (int32_t timeout))
ERROR(aclrtUnSubscribeHostFunc, (uint64_t hostFuncThreadId, aclrtStream exeStream))
ERROR(aclrtSetStreamAttribute, (aclrtStream stream, aclrtStreamAttr stmAttrType,
	aclrtStreamAttrValue *value))
ERROR(aclrtGetStreamAttribute, (aclrtStream stream, aclrtStreamAttr stmAttrType,
	aclrtStreamAttrValue *value))
ERROR(aclrtRegStreamStateCallback, (const char *regName, aclrtStreamStateCallback callback,
	void *args))
ERROR(aclrtStreamStop, (aclrtStream stream))
ERROR(aclrtIpcGetEventHandle, (aclrtEvent event, aclrtIpcEventHandle *handle))
ERROR(aclrtIpcOpenEventHandle, (aclrtIpcEventHandle handle, aclrtEvent *event))

/* shared buffers */
ERROR(aclrtGetBufFromChain, (aclrtMbuf headBuf, uint32_t index, aclrtMbuf *buf))
ERROR(aclrtGetBufChainNum, (aclrtMbuf headBuf, uint32_t *num))
ERROR(aclrtAppendBufChain, (aclrtMbuf headBuf, aclrtMbuf buf))
ERROR(aclrtCopyBufRef, (const aclrtMbuf buf, aclrtMbuf *newBuf))
ERROR(aclrtGetBufUserData, (const aclrtMbuf buf, void *dataPtr, size_t size, size_t offset))
ERROR(aclrtSetBufUserData, (aclrtMbuf buf, const void *dataPtr, size_t size, size_t offset))
ERROR(aclrtGetBufData, (const aclrtMbuf buf, void **dataPtr, size_t *size))
ERROR(aclrtGetBufDataLen, (aclrtMbuf buf, size_t *len))
ERROR(aclrtSetBufDataLen, (aclrtMbuf buf, size_t len))
ERROR(aclrtFreeBuf, (aclrtMbuf buf))
ERROR(aclrtAllocBuf, (aclrtMbuf *buf, size_t size))

/* kernels */
POINTER(aclrtBinary, aclrtCreateBinary, (const void *data, size_t dataLen))
ERROR(aclrtDestroyBinary, (aclrtBinary binary))
ERROR(aclrtBinaryLoad, (const aclrtBinary binary, aclrtBinHandle *binHandle))
ERROR(aclrtBinaryUnLoad, (aclrtBinHandle binHandle))
ERROR(aclrtBinaryGetFunction, (const aclrtBinHandle binHandle, const char *kernelName,
	aclrtFuncHandle *funcHandle))
ERROR(aclrtLaunchKernel, (aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
	size_t argsSize, aclrtStream stream))
ERROR(aclrtBinaryLoadFromFile, (const char *binPath, aclrtBinaryLoadOptions *options,
	aclrtBinHandle *binHandle))
ERROR(aclrtBinaryGetDevAddress, (const aclrtBinHandle binHandle, void **binAddr,
	size_t *binSize))
ERROR(aclrtBinaryGetFunctionByEntry, (aclrtBinHandle binHandle, uint64_t funcEntry,
	aclrtFuncHandle *funcHandle))
ERROR(aclrtBinaryGetGlobal, (aclrtBinHandle binHandle, const char *name, void **dptr,
	size_t *size))
ERROR(aclrtGetFuncBySymbol, (const void *symbol, aclrtFuncHandle *funcHandle))
ERROR(aclrtGetFunctionAddr, (aclrtFuncHandle funcHandle, void **aicAddr, void **aivAddr))
ERROR(aclrtGetFunctionSize, (aclrtFuncHandle funcHandle, size_t *aicSize, size_t *aivSize))
ERROR(aclrtKernelArgsGetHandleMemSize, (aclrtFuncHandle funcHandle, size_t *memSize))
ERROR(aclrtKernelArgsGetMemSize, (aclrtFuncHandle funcHandle, size_t userArgsSize,
	size_t *actualArgsSize))
ERROR(aclrtKernelArgsInit, (aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle))
ERROR(aclrtKernelArgsInitByUserMem, (aclrtFuncHandle funcHandle, aclrtArgsHandle argsHandle,
	void *userHostMem, size_t actualArgsSize))
ERROR(aclrtKernelArgsAppend, (aclrtArgsHandle argsHandle, void *param, size_t paramSize,
	aclrtParamHandle *paramHandle))
ERROR(aclrtKernelArgsAppendPlaceHolder, (aclrtArgsHandle argsHandle,
	aclrtParamHandle *paramHandle))
ERROR(aclrtKernelArgsGetPlaceHolderBuffer, (aclrtArgsHandle argsHandle,
	aclrtParamHandle paramHandle, size_t dataSize, void **bufferAddr))
ERROR(aclrtKernelArgsParaUpdate, (aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle,
	void *param, size_t paramSize))
ERROR(aclrtLaunchKernelWithConfig, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
	aclrtStream stream, aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle,
	void *reserve))
ERROR(aclrtKernelArgsFinalize, (aclrtArgsHandle argsHandle))
ERROR(aclrtGetFunctionName, (aclrtFuncHandle funcHandle, uint32_t maxLen, char *name))
ERROR(aclrtBinaryLoadFromData, (const void *data, size_t length,
	const aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle))
ERROR(aclrtRegisterCpuFunc, (const aclrtBinHandle handle, const char *funcName,
	const char *kernelName, aclrtFuncHandle *funcHandle))
ERROR(aclrtLaunchKernelV2, (aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
	size_t argsSize, aclrtLaunchKernelCfg *cfg, aclrtStream stream))
ERROR(aclrtLaunchKernelWithHostArgs, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
	aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
	aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum))
ERROR(aclrtLaunchKernelWithArgsArray, (void *func, uint32_t numBlocks, aclrtStream stream,
	aclrtLaunchKernelCfg *cfg, void **args))
ERROR(aclrtLaunchSIMTKernelWithArgsArray, (void *func, dim3 gridDim, dim3 blockDim,
	size_t dynUbufSize, aclrtStream stream, aclrtLaunchKernelCfg *cfg, void **args))
ERROR(aclrtLaunchSIMTKernelWithHostArgs, (void *func, dim3 gridDim, dim3 blockDim,
	size_t dynUbufSize, aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *hostArgs,
	size_t argsSize, aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum))
ERROR(aclrtRandomNumAsync, (const aclrtRandomNumTaskInfo *taskInfo, const aclrtStream stream,
	void *reserve))
ERROR(aclrtTaskUpdateAsync, (aclrtStream taskStream, uint32_t taskId, aclrtTaskUpdateInfo *info,
	aclrtStream execStream))
ERROR(aclrtCheckArchCompatibility, (const char *socVersion, int32_t *canCompatible))
ERROR(aclrtGetFunctionAttribute, (aclrtFuncHandle funcHandle, aclrtFuncAttribute attrType,
	int64_t *attrValue))
ERROR(aclrtFunctionGetBinary, (const aclrtFuncHandle funcHandle, aclrtBinHandle *binHandle))
ERROR(aclrtFunctionGetParamCount, (const void *func, size_t *paramCount))
ERROR(aclrtFunctionGetParamInfo, (const void *func, size_t paramIndex, size_t *paramOffset,
	size_t *paramSize))
ERROR(aclrtFunctionGetAvailDynUbufPerBlock, (void *func, uint32_t flags,
	size_t *dynamicUbufSize))

/* model graphs */
ERROR(aclmdlRITaskGetParams, (aclmdlRITask task, aclmdlRITaskParams *params))
ERROR(aclmdlRITaskSetParams, (aclmdlRITask task, aclmdlRITaskParams *params))
ERROR(aclmdlRIKernelTaskGetAttribute, (aclmdlRITask task, aclrtLaunchKernelAttrId attrId,
	aclrtLaunchKernelAttrValue *attrValue))
ERROR(aclmdlRIUpdate, (aclmdlRI modelRI))
ERROR(aclmdlRITaskDisable, (aclmdlRITask task))
ERROR(aclmdlRICaptureBegin, (aclrtStream stream, aclmdlRICaptureMode mode))
ERROR(aclmdlRICaptureGetInfo, (aclrtStream stream, aclmdlRICaptureStatus *status,
	aclmdlRI *modelRI))
ERROR(aclmdlRICaptureEnd, (aclrtStream stream, aclmdlRI *modelRI))
ERROR(aclmdlRIDebugPrint, (aclmdlRI modelRI))
ERROR(aclmdlRIDebugJsonPrint, (aclmdlRI modelRI, const char *path, uint32_t flags))
ERROR(aclmdlRICaptureThreadExchangeMode, (aclmdlRICaptureMode *mode))
ERROR(aclmdlRIExecuteAsync, (aclmdlRI modelRI, aclrtStream stream))
ERROR(aclmdlRIExecute, (aclmdlRI modelRI, int32_t timeout))
ERROR(aclmdlRIDestroy, (aclmdlRI modelRI))
ERROR(aclmdlRICaptureTaskGrpBegin, (aclrtStream stream))
ERROR(aclmdlRICaptureTaskGrpEnd, (aclrtStream stream, aclrtTaskGrp *handle))
ERROR(aclmdlRICaptureTaskUpdateBegin, (aclrtStream stream, aclrtTaskGrp handle))
ERROR(aclmdlRICaptureTaskUpdateEnd, (aclrtStream stream))
ERROR(aclmdlRIBuildBegin, (aclmdlRI *modelRI, uint32_t flag))
ERROR(aclmdlRIBindStream, (aclmdlRI modelRI, aclrtStream stream, uint32_t flag))
ERROR(aclmdlRIEndTask, (aclmdlRI modelRI, aclrtStream stream))
ERROR(aclmdlRIBuildEnd, (aclmdlRI modelRI, void *reserve))
ERROR(aclmdlRIUnbindStream, (aclmdlRI modelRI, aclrtStream stream))
ERROR(aclmdlRISetName, (aclmdlRI modelRI, const char *name))
ERROR(aclmdlRIGetName, (aclmdlRI modelRI, uint32_t maxLen, char *name))
ERROR(aclmdlRIGetId, (aclmdlRI modelRI, uint32_t *modelRIId))
ERROR(aclmdlRIDestroyRegisterCallback, (aclmdlRI modelRI, aclrtCallback func, void *userData))
ERROR(aclmdlRIDestroyUnregisterCallback, (aclmdlRI modelRI, aclrtCallback func))
ERROR(aclmdlRIGetStreams, (aclmdlRI modelRI, aclrtStream *streams, uint32_t *numStreams))
ERROR(aclmdlRIGetTasksByStream, (aclrtStream stream, aclmdlRITask *tasks, uint32_t *numTasks))
ERROR(aclmdlRITaskGetType, (aclmdlRITask task, aclmdlRITaskType *type))
ERROR(aclmdlRITaskGetSeqId, (aclmdlRITask task, uint32_t *id))
ERROR(aclmdlRIAbort, (aclmdlRI modelRI))
ERROR(aclmdlRICondHandleCreate, (aclmdlRI modelRI, uint32_t defaultLaunchValue,
	aclmdlRICondHandleFlag flag, aclmdlRICondHandle *handle))
ERROR(aclmdlRICondHandleGetCondPtr, (aclmdlRICondHandle handle, uint64_t **ptr))
ERROR(aclmdlRIAddCondTask, (aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags))
ERROR(aclmdlRICaptureToModelRIBegin, (aclrtStream stream, aclmdlRI modelRI,
	aclmdlRICaptureMode mode))

/* settings of tasks */
ERROR(aclrtCtxGetSysParamOpt, (aclSysParamOpt opt, int64_t *value))
ERROR(aclrtCtxSetSysParamOpt, (aclSysParamOpt opt, int64_t value))
ERROR(aclrtGetSysParamOpt, (aclSysParamOpt opt, int64_t *value))
ERROR(aclrtSetSysParamOpt, (aclSysParamOpt opt, int64_t value))
ERROR(aclrtSetOpWaitTimeout, (uint32_t timeout))
ERROR(aclrtSetOpExecuteTimeOut, (uint32_t timeout))
ERROR(aclrtSetOpExecuteTimeOutWithMs, (uint32_t timeout))
ERROR(aclrtSetOpExecuteTimeOutV2, (uint64_t timeout, uint64_t *actualTimeout))
ERROR(aclrtGetOpTimeOutInterval, (uint64_t *interval))
ERROR(aclrtSetStreamOverflowSwitch, (aclrtStream stream, uint32_t flag))
ERROR(aclrtGetStreamOverflowSwitch, (aclrtStream stream, uint32_t *flag))
ERROR(aclrtSetDeviceSatMode, (aclrtFloatOverflowMode mode))
ERROR(aclrtGetDeviceSatMode, (aclrtFloatOverflowMode *mode))
ERROR(aclrtGetOverflowStatus, (void *outputAddr, size_t outputSize, aclrtStream stream))
ERROR(aclrtResetOverflowStatus, (aclrtStream stream))
ERROR(aclrtCtxGetFloatOverflowAddr, (void **overflowAddr))
ERROR(aclrtGetFloatOverflowStatus, (void *outputAddr, uint64_t outputSize, aclrtStream stream))
ERROR(aclrtResetFloatOverflowStatus, (aclrtStream stream))
ERROR(aclrtNpuGetFloatOverFlowStatus, (void *outputAddr, uint64_t outputSize, uint32_t checkMode,
	aclrtStream stream))
ERROR(aclrtNpuClearFloatOverFlowStatus, (uint32_t checkMode, aclrtStream stream))
ERROR(aclrtGetHardwareSyncAddr, (void **addr))
ERROR(aclrtGetOpExecuteTimeout, (uint32_t *const timeoutMs))

/* errors and tracing */
ERROR(aclrtSetExceptionInfoCallback, (aclrtExceptionInfoCallback callback))
ERROR(aclrtExceptionInfoCallbackRegister, (aclrtExceptionInfoCallback callback))
ERROR(aclrtExceptionInfoCallbackUnregister, (aclrtExceptionInfoCallback callback))
UINT32(aclrtGetTaskIdFromExceptionInfo, (const aclrtExceptionInfo *info))
UINT32(aclrtGetStreamIdFromExceptionInfo, (const aclrtExceptionInfo *info))
UINT32(aclrtGetThreadIdFromExceptionInfo, (const aclrtExceptionInfo *info))
UINT32(aclrtGetDeviceIdFromExceptionInfo, (const aclrtExceptionInfo *info))
UINT32(aclrtGetErrorCodeFromExceptionInfo, (const aclrtExceptionInfo *info))
ERROR(aclrtGetArgsFromExceptionInfo, (const aclrtExceptionInfo *info, void **devArgsPtr,
	uint32_t *devArgsLen))
ERROR(aclrtGetFuncHandleFromExceptionInfo, (const aclrtExceptionInfo *info,
	aclrtFuncHandle *func))
ERROR(aclrtBinarySetExceptionCallback, (aclrtBinHandle binHandle,
	aclrtOpExceptionCallback callback, void *userData))
ERROR(aclrtGetThreadLastTaskId, (uint32_t *taskId))
ERROR(aclrtDeviceTaskAbort, (int32_t deviceId, uint32_t timeout))
ERROR(aclrtStreamAbort, (aclrtStream stream))
ERROR(aclrtProfTrace, (void *userdata, int32_t length, aclrtStream stream))
ERROR(aclrtSetDeviceTaskAbortCallback, (const char *regName,
	aclrtDeviceTaskAbortCallback callback, void *args))
ERROR(aclrtPersistentTaskClean, (aclrtStream stream))
ERROR(aclrtGetErrorVerbose, (int32_t deviceId, aclrtErrorInfo *errorInfo))
ERROR(aclrtRepairError, (int32_t deviceId, const aclrtErrorInfo *errorInfo))
ERROR(aclrtCacheLastTaskOpInfo, (const void *const infoPtr, const size_t infoSize))
ERROR(aclrtCacheLastTaskExtendInfo, (const char *const extendInfoPtr, const size_t infoSize))

/* devices: groups, limits, states */
ERROR(aclrtSetGroup, (int32_t groupId))
ERROR(aclrtGetGroupCount, (uint32_t *count))
POINTER(aclrtGroupInfo *, aclrtCreateGroupInfo, (void))
ERROR(aclrtDestroyGroupInfo, (aclrtGroupInfo *groupInfo))
ERROR(aclrtGetAllGroupInfo, (aclrtGroupInfo *groupInfo))
ERROR(aclrtGetGroupInfoDetail, (const aclrtGroupInfo *groupInfo, int32_t groupIndex,
	aclrtGroupAttr attr, void *attrValue, size_t valueLen, size_t *paramRetSize))
ERROR(aclrtDeviceSetLimit, (aclrtDeviceLimit limit, size_t value))
ERROR(aclrtDeviceGetLimit, (aclrtDeviceLimit limit, size_t *value))
ERROR(aclrtDeviceGetPCIBusId, (int32_t deviceId, char *pciBusId, int32_t len))
ERROR(aclrtDeviceGetByPCIBusId, (const char *pciBusId, int32_t *deviceId))
ERROR(aclrtDeviceGetHostAtomicCapabilities, (uint32_t *capabilities,
	const aclrtAtomicOperation *operations, const uint32_t count, int32_t deviceId))
ERROR(aclrtDeviceGetP2PAtomicCapabilities, (uint32_t *capabilities,
	const aclrtAtomicOperation *operations, const uint32_t count, int32_t srcDeviceId,
	int32_t dstDeviceId))
ERROR(aclrtGetDeviceResLimit, (int32_t deviceId, aclrtDevResLimitType type, uint32_t *value))
ERROR(aclrtSetDeviceResLimit, (int32_t deviceId, aclrtDevResLimitType type, uint32_t value))
ERROR(aclrtResetDeviceResLimit, (int32_t deviceId))
ERROR(aclrtGetStreamResLimit, (aclrtStream stream, aclrtDevResLimitType type, uint32_t *value))
ERROR(aclrtSetStreamResLimit, (aclrtStream stream, aclrtDevResLimitType type, uint32_t value))
ERROR(aclrtResetStreamResLimit, (aclrtStream stream))
ERROR(aclrtUseStreamResInCurrentThread, (aclrtStream stream))
ERROR(aclrtUnuseStreamResInCurrentThread, (aclrtStream stream))
ERROR(aclrtGetResInCurrentThread, (aclrtDevResLimitType type, uint32_t *value))
ERROR(aclrtRegDeviceStateCallback, (const char *regName, aclrtDeviceStateCallback callback,
	void *args))

/* snapshots */
ERROR(aclrtSnapShotProcessLock, (int pid, void *reserve))
ERROR(aclrtSnapShotProcessUnlock, (int pid, void *reserve))
ERROR(aclrtSnapShotProcessBackup, (int pid, aclrtSnapShotBackupArgs *args))
ERROR(aclrtSnapShotProcessRestore, (int pid, aclrtSnapShotRestoreArgs *args))
ERROR(aclrtSnapShotCallbackRegister, (aclrtSnapShotStage stage, aclrtSnapShotCallBack callback,
	void *args))
ERROR(aclrtSnapShotCallbackUnregister, (aclrtSnapShotStage stage,
	aclrtSnapShotCallBack callback))

/* dumps */
ERROR(aclmdlInitDump, (void))
ERROR(aclmdlSetDump, (const char *dumpCfgPath))
ERROR(aclmdlFinalizeDump, (void))
