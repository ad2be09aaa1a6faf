/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that must be there for others to load, with nothing behind them: what CANN's runtime links
 * strongly (the channel to the device's daemons, report queues of older chips, physical addresses),
 * and what memfabric looks up and does not call on drivers that have the virtual memory functions.
 * Each says what it is when it is called, once, and refuses.
 */
#include "hal-export.h"

#include <stdatomic.h>

#include "base/base.h"

struct DMA_ADDR;
struct capability_group_info;
struct drvHdcCapacity;
struct drvHdcEvent;
struct drvHdcMsg;
struct drvNotifyInfo;
struct halReportGetInput;
struct halReportGetOutput;
struct halReportInfoInput;
struct halReportInfoOutput;
struct halReportReleaseInfo;
struct halSqMemGetInput;
struct halSqMemGetOutput;
struct halSqMsgInfo;

static void refuse(atomic_bool *said, const char *name, const char *what)
{
	npu_message_set("%s: %s is not modelled", name, what);
	if (!atomic_exchange(said, true))
		npu_log(NPU_LOG_DEBUG, "%s: %s is not modelled", name, what);
}

/* X(result, answer, name, (parameters)), in groups of one `what`. */
#define HAL_ABSENT(ret, answer, name, params, what) \
	HAL_EXPORT ret name params;                 \
	ret name params                             \
	{                                           \
		static atomic_bool said;            \
                                                    \
		refuse(&said, #name, what);         \
		return answer;                      \
	}
#define REFUSED(name, params, what) \
	HAL_ABSENT(drvError_t, DRV_ERROR_NOT_SUPPORT, name, params, what)

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- the channel between host and device ---- */

#define HDC "the channel to daemons of the device"
REFUSED(drvHdcAddMsgBuffer, (struct drvHdcMsg * msg, char *buffer, int length), HDC)
REFUSED(drvHdcAllocMsg, (void *session, struct drvHdcMsg **msg, int count), HDC)
REFUSED(drvHdcClientCreate, (void **client, int max_sessions, int service, int flag), HDC)
REFUSED(drvHdcClientDestroy, (void *client), HDC)
REFUSED(drvHdcEpollClose, (void *epoll), HDC)
REFUSED(drvHdcEpollCreate, (int size, void **epoll), HDC)
REFUSED(drvHdcEpollCtl, (void *epoll, int op, void *target, struct drvHdcEvent *event), HDC)
REFUSED(drvHdcEpollWait,
	(void *epoll, struct drvHdcEvent *events, int max, int timeout, int *count), HDC)
REFUSED(drvHdcFreeMsg, (struct drvHdcMsg * msg), HDC)
REFUSED(drvHdcGetCapacity, (struct drvHdcCapacity * capacity), HDC)
REFUSED(drvHdcGetMsgBuffer, (struct drvHdcMsg * msg, int index, char **buffer, int *length), HDC)
REFUSED(drvHdcReuseMsg, (struct drvHdcMsg * msg), HDC)
REFUSED(drvHdcServerCreate, (int dev, int service, void **server), HDC)
REFUSED(drvHdcServerDestroy, (void *server), HDC)
REFUSED(drvHdcSessionAccept, (void *server, void **session), HDC)
REFUSED(drvHdcSessionClose, (void *session), HDC)
REFUSED(drvHdcSessionConnect, (int node, int dev, void *client, void **session), HDC)
REFUSED(drvHdcSetSessionReference, (void *session), HDC)
REFUSED(halHdcGetSessionAttr, (void *session, int attr, int *value), HDC)
REFUSED(halHdcRecv,
	(void *session, struct drvHdcMsg *msg, int room, uint64_t flag, int *received,
	 uint32_t timeout),
	HDC)
REFUSED(halHdcSend, (void *session, struct drvHdcMsg *msg, uint64_t flag, uint32_t timeout), HDC)
REFUSED(halHdcSessionConnectEx, (int node, int dev, int pid, void *client, void **session), HDC)

/* ---- queues of older chips, shared submission memory ---- */

#define REPORTS "a report queue that the host maps"
REFUSED(halCqReportGet,
	(uint32_t dev, struct halReportGetInput *in, struct halReportGetOutput *out), REPORTS)
REFUSED(halCqReportIrqWait,
	(uint32_t dev, struct halReportInfoInput *in, struct halReportInfoOutput *out), REPORTS)
REFUSED(halReportRelease, (uint32_t dev, struct halReportReleaseInfo *info), REPORTS)
REFUSED(halSqMemGet, (uint32_t dev, struct halSqMemGetInput *in, struct halSqMemGetOutput *out),
	REPORTS)
REFUSED(halSqMsgSend, (uint32_t dev, struct halSqMsgInfo *info), REPORTS)
REFUSED(halGetCapabilityGroupInfo,
	(int dev, int ts, int group, struct capability_group_info *info, int count),
	"dividing a device into groups")

/* ---- physical addresses and registers ---- */

#define PHYSICAL "a physical address that a program may use"
REFUSED(drvMemAddressTranslate, (DVdeviceptr va, uint64_t *out), PHYSICAL)
REFUSED(drvMemConvertAddr,
	(DVdeviceptr src, DVdeviceptr dst, uint32_t length, struct DMA_ADDR *out), PHYSICAL)
REFUSED(drvMemDestroyAddr, (struct DMA_ADDR * address), PHYSICAL)
REFUSED(drvNotifyIdAddrOffset, (uint32_t dev, struct drvNotifyInfo *info), "a notify's register")

HAL_EXPORT void drvDfxShowReport(uint32_t dev);
HAL_EXPORT void drvFlushCache(uint64_t base, uint32_t length);

/* Nothing to show, and no cache of the host that a device does not see. */
void drvDfxShowReport(uint32_t dev)
{
}

void drvFlushCache(uint64_t base, uint32_t length)
{
}

/* ---- the vendor's private functions that memfabric looks up ---- */

#define PRIVATE               "a private table of the vendor's driver"
#define PRIVATE_POINTER(name) HAL_ABSENT(void *, NULL, name, (void), PRIVATE)
#define PRIVATE_CODE(name)    REFUSED(name, (void), PRIVATE)
PRIVATE_POINTER(devmm_get_heap_list_by_type)
PRIVATE_POINTER(devmm_va_to_heap)
PRIVATE_POINTER(devmm_virt_alloc_mem_from_base)
PRIVATE_POINTER(devmm_virt_get_heap_from_queue)
PRIVATE_POINTER(devmm_virt_get_heap_mgmt)
PRIVATE_CODE(devmm_ioctl_enable_heap)
PRIVATE_CODE(devmm_ioctl_free_pages)
PRIVATE_CODE(devmm_va_to_heap_idx)
PRIVATE_CODE(devmm_virt_destroy_heap)
PRIVATE_CODE(devmm_virt_normal_heap_update_info)
PRIVATE_CODE(devmm_virt_set_heap_idle)
PRIVATE_CODE(svm_module_alloced_size_inc)

HAL_EXPORT extern int g_devmm_mem_dev;
int g_devmm_mem_dev = -1; /* a file descriptor: none */
