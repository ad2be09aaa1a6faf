/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares classic allocations with other processes by name (halShmem*), and registers host memory
 * for a device. Owns the addresses that both get here; names and their whitelists belong to the
 * node.
 */
#include "memory/memory.h"
#include "memory/place.h"
#include "memory/tables.h"
#include "process/ops.h"

#include <inttypes.h>
#include <string.h>

#define CREATE   "halShmemCreateHandle"
#define OPEN     "halShmemOpenHandle"
#define REGISTER "halHostRegister"

#define NAME_BYTES    65u
#define PID_COUNT_MAX 65535

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
	return name == NULL ? bsim_null(c->name, "name")
			    : bsim_pass(c->name, node_name_destroy(c->bs->node, name));
}

static drvError_t allow(struct bsim *bs, const char *call, const char *name, unsigned server,
			const int *pid, int num)
{
	if (name == NULL)
		return bsim_null(call, "name");
	if (pid == NULL || num <= 0 || num > PID_COUNT_MAX)
		return bsim_invalid("%s: %d process ids at %p; 1 to %d are taken", call, num,
				    (const void *)pid, PID_COUNT_MAX);
	if (server >= bs->config.servers)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 "%s: server %u; the supernode has servers 0 to %u", call, server,
				 bs->config.servers - 1);
	return bsim_check_server_locked(bs, call, server)
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
	drvError_t result;

	if (name == NULL || info == NULL)
		return bsim_null(c->name, name == NULL ? "name" : "info");
	result = bsim_pass(c->name, node_share_info(c->bs->node, 0, name, &found));
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
	struct pool_kind kind = {
		.use = NPU_PLACE_OPENED, .memory = device, .page_lg2 = 21, .mem_type = MEM_HBM_TYPE
	};
	drvError_t result;
	struct allocation *a =
		allocation_new(bs, OPEN, &kind, block->frames << NODE_FRAME_LG2, &result);

	if (a == NULL)
		return result;
	if (!tables_map(bs, device, a->va, a->bytes, block, PT_WRITE)) {
		npu_message_set(OPEN ": no memory for page tables on device %u", device);
		allocation_drop(bs, a);
		return DRV_ERROR_OUT_OF_MEMORY;
	}
	a->asked = info->bytes;
	a->block = block;
	a->page_lg2 = block->giant ? 30 : 21;
	a->opened_offset = info->offset;
	node_block_touch(bs->node, block);
	*va = a->va + info->offset;
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halShmemOpenHandleByDevId, SIM_CALL_IMPORT, (DVdevice, dev), (const char *, name),
	       (DVdeviceptr *, va))
{
	struct node_share_info info;
	struct node_block *block;
	uint64_t at = 0;
	drvError_t result;

	if (name == NULL || va == NULL)
		return bsim_null(OPEN, name == NULL ? "name" : "va");
	if (!bsim_require_device_locked(c->bs, OPEN, dev))
		return DRV_ERROR_INVALID_DEVICE;
	result = bsim_pass(OPEN, node_name_import(c->bs->node, name, &info, &block));
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
	struct allocation *a = LIST_FIRST(&bs->allocs->all);

	if (bs->allocs->count[NPU_PLACE_REGISTERED] == 0)
		return NULL;
	while (a != NULL &&
	       (a->kind != NPU_PLACE_REGISTERED || a->device != dev ||
		registered_start(a) >= va + bytes || registered_start(a) + a->asked <= va))
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
				 REGISTER ": %s is registered for device %u already: %s, by driver "
					  "call %" PRIu64,
				 range_text(src, size), dev,
				 range_text(registered_start(other), other->asked),
				 other->made.number);
	return DRV_ERROR_NONE;
}

BSIM_OPEN_CALL(halHostRegister, SIM_CALL_ALLOC, (void *, src), (uint64_t, size), (uint32_t, flag),
	       (uint32_t, dev), (void **, dst))
{
	struct pool_kind kind = { .use = NPU_PLACE_REGISTERED,
				  .memory = SIM_NODE_HOST,
				  .page_lg2 = 12,
				  .mem_type = MEM_DDR_TYPE };
	uint64_t lead = (uintptr_t)src % 4096;
	bool dma = (flag & 0xffff) == HOST_MEM_MAP_DMA;
	struct allocation *a;
	drvError_t result = check_register(c->bs, (uintptr_t)src, size, flag & 0xffff, dev);

	c->page_lg2 = 12;
	c->pages = (size + 4095) / 4096;
	if (result != DRV_ERROR_NONE)
		return result;
	if (dst == NULL && !dma)
		return bsim_null(REGISTER, "dst");
	a = allocation_new(c->bs, REGISTER, &kind, (lead + size + 4095) / 4096 * 4096, &result);
	if (a == NULL)
		return result;
	a->asked = size;
	a->device = dev;
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
	allocation_end(c->bs, a);
	return DRV_ERROR_NONE;
}

drvError_t bsim_halHostUnregisterEx(struct npu_driver *self, void *src, uint32_t dev, uint32_t flag)
{
	(void)flag; /* the registration knows its kind */
	return bsim_halHostUnregister(self, src, dev);
}

drvError_t bsim_halHostRegisterCapabilities(struct npu_driver *self, uint32_t dev,
					    uint32_t acc_module, uint32_t *cap)
{
	const struct bsim *bs = bsim_of(self);

	if (dev >= bs->devices || cap == NULL) {
		npu_message_set("halHostRegisterCapabilities: device %u of %u, cap %p", dev,
				bs->devices, (void *)cap);
		return dev >= bs->devices ? DRV_ERROR_INVALID_DEVICE : DRV_ERROR_INVALID_VALUE;
	}
	(void)acc_module; /* every unit of the device reaches registered memory the same way */
	*cap = 1;
	return DRV_ERROR_NONE;
}
