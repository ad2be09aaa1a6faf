/* SPDX-License-Identifier: Apache-2.0
 *
 * Page-locked memory of the host that queued copies read and write, against the program's own
 * loads and stores, which nobody sees: a source is hashed when its copy is queued and when the host
 * knows that it is done; a target is filled with a pattern when its copy is queued, so that a read
 * before the bytes are there finds no plausible ones.
 *
 * strict: the memory is closed to the program while a queued copy uses it, and a load or store
 * there traps and is reported. The driver below has a second mapping of the memory. Closed are the
 * pages that lie wholly in the copy; after a report they are open, and the program goes on.
 */
#include "validate/validate.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"

/* What a copy of 1 MiB costs bounds what is looked at: so many words are hashed, and so many lines
 * filled, evenly spread. */
#define WORDS_MAX 8192u
#define LINES_MAX 2048u
#define LINE      64u

#define PATTERN    0xff /* not a number, as a float */
#define FLAG_BYTES 64u  /* what is not longer may be a flag that the program polls */

/* The page-locked memory that the range is a part of, which the layer may read and write while it
 * is held; NULL: there is none. */
static const struct object *pinned(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object = objects_meeting(v, OBJECT_PINNED, begin, begin + 1);

	return object != NULL && !object->own && end - object->key <= object->bytes ? object : NULL;
}

/* From one piece to the next, so that there are at most so many. */
static uint64_t step_of(uint64_t bytes, uint64_t piece, uint64_t most)
{
	uint64_t step = piece;

	while (bytes / step > most)
		step *= 2;
	return step;
}

static uint64_t hash_of(uint64_t begin, uint64_t end)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)begin;
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t lanes[4] = { 1, 2, 3, 4 }, bytes = end - begin, i = 0, word;
	uint64_t step = step_of(bytes, sizeof(word), WORDS_MAX);

	for (; i + 3 * step + sizeof(word) <= bytes; i += 4 * step)
		for (unsigned lane = 0; lane < 4; lane++) {
			memcpy(&word, at + i + lane * step, sizeof(word));
			lanes[lane] = (lanes[lane] ^ word) * factor;
		}
	for (; i < bytes; i += step) {
		word = 0;
		memcpy(&word, at + i, MIN(bytes - i, sizeof(word)));
		lanes[0] = (lanes[0] ^ word) * factor;
	}
	return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

void validate_host_done(struct validate *v, const struct access *access)
{
	if (hash_of(access->begin, access->end) == access->hash)
		return;
	report_make(REPORT(HOST_READ, stack_of(v), .then = "the copy was queued by",
			   .before = access->stack),
		    "the program rewrote %s while a copy in %s was to read it, before it knew that "
		    "the copy was done",
		    validate_range(v, access->begin, access->end),
		    order_stream_text(v, access->stream));
}

/* ---- targets ---- */

/* A piece of a target that is filled, and what was there. */
struct piece {
	void *at;
	size_t bytes;
	unsigned char old[LINE];
};

static void fill(GArray *pieces, uint64_t begin, uint64_t bytes)
{
	uint64_t step = step_of(bytes, LINE, LINES_MAX);

	for (uint64_t i = 0; i < bytes; i += step) {
		struct piece piece = { (void *)(uintptr_t)(begin + i), MIN(bytes - i, LINE), "" };

		memcpy(piece.old, piece.at, piece.bytes);
		memset(piece.at, PATTERN, piece.bytes);
		g_array_append_val(pieces, piece);
	}
}

/* Nothing on its way, nor any earlier entry of the same call, uses the target: what is there is no
 * use to the program any more. */
static bool is_free(struct validate *v, const struct halTaskSendInfo *info, uint32_t index,
		    uint64_t begin, uint64_t end)
{
	uint64_t dst, src, bytes;

	for (uint32_t i = 0; i < index; i++) {
		union stars_sqe entry = driver_entry(info, i);

		if (driver_entry_copy(&entry, &dst, &src, &bytes) &&
		    ((dst < end && begin < dst + bytes) || (src < end && begin < src + bytes)))
			return false;
	}
	return !accesses_meet(v, begin, end, false);
}

static GArray *fill_targets(struct validate *v, uint32_t dev, const struct halTaskSendInfo *info)
{
	const struct order_stream *stream = order_stream(v, dev, info->sqId);
	GArray *all = NULL;
	uint64_t dst, src, bytes;

	if (!report_wanted(VALIDATE_HOST_READ) ||
	    order_is_tainted(v, MAX(stream->clock.taint, v->host.taint)))
		return NULL;
	for (uint32_t i = 0; i < info->sqe_num; i++) {
		union stars_sqe entry = driver_entry(info, i);

		if (entry.header.type == STARS_SQE_EVENT_WAIT ||
		    entry.header.type == STARS_SQE_NOTIFY_WAIT ||
		    entry.header.type == STARS_SQE_COND)
			break; /* maybe for the program */
		if (!driver_entry_copy(&entry, &dst, &src, &bytes) || bytes <= FLAG_BYTES ||
		    pinned(v, dst, dst + bytes) == NULL || !is_free(v, info, i, dst, dst + bytes) ||
		    (src < dst + bytes && dst < src + bytes))
			continue;
		if (all == NULL)
			all = g_array_sized_new(FALSE, FALSE, sizeof(struct piece),
						(guint)MIN(bytes / LINE + 1, LINES_MAX));
		fill(all, dst, bytes);
	}
	return all;
}

/* ---- strict: second mappings ---- */

static const struct object *closable(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object = pinned(v, begin, end);

	return object != NULL && object->inside != 0 ? object : NULL;
}

static uint64_t second(struct validate *v, uint64_t va, uint64_t bytes)
{
	const struct object *object = closable(v, va, va + bytes);

	return object != NULL ? object->inside + (va - object->key) : va;
}

/* Gives info entries with other addresses; returns those that it had. */
static uint8_t *use_seconds(struct validate *v, struct halTaskSendInfo *info)
{
	uint8_t *entries = info->sqe_addr;
	union stars_sqe *changed = g_memdup2(entries, info->sqe_num * sizeof(*changed));
	uint64_t dst, src, bytes;

	info->sqe_addr = (uint8_t *)changed;
	for (uint32_t i = 0; i < info->sqe_num; i++)
		if (driver_entry_copy(&changed[i], &dst, &src, &bytes))
			driver_entry_set_copy(&changed[i], second(v, dst, bytes),
					      second(v, src, bytes));
	return entries;
}

struct validate_sent validate_host_send(struct validate *v)
{
	const __typeof__(v->call->with.halSqTaskSend) *a = &v->call->with.halSqTaskSend;
	GArray *saved = fill_targets(v, a->dev, a->info);

	return (struct validate_sent){ saved, v->strict ? use_seconds(v, a->info) : NULL };
}

void validate_host_sent(struct validate *v, const struct validate_sent *sent)
{
	bool refused = v->call->code != DRV_ERROR_NONE;

	for (guint i = 0; refused && sent->saved != NULL && i < sent->saved->len; i++) {
		const struct piece *piece = &g_array_index(sent->saved, struct piece, i);

		memcpy(piece->at, piece->old, piece->bytes);
	}
	if (sent->saved != NULL)
		g_array_unref(sent->saved);
	if (sent->entries != NULL) {
		g_free(v->call->with.halSqTaskSend.info->sqe_addr);
		v->call->with.halSqTaskSend.info->sqe_addr = sent->entries;
	}
}

/* ---- strict: closed memory ---- */

#define LOCK_MS 1000 /* the thread that holds the lock may be the one that traps */

static struct validate *watched;
static struct sigaction below; /* the handler that was there */

void validate_closed_new(struct validate *v, struct object *object)
{
	struct npu_place place;
	void *second = MAP_FAILED;

	/* A server's driver has given its pages to the device. */
	if (validate_place(v, object->key, &place) && place.kind == NPU_PLACE_PINNED)
		second = mmap(NULL, object->bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (second == MAP_FAILED)
		return;
	if (mremap(second, 0, object->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (void *)(uintptr_t)object->key) != MAP_FAILED)
		object->inside = key_of(second);
	else
		munmap(second, object->bytes);
}

void validate_closed_end(struct validate *v, const struct object *object)
{
	/* What is on its way still uses it. */
	if (object->inside != 0 &&
	    !accesses_meet(v, object->key, object->key + object->bytes, false))
		munmap((void *)(uintptr_t)object->inside, object->bytes);
}

static gboolean open_object(gpointer key, gpointer value, gpointer unused)
{
	const struct object *object = value;

	(void)key;
	(void)unused;
	if (object != NULL && object->inside != 0)
		mprotect((void *)(uintptr_t)object->key, object->bytes, PROT_READ | PROT_WRITE);
	return FALSE;
}

static void close_pages(const struct access *access)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = access->end & ~(page - 1);
	uint64_t begin = (access->begin + page - 1) & ~(page - 1);

	if (begin < end)
		mprotect((void *)(uintptr_t)begin, end - begin,
			 access->write ? PROT_NONE : PROT_READ);
}

void validate_closed_renew(struct validate *v)
{
	const struct access *access;

	if (!v->strict)
		return;
	g_tree_foreach(v->live[OBJECT_PINNED], open_object, NULL);
	for (unsigned writes = 0; writes < 2; writes++) { /* they close more */
		struct access_search search = { .end = UINT64_MAX, .after = &v->host };

		while ((access = accesses_next(v, &search)) != NULL)
			if (access->closed && access->write == writes)
				close_pages(access);
	}
}

void validate_closed_open(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes)
{
	open_object(NULL, (gpointer)closable(v, dst, dst + bytes), NULL);
	open_object(NULL, (gpointer)closable(v, src, src + bytes), NULL);
}

static bool tell_trap(struct validate *v, uint64_t va, const void *pc)
{
	struct access_search touched = { va, va + 1, .after = &v->host };
	const struct object *object;
	const struct access *access;

	if (!clock_lock_ms(&v->lock, LOCK_MS))
		return false;
	v->stack = npu_stack_from(pc);
	object = closable(v, va, va + 1);
	while (object != NULL && (access = accesses_next(v, &touched)) != NULL)
		if (access->closed)
			report_make(
				REPORT(HOST_READ, stack_of(v), .then = "the copy was queued by",
				       .before = access->stack),
				"the program touches byte %#llx of %s, which a copy in %s is to "
				"%s: nobody has waited for it",
				(unsigned long long)va,
				validate_range(v, access->begin, access->end),
				order_stream_text(v, access->stream),
				access->write ? "write" : "read");
	if (object != NULL) {
		accesses_unwatch(v, va, va + 1, true);
		validate_closed_renew(v);
	}
	pthread_mutex_unlock(&v->lock);
	report_flush();
	return object != NULL;
}

static const void *pc_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (const void *)context->uc_mcontext.pc;
#else
	(void)context;
	return NULL;
#endif
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	if (info->si_code == SEGV_ACCERR && watched != NULL &&
	    tell_trap(watched, key_of(info->si_addr), pc_of(context)))
		return;
	if (below.sa_flags & SA_SIGINFO)
		below.sa_sigaction(number, info, context);
	else if (below.sa_handler != SIG_DFL && below.sa_handler != SIG_IGN)
		below.sa_handler(number);
	else
		sigaction(number, &below, NULL); /* the fault repeats itself */
}

void validate_host_access(struct validate *v, struct access *access)
{
	struct sigaction trap = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	const struct object *object = pinned(v, access->begin, access->end);
	bool written;

	if (object == NULL || !report_wanted(VALIDATE_HOST_READ) ||
	    order_is_tainted(v, access->taint))
		return;
	written = accesses_meet(v, access->begin, access->end, true);
	access->hashed = !access->write && !written;
	if (access->hashed)
		access->hash = hash_of(access->begin, access->end);
	access->closed = v->strict && object->inside != 0;
	if (!access->closed)
		return;
	if (watched == NULL)
		sigaction(SIGSEGV, &trap, &below);
	watched = v;
	if (access->write || !written)
		close_pages(access);
}

void validate_closed_stop(struct validate *v)
{
	accesses_unwatch(v, 0, UINT64_MAX, true);
	validate_closed_renew(v);
	if (watched != NULL)
		sigaction(SIGSEGV, &below, NULL);
	watched = NULL;
}
