/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, values that they write and wait for, and host functions that they call: the ACL face of
 * runtime/core/stream.c and callback.c.
 */
#include "acl-internal.h"

#define FLAGS_KNOWN                                                                                \
	(ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | \
	 ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

ACL_ANSWERS(aclrtCreateStream, ACL_IS_NULL(stream) ?: core_stream_create(0, 0, stream, __func__));

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	if (ACL_IS_NULL(stream))
		return ACL_ERROR_INVALID_PARAM;
	if ((flag & ACL_STREAM_DEVICE_USE_ONLY) != 0 &&
	    (flag & FLAGS_KNOWN) != ACL_STREAM_DEVICE_USE_ONLY)
		return rt_invalid(__func__,
				  "flag is %#x; ACL_STREAM_DEVICE_USE_ONLY (0x20) cannot be "
				  "combined with other flags",
				  flag);
	if ((flag & ~FLAGS_KNOWN) != 0)
		npu_log(NPU_LOG_INFO,
			"%s: flag=%#x has unknown bits, which are ignored as CANN does", __func__,
			flag);
	if (priority > CORE_STREAM_PRIORITY_LEAST)
		priority = CORE_STREAM_PRIORITY_LEAST;
	return core_stream_create(priority, flag & FLAGS_KNOWN, stream, __func__);
}

ACL_ANSWERS(aclrtDestroyStream,
	    ACL_IS_NULL(stream) ?: core_stream_destroy(stream, false, __func__));
ACL_ANSWERS(aclrtDestroyStreamForce,
	    ACL_IS_NULL(stream) ?: core_stream_destroy(stream, true, __func__));

aclError acl_check_timeout(const char *call, int32_t timeout, bool zero_is_fine)
{
	return RT_WANT(call, timeout > 0 || timeout == -1 || (timeout == 0 && zero_is_fine),
		       "timeout is %d; it must be -1 (wait for ever) or at least 1, in ms",
		       timeout);
}

static aclError synchronize(const char *call, aclrtStream handle, int32_t timeout)
{
	struct core_stream *stream;

	return core_stream_find_any(handle, call, &stream)
		       ?: core_stream_synchronize(stream, timeout, call);
}

ACL_ANSWERS(aclrtSynchronizeStream, synchronize(__func__, stream, -1));
ACL_ANSWERS(aclrtSynchronizeStreamWithTimeout,
	    acl_check_timeout(__func__, timeout, false) ?: synchronize(__func__, stream, timeout));

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
	struct core_stream *found;
	bool idle;

	return ACL_IS_NULL(status) ?: core_stream_find_any(stream, __func__, &found)
			?: core_stream_query(found, &idle, __func__)
			?: ACL_GIVE(status,
				    idle ? ACL_STREAM_STATUS_COMPLETE
					 : ACL_STREAM_STATUS_NOT_READY);
}

ACL_ANSWERS(aclrtStreamAbort, core_stream_abort(stream, __func__));
ACL_ANSWERS(aclrtStreamStop,
	    RT_WANT(__func__, stream != NULL, "stream is NULL; default streams cannot be stopped")
		    ?: core_stream_stop(stream, __func__));

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
	struct core_stream *found;

	return ACL_IS_NULL(streamId) ?: core_stream_find_any(stream, __func__, &found)
			?: ACL_GIVE(streamId, core_stream_facts(found).id);
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
	struct core_stream *found;

	return ACL_IS_NULL(priority) ?: core_stream_find_any(stream, __func__, &found)
			?: ACL_GIVE(priority, core_stream_facts(found).priority);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
	struct core_stream *found;

	return ACL_IS_NULL(flags) ?: core_stream_find_any(stream, __func__, &found)
			?: ACL_GIVE(flags, core_stream_facts(found).flags);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	bool stop = (mode & ACL_STOP_ON_FAILURE) != 0;
	struct core_stream *found;
	aclError code = core_stream_find_any(stream, __func__, &found);

	if (code == ACL_SUCCESS && !core_stream_set_stop(found, stop))
		return acl_unsupported(
			__func__,
			"mode is %llu; a stream of ACL_STOP_ON_FAILURE (1) cannot go back to "
			"ACL_CONTINUE_ON_FAILURE (0): create another stream",
			(unsigned long long)mode);
	return code;
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
	struct core_context *context;

	return ACL_IS_NULL(streamCount) ?: acl_current(__func__, &context)
			?: ACL_GIVE(streamCount,
				    CORE_STREAM_MAX - core_stream_live(context->device));
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
	aclError error = acl_check_context(__func__);

	if (error != ACL_SUCCESS)
		return error;
	if (leastPriority != NULL)
		*leastPriority = (int32_t)CORE_STREAM_PRIORITY_LEAST;
	if (greatestPriority != NULL)
		*greatestPriority = 0;
	return ACL_SUCCESS;
}

/* ---- values ---- */

static aclError check_value_address(const char *call, const void *address)
{
	struct DVattribute attr = { 0 };

	if (core_driver() == NULL)
		return ACL_ERROR_INTERNAL_ERROR;
	return RT_WANT(call, address != NULL, "devAddr is NULL; it must be device memory")
		       ?: RT_WANT(call, (uintptr_t)address % 8 == 0,
				  "devAddr=%p is not aligned to 8 bytes", address)
		       ?: ACL_CALL(call, drvMemGetAttribute, (DVdeviceptr)(uintptr_t)address, &attr)
		       ?: RT_WANT(call,
				  attr.memType == DV_MEM_LOCK_DEV ||
					  attr.memType == DV_MEM_SVM_DEVICE ||
					  attr.memType == DV_MEM_LOCK_DEV_DVPP,
				  "devAddr=%p is no device memory, but the host's (kind %#x)",
				  address, attr.memType);
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	uint64_t va = (uint64_t)(uintptr_t)devAddr;
	struct stars_write_value_sqe sqe = {
		.header.type = STARS_SQE_WRITE_VALUE,
		.write_addr_low = (uint32_t)va,
		.write_addr_high = ((uint32_t)(va >> 32) & 0x1ffffu) | 3u << 20 | 1u << 31,
		.value = { (uint32_t)value, (uint32_t)(value >> 32) },
	};
	struct core_stream *found;

	return RT_WANT(__func__, devAddr == NULL || flag == 0, "flag is %#x; it must be 0", flag)
			?: check_value_address(__func__, devAddr)
			?: core_stream_find(stream, __func__, &found)
			?: core_stream_send(found, &sqe, 1, NULL, NULL, __func__);
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	struct stars_value_wait_sqe sqe = {
		.header.type = STARS_SQE_COND,
		.magic = STARS_VALUE_WAIT_MAGIC,
		.compare = flag,
		.addr = (uint64_t)(uintptr_t)devAddr,
		.value = value,
	};
	struct npu_driver *drv;
	struct core_stream *found;
	aclError code = RT_WANT(__func__, devAddr == NULL || flag <= ACL_STREAM_WAIT_VALUE_NOR,
				"flag is %u; it must be an ACL_STREAM_WAIT_VALUE_*: GEQ (0), EQ "
				"(1), AND (2) or NOR (3)",
				flag)
				?: check_value_address(__func__, devAddr);

	if (code != ACL_SUCCESS)
		return code;
	drv = core_driver();
	if (drv == NULL || (drv->caps & NPU_CAP_VALUE_WAIT) == 0)
		return acl_unsupported(__func__, "this backend cannot wait for values: how the "
						 "hardware does it is not public");
	return core_stream_find(stream, __func__, &found)
		       ?: core_stream_send(found, &sqe, 1, NULL, NULL, __func__);
}

/* ---- host functions ---- */

ACL_ANSWERS(aclrtLaunchCallback, ACL_WANT(__func__,
			     blockType == ACL_CALLBACK_BLOCK || blockType == ACL_CALLBACK_NO_BLOCK,
			     "blockType is %d; it must be ACL_CALLBACK_NO_BLOCK (0) or "
			     "ACL_CALLBACK_BLOCK (1)",
			     (int)blockType)
			    ?: RT_WANT(__func__, fn != NULL, "fn is NULL; it must be a function")
			    ?: core_callback_launch(fn, userData, blockType == ACL_CALLBACK_BLOCK,
						    stream, __func__));
ACL_ANSWERS(aclrtLaunchHostFunc, RT_WANT(__func__, fn != NULL, "fn is NULL; it must be a function")
					 ?: core_callback_launch_host(fn, args, stream, __func__));

ACL_ANSWERS(aclrtSubscribeReport, core_callback_subscribe(threadId, stream, __func__));
ACL_ANSWERS(aclrtUnSubscribeReport, core_callback_unsubscribe(threadId, stream, __func__));

aclError aclrtProcessReport(int32_t timeout)
{
	if (timeout < -1 || timeout == 0)
		return acl_invalid(
			__func__,
			"timeout is %d; it must be -1 (wait for ever) or at least 1, in ms",
			timeout);
	return core_callback_process(timeout, __func__);
}
