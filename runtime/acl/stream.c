/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, values that they write and wait for, host functions that they call, events, and
 * notifies, within a process and between processes: the ACL face of runtime/core/stream.c,
 * callback.c and event.c.
 */
#include "acl-internal.h"

#include <string.h>

#define FLAGS_KNOWN                                                                                \
	(ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | \
	 ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

ACL_ANSWERS(aclrtCreateStream, ACL_IS_NULL(stream) ?: core_stream_create(0, 0, stream));

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	if (ACL_IS_NULL(stream))
		return ACL_ERROR_INVALID_PARAM;
	if ((flag & ACL_STREAM_DEVICE_USE_ONLY) != 0 &&
	    (flag & FLAGS_KNOWN) != ACL_STREAM_DEVICE_USE_ONLY)
		return rt_invalid("flag is %#x; ACL_STREAM_DEVICE_USE_ONLY (0x20) cannot be "
				  "combined with other flags",
				  flag);
	if ((flag & ~FLAGS_KNOWN) != 0)
		npu_log(NPU_LOG_INFO,
			"%s: flag=%#x has unknown bits, which are ignored as CANN does",
			core_called, flag);
	if (priority > CORE_STREAM_PRIORITY_LEAST)
		priority = CORE_STREAM_PRIORITY_LEAST;
	return core_stream_create(priority, flag & FLAGS_KNOWN, stream);
}

ACL_ANSWERS(aclrtDestroyStream, ACL_IS_NULL(stream) ?: core_stream_destroy(stream, false));
ACL_ANSWERS(aclrtDestroyStreamForce, ACL_IS_NULL(stream) ?: core_stream_destroy(stream, true));

aclError acl_check_timeout(int32_t timeout, bool zero_is_fine)
{
	return RT_WANT(timeout > 0 || timeout == -1 || (timeout == 0 && zero_is_fine),
		       "timeout is %d; it must be -1 (wait for ever) or at least 1, in ms",
		       timeout);
}

static aclError synchronize(aclrtStream handle, int32_t timeout)
{
	struct core_stream *stream;

	return core_stream_find_any(handle, &stream) ?: core_spend(NPU_WORK_STREAM_SYNC)
		       ?: core_stream_synchronize(stream, timeout);
}

ACL_ANSWERS(aclrtSynchronizeStream, synchronize(stream, -1));
ACL_ANSWERS(aclrtSynchronizeStreamWithTimeout,
	    acl_check_timeout(timeout, false) ?: synchronize(stream, timeout));

ACL_ANSWERS_WITH(aclrtStreamQuery, struct core_stream *found; bool idle,
	ACL_IS_NULL(status) ?: core_stream_find_any(stream, &found)
			?: core_spend(NPU_WORK_EVENT)
			?: core_stream_query(found, &idle)
			?: ACL_GIVE(status, idle ? ACL_STREAM_STATUS_COMPLETE
						 : ACL_STREAM_STATUS_NOT_READY));
ACL_ANSWERS(aclrtStreamAbort, core_stream_abort(stream));
ACL_ANSWERS(aclrtStreamStop,
	    RT_WANT(stream != NULL, "stream is NULL; default streams cannot be stopped")
		    ?: core_stream_stop(stream));

ACL_ANSWERS_WITH(aclrtStreamGetId, struct core_stream *found,
	ACL_IS_NULL(streamId) ?: core_stream_find_any(stream, &found)
			?: ACL_GIVE(streamId, core_stream_facts(found).id));
ACL_ANSWERS_WITH(aclrtStreamGetPriority, struct core_stream *found,
	ACL_IS_NULL(priority) ?: core_stream_find_any(stream, &found)
			?: ACL_GIVE(priority, core_stream_facts(found).priority));
ACL_ANSWERS_WITH(aclrtStreamGetFlags, struct core_stream *found,
	ACL_IS_NULL(flags) ?: core_stream_find_any(stream, &found)
			?: ACL_GIVE(flags, core_stream_facts(found).flags));

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	bool stop = (mode & ACL_STOP_ON_FAILURE) != 0;
	struct core_stream *found;
	aclError code = core_stream_find_any(stream, &found);

	if (code == ACL_SUCCESS && !core_stream_set_stop(found, stop))
		return acl_unsupported("mode is %llu; a stream of ACL_STOP_ON_FAILURE (1) cannot "
				       "go back to ACL_CONTINUE_ON_FAILURE (0), nor be set once a "
				       "task of it has failed: create another stream",
				       (unsigned long long)mode);
	return code;
}

ACL_ANSWERS_WITH(aclrtGetStreamAvailableNum, struct core_context *context,
	ACL_IS_NULL(streamCount) ?: acl_current(&context)
			?: ACL_GIVE(streamCount,
				    CORE_STREAM_MAX - core_stream_live(context->device)));

ACL_ANSWERS(aclrtDeviceGetStreamPriorityRange,
	acl_check_context()
			?: ACL_GIVE_IF(leastPriority, (int32_t)CORE_STREAM_PRIORITY_LEAST)
			?: ACL_GIVE_IF(greatestPriority, 0));

/* ---- values ---- */

static aclError check_value_address(const void *address)
{
	struct DVattribute attr = { 0 };

	return core_check_driver()
		       ?: RT_WANT((uintptr_t)address % 8 == 0,
				  "devAddr=%p is not aligned to 8 bytes", address)
		       ?: ACL_CALL(drvMemGetAttribute, (DVdeviceptr)(uintptr_t)address, &attr)
		       ?: RT_WANT(attr.memType == DV_MEM_LOCK_DEV ||
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

	return ACL_IS_NULL(devAddr)
			?: RT_WANT(flag == 0, "flag is %#x; it must be 0", flag)
			?: check_value_address(devAddr) ?: core_stream_find(stream, &found)
			?: core_stream_send(found, &sqe, 1, NULL, NULL);
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
	struct core_stream *found;
	aclError code = ACL_IS_NULL(devAddr) ?: RT_WANT(flag <= ACL_STREAM_WAIT_VALUE_NOR,
				"flag is %u; it must be an ACL_STREAM_WAIT_VALUE_*: GEQ (0), EQ "
				"(1), AND (2) or NOR (3)",
				flag)
				?: check_value_address(devAddr);

	if (code != ACL_SUCCESS)
		return code;
	if ((core_driver()->caps & NPU_CAP_VALUE_WAIT) == 0)
		return acl_unsupported("this backend cannot wait for values: how the hardware does "
				       "it is not public");
	return core_stream_find(stream, &found) ?: core_stream_send(found, &sqe, 1, NULL, NULL);
}

/* ---- host functions ---- */

ACL_ANSWERS(aclrtLaunchCallback, ACL_WANT(
			     blockType == ACL_CALLBACK_BLOCK || blockType == ACL_CALLBACK_NO_BLOCK,
			     "blockType is %d; it must be ACL_CALLBACK_NO_BLOCK (0) or "
			     "ACL_CALLBACK_BLOCK (1)",
			     (int)blockType)
			    ?: RT_WANT(fn != NULL, "fn is NULL; it must be a function")
			    ?: core_callback_launch(fn, userData, blockType == ACL_CALLBACK_BLOCK,
						    stream));
ACL_ANSWERS(aclrtLaunchHostFunc, RT_WANT(fn != NULL, "fn is NULL; it must be a function")
					 ?: core_callback_launch_host(fn, args, stream));

ACL_ANSWERS(aclrtSubscribeReport, core_callback_subscribe(threadId, stream));
ACL_ANSWERS(aclrtUnSubscribeReport, core_callback_unsubscribe(threadId, stream));

ACL_ANSWERS(aclrtProcessReport,
	    ACL_WANT(timeout > 0 || timeout == -1,
		     "timeout is %d; it must be -1 (wait for ever) or at least 1, in ms", timeout)
		    ?: core_callback_process(timeout));

/* ---- events ---- */

_Static_assert(ACL_EVENT_SYNC == CORE_EVENT_SYNC && ACL_EVENT_TIME_LINE == CORE_EVENT_TIME_LINE,
	       "one set of flags");

/* 0x4 has no name in the ACL; CANN takes it. */
#define FLAGS_COMBINED \
	(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | 0x4u | ACL_EVENT_TIME_LINE)

ACL_ANSWERS(aclrtCreateEvent,
	    ACL_IS_NULL(event)
		    ?: core_event_create(CORE_EVENT_PLAIN, CORE_EVENT_SYNC | CORE_EVENT_TIME_LINE,
					 event));

/* alone: flags that go with no other, and are not modelled. */
static aclError check_event_flag(uint32_t flag, uint32_t alone)
{
	bool is_alone = (flag & alone) != 0 && (flag & (flag - 1)) == 0;

	if (!is_alone && (flag == 0 || (flag & ~FLAGS_COMBINED) != 0))
		return rt_invalid(
			"flag is %#x; it must be one or more of ACL_EVENT_SYNC (0x1), "
			"ACL_EVENT_CAPTURE_STREAM_PROGRESS (0x2) and ACL_EVENT_TIME_LINE (0x8)",
			flag);
	return !is_alone ? ACL_SUCCESS
			 : acl_unsupported("flag is %#x: events for device code, for captured "
					   "graphs and between processes are not modelled",
					   flag);
}

ACL_ANSWERS(aclrtCreateEventWithFlag, ACL_IS_NULL(event)
			?: check_event_flag(flag, ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)
			?: core_event_create(CORE_EVENT_FLAGS, flag, event));
ACL_ANSWERS(aclrtCreateEventExWithFlag, ACL_IS_NULL(event)
			?: check_event_flag(flag, ACL_EVENT_IPC)
			?: core_event_create(CORE_EVENT_AGAIN, flag, event));

ACL_ANSWERS(aclrtDestroyEvent, ACL_IS_NULL(event) ?: core_event_destroy(event));
ACL_ANSWERS(aclrtRecordEvent, ACL_IS_NULL(event) ?: core_event_record(event, stream));

/* ACL_EVENT_RECORD_* and ACL_EVENT_WAIT_* have the same two values. */
static aclError check_default_flag(uint32_t flag)
{
	if (flag == ACL_EVENT_RECORD_EXTERNAL)
		return acl_unsupported(
			"flag is 1 (external): captured graphs are not modelled; it must be 0");
	if (flag != ACL_EVENT_RECORD_DEFAULT)
		return acl_invalid("flag is %u; it must be 0 (default) or 1 (external)", flag);
	return ACL_SUCCESS;
}

ACL_ANSWERS(aclrtRecordEventWithFlag, ACL_IS_NULL(event) ?: check_default_flag(flag)
			?: core_event_record(event, stream));
ACL_ANSWERS(aclrtResetEvent, ACL_IS_NULL(event) ?: core_event_reset(event, stream));

ACL_ANSWERS_WITH(aclrtQueryEvent, bool done,
	ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, true, &done)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY));
ACL_ANSWERS_WITH(aclrtQueryEventStatus, bool done,
	ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, false, &done)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
					 : ACL_EVENT_RECORDED_STATUS_NOT_READY));
ACL_ANSWERS_WITH(aclrtQueryEventWaitStatus, bool done,
	ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query_waits(event, &done)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_WAIT_STATUS_COMPLETE
					 : ACL_EVENT_WAIT_STATUS_NOT_READY));

ACL_ANSWERS(aclrtSynchronizeEvent, ACL_IS_NULL(event) ?: core_event_synchronize(event, -1));

ACL_ANSWERS(aclrtSynchronizeEventWithTimeout,
	acl_check_timeout(timeout, true) ?: ACL_IS_NULL(event) ?: acl_check_timeout(timeout, false)
			?: core_event_synchronize(event, timeout));
ACL_ANSWERS(aclrtEventElapsedTime,
	ACL_IS_NULL(ms) ?: ACL_IS_NULL(startEvent) ?: ACL_IS_NULL(endEvent)
			?: core_event_elapsed(startEvent, endEvent, ms));

ACL_ANSWERS(aclrtEventGetTimestamp, ACL_IS_NULL(timestamp) ?: ACL_IS_NULL(event)
			?: core_event_timestamp(event, timestamp));
ACL_ANSWERS(aclrtGetEventId, ACL_IS_NULL(event) ?: ACL_IS_NULL(eventId)
			?: core_event_id(event, eventId));

ACL_ANSWERS_WITH(aclrtGetEventAvailNum, struct core_context *context,
	ACL_IS_NULL(eventCount) ?: acl_current(&context)
			?: ACL_GIVE(eventCount, CORE_EVENT_MAX - core_event_live(context->device)));

/* ---- streams wait for events ---- */

ACL_ANSWERS(aclrtStreamWaitEvent, ACL_IS_NULL(event) ?: core_event_wait(event, stream, 0));

ACL_ANSWERS(aclrtStreamWaitEventWithTimeout, RT_WANT(timeout >= 0,
			    "timeout is %d; it must be 0 (wait for ever) or more, in seconds",
			    timeout)
			    ?: RT_WANT(event != NULL, "event is NULL; it must be an event")
			    ?: core_event_wait(event, stream, (uint32_t)timeout));

ACL_ANSWERS(aclrtStreamWaitEventWithFlag, ACL_IS_NULL(event) ?: check_default_flag(flag)
			?: core_event_wait(event, stream, timeout));

/* ---- notifies: made and ended ---- */

static void give_back(const struct core_notify *notify)
{
	struct halResourceIdInputInfo id = { .type = DRV_NOTIFY_ID, .resourceId = notify->id };

	if (notify->imported)
		core_call(halShrIdClose, notify->key);
	else if (notify->key[0] != '\0')
		core_call(halShrIdDestroy, notify->key);
	if (!notify->imported)
		core_call(halResourceIdFree, notify->device, &id);
}

static aclError add(const struct core_notify *notify, aclrtNotify *out)
{
	aclError code = core_notify_add(notify, out);

	if (code != ACL_SUCCESS)
		give_back(notify);
	return code;
}

static aclError check_flags(uint64_t flags, uint64_t most)
{
	if (flags > most)
		return rt_invalid("the flags are %#llx; they must be from 0 to %llu",
				  (unsigned long long)flags, (unsigned long long)most);
	if ((flags & ACL_NOTIFY_DEVICE_USE_ONLY) != 0)
		return acl_unsupported("the flags are %#llx: device code is not modelled",
				       (unsigned long long)flags);
	return ACL_SUCCESS;
}

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };
	struct halResourceIdOutputInfo out = { 0 };
	struct core_context *context = NULL;

	return ACL_IS_NULL(notify) ?: check_flags(flag, ACL_NOTIFY_DEVICE_USE_ONLY)
		       ?: acl_current(&context)
		       ?: ACL_CALL(halResourceIdAlloc, context->device, &in, &out)
		       ?: add(&(struct core_notify){ .device = context->device,
						     .id = out.resourceId },
			      notify);
}

/* The driver's answers are not heard, as by CANN: a device that was reset has the id already. */
ACL_ANSWERS_WITH(aclrtDestroyNotify, struct core_notify found,
	ACL_IS_NULL(notify) ?: core_notify_remove(notify, &found)
			?: (give_back(&found), ACL_SUCCESS));

/* ---- recorded, waited for, reset ---- */

/* The device of the call: the stream's, or the current one. */
static aclError check_device(const struct core_notify *notify, const char *right)
{
	uint32_t device = core_context_peek()->device;

	return RT_WANT(device == notify->device && !notify->elsewhere,
		       "the notify is one of device %u%s, and the call's is %u: %s",
		       notify->elsewhere ? notify->device & 0xffff : notify->device,
		       notify->elsewhere ? " of another server" : "", device, right);
}

static aclError send(const struct core_notify *notify, struct core_stream *stream, uint8_t type,
		     uint32_t timeout_s)
{
	bool here = core_context_peek()->device == notify->device && !notify->elsewhere;
	struct stars_event_sqe sqe = {
		.header.type = type,
		.event_id = (uint16_t)notify->id,
		.exe_result = timeout_s == UINT32_MAX ? 0 : timeout_s,
	};
	uint64_t at = (notify->elsewhere ? STARS_PEER_NOTIFIES(notify->device) : 0) +
		      STARS_NOTIFY_OFFSET(notify->id);
	struct stars_write_value_sqe write = { .header.type = STARS_SQE_WRITE_VALUE,
					       .res3 = notify->device & 0xffff,
					       .write_addr_low = (uint32_t)at,
					       .write_addr_high = (uint32_t)(at >> 32),
					       .sub_type = STARS_WRITE_NOTIFY };

	if (!here && !(core_driver()->caps & NPU_CAP_MODEL))
		return acl_unsupported(
			"a notify of another device (%u) is recorded on the model only",
			notify->device);
	return core_stream_send(stream, here ? (void *)&sqe : &write, 1, NULL, NULL);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
	struct core_stream *found;
	struct core_notify n;
	aclError code = ACL_IS_NULL(notify) ?: core_notify_find(notify, &n)
			?: core_stream_find(stream, &found);

	if (code == ACL_SUCCESS && !n.imported)
		code = check_device(&n, "it is recorded from there by aclrtNotifyGetExportKey and "
					"aclrtNotifyImportByKey");
	return code ?: send(&n, found, STARS_SQE_NOTIFY_RECORD, 0);
}

ACL_ANSWERS_WITH(aclrtWaitAndResetNotify, struct core_stream *found; struct core_notify n,
	ACL_IS_NULL(notify) ?: core_notify_find(notify, &n) ?: core_stream_find(stream, &found)
			?: check_device(&n, "streams of its own device wait for it")
			?: send(&n, found, STARS_SQE_NOTIFY_WAIT, timeout));

static aclError check_count(size_t num)
{
	return RT_WANT(num > 0 && num <= INT32_MAX, "num is %zu; it must be from 1 to %d", num,
		       INT32_MAX);
}

/* CANN sends the reset by the default stream, and waits for it. */
static aclError reset(aclrtNotify notify)
{
	struct halResourceIdInputInfo id = { .type = DRV_NOTIFY_ID };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RESET };
	struct core_stream *stream;
	struct core_notify n;
	aclError code = core_notify_find(notify, &n) ?: core_stream_find(NULL, &stream)
			?: check_device(&n, "it is reset where its device is current")
			?: core_stream_synchronize(stream, -1);

	id.resourceId = n.id;
	return code ?: ACL_CALL(halResourceConfig, n.device, &id, &config);
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
	aclError code = ACL_IS_NULL(notifies) ?: check_count(num);

	for (size_t i = 0; code == ACL_SUCCESS && i < num; i++)
		code = reset(notifies[i]);
	return code;
}

/* ---- asked ---- */

ACL_ANSWERS_WITH(aclrtGetNotifyId, struct core_notify n,
	ACL_IS_NULL(notify) ?: ACL_IS_NULL(notifyId)
			?: core_notify_find(notify, &n) ?: ACL_GIVE(notifyId, n.id));

ACL_ANSWERS_WITH(rtNotifyGetAddrOffset, struct drvNotifyInfo info = { 0 }; struct core_notify n,
	RT_WANT(notify != NULL && devAddrOffset != NULL,
				"notify is %p and devAddrOffset %p; both are needed", notify,
				(void *)devAddrOffset)
			?: core_notify_find(notify, &n) ?: ACL_GIVE(&info.notifyId, n.id)
			?: ACL_CALL(drvNotifyIdAddrOffset, n.device, &info)
			?: ACL_GIVE(devAddrOffset, info.devAddrOffset));

/* ---- shared with other processes ---- */

/* The key stays where the flag fails, as with CANN. */
static aclError export(aclrtNotify notify, char *key, bool to_all)
{
	struct shrIdAttr attr = { .enableFlag = SHRID_NO_WLIST_ENABLE };
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE };
	char made[CORE_KEY_BYTES];
	struct core_notify n;
	aclError code = core_notify_find(notify, &n);

	info.devid = n.device;
	info.shrid = n.id;
	code = code ?: ACL_CALL(halShrIdCreate, &info, made, sizeof(made));
	if (code != ACL_SUCCESS)
		return code;
	code = core_notify_set_key(notify, made);
	if (code != ACL_SUCCESS) {
		npu_call(core_driver(), halShrIdDestroy, made);
		return code;
	}
	memcpy(key, made, sizeof(made));
	return !to_all ? ACL_SUCCESS
		       : ACL_CALL(halShrIdSetAttribute, key, SHR_ID_ATTR_NO_WLIST_IN_SERVER, attr);
}

ACL_ANSWERS(aclrtNotifyGetExportKey, ACL_IS_NULL(notify) ?: ACL_IS_NULL(key)
			?: RT_WANT(len >= CORE_KEY_BYTES,
				   "len is %zu; the key takes %u bytes", len, CORE_KEY_BYTES)
			?: RT_WANT((flags & ~ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0,
				   "flags is %#llx; it must be ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION (2)",
				   (unsigned long long)flags)
			?: export(notify, key, flags != 0));

ACL_ANSWERS_WITH(aclrtNotifySetImportPid, struct core_notify n,
	ACL_IS_NULL(notify) ?: ACL_IS_NULL(pid) ?: core_notify_find(notify, &n) ?: check_count(num)
			?: RT_WANT(n.key[0] != '\0',
				   "notify=%p has no key; call aclrtNotifyGetExportKey first",
				   notify)
			?: ACL_CALL(halShrIdSetPid, n.key, pid, (uint32_t)num));

/* One process of each server, as CANN has it. */
aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid *serverPids,
					    size_t num)
{
	struct core_notify n;
	aclError code = RT_WANT(notify != NULL && serverPids != NULL,
				"notify is %p and serverPids %p; both are needed", notify,
				(void *)serverPids)
			?: check_count(num) ?: core_notify_find(notify, &n);

	for (size_t i = 0; i < num && code == ACL_SUCCESS; i++)
		code = RT_WANT(serverPids[i].pid != NULL && serverPids[i].num == 1,
			       "serverPids[%zu] has %zu process ids at %p; one is taken", i,
			       serverPids[i].num, (void *)serverPids[i].pid)
			       ?: ACL_CALL(halShrIdSetPodPid, n.key, serverPids[i].sdid,
					   serverPids[i].pid[0]);
	return code;
}

static aclError import(const char *key, uint32_t current, bool peer, aclrtNotify *out)
{
	struct drvShrIdInfo info = { .devid = current, .id_type = SHR_ID_NOTIFY_TYPE };
	struct core_notify n = { .imported = true };
	aclError code = ACL_CALL(halShrIdOpen, key, &info);

	if (code != ACL_SUCCESS)
		return code;
	n.id = info.shrid;
	strncpy(n.key, key, sizeof(n.key) - 1);
	n.device = info.devid;
	n.elsewhere = (info.flag & SHR_ID_SHADOW) != 0;
	if (n.elsewhere)
		return add(&n, out);
	code = ACL_CALL(drvDeviceGetIndexByPhyId, info.devid, &n.device);
	if (code == ACL_SUCCESS && peer)
		code = acl_enable_peer(current, info.devid);
	if (code == ACL_SUCCESS)
		return add(&n, out);
	give_back(&n);
	return code;
}

ACL_ANSWERS_WITH(aclrtNotifyImportByKey, struct core_context *context = NULL,
	ACL_IS_NULL(notify) ?: ACL_IS_NULL(key)
			?: check_flags(flags, ACL_NOTIFY_DEVICE_USE_ONLY |
				ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS)
			?: acl_current(&context)
			?: import(key, context->device, flags != 0, notify));
