/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long calls take, by size: as steps of a case, each once per round, as the median
 * over several rounds. On the model simulated time counts; on a real device, the host's clock.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

#define SMALLEST (G_GUINT64_CONSTANT(2) << 20)
#define GIANT    (G_GUINT64_CONSTANT(1) << 30)
#define ROUNDS   5
/* aclrtMalloc adds 32 bytes and rounds up to 32: what remains fits the pages that are meant. */
#define MALLOC_PADDING 64

/* Process A maps memory, B imports it: `d` is the device, `t` B's process as the driver knows it.
 */
enum { A, B };
static const struct test_case pair = { .dialect = &case_acl, .processes = 2, .bare = TRUE };

#define NOT_TIMED SIM_CALL_COUNT

/* A round: of `size` bytes in pages of a kind. Not every driver shares memory, or lets a process of
 * the same user import it: then that step and as many more as `leaves` are left out. */
static const struct {
	enum sim_call call;
	int process, leaves;
	const char *words;
} steps[] = {
	{ SIM_CALL_QUERY, A, 0, "granularity minimum on=device:d as=kind" },
	{ SIM_CALL_RESERVE, A, 0, "reserve va size" },
	{ SIM_CALL_CREATE, A, 0, "create h size on=device:d as=kind" },
	{ SIM_CALL_MAP, A, 0, "map va size h" },
	{ SIM_CALL_ACCESS, A, 0, "grant va size to=driver:d" },
	{ SIM_CALL_EXPORT, A, 3, "export s h" },
	{ NOT_TIMED, A, 2, "allow s t" },
	{ SIM_CALL_IMPORT, B, 1, "import i s on=d" },
	{ NOT_TIMED, B, 0, "destroy i" },
	{ SIM_CALL_UNMAP, A, 0, "unmap va" },
	{ SIM_CALL_RELEASE, A, 0, "destroy h" },
	{ SIM_CALL_ADDRESS_FREE, A, 0, "unreserve va" },
	{ SIM_CALL_ALLOC, A, 0, "malloc m classic policy=policy" },
	{ SIM_CALL_FREE, A, 0, "free m" },
};

struct meter {
	struct case_processes *processes;
	struct case_answer answer; /* the last one */
	GArray *samples;
	double times[SIM_CALL_COUNT][ROUNDS]; /* ns; of one size */
	unsigned rounds[SIM_CALL_COUNT];
};

/* In a process; FALSE and error where the step fails. */
static gboolean ask(struct meter *m, int process, const char *words, GError **error)
{
	return case_need(m->processes, process, words, &m->answer, error);
}

static gboolean measure_round(struct meter *m, GError **error)
{
	for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
		if (ask(m, steps[i].process, steps[i].words, steps[i].leaves > 0 ? NULL : error)) {
			if (steps[i].call != NOT_TIMED)
				m->times[steps[i].call][m->rounds[steps[i].call]++] =
					m->answer.call_ns;
		} else if (steps[i].leaves == 0) {
			return FALSE;
		} else {
			i += (gsize)steps[i].leaves;
		}
	}
	return TRUE;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static gboolean measure_size(struct meter *m, guint64 bytes, gboolean giant, GError **error)
{
	memset(m->rounds, 0, sizeof(m->rounds));
	case_tell(m->processes, "size", bytes);
	case_tell(m->processes, "classic", giant ? bytes : bytes - MALLOC_PADDING);
	for (int round = 0; round < ROUNDS; round++)
		if (!measure_round(m, error))
			return FALSE;
	for (int call = 0; call < SIM_CALL_COUNT; call++) {
		unsigned count = m->rounds[call];
		struct check_sample sample = { (enum sim_call)call, bytes, giant ? 30 : 21, 0 };

		if (count == 0)
			continue;
		qsort(m->times[call], count, sizeof(double), by_size);
		sample.ns = m->times[call][count / 2];
		g_array_append_val(m->samples, sample);
	}
	return TRUE;
}

/* All sizes from `bytes` on. */
static gboolean measure_pages(struct meter *m, guint64 bytes, guint64 most, GError **error)
{
	gboolean giant = bytes == GIANT;

	case_tell(m->processes, "kind", giant ? ACL_HBM_MEM_HUGE1G : ACL_HBM_MEM_HUGE);
	case_tell(m->processes, "policy",
		  giant ? ACL_MEM_MALLOC_HUGE1G_ONLY : ACL_MEM_MALLOC_HUGE_ONLY);
	for (; bytes <= most; bytes *= 2)
		if (!measure_size(m, bytes, giant, error))
			return FALSE;
	return TRUE;
}

static gboolean measure(struct meter *m, unsigned device, guint64 most, GError **error)
{
	case_tell(m->processes, "d", device);
	for (int process = A; process <= B; process++)
		if (!ask(m, process, "init", error) || !ask(m, process, "device d", error))
			return FALSE;
	/* a driver without the second question is older than containers are to it */
	ask(m, A, "let t pidB", NULL);
	ask(m, B, "tgid t", NULL);
	if (!measure_pages(m, SMALLEST, most, error))
		return FALSE;
	return most < GIANT || !ask(m, A, "create h 1G on=device:d as=hbm-huge1g", NULL) ||
	       (ask(m, A, "destroy h", error) && measure_pages(m, GIANT, most, error));
}

gboolean check_latency(const char *library, unsigned device, guint64 most, GArray **out,
		       GError **error)
{
	struct meter m = { .processes = case_start(&pair, library),
			   .samples = g_array_new(FALSE, FALSE, sizeof(struct check_sample)) };
	gboolean good = measure(&m, device, most, error);

	case_end(m.processes);
	if (good)
		*out = m.samples;
	else
		g_array_unref(m.samples);
	return good;
}
