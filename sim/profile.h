/* SPDX-License-Identifier: Apache-2.0
 *
 * A device profile: every constant of the model of one SoC, read from an ini file in the style of
 * CANN's platform_config. Each key names its unit; the source of each value is given next to it in
 * the ini file, or the word "assumed". It owns parsing and checking; it simulates nothing.
 */
#ifndef NPUSIM_SIM_PROFILE_H
#define NPUSIM_SIM_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Driver calls that take simulated time. */
enum sim_call {
	SIM_CALL_RESERVE,
	SIM_CALL_ADDRESS_FREE,
	SIM_CALL_CREATE,
	SIM_CALL_RELEASE,
	SIM_CALL_MAP,
	SIM_CALL_UNMAP,
	SIM_CALL_ACCESS,
	SIM_CALL_EXPORT,
	SIM_CALL_IMPORT,
	SIM_CALL_ALLOC,  /* classic allocation: halMemAlloc */
	SIM_CALL_FREE,   /* classic free */
	SIM_CALL_QUERY,  /* anything that asks the driver without a message to the device */
	SIM_CALL_SUBMIT, /* a task written to a submission queue, doorbell included */
	SIM_CALL_COPY,   /* start of a synchronous copy or fill */
	SIM_CALL_STREAM, /* a stream's submission queue */
	SIM_CALL_STALL,  /* no call: what creating memory newly adds now and then */
	/* no calls: what the runtime itself does, by enum npu_work's order */
	SIM_CALL_EVENT,
	SIM_CALL_EVENT_DESTROY,
	SIM_CALL_EVENT_RECORD,
	SIM_CALL_EVENT_WAIT,
	SIM_CALL_EVENT_SYNC,
	SIM_CALL_STREAM_SYNC,
	SIM_CALL_DEVICE_SYNC,
	SIM_CALL_HOST_WAKE,
	SIM_CALL_COUNT
};

/* t = base + ceil(pages / pages_per_message) x message + pages x page + min(pages, head_pages) x
 * head_page; a 1 GiB page counts as giant_units pages. */
struct sim_call_cost {
	uint64_t base_ns;
	uint64_t message_ns;
	uint64_t pages_per_message;
	uint64_t page_ns;
	uint64_t giant_units;
	uint64_t head_pages; /* the first pages of a call, where they cost more than the others */
	uint64_t head_page_ns;
};

/* What a device does with memory of another server. */
enum sim_remote {
	SIM_REMOTE_READ, /* of a device's memory */
	SIM_REMOTE_WRITE,
	SIM_REMOTE_HOST_READ,
	SIM_REMOTE_HOST_WRITE,
	SIM_REMOTE_COUNT
};

struct sim_remote_cost {
	uint64_t bytes_per_us;        /* of the device's way into the plane between servers */
	uint64_t engine_bytes_per_us; /* what one copy engine gets out of it */
	uint64_t ps;                  /* latency of a request */
};

/* Every JEDEC parameter that the model uses, in clocks. */
struct sim_hbm_clocks {
	uint64_t cl, cwl, rcd_rd, rcd_wr, rp, ras, rc, wr, rtp, ccd_s, ccd_l, rrd_s, rrd_l, wtr_s,
		wtr_l, faw, rfc, refi, rfc_sb, refi_sb, rtw;
};

struct sim_profile {
	/* [SoCInfo] */
	char soc_name[32];         /* as aclrtGetSocName prints it */
	char short_name[32];       /* Ascend910B or Ascend910_93 */
	uint32_t hardware_version; /* arch << 16 | chip << 8 | bin, as halGetDeviceInfo(SYSTEM,
				      VERSION) answers */
	bool is_910c;              /* a die of a 910C: NoUC reservations, SIO to the other die */
	unsigned default_devices;  /* of a server with it */
	unsigned cube_cores, vector_cores, aicpu_cores;
	uint64_t core_khz;
	uint64_t hbm_bytes;     /* one device's HBM */
	uint64_t usable_frames; /* 2 MiB frames left to users; the rest is firmware's, system's and
				   page tables' */
	uint64_t runtime_bytes; /* what CANN's runtime holds of a device in each process */
	uint64_t host_bytes;    /* memory of the host that handles may take */
	unsigned host_numa_nodes;
	char near_nodes[64];  /* by device: the host's NUMA node that it hangs on; or "none" */
	int8_t near_node[32]; /* of them, by device; -1: none is nearer than others, or known */
	bool giant_pages;     /* 1 GiB pages on the device */
	uint64_t l2_bytes;
	/* [MMU] */
	unsigned tlb_l1_entries, tlb_l2_entries, tlb_l2_ways, walkers, walk_cache_entries;
	uint64_t tlb_l1_ps, tlb_l2_ps;
	/* [HBM]: clocks are of tck_ps */
	uint64_t hbm_tck_ps;
	unsigned hbm_stacks, hbm_channels, hbm_pseudo_channels, hbm_bank_groups, hbm_banks,
		hbm_columns, hbm_burst;
	uint64_t hbm_rows;
	struct sim_hbm_clocks hbm_clocks;
	unsigned hbm_queue; /* requests that a pseudo channel's scheduler sees */
	bool hbm_refresh, hbm_refresh_per_bank;
	char hbm_map[64]; /* address interleave, see sim/TIMING.md */
	/* [L2] */
	uint64_t l2_line_bytes, l2_block_bytes, l2_hit_ps, l2_bytes_per_us, l2_conflict_ps;
	unsigned l2_ways;
	/* [Engine], [Link]: bandwidths in bytes per microsecond (1000 = 1 GB/s), latencies in ps */
	uint64_t sdma_bytes_per_us, sdma_start_ps;
	/* What one engine gets out of a link, where that is less than the link has; 0: all of it.
	 * Of pinned host memory; and between the dies of a chip. */
	uint64_t h2d_engine_bytes_per_us, d2h_engine_bytes_per_us, sdma_sio_bytes_per_us;
	unsigned sdma_outstanding;
	uint64_t core_bytes_per_us, vector_core_bytes_per_us; /* of one core */
	uint64_t core_issue_ps;                   /* a copy instruction takes so long at least */
	uint64_t core_row_ps, vector_core_row_ps; /* and so long for each row of it */
	uint64_t core_outstanding_bytes;          /* that a core may have asked for and not got */
	uint64_t h2d_bytes_per_us, d2h_bytes_per_us, host_link_ps;
	uint64_t peer_read_bytes_per_us, peer_write_bytes_per_us, peer_ps;
	uint64_t sio_bytes_per_us, sio_ps;
	bool host_link_hccs;                             /* HCCS, not PCIe, to the host */
	struct sim_remote_cost remote[SIM_REMOTE_COUNT]; /* all 0: in no supernode */
	/* [DriverCalls] */
	struct sim_call_cost call[SIM_CALL_COUNT];
};

/* The names of the profiles that are built in, NULL-terminated, sorted; static. */
const char *const *sim_profile_names(void);
/* The built-in profile of a SoC, or that of a file (a name with a slash in it, or that ends in
 * .ini), into *out. False, and *error (g_free) names the SoC and the known ones, or file, group,
 * key and limit: unknown groups and keys, missing keys, values out of range. A file may start from
 * a built-in profile: `[Profile] base=Ascend910B1`, then every key is optional. HBM.map=auto
 * becomes the map of the geometry. */
bool sim_profile_load(const char *name, struct sim_profile *out, char **error);
/* Sets values, "Group.key=value" (the command's --set), up to a NULL. They are checked together:
 * all or none is set. */
bool sim_profile_set(struct sim_profile *profile, char *const *assignments, char **error);
/* The most HBM that a device of this profile may have, in bytes. */
uint64_t sim_profile_hbm_max(const struct sim_profile *profile);
/* The whole profile as an ini text, to be g_free()d. */
char *sim_profile_dump(const struct sim_profile *profile);

/* For who links them: a line for each key, with range, unit and meaning; and each built-in profile
 * as an ini text with meaning, range and source above each value, up to a NULL name. */
struct sim_profile_text {
	const char *name, *text;
};
extern const char sim_profile_keys[];
extern const struct sim_profile_text sim_profile_texts[];

/* Simulated time of a driver call on `pages` pages of 2^page_lg2 bytes (12, 21 or 30; 0: that need
 * no message), in ps. */
uint64_t sim_call_ps(const struct sim_profile *profile, enum sim_call call, uint64_t pages,
		     unsigned page_lg2);

#ifdef __cplusplus
}
#endif

#endif
