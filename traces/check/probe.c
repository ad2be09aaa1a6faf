/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which devices there are to check, by steps of a case: a crash of the driver becomes an
 * error message.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct test_case alone = { .dialect = &case_acl, .processes = 1, .bare = TRUE };

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

static gboolean ask_all(struct case_processes *processes, struct check_server *out, GError **error)
{
	struct case_answer answer;

	if (!case_need(processes, 0, "init", &answer, error) ||
	    !case_need(processes, 0, "devices", &answer, error))
		return FALSE;
	int count = atoi(answer.value);
	if (count == 0) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver is there, and has no device");
		return FALSE;
	}
	if (!case_need(processes, 0, "soc", &answer, error))
		return FALSE;
	g_strlcpy(out->soc, answer.value, sizeof(out->soc));
	while (out->devices < MIN((unsigned)count, CHECK_DEVICES_MAX))
		if (!ask_device(processes, out, error))
			return FALSE;
	out->backend = g_string_new(NULL);
	for (unsigned i = 0;; i++) {
		g_autofree char *words = g_strdup_printf("backend %u", i);

		if (!case_need(processes, 0, words, &answer, error))
			return FALSE;
		if (answer.value[0] == '\0')
			return TRUE;
		g_string_append_printf(out->backend, "%s\n", answer.value);
	}
}

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	struct case_processes *processes = case_start(&alone, library);
	gboolean good;

	memset(out, 0, sizeof(*out));
	good = ask_all(processes, out, error);
	case_end(processes);
	return good;
}
