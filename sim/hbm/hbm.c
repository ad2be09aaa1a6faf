/* SPDX-License-Identifier: Apache-2.0
 *
 * The state and scheduling rules of the HBM. A request is scheduled when it arrives: its bank's
 * commands at the earliest times that the bank and the activation window allow, its bursts in the
 * earliest free slots of its pseudo channel's bus. So requests to busy banks do not delay others,
 * which is what a first-ready scheduler achieves. All internal times are clocks.
 */
#include "hbm.h"

#include <glib.h>

#include "hbm-acts.h"
#include "hbm-bus.h"

#define NO_ROW     UINT32_MAX
#define GROUPS_MAX BUS_GROUPS
#define OLD_ROWS   4u /* rows of a bank that are open until a precharge which is placed ahead */
#define WRITES_MAX 64
#define OFFER_WORK 64u /* between two offers of the lock: some 5 us */

/* A row that was open before: from its activation to its precharge. */
struct old_row {
	uint64_t act, pre;
};

struct bank {
	uint64_t act;    /* of the open row */
	uint64_t pre_ok; /* earliest precharge */
	uint64_t act_ok; /* earliest activation */
	uint64_t phase;  /* of its refreshes, behind those of the first bank */
	uint32_t row;
	uint32_t epoch;  /* refreshes before act; lower bits */
	uint32_t stripe; /* number of the stripe that last set it; lower bits */
	uint16_t group, old_next;
	uint32_t old_row[OLD_ROWS];
	struct old_row old[OLD_ROWS];
} __attribute__((aligned(64)));

struct pending_write {
	struct hbm_place place;
	uint32_t bursts;
	uint64_t free; /* when the buffer has its place again; of those that were written */
};

/* What every request touches comes first. */
struct pseudo {
	struct bank *bank;
	uint64_t *queue; /* ring: when the requests taken last will be done */
	unsigned queue_next, writes;
	uint64_t stripe;
	uint64_t floor;                 /* no CAS before here */
	uint64_t last_read, last_write; /* latest CAS of either kind */
	struct hbm_acts acts;
	struct hbm_bus bus;
	/* after a batch of writes: reads of a bank group that was written to wait longer */
	uint64_t group_floor[GROUPS_MAX];
	struct pending_write *write; /* write_limit of them */
} __attribute__((aligned(64)));

struct hbm {
	struct hbm_map map;
	uint64_t tck_ps;
	unsigned pseudos, banks, queue_limit, write_limit, burst_bytes, burst_lg2;
	uint64_t piece_bytes; /* of the largest block that is one row's and less than BULK_BURSTS */
	struct sim_hbm_clocks t;
	uint64_t burst;
	struct hbm_acts_shape acts;
	struct hbm_bus_shape bus;
	bool refreshes;
	uint64_t refresh_period, refresh_length, refresh_step;
	/* of the clock asked for last: where it begins, and which part of it has no refresh */
	uint64_t epoch, epoch_begin, quiet_from, quiet_clocks;
	unsigned stripe_lg2;        /* bytes of one row of every bank */
	unsigned columns_below[64]; /* bits of the column below an address bit */
	uint64_t column_mask;       /* of an address */
	/* what a whole stripe leaves behind in all banks, not yet written into them */
	uint64_t stripe, stripe_end;
	uint32_t stripe_row;
	bool stripe_write;
	uint64_t latest;
	struct pseudo *pseudo;
	struct bank *bank; /* of all of them */
	uint64_t bytes[2]; /* read, written */
	uint64_t requests, bursts, row_misses;
	struct hbm_record record;
	struct sim_lock *lock;
	uint64_t offer_above; /* bytes of a block */
	unsigned work;        /* since the last offer: pieces of rows that had their times */
};

struct hbm_record hbm_record_next;

static void set_clocks(struct hbm *hbm, const struct sim_profile *p)
{
	struct sim_hbm_clocks *t = &hbm->t;

	hbm->tck_ps = p->hbm_tck_ps;
	*t = p->hbm_clocks;
	/* An activation takes two cycles of the row bus (JESD235: R bits in two beats). */
	t->rcd_rd++;
	t->rcd_wr++;
	t->ccd_s = MAX(t->ccd_s, 1);
	t->ccd_l = MAX(t->ccd_l, t->ccd_s);
	t->rrd_l = MAX(t->rrd_l, t->rrd_s);
	t->wtr_l = MAX(t->wtr_l, t->wtr_s);
	hbm->burst = p->hbm_burst / 2;
	hbm_acts_shape_init(&hbm->acts, t->rrd_s, t->rrd_l, t->faw);
	hbm_bus_shape_init(&hbm->bus, p->hbm_bank_groups, (t->ccd_l + t->ccd_s - 1) / t->ccd_s);
	t->ccd_l = hbm->bus.step * t->ccd_s;
	hbm->refreshes = p->hbm_refresh;
	hbm->refresh_period = hbm->quiet_clocks = UINT64_MAX;
	if (!p->hbm_refresh)
		return;
	/* Rows must be closed before: the last CAS is tRTP + tRP ahead of the refresh. */
	hbm->refresh_length = (p->hbm_refresh_per_bank ? t->rfc_sb : t->rfc) + t->rtp + t->rp;
	hbm->refresh_step = p->hbm_refresh_per_bank ? t->refi_sb : 0;
	hbm->refresh_period = p->hbm_refresh_per_bank ? t->refi_sb * hbm->banks : t->refi;
	hbm->quiet_clocks = hbm->refresh_period;
}

static void set_map(struct hbm *hbm, const struct sim_profile *p)
{
	struct hbm_map *map = &hbm->map;
	unsigned columns = 0, run = 0;
	char *problem = NULL;

	if (!hbm_map_init(map, p->hbm_map, NULL, &problem))
		g_error("%s", problem); /* a profile's map was checked when it was read */
	for (unsigned b = 0; b < 64; b++) {
		hbm->columns_below[b] = columns;
		columns += map->field[b] == HBM_COLUMN;
		hbm->column_mask |= (uint64_t)(map->field[b] == HBM_COLUMN) << b;
	}
	while (run < map->total && map->field[run] <= HBM_COLUMN)
		run++;
	hbm->piece_bytes = MIN(UINT64_C(1) << run, BUS_BURSTS * hbm->burst_bytes);
	/* The shorthand for stripes holds where the row is all of the upper bits. */
	hbm->stripe_lg2 = map->total - map->bits[HBM_ROW];
	for (unsigned b = hbm->stripe_lg2; b < map->total; b++)
		if (map->field[b] != HBM_ROW)
			hbm->stripe_lg2 = 63;
}

static void forget_rows(struct bank *bank)
{
	bank->row = NO_ROW;
	for (unsigned i = 0; i < OLD_ROWS; i++)
		bank->old_row[i] = NO_ROW;
}

struct hbm *hbm_new(const struct sim_profile *p, struct sim_lock *lock)
{
	struct hbm *hbm = g_new0(struct hbm, 1);
	uint64_t act_words;

	hbm->banks = p->hbm_bank_groups * p->hbm_banks;
	hbm->record = hbm_record_next;
	hbm->lock = lock;
	hbm->offer_above = p->l2_block_bytes;
	hbm->pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	hbm->queue_limit = p->hbm_queue;
	hbm->write_limit = MAX(1, MIN(hbm->queue_limit / 2, WRITES_MAX));
	hbm->burst_bytes = p->hbm_burst * 8;
	hbm->burst_lg2 = (unsigned)__builtin_ctz(hbm->burst_bytes);
	set_clocks(hbm, p);
	set_map(hbm, p);
	act_words = hbm->acts.words * (hbm->acts.by_group ? 1 + p->hbm_bank_groups : 1);
	hbm->pseudo = g_aligned_alloc0(hbm->pseudos, sizeof(struct pseudo), 64);
	hbm->bank = g_aligned_alloc0((size_t)hbm->pseudos * hbm->banks, sizeof(struct bank), 64);
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		struct pseudo *pseudo = &hbm->pseudo[i];

		pseudo->bank = &hbm->bank[(size_t)i * hbm->banks];
		pseudo->queue = g_new0(uint64_t, hbm->queue_limit);
		pseudo->write = g_new0(struct pending_write, hbm->write_limit);
		pseudo->bus.from = hbm->bus.from;
		pseudo->bus.row = g_aligned_alloc0(BUS_ROWS, sizeof(struct hbm_bus_row), 64);
		pseudo->acts.word = g_aligned_alloc0(act_words, sizeof(struct hbm_acts_word), 64);
		pseudo->acts.latest = hbm->acts.has_faw ? g_new0(uint64_t, ACTS_FAW) : NULL;
		for (unsigned b = 0; b < hbm->banks; b++) {
			pseudo->bank[b].phase = b * hbm->refresh_step;
			pseudo->bank[b].group = (uint16_t)(b >> hbm->map.bits[HBM_BANK]);
			forget_rows(&pseudo->bank[b]);
		}
	}
	return hbm;
}

void hbm_free(struct hbm *hbm)
{
	if (!hbm)
		return;
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		g_free(hbm->pseudo[i].queue);
		g_free(hbm->pseudo[i].write);
		g_free(hbm->pseudo[i].acts.latest);
		g_aligned_free(hbm->pseudo[i].acts.word);
		g_aligned_free(hbm->pseudo[i].bus.row);
	}
	g_aligned_free(hbm->bank);
	g_aligned_free(hbm->pseudo);
	g_free(hbm);
}

/* --- refresh --- */

/* In a refresh of the bank, or in another epoch than the last one asked for, to which it turns.
 * `since` counts from the bank's own phase. Returns how many clocks later it is free. */
static __attribute__((noinline)) uint64_t meet_refresh(struct hbm *hbm, uint64_t since)
{
	uint64_t begin = hbm->epoch_begin;

	if (since - begin >= hbm->refresh_period) {
		hbm->epoch = (int64_t)since < 0 ? 0 : since / hbm->refresh_period;
		hbm->epoch_begin = begin = hbm->epoch * hbm->refresh_period;
		hbm->quiet_from = begin + (hbm->epoch ? hbm->refresh_length : 0);
		hbm->quiet_clocks = begin + hbm->refresh_period - hbm->quiet_from;
	}
	since -= begin;
	return since < hbm->quiet_from - begin ? hbm->quiet_from - begin - since : 0;
}

static inline bool meets_refresh(const struct hbm *hbm, uint64_t phase, uint64_t t)
{
	return t - phase - hbm->quiet_from >= hbm->quiet_clocks;
}

/* How many refreshes of a bank of that phase have begun by clock t; *out_free is the first clock
 * from t on that is outside of them. */
static inline uint64_t refresh_epoch(struct hbm *hbm, uint64_t phase, uint64_t t,
				     uint64_t *out_free)
{
	*out_free = t;
	if (G_UNLIKELY(meets_refresh(hbm, phase, t)))
		*out_free += meet_refresh(hbm, t - phase);
	return hbm->epoch;
}

/* The end of `busy` clocks of work from t on, with the refreshes that fall into it. */
static uint64_t work_until(struct hbm *hbm, uint64_t t, uint64_t busy)
{
	uint64_t free, epoch, left;

	if (!hbm->refreshes || hbm->refresh_step)
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

/* What a whole stripe has left in the bank. */
__attribute__((cold)) static void set_by_stripe(struct hbm *hbm, struct bank *bank)
{
	uint64_t free;

	forget_rows(bank);
	bank->stripe = (uint32_t)hbm->stripe;
	bank->row = hbm->stripe_row;
	bank->act = hbm->stripe_end > hbm->t.ras ? hbm->stripe_end - hbm->t.ras : 0;
	bank->epoch = (uint32_t)refresh_epoch(hbm, bank->phase, bank->act, &free);
	bank->pre_ok = hbm->stripe_end + (hbm->stripe_write ? hbm->t.wr : hbm->t.rtp);
	bank->act_ok = bank->pre_ok + hbm->t.rp;
}

static inline struct bank *bank_at(struct hbm *hbm, struct pseudo *pseudo, unsigned index)
{
	struct bank *bank = &pseudo->bank[index];

	if (G_UNLIKELY(bank->stripe != (uint32_t)hbm->stripe))
		set_by_stripe(hbm, bank);
	return bank;
}

/* An activation from `act` on of which nothing up to its first CAS meets a refresh. */
__attribute__((cold)) static uint64_t avoid_refresh(struct hbm *hbm, const struct pseudo *pseudo,
						    const struct bank *bank, uint64_t act,
						    uint64_t rcd)
{
	uint64_t free, act_free, was, epoch;

	for (;;) {
		was = refresh_epoch(hbm, bank->phase, act, &act_free);
		epoch = refresh_epoch(hbm, bank->phase, act + rcd, &free);
		if (act_free == act && free == act + rcd && was == epoch)
			return act;
		act = hbm_acts_find(&pseudo->acts, &hbm->acts, bank->group,
				    act_free != act ? act_free : free);
	}
}

/* Opens a row that is not open, at t or later, which is the clock asked for last, and in no
 * refresh. */
__attribute__((always_inline)) static inline void activate(struct hbm *hbm, struct pseudo *pseudo,
							   struct bank *bank, uint32_t row,
							   uint64_t t, uint64_t rcd)
{
	unsigned group = bank->group;
	uint64_t act = hbm_acts_find(&pseudo->acts, &hbm->acts, group, MAX(t, bank->act_ok));

	if (G_UNLIKELY(meets_refresh(hbm, bank->phase, act + rcd)))
		act = avoid_refresh(hbm, pseudo, bank, act, rcd);
	hbm_acts_take(&pseudo->acts, &hbm->acts, group, act);
	if (bank->epoch != (uint32_t)hbm->epoch) {
		forget_rows(bank);
	} else if (bank->row != NO_ROW) { /* stays open until it is precharged for this */
		unsigned i = bank->old_next++ % OLD_ROWS;

		hbm_record_row(&hbm->record, HBM_PRECHARGE, bank->row, act - hbm->t.rp);
		bank->old_row[i] = bank->row;
		bank->old[i] = (struct old_row){ bank->act, act - hbm->t.rp };
	}
	hbm_record_row(&hbm->record, HBM_ACTIVATE, row, act);
	bank->row = row;
	bank->epoch = (uint32_t)hbm->epoch;
	bank->act = act;
	bank->pre_ok = act + hbm->t.ras;
	bank->act_ok = act + hbm->t.rc;
}

/* The earliest clock for a CAS to the row, with precharge, activation and refresh as they are
 * needed. */
__attribute__((always_inline)) static inline uint64_t open_row(struct hbm *hbm,
							       struct pseudo *pseudo,
							       struct bank *bank, uint32_t row,
							       bool write, uint64_t t)
{
	uint64_t rcd = write ? hbm->t.rcd_wr : hbm->t.rcd_rd;
	uint64_t free, epoch = refresh_epoch(hbm, bank->phase, t, &free);

	t = free;
	if (bank->row != NO_ROW && bank->epoch != (uint32_t)epoch && bank->act < t) {
		forget_rows(bank);
		bank->act_ok = MAX(bank->act_ok, free);
	}
	if (bank->row == row)
		return MAX(t, bank->act + rcd);
	hbm->row_misses++;
	if (bank->row != NO_ROW)
		bank->act_ok = MAX(bank->act_ok, MAX(t, bank->pre_ok) + hbm->t.rp);
	activate(hbm, pseudo, bank, row, t, rcd);
	return bank->act + rcd;
}

static uint64_t close_distance(const struct hbm *hbm, bool write)
{
	return write ? hbm->t.cwl + hbm->burst + hbm->t.wr : hbm->t.rtp;
}

static void close_after(struct hbm *hbm, struct bank *bank, uint64_t cas, bool write)
{
	bank->pre_ok = MAX(bank->pre_ok, cas + close_distance(hbm, write));
	bank->act_ok = MAX(bank->act_ok, bank->pre_ok + hbm->t.rp);
}

/* --- the bus --- */

__attribute__((always_inline)) static inline uint64_t find_slots(const struct hbm *hbm,
								 const struct pseudo *pseudo,
								 unsigned group, unsigned bursts,
								 bool write, uint64_t ready)
{
	ready = MAX(ready, pseudo->floor);
	if (!write)
		ready = MAX(ready, pseudo->group_floor[group]);
	return hbm_bus_find(&pseudo->bus, &hbm->bus, group, bursts,
			    (ready + hbm->t.ccd_s - 1) / hbm->t.ccd_s);
}

static inline bool was_open(const struct bank *bank, uint32_t row)
{
	const uint32_t *old = bank->old_row;

	G_STATIC_ASSERT(OLD_ROWS == 4);
	return (old[0] == row) | (old[1] == row) | (old[2] == row) | (old[3] == row);
}

/* A hit of a row that others wait to close goes before them, where its bursts fit before the
 * precharge that they have placed. Returns the clock of the first CAS, or 0. */
__attribute__((cold)) static uint64_t overtake(struct hbm *hbm, struct pseudo *pseudo,
					       const struct bank *bank, uint32_t row,
					       unsigned bursts, bool write, uint64_t t)
{
	uint64_t length = (bursts - 1) * hbm->t.ccd_l + close_distance(hbm, write);

	for (unsigned i = 0; i < OLD_ROWS; i++) {
		const struct old_row *old = &bank->old[i];
		uint64_t cas = MAX(t, old->act + (write ? hbm->t.rcd_wr : hbm->t.rcd_rd)), s;

		if (bank->old_row[i] != row || cas + length > old->pre)
			continue;
		s = find_slots(hbm, pseudo, bank->group, bursts, write, cas);
		if (s * hbm->t.ccd_s + length > old->pre)
			continue;
		hbm->bursts += bursts;
		hbm_bus_take(&pseudo->bus, &hbm->bus, bank->group, bursts, s);
		hbm_record_bursts(&hbm->record, write, bursts, s * hbm->t.ccd_s, hbm->t.ccd_l);
		return s * hbm->t.ccd_s;
	}
	return 0;
}

/* Opens the row and takes the bus for `bursts` bursts of it. Returns the clock of the first CAS. */
__attribute__((always_inline)) static inline uint64_t
serve_row(struct hbm *hbm, struct pseudo *pseudo, unsigned index, uint32_t row, unsigned bursts,
	  bool write, uint64_t t)
{
	struct bank *bank = bank_at(hbm, pseudo, index);
	uint64_t cas, s, free, misses = hbm->row_misses;

	hbm->requests++;
	if (t < bank->act && bank->row != row && was_open(bank, row) &&
	    (cas = overtake(hbm, pseudo, bank, row, bursts, write, t)))
		return cas;
	for (;;) {
		cas = open_row(hbm, pseudo, bank, row, write, t);
		s = find_slots(hbm, pseudo, bank->group, bursts, write, cas);
		cas = s * hbm->t.ccd_s;
		if (G_LIKELY((uint32_t)refresh_epoch(hbm, bank->phase, cas, &free) == bank->epoch))
			break;
		/* The refresh that comes first closes the row again: still one miss. */
		hbm->row_misses = misses;
		forget_rows(bank);
		bank->act_ok = free;
		t = free;
	}
	hbm->bursts += bursts;
	close_after(hbm, bank, cas + (bursts - 1) * hbm->t.ccd_l, write);
	hbm_bus_take(&pseudo->bus, &hbm->bus, bank->group, bursts, s);
	hbm_record_bursts(&hbm->record, write, bursts, cas, hbm->t.ccd_l);
	return cas;
}

/* --- requests --- */

__attribute__((always_inline)) static inline uint64_t
read_row(struct hbm *hbm, struct pseudo *pseudo, const struct hbm_place *place, unsigned bursts,
	 uint64_t t, uint64_t *out_first)
{
	uint64_t cas = serve_row(hbm, pseudo, place->bank, place->row, bursts, false, t);
	uint64_t last = cas + (bursts - 1) * hbm->t.ccd_l;

	pseudo->last_read = MAX(pseudo->last_read, last);
	*out_first = cas + hbm->t.cl + hbm->burst;
	return last + hbm->t.cl + hbm->burst;
}

/* Pending writes go to their rows behind all reads booked; reads wait until they are through. */
static void drain_writes(struct hbm *hbm, struct pseudo *pseudo, uint64_t t)
{
	uint64_t last = 0;

	hbm->work += pseudo->writes;
	pseudo->floor = MAX(MAX(t, pseudo->floor), pseudo->last_read + hbm->t.rtw);
	for (unsigned i = 0; i < pseudo->writes; i++) {
		struct pending_write *w = &pseudo->write[i];
		uint64_t *floor = &pseudo->group_floor[pseudo->bank[w->place.bank].group];

		hbm->record.place = w->place;
		uint64_t cas =
			serve_row(hbm, pseudo, w->place.bank, w->place.row, w->bursts, true, t);
		uint64_t end = cas + (w->bursts - 1) * hbm->t.ccd_l;
		w->free = cas;
		*floor = MAX(*floor, end + hbm->t.cwl + hbm->burst + hbm->t.wtr_l);
		last = MAX(last, end);
	}
	pseudo->writes = 0;
	pseudo->last_write = last;
	pseudo->floor = last + hbm->t.cwl + hbm->burst + hbm->t.wtr_s;
}

static uint64_t write_row(struct hbm *hbm, struct pseudo *pseudo, const struct hbm_place *place,
			  unsigned bursts, uint64_t t)
{
	struct pending_write *w;

	if (pseudo->writes == hbm->write_limit)
		drain_writes(hbm, pseudo, t);
	w = &pseudo->write[pseudo->writes++];
	t = MAX(t, w->free);
	*w = (struct pending_write){ *place, bursts, 0 };
	return t + hbm->t.cwl + hbm->burst;
}

/* What a whole stripe has left in the pseudo channel. */
static inline void follow_stripe(const struct hbm *hbm, struct pseudo *pseudo)
{
	if (G_LIKELY(pseudo->stripe == hbm->stripe))
		return;
	pseudo->stripe = hbm->stripe;
	pseudo->floor = MAX(pseudo->floor, hbm->stripe_end);
	*(hbm->stripe_write ? &pseudo->last_write : &pseudo->last_read) = hbm->stripe_end;
}

/* One piece of a row. */
__attribute__((always_inline)) static inline uint64_t access_row(struct hbm *hbm,
								 const struct hbm_place *place,
								 unsigned bursts, bool write,
								 uint64_t t, uint64_t *out_first)
{
	struct pseudo *pseudo = &hbm->pseudo[place->pseudo];
	uint64_t done;

	follow_stripe(hbm, pseudo);
	t = MAX(t, pseudo->queue[pseudo->queue_next]);
	if (G_UNLIKELY(hbm->record.call))
		hbm->record.place = *place;
	if (G_UNLIKELY(write)) {
		done = write_row(hbm, pseudo, place, bursts, t);
		*out_first = done;
	} else {
		done = read_row(hbm, pseudo, place, bursts, t, out_first);
	}
	pseudo->queue[pseudo->queue_next] = done;
	if (G_UNLIKELY(++pseudo->queue_next == hbm->queue_limit))
		pseudo->queue_next = 0;
	return done;
}

/* --- runs --- */

#define BULK_BURSTS (BUS_BURSTS + 1) /* from here on a row piece takes the bus in one go */

static uint64_t turn(const struct hbm *hbm, const struct pseudo *pseudo, bool write)
{
	if (write)
		return pseudo->last_read ? pseudo->last_read + hbm->t.rtw : 0;
	return pseudo->last_write ? pseudo->last_write + hbm->t.cwl + hbm->burst + hbm->t.wtr_l : 0;
}

/* A piece of a row among many of one run: the bus is full with them, so that only its length
 * counts. */
static uint64_t bulk_row(struct hbm *hbm, const struct hbm_place *place, unsigned bursts,
			 bool write, uint64_t t, uint64_t *out_first)
{
	struct pseudo *pseudo = &hbm->pseudo[place->pseudo];
	struct bank *bank;
	uint64_t cas, end;

	follow_stripe(hbm, pseudo);
	hbm->requests++;
	hbm->bursts += bursts;
	bank = bank_at(hbm, pseudo, place->bank);
	cas = open_row(hbm, pseudo, bank, place->row, write, t);
	cas = MAX(MAX(cas, turn(hbm, pseudo, write)),
		  MAX(pseudo->floor, pseudo->bus.horizon * hbm->t.ccd_s));
	end = work_until(hbm, cas, bursts * hbm->t.ccd_s);
	pseudo->floor = end;
	*(write ? &pseudo->last_write : &pseudo->last_read) = end - hbm->t.ccd_s;
	close_after(hbm, bank, end - hbm->t.ccd_s, write);
	*out_first = cas + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
	return end + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
}

/* `stripes` whole stripes, each of which opens its row in every bank: all pseudo channels do the
 * same. */
static uint64_t whole_stripes(struct hbm *hbm, uint64_t offset, uint64_t stripes, bool write,
			      uint64_t t, uint64_t *out_first)
{
	uint64_t row_clocks = (UINT64_C(1) << hbm->map.bits[HBM_COLUMN]) * hbm->t.ccd_s;
	uint64_t bursts = (stripes << hbm->stripe_lg2) / hbm->burst_bytes;
	uint64_t rows = stripes * hbm->banks * hbm->pseudos;
	uint64_t start =
		MAX(t + hbm->t.rp + (write ? hbm->t.rcd_wr : hbm->t.rcd_rd), hbm->stripe_end);
	struct hbm_place place;

	for (unsigned i = 0; i < hbm->pseudos; i++) {
		struct pseudo *pseudo = &hbm->pseudo[i];

		start = MAX(start, MAX(pseudo->bus.horizon * hbm->t.ccd_s, pseudo->floor));
		if (pseudo->stripe == hbm->stripe)
			start = MAX(start, turn(hbm, pseudo, write));
	}
	if (hbm->stripe && hbm->stripe_write != write)
		start = MAX(start,
			    hbm->stripe_end +
				    (write ? hbm->t.rtw : hbm->t.cwl + hbm->burst + hbm->t.wtr_l));
	hbm_map_find(&hbm->map, offset + ((stripes - 1) << hbm->stripe_lg2), &place);
	hbm->stripe++;
	hbm->stripe_row = place.row;
	hbm->stripe_write = write;
	hbm->stripe_end = work_until(hbm, start, stripes * hbm->banks * row_clocks);
	hbm->requests += rows;
	hbm->bursts += bursts;
	hbm->row_misses += rows;
	*out_first = start + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
	return hbm->stripe_end + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
}

/* The aligned block of 2^lg2 bytes at offset: one step for each row that it has a part of. */
static uint64_t aligned_block(struct hbm *hbm, uint64_t offset, unsigned lg2, bool write,
			      bool offers, uint64_t t, uint64_t *out_first)
{
	unsigned bursts = 1u << hbm->columns_below[lg2];
	uint64_t rows = ((UINT64_C(1) << lg2) - 1) & ~(hbm->column_mask | (hbm->burst_bytes - 1));
	uint64_t end = 0, sub = 0, first, done;
	struct hbm_place place;

	*out_first = UINT64_MAX;
	do {
		hbm->work++;
		if (offers && hbm->work >= OFFER_WORK) {
			sim_lock_offer(hbm->lock);
			hbm->work = 0;
		}
		hbm_map_find(&hbm->map, offset | sub, &place);
		done = bursts < BULK_BURSTS ? access_row(hbm, &place, bursts, write, t, &first)
					    : bulk_row(hbm, &place, bursts, write, t, &first);
		end = MAX(end, done);
		*out_first = first < *out_first ? first : *out_first;
		sub = (sub - rows) & rows;
	} while (sub);
	return end;
}

/* Any bursts from begin to stop. No offer in a request of a block of the L2: a page table walk that
 * asks for it has read the page's entry, and who changes that meanwhile finds nothing in the TLB to
 * drop. */
static uint64_t access_blocks(struct hbm *hbm, uint64_t begin, uint64_t stop, bool write,
			      bool offers, uint64_t t, uint64_t *out_first)
{
	uint64_t end = 0, done, first;

	*out_first = UINT64_MAX;
	while (begin < stop) {
		unsigned lg2 = begin ? (unsigned)__builtin_ctzll(begin) : 63;
		unsigned fits = 63 - (unsigned)__builtin_clzll(stop - begin);

		lg2 = MIN(lg2, fits);
		if (lg2 >= hbm->stripe_lg2) {
			uint64_t stripes = (stop - begin) >> hbm->stripe_lg2;

			done = whole_stripes(hbm, begin, stripes, write, t, &first);
			begin += stripes << hbm->stripe_lg2;
		} else {
			done = aligned_block(hbm, begin, lg2, write, offers, t, &first);
			begin += UINT64_C(1) << lg2;
		}
		end = MAX(end, done);
		*out_first = first < *out_first ? first : *out_first;
	}
	return end;
}

/* One request, of which the first byte is at the place. */
__attribute__((always_inline)) static inline uint64_t
access_at(struct hbm *hbm, const struct hbm_place *place, uint64_t offset, uint64_t bytes,
	  bool write, uint64_t at_ps, uint64_t *out_first_ps)
{
	uint64_t t = (at_ps + hbm->tck_ps - 1) / hbm->tck_ps, piece = hbm->burst_bytes;
	uint64_t begin = offset & ~(piece - 1), stop = (offset + bytes + piece - 1) & ~(piece - 1);
	uint64_t size = stop - begin, end, first;

	hbm->bytes[write] += bytes;
	/* An aligned block of a few bursts of one row: what a request of a line or less is. */
	if (G_LIKELY(size - 1 < hbm->piece_bytes && !((begin | size) & (size - 1))))
		end = access_row(hbm, place, (unsigned)size >> hbm->burst_lg2, write, t, &first);
	else
		end = access_blocks(hbm, begin, stop, write, bytes > hbm->offer_above, t, &first);
	hbm->latest = MAX(hbm->latest, end);
	*out_first_ps = first * hbm->tck_ps;
	return end * hbm->tck_ps;
}

uint64_t hbm_access(struct hbm *hbm, uint64_t offset, uint64_t bytes, bool write, uint64_t at_ps,
		    uint64_t *out_first_ps)
{
	struct hbm_place place;
	uint64_t first_ps, done_ps;

	hbm_map_find(&hbm->map, offset, &place);
	done_ps = access_at(hbm, &place, offset, bytes, write, at_ps, &first_ps);
	if (out_first_ps)
		*out_first_ps = first_ps;
	return done_ps;
}

void hbm_access_rows(struct hbm *hbm, struct sim_row *rows, unsigned count, bool write,
		     uint64_t origin_ps)
{
	struct hbm_place place[SIM_ROWS_MAX];
	uint64_t offset[SIM_ROWS_MAX], first_ps;

	for (unsigned i = 0; i < count; i++) {
		offset[i] = SIM_PA_OFFSET(rows[i].address);
		hbm_map_find(&hbm->map, offset[i], &place[i]);
		__builtin_prefetch(&hbm->pseudo[place[i].pseudo]);
		__builtin_prefetch(&hbm->pseudo[place[i].pseudo].bus);
		__builtin_prefetch(&hbm->pseudo[place[i].pseudo].bank[place[i].bank]);
	}
	for (unsigned i = 0; i < count; i++) {
		rows[i].done_ps =
			origin_ps + access_at(hbm, &place[i], offset[i], rows[i].bytes, write,
					      rows[i].at_ps - origin_ps, &first_ps);
		rows[i].first_ps = origin_ps + first_ps;
	}
}

void hbm_get_counters(const struct hbm *hbm, struct sim_counters *out)
{
	uint64_t refreshes = hbm->refreshes && hbm->latest > hbm->refresh_period
				     ? hbm->latest / hbm->refresh_period
				     : 0;

	out->hbm_read_bytes = hbm->bytes[false];
	out->hbm_write_bytes = hbm->bytes[true];
	out->hbm_row_hits = hbm->requests - hbm->row_misses;
	out->hbm_row_misses = hbm->row_misses;
	out->hbm_bursts = hbm->bursts;
	out->hbm_refreshes = refreshes * hbm->pseudos * (hbm->refresh_step ? hbm->banks : 1);
}
