/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions: one entry each, and above it what the function must do. Everything that a
 * program can observe crosses this list. It is append-only: a member's place is the ABI.
 *
 *   NPU_CALL(name, (type, parameter)...)                a call of the driver
 *   NPU_QUERY(name, (type, parameter)...)               npusim's own question: it changes nothing,
 *                                                       and is neither recorded nor made to fail
 *   NPU_OP(result, missing, name, (type, parameter)...) the few with another result
 *
 * Calls and queries answer a drvError_t, and DRV_ERROR_NOT_SUPPORT where a driver lacks them;
 * `missing` is what the few others answer then. Who includes this file defines NPU_OP, and NPU_CALL
 * and NPU_QUERY where they differ from it; the three are gone afterwards. NPU_PARAMS and NPU_ARGS
 * of driver.h make parameter and argument lists of the pairs.
 *
 * What holds for all: `dev` is the driver's own number of a device, from 0 (INVALID_DEVICE: there
 * is none such). Sizes, offsets and counts of memory are bytes. A pointer that is needed and NULL
 * is INVALID_VALUE. Outputs are written on success only, except where it says otherwise. Any thread
 * may call, and every call may advance simulated time. Codes below stand without their DRV_ERROR_.
 */
#ifndef NPU_OP
#define NPU_OP(result, missing, name, ...)
#endif
#ifndef NPU_CALL
#define NPU_CALL(name, ...) \
	NPU_OP(drvError_t, DRV_ERROR_NOT_SUPPORT, name __VA_OPT__(, ) __VA_ARGS__)
#endif
#ifndef NPU_QUERY
#define NPU_QUERY(name, ...) NPU_CALL(name __VA_OPT__(, ) __VA_ARGS__)
#endif

/* ---- devices ---- */

/* *info: 1, the caller runs on the host of the devices; 0: on a device. */
NPU_CALL(drvGetPlatformInfo, (uint32_t *, info))

/* How many devices the server has: they are 0 to *num_dev - 1. */
NPU_CALL(drvGetDevNum, (uint32_t *, num_dev))

/* The numbers of the first `len` devices, in devices[len]. */
NPU_CALL(drvGetDevIDs, (uint32_t *, devices), (uint32_t, len))

/* One property of a device: module is a MODULE_TYPE_*, info an INFO_TYPE_*. NOT_SUPPORT: the device
 * has no such property. */
NPU_CALL(halGetDeviceInfo, (uint32_t, dev), (int32_t, module), (int32_t, info), (int64_t *, value))

/* What lies between two devices: info 0 asks for a TOPOLOGY_*. */
NPU_CALL(halGetPairDevicesInfo, (uint32_t, dev), (uint32_t, other), (int32_t, info),
	 (int64_t *, value))

/* The SoC's name, such as "Ascend910_9382", in soc_version[len]; INVALID_VALUE: it is longer. */
NPU_CALL(halGetSocVersion, (uint32_t, dev), (char *, soc_version), (uint32_t, len))

/* Version of the interface: major << 16 | minor << 8 | patch. The layouts of hal.h are those of 7.
 */
NPU_CALL(halGetAPIVersion, (int *, version))

/* Whether the driver has a FEATURE_*. */
NPU_OP(bool, false, halSupportFeature, (uint32_t, dev), (int, feature))

/* What the device's engines can do, asked once after it is opened. */
NPU_CALL(halGetChipCapability, (uint32_t, dev), (struct halCapabilityInfo *, info))

/* Opens the device for this process: the first call that memory, copies and queues need. The window
 * of addresses comes with the first device. *out is cleared. Opening twice is no error. */
NPU_CALL(halDeviceOpen, (uint32_t, dev), (halDevOpenIn *, in), (halDevOpenOut *, out))

/* Ends what the process has on the device: mappings, handles, allocations, queues. */
NPU_CALL(halDeviceClose, (uint32_t, dev), (halDevCloseIn *, in))

/* The stream id of the device's SMMU for this process; 0 on a 910B. */
NPU_CALL(drvMemSmmuQuery, (DVdevice, dev), (uint32_t *, ssid))

/* The process id as whitelists of shared memory know it: outside of any container. */
NPU_OP(pid_t, -1, drvDeviceGetBareTgid)

/* Physical number to the driver's, and back. */
NPU_CALL(drvDeviceGetIndexByPhyId, (uint32_t, phy), (uint32_t *, index))
NPU_CALL(drvDeviceGetPhyIdByIndex, (uint32_t, index), (uint32_t *, phy))

/* Which engine copies between two device addresses: *way 0: SDMA, 1: PCIe DMA. */
NPU_CALL(drvDeviceGetTransWay, (void *, src), (void *, dst), (uint8_t *, way))

/* *can: 1, the devices can be given access to each other's memory; else 0. */
NPU_CALL(halDeviceCanAccessPeer, (int *, can), (uint32_t, dev), (uint32_t, peer))

/* Lets `dev` reach the memory of `peer`, which halMemSetAccess and imports need; takes it back.
 * flag is 0. One direction alone. */
NPU_CALL(halDeviceEnableP2P, (uint32_t, dev), (uint32_t, peer), (uint32_t, flag))
NPU_CALL(halDeviceDisableP2P, (uint32_t, dev), (uint32_t, peer), (uint32_t, flag))

/* *status: 1, enabled from dev to peer; else 0. */
NPU_CALL(drvGetP2PStatus, (uint32_t, dev), (uint32_t, peer), (uint32_t *, status))

/* The number that stands for the host where a device's number may (65). */
NPU_CALL(halGetHostID, (uint32_t *, host_id))

/* ---- virtual memory ---- */

/* Reserves a range of addresses. size is rounded up to 2 MiB, from 512 MiB on to 1 GiB; alignment
 * is 0; addr is NULL, or the start that is wanted: a multiple of the range's own alignment. Bits
 * 0-7 of flag are a page type and change nothing; MEM_RSV_TYPE_REMOTE_MAP asks for a range outside
 * the window. INVALID_VALUE: an argument breaks these rules; BUSY: addr is taken; OUT_OF_MEMORY:
 * more than 128 GiB, or no room left; INVALID_HANDLE: no device is open. *ptr may be written on
 * failure. */
NPU_CALL(halMemAddressReserve, (void **, ptr), (size_t, size), (size_t, alignment), (void *, addr),
	 (uint64_t, flag))

/* Gives a reservation back: ptr is its start (else INVALID_VALUE), nothing in it is mapped (else
 * BUSY, and it stays). */
NPU_CALL(halMemAddressFree, (void *, ptr))

/* Makes physical memory of `size` bytes, a multiple of the granularity (giant pages: rounded up),
 * on the side, device and pages that *prop names; flag is 0. One reference. PARA_ERROR: size is no
 * multiple, or the device is not open; OUT_OF_MEMORY: the device has no such pages left;
 * NOT_SUPPORT: not on that side. */
NPU_CALL(halMemCreate, (drv_mem_handle_t **, handle), (size_t, size),
	 (const struct drv_mem_prop *, prop), (uint64_t, flag))

/* One reference less. The pages are free when references and mappings are gone: a release while it
 * is mapped succeeds. INVALID_VALUE: no such handle, or more releases than references. */
NPU_CALL(halMemRelease, (drv_mem_handle_t *, handle))

/* The handle that is mapped at ptr, which is the mapping's start (else NOT_EXIST), with one more
 * reference. INVALID_HANDLE: nothing was ever mapped in that reservation. */
NPU_CALL(halMemRetainAllocationHandle, (drv_mem_handle_t **, handle), (void *, ptr))

/* Maps the first `size` bytes of the handle at ptr; both multiples of the page; offset and flag are
 * 0. The handle's own device (of an import: the importing one) may read and write at once, no other
 * may. INVALID_VALUE: an argument; PARA_ERROR: not inside of one reservation, or one that another
 * device's memory was mapped in first; IOCRL_FAIL: something is mapped there; OUT_OF_MEMORY: size
 * is more than the handle has. A failure changes nothing. */
NPU_CALL(halMemMap, (void *, ptr), (size_t, size), (size_t, offset), (drv_mem_handle_t *, handle),
	 (uint64_t, flag))

/* As halMemMap, but nobody may read or write before halMemSetAccess. */
NPU_CALL(halMemMapNoAccess, (void *, ptr), (size_t, size), (size_t, offset),
	 (drv_mem_handle_t *, handle), (uint64_t, flag))

/* Takes away the whole mapping that starts at ptr (else PARA_ERROR), with all accesses. */
NPU_CALL(halMemUnmap, (void *, ptr))

/* Lets each of desc[count] reach the mapping that is exactly ptr and size (else PARA_ERROR). Type
 * is MEM_ACCESS_TYPE_READWRITE (else NOT_SUPPORT); the place a device, which needs P2P, or the
 * host. What has access already: no error. BUSY: it has another. Not transactional: what came
 * before the one that failed stays. */
NPU_CALL(halMemSetAccess, (void *, ptr), (size_t, size), (struct drv_mem_access_desc *, desc),
	 (size_t, count))

/* *flags: the MEM_ACCESS_TYPE_* that a place has to the mapping around ptr, 0 without access.
 * PARA_ERROR: nothing is mapped there. */
NPU_CALL(halMemGetAccess, (void *, ptr), (struct drv_mem_location *, location), (uint64_t *, flags))

/* *granularity: what sizes of such memory must be multiples of: 1 GiB for giant pages, else 2 MiB.
 * Both options are alike. */
NPU_CALL(halMemGetAllocationGranularity, (const struct drv_mem_prop *, prop),
	 (drv_mem_granularity_options, option), (size_t *, granularity))

/* *prop as it was given to halMemCreate. */
NPU_CALL(halMemGetAllocationPropertiesFromHandle, (struct drv_mem_prop *, prop),
	 (drv_mem_handle_t *, handle))

/* Start and size of the mapping or allocation around ptr; either output may be NULL.
 * INVALID_VALUE: there is none. */
NPU_CALL(halMemGetAddressRange, (DVdeviceptr, ptr), (DVdeviceptr *, base), (size_t *, size))

/* ---- sharing ---- */

/* Makes the handle known to other processes of the server, under a number: once (else PARA_ERROR),
 * and not of an import. type is NONE, flags 0 (else NOT_SUPPORT). */
NPU_CALL(halMemExportToShareableHandle, (drv_mem_handle_t *, handle), (drv_mem_handle_type, type),
	 (uint64_t, flags), (uint64_t *, shareable))

/* The same in 128 bytes that can be sent; type FABRIC is understood on other servers too. */
NPU_CALL(halMemExportToShareableHandleV2, (drv_mem_handle_t *, handle), (drv_mem_handle_type, type),
	 (uint64_t, flags), (struct MemShareHandle *, shareable))

/* A handle of what another process exported, for mappings of `dev`. A second import on the device
 * is the same handle with one more reference. INVALID_HANDLE: no such share; IOCRL_FAIL: this
 * process is not in its whitelist, or exported it on that device; BUSY: its owner has released it.
 */
NPU_CALL(halMemImportFromShareableHandle, (uint64_t, shareable), (uint32_t, dev),
	 (drv_mem_handle_t **, handle))
NPU_CALL(halMemImportFromShareableHandleV2, (drv_mem_handle_type, type),
	 (struct MemShareHandle *, shareable), (uint32_t, dev), (drv_mem_handle_t **, handle))

/* The server and the number that stand in 128 bytes of the exporter's. */
NPU_CALL(halMemTransShareableHandle, (drv_mem_handle_type, type), (struct MemShareHandle *, share),
	 (uint32_t *, server), (uint64_t *, shareable))

/* Adds pid[pid_num] to the share's whitelist, as drvDeviceGetBareTgid answers them. IOCRL_FAIL:
 * this process did not export it; OPER_NOT_PERMITTED: it has no whitelist. */
NPU_CALL(halMemSetPidToShareableHandle, (uint64_t, shareable), (int *, pid), (uint32_t, pid_num))

/* SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER: whether any process of the server may import.
 * OPER_NOT_PERMITTED: there is a whitelist already. */
NPU_CALL(halMemShareHandleSetAttribute, (uint64_t, shareable), (enum ShareHandleAttrType, type),
	 (struct ShareHandleAttr, attr))
NPU_CALL(halMemShareHandleGetAttribute, (uint64_t, shareable), (enum ShareHandleAttrType, type),
	 (struct ShareHandleAttr *, attr))

/* Which device has the memory, by its physical number. */
NPU_CALL(halMemShareHandleInfoGet, (uint64_t, shareable), (struct ShareHandleGetInfo *, info))

/* Classic sharing: gives the allocation around va a name, in name[name_len] (65 bytes with its
 * end); takes the name away from new openers. */
NPU_CALL(halShmemCreateHandle, (DVdeviceptr, va), (size_t, byte_count), (char *, name),
	 (uint32_t, name_len))
NPU_CALL(halShmemDestroyHandle, (const char *, name))

/* *va: the named memory in this process, on the exporter's device or on `dev`; and its end. */
NPU_CALL(halShmemOpenHandle, (const char *, name), (DVdeviceptr *, va))
NPU_CALL(halShmemOpenHandleByDevId, (DVdevice, dev), (const char *, name), (DVdeviceptr *, va))
NPU_CALL(halShmemCloseHandle, (DVdeviceptr, va))

/* The name's whitelist, attributes (SHMEM_ATTR_TYPE_*) and device, as those of a share. */
NPU_CALL(halShmemSetPidHandle, (const char *, name), (int *, pid), (int, num))
NPU_CALL(halShmemSetAttribute, (const char *, name), (uint32_t, type), (uint64_t, attr))
NPU_CALL(halShmemInfoGet, (const char *, name), (struct ShmemGetInfo *, info))

/* ---- classic memory and copies ---- */

/* Memory with an address in one call. flag: device, side, pages, alignment and module, the MEM_*
 * bits of hal.h. OUT_OF_MEMORY: no pages, or no addresses. halMemFree takes its start (else
 * INVALID_VALUE). */
NPU_CALL(halMemAlloc, (void **, pp), (unsigned long long, size), (unsigned long long, flag))
NPU_CALL(halMemFree, (void *, pp))

/* How much memory of a kind (MEM_INFO_TYPE_*) the device has, and has free, in bytes. */
NPU_CALL(halMemGetInfo, (DVdevice, dev), (unsigned int, type), (struct MemInfo *, info))

/* Whose memory an address is: memType (DV_MEM_*), device, page size. NOT_EXIST: nothing is there,
 * inside of the window; INVALID_HANDLE: a reservation in which nothing was mapped. */
NPU_CALL(drvMemGetAttribute, (DVdeviceptr, va), (struct DVattribute *, attr))

/* Questions by number. 2: which of the features in *param the device's memory has, in *out;
 * *out_size, an output alone, is the answer's size. Any may be NOT_SUPPORT. */
NPU_CALL(halMemCtl, (int, type), (void *, param), (size_t, param_size), (void *, out),
	 (size_t *, out_size))

/* Copies `count` bytes and returns when they are there. Addresses of the host or of any device that
 * the process can reach; they say the direction. INVALID_VALUE: count is more than dest_max;
 * IOCRL_FAIL and others: an address that is not mapped. */
NPU_CALL(drvMemcpy, (DVdeviceptr, dst), (size_t, dest_max), (DVdeviceptr, src), (size_t, count))

/* `height` rows of `width` bytes, `spitch` and `dpitch` bytes apart: type DEVMM_MEMCPY2D_SYNC. Or
 * descriptors of them, or of as many rows as fit behind the fixed_size bytes that others copy, for
 * an entry of a queue; and their end: DEVMM_MEMCPY2D_ASYNC_CONVERT and _DESTROY. */
NPU_CALL(halMemcpy2D, (struct MEMCPY2D *, copy))

/* `count` copies in their order: size[i] bytes from src[i] to dst[i]. */
NPU_CALL(halMemcpyBatch, (uint64_t *, dst), (uint64_t *, src), (size_t *, size), (size_t, count))

/* Fills `num` bytes with `value`; dest_max as with drvMemcpy. */
NPU_CALL(drvMemsetD8, (DVdeviceptr, dst), (size_t, dest_max), (uint8_t, value), (size_t, num))

/* Makes `len` bytes at va ready for `dev`: a hint. */
NPU_CALL(drvMemPrefetchToDevice, (DVdeviceptr, va), (size_t, len), (DVdevice, dev))

/* Makes memory of the host at src known to the device, *dst is its address there; flag is a kind of
 * mapping (HOST_MEM_MAP_DEV ...). Unregistering takes the same src; Ex the kind as well. */
NPU_CALL(halHostRegister, (void *, src), (uint64_t, size), (uint32_t, flag), (uint32_t, dev),
	 (void **, dst))
NPU_CALL(halHostUnregister, (void *, src), (uint32_t, dev))
NPU_CALL(halHostUnregisterEx, (void *, src), (uint32_t, dev), (uint32_t, flag))

/* *cap: 1, that unit of the device can reach registered memory. */
NPU_CALL(halHostRegisterCapabilities, (uint32_t, dev), (uint32_t, acc_module), (uint32_t *, cap))

/* ---- queues: ids, submission, completion ---- */

/* An id of a stream, event or notify (in->type, DRV_*_ID), in out->resourceId, and its end.
 * NO_STREAM_RESOURCES, NO_EVENT_RESOURCES, NO_NOTIFY_RESOURCES: all are in use. */
NPU_CALL(halResourceIdAlloc, (uint32_t, dev), (struct halResourceIdInputInfo *, in),
	 (struct halResourceIdOutputInfo *, out))
NPU_CALL(halResourceIdFree, (uint32_t, dev), (struct halResourceIdInputInfo *, in))

/* Changes an id: para->prop is a DRV_* such as DRV_STREAM_BIND_LOGIC_CQ, or DRV_ID_RECORD by which
 * the host records an event. */
NPU_CALL(halResourceConfig, (uint32_t, dev), (struct halResourceIdInputInfo *, in),
	 (struct halResourceConfigInfo *, para))

/* A submission queue with its completion queue (DRV_NORMAL_TYPE), a logic completion queue of which
 * the host reads (DRV_LOGIC_TYPE), or a callback queue (DRV_CALLBACK_TYPE) of the group in->grpId;
 * depths count entries. */
NPU_CALL(halSqCqAllocate, (uint32_t, dev), (struct halSqCqInputInfo *, in),
	 (struct halSqCqOutputInfo *, out))
NPU_CALL(halSqCqFree, (uint32_t, dev), (struct halSqCqFreeInfo *, info))

/* One property (info->prop, DRV_SQCQ_PROP_*), in info->value. The head stands at an entry that
 * failed until DRV_SQCQ_PROP_SQ_STATUS has been asked, which answers 0 once a failure. */
NPU_CALL(halSqCqQuery, (uint32_t, dev), (struct halSqCqQueryInfo *, info))

/* Hands info->sqe_num entries of 64 bytes over, all or none; info->pos is where the first went.
 * They are done in their order, at their simulated time. SQID_FULL: no room within info->timeout
 * ms. */
NPU_CALL(halSqTaskSend, (uint32_t, dev), (struct halTaskSendInfo *, info))

/* Takes up to info->cqe_num completions, waiting for the first up to info->timeout ms of simulated
 * time; info->report_cqe_num is how many came. WAIT_TIMEOUT: none did. */
NPU_CALL(halCqReportRecv, (uint32_t, dev), (struct halReportRecvInfo *, info))

/* ---- npusim's own, answered by the model; a foreign driver has none of them ---- */

/* Time, memory and counters of a device: out->size is set by the caller. */
NPU_QUERY(npusimGetStats, (uint32_t, dev), (struct npu_stats *, out))

/* Simulated time of the process, in ps. */
NPU_QUERY(npusimNow, (uint64_t *, ps))

/* Why the calling thread's last call failed, in words; NULL or "": not known. Until its next call.
 */
NPU_OP(const char *, NULL, npusimLastMessage)

/* Hands line() each line of the report of what is still reserved, mapped and held; full: one line
 * an object, else the sums. */
NPU_QUERY(npusimLeaks, (npu_line_fn, line), (void *, arg), (bool, full))

/* Whose rules count: see enum npu_dialect. Before the first device is opened. */
NPU_QUERY(npusimSetDialect, (enum npu_dialect, dialect))

/* What lies at an address: it costs no simulated time, and fails only on NULL. */
NPU_QUERY(npusimPlace, (uint64_t, va), (struct npu_place *, out))

/* Fills with a pattern of 1, 2 or 4 bytes, `count` times. Errors are drvMemsetD8's. */
NPU_CALL(npusimFill, (DVdeviceptr, dst), (uint32_t, pattern), (unsigned, pattern_bytes),
	 (size_t, count))

/* The code that a copy would answer now; nothing is copied. */
NPU_QUERY(npusimCheckCopy, (DVdeviceptr, dst), (DVdeviceptr, src), (size_t, count))

/* Core `core` of the device (cube cores first, then vector cores) reads `bytes` bytes at each of
 * at[count], one after the other, through the MMU, the caches and the memory; nothing is kept. It
 * returns when they are there, in simulated time. IOCRL_FAIL and a message at the first byte that
 * is not mapped. */
NPU_QUERY(npusimTouch, (uint32_t, dev), (const uint64_t *, at), (size_t, count), (size_t, bytes),
	  (uint32_t, core))

/* Waits until the completion queue `cq` has a report, or is gone, and takes none. It costs no
 * simulated time, nor has it a limit there: WAIT_TIMEOUT once wall_ms have passed in wall time and
 * the model has nothing to do, and *out says what the head of `stream` waits for. */
NPU_QUERY(npusimAwait, (uint32_t, dev), (uint32_t, stream), (uint32_t, cq), (uint32_t, wall_ms),
	  (struct npu_head *, out))

/* Where in the memory of a device the byte at `va` lies, by its page table, and how many bytes from
 * there on lie one after another: *bytes is in and out, and bounds them. It costs no simulated
 * time. IOCRL_FAIL where nothing of that device's memory is mapped. */
NPU_QUERY(npusimPhysical, (uint32_t, dev), (uint64_t, va), (uint64_t *, pa), (uint64_t *, bytes))

/* Told, not asked: what a call of the program establishes without a call of the driver. A layer
 * that follows order listens; a driver has no use for it. */
NPU_QUERY(npusimOrder, (uint32_t, dev), (enum npu_order, what), (uint32_t, id), (uint64_t, value))

/* `call`, a literal, has given back host memory of which the driver did not know: if queued work
 * finds it gone, the message says so. */
NPU_QUERY(npusimGaveBack, (uint64_t, va), (uint64_t, bytes), (const char *, call))

/* A hint: what begins at these addresses is freed soon. The first 64 are looked at. */
NPU_QUERY(npusimFreedSoon, (const uint64_t *, va), (size_t, count))

/* Who says whether the calling thread is in an aclrt function: CANN's documents make rules for
 * these alone, which NPUSIM_CONTRACT=docs applies. NULL, as at first: it never is, and a program's
 * own calls get the driver's answers. The thread's last message stays. */
NPU_QUERY(npusimDocumentedBy, (npu_ask_fn, ask))

/* Told, as npusimOrder: the program has made a block of its own of memory at `va`; bytes 0: it
 * gives the block at `va` back. */
NPU_QUERY(npusimTellBlock, (uint64_t, va), (uint64_t, bytes))

/* For layers, as npusimOrder: the program is at a mark of that name (npusimMark()), and who is
 * called with each report. */
NPU_QUERY(npusimMark, (const char *, name))
NPU_QUERY(npusimReports, (npusim_report_fn, fn), (void *, arg))

/* Which processes hold the memory of a share, or of a name where that is not NULL: the first of
 * them in pids[*count]; *count: how many there are. PARA_ERROR, INVALID_HANDLE: there is no such
 * share or name, or its memory is gone; NOT_EXIST: that, and nobody has ever imported the share. */
NPU_QUERY(npusimHolders, (uint64_t, shareable), (const char *, name), (int *, pids),
	  (uint32_t *, count))

/* Which bytes of a device's memory somebody has written since the memory was made: see struct
 * npu_written. The first call says that this process keeps it. `out` NULL: somebody may write the
 * memory at `va` from now on who does not. */
NPU_QUERY(npusimWritten, (uint64_t, va), (struct npu_written *, out))

/* This process begins to write [va, va + bytes), or, with bytes 0, knows that what has write->mark
 * is done, 0: all. write->pid is who writes there at the same time, 0: nobody. */
NPU_QUERY(npusimWrites, (uint64_t, va), (uint64_t, bytes), (struct npu_write *, write))

/* Takes a super device id apart; nothing of it is checked. INVALID_VALUE: out is NULL. */
NPU_QUERY(halParseSDID, (uint32_t, sdid), (struct halSDIDParseInfo *, out))

/* halShmemSetPidHandle for processes of the server that the device `sdid` is of. NOT_SUPPORT
 * outside of a supernode; INVALID_HANDLE: nobody is there. */
NPU_CALL(halShmemSetPodPid, (const char *, name), (uint32_t, sdid), (int *, pid), (int, num))

/* Nothing of a submission queue begins any more, and of a copy that runs nothing more arrives: it
 * is there to be freed. */
NPU_CALL(npusimStop, (uint32_t, dev), (uint32_t, sq))

/* ---- notifies between processes ---- */

/* Makes a name for the notify info->shrid, which is of this process, in name[name_len], 65 at
 * least. */
NPU_CALL(halShrIdCreate, (struct drvShrIdInfo *, info), (char *, name), (uint32_t, name_len))

/* Ends a name of this process: nobody opens it any more. */
NPU_CALL(halShrIdDestroy, (const char *, name))

/* Who may open a name of this process, one a call: INVALID_VALUE for more, where the documents have
 * a list. Or all may: SHR_ID_ATTR_NO_WLIST_IN_SERVER, SHRID_NO_WLIST_ENABLE. The second of the two
 * is OPER_NOT_PERMITTED. */
NPU_CALL(halShrIdSetPid, (const char *, name), (pid_t *, pid), (uint32_t, pid_num))
NPU_CALL(halShrIdSetAttribute, (const char *, name), (int, type), (struct shrIdAttr, attr))

/* The process uses the notify too, its device open or not, until it closes the name as many times
 * as it has opened it. IOCRL_FAIL: it may not, or 16 use it; PARA_ERROR: no such name. */
NPU_CALL(halShrIdOpen, (const char *, name), (struct drvShrIdInfo *, info))
NPU_CALL(halShrIdClose, (const char *, name))

/* Where the notify's register lies among those of the device. */
NPU_CALL(drvNotifyIdAddrOffset, (uint32_t, dev), (struct drvNotifyInfo *, info))

/* Which device a name's notify is of, by its physical number. */
NPU_CALL(halShrIdInfoGet, (const char *, name), (struct shrIdGetInfo *, info))

/* ---- callback queues: type is DRV_CALLBACK_TYPE ---- */

/* Waits up to in->timeout ms of simulated time for a report in the group in->grpId, takes the
 * oldest and says in out->cqIdBitmap whose it is. WAIT_TIMEOUT: none came. */
NPU_CALL(halCqReportIrqWait, (uint32_t, dev), (struct halReportInfoInput *, in),
	 (struct halReportInfoOutput *, out))

/* The report that was taken, out->count 0 or 1, which stays until it is released; info->count is as
 * much. */
NPU_CALL(halCqReportGet, (uint32_t, dev), (struct halReportGetInput *, in),
	 (struct halReportGetOutput *, out))
NPU_CALL(halReportRelease, (uint32_t, dev), (struct halReportReleaseInfo *, info))

/* Room for a command, of which the queue has one, and its sending. NOT_SUPPORT: it is no
 * STARS_COMMAND_RECORD. */
NPU_CALL(halSqMemGet, (uint32_t, dev), (struct halSqMemGetInput *, in),
	 (struct halSqMemGetOutput *, out))
NPU_CALL(halSqMsgSend, (uint32_t, dev), (struct halSqMsgInfo *, info))

/* Lets a process of another server, that of any of whose devices is sdid, open the name of a
 * notify. IOCRL_FAIL: there is none there, no such name, or no supernode. */
NPU_CALL(halShrIdSetPodPid, (const char *, name), (uint32_t, sdid), (pid_t, pid))

/* The runtime does this by itself in a call of the program: it takes its simulated time. */
NPU_QUERY(npusimSpend, (enum npu_work, work))

#undef NPU_OP
#undef NPU_CALL
#undef NPU_QUERY
