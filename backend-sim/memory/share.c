/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports and imports handles between processes. Owns the form of shareable values and the rules
 * about which process may import where; the shares themselves, their whitelists and lifetimes
 * belong to the node.
 */
#include "memory/memory.h"
#include "process/ops.h"
#include "process/contract.h"

#include <inttypes.h>
#include <string.h>

#define IMPORT "halMemImportFromShareableHandle"

#define SHARE_ID(value) ((uint32_t)(value))
#define PID_COUNT_MAX   65535u
#define DEVICE_ID_LIMIT 64u

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
			       uint64_t flags, const void *out)
{
	if (handle == NULL || out == NULL)
		return bsim_invalid("%s: %s is NULL", call,
				    handle == NULL ? "handle" : "the place for the result");
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
	if (h->imported)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: handle %p was imported (share %u); only the process that "
				 "made the memory can export it",
				 call, (void *)handle, h->share_id);
	if (h->exported)
		return bsim_fail(
			DRV_ERROR_PARA_ERROR,
			"%s: handle %p was exported already (share %u); use that value again", call,
			(void *)handle, h->share_id);
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
	block.sdid = bsim_sdid(c->bs, block.devid == BSIM_HOST_ID ? 0 : block.devid);
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
		npu_message_set(IMPORT ": share %u was exported by this very process; use the "
				       "handle that it was exported from",
				share_id);
	else if (contract_docs_apply(bs, CONTRACT_IMPORT_SAME_PROCESS, IMPORT))
		npu_message_set(IMPORT
				": share %u was exported by this very process; the documents allow "
				"imports by other processes alone (the driver takes host memory, "
				"and imports on another device: NPUSIM_CONTRACT=driver)",
				share_id);
	else
		return DRV_ERROR_NONE;
	return DRV_ERROR_IOCRL_FAIL;
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
	h = handle_make(bs, block);
	h->imported = true;
	h->share_id = share_id;
	if (block->memory != SIM_NODE_HOST)
		h->space = (uint8_t)dev;
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
	h = handle_find_import(bs, share_id, info.memory == SIM_NODE_HOST ? SIM_NODE_HOST : dev);
	if (h == NULL)
		return import_new(bs, share_id, bs->config.server, dev, dev, out);
	h->ref++;
	*out = h;
	return DRV_ERROR_NONE;
}

BSIM_CALL(halMemImportFromShareableHandle, SIM_CALL_IMPORT, (uint64_t, shareable), (uint32_t, dev),
	  (drv_mem_handle_t **, handle))
{
	drvError_t result = handle == NULL ? bsim_null(c->name, "handle")
					   : import_locked(c->bs, shareable, dev, handle);

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
	if (result != DRV_ERROR_NONE)
		return result;
	if (server >= bs->config.servers)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 IMPORT ": share %u is of server %u (SDID %u); the supernode has "
					"servers 0 to %u",
				 block->share_id, server, block->sdid, bs->config.servers - 1);
	return bsim_check_server_locked(bs, IMPORT, server)
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

	if (result != DRV_ERROR_NONE)
		return result;
	if (handle == NULL || shareable == NULL)
		return bsim_null(IMPORT, handle == NULL ? "handle" : "shareable");
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
	drvError_t result;

	(void)self;
	if (server == NULL || shareable == NULL)
		return bsim_invalid("%s: %s is NULL", call,
				    server == NULL ? "server" : "shareable");
	result = read_block(call, (int)type, share, &block);
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
	if (pid == NULL || pid_num == 0 || pid_num > PID_COUNT_MAX)
		return bsim_invalid("%s: %u process ids at %p; 1 to %u are taken", c->name, pid_num,
				    (void *)pid, PID_COUNT_MAX);
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
		(info == NULL ? bsim_null(c->name, "info") : settings_join_locked(c->bs))
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
	if (pids == NULL || count == NULL)
		return bsim_null("npusimHolders", pids == NULL ? "pids" : "count");
	return bsim_require_open_locked(bs, "npusimHolders")
		       ?: node_share_holders(bs->node, SHARE_ID(shareable), name, pids, count);
}
