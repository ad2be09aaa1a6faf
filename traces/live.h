/* SPDX-License-Identifier: Apache-2.0
 *
 * What lives, by its address and a tag (a device, a kind): a table of sizes for millions of
 * comings and goings, as large as the most that lived at a time. It knows no past (ledger.h does)
 * and adds nothing up.
 */
#ifndef NPUSIM_TRACES_LIVE_H
#define NPUSIM_TRACES_LIVE_H

#include <glib.h>

struct live;
struct live_entry {
	guint64 address;
	guint64 value;
	guint32 tag;
	guint32 used;
};

struct live *live_new(void);
void live_free(struct live *live);
guint64 live_count(const struct live *live);
/* NULL: it is not there. Valid until the next call that changes the table. */
struct live_entry *live_find(const struct live *live, guint64 address, guint32 tag);
/* Puts it there, in place of what is there. */
void live_put(struct live *live, guint64 address, guint32 tag, guint64 value);
/* `entry`: as live_find() gave it. */
void live_remove(struct live *live, struct live_entry *entry);

/* For GHashTable, keys guint64 *: addresses that are multiples of large powers of two spread, as
 * they do not with g_int64_hash(). */
guint live_hash_address(gconstpointer key);

#endif
