/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of copies and queues: a driver of two small devices, memory of each kind, and a
 * stream: a submission queue with a completion queue of its own, and entries by function. Failures
 * of what a test only needs are fatal to it.
 */
#ifndef NPUSIM_TESTS_QUEUE_RIG_H
#define NPUSIM_TESTS_QUEUE_RIG_H

#include "harness/test.h"
#include "npusim/driver.h"

#define MIB         (UINT64_C(1) << 20)
#define RIG_DEVICES 2u

/* The open driver; both devices are open. */
extern struct npu_driver *rig;

void rig_open(void);
/* Closes the devices: all that they hold goes. The driver stays, for the next test. */
void rig_close(void);
/* Closes the driver. */
void rig_end(void);

/* A call that is to succeed. */
#define CALL(...)                                              \
	EXPECT_EQ(npu_call(rig, __VA_ARGS__), DRV_ERROR_NONE); \
	NOTE("%s", npu_call(rig, npusimLastMessage))

/* One device alone. */
void rig_device_open(unsigned device);
void rig_device_close(unsigned device);
/* HBM of device 0. */
uint64_t rig_free_bytes(void);

/* Simulated time, in ps. */
uint64_t rig_now(void);
/* Device memory: classic, or reserved, created and mapped. 0 after a fatal failure. Given back by
 * rig_close(). */
uint64_t rig_alloc(unsigned device, uint64_t bytes);
uint64_t rig_map(unsigned device, uint64_t bytes);
/* Flags of halMemAlloc: pinned host memory; device 0's, in 4 KiB pages. */
#define RIG_HOST_FLAG \
	((uint64_t)MEM_HOST_VAL << MEM_VIRT_BIT | (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT)
#define RIG_DEVICE_FLAG                                         \
	((uint64_t)MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | \
	 (uint64_t)APP_MODULE_ID << MEM_MODULE_ID_BIT)
/* Pinned host memory. */
void *rig_pinned(uint64_t bytes);
/* A reservation of `bytes` with `mapped` bytes of a handle at its start. */
uint64_t rig_map_part(unsigned device, uint64_t bytes, uint64_t mapped);
void rig_peer(unsigned device, unsigned peer);

/* What is to happen at a place, armed once: it does in another thread, which this one waits for.
 * NULL: nothing is. */
void rig_run_armed(void (**armed)(void));

struct rig_stream {
	unsigned device;
	uint32_t id, sq, cq;
	uint16_t tasks; /* id of the next task */
};
void rig_stream_open(struct rig_stream *stream, unsigned device, uint32_t depth, uint32_t cq_depth);
void rig_stream_close(struct rig_stream *stream);

/* One entry, with the next task id, which is returned. `report`: with a completion. */
enum { QUIET, REPORT };
drvError_t rig_send(struct rig_stream *stream, void *entry, int report, int timeout_ms);
uint16_t rig_nop(struct rig_stream *stream, int report);
uint16_t rig_copy(struct rig_stream *stream, uint64_t dst, uint64_t src, uint64_t bytes,
		  int report);
uint16_t rig_sdma(struct rig_stream *stream, uint64_t dst, uint64_t src, uint32_t bytes,
		  int report);
/* event_device: whose event; type as in the header: STARS_SQE_EVENT_RECORD ... */
uint16_t rig_event(struct rig_stream *stream, int type, unsigned event_device, uint32_t id,
		   uint32_t timeout_s, int report);
uint16_t rig_write(struct rig_stream *stream, uint64_t va, uint64_t value, unsigned bytes_lg2,
		   int report);
uint16_t rig_wait_value(struct rig_stream *stream, uint64_t va, uint32_t compare, uint64_t value,
			int report);

uint32_t rig_id(unsigned device, int type);
drvError_t rig_id_config(unsigned device, int type, uint32_t id, int prop, uint32_t value);
uint32_t rig_query(const struct rig_stream *stream, int prop);
/* Takes reports; the code of the call. */
drvError_t rig_recv(const struct rig_stream *stream, struct stars_logic_cqe *out, uint32_t room,
		    int timeout_ms, uint32_t *out_count);
/* The next report, without limit of time; all zeros after a failure. */
struct stars_logic_cqe rig_next(const struct rig_stream *stream);
/* Until all that was sent is complete: reports on the way must have no error. */
void rig_finish(struct rig_stream *stream);

#endif
