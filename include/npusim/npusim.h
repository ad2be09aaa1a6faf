/* SPDX-License-Identifier: Apache-2.0
 *
 * What npusim adds to the ACL: programs that know that they run on the model may ask it. Exported
 * by libascendcl.so beside the ACL's functions. On a real device both answer as said there.
 *
 * All are there since 0.1, and any thread may call them. A @device is a user id, as aclrtSetDevice
 * takes it, and must be open in this process. Where the answer is an aclError other than 0, or
 * NULL in place of a text, aclGetRecentErrMsg() has the words; these are not repeated: 0 success,
 * 100000 a pointer is null, 107001 no such device.
 */
#ifndef NPUSIM_NPUSIM_H
#define NPUSIM_NPUSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NPUSIM_PUBLIC __attribute__((visibility("default")))
#else
#define NPUSIM_PUBLIC
#endif

/* See npusim/driver.h, which has its members. */
struct npu_stats;

/**
 * npusim_get_stats:
 * @out: in and out: out->size is set by the caller to sizeof(struct npu_stats); the rest is filled
 * in.
 *
 * Counters of one device: memory, mappings, calls and their simulated time, TLBs, HBM.
 *
 * Returns: an aclError: 100000 out->size is 0; 207000 the backend is a real device.
 */
NPUSIM_PUBLIC int npusim_get_stats(int device, struct npu_stats *out);

/**
 * npusim_touch:
 * @at: addresses of the device's memory.
 * @count: how many, at least 1.
 * @bytes: how much is read at each, at least 1.
 * @core: which core reads: cube cores first, then vector cores.
 *
 * Reads memory for the time that it takes: through TLBs, page walks, caches and HBM. Nothing is
 * kept; npusim_get_stats() has what it came to. It returns when all is there in simulated time.
 *
 * Returns: an aclError: 107000 another argument is not valid; 507899 a byte is not mapped; 207000
 * the backend is a real device.
 */
NPUSIM_PUBLIC int npusim_touch(int device, const uint64_t *at, size_t count, size_t bytes,
			       unsigned core);

/**
 * npusim_physical:
 * @va: an address that the device's page table has.
 * @pa: out: where in the device's memory the byte at @va lies, counted from its first byte.
 * @bytes: in: how many bytes are of interest, at least 1; out: how many of them, from the first on,
 * are mapped and lie one after another.
 *
 * What of the device's memory is behind an address. It takes no simulated time.
 *
 * Returns: an aclError: 107000 *bytes is 0; 507899 nothing of the device's memory is mapped there;
 * 207000 the backend is a real device.
 */
NPUSIM_PUBLIC int npusim_physical(int device, uint64_t va, uint64_t *pa, uint64_t *bytes);

/**
 * npusimBlock:
 * @ptr: an address in memory of a device or page-locked memory that the program holds.
 * @size: bytes of the block, at least 1.
 *
 * Tells NPUSIM_VALIDATE that the program has carved a block out of its own memory, as an allocator
 * with a pool does. The block's bytes count as unwritten from now on, a copy that begins in it is
 * to end in it, and after npusimBlockFree() its address is stale. Blocks that it meets are over;
 * all are with the memory that they lie in. Work that is queued may still use a block that has been
 * given back: an allocator may hand it on in the order of a stream.
 *
 * Without NPUSIM_VALIDATE nothing happens. It changes no call's answer, and takes no simulated
 * time.
 *
 * Returns: an aclError: 100000 @size is 0; 500000 there is no backend. libcuda.so.1 has this
 * function, too, and answers a CUresult: 1 for an argument, 3 before cuInit.
 */
NPUSIM_PUBLIC int npusimBlock(const void *ptr, size_t size);

/**
 * npusimBlockFree:
 * @ptr: as npusimBlock() was given it; others are ignored, but one that was given back already is
 * reported.
 *
 * The block is given back.
 *
 * Returns: as npusimBlock().
 */
NPUSIM_PUBLIC int npusimBlockFree(const void *ptr);

typedef void (*npusim_line_fn)(void *arg, const char *text);

/**
 * npusimHeld:
 * @fn: is called with each line, before npusimHeld() returns; it must not call the ACL.
 * @arg: for @fn.
 *
 * Lists what the process holds, as NPUSIM_LEAKS=full does at its end: a line for each reservation,
 * mapping, handle and allocation, two blanks in front, with its address, its size and the call that
 * made it; then lines with sums. For test harnesses, which compare two lists. Opens no backend, and
 * takes no simulated time.
 *
 * Returns: an aclError: 207000 the backend is a real device.
 */
NPUSIM_PUBLIC int npusimHeld(npusim_line_fn fn, void *arg);

/**
 * npusim_now_ps:
 *
 * Returns: the simulated time of the process in picoseconds; on a real device the host's monotonic
 * clock, in the same unit. Asking takes no simulated time.
 */
NPUSIM_PUBLIC uint64_t npusim_now_ps(void);

/**
 * npusim_freed_soon:
 * @va: addresses of memory that the program is about to free; others count for nothing
 * @count: how many; the first 64 are looked at
 *
 * A hint by who knows what comes, as a replay does: the model has the processor fetch its records
 * of them, for all at once. It changes nothing and takes no simulated time; on a real device it
 * does nothing.
 */
NPUSIM_PUBLIC void npusim_freed_soon(const uint64_t *va, size_t count);

/**
 * npusim_driver_code:
 *
 * Of the calling thread's last call that failed. aclError codes tell less: many of the driver's
 * become 507899.
 *
 * Returns: the code that the driver answered (drvError_t), or 0 if the runtime itself refused the
 * call.
 */
NPUSIM_PUBLIC int npusim_driver_code(void);

/**
 * npusim_backend_text:
 *
 * What serves the calls, as lines "key=value": the first is "drivers=", the wrappers and the
 * backend from the top; then what the backend says of itself (version, SoC, file ...). Opens the
 * backend if no call has yet.
 *
 * Returns: text for free(), or NULL where there is no backend or no memory.
 */
NPUSIM_PUBLIC char *npusim_backend_text(void);

/**
 * npusim_settings_check:
 *
 * Looks at all that the environment sets (NPUSIM_*), as the first call of a program would, and
 * opens nothing: for who starts programs with it.
 *
 * Returns: NULL where all is valid; else text for free(): the variable, its value, and what would
 * be right.
 */
NPUSIM_PUBLIC char *npusim_settings_check(void);

/**
 * npusimMark:
 * @name: what is marked, such as "step"; it is copied.
 *
 * Marks a moment that returns, such as the end of a training step: the validation
 * (NPUSIM_VALIDATE) compares what the process holds at the marks of one name, and reports what
 * grows from mark to mark (rule growth). Without validation it does nothing. It takes no simulated
 * time. From Python: ctypes.CDLL("libascendcl.so").npusimMark(b"step").
 *
 * Returns: an aclError: 500000 there is no driver. From libcuda.so.1, as npusimBlock().
 */
NPUSIM_PUBLIC int npusimMark(const char *name);

/**
 * struct npusim_report:
 * @size: of the structure as the library has it; members are only added at its end.
 * @rule: the rule's id, such as "race".
 * @text: what happened, in one sentence.
 * @stacks: the call stacks, as the report on stderr has them; "" where there are none.
 * @right: what would be right.
 * @file: the source of the innermost frame whose line is known, or NULL.
 * @line: its line.
 *
 * One report of the validation. All of it is valid during the call.
 */
struct npusim_report {
	size_t size;
	const char *rule, *text, *stacks, *right;
	const char *file;
	int line;
};
typedef void (*npusim_report_fn)(void *arg, const struct npusim_report *report);

/**
 * npusimSetReportCallback:
 * @fn: is called with each report that is written, or NULL: nobody is.
 * @arg: for @fn.
 *
 * For test harnesses: the reports of the validation (NPUSIM_VALIDATE), beside their text. @fn runs
 * in the thread whose call is reported, before that call returns, and at the end of the process. It
 * should not call the ACL; what it calls leaves the reported call its name and its message. It
 * replaces the callback before.
 *
 * Returns: an aclError: 207000 NPUSIM_VALIDATE is off; 500000 there is no driver.
 */
NPUSIM_PUBLIC int npusimSetReportCallback(npusim_report_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
