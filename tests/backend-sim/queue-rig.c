/* SPDX-License-Identifier: Apache-2.0
 *
 * The rig of the tests of copies and queues.
 */
#include "queue-rig.h"

#include <stdlib.h>
#include <pthread.h>
#include <string.h>

extern const struct npu_backend npusim_backend_1;

struct npu_driver *rig;

/* Host memory outlives devices. */
static void *pinned[64];
static unsigned pinned_count;

__attribute__((constructor)) static void small_node(void)
{
	setenv("NPUSIM_DEVICES", "2", 1);
	setenv("NPUSIM_HBM", "4G", 0);
}

void rig_device_open(unsigned device)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	CALL(halDeviceOpen, device, &in, &out);
}

void rig_device_close(unsigned device)
{
	halDevCloseIn in = { { 0 } };

	CALL(halDeviceClose, device, &in);
}

uint64_t rig_free_bytes(void)
{
	struct MemInfo info;

	CALL(halMemGetInfo, 0, MEM_INFO_TYPE_HBM_SIZE, &info);
	return info.phy_info.huge_free;
}

void rig_open(void)
{
	char *error = NULL;
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	if (rig == NULL)
		rig = npusim_backend_1.open(&error);
	if (rig == NULL)
		FAIL("%s", error);
	for (unsigned d = 0; d < RIG_DEVICES; d++)
		ASSERT_EQ(npu_call(rig, halDeviceOpen, d, &in, &out), DRV_ERROR_NONE);
}

void rig_close(void)
{
	for (unsigned d = 0; rig != NULL && d < RIG_DEVICES; d++)
		rig_device_close(d);
	for (unsigned i = 0; i < pinned_count; i++)
		npu_call(rig, halMemFree, pinned[i]);
	pinned_count = 0;
}

__attribute__((destructor)) void rig_end(void)
{
	npu_driver_close(rig);
	rig = NULL;
	pinned_count = 0;
}

uint64_t rig_now(void)
{
	uint64_t ps = 0;

	EXPECT_EQ(npu_call(rig, npusimNow, &ps), DRV_ERROR_NONE);
	return ps;
}

/* ---- faults ---- */

static void *run_fault(void *arg)
{
	(*(void (**)(void))arg)();
	return arg;
}

void rig_run_armed(void (**armed)(void))
{
	void (*now)(void) = *armed;
	pthread_t thread;

	if (now == NULL)
		return;
	*armed = NULL;
	pthread_create(&thread, NULL, run_fault, &now);
	pthread_join(thread, NULL);
}

/* ---- memory ---- */

uint64_t rig_alloc(unsigned device, uint64_t bytes)
{
	void *va = NULL;
	uint64_t flag = device | RIG_DEVICE_FLAG | MEM_PAGE_HUGE;

	if (npu_call(rig, halMemAlloc, &va, bytes, flag) != DRV_ERROR_NONE)
		ADD_FAILURE("halMemAlloc: %s", npu_call(rig, npusimLastMessage));
	return (uint64_t)va;
}

void *rig_pinned(uint64_t bytes)
{
	void *va = NULL;

	if (npu_call(rig, halMemAlloc, &va, bytes, RIG_HOST_FLAG) != DRV_ERROR_NONE)
		ADD_FAILURE("halMemAlloc: %s", npu_call(rig, npusimLastMessage));
	if (va != NULL && pinned_count < sizeof(pinned) / sizeof(pinned[0]))
		pinned[pinned_count++] = va;
	return va;
}

uint64_t rig_map_part(unsigned device, uint64_t bytes, uint64_t mapped)
{
	struct drv_mem_prop prop = { .side = MEM_DEV_SIDE,
				     .devid = device,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_HBM_TYPE };
	drv_mem_handle_t *handle = NULL;
	void *va = NULL;

	if (npu_call(rig, halMemAddressReserve, &va, bytes, 0, NULL, MEM_HUGE_PAGE_TYPE) !=
		    DRV_ERROR_NONE ||
	    npu_call(rig, halMemCreate, &handle, mapped, &prop, 0) != DRV_ERROR_NONE ||
	    npu_call(rig, halMemMap, va, mapped, 0, handle, 0) != DRV_ERROR_NONE) {
		ADD_FAILURE("%s", npu_call(rig, npusimLastMessage));
		return 0;
	}
	return (uint64_t)va;
}

uint64_t rig_map(unsigned device, uint64_t bytes)
{
	return rig_map_part(device, bytes, bytes);
}

void rig_peer(unsigned device, unsigned peer)
{
	EXPECT_EQ(npu_call(rig, halDeviceEnableP2P, device, peer, 0), DRV_ERROR_NONE);
}

/* ---- streams ---- */

uint32_t rig_id(unsigned device, int type)
{
	struct halResourceIdInputInfo in = { .type = type };
	struct halResourceIdOutputInfo out = { .resourceId = UINT32_MAX };

	EXPECT_EQ(npu_call(rig, halResourceIdAlloc, device, &in, &out), DRV_ERROR_NONE);
	return out.resourceId;
}

drvError_t rig_id_config(unsigned device, int type, uint32_t id, int prop, uint32_t value)
{
	struct halResourceIdInputInfo in = { .type = type, .resourceId = id };
	struct halResourceConfigInfo para = { .prop = prop, .value = { value } };

	return npu_call(rig, halResourceConfig, device, &in, &para);
}

void rig_stream_open(struct rig_stream *stream, unsigned device, uint32_t depth, uint32_t cq_depth)
{
	struct halSqCqInputInfo in = {
		.type = DRV_NORMAL_TYPE, .sqeSize = 64, .cqeSize = 16, .sqeDepth = depth
	};
	struct halSqCqOutputInfo out = { 0 };

	*stream = (struct rig_stream){ .device = device, .id = rig_id(device, DRV_STREAM_ID) };
	in.info[0] = stream->id;
	ASSERT_EQ(npu_call(rig, halSqCqAllocate, device, &in, &out), DRV_ERROR_NONE);
	stream->sq = out.sqId;
	in = (struct halSqCqInputInfo){ .type = DRV_LOGIC_TYPE,
					.cqeSize = 32,
					.cqeDepth = cq_depth };
	ASSERT_EQ(npu_call(rig, halSqCqAllocate, device, &in, &out), DRV_ERROR_NONE);
	stream->cq = out.cqId;
	ASSERT_EQ(rig_id_config(device, DRV_STREAM_ID, stream->id, DRV_STREAM_BIND_LOGIC_CQ,
				stream->cq),
		  DRV_ERROR_NONE);
}

void rig_stream_close(struct rig_stream *stream)
{
	struct halSqCqFreeInfo info = { .type = DRV_NORMAL_TYPE, .sqId = stream->sq };
	struct halResourceIdInputInfo in = { .type = DRV_STREAM_ID, .resourceId = stream->id };

	EXPECT_EQ(npu_call(rig, halSqCqFree, stream->device, &info), DRV_ERROR_NONE);
	info = (struct halSqCqFreeInfo){ .type = DRV_LOGIC_TYPE, .cqId = stream->cq };
	EXPECT_EQ(npu_call(rig, halSqCqFree, stream->device, &info), DRV_ERROR_NONE);
	EXPECT_EQ(npu_call(rig, halResourceIdFree, stream->device, &in), DRV_ERROR_NONE);
}

drvError_t rig_send(struct rig_stream *stream, void *entry, int report, int timeout_ms)
{
	struct stars_sqe_header *header = entry;
	struct halTaskSendInfo info = { .type = DRV_NORMAL_TYPE,
					.sqId = stream->sq,
					.timeout = timeout_ms,
					.sqe_addr = entry,
					.sqe_num = 1 };

	header->stream_id |= (uint16_t)stream->id;
	header->task_id = stream->tasks++;
	header->wr_cqe = report == REPORT;
	return npu_call(rig, halSqTaskSend, stream->device, &info);
}

static uint16_t send_now(struct rig_stream *stream, void *entry, int report)
{
	uint16_t task = stream->tasks;

	if (rig_send(stream, entry, report, 0) != DRV_ERROR_NONE)
		ADD_FAILURE("%s", npu_call(rig, npusimLastMessage));
	return task;
}

uint16_t rig_nop(struct rig_stream *stream, int report)
{
	struct {
		struct stars_sqe_header header;
		uint32_t rest[14];
	} sqe = { .header.type = STARS_SQE_PLACE_HOLDER };

	return send_now(stream, &sqe, report);
}

uint16_t rig_copy(struct rig_stream *stream, uint64_t dst, uint64_t src, uint64_t bytes, int report)
{
	struct stars_pcie_dma_sqe sqe = {
		.header.type = STARS_SQE_PCIE_DMA, .src = src, .dst = dst, .length = bytes
	};

	return send_now(stream, &sqe, report);
}

uint16_t rig_sdma(struct rig_stream *stream, uint64_t dst, uint64_t src, uint32_t bytes, int report)
{
	struct stars_sdma_sqe sqe = { .header.type = STARS_SQE_SDMA,
				      .length = bytes,
				      .src_addr_low = (uint32_t)src,
				      .src_addr_high = (uint32_t)(src >> 32),
				      .dst_addr_low = (uint32_t)dst,
				      .dst_addr_high = (uint32_t)(dst >> 32) };

	return send_now(stream, &sqe, report);
}

uint16_t rig_event(struct rig_stream *stream, int type, unsigned event_device, uint32_t id,
		   uint32_t timeout_s, int report)
{
	struct stars_event_sqe sqe = { .header.type = (uint8_t)(type & 63),
				       .event_id = (uint16_t)id };
	struct stars_write_value_sqe other = { .header.type = STARS_SQE_WRITE_VALUE,
					       .res3 = event_device,
					       .write_addr_low = STARS_NOTIFY_OFFSET(id),
					       .sub_type = STARS_WRITE_NOTIFY };

	if (event_device != stream->device) /* a record of a notify */
		return send_now(stream, &other, report);
	if (type == STARS_SQE_EVENT_WAIT)
		sqe.timeout = timeout_s;
	else
		sqe.exe_result = timeout_s;
	return send_now(stream, &sqe, report);
}

uint16_t rig_write(struct rig_stream *stream, uint64_t va, uint64_t value, unsigned bytes_lg2,
		   int report)
{
	struct stars_write_value_sqe sqe = {
		.header.type = STARS_SQE_WRITE_VALUE,
		.write_addr_low = (uint32_t)va,
		.write_addr_high = (uint32_t)(va >> 32) | bytes_lg2 << 20 | 1u << 31,
		.value = { (uint32_t)value, (uint32_t)(value >> 32) }
	};

	return send_now(stream, &sqe, report);
}

uint16_t rig_wait_value(struct rig_stream *stream, uint64_t va, uint32_t compare, uint64_t value,
			int report)
{
	struct stars_value_wait_sqe sqe = { .header.type = STARS_SQE_COND,
					    .magic = STARS_VALUE_WAIT_MAGIC,
					    .compare = compare,
					    .addr = va,
					    .value = value };

	return send_now(stream, &sqe, report);
}

/* ---- reports ---- */

uint32_t rig_query(const struct rig_stream *stream, int prop)
{
	struct halSqCqQueryInfo info = { .type = DRV_NORMAL_TYPE,
					 .sqId = stream->sq,
					 .prop = prop };

	EXPECT_EQ(npu_call(rig, halSqCqQuery, stream->device, &info), DRV_ERROR_NONE);
	return info.value[0];
}

drvError_t rig_recv(const struct rig_stream *stream, struct stars_logic_cqe *out, uint32_t room,
		    int timeout_ms, uint32_t *out_count)
{
	struct halReportRecvInfo info = { .type = DRV_LOGIC_TYPE,
					  .cqId = stream->cq,
					  .timeout = timeout_ms,
					  .cqe_addr = (uint8_t *)out,
					  .cqe_num = room,
					  .report_cqe_num = 77,
					  .stream_id = UINT32_MAX,
					  .task_id = UINT32_MAX };
	drvError_t code = npu_call(rig, halCqReportRecv, stream->device, &info);

	*out_count = info.report_cqe_num;
	return code;
}

struct stars_logic_cqe rig_next(const struct rig_stream *stream)
{
	struct stars_logic_cqe cqe = { 0 };
	uint32_t count = 0;

	EXPECT_EQ(rig_recv(stream, &cqe, 1, -1, &count), DRV_ERROR_NONE);
	EXPECT_EQ(count, 1u);
	return cqe;
}

void rig_finish(struct rig_stream *stream)
{
	uint16_t last = rig_nop(stream, REPORT);
	struct stars_logic_cqe cqe;

	do {
		cqe = rig_next(stream);
		EXPECT_EQ(cqe.error_type, 0);
		RETURN_IF_FATAL();
	} while (cqe.task_id != last && !harness_has_failed());
}
