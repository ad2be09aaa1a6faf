/* SPDX-License-Identifier: Apache-2.0
 *
 * A supernode as a whole, by its programs: how long its processes take until all are up; what
 * export, import, mapping and the first byte cost between two servers; and whole servers that are
 * killed at random.
 *
 *     supernode-bench up SERVERS PROCESSES    # each has a device of its own
 *     supernode-bench import ROUNDS
 *     supernode-bench kill KILLS
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"

#define PAGE         ((size_t)2 << 20)
#define PROCESSES    768u
#define KILL_SERVERS 8u
#define KILL_EACH    2u
#define UNKNOWN      107017

/* Shared by all processes. */
static struct board {
	pthread_barrier_t all;
	atomic_uint failed;
	struct {
		atomic_uint version; /* odd while the rest changes */
		aclrtMemFabricHandle handle;
		int byte;
	} share[PROCESSES];
	atomic_ulong beats[PROCESSES];
	atomic_bool end;
	double us[3][100000];
	size_t leaked;
} * board;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#define MUST(call)                                                                              \
	do {                                                                                    \
		int code_ = (call);                                                             \
		if (code_ != 0) {                                                               \
			fprintf(stderr, "line %d: %s answers %d: %s\n", __LINE__, #call, code_, \
				aclGetRecentErrMsg());                                          \
			atomic_fetch_add(&board->failed, 1);                                    \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

static void start(int device)
{
	MUST(aclrtSetDevice(device));
}

static aclrtDrvMemHandle create(void)
{
	aclrtPhysicalMemProp prop = { .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location.type = ACL_MEM_LOCATION_TYPE_DEVICE };
	int32_t device;
	aclrtDrvMemHandle handle;

	MUST(aclrtGetDevice(&device));
	prop.location.id = (uint32_t)device;
	MUST(aclrtMallocPhysical(&handle, PAGE, &prop, 0));
	return handle;
}

static void *reserve(void)
{
	void *at;

	MUST(aclrtReserveMemAddress(&at, PAGE, 0, NULL, 1));
	return at;
}

static int byte_at(const void *at)
{
	unsigned char byte = 0;

	MUST(aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST));
	return byte;
}

static pid_t spawn(const char *name, unsigned server, void (*body)(unsigned which), unsigned which)
{
	pid_t pid = fork();

	if (pid == 0) {
		char number[16];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(number, sizeof(number), "%u", server);
		setenv("NPUSIM_SUPERNODE", name, 1);
		setenv("NPUSIM_SERVER", number, 1);
		setenv("NPUSIM_LEAKS", "off", 1);
		setenv("NPUSIM_FAILURES", "off", 1);
		body(which);
		_exit(0);
	}
	return pid;
}

static void barrier(unsigned count)
{
	pthread_barrierattr_t shared;

	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&board->all, &shared, count);
}

static int median_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- all up ---- */

static void body_up(unsigned which)
{
	start((int)(which % 16));
	pthread_barrier_wait(&board->all);
	pthread_barrier_wait(&board->all);
}

static void bench_up(const char *name, unsigned servers, unsigned each)
{
	double began = now_us(), up;
	struct rusage used;

	barrier(servers * each + 1);
	for (unsigned i = 0; i < servers * each; i++)
		spawn(name, i / each, body_up, i % each);
	pthread_barrier_wait(&board->all);
	up = now_us();
	if (system("free -m | awk '/Mem/ { print \"memory in use, MiB:\", $3 + $5 }'") != 0)
		perror("free");
	pthread_barrier_wait(&board->all);
	while (wait(NULL) > 0)
		continue;
	getrusage(RUSAGE_CHILDREN, &used);
	printf("%u servers x %u processes: all up in %.2f s; %.1f ms of user and %.1f ms of system "
	       "time "
	       "each; at most %ld MiB resident\n",
	       servers, each, (up - began) / 1e6,
	       ((double)used.ru_utime.tv_sec * 1e3 + (double)used.ru_utime.tv_usec / 1e3) /
		       (servers * each),
	       ((double)used.ru_stime.tv_sec * 1e3 + (double)used.ru_stime.tv_usec / 1e3) /
		       (servers * each),
	       used.ru_maxrss >> 10);
}

/* ---- what an import costs ---- */

static unsigned rounds;

static void body_import(unsigned which)
{
	start(0);
	for (unsigned i = 0; i < rounds; i++) {
		aclrtDrvMemHandle handle = NULL;
		void *at = reserve();
		double t[4];

		if (which == 0) {
			handle = create();
			MUST(aclrtMapMem(at, PAGE, 0, handle, 0));
			MUST(aclrtMemset(at, PAGE, 7, PAGE));
			t[0] = now_us();
			MUST(aclrtMemExportToShareableHandleV2(handle, 0,
							       ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
							       &board->share[0].handle));
			board->us[0][i] = now_us() - t[0];
		}
		pthread_barrier_wait(&board->all);
		if (which == 1) {
			t[0] = now_us();
			MUST(aclrtMemImportFromShareableHandleV2(&board->share[0].handle,
								 ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
								 0, &handle));
			MUST(aclrtMapMem(at, PAGE, 0, handle, 0));
			t[1] = now_us();
			if (byte_at(at) != 7)
				atomic_fetch_add(&board->failed, 1);
			board->us[1][i] = t[1] - t[0];
			board->us[2][i] = now_us() - t[1];
		}
		pthread_barrier_wait(&board->all);
		MUST(aclrtUnmapMem(at));
		MUST(aclrtFreePhysical(handle));
		MUST(aclrtReleaseMemAddress(at));
	}
}

static void bench_import(const char *name)
{
	barrier(2);
	for (unsigned server = 0; server < 2; server++)
		spawn(name, server, body_import, server);
	while (wait(NULL) > 0)
		continue;
	for (unsigned i = 0; i < 3; i++)
		qsort(board->us[i], rounds, sizeof(double), median_first);
	printf("medians of %u: export %.1f us, import and map %.1f us, first byte %.1f us; "
	       "together "
	       "%.1f us\n",
	       rounds, board->us[0][rounds / 2], board->us[1][rounds / 2], board->us[2][rounds / 2],
	       board->us[0][rounds / 2] + board->us[1][rounds / 2] + board->us[2][rounds / 2]);
}

/* ---- servers that are killed ---- */

/* Exports anew now and then, and reads what others have, until the end. */
static void body_killed(unsigned which)
{
	unsigned seed = (unsigned)getpid();
	aclrtDrvMemHandle own = NULL, other;
	void *mine, *there;

	start((int)(which % KILL_EACH));
	mine = reserve();
	there = reserve();
	for (unsigned i = 0; !atomic_load(&board->end); i++) {
		unsigned from = (unsigned)rand_r(&seed) % (KILL_SERVERS * KILL_EACH), version;
		aclrtMemFabricHandle handle;
		int byte, code;

		if (i % 16 == 0) {
			atomic_fetch_or(&board->share[which].version, 1); /* who was killed here may
									     have left it odd */
			if (own != NULL) {
				MUST(aclrtUnmapMem(mine));
				MUST(aclrtFreePhysical(own));
			}
			own = create();
			byte = (int)(rand_r(&seed) % 255 + 1);
			MUST(aclrtMapMem(mine, PAGE, 0, own, 0));
			MUST(aclrtMemset(mine, PAGE, byte, PAGE));
			MUST(aclrtMemExportToShareableHandleV2(own, 0,
							       ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
							       &board->share[which].handle));
			board->share[which].byte = byte;
			atomic_fetch_add(&board->share[which].version, 1);
		}
		atomic_fetch_add(&board->beats[which], 1);
		if (from / KILL_EACH == which / KILL_EACH)
			continue;
		version = atomic_load(&board->share[from].version);
		handle = board->share[from].handle;
		byte = board->share[from].byte;
		if (version % 2 != 0 || atomic_load(&board->share[from].version) != version ||
		    version == 0)
			continue;
		code = aclrtMemImportFromShareableHandleV2(
			&handle, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &other);
		if (code == UNKNOWN)
			continue;
		MUST(code);
		MUST(aclrtMapMem(there, PAGE, 0, other, 0));
		if (byte_at(there) != byte) {
			fprintf(stderr, "process %u of %u has a wrong byte\n", from, which);
			atomic_fetch_add(&board->failed, 1);
		}
		MUST(aclrtUnmapMem(there));
		MUST(aclrtFreePhysical(other));
	}
}

static void body_count(unsigned which)
{
	size_t left = 0, total = 0;

	for (unsigned d = 0; d < KILL_EACH; d++) {
		start((int)d);
		MUST(aclrtGetMemInfo(ACL_HBM_MEM, &left, &total));
		board->leaked += total - left;
	}
	(void)which;
}

static void body_bystander(unsigned which)
{
	(void)which;
	start(0);
	pthread_barrier_wait(&board->all);
	pthread_barrier_wait(&board->all);
}

/* True: every process goes on, within a minute. */
static bool all_go_on(void)
{
	unsigned long before[KILL_SERVERS * KILL_EACH];
	bool waits = true;

	for (unsigned i = 0; i < KILL_SERVERS * KILL_EACH; i++)
		before[i] = atomic_load(&board->beats[i]);
	for (unsigned tries = 0; waits && tries < 6000; tries++) {
		waits = false;
		usleep(10000);
		for (unsigned i = 0; i < KILL_SERVERS * KILL_EACH; i++)
			waits |= atomic_load(&board->beats[i]) == before[i];
	}
	return !waits;
}

static void bench_kill(const char *name, unsigned kills)
{
	pid_t pids[KILL_SERVERS][KILL_EACH], bystander;
	unsigned seed = 1, blocked = 0;
	double began = now_us();

	barrier(2);
	bystander = spawn(name, 40, body_bystander, 0); /* keeps the supernode alive to the end */
	pthread_barrier_wait(&board->all);
	for (unsigned i = 0; i < KILL_SERVERS * KILL_EACH; i++)
		pids[i / KILL_EACH][i % KILL_EACH] = spawn(name, i / KILL_EACH, body_killed, i);
	for (unsigned kill_number = 0; kill_number < kills && blocked == 0; kill_number++) {
		unsigned server = (unsigned)rand_r(&seed) % KILL_SERVERS;

		usleep((unsigned)rand_r(&seed) % 100000);
		for (unsigned i = 0; i < KILL_EACH; i++)
			kill(pids[server][i], SIGKILL);
		for (unsigned i = 0; i < KILL_EACH; i++) {
			waitpid(pids[server][i], NULL, 0);
			pids[server][i] = spawn(name, server, body_killed, server * KILL_EACH + i);
		}
		if (kill_number % 20 == 19)
			blocked += !all_go_on();
	}
	atomic_store(&board->end, true);
	for (unsigned i = 0; i < KILL_SERVERS * KILL_EACH; i++)
		waitpid(pids[i / KILL_EACH][i % KILL_EACH], NULL, 0);
	for (unsigned server = 0; server < KILL_SERVERS; server++)
		waitpid(spawn(name, server, body_count, 0), NULL, 0);
	pthread_barrier_wait(&board->all);
	waitpid(bystander, NULL, 0);
	printf("%u kills of servers of %u processes in %.0f s: %u wrong or failed, %u times "
	       "somebody "
	       "blocked, %zu bytes lost\n",
	       kills, KILL_EACH, (now_us() - began) / 1e6, atomic_load(&board->failed), blocked,
	       board->leaked);
}

int main(int argc, char **argv)
{
	char name[32];

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return 1;
	snprintf(name, sizeof(name), "bench-%d", (int)getpid());
	if (argc == 4 && strcmp(argv[1], "up") == 0) {
		bench_up(name, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	} else if (argc == 3 && strcmp(argv[1], "import") == 0 && atoi(argv[2]) <= 100000) {
		rounds = (unsigned)atoi(argv[2]);
		bench_import(name);
	} else if (argc == 3 && strcmp(argv[1], "kill") == 0) {
		bench_kill(name, (unsigned)atoi(argv[2]));
	} else {
		fprintf(stderr, "usage: %s up SERVERS PROCESSES | import ROUNDS | kill KILLS\n",
			argv[0]);
		return 2;
	}
	return atomic_load(&board->failed) != 0 || board->leaked != 0;
}
