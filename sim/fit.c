/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits a device profile to measured times: least squares of relative errors, each value with its
 * 95 % interval, or as not identifiable.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

#include "sim/profile.h"

#define TERMS 4
#define SHARE 0.33 /* of the call that tells most of a value: what its interval may span */
/* Student's t of 97.5 %: the series is too small for the fewest degrees of freedom */
#define STUDENT(dof)  ((dof) < 2 ? 12.706 : (dof) < 3 ? 4.303 : T_SERIES(dof))
#define T_SERIES(dof) (1.96 + 2.372 / (dof) + 2.822 / pow(dof, 2) + 2.556 / pow(dof, 3))
#define RESOLUTION    1e-8 /* no time is known better than to 1e-4; its square */

gint sim_sample_order(gconstpointer a, gconstpointer b)
{
	const struct sim_sample *x = a, *y = b;
	int order = strcmp(x->what, y->what) ?: (int)x->page_lg2 - (int)y->page_lg2;

	order = order ?: y->cold - x->cold;
	return order ?: (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static gint by_kind_and_time(gconstpointer a, gconstpointer b)
{
	const struct sim_sample *x = a, *y = b;

	return sim_sample_order(x, y) ?: (x->ns > y->ns) - (x->ns < y->ns);
}

GArray *sim_figures(GArray *samples)
{
	GArray *figures = g_array_new(FALSE, FALSE, sizeof(struct sim_figure));
	const struct sim_sample *s = (const struct sim_sample *)(void *)samples->data;
	guint from = 0;

	g_array_sort(samples, by_kind_and_time);
	for (guint i = 1; i <= samples->len; i++) {
		if (i < samples->len && sim_sample_order(&s[from], &s[i]) == 0)
			continue;
		const struct sim_sample *of = &s[from];
		guint count = i - from;
		double half = 0.98 * sqrt(count), last = count - 1;
		guint low = (guint)MAX(floor(last / 2 - half), 0);
		guint high = (guint)MIN(ceil(last / 2 + half), last);
		struct sim_figure figure = {
			.of = of[count / 2],
			.count = count,
			.min = of[0].ns,
			.p10 = of[(guint)(last * 0.1)].ns,
			.p99 = of[(guint)ceil(last * 0.99)].ns,
			.max = of[count - 1].ns,
			.low = of[low].ns,
			.high = of[high].ns,
			/* a place in the order has a binomial deviation of half the root */
			.error = (of[high].ns - of[low].ns) / MAX(high - low, 1) * sqrt(count) / 2,
		};
		g_array_append_val(figures, figure);
		from = i;
	}
	return figures;
}

struct line {
	double terms[TERMS], ns, weight; /* ns = the sum of value x term */
	double spread;                   /* relative variance of ns, by its own samples */
	double bytes;
	gboolean giant;
};
struct value {
	double best, low, high;
	gboolean known;
};
struct fit {
	struct value of[TERMS];
	double error; /* the sum of squares */
};

struct findings {
	const GArray *figures;
	GKeyFile *base, *profile;
	GString *report;
};

static double builtin(const struct findings *f, const char *what, const char *part)
{
	g_autofree char *key = g_strconcat(what, part, NULL);

	return g_key_file_get_double(f->base, "DriverCalls", key, NULL);
}

/* In another unit. Of what the base has no key for only the report tells. */
static void add(const struct findings *f, const char *group, const char *name, const char *part,
		const struct value *v, double unit)
{
	g_autofree char *key = g_strconcat(name, part, NULL), *text = NULL, *comment = NULL;
	g_autofree char *full = g_strconcat(group, ".", key, NULL);
	g_autofree char *base = g_key_file_get_string(f->base, group, key, NULL);

	g_string_append_printf(f->report, "%-38s %12s ", full, base ? base : "-");
	if (v->known) {
		double best = v->best * unit, low = v->low * unit, high = v->high * unit;

		g_string_append_printf(f->report, "%12.6g   %.6g to %.6g\n", best, low, high);
		text = g_strdup_printf("%.0f", best);
		comment = g_strdup_printf(" 95 %%: %.0f to %.0f", low, high);
	} else {
		g_string_append(f->report, "not identifiable\n");
	}
	if (base == NULL)
		return;
	g_key_file_set_string(f->profile, group, key, text ? text : base);
	g_key_file_set_comment(f->profile, group, key,
			       comment ? comment : " assumed: not identifiable", NULL);
}

#define AT(lines, i) (&g_array_index(lines, struct line, i))

enum { SMALL, GIANT, ALL };

/* Of the medians, cold ones left out. */
static GArray *lines_of(const struct findings *f, const char *what, int pages)
{
	GArray *lines = g_array_new(FALSE, FALSE, sizeof(struct line));

	for (guint i = 0; i < f->figures->len; i++) {
		const struct sim_figure *figure = sim_figure_at(f->figures, i);
		const struct sim_sample *s = &figure->of;
		/* addresses have no pages yet */
		gboolean plain = strcmp(what, "reserve") == 0 || strcmp(what, "address_free") == 0;
		struct line line = { .terms = { 1, (double)s->bytes },
				     .ns = s->ns,
				     .weight = 1 / MAX(s->ns, 1),
				     .spread = pow(figure->error / MAX(s->ns, 1), 2),
				     .bytes = (double)s->bytes,
				     .giant = !plain && s->page_lg2 >= 30 };

		if (strcmp(s->what, what) == 0 && !s->cold && (pages == ALL || line.giant == pages))
			g_array_append_val(lines, line);
	}
	return lines;
}

static double sum_of(const struct line *line, const struct fit *fit)
{
	double sum = 0;

	for (int i = 0; i < TERMS; i++)
		sum += fit->of[i].best * line->terms[i];
	return sum;
}

/* The free terms (bits), where the others are what `fit` has, and the variance of each for an error
 * of 1; by elimination. FALSE where the lines do not tell them apart. */
static gboolean solve(const GArray *lines, unsigned free, struct fit *fit, double variance[TERMS])
{
	double m[TERMS][2 * TERMS + 1] = { 0 }, whole[TERMS];

	for (int i = 0; i < TERMS; i++) {
		m[i][TERMS + 1 + i] = 1;
		fit->of[i].best = free >> i & 1 ? 0 : fit->of[i].best;
		fit->of[i].known = FALSE;
	}
	for (guint s = 0; s < lines->len; s++) {
		const struct line *l = AT(lines, s);
		double left = l->ns - sum_of(l, fit), w = l->weight * l->weight;

		for (int i = 0; i < TERMS; i++) {
			if (!(free >> i & 1))
				continue;
			const double weighted = w * l->terms[i];

			for (int j = 0; j < TERMS; j++)
				m[i][j] += weighted * l->terms[j];
			m[i][TERMS] += weighted * left;
		}
	}
	/* what is not free has its value already */
	for (int i = 0; i < TERMS; i++)
		for (int j = 0; j < TERMS; j++)
			m[i][j] = free >> j & 1 ? m[i][j] : 0;
	for (int i = 0; i < TERMS; i++)
		whole[i] = m[i][i] = free >> i & 1 ? m[i][i] : 1;
	for (int i = 0; i < TERMS; i++) {
		if (!(m[i][i] > 1e-9 * whole[i]))
			return FALSE;
		for (int r = 0; r < TERMS; r++) {
			double factor = r == i ? 0 : m[r][i] / m[i][i];

			for (int c = 0; factor != 0 && c <= 2 * TERMS; c++)
				m[r][c] -= factor * m[i][c];
		}
	}
	for (int i = 0; i < TERMS; i++) {
		fit->of[i].best += m[i][TERMS] / m[i][i];
		variance[i] = m[i][TERMS + 1 + i] / m[i][i];
	}
	fit->error = 0;
	for (guint s = 0; s < lines->len; s++)
		fit->error += pow(
			(sum_of(AT(lines, s), fit) - AT(lines, s)->ns) * AT(lines, s)->weight, 2);
	return TRUE;
}

/* The error is what the fit leaves, of few degrees of freedom, or what the samples of all lines
 * say, of many: whichever is more, since a fit may come close by luck. A value is known by the
 * width, not by its size, which would favour what is too large; but not where it may be nothing. */
static void fit_lines(GArray *lines, unsigned free, struct fit *fit)
{
	double dof = MAX((double)lines->len - __builtin_popcount(free), 1), variance[TERMS];
	double spread = 0;

	/* the weight is of what is expected: what was measured would favour what is too short */
	for (int round = 0; round < 4; round++) {
		if (!solve(lines, free, fit, variance))
			return;
		for (guint s = 0; s < lines->len; s++)
			AT(lines, s)->weight = 1 / MAX(sum_of(AT(lines, s), fit), 1);
	}
	for (guint s = 0; s < lines->len; s++)
		spread += AT(lines, s)->spread / lines->len;
	double left = MAX(fit->error, RESOLUTION * lines->len) / dof;
	double error = MAX(STUDENT(dof) * sqrt(left), 1.96 * sqrt(spread));
	for (int i = 0; i < TERMS; i++) {
		struct value *v = &fit->of[i];
		double away = free >> i & 1 ? error * sqrt(variance[i]) : 0, most = 0;

		for (guint s = 0; s < lines->len; s++)
			most = MAX(most, AT(lines, s)->terms[i] * AT(lines, s)->weight);
		v->low = MAX(v->best - away, 0);
		v->high = MAX(v->best + away, 0);
		v->best = MAX(v->best, 0);
		v->known = free >> i & 1 && 2 * away * most <= SHARE &&
			   (v->low > 0 || v->high * most <= 0.05);
	}
}

/* What npusim's own queries take in a call of its runtime: a stream asks what it may be and takes
 * two ids, a copy asks what its two addresses are, and an import asks whose it is. */
static struct line queries_in(const struct findings *f, const char *what)
{
	g_autoptr(GArray) queries = lines_of(f, "query", ALL);
	struct line all = queries->len > 0 ? *AT(queries, 0) : (struct line){ 0 };
	int count = strcmp(what, "stream") == 0   ? 3
		    : strcmp(what, "submit") == 0 ? 2
						  : strcmp(what, "import") == 0;

	all.ns *= count;
	return all;
}

enum { BASE, MESSAGE, PAGE };

/* With so many pages in a giant one. What cannot be told is as the base has it, and the rest is
 * fitted once more: first what a message takes, which needs calls of several, since what a call of
 * one takes with it is told all the same; but one message is no more than all of a call. */
static struct fit fit_pages(const struct findings *f, GArray *lines, const char *what, double giant)
{
	struct fit fit = { 0 };
	double message = builtin(f, what, "_message_ns"), most = 0;
	unsigned free = 1u << BASE | 1u << MESSAGE | 1u << PAGE;

	for (guint s = 0; s < lines->len; s++) {
		struct line *l = AT(lines, s);

		l->terms[PAGE] =
			l->giant ? l->bytes / (1 << 30) * giant : MAX(l->bytes / (2 << 20), 1);
		l->terms[MESSAGE] = ceil(l->terms[PAGE] / builtin(f, what, "_pages_per_message"));
		most = MAX(most, l->terms[MESSAGE]);
	}
	if (most <= 1)
		free &= ~(1u << MESSAGE);
	for (;;) {
		unsigned known = 0;

		fit.of[BASE].best = builtin(f, what, "_base_ns");
		fit.of[MESSAGE].best = message;
		fit.of[PAGE].best = builtin(f, what, "_page_ns");
		fit_lines(lines, free, &fit);
		for (int i = 0; i < TERMS; i++)
			known |= fit.of[i].known ? 1u << i : 0;
		if (fit.of[BASE].high <= 0 && !(free >> MESSAGE & 1) && message > 0)
			message = 0;
		else if (free & ~known & 1u << MESSAGE)
			free &= ~(1u << MESSAGE);
		else if (known == free || known == 0)
			break;
		else
			free = known;
	}
	fit.of[MESSAGE].known |= message < builtin(f, what, "_message_ns");
	return fit;
}

static void fit_call(const struct findings *f, const char *what)
{
	g_autoptr(GArray) lines = lines_of(f, what, ALL);
	g_autoptr(GArray) giants = lines_of(f, what, GIANT);
	const double giant = builtin(f, what, "_giant_units"), margin = 1 + 8. / lines->len;
	const double units[2] = { giant, giant == 1 ? 512 : 1 };
	const double less = queries_in(f, what).ns;
	struct fit fits[2];
	double error[2];

	if (lines->len < 3)
		return;
	for (guint i = 0; i < lines->len; i++)
		AT(lines, i)->ns = MAX(AT(lines, i)->ns - less, 0);
	for (int u = 0; u < 2; u++) {
		fits[u] = fit_pages(f, lines, what, units[u]);
		error[u] = fits[u].error + RESOLUTION * lines->len;
	}
	int best = error[1] * margin < error[0];
	const struct value *page = &fits[best].of[PAGE];
	/* where pages take next to nothing, noise alone would tell what a giant one counts */
	const struct value unit = { units[best], units[best], units[best],
				    giants->len > 0 && 2 * page->low > page->best &&
					    fabs(log(error[0] / error[1])) > log(margin) };

	add(f, "DriverCalls", what, "_base_ns", &fits[best].of[BASE], 1);
	add(f, "DriverCalls", what, "_message_ns", &fits[best].of[MESSAGE], 1);
	add(f, "DriverCalls", what, "_page_ns", &fits[best].of[PAGE], 1);
	add(f, "DriverCalls", what, "_giant_units", &unit, 1);
}

/* A rate is what a further byte takes, so the start of a copy is no part of it. Where the base has
 * a limit of the engine, that is what a copy shows. */
static void fit_copy(const struct findings *f, const char *what)
{
	g_autoptr(GArray) lines = lines_of(f, what, ALL);
	g_autofree char *part = g_strconcat(what, "_bytes_per_us", NULL);
	gboolean engine = g_key_file_get_double(f->base, "Engine", part, NULL) > 0;
	struct fit fit = { 0 };

	if (lines->len < 4)
		return;
	fit_lines(lines, 3, &fit);
	const struct value *byte = &fit.of[1];
	const struct value rate = { 1e3 / byte->best, 1e3 / byte->high, 1e3 / byte->low,
				    byte->known && byte->low > 0 };
	add(f, "Measured", what, "_start_ns", &fit.of[0], 1);
	add(f, engine ? "Engine" : "Link", part, "", &rate, 1);
}

static void add_median(const struct findings *f, const char *what, gboolean is_call)
{
	const struct line less = queries_in(f, what);
	const double away = 1.96 * less.ns * sqrt(less.spread);

	for (guint i = 0; i < f->figures->len; i++) {
		const struct sim_figure *figure = sim_figure_at(f->figures, i);
		double best = figure->of.ns - less.ns;
		double low = best - hypot(figure->of.ns - figure->low, away);
		double high = best + hypot(figure->high - figure->of.ns, away);
		const struct value v = { best, low, high, low >= 0 };

		if (strcmp(figure->of.what, what) == 0 && !figure->of.cold)
			add(f, is_call ? "DriverCalls" : "Measured", what,
			    is_call ? "_base_ns" : "_ns", &v, 1);
	}
}

/* Translation of the SDMA, by copies with one row a page: over a footprint that a TLB does not
 * hold, a pass in the same order finds less of it, or nothing. */
#define LEVELS  2
#define CERTAIN 30   /* the likelihood ratio that a level is there, where places are tried */
#define WITHIN  7.35 /* that of 95 % of a place (Hansen 2000) */
#define MISFIT  1e-5 /* 0.3 %, squared: what is less is not translation */
#define STEP    1.02 /* of one place that is tried to the next */
#define ROWS(l) ((l)->bytes / (2 << 20))
#define FIRST   2 /* term of a level's misses */
#define FREE(n) ((1u << (FIRST + (n))) - 1)

/* A pass over more than `reach` pages misses; in all of them once they are over reach x (1 +
 * width): sets are full one after another, or the oldest is not always what goes. */
struct level {
	struct value reach, miss;
	double width;
};

/* What the copy writes takes one entry, too. */
static void set_level(GArray *lines, int term, double reach, double width)
{
	for (guint i = 0; i < lines->len; i++) {
		double over = ROWS(AT(lines, i)) + 1 - reach;

		AT(lines, i)->terms[term] =
			ROWS(AT(lines, i)) *
			(over <= 0 ? 0 : MIN(1, over / MAX(width * reach, 1e-9)));
	}
}

/* Looks for the place of a level where the others stay. Returns the error with it. A miss takes
 * what all likely places make of it: at the likeliest alone it seems longer than it is. */
static double search(GArray *lines, int number, int levels, struct level *out)
{
	static const double widths[] = { 0, 0.125, 0.5 };
	const double most = ROWS(AT(lines, lines->len - 1)), dof = lines->len - FIRST - levels - 2;
	struct guess {
		double reach, width, error, miss, variance;
	} best = { .error = INFINITY };
	g_autoptr(GArray) guesses = g_array_new(FALSE, FALSE, sizeof(struct guess));

	for (double reach = 2; reach <= most; reach *= STEP) {
		for (gsize w = 0; w < G_N_ELEMENTS(widths); w++) {
			struct fit fit = { 0 };
			double variance[TERMS];

			set_level(lines, FIRST + number, reach, widths[w]);
			if (!solve(lines, FREE(levels), &fit, variance) ||
			    fit.of[FIRST + number].best < 0)
				continue;
			struct guess guess = { reach, widths[w], fit.error + MISFIT * lines->len,
					       fit.of[FIRST + number].best,
					       variance[FIRST + number] };
			g_array_append_val(guesses, guess);
			best = guess.error < best.error ? guess : best;
		}
	}
	out->width = best.width;
	out->reach = (struct value){ .low = most };
	out->miss = (struct value){ best.miss, best.miss, best.miss, FALSE };
	for (guint i = 0; i < guesses->len; i++) {
		const struct guess *g = &g_array_index(guesses, struct guess, i);
		double away = STUDENT(dof) * sqrt(g->error / dof * g->variance);

		if (lines->len * log(g->error / best.error) > WITHIN)
			continue;
		out->reach.low = MIN(out->reach.low, g->reach / STEP);
		out->reach.high = g->reach * STEP;
		out->miss.low = MIN(out->miss.low, g->miss - away);
		out->miss.high = MAX(out->miss.high, g->miss + away);
	}
	out->miss.known = out->reach.known = out->miss.low > 0;
	out->reach.best = sqrt(out->reach.low * out->reach.high);
	set_level(lines, FIRST + number, out->reach.best, out->width);
	return best.error;
}

static void fit_translation(const struct findings *f)
{
	g_autoptr(GArray) small = lines_of(f, "rows", SMALL);
	g_autoptr(GArray) giant = lines_of(f, "rows", GIANT);
	struct level level[LEVELS] = { 0 };
	struct fit fit = { 0 };
	int levels = 0;

	if (small->len >= 12) {
		fit_lines(small, FREE(0), &fit); /* and the weights */
		/* how many are certain; the first once more with the second known */
		for (double before = fit.error + MISFIT * small->len; levels < LEVELS; levels++) {
			double with = search(small, levels, levels + 1, &level[levels]);
			if (!(small->len * log(before / with) >= CERTAIN))
				break;
			before = with;
		}
		if (levels == LEVELS)
			search(small, 0, LEVELS, &level[0]);
		fit_lines(small, FREE(levels), &fit);
	}
	int one = level[0].reach.best > level[1].reach.best, two = !one;
	struct level *l1 = &level[one], *l2 = &level[two];
	double ways = g_key_file_get_double(f->base, "MMU", "tlb_l2_ways", NULL);
	const struct value none = { 0 };

	for (int i = 0; i < levels; i++)
		level[i].miss.best = fit.of[FIRST + i].best;
	l2->reach.best = MAX(round(l2->reach.best / ways), 1) * ways;
	/* of one level alone nothing says which it is */
	gboolean both = levels == LEVELS;
	add(f, "MMU", "tlb_l1_entries", "", both ? &l1->reach : &none, 1);
	add(f, "MMU", "tlb_l2_entries", "", both ? &l2->reach : &none, 1);
	add(f, "MMU", "tlb_l2_ps", "", both ? &l1->miss : &none, 1e3);
	add(f, "Measured", "sdma_walk_ns", "", both ? &l2->miss : &none, 1);
	add(f, "Measured", "sdma_reach_pages", "", levels == 1 ? &level[0].reach : &none, 1);
	add(f, "Measured", "sdma_miss_ns", "", levels == 1 ? &level[0].miss : &none, 1);
	/* how many times as long rows of small pages take, over the larger footprints */
	g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(struct line));
	guint count = MIN(small->len, giant->len);
	struct fit gain = { 0 };
	for (guint i = 0; i < count; i++) {
		double ns = AT(small, i)->ns / AT(giant, i)->ns * 1e3;
		struct line line = { .terms = { 1e3 }, .ns = ns, .weight = 1 / ns };

		if (2 * AT(small, i)->bytes >= AT(small, count - 1)->bytes)
			g_array_append_val(ratios, line);
	}
	if (ratios->len > 2)
		fit_lines(ratios, 1, &gain);
	add(f, "Measured", "gain_of_1g_pages", "", &gain.of[0], 1);
}

gboolean sim_fit(const char *soc, const char *where, const GArray *figures, GString *profile,
		 GString *report, GError **error)
{
	static const char *const calls[] = { "reserve", "address_free", "create", "release",
					     "map",     "unmap",        "access", "export",
					     "import",  "alloc",        "free",   "query" };
	static const char *const copies[] = { "h2d", "d2h", "sdma", "peer_read", "peer_write" };
	static const char *const medians[] = { "submit", "stream",     "sync",
					       "event",  "event_wait", "value_wait" };
	/* parts of each copy's start; and what copies one after another do not show */
	static const char hidden[] =
		"DriverCalls.copy_base_ns Engine.sdma_start_ps Link.host_ps Link.peer_ps "
		"MMU.tlb_l1_ps MMU.tlb_l2_ways MMU.walkers MMU.walk_cache_entries";
	g_auto(GStrv) names = g_strsplit(hidden, " ", -1);
	g_autoptr(GKeyFile) base = g_key_file_new(), out = g_key_file_new();
	const struct findings found = { figures, base, out, report };
	g_autofree char *complaint = NULL;
	struct sim_profile loaded;

	if (!sim_profile_load(soc, &loaded, &complaint)) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "no profile to start from: %s",
			    complaint);
		return FALSE;
	}
	g_autofree char *dump = sim_profile_dump(&loaded);
	g_key_file_load_from_data(base, dump, strlen(dump), G_KEY_FILE_NONE, NULL);
	g_key_file_set_string(out, "Profile", "base", soc);
	g_string_append_printf(
		report,
		"Calibration of %s. What is not identifiable is as the base has it. "
		"[MMU] is of the\ntranslation of the SDMA, by copies of one row a page; "
		"the TLBs of cores may be others.\n\n%-38s %12s %12s   95 %% interval\n",
		where, "value", "base", "measured");
	for (gsize i = 0; i < G_N_ELEMENTS(calls); i++)
		fit_call(&found, calls[i]);
	for (gsize i = 0; i < G_N_ELEMENTS(copies); i++)
		fit_copy(&found, copies[i]);
	for (gsize i = 0; i < G_N_ELEMENTS(medians); i++)
		add_median(&found, medians[i], i < 2);
	fit_translation(&found);
	for (char **name = names; *name != NULL; name++) {
		g_auto(GStrv) key = g_strsplit(*name, ".", 2);
		add(&found, key[0], key[1], "", &(struct value){ 0 }, 1);
	}
	g_autofree char *text = g_key_file_to_data(out, NULL, NULL);
	g_string_append_printf(profile,
			       "# Measured by npusim check on %s.\n"
			       "# NPUSIM_SOC=FILE makes the model use it.\n\n%s",
			       where, text);
	return TRUE;
}
