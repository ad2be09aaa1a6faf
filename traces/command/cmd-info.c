/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim info: shows what a program would run on here, and why.
 */
#include "npusim.h"

#include "acl/acl.h"
#include "config.h"
#include "npusim/npusim.h"
#include "show/member.h"

/* Each value goes to the text, which people read, and to the JSON; one of them is shown. */
static GString *text;
static JsonBuilder *json;
#define put(...) g_string_append_printf(text, __VA_ARGS__)

static void add_text(const char *name, const char *value)
{
	g_autofree char *member = g_ascii_strdown(name, -1);

	put("%-12s %s\n", name, value);
	json_text(json, member, value);
}

static void add_variables(void)
{
	g_string_append(text, "\nsettings\n");
	json_list(json, "settings");
	for (int v = 0; v < NPU_VAR_COUNT; v++) {
		const struct npu_var_info *info = npu_var_info((enum npu_var)v);
		const char *value = npu_var_get((enum npu_var)v, NULL);
		const char *origin = setting_origin((enum npu_var)v);

		put("  %-17s %-14s %-12s %s (%s)\n", info->name, *value ? value : "-", origin,
		    info->help, info->values);
		json_builder_begin_object(json);
		json_text(json, "name", info->name);
		json_text(json, "value", value);
		json_text(json, "origin", origin);
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
}

/* What the backend says of itself, but for what is shown elsewhere; differences are its last lines.
 */
static void add_backend(const char *said)
{
	static const char *const elsewhere[] = { "backend", "soc", "devices", "version", NULL };
	g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
	gboolean differences = FALSE;

	for (char **line = lines; *line; line++) {
		g_auto(GStrv) parts = g_strsplit(*line, "=", 2);

		if (parts[0] == NULL || parts[1] == NULL || g_strv_contains(elsewhere, parts[0]))
			continue;
		if (strcmp(parts[0], "difference") != 0) {
			add_text(parts[0], parts[1]);
			continue;
		}
		if (!differences) {
			g_string_append(text, "where the contracts differ\n");
			json_list(json, "differences");
		}
		differences = TRUE;
		put("  %s\n", parts[1]);
		json_builder_add_string_value(json, parts[1]);
	}
	if (differences)
		json_builder_end_array(json);
}

static int add_runtime(void)
{
	uint32_t count = 0;
	int32_t major = 0, minor = 0, patch = 0;
	gboolean ok = TRUE;

	if (aclInit(NULL) != ACL_SUCCESS || aclrtGetDeviceCount(&count) != ACL_SUCCESS)
		return failure("%s", aclGetRecentErrMsg());
	aclrtGetVersion(&major, &minor, &patch);
	add_text("SoC", aclrtGetSocName());
	add_text("runtime", npu_text("%d.%d.%d, as CANN 9.0", major, minor, patch));
	put("%-12s %u\n", "devices", count);
	json_list(json, "devices");
	for (uint32_t d = 0; d < count; d++) {
		size_t free_bytes = 0, total_bytes = 0;
		gboolean known =
			aclrtSetDevice((int32_t)d) == ACL_SUCCESS &&
			aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) == ACL_SUCCESS;

		json_builder_begin_object(json);
		if (known) {
			put("  device %-2u %s free of %s\n", d, npu_size_words((gint64)free_bytes),
			    npu_size_words((gint64)total_bytes));
			json_number(json, "free_bytes", free_bytes);
			json_number(json, "total_bytes", total_bytes);
			aclrtResetDevice((int32_t)d);
		} else {
			const char *why = aclGetRecentErrMsg();

			put("  device %-2u %s\n", d, why);
			json_text(json, "error", why);
		}
		json_builder_end_object(json);
		ok &= known;
	}
	json_builder_end_array(json);
	char *backend = npusim_backend_text();
	if (backend)
		add_backend(backend);
	free(backend);
	aclFinalize();
	return ok ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
}

static char *to;

static const struct option options[] = {
	OPTION("json", OUTPUT, &to, "FILE", "write it as JSON to FILE instead; - is stdout"),
	{ 0 },
};

static int run(char **words, GError **error)
{
	g_autoptr(GError) problem = NULL;

	(void)words;
	if (!model_options_apply(NULL, error))
		return NPUSIM_EXIT_USAGE;
	text = g_string_new(NULL);
	json = json_builder_new();
	json_builder_begin_object(json);
	add_text("npusim", NPUSIM_VERSION);
	g_autofree char *folder = part_folder(ACL, &problem);
	add_text("libraries", folder ? folder : problem->message);
	gboolean said = g_getenv("NPUSIM_FAILURES") != NULL;
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* they are shown here */
	int status = add_runtime();
	if (!said)
		g_unsetenv("NPUSIM_FAILURES");
	add_variables();
	json_builder_end_object(json);
	if (to)
		json_write(to, json, error);
	else
		g_print("%s", text->str);
	return status;
}

VERB(info, "show the backend, the devices, and every setting with its origin", "",
     "Shows the backend, the devices, and every setting with its origin.", 0, 0,
     WITH_MODEL | WITH_TRACE, options, run);
