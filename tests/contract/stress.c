/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes and threads that create, map, copy, share and fail at once on one node. The oracle:
 * each piece of memory holds the tag that its owner gave it, whoever reads it; refused calls have
 * the codes that they should; and at the end all memory is back.
 */
#include "harness/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

#define MIB       (UINT64_C(1) << 20)
#define OK        ACL_SUCCESS
#define PROCESSES 3
#define THREADS   3
#define ROUNDS    30
#define PIECE     (2 * MIB)
#define MAILBOXES (PROCESSES * THREADS)

enum mail { MAIL_EMPTY, MAIL_FULL, MAIL_TAKEN, MAIL_DONE };
struct mailbox {
	_Atomic int state;
	int process;
	uint64_t shareable;
	uint8_t tag;
};
struct board {
	_Atomic int wrong; /* what did not come out as it should */
	_Atomic int line;  /* where first */
	struct mailbox box[MAILBOXES];
};
static struct board *board;

struct worker {
	int process, index;
	unsigned seed;
	char *va; /* a reservation of one piece each: own, and imported */
	char *imported_va;
};

#define MUST(condition)                                                                 \
	do {                                                                            \
		int none_ = 0;                                                          \
		if (!(condition)) {                                                     \
			board->wrong++;                                                 \
			atomic_compare_exchange_strong(&board->line, &none_, __LINE__); \
		}                                                                       \
	} while (0)

static aclError create(aclrtDrvMemHandle *out, uint64_t size)
{
	aclrtPhysicalMemProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.memAttr = ACL_HBM_MEM_HUGE;
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	return aclrtMallocPhysical(out, size, &prop, 0);
}

static bool piece_is(const char *va, uint8_t tag)
{
	uint8_t first = 0, last = 0;

	return aclrtMemcpy(&first, 1, va, 1, ACL_MEMCPY_DEVICE_TO_HOST) == OK &&
	       aclrtMemcpy(&last, 1, va + PIECE - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST) == OK &&
	       first == tag && last == tag;
}

/* Takes a piece that a thread of another process offers, and looks at it. */
static void take_mail(struct worker *w)
{
	for (int i = 0; i < MAILBOXES; i++) {
		struct mailbox *box = &board->box[i];
		aclrtDrvMemHandle handle = NULL;
		int full = MAIL_FULL;

		if (box->process == w->process ||
		    !atomic_compare_exchange_strong(&box->state, &full, MAIL_TAKEN))
			continue;
		MUST(aclrtMemImportFromShareableHandle(box->shareable, 0, &handle) == OK);
		MUST(aclrtMapMem(w->imported_va, PIECE, 0, handle, 0) == OK);
		MUST(piece_is(w->imported_va, box->tag));
		MUST(aclrtUnmapMem(w->imported_va) == OK);
		MUST(aclrtFreePhysical(handle) == OK);
		box->state = MAIL_DONE;
	}
}

/* Calls that must be refused, and change nothing. */
static void fail_some(struct worker *w, aclrtDrvMemHandle mapped)
{
	aclrtDrvMemHandle none = NULL;

	MUST(create(&none, UINT64_C(1) << 44) == ACL_ERROR_RT_MEMORY_ALLOCATION);
	MUST(aclrtMapMem(w->va, PIECE, 0, mapped, 0) == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	MUST(aclrtUnmapMem(w->va + 4096) == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	MUST(aclrtReleaseMemAddress(w->va) == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
	MUST(aclrtFreePhysical((char *)mapped + 1) == ACL_ERROR_RT_PARAM_INVALID);
}

static void one_round(struct worker *w, aclrtStream stream)
{
	struct mailbox *mine = &board->box[w->process * THREADS + w->index];
	uint8_t tag = (uint8_t)(rand_r(&w->seed) % 255 + 1);
	aclrtDrvMemHandle handle = NULL;

	MUST(create(&handle, PIECE) == OK);
	MUST(aclrtMapMem(w->va, PIECE, 0, handle, 0) == OK);
	MUST(piece_is(w->va, 0));
	if (tag % 2)
		MUST(aclrtMemsetAsync(w->va, PIECE, tag, PIECE, stream) == OK &&
		     aclrtSynchronizeStream(stream) == OK);
	else
		MUST(aclrtMemset(w->va, PIECE, tag, PIECE) == OK);
	fail_some(w, handle);
	MUST(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
					     ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
					     &mine->shareable) == OK);
	mine->tag = tag;
	mine->state = MAIL_FULL;
	for (int i = 0; i < 20 && mine->state != MAIL_DONE; i++)
		take_mail(w);
	int full = MAIL_FULL;
	if (!atomic_compare_exchange_strong(&mine->state, &full, MAIL_EMPTY)) {
		while (mine->state != MAIL_DONE)
			take_mail(w);
		mine->state = MAIL_EMPTY;
	}
	MUST(piece_is(w->va, tag));
	MUST(aclrtUnmapMem(w->va) == OK);
	MUST(aclrtFreePhysical(handle) == OK);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	aclrtStream stream = NULL;
	void *va = NULL, *imported = NULL;

	MUST(aclrtSetDevice(0) == OK);
	MUST(aclrtCreateStream(&stream) == OK);
	MUST(aclrtReserveMemAddress(&va, PIECE, 0, NULL, 1) == OK);
	MUST(aclrtReserveMemAddress(&imported, PIECE, 0, NULL, 1) == OK);
	w->va = va;
	w->imported_va = imported;
	for (int i = 0; i < ROUNDS; i++)
		one_round(w, stream);
	MUST(aclrtReleaseMemAddress(va) == OK);
	MUST(aclrtReleaseMemAddress(imported) == OK);
	MUST(aclrtDestroyStream(stream) == OK);
	return NULL;
}

static void run_process(int process)
{
	pthread_t thread[THREADS];
	struct worker worker[THREADS];

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ .process = process,
					     .index = i,
					     .seed = (unsigned)(process * 100 + i) };
		if (pthread_create(&thread[i], NULL, run_worker, &worker[i]) != 0)
			_exit(2);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	exit(0);
}

TEST(stress, threads_and_processes_at_once)
{
	pid_t child[PROCESSES];
	size_t free_bytes = 0, total = 0;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_TRUE(board != MAP_FAILED);
	for (int i = 0; i < MAILBOXES; i++)
		board->box[i].process = i / THREADS;
	for (int p = 0; p < PROCESSES; p++) {
		child[p] = fork();
		if (child[p] == 0)
			run_process(p);
		ASSERT_GT(child[p], 0);
	}
	for (int p = 0; p < PROCESSES; p++) {
		int status = -1;

		EXPECT_EQ(waitpid(child[p], &status, 0), child[p]);
		EXPECT_EQ(status, 0);
	}
	EXPECT_EQ(board->wrong, 0);
	EXPECT_EQ(board->line, 0);
	ASSERT_EQ(aclrtSetDevice(0), OK);
	ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), OK);
	EXPECT_EQ(free_bytes, total);
	EXPECT_EQ(aclrtResetDevice(0), OK);
	munmap(board, sizeof(*board));
}
