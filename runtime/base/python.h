/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of Python 3.9 to 3.13, where this process runs it.
 */
#ifndef NPUSIM_BASE_PYTHON_H
#define NPUSIM_BASE_PYTHON_H

#include <pthread.h>
#include <stdbool.h>

/* Kept once for each function and line, for ever. */
struct npu_python_frame {
	const char *function, *file;
	int line;
};

/* Of the frames that are kept: a fork takes it. */
extern pthread_mutex_t npu_python_lock;

/* *out is the function or object of the name; false: the library does not have it. */
bool npu_python_symbol(void *library, const char *name, void *out);
/* Looks for the interpreter, if none is known yet. */
void npu_python_find(void);
/* Whether the address of an instruction is the interpreter's. */
bool npu_python_has(const void *address);
/* The calling thread's frames, innermost first, at most `max`; how many there are: 0 where it runs
 * no Python, or one that is not known. The interpreter's lock is neither needed nor taken, and
 * nothing of it is changed; memory that is not what it should be ends the list. */
unsigned npu_python_frames(const struct npu_python_frame **out, unsigned max);

#endif
