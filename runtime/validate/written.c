/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes somebody has written: leaves of bits, made where a leaf is neither empty nor full.
 */
#include "validate/written.h"

#include <glib.h>
#include <string.h>

#define GRANULE       UINT64_C(8)
#define WORDS         128u /* of a leaf */
#define LEAF_GRANULES (WORDS * UINT64_C(64))

struct written {
	uint64_t bytes;
	bool given_up;
	uint64_t *leaves[]; /* NULL: empty */
};

static uint64_t full[WORDS]; /* never changed once it is set */

static uint64_t leaf_count(uint64_t bytes)
{
	return (bytes + LEAF_GRANULES * GRANULE - 1) / (LEAF_GRANULES * GRANULE);
}

struct written *written_new(uint64_t bytes)
{
	struct written *written =
		g_rc_box_alloc0(sizeof(*written) + leaf_count(bytes) * sizeof(*written->leaves));

	if (full[0] == 0)
		memset(full, 0xff, sizeof(full));
	written->bytes = bytes;
	return written;
}

struct written *written_ref(struct written *written)
{
	return written != NULL ? g_rc_box_acquire(written) : NULL;
}

static void set_leaf(struct written *written, uint64_t at, uint64_t *leaf)
{
	if (written->leaves[at] != full)
		g_free(written->leaves[at]);
	written->leaves[at] = leaf;
}

static void clear_all(gpointer data)
{
	struct written *written = data;

	for (uint64_t i = 0; i < leaf_count(written->bytes); i++)
		set_leaf(written, i, NULL);
}

void written_unref(struct written *written)
{
	if (written != NULL)
		g_rc_box_release_full(written, clear_all);
}

void written_give_up(struct written *written)
{
	clear_all(written);
	written->given_up = true;
}

/* Granules [first, end) of one leaf. */
static void change_leaf(struct written *written, uint64_t at, unsigned first, unsigned end,
			bool set)
{
	uint64_t *leaf = written->leaves[at];

	if ((end - first == LEAF_GRANULES) || leaf == (set ? full : NULL)) {
		set_leaf(written, at, set ? full : NULL);
		return;
	}
	if (leaf == NULL)
		leaf = g_new0(uint64_t, WORDS);
	else if (leaf == full)
		leaf = g_memdup2(full, sizeof(full));
	written->leaves[at] = leaf;
	for (unsigned i = first; i < end;) {
		unsigned bits = MIN(64 - i % 64, end - i);
		uint64_t mask = (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1) << i % 64;

		leaf[i / 64] = set ? leaf[i / 64] | mask : leaf[i / 64] & ~mask;
		i += bits;
	}
	if (set && memcmp(leaf, full, sizeof(full)) == 0)
		set_leaf(written, at, full);
}

static void change(struct written *written, uint64_t first, uint64_t end, bool set)
{
	for (uint64_t at = first; at < end && !written->given_up;) {
		uint64_t start = at / LEAF_GRANULES * LEAF_GRANULES;
		uint64_t stop = MIN(start + LEAF_GRANULES, end);

		change_leaf(written, at / LEAF_GRANULES, (unsigned)(at - start),
			    (unsigned)(stop - start), set);
		at = stop;
	}
}

void written_set(struct written *written, uint64_t begin, uint64_t end)
{
	change(written, begin / GRANULE, (MIN(end, written->bytes) + GRANULE - 1) / GRANULE, true);
}

void written_clear(struct written *written, uint64_t begin, uint64_t end)
{
	change(written, (begin + GRANULE - 1) / GRANULE, MIN(end, written->bytes) / GRANULE, false);
}

/* Where granules stop being as the first is. */
static uint64_t run_end(const struct written *written, uint64_t first, uint64_t end, bool *out_set)
{
	static const uint64_t empty[WORDS];
	bool known = false;

	for (uint64_t at = first; at < end;) {
		const uint64_t *leaf = written->leaves[at / LEAF_GRANULES];
		uint64_t in_leaf = at % LEAF_GRANULES, word, same;

		if (known && (leaf == (*out_set ? full : NULL))) {
			at += LEAF_GRANULES - in_leaf;
			continue;
		}
		word = (leaf != NULL ? leaf : empty)[in_leaf / 64] >> in_leaf % 64;
		if (!known)
			*out_set = word & 1;
		known = true;
		word = *out_set ? ~word : word;
		same = word == 0 ? 64 : (uint64_t)__builtin_ctzll(word);
		if (same < 64 - in_leaf % 64)
			return MIN(at + same, end);
		at += 64 - in_leaf % 64;
	}
	return end;
}

bool written_gap(const struct written *written, uint64_t begin, uint64_t end, uint64_t *out_begin,
		 uint64_t *out_end)
{
	uint64_t at = begin / GRANULE;
	uint64_t stop = (MIN(end, written->bytes) + GRANULE - 1) / GRANULE;

	while (begin < end && at < stop && !written->given_up) {
		bool set;
		uint64_t next = run_end(written, at, stop, &set);

		if (!set) {
			*out_begin = MAX(begin, at * GRANULE);
			*out_end = MIN(end, next * GRANULE);
			return true;
		}
		at = next;
	}
	return false;
}

void written_copy(struct written *dst, uint64_t to, const struct written *src, uint64_t from,
		  uint64_t bytes)
{
	uint64_t at = from, end = from + bytes, gap, gap_end;

	if (dst == src && MAX(to, from) - MIN(to, from) < bytes) {
		written_set(dst, to, to + bytes);
		return;
	}
	written_clear(dst, to, to + bytes);
	while (written_gap(src, at, end, &gap, &gap_end)) {
		if (gap > at)
			written_set(dst, to + (at - from), to + (gap - from));
		at = gap_end;
	}
	if (at < end)
		written_set(dst, to + (at - from), to + bytes);
}
