/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc and the kernel say about a process, for code that must know whether a member has
 * ended.
 */
#ifndef NPUSIM_NODE_PROCESS_H
#define NPUSIM_NODE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

struct process_stat {
	char state;
	uint32_t flags, threads;
	uint64_t start_time;
};
/* tid 0: the process itself. False and errno: ENOENT or ESRCH, there is no such process; else it
 * cannot be seen. */
bool process_stat(pid_t pid, pid_t tid, struct process_stat *out);
/* It is on its way out, from where it does not return to its program, or is no more. */
bool thread_has_ended(pid_t pid, pid_t tid);
bool process_is_stopped(pid_t pid);
uid_t process_user(pid_t pid); /* the effective one; -1 and errno */
/* False: that process has ended for certain. */
bool process_is_same(pid_t pid, uint64_t start_time);
uint64_t process_start_time(pid_t pid); /* 0: none */
void process_command(pid_t pid, char *out, size_t size);
/* True when no thread of the process of that start time can run the program's code any more: none
 * is left, it is on its way out, or another program runs in it, whose descriptor `fd` is not the
 * file (device, inode). */
bool process_is_gone(pid_t pid, uint64_t start_time, int fd, uint64_t device, uint64_t inode);
/* Sleeps until the process has ended, `ms` at most; all of them where the kernel has no pidfd. */
void process_wait(pid_t pid, int ms);
/* Milliseconds of the clock that only goes on. */
static inline int64_t clock_ms(void)
{
	return (int64_t)(clock_now_ns() / 1000000);
}

#endif
