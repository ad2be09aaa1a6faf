/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves bytes of memory that the program may have taken away, or may take away meanwhile: the
 * kernel moves them, and says where it could not. Plain C, no state.
 */
#ifndef NPUSIM_SIM_TRANSPORT_LOOSE_H
#define NPUSIM_SIM_TRANSPORT_LOOSE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the kernel lets this process (pid) move its own memory: system calls may be filtered. */
bool loose_is_allowed(int pid);

/* Moves src to dst. A side whose pid is this process's, and not 0, may be no memory, or not to be
 * read or written; the other is there. Returns how many bytes were moved, all of them from the
 * first on; where they are fewer, *out_at_src says if src's next byte is the one in the way, else
 * dst's is. Where the kernel does not move them (any more), memmove() does. */
uint64_t loose_move_by_kernel(void *dst, int dst_pid, const void *src, int src_pid, uint64_t bytes,
			      bool *out_at_src);
static inline uint64_t loose_move(void *dst, int dst_pid, const void *src, int src_pid,
				  uint64_t bytes, bool *out_at_src)
{
	if ((dst_pid | src_pid) != 0)
		return loose_move_by_kernel(dst, dst_pid, src, src_pid, bytes, out_at_src);
	memmove(dst, src, bytes);
	return bytes;
}

#ifdef __cplusplus
}
#endif

#endif
