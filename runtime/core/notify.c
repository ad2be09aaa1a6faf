/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifies as objects of the process: what each handle stands for. Their state is the driver's.
 */
#include "base/lock.h"
#include "core/object/process.h"
#include "core/object/pool.h"

#include <string.h>

struct notify {
	struct core_slot slot;
	pthread_mutex_t lock; /* of the key */
	struct core_notify face;
};

static void prepare_notify(void *object)
{
	pthread_mutex_init(&((struct notify *)object)->lock, NULL);
}

static struct core_pool notifies = CORE_POOL(
	4, "notify", "aclrtCreateNotify or aclrtNotifyImportByKey", struct notify, prepare_notify);

int core_notify_add(const struct core_notify *face, void **out_notify)
{
	struct notify *notify = core_pool_take(&notifies);

	if (notify == NULL)
		return core_no_memory("no memory for a notify");
	notify->face = *face;
	*out_notify = core_pool_publish(&notifies, notify);
	return CORE_OK;
}

static int find(void *handle, struct notify **out)
{
	*out = core_pool_find(&notifies, handle);
	if (*out == NULL)
		return core_pool_missing(&notifies, handle, ACL_ERROR_RT_INVALID_HANDLE);
	return core_context_peek() == NULL ? core_context_none() : CORE_OK;
}

int core_notify_find(void *handle, struct core_notify *out)
{
	struct notify *notify;
	int code = find(handle, &notify);

	if (code != CORE_OK)
		return code;
	LOCKED(&notify->lock);
	*out = notify->face;
	return CORE_OK;
}

int core_notify_remove(void *handle, struct core_notify *out)
{
	struct notify *notify;
	int code = find(handle, &notify);

	if (code != CORE_OK)
		return code;
	if (!core_pool_hide(notify, handle))
		return core_fail(ACL_ERROR_RT_INVALID_HANDLE,
				 "notify=%p is being destroyed by another thread", handle);
	*out = notify->face;
	core_pool_give(&notifies, notify);
	return CORE_OK;
}

int core_notify_set_key(void *handle, const char key[CORE_KEY_BYTES])
{
	struct notify *notify;
	int code = find(handle, &notify);

	if (code != CORE_OK)
		return code;
	LOCKED(&notify->lock);
	if (notify->face.key[0] != '\0')
		return core_fail(ACL_ERROR_RT_INTERNAL_ERROR, "notify=%p has a key already: %s",
				 handle, notify->face.key);
	memcpy(notify->face.key, key, CORE_KEY_BYTES);
	return CORE_OK;
}
