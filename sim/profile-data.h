/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in profiles' texts, made at build time from profiles/ (embed.py). Only profile.c reads
 * them.
 */
#ifndef NPUSIM_SIM_PROFILE_DATA_H
#define NPUSIM_SIM_PROFILE_DATA_H

#include <stddef.h>

struct sim_profile_text {
	const char *name, *text;
};

extern const struct sim_profile_text sim_profile_data[]; /* ends with a NULL name */
extern const char *const sim_profile_data_names[];       /* sorted, NULL-terminated */

#endif
