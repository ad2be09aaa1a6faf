/* SPDX-License-Identifier: Apache-2.0
 *
 * The SVM window: who has which part of the address space. Owns the reservation of the window
 * itself, its 1 GiB heaps, the reservations that programs make in it, and the NoUC ranges outside
 * of it. It knows that mappings and allocations lie in there, not what they are.
 *
 * Every lookup is one step: an array over all addresses below 128 TiB, an entry a GiB; in it an
 * array of 2 MiB slots where one is needed. All functions are called with bsim.lock held, but
 * window_peek(), which a signal handler may call.
 */
#ifndef NPUSIM_BSIM_WINDOW_H
#define NPUSIM_BSIM_WINDOW_H

#include "memory/memory.h"

/* Reserves the window's addresses, as NPUSIM_WINDOW says. False, and *error (free()). */
bool window_open(struct bsim *bs, char **error);
/* Gives the records back. The addresses stay reserved: a stale pointer still traps. */
void window_close(struct bsim *bs);

/* Makes [va, va + bytes) slots of m, or of nothing where m is NULL. The range is slot aligned and
 * reserved. False: host memory. */
bool window_set_mapping(struct window *w, uint64_t va, uint64_t bytes, struct mapping *m);
/* True if every slot of the range is free of mappings; else *out_first is the first mapping. */
bool window_slots_clear(const struct window *w, uint64_t va, uint64_t bytes,
			struct mapping **out_first);

/* Addresses for reservations. Each returns NULL where there is no room, without a message. `bytes`
 * is rounded already. */
uint64_t window_find_heaps(struct window *w, enum window_area area, uint64_t count);
bool window_granules_free(const struct window *w, uint64_t va, uint64_t bytes, uint64_t *out_taken);
struct range *window_add(struct bsim *bs, enum range_kind kind, uint64_t va, uint64_t bytes);
struct range *window_cut(struct bsim *bs, uint64_t bytes, bool huge);
struct range *window_cut_at(struct bsim *bs, uint64_t va, uint64_t bytes, bool huge);
/* Takes the addresses from the host, too: errno says why it could not. */
struct range *window_add_nouc(struct bsim *bs, uint64_t va, uint64_t bytes);

/* `count` whole heaps for classic allocations, in the area that is asked for. NULL: no room
 * (message set). */
struct range *window_take(struct bsim *bs, const char *call, enum window_area area,
			  enum range_kind kind, uint64_t count);
/* Ends a heap of window_take(), or a reservation that nothing is mapped in. */
void window_drop(struct bsim *bs, struct range *range);

/* Addresses of the host: those, if nothing has them (errno); any that are aligned, or 0;
 * and back. */
bool window_host_take(uint64_t va, uint64_t bytes);
uint64_t window_host_find(uint64_t bytes, uint64_t align);
void window_host_give(uint64_t va, uint64_t bytes);
/* The record of a range that is in no granule any more. */
void window_retire(struct window *w, struct range *r);

/* Makes [va, va + bytes), all inside the window or a NoUC range, inaccessible again for the CPU. */
void window_close_to_cpu(uint64_t va, uint64_t bytes);

/* What lies in the way at va, in words, for a message; a static buffer a thread. */
const char *window_occupant(const struct window *w, uint64_t va);
/* The same for addresses of the host outside the window. */
const char *window_host_occupant(uint64_t va, uint64_t bytes);

#endif
