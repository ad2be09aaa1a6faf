/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists what this process still holds, namely reservations, mappings, handles and allocations, for
 * the report at exit and for who is refused memory. Owns only the wording.
 */
#include "memory/memory.h"
#include "process/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct report {
	npu_line_fn line;
	void *arg;
	bool full;
	uint64_t now_ps;
};

static __attribute__((format(printf, 2, 3))) void say(const struct report *r, const char *format,
						      ...)
{
	g_autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	r->line(r->arg, text);
}

/* A thing that is left, if each is wanted: "by driver call 17, 3.250 ms of simulated time ago";
 * where the stack is known, "by aclrtMalloc, load at train.c:96, 3.250 ms ..." */
static void say_each(const struct report *r, const struct bsim_made *made, const char *thing)
{
	char *by = r->full ? npu_stack_words(made->stack) : NULL;

	if (r->full)
		say(r, "  %s, by %.300s, %.3f ms of simulated time ago", thing,
		    by ?: npu_text("driver call %" PRIu64, made->number),
		    (double)(r->now_ps - made->ps) / (double)SIM_PS_PER_MS);
	free(by);
}

static void say_sum(const struct report *r, uint64_t count, const char *what, uint64_t bytes,
		    const char *rest)
{
	if (count > 0)
		say(r, "%" PRIu64 " %s%s: %s %s", count, what, count == 1 ? "" : "s",
		    npu_size_text(bytes), rest);
}

static void say_mappings(const struct report *r, const struct bsim *bs)
{
	uint64_t count = 0, bytes = 0;
	const struct mapping *m;

	LIST_FOREACH(m, &bs->window->mappings, link)
	{
		count++;
		bytes += mapping_bytes(m);
		say_each(r, &m->made,
			 npu_text("mapping 0x%" PRIx64 ", %s, %s, of handle %p", m->va,
				  npu_size_text(mapping_bytes(m)),
				  bsim_memory_text(m->handle->space), (void *)m->handle));
	}
	say_sum(r, count, "mapping", bytes, "still mapped");
}

static void say_handles(const struct report *r, const struct bsim *bs)
{
	uint64_t bytes = 0, held = 0;
	const struct drv_mem_handle *h;

	TAILQ_FOREACH(h, &bs->handles->live, link)
	{
		bytes += h->bytes;
		held += h->ref > h->map_ref;
		say_each(r, &h->made,
			 npu_text("handle %p, %s, %s%s, %u references of the program and %u of "
				  "mappings",
				  (const void *)h, npu_size_text(h->bytes),
				  bsim_memory_text(h->space),
				  h->imported   ? ", imported"
				  : h->exported ? ", exported"
						: "",
				  h->ref - h->map_ref, h->map_ref));
	}
	say_sum(r, bs->handles->live_count, "handle", bytes,
		npu_text("of physical memory still held, %" PRIu64
			 " of them not freed by the program",
			 held));
}

static void say_reservations(const struct report *r, const struct bsim *bs)
{
	const struct range *v;

	LIST_FOREACH(v, &bs->window->reservations, link)
	say_each(r, &v->made,
		 npu_text("reservation 0x%" PRIx64 ", %s, %u mappings in it", v->va,
			  npu_size_text(v->bytes), v->own + v->imported));
	say_sum(r, bs->window->reservation_count, "reservation", bs->window->reserved_bytes,
		"of addresses still reserved");
}

static void say_allocations(const struct report *r, const struct bsim *bs)
{
	static const char *const names[NPU_PLACE_KIND_COUNT] = {
		[NPU_PLACE_DEVICE] = "device allocation",
		[NPU_PLACE_PINNED] = "pinned host allocation",
		[NPU_PLACE_OPENED] = "range opened by its key",
		[NPU_PLACE_REGISTERED] = "registered host range",
	};
	const struct allocation *a;

	LIST_FOREACH(a, &bs->allocs->all, link)
	say_each(r, &a->made,
		 npu_text("%s 0x%" PRIx64 ", %s, %s", names[a->kind], a->va,
			  npu_size_text(a->asked), bsim_memory_text(a->memory)));
	for (unsigned kind = 0; kind < NPU_PLACE_KIND_COUNT; kind++)
		say_sum(r, bs->allocs->count[kind], names[kind], bs->allocs->bytes[kind],
			"not freed");
}

drvError_t bsim_npusimLeaks(struct npu_driver *self, npu_line_fn line, void *arg, bool full)
{
	struct bsim_call c = bsim_begin(self, SIM_CALL_QUERY);
	struct report r = { line, arg, full, 0 };

	if (c.result != DRV_ERROR_NONE)
		return bsim_end(&c);
	if (line == NULL) {
		c.result = bsim_null("npusimLeaks", "line");
	} else if (c.bs->any_open) {
		r.now_ps = bsim_now_locked(c.bs);
		say_mappings(&r, c.bs);
		say_handles(&r, c.bs);
		say_reservations(&r, c.bs);
		say_allocations(&r, c.bs);
	}
	bsim_unlock(c.bs); /* the report takes no time and is not counted */
	return c.result;
}

/* ---- a memory that is full ---- */

#define HOLDERS_SAID 3

static void add_holding(GHashTable *held, npu_stack stack, uint64_t bytes)
{
	void *key = GUINT_TO_POINTER(stack);

	if (stack != 0)
		g_hash_table_insert(held, key, (char *)g_hash_table_lookup(held, key) + bytes);
}

/* What this process has of a memory, by the stacks that made it: behind the thread's message. */
static void say_who_holds(const struct bsim *bs, unsigned memory)
{
	g_autoptr(GHashTable) held = g_hash_table_new(g_direct_hash, g_direct_equal);
	g_autoptr(GString) text = g_string_new(npu_message());
	const struct drv_mem_handle *h;
	const struct allocation *a;

	TAILQ_FOREACH(h, &bs->handles->live, link)
	if (h->space == memory)
		add_holding(held, h->made.stack, h->bytes);
	LIST_FOREACH(a, &bs->allocs->all, link)
	if (a->kind == NPU_PLACE_DEVICE && a->memory == memory &&
	    (a->block != NULL || a->page_lg2 == 12)) /* else: the one that is refused */
		add_holding(held, a->made.stack, a->bytes);
	for (unsigned said = 0; said < HOLDERS_SAID && g_hash_table_size(held) > 0; said++) {
		void *stack, *bytes, *most = NULL, *most_bytes = NULL;
		GHashTableIter iter;
		char *by;

		g_hash_table_iter_init(&iter, held);
		while (g_hash_table_iter_next(&iter, &stack, &bytes)) {
			if (bytes > most_bytes) {
				most = stack;
				most_bytes = bytes;
			}
		}
		by = npu_stack_words(GPOINTER_TO_UINT(most));
		g_string_append_printf(text, "%s%s by %s", said > 0 ? "; " : "; of this process: ",
				       npu_size_words((intptr_t)most_bytes), by != NULL ? by : "?");
		free(by);
		g_hash_table_remove(held, most);
	}
	npu_message_set("%s", text->str);
}

drvError_t memory_take(struct bsim *bs, unsigned memory, uint64_t frames, bool giant,
		       const char *tag, struct node_block **out)
{
	drvError_t result = node_block_create(bs->node, memory, frames, giant, tag, out);

	if (result == DRV_ERROR_OUT_OF_MEMORY)
		say_who_holds(bs, memory);
	return result;
}
