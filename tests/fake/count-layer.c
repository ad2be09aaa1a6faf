/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer of count-layer.h.
 */
#include "count-layer.h"

#include <stdatomic.h>
#include <stdlib.h>

struct count_layer {
	struct layer layer;
	_Atomic uint64_t calls[DRIVER_OP_COUNT];
};

static void count_after(struct layer *layer, struct layer_call *call)
{
	atomic_fetch_add_explicit(&((struct count_layer *)layer)->calls[call->op], 1,
				  memory_order_relaxed);
}

static void count_end(struct layer *layer)
{
	free(layer);
}

struct npu_driver *count_layer_open(struct npu_driver *lower)
{
	static const struct layer_hooks hooks = { .after = count_after, .end = count_end };
	struct count_layer *count = calloc(1, sizeof(*count));

	if (count == NULL)
		return NULL;
	layer_init(&count->layer, "count", lower, &hooks);
	return &count->layer.driver;
}

uint64_t count_layer_calls(struct npu_driver *drv, enum driver_op op)
{
	return atomic_load_explicit(&((struct count_layer *)drv)->calls[op], memory_order_relaxed);
}
