/* SPDX-License-Identifier: Apache-2.0
 *
 * libdcmi.so, also named libdrvdsmi_host.so: the server as the driver's management libraries show
 * it, from what libascend_hal.so says; who holds memory, from the node. Owns the layouts of the
 * answers (dcmi_interface_api.h's) and the numbering by cards. What the model has no figure of is
 * 0; power and temperature are assumed. What a 910B's and 910C's driver refuses is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "node/node.h"

#define NPU_QUERY(name, ...)
#define NPU_OP(result, missing, name, ...) result name NPU_PLAIN(__VA_ARGS__);
#include "npusim/driver-ops.h"

#define DRIVER_VERSION "26.0.0"
#define NAME_LEN       32
#define SPOD_BYTES     48
#define CPUS_LEN       32 /* TOPO_INFO_MAX_LENTH */
#define IDLE_DECIWATTS 900
#define IDLE_CELSIUS   45
#define PRODUCT_LEN    32 /* DCMI_PRODUCT_TYPE_MIN_LEN */
#define PROCESSES_MAX  64 /* MAX_PROC_NUM_IN_DEVICE */

enum { BAD_ARGUMENT = -8001, NO_DEVICE = -8008, UNSUPPORTED = -8255 };
enum { DSMI_BAD_DEVICE = 2, DSMI_BAD_ARGUMENT = 8, DSMI_UNSUPPORTED = 0xfffe };
enum { CHIP_INF = 12, CHIP_INF_SPOD = 1 };         /* main and sub command */
enum { NDIE, VDIE };                               /* of dcmi_get_device_die_v2 */
enum { USE_HBM = 6, USE_MAX = 14, USES = 0x745c }; /* a bit for each but those of DDR */

struct chip_info { /* dcmi_chip_info_v2; dcmi_chip_info ends before npu */
	char type[NAME_LEN], name[NAME_LEN], version[NAME_LEN];
	unsigned aicores;
	char npu[NAME_LEN];
};
struct hbm_info { /* dcmi_hbm_info, with its padding */
	unsigned long long total_mib, mhz, used_mib;
	unsigned celsius, use;
};
struct pcie_info { /* dcmi_pcie_info_all */
	unsigned vendor, subvendor, device, subdevice, domain, bus, slot, function, reserved[8];
};
struct board_info { /* dsmi_board_info_stru */
	unsigned board, pcb, bom, slot;
};
struct process_memory { /* dcmi_proc_mem_info */
	int pid;
	unsigned long bytes;
};

/* A function answers `check`'s code, and does the rest if that is 0; OF_CHIP: about chip `dev`. */
#define ANSWERS(name, parameters, check, ...)                       \
	__attribute__((visibility("default"))) int name parameters; \
	int name parameters                                         \
	{                                                           \
		__attribute__((unused)) unsigned dev = 0;           \
		int code = check;                                   \
                                                                    \
		if (code == 0) {                                    \
			__VA_ARGS__;                                \
		}                                                   \
		return code;                                        \
	}
#define OF_CHIP(name, type, ...) \
	ANSWERS(name, (int card, int chip, type *out), find(card, chip, out, &dev), __VA_ARGS__)

static uint64_t fact(unsigned dev, int module, int info)
{
	int64_t value = 0;

	halGetDeviceInfo(dev, module, info, &value);
	return (uint64_t)value;
}

/* 0: the model cannot be opened. */
static unsigned device_count(void)
{
	unsigned devices = 0;

	drvGetDevNum(&devices);
	return devices;
}

static unsigned chips_per_card(void)
{
	return (unsigned)fact(0, MODULE_TYPE_SYSTEM, INFO_TYPE_DIE_NUM) ?: 1;
}

static int chips_of_card(int card)
{
	int64_t chips = chips_per_card(), left = device_count() - card * chips;

	return card < 0 || left <= 0 ? 0 : (int)(left < chips ? left : chips);
}

/* The number of a chip whose answer goes to `out`. */
static int find(int card, int chip, const void *out, unsigned *dev)
{
	if (out == NULL || chip < 0 || chip >= chips_of_card(card))
		return BAD_ARGUMENT;
	*dev = (unsigned)card * chips_per_card() + (unsigned)chip;
	return 0;
}

ANSWERS(dcmi_init, (void), device_count() > 0 ? 0 : NO_DEVICE)
ANSWERS(dcmi_get_card_list, (int *num, int *list, int len),
	num == NULL || list == NULL ? BAD_ARGUMENT : 0,
	for (*num = 0; chips_of_card(*num) > 0; ++*num) if (*num < len) list[*num] = *num)
ANSWERS(dcmi_get_card_num_list, (int *num, int *list, int len), dcmi_get_card_list(num, list, len))
ANSWERS(dcmi_get_device_num_in_card, (int card, int *num), find(card, 0, num, &dev),
	*num = chips_of_card(card))
ANSWERS(dcmi_get_device_id_in_card, (int card, int *end, int *mcu, int *cpu),
	mcu == NULL || cpu == NULL ? BAD_ARGUMENT : dcmi_get_device_num_in_card(card, end),
	*mcu = *cpu = -1)
ANSWERS(dcmi_get_device_logic_id, (int *logic, int card, int chip), find(card, chip, logic, &dev),
	*logic = (int)dev)
ANSWERS(dcmi_get_device_phyid_from_logicid, (unsigned logic, unsigned *phy),
	phy == NULL || drvDeviceGetPhyIdByIndex(logic, phy) ? BAD_ARGUMENT : 0)
ANSWERS(dcmi_get_device_logicid_from_phyid, (unsigned phy, unsigned *logic),
	logic == NULL || drvDeviceGetIndexByPhyId(phy, logic) ? BAD_ARGUMENT : 0)
ANSWERS(dcmi_get_card_id_device_id_from_logicid, (int *card, int *chip, unsigned logic),
	card == NULL || chip == NULL ? BAD_ARGUMENT : (logic < device_count() ? 0 : NO_DEVICE),
	*card = (int)(logic / chips_per_card()), *chip = (int)(logic % chips_per_card()))
ANSWERS(dcmi_get_card_id_device_id_from_phyid, (int *card, int *chip, unsigned phy),
	dcmi_get_device_logicid_from_phyid(phy, &dev) ? NO_DEVICE : 0,
	return dcmi_get_card_id_device_id_from_logicid(card, chip, dev))

static struct chip_info chip_of(unsigned dev)
{
	static const char *const bins[16] = { "4", "1", "2", "3", [8] = "2C", [10] = "4-1" };
	const char *bin = bins[fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_VERSION) & 15];
	struct chip_info info = { .type = "Ascend", .version = "V1" };
	char soc[NAME_LEN];

	info.aicores = (unsigned)fact(dev, MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM);
	if (halGetSocVersion(dev, soc, NAME_LEN) == DRV_ERROR_NONE)
		sscanf(soc, "%31[^_]_%31s", info.name, info.npu); /* Ascend910_9392 */
	else /* the driver of a 910B has no name to give */
		snprintf(info.name, NAME_LEN, "910B%s", bin ?: "");
	return info;
}

static struct hbm_info hbm_of(unsigned dev)
{
	uint64_t total = fact(dev, MODULE_TYPE_MEMORY, 0);
	uint64_t left = fact(dev, MODULE_TYPE_MEMORY, INFO_TYPE_FREE_BYTES);

	return (struct hbm_info){ .total_mib = total >> 20,
				  .used_mib = (total - left) >> 20,
				  .celsius = IDLE_CELSIUS };
}

OF_CHIP(dcmi_get_device_chip_info_v2, struct chip_info, *out = chip_of(dev))
OF_CHIP(dcmi_get_device_chip_info, void,
	memcpy(out, &(struct chip_info[]){ chip_of(dev) }, offsetof(struct chip_info, npu)))
OF_CHIP(dcmi_get_device_hbm_info, struct hbm_info, *out = hbm_of(dev))
OF_CHIP(dcmi_get_device_memory_info_v3, void, return UNSUPPORTED) /* of DDR, which it has not */
ANSWERS(dcmi_get_product_type, (int card, int chip, char *out, int len),
	len < PRODUCT_LEN ? BAD_ARGUMENT : find(card, chip, out, &dev), return UNSUPPORTED)
OF_CHIP(dcmi_get_device_health, unsigned, *out = 0)
OF_CHIP(dcmi_get_device_power_info, int, *out = IDLE_DECIWATTS)
OF_CHIP(dcmi_get_device_temperature, int, *out = IDLE_CELSIUS)
OF_CHIP(dcmi_get_device_pcie_info_v2, struct pcie_info,
	*out = (struct pcie_info){ .vendor = 0x19e5,
				   .device = chips_per_card() > 1 ? 0xd803 : 0xd802,
				   .bus = 0x81 + dev * 4 })

static int give_use(unsigned dev, unsigned what, unsigned *out)
{
	const struct hbm_info hbm = hbm_of(dev);

	if (!(what <= USE_MAX && USES >> what & 1))
		return what - 1 < USE_MAX ? UNSUPPORTED : BAD_ARGUMENT;
	*out = what == USE_HBM ? (unsigned)(100 * hbm.used_mib / (hbm.total_mib ?: 1)) : 0;
	return 0;
}

static unsigned server_of(unsigned dev)
{
	return (unsigned)fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_SERVER_ID);
}

static int give_processes(unsigned dev, struct process_memory *out, int *count)
{
	bool named;
	const char *name = npu_var_get(NPU_VAR_SUPERNODE, &named);
	const bool alone = !named || strcmp(name, "none") == 0;
	const unsigned server = alone ? 0 : server_of(dev);
	struct node_info *node;
	unsigned found;
	char *error;

	if (alone)
		name = npu_var_get(NPU_VAR_NODE, NULL);
	if (!node_list(name, &node, &found, &error)) {
		free(error);
		return NO_DEVICE;
	}
	const int code = found > 0 && node->shape.devices == 0 ? NO_DEVICE : 0; /* not joined */
	*count = 0;
	for (const struct node_member_info *m = node->members;
	     m < node->members + node->member_count && *count < PROCESSES_MAX; m++)
		if (m->server == server && m->frames[dev] > 0)
			out[(*count)++] =
				(struct process_memory){ m->pid,
							 m->frames[dev] * NODE_FRAME_BYTES };
	node_list_free(node, found);
	return code;
}

static int give_link(unsigned dev, int card, int chip, int *out)
{
	static const int of_hal[] = { 3, 5, 4, 2, 1, 6, 7 }; /* of TOPOLOGY_HCCS and so on */
	int64_t kind = 0;
	unsigned other;
	int code = find(card, chip, out, &other);

	if (code == 0 && dev != other)
		halGetPairDevicesInfo(dev, other, 0, &kind);
	if (code == 0)
		*out = dev == other ? 0 : of_hal[kind];
	return code;
}

/* Of the NUMA node that is near to it, or all where this machine has no such node; as many ranges
 * of them as there is room for. */
static int give_cpus(unsigned dev, char *out, int *length)
{
	char name[64], list[4096] = "";
	FILE *file;

	snprintf(name, sizeof(name), "/sys/devices/system/node/node%d/cpulist",
		 (int)fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_NEAR_NODE));
	file = fopen(name, "re") ?: fopen("/sys/devices/system/cpu/online", "re");
	if (file != NULL && fgets(list, sizeof(list), file) == NULL)
		*list = '\0';
	if (file != NULL)
		fclose(file);
	*length = (int)strcspn(list, "\n");
	while (*length >= CPUS_LEN || (*length > 0 && !strchr(",\n", list[*length])))
		--*length;
	snprintf(out, CPUS_LEN, "%.*s", *length, list);
	return *length > 0 ? 0 : UNSUPPORTED;
}

ANSWERS(dcmi_get_device_utilization_rate, (int card, int chip, unsigned what, unsigned *out),
	find(card, chip, out, &dev) ?: give_use(dev, what, out))
ANSWERS(dcmi_get_device_die_v2, (int card, int chip, unsigned type, unsigned *out),
	type > VDIE ? BAD_ARGUMENT : find(card, chip, out, &dev),
	if (type != VDIE) return UNSUPPORTED;
	memcpy(out, (unsigned[]){ 0x6e70, 0x7573, 0x696d, server_of(dev), dev }, 5 * sizeof(*out)))
ANSWERS(dcmi_get_device_resource_info,
	(int card, int chip, struct process_memory *out, int *count),
	count == NULL ? BAD_ARGUMENT
		      : find(card, chip, out, &dev) ?: give_processes(dev, out, count))
ANSWERS(dcmi_get_topo_info_by_device_id, (int card, int chip, int other, int its_chip, int *out),
	find(card, chip, out, &dev) ?: give_link(dev, other, its_chip, out))
ANSWERS(dcmi_get_affinity_cpu_info_by_device_id, (int card, int chip, char *out, int *length),
	length == NULL ? BAD_ARGUMENT : find(card, chip, out, &dev) ?: give_cpus(dev, out, length))

static int give_spod(unsigned dev, int command, unsigned sub, unsigned *out, unsigned *size)
{
	if (dev >= device_count())
		return DSMI_BAD_DEVICE;
	if (command != CHIP_INF || sub != CHIP_INF_SPOD || chips_per_card() == 1)
		return DSMI_UNSUPPORTED; /* a 910B knows no supernode */
	if (out == NULL || size == NULL || *size < SPOD_BYTES)
		return DSMI_BAD_ARGUMENT;
	memset(out, 0, *size = SPOD_BYTES);
	out[0] = (unsigned)fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_SDID);
	out[1] = (unsigned)fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_SCALE_TYPE);
	out[2] = (unsigned)fact(dev, MODULE_TYPE_SYSTEM, INFO_TYPE_SUPER_POD_ID);
	out[3] = server_of(dev);
	return 0;
}

static int as_dcmi(int dsmi)
{
	return dsmi == 0 ? 0 : dsmi == DSMI_UNSUPPORTED ? UNSUPPORTED : BAD_ARGUMENT;
}

ANSWERS(dsmi_get_device_info, (unsigned id, int command, unsigned sub, void *out, unsigned *size),
	give_spod(id, command, sub, out, size))
ANSWERS(dcmi_get_device_info,
	(int card, int chip, int command, unsigned sub, void *out, unsigned *size),
	find(card, chip, out, &dev) ?: as_dcmi(give_spod(dev, command, sub, out, size)))
ANSWERS(dsmi_get_board_info, (int id, struct board_info *out),
	out == NULL ? DSMI_BAD_ARGUMENT : ((unsigned)id < device_count() ? 0 : DSMI_BAD_DEVICE),
	*out = (struct board_info){ .slot = (unsigned)id / chips_per_card() })
ANSWERS(dsmi_get_version, (unsigned id, char *out, unsigned len, unsigned *length),
	out == NULL || length == NULL || len < sizeof(DRIVER_VERSION)
		? DSMI_BAD_ARGUMENT
		: (id < device_count() ? 0 : DSMI_BAD_DEVICE),
	*length = (unsigned)strlen(strcpy(out, DRIVER_VERSION)))
ANSWERS(dcmi_get_driver_version, (char *out, unsigned len),
	as_dcmi(dsmi_get_version(0, out, len, &dev)))
