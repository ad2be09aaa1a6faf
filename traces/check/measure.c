/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long calls, copies and waits take, as steps of a case in processes of their own. On
 * the model simulated time counts; on a real device, the host's clock.
 */
#include "check.h"

#include <math.h>
#include <string.h>

#include "acl/acl.h"

#define HUGE       (G_GUINT64_CONSTANT(2) << 20)
#define GIANT      (G_GUINT64_CONSTANT(1) << 30)
#define COPY_LEAST (G_GUINT64_CONSTANT(4) << 10)
#define COPY_MOST  (G_GUINT64_CONSTANT(128) << 20)
#define STARTS     3 /* of the processes */
#define ROUNDS     8 /* of each size in a process; the first is the cold one */
#define ROW_BYTES  512
#define ROW_ROUNDS 5
/* aclrtMalloc adds 32 bytes and rounds up to 32: what remains fits the pages that are meant. */
#define MALLOC_PADDING 64

/* Process A maps memory, B imports it: `d` is the device, `t` B's process as the driver sees it. */
enum { A, B };
static const struct test_case pair = { .dialect = &case_acl, .processes = 2 };

/* Not every driver can all: a step that fails is left out, with as many more as `leaves`, where it
 * has such; else it is the end. */
struct task {
	const char *what; /* NULL: not timed */
	int process, leaves;
	const char *words;
};

/* Of `size` bytes in pages of a kind. Not every driver shares memory, or lets a process of the same
 * user import it. */
static const struct task calls[] = {
	{ "query", A, 0, "granularity minimum on=device:d as=kind" },
	{ "reserve", A, 0, "reserve va size" },
	{ "create", A, 0, "create h size on=device:d as=kind" },
	{ "map", A, 0, "map va size h" },
	{ "access", A, 0, "grant va size to=driver:d" },
	{ "export", A, 3, "export s h" },
	{ NULL, A, 2, "allow s t" },
	{ "import", B, 1, "import i s on=d" },
	{ NULL, B, 0, "destroy i" },
	{ "unmap", A, 0, "unmap va" },
	{ "release", A, 0, "destroy h" },
	{ "address_free", A, 0, "unreserve va" },
	{ "alloc", A, 0, "malloc m classic policy=policy" },
	{ "free", A, 0, "free m" },
};
/* Of `size` bytes, each until it is seen to be done; without a second device there is no `peer`. */
static const struct task copies[] = {
	{ "h2d", A, 0, "all copy-async to host size s kind=1 ; wait s" },
	{ "d2h", A, 0, "all copy-async host to size s kind=2 ; wait s" },
	{ "sdma", A, 0, "all copy-async to from size s kind=3 ; wait s" },
	{ "peer_read", A, 1, "all copy-async to peer size s kind=3 ; wait s" },
	{ "peer_write", A, 0, "all copy-async peer to size s kind=3 ; wait s" },
};
/* The last may hang where value waits are not understood. */
static const struct task waits[] = {
	{ "stream", A, 0, "stream y" },
	{ NULL, A, 0, "call aclrtDestroyStream y" },
	{ "submit", A, 0, "copy-async to host 8 s kind=1" },
	{ NULL, A, 0, "wait s" },
	{ "sync", A, 0, "wait s" },
	{ "event", A, 0, "all call aclrtRecordEvent e s ; call aclrtSynchronizeEvent e" },
	{ "event_wait", A, 0,
	  "all call aclrtRecordEvent e s ; call aclrtStreamWaitEvent x e ; wait x" },
	{ "value_wait", A, 1,
	  "all call aclrtValueWait to turn 1 x ; call aclrtValueWrite to turn 0 s ; wait x" },
	{ NULL, A, 0, "wait s" },
};

struct meter {
	struct case_processes *processes;
	const char *library;
	unsigned device, peer; /* the same: there is no other */
	guint64 most;
	struct sim_sample now; /* what is being measured */
	GArray *samples;
};

/* In a process; FALSE and error where the step fails. */
static gboolean ask(struct meter *m, int process, const char *words, GError **error)
{
	struct case_answer answer;

	if (!case_need(m->processes, process, words, &answer, error))
		return FALSE;
	m->now.ns = answer.call_ns;
	return TRUE;
}

/* All rounds of a size. */
static gboolean run_rounds(struct meter *m, const struct task *tasks, gsize count, guint64 bytes,
			   GError **error)
{
	m->now.bytes = bytes;
	case_tell(m->processes, "size", bytes);
	case_tell(m->processes, "classic", bytes - (m->now.page_lg2 < 30 ? MALLOC_PADDING : 0));
	for (guint64 round = 0; round < ROUNDS; round++) {
		m->now.cold = round == 0;
		case_tell(m->processes, "turn", round + 1);
		for (const struct task *t = tasks; t < tasks + count; t++) {
			m->now.what = t->what;
			if (ask(m, t->process, t->words, t->leaves > 0 ? NULL : error)) {
				if (t->what != NULL)
					g_array_append_val(m->samples, m->now);
			} else if (t->leaves == 0) {
				return FALSE;
			} else {
				t += t->leaves;
			}
		}
	}
	return TRUE;
}

static void use_pages(struct meter *m, gboolean giant)
{
	m->now.page_lg2 = giant ? 30 : 21;
	case_tell(m->processes, "kind", giant ? ACL_HBM_MEM_HUGE1G : ACL_HBM_MEM_HUGE);
	case_tell(m->processes, "policy",
		  giant ? ACL_MEM_MALLOC_HUGE1G_ONLY : ACL_MEM_MALLOC_HUGE_ONLY);
}

static gboolean measure_calls(struct meter *m, gboolean giant, GError **error)
{
	guint64 least = giant ? GIANT : HUGE;

	use_pages(m, giant);
	case_tell(m->processes, "size", least);
	if (m->most < least ||
	    !ask(m, A, "create h size on=device:d as=kind", giant ? NULL : error))
		return giant; /* a device without such pages */
	if (!ask(m, A, "destroy h", error))
		return FALSE;
	for (guint64 bytes = least; bytes <= m->most; bytes *= 2)
		if (!run_rounds(m, calls, G_N_ELEMENTS(calls), bytes, error))
			return FALSE;
	return TRUE;
}

static gboolean measure_copies(struct meter *m, gboolean giant, GError **error)
{
	guint64 half = MIN(m->most / 2, COPY_MOST) - MALLOC_PADDING;

	use_pages(m, giant);
	case_tell(m->processes, "half", half);
	case_tell(m->processes, "e", 0);
	case_tell(m->processes, "p", m->peer);
	if (m->peer != m->device) /* if it can be reached */
		ask(m, A, "all device p ; malloc peer half policy=policy ; device d ; peer p",
		    NULL);
	if (!ask(m, A,
		 "all device d ; malloc-host host half ; malloc to half policy=policy ; "
		 "malloc from half policy=policy ; stream s ; stream x ; call aclrtCreateEvent &e",
		 error))
		return FALSE;
	for (guint64 bytes = COPY_LEAST; bytes <= half; bytes *= 4)
		if (!run_rounds(m, copies, G_N_ELEMENTS(copies), bytes, error))
			return FALSE;
	return run_rounds(m, waits, G_N_ELEMENTS(waits), 0, error);
}

/* Copies of one row a page, in a stream: a footprint of so many pages of 2 MiB, or as many bytes in
 * pages of 1 GiB. Each row lies 4 KiB further in its page, so that they do not meet in the L2. What
 * is read is `from`, and what is written lies in few pages. */
static gboolean measure_rows(struct meter *m, gboolean giant, GError **error)
{
	const guint64 pitch = HUGE + 4096, target = MAX(m->most / 64 / HUGE, 1) * HUGE;
	guint64 page = giant ? GIANT : HUGE, from, step;

	use_pages(m, giant);
	if (m->most < target + 2 * page)
		return TRUE;
	from = (m->most - target) / page * page;
	case_tell(m->processes, "source", from - MALLOC_PADDING);
	case_tell(m->processes, "target", target - MALLOC_PADDING);
	case_tell(m->processes, "pitch", pitch);
	if (!ask(m, A, "malloc from source policy=policy", NULL))
		return giant; /* a device without such pages */
	if (!ask(m, A, "all malloc to target ; stream s", error))
		return FALSE;
	for (guint64 rows = 1; rows <= from / pitch; rows += step) {
		step = MAX(rows / 20, 1);
		case_tell(m->processes, "rows", rows);
		m->now = (struct sim_sample){ "rows", rows * HUGE, m->now.page_lg2, TRUE, 0 };
		for (int round = 0; round <= ROW_ROUNDS; round++) {
			if (!ask(m, A,
				 "all call aclrtMemcpy2dAsync to 512 from pitch 512 rows 3 s ; "
				 "wait s",
				 error))
				return FALSE;
			g_array_append_val(m->samples, m->now);
			m->now.cold = FALSE;
		}
	}
	return TRUE;
}

/* In new processes, which hold nothing yet. */
static gboolean start(struct meter *m, gboolean giant,
		      gboolean (*measure)(struct meter *m, gboolean giant, GError **error),
		      GError **error)
{
	gboolean good = TRUE;

	m->processes = case_start(&pair, m->library);
	case_tell(m->processes, "d", m->device);
	for (int process = A; good && process <= B; process++)
		good = ask(m, process, "all init ; device d", error);
	/* a driver without the second question is older than containers are to it */
	ask(m, A, "let t pidB", NULL);
	ask(m, B, "tgid t", NULL);
	good = good && measure(m, giant, error);
	case_end(m->processes);
	return good;
}

void check_figures_text(GString *out, const GArray *figures, const GArray *modelled)
{
	g_string_append_printf(out,
			       "%-12s %12s %5s %4s %4s %12s %12s %12s %12s %12s %9s %12s %6s\n",
			       "what", "bytes", "pages", "", "n", "min us", "p10", "p50", "p99",
			       "max", "GB/s", "model p50", "ratio");
	for (guint i = 0; i < figures->len; i++) {
		const struct sim_figure *f = sim_figure_at(figures, i);
		guint k = 0;

		while (k < modelled->len &&
		       sim_sample_order(&sim_figure_at(modelled, k)->of, &f->of) != 0)
			k++;
		double model = k < modelled->len ? sim_figure_at(modelled, k)->of.ns : 0;
		g_autofree char *ratio = model > 0 && f->of.ns > 0
						 ? g_strdup_printf("%.2f", f->of.ns / model)
						 : g_strdup("-");
		g_autofree char *model_us =
			model > 0 ? g_strdup_printf("%.3f", model / 1e3) : g_strdup("-");
		g_string_append_printf(
			out,
			"%-12s %12" G_GUINT64_FORMAT
			" %5s %4s %4u %12.3f %12.3f %12.3f %12.3f %12.3f %9.3f %12s %6s\n",
			f->of.what, f->of.bytes, f->of.page_lg2 < 30 ? "2m" : "1g",
			f->of.cold ? "cold" : "warm", f->count, f->min / 1e3, f->p10 / 1e3,
			f->of.ns / 1e3, f->p99 / 1e3, f->max / 1e3,
			(double)f->of.bytes / MAX(f->of.ns, 1), model_us, ratio);
	}
}

GArray *check_measure(const char *library, unsigned device, unsigned peer, guint64 most,
		      GError **error)
{
	g_autoptr(GArray) samples = g_array_new(FALSE, FALSE, sizeof(struct sim_sample));
	struct meter m = {
		.library = library, .device = device, .peer = peer, .most = most, .samples = samples
	};

	for (int i = 0; i < STARTS; i++)
		if (!start(&m, FALSE, measure_calls, error) ||
		    !start(&m, TRUE, measure_calls, error) ||
		    !start(&m, FALSE, measure_copies, error))
			return NULL;
	if (!start(&m, FALSE, measure_rows, error) || !start(&m, TRUE, measure_rows, error))
		return NULL;
	return sim_figures(samples);
}
