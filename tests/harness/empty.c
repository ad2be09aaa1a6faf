/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the harness without a test. Run by harness-meta-test.c.
 */
#include "harness/test.h"

_Static_assert(sizeof(struct harness_value) >= sizeof(int64_t), "a value holds its number");
