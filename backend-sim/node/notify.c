/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifies: registers of a device, each recorded or not, that processes share. An id is of the
 * processes that use it: the one that took it, and those that opened a name of it. It is free when
 * none of these lives, so the end of a process needs no bookkeeping.
 */
#include "records.h"

static struct notify_record *at(struct node *node, unsigned device, uint32_t id)
{
	uint64_t server = device < SIM_NODE_MAX ? node->shape.server : SIM_PEER_SERVER(device);

	return &node->notifies[(server * node->shape.devices + device % SIM_NODE_MAX) *
				       NODE_NOTIFIES +
			       id];
}

uint32_t *node_notify_register(struct node *node, unsigned device, uint32_t id)
{
	return &at(node, device, id)->recorded;
}

static uint64_t user_of(unsigned slot, uint32_t generation)
{
	return (uint64_t)generation << 32 | (slot + 1);
}

static bool is_live(const struct node *node, uint64_t user)
{
	return user != 0 && member_is_live(node, (uint32_t)user - 1, (uint32_t)(user >> 32));
}

/* This process's entry, or one that it can have. NULL: all are others'. */
static struct notify_user *find_user(const struct node *node, struct notify_record *notify)
{
	struct notify_user *unused = NULL;

	for (unsigned i = 0; i < NODE_NOTIFY_USERS; i++) {
		struct notify_user *user = &notify->users[i];

		if (user->who == user_of(node->slot, node->generation))
			return user;
		if (unused == NULL && !is_live(node, user->who))
			unused = user;
	}
	return unused;
}

static bool is_used(const struct node *node, const struct notify_record *notify)
{
	for (unsigned i = 0; i < NODE_NOTIFY_USERS; i++)
		if (is_live(node, notify->users[i].who))
			return true;
	return false;
}

static void use(const struct node *node, struct notify_user *user)
{
	uint64_t me = user_of(node->slot, node->generation);

	PUT(user->count, user->who == me ? user->count + 1 : 1);
	PUT(user->who, me); /* here it begins */
}

drvError_t node_notify_take(struct node *node, unsigned device, uint32_t first, uint32_t *out_id)
{
	uint32_t tries = 0, id = first;
	ENTERED(node, error, DRV_ERROR_NONE);

	if (error != DRV_ERROR_NONE)
		return error;
	for (; tries < NODE_NOTIFIES && is_used(node, at(node, device, id)); tries++)
		id = (id + 1) % NODE_NOTIFIES;
	if (tries == NODE_NOTIFIES)
		return node_fail(DRV_ERROR_NO_NOTIFY_RESOURCES,
				 "all %u notify ids of device %u are in use, by all processes of "
				 "node %s; destroy some",
				 NODE_NOTIFIES, device, node->name);
	PUT(at(node, device, id)->recorded, 0);
	use(node, &at(node, device, id)->users[0]);
	*out_id = id;
	return DRV_ERROR_NONE;
}

drvError_t notify_open_locked(struct node *node, unsigned device, uint32_t id)
{
	struct notify_user *user = find_user(node, at(node, device, id));

	if (user == NULL)
		return node_fail(DRV_ERROR_IOCRL_FAIL,
				 "notify %u of device %u is used by %u processes, which is the "
				 "limit",
				 id, device, NODE_NOTIFY_USERS);
	use(node, user);
	return DRV_ERROR_NONE;
}

/* This process's entry, if it uses the id. */
static struct notify_user *find_own(struct node *node, unsigned device, uint32_t id)
{
	struct notify_user *user = find_user(node, at(node, device, id));

	return user != NULL && user->who == user_of(node->slot, node->generation) ? user : NULL;
}

bool node_notify_is_used(struct node *node, unsigned device, uint32_t id)
{
	return find_own(node, device, id) != NULL;
}

bool node_notify_close(struct node *node, unsigned device, uint32_t id)
{
	struct notify_user *user;
	bool used;
	ENTERED(node, error, DRV_ERROR_NONE);

	if (error != DRV_ERROR_NONE)
		return false;
	user = find_own(node, device, id);
	used = user != NULL && user->count > 1;
	if (used)
		PUT(user->count, user->count - 1);
	else if (user != NULL)
		PUT(user->who, 0);
	return used;
}
