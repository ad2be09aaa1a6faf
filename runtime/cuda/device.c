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

	return core_logic_to_user(logic, &user) == 0 ? user : -1;
}

CUresult cuda_keep(uint32_t logic) CUDA_ANSWERS(cuda_of_core(core_device_keep(logic)));

uint32_t cuda_logic(CUdevice device)
{
	uint32_t logic = 0;

	cuda_device(device, &logic);
	return logic;
}

CUresult cuda_check_device(CUdevice device, uint32_t *logic)
{
	return cuda_device(device, logic)
		       ? CUDA_SUCCESS
		       : cuda_fail(CUDA_ERROR_INVALID_DEVICE,
				   "device is %d; there is no such device", device);
}

CUresult cuDeviceGetCount(int *count)
{
	uint32_t users, all;

	return CUDA_GIVE(count, core_device_count(&users, &all) == 0 ? (int)users : 0);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
	CUDA_ANSWERS_WITH(uint32_t logic,
			  cuda_check_device(ordinal, &logic) ?: CUDA_GIVE(device, ordinal));

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	char soc[64] = "";

	if (length <= 0)
		return cuda_invalid("length is %d", length);
	npu_call(core_driver(), halGetSocVersion, cuda_logic(device), soc, (uint32_t)sizeof(soc));
	snprintf(name, (size_t)length, "%s",
		 strcmp(soc, "H100") == 0 ? "NVIDIA H100 80GB HBM3" : soc);
	return CUDA_SUCCESS;
}

/* The same for a device of the same number in every process, as programs compare them. */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	uint32_t logic = cuda_logic(device);

	memcpy(uuid->bytes, "npusim-device-\0\0", sizeof(uuid->bytes));
	uuid->bytes[14] = (char)(logic >> 8);
	uuid->bytes[15] = (char)logic;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
	CUDA_ANSWERS(cuDeviceGetUuid(uuid, device));

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
	if (length < 13)
		return cuda_invalid("length is %d; 13 characters are written", length);
	snprintf(id, (size_t)length, "0000:%02X:00.0", 0x10 + cuda_logic(device));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	const char *first = strchr(id, ':'), *last = strrchr(id, ':');
	uint32_t bus = (uint32_t)strtoul(first != last ? first + 1 : id, NULL, 16);
	int ordinal = cuda_ordinal(bus - 0x10);

	if (ordinal < 0)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, "no device has the bus id %s", id);
	return CUDA_GIVE(device, ordinal);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	int64_t value = 0;

	return CUDA_CALL(halGetDeviceInfo, cuda_logic(device), MODULE_TYPE_MEMORY, 0, &value)
		       ?: CUDA_GIVE(bytes, (size_t)value);
}

/* By number; the names stand in CUDA's cuda.h. What is not here is 0, as it is for what this
 * library does not do (flushes of remote writes 98, dma-buf 124, multicast 132). Sources: R,
 * recorded on an H100 (traces/check/cases/cuda); Q, what CUDA's sample deviceQuery prints of an
 * H100 80GB HBM3; C, the table of compute capability 9.0 in the CUDA C++ Programming Guide; P,
 * cudaDeviceProp as programs print it of devices of 7.5, 8.6 and 8.9, which agree; M, what the
 * model does. */
#define ATTRIBUTE_LAST 150
static const int attributes[ATTRIBUTE_LAST + 1] = {
#define A(attribute, value) [attribute] = value,
	/* Q: threads of a block, and in x, y and z; blocks of a grid in x, y and z */
	A(1, 1024) A(2, 1024) A(3, 1024) A(4, 64) A(5, 0x7fffffff) A(6, 65535) A(7, 65535)
	/* Q: of a block shared memory and registers; constant memory, warp, pitch */
	A(8, 49152) A(12, 65536) A(9, 65536) A(10, 32) A(11, 0x7fffffff)
	/* Q: alignment of textures and surfaces; textures of 1 to 3 dimensions, and in layers */
	A(14, 512) A(30, 512) A(21, 131072) A(22, 131072) A(23, 65536) A(24, 16384) A(25, 16384)
		A(26, 16384) A(27, 32768) A(28, 32768) A(29, 2048) A(42, 32768) A(43, 2048)
	/* P: of textures the pitch's alignment, gathers, the other 3 dimensions, cubes, cubes in
	 * layers, linear memory, mipmaps; surfaces in their order: of 1 to 3 dimensions, in layers,
	 * cubes, cubes in layers */
	A(51, 32) A(45, 32768) A(46, 32768) A(47, 8192) A(48, 8192) A(49, 32768) A(52, 32768)
		A(53, 32768) A(54, 2046) A(69, 1 << 28) A(70, 131072) A(71, 65000) A(72, 2097120)
			A(73, 32768) A(74, 32768) A(77, 32768) A(55, 32768) A(56, 131072)
				A(57, 65536) A(58, 16384) A(59, 16384) A(60, 16384) A(61, 32768)
					A(62, 2048) A(63, 32768) A(64, 32768) A(65, 2048)
						A(66, 32768) A(67, 32768) A(68, 2046)
	/* Q: overlap, mapped host memory, concurrent kernels, ECC, copy engines, unified addresses,
	 * preemption, cooperative launches */
	A(15, 1) A(19, 1) A(31, 1) A(32, 1) A(40, 3) A(41, 1) A(90, 1) A(95, 1)
	/* Q: clock in kHz and width of memory, compute capability */
	A(36, 2619000) A(37, 5120) A(75, 9) A(76, 0)
	/* C: single for each double-precision operation; of a multiprocessor threads, shared
	 * memory, registers and blocks; L1, of global and local memory; shared memory of a block at
	 * most, and what is reserved of it; clusters */
	A(87, 2) A(39, 2048) A(81, 233472) A(82, 65536) A(106, 32) A(79, 1) A(80, 1) A(97, 232448)
		A(111, 1024) A(120, 1)
	/* M: priorities of streams; managed memory, also at once (Q); registered memory, by its own
	 * address */
	A(78, 1) A(83, 1) A(89, 1) A(99, 1) A(91, 1)
	/* M: values in streams, of 64 bits, and NOR; of their first version, and now */
	A(92, 1) A(93, 1) A(94, 1) A(122, 1) A(123, 1)
	/* R: virtual memory management, by file descriptors and fabric (IMEX channel or not) */
	A(102, 1) A(103, 1) A(128, 1)
	/* M: cuMemCreate takes the flags of compression and RDMA, and nodes of the host */
	A(107, 1) A(110, 1) A(141, 1)
	/* M: pools, shared as file descriptors; events between processes */
	A(115, 1) A(119, 1) A(125, 1)
};

/* What the driver has for others. */
static const struct {
	int attribute, module, type, factor;
} of_driver[] = {
	{ 13, MODULE_TYPE_AICORE, INFO_TYPE_FREQUE, 1000 }, /* CLOCK_RATE, kHz */
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, MODULE_TYPE_AICORE, INFO_TYPE_CORE_NUM, 1 },
	{ 38, MODULE_TYPE_L2BUFF, 0, 1 },                    /* L2_CACHE_SIZE */
	{ 134, MODULE_TYPE_SYSTEM, INFO_TYPE_NEAR_NODE, 1 }, /* HOST_NUMA_ID */
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	int64_t number = 0;
	uint32_t logic = cuda_logic(device);

	if (attribute < 1 || attribute > ATTRIBUTE_LAST)
		return cuda_invalid("attribute is %d; known are 1 to %d", attribute,
				    ATTRIBUTE_LAST);
	*value = attribute == 33 ? 0x10 + (int)logic : attributes[attribute]; /* PCI_BUS_ID */
	for (size_t i = 0; i < sizeof(of_driver) / sizeof(of_driver[0]); i++)
		if (of_driver[i].attribute == attribute) {
			npu_call(core_driver(), halGetDeviceInfo, logic, of_driver[i].module,
				 of_driver[i].type, &number);
			*value = (int)number * of_driver[i].factor;
		}
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) CUDA_ANSWERS(
	cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
		?: cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
					device));

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
	CUDA_ANSWERS(CUDA_CALL(halDeviceCanAccessPeer, can, cuda_logic(device), cuda_logic(peer)));

enum { P2P_PERFORMANCE_RANK = 1, P2P_ACCESS, P2P_NATIVE_ATOMIC, P2P_ARRAY_ACCESS, P2P_LAST };

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice src,
				 CUdevice dst)
{
	if (attribute < P2P_PERFORMANCE_RANK || attribute >= P2P_LAST)
		return cuda_invalid("attribute is %d", attribute);
	if (src == dst)
		return cuda_fail(CUDA_ERROR_INVALID_DEVICE, "device is %d; there is no such device",
				 dst);
	if (attribute == P2P_ACCESS || attribute == P2P_NATIVE_ATOMIC)
		return cuDeviceCanAccessPeer(value, src, dst);
	return CUDA_GIVE(value, 0);
}
