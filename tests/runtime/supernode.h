/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of supernodes: each server is a process, what they tell one another lies on a board, and a
 * child's failed check is the test's.
 */
#ifndef NPUSIM_TESTS_SUPERNODE_H
#define NPUSIM_TESTS_SUPERNODE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "acl/acl.h"
#include "npusim/driver.h"
#include "npusim/npusim.h"
#include "harness/test.h"

#ifndef NPUSIM
#error "NPUSIM, the path of the command, is missing"
#endif

#define MIB     ((size_t)1 << 20)
#define PAGE    (2 * MIB)
#define RING    48u
#define UNKNOWN 107017

/* Shared by the processes of one test. */
static struct board {
	pthread_barrier_t step;
	unsigned failed;
	char text[1024];
	aclrtMemFabricHandle handle[RING];
	uint64_t number;
	char key[65];
	int32_t pid[RING];
	unsigned flag;
	unsigned most_descriptors;
} * board;

SETUP(supernode)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_TRUE(board != MAP_FAILED);
}

TEARDOWN(supernode)
{
	munmap(board, sizeof(*board));
}

static inline void note_failure(int line, const char *what, long long is, long long wanted)
{
	if (__atomic_fetch_add(&board->failed, 1, __ATOMIC_SEQ_CST) == 0)
		snprintf(board->text, sizeof(board->text), "line %d: %s is %lld, not %lld: %s",
			 line, what, is, wanted, aclGetRecentErrMsg());
}

/* A child's check. */
#define IS(expression, wanted)                                                          \
	do {                                                                            \
		long long is_ = (long long)(expression), wanted_ = (long long)(wanted); \
		if (is_ != wanted_)                                                     \
			note_failure(__LINE__, #expression, is_, wanted_);              \
	} while (0)

static inline void step(void)
{
	pthread_barrier_wait(&board->step);
}

static inline void wait_for(const unsigned *flag, unsigned value)
{
	while (__atomic_load_n(flag, __ATOMIC_SEQ_CST) != value)
		usleep(1000);
}

static inline void tell(unsigned *flag, unsigned value)
{
	__atomic_store_n(flag, value, __ATOMIC_SEQ_CST);
}

/* Which server does not end by itself. */
enum fate {
	EACH_ENDS,
	SERVER_0_STOPPED, /* once the flag is 2; it is 3 then */
	SERVER_1_KILLED
};

static inline int run_program(char **argv)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* A process of each server runs body(server); the parent, which makes no call, says how many did
 * not end well. */
static inline void run_servers(unsigned servers, enum fate fate, void (*body)(unsigned server))
{
	static unsigned runs;
	pthread_barrierattr_t shared;
	pid_t pids[RING];
	char name[32];

	snprintf(name, sizeof(name), "pod-%d-%u", (int)getpid(), runs++);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&board->step, &shared, servers);
	for (unsigned server = 0; server < servers; server++) {
		pids[server] = fork();
		if (pids[server] == 0) {
			char number[16];

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(100);
			snprintf(number, sizeof(number), "%u", server);
			setenv("NPUSIM_SUPERNODE", name, 1);
			setenv("NPUSIM_SERVER", number, 1);
			setenv("NPUSIM_LEAKS", "off", 1);
			setenv("NPUSIM_FAILURES", "off", 1);
			board->pid[server] = getpid();
			step(); /* all have told theirs */
			body(server);
			_exit(0);
		}
	}
	if (fate == SERVER_0_STOPPED) {
		char program[] = NPUSIM, verb[] = "node", stop[] = "--stop", zero[] = "0";
		char *argv[] = { program, verb, stop, zero, name, NULL };

		wait_for(&board->flag, 2);
		EXPECT_EQ(run_program(argv), 0);
		tell(&board->flag, 3);
	}
	for (unsigned left = servers; left > 0;
	     left--) { /* in any order: some wait for others' ends */
		int status = 0;
		pid_t pid = wait(&status);

		EXPECT_EQ(status, fate == SERVER_0_STOPPED && pid == pids[0]  ? SIGTERM
				  : fate == SERVER_1_KILLED && pid == pids[1] ? SIGKILL
									      : 0);
	}
	EXPECT_EQ(board->failed, 0u);
	EXPECT_STREQ(board->text, "");
}

/* A test whose body is that of run_servers(). */
#define TEST_SERVERS(name, servers, fate)                \
	static void body_##name(unsigned server);        \
	TEST(supernode, name)                            \
	{                                                \
		run_servers(servers, fate, body_##name); \
	}                                                \
	static void body_##name(unsigned server)

static inline void start(int device)
{
	IS(aclInit(NULL), 0);
	IS(aclrtSetDevice(device), 0);
}

static inline aclrtPhysicalMemProp prop_of(aclrtMemLocationType type)
{
	return (aclrtPhysicalMemProp){
		.handleType = ACL_MEM_HANDLE_TYPE_NONE,
		.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.memAttr = type == ACL_MEM_LOCATION_TYPE_HOST ? ACL_MEM_P2P_HUGE : ACL_HBM_MEM_HUGE,
		.location = { .id = 0, .type = type },
	};
}

static inline aclrtDrvMemHandle create(size_t bytes)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_MEM_LOCATION_TYPE_DEVICE);
	aclrtDrvMemHandle handle = NULL;

	IS(aclrtMallocPhysical(&handle, bytes, &prop, 0), 0);
	return handle;
}

static inline void *map(aclrtDrvMemHandle handle, size_t bytes)
{
	void *at = NULL;

	IS(aclrtReserveMemAddress(&at, bytes, 0, NULL, 1), 0);
	IS(aclrtMapMem(at, bytes, 0, handle, 0), 0);
	return at;
}

static inline aclError export_fabric(aclrtDrvMemHandle handle, uint64_t flags, unsigned as)
{
	return aclrtMemExportToShareableHandleV2(handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC,
						 &board->handle[as]);
}

static inline aclError import_fabric(unsigned from, aclrtDrvMemHandle *handle)
{
	return aclrtMemImportFromShareableHandleV2(&board->handle[from],
						   ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, handle);
}

static inline int byte_at(const void *at)
{
	unsigned char byte = 0;

	IS(aclrtMemcpy(&byte, 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	return byte;
}

static inline size_t free_bytes(void)
{
	size_t free_now = 0, total = 0;

	IS(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total), 0);
	return free_now;
}

/* The parent may not have waited for it yet. Its first thread may be gone before its others. */
static inline void wait_for_end_of(pid_t pid)
{
	char path[32], state = '\0';
	unsigned threads = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (FILE *file; (state != 'Z' || threads > 1) && (file = fopen(path, "r")) != NULL;
	     usleep(1000)) {
		if (fscanf(file,
			   "%*d (%*[^)]) %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			   "%*s %*s %*s %u",
			   &state, &threads) != 2)
			state = '\0';
		fclose(file);
	}
}

#endif
