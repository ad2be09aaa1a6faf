/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks share: a clock, the best of several rounds, and one line for each figure.
 * Figures are ratios to something measured in the same run; nothing here passes or fails on a time.
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

/* Operations a second of the best of BENCH_ROUNDS calls of fn(arg), each of which does `count` of
 * them. */
static inline double bench_rate(void (*fn)(void *arg), void *arg, double count)
{
	double best = 0;
	for (int round = 0; round < BENCH_ROUNDS; round++) {
		double start = bench_seconds();
		fn(arg);
		double rate = count / (bench_seconds() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

static inline void __attribute__((format(printf, 2, 3)))
bench_line(const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("%-44s ", name);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
}

#endif
