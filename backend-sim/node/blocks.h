/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of blocks, for the files that create and end them: imports, and processes that leave.
 */
#ifndef NPUSIM_NODE_BLOCKS_H
#define NPUSIM_NODE_BLOCKS_H

#include "members.h"

/* "node a", "server 3 of supernode a" (npu_text()). */
const char *server_text(const struct node *node, unsigned server);
/* Enters the node, and finds the block; the lock is held only on success. */
drvError_t block_enter(struct node *node, const struct node_block *block, struct block_place *out);
/* One more view for this process. Lock held. */
struct node_block *block_view(struct node *node, uint32_t id, bool imported);
/* This process's hold ends, however many views it has. Lock held at entry and return; let go while
 * frames are cleaned. */
void block_leave(struct node *node, uint32_t id);

#endif
