/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a made-up history of any length to the standard output: for measuring readers and
 * replays, and for tests that memory does not grow with a file. The same arguments give the same
 * bytes. It knows no reader.
 *
 *   trace-gen calls|blocks|memscope EVENTS [LIVE]
 *
 * calls: an npusim trace of calls; blocks: one of alloc and free lines over segments; memscope: a
 * CSV dump of msMemScope whose rows are a little out of order. LIVE: how many things live at a
 * time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_DEFAULT 4000
#define MIB          (UINT64_C(1) << 20)
#define ROW_BYTES    256
#define WINDOW       32 /* rows of a dump change places within it */

static uint64_t random_state = 1;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % below;
}

static uint64_t stamp(uint64_t event)
{
	return 1000 + event * 850;
}

static void begin_line(uint64_t event)
{
	printf("@%" PRIu64 " ~%" PRIu64 " :1.1 ", stamp(event), stamp(event) * 1000);
}

static void begin_trace(void)
{
	puts("npusim-trace 1\ninfo soc=Ascend910B1 devices=1 program=trace-gen");
}

/* ---- calls: half of the things are classic allocations, half are handles mapped ---- */

static uint64_t get_thing(uint64_t event, uint64_t slot, uint64_t number)
{
	uint64_t size = 2 * MIB;

	begin_line(event);
	if (slot % 2 == 0) {
		printf("malloc a%" PRIu64 " size=%" PRIu64 " device=0 page=2m => 0\n", number,
		       size * (1 + draw(3)));
		return 1;
	}
	printf("create h%" PRIu64 " size=%" PRIu64 " device=0 page=2m => 0\n", number, size);
	begin_line(event + 1);
	printf("map r1+%" PRIu64 " size=%" PRIu64 " handle=h%" PRIu64 " => 0\n", slot / 2 * size,
	       size, number);
	return 2;
}

static uint64_t give_thing(uint64_t event, uint64_t slot, uint64_t number)
{
	begin_line(event);
	if (slot % 2 == 0) {
		printf("mfree a%" PRIu64 " => 0\n", number);
		return 1;
	}
	printf("unmap r1+%" PRIu64 " => 0\n", slot / 2 * 2 * MIB);
	begin_line(event + 1);
	printf("release h%" PRIu64 " => 0\n", number);
	return 2;
}

static void calls(uint64_t events, uint64_t *numbers, uint64_t live)
{
	uint64_t next = 1, event = 1;

	begin_trace();
	begin_line(0);
	printf("reserve r1 size=%" PRIu64 " flags=1 => 0\n", 64 * 1024 * MIB);
	while (event < events) {
		uint64_t slot = draw(live);
		if (numbers[slot] == 0) {
			numbers[slot] = next++;
			event += get_thing(event, slot, numbers[slot]);
		} else {
			event += give_thing(event, slot, numbers[slot]);
			numbers[slot] = 0;
		}
	}
}

/* ---- blocks: a segment comes or goes with every hundredth block ---- */

#define SEGMENTS 64

static void segment_line(uint64_t event, uint64_t *segments, uint64_t *next)
{
	uint64_t slot = draw(SEGMENTS);

	begin_line(event);
	if (segments[slot] == 0) {
		segments[slot] = (*next)++;
		printf("segment_alloc a%" PRIu64 " device=0 size=%" PRIu64 "\n", segments[slot],
		       20 * MIB);
	} else {
		printf("segment_free a%" PRIu64 " device=0 size=%" PRIu64 "\n", segments[slot],
		       20 * MIB);
		segments[slot] = 0;
	}
}

static void blocks(uint64_t events, uint64_t *numbers, uint64_t live)
{
	uint64_t next = 1, next_segment = 1, segments[SEGMENTS] = { 0 };

	begin_trace();
	for (uint64_t event = 0; event < events; event++) {
		uint64_t slot = draw(live);
		if (event % 100 == 0) {
			segment_line(event, segments, &next_segment);
			continue;
		}
		begin_line(event);
		if (numbers[slot] == 0) {
			numbers[slot] = next++;
			printf("alloc b%" PRIu64 " size=%" PRIu64 " device=0\n", numbers[slot],
			       512 * (1 + draw(8192)));
		} else {
			printf("free b%" PRIu64 " device=0\n", numbers[slot]);
			numbers[slot] = 0;
		}
	}
}

/* ---- memscope: addresses come again, and rows wait a little before they are written ---- */

static char waiting[WINDOW][ROW_BYTES];

static void put_row(const char *row)
{
	char *place = waiting[draw(WINDOW)];

	fputs(place, stdout);
	snprintf(place, ROW_BYTES, "%s", row);
}

static void memscope_row(uint64_t id, const char *event, const char *type, uint64_t va,
			 uint64_t size)
{
	char row[ROW_BYTES];

	snprintf(row, sizeof row,
		 "%" PRIu64 ",%s,%s,N/A,%" PRIu64 ",4711,4712,0,%" PRIu64 ",\"{addr:%" PRIu64
		 ",size:%" PRIu64 ",owner:,total:%" PRIu64 ",used:%" PRIu64 "}\",,\n",
		 id, event, type, UINT64_C(1746006014162153000) + stamp(id), va, va, size,
		 512 * MIB, size);
	put_row(row);
}

static void memscope(uint64_t events, uint64_t *sizes, uint64_t live)
{
	uint64_t base = UINT64_C(0x12c040000000), segments[SEGMENTS] = { 0 };

	puts("ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,"
	     "Call Stack(Python),Call Stack(C)");
	for (uint64_t id = 1; id <= events; id++) {
		uint64_t slot = draw(id % 100 == 1 ? SEGMENTS : live);
		uint64_t *size = id % 100 == 1 ? &segments[slot] : &sizes[slot];
		uint64_t fresh = id % 100 == 1 ? 20 * MIB : 512 * (1 + draw(8192));
		const char *type = id % 100 == 1 ? "HAL" : "PTA";
		uint64_t va = base + slot * 32 * MIB;

		memscope_row(id, *size ? "FREE" : "MALLOC", type, va, *size ? *size : fresh);
		*size = *size ? 0 : fresh;
	}
	for (int i = 0; i < WINDOW; i++)
		fputs(waiting[i], stdout);
}

static int usage(void)
{
	fputs("usage: trace-gen calls|blocks|memscope EVENTS [LIVE]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(uint64_t events, uint64_t *slots, uint64_t live);
	} kinds[] = { { "calls", calls }, { "blocks", blocks }, { "memscope", memscope } };
	uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t live = argc > 3 ? strtoull(argv[3], NULL, 10) : LIVE_DEFAULT;

	if (argc < 3 || argc > 4 || events == 0 || live == 0)
		return usage();
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		uint64_t *slots = calloc(live, sizeof *slots);
		if (slots == NULL)
			return 1;
		kinds[i].write(events, slots, live);
		free(slots);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	return usage();
}
