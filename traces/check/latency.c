/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long calls take, by size: through the ACL, each call once per round, as the median
 * over several rounds. On the model simulated time counts; on a real device, the host's clock.
 */
#include "check.h"
#include "child.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "npusim/npusim.h"

#define SMALLEST (G_GUINT64_CONSTANT(2) << 20)
#define GIANT    (G_GUINT64_CONSTANT(1) << 30)
#define ROUNDS   5
/* aclrtMalloc adds 32 bytes and rounds up to 32: what remains fits the pages that are meant. */
#define MALLOC_PADDING 64

#define FUNCTIONS(X)                         \
	X(aclInit)                           \
	X(aclrtSetDevice)                    \
	X(aclrtReserveMemAddress)            \
	X(aclrtReleaseMemAddress)            \
	X(aclrtMallocPhysical)               \
	X(aclrtFreePhysical)                 \
	X(aclrtMapMem)                       \
	X(aclrtUnmapMem)                     \
	X(aclrtMemSetAccess)                 \
	X(aclrtMemExportToShareableHandle)   \
	X(aclrtMemSetPidToShareableHandle)   \
	X(aclrtMemImportFromShareableHandle) \
	X(aclrtDeviceGetBareTgid)            \
	X(aclrtMalloc)                       \
	X(aclrtFree)                         \
	X(aclrtMemGetAllocationGranularity)  \
	X(aclGetRecentErrMsg)

struct acl {
#define POINTER(name) typeof(name) *name;
	FUNCTIONS(POINTER)
#undef POINTER
	typeof(npusim_now_ps) *now_ps; /* NULL: not npusim's */
};

struct order {
	guint64 shareable;
	gboolean end;
};
struct importer {
	pid_t pid;
	int to, from;
	gint32 tgid; /* as the driver knows it */
};

struct meter {
	struct acl acl;
	unsigned device;
	guint64 most;
	FILE *out;
	struct importer importer;
	double times[SIM_CALL_COUNT][ROUNDS]; /* ns; of one size */
	unsigned rounds[SIM_CALL_COUNT];
};

static gboolean load(const char *path, struct acl *out, FILE *complaint)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;

	if (library == NULL) {
		fprintf(complaint, "%s", dlerror());
		return FALSE;
	}
#define LOOK_UP(name)                                 \
	*(void **)&out->name = dlsym(library, #name); \
	missing = out->name == NULL ? #name : missing;
	FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	*(void **)&out->now_ps = dlsym(library, "npusim_now_ps");
	if (missing != NULL)
		fprintf(complaint, "%s has no %s", path, missing);
	/* cppcheck-suppress resourceLeak ; it stays loaded until the process ends */
	return missing == NULL;
}

static double now_ns(const struct acl *acl)
{
	return acl->now_ps != NULL ? (double)acl->now_ps() / 1e3
				   : (double)g_get_monotonic_time() * 1e3;
}

static gboolean fail(struct meter *m, const char *what, int code)
{
	const char *message = m->acl.aclGetRecentErrMsg();

	fprintf(m->out, "%s answers %d: %s", what, code, message != NULL ? message : "no message");
	return FALSE;
}

/* Times a call, and leaves the function with a complaint if it fails. */
#define TIMED(m, which, call)                               \
	do {                                                \
		double start_ = now_ns(&(m)->acl);          \
		int code_ = call;                           \
                                                            \
		if (code_ != ACL_SUCCESS)                   \
			return fail(m, #call, code_);       \
		note(m, which, now_ns(&(m)->acl) - start_); \
	} while (0)

static void note(struct meter *m, enum sim_call which, double ns)
{
	m->times[which][m->rounds[which]++] = ns;
}

/* ---- the process that imports ---- */

static void import_until_told(const struct acl *acl, unsigned device, int from, int to)
{
	gint32 tgid = -1;
	struct order order;

	if (acl->aclInit(NULL) == ACL_SUCCESS &&
	    acl->aclrtSetDevice((int32_t)device) == ACL_SUCCESS &&
	    acl->aclrtDeviceGetBareTgid(&tgid) != ACL_SUCCESS)
		tgid = getpid(); /* a driver without the question is older than containers are to it
				  */
	child_write(to, &tgid, sizeof(tgid));
	while (child_read(from, &order, sizeof(order)) && !order.end) {
		aclrtDrvMemHandle handle = NULL;
		double start = now_ns(acl), ns = -1;

		if (acl->aclrtMemImportFromShareableHandle(order.shareable, (int32_t)device,
							   &handle) == ACL_SUCCESS) {
			ns = now_ns(acl) - start;
			acl->aclrtFreePhysical(handle);
		}
		if (!child_write(to, &ns, sizeof(ns)))
			break;
	}
}

static gboolean start_importer(struct meter *m)
{
	int from, to;

	m->importer.pid = child_start(&m->importer.to, &m->importer.from, &from, &to);
	if (m->importer.pid < 0)
		return FALSE;
	if (m->importer.pid == 0) {
		import_until_told(&m->acl, m->device, from, to);
		_exit(0);
	}
	return child_read(m->importer.from, &m->importer.tgid, sizeof(m->importer.tgid)) &&
	       m->importer.tgid > 0;
}

static void end_importer(struct meter *m)
{
	struct order order = { .end = TRUE };

	child_write(m->importer.to, &order, sizeof(order));
	close(m->importer.to);
	close(m->importer.from);
	waitpid(m->importer.pid, NULL, 0);
}

/* Not every driver lets a process of the same user import: then there is no sample. */
static gboolean import(struct meter *m, guint64 shareable)
{
	struct order order = { .shareable = shareable };
	double ns = -1;

	if (m->acl.aclrtMemSetPidToShareableHandle(shareable, &m->importer.tgid, 1) != ACL_SUCCESS)
		return TRUE;
	if (!child_write(m->importer.to, &order, sizeof(order)) ||
	    !child_read(m->importer.from, &ns, sizeof(ns))) {
		fprintf(m->out, "the process that imports has died");
		return FALSE;
	}
	if (ns >= 0)
		note(m, SIM_CALL_IMPORT, ns);
	return TRUE;
}

/* ---- rounds ---- */

static aclrtPhysicalMemProp property(unsigned device, gboolean giant)
{
	aclrtPhysicalMemProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
	prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
	prop.memAttr = giant ? ACL_HBM_MEM_HUGE1G : ACL_HBM_MEM_HUGE;
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}

/* A driver may lack it: then there are no samples of it. */
static gboolean share(struct meter *m, aclrtDrvMemHandle handle)
{
	uint64_t shareable = 0;
	double start = now_ns(&m->acl);
	int code = m->acl.aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0,
							  &shareable);

	if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
		return TRUE;
	if (code != ACL_SUCCESS)
		return fail(m, "aclrtMemExportToShareableHandle", code);
	note(m, SIM_CALL_EXPORT, now_ns(&m->acl) - start);
	return import(m, shareable);
}

static gboolean mapping_round(struct meter *m, guint64 bytes, gboolean giant)
{
	const struct acl *acl = &m->acl;
	aclrtPhysicalMemProp prop = property(m->device, giant);
	aclrtMemAccessDesc access = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				      .location = prop.location };
	aclrtDrvMemHandle handle = NULL;
	size_t granularity = 0;
	void *va = NULL;

	TIMED(m, SIM_CALL_QUERY,
	      acl->aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
						    &granularity));
	TIMED(m, SIM_CALL_RESERVE, acl->aclrtReserveMemAddress(&va, bytes, 0, NULL, 1));
	TIMED(m, SIM_CALL_CREATE, acl->aclrtMallocPhysical(&handle, bytes, &prop, 0));
	TIMED(m, SIM_CALL_MAP, acl->aclrtMapMem(va, bytes, 0, handle, 0));
	TIMED(m, SIM_CALL_ACCESS, acl->aclrtMemSetAccess(va, bytes, &access, 1));
	if (!share(m, handle))
		return FALSE;
	TIMED(m, SIM_CALL_UNMAP, acl->aclrtUnmapMem(va));
	TIMED(m, SIM_CALL_RELEASE, acl->aclrtFreePhysical(handle));
	TIMED(m, SIM_CALL_ADDRESS_FREE, acl->aclrtReleaseMemAddress(va));
	return TRUE;
}

static gboolean classic_round(struct meter *m, guint64 bytes, gboolean giant)
{
	const struct acl *acl = &m->acl;
	void *va = NULL;

	TIMED(m, SIM_CALL_ALLOC,
	      acl->aclrtMalloc(&va, giant ? bytes : bytes - MALLOC_PADDING,
			       giant ? ACL_MEM_MALLOC_HUGE1G_ONLY : ACL_MEM_MALLOC_HUGE_ONLY));
	TIMED(m, SIM_CALL_FREE, acl->aclrtFree(va));
	return TRUE;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void write_medians(struct meter *m, guint64 bytes, gboolean giant)
{
	for (int call = 0; call < SIM_CALL_COUNT; call++) {
		unsigned count = m->rounds[call];

		if (count == 0)
			continue;
		qsort(m->times[call], count, sizeof(double), by_size);
		fprintf(m->out, "%d %" G_GUINT64_FORMAT " %d %.3f\n", call, bytes, giant ? 30 : 21,
			m->times[call][count / 2]);
	}
}

static gboolean measure_size(struct meter *m, guint64 bytes, gboolean giant)
{
	memset(m->rounds, 0, sizeof(m->rounds));
	for (int round = 0; round < ROUNDS; round++) {
		alarm(CHILD_ANSWER_SECONDS);
		if (!mapping_round(m, bytes, giant) || !classic_round(m, bytes, giant))
			return FALSE;
	}
	write_medians(m, bytes, giant);
	return TRUE;
}

static gboolean has_giant_pages(struct meter *m)
{
	aclrtPhysicalMemProp prop = property(m->device, TRUE);
	aclrtDrvMemHandle handle = NULL;

	if (m->acl.aclrtMallocPhysical(&handle, GIANT, &prop, 0) != ACL_SUCCESS)
		return FALSE;
	m->acl.aclrtFreePhysical(handle);
	return TRUE;
}

static gboolean measure(struct meter *m)
{
	int code;

	alarm(CHILD_ANSWER_SECONDS);
	code = m->acl.aclInit(NULL);
	if (code == ACL_SUCCESS)
		code = m->acl.aclrtSetDevice((int32_t)m->device);
	if (code != ACL_SUCCESS)
		return fail(m, "aclrtSetDevice", code);
	for (guint64 bytes = SMALLEST; bytes <= m->most; bytes *= 2)
		if (!measure_size(m, bytes, FALSE))
			return FALSE;
	if (m->most < GIANT || !has_giant_pages(m))
		return TRUE;
	for (guint64 bytes = GIANT; bytes <= m->most; bytes *= 2)
		if (!measure_size(m, bytes, TRUE))
			return FALSE;
	return TRUE;
}

struct job {
	const char *library;
	unsigned device;
	guint64 most;
};

static gboolean run_job(void *arg, FILE *out)
{
	const struct job *job = arg;
	struct meter m = { .device = job->device, .most = job->most, .out = out };
	gboolean good;

	if (!load(job->library, &m.acl, out))
		return FALSE;
	/* Before this process has a device: none survives a fork. */
	if (!start_importer(&m)) {
		fprintf(out, "the process that imports cannot use device %u", m.device);
		return FALSE;
	}
	good = measure(&m);
	end_importer(&m);
	return good;
}

gboolean check_latency(const char *library, unsigned device, guint64 most, GArray **out,
		       GError **error)
{
	struct job job = { library, device, most };
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (!child_text(run_job, &job, &text, error))
		return FALSE;
	*out = g_array_new(FALSE, FALSE, sizeof(struct check_sample));
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line != NULL; line++) {
		struct check_sample sample;
		int call;

		if (sscanf(*line, "%d %" G_GUINT64_FORMAT " %u %lf", &call, &sample.bytes,
			   &sample.page_lg2, &sample.ns) != 4)
			continue;
		sample.call = (enum sim_call)call;
		g_array_append_val(*out, sample);
	}
	return TRUE;
}
