/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions by name, and what stands where a driver lacks one.
 */
#include "driver-wrap.h"

#include "base/base-private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {
#define DRIVER_NAME(ret, missing, op, params, args) #op,
	NPU_DRIVER_OPS(DRIVER_NAME)
#undef DRIVER_NAME
};

const char *driver_op_name(enum driver_op op)
{
	return (unsigned)op < DRIVER_OP_COUNT ? names[op] : "?";
}

bool driver_op_is_call(enum driver_op op)
{
	switch (op) {
	case DRIVER_OP_halSupportFeature:
	case DRIVER_OP_drvDeviceGetBareTgid:
	case DRIVER_OP_npusimGetStats:
	case DRIVER_OP_npusimNow:
	case DRIVER_OP_npusimLastMessage:
	case DRIVER_OP_npusimLeaks:
	case DRIVER_OP_npusimSetDialect:
	case DRIVER_OP_npusimPlace:
	case DRIVER_OP_npusimCheckCopy:
	case DRIVER_OP_npusimTouch:
	case DRIVER_OP_npusimAwait:
	case DRIVER_OP_npusimPhysical:
		return false;
	default:
		return true;
	}
}

/* The letters that tell names apart: "halMemCreate", "mem_create" and "MEMCREATE" are one. */
static void plain_name(const char *name, char *out, size_t room)
{
	size_t length = 0;

	if (strncasecmp(name, "hal", 3) == 0 || strncasecmp(name, "drv", 3) == 0)
		name += name[3] == '_' ? 4 : 3;
	for (; *name != '\0' && length + 1 < room; name++)
		if (isalnum((unsigned char)*name))
			out[length++] = (char)tolower((unsigned char)*name);
	out[length] = '\0';
}

enum driver_op driver_op_by_name(const char *name)
{
	char wanted[64], have[64];

	plain_name(name, wanted, sizeof(wanted));
	for (int i = 0; i < DRIVER_OP_COUNT; i++) {
		plain_name(names[i], have, sizeof(have));
		if (strcmp(wanted, have) == 0)
			return (enum driver_op)i;
	}
	return DRIVER_OP_COUNT;
}

const char *driver_op_nearest(const char *name)
{
	char wanted[64], plain[DRIVER_OP_COUNT][64];
	const char *all[DRIVER_OP_COUNT], *nearest;

	plain_name(name, wanted, sizeof(wanted));
	for (int i = 0; i < DRIVER_OP_COUNT; i++) {
		plain_name(names[i], plain[i], sizeof(plain[i]));
		all[i] = plain[i];
	}
	nearest = base_nearest(wanted, all, DRIVER_OP_COUNT);
	for (int i = 0; i < DRIVER_OP_COUNT; i++)
		if (all[i] == nearest)
			return names[i];
	return NULL;
}

/* ---- what a driver lacks ---- */

/* The parameters of each stand unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define DRIVER_MISSING(ret, missing, op, params, args) \
	static ret missing_##op NPU_WITH_SELF params   \
	{                                              \
		return missing;                        \
	}
NPU_DRIVER_OPS(DRIVER_MISSING)
#undef DRIVER_MISSING

#define DRIVER_HAS(drv, op) \
	(offsetof(struct npu_driver, op) + sizeof((drv)->op) <= (drv)->size && (drv)->op != NULL)

void npu_driver_complete(struct npu_driver *drv)
{
	/* What lies beyond `size` is not the driver's memory: driver_adapt() is for that. */
#define DRIVER_COMPLETE(ret, missing, op, params, args)                                        \
	if (offsetof(struct npu_driver, op) + sizeof(drv->op) <= drv->size && drv->op == NULL) \
		drv->op = missing_##op;
	NPU_DRIVER_OPS(DRIVER_COMPLETE)
#undef DRIVER_COMPLETE
}

/* ---- a driver built against a shorter list ---- */

#define DRIVER_ADAPTED(ret, missing, op, params, args)                                \
	static ret adapted_##op NPU_WITH_SELF params                                  \
	{                                                                             \
		struct npu_driver *lower = self->lower;                               \
                                                                                      \
		return DRIVER_HAS(lower, op) ? lower->op DRIVER_LOWER args : missing; \
	}
NPU_DRIVER_OPS(DRIVER_ADAPTED)
#undef DRIVER_ADAPTED

static void close_adapter(struct npu_driver *self)
{
	free(self);
}

struct npu_driver *driver_adapt(struct npu_driver *lower)
{
	static const struct npu_driver adapter = { .abi = NPU_DRIVER_ABI,
						   .size = sizeof(struct npu_driver),
						   .close = close_adapter,
#define DRIVER_MEMBER(ret, missing, op, params, args) .op = adapted_##op,
						   NPU_DRIVER_OPS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
	};
	struct npu_driver *drv = malloc(sizeof(*drv));

	if (drv == NULL)
		return NULL;
	*drv = adapter;
	drv->name = lower->name;
	drv->caps = lower->caps;
	drv->lower = lower;
	return drv;
}
