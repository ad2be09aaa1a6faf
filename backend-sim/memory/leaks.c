/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists what this process still holds, namely reservations, mappings, handles and allocations, for
 * the report at exit and for who is refused memory. Owns only the wording.
 */
#include "memory/memory.h"
#include "process/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct report {
	void (*line)(void *arg, const char *text);
	void *arg;
	uint64_t now_ps;
};

static void say(const struct report *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct report *r, const char *format, ...)
{
	char text[768];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	r->line(r->arg, text);
}

/* "by driver call 17, 3.250 ms of simulated time ago"; where the stack is known, "by aclrtMalloc,
 * load at train.c:96, 3.250 ms ..." */
static const char *made_text(const struct report *r, const struct bsim_made *made)
{
	char *by = npu_stack_words(made->stack);
	const char *text;

	if (by == NULL)
		npu_text_add(&by, "driver call %" PRIu64, made->number);
	text = npu_text("by %.300s, %.3f ms of simulated time ago", by != NULL ? by : "?",
			(double)(r->now_ps - made->ps) / (double)SIM_PS_PER_MS);
	free(by);
	return text;
}

static void say_reservations(const struct report *r, const struct bsim *bs, bool full)
{
	uint64_t count = 0, bytes = 0;
	const struct range *v;

	LIST_FOREACH(v, &bs->window->reservations, link)
	{
		count++;
		bytes += v->bytes;
		if (full)
			say(r, "  reservation 0x%" PRIx64 ", %s, %u mappings in it, %s", v->va,
			    npu_size_text(v->bytes), v->own + v->imported, made_text(r, &v->made));
	}
	if (count > 0)
		say(r, "%" PRIu64 " reservation%s: %s of addresses still reserved", count,
		    count == 1 ? "" : "s", npu_size_text(bytes));
}

static void say_mappings(const struct report *r, const struct bsim *bs, bool full)
{
	uint64_t count = 0, bytes = 0;
	const struct mapping *m;

	LIST_FOREACH(m, &bs->window->mappings, link)
	{
		count++;
		bytes += mapping_bytes(m);
		if (full)
			say(r, "  mapping 0x%" PRIx64 ", %s, %s, of handle %p, %s", m->va,
			    npu_size_text(mapping_bytes(m)), bsim_memory_text(m->handle->space),
			    (void *)m->handle, made_text(r, &m->made));
	}
	if (count > 0)
		say(r, "%" PRIu64 " mapping%s: %s still mapped", count, count == 1 ? "" : "s",
		    npu_size_text(bytes));
}

static void say_handles(const struct report *r, const struct bsim *bs, bool full)
{
	uint64_t count = 0, bytes = 0, held = 0;
	const struct drv_mem_handle *h;

	TAILQ_FOREACH(h, &bs->handles->live, link)
	{
		count++;
		bytes += h->bytes;
		held += h->ref > h->map_ref;
		if (full)
			say(r,
			    "  handle %p, %s, %s%s, %u references of the program and %u of "
			    "mappings, %s",
			    (const void *)h, npu_size_text(h->bytes), bsim_memory_text(h->space),
			    h->imported   ? ", imported"
			    : h->exported ? ", exported"
					  : "",
			    h->ref - h->map_ref, h->map_ref, made_text(r, &h->made));
	}
	if (count > 0)
		say(r,
		    "%" PRIu64 " handle%s: %s of physical memory still held, %" PRIu64
		    " of them not freed by the program",
		    count, count == 1 ? "" : "s", npu_size_text(bytes), held);
}

static void say_allocations(const struct report *r, const struct bsim *bs, bool full)
{
	static const char *const names[] = {
		[NPU_PLACE_DEVICE] = "device allocation",
		[NPU_PLACE_PINNED] = "pinned host allocation",
		[NPU_PLACE_OPENED] = "range opened by its key",
		[NPU_PLACE_REGISTERED] = "registered host range",
	};

	for (const struct allocation *a = LIST_FIRST(&bs->allocs->all); full && a != NULL;
	     a = LIST_NEXT(a, link))
		say(r, "  %s 0x%" PRIx64 ", %s, %s, %s", names[a->kind], a->va,
		    npu_size_text(a->asked), bsim_memory_text(a->memory), made_text(r, &a->made));
	for (unsigned kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++)
		if (names[kind] != NULL && bs->allocs->count[kind] > 0)
			say(r, "%" PRIu64 " %s%s: %s not freed", bs->allocs->count[kind],
			    names[kind], bs->allocs->count[kind] == 1 ? "" : "s",
			    npu_size_text(bs->allocs->bytes[kind]));
}

drvError_t bsim_npusimLeaks(struct npu_driver *self, void (*line)(void *arg, const char *text),
			    void *arg, bool full)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);
	struct report r = { line, arg, 0 };

	if (c.result != DRV_ERROR_NONE)
		return bsim_end(&c);
	if (line == NULL) {
		c.result = bsim_null("npusimLeaks", "line");
	} else if (c.bs->any_open) {
		r.now_ps = bsim_now_locked(c.bs);
		say_mappings(&r, c.bs, full);
		say_handles(&r, c.bs, full);
		say_reservations(&r, c.bs, full);
		say_allocations(&r, c.bs, full);
	}
	bsim_unlock(c.bs); /* the report takes no time and is not counted */
	return c.result;
}

/* ---- a memory that is full ---- */

#define HOLDERS_MAX  256 /* stacks that are told apart */
#define HOLDERS_SAID 3

struct holder {
	npu_stack stack;
	uint64_t bytes;
};
struct holders {
	struct holder each[HOLDERS_MAX];
	unsigned count;
};

static void add_holding(struct holders *holders, npu_stack stack, uint64_t bytes)
{
	unsigned at = 0;

	while (at < holders->count && holders->each[at].stack != stack)
		at++;
	if (at == HOLDERS_MAX)
		return;
	if (at == holders->count)
		holders->each[holders->count++] = (struct holder){ .stack = stack };
	holders->each[at].bytes += bytes;
}

/* What this process has of a memory, by the stacks that made it: behind the thread's message. */
static void say_who_holds(const struct bsim *bs, unsigned memory)
{
	struct holders holders = { .count = 0 };
	const struct drv_mem_handle *h;
	char *text = NULL;

	TAILQ_FOREACH(h, &bs->handles->live, link)
	if (h->space == memory && h->made.stack != 0)
		add_holding(&holders, h->made.stack, h->bytes);
	for (const struct allocation *a = LIST_FIRST(&bs->allocs->all); a != NULL;
	     a = LIST_NEXT(a, link))
		if (a->kind == NPU_PLACE_DEVICE && a->memory == memory && a->made.stack != 0 &&
		    (a->block != NULL || a->page_lg2 == 12)) /* else: the one that is refused */
			add_holding(&holders, a->made.stack, a->bytes);
	for (unsigned said = 0; said < HOLDERS_SAID && said < holders.count; said++) {
		struct holder *most = holders.each;
		char *by;

		for (unsigned i = 1; i < holders.count; i++)
			if (holders.each[i].bytes > most->bytes)
				most = &holders.each[i];
		by = npu_stack_words(most->stack);
		npu_text_add(&text, "%s%s by %s", said > 0 ? "; " : "",
			     npu_size_words((int64_t)most->bytes), by != NULL ? by : "?");
		free(by);
		most->bytes = 0;
	}
	if (text != NULL) {
		char *before = strdup(npu_message());

		npu_message_set("%s; of this process: %s", before != NULL ? before : "", text);
		free(before);
	}
	free(text);
}

drvError_t memory_take(struct bsim *bs, unsigned memory, uint64_t frames, bool giant,
		       const char *tag, struct node_block **out)
{
	drvError_t result = node_block_create(bs->node, memory, frames, giant, tag, out);

	if (result == DRV_ERROR_OUT_OF_MEMORY)
		say_who_holds(bs, memory);
	return result;
}
