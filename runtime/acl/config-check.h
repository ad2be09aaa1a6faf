/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether a text is JSON, and no more: nothing that can be configured there is modelled.
 */
#ifndef NPUSIM_ACL_CONFIG_CHECK_H
#define NPUSIM_ACL_CONFIG_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* A text of blanks only counts as JSON too. False: `wrong` has line, column and what was expected
 * there. */
bool config_is_json(const char *text, char *wrong, size_t wrong_bytes);

#endif
