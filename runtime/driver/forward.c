/* SPDX-License-Identifier: Apache-2.0
 *
 * The one forwarding driver, on which every layer is built, and the answers for functions that a
 * driver lacks.
 */
#include "driver/layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"

/* ---- what a driver lacks ---- */

/* The parameters of each stand unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NPU_OP(result, missing, op, ...)                      \
	static result missing_##op NPU_WITH_SELF(__VA_ARGS__) \
	{                                                     \
		return missing;                               \
	}
#include "npusim/driver-ops.h"

static void fill_gaps(struct npu_driver *drv, size_t size)
{
#define NPU_OP(result, missing, op, ...)                                                  \
	if (offsetof(struct npu_driver, op) + sizeof(drv->op) <= size && drv->op == NULL) \
		drv->op = missing_##op;
#include "npusim/driver-ops.h"
}

/* ---- forwarding ---- */

/* To be called by the functions of a layer's table: self is its first member. */
static struct layer *layer_of(struct npu_driver *self)
{
	return (struct layer *)self;
}

#define FORWARD(result, op, ...)                                                    \
	static result forward_##op NPU_WITH_SELF(__VA_ARGS__)                       \
	{                                                                           \
		return layer_of(self)->below.op NPU_TO(self->lower, ##__VA_ARGS__); \
	}
#define NPU_OP(result, missing, op, ...) FORWARD(result, op, ##__VA_ARGS__)
#define NPU_QUERY(op, ...)               FORWARD(drvError_t, op, ##__VA_ARGS__)
#define NPU_CALL(name, ...)                                                               \
	static drvError_t forward_##name NPU_WITH_SELF(__VA_ARGS__)                       \
	{                                                                                 \
		UNCANCELLED;                                                              \
		struct layer *layer = layer_of(self);                                     \
		const struct layer_hooks *hooks = layer->hooks;                           \
		struct layer_call call = { .op = DRIVER_OP_##name,                        \
					   .with.name = { NPU_ARGS(__VA_ARGS__) } };      \
                                                                                          \
		if (hooks->before == NULL || !hooks->before(layer, &call))                \
			call.code = layer->below.name NPU_TO(self->lower, ##__VA_ARGS__); \
		if (hooks->after != NULL)                                                 \
			hooks->after(layer, &call);                                       \
		return call.code;                                                         \
	}
#include "npusim/driver-ops.h"

static void close_layer(struct npu_driver *self)
{
	struct layer *layer = layer_of(self);

	layer->hooks->end(layer);
}

static const struct npu_driver forward = {
	.abi = NPU_DRIVER_ABI,
	.size = sizeof(struct npu_driver),
	.close = close_layer,
#define NPU_OP(result, missing, op, ...) .op = forward_##op,
#include "npusim/driver-ops.h"
};

void layer_init(struct layer *layer, const char *name, struct npu_driver *lower,
		const struct layer_hooks *hooks)
{
	memset(&layer->below, 0, sizeof(layer->below));
	memcpy(&layer->below, lower,
	       lower->size < sizeof(layer->below) ? lower->size : sizeof(layer->below));
	fill_gaps(&layer->below, sizeof(layer->below));
	layer->driver = forward;
	layer->driver.name = name;
	layer->driver.caps = lower->caps;
	layer->driver.lower = lower;
	layer->hooks = hooks;
}

/* ---- a driver of full length ---- */

void layer_free(struct layer *layer)
{
	free(layer);
}

struct npu_driver *npu_driver_complete(struct npu_driver *drv)
{
	static const struct layer_hooks plain = { .end = layer_free };
	struct layer *layer;

	/* What lies beyond `size` is not the driver's memory. */
	fill_gaps(drv, drv->size);
	if (drv->size >= sizeof(*drv))
		return drv;
	layer = malloc(sizeof(*layer));
	if (layer == NULL)
		return NULL;
	layer_init(layer, drv->name, drv, &plain);
	return &layer->driver;
}
