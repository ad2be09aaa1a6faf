/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the commands until the end, adds the refreshes, and sorts them.
 */
#include "commands.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/hbm/hbm-record.h"

struct command {
	uint64_t clock;
	struct hbm_place place;
	enum hbm_command command;
};

static struct {
	FILE *file;
	GArray *all; /* struct command */
} commands;

static void add(void *ctx, enum hbm_command command, const struct hbm_place *place, uint64_t clock)
{
	const struct command c = { clock, *place, command };

	(void)ctx;
	g_array_append_val(commands.all, c);
}

char *commands_begin(const char *path)
{
	commands.file = fopen(path, "we");
	commands.all = g_array_new(FALSE, FALSE, sizeof(struct command));
	hbm_record_next = (struct hbm_record){ .call = add };
	return commands.file ? NULL : g_strdup_printf("%s: %s", path, g_strerror(errno));
}

/* Of one clock and channel, precharges come before activations. */
static int compare(gconstpointer a, gconstpointer b)
{
	const struct command *x = a, *y = b;

	if (x->clock != y->clock)
		return x->clock < y->clock ? -1 : 1;
	if (x->place.pseudo != y->place.pseudo)
		return x->place.pseudo < y->place.pseudo ? -1 : 1;
	return (y->command == HBM_PRECHARGE) - (x->command == HBM_PRECHARGE);
}

/* A refresh of bank `bank`, or of all (`banks` from 0 on), that begins at `clock`: the rows are
 * closed first. `open`: the rows of each channel's banks. */
static void refresh(const struct sim_profile *p, uint32_t *open, unsigned bank, unsigned count,
		    uint64_t clock)
{
	unsigned pseudos = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels;
	unsigned banks = p->hbm_bank_groups * p->hbm_banks;
	uint64_t closed = clock + p->hbm_clocks.rtp;

	for (unsigned pseudo = 0; pseudo < pseudos; pseudo++) {
		for (unsigned b = bank; b < bank + count; b++) {
			uint32_t *row = &open[pseudo * banks + b];

			if (*row != UINT32_MAX)
				add(NULL, HBM_PRECHARGE, &(struct hbm_place){ pseudo, b, *row, 0 },
				    closed);
			*row = UINT32_MAX;
		}
		add(NULL, HBM_REFRESH, &(struct hbm_place){ pseudo, bank, 0, 0 },
		    closed + p->hbm_clocks.rp);
	}
}

static void add_refreshes(const struct sim_profile *p)
{
	unsigned banks = p->hbm_bank_groups * p->hbm_banks, each = p->hbm_refresh_per_bank;
	unsigned rows = p->hbm_stacks * p->hbm_channels * p->hbm_pseudo_channels * banks;
	uint64_t step = each ? p->hbm_clocks.refi_sb : p->hbm_clocks.refi;
	uint64_t next = each ? banks : 1; /* of the refreshes */
	g_autofree uint32_t *open = g_new(uint32_t, rows);
	guint count = commands.all->len;

	memset(open, 0xff, rows * sizeof(*open));
	for (guint i = 0; i < count; i++) {
		const struct command c = g_array_index(commands.all, struct command, i);

		for (; next * step <= c.clock; next++)
			refresh(p, open, each ? next % banks : 0, each ? 1 : banks, next * step);
		if (c.command == HBM_ACTIVATE || c.command == HBM_PRECHARGE)
			open[c.place.pseudo * banks + c.place.bank] =
				c.command == HBM_ACTIVATE ? c.place.row : UINT32_MAX;
	}
}

char *commands_end(const struct sim_profile *p, uint64_t bursts)
{
	const char *const names[] = {
		[HBM_ACTIVATE] = "activate",
		[HBM_PRECHARGE] = "precharge",
		[HBM_READ] = "read",
		[HBM_WRITE] = "write",
		[HBM_REFRESH] = p->hbm_refresh_per_bank ? "refresh_bank" : "refresh",
	};
	uint64_t recorded = 0;

	g_array_sort(commands.all, compare);
	if (p->hbm_refresh)
		add_refreshes(p);
	g_array_sort(commands.all, compare);
	for (guint i = 0; i < commands.all->len; i++) {
		const struct command *c = &g_array_index(commands.all, struct command, i);

		recorded += c->command == HBM_READ || c->command == HBM_WRITE;
		fprintf(commands.file, "%-18" PRIu64 " %-12s %3u %3u %3u %3u %#10x %#6x\n",
			c->clock, names[c->command], c->place.pseudo, 0,
			c->place.bank / p->hbm_banks, c->place.bank % p->hbm_banks, c->place.row,
			c->place.column);
	}
	g_array_unref(commands.all);
	if (fclose(commands.file) != 0)
		return g_strdup_printf("the commands cannot be written: %s", g_strerror(errno));
	return recorded == bursts
		       ? NULL
		       : g_strdup("accesses of this size are booked in one step, without "
				  "commands: use a smaller --access");
}
