/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of runtime/base share with each other and with their tests. No other file
 * includes it.
 */
#ifndef NPUSIM_BASE_PRIVATE_H
#define NPUSIM_BASE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

/* The name among `names` (`count` of them) that is nearest to `word`, upper and lower case being
 * the same; NULL if none is near. An edit distance of up to a third of the word's length is near.
 */
const char *base_nearest(const char *word, const char *const *names, size_t count);

#endif
