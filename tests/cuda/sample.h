/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs without kernels end by where something is not as it should be.
 */
#ifndef TESTS_CUDA_SAMPLE_H
#define TESTS_CUDA_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "runtime/cuda/cudart.h"

#define CHECK(call)                                                                       \
	do {                                                                              \
		cudaError_t code = (call);                                                \
                                                                                          \
		if (code != 0) {                                                          \
			fprintf(stderr, "%s: %s (%s)\n", #call, cudaGetErrorString(code), \
				cudaGetErrorName(code));                                  \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static inline void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "not so: %s\n", what);
		exit(1);
	}
}

#endif
