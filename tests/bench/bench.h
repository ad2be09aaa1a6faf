/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks share: clocks, the best of several rounds, and one line for each figure.
 * Figures are ratios to something measured in the same run; nothing here passes or fails on a time.
 * A line with a target ends in "at least" or "at most" and it; ./dev bench shows those as a table.
 */
#ifndef NPUSIM_TESTS_BENCH_BENCH_H
#define NPUSIM_TESTS_BENCH_BENCH_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define BENCH_ROUNDS 5

static inline double bench_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of all threads of this process: what one core would take on a machine that others use, too. */
static inline double bench_cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Operations a second of the best of BENCH_ROUNDS calls of fn(arg), each of which does `count` of
 * them, by the clock given. */
static inline double bench_rate_by(double (*clock_seconds)(void), void (*fn)(void *arg), void *arg,
				   double count)
{
	double best = 0;
	for (int round = 0; round < BENCH_ROUNDS; round++) {
		double start = clock_seconds();
		fn(arg);
		double rate = count / (clock_seconds() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

static inline double bench_rate(void (*fn)(void *arg), void *arg, double count)
{
	return bench_rate_by(bench_seconds, fn, arg, count);
}

static inline void __attribute__((format(printf, 2, 3)))
bench_line(const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("%-56s ", name);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
}

static inline void bench_at_least(const char *name, double value, const char *unit, double target)
{
	bench_line(name, "%8.2f %-10s at least %g", value, unit, target);
}

static inline void bench_at_most(const char *name, double value, const char *unit, double target)
{
	bench_line(name, "%8.2f %-10s at most %g", value, unit, target);
}

#endif
