/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports a host access to device memory: the address, its owner, and the call to use instead.
 * Owns the SIGSEGV handler, which is installed only if the program has none, and which removes
 * itself after its report: the access is repeated and ends the program as it would have without
 * it.
 *
 * The handler takes no lock and calls only write() and sigaction(): it reads tables that another
 * thread may be changing, which at worst makes the report wrong but never affects how the program
 * ends.
 */
#include "memory/memory.h"
#include "memory/place.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct text {
	char bytes[1024];
	size_t used;
};

static void add(struct text *t, const char *s)
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
	if (base == 16)
		add(t, "0x");
	add(t, digits + n);
}

static void add_bytes(struct text *t, uint64_t bytes)
{
	static const char *const names[] = { " bytes", " KiB", " MiB", " GiB", " TiB" };
	unsigned unit = 0;

	while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	add_number(t, bytes, 10);
	add(t, names[unit]);
}

static void add_owner(struct text *t, uint32_t owner)
{
	if (owner == NPU_OWNER_HOST) {
		add(t, " of the host");
		return;
	}
	add(t, " of device ");
	add_number(t, owner, 10);
}

/* "4 MiB into the thing at 0x..., 16 MiB" */
static void add_place(struct text *t, uint64_t va, const char *thing, const struct npu_place *p)
{
	add(t, ": ");
	add_bytes(t, va - p->base);
	add(t, " into the ");
	add(t, thing);
	add(t, " at ");
	add_number(t, p->base, 16);
	add(t, ", ");
	add_bytes(t, p->bytes);
}

static void tell(struct text *t, const struct bsim *bs, uint64_t va)
{
	struct npu_place p = place_at(bs, va);

	switch (p.kind) {
	case NPU_PLACE_RESERVED:
		add_place(t, va, "reservation", &p);
		add(t, ", where nothing is mapped (any more). Map memory there first (");
		add(t, bs->cuda != NULL ? "cuMemMap)" : "aclrtMapMem)");
		break;
	case NPU_PLACE_MAPPED:
		add_place(t, va, "mapping", &p);
		add_owner(t, p.owner);
		add(t, bs->cuda != NULL
			       ? ". The CPU may not reach it: copy with cuMemcpy"
			       : ". The CPU may not reach it: copy with aclrtMemcpy, or grant it "
				 "with aclrtMemSetAccess on the whole mapping, location "
				 "ACL_MEM_LOCATION_TYPE_HOST, id 0");
		break;
	case NPU_PLACE_REGISTERED:
		add_place(t, va, "device's address of host memory", &p);
		add(t, ". The CPU has it at ");
		add_number(t, p.host_va, 16);
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
	return bs != NULL && bs->window != NULL && va < WINDOW_HOST_END &&
	       (window_has(bs->window, va) || window_peek(bs->window, va) != NULL);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct sigaction standard = { .sa_handler = SIG_DFL };
	uint64_t va = (uintptr_t)info->si_addr;
	struct text t = { .used = 0 };

	(void)context;
	if (info->si_code > 0 && is_ours(bsim_process, va)) {
		ssize_t written;

		add(&t, "npusim[");
		add_number(&t, (uint64_t)getpid(), 10);
		add(&t, "] error: the program touched ");
		add_number(&t, va, 16);
		tell(&t, bsim_process, va);
		written = write(STDERR_FILENO, t.bytes, t.used);
		(void)written;
	}
	sigaction(number, &standard, NULL);
	if (info->si_code <= 0) /* sent, not met: nothing would repeat it */
		raise(number);
	errno = saved;
}

void fault_install(void)
{
	struct sigaction now,
		ours = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static bool done;

	if (done || sigaction(SIGSEGV, NULL, &now) != 0)
		return;
	done = true;
	if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
		sigaction(SIGSEGV, &ours, NULL);
}
