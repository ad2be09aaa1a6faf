/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers: drivers over a driver. A layer forwards every call to the driver below, and says in two
 * hooks what it does beside that; it overrides nothing else but the member that it changes. The
 * faults of NPUSIM_FAULT and the trace of NPUSIM_TRACE are layers.
 *
 *   forward.c  the forwarding driver; the names of functions, and the codes, in words
 *   trace.c    records calls
 *   stack.c    adds the layers that the environment asks for; makes chosen calls fail
 *   module.c   finds and loads backend modules
 *   joined.c   for who opens one: tells `npusim run`, and of a second libascendcl
 *   open.c     chooses the backend of the process
 */
#ifndef NPUSIM_DRIVER_LAYER_H
#define NPUSIM_DRIVER_LAYER_H

#include <stddef.h>

#include "npusim/driver.h"

/* ---- the functions, by name (forward.c) ---- */

/* Indices of the driver's functions, in the order of driver-ops.h. */
enum driver_op {
#define NPU_OP(result, missing, op, ...) DRIVER_OP_##op,
#include "npusim/driver-ops.h"
	DRIVER_OP_COUNT
};
const char *driver_op_name(enum driver_op op);
/* True for a NPU_CALL of driver-ops.h. */
bool driver_op_is_call(enum driver_op op);
/* By the HAL's name, or by the same in small letters with or without prefix and underscores:
 * "mem_create". COUNT: none; *out_nearest is the one that is near, or NULL. */
enum driver_op driver_op_by_name(const char *name, const char **out_nearest);

/* ---- the driver's codes, for programs (forward.c) ---- */

/* As CANN's runtime translates it (its errcode_manage): one table, tested as a table. */
int driver_code_acl(drvError_t code);
/* "out of memory"; NULL: a code without a name. */
const char *driver_code_name(drvError_t code);

/* ---- entries of queues (forward.c) ---- */

/* The copy that an entry of a queue asks for; false: it is none, or one by descriptors. */
bool driver_entry_copy(const uint8_t *entry, uint64_t *dst, uint64_t *src, uint64_t *bytes);
/* Of an entry that is one: other addresses. */
void driver_entry_set_copy(uint8_t *entry, uint64_t dst, uint64_t src);

/* ---- the forwarding driver (forward.c) ---- */

/* A NPU_CALL on its way: call->with.halMemMap.size is what halMemMap was given as `size`. */
struct layer_call {
	enum driver_op op;
	drvError_t code; /* the answer, for hook `after`; and for `before` to set */
	union layer_arguments {
#define NPU_OP(result, missing, op, ...)
#define NPU_QUERY(op, ...)
#define NPU_CALL(op, ...)               \
	struct {                        \
		NPU_FIELDS(__VA_ARGS__) \
	} op;
#include "npusim/driver-ops.h"
	} with;
	_Alignas(max_align_t) char note[128]; /* what `before` leaves for `after` */
};

struct layer;
struct layer_hooks {
	/* Any may be NULL. True: call->code is the answer, and the driver below does not hear of
	 * the call. Called in the thread that calls, under no lock. */
	bool (*before)(struct layer *layer, struct layer_call *call);
	void (*after)(struct layer *layer, struct layer_call *call);
	/* Frees the layer and what it has. */
	void (*end)(struct layer *layer);
};

/* First member of what a layer is. Queries and NPU_OPs pass without a hook. */
struct layer {
	struct npu_driver driver;
	struct npu_driver below; /* the functions of driver.lower, complete */
	const struct layer_hooks *hooks;
};
/* An `end` of a layer that has nothing else. */
void layer_free(struct layer *layer);
/* Makes a forwarding driver of it: members that it changes are set afterwards. */
void layer_init(struct layer *layer, const char *name, struct npu_driver *lower,
		const struct layer_hooks *hooks);

/* ---- layers ---- */

/* Records every call to a file, in the format of traces/FORMAT.md. `lower` itself where
 * libnpusim-record.so writes the file: it has the calls as the program makes them. NULL and *error
 * (free()) if the file cannot be written. */
struct npu_driver *trace_layer_open(struct npu_driver *lower, const char *path, char **error);
/* Whether the file can be made and written, as far as that can be told without making it. */
bool trace_layer_check(const char *path, char **error);

/* What npusim-validate.so (runtime/validate) exports under VALIDATE_SYMBOL. */
struct validate_module {
	/* Whether its settings are valid; opens and keeps nothing. */
	bool (*check)(char **error);
	/* Opens the layer that finds errors of the program; `mode` is "on" or "strict". NULL and
	 * *error (free()): the settings are not right. */
	struct npu_driver *(*open)(struct npu_driver *lower, const char *mode, char **error);
	/* The process is to end with this status, once the sums are written. */
	void (*exit)(int status);
};
#define VALIDATE_SYMBOL "npusim_validate_1"

/* Makes calls fail as `spec` says: CALL:WHEN:HOW, several separated by commas; see NPUSIM_FAULT.
 * NULL and *error if the text is not right: says what is wrong, what could be meant, and the form.
 */
struct npu_driver *fault_layer_open(struct npu_driver *lower, const char *spec, char **error);
bool fault_layer_check(const char *spec, char **error);

#endif
