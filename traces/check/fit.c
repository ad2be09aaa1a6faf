/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits the lines of a device profile to measured times: least squares of relative errors, with no
 * negative cost. It measures nothing.
 */
#include "check.h"

#include <math.h>
#include <string.h>

#define TERMS 3 /* base, messages, pages */

#define put g_string_append_printf

static const char *const names[SIM_CALL_COUNT] = {
	[SIM_CALL_RESERVE] = "reserve", [SIM_CALL_ADDRESS_FREE] = "address_free",
	[SIM_CALL_CREATE] = "create",   [SIM_CALL_RELEASE] = "release",
	[SIM_CALL_MAP] = "map",         [SIM_CALL_UNMAP] = "unmap",
	[SIM_CALL_ACCESS] = "access",   [SIM_CALL_EXPORT] = "export",
	[SIM_CALL_IMPORT] = "import",   [SIM_CALL_ALLOC] = "alloc",
	[SIM_CALL_FREE] = "free",       [SIM_CALL_QUERY] = "query",
	[SIM_CALL_SUBMIT] = "submit",   [SIM_CALL_COPY] = "copy",
};

const char *check_call_name(enum sim_call call)
{
	return names[call];
}

/* A sample: what it took, and of what, both relative to what it took. */
struct line {
	double terms[TERMS], ns;
};

/* *out_messages: whether some sample took more than one message. */
static GArray *lines_of(const GArray *samples, const struct sim_call_cost *cost,
			gboolean *out_messages)
{
	GArray *lines = g_array_new(FALSE, FALSE, sizeof(struct line));

	*out_messages = FALSE;
	for (guint i = 0; i < samples->len; i++) {
		const struct check_sample *s = &g_array_index(samples, struct check_sample, i);
		guint64 pages = MAX(s->bytes >> s->page_lg2, 1);
		double units = (double)(pages * (s->page_lg2 >= 30 ? cost->giant_units : 1));
		double messages = ceil(units / (double)cost->pages_per_message);
		double all = MAX(s->ns, 1);
		struct line line = { { 1 / all, messages / all, units / all }, s->ns / all };

		*out_messages |= messages > 1;
		g_array_append_val(lines, line);
	}
	return lines;
}

/* Solves for the terms of `mask` by elimination, the others being 0; FALSE where the samples do not
 * tell them apart. */
static gboolean solve(double a[TERMS][TERMS + 1], unsigned mask, double out[TERMS])
{
	double m[TERMS][TERMS + 1];

	for (unsigned i = 0; i < TERMS; i++)
		for (unsigned j = 0; j <= TERMS; j++)
			m[i][j] = mask >> i & 1 && (j == TERMS || mask >> j & 1) ? a[i][j] : i == j;
	for (int i = 0; i < TERMS; i++) {
		if (fabs(m[i][i]) <= 1e-9 * (mask >> i & 1 ? a[i][i] : 1))
			return FALSE;
		for (int r = 0; r < TERMS; r++) {
			double factor = r == i ? 0 : m[r][i] / m[i][i];

			for (int c = i; c <= TERMS; c++)
				m[r][c] -= factor * m[i][c];
		}
	}
	for (int i = 0; i < TERMS; i++)
		out[i] = m[i][TERMS] / m[i][i];
	return TRUE;
}

/* The best of all choices of terms with none below zero. Returns its error. */
static double best_of(const GArray *lines, unsigned allowed, double best[TERMS])
{
	double a[TERMS][TERMS + 1] = { 0 }, least = INFINITY; /* the normal equations */

	for (guint s = 0; s < lines->len; s++) {
		const struct line *line = &g_array_index(lines, struct line, s);

		for (int i = 0; i < TERMS; i++) {
			for (int j = 0; j < TERMS; j++)
				a[i][j] += line->terms[i] * line->terms[j];
			a[i][TERMS] += line->terms[i] * line->ns;
		}
	}
	for (unsigned mask = 1; mask < 1u << TERMS; mask++) {
		double x[TERMS], error = 0;

		if ((mask & ~allowed) != 0 || !solve(a, mask, x) || x[0] < 0 || x[1] < 0 ||
		    x[2] < 0)
			continue;
		for (guint s = 0; s < lines->len; s++) {
			const struct line *line = &g_array_index(lines, struct line, s);
			double off = -line->ns;

			for (int i = 0; i < TERMS; i++)
				off += line->terms[i] * x[i];
			error += off * off;
		}
		if (error < least * (1 - 1e-9) - 1e-18) {
			least = error;
			memcpy(best, x, sizeof(x));
		}
	}
	return least;
}

static guint64 whole(double ns)
{
	return ns <= 0 ? 0 : (guint64)(ns + 0.5);
}

/* The cost that fits the samples of one call best. FALSE: each took one message, and what that
 * takes cannot be told from the rest, so the built-in share of it stays a message's. */
static gboolean fit(const GArray *samples, struct sim_call_cost *cost)
{
	const guint64 units[2] = { cost->giant_units, cost->giant_units == 1 ? 512 : 1 };
	double best[TERMS] = { 0 }, least = INFINITY;
	gboolean separable = TRUE;

	for (int u = 0; u < 2; u++) {
		struct sim_call_cost guess = *cost;
		double x[TERMS] = { 0 };
		gboolean more;

		guess.giant_units = units[u];
		g_autoptr(GArray) lines = lines_of(samples, &guess, &more);
		double error = best_of(lines, more ? 7 : 5, x);
		if (error < least * 0.99) {
			least = error;
			memcpy(best, x, sizeof(best));
			cost->giant_units = units[u];
			separable = more;
		}
	}
	if (!separable) {
		best[1] = (double)MIN(cost->message_ns, whole(best[0]));
		best[0] -= best[1];
	}
	cost->base_ns = whole(best[0]);
	cost->message_ns = whole(best[1]);
	cost->page_ns = whole(best[2]);
	return separable;
}

static GArray *samples_of(const GArray *all, enum sim_call call)
{
	GArray *samples = g_array_new(FALSE, FALSE, sizeof(struct check_sample));

	for (guint s = 0; s < all->len; s++)
		if (g_array_index(all, struct check_sample, s).call == call)
			g_array_append_val(samples, g_array_index(all, struct check_sample, s));
	return samples;
}

/* `samples`: of the call, which was measured. */
static void write_call(GString *out, const GArray *samples, enum sim_call call,
		       const struct sim_call_cost *builtin)
{
	struct sim_call_cost cost = *builtin;
	gboolean separable = fit(samples, &cost);

	for (guint s = 0; s < samples->len; s++) {
		const struct check_sample *sample = &g_array_index(samples, struct check_sample, s);

		put(out, "# %s, %" G_GUINT64_FORMAT " MiB in pages of %s: %.0f ns\n", names[call],
		    sample->bytes >> 20, sample->page_lg2 >= 30 ? "1 GiB" : "2 MiB", sample->ns);
	}
	if (!separable && cost.message_ns > 0)
		put(out, "# each took one message: message_ns is the built-in value\n");
	put(out, "%s_base_ns=%" G_GUINT64_FORMAT "\n", names[call], (guint64)cost.base_ns);
	put(out, "%s_message_ns=%" G_GUINT64_FORMAT "\n", names[call], (guint64)cost.message_ns);
	put(out, "%s_page_ns=%" G_GUINT64_FORMAT "\n", names[call], (guint64)cost.page_ns);
	put(out, "%s_giant_units=%" G_GUINT64_FORMAT "\n", names[call], (guint64)cost.giant_units);
}

char *check_fit_text(const char *soc, const char *where, const GArray *samples, GError **error)
{
	g_autofree char *complaint = NULL;
	struct sim_profile profile;

	if (!sim_profile_load(soc, &profile, &complaint)) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "no profile to start from: %s",
			    complaint != NULL ? complaint : soc);
		return NULL;
	}
	GString *out = g_string_new(NULL);
	put(out, "# Times of driver calls, measured by npusim check on %s.\n", where);
	put(out, "# NPUSIM_SOC=FILE makes the model use them.\n\n");
	put(out, "[Profile]\nbase=%s\n\n[DriverCalls]\n", soc);
	for (int call = 0; call < SIM_CALL_COUNT; call++) {
		g_autoptr(GArray) measured = samples_of(samples, (enum sim_call)call);
		if (measured->len > 0)
			write_call(out, measured, (enum sim_call)call, &profile.call[call]);
	}
	return g_string_free(out, FALSE);
}
