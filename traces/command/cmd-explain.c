/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim explain: what a rule of the validation finds, why that hurts on hardware, and what is
 * right.
 */
#include "npusim.h"

static const struct rule {
	const char *id, *finds, *why, *right;
} rules[] = {
#define VALIDATE_RULE(rule, id, finds, why, right) { id, finds, why, right },
#include "validate/rules.h"
};

static int run(char **words, GError **error)
{
	const char *ids[G_N_ELEMENTS(rules)];

	for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
		ids[i] = rules[i].id;
		if (*words == NULL)
			g_print("%-14s %s\n", ids[i], rules[i].finds);
	}
	for (; *words; words++) {
		gsize i = 0;

		while (i < G_N_ELEMENTS(rules) && strcmp(*words, ids[i]) != 0)
			i++;
		if (i == G_N_ELEMENTS(rules))
			return refuse_option(error,
					     "there is no rule '%s'%s; 'npusim explain' lists them",
					     *words, npu_meant(*words, ids, i, ""));
		g_print("%s: %s.\n\n%s\n\nRight would be: %s\n\n"
			"To leave the rule out: NPUSIM_VALIDATE_RULES=-%s\n",
			ids[i], rules[i].finds, rules[i].why, rules[i].right, ids[i]);
	}
	return NPUSIM_EXIT_OK;
}

VERB(explain, "say what a rule of NPUSIM_VALIDATE finds, and what is right", "[RULE ...]",
     "Explains the rules of NPUSIM_VALIDATE; without RULE, lists them.", 0, G_MAXINT, 0, NULL, run);
