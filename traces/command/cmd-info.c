/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim info: shows what a program would run on here, and why.
 */
#include "npusim.h"

#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "base/base.h"
#include "config.h"
#include "npusim/npusim.h"

static void print_variables(void)
{
	g_print("\nsettings\n");
	for (int v = 0; v < NPU_VAR_COUNT; v++) {
		const struct npu_var_info *info = npu_var_info((enum npu_var)v);
		const char *value = npu_var_get((enum npu_var)v, NULL);
		g_print("  %-17s %-14s %-12s %s (%s)\n", info->name, *value ? value : "-",
			setting_origin((enum npu_var)v), info->help, info->values);
	}
}

/* What the backend says of itself, but for what is shown elsewhere. */
static void print_backend(const char *text)
{
	static const char *const elsewhere[] = { "backend", "soc", "devices", "version", NULL };
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	gboolean differences = FALSE;

	for (char **line = lines; *line; line++) {
		char *equals = strchr(*line, '=');
		if (equals == NULL)
			continue;
		*equals = '\0';
		if (strcmp(*line, "difference") == 0) {
			if (!differences)
				g_print("where the contracts differ\n");
			g_print("  %s\n", equals + 1);
			differences = TRUE;
		} else if (!g_strv_contains(elsewhere, *line)) {
			g_print("%-12s %s\n", *line, equals + 1);
		}
	}
}

static gboolean print_device(uint32_t device)
{
	size_t free_bytes, total_bytes;
	if (aclrtSetDevice((int32_t)device) != ACL_SUCCESS ||
	    aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) != ACL_SUCCESS) {
		g_print("  device %-2u %s\n", device, aclGetRecentErrMsg());
		return FALSE;
	}
	g_print("  device %-2u %s free of %s\n", device, npu_size_words((gint64)free_bytes),
		npu_size_words((gint64)total_bytes));
	aclrtResetDevice((int32_t)device);
	return TRUE;
}

static int print_runtime(void)
{
	uint32_t count = 0;
	int32_t major = 0, minor = 0, patch = 0;
	gboolean ok = TRUE;
	char *backend;

	if (aclInit(NULL) != ACL_SUCCESS || aclrtGetDeviceCount(&count) != ACL_SUCCESS)
		return failure("info", "%s", aclGetRecentErrMsg());
	aclrtGetVersion(&major, &minor, &patch);
	g_print("%-12s %s\n", "SoC", aclrtGetSocName());
	g_print("%-12s %d.%d.%d, as CANN 9.0\n", "runtime", major, minor, patch);
	g_print("%-12s %u\n", "devices", count);
	for (uint32_t d = 0; d < count; d++)
		ok = print_device(d) && ok;
	backend = npusim_backend_text();
	if (backend)
		print_backend(backend);
	free(backend);
	aclFinalize();
	return ok ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
}

int cmd_info(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("", "Shows the backend, the devices, and every setting with its origin.",
			   NULL, OPTIONS_OF_MODEL, &argc, &argv, &status))
		return status;
	if (argc > 1)
		return usage_error("info", "it takes no argument '%s'", argv[1]);
	if (!model_options_apply(NULL, NULL, &error))
		return usage_error("info", "%s", error->message);
	g_print("%-12s %s\n", "npusim", NPUSIM_VERSION);
	g_autofree char *folder = acl_library_folder(&error);
	g_print("%-12s %s\n", "libraries", folder ? folder : error->message);
	status = print_runtime();
	print_variables();
	return status;
}
