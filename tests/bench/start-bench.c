/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs to start: a process that opens a device and ends, against one that loads no more
 * than GLib and libsystemc, turn by turn; and many processes that join one node at once.
 * usage: start-bench FLOOR, a program
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define TURNS    41
#define HERD_MAX 1000

static void start_runtime(void)
{
	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
}

/* ---- one process ---- */

/* CPU time of a program from exec to its end. */
static double run_ms(const char *program, const char *argument)
{
	struct rusage used;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(program, program, argument, NULL);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &used) != pid || status != 0) {
		fprintf(stderr, "%s: status %d\n", program, status);
		exit(1);
	}
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void one_process(const char *floor)
{
	static double start[TURNS], least[TURNS];

	for (int i = 0; i < TURNS; i++) {
		start[i] = run_ms("/proc/self/exe", "start");
		least[i] = run_ms(floor, NULL);
	}
	qsort(start, TURNS, sizeof start[0], by_value);
	qsort(least, TURNS, sizeof least[0], by_value);
	bench_line("aclInit, aclrtSetDevice, exit", "%.2f ms of CPU", start[TURNS / 2]);
	bench_at_most("  against loading GLib and libsystemc", start[TURNS / 2] / least[TURNS / 2],
		      "x", 1.5);
}

/* ---- many ---- */

static struct shared {
	unsigned joined;
	double cpu_seconds[HERD_MAX];
} * shared;

static void join(unsigned index, int barrier, int leash)
{
	double before;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(barrier, &byte, 1) != 0)
		_exit(1);
	before = bench_cpu_seconds();
	start_runtime();
	shared->cpu_seconds[index] = bench_cpu_seconds() - before;
	__atomic_add_fetch(&shared->joined, 1, __ATOMIC_SEQ_CST);
	_exit(read(leash, &byte, 1) != 0);
}

/* All are there before the first starts, and stay until the last has joined. */
static void herd(unsigned count)
{
	int barrier[2], leash[2];
	double start, cpu = 0;
	char node[32], name[64];

	snprintf(node, sizeof node, "start-bench-%d-%u", getpid(), count);
	setenv("NPUSIM_NODE", node, 1);
	memset(shared, 0, sizeof *shared);
	if (pipe(barrier) != 0 || pipe(leash) != 0)
		exit(1);
	for (unsigned i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		close(barrier[1]);
		close(leash[1]);
		join(i, barrier[0], leash[0]);
	}
	start = bench_seconds();
	close(barrier[1]);
	while (__atomic_load_n(&shared->joined, __ATOMIC_SEQ_CST) < count)
		usleep(1000);
	start = bench_seconds() - start;
	close(leash[1]);
	while (wait(NULL) > 0)
		continue;
	close(barrier[0]);
	close(leash[0]);
	for (unsigned i = 0; i < count; i++)
		cpu += shared->cpu_seconds[i];
	snprintf(name, sizeof name, "%u processes join at once", count);
	bench_line(name, "%.2f s, %.2f ms of CPU each", start, cpu / count * 1e3);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "start") == 0) {
		start_runtime();
		return 0;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (argc != 2 || shared == MAP_FAILED)
		return 1;
	one_process(argv[1]);
	herd(100);
	herd(HERD_MAX);
	return 0;
}
