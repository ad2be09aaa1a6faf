/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the seam under their own names: each goes to the model's member of that name.
 */
#include "hal-export.h"

#include <string.h>

/* A driver of a 910B has no name to give: CANN's runtimes take it from the version word, and those
 * of CANN 9 look for a file beside them where a name is given. A 910C's name stands nowhere else.
 */
static bool has_no_name(struct npu_driver *drv)
{
	static const char no_name[] = "Ascend910B";
	char name[64];

	return drv->halGetSocVersion(drv, 0, name, sizeof(name)) == DRV_ERROR_NONE &&
	       strncmp(name, no_name, strlen(no_name)) == 0;
}

#define HAL_WITH_DRIVER(...) (drv __VA_OPT__(, ) __VA_ARGS__)
#define HAL_SEAM(ret, missing, op, params, args)                              \
	HAL_EXPORT ret op HAL_PARAMETERS params;                              \
	ret op HAL_PARAMETERS params                                          \
	{                                                                     \
		struct npu_driver *drv = hal_driver();                        \
                                                                              \
		if (drv == NULL)                                              \
			return HAL_NO_MODEL(missing);                         \
		if (strcmp(#op, "halGetSocVersion") == 0 && has_no_name(drv)) \
			return missing;                                       \
		return drv->op HAL_WITH_DRIVER args;                          \
	}
NPU_DRIVER_OPS(HAL_SEAM)
