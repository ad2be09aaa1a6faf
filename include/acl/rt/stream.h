/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events, notifies, host callbacks, waits on values. What holds for every function, null
 * streams too: acl_rt.h. Include acl/acl.h, not this.
 */
#ifndef NPUSIM_ACL_RT_STREAM_H
#define NPUSIM_ACL_RT_STREAM_H

#include "types.h"

NPUSIM_ACL_BEGIN

/* --- streams -------------------------------------------------------------------------------- */

/**
 * aclrtCreateStream:
 * @stream: out: a new stream, to be given back by aclrtDestroyStream.
 *
 * Work on one stream is done in order; streams know nothing of each other.
 *
 * Context: needed.
 * Returns: 0; 207008: no stream is left.
 * Time: driver.
 */
aclError aclrtCreateStream(aclrtStream *stream);

/**
 * aclrtCreateStreamWithConfig:
 * @priority: kept for aclrtStreamGetPriority; too low a priority becomes the lowest.
 * @flag: ACL_STREAM_* flags, or 0. They change no order and no result here.
 *
 * As aclrtCreateStream.
 *
 * Returns: also 107000: an unknown @flag.
 */
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);

/**
 * aclrtDestroyStream:
 * @stream: one of aclrtCreateStream; not null, not a default stream.
 *
 * Waits for its work first.
 *
 * Returns: 0; 107000 or 107003: no such stream in this process or context.
 * Time: waits.
 */
aclError aclrtDestroyStream(aclrtStream stream);

/**
 * aclrtDestroyStreamForce:
 * As aclrtDestroyStream, but drops the work that has not begun.
 *
 * Time: driver.
 */
aclError aclrtDestroyStreamForce(aclrtStream stream);

/**
 * aclrtSynchronizeStream:
 * Waits for all work on @stream, and reports work that failed.
 *
 * Returns: 0, or the code of work that failed.
 * Time: waits.
 */
aclError aclrtSynchronizeStream(aclrtStream stream);

/**
 * aclrtSynchronizeStreamWithTimeout:
 * @timeout: in ms, from 1; -1 waits for ever.
 *
 * As aclrtSynchronizeStream.
 *
 * Returns: also 107000: @timeout is 0 or below -1; 507046: not done in time, and the work goes on.
 */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/**
 * aclrtStreamQuery:
 * @status: out: whether all work of @stream is done.
 *
 * Returns: 0, or the code of work that failed.
 */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/**
 * aclrtStreamGetId:
 * @streamId: out: a number that no other live stream of the device has in this process.
 */
aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);

/**
 * aclrtStreamGetPriority:
 * @priority: out: as created.
 *
 * Since: 8.5.
 */
aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);

/**
 * aclrtStreamGetFlags:
 * @flags: out: ACL_STREAM_* as created.
 *
 * Since: 8.5.
 */
aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);

/**
 * aclrtStreamAbort:
 * @stream: a stream of the current context, or null. Afterwards it is as a new one.
 *
 * Of a copy that runs nothing more arrives: what has arrived stays. What is queued is dropped, and
 * errors are forgotten; host functions whose turn has come run. Events that were to be recorded
 * there do not happen: aclrtSynchronizeEvent answers 107023 from then on, and streams that wait
 * for them stand until they are aborted too. (CANN: runtime, context.cc, Context::StreamAbort.)
 *
 * Context: needed.
 * Returns: 0; 107003: a stream of another context; 207000: on a server's own driver; 107023:
 *   another thread aborts it. Who waits for it, or sends to it meanwhile, gets 107023.
 * Time: driver.
 */
aclError aclrtStreamAbort(aclrtStream stream);

/**
 * aclrtStreamStop:
 * @stream: a stream of the current context, not a default one.
 *
 * Of a copy that runs nothing more arrives, and nothing else begins: what is queued, then and
 * later, stays and is not done, until aclrtStreamAbort or the end of the stream drops it. The stop
 * takes its turn on the default stream. (CANN: runtime, context.cc, Context::StreamClear.)
 *
 * Context: needed.
 * Returns: 0, or the code of work that failed on the default stream; 107000: a default stream;
 *   107003: one of another context; 207000: on a server's own driver.
 * Time: waits. Since: 8.5.
 */
aclError aclrtStreamStop(aclrtStream stream);

/**
 * aclrtSetStreamFailureMode:
 * @mode: ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE; higher bits are ignored.
 *
 * What happens after a task has failed. Where a stream of a context is to stop, the first failed
 * task of any of its streams stops the context: all calls that queue, wait for or query work of its
 * streams, and query its events, answer that task's code, until the context ends. What needs no
 * stream goes on. (CANN: runtime, stream.cc, Stream::EnterFailureAbort.)
 *
 * Returns: 0, or 207000: the stream stops already, and cannot go back to continue, or has failed.
 */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/**
 * aclrtGetStreamAvailableNum:
 * @streamCount: out: how many streams could still be created on the current device.
 *
 * Context: needed.
 * Since: 8.5.
 */
aclError aclrtGetStreamAvailableNum(uint32_t *streamCount);

/**
 * aclrtStreamWaitEvent:
 * @event: what follows on @stream waits for it. If it was never recorded there is nothing to wait
 *   for.
 *
 * Returns: 0; 207000: the event was made without ACL_EVENT_SYNC.
 * Time: queued.
 */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/**
 * aclrtStreamWaitEventWithTimeout:
 * @timeout: in seconds; 0 waits for ever. When it passes, the work of @stream fails with 507047.
 *
 * As aclrtStreamWaitEvent.
 *
 * Returns: also 107000: @timeout is negative.
 * Time: queued. Since: 8.5.
 */
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout);

/**
 * aclrtStreamWaitEventWithFlag:
 * @flag: ACL_EVENT_WAIT_DEFAULT. ACL_EVENT_WAIT_EXTERNAL is for captured graphs: 207000.
 *
 * As aclrtStreamWaitEventWithTimeout, but any @timeout is in order.
 *
 * Returns: also 100000: another @flag.
 * Time: queued. Since: 9.2 beta.
 */
aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
				      uint32_t flag);

/* --- events --------------------------------------------------------------------------------- */

/**
 * aclrtCreateEvent:
 * @event: out: a new event with a time stamp, to be given back by aclrtDestroyEvent.
 *
 * Context: needed.
 * Returns: 0; 207007: no event is left.
 */
aclError aclrtCreateEvent(aclrtEvent *event);

/**
 * aclrtCreateEventWithFlag:
 * @event: out: as in aclrtCreateEvent.
 * @flag: ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE and ACL_EVENT_CAPTURE_STREAM_PROGRESS, one or more.
 *
 * Context: needed.
 * Returns: 0; 107000: @flag is 0 or unknown; 207007: no event is left.
 */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);

/**
 * aclrtCreateEventExWithFlag:
 * @event: out: as in aclrtCreateEvent; it can be recorded again without a reset, and takes neither
 *   aclrtResetEvent nor aclrtQueryEventWaitStatus.
 * @flag: as in aclrtCreateEventWithFlag.
 *
 * Context: needed.
 * Returns: as aclrtCreateEventWithFlag; 207000: ACL_EVENT_IPC.
 */
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

/**
 * aclrtDestroyEvent:
 * @event: an event. Streams that wait for it go on waiting for what it recorded.
 *
 * Returns: 0; 107000: no such event.
 */
aclError aclrtDestroyEvent(aclrtEvent event);

/**
 * aclrtRecordEvent:
 * @event: an event. It happens when all work that is on @stream now is done.
 *
 * Time: queued.
 */
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/**
 * aclrtRecordEventWithFlag:
 * @flag: ACL_EVENT_RECORD_DEFAULT. ACL_EVENT_RECORD_EXTERNAL is for captured graphs: 207000.
 *
 * As aclrtRecordEvent.
 *
 * Returns: also 100000: another @flag.
 * Time: queued. Since: 9.2 beta.
 */
aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag);

/**
 * aclrtResetEvent:
 * @event: an event of aclrtCreateEventWithFlag with ACL_EVENT_SYNC, to be used again. The reset
 *   takes its turn on @stream.
 *
 * Returns: 0; 207000: an event of aclrtCreateEventExWithFlag.
 * Time: queued.
 */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/**
 * aclrtQueryEvent:
 * @status: out: ACL_EVENT_STATUS_COMPLETE or ..._NOT_READY.
 *
 * CANN calls it deprecated in favour of aclrtQueryEventStatus.
 */
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);

/**
 * aclrtQueryEventStatus:
 * @status: out: COMPLETE if what it recorded is done, or it never was recorded.
 */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);

/**
 * aclrtQueryEventWaitStatus:
 * @event: an event, not of aclrtCreateEventExWithFlag.
 * @status: out: COMPLETE if all aclrtStreamWaitEvent on it are done.
 *
 * Returns: 0; 207000: an event of aclrtCreateEventExWithFlag.
 */
aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status);

/**
 * aclrtSynchronizeEvent:
 * @event: one that never was recorded is no wait.
 *
 * Returns: 0, or the code of work that failed.
 * Time: waits.
 */
aclError aclrtSynchronizeEvent(aclrtEvent event);

/**
 * aclrtSynchronizeEventWithTimeout:
 * @timeout: in ms, from 1; -1 waits for ever.
 *
 * As aclrtSynchronizeEvent.
 *
 * Returns: also 107000: @timeout is 0 or below -1, which is looked at first; 507047: not in time.
 */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/**
 * aclrtEventElapsedTime:
 * @ms: out: from @startEvent to @endEvent in ms, with fractions. On the model simulated time.
 * @startEvent: an event with a time stamp that has happened.
 * @endEvent: likewise, later.
 *
 * Returns: 0; 107006: one has no time stamp, was not recorded or has not happened; 107007:
 *   @endEvent happened first.
 */
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/**
 * aclrtEventGetTimestamp:
 * @event: an event with a time stamp that has happened.
 * @timestamp: out: when, in microseconds since the device started.
 *
 * Returns: 0; 107006: it has no time stamp, was not recorded or has not happened.
 */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

/**
 * aclrtGetEventId:
 * @eventId: out: a number that no other live event of the device has in this process.
 *
 * Since: 8.5.
 */
aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId);

/**
 * aclrtGetEventAvailNum:
 * @eventCount: out: how many events could still be created on the current device, of 65536.
 *
 * Context: needed.
 * Since: 8.5.
 */
aclError aclrtGetEventAvailNum(uint32_t *eventCount);

/* --- notifies -------------------------------------------------------------------------------
 *
 * A notify is a register of the device that is current when it is made: recorded, or not. All that
 * follow need a context, answer 107017 for what is no notify of this process and 107003 for a
 * stream of another context, and are there since 8.5. Sources: CANN's runtime (notify.cc,
 * api_impl.cc) and driver (trs_shr_id_node.c).
 */

/**
 * aclrtCreateNotify:
 * @notify: out: not recorded; to be given back by aclrtDestroyNotify.
 * @flag: ACL_NOTIFY_DEFAULT. ACL_NOTIFY_DEVICE_USE_ONLY is for device code: 207000.
 *
 * Returns: 0; 107000: another @flag; 207009: all 8192 of the device are in use, by all processes.
 */
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);

/**
 * aclrtDestroyNotify:
 * @notify: made here, or imported. No process imports one any more that its maker has destroyed.
 *   Work of this process that names it fails (507001); others use it on.
 */
aclError aclrtDestroyNotify(aclrtNotify notify);

/**
 * aclrtRecordNotify:
 * @notify: one of the device of @stream, or an imported one; 107000: another. It is recorded when
 *   all work that is on @stream now is done. 207000: one of another device, on a server's driver.
 *
 * Time: queued.
 */
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);

/**
 * aclrtWaitAndResetNotify:
 * @notify: one of the device of @stream; 107000: another. What follows on @stream waits until it is
 *   recorded. The wait takes the record with it: of several that wait, one goes on.
 * @timeout: in seconds; 0 waits for ever. When it passes, the work of @stream fails with 107020.
 *
 * Time: queued.
 */
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);

/**
 * aclrtGetNotifyId:
 * @notifyId: out: unique on the device; an imported one has its maker's.
 */
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);

/**
 * aclrtNotifyBatchReset:
 * @notifies: of the current device, else 107000: not recorded, once the default stream has done
 *   what is on it now. Up to the first that fails.
 * @num: how many, from 1.
 *
 * Returns: 0, or the code of work that failed on the default stream. Time: waits.
 */
aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num);

/**
 * aclrtNotifyGetExportKey:
 * @notify: one without a key; 507000: it has one, or was imported.
 * @key: out: a text by which other processes import it, as long as it is there.
 * @len: of @key, 65 at least.
 * @flags: ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT, or ..._DISABLE_PID_VALIDATION: any process may.
 */
aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags);

/**
 * aclrtNotifySetImportPid:
 * @notify: one with a key, made here.
 * @pid: processes that may import it, as aclrtDeviceGetBareTgid names them there.
 * @num: how many, from 1; driver: 1, else 107000.
 *
 * Returns: 0; 207006: any process may; 507899: it was imported.
 */
aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num);

/**
 * aclrtNotifySetImportPidInterServer:
 * @notify: one with a key, made here.
 * @serverPids: for each of @num servers of the supernode, the process that may import: sdid is the
 *   id of any device of that server, pid its one process, and num 1.
 *
 * Returns: 0; 107000: @notify or @serverPids is null, or a list has not one process; 507899: no
 * process of such a server is there, any process may import it, or there is no supernode.
 */
aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid *serverPids,
					    size_t num);

/**
 * aclrtNotifyImportByKey:
 * @notify: out: to be given back by aclrtDestroyNotify.
 * @key: as aclrtNotifyGetExportKey wrote it.
 * @flags: ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT, or ..._ENABLE_PEER_ACCESS, between the current device
 *   and that of @notify, both ways. Records need none here.
 *
 * Returns: 0; 507899: the process may not, there is no such key, or 16 processes use the notify.
 * One of another server can be recorded, and not waited for.
 */
aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags);

/* --- callbacks ------------------------------------------------------------------------------ */

/**
 * aclrtLaunchCallback:
 * @fn: called with @userData when its turn on @stream comes, in the thread that subscribes to it.
 *   It must not wait for streams or devices, nor allocate or free there.
 * @userData: passed on; may be null.
 * @blockType: whether what follows on @stream waits for @fn to return.
 * @stream: a stream with a subscriber, or null.
 *
 * Context: needed.
 * Returns: 0; 100000: no such @blockType; 107000: @fn is null; 107015: nobody subscribes to
 *   @stream; 107011: @stream has used aclrtLaunchHostFunc: not both on one stream.
 * Time: queued.
 */
aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
			     aclrtStream stream);

/**
 * aclrtLaunchHostFunc:
 * @fn: as in aclrtLaunchCallback, but called in a thread of the library. What follows on @stream
 *   waits for its return.
 * @args: passed on; may be null.
 *
 * Returns: 0; 107000: @fn is null; 107011: @stream has a subscriber.
 * Time: queued. Since: 8.5.
 */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/**
 * aclrtSubscribeReport:
 * @threadId: a thread, as pthread_self names it, that calls aclrtProcessReport in a loop: the
 *   callbacks of @stream run in it. One stream, one thread.
 *
 * Returns: 0; 107011: @stream has a subscriber.
 */
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/**
 * aclrtUnSubscribeReport:
 * @threadId: as subscribed.
 * @stream: as subscribed.
 *
 * Context: needed.
 * Returns: 0; 107011 or 107012: it is not subscribed.
 */
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/**
 * aclrtProcessReport:
 * @timeout: in ms, from 1; -1 waits for ever.
 *
 * Runs the next callback of the streams that the calling thread subscribes to.
 *
 * Returns: 0: one was run; 100000: @timeout is 0 or below -1; 107012: the thread subscribes to no
 *   stream; 107019 or 507012: none came in time.
 * Time: waits.
 */
aclError aclrtProcessReport(int32_t timeout);

/* --- values --------------------------------------------------------------------------------- */

/**
 * aclrtValueWrite:
 * @devAddr: device memory, aligned to 8 bytes.
 * @value: written there, all 64 bits at once, when its turn on @stream comes.
 * @flag: 0.
 *
 * Returns: 0; 100000: @devAddr is null; 107000: @flag is not 0, or @devAddr is no device memory.
 * Time: queued. Since: 8.5.
 */
aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);

/**
 * aclrtValueWait:
 * @devAddr: device memory, aligned to 8 bytes.
 * @value: compared with the 64 bits there.
 * @flag: ACL_STREAM_WAIT_VALUE_*: the condition, until which what follows on @stream waits.
 *
 * Returns: 0; 100000: @devAddr is null; 107000: another @flag, or @devAddr is no device memory.
 * Time: queued. Since: 8.5.
 */
aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);

NPUSIM_ACL_END

#endif
