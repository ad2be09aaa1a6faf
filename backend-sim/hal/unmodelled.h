/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that must exist for other libraries to load, with nothing behind them: what CANN's runtime
 * links strongly (the channel to the device's daemons), and what memfabric looks up but does not
 * call on drivers that have the virtual memory functions. A file that includes this defines
 * UNMODELLED(result type, answer, name, what it is); no function uses its arguments.
 */
#ifndef UNMODELLED
#define UNMODELLED(result, answer, name, what)
#endif
#define REFUSED(name, what) UNMODELLED(int, DRV_ERROR_NOT_SUPPORT, name, what)

/* ---- the channel between host and device ---- */

#define HDC "the channel to daemons of the device"
REFUSED(drvHdcAddMsgBuffer, HDC)
REFUSED(drvHdcAllocMsg, HDC)
REFUSED(drvHdcClientCreate, HDC)
REFUSED(drvHdcClientDestroy, HDC)
REFUSED(drvHdcEpollClose, HDC)
REFUSED(drvHdcEpollCreate, HDC)
REFUSED(drvHdcEpollCtl, HDC)
REFUSED(drvHdcEpollWait, HDC)
REFUSED(drvHdcFreeMsg, HDC)
REFUSED(drvHdcGetCapacity, HDC)
REFUSED(drvHdcGetMsgBuffer, HDC)
REFUSED(drvHdcReuseMsg, HDC)
REFUSED(drvHdcServerCreate, HDC)
REFUSED(drvHdcServerDestroy, HDC)
REFUSED(drvHdcSessionAccept, HDC)
REFUSED(drvHdcSessionClose, HDC)
REFUSED(drvHdcSessionConnect, HDC)
REFUSED(drvHdcSetSessionReference, HDC)
REFUSED(halHdcGetSessionAttr, HDC)
REFUSED(halHdcRecv, HDC)
REFUSED(halHdcSend, HDC)
REFUSED(halHdcSessionConnectEx, HDC)

/* ---- what nobody asks for on a 910B ---- */

REFUSED(halGetCapabilityGroupInfo, "dividing a device into groups")
REFUSED(drvMemConvertAddr, "a descriptor of a plain copy, which entries do without")

/* ---- the vendor's private functions that memfabric looks up ---- */

#define PRIVATE "a private table of the vendor's driver"
UNMODELLED(void *, NULL, devmm_get_heap_list_by_type, PRIVATE)
UNMODELLED(void *, NULL, devmm_va_to_heap, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_alloc_mem_from_base, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_get_heap_from_queue, PRIVATE)
UNMODELLED(void *, NULL, devmm_virt_get_heap_mgmt, PRIVATE)
REFUSED(devmm_ioctl_enable_heap, PRIVATE)
REFUSED(devmm_ioctl_free_pages, PRIVATE)
REFUSED(devmm_va_to_heap_idx, PRIVATE)
REFUSED(devmm_virt_destroy_heap, PRIVATE)
REFUSED(devmm_virt_normal_heap_update_info, PRIVATE)
REFUSED(devmm_virt_set_heap_idle, PRIVATE)
REFUSED(svm_module_alloced_size_inc, PRIVATE)

#undef UNMODELLED
#undef REFUSED
#undef HDC
#undef PRIVATE
