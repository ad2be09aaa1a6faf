/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers queries about pointers: cuPointerGetAttribute and related calls. No state.
 */
#include "cuda-internal.h"

#include <string.h>

static bool is_int(CUpointer_attribute a)
{
	return a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || a == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
	       (a >= CU_POINTER_ATTRIBUTE_IS_MANAGED &&
		a <= CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) ||
	       a == CU_POINTER_ATTRIBUTE_MAPPED ||
	       a == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE;
}

/* As an int or a number or pointer of 64 bits, whichever the attribute is. */
static void put(void *data, CUpointer_attribute attribute, uint64_t value)
{
	int number = (int)value;

	if (is_int(attribute))
		memcpy(data, &number, sizeof(number));
	else
		memcpy(data, &value, sizeof(value));
}

static bool is_on_device(const struct npu_place *place)
{
	return place->owner != NPU_OWNER_HOST && npu_place_is_translated(place);
}

/* Whether memory like that has such an attribute. */
static bool has(const struct npu_place *place, CUpointer_attribute a)
{
	return a >= CU_POINTER_ATTRIBUTE_CONTEXT && a <= CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID &&
	       a != CU_POINTER_ATTRIBUTE_P2P_TOKENS &&
	       (a != CU_POINTER_ATTRIBUTE_HOST_POINTER || !is_on_device(place));
}

/* A range is that of the reservation, as on the H100. */
static uint64_t value_of(CUpointer_attribute attribute, uint64_t va, const struct npu_place *place)
{
	bool mapped = place->kind == NPU_PLACE_MAPPED, managed = place->kind == NPU_PLACE_MANAGED;
	struct trace_name own = cuda_memory_find(va);

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return mapped ? place->reserved_base : place->base;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return mapped ? place->reserved_bytes : place->asked_bytes;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return place->base;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return mapped ? place->bytes : place->asked_bytes;
	case CU_POINTER_ATTRIBUTE_CONTEXT: /* memory of a pool has none */
		return own.letter == CUDA_POOLED ? 0 : own.number;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return own.letter == CUDA_POOLED ? own.number : 0;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return own.letter == NPU_PLACE_DEVICE;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return is_on_device(place) || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return va;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return place->number;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return managed;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return is_on_device(place) ? (uint64_t)cuda_ordinal(place->owner) : 0;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return 1;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return (uint32_t)place->handle_word;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		if (!mapped || place->writers != 0)
			return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return place->readers != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
					   : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	default:
		return 0;
	}
}

static bool is_known(const struct npu_place *place)
{
	return place->kind != NPU_PLACE_PAGEABLE && place->kind != NPU_PLACE_RESERVED;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct npu_place place = cuda_place(ptr);

	if (!is_known(&place))
		return cuda_invalid("ptr 0x%llx is %s", ptr,
				    place.kind == NPU_PLACE_PAGEABLE
					    ? "no memory of this driver"
					    : "reserved, and nothing is mapped there");
	if (!has(&place, attribute))
		return cuda_invalid(
			"attribute %d is unknown, or memory like that at 0x%llx has none",
			(int)attribute, ptr);
	put(data, attribute, value_of(attribute, ptr, &place));
	return CUDA_SUCCESS;
}

/* What does not apply is 0, as CUDA documents it; that is no failure. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr)
{
	struct npu_place place = cuda_place(ptr);

	if (count == 0)
		return cuda_invalid("count is 0");
	for (unsigned i = 0; i < count; i++) {
		CUpointer_attribute a = attributes[i];
		uint64_t value = a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
					 ? (uint64_t)-2 /* cudaInvalidDeviceId */
					 : 0;

		if (is_known(&place) && has(&place, a))
			value = value_of(a, ptr, &place);
		put(data[i], a, value);
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct npu_place place = cuda_place(ptr);

	(void)value; /* synchronous copies always are */
	return CUDA_WANT(attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && is_known(&place),
			 "attribute %d of 0x%llx cannot be set", (int)attribute, ptr);
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t size,
				       CUmemRangeHandleType type, unsigned long long flags)
{
	(void)handle;
	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 || size == 0 ||
	    (ptr | size) % 4096 != 0)
		return cuda_invalid("[0x%llx, +%zu), type %d, flags %llu: the range must be whole "
				    "pages, type 1, and flags 0 or 1",
				    ptr, size, (int)type, flags);
	return cuda_fail(CUDA_ERROR_NOT_SUPPORTED,
			 "there are no dma-bufs: the device's attribute 124 is 0");
}
