/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory behaviour of a small language model that is served: weights that are put to sleep and
 * woken up, an allocator with expandable segments for activations, a cache that grows with each
 * request. It computes nothing. It prints what it knows of its own memory and, if NPUSIM_TRACE
 * names a file, adds its blocks to the trace (FORMAT.md, "Recording").
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

#define MIB              (UINT64_C(1) << 20)
#define LAYERS           24
#define LAYER_BYTES      (48 * MIB + 6 * MIB)
#define HEAD_BYTES       (310 * MIB)
#define HIDDEN           2048
#define WIDE             11008
#define ABOUT            "a language model is served, lends its accelerator, and is served again"
#define REQUESTS         96
#define BATCH_MAX        16
#define CACHE_BLOCK      (2 * MIB) /* of 64 tokens, all layers */
#define BLOCK_TOKENS     64
#define CACHE_BLOCKS_MAX 32

static void check(aclError code, const char *call)
{
	if (code == ACL_SUCCESS)
		return;
	fprintf(stderr, "%s answered %d: %s\n", call, code, aclGetRecentErrMsg());
	exit(1);
}

static uint32_t dice(uint32_t sides)
{
	static uint32_t state = 20;
	state = state * 1664525 + 1013904223;
	return (state >> 8) % sides;
}

/* ---- the program's own account, on stdout and in the trace ---- */

static struct {
	uint64_t physical, peak_physical, live, peak_live, obtained, calls, blocks;
	int trace; /* file descriptor, or -1 */
} own = { .trace = -1 };

/* %p in the name stands for the process id, as it does for the recorder. */
static void open_trace(void)
{
	const char *name = getenv("NPUSIM_TRACE");
	const char *mark = name ? strstr(name, "%p") : NULL;
	char path[4096];
	int length;

	if (name == NULL || *name == '\0')
		return;
	if (mark)
		length = snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - name), name,
				  (int)getpid(), mark + 2);
	else
		length = snprintf(path, sizeof path, "%s", name);
	own.trace = length < (int)sizeof path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	if (own.trace < 0)
		fprintf(stderr, "the blocks are not in the trace: %s cannot be opened\n", name);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	char line[256];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (own.trace >= 0 && write(own.trace, line, (size_t)length) != length) {
		fprintf(stderr, "the trace cannot be written: %s\n", strerror(errno));
		exit(1);
	}
}

static void say_about(void)
{
	char text[200] = "info about=";
	size_t length = strlen(text);
	for (const char *c = ABOUT; *c; c++) {
		if (*c == ' ')
			length += (size_t)snprintf(text + length, sizeof text - length, "%%20");
		else
			text[length++] = *c;
	}
	say("%.*s\n", (int)length, text);
}

static uint64_t note_alloc(uint64_t size, const char *va)
{
	own.live += size;
	if (own.live > own.peak_live)
		own.peak_live = own.live;
	own.blocks++;
	say("alloc b%" PRIu64 " size=%" PRIu64 " device=0 va=%p\n", own.blocks, size,
	    (const void *)va);
	return own.blocks;
}

static void note_free(uint64_t block, uint64_t size)
{
	own.live -= size;
	say("free b%" PRIu64 " device=0\n", block);
}

/* ---- physical memory ---- */

static char *reserve(uint64_t size)
{
	void *va;
	check(aclrtReserveMemAddress(&va, size, 0, NULL, 1), "aclrtReserveMemAddress");
	own.calls++;
	return va;
}

static aclrtDrvMemHandle map_new(char *va, uint64_t size)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { .id = 0,
						    .type = ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle;
	check(aclrtMallocPhysical(&handle, size, &prop, 0), "aclrtMallocPhysical");
	check(aclrtMapMem(va, size, 0, handle, 0), "aclrtMapMem");
	own.calls += 2;
	own.physical += size;
	own.obtained += size;
	if (own.physical > own.peak_physical)
		own.peak_physical = own.physical;
	return handle;
}

static void unmap(char *va, uint64_t size, aclrtDrvMemHandle handle)
{
	check(aclrtUnmapMem(va), "aclrtUnmapMem");
	check(aclrtFreePhysical(handle), "aclrtFreePhysical");
	own.calls += 2;
	own.physical -= size;
}

/* ---- an allocator with one expandable segment ---- */

enum state { UNMAPPED, FREE, USED };

struct block {
	uint64_t start, size, requested;
	uint64_t id; /* in the trace */
	enum state state;
	struct block *previous, *next; /* by address */
};
struct segment {
	char *base;
	uint64_t step; /* mapped and unmapped at a time, and aligned to it */
	aclrtDrvMemHandle *handles;
	struct block *first;
};

static struct block *block_new(uint64_t start, uint64_t size, enum state state)
{
	struct block *b = calloc(1, sizeof *b);
	if (b == NULL)
		exit(1);
	*b = (struct block){ .start = start, .size = size, .state = state };
	return b;
}

static void segment_open(struct segment *s, uint64_t step, uint64_t size)
{
	s->base = reserve(size);
	s->step = step;
	s->handles = calloc(size / step, sizeof *s->handles);
	s->first = block_new(0, size / step * step, UNMAPPED);
	if (s->handles == NULL)
		exit(1);
}

/* Cuts b after `size` bytes; the rest keeps its state. */
static void split(struct block *b, uint64_t size)
{
	if (b->size == size)
		return;
	struct block *rest = block_new(b->start + size, b->size - size, b->state);
	rest->previous = b;
	rest->next = b->next;
	if (b->next)
		b->next->previous = rest;
	b->next = rest;
	b->size = size;
}

/* Joins b with neighbours of its state; what is left of it. */
static struct block *join(struct block *b)
{
	if (b->previous && b->previous->state == b->state)
		b = b->previous;
	while (b->next && b->next->state == b->state) {
		struct block *gone = b->next;
		b->size += gone->size;
		b->next = gone->next;
		if (gone->next)
			gone->next->previous = b;
		free(gone);
	}
	return b;
}

static struct block *best_fit(struct segment *s, uint64_t size)
{
	struct block *best = NULL;
	for (struct block *b = s->first; b; b = b->next) {
		if (b->state == FREE && b->size >= size && (best == NULL || b->size < best->size))
			best = b;
	}
	return best;
}

/* Maps as many steps as make room for `size`, a free block before them used first. */
static struct block *grow(struct segment *s, uint64_t size)
{
	for (struct block *b = s->first; b; b = b->next) {
		uint64_t before = b->previous && b->previous->state == FREE ? b->previous->size : 0;
		uint64_t bytes = (size - before + s->step - 1) / s->step * s->step;
		if (b->state != UNMAPPED || b->size < bytes)
			continue;
		split(b, bytes);
		for (uint64_t at = b->start; at < b->start + bytes; at += s->step)
			s->handles[at / s->step] = map_new(s->base + at, s->step);
		b->state = FREE;
		return join(b);
	}
	fprintf(stderr, "the segment is full\n");
	exit(1);
}

static struct block *take(struct segment *s, uint64_t requested)
{
	uint64_t size = (requested + 511) / 512 * 512;
	struct block *b = best_fit(s, size);
	if (b == NULL)
		b = grow(s, size);
	split(b, size);
	b->state = USED;
	b->requested = requested;
	b->id = note_alloc(requested, s->base + b->start);
	return b;
}

static void give(struct block *b)
{
	note_free(b->id, b->requested);
	b->state = FREE;
	join(b);
}

/* Unmaps the steps that are free as a whole, as empty_cache does. */
static void trim(struct segment *s)
{
	for (struct block *b = s->first; b; b = b->next) {
		uint64_t start = (b->start + s->step - 1) / s->step * s->step;
		uint64_t end = (b->start + b->size) / s->step * s->step;
		if (b->state != FREE || start >= end)
			continue;
		if (start > b->start) {
			split(b, start - b->start);
			b = b->next;
		}
		split(b, end - start);
		for (uint64_t at = start; at < end; at += s->step)
			unmap(s->base + at, s->step, s->handles[at / s->step]);
		b->state = UNMAPPED;
		b = join(b);
	}
}

static void segment_close(struct segment *s)
{
	trim(s);
	check(aclrtReleaseMemAddress(s->base), "aclrtReleaseMemAddress");
	own.calls++;
	while (s->first) {
		struct block *next = s->first->next;
		free(s->first);
		s->first = next;
	}
	free(s->handles);
}

/* ---- weights: one reservation each, which stays while they sleep ---- */

struct weights {
	char *va;
	uint64_t size, id;
	aclrtDrvMemHandle handle;
};

static void wake(struct weights *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (w[i].va == NULL)
			w[i].va = reserve(w[i].size);
		w[i].handle = map_new(w[i].va, w[i].size);
		w[i].id = note_alloc(w[i].size, w[i].va);
	}
}

static void put_to_sleep(struct weights *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		note_free(w[i].id, w[i].size);
		unmap(w[i].va, w[i].size, w[i].handle);
	}
}

/* ---- serving ---- */

struct request {
	unsigned tokens, wanted, blocks;
	bool is_new; /* its prompt is yet to be read */
	struct block *cache[CACHE_BLOCKS_MAX];
};
struct server {
	struct segment small, large, cache;
	struct request batch[BATCH_MAX];
	unsigned running, served;
};

static void fill_cache(struct server *s, struct request *r)
{
	while (r->blocks * BLOCK_TOKENS < r->tokens && r->blocks < CACHE_BLOCKS_MAX)
		r->cache[r->blocks++] = take(&s->cache, CACHE_BLOCK);
}

static void admit(struct server *s, unsigned prompt_max)
{
	while (s->running < BATCH_MAX && s->served < REQUESTS && dice(3) > 0) {
		struct request *r = &s->batch[s->running++];
		*r = (struct request){ .tokens = 32 + dice(prompt_max), .is_new = true };
		r->wanted = r->tokens + 64 + dice(192);
		s->served++;
		fill_cache(s, r);
	}
}

/* One step for the whole batch: activations come and go, the cache grows. A new request brings its
 * whole prompt. */
static void step(struct server *s)
{
	uint64_t tokens = 0;
	for (unsigned i = 0; i < s->running; i++)
		tokens += s->batch[i].is_new ? s->batch[i].tokens : 1;
	struct block *positions = take(&s->small, tokens * 8);
	struct block *hidden = take(&s->large, tokens * HIDDEN * 2);
	struct block *query = take(&s->large, tokens * HIDDEN * 6);
	struct block *attention = take(&s->large, tokens * HIDDEN * 2);
	give(query);
	struct block *wide = take(&s->large, tokens * WIDE * 4);
	give(attention);
	struct block *logits = take(&s->large, (uint64_t)s->running * 151936 * 4);
	give(wide);
	for (unsigned i = 0; i < s->running; i++) {
		s->batch[i].is_new = false;
		s->batch[i].tokens += 16;
		fill_cache(s, &s->batch[i]);
	}
	give(hidden);
	give(positions);
	give(logits);
}

static void retire(struct server *s)
{
	for (unsigned i = 0; i < s->running;) {
		struct request *r = &s->batch[i];
		if (r->tokens < r->wanted) {
			i++;
			continue;
		}
		for (unsigned b = 0; b < r->blocks; b++)
			give(r->cache[b]);
		*r = s->batch[--s->running];
	}
}

static void serve(struct server *s, unsigned until, unsigned prompt_max)
{
	while (s->served < until || s->running > 0) {
		if (s->served < until)
			admit(s, prompt_max);
		if (s->running > 0)
			step(s);
		retire(s);
	}
}

static void report(void)
{
	printf("peak_physical_bytes=%" PRIu64 "\npeak_live_bytes=%" PRIu64
	       "\nobtained_bytes=%" PRIu64 "\nvmm_calls=%" PRIu64 "\nblocks=%" PRIu64 "\n",
	       own.peak_physical, own.peak_live, own.obtained, own.calls, own.blocks);
}

int main(void)
{
	struct weights weights[LAYERS + 1] = { { .size = HEAD_BYTES } };
	struct server server = { .running = 0 };

	for (unsigned i = 1; i <= LAYERS; i++)
		weights[i].size = LAYER_BYTES;
	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	open_trace();
	say_about();
	wake(weights, LAYERS + 1);
	segment_open(&server.small, 2 * MIB, 1024 * MIB);
	segment_open(&server.large, 20 * MIB, 8192 * MIB);
	segment_open(&server.cache, 2 * MIB, 8192 * MIB);

	serve(&server, REQUESTS / 2, 600);
	/* the accelerator is lent to training for a while */
	trim(&server.small);
	trim(&server.large);
	trim(&server.cache);
	put_to_sleep(weights, LAYERS + 1);
	wake(weights, LAYERS + 1);
	serve(&server, REQUESTS, 1400);

	segment_close(&server.small);
	segment_close(&server.large);
	segment_close(&server.cache);
	put_to_sleep(weights, LAYERS + 1);
	for (unsigned i = 0; i <= LAYERS; i++) {
		check(aclrtReleaseMemAddress(weights[i].va), "aclrtReleaseMemAddress");
		own.calls++;
	}
	report();
	check(aclrtResetDevice(0), "aclrtResetDevice");
	check(aclFinalize(), "aclFinalize");
	return 0;
}
