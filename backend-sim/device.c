/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes devices for the driver's calls (opening the first one joins the node and builds
 * the model), and answers for their properties and peer access. Memory is handled elsewhere.
 */
#include "device.h"

#include "memory/memory.h"
#include "memory/tables.h"
#include "process/ops.h"
#include "process/settings.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIES_OF_910C   2u
#define SERVER_ID_NONE 0x3ff /* in no supernode; the node of a 910C is its only server */

static drvError_t no_such_device(const struct bsim *bs, const char *call, uint32_t dev)
{
	return bsim_fail(DRV_ERROR_INVALID_DEVICE,
			 "%s: device is %u; this server has devices 0 to %u", call, dev,
			 bs->devices - 1);
}

/* ---- opening and closing ---- */

drvError_t bsim_halDeviceOpen(struct npu_driver *self, uint32_t dev, halDevOpenIn *in,
			      halDevOpenOut *out)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);

	(void)in;
	if (c.result != DRV_ERROR_NONE)
		return bsim_end(&c);
	settings_learn_shape_locked(c.bs);
	if (dev >= c.bs->devices)
		c.result = no_such_device(c.bs, "halDeviceOpen", dev);
	else
		c.result = bsim_open_server_locked(c.bs);
	if (c.result == DRV_ERROR_NONE &&
	    dev >= c.bs->devices) /* the node has fewer than was thought */
		c.result = no_such_device(c.bs, "halDeviceOpen", dev);
	if (c.result == DRV_ERROR_NONE) {
		fault_install();
		c.bs->any_open = true;
		c.bs->device[dev].open = true;
		if (out != NULL)
			memset(out, 0, sizeof(*out));
	}
	return bsim_end(&c);
}

static void close_device_locked(struct bsim *bs, unsigned dev)
{
	unsigned mappings, handles, allocations;

	queue_device_close_locked(bs, dev);
	mappings = mapping_end_device(bs, dev);
	handles = handle_end_device(bs, dev);
	allocations = alloc_end_device(bs, dev);
	if (mappings + handles + allocations > 0) {
		bs->handles->resets++;
		npu_log(NPU_LOG_INFO,
			"device %u was reset by driver call %" PRIu64
			": %u mappings, %u handles and %u allocations destroyed",
			dev, bs->call_number, mappings, handles, allocations);
	}
	tables_close(bs, dev);
	tables_open(bs, dev);
	bs->device[dev].peers = 0;
	bs->device[dev].open = false;
}

drvError_t bsim_halDeviceClose(struct npu_driver *self, uint32_t dev, halDevCloseIn *in)
{
	const char *call = "halDeviceClose";
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);

	(void)in;
	if (c.result != DRV_ERROR_NONE)
		return bsim_end(&c);
	if (dev >= c.bs->devices) {
		c.result = no_such_device(c.bs, call, dev);
	} else if (!c.bs->device[dev].open) {
		c.result = bsim_fail(DRV_ERROR_INVALID_HANDLE,
				     "%s: device %u is not open in this process", call, dev);
	} else {
		close_device_locked(c.bs, dev);
	}
	return bsim_end(&c);
}

/* ---- how many, and which ---- */

/* Queries of what never changes once it is known: they work in a forked child, too. */
static unsigned device_count(struct bsim *bs)
{
	unsigned count;

	pthread_mutex_lock(&bs->lock);
	settings_learn_shape_locked(bs);
	count = bs->devices;
	pthread_mutex_unlock(&bs->lock);
	return count;
}

/* What most queries ask first. */
static drvError_t check_query(struct bsim *bs, const char *call, const void *out, const char *name,
			      uint32_t dev)
{
	if (out == NULL)
		return bsim_null(call, name);
	return dev < device_count(bs) ? DRV_ERROR_NONE : no_such_device(bs, call, dev);
}

drvError_t bsim_drvGetPlatformInfo(struct npu_driver *self, uint32_t *info)
{
	(void)self;
	if (info == NULL)
		return bsim_null("drvGetPlatformInfo", "info");
	*info = 1; /* host with devices */
	return DRV_ERROR_NONE;
}

drvError_t bsim_drvGetDevNum(struct npu_driver *self, uint32_t *num_dev)
{
	if (num_dev == NULL)
		return bsim_null("drvGetDevNum", "num_dev");
	*num_dev = device_count(bsim_of(self));
	return DRV_ERROR_NONE;
}

drvError_t bsim_drvGetDevIDs(struct npu_driver *self, uint32_t *devices, uint32_t len)
{
	unsigned count = device_count(bsim_of(self));

	if (devices == NULL)
		return bsim_null("drvGetDevIDs", "devices");
	for (uint32_t i = 0; i < len && i < count; i++)
		devices[i] = i;
	return DRV_ERROR_NONE;
}

drvError_t bsim_drvDeviceGetIndexByPhyId(struct npu_driver *self, uint32_t phy, uint32_t *index)
{
	drvError_t result =
		check_query(bsim_of(self), "drvDeviceGetIndexByPhyId", index, "index", phy);

	if (result == DRV_ERROR_NONE)
		*index = phy;
	return result;
}

drvError_t bsim_drvDeviceGetPhyIdByIndex(struct npu_driver *self, uint32_t index, uint32_t *phy)
{
	drvError_t result =
		check_query(bsim_of(self), "drvDeviceGetPhyIdByIndex", phy, "phy", index);

	if (result == DRV_ERROR_NONE)
		*phy = index;
	return result;
}

drvError_t bsim_halGetHostID(struct npu_driver *self, uint32_t *host_id)
{
	(void)self;
	if (host_id == NULL)
		return bsim_null("halGetHostID", "host_id");
	*host_id = BSIM_HOST_ID;
	return DRV_ERROR_NONE;
}

pid_t bsim_drvDeviceGetBareTgid(struct npu_driver *self)
{
	(void)self;
	return getpid();
}

drvError_t bsim_halGetAPIVersion(struct npu_driver *self, int *version)
{
	(void)self;
	if (version == NULL)
		return bsim_null("halGetAPIVersion", "version");
	*version = 0x072418; /* what CANN 9.0's runtime sets as its own */
	return DRV_ERROR_NONE;
}

/* ---- properties ---- */

struct device_fact {
	int32_t module, info;
	int64_t value;
};

static bool look_up(const struct device_fact *facts, size_t count, int32_t module, int32_t info,
		    int64_t *out)
{
	for (size_t i = 0; i < count; i++) {
		if (facts[i].module == module && facts[i].info == info) {
			*out = facts[i].value;
			return true;
		}
	}
	return false;
}

static bool device_fact(const struct bsim *bs, uint32_t dev, int32_t module, int32_t info,
			int64_t *out)
{
	const struct sim_profile *p = &bs->profile;
	unsigned dies = p->is_910c ? DIES_OF_910C : 1;
	const struct device_fact facts[] = {
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_ENV, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION, p->hardware_version },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_CORE_NUM, 1 }, /* task schedulers */
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_P2P_CAPABILITY, bs->devices > 1 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_CHIP_ID, dev / dies },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_PHY_DIE_ID, dev % dies },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SDID, dev },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SERVER_ID, p->is_910c ? 0 : SERVER_ID_NONE },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_SUPER_POD_ID, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_ADDR_MODE, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_RUN_MACH, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_MAINBOARD_ID, 0 },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_HD_CONNECT_TYPE, p->host_link_hccs },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_DIE_NUM, dies },
		{ MODULE_TYPE_AICPU, INFO_TYPE_CORE_NUM, p->aicpu_cores },
		{ MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM, p->cube_cores },
		{ MODULE_TYPE_AICORE, INFO_TYPE_FREQUE, (int64_t)(p->core_khz / 1000) },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_CORE_NUM, p->vector_cores },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_FREQUE, (int64_t)(p->core_khz / 1000) },
		{ MODULE_TYPE_SYSTEM, INFO_TYPE_UTILIZATION, 0 }, /* no operators run */
		{ MODULE_TYPE_AICPU, INFO_TYPE_UTILIZATION, 0 },
		{ MODULE_TYPE_AICORE, INFO_TYPE_UTILIZATION, 0 },
		{ MODULE_TYPE_VECTOR_CORE, INFO_TYPE_UTILIZATION, 0 },
	};

	if (module == MODULE_TYPE_L2BUFF) {
		*out = (int64_t)p->l2_bytes;
		return true;
	}
	if (module == MODULE_TYPE_MEMORY) {
		*out = (int64_t)(bs->config.usable_frames << NODE_FRAME_LG2);
		return true;
	}
	return look_up(facts, sizeof(facts) / sizeof(facts[0]), module, info, out);
}

drvError_t bsim_halGetDeviceInfo(struct npu_driver *self, uint32_t dev, int32_t module,
				 int32_t info, int64_t *value)
{
	const char *call = "halGetDeviceInfo";
	struct bsim *bs = bsim_of(self);
	drvError_t result = check_query(bs, call, value, "value", dev);

	if (result != DRV_ERROR_NONE)
		return result;
	if (device_fact(bs, dev, module, info, value))
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_NOT_SUPPORT, "%s: module %d, info %d is not modelled", call,
			 module, info);
}

drvError_t bsim_halGetPairDevicesInfo(struct npu_driver *self, uint32_t dev, uint32_t other,
				      int32_t info, int64_t *value)
{
	const char *call = "halGetPairDevicesInfo";
	struct bsim *bs = bsim_of(self);
	unsigned count = device_count(bs);

	if (value == NULL)
		return bsim_null(call, "value");
	if (dev >= count || other >= count)
		return no_such_device(bs, call, dev >= count ? dev : other);
	if (info != 0)
		return bsim_fail(DRV_ERROR_NOT_SUPPORT,
				 "%s: info is %d; only 0 (topology) is modelled", call, info);
	*value = bs->profile.is_910c && dev / DIES_OF_910C == other / DIES_OF_910C ? TOPOLOGY_SIO
										   : TOPOLOGY_HCCS;
	return DRV_ERROR_NONE;
}

drvError_t bsim_halGetSocVersion(struct npu_driver *self, uint32_t dev, char *soc_version,
				 uint32_t len)
{
	const char *call = "halGetSocVersion";
	struct bsim *bs = bsim_of(self);
	drvError_t result = check_query(bs, call, soc_version, "soc_version", dev);

	if (result != DRV_ERROR_NONE)
		return result;
	if (len <= strlen(bs->profile.soc_name))
		return bsim_fail(DRV_ERROR_INVALID_VALUE, "%s: len is %u; \"%s\" takes %zu bytes",
				 call, len, bs->profile.soc_name, strlen(bs->profile.soc_name) + 1);
	strcpy(soc_version, bs->profile.soc_name);
	return DRV_ERROR_NONE;
}

bool bsim_halSupportFeature(struct npu_driver *self, uint32_t dev, int feature)
{
	return dev < device_count(bsim_of(self)) && (feature == FEATURE_SVM_GET_USER_MALLOC_ATTR ||
						     feature == FEATURE_SVM_VMM_NORMAL_GRANULARITY);
}

drvError_t bsim_halGetChipCapability(struct npu_driver *self, uint32_t dev,
				     struct halCapabilityInfo *info)
{
	drvError_t result = check_query(bsim_of(self), "halGetChipCapability", info, "info", dev);

	if (result == DRV_ERROR_NONE)
		memset(info, 0, sizeof(*info));
	return result;
}

drvError_t bsim_drvMemSmmuQuery(struct npu_driver *self, DVdevice dev, uint32_t *ssid)
{
	drvError_t result = check_query(bsim_of(self), "drvMemSmmuQuery", ssid, "ssid", dev);

	if (result == DRV_ERROR_NONE)
		*ssid = 0;
	return result;
}

drvError_t bsim_drvDeviceGetTransWay(struct npu_driver *self, void *src, void *dst, uint8_t *way)
{
	(void)self, (void)src, (void)dst;
	if (way == NULL)
		return bsim_null("drvDeviceGetTransWay", "way");
	*way = 0; /* SDMA */
	return DRV_ERROR_NONE;
}

/* Of halMemCtl, the query of what memory can do: a mask in, a mask out. */
struct memory_features {
	unsigned long long mask;
	unsigned int device;
};

#define CTL_SUPPORT_FEATURE     2
#define FEATURE_GIANT_PAGE      (1ull << 4)
#define FEATURE_SHMEM_MAP_EXBUS (1ull << 5)

drvError_t bsim_halMemCtl(struct npu_driver *self, int type, void *param, size_t param_size,
			  void *out, size_t *out_size)
{
	const char *call = "halMemCtl";
	struct bsim *bs = bsim_of(self);
	const struct memory_features *asked = param;
	struct memory_features *answer = out;
	unsigned long long have;

	if (type != CTL_SUPPORT_FEATURE)
		return bsim_fail(DRV_ERROR_NOT_SUPPORT,
				 "%s: type is %d; only 2 (which features memory has) is modelled",
				 call, type);
	if (param == NULL || out == NULL || param_size < sizeof(*asked) ||
	    (out_size != NULL && *out_size < sizeof(*answer)))
		return bsim_fail(DRV_ERROR_INVALID_VALUE,
				 "%s: param %p of %zu bytes, out %p; both take %zu bytes", call,
				 param, param_size, out, sizeof(*asked));
	if (asked->device >= device_count(bs))
		return no_such_device(bs, call, asked->device);
	have = (bs->profile.giant_pages ? FEATURE_GIANT_PAGE : 0) |
	       (bs->profile.host_link_hccs ? FEATURE_SHMEM_MAP_EXBUS : 0);
	*answer = (struct memory_features){ .mask = asked->mask & have, .device = asked->device };
	if (out_size != NULL)
		*out_size = sizeof(*answer);
	return DRV_ERROR_NONE;
}

/* ---- peer access ---- */

static drvError_t check_pair(struct bsim *bs, const char *call, uint32_t dev, uint32_t peer)
{
	settings_learn_shape_locked(bs);
	if (dev >= bs->devices || peer >= bs->devices)
		return no_such_device(bs, call, dev >= bs->devices ? dev : peer);
	return DRV_ERROR_NONE;
}

drvError_t bsim_halDeviceCanAccessPeer(struct npu_driver *self, int *can, uint32_t dev,
				       uint32_t peer)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);

	if (c.result == DRV_ERROR_NONE)
		c.result = can == NULL ? bsim_null("halDeviceCanAccessPeer", "can")
				       : check_pair(c.bs, "halDeviceCanAccessPeer", dev, peer);
	if (c.result == DRV_ERROR_NONE)
		*can = dev != peer;
	return bsim_end(&c);
}

static drvError_t set_peer(struct npu_driver *self, const char *call, uint32_t dev, uint32_t peer,
			   uint32_t flag, bool enable)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);

	if (c.result == DRV_ERROR_NONE)
		c.result = check_pair(c.bs, call, dev, peer);
	if (c.result == DRV_ERROR_NONE && (dev == peer || flag != 0))
		c.result = bsim_fail(
			DRV_ERROR_INVALID_VALUE,
			"%s: device %u, peer %u, flag %u; the two must differ, and flag be 0", call,
			dev, peer, flag);
	if (c.result == DRV_ERROR_NONE && enable)
		c.bs->device[dev].peers |= 1u << peer;
	else if (c.result == DRV_ERROR_NONE)
		c.bs->device[dev].peers &= ~(1u << peer);
	return bsim_end(&c);
}

drvError_t bsim_halDeviceEnableP2P(struct npu_driver *self, uint32_t dev, uint32_t peer,
				   uint32_t flag)
{
	return set_peer(self, "halDeviceEnableP2P", dev, peer, flag, true);
}

drvError_t bsim_halDeviceDisableP2P(struct npu_driver *self, uint32_t dev, uint32_t peer,
				    uint32_t flag)
{
	return set_peer(self, "halDeviceDisableP2P", dev, peer, flag, false);
}

drvError_t bsim_drvGetP2PStatus(struct npu_driver *self, uint32_t dev, uint32_t peer,
				uint32_t *status)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);

	if (c.result == DRV_ERROR_NONE)
		c.result = status == NULL ? bsim_null("drvGetP2PStatus", "status")
					  : check_pair(c.bs, "drvGetP2PStatus", dev, peer);
	if (c.result == DRV_ERROR_NONE)
		*status = c.bs->device[dev].peers >> peer & 1;
	return bsim_end(&c);
}
