/* SPDX-License-Identifier: Apache-2.0
 *
 * Physical handles of this process: the objects behind drv_mem_handle_t. Owns their memory, their
 * references and what is remembered of those that are gone; the pages are the node's (node.h).
 *
 * A handle is never believed: its address is looked up first, so that a stale, foreign or made-up
 * one gets its code. The record of a freed handle is kept until thousands more have been freed, and
 * says who freed it. All functions are called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_HANDLE_H
#define NPUSIM_BSIM_HANDLE_H

#include "memory/memory.h"

bool handle_table_open(struct bsim *bs);
void handle_table_close(struct bsim *bs);

/* The live handle at that address; INVALID_VALUE, and INVALID_HANDLE before any device is open,
 * with a message that starts with the call. */
drvError_t handle_find(struct bsim *bs, const char *call, const void *pointer,
		       struct drv_mem_handle **out);
/* A live handle for the block, with one reference. NULL: host memory is short (message set). */
struct drv_mem_handle *handle_make(struct bsim *bs, const char *call, struct node_block *block);
/* Ends a handle whatever its references say: its pages go back. */
void handle_end(struct bsim *bs, struct drv_mem_handle *h, enum handle_state state);
/* Ends all whose pages lie on, or were imported to, the device. Returns how many. */
unsigned handle_end_device(struct bsim *bs, unsigned device);
/* Drops the reference of a mapping that is gone; ends the handle with its last one. */
void handle_unmapped(struct bsim *bs, struct drv_mem_handle *h);
/* The import of a share on a device that this process has already. */
struct drv_mem_handle *handle_find_import(struct bsim *bs, uint32_t share_id, unsigned space);
void handle_add_import(struct bsim *bs, struct drv_mem_handle *h);
/* The properties of a handle that was imported on a device. */
void handle_set_imported_prop(struct drv_mem_handle *h, uint32_t dev);

#endif
