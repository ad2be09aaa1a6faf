/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of libnpusim-record.so share. The library is loaded by LD_PRELOAD in front of an
 * ACL library, CANN's or any other: its functions of the same names call the real ones, and record
 * what was called and answered. It needs only libc, and changes nothing: results, errno and
 * outputs are those of the real function.
 */
#ifndef NPUSIM_PRELOAD_H
#define NPUSIM_PRELOAD_H

#include <errno.h>
#include <stdint.h>

#include "acl/acl.h"
#include "traces/record/record-functions.h"
#include "trace/recorder.h"

/* Functions that it calls for its own sake: they are asked for, never stood in front of. What it
 * stands in front of, PRELOAD_FUNCTIONS(X), sorted by name, the build finds in the wrappers. A
 * program that looks one up by dlsym() gets ours too. */
#define PRELOAD_ASKED(X)                 \
	X(aclrtGetDevice)                \
	X(aclrtGetDeviceCount)           \
	X(aclrtGetLogicDevIdByUserDevId) \
	X(aclrtGetSocName)

#define PRELOAD_EXPORT __attribute__((visibility("default")))

enum preload_function {
#define PRELOAD_SLOT(name) PRELOAD_##name,
	PRELOAD_FUNCTIONS(PRELOAD_SLOT) PRELOAD_WRAPPED_COUNT,
	PRELOAD_BEFORE_ASKED = PRELOAD_WRAPPED_COUNT - 1,
	PRELOAD_ASKED(PRELOAD_SLOT) PRELOAD_FUNCTION_COUNT
#undef PRELOAD_SLOT
};

/* The real function: in the libraries behind this one, else in an ACL library that was opened with
 * RTLD_LOCAL. NULL: there is none (yet). It is looked for once. Any thread. */
void *preload_real(enum preload_function function);

/* ---- a call (record.c) ---- */

/* The recorder, with *call begun; NULL: this call is not written down: it comes from within
 * another, or there is no file. */
struct trace_recorder *preload_enter(enum preload_function function, struct trace_call *call);
/* Ends what preload_enter() began, after the call's lines are written. */
void preload_leave(struct trace_recorder *recorder, const struct trace_call *call);
/* What a wrapper answers where there is no real function; says so once. */
aclError preload_missing(enum preload_function function);
/* A device as the whole server numbers it, whatever ASCEND_RT_VISIBLE_DEVICES shows of it. Between
 * enter and leave only, as the next two. The library is asked after calls that worked, so that what
 * it remembers of one that failed stays. */
int64_t preload_device(const struct trace_call *call, uint32_t user);
int64_t preload_device_at(const struct trace_call *call, const aclrtMemLocation *location);
/* The calling thread's current one. */
int64_t preload_current_device(const struct trace_call *call);

/* A function in front of the real one, with the parameters that its header gives them: `lines`
 * write down a call, with `recorder` and `call`, unless nothing is to be written down; `before` is
 * done in front of the call. */
#define WRAP_AROUND(name, before, lines)                                                  \
	PRELOAD_EXPORT aclError name PRELOAD_PARAMETERS_##name                            \
	{                                                                                 \
		int code_of_errno = errno;                                                \
		__typeof__(&name) real = (__typeof__(&name))preload_real(PRELOAD_##name); \
		struct trace_recorder *recorder;                                          \
		struct trace_call call;                                                   \
                                                                                          \
		if (real == NULL)                                                         \
			return preload_missing(PRELOAD_##name);                           \
		recorder = preload_enter(PRELOAD_##name, &call);                          \
		if (recorder == NULL) {                                                   \
			errno = code_of_errno;                                            \
			return real PRELOAD_ARGUMENTS_##name;                             \
		}                                                                         \
		before;                                                                   \
		errno = code_of_errno;                                                    \
		call.code = real PRELOAD_ARGUMENTS_##name;                                \
		code_of_errno = errno;                                                    \
		trace_call_end(recorder, &call);                                          \
		lines;                                                                    \
		preload_leave(recorder, &call);                                           \
		errno = code_of_errno;                                                    \
		return call.code;                                                         \
	}
#define WRAP(name, lines) WRAP_AROUND(name, , lines)
/* A call that no verb is for. */
#define WRAP_OTHER(name) WRAP(name, TRACE_RECORD(recorder, &call, CALL))
/* One that ends a name. */
#define WRAP_END(name, pointer, verb)                                                       \
	WRAP_AROUND(name, struct trace_ending ending = trace_ends(recorder, verb, pointer), \
		    trace_record_end(recorder, &call, &ending))

#endif
