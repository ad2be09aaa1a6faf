/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: what is built in, what a file may say, what is refused and how, and what driver calls
 * cost.
 */
#include "harness/test.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/profile.h"

static struct sim_profile load(const char *name)
{
	struct sim_profile profile = { .soc_name = "" };
	g_autofree char *error = NULL;

	if (!EXPECT_TRUE(sim_profile_load(name, &profile, &error)))
		ADD_FAILURE("%s", error);
	return profile;
}

/* Loads `text` from a file; NULL, or the message of the failure. */
static char *load_text(const char *text, struct sim_profile *out)
{
	g_autofree char *path = NULL;
	char *error = NULL;
	int fd = g_file_open_tmp("npusim-profile-XXXXXX.ini", &path, NULL);

	close(fd);
	g_file_set_contents(path, text, -1, NULL);
	if (sim_profile_load(path, out, &error))
		EXPECT_NULL(error);
	else
		EXPECT_TRUE(error && strstr(error, path));
	g_unlink(path);
	return error;
}

TEST(profile, every_builtin_loads_under_its_own_name)
{
	const char *const *names = sim_profile_names();
	unsigned n = 0;

	for (; names[n]; n++) {
		struct sim_profile profile = load(names[n]);

		EXPECT_STREQ(profile.soc_name, names[n]);
		EXPECT_EQ(profile.is_910c, !strcmp(profile.short_name, "Ascend910_93"));
		EXPECT_EQ(profile.default_devices, profile.is_910c ? 16u : 8u);
		EXPECT_EQ(profile.near_node[5] < 0, profile.is_910c);
		EXPECT_EQ(profile.near_node[16], -1);
		if (n)
			EXPECT_LT(strcmp(names[n - 1], names[n]), 0);
	}
	EXPECT_EQ(n, 13u);
}

TEST(profile, near_nodes_are_of_the_host)
{
	struct sim_profile profile = load("Ascend910B3");
	char right[] = "SoCInfo.near_nodes=7 0", wrong[] = "SoCInfo.near_nodes=0 8";
	char *error = NULL;

	EXPECT_EQ(profile.near_node[1], 6);
	ASSERT_TRUE(sim_profile_set(&profile, (char *[]){ right, NULL }, NULL));
	EXPECT_EQ(profile.near_node[1], 0);
	EXPECT_EQ(profile.near_node[2], -1);
	EXPECT_FALSE(sim_profile_set(&profile, (char *[]){ wrong, NULL }, &error));
	EXPECT_TRUE(error != NULL && strstr(error, "below host_numa_nodes=8") != NULL);
	free(error);
}

struct known {
	const char *name;
	uint32_t version;
	unsigned cubes, ghz100;
	uint64_t hbm_gib, frames, l2_mib;
};

static const struct known known[] = {
	{ "Ascend910B1", 0x40501, 24, 185, 64, 31216, 192 },
	{ "Ascend910B2", 0x40502, 24, 180, 64, 31216, 192 },
	{ "Ascend910B2C", 0x40508, 24, 180, 64, 31216, 192 },
	{ "Ascend910B3", 0x40503, 20, 180, 64, 31216, 192 },
	{ "Ascend910B4", 0x40500, 20, 150, 32, 15608, 96 },
	{ "Ascend910B4-1", 0x4050a, 20, 150, 64, 31216, 168 },
	{ "Ascend910_9391", 0x00501, 24, 185, 64, 31370, 192 },
	{ "Ascend910_9392", 0x00501, 24, 185, 64, 31370, 192 },
	{ "Ascend910_9381", 0x00502, 24, 180, 64, 31370, 192 },
	{ "Ascend910_9382", 0x00502, 24, 180, 64, 31370, 192 },
	{ "Ascend910_9372", 0x00503, 20, 180, 64, 31370, 192 },
	{ "Ascend910_9362", 0x0050a, 20, 150, 64, 31370, 168 },
};

TEST(profile, values_that_programs_see)
{
	for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
		struct sim_profile profile = load(known[i].name);

		EXPECT_EQ(profile.hardware_version, known[i].version);
		EXPECT_EQ(profile.cube_cores, known[i].cubes);
		EXPECT_EQ(profile.vector_cores, 2 * known[i].cubes);
		EXPECT_EQ(profile.core_khz, known[i].ghz100 * 10000);
		EXPECT_EQ(profile.hbm_bytes, known[i].hbm_gib << 30);
		EXPECT_EQ(profile.usable_frames, known[i].frames);
		EXPECT_EQ(profile.l2_bytes, known[i].l2_mib << 20);
	}
}

TEST(profile, unknown_soc_names_the_known)
{
	struct sim_profile profile;
	g_autofree char *error = NULL;

	ASSERT_FALSE(sim_profile_load("Ascend310P", &profile, &error));
	EXPECT_CONTAINS(error, "there is no SoC Ascend310P; known are ");
	EXPECT_CONTAINS(error, "Ascend910B1, Ascend910B2,");
}

TEST(profile, dump_is_a_profile)
{
	for (const char *const *name = sim_profile_names(); *name; name++) {
		struct sim_profile profile = load(*name), again;
		g_autofree char *text = sim_profile_dump(&profile);
		g_autofree char *error = load_text(text, &again);

		ASSERT_NULL(error);
		EXPECT_EQ(memcmp(&profile, &again, sizeof(profile)), 0);
	}
}

TEST(profile, file_changes_its_base)
{
	struct sim_profile profile;
	g_autofree char *error = load_text("[Profile]\nbase=Ascend910B4\n"
					   "[MMU]\ntlb_l2_entries=4096 \n"
					   "[HBM]\nrefresh=false\n[SoCInfo]\nl2_bytes=2MiB\n",
					   &profile);

	ASSERT_NULL(error);
	EXPECT_EQ(profile.tlb_l2_entries, 4096u);
	EXPECT_FALSE(profile.hbm_refresh);
	EXPECT_EQ(profile.l2_bytes, UINT64_C(2) << 20);
	EXPECT_EQ(profile.cube_cores, 20u);
}

struct refusal {
	const char *text, *says;
};

static const struct refusal refusals[] = {
	{ "[MMU]\nwalkers=4\n", "is missing in group" },
	{ "[Profile]\nbase=Ascend910B1\n[TLB]\n", "unknown group [TLB]" },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\nwalker=4\n",
	  "unknown key \"walker\" in group [MMU]" },
	{ "[Profile]\nbase=Ascend910B1\ncolour=red\n", "unknown key \"colour\"" },
	{ "[Profile]\nbase=Ascend999\n", "there is no SoC Ascend999; known are " },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\nwalkers=0\n", "MMU.walkers=0: must be 1 to 1024" },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\nwalkers=-1\n", "a whole number is needed" },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\nwalkers=4x\n", "a whole number is needed" },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\nwalkers=\n", "a whole number is needed" },
	{ "[Profile]\nbase=Ascend910B1\n[HBM]\nrefresh=maybe\n", "true or false" },
	{ "[Profile]\nbase=Ascend910B1\n[SoCInfo]\nhbm_bytes=99999999999T\n", "a whole number" },
	{ "[Profile]\nbase=Ascend910B1\n[SoCInfo]\nhbm_bytes=1G\n", "usable_frames=31216" },
	{ "[Profile]\nbase=Ascend910B1\n[MMU]\ntlb_l2_ways=7\n", "multiple of tlb_l2_ways=7" },
	{ "[Profile]\nbase=Ascend910B1\n[L2]\nways=17\n", "L2.ways=17: must be 1 to 16" },
	{ "[Profile]\nbase=H100\n[L2]\nline_bytes=32\nblock_bytes=32\n",
	  "L2.block_bytes=32: SoCInfo.hbm_bytes=85899345920 has more than 2^30" },
	{ "[Profile]\nbase=Ascend910B1\n[HBM]\nrefi_tck=616\n",
	  "HBM.refi_tck: a bank's refreshes are 616 clocks apart: must be more than 663, rfc_tck "
	  "+ rp_tck + what a row is open for" },
	{ "[Profile]\nbase=Ascend910B1\n[HBM]\nrefresh_per_bank=true\nrefi_sb_tck=23\n",
	  "HBM.refi_sb_tck: a bank's refreshes are 368 clocks apart: must be more than 423, "
	  "rfc_sb_tck + rp_tck + what a row is open for" },
	{ "[Profile]\nbase=Ascend910B1\n[HBM]\nccd_s_tck=2\nccd_l_tck=25\n",
	  "HBM.ccd_l_tck=25: must be at most 12 x ccd_s_tck=2" },
	{ "[Profile]\nbase=Ascend910B1\n[HBM]\nmap=o5 c5 h3\n", "HBM.map=o5 c5 h3" },
	{ "base=Ascend910B1\n", "group" },
};

TEST(profile, file_is_refused_with_the_place)
{
	for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
		struct sim_profile profile;
		g_autofree char *error = load_text(refusals[i].text, &profile);

		if (EXPECT_NOT_NULL(error))
			EXPECT_CONTAINS(error, refusals[i].says);
	}
}

TEST(profile, missing_file_is_named)
{
	struct sim_profile profile;
	g_autofree char *error = NULL;

	ASSERT_FALSE(sim_profile_load("/nonexistent/x.ini", &profile, &error));
	EXPECT_CONTAINS(error, "/nonexistent/x.ini");
}

TEST(profile, file_without_end_is_refused)
{
	struct sim_profile profile;
	g_autofree char *error = NULL, *folder = NULL;

	ASSERT_FALSE(sim_profile_load("/dev/zero", &profile, &error));
	EXPECT_CONTAINS(error, "/dev/zero: 1048576 bytes or more");
	ASSERT_FALSE(sim_profile_load("/tmp/", &profile, &folder));
	EXPECT_CONTAINS(folder, "/tmp/: Is a directory");
}

TEST(profile, old_key_is_told_its_new_name)
{
	struct sim_profile profile;
	g_autofree char *error =
		load_text("[Profile]\nbase=Ascend910B1\n[Engine]\ncore_outstanding=64\n", &profile);

	EXPECT_CONTAINS(error, "is core_outstanding_bytes meant?");
}

/* Assignments, "; " between them. */
static bool set(struct sim_profile *profile, const char *assignments, char **error)
{
	g_auto(GStrv) each = g_strsplit(assignments, "; ", -1);

	return sim_profile_set(profile, each, error);
}

static const struct meant {
	const char *title, *assignment, *key;
} meant[] = {
	{ "beginning_alone", "core_outstanding=1", "Engine.core_outstanding_bytes" },
	{ "typo_without_a_group", "wakers=1", "MMU.walkers" },
	{ "no_such_group", "Cores.core_outstanding=1", "Engine.core_outstanding_bytes" },
	{ "another_group", "HBM.tlb_l2_ways=1", "MMU.tlb_l2_ways" },
	{ "of_two_that_of_its_group", "Link.h2d_bytes_per_u=1", "Link.h2d_bytes_per_us" },
};

TEST_EACH(profile, key_that_is_not_there_is_told_its_nearest, meant, title)
{
	const struct meant *c = param;
	struct sim_profile profile = load("Ascend910B1");
	g_autofree char *error = NULL, *wanted = g_strdup_printf("; is %s meant?", c->key);

	EXPECT_FALSE(set(&profile, c->assignment, &error));
	EXPECT_CONTAINS(error, wanted);
}

TEST(profile, set_changes_all_values_or_none)
{
	struct sim_profile profile = load("Ascend910B1"), before = profile;
	g_autofree char *error = NULL, *error2 = NULL, *error3 = NULL;

	EXPECT_TRUE(set(&profile, "DriverCalls.map_page_ns=77; MMU.walkers=5", &error));
	EXPECT_EQ(profile.call[SIM_CALL_MAP].page_ns, 77u);
	EXPECT_EQ(profile.walkers, 5u);
	before = profile;
	EXPECT_FALSE(set(&profile, "MMU.walkers=6; MMU.nothing=1", &error));
	EXPECT_CONTAINS(error, "\"MMU.nothing=1\": there is no such key");
	EXPECT_FALSE(set(&profile, "walkers", &error2));
	EXPECT_CONTAINS(error2, "Group.key=value");
	EXPECT_FALSE(set(&profile, "MMU.tlb_l2_ways=3", &error3));
	EXPECT_EQ(memcmp(&profile, &before, sizeof(profile)), 0);
}

/* Each alone contradicts the others' old values. */
TEST(profile, values_that_depend_on_one_another_are_set_together)
{
	struct sim_profile profile = load("Ascend910B1");
	g_autofree char *error = NULL;

	EXPECT_TRUE(set(&profile, "MMU.tlb_l2_ways=7; MMU.tlb_l2_entries=7", &error));
	EXPECT_TRUE(set(&profile, "HBM.map=o5 c2 s3 h3x p1x g2 c3 b2 r16; HBM.stacks=8", &error));
	EXPECT_EQ(profile.hbm_stacks, 8u);
}

TEST(profile, map_auto_is_that_of_the_geometry)
{
	struct sim_profile profile = load("Ascend910B1"), before = profile;
	g_autofree char *error = NULL;

	EXPECT_TRUE(set(&profile, "HBM.map=auto", &error));
	EXPECT_EQ(memcmp(&profile, &before, sizeof(profile)), 0);
	EXPECT_TRUE(set(&profile, "HBM.map=auto; HBM.stacks=8; HBM.columns=2", &error));
	EXPECT_STREQ(profile.hbm_map, "o5 c1 s3 h3x p1x g2 c0 b2 r16");
	EXPECT_FALSE(set(&profile, "HBM.stacks=4", &error));
	EXPECT_CONTAINS(error, "3 bits of 's', where the geometry has 2");
}

/* What npusim profile shows of it. */
TEST(profile, shown_is_the_same_profile)
{
	const struct sim_profile_text *shown = sim_profile_texts;

	for (const char *const *name = sim_profile_names(); *name; name++, shown++) {
		struct sim_profile profile = load(*name), again;
		g_autofree char *error = load_text(shown->text, &again);

		ASSERT_NULL(error);
		EXPECT_STREQ(shown->name, *name);
		EXPECT_EQ(memcmp(&profile, &again, sizeof(profile)), 0);
	}
	EXPECT_NULL(shown->name);
	EXPECT_CONTAINS(sim_profile_texts[3].text, "\n# entries of a core's TLB (1 to 65536). "
						   "Source: assumed: about 65");
	EXPECT_CONTAINS(sim_profile_texts[3].text, "(tRFC) (0 to 100000 clocks). Source: 350 ns");
}

/* No value has the source of another one that stands above it. */
static const struct stated {
	const char *title, *soc, *key, *source; /* begins so */
} stated[] = {
	{ "create", "Ascend910_9391", "create_page_ns", "910B2C, 20 MiB, measured" },
	{ "create_giant", "Ascend910_9391", "create_giant_units", "assumed" },
	{ "create_message", "Ascend910_9391", "create_pages_per_message", "the driver's source" },
	{ "map_giant", "Ascend910B1", "map_giant_units", "assumed" },
	{ "reserve_giant", "Ascend910B1", "reserve_giant_units", "assumed" },
	{ "stream", "Ascend910_9391", "stream_base_ns", "aclrtCreateStreamWithConfig on a 910B2C" },
	{ "faw", "Ascend910B1", "faw_tck", "Ramulator 2's HBM2 preset" },
	{ "peer_read", "Ascend910_9391", "peer_read_bytes_per_us", "memfabric_hybrid README" },
	{ "peer_write", "Ascend910_9391", "peer_write_bytes_per_us", "memfabric_hybrid README" },
	{ "host_hccs", "Ascend910_9391", "host_hccs", "inferred" },
	{ "h100_export", "H100", "export_base_ns", "assumed" },
};

TEST_EACH(profile, value_has_a_source_of_its_own, stated, title)
{
	const struct stated *it = param;
	const struct sim_profile_text *shown = sim_profile_texts;
	g_autofree char *key = g_strdup_printf("\n%s=", it->key);
	g_autofree char *source = NULL;
	const char *from;

	while (strcmp(shown->name, it->soc) != 0)
		shown++;
	from = g_strrstr_len(shown->text, strstr(shown->text, key) - shown->text, "Source: ");
	source = g_strndup(from + strlen("Source: "), strlen(it->source));
	EXPECT_STREQ(source, it->source);
}

TEST(profile, keys_are_those_of_a_dump)
{
	struct sim_profile profile = load("Ascend910B1");
	g_autofree char *dump = sim_profile_dump(&profile);
	g_auto(GStrv) lines = g_strsplit(dump, "\n", -1);
	g_auto(GStrv) keys = g_strsplit(sim_profile_keys, "\n", -1);
	size_t key = 0;

	for (size_t i = 0; lines[i]; i++) {
		char *equals = strchr(lines[i], '=');

		if (!equals)
			continue;
		*equals = ' ';
		equals[1] = '\0';
		EXPECT_CONTAINS(keys[key], lines[i]);
		key++;
	}
	EXPECT_EQ(key + 1, g_strv_length(keys));
}

static uint64_t cost_ns(const struct sim_profile *profile, enum sim_call call, uint64_t pages,
			unsigned lg2)
{
	return sim_call_ps(profile, call, pages, lg2) / 1000;
}

TEST(profile, driver_calls_cost_messages_and_pages)
{
	struct sim_profile p = load("Ascend910B1");
	const struct sim_call_cost *create = &p.call[SIM_CALL_CREATE], *map = &p.call[SIM_CALL_MAP];

	EXPECT_EQ(cost_ns(&p, SIM_CALL_CREATE, 1, 21),
		  create->base_ns + create->message_ns + create->page_ns);
	EXPECT_EQ(cost_ns(&p, SIM_CALL_CREATE, 3072, 21),
		  create->base_ns + create->message_ns + 3072 * create->page_ns);
	EXPECT_EQ(cost_ns(&p, SIM_CALL_CREATE, 3073, 21),
		  create->base_ns + 2 * create->message_ns + 3073 * create->page_ns);
	EXPECT_EQ(cost_ns(&p, SIM_CALL_CREATE, 1, 30), cost_ns(&p, SIM_CALL_CREATE, 512, 21));
	EXPECT_EQ(cost_ns(&p, SIM_CALL_MAP, 513, 21),
		  map->base_ns + 2 * map->message_ns + 513 * map->page_ns);
	EXPECT_EQ(cost_ns(&p, SIM_CALL_MAP, 1, 30), cost_ns(&p, SIM_CALL_MAP, 1, 21));
	EXPECT_EQ(cost_ns(&p, SIM_CALL_RESERVE, 1000, 21),
		  cost_ns(&p, SIM_CALL_RESERVE, 1, 30) + 999 * p.call[SIM_CALL_RESERVE].page_ns);
	EXPECT_EQ(cost_ns(&p, SIM_CALL_QUERY, 0, 12), p.call[SIM_CALL_QUERY].base_ns);
}

/* The shape that an H100 shows (medians of 200 and 40 calls, driver 570): mapping hardly grows with
 * size, creating and releasing do, and no call gets cheaper. */
TEST(profile, driver_calls_have_a_measured_shape)
{
	static const uint64_t mib[] = { 2, 16, 128, 1024, 4096, 16384 };
	struct sim_profile p = load("Ascend910B1");
	static const enum sim_call calls[] = { SIM_CALL_CREATE, SIM_CALL_RELEASE, SIM_CALL_MAP,
					       SIM_CALL_UNMAP, SIM_CALL_ACCESS };

	for (size_t c = 0; c < G_N_ELEMENTS(calls); c++)
		for (size_t i = 1; i < G_N_ELEMENTS(mib); i++)
			EXPECT_GE(cost_ns(&p, calls[c], mib[i] / 2, 21),
				  cost_ns(&p, calls[c], mib[i - 1] / 2, 21));
	EXPECT_GT(cost_ns(&p, SIM_CALL_CREATE, 8192, 21), 10 * cost_ns(&p, SIM_CALL_CREATE, 1, 21));
	EXPECT_GT(cost_ns(&p, SIM_CALL_RELEASE, 8192, 21),
		  10 * cost_ns(&p, SIM_CALL_RELEASE, 1, 21));
	EXPECT_LT(cost_ns(&p, SIM_CALL_MAP, 64, 21), 3 * cost_ns(&p, SIM_CALL_MAP, 1, 21));
	/* 68.6 GiB on a 910B2C */
	EXPECT_NEAR(cost_ns(&p, SIM_CALL_RESERVE, 35120, 21), 843000, 84300);
}
