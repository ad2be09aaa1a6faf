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

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

_Static_assert(sizeof(union stars_sqe) == STARS_SQE_BYTES, "entries have 64 bytes");
/* Entry i of those that are sent, which lie anywhere. */
static inline union stars_sqe driver_entry(const struct halTaskSendInfo *sent, uint32_t i)
{
	union stars_sqe entry;

	memcpy(&entry, sent->sqe_addr + (size_t)i * sizeof(entry), sizeof(entry));
	return entry;
}
/* The copy that an entry of a queue asks for; false: it is none, or one by descriptors. */
bool driver_entry_copy(const union stars_sqe *entry, uint64_t *dst, uint64_t *src, uint64_t *bytes);
/* Of an entry that is one: other addresses. */
void driver_entry_set_copy(union stars_sqe *entry, uint64_t dst, uint64_t src);

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
/* Makes a forwarding driver of it: members that it changes are set afterwards. No hooks: it does
 * nothing else, and is freed at its end. */
void layer_init(struct layer *layer, const char *name, struct npu_driver *lower,
		const struct layer_hooks *hooks);

/* The driver below all layers; NULL of NULL. */
static inline struct npu_driver *driver_bottom(struct npu_driver *top)
{
	while (top != NULL && top->lower != NULL)
		top = top->lower;
	return top;
}

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
 * NULL and *error if the text is not right: what is wrong, what could be meant, and the form. */
struct npu_driver *fault_layer_open(struct npu_driver *lower, const char *spec, char **error);

/* For the model at the bottom, which alone has links between servers: what NPUSIM_FAULT has of
 * them, told that a copy goes to or comes from the server: false, it is lost, or *delay_us grows by
 * the latency that is added. NULL: nothing. */
typedef bool (*driver_link_fn)(unsigned server, uint64_t *delay_us);
driver_link_fn driver_link_faults(void);

/* ---- modules: where the build and the installation place them, and how a backend is loaded; and
 * the library that this is linked into among the libraries of the process ---- */

#define MODULE_PATH_MAX (PATH_MAX + 64)

/* Where the module `file` is: in build_folder of the build tree, or beside the library or program
 * that this function is linked into. False: it is not there; out[MODULE_PATH_MAX] is then where it
 * should be. */
bool driver_module_find(const char *build_folder, const char *file, char *out);

/* Loads backend-NAME.so, which lies beside the library or program that this function is linked
 * into, or in its build tree. path[MODULE_PATH_MAX] is where it was looked for, "" if that is not
 * known. NULL, and *error (free()): the loader refuses it, it belongs to another version, or this
 * namespace of the loader cannot have one; *error NULL: there is no file. A module is never
 * unloaded: its threads, its thread-local memory and its simulation live as long as the process. */
const struct npu_backend *driver_module_load(const char *name, char *path, char **error);

/* The driver, or one over it that calls the functions of the driver's names that others have put in
 * front of libascend_hal.so, if there are any. */
struct npu_driver *driver_interposed(struct npu_driver *drv);

/* Warns, the first time, of each library of the process that has the name of one of ours and is
 * another: which file, and what brought it in. with_hal: libascend_hal.so too, since the model is
 * about to serve the calls. */
void driver_warn_of_others(bool with_hal);

/* ---- the layers of a process, for the module that holds the driver at their bottom: struct
 * npu_backend in driver.h says who that is (stack.c) ---- */

/* Puts the layers that the environment asks for over `bottom`: NPUSIM_FAULT, NPUSIM_VALIDATE, and
 * above them NPUSIM_TRACE, so that the record shows what the program was told. The top, which is
 * `bottom` where there is no layer. NULL and *error (free()): `bottom` is as it was. */
struct npu_driver *driver_stack_open(struct npu_driver *bottom, char **error);
/* Whether their settings are valid; opens nothing. False, and *error (free()). */
bool driver_stack_check(char **error);

/* For a destructor: the process ends with this status; a validation says its last words before. */
void driver_stack_exit(int status);

/* For a bottom that several open: npu_driver_close() of the stack closes only the bottom, which
 * calls driver_stack_end() at its last close. */
void driver_stack_share(struct npu_driver *top);
/* Ends the layers above the bottom. */
void driver_stack_end(struct npu_driver *top);

#endif
