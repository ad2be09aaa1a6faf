/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call costs in 1, 2, 4 and 8 threads of one process, and in as many processes: pairs of map
 * and unmap, of create and free, and copies of 8 bytes, each by its CPU time, so that it does not
 * matter how many cores there are.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench-acl.h"
#include "bench.h"

#define MOST   8
#define ROUNDS 20000

struct costs {
	double map, create, copy; /* ns */
};

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What one thread does; all begin at the barrier. */
struct work {
	pthread_barrier_t *barrier;
	struct costs costs;
};

static void *work(void *arg)
{
	struct work *w = arg;
	aclrtDrvMemHandle handle;
	void *va, *memory;
	char bytes[8] = "";
	double times[4];

	check(aclrtSetDevice(0), "aclrtSetDevice");
	handle = create(0, HUGE_BYTES);
	check(aclrtReserveMemAddress(&va, HUGE_BYTES, 0, NULL, 1), "aclrtReserveMemAddress");
	check(aclrtMalloc(&memory, HUGE_BYTES, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
	pthread_barrier_wait(w->barrier);
	times[0] = cpu_ns();
	for (int i = 0; i < ROUNDS; i++) {
		check(aclrtMapMem(va, HUGE_BYTES, 0, handle, 0), "aclrtMapMem");
		check(aclrtUnmapMem(va), "aclrtUnmapMem");
	}
	times[1] = cpu_ns();
	for (int i = 0; i < ROUNDS; i++)
		check(aclrtFreePhysical(create(0, HUGE_BYTES)), "aclrtFreePhysical");
	times[2] = cpu_ns();
	for (int i = 0; i < ROUNDS; i++)
		check(aclrtMemcpy(memory, 8, bytes, 8, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
	times[3] = cpu_ns();
	w->costs = (struct costs){ (times[1] - times[0]) / ROUNDS, (times[2] - times[1]) / ROUNDS,
				   (times[3] - times[2]) / ROUNDS };
	pthread_barrier_wait(w->barrier); /* nobody's end disturbs */
	check(aclrtFree(memory), "aclrtFree");
	return NULL;
}

/* In a process of its own: `threads` of them, the mean of their costs. */
static void run(int threads, pthread_barrier_t *barrier, struct costs *out)
{
	struct work works[MOST];
	pthread_t ids[MOST];

	check(aclInit(NULL), "aclInit");
	for (int i = 0; i < threads; i++) {
		works[i].barrier = barrier;
		if (pthread_create(&ids[i], NULL, work, &works[i]) != 0)
			_exit(1);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		out->map += works[i].costs.map / threads;
		out->create += works[i].costs.create / threads;
		out->copy += works[i].costs.copy / threads;
	}
	_exit(0);
}

static struct costs measure(int processes, int threads)
{
	static struct shared {
		pthread_barrier_t barrier;
		struct costs costs[MOST];
	} * shared;
	struct costs mean = { 0 };
	pthread_barrierattr_t attr;

	if (shared == NULL)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(shared, 0, sizeof(*shared));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, (unsigned)(processes * threads));
	for (int i = 0; i < processes; i++)
		if (fork() == 0)
			run(threads, &shared->barrier, &shared->costs[i]);
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < processes; i++) {
		mean.map += shared->costs[i].map / processes;
		mean.create += shared->costs[i].create / processes;
		mean.copy += shared->costs[i].copy / processes;
	}
	return mean;
}

int main(void)
{
	const struct costs one = measure(1, 1);
	char name[64];

	for (int n = 1; n <= MOST; n *= 2)
		for (int processes = 0; processes < 2; processes++) {
			struct costs c = processes ? measure(n, 1) : measure(1, n);

			snprintf(name, sizeof(name), "%d %s", n,
				 processes ? "processes" : "threads");
			bench_line(name, "map + unmap %.0f ns, create + free %.0f ns, 8 B %.0f ns",
				   c.map, c.create, c.copy);
			if (n != MOST)
				continue;
			snprintf(name, sizeof(name), "%d %s, map + unmap", n,
				 processes ? "processes" : "threads");
			bench_at_most(name, c.map / one.map, "x one", processes ? 1.5 : 4);
		}
	return 0;
}
