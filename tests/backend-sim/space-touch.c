/* SPDX-License-Identifier: Apache-2.0
 *
 * A host touch of device memory: the report, and that the program's own handler, whatever it is and
 * whenever it came, gets its signal as it would without one.
 */
#include "space-rig.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM | MEM_PAGE_HUGE)

SETUP(touch)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer has SIGSEGV");
#endif
}

TEARDOWN(touch)
{
	space_close();
}

#define REPORT "error: the program touched 0x"

static unsigned reports(void)
{
	unsigned count = 0;

	for (const char *at = harness_last_stderr(); (at = strstr(at, REPORT)) != NULL; at++)
		count++;
	return count;
}

/* ---- the report ---- */

static void touch_mapping(void *arg)
{
	uint64_t a;

	(void)arg;
	space_open("docs", NULL);
	a = space_reserve(4 * MIB, 0);
	space_map(a, 4 * MIB, space_create(1, 4 * MIB));
	*(volatile char *)at(a + 3 * MIB) = 1;
}

static void touch_allocation(void *arg)
{
	(void)arg;
	space_open("docs", NULL);
	*(volatile char *)at(space_alloc(2 * MIB, HUGE) + 5) = 1;
}

static void touch_unmapped(void *arg)
{
	uint64_t a;

	(void)arg;
	space_open("docs", NULL);
	a = space_reserve(2 * MIB, 0);
	space_map(a, 2 * MIB, space_create(0, 2 * MIB));
	CALL(halMemUnmap, at(a));
	*(volatile char *)at(a) = 1;
}

static void touch_freed(void *arg)
{
	uint64_t a;

	(void)arg;
	space_open("docs", NULL);
	a = space_reserve(2 * MIB, 0);
	CALL(halMemAddressFree, at(a));
	*(volatile char *)at(a) = 1;
}

static void touch_closed(void *arg)
{
	uint64_t a;

	(void)arg;
	space_open("docs", NULL);
	a = space_alloc(2 * MIB, HUGE);
	space_close();
	*(volatile char *)at(a) = 1;
}

static void touch_forked(void *arg)
{
	uint64_t a;
	int status = 0;

	(void)arg;
	space_open("docs", NULL);
	a = space_alloc(2 * MIB, HUGE);
	if (fork() == 0)
		*(volatile char *)at(a) = 1;
	wait(&status);
	_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static volatile uint64_t nowhere = 64;

static void touch_nothing(void *arg)
{
	(void)arg;
	space_open("docs", NULL);
	*(volatile char *)at(nowhere) = 1;
}

static void send_fault(void *arg)
{
	(void)arg;
	space_open("docs", NULL);
	kill(getpid(), SIGSEGV);
	pause();
}

TEST(touch, traps_with_a_report)
{
	EXPECT_SIGNAL(SIGSEGV, touch_mapping, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "the program touched 0x");
	EXPECT_CONTAINS(harness_last_stderr(), ": 3 MiB into the mapping at 0x");
	EXPECT_CONTAINS(harness_last_stderr(), "of device 1");
	EXPECT_CONTAINS(harness_last_stderr(), "aclrtMemSetAccess");
	EXPECT_SIGNAL(SIGSEGV, touch_allocation, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "5 bytes into the allocation at 0x");
	EXPECT_CONTAINS(harness_last_stderr(), "aclrtMemcpy");
	EXPECT_SIGNAL(SIGSEGV, touch_unmapped, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "where nothing is mapped");
	EXPECT_SIGNAL(SIGSEGV, touch_freed, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "not allocated, or not any more");
	EXPECT_SIGNAL(SIGSEGV, touch_closed, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "not allocated, or not any more");
	EXPECT_EXIT(SIGSEGV, touch_forked, NULL);
	EXPECT_CONTAINS(harness_last_stderr(), "that this one was forked from");
}

TEST(touch, other_faults_are_passed_on_in_silence)
{
	EXPECT_SIGNAL(SIGSEGV, touch_nothing, NULL);
	EXPECT_STREQ(harness_last_stderr(), "");
	EXPECT_SIGNAL(SIGSEGV, send_fault, NULL);
	EXPECT_STREQ(harness_last_stderr(), "");
}

/* ---- the program's handler, as it stands below ours ---- */

/* What a handler was given and found; what the program did. */
struct outcome {
	struct handled {
		unsigned calls;
		int code;
		bool at_address, frame, on_stack, own_blocked, other_blocked, reset, errno_kept;
	} handled[3];
	unsigned touched, survived;
};

static const struct handler_case {
	const char *label;
	int flags; /* IGNORED, DEFAULT: no handler */
	bool masked;
	int ends; /* 0: the program goes on to its end; else the signal that ends it */
} handlers[] = {
#define DEFAULT (-1)
#define IGNORED (-2)
	{ "siginfo", SA_SIGINFO, false, 0 },
	{ "plain", 0, false, 0 },
	{ "nodefer", SA_SIGINFO | SA_NODEFER, false, 0 },
	{ "resethand", SA_SIGINFO | SA_RESETHAND, false, SIGSEGV },
	{ "onstack", SA_SIGINFO | SA_ONSTACK, false, 0 },
	{ "mask", SA_SIGINFO, true, 0 },
	{ "all", SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART, true, 0 },
	{ "default", DEFAULT, false, SIGSEGV },
	{ "ignored", IGNORED, false, SIGSEGV },
};

/* Shared with the child that fills it. */
static struct outcome *seen;
static const struct handler_case *handler;
static volatile char *target;
static char other_stack[65536];
static sigjmp_buf back;

static void note(int number, siginfo_t *info, void *context)
{
	struct handled *h = &seen->handled[seen->touched];
	struct sigaction now;
	sigset_t blocked;
	char here;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigaction(number, NULL, &now);
	h->calls++;
	h->on_stack = &here >= other_stack && &here < other_stack + sizeof(other_stack);
	h->own_blocked = sigismember(&blocked, SIGSEGV);
	h->other_blocked = sigismember(&blocked, SIGUSR1);
	h->reset = now.sa_handler == SIG_DFL;
	h->errno_kept = errno == EDOM;
	if (info != NULL) {
		h->code = info->si_code;
		h->at_address = info->si_addr == (void *)target;
		h->frame = context != NULL;
	}
	if (seen->touched < 2)
		siglongjmp(back, 1);
}

static void note_plain(int number)
{
	note(number, NULL, NULL);
}

static void install(const struct handler_case *c)
{
	struct sigaction action = { .sa_flags = c->flags < 0 ? 0 : c->flags };
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };

	if (c->masked)
		sigaddset(&action.sa_mask, SIGUSR1);
	if (c->flags < 0)
		action.sa_handler = c->flags == DEFAULT ? SIG_DFL : SIG_IGN;
	else if (c->flags & SA_SIGINFO)
		action.sa_sigaction = note;
	else
		action.sa_handler = note_plain;
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

/* The third time the signal is only sent. */
static void touch_and_send(void)
{
	*seen = (struct outcome){ .touched = 0 };
	for (; seen->touched < 2; seen->touched++)
		if (handler->flags != IGNORED && sigsetjmp(back, 1) == 0) {
			errno = EDOM;
			*target = 1;
		}
	errno = EDOM;
	raise(SIGSEGV);
	seen->survived++;
	if (handler->flags == IGNORED)
		*target = 1;
	_exit(0);
}

/* Where `device` is NULL, with no driver at all. */
static void run_handler(void *device)
{
	install(handler);
	if (device != NULL) {
		space_open("docs", NULL);
		if (*(bool *)device)
			target = at(space_alloc(2 * MIB, HUGE));
	}
	touch_and_send();
}

static void end_as_expected(void *device)
{
	if (handler->ends != 0)
		EXPECT_SIGNAL(handler->ends, run_handler, device);
	else
		EXPECT_EXIT(0, run_handler, device);
}

TEST_EACH(touch, handlers_below_are_served_as_the_kernel_would, handlers, label)
{
	static bool yes = true, no = false;
	struct outcome alone;

	handler = param;
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	target = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end_as_expected(NULL);
	alone = *seen;
	end_as_expected(&no);
	EXPECT_EQ(memcmp(&alone, seen, sizeof(alone)), 0);
	EXPECT_STREQ(harness_last_stderr(), "");
	end_as_expected(&yes);
	for (int i = 0; i < 3; i++) /* SEGV_MAPERR or SEGV_ACCERR: the kernel's */
		seen->handled[i].code = alone.handled[i].code;
	EXPECT_EQ(memcmp(&alone, seen, sizeof(alone)), 0);
	EXPECT_GE(reports(), 1);
	munmap(seen, 4096);
	munmap((void *)target, 4096);
}

/* ---- where this machine has no page ---- */

/* A file that is shorter than its mapping stands for memory that the kernel refuses to give. */
static void touch_refused_page(void *own_handler)
{
	struct drv_mem_access_desc access = { .type = 3,
					      .location = { .id = 0, .side = MEM_HOST_SIDE } };
	struct sigaction mine = { .sa_handler = own_handler };
	int file = memfd_create("short", 0);
	uint64_t a;

	sigaction(SIGBUS, &mine, NULL);
	space_open("docs", NULL);
	a = space_reserve(2 * MIB, 0);
	space_map(a, 2 * MIB, space_create(0, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, halMemSetAccess, at(a), 2 * MIB, &access, 1);
	mmap(at(a), 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
	*(volatile char *)at(a + MIB) = 1;
}

static void exit_43(int number)
{
	_exit(number == SIGBUS ? 43 : 1);
}

TEST(touch, page_that_this_machine_has_not_is_reported)
{
	EXPECT_SIGNAL(SIGBUS, touch_refused_page, (void *)SIG_DFL);
	EXPECT_EQ(reports(), 1);
	EXPECT_CONTAINS(harness_last_stderr(), ": 1 MiB into the mapping at 0x");
	EXPECT_CONTAINS(harness_last_stderr(), "of device 0. This machine has no page for it");
	EXPECT_EXIT(43, touch_refused_page, (void *)exit_43);
	EXPECT_EQ(reports(), 1);
}

/* ---- handlers that come later ---- */

static struct sigaction previous;

static void exit_42(int number)
{
	(void)number;
	_exit(42);
}

/* As Python's faulthandler passes a fault on. */
static void restore_and_raise(int number)
{
	sigaction(number, &previous, NULL);
	raise(number);
}

static void chain(int number, siginfo_t *info, void *context)
{
	previous.sa_sigaction(number, info, context);
}

static void touch_below(void *handler_to_be)
{
	struct sigaction above = { .sa_sigaction = handler_to_be,
				   .sa_flags = SA_SIGINFO | SA_NODEFER };

	space_open("docs", NULL);
	sigaction(SIGSEGV, &above, &previous);
	*(volatile char *)at(space_alloc(2 * MIB, HUGE)) = 1;
}

TEST(touch, later_handlers_stand_above)
{
	EXPECT_EXIT(42, touch_below, (void *)exit_42);
	EXPECT_STREQ(harness_last_stderr(), "");
	EXPECT_SIGNAL(SIGSEGV, touch_below, (void *)restore_and_raise);
	EXPECT_EQ(reports(), 1);
	EXPECT_SIGNAL(SIGSEGV, touch_below, (void *)chain);
	EXPECT_EQ(reports(), 1);
}

/* Enabled before the driver opens, disabled after: SIG_DFL comes back over ours. */
static void touch_after_default(void *arg)
{
	struct sigaction early = { .sa_handler = restore_and_raise, .sa_flags = SA_NODEFER };
	uint64_t a;

	sigaction(SIGSEGV, &early, &previous);
	space_open("docs", NULL);
	a = space_reserve(2 * MIB, 0);
	sigaction(SIGSEGV, &previous, NULL);
	if (*(bool *)arg)
		space_map(a, 2 * MIB, space_create(0, 2 * MIB));
	else
		a = space_alloc(2 * MIB, HUGE);
	*(volatile char *)at(a) = 1;
}

TEST(touch, is_reported_after_the_default_was_put_back)
{
	bool map = true, alloc = false;

	EXPECT_SIGNAL(SIGSEGV, touch_after_default, &map);
	EXPECT_EQ(reports(), 1);
	EXPECT_SIGNAL(SIGSEGV, touch_after_default, &alloc);
	EXPECT_EQ(reports(), 1);
}

/* A test framework's handler stands for one test at a time. */
static void touch_in_second_test(void *arg)
{
	struct sigaction framework = { .sa_handler = exit_42 };

	(void)arg;
	sigaction(SIGSEGV, &framework, &previous);
	space_open("docs", NULL);
	sigaction(SIGSEGV, &previous, NULL);
	sigaction(SIGSEGV, &framework, &previous);
	*(volatile char *)at(space_alloc(2 * MIB, HUGE)) = 1;
}

TEST(touch, is_reported_in_each_test_of_a_framework)
{
	EXPECT_EXIT(42, touch_in_second_test, NULL);
	EXPECT_EQ(reports(), 1);
}

static void jump_back(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void survive_many(void *arg)
{
	struct sigaction mine = { .sa_handler = jump_back };

	(void)arg;
	sigaction(SIGSEGV, &mine, NULL);
	space_open("docs", NULL);
	target = at(space_alloc(2 * MIB, HUGE));
	for (volatile int i = 0; i < 40; i++)
		if (sigsetjmp(back, 1) == 0)
			*target = 1;
	_exit(42);
}

TEST(touch, a_program_that_survives_is_told_some)
{
	EXPECT_EXIT(42, survive_many, NULL);
	EXPECT_EQ(reports(), 16);
	EXPECT_CONTAINS(harness_last_stderr(), "are not reported any more");
}

/* ---- small stacks ---- */

static void *touch_target(void *arg)
{
	*(volatile char *)arg = 1;
	return NULL;
}

/* The model is inside of this program, and its thread-local data inside of each thread's stack; a
 * program that loads it has that elsewhere. */
static int add_thread_local(struct dl_phdr_info *info, size_t size, void *bytes)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)bytes += info->dlpi_phdr[i].p_memsz;
	return 0;
}

static void touch_on_small_stack(void *arg)
{
	long least = sysconf(_SC_THREAD_STACK_MIN);
	size_t bytes = least > 16384 ? (size_t)least : 16384;
	pthread_attr_t attr;
	pthread_t thread;

	(void)arg;
	space_open("docs", NULL);
	pthread_attr_init(&attr);
	dl_iterate_phdr(add_thread_local, &bytes);
	EXPECT_EQ(pthread_attr_setstacksize(&attr, bytes), 0);
	EXPECT_EQ(pthread_create(&thread, &attr, touch_target, at(space_alloc(2 * MIB, HUGE))), 0);
	pthread_join(thread, NULL);
}

TEST(touch, is_reported_on_a_stack_of_16_kib)
{
	EXPECT_SIGNAL(SIGSEGV, touch_on_small_stack, NULL);
	EXPECT_EQ(reports(), 1);
}
