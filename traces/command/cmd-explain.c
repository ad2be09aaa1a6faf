/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim explain: what a rule of the validation finds, why that hurts on hardware, and what is
 * right.
 */
#include "npusim.h"

#include <string.h>

static const struct rule {
	const char *id, *finds, *why, *right;
} rules[] = {
#define VALIDATE_RULE(rule, id, finds, why, right) { id, finds, why, right },
#include "validate/rules.h"
};

/* Returns the exit status. */
static int explain(const char *id)
{
	const char *ids[G_N_ELEMENTS(rules)], *meant;

	for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
		ids[i] = rules[i].id;
		if (strcmp(id, ids[i]) != 0)
			continue;
		g_print("%s: %s.\n\n%s\n\nRight would be: %s\n\n"
			"To leave the rule out: NPUSIM_VALIDATE_RULES=-%s\n",
			id, rules[i].finds, rules[i].why, rules[i].right, id);
		return NPUSIM_EXIT_OK;
	}
	meant = npu_nearest(id, ids, G_N_ELEMENTS(rules));
	return usage_error("explain", "there is no rule '%s'%s%s%s; 'npusim explain' lists them",
			   id, meant ? ": is '" : "", meant ? meant : "", meant ? "' meant?" : "");
}

int cmd_explain(int argc, char **argv)
{
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("[RULE ...]",
			   "Explains the rules of NPUSIM_VALIDATE; without RULE, lists them.", NULL,
			   0, &argc, &argv, &status))
		return status;
	for (gsize i = 0; argc == 1 && i < G_N_ELEMENTS(rules); i++)
		g_print("%-14s %s\n", rules[i].id, rules[i].finds);
	for (int i = 1; i < argc && status == NPUSIM_EXIT_OK; i++)
		status = explain(argv[i]);
	return status;
}
