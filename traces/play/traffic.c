/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeats recorded copies and fills. One buffer takes the place of all memory of the program's
 * own, since its contents do not matter.
 */
#include "traffic.h"

#include <sys/mman.h>

#include "format/units.h"

struct traffic {
	struct replay *replay;
	gboolean copies;
	void *buffer; /* of the host */
	guint64 buffer_bytes;
	guint64 peers; /* devices that may reach one another by now */
};

struct traffic *traffic_open(struct replay *replay, gboolean copies)
{
	struct traffic *t = g_new0(struct traffic, 1);

	t->replay = replay;
	t->copies = copies;
	return t;
}

void traffic_close(struct traffic *t)
{
	if (t->buffer)
		munmap(t->buffer, t->buffer_bytes);
	g_free(t);
}

/* The buffer for what has no address in the model: addresses alone, while nobody writes there.
 * NULL: there are not so many. */
static void *own_memory(struct traffic *t, guint64 size)
{
	guint64 bytes = (size / (2 * MIB) + 1) * 2 * MIB;

	if (size <= t->buffer_bytes)
		return t->buffer;
	void *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (buffer == MAP_FAILED)
		return NULL;
	if (t->buffer)
		munmap(t->buffer, t->buffer_bytes);
	t->buffer = buffer;
	t->buffer_bytes = bytes;
	return t->buffer;
}

static struct replay_device *counted_in(const struct traffic *t, gint32 device)
{
	struct replay_device *found = replay_find(t->replay, device);

	return found ? found : g_ptr_array_index(t->replay->devices, 0);
}

/* A program of several devices had seen to it. */
static void open_peers(struct traffic *t, gint32 a, gint32 b)
{
	const gint32 pair[] = { a, b };

	if ((t->peers >> a & 1) && (t->peers >> b & 1))
		return;
	for (int i = 0; i < 2; i++) {
		t->peers |= G_GUINT64_CONSTANT(1) << pair[i];
		aclrtSetDevice(pair[i]);
		for (guint d = 0; d < t->replay->devices->len; d++) {
			const struct replay_device *other =
				g_ptr_array_index(t->replay->devices, d);
			if ((gint32)other->device != pair[i])
				aclrtDeviceEnablePeerAccess((int32_t)other->device, 0);
		}
	}
}

gint32 traffic_move(struct traffic *t, const struct traffic_end *dst, const struct traffic_end *src,
		    guint64 size)
{
	struct replay_device *device =
		counted_in(t, dst->device >= 0 || src == NULL ? dst->device : src->device);

	if (!t->copies)
		return 0;
	void *to = dst->p ? dst->p : own_memory(t, size);
	const void *from = src && src->p ? src->p : src ? own_memory(t, size) : NULL;
	if (to == NULL || (src && from == NULL))
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	if (src == NULL)
		return model_fill(&device->window, to, size);
	if (dst->device >= 0 && src->device >= 0 && dst->device != src->device)
		open_peers(t, dst->device, src->device);
	return model_copy(&device->window, to, dst->device, from, src->device, size);
}
