/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory: reserve addresses, allocate physical memory, map one to the other, grant
 * access, share with other processes. What holds for every function: acl_rt.h.
 * Include acl/acl.h, not this.
 *
 * The usual way: aclrtReserveMemAddress, aclrtMallocPhysical, aclrtMapMem, use, aclrtUnmapMem,
 * aclrtFreePhysical, aclrtReleaseMemAddress. 1 MiB is 2^20 bytes, 1 GiB 2^30, 1 TiB 2^40.
 */
#ifndef NPUSIM_ACL_RT_VMM_H
#define NPUSIM_ACL_RT_VMM_H

#include "types.h"

NPUSIM_ACL_BEGIN

/* --- addresses ------------------------------------------------------------------------------ */

/**
 * aclrtReserveMemAddress:
 * @virPtr: out: the start of the reservation, to be given back by aclrtReleaseMemAddress. Nobody
 *   may read or write there before something is mapped.
 * @size: bytes, not 0, at most 128 GiB. Above 512 MiB it is rounded up to 1 GiB and starts at a
 *   multiple of 1 GiB, else at one of 2 MiB. Below 2 MiB nothing can be mapped to it.
 * @alignment: reserved: 0.
 * @expectPtr: null: the system chooses. Else the start, a multiple of 1 GiB in 16 to 24 TiB.
 *   driver: for up to 512 MiB a multiple of 2 MiB and of the next power of two from @size.
 * @flags: 0 for normal pages, 1 for huge ones. To agree with what is mapped; that is only
 *   reported.
 *
 * No physical memory is used. The first map binds the reservation to a device (or to the host)
 * until it is released.
 *
 * Returns: 0; 100000: @virPtr is null, @size is 0 or @flags is neither; 107000: @alignment is not
 *   0, or @expectPtr is not aligned; 207001: more than 128 GiB, no room, or @expectPtr is occupied
 *   or outside (driver, for the last two: 507899); 107017: no device was opened yet.
 * Time: driver.
 */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr,
				uint64_t flags);

/**
 * aclrtReserveMemAddressNoUCMemory:
 * @virPtr: as in aclrtReserveMemAddress.
 * @size: bytes, a multiple of 1 GiB, at most 128 TiB.
 * @alignment: reserved: 0.
 * @expectPtr: the start, not null, a multiple of 1 GiB; 40 to 224 TiB is suggested.
 * @flags: 0 or 1.
 *
 * For 910C. A large range for memory that is accessed through the L2 cache only. It is not bound to
 * one device, and own memory and imports may lie in it side by side.
 *
 * Returns: 0; 100000: @virPtr is null, @size is 0 or @flags is neither; 107000: @alignment, @size
 *   or @expectPtr is not as said, or no device was opened yet; 207000: a 910B (driver: allowed),
 *   or @expectPtr is null; 207001: occupied, or more than the host can give (x86-64 ends at 128
 *   TiB).
 * Time: driver. Since: 9.0.
 */
aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
					  void *expectPtr, uint64_t flags);

/**
 * aclrtReleaseMemAddress:
 * @virPtr: the start of a reservation.
 *
 * Returns: 0; 107000: not the start of a reservation; 507899: something is still mapped to it, and
 *   it stays.
 * Time: driver.
 */
aclError aclrtReleaseMemAddress(void *virPtr);

/* --- physical memory ------------------------------------------------------------------------ */

/**
 * aclrtMallocPhysical:
 * @handle: out: one reference to new physical memory, to be given back by aclrtFreePhysical.
 * @size: bytes, not 0; rounded up to the granularity. driver: a size that is no multiple of 2 MiB
 *   is refused, but with 1 GiB pages it is rounded up.
 * @prop: what and where:
 *   handleType ACL_MEM_HANDLE_TYPE_NONE; allocationType ACL_MEM_ALLOCATION_TYPE_PINNED; reserve 0;
 *   location DEVICE with a user id, HOST with id 0, or HOST_NUMA with a node (-1: any);
 *   memAttr on a device: ACL_HBM_MEM_HUGE, _NORMAL or _HUGE1G, or ACL_MEM_*; on the host
 *   ACL_DDR_MEM_HUGE, _NORMAL, _P2P_HUGE or _P2P_NORMAL, ACL_MEM_*, or the three of HBM.
 *   ..._HUGE1G: pages of 1 GiB, which need contiguous memory; all others, also ..._NORMAL: 2 MiB.
 * @flags: 0.
 *
 * The memory reads as zeros. It goes when nothing refers to it any more: no handle, no mapping, no
 * import of another process.
 *
 * Context: needed for HOST_NUMA only.
 * Returns: 0; 100000: @size is 0, @flags is not, or @prop is not as said; 107000: reserve is not
 *   0; 107001: no such device; 207000: HOST with another id, or no 1 GiB pages there; 207001: out
 *   of memory; 507899: no such NUMA node, or the process has not opened the device: aclrtSetDevice
 *   (driver: or @size is not aligned).
 * Time: driver.
 */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags);

/**
 * aclrtFreePhysical:
 * @handle: a handle of aclrtMallocPhysical, an import, or aclrtMemRetainAllocationHandle.
 *
 * Gives back one reference. Mappings keep the memory: it is freed when the last reference is given
 * back and the last mapping undone, in either order.
 *
 * Returns: 0; 107000: no such handle, or given back too often while mapped.
 * Time: driver, when the memory goes.
 */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/**
 * aclrtMemGetAllocationGranularity:
 * @prop: as in aclrtMallocPhysical. It is read only, though not const.
 * @option: ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM or _RECOMMENDED, which are the same.
 * @granularity: out: bytes, of which sizes and addresses are to be multiples: 2 MiB, or 1 GiB for
 *   ..._HUGE1G.
 *
 * Returns: 0; 100000: @prop is not as said; 107001: no such device; 207000: another @option.
 */
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option, size_t *granularity);

/**
 * aclrtMemGetAllocationPropertiesFromHandle:
 * @handle: a handle.
 * @prop: out: as allocated, in the driver's words: ACL_MEM_HUGE on a device reads back as
 *   ACL_HBM_MEM_HUGE, for instance; location.id is the logical id.
 *
 * Returns: 0; 100000: the properties have no name; 107000: no such handle.
 * Since: 8.5.
 */
aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
						   aclrtPhysicalMemProp *prop);

/**
 * aclrtMemRetainAllocationHandle:
 * @virPtr: the start of a mapping.
 * @handle: out: the handle mapped there, with one more reference for aclrtFreePhysical.
 *
 * Returns: 0; 107017: in a reservation that nothing was ever mapped to; 507899: not the start of a
 *   mapping.
 * Since: 8.5.
 */
aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle);

/* --- mappings ------------------------------------------------------------------------------- */

/**
 * aclrtMapMem:
 * @virPtr: where to, anywhere in a reservation, aligned to the granularity.
 * @size: bytes; that of the physical memory, after rounding. driver: may be less.
 * @offset: 0.
 * @handle: what. It may be mapped at several addresses.
 * @flags: 0.
 *
 * Afterwards the handle's own device (of an import: the importing one) reads and writes there; any
 * other device, and the host, after aclrtMemSetAccess. Copies from and to the host work at once.
 *
 * Returns: 0; 100000: @size is 0 or @flags is not; 107000: no such handle, @offset is not 0, @size
 *   is not the handle's or not aligned, or handles of aclrtMallocPhysical and of imports meet in
 *   one reservation of aclrtReserveMemAddress; 507899: @virPtr is not aligned or not reserved, the
 *   range leaves the reservation or overlaps a mapping, the reservation is bound to another
 *   device, or its pages are of another size. driver: too large 207001, not
 *   aligned 507899, imports may be mixed.
 * Time: driver.
 */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
		     uint64_t flags);

/**
 * aclrtMemMapNoAccess:
 * As aclrtMapMem, but nobody has access before aclrtMemSetAccess, on drivers that have it. The
 * drivers of 910B and 910C have not, nor has the model.
 *
 * Returns: 207000; elsewhere as aclrtMapMem.
 * Time: driver. Since: 9.2 beta.
 */
aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
			     uint64_t flags);

/**
 * aclrtUnmapMem:
 * @virPtr: the start of a mapping, which goes as a whole, with all access granted to it.
 *
 * Work that still uses it is not waited for.
 *
 * Returns: 0; 507899: not the start of a mapping.
 * Time: driver.
 */
aclError aclrtUnmapMem(void *virPtr);

/**
 * aclrtMemSetAccess:
 * @virPtr: the start of a mapping.
 * @size: its size.
 * @desc: who: flags ACL_RT_MEM_ACCESS_FLAGS_READWRITE; location DEVICE with a *logical* id (on
 *   hardware and here, unlike aclrtMallocPhysical), or HOST with id 0.
 * @count: how many, from 1. CANN 8.5 to 9.1 read the second and later ones from the wrong place.
 *
 * Who has access keeps it until aclrtUnmapMem; granting it again is harmless. With HOST the
 * program itself may read and write at @virPtr. If a later one of @desc fails, the earlier ones
 * hold.
 *
 * Returns: 0; 107000: @virPtr or @desc is null, @count is 0, or no such location; 207000: flags
 *   NONE or READ, or a device without a link to the host's memory; 507899: not exactly a mapping.
 * Time: driver. Since: 8.5.
 */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count);

/**
 * aclrtMemGetAccess:
 * @virPtr: any address in a mapping.
 * @location: who, as in aclrtMemSetAccess.
 * @flag: out: aclrtMemAccessFlags; 0 if it has none.
 *
 * Returns: 0; 107000: no such location; 507899: not mapped.
 * Since: 8.5.
 */
aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag);

/**
 * aclrtMemGetAddressRange:
 * @ptr: any address in a mapping.
 * @pbase: out, or null: the start of the mapping.
 * @psize: out, or null: its size in bytes.
 *
 * Returns: 0; 100000: @ptr is null; 107000: both outputs are null, or not mapped.
 * Since: 9.0.
 */
aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize);

/* --- sharing with other processes ----------------------------------------------------------- */

/**
 * aclrtMemExportToShareableHandle:
 * @handle: a handle of aclrtMallocPhysical.
 * @handleType: ACL_MEM_HANDLE_TYPE_NONE.
 * @flags: ACL_RT_VMM_EXPORT_FLAG_DEFAULT: only processes of aclrtMemSetPidToShareableHandle may
 *   import; ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION (since 8.5): any process of the node.
 * @shareableHandle: out: a number to be sent to the others. It ends with the memory.
 *
 * Returns: 0; 100000: another @handleType; 107000: no such handle, or other @flags; 507899:
 *   exported already, or an import.
 * Time: driver.
 */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
					 uint64_t flags, uint64_t *shareableHandle);

/**
 * aclrtMemExportToShareableHandleV2:
 * @shareType: DEFAULT or FABRIC.
 * @shareableHandle: out: a uint64_t for DEFAULT, an aclrtMemFabricHandle for FABRIC.
 *
 * As aclrtMemExportToShareableHandle.
 *
 * Context: needed for FABRIC.
 * Returns: also 107000: another @shareType; 207000: FABRIC on a 910B, which has no fabric handles.
 * Time: driver. Since: 8.5.
 */
aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
					   aclrtMemSharedHandleType shareType,
					   void *shareableHandle);

/**
 * aclrtMemSetPidToShareableHandle:
 * @shareableHandle: one that this process exported.
 * @pid: an array of @pidNum process ids, as aclrtDeviceGetBareTgid tells them; they may import
 *   from now on. An id that a later process gets does not count. It is read only, though not
 *   const.
 * @pidNum: from 1 to 65535.
 *
 * Returns: 0; 100000: @pidNum is 0; 107000: @pidNum is too large; 107017: no such share; 207006:
 *   exported without validation; 507899: exported by another process.
 * Time: driver.
 */
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum);

/**
 * aclrtMemSetPidToShareableHandleV2:
 * @shareableHandle: as exported: a uint64_t or an aclrtMemFabricHandle.
 * @shareType: which of them.
 *
 * As aclrtMemSetPidToShareableHandle.
 *
 * Returns: also 107000: another @shareType.
 * Time: driver. Since: 8.5.
 */
aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
					   aclrtMemSharedHandleType shareType, int32_t *pid,
					   size_t pidNum);

/**
 * aclrtMemImportFromShareableHandle:
 * @shareableHandle: a number that another process exported.
 * @deviceId: the device that will use it, which may be another than the exporter's; peer access is
 *   then enabled.
 * @handle: out: one reference to the memory, to be given back by aclrtFreePhysical. Twice the same
 *   share gives the same handle, with one more reference.
 *
 * The memory lives until the exporter and all importers have given it back and unmapped it.
 *
 * Context: needed.
 * Returns: 0; 107017: no such share; 507899: exported by this very process (driver: on the same
 *   device only), not in the white list, or given back by the exporter.
 * Time: driver.
 */
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
					   aclrtDrvMemHandle *handle);

/**
 * aclrtMemImportFromShareableHandleV2:
 * @shareableHandle: as exported: a uint64_t or an aclrtMemFabricHandle.
 * @shareType: which of them.
 * @flags: 0.
 *
 * As aclrtMemImportFromShareableHandle, for the current device.
 *
 * Returns: also 100000: @flags is not 0; 107000: another @shareType; 207000: FABRIC on a 910B.
 * Time: driver. Since: 8.5.
 */
aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
					     aclrtMemSharedHandleType shareType, uint64_t flags,
					     aclrtDrvMemHandle *handle);

/* --- sharing memory of aclrtMalloc ---------------------------------------------------------- */

/**
 * aclrtIpcMemGetExportKey:
 * @devPtr: in memory of aclrtMalloc....
 * @size: bytes from there, not 0.
 * @key: out: the key, a zero-terminated string, to be sent to the others.
 * @len: bytes at @key, at least 65.
 * @flags: ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT: only processes of aclrtIpcMemSetImportPid may
 *   import; ..._DISABLE_PID_VALIDATION: any process of the node.
 *
 * Importers close first, then the exporter closes, then it frees the memory.
 *
 * Returns: 0; 107000: @size is 0, @len is too small, other @flags, or no such memory.
 * Time: driver. Since: 8.5.
 */
aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags);

/**
 * aclrtIpcMemSetImportPid:
 * @key: a key that this process exported.
 * @pid: as in aclrtMemSetPidToShareableHandle.
 * @num: how many, from 1.
 *
 * Returns: 0; 107000: @num is 0; 507899: no such key; 207006: exported without validation.
 * Time: driver. Since: 8.5.
 */
aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num);

/**
 * aclrtIpcMemImportPidInterServer:
 * @key: a key that this process exported.
 * @serverPids: for each of @num servers of the supernode, processes that may import: sdid is the id
 *   of any device of that server (ACL_DEV_ATTR_SUPER_POD_DEVICE_ID), pid and num their list.
 *
 * Returns: 0; 207000: outside of a supernode; 107017: no process of such a server is there; those
 * of aclrtIpcMemSetImportPid. Since: 8.5.
 */
aclError aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids, size_t num);

/**
 * aclrtIpcMemImportByKey:
 * @devPtr: out: where this process sees the memory, until aclrtIpcMemClose.
 * @key: a key of another process.
 * @flags: ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT, or ..._ENABLE_PEER_ACCESS to enable peer access if
 *   the memory is another device's.
 *
 * Context: needed.
 * Returns: 0; 107000: other @flags; 507899: no such key, or not in the white list.
 * Time: driver. Since: 8.5.
 */
aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags);

/**
 * aclrtIpcMemClose:
 * @key: a key that this process exported or imported.
 *
 * Returns: 0; 107000: no key at all; 507899: no such key here.
 * Time: driver. Since: 8.5.
 */
aclError aclrtIpcMemClose(const char *key);

/**
 * aclrtIpcMemSetAttr:
 * @key: a key that this process exported.
 * @type: ACL_RT_IPC_MEM_ATTR_ACCESS_LINK.
 * @attr: ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_*: the link that importers are to use.
 *
 * Returns: 0; 107000: no such @type or @attr; 207000: a 910B; 207021: no such link between the
 *   devices.
 * Since: 8.5.
 */
aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr);

NPUSIM_ACL_END

#endif
