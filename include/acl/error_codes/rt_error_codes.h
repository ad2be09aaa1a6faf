/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's error codes: 107xxx the caller's mistake, 207xxx a lack (of memory, of support),
 * 507xxx a failure below. Names and values are CANN's. What a function answers stands with it.
 */
#ifndef __INC_EXTERNEL_RT_ERROR_CODES_H__
#define __INC_EXTERNEL_RT_ERROR_CODES_H__

#define ACL_RT_SUCCESS 0 /* done */

#define ACL_ERROR_RT_PARAM_INVALID               107000 /* an argument is out of its range */
#define ACL_ERROR_RT_INVALID_DEVICEID            107001 /* no device has this id */
#define ACL_ERROR_RT_CONTEXT_NULL                107002 /* the thread has no current context */
#define ACL_ERROR_RT_STREAM_CONTEXT              107003 /* the stream belongs to another context */
#define ACL_ERROR_RT_MODEL_CONTEXT               107004 /* the model belongs to another context */
#define ACL_ERROR_RT_STREAM_MODEL                107005 /* the stream is not bound to the model */
#define ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID     107006 /* the event has no time stamp */
#define ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL    107007 /* the end lies before the start */
#define ACL_ERROR_RT_ADDR_UNALIGNED              107008 /* an address is not aligned */
#define ACL_ERROR_RT_FILE_OPEN                   107009 /* a file cannot be opened */
#define ACL_ERROR_RT_FILE_WRITE                  107010 /* a file cannot be written */
#define ACL_ERROR_RT_STREAM_SUBSCRIBE            107011 /* subscribed already, or not at all */
#define ACL_ERROR_RT_THREAD_SUBSCRIBE            107012 /* the thread subscribes to no stream */
#define ACL_ERROR_RT_GROUP_NOT_SET               107013 /* no group is chosen */
#define ACL_ERROR_RT_GROUP_NOT_CREATE            107014 /* the group does not exist */
#define ACL_ERROR_RT_STREAM_NO_CB_REG            107015 /* the stream has no callback */
#define ACL_ERROR_RT_INVALID_MEMORY_TYPE         107016 /* no such kind of memory */
#define ACL_ERROR_RT_INVALID_HANDLE              107017 /* stale, foreign or made-up handle */
#define ACL_ERROR_RT_INVALID_MALLOC_TYPE         107018 /* no such kind of allocation */
#define ACL_ERROR_RT_WAIT_TIMEOUT                107019 /* the wait timed out */
#define ACL_ERROR_RT_TASK_TIMEOUT                107020 /* a task timed out */
#define ACL_ERROR_RT_SYSPARAMOPT_NOT_SET         107021 /* the option has no value */
#define ACL_ERROR_RT_DEVICE_TASK_ABORT           107022 /* the tasks of the device are aborted */
#define ACL_ERROR_RT_STREAM_ABORT                107023 /* the stream is being aborted */
#define ACL_ERROR_RT_CAPTURE_DEPENDENCY          107024 /* a dependency cannot be captured */
#define ACL_ERROR_RT_STREAM_UNJOINED             107025 /* a captured stream was not joined */
#define ACL_ERROR_RT_MODEL_CAPTURED              107026 /* the model is being captured */
#define ACL_ERROR_RT_STREAM_CAPTURED             107027 /* the stream is being captured */
#define ACL_ERROR_RT_EVENT_CAPTURED              107028 /* the event is being captured */
#define ACL_ERROR_RT_STREAM_NOT_CAPTURED         107029 /* the stream is not being captured */
#define ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT    107030 /* not allowed in this capture mode */
#define ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT     107031 /* the default stream would depend on it */
#define ACL_ERROR_STREAM_CAPTURE_CONFLICT        107032 /* two dependent captures */
#define ACL_ERROR_STREAM_TASK_GROUP_STATUS       107033 /* the task group is in the wrong state */
#define ACL_ERROR_STREAM_TASK_GROUP_INTR         107034 /* the task group was interrupted */
#define ACL_ERROR_RT_TASK_ABORT_STOP             107035 /* aborting stopped half-way */
#define ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED    107036 /* it began on another stream */
#define ACL_ERROR_RT_MODEL_RUNNING               107037 /* the model still runs */
#define ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD 107038 /* it began in another thread */
#define ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY    107039 /* the array given is too short */
#define ACL_ERROR_RT_MODEL_UPDATE_FAILED         107040 /* the model could not be updated */
#define ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC    107041 /* the call would block a capture */
#define ACL_ERROR_RT_SYMBOL_NOT_FOUND            107042 /* no such symbol */
#define ACL_ERROR_RT_INVALID_SYMBOL              107043 /* not a device symbol */
#define ACL_ERROR_RT_INVALID_DEVICE_FUNCTION     107044 /* not a device function */
#define ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING   107045 /* a nested graph is being captured */

#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT           207000 /* not supported here */
#define ACL_ERROR_RT_MEMORY_ALLOCATION             207001 /* out of memory or of address space */
#define ACL_ERROR_RT_MEMORY_FREE                   207002 /* memory could not be freed */
#define ACL_ERROR_RT_AICORE_OVER_FLOW              207003 /* overflow in a cube core */
#define ACL_ERROR_RT_NO_DEVICE                     207004 /* there is no device */
#define ACL_ERROR_RT_RESOURCE_ALLOC_FAIL           207005 /* a resource could not be had */
#define ACL_ERROR_RT_NO_PERMISSION                 207006 /* not permitted */
#define ACL_ERROR_RT_NO_EVENT_RESOURCE             207007 /* out of events */
#define ACL_ERROR_RT_NO_STREAM_RESOURCE            207008 /* out of streams */
#define ACL_ERROR_RT_NO_NOTIFY_RESOURCE            207009 /* out of notifies */
#define ACL_ERROR_RT_NO_MODEL_RESOURCE             207010 /* out of models */
#define ACL_ERROR_RT_NO_CDQ_RESOURCE               207011 /* out of device queues */
#define ACL_ERROR_RT_OVER_LIMIT                    207012 /* over a limit */
#define ACL_ERROR_RT_QUEUE_EMPTY                   207013 /* the queue is empty */
#define ACL_ERROR_RT_QUEUE_FULL                    207014 /* the queue is full */
#define ACL_ERROR_RT_REPEATED_INIT                 207015 /* initialised already */
#define ACL_ERROR_RT_AIVEC_OVER_FLOW               207016 /* overflow in a vector core */
#define ACL_ERROR_RT_OVER_FLOW                     207017 /* overflow */
#define ACL_ERROR_RT_DEVICE_OOM                    207018 /* a task ran out of device memory */
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP 207019 /* this operator cannot be updated */
#define ACL_ERROR_RT_TIMEOUT                       207020 /* the driver timed out */
#define ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED       207021 /* no link of this type */

#define ACL_ERROR_RT_INTERNAL_ERROR                  507000 /* internal */
#define ACL_ERROR_RT_TS_ERROR                        507001 /* the task scheduler failed */
#define ACL_ERROR_RT_STREAM_TASK_FULL                507002 /* the stream is full */
#define ACL_ERROR_RT_STREAM_TASK_EMPTY               507003 /* the stream is empty */
#define ACL_ERROR_RT_STREAM_NOT_COMPLETE             507004 /* the stream has work left */
#define ACL_ERROR_RT_END_OF_SEQUENCE                 507005 /* the sequence is at its end */
#define ACL_ERROR_RT_EVENT_NOT_COMPLETE              507006 /* the event has not happened */
#define ACL_ERROR_RT_CONTEXT_RELEASE_ERROR           507007 /* the context or device is not held */
#define ACL_ERROR_RT_SOC_VERSION                     507008 /* unknown SoC */
#define ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT           507009 /* no such task type */
#define ACL_ERROR_RT_LOST_HEARTBEAT                  507010 /* the task scheduler is silent */
#define ACL_ERROR_RT_MODEL_EXECUTE                   507011 /* a model failed */
#define ACL_ERROR_RT_REPORT_TIMEOUT                  507012 /* no report in time */
#define ACL_ERROR_RT_SYS_DMA                         507013 /* a DMA engine failed */
#define ACL_ERROR_RT_AICORE_TIMEOUT                  507014 /* a cube core timed out */
#define ACL_ERROR_RT_AICORE_EXCEPTION                507015 /* exception in a cube core */
#define ACL_ERROR_RT_AICORE_TRAP_EXCEPTION           507016 /* trap in a cube core */
#define ACL_ERROR_RT_AICPU_TIMEOUT                   507017 /* an AI CPU timed out */
#define ACL_ERROR_RT_AICPU_EXCEPTION                 507018 /* exception in an AI CPU */
#define ACL_ERROR_RT_AICPU_DATADUMP_RSP_ERR          507019 /* an AI CPU refused a data dump */
#define ACL_ERROR_RT_AICPU_MODEL_RSP_ERR             507020 /* an AI CPU refused a model */
#define ACL_ERROR_RT_PROFILING_ERROR                 507021 /* profiling failed */
#define ACL_ERROR_RT_IPC_ERROR                       507022 /* sharing between processes failed */
#define ACL_ERROR_RT_MODEL_ABORT_NORMAL              507023 /* the model ended itself */
#define ACL_ERROR_RT_KERNEL_UNREGISTERING            507024 /* the kernel is being removed */
#define ACL_ERROR_RT_RINGBUFFER_NOT_INIT             507025 /* the ring buffer is not set up */
#define ACL_ERROR_RT_RINGBUFFER_NO_DATA              507026 /* the ring buffer is empty */
#define ACL_ERROR_RT_KERNEL_LOOKUP                   507027 /* no such kernel */
#define ACL_ERROR_RT_KERNEL_DUPLICATE                507028 /* the kernel exists already */
#define ACL_ERROR_RT_DEBUG_REGISTER_FAIL             507029 /* debugging could not be switched on */
#define ACL_ERROR_RT_DEBUG_UNREGISTER_FAIL           507030 /* debugging cannot be switched off */
#define ACL_ERROR_RT_LABEL_CONTEXT                   507031 /* a label of another context */
#define ACL_ERROR_RT_PROGRAM_USE_OUT                 507032 /* out of program slots */
#define ACL_ERROR_RT_DEV_SETUP_ERROR                 507033 /* the device could not be set up */
#define ACL_ERROR_RT_VECTOR_CORE_TIMEOUT             507034 /* a vector core timed out */
#define ACL_ERROR_RT_VECTOR_CORE_EXCEPTION           507035 /* exception in a vector core */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION      507036 /* trap in a vector core */
#define ACL_ERROR_RT_CDQ_BATCH_ABNORMAL              507037 /* a batch of a device queue failed */
#define ACL_ERROR_RT_DIE_MODE_CHANGE_ERROR           507038 /* the die mode cannot change now */
#define ACL_ERROR_RT_DIE_SET_ERROR                   507039 /* no die can be chosen in this mode */
#define ACL_ERROR_RT_INVALID_DIEID                   507040 /* no such die */
#define ACL_ERROR_RT_DIE_MODE_NOT_SET                507041 /* no die mode is set */
#define ACL_ERROR_RT_AICORE_TRAP_READ_OVERFLOW       507042 /* a read out of bounds */
#define ACL_ERROR_RT_AICORE_TRAP_WRITE_OVERFLOW      507043 /* a write out of bounds */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_READ_OVERFLOW  507044 /* a read out of bounds */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW 507045 /* a write out of bounds */
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT             507046 /* the stream was not done in time */
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT              507047 /* the event did not happen in time */
#define ACL_ERROR_RT_FFTS_PLUS_TIMEOUT               507048 /* an FFTS+ task timed out */
#define ACL_ERROR_RT_FFTS_PLUS_EXCEPTION             507049 /* exception in an FFTS+ task */
#define ACL_ERROR_RT_FFTS_PLUS_TRAP_EXCEPTION        507050 /* trap in an FFTS+ task */
#define ACL_ERROR_RT_SEND_MSG                        507051 /* the device got no message */
#define ACL_ERROR_RT_COPY_DATA                       507052 /* data could not be copied */
#define ACL_ERROR_RT_DEVICE_MEM_ERROR                507053 /* device memory error */
#define ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR         507054 /* HBM error that ECC could not mend */
#define ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR        507055 /* perhaps a device memory error */
#define ACL_ERROR_RT_LINK_ERROR                      507056 /* a link failed */
#define ACL_ERROR_RT_SUSPECT_REMOTE_ERROR            507057 /* perhaps an error of the other side */
#define ACL_ERROR_RT_DRV_INTERNAL_ERROR              507899 /* the driver refused or failed */
#define ACL_ERROR_RT_AICPU_INTERNAL_ERROR            507900 /* an AI CPU failed */
#define ACL_ERROR_RT_SOCKET_CLOSE                    507901 /* the device channel is closed */
#define ACL_ERROR_RT_AICPU_INFO_LOAD_RSP_ERR         507902 /* an AI CPU refused to load */
#define ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED      507903 /* the capture became invalid */
#define ACL_ERROR_RT_COMM_OP_RETRY_FAIL              507904 /* a collective failed again */
#define ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT              507905 /* the process was not locked in time */
#define ACL_ERROR_SNAPSHOT_LOCK_FAILED               507906 /* the process could not be locked */
#define ACL_ERROR_SNAPSHOT_UNLOCK_FAILED             507907 /* the process could not be unlocked */
#define ACL_ERROR_SNAPSHOT_BACKUP_FAILED             507908 /* the snapshot could not be saved */
#define ACL_ERROR_SNAPSHOT_RESTORE_FAILED            507909 /* the snapshot could not be restored */
#define ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED     507910 /* the host range is registered */
#define ACL_ERROR_HOST_MEMORY_NOT_REGISTERED         507911 /* the host address is not registered */
#define ACL_ERROR_SNAPSHOT_CALLBACK_FAILED           507912 /* a snapshot callback failed */
#define ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED  507913 /* no snapshot callback can be added */
#define ACL_ERROR_RT_L3_PORT_ERROR                   507914 /* a port of the L3 switch failed */
#define ACL_ERROR_RT_CCU_TIMEOUT                     507915 /* a collective unit timed out */
#define ACL_ERROR_RT_CCU_EXCEPTION                   507916 /* exception in a collective unit */

#endif
