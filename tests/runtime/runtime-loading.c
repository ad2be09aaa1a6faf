/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to load the library: opened, closed and opened again; twice, in a namespace of the dynamic
 * linker each; and under valgrind's memcheck. LIBRARY is the path of libascendcl.so; this program
 * is not linked with it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define BYTES 4096

/* A copy of the library, by the functions that a small program calls. */
struct copy {
	void *library, *device;
	int (*init)(const char *), (*set_device)(int32_t), (*malloc)(void **, size_t, int),
		(*memcpy)(void *, size_t, const void *, size_t, int), (*free)(void *),
		(*reset_device)(int32_t), (*finalize)(void);
};

static bool load(struct copy *c, Lmid_t where)
{
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "aclInit", &c->init },         { "aclrtSetDevice", &c->set_device },
		{ "aclrtMalloc", &c->malloc },   { "aclrtMemcpy", &c->memcpy },
		{ "aclrtFree", &c->free },       { "aclrtResetDevice", &c->reset_device },
		{ "aclFinalize", &c->finalize },
	};

	c->library = dlmopen(where, LIBRARY, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; c->library && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!(*(void **)functions[i].function = dlsym(c->library, functions[i].name)))
			return false;
	return c->library != NULL;
}

static int begin(struct copy *c, const char *bytes)
{
	int error = c->init(NULL);

	error = error ? error : c->set_device(0);
	error = error ? error : c->malloc(&c->device, BYTES, 0);
	return error ? error : c->memcpy(c->device, BYTES, bytes, BYTES, 1);
}

/* 0, or what failed; -1: other bytes came back. */
static int end(struct copy *c, const char *bytes)
{
	char back[BYTES];
	int error = c->memcpy(back, BYTES, c->device, BYTES, 2);

	if (!error && memcmp(back, bytes, BYTES) != 0)
		return -1;
	error = error ? error : c->free(c->device);
	error = error ? error : c->reset_device(0);
	return error ? error : c->finalize();
}

TEST(loading, closed_and_opened_again)
{
	char bytes[BYTES];

	for (int round = 0; round < 3; round++) {
		struct copy c;

		memset(bytes, round + 1, BYTES);
		ASSERT_TRUE(load(&c, LM_ID_BASE));
		ASSERT_EQ(begin(&c, bytes), 0);
		if (round > 0)
			ASSERT_EQ(end(&c, bytes), 0);
		dlclose(c.library); /* the first time with a device open */
		if (round == 0) {
			ASSERT_TRUE(load(&c, LM_ID_BASE));
			ASSERT_EQ(end(&c, bytes), 0);
		}
	}
}

/* 0, or the step that failed: a second copy answers that it cannot work, and why; the first works.
 */
static int use_two_copies(void)
{
	struct copy first, second;
	char bytes[BYTES];

	memset(bytes, 1, BYTES);
	if (!load(&first, LM_ID_BASE) || !load(&second, LM_ID_NEWLM))
		return 1;
	if (begin(&first, bytes) != 0)
		return 2;
	if (second.init(NULL) != 500000 || second.set_device(0) != 500000)
		return 3;
	return end(&first, bytes) != 0 ? 4 : 0;
}

TEST(loading, copy_in_a_namespace_says_why_it_cannot_work)
{
	char heard[4096] = "";
	FILE *program;
	size_t got;

	if (SANITIZED)
		SKIP("a sanitizer's library cannot be loaded twice");
	setenv("LOADING_TEST", "two", 1);
	program = popen("exec 2>&1 /proc/$PPID/exe", "r");
	unsetenv("LOADING_TEST");
	ASSERT_NE(program, NULL);
	got = fread(heard, 1, sizeof(heard) - 1, program);
	heard[got] = '\0';
	EXPECT_EQ(pclose(program), 0);
	EXPECT_CONTAINS(heard, "was loaded by dlmopen() into namespace 1");
}

/* ---- memcheck ---- */

__attribute__((constructor)) static void be_a_small_program(void)
{
	char bytes[BYTES];
	struct copy c;
	int error;

	if (!getenv("LOADING_TEST"))
		return;
	if (strcmp(getenv("LOADING_TEST"), "none") == 0)
		_exit(0);
	if (strcmp(getenv("LOADING_TEST"), "two") == 0)
		_exit(use_two_copies());
	memset(bytes, 3, BYTES);
	error = load(&c, LM_ID_BASE) ? begin(&c, bytes) : -2;
	_exit(error ? 1 : end(&c, bytes) ? 2 : 0);
}

TEST(loading, memcheck_runs_a_small_program)
{
	int status;

	if (SANITIZED || system("valgrind --version > /dev/null 2>&1") != 0)
		SKIP("needs valgrind, and no sanitizer");
	setenv("LOADING_TEST", "none", 1);
	if (system("valgrind -q /proc/$PPID/exe > /dev/null 2>&1") != 0)
		SKIP("needs a valgrind that can read what this compiler has written");
	/* The settings are those of npusim(1). */
	setenv("NPUSIM_NODE", "memcheck", 1);
	setenv("NPUSIM_DEVICES", "1", 1);
	setenv("NPUSIM_HBM", "256M", 1);
	setenv("NPUSIM_HOST_MEMORY", "128M", 1);
	setenv("NPUSIM_WINDOW", "0x200000000+32G", 1);
	setenv("LOADING_TEST", "small", 1);
	status = system("valgrind -q --error-exitcode=9 /proc/$PPID/exe");
	unsetenv("LOADING_TEST");
	EXPECT_EQ(WEXITSTATUS(status), 0);
}
