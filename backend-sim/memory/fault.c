/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports a host access to device memory: the address, its owner, and the call to use instead.
 * Owns the place of its handler of SIGSEGV, and of SIGBUS (this machine has no page for what
 * the CPU may reach), over whatever handler was there: each signal goes on to that one, with what
 * the kernel gave, so that the program ends, or goes on, as it would without.
 *
 * The handler takes no lock and calls only what a signal handler may: it reads tables that another
 * thread may be changing, which at worst makes the report wrong. Thread stacks may be small: what
 * passes by has a small frame, a report one of less than 1 KiB.
 */
#include "memory/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FIRST_LOOKS 256u
#define REPORTS_MAX 16u /* of a process that survives them */

struct text {
	char bytes[512];
	size_t used;
};

static void add_text(struct text *t, const char *s)
{
	while (*s != '\0' && t->used < sizeof(t->bytes) - 1)
		t->bytes[t->used++] = *s++;
}

static void add_number(struct text *t, uint64_t value, unsigned base)
{
	char digits[24];
	size_t n = sizeof(digits);

	digits[--n] = '\0';
	do {
		digits[--n] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value != 0);
	add_text(t, base == 16 ? "0x" : "");
	add_text(t, digits + n);
}

/* A text with, for each %, what its letter says: s a text, x and u a uint64_t as an address and as
 * a number, b one of bytes: "4 MiB". A handler may not call npu_size_text(). */
static void add(struct text *t, const char *format, ...)
{
	static const char *const units[] = { " bytes", " KiB", " MiB", " GiB", " TiB" };
	va_list args;

	va_start(args, format);
	for (; *format != '\0'; format++) {
		uint64_t value;
		unsigned unit = 0;

		if (*format != '%') {
			add_text(t, (char[]){ *format, '\0' });
		} else if (*++format == 's') {
			add_text(t, va_arg(args, const char *));
		} else {
			value = va_arg(args, uint64_t);
			while (*format == 'b' && unit < 4 && value >= 1024 && value % 1024 == 0) {
				value /= 1024;
				unit++;
			}
			add_number(t, value, *format == 'x' ? 16 : 10);
			add_text(t, *format == 'b' ? units[unit] : "");
		}
	}
	va_end(args);
}

static void add_owner(struct text *t, uint32_t owner)
{
	add(t, owner == NPU_OWNER_HOST ? " of the host" : " of device %u", (uint64_t)owner);
}

static void add_place(struct text *t, uint64_t va, const char *thing, const struct npu_place *p)
{
	add(t, ": %b into the %s at %x, %b", va - p->base, thing, p->base, p->bytes);
}

static void tell(struct text *t, const struct bsim *bs, int number, uint64_t va)
{
	struct npu_place p = { .kind = NPU_PLACE_FREE };

	if (bs != NULL && bsim_is_forked(bs)) {
		add(t, ": device memory of the process that this one was forked from.\n");
		return;
	}
	if (bs != NULL && bs->window != NULL)
		p = place_at(bs, va);
	switch (p.kind) {
	case NPU_PLACE_RESERVED:
		add_place(t, va, "reservation", &p);
		add(t, ", where nothing is mapped (any more). Map memory there first (%s)",
		    bs->cuda != NULL ? "cuMemMap" : "aclrtMapMem");
		break;
	case NPU_PLACE_MAPPED:
		add_place(t, va, "mapping", &p);
		add_owner(t, p.owner);
		add(t, number == SIGBUS
			       ? ". This machine has no page for it: its commit limit is reached "
				 "(vm.overcommit_memory is 2), or its memory failed"
		       : bs->cuda != NULL ? ". The CPU may not reach it: copy with cuMemcpy"
					  : ". The CPU may not reach it: copy with aclrtMemcpy, or "
					    "grant it with aclrtMemSetAccess on the whole mapping, "
					    "location ACL_MEM_LOCATION_TYPE_HOST, id 0");
		break;
	case NPU_PLACE_REGISTERED:
		add_place(t, va, "device's address of host memory", &p);
		add(t, ". The CPU has it at %x", p.host_va);
		break;
	case NPU_PLACE_DEVICE:
	case NPU_PLACE_PINNED:
	case NPU_PLACE_OPENED:
		add_place(t, va,
			  p.kind == NPU_PLACE_OPENED ? "memory opened by its key" : "allocation",
			  &p);
		add_owner(t, p.owner);
		add(t, ". The CPU may not reach device memory: copy it (aclrtMemcpy, cuMemcpy)");
		break;
	default:
		add(t, ": a device address that is not allocated, or not any more");
		break;
	}
	add(t, ".\n");
}

static bool is_ours(const struct bsim *bs, uint64_t va)
{
	const struct window *w = bs == NULL ? NULL : __atomic_load_n(&bs->window, __ATOMIC_RELAXED);

	return window_traps(va) || (w != NULL && window_peek(w, va) != NULL);
}

/* ---- the handler ---- */

/* As the kernel has it. The C library's sigaction() may be a sanitizer's, which hides the handler
 * that it has itself. */
struct action {
	union {
		void (*plain)(int);
		void (*full)(int, siginfo_t *, void *);
	};
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static const struct action standard; /* SIG_DFL */

static struct caught {
	int number;
	bool covered;        /* once */
	struct action found; /* what was there at first */
	const struct action *_Atomic below;
} signals[] = {
	{ .number = SIGSEGV, .below = &standard },
	{ .number = SIGBUS, .below = &standard },
};

static long exchange(int number, const struct action *new, struct action *out_old)
{
	return syscall(SYS_rt_sigaction, number, new, out_old, sizeof(new->mask));
}

/* Where a signal was sent, that of the thread's last fault: handlers such as Python's faulthandler
 * pass a fault on by sending it again. */
static uint64_t fault_va(const siginfo_t *info, const ucontext_t *frame)
{
	if (info->si_code > 0)
		return (uintptr_t)info->si_addr;
#if defined(__x86_64__)
	return (uint64_t)frame->uc_mcontext.gregs[REG_CR2];
#elif defined(__aarch64__)
	return frame->uc_mcontext.fault_address;
#else
	(void)frame;
	return 0;
#endif
}

static __attribute__((noinline)) void report(int signal, uint64_t va, bool sent)
{
	static _Atomic uint64_t last;
	static atomic_uint told;
	struct text t = { .used = 0 };
	unsigned number;

	if (atomic_exchange(&last, va) == va && sent)
		return;
	number = atomic_fetch_add(&told, 1) + 1;
	if (number > REPORTS_MAX)
		return;
	add(&t, "npusim[%u] error: the program touched %x", (uint64_t)getpid(), va);
	tell(&t, bsim_process, signal, va);
	if (number == REPORTS_MAX)
		add(&t, "Such accesses are not reported any more.\n");
	npu_report_write(t.bytes, t.used);
}

/* The signal once more, without us: it is delivered when the handler returns. */
static void end_program(int number, siginfo_t *info)
{
	exchange(number, &standard, NULL);
	if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info) != 0 &&
	    info->si_code <= 0) /* a fault repeats itself */
		raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	const struct caught *caught = &signals[number == SIGBUS];
	const struct action *next = atomic_load_explicit(&caught->below, memory_order_acquire);
	uint64_t va = fault_va(info, context);
	int saved = errno;

	if (is_ours(bsim_process, va))
		report(number, va, info->si_code <= 0);
	if (next->plain == SIG_DFL || (next->plain == SIG_IGN && info->si_code > 0))
		end_program(number, info);
	errno = saved;
	if (next->plain == SIG_DFL || next->plain == SIG_IGN)
		return;
	if (next->flags & SA_SIGINFO)
		next->full(number, info, context);
	else
		next->plain(number);
}

/* A look is a system call, and a map none: one a tick of the clock (1 to 4 ms), but each of the
 * first ones, since a short program may have no later tick. */
static bool is_due(void)
{
	static unsigned looks;
	static long tick;
	struct timespec now;

	if (looks < FIRST_LOOKS) {
		looks++;
		return true;
	}
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_nsec == tick)
		return false;
	tick = now.tv_nsec;
	return true;
}

/* Over anything the first time; later over SIG_DFL, and over what was there the first time: test
 * frameworks put their handler in place for each test, and back what was there before it. Any other
 * was put over ours. Flags and mask are those of the handler below, which the kernel then serves as
 * if we were not there: SA_NODEFER, SA_RESETHAND, SA_ONSTACK. */
static void cover(struct caught *caught)
{
	struct sigaction fresh = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct action now;

	if (exchange(caught->number, NULL, &now) != 0 ||
	    (caught->covered && now.plain != SIG_DFL && now.plain != caught->found.plain))
		return;
	caught->covered = true;
	npu_log_enabled(NPU_LOG_ERROR); /* opens what reports are written to */
	if (now.plain != SIG_DFL)
		caught->found = now;
	atomic_store_explicit(&caught->below, now.plain == SIG_DFL ? &standard : &caught->found,
			      memory_order_release);
	if (now.plain == SIG_DFL || now.plain == SIG_IGN) { /* the C library knows the restorer */
		fresh.sa_flags |= now.plain == SIG_IGN ? SA_RESTART : 0;
		sigaction(caught->number, &fresh, NULL);
	} else {
		now.full = on_fault;
		now.flags |= SA_SIGINFO;
		exchange(caught->number, &now, &caught->found);
	}
}

void fault_install(void)
{
	if (!is_due())
		return;
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		cover(&signals[i]);
}
