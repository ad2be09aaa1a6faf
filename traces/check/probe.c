/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which devices there are to check, by steps of a case: a crash of the driver becomes an
 * error message.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gboolean ask_device(struct case_processes *processes, struct check_server *out,
			   GError **error)
{
	g_autofree char *words = g_strdup_printf("device %u", out->devices);
	struct case_answer answer;

	if (!case_need(processes, 0, words, &answer, error) ||
	    !case_need(processes, 0, "memory", &answer, error)) {
		g_prefix_error(error, "%s: ", words);
		return FALSE;
	}
	sscanf(answer.value, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
	       &out->free_bytes[out->devices], &out->total_bytes[out->devices]);
	out->devices++;
	return TRUE;
}

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	static const struct test_case alone = { .dialect = &case_acl,
						.processes = 1,
						.bare = TRUE };
	enum { INIT, DEVICES, SOC, BACKEND, STEPS };
	static const char *const steps[STEPS] = { "init", "devices", "soc", "backend" };
	struct case_processes *processes = case_start(&alone, library);
	struct case_answer answers[STEPS];
	gboolean good = TRUE;

	memset(out, 0, sizeof(*out));
	for (int i = 0; good && i < STEPS; i++)
		good = case_need(processes, 0, steps[i], &answers[i], error);
	unsigned count = good ? (unsigned)atoi(answers[DEVICES].value) : 0;
	if (good && count == 0)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver is there, and has no device");
	good = count > 0;
	while (good && out->devices < MIN(count, CHECK_DEVICES_MAX))
		good = ask_device(processes, out, error);
	case_end(processes);
	if (good) {
		g_strlcpy(out->soc, answers[SOC].value, sizeof(out->soc));
		out->backend = g_strdup(answers[BACKEND].value);
	}
	return good;
}
