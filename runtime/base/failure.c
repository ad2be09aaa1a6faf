/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of the program that failed: tells each kind once, and their number at the end. Owns a
 * table of kinds, each a site and a code, which does not grow: what finds no place in it is counted
 * alone.
 */
#include "base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define KIND_MAX    256u
#define LINE_BYTES  5120
#define FIRST_BYTES 1024

static _Atomic uint64_t kinds[KIND_MAX]; /* 0: free */
static _Atomic uint64_t failures, expected, kind_count;
static char first_text[FIRST_BYTES];
static atomic_bool first_is_there;
static bool is_off; /* begin() */

static void in_child(void)
{
	memset((void *)kinds, 0, sizeof(kinds));
	atomic_store(&failures, 0);
	atomic_store(&expected, 0);
	atomic_store(&kind_count, 0);
	atomic_store(&first_is_there, false);
}

static void begin(void)
{
	is_off = strcmp(npu_var_get(NPU_VAR_FAILURES, NULL), "off") == 0;
	pthread_atfork(NULL, NULL, in_child);
}

/* True for the first of its kind that finds a place. */
static bool is_new_kind(const struct npu_failure *failure)
{
	uint64_t key =
		((uint64_t)(uintptr_t)failure->site ^ (uint64_t)(unsigned)failure->code << 48) *
			UINT64_C(0x9e3779b97f4a7c15) |
		1;

	for (unsigned i = 0; i < KIND_MAX; i++) {
		_Atomic uint64_t *place = &kinds[((key >> 32) + i) % KIND_MAX];
		uint64_t found = atomic_load_explicit(place, memory_order_relaxed);

		if (found == 0 && atomic_compare_exchange_strong(place, &found, key)) {
			atomic_fetch_add(&kind_count, 1);
			return true;
		}
		if (found == key)
			return false;
	}
	return false;
}

/* "aclrtUnmapMem: virPtr is ... (107000 ACL_ERROR_RT_PARAM_INVALID, at prog+0x11f3)" */
static void describe(const struct npu_failure *failure, const char *text, char *out, size_t room)
{
	const char *call = failure->call, *name = failure->name, *file = NULL;
	bool named = text != NULL && strncmp(text, call, strlen(call)) == 0;
	Dl_info info = { 0 };

	if (dladdr(failure->site, &info) != 0 && info.dli_fname != NULL)
		file = basename(info.dli_fname);
	snprintf(out, room, "%s%s%s (%d%s%s, at %s+%#zx)", named ? "" : call,
		 named          ? ""
		 : text != NULL ? ": "
				: " failed",
		 text ?: "", failure->code, name != NULL ? " " : "", name ?: "", file ?: "",
		 (size_t)((uintptr_t)failure->site - (uintptr_t)info.dli_fbase));
}

static void note(const struct npu_failure *failure)
{
	bool logged = false, is_new = is_new_kind(failure);
	const char *text = failure->text ?: npu_message_next(&logged);
	enum npu_log_level level =
		is_new && !failure->expected && !logged ? NPU_LOG_WARN : NPU_LOG_INFO;
	char line[LINE_BYTES];
	bool is_first;

	if (failure->expected)
		atomic_fetch_add(&expected, 1);
	is_first = atomic_fetch_add(&failures, 1) == 0;
	if (!is_first && !npu_log_enabled(level))
		return;
	describe(failure, text, line, sizeof(line));
	npu_log(level, "%s", line);
	if (is_first) {
		memcpy(first_text, line, sizeof(first_text) - 1);
		atomic_store(&first_is_there, true);
	}
}

void npu_failure_note(const struct npu_failure *failure)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, begin);
	if (!is_off)
		note(failure);
	errno = saved;
}

__attribute__((destructor)) static void end_of_process(void)
{
	uint64_t count = atomic_load(&failures), kind = atomic_load(&kind_count);
	uint64_t tried = atomic_load(&expected);
	char more[64] = "";

	if (count == 0)
		return;
	if (tried > 0)
		snprintf(more, sizeof(more), ", %" PRIu64 " of them such as programs try", tried);
	npu_log(NPU_LOG_WARN, "%" PRIu64 " failure%s of %" PRIu64 "%s kind%s%s; the first: %s",
		count, count == 1 ? "" : "s", kind, kind == KIND_MAX ? " or more" : "",
		kind == 1 ? "" : "s", more, atomic_load(&first_is_there) ? first_text : "?");
}
