/* SPDX-License-Identifier: Apache-2.0
 *
 * What a replay found, for people (a table) and for programs (JSON; the schema is in the manual
 * page npusim-replay(1)).
 */
#ifndef NPUSIM_TRACES_RESULT_H
#define NPUSIM_TRACES_RESULT_H

#include <stdio.h>

#include "play/replay.h"

#define RESULT_SCHEMA_VERSION 2

void result_print(FILE *out, const char *path, const struct trace *trace,
		  const struct replay *replay);
gboolean result_write_json(const char *file, const char *path, const struct trace *trace,
			   const struct replay *replay, GError **error);

#endif
