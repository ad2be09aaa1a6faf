/* SPDX-License-Identifier: Apache-2.0
 *
 * Drivers over a driver: trace, count, fault. Each forwards every call to `lower`, and adds one
 * thing. They stack in any order.
 */
#ifndef NPUSIM_DRIVER_WRAP_H
#define NPUSIM_DRIVER_WRAP_H

#include <stdatomic.h>

#include "npusim/driver.h"

/* Indices of the driver's functions, in the order of NPU_DRIVER_OPS. */
enum driver_op {
#define DRIVER_OP(ret, missing, op, params, args) DRIVER_OP_##op,
	NPU_DRIVER_OPS(DRIVER_OP)
#undef DRIVER_OP
		DRIVER_OP_COUNT
};
const char *driver_op_name(enum driver_op op);
/* False for what returns no code, and for npusim's own functions that are no calls of a driver. */
bool driver_op_is_call(enum driver_op op);
/* By the HAL's name, or by the same in small letters with or without prefix and underscores:
 * "mem_create". COUNT: none. */
enum driver_op driver_op_by_name(const char *name);
/* The name that is nearest to one that does not exist, or NULL. */
const char *driver_op_nearest(const char *name);

/* The call that a wrapper forwards; inside of a function made by NPU_WITH_SELF params. */
#define DRIVER_LOWER(...) (lower __VA_OPT__(, ) __VA_ARGS__)

/* A driver of full length over one that was built against a shorter list. NULL: no memory. */
struct npu_driver *driver_adapt(struct npu_driver *lower);

/* Records every call to a file, in the format of traces/FORMAT.md. NULL and *error (free()) if it
 * cannot be written. */
struct npu_driver *trace_driver_open(struct npu_driver *lower, const char *path, char **error);

/* Counts calls by name, for tests. */
struct npu_driver *count_driver_open(struct npu_driver *lower);
uint64_t count_driver_calls(struct npu_driver *drv, enum driver_op op);

/* Makes calls fail as `spec` says: CALL:WHEN:HOW, several separated by commas; see NPUSIM_FAULT.
 * NULL and *error if the text is not right: says what is wrong, what could be meant, and the form.
 */
struct npu_driver *fault_driver_open(struct npu_driver *lower, const char *spec, char **error);

#endif
