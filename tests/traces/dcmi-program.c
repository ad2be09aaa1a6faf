/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the driver's management libraries about the server, by its own prototypes and as programs
 * open them, and prints a line for each chip:
 *   CARD CHIP LOGIC PHYSICAL TYPE NAME NPU-NAME AICORES TOTAL-MIB USED-MIB HEALTH
 * another with what surrounds it,
 *   around BUS WATTS CELSIUS CPUS LINKS...
 * one with how much of it is used, which chip it is, and who holds how many bytes of its memory,
 *   use PERCENT WORD WORD WORD WORD WORD PID:BYTES...
 * and for each that has one, its record of the supernode.
 * usage: dcmi-program [MIB], which are held meanwhile on device 0
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CARDS 64

static void *management, *second; /* libdcmi.so, libdrvdsmi_host.so */

/* Linux's list of processors, for the libraries: DCMI_CPUS instead, where that is set. */
__attribute__((visibility("default"))) FILE *fopen64(const char *name, const char *mode)
{
	FILE *(*next)(const char *, const char *);
	char *cpus = getenv("DCMI_CPUS");

	*(void **)&next = dlsym(RTLD_NEXT, "fopen64");
	return cpus != NULL && strncmp(name, "/sys/", 5) == 0 ? fmemopen(cpus, strlen(cpus), mode)
							      : next(name, mode);
}

static void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (found == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

/* Declares `call` as the library's function of that name. */
#define TAKE(library, call, ...)  \
	int (*call)(__VA_ARGS__); \
	*(void **)&call = function(library, #call)

static void want(const char *what, long got, long wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s: %ld, not %ld\n", what, got, wanted);
	exit(1);
}
#define WANT(expression, wanted) want(#expression, (long)(expression), wanted)

struct chip_info {
	unsigned char chip_type[32], chip_name[32], chip_ver[32];
	unsigned int aicore_cnt;
};
struct chip_info_v2 {
	unsigned char chip_type[32], chip_name[32], chip_ver[32];
	unsigned int aicore_cnt;
	unsigned char npu_name[32];
};
struct hbm_info {
	unsigned long long memory_size;
	unsigned int freq;
	unsigned long long memory_usage;
	int temp;
	unsigned int bandwith_util_rate;
};
struct spod_info {
	unsigned int sdid, scale_type, super_pod_id, server_id, chassis_id, super_pod_type;
	unsigned int reserve[6];
};

static void show_spod(int card, int chip, unsigned logic)
{
	TAKE(management, dcmi_get_device_info, int, int, int, unsigned, void *, unsigned *);
	TAKE(second, dsmi_get_device_info, unsigned, int, unsigned, void *, unsigned *);
	struct spod_info spod, same;
	unsigned size = sizeof(spod), short_size = sizeof(spod) - 1;
	int code = dcmi_get_device_info(card, chip, 12, 1, &spod, &size);

	WANT(dcmi_get_device_info(card, chip, 51, 1, &same, &size), -8255);
	if (code != 0) {
		WANT(code, -8255);
		WANT(dsmi_get_device_info(logic, 12, 1, &same, &size), 0xfffe);
		return;
	}
	WANT(size, 48);
	WANT(dsmi_get_device_info(logic, 12, 1, &same, &size), 0);
	WANT(memcmp(&spod, &same, sizeof(spod)), 0);
	WANT(dcmi_get_device_info(card, chip, 12, 1, &same, &short_size), -8001);
	WANT(dsmi_get_device_info(logic, 12, 1, NULL, &size), 8);
	for (size_t i = 4; i < sizeof(spod) / sizeof(unsigned); i++)
		WANT(((unsigned *)&spod)[i], 0);
	printf("spod %u %u %u %u\n", spod.sdid, spod.scale_type, spod.super_pod_id, spod.server_id);
}

struct pcie_info {
	unsigned int venderid, subvenderid, deviceid, subdeviceid;
	int domain;
	unsigned int bdf_busid, bdf_deviceid, bdf_funcid;
	unsigned char reserve[32];
};
struct board_info {
	unsigned int board_id, pcb_id, bom_id, slot_id;
};

static void show_around(int card, int chip, int logic, const struct hbm_info *hbm)
{
	TAKE(management, dcmi_get_device_pcie_info_v2, int, int, struct pcie_info *);
	TAKE(management, dcmi_get_device_power_info, int, int, int *);
	TAKE(management, dcmi_get_device_temperature, int, int, int *);
	TAKE(management, dcmi_get_affinity_cpu_info_by_device_id, int, int, char *, int *);
	TAKE(management, dcmi_get_topo_info_by_device_id, int, int, int, int, int *);
	TAKE(second, dsmi_get_board_info, int, struct board_info *);
	struct pcie_info bus;
	struct board_info board;
	int watts, celsius, length, kind;
	char cpus[33];

	cpus[32] = 'g';
	WANT(dcmi_get_device_pcie_info_v2(card, chip, &bus), 0);
	WANT(bus.venderid, 0x19e5);
	WANT(bus.domain == 0 && bus.bdf_deviceid == 0 && bus.bdf_funcid == 0, 1);
	WANT(dcmi_get_device_power_info(card, chip, &watts), 0);
	WANT(dcmi_get_device_temperature(card, chip, &celsius), 0);
	WANT(hbm->temp, celsius);
	WANT(dcmi_get_affinity_cpu_info_by_device_id(card, chip, cpus, &length), 0);
	WANT(length, strlen(cpus));
	WANT(cpus[32], 'g');
	WANT(dcmi_get_affinity_cpu_info_by_device_id(card, chip, cpus, NULL), -8001);
	WANT(dsmi_get_board_info(logic, &board), 0);
	WANT(board.slot_id, card);
	WANT(dsmi_get_board_info(logic, NULL), 8);
	printf("around 0000:%02X:00.0 %d.%d %d %s", bus.bdf_busid, watts / 10, watts % 10, celsius,
	       cpus);
	for (int i = 0; dcmi_get_topo_info_by_device_id(card, chip, i, 0, &kind) == 0; i++) {
		for (int k = 0; dcmi_get_topo_info_by_device_id(card, chip, i, k, &kind) == 0; k++)
			printf(" %d", kind);
	}
	printf("\n");
}

struct process_memory {
	int proc_id;
	unsigned long proc_mem_usage;
};

static void show_use(int card, int chip)
{
	TAKE(management, dcmi_get_device_utilization_rate, int, int, int, unsigned *);
	TAKE(management, dcmi_get_device_die_v2, int, int, int, unsigned *);
	TAKE(management, dcmi_get_device_resource_info, int, int, struct process_memory *, int *);
	TAKE(management, dcmi_get_device_memory_info_v3, int, int, void *);
	TAKE(management, dcmi_get_product_type, int, int, char *, int);
	static const int codes[] = { -8001, -8255, 0, 0,     0, -8255, 0, -8255,
				     -8255, -8255, 0, -8255, 0, 0,     0, -8001 };
	struct process_memory holders[64];
	unsigned rate, percent, die[6] = { [5] = 0x600d };
	int count;
	char text[96]; /* as long as the record of memory */

	WANT(dcmi_get_device_utilization_rate(card, chip, 6, &percent), 0);
	for (int what = 0; what < (int)(sizeof(codes) / sizeof(codes[0])); what++) {
		rate = 99;
		WANT(dcmi_get_device_utilization_rate(card, chip, what, &rate), codes[what]);
		WANT(rate, codes[what] != 0 ? 99 : what == 6 ? percent : 0);
	}
	WANT(dcmi_get_device_utilization_rate(card, chip, -1, &rate), -8001);
	WANT(dcmi_get_device_utilization_rate(card, chip, 2, NULL), -8001);
	WANT(dcmi_get_device_die_v2(card, chip, 0, die), -8255);
	WANT(dcmi_get_device_die_v2(card, chip, 2, die), -8001);
	WANT(dcmi_get_device_die_v2(card, chip, 1, die), 0);
	WANT(die[5], 0x600d);
	WANT(dcmi_get_device_memory_info_v3(card, chip, text), -8255);
	WANT(dcmi_get_device_memory_info_v3(card, chip, NULL), -8001);
	WANT(dcmi_get_product_type(card, chip, text, 32), -8255);
	WANT(dcmi_get_product_type(card, chip, text, 31), -8001);
	WANT(dcmi_get_device_resource_info(card, chip, holders, NULL), -8001);
	WANT(dcmi_get_device_resource_info(card, chip, holders, &count), 0);
	printf("use %u", percent);
	for (int i = 0; i < 5; i++)
		printf(" %08X", die[i]);
	for (int i = 0; i < count; i++)
		printf(" %d:%lu", holders[i].proc_id, holders[i].proc_mem_usage);
	printf("\n");
}

static void show_chip(int card, int chip)
{
	TAKE(management, dcmi_get_device_logic_id, int *, int, int);
	TAKE(management, dcmi_get_device_phyid_from_logicid, unsigned, unsigned *);
	TAKE(management, dcmi_get_device_logicid_from_phyid, unsigned, unsigned *);
	TAKE(management, dcmi_get_card_id_device_id_from_logicid, int *, int *, unsigned);
	TAKE(management, dcmi_get_card_id_device_id_from_phyid, int *, int *, unsigned);
	TAKE(management, dcmi_get_device_chip_info, int, int, struct chip_info *);
	TAKE(management, dcmi_get_device_chip_info_v2, int, int, struct chip_info_v2 *);
	TAKE(management, dcmi_get_device_hbm_info, int, int, struct hbm_info *);
	TAKE(management, dcmi_get_device_health, int, int, unsigned *);
	struct chip_info_v2 info;
	struct {
		struct chip_info info;
		unsigned guard;
	} old = { .guard = 0x600d };
	struct hbm_info hbm;
	unsigned phy, back, health;
	int logic, seen_card, seen_chip;

	WANT(dcmi_get_device_logic_id(&logic, card, chip), 0);
	WANT(dcmi_get_device_phyid_from_logicid((unsigned)logic, &phy), 0);
	WANT(dcmi_get_device_logicid_from_phyid(phy, &back), 0);
	WANT(back, logic);
	WANT(dcmi_get_card_id_device_id_from_logicid(&seen_card, &seen_chip, (unsigned)logic), 0);
	WANT(seen_card == card && seen_chip == chip, 1);
	WANT(dcmi_get_card_id_device_id_from_phyid(&seen_card, &seen_chip, phy), 0);
	WANT(seen_card == card && seen_chip == chip, 1);
	WANT(dcmi_get_device_chip_info_v2(card, chip, &info), 0);
	WANT(dcmi_get_device_chip_info(card, chip, &old.info), 0);
	WANT(memcmp(&old.info, &info, sizeof(old.info)), 0);
	WANT(old.guard, 0x600d);
	WANT(dcmi_get_device_hbm_info(card, chip, &hbm), 0);
	WANT(dcmi_get_device_health(card, chip, &health), 0);
	printf("%d %d %d %u %s %s %s %u %llu %llu %u\n", card, chip, logic, phy, info.chip_type,
	       info.chip_name, info.npu_name[0] ? (char *)info.npu_name : "-", info.aicore_cnt,
	       hbm.memory_size, hbm.memory_usage, health);
	show_around(card, chip, logic, &hbm);
	show_use(card, chip);
	show_spod(card, chip, (unsigned)logic);
}

static void expect_refusals(int cards)
{
	TAKE(management, dcmi_get_device_num_in_card, int, int *);
	TAKE(management, dcmi_get_device_logic_id, int *, int, int);
	TAKE(management, dcmi_get_device_health, int, int, unsigned *);
	TAKE(management, dcmi_get_card_id_device_id_from_logicid, int *, int *, unsigned);
	TAKE(management, dcmi_get_card_id_device_id_from_phyid, int *, int *, unsigned);
	TAKE(management, dcmi_get_device_phyid_from_logicid, unsigned, unsigned *);
	TAKE(second, dsmi_get_version, int, char *, unsigned, unsigned *);
	TAKE(second, dsmi_get_board_info, int, struct board_info *);
	TAKE(management, dcmi_get_topo_info_by_device_id, int, int, int, int, int *);
	struct board_info board;
	unsigned health = 7, length;
	int number = 7, other = 7;
	char text[64];

	WANT(dcmi_get_device_num_in_card(cards, &number), -8001);
	WANT(dcmi_get_device_num_in_card(-1, &number), -8001);
	WANT(dcmi_get_device_num_in_card(INT32_MAX, &number), -8001);
	WANT(dcmi_get_device_num_in_card(0, NULL), -8001);
	WANT(dcmi_get_device_logic_id(&number, 0, 2), -8001);
	WANT(dcmi_get_device_logic_id(&number, 0, -1), -8001);
	WANT(dcmi_get_device_health(0, 0, NULL), -8001);
	WANT(dcmi_get_device_health(cards, 0, &health), -8001);
	WANT(dcmi_get_card_id_device_id_from_logicid(&number, &other, 500), -8008);
	WANT(dcmi_get_card_id_device_id_from_phyid(&number, &other, 500), -8008);
	WANT(dcmi_get_card_id_device_id_from_logicid(NULL, &other, 0), -8001);
	WANT(dcmi_get_device_phyid_from_logicid(500, &health), -8001);
	WANT(dcmi_get_device_phyid_from_logicid(0, NULL), -8001);
	WANT(dsmi_get_version(500, text, sizeof(text), &length), 2);
	WANT(dsmi_get_version(0, text, 3, &length), 8);
	WANT(number == 7 && other == 7 && health == 7, 1);
	WANT(dsmi_get_board_info(500, NULL), 8);
	WANT(dsmi_get_board_info(-1, &board), 2);
	WANT(dcmi_get_topo_info_by_device_id(0, 0, cards, 0, &number), -8001);
	WANT(dcmi_get_topo_info_by_device_id(cards, 0, 0, 0, &number), -8001);
	WANT(dcmi_get_topo_info_by_device_id(0, 0, 0, 0, NULL), -8001);
	WANT(number, 7);
	WANT(dlsym(management, "dcmi_get_device_voltage") == NULL, 1);
}

#define NODE_FILE    "/memfd:npusim-node:"
#define NODE_VERSION 8 /* where it stands in the file */

/* Who holds memory cannot be seen in a node that another version runs, as it seems here. */
static void expect_failed_listing(void)
{
	TAKE(management, dcmi_get_device_resource_info, int, int, struct process_memory *, int *);
	struct process_memory holders[64];
	char path[32], name[64] = "";
	uint32_t version, another = 99;
	int count, fd = -1;

	while (strncmp(name, NODE_FILE, strlen(NODE_FILE)) != 0 && ++fd < 1024) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) < 0)
			name[0] = '\0';
	}
	WANT(pread(fd, &version, 4, NODE_VERSION), 4);
	WANT(pwrite(fd, &another, 4, NODE_VERSION), 4);
	WANT(dcmi_get_device_resource_info(0, 0, holders, &count), -8008);
	WANT(pwrite(fd, &version, 4, NODE_VERSION), 4);
	WANT(dcmi_get_device_resource_info(0, 0, holders, &count), 0);
	WANT(count, 1);
}

static void hold(size_t mib)
{
	void *acl = open_library("libascendcl.so"), *memory;
	TAKE(acl, aclInit, const char *);
	TAKE(acl, aclrtSetDevice, int);
	TAKE(acl, aclrtMalloc, void **, size_t, int);

	WANT(aclInit(NULL), 0);
	WANT(aclrtSetDevice(0), 0);
	WANT(aclrtMalloc(&memory, mib << 20, 0), 0);
}

int main(int argc, char **argv)
{
	management = open_library("libdcmi.so");
	second = open_library("libdrvdsmi_host.so");
	TAKE(management, dcmi_init, void);
	TAKE(management, dcmi_get_card_list, int *, int *, int);
	TAKE(management, dcmi_get_card_num_list, int *, int *, int);
	TAKE(management, dcmi_get_device_num_in_card, int, int *);
	TAKE(management, dcmi_get_device_id_in_card, int, int *, int *, int *);
	TAKE(management, dcmi_get_driver_version, char *, unsigned);
	TAKE(second, dsmi_get_version, int, char *, unsigned, unsigned *);
	int list[MAX_CARDS], cards, same, chips, end, mcu, cpu;
	char version[64], again[64];
	unsigned length;

	if (argc > 1)
		hold(strtoul(argv[1], NULL, 10));
	WANT(dcmi_init(), 0);
	WANT(dcmi_get_card_list(&cards, list, MAX_CARDS), 0);
	for (int i = 0; i < cards; i++) {
		WANT(dcmi_get_device_num_in_card(list[i], &chips), 0);
		WANT(dcmi_get_device_id_in_card(list[i], &end, &mcu, &cpu), 0);
		WANT(end == chips && mcu == -1 && cpu == -1, 1);
		for (int chip = 0; chip < chips; chip++)
			show_chip(list[i], chip);
	}
	list[0] = list[1] = 99;
	WANT(dcmi_get_card_num_list(&same, list, 1), 0); /* a list that is too short */
	WANT(same == cards && list[0] == 0 && list[1] == 99, 1);
	expect_refusals(cards);
	if (argc > 1)
		expect_failed_listing();
	WANT(dcmi_get_driver_version(version, sizeof(version)), 0);
	WANT(dsmi_get_version(0, again, sizeof(again), &length), 0);
	WANT(strcmp(version, again) == 0 && strlen(version) == length, 1);
	printf("driver %s\n", version);
	return 0;
}
