/* SPDX-License-Identifier: Apache-2.0
 *
 * Events, the ACL face of runtime/core/event.c; and notifies, within a process and between
 * processes: CANN's checks, and the driver's ids and names.
 */
#include "acl-internal.h"

#include <string.h>

_Static_assert(ACL_EVENT_SYNC == CORE_EVENT_SYNC && ACL_EVENT_TIME_LINE == CORE_EVENT_TIME_LINE,
	       "one set of flags");

/* 0x4 has no name in the ACL; CANN takes it. */
#define FLAGS_COMBINED \
	(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | 0x4u | ACL_EVENT_TIME_LINE)
#define FLAGS_ALONE (ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)

ACL_ANSWERS(aclrtCreateEvent,
	    ACL_IS_NULL(event)
		    ?: core_event_create(CORE_EVENT_PLAIN, CORE_EVENT_SYNC | CORE_EVENT_TIME_LINE,
					 event, __func__));

static aclError fail_flag(const char *call, uint32_t flag)
{
	return rt_invalid(call,
			  "flag is %#x; it must be one or more of ACL_EVENT_SYNC (0x1), "
			  "ACL_EVENT_CAPTURE_STREAM_PROGRESS (0x2) and ACL_EVENT_TIME_LINE (0x8)",
			  flag);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
	if (ACL_IS_NULL(event))
		return ACL_ERROR_INVALID_PARAM;
	if (flag == 0 || (flag & ~(FLAGS_COMBINED | FLAGS_ALONE)) != 0)
		return fail_flag(__func__, flag);
	if ((flag & FLAGS_ALONE) != 0 && flag != ACL_EVENT_DEVICE_USE_ONLY &&
	    flag != ACL_EVENT_EXTERNAL)
		return fail_flag(__func__, flag);
	if ((flag & FLAGS_ALONE) != 0)
		return acl_unsupported(__func__,
				       "flag is %#x: events for device code and for captured "
				       "graphs are not modelled",
				       flag);
	return core_event_create(CORE_EVENT_FLAGS, flag, event, __func__);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
	if (ACL_IS_NULL(event))
		return ACL_ERROR_INVALID_PARAM;
	if (flag == ACL_EVENT_IPC)
		return acl_unsupported(
			__func__,
			"flag is ACL_EVENT_IPC (0x40): events between processes are not modelled");
	if (flag == 0 || (flag & ~FLAGS_COMBINED) != 0)
		return fail_flag(__func__, flag);
	return core_event_create(CORE_EVENT_AGAIN, flag, event, __func__);
}

ACL_ANSWERS(aclrtDestroyEvent, ACL_IS_NULL(event) ?: core_event_destroy(event, __func__));
ACL_ANSWERS(aclrtRecordEvent, ACL_IS_NULL(event) ?: core_event_record(event, stream, __func__));

/* ACL_EVENT_RECORD_* and ACL_EVENT_WAIT_* have the same two values. */
static aclError check_default_flag(const char *call, uint32_t flag)
{
	if (flag == ACL_EVENT_RECORD_EXTERNAL)
		return acl_unsupported(
			call,
			"flag is 1 (external): captured graphs are not modelled; it must be 0");
	if (flag != ACL_EVENT_RECORD_DEFAULT)
		return acl_invalid(call, "flag is %u; it must be 0 (default) or 1 (external)",
				   flag);
	return ACL_SUCCESS;
}

ACL_ANSWERS(aclrtRecordEventWithFlag, ACL_IS_NULL(event) ?: check_default_flag(__func__, flag)
			?: core_event_record(event, stream, __func__));
ACL_ANSWERS(aclrtResetEvent, ACL_IS_NULL(event) ?: core_event_reset(event, stream, __func__));

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, true, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, false, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
					 : ACL_EVENT_RECORDED_STATUS_NOT_READY);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query_waits(event, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_WAIT_STATUS_COMPLETE
					 : ACL_EVENT_WAIT_STATUS_NOT_READY);
}

ACL_ANSWERS(aclrtSynchronizeEvent,
	    ACL_IS_NULL(event) ?: core_event_synchronize(event, -1, __func__));

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
	return acl_check_timeout(__func__, timeout, true) ?: ACL_IS_NULL(event)
			?: acl_check_timeout(__func__, timeout, false)
			?: core_event_synchronize(event, timeout, __func__);
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
	return ACL_IS_NULL(ms) ?: ACL_IS_NULL(startEvent) ?: ACL_IS_NULL(endEvent)
			?: core_event_elapsed(startEvent, endEvent, ms, __func__);
}

ACL_ANSWERS(aclrtEventGetTimestamp, ACL_IS_NULL(timestamp) ?: ACL_IS_NULL(event)
			?: core_event_timestamp(event, timestamp, __func__));
ACL_ANSWERS(aclrtGetEventId, ACL_IS_NULL(event) ?: ACL_IS_NULL(eventId)
			?: core_event_id(event, eventId, __func__));

aclError aclrtGetEventAvailNum(uint32_t *eventCount)
{
	struct core_context *context;

	return ACL_IS_NULL(eventCount) ?: acl_current(__func__, &context)
			?: ACL_GIVE(eventCount, CORE_EVENT_MAX - core_event_live(context->device));
}

/* ---- streams wait for events ---- */

ACL_ANSWERS(aclrtStreamWaitEvent,
	    ACL_IS_NULL(event) ?: core_event_wait(event, stream, 0, __func__));

ACL_ANSWERS(aclrtStreamWaitEventWithTimeout, RT_WANT(__func__, timeout >= 0,
			    "timeout is %d; it must be 0 (wait for ever) or more, in seconds",
			    timeout)
			    ?: RT_WANT(__func__, event != NULL,
				       "event is NULL; it must be an event")
			    ?: core_event_wait(event, stream, (uint32_t)timeout, __func__));

ACL_ANSWERS(aclrtStreamWaitEventWithFlag, ACL_IS_NULL(event) ?: check_default_flag(__func__, flag)
			?: core_event_wait(event, stream, timeout, __func__));

/* ---- made and ended ---- */

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

static aclError add(const char *call, const struct core_notify *notify, aclrtNotify *out)
{
	aclError code = core_notify_add(notify, out, call);

	if (code != ACL_SUCCESS)
		give_back(notify);
	return code;
}

static aclError check_flags(const char *call, uint64_t flags, uint64_t most)
{
	if (flags > most)
		return rt_invalid(call, "the flags are %#llx; they must be from 0 to %llu",
				  (unsigned long long)flags, (unsigned long long)most);
	if ((flags & ACL_NOTIFY_DEVICE_USE_ONLY) != 0)
		return acl_unsupported(call, "the flags are %#llx: device code is not modelled",
				       (unsigned long long)flags);
	return ACL_SUCCESS;
}

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };
	struct halResourceIdOutputInfo out = { 0 };
	struct core_context *context = NULL;

	return ACL_IS_NULL(notify) ?: check_flags(__func__, flag, ACL_NOTIFY_DEVICE_USE_ONLY)
		       ?: acl_current(__func__, &context)
		       ?: ACL_CALL(__func__, halResourceIdAlloc, context->device, &in, &out)
		       ?: add(__func__,
			      &(struct core_notify){ .device = context->device,
						     .id = out.resourceId },
			      notify);
}

/* The driver's answers are not heard, as by CANN: a device that was reset has the id already. */
aclError aclrtDestroyNotify(aclrtNotify notify)
{
	struct core_notify found;
	aclError code = ACL_IS_NULL(notify) ?: core_notify_remove(notify, &found, __func__);

	if (code == ACL_SUCCESS)
		give_back(&found);
	return code;
}

/* ---- recorded, waited for, reset ---- */

static aclError find(const char *call, aclrtNotify notify, aclrtStream handle,
		     struct core_notify *out, struct core_stream **out_stream)
{
	return core_notify_find(notify, out, call) ?: core_stream_find(handle, call, out_stream);
}

/* The device of the call: the stream's, or the current one. */
static aclError check_device(const char *call, const struct core_notify *notify, const char *right)
{
	uint32_t device = core_context_peek()->device;

	return RT_WANT(call, device == notify->device,
		       "the notify is one of device %u, and the call's is %u: %s", notify->device,
		       device, right);
}

static aclError send(const char *call, const struct core_notify *notify, struct core_stream *stream,
		     uint8_t type, uint32_t timeout_s)
{
	bool here = core_context_peek()->device == notify->device;
	struct stars_event_sqe sqe = {
		.header.type = type,
		.event_id = (uint16_t)notify->id,
		.res2 = (uint16_t)(here ? 0 : notify->device + 1),
		.exe_result = timeout_s == UINT32_MAX ? 0 : timeout_s,
	};

	if (!here && !(core_driver()->caps & NPU_CAP_MODEL))
		return acl_unsupported(call,
				       "a notify of another device (%u) is recorded on the "
				       "model only",
				       notify->device);
	return core_stream_send(stream, &sqe, 1, NULL, NULL, call);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
	struct core_stream *found;
	struct core_notify n;
	aclError code = ACL_IS_NULL(notify) ?: find(__func__, notify, stream, &n, &found);

	if (code == ACL_SUCCESS && !n.imported)
		code = check_device(__func__, &n,
				    "it is recorded from there by aclrtNotifyGetExportKey and "
				    "aclrtNotifyImportByKey");
	return code ?: send(__func__, &n, found, STARS_SQE_NOTIFY_RECORD, 0);
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
	struct core_stream *found;
	struct core_notify n;

	return ACL_IS_NULL(notify) ?: find(__func__, notify, stream, &n, &found)
		       ?: check_device(__func__, &n, "streams of its own device wait for it")
		       ?: send(__func__, &n, found, STARS_SQE_NOTIFY_WAIT, timeout);
}

static aclError check_count(const char *call, size_t num)
{
	return RT_WANT(call, num > 0 && num <= INT32_MAX, "num is %zu; it must be from 1 to %d",
		       num, INT32_MAX);
}

/* CANN sends the reset by the default stream, and waits for it. */
static aclError reset(const char *call, aclrtNotify notify)
{
	struct halResourceIdInputInfo id = { .type = DRV_NOTIFY_ID };
	struct halResourceConfigInfo config = { .prop = DRV_ID_RESET };
	struct core_stream *stream;
	struct core_notify n;
	aclError code = find(call, notify, NULL, &n, &stream)
			?: check_device(call, &n, "it is reset where its device is current")
			?: core_stream_synchronize(stream, -1, call);

	id.resourceId = n.id;
	return code ?: ACL_CALL(call, halResourceConfig, n.device, &id, &config);
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
	aclError code = ACL_IS_NULL(notifies) ?: check_count(__func__, num);

	for (size_t i = 0; code == ACL_SUCCESS && i < num; i++)
		code = reset(__func__, notifies[i]);
	return code;
}

/* ---- asked ---- */

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
	struct core_notify n;

	return ACL_IS_NULL(notify) ?: ACL_IS_NULL(notifyId)
			?: core_notify_find(notify, &n, __func__) ?: ACL_GIVE(notifyId, n.id);
}

rtError_t rtNotifyGetAddrOffset(rtNotify_t notify, uint64_t *devAddrOffset)
{
	struct drvNotifyInfo info = { 0 };
	struct core_notify n;

	return RT_WANT(__func__, notify != NULL && devAddrOffset != NULL,
		       "notify is %p and devAddrOffset %p; both are needed", notify,
		       (void *)devAddrOffset)
		       ?: core_notify_find(notify, &n, __func__) ?: ACL_GIVE(&info.notifyId, n.id)
		       ?: ACL_CALL(__func__, drvNotifyIdAddrOffset, n.device, &info)
		       ?: ACL_GIVE(devAddrOffset, info.devAddrOffset);
}

/* ---- shared with other processes ---- */

/* The key stays where the flag fails, as with CANN. */
static aclError export(const char *call, aclrtNotify notify, char *key, bool to_all)
{
	struct shrIdAttr attr = { .enableFlag = SHRID_NO_WLIST_ENABLE };
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE };
	char made[CORE_KEY_BYTES];
	struct core_notify n;
	aclError code = core_notify_find(notify, &n, call);

	info.devid = n.device;
	info.shrid = n.id;
	code = code ?: ACL_CALL(call, halShrIdCreate, &info, made, sizeof(made));
	if (code != ACL_SUCCESS)
		return code;
	code = core_notify_set_key(notify, made, call);
	if (code != ACL_SUCCESS) {
		npu_call(core_driver(), halShrIdDestroy, made);
		return code;
	}
	memcpy(key, made, sizeof(made));
	return !to_all ? ACL_SUCCESS
		       : ACL_CALL(call, halShrIdSetAttribute, key, SHR_ID_ATTR_NO_WLIST_IN_SERVER,
				  attr);
}

ACL_ANSWERS(aclrtNotifyGetExportKey, ACL_IS_NULL(notify) ?: ACL_IS_NULL(key)
			?: RT_WANT(__func__, len >= CORE_KEY_BYTES,
				   "len is %zu; the key takes %u bytes", len, CORE_KEY_BYTES)
			?: RT_WANT(__func__,
				   (flags & ~ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0,
				   "flags is %#llx; it must be ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT "
				   "(0) or ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION (2)",
				   (unsigned long long)flags)
			?: export(__func__, notify, key, flags != 0));

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num)
{
	struct core_notify n;

	return ACL_IS_NULL(notify) ?: ACL_IS_NULL(pid) ?: core_notify_find(notify, &n, __func__)
			?: check_count(__func__, num)
			?: RT_WANT(__func__, n.key[0] != '\0',
				   "notify=%p has no key; call aclrtNotifyGetExportKey first",
				   notify)
			?: ACL_CALL(__func__, halShrIdSetPid, n.key, pid, (uint32_t)num);
}

static aclError import(const char *call, const char *key, uint32_t current, bool peer,
		       aclrtNotify *out)
{
	struct drvShrIdInfo info = { .devid = current, .id_type = SHR_ID_NOTIFY_TYPE };
	struct core_notify n = { .imported = true };
	aclError code = ACL_CALL(call, halShrIdOpen, key, &info);

	if (code != ACL_SUCCESS)
		return code;
	n.id = info.shrid;
	strncpy(n.key, key, sizeof(n.key) - 1);
	code = ACL_CALL(call, drvDeviceGetIndexByPhyId, info.devid, &n.device);
	if (code == ACL_SUCCESS && peer)
		code = acl_enable_peer(call, current, info.devid);
	if (code == ACL_SUCCESS)
		return add(call, &n, out);
	give_back(&n);
	return code;
}

aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags)
{
	const uint64_t known =
		ACL_NOTIFY_DEVICE_USE_ONLY | ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS;
	struct core_context *context = NULL;

	return ACL_IS_NULL(notify) ?: ACL_IS_NULL(key) ?: check_flags(__func__, flags, known)
		       ?: acl_current(__func__, &context)
		       ?: import(__func__, key, context->device, flags != 0, notify);
}
