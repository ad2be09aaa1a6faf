/* SPDX-License-Identifier: Apache-2.0
 *
 * A fuzz target: one function, as libFuzzer calls it. fuzz-main.c calls it over a folder's files
 * where no fuzzing engine is linked.
 */
#ifndef NPUSIM_TESTS_FUZZ_H
#define NPUSIM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *bytes,
								  size_t count);

#endif
