/* SPDX-License-Identifier: Apache-2.0
 *
 * AS_WRITTEN before a function: it is a frame of its own, and each call in it one place in the
 * program, however often a loop makes it and whichever compiler has optimised the rest.
 */
#ifndef NPUSIM_TESTS_AS_WRITTEN_H
#define NPUSIM_TESTS_AS_WRITTEN_H

#ifdef __clang__
#define AS_WRITTEN __attribute__((noinline, optnone))
#else
#define AS_WRITTEN \
	__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls", "no-unroll-loops")))
#endif

#endif
