/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves memory of this process by process_vm_readv() and process_vm_writev(). The loose side is the
 * local one, which the kernel reaches as any system call reaches a buffer: memory of every kind
 * will do. Of the remote side it takes the pages, as it cannot of those that belong to a device.
 */
#include "sim/transport/loose.h"

#include <errno.h>
#include <sys/uio.h>

static bool is_there(const void *at, int pid)
{
	unsigned char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)at, 1 };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == 1;
}

bool loose_is_allowed(int pid)
{
	unsigned char byte = 0;

	return is_there(&byte, pid);
}

uint64_t loose_move_by_kernel(void *dst, int dst_pid, const void *src, int src_pid, uint64_t bytes,
			      bool *out_at_src)
{
	uint64_t done = 0;

	while (done < bytes) {
		struct iovec to = { (char *)dst + done, bytes - done };
		struct iovec from = { (char *)(uintptr_t)src + done, bytes - done };
		ssize_t moved = dst_pid != 0 ? process_vm_readv(dst_pid, &to, 1, &from, 1, 0)
					     : process_vm_writev(src_pid, &from, 1, &to, 1, 0);

		if (moved > 0) {
			done += (uint64_t)moved;
		} else if (moved < 0 && errno != EFAULT) {
			memmove(to.iov_base, from.iov_base, to.iov_len);
			return bytes;
		} else {
			*out_at_src =
				dst_pid == 0 || (src_pid != 0 && !is_there(from.iov_base, src_pid));
			return done;
		}
	}
	return done;
}
