/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: their number, names and attributes, and peer access. Owns the table of attributes;
 * memory sizes and core counts are the model's.
 */
#include "cuda-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cuda_device(CUdevice device, uint32_t *logic)
{
	return device >= 0 && core_user_to_logic(device, logic);
}

int cuda_ordinal(uint32_t logic)
{
	int32_t user;

	return core_logic_to_user(logic, &user) ? user : -1;
}

CUresult cuda_keep(uint32_t logic, const char *call)
{
	static _Atomic uint64_t kept;
	CUresult code;

	if (logic < CORE_DEVICE_MAX && kept >> logic & 1)
		return CUDA_SUCCESS;
	code = cuda_of_core(call, core_device_keep(logic, call));
	if (code == CUDA_SUCCESS)
		kept |= UINT64_C(1) << logic;
	return code;
}

CUresult cuda_check_device(const char *call, CUdevice device, uint32_t *logic)
{
	return cuda_device(device, logic)
		       ? CUDA_SUCCESS
		       : cuda_fail(CUDA_ERROR_INVALID_DEVICE, call,
				   "device is %d; there is no such device", device);
}

/* ---- which there are ---- */

CUresult cuDeviceGetCount(int *count)
{
	uint32_t users, all;

	return CUDA_IS_NULL(count)
		       ?: CUDA_GIVE(count, core_device_count(&users, &all) == 0 ? (int)users : 0);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	uint32_t logic;

	return CUDA_IS_NULL(device) ?: cuda_check_device(__func__, ordinal, &logic)
			?: CUDA_GIVE(device, ordinal);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	char soc[64] = "";
	uint32_t logic;
	CUresult code =
		name == NULL || length <= 0
			? cuda_invalid(__func__, "name is %p and length %d", (void *)name, length)
			: cuda_check_device(__func__, device, &logic);

	if (code != CUDA_SUCCESS)
		return code;
	npu_call(core_driver(), halGetSocVersion, logic, soc, (uint32_t)sizeof(soc));
	snprintf(name, (size_t)length, "%s",
		 strcmp(soc, "H100") == 0 ? "NVIDIA H100 80GB HBM3" : soc);
	return CUDA_SUCCESS;
}

/* The same for a device of the same number in every process, as programs compare them. */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	uint32_t logic;
	CUresult code = CUDA_IS_NULL(uuid) ?: cuda_check_device(__func__, device, &logic);

	if (code != CUDA_SUCCESS)
		return code;
	memcpy(uuid->bytes, "npusim-device-\0\0", sizeof(uuid->bytes));
	uuid->bytes[14] = (char)(logic >> 8);
	uuid->bytes[15] = (char)logic;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
	CUDA_ANSWERS(cuDeviceGetUuid(uuid, device));

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
	uint32_t logic;
	CUresult code;

	if (id == NULL || length < 13)
		return cuda_invalid(__func__, "id is %p and length %d; 13 characters are written",
				    (void *)id, length);
	code = cuda_check_device(__func__, device, &logic);
	if (code != CUDA_SUCCESS)
		return code;
	snprintf(id, (size_t)length, "0000:%02X:00.0", 0x10 + logic);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	unsigned bus = 0;
	const char *colon;
	int ordinal;
	CUresult code = CUDA_IS_NULL(device) ?: CUDA_IS_NULL(id);

	if (code != CUDA_SUCCESS)
		return code;
	colon = strchr(id, ':');
	if (colon != NULL && strchr(colon + 1, ':') != NULL)
		id = colon + 1;
	bus = (unsigned)strtoul(id, NULL, 16);
	ordinal = bus >= 0x10 ? cuda_ordinal(bus - 0x10) : -1;
	if (ordinal < 0)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, __func__, "no device has the bus id %s",
				 id);
	return CUDA_GIVE(device, ordinal);
}

/* ---- what they are ---- */

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	int64_t value = 0;
	uint32_t logic;

	return CUDA_IS_NULL(bytes) ?: cuda_check_device(__func__, device, &logic)
			?: CUDA_CALL(__func__, halGetDeviceInfo, logic, MODULE_TYPE_MEMORY, 0,
				     &value)
			?: CUDA_GIVE(bytes, (size_t)value);
}

/* By number; the names stand in CUDA's cuda.h. What is not here is 0, as it is for what this
 * library does not do (pools that are shared 119, values in streams 122, dma-buf 124, events
 * between processes 125, multicast 132). Sources: R, recorded on an H100 (traces/check/cases/cuda);
 * Q, what CUDA's sample deviceQuery prints of an H100 80GB HBM3; C, the table of compute
 * capability 9.0 in the CUDA C++ Programming Guide; M, what the model does. */
static const struct {
	int attribute, value;
} attributes[] = {
	{ 1, 1024 },        /* MAX_THREADS_PER_BLOCK: Q */
	{ 2, 1024 },        /* MAX_BLOCK_DIM_X: Q */
	{ 3, 1024 },        /* MAX_BLOCK_DIM_Y: Q */
	{ 4, 64 },          /* MAX_BLOCK_DIM_Z: Q */
	{ 5, 0x7fffffff },  /* MAX_GRID_DIM_X: Q */
	{ 6, 65535 },       /* MAX_GRID_DIM_Y: Q */
	{ 7, 65535 },       /* MAX_GRID_DIM_Z: Q */
	{ 8, 49152 },       /* MAX_SHARED_MEMORY_PER_BLOCK: Q */
	{ 9, 65536 },       /* TOTAL_CONSTANT_MEMORY: Q */
	{ 10, 32 },         /* WARP_SIZE: Q */
	{ 11, 0x7fffffff }, /* MAX_PITCH: Q */
	{ 12, 65536 },      /* MAX_REGISTERS_PER_BLOCK: Q */
	{ 14, 512 },        /* TEXTURE_ALIGNMENT: Q */
	{ 15, 1 },          /* GPU_OVERLAP: Q */
	{ 19, 1 },          /* CAN_MAP_HOST_MEMORY: Q */
	{ 21, 131072 },     /* MAXIMUM_TEXTURE1D_WIDTH: Q */
	{ 22, 131072 },     /* MAXIMUM_TEXTURE2D_WIDTH: Q */
	{ 23, 65536 },      /* MAXIMUM_TEXTURE2D_HEIGHT: Q */
	{ 24, 16384 },      /* MAXIMUM_TEXTURE3D_WIDTH: Q */
	{ 25, 16384 },      /* MAXIMUM_TEXTURE3D_HEIGHT: Q */
	{ 26, 16384 },      /* MAXIMUM_TEXTURE3D_DEPTH: Q */
	{ 27, 32768 },      /* MAXIMUM_TEXTURE2D_LAYERED_WIDTH: Q */
	{ 28, 32768 },      /* MAXIMUM_TEXTURE2D_LAYERED_HEIGHT: Q */
	{ 29, 2048 },       /* MAXIMUM_TEXTURE2D_LAYERED_LAYERS: Q */
	{ 30, 512 },        /* SURFACE_ALIGNMENT: Q */
	{ 31, 1 },          /* CONCURRENT_KERNELS: Q */
	{ 32, 1 },          /* ECC_ENABLED: Q */
	{ 36, 2619000 },    /* MEMORY_CLOCK_RATE: Q */
	{ 37, 5120 },       /* GLOBAL_MEMORY_BUS_WIDTH: Q */
	{ 39, 2048 },       /* MAX_THREADS_PER_MULTIPROCESSOR: C */
	{ 40, 3 },          /* ASYNC_ENGINE_COUNT: Q */
	{ 41, 1 },          /* UNIFIED_ADDRESSING: Q */
	{ 42, 32768 },      /* MAXIMUM_TEXTURE1D_LAYERED_WIDTH: Q */
	{ 43, 2048 },       /* MAXIMUM_TEXTURE1D_LAYERED_LAYERS: Q */
	{ 75, 9 },          /* COMPUTE_CAPABILITY_MAJOR: Q */
	{ 76, 0 },          /* COMPUTE_CAPABILITY_MINOR: Q */
	{ 78, 1 },          /* STREAM_PRIORITIES_SUPPORTED: M */
	{ 79, 1 },          /* GLOBAL_L1_CACHE_SUPPORTED: C */
	{ 80, 1 },          /* LOCAL_L1_CACHE_SUPPORTED: C */
	{ 81, 233472 },     /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: C */
	{ 82, 65536 },      /* MAX_REGISTERS_PER_MULTIPROCESSOR: C */
	{ 83, 1 },          /* MANAGED_MEMORY: M */
	{ 89, 1 },          /* CONCURRENT_MANAGED_ACCESS: M, Q */
	{ 90, 1 },          /* COMPUTE_PREEMPTION_SUPPORTED: Q */
	{ 91, 1 },          /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: M */
	{ 95, 1 },          /* COOPERATIVE_LAUNCH: Q */
	{ 97, 232448 },     /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: C */
	{ 99, 1 },          /* HOST_REGISTER_SUPPORTED: M */
	{ 102, 1 },         /* VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: R */
	{ 103, 1 },         /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: R */
	{ 106, 32 },        /* MAX_BLOCKS_PER_MULTIPROCESSOR: C */
	{ 107, 1 },         /* GENERIC_COMPRESSION_SUPPORTED: cuMemCreate takes the flag, M */
	{ 110, 1 },         /* GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: the flag is taken, M */
	{ 111, 1024 },      /* RESERVED_SHARED_MEMORY_PER_BLOCK: C */
	{ 115, 1 },         /* MEMORY_POOLS_SUPPORTED: M */
	{ 120, 1 },         /* CLUSTER_LAUNCH: C */
	{ 128, 1 }, /* HANDLE_TYPE_FABRIC_SUPPORTED: R: as the H100 says, IMEX channel or not */
	{ 141, 1 }, /* HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: M */
};
#define ATTRIBUTE_LAST 150

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	int64_t number = 0;
	uint32_t logic;
	CUresult code = value == NULL || attribute < 1 || attribute > ATTRIBUTE_LAST
				? cuda_invalid(__func__, "value is %p and attribute %d",
					       (void *)value, attribute)
				: cuda_check_device(__func__, device, &logic);

	if (code != CUDA_SUCCESS)
		return code;
	*value = 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
		npu_call(core_driver(), halGetDeviceInfo, logic, MODULE_TYPE_AICORE,
			 INFO_TYPE_CORE_NUM, &number);
		*value = (int)number;
	} else if (attribute == 13) { /* CLOCK_RATE, kHz */
		npu_call(core_driver(), halGetDeviceInfo, logic, MODULE_TYPE_AICORE,
			 INFO_TYPE_FREQUE, &number);
		*value = (int)number * 1000;
	} else if (attribute == 38) { /* L2_CACHE_SIZE */
		npu_call(core_driver(), halGetDeviceInfo, logic, MODULE_TYPE_L2BUFF, 0, &number);
		*value = (int)number;
	} else if (attribute == 134) { /* HOST_NUMA_ID */
		npu_call(core_driver(), halGetDeviceInfo, logic, MODULE_TYPE_SYSTEM,
			 INFO_TYPE_NEAR_NODE, &number);
		*value = (int)number;
	} else if (attribute == 33) { /* PCI_BUS_ID */
		*value = 0x10 + (int)logic;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
	CUDA_ANSWERS(CUDA_IS_NULL(major) ?: CUDA_IS_NULL(minor)
			?: cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
						device)
			?: cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
						device));

/* ---- peers ---- */

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	uint32_t from, to;

	return CUDA_IS_NULL(can)
		       ?: cuda_check_device(__func__, device, &from)
		       ?: cuda_check_device(__func__, peer, &to)
		       ?: CUDA_CALL(__func__, halDeviceCanAccessPeer, can, from, to);
}

enum { P2P_PERFORMANCE_RANK = 1, P2P_ACCESS, P2P_NATIVE_ATOMIC, P2P_ARRAY_ACCESS, P2P_LAST };

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice src,
				 CUdevice dst)
{
	if (value != NULL && (attribute < P2P_PERFORMANCE_RANK || attribute >= P2P_LAST))
		return cuda_invalid(__func__, "attribute is %d", attribute);
	if (value != NULL && src == dst)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, __func__,
				 "device is %d; there is no such device", dst);
	if (attribute == P2P_ACCESS || attribute == P2P_NATIVE_ATOMIC || value == NULL)
		return cuDeviceCanAccessPeer(value, src, dst);
	return CUDA_GIVE(value, 0);
}
