/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses on their way, in an array sorted by address: as many as queues have entries.
 */
#include "validate/access.h"

/* Pages that are not touched cost nothing; an array that grows from little is copied, and its old
 * places stay. */
#define ROOM_FIRST 65536u

struct accesses {
	GArray *sorted;   /* of struct access, by begin */
	uint64_t longest; /* bytes of one; never too small */
};

struct accesses *accesses_new(void)
{
	struct accesses *accesses = g_new0(struct accesses, 1);

	accesses->sorted = g_array_sized_new(FALSE, FALSE, sizeof(struct access), ROOM_FIRST);
	return accesses;
}

void accesses_free(struct accesses *accesses)
{
	g_array_unref(accesses->sorted);
	g_free(accesses);
}

unsigned accesses_count(const struct accesses *accesses)
{
	return accesses->sorted->len;
}

/* The first that begins at the address or behind it. */
static guint first_from(const struct accesses *accesses, uint64_t begin)
{
	guint low = 0, high = accesses->sorted->len;

	while (low < high) {
		guint middle = (low + high) / 2;

		if (g_array_index(accesses->sorted, struct access, middle).begin < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void accesses_add(struct accesses *accesses, const struct access *access)
{
	guint at = first_from(accesses, access->begin);

	for (guint i = at; i < accesses->sorted->len; i++) {
		struct access *old = &g_array_index(accesses->sorted, struct access, i);

		if (old->begin != access->begin)
			break;
		if (old->end == access->end && old->stream == access->stream &&
		    old->write <= access->write && !old->hashed && old->mark == 0 && !old->closed) {
			*old = *access;
			return;
		}
	}
	g_array_insert_val(accesses->sorted, at, *access);
	accesses->longest = MAX(accesses->longest, access->end - access->begin);
}

void accesses_settle(struct accesses *accesses, const struct order *order, access_fn fn, void *arg)
{
	const struct clock *host = order_host(order);
	guint kept = 0;

	for (guint i = 0; i < accesses->sorted->len; i++) {
		const struct access *access = &g_array_index(accesses->sorted, struct access, i);

		if (access->stream < host->count && host->at[access->stream] >= access->number) {
			if (access->hashed || access->mark != 0 || access->closed)
				fn(arg, access);
			continue;
		}
		if (kept != i)
			g_array_index(accesses->sorted, struct access, kept) = *access;
		kept++;
	}
	g_array_set_size(accesses->sorted, kept);
	if (kept == 0)
		accesses->longest = 0;
}

/* The next from *at on that has a byte in [begin, end); the first search starts at G_MAXUINT. */
static struct access *next_meeting(const struct accesses *accesses, guint *at, uint64_t begin,
				   uint64_t end)
{
	if (*at == G_MAXUINT)
		*at = first_from(accesses,
				 begin > accesses->longest ? begin - accesses->longest : 0);
	while (*at < accesses->sorted->len) {
		struct access *access = &g_array_index(accesses->sorted, struct access, (*at)++);

		if (access->begin >= end)
			return NULL;
		if (access->end > begin)
			return access;
	}
	return NULL;
}

bool accesses_meet(const struct accesses *accesses, uint64_t begin, uint64_t end, bool write)
{
	const struct access *access;
	guint at = G_MAXUINT;

	while ((access = next_meeting(accesses, &at, begin, end)) != NULL)
		if (!write || access->write)
			return true;
	return false;
}

void accesses_of(const struct accesses *accesses, unsigned stream, access_fn fn, void *arg)
{
	for (guint i = 0; i < accesses->sorted->len; i++) {
		const struct access *access = &g_array_index(accesses->sorted, struct access, i);

		if (access->stream == stream)
			fn(arg, access);
	}
}

void accesses_unwatch(struct accesses *accesses, uint64_t begin, uint64_t end, bool all)
{
	struct access *access;
	guint at = G_MAXUINT;

	while ((access = next_meeting(accesses, &at, begin, end)) != NULL) {
		access->hashed = 0;
		if (all)
			access->mark = access->closed = 0;
	}
}

void accesses_unordered(const struct accesses *accesses, const struct order *order,
			const struct clock *clock, uint64_t begin, uint64_t end, bool write,
			bool or_after, access_fn fn, void *arg)
{
	const struct access *access;
	guint at = G_MAXUINT;

	while ((access = next_meeting(accesses, &at, begin, end)) != NULL)
		if ((write || access->write) &&
		    (or_after || !order_is_tainted(order, access->taint)) &&
		    !order_is_before(order, access->stream, access->number, clock))
			fn(arg, access);
}
