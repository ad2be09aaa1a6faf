/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses: where reservations and heaps lie, which hints are taken, NoUC ranges, a moved window.
 */
#include "space-rig.h"
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

SETUP(window)
{
	space_open("docs", NULL);
}

TEARDOWN(window)
{
	space_close();
}

#define NEEDS_DEFAULT_WINDOW()                                                       \
	do {                                                                         \
		if (!space_has_default_window())                                     \
			SKIP("the addresses of the real driver cannot be had here"); \
	} while (0)

/* ---- the driver's own addresses ----------------------------------------------------------------
 */

/* What an Ascend server gave a process that opens device 0 (msMemScope's sample of HAL events). The
 * file does not say which kind of memory an event asked for: rows of one heap have one kind here.
 * Rows marked `unseen` are not in the file, but must have been: their addresses are left out there.
 */
enum kind { TASKS, HUGE_HBM, PINNED, SMALL_DDR, HUGE_P2P, SMALL_P2P, SMALL_HBM, CODE, UNSEEN_HBM };

struct row {
	enum kind kind;
	uint64_t va, bytes;
	bool freed;
};

static const uint64_t kind_flags[] = {
	[TASKS] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_ADVISE_TS,
	[HUGE_HBM] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE,
	[PINNED] = MEM_HOST_VAL << MEM_VIRT_BIT,
	[SMALL_DDR] = MEM_DEV_VAL << MEM_VIRT_BIT,
	[HUGE_P2P] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE | MEM_ADVISE_P2P,
	[SMALL_P2P] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_ADVISE_P2P,
	[SMALL_HBM] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM,
	[CODE] = MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE | MEM_HOST_RW_DEV_RO,
};

static const struct row rows[] = {
	{ TASKS, 0x12c000000000, 16384, false },
	{ HUGE_HBM, 0x12c040000000, 2096640, false },
	{ HUGE_HBM, 0x12c040200000, 6356992, false },
	{ PINNED, 0x12c080000000, 6356992, false },
	{ HUGE_HBM, 0x12c040a00000, 1966080, false },
	{ PINNED, 0x12c080610000, 1966080, false },
	{ HUGE_HBM, 0x12c040c00000, 3018752, false },
	{ PINNED, 0x12c080800000, 3018752, false },
	{ SMALL_DDR, 0x12c0c0000000, 65536, false },
	{ HUGE_P2P, 0x12c100000000, 4194304, false },
	{ CODE, 0x124000000000, 2097152, false },
	{ SMALL_DDR, 0x12c0c0010000, 2, false },
	{ SMALL_P2P, 0x12c140000000, 1228800, false },
	{ HUGE_HBM, 0x12c041000000, 2097152, false },
	{ SMALL_DDR, 0x12c0c0011000, 512, false },
	{ SMALL_DDR, 0x12c0c0012000, 2, false },      /* unseen */
	{ HUGE_P2P, 0x12c100400000, 2097152, false }, /* unseen */
	{ SMALL_DDR, 0x12c0c0013000, 2, false },
	{ HUGE_P2P, 0x12c100600000, 2097152, false },
	{ HUGE_HBM, 0x12c041200000, 2097152, false },
	{ HUGE_HBM, 0x12c041400000, 2097152, false },
	{ PINNED, 0x12c0807f0000, 480, true },
	{ PINNED, 0x12c0807f0000, 480, true },
	{ PINNED, 0x12c0807f0000, 768, true },
	{ SMALL_HBM, 0x12c180000000, 32, false },
	{ SMALL_HBM, 0x12c180001000, 32, false },
	{ SMALL_HBM, 0x12c180002000, 32, false },
	{ SMALL_HBM, 0x12c180003000, 32, false },
	{ SMALL_HBM, 0x12c180004000, 659456, false },
	{ SMALL_HBM, 0x12c1800a5000, 659456, false },
	{ SMALL_HBM, 0x12c180146000, 4096, false },
	{ PINNED, 0x12c0807f0000, 4096, false },
	{ HUGE_P2P, 0x12c100800000, 2100544, false },
	{ SMALL_HBM, 0x12c180147000, 32, false },
	{ SMALL_DDR, 0x12c0c0014000, 2, false },
	{ HUGE_P2P, 0x12c100c00000, 2097152, false },
	{ SMALL_DDR, 0x12c0c0015000, 2, false },
	{ HUGE_P2P, 0x12c100e00000, 2097152, false },
	{ SMALL_DDR, 0x12c0c0016000, 2, false },
	{ HUGE_P2P, 0x12c101000000, 2097152, false },
	{ SMALL_DDR, 0x12c0c0017000, 2, false },
	{ HUGE_P2P, 0x12c101200000, 2097152, false },
	{ SMALL_HBM, 0x12c180148000, 32768, false }, /* unseen */
	{ SMALL_HBM, 0x12c180150000, 32768, false },
	{ HUGE_HBM, 0x12c041600000, 18874368, false },
};

TEST(window, allocations_lie_where_a_server_puts_them)
{
	NEEDS_DEFAULT_WINDOW();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		NOTE("row %zu, %llu bytes", i, (unsigned long long)rows[i].bytes);
		EXPECT_EQ(space_alloc(rows[i].bytes, kind_flags[rows[i].kind]), rows[i].va);
		if (rows[i].freed)
			EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(rows[i].va));
	}
}

TEST(window, first_addresses_are_the_drivers)
{
	NEEDS_DEFAULT_WINDOW();
	EXPECT_EQ(space_reserve(1 * GIB, 0), 0x12c000000000);
	EXPECT_EQ(space_reserve(69 * GIB, 0), 0x12c040000000);
	EXPECT_EQ(space_reserve(2 * MIB, 0), 0x12d180000000);
	EXPECT_EQ(space_reserve(64 * MIB, 0), 0x12d180200000);
	EXPECT_EQ(space_reserve(512, 0), 0x12d1c0000000);
}

/* ---- sizes -------------------------------------------------------------------------------------
 */

TEST(window, large_reservations_take_whole_gib)
{
	uint64_t a = space_reserve(513 * MIB, 0), b = space_reserve(1 * GIB + 1, 0);

	EXPECT_EQ(a % GIB, 0);
	EXPECT_EQ(b - a, 1 * GIB);
	EXPECT_EQ(space_reserve(1, 0) - b, 2 * GIB);
	EXPECT_EQ(space_place(a + GIB - 1).kind, NPU_PLACE_RESERVED);
	EXPECT_EQ(space_place(a).bytes, 1 * GIB);
}

TEST(window, small_ones_share_a_gib)
{
	uint64_t a = space_reserve(2 * MIB, 0), b = space_reserve(512 * MIB, 0);
	uint64_t c = space_reserve(508 * MIB, 0), d = space_reserve(4 * MIB, 0);

	EXPECT_EQ(b - a, 2 * MIB);
	EXPECT_EQ(c - b, 512 * MIB);
	EXPECT_EQ(d % GIB, 0); /* 2 MiB are left in the first */
	EXPECT_EQ(space_reserve(2 * MIB, 0), a + GIB - 2 * MIB);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(b));
	EXPECT_EQ(space_reserve(200 * MIB, 0), b);
}

TEST(window, an_address_comes_back_when_it_is_freed)
{
	uint64_t first = space_reserve(3 * GIB, 0);

	for (unsigned i = 0; i < 100; i++) {
		EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(first));
		EXPECT_EQ(space_reserve(3 * GIB, 0), first);
	}
}

TEST(window, runs_out_and_recovers)
{
	const struct window *w = bsim_of(drv)->window;
	uint64_t each = 128 * GIB, room = (w->end - w->normal_base) / each, count = 0;
	uint64_t got[64];
	void *va = NULL;

	if (room == 0 || room > 64)
		SKIP("a window of %llu parts", (unsigned long long)room);
	while (count < room)
		got[count++] = space_reserve(each, 0);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemAddressReserve, &va, each, 0, NULL, 0);
	EXPECT_CONTAINS(MESSAGE(), "no 137438953472 (128 GiB)");
	EXPECT_NULL(va);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(got[room / 2]));
	EXPECT_EQ(space_reserve(each, 0), got[room / 2]);
}

TEST(window, two_hundred_thousand_small_ones)
{
	const struct window *w = bsim_of(drv)->window;
	unsigned count = w->bytes < WINDOW_DEFAULT_BYTES ? 2000 : 200000;
	uint64_t *va = calloc(count, sizeof(*va));

	for (unsigned i = 0; i < count; i++)
		va[i] = space_reserve(2 * MIB, 0);
	EXPECT_EQ(bsim_of(drv)->window->reservation_count, count);
	for (unsigned i = 0; i < count; i += 2)
		EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(va[i]));
	EXPECT_EQ(space_place(va[0]).kind, NPU_PLACE_FREE);
	EXPECT_EQ(space_place(va[1]).kind, NPU_PLACE_RESERVED);
	for (unsigned i = 1; i < count; i += 2)
		EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(va[i]));
	EXPECT_EQ(w->reserved_bytes, 0);
	free(va);
}

/* ---- errors ------------------------------------------------------------------------------------
 */

TEST(window, refuses_bad_arguments)
{
	void *va = NULL;

	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressReserve, NULL, 2 * MIB, 0, NULL, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressReserve, &va, 0, 0, NULL, 0);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressReserve, &va, 2 * MIB, 1, NULL, 0);
	EXPECT_CONTAINS(MESSAGE(), "alignment is 1");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressReserve, &va, 2 * MIB, 0, NULL, 3);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemAddressReserve, &va, 129 * GIB, 0, NULL, 0);
	EXPECT_CODE(DRV_ERROR_OUT_OF_MEMORY, halMemAddressReserve, &va, SIZE_MAX, 0, NULL, 0);
	EXPECT_CODE(DRV_ERROR_NOT_SUPPORT, halMemAddressReserve, &va, GIB, 0, NULL,
		    MEM_RSV_TYPE_DEVICE_SHARE);
	EXPECT_NULL(va);
}

TEST(window, free_takes_the_start_of_a_reservation)
{
	uint64_t a = space_reserve(4 * MIB, 0);
	uint64_t p = space_alloc(2 * MIB, kind_flags[HUGE_HBM]);

	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, NULL);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(a + 2 * MIB));
	EXPECT_CONTAINS(MESSAGE(), "2097152 (2 MiB) into the reservation");
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(p));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, &a);
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(UINT64_MAX));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(WINDOW_HOST_END));
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(a));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(a));
}

TEST(window, hints_are_kept_apart)
{
	const struct window *w = bsim_of(drv)->window;
	uint64_t hint = w->normal_base + 10 * GIB;
	void *va = NULL;

	EXPECT_EQ(space_reserve(2 * MIB, hint), hint);
	EXPECT_NE(space_reserve(2 * MIB, 0) / GIB, hint / GIB);
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressReserve, &va, GIB, 0, at(hint), 0);
	EXPECT_CONTAINS(MESSAGE(), "lies the reservation at");
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressReserve, &va, 2 * MIB, 0, at(hint), 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(hint));
	EXPECT_EQ(space_reserve(4 * GIB, hint - GIB), hint - GIB);
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressReserve, &va, GIB, 0, at(w->base), 0);
	EXPECT_CONTAINS(MESSAGE(), "the driver's own part");
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressReserve, &va, 2 * GIB, 0, at(w->end - GIB), 0);
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressReserve, &va, GIB, 0, at(w->end), 0);
	EXPECT_CONTAINS(MESSAGE(), "not inside the device addresses");
}

/* ---- NoUC --------------------------------------------------------------------------------------
 */

SETUP(nouc)
{
	space_open("docs", "Ascend910_9391");
}

TEARDOWN(nouc)
{
	space_close();
}

static drvError_t reserve_nouc(uint64_t bytes, uint64_t va, void **out)
{
	return CALL(halMemAddressReserve, out, bytes, 0, at(va), MEM_RSV_TYPE_REMOTE_MAP | 1);
}

TEST(nouc, thirty_two_tib_at_once)
{
	uint64_t hint = 40 * TIB;
	drv_mem_handle_t *h = space_create(0, 2 * MIB), *k = space_create(1, 2 * MIB);
	void *va = NULL;

	if (!space_has_default_window())
		SKIP("no room for 32 TiB of addresses here");
	ASSERT_EQ(reserve_nouc(32 * TIB, hint, &va), DRV_ERROR_NONE);
	EXPECT_EQ((uintptr_t)va, hint);
	space_map(hint + 31 * TIB, 2 * MIB, h);
	space_map(hint, 2 * MIB, k); /* not bound to one device */
	EXPECT_EQ(space_place(hint + 31 * TIB).kind, NPU_PLACE_MAPPED);
	EXPECT_CODE(DRV_ERROR_BUSY, halMemAddressFree, va);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(hint));
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(hint + 31 * TIB));
	EXPECT_CODE(DRV_ERROR_INVALID_VALUE, halMemAddressFree, at(hint + GIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, va);
	EXPECT_EQ(reserve_nouc(1 * GIB, hint, &va), DRV_ERROR_NONE);
}

TEST(nouc, says_what_is_in_the_way)
{
	static char own[4096];
	uint64_t there = (uintptr_t)own & ~(GIB - 1);
	void *va = NULL;

	EXPECT_EQ(reserve_nouc(GIB, 0, &va), DRV_ERROR_NOT_SUPPORT);
	EXPECT_EQ(reserve_nouc(GIB + MIB, 40 * TIB, &va), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(reserve_nouc(GIB, 40 * TIB + MIB, &va), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(reserve_nouc(GIB, 20 * TIB, &va), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_EQ(reserve_nouc(GIB, 200 * TIB, &va), DRV_ERROR_OUT_OF_MEMORY);
	EXPECT_CONTAINS(MESSAGE(), "ends the address space of this host");
	EXPECT_EQ(reserve_nouc(127 * TIB, 40 * TIB, &va), DRV_ERROR_OUT_OF_MEMORY);
	if (there >= 24 * TIB) {
		EXPECT_EQ(reserve_nouc(GIB, there, &va), DRV_ERROR_OUT_OF_MEMORY);
		EXPECT_CONTAINS(MESSAGE(), "space-window");
	}
	EXPECT_NULL(va);
}

/* ---- a moved window ----------------------------------------------------------------------------
 */

/* Where there is room beside each sanitizer's own memory. */
/* ---- which place a reservation takes ---- */

#define FIT_SLABS  6u
#define FIT_LIVE   400u
#define FIT_ROUNDS 6000u

/* Whose slots of a few heaps are, one by one; a heap of which none is taken is not there. */
struct fit {
	uint64_t base;
	bool taken[FIT_SLABS][WINDOW_SLOTS];
	unsigned used[FIT_SLABS];
};

static void fit_set(struct fit *fit, uint64_t va, unsigned slots, bool taken)
{
	unsigned slab = (unsigned)((va - fit->base) / GIB), first = va / WINDOW_SLOT % WINDOW_SLOTS;

	for (unsigned s = first; s < first + slots; s++)
		fit->taken[slab][s] = taken;
	fit->used[slab] += taken ? slots : -slots;
}

static uint64_t fit_find(const struct fit *fit, unsigned slots)
{
	for (unsigned slab = 0; slab < FIT_SLABS; slab++)
		for (unsigned s = 0, run = 0; fit->used[slab] > 0 && s < WINDOW_SLOTS; s++) {
			run = fit->taken[slab][s] ? 0 : run + 1;
			if (run == slots)
				return fit->base + slab * GIB + (s + 1 - slots) * WINDOW_SLOT;
		}
	for (unsigned slab = 0; slab < FIT_SLABS; slab++)
		if (fit->used[slab] == 0)
			return fit->base + slab * GIB;
	return 0;
}

/* The lowest place that fits in a heap that is there, else the lowest free heap. */
TEST(window, reservation_takes_the_lowest_place_that_fits)
{
	static struct fit fit;
	static struct {
		uint64_t va;
		unsigned slots;
	} live[FIT_LIVE];
	uint64_t random = 1, first = space_reserve(2 * MIB, 0), room = FIT_SLABS * WINDOW_SLOTS;

	memset(&fit, 0, sizeof(fit));
	fit.base = first & ~(GIB - 1);
	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(first));
	for (unsigned round = 0; round < FIT_ROUNDS && !harness_has_failed(); round++) {
		unsigned i, slots;

		random = random * 6364136223846793005 + 1442695040888963407;
		i = (unsigned)(random >> 33) % FIT_LIVE;
		slots = (random >> 50 & 7) ? 1 + (unsigned)(random >> 53) % 4
					   : 1 + (unsigned)(random >> 53) % 256;
		if (live[i].slots > 0) {
			EXPECT_CODE(DRV_ERROR_NONE, halMemAddressFree, at(live[i].va));
			fit_set(&fit, live[i].va, live[i].slots, false);
			room += live[i].slots;
			live[i].slots = 0;
		} else if (slots * 3 < room) {
			live[i].slots = slots;
			live[i].va = fit_find(&fit, slots);
			if (live[i].va == 0) { /* a heap that is not watched here */
				live[i].slots = 0;
				continue;
			}
			ASSERT_EQ(space_reserve(slots * WINDOW_SLOT, 0), live[i].va);
			fit_set(&fit, live[i].va, slots, true);
			room -= slots;
		}
	}
}

#ifdef __SANITIZE_ADDRESS__
#define MOVED_BASE UINT64_C(0x200000000000)
#define MOVED_TEXT "0x200000000000"
#else
#define MOVED_BASE UINT64_C(0x1000000000)
#define MOVED_TEXT "0x1000000000"
#endif

TEST(moved_window, lies_where_the_variable_says)
{
	const struct window *w;
	uint64_t a;

	setenv("NPUSIM_WINDOW", MOVED_TEXT, 1);
	space_open("docs", NULL);
	unsetenv("NPUSIM_WINDOW");
	w = bsim_of(drv)->window;
	ASSERT_NOT_NULL(w);
	a = space_reserve(2 * GIB, 0);
	EXPECT_EQ(w->base, MOVED_BASE);
	EXPECT_GE(w->bytes, 64 * GIB);
	EXPECT_EQ(a, w->base + w->bytes / 32 * 11);
	space_map(a, 2 * MIB, space_create(0, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	space_close();
}

TEST(moved_window, refuses_what_cannot_be_had)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	setenv("NPUSIM_WINDOW", "0x7ffff0000000", 1);
	space_open_closed("docs", NULL);
	RETURN_IF_FATAL();
	EXPECT_CODE(DRV_ERROR_OPEN_FAILED, halDeviceOpen, 0, &in, &out);
	EXPECT_CONTAINS(MESSAGE(), "NPUSIM_WINDOW=0x7ffff0000000");
	unsetenv("NPUSIM_WINDOW");
	space_close();
}

TEST(moved_window, drivers_place_is_had_whole_or_not_at_all)
{
	void *last = (void *)(uintptr_t)(WINDOW_DEFAULT_BASE + WINDOW_DEFAULT_BYTES - 4096);

	space_open("docs", NULL);
	if (!space_has_default_window()) {
		space_close();
		SKIP("the addresses of the real driver cannot be had here");
	}
	space_close();
	setenv("NPUSIM_WINDOW", MOVED_TEXT, 1); /* else the last one stays reserved */
	space_open("docs", NULL);
	space_close();
	unsetenv("NPUSIM_WINDOW");
	ASSERT_EQ(mmap(last, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		       0),
		  last);
	space_open("docs", NULL);
	EXPECT_NE(bsim_of(drv)->window->base, WINDOW_DEFAULT_BASE);
	space_close();
	munmap(last, 4096);
}
