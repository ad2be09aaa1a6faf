/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps what a process has once, for all rooms above: the settings, from the environment variables
 * (profile, devices, HBM) and the shape of a node that is already running; the lock, entry and exit
 * of every driver call, and the checks common to all calls: whether this process is a forked child,
 * and whether a device is open. Owns the pointer to the one object of the process.
 */
#include "process/process.h"

#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct bsim *bsim_process;

/* ---- the lock ---- */

/* Two threads that take turns have the lock sooner than they sleep and wake. Where more wait, to
 * try would only take processor time from them, and who sleeps in line is not to be passed. */
#define TRY_NS  UINT64_C(10000)
#define TRY_MAX 400u /* for a clock that stands still */
#define TRY_FEW 2u

static bool try_for(pthread_mutex_t *mutex, uint64_t until_ns)
{
	for (unsigned i = 0; i < TRY_MAX && clock_now_ns() < until_ns; i++)
		if (pthread_mutex_trylock(mutex) == 0)
			return true;
	return false;
}

/* On one processor the holder cannot run while another thread tries. */
static bool is_alone(void)
{
	static unsigned known;
	unsigned processors = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (processors == 0) {
		processors = g_get_num_processors();
		__atomic_store_n(&known, processors, __ATOMIC_RELAXED);
	}
	return processors == 1;
}

void bsim_lock_in_line(struct bsim *bs)
{
	struct bsim_lock *lock = &bs->lock;
	bool tries = __atomic_add_fetch(&lock->waiting, 1, __ATOMIC_RELAXED) <= TRY_FEW &&
		     __atomic_load_n(&lock->asleep, __ATOMIC_RELAXED) == 0 && !is_alone();
	uint64_t until_ns = tries ? clock_now_ns() + TRY_NS : 0;

	if (!try_for(&lock->line, until_ns)) {
		__atomic_add_fetch(&lock->asleep, 1, __ATOMIC_RELAXED);
		pthread_mutex_lock(&lock->line);
		__atomic_sub_fetch(&lock->asleep, 1, __ATOMIC_RELAXED);
	}
	if (!try_for(&lock->mutex, until_ns))
		pthread_mutex_lock(&lock->mutex);
	__atomic_store_n(&lock->passed, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock->line);
	__atomic_sub_fetch(&lock->waiting, 1, __ATOMIC_RELAXED);
}

static void publish_locked(struct bsim *bs)
{
	__atomic_store_n(&bs->now_ps, bsim_now_locked(bs), __ATOMIC_RELAXED);
}

void bsim_unlock(struct bsim *bs)
{
	publish_locked(bs);
	pthread_mutex_unlock(&bs->lock.mutex);
}

bool bsim_lock_offer(void *bsim)
{
	return __atomic_load_n(&((struct bsim *)bsim)->lock.waiting, __ATOMIC_RELAXED) != 0;
}

int bsim_wait_locked(struct bsim *bs, pthread_cond_t *cond, const struct timespec *until)
{
	publish_locked(bs);
	return until == NULL ? pthread_cond_wait(cond, &bs->lock.mutex)
			     : pthread_cond_timedwait(cond, &bs->lock.mutex, until);
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

void bsim_pass_time_locked(struct bsim *bs, enum sim_call cost, uint64_t pages, unsigned page_lg2)
{
	if (bs->timing && bs->sim != NULL) {
		uint64_t ps = sim_call_ps(&bs->profile, cost, pages, page_lg2);

		bs->call_ps[cost] += ps;
		sim_spend(bs->sim, ps);
	}
}

drvError_t bsim_check_server_locked(struct bsim *bs, const char *call, unsigned server)
{
	const uint64_t bit = server < SIM_SERVERS ? UINT64_C(1) << server : 0;

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
	call->bs->call_count[call->cost]++;
	bsim_pass_time_locked(call->bs, call->cost, call->pages, call->page_lg2);
	call->spent = true;
}

#define SCAN_PS (60000 * SIM_PS_PER_MS)

/* Of a server of a supernode: the driver's thread that looks for servers that were stopped. */
static void scan_locked(struct bsim *bs)
{
	uint64_t due = bsim_now_locked(bs) / SCAN_PS;

	if (due != bs->scans && bs->node != NULL && node_lost_servers(bs->node) != 0)
		node_scan(bs->node);
	bs->scans = due;
}

drvError_t bsim_end(struct bsim_call *call)
{
	struct bsim *bs = call->bs;

	if (!call->locked)
		return call->result;
	if (call->result != DRV_ERROR_NONE) {
		call->cost = SIM_CALL_QUERY;
		call->pages = 1;
		call->page_lg2 = 21;
	}
	if (call->result != DRV_ERROR_NONE || !call->spent)
		bsim_spend_locked(call);
	if (bs->config.servers > 1)
		scan_locked(bs);
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

const char *bsim_made_text(const struct bsim_made *made, bool hint)
{
	g_autofree char *by = npu_stack_words(made->stack);

	return by != NULL ? npu_text("%s", by)
			  : npu_text("driver call %" PRIu64 "%s", made->number,
				     hint ? " (NPUSIM_STACKS=short says where)" : "");
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

#define CUDA_SOC      "H100"           /* of NPU_DIALECT_CUDA, where NPUSIM_SOC is not set */
#define SUPERNODE_SOC "Ascend910_9391" /* the same of NPUSIM_SUPERNODE */
#define HOST_MIN      (UINT64_C(128) << 20)
#define HOST_MAX      (UINT64_C(1) << SIM_HOST_LG2)

/* NPUSIM_SOC may be a file, such as `npusim check --calibrate` writes; the node knows the
 * SoC's name. */
static bool load_profile(struct bsim *bs, const char *soc, char **error)
{
	g_autofree char *why = NULL;

	if (sim_profile_load(soc, &bs->profile, &why)) {
		strcpy(bs->config.soc_name, bs->profile.soc_name);
		return true;
	}
	npu_text_add(error, "NPUSIM_SOC=%s", why);
	return false;
}

static uint64_t usable_frames(const struct sim_profile *p, uint64_t hbm_bytes)
{
	return hbm_bytes == p->hbm_bytes
		       ? p->usable_frames
		       : (uint64_t)((unsigned __int128)p->usable_frames * hbm_bytes / p->hbm_bytes);
}

/* What the variable says, if it is given: *bytes. False, and *error. */
static bool read_bytes(struct bsim *bs, enum npu_var var, const char *what, uint64_t least,
		       uint64_t most, uint64_t *bytes, char **error)
{
	bool given;
	const char *text = npu_var_get(var, &given);

	if (!given)
		return true;
	bs->config.explicit_shape = true;
	if (npu_parse_size(text, bytes) && *bytes % NODE_FRAME_BYTES == 0 && *bytes >= least &&
	    *bytes <= most)
		return true;
	npu_text_add(error,
		     "%s=%s: %s is a multiple of 2 MiB from %s to %s, with a unit as in 64G; a "
		     "number alone is bytes",
		     npu_var_info(var)->name, text, what, npu_size_text(least),
		     npu_size_text(most));
	return false;
}

/* What NPUSIM_SERVER_FROM leads to; where the launcher has not set it, NPUSIM_SERVER. */
static bool read_server(struct bsim *bs, char **error)
{
	g_auto(GStrv) names = g_strsplit(npu_var_get(NPU_VAR_SERVER_FROM, NULL), "/", 2);
	const char *rank = names[0] != NULL ? getenv(names[0]) : NULL;
	const char *size = rank != NULL && names[1] != NULL ? getenv(names[1]) : NULL;
	unsigned long servers = bs->config.servers, number;

	number = strtoul(rank != NULL ? rank : npu_var_get(NPU_VAR_SERVER, NULL), NULL, 10);
	if (size != NULL && number < strtoul(size, NULL, 10))
		number = number * servers / strtoul(size, NULL, 10);
	bs->config.server = (unsigned)MIN(number, SIM_SERVERS);
	if (number < servers)
		return true;
	npu_text_add(error, "%s=%s: NPUSIM_SERVERS=%lu, so servers are numbered 0 to %lu",
		     rank != NULL ? names[0] : "NPUSIM_SERVER",
		     rank != NULL ? rank : npu_var_get(NPU_VAR_SERVER, NULL), servers, servers - 1);
	return false;
}

/* Which server of which supernode. */
static bool read_supernode(struct bsim *bs, char **error)
{
	bool named, numbered, sized;
	const char *name = npu_var_get(NPU_VAR_SUPERNODE, &named);
	const char *server = npu_var_get(NPU_VAR_SERVER, &numbered);
	const char *servers = npu_var_get(NPU_VAR_SERVERS, &sized);

	bs->no_supernode = named && strcmp(name, "none") == 0;
	bs->config.server = 0;
	bs->config.servers = 1;
	if (!named || bs->no_supernode) {
		if (numbered || sized)
			npu_text_add(error,
				     "NPUSIM_%s=%s: NPUSIM_SUPERNODE must name the supernode",
				     numbered ? "SERVER" : "SERVERS", numbered ? server : servers);
		return !numbered && !sized;
	}
	bs->config.name = name;
	bs->config.servers = (unsigned)strtoul(servers, NULL, 10);
	bs->config.explicit_shape |= sized;
	if (!bs->profile.is_910c)
		npu_text_add(
			error,
			"NPUSIM_SUPERNODE=%s: %s is in no supernode; a 910C (NPUSIM_SOC=%s) is",
			name, bs->config.soc_name, SUPERNODE_SOC);
	return *error == NULL && read_server(bs, error);
}

static bool read_shape(struct bsim *bs, char **error)
{
	bool soc_given, devices_given, named;
	const char *soc = npu_var_get(NPU_VAR_SOC, &soc_given);
	const char *devices = npu_var_get(NPU_VAR_DEVICES, &devices_given);

	(void)npu_var_get(NPU_VAR_SUPERNODE, &named);
	if (!soc_given && bs->cuda != NULL)
		soc = CUDA_SOC;
	else if (!soc_given && named)
		soc = SUPERNODE_SOC;
	bs->config.name = npu_var_get(NPU_VAR_NODE, NULL);
	if (!load_profile(bs, soc, error))
		return false;
	bs->config.devices =
		devices_given ? (unsigned)strtoul(devices, NULL, 10) : bs->profile.default_devices;
	bs->config.hbm_bytes = bs->profile.hbm_bytes;
	bs->config.host_bytes = bs->profile.host_bytes;
	bs->config.explicit_shape = soc_given || devices_given;
	bs->devices = bs->config.devices;
	if (!read_supernode(bs, error) ||
	    !read_bytes(bs, NPU_VAR_HBM, "HBM of a device", 64 * NODE_FRAME_BYTES,
			sim_profile_hbm_max(&bs->profile), &bs->config.hbm_bytes, error) ||
	    !read_bytes(bs, NPU_VAR_HOST_MEMORY, "the host's memory", HOST_MIN, HOST_MAX,
			&bs->config.host_bytes, error))
		return false;
	bs->config.usable_frames = usable_frames(&bs->profile, bs->config.hbm_bytes);
	return true;
}

drvError_t settings_set_dialect_locked(struct bsim *bs, const struct dialect *cuda)
{
	g_autofree char *error = NULL;
	bool other = bs->cuda != cuda;

	bs->cuda = cuda;
	if (!other || bs->node != NULL || read_shape(bs, &error))
		return DRV_ERROR_NONE;
	npu_message_set("npusimSetDialect: %s", error != NULL ? error : "no memory");
	return DRV_ERROR_OPEN_FAILED;
}

bool settings_read(struct bsim *bs, char **error)
{
	if (!npu_var_check_all(error))
		return false;
	bs->contract = strcmp(npu_var_get(NPU_VAR_CONTRACT, NULL), "driver") == 0 ? BSIM_DRIVER
										  : BSIM_DOCS;
	bs->timing = strcmp(npu_var_get(NPU_VAR_TIMING, NULL), "off") != 0;
	bs->writes = bs->contents = strcmp(npu_var_get(NPU_VAR_CONTENTS, NULL), "off") != 0;
	bs->poison = (uint8_t)strtoul(npu_var_get(NPU_VAR_POISON, NULL), NULL, 0);
	return read_shape(bs, error);
}

/* Takes over the shape of a node that runs: the profile, too, where the SoC is another. */
static bool settings_adopt(struct bsim *bs, const struct node_config *shape, char **error)
{
	bool other_soc = strcmp(shape->soc_name, bs->profile.soc_name) != 0;
	const char *name = bs->config.name;
	const unsigned server = bs->config.server;

	bs->config = *shape;
	bs->config.name = name;
	bs->config.server = server;
	bs->devices = shape->devices;
	return !other_soc || sim_profile_load(bs->config.soc_name, &bs->profile, error);
}

drvError_t settings_join_locked(struct bsim *bs)
{
	struct node_config config = bs->config;
	struct node *node = NULL;
	char *error = NULL;

	if (bs->node != NULL)
		return DRV_ERROR_NONE;
	if (!node_join(&config, &node, &error))
		return bsim_open_failed(error);
	if (!settings_adopt(bs, &config, &error)) {
		node_leave(node);
		return bsim_open_failed(error);
	}
	__atomic_store_n(&bs->node, node, __ATOMIC_RELEASE);
	return DRV_ERROR_NONE;
}

void settings_learn_shape_locked(struct bsim *bs)
{
	struct node_config shape;
	g_autofree char *error = NULL;

	if (bs->shape_known || bs->config.explicit_shape || bs->node != NULL)
		return;
	bs->shape_known = true;
	if (node_find_shape(bs->config.name, &shape) &&
	    (shape.servers > 1) == (bs->config.servers > 1) && !settings_adopt(bs, &shape, &error))
		npu_log(NPU_LOG_DEBUG, "%s", error);
}
