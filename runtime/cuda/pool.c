/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered memory: pools, and what streams have given back to them. Owns who may have it
 * again; what the program has at the moment stands in memory.c's list.
 *
 * A block is a classic allocation of a round size, and goes from hand to hand whole. The stream
 * that gave it back has it again at once, others when that stream has got there: none is made to
 * wait.
 */
#include "cuda-internal.h"

#include "base/lock.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#define SMALL_BYTES (UINT64_C(4) << 10) /* sizes are multiples of it, above 1 MiB of 2 MiB */
#define ATTRIBUTES  (CU_MEMPOOL_ATTR_USED_MEM_HIGH + 1)
#define NUMBERS     CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES /* these, and below: int */
#define RESERVED    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT /* the highest stands behind */
#define USED        CU_MEMPOOL_ATTR_USED_MEM_CURRENT
#define KEY_BYTES   sizeof(uint64_t)

/* The stream has got to the end of its use, and the block has been taken out of its list: the later
 * of the two ends it. */
enum { BLOCK_FREED, BLOCK_IDLE, BLOCK_TAKEN };
struct block {
	LIST_ENTRY(block) link;
	uint64_t va, bytes;
	unsigned long long stream; /* the id of the one that gave it back */
	atomic_int state;
};
struct CUmemPoolHandle_st {
	LIST_ENTRY(CUmemPoolHandle_st) link;
	LIST_HEAD(, block) blocks; /* that nobody has */
	CUmemPoolProps props;      /* its `reserved` begins with the key of what is exported */
	uint32_t device;
	uint64_t attribute[ATTRIBUTES], peers; /* peers: bit d: device d has access */
	bool imported, destroyed;              /* destroyed: it ends with its last block */
};
static LIST_HEAD(, CUmemPoolHandle_st) pools = LIST_HEAD_INITIALIZER(pools);
static CUmemoryPool defaults[CORE_DEVICE_MAX], current[CORE_DEVICE_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* No door asks: another thread might end the pool before the lock is held. */
static CUresult find_locked(CUmemoryPool asked)
{
	CUmemoryPool pool;

	LIST_FOREACH(pool, &pools, link)
	if (pool == asked && !pool->destroyed)
		return CUDA_SUCCESS;
	return cuda_invalid("pool %p is no pool of this process", (void *)asked);
}

/* ---- blocks ---- */

static uint64_t block_bytes(uint64_t asked)
{
	uint64_t unit = asked > CUDA_HUGE_ABOVE_BYTES ? CUDA_GRANULE_BYTES : SMALL_BYTES;

	return (asked + unit - 1) / unit * unit;
}

static void count(CUmemoryPool pool, CUmemPool_attribute what, uint64_t more)
{
	uint64_t *now = &pool->attribute[what];

	*now += more;
	now[1] = now[1] < *now ? *now : now[1];
}

/* A `keep` of core_stream_send(). */
static void become_idle(void *arg, const struct stars_logic_cqe *cqe)
{
	struct block *block = arg;

	(void)cqe;
	if (atomic_exchange(&block->state, BLOCK_IDLE) == BLOCK_TAKEN)
		free(block);
}

static void take_out(struct block *block)
{
	LIST_REMOVE(block, link);
	if (atomic_exchange(&block->state, BLOCK_TAKEN) == BLOCK_IDLE)
		free(block);
}

/* Gives back what nobody uses, until no more than `keep` bytes are left. */
static void trim_locked(CUmemoryPool pool, uint64_t keep)
{
	struct block *block, *next;

	for (block = LIST_FIRST(&pool->blocks); block != NULL; block = next) {
		next = LIST_NEXT(block, link);
		if (pool->attribute[RESERVED] <= keep || block->state != BLOCK_IDLE)
			continue;
		npu_call(core_driver(), halMemFree, cuda_pointer(block->va));
		count(pool, RESERVED, -block->bytes);
		take_out(block);
	}
	if (pool->destroyed && pool->attribute[RESERVED] == 0) {
		LIST_REMOVE(pool, link);
		free(pool);
	}
}

CUresult cuda_pools_settle(CUresult code)
{
	CUmemoryPool pool, next;
	LOCKED(&lock);

	for (pool = LIST_FIRST(&pools); pool != NULL; pool = next) {
		next = LIST_NEXT(pool, link);
		trim_locked(pool, pool->attribute[CU_MEMPOOL_ATTR_RELEASE_THRESHOLD]);
	}
	return code;
}

/* One that the stream may have again, or a new one. */
static CUresult take_block(CUmemoryPool pool, uint64_t bytes, unsigned long long stream,
			   uint64_t *out_va)
{
	CUresult code;
	bool any = pool->attribute[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] != 0;
	uint64_t have = pool->attribute[RESERVED];
	struct block *block;
	void *made = NULL;

	LIST_FOREACH(block, &pool->blocks, link)
	if (block->bytes == bytes &&
	    (block->stream == stream || (any && block->state == BLOCK_IDLE))) {
		*out_va = block->va;
		take_out(block);
		return CUDA_SUCCESS;
	}
	if (pool->props.maxSize != 0 && have + bytes > pool->props.maxSize)
		return cuda_fail(CUDA_ERROR_OUT_OF_MEMORY,
				 "the pool has %" PRIu64 " bytes, and may have %zu", have,
				 pool->props.maxSize);
	code = CUDA_CALL(halMemAlloc, &made, bytes, cuda_device_flags(bytes) | pool->device);
	if (code != CUDA_SUCCESS)
		return code;
	count(pool, RESERVED, bytes);
	return CUDA_GIVE(out_va, (uintptr_t)made);
}

/* The record is taken first: nobody else gives the block back, and the pool stays while the lock is
 * not held. */
CUresult cuda_pool_free(uint64_t va, const CUstream *handle)
{
	union stars_sqe entry = { .header.type = STARS_SQE_PLACE_HOLDER };
	struct block *block = calloc(1, sizeof(*block));
	struct trace_name memory;
	struct core_stream *stream;
	CUmemoryPool pool;
	CUresult code;

	if (block == NULL || !cuda_memory_take(va, 1u << CUDA_POOLED, &memory)) {
		free(block);
		return cuda_invalid("0x%" PRIx64 " is not the start of memory of a pool", va);
	}
	pool = cuda_pointer(memory.number);
	cuda_ipc_forget(va);
	if (handle == NULL)
		code = cuda_of_core(core_device_synchronize(pool->device, NULL, -1));
	else
		code = cuStreamGetId(*handle, &block->stream) ?: cuda_stream(*handle, &stream)
			?: cuda_stream_order(*handle)
			?: cuda_of_core(core_stream_send(stream, &entry, 1, become_idle, block));
	if (code != CUDA_SUCCESS) {
		cuda_memory_add(va, memory.bytes, pool, CUDA_POOLED);
		free(block);
		return code;
	}
	if (handle == NULL)
		block->state = BLOCK_IDLE;
	block->va = va;
	block->bytes = block_bytes(memory.bytes);
	LOCKED(&lock);
	LIST_INSERT_HEAD(&pool->blocks, block, link);
	count(pool, USED, -block->bytes);
	return CUDA_SUCCESS;
}

/* *from is read under the lock: a current pool is never one that was destroyed. */
static CUresult allocate_block(CUdeviceptr *ptr, size_t size, const CUmemoryPool *from,
			       CUstream stream)
{
	unsigned long long id = 0;
	uint64_t bytes = block_bytes(size), va = 0;
	CUresult code = cuStreamGetId(stream, &id);
	LOCKED(&lock);
	CUmemoryPool pool = *from;

	if ((code = code ?: find_locked(pool)) != CUDA_SUCCESS)
		return code;
	if (bytes < size || bytes == 0 || pool->imported)
		return cuda_invalid("size is %zu, of %s pool", size,
				    pool->imported ? "an imported" : "a");
	code = take_block(pool, bytes, id, &va);
	if (code == CUDA_ERROR_OUT_OF_MEMORY) {
		uint32_t device = pool->device;

		pthread_mutex_unlock(&lock); /* what waits for the device may need it */
		core_device_synchronize(device, NULL, -1);
		pthread_mutex_lock(&lock);
		pool = *from;
		if ((code = find_locked(pool)) != CUDA_SUCCESS)
			return code;
		trim_locked(pool, 0);
		code = take_block(pool, bytes, id, &va);
	}
	if (code != CUDA_SUCCESS)
		return code;
	if (!cuda_memory_add(va, size, pool, CUDA_POOLED)) {
		npu_call(core_driver(), halMemFree, cuda_pointer(va));
		count(pool, RESERVED, -bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	count(pool, USED, bytes);
	return CUDA_GIVE(ptr, va);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
	CUDA_ANSWERS(allocate_block(ptr, size, &pool, stream));

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	CUmemoryPool made; /* by the first that asks */
	struct core_context *context;

	return cuda_current(&context) ?: cuDeviceGetMemPool(&made, context->user_device)
			?: allocate_block(ptr, size, &current[(uint32_t)context->device], stream);
}

/* ---- pools ---- */

static CUresult add_pool(const CUmemPoolProps *props, CUmemoryPool *out)
{
	CUmemoryPool pool;
	uint32_t device;
	CUresult code = CUDA_WANT(
		props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
			props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			props->handleTypes <= 1u,
		"allocType %d, location.type %d, handleTypes %d: a pool has pinned memory "
		"(1) of a device (1), and is shared by a file descriptor (1) or not (0)",
		(int)props->allocType, (int)props->location.type, (int)props->handleTypes)
		?: cuda_check_device(props->location.id, &device) ?: cuda_keep(device);

	if (code != CUDA_SUCCESS)
		return code;
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->props = *props;
	pool->device = device;
	pool->peers = UINT64_C(1) << device;
	for (int i = 1; i <= NUMBERS; i++)
		pool->attribute[i] = 1;
	LIST_INSERT_HEAD(&pools, pool, link);
	return CUDA_GIVE(out, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	static uint64_t made;
	uint64_t key;
	LOCKED(&lock);
	CUresult code = add_pool(props, pool);

	if (code != CUDA_SUCCESS)
		return code;
	key = ((uint64_t)getpid() << 32 | ++made) * UINT64_C(0x9e3779b97f4a7c15);
	memcpy((*pool)->props.reserved, &key, KEY_BYTES);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	LOCKED(&lock);
	CUresult code = find_locked(pool)
				?: CUDA_WANT(pool != defaults[pool->device],
					     "a device's default pool cannot be destroyed");

	if (code != CUDA_SUCCESS)
		return code;
	if (current[pool->device] == pool)
		current[pool->device] = defaults[pool->device];
	pool->destroyed = true;
	pool->attribute[CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = 0;
	trim_locked(pool, 0);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	LOCKED(&lock);

	return find_locked(pool) ?: (trim_locked(pool, keep), CUDA_SUCCESS);
}

static CUresult of_device(CUmemoryPool *out, CUdevice device, CUmemoryPool *which)
{
	CUresult code;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	uint32_t logic = cuda_logic(device);
	LOCKED(&lock);

	if (defaults[logic] == NULL) {
		if ((code = add_pool(&props, &defaults[logic])) != CUDA_SUCCESS)
			return code;
		current[logic] = defaults[logic];
	}
	return CUDA_GIVE(out, which[logic]);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
	CUDA_ANSWERS(of_device(pool, device, defaults));
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
	CUDA_ANSWERS(of_device(pool, device, current));

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUmemoryPool before;
	CUresult code = cuDeviceGetDefaultMemPool(&before, device);
	LOCKED(&lock);

	return code ?: cuda_unharmed() ?: find_locked(pool)
		?: CUDA_WANT(pool->props.location.id == device && !pool->imported,
			     "the pool is one of device %d%s", pool->props.location.id,
			     pool->imported ? ", imported" : "")
		?: CUDA_GIVE(&current[pool->device], pool);
}

/* ---- what they are ---- */

static CUresult attribute(CUmemoryPool pool, CUmemPool_attribute what, void *value, bool set)
{
	size_t bytes = what <= NUMBERS ? sizeof(int) : sizeof(uint64_t);
	bool is_size = what >= RESERVED, is_high = is_size && (what - RESERVED) % 2 == 1;
	uint64_t number = 0;
	LOCKED(&lock);
	CUresult code = find_locked(pool)
				?: CUDA_WANT(what >= 1 && what < ATTRIBUTES,
					     "attribute is %d; known are 1 to %d", (int)what,
					     ATTRIBUTES - 1);

	if (code != CUDA_SUCCESS)
		return code;
	memcpy(set ? (void *)&number : value, set ? value : (void *)&pool->attribute[what], bytes);
	if (set && is_size && (!is_high || number != 0))
		return cuda_invalid("attribute %d, %" PRIu64
				    ": of sizes only the highest so far are set, to 0",
				    (int)what, number);
	if (set)
		pool->attribute[what] = is_size ? pool->attribute[what - 1] : number;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute what, void *value)
	CUDA_ANSWERS(attribute(pool, what, value, false));
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute what, void *value)
	CUDA_ANSWERS(attribute(pool, what, value, true));

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t number)
{
	LOCKED(&lock);
	CUresult code = find_locked(pool);

	if (code != CUDA_SUCCESS)
		return code;
	for (size_t i = 0; i < number; i++) {
		bool all = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		uint32_t logic;

		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    !cuda_device(desc[i].location.id, &logic) ||
		    (!all && (desc[i].flags != 0 || logic == pool->device)))
			return cuda_invalid("map[%zu]: location (%d, %d), flags %d: another device "
					    "has all access (3) or none (0)",
					    i, (int)desc[i].location.type, desc[i].location.id,
					    (int)desc[i].flags);
		pool->peers &= ~(UINT64_C(1) << logic);
		pool->peers |= (uint64_t)all << logic;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	uint32_t logic;
	LOCKED(&lock);
	bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;

	return find_locked(pool)
		       ?: cuda_check_device(device ? location->id : -1, &logic)
		       ?: CUDA_GIVE(flags, pool->peers >> logic & 1
						   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						   : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/* ---- shared: a pool's file descriptor is a memfd that has its properties ---- */

CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	int fd;
	LOCKED(&lock);
	CUresult code = cuda_share_type(type) ?: find_locked(pool);

	if (code != CUDA_SUCCESS)
		return code;
	if (flags != 0 || pool->props.handleTypes != type || pool->imported)
		return cuda_invalid("flags %llu; the pool has handleTypes %d%s", flags,
				    (int)pool->props.handleTypes,
				    pool->imported ? ", of another process" : "");
	fd = memfd_create("npusim-pool", MFD_CLOEXEC);
	if (write(fd, &pool->props, sizeof(pool->props)) != sizeof(pool->props)) {
		close(fd);
		return cuda_fail(CUDA_ERROR_OPERATING_SYSTEM, "memfd_create: %m");
	}
	memcpy(shareable, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	int fd = (int)(intptr_t)shareable;
	CUmemPoolProps props;
	LOCKED(&lock);

	return cuda_share_type(type)
		?: CUDA_WANT(flags == 0 && pread(fd, &props, sizeof(props), 0) == sizeof(props),
			     "flags %llu; file descriptor %d is not of a pool", flags, fd)
		?: add_pool(&props, pool) ?: CUDA_GIVE(&(*pool)->imported, true);
}

/* Only the pool that memory is of makes a name of what was exported. */
static void turn_key(const struct CUmemPoolHandle_st *pool, CUmemPoolPtrExportData *data)
{
	for (size_t i = 0; i < KEY_BYTES; i++)
		data->reserved[i] ^= (char)pool->props.reserved[i];
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	LOCKED(&lock); /* with its memory there, the pool is */
	struct trace_name memory = cuda_memory_find(ptr);
	const struct CUmemPoolHandle_st *pool = cuda_pointer(memory.number);

	return CUDA_WANT(memory.letter == CUDA_POOLED && pool->props.handleTypes != 0,
			 "0x%llx is no memory of a pool that can be shared", ptr)
		       ?: cuda_ipc_name(&memory, data) ?: (turn_key(pool, data), CUDA_SUCCESS);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	CUmemPoolPtrExportData name = *data;
	LOCKED(&lock);

	return find_locked(pool)
		?: CUDA_WANT(pool->imported, "pool %p was not imported", (void *)pool)
		?: (turn_key(pool, &name), cuda_ipc_open(&name, CUDA_IMPORTED, ptr));
}
