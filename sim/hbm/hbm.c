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
#define NEVER      (UINT64_C(1) << 63) /* clock: later than any that is asked for */
#define OLD_ROWS   4u /* rows of a bank that are open until a precharge which is placed ahead */
#define WRITES_MAX 64
#define OFFER_WORK 64u /* between two offers of the lock: some 5 us */

/* A row that was open before: from its activation to its precharge. */
struct old_row {
	uint64_t act, pre;
};

struct bank {
	uint64_t act;     /* of the open row */
	uint64_t act_ok;  /* earliest activation of another one */
	uint64_t refresh; /* the first one behind act: tRTP later it closes the row */
	struct pseudo *pseudo;
	uint32_t row;
	uint32_t phase;  /* of its refreshes, behind those of the first bank */
	uint32_t stripe; /* number of the stripe that last set it; lower bits */
	uint8_t group, old_next;
	uint32_t old_row[OLD_ROWS];
	struct old_row old[OLD_ROWS];
} __attribute__((aligned(64)));

struct pending_write {
	uint64_t place; /* packed */
	uint64_t free;  /* the buffer has taken it; once it is written: has its place again */
	struct hbm_bursts *of;
};

/* What every request touches comes first. */
struct pseudo {
	uint64_t *slot, *queue, *queue_end; /* ring: when the requests taken last will be done */
	unsigned writes;
	uint64_t floor[2]; /* no CAS before here, by whether it writes */
	uint64_t written;  /* horizon of the bus when a write came last */
	struct hbm_acts acts;
	struct hbm_bus bus[2];       /* by whether it writes */
	struct pending_write *write; /* write_limit of them */
} __attribute__((aligned(64)));

struct hbm {
	struct hbm_map map;
	uint64_t tck_ps;
	unsigned pseudos, banks, write_limit, burst_bytes, burst_lg2;
	/* a block of one row and less than BULK_BURSTS has less than so many beyond a burst */
	uint64_t row_bytes;
	bool plain; /* reads of such blocks are: nobody asks for a record, tRRD_S alone counts */
	struct sim_hbm_clocks t;
	uint64_t burst;
	uint64_t close[2];     /* from the last CAS to the precharge, by whether it writes */
	uint64_t turn[2];      /* to any CAS of the other kind, likewise */
	uint64_t read_latency; /* from a CAS to its last beat */
	struct hbm_acts_shape acts;
	struct hbm_bus_shape bus;
	uint64_t refresh_period, refresh_length, refresh_step;
	uint64_t refresh_found;     /* the latest that was looked for, of the first bank */
	uint64_t open;              /* of a row, at least, from its activation to a refresh */
	unsigned stripe_lg2;        /* bytes of one row of every bank */
	unsigned columns_below[64]; /* bits of the column below an address bit */
	uint64_t column_mask;       /* of an address */
	/* what a whole stripe leaves behind in all banks, not yet written into them */
	uint64_t stripe, stripe_end;
	uint32_t stripe_row;
	bool stripe_write;
	uint64_t latest; /* end of an access, but for plain reads */
	struct pseudo *pseudo;
	struct bank *bank;                     /* of all of them */
	uint64_t bytes[2];                     /* read, written */
	uint64_t row_misses, requests, bursts; /* the latter two: those the bus did not book */
	struct hbm_record record;
	struct sim_lock *lock;
	unsigned work; /* since the last offer: pieces of rows that had their times */
};

struct hbm_record hbm_record_next;

/* Where nobody asks for a record it costs a comparison, and plain reads nothing. */
static inline void hbm_record_row(const struct hbm_record *record, enum hbm_command command,
				  uint32_t row, uint64_t clock)
{
	struct hbm_place place;

	if (G_LIKELY(!record->call))
		return;
	place = record->place;
	place.row = row;
	record->call(command, &place, clock);
}

static inline void hbm_record_bursts(const struct hbm_record *record, bool write, unsigned bursts,
				     uint64_t clock, uint64_t step)
{
	struct hbm_place place;

	if (G_LIKELY(!record->call))
		return;
	place = record->place;
	for (; bursts > 0; bursts--, place.column++, clock += step)
		record->call(write ? HBM_WRITE : HBM_READ, &place, clock);
}

/* No shorter than so many clocks. */
static inline uint64_t slots(const struct hbm *hbm, uint64_t clocks)
{
	return (clocks + hbm->t.ccd_s - 1) / hbm->t.ccd_s;
}

static void set_clocks(struct hbm *hbm, const struct sim_profile *p)
{
	struct sim_hbm_clocks *t = &hbm->t;

	hbm->tck_ps = p->hbm_tck_ps;
	*t = p->hbm_clocks;
	/* An activation takes two cycles of the row bus (JESD235: R bits in two beats). */
	t->rcd_rd++;
	t->rcd_wr++;
	t->ccd_s = MAX(t->ccd_s, p->hbm_burst / 2); /* that a burst has the data bus */
	t->ccd_l = MAX(t->ccd_l, t->ccd_s);
	t->rrd_l = MAX(t->rrd_l, t->rrd_s);
	t->wtr_l = MAX(t->wtr_l, t->wtr_s);
	t->rc = MAX(t->rc, t->ras + t->rp);
	hbm->burst = p->hbm_burst / 2;
	hbm->close[false] = t->rtp;
	hbm->close[true] = t->cwl + hbm->burst + t->wr;
	hbm->turn[false] = t->rtw;
	hbm->turn[true] = t->cwl + hbm->burst + t->wtr_l;
	hbm->read_latency = t->cl + hbm->burst;
	hbm_acts_shape_init(&hbm->acts, t->rrd_s, t->rrd_l, t->faw);
	hbm_bus_shape_init(&hbm->bus, p->hbm_bank_groups, t->ccd_s,
			   (t->ccd_l + t->ccd_s - 1) / t->ccd_s);
	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		struct hbm_bursts *of = &hbm->bus.of[n];

		for (unsigned write = 0; write < 2; write++) {
			uint64_t closed = of->clocks + hbm->close[write];

			of->before_act[write] = closed + t->rp;
			of->before_refresh[write] = closed - MIN(closed, t->rtp);
		}
	}
	t->ccd_l = hbm->bus.step * t->ccd_s;
	hbm->bus.to_write = slots(hbm, MAX(t->rtw, 1));
	hbm->bus.to_read = slots(hbm, t->cwl + hbm->burst + t->wtr_s);
	hbm->bus.to_own_read = slots(hbm, hbm->turn[true]);
	hbm->open = t->ras - MIN(t->ras, t->rtp);
	hbm->refresh_period = NEVER;
	if (!p->hbm_refresh)
		return;
	/* Rows must be closed before: their reads end tRTP + tRP ahead of the command. */
	hbm->refresh_length = (p->hbm_refresh_per_bank ? t->rfc_sb : t->rfc) + t->rtp + t->rp;
	hbm->refresh_step = p->hbm_refresh_per_bank ? t->refi_sb : 0;
	hbm->refresh_period = p->hbm_refresh_per_bank ? t->refi_sb * hbm->banks : t->refi;
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
	hbm->row_bytes = MIN(UINT64_C(1) << run, BUS_BURSTS * hbm->burst_bytes);
	hbm->row_bytes = MAX(hbm->row_bytes + 1, hbm->burst_bytes) - hbm->burst_bytes;
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
	hbm->pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	hbm->write_limit = MAX(1, MIN(p->hbm_queue / 2, WRITES_MAX));
	hbm->burst_bytes = p->hbm_burst * 8;
	hbm->burst_lg2 = (unsigned)__builtin_ctz(hbm->burst_bytes);
	set_clocks(hbm, p);
	set_map(hbm, p);
	hbm->plain = !hbm->record.call && hbm->acts.plain;
	act_words = hbm->acts.words * (hbm->acts.by_group ? 1 + p->hbm_bank_groups : 1);
	hbm->pseudo = g_aligned_alloc0(hbm->pseudos, sizeof(struct pseudo), 64);
	hbm->bank = g_aligned_alloc0((size_t)hbm->pseudos * hbm->banks, sizeof(struct bank), 64);
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		struct pseudo *pseudo = &hbm->pseudo[i];

		pseudo->slot = pseudo->queue = g_new0(uint64_t, p->hbm_queue);
		pseudo->queue_end = pseudo->queue + p->hbm_queue;
		pseudo->write = g_new0(struct pending_write, hbm->write_limit);
		for (unsigned write = 0; write < 2; write++) {
			/* a step is kept free of what lies before time begins */
			pseudo->floor[write] = (hbm->bus.step + 1) * hbm->t.ccd_s;
			pseudo->bus[write].row =
				g_aligned_alloc0(BUS_ROWS, sizeof(struct hbm_bus_row), 64);
		}
		pseudo->acts.word = g_aligned_alloc0(act_words, sizeof(struct hbm_acts_word), 64);
		pseudo->acts.from = ACTS_NEVER;
		pseudo->acts.latest = g_new(uint64_t, ACTS_FAW);
		for (unsigned a = 0; a < ACTS_FAW; a++)
			pseudo->acts.latest[a] = ACTS_NEVER;
		for (unsigned b = 0; b < hbm->banks; b++) {
			struct bank *bank = &hbm->bank[(size_t)i * hbm->banks + b];

			bank->pseudo = pseudo;
			bank->phase = (uint32_t)(b * hbm->refresh_step);
			bank->group = (uint8_t)(b >> hbm->map.bits[HBM_BANK]);
			bank->refresh = bank->phase + hbm->refresh_period;
			forget_rows(bank);
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
		g_aligned_free(hbm->pseudo[i].bus[false].row);
		g_aligned_free(hbm->pseudo[i].bus[true].row);
	}
	g_aligned_free(hbm->bank);
	g_aligned_free(hbm->pseudo);
	g_free(hbm);
}

/* --- refresh --- */

/* The latest refresh of the first bank that begins by clock t; 0: none has. */
static inline uint64_t refresh_before(struct hbm *hbm, uint64_t t)
{
	if (G_UNLIKELY(t - hbm->refresh_found >= hbm->refresh_period))
		hbm->refresh_found = t - t % hbm->refresh_period;
	return hbm->refresh_found;
}

/* The end of `busy` clocks of work from t on, with the refreshes that fall into it. */
static uint64_t work_until(struct hbm *hbm, uint64_t t, uint64_t busy)
{
	uint64_t begin, quiet = hbm->refresh_period - hbm->refresh_length;

	if (hbm->refresh_period == NEVER || hbm->refresh_step)
		return t + busy; /* a refresh of one bank leaves the bus to the others */
	begin = refresh_before(hbm, t);
	t = begin ? MAX(t, begin + hbm->refresh_length) : t;
	if (busy <= begin + hbm->refresh_period - t)
		return t + busy;
	busy -= begin + hbm->refresh_period - t;
	return begin + (busy / quiet + 1) * hbm->refresh_period + hbm->refresh_length +
	       busy % quiet;
}

/* --- banks --- */

/* What a whole stripe has left in the bank. */
__attribute__((cold)) static void set_by_stripe(struct hbm *hbm, struct bank *bank)
{
	forget_rows(bank);
	bank->stripe = (uint32_t)hbm->stripe;
	bank->row = hbm->stripe_row;
	bank->act = hbm->stripe_end > hbm->t.ras ? hbm->stripe_end - hbm->t.ras : 0;
	bank->refresh = bank->phase + hbm->refresh_period;
	if (bank->act >= bank->refresh)
		bank->refresh += refresh_before(hbm, bank->act - bank->phase);
	bank->act_ok = hbm->stripe_end + (hbm->stripe_write ? hbm->t.wr : hbm->t.rtp) + hbm->t.rp;
}

static inline void follow_stripe(struct hbm *hbm, struct bank *bank)
{
	if (G_UNLIKELY(bank->stripe != (uint32_t)hbm->stripe))
		set_by_stripe(hbm, bank);
}

static inline struct bank *bank_of(const struct hbm *hbm, uint64_t place)
{
	return &hbm->bank[place >> HBM_MAP_BANK_AT];
}

/* Nothing is left to do before the next refresh, where t is too late for it: goes on behind that
 * one, or the latest that begins by t. */
static inline void pass_refresh(struct hbm *hbm, struct bank *bank, uint64_t t)
{
	uint64_t begin = bank->phase + refresh_before(hbm, MAX(t, bank->refresh) - bank->phase);

	forget_rows(bank);
	bank->refresh = begin + hbm->refresh_period;
	bank->act_ok = MAX(bank->act_ok, begin + hbm->refresh_length);
}

/* The earliest clock from t on for a CAS to the row (*out_cas), with precharge and activation
 * (*out_act) where it is not open. False: a refresh comes before. */
__attribute__((always_inline)) static inline bool find_row(struct hbm *hbm, struct bank *bank,
							   uint32_t row, bool write, bool plain,
							   uint64_t t, uint64_t *out_act,
							   uint64_t *out_cas)
{
	uint64_t rcd = write ? hbm->t.rcd_wr : hbm->t.rcd_rd, act;

	if (G_UNLIKELY(t >= bank->refresh))
		pass_refresh(hbm, bank, t);
	if (bank->row == row) {
		*out_cas = MAX(t, bank->act + rcd);
		return true;
	}
	act = t + (bank->row != NO_ROW ? hbm->t.rp : 0);
	*out_act = act = hbm_acts_find(&bank->pseudo->acts, &hbm->acts, bank->group,
				       MAX(act, bank->act_ok), plain);
	*out_cas = act + rcd;
	return act + hbm->open <= bank->refresh;
}

/* Books what find_row() found. */
__attribute__((always_inline)) static inline void open_row(struct hbm *hbm, struct bank *bank,
							   uint32_t row, bool plain, uint64_t act)
{
	hbm->row_misses++;
	hbm_acts_take(&bank->pseudo->acts, &hbm->acts, bank->group, act, plain);
	if (G_LIKELY(bank->row != NO_ROW)) { /* stays open until it is precharged for this */
		unsigned i = bank->old_next++ % OLD_ROWS;

		if (!plain)
			hbm_record_row(&hbm->record, HBM_PRECHARGE, bank->row, act - hbm->t.rp);
		bank->old_row[i] = bank->row;
		bank->old[i] = (struct old_row){ bank->act, act - hbm->t.rp };
	}
	if (!plain)
		hbm_record_row(&hbm->record, HBM_ACTIVATE, row, act);
	bank->row = row;
	bank->act = act;
	bank->act_ok = act + hbm->t.rc;
}

/* --- the bus --- */

__attribute__((always_inline)) static inline uint64_t find_slots(const struct hbm *hbm,
								 const struct bank *bank,
								 struct hbm_bursts *of, bool write,
								 uint64_t ready)
{
	const struct pseudo *pseudo = bank->pseudo;

	return hbm_bus_find(&pseudo->bus[write], bank->group, of,
			    slots(hbm, MAX(ready, pseudo->floor[write])));
}

static inline bool was_open(const struct bank *bank, uint32_t row)
{
	const uint32_t *old = bank->old_row;

	G_STATIC_ASSERT(OLD_ROWS == 4);
	return (old[0] == row) | (old[1] == row) | (old[2] == row) | (old[3] == row);
}

/* A hit of a row that others wait to close goes before them, where its bursts fit before the
 * precharge that they have placed. Returns the clock of the first CAS, or 0. */
__attribute__((cold)) static uint64_t overtake(struct hbm *hbm, const struct bank *bank,
					       uint32_t row, struct hbm_bursts *of, bool write,
					       uint64_t t)
{
	uint64_t length = of->clocks + hbm->close[write];

	for (unsigned i = 0; i < OLD_ROWS; i++) {
		const struct old_row *old = &bank->old[i];
		uint64_t cas = MAX(t, old->act + (write ? hbm->t.rcd_wr : hbm->t.rcd_rd)), s;

		if (bank->old_row[i] != row || cas + length > old->pre)
			continue;
		s = find_slots(hbm, bank, of, write, cas);
		if (s * hbm->t.ccd_s + length > old->pre)
			continue;
		hbm_bus_take(&bank->pseudo->bus[write], &hbm->bus, bank->group, of, s);
		hbm_record_bursts(&hbm->record, write, of->bursts, s * hbm->t.ccd_s, hbm->t.ccd_l);
		return s * hbm->t.ccd_s;
	}
	return 0;
}

/* serve_row() behind the next refresh, or those that begin by `late`. */
static uint64_t serve_late(struct hbm *hbm, struct bank *bank, uint32_t row, struct hbm_bursts *of,
			   bool write, bool plain, uint64_t t, uint64_t late);

/* Opens the row and takes the bus for its bursts. Returns the clock of the first CAS. */
__attribute__((always_inline)) static inline uint64_t serve_row(struct hbm *hbm, struct bank *bank,
								uint32_t row, struct hbm_bursts *of,
								bool write, bool plain, uint64_t t)
{
	uint64_t act = 0, cas, s;

	follow_stripe(hbm, bank);
	if (t < bank->act && bank->row != row && was_open(bank, row) &&
	    (cas = overtake(hbm, bank, row, of, write, t)))
		return cas;
	if (G_UNLIKELY(!find_row(hbm, bank, row, write, plain, t, &act, &cas)))
		return serve_late(hbm, bank, row, of, write, plain, t, act);
	s = find_slots(hbm, bank, of, write, cas);
	cas = s * hbm->t.ccd_s;
	if (G_UNLIKELY(cas + of->before_refresh[write] > bank->refresh))
		return serve_late(hbm, bank, row, of, write, plain, t, cas);
	if (bank->row != row)
		open_row(hbm, bank, row, plain, act);
	bank->act_ok = MAX(bank->act_ok, cas + of->before_act[write]);
	hbm_bus_take(&bank->pseudo->bus[write], &hbm->bus, bank->group, of, s);
	if (!plain)
		hbm_record_bursts(&hbm->record, write, of->bursts, cas, hbm->t.ccd_l);
	return cas;
}

static __attribute__((noinline)) uint64_t serve_late(struct hbm *hbm, struct bank *bank,
						     uint32_t row, struct hbm_bursts *of,
						     bool write, bool plain, uint64_t t,
						     uint64_t late)
{
	pass_refresh(hbm, bank, late);
	return serve_row(hbm, bank, row, of, write, plain, t);
}

/* --- requests --- */

/* Pending writes go to their rows, where reads that are booked leave room. */
static void drain_writes(struct hbm *hbm, struct pseudo *pseudo, uint64_t t)
{
	struct hbm_bus *reads = &pseudo->bus[false], *writes = &pseudo->bus[true];
	const struct hbm_bus_shape *bus = &hbm->bus;
	uint64_t horizon = reads->horizon, from = t / hbm->t.ccd_s;

	hbm->work += pseudo->writes;
	hbm_bus_turn(writes, reads, bus, bus->to_own_read, bus->to_write, from);
	for (struct pending_write *w = pseudo->write, *end = w + pseudo->writes; w < end; w++) {
		struct bank *bank = bank_of(hbm, w->place);
		uint64_t first;

		if (hbm->record.call)
			hbm->record.place = hbm_map_place(&hbm->map, w->place);
		w->free = serve_row(hbm, bank, (uint32_t)w->place, w->of, true, false,
				    MAX(t, w->free));
		first = w->free / hbm->t.ccd_s;
		bus_close(reads, bus, bank->group, first + bus->to_read,
			  first + w->of->slots - 1 + bus->to_own_read);
	}
	pseudo->writes = 0;
	hbm_bus_turn(reads, writes, bus, bus->to_write, bus->to_read, from);
	if (reads->horizon > horizon)
		pseudo->written = reads->horizon;
}

static uint64_t write_row(struct hbm *hbm, struct pseudo *pseudo, uint64_t place,
			  struct hbm_bursts *of, uint64_t t)
{
	struct pending_write *w;

	if (pseudo->writes == hbm->write_limit)
		drain_writes(hbm, pseudo, t);
	w = &pseudo->write[pseudo->writes++];
	t = MAX(t, w->free);
	*w = (struct pending_write){ .place = place, .free = t, .of = of };
	return t + hbm->t.cwl + hbm->burst;
}

/* One piece of a row. */
__attribute__((always_inline)) static inline uint64_t
access_row(struct hbm *hbm, struct bank *bank, uint64_t place, struct hbm_bursts *of, bool write,
	   bool plain, uint64_t t, uint64_t *out_first)
{
	struct pseudo *pseudo = bank->pseudo;
	uint64_t done;

	t = MAX(t, *pseudo->slot);
	if (!plain && hbm->record.call)
		hbm->record.place = hbm_map_place(&hbm->map, place);
	if (write) {
		*out_first = done = write_row(hbm, pseudo, place, of, t);
	} else {
		*out_first = serve_row(hbm, bank, (uint32_t)place, of, false, plain, t) +
			     hbm->read_latency;
		done = *out_first + of->clocks;
	}
	*pseudo->slot++ = done;
	if (G_UNLIKELY(pseudo->slot == pseudo->queue_end))
		pseudo->slot = pseudo->queue;
	return done;
}

/* --- runs --- */

#define BULK_BURSTS (BUS_BURSTS + 1) /* from here on a row piece takes the bus in one go */

/* The earliest CAS behind all that is booked. */
static uint64_t behind_all(const struct hbm *hbm, const struct pseudo *pseudo, bool write)
{
	uint64_t horizon = pseudo->bus[false].horizon, t = horizon * hbm->t.ccd_s;

	if (horizon && (horizon == pseudo->written) != write)
		t += MAX(hbm->turn[!write], hbm->t.ccd_s) - hbm->t.ccd_s;
	return MAX(t, pseudo->floor[write]);
}

/* A piece of a row among many of one run: they fill the bus, so that only its length counts. */
static uint64_t bulk_row(struct hbm *hbm, uint64_t place, unsigned bursts, bool write, uint64_t t,
			 uint64_t *out_first)
{
	struct bank *bank = bank_of(hbm, place);
	struct pseudo *pseudo = bank->pseudo;
	uint64_t cas, end, act = 0;

	follow_stripe(hbm, bank);
	hbm->requests++;
	hbm->bursts += bursts;
	hbm->record.place = hbm_map_place(&hbm->map, place);
	while (!find_row(hbm, bank, (uint32_t)place, write, false, t, &act, &cas))
		pass_refresh(hbm, bank, act);
	if (bank->row != (uint32_t)place)
		open_row(hbm, bank, (uint32_t)place, false, act);
	cas = MAX(cas, behind_all(hbm, pseudo, write));
	end = work_until(hbm, cas, bursts * hbm->t.ccd_s);
	pseudo->floor[write] = end;
	pseudo->floor[!write] = end - hbm->t.ccd_s + hbm->turn[write];
	bank->act_ok = MAX(bank->act_ok, end - hbm->t.ccd_s + hbm->close[write] + hbm->t.rp);
	*out_first = cas + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
	return end + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
}

/* `stripes` whole stripes, each with its row in every bank: all pseudo channels do the same. */
static uint64_t whole_stripes(struct hbm *hbm, uint64_t offset, uint64_t stripes, bool write,
			      uint64_t t, uint64_t *out_first)
{
	uint64_t row_clocks = (UINT64_C(1) << hbm->map.bits[HBM_COLUMN]) * hbm->t.ccd_s;
	uint64_t bursts = (stripes << hbm->stripe_lg2) / hbm->burst_bytes;
	uint64_t rows = stripes * hbm->banks * hbm->pseudos;
	uint64_t start = t + hbm->t.rp + (write ? hbm->t.rcd_wr : hbm->t.rcd_rd);

	for (unsigned i = 0; i < hbm->pseudos; i++)
		start = MAX(start, behind_all(hbm, &hbm->pseudo[i], write));
	hbm->stripe++;
	hbm->stripe_row =
		(uint32_t)hbm_map_find(&hbm->map, offset + ((stripes - 1) << hbm->stripe_lg2));
	hbm->stripe_write = write;
	hbm->stripe_end = work_until(hbm, start, stripes * hbm->banks * row_clocks);
	for (unsigned i = 0; i < hbm->pseudos; i++) {
		hbm->pseudo[i].floor[write] = hbm->stripe_end;
		hbm->pseudo[i].floor[!write] = hbm->stripe_end + hbm->turn[write];
	}
	hbm->requests += rows;
	hbm->bursts += bursts;
	hbm->row_misses += rows;
	*out_first = start + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
	return hbm->stripe_end + (write ? hbm->t.cwl : hbm->t.cl) + hbm->burst;
}

/* The aligned block of 2^lg2 bytes at offset: one step for each row that it has a part of. */
static uint64_t aligned_block(struct hbm *hbm, uint64_t offset, unsigned lg2, bool write,
			      uint64_t t, uint64_t *out_first)
{
	unsigned bursts = 1u << hbm->columns_below[lg2];
	uint64_t rows = ((UINT64_C(1) << lg2) - 1) & ~(hbm->column_mask | (hbm->burst_bytes - 1));
	uint64_t end = 0, sub = 0, place, first, done;

	*out_first = UINT64_MAX;
	do {
		if (++hbm->work >= OFFER_WORK) {
			sim_lock_offer(hbm->lock);
			hbm->work = 0;
		}
		place = hbm_map_find(&hbm->map, offset | sub);
		if (bursts < BULK_BURSTS)
			done = access_row(hbm, bank_of(hbm, place), place, &hbm->bus.of[bursts],
					  write, false, t, &first);
		else
			done = bulk_row(hbm, place, bursts, write, t, &first);
		end = MAX(end, done);
		*out_first = first < *out_first ? first : *out_first;
		sub = (sub - rows) & rows;
	} while (sub);
	return end;
}

/* Any bursts from begin to stop. */
static uint64_t access_blocks(struct hbm *hbm, uint64_t begin, uint64_t stop, bool write,
			      uint64_t t, uint64_t *out_first)
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
			done = aligned_block(hbm, begin, lg2, write, t, &first);
			begin += UINT64_C(1) << lg2;
		}
		end = MAX(end, done);
		*out_first = first < *out_first ? first : *out_first;
	}
	return end;
}

/* A request that is no plain read. */
static __attribute__((noinline)) uint64_t access_any(struct hbm *hbm, uint64_t place,
						     struct hbm_bursts *of, uint64_t offset,
						     uint64_t bytes, bool write, uint64_t t,
						     uint64_t *out_first)
{
	uint64_t piece = hbm->burst_bytes, end;

	if (G_LIKELY(of))
		end = access_row(hbm, bank_of(hbm, place), place, of, write, false, t, out_first);
	else
		end = access_blocks(hbm, offset & ~(piece - 1),
				    (offset + bytes + piece - 1) & ~(piece - 1), write, t,
				    out_first);
	hbm->latest = MAX(hbm->latest, end);
	return end;
}

/* Those of an aligned block of one row. Else NULL. */
static inline struct hbm_bursts *row_bursts(struct hbm *hbm, uint64_t offset, uint64_t bytes)
{
	bool one = bytes - hbm->burst_bytes < hbm->row_bytes && !((offset | bytes) & (bytes - 1));

	return one ? &hbm->bus.of[bytes >> hbm->burst_lg2] : NULL;
}

static inline bool is_plain(const struct hbm *hbm, const struct hbm_bursts *of, bool write)
{
	return of && !write && hbm->plain;
}

/* Where the first byte of a request is. */
struct spot {
	uint64_t place; /* packed */
	struct bank *bank;
};

static inline struct spot find_spot(const struct hbm *hbm, uint64_t offset)
{
	uint64_t place = hbm_map_find(&hbm->map, offset);

	return (struct spot){ place, bank_of(hbm, place) };
}

__attribute__((always_inline)) static inline uint64_t
access_at(struct hbm *hbm, struct spot at, struct hbm_bursts *of, uint64_t pa, uint64_t bytes,
	  bool write, bool plain, uint64_t t, uint64_t *out_first_ps)
{
	uint64_t end, first;

	if (G_LIKELY(plain))
		end = access_row(hbm, at.bank, at.place, of, false, true, t, &first);
	else
		end = access_any(hbm, at.place, of, SIM_PA_OFFSET(pa), bytes, write, t, &first);
	*out_first_ps = first * hbm->tck_ps;
	return end * hbm->tck_ps;
}

uint64_t hbm_access(struct hbm *hbm, uint64_t offset, uint64_t bytes, bool write, uint64_t at_ps,
		    uint64_t *out_first_ps)
{
	struct hbm_bursts *of = row_bursts(hbm, offset, bytes);
	uint64_t first_ps, done_ps;

	hbm->bytes[write] += bytes;
	done_ps = access_at(hbm, find_spot(hbm, offset), of, offset, bytes, write,
			    is_plain(hbm, of, write), (at_ps + hbm->tck_ps - 1) / hbm->tck_ps,
			    &first_ps);
	if (out_first_ps)
		*out_first_ps = first_ps;
	return done_ps;
}

/* Apart, so that the compiler does not know where `of` is from: it would compute that again and
 * again. What the row behind needs is on its way to the host's caches meanwhile. */
static __attribute__((noinline)) void access_spots(struct hbm *hbm, struct sim_row *row,
						   const struct spot *at, unsigned count,
						   struct hbm_bursts *of, uint64_t bytes,
						   bool write, uint64_t origin_ps)
{
	const bool plain = is_plain(hbm, of, write);
	const uint64_t up = hbm->tck_ps - 1 - origin_ps; /* to the next clock */

	for (struct sim_row *end = row + count; row < end; row++, at++) {
		const struct pseudo *next = at[1].bank->pseudo;
		const struct hbm_bus *bus = &next->bus[false];
		uint64_t first_ps;

		__builtin_prefetch(next->slot, 1);
		__builtin_prefetch(&bus->row[bus->horizon / 64 % BUS_ROWS], 1);
		row->done_ps =
			origin_ps + access_at(hbm, *at, of, row->address, bytes, write, plain,
					      (row->at_ps + up) / hbm->tck_ps, &first_ps);
		row->first_ps = origin_ps + first_ps;
	}
}

void hbm_access_rows(struct hbm *hbm, struct sim_row *rows, unsigned count, uint64_t bytes,
		     bool write, uint64_t origin_ps)
{
	struct spot at[SIM_ROWS_MAX + 1];
	uint64_t all = 0;

	hbm->bytes[write] += count * bytes;
	for (unsigned i = 0; i < count; i++) {
		all |= rows[i].address;
		at[i] = find_spot(hbm, rows[i].address);
		__builtin_prefetch(at[i].bank);
	}
	at[count] = find_spot(hbm, 0); /* one more is looked at */
	access_spots(hbm, rows, at, count, row_bursts(hbm, all, bytes), bytes, write, origin_ps);
}

void hbm_get_counters(const struct hbm *hbm, struct sim_counters *out)
{
	uint64_t requests = hbm->requests, bursts = hbm->bursts, latest = hbm->latest;
	uint64_t slot = hbm->t.ccd_s;

	for (unsigned n = 1; n <= BUS_BURSTS; n++) {
		requests += hbm->bus.of[n].booked;
		bursts += hbm->bus.of[n].booked * n;
	}
	for (unsigned i = 0; i < hbm->pseudos; i++)
		latest = MAX(latest + slot,
			     hbm->pseudo[i].bus[false].horizon * slot + hbm->read_latency) -
			 slot;
	out->hbm_read_bytes = hbm->bytes[false];
	out->hbm_write_bytes = hbm->bytes[true];
	out->hbm_row_hits = requests - hbm->row_misses;
	out->hbm_row_misses = hbm->row_misses;
	out->hbm_bursts = bursts;
	out->hbm_refreshes = latest > hbm->refresh_period ? latest / hbm->refresh_period : 0;
	out->hbm_refreshes *= hbm->pseudos * (hbm->refresh_step ? hbm->banks : 1);
}
