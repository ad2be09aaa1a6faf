/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's memory in copies: whether the program's own can be read and written, what of it may go
 * before a queued copy's turn, whether this machine has memory for what a copy writes, and why a
 * copy stopped. It moves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory.h"
#include "queue/copy.h"
#include "queue/queue.h"
#include "transport/loose.h"

/* PROCMAP_QUERY of /proc/self/maps, from Linux 6.11 on: the mapping at `at`; bit 0 of `access` says
 * that it is readable, bit 1 writable. */
struct maps_query {
	uint64_t bytes, wants, at, begin, end, access, page_bytes, offset, inode, more[4];
};
#define MAPS_QUERY   _IOWR('f', 17, struct maps_query)
#define MAPPINGS_MAX 64 /* of one copy */

#define PAGE_LEAST UINT64_C(4096) /* no system's pages are smaller */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int populate(uint64_t va, uint64_t bytes, bool write)
{
	uint64_t lead = va % page_bytes();
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int rc = TEMP_FAILURE_RETRY(madvise((void *)(va - lead), lead + bytes, advice));

	return rc == 0 ? 0 : errno;
}

/* True if every page of the range is mapped, whatever for; touches none. *resident: bytes whose
 * pages the host has given already, as far as that holds. */
static bool pages_mapped(uint64_t va, uint64_t bytes, uint64_t *resident)
{
	unsigned char state[4096];
	const uint64_t page = page_bytes();
	uint64_t end = va + bytes;

	*resident = 0;
	for (uint64_t at = va - va % page, pages; at < end; at += pages * page) {
		pages = MIN((end - at + page - 1) / page, sizeof(state));
		if (mincore((void *)at, pages * page, state) != 0)
			return false;
		for (uint64_t i = 0; i < pages; i++)
			*resident += (state[i] & 1) * page;
	}
	return true;
}

/* True if every page is resident in anonymous mappings that allow the access, of each of which one
 * page is tried. False also where the system cannot be asked by mapping, or there are many.
 * (populate() goes page by page, which takes half as long as the copy.) */
static bool is_plain(uint64_t va, uint64_t bytes, bool write)
{
	uint64_t page = page_bytes(), begin = va - va % page, resident;
	uint64_t end = bsim_round_up(va + bytes, page);
	struct maps_query q = { .bytes = sizeof(q), .at = begin };
	int kept = errno, left = MAPPINGS_MAX;
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (maps >= 0 && q.at < end && left-- > 0 && ioctl(maps, MAPS_QUERY, &q) == 0 &&
	       (q.access >> write & 1) != 0 && q.inode == 0 && populate(q.at, 1, write) == 0)
		q.at = q.end;
	if (maps >= 0)
		close(maps);
	errno = kept;
	return q.at >= end && pages_mapped(begin, end - begin, &resident) &&
	       resident == end - begin;
}

/* True if the system can read the eight bytes around va, or write the four: in a quarter of the
 * time that populate() takes. To read, it copies a mask before it refuses `how`; as any read, that
 * makes a stack grow. To write, it adds no bit to them, and would wake who waits there only if they
 * were -2048. */
static bool word_usable(uint64_t va, bool write)
{
	static uint32_t nobody;
	int kept = errno; /* of the program, whose copy may succeed */
	bool usable = write ? syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, NULL,
				      va & ~UINT64_C(3),
				      FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, -2048)) >= 0
			    : syscall(SYS_rt_sigprocmask, -1, va & ~UINT64_C(7), NULL,
				      sizeof(uint64_t)) != 0 &&
				      errno == EINVAL;

	errno = kept;
	return usable;
}

enum { POPULATE_WORKS = 1, PEEK_WORKS = 2, POKE_WORKS = 4 };

/* Kernels before 5.14 know no MADV_POPULATE, and qemu-user says of any page that all is well.
 * Valgrind, which reports what a system call reads, gives a program no vDSO. */
static int what_works(void)
{
	static int known = -1;
	int works = __atomic_load_n(&known, __ATOMIC_RELAXED);
	void *none;

	if (works >= 0)
		return works;
	none = mmap(NULL, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	works = 0;
	if (populate((uint64_t)&works, 1, true) == 0 && populate((uint64_t)none, 1, false) != 0)
		works |= POPULATE_WORKS;
	for (int write = 0; write < 2 && getauxval(AT_SYSINFO_EHDR) != 0; write++)
		if (word_usable((uint64_t)&works, write) &&
		    mprotect(none, page_bytes(), write ? PROT_READ : PROT_NONE) == 0 &&
		    !word_usable((uint64_t)none, write))
			works |= write ? POKE_WORKS : PEEK_WORKS;
	munmap(none, page_bytes());
	__atomic_store_n(&known, works, __ATOMIC_RELAXED);
	return works;
}

/* True of bytes in the page that this call's frame lies in: nobody need be asked about that one. */
static bool beside_this_frame(uint64_t va, uint64_t last)
{
	uint64_t page = (uint64_t)__builtin_frame_address(0) / PAGE_LEAST;

	return va / PAGE_LEAST == page && last / PAGE_LEAST == page;
}

/* The first of `whole` bytes, which are asked for by the word where they are few: in two pages at
 * most. A refused word may have another reason than its page, which populate() tells. Where no
 * bytes move the check takes no memory: some kernels give a page that is read some. */
static bool pages_usable(const struct bsim *bs, uint64_t va, uint64_t bytes, uint64_t whole,
			 bool write)
{
	int why, works = bs->contents ? what_works() : 0;
	bool words = whole <= PAGE_LEAST && (works & (write ? POKE_WORKS : PEEK_WORKS));
	uint64_t resident, last = va + bytes - 1;

	if (words && (beside_this_frame(va, last) ||
		      (word_usable(va, write) &&
		       (va / PAGE_LEAST == last / PAGE_LEAST || word_usable(last, write)))))
		return true;
	if (!(works & POPULATE_WORKS))
		return !words && pages_mapped(va, bytes, &resident);
	if (bytes >= UINT64_C(1) << 20 && is_plain(va, bytes, write))
		return true;
	why = populate(va, bytes, write);
	return why != ENOMEM && why != EFAULT && why != EINVAL;
}

static const char *const readable[] = { "readable", "writable" };

/* Why memory of the program does not answer. */
static const char *why_gone(struct bsim *bs, uint64_t va)
{
	const char *gone = gone_text_locked(bs, va, 0);
	uint64_t resident;
	bool mapped = pages_mapped(va, 1, &resident);

	if (gone == NULL)
		return mapped ? "its protection is in the way, or the end of the file mapped there"
			      : "unmapped by the program";
	return mapped ? gone : npu_text("%s, and unmapped by the program", gone);
}

drvError_t host_check_own(struct bsim *bs, const char *call, const char *argument,
			  const struct copy_end *end, uint64_t bytes, bool write)
{
	uint64_t va = end->ref.va, good = 0, bad = bytes;
	bool let_go = bytes > SIM_FEW_BYTES && bs->queues != NULL && !bs->queues->running, usable;

	if (let_go)
		queue_let_go_locked(bs);
	usable = pages_usable(bs, va, bytes, bytes, write);
	if (let_go)
		queue_take_back(bs);
	if (usable)
		return DRV_ERROR_NONE;
	while (bad - good > 1) { /* the shortest part that fails: its last byte */
		uint64_t middle = good + (bad - good) / 2;

		if (pages_usable(bs, va, middle, bytes, write))
			good = middle;
		else
			bad = middle;
	}
	return bsim_fail(DRV_ERROR_IOCRL_FAIL,
			 "%s: %s: byte %llu of %s at 0x%llx is no %s memory of this process: %s",
			 call, argument, (unsigned long long)(bad - 1), npu_size_text(bytes),
			 (unsigned long long)va, readable[write], why_gone(bs, va + bad - 1));
}

static bool loose_allowed(const struct bsim *bs)
{
	static int allowed = -1; /* not known yet */

	if (allowed >= 0)
		return allowed;
	allowed = loose_is_allowed(bs->queues->pid);
	if (!allowed)
		npu_log(NPU_LOG_INFO,
			"this process may not call process_vm_readv (%s): where the program unmaps "
			"memory under a queued copy, the copy ends the program",
			strerror(errno));
	return allowed;
}

bool host_loosen_locked(const struct bsim *bs, struct copy_end *end)
{
	if (copy_end_may_go(end) && loose_allowed(bs))
		end->ref.pid = bs->queues->pid;
	return end->ref.pid != 0 || !copy_end_may_go(end);
}

bool host_move_value_locked(struct bsim *bs, const char *call, struct copy_end *end, void *value,
			    unsigned bytes, bool write)
{
	uint64_t va = end->ref.va, moved = 0;
	void *there = (void *)va;
	bool at_src;

	if (host_loosen_locked(bs, end) || pages_usable(bs, va, bytes, bytes, write))
		moved = write ? loose_move(there, end->ref.pid, value, 0, bytes, &at_src)
			      : loose_move(value, 0, there, end->ref.pid, bytes, &at_src);
	if (moved < bytes)
		npu_message_set("%s: 0x%llx is no %s memory of this process: %s", call,
				(unsigned long long)va, readable[write], why_gone(bs, va));
	return moved == bytes;
}

drvError_t copy_room_locked(struct bsim *bs, const char *call, int issuer,
			    const struct copy_end *end, uint64_t bytes)
{
	uint64_t room, resident, missing = 0;

	if (!bs->contents || end->ref.space == SIM_RAW || bytes < COPY_ROOM_BYTES)
		return DRV_ERROR_NONE;
	/* A synchronous call has read it in queue_use_locked(), without the lock. */
	room = node_host_room_bytes(issuer == COPY_SYNC ? 20 * NODE_ROOM_MS : NODE_ROOM_MS);
	if (bytes <= room)
		return DRV_ERROR_NONE;
	for (uint64_t done = 0, run; done < bytes; done += run) {
		struct sim_ref ref = { .space = end->ref.space, .va = end->ref.va + done };
		unsigned char *at = copy_at_locked(bs, &ref, true, &run);

		if (at == NULL)
			return DRV_ERROR_NONE; /* the engine will say it better */
		run = MIN(run, bytes - done);
		pages_mapped((uint64_t)at, run, &resident);
		missing += run - MIN(resident, run);
	}
	if (missing <= room)
		return DRV_ERROR_NONE;
	return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
			 "%s: writing %s at 0x%llx needs %s of this machine's memory for pages "
			 "that nothing has touched yet, and it has %s to give: use a smaller "
			 "device (NPUSIM_HBM), fewer processes, or touch less",
			 call, npu_size_text(bytes), (unsigned long long)end->ref.va,
			 npu_size_text(missing), npu_size_text(room));
}

drvError_t copy_fault_locked(struct bsim *bs, const char *call, const struct sim_job *job)
{
	static const char *const why[] = {
		[SIM_FAULT_TRANSLATION] = "no translation",
		[SIM_FAULT_PERMISSION] = "a write to memory that is mapped read-only",
		[SIM_FAULT_ADDRESS] = "a page table entry that points to no memory",
	};
	unsigned long long bytes = job->bytes, moved = job->moved_bytes, va = job->fault_va;

	if (job->status == SIM_NO_MEMORY)
		return bsim_fail(DRV_ERROR_OUT_OF_MEMORY,
				 "%s: this process has no memory left to model a copy (ulimit -d, "
				 "ulimit -v); %llu of %llu bytes were copied",
				 call, moved, bytes);
	if (job->status == SIM_FAULT_HOST)
		return bsim_fail(DRV_ERROR_IOCRL_FAIL,
				 "%s: device %u's engine stopped after %llu of %llu bytes from "
				 "0x%llx to 0x%llx: 0x%llx is no %s memory of this process: %s",
				 call, job->device, moved, bytes, (unsigned long long)job->src.va,
				 (unsigned long long)job->dst.va, va,
				 readable[va == job->dst.va + moved], why_gone(bs, va));
	return bsim_fail(DRV_ERROR_IOCRL_FAIL,
			 "%s: device %u's engine stopped after %llu of %llu bytes: %s at 0x%llx in "
			 "the page table of %s: %s",
			 call, job->device, moved, bytes, why[job->status], va,
			 bsim_memory_text((unsigned)job->fault_space), place_text_locked(bs, va));
}
