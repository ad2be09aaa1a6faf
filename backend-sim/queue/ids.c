/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages ids of streams, events, models and notifies, one set per device, for the HAL; whether
 * events are recorded; and which logic completion queue a stream has. An event stays recorded until
 * it is reset, or its id is freed and allocated again; a wait for a notify resets it to not
 * recorded. Notifies are the node's: the set here has those that this process uses.
 */
#include <string.h>

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

/* ---- objects by id ---- */

void *queue_table_find(const struct queue_table *table, uint32_t id)
{
	return id < table->slots ? table->at[id] : NULL;
}

static void put(struct queue_table *table, uint32_t capacity, void *object, uint32_t id)
{
	uint32_t before = table->slots;

	if (id >= before) {
		table->slots = MAX(16, (id + 1) * 2);
		table->at = g_renew(void *, table->at, table->slots);
		memset(table->at + before, 0, (table->slots - before) * sizeof(void *));
	}
	table->at[id] = object;
	table->live++;
	table->next = (id + 1) % capacity;
}

bool queue_table_add(struct queue_table *table, uint32_t capacity, void *object, uint32_t *out_id)
{
	uint32_t id = table->next;

	if (table->live == capacity)
		return false;
	while (queue_table_find(table, id) != NULL)
		id = (id + 1) % capacity;
	put(table, capacity, object, id);
	*out_id = id;
	return true;
}

void *queue_table_remove(struct queue_table *table, uint32_t id)
{
	table->live--;
	return g_steal_pointer(&table->at[id]);
}

/* ---- events and notifies ---- */

/* Not 0: it is recorded. Other processes write those of notifies. */
static uint32_t *record_of(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	struct queue_id *event;

	if (type == DRV_NOTIFY_ID)
		return node_notify_register(bs->node, device, id);
	event = queue_table_find(&bs->queues->device[device].ids[type], id);
	return &event->recorded;
}

bool queue_is_recorded(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	return __atomic_load_n(record_of(bs, device, type, id), __ATOMIC_ACQUIRE) != 0;
}

void queue_record_locked(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	__atomic_store_n(record_of(bs, device, type, id), 1, __ATOMIC_RELEASE);
	queue_wake_locked(bs, type == DRV_EVENT_ID ? SQ_WAIT_EVENT : SQ_WAIT_NOTIFY, device, id);
}

bool queue_record_take(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	return __atomic_exchange_n(record_of(bs, device, type, id), 0, __ATOMIC_ACQ_REL) != 0;
}

bool queue_id_is_used(struct bsim *bs, unsigned device, int type, uint32_t id)
{
	if (device >= SIM_NODE_MAX)
		return SIM_PEER_SERVER(device) < bs->config.servers &&
		       device % SIM_NODE_MAX < bs->devices && type == DRV_NOTIFY_ID &&
		       node_notify_is_used(bs->node, device, id);
	return device < bs->devices &&
	       queue_table_find(&bs->queues->device[device].ids[type], id) != NULL;
}

/* One use less of a notify that this process uses. */
static void let_go(struct bsim *bs, unsigned device, uint32_t id)
{
	if (node_notify_close(bs->node, device, id) || device >= SIM_NODE_MAX)
		return;
	g_free(queue_table_remove(&bs->queues->device[device].ids[DRV_NOTIFY_ID], id));
	queue_wake_locked(bs, SQ_WAIT_NOTIFY, device, id); /* who waits for it ends with an error */
}

void queue_idents_clear_locked(struct bsim *bs, unsigned index)
{
	for (size_t type = G_N_ELEMENTS(kinds); type-- > 0;) {
		struct queue_table *ids = &bs->queues->device[index].ids[type];

		for (uint32_t id = 0; id < ids->slots; id++)
			if (type != DRV_NOTIFY_ID)
				g_free(ids->at[id]);
			else
				while (ids->at[id] != NULL)
					let_go(bs, index, id);
		g_free(ids->at);
		*ids = (struct queue_table){ 0 };
	}
}

/* ---- the calls ---- */

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
	if (queue_table_find(&device->ids[type], id) != NULL)
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_PARA_ERROR,
			 "%s: %s %u of device %u is not in use: take ids with halResourceIdAlloc",
			 call, kinds[type].name, id, dev);
}

BSIM_CALL(halResourceIdAlloc, SIM_CALL_QUERY, (uint32_t, dev),
	  (struct halResourceIdInputInfo *, in), (struct halResourceIdOutputInfo *, out))
{
	struct queue_device *device = NULL;
	drvError_t result =
		kind_check(c->bs, c->name, dev, in, &device) ?: BSIM_GIVEN(c->name, out);
	struct queue_table *ids;
	struct queue_id *made;
	uint32_t id, capacity;

	if (result != DRV_ERROR_NONE)
		return result;
	ids = &device->ids[in->type];
	capacity = kinds[in->type].capacity;
	made = g_new0(struct queue_id, 1);
	if (in->type == DRV_NOTIFY_ID) {
		result = bsim_pass(c->name, node_notify_take(c->bs->node, dev, ids->next, &id));
		if (result == DRV_ERROR_NONE)
			put(ids, capacity, made, id);
	} else if (!queue_table_add(ids, capacity, made, &id)) {
		result = bsim_fail(kinds[in->type].exhausted,
				   "%s: all %u %s ids of device %u are in use: destroy some",
				   c->name, capacity, kinds[in->type].name, dev);
	}
	if (result == DRV_ERROR_NONE)
		*out = (struct halResourceIdOutputInfo){ .resourceId = id };
	else
		g_free(made);
	return result;
}

QUEUE_CALL(halResourceIdFree, SIM_CALL_QUERY, (uint32_t, dev),
	   (struct halResourceIdInputInfo *, in))
{
	struct bsim *bs = c->bs;
	struct queue_device *device = NULL;
	drvError_t result = kind_check(bs, c->name, dev, in, &device)
				    ?: id_check(c->name, dev, device, in->type, in->resourceId);

	if (result != DRV_ERROR_NONE)
		return result;
	if (in->type == DRV_NOTIFY_ID)
		let_go(bs, dev, in->resourceId);
	else
		g_free(queue_table_remove(&device->ids[in->type], in->resourceId));
	if (in->type == DRV_EVENT_ID)
		queue_wake_locked(bs, SQ_WAIT_EVENT, dev, in->resourceId);
	queue_run_locked(bs, sim_host_ps(bs->sim));
	return DRV_ERROR_NONE;
}

drvError_t queue_id_record_locked(struct bsim_call *c, uint32_t dev, int type, uint32_t id)
{
	drvError_t result = id_check(c->name, dev, &c->bs->queues->device[dev], type, id);

	if (result != DRV_ERROR_NONE)
		return result;
	queue_record_locked(c->bs, dev, type, id);
	queue_run_locked(c->bs, sim_host_ps(c->bs->sim));
	queue_idle_wake_locked(c->bs);
	return DRV_ERROR_NONE;
}

static drvError_t reset_locked(struct bsim_call *c, uint32_t dev, int type, uint32_t id)
{
	struct queue_device *device = &c->bs->queues->device[dev];
	drvError_t result =
		id == UINT32_MAX ? DRV_ERROR_NONE : id_check(c->name, dev, device, type, id);

	for (uint32_t i = 0; result == DRV_ERROR_NONE && i < device->ids[type].slots; i++)
		if ((id == UINT32_MAX || id == i) && device->ids[type].at[i] != NULL)
			queue_record_take(c->bs, dev, type, i);
	return result;
}

QUEUE_CALL(halResourceConfig, SIM_CALL_QUERY, (uint32_t, dev),
	   (struct halResourceIdInputInfo *, in), (struct halResourceConfigInfo *, para))
{
	struct queue_device *device = NULL;
	struct queue_cq *cq = NULL;
	struct queue_id *stream;
	bool of_state;
	drvError_t result =
		kind_check(c->bs, c->name, dev, in, &device) ?: BSIM_GIVEN(c->name, para);

	if (result != DRV_ERROR_NONE)
		return result;
	if (para->prop < DRV_STREAM_BIND_LOGIC_CQ || para->prop > DRV_ID_RESET)
		return bsim_invalid("%s: prop is %d: it must be from 0 to %d", c->name, para->prop,
				    DRV_ID_RESET);
	of_state = para->prop == DRV_ID_RECORD || para->prop == DRV_ID_RESET;
	if (of_state ? in->type != DRV_EVENT_ID && in->type != DRV_NOTIFY_ID
		     : in->type != DRV_STREAM_ID)
		return bsim_fail(DRV_ERROR_PARA_ERROR, "%s: prop %d is for %s, and type is %d (%s)",
				 c->name, para->prop, of_state ? "events and notifies" : "streams",
				 in->type, kinds[in->type].name);
	if (para->prop == DRV_ID_RECORD)
		return queue_id_record_locked(c, dev, in->type, in->resourceId);
	if (para->prop == DRV_ID_RESET)
		return reset_locked(c, dev, in->type, in->resourceId);
	result = id_check(c->name, dev, device, in->type, in->resourceId);
	if (result != DRV_ERROR_NONE || para->prop == DRV_STREAM_ENABLE_EVENT)
		return result;
	if (para->prop == DRV_STREAM_BIND_LOGIC_CQ) {
		cq = queue_table_find(&device->queues[DRV_LOGIC_TYPE], para->value[0]);
		if (cq == NULL)
			return bsim_fail(DRV_ERROR_PARA_ERROR,
					 "%s: value[0] is %u: device %u has no logic completion "
					 "queue of that id",
					 c->name, para->value[0], dev);
	}
	stream = queue_table_find(&device->ids[DRV_STREAM_ID], in->resourceId);
	stream->cq = para->value[0];
	stream->cq_number = cq == NULL ? 0 : cq->number;
	return DRV_ERROR_NONE;
}

/* ---- notifies between processes ---- */

static drvError_t name_check(struct bsim *bs, const char *call, const char *name)
{
	size_t length = name == NULL ? 0 : strnlen(name, SHR_ID_NAME_BYTES);

	if (bs->queues == NULL) /* no device was ever open */
		return bsim_require_open_locked(bs, call);
	return length > 0 && length < SHR_ID_NAME_BYTES
		       ? DRV_ERROR_NONE
		       : bsim_invalid("%s: name %p has %zu characters; it must be one that "
				      "halShrIdCreate wrote",
				      call, (const void *)name, length);
}

QUEUE_CALL(halShrIdCreate, SIM_CALL_EXPORT, (struct drvShrIdInfo *, info), (char *, name),
	   (uint32_t, name_len))
{
	struct queue_device *device = NULL;
	char made[SHR_ID_NAME_BYTES];
	drvError_t result;

	if (info == NULL || name == NULL || info->id_type != SHR_ID_NOTIFY_TYPE ||
	    name_len < sizeof(made))
		return bsim_invalid("%s: info %p, name %p of %u bytes; notifies (type %d) have "
				    "names, of %zu bytes",
				    c->name, (void *)info, (void *)name, name_len,
				    SHR_ID_NOTIFY_TYPE, sizeof(made));
	result = queue_device_find_locked(c->bs, c->name, info->devid, info->tsid, &device)
			 ?: id_check(c->name, info->devid, device, DRV_NOTIFY_ID, info->shrid)
			 ?: bsim_pass(c->name, node_name_create(c->bs->node, NULL, info->shrid, 0,
							     info->devid, made));
	if (result == DRV_ERROR_NONE)
		memcpy(name, made, sizeof(made));
	return result;
}

QUEUE_CALL(halShrIdDestroy, SIM_CALL_EXPORT, (const char *, name))
{
	return name_check(c->bs, c->name, name)
		       ?: bsim_pass(c->name, node_name_destroy(c->bs->node, name));
}

QUEUE_CALL(halShrIdSetPid, SIM_CALL_EXPORT, (const char *, name), (pid_t *, pid), (uint32_t, count))
{
	if (count > 1 && !contract_docs_apply(c->bs, CONTRACT_NOTIFY_PIDS, c->name))
		return bsim_invalid("%s: pid_num is %u; the driver takes one", c->name, count);
	return name_check(c->bs, c->name, name)
		       ?: bsim_pass(c->name, node_share_allow(c->bs->node, 0, name,
							      c->bs->config.server, pid, count));
}

/* The driver's library answers IOCRL_FAIL whatever the cause. */
QUEUE_CALL(halShrIdSetPodPid, SIM_CALL_EXPORT, (const char *, name), (uint32_t, sdid), (pid_t, pid))
{
	unsigned server = bsim_sdid_server(sdid);
	drvError_t result = name_check(c->bs, c->name, name);

	if (result != DRV_ERROR_NONE)
		return result;
	if (bsim_server_id(c->bs) == BSIM_SERVER_NONE)
		result = bsim_unsupported("%s: this server is in no supernode", c->name);
	result = result ?: bsim_check_server_locked(c->bs, c->name, server)
			 ?: bsim_pass(c->name, node_share_allow(c->bs->node, 0, name, server, &pid,
								1));
	return result == DRV_ERROR_NONE ? result : DRV_ERROR_IOCRL_FAIL;
}

QUEUE_CALL(halShrIdSetAttribute, SIM_CALL_EXPORT, (const char *, name), (int, type),
	   (struct shrIdAttr, attr))
{
	if (type != SHR_ID_ATTR_NO_WLIST_IN_SERVER || attr.enableFlag != SHRID_NO_WLIST_ENABLE)
		return bsim_unsupported(
			"%s: type %d with %u; type 0 (no whitelist) with 1 is known", c->name, type,
			attr.enableFlag);
	return name_check(c->bs, c->name, name)
		       ?: bsim_pass(c->name, node_share_set_open(c->bs->node, 0, name));
}

QUEUE_CALL(halShrIdOpen, SIM_CALL_IMPORT, (const char *, name), (struct drvShrIdInfo *, info))
{
	struct node_share_info found;
	struct queue_table *notifies;
	drvError_t result =
		BSIM_GIVEN(c->name, info) ?: name_check(c->bs, c->name, name)
			?: bsim_pass(c->name, node_name_import(c->bs->node, name, &found, NULL));

	if (result != DRV_ERROR_NONE)
		return result;
	*info = (struct drvShrIdInfo){ .devid = found.device, .shrid = (uint32_t)found.offset };
	if (found.device >= SIM_NODE_MAX) {
		info->flag = SHR_ID_SHADOW;
		info->devid = node_sdid(SIM_PEER_SERVER(found.device), found.device % SIM_NODE_MAX);
		return DRV_ERROR_NONE;
	}
	notifies = &c->bs->queues->device[found.device].ids[DRV_NOTIFY_ID];
	if (queue_table_find(notifies, (uint32_t)found.offset) == NULL)
		put(notifies, QUEUE_NOTIFIES, g_new0(struct queue_id, 1), (uint32_t)found.offset);
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halShrIdClose, SIM_CALL_RELEASE, (const char *, name))
{
	drvError_t result = name_check(c->bs, c->name, name);
	unsigned device = 0;
	uint32_t id = 0;

	if (result != DRV_ERROR_NONE)
		return result;
	if (!node_name_of_notify(c->bs->node, name, &device, &id) ||
	    !queue_id_is_used(c->bs, device, DRV_NOTIFY_ID, id))
		return bsim_fail(DRV_ERROR_PARA_ERROR, "%s: this process has not opened \"%s\"",
				 c->name, name);
	let_go(c->bs, device, id);
	queue_run_locked(c->bs, sim_host_ps(c->bs->sim));
	return DRV_ERROR_NONE;
}

QUEUE_CALL(halShrIdInfoGet, SIM_CALL_QUERY, (const char *, name), (struct shrIdGetInfo *, info))
{
	struct node_share_info found;
	drvError_t result =
		BSIM_GIVEN(c->name, info) ?: name_check(c->bs, c->name, name)
			?: bsim_pass(c->name, node_share_info(c->bs->node, 0, name, &found));

	if (result == DRV_ERROR_NONE)
		*info = (struct shrIdGetInfo){ .phyDevid = found.device };
	return result;
}

/* As a 910B has its registers, of 4 bytes: 512 of them every 64 KiB. */
QUEUE_CALL(drvNotifyIdAddrOffset, SIM_CALL_QUERY, (uint32_t, dev), (struct drvNotifyInfo *, info))
{
	struct queue_device *device = NULL;
	drvError_t result =
		BSIM_GIVEN(c->name, info)
			?: queue_device_find_locked(c->bs, c->name, dev, info->tsId, &device)
			?: id_check(c->name, dev, device, DRV_NOTIFY_ID, info->notifyId);

	if (result == DRV_ERROR_NONE)
		info->devAddrOffset = STARS_NOTIFY_OFFSET(info->notifyId);
	return result;
}
