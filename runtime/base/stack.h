/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks: taken where something happens, kept once each, and put in words when somebody asks.
 * Who keeps an object keeps the number of its stack beside it.
 */
#ifndef NPUSIM_BASE_STACK_H
#define NPUSIM_BASE_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* 0: none is known. */
typedef uint32_t npu_stack;

enum { NPU_STACK_SHORT = 8, NPU_STACK_FULL = 64 };

/* How many frames of the program a stack has, from NPUSIM_STACKS (off: 0, short, full); `unset` is
 * for a process that says nothing, 0: as its other variables have it; of several callers the one
 * that wants most has it. */
void npu_stack_use(unsigned unset);
/* The calling thread's, from the function of npusim that the program called on. Equal stacks have
 * one number. Any thread. */
npu_stack npu_stack_here(void);
/* In a handler of a signal that came at `pc`: from there on. */
npu_stack npu_stack_from(const void *pc);
/* Adds a line a frame to *text (free()), each after `indent`: the function, and the file and line
 * where libdw finds them, else the object and the offset into it. */
void npu_stack_add(char **text, npu_stack stack, const char *indent);
/* The function of npusim that the program called ("aclrtFree"), the innermost of a stack; NULL: it
 * is not known. */
const char *npu_stack_call(npu_stack stack);
/* The frames of a stack, innermost first, the program's own only; valid for ever. */
unsigned npu_stack_frames(npu_stack stack, void *const **out_frames);
struct npu_frame {
	const char *function, *file, *object; /* NULL: not known; as long as the object is loaded */
	int line;
	uintptr_t offset; /* into the object */
};
/* What is known of a frame. */
struct npu_frame npu_stack_look(const void *address);
/* Whether it is main()'s, with which a stack ends where it is shown. */
bool npu_stack_ends(const struct npu_frame *frame);
/* A frame a line, innermost first, up to main(): "step (train.c:41)", "step (libx.so+0x1f3)"; it
 * stays valid. NULL: the stack has none. */
const char *npu_stack_lines(npu_stack stack);
/* A frame in words: "step at train.c:41"; free(). *out_ends: npu_stack_ends(). */
char *npu_stack_frame(const void *address, bool *out_ends);
/* A stack in few words, a long one's end: "aclrtMalloc, load at train.c:41"; free(). NULL: none. */
char *npu_stack_words(npu_stack stack);
/* The innermost frame whose file and line are known. False: there is none. */
bool npu_stack_place(npu_stack stack, struct npu_frame *out);

#endif
