/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording costs a call: pairs of aclrtMapMem and aclrtUnmapMem of 2 MiB with nothing
 * recorded, recorded by the runtime (NPUSIM_TRACE), and by libnpusim-record.so in front of it. Each
 * is this program once more, in an environment of its own; processor time.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define PAIRS     20000
#define TARGET_NS 2000

struct pair {
	void *va;
	aclrtDrvMemHandle handle;
};

static void map_pairs(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < PAIRS; i++)
		if (aclrtMapMem(p->va, HUGE_BYTES, 0, p->handle, 0) != 0 ||
		    aclrtUnmapMem(p->va) != 0)
			check(ACL_ERROR_FAILURE, "map and unmap");
}

/* The measured one: `live` handles and reservations that the recorder has names for. */
static int measure(int live)
{
	struct pair pair;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	for (int i = 0; i < live; i++) {
		pair.handle = create(0, HUGE_BYTES);
		check(aclrtReserveMemAddress(&pair.va, HUGE_BYTES, 0, NULL, 1),
		      "aclrtReserveMemAddress");
	}
	printf("%.1f\n", 1e9 / bench_rate_by(bench_cpu_seconds, map_pairs, &pair, 2.0 * PAIRS));
	return 0;
}

static double run(const char *self, const char *live, const char *trace, const char *preload)
{
	char text[64] = "";
	double result = 0;
	int ends[2], status = 1;
	pid_t pid;

	if (pipe(ends) != 0 || (pid = fork()) < 0)
		return 0;
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		if (trace != NULL)
			setenv("NPUSIM_TRACE", trace, 1);
		if (preload != NULL)
			setenv("LD_PRELOAD", preload, 1);
		execl(self, self, "--live", live, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], text, sizeof(text) - 1) > 0)
		result = strtod(text, NULL);
	close(ends[0]);
	waitpid(pid, &status, 0);
	if (status != 0 || result <= 0) {
		fprintf(stderr, "a run failed\n");
		exit(1);
	}
	return result;
}

static void compare(const char *self, const char *live, const char *preload)
{
	char trace[] = "/tmp/npusim-record-bench-XXXXXX";
	int fd = mkstemp(trace);
	double none, runtime, front;
	char name[64];

	if (fd < 0)
		exit(1);
	close(fd);
	none = run(self, live, NULL, NULL);
	runtime = run(self, live, trace, NULL);
	front = run(self, live, trace, preload);
	unlink(trace);
	snprintf(name, sizeof(name), "map, unmap, %s live, not recorded", live);
	bench_line(name, "%8.2f ns a call", none);
	bench_at_most("  recorded by the runtime: more a call", runtime - none, "ns", TARGET_NS);
	bench_at_most("  recorded by libnpusim-record.so: more a call", front - none, "ns",
		      TARGET_NS);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--live") == 0)
		return measure(atoi(argv[2]));
	if (argc != 2) {
		fprintf(stderr, "usage: %s LIBNPUSIM-RECORD.SO\n", argv[0]);
		return 2;
	}
	compare(argv[0], "1", argv[1]);
	compare(argv[0], "20000", argv[1]);
	return 0;
}
