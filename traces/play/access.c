/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the set of live blocks, from which places are drawn with equal probability for every byte,
 * and makes the reads.
 */
#include "replay.h"

#include <stdio.h>

#define SEQ_BYTES   (1u << 20) /* of a new block, at most */
#define BATCH_READS 1024u
#define CORES       24 /* take turns: cube cores that every SoC of the 910 family has some of */

/* A block that is live. */
struct live {
	guint64 address;
	guint32 tag, next; /* inside */
	guint64 size;
};
struct access {
	struct replay_device *of;
	const struct access_options *options;
	struct int_map *blocks; /* of struct live */
	GArray *sums; /* guint64: of the sizes of the blocks that a number's lowest bit covers: a
			 binary indexed tree */
	guint64 total;
	GRand *random;
	guint core;
	guint64 events; /* since the last phase */
};

static const char *const names[] = {
	[ACCESS_NONE] = "none",
	[ACCESS_SEQ] = "seq",
	[ACCESS_RANDOM] = "random",
	[ACCESS_HOT] = "hot",
};

gboolean access_parse(const char *text, struct access_options *out, GError **error)
{
	const char *shares = g_str_has_prefix(text, "hot:") ? text + strlen("hot:") : "";
	guint touches, bytes;

	for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
		out->pattern = i;
		out->hot_touches = ACCESS_HOT_TOUCHES;
		out->hot_bytes = ACCESS_HOT_BYTES;
		if (strcmp(text, names[i]) == 0)
			return TRUE;
	}
	if (*shares == '\0')
		return refuse_option(
			error, "--access %s: known are none, seq, random, hot and hot:T/M", text);
	out->pattern = ACCESS_HOT;
	/* nothing but digits and one stroke */
	if (shares[strspn(shares, "0123456789/")] != '\0' ||
	    sscanf(shares, "%3u/%3u%1s", &touches, &bytes, (char[2]){ 0 }) != 2 ||
	    touches - 1 >= 100 || bytes - 1 >= 100)
		return refuse_option(error,
				     "--access %s: hot:T/M is wanted, T per cent of the reads in "
				     "the first M per cent of live memory, each 1 to 100",
				     text);
	out->hot_touches = touches;
	out->hot_bytes = bytes;
	return TRUE;
}

char *access_text(const struct access_options *options)
{
	return options->pattern == ACCESS_HOT
		       ? g_strdup_printf("hot:%u/%u", options->hot_touches, options->hot_bytes)
		       : g_strdup(names[options->pattern]);
}

struct access *access_new(struct replay_device *device)
{
	const struct access_options *options = &device->replay->options.access;

	if (options->pattern == ACCESS_NONE)
		return NULL;
	struct access *a = g_new0(struct access, 1);
	*a = (struct access){ device, options, .random = g_rand_new_with_seed(1) };
	a->blocks = int_map_new(sizeof(struct live), NULL);
	a->sums = g_array_new(FALSE, TRUE, sizeof(guint64));
	return a;
}

void access_free(struct access *a)
{
	int_map_free(a->blocks);
	g_array_unref(a->sums);
	g_rand_free(a->random);
	g_free(a);
}

/* Where what the file has at an address lies now; 0: nowhere. */
static guint64 find(const struct access *a, guint64 address)
{
	const struct filter *filter = a->of->filter;

	return filter ? filter->find(filter, address) : address;
}

#define SUM(a, i) g_array_index((a)->sums, guint64, (i)-1)

/* Of the block with that number. */
static void change_size(struct access *a, guint number, guint64 change)
{
	for (guint i; (i = a->sums->len + 1) <= number;) {
		g_array_set_size(a->sums, i);
		for (guint below = 1; !(i & below); below *= 2)
			SUM(a, i) += SUM(a, i - below);
	}
	for (guint i = number; i <= a->sums->len; i += i & -i)
		SUM(a, i) += change;
	a->total += change;
}

void access_go(struct access *a, guint64 address)
{
	struct live *block = int_map_find(a->blocks, address, 0);

	if (block == NULL)
		return;
	change_size(a, int_map_number(a->blocks, block), -block->size);
	int_map_remove(a->blocks, block);
}

void access_note(struct access *a, guint64 address, guint64 size)
{
	access_go(a, address);
	if (size == 0 || find(a, address) == 0)
		return;
	struct live *block = int_map_add(a->blocks, address, 0);
	block->size = size;
	change_size(a, int_map_number(a->blocks, block), size);
}

/* The block that has byte number `at` of all that is live; *at becomes its offset in it. */
static const struct live *block_at(const struct access *a, guint64 *at)
{
	guint number = 0, step = 1;

	while (2 * step <= a->sums->len)
		step *= 2;
	for (; step > 0; step /= 2) {
		if (number + step > a->sums->len || SUM(a, number + step) > *at)
			continue;
		number += step;
		*at -= SUM(a, number);
	}
	return int_map_at(a->blocks, number + 1);
}

static guint64 draw_below(struct access *a, guint64 below)
{
	guint64 high = g_rand_int(a->random), low = g_rand_int(a->random);

	return (high << 32 | low) % below;
}

/* The number of a byte of all that is live. */
static guint64 draw(struct access *a)
{
	const struct access_options *o = a->options;
	guint64 hot = a->total / 100 * o->hot_bytes + a->total % 100 * o->hot_bytes / 100;

	if (o->pattern != ACCESS_HOT || hot == 0 || hot == a->total)
		return draw_below(a, a->total);
	return draw_below(a, 100) < o->hot_touches ? draw_below(a, hot)
						   : hot + draw_below(a, a->total - hot);
}

static gboolean read_at(struct access *a, const guint64 *at, gsize count, gsize bytes,
			GError **error)
{
	struct access_figures *f = &a->of->access;
	guint device = a->of->device;
	struct npu_stats before, after;

	if (!model_stats(device, &before))
		return refuse(error, MODEL_ERROR, MODEL_ERROR_CALL, "--access: %s",
			      model_message());
	int code = npusim_touch((int)device, at, count, bytes, a->core++ % CORES);
	if (code != 0)
		return refuse(error, MODEL_ERROR, MODEL_ERROR_CALL,
			      "device %u: npusim_touch, count %zu, from 0x%" G_GINT64_MODIFIER
			      "x on answered %d: %s",
			      device, count, at[0], code, model_message());
	model_stats(device, &after);
	f->reads += count;
	f->bytes += count * bytes;
	f->ps += after.now_ps - before.now_ps;
	f->tlb_requests += after.tlb_requests - before.tlb_requests;
	f->tlb_hits += after.tlb_hits - before.tlb_hits;
	f->tlb_misses += after.tlb_misses - before.tlb_misses;
	f->walks += after.walks - before.walks;
	f->walk_ps += after.walk_ps - before.walk_ps;
	f->hbm_bytes += after.hbm_read_bytes - before.hbm_read_bytes;
	f->row_hits += after.row_hits - before.row_hits;
	f->row_misses += after.row_misses - before.row_misses;
	return TRUE;
}

static gboolean read_places(struct access *a, GError **error)
{
	guint64 at[BATCH_READS];
	guint64 left = a->total == 0 ? 0 : a->options->reads ? a->options->reads : ACCESS_READS;

	while (left > 0) {
		gsize count = 0;
		for (; left > 0 && count < BATCH_READS; left--) {
			guint64 offset = draw(a);
			guint64 va = find(a, block_at(a, &offset)->address);
			/* a read lies in its block as a whole: blocks are multiples of it */
			if (va)
				at[count++] = va + offset / ACCESS_READ_BYTES * ACCESS_READ_BYTES;
		}
		if (count > 0 && !read_at(a, at, count, ACCESS_READ_BYTES, error))
			return FALSE;
	}
	return TRUE;
}

/* All that is live, from one end of each block to the other. */
static gboolean read_all(struct access *a, GError **error)
{
	const struct live *block = NULL;

	while ((block = int_map_next(a->blocks, block))) {
		guint64 va = find(a, block->address);
		if (va && !read_at(a, &va, 1, block->size, error))
			return FALSE;
	}
	return TRUE;
}

gboolean access_come(struct access *a, guint64 address, guint64 size, GError **error)
{
	access_note(a, address, size);
	if (a->options->every > 0)
		return TRUE;
	if (a->options->pattern != ACCESS_SEQ)
		return read_places(a, error);
	guint64 va = find(a, address);
	return va == 0 || size == 0 || read_at(a, &va, 1, MIN(size, SEQ_BYTES), error);
}

gboolean access_tick(struct access *a, GError **error)
{
	a->events++;
	if (a->options->every == 0 || a->events < a->options->every)
		return TRUE;
	a->events = 0;
	return a->options->pattern == ACCESS_SEQ ? read_all(a, error) : read_places(a, error);
}
