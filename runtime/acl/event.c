/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: the ACL face of runtime/core/event.c.
 */
#include "acl-internal.h"

_Static_assert(ACL_EVENT_SYNC == CORE_EVENT_SYNC && ACL_EVENT_TIME_LINE == CORE_EVENT_TIME_LINE,
	       "one set of flags");

/* 0x4 has no name in the ACL; CANN takes it. */
#define FLAGS_COMBINED \
	(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | 0x4u | ACL_EVENT_TIME_LINE)
#define FLAGS_ALONE (ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL)

ACL_EXPORT aclError aclrtCreateEvent(aclrtEvent *event)
	ACL_ANSWERS(ACL_IS_NULL(event)
			    ?: core_event_create(CORE_EVENT_PLAIN,
						 CORE_EVENT_SYNC | CORE_EVENT_TIME_LINE, event,
						 __func__));

static aclError fail_flag(const char *call, uint32_t flag)
{
	return rt_invalid(call,
			  "flag is %#x; it must be one or more of ACL_EVENT_SYNC (0x1), "
			  "ACL_EVENT_CAPTURE_STREAM_PROGRESS (0x2) and ACL_EVENT_TIME_LINE (0x8)",
			  flag);
}

ACL_EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
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

ACL_EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
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

ACL_EXPORT aclError aclrtDestroyEvent(aclrtEvent event)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: core_event_destroy(event, __func__));
ACL_EXPORT aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: core_event_record(event, stream, __func__));

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

ACL_EXPORT aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: check_default_flag(__func__, flag)
			?: core_event_record(event, stream, __func__));
ACL_EXPORT aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: core_event_reset(event, stream, __func__));

ACL_EXPORT aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, true, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY);
}

ACL_EXPORT aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query(event, false, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
					 : ACL_EVENT_RECORDED_STATUS_NOT_READY);
}

ACL_EXPORT aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
	bool done;

	return ACL_IS_NULL(event) ?: ACL_IS_NULL(status)
			?: core_event_query_waits(event, &done, __func__)
			?: ACL_GIVE(status,
				    done ? ACL_EVENT_WAIT_STATUS_COMPLETE
					 : ACL_EVENT_WAIT_STATUS_NOT_READY);
}

ACL_EXPORT aclError aclrtSynchronizeEvent(aclrtEvent event)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: core_event_synchronize(event, -1, __func__));
ACL_EXPORT aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
	ACL_ANSWERS(acl_check_timeout(__func__, timeout, true) ?: ACL_IS_NULL(event)
			?: acl_check_timeout(__func__, timeout, false)
			?: core_event_synchronize(event, timeout, __func__));
ACL_EXPORT aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
	ACL_ANSWERS(ACL_IS_NULL(ms) ?: ACL_IS_NULL(startEvent) ?: ACL_IS_NULL(endEvent)
			?: core_event_elapsed(startEvent, endEvent, ms, __func__));
ACL_EXPORT aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
	ACL_ANSWERS(ACL_IS_NULL(timestamp) ?: ACL_IS_NULL(event)
			?: core_event_timestamp(event, timestamp, __func__));
ACL_EXPORT aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: ACL_IS_NULL(eventId)
			?: core_event_id(event, eventId, __func__));

ACL_EXPORT aclError aclrtGetEventAvailNum(uint32_t *eventCount)
{
	struct core_context *context;

	return ACL_IS_NULL(eventCount) ?: acl_current(__func__, &context)
			?: ACL_GIVE(eventCount, CORE_EVENT_MAX - core_event_live(context->device));
}

/* ---- streams wait for events ---- */

ACL_EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: core_event_wait(event, stream, 0, __func__));

ACL_EXPORT aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
						    int32_t timeout)
	ACL_ANSWERS(RT_WANT(__func__, timeout >= 0,
			    "timeout is %d; it must be 0 (wait for ever) or more, in seconds",
			    timeout)
			    ?: RT_WANT(__func__, event != NULL,
				       "event is NULL; it must be an event")
			    ?: core_event_wait(event, stream, (uint32_t)timeout, __func__));

ACL_EXPORT aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
						 uint32_t timeout, uint32_t flag)
	ACL_ANSWERS(ACL_IS_NULL(event) ?: check_default_flag(__func__, flag)
			?: core_event_wait(event, stream, timeout, __func__));
