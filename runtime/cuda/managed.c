/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: prefetches, advice, what ranges of it answer, and what it is attached to. It does
 * not migrate, and everything can access it all the time: what programs say of its pages is kept,
 * and answered.
 */
#include "cuda-internal.h"

#include "base/lock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define NO_DEVICE  (-2) /* CU_DEVICE_INVALID */
#define PAGE_BYTES UINT64_C(4096)

/* By attribute 1 to 4 less one: a CUmemLocation, 0 where none was said; of who accesses it one bit
 * each, the host's the highest. */
struct page {
	uint64_t said[CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION];
};
static struct trace_names tables; /* of all pages of an allocation, by its address */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cuda_managed_forget(uint64_t va)
{
	struct trace_name gone;
	LOCKED(&lock);

	if (trace_name_take(&tables, va, &gone))
		free(cuda_pointer(gone.number));
}

/* Whole pages, as CUDA's driver counts: *count is bytes, and pages afterwards. */
static CUresult pages_locked(uint64_t va, size_t *count, struct page **out)
{
	struct trace_name memory = cuda_memory_find(va);
	const struct trace_name *table = trace_name_find(&tables, va);
	uint64_t from = va - memory.key;
	struct page *made;

	if (memory.letter != NPU_PLACE_MANAGED || *count == 0 || *count > memory.bytes - from)
		return cuda_invalid("[0x%llx, +%zu) is not memory of cuMemAllocManaged",
				    (unsigned long long)va, *count);
	if (table == NULL) {
		made = calloc(memory.bytes / PAGE_BYTES + 1, sizeof(*made));
		memory.number = (uintptr_t)made;
		if (made == NULL || !trace_name_add(&tables, memory)) {
			free(made);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		table = trace_name_find(&tables, va);
	}
	*out = (struct page *)cuda_pointer(table->number) + from / PAGE_BYTES;
	*count = (from % PAGE_BYTES + *count + PAGE_BYTES - 1) / PAGE_BYTES;
	return CUDA_SUCCESS;
}

/* All pages' bits that are set in `keep` stay. */
static CUresult say(uint64_t va, size_t count, CUmem_range_attribute about, uint64_t keep,
		    uint64_t word)
{
	struct page *pages;
	LOCKED(&lock);
	CUresult code = pages_locked(va, &count, &pages);

	for (size_t i = 0; code == CUDA_SUCCESS && i < count; i++) {
		uint64_t *said = &pages[i].said[about - 1];

		*said = (*said & keep) | word;
	}
	return code;
}

/* What all pages have in common. */
static CUresult ask(uint64_t va, size_t count, CUmem_range_attribute about, uint64_t *out)
{
	struct page *pages;
	LOCKED(&lock);
	CUresult code = pages_locked(va, &count, &pages);

	if (code != CUDA_SUCCESS)
		return code;
	*out = pages->said[about - 1];
	for (size_t i = 1; i < count; i++) {
		uint64_t said = pages[i].said[about - 1];

		*out = about == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY || said == *out ? *out & said
										   : 0;
	}
	return CUDA_SUCCESS;
}

static CUmemLocation place_of(CUdevice device)
{
	return (CUmemLocation){ device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
							: CU_MEM_LOCATION_TYPE_DEVICE,
				device };
}

/* A device, the host, or one of its NUMA nodes, as a word. */
static CUresult check_place(CUmemLocation where, uint64_t *out_word)
{
	uint32_t logic;
	unsigned node = 0;

	if (where.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
		getcpu(NULL, &node);
		where = (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST_NUMA, (int)node };
	}
	if (where.type == CU_MEM_LOCATION_TYPE_HOST)
		where.id = 0;
	memcpy(out_word, &where, sizeof(where));
	return cuda_check_location(&where, &logic);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t count, CUmemLocation location,
			       unsigned int flags, CUstream stream)
{
	uint64_t word;

	(void)stream;
	return cuda_no_flags(flags) ?: check_place(location, &word)
		       ?: say(ptr, count, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, word);
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t count, CUdevice device, CUstream stream)
	CUDA_ANSWERS(cuMemPrefetchAsync_v2(ptr, count, place_of(device), 0, stream));

/* Each attribute is set by one advice, and taken back by the next. */
CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	CUresult code;
	CUmem_range_attribute about = (CUmem_range_attribute)((advice + 1) / 2);
	uint64_t word, bit;

	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return cuda_invalid("advice is %d; known are 1 to 6", (int)advice);
	if (advice <= CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
	    advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
		location = place_of(CU_DEVICE_CPU); /* which is ignored */
	if ((code = check_place(location, &word)) != CUDA_SUCCESS)
		return code;
	if (about != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return say(ptr, count, about, 0, advice % 2 == 1 ? word : 0);
	if (location.type > CU_MEM_LOCATION_TYPE_HOST)
		return cuda_invalid("location.type is %d: a device (1) or the host (2) accesses it",
				    (int)location.type);
	bit = UINT64_C(1) << (location.type == CU_MEM_LOCATION_TYPE_HOST ? 63 : location.id);
	return say(ptr, count, about, ~bit, advice % 2 == 1 ? bit : 0);
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t count, CUmem_advise advice, CUdevice device)
	CUDA_ANSWERS(cuMemAdvise_v2(ptr, count, advice, place_of(device)));

static void put_devices(int *out, size_t room, uint64_t word)
{
	for (size_t i = 0; i < room; i++) {
		int bit = word != 0 ? __builtin_ctzll(word) : 0;

		out[i] = word == 0 ? NO_DEVICE : bit == 63 ? CU_DEVICE_CPU : bit;
		word &= word - 1;
	}
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
				CUdeviceptr ptr, size_t count)
{
	CUresult code;
	/* Of 5 to 8 two each are the type and the id of 2 and 4. */
	CUmem_range_attribute about = attribute <= 4 ? attribute : attribute <= 6 ? 2 : 4;
	CUmemLocation where;
	uint64_t word;

	if (attribute < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
	    attribute > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID || size == 0 ||
	    size % sizeof(int) != 0 ||
	    (size != sizeof(int) && attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY))
		return cuda_invalid(
			"dataSize %zu, attribute %d: known are 1 to 8, of 4 bytes, and 3 of "
			"a multiple of them",
			size, (int)attribute);
	if ((code = ask(ptr, count, about, &word)) != CUDA_SUCCESS)
		return code;
	memcpy(&where, &word, sizeof(where));
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		put_devices(data, size / sizeof(int), word);
	else if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
		*(int *)data = word != 0;
	else if (attribute == about)
		*(int *)data = word == 0                                   ? NO_DEVICE
			       : where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id
									   : CU_DEVICE_CPU;
	else
		*(int *)data = attribute % 2 == 1 ? (int)where.type : where.id;
	return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes,
				 size_t number, CUdeviceptr ptr, size_t count)
{
	CUresult code = CUDA_SUCCESS;

	if (number == 0)
		return cuda_invalid("numAttributes is 0");
	for (size_t i = 0; i < number && code == CUDA_SUCCESS; i++)
		code = cuda_null("data", data[i])
			       ?: cuMemRangeGetAttribute(data[i], sizes[i], attributes[i], ptr,
							 count);
	return code;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t length, unsigned int flags)
{
	struct trace_name memory = cuda_memory_find(ptr);

	if (memory.letter != NPU_PLACE_MANAGED || memory.key != ptr ||
	    (length != 0 && length != memory.bytes) ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	     (flags != CU_MEM_ATTACH_SINGLE || stream == NULL)))
		return cuda_invalid("[0x%llx, +%zu), flags %u: memory of cuMemAllocManaged is "
				    "attached whole, globally (1), to the host (2) or to a stream "
				    "that is not the default one (4)",
				    ptr, length, flags);
	return CUDA_SUCCESS;
}
