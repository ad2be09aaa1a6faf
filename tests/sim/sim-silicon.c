/* SPDX-License-Identifier: Apache-2.0
 *
 * The model against silicon: bandwidths that public samples and projects measured on Atlas A2 and
 * A3. Reads of a matrix of 12288 x 12288 half-precision numbers by all cores: Ascend asc-devkit,
 * data_copy sample. One core: its add_high_performance sample. Remote memory: memfabric_hybrid's
 * README.
 */
#include "harness/test.h"

#include <string.h>

#include "machine.h"

#define MATRIX_BYTES (UINT64_C(12288) * 12288 * 2)
#define PITCH        (UINT64_C(12288) * 2)

SETUP(silicon)
{
	machine_setup();
}

TEARDOWN(silicon)
{
	machine_close();
}

/* Each core reads blocks of rows x row_bytes of the matrix, one after another; blocks go round the
 * cores. */
#define DEPTH 32 /* jobs of a core that are queued or under way */

struct sweep {
	uint64_t row_bytes, rows, pitch;     /* of a block; of the matrix */
	uint64_t next, blocks_a_row, blocks; /* blocks: of all passes */
	uint64_t blocks_a_pass, first_row;
};

static struct sweep sweep;

static void next_block(struct sim_job *job)
{
	uint64_t block = sweep.next++;
	uint64_t of_pass = block % sweep.blocks_a_pass;
	uint64_t across = of_pass % sweep.blocks_a_row, down = of_pass / sweep.blocks_a_row;

	if (block >= sweep.blocks)
		return;
	job->src.va = MACHINE_VA + (sweep.first_row + down * sweep.rows) * sweep.pitch +
		      across * sweep.row_bytes;
	sim_submit(machine.sim, job);
}

/* Picoseconds to read matrix_rows rows `passes` times, with `depth` copies of each core queued or
 * under way. */
static uint64_t read_rows(const struct sweep *what, unsigned cores, unsigned first_core,
			  unsigned depth)
{
	static struct sim_job jobs[72 * DEPTH];
	uint64_t start = sim_host_ps(machine.sim);

	sweep = *what;
	for (unsigned i = 0; i < depth * cores; i++) {
		jobs[i] = (struct sim_job){ .kind = SIM_JOB_READ,
					    .engine = SIM_ENGINE_CORE,
					    .core = first_core + i % cores,
					    .src = { 0, MACHINE_VA },
					    .bytes = sweep.rows * sweep.row_bytes,
					    .row_bytes = sweep.rows > 1 ? sweep.row_bytes : 0,
					    .pitch_bytes = sweep.pitch,
					    .done = next_block };
		next_block(&jobs[i]);
	}
	sim_drain(machine.sim);
	return sim_host_ps(machine.sim) - start;
}

static struct sweep blocks_of(uint64_t rows, uint64_t row_bytes, uint64_t pitch, uint64_t first_row,
			      uint64_t matrix_rows, unsigned passes)
{
	uint64_t across = pitch / row_bytes, a_pass = across * (matrix_rows / rows);

	return (struct sweep){
		row_bytes, rows, pitch, 0, across, passes * a_pass, a_pass, first_row
	};
}

static uint64_t read_matrix(bool vector, const struct sweep *what)
{
	return read_rows(what, vector ? machine.profile.vector_cores : machine.profile.cube_cores,
			 vector ? machine.profile.cube_cores : 0, DEPTH);
}

static void map_matrix(void)
{
	machine_open(true);
	machine_map(0, MACHINE_VA, SIM_PA(0, 0), 21, 160, PT_WRITE);
}

struct row {
	const char *title;
	bool vector;
	uint64_t rows, row_bytes, pitch;
	double us;
};

static const struct row reads[] = {
	{ "UB_128B", true, 1, 128, PITCH, 548.161 },
	{ "UB_8K", true, 64, 128, PITCH, 220.772 },
	{ "UB_128K", true, 64, 2048, PITCH, 202.657 },
	{ "UB_128K_unaligned", true, 64, 2048, PITCH - 2, 259.047 },
	{ "L1_8K", false, 64, 128, PITCH, 283.508 },
	{ "L1_32K", false, 64, 512, PITCH, 214.519 },
	{ "L1_32K_unaligned", false, 64, 512, PITCH - 2, 422.515 },
};

TEST_EACH(silicon, matrix_read_within_a_tenth, reads, title)
{
	const struct row *row = param;
	struct sweep what;
	double us;

	map_matrix();
	what = blocks_of(row->rows, row->row_bytes, row->pitch, 0, 12288, 1);
	us = (double)read_matrix(row->vector, &what) / SIM_PS_PER_US;
	EXPECT_NEAR(us, row->us, 0.1 * row->us);
}

/* Read four times: the whole matrix does not stay in the L2, a quarter of it does. */
struct repeat {
	const char *title;
	bool vector;
	uint64_t row_bytes;
	unsigned parts;
	double us, hits;
};

static const struct repeat repeats[] = {
	{ "UB_whole", true, 2048, 1, 816.05, 0.00005 },
	{ "UB_quarters", true, 2048, 4, 354.56, 0.75 },
	{ "L1_quarters", false, 512, 4, 397.8, 0.75 },
};

TEST_EACH(silicon, repeated_read_within_a_tenth, repeats, title)
{
	const struct repeat *repeat = param;
	struct sim_counters counters;
	double us = 0;

	map_matrix();
	for (unsigned part = 0; part < repeat->parts; part++) {
		uint64_t rows = 12288 / repeat->parts;
		struct sweep what = blocks_of(64, repeat->row_bytes, PITCH, part * rows, rows, 4);

		us += (double)read_matrix(repeat->vector, &what) / SIM_PS_PER_US;
	}
	EXPECT_NEAR(us, repeat->us, 0.1 * repeat->us);
	sim_get_counters(machine.sim, 0, &counters);
	EXPECT_NEAR((double)counters.l2_read_hits / counters.l2_reads, repeat->hits, 0.001);
	/* The sample's counters show 128 bytes an access. */
	EXPECT_NEAR(counters.l2_reads, 4 * MATRIX_BYTES / 128, 1000);
}

/* Copies one after another, each waited for. */
struct serial {
	const char *title;
	unsigned cores;
	uint64_t bytes;
	double gb_s;
};

static const struct serial serials[] = {
	{ "one_core_8K", 1, 8192, 43.2 },
	{ "all_cores_8K", 48, 8192, 1245.7 },
	{ "all_cores_32K", 48, 32768, 1456.0 },
};

TEST_EACH(silicon, serial_copies_within_a_tenth, serials, title)
{
	const struct serial *serial = param;
	struct sweep what =
		blocks_of(1, serial->bytes, serial->bytes, 0,
			  MATRIX_BYTES / serial->bytes / (serial->cores == 1 ? 16 : 1), 1);
	double gb_s;

	map_matrix();
	gb_s = (double)(what.blocks * serial->bytes) * 1000 /
	       (double)read_rows(&what, serial->cores, machine.profile.cube_cores, 1);
	EXPECT_NEAR(gb_s, serial->gb_s, 0.1 * serial->gb_s);
}

/* A die of a 910C and its host, and another device: 1 GB each. */
struct remote {
	const char *title;
	enum sim_engine engine;
	int dst, src;
	double gb_s;
};

static const struct remote remotes[] = {
	{ "from_remote_dram", SIM_ENGINE_H2D, 0, SIM_NODE_HOST, 110.2 },
	{ "to_remote_dram", SIM_ENGINE_D2H, SIM_NODE_HOST, 0, 74.5 },
	{ "from_remote_device", SIM_ENGINE_SDMA, 0, 2, 166.5 },
	{ "to_remote_device", SIM_ENGINE_SDMA, 2, 0, 138.0 },
};

TEST_EACH(silicon, remote_copy_within_a_tenth, remotes, title)
{
	const struct remote *remote = param;
	char *error = NULL;
	uint64_t bytes = 1000000000;
	struct sim_job job;

	ASSERT_TRUE(sim_profile_load("Ascend910_9391", &machine.profile, &error));
	machine_open(true);
	machine_map(remote->dst, MACHINE_VA, SIM_PA(remote->dst, 0), 21, 512, PT_WRITE);
	machine_map(remote->src, MACHINE_VA, SIM_PA(remote->src, 0), 21, 512, PT_WRITE);
	/* In time only: a read here, a write there. */
	job = (struct sim_job){ .kind = remote->dst == 0 ? SIM_JOB_READ : SIM_JOB_WRITE,
				.engine = remote->engine,
				.src = { remote->src, MACHINE_VA },
				.dst = { remote->dst, MACHINE_VA },
				.bytes = bytes };
	EXPECT_EQ(sim_execute(machine.sim, &job), SIM_OK);
	EXPECT_NEAR((double)bytes * 1000 / (double)(job.finish_ps - job.begin_ps), remote->gb_s,
		    0.1 * remote->gb_s);
}
