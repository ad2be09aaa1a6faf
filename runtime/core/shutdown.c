/* SPDX-License-Identifier: Apache-2.0
 *
 * The shutdown of the runtime: reports what the process still holds, and ends its objects.
 */
#include "core/end.h"
#include "core/object/process.h"

#include <string.h>

struct leak_text {
	unsigned lines;
};

static void leak_line(void *arg, const char *text)
{
	struct leak_text *leaks = arg;

	if (leaks->lines++ == 0)
		npu_log(NPU_LOG_WARN, "left at the end of the process (NPUSIM_LEAKS=full lists "
				      "all, off says nothing):");
	npu_log(NPU_LOG_WARN, "  %s", text);
}

static void report_leaks(struct npu_driver *drv)
{
	const char *mode = npu_var_get(NPU_VAR_LEAKS, NULL);
	struct leak_text leaks = { 0 };

	if (drv == NULL || strcmp(mode, "off") == 0)
		return;
	npu_call(drv, npusimLeaks, leak_line, &leaks, strcmp(mode, "full") == 0);
}

void core_shutdown(void)
{
	struct npu_driver *drv = core_driver_peek();

	if (drv == NULL)
		return;
	report_leaks(drv);
	core_device_shutdown();
	core_driver_end();
}

/* Other threads may still be inside of the driver, waiting for work that never ends: they are left
 * alone, and so is the driver. What the process holds goes with it. */
__attribute__((destructor)) static void end_of_process(void)
{
	struct npu_driver *drv = core_driver_peek();

	if (drv == NULL)
		return;
	report_leaks(drv);
	core_driver_refuse();
}
