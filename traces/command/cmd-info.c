/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim info: shows what a program would run on here, and why.
 */
#include "npusim.h"

#include "acl/acl.h"
#include "config.h"
#include "show/member.h"

/* Each value goes to the text, which people read, and to the JSON; one of them is shown. */
static GString *text;
static JsonBuilder *json;
#define put(...) g_string_append_printf(text, __VA_ARGS__)

static void add_text(const char *name, const char *value)
{
	g_autofree char *member = g_ascii_strdown(name, -1);

	put("%-12s %s\n", name, value ?: "unknown");
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

		put("  %-24s %-14s %-12s %s (%s)\n", info->name, *value ? value : "-", origin,
		    info->help, info->values);
		json_builder_begin_object(json);
		json_text(json, "name", info->name);
		json_text(json, "value", value);
		json_text(json, "origin", origin);
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
}

/* What the backend says of itself, but for what is shown elsewhere; its differences are last. */
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
	g_autoptr(GError) error = NULL;
	/* without /proc nothing says where it is, but it is loaded */
	g_autofree char *library = part_file(ACL, NULL) ?: g_strdup(ACL);
	struct check_server server = { 0 };
	int32_t major = 0, minor = 0, patch = 0;
	int status = NPUSIM_EXIT_OK;

	if (!check_probe(library, &server, &error))
		return failure("%s", error->message);
	aclrtGetVersion(&major, &minor, &patch);
	add_text("SoC", strcmp(server.soc, "unknown") != 0 ? server.soc : NULL);
	add_text("runtime", npu_text("%d.%d.%d, as CANN 9.0", major, minor, patch));
	put("%-12s %u\n", "devices", server.devices);
	json_list(json, "devices");
	for (unsigned d = 0; d < server.devices; d++) {
		json_builder_begin_object(json);
		if (server.trouble[d]) {
			put("  device %-2u %s\n", d, server.trouble[d]);
			json_text(json, "error", server.trouble[d]);
			status = NPUSIM_EXIT_FAILED;
		} else {
			put("  device %-2u %s free of %s\n", d,
			    npu_size_words(server.free_bytes[d]),
			    npu_size_words(server.total_bytes[d]));
			json_number(json, "free_bytes", server.free_bytes[d]);
			json_number(json, "total_bytes", server.total_bytes[d]);
		}
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
	add_backend(server.backend);
	g_free(server.backend);
	return status;
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
	int status = add_runtime();
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
