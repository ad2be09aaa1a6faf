/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers queries about pointers: cuPointerGetAttribute and related calls. No state.
 */
#include "vmm.h"

#include <inttypes.h>
#include <string.h>

static void put(void *data, const void *value, size_t bytes)
{
	memcpy(data, value, bytes);
}

static void put_int(void *data, int value)
{
	put(data, &value, sizeof(value));
}

static void put_u64(void *data, uint64_t value)
{
	put(data, &value, sizeof(value));
}

static bool is_device(const struct npu_place *place)
{
	return place->owner != NPU_OWNER_HOST && npu_place_is_translated(place);
}

static uint64_t access_flags(const struct npu_place *place)
{
	if (place->kind != NPU_PLACE_MAPPED || place->writers != 0)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return place->readers != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static uint64_t asked(const struct npu_place *place)
{
	return place->kind == NPU_PLACE_MAPPED ? place->bytes : place->asked_bytes;
}

/* A range is that of the reservation, as on the H100. */
static bool range_attribute(void *data, CUpointer_attribute attribute,
			    const struct npu_place *place)
{
	bool mapped = place->kind == NPU_PLACE_MAPPED;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		put_u64(data, mapped ? place->reserved_base : place->base);
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		put_u64(data, mapped ? place->reserved_bytes : place->asked_bytes);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		put_u64(data, place->base);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		put_u64(data, asked(place));
		return true;
	default:
		return false;
	}
}

/* One that has no place for it answers false. */
static bool attribute_of(void *data, CUpointer_attribute attribute, uint64_t va,
			 const struct npu_place *place)
{
	bool managed = place->kind == NPU_PLACE_MANAGED;
	bool device = is_device(place);
	void *none = NULL, *context = cuda_memory_context(va);

	if (range_attribute(data, attribute, place))
		return true;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		put(data, &context, sizeof(context));
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		put_int(data, device || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		put_u64(data, va);
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (device)
			return false;
		put_u64(data, va);
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		put_u64(data, place->number);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		put_int(data, managed);
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		put_int(data, device ? cuda_ordinal(place->owner) : 0);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		put_int(data, 1);
		return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		put_u64(data, (uint32_t)place->handle_word);
		return true;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		put_u64(data, access_flags(place));
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		put_int(data, 0);
		return true;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		put(data, &none, sizeof(none));
		return true;
	default:
		return false;
	}
}

static bool is_known(const struct npu_place *place)
{
	return place->kind != NPU_PLACE_PAGEABLE && place->kind != NPU_PLACE_RESERVED;
}

CUDA_EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
					   CUdeviceptr ptr)
{
	struct npu_place place;

	CUDA_DRIVER(drv);
	if (data == NULL)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "data is NULL");
	place = cuda_place(drv, ptr);
	if (!is_known(&place))
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__, "ptr 0x%llx is %s", ptr,
				 place.kind == NPU_PLACE_PAGEABLE
					 ? "no memory of this driver"
					 : "reserved, and nothing is mapped there");
	if (attribute_of(data, attribute, ptr, &place))
		return CUDA_SUCCESS;
	return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__,
			 "attribute %d is unknown, or memory like that at 0x%llx has none",
			 (int)attribute, ptr);
}

/* What does not apply is 0, as CUDA documents it; that is no failure. */
CUDA_EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
					    void **data, CUdeviceptr ptr)
{
	struct npu_place place;

	CUDA_DRIVER(drv);
	if (attributes == NULL || data == NULL || count == 0)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__,
				 "attributes %p, data %p, count %u", (void *)attributes,
				 (void *)data, count);
	place = cuda_place(drv, ptr);
	for (unsigned i = 0; i < count; i++) {
		CUpointer_attribute a = attributes[i];
		bool is_int = a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
			      a == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
			      (a >= CU_POINTER_ATTRIBUTE_IS_MANAGED &&
			       a <= CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) ||
			      a == CU_POINTER_ATTRIBUTE_MAPPED ||
			      a == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE;

		if (is_known(&place) && attribute_of(data[i], a, ptr, &place))
			continue;
		if (a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			put_int(data[i], -2); /* cudaInvalidDeviceId */
		else if (is_int)
			put_int(data[i], 0);
		else
			put_u64(data[i], 0);
	}
	return CUDA_SUCCESS;
}

CUDA_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
					   CUdeviceptr ptr)
{
	struct npu_place place;

	CUDA_DRIVER(drv);
	place = cuda_place(drv, ptr);
	if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !is_known(&place))
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, __func__,
				 "attribute %d of 0x%llx cannot be set", (int)attribute, ptr);
	return CUDA_SUCCESS; /* synchronous copies always are */
}
