/* SPDX-License-Identifier: Apache-2.0
 *
 * Each timing parameter of the HBM alone: a few requests for which it decides when the last one is
 * done. A parameter that is four clocks longer makes that four clocks later; a parameter of a
 * profile that has no case here fails.
 */
#include "harness/test.h"

#include <glib.h>
#include <string.h>

#include "sim/hbm/hbm.h"

#define TCK        625u
#define LATER      4u    /* clocks */
#define START      1200u /* a clock; where slots of the bus begin, whatever tCCD_S is */
#define BURST      32u   /* bytes */
#define NEXT_GROUP (UINT64_C(1) << 10) /* the same bank of another bank group */
#define NEXT_BANK  (UINT64_C(1) << 16) /* of the same bank group */
#define NEXT_ROW   (UINT64_C(1) << 18) /* of the same bank */
#define REFI       6240u
#define REFI_SB    (16 * 390u) /* of one bank */
#define STEPS_MAX  6

struct step {
	uint64_t at; /* clock */
	uint64_t offset;
	bool write;
};

/* The buffer for writes has one place: a write is in its row when the next one comes. */
struct parameter {
	const char *name;  /* HBM.key */
	const char *first; /* set before, where the profile's value decides nothing; may be NULL */
	const char *more;  /* other settings; may be NULL */
	struct step step[STEPS_MAX];
	unsigned steps;
	unsigned done;   /* the last request is done then, clocks from its time on */
	unsigned factor; /* clocks later for each clock that the parameter is longer */
};

#define READ(at, offset)                    \
	{                                   \
		START + (at), offset, false \
	}
#define WRITE(at, offset)                  \
	{                                  \
		START + (at), offset, true \
	}

/* The sums: an activation takes one clock more than tRCD; slots are of two clocks, so an odd clock
 * of a CAS goes to the next even one. */
static const struct parameter parameters[] = {
	/* RCD 23 + 1, CL 23, burst 2 */
	{ "HBM.cl_tck", NULL, NULL, { READ(0, 0) }, 1, 24 + 23 + 2, 1 },
	{ "HBM.rcd_rd_tck", NULL, NULL, { READ(0, 0) }, 1, 24 + 23 + 2, 1 },
	/* RCD 19 + 1, CWL 8, burst 2, WTR_S 11: the read's CAS at 41, so 42 */
	{ "HBM.rcd_wr_tck",
	  NULL,
	  NULL,
	  { WRITE(0, 0), WRITE(0, NEXT_BANK), READ(0, NEXT_GROUP) },
	  3,
	  42 + 23 + 2,
	  1 },
	{ "HBM.cwl_tck",
	  NULL,
	  NULL,
	  { WRITE(0, 0), WRITE(0, NEXT_BANK), READ(0, NEXT_GROUP) },
	  3,
	  42 + 23 + 2,
	  1 },
	{ "HBM.wtr_s_tck",
	  NULL,
	  NULL,
	  { WRITE(0, 0), WRITE(0, NEXT_BANK), READ(0, NEXT_GROUP) },
	  3,
	  42 + 23 + 2,
	  1 },
	/* the same bank group: WTR_L 14 */
	{ "HBM.wtr_l_tck",
	  NULL,
	  NULL,
	  { WRITE(0, 0), WRITE(0, NEXT_GROUP), READ(0, 2 * NEXT_BANK) },
	  3,
	  44 + 23 + 2,
	  1 },
	/* the written bank, another row: WR 26 after the data, then RP 23, RCD 24 */
	{ "HBM.wr_tck",
	  NULL,
	  NULL,
	  { WRITE(0, 0), WRITE(0, NEXT_GROUP), READ(0, NEXT_ROW) },
	  3,
	  (20 + 8 + 2 + 26 + 23 + 24 + 1) + 23 + 2,
	  1 },
	/* a read's CAS at 24; RTW 19 to the write's at 43, so 44; CWL 8, burst 2, WTR_S 11 */
	{ "HBM.rtw_tck",
	  NULL,
	  NULL,
	  { READ(0, 2 * NEXT_GROUP), READ(600, 0), WRITE(600, NEXT_GROUP), WRITE(600, NEXT_BANK),
	    READ(600, 2 * NEXT_GROUP) },
	  5,
	  (44 + 8 + 2 + 11 + 1) + 23 + 2,
	  1 },
	/* a row that has been open for long */
	{ "HBM.rp_tck",
	  NULL,
	  NULL,
	  { READ(0, 0), READ(400, NEXT_ROW) },
	  2,
	  23 + 24 + 1 + 23 + 2,
	  1 },
	/* RAS 54 and RP 23, RC 77: the same sum */
	{ "HBM.ras_tck",
	  NULL,
	  NULL,
	  { READ(0, 0), READ(0, NEXT_ROW) },
	  2,
	  77 + 24 + 1 + 23 + 2,
	  1 },
	{ "HBM.rc_tck", NULL, NULL, { READ(0, 0), READ(0, NEXT_ROW) }, 2, 77 + 24 + 1 + 23 + 2, 1 },
	/* a late hit, RTP 8 to the precharge */
	{ "HBM.rtp_tck",
	  NULL,
	  NULL,
	  { READ(0, 0), READ(100, 4096), READ(100, NEXT_ROW) },
	  3,
	  8 + 23 + 24 + 1 + 23 + 2,
	  1 },
	/* hits in two rows that are open: of two groups, and of one */
	{ "HBM.ccd_s_tck",
	  NULL,
	  NULL,
	  { READ(0, 0), READ(0, NEXT_GROUP), READ(600, 0), READ(600, NEXT_GROUP) },
	  4,
	  2 + 23 + 2,
	  1 },
	{ "HBM.ccd_l_tck",
	  NULL,
	  NULL,
	  { READ(0, 0), READ(0, NEXT_BANK), READ(600, 0), READ(600, NEXT_BANK) },
	  4,
	  4 + 23 + 2,
	  1 },
	/* activations of two groups, and of one */
	{ "HBM.rrd_s_tck",
	  "HBM.rrd_s_tck=6",
	  NULL,
	  { READ(0, 0), READ(0, NEXT_GROUP) },
	  2,
	  6 + 24 + 23 + 2,
	  1 },
	{ "HBM.rrd_l_tck",
	  "HBM.rrd_l_tck=12",
	  NULL,
	  { READ(0, 0), READ(0, NEXT_BANK) },
	  2,
	  12 + 24 + 23 + 2,
	  1 },
	/* the fifth of five in a row; 4 x RRD_S would allow it at 28 */
	{ "HBM.faw_tck",
	  "HBM.faw_tck=40",
	  "HBM.queue_requests=64",
	  { READ(0, 0), READ(0, NEXT_GROUP), READ(0, 2 * NEXT_GROUP), READ(0, 3 * NEXT_GROUP),
	    READ(0, NEXT_BANK) },
	  5,
	  40 + 24 + 23 + 2,
	  1 },
	/* a read that comes ten clocks into the refresh; before it RTP 8 and RP 23 to close rows */
	{ "HBM.rfc_tck",
	  NULL,
	  "HBM.refresh=true",
	  { { REFI + 10, 0, false } },
	  1,
	  560 + 8 + 23 - 10 + 1 + 24 + 23 + 2,
	  1 },
	{ "HBM.refi_tck",
	  NULL,
	  "HBM.refresh=true",
	  { { REFI + 10, 0, false } },
	  1,
	  560 + 8 + 23 - 10 + 1 + 24 + 23 + 2,
	  1 },
	/* bank 0's second turn comes 16 intervals after the first */
	{ "HBM.rfc_sb_tck",
	  NULL,
	  "HBM.refresh=true HBM.refresh_per_bank=true",
	  { { REFI_SB + 80, 0, false } },
	  1,
	  320 + 8 + 23 - 80 + 1 + 24 + 23 + 2,
	  1 },
	{ "HBM.refi_sb_tck",
	  NULL,
	  "HBM.refresh=true HBM.refresh_per_bank=true",
	  { { REFI_SB + 80, 0, false } },
	  1,
	  320 + 8 + 23 - 80 + 1 + 24 + 23 + 2,
	  16 },
};

static void set(struct sim_profile *profile, const char *assignments)
{
	g_auto(GStrv) each = g_strsplit(assignments ? assignments : "", " ", -1);
	char *error = NULL;

	if (!sim_profile_set(profile, each, &error))
		FAIL("%s", error);
}

static void one_stack(struct sim_profile *out)
{
	char *error = NULL;

	if (!sim_profile_load("Ascend910B1", out, &error))
		FAIL("%s", error);
	out->hbm_stacks = 1;
	out->hbm_queue = 3; /* and a buffer of one write */
	out->hbm_refresh = false;
	g_strlcpy(out->hbm_map, "o5 c1 h3 p1 g2 c4 b2 r16", sizeof(out->hbm_map));
}

/* Clocks from the last request's time to its end. */
static unsigned run(const struct sim_profile *profile, const struct parameter *p)
{
	struct hbm *hbm = hbm_new(profile, NULL);
	uint64_t done = 0, at = 0;

	for (unsigned i = 0; i < p->steps; i++) {
		at = p->step[i].at * TCK;
		done = hbm_access(hbm, p->step[i].offset, BURST, p->step[i].write, at, NULL);
	}
	hbm_free(hbm);
	EXPECT_EQ((done - at) % TCK, 0u);
	return (unsigned)((done - at) / TCK);
}

/* The value that a profile's text has for "HBM.key". */
static unsigned value_of(const struct sim_profile *profile, const char *name)
{
	g_autofree char *text = sim_profile_dump(profile);
	g_autoptr(GKeyFile) file = g_key_file_new();

	EXPECT_TRUE(g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL));
	return (unsigned)g_key_file_get_integer(file, "HBM", name + strlen("HBM."), NULL);
}

TEST_EACH(hbm_parameters, decides_and_counts_in_clocks, parameters, name)
{
	const struct parameter *p = param;
	struct sim_profile profile;
	g_autofree char *longer = NULL;

	one_stack(&profile);
	set(&profile, p->first);
	set(&profile, p->more);
	EXPECT_EQ(run(&profile, p), p->done);
	longer = g_strdup_printf("%s=%u", p->name, value_of(&profile, p->name) + LATER);
	set(&profile, longer);
	EXPECT_EQ(run(&profile, p), p->done + LATER * p->factor);
}

TEST(hbm_parameters, every_key_in_clocks_has_a_case)
{
	struct sim_profile profile;
	g_autofree char *text = NULL;
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_auto(GStrv) keys = NULL;
	unsigned clocks = 0;

	one_stack(&profile);
	text = sim_profile_dump(&profile);
	ASSERT_TRUE(g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL));
	keys = g_key_file_get_keys(file, "HBM", NULL, NULL);
	for (char **key = keys; *key; key++) {
		bool found = false;

		if (!g_str_has_suffix(*key, "_tck"))
			continue;
		NOTE("%s", *key);
		clocks++;
		for (size_t i = 0; i < G_N_ELEMENTS(parameters) && !found; i++)
			found = !strcmp(parameters[i].name + strlen("HBM."), *key);
		EXPECT_TRUE(found);
	}
	EXPECT_EQ(clocks, G_N_ELEMENTS(parameters));
}

/* A burst of eight beats has the bus for four clocks, and 64 bytes. */
TEST(hbm_parameters, burst_length)
{
	struct parameter read = { .step = { READ(0, 0) }, .steps = 1 };
	struct sim_profile profile;

	one_stack(&profile);
	profile.hbm_burst = 8;
	profile.hbm_columns = 16;
	g_strlcpy(profile.hbm_map, "o6 h3 p1 g2 c4 b2 r16", sizeof(profile.hbm_map));
	EXPECT_EQ(run(&profile, &read), 24u + 23 + 4);
}

/* A clock of another length: all is in clocks. */
TEST(hbm_parameters, clock)
{
	struct sim_profile profile;
	struct hbm *hbm;

	one_stack(&profile);
	profile.hbm_tck_ps = 1000;
	hbm = hbm_new(&profile, NULL);
	EXPECT_EQ(hbm_access(hbm, 0, BURST, false, START * 1000, NULL),
		  (START + 49) * UINT64_C(1000));
	hbm_free(hbm);
}
