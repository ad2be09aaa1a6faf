/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process calls, as lines of a trace (traces/FORMAT.md): owns the file, the names in it, the
 * stamps, and who is which thread. The runtime's trace driver and the preload library feed it, each
 * with the calls of its own level; it knows neither.
 *
 * A line is written, with one write(2), when its call has returned; its stamps are of the call's
 * beginning. Every function may be called from any thread; none fails: a call must not go another
 * way because it is recorded. Where the file takes no more (a full disk), the log says so once, and
 * the recording is over.
 *
 * Each process has a file of its own: %p in the path is its id. A file that another process writes,
 * or one of the same run (NPUSIM_RUN) has written, is left alone, and the id goes in before the
 * extension: calls.12.trace; a second program in one process, after exec(), takes calls.12-2.trace.
 * A child of fork() starts with its first call; what the parent's handles were is not in it.
 */
#ifndef NPUSIM_TRACE_RECORDER_H
#define NPUSIM_TRACE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stack.h"
#include "npusim/trace.h"
#include "trace/names.h"

struct trace_recorder;

/* One call. What it is about is sometimes not known (another's reservation): then its line is
 * `call op=`. */
struct trace_call {
	const char *op;
	uint64_t host_ns, simulated_ps;
	uint64_t took_ns; /* 0: its end was not told */
	bool simulated;
	int32_t code;     /* aclError that it answered */
	const char *site; /* npu_stack_lines() of what obtains memory; NULL: not known */
};

/* Makes the file, or empties one of an earlier run. `about` follows program, process and start in
 * its info line: "backend=sim soc=Ascend910B1". NULL: errno says why. */
struct trace_recorder *trace_recorder_open(const char *path, const char *about);
void trace_recorder_close(struct trace_recorder *recorder);
/* Why no file can be made or written there, as far as that can be told without making it; NULL:
 * nothing is in the way. */
const char *trace_path_problem(const char *path);
/* One more info line: "key=value key=value". */
void trace_recorder_about(struct trace_recorder *recorder, const char *about);

/* A call that begins now. */
struct trace_call trace_call_begin(const struct trace_recorder *recorder, const char *op);

/* It ends now. What takes simulated time has no other. */
void trace_call_end(const struct trace_recorder *recorder, struct trace_call *call);

/* ---- calls that have returned ---- */

/* A line: the record, in which each name has as its offset what the program knows it by, an address
 * or a handle. Stamps, code, op and site are the call's; the time it took stands on its first line
 * alone. has: what the verb need not have, but where hint and page_lg2 are not 0. key: equal in all
 * processes for one share. */
void trace_record(struct trace_recorder *recorder, struct trace_call *call,
		  struct npu_trace_record record);
#define TRACE_RECORD(recorder, call, verb_, ...) \
	trace_record(recorder, call,             \
		     (struct npu_trace_record){ .verb = NPU_TRACE_##verb_, __VA_ARGS__ })
#define TRACE_AT(pointer)                                \
	{                                                \
		.offset = (uint64_t)(uintptr_t)(pointer) \
	}

/* ---- calls that end a name: it goes before the call, since afterwards another thread may have got
 * the same address, and comes back if the call fails ---- */

struct trace_ending {
	enum npu_trace_verb verb;
	struct trace_name name;
	bool known;
};
/* UNRESERVE, MFREE: what begins at an address; RELEASE: one reference to a handle. */
struct trace_ending trace_ends(struct trace_recorder *recorder, enum npu_trace_verb verb,
			       const void *what);
void trace_record_end(struct trace_recorder *recorder, struct trace_call *call,
		      const struct trace_ending *ending);

/* A key for a share that is known by bytes. */
uint64_t trace_key_of_bytes(const void *bytes, size_t count);

#endif
