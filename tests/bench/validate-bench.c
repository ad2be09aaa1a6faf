/* SPDX-License-Identifier: Apache-2.0
 *
 * What validation costs: the same work without it, with it but without call stacks, and with short
 * and full ones. Each is this program once more, in an environment of its own; all stay, and take
 * turns round by round, so that what else the machine does meets all of them. Processor time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define COPY_BYTES ((size_t)1 << 20)
#define STREAMS    16
#define QUEUED     1000 /* copies a stream: two accesses each */

enum mode { OFF, ON, SHORT, FULL, MODE_COUNT };
enum work { MAP, COPY, EVENTS, PENDING, WORK_COUNT };

/* ---- the work, in the child ---- */

static struct {
	char *va, *device, *host;
	aclrtDrvMemHandle handle;
	aclrtStream stream[STREAMS];
	aclrtEvent event;
} with;

static void map(void)
{
	check(aclrtMapMem(with.va, HUGE_BYTES, 0, with.handle, 0), "aclrtMapMem");
	check(aclrtUnmapMem(with.va), "aclrtUnmapMem");
}

static void copy(void)
{
	check(aclrtMemcpyAsync(with.device, COPY_BYTES, with.host, COPY_BYTES,
			       ACL_MEMCPY_HOST_TO_DEVICE, with.stream[0]),
	      "aclrtMemcpyAsync");
	check(aclrtSynchronizeStream(with.stream[0]), "aclrtSynchronizeStream");
}

static void events(void)
{
	check(aclrtRecordEvent(with.event, with.stream[0]), "aclrtRecordEvent");
	check(aclrtStreamWaitEvent(with.stream[1], with.event), "aclrtStreamWaitEvent");
	check(aclrtSynchronizeStream(with.stream[1]), "aclrtSynchronizeStream");
}

static double nanoseconds(void (*fn)(void), int count)
{
	double start = bench_cpu_seconds();

	for (int i = 0; i < count; i++)
		fn();
	return 1e9 * (bench_cpu_seconds() - start) / count;
}

static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
		check(ACL_ERROR_FAILURE, "/proc/self/statm");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Bytes that each access takes which waits: copies behind an event that is not yet recorded. */
static double pending(void)
{
	aclrtEvent gate;
	double before;

	check(aclrtCreateEventWithFlag(&gate, ACL_EVENT_SYNC), "aclrtCreateEventWithFlag");
	before = resident_bytes();
	for (int i = 0; i < STREAMS; i++)
		check(aclrtStreamWaitEvent(with.stream[i], gate), "aclrtStreamWaitEvent");
	for (size_t i = 0; i < (size_t)STREAMS * QUEUED; i++)
		check(aclrtMemcpyAsync(with.device + i * 64, 64, with.host + i * 64, 64,
				       ACL_MEMCPY_HOST_TO_DEVICE, with.stream[i % STREAMS]),
		      "aclrtMemcpyAsync");
	before = resident_bytes() - before;
	check(aclrtRecordEvent(gate, NULL), "aclrtRecordEvent");
	check(aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
	check(aclrtDestroyEvent(gate), "aclrtDestroyEvent");
	return before / (2.0 * STREAMS * QUEUED);
}

static int serve(void)
{
	void *va, *device, *host;
	char work;
	double answer;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	check(aclrtReserveMemAddress(&va, HUGE_BYTES, 0, NULL, 1), "aclrtReserveMemAddress");
	check(aclrtMalloc(&device, COPY_BYTES, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	check(aclrtMallocHost(&host, COPY_BYTES), "aclrtMallocHost");
	check(aclrtCreateEvent(&with.event), "aclrtCreateEvent");
	for (int i = 0; i < STREAMS; i++)
		check(aclrtCreateStream(&with.stream[i]), "aclrtCreateStream");
	with.va = va;
	with.device = device;
	with.host = host;
	with.handle = create(0, HUGE_BYTES);
	memset(host, 0, COPY_BYTES);
	while (read(STDIN_FILENO, &work, 1) == 1) {
		answer = work == MAP      ? nanoseconds(map, 4000)
			 : work == COPY   ? nanoseconds(copy, 400)
			 : work == EVENTS ? nanoseconds(events, 2000)
					  : pending();
		if (write(STDOUT_FILENO, &answer, sizeof(answer)) != sizeof(answer))
			return 1;
	}
	return 0;
}

/* ---- the turns ---- */

struct child {
	int to, from;
};

static struct child start(const char *self, enum mode mode)
{
	static const char *const stacks[] = { "off", "off", "short", "full" };
	int to[2], from[2];
	pid_t pid;

	if (pipe(to) != 0 || pipe(from) != 0 || (pid = fork()) < 0)
		exit(1);
	if (pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		setenv("NPUSIM_STACKS", stacks[mode], 1);
		setenv("NPUSIM_LEAKS", "off", 1);
		setenv("NPUSIM_VALIDATE", mode == OFF ? "off" : "on", 1);
		setenv("NPUSIM_VALIDATE_RULES", "-leak", 1);
		execl(self, self, "--serve", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	return (struct child){ .to = to[1], .from = from[0] };
}

static double ask(struct child child, enum work work)
{
	char byte = (char)work;
	double answer = 0;

	if (write(child.to, &byte, 1) != 1 ||
	    read(child.from, &answer, sizeof(answer)) != sizeof(answer)) {
		fprintf(stderr, "a run failed\n");
		exit(1);
	}
	return answer;
}

int main(int argc, char **argv)
{
	double best[WORK_COUNT][MODE_COUNT] = { 0 };
	struct child child[MODE_COUNT];

	if (argc == 2 && strcmp(argv[1], "--serve") == 0)
		return serve();
	for (int mode = 0; mode < MODE_COUNT; mode++)
		child[mode] = start(argv[0], mode);
	/* Before any other work has left memory that can be used again. */
	for (int mode = 0; mode < MODE_COUNT; mode++)
		best[PENDING][mode] = ask(child[mode], PENDING);
	for (int round = 0; round < 2 * BENCH_ROUNDS; round++)
		for (int work = 0; work < PENDING; work++)
			for (int mode = 0; mode < MODE_COUNT; mode++) {
				double took = ask(child[mode], work);

				if (round == 0 || took < best[work][mode])
					best[work][mode] = took;
			}
	bench_line("map and unmap, without validation", "%8.0f ns", best[MAP][OFF]);
	bench_at_most("  with it, without stacks", best[MAP][ON] / best[MAP][OFF], "x", 5);
	bench_line("copy of 1 MiB and its wait, without validation", "%8.0f ns", best[COPY][OFF]);
	bench_at_most("  with it, without stacks", best[COPY][ON] / best[COPY][OFF], "x", 2);
	bench_line("event recorded, waited for twice, without validation", "%8.0f ns",
		   best[EVENTS][OFF]);
	bench_at_most("  with it, without stacks", best[EVENTS][ON] / best[EVENTS][OFF], "x", 3);
	bench_at_most("a short stack: more a call", (best[MAP][SHORT] - best[MAP][ON]) / 2e3, "us",
		      2);
	bench_at_most("a full stack: more a call", (best[MAP][FULL] - best[MAP][ON]) / 2e3, "us",
		      5);
	bench_at_most("memory of an access on its way", best[PENDING][ON] - best[PENDING][OFF], "B",
		      64);
	return 0;
}
