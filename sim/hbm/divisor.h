/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast division by a number that is known in advance, by multiplication and shift.
 */
#ifndef NPUSIM_SIM_HBM_DIVISOR_H
#define NPUSIM_SIM_HBM_DIVISOR_H

#include <stdint.h>

__extension__ typedef unsigned __int128 divisor_product;

struct divisor {
	uint64_t by, inverse;
	unsigned lg2;
};

/* Exact for dividends below 2^62: the inverse is of 63 bits and as many more as the divisor has. */
static inline struct divisor divisor_of(uint64_t by)
{
	unsigned lg2 = by > 1 ? 64 - (unsigned)__builtin_clzll(by - 1) : 0;
	divisor_product one = (divisor_product)1 << (63 + lg2);

	return (struct divisor){ by, (uint64_t)((one + by - 1) / by), lg2 };
}

/* Rounded up. */
static inline uint64_t divide_up(const struct divisor *divisor, uint64_t x)
{
	return (uint64_t)((divisor_product)(2 * (x + divisor->by - 1)) * divisor->inverse >> 64) >>
	       divisor->lg2;
}

#endif
