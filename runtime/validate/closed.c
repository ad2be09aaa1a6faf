/* SPDX-License-Identifier: Apache-2.0
 *
 * strict: page-locked memory is closed to the program while a queued copy uses it, and a load or
 * store there traps and is reported. The driver below has a second mapping of the memory. Closed
 * are the pages that lie wholly in the copy; after a report they are open, and the program goes on.
 */
#include "validate/validate.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define LOCK_TRIES 1000 /* of 1 ms: the thread that holds the lock may be the one that traps */

static struct validate *watched;
static struct sigaction below; /* the handler that was there */

/* The memory of which the range is a part; NULL: none that can be closed. */
static const struct object *closable(struct validate *v, uint64_t begin, uint64_t end)
{
	const struct object *object = objects_meeting(v->objects, OBJECT_PINNED, begin, begin + 1);

	return object != NULL && object->inside != 0 && !object->own &&
			       end - object->key <= object->bytes
		       ? object
		       : NULL;
}

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
	    !accesses_meet(v->accesses, object->key, object->key + object->bytes, false))
		munmap((void *)(uintptr_t)object->inside, object->bytes);
}

/* ---- closed and opened ---- */

static void open_object(void *unused, const struct object *object)
{
	(void)unused;
	if (object->kind == OBJECT_PINNED && object->inside != 0)
		mprotect((void *)(uintptr_t)object->key, object->bytes, PROT_READ | PROT_WRITE);
}

static void close_pages(const struct access *access)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = access->end & ~(page - 1);
	uint64_t begin = (access->begin + page - 1) & ~(page - 1);

	if (begin < end)
		mprotect((void *)(uintptr_t)begin, end - begin,
			 access->write ? PROT_NONE : PROT_READ);
}

static void close_again(void *writes, const struct access *access)
{
	if (access->closed && access->write == *(const bool *)writes)
		close_pages(access);
}

void validate_closed_renew(struct validate *v)
{
	if (!v->strict)
		return;
	objects_each(v->objects, open_object, NULL);
	for (int writes = 0; writes < 2; writes++) /* they close more */
		accesses_unordered(v->accesses, v->order, order_host(v->order), 0, UINT64_MAX, true,
				   true, close_again, &(bool){ writes });
}

static void on_fault(int number, siginfo_t *info, void *context);

void validate_closed_access(struct validate *v, struct access *access)
{
	struct sigaction trap = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (!v->strict || !report_wanted(VALIDATE_HOST_READ) ||
	    order_is_tainted(v->order, access->taint) ||
	    closable(v, access->begin, access->end) == NULL)
		return;
	if (watched == NULL)
		sigaction(SIGSEGV, &trap, &below);
	watched = v;
	access->closed = 1;
	if (access->write || !accesses_meet(v->accesses, access->begin, access->end, true))
		close_pages(access);
}

/* ---- what the driver below touches ---- */

static uint64_t second(struct validate *v, uint64_t va, uint64_t bytes)
{
	const struct object *object = closable(v, va, va + bytes);

	return object != NULL ? object->inside + (va - object->key) : va;
}

uint8_t *validate_closed_send(struct validate *v, struct halTaskSendInfo *info)
{
	uint8_t *entries = info->sqe_addr;
	uint64_t dst, src, bytes;

	info->sqe_addr = g_memdup2(entries, (gsize)info->sqe_num * STARS_SQE_BYTES);
	for (uint32_t i = 0; i < info->sqe_num; i++) {
		uint8_t *entry = info->sqe_addr + (size_t)i * STARS_SQE_BYTES;

		if (driver_entry_copy(entry, &dst, &src, &bytes))
			driver_entry_set_copy(entry, second(v, dst, bytes), second(v, src, bytes));
	}
	return entries;
}

void validate_closed_open(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes,
			  npu_stack stack)
{
	const struct object *to = closable(v, dst, dst + bytes);
	const struct object *from = closable(v, src, src + bytes);

	(void)stack;
	if (to != NULL)
		open_object(NULL, to);
	if (from != NULL)
		open_object(NULL, from);
}

/* ---- the trap ---- */

struct touch {
	struct validate *v;
	npu_stack stack;
	uint64_t va;
};

static void tell_touch(void *arg, const struct access *access)
{
	const struct touch *touch = arg;
	struct report report = { .rule = VALIDATE_HOST_READ,
				 .now = touch->stack,
				 .then = "the copy was queued by",
				 .before = access->stack };

	if (access->closed)
		report_make(&report,
			    "the program touches byte %#llx of %s, which a copy in %s is to %s: "
			    "nobody has waited for it",
			    (unsigned long long)touch->va,
			    validate_range(touch->v, access->begin, access->end),
			    order_stream_text(order_stream_at(touch->v->order, access->stream)),
			    access->write ? "write" : "read");
}

static bool tell_trap(struct validate *v, uint64_t va, const void *pc)
{
	struct touch touch = { v, npu_stack_from(pc), va };
	const struct object *object;

	for (int i = 0; pthread_mutex_trylock(&v->lock) != 0; i++) {
		if (i == LOCK_TRIES)
			return false;
		usleep(1000);
	}
	object = closable(v, va, va + 1);
	if (object != NULL) {
		accesses_unordered(v->accesses, v->order, order_host(v->order), va, va + 1, true,
				   true, tell_touch, &touch);
		accesses_unwatch(v->accesses, va, va + 1, true);
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

void validate_closed_stop(struct validate *v)
{
	accesses_unwatch(v->accesses, 0, UINT64_MAX, true);
	validate_closed_renew(v);
	if (watched != NULL)
		sigaction(SIGSEGV, &below, NULL);
	watched = NULL;
}
