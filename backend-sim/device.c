/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes devices for the driver's calls (opening the first one joins the node and builds
 * the model), and answers for their properties and peer access. Memory is handled elsewhere.
 */
#include "memory/memory.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define DIES_OF_910C         2u
#define MAINBOARD_OF_910C    0x14 /* assumed */
#define POD_SCALE            384  /* packages of a CloudMatrix384: 8 a server */
#define POD_NONE             UINT32_MAX
#define INFO_ANY             (-1)
#define ADDR_MODE_FULL_MATCH 1 /* what reaching other servers takes */

/* ---- the server, opened with the first device ---- */

static bool open_model(struct bsim *bs, char **error)
{
	struct sim_config config = { .profile = &bs->profile,
				     .memory = node_memory(bs->node),
				     .lock = &bs->sim_lock,
				     .devices = bs->devices,
				     .timing = bs->timing };

	if (bs->sim != NULL)
		return true;
	bs->sim = sim_open(&config, error);
	if (bs->sim == NULL)
		return false;
	for (unsigned d = 0; d < bs->devices; d++)
		tables_open(bs, d);
	tables_open(bs, SIM_NODE_HOST);
	return true;
}

static drvError_t open_server_locked(struct bsim *bs)
{
	char *error = NULL;
	drvError_t result;

	if (bs->any_open)
		return DRV_ERROR_NONE;
	result = settings_join_locked(bs);
	if (result != DRV_ERROR_NONE)
		return result;
	if (bs->handles == NULL)
		handle_table_open(bs);
	if (bs->allocs == NULL)
		alloc_table_open(bs);
	if ((bs->window != NULL || window_open(bs, &error)) && open_model(bs, &error)) {
		if (bs->queues == NULL)
			queue_open(bs);
		return DRV_ERROR_NONE;
	}
	return bsim_open_failed(error);
}

/* ---- opening and closing ---- */

/* What most queries ask first. */
static drvError_t check_query(struct bsim *bs, const char *call, const void *out, const char *name,
			      uint32_t dev)
{
	if (out == NULL)
		return bsim_null(call, name);
	settings_learn_shape_locked(bs);
	return dev < bs->devices ? DRV_ERROR_NONE : bsim_no_device(bs, call, "device", dev);
}

/* So that as much is free as on a server, where CANN's runtime has its streams, rings and stacks on
 * the device. */
static drvError_t hold_runtime_locked(struct bsim *bs, unsigned dev)
{
	uint64_t bytes = bs->profile.runtime_bytes;
	bool given;
	const char *text = npu_var_get(NPU_VAR_RUNTIME_MEMORY, &given);

	if (given)
		npu_parse_size(text, &bytes);
	if (bytes == 0 || bs->device[dev].runtime != NULL)
		return DRV_ERROR_NONE;
	return bsim_pass("halDeviceOpen",
			 memory_take(bs, dev, (bytes + NODE_FRAME_BYTES - 1) >> NODE_FRAME_LG2,
				     false, &bs->device[dev].runtime));
}

BSIM_CALL(halDeviceOpen, SIM_CALL_QUERY, (uint32_t, dev), (halDevOpenIn *, in),
	  (halDevOpenOut *, out))
{
	/* the node may have fewer devices than was thought */
	drvError_t result = check_query(c->bs, c->name, c, "", dev) ?: open_server_locked(c->bs)
			    ?: check_query(c->bs, c->name, c, "", dev)
			    ?: hold_runtime_locked(c->bs, dev);

	(void)in;
	if (result != DRV_ERROR_NONE)
		return result;
	fault_install();
	c->bs->any_open = true;
	c->bs->device[dev].open = true;
	node_on_question(c->bs->node, place_holdings, c->bs);
	if (out != NULL)
		memset(out, 0, sizeof(*out));
	return DRV_ERROR_NONE;
}

static void close_device_locked(struct bsim *bs, unsigned dev)
{
	unsigned mappings, handles, allocations;

	queue_device_close_locked(bs, dev);
	allocations = alloc_end_device(bs, dev);
	mappings = mapping_end_device(bs, dev);
	handles = handle_end_device(bs, dev);
	if (mappings + handles + allocations > 0) {
		bs->handles->reset = bs->call_number;
		npu_log(NPU_LOG_INFO,
			"device %u was reset by driver call %" PRIu64 ": %s, %s and %s destroyed",
			dev, bs->call_number, npu_counted(mappings, "mapping"),
			npu_counted(handles, "handle"), npu_counted(allocations, "allocation"));
	}
	node_block_drop(bs->node, bs->device[dev].runtime);
	bs->device[dev].runtime = NULL;
	tables_close(bs, dev);
	tables_open(bs, dev);
	bs->device[dev].peers = 0;
	bs->device[dev].open = false;
}

BSIM_CALL(halDeviceClose, SIM_CALL_QUERY, (uint32_t, dev), (halDevCloseIn *, in))
{
	(void)in;
	if (dev >= c->bs->devices)
		return bsim_no_device(c->bs, c->name, "device", dev);
	if (!c->bs->device[dev].open)
		return bsim_fail(DRV_ERROR_INVALID_HANDLE,
				 "%s: device %u is not open in this process", c->name, dev);
	close_device_locked(c->bs, dev);
	gone_locked(c->bs);
	return DRV_ERROR_NONE;
}

/* ---- how many, and which ---- */

/* Queries of what never changes once it is known: they work in a forked child, too. */
static unsigned device_count(struct bsim *bs)
{
	unsigned count;

	bsim_lock(bs);
	settings_learn_shape_locked(bs);
	count = bs->devices;
	bsim_unlock(bs);
	return count;
}

static drvError_t check_pair(struct bsim *bs, const char *call, const void *out, const char *name,
			     uint32_t dev, uint32_t peer)
{
	return check_query(bs, call, out, name, dev) ?: check_query(bs, call, out, name, peer);
}

BSIM_QUESTION(drvGetDevIDs, (uint32_t *, devices), (uint32_t, len))
{
	if (devices == NULL)
		return bsim_null(call, "devices");
	settings_learn_shape_locked(bs);
	for (uint32_t i = 0; i < len && i < bs->devices; i++)
		devices[i] = i;
	return DRV_ERROR_NONE;
}

/* What has one answer; and what has one for any device that there is. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ANSWER(op, out, answer, ...)                    \
	drvError_t bsim_##op NPU_WITH_SELF(__VA_ARGS__) \
	{                                               \
		if (out == NULL)                        \
			return bsim_null(#op, #out);    \
		*out = answer;                          \
		return DRV_ERROR_NONE;                  \
	}
#define DEVICE_ANSWER(op, dev, out, answer, ...)                           \
	BSIM_QUESTION(op, __VA_ARGS__)                                     \
	{                                                                  \
		drvError_t result = check_query(bs, call, out, #out, dev); \
                                                                           \
		if (result == DRV_ERROR_NONE)                              \
			*out = answer;                                     \
		return result;                                             \
	}
ANSWER(drvGetDevNum, num_dev, device_count(bsim_of(self)), (uint32_t *, num_dev))
ANSWER(drvGetPlatformInfo, info, 1, (uint32_t *, info)) /* host with devices */
ANSWER(halGetHostID, host_id, BSIM_HOST_ID, (uint32_t *, host_id))
ANSWER(halGetAPIVersion, version, 0x072418,
       (int *, version)) /* as CANN 9.0's runtime sets its own */
ANSWER(drvDeviceGetTransWay, way, 0, (void *, src), (void *, dst), (uint8_t *, way)) /* SDMA */
ANSWER(halParseSDID, out,
       ((struct halSDIDParseInfo){ .server_id = bsim_sdid_server(sdid),
				   .chip_id = sdid >> 18 & 15,
				   .die_id = sdid >> 16 & 3,
				   .udevid = sdid & 0xffff }),
       (uint32_t, sdid), (struct halSDIDParseInfo *, out))
DEVICE_ANSWER(drvDeviceGetIndexByPhyId, phy, index, phy, (uint32_t, phy), (uint32_t *, index))
DEVICE_ANSWER(drvDeviceGetPhyIdByIndex, index, phy, index, (uint32_t, index), (uint32_t *, phy))
DEVICE_ANSWER(drvMemSmmuQuery, dev, ssid, 0, (DVdevice, dev), (uint32_t *, ssid))
DEVICE_ANSWER(halGetChipCapability, dev, info, (struct halCapabilityInfo){ 0 }, (uint32_t, dev),
	      (struct halCapabilityInfo *, info))
/* Every unit of a device reaches registered memory the same way. */
DEVICE_ANSWER(halHostRegisterCapabilities, dev, cap, 1, (uint32_t, dev), (uint32_t, acc_module),
	      (uint32_t *, cap))

pid_t bsim_drvDeviceGetBareTgid(struct npu_driver *self)
{
	(void)self;
	return getpid();
}

/* ---- properties ---- */

static bool device_fact(const struct bsim *bs, uint32_t dev, int32_t module, int32_t info,
			int64_t *out)
{
	const struct sim_profile *p = &bs->profile;
	unsigned dies = p->is_910c ? DIES_OF_910C : 1;
	bool in_pod = bsim_server_id(bs) != BSIM_SERVER_NONE;
	struct node_usage usage = { 0 };

	if (info == INFO_TYPE_FREE_BYTES)
		node_usage(bs->node, dev, &usage);
	const struct {
		int32_t module, info;
		int64_t value;
	} facts[] = {
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_ENV, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, p->hardware_version },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_CORE_NUM, 1 }, /* task schedulers */
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_P2P_CAPABILITY, bs->devices > 1 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_CHIP_ID, dev / dies },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_DIE_ID, dev % dies },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SDID, node_sdid(bsim_server_id(bs), dev) },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SERVER_ID, bsim_server_id(bs) },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SCALE_TYPE, in_pod ? POD_SCALE : 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SUPER_POD_ID, in_pod ? 0 : POD_NONE },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_ADDR_MODE, in_pod ? ADDR_MODE_FULL_MATCH : 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_RUN_MACH, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_MAINBOARD_ID, p->is_910c ? MAINBOARD_OF_910C : 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_HD_CONNECT_TYPE, p->host_link_hccs },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_DIE_NUM, dies },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_NEAR_NODE, p->near_node[dev] },
		{ MODULE_TYPE_AICPU, INFO_TYPE_CORE_NUM, p->aicpu_cores },
		{ MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM, p->cube_cores },
		{ MODULE_TYPE_AICORE, INFO_TYPE_FREQUE, (int64_t)(p->core_khz / 1000) },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_CORE_NUM, p->vector_cores },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_FREQUE, (int64_t)(p->core_khz / 1000) },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_UTILIZATION, 0 }, /* no operators run */
		{ MODULE_TYPE_AICPU, INFO_TYPE_UTILIZATION, 0 },
		{ MODULE_TYPE_AICORE, INFO_TYPE_UTILIZATION, 0 },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_UTILIZATION, 0 },
		{ MODULE_TYPE_L2BUFF, INFO_ANY, (int64_t)p->l2_bytes },
		{ MODULE_TYPE_MEMORY, INFO_TYPE_FREE_BYTES,
		  (int64_t)(usage.free_frames << NODE_FRAME_LG2) },
		{ MODULE_TYPE_MEMORY, INFO_ANY,
		  (int64_t)(bs->config.usable_frames << NODE_FRAME_LG2) },
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (facts[i].module == module &&
		    (facts[i].info == info || facts[i].info == INFO_ANY)) {
			*out = facts[i].value;
			return true;
		}
	return false;
}

BSIM_QUESTION(halGetDeviceInfo, (uint32_t, dev), (int32_t, module), (int32_t, info),
	      (int64_t *, value))
{
	drvError_t result = check_query(bs, call, value, "value", dev);

	if (result == DRV_ERROR_NONE && info == INFO_TYPE_FREE_BYTES)
		result = settings_join_locked(bs); /* no device need be open */
	if (result != DRV_ERROR_NONE)
		return result;
	if (device_fact(bs, dev, module, info, value))
		return DRV_ERROR_NONE;
	return bsim_unsupported("%s: module %d, info %d is not modelled", call, module, info);
}

BSIM_QUESTION(halGetPairDevicesInfo, (uint32_t, dev), (uint32_t, other), (int32_t, info),
	      (int64_t *, value))
{
	drvError_t result = check_pair(bs, call, value, "value", dev, other);

	if (result != DRV_ERROR_NONE)
		return result;
	if (info != 0)
		return bsim_unsupported("%s: info is %d; only 0 (topology) is modelled", call,
					info);
	*value = bs->profile.is_910c && dev / DIES_OF_910C == other / DIES_OF_910C ? TOPOLOGY_SIO
										   : TOPOLOGY_HCCS;
	return DRV_ERROR_NONE;
}

BSIM_QUESTION(halGetSocVersion, (uint32_t, dev), (char *, soc_version), (uint32_t, len))
{
	drvError_t result = check_query(bs, call, soc_version, "soc_version", dev);

	if (result != DRV_ERROR_NONE)
		return result;
	if (len <= strlen(bs->profile.soc_name))
		return bsim_invalid("%s: len is %u; \"%s\" takes %zu bytes", call, len,
				    bs->profile.soc_name, strlen(bs->profile.soc_name) + 1);
	strcpy(soc_version, bs->profile.soc_name);
	return DRV_ERROR_NONE;
}

bool bsim_halSupportFeature(struct npu_driver *self, uint32_t dev, int feature)
{
	return dev < device_count(bsim_of(self)) && (feature == FEATURE_SVM_GET_USER_MALLOC_ATTR ||
						     feature == FEATURE_SVM_VMM_NORMAL_GRANULARITY);
}

/* Of halMemCtl, the query of what memory can do: a mask in, a mask out. */
struct memory_features {
	unsigned long long mask;
	unsigned int device;
};

#define CTL_SUPPORT_FEATURE     2
#define FEATURE_GIANT_PAGE      (1ull << 4)
#define FEATURE_SHMEM_MAP_EXBUS (1ull << 5)

BSIM_QUESTION(halMemCtl, (int, type), (void *, param), (size_t, param_size), (void *, out),
	      (size_t *, out_size))
{
	const struct memory_features *asked = param;
	struct memory_features *answer = out;
	unsigned long long have;
	drvError_t result;

	if (type != CTL_SUPPORT_FEATURE)
		return bsim_unsupported(
			"%s: type is %d; only 2 (which features memory has) is modelled", call,
			type);
	if (param == NULL || out == NULL || param_size < sizeof(*asked))
		return bsim_invalid("%s: param %p of %zu bytes, out %p; both take %zu bytes", call,
				    param, param_size, out, sizeof(*asked));
	result = check_query(bs, call, out, "out", asked->device);
	if (result != DRV_ERROR_NONE)
		return result;
	have = (bs->profile.giant_pages ? FEATURE_GIANT_PAGE : 0) |
	       (bs->profile.host_link_hccs ? FEATURE_SHMEM_MAP_EXBUS : 0);
	*answer = (struct memory_features){ .mask = asked->mask & have, .device = asked->device };
	if (out_size != NULL)
		*out_size = sizeof(*answer);
	return DRV_ERROR_NONE;
}

/* ---- peer access ---- */

BSIM_CALL(halDeviceCanAccessPeer, SIM_CALL_QUERY, (int *, can), (uint32_t, dev), (uint32_t, peer))
{
	drvError_t result = check_pair(c->bs, c->name, can, "can", dev, peer);

	if (result == DRV_ERROR_NONE)
		*can = dev != peer;
	return result;
}

static drvError_t set_peer(struct bsim *bs, const char *call, uint32_t dev, uint32_t peer,
			   uint32_t flag, bool enable)
{
	drvError_t result = check_pair(bs, call, bs, "", dev, peer);

	if (result != DRV_ERROR_NONE)
		return result;
	if (dev == peer || flag != 0)
		return bsim_invalid(
			"%s: device %u, peer %u, flag %u; the two must differ, and flag be 0", call,
			dev, peer, flag);
	bs->device[dev].peers &= ~(1u << peer);
	bs->device[dev].peers |= (uint32_t)enable << peer;
	return DRV_ERROR_NONE;
}

#define SET_PEER(op, enable)                                                               \
	BSIM_CALL(op, SIM_CALL_QUERY, (uint32_t, dev), (uint32_t, peer), (uint32_t, flag)) \
	{                                                                                  \
		return set_peer(c->bs, #op, dev, peer, flag, enable);                      \
	}
SET_PEER(halDeviceEnableP2P, true)
SET_PEER(halDeviceDisableP2P, false)

BSIM_CALL(drvGetP2PStatus, SIM_CALL_QUERY, (uint32_t, dev), (uint32_t, peer), (uint32_t *, status))
{
	drvError_t result = check_pair(c->bs, c->name, status, "status", dev, peer);

	if (result == DRV_ERROR_NONE)
		*status = c->bs->device[dev].peers >> peer & 1;
	return result;
}
