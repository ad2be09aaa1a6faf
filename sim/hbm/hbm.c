/* SPDX-License-Identifier: Apache-2.0
 *
 * The HBM's state and rules. A request is placed when it comes: its bank's commands at the earliest times that the bank
 * and the activation window allow, its bursts in the earliest free slots of its pseudo channel's bus. Requests to busy
 * banks so hold up nobody else, which is what a first-ready scheduler achieves. All inner times are clocks.
 */
#include "hbm.h"

#include <glib.h>
#include <string.h>

#define NO_ROW      UINT32_MAX
#define SLOTS       2048u /* of the bus that are booked one by one: what lies further off waits */
#define BANKS_MAX   64
#define ACTS        32u   /* activations remembered */
#define WRITES_MAX  64
#define QUEUE_MAX   4096

struct bank {
	uint64_t act;    /* of the open row */
	uint64_t pre_ok; /* earliest precharge */
	uint64_t act_ok; /* earliest activation */
	uint32_t row;
	uint64_t stripe; /* number of the stripe that last set it */
};

struct pending_write {
	uint32_t bank, row, bursts;
};

struct pseudo {
	struct bank *bank;
	uint64_t acts[ACTS]; /* the latest activations, in order of time */
	uint64_t horizon; /* in slots: none is taken from here on */
	uint64_t floor;   /* no slot is free before here */
	uint64_t last_read, last_write; /* latest CAS of either kind */
	bool bulk_write;  /* direction of the last bulk transfer */
	uint64_t stripe;
	uint64_t *queue;  /* ring: when the requests taken last will be done */
	unsigned queue_next;
	struct pending_write write[WRITES_MAX];
	unsigned writes;
	uint64_t write_free[WRITES_MAX]; /* when the places are free again */
	unsigned char slot[SLOTS]; /* ring: bank group + 1 of the burst there, 0: free */
	uint64_t slot_base;        /* slots below have been cleared for reuse */
};

struct hbm {
	struct hbm_map map;
	uint64_t tck_ps;
	unsigned pseudos, banks, bank_bits, queue_limit, write_limit, burst_bytes;
	uint64_t cl, cwl, rcd_rd, rcd_wr, rp, ras, rc, wr, rtp, ccd_s, ccd_l, rrd, wtr, rtw, faw, burst;
	uint64_t slot_step; /* slots between two bursts of a bank group */
	uint64_t refresh_period, refresh_length, refresh_step; /* period 0: none */
	uint64_t epoch, epoch_begin; /* of the clock asked for last */
	unsigned stripe_lg2; /* bytes of one row of every bank */
	unsigned columns_below[64]; /* bits of the column below an address bit */
	/* what a whole stripe leaves behind in all banks, not yet written into them */
	uint64_t stripe, stripe_end;
	uint32_t stripe_row;
	bool stripe_write;
	uint64_t latest;
	struct pseudo *pseudo;
	struct hbm_counters counters;
};

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void set_clocks(struct hbm *hbm, const struct sim_profile *p)
{
	hbm->tck_ps = p->hbm_tck_ps;
	hbm->cl = p->hbm_cl;
	hbm->cwl = p->hbm_cwl;
	/* An activation takes two cycles of the row bus (JESD235: R bits in two beats). */
	hbm->rcd_rd = p->hbm_rcd_rd + 1;
	hbm->rcd_wr = p->hbm_rcd_wr + 1;
	hbm->rp = p->hbm_rp;
	hbm->ras = p->hbm_ras;
	hbm->rc = p->hbm_rc;
	hbm->wr = p->hbm_wr;
	hbm->rtp = p->hbm_rtp;
	hbm->ccd_s = p->hbm_ccd_s ? p->hbm_ccd_s : 1;
	hbm->ccd_l = max_of(p->hbm_ccd_l, hbm->ccd_s);
	hbm->rrd = max_of(p->hbm_rrd_s, p->hbm_rrd_l);
	hbm->wtr = max_of(p->hbm_wtr_s, p->hbm_wtr_l);
	hbm->rtw = p->hbm_rtw;
	hbm->faw = p->hbm_faw;
	hbm->burst = p->hbm_burst / 2;
	hbm->slot_step = (hbm->ccd_l + hbm->ccd_s - 1) / hbm->ccd_s;
	hbm->ccd_l = hbm->slot_step * hbm->ccd_s;
	if (!p->hbm_refresh)
		return;
	/* Rows must be closed before: the last CAS is tRTP + tRP ahead of the refresh. */
	hbm->refresh_length = (p->hbm_refresh_per_bank ? p->hbm_rfc_sb : p->hbm_rfc) + hbm->rtp + hbm->rp;
	hbm->refresh_step = p->hbm_refresh_per_bank ? p->hbm_refi_sb : 0;
	hbm->refresh_period = p->hbm_refresh_per_bank ? (uint64_t)p->hbm_refi_sb * hbm->banks
						      : p->hbm_refi;
}

static void set_map(struct hbm *hbm, const struct sim_profile *p)
{
	char *problem = NULL;
	unsigned columns = 0;

	if (!hbm_map_init(&hbm->map, p, &problem))
		g_error("%s", problem); /* a profile's map was checked when it was read */
	for (unsigned i = 0; i < hbm->map.pieces; i++) {
		const struct hbm_piece *piece = &hbm->map.piece[i];

		for (unsigned b = 0; b < piece->bits; b++) {
			hbm->columns_below[piece->shift + b] = columns;
			columns += piece->field == HBM_COLUMN;
		}
		if (piece->field == HBM_ROW && !hbm->stripe_lg2)
			hbm->stripe_lg2 = piece->shift;
	}
	for (unsigned b = 0; b < 64; b++)
		if (b >= hbm->stripe_lg2)
			hbm->columns_below[b] = columns;
	/* The shorthand for stripes holds where the row is all of the upper bits. */
	if (hbm->map.piece[hbm->map.pieces - 1].field != HBM_ROW ||
	    hbm->map.piece[hbm->map.pieces - 1].shift != hbm->stripe_lg2)
		hbm->stripe_lg2 = 63;
}

struct hbm *hbm_new(const struct sim_profile *p)
{
	struct hbm *hbm = g_new0(struct hbm, 1);

	hbm->banks = p->hbm_bank_groups * p->hbm_banks;
	hbm->pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	hbm->queue_limit = MIN(p->hbm_queue, QUEUE_MAX);
	hbm->write_limit = MAX(1, MIN(hbm->queue_limit / 2, WRITES_MAX));
	hbm->burst_bytes = p->hbm_burst * 8;
	set_clocks(hbm, p);
	set_map(hbm, p);
	hbm->bank_bits = hbm->map.bits[HBM_BANK];
	hbm->pseudo = g_new0(struct pseudo, hbm->pseudos);
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		hbm->pseudo[i].bank = g_new0(struct bank, hbm->banks);
		hbm->pseudo[i].queue = g_new0(uint64_t, hbm->queue_limit);
		for (unsigned b = 0; b < hbm->banks; b++)
			hbm->pseudo[i].bank[b].row = NO_ROW;
	}
	return hbm;
}

void hbm_free(struct hbm *hbm)
{
	if (!hbm)
		return;
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		g_free(hbm->pseudo[i].bank);
		g_free(hbm->pseudo[i].queue);
	}
	g_free(hbm->pseudo);
	g_free(hbm);
}

/* --- refresh --- */

/* How many refreshes of the bank have begun by clock t; *out_free is the first clock from t on that is outside of them. */
static uint64_t refresh_epoch(struct hbm *hbm, unsigned bank, uint64_t t, uint64_t *out_free)
{
	uint64_t phase = bank * hbm->refresh_step, into;

	*out_free = t;
	if (!hbm->refresh_period || t < hbm->refresh_period + phase)
		return 0;
	into = t - phase - hbm->epoch_begin;
	if (into >= hbm->refresh_period) {
		hbm->epoch = (t - phase) / hbm->refresh_period;
		hbm->epoch_begin = hbm->epoch * hbm->refresh_period;
		into = t - phase - hbm->epoch_begin;
	}
	if (into < hbm->refresh_length)
		*out_free = t + hbm->refresh_length - into;
	return hbm->epoch;
}

/* The end of `busy` clocks of work from t on, with the refreshes that fall into it. */
static uint64_t work_until(struct hbm *hbm, uint64_t t, uint64_t busy)
{
	uint64_t free, epoch, left;

	if (!hbm->refresh_period || hbm->refresh_step)
		return t + busy; /* a refresh of one bank leaves the bus to the others */
	epoch = refresh_epoch(hbm, 0, t, &free);
	left = (epoch + 1) * hbm->refresh_period - free;
	if (busy <= left)
		return free + busy;
	busy -= left;
	t = (epoch + 1) * hbm->refresh_period + hbm->refresh_length;
	epoch = busy / (hbm->refresh_period - hbm->refresh_length);
	busy -= epoch * (hbm->refresh_period - hbm->refresh_length);
	return t + epoch * hbm->refresh_period + busy;
}

/* --- banks --- */

static struct bank *bank_at(struct hbm *hbm, struct pseudo *pseudo, unsigned index)
{
	struct bank *bank = &pseudo->bank[index];

	if (bank->stripe != hbm->stripe) {
		bank->stripe = hbm->stripe;
		bank->row = hbm->stripe_row;
		bank->act = hbm->stripe_end > hbm->ras ? hbm->stripe_end - hbm->ras : 0;
		bank->pre_ok = hbm->stripe_end + (hbm->stripe_write ? hbm->wr : hbm->rtp);
		bank->act_ok = bank->pre_ok + hbm->rp;
	}
	return bank;
}

/* Activations in a row of five must span tFAW; the new one would stand before acts[at]. */
static bool window_allows(const struct hbm *hbm, const struct pseudo *pseudo, unsigned at, uint64_t act)
{
	if (hbm->faw <= 4 * hbm->rrd)
		return true;
	for (unsigned i = at > 4 ? at - 4 : 0; i <= at && i + 3 < ACTS; i++) {
		uint64_t from = i == at ? act : pseudo->acts[i];
		uint64_t to = i + 3 >= at ? pseudo->acts[i + 3] : act;

		if (i + 4 == at)
			to = act;
		if (pseudo->acts[i] && to - from < hbm->faw)
			return false;
	}
	return true;
}

/* The earliest clock from t on where the pseudo channel has room for an activation. Banks' timelines differ, so it may
 * be before others that were placed earlier. */
static uint64_t place_activation(const struct hbm *hbm, struct pseudo *pseudo, uint64_t t)
{
	unsigned at = ACTS; /* the new one stands before acts[at] */

	t = max_of(t, pseudo->acts[0] + hbm->rrd * (pseudo->acts[0] != 0));
	while (at && pseudo->acts[at - 1] > t)
		at--;
	for (;;) {
		if (at && pseudo->acts[at - 1])
			t = max_of(t, pseudo->acts[at - 1] + hbm->rrd);
		if (at == ACTS ||
		    (t + hbm->rrd <= pseudo->acts[at] && window_allows(hbm, pseudo, at, t)))
			break;
		at++;
	}
	if (at == ACTS && hbm->faw > 4 * hbm->rrd && pseudo->acts[ACTS - 4])
		t = max_of(t, pseudo->acts[ACTS - 4] + hbm->faw);
	if (at > 0) {
		memmove(pseudo->acts, pseudo->acts + 1, (at - 1) * sizeof(*pseudo->acts));
		pseudo->acts[at - 1] = t;
	}
	return t;
}

static uint64_t activate(struct hbm *hbm, struct pseudo *pseudo, struct bank *bank, uint64_t t,
			 uint32_t row)
{
	uint64_t act = place_activation(hbm, pseudo, max_of(t, bank->act_ok));

	bank->act = act;
	bank->row = row;
	bank->pre_ok = act + hbm->ras;
	bank->act_ok = act + hbm->rc;
	return act;
}

/* The earliest clock for a CAS to the row, with precharge, activation and refresh as they are needed. */
static uint64_t open_row(struct hbm *hbm, struct pseudo *pseudo, unsigned index, uint32_t row,
			 bool write, uint64_t t)
{
	struct bank *bank = bank_at(hbm, pseudo, index);
	uint64_t rcd = write ? hbm->rcd_wr : hbm->rcd_rd;
	uint64_t free, epoch = refresh_epoch(hbm, index, t, &free);
	uint64_t act, cas;

	t = free;
	if (bank->row != NO_ROW && refresh_epoch(hbm, index, bank->act, &free) != epoch &&
	    bank->act < t) {
		bank->row = NO_ROW;
		bank->act_ok = max_of(bank->act_ok, free);
	}
	if (bank->row == row) {
		hbm->counters.row_hits++;
		return max_of(t, bank->act + rcd);
	}
	hbm->counters.row_misses++;
	if (bank->row != NO_ROW)
		bank->act_ok = max_of(bank->act_ok, max_of(t, bank->pre_ok) + hbm->rp);
	act = activate(hbm, pseudo, bank, t, row);
	cas = act + rcd;
	epoch = refresh_epoch(hbm, index, cas, &free);
	if (free != cas || epoch != refresh_epoch(hbm, index, act, &free)) {
		/* A refresh comes between: the row is opened behind it. */
		(void)refresh_epoch(hbm, index, cas, &free);
		bank->act_ok = max_of(bank->act_ok, free);
		cas = activate(hbm, pseudo, bank, free, row) + rcd;
	}
	return cas;
}

static void close_after(struct hbm *hbm, struct bank *bank, uint64_t cas, bool write)
{
	uint64_t pre = write ? cas + hbm->cwl + hbm->burst + hbm->wr : cas + hbm->rtp;

	bank->pre_ok = max_of(bank->pre_ok, pre);
	bank->act_ok = max_of(bank->act_ok, bank->pre_ok + hbm->rp);
}

/* --- the bus --- */

/* Slots are of ccd_s clocks; those between slot_base and the horizon hold what is booked. Finds the first from `ready` on
 * that leaves tCCD_S to all bursts and tCCD_L to those of the same bank group. */
static uint64_t find_slots(struct hbm *hbm, const struct pseudo *pseudo, uint64_t ready,
			   unsigned char mine, unsigned bursts)
{
	uint64_t step = hbm->slot_step;
	uint64_t s = (max_of(ready, pseudo->floor) + hbm->ccd_s - 1) / hbm->ccd_s;
	uint64_t end = pseudo->horizon + step;

	for (s = max_of(s, pseudo->slot_base + 1); s < end; s++) {
		bool fits = true;

		for (unsigned i = 0; i < bursts && fits; i++) {
			uint64_t at = s + i * step;

			fits = !pseudo->slot[at % SLOTS];
			for (uint64_t d = 1; d < step && fits; d++)
				fits = pseudo->slot[(at + d) % SLOTS] != mine &&
				       pseudo->slot[(at - d) % SLOTS] != mine;
		}
		if (fits)
			break;
	}
	return s;
}

static void take_slots(struct hbm *hbm, struct pseudo *pseudo, uint64_t s, unsigned char mine,
		       unsigned bursts)
{
	uint64_t last = s + (bursts - 1) * hbm->slot_step;

	/* Forget what lies more than half the ring back. */
	if (pseudo->slot_base + 2 * SLOTS < last) {
		memset(pseudo->slot, 0, SLOTS);
		pseudo->slot_base = last - SLOTS / 2;
	}
	while (pseudo->slot_base + SLOTS / 2 < last)
		pseudo->slot[pseudo->slot_base++ % SLOTS] = 0;
	for (unsigned i = 0; i < bursts; i++)
		pseudo->slot[(s + i * hbm->slot_step) % SLOTS] = mine;
	pseudo->horizon = max_of(pseudo->horizon, last + 1);
}

/* Opens the row and takes the bus for `bursts` bursts of it. Returns the clock of the first CAS. */
static uint64_t serve_row(struct hbm *hbm, struct pseudo *pseudo, unsigned index, uint32_t row,
			  unsigned bursts, bool write, uint64_t t)
{
	unsigned char mine = (unsigned char)((index >> hbm->bank_bits) + 1);

	for (;;) {
		uint64_t cas = open_row(hbm, pseudo, index, row, write, t);
		uint64_t s = find_slots(hbm, pseudo, cas, mine, bursts);
		struct bank *bank = &pseudo->bank[index];
		uint64_t free;

		cas = s * hbm->ccd_s;
		if (refresh_epoch(hbm, index, cas, &free) ==
		    refresh_epoch(hbm, index, bank->act, &t)) {
			take_slots(hbm, pseudo, s, mine, bursts);
			close_after(hbm, bank, cas + (bursts - 1) * hbm->ccd_l, write);
			hbm->counters.row_hits += bursts - 1;
			return cas;
		}
		/* The refresh that comes first closes the row again. */
		bank->row = NO_ROW;
		bank->act_ok = free;
		t = free;
	}
}

/* --- requests --- */

static uint64_t read_row(struct hbm *hbm, struct pseudo *pseudo, const struct hbm_place *place,
			 unsigned bursts, uint64_t t, uint64_t *out_first)
{
	uint64_t cas = serve_row(hbm, pseudo, place->bank, place->row, bursts, false, t);
	uint64_t last = cas + (bursts - 1) * hbm->ccd_l;

	pseudo->last_read = max_of(pseudo->last_read, last);
	*out_first = cas + hbm->cl + hbm->burst;
	return last + hbm->cl + hbm->burst;
}

/* Pending writes go to their rows behind all reads booked; reads wait until they are through. */
static void drain_writes(struct hbm *hbm, struct pseudo *pseudo, uint64_t t)
{
	uint64_t last = 0;

	if (!pseudo->writes)
		return;
	pseudo->floor = max_of(max_of(t, pseudo->floor), pseudo->last_read + hbm->rtw);
	for (unsigned i = 0; i < pseudo->writes; i++) {
		const struct pending_write *w = &pseudo->write[i];
		uint64_t cas = serve_row(hbm, pseudo, w->bank, w->row, w->bursts, true, t);

		pseudo->write_free[i] = cas;
		last = max_of(last, cas + (w->bursts - 1) * hbm->ccd_l);
	}
	pseudo->writes = 0;
	pseudo->last_write = last;
	pseudo->floor = last + hbm->cwl + hbm->burst + hbm->wtr;
}

static uint64_t write_row(struct hbm *hbm, struct pseudo *pseudo, const struct hbm_place *place,
			  unsigned bursts, uint64_t t)
{
	if (pseudo->writes == hbm->write_limit)
		drain_writes(hbm, pseudo, t);
	t = max_of(t, pseudo->write_free[pseudo->writes]);
	pseudo->write[pseudo->writes++] =
		(struct pending_write){ place->bank, place->row, bursts };
	return t + hbm->cwl + hbm->burst;
}

/* One piece of a row. */
static uint64_t access_row(struct hbm *hbm, uint64_t offset, unsigned bursts, bool write,
			   uint64_t t, uint64_t *out_first)
{
	struct hbm_place place;
	struct pseudo *pseudo;
	uint64_t done;

	hbm_map_find(&hbm->map, offset, &place);
	pseudo = &hbm->pseudo[place.pseudo];
	if (pseudo->stripe != hbm->stripe) {
		pseudo->stripe = hbm->stripe;
		pseudo->floor = max_of(pseudo->floor, hbm->stripe_end);
		*(hbm->stripe_write ? &pseudo->last_write : &pseudo->last_read) = hbm->stripe_end;
	}
	t = max_of(t, pseudo->queue[pseudo->queue_next]);
	if (write) {
		done = write_row(hbm, pseudo, &place, bursts, t);
		*out_first = done;
	} else {
		done = read_row(hbm, pseudo, &place, bursts, t, out_first);
	}
	pseudo->queue[pseudo->queue_next] = done;
	if (++pseudo->queue_next == hbm->queue_limit)
		pseudo->queue_next = 0;
	return done;
}

/* --- runs --- */

#define BULK_BURSTS 5 /* from here on a row piece takes the bus in one go */

static uint64_t turn(const struct hbm *hbm, const struct pseudo *pseudo, bool write)
{
	if (write)
		return pseudo->last_read ? pseudo->last_read + hbm->rtw : 0;
	return pseudo->last_write ? pseudo->last_write + hbm->cwl + hbm->burst + hbm->wtr : 0;
}

/* A piece of a row among many of one run: the bus is full with them, so that only its length counts. */
static uint64_t bulk_row(struct hbm *hbm, uint64_t offset, unsigned bursts, bool write, uint64_t t,
			 uint64_t *out_first)
{
	struct hbm_place place;
	struct pseudo *pseudo;
	uint64_t cas, end;

	hbm_map_find(&hbm->map, offset, &place);
	pseudo = &hbm->pseudo[place.pseudo];
	if (pseudo->stripe != hbm->stripe) {
		pseudo->stripe = hbm->stripe;
		pseudo->floor = max_of(pseudo->floor, hbm->stripe_end);
		*(hbm->stripe_write ? &pseudo->last_write : &pseudo->last_read) = hbm->stripe_end;
	}
	cas = open_row(hbm, pseudo, place.bank, place.row, write, t);
	cas = max_of(max_of(cas, turn(hbm, pseudo, write)), max_of(pseudo->floor, pseudo->horizon * hbm->ccd_s));
	end = work_until(hbm, cas, bursts * hbm->ccd_s);
	pseudo->floor = end;
	*(write ? &pseudo->last_write : &pseudo->last_read) = end - hbm->ccd_s;
	close_after(hbm, &pseudo->bank[place.bank], end - hbm->ccd_s, write);
	hbm->counters.row_hits += bursts - 1;
	*out_first = cas + (write ? hbm->cwl : hbm->cl) + hbm->burst;
	return end + (write ? hbm->cwl : hbm->cl) + hbm->burst;
}

/* `stripes` whole stripes, each of which opens its row in every bank: all pseudo channels do the same. */
static uint64_t whole_stripes(struct hbm *hbm, uint64_t offset, uint64_t stripes, bool write,
			      uint64_t t, uint64_t *out_first)
{
	uint64_t row_clocks = (UINT64_C(1) << hbm->map.bits[HBM_COLUMN]) * hbm->ccd_s;
	uint64_t bursts = (stripes << hbm->stripe_lg2) / hbm->burst_bytes;
	uint64_t rows = stripes * hbm->banks * hbm->pseudos;
	uint64_t start = max_of(t + hbm->rp + (write ? hbm->rcd_wr : hbm->rcd_rd), hbm->stripe_end);
	struct hbm_place place;

	for (unsigned i = 0; i < hbm->pseudos; i++) {
		struct pseudo *pseudo = &hbm->pseudo[i];

		start = max_of(start, max_of(pseudo->horizon * hbm->ccd_s, pseudo->floor));
		if (pseudo->stripe == hbm->stripe)
			start = max_of(start, turn(hbm, pseudo, write));
	}
	if (hbm->stripe && hbm->stripe_write != write)
		start = max_of(start, hbm->stripe_end + (write ? hbm->rtw
							       : hbm->cwl + hbm->burst + hbm->wtr));
	hbm_map_find(&hbm->map, offset + ((stripes - 1) << hbm->stripe_lg2), &place);
	hbm->stripe++;
	hbm->stripe_row = place.row;
	hbm->stripe_write = write;
	hbm->stripe_end = work_until(hbm, start, stripes * hbm->banks * row_clocks);
	hbm->counters.row_hits += bursts - rows;
	hbm->counters.row_misses += rows;
	*out_first = start + (write ? hbm->cwl : hbm->cl) + hbm->burst;
	return hbm->stripe_end + (write ? hbm->cwl : hbm->cl) + hbm->burst;
}

/* The aligned block of 2^lg2 bytes at offset: one step for each row that it has a part of. */
static uint64_t aligned_block(struct hbm *hbm, uint64_t offset, unsigned lg2, bool write, uint64_t t,
			      uint64_t *out_first)
{
	unsigned bursts = 1u << hbm->columns_below[lg2];
	uint64_t rows = ((UINT64_C(1) << lg2) - 1) & ~(uint64_t)(hbm->burst_bytes - 1);
	uint64_t end = 0, sub = 0, first, done;

	for (unsigned i = 0; i < hbm->map.pieces; i++) {
		const struct hbm_piece *piece = &hbm->map.piece[i];

		if (piece->field == HBM_COLUMN)
			rows &= ~(((UINT64_C(1) << piece->bits) - 1) << piece->shift);
	}
	*out_first = UINT64_MAX;
	do {
		done = bursts < BULK_BURSTS
			       ? access_row(hbm, offset | sub, bursts, write, t, &first)
			       : bulk_row(hbm, offset | sub, bursts, write, t, &first);
		end = max_of(end, done);
		*out_first = first < *out_first ? first : *out_first;
		sub = (sub - rows) & rows;
	} while (sub);
	return end;
}

static void count(struct hbm *hbm, uint64_t bytes, bool write, uint64_t end)
{
	*(write ? &hbm->counters.write_bytes : &hbm->counters.read_bytes) += bytes;
	hbm->latest = max_of(hbm->latest, end);
}

uint64_t hbm_access(struct hbm *hbm, uint64_t offset, uint64_t bytes, bool write, uint64_t at_ps,
		    uint64_t *out_first_ps)
{
	uint64_t t = (at_ps + hbm->tck_ps - 1) / hbm->tck_ps;
	uint64_t piece = hbm->burst_bytes;
	uint64_t begin = offset & ~(piece - 1), stop = (offset + bytes + piece - 1) & ~(piece - 1);
	uint64_t end = 0, first = UINT64_MAX, done, first_done;

	count(hbm, bytes, write, 0);
	while (begin < stop) {
		unsigned lg2 = begin ? (unsigned)__builtin_ctzll(begin) : 63;
		unsigned fits = 63 - (unsigned)__builtin_clzll(stop - begin);

		lg2 = MIN(lg2, fits);
		if (lg2 >= hbm->stripe_lg2) {
			uint64_t stripes = (stop - begin) >> hbm->stripe_lg2;

			done = whole_stripes(hbm, begin, stripes, write, t, &first_done);
			begin += stripes << hbm->stripe_lg2;
		} else {
			done = aligned_block(hbm, begin, lg2, write, t, &first_done);
			begin += UINT64_C(1) << lg2;
		}
		end = max_of(end, done);
		first = first_done < first ? first_done : first;
	}
	hbm->latest = max_of(hbm->latest, end);
	if (out_first_ps)
		*out_first_ps = first * hbm->tck_ps;
	return end * hbm->tck_ps;
}

void hbm_get_counters(const struct hbm *hbm, struct hbm_counters *out)
{
	uint64_t refreshes = hbm->refresh_period && hbm->latest > hbm->refresh_period
				     ? hbm->latest / hbm->refresh_period
				     : 0;

	*out = hbm->counters;
	out->refreshes = refreshes * hbm->pseudos * (hbm->refresh_step ? hbm->banks : 1);
}
