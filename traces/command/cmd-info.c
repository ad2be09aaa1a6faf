/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim info: shows what a program would run on here, and why.
 */
#include "npusim.h"

#include "acl/acl.h"
#include "config.h"
#include "npusim/npusim.h"
#include "show/member.h"

/* Each value goes to the text, which people read, or with --json to that. */
static JsonBuilder *json; /* NULL: text */

static void add_text(const char *name, const char *value)
{
	if (json == NULL) {
		g_print("%-12s %s\n", name, value);
		return;
	}
	g_autofree char *member = g_ascii_strdown(name, -1);
	json_text(json, member, value);
}

static void begin_list(const char *name, const char *title)
{
	if (json == NULL) {
		g_print("%s", title);
		return;
	}
	json_builder_set_member_name(json, name);
	json_builder_begin_array(json);
}

static void end_list(void)
{
	if (json)
		json_builder_end_array(json);
}

static void add_variables(void)
{
	begin_list("settings", "\nsettings\n");
	for (int v = 0; v < NPU_VAR_COUNT; v++) {
		const struct npu_var_info *info = npu_var_info((enum npu_var)v);
		const char *value = npu_var_get((enum npu_var)v, NULL);
		const char *origin = setting_origin((enum npu_var)v);
		if (json == NULL) {
			g_print("  %-17s %-14s %-12s %s (%s)\n", info->name, *value ? value : "-",
				origin, info->help, info->values);
			continue;
		}
		json_builder_begin_object(json);
		add_text("name", info->name);
		add_text("value", value);
		add_text("origin", origin);
		json_builder_end_object(json);
	}
	end_list();
}

/* What the backend says of itself, but for what is shown elsewhere; differences are its last lines.
 */
static void add_backend(const char *text)
{
	static const char *const elsewhere[] = { "backend", "soc", "devices", "version", NULL };
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	gboolean differences = FALSE;

	for (char **line = lines; *line; line++) {
		g_auto(GStrv) parts = g_strsplit(*line, "=", 2);

		if (parts[0] == NULL || parts[1] == NULL || g_strv_contains(elsewhere, parts[0]))
			continue;
		if (strcmp(parts[0], "difference") != 0) {
			add_text(parts[0], parts[1]);
			continue;
		}
		if (!differences)
			begin_list("differences", "where the contracts differ\n");
		differences = TRUE;
		if (json)
			json_builder_add_string_value(json, parts[1]);
		else
			g_print("  %s\n", parts[1]);
	}
	if (differences)
		end_list();
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
	begin_list("devices", npu_text("%-12s %u\n", "devices", count));
	for (uint32_t d = 0; d < count; d++) {
		size_t free_bytes = 0, total_bytes = 0;
		gboolean known =
			aclrtSetDevice((int32_t)d) == ACL_SUCCESS &&
			aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) == ACL_SUCCESS;

		if (json)
			json_builder_begin_object(json);
		if (json && known) {
			json_number(json, "free_bytes", free_bytes);
			json_number(json, "total_bytes", total_bytes);
		} else if (json) {
			add_text("error", aclGetRecentErrMsg());
		} else if (known) {
			g_print("  device %-2u %s free of %s\n", d,
				npu_size_words((gint64)free_bytes),
				npu_size_words((gint64)total_bytes));
		} else {
			g_print("  device %-2u %s\n", d, aclGetRecentErrMsg());
		}
		if (json)
			json_builder_end_object(json);
		if (known)
			aclrtResetDevice((int32_t)d);
		ok &= known;
	}
	end_list();
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
	if (!model_options_apply(NULL, FALSE, error))
		return NPUSIM_EXIT_USAGE;
	g_autoptr(JsonBuilder) builder = to ? json_builder_new() : NULL;
	json = builder;
	if (json)
		json_builder_begin_object(json);
	add_text("npusim", NPUSIM_VERSION);
	g_autofree char *folder = part_folder(PART_ACL, &problem);
	add_text("libraries", folder ? folder : problem->message);
	gboolean said = g_getenv("NPUSIM_FAILURES") != NULL;
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* they are shown here */
	int status = add_runtime();
	if (!said)
		g_unsetenv("NPUSIM_FAILURES");
	add_variables();
	if (json) {
		json_builder_end_object(json);
		json_write(to, json, error);
	}
	return status;
}

VERB(info, "show the backend, the devices, and every setting with its origin", "",
     "Shows the backend, the devices, and every setting with its origin.", 0, 0,
     WITH_MODEL | WITH_TRACE, options, run, NPUSIM_EXIT_FAILED);
