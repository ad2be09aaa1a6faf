/* SPDX-License-Identifier: Apache-2.0
 *
 * Growth between marks (npusimMark): what is made, retained and given back is counted by the stack
 * that made it; a mark compares with the mark of the same name before. Under the caller's lock.
 */
#ifndef NPUSIM_VALIDATE_GROWTH_H
#define NPUSIM_VALIDATE_GROWTH_H

#include "validate/objects.h"

struct growth;

struct growth *growth_new(void);
void growth_free(struct growth *growth);
/* An object watcher's: `growth` is a struct growth. */
void growth_count(void *growth, const struct object *object, enum object_change change);
/* Reports each stack of which more is held than at the last mark of the name, and more was held
 * there than at the one before: what grows once may be warming up. */
void growth_mark(struct growth *growth, const char *name, npu_stack stack);
/* Writes a table of what was reported, a mark's name each. */
void growth_tell(const struct growth *growth);

#endif
