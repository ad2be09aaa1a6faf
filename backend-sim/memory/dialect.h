/* SPDX-License-Identifier: Apache-2.0
 *
 * The table by which a dialect of virtual memory replaces the window's rules (NPU_DIALECT_CUDA;
 * npusim/driver.h says what programs see). The room above fills in the table, and bsim.cuda points
 * to it while the dialect is in use. Called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_DIALECT_H
#define NPUSIM_BSIM_DIALECT_H

#include "memory/memory.h"

struct dialect {
	drvError_t (*reserve)(struct bsim *bs, void **ptr, uint64_t size, uint64_t alignment,
			      uint64_t hint);
	/* Gives the addresses of a reservation back. */
	void (*drop)(struct window *w, const struct range *r);
	drvError_t (*set_access)(struct bsim *bs, uint64_t va, uint64_t size,
				 const struct drv_mem_access_desc *desc, size_t count);
	/* Shares that are file descriptors. */
	drvError_t (*export_fd)(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
				int *out_fd);
	drvError_t (*import_fd)(struct bsim *bs, const char *call, int fd,
				struct drv_mem_handle **out);
};

#endif
