/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim profile: the device profiles and their keys, for who writes a device of their own.
 */
#include "npusim.h"

#include "sim/profile.h"

static int run(char **words, GError **error)
{
	const struct sim_profile_text *each = sim_profile_texts;
	g_autofree char *names = g_strjoinv(", ", (char **)sim_profile_names());
	gboolean list = strcmp(words[0], "list") == 0 && !words[1];

	if (strcmp(words[0], "show") == 0 && words[1]) {
		while (each->name && strcmp(each->name, words[1]) != 0)
			each++;
		if (each->name == NULL)
			return refuse_option(error, "there is no profile '%s'; known are %s",
					     words[1], names);
		g_print("%s", each->text);
	} else if (strcmp(words[0], "keys") == 0 && !words[1]) {
		g_print("%s", sim_profile_keys);
	} else if (!list) {
		return refuse_option(error, "list, keys or show NAME is wanted");
	}
	for (const char *const *name = sim_profile_names(); list && *name; name++) {
		struct sim_profile p;

		if (sim_profile_load(*name, &p, NULL))
			g_print("%-14s  %2u cube and %2u vector cores, %s HBM, %s L2\n", *name,
				p.cube_cores, p.vector_cores, npu_size_words(p.hbm_bytes),
				npu_size_words(p.l2_bytes));
	}
	return NPUSIM_EXIT_OK;
}

VERB(profile, "list the device profiles, and explain their keys", "list | keys | show NAME",
     "The device profiles that --soc takes: their names; every key, with range, unit and meaning; "
     "a profile, as a file to start from, with the source of each value.",
     1, 2, 0, NULL, run);
