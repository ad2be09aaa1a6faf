/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids of streams, events, models and notifies, one set per device; whether events are recorded; and
 * which logic completion queue a stream has. An event stays recorded until it is reset, or its id
 * is freed and allocated again; a wait for a notify resets it to not recorded. Notifies are the
 * node's: the set here has those that this process uses.
 */
#include <glib.h>
#include <string.h>

#include "process/contract.h"
#include "process/ops.h"
#include "queue/queue.h"

#define SHR_ID_NAME_BYTES 65u

static const struct {
	const char *name;
	uint32_t capacity;
	drvError_t exhausted;
} kinds[] = {
	[DRV_STREAM_ID] = { "stream", QUEUE_STREAMS, DRV_ERROR_NO_STREAM_RESOURCES },
	[DRV_EVENT_ID] = { "event", QUEUE_EVENTS, DRV_ERROR_NO_EVENT_RESOURCES },
	[DRV_MODEL_ID] = { "model", QUEUE_MODELS, DRV_ERROR_NO_MODEL_RESOURCES },
	[DRV_NOTIFY_ID] = { "notify", QUEUE_NOTIFIES, DRV_ERROR_NO_NOTIFY_RESOURCES },
};

/* ---- sets of ids ---- */

static bool bit_get(const uint64_t *bits, uint32_t i)
{
	return bits != NULL && (bits[i / 64] >> (i % 64) & 1) != 0;
}

static void bit_set(uint64_t *bits, uint32_t i, bool value)
{
	if (value)
		bits[i / 64] |= UINT64_C(1) << (i % 64);
	else
		bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

bool queue_id_is_live(const struct queue_ids *ids, uint32_t id)
{
	return id < ids->capacity && bit_get(ids->bits, id);
}

/* It may be there already. */
static void hold_id(struct queue_ids *ids, uint32_t id)
{
	if (ids->bits == NULL)
		ids->bits = g_new0(uint64_t, (ids->capacity + 63) / 64);
	ids->live += !bit_get(ids->bits, id);
	bit_set(ids->bits, id, true);
}

bool queue_id_take(struct queue_ids *ids, uint32_t *out)
{
	uint32_t id = ids->next;

	if (ids->live == ids->capacity)
		return false;
	while (bit_get(ids->bits, id))
		id = (id + 1) % ids->capacity;
	hold_id(ids, id);
	ids->next = (id + 1) % ids->capacity;
	*out = id;
	return true;
}

void queue_id_give(struct queue_ids *ids, uint32_t id)
{
	bit_set(ids->bits, id, false);
	ids->live--;
}

/* ---- events and notifies ---- */

static void wake_locked(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	enum queue_sq_state state = type == DRV_EVENT_ID ? SQ_WAIT_EVENT : SQ_WAIT_NOTIFY;
	struct queue_sq *sq, *next;

	for (sq = TAILQ_FIRST(&bs->queues->blocked); sq != NULL; sq = next) {
		next = TAILQ_NEXT(sq, blocked_link);
		if (sq->state == state && sq->wait_device == device && sq->wait_id == id) {
			queue_kick_locked(bs, sq);
			if (type == DRV_NOTIFY_ID)
				return; /* one record, one waiter */
		}
	}
}

bool queue_is_recorded(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	return type == DRV_EVENT_ID ? bit_get(bs->queues->device[device].recorded, id)
				    : __atomic_load_n(node_notify_register(bs->node, device, id),
						      __ATOMIC_ACQUIRE) != 0;
}

static void mark(struct bsim *bs, unsigned device, int type, uint32_t id, bool value)
{
	uint64_t **bits = &bs->queues->device[device].recorded;

	if (type == DRV_NOTIFY_ID) {
		__atomic_store_n(node_notify_register(bs->node, device, id), value,
				 __ATOMIC_RELEASE);
		return;
	}
	if (*bits == NULL && !value)
		return;
	if (*bits == NULL)
		*bits = g_new0(uint64_t, QUEUE_EVENTS / 64);
	bit_set(*bits, id, value);
}

void queue_record_locked(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	mark(bs, device, type, id, true);
	wake_locked(bs, device, type, id);
}

void queue_reset_locked(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	mark(bs, device, type, id, false);
}

bool queue_notify_take(struct bsim *bs, unsigned device, uint32_t id)
{
	return __atomic_exchange_n(node_notify_register(bs->node, device, id), 0,
				   __ATOMIC_ACQ_REL) != 0;
}

/* One use less of a notify that this process uses. */
static void let_go(struct bsim *bs, unsigned device, uint32_t id)
{
	if (node_notify_close(bs->node, device, id))
		return;
	queue_id_give(&bs->queues->device[device].ids[DRV_NOTIFY_ID], id);
	wake_locked(bs, device, DRV_NOTIFY_ID, id); /* who waits for it ends with an error */
}

void queue_idents_clear_locked(struct bsim *bs, unsigned index)
{
	struct queue_device *device = &bs->queues->device[index];
	const struct queue_ids *notifies = &device->ids[DRV_NOTIFY_ID];

	for (uint32_t id = 0; notifies->live != 0 && id < QUEUE_NOTIFIES; id++)
		while (queue_id_is_live(notifies, id))
			let_go(bs, index, id);
	for (size_t type = 0; type < G_N_ELEMENTS(kinds); type++) {
		g_clear_pointer(&device->ids[type].bits, g_free);
		device->ids[type].live = device->ids[type].next = 0;
	}
	g_clear_pointer(&device->recorded, g_free);
	g_clear_pointer(&device->stream_cq, g_free);
}

/* ---- the calls ---- */

static struct queue_ids *ids_of(struct queue_device *device, int type)
{
	device->ids[type].capacity = kinds[type].capacity;
	return &device->ids[type];
}

static drvError_t kind_check(struct bsim *bs, const char *call, uint32_t dev,
			     const struct halResourceIdInputInfo *in, struct queue_device **out)
{
	if (in == NULL)
		return bsim_null(call, "in");
	if (in->type < 0 || in->type >= (int)G_N_ELEMENTS(kinds))
		return bsim_invalid(
			"%s: type is %d: it must be 0 (stream), 1 (event), 2 (model) or 3 (notify)",
			call, in->type);
	return queue_device_find_locked(bs, call, dev, in->tsId, out);
}

static drvError_t id_check(const char *call, uint32_t dev, const struct queue_device *device,
			   int type, uint32_t id)
{
	if (queue_id_is_live(&device->ids[type], id))
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_PARA_ERROR,
			 "%s: %s %u of device %u is not in use: take ids with halResourceIdAlloc",
			 call, kinds[type].name, id, dev);
}

BSIM_CALL(halResourceIdAlloc, SIM_CALL_QUERY, (uint32_t, dev),
	  (struct halResourceIdInputInfo *, in), (struct halResourceIdOutputInfo *, out))
{
	struct bsim *bs = c->bs;
	static const char call[] = "halResourceIdAlloc";
	struct queue_device *device = NULL;
	drvError_t result = kind_check(bs, call, dev, in, &device);
	struct queue_ids *ids;
	uint32_t id;

	if (result != DRV_ERROR_NONE)
		return result;
	if (out == NULL)
		return bsim_null(call, "out");
	ids = ids_of(device, in->type);
	if (in->type == DRV_NOTIFY_ID) {
		result = bsim_pass(call, node_notify_take(bs->node, dev, ids->next, &id));
		if (result != DRV_ERROR_NONE)
			return result;
		hold_id(ids, id);
		ids->next = (id + 1) % ids->capacity;
	} else if (!queue_id_take(ids, &id)) {
		return bsim_fail(kinds[in->type].exhausted,
				 "%s: all %u %s ids of device %u are in use: destroy some", call,
				 kinds[in->type].capacity, kinds[in->type].name, dev);
	}
	if (in->type == DRV_EVENT_ID)
		mark(bs, dev, in->type, id, false);
	*out = (struct halResourceIdOutputInfo){ .resourceId = id };
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halResourceIdFree, SIM_CALL_QUERY, (uint32_t, dev),
	   (struct halResourceIdInputInfo *, in))
{
	struct bsim *bs = c->bs;
	static const char call[] = "halResourceIdFree";
	struct queue_device *device = NULL;
	drvError_t result = kind_check(bs, call, dev, in, &device)
				    ?: id_check(call, dev, device, in->type, in->resourceId);

	if (result != DRV_ERROR_NONE)
		return result;
	if (in->type == DRV_NOTIFY_ID)
		let_go(bs, dev, in->resourceId);
	else
		queue_id_give(&device->ids[in->type], in->resourceId);
	if (in->type == DRV_STREAM_ID && device->stream_cq != NULL)
		device->stream_cq[in->resourceId] = QUEUE_NO_CQ;
	if (in->type == DRV_EVENT_ID)
		wake_locked(bs, dev, in->type, in->resourceId);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}

static drvError_t bind_locked(struct queue_device *device, uint32_t dev, uint32_t stream,
			      uint32_t cq)
{
	static const char call[] = "halResourceConfig";

	if (cq != QUEUE_NO_CQ && queue_cq_find(device, cq) == NULL)
		return bsim_fail(
			DRV_ERROR_PARA_ERROR,
			"%s: value[0] is %u: device %u has no logic completion queue of that id",
			call, cq, dev);
	if (device->stream_cq == NULL) {
		device->stream_cq = g_new(uint32_t, QUEUE_STREAMS);
		memset(device->stream_cq, 0xff, QUEUE_STREAMS * sizeof(uint32_t));
	}
	device->stream_cq[stream] = cq;
	if (cq != QUEUE_NO_CQ) {
		struct queue_cq *its = queue_cq_find(device, cq);

		its->streams_first = MIN(its->streams_first, stream);
		its->streams_end = MAX(its->streams_end, stream + 1);
	}
	return DRV_ERROR_NONE;
}

static drvError_t config_state_locked(struct bsim *bs, struct queue_device *device, uint32_t dev,
				      const struct halResourceIdInputInfo *in, int prop)
{
	static const char call[] = "halResourceConfig";
	drvError_t result;

	if (in->type != DRV_EVENT_ID && in->type != DRV_NOTIFY_ID)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: a %s cannot be recorded or reset: only events and notifies",
				 call, kinds[in->type].name);
	if (prop == DRV_ID_RESET && in->resourceId == UINT32_MAX) {
		for (uint32_t id = 0; id < device->ids[in->type].capacity; id++)
			if (queue_id_is_live(&device->ids[in->type], id))
				queue_reset_locked(bs, dev, in->type, id);
		return DRV_ERROR_NONE;
	}
	result = id_check(call, dev, device, in->type, in->resourceId);
	if (result != DRV_ERROR_NONE)
		return result;
	if (prop == DRV_ID_RESET) {
		queue_reset_locked(bs, dev, in->type, in->resourceId);
		return DRV_ERROR_NONE;
	}
	queue_record_locked(bs, dev, in->type, in->resourceId);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	queue_idle_wake_locked(bs);
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halResourceConfig, SIM_CALL_QUERY, (uint32_t, dev),
	   (struct halResourceIdInputInfo *, in), (struct halResourceConfigInfo *, para))
{
	struct bsim *bs = c->bs;
	static const char call[] = "halResourceConfig";
	struct queue_device *device = NULL;
	drvError_t result = kind_check(bs, call, dev, in, &device);

	if (result != DRV_ERROR_NONE)
		return result;
	if (para == NULL)
		return bsim_null(call, "para");
	if (para->prop == DRV_ID_RECORD || para->prop == DRV_ID_RESET)
		return config_state_locked(bs, device, dev, in, para->prop);
	if (para->prop < DRV_STREAM_BIND_LOGIC_CQ || para->prop > DRV_ID_RESET)
		return bsim_invalid("%s: prop is %d: it must be from 0 to %d", call, para->prop,
				    DRV_ID_RESET);
	if (in->type != DRV_STREAM_ID)
		return bsim_fail(DRV_ERROR_PARA_ERROR,
				 "%s: prop %d is for streams, and type is %d (%s)", call,
				 para->prop, in->type, kinds[in->type].name);
	result = id_check(call, dev, device, in->type, in->resourceId);
	if (result != DRV_ERROR_NONE || para->prop == DRV_STREAM_ENABLE_EVENT)
		return result;
	return bind_locked(device, dev, in->resourceId,
			   para->prop == DRV_STREAM_BIND_LOGIC_CQ ? para->value[0] : QUEUE_NO_CQ);
}

/* ---- notifies between processes ---- */

static drvError_t name_check(const char *call, const char *name)
{
	size_t length = name == NULL ? 0 : strnlen(name, SHR_ID_NAME_BYTES);

	return length > 0 && length < SHR_ID_NAME_BYTES
		       ? DRV_ERROR_NONE
		       : bsim_invalid("%s: name %p has %zu characters; it must be one that "
				      "halShrIdCreate wrote",
				      call, (const void *)name, length);
}

QUEUE_CALL(halShrIdCreate, SIM_CALL_EXPORT, (struct drvShrIdInfo *, info), (char *, name),
	   (uint32_t, name_len))
{
	static const char call[] = "halShrIdCreate";
	struct queue_device *device = NULL;
	char made[SHR_ID_NAME_BYTES];
	drvError_t result;

	if (info == NULL || name == NULL || info->id_type != SHR_ID_NOTIFY_TYPE ||
	    name_len < sizeof(made))
		return bsim_invalid("%s: info %p, name %p of %u bytes; notifies (type %d) have "
				    "names, of %zu bytes",
				    call, (void *)info, (void *)name, name_len, SHR_ID_NOTIFY_TYPE,
				    sizeof(made));
	result = queue_device_find_locked(c->bs, call, info->devid, info->tsid, &device)
			 ?: id_check(call, info->devid, device, DRV_NOTIFY_ID, info->shrid)
			 ?: bsim_pass(call, node_name_create(c->bs->node, NULL, info->shrid, 0,
							     info->devid, made));
	if (result == DRV_ERROR_NONE)
		memcpy(name, made, sizeof(made));
	return result;
}

QUEUE_CALL(halShrIdDestroy, SIM_CALL_EXPORT, (const char *, name))
{
	return name_check("halShrIdDestroy", name)
		       ?: bsim_pass("halShrIdDestroy", node_name_destroy(c->bs->node, name));
}

QUEUE_CALL(halShrIdSetPid, SIM_CALL_EXPORT, (const char *, name), (pid_t *, pid), (uint32_t, count))
{
	static const char call[] = "halShrIdSetPid";

	if (count > 1 && !contract_docs_apply(c->bs, CONTRACT_NOTIFY_PIDS, call))
		return bsim_invalid("%s: pid_num is %u; the driver takes one", call, count);
	return name_check(call, name)
		       ?: bsim_pass(call, node_share_allow(c->bs->node, 0, name,
							   c->bs->config.server, pid, count));
}

QUEUE_CALL(halShrIdSetAttribute, SIM_CALL_EXPORT, (const char *, name), (int, type),
	   (struct shrIdAttr, attr))
{
	static const char call[] = "halShrIdSetAttribute";

	if (type != SHR_ID_ATTR_NO_WLIST_IN_SERVER || attr.enableFlag != SHRID_NO_WLIST_ENABLE)
		return bsim_unsupported(
			"%s: type %d with %u; type 0 (no whitelist) with 1 is known", call, type,
			attr.enableFlag);
	return name_check(call, name) ?: bsim_pass(call, node_share_set_open(c->bs->node, 0, name));
}

QUEUE_CALL(halShrIdOpen, SIM_CALL_IMPORT, (const char *, name), (struct drvShrIdInfo *, info))
{
	static const char call[] = "halShrIdOpen";
	struct node_share_info found;
	drvError_t result = info == NULL ? bsim_null(call, "info") : name_check(call, name);

	result = result ?: bsim_pass(call, node_name_import(c->bs->node, name, &found, NULL));
	if (result != DRV_ERROR_NONE)
		return result;
	hold_id(ids_of(&c->bs->queues->device[found.device], DRV_NOTIFY_ID),
		(uint32_t)found.offset);
	*info = (struct drvShrIdInfo){ .devid = found.device, .shrid = (uint32_t)found.offset };
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halShrIdClose, SIM_CALL_RELEASE, (const char *, name))
{
	static const char call[] = "halShrIdClose";
	drvError_t result = name_check(call, name);
	unsigned device = 0;
	uint32_t id = 0;

	if (result != DRV_ERROR_NONE)
		return result;
	if (!node_name_of_notify(c->bs->node, name, &device, &id) || device >= c->bs->devices ||
	    !queue_id_is_live(&c->bs->queues->device[device].ids[DRV_NOTIFY_ID], id))
		return bsim_fail(DRV_ERROR_PARA_ERROR, "%s: this process has not opened \"%s\"",
				 call, name);
	let_go(c->bs, device, id);
	queue_run_locked(c->bs, sim_host_ps(c->bs->sim));
	return DRV_ERROR_NONE;
}

/* As a 910B has its registers, of 4 bytes: 512 of them every 64 KiB. */
QUEUE_CALL(drvNotifyIdAddrOffset, SIM_CALL_QUERY, (uint32_t, dev), (struct drvNotifyInfo *, info))
{
	static const char call[] = "drvNotifyIdAddrOffset";
	struct queue_device *device = NULL;
	drvError_t result =
		info == NULL ? bsim_null(call, "info")
			     : queue_device_find_locked(c->bs, call, dev, info->tsId, &device);

	result = result ?: id_check(call, dev, device, DRV_NOTIFY_ID, info->notifyId);
	if (result == DRV_ERROR_NONE)
		info->devAddrOffset = info->notifyId % 512 * 4 + info->notifyId / 512 * 65536;
	return result;
}
