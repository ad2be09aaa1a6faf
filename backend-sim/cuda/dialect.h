/* SPDX-License-Identifier: Apache-2.0
 *
 * What NPU_DIALECT_ANYWHERE does in place of the window's rules; driver.h says what programs see.
 * Called with bsim.lock held, by the files that own the calls.
 */
#ifndef NPUSIM_BSIM_ANYWHERE_H
#define NPUSIM_BSIM_ANYWHERE_H

#include "queue/copy.h"
#include "memory/mapping.h"

static inline bool bsim_anywhere(const struct bsim *bs)
{
	return bs->dialect == NPU_DIALECT_ANYWHERE;
}

/* size a multiple of 2 MiB, alignment a power of two or 0, hint 0 or a multiple of 2 MiB: else
 * INVALID_VALUE. The hint is taken where all of it is free. */
drvError_t anywhere_reserve_locked(struct bsim *bs, void **ptr, uint64_t size, uint64_t alignment,
				   uint64_t hint);
/* Ends a reservation that nothing is mapped in. */
void anywhere_drop(struct window *w, struct range *r);
/* window_close(): edges of reservations, and the addresses of heaps. */
void anywhere_close(struct window *w);

drvError_t anywhere_set_access_locked(struct bsim *bs, uint64_t va, uint64_t size,
				      const struct drv_mem_access_desc *desc, size_t count);
/* Of a range that begins in a reservation: a device that may reach all of it, one that may write
 * where there is one. */
drvError_t anywhere_copy_end_locked(struct bsim *bs, const char *call, const char *argument,
				    uint64_t va, uint64_t bytes, struct copy_end *out);
drvError_t anywhere_export_locked(struct bsim *bs, const char *call, drv_mem_handle_t *handle,
				  int *out_fd);
drvError_t anywhere_import_locked(struct bsim *bs, const char *call, int fd, uint32_t dev,
				  struct drv_mem_handle **out);

#endif
