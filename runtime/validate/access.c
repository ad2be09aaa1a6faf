/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses on their way, in an array sorted by address: as many as queues have entries.
 */
#include "validate/access.h"

/* Pages that are not touched cost nothing; an array that grows from little is copied, and its old
 * places stay. */
#define ROOM_FIRST 65536u

struct accesses *accesses_new(const struct order *order)
{
	struct accesses *accesses = g_new0(struct accesses, 1);

	accesses->sorted = g_array_sized_new(FALSE, FALSE, sizeof(struct access), ROOM_FIRST);
	accesses->order = order;
	return accesses;
}

void accesses_free(struct accesses *accesses)
{
	g_array_unref(accesses->sorted);
	g_free(accesses);
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

void accesses_settle(struct accesses *accesses, void (*fn)(void *arg, const struct access *access),
		     void *arg)
{
	const struct clock *host = &accesses->order->host;
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

struct access *accesses_next(const struct accesses *accesses, struct access_search *search)
{
	const struct order *order = accesses->order;

	if (search->next == 0)
		search->next = first_from(accesses, search->begin > accesses->longest
							    ? search->begin - accesses->longest
							    : 0);
	while (search->next < accesses->sorted->len) {
		struct access *access =
			&g_array_index(accesses->sorted, struct access, search->next++);

		if (access->begin >= search->end)
			return NULL;
		if (access->end > search->begin && (access->write || !search->writes) &&
		    (search->after == NULL ||
		     !order_is_before(order, access->stream, access->number, search->after)) &&
		    !(search->surely && order_is_tainted(order, access->taint)))
			return access;
	}
	return NULL;
}

bool accesses_meet(const struct accesses *accesses, uint64_t begin, uint64_t end, bool write)
{
	struct access_search search = { .begin = begin, .end = end, .writes = write };

	return accesses_next(accesses, &search) != NULL;
}

void accesses_unwatch(struct accesses *accesses, uint64_t begin, uint64_t end, bool all)
{
	struct access_search search = { .begin = begin, .end = end };
	struct access *access;

	while ((access = accesses_next(accesses, &search)) != NULL) {
		access->hashed = 0;
		if (all)
			access->mark = access->closed = 0;
	}
}
