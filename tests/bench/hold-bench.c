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
 *
 * Whether it is the model that holds the lock long, loads tell that one thread repeats: a hold that
 * is long each time is the model's, not the machine's. usage: hold-bench [loads]: these alone.
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
#include "queue/queue.h"

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
static GArray *holds; /* their ns one by one, of a run of a load */

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

static void add_to(struct sim_histogram *histogram, uint64_t ns)
{
	histogram->count[sim_histogram_bucket(ns)]++;
	histogram->max_ps = MAX(histogram->max_ps, ns);
	histogram->sum_ps += ns;
	histogram->total++;
}

static void taken(const pthread_mutex_t *mutex)
{
	if (mutex == watched)
		since_ns = cpu_ns();
}

static void given(const pthread_mutex_t *mutex)
{
	if (mutex == watched && since_ns != 0) {
		uint64_t ns = cpu_ns() - since_ns;

		if (holds != NULL)
			g_array_append_val(holds, ns);
		else
			add_to(&held, ns);
	}
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
		add_to(times, took);
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

		add_to(steps, now - last);
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

/* ---- loads that are repeated ---- */

#define RUNS  15
#define MANY  512
#define SMALL 4000u

static uint64_t many; /* MANY mappings of 2 MiB */
static uint64_t wide; /* WIDE mappings of 2 MiB, of one handle */
static void *pinned;
static uint32_t stream, queue, reports;

#define WIDE      20000
#define HOST_FLAG (MEM_HOST_VAL << MEM_VIRT_BIT | (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT)
#define DEVICE_FLAG                                                   \
	(MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE | \
	 (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT)

static void load_to_device(void)
{
	check(npu_call(driver, drvMemcpy, device, GIB, (uintptr_t)host, GIB), "drvMemcpy");
}

static void load_to_host(void)
{
	check(npu_call(driver, drvMemcpy, (uintptr_t)host, GIB, device, GIB), "drvMemcpy");
}

static void load_to_many(void)
{
	check(npu_call(driver, drvMemcpy, many, GIB, device, GIB), "drvMemcpy");
}

static void load_fill(void)
{
	check(npu_call(driver, drvMemsetD8, device, GIB, 1, GIB), "drvMemsetD8");
}

static void load_check_wide(void)
{
	check(npu_call(driver, drvMemPrefetchToDevice, wide, WIDE * 2 * MIB, 0), "prefetch");
}

static void load_batch(void)
{
	static uint64_t dst[SMALL], src[SMALL];
	static size_t size[SMALL];

	for (unsigned i = 0; i < SMALL; i++) {
		dst[i] = device + i * 64;
		src[i] = (uintptr_t)host + i * 64;
		size[i] = 8;
	}
	check(npu_call(driver, halMemcpyBatch, dst, src, size, SMALL), "halMemcpyBatch");
}

static void load_rows(void)
{
	struct MEMCPY2D rows = { .type = DEVMM_MEMCPY2D_SYNC,
				 .copy2d = { .dst = (void *)device,
					     .dpitch = 64,
					     .src = (void *)host,
					     .spitch = 64,
					     .width = 8,
					     .height = 5 * SMALL,
					     .direction = DRV_MEMCPY_HOST_TO_DEVICE } };

	check(npu_call(driver, halMemcpy2D, &rows), "halMemcpy2D");
}

static void load_map(void)
{
	static drv_mem_handle_t *handle;
	static void *va;

	if (handle == NULL) {
		handle = create(GIB);
		va = reserve(GIB);
	}
	check(npu_call(driver, halMemMap, va, GIB, 0, handle, 0), "halMemMap");
	check(npu_call(driver, halMemUnmap, va), "halMemUnmap");
}

static void open_stream(void)
{
	struct halResourceIdInputInfo id = { .type = DRV_STREAM_ID };
	struct halResourceIdOutputInfo id_out;
	struct halSqCqInputInfo in = {
		.type = DRV_NORMAL_TYPE, .sqeSize = 64, .cqeSize = 16, .sqeDepth = 4096
	};
	struct halSqCqOutputInfo out = { 0 };
	struct halResourceConfigInfo bind = { .prop = DRV_STREAM_BIND_LOGIC_CQ };

	check(npu_call(driver, halResourceIdAlloc, 0, &id, &id_out), "halResourceIdAlloc");
	in.info[0] = id.resourceId = stream = id_out.resourceId;
	check(npu_call(driver, halSqCqAllocate, 0, &in, &out), "halSqCqAllocate");
	queue = out.sqId;
	in = (struct halSqCqInputInfo){ .type = DRV_LOGIC_TYPE, .cqeSize = 32, .cqeDepth = 4096 };
	check(npu_call(driver, halSqCqAllocate, 0, &in, &out), "halSqCqAllocate");
	bind.value[0] = reports = out.cqId;
	check(npu_call(driver, halResourceConfig, 0, &id, &bind), "halResourceConfig");
	bsim_of(driver)->queues->idle_ns = UINT64_MAX / 1000; /* it stays out of the way */
}

/* SMALL entries that begin with a header, the last of which makes a report, which is awaited. */
static void send_and_wait(void *entries)
{
	struct stars_sqe_header *header = entries;
	struct stars_logic_cqe report;
	struct halTaskSendInfo send = {
		.type = DRV_NORMAL_TYPE, .sqId = queue, .sqe_addr = entries, .sqe_num = SMALL
	};
	struct halReportRecvInfo wait = { .type = DRV_LOGIC_TYPE,
					  .cqId = reports,
					  .timeout = -1,
					  .cqe_addr = (uint8_t *)&report,
					  .cqe_num = 1,
					  .stream_id = UINT32_MAX,
					  .task_id = UINT32_MAX };

	for (unsigned i = 0; i < SMALL; i++, header += STARS_SQE_BYTES / sizeof(*header)) {
		header->stream_id = (uint16_t)stream;
		header->wr_cqe = i == SMALL - 1;
	}
	check(npu_call(driver, halSqTaskSend, 0, &send), "halSqTaskSend");
	check(npu_call(driver, halCqReportRecv, 0, &wait), "halCqReportRecv");
}

static void load_queued_copies(void)
{
	static struct stars_pcie_dma_sqe copies[SMALL];

	for (unsigned i = 0; i < SMALL; i++)
		copies[i] = (struct stars_pcie_dma_sqe){ .header.type = STARS_SQE_PCIE_DMA,
							 .src = (uintptr_t)pinned + i * 64,
							 .dst = device + i * 64,
							 .length = 8 };
	send_and_wait(copies);
}

static void load_queued_nothing(void)
{
	static struct {
		struct stars_sqe_header header;
		uint8_t rest[STARS_SQE_BYTES - sizeof(struct stars_sqe_header)];
	} entries[SMALL];

	for (unsigned i = 0; i < SMALL; i++)
		entries[i].header.type = STARS_SQE_PLACE_HOLDER;
	send_and_wait(entries);
}

static void load_free_pinned(void)
{
	void *va;

	check(npu_call(driver, halMemAlloc, &va, 64 * MIB, HOST_FLAG), "halMemAlloc");
	memset(va, 1, 64 * MIB);
	check(npu_call(driver, halMemFree, va), "halMemFree");
}

static void load_free_device(void)
{
	void *va;

	check(npu_call(driver, halMemAlloc, &va, 64 * MIB, DEVICE_FLAG), "halMemAlloc");
	check(npu_call(driver, drvMemsetD8, (uintptr_t)va, 64 * MIB, 1, 64 * MIB), "drvMemsetD8");
	check(npu_call(driver, halMemFree, va), "halMemFree");
}

static void load_release(void)
{
	static void *va;
	drv_mem_handle_t *handle = create(64 * MIB);

	if (va == NULL)
		va = reserve(64 * MIB);
	check(npu_call(driver, halMemMap, va, 64 * MIB, 0, handle, 0), "halMemMap");
	check(npu_call(driver, drvMemsetD8, (uintptr_t)va, 64 * MIB, 1, 64 * MIB), "drvMemsetD8");
	check(npu_call(driver, halMemUnmap, va), "halMemUnmap");
	check(npu_call(driver, halMemRelease, handle), "halMemRelease");
}

static void load_unmap_from_cpu(void)
{
	static struct drv_mem_access_desc host_too = { .location = { .side = MEM_HOST_SIDE },
						       .type = MEM_ACCESS_TYPE_READWRITE };
	static drv_mem_handle_t *handle;
	static void *va;

	if (handle == NULL) {
		handle = create(64 * MIB);
		va = reserve(64 * MIB);
	}
	check(npu_call(driver, halMemMap, va, 64 * MIB, 0, handle, 0), "halMemMap");
	check(npu_call(driver, halMemSetAccess, va, 64 * MIB, &host_too, 1), "halMemSetAccess");
	memset(va, 1, 64 * MIB);
	check(npu_call(driver, halMemUnmap, va), "halMemUnmap");
}

/* Parts of frames that others have, too: they are zeros again for the next. */
static void load_small_pages(void)
{
	void *one, *two, *three;
	uint64_t flag = DEVICE_FLAG & ~(uint64_t)MEM_PAGE_HUGE;

	check(npu_call(driver, halMemAlloc, &one, 4096, flag), "halMemAlloc");
	check(npu_call(driver, halMemAlloc, &two, MIB, flag), "halMemAlloc");
	check(npu_call(driver, halMemFree, two), "halMemFree");
	check(npu_call(driver, halMemAlloc, &three, MIB, flag), "halMemAlloc");
	check(npu_call(driver, halMemFree, three), "halMemFree");
	check(npu_call(driver, halMemFree, one), "halMemFree");
}

#define DEVICE_1_FLAG (DEVICE_FLAG | UINT64_C(1))

static void load_reset(void)
{
	halDevOpenIn in = { { 0 } };
	halDevCloseIn close_in = { { 0 } };
	halDevOpenOut out;
	void *va;

	check(npu_call(driver, halDeviceOpen, 1, &in, &out), "halDeviceOpen");
	for (unsigned i = 0; i < 1000; i++) {
		check(npu_call(driver, halMemAlloc, &va, 2 * MIB, DEVICE_1_FLAG), "halMemAlloc");
		if (i % 16 == 0)
			check(npu_call(driver, drvMemsetD8, (uintptr_t)va, 2 * MIB, 1, 2 * MIB),
			      "drvMemsetD8");
	}
	check(npu_call(driver, halDeviceClose, 1, &close_in), "halDeviceClose");
}

#define OTHERS 100000u /* of 4 KiB, on device 0 */

static void load_reset_beside(void)
{
	static bool filled;
	halDevOpenIn in = { { 0 } };
	halDevCloseIn close_in = { { 0 } };
	halDevOpenOut out;
	void *va;

	for (unsigned i = 0; !filled && i < OTHERS; i++)
		check(npu_call(driver, halMemAlloc, &va, 4096,
			       DEVICE_FLAG & ~(uint64_t)MEM_PAGE_HUGE),
		      "halMemAlloc");
	filled = true;
	check(npu_call(driver, halDeviceOpen, 1, &in, &out), "halDeviceOpen");
	check(npu_call(driver, halDeviceClose, 1, &close_in), "halDeviceClose");
}

/* ---- loads of many things, which go in another order than they came ---- */

#define PIECES 24576u /* of 128 KiB: 3 GiB */

static void shuffle(void **at, unsigned count)
{
	srand(1);
	for (unsigned i = count - 1; i > 0; i--) {
		unsigned j = (unsigned)rand() % (i + 1);
		void *other = at[j];

		at[j] = at[i];
		at[i] = other;
	}
}

static void make_pieces(uint64_t flag)
{
	static void *piece[PIECES];

	for (unsigned i = 0; i < PIECES; i++)
		check(npu_call(driver, halMemAlloc, &piece[i], MIB / 8, flag), "halMemAlloc");
	shuffle(piece, PIECES);
	for (unsigned i = 0; i < PIECES; i++)
		check(npu_call(driver, halMemFree, piece[i]), "halMemFree");
}

static void load_pieces(void)
{
	make_pieces(DEVICE_FLAG & ~(uint64_t)MEM_PAGE_HUGE);
}

static void load_pinned_pieces(void)
{
	make_pieces(HOST_FLAG);
}

static void load_reservations(void)
{
	static void *va[SMALL];

	for (unsigned i = 0; i < SMALL; i++)
		va[i] = reserve(2 * MIB);
	shuffle(va, SMALL);
	for (unsigned i = 0; i < SMALL; i++)
		check(npu_call(driver, halMemAddressFree, va[i]), "halMemAddressFree");
}

static void grant_to_1(uint64_t va, uint64_t bytes, unsigned times)
{
	struct drv_mem_access_desc desc = { .location = { .side = MEM_DEV_SIDE, .id = 1 },
					    .type = MEM_ACCESS_TYPE_READWRITE };
	halDevOpenIn in = { { 0 } };
	halDevCloseIn close_in = { { 0 } };
	halDevOpenOut out;

	check(npu_call(driver, halDeviceOpen, 1, &in, &out), "halDeviceOpen");
	check(npu_call(driver, halDeviceEnableP2P, 1, 0, 0), "halDeviceEnableP2P");
	for (unsigned i = 0; i < times; i++)
		check(npu_call(driver, halMemSetAccess, (void *)(va + i * bytes), bytes, &desc, 1),
		      "halMemSetAccess");
	check(npu_call(driver, halDeviceClose, 1, &close_in), "halDeviceClose");
}

static void load_peer(void)
{
	grant_to_1(device, GIB, 1); /* the oldest of all mappings */
}

static void load_peer_wide(void)
{
	grant_to_1(wide, 2 * MIB, WIDE);
}

/* The longest of a run that may be the last run's k-th: where one has some holds more than the
 * other, that has moved by as many at most. */
static uint64_t longest_near(const GArray *run, unsigned k, unsigned last_len)
{
	unsigned apart = MAX(run->len, last_len) - MIN(run->len, last_len);
	uint64_t longest = 0;

	for (unsigned i = k - MIN(k, apart); i <= k + apart && i < run->len; i++)
		longest = MAX(longest, g_array_index(run, uint64_t, i));
	return longest;
}

/* The longest hold, each taken as short as it ever was. */
static void load(const char *what, void (*run)(void), double most)
{
	GArray *runs[RUNS];
	uint64_t longest = 0;
	char name[64];

	run();
	for (unsigned i = 0; i < RUNS; i++) {
		holds = runs[i] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
		watched = &bsim_of(driver)->lock.mutex;
		run();
		watched = NULL;
	}
	holds = NULL;
	for (unsigned k = 0; k < runs[RUNS - 1]->len; k++) {
		uint64_t least = UINT64_MAX;

		for (unsigned i = 0; i < RUNS; i++)
			least = MIN(least, longest_near(runs[i], k, runs[RUNS - 1]->len));
		longest = MAX(longest, least);
	}
	snprintf(name, sizeof(name), "longest hold, %s", what);
	if (most > 0)
		bench_at_most(name, (double)longest / 1e3, "us", most);
	else
		bench_line(name, "%8.2f us", (double)longest / 1e3);
	for (unsigned i = 0; i < RUNS; i++)
		g_array_unref(runs[i]);
}

static void repeat_loads(void)
{
	static const struct {
		const char *what;
		void (*run)(void);
		double most; /* us; 0: longer, by the number of records */
	} loads[] = {
		{ "1 GiB to the device", load_to_device, 50 },
		{ "1 GiB to the host", load_to_host, 50 },
		{ "1 GiB to 512 mappings", load_to_many, 50 },
		{ "fill of 1 GiB", load_fill, 50 },
		{ "check of 20000 mappings", load_check_wide, 50 },
		{ "batch of 4000", load_batch, 50 },
		{ "20000 rows", load_rows, 50 },
		{ "map + unmap of 1 GiB", load_map, 50 },
		{ "4000 queued copies", load_queued_copies, 50 },
		{ "4000 entries without time", load_queued_nothing, 50 },
		{ "free of 64 MiB, pinned", load_free_pinned, 50 },
		{ "free of 64 MiB, device", load_free_device, 50 },
		{ "unmap and release of 64 MiB", load_release, 50 },
		{ "unmap of 64 MiB from the CPU", load_unmap_from_cpu, 50 },
		{ "1 MiB of 4 KiB pages", load_small_pages, 50 },
		{ "3 GiB in small pieces", load_pieces, 50 },
		{ "3 GiB in small pieces, pinned", load_pinned_pieces, 50 },
		{ "4000 reservations", load_reservations, 50 },
		{ "reset beside 20000 mappings, peer to one", load_peer, 50 },
		{ "reset of a peer to 20000 mappings", load_peer_wide, 0 },
		{ "reset of 1000 allocations", load_reset, 0 },
		{ "reset beside 100000 allocations", load_reset_beside, 50 },
	};
	drv_mem_handle_t *handle = create(2 * MIB);

	many = (uint64_t)reserve(GIB);
	for (uint64_t i = 0; i < MANY; i++)
		check(npu_call(driver, halMemMap, (void *)(many + i * 2 * MIB), 2 * MIB, 0,
			       create(2 * MIB), 0),
		      "halMemMap");
	wide = (uint64_t)reserve(WIDE * 2 * MIB);
	for (uint64_t i = 0; i < WIDE; i++)
		check(npu_call(driver, halMemMap, (void *)(wide + i * 2 * MIB), 2 * MIB, 0, handle,
			       0),
		      "halMemMap");
	check(npu_call(driver, halMemAlloc, &pinned, MIB, HOST_FLAG), "halMemAlloc");
	open_stream();
	for (unsigned i = 0; i < G_N_ELEMENTS(loads); i++)
		load(loads[i].what, loads[i].run, loads[i].most);
}

int main(int argc, char **argv)
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
	repeat_loads();
	if (argc > 1 && strcmp(argv[1], "loads") == 0)
		return 0;
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
	bench_at_most("map + unmap beside copies, p99", at(&beside, .99), "us", 20);
	bench_at_most("map + unmap beside copies, longest of its own", own_ms, "ms", 5);
	bench_at_most("a copy beside map + unmap, CPU time", both / only, "x alone", 1.05);
	driver->close(driver);
	return 0;
}
