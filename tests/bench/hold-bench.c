/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread copies 1 GiB again and again, another maps and unmaps 2 MiB: the longest time that the
 * model's lock is held, how long a map and an unmap take beside the copy and alone, and what the
 * copy loses by it. At the driver's functions, without the layers above.
 *
 * The clock of a thread also counts what the machine puts in its way: interrupts, and other
 * machines on the same host. So holds of 50 us and more are shown beside steps as long of a thread
 * that only reads its clock, holding nothing, beside another one that works; both per second. The
 * longest map and unmap is without the time in which others ran on the CPUs of those who could.
 */
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "npusim/driver.h"
#include "process/process.h"

#define GIB     (UINT64_C(1) << 30)
#define MIB     (UINT64_C(1) << 20)
#define SECONDS 4.0
#define LONG_NS UINT64_C(50000)

extern const struct npu_backend npusim_backend_1;

static struct npu_driver *driver;
static uint64_t device;
static unsigned char *host;
static int stop;
static double copy_seconds; /* CPU time of a copy */

/* Of the calling thread. */
static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* For how many ns of the holder's CPU time the model's lock could not be had, so that other
 * processes do not count: what takes it, gives it back and offers it is linked through here. */
static const pthread_mutex_t *watched;
static struct sim_histogram held;
static uint64_t since_ns;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
bool __real_bsim_lock_offer(void *bsim);
bool __wrap_bsim_lock_offer(void *bsim);

static void taken(const pthread_mutex_t *mutex)
{
	if (mutex == watched)
		since_ns = cpu_ns();
}

static void given(const pthread_mutex_t *mutex)
{
	if (mutex == watched && since_ns != 0)
		sim_histogram_add(&held, cpu_ns() - since_ns);
	if (mutex == watched)
		since_ns = 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc = __real_pthread_mutex_lock(mutex);

	taken(mutex);
	return rc;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int rc = __real_pthread_mutex_trylock(mutex);

	if (rc == 0)
		taken(mutex);
	return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	given(mutex);
	return __real_pthread_mutex_unlock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int rc;

	given(mutex);
	rc = __real_pthread_cond_wait(cond, mutex);
	taken(mutex);
	return rc;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	int rc;

	given(mutex);
	rc = __real_pthread_cond_timedwait(cond, mutex, until);
	taken(mutex);
	return rc;
}

bool __wrap_bsim_lock_offer(void *bsim)
{
	given(&((struct bsim *)bsim)->lock.mutex);
	taken(&((struct bsim *)bsim)->lock.mutex);
	return __real_bsim_lock_offer(bsim);
}

static void check(drvError_t result, const char *what)
{
	if (result == DRV_ERROR_NONE)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, result, npu_call(driver, npusimLastMessage));
	exit(1);
}

/* ---- what others ran instead ---- */

static int copier = -1; /* its schedstat; -1: there is none */

struct moment {
	uint64_t now_ns, cpu_ns, waited_ns, copier_waited_ns;
};

static int open_schedstat(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* For how long a thread could have run, and did not; 0 where the kernel does not say. */
static uint64_t waited_ns(int schedstat)
{
	char text[64] = "";
	unsigned long long waited;

	return pread(schedstat, text, sizeof(text) - 1, 0) > 0 &&
			       sscanf(text, "%*u %llu", &waited) == 1
		       ? waited
		       : 0;
}

static struct moment moment(int schedstat)
{
	struct moment m = { .cpu_ns = cpu_ns(), .waited_ns = waited_ns(schedstat) };

	m.copier_waited_ns = waited_ns(__atomic_load_n(&copier, __ATOMIC_RELAXED));
	m.now_ns = clock_now_ns();
	return m;
}

/* Of the time since then: this thread's on a CPU, or asleep while the copier waited for none. */
static uint64_t own_ns(const struct moment *then, int schedstat)
{
	struct moment now = moment(schedstat);
	uint64_t ran = now.cpu_ns - then->cpu_ns, waited = now.waited_ns - then->waited_ns;
	uint64_t passed = now.now_ns - then->now_ns;
	uint64_t others = ran + waited + now.copier_waited_ns - then->copier_waited_ns;

	return ran + (passed > others ? passed - others : 0);
}

/* ---- the two threads ---- */

static void *copy(void *arg)
{
	int schedstat = open_schedstat();

	__atomic_store_n(&copier, schedstat, __ATOMIC_RELAXED);
	for (copy_seconds = 1e9; !__atomic_load_n(&stop, __ATOMIC_RELAXED);) {
		uint64_t begin = cpu_ns();
		double seconds;

		check(npu_call(driver, drvMemcpy, device, GIB, (uintptr_t)host, GIB), "drvMemcpy");
		seconds = (double)(cpu_ns() - begin) / 1e9;
		copy_seconds = seconds < copy_seconds ? seconds : copy_seconds;
	}
	__atomic_store_n(&copier, -1, __ATOMIC_RELAXED);
	close(schedstat);
	return arg;
}

static drv_mem_handle_t *create(uint64_t bytes)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE, .pg_type = MEM_HUGE_PAGE_TYPE };
	drv_mem_handle_t *handle;

	check(npu_call(driver, halMemCreate, &handle, bytes, &prop, 0), "halMemCreate");
	return handle;
}

static void *reserve(uint64_t bytes)
{
	void *va;

	check(npu_call(driver, halMemAddressReserve, &va, bytes, 0, NULL, 1), "reserve");
	return va;
}

#define MOMENT_NS UINT64_C(100000)
static uint64_t longest_own_ns; /* of map_for(), without what others ran; up to MOMENT_NS more */

/* Pairs of map and unmap for a while, each with its time. */
static void map_for(double seconds, struct sim_histogram *times)
{
	static drv_mem_handle_t *handle;
	static void *va;
	double until = bench_seconds() + seconds;
	int schedstat = open_schedstat();
	struct moment then = { 0 };

	if (handle == NULL) {
		handle = create(2 * MIB);
		va = reserve(2 * MIB);
	}
	memset(times, 0, sizeof(*times));
	longest_own_ns = 0;
	while (bench_seconds() < until) {
		uint64_t begin = clock_now_ns(), took;

		if (begin - then.now_ns > MOMENT_NS) {
			then = moment(schedstat);
			begin = then.now_ns;
		}
		check(npu_call(driver, halMemMap, va, 2 * MIB, 0, handle, 0), "halMemMap");
		check(npu_call(driver, halMemUnmap, va), "halMemUnmap");
		took = clock_now_ns() - begin;
		sim_histogram_add(times, took);
		if (took > longest_own_ns && took > 2 * MOMENT_NS)
			took = MIN(took, own_ns(&then, schedstat));
		longest_own_ns = MAX(longest_own_ns, took);
	}
	close(schedstat);
}

/* Steps of the thread's own clock while another thread is busy. */
static void read_clock_for(double seconds, struct sim_histogram *steps)
{
	uint64_t last = cpu_ns(), end = last + (uint64_t)(seconds * 1e9);

	memset(steps, 0, sizeof(*steps));
	while (last < end) {
		uint64_t now = cpu_ns();

		sim_histogram_add(steps, now - last);
		last = now;
	}
}

/* How many of LONG_NS or more there are in a second of them all. */
static double long_ones(const struct sim_histogram *h)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SIM_HISTOGRAM_BUCKETS; i++)
		sum += sim_histogram_ps(i) >= LONG_NS ? h->count[i] : 0;
	return h->sum_ps == 0 ? 0 : (double)sum / ((double)h->sum_ps / 1e9);
}

static double at(const struct sim_histogram *h, double part)
{
	uint64_t left = (uint64_t)((double)h->total * part);
	unsigned i = 0;

	while (i < SIM_HISTOGRAM_BUCKETS - 1 && left >= h->count[i])
		left -= h->count[i++];
	return (double)sim_histogram_ps(i) / 1e3;
}

static void show(const char *what, const struct sim_histogram *h)
{
	bench_line(what, "p50 %.1f, p99 %.1f, p99.99 %.1f, longest %.1f us (%llu)", at(h, .5),
		   at(h, .99), at(h, .9999), (double)h->max_ps / 1e3, (unsigned long long)h->total);
}

/* What a copy takes at best while another thread maps, or sleeps. */
static double copy_beside(void (*other)(double, struct sim_histogram *),
			  struct sim_histogram *times)
{
	pthread_t thread;

	stop = 0;
	if (pthread_create(&thread, NULL, copy, NULL) != 0)
		exit(1);
	other(SECONDS, times);
	stop = 1;
	pthread_join(thread, NULL);
	return copy_seconds;
}

static void sleep_for(double seconds, struct sim_histogram *times)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	(void)times;
	nanosleep(&t, NULL);
}

int main(void)
{
	static struct sim_histogram alone, beside, steps;
	char *error = NULL;
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;
	double both, only, own_ms;
	drv_mem_handle_t *handle;

	driver = npusim_backend_1.open(&error);
	if (driver == NULL)
		return 1;
	check(npu_call(driver, halDeviceOpen, 0, &in, &out), "halDeviceOpen");
	handle = create(GIB);
	device = (uint64_t)reserve(GIB);
	check(npu_call(driver, halMemMap, (void *)device, GIB, 0, handle, 0), "halMemMap");
	host = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(host, 1, GIB);
	check(npu_call(driver, drvMemcpy, device, GIB, (uintptr_t)host, GIB),
	      "the first drvMemcpy");
	only = copy_beside(sleep_for, &alone);
	map_for(SECONDS, &alone);
	both = copy_beside(map_for, &beside);
	own_ms = (double)longest_own_ns / 1e6;
	watched = &bsim_of(driver)->lock.mutex;
	(void)copy_beside(map_for, &steps); /* slower, as each hold reads the clock twice */
	watched = NULL;
	(void)copy_beside(read_clock_for, &steps);
	show("map + unmap of 2 MiB, nobody copies", &alone);
	show("map + unmap of 2 MiB beside copies of 1 GiB", &beside);
	show("the lock was held", &held);
	show("steps of a clock, nothing held", &steps);
	bench_line("of 50 us or more, per second: lock held, clock alone", "%.1f and %.1f",
		   long_ones(&held), long_ones(&steps));
	bench_at_most("longest time that the lock was held", (double)held.max_ps / 1e3, "us", 50);
	bench_at_most("map + unmap beside copies, p99", at(&beside, .99), "us", 20);
	bench_at_most("map + unmap beside copies, longest of its own", own_ms, "ms", 5);
	bench_at_most("a copy beside map + unmap, CPU time", both / only, "x alone", 1.05);
	driver->close(driver);
	return 0;
}
