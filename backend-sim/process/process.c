/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock, entry and exit of every driver call, and the checks common to all calls: whether this
 * process is a forked child, and whether a device is open. Owns the pointer to the one object of
 * the process.
 */
#include "process/process.h"

#include <stdlib.h>

struct bsim *bsim_process;

/* ---- the lock ---- */

static void start_holding(struct bsim_lock *lock)
{
	if (lock->held != NULL)
		lock->since_ns = clock_cpu_ns();
}

void bsim_lock_in_line(struct bsim *bs)
{
	struct bsim_lock *lock = &bs->lock;

	__atomic_add_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock->line);
	pthread_mutex_lock(&lock->mutex);
	__atomic_store_n(&lock->passed, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock->line);
	__atomic_sub_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
	start_holding(lock);
}

static void note_held(struct bsim_lock *lock)
{
	if (lock->held != NULL && lock->since_ns != 0)
		sim_histogram_add(lock->held, clock_cpu_ns() - lock->since_ns);
	lock->since_ns = 0;
}

void bsim_unlock(struct bsim *bs)
{
	note_held(&bs->lock);
	pthread_mutex_unlock(&bs->lock.mutex);
}

bool bsim_lock_offer(void *bsim)
{
	struct bsim_lock *lock = &((struct bsim *)bsim)->lock;

	note_held(lock);
	start_holding(lock);
	return __atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) != 0;
}

int bsim_wait_locked(struct bsim *bs, pthread_cond_t *cond, const struct timespec *until)
{
	struct bsim_lock *lock = &bs->lock;
	int rc;

	note_held(lock);
	rc = until == NULL ? pthread_cond_wait(cond, &lock->mutex)
			   : pthread_cond_timedwait(cond, &lock->mutex, until);
	start_holding(lock);
	return rc;
}

/* ---- calls ---- */

bool bsim_is_forked(const struct bsim *bs)
{
	const struct node *node = __atomic_load_n(&bs->node, __ATOMIC_ACQUIRE);

	return node != NULL && node_is_forked(node);
}

drvError_t bsim_forked(void)
{
	return bsim_fail(DRV_ERROR_PROCESS_EXIT,
			 "this process was forked from one that had opened a device, and a device "
			 "does not survive fork(): call exec(), or fork before the first device is "
			 "opened (the parent is unharmed)");
}

struct bsim_call bsim_begin_open(struct npu_driver *self, enum sim_call cost, const char *name)
{
	struct bsim_call call = bsim_begin(self, cost);

	if (call.result == DRV_ERROR_NONE)
		call.result = bsim_require_open_locked(call.bs, name);
	return call;
}

void bsim_pass_time_locked(struct bsim *bs, enum sim_call cost, uint64_t pages, unsigned page_lg2)
{
	if (bs->timing && bs->sim != NULL) {
		uint64_t ps = sim_call_ps(&bs->profile, cost, pages, page_lg2);

		bs->call_ps[cost] += ps;
		sim_spend(bs->sim, ps);
	}
}

static void spend(struct bsim *bs, enum sim_call cost, uint64_t pages, unsigned page_lg2)
{
	bs->call_count[cost]++;
	bsim_pass_time_locked(bs, cost, pages, page_lg2);
}

drvError_t bsim_check_server_locked(struct bsim *bs, const char *call, unsigned server)
{
	const uint64_t bit = UINT64_C(1) << server;

	if (!(node_lost_servers(bs->node) & bit))
		return DRV_ERROR_NONE;
	if (bs->timing)
		sim_spend(bs->sim, (bs->lost_noticed & bit ? 1000 : 30000) * SIM_PS_PER_MS);
	bs->lost_noticed |= bit;
	return bsim_fail(DRV_ERROR_INVALID_HANDLE,
			 "%s: server %u of supernode %s does not answer: it was stopped", call,
			 server, bs->config.name);
}

void bsim_spend_locked(struct bsim_call *call)
{
	spend(call->bs, call->cost, call->pages, call->page_lg2);
	call->spent = true;
}

drvError_t bsim_end(struct bsim_call *call)
{
	struct bsim *bs = call->bs;

	if (!call->locked)
		return call->result;
	if (call->result != DRV_ERROR_NONE)
		spend(bs, SIM_CALL_QUERY, 1, 21);
	else if (!call->spent)
		spend(bs, call->cost, call->pages, call->page_lg2);
	if (bs->catch_up != NULL)
		bs->catch_up(bs);
	bsim_unlock(bs);
	cancel_let(&call->cancel_before);
	return call->result;
}

drvError_t bsim_pass(const char *call, drvError_t result)
{
	if (result != DRV_ERROR_NONE)
		npu_message_prefix("%s: ", call);
	return result;
}

drvError_t bsim_null(const char *call, const char *argument)
{
	return bsim_invalid("%s: %s is NULL", call, argument);
}

uint64_t bsim_now_locked(struct bsim *bs)
{
	return bs->sim == NULL ? 0 : sim_host_ps(bs->sim);
}

struct bsim_made bsim_made_locked(struct bsim *bs)
{
	return (struct bsim_made){ bs->call_number, bsim_now_locked(bs), npu_stack_here() };
}

drvError_t bsim_require_open_locked(struct bsim *bs, const char *call)
{
	if (bs->any_open)
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_INVALID_HANDLE,
			 "%s: no device has been opened in this process: call aclrtSetDevice first",
			 call);
}

drvError_t bsim_open_failed(char *error)
{
	npu_message_set("the simulated server cannot be opened: %s",
			error != NULL ? error : "no memory");
	npu_log(NPU_LOG_ERROR, "%s", npu_message());
	free(error);
	return DRV_ERROR_OPEN_FAILED;
}

bool bsim_require_device_locked(struct bsim *bs, const char *call, unsigned device)
{
	if (device < bs->devices && bs->device[device].open)
		return true;
	npu_message_set("%s: device %u %s", call, device,
			device >= bs->devices ? "does not exist on this server"
					      : "has not been opened in this process");
	return false;
}

drvError_t bsim_no_device(const struct bsim *bs, const char *call, const char *argument,
			  uint32_t device)
{
	return bsim_fail(DRV_ERROR_INVALID_DEVICE, "%s: %s is %u; this server has devices 0 to %u",
			 call, argument, device, bs->devices - 1);
}

const char *bsim_memory_text(unsigned memory)
{
	return memory == SIM_NODE_HOST ? "the host" : npu_text("device %u", memory);
}
