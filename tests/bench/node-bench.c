/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of the node: joining, blocks made and dropped by one process and by two at once, memory
 * of a killed process until another has it, and a share from export to the first byte read in
 * another process.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/node.h"
#include "base/base.h"
#include "bench.h"

#define PAIRS  300000
#define SHARES 2000
#define DEATHS 50

/* Shared by all processes. */
struct board {
	uint32_t ready, go, turn; /* turn: even: the exporter's, odd: the importer's */
	uint32_t share;
	double rates[2];
};
static struct board *board;
static struct node *node;
static char name[64];

static void join(void)
{
	struct node_config config = { .name = name,
				      .soc_name = "Ascend910B1",
				      .devices = 8,
				      .hbm_bytes = UINT64_C(64) << 30,
				      .usable_frames = 31216,
				      .host_bytes = UINT64_C(256) << 30 };
	char *error;

	if (node_join(&config, &node, &error))
		return;
	fprintf(stderr, "%s\n", error);
	exit(1);
}

static struct node_block *create(uint64_t frames)
{
	struct node_block *block;

	if (node_block_create(node, 0, frames, false, &block) == DRV_ERROR_NONE)
		return block;
	fprintf(stderr, "%s\n", npu_message());
	exit(1);
}

static uint64_t *first_word(const struct node_block *block)
{
	return (uint64_t *)(node_memory(node)->base[0] +
			    block->extents[0].frame * NODE_FRAME_BYTES);
}

static void pairs(void *arg)
{
	(void)arg;
	for (int i = 0; i < PAIRS; i++)
		node_block_drop(node, create(1));
}

static void wait_for(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		continue;
}

static void two_at_once(int which)
{
	join();
	__atomic_add_fetch(&board->ready, 1, __ATOMIC_ACQ_REL);
	wait_for(&board->go, 1);
	board->rates[which] = bench_rate(pairs, NULL, PAIRS);
	_exit(0);
}

static double one_process(void)
{
	double rate;

	join();
	rate = bench_rate(pairs, NULL, PAIRS);
	node_leave(node);
	return rate;
}

static void bench_pairs(void)
{
	double alone = one_process();

	bench_line("create + drop, one process", "%.0f ns", 1e9 / alone);
	for (int i = 0; i < 2; i++)
		if (fork() == 0)
			two_at_once(i);
	wait_for(&board->ready, 2);
	__atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
	while (wait(NULL) > 0)
		continue;
	bench_line("the same, two processes at once", "%.2f and %.2f of one process's rate",
		   board->rates[0] / alone, board->rates[1] / alone);
}

static void bench_join(void)
{
	double start = bench_seconds();

	for (int i = 0; i < 20; i++) {
		join();
		node_leave(node);
	}
	bench_line("join a fresh node and leave", "%.2f ms", (bench_seconds() - start) / 20 * 1e3);
}

static void bench_death(void)
{
	double worst = 0;

	join();
	for (int i = 0; i < DEATHS; i++) {
		pid_t pid = fork();
		struct node_block *block;
		double start;

		if (pid == 0) {
			join();
			block = create(31216);
			node_block_touch(node, block);
			*first_word(block) = 1;
			board->ready = 99;
			pause();
		}
		wait_for(&board->ready, 99);
		board->ready = 0;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		start = bench_seconds();
		block = create(31216);
		start = bench_seconds() - start;
		worst = start > worst ? start : worst;
		node_block_drop(node, block);
	}
	bench_line("memory of a killed process, until had", "%.0f us at most", worst * 1e6);
	node_leave(node);
}

static void importer(void)
{
	join();
	__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < SHARES; i++) {
		struct node_block *block;

		wait_for(&board->turn, 2 * i + 1);
		if (node_share_import(node, board->share, 0, &block) != DRV_ERROR_NONE ||
		    *first_word(block) != i)
			abort();
		__atomic_store_n(&board->turn, 2 * i + 2, __ATOMIC_RELEASE);
		node_block_drop(node, block);
	}
	_exit(0);
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static void bench_share(void)
{
	static double times[SHARES];
	pid_t pid;

	board->ready = 0;
	join();
	pid = fork();
	if (pid == 0)
		importer();
	wait_for(&board->ready, 1);
	for (uint32_t i = 0; i < SHARES; i++) {
		struct node_block *block = create(1);

		node_block_touch(node, block);
		*first_word(block) = i;
		times[i] = bench_seconds();
		if (node_share_export(node, block, 0, &board->share) != DRV_ERROR_NONE ||
		    node_share_allow(node, board->share, NULL, 0, (int[]){ pid }, 1) !=
			    DRV_ERROR_NONE)
			abort();
		__atomic_store_n(&board->turn, 2 * i + 1, __ATOMIC_RELEASE);
		wait_for(&board->turn, 2 * i + 2);
		times[i] = bench_seconds() - times[i];
		node_block_drop(node, block);
	}
	waitpid(pid, NULL, 0);
	node_leave(node);
	qsort(times, SHARES, sizeof(*times), compare);
	bench_line("export, whitelist, import, first byte", "%.1f us (median)",
		   times[SHARES / 2] * 1e6);
}

int main(void)
{
	snprintf(name, sizeof(name), "bench-%d", getpid());
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return 1;
	bench_join();
	bench_pairs();
	bench_death();
	bench_share();
	return 0;
}
