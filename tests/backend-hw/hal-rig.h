/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim's libascend_hal.so as any program has it: opened by its name, functions looked up. The rig
 * notes which functions were called.
 */
#ifndef NPUSIM_TESTS_HAL_RIG_H
#define NPUSIM_TESTS_HAL_RIG_H

#include "harness/test.h"

#include "hw.h"

/* The functions; the library is opened at the first use. A test fails fatally if that fails. */
const struct hw_symbols *hal(void);
/* A name that stands in no list of the rig's; NULL if the library has none. */
void *hal_symbol(const char *name);

enum hal_op {
#define NPU_OP(result, missing, op, ...) HAL_OP_##op,
#include "npusim/driver-ops.h"
	HAL_OP_COUNT
};
extern bool hal_called[HAL_OP_COUNT];
const char *hal_op_name(enum hal_op op);

/* HAL(halMemMap)(va, size, 0, handle, 0) */
#define HAL(op) (hal_called[HAL_OP_##op] = true, hal()->op)

/* Expects a driver's call to answer 0, and shows the model's words where it does not. */
#define EXPECT_HAL(call)                                               \
	do {                                                           \
		drvError_t code_ = (call);                             \
                                                                       \
		if (code_ != DRV_ERROR_NONE)                           \
			ADD_FAILURE("%s answers %d: %s", #call, code_, \
				    hal()->npusimLastMessage());       \
	} while (0)

/* A stream of the library's own: its id, queues, and what is in them. */
struct hal_stream {
	uint32_t dev, id, sq, cq, logic_cq;
	uint16_t tasks;
};
void hal_stream_open(struct hal_stream *stream, uint32_t dev);
void hal_stream_close(struct hal_stream *stream);
/* Sends one 64-byte entry; its header's stream and task are filled in. Returns the task's id. */
uint16_t hal_send(struct hal_stream *stream, void *entry, bool report);
/* A property of its submission queue. */
uint32_t hal_query(struct hal_stream *stream, int prop);
/* As CANN's runtime does: asks for the head until the queue is empty. False after 10 s. */
bool hal_wait_for_head(struct hal_stream *stream);
/* Completions that are there, up to `room`. */
unsigned hal_receive(struct hal_stream *stream, struct stars_logic_cqe *out, unsigned room);

/* An allocation as aclrtMalloc asks for it. */
void *hal_alloc(uint32_t dev, uint64_t bytes);

#endif
