/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim profile: the device profiles and their keys, for who writes a device of their own.
 */
#include "npusim.h"

static int show(const char *name, GError **error)
{
	const struct sim_profile_text *each = sim_profile_texts;
	g_autofree char *names = g_strjoinv(", ", (char **)sim_profile_names());

	while (each->name && strcmp(each->name, name) != 0)
		each++;
	if (each->name == NULL)
		return refuse_option(error, "there is no profile '%s'; known are %s", name, names);
	g_print("%s", each->text);
	return NPUSIM_EXIT_OK;
}

static int list(void)
{
	for (const char *const *name = sim_profile_names(); *name; name++) {
		struct sim_profile p;

		if (sim_profile_load(*name, &p, NULL))
			g_print("%-14s  %2u cube and %2u vector cores, %s HBM, %s L2\n", *name,
				p.cube_cores, p.vector_cores, npu_size_words((gint64)p.hbm_bytes),
				npu_size_words((gint64)p.l2_bytes));
	}
	return NPUSIM_EXIT_OK;
}

static int run(char **words, GError **error)
{
	if (strcmp(words[0], "show") == 0 && words[1])
		return show(words[1], error);
	if (strcmp(words[0], "list") == 0 && !words[1])
		return list();
	if (strcmp(words[0], "keys") != 0 || words[1])
		return refuse_option(error, "list, keys or show NAME is wanted");
	g_print("%s", sim_profile_keys);
	return NPUSIM_EXIT_OK;
}

VERB(profile, "list the device profiles, and explain their keys", "list | keys | show NAME",
     "The device profiles that --soc takes: their names; every key, with range, unit and meaning; "
     "a profile, as a file to start from, with the source of each value.",
     1, 2, 0, NULL, run, NPUSIM_EXIT_FAILED);
