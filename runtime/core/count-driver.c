/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that counts the calls it forwards. For tests: it tells how often the layers above call
 * down.
 */
#include "driver-wrap.h"

#include <stdlib.h>

struct count_driver {
	struct npu_driver driver;
	_Atomic uint64_t calls[DRIVER_OP_COUNT];
};

#define COUNTED(ret, missing, op, params, args)                                                  \
	static ret counted_##op NPU_WITH_SELF params                                             \
	{                                                                                        \
		struct npu_driver *lower = self->lower;                                          \
                                                                                                 \
		atomic_fetch_add_explicit(&((struct count_driver *)self)->calls[DRIVER_OP_##op], \
					  1, memory_order_relaxed);                              \
		return lower->op DRIVER_LOWER args;                                              \
	}
NPU_DRIVER_OPS(COUNTED)
#undef COUNTED

static void count_close(struct npu_driver *self)
{
	free(self);
}

static const struct npu_driver count_table = { .abi = NPU_DRIVER_ABI,
					       .size = sizeof(struct npu_driver),
					       .name = "count",
					       .close = count_close,
#define COUNT_MEMBER(ret, missing, op, params, args) .op = counted_##op,
					       NPU_DRIVER_OPS(COUNT_MEMBER)
#undef COUNT_MEMBER
};

struct npu_driver *count_driver_open(struct npu_driver *lower)
{
	struct count_driver *count = calloc(1, sizeof(*count));

	if (count == NULL)
		return NULL;
	count->driver = count_table;
	count->driver.caps = lower->caps;
	count->driver.lower = lower;
	return &count->driver;
}

uint64_t count_driver_calls(struct npu_driver *drv, enum driver_op op)
{
	return atomic_load_explicit(&((struct count_driver *)drv)->calls[op], memory_order_relaxed);
}
