/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim info: what would run here, and why.
 */
#include "npusim.h"

#include "acl/acl.h"
#include "base/base.h"
#include "config.h"
#include "npusim/npusim.h"

static void print_variables(void)
{
	g_print("\nsettings\n");
	for (int v = 0; v < NPU_VAR_COUNT; v++) {
		const struct npu_var_info *info = npu_var_info((enum npu_var) v);
		bool from_env;
		const char *value = npu_var_get((enum npu_var) v, &from_env);
		g_print("  %-17s %-14s %-12s %s (%s)\n", info->name, *value ? value : "-",
			from_env ? "environment" : "default", info->help, info->values);
	}
}

static gboolean print_device(uint32_t device)
{
	size_t free_bytes, total_bytes;
	if (aclrtSetDevice((int32_t) device) != ACL_SUCCESS ||
	    aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) != ACL_SUCCESS) {
		g_print("  device %-2u %s\n", device, aclGetRecentErrMsg());
		return FALSE;
	}
	g_print("  device %-2u %.2f GiB free of %.2f GiB\n", device, free_bytes / 1073741824.0,
		total_bytes / 1073741824.0);
	aclrtResetDevice((int32_t) device);
	return TRUE;
}

static int print_runtime(void)
{
	uint32_t count = 0;
	int32_t major = 0, minor = 0, patch = 0;
	gboolean ok = TRUE;

	if (aclInit(NULL) != ACL_SUCCESS || aclrtGetDeviceCount(&count) != ACL_SUCCESS)
		return failure("info", "%s", aclGetRecentErrMsg());
	aclrtGetVersion(&major, &minor, &patch);
	g_print("backend    %s\n", npusim_backend_text());
	g_print("SoC        %s\n", aclrtGetSocName());
	g_print("runtime    %d.%d.%d, as CANN 9.0\n", major, minor, patch);
	g_print("devices    %u\n", count);
	for (uint32_t d = 0; d < count; d++)
		ok = print_device(d) && ok;
	aclFinalize();
	return ok ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
}

int cmd_info(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	if (!parse_options("", "Shows the backend, the devices, and every setting with its origin.", NULL, TRUE, &argc, &argv,
			   &status))
		return status;
	if (argc > 1)
		return usage_error("info", "it takes no argument '%s'", argv[1]);
	if (!model_options_apply(NULL, NULL, &error))
		return usage_error("info", "%s", error->message);
	g_print("npusim     %s\n", NPUSIM_VERSION);
	g_autofree char *folder = acl_library_folder(&error);
	g_print("libraries  %s\n", folder ? folder : error->message);
	status = print_runtime();
	print_variables();
	return status;
}
