/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares memory with other processes: exports and imports handles, shares classic allocations by
 * name (halShmem*); and registers host memory for a device. Owns the form of shareable values, the
 * rules about which process may import where, and the addresses that what is opened or registered
 * gets here; the shares themselves, names, their whitelists and lifetimes belong to the node.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#define IMPORT "halMemImportFromShareableHandle"

#define SHARE_ID(value) ((uint32_t)(value))

/* The 128 bytes of the second form, in the driver's order. For the host's memory the SDID is that
 * of device 0, and the other two are the host's id. */
struct share_block {
	uint32_t handle_type;
	uint32_t sdid;
	uint32_t devid;
	uint32_t phy_devid;
	uint32_t share_id;
};

_Static_assert(sizeof(struct share_block) <= MEM_SHARE_HANDLE_LEN,
	       "a shareable block does not fit");

static uint64_t share_value(uint32_t device, uint32_t share_id)
{
	return (uint64_t)device << 32 | share_id;
}

/* ---- export ---- */

static drvError_t check_export(const char *call, const void *handle, int type, bool fabric_too,
			       uint64_t flags, const void *shareable)
{
	drvError_t result = BSIM_GIVEN(call, handle) ?: BSIM_GIVEN(call, shareable);

	if (result != DRV_ERROR_NONE)
		return result;
	if (flags != 0 ||
	    !(type == MEM_HANDLE_TYPE_NONE || (fabric_too && type == MEM_HANDLE_TYPE_FABRIC)))
		return bsim_unsupported("%s: type %d with flags 0x%" PRIx64
					" is not supported; type must be 0%s, flags 0",
					call, type, flags, fabric_too ? " or 1 (fabric)" : "");
	return DRV_ERROR_NONE;
}

static drvError_t export_locked(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
				uint32_t *out_device, uint32_t *out_share_id)
{
	struct drv_mem_handle *h;
	drvError_t result = handle_find(bs, call, handle, &h);

	if (result != DRV_ERROR_NONE)
		return result;
	*out_device = h->space == SIM_NODE_HOST ? BSIM_HOST_ID : h->space;
	result = bsim_pass(call, node_share_export(bs->node, h->block, *out_device, out_share_id));
	if (result != DRV_ERROR_NONE)
		return result;
	h->exported = true;
	h->share_id = *out_share_id;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemExportToShareableHandle, SIM_CALL_EXPORT, (drv_mem_handle_t *, handle),
	  (drv_mem_handle_type, type), (uint64_t, flags), (uint64_t *, shareable))
{
	uint32_t device, share_id;
	drvError_t result = check_export(c->name, handle, (int)type, false, flags, shareable)
				    ?: export_locked(c->bs, c->name, handle, &device, &share_id);

	if (result == DRV_ERROR_NONE)
		*shareable = share_value(device, share_id);
	return result;
}

BSIM_CALL(halMemExportToShareableHandleV2, SIM_CALL_EXPORT, (drv_mem_handle_t *, handle),
	  (drv_mem_handle_type, type), (uint64_t, flags), (struct MemShareHandle *, shareable))
{
	bool posix = c->bs->cuda != NULL && type == MEM_HANDLE_TYPE_POSIX;
	struct share_block block = { .handle_type = (uint32_t)type };
	int fd = -1;
	drvError_t result = check_export(c->name, handle, posix ? MEM_HANDLE_TYPE_NONE : (int)type,
					 true, flags, shareable);

	if (result != DRV_ERROR_NONE)
		return result;
	result = posix ? c->bs->cuda->export_fd(c->bs, c->name, handle, &fd)
		       : export_locked(c->bs, c->name, handle, &block.devid, &block.share_id);
	if (result != DRV_ERROR_NONE)
		return result;
	block.phy_devid = block.devid;
	block.sdid =
		node_sdid(bsim_server_id(c->bs), block.devid == BSIM_HOST_ID ? 0 : block.devid);
	/* What follows the block stays as the caller had it. */
	memcpy(shareable, posix ? (void *)&fd : &block, posix ? sizeof(fd) : sizeof(block));
	return DRV_ERROR_NONE;
}

/* ---- import ---- */

/* In the process that exported: refused on the memory's own device by all, on another by the
 * documents. The host's memory is on no device. */
static drvError_t check_own_export(struct bsim *bs, uint32_t share_id, uint32_t dev,
				   const struct node_share_info *info)
{
	if (!info->exporter_is_me)
		return DRV_ERROR_NONE;
	if (info->memory != SIM_NODE_HOST && dev == info->device)
		return bsim_fail(DRV_ERROR_IOCRL_FAIL,
				 IMPORT ": share %u was exported by this very process; use the "
					"handle that it was exported from",
				 share_id);
	if (contract_docs_apply(bs, CONTRACT_IMPORT_SAME_PROCESS, IMPORT))
		return bsim_fail(
			DRV_ERROR_IOCRL_FAIL,
			IMPORT ": share %u was exported by this very process; the documents allow "
			       "imports by other processes alone (the driver takes host memory, "
			       "and imports on another device: NPUSIM_CONTRACT=driver)",
			share_id);
	return DRV_ERROR_NONE;
}

/* The driver makes an imported handle the importing device's, host memory too. Devices behind PCIe
 * cannot map that: there it stays the host's. */
static unsigned import_space(const struct bsim *bs, unsigned memory, uint32_t dev)
{
	return memory == SIM_NODE_HOST && !bs->profile.host_link_hccs ? SIM_NODE_HOST : dev;
}

static drvError_t import_new(struct bsim *bs, uint32_t share_id, unsigned server, uint32_t dev,
			     uint32_t of_device, struct drv_mem_handle **out)
{
	struct node_block *block;
	struct drv_mem_handle *h;
	drvError_t result =
		bsim_pass(IMPORT, node_share_import(bs->node, share_id, server, &block));

	if (result != DRV_ERROR_NONE)
		return result;
	h = handle_make(bs, block, import_space(bs, block->memory, dev));
	h->imported = true;
	h->share_id = share_id;
	handle_set_imported_prop(h, of_device);
	handle_add_import(bs, h);
	*out = h;
	return DRV_ERROR_NONE;
}

static drvError_t check_importer(struct bsim *bs, uint32_t dev)
{
	drvError_t result = bsim_require_open_locked(bs, IMPORT);

	if (result != DRV_ERROR_NONE || dev < bs->devices)
		return result;
	result = bsim_no_device(bs, IMPORT, "dev", dev);
	return dev >= DEVICE_ID_LIMIT ? DRV_ERROR_INVALID_VALUE : result;
}

static drvError_t import_locked(struct bsim *bs, uint64_t shareable, uint32_t dev,
				drv_mem_handle_t **out)
{
	uint32_t share_id = SHARE_ID(shareable);
	struct node_share_info info;
	struct drv_mem_handle *h;
	drvError_t result = check_importer(bs, dev);

	if (result != DRV_ERROR_NONE)
		return result;
	result = bsim_pass(IMPORT, node_share_info(bs->node, share_id, NULL, &info));
	if (result == DRV_ERROR_NONE && shareable != share_value(info.device, share_id))
		result = bsim_fail(
			DRV_ERROR_INVALID_HANDLE,
			IMPORT ": 0x%" PRIx64
			       " is not what was exported: share %u is of device %u, 0x%" PRIx64,
			shareable, share_id, info.device, share_value(info.device, share_id));
	result = result ?: check_own_export(bs, share_id, dev, &info);
	if (result != DRV_ERROR_NONE)
		return result;
	h = handle_find_import(bs, share_id, import_space(bs, info.memory, dev));
	if (h == NULL)
		return import_new(bs, share_id, bs->config.server, dev, dev, out);
	h->ref++;
	*out = h;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemImportFromShareableHandle, SIM_CALL_IMPORT, (uint64_t, shareable), (uint32_t, dev),
	  (drv_mem_handle_t **, handle))
{
	drvError_t result =
		BSIM_GIVEN(c->name, handle) ?: import_locked(c->bs, shareable, dev, handle);

	if (result == DRV_ERROR_NONE)
		c->pages = (*handle)->block->frames;
	return result;
}

/* From another server: nobody asks for a whitelist there, and each import is one of its own. */
static drvError_t import_remote(struct bsim *bs, const struct share_block *block, uint32_t dev,
				drv_mem_handle_t **out)
{
	unsigned server = bsim_sdid_server(block->sdid);
	drvError_t result = check_importer(bs, dev);

	if (dev == BSIM_HOST_ID)
		return bsim_unsupported(IMPORT ": share %u is of server %u, whose memory devices "
					       "reach, and no CPU",
					block->share_id, server);
	return result ?: bsim_check_server_locked(bs, IMPORT, server)
		       ?: import_new(bs, block->share_id, server, dev, block->devid, out);
}

/* The message says where the 128 bytes are none of an export. */
static drvError_t read_block(const char *call, int type, const struct MemShareHandle *shareable,
			     struct share_block *out)
{
	if (shareable == NULL)
		return bsim_null(call, "shareable");
	memcpy(out, shareable, sizeof(*out));
	if (out->handle_type == (uint32_t)type &&
	    (type == MEM_HANDLE_TYPE_NONE || type == MEM_HANDLE_TYPE_FABRIC))
		return DRV_ERROR_NONE;
	return bsim_invalid("%s: type is %d, and the shareable block says type %u; known are 0 and "
			    "1 (fabric)",
			    call, type, out->handle_type);
}

BSIM_CALL(halMemImportFromShareableHandleV2, SIM_CALL_IMPORT, (drv_mem_handle_type, type),
	  (struct MemShareHandle *, shareable), (uint32_t, dev), (drv_mem_handle_t **, handle))
{
	struct bsim *bs = c->bs;
	bool posix = bs->cuda != NULL && type == MEM_HANDLE_TYPE_POSIX;
	struct share_block block;
	drvError_t result =
		posix ? DRV_ERROR_NONE : read_block(c->name, (int)type, shareable, &block);
	int fd;

	result = result ?: BSIM_GIVEN(IMPORT, handle) ?: BSIM_GIVEN(IMPORT, shareable);
	if (result != DRV_ERROR_NONE)
		return result;
	memcpy(&fd, shareable, sizeof(fd));
	if (posix) /* the memory says where it is */
		result = bs->cuda->import_fd(bs, IMPORT, fd, handle);
	else if (type == MEM_HANDLE_TYPE_FABRIC &&
		 bsim_sdid_server(block.sdid) != bsim_server_id(bs))
		result = import_remote(bs, &block, dev, handle);
	else
		result = import_locked(bs, share_value(block.devid, block.share_id), dev, handle);
	if (result == DRV_ERROR_NONE)
		c->pages = (*handle)->block->frames;
	return result;
}

drvError_t bsim_halMemTransShareableHandle(struct npu_driver *self, drv_mem_handle_type type,
					   struct MemShareHandle *share, uint32_t *server,
					   uint64_t *shareable)
{
	const char *call = "halMemTransShareableHandle";
	struct share_block block;
	drvError_t result = BSIM_GIVEN(call, server) ?: BSIM_GIVEN(call, shareable)
			    ?: read_block(call, (int)type, share, &block);

	(void)self;
	if (result == DRV_ERROR_NONE) {
		*server = bsim_sdid_server(block.sdid);
		*shareable = share_value(block.devid, block.share_id);
	}
	return result;
}

/* ---- who may import ---- */

BSIM_OPEN_CALL(halMemSetPidToShareableHandle, SIM_CALL_EXPORT, (uint64_t, shareable), (int *, pid),
	       (uint32_t, pid_num))
{
	return bsim_pass(c->name, node_share_allow(c->bs->node, SHARE_ID(shareable), NULL,
						   c->bs->config.server, pid, pid_num));
}

static drvError_t check_attribute(const char *call, int type, const void *attr)
{
	if (type != SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER || attr == NULL)
		return bsim_invalid("%s: type is %d; only 0 (no whitelist) is known", call, type);
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halMemShareHandleSetAttribute, SIM_CALL_EXPORT, (uint64_t, shareable),
	       (enum ShareHandleAttrType, type), (struct ShareHandleAttr, attr))
{
	drvError_t result = check_attribute(c->name, (int)type, &attr);

	if (result != DRV_ERROR_NONE)
		return result;
	if (attr.enableFlag != SHR_HANDLE_NO_WLIST_ENABLE)
		return bsim_invalid(
			"%s: enableFlag is %u; the whitelist can be switched off (1), not on again",
			c->name, attr.enableFlag);
	return bsim_pass(c->name, node_share_set_open(c->bs->node, SHARE_ID(shareable), NULL));
}

BSIM_OPEN_CALL(halMemShareHandleGetAttribute, SIM_CALL_QUERY, (uint64_t, shareable),
	       (enum ShareHandleAttrType, type), (struct ShareHandleAttr *, attr))
{
	struct node_share_info info = { .open = false };
	drvError_t result =
		check_attribute(c->name, (int)type, attr)
			?: bsim_pass(c->name, node_share_info(c->bs->node, SHARE_ID(shareable),
							      NULL, &info));

	if (result != DRV_ERROR_NONE)
		return result;
	memset(attr, 0, sizeof(*attr));
	attr->enableFlag = info.open ? SHR_HANDLE_NO_WLIST_ENABLE : SHR_HANDLE_WLIST_ENABLE;
	return DRV_ERROR_NONE;
}

/* Device open or not: CANN's runtime finds out by itself that there is none. */
BSIM_CALL(halMemShareHandleInfoGet, SIM_CALL_QUERY, (uint64_t, shareable),
	  (struct ShareHandleGetInfo *, info))
{
	struct node_share_info found;
	drvError_t result =
		BSIM_GIVEN(c->name, info) ?: settings_join_locked(c->bs)
			?: bsim_pass(c->name, node_share_info(c->bs->node, SHARE_ID(shareable),
							      NULL, &found));

	if (result != DRV_ERROR_NONE)
		return result;
	memset(info, 0, sizeof(*info));
	info->phyDevid = found.memory == SIM_NODE_HOST ? BSIM_HOST_ID : found.device;
	return DRV_ERROR_NONE;
}

BSIM_QUESTION(npusimHolders, (uint64_t, shareable), (const char *, name), (int *, pids),
	      (uint32_t *, count))
{
	return BSIM_GIVEN(call, pids) ?: BSIM_GIVEN(call, count)
		       ?: bsim_require_open_locked(bs, call)
		       ?: node_share_holders(bs->node, SHARE_ID(shareable), name, pids, count);
}

#define CREATE   "halShmemCreateHandle"
#define OPEN     "halShmemOpenHandle"
#define REGISTER "halHostRegister"

#define NAME_BYTES 65u

/* ---- names ---- */

/* The allocation and where in its block the range starts. */
static drvError_t find_named(struct bsim *bs, uint64_t va, uint64_t bytes,
			     const struct node_block **out_block, uint64_t *out_offset)
{
	struct allocation *a = allocation_at(bs->window, va);

	if (a == NULL || a->kind != NPU_PLACE_DEVICE)
		return bsim_invalid(CREATE
				    ": va %s; a name is given to memory of halMemAlloc. Handles "
				    "are exported instead (aclrtMemExportToShareableHandle)",
				    place_text_locked(bs, va));
	if (bytes > a->va + a->bytes - va)
		return bsim_invalid(CREATE ": %s ends behind the allocation at 0x%" PRIx64 ", %s",
				    range_text(va, bytes), a->va, npu_size_text(a->bytes));
	*out_block = allocation_frame(a, va);
	*out_offset = a->block != NULL ? va - a->va : va % NODE_FRAME_BYTES;
	if (a->block == NULL && *out_offset + bytes > NODE_FRAME_BYTES)
		return bsim_unsupported(CREATE ": the allocation at 0x%" PRIx64
					       ", %s, has 4 KiB pages and reaches over a 2 MiB "
					       "boundary; one of huge pages can be shared",
					a->va, npu_size_text(a->bytes));
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halShmemCreateHandle, SIM_CALL_EXPORT, (DVdeviceptr, va), (size_t, byte_count),
	       (char *, name), (uint32_t, name_len))
{
	const struct node_block *block;
	uint64_t offset;
	char made[NAME_BYTES];
	drvError_t result;

	if (va == 0 || byte_count == 0 || name == NULL || name_len < NAME_BYTES)
		return bsim_invalid(CREATE ": va 0x%" PRIx64
					   ", byte_count %zu, name %p of %u bytes; a name takes %u",
				    (uint64_t)va, byte_count, (void *)name, name_len, NAME_BYTES);
	result = find_named(c->bs, va, byte_count, &block, &offset)
			 ?: bsim_pass(CREATE, node_name_create(c->bs->node, block, offset,
							       byte_count, block->memory, made));
	if (result == DRV_ERROR_NONE)
		memcpy(name, made, sizeof(made));
	return result;
}

BSIM_OPEN_CALL(halShmemDestroyHandle, SIM_CALL_EXPORT, (const char *, name))
{
	return BSIM_GIVEN(c->name, name)
		       ?: bsim_pass(c->name, node_name_destroy(c->bs->node, name));
}

static drvError_t allow(struct bsim *bs, const char *call, const char *name, unsigned server,
			const int *pid, int num)
{
	if (num < 0)
		return bsim_invalid("%s: num is %d: it must be 1 or more", call, num);
	return BSIM_GIVEN(call, name) ?: bsim_check_server_locked(bs, call, server)
		       ?: bsim_pass(call, node_share_allow(bs->node, 0, name, server, pid,
							   (uint32_t)num));
}

BSIM_OPEN_CALL(halShmemSetPidHandle, SIM_CALL_EXPORT, (const char *, name), (int *, pid),
	       (int, num))
{
	return allow(c->bs, "halShmemSetPidHandle", name, c->bs->config.server, pid, num);
}

BSIM_OPEN_CALL(halShmemSetPodPid, SIM_CALL_EXPORT, (const char *, name), (uint32_t, sdid),
	       (int *, pid), (int, num))
{
	if (bsim_server_id(c->bs) == BSIM_SERVER_NONE)
		return bsim_unsupported("%s: this server is in no supernode", c->name);
	return allow(c->bs, c->name, name, bsim_sdid_server(sdid), pid, num);
}

BSIM_OPEN_CALL(halShmemSetAttribute, SIM_CALL_EXPORT, (const char *, name), (uint32_t, type),
	       (uint64_t, attr))
{
	bool known = type == SHMEM_ATTR_TYPE_NO_WLIST_IN_SERVER;

	if (name == NULL)
		return bsim_null(c->name, "name");
	if (!known || attr != SHMEM_NO_WLIST_ENABLE)
		return bsim_fail(known ? DRV_ERROR_INVALID_VALUE : DRV_ERROR_NOT_SUPPORT,
				 "%s: type %u with value %" PRIu64
				 "; only type 1 (no whitelist) with 1 is known",
				 c->name, type, attr);
	return bsim_pass(c->name, node_share_set_open(c->bs->node, 0, name));
}

BSIM_OPEN_CALL(halShmemInfoGet, SIM_CALL_QUERY, (const char *, name), (struct ShmemGetInfo *, info))
{
	struct node_share_info found;
	drvError_t result = BSIM_GIVEN(c->name, name) ?: BSIM_GIVEN(c->name, info)
			    ?: bsim_pass(c->name, node_share_info(c->bs->node, 0, name, &found));

	if (result == DRV_ERROR_NONE)
		*info = (struct ShmemGetInfo){ .phyDevid = found.device };
	return result;
}

/* ---- opening by name ---- */

/* The frames that hold the range get an address here, whole: what was named may start inside the
 * first. */
static drvError_t open_block(struct bsim *bs, unsigned device, const struct node_share_info *info,
			     struct node_block *block, uint64_t *va)
{
	struct pool_kind kind = { .use = NPU_PLACE_OPENED, .memory = device, .page_lg2 = 21 };
	drvError_t result;
	struct allocation *a =
		allocation_new(bs, OPEN, &kind, block->frames << NODE_FRAME_LG2, &result);

	if (a == NULL)
		return result;
	result = allocation_back(bs, OPEN, a, block);
	if (result != DRV_ERROR_NONE) {
		allocation_drop(bs, a);
		return result;
	}
	a->asked = info->bytes;
	a->opened_offset = info->offset;
	*va = a->va + info->offset;
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halShmemOpenHandleByDevId, SIM_CALL_IMPORT, (DVdevice, dev), (const char *, name),
	       (DVdeviceptr *, va))
{
	struct node_share_info info;
	struct node_block *block;
	uint64_t at = 0;
	drvError_t result = BSIM_GIVEN(OPEN, name) ?: BSIM_GIVEN(OPEN, va);

	if (result == DRV_ERROR_NONE && !bsim_require_device_locked(c->bs, OPEN, dev))
		return DRV_ERROR_INVALID_DEVICE;
	result = result ?: bsim_pass(OPEN, node_name_import(c->bs->node, name, &info, &block));
	if (result != DRV_ERROR_NONE)
		return result;
	result = open_block(c->bs, dev, &info, block, &at);
	if (result == DRV_ERROR_NONE)
		*va = at;
	else
		node_block_drop(c->bs->node, block);
	return result;
}

drvError_t bsim_halShmemOpenHandle(struct npu_driver *self, const char *name, DVdeviceptr *va)
{
	const struct bsim *bs = bsim_of(self);
	DVdevice dev = 0;

	while (dev + 1 < bs->devices && !bs->device[dev].open)
		dev++;
	return bsim_halShmemOpenHandleByDevId(self, dev, name, va);
}

BSIM_OPEN_CALL(halShmemCloseHandle, SIM_CALL_RELEASE, (DVdeviceptr, va))
{
	struct bsim *bs = c->bs;
	struct allocation *a = allocation_at(bs->window, va);

	if (a == NULL || a->kind != NPU_PLACE_OPENED || va != a->va + a->opened_offset)
		return bsim_invalid("%s: va %s; it must be what opening a name gave", c->name,
				    place_text_locked(bs, va));
	gone_note_locked(bs, false, a->va, a->bytes,
			 bs->cuda ? "cuIpcCloseMemHandle" : "aclrtIpcMemClose");
	allocation_end(bs, a);
	return DRV_ERROR_NONE;
}

/* ---- registered host memory ---- */

static uint64_t registered_start(const struct allocation *a)
{
	return a->host_va + a->opened_offset;
}

/* The live registration that touches [va, va + bytes) for a device. */
static struct allocation *find_registered(struct bsim *bs, uint64_t va, uint64_t bytes,
					  uint32_t dev)
{
	struct allocation *a = NULL;

	if (dev < BSIM_DEVICE_MAX)
		a = LIST_FIRST(&bs->allocs->live[ALLOC_REGISTERED(dev)]);
	while (a != NULL &&
	       (registered_start(a) >= va + bytes || registered_start(a) + a->asked <= va))
		a = LIST_NEXT(a, link);
	return a;
}

static drvError_t check_register(struct bsim *bs, uint64_t src, uint64_t size, uint32_t type,
				 uint32_t dev)
{
	struct npu_place p;
	struct allocation *other;

	if (src == 0 || size == 0 || src + size < src)
		return bsim_invalid(REGISTER ": src 0x%" PRIx64 ", size %" PRIu64
					     "; both are needed",
				    src, size);
	if (type != HOST_MEM_MAP_DEV && type != HOST_SVM_MAP_DEV &&
	    type != HOST_MEM_MAP_DEV_PCIE_TH && type != HOST_MEM_MAP_DMA)
		return bsim_unsupported(
			REGISTER
			": type %u; memory (0), SVM memory (1), PCIe (3) and DMA (5) are modelled",
			type);
	if (!bsim_require_device_locked(bs, REGISTER, dev))
		return DRV_ERROR_INVALID_DEVICE;
	p = place_at(bs, src);
	if (p.kind != NPU_PLACE_PAGEABLE && p.kind != NPU_PLACE_PINNED &&
	    !(p.kind == NPU_PLACE_MAPPED && p.owner == NPU_OWNER_HOST))
		return bsim_invalid(REGISTER ": src %s; memory of the host can be registered",
				    place_text_locked(bs, src));
	other = find_registered(bs, src, size, dev);
	if (other != NULL)
		return bsim_fail(DRV_ERROR_BUSY,
				 REGISTER ": %s is registered for device %u already: %s, by %s",
				 range_text(src, size), dev,
				 range_text(registered_start(other), other->asked),
				 bsim_made_text(&other->made, true));
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halHostRegister, SIM_CALL_ALLOC, (void *, src), (uint64_t, size), (uint32_t, flag),
	       (uint32_t, dev), (void **, dst))
{
	struct pool_kind kind = { .use = NPU_PLACE_REGISTERED,
				  .memory = SIM_NODE_HOST,
				  .page_lg2 = 12 };
	uint64_t lead = (uintptr_t)src % 4096;
	bool dma = (flag & 0xffff) == HOST_MEM_MAP_DMA;
	struct allocation *a;
	drvError_t result = check_register(c->bs, (uintptr_t)src, size, flag & 0xffff, dev)
				    ?: (dma ? DRV_ERROR_NONE : BSIM_GIVEN(REGISTER, dst));

	c->page_lg2 = 12;
	c->pages = (size + 4095) / 4096;
	if (result != DRV_ERROR_NONE)
		return result;
	a = allocation_new(c->bs, REGISTER, &kind, (lead + size + 4095) / 4096 * 4096, &result);
	if (a == NULL)
		return result;
	LIST_REMOVE(a, link);
	LIST_INSERT_HEAD(&c->bs->allocs->live[ALLOC_REGISTERED(dev)], a, link);
	a->asked = size;
	a->host_va = (uintptr_t)src - lead;
	a->opened_offset = lead;
	if (dst != NULL && !dma)
		*dst = (void *)(uintptr_t)(a->va + lead);
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halHostUnregister, SIM_CALL_FREE, (void *, src), (uint32_t, dev))
{
	uint64_t va = (uintptr_t)src;
	struct allocation *a = find_registered(c->bs, va, 1, dev);

	c->page_lg2 = 12;
	if (a == NULL || registered_start(a) != va)
		return bsim_invalid("%s: src 0x%" PRIx64
				    " is not the start of memory that is registered for device %u",
				    c->name, va, dev);
	gone_note_locked(c->bs, true, va, a->asked, "aclrtHostUnregister");
	allocation_end(c->bs, a);
	return DRV_ERROR_NONE;
}

drvError_t bsim_halHostUnregisterEx(struct npu_driver *self, void *src, uint32_t dev, uint32_t flag)
{
	(void)flag; /* the registration knows its kind */
	return bsim_halHostUnregister(self, src, dev);
}
