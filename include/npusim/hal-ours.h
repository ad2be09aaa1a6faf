/* SPDX-License-Identifier: Apache-2.0
 *
 * The data symbol by which npusim's own libascend_hal.so is told from a vendor's, and what its
 * two sides, that library and backend-hw, agree on beyond the HAL's functions.
 */
#ifndef NPUSIM_HAL_OURS_H
#define NPUSIM_HAL_OURS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPUSIM_HAL_ABI 1u

struct npusim_hal {
	uint32_t abi;  /* NPUSIM_HAL_ABI */
	uint32_t size; /* sizeof(struct npusim_hal) of the library */
	/* Opens the model, which the first call of any function does as well. False, and *error
	 * (free()) says why it cannot be used. *out_caps: NPU_CAP_* of driver.h. Each success is
	 * ended by one close(); the model ends with the last one. */
	bool (*open)(uint32_t *out_caps, char **error);
	void (*close)(void);
	/* "key=value" lines of the model, for `npusim info`; free(). NULL if there is none. */
	char *(*describe)(void);
};

#define NPUSIM_HAL_SYMBOL "npusim_hal_is_ours"

#ifdef __cplusplus
}
#endif

#endif
