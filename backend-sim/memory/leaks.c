/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists what this process still holds, namely reservations, mappings, handles and allocations, for
 * the report at exit. Owns only the wording.
 */
#include "memory/memory.h"
#include "process/ops.h"

#include <inttypes.h>
#include <stdio.h>

struct report {
	void (*line)(void *arg, const char *text);
	void *arg;
	uint64_t now_ps;
};

static void say(const struct report *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct report *r, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	r->line(r->arg, text);
}

/* "by driver call 17, 3.250 ms of simulated time ago" */
static const char *made_text(const struct report *r, const struct bsim_made *made)
{
	static __thread char text[96];

	snprintf(text, sizeof(text), "by driver call %" PRIu64 ", %.3f ms of simulated time ago",
		 made->number, (double)(r->now_ps - made->ps) / (double)SIM_PS_PER_MS);
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

	LIST_FOREACH(m, &bs->mappings->live, link)
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

	for (const struct allocation *a = bs->allocs->all; full && a != NULL; a = a->next)
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
	pthread_mutex_unlock(&c.bs->lock); /* the report takes no time and is not counted */
	return c.result;
}
